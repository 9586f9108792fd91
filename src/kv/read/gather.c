/* Copies of rows that lie apart; see gather.h. */
#include "kv/read/gather.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { TOGETHER = 64 }; /* a run as long is read nearly as fast as whole blocks (docs/diary.md) */

struct kv_gather {
    const kv_compute *compute;
    model_rows_shape shape;
    uint32_t first, n; /* blocks */
    uint16_t **blocks; /* [first + n] of a view: the table's, and from `first` on ours */
    uint8_t **packed;  /* [first + n] ours are not */
    uint16_t **filed;  /* [first + n] ours are not */
};

kv_gather *kv_gather_new(const kv_compute *compute, uint32_t first_block)
{
    kv_gather *g = calloc(1, sizeof *g);
    if (g) *g = (kv_gather){.compute = compute, .shape = compute->shape, .first = first_block};
    return g;
}

void kv_gather_free(kv_gather *g)
{
    if (!g) return;
    for (uint32_t b = 0; b < g->n; b++)
        base_huge_free(g->blocks[g->first + b], model_rows_block_bytes(&g->shape));
    free(g->blocks);
    free(g->packed);
    free(g->filed);
    free(g);
}

/* How many rows of a run lie below token `to`. */
static uint32_t below(const model_run *run, uint32_t to)
{
    if (run->index >= to) return 0;
    return to - run->index < run->n ? to - run->index : run->n;
}

/*
 * Gaps never grow with the index: of a run that is folded the first row is. In a row file a lane's rows lie apart.
 */
static bool is_copied(const model_rows_view *rows, const model_run *run)
{
    return run->n < TOGETHER || model_rows_gap(rows, run->index) || model_rows_filed(rows, run->slot);
}

uint32_t kv_gather_blocks(const model_rows_view *rows, const bool *which, uint32_t to)
{
    uint32_t most = 0;
    for (uint32_t lane = 0; lane < model_rows_lanes(&rows->shape); lane++) {
        const model_lane_list *list = &rows->lanes[lane];
        uint32_t n = 0;
        for (uint32_t i = 0; i < list->n_runs && which[lane]; i++)
            n += is_copied(rows, &list->runs[i]) ? below(&list->runs[i], to) : 0;
        most = n > most ? n : most;
    }
    return (most + MODEL_ROWS_BLOCK - 1) / MODEL_ROWS_BLOCK;
}

bool kv_gather_reserve(kv_gather *g, uint32_t n_blocks)
{
    const size_t n = (size_t)g->first + n_blocks;
    if (n_blocks <= g->n) return true;
    uint16_t **blocks = realloc(g->blocks, n * sizeof *blocks);
    if (!blocks) return false;
    g->blocks = blocks;
    uint8_t **packed = realloc(g->packed, n * sizeof *packed);
    if (!packed) return false;
    g->packed = packed;
    uint16_t **filed = realloc(g->filed, n * sizeof *filed);
    if (!filed) return false;
    g->filed = filed;
    if (!g->n) memset(g->blocks, 0, g->first * sizeof *g->blocks);
    memset(g->packed, 0, n * sizeof *g->packed);
    memset(g->filed, 0, n * sizeof *g->filed);
    for (; g->n < n_blocks; g->n++) {
        g->blocks[g->first + g->n] = base_huge_alloc(model_rows_block_bytes(&g->shape));
        if (!g->blocks[g->first + g->n]) return false;
    }
    return true;
}

/* n rows of one run into the slots from `slot` on, which lie in one block. False: no memory. */
static bool copy_rows(
    const kv_gather *g, const model_rows_view *rows, uint32_t lane, const model_run *run, uint32_t slot)
{
    const size_t d = g->shape.head_dim, value = (size_t)MODEL_ROWS_BLOCK * d,
                 n_bytes = run->n * d * sizeof(uint16_t);
    uint16_t *to = g->blocks[slot / MODEL_ROWS_BLOCK] +
                   ((size_t)lane * 2 * MODEL_ROWS_BLOCK + slot % MODEL_ROWS_BLOCK) * d;
    const uint16_t *from = model_rows_key(rows, lane, run->slot);
    const size_t pitch = model_rows_pitch(rows, run->slot), to_value = model_rows_to_value(rows, run->slot);
    for (uint32_t i = 0; i < run->n && pitch != d; i++) {
        memcpy(to + i * d, from + i * pitch, d * sizeof *to);
        memcpy(to + value + i * d, from + i * pitch + to_value, d * sizeof *to);
    }
    if (pitch == d) memcpy(to, from, n_bytes);
    if (pitch == d) memcpy(to + value, from + to_value, n_bytes);
    return !model_rows_gap(rows, run->index) ||
           !g->compute->turn_rows(g->compute->user, rows, lane, run->index, 1, run->n, to, NULL);
}

model_run *kv_gather_lane(kv_gather *g, const model_rows_view *rows, uint32_t lane, uint32_t to,
    uint32_t *ret_n, uint32_t *ret_rows)
{
    const model_lane_list *list = &rows->lanes[lane];
    /* A run that is copied over the end of a block becomes two. */
    model_run *runs = malloc(((size_t)list->n_runs + g->n + 1) * sizeof *runs);
    uint32_t slot = g->first * MODEL_ROWS_BLOCK;
    *ret_n = *ret_rows = 0;
    if (!runs) return NULL;
    for (uint32_t i = 0; i < list->n_runs && list->runs[i].index < to; i++) {
        model_run left = list->runs[i];
        const bool copies = is_copied(rows, &left);
        left.n = below(&left, to);
        *ret_rows += left.n;
        while (left.n) {
            const uint32_t room = MODEL_ROWS_BLOCK - slot % MODEL_ROWS_BLOCK;
            model_run part = left;
            if (copies && part.n > room) part.n = room;
            left = (model_run){left.slot + part.n, left.index + part.n, left.n - part.n};
            if (copies) {
                if (!copy_rows(g, rows, lane, &part, slot)) {
                    free(runs);
                    return NULL;
                }
                part.slot = slot;
                slot += part.n;
            }
            runs[(*ret_n)++] = part;
        }
    }
    return runs;
}

size_t kv_gather_bytes(const kv_gather *g)
{
    return g ? g->n * model_rows_block_bytes(&g->shape) : 0;
}

bool kv_gather_show(kv_gather *g, model_rows_view *rows)
{
    if (!g->n || rows->n_blocks > g->first) return false;
    memcpy(g->blocks, rows->blocks, rows->n_blocks * sizeof *g->blocks);
    if (rows->packed) memcpy(g->packed, rows->packed, rows->n_blocks * sizeof *g->packed);
    if (rows->filed) memcpy(g->filed, rows->filed, rows->n_blocks * sizeof *g->filed);
    rows->blocks = g->blocks;
    rows->filed = g->filed;
    rows->packed = g->packed;
    rows->n_blocks = g->first + g->n;
    rows->turned_from = g->first * MODEL_ROWS_BLOCK;
    rows->stamps = NULL;
    return true;
}
