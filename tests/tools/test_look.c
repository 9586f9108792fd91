/*
 * Looking: list, read, search, git, recall, and what a workspace says about its tree. Error texts end in the next call.
 */
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "tools/file/text.h"

/* Every source says truthfully which bytes of which file it is. */
static void check_sources(tree *t, const tool_result *r)
{
    for (uint32_t i = 0; i < r->n_sources; i++) {
        const tool_source *s = &r->sources[i];
        char *text = tree_get(t, s->path), hex[65];
        assert_non_null(text);
        base_sha256_hex(text, strlen(text), hex);
        assert_string_equal(s->version, hex);
        assert_true(s->from <= s->to && s->to <= r->text.len);
        assert_memory_equal(r->text.data + s->from, text + s->file_from, s->to - s->from);
        assert_int_equal(s->line, tool__line_of(text, s->file_from));
        free(text);
    }
}

static void test_look__read_shows_ranges_and_says_how_to_go_on(void **state)
{
    tree t;
    base_buf text = {0};
    tree_make(&t, true);
    for (int i = 1; i <= 1000; i++) base_buf_printf(&text, "line number %d\n", i);
    tree_put(&t, "long.txt", text.data);
    tree_put(&t, "open.txt", "a\nb");
    tree_put(&t, "empty.txt", "");
    tree_open(&t);
    tool_result r = tree_call(&t, "read", "{\"path\":\"long.txt\",\"from\":10,\"count\":2}", NULL);
    assert_string_equal(r.text.data, "long.txt, lines 10-11 of 1000:\n"
                                     "line number 10\n"
                                     "line number 11\n"
                                     "[more: read {\"path\": \"long.txt\", \"from\": 12}]\n");
    check_sources(&t, &r);
    assert_int_equal(r.sources[0].line, 10);
    tool_result_free(&r);
    t.limits.result_bytes = 1000;
    r = tree_call(&t, "read", "{\"path\":\"long.txt\"}", NULL);
    assert_true(r.text.len <= 1000);
    assert_contains(r.text.data, "[more: read");
    check_sources(&t, &r);
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"open.txt\"}", NULL);
    assert_string_equal(r.text.data, "open.txt, all 2 lines:\na\nb\n");
    check_sources(&t, &r);
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"empty.txt\"}", NULL);
    assert_string_equal(r.text.data, "empty.txt is empty.\n");
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"open.txt\",\"from\":7}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    assert_contains(r.text.data, "only 2 lines");
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"long.txt:500\",\"count\":\"3\"}", NULL);
    assert_contains(r.text.data, "lines 490-492 of 1000");
    tool_result_free(&r);
    r = tree_call(&t, "read", "{}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    tool_result_free(&r);
    base_buf_free(&text);
    tree_remove(&t);
}

static void test_look__read_bounds_huge_lines(void **state)
{
    tree t;
    base_buf text = {0};
    tree_make(&t, true);
    base_buf_puts(&text, "short\n");
    for (int i = 0; i < 300000; i++) base_buf_puts(&text, "\xc3\xa9");
    base_buf_puts(&text, "\nend\n");
    tree_put(&t, "wide.txt", text.data);
    tree_open(&t);
    tool_result r = tree_call(&t, "read", "{\"path\":\"wide.txt\"}", NULL);
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(r.text.data, "bytes of this line left out]\nend\n");
    assert_true(r.text.len < 3000);
    check_sources(&t, &r);
    assert_int_equal(r.n_sources, 2);
    tool_result_free(&r);
    base_buf_free(&text);
    tree_remove(&t);
}

static const char hiredis_like[] = "struct reply { int type; };\n"
                                   "\n"
                                   "void freeReplyObject(void *reply)\n"
                                   "{\n"
                                   "    free(reply);\n"
                                   "}\n";

