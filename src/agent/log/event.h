/*
 * Everything that happens is an event. The agent emits them; the log stores exactly them; the screen, --json
 * and replay are pure functions of (events, UI state, size). --json promises these fields to scripts.
 *
 * input and input_end stand around what a line of --input jsonl gave: they are of a run, not of its session, so
 * no log has them.
 *
 * what_if begins the log of another kind of child: a session computed again with other settings (src/whatif). Its
 * plan, visits and ledger events are those of the changed side, each behind the event of the session that the
 * what_if_at before it names; what_if_turn compares a turn's two sides, what_if_end sums up. From turn `from` of a free
 * one on the changed side answers by itself: there its own events (user, append, token, plan, ledger, turn_end) stand in
 * place of these, and what_if_answer tells how it answered beside how the record did.
 *
 * request: parts are what of the session it sent, "found" in the engine's cache or "computed" ("sent": that is not told);
 * blocks, where the engine keeps what was sent and said, behind its answer: "gpu", "host", "disk", "gone", "unknown".
 * Both are of tokens [from, to) of the session, and missing where nothing is told, as in logs of before they were there.
 *
 * session: n_lanes are those of plans; windows has a letter for each layer of them, "w" for one that reads no more than the
 * newest `window` tokens; without one, all read everything. row_bytes are of the lanes that do.
 *
 * Two tables. LIST(name, shape, fields): a row of a list; EVENT(name, fields): an event. Fields: S (string),
 * I (integer), N (integer that is left out when it is 0), D (number), B (boolean), J (raw JSON text of any
 * value), L(row, name) (a list of such rows). The structs, the names, the JSON writer, the reader, copy and
 * free are expanded from them. Optional strings, J fields and lists are NULL and left out of the JSON.
 */
#ifndef KVIST_AGENT_LOG_EVENT_H
#define KVIST_AGENT_LOG_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/*
 * In JSON a row of shape OBJECT is {"path":...}, one of shape ARRAY [from,to,...] with null for what is
 * missing, and one of shape PLAIN its only field. A number that is missing from an ARRAY reads as -1 (I) or
 * NAN (D, P: two decimals).
 */
/* clang-format off */
#define AGENT_LISTS(LIST, S, I, N, D, P)                                                                               \
    LIST(id, PLAIN, I(id))                                                                                             \
    LIST(length, PLAIN, I(n))                                                                                          \
    LIST(changed, PLAIN, S(path))                                                                                      \
    LIST(excerpt, OBJECT, S(path) I(line) I(end) S(name) S(why) I(tokens))                                             \
    LIST(place, OBJECT, S(name) S(status) S(path) N(line) N(end) S(text))                                              \
    LIST(shown, OBJECT, I(from) I(to) S(path) S(version) I(line))                                                      \
    LIST(run, ARRAY, I(from) I(to) S(action) S(reason) I(lanes))                                                       \
    LIST(visitor, ARRAY, I(from) I(to) S(name) P(share))                                                               \
    LIST(score, ARRAY, I(from) I(to) S(origin) S(reason) D(attention) D(memory) D(rank) D(cut) D(active))              \
    LIST(stretch, ARRAY, I(from) I(to) S(what))                                                                        \
    LIST(section, ARRAY, I(from) I(to) I(lanes))                                                                       \
    LIST(side, OBJECT, S(side) I(evicted) I(promoted) D(visited) I(active) I(host) I(budget) D(structure) D(nll) D(ms) S(why))               \
    LIST(followed, OBJECT, S(call) S(source))

