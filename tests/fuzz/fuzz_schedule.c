/*
 * The events of a changed log as a schedule (src/whatif): whatever they say, a sentence or steps that follow from one
 * another. A line is an event's JSON; one of hexadecimal digits alone is the blob of the event behind it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "whatif/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef struct lines {
    const char *text;
    size_t n;
} lines;

/* False: the line is no blob. */
static bool read_blob(const char *line, size_t n, base_buf *blob)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++)
        if (!line[i] || !strchr(digits, line[i])) return false;
    base_buf_clear(blob);
    for (size_t i = 0; i + 1 < n; i += 2)
        base_buf_putc(
            blob, (char)((strchr(digits, line[i]) - digits) << 4 | (strchr(digits, line[i + 1]) - digits)));
    return n > 1;
}

static int tell(void *user, agent_log_event_fn *fn, void *fn_user, base_err *err)
{
    const lines *l = user;
    base_buf blob = {0};
    uint64_t seq = 0;
    bool more = true;
    for (size_t at = 0; at < l->n && more;) {
        const char *line = l->text + at, *end = memchr(line, '\n', l->n - at);
        const size_t n = end ? (size_t)(end - line) : l->n - at;
        at += n + 1;
        if (read_blob(line, n, &blob)) continue;
        more = fn(fn_user, ++seq, 0, line, n, blob.len ? blob.data : NULL, blob.len);
        base_buf_clear(&blob);
    }
    base_buf_free(&blob);
    return 0;
}

static void check_text(const whatif_step *t)
{
    const agent_logged_run *text = &t->text;
    for (size_t i = 0; i < text->n_spans; i++)
        if (text->spans[i].from >= text->spans[i].to || text->spans[i].to > text->n) abort();
    if (t->kind != WHATIF_ANSWER) return;
    for (uint32_t i = 0; i < text->n; i++)
        if (t->said_ends[i] > t->said.len || (i && t->said_ends[i] < t->said_ends[i - 1])) abort();
}

/* Tokens lie one behind the other, and what is asked for, or given up, is there. */
static void check(const whatif_schedule *s)
{
    uint32_t n = 0, n_all = 0, n_ends = 0, n_rewinds = 0;
    for (size_t i = 0; i < s->n_steps; i++) {
        const whatif_step *t = &s->steps[i];
        if (t->kind == WHATIF_TEXT || t->kind == WHATIF_ANSWER) {
            if (t->text.from != n || !t->text.n || !t->text.ids) abort();
            check_text(t);
            n += t->text.n;
            n_all += t->text.n;
        } else if (t->text.n) {
            abort();
        }
        if (t->kind == WHATIF_REPAIR && (t->from >= t->to || t->to > n)) abort();
        if (t->kind == WHATIF_REWIND && t->from > n) abort();
        if (t->kind == WHATIF_REWIND) n = t->from;
        n_rewinds += t->kind == WHATIF_REWIND;
        n_ends += t->kind == WHATIF_END;
    }
    if (n_all != s->n_tokens || n_ends != s->n_turns || n_rewinds > s->n_rewinds || !n_ends) abort();
    for (size_t i = 0; i < s->n_plans; i++)
        if (!s->plans[i].plan || s->plans[i].part >= s->n_turns) abort();
    for (size_t i = 0; i < s->n_versions; i++)
        if (!s->versions[i].path || s->versions[i].version[64]) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    whatif_schedule *s = NULL;
    base_err err = {0};
    lines l = {(const char *)data, n};
    if (whatif_schedule_make(&s, "fuzz", tell, &l, &err)) {
        if (s || !err.msg[0]) abort();
        return 0;
    }
    check(s);
    whatif_schedule_free(s);
    return 0;
}
