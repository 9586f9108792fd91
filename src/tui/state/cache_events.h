/* What events that are about the cache change of the state; each is a row of state.c's table. */
#ifndef KVIST_TUI_CACHE_EVENTS_H
#define KVIST_TUI_CACHE_EVENTS_H

#include "tui/state/state.h"

tui_apply_fn tui_on_mask, tui_on_plan, tui_on_visits, tui_on_scores, tui_on_sections, tui_on_request,
    tui_on_ledger;

#endif
