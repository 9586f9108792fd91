/*
 * The forward pass: a static loop over layers (layer.c) that drives the table of operations (ops.h). It computes
 * on the rows it is handed and decides nothing; every number it makes depends on one token and its list, never on
 * the batch around it, because every operation is made so.
 *
 * Engine thread. Nothing is allocated while tokens are computed, except for the shortened lists of a batch
 * over 512.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/forward/layer.h"

/* Whatever was not computed, or only beside what was. */
static void forbid_others(float *logits, const uint64_t *only, uint32_t n_vocab)
{
    for (uint32_t id = 0; id < n_vocab; id++)
        if (!(only[id / 64] >> id % 64 & 1)) logits[id] = -INFINITY;
}

/* Scaled, then capped: in F64, as libraries' tanh differ. */
static void finish_logits(const model_hyper *h, float *logits, size_t n)
{
    const double cap = h->final_cap;
    for (size_t i = 0; i < n && h->logit_scale != 1; i++) logits[i] *= h->logit_scale;
    for (size_t i = 0; i < n && cap > 0; i++) logits[i] = (float)(cap * tanh((double)logits[i] / cap));
}

/* Logits of the wanted tokens of a micro-batch, FORWARD_HEADS at a time. */
static int make_logits(model *m, const micro_batch *b, base_err *err)
{
    const model_hyper *h = &m->hyper;
    uint32_t places[FORWARD_HEADS];
    int rc = 0;

    for (uint32_t at = 0; at < b->n_want && !rc; at += FORWARD_HEADS) {
        uint32_t now = b->n_want - at < FORWARD_HEADS ? b->n_want - at : FORWARD_HEADS;
        for (uint32_t i = 0; i < now; i++) places[i] = b->whole->want[b->want_from + at + i] - b->from;
        rc = layer_norm(m, m->output_norm, places, now, err);
        if (!rc)
            rc = m->ops->matmul(m->ops,
                &(ops_matmul_args){.x = m->scratch.wide,
                    .n_parts = 1,
                    .parts = {{.weight = m->output, .y = {m->scratch.logits, 0, h->n_vocab}}},
                    .only = b->whole->only},
                err);
        if (rc) break;
        float *logits = b->whole->logits + (size_t)(b->want_from + at) * h->n_vocab;
        m->ops->download(m->ops, logits, m->scratch.logits, 0, (size_t)now * h->n_vocab * sizeof *logits);
        finish_logits(h, logits, (size_t)now * h->n_vocab);
        for (uint32_t i = 0; i < now && b->whole->only; i++)
            forbid_others(logits + (size_t)i * h->n_vocab, b->whole->only, h->n_vocab);
    }
    return rc;
}

/*
 * A token's embeddings for every layer: its own row of a table, and what a product makes of its embedding, which is
 * in scratch.x.
 */
static int make_own_embeddings(model *m, const micro_batch *b, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const uint32_t width = h->n_layer * h->n_embd_layer;
    const ops_mat made = {m->scratch.own_embd, 0, width}, read = {m->scratch.own_read, 0, width};
    int rc = m->ops->embed(m->ops,
        &(ops_embed_args){.table = m->tensors.own_embd,
            .ids = b->whole->ids + b->from,
            .n = b->n,
            .scale = sqrtf((float)h->n_embd_layer),
            .out = read},
        err);
    if (!rc)
        rc = m->ops->quant(m->ops,
            &(ops_quant_args){.x = layer_hidden(m), .n = b->n, .width = h->n_embd, .out = m->scratch.wide},
            err);
    if (!rc)
        rc = m->ops->matmul(m->ops,
            &(ops_matmul_args){
                .x = m->scratch.wide, .n_parts = 1, .parts = {{.weight = m->own_model, .y = made}}},
            err);
    if (!rc)
        rc = m->ops->add(m->ops,
            &(ops_add_args){
                .a = made, .out = made, .scale_a = 1 / sqrtf((float)h->n_embd), .n = b->n, .width = width},
            err);
    if (!rc)
        rc = m->ops->norm(m->ops,
            &(ops_norm_args){.x = made,
                .out = made,
                .weight = m->own_norm,
                .n = b->n,
                .n_groups = h->n_layer,
                .width = h->n_embd_layer,
                .eps = h->norm_eps},
            err);
    const float half = sqrtf(0.5f);
    if (!rc)
        rc = m->ops->add(m->ops,
            &(ops_add_args){.a = made,
                .b = read,
                .out = made,
                .scale_a = half,
                .scale_b = half,
                .n = b->n,
                .width = width},
            err);
    return rc;
}

