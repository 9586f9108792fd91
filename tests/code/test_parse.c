/* Definitions and anchors from real grammars; every extent stays inside the text. */
#include "support.h"

#include <stdlib.h>

#include "base/buf.h"
#include "code/internal.h"
#include "code/uses.h"

static const char c_text[] = "#include <stdio.h>\n"
                             "#define MAX(a, b) ((a) > (b) ? (a) : (b))\n"
                             "typedef struct point {\n    int x;\n    int (*move)(int);\n} point;\n"
                             "static int add(int a, int b);\n"
                             "static char *names[3] = {0};\n"
                             "/* Adds. */\n"
                             "static int add(int a, int b)\n"
                             "{\n"
                             "    if (a == 0) return b;\n"
                             "    int sum = a + b;\n"
                             "    sum += MAX(a, 1);\n"
                             "    return sum;\n"
                             "}\n";

static void test_parse__c_definitions(void **state)
{
    code_grammars *g = grammars_or_skip("c");
    code_file *f = code_parse(g, "a.c", c_text, sizeof c_text - 1);
    assert_string_equal(f->language, "c");
    assert_int_equal(f->n_errors, 0);
    assert_string_equal(definition(f, "MAX")->what, "macro");
    assert_string_equal(definition(f, "point")->what, "typedef");
    assert_true(definition(f, "point")->body_to != 0);
    assert_string_equal(definition(f, "move")->what, "field");
    assert_string_equal(definition(f, "move")->parent, "point");
    assert_string_equal(definition(f, "names")->what, "variable");
    const code_definition *declared = definition(f, "add");
    assert_true(declared->is_declaration);
    uint32_t i;
    assert_int_equal(code_find_definition(f, "add", &i, 1), 1);
    const code_definition *d = &f->definitions[i];
    assert_false(d->is_declaration);
    assert_int_equal(d->line, 10);
    assert_int_equal(d->line_end, 16);
    assert_int_equal(c_text[d->body_from], '{');
    assert_memory_equal(c_text + d->from, "static int add", 14);
    code_file_free(f);
    code_grammars_close(g);
}

static void test_parse__c_anchors(void **state)
{
    code_grammars *g = grammars_or_skip("c");
    code_file *f = code_parse(g, "a.c", c_text, sizeof c_text - 1);
    char s[1024];
    join_anchors(f, c_text, CODE_CALL, true, s, sizeof s);
    assert_string_equal(s, "MAX(");
    join_anchors(f, c_text, CODE_CALL, false, s, sizeof s);
    assert_string_equal(s, "MAX(a, 1)");
    join_anchors(f, c_text, CODE_CONTROL, true, s, sizeof s);
    assert_string_equal(s, "if (a == 0)");
    join_anchors(f, c_text, CODE_RETURN, true, s, sizeof s);
    assert_string_equal(s, "return b;|return sum;");
    join_anchors(f, c_text, CODE_ASSIGN, true, s, sizeof s);
    assert_string_equal(s, "*names[3] =|sum =|sum +=");
    join_anchors(f, c_text, CODE_SIGNATURE, true, s, sizeof s);
    assert_non_null(strstr(s, "static int add(int a, int b)\n{"));
    code_file_free(f);
    code_grammars_close(g);
}

static const char inactive_text[] = "#if 0 // an older one\n"
                                    "static int old(void) { return 1; }\n"
                                    "int twice(int x) { return 2 * x; }\n"
                                    "#else\n"
                                    "int twice(int x) { return x + x; }\n"
                                    "#endif\n"
                                    "# if 1\n"
                                    "int live(void) { return 1; }\n"
                                    "#ifdef A\n"
                                    "int a(void) { return 0; }\n"
                                    "#else\n"
                                    "int a(void) { return 1; }\n"
                                    "#endif\n"
                                    "#else\n"
                                    "int dead(void) { return 1; }\n"
                                    "#if X\n"
                                    "int deader(void) { return 1; }\n"
                                    "#endif\n"
                                    "#endif\n"
                                    "/*\n#if 0\n*/\n"
                                    "int open_still(void) { return 1; }\n"
                                    "#if 0 || A\n"
                                    "int perhaps(void) { return 1; }\n"
                                    "#elif 0\n"
                                    "int never(void) { return 1; }\n"
                                    "#endif\n";

