/* Sets of sessions (tests/session_sets, made by scripts/make-long-sets): a JSON object a line. */
#ifndef KVIST_BENCH_LONG_SET_H
#define KVIST_BENCH_LONG_SET_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* number: the session's place in the set. What it returns ends the set, unless it is 0. */
typedef int long_session_fn(void *user, const base_json *session, uint32_t number, base_err *err);

/* Those of the set whose id begins with a word of `wanted` (words with commas between them; NULL: all). path: for errors. */
int long_set_each(const char *path, const base_buf *set, const char *wanted, long_session_fn *fn, void *user,
    base_err *err);

#endif
