/*
 * The tools a model may call: a table. A tool first prepares (checks its arguments and says exactly what it
 * would do: the command, or the diff), then, once that is approved, runs. A failing tool is data for the
 * model (status and text that says what happened and the next call to make); only a failing runner is an
 * error.
 *
 * Thread: the engine thread; a shell child's output is read there too, polling *cancel.
 */
#ifndef KVIST_TOOLS_TOOL_H
#define KVIST_TOOLS_TOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "code/history.h"
#include "code/index.h"

typedef struct tool_workspace
    tool_workspace; /* the tree: root, git repository, undo store, sandbox, read marks */

/* What a tool may do to the world; decides what needs asking (agent). */
typedef enum tool_power { TOOL_READS, TOOL_WRITES, TOOL_RUNS } tool_power;

/* How a result came to be; X(identifier, "word") */
#define TOOL_STATUSES(X)                                                                                     \
    X(OK, "ok")                                                                                              \
    X(FAILED, "failed")                                                                                      \
    X(REFUSED, "refused") X(DENIED, "denied") X(TIMEOUT, "timeout") X(CANCELLED, "cancelled")
#define TOOL_STATUS_ENUM(id, word) TOOL_##id,
typedef enum tool_status { TOOL_STATUSES(TOOL_STATUS_ENUM) TOOL_N_STATUSES } tool_status;
const char *tool_status_word(tool_status s); /* as logs and events have it; "unknown" beyond the table */

/*
 * Which bytes of a result are which bytes of which file version: by it each row of the cache knows its path
 * and lines.
 */
typedef struct tool_source {
    uint32_t from, to;        /* bytes of the result's text */
    char *path;               /* owned by the result */
    char version[65];         /* sha256 of the file's content */
    uint32_t file_from, line; /* byte and 1-based line in the file where `from` stands */
} tool_source;

typedef struct tool_result {
    tool_status status;
    base_buf text;        /* what the model reads; capped, the rest is spilled */
    uint64_t total_bytes; /* before the cap */
    tool_source *sources;
    uint32_t n_sources;
    char **changed; /* paths written, NULL-terminated; NULL: none */
    char *notice;   /* sentences that the person must see, a line each; NULL: none */
    char *summary;  /* one line for the screen: "+3 -1 src/a.c" */
    char *diff;     /* unified diff of what was written; NULL: none */
    int exit_code;  /* shell; -1 else */
    uint64_t ms;
} tool_result;
void tool_result_free(tool_result *r); /* frees the contents */

typedef struct tool_call {
    const char *name;
    const base_json *arguments; /* an object; may be NULL */
    base_str payload;           /* the raw fenced block behind the call; ptr NULL: none */
    const char *request;        /* the person's words that the call is about; NULL: none are known */
    bool is_persons;            /* the person typed it (!ls ~): a command that sees the person's home */
    bool
        is_whole; /* a rewrite's "from" and "to" are not looked at: a small model wrote them, and counts no lines */
    bool in_copy; /* a command that runs in a copy of the tree and leaves nothing in the tree */
} tool_call;

/* What a call would do, for the person who approves it. */
typedef struct tool_preview {
    char *headline; /* "rewrite gcd in python_programs/gcd.py", "$ pytest -q ..." */
    char *detail;   /* the diff or the exact command; NULL: nothing more */
    /* who would obey what it changes unasked ("direnv"): asked for in every mode; NULL: nobody */
    const char *obeyed_by;
    bool is_foreign; /* it changes a file that is generated or vendored: asked for in every mode */
    bool asks_once;  /* others could run what it plants meanwhile: once a session mode all asks as well */
    void *plan;      /* the tool's own prepared state (new text, expected content hash) */
    void (*free_plan)(void *plan);
} tool_preview;
void tool_preview_free(tool_preview *p);

typedef struct tool_limits {
    uint32_t result_bytes;                        /* cap of a result's text */
    uint32_t shell_ms;                            /* time limit of a child */
    const struct tool_meter_limits *shell_limits; /* its memory, processes and output; NULL: the defaults */
    const atomic_bool *cancel;
    void (*output)(void *user, const char *bytes, size_t n); /* a child's output while it runs; may be NULL */
    void *output_user;
} tool_limits;
/* Has the person asked for it to stop? limits may be NULL. */
static inline bool tool__cancelled(const tool_limits *limits)
{
    return limits && limits->cancel && atomic_load_explicit(limits->cancel, memory_order_relaxed);
}

