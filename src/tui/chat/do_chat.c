/*
 * The chat's keys: sending, stopping, scrolling, history, and answers to a tool that asks.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/edits.h"
#include "base/mem.h"
#include "tui/actions.h"
#include "tui/chat/chat.h"
#include "tui/input/complete.h"

enum { ESC_TWICE_MS = 1500 };

void tui_do_edit(tui_ui *u, uint32_t key)
{
    tui_editor_key(&u->editor, key);
}

static bool own_command(tui_ui *u, const char *text)
{
    if (!strcmp(text, "/quit") || !strcmp(text, "/exit")) {
        if (u->host.quit) u->host.quit(u->host.user);
        return true;
    }
    if (!strcmp(text, "/help")) {
        tui_popup_open(u, TUI_POPUP_HELP);
        return true;
    }
    if (!strcmp(text, "/tour")) {
        tui_tour_begin(u);
        return true;
    }
    if (!strcmp(text, "/copy")) {
        const tui_item *i = tui_state_last_answer(&u->state);
        if (!i) {
            tui_ui_say(u, "there is no answer yet");
        } else if (u->host.copy) {
            u->host.copy(u->host.user, i->body.data, i->body.len);
            tui_ui_say(u, "sent %zu bytes to the terminal's clipboard", i->body.len);
        }
        return true;
    }
    return false;
}

/* A mistyped command of the screen's own, which the agent knows nothing of; its answer guesses among the others. */
static const char *meant_own_command(tui_ui *u, const char *text)
{
    uint32_t n;
    const agent_command *commands = agent_commands(&n);
    if (*text != '/' || strpbrk(text, " \t\n")) return NULL;
    base_guess guess = base_guess_begin(text + 1);
    for (uint32_t i = 0; i < n; i++) base_guess_offer(&guess, commands[i].name);
    for (char *const *skill = tui_ui_skills(u); *skill; skill += 2) base_guess_offer(&guess, *skill);
    const char *theirs = guess.meant;
    for (const tui_own_command *own = tui_own_commands; own->name; own++) base_guess_offer(&guess, own->name);
    return guess.edits && guess.meant != theirs ? guess.meant : NULL;
}

void tui_do_send(tui_ui *u, uint32_t key)
{
    char *text = tui_editor_peek(&u->editor);
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\n')) text[--n] = 0;
    if (n > 0) {
        const char *meant = meant_own_command(u, text);
        if (meant) {
            tui_ui_say(u, "there is no command %.40s; did you mean /%s?", text, meant);
            free(text);
            return;
        }
        tui_editor_set(&u->editor, "");
        tui_lines_add(&u->lines, text);
        u->chat_scroll = 0;
        if (!own_command(u, text)) tui_ui_submit(u, text);
    }
    free(text);
}

void tui_do_stop(tui_ui *u, uint32_t key)
{
    if (u->busy || u->state.approval.waiting) {
        if (u->host.interrupt) u->host.interrupt(u->host.user);
        tui_ui_say(u, "stopping");
        return;
    }
    bool again = u->esc_armed && (!u->now_ms || u->now_ms - u->esc_ms < ESC_TWICE_MS);
    u->esc_armed = !again;
    u->esc_ms = u->now_ms;
    if (!again) {
        if (u->state.turn) tui_ui_say(u, "Esc again to rewind");
        return;
    }
    size_t first;
    if (tui_rewind_targets(u, &first, 1) == 0)
        tui_ui_say(u, "there is nothing to rewind to");
    else
        tui_popup_open(u, TUI_POPUP_REWIND);
}

void tui_do_clear_or_quit(tui_ui *u, uint32_t key)
{
    if (u->replay) {
        if (u->host.quit) u->host.quit(u->host.user);
    } else if (!tui_editor_empty(&u->editor)) {
        tui_editor_set(&u->editor, "");
    } else if (u->busy) {
        for (size_t i = 0; i < u->n_queue; i++) free(u->queue[i]);
        u->n_queue = 0;
        if (u->host.interrupt) u->host.interrupt(u->host.user);
        tui_ui_say(u, "stopping");
    } else if (u->quit_armed) {
        if (u->host.quit) u->host.quit(u->host.user);
    } else {
        u->quit_armed = true;
        tui_ui_say(u, "Ctrl+C again to quit");
    }
}

