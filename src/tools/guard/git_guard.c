/*
 * Configuration, hooks and attributes are programs that git runs later, outside of any sandbox; so is a repository that somebody
 * steps into. Each is looked at before a command and compared after it. Where mount namespaces are allowed most of it is read-only
 * meanwhile; what a command makes anew (a nested repository, a hook where there was none) is found by the comparison in any case.
 *
 * HEAD, refs, logs, the index and objects are the command's to change: `git commit` is a legitimate command.
 */
#include "tools/guard/git_guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "tools/tree/workspace.h"

enum { MOST_TOLD = 20, MOST_HOOK_FILES = 256, MOST_FINE_BINDS = 64, MOST_BINDS = 2000, MOST_HOPS = 8 };

/* Below a repository's folder. Folders with all they hold. */
static const char *const guarded[] = {"config", "config.worktree", "commondir", "gitdir", "hooks", "info",
    "objects/info/alternates", "remotes", "branches"};
/* In info: lists that make git run nothing; `git gc` and `git sparse-checkout` write them. */
static const char *const harmless_info[] = {"/info/refs", "/info/exclude", "/info/sparse-checkout"};

/* Steps that a rebase or a series of picks has before it, and what else of it names a program. */
static const char *const states[] = {"rebase-merge", "rebase-apply", "sequencer"};
static const struct {
    const char *state, *name;
    bool is_list; /* of steps; else a strategy, which git takes for a program's name */
} step_files[] = {{"rebase-merge", "git-rebase-todo", true}, {"sequencer", "todo", true},
    {"rebase-merge", "strategy", false}, {"rebase-merge", "strategy_opts", false},
    {"sequencer", "opts", false}};

static const char *const hook_names[] = {"applypatch-msg", "commit-msg", "fsmonitor-watchman",
    "p4-changelist", "p4-post-changelist", "p4-pre-submit", "p4-prepare-changelist", "post-applypatch",
    "post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite",
    "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push",
    "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
    "reference-transaction", "sendemail-validate", "update"};

#define COUNT(table) (sizeof table / sizeof *table)

/* Something whose bytes are kept: a path of .git, or one in the tree that git's configuration or a link of .git names. */
typedef struct place {
    char *path;
    bool is_hooks; /* a folder in the tree */
    bool is_way;   /* a link that other places lie behind: it is kept, and what it leads to is not */
} place;

typedef struct places {
    place *all;
    size_t n, cap;
} places;

typedef struct identity {
    dev_t dev;
    ino_t ino;
} identity;

struct tool_git_guard {
    tool_git_walk walk;
    tool_kept_list kept, steps; /* steps: lists of steps and strategies */
    tool_kept_list orders;      /* what kvist or another agent obeys in its next session */
    places places;
    identity *states; /* rebases that had begun before the command */
    size_t n_states, cap_states;
    identity *own_states; /* rebases that a command of this session began: it may go on with them */
    size_t n_own, cap_own;
    int64_t taken_ns; /* a file with an older ctime is as it was */
};

static char *join(const char *folder, const char *name)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s%s%s", folder, *folder ? "/" : "", name);
    return base_buf_take(&path);
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

static bool lies_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return !strncmp(path, folder, n) && path[n] == '/';
}

static bool look(const tool_root *root, const char *path, struct stat *ret)
{
    return !fstatat(root->fd, path, ret, AT_SYMLINK_NOFOLLOW);
}

static int64_t ns_of(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool holds(const identity *all, size_t n, const struct stat *st)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].dev == st->st_dev && all[i].ino == st->st_ino) return true;
    return false;
}

/* Adds the rebases that have begun and are not in `known`. */
static void add_states(const tool_root *root, const tool_git_walk *walk, const identity *known,
    size_t n_known, identity **list, size_t *n, size_t *cap)
{
    struct stat st;
    for (size_t i = 0; i < walk->n_repos; i++)
        for (size_t k = 0; walk->repos[i].kind != TOOL_REPO_POINTER && k < COUNT(states); k++) {
            char *path = join(walk->repos[i].path, states[k]);
            if (look(root, path, &st) && !holds(known, n_known, &st) && !holds(*list, *n, &st)) {
                base_grow(list, cap, *n + 1, sizeof **list);
                (*list)[(*n)++] = (identity){st.st_dev, st.st_ino};
            }
            free(path);
        }
}

/* ---- taking ---- */

static bool skips(const char *path)
{
    if (ends_in(path, ".sample")) return true; /* git never runs a hook of this name */
    for (size_t i = 0; i < COUNT(harmless_info); i++)
        if (ends_in(path, harmless_info[i])) return true;
    return false;
}

static void add_place(places *p, const char *path, bool is_hooks)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->all[i].path, path)) {
            p->all[i].is_way = false;
            return;
        }
    base_grow(&p->all, &p->cap, p->n + 1, sizeof *p->all);
    p->all[p->n++] = (place){base_xstrdup(path), is_hooks, false};
}

static void add_way(places *p, const char *path)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->all[i].path, path)) return;
    add_place(p, path, false);
    p->all[p->n - 1].is_way = true;
}

static void free_places(places *p)
{
    for (size_t i = 0; i < p->n; i++) free(p->all[i].path);
    free(p->all);
    *p = (places){0};
}

static void keep_repo(
    const tool_root *root, const char *path, const tool_kept_list *earlier, tool_kept_list *ret)
{
    for (size_t i = 0; i < COUNT(guarded); i++) {
        char *inner = join(path, guarded[i]);
        tool__kept_add(root, inner, skips, earlier, ret);
        free(inner);
    }
}

