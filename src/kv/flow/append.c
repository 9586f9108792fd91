/*
 * Appending a segment, batch by batch. A batch is computed behind the live lists and becomes part of the
 * sequence when its last layer is through. Which of its queries are kept as a signal, and what is decided
 * behind each batch, is here too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "kv/core/groups.h"
#include "kv/core/state.h"
#include "kv/evict/evict.h"
#include "kv/flow/flow.h"
#include "kv/plan/apply.h"
#include "kv/plan/walk.h"
#include "kv/policy/policy.h"
#include "kv/prune/prune.h"
#include "kv/read/reading.h"
#include "kv/read/visit.h"
#include "kv/session.h"

/* Tokens of the loaded prefix, as many as agree. Both were computed without holes. */
static uint32_t adopt_prefix(kv_session *s, const int32_t *ids, uint32_t n, base_err *err)
{
    if (s->holed || s->n >= s->prefix.n || memcmp(s->ids, s->prefix.ids, s->n * sizeof *ids)) return 0;
    uint32_t same = 0;
    while (same < n && s->n + same < s->prefix.n && s->prefix.ids[s->n + same] == ids[same]) same++;
    if (!same) return 0;
    if (kv_table_adopt(&s->table, &s->prefix.table, s->n, s->n + same, err) ||
        kv_lists_append(&s->lists, same, err)) {
        kv__withdraw(s);
        return 0;
    }
    kv__publish(s, ids, same);
    kv_state_drop(&s->states, &s->states.ahead);
    if (s->prefix.state && s->prefix.n == s->n) {
        kv_state_drop(&s->states, &s->states.live);
        s->states.live = kv_state_ref(s->prefix.state);
    }
    s->reused += same;
    return same;
}

/* Which queries of a segment are kept: ascending offsets. */
typedef struct wanted {
    uint32_t offsets[2 * KV_RECENT_QUERIES];
    uint32_t n;
} wanted;

static void want(wanted *w, uint32_t offset)
{
    uint32_t i = w->n;
    while (i && w->offsets[i - 1] >= offset) i--;
    if ((i < w->n && w->offsets[i] == offset) || w->n == 2 * KV_RECENT_QUERIES) return;
    memmove(w->offsets + i + 1, w->offsets + i, (w->n - i) * sizeof *w->offsets);
    w->offsets[i] = offset;
    w->n++;
}

/* Text that is the same in every session: it asks nothing, and a prefix file may stand in for it. */
static bool is_fixed(kv_origin o)
{
    return o == KV_ORIGIN_SYSTEM || o == KV_ORIGIN_SCAFFOLD || o == KV_ORIGIN_INSTRUCTIONS;
}

static void choose_queries(const kv_session *s, const kv_segment *g, uint32_t n, wanted *w)
{
    const uint32_t n_request = (uint32_t)s->parameters.w;
    w->n = 0;
    for (uint32_t i = 0; i < g->n_queries && i < KV_REQUEST_QUERIES; i++)
        if (g->queries[i] < n) want(w, g->queries[i]);
    /*
     * The last ones of a request, and of anything while nothing was asked: then they are all that can judge.
     */
    if (g->origin == KV_ORIGIN_USER || (!s->has_request && n > 1 && !is_fixed(g->origin)))
        for (uint32_t i = n > n_request ? n - n_request : 0; i < n; i++) want(w, i);
    if (g->origin == KV_ORIGIN_TOOL && !w->n)
        for (uint32_t i = 0; i < KV_REQUEST_QUERIES; i++)
            want(w, (uint32_t)((uint64_t)n * (2 * i + 1) / (2 * KV_REQUEST_QUERIES)));
}

/* Room for one batch's captured queries. */
typedef struct capture {
    model_capture model;
    uint32_t places[KV_BATCH], tokens[KV_BATCH];
} capture;

