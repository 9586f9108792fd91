/* Bytes as they arrive, given out line by line: the transport of JSON-RPC on standard streams (ACP, MCP). */
#ifndef KVIST_BASE_LINES_H
#define KVIST_BASE_LINES_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct base_lines {
    size_t most; /* bytes of a line; a longer one is passed by. Set before the first use */
    base_buf held;
    size_t from;      /* what was given out already */
    bool is_too_long; /* the line that is held is passed by up to its end */
} base_lines;
void base_lines_add(base_lines *l, const char *bytes, size_t n);
/* False: no whole line. *ret_too_long: the line was above `most`, and is lost. */
bool base_lines_take(base_lines *l, base_buf *ret, bool *ret_too_long);
void base_lines_free(base_lines *l);

#endif
