/* What the parts of a move in JavaScript and TypeScript share: move_script.c over move_script_needs.c over move_script_users.c over move_script_given.c over script.c. */
#ifndef KVIST_TOOLS_REFACTOR_MOVE_SCRIPT_H
#define KVIST_TOOLS_REFACTOR_MOVE_SCRIPT_H

#include "tools/refactor/mover.h"
#include "tools/refactor/script.h"

/* How the source gives a definition to others. */
typedef enum script_form {
    SCRIPT_HIDDEN,   /* not at all */
    SCRIPT_WORD,     /* export function f */
    SCRIPT_DEFAULT,  /* export default function f */
    SCRIPT_ASSIGNED, /* exports.f = function */
    SCRIPT_LISTED,   /* export {f}, module.exports = {f}, exports.f = f */
} script_form;

typedef struct script_move {
    script_kind kind;
    const refactor_file **users; /* [n_users] files that name the source */
    size_t n_users, cap_users;
    bool is_entry;     /* the package's own entry: what it gives stays given there */
    const char *whole; /* a file that takes the source whole, so that nobody sees what of it; NULL: none */
    char *like;        /* a path as imports of these files write it; NULL: none seen */
    base_buf exports;  /* what the source has to give from now on, CommonJS: "a b " */
    base_buf reached;  /* files that the new place takes from, one a line */
    bool needs_source; /* the new place takes from the source */
} script_move;

/* ---- move_script_given.c ---- */

/* Is it a place of the source that only gives the part away: {f} of a list, exports.f = f? Then its bytes. */
bool script__is_giving(const mover *m, const refactor *part, const code_use *u, uint32_t *from, uint32_t *to);
script_form script__form(const mover *m, const refactor *part);
bool script__is_type(const refactor *part);
/* Under which name the new place gives it. */
const char *script__new_name(const mover *m, const refactor *part);
/* The part that a file takes from the source under this name; NULL: another thing. */
const refactor *script__given(const mover *m, const char *name);

/* ---- move_script_users.c ---- */

/* Does an import of f name the file at `path`? */
bool script__is_from(const mover *m, const refactor_file *f, const code_import *im, const char *path);
/*
 * "import { a } from './b';" or "const { a } = require('./b');" with its line's end, into out; word: "import", "import type",
 * "export", "export type".
 */
void script__put_line(
    const mover *m, script_style style, const char *word, const char *names, const char *spec, base_buf *out);
/* Adds the names to a statement of f that takes others from `path` already; false: there is none. */
bool script__join_line(const mover *m, const refactor_file *f, const char *path, const char *names,
    bool is_type, refactor_edits *edits);
/* Finds who names the source. */
bool script__find_users(mover *m);

/* ---- move_script_needs.c ---- */

/* "WHAT WHY. Nothing was changed.": false. */
bool script__refuse(const mover *m, const char *what, const char *why);
/* The new place imports what the source does, and takes from the source what stays there. false: *x->result says why it cannot. */
bool script__add_needs(mover *m);
/* Relative paths inside of what goes; false: it has what only the old place has. */
bool script__change_inside(mover *m);

#endif
