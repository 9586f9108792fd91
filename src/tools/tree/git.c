/*
 * The repository around a tree, by libgit2 only: nothing here can run a hook, a filter, an fsmonitor or a
 * credential helper.
 *
 * Discovery is our own walk up to a ".git" (or a bare repository), then the repository is opened exactly
 * there (NO_SEARCH), with libgit2's check of the owner on, and with the found folder as its working tree: a
 * core.worktree in the repository's configuration cannot move us elsewhere.
 */
#include "tools/file/safe_path.h"
#include "tools/tree/git_bound.h"
#include "tools/tree/git_obstacles.h"
#include "tools/tree/git_places.h"
#include "tools/tree/workspace.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

static const char *git_reason(void)
{
    const git_error *e = git_error_last();
    return e && e->message ? e->message : "unknown reason";
}

static bool has(const char *folder, const char *name, mode_t kind)
{
    base_buf path = {0};
    struct stat st;
    base_buf_printf(&path, "%s/%s", folder, name);
    bool found = !lstat(path.data, &st) && (!kind || (st.st_mode & S_IFMT) == kind);
    base_buf_free(&path);
    return found;
}

static bool is_bare_folder(const char *folder)
{
    return has(folder, "HEAD", S_IFREG) && has(folder, "objects", S_IFDIR) && has(folder, "refs", S_IFDIR);
}

/* In /tmp anybody can put a repository above ours; who obeys it obeys him. */
static bool is_of_another(const char *folder, const char *name)
{
    base_buf path = {0};
    struct stat st;
    base_buf_printf(&path, "%s/%s", folder, name);
    bool is_foreign = lstat(path.data, &st) || (st.st_uid != geteuid() && st.st_uid);
    base_buf_free(&path);
    return is_foreign;
}

/* git_repository_state's answers that a person should know of, in order of that enum. */
static const char *const state_words[] = {NULL, "a merge", "a revert", "a revert", "a cherry-pick",
    "a cherry-pick", "a bisect", "a rebase", "a rebase", "a rebase", "applying a mailbox",
    "applying a mailbox or a rebase"};

static void note_state(tool_workspace *w)
{
    if (git_repository_head_unborn(w->repo) == 1)
        base_buf_puts(&w->notes, "This branch has no commit yet: git log and show have nothing to say.\n");
    else if (git_repository_head_detached(w->repo) == 1)
        base_buf_puts(&w->notes, "HEAD is detached: commits made now belong to no branch.\n");
    int state = git_repository_state(w->repo);
    if (state > 0 && (size_t)state < sizeof state_words / sizeof *state_words)
        base_buf_printf(
            &w->notes, "In the middle of %s: files may hold conflict marks.\n", state_words[state]);
}

/* The first line of a small file; NULL: none. */
static char *read_line(const char *folder, const char *name)
{
    base_buf path = {0}, text = {0};
    base_buf_printf(&path, "%s%s", folder, name);
    int failed = base_fs_read(path.data, TOOL_MAX_PATH, &text, NULL);
    base_buf_free(&path);
    if (!failed && text.len) text.data[strcspn(text.data, "\r\n")] = '\0';
    return failed || !text.len ? (base_buf_free(&text), NULL) : base_buf_take(&text);
}

/* Does the repository say itself that it belongs to this tree? A tree's ".git" file may name any repository of the person's. */
static bool knows_tree(const tool_workspace *w, const char *folder)
{
    char *back = read_line(folder, "gitdir"), *real = NULL; /* a worktree's: its ".git" file */
    git_config *config = NULL;
    const char *worktree = NULL;
    if (back) {
        char *slash = strrchr(back, '/');
        if (slash && !strcmp(slash, "/.git")) *slash = '\0';
        real = realpath(back, NULL);
    } else {
        base_buf path = {0};
        base_buf_printf(&path, "%sconfig", folder); /* a submodule's: relative to itself */
        git_config *snapshot = NULL;
        if (!git_config_open_ondisk(&config, path.data) && !git_config_snapshot(&snapshot, config) &&
            !git_config_get_string(&worktree, snapshot, "core.worktree")) {
            base_buf_clear(&path);
            base_buf_printf(&path, "%s%s", *worktree == '/' ? "" : folder, worktree);
            real = realpath(path.data, NULL);
        }
        git_config_free(snapshot);
        base_buf_free(&path);
    }
    bool knows = real && !strcmp(real, w->root.path);
    git_config_free(config);
    free(back);
    free(real);
    return knows;
}

