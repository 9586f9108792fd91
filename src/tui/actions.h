/*
 * What keys do, one function each; keymap.c binds them.
 */
#ifndef KVIST_TUI_ACTIONS_H
#define KVIST_TUI_ACTIONS_H

#include "tui/ui.h"

/* X(name) */
/* clang-format off */
#define TUI_ACTIONS(X) \
    X(send) X(stop) X(clear_or_quit) X(quit_on_empty) X(complete_or_pane) X(next_pane) X(next_mode) \
    X(search_history) X(external_editor) X(unfold) X(page_up) X(page_down) X(line_up) X(line_down) \
    X(help) X(help_on_empty) X(explain) X(explain_panel) X(repaint) X(suspend) \
    X(approve_once) X(approve_always) X(approve_edit) X(approve_no) X(approve_show) \
    X(down) X(up) X(left) X(right) X(first) X(last) X(half_down) X(half_up) \
    X(turn_before) X(turn_after) X(turn_first) X(turn_last) X(find) X(find_next) X(find_before) \
    X(enter) X(back) X(pin) X(unpin) X(evict) X(promote) X(why) X(sort) X(columns) X(view) \
    X(copy_unit) X(drop) X(play) X(next_difference) X(edit)
/* clang-format on */
#define TUI_ACTION_DECLARE(name) void tui_do_##name(tui_ui *u, uint32_t key);
TUI_ACTIONS(TUI_ACTION_DECLARE)

#endif