void tui_do_quit_on_empty(tui_ui *u, uint32_t key)
{
    if (tui_editor_empty(&u->editor) || u->replay) {
        if (u->host.quit) u->host.quit(u->host.user);
    } else {
        tui_editor_key(&u->editor, TUI_KEY_DELETE);
    }
}

void tui_do_complete_or_pane(tui_ui *u, uint32_t key)
{
    if (tui_editor_empty(&u->editor)) tui_do_next_pane(u, key);
}

void tui_do_next_pane(tui_ui *u, uint32_t key)
{
    u->focus = u->focus == TUI_FOCUS_CHAT ? TUI_FOCUS_INSPECTOR : TUI_FOCUS_CHAT;
}

void tui_do_next_mode(tui_ui *u, uint32_t key)
{
    if (u->replay) return;
    agent_mode mode;
    if (u->mode >= 0)
        mode = (agent_mode)u->mode;
    else if (!agent_mode_parse(tui_ui_mode(u), &mode))
        mode = AGENT_MODE_ASK;
    mode = mode == AGENT_MODE_ALL ? AGENT_MODE_PLAN : (agent_mode)(mode + 1);
    u->mode = (int)mode;
    static const char *const about[] = {
        [AGENT_MODE_PLAN] = "it reads, and changes nothing",
        [AGENT_MODE_ASK] = "it asks before it writes or runs anything",
        [AGENT_MODE_EDITS] = "it writes files, and asks before it runs anything",
        [AGENT_MODE_ALL] = "it writes and runs without asking",
    };
    tui_ui_say(u, "mode %s: %s", agent_mode_word(mode), about[mode]);
    if (u->host.set_mode) u->host.set_mode(u->host.user, mode);
}

void tui_do_search_history(tui_ui *u, uint32_t key)
{
    if (!u->replay) tui_popup_open(u, TUI_POPUP_HISTORY);
}

void tui_do_external_editor(tui_ui *u, uint32_t key)
{
    if (!u->host.edit || u->replay) return;
    char *text = tui_editor_peek(&u->editor), *changed = u->host.edit(u->host.user, text);
    if (changed) {
        size_t n = strlen(changed);
        while (n > 0 && changed[n - 1] == '\n') changed[--n] = 0;
        tui_editor_set(&u->editor, changed);
    }
    free(changed);
    free(text);
}

void tui_do_unfold(tui_ui *u, uint32_t key)
{
    u->unfolded = !u->unfolded;
}

void tui_do_page_up(tui_ui *u, uint32_t key)
{
    u->chat_scroll += u->chat_page > 2 ? u->chat_page - 2 : 1;
}

void tui_do_page_down(tui_ui *u, uint32_t key)
{
    u->chat_scroll -= u->chat_page > 2 ? u->chat_page - 2 : 1;
    if (u->chat_scroll < 0) u->chat_scroll = 0;
}

void tui_do_line_up(tui_ui *u, uint32_t key)
{
    if (u->replay) {
        u->chat_scroll++;
        return;
    }
    if (tui_editor_key(&u->editor, key)) return;
    if (u->n_queue > 0 && tui_editor_empty(&u->editor)) {
        char *text = u->queue[--u->n_queue];
        tui_editor_set(&u->editor, text);
        free(text);
        return;
    }
    char *now = tui_editor_peek(&u->editor);
    const char *line = tui_lines_walk(&u->lines, -1, now);
    if (line) tui_editor_set(&u->editor, line);
    free(now);
}

