/*
 * How a frame is put together: which panes there are and how large, their titles, the lines around the input.
 * What stands inside a pane is painted by chat/ and views/.
 */
#include "tui/frame.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "tui/chat/chat.h"
#include "tui/views/view.h"

enum { WIDE_COLUMNS = 120, MIN_COLUMNS = 24, MIN_ROWS = 6 };

static const char *prompt_of(const tui_ui *u)
{
    switch (u->asking) {
    case TUI_ASK_REASON: return "why not (Enter: no reason)> ";
    case TUI_ASK_EDIT: return "instead> ";
    case TUI_ASK_FIND: return "find> ";
    default: return "> ";
    }
}

static int input_height(const tui_ui *u, int width, int height)
{
    const char *prompt = prompt_of(u);
    int lines = tui_editor_height(&u->editor, width - (int)strlen(prompt)),
        most = height / 3 < 10 ? height / 3 : 10;
    if (most < 1) most = 1;
    return lines < most ? lines : most;
}

/* What was said, on as many lines as it takes (three at most); 0: nothing. */
static int flow_message(const tui_ui *u, int width, tui_text *t)
{
    enum { MOST = 3 };
    if (!u->message) return 0;
    tui_flow f = {.text = t, .width = width};
    tui_flow_puts(&f, TUI_STYLE(TUI_WARN, 0), u->message);
    tui_flow_end(&f);
    return t->n_lines < MOST ? (int)t->n_lines : MOST;
}

/* The chat pane: transcript, what is queued, the question or the input line. */
static void draw_chat_pane(tui_ui *u, tui_area a)
{
    enum { CHAT_BESIDE_A_QUESTION = 3 };
    int input = input_height(u, a.width, a.height), approval = 0;
    tui_text message = {0}, question = {0};
    int queued = (int)u->n_queue < 3 ? (int)u->n_queue : 3, note = flow_message(u, a.width, &message);
    if (u->state.approval.waiting) {
        int most = a.height - input - queued - note - 2 - CHAT_BESIDE_A_QUESTION;
        approval = tui_question_height(u, a.width, most, &question);
    }
    int chat = a.height - input - approval - queued - note - 1;
    if (chat < 1) chat = 1;
    tui_area body = tui_area_within(a, 0, 0, a.width, chat);
    tui_chat_draw(u, body);
    int y = chat;
    tui_rule(a, 0, y++, a.width, TUI_FAINT, u->glyphs->horizontal);
    tui_area asked = tui_area_within(a, 0, y, a.width, approval);
    y += approval;
    for (int i = 0; i < queued; i++) {
        base_buf clean = {0};
        base_utf8_sanitise(&clean, u->queue[i], strlen(u->queue[i]), false);
        int x = tui_put(a, 0, y, TUI_STYLE(TUI_USER, TUI_DIM),
            i == 2 && u->n_queue > 3 ? "queued, and more: " : "queued: ");
        tui_put_short(a, x, y++, a.width - x, TUI_FAINT, u->glyphs->ellipsis, clean.data);
        base_buf_free(&clean);
    }
    for (int i = 0; i < note; i++) tui_text_draw(&message, (size_t)i, a, 0, y++);
    tui_text_free(&message);
    bool focused = u->focus == TUI_FOCUS_CHAT || u->asking != TUI_ASK_NOTHING;
    if (u->replay) {
        tui_put_short(a, 0, y, a.width, TUI_FAINT, u->glyphs->ellipsis,
            u->beside ? "h l turn   d differs   Space plays   Tab cache   ? keys   q quits"
                      : "h l turn   Space plays   Tab cache   ? keys   q quits");
    } else {
        tui_editor_draw(&u->editor, tui_area_within(a, 0, y, a.width, input), prompt_of(u),
            TUI_STYLE(TUI_USER, TUI_BOLD), focused);
    }
    tui_popup_draw(u, body);
    if (approval)
        tui_question_draw(u, asked, &question); /* last: which keys there are depends on what was drawn */
    tui_text_free(&question);
}

static void draw_inspector(tui_ui *u, tui_area a)
{
    const tui_rows *r = tui_ui_rows(u);
    if (u->at_end || u->at >= r->n) u->at = r->n ? (uint32_t)r->n - 1 : 0;
    if (a.width < 1 || a.height < 1) return;
    u->page = a.height > 2 ? a.height - 1 : 1;
    tui_view_unit(u, &u->unit_from, &u->unit_to);
    tui_views[u->view]->draw(u, a);
}

static int put_title(tui_ui *u, tui_area a, int x, int width, bool focused, const char *title)
{
    tui_rule(a, x, 0, width, TUI_FAINT, u->glyphs->horizontal);
    tui_put(a, x + 1, 0, TUI_PLAIN, " ");
    int n = tui_put_short(a, x + 2, 0, width - 4,
        focused ? TUI_STYLE(TUI_TEXT, TUI_BOLD | TUI_REVERSE) : TUI_STRONG, u->glyphs->ellipsis, title);
    tui_put(a, x + 2 + n, 0, TUI_PLAIN, " ");
    return x + 3 + n;
}

