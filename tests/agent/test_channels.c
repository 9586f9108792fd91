/*
 * A model that writes in channels (gpt-oss): what of its messages is an answer, what a call, what a thought; and that
 * thoughts leave with the turn, as its template leaves them out of later ones.
 */
#include "agent/sequence/sequence.h"
#include "agent/call/channels.h"
#include "stage.h"

/* Feeds a text whose marks are control tokens, three bytes at a time in between; places count from `from`. */
static uint32_t feed(agent_channels *c, const char *text, uint32_t from, base_buf *words, base_buf *thought)
{
    for (size_t n; *text; text += n, from++) {
        const char *mark = strstr(text, "<|"), *end = mark == text ? strstr(text, "|>") : NULL;
        n = end ? (size_t)(end - text) + 2 : mark ? (size_t)(mark - text) : strlen(text);
        if (!end && n > 3) n = 3;
        agent_channels_take(c, from, text, n, end != NULL, words, thought);
    }
    agent_channels_end(c, from);
    return from;
}

static void check(const char *text, const char *words, const char *thought, uint32_t n_thoughts)
{
    agent_channels c = {.head_from = 10};
    base_buf said = {0}, thought_of = {0};
    feed(&c, text, 10, &said, &thought_of);
    assert_string_equal(said.data ? said.data : "", words);
    assert_string_equal(thought_of.data ? thought_of.data : "", thought);
    assert_int_equal(c.n_thoughts, n_thoughts);
    for (uint32_t i = 0; i < c.n_thoughts; i++)
        assert_true(
            c.thoughts[i].from < c.thoughts[i].to && (!i || c.thoughts[i - 1].to <= c.thoughts[i].from));
    agent_channels_free(&c);
    base_buf_free(&said);
    base_buf_free(&thought_of);
}

static void test_channels__tell_answers_calls_and_thoughts_apart(void **state)
{
    check("<|channel|>final<|message|>Hello.<|return|>", "Hello.", "", 0);
    check("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.<|"
          "return|>",
        "Hello.", "Hm.", 1);
    check("<|channel|>analysis<|message|>A.<|end|><|start|>assistant<|channel|>commentary<|message|>I "
          "look.<|end|>"
          "<|start|>assistant<|channel|>commentary to=functions.read "
          "<|constrain|>json<|message|>{\"path\": \"a\"}<|call|>",
        "I look.\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}", "A.", 1);
    check(" to=functions.now<|channel|>commentary json<|message|><|call|>",
        "{\"name\": \"now\", \"arguments\": {}}", "", 0);
    /* A tool that nobody has is a call all the same: the model is told so. */
    check("<|channel|>commentary to=python<|message|>{}<|call|>", "{\"name\": \"python\", \"arguments\": {}}",
        "", 0);
    /* Marks that are missing, doubled or out of place; a name that would be no JSON. */
    check("<|message|>Just words", "Just words", "", 0);
    check("<|channel|>analysis<|message|>A<|channel|>final<|message|>B", "B", "A", 1);
    check("<|channel|>analysis<|message|>cut", "", "cut", 1);
    check("<|end|><|end|><|message|>x<|message|>y<|end|>", "xy", "", 0);
    check("<|channel|>commentary to=functions.a\"b<|message|>{}<|call|>",
        "{\"name\": \"a\", \"arguments\": {}}", "", 0);
    check("", "", "", 0);
}

/* Each row one token; a bracket is a mark. leave: how many of its thoughts. */
static void check_tokens(
    model_tool_style style, const char *const *tokens, const char *words, const char *thought, uint32_t leave)
{
    agent_channels c = {.head_from = 0};
    base_buf said = {0}, thought_of = {0};
    uint32_t n = 0;
    agent_channels_begin(&c, style);
    for (; tokens[n]; n++)
        agent_channels_take(&c, n, tokens[n], strlen(tokens[n]), tokens[n][0] == '[' || tokens[n][0] == '<',
            &said, &thought_of);
    agent_channels_end(&c, n);
    assert_string_equal(said.data ? said.data : "", words);
    assert_string_equal(thought_of.data ? thought_of.data : "", thought);
    assert_int_equal(c.n_thoughts, leave);
    for (uint32_t i = 0; i < leave; i++) {
        assert_string_equal(tokens[c.thoughts[i].from], "<|channel>");
        assert_true(c.thoughts[i].to > c.thoughts[i].from && c.thoughts[i].to <= n);
    }
    agent_channels_free(&c);
    base_buf_free(&said);
    base_buf_free(&thought_of);
}

