/*
 * Row files take 28 KiB a token: this keeps all of them together within a bound, the longest unused go first.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "kv/rows/rowfile.h"

enum { DEEPEST = 2 };

typedef struct found {
    char *path;
    int64_t used_ns;
    uint64_t n_bytes;
} found;

typedef struct list {
    found *items;
    size_t n, cap;
    uint64_t n_bytes;
} list;

static bool is_row_file(const char *path)
{
    char magic[8] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    const bool is = read(fd, magic, sizeof magic) == sizeof magic && !memcmp(magic, "KVROWS\n", sizeof magic);
    close(fd);
    return is;
}

/* A large file beside a row file: its states (disk/states.c), digests (disk/digest.c). */
static uint64_t bytes_beside(const char *path, const char *ending)
{
    struct stat st;
    base_buf beside = {0};
    base_buf_printf(&beside, "%s%s", path, ending);
    const bool is_there = !lstat(beside.data, &st) && S_ISREG(st.st_mode);
    base_buf_free(&beside);
    return is_there ? (uint64_t)st.st_size : 0;
}

static void walk(const char *folder, int depth, list *l)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        struct stat st;
        base_buf path = {0};
        base_buf_printf(&path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && !lstat(path.data, &st)) {
            if (S_ISDIR(st.st_mode) && depth < DEEPEST) walk(path.data, depth + 1, l);
            if (S_ISREG(st.st_mode) && is_row_file(path.data)) {
                base_grow(&l->items, &l->cap, l->n + 1, sizeof *l->items);
                const uint64_t n_bytes = (uint64_t)st.st_size + bytes_beside(path.data, ".states") +
                                         bytes_beside(path.data, ".digest");
                l->items[l->n++] = (found){
                    .path = base_buf_take(&path),
                    .used_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
                    .n_bytes = n_bytes,
                };
                l->n_bytes += n_bytes;
            }
        }
        base_buf_free(&path);
    }
    if (dir) closedir(dir);
}

static int compare_found(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->used_ns != y->used_ns) return x->used_ns < y->used_ns ? -1 : 1;
    return strcmp(x->path, y->path);
}

static void remove_beside(const char *path, const char *ending)
{
    base_buf beside = {0};
    base_buf_printf(&beside, "%s%s", path, ending);
    unlink(beside.data);
    base_buf_free(&beside);
}

/* The manifest first: without it nobody looks for the rows. False when a process has the file open. */
static bool remove_pair(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return false;
    const bool free_to_go = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (free_to_go) {
        remove_beside(path, ".manifest");
        remove_beside(path, ".states");
        remove_beside(path, ".digest");
        unlink(path);
    }
    close(fd);
    return free_to_go;
}

int kv_rowfile_trim(const char *folder, uint64_t max_bytes, uint64_t *ret_bytes, base_err *err)
{
    list l = {0};
    walk(folder, 0, &l);
    if (l.n) qsort(l.items, l.n, sizeof *l.items, compare_found);
    for (size_t i = 0; i < l.n && l.n_bytes > max_bytes; i++)
        if (remove_pair(l.items[i].path)) l.n_bytes -= l.items[i].n_bytes;
    const int rc =
        l.n_bytes > max_bytes
            ? base_fail(err, BASE_E_LIMIT, "open sessions take %llu MiB of rows in %s, more than %llu",
                  (unsigned long long)l.n_bytes >> 20, folder, (unsigned long long)max_bytes >> 20)
            : 0;
    if (ret_bytes) *ret_bytes = l.n_bytes;
    for (size_t i = 0; i < l.n; i++) free(l.items[i].path);
    free(l.items);
    return rc;
}
