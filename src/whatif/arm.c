/* Steps -> calls of a session (contract: arm.h). */
#include "whatif/arm.h"

#include <stdlib.h>
#include <string.h>

#include "agent/words/token_map.h"
#include "base/clock.h"
#include "base/mem.h"

/* --- opening -------------------------------------------------------------------------------------------- */

/* The record's next plan of this part of the session; NULL: it has no further. */
static const kv_plan *next_recorded(whatif_arm *a)
{
    const whatif_schedule *s = a->record;
    if (a->plan_at >= s->n_plans || s->plans[a->plan_at].part != a->part) return NULL;
    return s->plans[a->plan_at++].plan;
}

static bool is_same_set(const uint64_t *a, const uint64_t *b, size_t n_words)
{
    for (size_t w = 0; w < n_words; w++)
        if ((a ? a[w] : 0) != (b ? b[w] : 0)) return false;
    return true;
}

static bool is_same(const kv_plan *a, const kv_plan *b)
{
    const size_t n = kv_plan_words(a);
    return a->cause == b->cause && a->n_tokens == b->n_tokens && a->n_lanes == b->n_lanes &&
           a->replay_from == b->replay_from && is_same_set(a->flips, b->flips, n * a->n_lanes) &&
           is_same_set(a->barred, b->barred, n) && is_same_set(a->stale, b->stale, n) &&
           is_same_set(a->outshone, b->outshone, n);
}

typedef struct telling {
    whatif_arm *arm;
    uint64_t seq;
} telling;

static void tell_plan(void *user, agent_event *e)
{
    const telling *t = user;
    t->arm->tell(t->arm->user, t->seq, e);
}

/* The event of the log that the newest token came with. */
static uint64_t seq_now(const whatif_arm *a, uint32_t n_tokens)
{
    const whatif_step *t = a->step;
    if (!t || t->kind != WHATIF_ANSWER || n_tokens <= t->text.from) return t ? t->seq : 0;
    const uint32_t at = n_tokens - t->text.from - 1;
    return t->seqs[at < t->text.n ? at : t->text.n - 1];
}

static void on_plan(void *user, const kv_plan *p)
{
    whatif_arm *a = user;
    agent_moved_count(&a->sums.moved, a->session, p);
    a->sums.n_plans++;
    if (a->record) {
        const kv_plan *recorded = next_recorded(a);
        a->sums.n_other += !recorded || !is_same(p, recorded);
    }
    telling t = {a, seq_now(a, p->n_tokens)};
    if (a->tell) agent_logged_tell_plan(p, a->turn, tell_plan, &t);
}

static void on_prefill(void *user, uint32_t done, uint32_t total)
{
    const whatif_arm *a = user;
    if (a->computed) a->computed(a->user, a, done, total);
}

int whatif_arm_open(whatif_arm *a, const kv_options *kv, bool resume, base_err *err)
{
    const kv_observer observer = {.user = a, .prefill = on_prefill, .plan = on_plan};
    a->next = malloc(a->engine->n_vocab * sizeof *a->next);
    if (!a->next) return base_fail(err, BASE_E_NOMEM, "no memory for %u logits", a->engine->n_vocab);
    const int rc = a->engine->open(a->engine->user, kv, resume, &observer, &a->session, err);
    if (!rc && !resume) kv_session_set_turn(a->session, 0);
    return rc;
}

void whatif_arm_close(whatif_arm *a)
{
    kv_session_free(a->session);
    free(a->next);
    base_buf_free(&a->sums.notes);
    a->session = NULL;
    a->next = NULL;
}

void whatif_arm_skip(whatif_arm *a, uint32_t part)
{
    a->part = part;
    while (a->record && a->plan_at < a->record->n_plans && a->record->plans[a->plan_at].part < part)
        a->plan_at++;
}

void whatif_arm_forget_sums(whatif_arm *a)
{
    base_buf_free(&a->sums.notes);
    a->sums = (whatif_sums){.ns = 0};
}

void whatif_arm_end_turn(whatif_arm *a)
{
    kv_visits visits;
    kv_session_take_visits(a->session, &visits, NULL);
    a->sums.visiting += visits.tokens;
    a->sums.visited += visits.rows;
    if (!a->record) {
        a->part++;
        return;
    }
    while (next_recorded(a)) a->sums.n_other++; /* which are not made now */
    a->part++;
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static void put_text(
    const whatif_arm *a, const int32_t *ids, uint32_t n, base_buf *text, agent_token_map *map)
{
    *map = (agent_token_map){base_xcalloc(n ? n : 1, sizeof *map->end), n};
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *piece = a->engine->piece(a->engine->user, ids[i], &len);
        if (piece) base_buf_add(text, piece, len);
        map->end[i] = (uint32_t)text->len;
    }
}

