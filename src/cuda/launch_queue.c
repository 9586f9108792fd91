/*
 * Launches wait in a list. A small batch (a decoded token) waits until somebody needs its result: then the
 * list is compared, byte by byte, with the lists seen before, and one that comes again is captured as a graph
 * and replayed in one call. Whatever differs from token to token lies in the arenas and lists on the device,
 * not in the structs, so that a context may grow without a new graph. Large batches are launched at once.
 *
 * A flush joins launches where it can (fuse.c) and sends, in this order: what the arenas hold, the pieces of
 * lists to their places, rows to theirs (lists.c puts that launch in front), and the launches. Arenas are
 * written to again only after the stream is through.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuda/backend.h"

enum { ALIGN = 256 };

static size_t rounded(size_t n_bytes)
{
    return (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
}

bool cuda_has_room(const cuda_arena *a, size_t n_bytes)
{
    return n_bytes <= a->size && rounded(n_bytes) <= a->size - a->used;
}

int cuda_reserve(cuda_backend *c, size_t argument_bytes, size_t move_bytes, size_t back_bytes, base_err *err)
{
    if (cuda_has_room(&c->arguments, argument_bytes) && cuda_has_room(&c->move, move_bytes) &&
        cuda_has_room(&c->back, back_bytes))
        return 0;
    if (argument_bytes > c->arguments.size || move_bytes > c->move.size || back_bytes > c->back.size)
        return base_fail(err, BASE_E_LIMIT,
            "%zu, %zu and %zu bytes do not fit the GPU's transfers; take a smaller batch", argument_bytes,
            move_bytes, back_bytes);
    return cuda_finish(c, err);
}

void cuda_take(cuda_arena *a, size_t n_bytes, void *ret_host, void *ret_device)
{
    memcpy(ret_host, &(void *){a->host + a->used}, sizeof(void *));
    memcpy(ret_device, &(void *){a->device + a->used}, sizeof(void *));
    a->used += rounded(n_bytes);
}

int cuda_give(cuda_backend *c, const void *bytes, size_t n_bytes, void *ret, base_err *err)
{
    void *host;
    int rc = cuda_reserve(c, n_bytes, 0, 0, err);
    if (rc) return rc;
    cuda_take(&c->arguments, n_bytes, &host, ret);
    memcpy(host, bytes, n_bytes);
    return 0;
}

static cudaError_t send(cuda_backend *c, cuda_arena *a)
{
    const size_t from = a->copied;
    a->copied = a->used;
    if (a->used == from) return cudaSuccess;
    return cudaMemcpyAsync(
        a->device + from, a->host + from, a->used - from, cudaMemcpyHostToDevice, c->stream);
}

int cuda_patch(cuda_backend *c, void *to_device, const void *from_device, uint32_t n_words, base_err *err)
{
    cuda_queue *q = &c->queue;
    if (q->n_patches == CUDA_PATCHES) {
        int rc = cuda_flush(c, err);
        if (rc) return rc;
    }
    base_grow(&q->patches, &q->cap_patches, q->n_patches + 1, sizeof *q->patches);
    q->patches[q->n_patches++] = (gpu_patch){
        .to = (uint64_t)(uintptr_t)to_device, .from = (uint64_t)(uintptr_t)from_device, .n_words = n_words};
    return 0;
}

/*
 * The list of patches has its own arena: it is sent by a flush, which must not wait for itself. When it is
 * full everything that used it is waited for.
 */
static cudaError_t send_patches(cuda_backend *c)
{
    cuda_queue *q = &c->queue;
    cuda_arena *a = &c->patch_lists;
    const size_t n_bytes = q->n_patches * sizeof *q->patches;
    gpu_patch *host;
    k_patch params = {.n = (uint32_t)q->n_patches};
    cudaError_t e = send(c, &c->move);
    if (e == cudaSuccess && !cuda_has_room(a, n_bytes)) {
        e = cudaStreamSynchronize(c->stream);
        a->used = a->copied = 0;
    }
    if (e != cudaSuccess) return e;
    cuda_take(a, n_bytes, &host, &params.patches);
    memcpy(host, q->patches, n_bytes);
    q->n_patches = 0;
    e = send(c, a);
    return e == cudaSuccess ? cuda_launch_patch(c->stream, &params) : e;
}

int cuda_run_now(cuda_backend *c, gpu_launch_fn *launch, const void *params, base_err *err)
{
    if (c->failed.code) return cuda_check(c, cudaSuccess, err);
    cudaError_t e = send(c, &c->move);
    return cuda_check(c, e == cudaSuccess ? launch(c->stream, params) : e, err);
}

static cudaError_t launch_all(cuda_backend *c)
{
    const cuda_queue *q = &c->queue;
    for (size_t i = 0; i < q->n; i++) {
        const cudaError_t e = q->commands[i].launch(c->stream, q->structs.data + q->commands[i].at);
        if (e != cudaSuccess) return e;
    }
    return cudaSuccess;
}

