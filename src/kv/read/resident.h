/*
 * Sections (reading.h) whose rows lie on disk, as copies in memory that stay from one step to the next
 * (SentKVCompress, section 4.2.2): what a step reads and the one before read too is not read from disk again.
 * A step asks for all that it reads in a layer, waits for what is missing, and may name more that are read
 * meanwhile, since the next step is likely to want them. Reading is the work of threads of its own.
 *
 * A copy is the rows as they are, so where a row lies shows in no bit of any result; which copies there are
 * depends on nothing but what was asked for. Copies lie in blocks of their own behind all places of the
 * table, as kv_gather's do. Engine thread, but for the readers inside.
 */
#ifndef KVIST_KV_RESIDENT_H
#define KVIST_KV_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "kv/rows/store.h"

typedef struct kv_resident kv_resident;

/* One section, whose number stands for these tokens until it is forgotten. */
typedef struct kv_resident_section {
    uint32_t number, from, to;
} kv_resident_section;

typedef struct kv_resident_sums {
    uint64_t found, fetched; /* sections of a lane that were asked for: already there, read from disk */
    uint64_t ahead, wanted;  /* read ahead; of these asked for later */
    uint64_t bytes;          /* read from disk */
    uint64_t wait_ns;
} kv_resident_sums;

/*
 * Copies lie in slots from first_block * MODEL_ROWS_BLOCK on. Sections have at most `longest` tokens, and there
 * are at most `most` of them. NULL: no memory, or no thread.
 */
kv_resident *kv_resident_new(
    const model_rows_shape *shape, uint32_t first_block, uint32_t longest, uint32_t most);
void kv_resident_free(kv_resident *r); /* NULL is fine */
/* Sections from number `first` on are other tokens now, or others' rows. */
void kv_resident_forget(kv_resident *r, uint32_t first);

/* A step begins to ask for a lane's sections: what is still being read ahead for it ends first. */
void kv_resident_begin(kv_resident *r, uint32_t lane, uint32_t room);
/*
 * The slot of the section's first row; its rows are there after kv_resident_wait. `room` copies a lane are kept
 * where as many are not wanted at once. False: no memory.
 */
bool kv_resident_ask(
    kv_resident *r, const kv_table *t, const kv_resident_section *section, uint32_t *ret_slot);
void kv_resident_wait(kv_resident *r);
/* Reads the section while others compute, where there is a place that the step does not read. */
void kv_resident_ahead(kv_resident *r, const kv_table *t, const kv_resident_section *section);

void kv_resident_rest(kv_resident *r); /* nothing is read any more; NULL is fine */

/* `rows` with the copies; its arrays are ours until the next call of any kind. False: no memory. */
bool kv_resident_show(kv_resident *r, model_rows_view *rows);
kv_resident_sums kv_resident_get_sums(const kv_resident *r);
uint64_t kv_resident_bytes(const kv_resident *r); /* of memory, for copies */

#endif
