/* Graphs of small functions, edge for edge: "a>b" is statement a to b in the order of the source (0: the signature, x: exit). */
#include "support.h"

#include <stdlib.h>

#include "code/graph.h"

/* Edges of one kind in the function of that name, as "0>1 1>2 ...", by source position. */
static void list_edges(
    const code_file *f, const code_graph *x, const char *name, code_edge_kind kind, char *out, size_t size)
{
    const code_function *fn = NULL;
    for (uint32_t i = 0; i < x->n_functions && fn == NULL; i++)
        if (x->functions[i].definition != UINT32_MAX &&
            strcmp(f->definitions[x->functions[i].definition].name, name) == 0)
            fn = &x->functions[i];
    assert_non_null(fn);
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t e = 0; e < x->n_edges; e++) {
        const code_edge *edge = &x->edges[e];
        if (edge->kind != kind || edge->from < fn->first || edge->from >= fn->first + fn->n) continue;
        char ends[2][16];
        for (int side = 0; side < 2; side++) {
            const uint32_t s = (side == 0 ? edge->from : edge->to) - fn->first;
            assert_true(s < fn->n);
            if (x->statements[fn->first + s].kind == CODE_STATEMENT_EXIT)
                strcpy(ends[side], "x");
            else
                snprintf(ends[side], sizeof ends[side], "%u", s == 0 ? 0 : s - 1);
        }
        n += (size_t)snprintf(
            out + n, n < size ? size - n : 0, "%s%s>%s", n != 0 ? " " : "", ends[0], ends[1]);
        assert_true(n < size);
    }
}

static void check(const char *language, const char *path, const char *text, const char *name,
    const char *flow, const char *data, const char *control)
{
    code_grammars *g = grammars_or_skip(language);
    code_graph *x;
    code_file *f = code_parse_graph(g, path, text, strlen(text), &x);
    const char *const expected[CODE_N_EDGE_KINDS] = {flow, data, control};
    char found[1024];
    for (int k = 0; k < CODE_N_EDGE_KINDS; k++) {
        list_edges(f, x, name, (code_edge_kind)k, found, sizeof found);
        assert_string_equal(found, expected[k]);
    }
    code_graph_free(x);
    code_file_free(f);
    code_grammars_close(g);
}

static void test_graph__python_loop_with_break(void **state)
{
    /* 0 signature, 1 total = 0, 2 for, 3 if, 4 break, 5 total +=, 6 return */
    check("python", "a.py",
        "def f(xs, limit=3):\n    total = 0\n    for x in xs:\n        if x > limit:\n            break\n"
        "        total += x\n    return total\n",
        "f", "0>1 1>2 2>3 2>6 3>4 3>5 4>6 5>2 6>x", "0>2 0>3 1>5 1>6 2>3 2>5 5>5 5>6", "2>3 2>5 3>4");
}

static void test_graph__c_for_and_goto(void **state)
{
    /* 1 int i, 2 i = 0, 3 i < n, 4 if, 5 goto, 6 s += i, 7 i++, 8 return s, 9 return -1 */
    check("c", "a.c",
        "int f(int n)\n{\n    int i, s = 0;\n    for (i = 0; i < n; i++) {\n        if (i == 7) goto out;\n"
        "        s += i;\n    }\n    return s;\nout:\n    return -1;\n}\n",
        "f", "0>1 1>2 2>3 3>4 3>8 4>5 4>6 5>9 6>7 7>3 8>x 9>x",
        "0>3 1>6 1>8 2>3 2>4 2>6 2>7 6>6 6>8 7>3 7>4 7>6 7>7", "3>4 3>6 3>7 4>5");
}

static void test_graph__c_switch_falls_through(void **state)
{
    /* 1 switch, 2 case 1, 3 a = 1, 4 case 2, 5 a = 2, 6 break, 7 default, 8 a = 3, 9 return */
    check("c", "a.c",
        "int f(int a)\n"
        "{\n"
        "    switch (a) {\n"
        "    case 1: a = 1;\n"
        "    case 2: a = 2; break;\n"
        "    default: a = 3;\n"
        "    }\n    return a;\n}\n",
        "f", "0>1 1>2 1>4 1>7 2>3 3>4 4>5 5>6 6>9 7>8 8>9 9>x", "0>1 5>9 8>9", "1>2 1>4 1>7 2>3 4>5 4>6 7>8");
}

static void test_graph__try_reaches_its_handlers(void **state)
{
    /* 1 a = g(), 2 b = a, 3 except, 4 b = e, 5 h() of finally, 6 return */
    check("python", "a.py",
        "def f():\n"
        "    try:\n"
        "        a = g()\n"
        "        b = a\n"
        "    except E as e:\n"
        "        b = e\n"
        "    finally:\n"
        "        h()\n    return b\n",
        "f", "0>1 1>2 1>3 2>3 2>5 3>4 4>5 5>6 6>x", "1>2 2>6 3>4 4>6", "3>4");
}

