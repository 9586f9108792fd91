/*
 * What a conversation looks like to the model, as golden strings: the pieces of ids put back together must be
 * what the families' own templates write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fs.h"
#include "template_kit.h"

static const char *const chatml_tokens[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", NULL};
static const char chatml_sign[] =
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>'}}";
static const char qwen_sign[] = "{{'<|im_start|>'}} within <tool_call></tool_call> XML tags";

static const char chatml_want[] = "<|im_start|>system\nBe brief.<|im_end|>\n"
                                  "<|im_start|>user\n<|im_end|>hi<|eot_id|><|im_end|>\n"
                                  "<|im_start|>assistant\ncall<|im_end|>\n"
                                  "<|im_start|>user\n<tool_response>\nresult\n</tool_response><|im_end|>\n"
                                  "<|im_start|>assistant\n";

static void test_template__writes_chatml(void **state)
{
    chat c = chat_open("qwen2", "SmolLM2", chatml_sign, chatml_tokens);
    assert_string_equal(model_template_name(c.template), "chatml");
    chat_converse(&c, chatml_want, 9);
    chat_close(&c);
}

static void test_template__writes_llama3(void **state)
{
    static const char *const tokens[] = {
        "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", NULL};
    chat c = chat_open("llama", "Llama", "{{'<|start_header_id|>' + message['role']}}", tokens);
    assert_string_equal(model_template_name(c.template), "llama3");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_JSON);
    chat_converse(&c,
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
        "Be brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"
        "<|im_end|>hi<|eot_id|><|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
        "call<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n"
        "result<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        15);
    chat_close(&c);
}

/* What jinja2 makes of llama.cpp's models/templates/Qwen3-Coder.jinja. */
static void test_template__writes_qwen3_coder(void **state)
{
    chat c = chat_open("qwen3moe", "Qwen3 Coder 30B A3B Instruct",
        "{{'<|im_start|>'}} <tool_call>\n<function=example_function_name>", chatml_tokens);
    assert_string_equal(model_template_name(c.template), "qwen3-coder");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_XML);
    chat_converse(&c,
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<|im_end|>hi<|eot_id|><|im_end|>\n"
        "<|im_start|>assistant\ncall<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\nresult\n</tool_response>\n<|im_end|>\n<|im_start|>assistant\n",
        9);
    chat_close(&c);
}

/*
 * What jinja2 makes of HuggingFaceTB-SmolLM3-3B.jinja, with enable_thinking off and on. Calls are asked for as the model was
 * taught them, whatever this template leaves out.
 */
static void test_template__writes_smollm3(void **state)
{
    static const char jinja[] =
        "{{- \"<|im_start|>system\\n\" -}}{{- \"Reasoning Mode: \" + reasoning_mode + \"\\n\\n\" -}}"
        "{{- \"## Custom Instructions\\n\\n\" -}}{%- if enable_thinking -%}";
    static const char behind[] =
        "\n\n## Custom Instructions\n\nBe brief.\n\n<|im_end|>\n"
        "<|im_start|>user\n<|im_end|>hi<|eot_id|><|im_end|>\n<|im_start|>assistant\n";
    chat c = chat_open("smollm3", "SmolLM3 3B", jinja, chatml_tokens);
    for (int thinking = 0; thinking < 2; thinking++) {
        const char *thought = thinking ? "" : "<think>\n\n</think>\n";
        base_buf want = {0};
        model_template_free(c.template);
        assert_int_equal(model_template_load(&c.template, c.gguf, c.tokenizer, thinking, NULL), 0);
        assert_string_equal(model_template_name(c.template), "smollm3");
        assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_HERMES);
        base_buf_printf(&want,
            "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\nReasoning Mode: %s%s%scall<|im_end|>\n"
            "<|im_start|>user\nresult<|im_end|>\n<|im_start|>assistant\n%s",
            thinking ? "/think" : "/no_think", behind, thought, thought);
        chat_converse(&c, want.data, 9);
        base_buf_free(&want);
    }
    chat_close(&c);
}

/*
 * What jinja2 makes of ByteDance-Seed-OSS.jinja with thinking_budget at 0, and left out. At 0 every answer begins behind the
 * thought that nothing is to be thought, not only the last one, since what was computed stays.
 */
