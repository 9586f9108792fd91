/*
 * A table of tools and a text, both from the input: lines "NAME ARGUMENT:KIND ..." up to an empty one, then bytes that are
 * offered one by one. What accepts says of a byte must be what the mask says, and nothing may stop the machine.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/file/gguf.h"
#include "model/text/grammar.h"
#include "tiny_gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum { MAX_TOOLS = 8, MAX_ARGUMENTS = 8 };

/* Of marked forms the bytes from 1 on are marks, which are control tokens. */
static const model_tokenizer *vocabulary(model_tool_style style, int32_t of_byte[256])
{
    static struct {
        base_buf file;
        gguf_file *g;
        model_tokenizer *t;
        int32_t ids[256];
    } kinds[6];
    enum { PLAIN, HARMONY, MISTRAL, GEMMA, GRANITE, NEMO, MOST_MARKS = 7 };
    static const char *const marks[][MOST_MARKS] = {[HARMONY] = {"<|start|>", "<|channel|>", "<|constrain|>",
                                                        "<|message|>", "<|call|>", "<|end|>", "<|return|>"},
        [MISTRAL] = {"[TOOL_CALLS]", "[ARGS]", "</s>", "[CALL_ID]"},
        [GEMMA] = {"<|tool_call>", "<|\"|>", "<tool_call|>", "<turn|>"},
        [GRANITE] = {"<|tool_call|>", "<|end_of_text|>"},
        [NEMO] = {"[TOOL_CALLS]", "</s>"}};
    const int kind = style == MODEL_TOOLS_HARMONY     ? HARMONY
                     : style == MODEL_TOOLS_GEMMA     ? GEMMA
                     : style == MODEL_TOOLS_GRANITE   ? GRANITE
                     : style == MODEL_TOOLS_NEMO      ? NEMO
                     : model_tools_are_mistral(style) ? MISTRAL
                                                      : PLAIN;
    model_tokenizer *t = kinds[kind].t;
    int32_t *ids = kinds[kind].ids;
    if (!t) {
        base_buf *file = &kinds[kind].file;
        tiny_gguf spec = kind == HARMONY ? TINY_GGUF_GPT_OSS : TINY_GGUF_QWEN2;
        spec.mistral_marks = kind == MISTRAL || kind == NEMO;
        spec.granite_marks = kind == GRANITE;
        spec.gemma_marks = kind == GEMMA;
        tiny_gguf_write(&spec, file);
        if (gguf_parse(&kinds[kind].g, file->data, file->len, NULL) != 0 ||
            model_tokenizer_load(&kinds[kind].t, kinds[kind].g, NULL) != 0)
            abort();
        t = kinds[kind].t;
        for (int32_t id = (int32_t)model_tokenizer_size(t) - 1; id >= 0; id--) {
            size_t n;
            const char *piece = model_tokenizer_piece(t, id, &n);
            if (n == 1) ids[(unsigned char)piece[0]] = id;
        }
        for (size_t i = 0; i < MOST_MARKS && marks[kind][i]; i++)
            ids[i + 1] = model_tokenizer_find(t, marks[kind][i]);
    }
    memcpy(of_byte, ids, sizeof kinds[kind].ids);
    return t;
}

/* One line of the table, cut up in place. */
static void parse_tool(char *line, model_grammar_tool *tool, model_grammar_argument *arguments)
{
    static const char *const choices[] = {"a", "ab", "\"", "b\\", NULL};
    char *rest = NULL;
    tool->name = strtok_r(line, " ", &rest);
    if (!tool->name) tool->name = "";
    tool->arguments = arguments;
    for (char *word; tool->n_arguments < MAX_ARGUMENTS && (word = strtok_r(NULL, " ", &rest));) {
        char *colon = strchr(word, ':');
        char kind = colon ? colon[1] : 's';
        if (colon) *colon = 0;
        static const char kinds[] = "sibcp";
        const char *at = kind ? strchr(kinds, kind | 0x20) : NULL;
        arguments[tool->n_arguments++] = (model_grammar_argument){.name = word,
            .type = at ? (model_argument_type)(at - kinds) : MODEL_ARGUMENT_STRING,
            .required = kind >= 'A' && kind <= 'Z',
            .choices = choices};
    }
}

static void offer(
    model_grammar *g, const model_tokenizer *t, const int32_t of_byte[256], const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t id = of_byte[bytes[i]];
        bool accepts = model_grammar_accepts(g, id), was_active = model_grammar_is_active(g);
        const uint64_t *mask = model_grammar_mask(g);
        if (mask && (mask[id / 64] >> (id % 64) & 1) != accepts) abort();
        if (was_active && !mask) abort(); /* with all bytes at hand there is always a way on */
        model_grammar_advance(g, id);
        if (was_active && !accepts && model_grammar_is_active(g)) abort();
    }
    (void)t;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const paths[] = {"a", "a/b", "a\"b", "\xc3\xa9", NULL};
    int32_t of_byte[256];
    model_grammar_tool tools[MAX_TOOLS] = {{0}};
    model_grammar_argument arguments[MAX_TOOLS][MAX_ARGUMENTS];
    uint32_t n_tools = 0;
    char *text = base_xstrndup((const char *)bytes, n);
    size_t at = 0;
    while (at < n && text[at] && text[at] != '\n' && n_tools < MAX_TOOLS) {
        size_t end = at;
        while (end < n && text[end] && text[end] != '\n') end++;
        bool last = end >= n || !text[end];
        text[end] = 0;
        parse_tool(text + at, &tools[n_tools], arguments[n_tools]);
        n_tools++;
        at = last ? n : end + 1;
    }
    for (int style = MODEL_TOOLS_TAG_TOOLS; style <= MODEL_TOOLS_JSON && at < n; style++) {
        model_grammar *g;
        base_err err = {0};
        const model_tokenizer *t = vocabulary((model_tool_style)style, of_byte);
        if (model_grammar_new(&g, t, (model_tool_style)style, tools, n_tools, n % 2 ? paths : NULL, &err) !=
            0) {
            if (!err.msg[0]) abort();
            break;
        }
        offer(g, t, of_byte, bytes + at, n - at);
        model_grammar_free(g);
    }
    free(text);
    return 0;
}
