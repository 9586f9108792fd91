/*
 * Hostile trees: nothing outside of the root is reached, nothing under a .git, by no name and no link; other kinds of files get
 * a sentence. Each attack on the kernel's check runs with openat2 and with the walk that replaces it.
 */
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tools/guard/obeyed.h"
#include "base/mem.h"

static const tool_root anywhere = {.path = (char *)"/home/ada/tree"};

static const struct {
    const char *given, *clean; /* NULL: refused */
} cleanings[] = {
    {"src/a.c", "src/a.c"},
    {"./src//a.c", "src/a.c"},
    {"src/../lib/a.c", "lib/a.c"},
    {" `src/a.c` ", "src/a.c"},
    {"/home/ada/tree/src/a.c", "src/a.c"},
    {"/home/ada/tree", ""},
    {".", ""},
    {"\"a\\nb\\\"\\377\"", "a\nb\"\377"},
    {".gitignore", ".gitignore"},
    {"..", NULL},
    {"src/../../etc/passwd", NULL},
    {"/etc/passwd", NULL},
    {"/home/ada/tree2/x", NULL},
    {".git/config", NULL},
    {"sub/.git/hooks/pre-commit", NULL},
    {"sub/.GIT/config", NULL},
    {".git./config", NULL},
    {"git~1/config", NULL},
    {"a/../.git/config", NULL},
};

static void test_paths__are_cleaned_or_refused(void **state)
{
    for (size_t i = 0; i < sizeof cleanings / sizeof *cleanings; i++) {
        char *got = NULL;
        base_err err = {0};
        int code = tool__path_clean(&anywhere, cleanings[i].given, &got, &err);
        if (!cleanings[i].clean) {
            if (!code) fail_msg("%s was let through as %s", cleanings[i].given, got);
            assert_int_equal(code, BASE_E_USAGE);
            assert_true(strlen(err.msg) > 10);
        } else {
            if (code) fail_msg("%s was refused: %s", cleanings[i].given, err.msg);
            assert_string_equal(got, cleanings[i].clean);
        }
        free(got);
    }
}

static void test_paths__odd_names_are_shown_quoted_and_read_back(void **state)
{
    static const char *const names[] = {"a\nb", "tab\there", "quote\"d", "back\\slash", "\xff\xfe",
        "esc\x1b[31m", "rtl\xe2\x80\xae.c", "\x01\x7f", "plain/gr\xc3\xbcn.c"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        base_buf shown = {0};
        char *back = NULL;
        tool__path_show(&shown, names[i]);
        for (const char *p = shown.data; *p; p++) assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
        assert_null(strstr(shown.data, "\xe2\x80\xae"));
        assert_int_equal(tool__path_clean(&anywhere, shown.data, &back, NULL), 0);
        assert_string_equal(back, names[i]);
        free(back);
        base_buf_free(&shown);
    }
    base_buf plain = {0};
    tool__path_show(&plain, "src/gr\xc3\xbcn.c");
    assert_string_equal(plain.data, "src/gr\xc3\xbcn.c");
    base_buf_free(&plain);
}

static void test_paths__links_are_refused_both_ways(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "../secret", "secret\n");
    tree_put(&t, "../outside/f", "secret\n");
    tree_put(&t, "in/f", "inside\n");
    assert_int_equal(symlink("../secret", tree_path(&t, "link")), 0);
    assert_int_equal(symlink("../outside", tree_path(&t, "folder")), 0);
    assert_int_equal(symlink("in", tree_path(&t, "near")), 0);
    tree_open(&t);
    for (int walk = 0; walk < 2; walk++) {
        t.w->root.has_openat2 = !walk;
        static const char *const reads[] = {"link", "folder/f", "near/f"};
        for (size_t i = 0; i < 3; i++) {
            char arguments[100];
            snprintf(arguments, sizeof arguments, "{\"path\":\"%s\"}", reads[i]);
            tool_result r = tree_call(&t, "read", arguments, NULL);
            assert_int_not_equal(r.status, TOOL_OK);
            assert_lacks(r.text.data, "secret\n");
            assert_lacks(r.text.data, "inside");
            tool_result_free(&r);
            /* The control: without the check the link does lead there. */
            assert_int_equal(access(tree_path(&t, reads[i]), R_OK), 0);
        }
        tool_result r = tree_call(&t, "write", "{\"path\":\"folder/new\"}", "x\n");
        assert_int_equal(r.status, TOOL_REFUSED);
        tool_result_free(&r);
        assert_false(tree_has(&t, "../outside/new"));
        r = tree_call(&t, "read", "{\"path\":\"in/f\"}", NULL);
        assert_int_equal(r.status, TOOL_OK);
        assert_contains(r.text.data, "inside");
        tool_result_free(&r);
        base_buf names = {0};
        r = tree_call(&t, "list", "{}", NULL);
        assert_lacks(r.text.data, "link");
        tool_result_free(&r);
        base_buf_free(&names);
    }
    tree_remove(&t);
}