/* Which of a batch's queries are captured: those wanted, or all when the policy adds up attention. */
static void choose_captured(const kv_session *s, const wanted *w, uint32_t offset, uint32_t n, capture *c)
{
    for (uint32_t i = 0; i < n && s->policy->heavy; i++) c->places[c->model.n++] = i;
    for (uint32_t i = 0; i < w->n && !s->policy->heavy; i++)
        if (w->offsets[i] >= offset && w->offsets[i] < offset + n)
            c->places[c->model.n++] = w->offsets[i] - offset;
    for (uint32_t i = 0; i < c->model.n; i++) c->tokens[i] = s->n + c->places[i];
}

/* The wanted ones of the captured go to `kept`. */
static int keep_captured(const kv_session *s, const wanted *w, uint32_t offset, uint32_t n, const capture *c,
    kv_signal *kept, base_err *err)
{
    if (!s->policy->heavy)
        return kv_signal_add(kept, c->tokens, c->model.queries, c->model.n, KV_RECENT_QUERIES, err);
    kv_signal all = *kept, picked;
    uint32_t places[2 * KV_RECENT_QUERIES], n_places = 0;
    all.n = n;
    all.tokens = (uint32_t *)(uintptr_t)c->tokens;
    all.queries = c->model.queries;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->offsets[i] >= offset && w->offsets[i] < offset + n)
            places[n_places++] = w->offsets[i] - offset;
    if (!n_places) return 0;
    int rc = kv_signal_pick(&all, places, n_places, &picked, err);
    if (!rc) rc = kv_signal_add(kept, picked.tokens, picked.queries, n_places, KV_RECENT_QUERIES, err);
    if (!rc) kv_signal_fini(&picked);
    return rc;
}

/*
 * One batch: rows are staged behind the lists, computed, and published only when the last layer is through,
 * so a cancel leaves nothing of it. Captured queries are appended to `kept`.
 */
static int append_batch(kv_session *s, const int32_t *ids, uint32_t n, const wanted *w, uint32_t offset,
    uint32_t cut, float *logits, const uint64_t *only, kv_signal *kept, const atomic_bool *cancel,
    base_err *err)
{
    uint32_t phases[KV_BATCH];
    capture c = {.model = {.tokens = c.places}};
    s->draft.n = 0; /* its rows are written over */
    if (kv__is_endless(s) && kv__extent(s) + n > s->compute.n_ctx)
        return base_fail(err, BASE_E_LIMIT,
            "%u more tokens do not fit: the rows that stay active (%u protected) take %u of the model's "
            "context of %u; "
            "unpin some, or lower the budget",
            n, kv__count_hard(s), kv__extent(s), s->compute.n_ctx);
    const uint32_t phase = kv__next_phase(s);
    for (uint32_t i = 0; i < n; i++) phases[i] = phase + i;
    choose_captured(s, w, offset, n, &c);
    if (c.model.n) {
        c.model.queries = calloc(kv__memory_floats(s) * c.model.n, sizeof(float));
        if (!c.model.queries)
            return base_fail(err, BASE_E_NOMEM, "no memory to keep %u query vectors", c.model.n);
    }
    float *hidden = cut ? malloc((size_t)n * s->compute.n_embd * sizeof *hidden) : NULL;
    int rc = cut && !hidden ? base_fail(err, BASE_E_NOMEM, "no memory for %u hidden states", n) : 0;
    if (!rc) rc = kv__stand_at(s, s->n, cancel, err);
    if (!rc) rc = kv_table_make_writable(&s->table, s->n, s->n + n, err);
    if (!rc) rc = kv_lists_append(&s->lists, n, err);
    if (!rc && cut) rc = kv__hide_staged(s, s->n, cut, err);
    const kv_stored_segment *open = &s->segments[s->n_segments - 1];
    const bool is_local = kv__is_local(s, open->origin);
    model_rows_view rows = kv__view(s);
    kv_local local = {0};
    if (!rc && is_local) rc = kv__local_view(s, open->from, s->n + n, &rows, &local, err);
    const model_reader *reader = NULL;
    if (!rc && !is_local && !cut) rc = kv__reader_begin(s, &rows, open->origin, ids, s->n, n, &reader, err);
    if (!rc) {
        const uint32_t last = n - 1;
        model_batch batch = {
            .ids = ids,
            .phases = phases,
            .n = n,
            .rows = &rows,
            .layer_last = cut,
            .hidden = hidden,
            .want = &last,
            .n_want = logits ? 1 : 0,
            .logits = logits,
            .only = only,
            .capture = c.model.n ? &c.model : NULL,
            .reader = reader,
            .cancel = cancel,
        };
        rc = kv__forward(s, &batch, s->n, KV_TO_APPEND, err);
    }
    kv__local_free(&local);
    if (!rc && c.model.n) rc = keep_captured(s, w, offset, n, &c, kept, err);
    if (!rc && s->policy->heavy) rc = kv__heavy_add(s, s->n, n, c.model.queries, cancel, err);
    free(c.model.queries);
    if (!rc && cut) kv__put_states(s, s->n, n, cut, hidden);
    free(hidden);
    if (rc) {
        kv__withdraw(s);
        return rc;
    }
    if (cut) { /* whatever reads the upper layers from here on reads over a hole */
        s->holed = true;
        const uint32_t schedule[] = {cut, s->n, n, KV_EVENT_CUT};
        s->schedule = base_hash64(schedule, sizeof schedule, s->schedule);
    }
    if (is_local) { /* over holes: what stands between the group's beginning and this excerpt */
        s->holed = true;
        const uint32_t schedule[] = {phase, s->n, n};
        s->schedule = base_hash64(schedule, sizeof schedule, s->schedule);
    }
    kv__publish(s, ids, n);
    if (cut) {
        for (uint32_t t = s->n - n; t < s->n; t++) s->cut[t] = (uint16_t)cut;
        if (s->pending == KV_NO_ROW) s->pending = s->n - n;
    }
    s->computed += n;
    return 0;
}

