/*
 * The forward pass of a token that is there already: its queries (a repair by text whose queries were not
 * kept) or its logits (after a resume). It reads the rows that are active below it and writes its own into a
 * row that nobody sees.
 */
#include <stdlib.h>
#include <string.h>

#include "kv/core/state.h"
#include "kv/plan/apply.h"
#include "kv/plan/walk.h"
#include "kv/read/visit.h"

int kv__recompute(
    kv_session *s, uint32_t i, float *queries, float *logits, const atomic_bool *cancel, base_err *err)
{
    model_run *runs = NULL;
    kv_block *hidden = kv_block_new(&s->compute.shape, NULL);
    model_lane_list *lanes = kv__lists_before(s, i, s->table.n * MODEL_ROWS_BLOCK, 1, &runs);
    int rc = 0;
    if (!hidden || !lanes) rc = base_fail(err, BASE_E_NOMEM, "no memory to compute a token again");
    if (!rc) rc = kv__stand_at(s, i, cancel, err); /* before the spare place is taken */
    if (rc) goto out;
    const model_rows_view rows = kv__view_with(s, lanes, hidden);
    const uint32_t zero = 0;
    const model_reader *reader = NULL;
    const kv_stored_segment *part = kv__segment_at(s, i);
    if (part) rc = kv__reader_begin(s, &rows, part->origin, &s->ids[i], i, 1, &reader, err);
    if (rc) goto out;
    const model_capture capture = {.tokens = &zero, .n = 1, .queries = queries};
    model_batch batch = {
        .ids = &s->ids[i],
        .phases = &s->phases[i],
        .n = 1,
        .rows = &rows,
        .want = &zero,
        .n_want = logits ? 1 : 0,
        .logits = logits,
        .capture = queries ? &capture : NULL,
        .reader = reader,
        .cancel = cancel,
    };
    rc = kv__forward(s, &batch, i, KV_TO_LOOK, err);
    s->computed++;
out:
    free(lanes);
    free(runs);
    kv_block_unref(hidden);
    return rc;
}
