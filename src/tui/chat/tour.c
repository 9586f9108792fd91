/*
 * /tour: six screens that show how the program works by the person's own session. What a page speaks about
 * stands above its box (the chat, or a view of the panel); left at any time by Esc, and everything is as it
 * was.
 */
#include <string.h>

#include "base/numbers.h"
#include "tui/chat/chat.h"

enum { N_PAGES = 6 };

static uint32_t active_rows(const tui_rows *r)
{
    return r->n_lanes ? (uint32_t)((r->lanes_sum + r->n_lanes / 2) / r->n_lanes) : 0;
}

static void put_asking(tui_ui *u, base_buf *out)
{
    const tui_item *request = NULL;
    size_t excerpts = 0;
    for (size_t i = u->state.n_items; i > 0 && !request; i--) {
        const tui_item *item = u->state.items + i - 1;
        if (item->kind == TUI_ITEM_CONTEXT && item->body.len) {
            excerpts = 1;
            for (size_t k = 0; k < item->body.len; k++) excerpts += item->body.data[k] == '\n';
        }
        if (item->kind == TUI_ITEM_USER && item->turn) request = item;
    }
    if (request) {
        const size_t n = strcspn(request->body.data ? request->body.data : "", "\n");
        base_buf_printf(out, "Your newest request was \"%.*s%s\".", n < 60 ? (int)n : 60,
            request->body.data ? request->body.data : "", n > 60 ? u->glyphs->ellipsis : "");
        if (excerpts)
            base_buf_printf(out, " kvist put %zu excerpt%s of your tree in front of it (Ctrl+O shows them).",
                excerpts, excerpts == 1 ? "" : "s");
    } else {
        base_buf_puts(out, "You have asked nothing yet: \"where are timeouts set?\" is a good beginning.");
    }
    base_buf_puts(out, " Name a file by @, type / for commands, ! for a shell line. ");
    base_buf_puts(out, u->state.is_elsewhere
                           ? "The model runs on the engine you named: requests are sent there."
                           : "The model runs on this machine: nothing you type leaves it.");
}

static void put_asks_first(tui_ui *u, base_buf *out)
{
    base_buf_printf(out,
        "The mode is \"%s\" now; Shift+Tab changes it. In ask, each change of a file and each command waits "
        "for your y, and d shows all of it first. Commands run in a sandbox without a network. /undo takes "
        "back the files that the last turn wrote; your git index and commits are never touched.",
        *tui_ui_mode(u) ? tui_ui_mode(u) : "ask");
}

static void put_strip(tui_ui *u, base_buf *out)
{
    const tui_rows *r = tui_ui_rows(u);
    char x1[32], x2[32], x3[32];
    const uint32_t active = active_rows(r);
    if (r->n == 0) {
        base_buf_puts(out, "This panel (Tab or F2) is what the model remembers. "
                           "It is empty until the model has read something.");
        return;
    }
    base_buf_printf(out, "This panel (Tab or F2) is what the model remembers: %s tokens so far, ",
        base_thousands((int64_t)r->n, x1));
    if (active < r->n)
        base_buf_printf(out, "of which it sees %s. The other %s are set aside, not lost. ",
            base_thousands(active, x2), base_thousands((int64_t)r->n - active, x3));
    else
        base_buf_puts(out, "and it sees all of them. ");
    if (u->state.budget)
        base_buf_printf(out,
            "The budget is %s %s: when it is full, what your request needs least goes aside.",
            base_thousands(u->state.budget, x1), tui_state_unit(&u->state));
    else
        base_buf_printf(out,
            "/budget 4096 would hold it to 4,096 %s: answers stay "
            "fast, and what your request needs least goes aside.",
            tui_state_unit(&u->state));
}

static void put_cost(tui_ui *u, base_buf *out)
{
    const tui_ledger *l = tui_state_ledger(&u->state, u->state.turn);
    char x1[32], x2[32];
    base_buf_puts(out, "What is read once is never read again. ");
    if (l)
        base_buf_printf(out,
            "In turn %u the model read %s new tokens in %.1f s and used %s from before at no cost. ", l->turn,
            base_thousands(l->new, x1), l->prefill_s, base_thousands(l->reused, x2));
    base_buf_puts(out,
        "Each turn has a line here: new, reused, evicted (set aside), promoted (came back), and "
        "why. h and l show the panel as it stood after another turn.");
}

static void put_decisions(tui_ui *u, base_buf *out)
{
    base_buf_puts(out, "This is the text as the model got it, line by line. The mark in front "
                       "says what it still sees: P stays by a rule, k 62% in part, E set "
                       "aside, + came back. Calls, signatures and conditions of code stay "
                       "longer than the rest. On any line ? explains it, w tells its story.");
}

static void put_hand(tui_ui *u, base_buf *out)
{
    base_buf_puts(out, "You have the last word: at the cursor p protects, x sets aside, r brings back; "
                       "/undo-evict takes the last decision back. ");
    if (u->state.session)
        base_buf_printf(out,
            "This session is kept: kvist --resume %s goes on "
            "with nothing read again, kvist replay %s shows it. ",
            u->state.session, u->state.session);
    base_buf_puts(out, "/help lists all keys and commands; F1 on the panel explains its words.");
}

static const struct {
    const char *title;
    tui_focus focus;
    tui_view_id view;
    void (*put)(tui_ui *u, base_buf *out);
} pages[N_PAGES] = {
    {"asking", TUI_FOCUS_CHAT, TUI_VIEW_strip, put_asking},
    {"nothing changes without you", TUI_FOCUS_CHAT, TUI_VIEW_strip, put_asks_first},
    {"what the model remembers", TUI_FOCUS_INSPECTOR, TUI_VIEW_strip, put_strip},
    {"what a turn costs", TUI_FOCUS_INSPECTOR, TUI_VIEW_ledger, put_cost},
    {"what stays, and why", TUI_FOCUS_INSPECTOR, TUI_VIEW_blame, put_decisions},
    {"your hand on it", TUI_FOCUS_INSPECTOR, TUI_VIEW_spans, put_hand},
};

static void show_page(tui_ui *u, int page)
{
    u->popup_at = page;
    u->focus = pages[page].focus;
    u->view = pages[page].view;
}

void tui_tour_begin(tui_ui *u)
{
    u->tour = (tui_tour){.focus = u->focus, .view = u->view};
    tui_popup_open(u, TUI_POPUP_TOUR);
    show_page(u, 0);
}

void tui_tour_key(tui_ui *u, uint32_t key)
{
    const bool goes_back = key == TUI_KEY_LEFT || key == TUI_KEY_UP || key == 'h' || key == 'k' ||
                           key == TUI_KEY_BACKSPACE || key == TUI_KEY_PAGE_UP;
    if (key == 'q' || (!goes_back && u->popup_at == N_PAGES - 1))
        tui_tour_end(u);
    else if (goes_back)
        show_page(u, u->popup_at > 0 ? u->popup_at - 1 : 0);
    else
        show_page(u, u->popup_at + 1);
}

const char *tui_tour_page(tui_ui *u, base_buf *title, base_buf *text)
{
    base_buf_printf(title, "tour %d of %d: %s", u->popup_at + 1, N_PAGES, pages[u->popup_at].title);
    pages[u->popup_at].put(u, text);
    return u->popup_at == N_PAGES - 1 ? "Enter ends it   Left back"
                                      : "Enter goes on   Left back   Esc ends it";
}