static void test_template__writes_seed_oss(void **state)
{
    static const char *const tokens[] = {"<seed:bos>", "<seed:eos>", "<seed:think>", "</seed:think>",
        "<seed:tool_call>", "</seed:tool_call>", NULL};
    static const char jinja[] =
        "{%- set bos_token = '<seed:bos>' -%}{%- if not thinking_budget is defined %}";
    static const char none[] =
        "<seed:think>\n<seed:cot_budget_reflect>The current thinking budget is 0, so I will directly start "
        "answering the question.</seed:cot_budget_reflect>\n</seed:think>";
    chat c = chat_open("seed_oss", "Seed OSS 36B Instruct", jinja, tokens);
    for (int thinking = 0; thinking < 2; thinking++) {
        base_buf want = {0};
        model_template_free(c.template);
        assert_int_equal(model_template_load(&c.template, c.gguf, c.tokenizer, thinking, NULL), 0);
        assert_string_equal(model_template_name(c.template), "seed");
        assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_SEED);
        base_buf_printf(&want,
            "<seed:bos>system\nBe brief.<seed:eos>%s<seed:bos>user\n<|im_end|>hi<|eot_id|><seed:eos>"
            "<seed:bos>assistant\n%scall<seed:eos><seed:bos>tool\nresult<seed:eos><seed:bos>assistant\n%s",
            thinking
                ? ""
                : "<seed:bos>system\nYou are an intelligent assistant that can answer questions in one step without the need "
                  "for reasoning and thinking, that is, your thinking budget is 0. Next, please skip the thinking process and "
                  "directly start answering the user's questions.\n<seed:eos>",
            thinking ? "" : none, thinking ? "" : none);
        chat_converse(&c, want.data, thinking ? 9 : 15);
        base_buf_free(&want);
    }
    /* A call's tags are text, whatever the converter made of them. */
    assert_false(
        model_tokenizer_is_control(c.tokenizer, model_tokenizer_find(c.tokenizer, "<seed:tool_call>")));
    chat_close(&c);
}

/* The same of Qwen3.5-4B.jinja, with enable_thinking off and on. */
static void test_template__writes_qwen3_5(void **state)
{
    static const char jinja[] = "{{'<|im_start|>'}} <tool_call>\n"
                                "<function=example_function_name> {%- if enable_thinking "
                                "is defined and enable_thinking is false %}";
    chat c = chat_open("qwen35", "Qwen3.5-4B", jinja, chatml_tokens);
    assert_string_equal(model_template_name(c.template), "qwen3.5");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_XML);
    chat_converse(&c,
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<|im_end|>hi<|eot_id|><|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\ncall<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\nresult\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n",
        9);
    model_template_free(c.template);
    assert_int_equal(model_template_load(&c.template, c.gguf, c.tokenizer, true, NULL), 0);
    model_ids ids = {0};
    model_template_begin(c.template, MODEL_ROLE_ASSISTANT, &ids);
    chat_expect(&c, &ids, 0, "<|im_start|>assistant\n<think>\n", -1);
    model_ids_free(&ids);
    chat_close(&c);
}

/* What Mistral's templates write of a conversation without functions. */
static void test_template__writes_mistral(void **state)
{
    static const char *const tokens[] = {"<s>", "</s>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]",
        "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", NULL};
    chat c =
        chat_open("mistral3", "Devstral Small 2", "{{ '[SYSTEM_PROMPT]' + message['content'] }}", tokens);
    assert_string_equal(model_template_name(c.template), "mistral");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_JSON);
    chat_converse(&c,
        "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]<|im_end|>hi<|eot_id|>[/INST]call</s>"
        "[TOOL_RESULTS]result[/TOOL_RESULTS]",
        8);
    chat_close(&c);
}

/* What jinja2 makes of ibm-granite-granite-4.0.jinja and 4.1, and of ibm-granite-granite-3.3-2B-Instruct.jinja. */
static void test_template__writes_granite(void **state)
{
    static const char *const tokens[] = {
        "<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>", NULL};
    static const char before[] = "<|start_of_role|>system<|end_of_role|>Be brief.<|end_of_text|>\n"
                                 "<|start_of_role|>user<|end_of_role|><|im_end|>hi<|eot_id|><|end_of_text|>\n"
                                 "<|start_of_role|>assistant<|end_of_role|>call<|end_of_text|>\n";
    for (int is_four = 0; is_four < 2; is_four++) {
        base_buf want = {0};
        chat c = chat_open("granite", "Granite",
            is_four ? "{{'<|start_of_role|>' + role}} <tool_call>"
                    : "{{'<|start_of_role|>' + role}} <|tool_call|>",
            tokens);
        assert_string_equal(model_template_name(c.template), is_four ? "granite" : "granite3");
        assert_int_equal(
            model_template_tools(c.template), is_four ? MODEL_TOOLS_HERMES : MODEL_TOOLS_GRANITE);
        base_buf_printf(&want,
            "%s<|start_of_role|>%s<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>", before,
            is_four ? "user<|end_of_role|>\n<tool_response>\nresult\n</tool_response>"
                    : "tool<|end_of_role|>result");
        chat_converse(&c, want.data, 14);
        base_buf_free(&want);
        chat_close(&c);
    }
}

