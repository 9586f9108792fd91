/*
 * Where rows lie: reference-counted blocks of 256 slots, all lanes, in the layout of model/ops/rows.h.
 *
 * A row never moves and, once published, never changes: sequences share blocks (fork, prefix file) and
 * whoever wants to write a slot of a shared block takes a copy of that block first. Slot numbers belong to a
 * sequence's own block table, where slot == token index. Thread: the engine thread only.
 */
#ifndef KVIST_KV_STORE_H
#define KVIST_KV_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kv/rows/device.h"
#include "kv/rows/filed.h"
#include "model/ops/rows8.h"

/* Sketches of several blocks, in large pages: a token reads all of them. Gone with the last of its blocks. */
typedef struct kv_shelf {
    uint32_t refs;
    size_t n_bytes, used; /* used: given away, for ever */
    uint8_t *data;
} kv_shelf;

typedef struct kv_block {
    uint32_t refs;
    size_t n_bytes;
    uint16_t *rows;  /* NULL: given up for ever, unless they are packed or filed */
    kv_filed *filed; /* the rows lie in the row file; NULL: they do not */
    bool on_disk;    /* rows are a read-only map of a file (tier.c), or filed */
    size_t mapped;   /* bytes of rows in memory that are a private map of a file instead (tier.c) */
    uint8_t *packed; /* the rows in 8 bits (model/ops/rows8.h); NULL: they are as they were computed */
    uint8_t *sketch; /* of its keys (model/ops/sketch.h); NULL: nobody asked since they were written */
    kv_shelf *shelf; /* where the sketch lies */
    uint64_t stamp;  /* of what it holds (model/ops/rows.h) */
    kv_device device;
} kv_block;

static inline bool kv_block_has_rows(const kv_block *b)
{
    return b->rows || b->packed || b->filed;
}

/* Zeroed; NULL when memory is gone. device: NULL for none. */
kv_block *kv_block_new(const model_rows_shape *shape, const kv_device *device);
kv_block *kv_block_ref(kv_block *b);
void kv_block_unref(kv_block *b); /* NULL is fine */
/* The block's rows lie in a map of a file from now on; gives its memory back. */
void kv_block_set_map(kv_block *b, void *map);

/* A sequence's blocks: slot s lies in block s / 256. */
typedef struct kv_table {
    model_rows_shape shape;
    kv_block **blocks;
    /* what a model_rows_view wants: rows[b] == blocks[b]->rows, and one spare place behind the last */
    uint16_t **rows;
    uint8_t **packed; /* the same for blocks[b]->packed */
    uint16_t **filed; /* the same for the rows of blocks[b]->filed */
    uint64_t *stamps; /* the same for blocks[b]->stamp */
    uint32_t n, cap;
    kv_filed_files *files; /* of the filed blocks: one resume opened all of them; NULL: there were none */
    kv_device device;      /* of the blocks that it makes */
    kv_shelf *shelf;       /* of the sketches that it makes; NULL: none yet */
    model_rows8_error rounding; /* of all blocks packed so far */
} kv_table;

/* Without a block; kv_table_fini gives its references back. */
void kv_table_init(kv_table *t, const model_rows_shape *shape);
void kv_table_fini(kv_table *t);

/* Makes slots [from, to) writable: makes missing blocks, copies shared ones; rows below stay. */
int kv_table_make_writable(kv_table *t, uint32_t from, uint32_t to, base_err *err);
/* Drops blocks that hold no slot below n. */
void kv_table_truncate(kv_table *t, uint32_t n);
/* Shares all of other's blocks. */
int kv_table_share(kv_table *t, const kv_table *other, base_err *err);
/* Slots [from, to) get other's rows: by sharing blocks where no row of ours is lost, else by copying. */
int kv_table_adopt(kv_table *t, const kv_table *other, uint32_t from, uint32_t to, base_err *err);

/* One more block behind the others, whose rows lie in the row file. f is the block's from here on, whatever comes back. */
int kv_table_add_filed(kv_table *t, kv_filed *f, base_err *err);
/* Block b into memory of its own, if it is filed: all of it is looked at. BASE_E_FORMAT as kv_table_check. */
int kv_table_load(kv_table *t, uint32_t b, base_err *err);
/*
 * Rows [from, to) of a lane are what was written, where they lie in the row file; a row is looked at once. BASE_E_FORMAT
 * with a sentence when one is not: nothing may be read of it.
 */
int kv_table_check(const kv_table *t, uint32_t lane, uint32_t from, uint32_t to, base_err *err);
/* The same of n rows anywhere, several side by side: quicker than one by one. */
int kv_table_check_some(const kv_table *t, uint32_t lane, const uint32_t *tokens, uint32_t n, base_err *err);

/*
 * Of lane `part` of the sketches, those of blocks of these bits are what was written, as far as they lie in a file; looked at once,
 * several side by side. False: of some block there is none any more, and kv_table_sketch makes another.
 */
bool kv_table_check_sketches(const kv_table *t, uint32_t part, const uint64_t *blocks);
/* Of the row file, where blocks lie in it: kv_filed_files_read_apart. */
void kv_table_read_apart(const kv_table *t, uint64_t room);

/* rows, packed and filed say again what block b is. */
void kv_table_show(kv_table *t, uint32_t b);
/*
 * Block b, nobody else's, into 8 bits; false: it stays as it is (memory is gone, or a number in it is not
 * finite). And the blocks of slots [from, to) as F16 again: what rounding took is gone.
 */
bool kv_table_pack(kv_table *t, uint32_t b);
int kv_table_unpack(kv_table *t, uint32_t from, uint32_t to, base_err *err);

/*
 * The sketch of n lanes of block b, which is full and has its rows as they were computed; made when it is asked for, and
 * shared with whoever shares the block: always of the same lanes. NULL: no memory.
 */
const uint8_t *kv_table_sketch(kv_table *t, uint32_t b, const uint32_t *lanes, uint32_t n);

/* One token's rows, token-major: [lane][key of head_dim | value of head_dim]. Of filed ones nothing is checked. */
size_t kv_row_bytes(const model_rows_shape *shape);
void kv_table_get_row(const kv_table *t, uint32_t slot, uint16_t *row);
void kv_table_put_row(kv_table *t, uint32_t slot, const uint16_t *row); /* the slot is writable */
/* n rows, one behind the other, into the slots from `slot` on, all of one block and writable. */
void kv_table_put_rows(kv_table *t, uint32_t slot, uint32_t n, const uint16_t *rows);

#endif
