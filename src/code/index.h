/*
 * The index of a working tree: definition-sized chunks for retrieval (BM25, identifiers split, definition
 * lines weighted), and a symbol table for finding and checking places. Built from a list of files that the
 * caller gives (git's), refreshed by content hash; never stale after code_index_update of the file. Thread: a
 * mutex inside; updates may run in the background.
 */
#ifndef KVIST_CODE_INDEX_H
#define KVIST_CODE_INDEX_H

#include "base/alike.h"
#include "base/buf.h"
#include "code/code.h"

typedef struct code_index code_index;

/* An empty one. g must live as long. Any thread may use it: calls wait for each other. */
code_index *code_index_new(code_grammars *g);
void code_index_free(code_index *x);

/* From now on a search knows words that stand for one another; alike is borrowed, NULL: it does not. Before other threads search. */
void code_index_set_alike(code_index *x, const base_alike *alike);

/* One file's text is now this (relative path). Unchanged text costs a hash. NULL text removes it. */
void code_index_update(code_index *x, const char *path, const char *text, size_t n);
/* This file will probably change soon: its tree is kept, so that the update is quick (at most 8 files). */
void code_index_expect_edit(code_index *x, const char *path);

/*
 * What parsing gave, kept between starts. load: before the first update; a missing file is fine, a damaged
 * one is used as far as it is good and *word (may be NULL) says so. save writes what is indexed now, unless
 * nothing was parsed since the load.
 */
void code_index_load(code_index *x, const char *path, base_buf *word);
int code_index_save(code_index *x, const char *path, base_err *err);
/* Files parsed since the load or save: what was not found in the store. */
uint32_t code_index_parsed(const code_index *x);
uint32_t code_index_files(const code_index *x);  /* that it holds, also those with a path only */
uint32_t code_index_chunks(const code_index *x); /* pieces that can be hits: definitions and passages */

typedef struct code_hit {
    const char *path;  /* valid until code_hits_free */
    uint32_t from, to; /* bytes of the file */
    uint32_t line, line_end;
    uint32_t definition_line, definition_from; /* where the definition itself starts, behind its comment */
    const char *name;                          /* the definition's ("Cls.method"), "" for a passage */
    const char *what;                          /* as code_definition, or "passage", "declarations" */
    double score;
    const char *why; /* the query words that matched, for /context */
    char *text;      /* the chunk's text as indexed */
    size_t n;
} code_hit;
typedef struct code_hits {
    code_hit *hits; /* best first */
    uint32_t n;
} code_hits;

/* The k best chunks for a request in plain words. */
void code_index_search(const code_index *x, const char *query, uint32_t k, code_hits *ret);
void code_hits_free(code_hits *h);
/*
 * Shortens and drops hits until their texts have at most budget_bytes together, meaning to keep at least
 * `least` (6 is good): long comments lose their front, long bodies their end, at line ends; from, to, line,
 * line_end and n follow.
 */
void code_hits_fit(code_hits *h, size_t budget_bytes, uint32_t least);

typedef struct code_place {
    char *path;
    uint32_t line, line_end, from, to;
    char *what;
    char *parent;
    bool is_declaration;
} code_place;
/*
 * Where a symbol is defined: real definitions first, then declarations; fields behind them, tests last.
 * "Cls.method", "Cls::method" and "method" work. Returns the number; free with code_places_free.
 */
uint32_t code_index_define(const code_index *x, const char *symbol, code_place **ret);
/* Does the tree define it once? Declarations and headings of documents do not count. what: "function"; NULL: of any kind. */
bool code_index_is_sole(const code_index *x, const char *symbol, const char *what);
/* Has the tree a definition of that name? */
bool code_index_is_defined(const code_index *x, const char *symbol);
/*
 * Names of functions, methods and types, each once, at most `cap`, NULL-terminated; free with
 * code_index_paths_free.
 */
char **code_index_symbols(const code_index *x, uint32_t cap);
/*
 * Every name that a definition has, as "name" and, in a type, as "Type.name", in no order, once or more often;
 * NULL-terminated, free with code_index_paths_free. None at all when there are more than `cap`.
 */
char **code_index_names(const code_index *x, uint32_t cap);
void code_places_free(code_place *places, uint32_t n);
/* A definition whose text calls something. */
typedef struct code_caller {
    char *path, *name; /* "Cls.method"; "": the call stands outside of all definitions */
    uint32_t line;     /* of its first call */
} code_caller;
/*
 * Who calls a function of that name, by what the syntax shows: a call through a pointer is none, and of
 * "Cls.method" only the last part is asked for, since a receiver's type is not known. Those in tests come
 * last. Returns how many there are; ret has the first `most` of them, free with code_callers_free.
 */
uint32_t code_index_callers(const code_index *x, const char *symbol, uint32_t most, code_caller **ret);
void code_callers_free(code_caller *callers, uint32_t n);
/* Is this word anywhere in the indexed text as an identifier? (for "not found in this tree") */
bool code_index_mentions(const code_index *x, const char *word);
/*
 * Does the tree hold this path (exact, or as a unique suffix)? Returns the full path (caller frees) or NULL.
 */
char *code_index_path(const code_index *x, const char *path);
/* All paths, NULL-terminated, sorted; free the array and its strings with code_index_paths_free. */
char **code_index_paths(const code_index *x);
void code_index_paths_free(char **paths);

#endif