/* The list as bytes: every launch, then the structs. */
static bool is_key(const cuda_graph *g, const cuda_queue *q)
{
    const size_t head = q->n * sizeof *q->commands;
    return g->key.len == head + q->structs.len && memcmp(g->key.data, q->commands, head) == 0 &&
           memcmp(g->key.data + head, q->structs.data, q->structs.len) == 0;
}

static cuda_graph *find_graph(cuda_queue *q)
{
    cuda_graph *oldest = &q->graphs[0];
    for (int i = 0; i < CUDA_GRAPHS; i++) {
        cuda_graph *g = &q->graphs[i];
        if (g->key.len && is_key(g, q)) return g;
        if (g->used < oldest->used) oldest = g;
    }
    if (oldest->exec) cudaGraphExecDestroy(oldest->exec);
    oldest->exec = NULL;
    oldest->used = 0;
    base_buf_clear(&oldest->key);
    base_buf_add(&oldest->key, q->commands, q->n * sizeof *q->commands);
    base_buf_add(&oldest->key, q->structs.data, q->structs.len);
    return oldest;
}

static cudaError_t capture(cuda_backend *c, cuda_graph *g)
{
    cudaGraph_t graph = NULL;
    cudaError_t e = cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal);
    if (e != cudaSuccess) return e;
    const cudaError_t launched = launch_all(c);
    e = cudaStreamEndCapture(c->stream, &graph);
    if (e == cudaSuccess) e = launched;
    if (e == cudaSuccess) e = cudaGraphInstantiate(&g->exec, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    return e;
}

/* A list seen for the first time is launched; the second time it is captured; from then on it is one call. */
static cudaError_t launch_as_graph(cuda_backend *c)
{
    cuda_graph *g = find_graph(&c->queue);
    const bool again = g->used > 0;
    g->used = ++c->queue.clock;
    if (!again) return launch_all(c);
    cudaError_t e = g->exec ? cudaSuccess : capture(c, g);
    return e == cudaSuccess ? cudaGraphLaunch(g->exec, c->stream) : e;
}

static int flush(cuda_backend *c, bool as_graph, base_err *err)
{
    cuda_queue *q = &c->queue;
    if (c->failed.code) return cuda_check(c, cudaSuccess, err);
    q->serial++;
    cuda_fuse(q);
    cudaError_t e = send(c, &c->arguments);
    if (e == cudaSuccess && q->n_patches) e = send_patches(c);
    if (e == cudaSuccess && q->n) e = as_graph ? launch_as_graph(c) : launch_all(c);
    q->n = 0;
    base_buf_clear(&q->structs);
    return cuda_check(c, e, err);
}

int cuda_flush(cuda_backend *c, base_err *err)
{
    return flush(c, false, err);
}

int cuda_launch(
    cuda_backend *c, gpu_launch_fn *launch, const void *params, size_t size, uint32_t n_tokens, base_err *err)
{
    cuda_queue *q = &c->queue;
    if (c->failed.code) return cuda_check(c, cudaSuccess, err);
    base_grow(&q->commands, &q->cap, q->n + 1, sizeof *q->commands);
    q->commands[q->n++] = (cuda_command){launch, q->structs.len, size};
    base_buf_add(&q->structs, params, size);
    return n_tokens > CUDA_GRAPH_TOKENS ? flush(c, false, err) : 0;
}

void cuda_expect(cuda_backend *c, void *to, const void *from, size_t n_bytes)
{
    cuda_queue *q = &c->queue;
    base_grow(&q->deliveries, &q->cap_deliveries, q->n_deliveries + 1, sizeof *q->deliveries);
    q->deliveries[q->n_deliveries++] = (cuda_delivery){to, from, n_bytes};
}

bool cuda_is_expected(const cuda_backend *c, const void *to)
{
    const cuda_queue *q = &c->queue;
    size_t i = 0;
    while (i < q->n_deliveries && q->deliveries[i].to != to) i++;
    return i < q->n_deliveries;
}

int cuda_finish(cuda_backend *c, base_err *err)
{
    cuda_queue *q = &c->queue;
    int rc = flush(c, true, err);
    if (!rc && c->back.used)
        rc = cuda_check(c,
            cudaMemcpyAsync(c->back.host, c->back.device, c->back.used, cudaMemcpyDeviceToHost, c->stream),
            err);
    if (!rc) rc = cuda_check(c, cudaStreamSynchronize(c->stream), err);
    for (size_t i = 0; !rc && i < q->n_deliveries; i++)
        memcpy(q->deliveries[i].to, q->deliveries[i].from, q->deliveries[i].n_bytes);
    q->n_deliveries = 0;
    c->arguments.used = c->arguments.copied = 0;
    c->move.used = c->move.copied = 0;
    c->patch_lists.used = c->patch_lists.copied = 0;
    c->back.used = 0;
    q->n_patches = 0;
    return rc;
}

void cuda_queue_free(cuda_backend *c)
{
    cuda_queue *q = &c->queue;
    for (int i = 0; i < CUDA_GRAPHS; i++) {
        if (q->graphs[i].exec) cudaGraphExecDestroy(q->graphs[i].exec);
        base_buf_free(&q->graphs[i].key);
    }
    free(q->commands);
    free(q->patches);
    free(q->deliveries);
    base_buf_free(&q->structs);
}
