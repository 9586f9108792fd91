/* The share of a full session's attention that a pruned one still has (StructKV, section 4.5). */
#include <math.h>
#include <stdlib.h>

#include "kv/core/state.h"
#include "kv/core/work.h"
#include "kv/lab/lab.h"

int kv_session_attention_kept(kv_session *full, const kv_session *pruned, uint32_t layer_from, double *ret,
    const atomic_bool *cancel, base_err *err)
{
    enum { QUERIES = 8 };
    const uint32_t first = layer_from * full->compute.shape.n_head_kv;
    uint32_t places[QUERIES], n = full->request.n < QUERIES ? full->request.n : QUERIES;
    kv_signal asker;
    *ret = NAN;
    if (!n || full->n != pruned->n || full->n_lanes != pruned->n_lanes || first >= full->n_lanes)
        return base_fail(
            err, BASE_E_USAGE, "two sessions over the same tokens, in which something was asked");
    for (uint32_t i = 0; i < n; i++) places[i] = full->request.n - n + i;
    int rc = kv_signal_pick(&full->request, places, n, &asker, err);
    if (rc) return rc;
    kv_work memory = {NULL};
    float **mass = kv_work_masses(&memory, full->lists.view, full->n_lanes, first, full->n_lanes);
    if (memory.failed) rc = kv_fail_to_score(err, full->n);
    const model_rows_view view = kv__view(full);
    const model_score score = {.queries = asker.queries,
        .n_queries = n,
        .rows = &view,
        .pool = MODEL_POOL_MEAN,
        .end = full->n,
        .mass = mass,
        .cancel = cancel};
    if (!rc) rc = kv__score(full, &score, err);
    double sum = 0;
    for (uint32_t lane = first; lane < full->n_lanes && !rc; lane++)
        for (uint32_t run = 0, o = 0; run < full->lists.view[lane].n_runs; run++)
            for (uint32_t i = 0; i < full->lists.view[lane].runs[run].n; i++, o++)
                if (kv_bits_get(pruned->lists.lane[lane]->bits, full->lists.view[lane].runs[run].index + i))
                    sum += mass[lane][o];
    if (!rc) *ret = sum / (full->n_lanes - first);
    kv_work_free(&memory);
    kv_signal_fini(&asker);
    return rc;
}
