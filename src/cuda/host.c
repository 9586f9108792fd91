/*
 * Matrices that stay in the host's memory (ops.h, pack_host): experts whose layers are on the device otherwise, or
 * layers that it has no room for. The CPU backend multiplies with them, and what moves is this: quantised rows (and
 * a mixture's choice) come down in one transfer, results go up, biases and residuals are added there. The bits are
 * those of a matrix on the device, since both backends give the same.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/backend.h"

enum { CHOSEN, WEIGHTS, RESULTS };

int cuda_host_open(cuda_backend *c, model_ops **ret, base_err *err)
{
    int rc = c->host.ops ? 0 : cpu_ops_open(&c->host.ops, base_pool_threads(c->pool), 0, err);
    *ret = c->host.ops;
    return rc;
}

void cuda_host_close(cuda_backend *c)
{
    cuda_host *h = &c->host;
    if (!h->ops) return;
    h->ops->activations_free(h->ops, h->x);
    for (size_t i = 0; i < sizeof h->numbers / sizeof *h->numbers; i++)
        h->ops->buffer_free(h->ops, h->numbers[i]);
    base_buf_free(&h->rows);
    h->ops->close(h->ops);
}

void cuda_mirror_free(cuda_backend *c, ops_buffer *b)
{
    if (b->mirror) c->host.ops->buffer_free(c->host.ops, b->mirror);
    b->mirror = NULL;
}

/* ---- packing ---- */

int cuda_pack_host(model_ops *ops, ops_weight **ret, const gguf_tensor *t, base_err *err)
{
    model_ops *host = NULL;
    int rc = cuda_host_open(cuda_of(ops), &host, err);
    ops_weight *w = rc ? NULL : calloc(1, sizeof *w);
    if (!rc && !w) rc = base_fail(err, BASE_E_NOMEM, "no memory for a matrix");
    if (!rc) rc = host->pack(host, &w->on_host, t, err);
    if (rc) {
        free(w);
        return rc;
    }
    w->n_bytes = host->weight_bytes(w->on_host);
    w->w.n_in = (uint32_t)t->ne[0];
    w->w.n_out = host->weight_outputs(w->on_host);
    *ret = w;
    return 0;
}

/* ---- what comes down ---- */

/* Words of the device to `to`, there when cuda_finish returns. */
static int bring_down(cuda_backend *c, const void *from, size_t n_bytes, void *to, base_err *err)
{
    void *host;
    gpu_mat there = {0};
    const uint32_t n_words = (uint32_t)(n_bytes / sizeof(float));
    int rc = cuda_reserve(c, 0, 0, n_bytes, err);
    if (rc) return rc;
    cuda_take(&c->back, n_bytes, &host, &there.data);
    cuda_expect(c, to, host, n_bytes);
    return cuda_copy_rows(c, (gpu_mat){(float *)(uintptr_t)from, n_words}, there, 1, n_words, err);
}

/* Where the parts of quantised rows lie in cuda_host.rows, and behind them a mixture's choice and its weights. */
typedef struct parts {
    uint8_t *q, *q2, *d, *is_fine, *chosen, *weights;
} parts;

static parts parts_of(cuda_host *h, size_t n, size_t width, size_t n_chosen)
{
    const size_t n_q = n * width, n_d = n_q / GPU_BLOCK * sizeof(float), n_fine = n * sizeof(uint32_t);
    base_buf_reserve(&h->rows, 2 * n_q + n_d + n_fine + 2 * n_chosen * sizeof(float));
    uint8_t *p = (uint8_t *)h->rows.data;
    return (parts){p, p + n_q, p + 2 * n_q, p + 2 * n_q + n_d, p + 2 * n_q + n_d + n_fine,
        p + 2 * n_q + n_d + n_fine + n_chosen * sizeof(float)};
}

