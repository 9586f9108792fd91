/*
 * A rebase or a series of picks that has begun: its steps may run programs when somebody goes on with it.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_REBASE_H
#define KVIST_TOOLS_GUARD_GIT_REBASE_H

#include "tools/guard/git_walk.h"
#include "tools/guard/kept.h"

/* Folders of a repository that hold the steps which lie ahead, NULL-terminated. */
extern const char *const tool__git_state_names[];

/* Those that are there, whatever their names are by now. */
typedef struct tool_git_state {
    dev_t dev;
    ino_t ino;
} tool_git_state;
typedef struct tool_git_states {
    tool_git_state *all;
    size_t n, cap;
} tool_git_states;

/* Adds those of the walk's repositories that are not in `known`. */
void tool__git_states_add(
    const tool_root *root, const tool_git_walk *walk, const tool_git_states *known, tool_git_states *list);
bool tool__git_states_have(const tool_git_states *list, const struct stat *st);
void tool__git_states_free(tool_git_states *list);

/* Keeps the lists of steps the strategies, which git takes for programs' names, and the options of all of them; sorted. */
void tool__git_steps_keep(
    const tool_root *root, const tool_git_walk *walk, const tool_kept_list *earlier, tool_kept_list *ret);
/* Must git not go on with what this file (of tool__git_steps_keep) holds now? before: what it held; may be NULL. */
bool tool__git_steps_refused(const tool_kept *now, const tool_kept *before);

/*
 * Why git must not go on with this list of steps (a sentence's end), or NULL: every line is a step that runs no program, or stood in
 * `before` (may be NULL) already.
 */
const char *tool__git_todo_refused(const base_buf *now, const base_buf *before);

#endif
