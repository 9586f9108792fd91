/* Whole turns on the scripted engine in a real tree: calls, approvals, attempts, brakes, staleness, log and resume. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/internal.h"
#include "agent/session.h"
#include "base/fs.h"
#include "base/mem.h"

/* --- a tree, a home and a host ------------------------------------------------------------------------------------------ */

static char base_folder[64], tree[96], script_path[96];

typedef struct host {
    base_buf json;    /* every event as --json prints it */
    base_buf outline; /* "user tool_call tool_result ..." without tokens, appends and spans */
    agent_answer answer;
    const char *text;
    uint32_t asked;
    atomic_bool cancel;
    int cancel_at_token, exit_at; /* exit_at: event type at which the process dies, -1: never */
    uint32_t n_tokens;
} host;

static int make_folders(void **state)
{
    strcpy(base_folder, "/tmp/kvist-agent-XXXXXX");
    if (!mkdtemp(base_folder)) return -1;
    snprintf(tree, sizeof tree, "%s/tree", base_folder);
    snprintf(script_path, sizeof script_path, "%s/script", base_folder);
    setenv("KVIST_HOME", base_folder, 1);
    return mkdir(tree, 0700);
}

static int drop_folders(void **state)
{
    return base_fs_remove(base_folder, NULL);
}

static void put_file(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    assert_int_equal(base_fs_write(path, text, strlen(text), 0600, NULL), 0);
}

static char *get_file(const char *name)
{
    char path[200];
    base_buf out = {0};
    snprintf(path, sizeof path, "%s/%s", tree, name);
    if (base_fs_read(path, 1 << 20, &out, NULL)) return base_xstrdup("(missing)");
    return base_buf_take(&out);
}

static void assert_file(const char *name, const char *text)
{
    char *got = get_file(name);
    assert_string_equal(got, text);
    free(got);
}

static void on_event(void *user, const agent_event *e)
{
    host *h = user;
    agent_event_write(e, &h->json);
    base_buf_putc(&h->json, '\n');
    if (h->exit_at == (int)e->type) _exit(7);
    if (e->type == AGENT_EVENT_token && (int)++h->n_tokens == h->cancel_at_token)
        atomic_store(&h->cancel, true);
    switch (e->type) {
    case AGENT_EVENT_token:
    case AGENT_EVENT_append:
    case AGENT_EVENT_span:
    case AGENT_EVENT_prefill:
    case AGENT_EVENT_scores:
    case AGENT_EVENT_tool_output:
    case AGENT_EVENT_snapshot: return;
    case AGENT_EVENT_plan: base_buf_printf(&h->outline, "plan:%s ", e->plan.cause); return;
    case AGENT_EVENT_tool_result:
        base_buf_printf(&h->outline, "%s:%s ", e->tool_result.name, e->tool_result.status);
        return;
    case AGENT_EVENT_approval: base_buf_printf(&h->outline, "approval:%s ", e->approval.decision); return;
    case AGENT_EVENT_turn_end: base_buf_printf(&h->outline, "turn_end:%s ", e->turn_end.status); return;
    default: base_buf_printf(&h->outline, "%s ", agent_event_name(e->type));
    }
}

static agent_decision on_approve(void *user, const agent_event *request)
{
    host *h = user;
    h->asked++;
    return (agent_decision){h->answer, base_xstrdup(h->text)};
}

static host new_host(void)
{
    return (host){.answer = AGENT_YES, .exit_at = -1};
}

static void free_host(host *h)
{
    base_buf_free(&h->json);
    base_buf_free(&h->outline);
}

static agent_session *open_session(host *h, const char *script, agent_mode mode, const char *resume, bool ask)
{
    assert_int_equal(base_fs_write(script_path, script, strlen(script), 0600, NULL), 0);
    agent_session_options options = {.dir = tree,
        .fake_script = script_path,
        .mode = mode,
        .resume = resume,
        .kv = {.repair = -1},
        .context_tokens = 400};
    agent_host sink = {.user = h, .event = on_event, .approve = ask ? on_approve : NULL};
    agent_session *s = NULL;
    base_err err = {0};
    int rc = agent_session_open(&s, &options, &sink, &h->cancel, &err);
    if (rc) fail_msg("%s", err.msg);
    base_buf_clear(&h->outline);
    return s;
}

static int submit(agent_session *s, host *h, const char *text)
{
    atomic_store(&h->cancel, false);
    return agent_submit(agent_session_agent(s), text, NULL);
}

/* The last value of a string member in the events. */
static bool told(const host *h, const char *text)
{
    return h->json.data && strstr(h->json.data, text);
}

