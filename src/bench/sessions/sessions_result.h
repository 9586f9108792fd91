/*
 * What `kvist-bench sessions --out FILE` wrote, as tables: by policy and share of the rows, and policies
 * against each other.
 */
#ifndef KVIST_BENCH_SESSIONS_RESULT_H
#define KVIST_BENCH_SESSIONS_RESULT_H

#include "base/err.h"

/*
 * Prints them to stdout. Lines that are none of the bench's are passed over; an error is of reading the file.
 */
int sessions_summarise(const char *path, base_err *err);

#endif
