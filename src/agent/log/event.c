/*
 * Events as JSON and as heap copies. The one idea: every event's and every row's fields are visited by a
 * function expanded from the tables in event.h, so writer, reader, copy and free are four small visitors and
 * a new field needs one word in a table.
 *
 * Pure functions; any thread.
 */
#include "agent/log/event.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/types.h"

typedef enum field_kind {
    FIELD_STRING,
    FIELD_INTEGER,
    FIELD_NONZERO,
    FIELD_NUMBER,
    FIELD_SHARE,
    FIELD_BOOLEAN,
    FIELD_RAW,
    FIELD_LIST
} field_kind;

typedef enum row_shape { SHAPE_OBJECT, SHAPE_ARRAY, SHAPE_PLAIN } row_shape;

typedef struct list_type list_type;

typedef struct field {
    union {
        const char **text; /* FIELD_STRING, FIELD_RAW */
        int64_t *integer;  /* FIELD_INTEGER, FIELD_NONZERO */
        double *number;    /* FIELD_NUMBER, FIELD_SHARE */
        bool *boolean;
        size_t *n; /* FIELD_LIST: of rows */
    };
    void *rows; /* FIELD_LIST: the address of a pointer to them */
    const list_type *type;
} field;

typedef void field_fn(void *user, field_kind kind, const char *name, field f);

struct list_type {
    row_shape shape;
    size_t size;
    void (*visit)(void *row, field_fn *fn, void *user);
};

