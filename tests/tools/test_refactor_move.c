/*
 * Moves to another file: what goes along, what stays, and the imports and exports on both sides.
 */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void test_refactor_move__takes_exports_along(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "from .total import add_up, twice\n\n__all__ = ['add_up', 'twice']\n");
    tree_put(&t, "shop/total.py",
        "__all__ = ['add_up', 'twice']\n\n\n"
        "def add_up(prices):\n"
        "    return sum(prices)\n\n\n"
        "def twice(x):\n"
        "    return 2 * x\n");
    tree_put(&t, "shop/sums.py",
        "__all__ = [\n    \"zero\",\n    \"one\",\n]\n\n\ndef zero():\n    return 0\n\n\n"
        "def one():\n    return 1\n");
    /* A package that is called as the source is, and hands the name on. */
    tree_put(&t, "total/__init__.py", "from shop.total import add_up\n");
    tree_put(&t, "main.py", "from shop import add_up\n\nprint(add_up([1]))\n");
    tree_put(&t, "far.py", "from total import add_up\n\nprint(add_up([1]))\n");
    tree_open(&t);
    free(refactor_with(
        &t, "{\"operation\":\"move\",\"name\":\"shop/total.py:add_up\",\"to\":\"shop/sums.py\"}", TOOL_OK));
    expect(&t, "shop/total.py", "__all__ = ['twice']\n\n\ndef twice(x):\n    return 2 * x\n");
    expect(&t, "shop/sums.py",
        "__all__ = [\n"
        "    \"zero\",\n"
        "    \"one\",\n"
        "    \"add_up\",\n"
        "]\n\n\n"
        "def zero():\n"
        "    return 0\n\n\n"
        "def one():\n"
        "    return 1\n\n\n"
        "def add_up(prices):\n"
        "    return sum(prices)\n");
    expect(&t, "shop/__init__.py",
        "from .sums import add_up\nfrom .total import twice\n\n__all__ = ['add_up', 'twice']\n");
    expect(&t, "total/__init__.py", "from shop.sums import add_up\n");
    expect(&t, "main.py", "from shop import add_up\n\nprint(add_up([1]))\n");
    expect(&t, "far.py", "from total import add_up\n\nprint(add_up([1]))\n");
    tree_put(&t, "shop/all.py", "from .total import *\n\nprint(twice(1))\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"move\",\"name\":\"twice\",\"to\":\"shop/sums.py\"}", TOOL_REFUSED,
        "shop/all.py takes twice with an import of *");
    /* Who takes all of the new module too has it still. */
    tree_put(&t, "shop/more.py", "def four():\n    return 4\n");
    tree_put(&t, "shop/all.py", "from .total import *\nfrom .more import *\n\nprint(twice(1))\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"twice\",\"to\":\"shop/more.py\"}", TOOL_OK));
    tree_remove(&t);
}

/* A file is named as a person does: by the end of its path, and a new one without its folder. */
static void test_refactor_move__finds_the_file_that_is_meant(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "src/shop/__init__.py", "");
    tree_put(&t, "src/shop/total.py",
        "import os\n"
        "from .sums import none\n\n\n"
        "def add_up(a):\n"
        "    return a + none()\n\n\n"
        "def twice(a):\n"
        "    return 2 * a\n");
    tree_put(&t, "src/shop/sums.py", "def none():\n    return 0\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"add_up\",\"to\":\"sums.py\"}", TOOL_OK));
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"twice\",\"to\":\"more.py\"}", TOOL_OK));
    char *sums = tree_get(&t, "src/shop/sums.py"), *more = tree_get(&t, "src/shop/more.py");
    assert_contains(sums, "def add_up(a):");
    assert_true(!strstr(sums, "import")); /* of what it has itself */
    assert_contains(more, "def twice(a):");
    free(sums);
    free(more);
    tree_remove(&t);
}

