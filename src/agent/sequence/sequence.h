/*
 * The sequence that the model reads: text into it, with what of it is structure; which of it is read now; what
 * leaves and comes back, by rows where the engine has them, else by spans with a price; what reading it cost.
 */
#ifndef KVIST_AGENT_SEQUENCE_H
#define KVIST_AGENT_SEQUENCE_H

#include "agent/session/segments.h"
#include "agent/words/token_map.h"
#include "kv/core/budget.h"
#include "tools/tool.h"

/* --- insert.c --- */
/* Tokens of a text of the harness; ret (may be NULL): the same without its marks. */
int agent__encode_marked(
    const agent *a, const char *text, size_t n, model_ids *ids, base_buf *ret, base_err *err);
/* What stands for a NUL byte in what is shown and read: the control character for what cannot be written, one byte as it was. */
enum { AGENT_FOR_NUL = 0x1a };
/* Appends content. ret_index (may be NULL): its index in a->transcript.segments. */
int agent__append(agent *a, const agent_text *t, size_t *ret_index, base_err *err);
/* Tokens of a call that were chosen elsewhere (tries.c), with their `token` events. */
int agent__append_answer(agent *a, const int32_t *ids, uint32_t n, base_err *err);
/*
 * Logged ids again, without an event (resume.c). The segment is what was logged of it; its lines are found
 * here.
 */
int agent__append_logged(agent *a, const kv_segment *logged, const int32_t *ids, uint32_t n, base_err *err);
/* Appends what ids spell, control tokens too. */
void agent__put_text(const agent *a, const int32_t *ids, uint32_t n, base_buf *out);
/* Ends the open message and begins one of `role` (-1: only ends), as scaffold. */
int agent__open_message(agent *a, int role, base_err *err);
/* A part of a segment's text is lines of a file, up to line_end: remembered for staleness and "shown already". */
void agent__add_shown(agent *a, size_t index, const tool_source *part, uint32_t line_end);

/* --- repair.c --- */
/*
 * Asks for evicted rows with the content words of tokens [from, to). Lines that answer a request clearly are said again, in its
 * message, which is open and ends with it.
 */
int agent__repair(agent *a, uint32_t from, uint32_t to, base_err *err);

/* --- spans.c --- */
enum { AGENT_MAX_SPANS = 1024 };
agent_token_map agent__map_tokens(const agent *a, const int32_t *ids, uint32_t n); /* the caller frees .end */
/* What the text shows of files as spans of its tokens, [AGENT_MAX_SPANS]; returns how many. */
uint32_t agent__find_spans(
    agent *a, const agent_text *t, const char *text, size_t n, const agent_token_map *m, kv_span *spans);

/* --- active.c --- */
/* The engine's session; an engine without one is a sentence. */
int agent__get_session(const agent *a, kv_session **ret, base_err *err);
int agent__set_budget(agent *a, const kv_budget *wish, base_err *err);
int agent__manual(agent *a, kv_manual what, uint32_t from, uint32_t to, base_err *err); /* a person's hand */
/* The harness's, which does without where an engine cannot. */
int agent__bring_back(agent *a, uint32_t from, uint32_t to, base_err *err);
int agent__put_stale(agent *a, uint32_t from, uint32_t to, base_err *err); /* they show an older text */
/* A thought whose answer is there: its rows leave. */
int agent__put_thought(agent *a, uint32_t from, uint32_t to, base_err *err);
/* an attempt that came to nothing */
int agent__put_failed(agent *a, uint32_t from, uint32_t to, base_err *err);
void agent__active_lanes(const agent *a, uint32_t *ret); /* how many lanes hold each token, [n_tokens] */
void agent__set_turn(agent *a, uint32_t turn);

/* --- aside.c --- */
/* Of this engine spans may leave, and that has a price. */
bool agent__is_priced(const agent *a);
/* Is some of it put aside? Never where the engine is not priced. */
bool agent__is_aside(const agent *a, uint32_t from, uint32_t to);
/* Above the budget: one cut, by what the message asks for. */
int agent__hold_budget(agent *a, const char *message, base_err *err);
void agent__leave_later(agent *a, uint32_t from, uint32_t to, kv_reason reason); /* with the next cut */
/* where it is put aside, in front of the next request */
void agent__want_back(agent *a, uint32_t from, uint32_t to);
int agent__put_aside(agent *a, uint32_t from, uint32_t to, base_err *err); /* now, by a person */
int agent__apply_aside(agent *a, const kv_plan *p, base_err *err);         /* a logged one */
void agent__tell_span_budget(agent *a);
/* Behind the price that was shown: what was paid, once. */
void agent__put_paid(agent *a, const engine_request *r, base_buf *out);
void agent__truncate_aside(agent *a, uint32_t n); /* forgets what is behind token n */

/* --- back.c --- */
/* In front of a request, in its message: a cut where one is due, what was put aside, what the request asks for of it. */
int agent__append_aside(agent *a, const char *request, base_err *err);

/* --- visits.c --- */
/* Which evicted rows tokens read since this was told last. */
void agent__tell_visits(agent *a);

/* --- requests.c --- */
/* What requests to an engine across HTTP cost, as events, since this was told last; into the turn's sums. */
void agent__tell_requests(agent *a);

#endif