char *tool__git_outside(const tool_workspace *w)
{
    if (!w->repo || w->root.is_bare) return NULL;
    const char *folder = git_repository_path(w->repo), *common = git_repository_commondir(w->repo);
    size_t n = strlen(w->root.path);
    bool is_inside = !strncmp(folder, w->root.path, n) && folder[n] == '/';
    return is_inside || !common || !knows_tree(w, folder) ? NULL : realpath(common, NULL);
}

/* What its repository reads from that is neither in the tree nor known to belong to it, nor allowed; NULL: nothing. */
static char *find_outside(const tool_workspace *w)
{
    size_t n = 0;
    while (w->allow_read[n]) n++;
    const char **in = base_xcalloc(n + 3, sizeof *in);
    char *own = tool__git_outside(w);
    for (size_t i = 0; i < n; i++) in[i] = w->allow_read[i];
    in[n++] = w->root.path;
    in[n] = own;
    char *found = tool__git_find_outside(git_repository_path(w->repo), git_repository_commondir(w->repo), in);
    free(in);
    free(own);
    return found;
}

typedef enum repository_kind { NO_REPOSITORY, OF_A_TREE, BARE } repository_kind;

/* Of the first folder from `at` upwards that has one; `at` becomes that folder. */
static repository_kind find_repository(char *at)
{
    for (;;) {
        if (has(at, ".git", 0)) return OF_A_TREE;
        if (is_bare_folder(at)) return BARE;
        if (!at[1]) return NO_REPOSITORY;
        char *slash = strrchr(at, '/');
        slash[slash == at] = '\0';
    }
}

static void note_foreign(tool_workspace *w, const char *at)
{
    base_buf shown = {0};
    tool__path_show(&shown, at);
    base_buf_printf(&w->notes,
        "The repository in %s, above this folder, belongs to another user: it is not used, as git itself "
        "would not (its safe.directory allows it).\n",
        shown.data);
    base_buf_free(&shown);
}

/* obstacle: what tool__git_find_obstacle found; NULL: libgit2 says why. */
static void note_unusable(tool_workspace *w, const char *obstacle)
{
    base_buf why = {0};
    if (obstacle) tool__git_obstacle_say(&why, obstacle);
    base_buf_printf(&w->notes,
        "git cannot be used here (%s): files are found by walking the folder, the git tool is off.\n",
        obstacle ? why.data : git_reason());
    base_buf_free(&why);
}

static void note_outside(tool_workspace *w, const char *outside)
{
    base_buf shown = {0};
    tool__path_show(&shown, outside);
    base_buf_printf(&w->notes,
        "git is not used here: this tree's repository reads from %s, outside of the tree, which does not know "
        "this tree as its own. Files are found by walking the folder. Where that is meant (git clone "
        "--reference, git init --separate-git-dir), --allow-read of that folder allows it.\n",
        shown.data);
    base_buf_free(&shown);
}

/* Is w->root.path its working tree from now on? */
static bool set_workdir(tool_workspace *w)
{
    /* Only when it differs: libgit2 1.5 loses a buffer when it does not. */
    const char *chosen = git_repository_workdir(w->repo);
    size_t n = strlen(w->root.path);
    bool is_same =
        chosen && !strncmp(chosen, w->root.path, n) && !strcmp(chosen + n, w->root.path[1] ? "/" : "");
    return is_same || !git_repository_set_workdir(w->repo, w->root.path, 0);
}