/* A folder of hooks in the tree: all of it, or, when it holds much else, what git would run. */
static void keep_place(
    const tool_root *root, const place *p, const tool_kept_list *earlier, tool_kept_list *ret)
{
    if (!p->is_hooks) {
        tool__kept_add(root, p->path, skips, earlier, ret);
        return;
    }
    tool_kept_list all = {0};
    tool__kept_add(root, p->path, skips, earlier, &all);
    bool is_small = all.n <= MOST_HOOK_FILES && !all.is_cut;
    tool__kept_free(&all);
    if (is_small) tool__kept_add(root, p->path, skips, earlier, ret);
    for (size_t i = 0; !is_small && i < COUNT(hook_names); i++) {
        char *inner = join(p->path, hook_names[i]);
        tool__kept_add(root, inner, NULL, earlier, ret);
        free(inner);
    }
}

/* What a link leads to in the tree is as good as the link. */
static void follow_links(const tool_root *root, const tool_kept_list *list, size_t from, places *ret)
{
    for (size_t i = from; i < list->n; i++) {
        const tool_kept *item = &list->items[i];
        /* Where a .git leads is a repository of its own in the walk. */
        if (!S_ISLNK(item->st.st_mode) || !item->is_held || ends_in(item->path, ".git")) continue;
        char *whole = join(root->path, item->path), *slash = strrchr(whole, '/');
        *slash = '\0';
        char *target = tool__git_path_below(root, whole, item->bytes.data ? item->bytes.data : "");
        struct stat st;
        if (target) add_place(ret, target, look(root, target, &st) && S_ISDIR(st.st_mode));
        *slash = '/';
        char *end = realpath(whole, NULL), *inner = end ? tool__git_path_below(root, "", end) : NULL;
        if (inner && look(root, inner, &st)) add_place(ret, inner, S_ISDIR(st.st_mode));
        free(target);
        free(whole);
        free(end);
        free(inner);
    }
}

/*
 * Links among the folders above a place: led elsewhere, each brings another file there. Kept are they, what they are links to,
 * and the place at the path without links.
 */
static void follow_way(const tool_root *root, const char *path, bool is_hooks, int hops, places *ret)
{
    struct stat st;
    for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
        char *link = base_xstrndup(path, (size_t)(end - path)), target[4097];
        ssize_t n = look(root, link, &st) && S_ISLNK(st.st_mode)
                        ? readlinkat(root->fd, link, target, sizeof target - 1)
                        : -1;
        if (n >= 0) {
            target[n] = '\0';
            add_way(ret, link);
            char *folder = join(root->path, link);
            *strrchr(folder, '/') = '\0';
            char *inner = tool__git_path_below(root, folder, target),
                 *behind = inner ? join(inner, end + 1) : NULL;
            if (inner && look(root, inner, &st) && S_ISLNK(st.st_mode)) add_way(ret, inner);
            if (behind) add_place(ret, behind, is_hooks);
            if (behind && hops) follow_way(root, behind, is_hooks, hops - 1, ret);
            free(folder);
            free(inner);
            free(behind);
        }
        free(link);
    }
}

static void on_obeyed(void *user, const char *path, bool is_hooks)
{
    if (is_hooks && ends_in(path, "/_")) { /* husky: the scripts lie beside the folder that is named */
        char *outer = base_xstrndup(path, strlen(path) - 2);
        add_place(user, outer, true);
        free(outer);
        return;
    }
    add_place(user, path, is_hooks);
}

static void on_own(void *user, const char *path, bool is_hooks)
{
    add_place(user, path, is_hooks);
}

/* In any letter case, as git reads its names. */
static bool names_nothing(const tool_kept *config)
{
    static const char *const words[] = {"path", "file", "fsmonitor", "command", "editor", "pager", "askpass",
        "proxy", "external", "helper", "program", "filter", "textconv", "driver", "clean", "smudge",
        "process", "cmd", "pack", "vcs", "alias", "template", "update", "hook", "prog", "tunnel", "browser",
        "smtpserver", "httpd"};
    if (!config || !config->is_held) return !config || !config->st.st_mode;
    for (size_t i = 0; i < COUNT(words); i++)
        if (config->bytes.data && strcasestr(config->bytes.data, words[i])) return false;
    return true;
}

static void add_obeyed(const tool_root *root, const tool_git_guard *g, places *ret)
{
    static const char *const files[] = {"config", "config.worktree"};
    for (size_t i = 0; i < g->walk.n_repos; i++) {
        if (g->walk.repos[i].kind == TOOL_REPO_POINTER) continue;
        for (size_t k = 0; k < COUNT(files); k++) {
            char *path = join(g->walk.repos[i].path, files[k]);
            if (!names_nothing(tool__kept_find(&g->kept, path))) tool__git_obeyed(root, path, on_obeyed, ret);
            free(path);
        }
    }
    tool__git_obeyed(root, NULL, on_obeyed, ret);
}

static void keep_steps(
    const tool_root *root, const tool_git_walk *walk, const tool_kept_list *earlier, tool_kept_list *ret)
{
    struct stat st;
    for (size_t i = 0; i < walk->n_repos; i++) {
        if (walk->repos[i].kind == TOOL_REPO_POINTER) continue;
        for (size_t k = 0; k < COUNT(step_files); k++) {
            char *path = join(walk->repos[i].path, step_files[k].state), *file = NULL;
            if (look(root, path, &st)) file = join(path, step_files[k].name);
            if (file) tool__kept_add(root, file, NULL, earlier, ret);
            free(file);
            free(path);
        }
    }
    tool__kept_sort(ret);
}

