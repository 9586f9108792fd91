/* /commit: a drafted message, a question in every mode, and the person's own git with their hooks. */
#include <sys/stat.h>
#include <unistd.h>

#include "agent/command/command.h"
#include "base/mem.h"
#include "stage.h"
#include "tools/commit.h"

#define DRAFT "answer <<X\nAdd a greeting\n\nThe page had none.\nX\n"

/* A command of the shell in the tree; its output without the last line's end. The caller frees. */
static char *sh(const char *command)
{
    base_buf line = {0}, out = {0};
    char bytes[512];
    base_buf_printf(&line, "cd '%s' && { %s ; } 2>&1", tree, command);
    FILE *p = popen(line.data, "r");
    assert_non_null(p);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, p)) > 0;) base_buf_add(&out, bytes, n);
    const int status = pclose(p);
    if (status) fail_msg("%s: %s", command, out.data ? out.data : "");
    while (out.len && out.data[out.len - 1] == '\n') out.data[--out.len] = '\0';
    base_buf_free(&line);
    return base_buf_take(&out);
}

static void run(const char *command)
{
    free(sh(command));
}

static void assert_says(const char *command, const char *expected)
{
    char *said = sh(command);
    assert_string_equal(said ? said : "", expected);
    free(said);
}

static void put_hook(const char *text)
{
    put_file(".git/hooks/pre-commit", text);
    run("mkdir -p .git/hooks && chmod 755 .git/hooks/pre-commit");
}

/* Two commits, and a.txt staged in addition to what stands. */
static int make_repository(void **state)
{
    if (make_folders(state)) return -1;
    setenv("HOME", base_folder, 1);
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    unsetenv("XDG_CONFIG_HOME");
    run("git init -q -b main && mkdir -p .git/hooks && git "
        "config user.name Ada && git config user.email a@b");
    put_file("a.txt", "one\n");
    run("git add a.txt && git commit -q -m 'Add the first line'");
    put_file("a.txt", "one\ntwo\n");
    run("git commit -qam 'Add the second line' -m 'It was missing.'");
    put_file("a.txt", "one\ntwo\nhello\n");
    run("git add a.txt");
    return 0;
}

static host commit_as(const char *script, agent_mode mode, bool can_ask, agent_answer answer, int expected)
{
    host h = new_host();
    h.answer = answer;
    agent_session *s = open_session(&h, script, mode, NULL, can_ask);
    base_buf_clear(&h.json);
    assert_int_equal(submit(s, &h, "/commit"), expected);
    assert_sent(s, "Add the first line\n", true);
    assert_sent(s, "Add the second line\n\nIt was missing.", true);
    assert_sent(s, "+hello", true);
    agent_session_close(s);
    return h;
}

/* Of a draft that was made twice. */
static host commit_again(const char *script)
{
    host h = new_host();
    h.answer = AGENT_YES;
    agent_session *s = open_session(&h, script, AGENT_MODE_ALL, NULL, true);
    assert_int_equal(submit(s, &h, "/commit"), 0);
    assert_sent(s, "Add the first line", false);
    agent_session_close(s);
    return h;
}

static void test_commit__asks_in_every_mode_and_commits(void **state)
{
    static const agent_mode modes[] = {AGENT_MODE_PLAN, AGENT_MODE_ASK, AGENT_MODE_EDITS, AGENT_MODE_ALL};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        host h = commit_as("ctx 20000\n" DRAFT, modes[i], true, AGENT_YES, 0);
        assert_int_equal(h.asked, 1);
        assert_true(told(&h, "Add a greeting\\n\\nThe page had none.\\n\",\"power\":\"writes\""));
        assert_outline_has(&h, "answer ");
        assert_outline_has(&h, "commit:ok ");
        assert_says("git log -1 --format=%an:%B", "Ada:Add a greeting\n\nThe page had none.");
        assert_says("git show --stat --format= HEAD | head -1", " a.txt | 1 +");
        assert_says("ls '../state' | grep -c 'commit-.*txt' || true", "0"); /* the message lies in git now */
        run("git reset -q --soft HEAD~1");
        free_host(&h);
    }
}

static void test_commit__without_a_yes_nothing_is_committed(void **state)
{
    host h = commit_as("ctx 20000\n" DRAFT, AGENT_MODE_ALL, true, AGENT_NO, 0);
    assert_int_equal(h.asked, 1);
    assert_outline_has(&h, "approval:no commit:denied ");
    assert_says("git rev-list --count HEAD", "2");
    free_host(&h);

    h = commit_as("ctx 20000\n" DRAFT, AGENT_MODE_ALL, false, AGENT_YES, 0); /* nobody to ask */
    assert_true(told(&h, "\"payload\":\"Add a greeting\\n\\nThe page had none.\\n\""));
    assert_true(told(&h, "nothing was committed: that needs a yes"));
    assert_says("git rev-list --count HEAD", "2");
    free_host(&h);
}

