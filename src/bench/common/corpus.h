/* Real code and prose that documents are made of: the files below a folder. */
#ifndef KVIST_BENCH_CORPUS_H
#define KVIST_BENCH_CORPUS_H

#include "base/buf.h"
#include "base/err.h"

/*
 * All source and prose files below folder (no hidden ones), in the order of their paths: each by itself, or
 * their text.
 */
typedef int bench_file_fn(void *user, const char *path, base_err *err);
int bench_walk(const char *folder, bench_file_fn *each, void *user, base_err *err);
int bench_corpus_load(const char *folder, base_buf *out, base_err *err);

#endif