static void test_refactor_move__takes_what_is_needed(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "");
    tree_put(&t, "shop/total.py",
        "import math\n"
        "import os\n\n\n"
        "# Adds.\n"
        "def add_up(prices):\n"
        "    return math.fsum(prices)\n\n\n"
        "def twice(prices):\n"
        "    return 2 * add_up(prices)\n");
    tree_put(&t, "main.py", "from shop.total import add_up, twice\n\nprint(add_up([1]), twice([2]))\n");
    tree_put(&t, "late.py",
        "\"\"\"Says when.\"\"\"\n\n"
        "from __future__ import annotations\n\n\n"
        "def late(x):\n"
        "    return x\n\n\n"
        "def soon():\n"
        "    return late(1)\n");
    tree_put(&t, "go.mod", "module example.com/x\n");
    tree_put(&t, "f.go",
        "package x\n\n"
        "import (\n"
        "\t\"fmt\"\n"
        "\t\"strings\"\n"
        ")\n\n"
        "func Up(s string) string {\n"
        "\treturn strings.ToUpper(s)\n"
        "}\n\n"
        "func Say() {\n"
        "\tfmt.Println(Up(\"a\"))\n"
        "}\n");
    tree_put(&t, "m.c",
        "#include <stdio.h>\n\n"
        "static int own(void)\n"
        "{\n"
        "    return 1;\n"
        "}\n\n"
        "int free_one(int x)\n"
        "{\n"
        "    return x;\n"
        "}\n\n"
        "int bound(void)\n"
        "{\n"
        "    return own() + free_one(1);\n"
        "}\n\n"
        "int other(void)\n"
        "{\n"
        "    return own();\n"
        "}\n");
    tree_put(&t, "n.c", "#include <stdlib.h>\n\nint n;\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"add_up\",\"to\":\"shop/sums.py\"}", TOOL_OK));
    expect(
        &t, "shop/sums.py", "import math\n\n\n# Adds.\ndef add_up(prices):\n    return math.fsum(prices)\n");
    expect(&t, "shop/total.py",
        "import os\n"
        "from .sums import add_up\n\n\n"
        "def twice(prices):\n"
        "    return 2 * add_up(prices)\n");
    expect(&t, "main.py",
        "from shop.sums import add_up\nfrom shop.total import twice\n\nprint(add_up([1]), twice([2]))\n");
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"late\",\"to\":\"later.py\"}", TOOL_OK));
    expect(&t, "late.py",
        "\"\"\"Says when.\"\"\"\n\n"
        "from __future__ import annotations\n"
        "from later import late\n\n\n"
        "def soon():\n"
        "    return late(1)\n");
    expect(&t, "later.py", "from __future__ import annotations\n\n\ndef late(x):\n    return x\n");
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"Up\",\"to\":\"up.go\"}", TOOL_OK));
    expect(&t, "up.go",
        "package x\n\nimport \"strings\"\n\nfunc Up(s string) string {\n\treturn strings.ToUpper(s)\n}\n");
    expect(&t, "f.go", "package x\n\nimport (\n\t\"fmt\"\n)\n\nfunc Say() {\n\tfmt.Println(Up(\"a\"))\n}\n");
    refuses(&t, "{\"operation\":\"move\",\"name\":\"bound\",\"to\":\"n.c\"}", TOOL_REFUSED, "uses own");
    refuses(&t, "{\"operation\":\"move\",\"name\":\"bound\",\"to\":\"x.py\"}", TOOL_REFUSED,
        "no file of that language");
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"free_one\",\"to\":\"n.c\"}", TOOL_OK));
    expect(&t, "n.c",
        "#include <stdlib.h>\n#include <stdio.h>\n\nint n;\n\nint free_one(int x)\n{\n    return x;\n}\n");
    expect(&t, "m.c",
        "#include <stdio.h>\n"
        "int free_one(int x);\n\n"
        "static int own(void)\n"
        "{\n"
        "    return 1;\n"
        "}\n\n"
        "int bound(void)\n"
        "{\n"
        "    return own() + free_one(1);\n"
        "}\n\n"
        "int other(void)\n"
        "{\n"
        "    return own();\n"
        "}\n");
    tree_remove(&t);
}

