/*
 * What git runs and obeys of its repositories: configuration, hooks, attributes, and what in the tree these name or lead to by links.
 * It is kept (kept.h) before a command, to be compared after it.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_GUARDED_H
#define KVIST_TOOLS_GUARD_GIT_GUARDED_H

#include "tools/guard/git_walk.h"
#include "tools/guard/kept.h"

/* Below a repository's folder, NULL-terminated. Folders with all that they hold. */
extern const char *const tool__git_guarded_names[];

/* A path in the tree that git's configuration, a link of a repository or kvist's own folders name. */
typedef struct tool_git_place {
    char *path;
    bool is_hooks; /* a folder in the tree */
    bool is_way;   /* a link that other places lie behind: it is kept, and what it leads to is not */
} tool_git_place;

typedef struct tool_git_places {
    tool_git_place *all;
    size_t n, cap;
} tool_git_places;
void tool__git_places_free(tool_git_places *p);

/* What makes git run nothing: samples of hooks, lists that `git gc` writes (tool_kept_skips_fn). */
bool tool__git_guarded_skips(const char *path);

/*
 * Keeps what all repositories of the walk have, what kvist itself obeys in the tree (own_files.h), and the places that these name.
 * earlier (may be NULL): what was kept before the last command. *kept is sorted.
 */
void tool__git_guarded_take(const tool_root *root, const tool_git_walk *walk, const tool_kept_list *earlier,
    tool_kept_list *kept, tool_git_places *places);

/*
 * The same of one repository, without kvist's own; sorted. folder: the repository's below the root ("": the root itself).
 */
void tool__git_guarded_keep(const tool_root *root, const char *folder, tool_kept_list *ret);

#endif
