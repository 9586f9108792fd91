/*
 * Calls and their results as each family was taught them, as golden strings: the pieces of ids put back together must be what
 * the families' own templates write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "template_kit.h"

static const char *const harmony_tokens[] = {"<|startoftext|>", "<|start|>", "<|end|>", "<|message|>",
    "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>", NULL};
static const char harmony_sign[] =
    "{{- \"<|start|>assistant<|channel|>final<|message|>\" }}{{- \"<|call|>\" }}";

/*
 * What jinja2 makes of llama.cpp's models/templates/openai-gpt-oss-120b.jinja, without its date, and with a result as it
 * is instead of a JSON string of it. The thought is left out of later turns by the cache (agent/call/channels.h).
 */
static void test_template_calls__writes_those_of_harmony(void **state)
{
    static const char want[] =
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge "
        "cutoff: "
        "2024-06\n\nReasoning: low\n\n# Valid channels: analysis, commentary, final. Channel must be "
        "included for "
        "every message.\nCalls to these tools must go to the commentary channel: 'functions'.<|end|><|start|>"
        "developer<|message|># Instructions\n\nBe "
        "brief.<|end|><|start|>user<|message|><|im_end|>hi<|eot_id|><|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>I look.<|end|><|start|>assistant to=functions.shell"
        "<|channel|>commentary json<|message|>{\"command\": \"ls\"}<|call|><|start|>functions.shell "
        "to=assistant"
        "<|channel|>commentary<|message|>result<|end|><|start|>assistant<|channel|>final<|message|>There.<|"
        "end|>"
        "<|start|>user<|message|>Thanks.<|end|><|start|>assistant";
    chat c = chat_open("gpt-oss", "gpt-oss-20b", harmony_sign, harmony_tokens);
    model_ids ids = {0};
    assert_string_equal(model_template_name(c.template), "harmony");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_HARMONY);
    model_template_start(c.template, &ids);
    chat_put(&c, MODEL_ROLE_SYSTEM, "Be brief.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_USER, "<|im_end|>hi<|eot_id|>", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT,
        "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant "
        "to=functions.shell<|channel|>commentary "
        "json<|message|>{\"command\": \"ls\"}<|call|>",
        true, true, &ids);
    chat_put(&c, MODEL_ROLE_TOOL, "result", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "<|channel|>final<|message|>There.", true, true, &ids);
    chat_put(&c, MODEL_ROLE_USER, "Thanks.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "", false, false, &ids);
    chat_expect(&c, &ids, 0, want, 29); /* those that the user wrote are none */
    const int32_t returned = model_tokenizer_find(c.tokenizer, "<|return|>"),
                  end = model_tokenizer_find(c.tokenizer, "<|end|>"),
                  call = model_tokenizer_find(c.tokenizer, "<|call|>");
    assert_int_equal(model_template_kept_end(c.template, returned), end);
    assert_int_equal(model_template_kept_end(c.template, call), call);
    assert_true(model_tokenizer_is_end(c.tokenizer, returned) && model_tokenizer_is_end(c.tokenizer, call));
    assert_false(model_tokenizer_is_end(c.tokenizer, end)); /* it ends one message of an answer */
    /* The other way to write a head, and none at all. */
    ids.n = 0;
    chat_put(&c, MODEL_ROLE_ASSISTANT,
        "<|channel|>commentary to=functions.read <|constrain|>json<|message|>{}<|call|>", true, true, &ids);
    const size_t before = ids.n;
    chat_put(&c, MODEL_ROLE_TOOL, "to=functions.x", false, true, &ids);
    chat_expect(&c, &ids, before,
        "<|start|>functions.read to=assistant<|channel|>commentary<|message|>to=functions.x<|end|>", -1);
    model_ids_free(&ids);
    chat_close(&c);
}

static const char ids_sign[] = "{{ '[SYSTEM_PROMPT]' }}{{ '[CALL_ID]' + '[ARGS]' }}{{ '[TOOL_CONTENT]' }}";

/*
 * What jinja2 makes of unsloth-mistral-Devstral-Small-2507.jinja and mistralai-Ministral-3-14B-Reasoning-2512.jinja with
 * one function, a call and its result; and which marks a file must have.
 */
