/*
 * A session's memory: the token sequence, its rows, and what of them the model may read.
 *
 * The sequence only grows (truncation serves cancel, rewind and prompt lookup). Tokens are appended with what
 * they are (kv_segment); an append computes them in batches of 512 and evicts when the policy says so, between
 * batches or once a message's question is complete; at a pause, kv_session_repair asks the newest signal which
 * evicted rows come back. Every change of the live lists is a kv_plan, handed to the observer before it is
 * applied. Words: docs/kv.md.
 *
 * Thread: the engine thread only.
 */
#ifndef KVIST_KV_SESSION_H
#define KVIST_KV_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kv/plan/plan.h"
#include "kv/types.h"
#include "model/forward/model.h"

/* ---- opening, copying, closing ---- */

/*
 * An empty session over a model, which must outlive it; the observer may be NULL. options are copied. kv_session_free.
 * BASE_E_USAGE: a policy or parameter that is not there; BASE_E_LIMIT: a budget too small for it; BASE_E_NOMEM.
 */
int kv_session_new(
    kv_session **ret, model *m, const kv_options *options, const kv_observer *observer, base_err *err);
void kv_session_free(kv_session *s);
/* A copy that shares every row (candidates, rewind); costs its own new rows only. It has no row file. */
int kv_session_fork(const kv_session *s, kv_session **ret, const kv_observer *observer, base_err *err);
/*
 * Opens what kv_session_save left. BASE_E_NOT_FOUND: no snapshot; BASE_E_FORMAT: damaged or of another model,
 * kernel or schedule, the sentence says which. Afterwards the next logits equal those of the saved session,
 * with 0 tokens computed.
 */
int kv_session_resume(
    kv_session **ret, model *m, const kv_options *options, const kv_observer *observer, base_err *err);

/* ---- text ---- */

/*
 * Appends and computes n tokens; evicts. last_logits ([n_vocab], may be NULL) receives the
 * logits behind the last token. On cancel nothing of the unfinished batch stays; what was finished stays
 * (kv_session_get_stats says how many tokens there are).
 */
int kv_session_append(kv_session *s, const kv_segment *segment, const int32_t *ids, uint32_t n,
    float *last_logits, const atomic_bool *cancel, base_err *err);
/* Gives up the tokens from n on (cancel, rewind). Evicted rows below n stay as they are. */
int kv_session_truncate(kv_session *s, uint32_t n, base_err *err);
/*
 * Logits behind the last token, [n_vocab]: those that the last append returned when it was asked for them
 * (they survive save and resume), else computed again from the rows without adding one.
 */
int kv_session_logits(kv_session *s, float *logits, const atomic_bool *cancel, base_err *err);
/* A turn begins: its USER segment is the request, and its rows are hard. */
void kv_session_set_turn(kv_session *s, uint32_t turn);
/*
 * Other spans for the segment that begins at token `at`, copied: what a request names is marked in text that
 * was there before it. They count from the next pass on.
 */
int kv_session_set_spans(kv_session *s, uint32_t at, const kv_span *spans, uint32_t n_spans, base_err *err);

/*
 * Prompt lookup. kv_session_draft computes n tokens (1..KV_DRAFT_MAX) behind the last one without adding
 * them; logits ([n - first][n_vocab]) receives what follows each of them but the `first`. kv_session_accept
 * then adds the next of them, one a call, exactly as kv_session_append of that one token would (epoch,
 * eviction, everything), last_logits being its own or NULL as there. What is not accepted never was: any
 * other change of the sequence forgets it, and so do an error and an eviction on the way, since what was
 * computed ahead read other rows. kv_session_drafted says how many are left, and their ids.
 */
int kv_session_draft(kv_session *s, const kv_segment *segment, const int32_t *ids, uint32_t n, uint32_t first,
    float *logits, const atomic_bool *cancel, base_err *err);
