/*
 * The table of keys.
 */
#include "tui/keymap.h"

#include "tui/actions.h"

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
    {TUI_SCOPE_INSPECTOR, 'p', "p u", "pin, unpin the rows at the cursor", tui_do_pin},
    {TUI_SCOPE_INSPECTOR, 'u', "u", NULL, tui_do_unpin},
    {TUI_SCOPE_INSPECTOR, 'x', "x X", "evict them; X bars them, so that only a person brings them back", tui_do_evict},
    {TUI_SCOPE_INSPECTOR, 'X', "X", NULL, tui_do_drop},
    {TUI_SCOPE_INSPECTOR, 'r', "r", "promote them", tui_do_promote},
    {TUI_SCOPE_INSPECTOR, 'w', "w", "why they were kept or evicted", tui_do_why},
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
    {TUI_SCOPE_REPLAY, 'd', "d", "of a what-if: the next turn that differs", tui_do_next_difference},
    {TUI_SCOPE_REPLAY, TUI_KEY_PAGE_UP, "PgUp PgDn", "scroll the chat", tui_do_page_up},
    {TUI_SCOPE_REPLAY, TUI_KEY_PAGE_DOWN, "PgDn", NULL, tui_do_page_down},
    {TUI_SCOPE_REPLAY, TUI_CTRL('o'), "Ctrl+O", "unfold or fold tool output", tui_do_unfold},
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
