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
    uint32_t n_queries, const kv_ask *ask, const atomic_bool *cancel, base_err *err)
{
    return kv__repair(s, from, to, queries, n_queries, ask, cancel, err);
}

int kv_session_signal(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries, uint32_t n_queries,
    uint32_t most, kv_signal *ret, base_err *err)
{
    const int rc = kv__kept_signal(s, from, to, queries, queries ? n_queries : 0,
        most < KV_RECENT_QUERIES ? most : KV_RECENT_QUERIES, ret, err);
    if (rc || ret->n) return rc;
    return base_fail(err, BASE_E_NOT_FOUND, "no queries of tokens %u to %u were kept", from, to);
}

/* How many of the k first of one order are among the k first of another. */
static uint32_t count_shared(const uint32_t *a, const uint32_t *b, uint32_t k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = 0; j < k; j++)
            if (b[j] == a[i]) {
                n++;
                break;
            }
    return n;
}

int kv_session_first_recall(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries,
    uint32_t n_queries, double share, uint32_t k, double *ret_recall, double ret_ms[2],
    const atomic_bool *cancel, base_err *err)
{
    const double asked = s->parameters.first;
    uint32_t *orders = base_xmalloc((2 * (size_t)s->n + 1) * sizeof *orders), n[2] = {0};
    int rc = 0;
    for (int pass = 0; pass < 2 && !rc; pass++) {
        const uint64_t start = base_clock_ns();
        s->parameters.first = pass ? share : 0;
        rc = kv__repair_order(
            s, from, to, queries, n_queries, orders + pass * (size_t)s->n, &n[pass], cancel, err);
        ret_ms[pass] = (double)(base_clock_ns() - start) / 1e6;
    }
    s->parameters.first = asked;
    if (k > n[0]) k = n[0];
    *ret_recall = rc ? 0 : k ? (double)count_shared(orders, orders + s->n, k) / k : 1;
    free(orders);
    return rc;
}

int kv_session_detect_pivot(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    return kv__detect_pivot(s, cancel, err);
}
