/* Giving and taking the name (contract: den.h). */
#include "tools/confine/den.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"

struct tool_den {
    char *outer, *path; /* the folder that no command may write, and the name in it */
    char *hidden;       /* what it is called now; NULL: it has its name */
    pthread_mutex_t lock;
    unsigned n_open;
};

static char *unguessable(const char *outer)
{
    uint64_t r[2];
    base_buf out = {0};
    if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r) return NULL;
    base_buf_printf(&out, "%s/%016llx%016llx", outer, (unsigned long long)r[0], (unsigned long long)r[1]);
    return base_buf_take(&out);
}

static void hide(tool_den *d)
{
    char *name = unguessable(d->outer);
    if (name && !rename(d->hidden ? d->hidden : d->path, name)) {
        free(d->hidden);
        d->hidden = name;
    } else {
        free(name);
    }
}

int tool__den_make(const char *kind, tool_den **ret, base_err *err)
{
    base_buf outer = {0};
    base_buf_printf(&outer, "/tmp/kvist-%s-XXXXXX", kind);
    tool_den d = {.outer = base_buf_take(&outer)};
    if (!mkdtemp(d.outer)) {
        const int code = base_fail_sys(err, "%s", d.outer);
        free(d.outer);
        return code;
    }
    d.path = base_fs_join(d.outer, "in");
    if (mkdir(d.path, 0700)) {
        const int code = base_fail_sys(err, "%s", d.path);
        rmdir(d.outer);
        free(d.outer);
        free(d.path);
        return code;
    }
    tool_den *made = base_xcalloc(1, sizeof *made);
    *made = d;
    pthread_mutex_init(&made->lock, NULL);
    hide(made);
    *ret = made;
    return BASE_OK;
}

const char *tool__den_path(const tool_den *d)
{
    return d->path;
}

int tool__den_open(tool_den *d, base_err *err)
{
    int code = BASE_OK;
    pthread_mutex_lock(&d->lock);
    if (d->hidden && rename(d->hidden, d->path)) {
        code = base_fail_sys(err, "%s", d->path);
    } else {
        free(d->hidden);
        d->hidden = NULL;
        d->n_open++;
    }
    pthread_mutex_unlock(&d->lock);
    return code;
}

void tool__den_close(tool_den *d)
{
    pthread_mutex_lock(&d->lock);
    if (!--d->n_open) hide(d);
    pthread_mutex_unlock(&d->lock);
}

void tool__den_move(tool_den *d)
{
    pthread_mutex_lock(&d->lock);
    if (d->hidden) hide(d);
    pthread_mutex_unlock(&d->lock);
}

void tool__den_free(tool_den *d)
{
    if (!d) return;
    base_fs_remove(d->outer, NULL);
    pthread_mutex_destroy(&d->lock);
    free(d->outer);
    free(d->path);
    free(d->hidden);
    free(d);
}
