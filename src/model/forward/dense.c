/* See dense.h. */
#include "model/forward/dense.h"

#include <stdlib.h>

#include "base/mem.h"

struct model_dense {
    model_rows_shape shape;
    uint32_t n_rows, n_max, n_blocks;
    uint16_t **blocks; /* [n_blocks there], room for n_max rows */
    uint64_t *stamps;
    model_run *runs;        /* one a block */
    model_lane_list *lanes; /* all alike */
    model_rows_view view;
    uint32_t *phases;
    float *states[2];  /* of a model that keeps one: behind the newest row, and room for the next */
    uint32_t state_at; /* how many rows states[0] is behind */
};

int model_dense_new(model_dense **ret, const model_rows_shape *shape, uint32_t n_max, base_err *err)
{
    uint32_t n_lanes = model_rows_lanes(shape), max_blocks = n_max / MODEL_ROWS_BLOCK + 1;
    model_dense *d = calloc(1, sizeof *d);
    if (d) {
        *d = (model_dense){.shape = *shape, .n_max = n_max};
        d->blocks = calloc(max_blocks, sizeof *d->blocks);
        d->stamps = calloc(max_blocks, sizeof *d->stamps);
        d->runs = calloc(max_blocks, sizeof *d->runs);
        d->lanes = calloc(n_lanes, sizeof *d->lanes);
        d->phases = calloc(n_max ? n_max : 1, sizeof *d->phases);
    }
    if (!d || !d->blocks || !d->stamps || !d->runs || !d->lanes || !d->phases) {
        model_dense_free(d);
        return base_fail(err, BASE_E_NOMEM, "no memory for the lists of %u rows", n_max);
    }
    for (uint32_t i = 0; i < n_max; i++) d->phases[i] = i;
    *ret = d;
    return 0;
}

void model_dense_free(model_dense *d)
{
    if (!d) return;
    for (uint32_t i = 0; i < d->n_blocks; i++)
        base_huge_free(d->blocks[i], model_rows_block_bytes(&d->shape));
    free(d->blocks);
    free(d->stamps);
    free(d->runs);
    free(d->lanes);
    free(d->phases);
    free(d->states[0]);
    free(d->states[1]);
    free(d);
}

static void list_rows(model_dense *d)
{
    uint32_t n_runs = (d->n_rows + MODEL_ROWS_BLOCK - 1) / MODEL_ROWS_BLOCK;
    for (uint32_t i = 0; i < n_runs; i++) {
        uint32_t first = i * MODEL_ROWS_BLOCK, left = d->n_rows - first;
        d->runs[i] = (model_run){first, first, left < MODEL_ROWS_BLOCK ? left : MODEL_ROWS_BLOCK};
    }
    for (uint32_t lane = 0; lane < model_rows_lanes(&d->shape); lane++)
        d->lanes[lane] = (model_lane_list){d->runs, n_runs, d->n_rows};
    d->view = (model_rows_view){.shape = d->shape,
        .blocks = d->blocks,
        .n_blocks = d->n_blocks,
        .lanes = d->lanes,
        .stamps = d->stamps};
}

int model_dense_append(model_dense *d, uint32_t n, const model_rows_view **ret, base_err *err)
{
    if (n > d->n_max - d->n_rows)
        return base_fail(
            err, BASE_E_LIMIT, "%u rows and %u more are over the %u asked for", d->n_rows, n, d->n_max);
    while ((uint64_t)d->n_blocks * MODEL_ROWS_BLOCK < (uint64_t)d->n_rows + n) {
        uint16_t *block = base_huge_alloc(model_rows_block_bytes(&d->shape));
        if (!block)
            return base_fail(err, BASE_E_NOMEM, "no memory for row %u", d->n_blocks * MODEL_ROWS_BLOCK);
        d->stamps[d->n_blocks] = model_rows_new_stamp();
        d->blocks[d->n_blocks++] = block;
    }
    d->n_rows += n;
    list_rows(d);
    *ret = &d->view;
    return 0;
}

void model_dense_truncate(model_dense *d, uint32_t n)
{
    if (n < d->n_rows) d->n_rows = n;
    list_rows(d);
}

int model_dense_compute(model_dense *d, model *m, const int32_t *ids, uint32_t n, uint32_t n_want,
    float *logits, const atomic_bool *cancel, base_err *err)
{
    uint32_t before = d->n_rows;
    uint32_t *want = base_xcalloc(n_want ? n_want : 1, sizeof *want);
    model_batch batch = {.ids = ids,
        .phases = d->phases + before,
        .n = n,
        .want = want,
        .n_want = n_want,
        .logits = logits,
        .cancel = cancel};
    const size_t state_bytes = model_get_info(m)->state_bytes;
    for (uint32_t i = 0; i < n_want; i++) want[i] = n - n_want + i;
    int rc = model_dense_append(d, n, &batch.rows, err);
    for (int i = 0; i < 2 && state_bytes && !d->states[i]; i++) d->states[i] = base_xmalloc(state_bytes);
    if (!rc && state_bytes && before && d->state_at != before)
        rc = base_fail(err, BASE_E_STATE,
            "the state is behind row %u, not %u: a model that keeps one cannot go back", d->state_at, before);
    batch.state_in = before ? d->states[0] : NULL;
    batch.state_out = d->states[1];
    if (!rc) rc = model_forward(m, &batch, err);
    if (rc) model_dense_truncate(d, before);
    if (!rc && state_bytes) {
        float *newest = d->states[1];
        d->states[1] = d->states[0];
        d->states[0] = newest;
        d->state_at = d->n_rows;
    }
    free(want);
    return rc;
}
