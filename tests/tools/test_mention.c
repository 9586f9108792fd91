/* Where a document speaks of something new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/edit/mention.h"

static const char *const neighbours[] = {"count", "set", "free", NULL};

/* "{...}" is the new line's beginning, in place of what gives way. */
static void test_mention__its_place_and_beginning(void **state)
{
    static const struct {
        const char *path, *text, *request, *result;
    } cases[] = {
        /* Lists of changes: the newest section, its items' form, "Added" before others, an item that says nothing. */
        {"CHANGES.txt",
            "CHANGES\n=======\n\n0.3 (unreleased)\n-----\n\n- no changes yet\n\n\n0.2\n---\n\n- drop old\n- add f\n",
            "mention it in CHANGES.txt",
            "CHANGES\n=======\n\n0.3 (unreleased)\n-----\n\n{- add new}\n\n\n0.2\n---\n\n- drop old\n- add f\n"},
        {"CHANGELOG.md", "# Changes\n\n## [Unreleased]\n### Fixed\n- `a`\n### Added\n- `b`\n\n## 1.0\n- c\n",
            "and note it in the changelog",
            "# Changes\n\n## [Unreleased]\n### Fixed\n- `a`\n### Added\n{- Add `new`}\n- `b`\n\n## 1.0\n- c\n"},
        {"CHANGELOG.md", "# Changes\n\n## Unreleased\n\n## 1.0\n* Added c\n", "note it in the changelog",
            "# Changes\n\n## Unreleased\n\n{* Added new}\n\n## 1.0\n* Added c\n"},
        /* A part of its own, where other sections have one. */
        {"CHANGES.rst",
            "Changes\n=======\n\nUnreleased\n----------\n\nFixed\n~~~~~\n\n- a\n\nv1.0\n----\n\nAdded\n~~~~~\n\n- b\n",
            "mention it in CHANGES.rst",
            "Changes\n=======\n\nUnreleased\n----------\n\n{Added\n~~~~~\n\n- Add new}\n\nFixed\n~~~~~\n\n- a\n\nv1.0\n----\n\n"
            "Added\n~~~~~\n\n- b\n"},
        {"ChangeLog", "Fri Oct 13 2006\nversion 0.9\n  * Added a\n", "say so at the top of the ChangeLog",
            "{  * Added new}\n\nFri Oct 13 2006\nversion 0.9\n  * Added a\n"},
        {"NEWS", "nothing here\n", "mention it in NEWS", "{- Add new}\n\nnothing here\n"},
        /* Lists of what there is: in the column of the others, behind the one that is named, else the nearest. */
        {"README.md", "```sh\ncount   # number of items\nset     # sets\n```\n",
            "describe it in README.md behind set",
            "```sh\ncount   # number of items\nset     # sets\n{new     #}\n```\n"},
        {"README.md", "## API\n\n- `count(m)` counts,\n  all of them\n- `free(m)`\n",
            "describe it in README.md",
            "## API\n\n- `count(m)` counts,\n  all of them\n{- `new}\n- `free(m)`\n"},
        {"README.md", "### count(m)\n\nCounts.\n\n### free(m)\n\nFrees.\n", "describe it in README.md",
            "### count(m)\n\nCounts.\n\n{### new}### free(m)\n\nFrees.\n"},
        {"README.md", "| set | sets |\n", "describe it in README.md", "| set | sets |\n{| new |}\n"},
        /* A program that calls a neighbour lists nothing: a sentence of its own in the section that is spoken of. */
        {"README.md", "# T\n\n## Errors\n\nParsing fails.\n\n## Use\n\n```c\ncount(m);\n```\n",
            "say in README.md which error parsing gives",
            "# T\n\n## Errors\n\nParsing fails.\n{\n`new`}\n\n## Use\n\n```c\ncount(m);\n```\n"},
        {"README.md", "Words", "describe it in README.md", "Words{\n\nnew}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf text = {0}, got = {0};
        tool_mention m;
        base_buf_puts(&text, cases[i].text);
        tool__find_mention(cases[i].path, &text, "new", neighbours, cases[i].request, &m);
        assert_true(m.from <= m.at && m.at <= m.to && m.to <= m.behind && m.behind <= text.len);
        base_buf_add(&got, text.data, m.at);
        base_buf_printf(&got, "{%s}%s", m.begins.data, m.ends ? m.ends : "");
        base_buf_puts(&got, text.data + m.to);
        if (strcmp(got.data, cases[i].result) != 0)
            fail_msg("%zu, %s:\n%s\nfor\n%s", i, cases[i].path, got.data, cases[i].result);
        tool_mention_free(&m);
        base_buf_free(&text);
        base_buf_free(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mention__its_place_and_beginning)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
