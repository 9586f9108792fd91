/*
 * What a file's text says: definitions, anchors, syntax errors. By tree-sitter where a grammar is at hand
 * (loaded at run time from the data folder), lexically else. Pure functions of the bytes; no tree is kept.
 * Thread: one code_grammars may be used by several threads (a parser per call).
 *
 * grammars.c finds shared objects, tables.c says what their node types mean, parse.c turns a tree into a
 * code_file, lexical.c does the same without a grammar, language.c knows file names and words, find.c answers
 * questions about a code_file.
 */
#ifndef KVIST_CODE_CODE_H
#define KVIST_CODE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct code_grammars code_grammars;

/*
 * Looks in $KVIST_GRAMMAR_PATH, then the data folder's grammars/, then the system loader. Never fails: no
 * grammar is lexical.
 */
code_grammars *code_grammars_open(void);
/* Nothing that was parsed with them may be used any more. NULL is fine. */
void code_grammars_close(code_grammars *g);

typedef struct code_grammar_info {
    const char *language, *path; /* path NULL: not found */
    uint32_t abi;
    bool usable;            /* found, and of an ABI that this program reads */
    const char *why;        /* not usable because of this; NULL: no sentence */
    const char *unresolved; /* table rows that the grammar lacks, joined by spaces; "" when all resolved */
} code_grammar_info;
/* Every language that has a table, found or not; returns how many. *ret is valid until the next call or close. */
uint32_t code_grammars_list(code_grammars *g, const code_grammar_info **ret);

/*
 * Is this shared object (libtree-sitter-LANG.so, LANG.so or the bundle languages.so) a grammar that this
 * program can use? Its code is run to find out. Says the languages in *ret_languages, joined by spaces (the
 * caller frees).
 */
int code_grammar_inspect(const char *path, char **ret_languages, base_err *err);

/* A test, an example, a benchmark: by its path alone. */
bool code_path_is_test(const char *path);

/* "c", "python", ... by file name (and first line); NULL: unknown. */
const char *code_language(const char *path, const char *text, size_t n);
/* Prose with headings (Markdown, reStructuredText, plain text), no code. language: NULL is none. */
bool code_language_is_document(const char *language);

/*
 * The text, comments and docstrings blanked, every byte in its place; the caller frees. By the language's
 * marks alone, so a piece will do.
 */
char *code_blank_comments(const char *language, const char *text, size_t n);

typedef enum code_kind {
    CODE_CALL,
    CODE_CONTROL,
    CODE_RETURN,
    CODE_ASSIGN,
    CODE_SIGNATURE,
    CODE_N_KINDS
} code_kind;
const char *code_kind_word(code_kind k); /* "call", "control", "return", "assign", "signature" */

/* Byte offsets, end exclusive. */
typedef struct code_anchor {
    code_kind kind;
    uint32_t definition; /* which code_definition it lies in; UINT32_MAX: none */
    uint32_t core_from, core_to, full_from, full_to;
} code_anchor;

typedef struct code_definition {
    const char *name;   /* "redisReaderFeed", "Cls.method" is name "method" with parent "Cls" */
    const char *parent; /* enclosing type or definition; "" at the top */
    /*
     * "function", "method", "class", "struct", "enum", "typedef", "macro", "type", "interface", "variable",
     * "field"
     */
    const char *what;
    uint32_t from, to;           /* the whole definition, decorators included */
    uint32_t name_from;          /* where its name stands */
    uint32_t body_from, body_to; /* 0, 0 when it has none (declarations) */
    uint32_t line, line_end;     /* 1-based, of from and of the last byte */
    bool is_declaration;         /* a prototype: ranks behind the definition */
} code_definition;

typedef struct code_file {
    const char *language;         /* NULL: lexical */
    code_definition *definitions; /* ascending by from */
    uint32_t n_definitions;
    code_anchor *anchors; /* ascending by core_from */
    uint32_t n_anchors;
    /* "no grammar is there for it", "it is larger than 1 MiB", ...; NULL: read by a grammar */
    const char *why_lexical;
    uint32_t n_errors;   /* syntax errors (tree-sitter ERROR and MISSING nodes) */
    uint32_t error_line; /* the first one's, 1-based; 0: none */
} code_file;

/*
 * Always gives a file (lexical at worst): without a grammar, over 1 MB, minified, or past 5 s it is lexical.
 * `g` may be NULL. Text of 4 GB or more gives an empty file.
 */
code_file *code_parse(code_grammars *g, const char *path, const char *text, size_t n);
void code_file_free(code_file *f);

/*
 * The definitions that a name means in this file, best first: "f", "Cls.method", "Cls::method",
 * "ns.Cls.method", "f()". Functions, methods and types come before variables and fields, definitions before
 * declarations, the exact parent before any other; a definition in another letter case counts only when
 * nothing else fits. Writes up to cap indices into f->definitions and returns how many there are: 0 none, 1
 * sure, more ambiguous.
 */
uint32_t code_find_definition(const code_file *f, const char *name, uint32_t *ret, uint32_t cap);

/*
 * The innermost definition that holds the byte (functions, methods and types; no fields or variables);
 * UINT32_MAX: none.
 */
uint32_t code_definition_at(const code_file *f, uint32_t byte);

/* "push" of "Stack.push" and of "ns::Stack::push": a part of the name given. */
const char *code_last_name(const char *name);
/* ASCII letters, digits, _, $ and any byte >= 0x80. */
bool code_is_name_byte(char c);
/* The next identifier (of name bytes, not starting with a digit) at or behind *pos: false at the end. */
bool code_next_identifier(const char *text, size_t n, size_t *pos, size_t *from, size_t *to);
/* Does this identifier stand in the text, in exactly these letters? */
bool code_has_identifier(const char *text, size_t n, const char *name);
/* A keyword of a common language ("if", "return", "struct", ...): no name. */
bool code_is_keyword(const char *word, size_t n);

/*
 * Splits an identifier into lower-case words at case changes, digits and punctuation ("redisvFormatCommand2"
 * gives "redisv format command 2"): appends to out separated by spaces. Shared by index and queries.
 */
struct base_buf;
void code_split_identifier(const char *s, size_t n, struct base_buf *out);

#endif
