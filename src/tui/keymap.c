/*
 * The keymap, and how a key finds its row: a popup first, then a question that waits, then the pane that has
 * the focus, then the input line.
 */
#include "tui/keymap.h"

#include <stdlib.h>
#include <string.h>

#include "tui/actions.h"
#include "tui/views/view.h"

const char *const tui_scope_names[TUI_N_SCOPES] = {
    [TUI_SCOPE_CHAT] = "chat",
    [TUI_SCOPE_APPROVAL] = "when a tool asks",
    [TUI_SCOPE_INSPECTOR] = "cache inspector",
    [TUI_SCOPE_REPLAY] = "replay",
};

/* clang-format off */
const tui_binding tui_keymap[] = {
    {TUI_SCOPE_CHAT, TUI_KEY_ENTER, "Enter", "send; while the model works: queue", tui_do_send},
    {TUI_SCOPE_CHAT, TUI_KEY_ESC, "Esc", "stop the model (what it wrote stays); twice: rewind", tui_do_stop},
    {TUI_SCOPE_CHAT, TUI_CTRL('c'), "Ctrl+C", "clear the line, then stop, then quit", tui_do_clear_or_quit},
    {TUI_SCOPE_CHAT, TUI_CTRL('d'), "Ctrl+D", "quit on an empty line", tui_do_quit_on_empty},
    {TUI_SCOPE_CHAT, TUI_KEY_TAB, "Tab", "complete /command or @file; on an empty line the next pane", tui_do_complete_or_pane},
    {TUI_SCOPE_CHAT, TUI_KEY_F2, "F2", "the next pane", tui_do_next_pane},
    {TUI_SCOPE_CHAT, TUI_KEY_BACKTAB, "Shift+Tab", "what needs asking: plan, ask, edits, all", tui_do_next_mode},
    {TUI_SCOPE_CHAT, TUI_CTRL('r'), "Ctrl+R", "search former lines", tui_do_search_history},
    {TUI_SCOPE_CHAT, TUI_CTRL('g'), "Ctrl+G", "write in $EDITOR", tui_do_external_editor},
    {TUI_SCOPE_CHAT, TUI_CTRL('o'), "Ctrl+O", "unfold or fold tool output", tui_do_unfold},
    {TUI_SCOPE_CHAT, TUI_KEY_PAGE_UP, "PgUp PgDn", "scroll the chat", tui_do_page_up},
    {TUI_SCOPE_CHAT, TUI_KEY_PAGE_DOWN, "PgDn", NULL, tui_do_page_down},
    {TUI_SCOPE_CHAT, TUI_KEY_UP, "Up Down", "former lines; a queued line comes back first", tui_do_line_up},
    {TUI_SCOPE_CHAT, TUI_KEY_DOWN, "Down", NULL, tui_do_line_down},
    {TUI_SCOPE_CHAT, TUI_CTRL('j'), "Ctrl+J", "a new line (also Alt+Enter)", tui_do_edit},
    {TUI_SCOPE_CHAT, TUI_CTRL('a'), "Ctrl+A E", "start, end of the line", tui_do_edit},
    {TUI_SCOPE_CHAT, TUI_CTRL('k'), "Ctrl+K U W Y", "cut to the end, to the start, a word; put it back", tui_do_edit},
    {TUI_SCOPE_CHAT, TUI_KEY_F1, "F1 ?", "this help", tui_do_help},
    {TUI_SCOPE_CHAT, '?', "?", NULL, tui_do_help_on_empty},
    {TUI_SCOPE_CHAT, TUI_CTRL('l'), "Ctrl+L", "paint the screen again", tui_do_repaint},
    {TUI_SCOPE_CHAT, TUI_CTRL('z'), "Ctrl+Z", "suspend", tui_do_suspend},

    {TUI_SCOPE_APPROVAL, 'y', "y", "allow once", tui_do_approve_once},
    {TUI_SCOPE_APPROVAL, 'a', "a", "allow this exact command for the session", tui_do_approve_always},
    {TUI_SCOPE_APPROVAL, 'A', "A", "allow it in this tree for good (/approvals takes back)", tui_do_approve_always},
    {TUI_SCOPE_APPROVAL, 'e', "e", "change it first", tui_do_approve_edit},
    {TUI_SCOPE_APPROVAL, 'n', "n", "no, with a reason the model reads", tui_do_approve_no},
    {TUI_SCOPE_APPROVAL, 'd', "d", "the whole diff or command", tui_do_approve_show},

    {TUI_SCOPE_INSPECTOR, 'j', "j k", "down, up", tui_do_down},
    {TUI_SCOPE_INSPECTOR, 'k', "k", NULL, tui_do_up},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_DOWN, "Down", NULL, tui_do_down},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_UP, "Up", NULL, tui_do_up},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_LEFT, "Left", NULL, tui_do_left},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_RIGHT, "Right", NULL, tui_do_right},
    {TUI_SCOPE_INSPECTOR, 'g', "g G", "first, last", tui_do_first},
    {TUI_SCOPE_INSPECTOR, 'G', "G", NULL, tui_do_last},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_HOME, "Home", NULL, tui_do_first},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_END, "End", NULL, tui_do_last},
    {TUI_SCOPE_INSPECTOR, TUI_CTRL('d'), "Ctrl+D Ctrl+U", "half a page down, up", tui_do_half_down},
    {TUI_SCOPE_INSPECTOR, TUI_CTRL('u'), "Ctrl+U", NULL, tui_do_half_up},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_PAGE_DOWN, "PgDn", NULL, tui_do_half_down},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_PAGE_UP, "PgUp", NULL, tui_do_half_up},
    {TUI_SCOPE_INSPECTOR, 'h', "h l", "the turn before, after", tui_do_turn_before},
    {TUI_SCOPE_INSPECTOR, 'l', "l", NULL, tui_do_turn_after},
    {TUI_SCOPE_INSPECTOR, '0', "0 $", "the first turn, the newest", tui_do_turn_first},
    {TUI_SCOPE_INSPECTOR, '$', "$", NULL, tui_do_turn_last},
    {TUI_SCOPE_INSPECTOR, '/', "/", "find text in the sequence", tui_do_find},
    {TUI_SCOPE_INSPECTOR, 'n', "n N", "next, previous match", tui_do_find_next},
    {TUI_SCOPE_INSPECTOR, 'N', "N", NULL, tui_do_find_before},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_ENTER, "Enter", "look closer", tui_do_enter},
    {TUI_SCOPE_INSPECTOR, 'q', "q", "back", tui_do_back},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_ESC, "Esc", NULL, tui_do_back},
    {TUI_SCOPE_INSPECTOR, 'p', "p u", "protect, unprotect the rows at the cursor", tui_do_pin},
    {TUI_SCOPE_INSPECTOR, 'u', "u", NULL, tui_do_unpin},
    {TUI_SCOPE_INSPECTOR, 'x', "x X", "evict them; X bars them: only a person brings them back", tui_do_evict},
    {TUI_SCOPE_INSPECTOR, 'X', "X", NULL, tui_do_drop},
    {TUI_SCOPE_INSPECTOR, 'r', "r", "promote them", tui_do_promote},
    {TUI_SCOPE_INSPECTOR, 'w', "w", "why they are where they are", tui_do_why},
    {TUI_SCOPE_INSPECTOR, '=', "=", "sort the spans", tui_do_sort},
    {TUI_SCOPE_INSPECTOR, 'c', "c", "columns of the spans", tui_do_columns},
    {TUI_SCOPE_INSPECTOR, 'y', "y", "send the text at the cursor to the clipboard", tui_do_copy_unit},
    {TUI_SCOPE_INSPECTOR, '1', "1-9", "the views:", tui_do_view, .last = '9'},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_TAB, "Tab F2", "the next pane", tui_do_next_pane},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_F2, "F2", NULL, tui_do_next_pane},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_BACKTAB, "Shift+Tab", NULL, tui_do_next_mode},
    {TUI_SCOPE_INSPECTOR, TUI_CTRL('o'), "Ctrl+O", NULL, tui_do_unfold},
    {TUI_SCOPE_INSPECTOR, TUI_CTRL('c'), "Ctrl+C", NULL, tui_do_clear_or_quit},
    {TUI_SCOPE_INSPECTOR, TUI_CTRL('l'), "Ctrl+L", NULL, tui_do_repaint},
    {TUI_SCOPE_INSPECTOR, TUI_CTRL('z'), "Ctrl+Z", NULL, tui_do_suspend},
    {TUI_SCOPE_INSPECTOR, '?', "?", "what the row at the cursor means", tui_do_explain},
    {TUI_SCOPE_INSPECTOR, TUI_KEY_F1, "F1", "what the panel shows; again: all keys", tui_do_explain_panel},

    {TUI_SCOPE_REPLAY, 'h', "h l", "the turn before, after", tui_do_turn_before},
    {TUI_SCOPE_REPLAY, 'l', "l", NULL, tui_do_turn_after},
    {TUI_SCOPE_REPLAY, TUI_KEY_LEFT, "Left", NULL, tui_do_turn_before},
    {TUI_SCOPE_REPLAY, TUI_KEY_RIGHT, "Right", NULL, tui_do_turn_after},
    {TUI_SCOPE_REPLAY, '0', "0 $", "the first turn, the last", tui_do_turn_first},
    {TUI_SCOPE_REPLAY, '$', "$", NULL, tui_do_turn_last},
    {TUI_SCOPE_REPLAY, ' ', "Space", "play, stop", tui_do_play},
    {TUI_SCOPE_REPLAY, 'q', "q", "quit", tui_do_quit_on_empty},
    {0},
};
/* clang-format on */

bool tui_keymap_run(tui_ui *u, tui_scope scope, uint32_t key)
{
    for (const tui_binding *b = tui_keymap; b->run; b++) {
        if (b->scope != scope || key < b->key || key > (b->last ? b->last : b->key)) continue;
        b->run(u, key);
        return true;
    }
    return false;
}

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