/* clang-format off */
#define VISIT_S(field_name) fn(user, FIELD_STRING, #field_name, (field){.text = &f->field_name});
#define VISIT_I(field_name) fn(user, FIELD_INTEGER, #field_name, (field){.integer = &f->field_name});
#define VISIT_N(field_name) fn(user, FIELD_NONZERO, #field_name, (field){.integer = &f->field_name});
#define VISIT_D(field_name) fn(user, FIELD_NUMBER, #field_name, (field){.number = &f->field_name});
#define VISIT_P(field_name) fn(user, FIELD_SHARE, #field_name, (field){.number = &f->field_name});
#define VISIT_B(field_name) fn(user, FIELD_BOOLEAN, #field_name, (field){.boolean = &f->field_name});
#define VISIT_J(field_name) fn(user, FIELD_RAW, #field_name, (field){.text = &f->field_name});
#define VISIT_L(row_name, field_name) \
    fn(user, FIELD_LIST, #field_name, (field){.n = &f->field_name.n, .rows = &f->field_name.rows, .type = &list_of_##row_name});
#define DEFINE_LIST(row_name, row_shape_name, fields)                    \
    static void visit_row_##row_name(void *row, field_fn *fn, void *user) \
    {                                                                   \
        agent_##row_name##_row *f = row;                                \
        fields                                                          \
    }                                                                   \
    static const list_type list_of_##row_name = {SHAPE_##row_shape_name, sizeof(agent_##row_name##_row), visit_row_##row_name};
AGENT_LISTS(DEFINE_LIST, VISIT_S, VISIT_I, VISIT_N, VISIT_D, VISIT_P)

#define DEFINE_VISIT(event_name, fields)                                \
    static void visit_##event_name(agent_event *e, field_fn *fn, void *user) \
    {                                                                   \
        __typeof__(e->event_name) *f = &e->event_name;                  \
        fields                                                          \
    }
AGENT_EVENTS(DEFINE_VISIT, VISIT_S, VISIT_I, VISIT_N, VISIT_D, VISIT_B, VISIT_J, VISIT_L)

#define EVENT_ROW(event_name, fields) {#event_name, visit_##event_name},
static const struct {
    const char *name;
    void (*visit)(agent_event *e, field_fn *fn, void *user);
} event_rows[AGENT_N_EVENTS] = {AGENT_EVENTS(EVENT_ROW, AGENT_NO_FIELD, AGENT_NO_FIELD, AGENT_NO_FIELD, AGENT_NO_FIELD, AGENT_NO_FIELD, AGENT_NO_FIELD, AGENT_NO_FIELD)};
/* clang-format on */

/* A list's rows, of whichever type. */
static char *get_rows(field f)
{
    char *rows;
    memcpy(&rows, f.rows, sizeof rows);
    return rows;
}

static void set_rows(field f, char *rows)
{
    memcpy(f.rows, &rows, sizeof rows);
}

const char *agent_event_name(agent_event_type type)
{
    return (unsigned)type < AGENT_N_EVENTS ? event_rows[type].name : "";
}

static void find_turn(void *user, field_kind kind, const char *name, field f)
{
    if (kind == FIELD_INTEGER && !strcmp(name, "turn")) *(int64_t *)user = *f.integer;
}

int64_t agent_event_turn(const agent_event *e)
{
    agent_event fields = *e;
    int64_t turn = -1;
    event_rows[e->type].visit(&fields, find_turn, &turn);
    return turn;
}

/* --- writing -------------------------------------------------------------------------------------------- */

typedef struct writing {
    base_buf *out;
    row_shape shape;
    bool is_first;
} writing;

/* ARRAY and PLAIN have a place for everything; of an OBJECT's fields those with a value are written. */
static bool is_missing(field_kind kind, field f)
{
    switch (kind) {
    case FIELD_STRING:
    case FIELD_RAW: return !*f.text;
    case FIELD_NONZERO: return !*f.integer;
    case FIELD_LIST: return !get_rows(f);
    default: return false;
    }
}

static void write_rows(base_buf *out, field f);

static void write_field(void *user, field_kind kind, const char *name, field f)
{
    writing *w = user;
    base_buf *out = w->out;
    const bool missing = is_missing(kind, f);
    if (missing && w->shape == SHAPE_OBJECT) return;
    if (!w->is_first) base_buf_putc(out, ',');
    w->is_first = false;
    if (w->shape == SHAPE_OBJECT) base_buf_printf(out, "\"%s\":", name);
    if (missing) {
        base_buf_puts(out, "null");
        return;
    }
    switch (kind) {
    case FIELD_STRING: base_json_put_str(out, *f.text, strlen(*f.text)); break;
    case FIELD_INTEGER:
    case FIELD_NONZERO: base_buf_printf(out, "%" PRId64, *f.integer); break;
    case FIELD_NUMBER: base_json_put_num(out, *f.number); break;
    case FIELD_SHARE:
        if (isfinite(*f.number))
            base_buf_printf(out, "%.2f", *f.number);
        else
            base_buf_puts(out, "null");
        break;
    case FIELD_BOOLEAN: base_buf_puts(out, *f.boolean ? "true" : "false"); break;
    case FIELD_RAW: base_json_put_text(out, *f.text); break; /* one line is one event */
    case FIELD_LIST: write_rows(out, f); break;
    }
}

static void write_rows(base_buf *out, field f)
{
    static const char *const brackets[] = {[SHAPE_OBJECT] = "{}", [SHAPE_ARRAY] = "[]", [SHAPE_PLAIN] = "\0"};
    const char *around = brackets[f.type->shape];
    char *rows = get_rows(f);
    base_buf_putc(out, '[');
    for (size_t i = 0; i < *f.n; i++) {
        writing w = {out, f.type->shape, true};
        if (i) base_buf_putc(out, ',');
        if (around[0]) base_buf_putc(out, around[0]);
        f.type->visit(rows + i * f.type->size, write_field, &w);
        if (around[0]) base_buf_putc(out, around[1]);
    }
    base_buf_putc(out, ']');
}

const char *agent_event_opening(const agent_event *e)
{
    const bool is_one = e->type == AGENT_EVENT_append && e->append.label &&
                        !strcmp(e->append.label, "opening") && e->append.origin &&
                        !strcmp(e->append.origin, kv_origin_word(KV_ORIGIN_ANSWER));
    return is_one ? e->append.text : NULL;
}

void agent_event_write(const agent_event *e, base_buf *out)
{
    agent_event fields = *e; /* visitors take fields they could change; this one only reads */
    base_buf_puts(out, "{\"event\":\"");
    base_buf_puts(out, agent_event_name(e->type));
    base_buf_putc(out, '"');
    event_rows[e->type].visit(&fields, write_field, &(writing){out, SHAPE_OBJECT, false});
    base_buf_putc(out, '}');
}

/* --- the schema ----------------------------------------------------------------------------------------- */

/* What a field's value may be. A number that is not known is null. */
static const char *const field_types[] = {
    [FIELD_STRING] = "{\"type\":\"string\"}",
    [FIELD_INTEGER] = "{\"type\":\"integer\"}",
    [FIELD_NONZERO] = "{\"type\":\"integer\"}",
    [FIELD_NUMBER] = "{\"type\":[\"number\",\"null\"]}",
    [FIELD_SHARE] = "{\"type\":[\"number\",\"null\"]}",
    [FIELD_BOOLEAN] = "{\"type\":\"boolean\"}",
    [FIELD_RAW] = "{}",
};

/* Fields that events got later: what was logged before has none of them, and stays an event of the schema. */
static const struct {
    const char *event, *name;
} later_fields[] = {{"session", "until"}, {"ledger", "until"}, {"ledger", "computed"}, {"ledger", "unread"},
    {"plan", "again"}};

static bool came_later(const char *event, const char *name)
{
    for (size_t i = 0; event && i < sizeof later_fields / sizeof *later_fields; i++)
        if (!strcmp(later_fields[i].event, event) && !strcmp(later_fields[i].name, name)) return true;
    return false;
}

/* A row's or an event's fields; in an ARRAY what is missing is null in its place. */
typedef struct describing {
    base_buf *out, *required;
    const char *event; /* NULL: of a list */
    row_shape shape;
    bool is_first;
} describing;

static void describe_rows(base_buf *out, const list_type *type);

static void describe_field(void *user, field_kind kind, const char *name, field f)
{
    describing *d = user;
    if (!d->is_first) base_buf_putc(d->out, ',');
    d->is_first = false;
    if (d->shape == SHAPE_OBJECT) base_buf_printf(d->out, "\"%s\":", name);
    if (d->shape == SHAPE_ARRAY) base_buf_puts(d->out, "{\"anyOf\":[{\"type\":\"null\"},");
    if (kind == FIELD_LIST)
        describe_rows(d->out, f.type);
    else
        base_buf_puts(d->out, field_types[kind]);
    if (d->shape == SHAPE_ARRAY) base_buf_puts(d->out, "]}");
    const bool is_optional = kind == FIELD_STRING || kind == FIELD_RAW || kind == FIELD_LIST ||
                             kind == FIELD_NONZERO || came_later(d->event, name);
    if (!is_optional) base_buf_printf(d->required, ",\"%s\"", name);
}

static void describe_rows(base_buf *out, const list_type *type)
{
    static const char *const begins[] = {[SHAPE_OBJECT] = "{\"type\":\"object\",\"properties\":{",
        [SHAPE_ARRAY] = "{\"type\":\"array\",\"prefixItems\":[",
        [SHAPE_PLAIN] = ""},
                             *const ends[] = {
                                 [SHAPE_OBJECT] = "}}", [SHAPE_ARRAY] = "]}", [SHAPE_PLAIN] = ""};
    base_buf required = {0};
    /* The visitors ask a row for its fields' addresses and read nothing. */
    void *row = base_xcalloc(1, type->size);
    base_buf_printf(out, "{\"type\":\"array\",\"items\":%s", begins[type->shape]);
    type->visit(row, describe_field, &(describing){out, &required, NULL, type->shape, true});
    base_buf_printf(out, "%s}", ends[type->shape]);
    base_buf_free(&required);
    free(row);
}

void agent_event_schema(base_buf *out)
{
    base_buf_puts(out,
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"an event of kvist\","
        "\"description\":\"a line of --json and of kvist log export; more fields and more events may come\","
        "\"oneOf\":[");
    for (size_t i = 0; i < AGENT_N_EVENTS; i++) {
        base_buf required = {0};
        agent_event none = {.type = (agent_event_type)i};
        base_buf_printf(out, "%s{\"type\":\"object\",\"properties\":{\"event\":{\"const\":\"%s\"}",
            i ? "," : "", event_rows[i].name);
        event_rows[i].visit(
            &none, describe_field, &(describing){out, &required, event_rows[i].name, SHAPE_OBJECT, false});
        base_buf_printf(out, "},\"required\":[\"event\"%s]}", required.data ? required.data : "");
        base_buf_free(&required);
    }
    base_buf_puts(out, "]}");
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* No event has more lists. */
/* A text of two million tokens, with the bytes of each: what a changed log holds beyond that is not read. */
enum { MAX_LISTS = 4, MAX_VALUES = 1 << 22 };

struct agent_event_doc {
    base_json_doc *json;
    char *raw; /* J fields, each NUL-terminated, one behind the other */
    char *lists[MAX_LISTS];
    size_t n_lists;
    size_t bytes; /* of all that */
};

typedef struct reading {
    const base_json *value; /* OBJECT: its members are the fields; else the next field itself */
    row_shape shape;
    const char *source;
    char *raw; /* where the next J field goes */
    agent_event_doc *doc;
} reading;

static void read_rows(reading *r, const base_json *value, field f);

static void read_field(void *user, field_kind kind, const char *name, field f)
{
    reading *r = user;
    const base_json *value = r->shape == SHAPE_OBJECT ? base_json_get(r->value, name) : r->value;
    /* 1e999 is a number in JSON and none in a double. */
    const bool is_number = value && value->type == BASE_JSON_NUMBER && isfinite(value->number),
               is_object = r->shape == SHAPE_OBJECT;
    if (r->shape == SHAPE_ARRAY && value) r->value = value->next;
    switch (kind) {
    case FIELD_STRING: *f.text = value && value->type == BASE_JSON_STRING ? value->string : NULL; break;
    case FIELD_INTEGER:
    case FIELD_NONZERO:
        *f.integer = is_number && value->is_integer ? value->integer : is_object ? 0 : -1;
        break;
    case FIELD_NUMBER:
    case FIELD_SHARE: *f.number = is_number ? value->number : is_object ? 0 : (double)NAN; break;
    case FIELD_BOOLEAN: *f.boolean = base_json_bool(r->value, name, false); break;
    case FIELD_RAW:
        *f.text = NULL;
        if (value && value->type != BASE_JSON_NULL) {
            size_t n = value->to - value->from;
            memcpy(r->raw, r->source + value->from, n);
            r->raw[n] = 0;
            *f.text = r->raw;
            r->raw += n + 1;
        }
        break;
    case FIELD_LIST: read_rows(r, value, f); break;
    }
}

static void read_rows(reading *r, const base_json *value, field f)
{
    const list_type *t = f.type;
    set_rows(f, NULL);
    *f.n = 0;
    if (!value || value->type != BASE_JSON_ARRAY || r->doc->n_lists == MAX_LISTS) return;
    char *rows = base_xcalloc(value->n + 1, t->size);
    r->doc->bytes += (value->n + 1) * t->size;
    size_t n = 0;
    for (const base_json *v = value->first; v; v = v->next) {
        reading row = {.shape = t->shape, .value = t->shape == SHAPE_ARRAY ? v->first : v};
        if (t->shape != SHAPE_PLAIN &&
            v->type != (t->shape == SHAPE_ARRAY ? BASE_JSON_ARRAY : BASE_JSON_OBJECT))
            continue;
        t->visit(rows + n++ * t->size, read_field, &row);
    }
    set_rows(f, rows);
    *f.n = n;
    r->doc->lists[r->doc->n_lists++] = rows;
}

int agent_event_read(const char *json, size_t n, agent_event *ret, agent_event_doc **ret_doc, base_err *err)
{
    base_json_doc *doc = NULL;
    int rc = base_json_parse_most(json, n, MAX_VALUES, &doc, err);
    if (rc) return base_err_prefix(err, "event");
    const base_json *object = base_json_root(doc);
    const char *name = base_json_str(object, "event", NULL);
    int type = 0;
    while (name && type < AGENT_N_EVENTS && strcmp(event_rows[type].name, name)) type++;
    if (!name || type == AGENT_N_EVENTS) {
        rc = base_fail(err, BASE_E_FORMAT, "event: no known event is called \"%.40s\"", name ? name : "");
        base_json_free(doc);
        return rc;
    }
    /*
     * Values of one object do not overlap and each is followed by a comma or brace: n bytes hold them all
     * with their NULs.
     */
    char *raw = malloc(n + 1);
    if (!raw) {
        base_json_free(doc);
        return base_fail(err, BASE_E_NOMEM, "event: no memory for %zu bytes", n);
    }
    agent_event e = {.type = (agent_event_type)type};
    agent_event_doc *holder = base_xmalloc(sizeof *holder);
    *holder = (agent_event_doc){.json = doc, .raw = raw, .bytes = base_json_bytes(doc) + n + 1};
    reading r = {.value = object, .shape = SHAPE_OBJECT, .source = json, .raw = raw, .doc = holder};
    event_rows[type].visit(&e, read_field, &r);
    *ret = e;
    *ret_doc = holder;
    return 0;
}

size_t agent_event_doc_bytes(const agent_event_doc *d)
{
    return d->bytes;
}

void agent_event_doc_free(agent_event_doc *d)
{
    if (!d) return;
    base_json_free(d->json);
    free(d->raw);
    for (size_t i = 0; i < d->n_lists; i++) free(d->lists[i]);
    free(d);
}

/* --- copies --------------------------------------------------------------------------------------------- */

static void copy_field(void *user, field_kind kind, const char *name, field f)
{
    if (kind == FIELD_STRING || kind == FIELD_RAW) *f.text = base_xstrdup(*f.text);
    char *rows = kind == FIELD_LIST ? get_rows(f) : NULL;
    if (!rows) return;
    char *copy = base_xmalloc(*f.n * f.type->size + 1);
    memcpy(copy, rows, *f.n * f.type->size);
    for (size_t i = 0; i < *f.n; i++) f.type->visit(copy + i * f.type->size, copy_field, NULL);
    set_rows(f, copy);
}

static void free_field(void *user, field_kind kind, const char *name, field f)
{
    if (kind == FIELD_STRING || kind == FIELD_RAW) free((char *)(uintptr_t)*f.text);
    char *rows = kind == FIELD_LIST ? get_rows(f) : NULL;
    for (size_t i = 0; rows && i < *f.n; i++) f.type->visit(rows + i * f.type->size, free_field, NULL);
    free(rows);
}

agent_event *agent_event_copy(const agent_event *e)
{
    agent_event *copy = base_xmalloc(sizeof *copy);
    *copy = *e;
    event_rows[e->type].visit(copy, copy_field, NULL);
    if (e->blob) {
        void *blob = base_xmalloc(e->blob_n ? e->blob_n : 1);
        memcpy(blob, e->blob, e->blob_n);
        copy->blob = blob;
    }
    return copy;
}

void agent_event_free(agent_event *e)
{
    if (!e) return;
    event_rows[e->type].visit(e, free_field, NULL);
    free((void *)(uintptr_t)e->blob);
    free(e);
}

void agent_request_put(const agent_event *e, base_buf *out)
{
    base_buf_printf(out, "sent %lld", (long long)e->request.sent);
    const int64_t found = e->request.cached, expected = e->request.predicted;
    if (found > 0 && !expected)
        base_buf_printf(out, ", found %lld that it had before kvist sent any, computed %lld",
            (long long)found, (long long)e->request.computed);
    else if (found > expected)
        base_buf_printf(out, ", found %lld, %lld more than expected, computed %lld", (long long)found,
            (long long)(found - expected), (long long)e->request.computed);
    else if (found >= 0)
        base_buf_printf(out, ", found %lld of %lld expected, computed %lld", (long long)found,
            (long long)expected, (long long)e->request.computed);
    else
        base_buf_puts(out, ", what its cache held is not told");
    if (agent_request_tells_blocks(e))
        base_buf_printf(out, "; of all on the GPU %lld, host %lld, disk %lld, gone %lld, unknown %lld",
            (long long)e->request.gpu, (long long)e->request.host, (long long)e->request.disk,
            (long long)e->request.gone, (long long)e->request.unknown);
    if (e->request.why) base_buf_printf(out, "; %s", e->request.why);
}

bool agent_request_tells_blocks(const agent_event *e)
{
    return e->request.gpu || e->request.host || e->request.disk || e->request.gone || e->request.unknown;
}
