/*
 * Small allocations that end the program when memory is gone: for lists, strings and records of the shell.
 * Whatever a file, a model or a user sizes goes through malloc with base_mul and returns BASE_E_NOMEM.
 */
#ifndef KVIST_BASE_MEM_H
#define KVIST_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

void *base_xmalloc(size_t n_bytes);
void *base_xcalloc(size_t n, size_t size); /* zeroed */
void *base_xrealloc(void *p, size_t n_bytes);
char *base_xstrdup(const char *s);                  /* NULL gives NULL */
char *base_xstrndup(const char *s, size_t n_bytes); /* NUL is added */

/* a * b into *ret; false when it does not fit. */
static inline bool base_mul(size_t a, size_t b, size_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

/*
 * Room for one more element of a growing array: base_grow(&items, &cap, n + 1, sizeof *items). Doubles.
 */
void base_grow(void *items, size_t *cap, size_t wanted, size_t item_size);

/*
 * n bytes, zeroed: on 2 MiB pages where the system gives them (madvise), below half of one from the heap, where clearing a page would cost
 * more than it spares. Given back with the same n. NULL when memory is gone.
 */
void *base_huge_alloc(size_t n_bytes);
void base_huge_free(void *p, size_t n_bytes);

#endif
