/*
 * Listening to what an engine publishes of its cache (ZeroMQ, SUB). kvist connects and nothing connects to it, so the
 * engine has to bind its address (vLLM does where "*" is the host, or for ipc). Nothing of a tree is sent there. One
 * thread.
 */
#ifndef KVIST_REMOTE_EVENTS_H
#define KVIST_REMOTE_EVENTS_H

#include "remote/blocks.h"

typedef struct remote_events remote_events;

/* "tcp://host:port" or "ipc:///path". BASE_E_UNSUPPORTED: built without ZeroMQ (libzmq). */
int remote_events_open(remote_events **ret, const char *address, base_err *err);
void remote_events_close(remote_events *e); /* NULL is fine */

/* Reads what came, 16 MiB of it at most; waits up to wait_ms for the first of it. An error is of one message, and told once. */
int remote_events_take(remote_events *e, int wait_ms, base_err *err);
const remote_blocks *remote_events_blocks(const remote_events *e);

#endif
