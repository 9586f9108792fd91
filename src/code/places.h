/*
 * The places an answer names. A weak model is right about names more often than about lines, so the program
 * looks up every name and path in the answer's text and says where it really is, or that the tree has no such
 * thing.
 *
 * Only what clearly is a name counts: words in backticks, calls such as f(), camelCase, snake_case,
 * Cls.method, Cls::method, and paths. Plain English words are never reported; one in backticks counts when a
 * function, a type or a field has that name. Called by the agent after each answer, on the engine thread.
 */
#ifndef KVIST_CODE_PLACES_H
#define KVIST_CODE_PLACES_H

#include "code/index.h"

typedef enum code_place_state {
    CODE_PLACE_DEFINED,   /* defined at path:line */
    CODE_PLACE_FILE,      /* a path of the tree; line: as cited when the file has it, else 0 */
    CODE_PLACE_MENTIONED, /* used in the tree, defined elsewhere (a library's function) */
    CODE_PLACE_MISSING,   /* neither defined nor mentioned; a path that does not exist */
    CODE_PLACE_BAD_LINE,  /* the path exists, the cited line does not */
} code_place_state;

typedef struct code_checked {
    char *name; /* as the answer wrote it: "freeReplyObject", "hiredis.h:89" */
    code_place_state state;
    char *meant; /* MISSING: the one name of the tree that this is a slip of, with its place; NULL: none */
    char *path;  /* the full path in the tree; NULL for MENTIONED, and for MISSING that means nothing */
    uint32_t line, line_end;
    char *what;                    /* "function", ...; "file" for paths */
    char *parent;                  /* "" at the top */
    uint32_t n_more;               /* further definitions of this name */
    bool was_cited_elsewhere;      /* the answer gave this name a path:line that is not its definition's */
    uint32_t cited_from, cited_to; /* with that: the bytes of the answer that say so, the first time */
} code_checked;

/*
 * At most `cap` checked names (0: 12), in the order in which the answer writes them, each once. Text inside
 * fenced blocks counts only for names that the prose has too. Free with code_places_checked_free. Returns the
 * number.
 */
uint32_t code_places_check(
    const code_index *x, const char *answer, size_t n, uint32_t cap, code_checked **ret);
void code_places_checked_free(code_checked *c, uint32_t n);

/* One line for a person: "freeReplyObject: hiredis.c:91 (function)", "no src/reply.py in this tree". */
void code_places_line(const code_checked *c, base_buf *out);

#endif
