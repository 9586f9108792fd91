/* See channels.h. */
#include "agent/call/channels.h"

#include <stdlib.h>
#include <string.h>

#include "agent/call/call_gemma.h"
#include "base/mem.h"

enum { MAX_HEAD = 512 };

static const char role[] = "assistant", recipient[] = "to=", functions[] = "functions.";

static bool is(const char *piece, size_t n, const char *mark)
{
    return n == strlen(mark) && !memcmp(piece, mark, n);
}

static void end_thought(agent_channels *c, uint32_t to)
{
    if (c->is_thought && c->head_from < to) {
        base_grow(&c->thoughts, &c->cap_thoughts, c->n_thoughts + 1, sizeof *c->thoughts);
        c->thoughts[c->n_thoughts++] = (agent_thought){c->head_from, to};
    }
    c->is_thought = false;
}

static void begin_line(base_buf *words)
{
    if (words->len && words->data[words->len - 1] != '\n') base_buf_putc(words, '\n');
}

/* {"name": "NAME", "arguments": of a head that names somebody; false: it names nobody. */
static bool begin_call(agent_channels *c, base_buf *words)
{
    const char *to = c->head.len ? strstr(c->head.data, recipient) : NULL;
    if (!to) return false;
    to += strlen(recipient);
    if (!strncmp(to, functions, strlen(functions))) to += strlen(functions);
    const size_t n = strspn(to, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    begin_line(words);
    base_buf_printf(words, "{\"name\": \"%.*s\", \"arguments\": ", (int)n, to);
    c->is_empty = true;
    c->n_calls++;
    return true;
}

static void begin_text(agent_channels *c, base_buf *words)
{
    const char *head = c->head.data ? c->head.data : "";
    if (begin_call(c, words)) {
        c->at = AGENT_IN_CALL;
        return;
    }
    c->is_thought = strstr(head, "analysis") != NULL;
    c->at = c->is_thought ? AGENT_IN_THOUGHT : AGENT_IN_WORDS;
    if (!c->is_thought) begin_line(words);
}

static void end_text(agent_channels *c, base_buf *words)
{
    if (c->at == AGENT_IN_CALL) base_buf_puts(words, c->is_empty ? "{}}" : "}");
    c->at = AGENT_IN_HEAD;
    base_buf_clear(&c->head);
}

static void take_mark(agent_channels *c, uint32_t index, const char *piece, size_t n, base_buf *words)
{
    if (is(piece, n, "<|message|>")) {
        if (c->at == AGENT_IN_HEAD) begin_text(c, words);
    } else if (is(piece, n, "<|channel|>") || is(piece, n, "<|start|>")) {
        if (c->at != AGENT_IN_HEAD) { /* it forgot to end the message before */
            end_text(c, words);
            end_thought(c, index);
            c->head_from = index;
        }
        base_buf_putc(&c->head, ' ');
    } else if (is(piece, n, "<|constrain|>")) {
        base_buf_putc(&c->head, ' ');
    } else if (c->at != AGENT_IN_HEAD) { /* <|end|>, <|call|>, <|return|>, or any other end */
        end_text(c, words);
    }
}

/* What names nobody leaves what follows words. */
static void begin_named_call(agent_channels *c, const char *name, base_buf *words)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    name += strspn(name, " \n");
    const size_t n = strspn(name, letters);
    c->at = n ? AGENT_IN_CALL : AGENT_IN_WORDS;
    if (!n) return;
    begin_line(words);
    base_buf_printf(words, "{\"name\": \"%.*s\", \"arguments\": ", (int)n, name);
    c->is_empty = true;
    c->n_calls++;
}

static void end_named_call(agent_channels *c, base_buf *words)
{
    if (c->at == AGENT_IN_CALL) base_buf_puts(words, c->is_empty ? "{}}" : "}");
    base_buf_clear(&c->head);
    c->at = AGENT_IN_WORDS;
}

static void take_mistral(agent_channels *c, const char *piece, size_t n, base_buf *words)
{
    if (is(piece, n, "[ARGS]") && c->at == AGENT_IN_HEAD) {
        begin_named_call(c, c->head.data ? c->head.data : "", words);
    } else if (is(piece, n, "[CALL_ID]") && c->at == AGENT_IN_HEAD) {
        base_buf_putc(&c->head, ' '); /* the id is no part of the name */
    } else {
        end_named_call(c, words);
        if (is(piece, n, "[TOOL_CALLS]")) c->at = AGENT_IN_HEAD;
        if (is(piece, n, "[THINK]")) c->at = AGENT_IN_THOUGHT;
    }
}

