/*
 * Configuration, hooks and attributes are programs that git runs later, outside of any sandbox; so is a repository that somebody
 * steps into. Each is looked at before a command and compared after it. Where mount namespaces are allowed most of it is read-only
 * meanwhile; what a command makes anew (a nested repository, a hook where there was none) is found by the comparison in any case.
 *
 * HEAD, refs, logs, the index and objects are the command's to change: `git commit` is a legitimate command.
 */
#include "tools/guard/git_guard.h"

#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "tools/guard/below.h"
#include "tools/guard/git_links.h"
#include "tools/guard/orders.h"

void tool__git_guard_take(tool_workspace *w)
{
    tool_git_guard *old = w->git_guard, *g = base_xcalloc(1, sizeof *g);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    g->taken_ns = tool__ns_of(now);
    tool__git_walk(&w->root, old ? &old->walk : NULL, &g->walk);
    tool__git_guarded_take(&w->root, &g->walk, old ? &old->kept : NULL, &g->kept, &g->places);
    tool__git_steps_keep(&w->root, &g->walk, old ? &old->steps : NULL, &g->steps);
    tool__git_links_keep(&w->root, &g->walk, &g->links);
    tool__orders_keep(&w->root, old ? &old->orders : NULL, &g->orders);
    if (old) {
        g->own_states = old->own_states;
        old->own_states = (tool_git_states){0};
    }
    tool__git_states_add(&w->root, &g->walk, &g->own_states, &g->states);
    tool__git_guard_free(old);
    w->git_guard = g;
}

void tool__git_guard_free(tool_git_guard *g)
{
    if (!g) return;
    tool__git_walk_free(&g->walk);
    tool__kept_free(&g->kept);
    tool__kept_free(&g->steps);
    tool__kept_free(&g->links);
    tool__kept_free(&g->orders);
    tool__git_places_free(&g->places);
    tool__git_states_free(&g->states);
    tool__git_states_free(&g->own_states);
    free(g);
}
