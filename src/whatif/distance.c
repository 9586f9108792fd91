/* Two softmaxes over the vocabulary (contract: distance.h). */
#include "whatif/distance.h"

#include <math.h>

static int32_t best_of(const float *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return (int32_t)best;
}

/* log of the sum of exp(x) */
static double log_total(const float *x, uint32_t n, float most)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)expf(x[i] - most);
    return (double)most + log(sum);
}

whatif_distance whatif_measure(const float *original, const float *changed, uint32_t n, int32_t id)
{
    whatif_distance d = {.best = {best_of(original, n), best_of(changed, n)}};
    const double a = log_total(original, n, original[d.best[0]]),
                 b = log_total(changed, n, changed[d.best[1]]);
    for (uint32_t i = 0; i < n; i++) {
        const double p = (double)original[i] - a, q = (double)changed[i] - b;
        if (p > -40 && p != q) d.kl += exp(p) * (p - q); /* below that it adds nothing that a double holds */
    }
    if (d.kl < 0) d.kl = 0;
    if (id >= 0 && (uint32_t)id < n) {
        d.nll[0] = a - (double)original[id];
        d.nll[1] = b - (double)changed[id];
    }
    d.nats = (double)changed[d.best[1]] - (double)changed[d.best[0]];
    return d;
}

double whatif_nll(const float *logits, uint32_t n, int32_t id, int32_t *best)
{
    *best = best_of(logits, n);
    return log_total(logits, n, logits[*best]) - (double)logits[id];
}
