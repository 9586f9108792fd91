/*
 * A file mapped for reading that may be cut or written to by somebody else meanwhile. Reading behind the new
 * end of a mapped file is SIGBUS; here the missing pages become zeros, and base_map_check says what happened.
 * Whoever computes with the bytes asks it afterwards, before the result is believed.
 *
 * The signal's handler looks at a small table of mappings and nothing else; a SIGBUS from elsewhere ends the
 * program as always. Any thread.
 */
#ifndef KVIST_BASE_MAP_H
#define KVIST_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct base_map base_map;

/* Maps the first n > 0 bytes of an open file; the descriptor is duplicated. */
int base_map_new(base_map **ret, int fd, size_t n, base_err *err);
void base_map_free(base_map *m); /* NULL is fine */

const uint8_t *base_map_bytes(const base_map *m);

/* What is read from now on lies apart: of a missing page the system reads that page alone, not those around it too. */
void base_map_read_apart(base_map *m);

/* These bytes of a map are all read next: their pages are found at once, not one fault after another. */
void base_map_read_all(const void *bytes, size_t n);

/* Bytes that the file no longer had were read so far: they were zeros. Cheap. */
bool base_map_is_cut(const base_map *m);

/*
 * BASE_E_STATE when the file is no longer what was mapped: its size, its time of change, or bytes that were
 * missed. `path`: for the sentence.
 */
int base_map_check(const base_map *m, const char *path, base_err *err);

#endif
