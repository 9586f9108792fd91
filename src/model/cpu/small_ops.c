/*
 * The small operations: embedding rows, norms that stay F32, sums, RoPE, and writing the batch's keys and
 * values. Their time is lost beside the products'; they run on the pool only when a batch makes them large.
 */
#include <math.h>

#include "model/cpu/cpu.h"
#include "model/file/quant.h"
#include "model/ops/check.h"

enum { MIN_PARALLEL = 32 * 1024 }; /* floats */

/* One of n_parts equal parts of the tokens [0, n). */
typedef struct token_range {
    uint32_t first, last;
} token_range;

static token_range part_of(uint32_t n, uint32_t part, uint32_t n_parts)
{
    return (token_range){
        (uint32_t)((uint64_t)n * part / n_parts), (uint32_t)((uint64_t)n * (part + 1) / n_parts)};
}

typedef void part_fn(const void *arg, token_range r);

typedef struct share {
    part_fn *fn;
    const void *arg;
    uint32_t n, n_parts;
    _Atomic uint32_t next;
} share;

static void share_run(void *arg, int thread, int n_threads)
{
    (void)thread;
    (void)n_threads;
    share *s = arg;
    for (uint32_t i; (i = atomic_fetch_add(&s->next, 1)) < s->n_parts;)
        s->fn(s->arg, part_of(s->n, i, s->n_parts));
}

/* All tokens through fn: in parts on the pool, or at once when they are few. */
static void run_tokens(model_ops *ops, part_fn *fn, const void *arg, uint32_t n, uint32_t width)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    share s = {.fn = fn, .arg = arg, .n = n, .n_parts = 1};
    if (n > 1 && (uint64_t)n * width >= MIN_PARALLEL) s.n_parts = 4 * (uint32_t)cpu->n_threads;
    if (s.n_parts == 1)
        share_run(&s, 0, 1);
    else
        base_pool_share(cpu->pool, share_run, &s);
}

/* ---- embed ---- */

static void embed_run(const void *arg, token_range r)
{
    const ops_embed_args *a = arg;
    const quant_format *f = quant_format_of(a->table->type);
    size_t width = a->table->ne[0], row_bytes = width / f->n * f->n_bytes;
    for (uint32_t t = r.first; t < r.last; t++) {
        float *out = cpu_row(a->out, t);
        quant_to_f32(a->table->type, a->table->data + (size_t)a->ids[t] * row_bytes, width, out);
        if (a->scale == 0) continue;
        for (size_t i = 0; i < width; i++) out[i] *= a->scale;
    }
}

int cpu_op_embed(model_ops *ops, const ops_embed_args *a, base_err *err)
{
    const int rc = ops_check_embed(a, err);
    if (rc) return rc;
    run_tokens(ops, embed_run, a, a->n, (uint32_t)a->table->ne[0]);
    return 0;
}

/* ---- norm, add ---- */

typedef struct norm_job {
    const cpu_kernels *kernels;
    const ops_norm_args *args;
} norm_job;

static void norm_run(const void *arg, token_range r)
{
    const norm_job *j = arg;
    const ops_norm_args *a = j->args;
    for (uint32_t t = r.first; t < r.last; t++)
        for (uint32_t g = 0; g < a->n_groups; g++)
            j->kernels->norm_row(cpu_row(a->x, t) + (size_t)g * a->width, cpu_floats(a->weight), a->width,
                a->eps, cpu_row(a->out, t) + (size_t)g * a->width);
}

int cpu_op_norm(model_ops *ops, const ops_norm_args *a, base_err *err)
{
    const int rc = ops_check_norm(a, err);
    if (rc) return rc;
    norm_job j = {&((cpu_ops *)ops)->kernels, a};
    run_tokens(ops, norm_run, &j, a->n, a->n_groups * a->width);
    return 0;
}

static void add_run(const void *arg, token_range r)
{
    const ops_add_args *a = arg;
    for (uint32_t t = r.first; t < r.last; t++) {
        const float *x = cpu_row(a->a, t), *y = a->b.buffer ? cpu_row(a->b, t) : NULL;
        float *out = cpu_row(a->out, t);
        for (uint32_t i = 0; i < a->width; i++) out[i] = x[i] * a->scale_a + (y ? y[i] * a->scale_b : 0);
    }
}

int cpu_op_add(model_ops *ops, const ops_add_args *a, base_err *err)
{
    (void)err;
    run_tokens(ops, add_run, a, a->n, a->width);
    return 0;
}

