/*
 * Files that kvist, or another agent, obeys in its next session: AGENTS.md in any folder, and what lies under .kvist/ or
 * .agents/. A model that may write them unasked could give itself orders, so such a change is asked for in every mode.
 *
 * Some file systems take other spellings for the same name: letter case (all of Unicode's folding that reaches these letters),
 * characters that are not shown, blanks and points at the end, short names (KVIST~1), a stream behind a colon. And one of these
 * names may be a link to what is written.
 */
#include "tools/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/utf8.h"

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

/* Is `full` the target of this link, or below it? A link whose target is missing names what would be made. */
static bool link_reaches(int folder, const char *folder_path, const char *name, const char *full)
{
    char target[4096];
    ssize_t n = readlinkat(folder, name, target, sizeof target - 1);
    if (n < 0) return false;
    target[n] = '\0';
    base_buf given = {0};
    base_buf_printf(&given, "%s%s%s", *target == '/' ? "" : folder_path, *target == '/' ? "" : "/", target);
    char *real = realpath(given.data, NULL);
    if (!real) { /* the folder that it lies in, and its name */
        char *slash = strrchr(given.data, '/'), *parent;
        *slash = '\0';
        parent = realpath(*given.data ? given.data : "/", NULL);
        base_buf joined = {0};
        if (parent) base_buf_printf(&joined, "%s/%s", strcmp(parent, "/") ? parent : "", slash + 1);
        if (parent) real = base_buf_take(&joined);
        free(parent);
    }
    size_t length = real ? strlen(real) : 0;
    bool reaches = real && !strncmp(full, real, length) && (!full[length] || full[length] == '/');
    free(real);
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
    const char *top = strcmp(real, "/") ? real : "";
    base_buf_printf(&full, "%s/%s", top, path);
    for (size_t at = 0; !reaches;) { /* path[0..at) names the folder */
        base_buf folder_path = {0};
        char *below = base_xstrndup(path, at);
        base_buf_printf(&folder_path, "%s/%s", top, below);
        int folder = tool__path_open(root, below, O_RDONLY | O_DIRECTORY, 0);
        for (size_t i = 0; folder >= 0 && !reaches && i < sizeof obeyed_names / sizeof *obeyed_names; i++)
            reaches = link_reaches(folder, folder_path.data, obeyed_names[i], full.data);
        if (folder >= 0) close(folder);
        free(below);
        base_buf_free(&folder_path);
        const char *slash = strchr(path + at + (at > 0), '/');
        if (!slash) break;
        at = (size_t)(slash - path);
    }
    base_buf_free(&full);
    free(real);
    return reaches;
}

bool tool__path_is_obeyed(const tool_root *root, const char *path)
{
    return has_obeyed_part(path) || is_link_target(root, path);
}
