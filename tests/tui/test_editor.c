/* The input line, its history and its completion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tui/input/complete.h"
#include "key_names.h"
#include "tui/input/editor.h"
#include "tui/terminal/keys.h"
#include "tui/input/former_lines.h"
#include "tui/input/tree_paths.h"

static void keys(tui_editor *e, const char *names)
{
    char *copy = base_xstrdup(names);
    for (char *name = strtok(copy, " "); name; name = strtok(NULL, " ")) tui_editor_key(e, key_named(name));
    free(copy);
}

static void test_editor__moves_by_whole_characters(void **state)
{
    tui_editor e = {0};
    tui_editor_insert(&e, "ae\xcc\x81\xe6\x97\xa5z", 8); /* a, e with an accent, a wide character, z */
    keys(&e, "Left Left Left");
    assert_int_equal(e.cursor, 1);
    keys(&e, "Del");
    assert_string_equal(e.text.data, "a\xe6\x97\xa5z");
    keys(&e, "End Backspace Backspace");
    assert_string_equal(e.text.data, "a");
    keys(&e, "Backspace Backspace Left Del");
    assert_true(tui_editor_empty(&e));
    tui_editor_free(&e);
}

static void test_editor__kills_and_yanks(void **state)
{
    tui_editor e = {0};
    tui_editor_set(&e, "one two  three");
    keys(&e, "C-w");
    assert_string_equal(e.text.data, "one two  ");
    keys(&e, "C-w C-y C-y");
    assert_string_equal(e.text.data, "one two  two  ");
    keys(&e, "C-a C-Right C-k");
    assert_string_equal(e.text.data, "one");
    keys(&e, "C-u");
    assert_string_equal(e.text.data, "");
    keys(&e, "C-y C-j C-y");
    assert_string_equal(e.text.data, "one\none");
    keys(&e, "C-u");
    assert_string_equal(e.text.data, "one\n");
    tui_editor_free(&e);
}

static void test_editor__up_and_down_keep_the_column(void **state)
{
    tui_editor e = {0};
    tui_editor_set(&e, "long line\nab\nanother");
    keys(&e, "Up");
    assert_int_equal(e.cursor, 12); /* behind "ab": the line is shorter */
    keys(&e, "Up");
    assert_int_equal(e.cursor, 2);
    assert_false(tui_editor_key(&e, TUI_KEY_UP)); /* history's turn */
    keys(&e, "Down Down");
    assert_int_equal(e.cursor, 15);
    assert_false(tui_editor_key(&e, TUI_KEY_DOWN));
    tui_editor_free(&e);
}

static void test_editor__a_long_paste_is_folded(void **state)
{
    tui_editor e = {0};
    base_buf big = {0};
    while (big.len < 1 << 20) base_buf_puts(&big, "a line of a megabyte\r");
    tui_editor_paste(&e, big.data, big.len);
    assert_true(e.text.len < 80);
    tui_editor_insert(&e, " tail", 5);
    char *all = tui_editor_peek(&e);
    assert_int_equal(strlen(all), big.len + 5);
    assert_null(strchr(all, '\r'));
    free(all);
    keys(&e, "C-Left Left Backspace"); /* the marker goes as one */
    assert_string_equal(e.text.data, " tail");
    tui_editor_paste(&e, "x\ty\x1b[31m", 8);
    char *small = tui_editor_take(&e);
    assert_null(strchr(small, 0x1b));
    assert_true(tui_editor_empty(&e));
    free(small);
    base_buf_free(&big);
    tui_editor_free(&e);
}

static void test_editor__draws_with_the_cursor_in_view(void **state)
{
    tui_editor e = {0};
    tui_grid g = {0};
    tui_grid_resize(&g, 10, 3);
    tui_editor_set(&e, "0123456789abcdefghijklmnopqrstuvwxyz");
    assert_int_equal(tui_editor_height(&e, 8), 5);
    tui_editor_draw(&e, tui_grid_area(&g), "> ", TUI_PLAIN, true);
    assert_int_equal(g.cursor_y, 2);
    assert_int_equal(g.cursor_x, 6);
    base_buf text = {0};
    tui_grid_text(&g, &text);
    assert_non_null(strstr(text.data, "wxyz"));
    base_buf_free(&text);
    tui_grid_free(&g);
    tui_editor_free(&e);
}

