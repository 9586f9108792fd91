/*
 * visit: evicted rows that tokens choose for themselves. Those rows lie in the host's memory and most of them
 * are never on the device, so the host computes: queries and what attention left come down, the CPU backend's
 * operation runs on them, its result goes up. The CPU's bits by themselves.
 */
#include <stdlib.h>

#include "cuda/backend.h"

/* The floats from a matrix's first element to its last. */
static size_t extent(ops_mat m, uint32_t n, uint32_t width)
{
    return (n - 1) * m.stride + width;
}

/* A copy in the host backend's memory. */
static int bring_down(cuda_backend *c, ops_mat from, size_t n_floats, ops_mat *ret, base_err *err)
{
    model_ops *host = c->host.ops;
    float *floats = malloc(n_floats * sizeof *floats);
    *ret = (ops_mat){.stride = from.stride};
    if (!floats) return base_fail(err, BASE_E_NOMEM, "no memory for %zu numbers of the device", n_floats);
    int rc = host->buffer_new(host, &ret->buffer, n_floats * sizeof *floats, err);
    if (!rc) {
        c->ops.download(&c->ops, floats, from.buffer, from.first * sizeof *floats, n_floats * sizeof *floats);
        host->upload(host, ret->buffer, 0, floats, n_floats * sizeof *floats);
    }
    free(floats);
    return rc;
}

static int take_up(cuda_backend *c, ops_mat from, size_t n_floats, ops_mat to, base_err *err)
{
    float *floats = malloc(n_floats * sizeof *floats);
    if (!floats) return base_fail(err, BASE_E_NOMEM, "no memory for %zu numbers of the device", n_floats);
    c->host.ops->download(c->host.ops, floats, from.buffer, 0, n_floats * sizeof *floats);
    c->ops.upload(&c->ops, to.buffer, to.first * sizeof *floats, floats, n_floats * sizeof *floats);
    free(floats);
    return 0;
}

int cuda_op_visit(model_ops *ops, const ops_visit_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    if (a->n == 0) return 0;
    int rc = cuda_finish(c, err); /* the batch's rows are in host memory */
    model_ops *host = NULL;
    if (!rc) rc = cuda_host_open(c, &host, err);
    if (rc) return rc;
    const uint32_t width = a->n_head * a->visit->rows->shape.head_dim;
    const size_t n_q = extent(a->q, a->n, width), n_out = extent(a->out, a->n, width),
                 n_sums = extent(a->sums, a->n, 2 * a->n_head);
    ops_visit_args here = *a;
    here.q.buffer = here.out.buffer = here.sums.buffer = NULL;
    rc = bring_down(c, a->q, n_q, &here.q, err);
    if (!rc) rc = bring_down(c, a->out, n_out, &here.out, err);
    if (!rc) rc = bring_down(c, a->sums, n_sums, &here.sums, err);
    host->cancel = ops->cancel;
    if (!rc) rc = host->visit(host, &here, err);
    host->cancel = NULL;
    if (!rc) rc = take_up(c, here.out, n_out, a->out, err);
    host->buffer_free(host, here.q.buffer);
    host->buffer_free(host, here.out.buffer);
    host->buffer_free(host, here.sums.buffer);
    return rc;
}
