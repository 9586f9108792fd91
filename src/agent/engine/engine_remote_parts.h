/*
 * The parts of the engine across HTTP that takes token ids (engine_remote.c): the sequence, what the engine's cache holds of
 * it, and an answer that is being streamed. Engine thread only.
 */
#ifndef KVIST_AGENT_ENGINE_ENGINE_REMOTE_PARTS_H
#define KVIST_AGENT_ENGINE_ENGINE_REMOTE_PARTS_H

#include "agent/engine/engine.h"
#include "remote/endpoint.h"
#include "remote/gbnf_rest.h"
#include "remote/held.h"
#include "remote/reuse.h"

/* --- engine_remote_sequence.c --- */
/*
 * The session's tokens. Spans of them may be left out of what is sent (ENGINE_SPANS): indices are those of the
 * sequence, and what is sent is what is left of it, in its order.
 */
typedef struct remote_sequence {
    model_ids ids, trunk; /* trunk: the sequence while a branch of it is in place */
    bool is_branch;
    bool *out; /* [ids.n] left out of what is sent */
    size_t cap_out;
    uint32_t n_out;
} remote_sequence;

uint32_t remote_sequence_n_active(const remote_sequence *s);
void remote_sequence_add(remote_sequence *s, int32_t id);
void remote_sequence_cut_back(remote_sequence *s, size_t n);
void remote_sequence_set_active(remote_sequence *s, uint32_t from, uint32_t to, bool active);
/* What a request sends; left_out: beside what is out already, NULL: nothing. */
void remote_sequence_put_active(const remote_sequence *s, const bool *left_out, model_ids *ret);
void remote_sequence_fork(remote_sequence *s);
void remote_sequence_unfork(remote_sequence *s); /* nothing where there is no branch */
void remote_sequence_free(remote_sequence *s);

/* Does this llama-server move what stands behind a cut? */
typedef enum remote_moving { MOVES_UNKNOWN, MOVES, MOVES_NOT } remote_moving;

enum { REMOTE_MOST_REPORTS = 16 };

/* What its cache holds, and what requests cost. */
typedef struct remote_cost {
    remote_held held;
    remote_moving moves;
    bool has_probed;                     /* asked, whatever came of it, or known from a session before */
    char *folder;                        /* where that is kept; NULL: nowhere */
    uint32_t found_moved, found_unmoved; /* by the newest request, where a cut stands in it */
    uint64_t n_computed;
    bool is_silent;  /* what it publishes of a request did not come: nothing is waited for */
    uint8_t *places; /* engine_request.places */
    size_t cap_places;
    engine_request reports[REMOTE_MOST_REPORTS]; /* that nobody took yet, the oldest first */
    uint32_t n_reports;
} remote_cost;

/* The answer that is being streamed. */
typedef struct remote_stream {
    model_ids sent; /* by the newest request */
    bool is_open, has_ended;
    bool is_cut;         /* it stopped at our limit of tokens and goes on */
    bool is_done;        /* nothing comes behind it */
    bool tells_no_cache; /* an answer came to its very end without that number */
    remote_sse sse;
    model_ids came;      /* its tokens */
    size_t taken;        /* of them in the sequence */
    int64_t n_told;      /* tokens that the engine says it wrote */
    size_t n_text;       /* bytes of it, where each event tells it from its beginning */
    int64_t n_prefilled; /* of the prompt, as it says */
    model_ids withheld;  /* their text was not told yet */
    base_buf late;       /* text whose ids are not told apart yet */
    bool is_truncated;   /* the engine left a part of the sequence out of this request */
    bool told_truncated;
    uint32_t breaks;
    uint64_t begun_ns, closed_ns; /* closed: the newest; 0: there was none */
} remote_stream;

typedef struct remote {
    engine base;
    remote_endpoint *endpoint;
    const atomic_bool *cancel;
    model_sampling sampling;
    char *hash;
    char **notices; /* all of them: the newest is told, and the one before may still be held */
    size_t n_notices, cap_notices;
    uint32_t n_ctx, max_answer, budget;
    bool is_model_unsure; /* it may serve another one now: it is asked in front of the next request */

    base_buf grammar;        /* rules of calls */
    remote_gbnf_tools tools; /* that they are of */
    engine_hold *hold;       /* this answer's; NULL: it is free */
    bool is_grammar_refused; /* by the endpoint, for good */
    bool is_grammar_off;     /* for this answer: it goes on inside of a call */
    uint32_t answer_from;

    remote_sequence seq;
    remote_cost cost;
    remote_stream stream;
} remote;

static inline remote *remote_of(const engine *e)
{
    return (remote *)(uintptr_t)e;
}

/* --- engine_remote_cost.c --- */
void remote__notice(remote *r, const char *text);
/* n_cache_reuse of a request; 0: none. Only of one with a cut: elsewhere nothing is to be taken out of another's context. */
uint32_t remote__reuse(const remote *r, bool has_cut);
/*
 * Once a server, in front of the first request: whether a cut costs anything is known before one is chosen. Where that fails,
 * the first request behind a cut tells.
 */
void remote__probe_moving(remote *r);
/*
 * A request with stream.sent begins, of which the engine looks for `most` tokens at most; its numbers come into the newest
 * report, NULL: there is none.
 */
void remote__report_begins(remote *r, uint32_t most);
void remote__report_failed(remote *r);
engine_request *remote__report(remote *r);
/* It is over, and stream.came is what came. */
void remote__report_ends(remote *r);
uint32_t remote__to_compute(
    const engine *e, const bool *left_out, bool *ret_at_most); /* engine_ops.to_compute */
bool remote__take_request(engine *e, engine_request *ret);     /* engine_ops.take_request */

/* --- engine_remote_doubts.c --- */
int remote__doubts(engine *e, const int32_t *ids, uint32_t n_read, uint32_t n, engine_doubt *ret,
    base_err *err); /* engine_ops.doubts */

/* --- engine_remote_stream.c --- */
/* engine_ops.next: of the stream that is open, or of a new one. */
int remote__next(engine *e, kv_origin origin, uint32_t turn, int32_t *ret_id, bool *ret_end,
    int32_t *mask_wanted, base_err *err);
/* Reads what vLLM found in its cache: it stands behind the answer, and nowhere before. */
void remote__read_usage(remote *r, uint32_t patience_ms);
void remote__close_stream(remote *r); /* it is over, or of no use any more */

#endif
