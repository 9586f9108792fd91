/*
 * The shell's life: what the worker tells, the input queue, and how a frame is put together. Keys are in
 * keymap.c.
 */
#include "tui/ui.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tui/keymap.h"
#include "tui/views/view.h"

enum { WIDE_COLUMNS = 120, MIN_COLUMNS = 24, MIN_ROWS = 6, PATHS_SHOWN = 8 };

static void forget_skills(tui_ui *u)
{
    for (char **s = u->skills; s && *s; s++) free(*s);
    free(u->skills);
    u->skills = NULL;
}

void tui_ui_init(tui_ui *u, const tui_host *host, bool utf8, bool letters)
{
    *u = (tui_ui){.host = *host,
        .glyphs = tui_glyphs_for(utf8, letters),
        .view = tui_views[0],
        .view_before = tui_views[0],
        .at_end = true,
        .mode = -1,
        .strip_bin = 1};
    tui_state_init(&u->state);
}

void tui_ui_free(tui_ui *u)
{
    tui_state_free(&u->state);
    tui_rows_free(&u->live);
    tui_rows_free(&u->past);
    tui_editor_free(&u->editor);
    tui_lines_free(&u->lines);
    tui_complete_free(&u->complete);
    forget_skills(u);
    for (size_t i = 0; i < u->n_queue; i++) free(u->queue[i]);
    free(u->queue);
    free(u->load_text);
    free(u->idle_work);
    free(u->find);
    free(u->kept_input);
    free(u->rewound_request);
    free(u->message);
    base_buf_free(&u->popup_text);
    *u = (tui_ui){0};
}

void tui_ui_say(tui_ui *u, const char *format, ...)
{
    base_buf raw = {0}, clean = {0};
    va_list args;
    va_start(args, format);
    base_buf_vprintf(&raw, format, args);
    va_end(args);
    base_utf8_sanitise(&clean, raw.data ? raw.data : "", raw.len, false);
    base_buf_free(&raw);
    free(u->message);
    u->message = base_buf_take(&clean);
}

void tui_ui_submit(tui_ui *u, const char *text)
{
    free(u->rewound_request); /* of a rewind that came to nothing */
    u->rewound_request = NULL;
    if (u->replay) {
        tui_ui_say(u, "this is a replay: nothing runs here");
        return;
    }
    if (u->failed) {
        tui_ui_say(u, "nothing is open: /quit ends, the reason stands above");
        return;
    }
    if (u->busy || u->loading) {
        base_grow(&u->queue, &u->cap_queue, u->n_queue + 1, sizeof *u->queue);
        u->queue[u->n_queue++] = base_xstrdup(text);
        return;
    }
    u->busy = true;
    u->state.tokens_since = 0;
    if (u->host.submit) u->host.submit(u->host.user, text);
}

char *const *tui_ui_skills(tui_ui *u)
{
    if (!u->skills) u->skills = u->host.skills ? u->host.skills(u->host.user) : NULL;
    if (!u->skills) u->skills = base_xcalloc(1, sizeof *u->skills);
    return u->skills;
}

static void next_in_queue(tui_ui *u)
{
    if (u->n_queue == 0 || u->busy || u->loading) return;
    char *text = u->queue[0];
    memmove(u->queue, u->queue + 1, --u->n_queue * sizeof *u->queue);
    tui_ui_submit(u, text);
    free(text);
}

void tui_ui_event(tui_ui *u, const agent_event *e)
{
    bool waited = u->state.approval.waiting;
    tui_state_apply(&u->state, e, u->replay ? 0 : u->now_ms); /* how fast it is played says nothing */
    if (e->type == AGENT_EVENT_approval_request) {
        u->question = (tui_question){0};
        if (u->popup == TUI_POPUP_DIFF) tui_popup_open(u, TUI_POPUP_NONE);
        if (u->popup == TUI_POPUP_TOUR) tui_tour_end(u); /* it may have turned away from the chat */
        u->chat_scroll = 0;
    }
    if (waited && !u->state.approval.waiting) {
        if (u->popup == TUI_POPUP_DIFF) tui_popup_open(u, TUI_POPUP_NONE);
        if (u->asking == TUI_ASK_REASON || u->asking == TUI_ASK_EDIT) {
            u->asking = TUI_ASK_NOTHING;
            tui_editor_set(&u->editor, u->kept_input);
        }
    }
    if (e->type == AGENT_EVENT_rewind && u->rewound_request) {
        if (tui_editor_empty(&u->editor))
            tui_editor_set(&u->editor, u->rewound_request); /* to be asked differently */
        free(u->rewound_request);
        u->rewound_request = NULL;
    }
    /* The mode that the agent reports, or its refusal, replaces the mode that was asked for. */
    if (e->type == AGENT_EVENT_session || e->type == AGENT_EVENT_notice || e->type == AGENT_EVENT_error)
        u->mode = -1;
}

