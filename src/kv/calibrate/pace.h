/*
 * From how many rows on it is faster, on this machine, to read few of them: measured once a model and machine,
 * kept beside the pivot's file, read when a session begins with the budget `auto` (core/budget.h).
 */
#ifndef KVIST_KV_PACE_H
#define KVIST_KV_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "kv/types.h"
#include "model/forward/model.h"

enum {
    KV_PACE_DEPTHS = 2,
    KV_PACE_ROWS = 4096,  /* the smaller budget */
    KV_PACE_UNTIL = 8192, /* nothing leaves before, however fast the machine would be without */
};
typedef enum kv_pace_kind { KV_PACE_MESSAGE, KV_PACE_ANSWER, KV_PACE_KINDS } kv_pace_kind;

typedef struct kv_pace {
    char hash[65], isa[32];
    uint32_t n_threads;
    uint32_t rows;                   /* of the smaller budget that was measured */
    uint32_t depths[KV_PACE_DEPTHS]; /* tokens there were */
    /* milliseconds a token, median: all rows read; `rows` read and the others weighed */
    double full[KV_PACE_DEPTHS][KV_PACE_KINDS], few[KV_PACE_DEPTHS][KV_PACE_KINDS];
} kv_pace;

/*
 * What `auto` takes: nothing leaves before a lane has `until` rows, then `rows` stay. until is the least depth,
 * rounded up to 1,024, from which on messages and answers are both computed at least as fast over `rows`, by the
 * line through the two depths, and KV_PACE_UNTIL at least. {0, 0}: it never is, up to the deeper one.
 */
kv_limit kv_pace_limit(const kv_pace *p);

/*
 * Measures over drawn rows, 10 to 30 s for a model of 1.5 billion weights on two cores. BASE_E_STATE, with the
 * number in the sentence: repeats differed so much that they say nothing (the machine is busy).
 * BASE_E_UNSUPPORTED: the context, or the free memory, holds too few rows to compare.
 */
int kv_pace_measure(model *m, kv_pace *ret, void (*progress)(void *user, double share), void *user,
    const atomic_bool *cancel, base_err *err);

char *kv_pace_path(const char *model_hash); /* heap: rows/HASH.pace in the data folder */
int kv_pace_save(const kv_pace *p, const char *path, base_err *err);
/* False where there is no such file, or it is of another model, instruction set or number of threads. */
bool kv_pace_load(const char *path, const model_info *info, kv_pace *ret);
bool kv_pace_parse(const char *text, size_t n, kv_pace *ret);

#endif
