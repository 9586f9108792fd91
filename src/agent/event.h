/*
 * Everything that happens is an event. The agent emits them; the log stores exactly them; the screen, --json and replay are pure
 * functions of (events, UI state, size). --json promises these fields to scripts.
 *
 * One table: EVENT(name, fields) with fields S (string), I (integer), D (number), B (boolean), J (raw JSON text: an array
 * or object). The struct, the names, the JSON writer and the reader are expanded from it. Optional strings are NULL and are
 * left out of the JSON; so are J fields.
 */
#ifndef KVIST_AGENT_EVENT_H
#define KVIST_AGENT_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* clang-format off */
#define AGENT_EVENTS(EVENT, S, I, D, B, J)                                                                             \
    EVENT(session, I(schema) S(id) S(parent) S(model) S(model_hash) S(policy) I(budget) I(n_ctx) I(n_lanes) I(row_bytes) S(mode) S(root) S(branch) I(time_ms) S(version) J(settings)) \
    EVENT(user, I(turn) S(text) I(time_ms))                                                                            \
    EVENT(append, I(turn) I(from) I(n) S(origin) S(label) S(path) I(line) I(line_end) S(version) S(text) J(ids) J(lens) J(lanes) J(segment)) \
    EVENT(span, I(from) I(to) S(reason) D(weight) I(marks) I(flow) I(dependence))                                      \
    EVENT(context, I(turn) J(items))                                                                                   \
    EVENT(prefill, I(turn) I(done) I(total))                                                                           \
    EVENT(token, I(id) I(index) S(text) S(origin))                                                                     \
    EVENT(mask, I(turn) I(index) S(wanted) S(took))                                                                    \
    EVENT(tool_call, I(turn) S(name) J(arguments) S(payload) S(headline))                                              \
    EVENT(approval_request, I(turn) S(name) S(headline) S(detail) S(power))                                            \
    EVENT(approval, I(turn) S(decision) S(reason))                                                                     \
    EVENT(tool_output, I(turn) S(text))                                                                                \
    EVENT(tool_result, I(turn) S(name) S(status) I(bytes) S(text) S(summary) S(diff) I(exit_code) I(ms) J(changed) J(segments)) \
    EVENT(answer, I(turn) S(text))                                                                                     \
    EVENT(places, I(turn) J(items))                                                                                    \
    EVENT(plan, I(turn) S(cause) J(runs) I(evicted) I(promoted) I(n) D(score_ms) D(plan_ms) I(deferred) I(again))                   \
    EVENT(visits, I(turn) I(tokens) D(rows) J(items))                                                                  \
    EVENT(scores, I(turn) J(spans))                                                                                    \
    EVENT(sections, I(turn) I(index) I(lanes) J(items))                                                                \
    EVENT(ledger, I(turn) I(new) I(reused) I(generated) I(evicted) I(promoted) I(protected) I(active) I(host) I(budget) I(n) I(ctx) D(prefill_s) D(decode_tps) I(drafted) I(accepted) I(active_bytes) I(host_bytes) S(why) D(structure) D(chance) D(ceiling) D(read) D(kept) I(deferred) D(spared) I(computed) I(unread)) \
    EVENT(snapshot, I(turn) I(n) I(bytes))                                                                             \
    EVENT(candidate, I(turn) I(number) I(of) S(status) S(headline) S(text) S(output) I(tokens) I(shared) I(ms))        \
    EVENT(rewind, I(turn) I(n))                                                                                        \
    EVENT(undo, I(turn) S(summary))                                                                                    \
    EVENT(notice, I(turn) S(text))                                                                                     \
    EVENT(error, I(turn) S(text))                                                                                      \
    EVENT(turn_end, I(turn) S(status) I(time_ms))                                                                      \
    EVENT(end, S(session) I(turns) S(status))
/* clang-format on */

#define AGENT_EVENT_ID(name, fields) AGENT_EVENT_##name,
#define AGENT_FIELD_NOTHING(name)
typedef enum agent_event_type {
    AGENT_EVENTS(AGENT_EVENT_ID, AGENT_FIELD_NOTHING, AGENT_FIELD_NOTHING, AGENT_FIELD_NOTHING,
        AGENT_FIELD_NOTHING, AGENT_FIELD_NOTHING) AGENT_N_EVENTS
} agent_event_type;

#define AGENT_FIELD_S(name) const char *name;
#define AGENT_FIELD_I(name) int64_t name;
#define AGENT_FIELD_D(name) double name;
#define AGENT_FIELD_B(name) bool name;
#define AGENT_FIELD_J(name) const char *name;
#define AGENT_EVENT_STRUCT(name, fields)                                                                     \
    struct {                                                                                                 \
        fields                                                                                               \
    } name;

/* Strings belong to whoever made the event and live as long as it (agent_event_read: as its document). */
typedef struct agent_event {
    agent_event_type type;
    uint64_t seq;     /* place in the session, from 1; given by the agent */
    const void *blob; /* plan: the packed kv_plan; stored beside the JSON, not in it */
    size_t blob_n;
    union {
        AGENT_EVENTS(
            AGENT_EVENT_STRUCT, AGENT_FIELD_S, AGENT_FIELD_I, AGENT_FIELD_D, AGENT_FIELD_B, AGENT_FIELD_J)
    };
} agent_event;

const char *agent_event_name(agent_event_type type);
int64_t agent_event_turn(const agent_event *e); /* -1: its type has none (token, span, session, end) */

/* One JSON object without newline: {"event":"token","id":5,...}; the bytes that --json prints and the log stores. */
void agent_event_write(const agent_event *e, base_buf *out);

/* The reverse; the event's strings live in *ret_doc. J fields become pointers into fresh text owned by the document holder. */
typedef struct agent_event_doc agent_event_doc;
int agent_event_read(const char *json, size_t n, agent_event *ret, agent_event_doc **ret_doc, base_err *err);
void agent_event_doc_free(agent_event_doc *d);

/* A deep copy on the heap (for queues between threads). Free with agent_event_free. */
agent_event *agent_event_copy(const agent_event *e);
void agent_event_free(agent_event *e);

typedef void agent_event_fn(void *user, const agent_event *e);

#endif