/*
 * What jinja2 makes of the template of Phi-4 that llama.cpp's test-chat-template.cpp has, and of Phi-4-mini-instruct's. Both
 * were taught no form of results.
 */
static void test_template__writes_phi4(void **state)
{
    static const char *const tokens[] = {"<|endoftext|>", "<|im_start|>", "<|im_sep|>", "<|im_end|>", NULL};
    static const char *const of_mini[] = {
        "<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>", "<|/tool|>", NULL};
    chat c = chat_open("phi3", "Phi 4",
        "{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|><|im_start|>assistant<|im_sep|>'}}",
        tokens);
    assert_string_equal(model_template_name(c.template), "phi4");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_JSON);
    chat_converse(&c,
        "<|im_start|>system<|im_sep|>Be brief.<|im_end|>"
        "<|im_start|>user<|im_sep|><|im_end|>hi<|eot_id|><|im_end|>"
        "<|im_start|>assistant<|im_sep|>call<|im_end|>"
        "<|im_start|>user<|im_sep|>Result:\nresult<|im_end|><|im_start|>assistant<|im_sep|>",
        14);
    chat_close(&c);
    c = chat_open("phi3", "Phi 4 mini instruct",
        "{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + "
        "'<|end|>' }}{{ '<|assistant|>' }}",
        of_mini);
    assert_string_equal(model_template_name(c.template), "phi4-mini");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_JSON);
    chat_converse(&c,
        "<|system|>Be brief.<|end|><|user|><|im_end|>hi<|eot_id|><|end|><|assistant|>call<|end|>"
        "<|user|>Result:\nresult<|end|><|assistant|>",
        9);
    chat_close(&c);
}

static void test_template__writes_gemma(void **state)
{
    static const char *const tokens[] = {"<bos>", "<start_of_turn>", "<end_of_turn>", NULL};
    chat c = chat_open("gemma3", "Gemma", "{{'<start_of_turn>' + role}}", tokens);
    assert_string_equal(model_template_name(c.template), "gemma");
    assert_int_equal(model_template_tools(c.template), MODEL_TOOLS_JSON);
    chat_converse(&c,
        "<start_of_turn>user\nBe brief.<end_of_turn>\n"
        "<start_of_turn>user\n<|im_end|>hi<|eot_id|><end_of_turn>\n"
        "<start_of_turn>model\ncall<end_of_turn>\n"
        "<start_of_turn>user\nResult:\nresult<end_of_turn>\n"
        "<start_of_turn>model\n",
        9);
    chat_close(&c);
}

/*
 * Qwen3: an answer begins with a thought, or with the words that say it was had. Other models know nothing of
 * it.
 */
static void test_template__lets_a_model_think_or_not(void **state)
{
    static const char sign[] =
        "{%- if enable_thinking is defined and enable_thinking is false %}<|im_start|>";
    for (int thinking = 0; thinking < 2; thinking++) {
        chat c = chat_open("qwen3", "Qwen3", sign, chatml_tokens), other;
        base_err err = {0};
        model_template *m;
        model_ids ids = {0};
        if (model_template_load(&m, c.gguf, c.tokenizer, thinking, &err)) fail_msg("%s", err.msg);
        model_template_begin(m, MODEL_ROLE_ASSISTANT, &ids);
        chat_expect(&c, &ids, 0,
            thinking ? "<|im_start|>assistant\n" : "<|im_start|>assistant\n<think>\n\n</think>\n\n", -1);
        model_template_free(m);
        model_ids_free(&ids);
        other = chat_open("qwen2", "Qwen2.5", qwen_sign, chatml_tokens); /* opened with thinking off */
        chat_converse(&other, chatml_want, 9);
        chat_close(&other);
        chat_close(&c);
    }
}

