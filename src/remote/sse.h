/*
 * Server-sent events as they arrive (WHATWG HTML, "Server-sent events"): bytes cut anywhere, inside a letter,
 * a line or a CRLF, become the data of whole events. Beside the standard's form two things that servers of
 * models send are read: a line of bare JSON is an event of its own (streams of JSON lines, and errors of
 * servers that answer without a stream), and "error: {...}" is an event.
 */
#ifndef KVIST_REMOTE_SSE_H
#define KVIST_REMOTE_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { REMOTE_SSE_MOST = 8 << 20 }; /* bytes of a line, and of an event's data */

/* Zero-initialise. */
typedef struct remote_sse {
    base_buf line, data;
    bool has_data;   /* a data line stood there, maybe an empty one */
    bool was_return; /* the last byte was a CR: an LF that follows belongs to it */
    bool has_begun;  /* a byte order mark may stand in front of the first line only */
} remote_sse;

/* The data of one event; an error ends the reading. */
typedef int remote_sse_fn(void *user, const char *data, size_t n, base_err *err);

/* Reads n more bytes and tells each event that they complete. A line too long is BASE_E_LIMIT. */
int remote_sse_feed(
    remote_sse *s, const char *bytes, size_t n, remote_sse_fn *event, void *user, base_err *err);
/* No more bytes will come: an event whose last line or blank line is missing is told. */
int remote_sse_end(remote_sse *s, remote_sse_fn *event, void *user, base_err *err);
void remote_sse_free(remote_sse *s); /* reusable afterwards */

#endif
