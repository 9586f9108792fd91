/*
 * The definition that a fenced block brings, taken out of whatever a weak model put around it (choose.c).
 */
#ifndef KVIST_TOOLS_EDIT_CHOOSE_H
#define KVIST_TOOLS_EDIT_CHOOSE_H

#include "tools/tree/workspace.h"

typedef struct tool_chosen {
    base_buf text;   /* as it was written */
    bool has_prefix; /* words of the definition's line in front of what the grammar calls the definition */
    base_buf note;   /* what was left out */
} tool_chosen;

/* A file that is to be changed, parsed. */
typedef struct tool_parsed {
    const char *path;
    const base_buf *text;
    const code_file *file;
} tool_parsed;

/* The new text for `old`, a definition of the file; false with *why. */
bool tool__choose(code_grammars *g, const tool_parsed *of, const code_definition *old, base_str block,
    tool_chosen *ret, base_buf *why);

/* A block (at column 0) parsed: alone, or inside a wrapper of its language where that reads better. */
typedef struct tool_reading {
    code_file *file;
    uint32_t at;            /* the definition that was looked for; UINT32_MAX: none */
    const base_buf *parsed; /* the text that was parsed: the caller's block, or */
    base_buf *wrapped;      /* this one; NULL: no wrapper */
} tool_reading;
/* name: the definition's; NULL: the first. flat outlives the reading. */
tool_reading tool__read_block(
    code_grammars *g, const char *path, const base_buf *flat, const char *language, const char *name);
void tool__reading_free(tool_reading *r);

/* Is text[line..from) blank, or words that belong to what follows ("export", a macro of attributes)? */
bool tool__is_start(const char *text, size_t line, size_t from);

#endif
