/*
 * What an engine across HTTP told of the session, by stretches of it: what a request sent was found in its cache or
 * computed, and where it keeps the blocks (agent/log/event.h, `request`). Nothing is kept of what is not told.
 */
#ifndef KVIST_TUI_TOLD_H
#define KVIST_TUI_TOLD_H

#include "agent/log/event.h"
#include "tui/terminal/style.h"

typedef struct tui_stretch {
    uint32_t turn, request, from, to; /* request: their number, from 1 */
    tui_told what;
} tui_stretch;

typedef struct tui_told_list {
    tui_stretch *all; /* ascending by request */
    size_t n, cap;
    uint32_t n_requests;
} tui_told_list;

void tui_told_free(tui_told_list *t);
void tui_told_add(tui_told_list *t, const agent_event *request);
void tui_told_truncate(tui_told_list *t, uint32_t turn); /* later turns are gone */

/* Tokens of [from, to) that all requests of a turn sent; of these found and computed (neither: not told). */
typedef struct tui_told_sum {
    uint32_t sent, found, computed;
} tui_told_sum;
tui_told_sum tui_told_count(const tui_told_list *t, uint32_t turn, uint32_t from, uint32_t to);

/*
 * The newest word up to the end of `turn` on each of n tokens: of where blocks are, if that was ever told, else of what
 * the newest request found and computed. ret: [n], TUI_TOLD_NONE where it was not sent. TUI_TOLD_NONE: nothing was
 * told of any; else TUI_TOLD_GPU (blocks) or TUI_TOLD_FOUND (a request).
 */
tui_told tui_told_newest(const tui_told_list *t, uint32_t turn, uint8_t *ret, uint32_t n);

const char *tui_told_word(tui_told what); /* "found", "GPU", ... */

#endif
