/*
 * One function an operation of ops.def: it checks the shapes, puts what only the host knows (ids, phases,
 * chosen rows) into the argument arena, and hands a kernel's struct to the queue. Operations over rows ask
 * lists.c for the lists; score_rows is in score.c.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuda/backend.h"
#include "model/file/quant.h"
#include "model/ops/check.h"

int cuda_check_cancel(const cuda_backend *c, base_err *err)
{
    if (!c->ops.cancel || !atomic_load_explicit(c->ops.cancel, memory_order_relaxed)) return 0;
    return base_fail(err, BASE_E_CANCELLED, "cancelled");
}

/* b.stride 0: the same for every row. */
int cuda_add_rows(
    cuda_backend *c, gpu_mat a, gpu_mat b, gpu_mat out, uint32_t n, uint32_t width, base_err *err)
{
    CUDA_PARAMS(k_add, k);
    k.a = a;
    k.b = b;
    k.out = out;
    k.scale_a = k.scale_b = 1;
    k.n = n;
    k.width = width;
    return cuda_launch(c, cuda_launch_add, &k, sizeof k, n, err);
}

int cuda_copy_rows(cuda_backend *c, gpu_mat from, gpu_mat to, uint32_t n, uint32_t width, base_err *err)
{
    CUDA_PARAMS(k_copy, k);
    k.from = from.data;
    k.to = to.data;
    k.from_stride = from.stride;
    k.to_stride = to.stride;
    k.n = n;
    k.width = width;
    return cuda_launch(c, cuda_launch_copy, &k, sizeof k, n, err);
}

/* ---- made on the host: embeddings, angles ---- */

/*
 * A job for each token of a batch, which the pool's threads claim. Its number of tokens and the next one come
 * first in its struct.
 */
typedef struct token_job {
    uint32_t n;
    _Atomic uint32_t next;
} token_job;

static void share_tokens(cuda_backend *c, token_job *j, base_pool_fn *fn)
{
    if (j->n <= CUDA_GRAPH_TOKENS)
        fn(j, 0, 1);
    else
        base_pool_share(c->pool, fn, j);
}

typedef struct embed_job {
    token_job tokens;
    const ops_embed_args *a;
    size_t width, row_bytes;
    float *to; /* [n][width] */
} embed_job;

static void embed_tokens(void *arg, int thread, int n_threads)
{
    (void)thread;
    (void)n_threads;
    embed_job *j = arg;
    const ops_embed_args *a = j->a;
    for (uint32_t t; (t = atomic_fetch_add(&j->tokens.next, 1)) < j->tokens.n;) {
        float *row = j->to + t * j->width;
        quant_to_f32(a->table->type, a->table->data + (size_t)a->ids[t] * j->row_bytes, j->width, row);
        for (size_t i = 0; i < j->width && a->scale != 0; i++) row[i] *= a->scale;
    }
}

typedef struct angles_job {
    token_job tokens;
    const ops_rope_table_args *a;
    const double *turns; /* [n_rot / 2], of a phase of 1 */
    float *to;           /* [n][n_rot], cosines first */
} angles_job;

static void turn_tokens(void *arg, int thread, int n_threads)
{
    (void)thread;
    (void)n_threads;
    angles_job *j = arg;
    const uint32_t n_rot = j->a->n_rot, half = n_rot / 2;
    const double growth = j->a->growth != 0 ? j->a->growth : 1;
    for (uint32_t t; (t = atomic_fetch_add(&j->tokens.next, 1)) < j->tokens.n;)
        for (uint32_t i = 0; i < half; i++) {
            const double angle = j->a->phases[t] * j->turns[i];
            j->to[(size_t)t * n_rot + i] = (float)(growth * cos(angle));
            j->to[(size_t)t * n_rot + half + i] = (float)(growth * sin(angle));
        }
}

/* ---- rows of activations ---- */

int cuda_op_embed(model_ops *ops, const ops_embed_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    int rc = ops_check_embed(a, err);
    if (rc) return rc;
    const quant_format *f = quant_format_of(a->table->type);
    const size_t width = a->table->ne[0];
    embed_job j = {.tokens.n = a->n, .a = a, .width = width, .row_bytes = width / f->n * f->n_bytes};
    gpu_mat from = {.stride = width};
    rc = cuda_reserve(c, a->n * width * sizeof *j.to, 0, 0, err);
    if (rc || a->n == 0) return rc;
    cuda_take(&c->arguments, a->n * width * sizeof *j.to, &j.to, &from.data);
    share_tokens(c, &j.tokens, embed_tokens);
    return cuda_copy_rows(c, from, cuda_mat_of(a->out), a->n, (uint32_t)width, err);
}

