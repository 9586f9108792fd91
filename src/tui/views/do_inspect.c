/*
 * The inspector's keys: moving the one cursor in the units of the view, stepping through turns, finding text,
 * and the person's hand on the cache, which goes to the agent as commands like any other line.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tui/actions.h"
#include "tui/views/view.h"

static void move(tui_ui *u, int64_t units)
{
    const tui_rows *r = tui_ui_rows(u);
    u->at_end = false;
    tui_views[u->view]->move(u, units);
    if (units >= INT32_MAX && r->n > 0 && u->at + 1 >= r->n) u->at_end = true;
}

void tui_do_down(tui_ui *u, uint32_t key)
{
    /* On the strip an arrow moves by a row of it, j by a cell. */
    move(u, key == TUI_KEY_DOWN && u->view == TUI_VIEW_strip ? u->strip_columns : 1);
}

void tui_do_up(tui_ui *u, uint32_t key)
{
    move(u, key == TUI_KEY_UP && u->view == TUI_VIEW_strip ? -u->strip_columns : -1);
}

void tui_do_left(tui_ui *u, uint32_t key)
{
    move(u, -1);
}

void tui_do_right(tui_ui *u, uint32_t key)
{
    move(u, 1);
}

void tui_do_first(tui_ui *u, uint32_t key)
{
    move(u, INT32_MIN);
}

void tui_do_last(tui_ui *u, uint32_t key)
{
    move(u, INT32_MAX);
}

void tui_do_half_down(tui_ui *u, uint32_t key)
{
    move(u, u->view == TUI_VIEW_strip ? u->strip_columns : u->page > 2 ? u->page / 2 : 1);
}

void tui_do_half_up(tui_ui *u, uint32_t key)
{
    move(u, u->view == TUI_VIEW_strip ? -u->strip_columns : u->page > 2 ? -(u->page / 2) : -1);
}

/* --- turns ---------------------------------------------------------------------------------------------- */

static void step(tui_ui *u, int turns)
{
    if (u->replay) {
        if (u->host.step) u->host.step(u->host.user, turns);
        return;
    }
    int64_t turn = turns == INT_MIN ? 1 : turns == INT_MAX ? u->state.turn : (int64_t)tui_ui_turn(u) + turns;
    if (turn < 1) turn = 1;
    u->shown_turn = turn >= u->state.turn ? 0 : (uint32_t)turn;
}

void tui_do_turn_before(tui_ui *u, uint32_t key)
{
    step(u, -1);
}

void tui_do_turn_after(tui_ui *u, uint32_t key)
{
    step(u, 1);
}

void tui_do_turn_first(tui_ui *u, uint32_t key)
{
    step(u, INT_MIN);
}

void tui_do_turn_last(tui_ui *u, uint32_t key)
{
    step(u, INT_MAX);
}

void tui_do_play(tui_ui *u, uint32_t key)
{
    if (u->host.play) u->host.play(u->host.user);
}

void tui_do_next_difference(tui_ui *u, uint32_t key)
{
    if (u->host.next_difference) u->host.next_difference(u->host.user);
}

/* --- finding -------------------------------------------------------------------------------------------- */

/* The nearest token in a direction where the text has the words; the search wraps around at the end. */
static void find(tui_ui *u, int direction)
{
    const tui_rows *r = tui_ui_rows(u);
    if (!u->find || !*u->find || r->n == 0) return;
    base_buf text = {0};
    uint32_t n = (uint32_t)r->n, here = u->at < n ? u->at : n - 1;
    uint32_t *offset = base_xcalloc(r->n, sizeof *offset); /* where each token's text begins */
    for (uint32_t i = 0; i < n; i++) {
        offset[i] = (uint32_t)text.len;
        tui_rows_text(r, i, i + 1, &text);
    }
    const uint32_t none = UINT32_MAX;
    uint32_t first = none, last = none, before = none, behind = none, token = 0;
    for (const char *hit = text.data; hit && (hit = strcasestr(hit, u->find)); hit++) {
        while (token + 1 < n && offset[token + 1] <= (uint32_t)(hit - text.data)) token++;
        if (first == none) first = token;
        if (token < here) before = token;
        if (token > here && behind == none) behind = token;
        last = token;
    }
    uint32_t found = direction > 0 ? (behind != none ? behind : first) : before != none ? before : last;
    if (found == none) {
        tui_ui_say(u, "\"%s\" stands nowhere in the sequence", u->find);
    } else {
        u->at = found;
        u->at_end = false;
    }
    free(offset);
    base_buf_free(&text);
}

