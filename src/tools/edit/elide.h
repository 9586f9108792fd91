/*
 * Weak and strong models alike shorten what they write again: "// rest of the code". Taken as it is, that would
 * delete the rest. Pure.
 */
#ifndef KVIST_TOOLS_EDIT_ELIDE_H
#define KVIST_TOOLS_EDIT_ELIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * The block with each comment that stands for text left out replaced by that text of the old definition; false:
 * it has none, or where the old text goes on is not clear.
 */
bool tool__fill_elision(const char *old_text, size_t n_old, const char *block, size_t n_block, base_buf *ret);

#endif
