/*
 * A session's life: made, appended to, drafted ahead. What the rest of the cache decides is asked for here.
 */
#ifndef KVIST_KV_FLOW_H
#define KVIST_KV_FLOW_H

#include "kv/core/state.h"

/* session.c: an empty session with everything allocated. */
int kv__session_allocate(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err);

/* ---- stage.c: the steps of an append, in their order ---- */

/* Does a segment of these n tokens fit? BASE_E_LIMIT, BASE_E_USAGE. Nothing is changed. */
int kv__check_append(const kv_session *s, const kv_segment *g, const int32_t *ids, uint32_t n, base_err *err);
/* Of a model that keeps a state: keeps the one in front of this segment, where a rewind may go back to. */
int kv__keep_state(kv_session *s, const kv_segment *g, const atomic_bool *cancel, base_err *err);
/* Begins the segment's record behind the last token. */
void kv__open_segment(kv_session *s, const kv_segment *g);
/* The rows that were computed behind the lists (staged) become part of the sequence. */
void kv__publish(kv_session *s, const int32_t *ids, uint32_t n);
/* The opposite: the staged rows never were. */
void kv__withdraw(kv_session *s);
void kv__keep_logits(kv_session *s, const float *logits); /* [n_vocab] behind the last token */

/*
 * draft.c: computes n tokens behind the sequence, the first at `phase`, into slots that no list names yet. phases
 * ([n]): room that must last as long as the batch.
 */
int kv__compute_ahead(kv_session *s, const kv_segment *segment, model_batch *batch, const int32_t *ids,
    uint32_t n, uint32_t phase, uint32_t *phases, base_err *err);

#endif
