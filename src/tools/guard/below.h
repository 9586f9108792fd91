/* Small questions about what lies below a root, for the files of this folder. */
#ifndef KVIST_TOOLS_GUARD_BELOW_H
#define KVIST_TOOLS_GUARD_BELOW_H

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/file/safe_path.h"

/* The coarsest clock of a file system in use, FAT's: what is younger may change again within the same time stamp. */
static const int64_t tool__coarse_ns = 2 * (int64_t)1000000000;

static inline int64_t tool__ns_of(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Is `path` below `folder`? By the text of both. */
static inline bool tool__lies_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return !strncmp(path, folder, n) && path[n] == '/';
}

/* lstat below the root; false with errno. */
static inline bool tool__look(const tool_root *root, const char *path, struct stat *ret)
{
    return !fstatat(root->fd, path, ret, AT_SYMLINK_NOFOLLOW);
}

#endif
