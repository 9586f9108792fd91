/* Which message or result asks in a repair, and what it may ask for. */
#ifndef KVIST_KV_ASK_H
#define KVIST_KV_ASK_H

#include <stdint.h>

#include "kv/core/signal.h"

typedef struct kv_ask {
    uint32_t from, to;       /* its tokens, [from, to): appended already, without the template's tail */
    const uint32_t *queries; /* [n_queries] ascending: which of them count; NULL: chosen evenly */
    uint32_t n_queries;
    /* What only experiments (lab.h) say; NULL: as it is for a user. */
    const kv_signal *signal; /* asks instead of [from, to): the last question's, another session's */
    const uint64_t *among;   /* [bits of n] evicted rows beside these are not scored and do not come back */
    uint32_t *rank;          /* out, [n]: evicted rows that are asked for more; UINT32_MAX: nobody asked */
} kv_ask;

#endif