static int start_hidden(model *m, const micro_batch *b, base_err *err)
{
    const model_hyper *h = &m->hyper;
    size_t row_bytes = h->n_embd * sizeof(float);
    if (b->whole->layer_first == 0) {
        int rc = m->ops->embed(m->ops,
            &(ops_embed_args){.table = m->tensors.token_embd,
                .ids = b->whole->ids + b->from,
                .n = b->n,
                .scale = h->embd_scale,
                .out = layer_hidden(m)},
            err);
        if (!rc && h->n_embd_layer) rc = make_own_embeddings(m, b, err);
        return rc ? rc
                  : gguf_check_unchanged(m->file, m->path, err); /* the embedding is read from the file */
    }
    m->ops->upload(m->ops, m->scratch.x, 0, b->whole->hidden + (size_t)b->from * h->n_embd, b->n * row_bytes);
    return 0;
}

/* Layers with a window may turn by their own base; there stretching a context is for the layers that read all of it. */
static int make_rope_tables(model *m, const micro_batch *b, base_err *err)
{
    const model_hyper *h = &m->hyper;
    ops_rope_table_args table = {.phases = b->whole->phases + b->from,
        .factors = m->rope_factors,
        .n = b->n,
        .n_rot = h->n_rot,
        .base = h->rope_base,
        .scale = 1 / h->rope_factor,
        .growth = h->rope_growth,
        .table = m->scratch.rope};
    int rc = m->ops->rope_table(m->ops, &table, err);
    if (rc || !h->window_rope_base) return rc;
    table.factors = NULL;
    table.base = h->window_rope_base;
    table.scale = table.growth = 1;
    if (h->window_head_dim) table.n_rot = h->window_n_rot;
    table.table = m->scratch.rope_window;
    return m->ops->rope_table(m->ops, &table, err);
}

/*
 * What is folded of what the batch reads. Tokens that are computed again may be folded themselves; then they
 * ask from their own folded phase.
 */
static int make_turns(model *m, micro_batch *b, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const model_lane_list *list = &b->rows->lanes[model_layer_rows(h, b->whole->layer_first) * h->n_head_kv];
    uint32_t own[FORWARD_BATCH], t = b->n;
    int rc = forward_turns_of(m, b->rows, &b->turns, err);
    if (rc || !b->turns) return rc;
    for (uint32_t i = list->n_runs; i > 0 && t > 0; i--)
        for (uint32_t k = list->runs[i - 1].n; k > 0 && t > 0; k--) {
            own[--t] = model_rows_gap(b->rows, list->runs[i - 1].index + k - 1);
            b->less[t] = b->rows->gaps[0] - own[t];
            b->has_own = b->has_own || own[t];
        }
    if (!b->has_own) return 0;
    return m->ops->rope_table(m->ops,
        &(ops_rope_table_args){.phases = own,
            .factors = m->rope_factors,
            .n = b->n,
            .n_rot = h->n_rot,
            .base = h->rope_base,
            .scale = 1 / h->rope_factor,
            .table = m->scratch.rope_own},
        err);
}

/* The token index of the first of a list's last n rows, or of the row behind them all. */
static uint32_t first_of_last(const model_lane_list *list, uint32_t n)
{
    uint32_t r = list->n_runs;
    while (r > 1 && list->runs[r - 1].n < n) n -= list->runs[--r].n;
    return r && list->runs[r - 1].n >= n ? list->runs[r - 1].index + list->runs[r - 1].n - n : 0;
}

