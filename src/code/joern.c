/*
 * Reading a Joern export (graphson) one vertex and one edge at a time: an export is a hundred times its
 * source, its document would be ten times that. What we have no use for is dropped at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "code/joern_state.h"

enum { MOST_NODES = 1 << 25, MOST_EDGES = 1 << 27, MOST_WRAPS = 8 };

typedef struct reader {
    const char *text;
    size_t n, at;
    code_joern *j;
    bool has_vertices;
    base_err *err;
} reader;

static int bad(const reader *r, const char *what)
{
    return base_fail(r->err, BASE_E_FORMAT,
        "no graphson export of Joern: byte %zu, %s (joern-export --repr all --format graphson writes one)",
        r->at, what);
}

/* --- values --------------------------------------------------------------------------------------------- */

/* {"@value": {"@value": [x], ...}, ...} is x. */
static const base_json *unwrap(const base_json *v)
{
    for (int i = 0; v != NULL && i < MOST_WRAPS; i++) {
        if (v->type == BASE_JSON_OBJECT)
            v = base_json_get(v, "@value");
        else if (v->type == BASE_JSON_ARRAY)
            v = v->first;
        else
            return v;
    }
    return NULL;
}

/* -1: it is none. */
static int64_t integer_of(const base_json *v)
{
    v = unwrap(v);
    return v != NULL && v->type == BASE_JSON_NUMBER && v->is_integer ? v->integer : -1;
}

static const char *string_of(const base_json *v)
{
    v = unwrap(v);
    return v != NULL && v->type == BASE_JSON_STRING ? v->string : "";
}

static uint32_t place_of(const base_json *properties, const char *key, uint32_t otherwise)
{
    const int64_t x = integer_of(base_json_get(properties, key));
    return x >= 0 && x < INT32_MAX ? (uint32_t)x : otherwise;
}

/* --- vertices ------------------------------------------------------------------------------------------- */

static bool begins_with_one_of(const char *s, const char *const *with)
{
    for (; *with != NULL; with++)
        if (strncmp(s, *with, strlen(*with)) == 0) return true;
    return false;
}

/* The anchor that a node is a place of: all operators are calls to Joern. -1: none. */
static int kind_of(const char *label, const base_json *properties)
{
    static const char *const assigns[] = {"<operator>.assignment", "<operator>.postIncrement",
        "<operator>.postDecrement", "<operator>.preIncrement", "<operator>.preDecrement",
        "<operators>.assignment", NULL};
    static const char *const operators[] = {"<operator", NULL};
    static const char *const controls[] = {"IF", "WHILE", "FOR", "SWITCH", "MATCH", NULL};
    const char *name = string_of(base_json_get(properties, "NAME"));
    if (strcmp(label, "RETURN") == 0) return CODE_RETURN;
    if (strcmp(label, "CALL") == 0)
        return begins_with_one_of(name, assigns)     ? CODE_ASSIGN
               : begins_with_one_of(name, operators) ? -1
                                                     : CODE_CALL;
    if (strcmp(label, "CONTROL_STRUCTURE") == 0)
        return begins_with_one_of(string_of(base_json_get(properties, "CONTROL_STRUCTURE_TYPE")), controls)
                   ? CODE_CONTROL
                   : -1;
    if (strcmp(label, "METHOD") != 0 || *name == '<') return -1; /* <global>, <lambda>, ... */
    const base_json *external = unwrap(base_json_get(properties, "IS_EXTERNAL"));
    return external != NULL && external->type == BASE_JSON_BOOL && external->boolean ? -1 : CODE_SIGNATURE;
}

