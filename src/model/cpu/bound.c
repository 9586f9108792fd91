/*
 * Bounds of sections by their profiles (ops.h): two products with the kernel that scores rows, since max(q M,
 * q m) is q M where q is positive and q m where it is negative. A work unit is a lane and a tile of sections.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"
#include "model/ops/check.h"

enum { TILE = MODEL_ROWS_TILE };

typedef struct bound_job {
    cpu_ops *cpu;
    const ops_bound_args *args;
    uint32_t group, n_tiles;
    _Atomic uint32_t next;
    _Atomic int cancelled;
} bound_job;

/* A thread's working space: the token's query heads of a lane, split by sign, and a tile's scores of both. */
static size_t space_floats(uint32_t group, uint32_t head_dim)
{
    return 2 * (size_t)group * (head_dim + TILE);
}

/* out[i] = the largest over heads of x[head][i]. */
static void join_heads(const float *x, size_t stride, uint32_t group, uint32_t n, float *out)
{
    memcpy(out, x, n * sizeof *out);
    for (uint32_t g = 1; g < group; g++)
        for (uint32_t i = 0; i < n; i++) out[i] = x[g * stride + i] > out[i] ? x[g * stride + i] : out[i];
}

static void run_tile(const bound_job *j, float *space, uint32_t kv_head, uint32_t tile)
{
    const ops_bound_args *a = j->args;
    const model_rows_shape *shape = &a->profiles->shape;
    const uint32_t d = shape->head_dim, lane = a->layer * shape->n_head_kv + kv_head, first = tile * TILE;
    const uint32_t n = a->n_sections - first < TILE ? a->n_sections - first : TILE;
    const uint16_t *most[TILE], *least[TILE];
    float *above = space, *below = above + (size_t)j->group * d, *s = below + (size_t)j->group * d,
          *s2 = s + (size_t)j->group * TILE;
    for (uint32_t i = 0; i < n; i++) {
        most[i] = model_rows_key(a->profiles, lane, first + i);
        least[i] = model_rows_value(a->profiles, lane, first + i);
    }
    for (uint32_t t = 0; t < a->n; t++) {
        const float *q = cpu_row(a->q, t) + (size_t)kv_head * j->group * d;
        for (uint32_t i = 0; i < j->group * d; i++) {
            above[i] = q[i] > 0 ? q[i] : 0;
            below[i] = q[i] > 0 ? 0 : q[i];
        }
        j->cpu->kernels.scores(most, n, above, j->group, d, d, a->scale, (cpu_ahead){least, n}, s, TILE);
        j->cpu->kernels.scores(least, n, below, j->group, d, d, a->scale, (cpu_ahead){0}, s2, TILE);
        for (uint32_t i = 0; i < j->group * TILE; i++) s[i] += s2[i];
        const size_t row = (size_t)kv_head * a->n + t;
        join_heads(s, TILE, j->group, n, a->bound + row * a->n_sections + first);
    }
}

static void bound_run(void *arg, int thread, int n_threads)
{
    bound_job *j = arg;
    (void)n_threads;
    const uint32_t n_units = j->args->profiles->shape.n_head_kv * j->n_tiles;
    for (uint32_t unit; !j->cancelled && (unit = atomic_fetch_add(&j->next, 1)) < n_units;) {
        if (cpu_is_cancelled(j->cpu)) j->cancelled = 1;
        run_tile(j, j->cpu->scratch[thread].data, unit / j->n_tiles, unit % j->n_tiles);
    }
}

int cpu_op_bound(model_ops *ops, const ops_bound_args *a, base_err *err)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    const model_rows_shape *shape = &a->profiles->shape;
    int rc = cpu_check_heads(shape, a->n_head, err);
    if (rc || !a->n || !a->n_sections) return rc;
    if ((rc = ops_check_bound(a, err))) return rc;
    bound_job j = {.cpu = cpu,
        .args = a,
        .group = a->n_head / shape->n_head_kv,
        .n_tiles = (a->n_sections + TILE - 1) / TILE};
    rc = cpu_scratch_reserve(cpu, space_floats(j.group, shape->head_dim) * sizeof(float), 0, err);
    if (rc) return rc;
    base_pool_share(cpu->pool, bound_run, &j);
    if (j.cancelled || cpu_is_cancelled(cpu)) return cpu_cancelled(err);
    return 0;
}