/* Who looks for a definition is never asked which of two when the compiler sees but one. */
static void check_inactive(const code_file *f)
{
    static const struct {
        const char *name;
        size_t n;
    } expected[] = {{"old", 0}, {"twice", 1}, {"live", 1}, {"a", 2}, {"dead", 0}, {"deader", 0},
        {"open_still", 1}, {"perhaps", 1}, {"never", 0}};
    uint32_t at[4];
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(code_find_definition(f, expected[i].name, at, 4), expected[i].n);
    assert_int_equal(code_find_definition(f, "twice", at, 4), 1);
    assert_int_equal(f->definitions[at[0]].line, 5);
}

static void test_parse__what_stands_under_if_0_is_no_definition(void **state)
{
    code_grammars *g = grammars_or_skip("c");
    code_file *f = code_parse(g, "a.c", inactive_text, sizeof inactive_text - 1);
    assert_string_equal(f->language, "c");
    check_inactive(f);
    code_file_free(f);
    code_grammars_close(g);
    f = code_parse(NULL, "a.c", inactive_text, sizeof inactive_text - 1); /* by words alone */
    assert_null(f->language);
    check_inactive(f);
    code_file_free(f);
}

static void test_parse__python_decorators_and_methods(void **state)
{
    static const char text[] = "@wraps(f)\n"
                               "class Box(Base):\n"
                               "    size = 3\n"
                               "    @property\n"
                               "    def area(self):\n"
                               "        \"\"\"Doc.\"\"\"\n"
                               "        return self.a.b(1).c(2)\n\n"
                               "def area():\n"
                               "    def inner():\n"
                               "        yield 1\n"
                               "    return inner\n";
    code_grammars *g = grammars_or_skip("python");
    code_file *f = code_parse(g, "a.py", text, sizeof text - 1);
    assert_int_equal(definition(f, "Box")->from, 0);
    assert_string_equal(definition(f, "size")->what, "field");
    uint32_t found[4];
    assert_int_equal(code_find_definition(f, "Box.area", found, 4), 1);
    assert_string_equal(f->definitions[found[0]].what, "method");
    assert_memory_equal(text + f->definitions[found[0]].from, "@property", 9);
    assert_int_equal(code_find_definition(f, "area", found, 4), 2);
    assert_int_equal(code_find_definition(f, "AREA()", found, 4), 2);
    assert_int_equal(code_find_definition(f, "volume", found, 4), 0);
    assert_int_equal(code_find_definition(f, "", found, 4), 0);
    char s[256];
    join_anchors(f, text, CODE_CALL, true, s, sizeof s);
    assert_string_equal(s, "wraps(|self.a.b(|c(");
    assert_string_equal(definition(f, "inner")->parent, "area");
    const uint32_t in = code_definition_at(f, (uint32_t)(strstr(text, "yield") - text));
    assert_string_equal(f->definitions[in].name, "inner");
    code_file_free(f);
    code_grammars_close(g);
}

static void test_parse__javascript_functions_as_values(void **state)
{
    static const char text[] = "export class A {\n  #x = 1;\n  run(a) { return a ? this.b(a) : 0; }\n}\n"
                               "export const go = async (x) => {\n  await x();\n};\nfunction named() {}\n"
                               "A.prototype.jump = function () {};\n"
                               "module.exports.leap = () => 1;\n"
                               "const o = { hop: function () {} };\n";
    code_grammars *g = grammars_or_skip("javascript");
    code_file *f = code_parse(g, "a.js", text, sizeof text - 1);
    assert_string_equal(definition(f, "run")->parent, "A");
    assert_string_equal(definition(f, "go")->what, "function");
    assert_memory_equal(text + definition(f, "go")->from, "export const go", 15);
    assert_string_equal(definition(f, "jump")->parent, "A");
    assert_string_equal(definition(f, "leap")->parent, "");
    assert_string_equal(definition(f, "hop")->what, "method");
    assert_int_equal(definition(f, "A")->from, 0);
    code_file_free(f);
    code_grammars_close(g);
}

