/*
 * The grammar of tool calls where marks are tokens of their own (gpt-oss, Devstral, Gemma 4, Granite 3, Nemo) and where a thought stands in front: what it
 * lets through and what it stops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "grammar_kit.h"

/* Feeds text whose marks are tokens; returns how many tokens were accepted, of *ret_n. */
static size_t feed(model_grammar *g, const vocabulary *v, const char *text, size_t *ret_n)
{
    model_ids ids = {0};
    size_t i = 0;
    model_tokenizer_encode(v->tokenizer, text, strlen(text), true, &ids);
    *ret_n = ids.n;
    for (; i < ids.n && model_grammar_accepts(g, ids.ids[i]); i++) model_grammar_advance(g, ids.ids[i]);
    model_ids_free(&ids);
    return i;
}

/*
 * Each good text goes through and leaves the grammar dormant; of each bad one the last token is stopped. Behind each place a
 * mask says what accepts says, marks and all. All end in NULL.
 */
static void check_calls(const tiny_gguf *spec, model_tool_style style, const char *const *good,
    const char *const *bad, const char *const *places)
{
    base_buf b = {0};
    tiny_gguf_write(spec, &b);
    vocabulary v = load_bytes(b);
    model_grammar *g = make(&v, style);
    size_t n, at;
    for (; *good; good++) {
        model_grammar_reset(g);
        at = feed(g, &v, *good, &n);
        if (at != n) fail_msg("stopped at token %zu of %zu: %s", at, n, *good);
        assert_false(model_grammar_is_active(g));
    }
    for (; *bad; bad++) {
        model_grammar_reset(g);
        at = feed(g, &v, *bad, &n);
        /* " x" and its like may be one token with what stands before */
        const bool may_join = style == MODEL_TOOLS_HARMONY && (*bad)[strlen(*bad) - 1] != '>';
        if (at >= n || (at + 1 != n && !may_join)) fail_msg("stopped at token %zu of %zu: %s", at, n, *bad);
    }
    for (; *places; places++) {
        model_grammar_reset(g);
        at = feed(g, &v, *places, &n);
        assert_int_equal(at, n);
        assert_true(model_grammar_is_active(g));
        const uint64_t *mask = model_grammar_mask(g);
        assert_non_null(mask);
        for (uint32_t id = 0; id < model_tokenizer_size(v.tokenizer); id++)
            if ((mask[id / 64] >> id % 64 & 1) != model_grammar_accepts(g, (int32_t)id))
                fail_msg("behind \"%s\" the mask says otherwise of %u", *places, id);
    }
    model_grammar_free(g);
    unload(&v);
}

/* gpt-oss: an answer begins in a head; marks are tokens, and their names as text are nothing. */
static void test_grammar_marks__holds_calls_of_harmony(void **state)
{
    static const char *const good[] = {
        "<|channel|>final<|message|>to=functions.x {\"name\" <tool_call>",
        "<|channel|>analysis<|message|>to=functions.x<|end|><|start|>assistant<|channel|>commentary "
        "to=functions.read <|constrain|>json<|message|>{\"path\": \"src/a.c\", \"line\": 3}<|call|>",
        " to=functions.now<|channel|>commentary json<|message|>{}<|call|>",
        " to=functions.send_message<|channel|>commentary "
        "<|constrain|>json<|message|>{\"message\": \"a\\n<|call\"} <|call|>",
        "<|channel|>commentary to=functions.set<|message|>{\"mode\": \"read\", \"count\": -1}<|call|>",
        "<|channel|>commentary to=browser.open<|message|>{anything",
        NULL,
    };
    static const char *const bad[] = {
        /* the last token is wrong */
        " to=functions.x",
        " to=functions.send_x",
        " to=functions.read  ",
        " to=functions.read <|message|>",
        " to=functions.read <|constrain|>x",
        " to=functions.read<|channel|>f",
        " to=functions.read<|message|>[",
        " to=functions.read<|message|>{}",
        " to=functions.read<|message|>{\"path\": \"x",
        " to=functions.read<|message|>{\"path\": <|message|>",
        " to=functions.read<|message|>{\"path\": \"src/a.c\"}<|end|>",
        " to=functions.now<|message|>{}<|return|>",
        " to=functions.now<|message|>{}x",
        NULL,
    };
    static const char *const places[] = {" to=functions.", " to=functions.now",
        " to=functions.now<|message|>{}", " to=functions.read<|message|>{",
        " to=functions.read <|constrain|>", NULL};
    check_calls(&TINY_GGUF_GPT_OSS, MODEL_TOOLS_HARMONY, good, bad, places);
}

