/* The comparison after a command, one kind of thing after the other (contract: git_check.h). */
#include "tools/guard/git_check.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/file/git_rules.h"
#include "tools/guard/below.h"
#include "tools/guard/git_conflicts.h"
#include "tools/guard/git_index.h"
#include "tools/guard/git_links.h"
#include "tools/guard/git_mend.h"
#include "tools/guard/git_obeys.h"
#include "tools/guard/git_repos.h"
#include "tools/guard/git_worktrees.h"
#include "tools/guard/orders.h"
#include "tools/tree/git_obstacles.h"

/* ---- files ---- */

static void check_kept(tool_git_check *c)
{
    for (size_t i = 0; i < c->g->kept.n; i++) {
        const tool_kept *item = &c->g->kept.items[i];
        char *path = tool__git_repos_path_now(c, item->path);
        tool_kept_change change = path ? tool__kept_compare(&c->w->root, item, path) : TOOL_KEPT_SAME;
        /* A pointer that is gone leads nowhere; the tree's own is put back. */
        if (change == TOOL_KEPT_GONE && strcmp(path, ".git") && base_ends_with(path, "/.git"))
            change = TOOL_KEPT_SAME;
        if (change != TOOL_KEPT_SAME) tool__git_mend(c, item, path, change);
        free(path);
    }
}

/* What is there now and was not: `from` is the place's path before, `to` the one it has now. */
static size_t check_new(tool_git_check *c, tool_kept_list *now, const char *from, const char *to)
{
    const char *moved = NULL;
    size_t n = 0;
    tool__kept_sort(now);
    for (size_t i = 0; i < now->n; i++) {
        const tool_kept *item = &now->items[i];
        if ((!item->st.st_mode && !item->failed) || (moved && tool__lies_in(item->path, moved))) continue;
        base_buf before = {0};
        base_buf_printf(&before, "%s%s", from, item->path + strlen(to));
        bool is_new = !tool__kept_find(&c->g->kept, before.data);
        base_buf_free(&before);
        if (!is_new) continue;
        moved = item->path;
        tool__git_mend(c, item, item->path, TOOL_KEPT_NEW);
        n++;
    }
    tool__kept_free(now);
    return n;
}

/* In the folders that were there; what stands where nothing stood is in `kept` already. */
static void check_for_new(tool_git_check *c)
{
    enum { MOST_ROUNDS = 64 };
    for (size_t i = 0; i < c->g->kept.n; i++) {
        const tool_kept *item = &c->g->kept.items[i];
        if (!S_ISDIR(item->st.st_mode)) continue;
        char *path = tool__git_repos_path_now(c, item->path);
        bool more = path && !tool__kept_has_same_names(&c->w->root, item, path);
        for (int rounds = 0; more && rounds < MOST_ROUNDS; rounds++) {
            tool_kept_list now = {0};
            tool__kept_add(&c->w->root, path, tool__git_guarded_skips, &c->g->kept, &now);
            more = now.is_cut; /* what could not be listed shows when what was listed has gone */
            more = check_new(c, &now, item->path, path) && more;
        }
        c->is_cut |= more;
        free(path);
    }
}

/* ---- steps of a rebase ---- */

static void check_steps(tool_git_check *c)
{
    tool_kept_list now = {0};
    tool__git_steps_keep(&c->w->root, &c->now, &c->g->steps, &now);
    for (size_t i = 0; i < now.n; i++) {
        const tool_kept *item = &now.items[i], *before = tool__kept_find(&c->g->steps, item->path);
        if (!item->st.st_mode) continue;
        if (before && tool__kept_compare(&c->w->root, before, NULL) == TOOL_KEPT_SAME) continue;
        if (tool__git_steps_refused(item, before))
            tool__git_set_aside(c, item->path, before && before->st.st_mode ? "changed" : "made",
                ", whose steps run a program or write a file when git goes on: it was moved aside. Read it, "
                "and put it back or end this with --abort.");
    }
    tool__kept_free(&now);
}

