/*
 * A session's life: made, appended to, drafted ahead. What the rest of the cache decides is asked for here.
 */
#ifndef KVIST_KV_FLOW_H
#define KVIST_KV_FLOW_H

#include "kv/core/state.h"

/* session.c: an empty session with everything allocated. */
int kv__session_allocate(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err);

/*
 * stage.c: the steps of an append. A segment that does not fit is an error; its record is opened behind the
 * last token (before which a state is kept, where there are states and that is a place to go back to); the
 * rows are staged behind the lists; published, they are part of the sequence, withdrawn, they never were.
 */
int kv__check_append(const kv_session *s, const kv_segment *g, const int32_t *ids, uint32_t n, base_err *err);
int kv__keep_state(kv_session *s, const kv_segment *g, const atomic_bool *cancel, base_err *err);
void kv__open_segment(kv_session *s, const kv_segment *g);
void kv__publish(kv_session *s, const int32_t *ids, uint32_t n);
void kv__withdraw(kv_session *s);
void kv__keep_logits(kv_session *s, const float *logits); /* [n_vocab] behind the last token */

/* draft.c: computes n tokens behind the sequence, from a phase on, into slots that no list names. */
int kv__compute_ahead(kv_session *s, const kv_segment *segment, model_batch *batch, const int32_t *ids,
    uint32_t n, uint32_t phase, uint32_t *phases, base_err *err);

#endif
