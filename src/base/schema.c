/*
 * A JSON Schema's text to nodes (contract: schema.h). Each object of the file becomes at most one node, found again
 * by its place in memory, so that a $ref to what is being read ends.
 */
#include "base/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/schema_nodes.h"
#include "base/utf8.h"

typedef struct reader {
    base_schema *s;
    /* [s->n] what each node was made of; NULL: of nothing that stands in the file */
    const base_json **sources;
    size_t cap_sources;
    uint32_t any; /* the node of {}; NONE: not asked for yet */
    uint32_t depth;
    base_err *err;
} reader;

static base_schema_node *node(reader *r, uint32_t at)
{
    return &r->s->nodes[at];
}

static uint32_t add_node(reader *r, const base_json *source, const char *place)
{
    base_schema *s = r->s;
    base_grow(&s->nodes, &s->cap, s->n + 1, sizeof *s->nodes);
    base_grow(&s->places, &s->cap_places, s->n + 1, sizeof *s->places);
    base_grow(&r->sources, &r->cap_sources, s->n + 1, sizeof *r->sources);
    s->places[s->n] = base_xstrdup(place);
    r->sources[s->n] = source;
    s->nodes[s->n] = (base_schema_node){.place = s->places[s->n],
        .max_length = -1,
        .max_items = -1,
        .low = -(double)INFINITY,
        .high = (double)INFINITY,
        .items = BASE_SCHEMA_NONE,
        .additional = BASE_SCHEMA_NONE};
    return s->n++;
}

static uint32_t any_node(reader *r)
{
    if (r->any != BASE_SCHEMA_NONE) return r->any;
    r->any = add_node(r, NULL, "{}");
    node(r, r->any)->types = BASE_SCHEMA_ANY;
    node(r, r->any)->items = node(r, r->any)->additional = r->any;
    return r->any;
}

/* --- one keyword ---------------------------------------------------------------------------------------- */

static int read_node(reader *r, const base_json *j, const char *place, uint32_t *ret);
typedef int read_fn(reader *r, uint32_t at, const base_json *value, const char *place);

static int wrong(reader *r, const char *keyword, const char *place, const char *has_to)
{
    return base_fail(
        r->err, BASE_E_FORMAT, "the schema's \"%s\" at %.120s has to be %s", keyword, place, has_to);
}

/* place + "/" + word, as JSON pointers write it. The caller frees. */
static char *below(const char *place, const char *word)
{
    base_buf out = {0};
    base_buf_printf(&out, "%s/", place);
    for (; *word; word++) {
        if (*word == '~' || *word == '/')
            base_buf_puts(&out, *word == '~' ? "~0" : "~1");
        else
            base_buf_putc(&out, *word);
    }
    return base_buf_take(&out);
}

static int read_below(reader *r, const base_json *j, const char *place, const char *word, uint32_t *ret)
{
    char *inner = below(place, word);
    const int rc = read_node(r, j, inner, ret);
    free(inner);
    return rc;
}

static int read_list(reader *r, const base_json *value, const char *keyword, const char *place,
    uint32_t **ret, uint32_t *ret_n)
{
    if (value->type != BASE_JSON_ARRAY || !value->n)
        return wrong(r, keyword, place, "a list of schemas, not an empty one");
    uint32_t *all = base_xcalloc(value->n, sizeof *all), n = 0;
    int rc = BASE_OK;
    char *inner = below(place, keyword);
    for (const base_json *j = value->first; j && !rc; j = j->next) {
        char number[24];
        snprintf(number, sizeof number, "%u", n);
        rc = read_below(r, j, inner, number, &all[n]);
        n++;
    }
    free(inner);
    if (rc) {
        free(all);
        return rc;
    }
    *ret = all;
    *ret_n = n;
    return BASE_OK;
}

static int take_type(reader *r, const base_json *word, const char *place, unsigned *types)
{
    for (size_t i = 0; word->type == BASE_JSON_STRING && i < SCHEMA_N_TYPES; i++)
        if (!strcmp(word->string, schema_types[i].word)) {
            *types |= schema_types[i].bit;
            return BASE_OK;
        }
    return wrong(
        r, "type", place, "null, boolean, integer, number, string, array or object, or a list of these");
}

static int read_type(reader *r, uint32_t at, const base_json *value, const char *place)
{
    unsigned types = 0;
    int rc = BASE_OK;
    if (value->type != BASE_JSON_ARRAY) rc = take_type(r, value, place, &types);
    for (const base_json *j = value->type == BASE_JSON_ARRAY ? value->first : NULL; j && !rc; j = j->next)
        rc = take_type(r, j, place, &types);
    if (!rc && !types) rc = wrong(r, "type", place, "one type at least");
    node(r, at)->types = types;
    return rc;
}

