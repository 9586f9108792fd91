/*
 * The one list of a session's state: groups of fields, each with what has to happen to it when a session is
 * made, freed, forked, truncated, saved and resumed. A new field joins a group or is one, and nothing else
 * has to know. What a session only has while it lives (its policy, files, readers) is flow/session.c's.
 */
#ifndef KVIST_KV_GROUPS_H
#define KVIST_KV_GROUPS_H

#include "kv/core/state.h"

/* For a session with compute, n_lanes, n_ctx and cap. On failure kv__groups_free is still due. */
int kv__groups_init(kv_session *s, base_err *err);
void kv__groups_free(kv_session *s);
/* Room for n tokens at least: arrays over the sequence grow, and nothing else changes. */
int kv__reserve(kv_session *s, uint32_t n, base_err *err);
/* Into a session that was just made: rows are shared, none of them is in a row file of its own. */
int kv__groups_copy(kv_session *to, const kv_session *from, base_err *err);
/* Forgets tokens at and behind n, which is below s->n. Never fails. */
void kv__groups_truncate(kv_session *s, uint32_t n);
/*
 * All but the rows, little-endian fields one after the other; and into a session that was just made, whatever
 * the bytes are. n_rows: of the row file that they name places in. BASE_E_FORMAT with a sentence when they
 * are not of such a session.
 */
void kv__groups_put(const kv_session *s, base_buf *out);
int kv__groups_get(kv_session *s, const void *bytes, size_t n, uint64_t n_rows, base_err *err);
void *kv__copy_of(const void *items, size_t n, size_t size); /* NULL of NULL */

#endif
