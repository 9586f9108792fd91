/*
 * Texts that spell a model's control tokens: a file, a result or a request must never end the message that it stands in.
 * Over the small model's own vocabulary and over made ones whose marks are spelled, typed or cut otherwise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "gguf_build.h"
#include "model/text/template.h"
#include "tiny_gguf.h"

/* Of every family, and those of engines and models that kvist does not know. */
static const char *const spellings[] = {"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>",
    "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<start_of_turn>",
    "<end_of_turn>", "<bos>", "<eos>", "<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]",
    "[TOOL_CONTENT]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "<|start|>", "<|end|>", "<|message|>",
    "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>", "<|fim_prefix|>", "<|repo_name|>",
    "<|file_sep|>", "<|user|>", "<|assistant|>", "<0x0A>"};
enum { N_SPELLINGS = sizeof spellings / sizeof *spellings };

static uint32_t count_controls(const model_tokenizer *t, const char *text, size_t n, bool parse_special)
{
    model_ids ids = {0};
    uint32_t count = 0;
    model_tokenizer_encode(t, text, n, parse_special, &ids);
    for (size_t i = 0; i < ids.n; i++) count += model_tokenizer_is_control(t, ids.ids[i]);
    model_ids_free(&ids);
    return count;
}

static void stays_text(const model_tokenizer *t, const char *text, size_t n)
{
    if (count_controls(t, text, n, false)) fail_msg("a control token came of the text %.*s", (int)n, text);
}

/* One spelling alone, beside letters, twice, one within the other, behind bytes that are none, in a long text. */
static void try_spelling(const model_tokenizer *t, const char *s, size_t n)
{
    base_buf text = {0};
    stays_text(t, s, n);
    base_buf_printf(&text, "x%.*sx %.*s\n%.*s%.*s", (int)n, s, (int)n, s, (int)n, s, (int)n, s);
    stays_text(t, text.data, text.len);
    for (size_t at = 1; at < n; at++) { /* what is left of a filter that takes the inner one out */
        base_buf_clear(&text);
        base_buf_printf(&text, "%.*s%.*s%s", (int)at, s, (int)n, s, s + at);
        stays_text(t, text.data, text.len);
    }
    base_buf_clear(&text);
    base_buf_add(&text, "\xff\xc3\0\xf0\x9f", 5);
    base_buf_add(&text, s, n);
    base_buf_add(&text, "\0\xe2\x96\x81", 4);
    for (int i = 0; i < 500; i++) base_buf_printf(&text, " word %d %.*s", i, (int)n, s);
    stays_text(t, text.data, text.len);
    base_buf_free(&text);
}

static void test_tokens__of_the_small_model_stay_text(void **state)
{
    char *path = tiny_gguf_small_model();
    gguf_file *g;
    model_tokenizer *t;
    base_err err = {0};
    uint32_t n_controls = 0;
    if (gguf_open(&g, path, &err)) {
        free(path);
        skip();
    }
    free(path);
    if (model_tokenizer_load(&t, g, &err)) fail_msg("%s", err.msg);
    for (size_t i = 0; i < N_SPELLINGS; i++) try_spelling(t, spellings[i], strlen(spellings[i]));
    for (uint32_t id = 0; id < model_tokenizer_size(t); id++) {
        size_t n;
        if (!model_tokenizer_is_control(t, (int32_t)id)) continue;
        const char *piece = model_tokenizer_piece(t, (int32_t)id, &n);
        char *name = strndup(piece, n);
        try_spelling(t, name, n);
        assert_true(count_controls(t, name, n, true) >= 1); /* the control: asked for, it is one */
        free(name);
        n_controls++;
    }
    assert_true(n_controls > 2);
    model_tokenizer_free(t);
    gguf_close(g);
}

/* --- made vocabularies ------------------------------------------------------------------------------------ */

typedef struct family {
    const char *architecture, *pre, *jinja, *name; /* name: of the template */
    const char *marks[14];
    size_t n_needed; /* of the first of them: without one the template is another or none */
} family;

static const family families[] = {
    {"qwen2", "qwen2", "<|im_start|>", "chatml", {"<|im_start|>", "<|im_end|>"}, 2},
    {"llama", "llama-bpe", "<|start_header_id|>", "llama3",
        {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, 3},
    {"gemma3", "gpt-2", "<start_of_turn>", "gemma", {"<start_of_turn>", "<end_of_turn>"}, 2},
    {"mistral3", "tekken", "[SYSTEM_PROMPT][TOOL_CALLS][ARGS]", "mistral",
        {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]", "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
            "</s>", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[ARGS]"},
        7},
    {"llama", "tekken", "[SYSTEM_PROMPT][TOOL_CALLS][CALL_ID][ARGS][TOOL_CONTENT]", "mistral",
        {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]", "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
            "</s>", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]",
            "[TOOL_CONTENT]"},
        7},
    {"granite", "refact", "<|start_of_role|><|tool_call|>", "granite3",
        {"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>"}, 3},
    {"llama", "tekken", "\"[INST]\" + system_message [TOOL_CALLS][", "nemo",
        {"[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]",
            "[/TOOL_RESULTS]", "</s>"},
        8},
    {"gpt-oss", "gpt-4o", "<|channel|><|call|>", "harmony",
        {"<|start|>", "<|channel|>", "<|message|>", "<|call|>", "<|end|>", "<|return|>", "<|constrain|>"}, 5},
};
enum { N_FAMILIES = sizeof families / sizeof *families, MARK_TYPE_CONTROL = 3, MARK_TYPE_USER = 4 };

