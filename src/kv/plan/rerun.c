/*
 * The newest rows computed again over other lists: a repair with signal=replay does that to the message that
 * asked (RepairKV uses the first pass of a message for its queries only). Logits behind them are not computed,
 * since text follows. The new rows are made in copies of their blocks, so a cancel leaves the old ones.
 */
#include <stdlib.h>

#include "kv/core/state.h"
#include "kv/plan/apply.h"
#include "kv/plan/walk.h"
#include "kv/read/reading.h"
#include "kv/read/visit.h"

static int forward_batch(kv_session *s, kv_lists *lists, uint32_t n, const atomic_bool *cancel, base_err *err)
{
    uint32_t phases[KV_BATCH];
    const uint32_t from = lists->n_tokens;
    for (uint32_t i = 0; i < n; i++) phases[i] = s->phases[from + i];
    int rc = kv_lists_append(lists, n, err);
    if (rc) return rc;
    const model_rows_view rows = kv__view_of(s, lists->view);
    const model_reader *reader = NULL;
    rc = kv__reader_begin(s, &rows, kv__segment_at(s, from)->origin, s->ids + from, from, n, &reader, err);
    if (rc) return rc;
    model_batch batch = {
        .ids = s->ids + from, .phases = phases, .n = n, .rows = &rows, .reader = reader, .cancel = cancel};
    s->computed += n;
    return kv__forward(s, &batch, from, KV_TO_REPLACE, err);
}

int kv__replay(kv_session *s, kv_lists *lists, uint32_t from, const atomic_bool *cancel, base_err *err)
{
    const uint32_t first = from / MODEL_ROWS_BLOCK, n_blocks = s->table.n - first;
    kv_block **old = calloc(n_blocks + 1, sizeof(kv_block *));
    if (!old) return base_fail(err, BASE_E_NOMEM, "no memory to compute tokens again");
    for (uint32_t b = 0; b < n_blocks; b++) old[b] = kv_block_ref(s->table.blocks[first + b]);
    int rc = kv__stand_at(s, from, cancel, err);
    if (!rc) rc = kv_table_make_writable(&s->table, from, s->n, err);
    kv_lists_truncate(lists, from);
    while (!rc && lists->n_tokens < s->n) {
        const uint32_t left = s->n - lists->n_tokens;
        rc = forward_batch(s, lists, left < KV_BATCH ? left : KV_BATCH, cancel, err);
    }
    for (uint32_t b = 0; b < n_blocks; b++) {
        if (!rc) {
            kv_block_unref(old[b]);
            continue;
        }
        kv_block_unref(s->table.blocks[first + b]);
        s->table.blocks[first + b] = old[b];
        kv_table_show(&s->table, first + b);
    }
    for (uint32_t i = from; i < s->n && !rc; i++)
        s->file_row[i] = KV_NO_ROW; /* other rows than those on disk */
    if (!rc) s->logits_at = 0;
    kv__end_again(s, from, !rc);
    free(old);
    kv__reading_truncate(s, from); /* other keys */
    kv__visit_truncate(s, from);
    return rc;
}
