/*
 * The parameters of a definition of the tree, as a caller sees them.
 */
#ifndef KVIST_TOOLS_REFACTOR_PARAMETERS_H
#define KVIST_TOOLS_REFACTOR_PARAMETERS_H

#include "tools/tool.h"

enum { REFACTOR_MAX_ITEMS = 64, REFACTOR_NAME_BYTES = 128 };

/*
 * Their names, without self and its like, [REFACTOR_MAX_ITEMS], of the definition `name` in bytes [from, to) of a file.
 * Returns how many; SIZE_MAX: it has no such list, or the file is not read.
 */
size_t refactor_parameters(tool_workspace *w, const char *path, const char *name, uint32_t from, uint32_t to,
    char names[][REFACTOR_NAME_BYTES]);

#endif
