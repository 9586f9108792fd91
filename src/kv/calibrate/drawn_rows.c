/* Drawn rows; see kv/calibrate/drawn_rows.h. */
#include "kv/calibrate/drawn_rows.h"

#include "base/hash.h"

static uint64_t draw(kv_drawn_rows *b)
{
    b->state += UINT64_C(0x9e3779b97f4a7c15);
    return base_hash64(&b->state, sizeof b->state, 1);
}

/* Halves of about -2 to 2: any sign and fraction, exponents 2^-1 and 2^0. */
static void fill_row(kv_drawn_rows *b, uint16_t *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 4) {
        const uint64_t bits = draw(b);
        for (uint32_t k = 0; k < 4 && i + k < n; k++)
            row[i + k] = (uint16_t)((bits >> 16 * k & 0x87ff) | 0x3800);
    }
}

/* Stands in for the forward pass: the batch's rows and the wanted queries are drawn. */
static int draw_or_compute(void *user, const model_batch *batch, base_err *err)
{
    kv_drawn_rows *b = user;
    const model_rows_shape *shape = &batch->rows->shape;
    if (b->computes) return b->of_model.forward(b->of_model.user, batch, err);
    for (uint32_t lane = 0; lane < model_rows_lanes(shape); lane++) {
        const model_lane_list *list = &batch->rows->lanes[lane];
        uint32_t left = batch->n;
        for (uint32_t r = list->n_runs; r-- > 0 && left;) {
            const model_run *run = &list->runs[r];
            for (uint32_t i = run->n; i-- > 0 && left; left--) {
                fill_row(b, model_rows_key(batch->rows, lane, run->slot + i), shape->head_dim);
                fill_row(b, model_rows_value(batch->rows, lane, run->slot + i), shape->head_dim);
            }
        }
    }
    if (batch->capture) {
        const size_t n = (size_t)shape->n_layer * b->of_model.n_head * batch->capture->n * shape->head_dim;
        for (size_t i = 0; i < n; i++)
            batch->capture->queries[i] = (float)(draw(b) >> 40) / (float)(1 << 23) - 1;
    }
    return 0;
}

/* What is left to the model. */
static int score(void *user, const model_score *s, base_err *err)
{
    const kv_compute *c = &((kv_drawn_rows *)user)->of_model;
    return c->score(c->user, s, err);
}

static int bound(void *user, const model_bound *of, base_err *err)
{
    const kv_compute *c = &((kv_drawn_rows *)user)->of_model;
    return c->bound(c->user, of, err);
}

static uint8_t ending(void *user, int32_t id)
{
    const kv_compute *c = &((kv_drawn_rows *)user)->of_model;
    return c->ending(c->user, id);
}

static void turn(void *user, float *queries, uint32_t n, const int64_t *by)
{
    const kv_compute *c = &((kv_drawn_rows *)user)->of_model;
    c->turn(c->user, queries, n, by);
}

static int turn_rows(void *user, const model_rows_view *rows, uint32_t lane, uint32_t index, uint32_t step,
    uint32_t n, uint16_t *keys, base_err *err)
{
    const kv_compute *c = &((kv_drawn_rows *)user)->of_model;
    return c->turn_rows(c->user, rows, lane, index, step, n, keys, err);
}

static uint32_t window(void *user, uint32_t layer)
{
    const kv_compute *c = &((kv_drawn_rows *)user)->of_model;
    return c->window(c->user, layer);
}

kv_compute kv_drawn_compute(kv_drawn_rows *rows, model *m)
{
    *rows = (kv_drawn_rows){.of_model = kv_compute_model(m)};
    kv_compute compute = rows->of_model;
    compute.user = rows;
    compute.forward = draw_or_compute;
    compute.score = score;
    compute.bound = bound;
    compute.ending = ending;
    if (compute.turn) {
        compute.turn = turn;
        compute.turn_rows = turn_rows;
    }
    compute.window = window;
    return compute;
}
