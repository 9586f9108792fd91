/*
 * Finding the tool call in what a model wrote. Lenient, in a fixed order: <tools>, <tool_call>, fenced JSON,
 * a bare object with a known tool's name. JSON is repaired (raw newlines, trailing commas, single quotes,
 * missing ends). Nothing raises: text without a call is an answer. A payload is the raw fenced block behind
 * the call.
 *
 * Pure; any thread. Works on the text so far, so that decoding can stop where a call is complete.
 */
#ifndef KVIST_AGENT_CALL_CALL_H
#define KVIST_AGENT_CALL_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

typedef struct agent_call {
    char *name;
    base_json_doc *arguments; /* an object */
    char *payload;            /* heap, or NULL */
    size_t payload_n;
    size_t from, to;  /* bytes of the text that call and payload took; what stands before is prose */
    const char *form; /* "tools", "tool_call", "function", "fence", "bare" */
    bool is_function; /* written as <function=NAME> */
} agent_call;
void agent_call_free(agent_call *c); /* frees the contents */

/* What a call begins with, where it is no bare object and no fence; NULL-terminated. */
extern const char *const agent_call_marks[];

/* What the parser asks about a name: -1 no such tool, 0 a tool, 1 a tool with a payload. */
typedef int agent_call_known_fn(const void *user, const char *name);

typedef enum agent_call_found {
    AGENT_CALL_NONE,    /* no call in this text */
    AGENT_CALL_PARTIAL, /* one may be forming (never when final) */
    AGENT_CALL_FOUND,
} agent_call_found;

/* final: no more text will come. *ret is written when FOUND. */
agent_call_found agent_call_parse(
    const char *text, size_t n, bool final, agent_call_known_fn *known, const void *user, agent_call *ret);

/*
 * The i-th fenced block: body [*from, *to) and language word; false when there is none. An open last block
 * counts.
 */
typedef struct agent_fence {
    size_t open, from, to, end; /* the fence's first byte, its body, behind its closing line */
    base_str language;
    bool closed;
} agent_fence;
/* the first one at or behind `at` */
bool agent_fence_find(const char *text, size_t n, size_t at, agent_fence *ret);

#endif