/* For the model's prompt and the grammar; arguments in the order in which they are written. */
typedef enum tool_argument_type {
    TOOL_ARGUMENT_STRING,
    TOOL_ARGUMENT_INTEGER,
    TOOL_ARGUMENT_BOOLEAN,
    TOOL_ARGUMENT_CHOICE,
    TOOL_ARGUMENT_PATH,
    TOOL_ARGUMENT_SYMBOL /* a definition of the tree, as the index knows it */
} tool_argument_type;
/*
 * Small models rewrite whole definitions, stronger ones edit (measured: a 1.5B model gets 0 of 5 edits right
 * and 5 of 7 rewrites): each gets at most eight tools.
 */
typedef enum tool_models {
    TOOL_FOR_ALL,
    TOOL_FOR_SMALL,
    TOOL_FOR_STRONG,
    TOOL_ON_REQUEST /* known to the grammar; told of in front of a request that asks for what it does */
} tool_models;

typedef struct tool_argument {
    const char *name;
    tool_argument_type type;
    bool required;
    const char *about;
    const char *const *choices; /* NULL-terminated; CHOICE only */
    tool_models models;         /* who is told of it; a call of anybody may use it */
} tool_argument;

typedef struct tool_entry {
    const char *name;
    tool_power power;
    tool_models models;
    const char *about;              /* one sentence for the model */
    const tool_argument *arguments; /* ends with a NULL name */
    bool takes_payload;             /* a fenced block follows the call */
    /*
     * Checks and previews; BASE_OK with *result filled (status not OK) when the call cannot work: nothing is
     * asked then. A tool that needs no preparation leaves it NULL.
     */
    int (*prepare)(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *ret,
        tool_result *result, base_err *err);
    int (*run)(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *prepared,
        tool_result *ret, base_err *err);
} tool_entry;

/* All of them, [*ret_n], in the order in which the prompt tells of them. */
const tool_entry *const *tool_table(uint32_t *ret_n);
const tool_entry *tool_find(const char *name); /* NULL: unknown */

/* The recall tool reaches the session log and the cache through the agent. */
typedef int tool_recall_fn(void *user, const char *query, base_buf *out, base_err *err);

/*
 * Tools of other programs, which the agent's layer brings (src/mcp). `name` is "SERVER.TOOL", payload the JSON object of
 * its arguments ("" for none). `check` also takes a name without its server where one alone has it, and says the whole
 * one, which is what the person is asked about and what `call` gets: owned by the caller, NULL when it says false.
 */
typedef struct tool_outside {
    /*
     * Is there such a tool, and may it be called so? False: *say tells the model, with the next call. True: *say is
     * empty, or the arguments as they are sent, where the payload is no JSON and was mended.
     */
    bool (*check)(void *user, const char *name, base_str payload, char **ret_name, base_buf *say);
    /* Its text; true: the tool says that it failed. An error: the server did not answer. */
    int (*call)(void *user, tool_workspace *w, const char *name, base_str payload, const tool_limits *limits,
        base_buf *out, bool *ret_failed, base_err *err);
} tool_outside;

typedef struct tool_workspace_options {
    const char *dir; /* where kvist was started */
    /* the session's folder for undo objects and spilled results (made on demand); NULL: a temporary one */
    const char *store;
    const char *const
        *allow_read; /* what commands may read outside of the tree, NULL-terminated; NULL: nothing */
    /* what of the tree is not listed, indexed and retrieved: patterns as of `git ls-files`; NULL: nothing */
    const char *const *ignore;
    tool_recall_fn *recall;
    void *recall_user;
    const tool_outside *outside; /* NULL: there are none */
    void *outside_user;
} tool_workspace_options;

/* A folder that is no git tree works too; what is off then is said by tool_workspace_notes. */
int tool_workspace_open(tool_workspace **ret, const tool_workspace_options *options, base_err *err);
void tool_workspace_close(tool_workspace *w); /* with what was temporary of it; NULL is fine */
/*
 * What a kill left half written of a change of several files is put back, and the file beside one that was written goes; before anything reads the tree. The
 * notes say what was done.
 */
void tool_workspace_recover(tool_workspace *w);
/* The three live as long as the workspace. root: an absolute path. */
const char *tool_workspace_root(const tool_workspace *w);
code_index *tool_workspace_index(tool_workspace *w);
/*
 * What the newest commits of the tree's branch were about (src/tools/tree/history.h), read when it is asked for first and whenever HEAD
 * is another one: up to a second. NULL: there are none. The workspace's.
 */
