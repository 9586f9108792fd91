/*
 * Reads the fake engine's script (format: engine_fake.c). Pure; any thread.
 */
#include "agent/engine_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const script_plan_kind script_plans[N_STEPS] = {
    [STEP_EVICT] = {"evict", KV_EVICT, KV_CAUSE_EVICT},
    [STEP_PROMOTE] = {"promote", KV_PROMOTE, KV_CAUSE_REPAIR},
    [STEP_PROTECT] = {"protect", KV_PROTECT, KV_CAUSE_EVICT},
    [STEP_BAR] = {"bar", KV_BAR, KV_CAUSE_MANUAL},
};

static char *unescape(const char *s, size_t n)
{
    base_buf out = {0};
    for (size_t i = 0; i < n; i++) {
        bool escape = s[i] == '\\' && i + 1 < n;
        char c = escape ? s[++i] : s[i];
        base_buf_putc(&out, !escape ? c : c == 'n' ? '\n' : c == 't' ? '\t' : c);
    }
    return base_buf_take(&out);
}

static script_step *add_step(engine_script *script, script_step_kind kind)
{
    base_grow(&script->steps, &script->cap_steps, script->n_steps + 1, sizeof *script->steps);
    script->steps[script->n_steps] = (script_step){.kind = kind};
    return &script->steps[script->n_steps++];
}

/* "answer <<WORD": the lines behind *at up to WORD; *at then stands behind it. NULL: WORD never comes. */
static char *read_here_text(const char *all, size_t n, size_t *at, const char *word)
{
    base_buf out = {0};
    while (*at < n) {
        const char *line = all + *at, *end = memchr(line, '\n', n - *at);
        size_t len = end ? (size_t)(end - line) : n - *at;
        *at += len + (end != NULL);
        if (len == strlen(word) && !memcmp(line, word, len)) {
            if (out.len) out.data[--out.len] = 0; /* the last newline belongs to the mark */
            return base_buf_take(&out);
        }
        base_buf_add(&out, line, len);
        base_buf_putc(&out, '\n');
    }
    base_buf_free(&out);
    return NULL;
}

static bool parse_plan_step(engine_script *script, const char *word, const char *rest)
{
    for (int kind = 0; kind < N_STEPS; kind++) {
        if (!script_plans[kind].word || strcmp(script_plans[kind].word, word)) continue;
        char reason[32] = "";
        script_step s = {.kind = (script_step_kind)kind, .lanes = SCRIPT_MAX_LANES};
        if (sscanf(rest, "%u %u %31s %u", &s.from, &s.to, reason, &s.lanes) < 3) return false;
        for (int r = 0; r < KV_N_REASONS; r++)
            if (!strcmp(kv_reason_word((kv_reason)r), reason)) {
                s.reason = (kv_reason)r;
                *add_step(script, s.kind) = s;
                return true;
            }
        return false;
    }
    return false;
}

static bool parse_setting(engine_script *script, const char *word, const char *rest)
{
    const struct {
        const char *name;
        uint32_t *value, least, most;
    } numbers[] = {{"ctx", &script->n_ctx, 64, SCRIPT_MAX_TOKENS},
        {"lanes", &script->n_lanes, 1, SCRIPT_MAX_LANES}, {"budget", &script->budget, 0, SCRIPT_MAX_TOKENS},
        {"repair", &script->repair, 0, SCRIPT_MAX_TOKENS}, {"chunk", &script->chunk, 1, SCRIPT_MAX_TOKENS},
        {"learns", &script->learns, 0, 1}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(numbers[i].name, word)) continue;
        unsigned long x = strtoul(rest, NULL, 10);
        *numbers[i].value = (uint32_t)x;
        return x >= numbers[i].least && x <= numbers[i].most;
    }
    if (strcmp(word, "model")) return false;
    free(script->model);
    script->model = base_xstrdup(rest);
    return true;
}

int script_parse(engine_script *script, const char *text, size_t n, base_err *err)
{
    uint32_t number = 0;
    for (size_t at = 0; at < n;) {
        const char *start = text + at, *end = memchr(start, '\n', n - at);
        size_t len = end ? (size_t)(end - start) : n - at;
        at += len + (end != NULL);
        number++;
        char *line = base_xstrndup(start, len);
        char *rest = strchr(line, ' ');
        rest = rest ? (*rest = 0, rest + 1) : line + len;
        bool good = true;
        if (!*line || *line == '#') {
        } else if (!strcmp(line, "answer")) {
            char *answer = strncmp(rest, "<<", 2) ? unescape(rest, strlen(rest))
                                                  : read_here_text(text, n, &at, rest + 2);
            good = answer != NULL;
            if (good) add_step(script, STEP_ANSWER)->text = answer;
        } else if (!strcmp(line, "wanted") || !strcmp(line, "fail") || !strcmp(line, "doubt")) {
            script_step_kind kind = *line == 'w' ? STEP_WANTED : *line == 'f' ? STEP_FAIL : STEP_DOUBT;
            add_step(script, kind)->text = unescape(rest, strlen(rest));
        } else {
            good = parse_plan_step(script, line, rest) || parse_setting(script, line, rest);
        }
        int rc = good ? 0
                      : base_fail(err, BASE_E_FORMAT, "engine script, line %u: \"%.60s\" is no directive",
                            number, line);
        free(line);
        if (rc) return rc;
    }
    return 0;
}

void script_fini(engine_script *script)
{
    for (size_t i = 0; i < script->n_steps; i++) free(script->steps[i].text);
    free(script->steps);
    free(script->model);
}
