/* How far apart two sides' expectations at one token are. Pure. */
#ifndef KVIST_WHATIF_DISTANCE_H
#define KVIST_WHATIF_DISTANCE_H

#include <stdint.h>

typedef struct whatif_distance {
    double kl;       /* KL(original || changed), nats */
    double nll[2];   /* -log p of the recorded token: original, changed */
    int32_t best[2]; /* the likeliest token, the first of equal ones */
    double nats;     /* by how much the changed side prefers its best token to the original's */
} whatif_distance;

/* original, changed: [n] logits; id: the token that was recorded. */
whatif_distance whatif_measure(const float *original, const float *changed, uint32_t n, int32_t id);

/* -log p of the token, nats; *best: the likeliest one. */
double whatif_nll(const float *logits, uint32_t n, int32_t id, int32_t *best);

#endif
