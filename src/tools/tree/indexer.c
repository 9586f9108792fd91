/*
 * The index of the tree, built beside the session: a queue of paths that a thread of low priority reads into
 * the index while the person types, and that the engine thread works on itself when a request cannot wait.
 * One file at a time and in the order of the queue, whoever does it, so that the index is the same on every
 * start. What parsing gave is kept in the data folder.
 *
 * Never stale: a write of ours takes the file out of the queue and updates the index under the same lock; the
 * state (stat) of a file is taken before its text is read, so that what changes meanwhile differs at the next
 * refresh.
 */
#include "tools/tree/indexer.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"

enum { MAX_STORES = 64 };

typedef struct finished {
    char *path;
    struct stat st;
    bool is_indexed, is_gone;
} finished;

struct tool_indexer {
    const tool_root *root; /* borrowed */
    code_index *index;     /* borrowed */
    pthread_t thread;
    pthread_mutex_t lock; /* held while one file is read: guards everything below */
    pthread_cond_t wake;
    bool is_running, stop;
    bool engine_waits; /* the engine thread works the queue off: the other one holds back */
    char **queue;      /* [at, n) is to be done */
    size_t at, n, cap;
    finished *done;
    size_t n_done, cap_done;
    size_t budget; /* bytes that may still go into the index */
    char *store;   /* NULL: nothing is kept */
    bool is_loaded;
    base_buf word;
};

/* ---- one file ---- */

static void finish(tool_indexer *x, char *path, const struct stat *st, bool is_indexed, bool is_gone)
{
    base_grow(&x->done, &x->cap_done, x->n_done + 1, sizeof *x->done);
    x->done[x->n_done++] = (finished){path, *st, is_indexed, is_gone};
}

/* The next one of the queue; the lock is held. false: there is none. */
static bool do_next(tool_indexer *x)
{
    if (x->at == x->n) return false;
    char *path = x->queue[x->at++];
    if (!path) return true; /* taken out */
    struct stat st = {0};
    if (fstatat(x->root->fd, path, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)) {
        code_index_update(x->index, path, NULL, 0);
        finish(x, path, &st, false, true);
        return true;
    }
    tool_file file = {0};
    size_t size = (size_t)st.st_size;
    bool fits = size <= TOOL_MAX_INDEXED && size <= x->budget;
    bool taken = fits && !tool__file_read(x->root, path, TOOL_MAX_INDEXED, &file, NULL) &&
                 !tool__is_binary(file.text.data, file.text.len);
    if (taken) {
        code_index_update(x->index, path, file.text.data ? file.text.data : "", file.text.len);
        x->budget -= file.text.len < x->budget ? file.text.len : x->budget;
    } else {
        code_index_update(x->index, path, NULL, 0);
    }
    tool__file_free(&file);
    finish(x, path, &st, taken, false);
    return true;
}

static void load(tool_indexer *x)
{
    if (!x->is_loaded && x->store) code_index_load(x->index, x->store, &x->word);
    x->is_loaded = true;
}

/* ---- the store ---- */

/* Stores of trees that were not opened for long make room. */
static void prune(const char *folder)
{
    struct kept {
        char name[64];
        int64_t at;
    } oldest = {{0}, INT64_MAX};
    size_t n = 0;
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        size_t len = strlen(e->d_name);
        if (len < 5 || len >= sizeof oldest.name || strcmp(e->d_name + len - 4, ".idx")) continue;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW)) continue;
        n++;
        if (st.st_mtim.tv_sec < oldest.at) {
            oldest.at = st.st_mtim.tv_sec;
            memcpy(oldest.name, e->d_name, len + 1);
        }
    }
    if (n > MAX_STORES) unlinkat(dirfd(dir), oldest.name, 0);
    closedir(dir);
}

static char *store_path(const char *root)
{
    char *folder = base_fs_home(BASE_HOME_DATA, "index"), *path = NULL;
    if (folder && !base_fs_mkdirs(folder, NULL)) {
        base_buf name = {0};
        base_buf_printf(
            &name, "%s/%016llx.idx", folder, (unsigned long long)base_hash64(root, strlen(root), 0));
        if (!base_fs_exists(name.data)) prune(folder);
        path = base_buf_take(&name);
    }
    free(folder);
    return path;
}

