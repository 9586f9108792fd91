/* What the tables of results say beside a share: intervals and paired tests (docs/method.md, Statistics). */
#ifndef KVIST_BENCH_STATISTICS_H
#define KVIST_BENCH_STATISTICS_H

#include <stdint.h>

/* The 95% interval of Wilson (1927) for `right` of n. */
void bench_wilson(uint32_t right, uint32_t n, double *ret_low, double *ret_high);
/* McNemar's exact two-sided p for b against c discordant pairs. */
double bench_mcnemar(uint32_t b, uint32_t c);
/*
 * The mean of n values and its 95% interval by 10,000 draws with replacement (percentile bootstrap, Efron 1979); the same
 * for the same seed. n = 0: zeros.
 */
void bench_bootstrap(
    const double *values, uint32_t n, uint64_t seed, double *ret_mean, double *ret_low, double *ret_high);
int bench_compare_doubles(const void *a, const void *b); /* for qsort */

#endif