static void test_graph__go_and_rust(void **state)
{
    /* 1 v, err :=, 2 if, 3 return, 4 for, 5 v +=, 6 return */
    check("go", "a.go",
        "package p\n"
        "func f(n int, xs []int) (int, error) {\n"
        "\tv, err := g(n)\n"
        "\tif err != nil {\n"
        "\t\treturn 0, err\n"
        "\t}\n\tfor _, x := range xs {\n\t\tv += x\n\t}\n\treturn v, nil\n}\n",
        "f", "0>1 1>2 2>3 2>4 3>x 4>5 4>6 5>4 6>x", "0>1 0>4 1>2 1>3 1>5 1>6 4>5 5>5 5>6", "2>3 4>5");
    /* 1 match, 2 Some, 3 k, 4 None, 5 return, 6 let y, 7 while let, 8 if, 9 break, 10 y + 1 */
    check("rust", "a.rs",
        "fn f(x: Option<u8>) -> u8 {\n    let y = match x { Some(k) => k, None => return 0 };\n"
        "    while let Some(z) = g() { if z > y { break; } }\n    y + 1\n}\n",
        "f", "0>1 1>2 1>4 2>3 3>6 4>5 5>x 6>7 7>8 7>10 8>7 8>9 9>10 10>x", "0>1 2>3 6>8 6>10 7>8",
        "1>2 1>4 2>3 4>5 7>8 8>9");
}

static void test_graph__javascript_nested_functions_are_their_own(void **state)
{
    /* 1 let total, 2 xs.forEach(...), 3 return; the arrow's y is another function's */
    check("javascript", "a.js",
        "function f(xs) {\n  let total = 0;\n  xs.forEach((y) => { total += y; });\n  return total;\n}\n",
        "f", "0>1 1>2 2>3 3>x", "0>2 1>3", "");
}

static void test_graph__counts_and_features(void **state)
{
    static const char text[] = "int g(int a)\n{\n    return a;\n}\nint f(int a)\n{\n    int b = g(a);\n"
                               "    if (b)\n        b = g(b);\n    return b;\n}\n";
    code_grammars *g = grammars_or_skip("c");
    code_graph *x;
    code_file *f = code_parse_graph(g, "a.c", text, sizeof text - 1, &x);
    uint32_t anchors[CODE_N_KINDS] = {0}, edges[CODE_N_EDGE_KINDS] = {0};
    for (uint32_t i = 0; i < f->n_anchors; i++) anchors[f->anchors[i].kind]++;
    for (uint32_t i = 0; i < x->n_functions; i++)
        for (int k = 0; k < CODE_N_EDGE_KINDS; k++) edges[k] += x->functions[i].edges[k];
    assert_int_equal(anchors[CODE_CALL], 2);
    assert_int_equal(anchors[CODE_CONTROL], 1);
    assert_int_equal(anchors[CODE_RETURN], 2);
    assert_int_equal(anchors[CODE_ASSIGN], 2);
    assert_int_equal(edges[CODE_EDGE_FLOW], 8);
    assert_int_equal(edges[CODE_EDGE_DATA], 6);
    assert_int_equal(edges[CODE_EDGE_CONTROL], 1);
    code_feature *features = code_graph_features(f, x, text);
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        const code_anchor *a = &f->anchors[i];
        if (a->kind == CODE_CALL) assert_int_equal(features[i].call_degree, 1);
        if (a->kind == CODE_SIGNATURE)
            assert_int_equal(
                features[i].call_degree, strcmp(f->definitions[a->definition].name, "g") == 0 ? 2 : 0);
        if (a->kind == CODE_CONTROL) {
            assert_int_equal(features[i].data_in, 1);
            assert_int_equal(features[i].flow_out, 2);
            assert_int_equal(features[i].control_out, 1);
        }
    }
    free(features);
    code_graph_free(x);
    code_file_free(f);
    code_grammars_close(g);
}

/* Many definitions, deep nesting and hostile shapes end, and say so. */
static void test_graph__bounds(void **state)
{
    enum { N = 5000 };
    code_grammars *g = grammars_or_skip("python");
    char *text = test_malloc(N * 32);
    size_t n = (size_t)sprintf(text, "def f():\n");
    for (int i = 0; i < N; i++) n += (size_t)sprintf(text + n, "    v%d = v%d\n", i, i / 2);
    code_graph *x;
    code_file *f = code_parse_graph(g, "a.py", text, n, &x);
    assert_int_equal(x->n_functions, 2);
    assert_true(x->functions[1].is_cut);
    assert_int_equal(x->functions[1].edges[CODE_EDGE_DATA], 0);
    assert_int_equal(x->functions[1].edges[CODE_EDGE_FLOW], N + 1);
    code_graph_free(x);
    code_file_free(f);
    n = (size_t)sprintf(text, "int f(void) {");
    for (int i = 0; i < 300; i++) n += (size_t)sprintf(text + n, "if (a) {\n");
    for (int i = 0; i < 300; i++) n += (size_t)sprintf(text + n, "}\n");
    n += (size_t)sprintf(text + n, "}\n");
    f = code_parse_graph(g, "a.c", text, n, &x);
    assert_true(x->n_statements > 60);
    code_graph_free(x);
    code_file_free(f);
    f = code_parse_graph(NULL, "a.c", text, n, &x); /* no grammar: no graph */
    assert_int_equal(x->n_functions, 0);
    code_feature *features = code_graph_features(f, x, text);
    free(features);
    code_graph_free(x);
    code_file_free(f);
    test_free(text);
    code_grammars_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph__python_loop_with_break),
        cmocka_unit_test(test_graph__c_for_and_goto),
        cmocka_unit_test(test_graph__c_switch_falls_through),
        cmocka_unit_test(test_graph__try_reaches_its_handlers),
        cmocka_unit_test(test_graph__go_and_rust),
        cmocka_unit_test(test_graph__javascript_nested_functions_are_their_own),
        cmocka_unit_test(test_graph__counts_and_features),
        cmocka_unit_test(test_graph__bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
