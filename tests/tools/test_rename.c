/*
 * Renames: what is refused, and what follows beside code: comments, documents, paths and names in strings.
 */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static void test_rename__refuses_what_cannot_be(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py", "def f(x):\n    return x\n\n\ndef g(y):\n    return f(y)\n");
    tree_put(&t, "broken.py", "def f2(:\n    return f2(\n");
    tree_put(&t, "vendor/b.py", "def vendored():\n    pass\n");
    tree_put(&t, "notes.zzz", "f f f\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"g\"}", TOOL_REFUSED, "is taken");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"class\"}", TOOL_REFUSED, "keyword");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"a-b\"}", TOOL_REFUSED, "letters, digits");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"$a\"}", TOOL_REFUSED, "no part of a name");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"f\"}", TOOL_REFUSED, "already");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\"}", TOOL_FAILED, "needs \"to\"");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"nothing\",\"to\":\"g\"}", TOOL_FAILED, "no definition");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"vendored\",\"to\":\"v\"}", TOOL_REFUSED,
        "generated or vendored");
    refuses(&t, "{\"operation\":\"explode\",\"name\":\"f\"}", TOOL_FAILED, "needs \"operation\"");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"a.py:2\",\"to\":\"v\"}", TOOL_FAILED,
        "No definition begins");
    expect(&t, "a.py", "def f(x):\n    return x\n\n\ndef g(y):\n    return f(y)\n");
    tree_put(&t, "c.py",
        "<<<<<<< ours\ndef mine():\n    pass\n=======\ndef mine():\n    return 1\n>>>>>>> theirs\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"mine\",\"to\":\"yours\",\"unsure\":true}", TOOL_REFUSED,
        "conflict marks");
    tree_remove(&t);
}

/* A text that is looked up as a path follows where the path in front of the name means the definition. */
static void test_rename__paths_in_strings_and_settings_follow(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "pkg/__init__.py", "from .net import fetch\n");
    tree_put(&t, "pkg/net.py",
        "def fetch(url):\n    return url\n\n\nclass Client:\n    def get(self):\n        return fetch(1)\n");
    tree_put(&t, "pkg/other.py", "def fetch(x):\n    return x\n");
    tree_put(&t, "test_net.py",
        "from unittest import mock\n\n"
        "mock.patch(\"pkg.net.fetch\")\n"
        "mock.patch('pkg.fetch')\n"
        "mock.patch('pkg.other.fetch')\n"
        "mock.patch('pkg.net.Client.get')\n"
        "mock.patch('pkg.other.Client.get')\n"
        "print('fetch', 'to fetch.', 'a..fetch')\n");
    tree_put(
        &t, "pyproject.toml", "[project.scripts]\nfetch = \"pkg.net:fetch\"\nother = \"pkg.other:fetch\"\n");
    tree_open(&t);
    char *said = refactor_with(
        &t, "{\"operation\":\"rename\",\"name\":\"fetch\",\"to\":\"load\",\"path\":\"pkg/net.py\"}", TOOL_OK);
    assert_contains(said, "Documents that still write it, left: pyproject.toml:3");
    free(said);
    expect(
        &t, "pyproject.toml", "[project.scripts]\nfetch = \"pkg.net:load\"\nother = \"pkg.other:fetch\"\n");
    free(refactor_with(&t, "{\"operation\":\"rename\",\"name\":\"Client.get\",\"to\":\"take\"}", TOOL_OK));
    expect(&t, "test_net.py",
        "from unittest import mock\n\n"
        "mock.patch(\"pkg.net.load\")\n"
        "mock.patch('pkg.load')\n"
        "mock.patch('pkg.other.fetch')\n"
        "mock.patch('pkg.net.Client.take')\n"
        "mock.patch('pkg.other.Client.get')\n"
        "print('fetch', 'to fetch.', 'a..fetch')\n");
    tree_remove(&t);
}

