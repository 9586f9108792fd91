/* Cells, line breaking and the light markdown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kv/types.h"
#include "tui/terminal/markdown.h"
#include "tui/views/view.h"

static void put_plain(const tui_text *t, base_buf *out)
{
    for (size_t i = 0; i < t->n_lines; i++) {
        for (uint32_t k = 0; k < t->lines[i].n; k++) {
            const tui_text_run *r = t->runs + t->lines[i].first + k;
            base_buf_add(out, t->bytes.data + r->at, r->n);
        }
        base_buf_putc(out, '\n');
    }
}

static void assert_lines(tui_text *t, const char *expected)
{
    base_buf b = {0};
    put_plain(t, &b);
    assert_string_equal(b.data ? b.data : "", expected);
    base_buf_free(&b);
    tui_text_free(t);
}

static void flow(tui_text *t, int width, bool code, const char *s)
{
    tui_flow f = {.text = t, .width = width, .first = "> ", .rest = "  ", .code = code};
    tui_flow_puts(&f, TUI_PLAIN, s);
    tui_flow_end(&f);
}

/* What the cache can give as a reason or an origin, a person can ask about (views/explain.c). */
static void test_text__every_reason_and_origin_has_words(void **state)
{
#define REASON_WORD(id, word) word,
    static const char *const words[] = {KV_REASONS(REASON_WORD)};
#undef REASON_WORD
    for (int i = 0; i < KV_N_REASONS; i++)
        if (!*tui_reason_sentence(words[i])) fail_msg("the reason \"%s\" has no sentence", words[i]);
    for (int i = 0; i < KV_N_ORIGINS; i++)
        if (!*tui_origin_sentence(kv_origin_word((kv_origin)i)))
            fail_msg("the origin \"%s\" has no sentence", kv_origin_word((kv_origin)i));
    assert_string_equal(tui_reason_sentence("frobnicate"), "");
    assert_string_equal(tui_origin_sentence("frobnicate"), "");
}

static void test_text__breaks_between_words(void **state)
{
    tui_text t = {0};
    flow(&t, 12, false, "some words go here");
    assert_lines(&t, "> some words\n  go here\n");
    flow(&t, 12, false, "exactlyten next");
    assert_lines(&t, "> exactlyten\n  next\n");
    flow(&t, 12, false, "a verylongwordthatnevereverends b");
    assert_lines(&t, "> a\n  verylongwo\n  rdthatneve\n  reverends\n  b\n");
    flow(&t, 12, false, "");
    assert_lines(&t, "");
    flow(&t, 12, false, "x\n\ny");
    assert_lines(&t, "> x\n  \n  y\n");
}

static void test_text__code_breaks_anywhere_and_keeps_blanks(void **state)
{
    tui_text t = {0};
    flow(&t, 8, true, "  a  b  c d");
    assert_lines(&t, ">   a  b\n    c d\n");
}

static void test_text__tabs_are_columns(void **state)
{
    tui_text t = {0};
    tui_flow f = {.text = &t, .width = 24, .first = "> ", .rest = "  "};
    static const char rows[] = "ab\tc\tlast\nabcd\t\tlonger\nno table\nvery long cell here\tx\te\n";
    tui_flow_table(&f, TUI_PLAIN, rows, strlen(rows));
    tui_flow_end(&f);
    assert_lines(&t, "> ab    c  last\n"
                     "  abcd     longer\n"
                     "  no table\n"
                     "  very long cell here  x\n"
                     "  e\n");
}

static void test_text__wide_characters_are_never_halved(void **state)
{
    tui_text t = {0};
    flow(&t, 7, true, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"); /* 6 columns into 5 */
    assert_lines(&t, "> \xe6\x97\xa5\xe6\x9c\xac\n  \xe8\xaa\x9e\n");
    tui_grid g = {0};
    tui_grid_resize(&g, 5, 1);
    assert_int_equal(tui_put(tui_grid_area(&g), 0, 0, TUI_PLAIN, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"), 4);
    tui_put(tui_grid_area(&g), 1, 0, TUI_PLAIN, "x"); /* over the right half of the first */
    base_buf b = {0};
    tui_grid_text(&g, &b);
    assert_string_equal(b.data, " x\xe6\x9c\xac\n");
    base_buf_free(&b);
    tui_grid_free(&g);
}

static void test_grid__clips_and_shows_no_control_character(void **state)
{
    tui_grid g = {0};
    tui_grid_resize(&g, 6, 2);
    tui_area a = tui_area_within(tui_grid_area(&g), 2, 0, 3, 5);
    assert_int_equal(a.height, 2);
    tui_put(a, 0, 0, TUI_PLAIN, "abcdef");
    tui_put(a, -1, 1, TUI_PLAIN, "xyz");
    tui_put(a, 0, 7, TUI_PLAIN, "below");
    tui_put(a, 2, 1, TUI_PLAIN, "\x1b[31m");
    base_buf b = {0};
    tui_grid_text(&g, &b);
    assert_string_equal(b.data, "  abc\n  yz\xef\xbf\xbd\n");
    base_buf_free(&b);
    tui_grid_free(&g);
    assert_int_equal(tui_columns("e\xcc\x81\xe6\x97\xa5", 6), 3);
}

static void test_markdown__takes_away_only_what_it_understood(void **state)
{
    static const char text[] = "# Head\n"
                               "A **bold** and `code` word, 2 ** 3, a ` tick.\n"
                               "```c\n"
                               "int x = \"a`b**c\"; // so\n"
                               "```\n"
                               "- item\n";
    tui_text t = {0};
    tui_markdown(&t, 60, text, sizeof text - 1);
    assert_lines(&t, "Head\nA bold and code word, 2 ** 3, a ` tick.\n  int x = \"a`b**c\"; // so\n- item\n");
}

static void test_markdown__a_diff_shows_what_changes(void **state)
{
    static const char diff[] = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same\n";
    tui_text t = {0};
    tui_diff_lines(&t, 40, "  ", "edit x", diff, sizeof diff - 1, 100, BASE_SHOW_TABS);
    assert_int_equal(t.runs[t.lines[1].first + 1].style.role, TUI_ERR);
    assert_int_equal(t.runs[t.lines[2].first + 1].style.role, TUI_OK);
    assert_lines(&t, "  @@ -1 +1 @@\n  -old\n  +new\n   same\n");
    tui_diff_lines(&t, 40, "", "edit x", diff, sizeof diff - 1, 2, BASE_SHOW_TABS);
    assert_lines(&t, "@@ -1 +1 @@\n-old\n... 2 more lines, Ctrl+O shows them\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text__every_reason_and_origin_has_words),
        cmocka_unit_test(test_text__breaks_between_words),
        cmocka_unit_test(test_text__code_breaks_anywhere_and_keeps_blanks),
        cmocka_unit_test(test_text__tabs_are_columns),
        cmocka_unit_test(test_text__wide_characters_are_never_halved),
        cmocka_unit_test(test_grid__clips_and_shows_no_control_character),
        cmocka_unit_test(test_markdown__takes_away_only_what_it_understood),
        cmocka_unit_test(test_markdown__a_diff_shows_what_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