/*
 * What other programs run or obey because somebody steps into the tree or opens it, without being asked for: agents, editors, shells,
 * debuggers, package managers, the machine that builds what is pushed. Makefiles, tests and package.json run when they are run.
 */
static const char *const orders[] = {"AGENTS.md", ".kvist", ".agents", "CLAUDE.md", "GEMINI.md", ".claude",
    ".cursor", ".cursorrules", ".mcp.json", ".github/copilot-instructions.md", ".github/workflows",
    ".gitlab-ci.yml", ".envrc", ".vscode", ".idea", ".devcontainer", ".devcontainer.json", ".exrc", ".vimrc",
    ".nvimrc", ".nvim.lua", ".dir-locals.el", ".gdbinit", ".lldbinit", ".cargo/config", ".cargo/config.toml",
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".mise.toml", "mise.toml", ".pre-commit-config.yaml", "lefthook.yml"};

static void keep_orders(const tool_root *root, const tool_kept_list *earlier, tool_kept_list *ret)
{
    for (size_t i = 0; i < COUNT(orders); i++) tool__kept_add(root, orders[i], NULL, earlier, ret);
    tool__kept_sort(ret);
}

/* kvist's own and those of another agent it reads; the rest is obeyed by others. */
static bool is_for_kvist(const char *path)
{
    enum { N_OWN = 3 };
    for (size_t i = 0; i < N_OWN; i++)
        if (!strcmp(path, orders[i]) || lies_in(path, orders[i])) return true;
    return false;
}

void tool__git_guard_keep(const tool_root *root, const char *folder, tool_kept_list *ret)
{
    places named = {0};
    char *config = join(folder, "config");
    keep_repo(root, folder, NULL, ret);
    tool__git_obeyed(root, config, on_obeyed, &named);
    tool__git_obeyed(root, NULL, on_obeyed, &named);
    follow_links(root, ret, 0, &named);
    for (size_t i = 0; i < named.n && i < MOST_HOPS * 100; i++) {
        const size_t from = ret->n;
        const place p = named.all[i]; /* the list grows */
        keep_place(root, &p, NULL, ret);
        if (!p.is_way) follow_links(root, ret, from, &named);
        follow_way(root, p.path, p.is_hooks, MOST_HOPS, &named);
    }
    tool__kept_sort(ret);
    free_places(&named);
    free(config);
}

void tool__git_guard_take(tool_workspace *w)
{
    tool_git_guard *old = w->git_guard, *g = base_xcalloc(1, sizeof *g);
    const tool_kept_list *earlier = old ? &old->kept : NULL;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    g->taken_ns = ns_of(now);
    tool__git_walk(&w->root, old ? &old->walk : NULL, false, &g->walk);
    for (size_t i = 0; i < g->walk.n_repos; i++) {
        const tool_repo *r = &g->walk.repos[i];
        if (r->kind == TOOL_REPO_POINTER)
            tool__kept_add(&w->root, r->path, NULL, earlier, &g->kept);
        else
            keep_repo(&w->root, r->path, earlier, &g->kept);
    }
    if (!tool__git_walk_find(&g->walk, ".git")) tool__kept_add(&w->root, ".git", NULL, earlier, &g->kept);
    tool__kept_sort(&g->kept);
    add_obeyed(&w->root, g, &g->places);
    tool__own_files(&w->root, on_own, &g->places);
    follow_links(&w->root, &g->kept, 0, &g->places);
    for (size_t i = 0, hops = 0; i < g->places.n && hops < MOST_HOPS * 100; i++, hops++) {
        size_t from = g->kept.n;
        const place p = g->places.all[i]; /* the list grows */
        keep_place(&w->root, &p, earlier, &g->kept);
        if (!p.is_way) follow_links(&w->root, &g->kept, from, &g->places);
        follow_way(&w->root, p.path, p.is_hooks, MOST_HOPS, &g->places);
    }
    tool__kept_sort(&g->kept);
    keep_steps(&w->root, &g->walk, old ? &old->steps : NULL, &g->steps);
    keep_orders(&w->root, old ? &old->orders : NULL, &g->orders);
    if (old) {
        g->own_states = old->own_states;
        g->n_own = old->n_own;
        g->cap_own = old->cap_own;
        old->own_states = NULL;
    }
    add_states(&w->root, &g->walk, g->own_states, g->n_own, &g->states, &g->n_states, &g->cap_states);
    tool__git_guard_free(old);
    w->git_guard = g;
}

/* ---- binds ---- */

static void add_bind(char ***list, size_t *n, size_t *cap, const tool_root *root, const char *path)
{
    base_grow(list, cap, *n + 2, sizeof **list);
    (*list)[(*n)++] = join(root->path[1] ? root->path : "/", path);
    (*list)[*n] = NULL;
}

typedef struct fixing {
    const tool_root *root;
    tool_git_binds *binds;
    size_t n, cap;
} fixing;

/* The folders above what kvist obeys stay where they are: another one in the place of such a folder would bring other files there. */
static void fix_way(void *user, const char *path, bool is_hooks)
{
    fixing *f = user;
    struct stat st;
    for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
        char *folder = base_xstrndup(path, (size_t)(end - path)), *whole = join(f->root->path, folder);
        bool is_new = look(f->root, folder, &st) && S_ISDIR(st.st_mode);
        for (char **p = f->binds->own; p && *p && is_new; p++) is_new = strcmp(*p, whole);
        if (is_new) add_bind(&f->binds->own, &f->n, &f->cap, f->root, folder);
        free(folder);
        free(whole);
    }
}

