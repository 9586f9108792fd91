/* Names that nothing binds are found, and those that a language binds in its many ways are not. */
#include "support.h"

#include "base/buf.h"
#include "code/free_names.h"
#include "code/unbound.h"

static const struct {
    const char *path, *text, *names; /* names: joined by spaces */
} cases[] = {
    {"a.py", "def f(a):\n    return g(a, b=c)\n", "g c"},
    {"a.py", "import os.path as p, sys\nfrom x import (y, z as w)\n\ndef f():\n    return p, sys, y, w, z\n",
        "z"},
    {"a.py", "def f(a, *b, c=1, **d):\n    e = [x for x in a if x]\n    return a, b, c, d, e, x\n", "x"},
    {"a.py",
        "def f(n):\n    with open(n) as (a, [b, *c]), n as d:\n        pass\n    for i, (j, k) in n:\n"
        "        pass\n    try:\n        pass\n    except OSError as e:\n        print(e)\n"
        "    if (m := n):\n        pass\n    return a, b, c, d, i, j, k, m, lambda q: q\n",
        ""},
    {"a.py", "def f():\n    global late\n    late = 1\n\ndef g():\n    return late, __file__, len\n", ""},
    {"a.py", "class A:\n    x = 1\n    y = x\n\n    def f(self):\n        return self.z, x\n", "x"},
    {"a.py", "def f(n):\n    match n:\n        case A(b, c=d) | [b, d]:\n            return b, d\n", ""},
    {"a.py", "from os import *\n\ndef f():\n    return getcwd(), nothing\n", ""},
    {"a.py", "def f(:\n    return g\n", ""},
    {"a.js", "import {a as b} from 'x';\nexport function f({c, d: e}, ...r) { return [b, c, e, r, d, a]; }\n",
        "d a"},
    {"a.js",
        "const {a, b} = require('x');\nclass C { #p = a; m() { return this.#p + b.q + this.r; } }\n"
        "for (const k in a) { let v = k; v++; }\ntry { a(); } catch (err) { a(err); }\n"
        "if (typeof other !== 'undefined') label: for (;;) break label;\n"
        "module.exports = {C, key: a, short, fn() { return arguments; }};\n",
        "short"},
    {"a.js", "function f() { return shared; }\n", ""}, /* a script that others are loaded beside */
    {"a.c", "int f(void)\n{\n    return g();\n}\n", ""},
    {"a.c",
        "#define N 3\n#ifdef other\n#endif\nstatic int all;\ntypedef struct s { int a; } s;\n"
        "int f(s *p, int (*call)(int))\n{\n    int i = 0;\n    for (int k = 0; k < n; k++) i += p->a;\n"
        "    if (!g(late)) goto out;\nout:\n    return all + i + call(k) + (int)sizeof(*p);\n}\n",
        "n late k"},
};

static void test_unbound(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        code_grammars *g = grammars_or_skip(strstr(cases[i].path, ".py")   ? "python"
                                            : strstr(cases[i].path, ".js") ? "javascript"
                                                                           : "c");
        const char *text = cases[i].text;
        uint32_t at[CODE_MAX_UNBOUND];
        const uint32_t n = code_unbound(g, cases[i].path, text, strlen(text), 0, (uint32_t)strlen(text), at);
        base_buf names = {0};
        for (uint32_t k = 0; k < n; k++) {
            size_t pos = at[k], from, to;
            assert_true(code_next_identifier(text, strlen(text), &pos, &from, &to));
            base_buf_printf(&names, "%s%.*s", k ? " " : "", (int)(to - from), text + from);
        }
        if (strcmp(names.data ? names.data : "", cases[i].names) != 0)
            fail_msg("%s\ngave \"%s\" and not \"%s\"", text, names.data, cases[i].names);
        base_buf_free(&names);
        code_grammars_close(g);
    }
}

/* Only what stands in the bytes that are asked about. */
static void test_unbound__of_a_part(void **state)
{
    static const char text[] = "def f():\n    return x\n\ndef g():\n    return y\n";
    code_grammars *g = grammars_or_skip("python");
    uint32_t at[CODE_MAX_UNBOUND];
    const uint32_t from = (uint32_t)(strstr(text, "def g") - text);
    assert_int_equal(code_unbound(g, "a.py", text, sizeof text - 1, from, sizeof text - 1, at), 1);
    assert_int_equal(text[at[0]], 'y');
    code_grammars_close(g);
}

/* What a piece takes from around it: no members, keys, parameters or types of its own; what the file sets again is told. */
static void test_free_names(void **state)
{
    static const char text[] =
        "import { T } from './t';\nlet n = 0;\nconst K = 1;\n"
        "function f<U>(a: T, { b: c = K }: any): U {\n  const d = { K: 1, g };\n  n++;\n  return h(a.K, c, d) as U;\n}\n"
        "function g() { return n; }\n";
    const char *from = strstr(text, "function f"), *to = strstr(text, "function g");
    code_grammars *g = grammars_or_skip("typescript");
    code_free_name *all;
    const uint32_t n = code_free_names(
        g, "a.ts", text, sizeof text - 1, (uint32_t)(from - text), (uint32_t)(to - text), &all);
    base_buf names = {0};
    for (uint32_t i = 0; i < n; i++)
        base_buf_printf(&names, "%s%s%s ", all[i].name, all[i].is_bound ? "" : "?", all[i].is_set ? "!" : "");
    assert_string_equal(names.data, "T K g n! h? ");
    assert_true(code_binds_top(g, "a.ts", text, sizeof text - 1, "T"));
    assert_false(code_binds_top(g, "a.ts", text, sizeof text - 1, "d"));
    code_free_names_free(all, n);
    base_buf_free(&names);
    code_grammars_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unbound), cmocka_unit_test(test_free_names),
        cmocka_unit_test(test_unbound__of_a_part)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
