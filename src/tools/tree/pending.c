/*
 * The lock is a file that its holder removes, so that nothing stays in the data folder.
 */
#include "tools/tree/pending.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"

static bool is_named(int fd, const char *path)
{
    struct stat opened, there;
    return !fstat(fd, &opened) && !lstat(path, &there) && opened.st_dev == there.st_dev &&
           opened.st_ino == there.st_ino;
}

/*
 * Whoever holds the lock removes its file. So a lock that was waited for between its opening and its taking may
 * be one without a name by now, which the next one would not see: it counts only while the name leads to it.
 */
static int take_lock(tool_pending *p, base_err *err)
{
    for (;;) {
        p->fd = open(p->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (p->fd < 0) return base_fail_sys(err, "%s", p->lock);
        const bool is_mine = !flock(p->fd, LOCK_EX | LOCK_NB);
        if (is_mine && is_named(p->fd, p->lock)) return BASE_OK;
        close(p->fd);
        p->fd = -1;
        if (!is_mine) return base_fail(err, BASE_E_STATE, "another kvist is writing files of this tree");
    }
}

int tool__pending_begin(const tool_workspace *w, tool_pending *p, base_err *err)
{
    char hash[65], *folder = base_fs_home(BASE_HOME_DATA, "pending");
    base_buf text = {0};
    *p = (tool_pending){.fd = -1};
    if (!folder) return base_fail(err, BASE_E_NOT_FOUND, "there is no data folder");
    const int code = base_fs_mkdirs(folder, err);
    if (!code) {
        base_sha256_hex(w->root.path, strlen(w->root.path), hash);
        base_buf_printf(&text, "%s/%.32s", folder, hash);
        p->path = base_buf_take(&text);
        base_buf_printf(&text, "%s.lock", p->path);
        p->lock = base_buf_take(&text);
    }
    free(folder);
    return code ? code : take_lock(p, err);
}

void tool__pending_end(tool_pending *p)
{
    if (p->fd >= 0) {
        unlink(p->lock);
        close(p->fd);
    }
    free(p->path);
    free(p->lock);
    *p = (tool_pending){.fd = -1};
}
