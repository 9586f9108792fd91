/* Lines of a definition become others, the rest of it stays as it is. Pure: nothing is read or written. */
#ifndef KVIST_TOOLS_EDIT_WITHIN_H
#define KVIST_TOOLS_EDIT_WITHIN_H

#include "base/buf.h"
#include "code/code.h"

/*
 * The definition d of the file's text whole, with its lines from..to (of the file, 1-based, both included) as the block says. A block
 * that goes on with the lines behind, or begins with those in front, has them once; one at another depth moves to that of the old
 * lines; one that is the whole definition stands for it. may_lose false: old lines in front of the first and behind the last that
 * the block has again stay, since a small model writes the statement that it changes. false: these lines are not the definition's.
 */
bool tool__replace_within(const base_buf *text, const code_definition *d, size_t from, size_t to,
    base_str block, bool may_lose, base_buf *ret);

#endif
