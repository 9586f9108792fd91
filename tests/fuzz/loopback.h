/* A server on this machine that answers every connection as the target says, by a thread of its own. */
#ifndef KVIST_FUZZ_LOOPBACK_H
#define KVIST_FUZZ_LOOPBACK_H

#include <stddef.h>

/*
 * Starts it, once, and never ends it; its URL. answer: called by the server's thread with the whole request, head and body, and where
 * to write; the connection is closed behind it.
 */
const char *loopback_start(void (*answer)(int to, const char *request));
/* Writes all of it, or as much as the other side takes. */
void loopback_send(int to, const void *bytes, size_t n);

#endif