/* A segment is complete while bulk is pending: it waits as a signal, and if it asks, the bulk is settled. */
static int finish_pending(kv_session *s, const kv_segment *g, uint32_t first, kv_signal *kept,
    const atomic_bool *cancel, base_err *err)
{
    int rc = kv__keep_asked(s, g, first, kept, err);
    if (rc) return rc;
    if (kept->n) {
        kv_signal_fini(&s->waiting.kept);
        s->waiting = (kv_waiting){.kept = *kept, .origin = g->origin, .turn = g->turn, .is_whole = true};
        kv_signal_init(kept, s->waiting.kept.n_layer, s->waiting.kept.n_head, s->waiting.kept.head_dim);
    }
    return s->automatic && kv__may_settle(s, g) ? kv__settle(s, cancel, err) : 0;
}

/* The next place behind `done` where something was decided when the log was written, or the segment's end. */
static uint32_t next_stop(const kv_logged *l, uint32_t done, uint32_t n)
{
    for (uint32_t i = 0; l && i < l->n_stops; i++)
        if (l->stops[i] > done && l->stops[i] < n) return l->stops[i];
    return n;
}

/* What the log says was decided behind the newest token. */
static int decide_as_logged(const kv_session *s, const kv_logged *l, uint32_t done, base_err *err)
{
    for (uint32_t i = 0; l && i < l->n_stops; i++)
        if (l->stops[i] == done) return l->decide(l->user, s->n, err);
    return 0;
}

/*
 * Behind this batch, has the message that it belongs to still to ask? A pass now would go by what was asked
 * before. Results were asked for, so they end with themselves; excerpts stand before their question.
 */
static bool is_question_open(const kv_session *s, kv_origin origin, bool is_whole, bool is_answered)
{
    if (!(s->parameters.message > 0) || is_answered) return false;
    if (origin == KV_ORIGIN_TOOL || origin == KV_ORIGIN_USER) return !is_whole;
    for (size_t i = s->n_segments; origin == KV_ORIGIN_SCAFFOLD && i-- > 0;)
        if (s->segments[i].origin == KV_ORIGIN_CONTEXT || s->segments[i].origin == KV_ORIGIN_USER)
            return s->segments[i].origin == KV_ORIGIN_CONTEXT;
    return origin == KV_ORIGIN_CONTEXT;
}

