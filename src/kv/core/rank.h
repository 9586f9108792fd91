/*
 * Orders by score: the same order on every machine, ties by the previous score and then by the lower index.
 */
#ifndef KVIST_KV_RANK_H
#define KVIST_KV_RANK_H

#include <stdint.h>

typedef struct kv_ranker {
    uint64_t *keys, *spare; /* [cap] */
    uint32_t cap;
} kv_ranker;

int kv_ranker_reserve(kv_ranker *r, uint32_t n); /* 0, or BASE_E_NOMEM */
void kv_ranker_free(kv_ranker *r);

/* order ([n]) receives 0..n-1, the highest score first, NaN last. previous: NULL or ties. n was reserved. */
void kv_rank(kv_ranker *r, const float *score, const float *previous, uint32_t n, uint32_t *order);

#endif
