/*
 * What somebody obeys unasked (orders.h) in any folder of the tree, and what git or kvist itself runs or obeys. A model that may write it
 * unasked could give itself orders, or run a program by them, so such a change is asked for in every mode.
 *
 * Some file systems take other spellings for the same name: letter case (all of Unicode's folding that reaches these letters),
 * characters that are not shown, blanks and points at the end, short names (KVIST~1), a stream behind a colon. And one of these
 * names, or what lies in such a folder, may be a link to what is written.
 */
#include "tools/guard/obeyed.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tools/guard/below.h"
#include "tools/guard/git_obeys.h"
#include "tools/guard/orders.h"
#include "base/path.h"

static bool is_invisible(uint32_t c)
{
    return c == 0xad || c == 0x34f || (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || (c >= 0xfe00 && c <= 0xfe0f) || c == 0xfeff;
}

/* One part of a path as the most forgiving file system would compare it. */
static void fold(const char *part, size_t n, base_buf *out)
{
    const size_t from = out->len;
    base_buf_puts(out, "");
    for (size_t i = 0; i < n && part[i] != ':';) {
        uint32_t c;
        size_t len = base_utf8_decode(part + i, n - i, &c);
        if (c == 0x17f) c = 's';  /* the long s */
        if (c == 0x212a) c = 'k'; /* the sign of Kelvin */
        if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
        if (c < 0x80)
            base_buf_putc(out, (char)c);
        else if (!is_invisible(c))
            base_buf_add(out, part + i, len);
        i += len;
    }
    while (out->len > from && (out->data[out->len - 1] == '.' || out->data[out->len - 1] == ' '))
        out->data[--out->len] = '\0';
}

static bool starts_as(const char *a, const char *b, size_t n)
{
    return !strncasecmp(a, b, n); /* of plain letters: the rest is folded already */
}

/* "kvist~1" for ".kvist", "pre-co~1.yam" for ".pre-commit-config.yaml": at most six first letters without points. */
static bool is_short_name(const char *folded, size_t n, const char *name)
{
    const char *tilde = memchr(folded, '~', n), *end = folded + n;
    const size_t kept = tilde ? (size_t)(tilde - folded) : 0;
    while (*name == '.') name++;
    if (!kept || kept > 6 || !starts_as(folded, name, kept)) return false;
    const char *rest = tilde + 1 + strspn(tilde + 1, "0123456789");
    return rest > tilde + 1 && (rest == end || (rest < end && *rest == '.' && end - rest <= 4));
}

/* Is a folded path an order of this name, or in the folder that it is ("name/")? */
static bool is_order(const char *folded, const char *name)
{
    for (;;) {
        const size_t n = strcspn(folded, "/"), m = strcspn(name, "/");
        char *part = base_xstrndup(name, m);
        const bool is_same = (n == m && starts_as(folded, part, n)) || is_short_name(folded, n, part);
        free(part);
        if (!is_same || !name[m]) return is_same && !folded[n]; /* a file: the path ends with it */
        if (!name[m + 1]) return true;
        if (!folded[n]) return false;
        folded += n + 1;
        name += m + 1;
    }
}

/* Whose order it is by its name, in whatever folder; NULL: nobody's. */
static const char *ordered_by_name(const char *path)
{
    const char *who = NULL;
    base_buf folded = {0};
    for (const char *p = path;; p++) {
        const size_t n = strcspn(p, "/");
        fold(p, n, &folded);
        p += n;
        if (!*p) break;
        base_buf_putc(&folded, '/');
    }
    for (const char *p = folded.data; p && !who; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        for (size_t i = 0; i < tool__n_orders && !who; i++)
            if (is_order(p, tool__orders[i].path)) who = tool__orders[i].who;
    base_buf_free(&folded);
    return who;
}

static bool is_at_or_below(const char *path, const char *place)
{
    size_t n = strlen(place);
    return !strncmp(path, place, n) && (!path[n] || path[n] == '/' || !n);
}

/* What links are looked for: to `path` below the root, which is `full` from "/". */
typedef struct link_search {
    const tool_root *root;
    const char *path, *full;
    uint32_t n_left; /* how many more entries of this order's folder are looked at */
} link_search;

/* Is the path what this link names, or below it? By the text too: its target may be missing yet. */
static bool link_reaches(const link_search *s, const char *link)
{
    char target[4096], *clean = NULL;
    base_buf given = {0};
    const ssize_t n = readlinkat(s->root->fd, link, target, sizeof target - 1);
    if (n < 0) return false;
    target[n] = '\0';
    if (*target != '/') base_buf_printf(&given, "%s/%s/../", s->root->path, link);
    base_buf_puts(&given, target);
    base_buf whole = {0};
    base_buf_printf(&whole, "%s/%s", s->root->path, link);
    char *real = realpath(whole.data, NULL);
    bool reaches = real && is_at_or_below(s->full, real);
    if (!reaches && !tool__path_clean(s->root, given.data, &clean, NULL))
        reaches = is_at_or_below(s->path, clean);
    free(real);
    free(clean);
    base_buf_free(&given);
    base_buf_free(&whole);
    return reaches;
}

/* A link on the way to it, or one in it that leads there: .vscode/tasks.json -> ../tasks.json. */
static bool inner_link_reaches(link_search *s, const char *at, uint32_t depth)
{
    enum { MOST_DEPTH = 8 };
    struct stat st;
    bool reaches = false;
    if (!tool__look(s->root, at, &st)) return false;
    if (S_ISLNK(st.st_mode)) return link_reaches(s, at);
    const int fd = S_ISDIR(st.st_mode) && depth < MOST_DEPTH ? tool__path_open_folder(s->root, at) : -1;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0) close(fd);
    for (const struct dirent *e; dir && !reaches && s->n_left && (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        s->n_left--;
        char *inner = base_fs_join(at, e->d_name);
        reaches = inner_link_reaches(s, inner, depth + 1);
        free(inner);
    }
    if (dir) closedir(dir);
    return reaches;
}

/* An order's name in this folder ("": the top, else "a/b/"): its first part may be a link as well as its second. */
static bool order_reaches(link_search *s, const char *folder, const char *name)
{
    struct stat st;
    base_buf at = {0};
    bool reaches = false, is_there = true;
    const size_t whole = tool__order_length(name);
    for (size_t n = 0; is_there && !reaches && n < whole;) {
        n += (n > 0) + strcspn(name + n + (n > 0), "/");
        base_buf_clear(&at);
        base_buf_printf(&at, "%s%.*s", folder, (int)n, name);
        is_there = tool__look(s->root, at.data, &st);
        if (is_there && (S_ISLNK(st.st_mode) || n == whole)) reaches = inner_link_reaches(s, at.data, 0);
        if (is_there && S_ISLNK(st.st_mode)) break;
    }
    base_buf_free(&at);
    return reaches;
}

/* Whose order it is because a link of an order's name, in one of the folders above the path, leads to it. */
static const char *ordered_by_link(const tool_root *root, const char *path)
{
    enum { MOST_ENTRIES = 16384, MOST_OF_ONE = 1024 };
    char *real = realpath(root->path, NULL);
    base_buf full = {0};
    const char *who = NULL;
    if (!real) return NULL;
    base_buf_printf(&full, "%s/%s", strcmp(real, "/") ? real : "", path);
    link_search s = {.root = root, .path = path, .full = full.data};
    uint32_t n_left = MOST_ENTRIES;
    for (const char *end = path; end && !who; end = strchr(end + 1, '/')) {
        char *folder = base_xstrndup(path, (size_t)(end - path) + (end != path));
        for (size_t i = 0; !who && i < tool__n_orders; i++) {
            const uint32_t given = n_left < MOST_OF_ONE ? n_left : MOST_OF_ONE;
            s.n_left = given;
            if (order_reaches(&s, folder, tool__orders[i].path)) who = tool__orders[i].who;
            n_left -= given - s.n_left;
        }
        free(folder);
    }
    base_buf_free(&full);
    free(real);
    return who;
}

/*
 * git takes a folder with HEAD, objects and refs for a repository and obeys the configuration in it. Without a HEAD it is none, so
 * that name asks, and all in a folder that has one.
 */
static bool makes_repository(const tool_root *root, const char *path)
{
    struct stat st;
    bool found = false;
    base_buf name = {0};
    const char *own = base_path_name(path);
    fold(own, strlen(own), &name);
    found = !strcmp(name.data, "head");
    for (const char *end = path; end && !found; end = strchr(end + 1, '/')) {
        base_buf_clear(&name);
        base_buf_printf(&name, "%.*s%sHEAD", (int)(end - path), path, end == path ? "" : "/");
        found = !fstatat(root->fd, name.data, &st, AT_SYMLINK_NOFOLLOW);
    }
    base_buf_free(&name);
    return found;
}

typedef struct obeyed_search {
    const char *path;
    bool found;
} obeyed_search;

static void compare_obeyed(void *user, const char *named, bool is_hooks)
{
    obeyed_search *s = user;
    size_t n = strlen(named);
    if (is_hooks && n > 2 && !strcmp(named + n - 2, "/_"))
        n -= 2; /* husky: the scripts lie beside that folder */
    s->found |= !strncmp(s->path, named, n) && (!s->path[n] || s->path[n] == '/');
}

/* What git's configuration names in the tree: hooks (husky), included files, programs. */
static bool is_named_by_git(const tool_root *root, const char *path)
{
    obeyed_search s = {.path = path};
    tool__git_obeyed(root, ".git/config", NULL, compare_obeyed, &s);
    if (!s.found) tool__git_obeyed_by_pointer(root, "", compare_obeyed, &s);
    if (!s.found) tool__git_obeyed(root, NULL, NULL, compare_obeyed, &s);
    return s.found;
}

/* A tree of a person's dotfiles may hold kvist's own configuration, and what they approved. */
static bool is_of_kvist(const tool_root *root, const char *path)
{
    static const base_home homes[] = {BASE_HOME_CONFIG, BASE_HOME_DATA, BASE_HOME_STATE};
    char *top = realpath(root->path, NULL);
    base_buf full = {0};
    bool found = false;
    base_buf_printf(&full, "%s/%s", top && strcmp(top, "/") ? top : "", path);
    for (size_t i = 0; i < sizeof homes / sizeof *homes && !found; i++) {
        char *home = base_fs_home(homes[i], NULL), *real = realpath(home, NULL);
        found = is_at_or_below(full.data, real ? real : home);
        free(home);
        free(real);
    }
    base_buf_free(&full);
    free(top);
    return found;
}

const char *tool__path_obeyed_by(const tool_root *root, const char *path)
{
    const char *who = ordered_by_name(path);
    if (!who) who = ordered_by_link(root, path);
    if (!who && (makes_repository(root, path) || is_named_by_git(root, path))) who = "git";
    return !who && is_of_kvist(root, path) ? "kvist" : who;
}