/* At a line's end, behind a line that is full, on a character too wide for what is left of its line. */
static void test_editor__the_cursor_stands_where_its_character_does(void **state)
{
    static const struct {
        const char *text;
        size_t cursor;
        int x, y;
    } cases[] = {
        {"abc\nde", 3, 3, 0},
        {"abc\nde", 4, 0, 1},
        {"abcdefgh", 8, 0, 1},
        {"abcdefgh\nx", 8, 7, 0}, /* beyond the last column: on it */
        {"a\tb", 2, 2, 0},
        {"abcdefg\xe4\xbd\xa0", 7, 0, 1},
        {"", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tui_editor e = {0};
        tui_grid g = {0};
        tui_grid_resize(&g, 10, 3);
        tui_editor_set(&e, cases[i].text);
        e.cursor = cases[i].cursor;
        tui_editor_draw(&e, tui_grid_area(&g), "> ", TUI_PLAIN, true);
        if (g.cursor_x != 2 + cases[i].x || g.cursor_y != cases[i].y)
            fail_msg("case %zu: the cursor is at %d, %d", i, g.cursor_x - 2, g.cursor_y);
        tui_grid_free(&g);
        tui_editor_free(&e);
    }
}

static void test_lines__come_back_from_the_file(void **state)
{
    char path[] = "/tmp/kvist-lines-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    tui_lines l = {0};
    tui_lines_open(&l, path);
    tui_lines_add(&l, "first");
    tui_lines_add(&l, "two\nlines \\ and a backslash");
    tui_lines_add(&l, "two\nlines \\ and a backslash"); /* again: once is enough */
    tui_lines_free(&l);
    tui_lines_open(&l, path);
    assert_int_equal(l.n, 2);
    assert_string_equal(tui_lines_walk(&l, -1, "draft"), "two\nlines \\ and a backslash");
    assert_string_equal(tui_lines_walk(&l, -1, ""), "first");
    assert_null(tui_lines_walk(&l, -1, ""));
    assert_non_null(tui_lines_walk(&l, 1, ""));
    assert_string_equal(tui_lines_walk(&l, 1, ""), "draft");
    assert_null(tui_lines_walk(&l, 1, ""));
    assert_int_equal(tui_lines_find(&l, "IRS", l.n), 0);
    assert_int_equal(tui_lines_find(&l, "absent", l.n), l.n);
    tui_lines_free(&l);
    unlink(path);
}

static char **some_paths(void *user)
{
    static const char *const paths[] = {
        "docs/log.md", "src/agent/log/log.c", "src/agent/catalog.c", "src/long/other.c"};
    char **out = base_xcalloc(5, sizeof *out);
    for (int i = 0; i < 4; i++) out[i] = base_xstrdup(paths[i]);
    (*(int *)user)++;
    return out;
}

static char lint[] = "lint", peel[] = "peel and stone", review[] = "review", reads[] = "read a change";
static char *const some_skills[] = {lint, peel, review, reads, NULL};

static void test_complete__fuzzy_prefers_names_and_runs(void **state)
{
    tui_complete c = {0};
    int asked = 0;
    tui_complete_update(&c, base_str_of("@log.c"), false, some_skills, some_paths, &asked);
    assert_int_equal(c.prefix, '@');
    assert_true(c.n >= 2);
    assert_string_equal(c.candidate[0].text, "src/agent/log/log.c");
    tui_complete_update(&c, base_str_of("@sal"), false, some_skills, some_paths, &asked);
    assert_true(c.n > 0);
    assert_int_equal(asked, 1); /* the list is kept */
    tui_complete_update(&c, base_str_of("@zzz"), false, some_skills, some_paths, &asked);
    assert_int_equal(c.n, 0);
    tui_complete_update(&c, base_str_of("/quit"), false, some_skills, some_paths, &asked);
    assert_int_equal(c.n, 0); /* commands stand at the start of a line */
    tui_complete_update(&c, base_str_of("/qui"), true, some_skills, some_paths, &asked);
    assert_int_equal(c.n, 1);
    assert_string_equal(c.candidate[0].text, "quit");
    tui_complete_update(&c, base_str_of("/re"), true, some_skills, some_paths, &asked);
    size_t at = 0;
    while (at < c.n && strcmp(c.candidate[at].text, "review")) at++;
    assert_true(at < c.n);
    assert_string_equal(c.candidate[at].about, "read a change");
    tui_complete_free(&c);
    assert_true(tui_fuzzy("abc", 3, "xaxbxc") >= 0);
    assert_true(tui_fuzzy("abc", 3, "acb") < 0);
    assert_true(tui_fuzzy("ABC", 3, "abc") > tui_fuzzy("abc", 3, "xaxbxc"));
}

static void put_file(const char *root, const char *name)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s/%s", root, name);
    char *folder = base_xstrndup(path.data, (size_t)(strrchr(path.data, '/') - path.data));
    assert_int_equal(base_fs_mkdirs(folder, NULL), 0);
    assert_int_equal(base_fs_write(path.data, "x", 1, 0600, NULL), 0);
    free(folder);
    base_buf_free(&path);
}

static void test_paths__lists_what_people_wrote(void **state)
{
    char root[] = "/tmp/kvist-paths-XXXXXX";
    assert_non_null(mkdtemp(root));
    static const char *const names[] = {
        "z.c", "src/b.c", "src/a.c", "src/deep/c.c", ".git/config", "node_modules/m.js", "src/.hidden"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) put_file(root, names[i]);
    char link[64];
    snprintf(link, sizeof link, "%s/out", root);
    assert_int_equal(symlink("/", link), 0); /* never followed */
    char **paths = tui_paths_below(root);
    static const char *const expected[] = {"z.c", "src/a.c", "src/b.c", "src/deep/c.c"};
    size_t n = 0;
    for (; paths[n]; n++) {
        assert_true(n < sizeof expected / sizeof *expected);
        assert_string_equal(paths[n], expected[n]);
        free(paths[n]);
    }
    assert_int_equal(n, sizeof expected / sizeof *expected);
    free(paths);
    assert_null(tui_paths_below("/nowhere/at/all"));
    base_fs_remove(root, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_editor__moves_by_whole_characters),
        cmocka_unit_test(test_editor__kills_and_yanks),
        cmocka_unit_test(test_editor__up_and_down_keep_the_column),
        cmocka_unit_test(test_editor__a_long_paste_is_folded),
        cmocka_unit_test(test_editor__draws_with_the_cursor_in_view),
        cmocka_unit_test(test_editor__the_cursor_stands_where_its_character_does),
        cmocka_unit_test(test_lines__come_back_from_the_file),
        cmocka_unit_test(test_paths__lists_what_people_wrote),
        cmocka_unit_test(test_complete__fuzzy_prefers_names_and_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