static void test_look__search_ranks_definitions_first(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a_use.c", "int main(void)\n{\n    freeReplyObject(0);\n    return 0;\n}\n");
    tree_put(&t, "hiredis.c", hiredis_like);
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    tool_result r = tree_call(&t, "search", "{\"query\":\"freeReplyObject\"}", NULL);
    assert_int_equal(r.status, TOOL_OK);
    assert_int_equal(strncmp(r.text.data, "hiredis.c:3: void freeReplyObject(void *reply)", 45), 0);
    assert_contains(r.text.data, "a_use.c:3: freeReplyObject(0);\n");
    check_sources(&t, &r);
    tool_result_free(&r);
    r = tree_call(&t, "search", "{\"query\":\"FREEREPLY\"}", NULL); /* upper case: case counts */
    assert_int_equal(r.status, TOOL_FAILED);
    tool_result_free(&r);
    r = tree_call(&t, "search", "{\"query\":\"freereply\"}", NULL);
    assert_int_equal(r.status, TOOL_OK);
    tool_result_free(&r);
    r = tree_call(&t, "search", "{\"query\":\"release the reply\"}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    assert_contains(r.text.data, "Nearest names:");
    assert_contains(r.text.data, "freeReplyObject");
    assert_contains(r.text.data, "Next: read {\"path\": ");
    tool_result_free(&r);
    r = tree_call(&t, "search", "{\"query\":\"free[A-Z]\",\"regex\":true,\"path\":\"a_use.c\"}", NULL);
    assert_contains(r.text.data, "a_use.c:3:");
    assert_lacks(r.text.data, "hiredis.c");
    tool_result_free(&r);
    static const char *const heavy[] = {"(a)\\\\1", "(a{1,60}){1,60}", "a{1,9999}"};
    for (size_t i = 0; i < 3; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, "{\"query\":\"%s\",\"regex\":true}", heavy[i]);
        r = tree_call(&t, "search", arguments, NULL);
        assert_int_equal(r.status, TOOL_REFUSED);
        tool_result_free(&r);
    }
    r = tree_call(&t, "search", "{\"query\":\"(\",\"regex\":true}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    tool_result_free(&r);
    r = tree_call(&t, "search", "{\"query\":\"x\",\"path\":\"nowhere\"}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_look__list_follows_gitignore_and_counts_folders(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, ".gitignore", "build/\n");
    tree_put(&t, "build/out.o", "x");
    tree_put(&t, "src/a.c", "int a;\n");
    tree_open(&t);
    tool_result r = tree_call(&t, "list", "{}", NULL);
    assert_string_equal(r.text.data, ".gitignore\nsrc/a.c\n");
    tool_result_free(&r);
    char path[40];
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "many/f%03d.c", i);
        tree_put(&t, path, "int x;\n");
    }
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    r = tree_call(&t, "list", "{}", NULL);
    assert_contains(r.text.data, "many/ (100 files)\n");
    tool_result_free(&r);
    r = tree_call(&t, "list", "{\"path\":\"many\"}", NULL);
    assert_contains(r.text.data, "many/f099.c\n");
    tool_result_free(&r);
    r = tree_call(&t, "list", "{\"path\":\"src/a.c\"}", NULL);
    assert_contains(r.text.data, "Next: read {\"path\": \"src/a.c\"}");
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_look__refresh_tells_what_changed_since_it_was_shown(void **state)
{
    tree t;
    char **changed = NULL;
    tree_make(&t, true);
    tree_put(&t, "a.c", hiredis_like);
    tree_put(&t, "b.c", "int b;\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, &changed, NULL, NULL), 0);
    assert_null(changed[0]);
    free(changed);
    tool_result r = tree_call(&t, "read", "{\"path\":\"a.c\"}", NULL);
    tool_result_free(&r);
    tree_put(&t, "a.c", "void otherName(void)\n{\n}\n");
    tree_put(&t, "b.c", "int c;\n"); /* never shown */
    tree_put(&t, "new.c", "void brandNew(void)\n{\n}\n");
    assert_int_equal(tool_workspace_refresh(t.w, &changed, NULL, NULL), 0);
    assert_string_equal(changed[0], "a.c");
    assert_null(changed[1]);
    free(changed[0]);
    free(changed);
    code_place *places;
    uint32_t n = code_index_define(tool_workspace_index(t.w), "freeReplyObject", &places);
    assert_int_equal(n, 0);
    code_places_free(places, n);
    n = code_index_define(tool_workspace_index(t.w), "brandNew", &places);
    assert_int_equal(n, 1);
    code_places_free(places, n);
    unlink(tree_path(&t, "new.c"));
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    n = code_index_define(tool_workspace_index(t.w), "brandNew", &places);
    assert_int_equal(n, 0);
    code_places_free(places, n);
    tree_remove(&t);
}

static void test_look__git_shows_state_and_history(void **state)
{
    tree t;
    base_buf branch = {0};
    tree_make(&t, true);
    tree_put(&t, "a.c", "int a;\n");
    tree_open(&t);
    tool_workspace_branch(t.w, &branch);
    assert_true(branch.len > 0); /* unborn: the branch's name */
    base_buf_clear(&branch);
    tool_result r = tree_call(&t, "git", "{\"op\":\"log\"}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    assert_contains(r.text.data, "no commit");
    tool_result_free(&r);
    tree_commit(&t, "Begin");
    tree_put(&t, "b.c", "int b;\n");
    tree_commit(&t, "Add b");
    tree_put(&t, "a.c", "int a2;\n");
    tree_put(&t, "new.c", "int n;\n");
    tree_open(&t);
    tool_workspace_branch(t.w, &branch);
    assert_int_equal(branch.data[branch.len - 1], '*');
    static const struct {
        const char *arguments, *has, *lacks;
    } looks[] = {
        {"{\"op\":\"status\"}", " M a.c\n?? new.c\n", "b.c"},
        {"{\"op\":\"diff\"}", "-int a;\n+int a2;\nNew files that git does not follow yet: new.c\n", "+int n"},
        {"{\"op\":\"diff\",\"path\":\"b.c\"}", "No differences", "a2"},
        {"{\"op\":\"diff\",\"rev\":\"HEAD~1..HEAD\"}", "+int b;\n", "a2"},
        {"{\"op\":\"log\"}", "2023-11-14 Ada: Add b\n", NULL},
        {"{\"op\":\"log\",\"path\":\"a.c\"}", "Ada: Begin\n", "Add b"},
        {"{\"op\":\"show\",\"rev\":\"HEAD\"}", "+int b;\n", "int a"},
        {"{\"op\":\"show\",\"rev\":\"HEAD\",\"path\":\"a.c\"}", "int a;\n", "+int"},
        {"{\"op\":\"blame\",\"path\":\"b.c\"}", " 1: int b;\n", NULL},
        {"{\"op\":\"show\",\"rev\":\"nonsense\"}",
            "\"nonsense\" is no tag, branch or commit of this repository. Next: ", "near it"},
        {"{\"op\":\"log\",\"rev\":\"v1.0..HEAD\"}", "\"v1.0\" is no tag, branch or commit", "no commit here"},
        {"{\"op\":\"log\",\"rev\":\"HEAD~1..\"}", "Ada: Add b\n", "Ada: Begin"},
        {"{\"op\":\"log\",\"rev\":\"HEAD..HEAD\"}", "No commits.\n", NULL},
        {"{\"op\":\"push\"}", "no op \"push\"", NULL},
        {"{\"op\":\"diff\",\"path\":\"../x\"}", "out of this tree", NULL},
    };
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        r = tree_call(&t, "git", looks[i].arguments, NULL);
        assert_contains(r.text.data, looks[i].has);
        if (looks[i].lacks) assert_lacks(r.text.data, looks[i].lacks);
        tool_result_free(&r);
    }
    base_buf_free(&branch);
    tree_remove(&t);
}

static void expect_note(tree *t, const char *part)
{
    base_buf notes = {0};
    tree_open(t);
    tool_workspace_notes(t->w, &notes);
    assert_contains(notes.data, part);
    base_buf_free(&notes);
}

static void test_look__odd_trees_work_and_say_what_is_off(void **state)
{
    tree t;
    base_buf branch = {0};
    tree_make(&t, false);
    tree_put(&t, "a.c", "int a;\n");
    expect_note(&t, "Not a git tree");
    tool_result r = tree_call(&t, "list", "{}", NULL);
    assert_string_equal(r.text.data, "a.c\n");
    tool_result_free(&r);
    r = tree_call(&t, "git", "{\"op\":\"log\"}", NULL);
    assert_int_equal(r.status, TOOL_REFUSED);
    tool_result_free(&r);
    tree_remove(&t);

    tree_make(&t, true);
    tree_put(&t, "a.c", "int a;\n");
    expect_note(&t, "no commit yet");
    tree_commit(&t, "Begin");
    tree_put(&t, ".git/MERGE_HEAD", "0123456789012345678901234567890123456789\n");
    expect_note(&t, "In the middle of a merge");
    unlink(tree_path(&t, ".git/MERGE_HEAD"));
    git_oid id;
    assert_int_equal(git_reference_name_to_id(&id, t.w->repo, "HEAD"), 0);
    assert_int_equal(git_repository_set_head_detached(t.w->repo, &id), 0);
    expect_note(&t, "detached");
    tool_workspace_branch(t.w, &branch);
    assert_contains(branch.data, "(detached ");
    tree_put(&t, ".git/config", "[core]\n\tbare = true\n\tworktree = /etc\n");
    tree_open(&t);
    assert_string_equal(tool_workspace_root(t.w), t.dir); /* the repository does not choose where we work */
    r = tree_call(&t, "list", "{}", NULL);
    assert_string_equal(r.text.data, "a.c\n");
    tool_result_free(&r);
    tree_put(&t, "sub/deeper/x.c", "int x;\n");
    char deep[300];
    snprintf(deep, sizeof deep, "%s/sub/deeper", t.dir);
    tool_workspace *w;
    assert_int_equal(tool_workspace_open(&w, &(tool_workspace_options){.dir = deep}, NULL), 0);
    assert_string_equal(tool_workspace_root(w), t.dir);
    tool_workspace_close(w);
    base_buf_free(&branch);
    tree_remove(&t);

    tree_make(&t, false);
    git_repository *repo;
    git_libgit2_init();
    assert_int_equal(git_repository_init(&repo, t.dir, 1), 0);
    git_repository_free(repo);
    expect_note(&t, "bare repository");
    r = tree_call(&t, "write", "{\"path\":\"hooks/post-update\"}", "#!/bin/sh\n");
    assert_int_equal(r.status, TOOL_REFUSED);
    tool_result_free(&r);
    r = tree_call(&t, "shell", "{\"command\":\"true\"}", NULL);
    assert_int_equal(r.status, TOOL_REFUSED);
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_look__nested_repositories_are_not_entered(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "a.c", "int a;\n");
    tree_put(&t, "inner/.git/HEAD", "ref: refs/heads/main\n");
    tree_put(&t, "inner/b.c", "int b;\n");
    tree_open(&t);
    tool_result r = tree_call(&t, "list", "{}", NULL);
    assert_string_equal(r.text.data, "a.c\n");
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"inner/.git/HEAD\"}", NULL);
    assert_int_equal(r.status, TOOL_REFUSED);
    tool_result_free(&r);
    tree_remove(&t);
}

static int recall(void *user, const char *query, base_buf *out, base_err *err)
{
    if (strcmp(query, "known")) return base_fail(err, BASE_E_NOT_FOUND, "nothing");
    base_buf_puts(out, "turn 3: it was blue\n");
    return BASE_OK;
}

static void test_look__recall_asks_the_agent(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_open(&t);
    tool_result r = tree_call(&t, "recall", "{\"query\":\"known\"}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    tool_result_free(&r);
    t.w->recall = recall;
    r = tree_call(&t, "recall", "{\"query\":\"known\"}", NULL);
    assert_int_equal(r.status, TOOL_OK);
    assert_string_equal(r.text.data, "turn 3: it was blue\n");
    tool_result_free(&r);
    r = tree_call(&t, "recall", "{\"query\":\"unknown\"}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    assert_contains(r.text.data, "Next: search {\"query\": \"unknown\"}");
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_look__the_table_fits_a_prompt(void **state)
{
    uint32_t n, small = 0, strong = 0;
    size_t bytes = 0;
    const tool_entry *const *table = tool_table(&n);
    for (uint32_t i = 0; i < n; i++) {
        assert_ptr_equal(tool_find(table[i]->name), table[i]);
        if (table[i]->models == TOOL_ON_REQUEST) continue; /* in no prompt */
        small += table[i]->models != TOOL_FOR_STRONG;
        strong += table[i]->models != TOOL_FOR_SMALL;
        bytes += strlen(table[i]->name) + strlen(table[i]->about);
        for (const tool_argument *a = table[i]->arguments; a->name; a++)
            bytes += strlen(a->name) + strlen(a->about);
    }
    assert_true(small <= 8 && strong <= 8);
    assert_true(bytes < 1800); /* a token has 3 to 4 bytes; the frame around the names comes on top */
    assert_null(tool_find("rm"));
}

/* What doubles with each letter is given up after a count of steps, and at once when the person cancels. */
static void test_look__a_regex_that_would_never_end_is_given_up(void **state)
{
    static const char *const endless[] = {"(.*)(.*)(.*)(.*)(.*)(.*)(.*)[0-9]{9}", "(([a-z]+ ?)+)+[0-9]{9}$",
        "^(x|.x|..)*Q[0-9]{9}", "(?R)?a*(?R)?b*(.*)(.*)Q{9}"};
    tree t;
    base_buf text = {0};
    atomic_bool cancel = true;
    tree_make(&t, true);
    for (int i = 0; i < 900; i++)
        base_buf_printf(&text, "%04000d\n", 0); /* each letter begins a walk to its line's end */
    tree_put(&t, "long/digits.txt", text.data);
    base_buf_clear(&text);
    for (int i = 0; i < 2000; i++)
        base_buf_puts(&text, "words and more words that go on and on for a line Q\n");
    tree_put(&t, "a.txt", text.data);
    tree_put(&t, "b.txt", "needle 123456789\n");
    tree_open(&t);
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, "{\"query\":\"%s\",\"regex\":true}", endless[i]);
        tool_result r = tree_call(&t, "search", arguments, NULL);
        assert_int_not_equal(r.status, TOOL_CANCELLED);
        if (i < 2) {
            assert_int_equal(r.status, TOOL_REFUSED);
            assert_contains(r.text.data, "This regex takes too long: after 1 files it was given up");
        }
        tool_result_free(&r);
        t.limits.cancel = &cancel;
        r = tree_call(&t, "search", arguments, NULL);
        assert_int_equal(r.status, TOOL_CANCELLED);
        tool_result_free(&r);
        t.limits.cancel = NULL;
    }
    tool_result r =
        tree_call(&t, "search", "{\"query\":\"[0-9]*[A-Z]\",\"regex\":true,\"path\":\"long\"}", NULL);
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "takes too long");
    tool_result_free(&r);
    /* The control: the same tree, an ordinary pattern. */
    r = tree_call(&t, "search", "{\"query\":\"needle [0-9]{9}$\",\"regex\":true}", NULL);
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(r.text.data, "b.txt:1:");
    tool_result_free(&r);
    base_buf_free(&text);
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_look__read_shows_ranges_and_says_how_to_go_on),
        cmocka_unit_test(test_look__read_bounds_huge_lines),
        cmocka_unit_test(test_look__search_ranks_definitions_first),
        cmocka_unit_test(test_look__a_regex_that_would_never_end_is_given_up),
        cmocka_unit_test(test_look__list_follows_gitignore_and_counts_folders),
        cmocka_unit_test(test_look__refresh_tells_what_changed_since_it_was_shown),
        cmocka_unit_test(test_look__git_shows_state_and_history),
        cmocka_unit_test(test_look__odd_trees_work_and_say_what_is_off),
        cmocka_unit_test(test_look__nested_repositories_are_not_entered),
        cmocka_unit_test(test_look__recall_asks_the_agent),
        cmocka_unit_test(test_look__the_table_fits_a_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
