/* See bench/common/statistics.h. */
#include "bench/common/statistics.h"

#include <math.h>

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

double bench_mcnemar(uint32_t b, uint32_t c)
{
    const uint32_t n = b + c, least = b < c ? b : c;
    double sum = 0;
    for (uint32_t i = 0; i <= least; i++)
        sum += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) - n * log(2));
    return sum * 2 < 1 ? sum * 2 : 1;
}
