/*
 * A file as gguf.c has parsed it: where each key's value and each tensor stands. gguf.c fills it, gguf_parts.c joins
 * several to one, gguf_values.c answers what is in it; nobody else includes this.
 */
#ifndef KVIST_MODEL_GGUF_VALUES_H
#define KVIST_MODEL_GGUF_VALUES_H

#include "base/map.h"
#include "model/file/gguf.h"

enum { GGUF_N_VALUE_TYPES = GGUF_F64 + 1 };
extern const struct gguf_value_kind {
    const char *name;
    uint8_t bytes; /* 0: not fixed */
} gguf_value_types[GGUF_N_VALUE_TYPES];

typedef struct gguf_entry {
    base_str key;
    gguf_value_type type, element; /* element: of an ARRAY */
    uint64_t n;                    /* elements of an ARRAY, bytes of a STRING */
    const uint8_t *value;          /* the scalar, the string's bytes, the array's first element */
    uint64_t *offsets;             /* arrays of strings: where each length field stands, from `value` */
} gguf_entry;

struct gguf_file {
    const uint8_t *bytes;
    size_t n;
    base_map *map; /* NULL: the bytes are elsewhere */
    bool owned;
    char *path;         /* NULL: bytes in memory */
    gguf_file **others; /* of a model in parts, in their first: the second part and those behind it */
    uint64_t n_others;
    uint32_t version;
    size_t n_head; /* bytes before the first tensor's */
    uint64_t alignment, n_keys, n_tensors;
    gguf_entry *keys;
    gguf_tensor *tensors;
    uint32_t *key_table, *tensor_table; /* open addressing, place + 1; 0 is free */
    size_t key_slots, tensor_slots;
};

/*
 * The slot of an open-addressed table that holds `name`, or the free one where it belongs. items: an array of
 * structs that begin with their name, a base_str; a slot holds a place in it + 1, or 0.
 */
size_t gguf_slot(const uint32_t *table, size_t slots, const void *items, size_t item_size, base_str name);

/* ---- gguf.c, for gguf_parts.c ---- */

/* One file by itself, whatever it says of parts. As gguf_open. */
int gguf_open_one(gguf_file **ret, const char *path, base_err *err);
/* gguf_parts_join without a look at whether they belong together. */
int gguf_join(gguf_file *first, gguf_file **others, uint64_t n_others, base_err *err);

#endif