static void check_mistral(const char *const *tokens, const char *words, const char *thought)
{
    check_tokens(MODEL_TOOLS_MISTRAL, tokens, words, thought, 0); /* none of its thoughts leaves */
}

static void check_list(const char *const *tokens, const char *words)
{
    check_tokens(MODEL_TOOLS_GRANITE, tokens, words, "", 0);
}

static void check_gemma(const char *const *tokens, const char *words, const char *thought, uint32_t leave)
{
    check_tokens(MODEL_TOOLS_GEMMA, tokens, words, thought, leave);
}

#define QUOTE "<|\"|>"
static void test_channels__read_what_gemma_writes(void **state)
{
    check_gemma((const char *[]){"Hel", "lo.", "<turn|>", NULL}, "Hello.", "", 0);
    check_gemma((const char *[]){"<|channel>", "thou", "ght\nH", "m.\n", "<channel|>", "I look.",
                    "<|tool_call>", "call:re", "ad{path", ":", QUOTE, "a\n\"b", "{", QUOTE,
                    ",from:", "3,all:true}", "<tool_call|>", NULL},
        "I look.\n"
        "{\"name\": \"read\", \"arguments\": {\"path\": \"a\\n\\\"b{\", \"from\": 3, \"all\": true}}",
        "Hm.\n", 1);
    check_gemma((const char *[]){"<|tool_call>", "call:now{}", "<tool_call|>", NULL},
        "{\"name\": \"now\", \"arguments\": {}}", "", 0);
    /* Lists, objects, and text without its marks. */
    check_gemma((const char *[]){"<|tool_call>", "call:x{a:[1,", QUOTE, "2", QUOTE, "],b:{c:-1.5, ", QUOTE,
                    "d", QUOTE, ":null},e:word}", "<tool_call|>", NULL},
        "{\"name\": \"x\", \"arguments\": {\"a\": [1, \"2\"], "
        "\"b\": {\"c\": -1.5, \"d\": null}, \"e\": \"word\"}}",
        "", 0);
    /* Several, a letter in two pieces, and marks that are missing or out of place. */
    check_gemma((const char *[]){"<|tool_call>", "call:a{}", "<tool_call|>", "<|tool_call>",
                    "call:b{k:", QUOTE, "\xc3", "\xa9", QUOTE, "}", "<tool_call|>", NULL},
        "{\"name\": \"a\", \"arguments\": {}}\n{\"name\": \"b\", \"arguments\": {\"k\": \"\xc3\xa9\"}}", "",
        0);
    check_gemma(
        (const char *[]){QUOTE, "x", "<tool_call|>", "<channel|>", "y", "<|tool_call>", "z", "<turn|>", NULL},
        "xy", "", 0);
    check_gemma((const char *[]){"<|tool_call>", "call:a{k:", QUOTE, "cut", "<turn|>", NULL},
        "{\"name\": \"a\", \"arguments\": {\"k\": \"cut\"}", "", 0);
    check_gemma((const char *[]){"<|channel>", "thought\ncut", "<|tool_call>", "call:a{}", "<tool_call|>",
                    "<|channel>", "thought", NULL},
        "{\"name\": \"a\", \"arguments\": {}}", "cut", 2);
}

static void test_channels__read_lists_of_calls(void **state)
{
    check_list((const char *[]){"Hel", "lo [{}].", "<|end_of_text|>", NULL}, "Hello [{}].");
    check_list((const char *[]){"I look.", "<|tool_call|>", " [{\"name\": \"read\", ",
                   "\"arguments\": {\"path\": ", "\"a}\\\"]\\\\\"", "}}]", "<|end_of_text|>", NULL},
        "I look.\n{\"name\": \"read\", \"arguments\": {\"path\": \"a}\\\"]\\\\\"}}");
    /* An object is not over before another begins or the message ends: its list is. */
    check_list((const char *[]){"<|tool_call|>", " [{\"name\": \"now\"}", "]", NULL}, "{\"name\": \"now\"");
    /* Several in a list, several lists, and marks that are missing or out of place. */
    check_list((const char *[]){"<|tool_call|>", " [{\"name\": \"a\"},", " {\"name\": \"b\"}]",
                   "<|end_of_text|>", NULL},
        "{\"name\": \"a\"}\n{\"name\": \"b\"}");
    check_list((const char *[]){"<|tool_call|>", "{\"name\": \"a\"}", "<|tool_call|>", "{\"name\": \"b\"}",
                   "<|end_of_text|>", "x", NULL},
        "{\"name\": \"a\"}\n{\"name\": \"b\"}x");
    check_list((const char *[]){"<|tool_call|>", "none", "<|end_of_text|>", NULL}, "");
    check_list(
        (const char *[]){"<|tool_call|>", "{\"cut\": \"", "<|end_of_text|>", "x", NULL}, "{\"cut\": \"x");
}

