/*
 * Files, links and folders as they were at one moment, to see later what of them changed and to put back what
 * was there (kept.c). Everything is looked at by lstat, through no link.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_KEPT_H
#define KVIST_TOOLS_GUARD_KEPT_H

#include "tools/file/access_list.h"
#include "tools/file/safe_path.h"

/*
 * One of them. What could not be looked at is not "was not there": then `failed` says why and nothing is ever
 * done to it.
 */
typedef struct tool_kept {
    char *path;              /* below the root */
    struct stat st;          /* st_mode 0: nothing was there */
    int failed;              /* errno of looking at it; 0 */
    base_buf bytes;          /* a file's content, a link's target; only when is_held */
    tool_access_list access; /* of a file or folder, as far as it could be read */
    bool is_held;
    bool is_settled; /* it had not changed for a while when it was taken: an equal ctime means equal bytes */
} tool_kept;

typedef struct tool_kept_list {
    tool_kept *items; /* ascending by path after tool__kept_sort: a folder before what it holds */
    size_t n, cap, held_bytes;
    bool is_cut; /* there was more than is kept */
} tool_kept_list;

/* Is this path of no interest? (What lies in a folder that is left out is left out.) */
typedef bool tool_kept_skips_fn(const char *path);

/*
 * Adds what is at `path`, also when nothing is; a folder with all that it holds. earlier (may be NULL, else
 * sorted): bytes of what has not changed since are taken from there.
 */
void tool__kept_add(const tool_root *root, const char *path, tool_kept_skips_fn *skips,
    const tool_kept_list *earlier, tool_kept_list *list);
void tool__kept_sort(tool_kept_list *list);
const tool_kept *tool__kept_find(const tool_kept_list *list, const char *path); /* NULL: not in it */
void tool__kept_free(tool_kept_list *list);

typedef enum tool_kept_change {
    TOOL_KEPT_SAME,
    TOOL_KEPT_CHANGED,
    TOOL_KEPT_GONE,
    TOOL_KEPT_NEW
} tool_kept_change;

/* How what is at `path` now (NULL: at its own) compares. Reads bytes only where lstat leaves a doubt. */
tool_kept_change tool__kept_compare(const tool_root *root, const tool_kept *item, const char *path);

/* A folder whose entries cannot have changed since. */
bool tool__kept_has_same_names(const tool_root *root, const tool_kept *item, const char *path);

/* Makes it again where nothing is now: BASE_E_NOT_FOUND when its bytes are not held. Never replaces anything. */
int tool__kept_put_back(const tool_root *root, const tool_kept *item, const char *path, base_err *err);

#endif
