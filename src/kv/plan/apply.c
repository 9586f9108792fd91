/* Carrying out a plan: the only code that changes live lists, except by appending and truncating. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"
#include "kv/plan/walk.h"
#include "kv/read/reading.h"
#include "kv/read/visit.h"

static int compare_runs(const void *a, const void *b)
{
    const kv_plan_run *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x->action > y->action) - (x->action < y->action);
}

static void sort_runs(kv_plan *p)
{
    if (p->n_runs) qsort(p->runs, p->n_runs, sizeof *p->runs, compare_runs);
}

void kv__describe_flips(
    const kv_session *s, kv_plan *p, const uint8_t *reasons, kv_reason evict, kv_reason promote)
{
    const uint32_t n_words = kv_plan_words(p);
    uint32_t *down = base_xcalloc((size_t)p->n_tokens + 1, sizeof *down),
             *up = base_xcalloc((size_t)p->n_tokens + 1, sizeof *up);
    uint64_t n_down = 0, n_up = 0;
    for (uint32_t lane = 0; lane < p->n_lanes; lane++) {
        const uint64_t *flips = p->flips + (size_t)lane * n_words, *active = s->lists.lane[lane]->bits;
        if (kv__window(s, lane)) continue;
        for (size_t i = kv_bits_next(flips, 0, p->n_tokens, true); i < p->n_tokens;
             i = kv_bits_next(flips, i + 1, p->n_tokens, true)) {
            if (kv_bits_get(active, i)) {
                down[i]++;
                n_down++;
            } else {
                up[i]++;
                n_up++;
            }
        }
    }
    for (uint32_t i = 0; i < p->n_tokens; i++)
        if (down[i])
            kv_plan_add_run(p, i, i + 1, KV_EVICT,
                reasons && reasons[i] < KV_N_REASONS ? (kv_reason)reasons[i] : evict, down[i]);
    for (uint32_t i = 0; i < p->n_tokens; i++)
        if (up[i])
            kv_plan_add_run(p, i, i + 1, KV_PROMOTE,
                reasons && reasons[i] < KV_N_REASONS ? (kv_reason)reasons[i] : promote, up[i]);
    p->evicted = (uint32_t)((n_down + s->n_whole / 2) / s->n_whole);
    p->promoted = (uint32_t)((n_up + s->n_whole / 2) / s->n_whole);
    sort_runs(p);
    free(down);
    free(up);
}

static void flip_flags(uint64_t *flags, const uint64_t *flips, uint32_t n_words)
{
    for (uint32_t w = 0; flips && w < n_words; w++) flags[w] ^= flips[w];
}

/*
 * Before anything is computed by the plan: the message that it computes again is not visited by what it outshines. A
 * second time takes it back.
 */
static void flip_outshone(kv_session *s, const kv_plan *p)
{
    if (!p->outshone) return;
    flip_flags(s->outshone, p->outshone, kv_plan_words(p));
    kv__visit_replanned(s);
}

static void journal_push(kv_session *s, const base_buf *blob)
{
    if (s->n_journal == KV_JOURNAL) {
        base_buf_free(&s->journal[0].blob);
        memmove(&s->journal[0], &s->journal[1], (KV_JOURNAL - 1) * sizeof s->journal[0]);
        s->n_journal--;
    }
    kv_entry *entry = &s->journal[s->n_journal++];
    *entry = (kv_entry){.n_valid = s->n};
    base_buf_add(&entry->blob, blob->data, blob->len);
}

/* Is a row of [from, n) not active in some lane? */
static bool has_hidden(const kv_lists *lists, uint32_t n_lanes, uint32_t from, uint32_t n)
{
    for (uint32_t lane = 0; lane < n_lanes; lane++)
        if (kv_bits_next(lists->lane[lane]->bits, from, n, false) < n) return true;
    return false;
}

/*
 * Flips and computes the newest rows again: whatever fails or is cancelled, lists and rows are as they were.
 */
static int flip_and_replay(kv_session *s, const kv_plan *p, const atomic_bool *cancel, base_err *err)
{
    kv_lists next;
    int rc = kv_lists_copy(&next, &s->lists, err);
    if (rc) return rc;
    rc = kv_lists_flip(&next, p->flips, err);
    if (!rc && (p->replay_from >= s->n || has_hidden(&next, s->n_lanes, p->replay_from, s->n)))
        rc = base_fail(err, BASE_E_STATE, "a plan computes tokens again whose rows are not active");
    if (!rc) rc = kv__replay(s, &next, p->replay_from, cancel, err);
    if (!rc) { /* the plan is told before anything of it is true */
        if (s->observer.plan) s->observer.plan(s->observer.user, p);
        const kv_lists old = s->lists;
        s->lists = next;
        next = old;
        const uint32_t again[] = {p->replay_from, KV_EVENT_COMPUTED_AGAIN};
        s->schedule = base_hash64(again, sizeof again, s->schedule);
    }
    kv_lists_fini(&next);
    return rc;
}

