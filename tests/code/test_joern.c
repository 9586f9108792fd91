/*
 * An export of Joern laid over a file: a small one made by hand after its format (joernio/flatgraph, formats/graphson), which is what
 * c2cpg says of the text below.
 */
#include "support.h"

#include <stdlib.h>

#include "base/buf.h"
#include "code/joern.h"

static const char text[] = "int g(int b);\n"     /* 1 */
                           "int f(int a)\n"      /* 2 */
                           "{\n"                 /* 3 */
                           "    int x = a;\n"    /* 4 */
                           "    if (x > 1)\n"    /* 5 */
                           "        x = g(x);\n" /* 6 */
                           "    return x;\n"     /* 7 */
                           "}\n";

typedef struct export
{
    base_buf out;
    uint32_t n_edges;
}
export;

static void vertex(export *e, int id, const char *label, int line, int column, const char *more)
{
    base_buf_printf(&e->out,
        "%s{\"id\":{\"@value\":%d,\"@type\":\"g:Int64\"},\"label\":\"%s\",\"@type\":\"g:Vertex\","
        "\"properties\":{",
        id == 1 ? "" : ",", id, label);
    if (line != 0)
        base_buf_printf(&e->out,
            "\"LINE_NUMBER\":{\"id\":{\"@value\":%d,\"@type\":\"g:Int64\"},\"@value\":{\"@value\":[{\"@"
            "value\":%d,\"@type\":\"g:Int32\"}],"
            "\"@type\":\"g:List\"},\"@type\":\"g:VertexProperty\"},"
            "\"COLUMN_NUMBER\":{\"@value\":{\"@value\":%d,\"@type\":\"g:Int32\"}},",
            id + 1000, line, column);
    base_buf_printf(&e->out, "%s\"ORDER\":{\"@value\":{\"@value\":1}}}}", more);
}

#define NAMED(name) "\"NAME\":{\"@value\":\"" name "\"},"
#define METHOD(name)                                                                                         \
    NAMED(name)                                                                                              \
    "\"FULL_NAME\":{\"@value\":{\"@value\":[\"" name                                                         \
    "\"],\"@type\":\"g:List\"}},\"FILENAME\":{\"@value\":\"src/made.c\"},"                                   \
    "\"IS_EXTERNAL\":{\"@value\":false},"

static void edge(export *e, const char *label, int from, int to)
{
    base_buf_printf(&e->out,
        "%s{\"id\":{\"@value\":%u},\"label\":\"%s\",\"outV\":{\"@value\":%d},\"inV\":{\"@value\":%d},"
        "\"properties\":{}}",
        e->n_edges != 0 ? "," : "", e->n_edges, label, from, to);
    e->n_edges++;
}

