/*
 * The arrays and objects that are open where a value of a schema is being written (schema_grammar.h). A frame is made once and known
 * by its number, so ways through the grammar that have frames in common share them.
 */
#ifndef KVIST_MODEL_SCHEMA_FRAMES_H
#define KVIST_MODEL_SCHEMA_FRAMES_H

#include "model/text/schema_leaves.h"

enum { SCHEMA_ROOT = 0 }; /* the frame around the value */

typedef struct schema_frame {
    uint32_t parent, node;
    uint32_t index;  /* members: the next that may come; items: how many there are, as far as it matters */
    uint32_t before; /* with a hash: the frame that had all names but this one */
    uint64_t hash;   /* of a free name; 0: none yet */
    uint32_t depth, rest; /* rest: bytes from behind the newest part to the end of all */
    bool is_array, begun;
} schema_frame;

typedef struct schema_frames {
    const schema_leaves *leaves;
    schema_frame *all;
    uint32_t n;
    size_t cap;
    uint32_t *slots; /* hash table of frames: number + 1 */
    uint32_t n_slots;
} schema_frames;

/* Forgets all but the root, which is in no table: a frame around it has its numbers. */
void schema_frames_forget(schema_frames *g);
void schema_frames_free(schema_frames *g);
/* The number of this frame; depth and rest are worked out here. */
uint32_t schema_frames_number(schema_frames *g, schema_frame f);
/* Bytes behind the newest part of an object up to its end and that of all around it. */
uint32_t schema_frames_rest_of_object(
    const schema_frames *g, uint32_t node, uint32_t index, bool begun, uint32_t parent);
/*
 * Where there are very many, those go that none of the n numbers needs; the others have new numbers, which `numbers` gets. False:
 * there are not so many.
 */
bool schema_frames_tidy(schema_frames *g, uint32_t **numbers, uint32_t n);

#endif
