/*
 * Files that kvist, or another agent, obeys in its next session: AGENTS.md in any folder, and what lies under .kvist/ or
 * .agents/; and what git runs or obeys. A model that may write them unasked could give itself orders, so such a change is asked for in every mode.
 *
 * Some file systems take other spellings for the same name: letter case (all of Unicode's folding that reaches these letters),
 * characters that are not shown, blanks and points at the end, short names (KVIST~1), a stream behind a colon. And one of these
 * names may be a link to what is written.
 */
#include "tools/guard/obeyed.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tools/guard/git_obeys.h"

static const char *const obeyed_files[] = {"agents.md"};
static const char *const obeyed_folders[] = {".kvist", ".agents"};
/* As they may be spelled where they are links; a file system that folds case answers to these as well. */
static const char *const obeyed_names[] = {"AGENTS.md", ".kvist", ".agents"};

static bool is_invisible(uint32_t c)
{
    return c == 0xad || c == 0x34f || (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || (c >= 0xfe00 && c <= 0xfe0f) || c == 0xfeff;
}

/* One part of a path as the most forgiving file system would compare it. */
static void fold(const char *part, size_t n, base_buf *out)
{
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
    while (out->len && (out->data[out->len - 1] == '.' || out->data[out->len - 1] == ' '))
        out->data[--out->len] = '\0';
}

/* "KVIST~1" for ".kvist": a short name keeps the first letters without points, at most six. */
static bool is_short_name(const char *folded, const char *name)
{
    const char *tilde = strchr(folded, '~');
    size_t n = tilde ? (size_t)(tilde - folded) : 0;
    while (*name == '.') name++;
    return n && n <= 6 && !strncmp(folded, name, n) && strspn(tilde + 1, "0123456789") == strlen(tilde + 1);
}

static bool is_one_of(const char *folded, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(folded, names[i]) || is_short_name(folded, names[i])) return true;
    return false;
}

static bool has_obeyed_part(const char *path)
{
    bool found = false;
    for (const char *p = path; !found;) {
        size_t n = strcspn(p, "/");
        base_buf part = {0};
        fold(p, n, &part);
        found = is_one_of(part.data, obeyed_folders, sizeof obeyed_folders / sizeof *obeyed_folders) ||
                (!p[n] && is_one_of(part.data, obeyed_files, sizeof obeyed_files / sizeof *obeyed_files));
        base_buf_free(&part);
        if (!p[n]) break;
        p += n + 1;
    }
    return found;
}

static bool is_at_or_below(const char *path, const char *place)
{
    size_t n = strlen(place);
    return !strncmp(path, place, n) && (!path[n] || path[n] == '/' || !n);
}

/* Is `path` (full: from "/") what this link of folder `below` names, or below it? By the text too: its target may be missing yet. */
static bool link_reaches(
    const tool_root *root, const char *below, const char *name, const char *path, const char *full)
{
    char target[4096], *clean = NULL;
    base_buf given = {0};
    int folder = tool__path_open(root, below, O_RDONLY | O_DIRECTORY, 0);
    ssize_t n = folder < 0 ? -1 : readlinkat(folder, name, target, sizeof target - 1);
    if (folder >= 0) close(folder);
    if (n < 0) return false;
    target[n] = '\0';
    if (*target != '/') base_buf_printf(&given, "%s/%s/", root->path, below);
    base_buf_puts(&given, target);
    char *real = realpath(given.data, NULL);
    bool reaches = real && is_at_or_below(full, real);
    if (!reaches && !tool__path_clean(root, given.data, &clean, NULL)) reaches = is_at_or_below(path, clean);
    free(real);
    free(clean);
    base_buf_free(&given);
    return reaches;
}

/* A link of an obeyed name in one of the folders above the path. */
static bool is_link_target(const tool_root *root, const char *path)
{
    char *real = realpath(root->path, NULL);
    base_buf full = {0};
    bool reaches = false;
    if (!real) return false;
    base_buf_printf(&full, "%s/%s", strcmp(real, "/") ? real : "", path);
    for (const char *end = path; end && !reaches; end = strchr(end + 1, '/')) {
        char *below = base_xstrndup(path, (size_t)(end - path));
        for (size_t i = 0; !reaches && i < sizeof obeyed_names / sizeof *obeyed_names; i++)
            reaches = link_reaches(root, below, obeyed_names[i], path, full.data);
        free(below);
    }
    base_buf_free(&full);
    free(real);
    return reaches;
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
    const char *slash = strrchr(path, '/');
    fold(slash ? slash + 1 : path, strlen(slash ? slash + 1 : path), &name);
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
    tool__git_obeyed(root, ".git/config", compare_obeyed, &s);
    if (!s.found) tool__git_obeyed(root, NULL, compare_obeyed, &s);
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

bool tool__path_is_obeyed(const tool_root *root, const char *path)
{
    return has_obeyed_part(path) || is_link_target(root, path) || makes_repository(root, path) ||
           is_named_by_git(root, path) || is_of_kvist(root, path);
}