static void test_channels__read_what_mistral_writes(void **state)
{
    check_mistral((const char *[]){"Hel", "lo.", "</s>", NULL}, "Hello.", "");
    check_mistral((const char *[]){"[THINK]", "H", "m.", "[/THINK]", "I look.", "[TOOL_CALLS]", "re", "ad",
                      "[ARGS]", "{\"path\": ", "\"a\"}", "</s>", NULL},
        "I look.\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}", "Hm.");
    check_mistral((const char *[]){"[TOOL_CALLS]", "now", "[CALL_ID]", "abc", "[ARGS]", " ", "</s>", NULL},
        "{\"name\": \"now\", \"arguments\":  {}}", "");
    /* Several, and marks that are missing or out of place. */
    check_mistral((const char *[]){"[TOOL_CALLS]", "a", "[ARGS]", "{}", "[TOOL_CALLS]", "b", "[ARGS]", "{}",
                      "</s>", NULL},
        "{\"name\": \"a\", \"arguments\": {}}\n{\"name\": \"b\", \"arguments\": {}}", "");
    check_mistral(
        (const char *[]){"[ARGS]", "x", "[TOOL_CALLS]", "[ARGS]", "y", "[/THINK]", "z", NULL}, "xyz", "");
    check_mistral((const char *[]){"[TOOL_CALLS]", "read", "</s>", NULL}, "", "");
    check_mistral((const char *[]){"[THINK]", "cut", NULL}, "", "cut");
}

/* A thought takes its head with it, and leaves what stands in front of a head: <|start|>assistant. */
static void test_channels__know_where_thoughts_stand(void **state)
{
    agent_channels c = {.head_from = 5};
    base_buf words = {0}, thought = {0};
    /* 5 channel, 6..8 "analysis", 9 message, 10 "Hm.", 11 end, 12 start, 13..15 "assistant", 16 channel ... */
    feed(&c,
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>",
        5, &words, &thought);
    assert_int_equal(c.n_thoughts, 1);
    assert_int_equal(c.thoughts[0].from, 5);
    assert_int_equal(c.thoughts[0].to, 16);
    agent_channels_free(&c);
    base_buf_free(&words);
    base_buf_free(&thought);
}

#define THOUGHT(text) "<|channel|>analysis<|message|>" text "<|end|><|start|>assistant"
#define CALL(name, arguments)                                                                                \
    "<|channel|>commentary to=functions." name " <|constrain|>json<|message|>" arguments "<|call|>"

/* The text of the tokens that are there for the model, from the newest request on. */
static void put_active(agent *a, base_buf *out)
{
    uint32_t n, from = a->transcript.turn_starts[a->turn];
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    uint32_t *lanes = base_xcalloc(n + 1, sizeof *lanes);
    agent__active_lanes(a, lanes);
    for (uint32_t i = from; i < n; i++) {
        size_t n_piece;
        const char *piece = a->engine->ops->piece(a->engine, ids[i], &n_piece);
        if (lanes[i]) base_buf_add(out, piece, n_piece);
    }
    free(lanes);
}

