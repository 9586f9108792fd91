/*
 * What the files of this folder share and nobody else sees: the root of the tree and safe opening below it
 * (safe_path.c), the list of files (listing.c), changes with their undo records (change.c, undo.c), results
 * and their caps (result.c, spill.c), the confinement of children (sandbox.c, shell.c), libgit2 (git.c).
 *
 * Thread: all of it belongs to the thread that uses the workspace (the engine thread).
 */
#ifndef KVIST_TOOLS_INTERNAL_H
#define KVIST_TOOLS_INTERNAL_H

#include <git2.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "tools/sandbox.h"
#include "tools/tool.h"

/* Bounds of ours. A file above MAX_FILE is left to the shell; one above MAX_INDEXED is not in the index. */
#define TOOL_MAX_FILE       ((size_t)16 << 20)
#define TOOL_MAX_INDEXED    ((size_t)1 << 20)
#define TOOL_MAX_PATH       4000
#define TOOL_MAX_FILES      200000 /* listed */
#define TOOL_MAX_DEPTH      99     /* folders in folders, where a walk ends */
#define TOOL_MAX_FILES_CODE 100000 /* indexed */
#define TOOL_MAX_BYTES_CODE ((size_t)192 << 20)
#define TOOL_DEFAULT_RESULT 12000

/* ---- safe_path.c: nothing outside of the root, nothing under a .git, no symbolic links ---- */

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

/* A descriptor or -1 with errno. `path` is clean; "" opens the root's folder again. */
int tool__path_open(const tool_root *root, const char *path, int flags, mode_t mode);
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
} tool_file;
void tool__file_free(tool_file *f);

/*
 * Reads a regular file. Sentences for: missing (BASE_E_NOT_FOUND), a folder, FIFO, device, link
 * (BASE_E_UNSUPPORTED), too large (BASE_E_LIMIT).
 */
int tool__file_read(const tool_root *root, const char *path, size_t max_bytes, tool_file *ret, base_err *err);

/* A NUL byte in the first 8,000 bytes, as git decides. */
bool tool__is_binary(const char *text, size_t n);

/* ---- obeyed.c ---- */

/* Would the next session obey what stands there: AGENTS.md, .kvist/, .agents/, by any spelling or link? `path` is clean. */
bool tool__path_is_obeyed(const tool_root *root, const char *path);

/* ---- listing.c ---- */

typedef struct tool_listed {
    char *path;
    int64_t mtime_ns, ctime_ns, size; /* what it was when indexed; size -1: never looked at */
    uint64_t ino;
    bool is_indexed;
} tool_listed;

typedef struct tool_listing {
    tool_listed *files;       /* ascending by path */
    size_t n, cap, n_tracked; /* n_tracked: of them, of git's index, while it is made */
    bool is_cut;              /* there are more than TOOL_MAX_FILES */
    bool is_shallow; /* there are folders deeper than TOOL_MAX_DEPTH, whose untracked files are left out */
} tool_listing;

/*
 * git's view (tracked and untracked, not ignored) when `repo` is given, else a walk. Regular files only by
 * their name's kind.
 */
int tool__listing_make(
    const tool_root *root, git_repository *repo, const atomic_bool *cancel, tool_listing *ret, base_err *err);
void tool__listing_free(tool_listing *l);
/* Index of the path, or of the first one above it with *ret_found false. */
size_t tool__listing_find(const tool_listing *l, const char *path, bool *ret_found);
/*
 * Up to `cap` listed paths that somebody who wrote `path` may have meant, best first. Pointers into the
 * listing.
 */
size_t tool__listing_near(const tool_listing *l, const char *path, const char **ret, size_t cap);

/* Would a walk without git leave out a file or folder of this name? With git only git's own folder. */
bool tool__listing_skips(const char *name, git_repository *repo);

/* ---- folders.c ---- */

/* A folder or a list of rules, as it was when a listing was made. */
typedef struct tool_folder {
    char *path;                 /* below the root, or absolute */
    int64_t mtime_ns, ctime_ns; /* all zero: it is not there */
    uint64_t ino;
} tool_folder;

