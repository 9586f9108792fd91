/* Values judged by a schema (contract: schema.h), node by node. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/schema_nodes.h"
#include "base/utf8.h"

const schema_type schema_types[SCHEMA_N_TYPES] = {
    {"null", BASE_SCHEMA_NULL},
    {"boolean", BASE_SCHEMA_BOOLEAN},
    {"integer", BASE_SCHEMA_INTEGER},
    {"number", BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER},
    {"string", BASE_SCHEMA_STRING},
    {"array", BASE_SCHEMA_ARRAY},
    {"object", BASE_SCHEMA_OBJECT},
};

/* Where in the value: a list from the inside out, on the stack. */
typedef struct step {
    const struct step *outer;
    const char *key; /* NULL: item `i` */
    size_t i;
} step;

static void put_path(const step *at, base_buf *out)
{
    if (!at) return;
    put_path(at->outer, out);
    if (!at->key) {
        base_buf_printf(out, "/%zu", at->i);
        return;
    }
    base_buf_putc(out, '/');
    const size_t n = strlen(at->key), shown = n > 40 ? base_utf8_whole(at->key, 40) : n;
    base_utf8_sanitise(out, at->key, shown, false);
}

static int wrong(const step *at, base_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int wrong(const step *at, base_err *err, const char *format, ...)
{
    base_buf path = {0}, what = {0};
    va_list args;
    put_path(at, &path);
    va_start(args, format);
    base_buf_vprintf(&what, format, args);
    va_end(args);
    const int rc = base_fail(
        err, BASE_E_FORMAT, "%.200s %.200s", path.len ? path.data : "the value", what.data ? what.data : "");
    base_buf_free(&path);
    base_buf_free(&what);
    return rc;
}

static bool is_equal(const base_json *a, const base_json *b)
{
    if (a->type != b->type) return false;
    switch (a->type) {
    case BASE_JSON_NULL: return true;
    case BASE_JSON_BOOL: return a->boolean == b->boolean;
    case BASE_JSON_NUMBER:
        return a->is_integer && b->is_integer ? a->integer == b->integer : a->number == b->number;
    case BASE_JSON_STRING:
        return a->string_len == b->string_len && !memcmp(a->string, b->string, a->string_len);
    case BASE_JSON_ARRAY: {
        const base_json *x = a->first, *y = b->first;
        for (; x && y; x = x->next, y = y->next)
            if (!is_equal(x, y)) return false;
        return !x && !y;
    }
    case BASE_JSON_OBJECT:
        if (a->n != b->n) return false;
        for (const base_json *x = a->first; x; x = x->next) {
            const base_json *y = base_json_get(b, x->key);
            if (!y || !is_equal(x, y)) return false;
        }
        return true;
    }
    return false;
}

static unsigned types_of(const base_json *v)
{
    static const unsigned types[] = {
        [BASE_JSON_NULL] = BASE_SCHEMA_NULL,
        [BASE_JSON_BOOL] = BASE_SCHEMA_BOOLEAN,
        [BASE_JSON_NUMBER] = BASE_SCHEMA_NUMBER,
        [BASE_JSON_STRING] = BASE_SCHEMA_STRING,
        [BASE_JSON_ARRAY] = BASE_SCHEMA_ARRAY,
        [BASE_JSON_OBJECT] = BASE_SCHEMA_OBJECT,
    };
    const bool is_whole = v->type == BASE_JSON_NUMBER &&
                          (v->is_integer || (isfinite(v->number) && floor(v->number) == v->number));
    return types[v->type] | (is_whole ? BASE_SCHEMA_INTEGER : 0);
}

static void put_types(unsigned types, base_buf *out)
{
    for (size_t i = 0; i < SCHEMA_N_TYPES; i++)
        if (types & schema_types[i].bit)
            base_buf_printf(out, "%s%s", out->len ? " or " : "", schema_types[i].word);
}

static int64_t code_points(const base_json *v)
{
    int64_t n = 0;
    for (size_t i = 0; i < v->string_len; i++) n += ((unsigned char)v->string[i] & 0xc0) != 0x80;
    return n;
}

/* Alternatives inside of alternatives can take time without bound: so many nodes are looked at. */
enum { MOST_LOOKS = 200000 };
typedef struct looking {
    const base_schema *schema;
    uint32_t left;
} looking;

static int check(looking *l, uint32_t at, const base_json *v, const step *path, base_err *err);

static int check_number(const base_schema_node *n, const base_json *v, const step *path, base_err *err)
{
    if (v->number < n->low || (n->above_low && v->number <= n->low))
        return wrong(path, err, "is %.17g, which is %s %.17g", v->number,
            n->above_low ? "not above" : "below", n->low);
    if (v->number > n->high || (n->below_high && v->number >= n->high))
        return wrong(path, err, "is %.17g, which is %s %.17g", v->number,
            n->below_high ? "not below" : "above", n->high);
    return BASE_OK;
}

static int check_string(const base_schema_node *n, const base_json *v, const step *path, base_err *err)
{
    const int64_t length = code_points(v);
    if (length < n->min_length)
        return wrong(
            path, err, "has %lld characters, fewer than %lld", (long long)length, (long long)n->min_length);
    if (n->max_length >= 0 && length > n->max_length)
        return wrong(
            path, err, "has %lld characters, more than %lld", (long long)length, (long long)n->max_length);
    return BASE_OK;
}

static int check_array(
    looking *l, const base_schema_node *n, const base_json *v, const step *path, base_err *err)
{
    if ((int64_t)v->n < n->min_items)
        return wrong(path, err, "has %zu items, fewer than %lld", v->n, (long long)n->min_items);
    if (n->max_items >= 0 && (int64_t)v->n > n->max_items)
        return wrong(path, err, "has %zu items, more than %lld", v->n, (long long)n->max_items);
    size_t i = 0;
    for (const base_json *item = v->first; item; item = item->next, i++) {
        const step here = {path, NULL, i};
        const uint32_t node = i < n->n_prefix ? n->prefix[i] : n->items;
        if (node == BASE_SCHEMA_NONE) return wrong(&here, err, "is an item too many");
        const int rc = check(l, node, item, &here, err);
        if (rc) return rc;
    }
    return BASE_OK;
}

const base_schema_property *schema_property(const base_schema_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->n_properties; i++)
        if (!strcmp(n->properties[i].name, name)) return &n->properties[i];
    return NULL;
}