static bool opens_answer(const whatif_step *t)
{
    static const char ending[] = "+assistant";
    const size_t n = t->label ? strlen(t->label) : 0;
    if (kv_origin_is_written(t->text.origin)) return true;
    return t->text.origin == KV_ORIGIN_SCAFFOLD && n >= sizeof ending - 1 &&
           !strcmp(t->label + (n - (sizeof ending - 1)), ending);
}

static int append_text(whatif_arm *a, const whatif_step *t, base_err *err)
{
    const agent_logged_run *r = &t->text;
    const kv_logged cut_short = {.of = r->of};
    kv_segment g = {.origin = r->origin,
        .turn = r->turn,
        .bulk = r->bulk,
        .whole = r->whole,
        .spans = r->spans,
        .n_spans = (uint32_t)r->n_spans,
        .queries = r->n_queries ? r->queries : NULL,
        .n_queries = (uint32_t)r->n_queries,
        .logged = r->of ? &cut_short : NULL};
    uint32_t *lines = NULL;
    if (r->origin != KV_ORIGIN_SCAFFOLD && !kv_origin_is_written(r->origin)) {
        base_buf text = {0};
        agent_token_map map;
        put_text(a, r->ids, r->n, &text, &map);
        g.lines = lines = agent__line_starts(&map, text.data ? text.data : "", text.len, &g.n_lines);
        free(map.end);
        base_buf_free(&text);
    }
    const bool wants = opens_answer(t);
    const int rc = kv_session_append(a->session, &g, r->ids, r->n, wants ? a->next : NULL, a->cancel, err);
    a->has_next = !rc && wants;
    free(lines);
    return rc;
}

/* As agent__repair asks (src/agent/sequence/repair.c). */
static int repair(whatif_arm *a, const whatif_step *t, base_err *err)
{
    uint32_t n, ends[AGENT_MAX_QUERIES], queries[AGENT_MAX_QUERIES], n_queries = 0;
    const int32_t *ids = kv_session_ids(a->session, &n);
    if (t->to > n || t->from >= t->to) return 0;
    base_buf text = {0};
    agent_token_map map;
    put_text(a, ids + t->from, t->to - t->from, &text, &map);
    const uint32_t n_ends = agent__pick_queries(text.data ? text.data : "", text.len, ends);
    for (uint32_t i = 0; i < n_ends; i++) {
        const uint32_t token = t->from + agent__token_at(&map, ends[i] - 1);
        if (!n_queries || queries[n_queries - 1] < token) queries[n_queries++] = token;
    }
    free(map.end);
    base_buf_free(&text);
    const kv_ask ask = {.from = t->from, .to = t->to, .queries = queries, .n_queries = n_queries};
    return kv_session_repair(a->session, &ask, a->cancel, err);
}

static kv_manual order_of(kv_action action)
{
    switch (action) {
    case KV_PROTECT: return KV_MANUAL_PIN;
    case KV_BAR: return KV_MANUAL_DROP;
    case KV_EVICT: return KV_MANUAL_EVICT;
    case KV_PROMOTE: return KV_MANUAL_PROMOTE;
    default: return KV_MANUAL_UNPIN;
    }
}

static int give_order(whatif_arm *a, const whatif_step *t, base_err *err)
{
    switch (t->kind) {
    case WHATIF_UNDO: return kv_session_undo_plan(a->session, err);
    case WHATIF_BUDGET: return a->keeps_budget ? 0 : kv_session_set_budget(a->session, t->limit, err);
    default: break;
    }
    if (t->cause == KV_CAUSE_STALE) return kv_session_mark_stale(a->session, t->from, t->to, err);
    if (t->cause == KV_CAUSE_FAILED) return kv_session_mark_failed(a->session, t->from, t->to, err);
    if (t->cause == KV_CAUSE_THOUGHT) return kv_session_mark_thought(a->session, t->from, t->to, err);
    return kv_session_manual(a->session, order_of(t->action), t->from, t->to, err);
}

/* What the cache refuses under other settings is no reason to end: it is told. */
static int try_order(whatif_arm *a, const whatif_step *t, base_err *err)
{
    base_err why = {0};
    const bool is_empty = t->kind == WHATIF_ORDER && t->from >= t->to;
    const int rc = is_empty ? base_fail(&why, BASE_E_NOT_FOUND, "the rows that were meant are not there")
                            : give_order(a, t, &why);
    if (rc == BASE_E_LIMIT || rc == BASE_E_STATE || rc == BASE_E_NOT_FOUND) {
        base_buf_printf(&a->sums.notes, "%s%s", a->sums.notes.len ? "; " : "", why.msg);
        return 0;
    }
    if (rc && err) *err = why;
    return rc;
}

