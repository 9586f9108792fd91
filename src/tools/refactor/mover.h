/*
 * What the languages' parts of a move share: definitions that stand at the top of one file go to another one together.
 */
#ifndef KVIST_TOOLS_REFACTOR_MOVER_H
#define KVIST_TOOLS_REFACTOR_MOVER_H

#include "tools/refactor/refactor.h"

/* Bytes of the source that go: a definition with its comment. */
typedef struct mover_cut {
    uint32_t from, to;
} mover_cut;

typedef struct mover {
    refactor **parts; /* one for each definition that was named, its places resolved; the first one is x */
    size_t n_parts;
    refactor *x;
    const refactor_file *from; /* x's own */
    tool_file to_file;         /* as it is; empty when it is new */
    bool is_new;
    bool is_there; /* the new place defines it letter for letter the same: nothing comes into it */
    bool is_kept;  /* what goes can be imported from the source still */
    char *to;
    mover_cut *cuts; /* ascending; methods of a type of Go are among them */
    size_t n_cuts;
    base_buf moved;
    base_buf heads; /* lines that the new place needs at its top */
    base_buf back;  /* lines that the source needs at its top */
    base_buf notes; /* sentences for who reads what was done */
    refactor_edits source_edits;
    refactor_edits moved_edits; /* of the source's bytes that go, as they stand in the new place */
    struct script_move *script; /* JavaScript; NULL: another language */
} mover;

/* ---- mover.c ---- */

bool mover__is_cut(const mover *m, uint32_t at);
/* Is it one of those that were named? */
bool mover__is_named(const mover *m, const char *name);
bool mover__has_line(const base_buf *text, const char *line, size_t n);
/* A line that is not there yet, nor in `where` (may be NULL). */
void mover__add_line(base_buf *out, const base_buf *where, const char *line);
/* "uses a, b: why": false. */
bool mover__refuse_needs(const mover *m, const base_buf *names, const char *why);
/* Where the part is used in the source outside of what goes, or (through) by way of the source elsewhere; NULL: nowhere. */
const refactor_place *mover__used_behind(const mover *m, const refactor *part, bool through);

/* Items of one list go, ascending; those side by side go as one. false: they were all of it, and none was taken out. */
bool mover__remove_items(const base_buf *text, const mover_cut *items, size_t n, refactor_edits *edits);

/* ---- move_along.c ---- */

/* A further part that what goes needs, and that can go with it: true where there was one, until there is none. */
bool mover__take_along(mover *m);

/* ---- move_python.c ---- */

/* Fills heads and back; false: *x->result says why it cannot be. */
bool mover__python_heads(mover *m);
/* What other files import from the source they import from the new place. */
void mover__python_imports(mover *m, tool_changes *ret);
/* What the new place itself imports of what moves there goes; a name of its own for it (as) stays, behind what moved. */
void mover__python_own_imports(mover *m, refactor_edits *edits);
/* Out of the source's __all__, and into the target's. */
void mover__python_exports(mover *m, base_buf *target);

/* ---- move_script.c: ES modules and CommonJS ---- */

/* Who takes what from the source, and whether the source has to go on giving it. false: *x->result says why not. */
bool mover__script_survey(mover *m);
/* Does what goes use this name of the source's top? */
bool mover__script_uses(const mover *m, const char *name);
/* Does the source give this name, which what goes uses, another value somewhere? */
bool mover__script_is_set(const mover *m, const char *name);
/* Does the source have to take back what goes: it uses it still, or hands it on? */
bool mover__script_goes_back(const mover *m);
/* Does the source give the part to other files? */
bool mover__script_is_given(const mover *m, const refactor *part);
/* Fills heads, back, moved_edits and the source's own edits; false: *x->result says why it cannot be. */
bool mover__script_heads(mover *m);
/* The whole text of the new place. */
void mover__script_target(mover *m, base_buf *out);
/* What the source's text still needs once its edits are made. */
void mover__script_source(mover *m, base_buf *text);
/* Other files take it from the new place. */
void mover__script_users(mover *m, tool_changes *ret);
void mover__script_free(mover *m);

#endif