/* ---- indexes ---- */

/* By its configuration, which a worktree has from its repository. */
static bool is_sha256(const tool_git_check *c, const char *repo)
{
    const char *inner = strstr(repo, "/worktrees/");
    char *owner = base_xstrndup(repo, inner ? (size_t)(inner - repo) : strlen(repo)),
         *path = base_fs_join(owner, "config");
    const tool_kept *config = tool__kept_find(&c->g->kept, path);
    bool found = config && config->is_held && config->bytes.data && strcasestr(config->bytes.data, "sha256");
    free(owner);
    free(path);
    return found;
}

static void check_index(tool_git_check *c, const tool_repo *r, const char *name, bool is_known_repo)
{
    struct stat st;
    char *path = base_fs_join(r->path, name);
    bool is_there = tool__look(&c->w->root, path, &st);
    bool is_as_before =
        is_there && is_known_repo && tool__ns_of(st.st_ctim) < c->g->taken_ns - tool__coarse_ns;
    const char *why =
        is_there && !is_as_before ? tool__git_index_refused(&c->w->root, path, is_sha256(c, r->path)) : NULL;
    base_buf behind = {0};
    if (why) {
        base_buf_printf(&behind,
            ", git's list of what is in the tree, and %s: it was moved aside. `git reset` makes it anew.",
            why);
        tool__git_set_aside(c, path, "wrote", behind.data);
    }
    base_buf_free(&behind);
    free(path);
}

/*
 * Those that changed, by a clock that nobody can set, and those of repositories that were not looked at before. A split index keeps
 * most names in sharedindex.HASH.
 */
static void check_indexes(tool_git_check *c)
{
    for (size_t i = 0; i < c->now.n_repos; i++) {
        const tool_repo *r = &c->now.repos[i];
        if (r->kind == TOOL_REPO_POINTER) continue;
        bool is_known_repo = tool__git_repos_same(&c->g->walk, r) != NULL;
        check_index(c, r, "index", is_known_repo);
        int fd = tool__path_open_folder(&c->w->root, r->path);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir && fd >= 0) close(fd);
        for (const struct dirent *e; dir && (e = readdir(dir));)
            if (!strncmp(e->d_name, "sharedindex.", 12)) check_index(c, r, e->d_name, is_known_repo);
        if (dir) closedir(dir);
    }
}

/* ---- what git would wait for ---- */

/* By the clock of ctime, which nobody can set. */
static bool is_since(const tool_git_check *c, int64_t ctime_ns)
{
    return ctime_ns >= c->g->taken_ns - tool__coarse_ns;
}

static bool changed_since(const tool_git_check *c, const char *path)
{
    struct stat st;
    return tool__look(&c->w->root, path, &st) && is_since(c, tool__ns_of(st.st_ctim));
}

/* Entries of a folder, or rules that were written in their place: what git is asked about costs other steps than before. */
static bool changed_what_rules_cost(const tool_git_check *c)
{
    bool is_changed = changed_since(c, ".git/info/exclude") || changed_since(c, ".git/info/attributes");
    for (size_t i = 0; i < c->now.n_folders && !is_changed; i++) {
        const tool_walked *folder = &c->now.folders[i];
        is_changed = is_since(c, folder->ctime_ns);
        for (const char *const *name = tool__git_rules_names; folder->has_rules && *name && !is_changed;
             name++) {
            char *path = base_fs_join(folder->path, *name);
            is_changed = changed_since(c, path);
            free(path);
        }
    }
    return is_changed;
}

/* There was none when the repository was opened (git.c), so each is the command's. kvist itself would wait for it first. */
static char *find_obstacle(const tool_git_check *c, bool looks_at_tree)
{
    char *found = tool__git_find_pipe(git_repository_path(c->w->repo));
    return found || !looks_at_tree
               ? found
               : tool__git_find_in_tree(c->w->root.path, git_repository_commondir(c->w->repo));
}

