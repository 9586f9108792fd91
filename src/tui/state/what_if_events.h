/* What events of a session that was computed again (kvist what-if) say in the transcript; each is a row of state.c's table. */
#ifndef KVIST_TUI_WHAT_IF_EVENTS_H
#define KVIST_TUI_WHAT_IF_EVENTS_H

#include "tui/state/state.h"

tui_apply_fn tui_on_what_if, tui_on_what_if_turn, tui_on_what_if_answer, tui_on_what_if_end;

#endif