/* "keep": the old place imports back what went, also what nothing there uses, and never in a circle. */
static void test_refactor_move__keeps_the_old_place(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "from .page import *\n");
    tree_put(&t, "shop/page.py",
        "\"\"\"Pages.\"\"\"\n\nimport re\n\n__all__ = ['strip', 'title']\nBLANK = ' '\n\n\n"
        "def strip(text):\n    return text.strip(BLANK)\n\n\ndef plain(text):\n    return re.sub('!', '', text)\n\n\n"
        "def loud(text):\n    return own(text)\n\n\ndef own(text):\n    return text\n\n\n"
        "def title(text):\n    return plain(text) + BLANK + own(text)\n");
    tree_put(&t, "shop/words.py", "def word():\n    return 1\n");
    tree_put(&t, "m.c", "int far(void)\n{\n    return 1;\n}\n");
    tree_put(&t, "n.c", "int n;\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"move\",\"name\":\"loud\",\"to\":\"shop/words.py\",\"keep\":true}",
        TOOL_REFUSED, "the old place is to hand on what goes");
    char *said = refactor_with(&t,
        "{\"operation\":\"move\",\"name\":\"strip\",\"with\":\"plain\",\"to\":\"shop/words.py\",\"keep\":true}",
        TOOL_OK);
    assert_contains(said, "shop/page.py imports it back: importing it from there goes on working.");
    free(said);
    expect(&t, "shop/page.py",
        "\"\"\"Pages.\"\"\"\n\nfrom .words import plain, BLANK\nfrom .words import strip  # noqa: F401\n\n"
        "__all__ = ['strip', 'title']\n\n\n"
        "def loud(text):\n    return own(text)\n\n\ndef own(text):\n    return text\n\n\n"
        "def title(text):\n    return plain(text) + BLANK + own(text)\n");
    said =
        refactor_with(&t, "{\"operation\":\"move\",\"name\":\"far\",\"to\":\"n.c\",\"keep\":true}", TOOL_OK);
    assert_contains(said, "What declares it declares it as before.");
    free(said);
    tree_remove(&t);
}

/* What only the moved definition uses goes along by itself; what others use stays, and is imported where the language can. */
static void test_refactor_move__takes_along_what_nothing_else_uses(void **state)
{
    static const char page[] = "import re\n\n"
                               "MARK = r'[!#]'\n"
                               "WIDE = 3\n"
                               "_ESCAPE_RE = re.compile(MARK)\n\n\n"
                               "def unescape(text):\n"
                               "    return _ESCAPE_RE.sub('', text)\n\n\n"
                               "def title(text):\n"
                               "    return unescape(text) + MARK\n";
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "");
    tree_put(&t, "shop/page.py", page);
    tree_put(&t, "shop/part.py",
        "LEFT = 1\n_RIGHT = 2\n\n\ndef both():\n    return LEFT + _RIGHT\n\n\ndef left():\n    return LEFT\n");
    tree_put(&t, "shop/loud.py",
        "VOLUME = 1\n\n\ndef louder():\n    global VOLUME\n    VOLUME += volume()\n\n\n"
        "def volume():\n    return VOLUME\n");
    tree_put(&t, "shop/words.py", "import os\n\n\ndef word():\n    return os.sep\n");
    tree_put(&t, "main.py", "from shop.page import MARK, unescape\n\nprint(unescape(MARK))\n");
    tree_put(&t, "m.c",
        "#include <stdio.h>\n\n"
        "#define MOST 3\n"
        "#define LEAST 1\n\n"
        "static int own(void)\n{\n    return MOST;\n}\n\n"
        "int bound(void)\n{\n    return own();\n}\n\n"
        "int least(void)\n{\n    return LEAST;\n}\n\n"
        "int both(void)\n{\n    return LEAST;\n}\n");
    tree_put(&t, "n.c", "int n;\n");
    tree_open(&t);
    /* The modules would import each other: constants go that others use, and come back by an import. */
    char *said =
        refactor_with(&t, "{\"operation\":\"move\",\"name\":\"unescape\",\"to\":\"shop/words.py\"}", TOOL_OK);
    assert_contains(said, "moved unescape, ");
    free(said);
    expect(&t, "shop/words.py",
        "import os\n"
        "import re\n\n\n"
        "def word():\n"
        "    return os.sep\n\n\n"
        "MARK = r'[!#]'\n\n\n"
        "_ESCAPE_RE = re.compile(MARK)\n\n\n"
        "def unescape(text):\n"
        "    return _ESCAPE_RE.sub('', text)\n");
    expect(&t, "shop/page.py",
        "from .words import unescape, MARK\n\n"
        "WIDE = 3\n\n\n"
        "def title(text):\n"
        "    return unescape(text) + MARK\n");
    expect(&t, "main.py", "from shop.words import MARK, unescape\n\nprint(unescape(MARK))\n");
    /* What is used elsewhere stays. */
    free(refactor_with(&t,
        "{\"operation\":\"move\",\"name\":\"both\",\"path\":\"shop/part.py\",\"to\":\"shop/sum.py\"}",
        TOOL_OK));
    expect(&t, "shop/sum.py",
        "from .part import LEFT\n\n\n_RIGHT = 2\n\n\ndef both():\n    return LEFT + _RIGHT\n");
    refuses(&t, "{\"operation\":\"move\",\"name\":\"volume\",\"to\":\"shop/words.py\"}", TOOL_REFUSED,
        "the two modules would import each other");
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"bound\",\"to\":\"n.c\"}", TOOL_OK));
    expect(&t, "n.c",
        "#include <stdio.h>\nint n;\n\n"
        "#define MOST 3\n\n"
        "static int own(void)\n{\n    return MOST;\n}\n\n"
        "int bound(void)\n{\n    return own();\n}\n");
    refuses(&t, "{\"operation\":\"move\",\"name\":\"least\",\"to\":\"n.c\"}", TOOL_REFUSED, "uses LEAST");
    tree_remove(&t);
}