int cuda_op_norm(model_ops *ops, const ops_norm_args *a, base_err *err)
{
    const int rc = ops_check_norm(a, err);
    if (rc) return rc;
    CUDA_PARAMS(k_norm, k);
    k.x = cuda_mat_of(a->x);
    k.out = cuda_mat_of(a->out);
    k.weight = a->weight->data;
    k.n = a->n;
    k.n_groups = a->n_groups;
    k.width = a->width;
    k.eps = a->eps;
    return a->n ? cuda_launch(cuda_of(ops), cuda_launch_norm, &k, sizeof k, a->n, err) : 0;
}

static int launch_quant(
    model_ops *ops, k_quant *k, ops_activations *out, uint32_t n, uint32_t width, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    int rc = cuda_check_cancel(c, err);
    if (rc) return rc;
    if (n > out->n_max || width > out->width_max || width % GPU_BLOCK)
        return base_fail(err, BASE_E_LIMIT, "%u rows of %u do not fit activations for %u rows of %u", n,
            width, out->n_max, out->width_max);
    out->n = n;
    out->width = width;
    k->n = n;
    k->width = width;
    k->out = out->columns = out->sets[k->make == GPU_MAKE_NORM ? 0 : 1];
    return n ? cuda_launch(c, cuda_launch_quant, k, sizeof *k, n, err) : 0;
}

int cuda_op_norm_quant(model_ops *ops, const ops_norm_quant_args *a, base_err *err)
{
    CUDA_PARAMS(k_quant, k);
    k.x = cuda_mat_of(a->x);
    k.weight = a->weight->data;
    k.make = GPU_MAKE_NORM;
    k.eps = a->eps;
    int rc = a->rows ? cuda_give(cuda_of(ops), a->rows, a->n * sizeof *a->rows, &k.rows, err) : 0;
    return rc ? rc : launch_quant(ops, &k, a->out, a->n, a->width, err);
}

int cuda_op_quant(model_ops *ops, const ops_quant_args *a, base_err *err)
{
    CUDA_PARAMS(k_quant, k);
    k.x = cuda_mat_of(a->x);
    k.make = GPU_MAKE_PLAIN;
    return launch_quant(ops, &k, a->out, a->n, a->width, err);
}

int32_t cuda_make_of(ops_gate kind)
{
    static const gpu_make makes[] = {[OPS_GATE_SILU] = GPU_MAKE_SILU,
        [OPS_GATE_GELU_TANH] = GPU_MAKE_GELU,
        [OPS_GATE_SIGMOID] = GPU_MAKE_SIGMOID,
        [OPS_GATE_CLAMPED] = GPU_MAKE_CLAMPED};
    return makes[kind];
}

int cuda_op_gate_quant(model_ops *ops, const ops_gate_quant_args *a, base_err *err)
{
    CUDA_PARAMS(k_quant, k);
    k.x = cuda_mat_of(a->gate);
    k.up = cuda_mat_of(a->up);
    k.make = cuda_make_of(a->kind);
    k.shares = a->shares ? a->shares->data : NULL;
    return launch_quant(ops, &k, a->out, a->n, a->width, err);
}

int cuda_op_add(model_ops *ops, const ops_add_args *a, base_err *err)
{
    CUDA_PARAMS(k_add, k);
    k.a = cuda_mat_of(a->a);
    k.b = cuda_mat_of(a->b);
    k.out = cuda_mat_of(a->out);
    k.scale_a = a->scale_a;
    k.scale_b = a->scale_b;
    k.n = a->n;
    k.width = a->width;
    return a->n ? cuda_launch(cuda_of(ops), cuda_launch_add, &k, sizeof k, a->n, err) : 0;
}

gpu_columns cuda_columns_at(void *data, size_t n, size_t width, size_t *ret_bytes)
{
    enum { ALIGN = 256, PARTS = 7 };
    const size_t n_blocks = (width + GPU_BLOCK - 1) / GPU_BLOCK;
    const size_t sizes[PARTS] = {
        n_blocks * GPU_BLOCK, n_blocks * GPU_BLOCK, n_blocks * 4, n_blocks * 8, n_blocks * 8, 4, 4};
    size_t at[PARTS], n_bytes = 0;
    for (int i = 0; i < PARTS; i++) {
        at[i] = n_bytes;
        n_bytes += (sizes[i] * n + ALIGN - 1) / ALIGN * ALIGN;
    }
    *ret_bytes = n_bytes;
    if (!data) return (gpu_columns){0};
    uint8_t *p = data;
    return (gpu_columns){(int8_t *)p + at[0], (int8_t *)p + at[1], (float *)(void *)(p + at[2]),
        (int32_t *)(void *)(p + at[3]), (int32_t *)(void *)(p + at[4]), (uint32_t *)(void *)(p + at[5]),
        (uint32_t *)(void *)(p + at[6])};
}