void tui_do_find_next(tui_ui *u, uint32_t key)
{
    find(u, 1);
}

void tui_do_find_before(tui_ui *u, uint32_t key)
{
    find(u, -1);
}

/* --- views ---------------------------------------------------------------------------------------------- */

static void show(tui_ui *u, tui_view_id view)
{
    if (view == u->view) return;
    u->view_before = u->view;
    u->view = view;
}

void tui_do_view(tui_ui *u, uint32_t key)
{
    for (uint32_t i = 0; i < TUI_N_VIEWS; i++)
        if (key == '1' + i) {
            show(u, (tui_view_id)i);
            return;
        }
    tui_ui_say(u, "no view has this digit; F1 twice lists them");
}

void tui_do_explain(tui_ui *u, uint32_t key)
{
    const tui_view *view = tui_views[u->view];
    base_buf text = {0};
    if (view->reads) base_buf_printf(&text, "%s\n\n", view->reads);
    if (view->explain) {
        view->explain(u, &text);
    } else {
        uint32_t from, to;
        tui_view_unit(u, &from, &to);
        tui_explain_tokens(u, from, to, &text);
    }
    tui_popup_show_text(u, view->about, text.data);
    base_buf_free(&text);
}

void tui_do_explain_panel(tui_ui *u, uint32_t key)
{
    tui_popup_open(u, TUI_POPUP_PANEL);
}

void tui_do_enter(tui_ui *u, uint32_t key)
{
    u->at_end = false;
    show(u, tui_views[u->view]->enter);
}

void tui_do_back(tui_ui *u, uint32_t key)
{
    if (u->shown_turn && !u->replay) {
        u->shown_turn = 0;
    } else if (u->view != TUI_VIEW_strip) {
        u->view = u->view_before != u->view ? u->view_before : TUI_VIEW_strip;
        u->view_before = TUI_VIEW_strip;
    } else {
        u->focus = TUI_FOCUS_CHAT;
    }
}

void tui_do_why(tui_ui *u, uint32_t key)
{
    u->at_end = false;
    show(u, TUI_VIEW_why);
}

void tui_do_sort(tui_ui *u, uint32_t key)
{
    u->sort++;
}

void tui_do_columns(tui_ui *u, uint32_t key)
{
    u->columns++;
}

/* --- a person's hand ------------------------------------------------------------------------------------ */

static void command(tui_ui *u, const char *name)
{
    uint32_t from, to;
    if (u->shown_turn && !u->replay) {
        tui_ui_say(u, "this is how turn %u ended; q or $ goes back to now", u->shown_turn);
        return;
    }
    if (!tui_view_unit(u, &from, &to)) {
        tui_ui_say(u, "nothing was read yet");
        return;
    }
    char line[64];
    snprintf(line, sizeof line, "/%s %u-%u", name, from, to - 1);
    tui_ui_submit(u, line);
    if (!u->replay) tui_ui_say(u, u->n_queue ? "%s: when the model pauses" : "%s", line);
}

void tui_do_pin(tui_ui *u, uint32_t key)
{
    command(u, "pin");
}

void tui_do_unpin(tui_ui *u, uint32_t key)
{
    command(u, "unpin");
}

void tui_do_evict(tui_ui *u, uint32_t key)
{
    command(u, "evict");
}

void tui_do_drop(tui_ui *u, uint32_t key)
{
    command(u, "drop");
}

void tui_do_promote(tui_ui *u, uint32_t key)
{
    command(u, "promote");
}

void tui_do_copy_unit(tui_ui *u, uint32_t key)
{
    uint32_t from, to;
    if (!tui_view_unit(u, &from, &to) || !u->host.copy) return;
    base_buf text = {0};
    tui_rows_text(tui_ui_rows(u), from, to, &text);
    u->host.copy(u->host.user, text.data ? text.data : "", text.len);
    tui_ui_say(u, "sent %zu bytes to the terminal's clipboard", text.len);
    base_buf_free(&text);
}