static int read_values(
    reader *r, uint32_t at, const base_json *first, size_t n, const char *keyword, const char *place)
{
    if (node(r, at)->n_values)
        return base_fail(
            r->err, BASE_E_UNSUPPORTED, "the schema has enum and const beside each other at %.200s", place);
    if (!n) return wrong(r, keyword, place, "a list of values, not an empty one");
    const base_json **values = base_xcalloc(n, sizeof *values);
    for (size_t i = 0; i < n; i++, first = first->next) values[i] = first;
    node(r, at)->values = values;
    node(r, at)->n_values = (uint32_t)n;
    return BASE_OK;
}

static int read_enum(reader *r, uint32_t at, const base_json *value, const char *place)
{
    if (value->type != BASE_JSON_ARRAY) return wrong(r, "enum", place, "a list of values");
    return read_values(r, at, value->first, value->n, "enum", place);
}

static int read_const(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return read_values(r, at, value, 1, "const", place);
}

static int read_count(reader *r, const base_json *value, const char *keyword, const char *place, int64_t *to)
{
    if (value->type != BASE_JSON_NUMBER || !value->is_integer || value->integer < 0)
        return wrong(r, keyword, place, "a whole number, 0 or more");
    *to = value->integer;
    return BASE_OK;
}

static int read_min_length(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return read_count(r, value, "minLength", place, &node(r, at)->min_length);
}

static int read_max_length(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return read_count(r, value, "maxLength", place, &node(r, at)->max_length);
}

static int read_min_items(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return read_count(r, value, "minItems", place, &node(r, at)->min_items);
}

static int read_max_items(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return read_count(r, value, "maxItems", place, &node(r, at)->max_items);
}

/* The tighter of two bounds counts. */
static int read_bound(reader *r, uint32_t at, const base_json *value, const char *keyword, const char *place,
    bool is_low, bool open)
{
    if (value->type != BASE_JSON_NUMBER) return wrong(r, keyword, place, "a number");
    base_schema_node *n = node(r, at);
    double *bound = is_low ? &n->low : &n->high;
    bool *is_open = is_low ? &n->above_low : &n->below_high;
    const bool is_tighter = is_low ? value->number > *bound : value->number < *bound;
    if (is_tighter || (value->number == *bound && open)) {
        *bound = value->number;
        *is_open = open;
    }
    return BASE_OK;
}

static int read_minimum(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return read_bound(r, at, value, "minimum", place, true, false);
}

static int read_maximum(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return read_bound(r, at, value, "maximum", place, false, false);
}

static int read_above(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return read_bound(r, at, value, "exclusiveMinimum", place, true, true);
}

static int read_below_bound(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return read_bound(r, at, value, "exclusiveMaximum", place, false, true);
}

static int read_items(reader *r, uint32_t at, const base_json *value, const char *place)
{
    if (value->type == BASE_JSON_ARRAY)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "the schema's \"items\" at %.200s is a list, an older draft's form: write prefixItems", place);
    uint32_t items;
    const int rc = read_below(r, value, place, "items", &items);
    if (!rc) node(r, at)->items = items;
    return rc;
}

static int read_prefix(reader *r, uint32_t at, const base_json *value, const char *place)
{
    uint32_t *all, n;
    const int rc = read_list(r, value, "prefixItems", place, &all, &n);
    if (rc) return rc;
    node(r, at)->prefix = all;
    node(r, at)->n_prefix = n;
    return BASE_OK;
}

static int read_alternatives(
    reader *r, uint32_t at, const base_json *value, const char *keyword, const char *place)
{
    uint32_t *all, n;
    const int rc = read_list(r, value, keyword, place, &all, &n);
    if (rc) return rc;
    node(r, at)->alternatives = all;
    node(r, at)->n_alternatives = n;
    return BASE_OK;
}

static int read_any_of(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return read_alternatives(r, at, value, "anyOf", place);
}

static int read_one_of(reader *r, uint32_t at, const base_json *value, const char *place)
{
    node(r, at)->exactly_one = true;
    return read_alternatives(r, at, value, "oneOf", place);
}

static int read_all_of(reader *r, uint32_t at, const base_json *value, const char *place)
{
    if (value->type == BASE_JSON_ARRAY && value->n > 1)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "the schema's \"allOf\" at %.200s has more than one "
            "member: write what they say together in one schema",
            place);
    return read_alternatives(r, at, value, "allOf", place);
}

