/*
 * The input line: UTF-8 text of any number of lines with a cursor between characters. A long paste is folded
 * to a marker that stands for it until the text is taken.
 */
#ifndef KVIST_TUI_EDITOR_H
#define KVIST_TUI_EDITOR_H

#include <stdbool.h>

#include "tui/terminal/grid.h"

typedef struct tui_paste {
    char *marker, *text; /* "[pasted 120 lines]" */
    size_t n;
} tui_paste;

typedef struct tui_editor {
    base_buf text;
    size_t cursor; /* bytes; between characters */
    base_buf killed;
    tui_paste *pastes;
    size_t n_pastes, cap_pastes;
} tui_editor;

void tui_editor_free(tui_editor *e);
bool tui_editor_empty(const tui_editor *e);
void tui_editor_set(tui_editor *e, const char *text); /* cursor at the end; forgets pastes */
void tui_editor_insert(tui_editor *e, const char *s, size_t n);
void tui_editor_paste(tui_editor *e, const char *s, size_t n);
char *tui_editor_take(tui_editor *e);       /* the text with pastes unfolded; empty afterwards */
char *tui_editor_peek(const tui_editor *e); /* the same, and it stays */
/* false: not a key of the editor (also Up in the first line, Down in the last) */
bool tui_editor_key(tui_editor *e, uint32_t key);
/* The bytes from the last blank before the cursor to the cursor. */
base_str tui_editor_word(const tui_editor *e);
void tui_editor_replace_word(tui_editor *e, const char *s);

/* Lines at this width, and the lines painted with the cursor in view.*/
int tui_editor_height(const tui_editor *e, int width);
void tui_editor_draw(
    const tui_editor *e, tui_area a, const char *prompt, tui_style prompt_style, bool focused);

#endif
