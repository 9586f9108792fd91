/*
 * Orders: what kvist obeys in its next session, and what other programs run or obey because somebody steps into the tree, opens,
 * commits or pushes it, unasked. The model's own edits of them are asked for in every mode (obeyed.h); a command may change them as any
 * file of the tree, and the person who would obey them is told.
 *
 * Engine thread, but for what reads no file system: that is anybody's.
 */
#ifndef KVIST_TOOLS_GUARD_ORDERS_H
#define KVIST_TOOLS_GUARD_ORDERS_H

#include <string.h>

#include "tools/guard/kept.h"

typedef struct tool_order {
    const char *path; /* a file, or a folder with all in it ("name/"); in any folder of the tree */
    const char *who;  /* obeys it unasked: "direnv" */
} tool_order;

extern const tool_order tool__orders[];
extern const size_t tool__n_orders;

/* Without the slash behind a folder's name. */
static inline size_t tool__order_length(const char *path)
{
    const size_t n = strlen(path);
    return n - (n && path[n - 1] == '/');
}

/* All of them at the top of the tree, there or not; sorted. earlier (may be NULL): as they were before the last command. */
void tool__orders_keep(const tool_root *root, const tool_kept_list *earlier, tool_kept_list *ret);
/* Those that a program reads which git's hooks start (pre-commit, husky, lefthook); unsorted. */
void tool__orders_keep_of_hooks(const tool_root *root, tool_kept_list *ret);
/* Does kvist obey this one? It has its own and those of another agent that it reads; the rest is obeyed by others. */
bool tool__order_is_for_kvist(const char *path);

#endif