/* Of equal keys each one is looked at: which of them a reader takes is its own affair. */
static int check_object(
    looking *l, const base_schema_node *n, const base_json *v, const step *path, base_err *err)
{
    for (uint32_t i = 0; i < n->n_properties; i++)
        if (n->properties[i].required && !base_json_get(v, n->properties[i].name))
            return wrong(path, err, "has no \"%.80s\"", n->properties[i].name);
    for (const base_json *m = v->first; m; m = m->next) {
        const step here = {path, m->key, 0};
        const base_schema_property *p = schema_property(n, m->key);
        if (!p && n->is_open) continue;
        const uint32_t node = p ? p->node : n->additional;
        if (node == BASE_SCHEMA_NONE) return wrong(&here, err, "is a member that is not allowed");
        const int rc = check(l, node, m, &here, err);
        if (rc) return rc;
    }
    return BASE_OK;
}

static int check_alternatives(
    looking *l, const base_schema_node *n, const base_json *v, const step *path, base_err *err)
{
    base_err first = {0};
    uint32_t held = 0;
    for (uint32_t i = 0; i < n->n_alternatives; i++) {
        base_err why = {0};
        if (!check(l, n->alternatives[i], v, path, &why)) {
            held++;
            if (!n->exactly_one) return BASE_OK;
        } else if (why.code == BASE_E_LIMIT) {
            if (err) *err = why;
            return why.code;
        } else if (!first.code) {
            first = why;
        }
    }
    if (held == 1) return BASE_OK;
    if (held) return wrong(path, err, "fits %u of the alternatives of %s, and one has to", held, n->place);
    if (n->n_alternatives > 1)
        return wrong(path, err, "fits none of the alternatives of %s: %.200s", n->place, first.msg);
    if (err) *err = first;
    return BASE_E_FORMAT;
}

static int check(looking *l, uint32_t at, const base_json *v, const step *path, base_err *err)
{
    if (at == BASE_SCHEMA_NONE) return wrong(path, err, "may not stand there");
    if (!l->left)
        return base_fail(err, BASE_E_LIMIT, "the schema has too many alternatives to judge this by them");
    l->left--;
    const base_schema_node *n = &l->schema->nodes[at];
    if (n->n_alternatives) return check_alternatives(l, n, v, path, err);
    if (n->n_values) {
        for (uint32_t i = 0; i < n->n_values; i++)
            if (is_equal(n->values[i], v)) return BASE_OK;
        return wrong(path, err, "is none of the %u values of %s", n->n_values, n->place);
    }
    if (!(types_of(v) & n->types)) {
        base_buf wanted = {0}, is = {0};
        put_types(n->types, &wanted);
        put_types(types_of(v) & ~(unsigned)BASE_SCHEMA_INTEGER, &is);
        const int rc = wrong(path, err, "is %s and not %s", is.data, wanted.len ? wanted.data : "anything");
        base_buf_free(&wanted);
        base_buf_free(&is);
        return rc;
    }
    switch (v->type) {
    case BASE_JSON_NUMBER: return check_number(n, v, path, err);
    case BASE_JSON_STRING: return check_string(n, v, path, err);
    case BASE_JSON_ARRAY: return check_array(l, n, v, path, err);
    case BASE_JSON_OBJECT: return check_object(l, n, v, path, err);
    default: return BASE_OK;
    }
}

int schema_check_at(const base_schema *s, uint32_t at, const base_json *value, base_err *err)
{
    looking l = {s, MOST_LOOKS};
    return check(&l, at, value, NULL, err);
}

int base_schema_check(const base_schema *s, const char *text, size_t n, base_err *err)
{
    base_json_doc *doc = NULL;
    int rc = base_json_parse(text, n, &doc, err);
    if (!rc) rc = schema_check_at(s, 0, base_json_root(doc), err);
    base_json_free(doc);
    return rc;
}