void tui_ui_loading(tui_ui *u, double share, const char *what)
{
    u->loading = true;
    u->load_share = share;
    base_buf clean = {0};
    base_utf8_sanitise(&clean, what ? what : "loading", strlen(what ? what : "loading"), false);
    free(u->load_text);
    u->load_text = base_buf_take(&clean);
}

void tui_ui_ready(tui_ui *u)
{
    u->loading = false;
    forget_skills(u);
    tui_state_settle(&u->state);
    next_in_queue(u);
}

void tui_ui_doing(tui_ui *u, const char *what)
{
    free(u->idle_work);
    u->idle_work = base_xstrdup(what);
    u->idle_work_ms = u->now_ms;
}

void tui_ui_idle(tui_ui *u)
{
    u->busy = false;
    u->state.prefill_done = u->state.prefill_total = 0;
    tui_complete_forget(&u->complete);
    forget_skills(u);
    if (u->message && !strcmp(u->message, "stopping")) { /* it has stopped */
        free(u->message);
        u->message = NULL;
    }
    next_in_queue(u);
}

void tui_ui_failed(tui_ui *u, const char *text)
{
    u->loading = u->busy = false;
    u->failed = true;
    tui_state_note(&u->state, TUI_ITEM_ERROR, text);
}

const char *tui_ui_mode(const tui_ui *u)
{
    return u->mode >= 0 ? agent_mode_word((agent_mode)u->mode) : u->state.mode ? u->state.mode : "";
}

uint32_t tui_ui_turn(const tui_ui *u)
{
    return u->shown_turn ? u->shown_turn : u->state.turn;
}

const tui_rows *tui_ui_rows(tui_ui *u)
{
    if (u->shown_turn && u->shown_turn < u->state.turn) {
        tui_rows_update(&u->past, u->state.journal, u->state.n_lanes, u->shown_turn);
        return &u->past;
    }
    tui_rows_update(&u->live, u->state.journal, u->state.n_lanes, UINT32_MAX);
    return &u->live;
}

void tui_ui_painted(tui_ui *u)
{
    if (!u->state.approval.waiting || u->question.painted) return;
    u->question.painted = true;
    u->question.painted_ms = u->now_ms;
}

bool tui_ui_moving(const tui_ui *u)
{
    return u->state.prefill_total > 0 || u->playing || u->idle_work;
}

/* --- a frame -------------------------------------------------------------------------------------------- */

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
            "h l turn   Space plays   Tab cache   ? keys   q quits");
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
    u->view->draw(u, a);
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
    snprintf(
        title, sizeof title, "%s  turn %u%s", u->view->name, tui_ui_turn(u), u->shown_turn ? " (h/l)" : "");
    int at = put_title(u, a, x, width, focused, title), end = x + width;
    for (int i = 0; tui_views[i]; i++) {
        if (tui_views[i] == u->view) continue;
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
    int height = a.height - 2;
    if (!u->wide) {
        if (u->focus == TUI_FOCUS_CHAT) {
            put_title(u, a, 0, a.width, false, "chat");
            if (a.width >= 50) tui_put(a, a.width - 22, 0, TUI_FAINT, " F2 cache   F1 keys ");
            draw_chat_pane(u, tui_area_within(a, 0, 1, a.width, height));
            return;
        }
        put_inspector_title(u, a, 0, a.width, true);
        tui_area body = tui_area_within(a, 0, 1, a.width, height);
        draw_inspector(u, body);
        draw_inspector_line(u, body);
        tui_popup_draw(u, body);
        return;
    }
    int chat = a.width * 6 / 10, x = chat + 1;
    put_title(u, a, 0, chat, u->focus == TUI_FOCUS_CHAT, "chat");
    put_inspector_title(u, a, x, a.width - x, u->focus == TUI_FOCUS_INSPECTOR);
    tui_put(a, chat, 0, TUI_FAINT, u->glyphs->tee_down);
    for (int y = 1; y <= height; y++) tui_put(a, chat, y, TUI_FAINT, u->glyphs->vertical);
    draw_inspector(u, tui_area_within(a, x + 1, 1, a.width - x - 2, height));
    draw_chat_pane(u, tui_area_within(a, 0, 1, chat - 1, height));
}