/* The value that a JSON pointer names; NULL: none. */
static const base_json *follow(const base_json *root, const char *pointer)
{
    const base_json *at = root;
    while (at && *pointer == '/') {
        base_buf word = {0};
        base_buf_puts(&word, "");
        for (pointer++; *pointer && *pointer != '/'; pointer++) {
            if (*pointer == '~' && (pointer[1] == '0' || pointer[1] == '1'))
                base_buf_putc(&word, *++pointer == '0' ? '~' : '/');
            else
                base_buf_putc(&word, *pointer);
        }
        char *end;
        if (at->type == BASE_JSON_ARRAY) {
            const unsigned long i = strtoul(word.data, &end, 10);
            at = word.len && !*end ? base_json_at(at, i) : NULL;
        } else {
            at = base_json_get(at, word.data);
        }
        base_buf_free(&word);
    }
    return *pointer ? NULL : at;
}

static int read_ref(reader *r, uint32_t at, const base_json *value, const char *place)
{
    if (value->type != BASE_JSON_STRING) return wrong(r, "$ref", place, "a text like #/$defs/NAME");
    if (value->string[0] != '#')
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "the schema's \"$ref\" at %.200s leads out of the file (%.60s): only #/... is followed", place,
            value->string);
    const base_json *target = follow(base_json_root(r->s->doc), value->string + 1);
    if (!target)
        return base_fail(r->err, BASE_E_FORMAT,
            "the schema's \"$ref\" at %.200s names %.80s, and nothing stands there", place, value->string);
    uint32_t *only = base_xcalloc(1, sizeof *only);
    const int rc = read_node(r, target, value->string, only);
    if (rc) {
        free(only);
        return rc;
    }
    node(r, at)->alternatives = only;
    node(r, at)->n_alternatives = 1;
    return BASE_OK;
}

/* --- objects -------------------------------------------------------------------------------------------- */

static void add_property(reader *r, uint32_t at, const char *name, uint32_t of)
{
    base_schema_node *n = node(r, at);
    n->properties = base_xrealloc(n->properties, (n->n_properties + 1) * sizeof *n->properties);
    n->properties[n->n_properties++] = (base_schema_property){name, of, false};
}

static int read_properties(reader *r, uint32_t at, const base_json *value, const char *place)
{
    if (value->type != BASE_JSON_OBJECT) return wrong(r, "properties", place, "an object");
    char *inner = below(place, "properties");
    int rc = BASE_OK;
    for (const base_json *p = value->first; p && !rc; p = p->next) {
        uint32_t of;
        if (schema_property(node(r, at), p->key)) {
            rc = base_fail(r->err, BASE_E_FORMAT, "the schema has \"%.80s\" twice at %.200s", p->key, inner);
            break;
        }
        rc = read_below(r, p, inner, p->key, &of);
        if (!rc) add_property(r, at, p->key, of);
    }
    free(inner);
    return rc;
}

static int read_additional(reader *r, uint32_t at, const base_json *value, const char *place)
{
    uint32_t of;
    const int rc = read_below(r, value, place, "additionalProperties", &of);
    if (!rc) node(r, at)->additional = of;
    return rc;
}

/* Behind properties and additionalProperties, whatever the order in the file. */
static int finish_object(reader *r, uint32_t at, const base_json *j, const char *place)
{
    const base_json *required = base_json_get(j, "required");
    if (!base_json_get(j, "additionalProperties")) {
        if (node(r, at)->n_properties)
            node(r, at)->is_open = true;
        else
            node(r, at)->additional = any_node(r);
    }
    if (required && required->type != BASE_JSON_ARRAY) return wrong(r, "required", place, "a list of names");
    for (const base_json *name = required ? required->first : NULL; name; name = name->next) {
        if (name->type != BASE_JSON_STRING) return wrong(r, "required", place, "a list of names");
        const base_schema_property *known = schema_property(node(r, at), name->string);
        uint32_t i = known ? (uint32_t)(known - node(r, at)->properties) : node(r, at)->n_properties;
        if (!known) {
            const uint32_t of = node(r, at)->is_open ? any_node(r) : node(r, at)->additional;
            if (of == BASE_SCHEMA_NONE)
                return base_fail(r->err, BASE_E_FORMAT,
                    "the schema requires \"%.80s\" at %.200s, and no member of that name is allowed there",
                    name->string, place);
            add_property(r, at, name->string, of);
        }
        node(r, at)->properties[i].required = true;
    }
    return BASE_OK;
}

static int read_nothing(reader *r, uint32_t at, const base_json *value, const char *place)
{
    return BASE_OK;
}

