/* Experiments over a repair and a pivot; see lab.h. */
#include "kv/lab/lab.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/prune/prune.h"

int kv_session_signal(kv_session *s, const kv_ask *ask, uint32_t most, kv_signal *ret, base_err *err)
{
    const int rc = kv__kept_signal(s, ask, most < KV_RECENT_QUERIES ? most : KV_RECENT_QUERIES, ret, err);
    if (rc || ret->n) return rc;
    return base_fail(err, BASE_E_NOT_FOUND, "no queries of tokens %u to %u were kept", ask->from, ask->to);
}

int kv_session_detect_pivot(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    return kv__detect_pivot(s, cancel, err);
}

void kv_session_token_flags(const kv_session *s, uint8_t *ret)
{
    kv__protect(s, ret);
    for (uint32_t i = 0; i < s->n; i++) {
        const unsigned hard = ret[i] != KV_HARD_NO ? KV_TOKEN_HARD : 0;
        ret[i] =
            (uint8_t)(hard | (kv_bits_get(s->pinned, i) ? KV_TOKEN_PINNED : 0) |
                      (kv_bits_get(s->barred, i) ? KV_TOKEN_BARRED : 0) |
                      (kv_bits_get(s->stale, i) ? KV_TOKEN_STALE : 0) | (s->cut[i] ? KV_TOKEN_DEFERRED : 0));
    }
    for (size_t p = 0; p < s->n_segments; p++)
        for (uint32_t k = 0; k < s->segments[p].n_spans; k++)
            for (uint32_t t = s->segments[p].spans[k].from;
                 t < s->segments[p].spans[k].to && s->segments[p].from + t < s->segments[p].to; t++)
                ret[s->segments[p].from + t] |= KV_TOKEN_SOFT;
}
