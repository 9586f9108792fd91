/*
 * The inspector's views: a file and a row each. All share one cursor (a token); a view divides the sequence
 * into its own units (bins, spans, lines, turns) and paints them.
 */
#ifndef KVIST_TUI_VIEW_H
#define KVIST_TUI_VIEW_H

#include "tui/ui.h"

struct tui_view {
    const char *name, *about;
    void (*draw)(tui_ui *u, tui_area a);
    /* The unit at the cursor: its tokens [from, to). False: nothing there. */
    bool (*unit)(tui_ui *u, uint32_t *from, uint32_t *to);
    void (*move)(tui_ui *u, int64_t units);    /* INT32_MIN, INT32_MAX: first, last */
    const tui_view *enter;                     /* Enter drills down to */
    void (*explain)(tui_ui *u, base_buf *out); /* what the row at the cursor means, in plain sentences */
};

#define VIEW(name) extern const tui_view tui_view_##name;
#include "tui/views.def"
#undef VIEW
extern const tui_view *const tui_views[]; /* the first has the key 1; at most nine, and NULL behind them */

/* The units of the strip, one bin each: for views that have none of their own. */
bool tui_strip_unit(tui_ui *u, uint32_t *from, uint32_t *to);
void tui_strip_move(tui_ui *u, int64_t units);

/* --- in plain words (explain.c) --- */
/* The panel on one screen: strip, ledger and reasons. */
void tui_explain_panel(const tui_ui *u, tui_text *t, int width);
void tui_explain_strip(tui_ui *u, base_buf *out);
void tui_explain_spans(tui_ui *u, base_buf *out);
void tui_explain_blame(tui_ui *u, base_buf *out);
void tui_explain_ledger(tui_ui *u, base_buf *out);
void tui_explain_history(tui_ui *u, base_buf *out);
void tui_explain_why(tui_ui *u, base_buf *out);
void tui_explain_mask(tui_ui *u, base_buf *out);
void tui_explain_lanes(tui_ui *u, base_buf *out);
/* The sentence behind a reason's word; "" for a word that is none. */
const char *tui_reason_sentence(const char *word);

/* Paints one turn's ledger as text from line y on; returns the lines taken. */
int tui_ledger_lines(tui_ui *u, tui_area a, int y, uint32_t turn);
/* "1,234,567" */
const char *tui_thousands(int64_t n, char buf[32]);
/* "97.4 MiB" */
const char *tui_size(int64_t bytes, char buf[32]);

/* --- the question (question.c) --- */
/*
 * Lays the headline out; the lines it takes with its keys, `most` and one at most. t is for
 * tui_question_draw.
 */
int tui_question_height(tui_ui *u, int width, int most, tui_text *t);
void tui_question_draw(tui_ui *u, tui_area a, const tui_text *t);
void tui_question_lines(tui_ui *u, int width, tui_text *t);
/* What was on the screen: all lines of an item of the chat; the popup's text, to its end or not. */
void tui_question_saw_item(tui_ui *u, size_t item);
void tui_question_saw_popup(tui_ui *u, bool its_end);
/* How this terminal shows a line of foreign text, and a line of code. */
base_show_form tui_text_form(const tui_ui *u);
base_show_form tui_code_form(const tui_ui *u);

#endif
