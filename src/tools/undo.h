/*
 * The undo journal as data: what undo.c writes, reads back and the fuzz target feeds with damaged bytes.
 */
#ifndef KVIST_TOOLS_UNDO_H
#define KVIST_TOOLS_UNDO_H

#include "tools/internal.h"

typedef struct tool_undo_record {
    char *path;
    uint32_t group, turn; /* a group is what one turn wrote */
    char before[65];      /* "": did not exist */
    char after[65];
    uint32_t mode;
    uint32_t made; /* bytes of path that name the first folder made for it; 0: none */
    bool is_undone;
} tool_undo_record;

typedef struct tool_undo_journal {
    tool_undo_record *items;
    size_t n, cap;
} tool_undo_journal;

/* Reads whole lines; damaged ones are skipped. Returns the bytes up to the last newline. */
size_t tool__undo_parse(const char *text, size_t n, tool_undo_journal *ret);
void tool__undo_journal_free(tool_undo_journal *j);

#endif
