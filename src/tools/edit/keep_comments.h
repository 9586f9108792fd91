/*
 * Comments, docstrings and blank lines of a definition that is written again: a small model leaves them out between lines that it
 * keeps as they are. Pure.
 */
#ifndef KVIST_TOOLS_EDIT_KEEP_COMMENTS_H
#define KVIST_TOOLS_EDIT_KEEP_COMMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Lines [from, to] of a text, 1-based. */
typedef struct tool_lines {
    const char *text;
    size_t n;
    uint32_t from, to;
} tool_lines;

/*
 * The lines of `now` with what stood in `before` between two lines of code that both stay neighbours, above a line that stays, or behind
 * it, where `now` has no comment there. Returns how many lines came back; 0: *ret stays empty. Not where the request
 * (NULL: not known) speaks of comments.
 */
uint32_t tool__keep_comments(
    const char *path, const tool_lines *before, const tool_lines *now, const char *request, base_buf *ret);

/*
 * C: comments of lines ("// x") as blocks, where the file's old text has blocks alone: it may be compiled as C90, which has no other.
 * false: there is nothing to be written otherwise.
 */
bool tool__comment_as_file(const char *path, const base_buf *old_text, base_buf *text);

#endif
