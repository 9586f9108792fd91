/*
 * The tree that a session works on: its root, its files, what of it was shown, the index over it.
 *
 * Refreshing lists the tree when a folder of it changed (folders.c), looks at each file's stat, and reads
 * only what changed; the files shown this session are read and hashed each time, because "the person changed
 * it by hand" must never be missed. Everything is read through safe_path.c. Engine thread.
 */
#include "tools/tree/workspace.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "tools/tree/git_obstacles.h"

#define INDEX_NS (3 * (uint64_t)1000000000)

const char *tool_workspace_root(const tool_workspace *w)
{
    return w->root.path;
}

code_index *tool_workspace_index(tool_workspace *w)
{
    return w->index;
}

code_grammars *tool_workspace_grammars(tool_workspace *w)
{
    return w->grammars;
}

void tool_workspace_notes(const tool_workspace *w, base_buf *out)
{
    if (w->notes.len) base_buf_add(out, w->notes.data, w->notes.len);
    if (w->listing.is_cut)
        base_buf_printf(out, "More than %d files: the rest is not listed or searched.\n", TOOL_MAX_FILES);
    if (w->listing.is_shallow)
        base_buf_printf(out, "Folders in more than %d folders: their new files are not listed or searched.\n",
            TOOL_MAX_DEPTH);
    tool__indexer_say(w->indexer, out);
    size_t indexed = 0, known = 0;
    for (size_t i = 0; i < w->listing.n; i++) {
        indexed += w->listing.files[i].is_indexed;
        known += w->listing.files[i].size >= 0;
    }
    if (w->is_behind)
        base_buf_printf(out,
            "%zu files: the index for questions holds %zu of them by "
            "now and is read on in the background; search reads all.\n",
            w->listing.n, indexed);
    else if (w->listing.n > TOOL_MAX_FILES_CODE && known)
        base_buf_printf(out,
            "%zu files: the index for questions holds %zu of them, source files first; search reads all.\n",
            w->listing.n, indexed);
    if (!w->sandbox.is_confining)
        base_buf_puts(out, "Shell commands cannot be confined on this machine; see kvist doctor.\n");
}

void tool_workspace_take_news(tool_workspace *w, base_buf *out)
{
    if (w->news.len) base_buf_add(out, w->news.data, w->news.len);
    base_buf_clear(&w->news);
}

bool tool_workspace_is_partial(const tool_workspace *w)
{
    if (w->listing.is_cut) return true;
    for (size_t i = 0; i < w->listing.n; i++)
        if (!w->listing.files[i].is_indexed && code_language(w->listing.files[i].path, "", 0)) return true;
    return false;
}

