/*
 * Reading folded rows (ops/rows.h, gaps). A row is read from another distance by turning its key on, while it is read
 * and never where it lies: rotations by RoPE add up, so a key that was rotated at p and is turned by g is one at p + g.
 * The turns of a whole fold are one table of cosines and sines, made anew only when a
 * gap has changed. Angles are F64: at a phase of a million they are off by 1e-10, far below a float's
 * rounding of the cosine.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/forward/forward.h"

void forward_turns_free(model *m)
{
    forward_fold *f = &m->fold;
    if (f->table) m->ops->buffer_free(m->ops, f->table);
    free(f->gaps);
    free(f->layers);
    *f = (forward_fold){.cap = 0};
}

static int reserve(model *m, uint32_t n, base_err *err)
{
    forward_fold *f = &m->fold;
    const model_hyper *h = &m->hyper;
    if (!f->layers) {
        f->layers = base_xcalloc(h->n_layer, 1);
        for (uint32_t layer = 0; layer < h->n_layer; layer++) f->layers[layer] = model_layer_folds(h, layer);
    }
    if (n <= f->cap) return 0;
    const uint32_t cap = n + n / 2 + 64;
    ops_buffer *table = NULL;
    int rc = m->ops->buffer_new(m->ops, &table, (size_t)cap * h->n_rot * sizeof(float), err);
    if (rc) return rc;
    if (f->table) m->ops->buffer_free(m->ops, f->table);
    f->table = table;
    f->gaps = base_xrealloc(f->gaps, cap * sizeof *f->gaps);
    f->cap = cap;
    f->turns.n = 0;
    return 0;
}

int forward_turns_of(model *m, const model_rows_view *rows, const ops_turns **ret, base_err *err)
{
    forward_fold *f = &m->fold;
    const model_hyper *h = &m->hyper;
    uint32_t n = rows->n_gaps;
    *ret = NULL;
    while (n > 0 && rows->gaps[n - 1] == 0) n--;
    if (n == 0) return 0;
    if (!m->ops->turns)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "this session reads folded rows, which the %s backend cannot; use --backend cpu",
            m->ops->backend);
    int rc = reserve(m, n, err);
    if (rc) return rc;
    if (f->turns.n != n || memcmp(f->gaps, rows->gaps, n * sizeof *f->gaps) != 0) {
        f->turns.n = 0;
        rc = m->ops->rope_table(m->ops,
            &(ops_rope_table_args){.phases = rows->gaps,
                .factors = m->rope_factors,
                .n = n,
                .n_rot = h->n_rot,
                .base = h->rope_base,
                .scale = 1 / h->rope_factor,
                .table = f->table},
            err);
        if (rc) return rc;
        memcpy(f->gaps, rows->gaps, n * sizeof *f->gaps);
    }
    f->turns = (ops_turns){.gaps = f->gaps,
        .table = f->table,
        .layers = f->layers,
        .n = n,
        .n_rot = h->n_rot,
        .pairing = h->arch->rope};
    *ret = &f->turns;
    return 0;
}

int model_turn_rows(model *m, const model_rows_view *rows, uint32_t lane, uint32_t index, uint32_t step,
    uint32_t n, uint16_t *keys, base_err *err)
{
    const ops_turns *turns;
    const int rc = forward_turns_of(m, rows, &turns, err);
    if (!rc && turns && turns->layers[lane / rows->shape.n_head_kv])
        m->ops->turn_keys(m->ops, turns, index, step, n, rows->shape.head_dim, keys);
    return rc;
}

static void turn_head(const model_hyper *h, float *x, const double *cosines, const double *sines)
{
    const uint32_t half = h->n_rot / 2;
    const uint32_t step = h->arch->rope == OPS_ROPE_NEOX ? 1 : 2, other = step == 1 ? half : 1;
    for (uint32_t i = 0; i < half; i++) {
        float *p = x + (size_t)step * i;
        const double a = p[0], b = p[other];
        p[0] = (float)(a * cosines[i] - b * sines[i]);
        p[other] = (float)(a * sines[i] + b * cosines[i]);
    }
}

void model_turn_queries(const model *m, float *queries, uint32_t n, const int64_t *by)
{
    const model_hyper *h = &m->hyper;
    const uint32_t half = h->n_rot / 2;
    double *cosines = base_xmalloc((2 * (size_t)half + 1) * sizeof *cosines), *sines = cosines + half;
    for (uint32_t t = 0; t < n; t++) {
        if (!by[t]) continue;
        for (uint32_t i = 0; i < half; i++) {
            const double turn = 1 / h->rope_factor * pow(h->rope_base, -2.0 * i / h->n_rot) /
                                (m->rope_factors ? m->rope_factors[i] : 1.0f);
            cosines[i] = cos((double)by[t] * turn);
            sines[i] = sin((double)by[t] * turn);
        }
        for (uint32_t layer = 0; layer < h->n_rows_layers; layer++)
            for (uint32_t head = 0; head < h->n_head && model_layer_folds(h, layer); head++)
                turn_head(
                    h, queries + (((size_t)layer * h->n_head + head) * n + t) * h->head_dim, cosines, sines);
    }
    free(cosines);
}
