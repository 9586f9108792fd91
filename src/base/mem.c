#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A shell that cannot get a few hundred bytes cannot tell anybody either; what matters is on disk already. */
static void *or_abort(void *p, size_t n_bytes)
{
    if (p || !n_bytes) return p;
    fputs("kvist: out of memory\n", stderr);
    abort();
}

void *base_xmalloc(size_t n_bytes)
{
    return or_abort(malloc(n_bytes ? n_bytes : 1), n_bytes);
}

void *base_xcalloc(size_t n, size_t size)
{
    return or_abort(calloc(n ? n : 1, size ? size : 1), n && size);
}

void *base_xrealloc(void *p, size_t n_bytes)
{
    return or_abort(realloc(p, n_bytes ? n_bytes : 1), n_bytes);
}

char *base_xstrdup(const char *s)
{
    return s ? base_xstrndup(s, strlen(s)) : NULL;
}

char *base_xstrndup(const char *s, size_t n_bytes)
{
    char *copy = base_xmalloc(n_bytes + 1);
    if (n_bytes) memcpy(copy, s, n_bytes);
    copy[n_bytes] = '\0';
    return copy;
}

void base_grow(void *items, size_t *cap, size_t wanted, size_t item_size)
{
    if (wanted <= *cap) return;
    size_t more = *cap ? *cap * 2 : 8, n_bytes;
    if (more < wanted) more = wanted;
    if (!base_mul(more, item_size, &n_bytes)) or_abort(NULL, 1);
    void *p;
    memcpy(
        &p, items, sizeof p); /* `items` points to a typed pointer: copied as bytes to keep aliasing legal */
    p = base_xrealloc(p, n_bytes);
    memcpy(items, &p, sizeof p);
    *cap = more;
}

enum { HUGE_PAGE = 2 << 20, ON_HUGE_PAGES = HUGE_PAGE / 2, CACHE_LINE = 64 };

static size_t round_up(size_t n_bytes, size_t to)
{
    return (n_bytes + to - 1) / to * to;
}

void *base_huge_alloc(size_t n_bytes)
{
    if (!n_bytes || n_bytes > SIZE_MAX / 2) return NULL;
    if (n_bytes < ON_HUGE_PAGES) {
        void *small = aligned_alloc(CACHE_LINE, round_up(n_bytes, CACHE_LINE));
        return small ? memset(small, 0, n_bytes) : NULL;
    }
    /*
     * Over-map by one huge page and give back the ends: alignment is what lets the kernel use 2 MiB pages at
     * all.
     */
    const size_t page = HUGE_PAGE, size = round_up(n_bytes, page);
    char *p =
        mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t head = (page - (size_t)p % page) % page;
    if (head) munmap(p, head);
    if (page - head) munmap(p + head + size, page - head);
    madvise(p + head, size, MADV_HUGEPAGE);
    return p + head;
}

void base_huge_free(void *p, size_t n_bytes)
{
    if (n_bytes < ON_HUGE_PAGES)
        free(p);
    else if (p)
        munmap(p, round_up(n_bytes, HUGE_PAGE));
}