void tui_do_line_down(tui_ui *u, uint32_t key)
{
    if (u->replay) {
        if (u->chat_scroll > 0) u->chat_scroll--;
        return;
    }
    if (tui_editor_key(&u->editor, key)) return;
    const char *line = tui_lines_walk(&u->lines, 1, "");
    if (line) tui_editor_set(&u->editor, line);
}

void tui_do_help(tui_ui *u, uint32_t key)
{
    tui_popup_open(u, TUI_POPUP_HELP);
}

void tui_do_help_on_empty(tui_ui *u, uint32_t key)
{
    if (tui_editor_empty(&u->editor) || u->replay)
        tui_popup_open(u, TUI_POPUP_HELP);
    else
        tui_editor_key(&u->editor, key);
}

void tui_do_repaint(tui_ui *u, uint32_t key)
{
    if (u->host.repaint) u->host.repaint(u->host.user);
}

void tui_do_suspend(tui_ui *u, uint32_t key)
{
    if (u->host.suspend) u->host.suspend(u->host.user);
}

/* --- a tool asks ---------------------------------------------------------------------------------------- */

static void ask(tui_ui *u, tui_asking what, const char *text)
{
    free(u->kept_input);
    u->kept_input = tui_editor_take(&u->editor);
    u->asking = what;
    tui_editor_set(&u->editor, text);
}

/* Nobody can agree to what was not on the screen. */
static bool was_read(tui_ui *u)
{
    if (tui_question_was_read(u)) return true;
    tui_ui_say(u, u->popup == TUI_POPUP_DIFF
                      ? "it goes on below: Space shows more, y works at its end"
                      : "not all of it was on the screen yet: d shows it, y works at its end");
    return false;
}

void tui_do_approve_once(tui_ui *u, uint32_t key)
{
    if (!was_read(u)) return;
    if (u->host.decide) u->host.decide(u->host.user, AGENT_YES, NULL);
}

void tui_do_approve_always(tui_ui *u, uint32_t key)
{
    if (!tui_approval_runs(&u->state.approval))
        tui_ui_say(u, "only a command can be allowed for good; mode edits (Shift+Tab) writes without asking");
    else if (was_read(u) && u->host.decide)
        u->host.decide(u->host.user, key == 'A' ? AGENT_ALWAYS_HERE : AGENT_ALWAYS, NULL);
}

/* But for line ends at the end, which editors add. */
static bool is_same_text(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    while (n > 0 && a[n - 1] == '\n') n--;
    while (m > 0 && b[m - 1] == '\n') m--;
    return n == m && !memcmp(a, b, n);
}

void tui_do_approve_edit(tui_ui *u, uint32_t key)
{
    /*
     * A command is edited at the input line; new text of a file in the editor, never the diff that shows it.
     */
    const tui_approval *a = &u->state.approval;
    if (!a->text) {
        tui_ui_say(u, "there is nothing to edit in it: y, n or d");
        return;
    }
    if (!was_read(u)) return;
    if (tui_approval_runs(a) && !strchr(a->text, '\n')) {
        ask(u, TUI_ASK_EDIT, a->text);
        return;
    }
    char *changed = u->host.edit ? u->host.edit(u->host.user, a->text) : NULL;
    if (changed && is_same_text(changed, a->text)) /* leaving the editor is no yes */
        tui_ui_say(u, "nothing was changed: y allows it as it is");
    else if (changed && u->host.decide)
        u->host.decide(u->host.user, AGENT_EDIT, changed);
    free(changed);
}

void tui_do_approve_no(tui_ui *u, uint32_t key)
{
    if (!tui_approval_rewinds(&u->state.approval))
        ask(u, TUI_ASK_REASON, "");
    else if (u->host.decide) /* no model reads a reason */
        u->host.decide(u->host.user, AGENT_NO, NULL);
}

void tui_do_approve_show(tui_ui *u, uint32_t key)
{
    tui_popup_open(u, TUI_POPUP_DIFF);
}

void tui_do_find(tui_ui *u, uint32_t key)
{
    ask(u, TUI_ASK_FIND, "");
}