/* Devstral: a call begins at a mark anywhere, and ends the answer. */
static void test_grammar_marks__holds_calls_of_mistral(void **state)
{
    static const char *const good[] = {
        "I look.[TOOL_CALLS]read[ARGS]{\"path\": \"src/a.c\", \"line\": 3}</s>",
        "[TOOL_CALLS]now[ARGS]{}</s>",
        "[TOOL_CALLS]send_message[ARGS] {\"message\": \"a\\n[ARGS\"} </s>",
        "{\"name\": 1} <tool_call> [ARGS]</s>",
        NULL,
    };
    static const char *const bad[] = {
        /* the last token is wrong */
        "[TOOL_CALLS]x",
        "[TOOL_CALLS][ARGS]",
        "[TOOL_CALLS]rea[ARGS]",
        "[TOOL_CALLS]read</s>",
        "[TOOL_CALLS]read[TOOL_CALLS]",
        "[TOOL_CALLS]read[ARGS]{}",
        "[TOOL_CALLS]now[ARGS]{</s>",
        "[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]",
        "[TOOL_CALLS]now[ARGS]{}</s>[TOOL_CALLS]",
        NULL,
    };
    static const char *const places[] = {
        "[TOOL_CALLS]", "[TOOL_CALLS]now", "[TOOL_CALLS]now[ARGS]{}", "[TOOL_CALLS]read[ARGS]{", NULL};
    tiny_gguf spec = TINY_GGUF_QWEN2;
    spec.mistral_marks = true;
    check_calls(&spec, MODEL_TOOLS_MISTRAL, good, bad, places);
}

/* Gemma 4: keys without quotes and in any order, text as it is between two marks, no blanks. */
static void test_grammar_marks__holds_calls_of_gemma(void **state)
{
    static const char *const good[] = {
        "I look.<|tool_call>call:read{line:3,path:<|\"|>src/a.c<|\"|>}<tool_call|>",
        "<|tool_call>call:read{path:<|\"|>src/a.c<|\"|>,lines:12,line:3}<tool_call|>",
        "<|tool_call>call:now{}<tool_call|>",
        "<|tool_call>call:send_message{message:<|\"|>a\n\t\"},{b:\\<|\"|>}<tool_call|>",
        "<|tool_call>call:set{count:-1,mode:<|\"|>a \"b\"<|\"|>,quiet:true}<tool_call|>",
        "{\"name\": 1} <tool_call> <|\"|> <tool_call|>",
        NULL,
    };
    static const char *const bad[] = {
        /* the last token is wrong */
        "<|tool_call>x",
        "<|tool_call>call:<|\"|>",
        "<|tool_call>call:now<tool_call|>",
        "<|tool_call>call:now{<tool_call|>",
        "<|tool_call>call:now{}x",
        "<|tool_call>call:now{}<turn|>",
        "<|tool_call>call:read{}",
        "<|tool_call>call:read{ ",
        "<|tool_call>call:read{line:3}",
        "<|tool_call>call:read{line:<|\"|>",
        "<|tool_call>call:read{path:s",
        "<|tool_call>call:read{path:<|\"|><tool_call|>",
        "<|tool_call>call:read{path:<|\"|>src/a.c<|\"|>,p",
        "<|tool_call>call:read{path:<|\"|>src/a.c<|\"|>,}",
        "<|tool_call>call:read{path:<|\"|>src/a.c<|\"|>}<|tool_call>",
        "<|tool_call>call:send_message{message:<|\"|>a<|tool_call>",
        "<|tool_call>call:now{}<tool_call|><|tool_call>",
        NULL,
    };
    static const char *const places[] = {"<|tool_call>", "<|tool_call>call:now", "<|tool_call>call:now{",
        "<|tool_call>call:read{", "<|tool_call>call:read{line:3",
        "<|tool_call>call:read{path:", "<|tool_call>call:read{path:<|\"|>src",
        "<|tool_call>call:send_message{message:<|\"|>a", "<|tool_call>call:now{}", NULL};
    tiny_gguf spec = TINY_GGUF_QWEN2;
    spec.gemma_marks = true;
    check_calls(&spec, MODEL_TOOLS_GEMMA, good, bad, places);
}