static int add_vertex(reader *r, const base_json *v)
{
    const char *label = base_json_str(v, "label", "");
    const base_json *properties = base_json_get(v, "properties");
    code_joern *j = r->j;
    if (strcmp(label, "META_DATA") == 0) {
        const char *language = string_of(base_json_get(properties, "LANGUAGE"));
        j->first_column =
            strncmp(language, "JSSRC", 5) == 0 || strncmp(language, "JAVASCRIPT", 10) == 0 ? 0 : 1;
        return 0;
    }
    joern_node node = {.id = integer_of(base_json_get(v, "id")),
        .line = place_of(properties, "LINE_NUMBER", 0),
        .column = place_of(properties, "COLUMN_NUMBER", JOERN_NONE),
        .parent = JOERN_NONE,
        .method = JOERN_NONE,
        .kind = (int8_t)kind_of(label, properties),
        .label = strcmp(label, "METHOD") == 0          ? JOERN_METHOD
                 : strcmp(label, "METHOD_RETURN") == 0 ? JOERN_METHOD_RETURN
                                                       : JOERN_OTHER};
    if (node.label == JOERN_OTHER && node.line == 0 && strcmp(label, "BLOCK") != 0) return 0;
    if (node.id < 0) return bad(r, "a vertex has no number");
    if (j->n_nodes == MOST_NODES) return bad(r, "there are too many vertices");
    if (node.label == JOERN_METHOD) {
        node.name = base_xstrdup(string_of(base_json_get(properties, "FULL_NAME")));
        node.path = base_xstrdup(string_of(base_json_get(properties, "FILENAME")));
    }
    base_grow(&j->nodes, &j->cap_nodes, j->n_nodes + 1, sizeof *j->nodes);
    j->nodes[j->n_nodes++] = node;
    return 0;
}

static int by_id(const void *a, const void *b)
{
    const int64_t x = ((const joern_node *)a)->id, y = ((const joern_node *)b)->id;
    return (x > y) - (x < y);
}

static int end_vertices(reader *r)
{
    code_joern *j = r->j;
    if (r->has_vertices) return bad(r, "its vertices are there twice");
    r->has_vertices = true;
    if (j->n_nodes != 0) qsort(j->nodes, j->n_nodes, sizeof *j->nodes, by_id);
    for (size_t i = 1; i < j->n_nodes; i++)
        if (j->nodes[i].id == j->nodes[i - 1].id) return bad(r, "two vertices have one number");
    return 0;
}

/* --- edges ---------------------------------------------------------------------------------------------- */

static uint32_t find_node(const code_joern *j, int64_t id)
{
    const joern_node key = {.id = id};
    const joern_node *found = j->n_nodes != 0 ? bsearch(&key, j->nodes, j->n_nodes, sizeof key, by_id) : NULL;
    return found != NULL ? (uint32_t)(found - j->nodes) : JOERN_NONE;
}

static int add_edge(reader *r, const base_json *e)
{
    static const struct {
        const char *label;
        joern_edge_kind kind;
    } kinds[] = {{"CFG", JOERN_FLOW}, {"REACHING_DEF", JOERN_DATA}, {"CDG", JOERN_CONTROL},
        {"CALL", JOERN_CALL}, {"AST", JOERN_PARENT}, {"CONTAINS", JOERN_PARENT}};
    const char *label = base_json_str(e, "label", "");
    code_joern *j = r->j;
    size_t k = 0;
    while (k < sizeof kinds / sizeof *kinds && strcmp(kinds[k].label, label) != 0) k++;
    if (k == sizeof kinds / sizeof *kinds) return 0;
    const uint32_t from = find_node(j, integer_of(base_json_get(e, "outV"))),
                   to = find_node(j, integer_of(base_json_get(e, "inV")));
    if (from == JOERN_NONE || to == JOERN_NONE) return 0; /* of a vertex without a place */
    if (kinds[k].kind == JOERN_PARENT) {
        /* CONTAINS leads from the method itself; that is what a node's parents are climbed for. */
        if (j->nodes[to].parent == JOERN_NONE || j->nodes[from].label == JOERN_METHOD)
            j->nodes[to].parent = from;
        return 0;
    }
    if (j->n_edges == MOST_EDGES) return bad(r, "there are too many edges");
    base_grow(&j->edges, &j->cap_edges, j->n_edges + 1, sizeof *j->edges);
    j->edges[j->n_edges++] = (joern_edge){.from = from, .to = to, .kind = (uint8_t)kinds[k].kind};
    return 0;
}

/* Each node's method: the first one among its parents. A circle of parents ends where it was entered. */
static void find_methods(code_joern *j)
{
    uint32_t *climbed = base_xmalloc((j->n_nodes + 1) * sizeof *climbed);
    uint8_t *seen = base_xcalloc(j->n_nodes + 1, 1);
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        uint32_t n = 0, at = i, method = JOERN_NONE;
        while (at != JOERN_NONE && !seen[at] && j->nodes[at].label != JOERN_METHOD) {
            seen[at] = 1;
            climbed[n++] = at;
            at = j->nodes[at].parent;
        }
        if (at != JOERN_NONE) method = j->nodes[at].label == JOERN_METHOD ? at : j->nodes[at].method;
        while (n != 0) j->nodes[climbed[--n]].method = method;
        if (j->nodes[i].label == JOERN_METHOD) j->nodes[i].method = i;
    }
    free(climbed);
    free(seen);
}

