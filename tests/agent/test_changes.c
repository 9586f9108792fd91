/* "Explain this diff", "what changed since v1.0": what is put in front of the model, and what the program answers itself. */
#include <unistd.h>

#include "stage.h"

#define SAID(text)   assert_true(told(&h, text))
#define UNSAID(text) assert_false(told(&h, text))

/* A command of the shell in the tree. */
static void run(const char *command)
{
    base_buf line = {0};
    base_buf_printf(&line, "cd '%s' && { %s ; } >/dev/null 2>&1", tree, command);
    if (system(line.data)) fail_msg("%s", command);
    base_buf_free(&line);
}

/* Two commits, the first of them tagged, and nothing else. */
static int make_repository(void **state)
{
    if (make_folders(state)) return -1;
    setenv("HOME", base_folder, 1);
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    unsetenv("XDG_CONFIG_HOME");
    run("git init -q -b main && git config user.name Ada && git config user.email a@b");
    put_file("calc.py", "def add(a, b):\n    return a + b\n\n\ndef diff(a, b):\n    return a - b\n");
    run("git add . && git commit -qm 'Add a calculator' && git tag v1.0");
    put_file("more.py", "X = 1\n");
    run("git add . && git commit -qm 'Add a constant' && git tag v1.1");
    return 0;
}

/* One request; the model's answer is "The model spoke.", where it is asked. sent: what it was asked with has this. */
static host ask(const char *request, const char *sent)
{
    host h = new_host();
    agent_session *s = open_session(&h, "ctx 30000\nanswer The model spoke.\n", AGENT_MODE_ASK, NULL, false);
    base_buf_clear(&h.json);
    assert_int_equal(submit(s, &h, request), 0);
    if (sent) assert_sent(s, sent, true);
    agent_session_close(s);
    return h;
}

/* The program's own sentence is the answer, and the model is not asked. */
static void assert_answered(const char *request, const char *answer)
{
    host h = ask(request, NULL);
    base_buf event = {0};
    base_buf_printf(&event, "\"text\":\"%s\"", answer);
    if (!told(&h, event.data)) fail_msg("%s: %s", request, h.json.data);
    UNSAID("The model spoke.");
    base_buf_free(&event);
    free_host(&h);
}

static void test_changes__an_unknown_revision_is_the_answer(void **state)
{
    assert_answered("what changed since v1.2?",
        "\\\"v1.2\\\" is no tag, branch or commit of this repository; near it: v1.0, v1.1.");
    assert_answered("What changed since the release 1.1",
        "\\\"1.1\\\" is no tag, branch or commit of this repository; near it: v1.1, v1.0.");
    assert_answered("what changed since summer",
        "\\\"summer\\\" is no tag, branch or commit of this repository; the tags here: v1.0, v1.1.");
}