static int read_unique(reader *r, uint32_t at, const base_json *value, const char *place)
{
    if (value->type == BASE_JSON_BOOL && !value->boolean) return BASE_OK;
    return base_fail(r->err, BASE_E_UNSUPPORTED,
        "the schema's keyword \"uniqueItems\" at %.200s is not "
        "held by kvist: leave it out and drop what is doubled",
        place);
}

/* --- the table of keywords ------------------------------------------------------------------------------ */

/* clang-format off */
static const struct keyword {
    const char *name;
    read_fn *read;     /* NULL: it is refused */
    unsigned types;    /* what it speaks of, where no type stands beside it */
    bool is_alone;     /* nothing but descriptions may stand beside it */
    const char *instead; /* of one that is refused */
} keywords[] = {
    {"type", read_type},
    {"enum", read_enum},
    {"const", read_const},
    {"minLength", read_min_length, BASE_SCHEMA_STRING},
    {"maxLength", read_max_length, BASE_SCHEMA_STRING},
    {"minimum", read_minimum, BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER},
    {"maximum", read_maximum, BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER},
    {"exclusiveMinimum", read_above, BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER},
    {"exclusiveMaximum", read_below_bound, BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER},
    {"items", read_items, BASE_SCHEMA_ARRAY},
    {"prefixItems", read_prefix, BASE_SCHEMA_ARRAY},
    {"minItems", read_min_items, BASE_SCHEMA_ARRAY},
    {"maxItems", read_max_items, BASE_SCHEMA_ARRAY},
    {"uniqueItems", read_unique, BASE_SCHEMA_ARRAY},
    {"properties", read_properties, BASE_SCHEMA_OBJECT},
    {"additionalProperties", read_additional, BASE_SCHEMA_OBJECT},
    {"required", read_nothing, BASE_SCHEMA_OBJECT}, /* finish_object */
    {"anyOf", read_any_of, 0, true},
    {"oneOf", read_one_of, 0, true},
    {"allOf", read_all_of, 0, true},
    {"$ref", read_ref, 0, true},
    {"pattern", NULL, 0, false, "enum holds a text to a list, minLength and maxLength to a length"},
    {"format", NULL, 0, false, "say in the description how the text is to look"},
    {"multipleOf", NULL, 0, false, "type integer holds a number to whole ones"},
    {"not", NULL, 0, false, "say what is allowed"},
    {"if", NULL, 0, false, "anyOf has alternatives"},
    {"then", NULL, 0, false, "anyOf has alternatives"},
    {"else", NULL, 0, false, "anyOf has alternatives"},
    {"contains", NULL, 0, false, "items holds every item"},
    {"patternProperties", NULL, 0, false, "additionalProperties takes any name"},
    {"propertyNames", NULL, 0, false, "additionalProperties takes any name"},
    {"minProperties", NULL, 0, false, "required names what has to be there"},
    {"maxProperties", NULL, 0, false, "properties and additionalProperties: false say what may be there"},
    {"dependentRequired", NULL, 0, false, "anyOf has alternatives"},
    {"dependentSchemas", NULL, 0, false, "anyOf has alternatives"},
    {"unevaluatedProperties", NULL, 0, false, "additionalProperties: false allows no others"},
    {"unevaluatedItems", NULL, 0, false, "items: false allows no others"},
    {"nullable", NULL, 0, false, "write the type as a list with \"null\""},
    {"$anchor", NULL, 0, false, "$ref takes a path: #/$defs/NAME"},
    {"$dynamicRef", NULL, 0, false, "$ref takes a path: #/$defs/NAME"},
    {"$dynamicAnchor", NULL, 0, false, "$ref takes a path: #/$defs/NAME"},
};
static const char *const descriptions[] = {"title", "description", "default", "examples", "$comment", "deprecated",
    "readOnly", "writeOnly", "$schema", "$id", "$defs", "definitions"};
/* clang-format on */

static bool is_description(const char *name)
{
    for (size_t i = 0; i < sizeof descriptions / sizeof *descriptions; i++)
        if (!strcmp(name, descriptions[i])) return true;
    return !strncmp(name, "x-", 2);
}

static int read_keyword(reader *r, uint32_t at, const base_json *value, const char *place,
    unsigned *speaks_of, const char **alone, uint32_t *n)
{
    const struct keyword *k = keywords, *end = keywords + sizeof keywords / sizeof *keywords;
    if (is_description(value->key)) return BASE_OK;
    while (k < end && strcmp(k->name, value->key) != 0) k++;
    if (k == end)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "the schema's keyword \"%.60s\" at %.200s is not known: what only describes begins with \"x-\"",
            value->key, place);
    if (!k->read)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "the schema's keyword \"%s\" at %.200s is not held by kvist: %s", k->name, place, k->instead);
    if (k->is_alone) *alone = k->name;
    *speaks_of |= k->types;
    ++*n;
    return k->read(r, at, value, place);
}

