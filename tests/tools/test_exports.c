/* What hands a new definition out: lists and lines of exports, and the list in which a test of C is run. */
#include "tree.h"
#include "tools/edit/exports.h"
#include "tools/edit/register.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "has" stands in the list; "new" comes behind it. */
static void test_export_lists(void **state)
{
    static const struct {
        const char *language, *module, *text, *result; /* NULL: as it was */
    } cases[] = {
        {"python", "ansi", "from .ansi import Fore, has\n", "from .ansi import Fore, has, new\n"},
        {"python", "ansi", "from .ansi import has, Fore  # both\r\n",
            "from .ansi import has, new, Fore  # both\r\n"},
        {"python", "ansi", "from .ansi import (\n    Fore,\n    has,\n)\n__all__ = ['Fore', 'has']\n",
            "from .ansi import (\n    Fore,\n    has,\n    new,\n)\n__all__ = ['Fore', 'has', 'new']\n"},
        {"python", "ansi", "from pkg.ansi import (\r\n    has\r\n)\r\n",
            "from pkg.ansi import (\r\n    has,\r\n    new\r\n)\r\n"},
        {"python", NULL, "__all__ = [\n    \"has\",  # one\n]\n",
            "__all__ = [\n    \"has\",  # one\n    \"new\",\n]\n"},
        {"python", "ansi", "from .ansi import has as h\nfrom .other import has\nfrom .myansi import has\n",
            NULL},
        {"python", "ansi", "from .ansi import has, new\n", NULL},
        {"python", "ansi", "# from .ansi import has\ndef f():\n    from .ansi import has\n", NULL},
        {"python", "ansi", "from .ansi import has, \\\n    Fore\n", NULL},
        {"javascript", NULL, "module.exports = { has };\n", "module.exports = { has, new };\n"},
        {"javascript", NULL, "module.exports = {\n  a: a,\n  has: has,\n  z: z\n};\n",
            "module.exports = {\n  a: a,\n  has: has,\n  new: new,\n  z: z\n};\n"},
        {"javascript", NULL, "module.exports = {\n  a: has,\n  has: b\n};\nexport { a, has };\n",
            "module.exports = {\n  a: has,\n  has: b\n};\nexport { a, has, new };\n"},
        {"javascript", NULL, "export {\n  has, /* b,\n  c */\n  d\n}\n",
            "export {\n  has, new, /* b,\n  c */\n  d\n}\n"}, /* not into the comment */
        {"javascript", NULL, "export { has } from './a.js';\n", NULL},
        {"typescript", "ansi", "export {\n  has,\n  other,\n} from './lib/ansi';\n",
            "export {\n  has,\n  new,\n  other,\n} from './lib/ansi';\n"},
        {"javascript", "ansi", "export { has } from './ansi.js'\n", "export { has, new } from './ansi.js'\n"},
        {"javascript", "ansi", "export { has } from './other.js'\nexport { has } from './ansi", NULL},
        {"rust", "ansi", "mod ansi;\npub use crate::ansi::{has, Other};\nuse ansi::{has};\n",
            "mod ansi;\npub use crate::ansi::{has, new, Other};\nuse ansi::{has};\n"},
        {"rust", "ansi", "pub use ansi::{a::{has}};\npub use ansi::", NULL},
        {"typescript", "ansi", "export {\n  // those\n  has, other // both\n} from './ansi'\n",
            "export {\n  // those\n  has, new, other // both\n} from './ansi'\n"},
        {"python", "ansi", "from .ansi import (\n    other,\n    has  # one\n)\n",
            "from .ansi import (\n    other,\n    has,  # one\n    new\n)\n"},
        {"go", "ansi", "__all__ = ['has']\n", NULL},
        {"python", "ansi", "", NULL},
        {"python", "ansi", "__all__ = ['has'", NULL},
        {"python", "ansi", "from .ansi import ", NULL},
        {"python", "ansi", "from .ansi import (,\n    has\n", NULL},
        {"python", "ansi", "from .ansi import (, has\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf text = {0};
        base_buf_puts(&text, cases[i].text);
        const bool has_added = tool__export_name(cases[i].language, &text, cases[i].module, "has", "new");
        assert_string_equal(text.data ? text.data : "", cases[i].result ? cases[i].result : cases[i].text);
        assert_int_equal(has_added, cases[i].result != NULL);
        base_buf_free(&text);
    }
}

/* Where the request asks for it no neighbour is needed: it goes behind the last. */
static void test_exports__behind_the_last_on_request(void **state)
{
    static const struct {
        const char *language, *text, *result; /* result NULL: as it was */
    } cases[] = {
        {"javascript", "module.exports = a\nmodule.exports.a = a\nmodule.exports.b = c\n",
            "module.exports = a\nmodule.exports.a = a\nmodule.exports.new = new\nmodule.exports.b = c\n"},
        {"javascript", "exports.a = a;\r\nexports.b = b;\r\n",
            "exports.a = a;\r\nexports.b = b;\r\nexports.new = new;\r\n"},
        {"javascript", "// module.exports.a = a\n", NULL},
        {"javascript", "module.exports = { a, b };\n", "module.exports = { a, b, new };\n"},
        {"javascript", "module.exports = {\n  a: a,\n  b: b\n};\n",
            "module.exports = {\n  a: a,\n  b: b,\n  new: new\n};\n"},
        {"javascript", "module.exports = { a: a, b: c };\n", NULL},
        {"javascript", "export { a, b as c };\n", NULL},
        {"javascript", "module.exports = {};\n", NULL},
        {"python", "__all__ = [\n    'a',\n    'b',\n]\n",
            "__all__ = [\n    'a',\n    'b',\n    'new',\n]\n"},
        {"c", "int a;\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf text = {0};
        base_buf_puts(&text, cases[i].text);
        const bool is_done = tool__export_last(cases[i].language, &text, "new");
        assert_string_equal(text.data, cases[i].result ? cases[i].result : cases[i].text);
        assert_int_equal(is_done, cases[i].result != NULL);
        base_buf_free(&text);
    }
}

/* Where nothing of the module is handed out yet: a line like the last of its kind. */
static void test_exports__a_line_of_its_own(void **state)
{
    static const struct {
        const char *language, *text, *result; /* result NULL: as it was */
    } cases[] = {
        {"python", "\"\"\"All.\"\"\"\nfrom .other import (\n    a,\n)\n\n__all__ = ['a']\n",
            "\"\"\"All.\"\"\"\nfrom .other import (\n    a,\n)\nfrom .ansi import new\n\n__all__ = ['a', 'new']\n"},
        {"python", "from pkg.other import a\r\nx = 1\r\n",
            "from pkg.other import a\r\nfrom pkg.ansi import new\r\nx = 1\r\n"},
        {"python", "from typing import Any\n", "from typing import Any\nfrom .ansi import new\n"},
        {"python", "x = 1\n", "from .ansi import new\nx = 1\n"},
        {"rust", "mod other;\n#[cfg(feature = \"std\")]\nmod ansi;\n\nfn f() {}\n",
            "mod other;\n#[cfg(feature = \"std\")]\nmod ansi;\n#[cfg(feature = \"std\")]\npub use ansi::new;\n\nfn f() {}\n"},
        {"rust", "mod ansi;\nmod other;\npub use self::other::{\n    a,\n};\nfn f() {}",
            "mod ansi;\nmod other;\npub use self::other::{\n    a,\n};\npub use self::ansi::new;\nfn f() {}"},
        {"rust", "pub mod ansi;", "pub mod ansi;\npub use ansi::new;\n"},
        {"rust", "// mod ansi;\npub use other::a;\n", NULL},
        {"javascript", "export { a } from './a.js';\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf text = {0};
        base_buf_puts(&text, cases[i].text);
        const bool is_done = tool__export_fresh(cases[i].language, &text, "ansi", "new");
        assert_string_equal(text.data, cases[i].result ? cases[i].result : cases[i].text);
        assert_int_equal(is_done, cases[i].result != NULL);
        base_buf_free(&text);
    }
}

/* A test of C runs where its neighbour is named for that. */
static void test_register__behind_the_neighbour(void **state)
{
    static const struct {
        const char *text, *result; /* result NULL: as it was */
    } cases[] = {
        {"int main(void) {\n  test(has);\n  test(last);\n}\n",
            "int main(void) {\n  test(has);\n  test(new);\n  test(last);\n}\n"},
        {"int main(void) {\n\ttest_has();\n}\n", "int main(void) {\n\ttest_has();\n\ttest_new();\n}\n"},
        {"    const struct CMUnitTest tests[] = {\n        cmocka_unit_test(test_has),\n    };\n",
            "    const struct CMUnitTest tests[] = {\n"
            "        cmocka_unit_test(test_has),\n"
            "        cmocka_unit_test(test_new),\n"
            "    };\n"},
        {"  {(char*)\"/a/test_has\", test_has, NULL},\n  {NULL, NULL, NULL}\n",
            "  {(char*)\"/a/test_has\", test_has, NULL},\n  {(char*)\"/a/test_new\", test_new, NULL},\n"
            "  {NULL, NULL, NULL}\n"},
        {"  {\"has\", test_has},\n", "  {\"has\", test_has},\n  {\"has\", test_new},\n"},
        {"static void test_has(void) {\n  assert(1);\n}\n", NULL}, /* its definition */
        {"  test(has);\n  test(new);\n", NULL},
        {"  run(hash);\n", NULL},
        {"  if (x) test_has", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf text = {0};
        base_buf_puts(&text, cases[i].text);
        const bool is_done = tool__register_test(&text, "test_has", "test_new");
        assert_string_equal(text.data ? text.data : "", cases[i].result ? cases[i].result : cases[i].text);
        assert_int_equal(is_done, cases[i].result != NULL);
        base_buf_free(&text);
    }
}

/* One that is declared before it is called is declared like its neighbour. */
static void test_register__declared_as_the_neighbour_is(void **state)
{
    static const struct {
        const char *text, *result; /* result NULL: as it was */
    } cases[] = {
        {"void test_has(void); /* has */\nint main(void);\n",
            "void test_has(void); /* has */\nvoid test_new(void);\nint main(void);\n"},
        {"static void test_has();\n", "static void test_has();\nstatic void test_new();\n"},
        {"static int test_has(void);", "static int test_has(void);\nstatic int test_new(void);"},
        {"void test_has(int n);\n", NULL}, /* nobody would give it one */
        {"  test_has();\n", NULL},         /* a call */
        {"void test_has(void)\n{\n}\n", NULL},
        {"void test_has(void);\nvoid test_new(void);\n", NULL},
        {"void test_new(void);\nvoid test_has(void);\n", NULL},
        {"void test_has(", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf text = {0};
        base_buf_puts(&text, cases[i].text);
        const bool is_done = tool__declare_test(&text, "test_has", "test_new");
        assert_string_equal(text.data ? text.data : "", cases[i].result ? cases[i].result : cases[i].text);
        assert_int_equal(is_done, cases[i].result != NULL);
        base_buf_free(&text);
    }
}

/* A file of nothing but lists: each costs a walk through all of it, so that a hundred thousand would never end. */
static void test_exports__go_into_some_lists(void **state)
{
    static const int n_lists[] = {3, 16, 20000};
    for (size_t i = 0; i < sizeof n_lists / sizeof *n_lists; i++) {
        base_buf text = {0};
        size_t n_added = 0;
        for (int k = 0; k < n_lists[i]; k++) base_buf_puts(&text, "__all__ = ['has']\n");
        assert_true(tool__export_name("python", &text, NULL, "has", "new"));
        for (const char *at = text.data; (at = strstr(at, "'new'")); at++) n_added++;
        assert_int_equal(n_added, n_lists[i] < 16 ? n_lists[i] : 16);
        base_buf_free(&text);
    }
}

/* The package's file comes with the addition, in one diff and one undo. */
static void test_exports(void **state)
{
    static const char titles[] = "def set_title(a):\n    return a\n\n\ndef clear(a):\n    return a\n";
    static const struct {
        const char *package, *name, *after;
    } cases[] = {
        {"from .ansi import set_title\n", "set_icon", "from .ansi import set_title, set_icon\n"},
        {"from .ansi import clear\n", "set_icon", NULL},      /* not its neighbour */
        {"from .ansi import clear\n", "zoom", NULL},          /* behind it as the last, no kin */
        {"from .ansi import set_title\n", "_set_icon", NULL}, /* its own */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tree t;
        base_buf arguments = {0}, block = {0};
        base_buf_printf(&arguments, "{\"path\": \"lib/ansi.py\", \"name\": \"%s\"}", cases[i].name);
        base_buf_printf(&block, "def %s(a):\n    return 1\n", cases[i].name);
        tree_make(&t, false);
        tree_put(&t, "lib/ansi.py", titles);
        tree_put(&t, "lib/__init__.py", cases[i].package);
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        tool_workspace_mark_shown(t.w, "lib/ansi.py", tree_version(&t, "lib/ansi.py"));
        tool_result r = tree_call(&t, "rewrite", arguments.data, block.data);
        if (r.status != TOOL_OK) print_message("%s\n", r.text.data);
        assert_int_equal(r.status, TOOL_OK);
        char *package = tree_get(&t, "lib/__init__.py");
        assert_string_equal(package, cases[i].after ? cases[i].after : cases[i].package);
        free(package);
        if (cases[i].after) assert_contains(r.diff, "+++ b/lib/__init__.py");
        tool_result_free(&r);
        char *summary = NULL;
        assert_int_equal(tool_undo_apply(t.w, &summary, NULL), 0);
        free(summary);
        package = tree_get(&t, "lib/__init__.py");
        assert_string_equal(package, cases[i].package);
        free(package);
        base_buf_free(&arguments);
        base_buf_free(&block);
        tree_remove(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_export_lists),
        cmocka_unit_test(test_exports__behind_the_last_on_request),
        cmocka_unit_test(test_exports__a_line_of_its_own),
        cmocka_unit_test(test_register__behind_the_neighbour),
        cmocka_unit_test(test_register__declared_as_the_neighbour_is),
        cmocka_unit_test(test_exports__go_into_some_lists), cmocka_unit_test(test_exports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