static void test_template_calls__writes_those_of_mistral(void **state)
{
    static const char want[] =
        "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][AVAILABLE_TOOLS][{\"type\": \"function\"}]"
        "[/AVAILABLE_TOOLS][INST][ARGS]hi[/INST]I look.[TOOL_CALLS]shell[ARGS]{\"command\": \"ls\"}</s>"
        "[TOOL_RESULTS]result[/TOOL_RESULTS]There.</s>[INST]Thanks.[/INST]";
    static const char *const tokens[] = {"<s>", "</s>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]",
        "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
        "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", NULL};
    chat c = chat_open(
        "mistral3", "Devstral", "{{ '[SYSTEM_PROMPT]' }}{{ '[TOOL_CALLS]' + name + '[ARGS]' }}", tokens);
    model_ids ids = {0};
    assert_string_equal(model_template_name(c.template), "mistral");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_MISTRAL);
    model_template_start(c.template, &ids);
    chat_put(&c, MODEL_ROLE_SYSTEM, "Be brief.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_TOOLS, "[{\"type\": \"function\"}]", false, true, &ids);
    chat_put(&c, MODEL_ROLE_USER, "[ARGS]hi", false, true, &ids);
    chat_put(
        &c, MODEL_ROLE_ASSISTANT, "I look.[TOOL_CALLS]shell[ARGS]{\"command\": \"ls\"}", true, true, &ids);
    chat_put(&c, MODEL_ROLE_TOOL, "result", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "There.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_USER, "Thanks.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "", false, false, &ids);
    chat_expect(&c, &ids, 0, want, 15); /* the [ARGS] that the user wrote is none */
    model_ids_free(&ids);
    chat_close(&c);
    /* Ids of calls want marks that are not there; and lists of objects are another form. */
    c = chat_open("llama", "Mistral Small 3.2", ids_sign, tokens);
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_JSON);
    chat_close(&c);
    c = chat_open("llama", "Mistral Small 3", "{{ '[SYSTEM_PROMPT]' }}{{ '[TOOL_CALLS][' }}", tokens);
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_JSON);
    chat_close(&c);
}

/* The head of a result behind what was called. */
static void expect_result_head(const chat *c, const char *called, const char *want)
{
    model_ids ids = {0};
    chat_put(c, MODEL_ROLE_ASSISTANT, called, true, true, &ids);
    const size_t from = ids.n;
    model_template_begin_behind(c->template, MODEL_ROLE_TOOL, ids.ids, ids.n, &ids);
    chat_expect(c, &ids, from, want, -1);
    model_ids_free(&ids);
}

/*
 * What jinja2 makes of Mistral-Small-3.2-24B-Instruct-2506.jinja with one function and two calls. With a second request
 * that template would move the functions in front of it; here they stay where they are.
 */
