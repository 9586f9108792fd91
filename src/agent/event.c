/*
 * Events as JSON and as heap copies. The one idea: every event's fields are visited by a function expanded from the table in
 * event.h, so writer, reader, copy and free are four small visitors and a new field needs one word in that table.
 *
 * Pure functions; any thread.
 */
#include "agent/event.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef enum field_kind { FIELD_STRING, FIELD_INTEGER, FIELD_NUMBER, FIELD_BOOLEAN, FIELD_RAW } field_kind;

typedef union field {
    const char **text; /* FIELD_STRING, FIELD_RAW */
    int64_t *integer;
    double *number;
    bool *boolean;
} field;

typedef void field_fn(void *user, field_kind kind, const char *name, field f);

/* clang-format off */
#define VISIT_S(field_name) fn(user, FIELD_STRING, #field_name, (field){.text = &f->field_name});
#define VISIT_I(field_name) fn(user, FIELD_INTEGER, #field_name, (field){.integer = &f->field_name});
#define VISIT_D(field_name) fn(user, FIELD_NUMBER, #field_name, (field){.number = &f->field_name});
#define VISIT_B(field_name) fn(user, FIELD_BOOLEAN, #field_name, (field){.boolean = &f->field_name});
#define VISIT_J(field_name) fn(user, FIELD_RAW, #field_name, (field){.text = &f->field_name});
#define DEFINE_VISIT(event_name, fields)                                \
    static void visit_##event_name(agent_event *e, field_fn *fn, void *user) \
    {                                                                   \
        __typeof__(e->event_name) *f = &e->event_name;                  \
        fields                                                          \
    }
AGENT_EVENTS(DEFINE_VISIT, VISIT_S, VISIT_I, VISIT_D, VISIT_B, VISIT_J)

#define NOTHING(name)
#define EVENT_ROW(event_name, fields) {#event_name, visit_##event_name},
static const struct {
    const char *name;
    void (*visit)(agent_event *e, field_fn *fn, void *user);
} event_rows[AGENT_N_EVENTS] = {AGENT_EVENTS(EVENT_ROW, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)};
/* clang-format on */

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

/* --- writing ------------------------------------------------------------------------------------------------------------ */

/* One line is one event: a raw field must not bring a newline into it (outside strings JSON allows any white space). */
static void put_raw(base_buf *out, const char *json)
{
    for (; *json; json++) base_buf_putc(out, *json == '\n' || *json == '\r' ? ' ' : *json);
}

static void write_field(void *user, field_kind kind, const char *name, field f)
{
    base_buf *out = user;
    if ((kind == FIELD_STRING || kind == FIELD_RAW) && !*f.text) return;
    base_buf_puts(out, ",\"");
    base_buf_puts(out, name);
    base_buf_puts(out, "\":");
    switch (kind) {
    case FIELD_STRING: base_json_put_str(out, *f.text, strlen(*f.text)); break;
    case FIELD_INTEGER: base_buf_printf(out, "%" PRId64, *f.integer); break;
    case FIELD_NUMBER: base_json_put_num(out, *f.number); break;
    case FIELD_BOOLEAN: base_buf_puts(out, *f.boolean ? "true" : "false"); break;
    case FIELD_RAW: put_raw(out, *f.text); break;
    }
}

void agent_event_write(const agent_event *e, base_buf *out)
{
    agent_event fields = *e; /* visitors take fields they could change; this one only reads */
    base_buf_puts(out, "{\"event\":\"");
    base_buf_puts(out, agent_event_name(e->type));
    base_buf_putc(out, '"');
    event_rows[e->type].visit(&fields, write_field, out);
    base_buf_putc(out, '}');
}

/* --- reading ------------------------------------------------------------------------------------------------------------ */

struct agent_event_doc {
    base_json_doc *json;
    char *raw; /* J fields, each NUL-terminated, one behind the other */
};

typedef struct reading {
    const base_json *object;
    const char *source;
    char *raw; /* where the next J field goes */
} reading;

static void read_field(void *user, field_kind kind, const char *name, field f)
{
    reading *r = user;
    const base_json *value = base_json_get(r->object, name);
    switch (kind) {
    case FIELD_STRING: *f.text = value && value->type == BASE_JSON_STRING ? value->string : NULL; break;
    case FIELD_INTEGER: *f.integer = base_json_int(r->object, name, 0); break;
    case FIELD_NUMBER: *f.number = base_json_num(r->object, name, 0); break;
    case FIELD_BOOLEAN: *f.boolean = base_json_bool(r->object, name, false); break;
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
    }
}

int agent_event_read(const char *json, size_t n, agent_event *ret, agent_event_doc **ret_doc, base_err *err)
{
    base_json_doc *doc = NULL;
    int rc = base_json_parse(json, n, &doc, err);
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
    /* Values of one object do not overlap and each is followed by a comma or brace: n bytes hold them all with their NULs. */
    char *raw = malloc(n + 1);
    if (!raw) {
        base_json_free(doc);
        return base_fail(err, BASE_E_NOMEM, "event: no memory for %zu bytes", n);
    }
    agent_event e = {.type = (agent_event_type)type};
    reading r = {object, json, raw};
    event_rows[type].visit(&e, read_field, &r);
    agent_event_doc *holder = base_xmalloc(sizeof *holder);
    *holder = (agent_event_doc){doc, raw};
    *ret = e;
    *ret_doc = holder;
    return 0;
}

void agent_event_doc_free(agent_event_doc *d)
{
    if (!d) return;
    base_json_free(d->json);
    free(d->raw);
    free(d);
}

/* --- copies ------------------------------------------------------------------------------------------------------------- */

static void copy_field(void *user, field_kind kind, const char *name, field f)
{
    if (kind == FIELD_STRING || kind == FIELD_RAW) *f.text = base_xstrdup(*f.text);
}

static void free_field(void *user, field_kind kind, const char *name, field f)
{
    if (kind == FIELD_STRING || kind == FIELD_RAW) free((char *)(uintptr_t)*f.text);
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