/* Rows as the CPU's activations, in h->x; with `mix` its choice and weights, too, in h->numbers. */
static int take_rows(cuda_backend *c, const ops_activations *x, const ops_experts_args *mix, base_err *err)
{
    cuda_host *h = &c->host;
    const size_t n = x->n, width = x->width, n_chosen = mix ? n * mix->n_used : 0;
    const gpu_columns *from = &x->columns;
    const parts p = parts_of(h, n, width, n_chosen);
    int rc = bring_down(c, from->q, n * width, p.q, err);
    if (!rc) rc = bring_down(c, from->q2, n * width, p.q2, err);
    if (!rc) rc = bring_down(c, from->d, n * width / GPU_BLOCK * sizeof(float), p.d, err);
    if (!rc) rc = bring_down(c, from->is_fine, n * sizeof(uint32_t), p.is_fine, err);
    if (!rc && mix) rc = bring_down(c, mix->chosen->data, n_chosen * sizeof(uint32_t), p.chosen, err);
    if (!rc && mix) rc = bring_down(c, mix->weights->data, n_chosen * sizeof(float), p.weights, err);
    if (!rc) rc = cuda_finish(c, err);
    if (!rc && (n > h->n_max || width > h->width_max)) {
        h->ops->activations_free(h->ops, h->x);
        h->x = NULL;
        h->n_max = x->n_max;
        h->width_max = x->width_max;
        rc = h->ops->activations_new(h->ops, &h->x, h->n_max, h->width_max, err);
        if (rc) h->n_max = 0;
    }
    if (rc) return rc;
    if (mix) h->ops->upload(h->ops, h->numbers[CHOSEN], 0, p.chosen, n_chosen * sizeof(uint32_t));
    if (mix) h->ops->upload(h->ops, h->numbers[WEIGHTS], 0, p.weights, n_chosen * sizeof(float));
    return cpu_take_quantised(h->ops, h->x,
        &(ops_quantised){.n = x->n,
            .width = x->width,
            .q = (const int8_t *)p.q,
            .q2 = (const int8_t *)p.q2,
            .d = (const float *)(const void *)p.d,
            .is_fine = (const uint32_t *)(const void *)p.is_fine},
        err);
}

static int reserve(cuda_host *h, int which, size_t n_bytes, base_err *err)
{
    if (n_bytes <= h->n_bytes[which]) return 0;
    h->ops->buffer_free(h->ops, h->numbers[which]);
    h->numbers[which] = NULL;
    h->n_bytes[which] = 0;
    int rc = h->ops->buffer_new(h->ops, &h->numbers[which], n_bytes, err);
    if (!rc) h->n_bytes[which] = n_bytes;
    return rc;
}

/* ---- what goes up ---- */

/* y = results (+ bias) (+ add): n rows of `width` floats that stand in the results' memory from `first` on. */
static int take_up(cuda_backend *c, size_t first, uint32_t n, uint32_t width, const ops_buffer *bias,
    gpu_mat add, gpu_mat y, base_err *err)
{
    const size_t row_bytes = width * sizeof(float), most = c->arguments.size / row_bytes;
    int rc = 0;
    for (uint32_t t = 0, now; t < n && !rc; t += now) {
        void *host;
        gpu_mat made = {.stride = width}, to = {y.data + t * y.stride, y.stride};
        now = n - t < most ? n - t : (uint32_t)most;
        rc = cuda_reserve(c, now * row_bytes, 0, 0, err);
        if (rc) return rc;
        cuda_take(&c->arguments, now * row_bytes, &host, &made.data);
        c->host.ops->download(c->host.ops, host, c->host.numbers[RESULTS],
            (first + (size_t)t * width) * sizeof(float), now * row_bytes);
        if (bias) rc = cuda_add_rows(c, made, (gpu_mat){bias->data, 0}, made, now, width, err);
        if (rc) return rc;
        rc = add.data ? cuda_add_rows(
                            c, made, (gpu_mat){add.data + t * add.stride, add.stride}, to, now, width, err)
                      : cuda_copy_rows(c, made, to, now, width, err);
    }
    return rc;
}

/* ---- operations ---- */

