/*
 * What the files that find the uses of a name share (uses.c, imports.c, objects.c): the tree that is being read, what
 * was found so far, and short questions about a node. Node UINT32_MAX is none: every answer to it is no.
 */
#ifndef KVIST_CODE_USES_WORK_H
#define KVIST_CODE_USES_WORK_H

#include <string.h>

#include "code/scopes.h"
#include "code/uses.h"

#ifdef KVIST_HAVE_TREE_SITTER

typedef struct code_finder {
    const code_tree *t;
    code_uses *u;
    const char *name;
    size_t n_name;
    code_scopes scopes;
    size_t cap_uses, cap_imports, cap_bases;
    bool is_c, is_python, is_java, is_go, is_js;
} code_finder;

/* A copy that lives as long as what is found. */
static inline const char *finder_keep(code_finder *f, const char *s, size_t n)
{
    base_grow(&f->u->strings, &f->u->cap_strings, f->u->n_strings + 1, sizeof *f->u->strings);
    return f->u->strings[f->u->n_strings++] = base_xstrndup(s, n);
}

/* The text of a node, kept; "" of none. */
static inline const char *finder_text(code_finder *f, uint32_t i)
{
    if (i == UINT32_MAX) return "";
    return finder_keep(f, f->t->text + f->t->nodes[i].from, f->t->nodes[i].to - f->t->nodes[i].from);
}

static inline uint32_t finder_up(const code_finder *f, uint32_t i)
{
    return i != UINT32_MAX ? f->t->nodes[i].parent : UINT32_MAX;
}

static inline bool finder_is(const code_finder *f, uint32_t i, const char *type)
{
    return code_node_is(f->t, i, type);
}

static inline uint32_t finder_first(const code_finder *f, uint32_t i)
{
    return i != UINT32_MAX ? code_tree_first(f->t, i, false) : UINT32_MAX;
}

static inline bool finder_says(const code_finder *f, uint32_t i, const char *word)
{
    const size_t n = strlen(word);
    return i != UINT32_MAX && f->t->nodes[i].to - f->t->nodes[i].from == n &&
           memcmp(f->t->text + f->t->nodes[i].from, word, n) == 0;
}

/* The text of a string's node without its quotes, kept. */
static inline const char *finder_unquoted(code_finder *f, uint32_t i)
{
    if (i == UINT32_MAX) return "";
    uint32_t from = f->t->nodes[i].from, to = f->t->nodes[i].to;
    while (from < to && strchr("\"'`", f->t->text[from]) != NULL) from++;
    while (to > from && strchr("\"'`", f->t->text[to - 1]) != NULL) to--;
    return finder_keep(f, f->t->text + from, to - from);
}

/* ---- imports.c ---- */

/* Keeps what node i imports from other files, if it does. */
void code_find_import(code_finder *f, uint32_t i);
/* Keeps what the head of a type at node i names: parents, interfaces; in Go what a struct embeds. */
void code_find_bases(code_finder *f, uint32_t i);

/* ---- objects.c ---- */

/* The node of the name that a type's node means: of pkg.List<Foo> List; UINT32_MAX: none. */
uint32_t code_type_name(const code_finder *f, uint32_t i);
void code_set_object(code_use *use, code_object kind, const char *object);
/* Writes to *use what type the expression at node e has, as far as its own text and its variable's declaration say. */
void code_infer_object(code_finder *f, uint32_t e, code_use *use);

#endif
#endif
