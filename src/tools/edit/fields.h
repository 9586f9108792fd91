/*
 * A method of Go may set a field that its type does not have yet ("e.cache.tag = tag"). A small model writes the method that
 * it was asked for and never the struct's line; told by the compiler that the field is undefined, it writes the method again.
 */
#ifndef KVIST_TOOLS_EDIT_FIELDS_H
#define KVIST_TOOLS_EDIT_FIELDS_H

#include "tools/tree/workspace.h"

struct tool_change;

/*
 * The structs get the fields that method `name` of the text sets through its receiver and that nothing of their package has:
 * where the struct is known and what is set says the type (a parameter, a literal). Each with a sentence in `note`. Structs in
 * another file of the folder, of one such file at most: the change that is returned, the caller's; NULL: none.
 */
struct tool_change *tool__give_fields(
    tool_workspace *w, const char *path, base_buf *text, const char *name, base_buf *note);

#endif
