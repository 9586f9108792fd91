/*
 * Several files' new texts: shown as one diff, written all or none, undone as one.
 */
#ifndef KVIST_TOOLS_REFACTOR_CHANGES_H
#define KVIST_TOOLS_REFACTOR_CHANGES_H

#include "tools/edit/change.h"

typedef struct tool_changes {
    tool_change **all;
    size_t n, cap;
    char *say;    /* what the model reads when it worked */
    char *notice; /* what the person must see then; NULL: nothing */
    /*
     * What made these, where it looked at more files than it changes (who else uses a name): it is asked once more before
     * the first file is written, and has to come to the same. NULL: only these files matter.
     */
    int (*prepare)(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *ret,
        tool_result *result, base_err *err);
} tool_changes;
void tool__changes_free(void *changes);
/* Takes the new text (emptied). `file` NULL: a new file. */
void tool__changes_add(tool_changes *c, const char *path, const tool_file *file, base_buf *new_text);
/* Checks syntax, links and conflict marks of every file; false: *r says why. */
bool tool__changes_hold(tool_workspace *w, const tool_changes *c, tool_result *r);
/* Headline and one diff. Takes the changes. */
void tool__changes_preview(tool_workspace *w, tool_changes *c, const char *headline, tool_preview *ret);
/*
 * The `run` of a tool that prepares tool_changes: writes all, or, when one cannot be written or the person cancels,
 * puts back what was written. call: for the changes' own `prepare`; NULL where they have none.
 */
int tool__changes_run(tool_workspace *w, const tool_call *call, const tool_limits *limits,
    tool_preview *prepared, tool_result *ret, base_err *err);

#endif