typedef struct tool_folders {
    tool_folder *all;
    size_t n, cap;
    bool is_settled; /* none had changed within the clock's grain before the listing */
} tool_folders;

/*
 * What the listing rests on, just after it was made; since_ns: wall clock just before. Frees what *ret held.
 */
void tool__folders_take(
    const tool_root *root, git_repository *repo, const tool_listing *l, int64_t since_ns, tool_folders *ret);
/* Would listing again give the same names? */
bool tool__folders_are_same(const tool_root *root, const tool_folders *f);
void tool__folders_free(tool_folders *f);

/* ---- indexer.c ---- */

typedef struct tool_indexer tool_indexer;

/*
 * is_kept: what parsing gave is kept in the data folder for the next start. Borrows both; starts no thread
 * yet.
 */
tool_indexer *tool__indexer_open(const tool_root *root, code_index *index, bool is_kept);
void tool__indexer_close(tool_indexer *x);
/*
 * These files (in this order) are to be read into the index, in the background; replaces what still waits.
 * budget: bytes.
 */
void tool__indexer_want(tool_indexer *x, const char *const *paths, size_t n, size_t budget);
/* Works the queue off on this thread until it is empty (true), the time is up or *cancel is set. */
bool tool__indexer_help(tool_indexer *x, uint64_t until_ns, const atomic_bool *cancel);
/* What was finished since the last time. st NULL: the file is gone. */
typedef void tool_indexer_done_fn(void *user, const char *path, const struct stat *st, bool is_indexed);
void tool__indexer_reap(tool_indexer *x, tool_indexer_done_fn *fn, void *user);
/* A file has this text now (NULL: none): at once, whatever waits. */
void tool__indexer_wrote(tool_indexer *x, const char *path, const char *text, size_t n);
/* Sentences about a damaged or unwritable store. */
void tool__indexer_say(tool_indexer *x, base_buf *out);

/* ---- the workspace ---- */

typedef struct tool_mark {
    char *path;
    char version[65];
} tool_mark;

typedef struct tool_undo tool_undo;

struct tool_workspace {
    tool_root root;
    git_repository *repo; /* NULL: not a git tree, or unreadable */
    base_buf notes;
    char *store; /* undo objects, spilled results */
    char *tmp;   /* the children's; NULL until one runs */
    char *aside; /* where what commands planted goes; NULL until something does */
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
    tool_undo *undo;
    uint32_t turn;
    tool_sandbox sandbox;
    char **allow_read;                /* outside of the tree, for commands; NULL-terminated */
    struct tool_git_guard *git_guard; /* NULL until a command runs */
    tool_recall_fn *recall;
    void *recall_user;
};

/* Lists when that was never done, so that every tool works without a refresh. */
int tool__workspace_list(tool_workspace *w, const atomic_bool *cancel, base_err *err);
/* The store's folder joined with `name`; makes the store. */
int tool__workspace_store(tool_workspace *w, const char *name, char **ret, base_err *err);
const char *tool__workspace_shown(
    const tool_workspace *w, const char *path); /* the version shown; NULL: never */
/* After a write of ours: list, index and marks know the new text. NULL text: removed. */
void tool__workspace_wrote(
    tool_workspace *w, const char *path, const char *text, size_t n, const char *version);
bool tool__is_temporary_name(const char *name); /* of change.c's temporary files */

/* ---- trace.c ---- */

/*
 * Adds a segment for what of r's text, from byte `from` on, are lines of the tree's files as they are now.
 * command (may be NULL): where file names are looked for.
 */
void tool__trace_output(tool_workspace *w, tool_result *r, const char *command, size_t from);

/* ---- result.c ---- */

