/* See leftover.h. */
#include "tools/tree/leftover.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"

#define PREFIX ".kvist-"
#define SUFFIX ".tmp"

enum { N_DIGITS = 16 };

bool tool__leftover_is_name(const char *name)
{
    const size_t n = strlen(name), before = strlen(PREFIX), after = strlen(SUFFIX);
    if (n != before + N_DIGITS + after || strncmp(name, PREFIX, before) ||
        strcmp(name + before + N_DIGITS, SUFFIX))
        return false;
    return strspn(name + before, "0123456789abcdef") == N_DIGITS;
}

/* The folder of notes (NULL: there is none), and how the names of this tree's begin. */
static char *notes_of(const tool_workspace *w, char ret_tree[40])
{
    char hash[65];
    base_sha256_hex(w->root.path, strlen(w->root.path), hash);
    snprintf(ret_tree, 40, "%.32s.", hash);
    return base_fs_home(BASE_HOME_DATA, "pending");
}

void tool__leftover_begin(const tool_workspace *w, const char *path, tool_leftover *ret)
{
    uint64_t number = 0;
    char tree[40], *folder = notes_of(w, tree);
    base_buf text = {0};
    if (getrandom(&number, sizeof number, 0) != sizeof number) number = (uint64_t)getpid();
    *ret = (tool_leftover){.fd = -1};
    snprintf(ret->name, sizeof ret->name, PREFIX "%016llx" SUFFIX, (unsigned long long)number);
    if (folder && !base_fs_mkdirs(folder, NULL)) {
        base_buf_printf(&text, "%s/%s%016llx", folder, tree, (unsigned long long)number);
        ret->note = base_buf_take(&text);
        ret->fd = open(ret->note, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (ret->fd >= 0) {
        const char *slash = strrchr(path, '/');
        base_buf_add(&text, path, slash ? (size_t)(slash + 1 - path) : 0);
        base_buf_puts(&text, ret->name);
        flock(ret->fd, LOCK_EX);
        /* A note that is cut names nothing, and then a kill leaves a file: no reason not to write. */
        if (write(ret->fd, text.data, text.len) < 0) tool__leftover_end(ret);
    }
    base_buf_free(&text);
    free(folder);
}

void tool__leftover_end(tool_leftover *l)
{
    if (l->fd >= 0) {
        unlink(l->note);
        close(l->fd);
    }
    free(l->note);
    l->note = NULL;
    l->fd = -1;
}

/* What a note names, unless its writer lives. */
static void remove_one(const tool_workspace *w, const char *note)
{
    char path[TOOL_MAX_PATH + 64];
    const int fd = open(note, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    if (!flock(fd, LOCK_EX | LOCK_NB)) {
        const ssize_t n = read(fd, path, sizeof path - 1);
        path[n > 0 ? n : 0] = '\0';
        const char *name;
        size_t made;
        char *clean = NULL;
        const bool is_path = !tool__path_clean(&w->root, path, &clean, NULL) && !strcmp(clean, path);
        const int folder = is_path ? tool__path_open_parent(&w->root, path, false, &name, &made) : -1;
        struct stat st;
        if (folder >= 0 && tool__leftover_is_name(name) && !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) &&
            S_ISREG(st.st_mode))
            unlinkat(folder, name, 0);
        if (folder >= 0) close(folder);
        free(clean);
        unlink(note);
    }
    close(fd);
}

void tool__leftover_remove_all(const tool_workspace *w)
{
    char tree[40], *folder = notes_of(w, tree);
    DIR *dir = folder ? opendir(folder) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (strncmp(e->d_name, tree, strlen(tree)) != 0 || strlen(e->d_name) != strlen(tree) + N_DIGITS)
            continue;
        char *note = base_fs_join(folder, e->d_name);
        remove_one(w, note);
        free(note);
    }
    if (dir) closedir(dir);
    free(folder);
}