uint32_t kv_session_drafted(const kv_session *s, const int32_t **ret_ids);
int kv_session_accept(kv_session *s, const kv_segment *segment, const float *last_logits,
    const atomic_bool *cancel, base_err *err);
void kv_session_forget(kv_session *s); /* what was computed ahead */

/* ---- what leaves and comes back ---- */

/*
 * At a pause: the newest message or tool result says what it needs; evicted rows that it asks for come back,
 * at their index and phase. Nothing to do is fine. BASE_E_USAGE: tokens that are not there.
 */
int kv_session_repair(kv_session *s, const kv_ask *ask, const atomic_bool *cancel, base_err *err);
/*
 * Repairs listen to a model's retrieval heads (kv_options.heads_file). Would they help a session that has a budget,
 * began before they were known, and of which no row has left yet? Then they can still be set; later it goes on with
 * what it began with, so that its plans stay reproducible.
 */
bool kv_session_wants_heads(const kv_session *s);
void kv_session_set_heads(kv_session *s, const char *heads_file); /* where it wants them */

/* One eviction pass now, if the policy wants one (over budget); done by append itself between batches. */
int kv_session_evict(kv_session *s, base_err *err);
/* Whether append evicts by itself (it does, unless a log is being re-executed). */
void kv_session_set_automatic(kv_session *s, bool on);
/*
 * Acts on a plan, all or nothing: the observer sees it first, then live lists change. A plan of another
 * epoch, length or number of lanes is BASE_E_STATE. Re-executing a log: set `epoch` to kv_stats.epoch when
 * n_tokens is reached.
 */
int kv_session_apply(kv_session *s, const kv_plan *plan, base_err *err);
/* Takes the last plan back; BASE_E_NOT_FOUND when there is none. */
int kv_session_undo_plan(kv_session *s, base_err *err);

/* A person's hand on tokens [from, to). DROP bars: only PROMOTE by a person brings it back. */
int kv_session_manual(kv_session *s, kv_manual what, uint32_t from, uint32_t to, base_err *err);
/*
 * Tokens [from, to) leave now: stale: they are text of a file version that was replaced; failed (barred): an attempt that
 * did not work; thought (barred): one whose answer is there.
 */
int kv_session_mark_stale(kv_session *s, uint32_t from, uint32_t to, base_err *err);
int kv_session_mark_failed(kv_session *s, uint32_t from, uint32_t to, base_err *err);
int kv_session_mark_thought(kv_session *s, uint32_t from, uint32_t to, base_err *err);

/* ---- budget and policy ---- */

/* Refused (BASE_E_LIMIT) below its hard rows and 512 more, with the number. */
int kv_session_set_budget(kv_session *s, kv_limit limit, base_err *err);
/* BASE_E_LIMIT, with the sentence that names it, where a budget leaves too little beside all that is fixed. */
int kv_session_check_fixed(uint32_t n_fixed, uint32_t budget, base_err *err);
/*
 * Goes on under another policy, budget, repair, parameters and heads (those fields of options): what a
 * comparison over the same rows does with a fork. Evicts nothing by itself.
 */
int kv_session_set_policy(kv_session *s, const kv_options *options, base_err *err);
const char *kv_session_policy(const kv_session *s);

/* Every policy, and every parameter of all of them; static. */
const kv_policy_info *kv_policy_list(uint32_t *ret_n);
const kv_parameter_info *kv_parameter_list(uint32_t *ret_n);
void kv_policy_defaults(const char *name, base_buf *out); /* "w=32 kernel=7" of a policy of the list */
/* BASE_E_USAGE: there is no such policy, or "NAME=VALUE" is no parameter's; the sentence says what may be meant. */
int kv_policy_check(const char *name, base_err *err);
int kv_parameter_check(const char *pair, base_err *err);

/* ---- keeping it ---- */

/*
 * Writes rows that are not in the file yet and the manifest (live lists, reasons, pins, memory, schedule)
 * beside it, by rename. Cheap when little changed. ENOSPC and the like are errors; the session itself is
 * unharmed.
 */