/* A small model copies a message that it is shown for its style: it drafts anew without having seen one. */
static void test_commit__a_copied_message_is_drafted_anew(void **state)
{
    static const char copy[] = "answer <<X\nAdd the second line\n\nWhatever.\nX\n",
                      copied_body[] = "answer <<X\nAdd a line\n\nThe file ended in front of it.\nX\n",
                      listed[] = "answer <<X\ntidy the table of names\nX\n"; /* without its star and number */
    static const char *const drafts[] = {copy, copied_body, listed};
    base_buf script = {0};
    run("git stash -q && git commit -q --amend -m 'Add the second line' "
        "-m 'The file ended in front of it.' -m '* Tidy the table of names. (#12)' && git stash pop -q --index");
    for (int i = 0; i < 3; i++) {
        base_buf_clear(&script);
        base_buf_printf(&script, "ctx 20000\n%s" DRAFT, drafts[i]);
        host h = commit_again(script.data);
        assert_true(told(&h, "one of the last messages: it is drafted anew"));
        assert_says("git log -1 --format=%B", "Add a greeting\n\nThe page had none.");
        free_host(&h);
        run("git reset -q --soft HEAD~1");
    }
    base_buf_clear(&script);
    base_buf_printf(&script, "ctx 20000\n%s%s", copy, copy);
    host h = commit_again(script.data); /* not copied: the person decides */
    assert_int_equal(h.asked, 1);
    assert_says("git log -1 --format=%s", "Add the second line");
    free_host(&h);
    base_buf_free(&script);
}

static void test_commit__takes_the_persons_words(void **state)
{
    host h = new_host();
    h.answer = AGENT_EDIT;
    h.text = "Greet the reader\n\n# kept as it is";
    agent_session *s = open_session(&h, "ctx 20000\n" DRAFT, AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "/commit"), 0);
    assert_says("git log -1 --format=%B", "Greet the reader\n\n# kept as it is");
    agent_session_close(s);
    free_host(&h);
}

#define MERGE(ours)                                                                                             \
    "git commit -qm Mine && git checkout -q -b side HEAD~1 && echo side > side.txt && echo side > both.txt && " \
    "git add . && git commit -qm 'Add a side' && git checkout -q main && " ours

/* git's own words for a merge are better than any draft, and are lost where another message is given. */
static void test_commit__a_merge_keeps_gits_words(void **state)
{
    run(MERGE("git merge -q --no-ff --no-commit side"));
    host h = new_host();
    h.answer = AGENT_YES;
    agent_session *s = open_session(&h, "ctx 20000\n" DRAFT, AGENT_MODE_ALL, NULL, true);
    assert_int_equal(submit(s, &h, "/commit"), 0);
    assert_int_equal(h.asked, 1);
    assert_true(told(&h, "git has worded this commit itself"));
    assert_says("git log -1 --format=%s", "Merge branch 'side'");
    assert_says("git rev-list --parents -1 HEAD | wc -w", "3");
    agent_session_close(s);
    free_host(&h);
}

/* A merge whose files are all as ours are has nothing staged and is a commit all the same. */
static void test_commit__a_merge_of_nothing_is_a_commit(void **state)
{
    run(MERGE("git merge -q -s ours --no-ff --no-commit side"));
    host h = new_host();
    h.answer = AGENT_YES;
    agent_session *s = open_session(&h, "ctx 20000\n" DRAFT, AGENT_MODE_ALL, NULL, true);
    assert_int_equal(submit(s, &h, "/commit"), 0);
    assert_says("git rev-list --parents -1 HEAD | wc -w", "3");
    assert_int_equal(submit(s, &h, "/commit"), BASE_E_STATE); /* now it is over */
    agent_session_close(s);
    free_host(&h);
}

static void test_commit__conflicts_are_named_before_a_draft(void **state)
{
    run(MERGE("echo main > both.txt && git add both.txt && git commit -qm Both && ! git merge -q side"));
    host h = new_host();
    h.answer = AGENT_YES;
    agent_session *s = open_session(&h, "ctx 20000\n" DRAFT, AGENT_MODE_ALL, NULL, true);
    assert_int_equal(submit(s, &h, "/commit"), BASE_E_STATE);
    assert_int_equal(h.asked, 0);
    assert_true(told(&h, "1 file is in conflict: both.txt."));
    run("echo whole > both.txt && git add both.txt");
    assert_int_equal(submit(s, &h, "/commit"), 0);
    assert_says("git log -1 --format=%B", "Merge branch 'side'"); /* without git's list of conflicts */
    agent_session_close(s);
    free_host(&h);
}

