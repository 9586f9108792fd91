/*
 * Between the files of this folder only: what a node type means (tables.c), a found grammar (grammars.c), and
 * the builder with which parse.c and lexical.c write a code_file.
 */
#ifndef KVIST_CODE_INTERNAL_H
#define KVIST_CODE_INTERNAL_H

#include "base/mem.h"
#include "code/graph.h"

/* What the walk does beside anchors and definitions. */
enum {
    NODE_NEEDS_BODY = 1u << 0,   /* a definition only with a body field: `struct x *p` is a use */
    NODE_VARIABLE = 1u << 1,     /* defines a name outside functions; a function when its value is one */
    NODE_IF_FUNCTION = 1u << 2,  /* defines a name only when its value is a function: x.y = function () {} */
    NODE_SCOPE = 1u << 3,        /* gives inner definitions their parent, is none itself: impl, namespace */
    NODE_LITERAL = 1u << 4,      /* a function without a name */
    NODE_WRAPS = 1u << 5,        /* its definition starts where it starts: decorated, export, template<> */
    NODE_WRAPS_ONE = 1u << 6,    /* the same, when it holds one definition: type (...), const x */
    NODE_ATTRIBUTE = 1u << 7,    /* a sibling in front that belongs to the definition: #[derive] */
    NODE_BLOCK = 1u << 8,        /* a body: extents stop in front of it */
    NODE_DECLARES = 1u << 9,     /* C declaration: a prototype, variables or fields, by its declarators */
    NODE_DECLARATION = 1u << 10, /* always without a body: function_signature_item */
    NODE_COMMENT = 1u << 11,
    NODE_TAIL_RETURNS = 1u << 12, /* the last expression of its body is what it returns */
    NODE_NAMED_JUMP = 1u << 13,   /* a call that may be named return, exit, raise: then it is one */
    NODE_STEP = 1u << 14,         /* an assignment only with ++ or -- */
    NODE_MAY_DECLARE = 1u << 15,  /* without a body it is a declaration */
};

/*
 * One row of a language's table: a node type, the anchor it is (-1: none), the definition it is (NULL: none),
 * flags.
 */
typedef struct code_node_row {
    const char *node;
    int kind;
    const char *what;
    unsigned flags;
} code_node_row;

typedef struct code_table {
    const char *language;
    const code_node_row *rows; /* ends with a NULL node */
} code_table;

/* Of the languages that `kvist grammar list` names; the last one's language is NULL. */
extern const code_table code_tables[];
/* NULL: no table, names decide (code_row_by_name). */
const code_table *code_table_of(const char *language);
/* A guess from the name of a node type of a grammar without a table; node NULL when it means nothing. */
code_node_row code_row_by_name(const char *node);
/*
 * How control passes through a node type, and what names in it mean: the kind in the low bits, flags above.
 * One table for all languages by node name (flow.c), since grammars agree on most of them.
 */
typedef uint8_t code_flow;
enum {
    FLOW_NONE,
    FLOW_SEQUENCE, /* its children run one after the other */
    FLOW_IF,
    FLOW_ELSE, /* a clause that only holds a body */
    FLOW_LOOP, /* tested before its body */
    FLOW_DO,   /* tested behind its body */
    FLOW_FOREVER,
    FLOW_SWITCH, /* cases end by themselves */
    FLOW_FALL,   /* cases fall through */
    FLOW_CASE,
    FLOW_RETURN, /* leaves the function: return, throw */
    FLOW_BREAK,
    FLOW_CONTINUE,
    FLOW_GOTO,
    FLOW_LABEL,
    FLOW_TRY,
    FLOW_HANDLER,
    FLOW_FINALLY,
    FLOW_WITH, /* a head and a body that runs once */
    FLOW_KINDS = 31,
    FLOW_BINDS = 32,   /* its left, name, pattern, ... fields define names */
    FLOW_REACHES = 64, /* a.b, a[i], f(a), *a: a below it is used, never defined */
    FLOW_MEMBER = 128, /* its name field is a member's, no variable's */
};
code_flow code_flow_of(const char *language, const char *node);

/* ---- building a code_file ---- */

typedef struct code_builder {
    code_file *file;
    size_t cap_definitions, cap_anchors;
    const char *text;
    size_t n;
    uint32_t line, line_at; /* cursor of line counting: line number at byte line_at */
} code_builder;

