/* The parts of a path's text, "src/kv/rows.c". Nothing here looks at a disk. */
#ifndef KVIST_BASE_PATH_H
#define KVIST_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* "rows.c": what stands behind the last slash, or all of it. A part of the path given. */
const char *base_path_name(const char *path);

/* How many bytes its folder has, "src/kv", without the slash behind it; 0: it has none. */
size_t base_path_folder_length(const char *path);
/* That folder, "." where it has none. The caller frees. */
char *base_path_folder(const char *path);
bool base_path_same_folder(const char *a, const char *b);

/* ".c": the name from its last dot on; "" where it has none. A part of the path given. */
const char *base_path_ending(const char *path);
/* Both have the same ending; false where they have none. */
bool base_path_same_ending(const char *a, const char *b);

#endif