/* What the new place imports already, in another line or in a try, it needs no more; an import in a try goes as the whole. */
static void test_refactor_move__imports_in_a_try(void **state)
{
    static const char sums[] = "import sys\n\n\ndef none():\n    return sys.maxsize\n";
    static const char kinds[] =
        "from typing import Any, Type\n\ntry:\n    from typing import origin\nexcept ImportError:\n"
        "    from old_typing import origin\n\n\ndef any_of(x: Any) -> Type:\n    return origin(x)\n";
    static const char moved[] = "\n\ndef orig(x: Type) -> Any:\n    return origin(x)\n";
    tree t;
    base_buf wanted = {0};
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "");
    tree_put(&t, "shop/total.py",
        "from typing import Any\nfrom typing import Type\ntry:\n    from typing import origin\nexcept ImportError:\n"
        "    from old_typing import origin\n\n\ndef orig(x: Type) -> Any:\n    return origin(x)\n\n\n"
        "def orig2(x: Type) -> Any:\n    return origin(x)\n");
    tree_put(&t, "shop/kinds.py", kinds);
    tree_put(&t, "shop/sums.py", sums);
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"orig\",\"to\":\"shop/kinds.py\"}", TOOL_OK));
    base_buf_printf(&wanted, "%s%s", kinds, moved);
    expect(&t, "shop/kinds.py", wanted.data);
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"orig2\",\"to\":\"shop/sums.py\"}", TOOL_OK));
    expect(&t, "shop/sums.py",
        "import sys\nfrom typing import Any\nfrom typing import Type\ntry:\n    from typing import origin\n"
        "except ImportError:\n    from old_typing import origin\n\n\ndef none():\n    return sys.maxsize\n\n\n"
        "def orig2(x: Type) -> Any:\n    return origin(x)\n");
    base_buf_free(&wanted);
    tree_remove(&t);
}

#define MOVE_F "{\"operation\":\"move\",\"name\":\"f\",\"to\":\"common.py\"}"