/* The mirror of a buffer that only uploads write. */
static int mirror_of(cuda_backend *c, const ops_buffer *b, const ops_buffer **ret, base_err *err)
{
    model_ops *host = c->host.ops;
    ops_buffer *of = (ops_buffer *)(uintptr_t)b;
    *ret = NULL;
    if (!b) return 0;
    if (!of->mirror) {
        uint8_t *bytes = malloc(b->n_bytes);
        int rc = bytes ? host->buffer_new(host, &of->mirror, b->n_bytes, err)
                       : base_fail(err, BASE_E_NOMEM, "no memory for biases of experts");
        if (!rc) {
            c->ops.download(&c->ops, bytes, b, 0, b->n_bytes);
            host->upload(host, of->mirror, 0, bytes, b->n_bytes);
        }
        free(bytes);
        if (rc) return rc;
    }
    *ret = of->mirror;
    return 0;
}

int cuda_host_matmul(cuda_backend *c, const ops_matmul_args *a, base_err *err)
{
    model_ops *host = c->host.ops;
    const uint32_t n = a->x->n;
    ops_matmul_args here = {.n_parts = a->n_parts, .only = a->only};
    size_t first[OPS_MATMUL_PARTS], at = 0;
    for (uint32_t p = 0; p < a->n_parts; p++) {
        if (!a->parts[p].weight->on_host)
            return base_fail(
                err, BASE_E_USAGE, "a product of matrices in the GPU's memory and in the host's");
        first[p] = at;
        at += (size_t)n * a->parts[p].weight->w.n_out;
    }
    int rc = reserve(&c->host, RESULTS, at * sizeof(float), err);
    if (!rc) rc = take_rows(c, a->x, NULL, err);
    if (rc) return rc;
    here.x = c->host.x;
    for (uint32_t p = 0; p < a->n_parts; p++) {
        here.parts[p].weight = a->parts[p].weight->on_host;
        here.parts[p].y = (ops_mat){c->host.numbers[RESULTS], first[p], a->parts[p].weight->w.n_out};
    }
    host->cancel = c->ops.cancel;
    rc = host->matmul(host, &here, err);
    host->cancel = NULL;
    for (uint32_t p = 0; p < a->n_parts && !rc; p++)
        rc = take_up(c, first[p], n, a->parts[p].weight->w.n_out, a->parts[p].bias,
            cuda_mat_of(a->parts[p].add), cuda_mat_of(a->parts[p].y), err);
    return rc;
}

int cuda_host_experts(cuda_backend *c, const ops_experts_args *a, base_err *err)
{
    model_ops *host = c->host.ops;
    const uint32_t n = a->x->n, width = a->n_experts ? a->down->w.n_out / a->n_experts : 0;
    const size_t n_chosen = (size_t)n * a->n_used;
    ops_experts_args here = *a;
    if (!a->gate->on_host || !a->up->on_host || !a->down->on_host)
        return base_fail(err, BASE_E_USAGE, "experts in the GPU's memory and in the host's");
    if (n_chosen * sizeof(uint32_t) > a->chosen->n_bytes)
        return base_fail(err, BASE_E_LIMIT, "experts were not chosen for %u tokens", n);
    int rc = reserve(&c->host, RESULTS, (size_t)n * width * sizeof(float), err);
    if (!rc) rc = reserve(&c->host, CHOSEN, n_chosen * sizeof(uint32_t), err);
    if (!rc) rc = reserve(&c->host, WEIGHTS, n_chosen * sizeof(float), err);
    if (!rc) rc = mirror_of(c, a->gate_bias, &here.gate_bias, err);
    if (!rc) rc = mirror_of(c, a->up_bias, &here.up_bias, err);
    if (!rc) rc = mirror_of(c, a->down_bias, &here.down_bias, err);
    if (!rc) rc = take_rows(c, a->x, a, err);
    if (rc || n == 0) return rc;
    here.x = c->host.x;
    here.chosen = c->host.numbers[CHOSEN];
    here.weights = c->host.numbers[WEIGHTS];
    here.gate = a->gate->on_host;
    here.up = a->up->on_host;
    here.down = a->down->on_host;
    here.y = (ops_mat){c->host.numbers[RESULTS], 0, width};
    here.add = (ops_mat){0};
    host->cancel = c->ops.cancel;
    rc = host->experts(host, &here, err);
    host->cancel = NULL;
    return rc ? rc : take_up(c, 0, n, width, NULL, cuda_mat_of(a->add), cuda_mat_of(a->y), err);
}
