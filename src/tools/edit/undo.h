/*
 * The undo journal as data: what undo.c writes, reads back and the fuzz target feeds with damaged bytes.
 */
#ifndef KVIST_TOOLS_EDIT_UNDO_H
#define KVIST_TOOLS_EDIT_UNDO_H

#include "tools/tree/workspace.h"

typedef struct tool_undo_record {
    char *path;
    uint32_t group, turn; /* a group is what one turn wrote */
    char before[65];      /* "": did not exist */
    char after[65];
    uint32_t mode;
    uint32_t made; /* bytes of path that name the first folder made for it; 0: none */
    bool is_undone;
    bool is_past;   /* its turn was rewound: the turns have their numbers again since */
    bool is_rewind; /* written by taking the files of rewound turns back */
} tool_undo_record;

typedef struct tool_undo_journal {
    tool_undo_record *items;
    size_t n, cap;
} tool_undo_journal;

/* Reads whole lines; damaged ones are skipped. Returns the bytes up to the last newline. */
size_t tool__undo_parse(const char *text, size_t n, tool_undo_journal *ret);
void tool__undo_journal_free(tool_undo_journal *j);

int tool__undo_open(tool_workspace *w, base_err *err); /* into w->undo, on first use */
void tool__undo_close(tool_undo *u);
const tool_undo_journal *tool__undo_records(const tool_undo *u);
/* A text by its sha256; an error says that it is damaged, or kept no longer. */
int tool__undo_text(const tool_undo *u, const char *hash, base_buf *out, base_err *err);
/* The turns from `turn` on are gone from the conversation; with `took_files` the newest group took their files back. */
int tool__undo_rewound(tool_undo *u, uint32_t turn, bool took_files, base_err *err);
/* Removes the folders that were made for a file, as far as they are empty (tool_undo_record.made). */
void tool__undo_remove_folders(tool_workspace *w, const char *path, size_t made);
const char *tool__undo_objects(const tool_undo *u); /* the folder of the texts, by their sha256 */
/*
 * Hands over each file of the newest group that still has an effect, with what it held before (NULL: it did not
 * exist). Ends with the first failure.
 */
typedef int tool_undo_text_fn(void *user, const char *path, const base_buf *before, base_err *err);
int tool__undo_each(tool_workspace *w, tool_undo_text_fn *fn, void *user, base_err *err);
/* Keeps what `path` held (NULL: it did not exist) and what it will hold, on disk when this returns. */
int tool__undo_record(tool_workspace *w, const char *path, const base_buf *before, const base_buf *after,
    mode_t mode, size_t made, base_err *err);

#endif