void tool__git_guard_binds(const tool_workspace *w, tool_git_binds *ret)
{
    const tool_git_guard *g = w->git_guard;
    size_t n_own = 0, cap_own = 0, n_fixed = 0, cap_fixed = 0, n_fine = 0;
    struct stat st;
    *ret = (tool_git_binds){0};
    fixing ways = {.root = &w->root, .binds = ret};
    tool__own_files(&w->root, fix_way, &ways);
    n_own = ways.n;
    cap_own = ways.cap;
    for (size_t i = 0; i < g->walk.n_repos && n_own + n_fixed < MOST_BINDS; i++) {
        const tool_repo *r = &g->walk.repos[i];
        bool is_folder = r->kind != TOOL_REPO_POINTER;
        if (!look(&w->root, r->path, &st) || S_ISLNK(st.st_mode)) continue;
        if (!is_folder || n_fine >= MOST_FINE_BINDS) { /* many: their repositories are read-only as a whole */
            add_bind(&ret->read_only, &n_fixed, &cap_fixed, &w->root, r->path);
            continue;
        }
        n_fine++;
        add_bind(&ret->own, &n_own, &cap_own, &w->root, r->path);
        for (size_t k = 0; k < COUNT(guarded) + COUNT(states); k++) {
            bool is_state = k >= COUNT(guarded);
            char *path = join(r->path, is_state ? states[k - COUNT(guarded)] : guarded[k]);
            bool is_there = look(&w->root, path, &st) && !S_ISLNK(st.st_mode);
            if (is_there && !(is_state && holds(g->own_states, g->n_own, &st)))
                add_bind(&ret->read_only, &n_fixed, &cap_fixed, &w->root, path);
            free(path);
        }
    }
    /* Included files and programs of the tree. A folder of hooks there is compared only: `npm install` writes it again as it was. */
    for (size_t i = 0; i < g->places.n && n_own + n_fixed < MOST_BINDS; i++)
        if (!g->places.all[i].is_hooks && look(&w->root, g->places.all[i].path, &st) && S_ISREG(st.st_mode))
            add_bind(&ret->read_only, &n_fixed, &cap_fixed, &w->root, g->places.all[i].path);
    if (!ret->own) ret->own = base_xcalloc(1, sizeof *ret->own);
    if (!ret->read_only) ret->read_only = base_xcalloc(1, sizeof *ret->read_only);
}

void tool__git_binds_free(tool_git_binds *b)
{
    for (char **p = b->own; p && *p; p++) free(*p);
    for (char **p = b->read_only; p && *p; p++) free(*p);
    free(b->own);
    free(b->read_only);
    *b = (tool_git_binds){0};
}

/* ---- checking: words ---- */

typedef struct check {
    tool_workspace *w;
    const tool_git_guard *g;
    tool_git_walk now;
    struct moved {
        const char *from;
        char *to; /* NULL: gone */
    } * moved;    /* repositories that do not lie where they lay */
    size_t n_moved, cap_moved;
    base_buf *out;
    size_t n_told;
    bool is_cut; /* there is more than was looked at */
} check;

/* A path may have 4,096 bytes, whole screens of them: the middle of a long one is left out, since its ends tell it apart. */
static void show_path(base_buf *out, const char *path)
{
    enum { MOST = 160, END = 75 };
    base_buf shown = {0};
    tool__path_show(&shown, path);
    if (shown.len > MOST)
        base_buf_printf(out, "%.*s[...]%s", END, shown.data, shown.data + shown.len - END);
    else
        base_buf_puts(out, shown.data ? shown.data : "");
    base_buf_free(&shown);
}

static void tell(check *c, const char *path, const char *what, const char *where, const char *behind)
{
    if (++c->n_told > MOST_TOLD) return;
    base_buf_printf(c->out, "The command %s ", what);
    show_path(c->out, path);
    base_buf_puts(c->out, behind);
    if (where) {
        base_buf_puts(c->out, " What it left there lies in ");
        show_path(c->out, where);
        base_buf_puts(c->out, ".");
    }
    base_buf_putc(c->out, '\n');
}

static bool set_aside(check *c, const char *path, const char *what, const char *behind)
{
    base_buf where = {0};
    struct stat st;
    if (!look(&c->w->root, path, &st) && (errno == ENOENT || errno == ENOTDIR))
        return true; /* it went with its folder */
    bool done = !tool__aside_move(c->w, path, &where, NULL);
    tell(c, path, what, done ? where.data : NULL,
        done ? behind
             : ", which git or kvist would obey later, and it could not be moved aside. Look at it before "
               "going on here.");
    base_buf_free(&where);
    return done;
}

/* A folder above it is a link now: that goes aside, for what lies behind it is not what was looked at. */
static void clear_way(check *c, const char *path)
{
    struct stat st;
    bool is_clear = false;
    for (const char *end = strchr(path, '/'); end && !is_clear; end = strchr(end + 1, '/')) {
        char *link = base_xstrndup(path, (size_t)(end - path));
        const tool_kept *before = tool__kept_find(&c->g->kept, link);
        is_clear =
            look(&c->w->root, link, &st) && S_ISLNK(st.st_mode) && !(before && S_ISLNK(before->st.st_mode)) &&
            set_aside(c, link, "put", ", a link on the way to what git runs or obeys: it was moved aside.");
        free(link);
    }
}