/* ---- Gemma 4 ---- */

static void end_gemma_call(agent_channels *c, base_buf *words)
{
    if (c->at == AGENT_IN_CALL) {
        if (c->in_text) base_buf_putc(words, '"');
        agent_call_gemma_end_word(&c->head, words);
        base_buf_putc(words, '}');
    }
    base_buf_clear(&c->head);
    c->in_text = false;
    c->at = AGENT_IN_WORDS;
}

static void take_gemma_mark(agent_channels *c, uint32_t index, const char *piece, size_t n, base_buf *words)
{
    if (is(piece, n, "<|\"|>") && c->at == AGENT_IN_CALL) {
        agent_call_gemma_end_word(&c->head, words);
        base_buf_putc(words, '"');
        c->in_text = !c->in_text;
        return;
    }
    end_gemma_call(c, words);
    end_thought(c, is(piece, n, "<channel|>") ? index + 1 : index);
    if (is(piece, n, "<|tool_call>")) c->at = AGENT_IN_HEAD;
    if (is(piece, n, "<|channel>")) {
        agent_channels_open_thought(c, index);
        c->is_empty = true;
    }
}

/* "call:NAME", and from { on the arguments. */
static void take_gemma_head(agent_channels *c, const char *piece, size_t n, base_buf *words)
{
    const char *brace = memchr(piece, '{', n);
    const size_t len = brace ? (size_t)(brace - piece) : n;
    if (c->head.len + len <= MAX_HEAD) base_buf_add(&c->head, piece, len);
    if (!brace) return;
    const char *name = c->head.len ? strrchr(c->head.data, ':') : NULL;
    begin_named_call(c, name ? name + 1 : c->head.len ? c->head.data : "", words);
    base_buf_clear(&c->head);
    if (c->at == AGENT_IN_CALL) agent_call_gemma_read(brace, n - len, false, &c->head, words);
}

static void take_gemma(agent_channels *c, const char *piece, size_t n, base_buf *words, base_buf *thought)
{
    if (c->at == AGENT_IN_HEAD) {
        take_gemma_head(c, piece, n, words);
    } else if (c->at == AGENT_IN_CALL) {
        agent_call_gemma_read(piece, n, c->in_text, &c->head, words);
    } else if (c->at == AGENT_IN_WORDS) {
        base_buf_add(words, piece, n);
    } else if (!c->is_empty) {
        base_buf_add(thought, piece, n);
    } else { /* its first line is the channel's name */
        const char *newline = memchr(piece, '\n', n);
        if (newline) base_buf_add(thought, newline + 1, n - (size_t)(newline + 1 - piece));
        c->is_empty = !newline;
    }
}

/* ---- a JSON list of calls: Granite 3, Mistral Nemo ---- */

static void end_object(agent_channels *c, base_buf *words)
{
    if (c->owes_brace) base_buf_putc(words, '}');
    c->owes_brace = false;
}

static void take_list_mark(agent_channels *c, const char *piece, size_t n, base_buf *words)
{
    if (c->at == AGENT_IN_HEAD) c->n_calls++; /* a mark, and no object behind it */
    end_object(c, words);
    c->depth = 0;
    c->in_text = c->is_escaped = false;
    c->at = is(piece, n, "<|tool_call|>") || is(piece, n, "[TOOL_CALLS]") ? AGENT_IN_HEAD : AGENT_IN_WORDS;
}

/* One byte of a list: its objects are told, each on a line of its own, and what stands between them is not. */
static void take_list_byte(agent_channels *c, char byte, base_buf *words)
{
    if (!c->depth) {
        if (byte != '{') return;
        end_object(c, words);
        begin_line(words);
        c->at = AGENT_IN_CALL;
        c->n_calls++;
    }
    if (c->in_text) {
        c->in_text = byte != '"' || c->is_escaped;
        c->is_escaped = byte == '\\' && !c->is_escaped;
    } else {
        c->in_text = byte == '"';
        c->depth += (byte == '{') - (byte == '}');
    }
    c->owes_brace = !c->depth;
    if (c->depth) base_buf_putc(words, byte);
}

static void take_list(agent_channels *c, const char *piece, size_t n, base_buf *words)
{
    if (c->at == AGENT_IN_WORDS) {
        base_buf_add(words, piece, n);
        return;
    }
    for (size_t i = 0; i < n; i++) take_list_byte(c, piece[i], words);
}

