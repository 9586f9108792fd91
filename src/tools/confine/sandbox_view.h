/*
 * What a confined command sees of the file system: the tree, the system's folders, toolchains and what the person named. All
 * else is not there; of what is, credential files are not. One list serves both walls: a mount namespace is built of it, and
 * Landlock's rules are (sandbox.c).
 *
 *     path                    what stands there
 *     /usr, /etc, ...         themselves, read-only
 *     /home/me                an empty folder in memory, writable
 *     /home/me/.cargo         itself; what is written goes to a layer of the session's (where the kernel has overlays)
 *     /home/me/.cargo/credentials.toml   nothing
 *     /home/me/src/project    the tree, writable
 *
 * Landlock cannot put something else in a path's place. With it alone the session's home stands at a path of its own, to which
 * HOME points, with links to the toolchains; nothing is layered, and names (not contents) below a folder with hidden files show.
 */
#ifndef KVIST_TOOLS_CONFINE_SANDBOX_VIEW_H
#define KVIST_TOOLS_CONFINE_SANDBOX_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* In this order: where two views have one path, the later kind wins. */
typedef enum tool_view_kind {
    TOOL_VIEW_HIDDEN, /* `from` is empty */
    TOOL_VIEW_LINK,   /* `from` is a link's target */
    TOOL_VIEW_READ,
    TOOL_VIEW_LAYER, /* READ, and writes go to `layer` */
    TOOL_VIEW_EMPTY, /* a new folder in memory, for one command; `from` is "" */
    TOOL_VIEW_WRITE
} tool_view_kind;

typedef struct tool_view {
    tool_view_kind kind;
    char *path, *from; /* what stands at `path`; itself in most rows */
    char *layer;       /* the overlay's mount options; NULL: none */
    bool is_folder;
} tool_view;

/* One Landlock rule. */
typedef struct tool_view_rule {
    char *path;
    bool is_folder, writes, lists_only, writes_only;
} tool_view_rule;

typedef struct tool_views {
    tool_view *all; /* a folder stands before what lies in it */
    size_t n, cap;
    tool_view_rule *rules;
    size_t n_rules, cap_rules;
    char *home; /* the command's HOME */
    /* what it finds there: the person's name and harmless settings; NULL: the person's own home */
    char *git_config;
} tool_views;

typedef struct tool_view_needs {
    const char *root; /* the tree: absolute, no links in it */
    const char *tree; /* that root is a copy of, which is read as well; NULL: root is it */
    bool root_is_writable;
    bool shows_home;     /* a command of the person's own: home itself, writes go to a layer */
    const char *session; /* a folder of the session's, private; what is made for the command lies there */
    const char *const *readable; /* folders and files outside of the tree, NULL-terminated; NULL: none */
    bool has_mounts;             /* views are mounted; else rules are made */
} tool_view_needs;

/* Reads the environment (HOME, PATH, CARGO_HOME, ...). Makes folders below needs->session. */
int tool__view_make(const tool_view_needs *needs, tool_views *ret, base_err *err);
void tool__view_free(tool_views *v);

#endif