static void test_channels__a_turn_calls_answers_and_forgets_its_thoughts(void **state)
{
    put_file("notes.txt", "remember the milk\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "channels 1\nanswer " THOUGHT("I must read it.") CALL("read",
            "{\"path\": \"notes.txt\"}") "\n"
                                         "answer " THOUGHT("It says milk.") "<|channel|>final<|message|>It "
                                                                            "says to remember the milk.\n",
        AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "what does notes.txt say?"), 0);
    assert_true(told(&h, "\"name\":\"read\""));
    assert_true(told(&h, "\"text\":\"It says to remember the milk.\""));
    assert_true(told(&h, "\"channel\":\"thought\""));
    assert_false(told(&h, "It says milk.\"")); /* token by token, and in no answer */
    assert_outline_has(&h, "tool_call read:ok");
    assert_outline_has(&h, "plan:thought plan:thought");
    base_buf active = {0};
    put_active(agent_session_agent(s), &active);
    assert_null(strstr(active.data, "must read"));
    assert_null(strstr(active.data, "says milk"));
    assert_null(strstr(active.data, "analysis"));
    assert_non_null(
        strstr(active.data, "commentary to=functions.read <|constrain|>json<|message|>{\"path\""));
    assert_non_null(strstr(active.data, "<|channel|>final<|message|>It says to remember"));
    base_buf_free(&active);
    agent_session_close(s);
    free_host(&h);
}

/* Each row one token; `from` and `to`: where the thought stands. */
static void check_think(
    const char *const *tokens, const char *words, const char *thought, uint32_t from, uint32_t to)
{
    agent_channels c = {.head_from = 0};
    base_buf said = {0}, thought_of = {0};
    uint32_t n = 0;
    agent_channels_begin(&c, MODEL_TOOLS_HERMES);
    for (; tokens[n]; n++)
        agent_channels_take(&c, n, tokens[n], strlen(tokens[n]), false, &said, &thought_of);
    agent_channels_end(&c, n);
    assert_string_equal(said.data ? said.data : "", words);
    assert_string_equal(thought_of.data ? thought_of.data : "", thought);
    assert_int_equal(c.n_thoughts, to > 0);
    if (to) assert_true(c.thoughts[0].from == from && c.thoughts[0].to == to);
    agent_channels_free(&c);
    base_buf_free(&said);
    base_buf_free(&thought_of);
}

static void test_channels__read_what_qwen3_thinks(void **state)
{
    check_think(
        (const char *[]){"<think>", "\n", "Hm.", "\n", "</think>", "\n\n", "Hel", "lo.\n", "\n", NULL},
        "Hello.\n\n", "\nHm.\n", 0, 6);
    check_think((const char *[]){"\n", "<think>", "</think>", "Hi", NULL}, "\nHi", "", 1, 3);
    check_think((const char *[]){"<seed:think>", "a", "</seed:think>", "\n", "Hi", NULL}, "Hi", "a", 0, 4);
    check_think((const char *[]){"<think>", "cut", NULL}, "", "cut", 0, 2);
    /* An answer that speaks of it, and a second one. */
    check_think(
        (const char *[]){"Use ", "<think>", " and ", "</think>", NULL}, "Use <think> and </think>", "", 0, 0);
    check_think((const char *[]){"<think>", "a", "</think>", "<think>", "b", NULL}, "<think>b", "a", 0, 3);
}

/* What Qwen3's template makes of the turn later: the thought's rows are gone, marks and all. */
static void test_channels__a_turn_of_qwen3_forgets_its_thoughts(void **state)
{
    put_file("notes.txt", "remember the milk\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "channels 3\n"
        "answer <<X\n"
        "<think>\n"
        "I must read it, or call <tools>{\"name\": \"shell\"}</tools>.\n"
        "</think>\n\n"
        "<tools>{\"name\": \"read\", \"arguments\": {\"path\": \"notes.txt\"}}</tools>\nX\n"
        "answer <think>It says milk.</think>It says to remember the milk.\n",
        AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "what does notes.txt say?"), 0);
    assert_true(told(&h, "\"text\":\"It says to remember the milk.\""));
    assert_true(told(&h, "\"channel\":\"thought\""));
    assert_outline_has(&h, "tool_call read:ok");
    assert_outline_has(&h, "plan:thought plan:thought");
    base_buf active = {0};
    put_active(agent_session_agent(s), &active);
    assert_null(strstr(active.data, "must read"));
    assert_null(strstr(active.data, "think>"));
    assert_non_null(strstr(active.data, "<tools>{\"name\": \"read\""));
    assert_non_null(strstr(active.data, "It says to remember the milk."));
    base_buf_free(&active);
    agent_session_close(s);
    free_host(&h);
}

