/*
 * One group of a session's state (groups.h), and the bytes that it is written to and read from. For the files of
 * core that hold a group: groups.c has the list.
 */
#ifndef KVIST_KV_GROUP_H
#define KVIST_KV_GROUP_H

#include "kv/core/groups.h"

/* What stands in front of all else: numbers of the session, and how much there is of what follows. */
enum {
    KV_HAS_TOKENS,
    KV_HAS_LANES,
    KV_HAS_VOCAB,
    KV_HAS_HEADS,
    KV_HAS_PARTS = 8,
    KV_HAS_REQUEST,
    KV_HAS_MEMORY,
    KV_HAS_LOGITS,
    KV_HAS_JOURNAL,
    KV_HAS_HEAVY,
    KV_HAS_ASKED = 15,
    KV_HAS_WAITING,
    KV_N_NUMBERS = 23,
};

/* The bytes of a manifest that are left, whatever they are. */
typedef struct kv__reader {
    const uint8_t *at;
    size_t left;
    bool bad; /* they are none of ours; nothing is read any more */
    uint32_t has[KV_N_NUMBERS];
    uint64_t n_rows; /* places in the row file */
} kv__reader;

/* NULL: nothing to do. A later group may look at an earlier one. */
typedef struct kv__group {
    int (*init)(kv_session *s, base_err *err);
    int (*grow)(
        kv_session *s, uint32_t cap, base_err *err); /* room for so many tokens; s->cap is the old one */
    void (*free)(kv_session *s);
    int (*copy)(kv_session *to, const kv_session *s, base_err *err);
    void (*truncate)(kv_session *s, uint32_t n);
    void (*put)(const kv_session *s, base_buf *out);
    int (*get)(kv_session *s, kv__reader *r, base_err *err); /* bytes that are none of ours: r->bad */
} kv__group;

/* groups_sequence.c */
extern const kv__group kv__group_arrays, kv__group_rows, kv__group_segments, kv__group_states, kv__group_fold,
    kv__group_outshone;
/* groups_asked.c */
extern const kv__group kv__group_signals, kv__group_memory, kv__group_optional, kv__group_journal;

/* How much there is of what stands in front by number. */
uint32_t kv__count_memory(const kv_session *s);
bool kv__has_logits(const kv_session *s);

void kv__put32(base_buf *out, uint32_t x);
/* n items of a size. */
void kv__put(base_buf *out, const void *items, size_t n, size_t size);
/* n items of a size, copied to `to`; false and bad when the bytes do not hold them. */
bool kv__get(kv__reader *r, void *to, size_t n, size_t size);
uint32_t kv__get32(kv__reader *r);
uint64_t kv__get64(kv__reader *r);
/*
 * The same into fresh memory, which the caller frees, only after the bytes are known to be there; NULL and bad when
 * they are not, or there is no memory.
 */
void *kv__get_new(kv__reader *r, size_t n, size_t size);

#endif
