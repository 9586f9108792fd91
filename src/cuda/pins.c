/*
 * Memory of the host that the device reads by itself: the cache's blocks are pinned where they lie, so rows
 * of a plan go to the device without anybody gathering them here. What cannot be pinned (a file's map, a
 * limit of the system) is gathered as before; in that case there is no device address.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuda/backend.h"

/* The piece that begins at or before `address`, as an index behind it; 0: none does. */
static size_t pieces_up_to(const cuda_pins *p, const uint8_t *address)
{
    size_t from = 0, to = p->n;
    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (p->pieces[middle].host <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

void cuda_pin(model_ops *ops, void *memory, size_t n_bytes)
{
    cuda_backend *c = cuda_of(ops);
    cuda_pins *p = &c->pins;
    void *device = NULL;
    if (c->failed.code || p->is_refused) return;
    if (cudaHostRegister(memory, n_bytes, cudaHostRegisterMapped) != cudaSuccess) {
        (void)cudaGetLastError();
        p->is_refused = true; /* the next one would be too, and asking takes time */
        return;
    }
    if (cudaHostGetDevicePointer(&device, memory, 0) != cudaSuccess) {
        (void)cudaGetLastError();
        cudaHostUnregister(memory);
        p->is_refused = true;
        return;
    }
    base_grow(&p->pieces, &p->cap, p->n + 1, sizeof *p->pieces);
    const size_t at = pieces_up_to(p, memory);
    memmove(p->pieces + at + 1, p->pieces + at, (p->n++ - at) * sizeof *p->pieces);
    p->pieces[at] = (cuda_pinned){memory, device, n_bytes};
}

void cuda_unpin(model_ops *ops, void *memory)
{
    cuda_backend *c = cuda_of(ops);
    cuda_pins *p = &c->pins;
    const size_t behind = pieces_up_to(p, memory);
    if (behind == 0 || p->pieces[behind - 1].host != memory) return;
    cudaStreamSynchronize(c->stream); /* rows of it may be on their way */
    cudaHostUnregister(memory);
    if (c->failed.code) (void)cudaGetLastError();
    p->is_refused = false; /* there is room for another */
    p->n--;
    memmove(p->pieces + behind - 1, p->pieces + behind, (p->n - (behind - 1)) * sizeof *p->pieces);
}

uint64_t cuda_pinned_at(const cuda_backend *c, const void *address)
{
    const cuda_pins *p = &c->pins;
    const size_t behind = pieces_up_to(p, address);
    if (behind == 0) return 0;
    const cuda_pinned *piece = &p->pieces[behind - 1];
    const size_t into = (size_t)((const uint8_t *)address - piece->host);
    return into < piece->n_bytes ? (uint64_t)(uintptr_t)(piece->device + into) : 0;
}

void cuda_pins_free(cuda_backend *c)
{
    cuda_pins *p = &c->pins;
    for (size_t i = 0; i < p->n; i++) cudaHostUnregister((void *)(uintptr_t)p->pieces[i].host);
    if (c->failed.code) (void)cudaGetLastError();
    free(p->pieces);
    *p = (cuda_pins){.pieces = NULL};
}