static void save(tool_indexer *x)
{
    if (!x->store || !x->is_loaded) return;
    base_err err = {0};
    if (code_index_save(x->index, x->store, &err) && !x->word.len)
        base_buf_printf(&x->word, "The index cannot be kept for the next start: %s.\n", err.msg);
}

/* ---- the thread ---- */

static void *work(void *user)
{
    tool_indexer *x = user;
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
    pthread_mutex_lock(&x->lock);
    while (!x->stop) {
        if (x->engine_waits || x->at == x->n) {
            pthread_cond_wait(&x->wake, &x->lock);
            continue;
        }
        load(x);
        do_next(x);
        if (x->at == x->n) save(x);
        /* Let the engine thread in between two files. */
        pthread_mutex_unlock(&x->lock);
        pthread_mutex_lock(&x->lock);
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

tool_indexer *tool__indexer_open(const tool_root *root, code_index *index, bool is_kept)
{
    tool_indexer *x = base_xcalloc(1, sizeof *x);
    x->root = root;
    x->index = index;
    x->budget = TOOL_MAX_BYTES_CODE;
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->wake, NULL);
    if (is_kept) x->store = store_path(root->path);
    return x;
}

void tool__indexer_close(tool_indexer *x)
{
    if (!x) return;
    pthread_mutex_lock(&x->lock);
    x->stop = true;
    pthread_cond_broadcast(&x->wake);
    pthread_mutex_unlock(&x->lock);
    if (x->is_running) pthread_join(x->thread, NULL);
    if (x->at == x->n) save(x);
    for (size_t i = x->at; i < x->n; i++) free(x->queue[i]);
    for (size_t i = 0; i < x->n_done; i++) free(x->done[i].path);
    free(x->queue);
    free(x->done);
    free(x->store);
    base_buf_free(&x->word);
    pthread_mutex_destroy(&x->lock);
    pthread_cond_destroy(&x->wake);
    free(x);
}

/* ---- from the engine thread ---- */

void tool__indexer_want(tool_indexer *x, const char *const *paths, size_t n, size_t budget)
{
    pthread_mutex_lock(&x->lock);
    for (size_t i = x->at; i < x->n; i++) free(x->queue[i]);
    x->at = x->n = 0;
    x->budget = budget;
    for (size_t i = 0; i < n; i++) {
        base_grow(&x->queue, &x->cap, x->n + 1, sizeof *x->queue);
        x->queue[x->n++] = base_xstrdup(paths[i]);
    }
    if (n && !x->is_running) x->is_running = !pthread_create(&x->thread, NULL, work, x);
    pthread_cond_broadcast(&x->wake);
    pthread_mutex_unlock(&x->lock);
}

bool tool__indexer_help(tool_indexer *x, uint64_t until_ns, const atomic_bool *cancel)
{
    pthread_mutex_lock(&x->lock);
    x->engine_waits = true;
    load(x);
    bool worked = false;
    while (x->at < x->n && base_clock_ns() < until_ns &&
           !(cancel && atomic_load_explicit(cancel, memory_order_relaxed)))
        worked |= do_next(x);
    x->engine_waits = false;
    bool is_done = x->at == x->n;
    if (worked && is_done) save(x);
    pthread_cond_broadcast(&x->wake);
    pthread_mutex_unlock(&x->lock);
    return is_done;
}

void tool__indexer_reap(tool_indexer *x, tool_indexer_done_fn *fn, void *user)
{
    pthread_mutex_lock(&x->lock);
    for (size_t i = 0; i < x->n_done; i++) {
        const finished *f = &x->done[i];
        fn(user, f->path, f->is_gone ? NULL : &f->st, f->is_indexed);
        free(f->path);
    }
    x->n_done = 0;
    pthread_mutex_unlock(&x->lock);
}

void tool__indexer_wrote(tool_indexer *x, const char *path, const char *text, size_t n)
{
    pthread_mutex_lock(&x->lock);
    load(x);
    for (size_t i = x->at; i < x->n; i++)
        if (x->queue[i] && !strcmp(x->queue[i], path)) {
            free(x->queue[i]);
            x->queue[i] = NULL;
        }
    code_index_update(x->index, path, text, n);
    pthread_mutex_unlock(&x->lock);
}

void tool__indexer_say(tool_indexer *x, base_buf *out)
{
    pthread_mutex_lock(&x->lock);
    if (x->word.len) base_buf_add(out, x->word.data, x->word.len);
    pthread_mutex_unlock(&x->lock);
}
