/*
 * Orders: what kvist obeys in its next session, and what other programs run or obey because somebody steps into the tree or opens it,
 * unasked. A command may change them as any file of the tree, and the person who would obey them is told.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_ORDERS_H
#define KVIST_TOOLS_GUARD_ORDERS_H

#include "tools/guard/kept.h"

/* All of them below the root, there or not; sorted. earlier (may be NULL): as they were before the last command. */
void tool__orders_keep(const tool_root *root, const tool_kept_list *earlier, tool_kept_list *ret);
/* Does kvist obey this one? It has its own and those of another agent that it reads; the rest is obeyed by others. */
bool tool__order_is_for_kvist(const char *path);

#endif
