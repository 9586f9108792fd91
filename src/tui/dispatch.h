/*
 * What a person types: one key, or a paste as one piece.
 */
#ifndef KVIST_TUI_DISPATCH_H
#define KVIST_TUI_DISPATCH_H

#include "tui/ui.h"

/* key: a character, or one of tui/terminal/keys.h. u->now_ms must be set: keys typed too early answer nothing. */
void tui_ui_key(tui_ui *u, uint32_t key);
void tui_ui_paste(tui_ui *u, const char *text, size_t n); /* n bytes, UTF-8 */

#endif
