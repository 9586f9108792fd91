/*
 * A recorded session as a list of events, and a ui that stands at the end of one of its turns. The log gives
 * the events (tui_replay in tui.h); tests give them from a file.
 */
#ifndef KVIST_TUI_RECORD_H
#define KVIST_TUI_RECORD_H

#include "tui/ui.h"

typedef struct tui_record {
    agent_event *events;
    agent_event_doc **docs;
    size_t n, cap, cap_docs;
    size_t bytes; /* of all events */
    uint32_t turns;
} tui_record;

/*
 * Adds one event from its JSON and what the log stores beside it (copied; may be NULL); bytes that are no
 * event are an error, and so are more events than a record holds (2 GiB of memory).
 */
int tui_record_add(tui_record *r, const char *json, size_t n, const void *blob, size_t blob_n, base_err *err);
void tui_record_free(tui_record *r);
/* Events up to the end of a turn (0: all): everything before the next request. */
size_t tui_record_end(const tui_record *r, uint32_t turn);
/*
 * Of a what-if: the next turn that differs behind the `shown` first events; behind the last one comes the first. 0: none
 * does. *ret_is_what_if: turns are compared here at all.
 */
uint32_t tui_record_next_difference(const tui_record *r, size_t shown, bool *ret_is_what_if);
/* Brings the ui to where `n` events were applied; goes back by starting again. */
void tui_record_show(const tui_record *r, tui_ui *u, size_t *shown, size_t n);

#endif
