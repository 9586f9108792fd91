/*
 * What the tools share while a session works on a tree: its root, list of files, index and git repository, the
 * versions that were shown, and where undo records, spilled results and planted files are kept.
 *
 * Thread: all of it belongs to the thread that uses the workspace (the engine thread).
 */
#ifndef KVIST_TOOLS_TREE_WORKSPACE_H
#define KVIST_TOOLS_TREE_WORKSPACE_H

#include "tools/confine/sandbox.h"
#include "tools/tool.h"
#include "tools/tree/indexer.h"
#include "tools/tree/listing.h"
#include "tools/file/safe_path.h"

typedef struct tool_mark {
    char *path;
    char version[65];
} tool_mark;

typedef struct tool_undo tool_undo;

/* Paths of the tree that were written in copies of it (scratch.h). */
typedef struct tool_tried {
    char **paths;
    size_t n, cap;
} tool_tried;

struct tool_workspace {
    tool_root root;
    git_repository *repo; /* NULL: not a git tree, or unreadable */
    base_buf notes;
    base_buf news; /* for tool_workspace_take_news */
    char *store;   /* undo objects, spilled results */
    /*
     * TMPDIR of what runs in the tree, in the kept copy, in copies of their own; NULL until something does. Cargo takes
     * what it built there of one copy for that of another, so what judges shares it with nothing else.
     */
    tool_den *tmp, *tmp_kept, *tmp_tries;
    tool_tried tried;  /* in copies of their own */
    tool_den **served; /* of each program that runs beside the session (served.h) */
    size_t n_served, cap_served;
    struct tool_scratch *kept; /* the copy in which builds judge; NULL until one does */
    char *aside;               /* where what commands planted goes; NULL until something does */
    unsigned n_aside;
    bool store_is_temporary;
    uint32_t n_spilled;
    bool spill_is_counted;
    tool_listing listing;
    tool_folders folders; /* what the listing rests on */
    bool is_listed;
    bool is_behind; /* the last refresh ran out of time before every file was read */
    tool_mark *marks;
    size_t n_marks, cap_marks;
    code_grammars *grammars;
    code_index *index;
    tool_indexer *indexer;
    code_history *history; /* of the commits before history_head; NULL: none, or not asked for yet */
    git_oid history_head;
    bool has_history; /* it was read for that one */
    tool_undo *undo;
    uint32_t turn;
    tool_sandbox sandbox;
    git_pathspec *ignored;            /* not listed; NULL: nothing */
    char **allow_read;                /* outside of the tree, for commands; NULL-terminated */
    struct tool_git_guard *git_guard; /* NULL until a command runs */
    struct tool_git_since *git_since; /* what git runs and obeys as it was when the workspace was opened */
    tool_recall_fn *recall;
    void *recall_user;
    const tool_outside *outside;
    void *outside_user;
};

/* Lists when that was never done, so that every tool works without a refresh. */
int tool__workspace_list(tool_workspace *w, const atomic_bool *cancel, base_err *err);
/* Reads what changed on disk into the index, as a refresh does that does not look at what was shown. */
int tool__workspace_read_again(tool_workspace *w, const atomic_bool *cancel, base_err *err);
/* The store's folder joined with `name`; makes the store. */
int tool__workspace_store(tool_workspace *w, const char *name, char **ret, base_err *err);
/* the version shown; NULL: never */
const char *tool__workspace_shown(const tool_workspace *w, const char *path);
/* After a write of ours: list, index and marks know the new text. NULL text: removed. */
void tool__workspace_wrote(
    tool_workspace *w, const char *path, const char *text, size_t n, const char *version);

/* ---- aside.c ---- */

/*
 * Moves a file, link or folder of the tree out of the way, wholly: *where gets the absolute path where it
 * lies from now on. Nothing is copied, replaced or removed.
 */
int tool__aside_move(tool_workspace *w, const char *path, base_buf *where);
/* Bytes of what was at `path`, which could not be put back there: kept in the same place, for this user's eyes. */
int tool__aside_keep(tool_workspace *w, const char *path, const base_buf *bytes, base_buf *where);

/* ---- git.c ---- */

/* finds the root, opens the repository, notes */
int tool__git_open(tool_workspace *w, const char *dir, base_err *err);
/*
 * The repository of a worktree or a submodule, which lies outside of the tree, when it says that this tree is its own; NULL: none.
 * The caller frees.
 */
char *tool__git_outside(const tool_workspace *w);
void tool__git_close(tool_workspace *w);

#endif