/* A turn in that form: the call is run, its text stays as it was written, and so does the thought. */
static void test_channels__a_turn_of_mistral_calls_and_answers(void **state)
{
    put_file("notes.txt", "remember the milk\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "channels 2\n"
        "answer [THINK]I must read it.[/THINK]I look.[TOOL_CALLS]read[ARGS]{\"path\": \"notes.txt\"}\n"
        "answer It says to remember the milk [sic].\n",
        AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "what does notes.txt say?"), 0);
    assert_true(told(&h, "\"text\":\"It says to remember the milk [sic].\""));
    assert_true(told(&h, "\"channel\":\"thought\""));
    assert_outline_has(&h, "tool_call read:ok");
    base_buf active = {0};
    put_active(agent_session_agent(s), &active);
    assert_non_null(strstr(
        active.data, "[THINK]I must read it.[/THINK]I look.[TOOL_CALLS]read[ARGS]{\"path\": \"notes.txt\"}"));
    base_buf_free(&active);
    agent_session_close(s);
    free_host(&h);
}

/* Gemma's: the thoughts in front of both answers leave when the turn has its answer, and what was called stays. */
static void test_channels__a_turn_of_gemma_drops_its_thoughts(void **state)
{
    put_file("notes.txt", "remember the milk\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "channels 5\nanswer <|channel>thought\\nI must read it.\\n<channel|>I "
        "look.<|tool_call>call:read{path:" QUOTE "notes.txt" QUOTE "}<tool_call|>\n"
        "answer <|channel>thought\\nNow I know.<channel|>It says to remember the milk.\n",
        AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "what does notes.txt say?"), 0);
    assert_true(told(&h, "\"text\":\"It says to remember the milk.\""));
    assert_true(told(&h, "\"channel\":\"thought\""));
    assert_outline_has(&h, "tool_call read:ok");
    assert_outline_has(&h, "plan:thought plan:thought");
    base_buf active = {0};
    put_active(agent_session_agent(s), &active);
    assert_null(strstr(active.data, "must read"));
    assert_null(strstr(active.data, "<|channel>"));
    assert_non_null(
        strstr(active.data, "I look.<|tool_call>call:read{path:" QUOTE "notes.txt" QUOTE "}<tool_call|>"));
    base_buf_free(&active);
    agent_session_close(s);
    free_host(&h);
}

/* The same with ids of calls, which stay in the sequence and are no part of what is run or told. */
static void test_channels__a_turn_of_mistral_keeps_the_ids_of_its_calls(void **state)
{
    put_file("notes.txt", "remember the milk\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "channels 4\nanswer I look.[TOOL_CALLS]read[CALL_ID]a1B2c3D4e[ARGS]{\"path\": \"notes.txt\"}\n"
        "answer It says to remember the milk.\n",
        AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "what does notes.txt say?"), 0);
    assert_true(told(&h, "\"text\":\"It says to remember the milk.\""));
    assert_outline_has(&h, "tool_call read:ok");
    base_buf active = {0};
    put_active(agent_session_agent(s), &active);
    assert_non_null(
        strstr(active.data, "I look.[TOOL_CALLS]read[CALL_ID]a1B2c3D4e[ARGS]{\"path\": \"notes.txt\"}"));
    base_buf_free(&active);
    agent_session_close(s);
    free_host(&h);
}

/* The same of a list: its object is what is run, and the list stays as it was written. */
static void check_turn_of_lists(const char *script, const char *want)
{
    put_file("notes.txt", "remember the milk\n");
    host h = new_host();
    agent_session *s = open_session(&h, script, AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "what does notes.txt say?"), 0);
    assert_true(told(&h, "\"text\":\"It says to remember the milk.\""));
    assert_outline_has(&h, "tool_call read:ok");
    base_buf active = {0};
    put_active(agent_session_agent(s), &active);
    assert_non_null(strstr(active.data, want));
    base_buf_free(&active);
    agent_session_close(s);
    free_host(&h);
}

static void test_channels__turns_of_granite_and_nemo_call_and_answer(void **state)
{
    check_turn_of_lists(
        "channels 6\nanswer I look.<|tool_call|>[{\"name\": \"read\", \"arguments\": {\"path\": \"notes.txt\"}}]\n"
        "answer It says to remember the milk.\n",
        "I look.<|tool_call|>[{\"name\": \"read\", \"arguments\": {\"path\": \"notes.txt\"}}]");
    check_turn_of_lists(
        "channels 7\nanswer [TOOL_CALLS][{\"name\": \"read\", \"arguments\": {\"path\": \"notes.txt\"}, "
        "\"id\": \"a1B2c3D4e\"}]\nanswer It says to remember the milk.\n",
        "[TOOL_CALLS][{\"name\": \"read\", \"arguments\": {\"path\": \"notes.txt\"}, \"id\": \"a1B2c3D4e\"}]");
}