/* Mistral Small 3.2: the same with an id of nine letters or digits behind the name. */
static void test_grammar_marks__holds_calls_of_mistral_with_ids(void **state)
{
    static const char *const good[] = {
        "I look.[TOOL_CALLS]read[CALL_ID]a1B2c3D4e[ARGS]{\"path\": \"src/a.c\", \"line\": 3}</s>",
        "[TOOL_CALLS]now[CALL_ID]000000000[ARGS]{}</s>",
        "[CALL_ID]x[ARGS]</s>",
        NULL,
    };
    static const char *const bad[] = {
        /* the last token is wrong */
        "[TOOL_CALLS]now[ARGS]",
        "[TOOL_CALLS][CALL_ID]",
        "[TOOL_CALLS]now[CALL_ID][ARGS]",
        "[TOOL_CALLS]now[CALL_ID]a1B2c3D4[ARGS]",
        "[TOOL_CALLS]now[CALL_ID]a1B2c3D4ef",
        "[TOOL_CALLS]now[CALL_ID]a1_",
        "[TOOL_CALLS]now[CALL_ID]a1{",
        "[TOOL_CALLS]now[CALL_ID]a1B[CALL_ID]",
        "[TOOL_CALLS]now[CALL_ID]a1B2c3D4e</s>",
        "[TOOL_CALLS]now[CALL_ID]a1B2c3D4e[ARGS]{}[TOOL_CALLS]",
        NULL,
    };
    static const char *const places[] = {"[TOOL_CALLS]now", "[TOOL_CALLS]now[CALL_ID]",
        "[TOOL_CALLS]now[CALL_ID]a1B2c3D4", "[TOOL_CALLS]now[CALL_ID]a1B2c3D4e",
        "[TOOL_CALLS]now[CALL_ID]a1B2c3D4e[ARGS]{}", NULL};
    tiny_gguf spec = TINY_GGUF_QWEN2;
    spec.mistral_marks = true;
    check_calls(&spec, MODEL_TOOLS_MISTRAL_IDS, good, bad, places);
}

/* Granite 3: a list of one object. */
static void test_grammar_marks__holds_calls_of_granite(void **state)
{
    static const char *const good[] = {
        "I look.<|tool_call|>[{\"name\": \"read\", \"arguments\": {\"path\": \"src/a.c\", \"line\": 3}}]<|end_of_text|>",
        "<|tool_call|> [ {\"name\": \"now\",\n\"arguments\": {}} ] <|end_of_text|>",
        "[{\"name\": 1}] <tool_call> <|end_of_text|>",
        NULL,
    };
    static const char *const bad[] = {
        /* the last token is wrong */
        "<|tool_call|>{",
        "<|tool_call|>[]",
        "<|tool_call|>[{\"a",
        "<|tool_call|>[{\"name\": \"x",
        "<|tool_call|>[{\"name\": \"<|tool_call|>",
        "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}]",
        "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}<|end_of_text|>",
        "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}},",
        "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]<|tool_call|>",
        "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]<|end_of_text|><|tool_call|>",
        NULL,
    };
    static const char *const places[] = {"<|tool_call|>", "<|tool_call|>[{\"name\": \"",
        "<|tool_call|>[{\"name\": \"read\", \"arguments\": {",
        "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}",
        "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]", NULL};
    tiny_gguf spec = TINY_GGUF_QWEN2;
    spec.granite_marks = true;
    check_calls(&spec, MODEL_TOOLS_GRANITE, good, bad, places);
}

