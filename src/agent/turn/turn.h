/*
 * A turn: the request, then answers and calls until an answer without a call. Answers are read token by token; where
 * a test can judge, several are tried.
 */
#ifndef KVIST_AGENT_TURN_H
#define KVIST_AGENT_TURN_H

#include "agent/call/call.h"
#include "agent/repair/attempt.h"
#include "agent/session/session_state.h"

/* --- turn.c --- */
int agent__turn(agent *a, const char *request, base_err *err);
/* A turn of one answer in words: nothing is looked for, no call of it is made. */
typedef struct agent_draft {
    const char *request;          /* what the turn is called in the chat and in the log: the command */
    const char *label, *material; /* what the model reads in front, and what that is */
    const char *asking;
} agent_draft;
/* The answer's text behind *ret. BASE_E_STATE: it was cut, went in circles or was a call. The caller tells errors. */
int agent__draft(agent *a, const agent_draft *d, base_buf *ret, base_err *err);

/* --- reading.c --- */
/*
 * What a request means in words that the program reads ("Rename X to Y."), where its own words do not say it for sure and an operation
 * is likeliest. *ret (heap) NULL: it stands as it is, and a->read_as says what it is taken for where it was weighed. *ret_asks: what
 * the program has to ask before it does anything (which.c); mostly nothing.
 */
int agent__read_meaning(agent *a, const char *request, char **ret, base_buf *ret_asks, base_err *err);

/* --- spelling.c --- */
/*
 * The request with the names that it misspells as the tree's definitions have them, where one is nearest and nothing says that the name
 * is to come; a notice says each. The caller frees; NULL: it stands as it is.
 */
char *agent__mend_spelling(agent *a, const char *request);

/* --- reader.c --- */
/* An answer as it is read token by token: what of it is words and calls, and what the model thinks (channels.h). */
typedef struct agent_reader {
    base_buf text, thought;
    agent_channels channels;
    size_t line_text, line_thought; /* agent__reader_line_begins */
    bool line_in_head;
    uint32_t n_thought, n_closed; /* tokens of thoughts; thoughts that were ended for it */
} agent_reader;
void agent__reader_begin(agent *a, agent_reader *r); /* the next token is the answer's first */
void agent__reader_take(const agent *a, agent_reader *r, int32_t id, uint32_t index);
void agent__reader_free(agent_reader *r);
/* The model goes on with a line that the harness began; it has come to its end, or begins something else. */
enum { AGENT_OPENING_TOKENS = 64 }; /* of the model's, at most */
void agent__reader_line_begins(agent_reader *r);
bool agent__reader_has_line(const agent_reader *r);
/* The call that the harness begins behind such a line; is_ended: the model ended its message there. */
void agent__put_call_behind(
    const agent *a, const agent_reader *r, bool is_ended, const base_buf *call, base_buf *out);
/*
 * The model has thought for settings.max_thought tokens: what ends its thought, as it would have ended it, is to be
 * appended. false: go on.
 */
bool agent__ends_thought(agent *a, agent_reader *r, model_ids *ret);
/* The grammar goes on behind what the harness wrote into the answer from token `from` on. */
void agent__tell_grammar(agent *a, uint32_t from);
/* Can the harness write the beginning of a call as this model writes calls? */
bool agent__can_begin_calls(const agent *a);

/* --- reply.c --- */
/* An answer, and how it ended. */
typedef enum agent_reply_end {
    AGENT_REPLY_DONE,
    AGENT_REPLY_CALL,
    AGENT_REPLY_REPEATS,
    AGENT_REPLY_TOO_LONG,
    AGENT_REPLY_CANCELLED
} agent_reply_end;

enum { AGENT_MOST_CALLS = 8 }; /* of one message */

typedef struct agent_reply {
    agent_reader read;
    uint32_t from, to; /* its tokens */
    kv_origin origin;  /* of what is being written */
    agent_reply_end end;
    agent_call calls[AGENT_MOST_CALLS]; /* with AGENT_REPLY_CALL: in their order */
    uint32_t n_calls;
    size_t told_thought;
} agent_reply;

/*
 * Decodes until the model ends, a call is complete, or one of the brakes holds. A strong model's message goes on behind a
 * call, for as long as nothing but further calls comes. Errors of the engine are errors. hold: what the answer is held
 * to; NULL: nothing.
 */
