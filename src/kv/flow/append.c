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

/* A segment while it is appended. */
typedef struct appending {
    kv_session *s;
    const kv_segment *segment;
    const int32_t *ids; /* [n] */
    uint32_t n, done;   /* done: of them, computed */
    /* tokens that the segment has; more than n where a cancel ended it when it was logged */
    uint32_t n_whole;
    uint32_t first; /* the session's tokens in front of it */
    uint32_t cut;   /* the layer before which it is cut; 0: it is not */
    float *last_logits;
    wanted wanted;
    kv_signal kept; /* queries that were kept and not taken as a signal yet */
    const atomic_bool *cancel;
} appending;

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
static int keep_captured(appending *p, uint32_t n, const capture *c, base_err *err)
{
    const wanted *w = &p->wanted;
    if (!p->s->policy->heavy)
        return kv_signal_add(&p->kept, c->tokens, c->model.queries, c->model.n, KV_RECENT_QUERIES, err);
    kv_signal all = p->kept, picked;
    uint32_t places[2 * KV_RECENT_QUERIES], n_places = 0;
    all.n = n;
    all.tokens = (uint32_t *)(uintptr_t)c->tokens;
    all.queries = c->model.queries;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->offsets[i] >= p->done && w->offsets[i] < p->done + n)
            places[n_places++] = w->offsets[i] - p->done;
    if (!n_places) return 0;
    int rc = kv_signal_pick(&all, places, n_places, &picked, err);
    if (!rc) rc = kv_signal_add(&p->kept, picked.tokens, picked.queries, n_places, KV_RECENT_QUERIES, err);
    if (!rc) kv_signal_fini(&picked);
    return rc;
}

/* What a forward pass over a segment's next n tokens needs beside them. */
typedef struct batch_room {
    uint32_t phases[KV_BATCH];
    capture capture;
    float *hidden; /* [n][n_embd] where it is cut; NULL */
} batch_room;

static int open_room(const appending *p, uint32_t n, batch_room *r, base_err *err)
{
    const kv_session *s = p->s;
    capture *c = &r->capture;
    const uint32_t phase = kv__next_phase(s);
    c->model.tokens = c->places;
    for (uint32_t i = 0; i < n; i++) r->phases[i] = phase + i;
    choose_captured(s, &p->wanted, p->done, n, c);
    if (c->model.n) {
        c->model.queries = calloc(kv__memory_floats(s) * c->model.n, sizeof(float));
        if (!c->model.queries)
            return base_fail(err, BASE_E_NOMEM, "no memory to keep %u query vectors", c->model.n);
    }
    r->hidden = p->cut ? malloc((size_t)n * s->compute.n_embd * sizeof *r->hidden) : NULL;
    if (p->cut && !r->hidden) return base_fail(err, BASE_E_NOMEM, "no memory for %u hidden states", n);
    return 0;
}

static void close_room(batch_room *r)
{
    free(r->capture.model.queries);
    free(r->hidden);
}

/* Computes the next n tokens over rows that are staged behind the lists. logits: of the last of them; may be NULL. */
static int compute_batch(appending *p, uint32_t n, float *logits, batch_room *r, base_err *err)
{
    kv_session *s = p->s;
    const kv_stored_segment *open = &s->segments[s->n_segments - 1];
    const bool is_local = kv__is_local(s, open->origin);
    int rc = kv__stand_at(s, s->n, p->cancel, err);
    if (!rc) rc = kv_table_make_writable(&s->table, s->n, s->n + n, err);
    if (!rc) rc = kv_lists_append(&s->lists, n, err);
    if (!rc && p->cut) rc = kv__hide_staged(s, s->n, p->cut, err);
    model_rows_view rows = kv__view(s);
    kv_local local = {0};
    const model_reader *reader = NULL;
    if (!rc && is_local) rc = kv__local_view(s, open->from, s->n + n, &rows, &local, err);
    if (!rc && !is_local && !p->cut)
        rc = kv__reader_begin(s, &rows, open->origin, p->ids + p->done, s->n, n, &reader, err);
    if (!rc) {
        const uint32_t last = n - 1;
        model_batch batch = {
            .ids = p->ids + p->done,
            .phases = r->phases,
            .n = n,
            .rows = &rows,
            .layer_last = p->cut,
            .hidden = r->hidden,
            .want = &last,
            .n_want = logits ? 1 : 0,
            .logits = logits,
            .only = p->segment->only,
            .capture = r->capture.model.n ? &r->capture.model : NULL,
            .reader = reader,
            .cancel = p->cancel,
        };
        rc = kv__forward(s, &batch, s->n, KV_TO_APPEND, err);
    }
    kv__local_free(&local);
    return rc;
}

