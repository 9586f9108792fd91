/*
 * The new text of a file from a block that the model wrote: a definition, OLD/NEW blocks, lines (replace.c,
 * blocks.c). Pure: nothing is read or written.
 */
#ifndef KVIST_TOOLS_EDIT_REPLACE_H
#define KVIST_TOOLS_EDIT_REPLACE_H

#include "base/buf.h"
#include "code/index.h"
#include "tools/edit/definition.h"

/* A file in which a definition was replaced. */
typedef struct tool_replaced {
    base_buf text;           /* the whole file */
    uint32_t line, line_end; /* where the definition stands in it, 1-based */
    base_buf note;           /* what of the block was left out, in words */
} tool_replaced;
void tool__replaced_free(tool_replaced *r);

/*
 * Replaces one whole definition; false with *why (a sentence and the next call), and then *ret holds nothing of use. *ret is empty before and
 * the caller's to free either way.
 */
bool tool__replace_definition(code_grammars *g, const char *path, const base_buf *text, const char *name,
    base_str block, tool_replaced *ret, base_buf *why);
/* Applies OLD/NEW blocks; false with *why. *note: which match was loose. */
bool tool__replace_blocks(const char *path, const base_buf *text, base_str payload, base_buf *ret_text,
    base_buf *note, base_buf *why);
/* Replaces lines from..to (1-based, inclusive) by the block. */
bool tool__replace_lines(const char *path, const base_buf *text, size_t from, size_t to, base_str payload,
    base_buf *ret_text, base_buf *why);
/* False with *why when the new text has a syntax error that the old text had not. */
bool tool__syntax_holds(
    code_grammars *g, const char *path, const base_buf *old_text, const base_buf *new_text, base_buf *why);

#endif
