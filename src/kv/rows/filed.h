/*
 * A block whose rows are read where they lie in the row file, and its digest: what is dear to find out of rows that are
 * all in the file, so that a session of any length is resumed without reading them (docs/kv.md, Files).
 *
 *     record of a digest file, one a block at block * kv_digest_bytes:
 *         kv_digest_head | sums [256][lane] | sketch | means [lane][4 pages] | hashes of the sketch's lanes
 *
 * All of it follows from the rows (and means from which of them are evicted), so nothing is lost with it. A record says
 * whose it is by the hashes of the block's rows, and each part has a hash of its own: what does not fit is not there.
 * Thread: the engine thread only.
 */
#ifndef KVIST_KV_FILED_H
#define KVIST_KV_FILED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/ops/rows.h"

enum {
    KV_DIGEST_PAGES = MODEL_ROWS_BLOCK / 64, /* of a block, as in read/rest.h */
    KV_FILED_SOME = 64,                      /* rows that are looked at together */
};

typedef struct kv_digest_shape {
    model_rows_shape rows;
    uint32_t n_sketched; /* lanes that a sketch has */
} kv_digest_shape;

typedef struct kv_digest_head {
    uint64_t identity;    /* of the block's rows: kv_digest_identity */
    uint64_t sums_hash;   /* of the sums */
    uint64_t sketch_hash; /* of its lanes' hashes */
} kv_digest_head;

/* The mean of a page's evicted rows in a lane; its key and value, [2][head_dim] in F16, lie behind it. */
typedef struct kv_digest_mean {
    uint64_t rows; /* bits: which they are; 0: there is none */
    uint64_t hash; /* of rows, key and value */
} kv_digest_mean;

/*
 * A session's row file and digest file, mapped once for all of its blocks. Bytes that somebody cuts off are zeros from then on
 * (base/map.h), so the rows there are damaged ones.
 */
typedef struct kv_filed_files kv_filed_files;
/* Descriptors, which stay the caller's. NULL: they cannot be mapped, or one is empty; no error. */
kv_filed_files *kv_filed_files_open(const kv_digest_shape *shape, int rows, int digest);
kv_filed_files *kv_filed_files_ref(kv_filed_files *f);
/* Bytes of them were read that somebody had cut off: what was computed since may be wrong. */
bool kv_filed_files_are_cut(const kv_filed_files *f);
/*
 * What is read are rows here and there, 512 bytes of a lane each. A row file that is larger than `room`, the memory that is free, is read
 * by single pages from now on: what lies around them would push out what others need. Smaller ones stay, which warms them.
 */
void kv_filed_files_read_apart(kv_filed_files *f, uint64_t room);
/* This token's row in a lane was looked at and is what was written. */
bool kv_filed_files_is_checked(const kv_filed_files *f, uint32_t lane, uint32_t token);
void kv_filed_files_close(kv_filed_files *f); /* the maps stay until their last user goes; NULL is fine */

typedef struct kv_filed {
    kv_filed_files *files;
    uint32_t b;     /* which block */
    uint16_t *rows; /* [256][lane][K | V], read only */
    const uint32_t *sums;
    const uint8_t *sketch; /* NULL: it is not what was written */
    const uint8_t *means;
    /* [n_sketched] of the sketch; NULL: nobody looked yet, or they are not there */
    const uint64_t *lane_hashes;
    uint64_t identity, sketch_hash;
    bool is_sketch_sure; /* in all lanes */
    bool is_damaged;     /* a row was not what was written */
    kv_digest_shape shape;
} kv_filed;

size_t kv_digest_bytes(const kv_digest_shape *shape); /* of a record: a multiple of 4,096 */
size_t kv_digest_means_at(const kv_digest_shape *shape);
/* The place of a lane's mean among a record's. */
size_t kv_digest_mean_at(const kv_digest_shape *shape, uint32_t page, uint32_t lane);
/* Of the hashes of a sketch's lanes behind the means, [n_sketched]. */
size_t kv_digest_hashes_at(const kv_digest_shape *shape);
/* row_hashes: of the block's 256 rows, as a manifest has them. */
uint64_t kv_digest_identity(
    const kv_digest_shape *shape, uint32_t kernel_version, const uint64_t *row_hashes);

/* A record's bytes at `to`: sums and sketch; no mean is there yet. rows: [256] token-major, as in a row file. */
void kv_digest_write(const kv_digest_shape *shape, uint64_t identity, const uint16_t *rows,
    const uint8_t *sketch, uint8_t *to);
/* One mean into its place. */
void kv_digest_put_mean(const kv_digest_shape *shape, uint64_t identity, uint64_t rows, const uint16_t *key,
    const uint16_t *value, uint8_t *to);

/*
 * Block b: its 256 rows lie in the row file from byte `at` on. NULL: the digest file has no record of these rows, or it is not
 * whole; no error.
 */
kv_filed *kv_filed_open(
    const kv_digest_shape *shape, kv_filed_files *files, uint64_t at, uint32_t b, uint64_t identity);
void kv_filed_close(kv_filed *f); /* NULL is fine */

/*
 * Of n rows (at most KV_FILED_SOME) of a lane, row rows[i] (0..255) of block blocks[i], how many in front are what was written;
 * n: all. A block with one that is not is damaged from then on.
 */
uint32_t kv_filed_check(kv_filed *const *blocks, const uint32_t *rows, uint32_t n, uint32_t lane);
/*
 * NULL: it is not what was written. What is read of it is believed only once kv_filed_is_sketch_sure says so: a token reads a quarter of
 * a long session's sketches, and looking at all of them would be most of its time.
 */
const uint8_t *kv_filed_sketch(kv_filed *f);
/* A lane's part of n sketches (at most KV_FILED_SOME) is looked at, once; where it is not what was written there is no sketch from then on. */
void kv_filed_check_sketches(kv_filed *const *blocks, uint32_t n, uint32_t part);
bool kv_filed_is_sketch_sure(const kv_filed *f, uint32_t part);
/* Of a record without hashes of lanes (before November 29, 2026) whose sketch was looked at: puts them at `to`. */
bool kv_filed_hash_lanes(const kv_filed *f, uint64_t *to);
/* Of the block's pages in a lane: the key and, behind it, the value of the mean of rows[page]; NULL: it is not there. */
void kv_filed_means(const kv_filed *f, uint32_t lane, const uint64_t *rows, const uint16_t **ret);

#endif
