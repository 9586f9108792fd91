/*
 * Who uses a definition, by the same reading of the tree that a rename or a deletion rests on (resolve.c). For questions: "can I
 * delete f?", "is g still used?". Nothing is written.
 */
#ifndef KVIST_TOOLS_USED_H
#define KVIST_TOOLS_USED_H

#include "tools/tree/workspace.h"

typedef enum tool_use_kind {
    TOOL_USE_CALL,
    TOOL_USE_NAME, /* handed on, inherited from, a type's name, ... */
    TOOL_USE_IMPORT,
    TOOL_USE_EXPORT,
    TOOL_USE_MAYBE /* may mean another thing of that name */
} tool_use_kind;

typedef struct tool_use_place {
    char *path, *inside; /* inside: the function or type; "": none */
    uint32_t line;
    tool_use_kind kind;
    bool is_test;
} tool_use_place;

typedef struct tool_used {
    char *path, *what; /* of the definition: "function" */
    uint32_t line;
    tool_use_place *places; /* but for the definition's own text; tests last */
    uint32_t n, n_tests;    /* n: with n_tests */
    uint32_t n_unread;      /* files that could use it and were not read */
    uint32_t n_text;        /* places in comments and strings */
    bool is_decorated;      /* Python, Java: what the decorator registers may call it */
} tool_used;

/* false: the tree has no definition of that name, or several that differ, or it was cancelled; tool__used_free either way. */
bool tool__find_used(tool_workspace *w, const char *name, const atomic_bool *cancel, tool_used *ret);
void tool__used_free(tool_used *u);

#endif
