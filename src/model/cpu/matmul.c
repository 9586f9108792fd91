/*
 * Products: every thread has a range of tiles of 16 output rows, from whose beginning it claims chunks of
 * some tens of KB; one that is done helps another, so that a late one does not hold up the rest. Ranges and
 * not turns, because a core's prefetcher follows one long stream: with two threads taking alternate chunks
 * memory gives a third less. Who computes a tile never shows in its bits.
 *
 * Up to CPU_GROUP columns are multiplied straight from the packed bytes; more of them from a panel that is
 * expanded once.
 */
#include <string.h>

#include "model/cpu/cpu.h"

enum { CHUNK_BYTES = 64 * 1024 };

typedef struct job {
    cpu_ops *cpu;
    const ops_matmul_args *args;
} job;

size_t cpu_panel_bytes(uint32_t n_blocks)
{
    return (n_blocks + CPU_SUPER_MAX) * cpu_panel_block_bytes(CPU_SCALES_F) /* the largest */;
}

void cpu_multiply_tile(const cpu_kernels *k, const ops_weight *w, uint32_t tile, cpu_columns x,
    uint32_t n_blocks, uint32_t n_columns, uint8_t *panel, float *out)
{
    const uint8_t *data = w->data + tile * w->tile_bytes;
    const cpu_format_info *f = &cpu_formats[w->format];
    bool direct = n_columns <= CPU_GROUP && k->tile[w->format];
    if (!direct) k->expand[w->format](data, w->n_super, panel);
    for (uint32_t first = 0; first < n_columns; first += CPU_GROUP) {
        uint32_t c = n_columns - first < CPU_GROUP ? n_columns - first : CPU_GROUP;
        cpu_columns g = cpu_columns_from(x, n_blocks, first);
        float *to = out + (size_t)first * CPU_LANES;
        if (direct)
            k->tile[w->format](data, w->n_super, &g, c, to);
        else
            k->panel[f->scales](panel, w->n_super * f->blocks, f->shift, &g, c, to);
    }
}

/* to = v + bias + add, of n_lanes; inlined with 16 and with fewer. */
static inline __attribute__((always_inline)) void finish_row(
    const float *v, const float *bias, const float *add, uint32_t n_lanes, float *to)
{
    for (uint32_t r = 0; r < n_lanes; r++) {
        float sum = bias ? v[r] + bias[r] : v[r];
        to[r] = add ? sum + add[r] : sum;
    }
}

/* Second columns, bias and residual, in this order. */
static void finish_tile(
    const ops_activations *x, const ops_matmul_args *args, uint32_t part, uint32_t tile, float *out)
{
    const ops_weight *w = args->parts[part].weight;
    uint32_t row = tile * CPU_LANES, n_lanes = w->n_out - row < CPU_LANES ? w->n_out - row : CPU_LANES;
    const ops_mat y = args->parts[part].y, add = args->parts[part].add;
    const float *bias = args->parts[part].bias ? cpu_floats(args->parts[part].bias) + row : NULL;
    for (uint32_t i = 0; i < x->n_fine; i++) {
        float *to = out + (size_t)x->fine[i] * CPU_LANES, *second = out + (size_t)(x->n + i) * CPU_LANES;
        for (int r = 0; r < CPU_LANES; r++) to[r] += second[r];
    }
    for (uint32_t t = 0; t < x->n; t++) {
        const float *v = out + (size_t)t * CPU_LANES, *more = add.buffer ? cpu_row(add, t) + row : NULL;
        float *to = cpu_row(y, t) + row;
        if (n_lanes < CPU_LANES)
            finish_row(v, bias, more, n_lanes, to);
        else if (more)
            finish_row(v, bias, more, CPU_LANES, to);
        else if (bias)
            finish_row(v, bias, NULL, CPU_LANES, to);
        else
            memcpy(to, v, CPU_LANES * sizeof *to);
    }
}

static bool is_wanted(const uint64_t *only, uint32_t tile)
{
    const uint32_t row = tile * CPU_LANES;
    return !only || (only[row / 64] >> row % 64 & ((1u << CPU_LANES) - 1));
}