/* --- the document --------------------------------------------------------------------------------------- */

static char skip_space(reader *r)
{
    while (r->at < r->n && memchr(" \t\r\n", r->text[r->at], 4) != NULL) r->at++;
    return r->at < r->n ? r->text[r->at] : '\0';
}

/* The value here; the caller frees. NULL: none, and said so. */
static base_json_doc *read_value(reader *r)
{
    base_json_doc *doc = NULL;
    size_t used = 0;
    base_err why = {0};
    skip_space(r);
    if (r->at == r->n || base_json_parse_prefix(r->text + r->at, r->n - r->at, &used, &doc, &why) != 0) {
        bad(r, *why.msg != '\0' ? why.msg : "it ends too early");
        return NULL;
    }
    r->at += used;
    return doc;
}

static int read_items(reader *r, int (*add)(reader *r, const base_json *item))
{
    if (skip_space(r) != '[') return bad(r, "an array should begin here");
    r->at++;
    if (skip_space(r) == ']') {
        r->at++;
        return 0;
    }
    for (;;) {
        base_json_doc *doc = read_value(r);
        if (doc == NULL) return BASE_E_FORMAT;
        const int rc = add(r, base_json_root(doc));
        base_json_free(doc);
        if (rc != 0) return rc;
        const char next = skip_space(r);
        if (next != ',' && next != ']') return bad(r, "a comma is missing");
        r->at++;
        if (next == ']') return 0;
    }
}

/* The members of an object: vertices, edges, @value (once more an object); others are passed over. */
static int read_members(reader *r, int depth)
{
    if (skip_space(r) != '{') return bad(r, "an object should begin here");
    r->at++;
    if (skip_space(r) == '}') {
        r->at++;
        return 0;
    }
    for (;;) {
        base_json_doc *key = read_value(r);
        const base_json *name = key != NULL ? base_json_root(key) : NULL;
        int rc = name == NULL                                             ? BASE_E_FORMAT
                 : name->type != BASE_JSON_STRING || skip_space(r) != ':' ? bad(r, "a name is missing")
                                                                          : 0;
        if (rc == 0) {
            r->at++;
            if (strcmp(name->string, "vertices") == 0) {
                rc = read_items(r, add_vertex);
                if (rc == 0) rc = end_vertices(r);
            } else if (strcmp(name->string, "edges") == 0) {
                rc = r->has_vertices ? read_items(r, add_edge) : bad(r, "edges stand before vertices");
            } else if (strcmp(name->string, "@value") == 0 && depth == 0) {
                rc = read_members(r, 1);
            } else {
                base_json_doc *other = read_value(r);
                if (other == NULL) rc = BASE_E_FORMAT;
                base_json_free(other);
            }
        }
        base_json_free(key);
        if (rc != 0) return rc;
        const char next = skip_space(r);
        if (next != ',' && next != '}') return bad(r, "a comma is missing");
        r->at++;
        if (next == '}') return 0;
    }
}

int code_joern_read(code_joern **ret, const char *text, size_t n, base_err *err)
{
    base_err ignored;
    reader r = {.text = text, .n = n, .j = base_xcalloc(1, sizeof *r.j), .err = err != NULL ? err : &ignored};
    r.j->first_column = 1;
    *ret = NULL;
    int rc = read_members(&r, 0);
    if (rc == 0 && !r.has_vertices) rc = bad(&r, "it has no vertices");
    if (rc != 0) {
        code_joern_free(r.j);
        return rc;
    }
    find_methods(r.j);
    *ret = r.j;
    return 0;
}

void code_joern_free(code_joern *j)
{
    if (j == NULL) return;
    for (size_t i = 0; i < j->n_nodes; i++) {
        free(j->nodes[i].name);
        free(j->nodes[i].path);
    }
    free(j->nodes);
    free(j->edges);
    free(j);
}