model_rows_view forward_near(model *m, const model_rows_view *rows, uint32_t n)
{
    model_rows_view view = *rows;
    const uint32_t n_lanes = model_rows_lanes(&rows->shape), window = m->hyper.window;
    if (!m->near) return view;
    for (uint32_t lane = 0; lane < n_lanes; lane++) { /* a model with windows has rows in every layer */
        const model_lane_list *list = &rows->lanes[lane];
        uint32_t first = first_of_last(list, n), k = 0;
        m->near[lane] = *list;
        if (!model_layer_has_window(&m->hyper, lane / rows->shape.n_head_kv)) continue;
        first = first + 1 > window ? first + 1 - window : 0;
        while (k < list->n_runs && list->runs[k].n == MODEL_ROWS_BLOCK &&
               list->runs[k].index + MODEL_ROWS_BLOCK <= first)
            k++;
        m->near[lane] =
            (model_lane_list){list->runs + k, list->n_runs - k, list->n_rows - k * MODEL_ROWS_BLOCK};
    }
    view.lanes = m->near;
    return view;
}

static int run_micro_batch(model *m, micro_batch *b, uint32_t layer_last, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const model_rows_view near = forward_near(m, b->rows, b->n);
    b->rows = &near;
    int rc = make_rope_tables(m, b, err);
    if (!rc) rc = make_turns(m, b, err);
    if (!rc) rc = start_hidden(m, b, err);
    for (uint32_t layer = b->whole->layer_first; layer < layer_last && !rc; layer++)
        rc = layer_run(m, b, layer, err);
    if (rc) return rc;
    if (layer_last == h->n_layer) return make_logits(m, b, err);
    m->ops->download(m->ops, b->whole->hidden + (size_t)b->from * h->n_embd, m->scratch.x, 0,
        (size_t)b->n * h->n_embd * sizeof(float));
    return m->ops->sync(m->ops, err);
}

/* A batch and its pieces */

static int check_batch(const model *m, const model_batch *b, uint32_t layer_last, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const model_rows_shape *s = &b->rows->shape;

    if (b->n == 0) return base_fail(err, BASE_E_USAGE, "a batch of no tokens");
    if (b->layer_first >= layer_last || layer_last > h->n_layer)
        return base_fail(
            err, BASE_E_USAGE, "layers %u to %u of a model with %u", b->layer_first, layer_last, h->n_layer);
    if (s->n_layer != h->n_rows_layers || s->n_head_kv != h->n_head_kv || s->head_dim != h->head_dim)
        return base_fail(err, BASE_E_USAGE, "rows of another model");
    if (h->n_taps && (b->layer_first > 0 || layer_last < h->n_layer || !b->state_out))
        return base_fail(
            err, BASE_E_USAGE, "a model that keeps a state computes all layers, and needs room for it");
    if ((h->n_sharing || h->n_embd_layer) && (b->layer_first > 0 || layer_last < h->n_layer))
        return base_fail(err, BASE_E_USAGE, "a model whose layers share rows computes all layers");
    if ((b->layer_first > 0 || layer_last < h->n_layer) && !b->hidden)
        return base_fail(err, BASE_E_USAGE, "a part of the layers needs room for hidden states");
    if (b->n_want && (layer_last < h->n_layer || !b->logits || !b->want))
        return base_fail(err, BASE_E_USAGE, "logits are made behind the last layer only");
    if (b->reader && b->n > FORWARD_BATCH)
        return base_fail(err, BASE_E_USAGE, "a batch of %u tokens that choose what they read; at most %d",
            b->n, FORWARD_BATCH);
    for (uint32_t i = 0; i < b->n_want; i++)
        if (b->want[i] >= b->n || (i && b->want[i] <= b->want[i - 1]))
            return base_fail(err, BASE_E_USAGE, "wanted token %u of a batch of %u is not ascending inside it",
                b->want[i], b->n);
    for (uint32_t i = 0; b->capture && i < b->capture->n; i++)
        if (b->capture->tokens[i] >= b->n)
            return base_fail(
                err, BASE_E_USAGE, "captured token %u of a batch of %u", b->capture->tokens[i], b->n);
    for (uint32_t i = 0; i < b->n; i++)
        if (b->ids[i] < 0 || (uint32_t)b->ids[i] >= h->n_vocab)
            return base_fail(
                err, BASE_E_LIMIT, "id %d is outside the vocabulary of %u", b->ids[i], h->n_vocab);
    const uint32_t first_lane = model_layer_rows(h, b->layer_first) * h->n_head_kv,
                   last_lane = model_layer_rows(h, layer_last) * h->n_head_kv;
    for (uint32_t lane = first_lane; lane < last_lane; lane++)
        if (b->rows->lanes[lane].n_rows < b->n)
            return base_fail(err, BASE_E_USAGE, "lane %u lists %u rows for a batch of %u", lane,
                b->rows->lanes[lane].n_rows, b->n);
    return 0;
}