/* A person took plans back, of a fold or of what it rests on: both are made again before more comes. */
static int make_room(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    int rc = kv__fold(s, cancel, err);
    if (rc || !kv__is_endless(s) || kv__extent(s) + KV_BATCH <= s->compute.n_ctx) return rc;
    rc = kv__evict(s, NULL, cancel, err);
    return rc ? rc : kv__fold(s, cancel, err);
}

int kv_session_append(kv_session *s, const kv_segment *g, const int32_t *ids, uint32_t n, float *last_logits,
    uint32_t *ret_done, const atomic_bool *cancel, base_err *err)
{
    if (ret_done) *ret_done = 0;
    int rc = kv__check_append(s, g, ids, n, err);
    if (!rc) rc = kv__reserve(s, s->n + n, err);
    if (rc || !n) return rc;
    wanted w = {.n = 0};
    kv_signal kept;
    kv_signal_init(&kept, s->compute.shape.n_layer, s->compute.n_head, s->compute.shape.head_dim);
    if (s->pending != KV_NO_ROW && s->automatic && (last_logits || kv_origin_is_written(g->origin)))
        rc = kv__settle(s, cancel, err);
    if (!rc && s->automatic) rc = make_room(s, cancel, err);
    if (rc) return rc;
    const uint32_t n_whole = g->logged && g->logged->of > n ? g->logged->of : n;
    choose_queries(s, g, n_whole, &w);
    const uint32_t first = s->n, cut = kv__prune_cut(s, g, n, last_logits != NULL);
    rc = kv__keep_state(s, g, cancel, err);
    if (rc) return rc;
    if (g->turn > s->turn) s->turn = g->turn;
    kv__open_segment(s, g);
    s->segments[s->n_segments - 1].cut = (uint16_t)cut;
    s->segments[s->n_segments - 1].is_bulk = cut && kv__is_bulk(s, g, n);
    const uint32_t adoptable =
        is_fixed(g->origin) && !cut && !g->n_queries && !s->policy->heavy ? n - (last_logits ? 1 : 0) : 0;
    uint32_t done = adopt_prefix(s, ids, adoptable, NULL);
    while (!rc && done < n) {
        const uint32_t stop = next_stop(g->logged, done, n);
        const uint32_t now = stop - done < KV_BATCH ? stop - done : KV_BATCH;
        float *logits = done + now == n ? last_logits : NULL;
        rc = append_batch(s, ids + done, now, &w, done, cut, logits, g->only, &kept, cancel, err);
        if (rc) break;
        done += now;
        if (s->observer.prefill) s->observer.prefill(s->observer.user, done, n);
        const bool is_whole = done == n_whole;
        if (!cut) rc = kv__take_signal(s, g->origin, g->turn, is_whole, &kept, err);
        if (!rc && !cut && is_whole) rc = kv__keep_asked(s, g, first, &kept, err);
        if (!rc && !cut && is_whole) rc = kv__detect_when_due(s, g, cancel, err);
        if (!rc && cut && is_whole) rc = finish_pending(s, g, first, &kept, cancel, err);
        if (!rc && s->pending != KV_NO_ROW && s->automatic) rc = kv__fold(s, cancel, err);
        if (!rc && s->pending != KV_NO_ROW) rc = decide_as_logged(s, g->logged, done, err);
        if (s->pending != KV_NO_ROW) continue; /* nobody can judge yet */
        if (!rc && logits && !g->only) kv__keep_logits(s, logits);
        const bool may = !s->policy->whole || (done == n && !kv_origin_is_written(g->origin));
        if (!rc && s->automatic && may)
            rc = is_question_open(s, g->origin, is_whole, logits != NULL)
                     ? kv__evict_within_message(s, cancel, err)
                     : kv__evict(s, NULL, cancel, err);
        if (!rc && s->automatic) rc = kv__fold(s, cancel, err);
        if (!rc && s->automatic) rc = kv__tier(s, err);
        if (!rc) rc = decide_as_logged(s, g->logged, done, err);
    }
    kv_signal_fini(&kept);
    if (s->n == first && s->n_segments && s->segments[s->n_segments - 1].from == first)
        kv__segment_fini(&s->segments[--s->n_segments]);
    if (ret_done) *ret_done = s->n - first;
    return rc;
}
