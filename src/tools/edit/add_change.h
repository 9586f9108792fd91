/*
 * Definitions that the tree lacks, added where they belong (add.h), with what goes with them: a prototype in the header that has
 * the neighbour's, the name where the neighbour's is handed out, a test of C run where its neighbour is, the imports.
 */
#ifndef KVIST_TOOLS_EDIT_ADD_CHANGE_H
#define KVIST_TOOLS_EDIT_ADD_CHANGE_H

#include "tools/edit/aim.h"
#include "tools/tree/workspace.h"

/*
 * *ret: one change of every file that is touched, not yet written. Where it cannot be, `result` says why and what to call instead:
 * a refusal that lists names would be no help to a model that wants a new one.
 */
void tool__add_change(
    tool_workspace *w, const tool_call *call, const tool_aim *aim, tool_preview *ret, tool_result *result);

#endif
