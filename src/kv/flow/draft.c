/*
 * Tokens computed ahead (prompt lookup). Their rows lie in the table's slots behind the sequence and in no
 * list, so nobody can see them; accepting one puts its row into the lists and publishes it. Since a row's
 * bits do not depend on the batch it was computed in, an accepted token is the one that an append would have
 * made.
 */
#include <stdlib.h>

#include "kv/core/groups.h"
#include "kv/core/state.h"
#include "kv/evict/evict.h"
#include "kv/flow/flow.h"
#include "kv/plan/walk.h"
#include "kv/prune/prune.h"
#include "kv/read/visit.h"
#include "kv/session.h"

uint32_t kv_session_drafted(const kv_session *s, const int32_t **ret_ids)
{
    bool valid = s->draft.epoch == s->epoch;
    if (ret_ids) *ret_ids = s->draft.ids + s->draft.at;
    return valid ? s->draft.n - s->draft.at : 0;
}

void kv_session_forget(kv_session *s)
{
    s->draft.n = s->draft.at;
}

int kv__compute_ahead(kv_session *s, const kv_segment *segment, model_batch *batch, const int32_t *ids,
    uint32_t n, uint32_t phase, uint32_t *phases, base_err *err)
{
    int rc = kv__check_append(s, segment, ids, n, err);
    if (!rc && s->pending != KV_NO_ROW) rc = kv__settle(s, batch->cancel, err);
    if (!rc && s->automatic) rc = kv__fold(s, batch->cancel, err);
    if (!rc) rc = kv__keep_state(s, segment, batch->cancel, err);
    if (!rc) rc = kv__stand_at(s, s->n, batch->cancel, err);
    if (!rc) rc = kv__reserve(s, s->n + n, err);
    if (!rc) rc = kv_table_make_writable(&s->table, s->n, s->n + n, err);
    if (!rc) rc = kv_lists_append(&s->lists, n, err);
    if (rc) {
        kv__withdraw(s);
        return rc;
    }
    for (uint32_t i = 0; i < n; i++) phases[i] = phase + i;
    const model_rows_view rows = kv__view(s);
    batch->ids = ids;
    batch->phases = phases;
    batch->n = n;
    batch->rows = &rows;
    batch->only = segment->only;
    rc = kv__reader_begin(s, &rows, segment->origin, ids, s->n, n, &batch->reader, err);
    if (!rc) rc = kv__forward(s, batch, s->n, KV_TO_DRAFT, err);
    if (rc)
        kv__withdraw(s);
    else
        kv_lists_truncate(&s->lists, s->n);
    return rc;
}

int kv_session_draft(kv_session *s, const kv_segment *segment, const int32_t *ids, uint32_t n, uint32_t first,
    float *logits, const atomic_bool *cancel, base_err *err)
{
    uint32_t phases[KV_DRAFT_MAX], all[KV_DRAFT_MAX];
    s->draft.n = s->draft.at = 0;
    if (!n || n > KV_DRAFT_MAX || first >= n)
        return base_fail(err, BASE_E_USAGE, "a draft of %u tokens, logits from the %uth on", n, first);
    for (uint32_t i = 0; i < n; i++) all[i] = i;
    model_batch batch = {.want = all + first, .n_want = n - first, .logits = logits, .cancel = cancel};
    const int rc = kv__compute_ahead(s, segment, &batch, ids, n, kv__next_phase(s), phases, err);
    if (rc) return rc;
    for (uint32_t i = 0; i < n; i++) s->draft.ids[i] = ids[i];
    s->draft.n = n;
    s->draft.epoch = s->epoch;
    return 0;
}

int kv_session_accept(kv_session *s, const kv_segment *segment, const float *last_logits,
    const atomic_bool *cancel, base_err *err)
{
    const int32_t *ids;
    if (!kv_session_drafted(s, &ids))
        return base_fail(err, BASE_E_STATE, "no token was computed ahead of this place");
    int rc = kv_lists_append(&s->lists, 1, err);
    if (rc) {
        kv_session_forget(s);
        return rc;
    }
    if (segment->turn > s->turn) s->turn = segment->turn;
    kv__open_segment(s, segment);
    kv__publish(s, ids, 1);
    s->draft.at++;
    s->draft.epoch = s->epoch;
    s->computed++;
    if (last_logits) kv__keep_logits(s, last_logits);
    if (s->automatic) rc = kv__evict(s, NULL, cancel, err);
    if (!rc && s->automatic) rc = kv__fold(s, cancel, err);
    if (rc) kv_session_forget(s);
    return rc;
}
