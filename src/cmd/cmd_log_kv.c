/*
 * kvist log kv ID: the logged plans, folded into the live sets of a turn's end, so that anybody can check what the model
 * could read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/cmd_log.h"
#include "kv/plan/plan.h"

typedef struct live_sets {
    uint32_t n, n_lanes, turn, wanted; /* wanted: stop behind this turn; 0: the last */
    /* as in the session's event: a letter a layer, 'w' for one that reads the newest `window` tokens */
    char *windows;
    uint32_t window;
    uint64_t **live; /* [n_lanes] -> bits */
    uint64_t *barred;
    size_t words; /* allocated for each */
    bool damaged, is_too_much;
} live_sets;

/* What a changed log claims is held to what a session can have: a million tokens in a thousand lanes are half of it. */
#define MOST_BYTES ((size_t)256 << 20)

static void grow_sets(live_sets *s, uint32_t n)
{
    size_t words = (n + 63u) / 64u;
    if (words <= s->words || !s->n_lanes) return;
    if (words > MOST_BYTES / sizeof **s->live / (s->n_lanes + 1u)) {
        s->is_too_much = true;
        return;
    }
    words = words * 2;
    for (uint32_t lane = 0; lane <= s->n_lanes; lane++) {
        uint64_t **set = lane < s->n_lanes ? &s->live[lane] : &s->barred;
        *set = base_xrealloc(*set, words * sizeof **set);
        memset(*set + s->words, 0, (words - s->words) * sizeof **set);
    }
    s->words = words;
}

static void set_length(live_sets *s, uint32_t n)
{
    grow_sets(s, n);
    if (s->is_too_much) return;
    for (uint32_t i = s->n; i < n; i++)
        for (uint32_t lane = 0; lane < s->n_lanes; lane++) s->live[lane][i / 64] |= UINT64_C(1) << (i % 64);
    for (uint32_t i = n; i < s->n; i++) {
        for (uint32_t lane = 0; lane < s->n_lanes; lane++)
            s->live[lane][i / 64] &= ~(UINT64_C(1) << (i % 64));
        if (s->barred) s->barred[i / 64] &= ~(UINT64_C(1) << (i % 64));
    }
    s->n = n;
}

static void fold_plan(live_sets *s, const void *blob, size_t n)
{
    kv_plan *p = NULL;
    if (kv_plan_unpack(blob, n, &p, NULL)) {
        s->damaged = true;
        return;
    }
    size_t words = kv_plan_words(p);
    if (p->n_lanes == s->n_lanes && p->n_tokens <= s->n) {
        for (uint32_t lane = 0; lane < s->n_lanes; lane++)
            for (size_t w = 0; w < words; w++) s->live[lane][w] ^= p->flips[lane * words + w];
        for (size_t w = 0; p->barred && w < words; w++) s->barred[w] ^= p->barred[w];
    } else {
        s->damaged = true;
    }
    kv_plan_free(p);
}

static bool fold_event(void *user, uint32_t turn, const agent_event *e)
{
    live_sets *s = user;
    bool more = true;
    switch (e->type) {
    case AGENT_EVENT_session:
        if (!s->n_lanes && e->session.n_lanes > 0 && e->session.n_lanes <= 1 << 16) {
            s->n_lanes = (uint32_t)e->session.n_lanes;
            s->live = base_xcalloc(s->n_lanes, sizeof *s->live);
            s->windows = base_xstrdup(e->session.windows);
            s->window = e->session.window > 0 ? (uint32_t)e->session.window : 0;
        }
        break;
    case AGENT_EVENT_append:
        if (e->append.from == s->n && e->append.n >= 0 && e->append.n < 1 << 24)
            set_length(s, s->n + (uint32_t)e->append.n);
        break;
    case AGENT_EVENT_token:
        if (e->token.index == s->n) set_length(s, s->n + 1);
        break;
    case AGENT_EVENT_rewind:
        if (e->rewind.n >= 0 && e->rewind.n <= s->n) set_length(s, (uint32_t)e->rewind.n);
        break;
    case AGENT_EVENT_plan: fold_plan(s, e->blob, e->blob_n); break;
    case AGENT_EVENT_turn_end:
        s->turn = turn;
        more = !s->wanted || turn < s->wanted;
        break;
    default: break;
    }
    return more && !s->is_too_much;
}

