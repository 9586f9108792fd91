/*
 * Which files a configuration of git includes, and what of them nobody may open: a named pipe, a device or a socket is waited for
 * without an end, and libgit2 opens all of them with the configuration itself.
 */
#ifndef KVIST_TOOLS_FILE_GIT_INCLUDES_H
#define KVIST_TOOLS_FILE_GIT_INCLUDES_H

#include <stddef.h>

/* Gets the absolute path of each file that is included, there or not, with "." and ".." in it. */
typedef void tool_git_include_fn(void *user, const char *path);
/*
 * Looks at a configuration (absolute path) and all that it includes, under whatever condition, as libgit2 reads it: to ten files deep,
 * from the file that names another, "~/" in the home folder. Nothing but regular files is opened. fn may be NULL.
 *
 * The path of the first that would hold libgit2 up: no regular file and no folder, one more than a thousand includes, or one with which
 * more than 4 MiB would have been read (a file counts each time that it is included); NULL: none. The caller frees.
 */
char *tool__git_includes(const char *config, tool_git_include_fn *fn, void *user);
/* The same of the person's and the machine's configuration. */
char *tool__git_includes_of_person(tool_git_include_fn *fn, void *user);

#endif
