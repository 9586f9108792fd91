/*
 * How a file of JavaScript or TypeScript takes names from others and gives its own: the statements of imports, paths of modules, the file's
 * way of writing them. Texts come in, bytes and texts come out; only the file of a module is looked up in the tree.
 */
#ifndef KVIST_TOOLS_REFACTOR_SCRIPT_H
#define KVIST_TOOLS_REFACTOR_SCRIPT_H

#include "tools/refactor/refactor.h"

typedef enum script_kind { SCRIPT_PLAIN, SCRIPT_ES, SCRIPT_COMMON } script_kind;

/* By its ending, else by what it writes; PLAIN: it neither takes nor gives. */
script_kind script__kind(const char *path, const base_buf *text);

/* The statement that holds an import, its path between the quotes, and whether it takes types alone. */
typedef struct script_import {
    uint32_t from,
        to;        /* the whole statement, its semicolon with it; of one of several declarators that one */
    uint32_t line; /* where the statement begins */
    uint32_t spec, spec_to; /* the path */
    bool is_alone;          /* no further declarator stands in the statement */
    bool is_type;           /* import type, export type */
} script_import;
bool script__read_import(const base_buf *text, const code_import *im, script_import *ret);

/* How the file writes its imports. */
typedef struct script_style {
    char quote;
    const char *end;  /* ";" or "" */
    const char *word; /* "const" or "var" */
} script_style;
script_style script__style(const base_buf *text);

/* "./b", "../lib/b.js": the file at `to` as one at `from` names it, as `like` is written (NULL: without an ending). The caller frees. */
char *script__spell(const char *from, const char *to, const char *like);
/* A relative path that a file writes; NULL: none. The caller frees. */
char *script__any_spec(const code_uses *u);

/* Where a new import goes: behind those at the left margin, else behind what opens the file. */
uint32_t script__top(const base_buf *text, const code_uses *u);
/* Does code stand there, with no import in front, so that a blank line has to come between? */
bool script__is_bare(const base_buf *text, uint32_t top);

/*
 * Where a path of another file stands in quotes, at or behind byte *at: './x', '../x'. false: no further one. *at stands behind it then.
 */
bool script__next_spec(const base_buf *text, uint32_t *at, uint32_t *ret_from, uint32_t *ret_to);

/* The file that a path means, seen from the one at `from`; NULL: none of the tree. */
const char *script__module(const refactor *x, const char *from, const char *spec);

#endif