/* A string that gives an attribute its name means what the object in front has; a type's own text says the type's name. */
static void test_rename__names_of_attributes_and_a_type_s_own_text_follow(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "pkg/__init__.py", "");
    tree_put(&t, "pkg/zone.py",
        "BASE_OFFSET = 1\n\n\nclass FixedZone:\n    def name_of(self):\n        return 'FixedZone'\n\n"
        "    def __repr__(self):\n        return \"<FixedZone %r>\" % self.name_of()\n");
    tree_put(&t, "pkg/other.py", "BASE_OFFSET = 2\n");
    tree_put(&t, "test_zone.py",
        "from pkg import other, zone\nfrom pkg.zone import FixedZone\n\n\ndef test(patch):\n"
        "    patch.setattr(zone, \"BASE_OFFSET\", 3)\n    setattr(other, 'BASE_OFFSET', 3)\n"
        "    getattr(zone, 'BASE_OFFSET_2', 'BASE_OFFSET')\n    patch.object(\n        FixedZone, 'name_of')\n"
        "    patch.object(zone, 'name_of')\n");
    tree_open(&t);
    renames(&t, "pkg/zone.py:BASE_OFFSET", "FIRST_OFFSET", NULL);
    renames(&t, "FixedZone.name_of", "label_of", NULL);
    renames(&t, "FixedZone", "StillZone", "1 place in comments and strings left");
    expect(&t, "pkg/zone.py",
        "FIRST_OFFSET = 1\n\n\nclass StillZone:\n    def label_of(self):\n        return 'FixedZone'\n\n"
        "    def __repr__(self):\n        return \"<StillZone %r>\" % self.label_of()\n");
    expect(&t, "test_zone.py",
        "from pkg import other, zone\nfrom pkg.zone import StillZone\n\n\ndef test(patch):\n"
        "    patch.setattr(zone, \"FIRST_OFFSET\", 3)\n    setattr(other, 'BASE_OFFSET', 3)\n"
        "    getattr(zone, 'BASE_OFFSET_2', 'BASE_OFFSET')\n    patch.object(\n        StillZone, 'label_of')\n"
        "    patch.object(zone, 'name_of')\n");
    tree_remove(&t);
}

/* What means nothing else follows into documents, all but their history; a word of a sentence stays. */
static void test_rename__documents_follow_what_can_mean_nothing_else(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(
        &t, "a.c", "int addOne(int x)\n{\n    return x + 1;\n}\n\nint parse(void)\n{\n    return 0;\n}\n");
    tree_put(&t, "README.md",
        "# addOne\n\nCall `addOne(2)` or addOne, not addOnes.\nTo parse is parse().\nWe parse.\n");
    tree_put(&t, "CHANGES", "addOne\naddOne\naddOne\naddOne\naddOne\naddOne\n");
    tree_open(&t);
    renames(&t, "addOne", "increment",
        "3 of them in comments and documents: the name means nothing else here.\n"
        "Documents that still write it, left: CHANGES:1, CHANGES:2, CHANGES:3, CHANGES:4, CHANGES:5 and 1 more line.\n");
    renames(&t, "parse", "read", "Documents that still write it, left: README.md:4.\n");
    expect(&t, "README.md",
        "# increment\n\nCall `increment(2)` or increment, not addOnes.\nTo parse is parse().\nWe parse.\n");
    expect(&t, "CHANGES", "addOne\naddOne\naddOne\naddOne\naddOne\naddOne\n");
    tree_remove(&t);
}

/* The same of comments and docstrings; not of strings, nor where the tree has another thing of the name, nor where the call says so. */
static void test_rename__comments_follow_what_can_mean_nothing_else(void **state)
{
    static const char b[] = "from a import row_size, other_size\n\n\ndef table(other_size):\n"
                            "    \"\"\"Of row_size cells, other_size high.\"\"\"\n"
                            "    return row_size() * other_size  # row_size is small, other_size is not\n";
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py",
        "# row_size comes first, parse() last; we parse.\nfor_print = 'row_size other_size'\n\n\n"
        "def row_size():\n    return 1\n\n\ndef other_size():\n    return 1\n\n\ndef parse():\n    return 1\n");
    tree_put(&t, "b.py", b);
    tree_put(&t, "c.c", "/* row_size of a.py */\nint c;\n");
    tree_open(&t);
    free(refactor_with(
        &t, "{\"operation\":\"rename\",\"name\":\"row_size\",\"to\":\"width\",\"text\":false}", TOOL_OK));
    free(refactor_with(&t, "{\"operation\":\"rename\",\"name\":\"width\",\"to\":\"row_size\"}", TOOL_OK));
    expect(&t, "b.py", b);
    renames(&t, "row_size", "row_width", "3 of them in comments and documents");
    renames(&t, "a.py:other_size", "table_size", "places in comments and strings left");
    renames(&t, "parse", "read", "1 of them in comments and documents");
    expect(&t, "a.py",
        "# row_width comes first, read() last; we parse.\nfor_print = 'row_size other_size'\n\n\n"
        "def row_width():\n    return 1\n\n\ndef table_size():\n    return 1\n\n\ndef read():\n    return 1\n");
    expect(&t, "b.py",
        "from a import row_width, table_size\n\n\ndef table(other_size):\n"
        "    \"\"\"Of row_width cells, other_size high.\"\"\"\n"
        "    return row_width() * other_size  # row_width is small, other_size is not\n");
    expect(&t, "c.c", "/* row_size of a.py */\nint c;\n");
    tree_remove(&t);
}

