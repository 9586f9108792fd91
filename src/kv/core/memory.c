/* The memory of requests as a list of its states; see memory.h. */
#include "kv/core/memory.h"

#include <math.h>
#include <stdlib.h>

kv_memory *kv_memory_new(kv_memory *past, size_t n_floats, uint32_t at)
{
    kv_memory *m = calloc(1, sizeof *m);
    float *values = malloc((2 * n_floats + 1) * sizeof *values);
    if (!m || !values) {
        free(m);
        free(values);
        return NULL;
    }
    *m = (kv_memory){
        .refs = 1, .at = at, .past = kv_memory_ref(past), .sum = values, .message = values + n_floats};
    return m;
}

kv_memory *kv_memory_ref(kv_memory *m)
{
    if (m) m->refs++;
    return m;
}

void kv_memory_unref(kv_memory *m)
{
    while (m && --m->refs == 0) {
        kv_memory *past = m->past;
        free(m->sum);
        free(m);
        m = past;
    }
}

kv_memory *kv_memory_rewind(kv_memory *m, uint32_t n)
{
    while (m && m->at > n) {
        kv_memory *past = kv_memory_ref(m->past);
        kv_memory_unref(m);
        m = past;
    }
    return m;
}

/* Unit norm; a zero vector asks nothing and stays zero, 1/0 would make M NaN for ever. */
static void normalise(float *v, size_t d)
{
    double norm2 = 0;
    for (size_t i = 0; i < d; i++) norm2 += (double)v[i] * v[i];
    const double scale = norm2 > 0 ? 1 / sqrt(norm2) : 0;
    for (size_t i = 0; i < d; i++) v[i] = (float)(v[i] * scale);
}

static const float decay = 0.60653066f; /* exp(-.5) */

void kv_memory_mix(float *sum, const float *message, size_t n_vectors, size_t d)
{
    for (size_t v = 0; v < n_vectors; v++, sum += d, message += d) {
        for (size_t i = 0; i < d; i++) sum[i] = decay * sum[i] + message[i];
        normalise(sum, d);
    }
}

kv_memory *kv_memory_add(kv_memory *past, const kv_signal *s, uint32_t at)
{
    const size_t d = s->head_dim, n_vectors = (size_t)s->n_layer * s->n_head;
    kv_memory *m = kv_memory_new(past, n_vectors * d, at);
    if (!m) return NULL;
    for (size_t lh = 0; lh < n_vectors; lh++) {
        const float *q = s->queries + lh * s->n * d, *old = past ? past->sum + lh * d : NULL;
        float *message = m->message + lh * d, *sum = m->sum + lh * d;
        for (size_t i = 0; i < d; i++) {
            double total = 0;
            for (uint32_t t = 0; t < s->n; t++) total += q[t * d + i];
            message[i] = (float)(total / s->n);
        }
        normalise(message, d);
        for (size_t i = 0; i < d; i++) sum[i] = (old ? decay * old[i] : 0) + message[i];
        normalise(sum, d);
    }
    return m;
}