/* Tiles [first, last), counted through all parts. */
static void multiply_tiles(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const job *j = arg;
    const ops_activations *x = j->args->x;
    uint8_t *panel = j->cpu->scratch[thread].data;
    float *out = (float *)(void *)(panel + cpu_panel_bytes(x->n_blocks));
    uint32_t before = 0;
    for (uint32_t p = 0; p < j->args->n_parts; p++) {
        const ops_weight *w = j->args->parts[p].weight;
        for (uint32_t tile = first > before ? first - before : 0; tile < w->n_tiles && before + tile < last;
             tile++) {
            if (!is_wanted(j->args->only, tile)) continue;
            cpu_multiply_tile(
                &j->cpu->kernels, w, tile, cpu_group(x, 0), x->n_blocks, cpu_n_columns(x), panel, out);
            finish_tile(x, j->args, p, tile, out);
        }
        before += w->n_tiles;
    }
}

/* ---- ranges of items ---- */

/* A thread's items that nobody has claimed yet, alone on its cache line. */
typedef struct range {
    _Alignas(64) _Atomic uint32_t next;
    uint32_t end;
} range;

typedef struct items {
    cpu_ops *cpu;
    cpu_items_fn *fn;
    const void *arg;
    uint32_t chunk;
    range ranges[CPU_THREADS_MAX];
    _Atomic int cancelled;
} items;

static void run(void *arg, int thread, int n_threads)
{
    items *all = arg;
    for (int i = 0; i < n_threads; i++) {
        range *r = &all->ranges[(thread + i) % n_threads];
        for (uint32_t first; (first = atomic_fetch_add(&r->next, all->chunk)) < r->end;) {
            if (cpu_is_cancelled(all->cpu)) {
                all->cancelled = 1;
                return;
            }
            all->fn(all->arg, first, r->end - first < all->chunk ? r->end : first + all->chunk, thread);
        }
    }
}

bool cpu_run_items(cpu_ops *cpu, cpu_items_fn *fn, const void *arg, uint32_t n_items, uint32_t chunk)
{
    items all = {.cpu = cpu, .fn = fn, .arg = arg, .chunk = chunk};
    uint32_t n_threads = (uint32_t)cpu->n_threads;
    for (uint32_t i = 0; i < n_threads; i++) {
        all.ranges[i].next = (uint32_t)((uint64_t)n_items * i / n_threads);
        all.ranges[i].end = (uint32_t)((uint64_t)n_items * (i + 1) / n_threads);
    }
    base_pool_share(cpu->pool, run, &all);
    return !all.cancelled;
}

/* Items of item_bytes that are claimed at once, when each is multiplied with n_columns. */
uint32_t cpu_chunk_of(const cpu_ops *cpu, uint32_t n_items, size_t item_bytes, uint32_t n_columns)
{
    uint32_t even = n_items / (4 * (uint32_t)cpu->n_threads);
    uint32_t chunk = n_columns > CPU_GROUP ? 1 : (uint32_t)(CHUNK_BYTES / item_bytes + 1);
    if (chunk > even) chunk = even ? even : 1;
    return chunk;
}

int cpu_op_matmul(model_ops *ops, const ops_matmul_args *args, base_err *err)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    const ops_activations *x = args->x;
    job j = {.cpu = cpu, .args = args};
    size_t n_bytes = 0;
    uint32_t n_tiles = 0;
    for (uint32_t p = 0; p < args->n_parts; p++) {
        const ops_weight *w = args->parts[p].weight;
        if (w->n_in != x->width)
            return base_fail(
                err, BASE_E_LIMIT, "a matrix of %u inputs cannot take activations of %u", w->n_in, x->width);
        n_tiles += w->n_tiles;
        n_bytes += w->n_bytes;
    }
    if (args->only && args->n_parts != 1)
        return base_fail(err, BASE_E_USAGE, "some outputs of %u matrices at once", args->n_parts);
    if (x->n == 0 || n_tiles == 0) return 0;
    int rc = cpu_scratch_reserve(
        cpu, cpu_panel_bytes(x->n_blocks) + (size_t)cpu_n_columns(x) * CPU_LANES * sizeof(float), 0, err);
    if (rc < 0) return rc;
    uint32_t chunk = cpu_chunk_of(cpu, n_tiles, n_bytes / n_tiles, cpu_n_columns(x));
    return cpu_run_items(cpu, multiply_tiles, &j, n_tiles, chunk) ? 0 : cpu_cancelled(err);
}
