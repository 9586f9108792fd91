/* Telling, moving aside, putting back (contract: git_mend.h). */
#include "tools/guard/git_mend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "tools/guard/below.h"
#include "tools/guard/own_files.h"

/* A path may have 4,096 bytes, whole screens of them: the middle of a long one is left out, since its ends tell it apart. */
static void show_path(base_buf *out, const char *path)
{
    enum { MOST = 160, END = 75 };
    base_buf shown = {0};
    tool__path_show(&shown, path);
    if (shown.len > MOST)
        base_buf_printf(out, "%.*s[...]%s", END, shown.data, shown.data + shown.len - END);
    else
        base_buf_puts(out, shown.data ? shown.data : "");
    base_buf_free(&shown);
}

void tool__git_tell(
    tool_git_check *c, const char *path, const char *what, const char *where, const char *behind)
{
    if (++c->n_told > TOOL_GIT_MOST_TOLD) return;
    base_buf_printf(c->out, "The command %s ", what);
    show_path(c->out, path);
    base_buf_puts(c->out, behind);
    if (where) {
        base_buf_puts(c->out, " What it left there lies in ");
        show_path(c->out, where);
        base_buf_puts(c->out, ".");
    }
    base_buf_putc(c->out, '\n');
}

bool tool__git_set_aside(tool_git_check *c, const char *path, const char *what, const char *behind)
{
    base_buf where = {0};
    struct stat st;
    if (!tool__look(&c->w->root, path, &st) && (errno == ENOENT || errno == ENOTDIR))
        return true; /* it went with its folder */
    bool done = !tool__aside_move(c->w, path, &where);
    tool__git_tell(c, path, what, done ? where.data : NULL,
        done ? behind
             : ", which git or kvist would obey later, and it could "
               "not be moved aside. Look at it before going on here.");
    base_buf_free(&where);
    return done;
}

/* A folder above it is a link now: that goes aside, for what lies behind it is not what was looked at. */
static void clear_way(tool_git_check *c, const char *path)
{
    struct stat st;
    bool is_clear = false;
    for (const char *end = strchr(path, '/'); end && !is_clear; end = strchr(end + 1, '/')) {
        char *link = base_xstrndup(path, (size_t)(end - path));
        const tool_kept *before = tool__kept_find(&c->g->kept, link);
        is_clear = tool__look(&c->w->root, link, &st) && S_ISLNK(st.st_mode) &&
                   !(before && S_ISLNK(before->st.st_mode)) &&
                   tool__git_set_aside(
                       c, link, "put", ", a link on the way to what git runs or obeys: it was moved aside.");
        free(link);
    }
}

/* Who would have obeyed it. */
static const char *obeyed_by(const tool_git_check *c, const char *path)
{
    return tool__own_file_is(&c->w->root, path) ? ", which kvist itself obeys"
                                                : ", which git would run or obey later";
}

void tool__git_mend(tool_git_check *c, const tool_kept *item, const char *path, tool_kept_change change)
{
    static const char *const words[] = {[TOOL_KEPT_CHANGED] = "changed", [TOOL_KEPT_GONE] = "removed"};
    base_buf where = {0}, was = {0}, why = {0};
    base_err err = {0};
    if (change == TOOL_KEPT_CHANGED) {
        clear_way(c, path);
        change = tool__kept_compare(&c->w->root, item, path);
        if (change == TOOL_KEPT_SAME) return;
    }
    base_buf_puts(&why, obeyed_by(c, path));
    if (change == TOOL_KEPT_NEW) {
        base_buf_puts(&why, ": it was moved aside.");
        tool__git_set_aside(c, path, "made", why.data);
    } else if (change == TOOL_KEPT_CHANGED && tool__aside_move(c->w, path, &where)) {
        base_buf_puts(&why, ", and it could not be moved aside. Look at it before going on here.");
        tool__git_tell(c, path, words[change], NULL, why.data);
    } else if (!tool__kept_put_back(&c->w->root, item, path, &err)) {
        base_buf_puts(&why, ": it was put back.");
        tool__git_tell(c, path, words[change], where.data, why.data);
    } else {
        base_buf_printf(&why, ", and it could not be put back (%s).",
            err.code == BASE_E_NOT_FOUND ? "its former content was too large to be held, or unreadable"
                                         : err.msg);
        if (err.code != BASE_E_NOT_FOUND && S_ISREG(item->st.st_mode) &&
            !tool__aside_keep(c->w, item->path, &item->bytes, &was)) {
            base_buf_puts(&why, " What was there lies in ");
            show_path(&why, was.data);
            base_buf_putc(&why, '.');
        }
        base_buf_puts(&why, " Look at it before going on here.");
        tool__git_tell(c, path, words[change], where.data, why.data);
    }
    base_buf_free(&was);
    base_buf_free(&where);
    base_buf_free(&why);
}

/* Closed to its owner a folder hides what a command put in it; opened to others it lets them put something there. */
static void restore_mode(tool_git_check *c, const char *path, dev_t dev, ino_t ino, mode_t mode)
{
    struct stat st;
    int fd = tool__path_open(&c->w->root, path, O_PATH | O_DIRECTORY);
    if (fd < 0) return;
    if (!fstat(fd, &st) && st.st_dev == dev && st.st_ino == ino && st.st_mode != mode)
        tool__git_tell(c, path, "changed the mode of", NULL,
            tool__path_chmod(fd, mode)
                ? ", a folder of what git runs or obeys, and it could "
                  "not be given back. Do that before using git here."
                : ", a folder of what git runs or obeys: it has the one again that it had.");
    close(fd);
}

/* Repositories before what lies in them; both lists have a folder before its inner ones. */
void tool__git_restore_modes(tool_git_check *c)
{
    for (size_t i = 0; i < c->g->walk.n_repos; i++) {
        const tool_repo *r = &c->g->walk.repos[i];
        if (S_ISDIR(r->mode)) restore_mode(c, r->path, r->dev, r->ino, r->mode);
    }
    for (size_t i = 0; i < c->g->kept.n; i++) {
        const tool_kept *item = &c->g->kept.items[i];
        if (S_ISDIR(item->st.st_mode))
            restore_mode(c, item->path, item->st.st_dev, item->st.st_ino, item->st.st_mode);
    }
}
