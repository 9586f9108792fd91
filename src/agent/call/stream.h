/*
 * A streamed answer for somebody who reads lines (headless.c, the linear mode): text as it comes, but nothing
 * that may turn out to be a tool call, which its own event tells. A line that could begin one is held back
 * until it is known. Pure.
 */
#ifndef KVIST_AGENT_CALL_STREAM_H
#define KVIST_AGENT_CALL_STREAM_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct agent_stream {
    base_buf held;  /* streamed and not shown yet */
    bool in_call;   /* what streams is a call */
    bool shown;     /* something of this answer was shown */
    bool line_open; /* the reader's line stands open; whoever ends it clears this */
} agent_stream;

/*
 * A token's text (NULL: none); what may be shown by now is appended to out. is_call: it is known to be of a call, whose
 * beginning the harness may have written, which streams nothing.
 */
void agent_stream_token(agent_stream *s, const char *text, bool is_call, base_buf *out);
/* The answer is over and was no call: what was held back, or all of it where nothing streamed. */
void agent_stream_answer(agent_stream *s, const char *text, base_buf *out);
/* A call was read, or a new message begins: what is held back was no answer. */
void agent_stream_forget(agent_stream *s);
void agent_stream_free(agent_stream *s);

#endif