static void test_paths__a_folder_swapped_for_a_link_after_approval_is_refused(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "../outside/keep", "");
    tree_put(&t, "d/keep", "");
    tree_open(&t);
    tool_preview p = {0};
    tool_result r = tree_prepare(&t, "write", "{\"path\":\"d/new\"}", "payload\n", &p);
    assert_int_equal(r.status, TOOL_OK);
    char away[1024];
    snprintf(away, sizeof away, "%s", tree_path(&t, "away"));
    assert_int_equal(rename(tree_path(&t, "d"), away), 0);
    assert_int_equal(symlink("../outside", tree_path(&t, "d")), 0);
    base_err err = {0};
    tool_call call = {.name = "write"};
    tool_result_free(&r);
    assert_int_equal(tool_find("write")->run(t.w, &call, &t.limits, &p, &r, &err), 0);
    assert_int_not_equal(r.status, TOOL_OK);
    assert_false(tree_has(&t, "../outside/new"));
    tool_result_free(&r);
    tool_preview_free(&p);
    tree_remove(&t);
}

static void test_paths__hard_links_are_read_but_not_written(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "../victim", "def f():\n    return 1\n");
    char victim[1024];
    snprintf(victim, sizeof victim, "%s", tree_path(&t, "../victim"));
    assert_int_equal(link(victim, tree_path(&t, "f.py")), 0);
    tree_open(&t);
    tool_result r = tree_call(&t, "read", "{\"path\":\"f.py\"}", NULL);
    assert_int_equal(r.status, TOOL_OK);
    tool_result_free(&r);
    r = tree_call(&t, "rewrite", "{\"path\":\"f.py\",\"name\":\"f\"}", "def f():\n    return 2\n");
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "hard link");
    tool_result_free(&r);
    char *now = tree_get(&t, "../victim");
    assert_string_equal(now, "def f():\n    return 1\n");
    free(now);
    tree_remove(&t);
}

static void test_paths__pipes_devices_and_folders_get_a_sentence(void **state)
{
    tree t;
    tree_make(&t, false);
    assert_int_equal(mkfifo(tree_path(&t, "pipe"), 0644), 0);
    bool has_device = !mknod(tree_path(&t, "device"), S_IFCHR | 0644, makedev(1, 5));
    tree_put(&t, "folder/f", "x\n");
    tree_open(&t);
    tool_result r = tree_call(&t, "read", "{\"path\":\"pipe\"}", NULL); /* would hang if it were opened */
    assert_contains(r.text.data, "named pipe");
    tool_result_free(&r);
    if (has_device) {
        r = tree_call(&t, "read", "{\"path\":\"device\"}", NULL);
        assert_contains(r.text.data, "a device");
        tool_result_free(&r);
    }
    r = tree_call(&t, "read", "{\"path\":\"folder\"}", NULL);
    assert_contains(r.text.data, "is a folder");
    assert_contains(r.text.data, "list {\"path\": \"folder\"}");
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_paths__a_sparse_gigabyte_is_refused_unread(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "huge.bin", "");
    assert_int_equal(truncate(tree_path(&t, "huge.bin"), (off_t)1 << 30), 0);
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    tool_result r = tree_call(&t, "read", "{\"path\":\"huge.bin\"}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    assert_contains(r.text.data, "1073741824 bytes");
    assert_contains(r.text.data, "Next: shell");
    tool_result_free(&r);
    r = tree_call(&t, "search", "{\"query\":\"anything\"}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_paths__names_with_newlines_and_bad_utf8_work(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a\nb.txt", "newline\n");
    tree_put(&t, "\xff.txt", "invalid\n");
    tree_open(&t);
    tool_result r = tree_call(&t, "list", "{}", NULL);
    assert_contains(r.text.data, "\"a\\nb.txt\"\n");
    assert_contains(r.text.data, "\"\\377.txt\"\n");
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"\\\"a\\\\nb.txt\\\"\"}", NULL);
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(r.text.data, "newline");
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"\\\"\\\\377.txt\\\"\"}", NULL);
    assert_int_equal(r.status, TOOL_OK);
    tool_result_free(&r);
    r = tree_call(&t, "search", "{\"query\":\"invalid\"}", NULL);
    assert_contains(r.text.data, "\"\\377.txt\":1: invalid");
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_paths__missing_ones_name_near_ones(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "src/hiredis.c", "int x;\n");
    tree_put(&t, "src/net.c", "int y;\n");
    tree_open(&t);
    tool_result r = tree_call(&t, "read", "{\"path\":\"hiredis.c\"}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    assert_contains(r.text.data, "Did you mean src/hiredis.c? Next: read {\"path\": \"src/hiredis.c\"}");
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"src/hiredi.c\"}", NULL);
    assert_contains(r.text.data, "Did you mean src/hiredis.c");
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"/etc/hiredis.c\"}", NULL);
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "outside of this tree");
    assert_contains(r.text.data, "src/hiredis.c");
    tool_result_free(&r);
    tree_remove(&t);
}