int agent__reply_decode(
    agent *a, agent_reply *r, const agent_opening *opening, engine_hold *hold, base_err *err);
/* Tokens of a candidate become the answer. */
int agent__reply_take(agent *a, agent_reply *r, const model_ids *ids, base_err *err);
/* Text of the harness at the answer's end, which is read as the model's is; *told: how much of the answer its events told. */
int agent__reply_write(agent *a, agent_reply *r, const base_buf *text, size_t *told, base_err *err);
/* Does a line of it open a call? With no call in it, that is one that cannot be read. */
bool agent__reply_begins_call(const agent_reply *r);
/* json: the answer as JSON of the schema; NULL: it is words. */
void agent__reply_tell(agent *a, const agent_reply *r, const char *json);
void agent__reply_free(agent_reply *r);
/* The turn has its answer: its thoughts leave, as the model's template leaves them out of what comes later. */
void agent__drop_thoughts(agent *a);

/* --- again.c --- */
/* What a turn may still ask the model for, once each. */
typedef struct agent_askings {
    bool call, name;
} agent_askings;
agent_askings agent__askings(const agent *a, const char *request);
/*
 * Behind an answer without a call: where it falls short of the request, the model is asked for what is missing
 * (*asked; the next answer is open). may_call: it may call a tool then.
 */
int agent__ask_more(
    agent *a, const agent_reply *r, bool may_call, agent_askings *left, bool *asked, base_err *err);
/* A message of the harness, up to the opening of the answer. */
int agent__append_asking(agent *a, const base_buf *text, base_err *err);

/* --- schema.c --- */
/* Behind a request: that its answer is JSON, and of which schema. */
void agent__put_schema(const agent *a, base_buf *request);
/* What the next answer is held to. calls: it may be one where the family's calls do not look like JSON. */
engine_hold agent__hold(const agent *a, bool calls);
/* Can this text, as far as it came, be JSON only? Then no call is looked for in it. */
bool agent__is_json(const char *text, size_t n);
/* The answer's JSON, on one line; BASE_E_FORMAT: it does not fit, and where. A fence or a thought around it is dropped. */
int agent__take_json(const agent *a, const char *text, size_t n, base_buf *ret, base_err *err);
/* what it is asked then */
void agent__put_schema_again(const agent *a, const base_err *why, base_buf *asking);

/* --- fence.c --- */
/* A definition in a fence without a call, as a call to rewrite it; false: none, or no single place for it. */
bool agent__offer_rewrite(agent *a, const base_buf *text, agent_call *call);

/* --- outside.c --- */
/* Tools of other programs that the model was not told of yet, in front of a request. */
int agent__append_outside(agent *a, base_err *err);
int agent__describe_outside(agent *a, const char *name, base_err *err); /* /mcp [NAME] */

/* --- choose.c --- */
bool agent__choosing_is_due(const agent *a); /* other behaviour is asked for, and nothing was answered yet */
/* Samples a few answers that begin so; *ret_ids: the tokens of the one whose change the request fits best. */
int agent__choose(agent *a, const agent_opening *opening, model_ids *ret_ids, base_err *err);

/* --- record.c --- */
/* A new test is wanted that can be written from what its calls give: no value is asked for, and it was not tried too often. */
bool agent__may_record(const agent *a);
/*
 * The calls of the subject in answer[0, n), which holds a new test that did not do, are made in a copy of the tree; *ret_kept: a test that
 * expects what they gave is what is tried next (fix.kept).
 */
int agent__record_test(agent *a, const char *answer, size_t n, bool *ret_kept, base_err *err);

/* --- tries.c --- */
bool agent__tries_are_due(const agent *a); /* a test has failed, and candidates were not sampled yet */
uint32_t agent__tries(const agent *a);     /* how many candidates there are in the mode that holds */
/*
 * Where a test can judge and has failed: up to a->tries rewrites. *ret_ids: the tokens of the first whose
 * test passed, to be appended as the answer; empty when there was none or nothing to try. BASE_E_CANCELLED
 * like any other wait.
 */
int agent__try(agent *a, model_ids *ret_ids, base_err *err);

#endif