const code_history *tool_workspace_history(tool_workspace *w, const atomic_bool *cancel);
code_grammars *tool_workspace_grammars(tool_workspace *w);
/*
 * Sentences about this tree a person should know: not a git tree, bare, unborn HEAD, mid-merge, 100,000
 * files, ...
 */
void tool_workspace_notes(const tool_workspace *w, base_buf *out);
/* Such sentences that came to hold since, at a refresh or a command: each is given once. */
void tool_workspace_take_news(tool_workspace *w, base_buf *out);
/*
 * Source files of this tree are not in the index (too many, too large): what it does not find may still be
 * there.
 */
bool tool_workspace_is_partial(const tool_workspace *w);
/* "main*", "(detached 1a2b3c4)", "" */
void tool_workspace_branch(const tool_workspace *w, base_buf *out);
/*
 * Re-reads what changed on disk into the index; *ret_changed (may be NULL): paths shown this session that
 * differ from what was shown, NULL-terminated, caller frees each and the array.
 */
int tool_workspace_refresh(tool_workspace *w, char ***ret_changed, const atomic_bool *cancel, base_err *err);
/* The text of a file in the tree through the same safe path as the read tool. */
int tool_workspace_read(tool_workspace *w, const char *path, size_t max_bytes, base_buf *out, base_err *err);
/* The names in a folder of the tree, sorted, NULL-terminated; the caller frees each and the array. */
int tool_workspace_folder(tool_workspace *w, const char *path, char ***ret, base_err *err);
/*
 * Paths of the tree, sorted, for completion and for the grammar. Pointers into the workspace, valid until the
 * next refresh or write; free() the array.
 */
int tool_workspace_files(tool_workspace *w, const char ***ret, size_t *ret_n);
/*
 * Notes that these bytes of a file were shown (context excerpts, @file), as the read tool does: for "read
 * before edit" and staleness.
 */
void tool_workspace_mark_shown(tool_workspace *w, const char *path, const char *version);
/* "name:120" is the name and a line that says which one of several; the line is 0 without one. The caller frees. */
char *tool_plain_name(const char *name, unsigned long *ret_line);
/*
 * Of several definitions of a name in a file the one that a block of text is for, by its parameters: "name:120", heap. NULL:
 * there is one, or the block does not say.
 */
char *tool_workspace_overload(tool_workspace *w, const char *path, const char *name, base_str block);
/* Starts a new turn: what this turn writes can be undone as one. */
void tool_workspace_turn(tool_workspace *w, uint32_t turn);
/*
 * Undo: what would be restored (a diff), then do it. BASE_E_NOT_FOUND: nothing to undo. Works after a kill:
 * it is on disk before any write. *ret_summary: a sentence that says what was restored; the caller frees.
 */
int tool_undo_preview(tool_workspace *w, base_buf *diff, base_err *err);
int tool_undo_apply(tool_workspace *w, char **ret_summary, base_err *err);
/* What was written so far was written in another tree: nothing of it is taken back here. */
int tool_undo_leave(tool_workspace *w, base_err *err);
/* Is this what the file held before this session's newest turn wrote it? */
bool tool_undo_is_before(tool_workspace *w, const char *path, const char *text, size_t n);
/* Who would obey what undoing changes (tool_preview.obeyed_by); NULL: nobody. */
const char *tool_undo_obeyed_by(tool_workspace *w);
/*
 * Rewinding: what the turns from `turn` on wrote, taken back by one change of all its files, which undo can undo.
 * Prepare fills the preview (its plan is NULL where no file would change) and says in *left, a line each, which
 * files stay since somebody else changed them. Apply writes all or none and says what it did. The last one is
 * told when the conversation was rewound, with or without the files.
 */
int tool_rewind_prepare(tool_workspace *w, uint32_t turn, tool_preview *ret, base_buf *left, base_err *err);
int tool_rewind_apply(
    tool_workspace *w, uint32_t turn, tool_preview *prepared, tool_result *ret, base_err *err);
int tool_rewind_done(tool_workspace *w, uint32_t turn, bool took_files, base_err *err);
/*
 * What the sandbox really enforces here, one line each; false when it cannot confine (then mode all is
 * refused).
 */
bool tool_sandbox_describe(base_buf *out);

#endif
