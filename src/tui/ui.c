/*
 * The shell's life: what the worker tells, the input queue, and what its parts ask of it.
 */
#include "tui/ui.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

static void forget_skills(tui_ui *u)
{
    for (char **s = u->skills; s && *s; s++) free(*s);
    free(u->skills);
    u->skills = NULL;
}

void tui_ui_init(tui_ui *u, const tui_host *host, bool utf8, bool letters)
{
    *u = (tui_ui){
        .host = *host, .glyphs = tui_glyphs_for(utf8, letters), .at_end = true, .mode = -1, .strip_bin = 1};
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

/* --- popups --------------------------------------------------------------------------------------------- */

void tui_popup_open(tui_ui *u, tui_popup p)
{
    u->popup = p;
    u->popup_at = u->popup_scroll = 0;
    base_buf_clear(&u->popup_text);
}

void tui_popup_show_text(tui_ui *u, const char *title, const char *text)
{
    tui_popup_open(u, TUI_POPUP_TEXT);
    u->popup_title = title;
    base_buf_puts(&u->popup_text, text);
}

void tui_tour_end(tui_ui *u)
{
    u->focus = u->tour.focus;
    u->view = u->tour.view;
    tui_popup_open(u, TUI_POPUP_NONE);
}

size_t tui_rewind_targets(const tui_ui *u, size_t *items, size_t max)
{
    size_t n = 0;
    for (size_t i = u->state.n_items; i > 0 && n < max; i--)
        if (u->state.items[i - 1].kind == TUI_ITEM_USER && u->state.items[i - 1].turn > 0) items[n++] = i - 1;
    return n;
}
