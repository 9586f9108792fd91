/*
 * What a rewrite {path, name} with a block means in this tree (aim.c): a definition that stands there or in
 * another file is replaced, one that the tree lacks is added, a file that is not there is made.
 */
#ifndef KVIST_TOOLS_EDIT_AIM_H
#define KVIST_TOOLS_EDIT_AIM_H

#include "tools/tree/workspace.h"

typedef enum tool_aim_kind { TOOL_AIM_REWRITE, TOOL_AIM_ADD, TOOL_AIM_CREATE } tool_aim_kind;

typedef struct tool_aim {
    tool_aim_kind kind;
    char *path;   /* the file that it is in, or is to be in */
    char **names; /* what is rewritten (one), or added (in this order) */
    size_t n;
    base_buf block; /* the part of the block that is meant; empty: all of it */
    base_buf note;  /* where that is not what the call said */
} tool_aim;
void tool__aim_free(tool_aim *a);

/*
 * path: as the call gives it, cleaned; name: as it gives it (NULL: what the block defines). Never fails: where
 * nothing better is known it is a rewrite of what the call says, which then says what is wrong.
 */
void tool__aim(tool_workspace *w, const tool_call *call, const char *path, const char *name, tool_aim *ret);

#endif
