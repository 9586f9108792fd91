/* Bytes of a group; see group.h. */
#include "kv/core/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void kv__put32(base_buf *out, uint32_t x)
{
    base_buf_add(out, &x, sizeof x);
}

void kv__put(base_buf *out, const void *items, size_t n, size_t size)
{
    if (n) base_buf_add(out, items, n * size);
}

bool kv__get(kv__reader *r, void *to, size_t n, size_t size)
{
    size_t n_bytes;
    if (r->bad || !base_mul(n, size, &n_bytes) || n_bytes > r->left) {
        r->bad = true;
        return false;
    }
    if (n_bytes) memcpy(to, r->at, n_bytes);
    r->at += n_bytes;
    r->left -= n_bytes;
    return true;
}

uint32_t kv__get32(kv__reader *r)
{
    uint32_t x = 0;
    kv__get(r, &x, 1, sizeof x);
    return x;
}

uint64_t kv__get64(kv__reader *r)
{
    uint64_t x = 0;
    kv__get(r, &x, 1, sizeof x);
    return x;
}

void *kv__get_new(kv__reader *r, size_t n, size_t size)
{
    size_t n_bytes;
    if (r->bad || !base_mul(n, size, &n_bytes) || n_bytes > r->left) {
        r->bad = true;
        return NULL;
    }
    void *items = malloc(n_bytes + 1);
    if (!items || !kv__get(r, items, n, size)) {
        r->bad = true;
        free(items);
        return NULL;
    }
    return items;
}

void *kv__copy_of(const void *items, size_t n, size_t size)
{
    return items ? memcpy(base_xmalloc(n * size + 1), items, n * size) : NULL;
}
