#include "tools/tree/git_bound.h"

#include "tools/tree/listing.h"

enum { MOST_LOOKED = 2000000, MOST_DIFFER = TOOL_MAX_FILES };

static bool is_cancelled(const tool_git_bound *b)
{
    return b->cancel && atomic_load_explicit(b->cancel, memory_order_relaxed);
}

/* Before each entry, the same on both sides or not. */
static int on_entry(const git_diff *diff, const char *before, const char *after, void *user)
{
    tool_git_bound *b = user;
    b->is_over = b->is_over || ++b->n_looked > MOST_LOOKED;
    return b->is_over || is_cancelled(b) ? -1 : 0;
}

static int on_difference(const git_diff *diff, const git_diff_delta *delta, const char *pathspec, void *user)
{
    tool_git_bound *b = user;
    b->is_over = b->is_over || ++b->n_differ > MOST_DIFFER;
    return b->is_over ? -1 : 0;
}

void tool__git_bound(tool_git_bound *b, git_diff_options *options)
{
    options->progress_cb = on_entry;
    options->notify_cb = on_difference;
    options->payload = b;
}
