/*
 * Former input lines: kept in a file, newest last, walked with Up and Down and searched with Ctrl+R.
 */
#ifndef KVIST_TUI_LINES_H
#define KVIST_TUI_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef struct tui_lines {
    char **line;
    size_t n, cap;
    size_t at;   /* of the walk; n: the line being typed */
    char *draft; /* which waits there */
    char *path;  /* NULL: memory only */
} tui_lines;

void tui_lines_open(tui_lines *l, const char *path); /* a missing or unreadable file is an empty one */
void tui_lines_add(tui_lines *l, const char *text);  /* also appended to the file */
void tui_lines_free(tui_lines *l);
/* The line before or behind in the walk; NULL at the end. `now` is what is in the input. */
const char *tui_lines_walk(tui_lines *l, int step, const char *now);
/* Index of the newest line below `before` that contains `words`; l->n: none. */
size_t tui_lines_find(const tui_lines *l, const char *words, size_t before);

#endif
