/* What a person allowed for longer than once: commands for good in a tree, and those that a configuration names. */
#include <sys/stat.h>

#include "agent/approve/approve.h"
#include "agent/approve/approvals.h"
#include "stage.h"

#define RUN(command)                                                                                         \
    "answer <tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"" command "\"}}</tools>\n"

static agent_session *open_with_test(
    host *h, const char *script, const char *command, bool is_typed, bool ask)
{
    stage_configured[AGENT_CONFIGURED_TEST] =
        (agent_configured_command){command, is_typed ? "the command line" : ".kvist/config:1", is_typed};
    return open_session(h, script, AGENT_MODE_ASK, NULL, ask);
}

static void put_approvals(const char *text, mode_t mode)
{
    char *path = base_fs_home(BASE_HOME_CONFIG, "approvals"), *folder = base_fs_home(BASE_HOME_CONFIG, NULL);
    assert_int_equal(base_fs_mkdirs(folder, NULL), 0);
    assert_int_equal(base_fs_write(path, text, strlen(text), 0600, NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
    free(path);
    free(folder);
}

static size_t count(const char *of)
{
    agent_approvals all;
    assert_int_equal(agent_approvals_read(of, &all, NULL), 0);
    const size_t n = all.n;
    agent_approvals_free(&all);
    return n;
}

static void test_approvals__for_good_is_this_command_in_this_tree(void **state)
{
    host h = new_host();
    h.answer = AGENT_ALWAYS_HERE;
    agent_session *s = open_session(&h, RUN("echo a") "answer 1\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "first");
    assert_int_equal(h.asked, 1);
    assert_outline_has(&h, "approval:always here");
    agent_session_close(s);
    s = open_session(&h, RUN("echo a") RUN("echo a ") "answer 2\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "another session");
    assert_int_equal(h.asked, 2); /* for the one with a blank more */
    agent_session_close(s);
    const char *const other = "/another/tree";
    assert_false(agent_approvals_has(AGENT_APPROVAL_COMMAND, other, "echo a", NULL));
    assert_int_equal(count(other), 0);
    assert_int_equal(count(NULL), 2);
    struct stat st;
    char *path = base_fs_home(BASE_HOME_CONFIG, "approvals");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    free(path);
    free_host(&h);
}

static void test_approvals__taken_back_it_asks_in_the_same_session(void **state)
{
    host h = new_host();
    h.answer = AGENT_ALWAYS_HERE;
    agent_session *s =
        open_session(&h, RUN("echo a") "answer 1\n" RUN("echo a") "answer 2\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "first");
    agent_approvals all;
    assert_int_equal(agent_approvals_read(NULL, &all, NULL), 0);
    assert_int_equal(all.n, 1);
    assert_string_equal(all.rows[0].what, "echo a");
    assert_int_equal(agent_approvals_remove(&all.rows[0], NULL), 0);
    base_err err = {0};
    assert_int_equal(agent_approvals_remove(&all.rows[0], &err), BASE_E_NOT_FOUND);
    agent_approvals_free(&all);
    submit(s, &h, "second");
    assert_int_equal(h.asked, 2);
    agent_session_close(s);
    free_host(&h);
}

/* What the next session obeys is asked about whatever was allowed; a write cannot be allowed for good. */
static void test_approvals__a_write_is_never_allowed_for_good(void **state)
{
    static const char script[] =
        "answer <<X\n<tools>{\"name\": \"write\", \"arguments\": {\"path\": "
        "\"AGENTS.md\"}}</tools>\n```\none\n"
        "```\nX\nanswer 1\n"
        "answer <<X\n<tools>{\"name\": \"write\", \"arguments\": {\"path\": \".kvist/config\"}}</tools>\n"
        "```\ntest = true\n```\nX\nanswer 2\n";
    host h = new_host();
    h.answer = AGENT_ALWAYS_HERE;
    agent_session *s = open_session(&h, script, AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "one");
    submit(s, &h, "two");
    assert_int_equal(h.asked, 2);
    assert_int_equal(count(NULL), 0);
    agent_session_close(s);
    free_host(&h);
}

static void test_approvals__a_file_that_others_may_write_allows_nothing(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, RUN("echo a") RUN("echo a") "answer 1\n", AGENT_MODE_ASK, NULL, true);
    base_buf line = {0};
    base_buf_printf(&line, "no line of ours\n\t\n%s\techo a\nunfinished\techo b", tree);
    put_approvals(line.data, 0666);
    base_err err = {0};
    assert_false(agent_approvals_has(AGENT_APPROVAL_COMMAND, tree, "echo a", &err));
    assert_int_equal(err.code, BASE_E_STATE);
    h.answer = AGENT_NO;
    submit(s, &h, "run it");
    assert_int_equal(h.asked, 1);
    put_approvals(line.data, 0600);
    submit(s, &h, "run it again");
    assert_int_equal(h.asked, 1);
    assert_int_equal(count(tree), 1);
    assert_int_equal(count("unfinished"), 0);
    assert_int_equal(agent_approvals_add(AGENT_APPROVAL_COMMAND, tree, "b\tc\nd", NULL), 0);
    assert_true(agent_approvals_has(AGENT_APPROVAL_COMMAND, tree, "b\tc\nd", NULL));
    assert_true(agent_approvals_has(AGENT_APPROVAL_COMMAND, tree, "echo a", NULL));
    assert_int_equal(count(tree), 2);
    base_buf_free(&line);
    agent_session_close(s);
    free_host(&h);
}

/* A tree's own command counts once it was approved, and again when it changes. */
static void test_approvals__a_configured_command_counts_once_approved(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_with_test(&h, "answer 1\n", "sh test_add.sh", false, true);
    agent *a = agent_session_agent(s);
    h.answer = AGENT_NO;
    assert_null(agent__configured(a, AGENT_CONFIGURED_TEST));
    assert_null(agent__configured(a, AGENT_CONFIGURED_TEST)); /* a no holds for the turn */
    assert_int_equal(h.asked, 1);
    assert_true(told(&h, "\"headline\":\"$ sh test_add.sh (the test of .kvist/config:1)\""));
    submit(s, &h, "another turn");
    h.answer = AGENT_YES;
    assert_string_equal(agent__configured(a, AGENT_CONFIGURED_TEST), "sh test_add.sh");
    assert_string_equal(agent__configured(a, AGENT_CONFIGURED_TEST), "sh test_add.sh");
    assert_int_equal(h.asked, 2);
    assert_int_equal(count(NULL), 0); /* once is not for good */
    submit(s, &h, "/test");           /* in the same turn: its run asks no second time */
    assert_int_equal(h.asked, 2);
    assert_outline_has(&h, "shell:failed");
    submit(s, &h, "/settings");
    assert_true(told(&h, "sh test_add.sh\\t.kvist/config:1: asked before it first counts"));
    agent_session_close(s);

    h.asked = 0;
    h.answer = AGENT_ALWAYS_HERE;
    s = open_with_test(&h, "answer 1\n", "sh test_add.sh", false, true);
    submit(s, &h, "/test");
    agent_session_close(s);
    s = open_with_test(&h, "answer 1\n", "sh test_add.sh", false, true);
    submit(s, &h, "/test");
    assert_int_equal(h.asked, 1);
    submit(s, &h, "/settings");
    assert_true(told(&h, ".kvist/config:1: approved for this tree"));
    submit(s, &h, "/lint");
    assert_true(told(&h, "no lint is configured"));
    agent_session_close(s);
    s = open_with_test(&h, "answer 1\n", "sh test_add.sh; true", false, true);
    submit(s, &h, "/test");
    assert_int_equal(h.asked, 2);
    agent_session_close(s);
    free_host(&h);
}

static void test_approvals__without_anybody_to_ask_only_a_typed_command_counts(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_with_test(&h, "answer 1\n", "sh test_add.sh", false, false);
    submit(s, &h, "/test");
    assert_true(told(&h, "kvist approvals allow"));
    assert_null(strstr(h.outline.data, "shell:"));
    agent_session_close(s);
    base_buf_clear(&h.json);
    s = open_with_test(&h, "answer 1\n", "sh test_add.sh", true, false);
    assert_non_null(agent__configured(agent_session_agent(s), AGENT_CONFIGURED_TEST));
    submit(s, &h, "/test");
    assert_outline_has(&h, "shell:failed");
    assert_false(told(&h, "denied"));
    agent_set_mode(agent_session_agent(s), AGENT_MODE_PLAN, NULL);
    assert_null(agent__configured(agent_session_agent(s), AGENT_CONFIGURED_TEST));
    submit(s, &h, "/test");
    assert_true(told(&h, "in mode plan nothing is run"));
    agent_session_close(s);
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_approvals__for_good_is_this_command_in_this_tree),
        TEST_CASE(test_approvals__taken_back_it_asks_in_the_same_session),
        TEST_CASE(test_approvals__a_write_is_never_allowed_for_good),
        TEST_CASE(test_approvals__a_file_that_others_may_write_allows_nothing),
        TEST_CASE(test_approvals__a_configured_command_counts_once_approved),
        TEST_CASE(test_approvals__without_anybody_to_ask_only_a_typed_command_counts),
    };
    return RUN_ON_BOTH(tests);
}
