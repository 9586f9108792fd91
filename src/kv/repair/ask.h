/* What an experiment may say about a repair; for lab.h and repair.c. */
#ifndef KVIST_KV_ASK_H
#define KVIST_KV_ASK_H

#include <stdint.h>

#include "kv/core/signal.h"

/* What is NULL is as in kv_session_repair. */
typedef struct kv_ask {
    const kv_signal *signal; /* asks instead of [from, to): the last question's, another session's */
    const uint64_t *among;   /* [bits of n] evicted rows beside these are not scored and do not come back */
    uint32_t *rank;          /* out, [n]: evicted rows that are asked for more; UINT32_MAX: nobody asked */
} kv_ask;

#endif