/* Rows in 8 bits become F16 before a lane reads them. */
static int unpack_promoted(kv_session *s, const kv_plan *p, base_err *err)
{
    const uint32_t n_words = kv_plan_words(p);
    int rc = 0;
    for (uint32_t w = 0; w < n_words && !rc; w++) {
        if (!s->table.packed[w * 64 / MODEL_ROWS_BLOCK]) continue;
        uint64_t promoted = 0;
        for (uint32_t lane = 0; lane < s->n_lanes; lane++)
            promoted |= p->flips[(size_t)lane * n_words + w] & ~s->lists.lane[lane]->bits[w];
        if (promoted) rc = kv_table_unpack(&s->table, w * 64, w * 64 + 1, err);
    }
    return rc;
}

/* Has the token a flip in a lane where its row is not computed? */
static bool is_uncomputed(const kv_session *s, const kv_plan *p, uint32_t t)
{
    const uint32_t n_words = kv_plan_words(p), first = (uint32_t)s->cut[t] * s->compute.shape.n_head_kv;
    for (uint32_t lane = first; s->cut[t] && lane < s->n_lanes; lane++)
        if (kv_bits_get(p->flips + (size_t)lane * n_words, t)) return true;
    return false;
}

bool kv__plan_computes(const kv_session *s, const kv_plan *p)
{
    for (uint32_t t = 0; t < s->n; t++)
        if (is_uncomputed(s, p, t)) return true;
    return false;
}

/* Tokens that the plan makes active in lanes where they are not computed yet. NULL: none. */
static int find_uncomputed(const kv_session *s, const kv_plan *p, uint64_t **ret, base_err *err)
{
    const uint32_t n_words = kv_plan_words(p);
    *ret = NULL;
    for (uint32_t t = 0; t < s->n; t++) {
        if (!is_uncomputed(s, p, t)) continue;
        if (!*ret) *ret = calloc(n_words + 1, sizeof **ret);
        if (!*ret) return base_fail(err, BASE_E_NOMEM, "no memory to compute rows above the cut");
        kv_bits_set(*ret, t);
    }
    return 0;
}

/* Makes these tokens active in every layer above their cut, whatever the plan wants there. */
static int make_whole(const kv_session *s, const uint64_t *tokens, kv_lists *lists, base_err *err)
{
    const size_t n_words = kv_bits_words(s->n);
    uint64_t *flips = calloc(n_words * s->n_lanes + 1, sizeof *flips);
    if (!flips) return base_fail(err, BASE_E_NOMEM, "no memory to compute rows above the cut");
    for (size_t t = kv_bits_next(tokens, 0, s->n, true); t < s->n;
         t = kv_bits_next(tokens, t + 1, s->n, true))
        for (uint32_t lane = (uint32_t)s->cut[t] * s->compute.shape.n_head_kv; lane < s->n_lanes; lane++)
            if (!kv_bits_get(lists->lane[lane]->bits, t)) kv_bits_set(flips + lane * n_words, t);
    const int rc = kv_lists_flip(lists, flips, err);
    free(flips);
    return rc;
}

/* Flips, and computes what becomes active for the first time. All or nothing, as above. */
static int flip_and_compute(
    kv_session *s, const kv_plan *p, const uint64_t *tokens, const atomic_bool *cancel, base_err *err)
{
    kv_lists next = {0}, whole = {0};
    int rc = kv_lists_copy(&next, &s->lists, err);
    if (!rc) rc = kv_lists_flip(&next, p->flips, err);
    if (!rc) rc = kv_lists_copy(&whole, &next, err);
    if (!rc) rc = make_whole(s, tokens, &whole, err);
    if (!rc) rc = kv__compute_deferred(s, &whole, tokens, cancel, err);
    if (!rc) {
        if (s->observer.plan) s->observer.plan(s->observer.user, p);
        if (p->cause != KV_CAUSE_PRUNE) s->computed_above += kv_bits_count(tokens, kv_bits_words(s->n));
        const kv_lists old = s->lists;
        s->lists = next;
        next = old;
    }
    kv_lists_fini(&next);
    kv_lists_fini(&whole);
    return rc;
}

static int flip(kv_session *s, const kv_plan *p, const atomic_bool *cancel, base_err *err)
{
    uint64_t *tokens = NULL;
    int rc = find_uncomputed(s, p, &tokens, err);
    if (!rc && tokens)
        rc = p->replay_from ? base_fail(err, BASE_E_STATE,
                                  "a plan computes a message again and rows above the cut at once")
                            : flip_and_compute(s, p, tokens, cancel, err);
    else if (!rc && p->replay_from)
        rc = flip_and_replay(s, p, cancel, err);
    else if (!rc) {
        if (s->observer.plan) s->observer.plan(s->observer.user, p);
        rc = kv_lists_flip(&s->lists, p->flips, err);
    }
    free(tokens);
    return rc;
}

