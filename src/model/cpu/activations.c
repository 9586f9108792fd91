/*
 * From F32 rows to the 8-bit columns that products read (ops_activations in cpu.h), in two phases on the
 * pool: each row is normalised (or gated) and quantised by itself; then rows are interleaved into groups of
 * columns.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/cpu/cpu.h"

enum { MIN_PARALLEL = 16 * 1024 }; /* elements; fewer are done sooner than other threads wake */

typedef enum make { MAKE_PLAIN, MAKE_NORM, MAKE_GATE } make;

typedef struct job {
    cpu_ops *cpu;
    ops_activations *out;
    make make;
    ops_mat x, up;
    const float *weight;
    const uint32_t *rows;
    float eps;
    ops_gate gate;
    const float *shares;
    _Atomic uint32_t next;
} job;

/*
 * Eight bits per element of a block do for a row whose blocks are of like size. A few rows (a model's first
 * position above all) hold elements some thousand times larger than the rest, and the rest of such a block
 * would be rounded away.
 */
bool cpu_row_needs_fine(const float *d, uint32_t n_blocks)
{
    float largest = 0, sum = 0;
    for (uint32_t i = 0; i < n_blocks; i++) {
        largest = d[i] > largest ? d[i] : largest;
        sum += d[i];
    }
    float others = (sum - largest) / (float)(n_blocks > 1 ? n_blocks - 1 : 1);
    float bound = 2.0f * sqrtf((float)n_blocks); /* the noise of one block weighs less among many */
    return largest > (bound > 16.0f ? bound : 16.0f) * others;
}

static void make_row(const job *j, uint32_t row, float *scratch)
{
    const cpu_kernels *k = &j->cpu->kernels;
    ops_activations *out = j->out;
    uint32_t n = out->width;
    const float *x = cpu_row(j->x, j->rows ? j->rows[row] : row);
    if (j->make == MAKE_NORM)
        k->norm_row(x, j->weight, n, j->eps, scratch);
    else if (j->make == MAKE_GATE)
        k->gate_row(x, cpu_row(j->up, row), j->gate, n, scratch);
    for (uint32_t i = 0; j->shares && i < n; i++) scratch[i] *= j->shares[row];
    const float *made = j->make == MAKE_PLAIN ? x : scratch;

    int8_t *q = out->row_q + (size_t)row * n, *q2 = out->row_q2 + (size_t)row * n;
    float *d = out->row_d + (size_t)row * out->n_blocks;
    k->quant_row(made, n, q, d);
    out->row_fine[row] = cpu_row_needs_fine(d, n / CPU_BLOCK);
    if (out->row_fine[row]) k->quant_fine_row(made, n, q, d, q2);
}

void cpu_interleave(const cpu_kernels *k, const int8_t *const *q, const float *const *d, const float *unit,
    uint32_t c, uint32_t n_blocks, uint32_t n_padded, cpu_columns out)
{
    size_t at = (size_t)n_blocks * c, n = (size_t)(n_padded - n_blocks) * c;
    k->interleave(q, d, unit, c, n_blocks, out);
    memset(out.q + at * CPU_BLOCK, 0, n * CPU_BLOCK);
    memset(out.d + at, 0, n * sizeof *out.d);
    memset(out.sum + at, 0, n * sizeof *out.sum);
    memset(out.nsum + 2 * at, 0, 2 * n * sizeof *out.nsum);
}

static void interleave(const cpu_kernels *k, const ops_activations *a, uint32_t first)
{
    uint32_t n_columns = cpu_n_columns(a), c = n_columns - first < CPU_GROUP ? n_columns - first : CPU_GROUP;
    const int8_t *q[CPU_GROUP];
    const float *d[CPU_GROUP];
    float unit[CPU_GROUP];
    for (uint32_t i = 0; i < c; i++) {
        bool second = first + i >= a->n;
        uint32_t row = second ? a->fine[first + i - a->n] : first + i;
        q[i] = (second ? a->row_q2 : a->row_q) + (size_t)row * a->width;
        d[i] = a->row_d + (size_t)row * a->n_blocks;
        unit[i] = second ? 1.0f / 256 : 1.0f;
    }
    cpu_interleave(k, q, d, unit, c, a->width / CPU_BLOCK, a->n_blocks, cpu_group(a, first));
}

static void list_fine(ops_activations *a)
{
    a->n_fine = 0;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->row_fine[i]) a->fine[a->n_fine++] = i;
}

static void make_rows(void *arg, int thread, int n_threads)
{
    (void)n_threads;
    job *j = arg;
    for (uint32_t i; (i = atomic_fetch_add(&j->next, 1)) < j->out->n;)
        make_row(j, i, j->cpu->scratch[thread].data);
}

static void interleave_rows(void *arg, int thread, int n_threads)
{
    (void)thread;
    (void)n_threads;
    job *j = arg;
    uint32_t n_columns = cpu_n_columns(j->out);
    for (uint32_t c; (c = atomic_fetch_add(&j->next, CPU_GROUP)) < n_columns;)
        interleave(&j->cpu->kernels, j->out, c);
}

static void phase(job *j, base_pool_fn *fn)
{
    j->next = 0;
    if (j->out->n == 1 || (uint64_t)j->out->n * j->out->width < MIN_PARALLEL)
        fn(j, 0, 1);
    else
        base_pool_share(j->cpu->pool, fn, j);
}

