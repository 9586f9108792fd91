/*
 * Further calls like those that the model wrote, with other literals: one call of its own often comes nowhere near the fault that its test
 * should notice (contract: calls.h).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/newtest/calls.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

enum { WAYS = 3 };

/* Letters become the other case; twice, with a dash between; nothing. */
static void put_string(const char *from, size_t n, unsigned way, base_buf *out)
{
    bool has_letters = false;
    for (size_t i = 0; i < n; i++) has_letters |= isalpha((unsigned char)from[i]) != 0;
    const bool is_escaped = memchr(from, '\\', n) != NULL;
    if (way == 0 && has_letters && !is_escaped)
        for (size_t i = 0; i < n; i++)
            base_buf_putc(out, (char)(islower((unsigned char)from[i]) ? toupper((unsigned char)from[i])
                                                                      : tolower((unsigned char)from[i])));
    else if (way == 0)
        base_buf_printf(out, "%.*s1", (int)n, from);
    else if (way == 1)
        base_buf_printf(out, "%.*s-%.*s", (int)n, from, (int)n, from);
}

static void put_number(const char *from, unsigned way, base_buf *out)
{
    const long n = strtol(from, NULL, 0);
    base_buf_printf(out, "%ld", way == 0 ? n + 1 : way == 1 ? 2 * n + 10 : 0);
}

/* The call with each literal among what it is given another one; false: it has none that is known. */
static bool put_varied(const char *call, const char *given, bool has_characters, unsigned way, base_buf *out)
{
    static const char characters[] = "Z0 ";
    bool is_varied = false;
    base_buf_add(out, call, (size_t)(given - call));
    while (*given) {
        const char before = given > call ? given[-1] : ' ';
        const char *end = NULL;
        if (strchr("\"'", *given)) {
            end = given + 1;
            while (*end && *end != *given) end += 1 + (*end == '\\' && end[1]);
        }
        if (end && *end && has_characters && *given == '\'') {
            base_buf_printf(out, "'%c'", characters[way]);
            is_varied = true;
            given = end + 1;
        } else if (end && *end) {
            base_buf_putc(out, *given);
            put_string(given + 1, (size_t)(end - given - 1), way, out);
            base_buf_putc(out, *given);
            is_varied = true;
            given = end + 1;
        } else if (isdigit((unsigned char)*given) && !code_is_name_byte(before) && before != '.') {
            const char *to = given;
            while (code_is_name_byte(*to) || *to == '.') to++;
            char *rest;
            const long n = strtol(given, &rest, 0);
            const bool is_plain = rest == to && n >= 0 && n < 1000;
            if (is_plain)
                put_number(given, way, out);
            else
                base_buf_add(out, given, (size_t)(to - given));
            is_varied |= is_plain;
            given = to;
        } else {
            base_buf_putc(out, *given++);
        }
    }
    return is_varied;
}

static bool is_there(const agent_steps *s, const char *text)
{
    bool is = false;
    for (uint32_t i = 0; i < s->n; i++) is |= !strcmp(s->steps[i].text, text);
    return is;
}

void agent__vary_calls(const char *path, const char *subject, uint32_t want, agent_steps *s)
{
    static const char *const endings[] = {".c", ".go", ".rs"};
    const uint32_t n_own = s->n;
    uint32_t n_calls = 0;
    bool has_characters = false;
    base_buf open = {0};
    base_buf_printf(&open, "%s(", subject);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        has_characters |= base_ends_with(path, endings[i]);
    for (uint32_t i = 0; i < n_own; i++) n_calls += s->steps[i].kind == AGENT_STEP_CALL;
    for (uint32_t i = 0; i < n_own && n_calls < want; i++) {
        const char *given = s->steps[i].kind == AGENT_STEP_CALL ? strstr(s->steps[i].text, open.data) : NULL;
        for (unsigned way = 0; given && way < WAYS && n_calls < want && s->n < AGENT_MAX_STEPS; way++) {
            base_buf call = {0};
            if (put_varied(s->steps[i].text, given + open.len, has_characters, way, &call) &&
                !is_there(s, call.data)) {
                s->steps[s->n++] = (agent_step){.kind = AGENT_STEP_CALL,
                    .text = base_xstrdup(call.data),
                    .needs = s->steps[i].needs,
                    .is_varied = true};
                n_calls++;
            }
            base_buf_free(&call);
        }
    }
    base_buf_free(&open);
}