/* language NULL: lexical. text must live until code_builder_end or _abandon, one of which is due. */
void code_builder_begin(code_builder *b, const char *language, const char *text, size_t n);
/* A copy that lives as long as the file. */
const char *code_builder_name(code_builder *b, const char *s, size_t n);
/*
 * Appends; name and parent must live as long as the file. Lines are filled in. Returns the index, UINT32_MAX
 * beyond 2^20.
 */
uint32_t code_builder_define(code_builder *b, const code_definition *d);
/* The same with lines that are known; false beyond 2^20. */
bool code_builder_put(code_builder *b, const code_definition *d, uint32_t line, uint32_t line_end);
void code_builder_anchor(code_builder *b, const code_anchor *a);
code_file *code_builder_end(code_builder *b); /* sorts the anchors; code_file_free */
void code_builder_abandon(code_builder *b);   /* frees what was built */

/*
 * What reads this file: a number that changes with the grammar, the tables and this code. *ret_language: as
 * code_file.language would be (NULL: lexical by its name).
 */
uint64_t code_reader_tag(
    code_grammars *g, const char *path, const char *text, size_t n, const char **ret_language);
/* Raised with every change of what parse.c, lexical.c, inactive.c or builder.c give for the same text. */
#define CODE_READER_VERSION 6

/*
 * code_parse for a file that is being edited: *kept holds the tree of the text before (NULL at first), so
 * that only what changed is parsed. Free what is kept with code_kept_free.
 */
typedef struct code_kept code_kept;
code_file *code_parse_edited(
    code_grammars *g, const char *path, const char *text, size_t n, code_kept **kept);
void code_kept_free(code_kept *kept);

/* The lexical reading. `language` may be NULL. */
code_file *code_parse_lexical(const char *language, const char *path, const char *text, size_t n);

/* ---- tree-sitter ---- */
#ifdef KVIST_HAVE_TREE_SITTER
#include <tree_sitter/api.h>

enum code_field {
    FIELD_NONE,
    FIELD_NAME,
    FIELD_DECLARATOR,
    FIELD_BODY,
    FIELD_TYPE,
    FIELD_RECEIVER,
    FIELD_LEFT,
    FIELD_RIGHT,
    FIELD_CONDITION,
    FIELD_VALUE,
    FIELD_ARGUMENTS,
    FIELD_CONSEQUENCE,
    FIELD_KEY,
    FIELD_PROPERTY,
    FIELD_ALTERNATIVE,
    FIELD_FUNCTION,
    FIELD_METHOD,
    FIELD_ATTRIBUTE,
    FIELD_FIELD,
    FIELD_PARAMETERS,
    FIELD_PARAMETER,
    FIELD_PATTERN,
    FIELD_ALIAS,
    FIELD_ARGUMENT,
    FIELD_INITIALIZER,
    FIELD_UPDATE,
    FIELD_VARIABLE,
    FIELD_LABEL,
    FIELD_COMMUNICATION,
    FIELD_N
};

enum code_name_kind {
    CODE_NAME_ONLY = 1,    /* of a type, a field, a label: no variable */
    CODE_NAME_VARIABLE,    /* may be a variable's */
    CODE_NAME_OF_VARIABLE, /* PHP's name: below a variable_name */
};

typedef struct code_grammar {
    const TSLanguage *language;
    const char *name;
    uint32_t n_symbols, n_fields;
    uint8_t *row_of;     /* [n_symbols] 1 + index into rows; 0: means nothing */
    uint8_t *field_of;   /* [n_fields + 1] enum code_field */
    uint8_t *is_name;    /* [n_symbols] enum code_name_kind; 0: no identifier */
    code_flow *flow_of;  /* [n_symbols] */
    code_node_row *rows; /* at most 255 */
    uint64_t tag;        /* of its symbols and of the table */
} code_grammar;

/* NULL: none. Loaded once, valid until code_grammars_close. */
const code_grammar *code_grammar_get(code_grammars *g, const char *language);
struct code_tree;
/* Definitions and anchors of a tree; code_file_free. */
code_file *code_parse_tree(const struct code_tree *t);
/* The dependences of its functions; f: what code_parse_tree gave of the same tree. code_graph_clear. */
void code_graph_build(const struct code_tree *t, const code_file *f, code_graph *ret);
#endif
/* Frees what the graph holds; it is empty then. */
void code_graph_clear(code_graph *x);

#endif
