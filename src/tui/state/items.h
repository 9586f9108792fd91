/*
 * The items of the transcript, a list that events lengthen, and how foreign text comes into one: made harmless, and no
 * longer than an item may be. For the functions that apply events (state.c, cache_events.c).
 */
#ifndef KVIST_TUI_ITEMS_H
#define KVIST_TUI_ITEMS_H

#include "tui/state/state.h"

/* Text without what a terminal would obey. */
void tui_add_clean(base_buf *b, const char *s, bool keep_newlines);
char *tui_clean(const char *s); /* a line of it; NULL for NULL; the caller frees */
void tui_set_clean(char **field, const char *s);
/* What a tool would do, in a line: a command's line ends and all that is not seen are visible in it. */
void tui_add_shown(base_buf *b, const char *s);

tui_item *tui_items_last(tui_state *s); /* NULL: there is none */
/* of the newest turn; nothing streams before it any more but an answer that more may come of */
tui_item *tui_items_add(tui_state *s, tui_item_kind kind);
void tui_items_drop_last(tui_state *s);
void tui_items_remove(tui_state *s, tui_item *item);
tui_item *tui_items_running_tool(tui_state *s); /* the one that waits for its result; NULL */
void tui_item_free(tui_item *i);                /* what it holds */

#endif