static void test_template__falls_back_or_refuses(void **state)
{
    static const char *const none[] = {"<|endoftext|>", NULL};
    base_err err = {0};
    model_template *m = NULL;
    chat c = chat_open("qwen2", "x", "{{ something new }}", chatml_tokens);
    assert_string_equal(model_template_name(c.template), "chatml");
    chat_close(&c);
    c = chat_open("qwen2", "x", "", none); /* a base model */
    assert_string_equal(model_template_name(c.template), "plain");
    chat_converse(&c,
        "Be brief.\n\nUser: <|im_end|>hi<|eot_id|>\n\nAssistant: call\n\nResult:\nresult\n\nAssistant: ", 0);
    chat_close(&c);

    c = (chat){
        .bytes = chat_build("qwen2", "Strange 7B", chatml_sign, none)}; /* its words without its tokens */
    assert_int_equal(gguf_parse(&c.gguf, c.bytes.data, c.bytes.len, NULL), 0);
    assert_int_equal(model_tokenizer_load(&c.tokenizer, c.gguf, NULL), 0);
    assert_int_equal(model_template_load(&m, c.gguf, c.tokenizer, false, &err), BASE_E_UNSUPPORTED);
    assert_null(m);
    assert_non_null(strstr(err.msg, "Strange 7B"));
    assert_non_null(strstr(err.msg, "chatml"));
    chat_close(&c);
}

static void test_template__chooses_the_form_of_calls(void **state)
{
    static const struct {
        const char *architecture, *name, *jinja;
        model_tool_style want;
    } cases[] = {
        {"qwen2", "Qwen2.5 Coder 1.5B Instruct GGUF", qwen_sign, MODEL_TOOLS_TAG_TOOLS},
        {"qwen2", "qwen2.5-coder-7b", qwen_sign, MODEL_TOOLS_TAG_TOOLS},
        {"qwen2", "Qwen2.5 1.5B Instruct", qwen_sign, MODEL_TOOLS_HERMES},
        {"qwen3", "Qwen3 4B", qwen_sign, MODEL_TOOLS_HERMES},
        {"qwen3moe", "Qwen3 30B A3B Instruct 2507", qwen_sign, MODEL_TOOLS_HERMES},
        {"qwen2", "Something", chatml_sign, MODEL_TOOLS_JSON},
        {"llama", "SmolLM2 135M", chatml_sign, MODEL_TOOLS_JSON},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        chat c = chat_open(cases[i].architecture, cases[i].name, cases[i].jinja, chatml_tokens);
        assert_int_equal(model_template_tools(c.template), cases[i].want);
        chat_close(&c);
    }
}

/* The default models' own files. */
static void check_default(const char *file, model_tool_style want)
{
    char *path = base_fs_home(BASE_HOME_DATA, file);
    if (!base_fs_exists(path)) {
        print_message("skipped: %s is absent\n", path);
        free(path);
        skip();
    }
    base_err err = {0};
    chat c = {0};
    if (gguf_open(&c.gguf, path, &err) != 0 || model_tokenizer_load(&c.tokenizer, c.gguf, &err) != 0 ||
        model_template_load(&c.template, c.gguf, c.tokenizer, false, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    free(path);
    assert_string_equal(model_template_name(c.template), "chatml");
    assert_int_equal(model_template_tools(c.template), want);
    chat_converse(&c, chatml_want, 9);
    model_ids end = {0};
    model_template_end(c.template, MODEL_ROLE_ASSISTANT, &end);
    assert_true(
        model_tokenizer_is_end(c.tokenizer, end.ids[0])); /* what the model itself writes to end an answer */
    model_ids_free(&end);
    chat_close(&c);
}

static void test_template__fits_the_default_model(void **state)
{
    check_default("models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", MODEL_TOOLS_TAG_TOOLS);
}

static void test_template__fits_the_small_model(void **state)
{
    check_default("models/SmolLM2-135M-Instruct.Q4_1.gguf", MODEL_TOOLS_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_template__writes_chatml),
        cmocka_unit_test(test_template__writes_llama3),
        cmocka_unit_test(test_template__writes_qwen3_coder),
        cmocka_unit_test(test_template__writes_qwen3_5),
        cmocka_unit_test(test_template__writes_mistral),
        cmocka_unit_test(test_template__writes_gemma),
        cmocka_unit_test(test_template__writes_granite),
        cmocka_unit_test(test_template__writes_smollm3),
        cmocka_unit_test(test_template__writes_seed_oss),
        cmocka_unit_test(test_template__writes_phi4),
        cmocka_unit_test(test_template__lets_a_model_think_or_not),
        cmocka_unit_test(test_template__falls_back_or_refuses),
        cmocka_unit_test(test_template__chooses_the_form_of_calls),
        cmocka_unit_test(test_template__fits_the_default_model),
        cmocka_unit_test(test_template__fits_the_small_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
