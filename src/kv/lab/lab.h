/*
 * What experiments ask of a session (kvist-bench and tests); the program itself includes none of it. All look
 * at a session or change it in ways that no user asks for. Engine thread.
 */
#ifndef KVIST_KV_LAB_H
#define KVIST_KV_LAB_H

#include "kv/repair/ask.h"
#include "kv/session.h"

/*
 * The logits that would follow tokens `want` ([n_want], ascending) of n (at most 512) if they were appended;
 * nothing is. logits: [n_want][n_vocab].
 */
int kv_session_peek(kv_session *s, const kv_segment *segment, const int32_t *ids, uint32_t n,
    const uint32_t *want, uint32_t n_want, float *logits, const atomic_bool *cancel, base_err *err);

/* kv_session_repair as an experiment wants it (ask.h). */
int kv_session_repair_by(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries,
    uint32_t n_queries, const kv_ask *ask, const atomic_bool *cancel, base_err *err);

/*
 * Evicted rows below `to` by summaries of their pages (RepairKV's PageSummary, after Quest): pages of
 * `page_size` tokens in the order of the inner product of the signal's mean query and the page's largest keys,
 * mean over heads, until `n` evicted rows are there. Their bits are set in ret ([bits of n_tokens]).
 */
int kv_session_pages(kv_session *s, uint32_t to, const kv_signal *signal, uint32_t page_size, uint32_t n,
    uint64_t *ret, base_err *err);

/* The signal of [from, to): at most `most` of its kept queries, of those named in `queries` when some are. */
int kv_session_signal(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries, uint32_t n_queries,
    uint32_t most, kv_signal *ret, base_err *err);

/*
 * Asks the excerpt whose segment begins at token `at` a question by itself: *ret_surprise (may be NULL) is
 * the mean of -log p of its ids behind the first (exp of it: CodeComp's perplexity), and how its last 128
 * queries look at the excerpt's rows is kept for policies. The sequence is as before. n: 2 to 1,024.
 */
int kv_session_probe(kv_session *s, uint32_t at, const int32_t *ids, uint32_t n, double *ret_surprise,
    const atomic_bool *cancel, base_err *err);

/* Rows from `from` on, in whole blocks shared with nobody, become what the 8-bit tier would give back. */
int kv_session_round(kv_session *s, uint32_t from, base_err *err);

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
int kv_session_recovered(kv_session *s, double *ret, const atomic_bool *cancel, base_err *err);

#endif
