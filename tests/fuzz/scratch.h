/* A folder of a target's own, in memory where the machine has such a file system; removed when the process ends. */
#ifndef KVIST_FUZZ_SCRATCH_H
#define KVIST_FUZZ_SCRATCH_H

#include <stddef.h>

const char *scratch_folder(void); /* absolute, no trailing slash; made on the first call */
/* Writes a file below it, with the folders in front of it. */
void scratch_put(const char *path, const void *bytes, size_t n);
void scratch_clear(const char *path); /* removes what stands there, a folder with all that it holds */

/* The next of an input's parts, which NUL bytes lie between: a string that the caller frees. "" behind the last. */
char *scratch_part(const unsigned char **bytes, size_t *n);

#endif
