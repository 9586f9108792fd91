/*
 * Append-only mode: for screen readers, pipes and TERM=dumb. Every message is a labelled line, nothing is
 * ever painted over.
 */
#ifndef KVIST_TUI_LINEAR_H
#define KVIST_TUI_LINEAR_H

#include "agent/call/stream.h"
#include "tui/tui.h"

int tui_linear_run(agent_worker *w, const tui_options *options, base_err *err);

typedef struct tui_linear_text {
    agent_stream stream; /* agent_stream_free(&t.stream) at the end */
    bool is_elsewhere;   /* the engine is across HTTP: tokens are counted, not rows */
    bool is_labelled;    /* "answer: " stands before what streams */
    bool asks_to_rewind; /* its no is the conversation alone */
    bool asks_to_run;    /* the question is about a command: it may be changed, and allowed for good */
    bool is_ascii;       /* the reader shows nothing else */
} tui_linear_text;

/* What an event says in this mode; appended to *out. */
void tui_linear_event(const agent_event *e, tui_linear_text *t, base_buf *out);

#endif
