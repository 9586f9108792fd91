/*
 * Keys as the shell sees them: a character, a control code (Enter is 13, Ctrl+J 10, Tab 9, Esc 27), or one of
 * the codes below. keys.c makes them from what curses reads; tests name them ("C-r", "S-Tab", "PgUp").
 */
#ifndef KVIST_TUI_KEYS_H
#define KVIST_TUI_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define TUI_CTRL(c) ((uint32_t)((c)&0x1f))

/* clang-format off */
/* X(identifier, "name") */
#define TUI_KEYS(X) \
    X(UP, "Up") X(DOWN, "Down") X(LEFT, "Left") X(RIGHT, "Right") X(HOME, "Home") X(END, "End") \
    X(PAGE_UP, "PgUp") X(PAGE_DOWN, "PgDn") X(DELETE, "Del") X(BACKSPACE, "Backspace") X(BACKTAB, "S-Tab") \
    X(F1, "F1") X(F2, "F2") X(WORD_LEFT, "C-Left") X(WORD_RIGHT, "C-Right") \
    X(ALT_BACKSPACE, "A-Backspace") X(ALT_ENTER, "A-Enter") X(PASTE, "Paste") X(RESIZE, "Resize") X(GONE, "Gone")
/* clang-format on */
#define TUI_KEY_ENUM(id, name) TUI_KEY_##id,
enum tui_key { TUI_KEY_FIRST = 0x110000, TUI_KEYS(TUI_KEY_ENUM) TUI_KEY_LAST };

enum { TUI_KEY_ENTER = 13, TUI_KEY_NEWLINE = 10, TUI_KEY_TAB = 9, TUI_KEY_ESC = 27 };

/*
 * Reads one key without waiting; false: nothing there. A bracketed paste comes as one TUI_KEY_PASTE with its
 * text in *paste (at most 8 MiB, the rest is dropped). TUI_KEY_GONE: the terminal went away. The terminal
 * must be open (painter.h).
 */
bool tui_keys_read(uint32_t *ret, base_buf *paste);
/*
 * What a terminal answers about its background comes among the keys, at any time, and is no key: whoever set this
 * gets its text (palette.h), and the read key is TUI_KEY_RESIZE, since all is painted again. What else a terminal says for
 * itself is dropped.
 */
typedef void tui_keys_answer_fn(const char *text, size_t n);
void tui_keys_on_background(tui_keys_answer_fn *tell);
void tui_keys_open(void); /* after curses started: names the sequences that terminfo does not have */

#endif
