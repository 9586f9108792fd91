/* What the tables of results say beside a share: intervals and paired tests (docs/method.md, Statistics). */
#ifndef KVIST_BENCH_STATISTICS_H
#define KVIST_BENCH_STATISTICS_H

#include <stdint.h>

/* The 95% interval of Wilson (1927) for `right` of n. */
void bench_wilson(uint32_t right, uint32_t n, double *ret_low, double *ret_high);
/* McNemar's exact two-sided p for b against c discordant pairs. */
double bench_mcnemar(uint32_t b, uint32_t c);
int bench_compare_doubles(const void *a, const void *b); /* for qsort */

#endif