#define AGENT_EVENTS(EVENT, S, I, N, D, B, J, L)                                                                             \
    EVENT(session, I(schema) S(id) S(parent) S(model) S(model_hash) S(policy) I(budget) I(until) I(n_ctx) I(n_lanes) S(windows) N(window) I(row_bytes) S(mode) S(root) S(branch) I(time_ms) S(version) J(settings)) \
    EVENT(user, I(turn) S(text) I(time_ms))                                                                            \
    EVENT(append, I(turn) I(from) I(n) S(origin) S(label) S(path) I(line) I(line_end) S(version) S(text) L(id, ids) L(length, lens) N(lanes) J(segment)) \
    EVENT(span, I(from) I(to) S(reason) D(weight) I(marks) I(flow) I(dependence))                                      \
    EVENT(context, I(turn) L(excerpt, items))                                                                                   \
    EVENT(prefill, I(turn) I(done) I(total) S(server))                                                                 \
    EVENT(token, I(id) I(index) S(text) S(origin) S(channel))                                                          \
    EVENT(mask, I(turn) I(index) S(wanted) S(took))                                                                    \
    EVENT(tool_call, I(turn) S(name) J(arguments) S(payload) S(headline))                                              \
    EVENT(approval_request, I(turn) S(name) S(headline) S(detail) S(power))                                            \
    EVENT(approval, I(turn) S(decision) S(reason))                                                                     \
    EVENT(tool_output, I(turn) S(text))                                                                                \
    EVENT(tool_result, I(turn) S(name) S(status) I(bytes) S(text) S(summary) S(diff) I(exit_code) I(ms) L(changed, changed) L(shown, segments)) \
    EVENT(answer, I(turn) S(text) J(value))                                                                            \
    EVENT(places, I(turn) L(place, items))                                                                                    \
    EVENT(correction, I(turn) S(text) S(what))                                                                         \
    EVENT(outcome, I(turn) S(state) S(text))                                                                           \
    EVENT(plan, I(turn) S(cause) L(run, runs) I(evicted) I(promoted) I(n) D(score_ms) D(plan_ms) I(deferred) I(again) N(folded))                   \
    EVENT(visits, I(turn) I(tokens) D(rows) L(visitor, items))                                                                  \
    EVENT(scores, I(turn) L(score, spans))                                                                                    \
    EVENT(sections, I(turn) I(index) I(lanes) L(section, items))                                                                \
    EVENT(ledger, I(turn) I(new) I(reused) I(generated) I(evicted) I(promoted) I(protected) I(active) I(host) I(budget) I(until) I(n) I(ctx) D(prefill_s) D(decode_tps) I(drafted) I(accepted) I(active_bytes) I(host_bytes) S(why) D(structure) D(chance) D(ceiling) D(read) D(kept) I(deferred) D(spared) I(computed) I(unread)) \
    EVENT(request, I(turn) I(sent) I(predicted) I(cached) I(computed) I(ms) S(why) N(gpu) N(host) N(disk) N(gone) N(unknown) L(stretch, parts) L(stretch, blocks)) \
    EVENT(snapshot, I(turn) I(n) I(bytes))                                                                             \
    EVENT(candidate, I(turn) I(number) I(of) S(status) S(headline) S(text) S(output) I(tokens) I(shared) I(ms))        \
    EVENT(rewind, I(turn) I(n) S(summary) L(changed, changed))                                                         \
    EVENT(undo, I(turn) S(summary))                                                                                    \
    EVENT(notice, I(turn) S(text))                                                                                     \
    EVENT(error, I(turn) S(text))                                                                                      \
    EVENT(turn_end, I(turn) S(status) I(time_ms))                                                                      \
    EVENT(end, S(session) I(turns) S(status))                                                                          \
    EVENT(title, S(text))                                                                                              \
    EVENT(fork, I(turn) S(session) S(parent))                                                                          \
    EVENT(input, I(line) S(id))                                                                                        \
    EVENT(input_end, I(line) S(id) S(status))                                                                          \
    EVENT(what_if, S(session) S(parent) S(original) S(changed) J(settings) I(turns) S(missing) I(time_ms) S(version) N(from) N(apart))  \
    EVENT(what_if_at, I(seq))                                                                                          \
    EVENT(what_if_turn, I(turn) L(side, sides) I(tokens) I(said) D(kl) D(most) I(differ) I(index) S(was) S(instead) D(nats) S(check) N(bytes)) \
    EVENT(what_if_answer, I(turn) S(was) S(instead) S(diff) L(followed, calls) S(stopped))                             \
    EVENT(what_if_end, S(status) S(text) I(turns))
/* clang-format on */

