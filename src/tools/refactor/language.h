/*
 * What operations on definitions have to know of a language: a table with a row each (language.c). Code asks for what it needs to know, and
 * for the family alone where a step is one language's own.
 */
#ifndef KVIST_TOOLS_REFACTOR_LANGUAGE_H
#define KVIST_TOOLS_REFACTOR_LANGUAGE_H

#include <stdbool.h>

/* Languages whose files see each other's names: C with C++, JavaScript with TypeScript, every other alone. */
typedef enum refactor_family {
    REFACTOR_NO_FAMILY,
    REFACTOR_C,
    REFACTOR_JS,
    REFACTOR_PYTHON,
    REFACTOR_GO,
    REFACTOR_JAVA,
    REFACTOR_RUST,
    REFACTOR_RUBY,
    REFACTOR_PHP,
    REFACTOR_C_SHARP,
    REFACTOR_BASH,
    REFACTOR_N_FAMILIES,
} refactor_family;

/* How a definition is hidden from other files. */
typedef enum refactor_hiding {
    REFACTOR_HIDES_NOTHING,
    REFACTOR_HIDES_BY_NAME,   /* _name, name instead of Name */
    REFACTOR_HIDES_BY_STATIC, /* static, and its prototypes go */
    REFACTOR_HIDES_BY_WORD,   /* private; without export, without pub */
} refactor_hiding;

typedef struct refactor_language {
    const char *name; /* code_language's */
    refactor_family family;
    refactor_hiding hiding;
    /* One file declares what another defines (headers, extern), and all names are seen from everywhere. */
    bool declares_apart;
    bool has_tags;               /* "struct x" is another name than "x" */
    bool is_untyped;             /* one name may be a value, a function and a type */
    bool has_free_objects;       /* an object needs no type: any literal may have the member */
    bool is_structural;          /* a type goes by its members and not by its name */
    bool renames_imports;        /* a file may call what it imports by another name */
    bool has_paths;              /* what stands in a type or module is reached by a path: a::b */
    bool has_bare_members;       /* a bare name may be a member of the type around it */
    bool has_constant_members;   /* a constant may be a type's member: Color.RED */
    bool has_named_constructors; /* a constructor has the type's name */
    bool has_type_first;         /* "int x" and not "x int" */
    bool has_defaults;           /* a parameter may have one */
    bool has_optionals;          /* "b?: T": a call may leave it out */
    bool has_keywords;           /* a call may name its arguments */
    bool has_semicolons;         /* a statement ends with one, or may */
    /* As a parameter of an integer, a float, a truth, a string declares it; NULL: by its name alone. */
    const char *types[4];
    const char *hints[4]; /* the same where it may say its type and need not; NULL: it never does so */
} refactor_language;

/* The row of code_language's name; one that says nothing for others and for NULL. */
const refactor_language *refactor__language(const char *name);

#endif