int tool__workspace_store(tool_workspace *w, const char *name, char **ret, base_err *err)
{
    if (!w->store) {
        const char *tmp = getenv("TMPDIR");
        base_buf template = {0};
        base_buf_printf(&template, "%s/kvist-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
        if (!mkdtemp(template.data)) {
            int code = base_fail_sys(err, "%s", template.data);
            base_buf_free(&template);
            return code;
        }
        w->store = base_buf_take(&template);
    }
    int code = base_fs_mkdirs(w->store, err);
    if (code) return code;
    base_buf path = {0};
    base_buf_printf(&path, "%s/%s", w->store, name);
    *ret = base_buf_take(&path);
    return BASE_OK;
}

/* ---- what was shown ---- */

static tool_mark *find_mark(const tool_workspace *w, const char *path)
{
    for (size_t i = 0; i < w->n_marks; i++)
        if (!strcmp(w->marks[i].path, path)) return &w->marks[i];
    return NULL;
}

const char *tool__workspace_shown(const tool_workspace *w, const char *path)
{
    const tool_mark *m = find_mark(w, path);
    return m && m->version[0] ? m->version : NULL;
}

void tool_workspace_mark_shown(tool_workspace *w, const char *path, const char *version)
{
    tool_mark *m = find_mark(w, path);
    if (!m) {
        base_grow(&w->marks, &w->cap_marks, w->n_marks + 1, sizeof *w->marks);
        m = &w->marks[w->n_marks++];
        *m = (tool_mark){.path = base_xstrdup(path)};
    }
    snprintf(m->version, sizeof m->version, "%s", version);
}

/* ---- the list and the index ---- */

static int64_t ns_of(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int tool__workspace_list(tool_workspace *w, const atomic_bool *cancel, base_err *err)
{
    if (w->is_listed) return BASE_OK;
    int code = tool__listing_make(&w->root, w->repo, cancel, &w->listing, err);
    if (code) return code;
    if (w->ignored) tool__listing_leave_out(&w->listing, w->ignored);
    w->is_listed = true;
    return BASE_OK;
}

static bool stat_listed(const tool_workspace *w, const char *path, struct stat *st)
{
    return !fstatat(w->root.fd, path, st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st->st_mode);
}

static bool is_same(const tool_listed *f, const struct stat *st)
{
    return f->size == st->st_size && f->mtime_ns == ns_of(st->st_mtim) && f->ctime_ns == ns_of(st->st_ctim) &&
           f->ino == (uint64_t)st->st_ino;
}

static void remember(tool_listed *f, const struct stat *st)
{
    f->size = st->st_size;
    f->mtime_ns = ns_of(st->st_mtim);
    f->ctime_ns = ns_of(st->st_ctim);
    f->ino = (uint64_t)st->st_ino;
}

/* The new list takes over what the old one knew; what vanished leaves the index. */
static void take_over(tool_workspace *w, tool_listing *fresh)
{
    size_t i = 0, j = 0;
    while (i < w->listing.n) {
        tool_listed *old = &w->listing.files[i];
        int order = j < fresh->n ? strcmp(old->path, fresh->files[j].path) : -1;
        if (order > 0) {
            j++;
            continue;
        }
        if (order == 0) {
            char *path = fresh->files[j].path;
            fresh->files[j] = *old;
            fresh->files[j].path = path;
            j++;
        } else if (old->is_indexed) {
            code_index_update(w->index, old->path, NULL, 0);
        }
        i++;
    }
    tool__listing_free(&w->listing);
    w->listing = *fresh;
    w->is_listed = true;
}

/* What the indexer finished is known of the list from now on. */
static void note_done(void *user, const char *path, const struct stat *st, bool is_indexed)
{
    tool_workspace *w = user;
    bool found;
    size_t at = tool__listing_find(&w->listing, path, &found);
    if (!found) {
        code_index_update(w->index, path, NULL, 0);
        return;
    }
    tool_listed *f = &w->listing.files[at];
    f->is_indexed = is_indexed;
    if (st)
        remember(f, st);
    else
        f->size = -1;
}

/* Must this file be read (again)? */
static bool is_news(const tool_workspace *w, tool_listed *f)
{
    struct stat st;
    if (stat_listed(w, f->path, &st)) return !is_same(f, &st);
    return f->is_indexed || f->size < 0;
}

/*
 * Files shown this session whose content differs now; each is told once and counts as never shown from then
 * on.
 */
static void check_marks(tool_workspace *w, char ***ret_changed)
{
    char **changed = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < w->n_marks; i++) {
        tool_mark *m = &w->marks[i];
        if (!m->version[0]) continue;
        tool_file f = {0};
        bool same =
            !tool__file_read(&w->root, m->path, TOOL_MAX_FILE, &f, NULL) && !strcmp(f.version, m->version);
        tool__file_free(&f);
        if (same) continue;
        m->version[0] = '\0';
        base_grow(&changed, &cap, n + 2, sizeof *changed);
        changed[n++] = base_xstrdup(m->path);
        changed[n] = NULL;
    }
    if (ret_changed) {
        if (!changed) changed = base_xcalloc(1, sizeof *changed);
        *ret_changed = changed;
        return;
    }
    for (size_t i = 0; i < n; i++) free(changed[i]);
    free(changed);
}

/* Whoever changed the tree: libgit2 could not be stopped any more. Before the first listing it was looked at already (git.c). */
static void look_for_obstacles(tool_workspace *w)
{
    if (!w->repo || w->root.is_bare || !w->is_listed) return;
    char *found = tool__git_find_in_tree(w->root.path, git_repository_commondir(w->repo));
    if (!found) return;
    tool__git_obstacle_say(&w->news, found);
    base_buf_puts(&w->news, ": kvist goes on without git.\n");
    tool__git_close(w);
    free(found);
}

/* Lists again, unless nothing that a listing rests on has changed. */
static int list_again(tool_workspace *w, const atomic_bool *cancel, base_err *err)
{
    tool_listing fresh = {0};
    if (w->is_listed && tool__folders_are_same(&w->root, &w->folders)) return BASE_OK;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    look_for_obstacles(w);
    int code = tool__listing_make(&w->root, w->repo, cancel, &fresh, err);
    if (code) return code;
    if (w->ignored) tool__listing_leave_out(&fresh, w->ignored);
    take_over(w, &fresh);
    tool__folders_take(&w->root, w->repo, &w->listing, ns_of(now), &w->folders);
    return BASE_OK;
}

int tool__workspace_read_again(tool_workspace *w, const atomic_bool *cancel, base_err *err)
{
    int code = list_again(w, cancel, err);
    if (code) return code;
    tool__indexer_reap(w->indexer, note_done, w);
    size_t budget = TOOL_MAX_BYTES_CODE, n_taken = 0, n = 0;
    const char **wanted = base_xcalloc(w->listing.n + 1, sizeof *wanted);
    /* Changed files first, then source files: a tree of 100,000 pictures must not keep the code out. */
    for (int pass = 0; pass < 3 && !code; pass++) {
        for (size_t i = 0; i < w->listing.n && !code; i++) {
            tool_listed *f = &w->listing.files[i];
            if (f->is_indexed != (pass == 0)) continue;
            if (pass == 0) {
                size_t size = (size_t)f->size;
                n_taken++;
                budget -= size < budget ? size : budget;
            } else if (n_taken >= TOOL_MAX_FILES_CODE) {
                break;
            } else if ((code_language(f->path, "", 0) != NULL) != (pass == 1)) {
                continue;
            }
            if (is_news(w, f)) {
                wanted[n++] = f->path;
                n_taken += pass != 0;
            }
            if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
                code = base_fail(err, BASE_E_CANCELLED, "cancelled");
        }
    }
    /*
     * A request does not wait for the whole index of a large tree: the rest is read while the model computes.
     */
    if (!code) {
        tool__indexer_want(w->indexer, wanted, n, budget);
        w->is_behind = !tool__indexer_help(w->indexer, base_clock_ns() + INDEX_NS, cancel);
        tool__indexer_reap(w->indexer, note_done, w);
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            code = base_fail(err, BASE_E_CANCELLED, "cancelled");
    }
    free(wanted);
    return code;
}

int tool_workspace_refresh(tool_workspace *w, char ***ret_changed, const atomic_bool *cancel, base_err *err)
{
    const int code = tool__workspace_read_again(w, cancel, err);
    if (!code) check_marks(w, ret_changed);
    return code;
}

void tool__workspace_wrote(
    tool_workspace *w, const char *path, const char *text, size_t n, const char *version)
{
    if (text)
        tool_workspace_mark_shown(w, path, version);
    else if (find_mark(w, path))
        find_mark(w, path)->version[0] = '\0';
    if (!w->is_listed) return; /* the first listing will see it */
    bool found;
    size_t at = tool__listing_find(&w->listing, path, &found);
    if (!found && text) {
        base_grow(&w->listing.files, &w->listing.cap, w->listing.n + 1, sizeof *w->listing.files);
        memmove(
            &w->listing.files[at + 1], &w->listing.files[at], (w->listing.n - at) * sizeof *w->listing.files);
        w->listing.files[at] = (tool_listed){.path = base_xstrdup(path), .size = -1};
        w->listing.n++;
    }
    if (!text) {
        tool__indexer_wrote(w->indexer, path, NULL, 0);
        if (!found) return;
        free(w->listing.files[at].path);
        memmove(&w->listing.files[at], &w->listing.files[at + 1],
            (w->listing.n - at - 1) * sizeof *w->listing.files);
        w->listing.n--;
        return;
    }
    tool_listed *f = &w->listing.files[at];
    struct stat st;
    if (n <= TOOL_MAX_INDEXED && !tool__is_binary(text, n)) {
        tool__indexer_wrote(w->indexer, path, text, n);
        f->is_indexed = true;
        if (stat_listed(w, path, &st)) remember(f, &st);
    }
}

int tool_workspace_files(tool_workspace *w, const char ***ret, size_t *ret_n)
{
    int code = tool__workspace_list(w, NULL, NULL);
    if (code) return code;
    const char **paths = base_xcalloc(w->listing.n + 1, sizeof *paths);
    for (size_t i = 0; i < w->listing.n; i++) paths[i] = w->listing.files[i].path;
    *ret = paths;
    *ret_n = w->listing.n;
    return BASE_OK;
}

int tool_workspace_read(tool_workspace *w, const char *path, size_t max_bytes, base_buf *out, base_err *err)
{
    char *clean = NULL;
    int code = tool__path_clean(&w->root, path, &clean, err);
    if (code) return code;
    tool_file f = {0};
    code = tool__file_read(&w->root, clean, max_bytes, &f, err);
    if (!code) base_buf_add(out, f.text.data, f.text.len);
    tool__file_free(&f);
    free(clean);
    return code;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int tool_workspace_folder(tool_workspace *w, const char *path, char ***ret, base_err *err)
{
    char *clean = NULL;
    int code = tool__path_clean(&w->root, path, &clean, err);
    if (code) return code;
    const int fd = tool__path_open(&w->root, clean, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        code = base_fail_sys(err, "%s", clean);
        if (fd >= 0) close(fd);
        free(clean);
        return code;
    }
    char **names = base_xcalloc(1, sizeof *names);
    size_t n = 0, cap = 1;
    for (struct dirent *e; (e = readdir(folder));) {
        if (e->d_name[0] == '.' && strspn(e->d_name, ".") == strlen(e->d_name)) continue;
        base_grow(&names, &cap, n + 2, sizeof *names);
        names[n++] = base_xstrdup(e->d_name);
        names[n] = NULL;
    }
    closedir(folder);
    free(clean);
    if (n) qsort(names, n, sizeof *names, by_name);
    *ret = names;
    return BASE_OK;
}