/* Sets the status and appends the sentence. */
void tool__say(tool_result *r, tool_status s, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same from an error of the file layer: adds near paths and the next call where the file is missing. */
void tool__say_path_error(
    tool_workspace *w, tool_result *r, const char *tool, const char *given, const base_err *err);
void tool__add_segment(tool_result *r, size_t from, size_t to, const char *path, const char *version,
    size_t file_from, size_t line);
/*
 * Cuts the text to the cap (head_eighths of it head, the rest tail), spills the whole. For texts without
 * segments.
 */
void tool__cap(tool_workspace *w, tool_result *r, const tool_limits *limits, unsigned head_eighths);
size_t tool__result_cap(const tool_limits *limits);
bool tool__cancelled(const tool_limits *limits);

/* A string argument, trimmed; NULL when missing or empty. The text lives as long as the call. */
const char *tool__string(const tool_call *call, const char *name);
/* An integer argument (also a number inside a string), clipped. */
int64_t tool__integer(
    const tool_call *call, const char *name, int64_t otherwise, int64_t least, int64_t most);
bool tool__boolean(const tool_call *call, const char *name);
/* Cleans argument "path"; false: *r says what is wrong. */
bool tool__want_path(tool_workspace *w, const tool_call *call, const char *tool, char **ret, tool_result *r);
void tool__quote(base_buf *out, const char *s);       /* a JSON string */
void tool__quote_shell(base_buf *out, const char *s); /* one word of a POSIX shell, whatever it holds */

/* ---- spill.c ---- */

/* Keeps the bytes as "result:N"; 0 when it cannot. */
uint32_t tool__spill(tool_workspace *w, const char *text, size_t n);
/* "result:3" gives its text; BASE_E_NOT_FOUND else. */
int tool__spill_read(tool_workspace *w, const char *handle, base_buf *out, base_err *err);
bool tool__is_handle(const char *path);

/* ---- diff.c ---- */

/* Unified diff with "--- a/path" lines; appends nothing when equal. NULL old or new: created or removed. */
void tool__diff(base_buf *out, const char *path, const base_buf *old_text, const base_buf *new_text,
    size_t *ret_added, size_t *ret_removed);

/* ---- change.c ---- */

/* One file's new text, prepared; what the person approves is exactly what is written. */
typedef struct tool_change {
    char *path;
    bool creates;
    char before[65]; /* version that was prepared against; "" when it creates */
    base_buf old_text, new_text;
    char *say; /* what the model reads when it worked; "\n" ends it */
} tool_change;
void tool__change_free(void *change);
/* headline "verb path (+a -b)", detail the diff, the plan itself. Takes the change. */
void tool__change_preview(
    const tool_root *root, tool_change *change, const char *headline, tool_preview *ret);
/* The file named by argument "path", if it may be changed: exists, text, one link. false: *r says why. */
bool tool__open_for_change(tool_workspace *w, const tool_call *call, const char *tool, char **ret_path,
    tool_file *f, tool_result *r);
/* Takes f's text, new_text and say. */
tool_change *tool__change_new(const char *path, tool_file *f, base_buf *new_text, base_buf *say);
/* Checks again, records for undo, writes. A refusal is in *ret. */
int tool__change_run(tool_workspace *w, tool_preview *prepared, tool_result *ret, base_err *err);
/* The durable write itself, shared with undo: NULL text removes. `before` NULL: must not exist. */
int tool__change_write(tool_workspace *w, const char *path, const base_buf *text, mode_t mode,
    const char *before, const char *temporary, base_err *err);
/* Replaces the text of a change that was read before: refuses what was never shown. false: *r says why. */
bool tool__change_is_shown(tool_workspace *w, const char *path, const tool_file *f, tool_result *r,
    const char *excerpt, size_t excerpt_n, size_t excerpt_from, size_t excerpt_line, const char *next_call);
/* Tests end the process at a named step ("journal", "temporary", "rename", ...); NULL in the program. */
extern void (*tool__step_hook)(const char *step);
void tool__step(const char *step);
void tool__temporary_name(
    char out[40], const char *version); /* of the file that is renamed, by the new text's version */

/* ---- undo.c ---- */

int tool__undo_open(tool_workspace *w, base_err *err); /* into w->undo, on first use */
void tool__undo_close(tool_undo *u);
void tool__undo_turn(tool_undo *u); /* the next record begins a new group; NULL is fine */
/*
 * Keeps what `path` held (NULL: it did not exist) and what it will hold, on disk when this returns.
 * *temporary (at least 32 bytes) gets the name of the temporary file to use, so that a leftover can be found.
 */
int tool__undo_record(tool_workspace *w, const char *path, const base_buf *before, const base_buf *after,
    mode_t mode, size_t made, char temporary[40], base_err *err);

/* ---- aside.c ---- */

/*
 * Moves a file, link or folder of the tree out of the way, wholly: *where gets the absolute path where it
 * lies from now on. Nothing is copied, replaced or removed.
 */
int tool__aside_move(tool_workspace *w, const char *path, base_buf *where, base_err *err);

/* ---- git.c ---- */

int tool__git_open(
    tool_workspace *w, const char *dir, base_err *err); /* finds the root, opens the repository, notes */
/*
 * The repository of a worktree or a submodule, which lies outside of the tree, when it says that this tree is its own; NULL: none.
 * The caller frees.
 */
char *tool__git_outside(const tool_workspace *w);
void tool__git_close(tool_workspace *w);

/* ---- text.c: lines, indentation, line ends ---- */

typedef struct tool_text_style {
    bool crlf;      /* most lines end in CR LF */
    bool ends_open; /* the last line has no newline */
} tool_text_style;
bool tool__is_space(char c);
size_t tool__line_begin(const char *text, size_t at);         /* of the line that holds the byte */
size_t tool__line_end(const char *text, size_t n, size_t at); /* its newline, or n */
bool tool__is_blank(const char *text, size_t from, size_t to);
tool_text_style tool__text_style(const char *text, size_t n);
size_t tool__count_lines(const char *text, size_t n);
size_t tool__line_start(
    const char *text, size_t n, size_t line);        /* byte of the 1-based line; n when there are fewer */
size_t tool__line_of(const char *text, size_t byte); /* 1-based */
/* LF line ends, no leading or trailing blank lines, ends with a newline unless empty. */
void tool__normalise_block(base_buf *out, const char *text, size_t n);
/* '	' or ' ': how most indented lines begin; 0: none is. */
char tool__indent_char(const char *text, size_t n);
/*
 * Shifts a block so that its first line stands at `indent`. What stands right of that keeps its own white
 * space (KEEP) or is made anew from tabs or from spaces (a tab of the block is `unit` of them); what stands
 * left of the first line stays where it is.
 */
typedef enum tool_indentation { TOOL_INDENT_KEEP, TOOL_INDENT_TABS, TOOL_INDENT_SPACES } tool_indentation;
void tool__rebase(base_buf *out, const char *block, size_t n, const char *indent, size_t indent_n,
    tool_indentation how, size_t unit);
/* What a block needs to look like the text that it goes into. */
tool_indentation tool__indentation_for(
    const char *file, size_t n_file, const char *block, size_t n_block, size_t *ret_unit);
/* LF to the file's line ends. */
void tool__line_ends(base_buf *out, const char *text, size_t n, bool crlf);

/* ---- replace.c, blocks.c: new text of a file from a block, pure ---- */

/*
 * Replaces one whole definition; false with *why (a sentence and the next call). *note: what of the block was
 * left out.
 */
bool tool__replace_definition(code_grammars *g, const char *path, const base_buf *text, const char *name,
    base_str block, base_buf *ret_text, uint32_t *ret_line, uint32_t *ret_line_end, base_buf *note,
    base_buf *why);
/* code_parse, but by words when a syntax error hides the name from the grammar. */
code_file *tool__parse_for(code_grammars *g, const char *path, const char *text, size_t n, const char *name);
/* Finds the definition a name means: 1 found, 0 with *why. */
bool tool__find_definition(const code_file *f, const char *path, const base_buf *text, const char *name,
    uint32_t *ret, base_buf *why);
/* Applies OLD/NEW blocks; false with *why. *note: which match was loose. */
bool tool__replace_blocks(const char *path, const base_buf *text, base_str payload, base_buf *ret_text,
    base_buf *note, base_buf *why);
/* Replaces lines from..to (1-based, inclusive) by the block. */
bool tool__replace_lines(const char *path, const base_buf *text, size_t from, size_t to, base_str payload,
    base_buf *ret_text, base_buf *why);
/* False with *why when the new text has a syntax error that the old text had not. */
bool tool__syntax_holds(
    code_grammars *g, const char *path, const base_buf *old_text, const base_buf *new_text, base_buf *why);

#endif