static bool is_set(const uint64_t *bits, uint32_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static uint32_t count_rows(const uint64_t *bits, uint32_t n)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < n; i++) rows += is_set(bits, i);
    return rows;
}

static void put_ranges(const uint64_t *bits, uint32_t n, bool json, base_buf *out)
{
    bool first = true;
    for (uint32_t i = 0; i < n;) {
        uint32_t from = i;
        while (i < n && is_set(bits, i)) i++;
        if (i > from) {
            if (!first) base_buf_putc(out, json ? ',' : ' ');
            base_buf_printf(out, json ? "[%u,%u]" : "%u-%u", from, i);
            first = false;
        }
        i += i < n && !is_set(bits, i);
    }
}

static bool has_window(const live_sets *s, uint32_t lane)
{
    const size_t n_layers = s->windows ? strlen(s->windows) : 0;
    return n_layers && s->n_lanes % n_layers == 0 && s->windows[lane / (s->n_lanes / n_layers)] == 'w';
}

static void print_sets(const live_sets *s, bool json)
{
    base_buf out = {0};
    uint32_t barred = s->barred ? count_rows(s->barred, s->n) : 0;
    if (json)
        printf("{\"turn\":%u,\"n\":%u,\"lanes\":%u,\"barred\":%u}\n", s->turn, s->n, s->n_lanes, barred);
    else
        printf("turn %u: %u tokens, %u lanes, %u barred\n", s->turn, s->n, s->n_lanes, barred);
    for (uint32_t lane = 0; lane < s->n_lanes && s->n;) {
        uint32_t last = lane; /* lanes that agree are one line for a person */
        while (!json && last + 1 < s->n_lanes && has_window(s, last + 1) == has_window(s, lane) &&
               !memcmp(s->live[lane], s->live[last + 1], (s->n + 63) / 64 * sizeof **s->live))
            last++;
        base_buf_clear(&out);
        put_ranges(s->live[lane], s->n, json, &out);
        uint32_t rows = count_rows(s->live[lane], s->n);
        const char *ranges = out.data ? out.data : "";
        char reads[64] = "";
        if (has_window(s, lane))
            snprintf(reads, sizeof reads, ", of which the newest %u are read", s->window);
        if (json)
            printf("{\"lane\":%u,\"active\":%u,\"ranges\":[%s]}\n", lane, rows, ranges);
        else if (last == lane)
            printf("lane %u: %u active%s: %s\n", lane, rows, reads, ranges);
        else
            printf("lanes %u-%u: %u active%s: %s\n", lane, last, rows, reads, ranges);
        lane = last + 1;
    }
    base_buf_free(&out);
}

int cmd_log_kv(agent_log *log, const char *id, uint32_t turn, bool json, base_err *err)
{
    live_sets s = {.wanted = turn};
    int rc = agent_log_read(log, id, AGENT_LOG_PASS_BY, fold_event, &s, err);
    if (!rc && s.damaged)
        rc = base_fail(err, BASE_E_FORMAT, "a plan of session %s does not fit its tokens", id);
    if (!rc && s.is_too_much)
        rc = base_fail(
            err, BASE_E_FORMAT, "the log of session %s claims more rows than a session can have", id);
    if (!rc && s.wanted && s.turn != s.wanted)
        rc = base_fail(err, BASE_E_NOT_FOUND, "session %s has no finished turn %u (the last one is %u)", id,
            s.wanted, s.turn);
    if (!rc) print_sets(&s, json);
    for (uint32_t lane = 0; s.live && lane < s.n_lanes; lane++) free(s.live[lane]);
    free(s.live);
    free(s.windows);
    free(s.barred);
    return rc;
}
