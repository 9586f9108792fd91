/*
 * Evicted rows that a token reads without bringing them back: in every layer, each lane for itself, the few
 * that the token's own queries weigh most. They visit: nothing is promoted, no plan is made, and the next
 * token finds its own. Live lists are kept that much smaller (kv__visitors), so that no token reads more
 * rows than the budget.
 *
 * Every token is computed so: a row that was computed over few others stays wrong whatever is promoted later,
 * and what is written may copy from anywhere. What the model writes by sections (reading.h) is not.
 *
 * The choice depends on the token's own queries and on the keys alone, so it is the same for every batch
 * shape and thread count, after a resume and in a fork. Layers with a window read their lists. Engine
 * thread.
 *
 * What the newest repair outshone (repair/choose.h) visits the tokens of calls only.
 */
#ifndef KVIST_KV_VISIT_H
#define KVIST_KV_VISIT_H

#include "kv/core/state.h"

typedef struct kv_visit kv_visit;

/* rows of each lane's budget that are kept for them; 0: nobody visits */
uint32_t kv__visitors(const kv_session *s);
/*
 * The reader of n tokens of that origin from `first` on (ids; rows: the lists that they would read, their own
 * rows last), visiting, or as reading.h says. *ret: NULL when lists are read as they are. Valid until the
 * next call.
 */
int kv__reader_begin(kv_session *s, const model_rows_view *rows, kv_origin origin, const int32_t *ids,
    uint32_t first, uint32_t n, const model_reader **ret, base_err *err);
/* f is a fork of s: it need not find out again what s knows of their rows. */
int kv__visit_copy(kv_session *f, const kv_session *s, base_err *err);
/* The n newest tokens, just published, were computed so: what they are depends on how many may visit. */
void kv__visit_publish(kv_session *s, uint32_t n);
/* rows of tokens at and behind n are gone or others now */
void kv__visit_truncate(kv_session *s, uint32_t n);
void kv__visit_replanned(kv_session *s); /* other rows are evicted now, or may be read */
/* Block b is folded, so tokens read copies of its listed rows wherever it lies; and what the copies take. */
bool kv__visit_copies(const kv_session *s, uint32_t b);
uint64_t kv__visit_bytes(const kv_session *s);
/* Tokens read block b by copies, by its sketch and one row at a time, never by its keys: it needs no memory (disk/digest.c). */
bool kv__visit_may_be_filed(const kv_session *s, uint32_t b);
/*
 * Finds out what the next token would, so that digests have it: behind a plan the means of other pages. What cannot be
 * found (memory, a damaged row) the next token tells of.
 */
void kv__visit_find_means(kv_session *s);
/* What is known of block b, for its digest: its sketch (NULL: none), and a page's mean as kv_rest_get. */
const uint8_t *kv__visit_sketch(kv_session *s, uint32_t b);
uint64_t kv__visit_mean(
    const kv_session *s, uint32_t lane, uint32_t page, const uint16_t **ret_key, const uint16_t **ret_value);
void kv__visit_free(kv_visit *v); /* NULL is fine */

#endif