/* ---- RoPE ---- */

static void rope_table_run(const void *arg, token_range r)
{
    const ops_rope_table_args *a = arg;
    uint32_t half = a->n_rot / 2;
    double scale = a->scale != 0 ? a->scale : 1, growth = a->growth != 0 ? a->growth : 1;
    float *table = a->table->data;
    for (uint32_t i = 0; i < half; i++) {
        double turn = scale * pow(a->base, -2.0 * i / a->n_rot) / (a->factors ? a->factors[i] : 1.0f);
        for (uint32_t t = r.first; t < r.last; t++) {
            double angle = a->phases[t] * turn;
            table[(size_t)t * a->n_rot + i] = (float)(growth * cos(angle));
            table[(size_t)t * a->n_rot + half + i] = (float)(growth * sin(angle));
        }
    }
}

int cpu_op_rope_table(model_ops *ops, const ops_rope_table_args *a, base_err *err)
{
    const int rc = ops_check_rope_table(ops, a, err);
    if (rc) return rc;
    run_tokens(ops, rope_table_run, a, a->n, 32 * a->n_rot);
    return 0;
}

static void rotate_head(
    float *x, const float *cosines, const float *sines, ops_rope_pairing pairing, uint32_t half)
{
    uint32_t step = pairing == OPS_ROPE_NEOX ? 1 : 2, other = pairing == OPS_ROPE_NEOX ? half : 1;
    for (uint32_t i = 0; i < half; i++) {
        float *p = x + (size_t)step * i, a = p[0], b = p[other];
        p[0] = a * cosines[i] - b * sines[i];
        p[other] = a * sines[i] + b * cosines[i];
    }
}

static void rope_run(const void *arg, token_range r)
{
    const ops_rope_args *a = arg;
    const float *table = cpu_floats(a->table);
    for (uint32_t t = r.first; t < r.last; t++) {
        const float *cosines = table + (size_t)t * a->n_rot;
        for (uint32_t h = 0; h < a->n_heads; h++)
            rotate_head(cpu_row(a->x, t) + (size_t)h * a->head_dim, cosines, cosines + a->n_rot / 2,
                a->pairing, a->n_rot / 2);
    }
}

int cpu_op_rope(model_ops *ops, const ops_rope_args *a, base_err *err)
{
    const int rc = ops_check_rope(a, err);
    if (rc) return rc;
    run_tokens(ops, rope_run, a, a->n, a->n_heads * a->head_dim);
    return 0;
}

/* ---- rows_write ---- */

typedef struct write_job {
    const cpu_kernels *kernels;
    const ops_rows_write_args *args;
} write_job;

/* Tokens [first, last) of the batch into one lane: its list's last n ordinals, run by run from the end. */
static void write_lane(const write_job *j, uint32_t kv_head, token_range r)
{
    const ops_rows_write_args *a = j->args;
    const model_rows_shape *s = &a->rows->shape;
    uint32_t lane = a->layer * s->n_head_kv + kv_head;
    const model_lane_list *list = &a->rows->lanes[lane];
    uint32_t end = a->n; /* batch tokens of the runs still to come are [0, end) */
    for (uint32_t i = list->n_runs; i > 0 && end > r.first; i--) {
        const model_run *run = &list->runs[i - 1];
        uint32_t n = run->n < end ? run->n : end;
        for (uint32_t t = end - n; t < end; t++) {
            if (t < r.first || t >= r.last) continue;
            uint32_t slot = run->slot + run->n - (end - t);
            size_t at = (size_t)kv_head * s->head_dim;
            j->kernels->f16_row(cpu_row(a->k, t) + at, s->head_dim, model_rows_key(a->rows, lane, slot));
            j->kernels->f16_row(cpu_row(a->v, t) + at, s->head_dim, model_rows_value(a->rows, lane, slot));
        }
        end -= n;
    }
}

static void write_run(const void *arg, token_range r)
{
    const write_job *j = arg;
    for (uint32_t h = 0; h < j->args->rows->shape.n_head_kv; h++) write_lane(j, h, r);
}

int cpu_op_rows_write(model_ops *ops, const ops_rows_write_args *a, base_err *err)
{
    const model_rows_shape *s = &a->rows->shape;
    const int rc = ops_check_rows_write(a, err);
    if (rc) return rc;
    write_job j = {&((cpu_ops *)ops)->kernels, a};
    run_tokens(ops, write_run, &j, a->n, 2 * s->n_head_kv * s->head_dim);
    return 0;
}
