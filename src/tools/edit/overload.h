/*
 * Which of several definitions of a name a new text is for: its own parameters say it. A small model names a method and a
 * function of one name alike, and writes the right one.
 */
#ifndef KVIST_TOOLS_EDIT_OVERLOAD_H
#define KVIST_TOOLS_EDIT_OVERLOAD_H

#include "base/buf.h"
#include "code/index.h"

/*
 * The definition of `name` in the file that has the parameters of the block, as "name:120", heap. Where none has just those:
 * the one whose parameters begin like them while no other's do so as far; not in languages that tell definitions apart by
 * their parameters, since there the block may be a new one. NULL: the name has one definition, a line of its own, or none that
 * fits alone.
 */
char *tool__name_overload(
    const code_file *f, const char *path, const base_buf *text, const char *name, base_str block);

#endif