int kv_session_save(kv_session *s, base_err *err);
/*
 * Gives back the places of rows that no token has any more (truncated, computed again): saves, then moves the
 * last rows into them. Changes no result. For idle time; kv_stats.file_waste says whether it is worth it. A
 * crash at any point leaves a snapshot that is whole.
 */
int kv_session_compact(kv_session *s, base_err *err);
/*
 * Writes the first n tokens' ids and rows where kv_options.prefix_file finds them: the fixed prompt, computed
 * once per model ever. Only a sequence that never had a hole may be shared: after the first eviction this is
 * BASE_E_STATE.
 */
int kv_session_save_prefix(kv_session *s, const char *path, uint32_t n, base_err *err);

/* ---- looking at it: all as of now ---- */

void kv_session_get_stats(
    const kv_session *s, kv_stats *ret); /* looks at every token: not for each of them */
const int32_t *kv_session_ids(const kv_session *s, uint32_t *ret_n);
uint32_t kv_session_room(const kv_session *s); /* tokens until n_ctx */

/* Token `index` (its place in the sequence); behind the end all says "nothing". */
void kv_session_why(const kv_session *s, uint32_t index, kv_why *ret);
/* How many of the lanes that read everything have token i active ([n_tokens] into ret). For strips; O(runs). */
void kv_session_active_lanes(const kv_session *s, uint32_t *ret);
/* Bit per token: active in this lane. [(n_tokens+63)/64] */
void kv_session_lane_bits(const kv_session *s, uint32_t lane, uint64_t *ret);
/*
 * Tokens that this lane's layer reads, the newest, whatever is active; 0: all that are. Lanes with a window are in no
 * count of lanes and rows.
 */
uint32_t kv_session_window(const kv_session *s, uint32_t lane);
/* Fills up to cap entries in the order of the sequence and returns how many there are. */
uint32_t kv_session_scores(const kv_session *s, kv_score *ret, uint32_t cap);
/* Fills up to cap, ascending, and returns how many sections there are; 0 when everything is read. */
uint32_t kv_session_sections(const kv_session *s, kv_section *ret, uint32_t cap);
/*
 * For idle time: what the next token of a message reads, in a session that is folded, is found out now (a long one that was just
 * opened takes some tenths of a second). Nothing that is read becomes other by it. Ends soon after *cancel (may be NULL) is
 * set; what goes wrong, the next token tells of.
 */
void kv_session_make_ready(kv_session *s, const atomic_bool *cancel);
/* Who visited since this was asked last; counts ([n_tokens], may be NULL): row-lanes by token. */
void kv_session_take_visits(kv_session *s, kv_visits *ret, uint32_t *counts);
/* core: of the spans' essential parts, else of their whole extents. Looks at every marked token. */
void kv_session_structure(const kv_session *s, bool core, kv_structure *ret);
const char *kv_structure_word(
    uint32_t kind); /* "call", "control", "return", "assign", "signature", "symbol" */
/* Hash of the computed ranges and applied plans so far: part of the cache state's identity. */
uint64_t kv_session_schedule_hash(const kv_session *s);

/* Pruned prefill. Where this model's prefill is cut, found at its first bulk, which is computed in full; NULL: not yet. */
const struct kv_pivot *kv_session_pivot(const kv_session *s);
/*
 * Layers from here on are not computed for this token: its rows there are `deferred`, and a plan that makes
 * them active computes them; 0: all are computed.
 */
uint32_t kv_session_cut(const kv_session *s, uint32_t token);
/* The layer before which fresh bulk would be cut now; 0: it would not. */
uint32_t kv_session_next_cut(const kv_session *s);
/* Is a cut asked for that this model has no room for? Its layers above must hold the states that wait there. */
bool kv_session_cannot_cut(const kv_session *s);
/* For the log: the lanes computed when the token's segment was appended; 0: all. */
uint32_t kv_session_lanes(const kv_session *s, uint32_t token);

#endif
