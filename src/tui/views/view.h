/*
 * The inspector's views: a file and a row each. All share one cursor (a token); a view divides the sequence
 * into its own units (bins, spans, lines, turns) and paints them.
 */
#ifndef KVIST_TUI_VIEW_H
#define KVIST_TUI_VIEW_H

#include "tui/terminal/numbers.h"
#include "tui/ui.h"

typedef struct tui_view {
    const char *name, *about;
    void (*draw)(tui_ui *u, tui_area a);
    /* The unit at the cursor: its tokens [from, to). False: nothing there. */
    bool (*unit)(tui_ui *u, uint32_t *from, uint32_t *to);
    void (*move)(tui_ui *u, int64_t units); /* INT32_MIN, INT32_MAX: first, last */
    tui_view_id enter;                      /* Enter drills down to */
    /* For the key ?, in plain sentences: how the view is read, and what follows. */
    const char *reads;                         /* NULL: explain says it */
    void (*explain)(tui_ui *u, base_buf *out); /* NULL: what is known of the tokens at the cursor */
} tui_view;

#define VIEW(name) extern const tui_view tui_view_##name;
#include "tui/views.def"
#undef VIEW
extern const tui_view *const tui_views[TUI_N_VIEWS]; /* the first has the key 1; at most nine */

/* The unit at the cursor, of the view that is shown; why has none of its own: of the one before it. */
bool tui_view_unit(tui_ui *u, uint32_t *from, uint32_t *to);

/* --- the cursor by cells of the strip, for views that have no units of their own (strip_cursor.c) --- */
bool tui_strip_unit(tui_ui *u, uint32_t *from, uint32_t *to);
void tui_strip_move(tui_ui *u, int64_t units);

/* --- in plain words (explain.c) --- */
/* The panel on one screen: strip, ledger and reasons. */
void tui_explain_panel(tui_ui *u, tui_text *t, int width);
/* Tokens [from, to): whose they are, what the model sees of them, and why. from == to: there are none yet. */
void tui_explain_tokens(tui_ui *u, uint32_t from, uint32_t to, base_buf *out);
/* The sentence behind a reason's word; "" for a word that is none. */
const char *tui_reason_sentence(const char *word);
/* What an origin's word ("tool") means; "" for a word that is none. */
const char *tui_origin_sentence(const char *word);

/* Paints one turn's ledger as text from line y on; returns the lines taken. */
int tui_ledger_lines(tui_ui *u, tui_area a, int y, uint32_t turn);

#endif
