/*
 * What of .git a command must not change: configuration, hooks and attributes are programs that git runs later, outside of any
 * sandbox. They are read before the command and compared after; a change is undone and told. (Where a mount namespace is at
 * hand they are read-only already.) HEAD, refs and the index are the command's to change: `git commit` is a legitimate command.
 */
#include "tools/git_guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define GUARD_MAX_BYTES ((size_t)1 << 20)
#define GUARD_MAX_HOOKS 256

static const char *const guarded[] = {".git/config", ".git/config.worktree", ".git/info/attributes",
    ".git/commondir", ".git/objects/info/alternates"};

static void remember(const tool_root *root, tool_git_guard *g, const char *path)
{
    base_grow(&g->items, &g->cap, g->n + 1, sizeof *g->items);
    tool_guarded *item = &g->items[g->n++];
    *item = (tool_guarded){.path = base_xstrdup(path)};
    item->existed = !tool__file_read(root, path, GUARD_MAX_BYTES, &item->file, NULL);
}

/* Calls fn for each file of .git/hooks. */
static void each_hook(const tool_root *root, void (*fn)(void *, const char *), void *user)
{
    int fd = tool__path_open(root, ".git/hooks", O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0) close(fd);
        return;
    }
    int n = 0;
    for (struct dirent *e; n < GUARD_MAX_HOOKS && (e = readdir(dir)); n++) {
        base_buf path = {0};
        base_buf_printf(&path, ".git/hooks/%s", e->d_name);
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) fn(user, path.data);
        base_buf_free(&path);
    }
    closedir(dir);
}

struct hook_user {
    const tool_root *root;
    tool_git_guard *g;
    base_buf *told;
};

static void remember_hook(void *user, const char *path)
{
    struct hook_user *u = user;
    remember(u->root, u->g, path);
}

void tool__git_guard_take(const tool_root *root, tool_git_guard *ret)
{
    struct stat st;
    *ret = (tool_git_guard){0};
    if (fstatat(root->fd, ".git", &st, AT_SYMLINK_NOFOLLOW)) return;
    if (S_ISREG(st.st_mode)) { /* a linked worktree: the file says where its repository is */
        remember(root, ret, ".git");
        return;
    }
    if (!S_ISDIR(st.st_mode)) return;
    ret->is_folder = true;
    for (size_t i = 0; i < sizeof guarded / sizeof *guarded; i++) remember(root, ret, guarded[i]);
    remember_hook(&(struct hook_user){root, ret, NULL},
        ".git/hooks/.none"); /* so that the folder's absence is no special case */
    each_hook(root, remember_hook, &(struct hook_user){root, ret, NULL});
}

static bool restore(const tool_root *root, const tool_guarded *item)
{
    const char *name;
    size_t made;
    int folder = tool__path_open_parent(root, item->path, true, &name, &made);
    if (folder < 0) return false;
    bool done;
    if (!item->existed) {
        done = !unlinkat(folder, name, 0) || (errno == EISDIR && !unlinkat(folder, name, AT_REMOVEDIR));
    } else {
        static const char temporary[] = ".kvist-restore";
        unlinkat(folder, temporary, 0);
        int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        done = fd >= 0 &&
               write(fd, item->file.text.data, item->file.text.len) == (ssize_t)item->file.text.len &&
               !fchmod(fd, item->file.st.st_mode & 07777) && !fsync(fd) &&
               !renameat(folder, temporary, folder, name);
        if (fd >= 0) close(fd);
        if (!done) unlinkat(folder, temporary, 0);
    }
    close(folder);
    return done;
}

static void tell(base_buf *told, const char *path, bool done)
{
    base_buf_puts(
        told, done ? "The command changed " : "The command changed, and it could not be put back: ");
    tool__path_show(told, path);
    base_buf_puts(told, done ? ", which git would run or obey later: it was put back.\n"
                             : ". Look at it before using git here.\n");
}

static void check_new_hook(void *user, const char *path)
{
    struct hook_user *u = user;
    for (size_t i = 0; i < u->g->n; i++)
        if (!strcmp(u->g->items[i].path, path)) return;
    tool_guarded item = {.path = (char *)path};
    tell(u->told, path, restore(u->root, &item));
}

void tool__git_guard_check(const tool_root *root, const tool_git_guard *g, base_buf *told)
{
    for (size_t i = 0; i < g->n; i++) {
        const tool_guarded *item = &g->items[i];
        tool_file now = {0};
        base_err why = {0};
        int code = tool__file_read(root, item->path, GUARD_MAX_BYTES, &now, &why);
        bool same = item->existed ? !code && !strcmp(now.version, item->file.version) &&
                                        (now.st.st_mode & 07777) == (item->file.st.st_mode & 07777)
                                  : code == BASE_E_NOT_FOUND;
        tool__file_free(&now);
        if (!same) tell(told, item->path, restore(root, item));
    }
    if (g->is_folder) each_hook(root, check_new_hook, &(struct hook_user){root, (tool_git_guard *)g, told});
}

void tool__git_guard_free(tool_git_guard *g)
{
    for (size_t i = 0; i < g->n; i++) {
        free(g->items[i].path);
        tool__file_free(&g->items[i].file);
    }
    free(g->items);
    *g = (tool_git_guard){0};
}
