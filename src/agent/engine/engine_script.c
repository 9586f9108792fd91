/*
 * Reads the script of an engine without a model (format: engine_script.h). Pure; any thread.
 */
#include "agent/engine/engine_script.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

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

static bool parse_setting(engine_script *script, const char *word, const char *rest)
{
    const struct {
        const char *name;
        uint32_t *value, least, most;
    } numbers[] = {{"ctx", &script->n_ctx, 64, SCRIPT_MAX_TOKENS},
        {"lanes", &script->n_lanes, 1, SCRIPT_MAX_LANES}, {"budget", &script->budget, 0, SCRIPT_MAX_TOKENS},
        {"repair", &script->repair, 0, SCRIPT_MAX_TOKENS}, {"learns", &script->learns, 0, 1},
        {"opens", &script->opens, 0, 1}, {"channels", &script->channels, 0, 7}};
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

static bool find_step(const char *line, script_step_kind *ret)
{
    static const struct {
        const char *word;
        script_step_kind kind;
    } steps[] = {
        {"wanted", STEP_WANTED}, {"fail", STEP_FAIL}, {"doubt", STEP_DOUBT}, {"likely", STEP_LIKELY}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (!strcmp(line, steps[i].word)) {
            *ret = steps[i].kind;
            return true;
        }
    return false;
}

int script_parse(engine_script *script, const char *text, size_t n, base_err *err)
{
    uint32_t number = 0;
    script_step_kind kind;
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
        } else if (find_step(line, &kind)) {
            add_step(script, kind)->text = unescape(rest, strlen(rest));
        } else {
            good = parse_setting(script, line, rest);
        }
        int rc = good ? 0
                      : base_fail(err, BASE_E_FORMAT, "engine script, line %u: \"%.60s\" is no directive",
                            number, line);
        free(line);
        if (rc) return rc;
    }
    return 0;
}

script_step *script_due(engine_script *script, script_step_kind kind)
{
    for (size_t s = script->cursor; s < script->n_steps && script->steps[s].kind != STEP_ANSWER; s++)
        if (script->steps[s].kind == kind && !script->steps[s].done) {
            script->steps[s].done = true;
            return &script->steps[s];
        }
    return NULL;
}

const char *script_answer(engine_script *script)
{
    while (script->cursor < script->n_steps && script->steps[script->cursor].kind != STEP_ANSWER)
        script->cursor++;
    return script->cursor < script->n_steps ? script->steps[script->cursor++].text : NULL;
}

void script_fini(engine_script *script)
{
    for (size_t i = 0; i < script->n_steps; i++) free(script->steps[i].text);
    free(script->steps);
    free(script->model);
}