/* Of a repository that is open: what a person should know of it, or why it is closed again. */
static void take_up(tool_workspace *w)
{
    char *outside = find_outside(w);
    if (outside) {
        note_outside(w, outside);
        free(outside);
        tool__git_close(w);
        return;
    }
    if (w->root.is_bare) {
        base_buf_puts(
            &w->notes, "A bare repository: it has no files to work on; the git tool (log, show) works.\n");
        return;
    }
    if (git_repository_is_bare(w->repo))
        base_buf_puts(&w->notes, "git's configuration calls this repository bare "
                                 "though it has a working tree: that is ignored.\n");
    if (!set_workdir(w)) {
        base_buf_printf(&w->notes, "git cannot be used here (%s).\n", git_reason());
        tool__git_close(w);
        return;
    }
    note_state(w);
}

int tool__git_open(tool_workspace *w, const char *dir, base_err *err)
{
    tool__git_start();
    char *start = realpath(dir, NULL);
    if (!start) return base_fail_sys(err, "%s", dir);
    struct stat st;
    if (stat(start, &st) || !S_ISDIR(st.st_mode)) {
        free(start);
        return base_fail(err, BASE_E_USAGE, "%s is not a folder", dir);
    }
    char *at = base_xstrdup(start);
    repository_kind kind = find_repository(at);
    char *obstacle = kind ? tool__git_find_obstacle(at, kind == BARE) : NULL;
    const unsigned flags = GIT_REPOSITORY_OPEN_NO_SEARCH | (kind == BARE ? GIT_REPOSITORY_OPEN_BARE : 0u);
    if (kind && !obstacle && git_repository_open_ext(&w->repo, at, flags, NULL)) w->repo = NULL;
    if (kind && !w->repo && strcmp(at, start) && is_of_another(at, kind == BARE ? "HEAD" : ".git")) {
        note_foreign(w, at);
        kind = NO_REPOSITORY;
    }
    w->root.path = base_xstrdup(kind ? at : start);
    w->root.is_bare = kind == BARE;
    if (!kind)
        base_buf_puts(&w->notes, "Not a git tree: files are found by walking the folder "
                                 "(.gitignore is not read), the git tool is off. /undo works.\n");
    else if (!w->repo)
        note_unusable(w, obstacle);
    else
        take_up(w);
    free(obstacle);
    free(at);
    free(start);
    return BASE_OK;
}

void tool__git_close(tool_workspace *w)
{
    git_repository_free(w->repo);
    w->repo = NULL;
}

enum {
    DIRTY_BYTES = 16 << 20
}; /* that are hashed to find out whether anything differs; beyond them it is said that something does */

/* One is enough to know, and of some commits there would be billions. */
static int on_first(const git_diff *diff, const git_diff_delta *delta, const char *pathspec, void *user)
{
    *(bool *)user = true;
    return -1;
}

static bool has_staged(git_repository *repo, git_index *index)
{
    git_object *tree = NULL;
    git_diff *diff = NULL;
    bool staged = false;
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    options.notify_cb = on_first;
    options.payload = &staged;
    if (!git_revparse_single(&tree, repo, "HEAD^{tree}"))
        git_diff_tree_to_index(&diff, repo, (git_tree *)tree, index, &options);
    git_diff_free(diff);
    git_object_free(tree);
    return staged;
}

static int64_t ns_of(int64_t seconds, int64_t nanoseconds)
{
    return seconds * 1000000000 + nanoseconds;
}

/* What lies there now, as git would store it. */
static int hash_now(git_repository *repo, const char *path, const git_index_entry *e, git_oid *ret)
{
    char target[4096];
    ssize_t n = S_ISLNK(e->mode) ? readlink(path, target, sizeof target) : -1;
    return n >= 0 ? git_odb_hash(ret, target, (size_t)n, GIT_OBJECT_BLOB)
                  : git_repository_hashfile(ret, repo, path, GIT_OBJECT_BLOB, e->path);
}

