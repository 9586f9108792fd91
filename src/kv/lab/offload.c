/* Active rows on disk, for a measurement of what a cache costs that does not fit; see lab.h. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kv/core/state.h"
#include "kv/evict/evict.h"
#include "kv/lab/lab.h"

int kv_session_offload(kv_session *s, uint64_t n_bytes, base_err *err)
{
    uint64_t have = 0;
    int rc = 0;
    for (uint32_t b = 0; b < s->table.n; b++)
        if (s->table.blocks[b]->rows && !s->table.blocks[b]->on_disk) have += s->table.blocks[b]->n_bytes;
    for (uint32_t b = 0; b + 1 < s->table.n && have > n_bytes && !rc; b++) {
        const kv_block *block = s->table.blocks[b];
        if (block->on_disk || !block->rows || block->refs != 1) continue;
        have -= block->n_bytes;
        rc = kv__to_disk(s, b, err);
    }
    return rc;
}

uint64_t kv_session_forget_pages(kv_session *s)
{
    uint64_t n_bytes = 0;
    for (uint32_t b = 0; b < s->table.n; b++) {
        const kv_block *block = s->table.blocks[b];
        if (!block->on_disk) continue;
        madvise(block->rows, block->n_bytes, MADV_DONTNEED);
        n_bytes += block->n_bytes;
    }
    if (n_bytes) {
        fdatasync(s->tier); /* what is not written yet would stay */
        posix_fadvise(s->tier, 0, 0, POSIX_FADV_DONTNEED);
    }
    return n_bytes;
}

void kv_session_announce(const kv_session *s)
{
    const size_t per_layer =
        model_rows_block_bytes(&s->compute.shape) / s->compute.shape.n_layer / sizeof(uint16_t);
    for (uint32_t layer = 0; layer < s->compute.shape.n_layer; layer++)
        for (uint32_t b = 0; b < s->table.n; b++) {
            const kv_block *block = s->table.blocks[b];
            if (!block->on_disk) continue;
            const uintptr_t from = (uintptr_t)(block->rows + layer * per_layer),
                            page = (uintptr_t)sysconf(_SC_PAGESIZE);
            madvise((void *)(from / page * page), per_layer * sizeof(uint16_t) + from % page, MADV_WILLNEED);
        }
}