#define PROGRAM "add() {\n    echo $(($1 - $2))\n}\n"
#define FIXED   "add() {\n    echo $(($1 + $2))\n}\n"
#define TEST    ". ./add.sh\n[ \"$(add 2 3)\" = 5 ]\n"
#define REWRITE(body)                                                                                        \
    "answer <<X\nThe sign is wrong.\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"add.sh\", "  \
    "\"name\": \"add\"}}</tools>\n```sh\n" body "```\nX\n"

static void put_program(void)
{
    put_file("add.sh", PROGRAM);
    put_file("test_add.sh", TEST);
}

/* --- turns -------------------------------------------------------------------------------------------------------------- */

static void test_agent__rewrites_runs_the_named_test_and_answers(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s =
        open_session(&h, REWRITE(FIXED) "answer Fixed: `add` in add.sh.\n", AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "test_add.sh fails; fix it"), 0);
    assert_file("add.sh", FIXED);
    assert_int_equal(h.asked, 2); /* the test, which says that it runs again, and the rewrite */
    assert_true(told(&h, "\"headline\":\"$ sh test_add.sh (runs again after the change)\""));
    assert_true(told(&h, "$ sh test_add.sh runs again: approved in this turn"));
    assert_string_equal(h.outline.data,
        "user context tool_call approval_request approval:yes shell:failed tool_call approval_request "
        "approval:yes rewrite:ok "
        "plan:stale tool_call notice shell:ok answer places ledger turn_end:closed ");
    assert_true(told(&h, "\"headline\":\"$ sh test_add.sh\""));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__a_no_leaves_the_file_and_tells_the_model_why(void **state)
{
    put_program();
    host h = new_host();
    h.answer = AGENT_NO;
    h.text = "not this file";
    agent_session *s =
        open_session(&h, REWRITE(FIXED) "answer Then I leave it.\n", AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "test_add.sh fails; fix it"), 0);
    assert_file("add.sh", PROGRAM);
    assert_true(told(&h, "The person said no: not this file."));
    assert_non_null(strstr(h.outline.data, "rewrite:denied answer"));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__without_anybody_to_ask_it_is_denied(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, REWRITE(FIXED) "answer No.\n", AGENT_MODE_ASK, NULL, false);
    assert_int_equal(submit(s, &h, "test_add.sh fails; fix it"), 0);
    assert_file("add.sh", PROGRAM);
    assert_true(agent_was_denied(agent_session_agent(s)));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__plan_mode_refuses_without_asking(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s =
        open_session(&h, REWRITE(FIXED) "answer I would change the sign.\n", AGENT_MODE_PLAN, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_file("add.sh", PROGRAM);
    assert_int_equal(h.asked, 0);
    assert_non_null(strstr(h.outline.data, "rewrite:refused"));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__an_edited_command_is_what_runs(void **state)
{
    put_program();
    host h = new_host();
    h.answer = AGENT_EDIT;
    h.text = "echo harmless";
    agent_session *s = open_session(&h,
        "answer <tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"echo danger\"}}</tools>\nanswer "
        "ok\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "say something");
    assert_true(told(&h, "harmless\\n"));
    assert_false(told(&h, "danger\\n"));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__always_covers_the_exact_command_only(void **state)
{
    put_program();
    host h = new_host();
    h.answer = AGENT_ALWAYS;
#define RUN(command)                                                                                         \
    "answer <tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"" command "\"}}</tools>\n"
    agent_session *s = open_session(
        &h, RUN("echo a") "answer 1\n" RUN("echo b") RUN("echo a") "answer 2\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "first");
    assert_int_equal(h.asked, 1);
    submit(s, &h, "second");
    assert_int_equal(h.asked, 2); /* for echo b */
    agent_session_close(s);
    free_host(&h);
}

/* A yes to the harness's test is for this command, this turn and changes that were approved. */
static void test_agent__a_yes_to_the_test_covers_nothing_else(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h,
        REWRITE(FIXED)
            RUN("sh -e test_add.sh") "answer 1\n" REWRITE(PROGRAM) "answer 2\n" REWRITE(FIXED) "answer 3\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_int_equal(h.asked, 3); /* the test, the rewrite, and what the model calls */
    h.asked = 0;
    submit(s, &h, "put the sign back in add.sh");
    assert_int_equal(h.asked, 2); /* another turn: the rewrite, the test behind it */
    h.asked = 0;
    base_buf_clear(&h.json);
    assert_int_equal(agent_set_mode(agent_session_agent(s), AGENT_MODE_EDITS, NULL), 0);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_false(told(&h, "runs again"));
    assert_int_equal(h.asked, 2); /* the test before and after a change that nobody was asked about */
    agent_session_close(s);
    free_host(&h);
}

/* A further attempt: the model ends the line that the harness began, the harness writes call and fence, the model the body. */
#define BODY(text) "answer <<X\necho`.\n" text "```\nX\n"

static void test_agent__a_failed_attempt_is_barred_before_the_next_output(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s =
        open_session(&h, REWRITE("add() {\n    echo $(($1 * $2))\n}\n") BODY(FIXED) "answer Fixed.\n",
            AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_file("add.sh", FIXED);
    assert_non_null(strstr(h.outline.data,
        "rewrite:ok plan:stale tool_call shell:failed plan:failed undo plan:manual tool_call rewrite:ok"));
    /* The plan stands in front of the output's tokens. */
    const char *plan = strstr(h.json.data, "\"cause\":\"failed\"");
    assert_non_null(plan);
    assert_non_null(strstr(plan, "\"label\":\"test\"")); /* the second output */
    assert_true(told(&h, "This change was taken back: add.sh is as it was before."));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__the_last_attempt_stays_and_words_alone_are_asked_again(void **state)
{
    put_program();
    host h = new_host();
#define WRONG(n) "add() {\n    echo " #n "\n}\n"
    agent_session *s = open_session(&h,
        "answer The sign is wrong, I think.\n" BODY(WRONG(1)) BODY(WRONG(2))
            BODY(WRONG(3)) "answer I give up.\n",
        AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_true(told(&h, "nothing was changed: asking for the change"));
    assert_true(told(&h, "No file was changed yet. Make the change now"));
    assert_file("add.sh", WRONG(3));
    assert_non_null(strstr(h.outline.data, "answer"));
    assert_int_equal(submit(s, &h, "/undo"), 0);
    assert_file("add.sh", PROGRAM);
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__a_fenced_definition_without_a_call_is_offered_as_a_rewrite(void **state)
{
    put_file("add.py", "def add(a, b):\n    return a - b\n");
    put_file("test_add.py", "from add import add\n\ndef test_add():\n    assert add(2, 3) == 5\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\nThe sign is wrong:\n```python\ndef add(a, b):\n    return a + b\n```\nX\nanswer "
        "Fixed.\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "test_add.py fails; fix add");
    assert_file("add.py", "def add(a, b):\n    return a + b\n");
    agent_session_close(s);
    free_host(&h);
}

/* --- brakes ------------------------------------------------------------------------------------------------------------- */

static void test_agent__the_same_call_again_and_again_stops_the_turn(void **state)
{
    put_program();
    host h = new_host();
#define READ "answer <tools>{\"name\": \"read\", \"arguments\": {\"path\": \"add.sh\"}}</tools>\n"
    agent_session *s =
        open_session(&h, READ READ READ READ READ "answer never\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "hello");
    assert_true(told(&h, "Unchanged since turn 1"));
    assert_true(told(&h, "Refused: this exact call was made twice"));
    assert_true(told(&h, "stopped: the same call was made 4 times"));
    assert_non_null(strstr(h.outline.data, "read:ok tool_call read:ok"));
    assert_null(strstr(h.outline.data, "answer"));
    assert_non_null(strstr(h.outline.data, "turn_end:closed"));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__a_retry_that_the_refusal_asks_for_runs(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s =
        open_session(&h, REWRITE(FIXED) REWRITE(FIXED) "answer Fixed.\n", AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "hello");
    assert_true(told(&h, "add.sh was not read yet. Nothing was changed."));
    assert_non_null(strstr(h.outline.data, "tool_call rewrite:refused tool_call rewrite:ok"));
    assert_false(told(&h, "Unchanged since turn"));
    assert_file("add.sh", FIXED);
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__text_in_circles_is_cut(void **state)
{
    host h = new_host();
    base_buf script = {0};
    base_buf_puts(&script, "answer Well. ");
    for (int i = 0; i < 300; i++) base_buf_puts(&script, "and so on ");
    base_buf_putc(&script, '\n');
    agent_session *s = open_session(&h, script.data, AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "tell me a story");
    assert_true(told(&h, "went round in circles"));
    assert_true(h.n_tokens < 400);
    agent_session_close(s);
    base_buf_free(&script);
    free_host(&h);
}

static void test_agent__unknown_tools_and_broken_calls_get_a_helpful_result(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <tools>{\"name\": \"frobnicate\", \"arguments\": {}}</tools>\n"
        "answer <tools>{'name': 'read', 'arguments': {'path': 'add.sh',\nanswer done\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "hello there");
    assert_true(told(&h, "There is no tool called \\\"frobnicate\\\". The tools are: list, search, read"));
    assert_non_null(strstr(h.outline.data, "tool_call frobnicate:failed tool_call read:ok answer"));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__cancel_keeps_the_partial_answer_and_the_next_turn_works(void **state)
{
    host h = new_host();
    h.cancel_at_token = 5;
    agent_session *s =
        open_session(&h, "answer one two three four five six seven eight nine ten\nanswer second answer\n",
            AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "count"), 0);
    assert_non_null(strstr(h.outline.data, "turn_end:interrupted"));
    assert_true(told(&h, "\"event\":\"answer\",\"turn\":1,\"text\":\"one two"));
    assert_int_equal(submit(s, &h, "again"), 0);
    assert_non_null(strstr(h.outline.data, "answer ledger turn_end:closed"));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__an_engine_that_fails_ends_the_turn_with_its_sentence(void **state)
{
    host h = new_host();
    agent_session *s =
        open_session(&h, "answer first\nfail the accelerator is gone\nanswer never\nanswer third\n",
            AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "one"), 0);
    assert_true(submit(s, &h, "two") != 0);
    assert_true(told(&h, "\"event\":\"error\",\"turn\":2,\"text\":\"the accelerator is gone\""));
    assert_non_null(strstr(h.outline.data, "turn_end:failed"));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__a_full_context_says_what_to_do(void **state)
{
    host h = new_host();
    agent_session *s =
        open_session(&h, "ctx 2400\nanswer a\nanswer b\nanswer c\nanswer d\n", AGENT_MODE_ASK, NULL, true);
    char *long_request = malloc(3001);
    memset(long_request, 'x', 3000);
    long_request[3000] = 0;
    int rc = 0;
    for (int i = 0; i < 4 && !rc; i++) rc = submit(s, &h, long_request);
    assert_int_equal(rc, BASE_E_LIMIT);
    assert_true(told(&h, "/compact"));
    free(long_request);
    agent_session_close(s);
    free_host(&h);
}

/* --- memory ------------------------------------------------------------------------------------------------------------- */

static void test_agent__a_follow_up_computes_new_tokens_only(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, "answer a\nanswer b\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "one");
    submit(s, &h, "two");
    long long n1 = 0, new1 = 0, reused = 0, new2 = 0;
    const char *first = strstr(h.json.data, "\"event\":\"ledger\""),
               *second = strstr(first + 1, "\"event\":\"ledger\"");
    assert_int_equal(sscanf(strstr(first, "\"new\":"), "\"new\":%lld", &new1), 1);
    assert_int_equal(sscanf(strstr(first, "\"n\":"), "\"n\":%lld", &n1), 1);
    assert_int_equal(sscanf(strstr(second, "\"reused\":"), "\"reused\":%lld", &reused), 1);
    assert_int_equal(sscanf(strstr(second, "\"new\":"), "\"new\":%lld", &new2), 1);
    assert_true(reused == n1 && new1 > 0 && new2 > 0 && new2 < 60);
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__what_the_person_changed_is_stale_and_told(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, READ "answer seen\nanswer again\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "hello");
    put_file("add.sh", "add() {\n    echo 0\n}\n");
    submit(s, &h, "look again");
    assert_non_null(strstr(h.outline.data, "user plan:stale notice"));
    assert_true(told(&h, "add.sh changed on disk since it was shown.\\nRequest: look again"));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__undo_gives_the_file_back(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, REWRITE(FIXED) "answer Fixed.\n", AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_file("add.sh", FIXED);
    assert_int_equal(submit(s, &h, "/undo"), 0);
    assert_file("add.sh", PROGRAM);
    assert_non_null(strstr(h.outline.data, "undo "));
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__commands_act_on_rows_through_plans(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, READ "answer seen\nanswer x\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "hello");
    base_buf_clear(&h.outline);
    assert_int_equal(submit(s, &h, "/pin add.sh"), 0);
    assert_int_equal(submit(s, &h, "/drop last"), 0);
    assert_int_equal(submit(s, &h, "/why last"), 0);
    assert_true(told(&h, "barred; last bar for manual"));
    assert_int_equal(submit(s, &h, "/undo-evict"), 0);
    assert_int_equal(submit(s, &h, "/promote 10-20"), 0);
    assert_string_equal(h.outline.data,
        "plan:manual notice plan:manual notice notice plan:manual notice plan:manual notice ");
    assert_int_equal(submit(s, &h, "/pin nowhere"), BASE_E_NOT_FOUND);
    assert_int_equal(submit(s, &h, "/budget 10"), BASE_E_USAGE);
    assert_int_equal(submit(s, &h, "/nonsense"), BASE_E_USAGE);
    assert_int_equal(submit(s, &h, "/context"), 0);
    assert_true(told(&h, "add.sh:1-3"));
    assert_int_equal(submit(s, &h, "/help"), 0);
    assert_int_equal(submit(s, &h, "/mode plan"), 0);
    assert_int_equal(agent_get_mode(agent_session_agent(s)), AGENT_MODE_PLAN);
    agent_session_close(s);
    free_host(&h);
}

static long long last_number(const host *h, const char *type, const char *member)
{
    const char *at = NULL;
    for (const char *p = h->json.data; p && (p = strstr(p, type)); p++) at = p;
    long long value = -1;
    char name[40];
    snprintf(name, sizeof name, "\"%s\":", member);
    at = at ? strstr(at, name) : NULL;
    if (at) sscanf(at + strlen(name), "%lld", &value);
    return value;
}

static void test_agent__a_budget_is_told_at_once(void **state)
{
    host h = new_host(), again = new_host();
    agent_session *s = open_session(&h, "answer a\nanswer b\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "one");
    long long new = last_number(&h, "\"event\":\"ledger\"", "new");
    base_buf_clear(&h.outline);
    assert_int_equal(submit(s, &h, "/budget 1600"), 0);
    assert_non_null(strstr(h.outline.data, "ledger"));
    assert_int_equal(last_number(&h, "\"event\":\"ledger\"", "budget"), 1600);
    assert_int_equal(last_number(&h, "\"event\":\"ledger\"", "new"), new); /* still turn 1's */
    agent_session_close(s);
    /* Also of a turn that another process ran. */
    s = open_session(&again, "answer c\n", AGENT_MODE_ASK, "", true);
    assert_int_equal(submit(s, &again, "/budget off"), 0);
    assert_int_equal(last_number(&again, "\"event\":\"ledger\"", "budget"), 0);
    assert_int_equal(last_number(&again, "\"event\":\"ledger\"", "new"), new);
    agent_session_close(s);
    free_host(&h);
    free_host(&again);
}

/* The sum of the counts in "VERB 12 budget, 3 stale" of the last ledger's why. */
static long long sum_of_why(const host *h, const char *verb)
{
    const char *at = NULL;
    for (const char *p = h->json.data; p && (p = strstr(p, "\"event\":\"ledger\"")); p++) at = p;
    at = at ? strstr(at, "\"why\":") : NULL;
    at = at ? strstr(at, verb) : NULL;
    if (!at) return 0;
    long long sum = 0;
    for (at += strlen(verb); *at != ';' && *at != '"'; at++)
        if (*at == ' ' && at[1] >= '0' && at[1] <= '9') sum += strtoll(at, NULL, 10);
    return sum;
}

static void test_agent__a_ledger_and_its_reasons_add_up(void **state)
{
    put_program();
    host h = new_host(), again = new_host();
    agent_session *s = open_session(&h,
        "budget 1500\nrepair 16\n" READ "answer It subtracts. \nanswer more words about add\nanswer x\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "what does add do?");
    base_buf_clear(&h.json);
    submit(s, &h, "and the test of add?");
    long long evicted = last_number(&h, "\"event\":\"ledger\"", "evicted"),
              promoted = last_number(&h, "\"event\":\"ledger\"", "promoted");
    assert_true(evicted > 0 && promoted > 0);
    assert_int_equal(sum_of_why(&h, "evicted"), evicted);
    assert_int_equal(sum_of_why(&h, "promoted"), promoted);
    assert_int_equal(
        last_number(&h, "\"event\":\"ledger\"", "n") - last_number(&h, "\"event\":\"ledger\"", "active"),
        last_number(&h, "\"event\":\"ledger\"", "host"));
    agent_session_close(s);
    s = open_session(&again, "budget 1500\nrepair 16\nanswer x\n", AGENT_MODE_ASK, "", true);
    agent__ledger(agent_session_agent(s)); /* the same again from the log */
    assert_int_equal(last_number(&again, "\"event\":\"ledger\"", "evicted"), evicted);
    assert_int_equal(sum_of_why(&again, "promoted"), promoted);
    agent_session_close(s);
    free_host(&h);
    free_host(&again);
}

static void test_agent__rewind_new_and_compact(void **state)
{
    host h = new_host();
    agent_session *s =
        open_session(&h, "answer a\nanswer b\nanswer c\nanswer d\n", AGENT_MODE_ASK, NULL, true);
    char *first_id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    submit(s, &h, "the first question about walruses");
    submit(s, &h, "two");
    assert_int_equal(submit(s, &h, "/rewind 2"), 0);
    assert_true(told(&h, "\"event\":\"rewind\",\"turn\":2"));
    assert_int_equal(submit(s, &h, "two again"), 0);
    assert_int_equal(submit(s, &h, "/compact"), 0);
    assert_string_not_equal(agent_session_id(agent_session_agent(s)), first_id);
    base_buf parent = {0};
    base_buf_printf(&parent, "\"parent\":\"%s\"", first_id);
    assert_true(told(&h, parent.data));
    assert_int_equal(submit(s, &h, "go on"), 0);
    assert_non_null(strstr(h.outline.data, "turn_end:closed "));
    base_buf_free(&parent);
    free(first_id);
    agent_session_close(s);
    free_host(&h);
}

static void test_agent__a_shell_line_runs_unasked_and_is_seen_by_the_next_request(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, "answer ok\n", AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "!echo marmalade"), 0);
    assert_int_equal(h.asked, 0);
    submit(s, &h, "what did I run?");
    assert_true(told(&h, "The person ran: $ echo marmalade"));
    agent_session_close(s);
    free_host(&h);
}

/* --- log and resume ----------------------------------------------------------------------------------------------------- */

static bool collect(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    base_buf_add(user, json, n);
    base_buf_putc(user, '\n');
    return true;
}

static char *logged(const char *id)
{
    agent_log *l = NULL;
    base_buf out = {0};
    assert_int_equal(agent_log_open(&l, NULL, true, NULL), 0);
    assert_int_equal(agent_log_events(l, id, collect, &out, NULL), 0);
    agent_log_close(l);
    return base_buf_take(&out);
}

static void test_agent__the_log_holds_what_json_printed(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(
        &h, "budget 1450\n" READ REWRITE(FIXED) "answer Fixed `add`.\n", AGENT_MODE_ALL, NULL, true);
    char *id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    submit(s, &h, "test_add.sh fails; fix it");
    agent_session_close(s);
    char *stored = logged(id);
    assert_string_equal(stored, h.json.data);
    free(stored);
    free(id);
    free_host(&h);
}

/* Live sets rebuilt from the log alone: appended counts and plan blobs. */
typedef struct folded {
    uint64_t bits[4][64];
    uint32_t n;
} folded;

static void set_length(folded *f, uint32_t n)
{
    assert_true(n <= 64 * 64);
    for (uint32_t i = f->n; i < n; i++)
        for (int lane = 0; lane < 4; lane++) f->bits[lane][i / 64] |= UINT64_C(1) << (i % 64);
    f->n = n;
}

static bool fold(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    folded *f = user;
    agent_event e;
    agent_event_doc *doc = NULL;
    kv_plan *p = NULL;
    assert_int_equal(agent_event_read(json, n, &e, &doc, NULL), 0);
    if (e.type == AGENT_EVENT_append) set_length(f, (uint32_t)(e.append.from + e.append.n));
    if (e.type == AGENT_EVENT_token) set_length(f, (uint32_t)e.token.index + 1);
    if (e.type == AGENT_EVENT_plan) {
        assert_int_equal(kv_plan_unpack(blob, blob_n, &p, NULL), 0);
        for (uint32_t lane = 0; lane < 4; lane++)
            for (uint32_t w = 0; w < kv_plan_words(p); w++)
                f->bits[lane][w] ^= p->flips[lane * kv_plan_words(p) + w];
        kv_plan_free(p);
    }
    agent_event_doc_free(doc);
    return true;
}

static void test_agent__the_logged_plans_rebuild_each_lane(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h,
        "budget 1500\nrepair 16\n" READ "answer It subtracts. \nanswer more words about add\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "what does add do?");
    submit(s, &h, "and the test of add?");
    submit(s, &h, "/drop last");
    agent *a = agent_session_agent(s);
    folded f = {0};
    assert_non_null(strstr(h.outline.data, "plan:evict"));
    agent__commit(a);
    assert_int_equal(agent_log_events(a->log, a->id, fold, &f, NULL), 0);
    assert_int_equal(f.n, agent__n_tokens(a));
    for (uint32_t lane = 0; lane < 4; lane++) {
        uint64_t bits[64] = {0};
        a->engine->ops->lane_bits(a->engine, lane, bits);
        assert_memory_equal(bits, f.bits[lane], sizeof bits);
    }
    agent_session_close(s);
    free_host(&h);
}

static long long resumed_reused(const host *h)
{
    long long n = -1;
    const char *notice = strstr(h->json.data, "resumed session");
    if (notice) sscanf(strchr(notice, ':'), ": %lld tokens", &n);
    return n;
}

#define LONG_SCRIPT "budget 1450\nrepair 16\n" READ "answer The function add is wrong: it subtracts.\n"

static void test_agent__resume_computes_nothing_with_a_snapshot_and_the_same_without(void **state)
{
    put_program();
    host h = new_host(), again = new_host(), third = new_host();
    agent_session *s = open_session(&h, LONG_SCRIPT, AGENT_MODE_ASK, NULL, true);
    char *id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    submit(s, &h, "what does add do?");
    agent_session_close(s);

    s = open_session(&again, "budget 1450\nanswer more\n", AGENT_MODE_ASK, "", true);
    assert_true(told(&again, "none computed again"));
    assert_int_equal(submit(s, &again, "go on with add"), 0);
    agent_session_close(s);

    /* Without the snapshot the logged schedule is executed again and gives the same rows. */
    base_buf rows = {0};
    base_buf_printf(&rows, "%s/data/sessions/%s/rows", base_folder, id);
    assert_int_equal(base_fs_remove(rows.data, NULL), 0);
    s = open_session(&third, "budget 1450\nanswer third\n", AGENT_MODE_ASK, id, true);
    assert_true(told(&third, "tokens computed again from the log"));
    assert_int_equal(resumed_reused(&third) > resumed_reused(&again), 1);
    assert_int_equal(submit(s, &third, "and now?"), 0);
    agent_session_close(s);
    char *stored = logged(id);
    base_buf all = {0};
    base_buf_add(&all, h.json.data, h.json.len);
    base_buf_add(&all, again.json.data, again.json.len);
    base_buf_add(&all, third.json.data, third.json.len);
    assert_string_equal(stored, all.data);
    free(stored);
    free(id);
    base_buf_free(&all);
    base_buf_free(&rows);
    free_host(&h);
    free_host(&again);
    free_host(&third);
}

/* Killed at any of these, the session reopens, what was committed is there, and the next turn works. */
static void test_agent__killed_anywhere_it_resumes(void **state)
{
    static const agent_event_type deaths[] = {AGENT_EVENT_user, AGENT_EVENT_context, AGENT_EVENT_token,
        AGENT_EVENT_tool_call, AGENT_EVENT_tool_result, AGENT_EVENT_answer, AGENT_EVENT_ledger,
        AGENT_EVENT_snapshot, AGENT_EVENT_turn_end};
    put_program();
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        pid_t child = fork();
        if (!child) {
            host h = new_host();
            agent_session *s =
                open_session(&h, "answer first\n" READ "answer second\n", AGENT_MODE_ASK, NULL, true);
            submit(s, &h, "one");
            h.exit_at = (int)deaths[i];
            submit(s, &h, "what does add do?");
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        host h = new_host();
        agent_session *s = open_session(&h, "answer back again\n", AGENT_MODE_ASK, "", true);
        assert_true(told(&h, "resumed session"));
        /* The request is committed behind its event: killed in that event, there was no turn 2. */
        assert_int_equal(told(&h, "turn 2 was interrupted; what was committed of it is kept"),
            deaths[i] != AGENT_EVENT_user);
        assert_int_equal(submit(s, &h, "still there?"), 0);
        assert_non_null(strstr(h.outline.data, "turn_end:closed"));
        char *stored = logged(agent_session_id(agent_session_agent(s)));
        assert_non_null(strstr(stored, "\"event\":\"answer\",\"turn\":1,\"text\":\"first\""));
        assert_non_null(strstr(stored, "\"event\":\"user\",\"turn\":2") ? stored : NULL);
        free(stored);
        agent_session_close(s);
        free_host(&h);
    }
}

/* It is said once, also when nothing was asked in between; and of a session that closed cleanly it is not said. */
static void test_agent__an_interruption_is_told_once(void **state)
{
    pid_t child = fork();
    if (!child) {
        host h = new_host();
        agent_session *s = open_session(&h, "answer first\n", AGENT_MODE_ASK, NULL, true);
        h.exit_at = AGENT_EVENT_token;
        submit(s, &h, "one");
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    for (int i = 0; i < 3; i++) {
        host h = new_host();
        agent_session *s = open_session(&h, "answer more\n", AGENT_MODE_ASK, "", true);
        assert_int_equal(told(&h, "was interrupted"), i == 0);
        if (i == 1) assert_int_equal(submit(s, &h, "go on"), 0);
        agent_session_close(s);
        free_host(&h);
    }
}

static void test_agent__a_second_process_cannot_resume_a_running_session(void **state)
{
    host h = new_host(), other = new_host();
    agent_session *s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true), *second = NULL;
    submit(s, &h, "one");
    agent_session_options options = {.dir = tree, .fake_script = script_path, .resume = ""};
    base_err err = {0};
    assert_int_equal(agent_session_open(&second, &options, &(agent_host){.user = &other, .event = on_event},
                         &other.cancel, &err),
        BASE_E_STATE);
    assert_non_null(strstr(err.msg, "another kvist has session"));
    agent_session_close(s);
    free_host(&h);
    free_host(&other);
}

/* A sparse file that says it holds rows, last used a day ago for each `age`. */
static char *put_row_file(const char *id, long long n_bytes, int age)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s/data/sessions/%s", base_folder, id);
    assert_int_equal(base_fs_mkdirs(path.data, NULL), 0);
    base_buf_puts(&path, "/rows");
    assert_int_equal(base_fs_write(path.data, "KVROWS\n", 8, 0600, NULL), 0);
    assert_int_equal(truncate(path.data, n_bytes), 0);
    struct timespec times[2] = {{.tv_sec = time(NULL) - 86400L * age}, {.tv_sec = time(NULL) - 86400L * age}};
    assert_int_equal(utimensat(AT_FDCWD, path.data, times, 0), 0);
    return base_buf_take(&path);
}

static void test_agent__rows_of_the_sessions_unused_longest_go(void **state)
{
    host h = new_host(), again = new_host();
    const long long gib = 1LL << 30;
    char *older = put_row_file("20200101-0000-aaaaaa", 5 * gib, 9),
         *newer = put_row_file("20200102-0000-bbbbbb", 5 * gib, 2);
    agent_session *s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true);
    assert_false(base_fs_exists(older));
    assert_true(base_fs_exists(newer));
    assert_true(told(&h, "removed 5120 MiB of saved rows of the sessions unused longest (8 GiB are kept)"));
    agent_session_close(s);
    s = open_session(&again, "answer a\n", AGENT_MODE_ASK, NULL, true);
    assert_false(told(&again, "saved rows")); /* within the bound nothing is removed and nothing told */
    assert_true(base_fs_exists(newer));
    agent_session_close(s);
    free(older);
    free(newer);
    free_host(&h);
    free_host(&again);
}

static void test_agent__a_session_without_a_turn_leaves_nothing(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true);
    char *id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    agent_session_close(s);
    char *stored = logged(id);
    assert_string_equal(stored, "");
    free(stored);
    free(id);
    free_host(&h);
}

#define TEST_CASE(f) cmocka_unit_test_setup_teardown(f, make_folders, drop_folders)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_agent__rewrites_runs_the_named_test_and_answers),
        TEST_CASE(test_agent__a_no_leaves_the_file_and_tells_the_model_why),
        TEST_CASE(test_agent__without_anybody_to_ask_it_is_denied),
        TEST_CASE(test_agent__plan_mode_refuses_without_asking),
        TEST_CASE(test_agent__an_edited_command_is_what_runs),
        TEST_CASE(test_agent__always_covers_the_exact_command_only),
        TEST_CASE(test_agent__a_yes_to_the_test_covers_nothing_else),
        TEST_CASE(test_agent__a_failed_attempt_is_barred_before_the_next_output),
        TEST_CASE(test_agent__the_last_attempt_stays_and_words_alone_are_asked_again),
        TEST_CASE(test_agent__a_fenced_definition_without_a_call_is_offered_as_a_rewrite),
        TEST_CASE(test_agent__the_same_call_again_and_again_stops_the_turn),
        TEST_CASE(test_agent__a_retry_that_the_refusal_asks_for_runs),
        TEST_CASE(test_agent__text_in_circles_is_cut),
        TEST_CASE(test_agent__unknown_tools_and_broken_calls_get_a_helpful_result),
        TEST_CASE(test_agent__cancel_keeps_the_partial_answer_and_the_next_turn_works),
        TEST_CASE(test_agent__an_engine_that_fails_ends_the_turn_with_its_sentence),
        TEST_CASE(test_agent__a_full_context_says_what_to_do),
        TEST_CASE(test_agent__a_follow_up_computes_new_tokens_only),
        TEST_CASE(test_agent__what_the_person_changed_is_stale_and_told),
        TEST_CASE(test_agent__undo_gives_the_file_back),
        TEST_CASE(test_agent__commands_act_on_rows_through_plans),
        TEST_CASE(test_agent__a_budget_is_told_at_once),
        TEST_CASE(test_agent__a_ledger_and_its_reasons_add_up),
        TEST_CASE(test_agent__rewind_new_and_compact),
        TEST_CASE(test_agent__a_shell_line_runs_unasked_and_is_seen_by_the_next_request),
        TEST_CASE(test_agent__the_log_holds_what_json_printed),
        TEST_CASE(test_agent__the_logged_plans_rebuild_each_lane),
        TEST_CASE(test_agent__resume_computes_nothing_with_a_snapshot_and_the_same_without),
        TEST_CASE(test_agent__killed_anywhere_it_resumes),
        TEST_CASE(test_agent__an_interruption_is_told_once),
        TEST_CASE(test_agent__a_second_process_cannot_resume_a_running_session),
        TEST_CASE(test_agent__rows_of_the_sessions_unused_longest_go),
        TEST_CASE(test_agent__a_session_without_a_turn_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
