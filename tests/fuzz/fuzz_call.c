/*
 * What a model writes: any bytes are safe in the call parser and the JSON repair, whole and cut short; and read as
 * tokens of harmony, of Mistral, of Gemma, of Granite and of Qwen3 (bytes from 1 on are their marks).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/call/call.h"
#include "agent/call/channels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int known(const void *user, const char *name)
{
    return strcmp(name, "rewrite") == 0                              ? 1
           : strcmp(name, "read") == 0 || strcmp(name, "shell") == 0 ? 0
                                                                     : -1;
}

static void read_channels(model_tool_style style, const char *text, size_t n)
{
    static const char *const all[][7] = {{"<think>", "</think>", "\n", " ", "<|im_end|>", "x", "<tools>"},
        {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|call|>", "<|end|>", "<|return|>"},
        {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]", "</s>", "[INST]"},
        {"<|tool_call>", "<tool_call|>", "<|\"|>", "<|channel>", "<channel|>", "<turn|>", "<|tool_response>"},
        {"<|tool_call|>", "<|end_of_text|>", "[TOOL_CALLS]", "</s>", "<|start_of_role|>", "\n", "<think>"}};
    const char *const *marks = all[style == MODEL_TOOLS_HARMONY   ? 1
                                   : style == MODEL_TOOLS_MISTRAL ? 2
                                   : style == MODEL_TOOLS_GEMMA   ? 3
                                   : style == MODEL_TOOLS_GRANITE ? 4
                                                                  : 0];
    agent_channels c = {.head_from = 0};
    base_buf words = {0}, thought = {0};
    agent_channels_begin(&c, style);
    for (size_t i = 0; i < n; i++) {
        const unsigned mark = (unsigned char)text[i] - 1u;
        const bool is_mark = mark < sizeof *all / sizeof **all;
        agent_channels_take(&c, (uint32_t)i, is_mark ? marks[mark] : text + i,
            is_mark ? strlen(marks[mark]) : 1, is_mark, &words, &thought);
    }
    agent_channels_end(&c, (uint32_t)n);
    for (uint32_t i = 0; i < c.n_thoughts; i++)
        if (c.thoughts[i].from >= c.thoughts[i].to || c.thoughts[i].to > n ||
            (i && c.thoughts[i].from < c.thoughts[i - 1].to))
            abort();
    agent_channels_free(&c);
    base_buf_free(&words);
    base_buf_free(&thought);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *text = (const char *)data;
    for (int final = 0; final < 2; final++)
        for (size_t len = n; len > 0; len = len > 64 ? len / 2 : 0) {
            agent_call c = {0};
            agent_call_found found = agent_call_parse(text, len, final, known, NULL, &c);
            if (final && found == AGENT_CALL_PARTIAL) abort();
            if (found != AGENT_CALL_FOUND) continue;
            if (!c.name || !c.arguments || c.from > c.to || c.to > len) abort();
            agent_call_free(&c);
        }
    read_channels(MODEL_TOOLS_HARMONY, text, n);
    read_channels(MODEL_TOOLS_MISTRAL, text, n);
    read_channels(MODEL_TOOLS_GEMMA, text, n);
    read_channels(MODEL_TOOLS_GRANITE, text, n);
    read_channels(MODEL_TOOLS_HERMES, text, n);
    base_buf strict = {0};
    bool complete;
    if (base_json_repair(text, n, &strict, &complete)) {
        base_json_doc *doc = NULL;
        if (base_json_parse(strict.data, strict.len, &doc, NULL)) abort();
        base_json_free(doc);
    }
    base_buf_free(&strict);
    return 0;
}