int whatif_arm_do(whatif_arm *a, const whatif_step *t, base_err *err)
{
    const uint64_t start = base_clock_ns();
    int rc = 0;
    a->step = t;
    a->turn = t->turn;
    switch (t->kind) {
    case WHATIF_TURN:
        kv_session_set_turn(a->session, t->turn);
        kv_session_ids(a->session, &a->sums.n_before);
        break;
    case WHATIF_TEXT: rc = t->text.n ? append_text(a, t, err) : 0; break;
    case WHATIF_REPAIR:
        a->has_next = false;
        rc = repair(a, t, err);
        break;
    case WHATIF_ORDER:
    case WHATIF_UNDO:
    case WHATIF_BUDGET:
        a->has_next = false;
        rc = try_order(a, t, err);
        break;
    case WHATIF_REWIND:
        a->has_next = false;
        rc = kv_session_truncate(a->session, t->from, err);
        break;
    case WHATIF_ANSWER:
    case WHATIF_END: break;
    }
    a->sums.ns += base_clock_ns() - start;
    return rc;
}

/* Computes some of ids [0, n) ahead and takes them until the cache changes under them; returns how many. */
static int take_some(whatif_arm *a, const kv_segment *g, const int32_t *ids, uint32_t n, float *rows,
    uint32_t *ret_taken, base_err *err)
{
    const size_t n_vocab = a->engine->n_vocab;
    uint32_t taken = 0;
    int rc = kv_session_draft(a->session, g, ids, n, 0, rows, a->cancel, err);
    while (!rc && taken < n && kv_session_drafted(a->session, NULL)) {
        rc = kv_session_accept(a->session, g, rows + taken * n_vocab, a->cancel, err);
        if (!rc) taken++;
    }
    *ret_taken = taken;
    return rc;
}

int whatif_arm_force(
    whatif_arm *a, const whatif_step *t, uint32_t at, uint32_t n, float *logits, base_err *err)
{
    const uint64_t start = base_clock_ns();
    const size_t n_vocab = a->engine->n_vocab;
    const kv_segment g = {.origin = t->text.origin, .turn = t->text.turn};
    int rc = 0;
    a->step = t;
    a->turn = t->turn;
    if (!a->has_next) rc = kv_session_logits(a->session, a->next, a->cancel, err);
    memcpy(logits, a->next, n_vocab * sizeof *logits);
    float *rows = rc ? NULL : malloc(n * n_vocab * sizeof *rows);
    if (!rc && !rows) rc = base_fail(err, BASE_E_NOMEM, "no memory for %u rows of logits", n);
    for (uint32_t done = 0; !rc && done < n;) {
        uint32_t taken = 0;
        rc = take_some(a, &g, t->text.ids + at + done, n - done, rows, &taken, err);
        /* What stands behind the last of them is expected at the next, or of the next call. */
        for (uint32_t i = 0; !rc && i < taken; i++) {
            float *to = done + i + 1 < n ? logits + (done + i + 1) * n_vocab : a->next;
            memcpy(to, rows + i * n_vocab, n_vocab * sizeof *rows);
        }
        done += taken;
    }
    a->has_next = !rc;
    a->sums.n_written += n;
    free(rows);
    a->sums.ns += base_clock_ns() - start;
    return rc;
}

int whatif_arm_expect(whatif_arm *a, const float **ret, base_err *err)
{
    const uint64_t start = base_clock_ns();
    const int rc = a->has_next ? 0 : kv_session_logits(a->session, a->next, a->cancel, err);
    a->has_next = !rc;
    a->sums.ns += base_clock_ns() - start;
    *ret = a->next;
    return rc;
}

int whatif_arm_write(whatif_arm *a, kv_origin origin, int32_t id, bool is_last, base_err *err)
{
    const uint64_t start = base_clock_ns();
    const kv_segment g = {.origin = origin, .turn = a->turn};
    a->step = NULL;
    const int rc = kv_session_append(a->session, &g, &id, 1, is_last ? NULL : a->next, a->cancel, err);
    a->has_next = !rc && !is_last;
    a->sums.n_written += kv_origin_is_written(origin);
    a->sums.ns += base_clock_ns() - start;
    return rc;
}
