/*
 * Which active rows a decoded token reads: SentKVCompress and Quest (Tang et al., 2024). The sequence is
 * divided into sections, which are sentences or pages. Each has a profile per lane: the largest and smallest
 * number of its keys in every dimension, which bounds the score that any of its rows can have. At every
 * step, in every layer, the sections with the highest bounds are read until a share of the lane's active
 * rows is. The newest tokens, whose section has not ended, are always read, and so are pinned rows and
 * sinks.
 *
 * Nothing is evicted and no plan is made: the live lists stay, a step reads less of them. The choice depends
 * on the token's own queries and on the keys alone, so it is the same for every batch shape and thread
 * count, after a resume and in a fork.
 *
 * A request and what stands in front of it are computed in full; only what the model writes is decoded so.
 * Engine thread.
 */
#ifndef KVIST_KV_READING_H
#define KVIST_KV_READING_H

#include "kv/core/parameters.h"
#include "kv/core/signal.h"
#include "kv/types.h"
#include "model/forward/model.h"

typedef struct kv_reading kv_reading;

/* Rows of n_live active ones that a token reads at most, its section and forced ones aside. */
uint32_t kv_reading_rows(const kv_parameters *p, uint32_t n_live);

/*
 * The reader of a batch of n tokens of an answer that begins at token `first` (ids; rows: the lists that they
 * would read, their own rows last). *ret: NULL when everything is read. Valid until the next call.
 */
int kv__reading_begin(kv_session *s, const model_rows_view *rows, const int32_t *ids, uint32_t first,
    uint32_t n, const model_reader **ret, base_err *err);
/* The n newest tokens, just published, were decoded: when they left rows unread, the cache state says so. */
void kv__reading_publish(kv_session *s, uint32_t n);
/* Rows of tokens at and behind n are gone or others now. */
void kv__reading_truncate(kv_session *s, uint32_t n);
void kv__reading_promoted(kv_session *s); /* rows that profiles were made without may be active now */
void kv__reading_free(kv_reading *r);     /* NULL is fine */
/*
 * For rows that need not stay in memory although they are active (evict/tier.c): sections and profiles of all tokens
 * there are, and whether a block's rows are read by sections alone while an answer is written.
 */
int kv__reading_catch_up(kv_session *s, base_err *err);
bool kv__reading_covers(const kv_session *s, uint32_t block);
uint64_t kv__reading_bytes(const kv_session *s); /* of copies of rows */
/* The batch is through: nothing is read ahead while others change the rows. */
void kv__reading_rest(kv_session *s);
void kv__reading_stats(const kv_session *s, kv_reads *ret);

#endif