/* line: added to all lines, for an export of another version. */
static void make(export *e, int line)
{
    *e = (export){.n_edges = 0};
    base_buf_puts(&e->out, "{\"@type\":\"tinker:graph\",\"@value\":{\"vertices\":[");
    vertex(e, 1, "META_DATA", 0, 0, "\"LANGUAGE\":{\"@value\":\"NEWC\"},");
    vertex(e, 2, "METHOD", 2 + line, 1, METHOD("f"));
    vertex(e, 3, "METHOD_PARAMETER_IN", 2 + line, 7, NAMED("a"));
    vertex(e, 4, "BLOCK", 3 + line, 1, "");
    vertex(e, 5, "CALL", 4 + line, 9, NAMED("<operator>.assignment"));
    vertex(e, 6, "IDENTIFIER", 4 + line, 13, NAMED("a"));
    vertex(e, 7, "CONTROL_STRUCTURE", 5 + line, 5, "\"CONTROL_STRUCTURE_TYPE\":{\"@value\":\"IF\"},");
    vertex(e, 8, "CALL", 5 + line, 9, NAMED("<operator>.greaterThan"));
    vertex(e, 9, "CALL", 6 + line, 9, NAMED("<operator>.assignment"));
    vertex(e, 10, "CALL", 6 + line, 13, NAMED("g"));
    vertex(e, 11, "IDENTIFIER", 6 + line, 15, NAMED("x"));
    vertex(e, 12, "RETURN", 7 + line, 5, "");
    vertex(e, 13, "IDENTIFIER", 7 + line, 12, NAMED("x"));
    vertex(e, 14, "METHOD_RETURN", 2 + line, 1, "");
    vertex(e, 15, "METHOD", 1 + line, 1, METHOD("g"));
    vertex(e, 16, "IDENTIFIER", 5 + line, 9, NAMED("x"));
    base_buf_puts(&e->out, "],\"edges\":[");
    static const int parents[][2] = {{2, 3}, {2, 4}, {4, 5}, {5, 6}, {4, 7}, {7, 8}, {8, 16}, {7, 9}, {9, 10},
        {10, 11}, {4, 12}, {12, 13}, {2, 14}};
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++)
        edge(e, "AST", parents[i][0], parents[i][1]);
    static const int flow[][2] = {
        {2, 6}, {6, 5}, {5, 16}, {16, 8}, {8, 11}, {11, 10}, {10, 9}, {9, 13}, {8, 13}, {13, 12}, {12, 14}};
    for (size_t i = 0; i < sizeof flow / sizeof *flow; i++) edge(e, "CFG", flow[i][0], flow[i][1]);
    static const int data[][2] = {{2, 13}, {3, 6}, {5, 16}, {5, 11}, {5, 13}, {9, 13}};
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) edge(e, "REACHING_DEF", data[i][0], data[i][1]);
    edge(e, "CDG", 8, 9);
    edge(e, "CDG", 8, 10);
    edge(e, "CALL", 10, 15);
    edge(e, "EVAL_TYPE", 10, 15);
    base_buf_puts(&e->out, "]}}");
}

static uint32_t edges_of(const code_graph *x, code_edge_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_edges; i++) n += x->edges[i].kind == kind;
    return n;
}

static bool has_edge(const code_graph *x, code_edge_kind kind, const char *from, const char *to)
{
    for (uint32_t i = 0; i < x->n_edges; i++) {
        const code_statement *a = &x->statements[x->edges[i].from], *b = &x->statements[x->edges[i].to];
        if (x->edges[i].kind == kind && strncmp(text + a->from, from, strlen(from)) == 0 &&
            (to == NULL ? b->kind == CODE_STATEMENT_EXIT : strncmp(text + b->from, to, strlen(to)) == 0))
            return true;
    }
    return false;
}

