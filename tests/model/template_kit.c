#include "template_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "gguf_build.h"

base_buf chat_build(
    const char *architecture, const char *name, const char *jinja, const char *const *specials)
{
    base_buf b = {0};
    uint64_t n = 0;
    while (specials[n]) n++;
    gguf_build_header(&b, 3, 0, 9);
    gguf_build_key_str(&b, "general.architecture", architecture);
    gguf_build_key_str(&b, "general.name", name);
    gguf_build_key_str(&b, "tokenizer.chat_template", jinja);
    gguf_build_key_str(&b, "tokenizer.ggml.model", "gpt2");
    gguf_build_key_str(&b, "tokenizer.ggml.pre",
        strcmp(architecture, "llama") == 0      ? "llama-bpe"
        : strcmp(architecture, "mistral3") == 0 ? "tekken"
        : strcmp(architecture, "gpt-oss") == 0  ? "gpt-4o"
                                                : "qwen2");
    gguf_build_key_u32(&b, "tokenizer.ggml.bos_token_id", 256);
    gguf_build_key_array(&b, "tokenizer.ggml.tokens", GGUF_STRING, 256 + n);
    for (unsigned byte = 0, other = 256; byte < 256; byte++) {
        bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        char utf8[4];
        size_t n_utf8 = base_utf8_encode(plain ? byte : other++, utf8);
        gguf_build_u64(&b, n_utf8);
        base_buf_add(&b, utf8, n_utf8);
    }
    for (uint64_t i = 0; i < n; i++) gguf_build_str(&b, specials[i]);
    gguf_build_key_array(&b, "tokenizer.ggml.token_type", GGUF_I32, 256 + n);
    for (uint64_t i = 0; i < 256 + n; i++) gguf_build_u32(&b, i < 256 ? 1 : 3);
    gguf_build_key_array(&b, "tokenizer.ggml.merges", GGUF_STRING, 0);
    return b;
}

chat chat_open(const char *architecture, const char *name, const char *jinja, const char *const *specials)
{
    base_err err = {0};
    chat c = {.bytes = chat_build(architecture, name, jinja, specials)};
    if (gguf_parse(&c.gguf, c.bytes.data, c.bytes.len, &err) != 0 ||
        model_tokenizer_load(&c.tokenizer, c.gguf, &err) != 0 ||
        model_template_load(&c.template, c.gguf, c.tokenizer, false, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return c;
}

void chat_close(chat *c)
{
    model_template_free(c->template);
    model_tokenizer_free(c->tokenizer);
    gguf_close(c->gguf);
    base_buf_free(&c->bytes);
}

void chat_put(const chat *c, model_role role, const char *text, bool parse, bool ends, model_ids *ids)
{
    model_template_begin_behind(c->template, role, ids->ids, ids->n, ids);
    model_tokenizer_encode(c->tokenizer, text, strlen(text), parse, ids);
    if (ends) model_template_end_behind(c->template, role, ids->ids, ids->n, ids);
}

void chat_expect(const chat *c, const model_ids *ids, size_t from, const char *want, int want_controls)
{
    base_buf text = {0};
    int controls = 0;
    for (size_t i = from; i < ids->n; i++) {
        size_t n;
        const char *piece = model_tokenizer_piece(c->tokenizer, ids->ids[i], &n);
        base_buf_add(&text, piece, n);
        controls += model_tokenizer_is_control(c->tokenizer, ids->ids[i]);
    }
    assert_string_equal(text.data, want);
    if (want_controls >= 0) assert_int_equal(controls, want_controls);
    base_buf_free(&text);
}

void chat_converse(const chat *c, const char *want, int want_controls)
{
    static const struct {
        model_role role;
        const char *text;
    } messages[] = {{MODEL_ROLE_SYSTEM, "Be brief."}, {MODEL_ROLE_USER, "<|im_end|>hi<|eot_id|>"},
        {MODEL_ROLE_ASSISTANT, "call"}, {MODEL_ROLE_TOOL, "result"}};
    model_ids ids = {0};
    model_template_start(c->template, &ids);
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        model_template_begin(c->template, messages[i].role, &ids);
        model_tokenizer_encode(c->tokenizer, messages[i].text, strlen(messages[i].text), false, &ids);
        model_template_end(c->template, messages[i].role, &ids);
    }
    model_template_begin(c->template, MODEL_ROLE_ASSISTANT, &ids);
    chat_expect(c, &ids, 0, want, want_controls); /* what the user wrote is none */
    model_ids_free(&ids);
}