/* A parameter follows into the document of its function: where lists have it and where it is written as code, all of it on request. */
static void test_rename__parameters_follow_into_their_function_s_document(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py",
        "# sep is for all\n\n\ndef join(parts, sep):\n"
        "    \"\"\"Join parts with a sep, see `sep`.\n\n    :param str sep: not the parts' sep\n    sep: it\n    \"\"\"\n"
        "    return sep.join(parts)  # sep\n\n\ndef split(sep):\n    \"\"\"Split at sep, `sep`.\"\"\"\n");
    tree_put(&t, "b.c",
        "/**\n * Adds step to a step.\n * @param[in] step how much step\n */\nint add(int step)\n{\n    return step;\n}\n");
    tree_open(&t);
    renames(&t, "join.sep", "glue", NULL);
    renames(&t, "add.step", "by", NULL);
    expect(&t, "b.c",
        "/**\n * Adds step to a step.\n * @param[in] by how much step\n */\nint add(int by)\n{\n    return by;\n}\n");
    char *now = tree_get(&t, "a.py");
    assert_contains(
        now, "with a sep, see `glue`.\n\n    :param str glue: not the parts' sep\n    glue: it\n");
    free(now);
    free(refactor_with(
        &t, "{\"operation\":\"rename\",\"name\":\"split.sep\",\"to\":\"at\",\"text\":true}", TOOL_OK));
    now = tree_get(&t, "a.py");
    assert_contains(now, "# sep is for all\n");
    assert_contains(now, "with a sep, see");
    assert_contains(now, "def split(at):\n    \"\"\"Split at at, `at`.\"\"\"\n");
    free(now);
    tree_remove(&t);
}

static void test_rename__changes_its_own_comment_and_documents_on_request(void **state)
{
    static const char
        go[] = "package a\n\n"
               "// Replace sets it. Replace is atomic.\n"
               "func Replace() {}\n\n"
               "// Replace is used.\n"
               "func g() { Replace() }\n",
        rst[] = "Use\n---\n\n.. autofunction:: fetch\n\nTo fetch is to call ``fetch(x)``.\n\n    fetch()\n",
        news[] = "1.0: fetch() is new\n";
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.go", go);
    tree_put(
        &t, "b.py", "def fetch(x):\n    \"\"\"Fetch it.\n\n    >>> fetch(1)\n    We fetch.\n    \"\"\"\n");
    tree_put(&t, "docs/index.rst", rst);
    tree_put(&t, "CHANGELOG.md", news);
    tree_open(&t);
    renames(&t, "Replace", "Swap", "2 places in comments and strings left.");
    expect(&t, "a.go",
        "package a\n\n"
        "// Swap sets it. Replace is atomic.\n"
        "func Swap() {}\n\n"
        "// Replace is used.\n"
        "func g() { Swap() }\n");
    free(refactor_with(
        &t, "{\"operation\":\"rename\",\"name\":\"fetch\",\"to\":\"load\",\"text\":true}", TOOL_OK));
    expect(&t, "docs/index.rst",
        "Use\n---\n\n.. autofunction:: load\n\nTo fetch is to call ``load(x)``.\n\n    load()\n");
    expect(&t, "CHANGELOG.md", news);
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rename__refuses_what_cannot_be),
        cmocka_unit_test(test_rename__paths_in_strings_and_settings_follow),
        cmocka_unit_test(test_rename__names_of_attributes_and_a_type_s_own_text_follow),
        cmocka_unit_test(test_rename__documents_follow_what_can_mean_nothing_else),
        cmocka_unit_test(test_rename__comments_follow_what_can_mean_nothing_else),
        cmocka_unit_test(test_rename__parameters_follow_into_their_function_s_document),
        cmocka_unit_test(test_rename__changes_its_own_comment_and_documents_on_request),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "rename");
}