/* The person stages something else while the question waits. */
static agent_decision stage_more(void *user, const agent_event *request)
{
    host *h = user;
    h->asked++;
    put_file("b.txt", "more\n");
    run("git add b.txt");
    return (agent_decision){AGENT_YES, NULL};
}

static void test_commit__refuses_an_index_that_changed(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, "ctx 20000\n" DRAFT, AGENT_MODE_ALL, NULL, true);
    agent_session_agent(s)->host.approve = stage_more;
    assert_int_equal(submit(s, &h, "/commit"), BASE_E_STATE);
    assert_int_equal(h.asked, 1);
    assert_true(told(&h, "what is staged changed since the message was drafted"));
    assert_true(told(&h, "the message is kept in "));
    assert_outline_has(&h, "commit:refused ");
    assert_says("git rev-list --count HEAD", "2");
    assert_says("cat ../state/commit-*.txt | head -1", "Add a greeting");
    agent_session_close(s);
    free_host(&h);
}

static void test_commit__a_hook_that_refuses_is_shown(void **state)
{
    put_hook("#!/bin/sh\necho 'no tabs, please'\nexit 3\n");
    host h = commit_as("ctx 20000\n" DRAFT, AGENT_MODE_ASK, true, AGENT_YES, BASE_E_STATE);
    assert_true(told(&h, "no tabs, please"));
    assert_true(told(&h, "the message is kept in "));
    assert_false(told(&h, "changed in this session")); /* it was there before */
    assert_outline_has(&h, "commit:failed ");
    assert_says("git rev-list --count HEAD", "2");
    free_host(&h);
}

static void test_commit__runs_the_persons_hooks(void **state)
{
    put_hook("#!/bin/sh\necho ran > ../hook-ran\n"); /* outside of the tree: no sandbox */
    host h = commit_as("ctx 20000\n" DRAFT, AGENT_MODE_ASK, true, AGENT_YES, 0);
    assert_says("cat ../hook-ran", "ran");
    free_host(&h);
}

static void test_commit__lists_what_git_obeys_and_changed(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, "ctx 20000\n" DRAFT, AGENT_MODE_ALL, NULL, true);
    put_hook("#!/bin/sh\nexit 0\n");
    run("git config core.abbrev 12");
    h.answer = AGENT_NO;
    assert_int_equal(submit(s, &h, "/commit"), 0);
    const char *question =
        strstr(h.json.data, "\"headline\":\"git runs or obeys what changed in this session: ");
    assert_non_null(question);
    assert_non_null(strstr(question, "changed .git/config"));
    assert_non_null(strstr(question, "made .git/hooks/pre-commit"));
    assert_int_equal(h.asked, 1);
    agent_session_close(s);
    free_host(&h);
}

static void test_commit__nothing_staged_says_what_to_do(void **state)
{
    run("git reset -q");
    host h = new_host();
    agent_session *s = open_session(&h, "ctx 20000\n" DRAFT, AGENT_MODE_ALL, NULL, true);
    assert_int_equal(submit(s, &h, "/commit"), BASE_E_STATE);
    assert_true(told(&h, "nothing is staged: `git add FILE`"));
    assert_int_equal(h.asked, 0);
    assert_int_equal(submit(s, &h, "/commit now"), BASE_E_USAGE);
    agent_session_close(s);
    free_host(&h);
}

static void test_commit__the_first_commit_and_no_identity(void **state)
{
    run("git checkout -q --orphan first && git config --unset user.name && git config --unset user.email && "
        "git config user.useConfigOnly true");
    host h = new_host();
    agent_session *s = open_session(&h, "ctx 20000\n" DRAFT DRAFT, AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "/commit"), BASE_E_STATE);
    assert_true(told(&h, "Please tell me who you are"));
    assert_true(told(&h, "the message is kept in "));
    run("git config user.name Ada && git config user.email a@b");
    assert_int_equal(submit(s, &h, "/commit"), 0);
    assert_says("git log --format=%s", "Add a greeting");
    agent_session_close(s);
    free_host(&h);
}

