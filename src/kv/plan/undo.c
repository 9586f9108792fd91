/* Taking the last plan back: a plan with the opposite flips, for the tokens that are still there. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"
#include "kv/session.h"

/* Bits of an old plan that still speak of this sequence, in words of today's length. */
static void copy_bits(uint64_t *to, const uint64_t *from, uint32_t n_from, uint32_t n_valid)
{
    const uint32_t n = n_valid < n_from ? n_valid : n_from;
    for (size_t w = 0; w < kv_bits_words(n); w++) to[w] = from[w] & kv_bits_mask(w, 0, n);
}

static uint64_t *copy_set(const uint64_t *from, uint32_t n_from, uint32_t n_valid, uint32_t n_words)
{
    if (!from) return NULL;
    uint64_t *to = base_xcalloc(n_words + 1, sizeof *to);
    copy_bits(to, from, n_from, n_valid);
    return to;
}

/* Can what the plan folded be taken back? Not where tokens were truncated inside of it since. */
static bool unfolds(const kv_session *s, const kv_plan *old)
{
    kv_fold fold = {.n = 0};
    int32_t *back = base_xcalloc((size_t)old->n_fold + 1, sizeof *back);
    for (uint32_t g = 0; g < old->n_fold; g++) back[g] = -old->fold[g];
    const bool fits = !kv_fold_copy(&fold, &s->fold, NULL) && kv_fold_change(&fold, back, old->n_fold) &&
                      kv_fold_is_valid(&fold, s->n);
    free(back);
    kv_fold_free(&fold);
    return fits;
}

int kv_session_undo_plan(kv_session *s, base_err *err)
{
    if (!s->n_journal) return base_fail(err, BASE_E_NOT_FOUND, "there is no plan to take back");
    kv_entry *entry = &s->journal[s->n_journal - 1];
    kv_plan *old = NULL;
    int rc = kv_plan_unpack(entry->blob.data, entry->blob.len, &old, err);
    if (rc) return rc;
    if (old->n_lanes != s->n_lanes) { /* a manifest's journal is foreign bytes */
        kv_plan_free(old);
        return base_fail(err, BASE_E_FORMAT, "the last plan is of a session with other lanes");
    }
    kv_plan *p = kv_plan_new(s->epoch, KV_CAUSE_MANUAL, s->n, s->n_lanes);
    if (!p) {
        kv_plan_free(old);
        return base_fail(err, BASE_E_NOMEM, "no memory to take a plan back");
    }
    const uint32_t n_valid = entry->n_valid < s->n ? entry->n_valid : s->n, n_words = kv_plan_words(p);
    for (uint32_t lane = 0; lane < s->n_lanes && !old->deferred; lane++)
        copy_bits(p->flips + (size_t)lane * n_words, old->flips + (size_t)lane * kv_plan_words(old),
            old->n_tokens, n_valid);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        for (uint32_t w = 0; w < n_words; w++) p->flips[(size_t)lane * n_words + w] &= ~s->lost[w];
    /* What the plan left below the cut is computed, also what was computed since and taken back. */
    for (uint32_t t = 0; old->deferred && t < n_valid && t < old->n_tokens; t++) {
        if (!kv_bits_get(old->deferred, t) || kv_bits_get(s->lost, t) || kv_bits_get(s->barred, t) ||
            kv_bits_get(s->stale, t))
            continue;
        for (uint32_t lane = kv_session_lanes(s, t); lane < s->n_lanes; lane++)
            if (!kv_bits_get(s->lists.lane[lane]->bits, t)) kv_bits_set(p->flips + (size_t)lane * n_words, t);
    }
    p->barred = copy_set(old->barred, old->n_tokens, n_valid, n_words);
    p->pinned = copy_set(old->pinned, old->n_tokens, n_valid, n_words);
    p->stale = copy_set(old->stale, old->n_tokens, n_valid, n_words);
    p->outshone = copy_set(old->outshone, old->n_tokens, n_valid, n_words);
    if (old->fold && unfolds(s, old)) {
        p->fold = base_xcalloc((size_t)old->n_fold + 1, sizeof *p->fold);
        p->n_fold = old->n_fold;
        for (uint32_t g = 0; g < p->n_fold; g++) p->fold[g] = -old->fold[g];
    }
    kv__describe_flips(s, p, NULL, KV_REASON_MANUAL, KV_REASON_MANUAL);
    rc = kv__apply(s, p, false, NULL, err);
    if (!rc) {
        base_buf_free(&entry->blob);
        s->n_journal--;
    }
    kv_plan_free(old);
    kv_plan_free(p);
    return rc;
}