static void test_template_calls__writes_those_of_mistral_with_ids(void **state)
{
    static const char want[] =
        "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][AVAILABLE_TOOLS][{\"type\": \"function\"}]"
        "[/AVAILABLE_TOOLS][INST][ARGS]hi[/INST][TOOL_CALLS]shell[CALL_ID]a1B2c3D4e[ARGS]{\"command\": "
        "\"ls\"}"
        "</s>[TOOL_RESULTS]a1B2c3D4e[TOOL_CONTENT]result[/TOOL_RESULTS][TOOL_CALLS]shell[CALL_ID]Z9y8X7w6v"
        "[ARGS]{\"command\": \"pwd\"}</s>[TOOL_RESULTS]Z9y8X7w6v[TOOL_CONTENT][CALL_ID]no[/TOOL_RESULTS]"
        "There.</s>";
    static const char *const tokens[] = {"<s>", "</s>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]",
        "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
        "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[TOOL_CONTENT]", NULL};
    chat c = chat_open("llama", "Mistral Small 3.2", ids_sign, tokens);
    model_ids ids = {0};
    assert_string_equal(model_template_name(c.template), "mistral");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_MISTRAL_IDS);
    model_template_start(c.template, &ids);
    chat_put(&c, MODEL_ROLE_SYSTEM, "Be brief.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_TOOLS, "[{\"type\": \"function\"}]", false, true, &ids);
    chat_put(&c, MODEL_ROLE_USER, "[ARGS]hi", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "[TOOL_CALLS]shell[CALL_ID]a1B2c3D4e[ARGS]{\"command\": \"ls\"}", true,
        true, &ids);
    chat_put(&c, MODEL_ROLE_TOOL, "result", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "[TOOL_CALLS]shell[CALL_ID]Z9y8X7w6v[ARGS]{\"command\": \"pwd\"}",
        true, true, &ids);
    chat_put(&c, MODEL_ROLE_TOOL, "[CALL_ID]no", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "There.", false, true, &ids);
    chat_expect(&c, &ids, 0, want, 22); /* what the user and the file wrote are none */
    model_ids_free(&ids);
    expect_result_head(
        &c, "[TOOL_CALLS]ls[CALL_ID]Z9y8X7w6v[ARGS]{}", "[TOOL_RESULTS]Z9y8X7w6v[TOOL_CONTENT]");
    /* A call without an id, or with what is none; none of an older call. */
    expect_result_head(&c, "{\"name\": \"ls\"}", "[TOOL_RESULTS]000000000[TOOL_CONTENT]");
    expect_result_head(&c, "[TOOL_CALLS]ls[CALL_ID]Z9y8X7w6v[ARGS]{}[TOOL_CALLS]ls[ARGS]{}",
        "[TOOL_RESULTS]000000000[TOOL_CONTENT]");
    expect_result_head(
        &c, "[TOOL_CALLS]ls[CALL_ID]a b_c-d.e[ARGS]{}", "[TOOL_RESULTS]000000000[TOOL_CONTENT]");
    expect_result_head(&c, "[TOOL_CALLS]ls[CALL_ID]a1[ARGS]{}", "[TOOL_RESULTS]000000000[TOOL_CONTENT]");
    expect_result_head(&c, "[TOOL_CALLS]ls[CALL_ID]", "[TOOL_RESULTS]000000000[TOOL_CONTENT]");
    chat_close(&c);
}

/* What jinja2 makes of ibm-granite-granite-3.3-2B-Instruct.jinja with one function, a call and its result. */
static void test_template_calls__writes_those_of_granite(void **state)
{
    static const char *const tokens[] = {
        "<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>", NULL};
    static const char jinja[] = "{{'<|start_of_role|>' + role}} <|tool_call|>";
    static const char want[] =
        "<|start_of_role|>system<|end_of_role|>Be brief.<|end_of_text|>\n"
        "<|start_of_role|>available_tools<|end_of_role|>[\n    {\n        \"type\": \"function\"\n    }\n]"
        "<|end_of_text|>\n<|start_of_role|>user<|end_of_role|><|tool_call|>hi<|end_of_text|>\n"
        "<|start_of_role|>assistant<|end_of_role|><|tool_call|>[{\"name\": \"shell\", \"arguments\": {\"command\": "
        "\"ls\"}}]<|end_of_text|>\n<|start_of_role|>tool<|end_of_role|>result<|end_of_text|>\n"
        "<|start_of_role|>assistant<|end_of_role|>There.<|end_of_text|>\n"
        "<|start_of_role|>user<|end_of_role|>Thanks.<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>";
    chat c = chat_open("granite", "Granite 3.3", jinja, tokens);
    model_ids ids = {0};
    model_template_start(c.template, &ids);
    chat_put(&c, MODEL_ROLE_SYSTEM, "Be brief.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_TOOLS, "[\n    {\n        \"type\": \"function\"\n    }\n]", false, true, &ids);
    chat_put(&c, MODEL_ROLE_USER, "<|tool_call|>hi", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT,
        "<|tool_call|>[{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}]", true, true, &ids);
    chat_put(&c, MODEL_ROLE_TOOL, "result", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "There.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_USER, "Thanks.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "", false, false, &ids);
    chat_expect(&c, &ids, 0, want, 24); /* the mark that the user wrote is none */
    model_ids_free(&ids);
    chat_close(&c);
    /* The words without their token. */
    static const char *const fewer[] = {"<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>", NULL};
    c = chat_open("granite", "Granite 3.3", jinja, fewer);
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_JSON);
    chat_close(&c);
}

/*
 * What jinja2 makes of mistralai-Mistral-Nemo-Instruct-2407.jinja with one function and a request: its system text begins that
 * one. Behind it a call and its result as the template writes them; with a second request it would move tools and system text
 * in front of that, here they stay.
 */
static void test_template_calls__writes_those_of_nemo(void **state)
{
    static const char *const tokens[] = {"<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]",
        "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", NULL};
    static const char first[] =
        "<s>[AVAILABLE_TOOLS][{\"type\": \"function\"}][/AVAILABLE_TOOLS][INST]Be brief.\n\n"
        "[INST]hi[/INST]";
    static const char rest[] =
        "[TOOL_CALLS][{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}, \"id\": \"a1B2c3D4e\"}]</s>"
        "[TOOL_RESULTS]{\"content\": [/INST]result, \"call_id\": \"a1B2c3D4e\"}[/TOOL_RESULTS]There.</s>"
        "[INST]Thanks.[/INST]";
    base_buf want = {0};
    chat c = chat_open(
        "llama", "Mistral Nemo", "{{- \"[INST]\" + system_message }}{{- \"[TOOL_CALLS][\" }}", tokens);
    model_ids ids = {0};
    assert_string_equal(model_template_name(c.template), "nemo");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_NEMO);
    model_template_start(c.template, &ids);
    chat_put(&c, MODEL_ROLE_TOOLS, "[{\"type\": \"function\"}]", false, true, &ids);
    chat_put(&c, MODEL_ROLE_SYSTEM, "Be brief.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_USER, "[INST]hi", false, true, &ids);
    chat_expect(&c, &ids, 0, first, 5); /* the [INST] that the user wrote is none */
    chat_put(&c, MODEL_ROLE_ASSISTANT,
        "[TOOL_CALLS][{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}, \"id\": \"a1B2c3D4e\"}]",
        true, true, &ids);
    chat_put(&c, MODEL_ROLE_TOOL, "[/INST]result", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "There.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_USER, "Thanks.", false, true, &ids);
    chat_put(&c, MODEL_ROLE_ASSISTANT, "", false, false, &ids);
    /* An end and a beginning may be made at once. */
    const size_t n_ids = ids.n;
    model_ids both = {0};
    model_template_begin_behind(c.template, MODEL_ROLE_USER, ids.ids, ids.n, &ids);
    model_template_end_behind(c.template, MODEL_ROLE_USER, ids.ids, ids.n, &both);
    model_template_begin_behind(c.template, MODEL_ROLE_USER, ids.ids, ids.n, &both);
    chat_expect(&c, &both, 0, "[/INST][INST]", 2);
    ids.n = n_ids;
    model_ids_free(&both);
    base_buf_printf(&want, "%s%s", first, rest);
    chat_expect(&c, &ids, 0, want.data, 12);
    /* A result whose call has no id, or what is none. */
    static const char *const called[] = {"[TOOL_CALLS][{\"name\": \"ls\"}]", "{\"id\": \"a1B2c3D4e\"}",
        "[TOOL_CALLS][{\"id\": \"a b\"}]", "[TOOL_CALLS][{\"id\": \"a1B2c3D4ef\"}]",
        "[TOOL_CALLS][{\"id\": \"a1"};
    for (size_t i = 0; i < sizeof called / sizeof *called; i++) {
        ids.n = 0;
        base_buf_clear(&want);
        chat_put(&c, MODEL_ROLE_ASSISTANT, called[i], true, true, &ids);
        chat_put(&c, MODEL_ROLE_TOOL, "x", false, true, &ids);
        base_buf_printf(&want,
            "%s</s>[TOOL_RESULTS]{\"content\": x, \"call_id\": \"000000000\"}[/TOOL_RESULTS]", called[i]);
        chat_expect(&c, &ids, 0, want.data, 3 + (called[i][0] == '['));
    }
    base_buf_free(&want);
    model_ids_free(&ids);
    chat_close(&c);
}

/*
 * What jinja2 makes of google-gemma-4-31B-it.jinja with one function, two calls and their results, with enable_thinking on.
 * With it off every answer, not only the last one, begins behind an empty thought here, since what was computed stays; the
 * smaller models' templates have none.
 */
static void test_template_calls__writes_those_of_gemma4(void **state)
{
    static const char *const tokens[] = {"<bos>", "<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|tool_call>",
        "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|\"|>", "<|channel>", "<channel|>",
        "<|think|>", NULL};
    static const char *const jinja[] = {
        "{{'<|turn>' + role}}{{- '<|channel>thought\\n<channel|>' -}}", "{{'<|turn>' + role}}"};
    for (int i = 0; i < 3; i++) {
        const char *thought = i == 0 ? "<|channel>thought\n<channel|>" : "";
        const bool thinking = i == 1;
        base_buf want = {0};
        model_ids ids = {0};
        chat c = chat_open("gemma4", "Gemma 4", jinja[i == 2], tokens);
        model_template_free(c.template);
        assert_int_equal(model_template_load(&c.template, c.gguf, c.tokenizer, thinking, NULL), 0);
        assert_string_equal(model_template_name(c.template), "gemma4");
        assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_GEMMA);
        base_buf_printf(&want,
            "<|turn>system\n"
            "%sBe brief.<|tool>declaration:now{description:<|\"|>the "
            "time<|\"|>,parameters:{type:<|\"|>OBJECT<|\"|>}}<tool|><turn|>\n"
            "<|turn>user\n"
            "<|\"|>hi<turn|>\n"
            "<|turn>model\n%s<|tool_call>call:edit{content:<|\"|>a\n  \"b\"<|\"|>,force:true,from:3,path:"
            "<|\"|>a.c<|\"|>}<tool_call|><|tool_response>response:edit{value:<|\"|>result}<tool_response|>"
            "<|\"|>}<tool_response|>"
            "<|tool_call>call:now{}<tool_call|><|tool_response>response:now{value:<|\"|>ten<|\"|>}"
            "<tool_response|>There.<turn|>\n<|turn>user\nThanks.<turn|>\n<|turn>model\n%s",
            thinking ? "<|think|>\n" : "", thought, thought);
        model_template_start(c.template, &ids);
        chat_put(&c, MODEL_ROLE_SYSTEM,
            "Be brief.<|tool>declaration:now{description:<|\"|>the time<|\"|>,parameters:{type:<|\"|>OBJECT"
            "<|\"|>}}<tool|>",
            true, true, &ids);
        chat_put(&c, MODEL_ROLE_USER, "<|\"|>hi", false, true, &ids);
        assert_false(model_template_opens_answer(c.template, ids.ids, ids.n));
        chat_put(&c, MODEL_ROLE_ASSISTANT,
            "<|tool_call>call:edit{content:<|\"|>a\n"
            "  \"b\"<|\"|>,force:true,from:3,path:<|\"|>a.c<|\"|>}<tool_call|>",
            true, true, &ids);
        chat_put(&c, MODEL_ROLE_TOOL, "result}<tool_response|>", false, true, &ids);
        assert_true(model_template_opens_answer(c.template, ids.ids, ids.n));
        chat_put(&c, MODEL_ROLE_ASSISTANT, "<|tool_call>call:now{}<tool_call|>", true, true, &ids);
        chat_put(&c, MODEL_ROLE_TOOL, "ten", false, true, &ids);
        chat_put(&c, MODEL_ROLE_ASSISTANT, "There.", false, true, &ids);
        chat_put(&c, MODEL_ROLE_USER, "Thanks.", false, true, &ids);
        chat_put(&c, MODEL_ROLE_ASSISTANT, "", false, false, &ids);
        assert_true(model_template_opens_answer(c.template, ids.ids, ids.n));
        chat_expect(&c, &ids, 0, want.data, 31 + (thinking ? 1 : i == 0 ? 4 : 0));
        /* What asks for a result ends an answer, and stands in the sequence as an end. */
        assert_int_equal(
            model_template_kept_end(c.template, model_tokenizer_find(c.tokenizer, "<|tool_response>")),
            model_tokenizer_find(c.tokenizer, "<turn|>"));
        expect_result_head(
            &c, "<|tool_call>call:ls{}<tool_call|>", "<|tool_response>response:ls{value:<|\"|>");
        expect_result_head(&c, "{\"name\": \"ls\"}", "<|tool_response>response:tool{value:<|\"|>");
        expect_result_head(&c, "<|tool_call><tool_call|>", "<|tool_response>response:tool{value:<|\"|>");
        ids.n = 0; /* where nobody says what stands before */
        model_template_begin(c.template, MODEL_ROLE_TOOL, &ids);
        chat_expect(&c, &ids, 0, "<|tool_response>response:tool{value:<|\"|>", 2);
        base_buf_free(&want);
        model_ids_free(&ids);
        chat_close(&c);
    }
    /* Without its tokens it is none. */
    chat c = {.bytes = chat_build("gemma4", "Gemma 4", jinja[0], tokens + 3)};
    base_err err = {0};
    assert_int_equal(gguf_parse(&c.gguf, c.bytes.data, c.bytes.len, NULL), 0);
    assert_int_equal(model_tokenizer_load(&c.tokenizer, c.gguf, NULL), 0);
    assert_int_equal(model_template_load(&c.template, c.gguf, c.tokenizer, false, &err), BASE_E_UNSUPPORTED);
    chat_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_template_calls__writes_those_of_harmony),
        cmocka_unit_test(test_template_calls__writes_those_of_mistral),
        cmocka_unit_test(test_template_calls__writes_those_of_mistral_with_ids),
        cmocka_unit_test(test_template_calls__writes_those_of_granite),
        cmocka_unit_test(test_template_calls__writes_those_of_nemo),
        cmocka_unit_test(test_template_calls__writes_those_of_gemma4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
