/*
 * Where what code says of a text and what the cache says of rows meet: kinds become reasons, marks are the
 * same bits. Neither layer knows the other; whoever appends source text to a session uses this.
 */
#ifndef KVIST_AGENT_MARKS_H
#define KVIST_AGENT_MARKS_H

#include "code/structure.h"
#include "kv/session.h"
#include "kv/policy/structure.h"

static const uint8_t agent_reason_of[CODE_N_KINDS] = {
    [CODE_CALL] = KV_REASON_CALL,
    [CODE_CONTROL] = KV_REASON_CONTROL,
    [CODE_RETURN] = KV_REASON_RETURN,
    [CODE_ASSIGN] = KV_REASON_ASSIGN,
    [CODE_SIGNATURE] = KV_REASON_SIGNATURE,
};
_Static_assert(
    (int)KV_MARK_CALL == (int)CODE_MARK_CALL && (int)KV_MARK_CONTROL == (int)CODE_MARK_CONTROL &&
        (int)KV_MARK_RETURN == (int)CODE_MARK_RETURN && (int)KV_MARK_ASSIGN == (int)CODE_MARK_ASSIGN &&
        (int)KV_MARK_DEFUSE == (int)CODE_MARK_DEFUSE && (int)KV_MARK_SYMBOL == (int)CODE_MARK_SYMBOL &&
        (int)KV_MARK_SIGNATURE == (int)CODE_MARK_SIGNATURE && (int)KV_MARK_CORE == (int)CODE_MARK_CORE,
    "marks of text are marks of rows");

#endif