static void test_changes__nothing_changed_is_the_answer(void **state)
{
    static const char *const requests[] = {"explain this diff", "Review my changes please.",
        "What have I changed?", "summarise the uncommitted changes", "What is in my working tree?"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        assert_answered(requests[i], "Nothing has changed: the working tree is as it was committed last.");
    assert_answered("what changed since v1.1",
        "Nothing has changed since v1.1: no commits, and the working tree is the same.");
    assert_answered("what changed since the last release?",
        "Nothing has changed since v1.1: no commits, and the working tree is the same.");
    assert_answered("review what is staged",
        "Nothing is staged: `git add FILE` (or `git add -p` for parts of files) chooses what the commit holds.");
}

/* More is asked than for the diff: the model answers, and the person is told that there is none. */
static void test_changes__a_longer_request_goes_to_the_model(void **state)
{
    host h = ask("Explain how my changes to add are tested", NULL);
    SAID("\"text\":\"Nothing has changed: the working tree is as it was committed last.\"");
    SAID("The model spoke.");
    free_host(&h);
}

static void test_changes__a_function_called_diff_is_no_diff(void **state)
{
    static const char *const requests[] = {"Explain the diff function", "Explain diff(a, b)",
        "explain `diff`", "what does diff do", "explain calc.diff",
        "Explain the difference between add and diff"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        host h = ask(requests[i], NULL);
        SAID("The model spoke.");
        UNSAID("Nothing has changed");
        free_host(&h);
    }
}

static void test_changes__new_files_are_part_of_the_diff(void **state)
{
    put_file("fresh.py", "FRESH = 41\n");
    run("mkdir dir");
    put_file("dir/inner.py", "INNER = 42\n");
    put_file("skipped.log", "noise\n");
    put_file(".gitignore", "*.log\n");
    host h = ask("review my changes", "+FRESH = 41");
    SAID("git diff (3 files):");
    SAID("+INNER = 42");
    SAID("The model spoke.");
    UNSAID("noise");
    free_host(&h);
}

static void test_changes__what_is_staged_alone(void **state)
{
    put_file("more.py", "X = 2\n");
    run("git add more.py");
    put_file("calc.py", "gone\n");
    host h = ask("explain the staged changes", "+X = 2");
    SAID("git diff --cached (1 file):");
    UNSAID("+gone");
    free_host(&h);
}

static void test_changes__what_has_no_room_is_said(void **state)
{
    base_buf text = {0};
    for (int i = 0; i < 3000; i++) base_buf_printf(&text, "line_%d = %d\n", i, i);
    put_file("a_long.py", text.data);
    put_file("b_short.py", "SHORT = 1\n");
    put_file("c_long.py", text.data);
    base_buf_free(&text);
    host h = ask("explain this diff", "+line_0 = 0");
    SAID(
        "of git diff, 3 of 3 files (6,001 of 6,001 changed lines) are not, or not whole, in front of the model: "
        "a_long.py (all but its first ");
    SAID("c_long.py (+3000 -0)");
    SAID("[the rest of this file is left out]");
    free_host(&h);

    run("rm a_long.py");
    h = ask("explain this diff", "+SHORT = 1");
    SAID(
        "of git diff, 1 of 2 files (3,000 of 3,001 changed lines) are not, or not whole, in front of the model: "
        "c_long.py (+3000 -0)");
    free_host(&h);
}

static void test_changes__how_many_commits_are_left_out(void **state)
{
    run("for i in $(seq 1 39); do GIT_COMMITTER_DATE=\"$((2100000000 + i)) +0000\" git commit -q --allow-empty -m \"Step $i\"; done");
    host h = ask("what changed since v1.0", "git log v1.0..HEAD (40 commits):");
    SAID("of the 40 commits since v1.0 the newest 30 are in front of the model");
    SAID("[10 older commits left out;");
    SAID("Step 39");
    UNSAID("Step 9\\n");
    free_host(&h);
}

static void test_changes__in_the_middle_of_a_merge(void **state)
{
    run("git checkout -q -b side && echo 'X = 3' > more.py && git commit -qam Three && git checkout -q main && "
        "echo 'X = 4' > more.py && git commit -qam Four && ! git merge side");
    host h = ask("explain this diff", "<<<<<<<");
    SAID("+X = 3");
    free_host(&h);
}

static void test_changes__without_a_commit_or_a_repository(void **state)
{
    run("rm -rf .git *.py && git init -q -b main");
    assert_answered("explain this diff", "There is no commit here yet, and no file that one could hold.");
    assert_answered(
        "what changed since v1.0", "\\\"v1.0\\\" is no tag, branch or commit of this repository.");
    put_file("first.py", "FIRST = 1\n");
    host h = ask("explain this diff", "+FIRST = 1");
    free_host(&h);
    run("rm -rf .git");
    assert_answered("review my changes", "This folder is not a git repository with files.");
}

#define IN_REPOSITORY(f) cmocka_unit_test_setup_teardown(f, make_repository, drop_folders)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_REPOSITORY(test_changes__an_unknown_revision_is_the_answer),
        IN_REPOSITORY(test_changes__nothing_changed_is_the_answer),
        IN_REPOSITORY(test_changes__a_longer_request_goes_to_the_model),
        IN_REPOSITORY(test_changes__a_function_called_diff_is_no_diff),
        IN_REPOSITORY(test_changes__new_files_are_part_of_the_diff),
        IN_REPOSITORY(test_changes__what_is_staged_alone),
        IN_REPOSITORY(test_changes__what_has_no_room_is_said),
        IN_REPOSITORY(test_changes__how_many_commits_are_left_out),
        IN_REPOSITORY(test_changes__in_the_middle_of_a_merge),
        IN_REPOSITORY(test_changes__without_a_commit_or_a_repository),
    };
    find_grammars();
    return RUN_ON_BOTH(tests);
}
