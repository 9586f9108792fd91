/*
 * What is read in append-only mode (linear.h): an event as labelled lines.
 */
#ifndef KVIST_TUI_LINEAR_TEXT_H
#define KVIST_TUI_LINEAR_TEXT_H

#include "agent/call/stream.h"
#include "agent/log/event.h"

typedef struct tui_linear_text {
    agent_stream stream; /* agent_stream_free(&t.stream) at the end */
    bool is_elsewhere;   /* the engine is across HTTP: tokens are counted, not rows */
    bool is_labelled;    /* "answer: " stands before what streams */
    bool asks_to_rewind; /* its no is the conversation alone */
    bool asks_to_run;    /* the question is about a command: it may be changed, and allowed for good */
    bool is_ascii;       /* the reader shows nothing else */
} tui_linear_text;

/* Each of these appends to *out: what an event says; a line of its own; the answers that the open question takes. */
void tui_linear_event(const agent_event *e, tui_linear_text *t, base_buf *out);
void tui_linear_line(tui_linear_text *t, const char *name, const char *text, base_buf *out);
void tui_linear_answers(const tui_linear_text *t, base_buf *out);

#endif