/* What a script of a form of marks is asked once more, and how the call is shown to it: as text, not as marks. */
static void check_asked_once_more(const char *script, const char *shown)
{
    host h = new_host();
    agent_session *s = open_session(&h, script, AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "what does notes.txt say?"), 0);
    assert_true(told(&h, "it is asked once more"));
    base_buf active = {0};
    put_active(agent_session_agent(s), &active);
    assert_non_null(strstr(active.data, shown));
    base_buf_free(&active);
    agent_session_close(s);
    free_host(&h);
}

static void test_channels__an_unreadable_call_is_asked_for_in_the_models_form(void **state)
{
    check_asked_once_more("channels 2\nanswer [TOOL_CALLS]read[ARGS]]\nanswer Then not.\n",
        "on one line, like\n[TOOL_CALLS]read[ARGS]{\"path\": \"FILE\"}\nor");
    check_asked_once_more("channels 4\nanswer [TOOL_CALLS]read[CALL_ID]a1B2c3D4e[ARGS]]\nanswer Then not.\n",
        "on one line, like\n[TOOL_CALLS]read[CALL_ID]");
    check_asked_once_more("channels 5\nanswer <|tool_call>call:read{[[}<tool_call|>\nanswer Then not.\n",
        "on one line, like\n<|tool_call>call:read{path:" QUOTE "FILE" QUOTE "}<tool_call|>\nor");
    check_asked_once_more("channels 6\nanswer <|tool_call|>read\nanswer Then not.\n",
        "on one line, like\n<|tool_call|>[{\"name\": \"read\", \"arguments\": {\"path\": \"FILE\"}}]\nor");
    check_asked_once_more("channels 1\nanswer <|channel|>commentary to=functions.read<|message|>]<|call|>\n"
                          "answer <|channel|>final<|message|>Then not.\n",
        "on one line, like\n"
        "<|channel|>commentary to=functions.read "
        "<|constrain|>json<|message|>{\"path\": \"FILE\"}<|call|>\n"
        "or");
}

/* What could have become a stop string is told at the end, which is a token of the form. */
static void test_channels__tell_all_of_an_answer_that_ends_like_a_stop_string(void **state)
{
    static const char *const scripts[] = {
        "channels 1\nanswer <|channel|>final<|message|>Milk STO\n", "channels 2\nanswer Milk STO\n"};
    static const char *const stops[] = {"STOP", NULL};
    for (size_t i = 0; i < 2; i++) {
        host h = new_host();
        agent_session *s = open_session(&h, scripts[i], AGENT_MODE_ASK, NULL, true);
        agent_session_agent(s)->settings.stop = stops;
        assert_int_equal(submit(s, &h, "what is it?"), 0);
        assert_true(told(&h, "\"text\":\"Milk STO\""));
        bool any = false;
        for (const char *at = h.json.data; (at = strstr(at, "\"event\":\"token\"")); at++) {
            const char *end = strchr(at, '\n'), *text = strstr(at, "STO");
            any = any || (text && text < end);
        }
        assert_true(any);
        agent_session_close(s);
        free_host(&h);
    }
}