static void test_parse__go_rust_cpp_parents(void **state)
{
    static const char go[] =
        "package p\n\n// T is.\ntype T struct {\n\ta int\n}\n\nfunc (t *T) Name() string { return f(t.a) }\n";
    static const char rust[] = "#[derive(Debug)]\n"
                               "pub struct P(u8);\n"
                               "impl<T> Iterator for P {\n"
                               "    #[inline]\n"
                               "    fn next(&mut self) -> u8 { self.0 }\n"
                               "}\n";
    static const char cpp[] = "namespace n {\n"
                              "template <class T> class V {\n"
                              "public:\n"
                              "  int at(int i) const { return i; }\n"
                              "  void push(T);\n"
                              "};\n"
                              "}\n"
                              "int n::V<int>::size() { return 0; }\n";
    code_grammars *g = grammars_or_skip("go");
    uint32_t i;
    code_file *f = code_parse(g, "a.go", go, sizeof go - 1);
    assert_string_equal(definition(f, "Name")->parent, "T");
    assert_string_equal(definition(f, "T")->what, "struct");
    assert_memory_equal(go + definition(f, "T")->from, "type T struct", 13);
    assert_int_equal(code_find_definition(f, "(*T).Name", &i, 1), 1);
    code_file_free(f);
    f = code_parse(g, "a.rs", rust, sizeof rust - 1);
    assert_int_equal(definition(f, "P")->from, 0);
    assert_string_equal(definition(f, "next")->parent, "P");
    assert_string_equal(definition(f, "next")->what, "method");
    assert_memory_equal(rust + definition(f, "next")->from, "#[inline]", 9);
    assert_int_equal(code_find_definition(f, "P::next", &i, 1), 1);
    code_file_free(f);
    f = code_parse(g, "a.cc", cpp, sizeof cpp - 1);
    assert_memory_equal(cpp + definition(f, "V")->from, "template", 8);
    assert_string_equal(definition(f, "at")->parent, "V");
    assert_true(definition(f, "push")->is_declaration);
    assert_string_equal(definition(f, "size")->parent, "V");
    code_file_free(f);
    code_grammars_close(g);
}

/* Every definition as "what parent.name", joined by commas. */
static void check_definitions(code_grammars *g, const char *path, const char *text, const char *expected)
{
    code_file *f = code_parse(g, path, text, strlen(text));
    char all[1024] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s %s.%s", n != 0 ? "," : "",
            f->definitions[i].what, f->definitions[i].parent, f->definitions[i].name);
    assert_string_equal(all, expected);
    assert_int_equal(f->n_errors, 0);
    code_file_free(f);
}