static void test_commit__a_long_diff_comes_in_parts(void **state)
{
    base_buf text = {0}, script = {0};
    for (uint32_t i = 0; i < 700; i++)
        base_buf_printf(&text, "int part_%u(int a) { return a + %u; }\n", i, i);
    put_file("long.c", text.data);
    run("git add long.c");
    base_buf_puts(&script, "ctx 40000\n");
    for (int i = 0; i < 8; i++) base_buf_printf(&script, "answer It adds functions, batch %d.\n", i);
    host h = new_host();
    h.answer = AGENT_NO;
    agent_session *s = open_session(&h, script.data, AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "/commit"), 0);
    assert_true(told(&h, "/commit (part 2 of what is staged)"));
    assert_true(told(&h, "part_0(int a)"));
    assert_true(told(&h, "part_699(int a)")); /* nothing is left out */
    assert_sent(s, "part by part:\n- It adds functions, batch 0.", true);
    assert_int_equal(h.asked, 1);
    agent_session_close(s);
    free_host(&h);
    base_buf_free(&text);
    base_buf_free(&script);
}

/* A name's own line end makes no second line of the list; the model reads every byte of it all the same. */
static void test_commit__a_name_cannot_pass_for_a_line_of_the_list(void **state)
{
    put_file("a\nM forged.c\x1b[2J", "x\n");
    run("git add -A");
    host h = new_host();
    h.answer = AGENT_NO;
    agent_session *s = open_session(&h, "ctx 20000\n" DRAFT, AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "/commit"), 0);
    assert_sent(s, "\nM forged.c", false);
    assert_sent(s, "A a<LF>M forged.c<ESC>[2J\n", true);
    agent_session_close(s);
    free_host(&h);
}

static void test_commit__one_long_line_is_cut(void **state)
{
    enum { LONG = 3 << 20 };
    char *line = base_xcalloc(LONG + 1, 1);
    memset(line, 'x', LONG);
    put_file("long.txt", line);
    run("git add -A");
    base_err err;
    tool_workspace *w = NULL;
    tool_staged staged;
    assert_int_equal(tool_workspace_open(&w, &(tool_workspace_options){.dir = tree}, &err), 0);
    assert_int_equal(tool_commit_look(w, 1000, &staged, &err), 0);
    assert_true(staged.patches.is_cut);
    assert_in_range(staged.patches.text.len, 1 << 20, (1 << 20) + 1);
    assert_int_equal(staged.patches.n, 2);
    tool_staged_free(&staged);
    tool_workspace_close(w);
    free(line);
}

static void test_commit__an_answer_becomes_a_message(void **state)
{
    static const char *const pairs[][2] = {{"Fix it", "Fix it\n"}, {"  \n\nFix it\n\n\n", "Fix it\n"},
        {"Here it is:\n```text\nFix it\n\nWhy.  \n```\nDone.", "Fix it\n\nWhy.\n"},
        {"Commit message: Fix it\n\n- a\n", "Fix it\n\n- a\n"}, {"\"Fix it\"", "Fix it\n"}, {"", ""},
        {"```", ""}, {"```\nopen", "open\n"}, {"Subject:", ""},
        {"## Fix it\n#1 is gone", "Fix it\n#1 is gone\n"}, {"#1 is gone", "#1 is gone\n"}, {"\"", "\"\n"},
        {"a\x1b[31mb", NULL}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        base_buf got = {0};
        agent_commit_clean(pairs[i][0], &got);
        if (pairs[i][1])
            assert_string_equal(got.data ? got.data : "", pairs[i][1]);
        else
            assert_null(strchr(got.data, 0x1b));
        base_buf_free(&got);
    }
}

#define IN_REPOSITORY(f) cmocka_unit_test_setup_teardown(f, make_repository, drop_folders)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_REPOSITORY(test_commit__asks_in_every_mode_and_commits),
        IN_REPOSITORY(test_commit__without_a_yes_nothing_is_committed),
        IN_REPOSITORY(test_commit__a_copied_message_is_drafted_anew),
        IN_REPOSITORY(test_commit__takes_the_persons_words),
        IN_REPOSITORY(test_commit__refuses_an_index_that_changed),
        IN_REPOSITORY(test_commit__a_hook_that_refuses_is_shown),
        IN_REPOSITORY(test_commit__runs_the_persons_hooks),
        IN_REPOSITORY(test_commit__lists_what_git_obeys_and_changed),
        IN_REPOSITORY(test_commit__nothing_staged_says_what_to_do),
        IN_REPOSITORY(test_commit__the_first_commit_and_no_identity),
        IN_REPOSITORY(test_commit__a_long_diff_comes_in_parts),
        IN_REPOSITORY(test_commit__a_name_cannot_pass_for_a_line_of_the_list),
        IN_REPOSITORY(test_commit__one_long_line_is_cut),
        IN_REPOSITORY(test_commit__a_merge_keeps_gits_words),
        IN_REPOSITORY(test_commit__a_merge_of_nothing_is_a_commit),
        IN_REPOSITORY(test_commit__conflicts_are_named_before_a_draft),
        cmocka_unit_test(test_commit__an_answer_becomes_a_message),
    };
    return RUN_ON_BOTH(tests);
}