void agent_channels_begin(agent_channels *c, model_tool_style style)
{
    c->form = style == MODEL_TOOLS_HARMONY     ? AGENT_OF_HARMONY
              : style == MODEL_TOOLS_GEMMA     ? AGENT_OF_GEMMA
              : model_tools_are_mistral(style) ? AGENT_OF_MISTRAL
              : model_tools_are_lists(style)   ? AGENT_OF_LISTS
                                               : AGENT_OF_WORDS;
    c->at = c->form == AGENT_OF_HARMONY ? AGENT_IN_HEAD : AGENT_IN_WORDS;
}

bool agent_channels_is_think(const char *piece, size_t n)
{
    return is(piece, n, "<think>") || is(piece, n, "<seed:think>");
}

bool agent_channels_is_think_end(const char *piece, size_t n)
{
    return is(piece, n, "</think>") || is(piece, n, "</seed:think>");
}

void agent_channels_open_thought(agent_channels *c, uint32_t index)
{
    c->at = AGENT_IN_THOUGHT;
    c->is_thought = true;
    c->head_from = index;
}

static bool is_blank(const char *text, size_t n)
{
    while (n && memchr(" \t\r\n", text[n - 1], 4)) n--;
    return n == 0;
}

/* Empty lines between a thought and its words belong to the thought. */
static void take_words(
    agent_channels *c, uint32_t index, const char *piece, size_t n, base_buf *words, base_buf *thought)
{
    const bool is_first = !c->n_thoughts && !c->is_thought && is_blank(words->data, words->len);
    if (c->at == AGENT_IN_WORDS && is_first && agent_channels_is_think(piece, n)) {
        agent_channels_open_thought(c, index);
    } else if (c->at == AGENT_IN_THOUGHT && agent_channels_is_think_end(piece, n)) {
        c->at = AGENT_IN_WORDS;
    } else if (c->at == AGENT_IN_THOUGHT) {
        base_buf_add(thought, piece, n);
    } else if (!c->is_thought || !is_blank(piece, n)) {
        end_thought(c, index);
        base_buf_add(words, piece, n);
    }
}

void agent_channels_take(agent_channels *c, uint32_t index, const char *piece, size_t n, bool is_control,
    base_buf *words, base_buf *thought)
{
    if (c->form == AGENT_OF_WORDS) {
        take_words(c, index, piece, n, words, thought);
        return;
    }
    if (c->form == AGENT_OF_GEMMA) {
        if (is_control)
            take_gemma_mark(c, index, piece, n, words);
        else
            take_gemma(c, piece, n, words, thought);
        return;
    }
    if (c->form == AGENT_OF_LISTS) {
        if (is_control)
            take_list_mark(c, piece, n, words);
        else
            take_list(c, piece, n, words);
        return;
    }
    if (is_control && c->form == AGENT_OF_MISTRAL) {
        take_mistral(c, piece, n, words);
        return;
    }
    if (is_control) {
        take_mark(c, index, piece, n, words);
        return;
    }
    switch (c->at) {
    case AGENT_IN_WORDS: base_buf_add(words, piece, n); break;
    case AGENT_IN_THOUGHT: base_buf_add(thought, piece, n); break;
    case AGENT_IN_CALL:
        base_buf_add(words, piece, n);
        c->is_empty = c->is_empty && is_blank(piece, n);
        break;
    case AGENT_IN_HEAD:
        if (c->head.len + n <= MAX_HEAD) base_buf_add(&c->head, piece, n);
        /* Behind the role a head begins, which ends the thought before it. */
        if (c->form == AGENT_OF_HARMONY && c->head.len == 1 + strlen(role) &&
            !strcmp(c->head.data + 1, role)) {
            end_thought(c, index + 1);
            c->head_from = index + 1;
        }
        break;
    }
}

void agent_channels_next_message(agent_channels *c, uint32_t index)
{
    end_thought(c, index);
    c->head_from = index;
    base_buf_clear(&c->head);
    if (c->form == AGENT_OF_HARMONY) c->at = AGENT_IN_HEAD;
}

void agent_channels_end(agent_channels *c, uint32_t n_tokens)
{
    end_thought(c, n_tokens);
}

void agent_channels_free(agent_channels *c)
{
    base_buf_free(&c->head);
    free(c->thoughts);
    *c = (agent_channels){.at = AGENT_IN_HEAD};
}