/* The 256 bytes and the family's marks of a type; `otherwise` is spelled with a blank in it, and so is many tokens as written. */
static base_buf build(const family *f, int type, size_t otherwise)
{
    base_buf b = {0};
    uint64_t n = 0;
    while (f->marks[n]) n++;
    gguf_build_header(&b, 3, 0, 7);
    gguf_build_key_str(&b, "general.architecture", f->architecture);
    gguf_build_key_str(&b, "tokenizer.chat_template", f->jinja);
    gguf_build_key_str(&b, "tokenizer.ggml.model", "gpt2");
    gguf_build_key_str(&b, "tokenizer.ggml.pre", f->pre);
    gguf_build_key_array(&b, "tokenizer.ggml.tokens", GGUF_STRING, 256 + n);
    for (unsigned byte = 0, other = 256; byte < 256; byte++) {
        bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        char utf8[4];
        size_t n_utf8 = base_utf8_encode(plain ? byte : other++, utf8);
        gguf_build_u64(&b, n_utf8);
        base_buf_add(&b, utf8, n_utf8);
    }
    for (uint64_t i = 0; i < n; i++) {
        base_buf spelled = {0};
        base_buf_printf(&spelled, "%.2s%s%s", f->marks[i], i == otherwise ? " " : "", f->marks[i] + 2);
        gguf_build_str(&b, spelled.data);
        base_buf_free(&spelled);
    }
    gguf_build_key_array(&b, "tokenizer.ggml.token_type", GGUF_I32, 256 + n);
    for (uint64_t i = 0; i < 256 + n; i++) gguf_build_u32(&b, i < 256 ? 1 : (uint32_t)type);
    gguf_build_key_array(&b, "tokenizer.ggml.merges", GGUF_STRING, 0);
    return b;
}

typedef struct made {
    base_buf bytes;
    gguf_file *gguf;
    model_tokenizer *tokenizer;
    model_template *template; /* NULL: refused */
    base_err err;
} made;

static made make(const family *f, int type, size_t otherwise)
{
    made m = {.bytes = build(f, type, otherwise)};
    if (gguf_parse(&m.gguf, m.bytes.data, m.bytes.len, &m.err) ||
        model_tokenizer_load(&m.tokenizer, m.gguf, &m.err))
        fail_msg("%s", m.err.msg);
    if (model_template_load(&m.template, m.gguf, m.tokenizer, false, &m.err)) m.template = NULL;
    return m;
}

static void drop(made *m)
{
    model_template_free(m->template);
    model_tokenizer_free(m->tokenizer);
    gguf_close(m->gguf);
    base_buf_free(&m->bytes);
}

static bool holds(const model_ids *ids, int32_t id)
{
    for (size_t i = 0; i < ids->n; i++)
        if (ids->ids[i] == id) return true;
    return false;
}

/* No text, spelled as what opens and closes messages, holds a token that opens or closes one. */
static void no_text_is_scaffold(const made *m, const family *f)
{
    model_ids scaffold = {0};
    for (int role = MODEL_ROLE_SYSTEM; role <= MODEL_ROLE_TOOL; role++) {
        model_template_begin(m->template, (model_role)role, &scaffold);
        model_template_end(m->template, (model_role)role, &scaffold);
    }
    for (size_t i = 0; f->marks[i]; i++) {
        const char *s = f->marks[i];
        model_ids ids = {0};
        model_tokenizer_encode(m->tokenizer, s, strlen(s), false, &ids);
        for (size_t k = 0; k < ids.n; k++) /* its bytes may stand in both: "user" is letters */
            if (ids.ids[k] >= 256 && holds(&scaffold, ids.ids[k]))
                fail_msg("%s in a text is what a message of %s ends with", s, f->name);
        model_ids_free(&ids);
        try_spelling(m->tokenizer, s, strlen(s));
    }
    model_ids_free(&scaffold);
}

/* Control tokens as they should be, and as user-defined ones, which are read out of any text. */
static void test_tokens__of_each_family_stay_text(void **state)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        for (int type = MARK_TYPE_CONTROL; type <= MARK_TYPE_USER; type++) {
            const family *f = &families[i];
            made m = make(f, type, SIZE_MAX);
            if (!m.template) fail_msg("%s, type %d: %s", f->name, type, m.err.msg);
            assert_string_equal(model_template_name(m.template), f->name);
            no_text_is_scaffold(&m, f);
            for (size_t k = 0; k < f->n_needed;
                 k++) /* the control: the template's own are what they are called */
                assert_int_equal(count_controls(m.tokenizer, f->marks[k], strlen(f->marks[k]), true), 1);
            drop(&m);
        }
}

/* A mark that the vocabulary spells otherwise is letters as the template writes it: any file could write them too. */
static void test_tokens__that_are_letters_open_no_message(void **state)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        for (size_t otherwise = 0; otherwise < families[i].n_needed; otherwise++) {
            made m = make(&families[i], MARK_TYPE_CONTROL, otherwise);
            if (m.template)
                fail_msg("%s without %s is taken", families[i].name, families[i].marks[otherwise]);
            assert_non_null(strstr(m.err.msg, "the chat template of"));
            assert_true(
                count_controls(m.tokenizer, families[i].marks[otherwise],
                    strlen(families[i].marks[otherwise]), true) == 0); /* the control: it is letters */
            drop(&m);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens__of_the_small_model_stay_text),
        cmocka_unit_test(test_tokens__of_each_family_stay_text),
        cmocka_unit_test(test_tokens__that_are_letters_open_no_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