static void test_joern__its_edges_become_those_of_our_statements(void **state)
{
    (void)state;
    code_grammars *g = grammars_or_skip("c");
    export e;
    make(&e, 0);
    code_joern *j;
    base_err err = {0};
    if (code_joern_read(&j, e.out.data, e.out.len, &err) != 0) fail_msg("%s", err.msg);
    code_graph *x;
    code_file *f = code_parse_graph(g, "made.c", text, sizeof text - 1, &x);
    const uint32_t own[] = {
        edges_of(x, CODE_EDGE_FLOW), edges_of(x, CODE_EDGE_DATA), edges_of(x, CODE_EDGE_CONTROL)};
    code_joern_report r;
    if (code_joern_apply(j, "made.c", text, sizeof text - 1, f, x, &r, &err) != 0) fail_msg("%s", err.msg);
    assert_int_equal(r.points[CODE_CALL], 1);
    assert_int_equal(r.points[CODE_ASSIGN], 2);
    assert_int_equal(r.points[CODE_CONTROL], 1);
    assert_int_equal(r.points[CODE_RETURN], 1);
    for (int k = 0; k < CODE_SIGNATURE; k++) assert_int_equal(r.found[k], r.points[k]);
    assert_int_equal(r.lost, 0);
    /* Of such plain code both graphs say the same. */
    assert_int_equal(edges_of(x, CODE_EDGE_FLOW), own[0]);
    assert_int_equal(edges_of(x, CODE_EDGE_DATA), own[1]);
    assert_int_equal(edges_of(x, CODE_EDGE_CONTROL), own[2]);
    assert_true(has_edge(x, CODE_EDGE_FLOW, "int f", "int x"));
    assert_true(has_edge(x, CODE_EDGE_FLOW, "if (x", "x = g"));
    assert_true(has_edge(x, CODE_EDGE_FLOW, "if (x", "return"));
    assert_true(has_edge(x, CODE_EDGE_FLOW, "return", NULL));
    assert_true(has_edge(x, CODE_EDGE_DATA, "int f", "int x"));
    assert_true(has_edge(x, CODE_EDGE_DATA, "x = g", "return"));
    assert_true(has_edge(x, CODE_EDGE_CONTROL, "if (x", "x = g"));
    assert_false(has_edge(x, CODE_EDGE_DATA, "int f", "return"));
    assert_int_equal(r.n_calls, 1);
    assert_string_equal(r.calls[0].name, "g");
    assert_string_equal(r.calls[0].path, "src/made.c");
    assert_memory_equal(text + r.calls[0].at, "g(x)", 4);
    free(r.calls);
    code_graph_free(x);
    code_file_free(f);
    code_joern_free(j);
    base_buf_free(&e.out);
    code_grammars_close(g);
}

static void test_joern__an_export_of_another_version_is_refused(void **state)
{
    (void)state;
    code_grammars *g = grammars_or_skip("c");
    export e;
    make(&e, 2);
    code_joern *j;
    base_err err = {0};
    assert_int_equal(code_joern_read(&j, e.out.data, e.out.len, &err), 0);
    code_graph *x;
    code_file *f = code_parse_graph(g, "made.c", text, sizeof text - 1, &x);
    const uint32_t n = x->n_edges;
    code_joern_report r;
    assert_int_equal(
        code_joern_apply(j, "a/made.c", text, sizeof text - 1, f, x, &r, &err), BASE_E_NOT_FOUND);
    assert_int_equal(code_joern_apply(j, "other.c", text, sizeof text - 1, f, x, &r, &err), BASE_E_NOT_FOUND);
    assert_int_equal(
        code_joern_apply(j, "x/src/made.c", text, sizeof text - 1, f, x, &r, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "export it again"));
    assert_int_equal(x->n_edges, n);
    code_graph_free(x);
    code_file_free(f);
    code_joern_free(j);
    base_buf_free(&e.out);
    code_grammars_close(g);
}

static void test_joern__what_is_no_export_is_told(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "[]", "{", "{}", "{\"@value\":{\"edges\":[]}}",
        "{\"vertices\":[{\"label\":\"METHOD\"}]}",
        "{\"vertices\":[{\"id\":1,\"label\":\"METHOD\"},{\"id\":1,\"label\":\"METHOD\"}]}",
        "{\"vertices\":[1 2]}", "{\"vertices\":[],\"vertices\":[]}",
        "{\"@value\":{\"@value\":{\"vertices\":[]}}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        code_joern *j;
        base_err err = {0};
        assert_int_equal(code_joern_read(&j, bad[i], strlen(bad[i]), &err), BASE_E_FORMAT);
        assert_null(j);
        assert_non_null(strstr(err.msg, "graphson"));
    }
    export e;
    make(&e, 0);
    for (size_t n = 0; n < e.out.len; n += 7) {
        code_joern *j;
        assert_int_equal(code_joern_read(&j, e.out.data, n, NULL), BASE_E_FORMAT);
    }
    base_buf_free(&e.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joern__its_edges_become_those_of_our_statements),
        cmocka_unit_test(test_joern__an_export_of_another_version_is_refused),
        cmocka_unit_test(test_joern__what_is_no_export_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
