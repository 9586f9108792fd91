/* Experiments over a repair and a pivot; see lab.h. */
#include "kv/lab/lab.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/prune/prune.h"
#include "kv/repair/ask.h"
#include "kv/repair/repair.h"

int kv_session_repair_by(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries,
    uint32_t n_queries, const kv_ask *ask, base_err *err)
{
    return kv__repair(s, from, to, queries, n_queries, ask, NULL, err);
}

int kv_session_signal(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries, uint32_t n_queries,
    uint32_t most, kv_signal *ret, base_err *err)
{
    const int rc = kv__kept_signal(s, from, to, queries, queries ? n_queries : 0,
        most < KV_RECENT_QUERIES ? most : KV_RECENT_QUERIES, ret, err);
    if (rc || ret->n) return rc;
    return base_fail(err, BASE_E_NOT_FOUND, "no queries of tokens %u to %u were kept", from, to);
}

int kv_session_detect_pivot(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    return kv__detect_pivot(s, cancel, err);
}
