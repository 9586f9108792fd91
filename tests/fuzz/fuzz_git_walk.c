/*
 * A tree made by the input's bytes, walked, changed by more of them and walked again: the walk that remembers finds what
 * one that does not finds. A byte is a step: what is done, and the name that it is done to.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "scratch.h"
#include "tools/guard/git_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char *const names[] = {".git", ".GIT", "HEAD", "objects", "refs", "commondir", "hooks",
    "modules", "info", "logs", "a", "b", "worktrees", "config", "\xc3\xa4\n", "..."};
enum { N_NAMES = 16, MOST_STEPS = 120, MOST_DEPTH = 5 };

typedef struct maker {
    char at[320]; /* the folder, below the root; "" the root */
    int depth;
    char *touched[MOST_STEPS * 2]; /* folders whose entries changed */
    size_t n_touched;
} maker;

static void touch(maker *m, const char *path)
{
    if (m->n_touched < sizeof m->touched / sizeof *m->touched)
        m->touched[m->n_touched++] = base_xstrdup(path);
}

static void step(maker *m, const tool_root *root, uint8_t byte)
{
    enum { FOLDER, FILE_, LINK, UP, INTO = 5, REMOVE, RENAME };
    char path[340], other[340];
    snprintf(path, sizeof path, "%s%s%s", m->at, *m->at ? "/" : "", names[byte % N_NAMES]);
    snprintf(other, sizeof other, "%s%s%s", m->at, *m->at ? "/" : "", names[(byte + 10) % N_NAMES]);
    const int what = byte / N_NAMES % 8;
    if (what == UP || what == UP + 1) {
        char *slash = strrchr(m->at, '/');
        *(slash ? slash : m->at) = '\0';
        m->depth -= m->depth > 0;
        return;
    }
    touch(m, m->at);
    switch (what) {
    case FILE_: close(openat(root->fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)); break;
    case LINK: (void)!symlinkat("a", root->fd, path); break;
    case REMOVE: {
        base_buf full = {0};
        base_buf_printf(&full, "tree/%s", path);
        scratch_clear(full.data);
        base_buf_free(&full);
        touch(m, path);
        break;
    }
    case RENAME:
        if (renameat(root->fd, path, root->fd, other)) break;
        touch(m, path);
        touch(m, other);
        break;
    default:
        if (m->depth == MOST_DEPTH || (mkdirat(root->fd, path, 0755) && what == FOLDER)) break;
        struct stat st;
        if (fstatat(root->fd, path, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode)) break;
        touch(m, path);
        memcpy(m->at, path, sizeof m->at); /* names and depth keep it far below that */
        m->depth++;
    }
}

static int compare_repos(const void *a, const void *b)
{
    return strcmp(((const tool_repo *)a)->path, ((const tool_repo *)b)->path);
}

static void check(tool_git_walk *w)
{
    if (w->n_repos) qsort(w->repos, w->n_repos, sizeof *w->repos, compare_repos);
    for (size_t i = 0; i < w->n_folders; i++)
        if (w->folders[i].n_below > w->n_folders - i - 1) abort();
    for (size_t i = 0; i < w->n_repos; i++)
        if (tool__git_walk_find(w, w->repos[i].path) == NULL) abort();
}

static bool has(const tool_git_walk *w, const tool_repo *r)
{
    for (size_t i = 0; i < w->n_repos; i++)
        if (w->repos[i].kind == r->kind && !strcmp(w->repos[i].path, r->path)) return true;
    return false;
}

/* What did not change since may be taken for settled: the clock is too coarse for a program this fast. */
static void settle(tool_git_walk *w, const maker *m)
{
    for (size_t i = 0; i < w->n_folders; i++) {
        bool is_touched = false;
        for (size_t k = 0; k < m->n_touched && !is_touched; k++) {
            const size_t len = strlen(m->touched[k]);
            const char *rest = w->folders[i].path + len;
            /* What a folder was renamed or removed with is another one too. */
            is_touched =
                !strncmp(w->folders[i].path, m->touched[k], len) && (!*rest || (len && *rest == '/'));
        }
        w->folders[i].is_settled = !is_touched;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    tool_root root = {.has_openat2 = true};
    base_buf path = {0};
    if (n > MOST_STEPS) n = MOST_STEPS;
    scratch_clear("tree");
    base_buf_printf(&path, "%s/tree", scratch_folder());
    if (mkdir(path.data, 0755)) abort();
    root.path = path.data;
    root.fd = open(root.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root.fd < 0) abort();
    maker m = {0}, later = {0};
    tool_git_walk before, fresh, again;
    const size_t half = n - n / 3;
    for (size_t i = 0; i < half; i++) step(&m, &root, bytes[i]);
    tool__git_walk(&root, NULL, &before);
    for (size_t i = half; i < n; i++) step(&later, &root, bytes[i]);
    settle(&before, &later);
    tool__git_walk(&root, NULL, &fresh);
    tool__git_walk(&root, &before, &again);
    check(&fresh);
    check(&again);
    if (fresh.n_repos != again.n_repos || fresh.n_folders != again.n_folders) abort();
    for (size_t i = 0; i < fresh.n_repos; i++)
        if (!has(&again, &fresh.repos[i])) abort();
    tool_git_walk *const all[] = {&before, &fresh, &again};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tool__git_walk_free(all[i]);
    for (size_t i = 0; i < m.n_touched; i++) free(m.touched[i]);
    for (size_t i = 0; i < later.n_touched; i++) free(later.touched[i]);
    close(root.fd);
    base_buf_free(&path);
    return 0;
}