/* Whatever reads these rows from here on reads over a hole: layers above a cut, or what an excerpt did not read. */
static void note_hole(kv_session *s, const uint32_t *schedule, size_t n_bytes)
{
    s->holed = true;
    s->schedule = base_hash64(schedule, n_bytes, s->schedule);
}

/*
 * One batch: rows are staged behind the lists, computed, and published only when the last layer is through,
 * so a cancel leaves nothing of it. Captured queries are appended to `kept`.
 */
static int append_batch(appending *p, uint32_t n, float *logits, base_err *err)
{
    kv_session *s = p->s;
    batch_room r = {.hidden = NULL};
    s->draft.n = 0; /* its rows are written over */
    if (kv__is_endless(s) && kv__extent(s) + n > s->compute.n_ctx)
        return base_fail(err, BASE_E_LIMIT,
            "%u more tokens do not fit: the rows that stay active (%u protected) take %u of the model's "
            "context of %u; unpin some, or lower the budget",
            n, kv__count_hard(s), kv__extent(s), s->compute.n_ctx);
    int rc = open_room(p, n, &r, err);
    if (!rc) rc = compute_batch(p, n, logits, &r, err);
    if (!rc && r.capture.model.n) rc = keep_captured(p, n, &r.capture, err);
    if (!rc && s->policy->heavy) rc = kv__heavy_add(s, s->n, n, r.capture.model.queries, p->cancel, err);
    if (!rc && p->cut) kv__put_states(s, s->n, n, p->cut, r.hidden);
    close_room(&r);
    if (rc) {
        kv__withdraw(s);
        return rc;
    }
    if (p->cut) {
        const uint32_t schedule[] = {p->cut, s->n, n, KV_EVENT_CUT};
        note_hole(s, schedule, sizeof schedule);
    }
    if (kv__is_local(s, s->segments[s->n_segments - 1].origin)) {
        const uint32_t schedule[] = {r.phases[0], s->n, n};
        note_hole(s, schedule, sizeof schedule);
    }
    kv__publish(s, p->ids + p->done, n);
    if (p->cut) {
        for (uint32_t t = s->n - n; t < s->n; t++) s->cut[t] = (uint16_t)p->cut;
        if (s->pending == KV_NO_ROW) s->pending = s->n - n;
    }
    s->computed += n;
    p->done += n;
    return 0;
}

