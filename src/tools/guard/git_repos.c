/* Repositories that moved, and new ones (contract: git_repos.h). */
#include "tools/guard/git_repos.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/guard/below.h"
#include "tools/guard/git_obeys.h"
#include "base/path.h"

static void walk_again(tool_git_check *c)
{
    tool__git_walk_free(&c->now);
    tool__git_walk(&c->w->root, &c->g->walk, &c->now);
}

static bool is_at(const tool_root *root, const char *path, dev_t dev, ino_t ino)
{
    struct stat st;
    return tool__look(root, path, &st) && st.st_dev == dev && st.st_ino == ino;
}

const tool_repo *tool__git_repos_same(const tool_git_walk *walk, const tool_repo *r)
{
    for (size_t i = 0; i < walk->n_repos; i++)
        if (walk->repos[i].ino == r->ino && walk->repos[i].dev == r->dev) return &walk->repos[i];
    return NULL;
}

/* The folder that holds it is the one that held it. */
static bool parent_stayed(const tool_git_check *c, const char *path)
{
    char *parent = base_xstrndup(path, base_path_folder_length(path));
    bool same = !*parent;
    for (size_t i = 0; !same && i < c->g->walk.n_folders; i++)
        if (!strcmp(c->g->walk.folders[i].path, parent))
            same = is_at(&c->w->root, parent, c->g->walk.folders[i].dev, c->g->walk.folders[i].ino);
    free(parent);
    return same;
}

/* A .git that was renamed in its place comes back; one that went along with its folder is where it belongs. */
static bool return_renamed(tool_git_check *c, const tool_repo *r, const char *now)
{
    base_buf where = {0};
    struct stat st;
    if (!base_ends_with(r->path, ".git") || !parent_stayed(c, r->path)) return false;
    bool in_way = tool__look(&c->w->root, r->path, &st);
    bool done = (!in_way || !tool__aside_move(c->w, r->path, &where)) &&
                !renameat2(c->w->root.fd, now, c->w->root.fd, r->path, RENAME_NOREPLACE);
    base_buf behind = {0};
    base_buf_puts(&behind, " to ");
    tool__path_show(&behind, now);
    base_buf_puts(&behind, done ? ": it has its name again."
                                : ", and it could not be renamed back. Do that before using git here.");
    tool__git_tell(c, r->path, "renamed", where.len ? where.data : NULL, behind.data);
    base_buf_free(&behind);
    base_buf_free(&where);
    return done;
}

void tool__git_repos_find_moved(tool_git_check *c)
{
    bool any = false;
    for (size_t i = 0; i < c->g->walk.n_repos; i++) {
        const tool_repo *r = &c->g->walk.repos[i];
        if (is_at(&c->w->root, r->path, r->dev, r->ino)) continue;
        const tool_repo *there = tool__git_repos_same(&c->now, r);
        const char *now = there                          ? there->path
                          : r->kind == TOOL_REPO_POINTER ? NULL
                                                         : tool__git_walk_folder(&c->now, r->dev, r->ino);
        if (r->kind == TOOL_REPO_POINTER && tool__look(&c->w->root, r->path, &(struct stat){0})) continue;
        if (now && return_renamed(c, r, now)) {
            any = true;
            continue;
        }
        bool is_top = !strcmp(r->path, ".git");
        if (is_top && r->kind == TOOL_REPO_POINTER) continue; /* its bytes are held and put back */
        if (is_top && !now) tool__git_tell(c, ".git", "removed", NULL, ", the repository itself.");
        base_grow(&c->moved, &c->cap_moved, c->n_moved + 1, sizeof *c->moved);
        c->moved[c->n_moved++] = (tool_git_moved){r->path, base_xstrdup(now)};
    }
    if (any) walk_again(c);
}

char *tool__git_repos_path_now(const tool_git_check *c, const char *path)
{
    for (size_t i = 0; i < c->n_moved; i++) {
        const tool_git_moved *m = &c->moved[i];
        if (strcmp(path, m->from) && !tool__lies_in(path, m->from)) continue;
        if (!m->to) return NULL;
        base_buf now = {0};
        base_buf_printf(&now, "%s%s", m->to, path + strlen(m->from));
        return base_buf_take(&now);
    }
    return base_xstrdup(path);
}

static bool is_known(const tool_git_check *c, const tool_repo *r)
{
    const tool_repo *before = tool__git_walk_find(&c->g->walk, r->path);
    if (before && r->kind == TOOL_REPO_POINTER)
        return before->kind == TOOL_REPO_POINTER; /* its bytes are compared */
    if (before && before->ino == r->ino && before->dev == r->dev) return true;
    for (size_t i = 0; i < c->n_moved; i++)
        if (c->moved[i].to && !strcmp(c->moved[i].to, r->path)) return true;
    return false;
}

static bool holds_text(const tool_root *root, const char *path, const char *text)
{
    tool_file f = {0};
    bool same = !tool__file_read(root, path, 8192, &f, NULL) && f.text.len == strlen(text) &&
                !memcmp(f.text.data ? f.text.data : "", text, f.text.len);
    tool__file_free(&f);
    return same;
}

