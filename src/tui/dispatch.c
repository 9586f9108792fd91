/*
 * How a key finds its row: a popup first, then a question that waits, then the pane that has the focus, then the
 * input line.
 */
#include "tui/dispatch.h"

#include <stdlib.h>

#include "tui/actions.h"
#include "tui/chat/chat.h"
#include "tui/keymap.h"

static void say_keys(tui_ui *u, tui_scope scope)
{
    base_buf b = {0};
    base_buf_puts(&b, "no such key; ");
    for (const tui_binding *k = tui_keymap; k->run; k++) {
        if (k->scope != scope || !k->about) continue;
        base_buf_puts(&b, k->label);
        base_buf_putc(&b, ' ');
    }
    base_buf_puts(&b, "F1 explains");
    tui_ui_say(u, "%s", b.data);
    base_buf_free(&b);
}

/* A question at the input line: Enter answers it, Esc takes it away. */
static void ask_key(tui_ui *u, uint32_t key)
{
    tui_asking asking = u->asking;
    if (key != TUI_KEY_ENTER && key != TUI_KEY_ESC && key != TUI_CTRL('c')) {
        tui_editor_key(&u->editor, key);
        return;
    }
    char *text = tui_editor_take(&u->editor);
    u->asking = TUI_ASK_NOTHING;
    tui_editor_set(&u->editor, u->kept_input);
    free(u->kept_input);
    u->kept_input = NULL;
    if (key == TUI_KEY_ENTER) {
        if (asking == TUI_ASK_FIND) {
            free(u->find);
            u->find = text;
            text = NULL;
            tui_do_find_next(u, 0);
        } else if (u->host.decide) {
            u->host.decide(u->host.user, asking == TUI_ASK_REASON ? AGENT_NO : AGENT_EDIT, text);
        }
    }
    free(text);
}

/* The list above the input; false: the key is not for it. */
static bool candidate_key(tui_ui *u, uint32_t key)
{
    tui_complete *c = &u->complete;
    if (c->n == 0 || c->closed) return false;
    if (key == TUI_KEY_UP || key == TUI_KEY_DOWN) {
        c->at = key == TUI_KEY_DOWN ? (c->at + 1) % c->n : (c->at + c->n - 1) % c->n;
        c->moved = true;
        return true;
    }
    if (key == TUI_KEY_ESC) {
        c->closed = true;
        return true;
    }
    if (key != TUI_KEY_TAB && !(key == TUI_KEY_ENTER && c->moved)) return false;
    base_buf b = {0};
    base_buf_putc(&b, c->prefix);
    base_buf_puts(&b, c->candidate[c->at].text);
    base_buf_putc(&b, ' ');
    tui_editor_replace_word(&u->editor, b.data);
    base_buf_free(&b);
    c->n = 0;
    return true;
}

static void update_candidates(tui_ui *u)
{
    if (u->replay) return;
    base_str word = tui_editor_word(&u->editor);
    bool at_start = u->editor.cursor == word.len;
    tui_complete_update(&u->complete, word, at_start, tui_ui_skills(u), u->host.paths, u->host.user);
}

static void replay_key(tui_ui *u, uint32_t key)
{
    tui_scope first = u->focus == TUI_FOCUS_INSPECTOR ? TUI_SCOPE_INSPECTOR : TUI_SCOPE_REPLAY;
    if (tui_keymap_run(u, first, key) || tui_keymap_run(u, TUI_SCOPE_REPLAY, key)) return;
    if (key < 0x80 && key >= 0x20 && key != '?') {
        say_keys(u, first);
        return;
    }
    tui_keymap_run(u, TUI_SCOPE_CHAT, key);
}

static void chat_key(tui_ui *u, uint32_t key)
{
    if (candidate_key(u, key)) return;
    if (!tui_keymap_run(u, TUI_SCOPE_CHAT, key) && !tui_editor_key(&u->editor, key) && key < 0x20)
        tui_ui_say(u, "no such key; F1 shows the ones there are");
    update_candidates(u);
}

void tui_ui_key(tui_ui *u, uint32_t key)
{
    free(u->message);
    u->message = NULL;
    if (key != TUI_KEY_ESC) u->esc_armed = false;
    if (key != TUI_CTRL('c')) u->quit_armed = false;
    if (tui_popup_key(u, key)) return;
    if (u->asking != TUI_ASK_NOTHING) {
        ask_key(u, key);
        return;
    }
    /* A letter that was already on its way when the question came to the screen must not answer it. */
    enum { TOO_SOON_MS = 350 };
    const bool too_soon =
        !u->question.painted || (u->now_ms && u->now_ms - u->question.painted_ms < TOO_SOON_MS);
    bool can_answer =
        u->state.approval.waiting && u->focus == TUI_FOCUS_CHAT && tui_editor_empty(&u->editor) && !u->replay;
    if (can_answer && too_soon && key >= 0x20 && key < TUI_KEY_FIRST) return;
    if (can_answer && tui_keymap_run(u, TUI_SCOPE_APPROVAL, key)) return;
    if (u->replay) {
        replay_key(u, key);
    } else if (u->focus == TUI_FOCUS_INSPECTOR) {
        if (!tui_keymap_run(u, TUI_SCOPE_INSPECTOR, key)) say_keys(u, TUI_SCOPE_INSPECTOR);
    } else {
        chat_key(u, key);
    }
}

void tui_ui_paste(tui_ui *u, const char *text, size_t n)
{
    if (u->replay || u->popup != TUI_POPUP_NONE) return;
    if (u->asking == TUI_ASK_NOTHING) u->focus = TUI_FOCUS_CHAT;
    tui_editor_paste(&u->editor, text, n);
    update_candidates(u);
}