/* Mistral Nemo: the same with an id as the object's last member. */
static void test_grammar_marks__holds_calls_of_nemo(void **state)
{
    static const char *const good[] = {
        "I look.[TOOL_CALLS][{\"name\": \"read\", \"arguments\": {\"path\": \"src/a.c\", \"line\": 3}, \"id\": "
        "\"a1B2c3D4e\"}]</s>",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"id\": \"000000000\"}]</s>",
        "[{\"name\": 1}] [ARGS]</s>",
        NULL,
    };
    static const char *const bad[] = {
        /* the last token is wrong */
        "[TOOL_CALLS]n",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"x",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"id\": \"a1B2c3D4\"",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"id\": \"a1B2c3D4ef",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"id\": \"a1_",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"id\": \"a1B2c3D4e\"}</s>",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"id\": \"a1B2c3D4e\"}][TOOL_CALLS]",
        NULL,
    };
    static const char *const places[] = {"[TOOL_CALLS]", "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"id\": \"a1B2c3D4",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"id\": \"a1B2c3D4e\"}]", NULL};
    tiny_gguf spec = TINY_GGUF_QWEN2;
    spec.mistral_marks = true;
    check_calls(&spec, MODEL_TOOLS_NEMO, good, bad, places);
}

/* What would be a call, a wrong one at that, is none inside a thought; behind it calls are held as ever. */
static void test_grammar_marks__holds_nothing_inside_a_thought(void **state)
{
    base_buf b = {0};
    tiny_gguf spec = TINY_GGUF_QWEN2;
    spec.think_marks = true;
    tiny_gguf_write(&spec, &b);
    vocabulary v = load_bytes(b);
    model_grammar *g = make(&v, MODEL_TOOLS_HERMES);
    static const char thought[] = "\n<think>\n<tool_call>{\"name\": \"nobody\"";
    size_t n, at;
    at = feed(g, &v, thought, &n);
    assert_int_equal(at, n);
    assert_false(model_grammar_is_active(g));
    assert_null(model_grammar_mask(g));
    int32_t forced[4];
    assert_int_equal(model_grammar_forced(g, forced, 4), 0);
    at = feed(g, &v, "</think>\n<tool_call>{\"name\": \"", &n);
    assert_int_equal(at, n);
    assert_true(model_grammar_is_active(g));
    at = feed(g, &v, "nobody", &n);
    assert_int_not_equal(at, n);
    /* An answer that speaks of a thought begins none; nor does a second one; a reset forgets the one that is open. */
    static const char *const held[] = {
        "Well, <think>\n<tool_call>[", "<think>a</think><think>\n<tool_call>["};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        model_grammar_reset(g);
        at = feed(g, &v, held[i], &n);
        assert_int_equal(at + 1, n);
        model_grammar_reset(g);
        at = feed(g, &v, "<think>a", &n);
        assert_int_equal(at, n);
    }
    model_grammar_reset(g);
    at = feed(g, &v, "<tool_call>[", &n);
    assert_int_equal(at + 1, n);
    model_grammar_free(g);
    unload(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar_marks__holds_calls_of_harmony),
        cmocka_unit_test(test_grammar_marks__holds_calls_of_mistral),
        cmocka_unit_test(test_grammar_marks__holds_calls_of_mistral_with_ids),
        cmocka_unit_test(test_grammar_marks__holds_calls_of_granite),
        cmocka_unit_test(test_grammar_marks__holds_calls_of_nemo),
        cmocka_unit_test(test_grammar_marks__holds_calls_of_gemma),
        cmocka_unit_test(test_grammar_marks__holds_nothing_inside_a_thought),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
