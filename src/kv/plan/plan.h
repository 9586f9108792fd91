/*
 * A plan: which rows change state, in which lanes, and why. Data: printed, logged, compared, replayed and
 * tested without a model; kv__apply is the only code that acts on one, and refuses a plan of another epoch.
 */
#ifndef KVIST_KV_PLAN_H
#define KVIST_KV_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kv/types.h"

const char *kv_reason_word(kv_reason r);

typedef enum kv_action {
    KV_KEEP,
    KV_EVICT,
    KV_PROMOTE,
    KV_PROTECT,
    KV_BAR,
    KV_DEFER,
    KV_N_ACTIONS
} kv_action;
const char *kv_action_word(kv_action a); /* "keep", "evict", "promote", "protect", "bar", "defer" */

/* What made the plan. */
typedef enum kv_cause {
    KV_CAUSE_EVICT,
    KV_CAUSE_REPAIR,
    KV_CAUSE_MANUAL,
    KV_CAUSE_STALE,
    KV_CAUSE_FAILED,
    KV_CAUSE_PRESSURE,
    KV_CAUSE_PRUNE,  /* fresh bulk: which of it goes above the cut */
    KV_CAUSE_ANSWER, /* in logs of before every token was visited: an answer was computed again */
    KV_CAUSE_FOLD,   /* old rows are read from nearer (core/fold.h) */
    KV_CAUSE_THOUGHT /* the model's template leaves thoughts out behind the answer */
} kv_cause;
const char *kv_cause_word(kv_cause c);

/*
 * Tokens [from, to) with one action and one reason in `lanes` of the session's lanes (aggregated over lanes).
 */
typedef struct kv_plan_run {
    uint32_t from, to;
    uint8_t action, reason;
    uint32_t lanes;
} kv_plan_run;

struct kv_plan {
    uint64_t epoch; /* of the sequence that it was made for */
    kv_cause cause;
    uint32_t n_tokens, n_lanes;
    kv_plan_run *runs; /* ascending by from */
    uint32_t n_runs;
    /* Rows whose active state flips, per lane: [n_lanes][(n_tokens + 63) / 64] bits. */
    uint64_t *flips;
    uint64_t *barred; /* [(n_tokens + 63) / 64] tokens whose barred state flips, all lanes; NULL: none */
    uint64_t *pinned; /* the same for pins; NULL: none */
    uint64_t *stale;  /* the same for text of a replaced file version; NULL: none */
    /*
     * Rows [replay_from, n_tokens) are computed again over what is active then (a repair whose signal was
     * computed over the old holes; an answer that only read its lists); 0: none.
     */
    uint32_t replay_from;
    /* the same for rows given up for ever (host tier over its limit); only ever set; NULL: none */
    uint64_t *lost;
    /*
     * of cause prune: tokens whose upper layers stay uncomputed (taking the plan back computes them); NULL:
     * none
     */
    uint64_t *deferred;
    /* [n_fold] how the gap of each group of tokens changes (core/fold.h); NULL: none does */
    int32_t *fold;
    uint32_t n_fold;
    /* of cause repair: tokens whose outshone state flips (repair/choose.h), all lanes; NULL: none */
    uint64_t *outshone;
    uint32_t evicted, promoted; /* rows per lane, mean, rounded */
    double score_ms, plan_ms;   /* what it cost; not part of the plan's identity */
};

void kv_plan_free(kv_plan *p); /* NULL is fine */
/* A plan without flips over n_tokens in n_lanes; NULL when memory is gone or the size is absurd. */
kv_plan *kv_plan_new(uint64_t epoch, kv_cause cause, uint32_t n_tokens, uint32_t n_lanes);
static inline uint32_t kv_plan_words(const kv_plan *p)
{
    return (p->n_tokens + 63) / 64;
}
/* Adds a run; it joins the last one when they touch and agree in action, reason and (nearly) lanes. */
void kv_plan_add_run(
    kv_plan *p, uint32_t from, uint32_t to, kv_action action, kv_reason reason, uint32_t lanes);
uint32_t kv_plan_lost(const kv_plan *p);     /* tokens that it gives up for ever */
uint32_t kv_plan_deferred(const kv_plan *p); /* tokens that it leaves below the cut */
/* Tokens below this are folded further by it; 0: none is. */
uint32_t kv_plan_folded_to(const kv_plan *p);
bool kv_plan_is_empty(const kv_plan *p); /* flips nothing and computes nothing again */

/* The log's blob: per-lane XOR deltas, run-length coded. Same flips, same bytes, on every machine. */
void kv_plan_pack(const kv_plan *p, base_buf *out);
/* All but runs and times from a blob; any bytes are safe, what is not a plan is BASE_E_FORMAT. */
int kv_plan_unpack(const void *bytes, size_t n, kv_plan **ret, base_err *err);

#endif
