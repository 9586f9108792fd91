/* A stable radix sort of floats, three passes of 11 bits: equal scores keep the order they came in. */
#include "kv/core/rank.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int kv_ranker_reserve(kv_ranker *r, uint32_t n)
{
    if (n <= r->cap) return 0;
    uint64_t *keys = realloc(r->keys, ((size_t)n + 1) * sizeof *keys);
    if (keys) r->keys = keys;
    uint64_t *spare = realloc(r->spare, ((size_t)n + 1) * sizeof *spare);
    if (spare) r->spare = spare;
    if (!keys || !spare) return BASE_E_NOMEM;
    r->cap = n;
    return 0;
}

void kv_ranker_free(kv_ranker *r)
{
    free(r->keys);
    free(r->spare);
    *r = (kv_ranker){0};
}

/* Bits that ascend as the float descends; NaN last. */
static uint32_t descending(float x)
{
    uint32_t bits;
    if (x != x) return UINT32_MAX;
    x += 0.0f; /* -0 becomes +0 */
    memcpy(&bits, &x, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
    return ~bits;
}

static void sort_by(kv_ranker *r, const float *score, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t index = (uint32_t)r->keys[i];
        r->keys[i] = (uint64_t)descending(score[index]) << 32 | index;
    }
    for (int shift = 32; shift < 64; shift += 11) {
        uint32_t start[2049] = {0};
        for (uint32_t i = 0; i < n; i++) start[(r->keys[i] >> shift & 2047) + 1]++;
        for (uint32_t b = 0; b < 2048; b++) start[b + 1] += start[b];
        for (uint32_t i = 0; i < n; i++) r->spare[start[r->keys[i] >> shift & 2047]++] = r->keys[i];
        uint64_t *swap = r->keys;
        r->keys = r->spare;
        r->spare = swap;
    }
}

void kv_rank(kv_ranker *r, const float *score, const float *previous, uint32_t n, uint32_t *order)
{
    for (uint32_t i = 0; i < n; i++) r->keys[i] = i;
    if (previous) sort_by(r, previous, n);
    sort_by(r, score, n);
    for (uint32_t i = 0; i < n; i++) order[i] = (uint32_t)r->keys[i];
}
