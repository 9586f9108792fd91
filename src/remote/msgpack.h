/*
 * MessagePack (msgpack/spec, "spec.md") as JSON text, for messages of which only JSON's types are read: bytes become
 * hexadecimal text, an extension null, a member's name that is no text the text of what it is, an integer beyond
 * int64 text, a number that JSON lacks null.
 *
 * Not libmsgpack-c (4.0.0 looked at), though elsewhere a library is preferred: it makes room for as many values as a list says
 * that it has, before any of them came, so a message of 140 bytes (28 lists in each other) claimed 14 GiB, and its limit
 * on nesting cannot be set. Here a value takes no room but its own text, and REMOTE_MSGPACK_DEPTH holds.
 */
#ifndef KVIST_REMOTE_MSGPACK_H
#define KVIST_REMOTE_MSGPACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { REMOTE_MSGPACK_DEPTH = 16 };

/* One value that takes all n bytes; anything else is BASE_E_FORMAT, with nothing appended. */
int remote_msgpack_put_json(const uint8_t *bytes, size_t n, base_buf *out, base_err *err);

#endif