static void test_parse__other_languages(void **state)
{
    code_grammars *g = grammars_or_skip("java");
    check_definitions(g, "a.java",
        "class A { int c = 1; A() { this(1); } void f() { int x = g(); } enum K { L } }\n",
        "class .A,field A.c,method A.A,method A.f,enum A.K,constant K.L");
    check_definitions(g, "a.rb",
        "module M\n  class B < C\n    def self.d(e)\n      x = 1\n    end\n  end\nend\ndef top\nend\n",
        "module .M,class M.B,method B.d,function .top");
    check_definitions(g, "a.php",
        "<?php\nclass B { public function c($d) { return 1; } }\nfunction g() { foreach ($h as $i) {} }\n",
        "class .B,method B.c,function .g");
    check_definitions(g, "a.cs",
        "namespace N { class B { int x = 1; public B() {} int E(int f) { return G(f); } } enum O { P } }\n",
        "class N.B,field B.x,method B.B,method B.E,enum N.O,constant O.P");
    check_definitions(g, "a.sh", "f() {\n  local x=1\n  g \"$1\"\n}\nTOP=2\n", "function .f,variable .TOP");
    check_definitions(g, "a.ts",
        "interface A { a(): void }\n"
        "abstract class C { f?: number }\n"
        "type G = string;\n"
        "enum I { J = 1 }\n"
        "export const k = () => 1;\n",
        "interface .A,method A.a,class .C,field C.f,type .G,enum .I,constant I.J,function .k");
    check_definitions(g, "a.lua", "local function f(a)\n  return a\nend\n",
        "function .f"); /* its grammar says nothing to us */
    code_grammars_close(g);
}

/* Lua's scanner never sets its memory. 1 to 5 there mean that it is inside a string or a comment. */
static void test_parse__a_scanner_that_sets_nothing_begins_outside_of_strings(void **state)
{
    enum { ROUNDS = 200, SMALL = 256, N = 1 << 14 };
    code_grammars *g = grammars_or_skip("java");
    void *small[SMALL];
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < SMALL; i++) small[i] = malloc(8 + i); /* what is free in pieces is taken */
        volatile int *block = malloc(N * sizeof *block);
        for (size_t i = 0; i < N; i++) block[i] = 1 + round % 5;
        free((void *)block); /* what comes next may be cut from it */
        check_definitions(g, "a.lua", "local function f(a)\n  return a\nend\n", "function .f");
        for (size_t i = 0; i < SMALL; i++) free(small[i]);
    }
    code_grammars_close(g);
}

static void test_parse__fields_of_types(void **state)
{
    code_grammars *g = grammars_or_skip("go");
    check_definitions(g, "a.go", "package p\n\ntype T struct {\n\ta, b int\n\tC *X\n}\n",
        "struct .T,field T.a,field T.b,field T.C");
    check_definitions(g, "a.rs", "pub struct S { pub a: u8, b: Vec<u8> }\n", "struct .S,field S.a,field S.b");
    check_definitions(g, "a.cc", "class A { public: int x, *y; std::vector<int> z; };\n",
        "class .A,field A.x,field A.y,field A.z");
    check_definitions(g, "a.py",
        "@dataclass\nclass A:\n    x: int\n    y: str = 1\n    def __init__(self):\n        self.x = 1\n"
        "        self.w, v = 1, 2\n        self.z: int = 1\n        other.q = 1\n"
        "    def f(self):\n        self.u = 1\n",
        "class .A,field A.x,field A.y,method A.__init__,field A.z,method A.f");
    check_definitions(g, "a.js",
        "class A {\n  #p = 1;\n  constructor() {\n    this.w = 1;\n    this.w = 2;\n    this.a.b = 3;\n"
        "    this.f = () => { this.g = 1; };\n  }\n}\nfunction constructor() { this.k = 1; }\n",
        "class .A,field A.p,method A.constructor,field A.w,function constructor.f,function .constructor");
    code_grammars_close(g);
}

static void test_parse__rust_tail_expression_returns(void **state)
{
    static const char text[] =
        "fn f(x: u8) -> u8 {\n    let y = g(x);\n    y + 1\n}\nfn h() {\n    g(1);\n}\n";
    code_grammars *g = grammars_or_skip("rust");
    code_file *f = code_parse(g, "a.rs", text, sizeof text - 1);
    char s[128];
    join_anchors(f, text, CODE_RETURN, false, s, sizeof s);
    assert_string_equal(s, "y + 1");
    code_file_free(f);
    code_grammars_close(g);
}

