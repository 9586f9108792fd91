/*
 * What experiments ask of a session (kvist-bench and tests); the program itself includes none of it. All look
 * at a session or change it in ways that no user asks for. Engine thread.
 */
#ifndef KVIST_KV_LAB_H
#define KVIST_KV_LAB_H

#include "kv/core/signal.h"
#include "kv/session.h"

/*
 * The logits that would follow tokens `want` ([n_want], ascending) of n (at most 512) if they were appended;
 * nothing is. logits: [n_want][n_vocab].
 */
int kv_session_peek(kv_session *s, const kv_segment *segment, const int32_t *ids, uint32_t n,
    const uint32_t *want, uint32_t n_want, float *logits, base_err *err);

/*
 * Evicted rows below `to` by summaries of their pages (RepairKV's PageSummary, after Quest): pages of
 * `page_size` tokens in the order of the inner product of the signal's mean query and the page's largest keys,
 * mean over heads, until `n` evicted rows are there. Their bits are set in ret ([bits of n_tokens]).
 */
int kv_session_pages(kv_session *s, uint32_t to, const kv_signal *signal, uint32_t page_size, uint32_t n,
    uint64_t *ret, base_err *err);

/* What a token is, beside active or host: bits per token, [n_tokens]. */
enum {
    KV_TOKEN_PINNED = 1,
    KV_TOKEN_BARRED = 2,
    KV_TOKEN_STALE = 4,
    KV_TOKEN_HARD = 8,
    KV_TOKEN_SOFT = 16,
    KV_TOKEN_DEFERRED = 32
};
void kv_session_token_flags(const kv_session *s, uint8_t *ret);

/* How rows are put together for a level above the sketches. */
typedef enum kv_cluster_kind {
    KV_CLUSTER_PAGES,  /* rows that follow one another */
    KV_CLUSTER_LIKE,   /* rows of like keys: k-means */
    KV_CLUSTER_HALVES, /* rows of like keys, as many in each: halved along the direction that differs most */
    KV_CLUSTER_KINDS
} kv_cluster_kind;

typedef struct kv_cluster_way {
    kv_cluster_kind kind;
    uint32_t rows, chunk; /* of a cluster, on average, at least 4; rows that are put into clusters at once */
    bool spread;          /* a cluster is weighed by the variance of its keys too */
    bool stretched;       /* keys are compared with each dimension as large as queries make it */
} kv_cluster_way;

/*
 * Of the mass that the best 256 rows have for those who ask, what do the best 256 of the rows have that lie in
 * the clusters which seem heaviest, when those may hold `shares` of all rows? Rows between the first 64 and the
 * newest 1,024 tokens before asks, in every step-th lane.
 */
typedef struct kv_cluster_trial {
    const kv_cluster_way *ways;
    const double *shares;
    uint32_t n_ways, n_shares, step;
    double *mean,
        *worst; /* [n_ways][n_shares]: over lanes and the second half of the queries; least of a lane */
} kv_cluster_trial;
int kv_session_clusters(kv_session *s, const kv_signal *asks, const kv_cluster_trial *t, base_err *err);

/* The signal of what asks: at most `most` of its kept queries, of those named when some are. */
int kv_session_signal(kv_session *s, const kv_ask *ask, uint32_t most, kv_signal *ret, base_err *err);

/*
 * Asks the excerpt whose segment begins at token `at` a question by itself: *ret_surprise (may be NULL) is
 * the mean of -log p of its ids behind the first (exp of it: CodeComp's perplexity), and how its last 128
 * queries look at the excerpt's rows is kept for policies. The sequence is as before. n: 2 to 1,024.
 */
int kv_session_probe(
    kv_session *s, uint32_t at, const int32_t *ids, uint32_t n, double *ret_surprise, base_err *err);

/* Rows from `from` on, in whole blocks shared with nobody, become what the 8-bit tier would give back. */
int kv_session_round(kv_session *s, uint32_t from, base_err *err);

/*
 * A cache that does not fit: the oldest blocks beyond n_bytes lie in the nameless file of tier.c although they are
 * active (the session has a row file); what the system keeps of that file in memory is forgotten, before a step
 * (returns the bytes that lie there); it is asked to read all of it, in the order in which layers want it.
 */
int kv_session_offload(kv_session *s, uint64_t n_bytes, base_err *err);
uint64_t kv_session_forget_pages(kv_session *s);
void kv_session_announce(const kv_session *s);

/*
 * Finds where this model's prefill is cut from what the newest request's queries attend to, and writes
 * kv_options.pivot_file. A session under a policy that asks for it does so by itself at the first bulk of a
 * model. BASE_E_STATE when nothing was asked, or rows are missing.
 */
int kv_session_detect_pivot(kv_session *s, const atomic_bool *cancel, base_err *err);

/*
 * Of the attention that the newest request's last queries pay in the layers from layer_from on of `full`, the
 * share that goes to rows which are active in `pruned`, a session over the same tokens; mean over lanes.
 */
int kv_session_attention_kept(kv_session *full, const kv_session *pruned, uint32_t layer_from, double *ret,
    const atomic_bool *cancel, base_err *err);

/*
 * The share of the last token's attention that falls on what it read, mean over the lanes whose rows it chose
 * among, by a second pass over everything (experiments). BASE_E_STATE when nothing was chosen.
 */
int kv_session_recovered(kv_session *s, double *ret, base_err *err);

/*
 * Of the evicted rows that the last token would have visited by their exact keys (as many as it may visit, the heaviest
 * by mean share of its heads): how many it visited, how much of their mass that is, mean over the lanes that chose; the least
 * share of mass of a lane. BASE_E_STATE when it had nobody to choose from.
 */
typedef struct kv_found {
    double rows, mass, worst;
    uint32_t n_lanes;
} kv_found;
int kv_session_found(kv_session *s, kv_found *ret, base_err *err);

#endif
