/*
 * Layers that keep a state. The truth about a state is the host's, as about rows: what stood before the batch goes
 * up with its arguments, what stands behind it comes back when the batch ends. So a lost device loses nothing, and
 * a token costs its states' way there and back (docs/cuda.md says how much that is).
 */
#include "cuda/backend.h"

/*
 * Room for what an operation reads of a state and for what it leaves; what was left at `before` by an operation
 * that is still under way is waited for.
 */
static int move_state(cuda_backend *c, const float *before, float *after, size_t n_bytes,
    const float **ret_before, float **ret_after, base_err *err)
{
    float *left;
    int rc = cuda_is_expected(c, before) ? cuda_finish(c, err) : 0;
    if (!rc) rc = cuda_reserve(c, before ? n_bytes : 0, 0, n_bytes, err);
    if (!rc && before) rc = cuda_give(c, before, n_bytes, ret_before, err);
    if (rc) return rc;
    cuda_take(&c->back, n_bytes, &left, ret_after);
    cuda_expect(c, after, left, n_bytes);
    return 0;
}

int cuda_op_conv(model_ops *ops, const ops_conv_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    CUDA_PARAMS(k_conv, k);
    int rc = cuda_check_cancel(c, err);
    if (rc) return rc;
    if (a->n_taps < 2 || a->n_taps > OPS_CONV_TAPS || a->head_dim == 0 || a->head_dim % 16 ||
        a->n_channels % a->head_dim || a->n_channels / a->head_dim > GPU_GRID_MAX ||
        (size_t)a->n_taps * a->n_channels * sizeof(float) > a->taps->n_bytes)
        return base_fail(err, BASE_E_UNSUPPORTED, "a convolution of %u taps over %u channels in heads of %u",
            a->n_taps, a->n_channels, a->head_dim);
    if (a->n == 0) return 0;
    const size_t n_bytes = (size_t)a->n * a->n_channels * sizeof(float),
                 state_bytes = (size_t)(a->n_taps - 1) * a->n_channels * sizeof(float);
    rc = cuda_room_reserve(c, &c->convolved, n_bytes, n_bytes, "a convolution", err);
    if (!rc) rc = move_state(c, a->before, a->after, state_bytes, &k.before, &k.after, err);
    if (rc) return rc;
    k.x = cuda_mat_of(a->x);
    k.out = (gpu_mat){c->convolved.data, a->n_channels};
    k.taps = a->taps->data;
    k.n = a->n;
    k.n_channels = a->n_channels;
    k.n_taps = a->n_taps;
    k.head_dim = a->head_dim;
    k.n_query = a->n_query;
    k.n_unit = a->n_unit;
    k.eps = a->eps;
    rc = cuda_launch(c, cuda_launch_conv, &k, sizeof k, a->n, err);
    return rc ? rc : cuda_copy_rows(c, k.out, k.x, a->n, a->n_channels, err);
}

int cuda_op_delta(model_ops *ops, const ops_delta_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    CUDA_PARAMS(k_delta, k);
    int rc = cuda_check_cancel(c, err);
    if (rc) return rc;
    if (a->head_dim == 0 || a->head_dim > GPU_HEAD_DIM_MAX || a->head_dim % OPS_DELTA_COLUMNS ||
        a->n_key_heads == 0 || a->n_value_heads % a->n_key_heads)
        return base_fail(err, BASE_E_UNSUPPORTED, "a state of %u heads of %u for %u heads of keys",
            a->n_value_heads, a->head_dim, a->n_key_heads);
    if (a->n == 0) return 0;
    const size_t n_factors = 2 * (size_t)a->n * a->n_value_heads * sizeof(float),
                 state_bytes = (size_t)a->n_value_heads * a->head_dim * a->head_dim * sizeof(float);
    rc = cuda_room_reserve(c, &c->factors, n_factors, n_factors, "a state's factors", err);
    if (!rc) rc = move_state(c, a->before, a->after, state_bytes, &k.before, &k.after, err);
    if (rc) return rc;
    k.q = cuda_mat_of(a->q);
    k.k = cuda_mat_of(a->k);
    k.v = cuda_mat_of(a->v);
    k.out = cuda_mat_of(a->out);
    k.alpha = cuda_mat_of(a->alpha);
    k.beta = cuda_mat_of(a->beta);
    k.a = a->a->data;
    k.dt = a->dt->data;
    k.factors = c->factors.data;
    k.n = a->n;
    k.n_key_heads = a->n_key_heads;
    k.n_value_heads = a->n_value_heads;
    k.head_dim = a->head_dim;
    k.neighbours = a->neighbours;
    rc = cuda_launch(c, cuda_launch_delta_factors, &k, sizeof k, a->n, err);
    return rc ? rc : cuda_launch(c, cuda_launch_delta, &k, sizeof k, a->n, err);
}
