/*
 * Append-only mode: for screen readers, pipes and TERM=dumb. Every message is a labelled line, nothing is ever painted over.
 */
#ifndef KVIST_TUI_LINEAR_H
#define KVIST_TUI_LINEAR_H

#include "tui/tui.h"

int tui_linear_run(agent_worker *w, const tui_options *options, base_err *err);

/* What an event says in this mode; appended to *out. *streaming: whether an answer's line is open. */
void tui_linear_event(const agent_event *e, bool *streaming, base_buf *out);

#endif