/* What several files define letter for letter the same goes to one place, and each of them imports it from there. */
static void test_refactor_move__takes_twins(void **state)
{
    static const operation_case done[] = {
        {MOVE_F, "b.py defined it letter for letter the same: gone too.",
            {{"a.py", "import os\n\n\ndef f(n):\n    return os.path.join(n)\n\n\nprint(f(1))\n",
                 "from common import f\n\n\nprint(f(1))\n"},
                {"b.py",
                    "import os\nimport sys\n\n\ndef f(n):\n    return os.path.join(n)\n\n\ndef g():\n    return f(sys.argv), os\n",
                    "import os\nimport sys\nfrom common import f\n\n\ndef g():\n    return f(sys.argv), os\n"},
                {"common.py", NULL, "import os\n\n\ndef f(n):\n    return os.path.join(n)\n"},
                {"use.py", "from a import f\nf(1)\n", "from common import f\nf(1)\n"},
                {"more.py", "from b import f, g\nf(g())\n",
                    "from common import f\nfrom b import g\nf(g())\n"},
                {"other.py", "class A:\n    def f(self):\n        return 1\n", NULL}}},
        {MOVE_F, NULL,
            {{"a.py", "def f(n):\n    return n\n\n\nprint(f(1))", "from common import f\n\n\nprint(f(1))"},
                {"b.py", "print(1)\n\n\ndef f(n):\n    return n  \n\n\nf(2)\n",
                    "from common import f\nprint(1)\n\n\nf(2)\n"},
                {"common.py", "A = 1\n", "A = 1\n\n\ndef f(n):\n    return n\n"}}},
        {MOVE_F, "common.py defines it already, letter for letter the same.",
            {{"a.py", "import os\n\n\ndef f(n):\n    return os.path.join(n)\n\n\nprint(f(1), os)\n",
                 "import os\nfrom common import f\n\n\nprint(f(1), os)\n"},
                {"common.py", "import os\n\n\ndef f(n):\n    return os.path.join(n)\n", NULL},
                {"d.py", "import os\n\n\ndef f(n):\n    return os.path.join(n)\n\n\nclass D:\n    pass\n",
                    "class D:\n    pass\n"},
                {"use.py", "from d import f\nfrom common import f as g\n",
                    "from common import f\nfrom common import f as g\n"}}},
        {MOVE_F, "moved function f from z.py to common.py: 1 file changed.",
            {{"common.py", "def f(n):\n    return n\n", NULL},
                {"z.py", "A = 1\n\n\ndef f(n):\n    return n\n\n\nf(A)\n",
                    "from common import f\nA = 1\n\n\nf(A)\n"}}}};
    static const operation_case differ[] = {
        {MOVE_F, "a.py:1 (function f), b.py:1 (function f), and they differ. Nothing was changed.",
            {{"a.py", "def f(n):\n    return n\n", NULL}, {"b.py", "def f(n):\n    return n + 1\n", NULL}}}};
    static const operation_case refused[] = {
        {MOVE_F, "a.py and b.py define f alike, but what it needs beside it differs.",
            {{"a.py", "from x import g\n\n\ndef f(n):\n    return g(n)\n", NULL},
                {"b.py", "from y import g\n\n\ndef f(n):\n    return g(n)\n", NULL}}},
        {MOVE_F, "a.py and common.py define f alike, but what it needs beside it differs.",
            {{"a.py", "from x import g\n\n\ndef f(n):\n    return g(n)\n", NULL},
                {"common.py", "from y import g\n\n\ndef f(n):\n    return g(n)\n", NULL}}},
        {MOVE_F, "both.py takes f from more than one",
            {{"a.py", "def f(n):\n    return n\n", NULL}, {"b.py", "def f(n):\n    return n\n", NULL},
                {"both.py", "from a import f\nfrom b import f as g\n", NULL}}}};
    DONE(done);
    run_cases(differ, 1, TOOL_FAILED);
    REFUSED(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refactor_move__takes_twins),
        cmocka_unit_test(test_refactor_move__takes_exports_along),
        cmocka_unit_test(test_refactor_move__finds_the_file_that_is_meant),
        cmocka_unit_test(test_refactor_move__takes_what_is_needed),
        cmocka_unit_test(test_refactor_move__imports_in_a_try),
        cmocka_unit_test(test_refactor_move__keeps_the_old_place),
        cmocka_unit_test(test_refactor_move__takes_along_what_nothing_else_uses),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "refactor_move");
}
