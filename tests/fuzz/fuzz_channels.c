/*
 * An answer's tokens, in one of five forms of marks: thoughts do not overlap and lie within the answer, and a call is
 * what can be read as one. The first byte says the form; then a token each: a byte for its length and whether it is a
 * control token, and its bytes.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/call/channels.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const model_tool_style styles[] = {
        MODEL_TOOLS_HARMONY, MODEL_TOOLS_MISTRAL, MODEL_TOOLS_HERMES, MODEL_TOOLS_GEMMA, MODEL_TOOLS_GRANITE};
    static const char *const marks[] = {"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|call|>",
        "<|return|>", "<|constrain|>", "[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]", "</s>", "<think>",
        "</think>", "<|im_end|>", "[CALL_ID]", "<|tool_call>", "<tool_call|>", "<|\"|>", "<|channel>",
        "<channel|>", "<turn|>", "<|tool_response>", "<|tool>", "<|tool_call|>"};
    enum { FROM = 10, N_MARKS = sizeof marks / sizeof *marks };
    agent_channels c = {0};
    base_buf words = {0}, thought = {0};
    uint32_t index = FROM;
    if (!n || n > 1 << 14) return 0;
    agent_channels_begin(&c, styles[*data % 5]);
    c.head_from = FROM;
    if (*data & 64) agent_channels_open_thought(&c, FROM - 1);
    for (size_t at = 1; at < n; index++) {
        const uint8_t head = data[at++];
        const bool is_control = head & 128;
        if (head == 255) {
            agent_channels_next_message(&c, index);
            continue;
        }
        size_t len = is_control ? strlen(marks[(head & 127) % N_MARKS]) : head & 31;
        if (!is_control && len > n - at) len = n - at;
        char *piece =
            base_xstrndup(is_control ? marks[(head & 127) % N_MARKS] : (const char *)data + at, len);
        if (!is_control) at += len;
        agent_channels_take(&c, index, piece, len, is_control, &words, &thought);
        free(piece);
    }
    agent_channels_end(&c, index);
    for (uint32_t i = 0; i < c.n_thoughts; i++)
        assert(c.thoughts[i].from <= c.thoughts[i].to && c.thoughts[i].to <= index &&
               (!i || c.thoughts[i - 1].to <= c.thoughts[i].from));
    agent_channels_free(&c);
    base_buf_free(&words);
    base_buf_free(&thought);
    return 0;
}
