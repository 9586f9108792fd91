/*
 * pytest hands a test what its parameters name. A small model uses a fixture in the body as if it were a variable, as the
 * test beside does that has the parameter.
 */
#ifndef KVIST_TOOLS_EDIT_FIXTURES_H
#define KVIST_TOOLS_EDIT_FIXTURES_H

#include "tools/tree/workspace.h"

/*
 * The test `name` of a file of Python gets each fixture as parameter that its body uses so: those of the file, of conftest.py in
 * its folder and those above, and pytest's own. A parameter that is none of these, and whose name the file has nowhere else, is
 * taken out: pytest would run nothing. Each with a sentence in `note`. Other definitions and tests of unittest stay.
 */
void tool__give_fixtures(
    tool_workspace *w, const char *path, base_buf *text, const char *name, base_buf *note);

#endif
