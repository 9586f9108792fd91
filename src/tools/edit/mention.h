/*
 * Where a document speaks of something new: an item of a list of changes, the line beside that of a neighbour, or the end of
 * the section that the request is about. Pure.
 */
#ifndef KVIST_TOOLS_EDIT_MENTION_H
#define KVIST_TOOLS_EDIT_MENTION_H

#include "base/buf.h"

typedef struct tool_mention {
    size_t at;           /* byte where its line begins: a line's beginning, or the end of the text */
    size_t to;           /* behind the line that gives way ("- no changes yet"); at: none does */
    size_t from, behind; /* bytes of the lines around it, which the model is shown */
    base_buf begins;     /* its text up to where words follow; the new name stands in it */
    const char *ends;    /* static: what follows its line, the newline in front of it too */
} tool_mention;

/*
 * text: the document's, not empty. name: what is new. neighbours: NULL-terminated, the nearest first; a line that begins with one
 * of them is what the new one is written like. request: the person's words. tool_mention_free.
 */
void tool__find_mention(const char *path, const base_buf *text, const char *name,
    const char *const *neighbours, const char *request, tool_mention *ret);
void tool_mention_free(tool_mention *m);

#endif
