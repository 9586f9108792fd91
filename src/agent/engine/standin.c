#include "agent/engine/standin.h"

#include <string.h>

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Two bits of length, seven bits a character. */
static int32_t pack(const char *s, size_t n)
{
    int32_t id = (int32_t)(n - 1) << 28;
    for (size_t i = 0; i < n; i++) id |= (s[i] & 0x7f) << (7 * i);
    return id;
}

int32_t standin_only(const char *text, size_t n)
{
    return n && n <= STANDIN_WORD ? pack(text, n) : STANDIN_END;
}

int standin_encode(engine *e, const char *text, size_t n, model_ids *out, base_err *err)
{
    for (size_t i = 0; i < n;) {
        size_t len = 1, word = i + (text[i] == ' ');
        if ((unsigned char)text[i] >= 0x80) {
            model_ids_add(out, STANDIN_BYTE + (unsigned char)text[i]);
            i++;
            continue;
        }
        if (word < n && is_word(text[word])) {
            for (len = word - i; len < STANDIN_WORD && i + len < n && is_word(text[i + len]);) len++;
        } else if (text[i] == ' ') {
            while (len < STANDIN_WORD && i + len < n && text[i + len] == ' ') len++;
        }
        model_ids_add(out, pack(text + i, len));
        i += len;
    }
    return 0;
}

static const char *const marks[] = {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|call|>",
    "<|end|>", "[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]", "<think>", "</think>", "[CALL_ID]",
    "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool>", "<tool|>", "<|\"|>",
    "<|tool_call|>"};
enum { N_MARKS = sizeof marks / sizeof *marks };

int32_t standin_mark(const char *text, size_t n, size_t *ret_n)
{
    for (int i = 0; i < N_MARKS; i++) {
        *ret_n = strlen(marks[i]);
        if (*ret_n <= n && !memcmp(text, marks[i], *ret_n)) return STANDIN_MARK + i;
    }
    return STANDIN_END;
}

static const char *const role_names[] = {"<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|tools|>"};
enum { N_ROLES = sizeof role_names / sizeof *role_names };

const char *standin_piece(const engine *e, int32_t id, size_t *ret_n)
{
    static _Thread_local char ring[8][8];
    static _Thread_local unsigned at;
    char *out = ring[at++ % 8];
    size_t n = 0;
    if (id >= STANDIN_BYTE && id < STANDIN_N) {
        out[n++] = (char)(id - STANDIN_BYTE);
    } else if (id == STANDIN_END) {
        *ret_n = 7;
        return "<|end|>";
    } else if (id >= STANDIN_MARK && id < STANDIN_MARK + N_MARKS) {
        *ret_n = strlen(marks[id - STANDIN_MARK]);
        return marks[id - STANDIN_MARK];
    } else if (id >= STANDIN_CONTROL && id < STANDIN_CONTROL + N_ROLES) {
        *ret_n = strlen(role_names[id - STANDIN_CONTROL]);
        return role_names[id - STANDIN_CONTROL];
    } else if (id >= 0 && id < STANDIN_CONTROL) {
        for (n = 0; n <= (size_t)(id >> 28); n++) out[n] = (char)((id >> (7 * n)) & 0x7f);
    } else {
        return NULL;
    }
    out[n] = 0;
    *ret_n = n;
    return out;
}

bool standin_is_control(const engine *e, int32_t id)
{
    return id >= STANDIN_CONTROL && id < STANDIN_BYTE;
}

int standin_scaffold(engine *e, engine_scaffold what, model_role role, model_ids *out, base_err *err)
{
    if (what == ENGINE_BEGIN) model_ids_add(out, STANDIN_CONTROL + (int32_t)role);
    if (what == ENGINE_END) model_ids_add(out, STANDIN_END);
    return 0;
}
