/*
 * From logits to one id: repeat penalty, then greedy at temperature 0, else top-k, top-p, min-p, temperature
 * and one draw from our own generator (PCG32), so that a seed gives the same text on every machine and thread
 * count.
 */
#ifndef KVIST_MODEL_SAMPLER_H
#define KVIST_MODEL_SAMPLER_H

#include <stdint.h>
#include <stddef.h>

typedef struct model_sampling {
    float temperature;    /* 0: greedy */
    float top_p, min_p;   /* 1 and 0: off */
    int top_k;            /* 0: off */
    float repeat_penalty; /* 1: off */
    int repeat_last;      /* tokens it looks back */
    uint64_t seed;
} model_sampling;

#define MODEL_SAMPLING_DEFAULTS                                                                              \
    (model_sampling)                                                                                         \
    {                                                                                                        \
        .temperature = 0, .top_p = 1, .min_p = 0, .top_k = 0, .repeat_penalty = 1, .repeat_last = 64,        \
        .seed = 1                                                                                            \
    }

typedef struct model_sampler model_sampler;

model_sampler *model_sampler_new(const model_sampling *s, uint32_t n_vocab);
void model_sampler_free(model_sampler *s);
void model_sampler_reset(model_sampler *s, uint64_t seed); /* the generator's state from a seed */

/*
 * Picks an id. `allowed` is a bit per id (NULL: all); if no id is allowed the mask is ignored. recent: the
 * last ids for the penalty. logits are not changed. Ties go to the lower id. Returns the id; *ret_logprob
 * (may be NULL) its natural-log probability under the unmasked softmax.
 */
int32_t model_sampler_pick(model_sampler *s, const float *logits, const uint64_t *allowed,
    const int32_t *recent, size_t n_recent, float *ret_logprob);

#endif