/* What is obeyed unasked, by every name that some file system takes for the same, and by a link. */
static void test_paths__what_is_obeyed_is_known_by_all_its_names(void **state)
{
    static const char *const obeyed[] = {"AGENTS.md", "src/AGENTS.md", "agents.md", "AGENTS.MD", "Agents.Md",
        "AGENTS.md.", "AGENTS.md ", "AGENTS.md. .", "AGENT\xc5\xbf.md", "AGENTS\xe2\x80\x8b.md",
        "AGENTS.md::$DATA", ".kvist/commands/x.md", ".KVIST/config", ".\xe2\x84\xaavist/config", "a/.kvist/x",
        "KVIST~1/config", ".kvist", ".agents/skills/a/SKILL.md", "a/.Agents/x", "AGENTS~1/x", ".agents./x",
        "guide.md", "house/rules/new.md", "a/inner.md", ".envrc", "a/.envrc", ".VSCode/tasks.json",
        "a/.vscode/x", ".github/workflows/x.yml", "a/.github/Workflows/x", "PRE-CO~1.YAM",
        ".cargo/config.toml", "ci/workflows/x.yml", "tasks.json"};
    static const char *const others[] = {"src/agents.c", "AGENTS.md.txt", "docs/AGENTS", "AGENTS.md/x",
        "kvist/a.c", "agents/a.c", "house/other.md", "house/rules2/x", "KVISTLER~1/x", "a/guide.md",
        "README.md", "envrc", ".envrc/x", "vscode/tasks.json", ".github/README.md", ".github/workflow/x",
        "workflows/x.yml", ".cargo/config.toml.md", "Makefile", "package.json", "conftest.py", "build.rs",
        "setup.py", "ci/other/x.yml", "settings.json", "src/mise/a.c"};
    tree t;
    tree_make(&t, true);
    tree_put(&t, "guide.md", "x");
    tree_put(&t, "a/inner.md", "x");
    tree_put(&t, ".vscode/settings.json", "{}");
    tree_put(&t, "ci/workflows/build.yml", "x");
    tree_put(&t, ".github/README.md", "x");
    assert_int_equal(symlink("../tasks.json", tree_path(&t, ".vscode/tasks.json")), 0);
    assert_int_equal(symlink("../ci/workflows", tree_path(&t, ".github/workflows")), 0);
    tree_put(&t, "house/rules/old.md", "x");
    assert_int_equal(symlink("guide.md", tree_path(&t, "AGENTS.md")), 0);
    assert_int_equal(symlink("../a/inner.md", tree_path(&t, "a/AGENTS.md")), 0);
    assert_int_equal(symlink("house/rules", tree_path(&t, ".kvist")), 0);
    tree_open(&t);
    for (size_t i = 0; i < sizeof obeyed / sizeof *obeyed; i++)
        if (!tool__path_obeyed_by(&t.w->root, obeyed[i])) fail_msg("%s is obeyed", obeyed[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tool__path_obeyed_by(&t.w->root, others[i])) fail_msg("%s is not obeyed", others[i]);
    /* A link to what is not there yet: writing it makes what is obeyed. */
    assert_null(tool__path_obeyed_by(&t.w->root, "later.md"));
    assert_int_equal(symlink("../later.md", tree_path(&t, "house/AGENTS.md")), 0);
    assert_null(tool__path_obeyed_by(
        &t.w->root, "later.md")); /* of a folder beside it: no session reads it from here */
    assert_int_equal(unlink(tree_path(&t, "AGENTS.md")), 0);
    assert_int_equal(symlink("later.md", tree_path(&t, "AGENTS.md")), 0);
    assert_non_null(tool__path_obeyed_by(&t.w->root, "later.md"));
    /* A tree of dotfiles that holds kvist's own folder: what is configured and allowed there is obeyed. */
    char *before = getenv("KVIST_HOME") ? strdup(getenv("KVIST_HOME")) : NULL;
    assert_int_equal(setenv("KVIST_HOME", tree_path(&t, "dotfiles"), 1), 0);
    assert_non_null(tool__path_obeyed_by(&t.w->root, "dotfiles/config/approvals"));
    assert_non_null(tool__path_obeyed_by(&t.w->root, "dotfiles/config/config"));
    assert_null(tool__path_obeyed_by(&t.w->root, "dotfiles/configs"));
    if (before)
        setenv("KVIST_HOME", before, 1);
    else
        unsetenv("KVIST_HOME");
    free(before);
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths__are_cleaned_or_refused),
        cmocka_unit_test(test_paths__odd_names_are_shown_quoted_and_read_back),
        cmocka_unit_test(test_paths__links_are_refused_both_ways),
        cmocka_unit_test(test_paths__a_folder_swapped_for_a_link_after_approval_is_refused),
        cmocka_unit_test(test_paths__hard_links_are_read_but_not_written),
        cmocka_unit_test(test_paths__pipes_devices_and_folders_get_a_sentence),
        cmocka_unit_test(test_paths__a_sparse_gigabyte_is_refused_unread),
        cmocka_unit_test(test_paths__names_with_newlines_and_bad_utf8_work),
        cmocka_unit_test(test_paths__missing_ones_name_near_ones),
        cmocka_unit_test(test_paths__what_is_obeyed_is_known_by_all_its_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
