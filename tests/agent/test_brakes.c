/*
 * What stops a turn that goes nowhere: repeated calls, text in circles, broken calls, Esc, a failing engine,
 * a full context.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "agent/session/segments.h"
#include "stage.h"

static void test_brakes__the_same_call_again_and_again_stops_the_turn(void **state)
{
    put_program();
    host h = new_host();
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

/* What a command prints may be another thing the next time: it is not said to hold. */
static void test_brakes__a_command_again_is_not_said_to_hold(void **state)
{
#define DATE "answer <tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"date\"}}</tools>\n"
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, DATE DATE "answer Late.\n", AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "hello");
    assert_true(told(&h, "Not run again: this exact call was made in turn 1"));
    assert_false(told(&h, "still holds"));
    agent_session_close(s);
    free_host(&h);
#undef DATE
}

static void test_brakes__a_retry_that_the_refusal_asks_for_runs(void **state)
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

/* What only the prompt's example defines is nothing that anybody asked for. */
static void test_brakes__the_prompts_example_is_not_written(void **state)
{
    static const char code[] = "int text(void)\n{\n    return 1;\n}\n";
    put_file("text.c", code);
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"text.c\", \"name\": "
        "\"test_add_up\"}}</tools>\n```\nint test_add_up(void)\n{\n    return 5;\n}\n```\nX\nanswer No.\n",
        AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "hello");
    assert_true(told(&h, "Refused: test_add_up is of an example"));
    assert_file("text.c", code);
    agent_session_close(s);
    free_host(&h);
}

static void test_brakes__text_in_circles_is_cut(void **state)
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

static void test_brakes__unknown_tools_and_broken_calls_get_a_helpful_result(void **state)
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

static void test_brakes__a_call_that_cannot_be_read_is_asked_for_once_more(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer I look.\\n<tools>read add.sh</tools>\n" READ "answer It subtracts.\n"
        "answer <tools>nonsense</tools>\nanswer <tools>more of it</tools>\nanswer never\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "look at it");
    assert_true(told(&h, "it is asked once more"));
    assert_non_null(strstr(h.outline.data, "notice tool_call read:ok answer"));
    assert_false(told(&h, "nothing was done\""));
    base_buf_clear(&h.outline);
    submit(s, &h, "again");
    assert_true(told(&h, "cannot be read: nothing was done"));
    assert_false(told(&h, "never"));
    assert_outline(&h, "user notice answer notice ledger turn_end:closed ");
    agent_session_close(s);
    free_host(&h);
}