static int read_members(reader *r, uint32_t at, const base_json *j, const char *place)
{
    unsigned speaks_of = 0;
    const char *alone = NULL;
    uint32_t n = 0;
    for (const base_json *m = j->first; m; m = m->next) {
        const int rc = read_keyword(r, at, m, place, &speaks_of, &alone, &n);
        if (rc) return rc;
    }
    if (alone && n > 1)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "the schema has other keywords beside \"%s\" at %.200s: put them into each alternative", alone,
            place);
    if (!base_json_get(j, "type")) node(r, at)->types = speaks_of ? speaks_of : BASE_SCHEMA_ANY;
    if (!base_json_get(j, "items")) {
        const uint32_t any = any_node(r);
        node(r, at)->items = any;
    }
    const base_schema_node *it = node(r, at);
    if ((it->max_length >= 0 && it->max_length < it->min_length) ||
        (it->max_items >= 0 && it->max_items < it->min_items))
        return base_fail(r->err, BASE_E_FORMAT,
            "nothing fits the schema at %.200s: its minimum is above its maximum", place);
    return finish_object(r, at, j, place);
}

static int read_node(reader *r, const base_json *j, const char *place, uint32_t *ret)
{
    for (uint32_t i = 0; i < r->s->n; i++)
        if (r->sources[i] == j) {
            *ret = i;
            return BASE_OK;
        }
    if (r->s->n >= BASE_SCHEMA_MOST_NODES || r->depth >= SCHEMA_MOST_DEPTH)
        return base_fail(r->err, BASE_E_LIMIT, "the schema is too large at %.200s: %s", place,
            r->depth >= SCHEMA_MOST_DEPTH ? "it is nested more than 100 levels deep"
                                          : "it has more than 4,096 parts");
    if (j->type == BASE_JSON_BOOL && !j->boolean) {
        *ret = BASE_SCHEMA_NONE;
        return BASE_OK;
    }
    if (j->type != BASE_JSON_OBJECT && j->type != BASE_JSON_BOOL)
        return base_fail(
            r->err, BASE_E_FORMAT, "the schema at %.200s has to be an object, true or false", place);
    *ret = add_node(r, j, place);
    if (j->type == BASE_JSON_BOOL) {
        const uint32_t any = any_node(r);
        base_schema_node *n = node(r, *ret);
        n->types = BASE_SCHEMA_ANY;
        n->items = n->additional = any;
        return BASE_OK;
    }
    r->depth++;
    const int rc = read_members(r, *ret, j, place);
    r->depth--;
    return rc;
}

int base_schema_parse(const char *text, size_t n, base_schema **ret, base_err *err)
{
    if (n > BASE_SCHEMA_MOST_BYTES)
        return base_fail(err, BASE_E_LIMIT, "the schema has more than %d KiB", BASE_SCHEMA_MOST_BYTES >> 10);
    if (!base_utf8_valid(text, n)) return base_fail(err, BASE_E_FORMAT, "the schema is not UTF-8");
    if (memmem(text, n, "\\u0000", 6))
        return base_fail(err, BASE_E_UNSUPPORTED, "the schema has a zero character (\\u0000) in a text");
    base_schema *s = base_xcalloc(1, sizeof *s);
    reader r = {.s = s, .any = BASE_SCHEMA_NONE, .err = err};
    uint32_t root = 0;
    int rc = base_json_parse(text, n, &s->doc, err);
    if (!rc) rc = read_node(&r, base_json_root(s->doc), "#", &root);
    if (!rc && root == BASE_SCHEMA_NONE)
        rc = base_fail(err, BASE_E_FORMAT, "nothing fits the schema: it is false");
    if (!rc) rc = schema_check_whole(s, err);
    free(r.sources);
    if (rc) {
        base_schema_free(s);
        return rc;
    }
    *ret = s;
    return BASE_OK;
}

void base_schema_free(base_schema *s)
{
    if (!s) return;
    for (uint32_t i = 0; i < s->n; i++) {
        free(s->nodes[i].alternatives);
        free(s->nodes[i].values);
        free(s->nodes[i].prefix);
        free(s->nodes[i].properties);
        free(s->places[i]);
    }
    free(s->nodes);
    free(s->places);
    base_json_free(s->doc);
    free(s);
}

const base_schema_node *base_schema_at(const base_schema *s, uint32_t at)
{
    return &s->nodes[at];
}

uint32_t base_schema_size(const base_schema *s)
{
    return s->n;
}
