/*
 * The log of a what-if (src/whatif) as events to be replayed: those of the session that was computed again, with what
 * the changed side's cache did in place of what the session's did, and each turn's comparison behind it.
 */
#ifndef KVIST_TUI_WHAT_IF_LOG_H
#define KVIST_TUI_WHAT_IF_LOG_H

#include "agent/log/log.h"
#include "tui/record.h"

/*
 * Where the changed side reads tokens of another vocabulary, or the session was computed elsewhere: its events with the
 * comparisons are all there is (recorded stays empty, *behind NULL).
 *
 * changed: as above, up to the last turn that was computed. recorded: the session's own events, as far. behind
 * [recorded->n]: how many of changed's belong to the first i + 1 of recorded's; heap. BASE_E_NOT_FOUND: the session
 * was deleted.
 */
int tui_what_if_load(agent_log *l, const char *what_if, tui_record *recorded, tui_record *changed,
    size_t **behind, base_err *err);

#endif
