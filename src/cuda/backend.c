/*
 * The CUDA backend: opens, owns memory, and fills the table of model/ops/ops.h. Uploads and downloads wait
 * for all that was begun; an error of one is kept and returned by the next operation or sync.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/backend.h"

static int cuda_sync(model_ops *ops, base_err *err)
{
    return cuda_finish(cuda_of(ops), err);
}

static int cuda_buffer_new(model_ops *ops, ops_buffer **ret, size_t n_bytes, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    ops_buffer *b = calloc(1, sizeof *b);
    if (!b) return base_fail(err, BASE_E_NOMEM, "no memory for a buffer");
    int rc = cuda_alloc(c, &b->data, n_bytes, "buffers of the model", err);
    if (!rc) rc = cuda_check(c, cudaMemsetAsync(b->data, 0, n_bytes, c->stream), err);
    if (rc) {
        free(b);
        return rc;
    }
    b->n_bytes = n_bytes;
    *ret = b;
    return 0;
}

static void cuda_buffer_free(model_ops *ops, ops_buffer *b)
{
    if (!b) return;
    cuda_finish(cuda_of(ops), NULL);
    cuda_mirror_free(cuda_of(ops), b);
    cuda_free(cuda_of(ops), b->data, b->n_bytes);
    free(b);
}

static size_t cuda_buffer_bytes(const ops_buffer *b)
{
    return b->n_bytes;
}

static void cuda_upload(model_ops *ops, ops_buffer *to, size_t at_bytes, const void *from, size_t n_bytes)
{
    cuda_backend *c = cuda_of(ops);
    int rc = cuda_finish(c, NULL);
    cuda_mirror_free(c, to);
    for (size_t at = 0; at < n_bytes && !rc;) {
        const size_t now = n_bytes - at < c->move.size ? n_bytes - at : c->move.size;
        memcpy(c->move.host, (const uint8_t *)from + at, now);
        rc = cuda_check(c,
            cudaMemcpyAsync(
                (uint8_t *)to->data + at_bytes + at, c->move.host, now, cudaMemcpyHostToDevice, c->stream),
            NULL);
        if (!rc) rc = cuda_check(c, cudaStreamSynchronize(c->stream), NULL);
        at += now;
    }
}

/* After a failure the bytes are zeros: nobody reads what was there by chance. */
static void cuda_download(model_ops *ops, void *to, const ops_buffer *from, size_t at_bytes, size_t n_bytes)
{
    cuda_backend *c = cuda_of(ops);
    int rc = cuda_finish(c, NULL);
    for (size_t at = 0; at < n_bytes && !rc;) {
        const size_t now = n_bytes - at < c->back.size ? n_bytes - at : c->back.size;
        rc = cuda_check(c,
            cudaMemcpyAsync(c->back.host, (const uint8_t *)from->data + at_bytes + at, now,
                cudaMemcpyDeviceToHost, c->stream),
            NULL);
        if (!rc) rc = cuda_check(c, cudaStreamSynchronize(c->stream), NULL);
        if (!rc) memcpy((uint8_t *)to + at, c->back.host, now);
        at += now;
    }
    if (rc) memset(to, 0, n_bytes);
}

static void cuda_close(model_ops *ops)
{
    if (!ops) return;
    cuda_backend *c = cuda_of(ops);
    if (c->stream) cudaStreamSynchronize(c->stream);
    cuda_cublas_close(c);
    cuda_pins_free(c);
    cuda_rows_free(c);
    cuda_queue_free(c);
    cuda_room *rooms[] = {&c->states, &c->scores, &c->pairs, &c->done, &c->convolved, &c->factors};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) cuda_room_free(c, rooms[i]);
    cuda_free(c, c->arrived, CUDA_ARRIVED * sizeof *c->arrived);
    cuda_arena *arenas[] = {&c->arguments, &c->move, &c->patch_lists, &c->back};
    for (size_t i = 0; i < sizeof arenas / sizeof *arenas; i++) cuda_arena_free(c, arenas[i]);
    if (c->stream) cudaStreamDestroy(c->stream);
    cuda_host_close(c);
    base_pool_free(c->pool);
    free(c);
}

static int open_parts(cuda_backend *c, int n_threads, uint64_t memory_bytes, bool bf16, base_err *err)
{
    int rc = cuda_device_open(c, memory_bytes, err);
    if (!rc && bf16) rc = cuda_cublas_open(c, err);
    if (!rc) rc = base_pool_new(&c->pool, n_threads, err);
    if (!rc) rc = cuda_arena_new(c, &c->arguments, CUDA_ARGUMENT_BYTES, err);
    if (!rc) rc = cuda_arena_new(c, &c->move, CUDA_MOVE_BYTES, err);
    if (!rc) rc = cuda_arena_new(c, &c->patch_lists, CUDA_PATCH_BYTES, err);
    if (!rc) rc = cuda_arena_new(c, &c->back, CUDA_BACK_BYTES, err);
    const size_t n_bytes = CUDA_ARRIVED * sizeof *c->arrived;
    if (!rc) rc = cuda_alloc(c, (void **)&c->arrived, n_bytes, "buffers for transfers", err);
    if (!rc) rc = cuda_check(c, cudaMemsetAsync(c->arrived, 0, n_bytes, c->stream), err);
    return rc ? rc : cuda_rows_new(c, err);
}

int cuda_ops_open(model_ops **ret, int n_threads, uint64_t memory_bytes, bool bf16, base_err *err)
{
    enum { BITS = 3, BF16_BITS = 1003 };
    cuda_backend *c = calloc(1, sizeof *c);
    if (!c) return base_fail(err, BASE_E_NOMEM, "no memory for the CUDA backend");
    c->ops = (model_ops){
        .backend = bf16 ? "cuda:bf16" : "cuda",
        .kernel_version = bf16 ? BF16_BITS : BITS, /* the CPU's: the bits are the same */
        .close = cuda_close,
        .sync = cuda_sync,
        .buffer_new = cuda_buffer_new,
        .buffer_free = cuda_buffer_free,
        .buffer_bytes = cuda_buffer_bytes,
        .upload = cuda_upload,
        .download = cuda_download,
        .activations_new = cuda_activations_new,
        .activations_free = cuda_activations_free,
        .pack = cuda_pack,
        .pack_host = cuda_pack_host,
        .weight_free = cuda_weight_free,
        .weight_bytes = cuda_weight_bytes,
        .weight_outputs = cuda_weight_outputs,
        .pin = cuda_pin,
        .unpin = cuda_unpin,
        .bring = cuda_bring,
#define MODEL_OP(op) .op = cuda_op_##op,
#include "model/ops/ops.def"
#undef MODEL_OP
    };
    int rc = open_parts(c, n_threads, memory_bytes, bf16, err);
    if (rc) {
        cuda_close(&c->ops);
        return rc;
    }
    c->ops.isa = c->name;
    *ret = &c->ops;
    return 0;
}
