/*
 * What a program that is started for this tree sees and may do, as a plan for the sandbox: the tree, its repository,
 * what the person allowed to be read, and of .git only what git itself changes.
 */
#ifndef KVIST_TOOLS_RUN_BOX_H
#define KVIST_TOOLS_RUN_BOX_H

#include "tools/tree/workspace.h"

typedef struct tool_box_wishes {
    bool writes;                 /* to the tree; else only to a tmp of its own */
    bool shows_home;             /* the person's own home, as its own commands see it */
    bool has_network;            /* the person opened it for this program */
    tool_den *tmp;               /* its own; NULL: w->tmp */
    const char *const *readable; /* beside what commands may read, NULL-terminated; may be NULL */
} tool_box_wishes;

/* Behind tool__git_guard_take, which has seen what must not change. tool_sandbox_plan_free(ret). */
int tool__box_prepare(
    tool_workspace *w, const tool_box_wishes *wishes, tool_sandbox_plan *ret, base_err *err);

#endif
