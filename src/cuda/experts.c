/*
 * A mixture of experts: the router, and the feed-forward of every token's experts. The device sorts tokens by
 * expert itself and nobody waits for it: grids are as large as any choice could make them, and blocks of threads
 * behind the last cohort end at once. So a decoded token is a graph here too.
 *
 *     route     scores | choice
 *     experts   sort | gate and up | gate, quantised | down | sum
 */
#include "cuda/backend.h"
#include "model/ops/check.h"

enum { ALIGN = 256 };

/* ---- the router ---- */

static const float *floats_of(const ops_buffer *b)
{
    return b ? b->data : NULL;
}

int cuda_op_route(model_ops *ops, const ops_route_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    CUDA_PARAMS(k_route, k);
    int rc = cuda_check_cancel(c, err);
    if (!rc) rc = ops_check_route(ops, a, err);
    if (rc || a->n == 0) return rc;
    const size_t n_scores = (size_t)a->n * (a->n_experts + 1) * sizeof(float);
    rc = cuda_room_reserve(c, &c->scores, n_scores, n_scores, "scores of experts", err);
    if (rc) return rc;
    k.x = cuda_mat_of(a->x);
    k.router = floats_of(a->router);
    k.bias = floats_of(a->bias);
    k.scales = floats_of(a->scales);
    k.shared = floats_of(a->shared);
    k.scores = c->scores.data;
    k.chosen = a->chosen->data;
    k.weights = a->weights->data;
    k.shares = a->shared ? a->shares->data : NULL;
    k.n = a->n;
    k.width = a->width;
    k.n_experts = a->n_experts;
    k.n_used = a->n_used;
    rc = cuda_launch(c, cuda_launch_score_experts, &k, sizeof k, a->n, err);
    return rc ? rc : cuda_launch(c, cuda_launch_choose_experts, &k, sizeof k, a->n, err);
}

/* ---- the experts ---- */

/* Where the numbers between the steps lie, in c->pairs. */
typedef struct rooms {
    gpu_pairs pairs;
    float *gate_up, *down; /* [pairs][2 n_ff], [pairs][n_out] */
    gpu_columns hidden;
} rooms;

typedef struct sizes {
    uint32_t n_pairs, n_ff, n_out, columns; /* columns: of a cohort at most */
} sizes;

static void *take(uint8_t *base, size_t *at, size_t n_bytes)
{
    void *piece = base ? base + *at : NULL;
    *at += (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
    return piece;
}

/* The pieces, one behind another; with base NULL only their sum is wanted. */
static size_t lay_out(const sizes *s, uint32_t n_experts, uint8_t *base, rooms *r)
{
    const size_t n = s->n_pairs;
    const uint32_t most = s->n_pairs / s->columns + n_experts;
    size_t at = 0, hidden_bytes;
    r->pairs.n_most = most < s->n_pairs ? most : s->n_pairs;
    r->pairs.cohorts = take(base, &at, r->pairs.n_most * sizeof *r->pairs.cohorts);
    r->pairs.n_cohorts = take(base, &at, sizeof *r->pairs.n_cohorts);
    r->pairs.token_of = take(base, &at, n * sizeof *r->pairs.token_of);
    r->pairs.place_of = take(base, &at, n * sizeof *r->pairs.place_of);
    r->gate_up = take(base, &at, n * 2 * s->n_ff * sizeof *r->gate_up);
    r->down = take(base, &at, n * s->n_out * sizeof *r->down);
    r->hidden = cuda_columns_at(base ? base + at : NULL, n, s->n_ff, &hidden_bytes);
    return at + hidden_bytes;
}

static int reserve(cuda_backend *c, const sizes *s, uint32_t n_experts, rooms *ret, base_err *err)
{
    const size_t n_bytes = lay_out(s, n_experts, NULL, ret), n_done = s->n_pairs * sizeof(uint32_t);
    int rc = cuda_room_reserve(c, &c->pairs, n_bytes, n_bytes, "experts of a batch", err);
    if (!rc) rc = cuda_room_reserve(c, &c->done, n_done, n_done, "experts of a batch", err);
    if (rc) return rc;
    lay_out(s, n_experts, c->pairs.data, ret);
    ret->hidden.done = c->done.data;
    return 0;
}

static int check_experts(const model_ops *ops, const ops_experts_args *a, base_err *err)
{
    const gpu_weight *gate = &a->gate->w, *up = &a->up->w, *down = &a->down->w;
    const ops_shape shapes[] = {{gate->n_in, gate->n_out}, {up->n_in, up->n_out}, {down->n_in, down->n_out}};
    const size_t shared_bytes =
        2 * a->n_experts * sizeof(uint32_t) + (size_t)a->x->n * a->n_used * sizeof(uint16_t);
    int rc = ops_check_experts(ops, a, a->x->n, a->x->width, shapes, err);
    if (rc) return rc;
    if (a->n_experts > OPS_EXPERTS_MAX || shared_bytes > CUDA_SORT_BYTES)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "%u tokens for %u of %u experts are more than the "
            "GPU sorts; take a smaller batch, or --backend cpu",
            a->x->n, a->n_used, a->n_experts);
    return 0;
}

