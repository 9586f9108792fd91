/* Contract: grammar_kit.h. */
#include "grammar_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gguf_build.h"

static const char *const modes[] = {"read", "read-write", "a \"b\"", NULL};
const char *const grammar_paths[] = {
    "src/model/gguf.c", "README.md", "src/a.c", "src/a.cpp", "src/a.c", "d\xc3\xa9j\xc3\xa0.md", NULL};

static const model_grammar_argument send_arguments[] = {
    {"to", MODEL_ARGUMENT_STRING, true, NULL},
    {"body", MODEL_ARGUMENT_STRING, false, NULL},
};
static const model_grammar_argument send_message_arguments[] = {
    {"message", MODEL_ARGUMENT_STRING, true, NULL},
};
static const model_grammar_argument read_arguments[] = {
    {"path", MODEL_ARGUMENT_PATH, true, NULL},
    {"line", MODEL_ARGUMENT_INTEGER, false, NULL},
    {"lines", MODEL_ARGUMENT_INTEGER, false, NULL},
};
static const model_grammar_argument set_arguments[] = {
    {"quiet", MODEL_ARGUMENT_BOOLEAN, false, NULL},
    {"mode", MODEL_ARGUMENT_CHOICE, true, modes},
    {"count", MODEL_ARGUMENT_INTEGER, true, NULL},
};
const model_grammar_tool grammar_tools[GRAMMAR_N_TOOLS] = {
    {"set", set_arguments, 3},
    {"send", send_arguments, 2},
    {"now", NULL, 0},
    {"send_message", send_message_arguments, 1},
    {"read", read_arguments, 3},
};

vocabulary load_bytes(base_buf bytes)
{
    base_err err = {0};
    vocabulary v = {.bytes = bytes};
    if (gguf_parse(&v.gguf, v.bytes.data, v.bytes.len, &err) != 0 ||
        model_tokenizer_load(&v.tokenizer, v.gguf, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return v;
}

vocabulary load_tiny(void)
{
    base_buf b = {0};
    tiny_gguf_write(&TINY_GGUF_QWEN2, &b);
    return load_bytes(b);
}

vocabulary load_pieces(const char *const *pieces)
{
    base_buf b = {0};
    uint64_t n = 0;
    while (pieces[n]) n++;
    gguf_build_header(&b, 3, 0, 4);
    gguf_build_key_str(&b, "tokenizer.ggml.model", "gpt2");
    gguf_build_key_array(&b, "tokenizer.ggml.tokens", GGUF_STRING, n);
    for (uint64_t i = 0; i < n; i++) gguf_build_str(&b, pieces[i]);
    gguf_build_key_array(&b, "tokenizer.ggml.token_type", GGUF_I32, n);
    for (uint64_t i = 0; i < n; i++) gguf_build_u32(&b, i + 1 < n ? 1 : 3);
    gguf_build_key_array(&b, "tokenizer.ggml.merges", GGUF_STRING, 0);
    return load_bytes(b);
}

void unload(vocabulary *v)
{
    model_tokenizer_free(v->tokenizer);
    gguf_close(v->gguf);
    base_buf_free(&v->bytes);
}

model_grammar *make(const vocabulary *v, model_tool_style style)
{
    model_grammar *g = NULL;
    base_err err = {0};
    if (model_grammar_new(&g, v->tokenizer, style, grammar_tools, GRAMMAR_N_TOOLS, grammar_paths, &err) != 0)
        fail_msg("%s", err.msg);
    return g;
}