/* A segment is complete while bulk is pending: it waits as a signal, and if it asks, the bulk is settled. */
static int finish_pending(appending *p, base_err *err)
{
    kv_session *s = p->s;
    const kv_segment *g = p->segment;
    int rc = kv__keep_asked(s, g, p->first, &p->kept, err);
    if (rc) return rc;
    if (p->kept.n) {
        kv_signal_fini(&s->waiting.kept);
        s->waiting = (kv_waiting){.kept = p->kept, .origin = g->origin, .turn = g->turn, .is_whole = true};
        kv_signal_init(&p->kept, s->waiting.kept.n_layer, s->waiting.kept.n_head, s->waiting.kept.head_dim);
    }
    return s->automatic && kv__may_settle(s, g) ? kv__settle(s, p->cancel, err) : 0;
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

/* The queries that the newest batch kept become a signal, or wait while nobody chose among what is pending. */
static int take_signals(appending *p, base_err *err)
{
    kv_session *s = p->s;
    const kv_segment *g = p->segment;
    const bool is_whole = p->done == p->n_whole;
    if (p->cut) return is_whole ? finish_pending(p, err) : 0;
    int rc = kv__take_signal(s, g->origin, g->turn, is_whole, &p->kept, err);
    if (!rc && is_whole) rc = kv__keep_asked(s, g, p->first, &p->kept, err);
    if (!rc && is_whole) rc = kv__detect_when_due(s, g, p->cancel, err);
    return rc;
}

/* Behind a batch: what leaves, what is read from nearer, what goes to disk. logits: of its last token; may be NULL. */
static int decide_behind_batch(appending *p, float *logits, base_err *err)
{
    kv_session *s = p->s;
    const kv_segment *g = p->segment;
    int rc = take_signals(p, err);
    if (s->pending != KV_NO_ROW) { /* nobody can judge yet */
        if (!rc && s->automatic) rc = kv__fold(s, p->cancel, err);
        return rc ? rc : decide_as_logged(s, g->logged, p->done, err);
    }
    if (!rc && logits && !g->only) kv__keep_logits(s, logits);
    const bool may = !s->policy->whole || (p->done == p->n && !kv_origin_is_written(g->origin));
    if (!rc && s->automatic && may)
        rc = is_question_open(s, g->origin, p->done == p->n_whole, logits != NULL)
                 ? kv__evict_within_message(s, p->cancel, err)
                 : kv__evict(s, NULL, p->cancel, err);
    if (!rc && s->automatic) rc = kv__fold(s, p->cancel, err);
    if (!rc && s->automatic) rc = kv__tier(s, err);
    return rc ? rc : decide_as_logged(s, g->logged, p->done, err);
}

/* Settles what was left below a cut, if the segment is to be read; makes room; opens the segment. */
static int begin_segment(appending *p, base_err *err)
{
    kv_session *s = p->s;
    const kv_segment *g = p->segment;
    int rc = 0;
    if (s->pending != KV_NO_ROW && s->automatic && (p->last_logits || kv_origin_is_written(g->origin)))
        rc = kv__settle(s, p->cancel, err);
    if (!rc && s->automatic) rc = make_room(s, p->cancel, err);
    if (rc) return rc;
    choose_queries(s, g, p->n_whole, &p->wanted);
    p->first = s->n;
    p->cut = kv__prune_cut(s, g, p->n, p->last_logits != NULL);
    rc = kv__keep_state(s, g, p->cancel, err);
    if (rc) return rc;
    if (g->turn > s->turn) s->turn = g->turn;
    kv__open_segment(s, g);
    s->segments[s->n_segments - 1].cut = (uint16_t)p->cut;
    s->segments[s->n_segments - 1].is_bulk = p->cut && kv__is_bulk(s, g, p->n);
    if (is_fixed(g->origin) && !p->cut && !g->n_queries && !s->policy->heavy)
        p->done = adopt_prefix(s, p->ids, p->n - (p->last_logits ? 1 : 0), NULL);
    return 0;
}

int kv_session_append(kv_session *s, const kv_segment *g, const int32_t *ids, uint32_t n, float *last_logits,
    const atomic_bool *cancel, base_err *err)
{
    int rc = kv__check_append(s, g, ids, n, err);
    if (!rc) rc = kv__reserve(s, s->n + n, err);
    if (rc || !n) return rc;
    appending p = {.s = s,
        .segment = g,
        .ids = ids,
        .n = n,
        .n_whole = g->logged && g->logged->of > n ? g->logged->of : n,
        .last_logits = last_logits,
        .cancel = cancel};
    rc = begin_segment(&p, err);
    if (rc) return rc;
    kv_signal_init(&p.kept, s->compute.shape.n_layer, s->compute.n_head, s->compute.shape.head_dim);
    while (!rc && p.done < n) {
        const uint32_t left = next_stop(g->logged, p.done, n) - p.done;
        const uint32_t now = left < KV_BATCH ? left : KV_BATCH;
        float *logits = p.done + now == n ? last_logits : NULL;
        rc = append_batch(&p, now, logits, err);
        if (rc) break;
        if (s->observer.prefill) s->observer.prefill(s->observer.user, p.done, n);
        rc = decide_behind_batch(&p, logits, err);
    }
    kv_signal_fini(&p.kept);
    if (s->n == p.first && s->n_segments && s->segments[s->n_segments - 1].from == p.first)
        kv__segment_fini(&s->segments[--s->n_segments]);
    return rc;
}