static void test_parse__broken_code_reports_its_line(void **state)
{
    static const char text[] = "def a():\n    return 1\n\nx = = 2\n";
    code_grammars *g = grammars_or_skip("python");
    code_file *f = code_parse(g, "a.py", text, sizeof text - 1);
    assert_true(f->n_errors > 0);
    assert_int_equal(f->error_line, 4);
    definition(f, "a");
    code_file_free(f);
    code_grammars_close(g);
}

/* The grammar of Go takes them there. */
static void test_parse__a_statement_of_go_outside_of_functions_is_an_error(void **state)
{
    static const char good[] =
        "// a\npackage a\n\nimport \"fmt\"\n\ntype t struct{}\n\nconst c = 1\n\nvar v = 2\n\n"
        "func (x t) m() {}\n\nfunc f() { fmt.Println(c, v) }\n";
    static const char stray[] = "package a\n\n\"unsafe\"\n\nfunc f() {}\n";
    code_grammars *g = grammars_or_skip("go");
    code_file *f = code_parse(g, "a.go", good, sizeof good - 1);
    assert_int_equal(f->n_errors, 0);
    code_file_free(f);
    f = code_parse(g, "a.go", stray, sizeof stray - 1);
    assert_int_equal(f->n_errors, 1);
    assert_int_equal(f->error_line, 3);
    definition(f, "f");
    code_file_free(f);
    code_grammars_close(g);
}

/* Deep nesting must not recurse, a minified or large file must not take long: both are lexical then. */
static void same_reading(const code_file *a, const code_file *b, int step)
{
    if (a->n_definitions != b->n_definitions || a->n_anchors != b->n_anchors)
        fail_msg("step %d: %u definitions and %u anchors, afresh %u and %u", step, a->n_definitions,
            a->n_anchors, b->n_definitions, b->n_anchors);
    for (uint32_t i = 0; i < a->n_definitions; i++) {
        const code_definition *x = &a->definitions[i], *y = &b->definitions[i];
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->what, y->what);
        assert_string_equal(x->parent, y->parent);
        assert_int_equal(x->from, y->from);
        assert_int_equal(x->to, y->to);
        assert_int_equal(x->body_from, y->body_from);
    }
    for (uint32_t i = 0; i < a->n_anchors; i++)
        assert_memory_equal(&a->anchors[i], &b->anchors[i], sizeof *a->anchors);
}

/* Functions come, go and are broken; what is parsed with the tree and the nodes of the text before reads as it does afresh. */
static void test_parse__an_edit_reads_as_afresh(void **state)
{
    enum { FUNCTIONS = 40, STEPS = 400 };
    static const char *const bodies[] = {
        "    int sum = 0;\n    for (int i = 0; i < n; i++) sum += call(i, n);\n    return sum;\n",
        "    if (n > 1) {\n"
        "        other(n);\n"
        "    } else {\n"
        "        n = more(n - 1, \"a } b\");\n"
        "    }\n"
        "    return n;\n",
        "    return n ? deep(n) : call(0, 1);\n", "    int sum = ;\n    return sum;\n", "    if (n {\n"};
    code_grammars *g = grammars_or_skip("c");
    code_kept *kept = NULL;
    uint32_t which[FUNCTIONS] = {0}, n_compared = 0;
    uint64_t random = 88172645463325252u;
    for (int step = 0; step < STEPS; step++) {
        base_buf text = {0};
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        for (int i = 0; i < FUNCTIONS && step % 4 == 3; i++)
            if (which[i] > 3) which[i] = 1; /* what was broken is mended */
        which[random % FUNCTIONS] = (uint32_t)(random / 64 % 6);
        for (int i = 0; i < FUNCTIONS; i++)
            if (which[i])
                base_buf_printf(&text, "static int f%d(int n)\n{\n%s}\n\n", i, bodies[which[i] - 1]);
        base_buf_puts(&text, "int last;\n");
        code_file *edited = code_parse_edited(g, "a.c", text.data, text.len, &kept);
        code_file *afresh = code_parse(g, "a.c", text.data, text.len);
        if (afresh->n_errors == 0 && edited->n_errors == 0) {
            same_reading(edited, afresh, step);
            n_compared++;
        }
        code_file_free(edited);
        code_file_free(afresh);
        base_buf_free(&text);
    }
    assert_true(n_compared > STEPS / 4);
    code_kept_free(kept);
    code_grammars_close(g);
}