/* Who would have obeyed it. */
static const char *obeyed_by(const check *c, const char *path)
{
    return tool__own_file_is(&c->w->root, path) ? ", which kvist itself obeys"
                                                : ", which git would run or obey later";
}

/* One path that is not as it was: what is there now goes aside, what was there comes back. */
static void mend(check *c, const tool_kept *item, const char *path, tool_kept_change change)
{
    static const char *const words[] = {[TOOL_KEPT_CHANGED] = "changed", [TOOL_KEPT_GONE] = "removed"};
    base_buf where = {0}, why = {0};
    base_err err = {0};
    if (change == TOOL_KEPT_CHANGED) {
        clear_way(c, path);
        change = tool__kept_compare(&c->w->root, item, path);
        if (change == TOOL_KEPT_SAME) return;
    }
    base_buf_puts(&why, obeyed_by(c, path));
    if (change == TOOL_KEPT_NEW) {
        base_buf_puts(&why, ": it was moved aside.");
        set_aside(c, path, "made", why.data);
    } else if (change == TOOL_KEPT_CHANGED && tool__aside_move(c->w, path, &where, NULL)) {
        base_buf_puts(&why, ", and it could not be moved aside. Look at it before going on here.");
        tell(c, path, words[change], NULL, why.data);
    } else if (!tool__kept_put_back(&c->w->root, item, path, &err)) {
        base_buf_puts(&why, ": it was put back.");
        tell(c, path, words[change], where.data, why.data);
    } else {
        base_buf_printf(&why, ", and it could not be put back (%s). Look at it before going on here.",
            err.code == BASE_E_NOT_FOUND ? "its former content was too large to be held, or unreadable"
                                         : err.msg);
        tell(c, path, words[change], where.data, why.data);
    }
    base_buf_free(&where);
    base_buf_free(&why);
}

/* ---- checking: modes ---- */

/* Closed to its owner a folder hides what a command put in it; opened to others it lets them put something there. */
static void restore_mode(check *c, const char *path, dev_t dev, ino_t ino, mode_t mode)
{
    struct stat st;
    int fd = tool__path_open(&c->w->root, path, O_PATH | O_DIRECTORY, 0);
    if (fd < 0) return;
    if (!fstat(fd, &st) && st.st_dev == dev && st.st_ino == ino && st.st_mode != mode)
        tell(c, path, "changed the mode of", NULL,
            tool__path_chmod(fd, mode)
                ? ", a folder of what git runs or obeys, and it could not be given back. Do that "
                  "before using git here."
                : ", a folder of what git runs or obeys: it has the one again that it had.");
    close(fd);
}

/* Repositories before what lies in them; both lists have a folder before its inner ones. */
static void restore_modes(check *c)
{
    for (size_t i = 0; i < c->g->walk.n_repos; i++) {
        const tool_repo *r = &c->g->walk.repos[i];
        if (S_ISDIR(r->mode)) restore_mode(c, r->path, r->dev, r->ino, r->mode);
    }
    for (size_t i = 0; i < c->g->kept.n; i++) {
        const tool_kept *item = &c->g->kept.items[i];
        if (S_ISDIR(item->st.st_mode))
            restore_mode(c, item->path, item->st.st_dev, item->st.st_ino, item->st.st_mode);
    }
}

/* ---- checking: repositories ---- */

static void walk_again(check *c)
{
    tool__git_walk_free(&c->now);
    tool__git_walk(&c->w->root, &c->g->walk, true, &c->now);
}

static bool is_at(const tool_root *root, const char *path, dev_t dev, ino_t ino)
{
    struct stat st;
    return look(root, path, &st) && st.st_dev == dev && st.st_ino == ino;
}

static const tool_repo *repo_by_identity(const tool_git_walk *walk, const tool_repo *r)
{
    for (size_t i = 0; i < walk->n_repos; i++)
        if (walk->repos[i].ino == r->ino && walk->repos[i].dev == r->dev) return &walk->repos[i];
    return NULL;
}

/* The folder that holds it is the one that held it. */
static bool parent_stayed(const check *c, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent = base_xstrndup(path, slash ? (size_t)(slash - path) : 0);
    bool same = !*parent;
    for (size_t i = 0; !same && i < c->g->walk.n_folders; i++)
        if (!strcmp(c->g->walk.folders[i].path, parent))
            same = is_at(&c->w->root, parent, c->g->walk.folders[i].dev, c->g->walk.folders[i].ino);
    free(parent);
    return same;
}

/* A .git that was renamed in its place comes back; one that went along with its folder is where it belongs. */
static bool return_renamed(check *c, const tool_repo *r, const char *now)
{
    base_buf where = {0};
    struct stat st;
    if (!ends_in(r->path, ".git") || !parent_stayed(c, r->path)) return false;
    bool in_way = look(&c->w->root, r->path, &st);
    bool done = (!in_way || !tool__aside_move(c->w, r->path, &where, NULL)) &&
                !renameat2(c->w->root.fd, now, c->w->root.fd, r->path, RENAME_NOREPLACE);
    base_buf behind = {0};
    base_buf_puts(&behind, " to ");
    tool__path_show(&behind, now);
    base_buf_puts(&behind, done ? ": it has its name again."
                                : ", and it could not be renamed back. Do that before using git here.");
    tell(c, r->path, "renamed", where.len ? where.data : NULL, behind.data);
    base_buf_free(&behind);
    base_buf_free(&where);
    return done;
}