/* A thought that goes on is ended in the model's form, told of once; what the script has left is the answer. */
static void check_bounded(const char *script, const char *shown, bool leaves)
{
    host h = new_host();
    agent_session *s = open_session(&h, script, AGENT_MODE_ASK, NULL, true);
    agent *a = agent_session_agent(s);
    assert_int_equal(a->settings.max_thought, a->settings.max_tokens / 2);
    a->settings.max_thought = 5; /* with the mark that begins it */
    for (int turn = 0; turn < 2; turn++) assert_int_equal(submit(s, &h, "what is it?"), 0);
    const char *told_of = strstr(h.json.data, "--max-thought");
    assert_non_null(told_of);
    assert_null(strstr(told_of + 1, "--max-thought"));
    assert_true(told(&h, "milk.\""));
    base_buf all = {0}, active = {0};
    uint32_t n, n_again;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    for (uint32_t i = 0; i < n; i++) {
        size_t len;
        const char *piece = a->engine->ops->piece(a->engine, ids[i], &len);
        base_buf_add(&all, piece, len);
    }
    if (!strstr(all.data, shown)) fail_msg("no %s", shown);
    put_active(a, &active);
    assert_true((strstr(active.data, "one two") == NULL) == leaves);
    /* Resumed without its rows, the session has the same tokens: what was appended is in the log. */
    int32_t *copy = base_xcalloc(n, sizeof *copy);
    memcpy(copy, ids, n * sizeof *copy);
    char *id = base_xstrdup(agent_session_id(a));
    agent_session_close(s);
    s = open_session(&h, "answer x\n", AGENT_MODE_ASK, id, true);
    a = agent_session_agent(s);
    ids = a->engine->ops->ids(a->engine, &n_again);
    assert_int_equal(n, n_again);
    assert_memory_equal(ids, copy, n * sizeof *copy);
    agent_session_close(s);
    base_buf_free(&all);
    base_buf_free(&active);
    free(copy);
    free(id);
    free_host(&h);
}

static void test_channels__a_long_thought_is_ended(void **state)
{
    check_bounded(
        "channels 3\nanswer <think>one two six ten It is milk.\nanswer <think>one two six ten So milk.\n",
        "<think>one two six ten</think>\n\n It is milk.", true);
    check_bounded(
        "channels 2\nanswer [THINK]one two six ten It is milk.\nanswer [THINK]one two six ten So milk.\n",
        "[THINK]one two six ten[/THINK] It is milk.", false);
    check_bounded(
        "channels 1\n"
        "answer <|channel|>analysis<|message|>one two six ten<|channel|>final<|message|>It is milk.\n"
        "answer <|channel|>analysis<|message|>one two six ten<|channel|>analysis<|message|>So milk.\n",
        "<|message|>one two six ten<|end|><|start|>assistant<|channel|>final<|message|>It is milk.", true);
}

static void test_channels__new_text_is_an_argument(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h,
        "channels 1\nanswer <<X\n" CALL("write",
            "{\"path\": \"new.txt\", \"content\": \"one\\ntwo\\n\"}") "\nX\n"
                                                                      "answer "
                                                                      "<|channel|>final<|message|>Done.\n",
        AGENT_MODE_ALL, NULL, true);
    assert_int_equal(submit(s, &h, "write new.txt"), 0);
    assert_file("new.txt", "one\ntwo\n");
    agent_session_close(s);
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channels__tell_answers_calls_and_thoughts_apart),
        cmocka_unit_test(test_channels__know_where_thoughts_stand),
        cmocka_unit_test(test_channels__read_what_mistral_writes),
        cmocka_unit_test(test_channels__read_lists_of_calls),
        cmocka_unit_test(test_channels__read_what_gemma_writes),
        cmocka_unit_test(test_channels__read_what_qwen3_thinks),
        cmocka_unit_test_setup_teardown(
            test_channels__a_turn_of_qwen3_forgets_its_thoughts, make_folders, drop_folders),
        cmocka_unit_test_setup_teardown(
            test_channels__a_turn_of_mistral_calls_and_answers, make_folders, drop_folders),
        cmocka_unit_test_setup_teardown(
            test_channels__a_turn_of_gemma_drops_its_thoughts, make_folders, drop_folders),
        cmocka_unit_test_setup_teardown(
            test_channels__a_turn_of_mistral_keeps_the_ids_of_its_calls, make_folders, drop_folders),
        cmocka_unit_test_setup_teardown(
            test_channels__a_turn_calls_answers_and_forgets_its_thoughts, make_folders, drop_folders),
        cmocka_unit_test_setup_teardown(
            test_channels__an_unreadable_call_is_asked_for_in_the_models_form, make_folders, drop_folders),
        cmocka_unit_test_setup_teardown(
            test_channels__tell_all_of_an_answer_that_ends_like_a_stop_string, make_folders, drop_folders),
        cmocka_unit_test_setup_teardown(
            test_channels__turns_of_granite_and_nemo_call_and_answer, make_folders, drop_folders),
        cmocka_unit_test_setup_teardown(test_channels__a_long_thought_is_ended, make_folders, drop_folders),
        cmocka_unit_test_setup_teardown(test_channels__new_text_is_an_argument, make_folders, drop_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
