/* Files that programs make or that are taken from elsewhere: a change there is lost when they are made or fetched again. */
#ifndef KVIST_TOOLS_FOREIGN_H
#define KVIST_TOOLS_FOREIGN_H

#include <stdbool.h>

#include "base/buf.h"

/* By the path, or by what the text's beginning says of itself. */
bool tool__is_foreign(const char *path, const base_buf *text);

#endif