/* The session's fold as the plan makes it. */
static int change_fold(const kv_session *s, const kv_plan *p, kv_fold *ret, base_err *err)
{
    int rc = kv_fold_copy(ret, &s->fold, err);
    if (!rc && (!kv_fold_change(ret, p->fold, p->n_fold) || !kv_fold_is_valid(ret, s->n)))
        rc = base_fail(err, BASE_E_STATE, "a plan's fold does not fit the rows that are there");
    if (!rc && !kv__is_endless(s))
        rc = base_fail(err, BASE_E_STATE, "a plan folds rows of a session that has an end");
    if (rc) kv_fold_free(ret);
    return rc;
}

static int check_fits(const kv_session *s, const kv_plan *p, base_err *err)
{
    if (p->epoch != s->epoch || p->n_tokens != s->n || p->n_lanes != s->n_lanes)
        return base_fail(err, BASE_E_STATE,
            "a plan for epoch %llu (%u tokens, %u lanes) does not fit epoch %llu (%u tokens, %u lanes)",
            (unsigned long long)p->epoch, p->n_tokens, p->n_lanes, (unsigned long long)s->epoch, s->n,
            s->n_lanes);
    const uint32_t n_words = kv_plan_words(p);
    for (uint32_t w = 0; w < n_words; w++)
        for (uint32_t lane = 0; lane < s->n_lanes; lane++)
            if (p->flips[(size_t)lane * n_words + w] & s->lost[w])
                return base_fail(
                    err, BASE_E_STATE, "a plan brings rows back that were given up (host tier full)");
    return 0;
}

/* What the plan says of tokens: their flags, and the last thing that happened to each. */
static void mark_tokens(kv_session *s, const kv_plan *p)
{
    const uint32_t n_words = kv_plan_words(p);
    flip_flags(s->barred, p->barred, n_words);
    flip_flags(s->pinned, p->pinned, n_words);
    flip_flags(s->stale, p->stale, n_words);
    if (p->lost) kv__bury(s, p->lost);
    for (uint32_t k = 0; k < p->n_runs; k++)
        for (uint32_t i = p->runs[k].from; i < p->runs[k].to && i < s->n; i++) {
            s->tokens[i].last_action = p->runs[k].action;
            s->tokens[i].last_reason = p->runs[k].reason;
            s->tokens[i].last_turn = s->turn;
        }
}

static void remember(kv_session *s, const kv_plan *p)
{
    base_buf blob = {0};
    kv_plan_pack(p, &blob);
    journal_push(s, &blob);
    base_buf_free(&blob);
}

/*
 * The identity of a cache state is which rows were readable when each later row was computed, so it takes up
 * the flips at their place in the sequence, and not the epoch, which counts operations.
 */
static void extend_schedule(kv_session *s, const kv_plan *p)
{
    const uint32_t at[] = {p->n_tokens, p->n_lanes}, n_words = kv_plan_words(p);
    s->schedule = base_hash64(at, sizeof at, s->schedule + 1);
    s->schedule = base_hash64(p->flips, (size_t)n_words * p->n_lanes * sizeof *p->flips, s->schedule);
    if (p->fold) s->schedule = base_hash64(p->fold, p->n_fold * sizeof *p->fold, s->schedule);
    if (p->outshone) s->schedule = base_hash64(p->outshone, n_words * sizeof *p->outshone, s->schedule);
}

int kv__apply(kv_session *s, const kv_plan *p, bool undoable, const atomic_bool *cancel, base_err *err)
{
    kv_fold fold = {.n = 0};
    int rc = check_fits(s, p, err);
    if (rc) return rc;
    if (kv_plan_is_empty(p)) return 0;
    rc = kv__bring_state(s, cancel, err); /* over the lists that its tokens read */
    if (!rc && p->fold) rc = change_fold(s, p, &fold, err);
    if (!rc) rc = unpack_promoted(s, p, err);
    if (!rc) {
        flip_outshone(s, p);
        rc = flip(s, p, cancel, err);
        if (rc) flip_outshone(s, p);
    }
    if (rc) {
        kv_fold_free(&fold);
        return rc;
    }
    if (p->fold) {
        kv_fold_free(&s->fold);
        s->fold = fold;
        s->holed = true; /* what is computed from here on reads other distances */
    }
    mark_tokens(s, p);
    if (undoable) remember(s, p);
    for (uint32_t lane = 0; lane < s->n_lanes && !s->holed; lane++)
        s->holed = s->lists.view[lane].n_rows < s->n;
    extend_schedule(s, p);
    s->sketched_to = s->n;
    kv_state_drop(&s->states, &s->states.look); /* made of what was active before */
    s->epoch++;
    kv__reading_promoted(s);
    kv__visit_replanned(s);
    kv__bring(s);
    return 0;
}