#define AGENT_EVENT_ID(name, fields) AGENT_EVENT_##name,
#define AGENT_NO_FIELD(...)
typedef enum agent_event_type {
    AGENT_EVENTS(AGENT_EVENT_ID, AGENT_NO_FIELD, AGENT_NO_FIELD, AGENT_NO_FIELD, AGENT_NO_FIELD,
        AGENT_NO_FIELD, AGENT_NO_FIELD, AGENT_NO_FIELD) AGENT_N_EVENTS
} agent_event_type;

#define AGENT_FIELD_S(name)      const char *name;
#define AGENT_FIELD_I(name)      int64_t name;
#define AGENT_FIELD_D(name)      double name;
#define AGENT_FIELD_B(name)      bool name;
#define AGENT_FIELD_L(row, name) agent_##row##_list name;
#define AGENT_LIST_STRUCT(name, shape, fields)                                                               \
    typedef struct agent_##name##_row {                                                                      \
        fields                                                                                               \
    } agent_##name##_row;                                                                                    \
    typedef struct agent_##name##_list {                                                                     \
        const agent_##name##_row *rows; /* [n]; NULL: there is no list */                                    \
        size_t n;                                                                                            \
    } agent_##name##_list;
AGENT_LISTS(AGENT_LIST_STRUCT, AGENT_FIELD_S, AGENT_FIELD_I, AGENT_FIELD_I, AGENT_FIELD_D, AGENT_FIELD_D)

#define AGENT_EVENT_STRUCT(name, fields)                                                                     \
    struct {                                                                                                 \
        fields                                                                                               \
    } name;

/*
 * Strings and rows belong to whoever made the event and live as long as it (agent_event_read: as its
 * document).
 */
typedef struct agent_event {
    agent_event_type type;
    uint64_t seq;     /* place in the session, from 1; given by the agent */
    const void *blob; /* plan: the packed kv_plan; stored beside the JSON, not in it */
    size_t blob_n;
    union {
        AGENT_EVENTS(AGENT_EVENT_STRUCT, AGENT_FIELD_S, AGENT_FIELD_I, AGENT_FIELD_I, AGENT_FIELD_D,
            AGENT_FIELD_B, AGENT_FIELD_S, AGENT_FIELD_L)
    };
} agent_event;

const char *agent_event_name(agent_event_type type);
int64_t agent_event_turn(const agent_event *e); /* -1: its type has none (token, span, session, end) */

/*
 * One JSON object without newline: {"event":"token","id":5,...}; the bytes that --json prints and the log
 * stores.
 */
void agent_event_write(const agent_event *e, base_buf *out);

/* A JSON Schema (2020-12) of what agent_event_write writes, made from the tables above. */
void agent_event_schema(base_buf *out);

/* The reverse; the event's strings and rows live in *ret_doc. A list's rows of another shape are left out. */
typedef struct agent_event_doc agent_event_doc;
int agent_event_read(const char *json, size_t n, agent_event *ret, agent_event_doc **ret_doc, base_err *err);
void agent_event_doc_free(agent_event_doc *d);
size_t agent_event_doc_bytes(const agent_event_doc *d); /* of memory that it takes */

/* A deep copy on the heap (for queues between threads). Free with agent_event_free. */
agent_event *agent_event_copy(const agent_event *e);
void agent_event_free(agent_event *e);

/*
 * Rows a lane that may be active now, of a session's or ledger's numbers: `until` while no row is out, then the
 * budget; 0: no limit. Logs of before there was an `until` have 0 or -1 there.
 */
static inline int64_t agent_limit_now(int64_t budget, int64_t until, int64_t host)
{
    return until > budget && !host ? until : budget;
}

/* A `request` in words: "sent 4210, found 4150 of 4150 expected, computed 60". */
void agent_request_put(const agent_event *e, base_buf *out);
/* Does it say where the engine keeps the blocks of what was sent and said? */
bool agent_request_tells_blocks(const agent_event *e);

/* Of an append: words that kvist begins an answer with, which the model goes on; NULL: it is none. */
const char *agent_event_opening(const agent_event *e);

typedef void agent_event_fn(void *user, const agent_event *e);

#endif