/* Then it is no file of the tree, and may be one that never ends (/proc/kmsg). */
static bool is_behind_link(const char *path)
{
    const size_t n = (size_t)(strrchr(path, '/') - path);
    char *folder = base_xstrndup(path, n + !n);
    char *real = realpath(folder, NULL);
    const bool is_behind = !real || strcmp(real, folder);
    free(real);
    free(folder);
    return is_behind;
}

/*
 * Is this tracked file another one now? By kind, size and times, as git; by content only where those leave it open, and of *left
 * bytes. written_ns: when the index was; a file changed since may have the time that stands in it.
 */
static bool differs(git_repository *repo, const char *path, const git_index_entry *e, int64_t written_ns,
    bool has_modes, uint64_t *left)
{
    struct stat st;
    git_oid now;
    if (lstat(path, &st) || (st.st_mode & S_IFMT) != (e->mode & S_IFMT)) return true;
    if (has_modes && S_ISREG(st.st_mode) && !(st.st_mode & 0100) != !(e->mode & 0100)) return true;
    if (e->file_size && e->file_size != (uint32_t)st.st_size) return true;
    int64_t then = ns_of(e->mtime.seconds, e->mtime.nanoseconds);
    bool is_touched = then != ns_of(st.st_mtim.tv_sec, e->mtime.nanoseconds ? st.st_mtim.tv_nsec : 0);
    if (!is_touched && then < written_ns) return false;
    if (is_behind_link(path)) return true;
    if ((uint64_t)st.st_size > *left) return is_touched;
    *left -= (uint64_t)st.st_size;
    return hash_now(repo, path, e, &now) || !git_oid_equal(&now, &e->id);
}

/* Does anything tracked differ from the last commit? libgit2's status hashes every file whose times differ, whatever its size. */
static bool is_dirty(git_repository *repo, const char *root)
{
    git_index *index = NULL;
    struct stat st;
    int64_t written_ns = INT64_MAX;
    uint64_t left = DIRTY_BYTES;
    if (git_repository_index(&index, repo)) return false;
    git_index_read(index, 0);
    if (git_index_path(index) && !stat(git_index_path(index), &st))
        written_ns = ns_of(st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    bool has_modes = !(git_index_caps(index) & GIT_INDEX_CAPABILITY_NO_FILEMODE);
    bool dirty = has_staged(repo, index);
    for (size_t i = 0, n = git_index_entrycount(index); i < n && !dirty; i++) {
        const git_index_entry *e = git_index_get_byindex(index, i);
        bool is_left_alone = (e->flags & GIT_INDEX_ENTRY_VALID) ||
                             (e->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) ||
                             (e->mode & S_IFMT) == GIT_FILEMODE_COMMIT;
        if (is_left_alone) continue;
        base_buf path = {0};
        base_buf_printf(&path, "%s/%s", root[1] ? root : "", e->path);
        dirty = differs(repo, path.data, e, written_ns, has_modes, &left);
        base_buf_free(&path);
    }
    git_index_free(index);
    return dirty;
}

void tool_workspace_branch(const tool_workspace *w, base_buf *out)
{
    if (!w->repo) return;
    git_reference *head = NULL;
    if (git_repository_head_unborn(w->repo) == 1) {
        if (!git_reference_lookup(&head, w->repo, "HEAD")) {
            const char *target = git_reference_symbolic_target(head);
            if (target && !strncmp(target, "refs/heads/", 11)) base_buf_puts(out, target + 11);
        }
        git_reference_free(head);
        return;
    }
    if (git_repository_head(&head, w->repo)) return;
    if (git_repository_head_detached(w->repo) == 1) {
        char id[GIT_OID_HEXSZ + 1] = "";
        const git_oid *oid = git_reference_target(head);
        if (oid) git_oid_tostr(id, sizeof id, oid);
        base_buf_printf(out, "(detached %.7s)", id);
    } else {
        base_buf_puts(out, git_reference_shorthand(head));
    }
    git_reference_free(head);
    tool_git_bound bound = {0}, *before = tool__git_bound_begin(&bound);
    if (!w->root.is_bare && is_dirty(w->repo, w->root.path)) base_buf_putc(out, '*');
    tool__git_bound_end(before);
}
