/*
 * Where a definition stands that a file lacks: in the type that it is a member of, behind the definition that is
 * most like it. Pure functions of texts.
 */
#ifndef KVIST_TOOLS_EDIT_PLACING_H
#define KVIST_TOOLS_EDIT_PLACING_H

#include "base/buf.h"
#include "code/code.h"
#include "tools/edit/newcomer.h"

/* Definitions are indices of file->definitions; UINT32_MAX: none. */
typedef struct tool_placing {
    /* Given. */
    const code_file *file;
    const base_buf *text; /* the file's; its data is not NULL */
    const tool_newcomer *who;
    const char *request; /* the person's words, which may name the neighbour or the type; may be NULL */
    /* By tool__find_type; the name may be given. */
    uint32_t holder; /* the type that it stands in */
    /* the type that it belongs to, also where its members stand outside of it; NULL: none */
    char *holder_name;
    bool is_around; /* C++, Rust: the file has others of holder_name, outside of any type */
    /* By tool__find_place. */
    uint32_t relative; /* the definition that it stands behind */
    /* they share words of their names, or the request names the relative; else that is the last one */
    bool is_kin;
    size_t at;       /* byte of the text, the begin of a line or the end */
    size_t gap;      /* blank lines between such definitions there */
    base_buf indent; /* the white space in front of its lines */
} tool_placing;

/* false with *why: it can only stand in a type, and there is none for it. */
bool tool__find_type(tool_placing *p, base_buf *why);
/* Behind tool__find_type. fresh: the new text, since C puts it behind what it needs. */
void tool__find_place(tool_placing *p, const base_buf *fresh);
void tool__placing_free(tool_placing *p);

#endif