/* " cache turn 14 " and the other views' keys behind it. */
static void put_inspector_title(tui_ui *u, tui_area a, int x, int width, bool focused)
{
    char title[64];
    snprintf(title, sizeof title, "%s  turn %u%s", tui_views[u->view]->name, tui_ui_turn(u),
        u->shown_turn ? " (h/l)" : "");
    int at = put_title(u, a, x, width, focused, title), end = x + width;
    for (int i = 0; i < TUI_N_VIEWS; i++) {
        if (i == (int)u->view) continue;
        char entry[24];
        int n = snprintf(entry, sizeof entry, "%d %s ", i + 1, tui_views[i]->name);
        if (at + n + 2 > end) break;
        at += 1 + tui_put(a, at + 1, 0, TUI_FAINT, entry);
    }
}

/* The last lines of an inspector that has the screen for itself: a question, or what was said. */
static void draw_inspector_line(tui_ui *u, tui_area body)
{
    bool asking = u->asking != TUI_ASK_NOTHING;
    if (!asking && !u->message && !u->state.approval.waiting) return;
    tui_text message = {0};
    int said = asking ? 0 : flow_message(u, body.width, &message), lines = said ? said : 1;
    if (lines > body.height) lines = body.height;
    tui_area a = tui_area_within(body, 0, body.height - lines, body.width, lines);
    tui_blank(a);
    for (int i = 0; i < said; i++) tui_text_draw(&message, (size_t)i, a, 0, i);
    tui_text_free(&message);
    if (asking)
        tui_editor_draw(&u->editor, a, prompt_of(u), TUI_STYLE(TUI_USER, TUI_BOLD), true);
    else if (!said)
        tui_put_short(a, 0, 0, a.width, TUI_STYLE(TUI_WARN, TUI_BOLD), u->glyphs->ellipsis,
            "a question waits in the chat: Tab or F2");
}

static void draw_too_small(tui_area a)
{
    tui_text t = {0};
    tui_flow f = {.text = &t, .width = a.width};
    char line[120];
    snprintf(line, sizeof line,
        "kvist needs %d x %d characters; this terminal has %d x %d. Make it larger, or use --linear.",
        MIN_COLUMNS, MIN_ROWS, a.width, a.height);
    tui_flow_puts(&f, TUI_PLAIN, line);
    tui_flow_end(&f);
    for (size_t i = 0; i < t.n_lines; i++) tui_text_draw(&t, i, a, 0, (int)i);
    tui_text_free(&t);
}

/* The pane that has the focus, alone. */
static void draw_one_pane(tui_ui *u, tui_area a, int height)
{
    const tui_area body = tui_area_within(a, 0, 1, a.width, height);
    if (u->focus == TUI_FOCUS_CHAT) {
        static const char keys[] = " F2 cache   F1 keys ";
        put_title(u, a, 0, a.width, false, "chat");
        if (a.width >= 50) tui_put(a, a.width - (int)sizeof keys - 1, 0, TUI_FAINT, keys);
        draw_chat_pane(u, body);
        return;
    }
    put_inspector_title(u, a, 0, a.width, true);
    draw_inspector(u, body);
    draw_inspector_line(u, body);
    tui_popup_draw(u, body);
}

static void draw_both_panes(tui_ui *u, tui_area a, int height)
{
    const int chat = a.width * 6 / 10, x = chat + 1; /* the line between them stands at `chat` */
    put_title(u, a, 0, chat, u->focus == TUI_FOCUS_CHAT, "chat");
    put_inspector_title(u, a, x, a.width - x, u->focus == TUI_FOCUS_INSPECTOR);
    tui_put(a, chat, 0, TUI_FAINT, u->glyphs->tee_down);
    for (int y = 1; y <= height; y++) tui_put(a, chat, y, TUI_FAINT, u->glyphs->vertical);
    draw_inspector(u, tui_area_within(a, x + 1, 1, a.width - x - 2, height));
    draw_chat_pane(u, tui_area_within(a, 0, 1, chat - 1, height));
}

void tui_ui_draw(tui_ui *u, tui_grid *g)
{
    tui_grid_clear(g);
    tui_area a = tui_grid_area(g);
    if (a.width < MIN_COLUMNS || a.height < MIN_ROWS) {
        draw_too_small(a);
        return;
    }
    u->wide = a.width >= WIDE_COLUMNS;
    tui_footer_draw(u, tui_area_within(a, 0, a.height - 1, a.width, 1));
    const int height = a.height - 2; /* without the titles and the footer */
    if (u->wide)
        draw_both_panes(u, a, height);
    else
        draw_one_pane(u, a, height);
}
