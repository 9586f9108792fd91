/* See bench/common/statistics.h. */
#include "bench/common/statistics.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

void bench_wilson(uint32_t right, uint32_t n, double *ret_low, double *ret_high)
{
    const double z = 1.959963984540054, p = n ? (double)right / n : 0, z2 = z * z;
    if (!n) {
        *ret_low = 0;
        *ret_high = 1;
        return;
    }
    const double middle = p + z2 / (2 * n), half = z * sqrt(p * (1 - p) / n + z2 / (4.0 * n * n));
    *ret_low = (middle - half) / (1 + z2 / n);
    *ret_high = (middle + half) / (1 + z2 / n);
}

int bench_compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_bootstrap(
    const double *values, uint32_t n, uint64_t seed, double *ret_mean, double *ret_low, double *ret_high)
{
    enum { DRAWS = 10000 };
    double *means = base_xcalloc(DRAWS, sizeof *means), all = 0;
    uint64_t state = seed;
    for (uint32_t i = 0; i < n; i++) all += values[i];
    for (uint32_t k = 0; k < DRAWS && n; k++) {
        for (uint32_t i = 0; i < n; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            means[k] += values[(state >> 33) % n] / n;
        }
    }
    qsort(means, DRAWS, sizeof *means, bench_compare_doubles);
    *ret_mean = n ? all / n : 0;
    *ret_low = means[DRAWS / 40];
    *ret_high = means[DRAWS - 1 - DRAWS / 40];
    free(means);
}

double bench_mcnemar(uint32_t b, uint32_t c)
{
    const uint32_t n = b + c, least = b < c ? b : c;
    double sum = 0;
    for (uint32_t i = 0; i <= least; i++)
        sum += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) - n * log(2));
    return sum * 2 < 1 ? sum * 2 : 1;
}