/* `git worktree repair` writes a .git to the place that gitdir names. */
static bool names_place_below(const tool_root *root, const char *path)
{
    char *file = base_fs_join(path, "gitdir");
    tool_file f = {0};
    bool is_below = !tool__file_read(root, file, 8192, &f, NULL) && f.text.len > 1 && *f.text.data == '/';
    if (is_below) {
        f.text.data[strcspn(f.text.data, "\n")] = '\0';
        char *to = tool__git_path_below(root, "", f.text.data);
        is_below = to && base_ends_with(to, "/.git");
        free(to);
    }
    tool__file_free(&f);
    free(file);
    return is_below;
}

/*
 * What `git worktree add` makes of a repository that was there: REPO/worktrees/NAME holds nothing but a position and leads to
 * that repository's configuration and hooks, and the folder's .git leads there.
 */
static bool is_plain_worktree(const tool_git_check *c, const char *path)
{
    static const char *const may_hold[] = {"HEAD", "ORIG_HEAD", "index", "logs", "refs", "commondir",
        "gitdir", "locked", "COMMIT_EDITMSG", "AUTO_MERGE", "FETCH_HEAD"};
    const tool_root *root = &c->w->root;
    const char *name = strrchr(path, '/');
    size_t n = name ? (size_t)(name - path) : 0;
    if (!name || n < 10 || strncmp(name - 10, "/worktrees", 10)) return false;
    char *owner = base_xstrndup(path, n - 10), *file = base_fs_join(path, "commondir");
    const tool_repo *r = tool__git_walk_find(&c->now, owner);
    bool is_plain = r && is_known(c, r) && holds_text(root, file, "../..\n") && names_place_below(root, path);
    tool_kept_list all = {0};
    tool__kept_add(root, path, NULL, NULL, &all);
    for (size_t i = 0; i < all.n && is_plain; i++) {
        const char *inner = all.items[i].path + strlen(path);
        size_t first = *inner ? strcspn(inner + 1, "/") : 0;
        bool may = !*inner;
        for (size_t k = 0; k < sizeof may_hold / sizeof *may_hold && !may; k++)
            may = strlen(may_hold[k]) == first && !strncmp(inner + 1, may_hold[k], first);
        is_plain = may && !all.items[i].failed && !S_ISLNK(all.items[i].st.st_mode);
    }
    tool__kept_free(&all);
    free(owner);
    free(file);
    return is_plain;
}

/* "gitdir: FOLDER/REPO/worktrees/NAME", and that one says that it is for this very file. */
static bool is_worktree_pointer(const tool_git_check *c, const char *path)
{
    const tool_root *root = &c->w->root;
    tool_file f = {0};
    bool is_one = false;
    if (!tool__file_read(root, path, 8192, &f, NULL) && f.text.len > 9 &&
        !strncmp(f.text.data, "gitdir: ", 8) && f.text.data[f.text.len - 1] == '\n' &&
        f.text.data[8] == '/') {
        f.text.data[f.text.len - 1] = '\0';
        char *to = tool__git_path_below(root, "", f.text.data + 8);
        char *back = to ? base_fs_join(to, "gitdir") : NULL, *whole = base_fs_join(root->path, path);
        base_buf text = {0}, straight = {0};
        base_buf_printf(&text, "%s\n", whole);
        base_buf_printf(&straight, "%s/%s", root->path, to ? to : "");
        is_one = to && !strcmp(straight.data, f.text.data + 8) && holds_text(root, back, text.data) &&
                 is_plain_worktree(c, to);
        base_buf_free(&text);
        base_buf_free(&straight);
        free(to);
        free(back);
        free(whole);
    }
    tool__file_free(&f);
    return is_one;
}

static bool is_legitimate(const tool_git_check *c, const tool_repo *r)
{
    return r->kind == TOOL_REPO_BARE ? is_plain_worktree(c, r->path) : is_worktree_pointer(c, r->path);
}

/* A folder that git would now take for a repository: one that is new in .git goes whole, in any other the HEAD goes. */
static bool set_bare_aside(tool_git_check *c, const char *path)
{
    static const char behind[] = ": git would take the folder for a repository, so it was moved aside.";
    bool in_git = false;
    for (size_t i = 0; i < c->g->walk.n_repos; i++)
        in_git |=
            c->g->walk.repos[i].kind != TOOL_REPO_POINTER && tool__lies_in(path, c->g->walk.repos[i].path);
    if (in_git && *path && !tool__git_walk_had(&c->g->walk, path)) {
        return tool__git_set_aside(
            c, path, "made", ", a repository that git would obey later: it was moved aside.");
    }
    char *head = base_fs_join(path, "HEAD");
    bool done = tool__git_set_aside(c, head, "made", behind);
    free(head);
    return done;
}

void tool__git_repos_check(tool_git_check *c)
{
    /* What was moved to another name beside itself may hold the next one. */
    for (size_t n = 1; n;) {
        n = 0;
        for (size_t i = 0; i < c->now.n_repos; i++) {
            const tool_repo *r = &c->now.repos[i];
            if (is_known(c, r) || is_legitimate(c, r)) continue;
            if (r->kind == TOOL_REPO_BARE)
                n += set_bare_aside(c, r->path);
            else
                n += tool__git_set_aside(c, r->path, "made",
                    ", a repository (or a way to one) that git would obey later: it was moved aside. To keep "
                    "it, look at its configuration and hooks and move it back.");
        }
        if (n) walk_again(c);
    }
}