/* The same lists without their last `less` rows; lists that share runs share the copy. */
typedef struct shorter {
    model_rows_view view;
    model_lane_list *lanes;
    model_run *runs;
} shorter;

static int shorter_make(shorter *s, const model_rows_view *rows, base_err *err)
{
    size_t n_lanes = model_rows_lanes(&rows->shape), n_runs = 0;
    for (size_t i = 0; i < n_lanes; i++) n_runs += rows->lanes[i].n_runs;
    s->lanes = malloc(n_lanes * sizeof *s->lanes);
    s->runs = malloc((n_runs + 1) * sizeof *s->runs);
    if (!s->lanes || !s->runs)
        return base_fail(err, BASE_E_NOMEM, "no memory for the lists of %zu runs", n_runs);
    return 0;
}

static void shorter_set(shorter *s, const model_rows_view *rows, uint32_t less)
{
    uint32_t n_lanes = model_rows_lanes(&rows->shape);
    model_run *to = s->runs;

    for (uint32_t i = 0; i < n_lanes; i++) {
        const model_lane_list *list = &rows->lanes[i];
        uint32_t drop = less, n_runs = list->n_runs;
        if (i > 0 && list->runs == rows->lanes[i - 1].runs && list->n_rows == rows->lanes[i - 1].n_rows) {
            s->lanes[i] = s->lanes[i - 1];
            continue;
        }
        while (n_runs > 0 && drop >= list->runs[n_runs - 1].n) drop -= list->runs[--n_runs].n;
        memcpy(to, list->runs, n_runs * sizeof *to);
        if (n_runs > 0) to[n_runs - 1].n -= drop;
        s->lanes[i] = (model_lane_list){to, n_runs, list->n_rows > less ? list->n_rows - less : 0};
        to += n_runs;
    }
    s->view = *rows;
    s->view.lanes = s->lanes;
}

static int run_split(model *m, const model_batch *batch, uint32_t layer_last, base_err *err)
{
    shorter lists = {0};
    uint32_t want_at = 0;
    int rc = shorter_make(&lists, batch->rows, err);

    for (uint32_t from = 0; from < batch->n && !rc; from += FORWARD_BATCH) {
        uint32_t n = batch->n - from < FORWARD_BATCH ? batch->n - from : FORWARD_BATCH, n_want = 0;
        while (want_at + n_want < batch->n_want && batch->want[want_at + n_want] < from + n) n_want++;
        shorter_set(&lists, batch->rows, batch->n - from - n);
        micro_batch b = {.whole = batch,
            .from = from,
            .n = n,
            .rows = &lists.view,
            .want_from = want_at,
            .n_want = n_want,
            .state = from ? batch->state_out : batch->state_in};
        rc = run_micro_batch(m, &b, layer_last, err);
        want_at += n_want;
    }
    free(lists.lanes);
    free(lists.runs);
    return rc;
}

static int compute_batch(model *m, const void *what, base_err *err)
{
    const model_batch *batch = what;
    uint32_t layer_last = batch->layer_last;
    if (batch->layer_first == 0 && layer_last == 0) layer_last = m->hyper.n_layer;
    int rc = check_batch(m, batch, layer_last, err);
    if (rc) return rc;
    m->ops->cancel = batch->cancel;
    if (batch->n <= FORWARD_BATCH) {
        micro_batch b = {.whole = batch,
            .n = batch->n,
            .rows = batch->rows,
            .n_want = batch->n_want,
            .state = batch->state_in};
        rc = run_micro_batch(m, &b, layer_last, err);
    } else {
        rc = run_split(m, batch, layer_last, err);
    }
    /* Rows are in host memory when a batch ends, however it ends. */
    int synced = m->ops->sync(m->ops, rc ? NULL : err);
    m->ops->cancel = NULL;
    return rc ? rc : synced;
}

int model_forward(model *m, const model_batch *batch, base_err *err)
{
    return model_try(m, compute_batch, batch, err);
}