/* One piece of memory for both sets. */
int cuda_activations_new(
    model_ops *ops, ops_activations **ret, uint32_t n_max, uint32_t width_max, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    size_t set_bytes;
    ops_activations *x = calloc(1, sizeof *x);
    if (!x) return base_fail(err, BASE_E_NOMEM, "no memory for activations");
    cuda_columns_at(NULL, n_max, width_max, &set_bytes);
    x->n_max = n_max;
    x->width_max = width_max;
    x->n_bytes = 2 * set_bytes + (c->cublas ? (size_t)n_max * width_max * sizeof *x->wide : 0);
    int rc = cuda_alloc(c, &x->data, x->n_bytes, "activations", err);
    if (!rc) rc = cuda_check(c, cudaMemsetAsync(x->data, 0, x->n_bytes, c->stream), err);
    if (rc) {
        free(x);
        return rc;
    }
    for (size_t i = 0; i < 2; i++)
        x->sets[i] = cuda_columns_at((uint8_t *)x->data + i * set_bytes, n_max, width_max, &set_bytes);
    x->columns = x->sets[0];
    if (c->cublas) x->wide = (uint16_t *)(void *)((uint8_t *)x->data + 2 * set_bytes);
    *ret = x;
    return 0;
}

void cuda_activations_free(model_ops *ops, ops_activations *x)
{
    if (!x) return;
    cuda_finish(cuda_of(ops), NULL);
    cuda_free(cuda_of(ops), x->data, x->n_bytes);
    free(x);
}

/* ---- RoPE ---- */

int cuda_op_rope_table(model_ops *ops, const ops_rope_table_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    const uint32_t half = a->n_rot / 2;
    const double scale = a->scale != 0 ? a->scale : 1;
    angles_job j = {.tokens.n = a->n, .a = a};
    gpu_mat from = {.stride = a->n_rot}, to = {.data = a->table->data, .stride = a->n_rot};
    int rc = ops_check_rope_table(ops, a, err);
    if (!rc) rc = cuda_reserve(c, (size_t)a->n * a->n_rot * sizeof *j.to, 0, 0, err);
    if (rc || a->n == 0 || a->n_rot == 0) return rc;
    double *turns = malloc(half * sizeof *turns);
    if (!turns) return base_fail(err, BASE_E_NOMEM, "no memory for a RoPE table");
    for (uint32_t i = 0; i < half; i++)
        turns[i] = scale * pow(a->base, -2.0 * i / a->n_rot) / (a->factors ? a->factors[i] : 1.0f);
    j.turns = turns;
    cuda_take(&c->arguments, (size_t)a->n * a->n_rot * sizeof *j.to, &j.to, &from.data);
    share_tokens(c, &j.tokens, turn_tokens);
    free(turns);
    return cuda_copy_rows(c, from, to, a->n, a->n_rot, err);
}

int cuda_op_rope(model_ops *ops, const ops_rope_args *a, base_err *err)
{
    const int rc = ops_check_rope(a, err);
    if (rc) return rc;
    CUDA_PARAMS(k_rope, k);
    k.x = cuda_mat_of(a->x);
    k.table = a->table->data;
    k.n = a->n;
    k.n_heads = a->n_heads;
    k.head_dim = a->head_dim;
    k.n_rot = a->n_rot;
    k.is_neox = a->pairing == OPS_ROPE_NEOX;
    return a->n && a->n_rot ? cuda_launch(cuda_of(ops), cuda_launch_rope, &k, sizeof k, a->n, err) : 0;
}

/* ---- rows ---- */

int cuda_op_rows_write(model_ops *ops, const ops_rows_write_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    CUDA_PARAMS(k_rows_write, k);
    int rc = ops_check_rows_write(a, err);
    if (rc || a->n == 0) return rc;
    rc = cuda_rows_place(c, a->rows, a->layer, a->n, &k, err);
    if (rc) return rc;
    k.k = cuda_mat_of(a->k);
    k.v = cuda_mat_of(a->v);
    rc = cuda_launch(c, cuda_launch_rows_write, &k, sizeof k, a->n, err);
    return rc ? rc : cuda_rows_done(c, a->rows, err);
}

/* Room for the states of all tiles; a longer list doubles it, and with it the graphs. */
static int reserve_states(cuda_backend *c, size_t n_bytes, base_err *err)
{
    size_t more = c->states.n_bytes ? c->states.n_bytes : 1 << 20;
    while (more < n_bytes) more *= 2;
    return cuda_room_reserve(c, &c->states, n_bytes, more, "states of attention", err);
}

