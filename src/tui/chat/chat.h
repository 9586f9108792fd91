/*
 * The chat pane: transcript, footer, the question of a tool that wants to act, and what lies over the transcript
 * for a moment (popups). Each paints into the area that it is given, and takes the keys that are its own.
 */
#ifndef KVIST_TUI_CHAT_H
#define KVIST_TUI_CHAT_H

#include "base/show.h"
#include "tui/terminal/styled_text.h"
#include "tui/ui.h"

void tui_chat_draw(tui_ui *u, tui_area a);
void tui_footer_draw(tui_ui *u, tui_area a);

/* --- popups (popup.c): help, rewind, history, a text in full; ui.h opens them --- */
void tui_popup_draw(tui_ui *u, tui_area a);
bool tui_popup_key(tui_ui *u, uint32_t key); /* false: no popup takes keys */

/* --- /tour (tour.c) --- */
void tui_tour_begin(tui_ui *u);
void tui_tour_key(tui_ui *u, uint32_t key);
/* The page that is shown: appends its title and text; returns the line that names the keys. */
const char *tui_tour_page(tui_ui *u, base_buf *title, base_buf *text);

/* --- the question (question.c) --- */
/*
 * Lays the headline out into t; returns the lines it takes with its keys: `most` at most, and one at least. t is
 * for tui_question_draw.
 */
int tui_question_height(tui_ui *u, int width, int most, tui_text *t);
void tui_question_draw(tui_ui *u, tui_area a, const tui_text *t);
/* All of it, laid out for the popup. */
void tui_question_lines(tui_ui *u, int width, tui_text *t);
/* What was on the screen: all lines of an item of the chat; the popup's text, to its end or not. */
void tui_question_saw_item(tui_ui *u, size_t item);
void tui_question_saw_popup(tui_ui *u, bool its_end);
bool tui_question_was_read(const tui_ui *u); /* to its end: y may answer it */
/* How this terminal shows a line of foreign text, and a line of code. */
base_show_form tui_text_form(const tui_ui *u);
base_show_form tui_code_form(const tui_ui *u);

#endif
