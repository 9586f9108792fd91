/*
 * Every repository below a folder, and whatever git would take for one when somebody steps into it (git_walk.c): ".git" folders, files
 * and links, folders that look like a bare repository, in a repository too. Ignored folders are looked through as well: git status in
 * node_modules/x obeys node_modules/x/.git.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_WALK_H
#define KVIST_TOOLS_GUARD_GIT_WALK_H

#include <dirent.h>

#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

typedef enum tool_repo_kind {
    TOOL_REPO_FOLDER, /* a folder named .git */
    TOOL_REPO_BARE,   /* HEAD, objects and refs (or HEAD and commondir) in any folder */
    TOOL_REPO_POINTER /* a file, link or anything else named .git */
} tool_repo_kind;

typedef struct tool_repo {
    char *path; /* below the root */
    tool_repo_kind kind;
    dev_t dev;
    ino_t ino;
    mode_t mode;
} tool_repo;

/* Where in a repository a folder lies. What git writes into REFS and OBJECTS it puts in its place whole. */
typedef enum tool_repo_part {
    TOOL_PART_NONE, /* in none */
    TOOL_PART_REPO,
    TOOL_PART_REFS,
    TOOL_PART_OBJECTS,
    TOOL_PART_HOOKS
} tool_repo_part;

/* One folder as it was; a subtree stands behind its folder. */
typedef struct tool_walked {
    char *path;
    dev_t dev;
    ino_t ino;
    int64_t ctime_ns;
    uint32_t n_below; /* folders that stand behind this one and lie in it */
    uint8_t has;      /* which names of git's it holds */
    tool_repo_part part;
    bool has_rules;  /* .gitignore and the like */
    bool has_odd;    /* entries that tool__git_walk_is_odd is true for */
    bool is_settled; /* an equal ctime means equal entries */
} tool_walked;

typedef struct tool_git_walk {
    tool_repo *repos;
    size_t n_repos, cap_repos;
    tool_walked *folders;
    size_t n_folders, cap_folders;
    bool is_cut; /* more folders than are looked through */
} tool_git_walk;

/* earlier (may be NULL): the last walk; folders that have not changed since are not read again. */
void tool__git_walk(const tool_root *root, const tool_git_walk *earlier, tool_git_walk *ret);
/*
 * An entry of a repository's folder that git would write through (a link), or that may be the second name of a file which git obeys. Who
 * makes it that changes the folder's ctime: a file gets no second name in a folder without an entry made there.
 */
bool tool__git_walk_is_odd(int folder, const struct dirent *e, tool_repo_part part);
const tool_repo *tool__git_walk_find(const tool_git_walk *w, const char *path); /* NULL: none is there */
/* The path of the folder with this identity; NULL: none was met. */
const char *tool__git_walk_folder(const tool_git_walk *w, dev_t dev, ino_t ino);
bool tool__git_walk_had(const tool_git_walk *w, const char *path); /* was this folder met? */
void tool__git_walk_free(tool_git_walk *w);

#endif