static void find_moved(check *c)
{
    bool any = false;
    for (size_t i = 0; i < c->g->walk.n_repos; i++) {
        const tool_repo *r = &c->g->walk.repos[i];
        if (is_at(&c->w->root, r->path, r->dev, r->ino)) continue;
        const tool_repo *there = repo_by_identity(&c->now, r);
        const char *now = there                          ? there->path
                          : r->kind == TOOL_REPO_POINTER ? NULL
                                                         : tool__git_walk_folder(&c->now, r->dev, r->ino);
        if (r->kind == TOOL_REPO_POINTER && look(&c->w->root, r->path, &(struct stat){0})) continue;
        if (now && return_renamed(c, r, now)) {
            any = true;
            continue;
        }
        bool is_top = !strcmp(r->path, ".git");
        if (is_top && r->kind == TOOL_REPO_POINTER) continue; /* its bytes are held and put back */
        if (is_top && !now) tell(c, ".git", "removed", NULL, ", the repository itself.");
        base_grow(&c->moved, &c->cap_moved, c->n_moved + 1, sizeof *c->moved);
        c->moved[c->n_moved++] = (struct moved){r->path, base_xstrdup(now)};
    }
    if (any) walk_again(c);
}

/* Where a path of before lies now; NULL: gone with its repository. The caller frees. */
static char *path_now(const check *c, const char *path)
{
    for (size_t i = 0; i < c->n_moved; i++) {
        const struct moved *m = &c->moved[i];
        if (strcmp(path, m->from) && !lies_in(path, m->from)) continue;
        if (!m->to) return NULL;
        base_buf now = {0};
        base_buf_printf(&now, "%s%s", m->to, path + strlen(m->from));
        return base_buf_take(&now);
    }
    return base_xstrdup(path);
}

static bool is_known(const check *c, const tool_repo *r)
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

/*
 * What `git worktree add` makes of a repository that was there: REPO/worktrees/NAME holds nothing but a position and leads to
 * that repository's configuration and hooks, and the folder's .git leads there.
 */
static bool is_plain_worktree(const check *c, const char *path)
{
    static const char *const may_hold[] = {"HEAD", "ORIG_HEAD", "index", "logs", "refs", "commondir",
        "gitdir", "locked", "COMMIT_EDITMSG", "AUTO_MERGE", "FETCH_HEAD"};
    const tool_root *root = &c->w->root;
    const char *name = strrchr(path, '/');
    size_t n = name ? (size_t)(name - path) : 0;
    if (!name || n < 10 || strncmp(name - 10, "/worktrees", 10)) return false;
    char *owner = base_xstrndup(path, n - 10), *file = join(path, "commondir");
    const tool_repo *r = tool__git_walk_find(&c->now, owner);
    bool is_plain = r && is_known(c, r) && holds_text(root, file, "../..\n");
    tool_kept_list all = {0};
    tool__kept_add(root, path, NULL, NULL, &all);
    for (size_t i = 0; i < all.n && is_plain; i++) {
        const char *inner = all.items[i].path + strlen(path);
        size_t first = *inner ? strcspn(inner + 1, "/") : 0;
        bool may = !*inner;
        for (size_t k = 0; k < COUNT(may_hold) && !may; k++)
            may = strlen(may_hold[k]) == first && !strncmp(inner + 1, may_hold[k], first);
        is_plain = may && !all.items[i].failed && !S_ISLNK(all.items[i].st.st_mode);
    }
    tool__kept_free(&all);
    free(owner);
    free(file);
    return is_plain;
}

/* "gitdir: FOLDER/REPO/worktrees/NAME", and that one says that it is for this very file. */
static bool is_worktree_pointer(const check *c, const char *path)
{
    const tool_root *root = &c->w->root;
    tool_file f = {0};
    bool is_one = false;
    if (!tool__file_read(root, path, 8192, &f, NULL) && f.text.len > 9 &&
        !strncmp(f.text.data, "gitdir: ", 8) && f.text.data[f.text.len - 1] == '\n' &&
        f.text.data[8] == '/') {
        f.text.data[f.text.len - 1] = '\0';
        char *to = tool__git_path_below(root, "", f.text.data + 8);
        char *back = to ? join(to, "gitdir") : NULL, *whole = join(root->path, path);
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

static bool is_legitimate(const check *c, const tool_repo *r)
{
    return r->kind == TOOL_REPO_BARE ? is_plain_worktree(c, r->path) : is_worktree_pointer(c, r->path);
}

/* A folder that git would now take for a repository: one that is new in .git goes whole, in any other the HEAD goes. */
static bool set_bare_aside(check *c, const char *path)
{
    static const char behind[] = ": git would take the folder for a repository, so it was moved aside.";
    bool in_git = false;
    for (size_t i = 0; i < c->g->walk.n_repos; i++)
        in_git |= c->g->walk.repos[i].kind != TOOL_REPO_POINTER && lies_in(path, c->g->walk.repos[i].path);
    if (in_git && *path && !tool__git_walk_had(&c->g->walk, path)) {
        return set_aside(c, path, "made", ", a repository that git would obey later: it was moved aside.");
    }
    char *head = join(path, "HEAD");
    bool done = set_aside(c, head, "made", behind);
    free(head);
    return done;
}

static void check_repositories(check *c)
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
                n += set_aside(c, r->path, "made",
                    ", a repository (or a way to one) that git would obey later: it was moved aside. To keep "
                    "it, "
                    "look at its configuration and hooks and move it back.");
        }
        if (n) walk_again(c);
    }
}

