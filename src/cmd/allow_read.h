/*
 * --allow-read PATH: what commands of a tree may read outside of it. On a terminal the person is asked once
 * for each path and tree; a yes is kept in the data folder ("allow-read": a line a grant). Elsewhere nobody
 * can be asked: there the option is the answer, for this run.
 */
#ifndef KVIST_CMD_ALLOW_READ_H
#define KVIST_CMD_ALLOW_READ_H

#include <stddef.h>

#include "base/err.h"

/*
 * `given`: n paths as they were typed. *ret: without links, NULL-terminated; the caller frees each and the
 * array. A path that is not there, that is home or the whole file system, or a no: an error, and nothing is
 * started.
 */
int allow_read_resolve(const char *dir, const char *const *given, size_t n, char ***ret, base_err *err);

#endif