static void test_brakes__a_headline_leaves_out_what_was_not_given(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <tools>{\"name\": \"read\", \"arguments\": {\"path\": null}}</tools>\nanswer done\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "look");
    assert_true(told(&h, "\"headline\":\"read\""));
    agent_session_close(s);
    free_host(&h);
}

static void test_brakes__cancel_keeps_the_partial_answer_and_the_next_turn_works(void **state)
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

/* A request of many chunks whose prefill is cancelled; what the session remembers then, and what follows. */
static void interrupt_in_prefill(agent_session *s, host *h)
{
    base_buf text = {0};
    for (int i = 0; i < 200; i++) base_buf_printf(&text, "line %d of the paste\n", i);
    h->cancel_at_prefill = 64;
    assert_int_equal(submit(s, h, text.data), 0);
    h->cancel_at_prefill = 0;
    base_buf_free(&text);
}

#define PREFILL_SCRIPT "answer one two\nanswer three\n"

/* Nothing is computed between Esc and the turn's end: the next message's scaffold ends the open one. */
static void test_brakes__esc_in_prefill_ends_the_turn_before_its_message(void **state)
{
    NEEDS("a prefill: nothing is sent before an answer is asked for");
    host h = new_host();
    agent_session *s = open_session(&h, PREFILL_SCRIPT, AGENT_MODE_ASK, NULL, true);
    agent *a = agent_session_agent(s);
    interrupt_in_prefill(s, &h);
    assert_outline(&h, "user notice ledger turn_end:interrupted ");
    assert_int_equal(a->transcript.open_role, MODEL_ROLE_USER);
    assert_false(told(&h, "\"label\":\"-user\""));
    uint32_t n = agent__n_tokens(a);
    assert_int_equal(last_number(&h, "\"event\":\"ledger\"", "n"), n);
    assert_int_equal(submit(s, &h, "again"), 0);
    assert_true(told(&h, "\"label\":\"-user+user\""));
    assert_non_null(strstr(h.outline.data, "answer ledger turn_end:closed"));
    assert_int_equal(a->transcript.open_role, -1);
    /* Before that turn its message is open again. */
    assert_int_equal(submit(s, &h, "/rewind 2"), 0);
    assert_int_equal(agent__n_tokens(a), n);
    assert_int_equal(a->transcript.open_role, MODEL_ROLE_USER);
    agent_session_close(s);
    free_host(&h);
}

static int32_t *copy_ids(agent_session *s, uint32_t *n)
{
    agent *a = agent_session_agent(s);
    const int32_t *ids = a->engine->ops->ids(a->engine, n);
    int32_t *copy = base_xcalloc(*n, sizeof *copy);
    memcpy(copy, ids, *n * sizeof *copy);
    return copy;
}

/* Killed before the snapshot that a turn leaves for later: the same tokens as without the kill. */
static void test_brakes__killed_after_esc_in_prefill_it_goes_on_alike(void **state)
{
    NEEDS("a prefill: nothing is sent before an answer is asked for");
    host live = new_host(), again = new_host();
    agent_session *s = open_session(&live, PREFILL_SCRIPT, AGENT_MODE_ASK, NULL, true);
    interrupt_in_prefill(s, &live);
    assert_int_equal(submit(s, &live, "again"), 0);
    uint32_t n_live, n_again;
    int32_t *ids = copy_ids(s, &n_live), *other;
    agent_session_close(s);

    pid_t child = fork();
    if (!child) {
        host h = new_host();
        s = open_session(&h, PREFILL_SCRIPT, AGENT_MODE_ASK, NULL, true);
        interrupt_in_prefill(s, &h);
        _exit(told(&h, "\"event\":\"snapshot\""));
    }
    int status = 0;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    s = open_session(&again, PREFILL_SCRIPT, AGENT_MODE_ASK, "", true);
    assert_true(told(&again, "computed again from the log"));
    assert_int_equal(agent_session_agent(s)->transcript.open_role, MODEL_ROLE_USER);
    assert_int_equal(submit(s, &again, "again"), 0);
    other = copy_ids(s, &n_again);
    assert_int_equal(n_again, n_live);
    assert_memory_equal(other, ids, n_live * sizeof *ids);
    agent_session_close(s);
    free(ids);
    free(other);
    free_host(&live);
    free_host(&again);
}

static void test_brakes__an_engine_that_fails_ends_the_turn_with_its_sentence(void **state)
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

/*
 * Counting goes on by an estimate; text that cannot be told ends the turn with the engine's sentence, and the
 * next one works.
 */
static void test_brakes__a_tokenizer_that_does_not_answer_is_told(void **state)
{
    if (!stage_chat) skip();
    host h = new_host();
    agent_session *s = open_session(&h, "answer one\nanswer two\n", AGENT_MODE_ASK, NULL, true);
    agent *a = agent_session_agent(s);
    const uint32_t counted = agent__count(a, "twelve bytes", 12);
    engine_chat_lose_tokenizer(a->engine, true);
    assert_int_equal(agent__count(a, "twelve bytes", 12), 4);
    assert_int_equal(submit(s, &h, "one"), BASE_E_IO);
    assert_true(told(&h, "\"event\":\"error\",\"turn\":1,\"text\":\"the tokenizer does not answer\""));
    assert_non_null(strstr(h.outline.data, "turn_end:failed"));
    engine_chat_lose_tokenizer(a->engine, false);
    assert_int_equal(agent__count(a, "twelve bytes", 12), counted);
    assert_int_equal(submit(s, &h, "two"), 0);
    assert_non_null(strstr(h.outline.data, "answer ledger turn_end:closed"));
    agent_session_close(s);
    free_host(&h);
}

static void test_brakes__a_full_context_says_what_to_do(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_brakes__the_same_call_again_and_again_stops_the_turn),
        TEST_CASE(test_brakes__a_command_again_is_not_said_to_hold),
        TEST_CASE(test_brakes__a_retry_that_the_refusal_asks_for_runs),
        TEST_CASE(test_brakes__the_prompts_example_is_not_written),
        TEST_CASE(test_brakes__text_in_circles_is_cut),
        TEST_CASE(test_brakes__unknown_tools_and_broken_calls_get_a_helpful_result),
        TEST_CASE(test_brakes__a_call_that_cannot_be_read_is_asked_for_once_more),
        TEST_CASE(test_brakes__a_headline_leaves_out_what_was_not_given),
        TEST_CASE(test_brakes__cancel_keeps_the_partial_answer_and_the_next_turn_works),
        TEST_CASE(test_brakes__esc_in_prefill_ends_the_turn_before_its_message),
        TEST_CASE(test_brakes__killed_after_esc_in_prefill_it_goes_on_alike),
        TEST_CASE(test_brakes__an_engine_that_fails_ends_the_turn_with_its_sentence),
        TEST_CASE(test_brakes__a_tokenizer_that_does_not_answer_is_told),
        TEST_CASE(test_brakes__a_full_context_says_what_to_do),
    };
    return RUN_ON_BOTH(tests);
}