/* ---- checking: files ---- */

static void check_kept(check *c)
{
    for (size_t i = 0; i < c->g->kept.n; i++) {
        const tool_kept *item = &c->g->kept.items[i];
        char *path = path_now(c, item->path);
        tool_kept_change change = path ? tool__kept_compare(&c->w->root, item, path) : TOOL_KEPT_SAME;
        /* A pointer that is gone leads nowhere; the tree's own is put back. */
        if (change == TOOL_KEPT_GONE && strcmp(path, ".git") && ends_in(path, "/.git"))
            change = TOOL_KEPT_SAME;
        if (change != TOOL_KEPT_SAME) mend(c, item, path, change);
        free(path);
    }
}

/* What is there now and was not: `from` is the place's path before, `to` the one it has now. */
static size_t check_new(check *c, tool_kept_list *now, const char *from, const char *to)
{
    const char *moved = NULL;
    size_t n = 0;
    tool__kept_sort(now);
    for (size_t i = 0; i < now->n; i++) {
        const tool_kept *item = &now->items[i];
        if ((!item->st.st_mode && !item->failed) || (moved && lies_in(item->path, moved))) continue;
        base_buf before = {0};
        base_buf_printf(&before, "%s%s", from, item->path + strlen(to));
        bool is_new = !tool__kept_find(&c->g->kept, before.data);
        base_buf_free(&before);
        if (!is_new) continue;
        moved = item->path;
        mend(c, item, item->path, TOOL_KEPT_NEW);
        n++;
    }
    tool__kept_free(now);
    return n;
}

/* In the folders that were there; what stands where nothing stood is in `kept` already. */
static void check_for_new(check *c)
{
    enum { MOST_ROUNDS = 64 };
    for (size_t i = 0; i < c->g->kept.n; i++) {
        const tool_kept *item = &c->g->kept.items[i];
        if (!S_ISDIR(item->st.st_mode)) continue;
        char *path = path_now(c, item->path);
        bool more = path && !tool__kept_has_same_names(&c->w->root, item, path);
        for (int rounds = 0; more && rounds < MOST_ROUNDS; rounds++) {
            tool_kept_list now = {0};
            tool__kept_add(&c->w->root, path, skips, &c->g->kept, &now);
            more = now.is_cut; /* what could not be listed shows when what was listed has gone */
            more = check_new(c, &now, item->path, path) && more;
        }
        c->is_cut |= more;
        free(path);
    }
}

/* ---- checking: steps of a rebase ---- */

static bool is_step_list(const char *path)
{
    return ends_in(path, "todo");
}

static void check_steps(check *c)
{
    tool_kept_list now = {0};
    keep_steps(&c->w->root, &c->now, &c->g->steps, &now);
    for (size_t i = 0; i < now.n; i++) {
        const tool_kept *item = &now.items[i], *before = tool__kept_find(&c->g->steps, item->path);
        if (!item->st.st_mode) continue;
        if (before && tool__kept_compare(&c->w->root, before, NULL) == TOOL_KEPT_SAME) continue;
        bool is_bad =
            !item->is_held || !S_ISREG(item->st.st_mode) ||
            (is_step_list(item->path) ? tool__git_todo_refused(&item->bytes,
                                            before && before->is_held ? &before->bytes : NULL) != NULL
                                      : item->bytes.data && strchr(item->bytes.data, '/'));
        if (is_bad)
            set_aside(c, item->path, before && before->st.st_mode ? "changed" : "made",
                ", whose steps run a program when git goes on: it was moved aside. Read it, and put it back "
                "or "
                "end this with --abort.");
    }
    tool__kept_free(&now);
}

/* ---- checking: indexes ---- */

/* By its configuration, which a worktree has from its repository. */
static bool is_sha256(const check *c, const char *repo)
{
    const char *inner = strstr(repo, "/worktrees/");
    char *owner = base_xstrndup(repo, inner ? (size_t)(inner - repo) : strlen(repo)),
         *path = join(owner, "config");
    const tool_kept *config = tool__kept_find(&c->g->kept, path);
    bool found = config && config->is_held && config->bytes.data && strcasestr(config->bytes.data, "sha256");
    free(owner);
    free(path);
    return found;
}

static void check_index(check *c, const tool_repo *r, const char *name, bool is_known_repo)
{
    static const int64_t coarse_ns = 2 * (int64_t)1000000000; /* as kept.c's */
    struct stat st;
    char *path = join(r->path, name);
    bool is_there = look(&c->w->root, path, &st);
    bool is_as_before = is_there && is_known_repo && ns_of(st.st_ctim) < c->g->taken_ns - coarse_ns;
    const char *why =
        is_there && !is_as_before ? tool__git_index_refused(&c->w->root, path, is_sha256(c, r->path)) : NULL;
    base_buf behind = {0};
    if (why) {
        base_buf_printf(&behind,
            ", git's list of what is in the tree, and %s: it was moved aside. `git reset` makes it anew.",
            why);
        set_aside(c, path, "wrote", behind.data);
    }
    base_buf_free(&behind);
    free(path);
}

/*
 * Those that changed, by a clock that nobody can set, and those of repositories that were not looked at before. A split index keeps
 * most names in sharedindex.HASH.
 */
