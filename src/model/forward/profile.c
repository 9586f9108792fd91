/*
 * See profile.h. One function an operation, generated from ops.def: time it, then let its cost_* function say
 * what it read.
 */
#include "model/forward/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/forward/forward.h"

enum { MAX_ROWS = 48 };

struct model_profile {
    model_ops ops; /* first: the table that the model wears */
    model_ops *inner;
    model *model;
    uint32_t n_tokens, width; /* of the activations that were made last: what the next product reads */
    model_profile_row rows[MAX_ROWS];
    uint32_t n_rows;
};

/* What one call read and multiplied. */
typedef struct cost {
    uint32_t n_in, n_out;
    double bytes, macs;
    ops_peak kind;
} cost;

static void add(model_profile *p, const char *op, cost c, uint64_t ns)
{
    uint32_t i = 0;
    while (i < p->n_rows &&
           (strcmp(p->rows[i].op, op) != 0 || p->rows[i].n_in != c.n_in || p->rows[i].n_out != c.n_out))
        i++;
    if (i == MAX_ROWS) i--; /* more shapes than a profile has lines: the last one takes the rest */
    if (i == p->n_rows)
        p->rows[p->n_rows++] =
            (model_profile_row){.op = op, .n_in = c.n_in, .n_out = c.n_out, .kind = c.kind};
    model_profile_row *row = &p->rows[i];
    row->n_calls++;
    row->ns += ns;
    row->bytes += c.bytes;
    row->macs += c.macs;
}

/* ---- what the operations cost ---- */

static cost made(model_profile *p, uint32_t n, uint32_t width)
{
    p->n_tokens = n;
    p->width = width;
    return (cost){0};
}

static cost cost_norm_quant(model_profile *p, const ops_norm_quant_args *a)
{
    return made(p, a->n, a->width);
}

static cost cost_quant(model_profile *p, const ops_quant_args *a)
{
    return made(p, a->n, a->width);
}

static cost cost_gate_quant(model_profile *p, const ops_gate_quant_args *a)
{
    return made(p, a->n, a->width);
}

static cost cost_matmul(model_profile *p, const ops_matmul_args *a)
{
    cost c = {.n_in = p->width, .kind = OPS_PEAK_BYTES};
    for (uint32_t i = 0; i < a->n_parts; i++) {
        c.n_out += p->inner->weight_outputs(a->parts[i].weight);
        c.bytes += (double)p->inner->weight_bytes(a->parts[i].weight);
    }
    c.macs = (double)p->n_tokens * c.n_in * c.n_out;
    return c;
}

/* Rows count once however many tokens read them; every token's products with the rows that it sees count. */
static cost cost_attention(model_profile *p, const ops_attention_args *a)
{
    const model_rows_shape *s = &a->rows->shape;
    cost c = {.kind = OPS_PEAK_FLOATS};
    (void)p;
    for (uint32_t h = 0; h < s->n_head_kv; h++) {
        uint32_t n_rows = a->rows->lanes[a->layer * s->n_head_kv + h].n_rows;
        for (uint32_t t = 0; t < a->n; t++) {
            uint32_t seen = n_rows - a->n + t + 1;
            if (a->window && seen > a->window) seen = a->window;
            c.macs += 2.0 * seen * s->head_dim * (a->n_head / s->n_head_kv);
        }
        if (a->window && n_rows > a->window + a->n) n_rows = a->window + a->n;
        c.bytes += 4.0 * n_rows * s->head_dim;
    }
    return c;
}

/* Profiles count once however many tokens ask. */
static cost cost_bound(model_profile *p, const ops_bound_args *a)
{
    const model_rows_shape *s = &a->profiles->shape;
    (void)p;
    return (cost){.kind = OPS_PEAK_FLOATS,
        .bytes = 4.0 * a->n_sections * s->head_dim * s->n_head_kv,
        .macs = 2.0 * a->n_sections * s->head_dim * a->n_head * a->n};
}

static cost cost_route(model_profile *p, const ops_route_args *a)
{
    (void)p;
    return (cost){.n_in = a->width,
        .n_out = a->n_experts,
        .kind = OPS_PEAK_FLOATS,
        .bytes = 4.0 * a->width * a->n_experts,
        .macs = (double)a->n * a->width * a->n_experts};
}

/* Only experts that some token goes to are read. n_out: of one expert's gate. */
static cost cost_experts(model_profile *p, const ops_experts_args *a)
{
    const size_t n_pairs = (size_t)p->n_tokens * a->n_used;
    uint32_t *chosen = calloc(n_pairs + a->n_experts, sizeof *chosen), *is_read = chosen + n_pairs, n = 0;
    cost c = {
        .n_in = p->width, .n_out = p->inner->weight_outputs(a->gate) / a->n_experts, .kind = OPS_PEAK_BYTES};
    c.macs = 3.0 * (double)n_pairs * c.n_in * c.n_out;
    if (!chosen) return c;
    p->inner->download(p->inner, chosen, a->chosen, 0, n_pairs * sizeof *chosen);
    for (size_t i = 0; i < n_pairs; i++)
        if (chosen[i] < a->n_experts && !is_read[chosen[i]]++) n++;
    free(chosen);
    const size_t bytes =
        p->inner->weight_bytes(a->gate) + p->inner->weight_bytes(a->up) + p->inner->weight_bytes(a->down);
    c.bytes = (double)bytes * n / a->n_experts;
    return c;
}

