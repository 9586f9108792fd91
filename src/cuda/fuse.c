/*
 * Launches that wait, joined: where a sequence of them is one that a kernel can do at once, with the same
 * bits, the first one's struct takes in what the others say. A table says which; operations know nothing of
 * it. So a decoded token takes 6 launches a layer instead of 13:
 *
 *     norm+quantise | QKV, rotate q, rotate k, write rows | attention | merge, quantise | output,
 *         norm+quantise |
 *     gate and up, gate+quantise | down, the next layer's norm+quantise
 *
 * A join is refused where shapes or places do not fit; then everything is launched as it stands.
 */
#include <string.h>

#include "cuda/backend.h"

enum {
    QUANT_COLUMNS =
        2 /* rows that one block of threads normalises: more are faster by a launch of their own */
};

static bool is_same(gpu_mat a, gpu_mat b)
{
    return a.data == b.data && a.stride == b.stride;
}

/* The counters of arrivals suffice. */
static bool has_counters(const k_matmul *m, uint32_t n_groups)
{
    return (uint64_t)n_groups * ((m->n + GPU_COLUMNS - 1) / GPU_COLUMNS) <= CUDA_ARRIVED;
}

/*
 * Joins a product of q, k and v with the rotation and the writing of rows, where a head is made by whole
 * blocks of threads and exactly what the product made is rotated and written.
 */
static bool join_turn(void *joined, const void *const *others)
{
    k_matmul *m = joined;
    const k_rope *q = others[0], *k = others[1];
    const k_rows_write *rows = others[2];
    const uint32_t d = rows->head_dim;
    if (m->n_parts != 3 || m->only || !is_same(q->x, m->parts[0].y) || !is_same(k->x, m->parts[1].y) ||
        !is_same(rows->k, m->parts[1].y) || !is_same(rows->v, m->parts[2].y))
        return false;
    if (d % GPU_ROWS || q->head_dim != d || k->head_dim != d || q->n_rot == 0 ||
        q->n_heads * d != m->parts[0].w.n_out || k->n_heads != rows->n_lanes ||
        k->n_heads * d != m->parts[1].w.n_out || m->parts[2].w.n_out != m->parts[1].w.n_out || q->n != m->n ||
        k->n != m->n || rows->n != m->n || !has_counters(m, q->n_heads + 2 * k->n_heads))
        return false;
    m->then.q = *q;
    m->then.k = *k;
    m->then.rows = *rows;
    m->then.what = GPU_THEN_TURN;
    return true;
}

/*
 * Joins a product with what is made of its outputs: normalised and quantised, or gate and up through the
 * gate. Not where that would overwrite what the product reads.
 */
static bool join_quant(void *joined, const void *const *others)
{
    k_matmul *m = joined;
    const k_quant *a = others[0];
    if (m->only || a->n != m->n || a->out.q == m->x.q || !is_same(a->x, m->parts[0].y) ||
        a->width != m->parts[0].w.n_out)
        return false;
    if (a->make == GPU_MAKE_NORM && m->n_parts == 1 && !a->rows && a->n <= QUANT_COLUMNS)
        m->then.what = GPU_THEN_QUANT;
    else if (a->make >= GPU_MAKE_SILU && m->n_parts == 2 && is_same(a->up, m->parts[1].y) &&
             m->parts[1].w.n_out == a->width && has_counters(m, a->width / GPU_BLOCK))
        m->then.what = GPU_THEN_GATE;
    else
        return false;
    m->then.quant = *a;
    return true;
}

static bool join_merge(void *joined, const void *const *others)
{
    k_attention *m = joined;
    const k_quant *a = others[0];
    const uint32_t d = m->lists.head_dim;
    if (d % GPU_BLOCK || a->make != GPU_MAKE_PLAIN || a->n != m->n || a->width != m->n_head * d ||
        !is_same(a->x, m->out))
        return false;
    m->quantised = a->out;
    return true;
}

static const struct fusion {
    gpu_launch_fn *launches[4];
    size_t n;
    bool (*join)(void *joined, const void *const *others); /* the first's struct, and those of the others */
} fusions[] = {
    {{cuda_launch_matmul, cuda_launch_rope, cuda_launch_rope, cuda_launch_rows_write}, 4, join_turn},
    {{cuda_launch_matmul, cuda_launch_quant}, 2, join_quant},
    {{cuda_launch_merge, cuda_launch_quant}, 2, join_merge},
};

/* How many launches from `at` on become one. */
static size_t join_at(cuda_queue *q, size_t at)
{
    for (size_t f = 0; f < sizeof fusions / sizeof *fusions; f++) {
        const struct fusion *table = &fusions[f];
        const void *others[3];
        size_t n = 0;
        if (table->n > q->n - at) continue;
        while (n < table->n && q->commands[at + n].launch == table->launches[n]) n++;
        if (n < table->n) continue;
        for (size_t i = 1; i < n; i++) others[i - 1] = q->structs.data + q->commands[at + i].at;
        if (table->join(q->structs.data + q->commands[at].at, others)) return n;
    }
    return 1;
}

void cuda_fuse(cuda_queue *q)
{
    size_t n = 0;
    for (size_t at = 0; at < q->n; n++) {
        q->commands[n] = q->commands[at];
        at += join_at(q, at);
    }
    q->n = n;
}