static void test_parse__hostile_shapes(void **state)
{
    enum { DEPTH = 50000 };
    code_grammars *g = grammars_or_skip("c");
    char *text = test_malloc(2 * DEPTH + 64);
    const size_t head = (size_t)sprintf(text, "int f(void) { return ");
    for (size_t i = 0; i < DEPTH; i++) text[head + i] = i % 70 == 69 ? '\n' : '(';
    strcpy(text + head + DEPTH, "; }\n");
    code_file *f = code_parse(g, "deep.c", text, strlen(text));
    for (uint32_t i = 0; i < f->n_anchors; i++) assert_true(f->anchors[i].full_to <= strlen(text));
    code_file_free(f);
    memset(text, 'a', DEPTH);
    text[DEPTH] = '\0';
    f = code_parse(g, "min.js", text, DEPTH);
    assert_null(f->language);
    code_file_free(f);
    f = code_parse(g, "empty.c", "", 0);
    assert_int_equal(f->n_definitions, 0);
    code_file_free(f);
    test_free(text);
    code_grammars_close(g);
}

/* The list behind `name`, as text between bars; what was parsed before is used again only for the same bytes. */
static void check_items(code_grammars *g, const char *text, const char *name, const char *expected)
{
    code_item_list list;
    base_buf found = {0};
    const uint32_t at = (uint32_t)(strstr(text, name) - text + strlen(name));
    assert_true(code_items(g, "a.c", text, strlen(text), at, &list));
    for (uint32_t i = 0; i < list.n; i++)
        base_buf_printf(
            &found, "%.*s|", (int)(list.items[i].to - list.items[i].from), text + list.items[i].from);
    assert_string_equal(found.data, expected);
    base_buf_free(&found);
    free(list.items);
}

static void test_parse__items_are_those_of_the_text(void **state)
{
    code_grammars *g = grammars_or_skip("c");
    char text[] = "int add(int a, int b)\n{\n    return a + b;\n}\nint low(int c)\n{\n    return c;\n}\n";
    for (int i = 0; i < 2; i++) {
        check_items(g, text, "add", "int a|int b|");
        check_items(g, text, "low", "int c|");
    }
    memcpy(strstr(text, ", int b"), "/* b */", 7); /* as many bytes */
    check_items(g, text, "add", "int a/* b */|");
    for (int i = 0; i < 6; i++) { /* more texts than are kept */
        text[4] = (char)('p' + i);
        check_items(g, text, "dd", "int a/* b */|");
    }
    code_grammars_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse__c_definitions),
        cmocka_unit_test(test_parse__c_anchors),
        cmocka_unit_test(test_parse__what_stands_under_if_0_is_no_definition),
        cmocka_unit_test(test_parse__python_decorators_and_methods),
        cmocka_unit_test(test_parse__javascript_functions_as_values),
        cmocka_unit_test(test_parse__go_rust_cpp_parents),
        cmocka_unit_test(test_parse__other_languages),
        cmocka_unit_test(test_parse__a_scanner_that_sets_nothing_begins_outside_of_strings),
        cmocka_unit_test(test_parse__fields_of_types),
        cmocka_unit_test(test_parse__rust_tail_expression_returns),
        cmocka_unit_test(test_parse__broken_code_reports_its_line),
        cmocka_unit_test(test_parse__a_statement_of_go_outside_of_functions_is_an_error),
        cmocka_unit_test(test_parse__an_edit_reads_as_afresh),
        cmocka_unit_test(test_parse__items_are_those_of_the_text),
        cmocka_unit_test(test_parse__hostile_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