static void check_obstacles(tool_git_check *c)
{
    enum { MOST_ROUNDS = 64 };
    if (!c->w->repo || c->w->root.is_bare) return;
    const bool looks_at_tree = changed_what_rules_cost(c);
    for (int rounds = 0;; rounds++) {
        char *found = find_obstacle(c, looks_at_tree);
        if (!found) return;
        char *path = tool__git_path_below(&c->w->root, "", found);
        /* Rules that stood there before may cost too much by what the command made below them. */
        const bool done = path && rounds < MOST_ROUNDS && changed_since(c, path) &&
                          tool__git_set_aside(c, path, "made",
                              ", a pipe, a device, a file or a pattern without an end where git has a text, "
                              "and git would wait for it: it was moved aside.");
        if (!done) {
            tool__git_obstacle_say(c->out, found);
            base_buf_puts(c->out, ", and it is still there: kvist goes on without git.\n");
            tool__git_close(c->w);
        }
        free(path);
        free(found);
        if (!done) return;
    }
}

/* ---- what the next session obeys ---- */

static void check_orders(tool_git_check *c)
{
    tool_kept_list now = {0};
    tool__orders_keep(&c->w->root, &c->g->orders, &now);
    for (size_t i = 0; i < now.n; i++) {
        const tool_kept *item = &now.items[i], *before = tool__kept_find(&c->g->orders, item->path);
        bool was_there = before && before->st.st_mode;
        if (!item->st.st_mode || S_ISDIR(item->st.st_mode)) continue;
        if (was_there && tool__kept_compare(&c->w->root, before, NULL) == TOOL_KEPT_SAME) continue;
        tool__git_tell(c, item->path, was_there ? "changed" : "made", NULL,
            tool__order_is_for_kvist(item->path)
                ? ", which the next session obeys: read it before you start one."
                : ", which an editor, an agent, a shell or a builder obeys unasked: read it before "
                  "you open or push this tree.");
    }
    /* One that is gone tightened something, perhaps. */
    for (size_t i = 0; i < c->g->orders.n; i++) {
        const tool_kept *before = &c->g->orders.items[i], *after = tool__kept_find(&now, before->path);
        if (before->st.st_mode && !S_ISDIR(before->st.st_mode) && tool__order_is_for_kvist(before->path) &&
            !(after && (after->st.st_mode || after->failed)))
            tool__git_tell(c, before->path, "removed", NULL, ", which the next session would have obeyed.");
    }
    c->is_cut |= now.is_cut;
    tool__kept_free(&now);
}

/* ---- all of it ---- */

void tool__git_guard_check(tool_workspace *w, base_buf *told)
{
    tool_git_guard *g = w->git_guard;
    tool_git_check c = {.w = w, .g = g, .out = told};
    tool__git_restore_modes(&c);
    tool__git_walk(&w->root, &g->walk, &c.now);
    tool__git_repos_find_moved(&c);
    tool__git_restore_modes(&c); /* of what has its name again */
    tool__git_repos_check(&c);
    check_kept(&c);
    check_for_new(&c);
    tool__git_worktrees_check(&c);
    check_steps(&c);
    tool__git_links_check(&c);
    check_indexes(&c);
    tool__git_conflicts_check(&c);
    check_obstacles(&c);
    check_orders(&c);
    /* A rebase that this command began is the session's: the next command may go on with it. */
    tool__git_states_add(&w->root, &c.now, &g->states, &g->own_states);
    if (c.n_told > TOOL_GIT_MOST_TOLD)
        base_buf_printf(told, "... and %zu more of that kind.\n", c.n_told - TOOL_GIT_MOST_TOLD);
    if (c.is_cut || c.now.is_cut || g->kept.is_cut)
        base_buf_puts(told,
            "This tree has more folders or hooks than are looked through after a command: what "
            "one plants for git in the rest is not found.\n");
    tool__git_walk_free(&c.now);
    for (size_t i = 0; i < c.n_moved; i++) free(c.moved[i].to);
    free(c.moved);
}