static void check_indexes(check *c)
{
    for (size_t i = 0; i < c->now.n_repos; i++) {
        const tool_repo *r = &c->now.repos[i];
        if (r->kind == TOOL_REPO_POINTER) continue;
        bool is_known_repo = repo_by_identity(&c->g->walk, r) != NULL;
        check_index(c, r, "index", is_known_repo);
        int fd = tool__path_open_folder(&c->w->root, r->path);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir && fd >= 0) close(fd);
        for (const struct dirent *e; dir && (e = readdir(dir));)
            if (!strncmp(e->d_name, "sharedindex.", 12)) check_index(c, r, e->d_name, is_known_repo);
        if (dir) closedir(dir);
    }
}

/* ---- checking: pipes ---- */

static bool set_pipe_aside(check *c, const char *path)
{
    return set_aside(c, path, "made",
        ", a pipe or a device where git has a file, and git would wait for it without an end: it was moved "
        "aside.");
}

/* In a folder whose entries changed; the clock of ctime nobody can set. */
static bool check_rules(check *c, const tool_walked *folder)
{
    static const int64_t coarse_ns = 2 * (int64_t)1000000000; /* as kept.c's */
    static const char *const names[] = {".gitignore", ".gitattributes", ".gitmodules", ".mailmap"};
    bool done = true;
    if (folder->ctime_ns < c->g->taken_ns - coarse_ns) return true;
    for (size_t i = 0; i < COUNT(names) && done; i++) {
        char *path = join(folder->path, names[i]);
        struct stat st;
        if (!fstatat(c->w->root.fd, path, &st, 0) &&
            (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
            done = set_pipe_aside(c, path);
        free(path);
    }
    return done;
}

/* There was none when the repository was opened (git.c), so each is the command's. kvist itself would wait for it first. */
static void check_pipes(check *c)
{
    enum { MOST_ROUNDS = 64 };
    bool done = true;
    if (!c->w->repo || c->w->root.is_bare) return;
    for (int rounds = 0; done; rounds++) {
        char *found = tool__git_find_pipe(git_repository_path(c->w->repo));
        if (!found) break;
        char *path = tool__git_path_below(&c->w->root, "", found);
        done = path && rounds < MOST_ROUNDS && set_pipe_aside(c, path);
        free(path);
        free(found);
    }
    for (size_t i = 0; i < c->now.n_folders && done; i++) done = check_rules(c, &c->now.folders[i]);
    if (done) return;
    tool__git_close(c->w);
    base_buf_puts(c->out, "It is still there, so kvist goes on without git.\n");
}

/* ---- checking: what the next session obeys ---- */

/* A command may change them as any file of the tree, and the person who would obey them is told. */
static void check_orders(check *c)
{
    tool_kept_list now = {0};
    keep_orders(&c->w->root, &c->g->orders, &now);
    for (size_t i = 0; i < now.n; i++) {
        const tool_kept *item = &now.items[i], *before = tool__kept_find(&c->g->orders, item->path);
        bool was_there = before && before->st.st_mode;
        if (!item->st.st_mode || S_ISDIR(item->st.st_mode)) continue;
        if (was_there && tool__kept_compare(&c->w->root, before, NULL) == TOOL_KEPT_SAME) continue;
        tell(c, item->path, was_there ? "changed" : "made", NULL,
            is_for_kvist(item->path)
                ? ", which the next session obeys: read it before you start one."
                : ", which an editor, an agent, a shell or a builder obeys unasked: read it before "
                  "you open or push this tree.");
    }
    /* One that is gone tightened something, perhaps. */
    for (size_t i = 0; i < c->g->orders.n; i++) {
        const tool_kept *before = &c->g->orders.items[i], *after = tool__kept_find(&now, before->path);
        if (before->st.st_mode && !S_ISDIR(before->st.st_mode) && is_for_kvist(before->path) &&
            !(after && (after->st.st_mode || after->failed)))
            tell(c, before->path, "removed", NULL, ", which the next session would have obeyed.");
    }
    c->is_cut |= now.is_cut;
    tool__kept_free(&now);
}

/* ---- all of it ---- */

void tool__git_guard_check(tool_workspace *w, base_buf *told)
{
    tool_git_guard *g = w->git_guard;
    check c = {.w = w, .g = g, .out = told};
    restore_modes(&c);
    tool__git_walk(&w->root, &g->walk, true, &c.now);
    find_moved(&c);
    restore_modes(&c); /* of what has its name again */
    check_repositories(&c);
    check_kept(&c);
    check_for_new(&c);
    check_steps(&c);
    check_indexes(&c);
    check_pipes(&c);
    check_orders(&c);
    /* A rebase that this command began is the session's: the next command may go on with it. */
    add_states(&w->root, &c.now, g->states, g->n_states, &g->own_states, &g->n_own, &g->cap_own);
    if (c.n_told > MOST_TOLD) base_buf_printf(told, "... and %zu more of that kind.\n", c.n_told - MOST_TOLD);
    if (c.is_cut || c.now.is_cut || g->kept.is_cut)
        base_buf_puts(told,
            "This tree has more folders or hooks than are looked through after a command: what "
            "one plants for git in the rest is not found.\n");
    tool__git_walk_free(&c.now);
    for (size_t i = 0; i < c.n_moved; i++) free(c.moved[i].to);
    free(c.moved);
}

void tool__git_guard_free(tool_git_guard *g)
{
    if (!g) return;
    tool__git_walk_free(&g->walk);
    tool__kept_free(&g->kept);
    tool__kept_free(&g->steps);
    tool__kept_free(&g->orders);
    free_places(&g->places);
    free(g->states);
    free(g->own_states);
    free(g);
}