static int check_room(const ops_activations *a, uint32_t n, uint32_t width, base_err *err)
{
    if (n <= a->n_max && width <= a->width_max && width % CPU_BLOCK == 0) return 0;
    return base_fail(err, BASE_E_LIMIT, "%u rows of %u do not fit activations for %u rows of %u", n, width,
        a->n_max, a->width_max);
}

static int make_activations(job *j, uint32_t n, uint32_t width, base_err *err)
{
    ops_activations *a = j->out;
    int rc = check_room(a, n, width, err);
    if (!rc) rc = cpu_scratch_reserve(j->cpu, width * sizeof(float), 0, err);
    if (rc < 0) return rc;
    a->n = n;
    a->width = width;
    a->n_blocks = cpu_padded_blocks(width);
    phase(j, make_rows);
    list_fine(a);
    phase(j, interleave_rows);
    return 0;
}

int cpu_take_quantised(model_ops *ops, ops_activations *x, const ops_quantised *rows, base_err *err)
{
    const size_t n_blocks = rows->width / CPU_BLOCK, n_bytes = (size_t)rows->n * rows->width;
    job j = {.cpu = (cpu_ops *)ops, .out = x};
    int rc = check_room(x, rows->n, rows->width, err);
    if (rc) return rc;
    x->n = rows->n;
    x->width = rows->width;
    x->n_blocks = cpu_padded_blocks(rows->width);
    memcpy(x->row_q, rows->q, n_bytes);
    memcpy(x->row_q2, rows->q2, n_bytes);
    for (uint32_t i = 0; i < rows->n; i++) {
        memcpy(x->row_d + (size_t)i * x->n_blocks, rows->d + i * n_blocks, n_blocks * sizeof *x->row_d);
        x->row_fine[i] = rows->is_fine[i] != 0;
    }
    list_fine(x);
    phase(&j, interleave_rows);
    return 0;
}

int cpu_op_norm_quant(model_ops *ops, const ops_norm_quant_args *args, base_err *err)
{
    job j = {.cpu = (cpu_ops *)ops,
        .out = args->out,
        .make = MAKE_NORM,
        .x = args->x,
        .rows = args->rows,
        .eps = args->eps};
    j.weight = cpu_floats(args->weight);
    return make_activations(&j, args->n, args->width, err);
}

int cpu_op_quant(model_ops *ops, const ops_quant_args *args, base_err *err)
{
    job j = {.cpu = (cpu_ops *)ops, .out = args->out, .make = MAKE_PLAIN, .x = args->x};
    return make_activations(&j, args->n, args->width, err);
}

int cpu_op_gate_quant(model_ops *ops, const ops_gate_quant_args *args, base_err *err)
{
    job j = {.cpu = (cpu_ops *)ops,
        .out = args->out,
        .make = MAKE_GATE,
        .x = args->gate,
        .up = args->up,
        .shares = args->shares ? cpu_floats(args->shares) : NULL,
        .gate = args->kind};
    return make_activations(&j, args->n, args->width, err);
}

int cpu_activations_new(
    model_ops *ops, ops_activations **ret, uint32_t n_max, uint32_t width_max, base_err *err)
{
    (void)ops;
    size_t blocks = cpu_padded_blocks(width_max + CPU_BLOCK), columns = 2 * (size_t)n_max, n_blocks = 0,
           rows_bytes = 0;
    ops_activations *a = calloc(1, sizeof *a);
    if (!a || !base_mul(columns, blocks, &n_blocks) || !base_mul(columns, width_max, &rows_bytes)) goto fail;
    *a = (ops_activations){.n_max = n_max, .width_max = width_max};
    a->fine = malloc(n_max * sizeof *a->fine);
    a->row_fine = malloc(n_max);
    a->q = base_huge_alloc(n_blocks * CPU_BLOCK);
    a->d = base_huge_alloc(n_blocks * sizeof *a->d);
    a->sum = base_huge_alloc(n_blocks * sizeof *a->sum);
    a->nsum = base_huge_alloc(n_blocks * 2 * sizeof *a->nsum);
    a->row_q = base_huge_alloc(rows_bytes);
    a->row_d = base_huge_alloc(n_blocks * sizeof *a->row_d);
    if (!a->fine || !a->row_fine || !a->q || !a->d || !a->sum || !a->nsum || !a->row_q || !a->row_d)
        goto fail;
    a->row_q2 = a->row_q + rows_bytes / 2;
    *ret = a;
    return 0;
fail:
    cpu_activations_free(ops, a);
    return base_fail(err, BASE_E_NOMEM, "no memory for %u rows of %u activations", n_max, width_max);
}

void cpu_activations_free(model_ops *ops, ops_activations *a)
{
    (void)ops;
    if (!a) return;
    size_t n_blocks = (size_t)cpu_padded_blocks(a->width_max + CPU_BLOCK) * 2 * a->n_max;
    base_huge_free(a->q, n_blocks * CPU_BLOCK);
    base_huge_free(a->d, n_blocks * sizeof *a->d);
    base_huge_free(a->sum, n_blocks * sizeof *a->sum);
    base_huge_free(a->nsum, n_blocks * 2 * sizeof *a->nsum);
    base_huge_free(a->row_q, 2 * (size_t)a->n_max * a->width_max);
    base_huge_free(a->row_d, n_blocks * sizeof *a->row_d);
    free(a->fine);
    free(a->row_fine);
    free(a);
}
