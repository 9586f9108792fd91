/*
 * Where a file writes a name, and what its syntax says about each place: a bare name or a member, a local of
 * which function, behind an object of which type. Nothing here knows another file; who puts files together
 * decides what a place means (src/tools/refactor).
 */
#ifndef KVIST_CODE_USES_H
#define KVIST_CODE_USES_H

#include "code/code.h"

typedef enum code_use_role {
    CODE_USE_NAME,    /* a variable, function, type or macro, by its own name */
    CODE_USE_MEMBER,  /* behind an object, a type or a module: x.name, x->name, X::name */
    CODE_USE_KEY,     /* {name: 1}, f(name=1), .name = 1 */
    CODE_USE_LABEL,   /* of goto */
    CODE_USE_MACRO,   /* in the text of a #define, which has no tree */
    CODE_USE_STRING,  /* a whole word of a string */
    CODE_USE_COMMENT, /* a whole word of a comment */
    CODE_USE_UNREAD   /* where the file did not parse, or in what the grammar skips */
} code_use_role;

/* What stands in front of a member. */
typedef enum code_object {
    CODE_OBJECT_NONE,
    CODE_OBJECT_UNKNOWN,
    CODE_OBJECT_SELF,   /* self, this, super: `object` is the enclosing type */
    CODE_OBJECT_TYPED,  /* a variable of the type `object`, as declared or made: Foo x, x = Foo() */
    CODE_OBJECT_CALLED, /* what the function `object` returns */
    CODE_OBJECT_NAMED,  /* the bare name `object`, no variable of this file: a type, a module */
    CODE_OBJECT_MODULE, /* require('object') */
    CODE_OBJECT_LITERAL /* a string, a number */
} code_object;

typedef struct code_use {
    uint32_t from, line; /* byte; 1-based line */
    /* The local that it means: the byte of the name that declares it; UINT32_MAX: no local. */
    uint32_t binding;
    uint32_t definition; /* of the file's definitions it is the name of; UINT32_MAX: none */
    uint32_t inside;     /* the innermost function, method or type that holds it; UINT32_MAX: none */
    uint32_t import;     /* of the file's imports it stands in; UINT32_MAX: none */
    const char *object;  /* with object_kind; "" else */
    const char *before;  /* the bare name in front of a member, whatever its type; "": none */
    const char *through; /* C: of a.b.name the member b; "": none */
    /* C: declares a field of an unnamed struct or union, which is the type of the member or variable `within`; "" */
    const char *within;
    const char *holder; /* the type that encloses it; "": none */
    const char *callee; /* KEY: the function or type whose argument it names; "" unknown */
    uint8_t role, object_kind;
    bool is_call;      /* name(...) */
    bool is_type;      /* by the grammar a type's name */
    bool is_tag;       /* C: struct name */
    bool is_shorthand; /* {name}: key and variable at once */
    bool is_parameter; /* declares a parameter */
    bool is_exported; /* stands in what the module exports: export {name}, module.exports = {name}, __all__ */
    bool is_unnamed;  /* Java: in an unnamed class, new Type() {...}: `holder` is that type */
    bool is_access;   /* MACRO: behind . or -> */
} code_use;

/* `from module import name as local`; name "": the module itself, "*": all of its names. */
typedef struct code_import {
    const char *module, *name, *local;
    uint32_t from, to;
    bool is_export; /* hands it on: export {x} from, export * from */
} code_import;

/* The type `name` has the parent or interface `base`, or is another name of it. Equal: of a type of that name elsewhere. */
typedef struct code_base {
    const char *name, *base;
} code_base;

typedef struct code_uses {
    code_file *file;
    code_use *uses; /* ascending by from */
    uint32_t n_uses;
    code_import *imports;
    uint32_t n_imports;
    code_base *bases;
    uint32_t n_bases;
    char **strings; /* arena of the strings above */
    size_t n_strings, cap_strings;
} code_uses;

/* NULL: no grammar reads this file. */
code_uses *code_uses_find(code_grammars *g, const char *path, const char *text, size_t n, const char *name);
void code_uses_free(code_uses *u);
/* Are the locals of this language told apart (scopes.h)? */
bool code_uses_know_locals(const char *language);

/* A parameter list, or the arguments of a call. */
typedef struct code_item {
    uint32_t from, to; /* without white space around it */
} code_item;
typedef struct code_item_list {
    uint32_t from, to; /* the byte behind "(", the byte of ")" */
    code_item *items;  /* between the commas of that level; the caller frees */
    uint32_t n;
} code_item_list;
/* The list at or behind byte `at`, where a function's name ends. false: there is none, and *ret is empty. */
bool code_items(
    code_grammars *g, const char *path, const char *text, size_t n, uint32_t at, code_item_list *ret);

#endif
