/*
 * Files below the root of the tree, opened so that nothing outside of it, nothing under a .git and no symbolic
 * link is ever reached.
 *
 * Thread: any; a root is only read once it is made.
 */
#ifndef KVIST_TOOLS_FILE_SAFE_PATH_H
#define KVIST_TOOLS_FILE_SAFE_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Bounds of ours. A file above MAX_FILE is left to the shell. */
#define TOOL_MAX_FILE ((size_t)16 << 20)
#define TOOL_MAX_PATH 4000

typedef struct tool_root {
    int fd;
    char *path;       /* absolute, no trailing slash (but "/") */
    bool has_openat2; /* false: walked a folder at a time, which refuses the same */
    bool is_bare;     /* a repository without files: everything is refused */
} tool_root;

/*
 * Makes what a model or a person wrote a path below the root: "./a//b", "/abs/root/a", "\"a\\nb\"" (as
 * tool__path_show writes it). BASE_E_USAGE with a sentence: outside of the tree, under a .git, empty, too
 * long. "" stands for the root itself.
 */
int tool__path_clean(const tool_root *root, const char *given, char **ret, base_err *err);

/*
 * A path as text: quoted with C escapes when it holds control characters, quotes, backslashes or invalid
 * UTF-8.
 */
void tool__path_show(base_buf *out, const char *path);
/* The reverse; false when it is no quoted path. */
bool tool__path_unquote(const char *shown, size_t n, base_buf *out);

/* A descriptor of what is there, or -1 with errno. `path` is clean; "" opens the root's folder again. */
int tool__path_open(const tool_root *root, const char *path, int flags);
/* Changes the mode of what an O_PATH descriptor is open on, which fchmod(2) refuses: 0, or -1 with errno. */
int tool__path_chmod(int fd, mode_t mode);
/*
 * A folder to be listed: a descriptor or -1 with errno. Where this user owns it and took the right to read away, it is
 * given for that moment; what cannot be listed is no empty folder, and a hook in it runs all the same.
 */
int tool__path_open_folder(const tool_root *root, const char *path);
/*
 * The folder that holds `path`, made on demand when `make`; *ret_name points into path. *ret_made: the first
 * folder made, bytes of path (0: none).
 */
int tool__path_open_parent(
    const tool_root *root, const char *path, bool make, const char **ret_name, size_t *ret_made);

typedef struct tool_file {
    base_buf text;
    char version[65]; /* sha256 */
    struct stat st;
    bool has_mark; /* the text begins behind a byte order mark, which the file has (tool__file_part_mark) */
} tool_file;
void tool__file_free(tool_file *f);
/* Takes a byte order mark (UTF-8's) out of the text that was read: line 1 then begins where the others do. */
void tool__file_part_mark(tool_file *f);
#define TOOL_MARK "\xEF\xBB\xBF"

/*
 * Reads a regular file. Sentences for: missing (BASE_E_NOT_FOUND), a folder, FIFO, device, link
 * (BASE_E_UNSUPPORTED), too large (BASE_E_LIMIT).
 */
int tool__file_read(const tool_root *root, const char *path, size_t max_bytes, tool_file *ret, base_err *err);

/* A NUL byte anywhere: what stands behind it would not be shown. (git looks at 8,000 bytes.) */
bool tool__is_binary(const char *text, size_t n);

#endif
