/*
 * Moves what git must not meet out of its way, so that nothing of it is lost: into a folder of kvist's own,
 * or, where that cannot be (another file system), to another name beside itself. A folder that git would take
 * for a repository also gets its HEAD renamed, so that stepping into it later is harmless.
 */
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

/* A new folder below the place for such things; NULL: there is none. */
static char *make_place(tool_workspace *w)
{
    if (!w->aside) w->aside = base_fs_home(BASE_HOME_DATA, "aside");
    if (!w->aside || base_fs_mkdirs(w->aside, NULL)) return NULL;
    time_t now = time(NULL);
    struct tm tm;
    char stamp[32];
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
    for (int tries = 0; tries < 1000; tries++) {
        base_buf path = {0};
        base_buf_printf(&path, "%s/%s-%d-%u", w->aside, stamp, getpid(), ++w->n_aside);
        if (!mkdir(path.data, 0700)) return base_buf_take(&path);
        base_buf_free(&path);
        if (errno != EEXIST) return NULL;
    }
    return NULL;
}

static int rename_new(int from, const char *name, int to, const char *new_name)
{
    struct stat st;
    if (!renameat2(from, name, to, new_name, RENAME_NOREPLACE)) return 0;
    if (errno != EINVAL) return -1;
    /* A file system that does not know the flag; both places are ours alone by now. */
    if (!fstatat(to, new_name, &st, AT_SYMLINK_NOFOLLOW)) {
        errno = EEXIST;
        return -1;
    }
    return renameat(from, name, to, new_name);
}

/* The same in a folder that its owner (this user) may not write. */
static int rename_anyway(int from, const char *name, int to, const char *new_name)
{
    struct stat st;
    if (!rename_new(from, name, to, new_name)) return 0;
    if (errno != EACCES || fstat(from, &st) || st.st_uid != geteuid() ||
        tool__path_chmod(from, st.st_mode | 0300))
        return -1;
    int failed = rename_new(from, name, to, new_name), saved = errno;
    tool__path_chmod(from, st.st_mode);
    errno = saved;
    return failed;
}

static void hide_head(const char *folder)
{
    struct stat st;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EACCES && !lstat(folder, &st) && S_ISDIR(st.st_mode) && !chmod(folder, 0700))
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    rename_anyway(fd, "HEAD", fd, "HEAD.aside");
    close(fd);
}

int tool__aside_keep(tool_workspace *w, const char *path, const base_buf *bytes, base_buf *where)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *place = make_place(w);
    base_buf to = {0};
    if (place) base_buf_printf(&to, "%s/%s.before", place, *name == '.' && name[1] ? name + 1 : name);
    const int code =
        place ? base_fs_write(to.data, bytes->data ? bytes->data : "", bytes->len, 0600, NULL) : BASE_E_IO;
    if (!code)
        base_buf_add(where, to.data, to.len);
    else if (place)
        rmdir(place);
    free(place);
    base_buf_free(&to);
    return code;
}

int tool__aside_move(tool_workspace *w, const char *path, base_buf *where)
{
    const char *name;
    size_t made;
    int folder = tool__path_open_parent(&w->root, path, false, &name, &made);
    if (folder < 0) return BASE_E_IO;
    base_buf to = {0};
    const char *plain = *name == '.' && name[1] ? name + 1 : name;
    char *place = make_place(w);
    if (place) base_buf_printf(&to, "%s/%s", place, plain);
    int failed = !place || rename_anyway(folder, name, AT_FDCWD, to.data) ? -1 : 0;
    if (failed && place) rmdir(place);
    if (failed) {
        base_buf beside = {0};
        base_buf_printf(&beside, "%s.aside-%llx-%u", name, (unsigned long long)time(NULL), ++w->n_aside);
        failed = rename_anyway(folder, name, folder, beside.data);
        base_buf_clear(&to);
        base_buf_printf(
            &to, "%s/%.*s%s", w->root.path, (int)(strlen(path) - strlen(name)), path, beside.data);
        base_buf_free(&beside);
    }
    int code = failed ? BASE_E_IO : BASE_OK;
    if (!code) {
        hide_head(to.data);
        base_buf_add(where, to.data, to.len);
    }
    close(folder);
    free(place);
    base_buf_free(&to);
    return code;
}
