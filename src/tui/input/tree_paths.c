/*
 * Folder by folder, nearest first. Hidden names, links and the folders that tools fill with what nobody wrote
 * are left out; reading one of those by its full name still works.
 */
#include "tui/input/tree_paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

enum { MAX_FILES = 20000, MAX_FOLDERS = 4000, MAX_ENTRIES = 200000 };

static const char *const left_out[] = {
    "node_modules", "build", "target", "dist", "__pycache__", "venv", "vendor"};

typedef struct list {
    char **path;
    size_t n, cap;
} list;

static void add(list *l, char *path)
{
    base_grow(&l->path, &l->cap, l->n + 2, sizeof *l->path);
    l->path[l->n++] = path;
    l->path[l->n] = NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_left_out(const char *name)
{
    if (name[0] == '.') return true;
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (!strcmp(left_out[i], name)) return true;
    return false;
}

/* DT_REG or DT_DIR; anything else is not followed. */
static int kind_of(int fd, const struct dirent *e)
{
    struct stat st;
    if (e->d_type != DT_UNKNOWN) return e->d_type;
    if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW)) return DT_UNKNOWN;
    return S_ISREG(st.st_mode) ? DT_REG : S_ISDIR(st.st_mode) ? DT_DIR : DT_UNKNOWN;
}

/* One folder's files into `files`, its folders to the end of `folders`. */
static void read_folder(int root, const char *folder, list *files, list *folders, size_t *entries)
{
    int fd = openat(root, *folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0) close(fd);
        return;
    }
    size_t first_file = files->n, first_folder = folders->n;
    for (struct dirent *e; (e = readdir(d)) && (*entries)++ < MAX_ENTRIES && files->n < MAX_FILES;) {
        if (is_left_out(e->d_name)) continue;
        int kind = kind_of(fd, e);
        if (kind != DT_REG && (kind != DT_DIR || folders->n >= MAX_FOLDERS)) continue;
        base_buf b = {0};
        if (*folder) base_buf_printf(&b, "%s/", folder);
        base_buf_puts(&b, e->d_name);
        add(kind == DT_REG ? files : folders, base_buf_take(&b));
    }
    closedir(d);
    if (files->n > first_file)
        qsort(files->path + first_file, files->n - first_file, sizeof *files->path, by_name);
    if (folders->n > first_folder)
        qsort(folders->path + first_folder, folders->n - first_folder, sizeof *folders->path, by_name);
}

char **tui_paths_below(const char *root)
{
    list files = {0}, folders = {0};
    size_t entries = 0;
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        add(&folders, base_xstrdup(""));
        for (size_t i = 0; i < folders.n; i++) read_folder(fd, folders.path[i], &files, &folders, &entries);
        close(fd);
    }
    for (size_t i = 0; i < folders.n; i++) free(folders.path[i]);
    free(folders.path);
    return files.path;
}

char **tui_paths_join(char **paths, char **more)
{
    size_t n = 0, m = 0;
    while (paths && paths[n]) n++;
    while (more && more[m]) m++;
    if (!m) {
        free(more);
        return paths;
    }
    paths = base_xrealloc(paths, (n + m + 1) * sizeof *paths);
    memcpy(paths + n, more, (m + 1) * sizeof *paths);
    free(more);
    return paths;
}