int cuda_op_attention(model_ops *ops, const ops_attention_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    const model_rows_shape *s = &a->rows->shape;
    CUDA_PARAMS(k_attention, k);
    int rc = cuda_check_cancel(c, err);
    if (rc) return rc;
    if (a->n == 0) return 0;
    if ((rc = ops_check_sinks(ops, a, err))) return rc;
    if ((rc = cuda_check_heads(s, a->n_head, err))) return rc;
    rc = cuda_lists_prepare(c, a->rows, a->layer, &k.lists, err);
    if (rc) return rc;
    k.q = cuda_mat_of(a->q);
    k.out = cuda_mat_of(a->out);
    k.sums = cuda_mat_of(a->sums);
    k.sinks = a->sinks ? a->sinks->data : NULL;
    k.n = a->n;
    k.n_head = a->n_head;
    k.window = a->window;
    k.scale = a->scale;
    k.n_splits = 1;
    if (a->n <= CUDA_GRAPH_TOKENS) {
        const uint32_t n_blocks =
            s->n_head_kv * ((a->n * (a->n_head / s->n_head_kv) + GPU_QUERIES - 1) / GPU_QUERIES);
        k.max_tiles = (uint32_t)(k.lists.cap / GPU_TILE);
        k.n_splits = 2 * (uint32_t)c->n_processors / n_blocks;
        k.n_splits = k.n_splits < 1 ? 1 : k.n_splits > k.max_tiles ? k.max_tiles : k.n_splits;
        const size_t n_states = (size_t)a->n * a->n_head * k.max_tiles;
        rc = reserve_states(c, n_states * (2 + s->head_dim) * sizeof(float), err);
        if (rc) return rc;
        k.states = c->states.data;
    }
    const bool wide =
        c->cublas && a->n >= CUDA_BF16_COLUMNS && !a->sinks && (s->head_dim == 64 || s->head_dim == 128);
    rc = cuda_launch(c, wide ? cuda_launch_attention_wide : cuda_launch_attention, &k, sizeof k, a->n, err);
    if (!rc && k.states) rc = cuda_launch(c, cuda_launch_merge, &k, sizeof k, a->n, err);
    return rc ? rc : cuda_rows_done(c, a->rows, err);
}

/* The largest over heads of each section's bounds. */
static void join_heads(const ops_bound_args *a, const float *apart, uint32_t group)
{
    const size_t n = a->n_sections;
    for (size_t row = 0; row < (size_t)a->profiles->shape.n_head_kv * a->n; row++) {
        float *out = a->bound + row * n;
        for (uint32_t g = 0; g < group; g++, apart += n)
            for (size_t i = 0; i < n; i++) out[i] = g == 0 || apart[i] > out[i] ? apart[i] : out[i];
    }
}

/* The profiles come anew every time: the host changes them as it likes. */
int cuda_op_bound(model_ops *ops, const ops_bound_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    const model_rows_shape *s = &a->profiles->shape;
    const size_t d = s->head_dim, n_bytes = (size_t)s->n_head_kv * a->n_sections * 2 * d * sizeof(uint16_t);
    const size_t n_bounds = (size_t)a->n_head * a->n * a->n_sections;
    uint16_t *host = NULL;
    float *bounds = NULL;
    CUDA_PARAMS(k_bound, k);
    int rc = cuda_check_cancel(c, err);
    if (rc || !a->n || !a->n_sections) return rc;
    if ((rc = cuda_check_heads(s, a->n_head, err))) return rc;
    if ((rc = ops_check_bound(a, err))) return rc;
    rc = cuda_reserve(c, n_bytes, 0, n_bounds * sizeof *bounds, err);
    if (rc) return rc;
    cuda_take(&c->arguments, n_bytes, &host, &k.profiles);
    cuda_take(&c->back, n_bounds * sizeof *bounds, &bounds, &k.bound);
    for (uint32_t h = 0; h < s->n_head_kv; h++)
        for (uint32_t i = 0; i < a->n_sections; i++, host += 2 * d) {
            const uint32_t lane = a->layer * s->n_head_kv + h;
            memcpy(host, model_rows_key(a->profiles, lane, i), d * sizeof *host);
            memcpy(host + d, model_rows_value(a->profiles, lane, i), d * sizeof *host);
        }
    k.q = cuda_mat_of(a->q);
    k.n = a->n;
    k.n_lanes = s->n_head_kv;
    k.group = a->n_head / s->n_head_kv;
    k.n_sections = a->n_sections;
    k.head_dim = s->head_dim;
    k.scale = a->scale;
    rc = cuda_launch(c, cuda_launch_bound, &k, sizeof k, a->n, err);
    if (!rc) rc = cuda_finish(c, err);
    if (!rc) join_heads(a, bounds, k.group);
    return rc;
}
