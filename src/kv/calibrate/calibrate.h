/* Finding a model's retrieval heads (repair/heads.h), once per model, on demand. */
#ifndef KVIST_KV_CALIBRATE_H
#define KVIST_KV_CALIBRATE_H

#include <stdatomic.h>

#include "base/err.h"
#include "model/forward/model.h"

enum { KV_HEADS_KEPT = 20 }; /* 8 do nearly as well (docs/diary.md) */

/*
 * Finds and writes the n_heads best (KV_HEADS_KEPT is good) to path; its folder is made. Two texts of about
 * 700 tokens are computed. progress (may be NULL) hears the share done.
 */
int kv_heads_calibrate(model *m, uint32_t n_heads, const char *path,
    void (*progress)(void *user, double share), void *user, const atomic_bool *cancel, base_err *err);

#endif
