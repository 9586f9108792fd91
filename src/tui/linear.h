/*
 * Append-only mode: for screen readers, pipes and TERM=dumb. Every message is a labelled line, nothing is
 * ever painted over.
 */
#ifndef KVIST_TUI_LINEAR_H
#define KVIST_TUI_LINEAR_H

#include "tui/tui.h"

int tui_linear_run(agent_worker *w, const tui_options *options, base_err *err);

#endif
