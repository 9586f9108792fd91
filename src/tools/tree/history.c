/* Subjects and paths of commits (contract: history.h). */
#include "tools/tree/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tools/tree/git_bound.h"
#include "tools/tree/workspace.h"

enum { MOST_COMMITS = 600, MOST_WALKED = 3000, MOST_FILES = 40, MOST_SUBJECT = 400 };
static const uint64_t most_ns = 1000000000;

/* What the commit changed against its one parent; NULL: that is not here, or it cannot be compared. */
static git_diff *compare(git_repository *repo, const git_commit *c, tool_git_bound *bound)
{
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    git_commit *parent = NULL;
    git_tree *before = NULL, *now = NULL;
    git_diff *diff = NULL;
    options.flags = GIT_DIFF_SKIP_BINARY_CHECK | GIT_DIFF_IGNORE_SUBMODULES;
    tool__git_bound(bound, &options);
    const bool is_good = !git_commit_parent(&parent, c, 0) && !git_commit_tree(&before, parent) &&
                         !git_commit_tree(&now, c) &&
                         !git_diff_tree_to_tree(&diff, repo, before, now, &options);
    git_commit_free(parent);
    git_tree_free(before);
    git_tree_free(now);
    return is_good ? diff : NULL;
}

/* false: the history ends here, or what it would say of the commit is too much. */
static bool add_commit(code_history *h, git_repository *repo, const git_commit *c, tool_git_bound *bound)
{
    const char *subject = git_commit_summary((git_commit *)c), *paths[MOST_FILES];
    git_diff *diff = subject && strlen(subject) <= MOST_SUBJECT ? compare(repo, c, bound) : NULL;
    const size_t n = diff ? git_diff_num_deltas(diff) : 0;
    if (n && n <= MOST_FILES) {
        for (size_t i = 0; i < n; i++) paths[i] = git_diff_get_delta(diff, i)->new_file.path;
        code_history_add(h, subject, paths, (uint32_t)n);
    }
    const bool is_there = diff != NULL;
    git_diff_free(diff);
    return is_there;
}

code_history *tool__history_read(git_repository *repo, const atomic_bool *cancel)
{
    git_revwalk *walk = NULL;
    git_oid id;
    code_history *h = code_history_new();
    tool_git_bound bound = {.cancel = cancel};
    const uint64_t until = base_clock_ns() + most_ns;
    tool_git_bound *outer = tool__git_bound_begin(&bound);
    bool goes_on = !git_revwalk_new(&walk, repo) && !git_revwalk_push_head(walk);
    for (uint32_t walked = 0; goes_on && walked < MOST_WALKED && code_history_n(h) < MOST_COMMITS &&
                              base_clock_ns() < until && !git_revwalk_next(&id, walk);
         walked++) {
        git_commit *c = NULL;
        goes_on = !git_commit_lookup(&c, repo, &id); /* a shallow clone ends here */
        if (goes_on && git_commit_parentcount(c) == 1)
            goes_on = add_commit(h, repo, c, &bound) || !(bound.is_over || bound.is_large);
        git_commit_free(c);
        goes_on &= !(cancel && atomic_load_explicit(cancel, memory_order_relaxed));
    }
    git_revwalk_free(walk);
    tool__git_bound_end(outer);
    if (goes_on || code_history_n(h)) return h;
    code_history_free(h);
    return NULL;
}

const code_history *tool_workspace_history(tool_workspace *w, const atomic_bool *cancel)
{
    git_oid head;
    if (!w->repo || git_reference_name_to_id(&head, w->repo, "HEAD")) return NULL;
    if (w->has_history && git_oid_equal(&head, &w->history_head)) return w->history;
    code_history_free(w->history);
    w->history = tool__history_read(w->repo, cancel);
    w->history_head = head;
    w->has_history = !(cancel && atomic_load_explicit(cancel, memory_order_relaxed));
    return w->history;
}
