/*
 * What returns: a repair, the rows that come with one that is asked for, and the heads that are listened to.
 */
#ifndef KVIST_KV_REPAIR_H
#define KVIST_KV_REPAIR_H

#include "kv/core/state.h"

/* choose.c: the rows that come with anchor i. */
void kv__grow(const kv_session *s, uint32_t i, uint32_t *from, uint32_t *to);

/* heads.c: sets heads and best_heads; NULL without a file of this model. */
void kv__heads_load(kv_session *s, const char *path);
/* Flags ([n_layer * n_head]) of the n best heads below a layer; of all of them when none is calibrated. */
enum { KV_HEADS_BELOW = 20 };
void kv__heads_below(const kv_session *s, uint32_t layer, uint32_t n, uint8_t *flags);

#endif
