/* The steps of an append: check it, open the segment's record, publish staged rows or withdraw them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kv/core/state.h"
#include "kv/flow/flow.h"
#include "kv/plan/walk.h"
#include "kv/read/reading.h"
#include "kv/read/visit.h"
#include "kv/session.h"

int kv__check_append(const kv_session *s, const kv_segment *g, const int32_t *ids, uint32_t n, base_err *err)
{
    if ((unsigned)g->origin >= KV_N_ORIGINS)
        return base_fail(err, BASE_E_USAGE, "no such origin: %d", (int)g->origin);
    if (n > s->n_ctx - s->n)
        return base_fail(err, BASE_E_LIMIT,
            "%u more tokens do not fit: the session has %u of the %u that the model's context allows; "
            "/compact or start a new session%s",
            n, s->n, s->n_ctx,
            s->compute.turn ? "; one with --kv-budget auto and no --ctx goes on behind it"
                            : "; on the CPU --kv-budget auto goes on behind it");
    for (uint32_t i = 0; i < g->n_spans; i++)
        if (g->spans[i].from >= g->spans[i].to || g->spans[i].to > n || g->spans[i].reason >= KV_N_REASONS)
            return base_fail(err, BASE_E_USAGE,
                "span %u, tokens %u to %u, does not lie in its segment of %u tokens", i, g->spans[i].from,
                g->spans[i].to, n);
    for (uint32_t i = 0; i < g->n_lines; i++)
        if (g->lines[i] >= n || (i && g->lines[i] <= g->lines[i - 1]))
            return base_fail(
                err, BASE_E_USAGE, "line %u of a segment of %u tokens starts at token %u", i, n, g->lines[i]);
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->compute.n_vocab)
            return base_fail(err, BASE_E_USAGE, "token id %d is not in the vocabulary of %u", (int)ids[i],
                s->compute.n_vocab);
    if (s->budget && s->parameters.hard > 0 &&
        (g->origin == KV_ORIGIN_SYSTEM || g->origin == KV_ORIGIN_INSTRUCTIONS))
        return kv_session_check_fixed(kv__count_hard(s) + n, s->budget, err);
    return 0;
}

/* Where a session is gone back to: the beginning of a turn, of an answer, of a tool's result. */
int kv__keep_state(kv_session *s, const kv_segment *g, const atomic_bool *cancel, base_err *err)
{
    const kv_stored_segment *last = s->n_segments ? &s->segments[s->n_segments - 1] : NULL;
    if (!s->compute.state_bytes || !last) return 0;
    if (g->turn <= last->turn && g->origin != KV_ORIGIN_TOOL &&
        !(kv_origin_is_written(g->origin) && !kv_origin_is_written(last->origin)))
        return 0;
    const int rc = kv__bring_state(s, cancel, err);
    if (!rc) kv_states_keep(&s->states, s->n, kv_states_most(s));
    return rc;
}

/* An answer's tokens come one by one and share one. */
void kv__open_segment(kv_session *s, const kv_segment *g)
{
    const kv_stored_segment *last = s->n_segments ? &s->segments[s->n_segments - 1] : NULL;
    if (last && last->origin == g->origin && last->turn == g->turn && !g->n_spans && !g->n_lines &&
        (kv_origin_is_written(g->origin) || g->origin == KV_ORIGIN_SCAFFOLD))
        return;
    const kv_stored_segment part = {
        .from = s->n,
        .to = s->n,
        .turn = g->turn,
        .origin = g->origin,
        .spans = (kv_span *)(uintptr_t)g->spans, /* copied */
        .lines = (uint32_t *)(uintptr_t)g->lines,
        .n_spans = g->n_spans,
        .n_lines = g->n_lines,
    };
    kv__segment_add(s, &part);
}

void kv__publish(kv_session *s, const int32_t *ids, uint32_t n)
{
    const uint32_t phase = kv__next_phase(s);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = s->n + i;
        s->ids[t] = ids[i];
        s->phases[t] = phase + i;
        s->file_row[t] = KV_NO_ROW;
        s->cut[t] = 0;
        s->tokens[t] = (kv_token){.last_action = KV_ACTION_NONE,
            .attention = NAN,
            .memory = NAN,
            .rank = NAN,
            .threshold = NAN,
            .previous = 0};
    }
    s->n += n;
    s->segments[s->n_segments - 1].to = s->n;
    if (kv_origin_is_written(s->segments[s->n_segments - 1].origin)) kv__reading_publish(s, n);
    kv__visit_publish(s, n);
    s->logits_at = 0;
    s->epoch++;
}

void kv__withdraw(kv_session *s)
{
    kv_lists_truncate(&s->lists, s->n);
    kv_table_truncate(&s->table, s->n);
    kv_states_truncate(&s->states, s->n);
}

void kv__keep_logits(kv_session *s, const float *logits)
{
    if (!s->logits) s->logits = malloc(s->compute.n_vocab * sizeof *s->logits);
    if (s->logits) memcpy(s->logits, logits, s->compute.n_vocab * sizeof *s->logits);
    s->logits_at = s->logits ? s->n : 0;
}
