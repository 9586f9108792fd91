/*
 * Products: which kernel takes one, or, under cuda:bf16, cuBLAS with what it needs before and behind
 * (cublas.c).
 */
#include "cuda/backend.h"

/*
 * Which kernel a product takes; the bits are the same. The first way that has the columns for it and whose
 * blocks of threads fill the device counts: tiles of many columns read weights and activations less often,
 * and leave multiprocessors idle where a matrix has few rows.
 */
static const struct product_way {
    uint32_t least_columns, rows, columns; /* of the batch; of a block of threads */
    int per_processor;                     /* blocks of threads that there must be */
    gpu_launch_fn *launch;
} product_ways[] = {
    {33, GPU_TILE_ROWS, GPU_WIDE, 2, cuda_launch_matmul_wide},
    {17, GPU_TILE_ROWS, GPU_NARROW, 1, cuda_launch_matmul_narrow},
    {1, GPU_ROWS, GPU_COLUMNS, 0, cuda_launch_matmul},
};

static gpu_launch_fn *way_of(const cuda_backend *c, const k_matmul *k)
{
    for (const struct product_way *w = product_ways;; w++) {
        uint64_t n_rows = 0;
        for (uint32_t p = 0; p < k->n_parts; p++) n_rows += (k->parts[p].w.n_out + w->rows - 1) / w->rows;
        const uint64_t n_blocks = n_rows * ((k->n + w->columns - 1) / w->columns);
        if (w->per_processor == 0) return w->launch;
        if (k->n >= w->least_columns && n_rows <= GPU_GRID_MAX &&
            n_blocks >= (uint64_t)w->per_processor * (uint64_t)c->n_fill)
            return w->launch;
    }
}

static bool takes_cublas(const cuda_backend *c, const ops_matmul_args *a)
{
    if (!c->cublas || a->only || a->x->n < CUDA_BF16_COLUMNS) return false;
    for (uint32_t p = 0; p < a->n_parts; p++)
        if (!a->parts[p].weight->wide) return false;
    return true;
}

static int multiply_by_cublas(cuda_backend *c, const ops_matmul_args *a, const k_matmul *k, base_err *err)
{
    CUDA_PARAMS(k_widen_columns, x);
    x.x = k->x;
    x.out = a->x->wide;
    x.n = k->n;
    x.width = a->x->width;
    int rc = cuda_launch(c, cuda_launch_widen_columns, &x, sizeof x, k->n, err);
    for (uint32_t p = 0; p < k->n_parts && !rc; p++) {
        const struct k_part *part = &k->parts[p];
        CUDA_PARAMS(k_gemm, g);
        g.cublas = c->cublas;
        g.weights = a->parts[p].weight->wide;
        g.x = a->x->wide;
        g.y = part->y;
        g.n = k->n;
        g.n_in = part->w.n_in;
        g.n_out = part->w.n_out;
        g.adds = part->add.data != NULL;
        if (g.adds && part->add.data != part->y.data)
            rc = cuda_copy_rows(c, part->add, part->y, k->n, g.n_out, err);
        if (!rc) rc = cuda_launch(c, cuda_launch_gemm, &g, sizeof g, k->n, err);
        if (!rc && part->bias)
            rc = cuda_add_rows(
                c, part->y, (gpu_mat){(float *)(uintptr_t)part->bias, 0}, part->y, k->n, g.n_out, err);
    }
    return rc;
}

int cuda_op_matmul(model_ops *ops, const ops_matmul_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    CUDA_PARAMS(k_matmul, k);
    int rc = cuda_check_cancel(c, err);
    if (rc) return rc;
    for (uint32_t p = 0; p < a->n_parts; p++) {
        const ops_weight *w = a->parts[p].weight;
        if (w->w.n_in != a->x->width)
            return base_fail(err, BASE_E_LIMIT, "a matrix of %u inputs cannot take activations of %u",
                w->w.n_in, a->x->width);
        k.parts[p].w = w->w;
        k.parts[p].bias = a->parts[p].bias ? a->parts[p].bias->data : NULL;
        k.parts[p].y = cuda_mat_of(a->parts[p].y);
        k.parts[p].add = cuda_mat_of(a->parts[p].add);
    }
    if (a->only && a->n_parts != 1)
        return base_fail(err, BASE_E_USAGE, "some outputs of %u matrices at once", a->n_parts);
    if (a->x->n == 0 || a->n_parts == 0) return 0;
    if (a->parts[0].weight->on_host) return cuda_host_matmul(c, a, err);
    k.x = a->x->columns;
    k.n = a->x->n;
    k.n_parts = a->n_parts;
    k.then.arrived = c->arrived;
    if (a->only) {
        const size_t n_words = (a->parts[0].weight->w.n_out + 63) / 64;
        rc = cuda_give(c, a->only, n_words * sizeof *a->only, &k.only, err);
    }
    if (rc) return rc;
    if (takes_cublas(c, a)) return multiply_by_cublas(c, a, &k, err);
    return cuda_launch(c, way_of(c, &k), &k, sizeof k, k.n, err);
}
