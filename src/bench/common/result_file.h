/*
 * Files of results, a JSON object a line: read again so that an interrupted run goes on where it stopped. A
 * line that the end of a run cut off is left out.
 */
#ifndef KVIST_BENCH_RESULT_FILE_H
#define KVIST_BENCH_RESULT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* Each result of a file's bytes; a line that is no JSON is passed by. */
typedef void bench_result_fn(void *user, const base_json *result);
void bench_each_result(const base_buf *file, bench_result_fn *fn, void *user);
int bench_read_results(const char *path, bench_result_fn *fn, void *user, base_err *err);
/* Each whole line of a file, whatever it is. */
typedef void bench_line_fn(void *user, const char *line, size_t n);
int bench_read_lines(const char *path, bench_line_fn *fn, void *user, base_err *err);

/*
 * Opens path for more lines; NULL: stdout. One that holds something already is refused, unless resume;
 * *ret_old (may be NULL) is then what it holds, up to its last whole line.
 */
int bench_open_out(FILE **ret, const char *path, bool resume, base_buf *ret_old, base_err *err);

/*
 * Is the name asked for by a list of words: does it begin with one of them, or is it one that has a "=" in
 * front? NULL: all are.
 */
bool bench_is_wanted(const char *words, char separator, const char *name);

#endif