/* One expert's part of a product: the matrix counts an expert's outputs. */
static void put_part(k_matmul *k, uint32_t n_experts, const ops_weight *w, const ops_buffer *bias, gpu_mat y)
{
    struct k_part *part = &k->parts[k->n_parts++];
    part->w = w->w;
    part->w.n_out /= n_experts;
    part->bias = floats_of(bias);
    part->y = y;
}

static void put_columns(
    k_matmul *k, const gpu_pairs *p, gpu_columns x, const uint32_t *row_of, uint32_t n_pairs)
{
    k->x = x;
    k->cohorts = p->cohorts;
    k->n_cohorts = p->n_cohorts;
    k->n_most = p->n_most;
    k->row_of = row_of;
    k->n = n_pairs;
}

int cuda_op_experts(model_ops *ops, const ops_experts_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    CUDA_PARAMS(rooms, r);
    int rc = cuda_check_cancel(c, err);
    if (!rc && a->gate->on_host) return cuda_host_experts(c, a, err);
    if (!rc) rc = check_experts(ops, a, err);
    if (rc || a->x->n == 0) return rc;
    const uint32_t n = a->x->n;
    sizes s = {.n_pairs = n * a->n_used, .n_ff = a->down->w.n_in, .n_out = a->down->w.n_out / a->n_experts};
    /* Tiles, where an expert has more columns on average than a block of threads of the other kind takes. */
    const bool tiles = s.n_pairs > GPU_COLUMNS * a->n_experts;
    gpu_launch_fn *const multiply = tiles ? cuda_launch_cohorts_narrow : cuda_launch_cohorts;
    s.columns = tiles ? GPU_NARROW : GPU_COLUMNS;
    if ((rc = reserve(c, &s, a->n_experts, &r, err))) return rc;

    CUDA_PARAMS(k_sort, sort);
    sort.chosen = a->chosen->data;
    sort.pairs = r.pairs;
    sort.n_pairs = s.n_pairs;
    sort.n_used = a->n_used;
    sort.n_experts = a->n_experts;
    sort.columns = s.columns;
    rc = cuda_launch(c, cuda_launch_sort_pairs, &sort, sizeof sort, n, err);

    const gpu_mat gate = {r.gate_up, 2 * (size_t)s.n_ff}, up = {r.gate_up + s.n_ff, 2 * (size_t)s.n_ff};
    CUDA_PARAMS(k_matmul, first);
    put_columns(&first, &r.pairs, a->x->columns, r.pairs.token_of, s.n_pairs);
    put_part(&first, a->n_experts, a->gate, a->gate_bias, gate);
    put_part(&first, a->n_experts, a->up, a->up_bias, up);
    if (!rc) rc = cuda_launch(c, multiply, &first, sizeof first, n, err);

    CUDA_PARAMS(k_quant, act);
    act.x = gate;
    act.up = up;
    act.make = cuda_make_of(a->kind);
    act.n = s.n_pairs;
    act.width = s.n_ff;
    act.out = r.hidden;
    if (!rc) rc = cuda_launch(c, cuda_launch_quant, &act, sizeof act, n, err);

    CUDA_PARAMS(k_matmul, second);
    put_columns(&second, &r.pairs, r.hidden, NULL, s.n_pairs);
    put_part(&second, a->n_experts, a->down, a->down_bias, (gpu_mat){r.down, s.n_out});
    if (!rc) rc = cuda_launch(c, multiply, &second, sizeof second, n, err);

    CUDA_PARAMS(k_sum_pairs, sum);
    sum.place_of = r.pairs.place_of;
    sum.weights = a->weights->data;
    sum.products = r.down;
    sum.y = cuda_mat_of(a->y);
    sum.add = cuda_mat_of(a->add);
    sum.n = n;
    sum.n_used = a->n_used;
    sum.width = s.n_out;
    return rc ? rc : cuda_launch(c, cuda_launch_sum_pairs, &sum, sizeof sum, n, err);
}
