/*
 * git looks at the names of an index when it adds one, not when it reads the file: `git checkout -- .` writes whatever an index names,
 * into .git/hooks and beside the working tree too, and runs the hook at once. Read here, because libgit2 reads no split and no
 * sparse index. The format: gitformat-index(5).
 */
#include "tools/guard/git_index.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "tools/file/safe_path.h"

enum { N_HEAD = 12, N_STAT = 40, LONG_NAME = 0xfff, IS_EXTENDED = 0x4000 };
static const size_t most_bytes = (size_t)1 << 30;

static bool leaves_the_tree(const char *path)
{
    if (!*path) return false; /* a split index names an entry of its other file so */
    for (const char *p = path;;) {
        size_t n = strcspn(p, "/");
        if (!n || (n == 1 && *p == '.') || (n == 2 && !strncmp(p, "..", 2)) ||
            (n == 4 && !strncasecmp(p, ".git", 4)))
            return true;
        if (!p[n]) return false;
        p += n + 1;
        if (!*p) return false; /* a folder of a sparse index ends in a slash */
    }
}

static uint32_t number(const char *p, int bytes)
{
    uint32_t n = 0;
    for (int i = 0; i < bytes; i++) n = n << 8 | (uint8_t)p[i];
    return n;
}

/* How many bytes of the name before go; false: the file ends first. */
static bool read_strip(const char **p, const char *end, size_t *ret)
{
    size_t n = 0;
    for (bool is_first = true;; is_first = false) {
        if (*p >= end || n > LONG_NAME << 8) return false;
        uint8_t c = (uint8_t) * (*p)++;
        n = (is_first ? 0 : (n + 1) << 7) + (c & 127);
        if (!(c & 128)) break;
    }
    *ret = n;
    return true;
}

const char *tool__git_index_bytes_refused(const char *data, size_t n, bool is_sha256)
{
    const size_t hash_bytes = is_sha256 ? 32 : 20;
    static const char broken[] = "it cannot be read";
    static const char bad[] = "git would write into .git or outside of the tree";
    const char *end = data + n, *p = data + N_HEAD;
    if (n < N_HEAD || memcmp(data, "DIRC", 4)) return broken;
    uint32_t version = number(data + 4, 4), n_entries = number(data + 8, 4);
    if (version < 2 || version > 4) return broken;
    base_buf name = {0};
    base_buf_puts(&name, "");
    const char *why = NULL;
    for (uint32_t i = 0; i < n_entries && !why; i++) {
        const char *entry = p;
        size_t strip = name.len;
        if ((size_t)(end - p) < N_STAT + hash_bytes + 4) {
            why = broken;
            break;
        }
        p += N_STAT + hash_bytes;
        uint32_t flags = number(p, 2);
        p += version >= 3 && (flags & IS_EXTENDED) ? 4 : 2;
        if (version == 4 && (!read_strip(&p, end, &strip) || strip > name.len)) why = broken;
        const char *stop = why ? NULL : memchr(p, 0, (size_t)(end - p));
        if (!stop) {
            why = broken;
            break;
        }
        name.len -= strip;
        base_buf_add(&name, p, (size_t)(stop - p));
        /* The length stands there too, and git goes by it. */
        if ((flags & LONG_NAME) != (name.len < LONG_NAME ? name.len : LONG_NAME)) why = broken;
        if (!why && leaves_the_tree(name.data)) why = bad;
        p = version == 4 ? stop + 1 : entry + (((size_t)(stop - entry) + 8) & ~(size_t)7);
        if (p > end) why = broken;
    }
    base_buf_free(&name);
    return why;
}

const char *tool__git_index_refused(const tool_root *root, const char *path, bool is_sha256)
{
    struct stat st;
    tool_file f = {0};
    if (fstatat(root->fd, path, &st, AT_SYMLINK_NOFOLLOW) || (S_ISREG(st.st_mode) && !st.st_size))
        return NULL;
    if (!S_ISREG(st.st_mode) || tool__file_read(root, path, most_bytes, &f, NULL))
        return "it is no file of a usual kind and size";
    const char *why = tool__git_index_bytes_refused(f.text.data, f.text.len, is_sha256);
    tool__file_free(&f);
    return why;
}
