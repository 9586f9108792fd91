/*
 * Names that are given to what is new: by a rename, a parameter, an addition.
 */
#ifndef KVIST_TOOLS_EDIT_NAMING_H
#define KVIST_TOOLS_EDIT_NAMING_H

#include <stdbool.h>

/* Why `name` cannot be a name in this language (code_language's; NULL: none is known): static text; "" it can. is_type: of a type. */
const char *tool__why_no_name(const char *language, const char *name, bool is_type);

#endif
