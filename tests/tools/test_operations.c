/* Operations of refactor as tables: a call, the files in front of it and what they are afterwards; and what is refused, with why. */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static void test_operations__keyword_only(void **state)
{
    static const operation_case done[] = {
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"*, b\"}", "2 calls",
            {{"a.py", "def f(a, b=1, c=2):\n    return a + b + c\n\n\nprint(f(1, 2, 3), f(1, c=2))\n",
                "def f(a, *, b=1, c=2):\n    return a + b + c\n\n\nprint(f(1, b=2, c=3), f(1, c=2))\n"}}},
        /* methods, with their object in front and without; a call that nobody can read is left and said */
        {"{\"operation\":\"signature\",\"name\":\"C.f\",\"parameter\":\"*, b\"}",
            "Left, look at them: a.py:7",
            {{"a.py",
                "class C:\n    def f(self, b):\n        return b\n\n\nx = C.f(C(), 2)\ny = C.f(*x)\nz = C().f(3)\n",
                "class C:\n    def f(self, *, b):\n        return b\n\n\nx = C.f(C(), b=2)\ny = C.f(*x)\nz = C().f(b=3)\n"}}},
    };
    static const operation_case refused[] = {
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"*, b\"}",
            "only its name gives it already", {{"a.py", "def f(a, *, b):\n    return b\n"}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"*, b\"}",
            "a * stands behind it already", {{"a.py", "def f(b, *rest):\n    return b\n"}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"*, x\"}", "no parameter of that name",
            {{"a.py", "def f(b):\n    return b\n"}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"*, b\"}", "are Python's",
            {{"a.go", "package a\n\nfunc f(b int) int { return b }\n"}}},
    };
    DONE(done);
    REFUSED(refused);
}

static void test_operations__several_move_together(void **state)
{
    static const operation_case done[] = {
        /* they use each other and nothing that stays: one after the other each would be refused */
        {"{\"operation\":\"move\",\"name\":\"parse_a\",\"with\":\"parse_b, LIMIT\",\"to\":\"parse.py\"}",
            "moved parse_a, parse_b and LIMIT from a.py to parse.py",
            {{"a.py",
                 "import re\nimport os\n\nLIMIT = 3\n\n\ndef parse_a(s):\n    return parse_b(s) if s else re.escape(s)\n\n\ndef other():\n    return parse_a(os.sep)\n\n\ndef parse_b(s):\n    return parse_a(s[LIMIT:])\n",
                 "import os\nfrom parse import parse_a\n\n\ndef other():\n    return parse_a(os.sep)\n"},
                {"parse.py", NULL,
                    "import re\n\n\nLIMIT = 3\n\n\ndef parse_a(s):\n    return parse_b(s) if s else re.escape(s)\n\n\ndef parse_b(s):\n    return parse_a(s[LIMIT:])\n"},
                {"b.py", "from a import other, parse_a, parse_b\n\nprint(parse_a, parse_b, other)\n",
                    "from parse import parse_a, parse_b\nfrom a import other\n\nprint(parse_a, parse_b, other)\n"},
                {"c.py",
                    "def f():\n    from a import (\n        parse_b,\n        parse_a as pa,\n    )\n    return pa(parse_b)\n",
                    "def f():\n    from parse import parse_b, parse_a as pa\n    return pa(parse_b)\n"}}},
        /* an import of the function's own is no import of the file */
        {"{\"operation\":\"move\",\"name\":\"f\",\"to\":\"d.py\"}", "moved function f from a.py to d.py",
            {{"a.py",
                 "import re, os, io  # three\nimport abc\nimport json\n\n\ndef f(s):\n    import sys\n    return re.escape(s), sys, json, abc, io, os\n\n\ndef g():\n    return f(abc, io, os)\n",
                 "import re, os, io  # three\nimport abc\nfrom d import f\n\n\ndef g():\n    return f(abc, io, os)\n"},
                {"d.py", NULL,
                    "import re\nimport os\nimport io\nimport abc\nimport json\n\n\ndef f(s):\n    import sys\n    return re.escape(s), sys, json, abc, io, os\n"}}},
        {"{\"operation\":\"move\",\"name\":\"f\",\"to\":\"d.py\"}", "moved function f from a.py to d.py",
            {{"a.py",
                 "import os, re\n\n\ndef f(s):\n    return re.escape(s)\n\n\ndef g():\n    return f(os.sep)\n",
                 "import os\nfrom d import f\n\n\ndef g():\n    return f(os.sep)\n"},
                {"d.py", NULL, "import re\n\n\ndef f(s):\n    return re.escape(s)\n"}}},
        {"{\"operation\":\"move\",\"name\":\"f\",\"to\":\"d.py\"}", "moved function f from a.py to d.py",
            {{"a.py", "import re\n\n\ndef f(s):\n    return re.escape(s)\n\n\ndef g():\n    return f(1)\n",
                 "from d import f\n\n\ndef g():\n    return f(1)\n"},
                {"d.py", NULL, "import re\n\n\ndef f(s):\n    return re.escape(s)\n"}}},
        /* the new place imported it until now: alone, among others, by another name and inside of a function */
        {"{\"operation\":\"move\",\"name\":\"f\",\"to\":\"d.py\"}", "moved function f from a.py to d.py",
            {{"a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n", "def g():\n    return 2\n"},
                {"d.py",
                    "import os\nfrom a import f, g\nfrom a import f as one\n\n\ndef h():\n    from a import f\n    return f() + g()\n",
                    "import os\nfrom a import g\n\n\ndef h():\n    pass\n    return f() + g()\n\n\ndef f():\n    return 1\n\n\none = f\n"}}},
        {"{\"operation\":\"move\",\"name\":\"f\",\"to\":\"d.py\"}", "moved function f from a.py to d.py",
            {{"a.py", "import re\n\n\ndef f():\n    return re.sub\n\n\ndef g():\n    return 2\n",
                 "def g():\n    return 2\n"},
                {"d.py", "from a import f\n\n\ndef h():\n    return f()\n",
                    "import re\n\n\ndef h():\n    return f()\n\n\ndef f():\n    return re.sub\n"}}},
        /* Go: methods go with their type, the import that only they used too */
        {"{\"operation\":\"move\",\"name\":\"KeyError\",\"with\":\"MultiError\",\"to\":\"errors.go\"}",
            "KeyError and MultiError",
            {{"a.go",
                 "package a\n\nimport (\n\t\"errors\"\n\t\"fmt\"\n\t\"os\"\n)\n\nvar bad = errors.New(\"bad\")\n\nfunc f() { os.Exit(1) }\n\n// KeyError tells of a key.\ntype KeyError struct{ Key string }\n\nfunc (e KeyError) Error() string { return fmt.Sprint(e.Key) }\n\nfunc g() error { return KeyError{\"x\"} }\n\ntype MultiError []error\n\nfunc (e MultiError) Error() string { return \"many\" } // no errors.New\n\nfunc (e MultiError) merge(errors MultiError) int { return len(errors) }\n",
                 "package a\n\nimport (\n\t\"errors\"\n\t\"os\"\n)\n\nvar bad = errors.New(\"bad\")\n\nfunc f() { os.Exit(1) }\n\nfunc g() error { return KeyError{\"x\"} }\n"},
                {"errors.go", NULL,
                    "package a\n\nimport \"fmt\"\n\n// KeyError tells of a key.\ntype KeyError struct{ Key string }\n\nfunc (e KeyError) Error() string { return fmt.Sprint(e.Key) }\n\ntype MultiError []error\n\nfunc (e MultiError) Error() string { return \"many\" } // no errors.New\n\nfunc (e MultiError) merge(errors MultiError) int { return len(errors) }\n"}}},
        {"{\"operation\":\"move\",\"name\":\"one\",\"with\":\"two\",\"to\":\"b.c\"}", "one and two",
            {{"a.c",
                 "#include \"a.h\"\n\nint zero(void) { return 0; }\n\nint one(void) { return two(); }\n\nstatic int two(void) { return 2; }\n",
                 "#include \"a.h\"\n\nint zero(void) { return 0; }\n"},
                {"a.h", "int zero(void);\nint one(void);\n"},
                {"b.c", NULL,
                    "#include \"a.h\"\n\nint one(void) { return two(); }\n\nstatic int two(void) { return 2; }\n"}}},
    };
    static const operation_case refused[] = {
        {"{\"operation\":\"move\",\"name\":\"f\",\"with\":\"g\",\"to\":\"c.py\"}",
            "together go definitions of one file",
            {{"a.py", "def f():\n    return 1\n"}, {"b.py", "def g():\n    return 1\n"}}},
        {"{\"operation\":\"move\",\"name\":\"f\",\"with\":\"g\",\"to\":\"c.py\"}",
            "c.py:1 defines a g already",
            {{"a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n"},
                {"c.py", "def g():\n    return 1\n"}}},
        {"{\"operation\":\"move\",\"name\":\"f\",\"with\":\"C.g\",\"to\":\"c.py\"}",
            "does not stand at the top",
            {{"a.py", "def f():\n    return 1\n\n\nclass C:\n    def g(self):\n        return 2\n"}}},
    };
    DONE(done);
    REFUSED(refused);
}

/* An import inside of a function is one: what it brings means the definition, in Python and in JavaScript. */
static void test_operations__imports_in_functions(void **state)
{
    static const operation_case done[] = {
        {"{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"g\"}", NULL,
            {{"a.py", "def f():\n    return 1\n", "def g():\n    return 1\n"},
                {"b.py", "def x():\n    from a import f\n    return f()\n\n\ndef y(f):\n    return f()\n",
                    "def x():\n    from a import g\n    return g()\n\n\ndef y(f):\n    return f()\n"}}},
        {"{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"g\"}", NULL,
            {{"a.js", "function f() { return 1 }\nmodule.exports = { f }\n",
                 "function g() { return 1 }\nmodule.exports = { g }\n"},
                {"b.js", "function x() {\n  const { f } = require('./a')\n  return f()\n}\n",
                    "function x() {\n  const { g } = require('./a')\n  return g()\n}\n"}}},
    };
    DONE(done);
}

#define INLINE(name) "{\"operation\":\"inline\",\"name\":\"" name "\"}"

static void test_operations__a_function_is_inlined(void **state)
{
    static const operation_case cases[] = {
        /* parentheses where an operator asks for them, of the value and of what is given */
        {INLINE("area"), "into its 3 calls",
            {{"a.py",
                "import os\n\n\ndef area(w, h=2):\n    \"\"\"The area.\"\"\"\n    return w * h + 1\n\n\ndef f(a, b):\n    x = area(a + b)\n    return area(h=b, w=a) * 2 + len(str(area(a.b, os.sep)))\n",
                "import os\n\n\ndef f(a, b):\n    x = (a + b) * 2 + 1\n    return (a * b + 1) * 2 + len(str(a.b * os.sep + 1))\n"}}},
        {INLINE("area"), NULL,
            {{"a.py", "def area(w):\n    return w * 2\n", ""},
                {"b.py", "from a import area\n\n\ndef g(x):\n    return -area(g(x))\n",
                    "\n\ndef g(x):\n    return -(g(x) * 2)\n"}}},
        /* a method: its object; statements in front of the one that calls it */
        {INLINE("Box.has"), NULL,
            {{"a.go",
                "package a\n\ntype Box struct{ m map[string]int }\n\nfunc (b *Box) has(k string) bool {\n\t_, ok := b.m[k]\n\treturn ok\n}\n\nfunc (x *Box) get(k string) int {\n\tif !x.has(k) {\n\t\treturn 0\n\t}\n\treturn x.m[k]\n}\n",
                "package a\n\ntype Box struct{ m map[string]int }\n\nfunc (x *Box) get(k string) int {\n\t_, ok := x.m[k]\n\tif !ok {\n\t\treturn 0\n\t}\n\treturn x.m[k]\n}\n"}}},
        {INLINE("clear"), NULL,
            {{"a.c",
                "struct s { int a, b; };\n\nstatic void clear(struct s *p, int v)\n{\n    p->a = v;\n    p->b = v; /* both */\n}\n\nvoid f(struct s *x, int n)\n{\n    if (n) {\n        clear(x, n - 1);\n    }\n}\n",
                "struct s { int a, b; };\n\nvoid f(struct s *x, int n)\n{\n    if (n) {\n        x->a = (n - 1);\n        x->b = (n - 1); /* both */\n    }\n}\n"}}},
        {INLINE("twice"), NULL,
            {{"a.js",
                "function twice(n) {\r\n\treturn n + n\r\n}\r\n\r\nfunction f(a) {\r\n\treturn twice(a) * 3\r\n}\r\n",
                "function f(a) {\r\n\treturn (a + a) * 3\r\n}\r\n"}}},
    };
    DONE(cases);
}

static void test_operations__what_cannot_be_inlined(void **state)
{
    static const operation_case cases[] = {
        {INLINE("twice"), "would run more or less than once",
            {{"a.py", "def twice(n):\n    return n + n\n\n\nx = twice(next(y))\n"}}},
        {INLINE("first"), "would not run any more",
            {{"a.py", "def first(n, m):\n    return n\n\n\nx = first(1, next(y))\n"}}},
        {INLINE("both"), "would run more or less than once",
            {{"a.py", "def both(n, m):\n    return n and m\n\n\nx = both(1, next(y))\n"}}},
        {INLINE("sub"), "in another order",
            {{"a.py", "def sub(n, m):\n    return m - n\n\n\nx = sub(next(y), next(y))\n"}}},
        {INLINE("f"), "in several places",
            {{"a.py", "def f(n):\n    if n:\n        return 1\n    return 2\n\n\nx = f(3)\n"}}},
        {INLINE("f"), "it calls itself", {{"a.py", "def f(n):\n    return f(n - 1)\n\n\nx = f(3)\n"}}},
        {INLINE("f"), "changes its parameter n",
            {{"a.py", "def f(n):\n    n += 1\n    return n\n\n\ndef g():\n    x = f(3)\n    return x\n"}}},
        {INLINE("f"), "its caller has a k of its own",
            {{"a.py", "k = 1\n\n\ndef f(n):\n    return n + k\n\n\ndef g(k):\n    return f(k)\n"}}},
        {INLINE("f"), "does not see k",
            {{"a.py", "k = 1\n\n\ndef f(n):\n    return n + k\n"},
                {"b.py", "from a import f\n\n\ndef g():\n    return f(1)\n"}}},
        {INLINE("f"), "in another way than a call",
            {{"a.py", "def f(n):\n    return n\n\n\nx = map(f, [1])\n"}}},
        {INLINE("has"), "something else runs first",
            {{"a.go",
                "package a\n\nfunc has(m map[string]int, k string) bool {\n\t_, ok := m[k]\n\treturn ok\n}\n\nfunc f(m map[string]int, k string) int {\n\tif m != nil && has(m, k) {\n\t\treturn 1\n\t}\n\treturn 0\n}\n"}}},
        {INLINE("set"), "something else runs first",
            {{"a.c",
                "static int set(int *p)\n{\n    *p = 1;\n    return *p;\n}\n\nint f(int *x, int n)\n{\n    if (n)\n        n = set(x);\n    return n;\n}\n"}}},
        {INLINE("f"), "nothing calls it", {{"a.py", "def f(n):\n    return n\n"}}},
        {INLINE("f"), "it is decorated", {{"a.py", "@cached\ndef f(n):\n    return n\n\n\nx = f(1)\n"}}},
    };
    REFUSED(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations__keyword_only),
        cmocka_unit_test(test_operations__several_move_together),
        cmocka_unit_test(test_operations__imports_in_functions),
        cmocka_unit_test(test_operations__a_function_is_inlined),
        cmocka_unit_test(test_operations__what_cannot_be_inlined),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "operations");
}