/* A sketch's keys count once, in 4 bits, and every token's products with all evicted rows; not what visits. */
static cost cost_visit(model_profile *p, const ops_visit_args *a)
{
    const model_rows_shape *s = &a->visit->rows->shape;
    double rows = 0;
    (void)p;
    for (uint32_t h = 0; h < s->n_head_kv; h++)
        for (uint32_t w = 0; a->visit->evicted[h] && w * 64 < a->visit->n_slots; w++)
            rows += __builtin_popcountll(a->visit->evicted[h][w]);
    return (cost){.kind = OPS_PEAK_BYTES,
        .bytes = rows * s->head_dim / 2,
        .macs = rows * s->head_dim * (a->n_head / s->n_head_kv) * a->n};
}

/* A state is read and written once a batch; every token's products with all of it count. */
static cost cost_delta(model_profile *p, const ops_delta_args *a)
{
    const double n = (double)a->n_value_heads * a->head_dim * a->head_dim;
    (void)p;
    return (cost){.kind = OPS_PEAK_FLOATS, .bytes = 8 * n, .macs = 3 * n * a->n};
}

#define FREE(op)                                                                                             \
    static cost cost_##op(model_profile *p, const ops_##op##_args *a)                                        \
    {                                                                                                        \
        (void)p;                                                                                             \
        (void)a;                                                                                             \
        return (cost){0};                                                                                    \
    }
FREE(embed)
FREE(norm)
FREE(add)
FREE(rope_table)
FREE(rope)
FREE(rows_write)
FREE(score_rows)
FREE(conv)
#undef FREE

/* ---- the table ---- */

#define MODEL_OP(name)                                                                                       \
    static int profiled_##name(model_ops *ops, const ops_##name##_args *args, base_err *err)                 \
    {                                                                                                        \
        model_profile *p = (model_profile *)ops;                                                             \
        cost c = cost_##name(p, args);                                                                       \
        p->inner->cancel = ops->cancel;                                                                      \
        uint64_t from = base_clock_ns();                                                                     \
        int rc = p->inner->name(p->inner, args, err);                                                        \
        add(p, #name, c, base_clock_ns() - from);                                                            \
        p->inner->cancel = NULL;                                                                             \
        return rc;                                                                                           \
    }
#include "model/ops/ops.def"
#undef MODEL_OP

static int profiled_sync(model_ops *ops, base_err *err)
{
    model_profile *p = (model_profile *)ops;
    return p->inner->sync(p->inner, err);
}

static void profiled_upload(model_ops *ops, ops_buffer *to, size_t at_bytes, const void *from, size_t n_bytes)
{
    model_profile *p = (model_profile *)ops;
    p->inner->upload(p->inner, to, at_bytes, from, n_bytes);
}

static void profiled_download(
    model_ops *ops, void *to, const ops_buffer *from, size_t at_bytes, size_t n_bytes)
{
    model_profile *p = (model_profile *)ops;
    uint64_t start = base_clock_ns();
    p->inner->download(p->inner, to, from, at_bytes, n_bytes);
    add(p, "download", (cost){.bytes = (double)n_bytes}, base_clock_ns() - start);
}

static int profiled_buffer_new(model_ops *ops, ops_buffer **ret, size_t n_bytes, base_err *err)
{
    model_profile *p = (model_profile *)ops;
    return p->inner->buffer_new(p->inner, ret, n_bytes, err);
}

static void profiled_turn_keys(model_ops *ops, const ops_turns *turns, uint32_t index, uint32_t step,
    uint32_t n, uint32_t head_dim, uint16_t *keys)
{
    model_profile *p = (model_profile *)ops;
    p->inner->turn_keys(p->inner, turns, index, step, n, head_dim, keys);
}

static void profiled_buffer_free(model_ops *ops, ops_buffer *buffer)
{
    model_profile *p = (model_profile *)ops;
    p->inner->buffer_free(p->inner, buffer);
}

int model_profile_start(model_profile **ret, model *m, base_err *err)
{
    model_profile *p = calloc(1, sizeof *p);
    if (!p) return base_fail(err, BASE_E_NOMEM, "no memory for a profile");
    p->model = m;
    p->inner = m->ops;
    p->ops = (model_ops){
        .backend = m->ops->backend,
        .isa = m->ops->isa,
        .kernel_version = m->ops->kernel_version,
        .turns = m->ops->turns,
        .buffer_new = profiled_buffer_new,
        .buffer_free = profiled_buffer_free,
        .turn_keys = m->ops->turn_keys ? profiled_turn_keys : NULL,
        .sync = profiled_sync,
        .upload = profiled_upload,
        .download = profiled_download,
#define MODEL_OP(op) .op = profiled_##op,
#include "model/ops/ops.def"
#undef MODEL_OP
    };
    m->ops = &p->ops;
    *ret = p;
    return 0;
}

void model_profile_stop(model_profile *p)
{
    if (!p) return;
    p->model->ops = p->inner;
    free(p);
}

const model_profile_row *model_profile_rows(const model_profile *p, uint32_t *ret_n)
{
    *ret_n = p->n_rows;
    return p->rows;
}

double model_peak(model *m, ops_peak kind)
{
    return m->ops->peak ? m->ops->peak(m->ops, kind) : 0;
}
