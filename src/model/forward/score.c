/*
 * Questions to rows that are there already: how much attention they get from queries, and bounds of it by
 * section. And whose memory they lie in, for a device.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/forward/forward.h"

/* A copy of the queries, each at its own token's folded phase; NULL: none of these tokens is folded. */
static float *turn_to_own(const model *m, const model_score *score)
{
    const model_hyper *h = &m->hyper;
    const size_t n = (size_t)model_query_width(h) * h->n_rows_layers * score->n_queries;
    int64_t by[64];
    bool any = false;
    for (uint32_t t = 0; t < score->n_queries; t++) {
        by[t] = score->tokens ? model_rows_gap(score->rows, score->tokens[t]) : 0;
        any = any || by[t];
    }
    if (!any) return NULL;
    float *queries = base_xmalloc(n * sizeof *queries);
    memcpy(queries, score->queries, n * sizeof *queries);
    model_turn_queries(m, queries, score->n_queries, by);
    return queries;
}

/* What is in the denominators beside the lists' rows where heads have sinks, [n_layer][n_head][n_queries]; NULL: none has. */
static float *rest_with_sinks(model *m, const model_score *score)
{
    const model_hyper *h = &m->hyper;
    if (!h->arch->sinks) return NULL;
    float *sinks = base_xmalloc(h->n_head * sizeof *sinks),
          *rest = base_xmalloc((size_t)h->n_layer * h->n_head * score->n_queries * sizeof *rest), *to = rest;
    for (uint32_t layer = 0; layer < h->n_layer; layer++) { /* all have rows */
        m->ops->download(m->ops, sinks, m->layers[layer].sinks, 0, h->n_head * sizeof *sinks);
        for (uint32_t head = 0; head < h->n_head; head++)
            for (uint32_t t = 0; t < score->n_queries; t++, to++) {
                const double own = sinks[head], other = score->rest ? score->rest[to - rest] : -INFINITY;
                *to = (float)(fmax(own, other) + log1p(exp(-fabs(own - other))));
            }
    }
    free(sinks);
    return rest;
}

static int score_rows(model *m, const void *what, base_err *err)
{
    const model_score *score = what;
    const model_hyper *h = &m->hyper;
    const model_rows_shape *s = &score->rows->shape;
    if (score->n_queries < 1 || score->n_queries > 64)
        return base_fail(err, BASE_E_USAGE, "%u queries; 1 to 64 can be asked at once", score->n_queries);
    if (s->n_layer != h->n_rows_layers || s->n_head_kv != h->n_head_kv || s->head_dim != h->head_dim)
        return base_fail(err, BASE_E_USAGE, "rows of another model");
    uint32_t *from = base_xcalloc(h->n_layer, sizeof *from);
    for (uint32_t l = 0; l < h->n_layer; l++) /* a model with windows has rows in every layer */
        if (model_layer_has_window(h, l) && score->end > h->window) from[l] = score->end - h->window;
    m->ops->cancel = score->cancel;
    const ops_turns *turns = NULL;
    int rc = forward_turns_of(m, score->rows, &turns, err);
    float *own = turns ? turn_to_own(m, score) : NULL, *rest = rest_with_sinks(m, score);
    if (!rc)
        rc = m->ops->score_rows(m->ops,
            &(ops_score_rows_args){.rows = score->rows,
                .queries = own ? own : score->queries,
                .turns = turns,
                .n_queries = score->n_queries,
                .n_head = h->n_head,
                .scale = h->attn_scale,
                .pool_max = score->pool == MODEL_POOL_MAX,
                .heads = score->heads,
                .rest = rest ? rest : score->rest,
                .from = from,
                .mass = score->mass},
            err);
    if (!rc) rc = m->ops->sync(m->ops, err);
    m->ops->cancel = NULL;
    free(from);
    free(own);
    free(rest);
    return rc;
}

int model_score_rows(model *m, const model_score *score, base_err *err)
{
    return model_try(m, score_rows, score, err);
}

void model_rows_pin(model *m, void *memory, size_t n_bytes)
{
    if (m->ops->pin) m->ops->pin(m->ops, memory, n_bytes);
}

void model_rows_unpin(model *m, void *memory)
{
    if (m->ops && m->ops->unpin) m->ops->unpin(m->ops, memory);
}

void model_rows_bring(model *m, const model_rows_view *rows)
{
    const model_rows_view near = forward_near(m, rows, 0);
    if (m->ops->bring) (void)m->ops->bring(m->ops, &near, NULL);
}

/* A lane's query heads become tokens of one head each, so that the operation keeps them apart. */
static int bound_sections(model *m, const void *what, base_err *err)
{
    const model_bound *b = what;
    const model_hyper *h = &m->hyper;
    const uint32_t group = h->n_head / h->n_head_kv, n = group * b->n_queries, d = h->head_dim;
    if (b->layer >= h->n_rows_layers || b->n_queries < 1 || n > FORWARD_BATCH)
        return base_fail(err, BASE_E_USAGE, "bounds of layer %u under %u queries", b->layer, b->n_queries);
    for (uint32_t head = 0; head < h->n_head; head++)
        for (uint32_t i = 0; i < b->n_queries; i++) {
            const size_t row = (size_t)(head % group) * b->n_queries + i, kv_head = head / group;
            m->ops->upload(m->ops, m->scratch.qkv, (row * model_key_width(h) + kv_head * d) * sizeof(float),
                b->queries + (((size_t)b->layer * h->n_head + head) * b->n_queries + i) * d,
                d * sizeof(float));
        }
    m->ops->cancel = b->cancel;
    int rc = m->ops->bound(m->ops,
        &(ops_bound_args){.profiles = b->profiles,
            .layer = b->layer,
            .n = n,
            .n_head = h->n_head_kv,
            .n_sections = b->n_sections,
            .scale = h->attn_scale,
            .q = {m->scratch.qkv, 0, model_key_width(h)},
            .bound = b->bound},
        err);
    if (!rc) rc = m->ops->sync(m->ops, err);
    m->ops->cancel = NULL;
    return rc;
}

int model_bound_sections(model *m, const model_bound *b, base_err *err)
{
    return model_try(m, bound_sections, b, err);
}
