/* What the 8-bit tier would give back, without a limit that calls for it. */
#include "kv/core/state.h"
#include "kv/evict/evict.h"
#include "kv/lab/lab.h"
#include "kv/read/visit.h"

int kv_session_round(kv_session *s, uint32_t from, base_err *err)
{
    int rc = 0;
    for (uint32_t b = from / MODEL_ROWS_BLOCK; (b + 1) * MODEL_ROWS_BLOCK <= s->n && !rc; b++) {
        const uint32_t first = b * MODEL_ROWS_BLOCK, end = first + MODEL_ROWS_BLOCK;
        if (!kv__block_is_computed(s, b) || !kv_table_pack(&s->table, b)) continue;
        rc = kv_table_unpack(&s->table, first, end, err);
        for (uint32_t t = first; t < end; t++) s->file_row[t] = KV_NO_ROW;
    }
    kv__visit_truncate(s, from);
    s->holed = true; /* its rows are nobody else's */
    s->logits_at = 0;
    s->epoch++;
    return rc;
}
