/* The seam under a session over the real model. */
#include <stdatomic.h>
#include <string.h>

#include "kv/core/compute.h"
#include "kv/read/split.h"
#include "model/text/tokenizer.h"

static _Atomic uint64_t rows_read;

uint64_t kv_rows_read(void)
{
    return atomic_load_explicit(&rows_read, memory_order_relaxed);
}

/*
 * A token reads each list up to its own row; one that chooses its visitors weighs every row of the sequence
 * first, those that it then reads among them. In a layer with a window it reads no more than that.
 */
static void count_forward(const model *m, const model_batch *b)
{
    const model_rows_shape shape = model_get_rows_shape(m);
    uint64_t rows = 0;
    for (uint32_t lane = 0; lane < model_rows_lanes(&shape); lane++) {
        const model_lane_list *list = &b->rows->lanes[lane];
        const uint32_t window = model_window(m, lane / shape.n_head_kv);
        uint64_t before = list->n_rows - b->n;
        if (b->reader && b->reader->visit && list->n_runs)
            before = list->runs[list->n_runs - 1].index + list->runs[list->n_runs - 1].n - b->n;
        for (uint32_t t = 0; t < b->n && window; t++)
            rows += before + t + 1 < window ? before + t + 1 : window;
        if (!window) rows += before * b->n + (uint64_t)b->n * (b->n + 1) / 2;
    }
    atomic_fetch_add_explicit(&rows_read, rows, memory_order_relaxed);
}

static int forward_model(void *user, const model_batch *batch, base_err *err)
{
    count_forward(user, batch);
    return model_forward(user, batch, err);
}

static int score_model(void *user, const model_score *score, base_err *err)
{
    const model_rows_shape shape = model_get_rows_shape(user);
    uint64_t rows = 0;
    for (uint32_t lane = 0; lane < model_rows_lanes(&shape); lane++)
        if (score->mass[lane]) rows += (uint64_t)score->rows->lanes[lane].n_rows * score->n_queries;
    atomic_fetch_add_explicit(&rows_read, rows, memory_order_relaxed);
    return model_score_rows(user, score, err);
}

static int bound_model(void *user, const model_bound *bound, base_err *err)
{
    return model_bound_sections(user, bound, err);
}

static void turn_model(void *user, float *queries, uint32_t n, const int64_t *by)
{
    model_turn_queries(user, queries, n, by);
}

static int turn_model_rows(void *user, const model_rows_view *rows, uint32_t lane, uint32_t index,
    uint32_t step, uint32_t n, uint16_t *keys, base_err *err)
{
    return model_turn_rows(user, rows, lane, index, step, n, keys, err);
}

static uint32_t window_of_model(void *user, uint32_t layer)
{
    return model_window(user, layer);
}

static void pin_model(void *user, void *memory, size_t n_bytes)
{
    model_rows_pin(user, memory, n_bytes);
}

static void unpin_model(void *user, void *memory)
{
    model_rows_unpin(user, memory);
}

static void bring_model(void *user, const model_rows_view *rows)
{
    model_rows_bring(user, rows);
}

static uint8_t ending_of_model(void *user, int32_t id)
{
    const model_tokenizer *t = model_get_tokenizer(user);
    size_t n = 0;
    const char *piece = model_tokenizer_piece(t, id, &n);
    if (model_tokenizer_is_control(t, id)) return KV_ENDING_SENTENCE;
    return piece ? (uint8_t)kv_ending_of_text(piece, n) : KV_ENDING_NONE;
}

kv_compute kv_compute_model(model *m)
{
    const model_info *info = model_get_info(m);
    kv_compute c = {
        .user = m,
        .forward = forward_model,
        .score = score_model,
        .shape = model_get_rows_shape(m),
        .n_head = info->n_head,
        .n_embd = info->is_whole ? 0 : info->n_embd,
        .n_vocab = info->n_vocab,
        .n_ctx = info->n_ctx,
        .kernel_version = info->kernel_version,
        .bound = bound_model,
        .ending = ending_of_model,
        .turn = info->folds ? turn_model : NULL,
        .turn_rows = turn_model_rows,
        .window = window_of_model,
        .state_bytes = info->state_bytes,
        .gathers = !strcmp(info->backend, "cpu"),
        .device = {.user = m, .pin = pin_model, .unpin = unpin_model, .bring = bring_model},
    };
    memcpy(c.hash, info->hash, sizeof c.hash);
    return c;
}
