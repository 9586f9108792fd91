/*
 * What is said to an engine of each kind and how its answers are read: one row a kind. Rows hold no state;
 * texts that a piece points to live as long as the document that it was read from.
 */
#ifndef KVIST_REMOTE_WIRE_H
#define KVIST_REMOTE_WIRE_H

#include "base/json.h"
#include "model/text/sampler.h"
#include "model/text/template.h"

typedef struct remote_message {
    model_role role;
    const char *text;
    size_t n;
} remote_message;

/* What the next answer is asked with: ids, or messages where an engine has nothing else. */
typedef struct remote_request {
    const char *model;
    const int32_t *ids;
    uint32_t n_ids;
    const remote_message *messages;
    uint32_t n_messages;
    uint32_t max_tokens;
    model_sampling sampling;
    const char *grammar; /* GBNF (remote/gbnf.h), of the kind that the engine takes; NULL: none */
    const char *const
        *triggers; /* patterns, NULL-terminated, from which on it holds; NULL: from the first byte on */
    /* a JSON Schema that the whole answer has to fit, where there is no grammar; NULL: none */
    const char *schema;
    uint32_t reuse; /* stretches of at least this many tokens may be moved behind a cut; 0: none */
} remote_request;

/* Which grammar an engine takes: none, one that sleeps until a trigger stands in the answer, one of all of the answer. */
typedef enum remote_grammar { REMOTE_GRAMMAR_NONE, REMOTE_GRAMMAR_LAZY, REMOTE_GRAMMAR_WHOLE } remote_grammar;

typedef enum remote_end { REMOTE_GOES_ON, REMOTE_ENDED, REMOTE_AT_LIMIT } remote_end;

/* How an engine tells how likely its model finds a text that stands already. */
typedef enum remote_scoring {
    REMOTE_SCORES_NONE,
    REMOTE_SCORES_WRITTEN,   /* of what it writes: it has to write that text, token by token */
    REMOTE_SCORES_READ,      /* of what it reads, from any token on */
    REMOTE_SCORES_READ_ANEW, /* of all that it reads, and its cache finds nothing of that */
} remote_scoring;

/* Of one token of it: what the model would have said best instead, and how far that lies behind (nats; negative: ahead). */
typedef struct remote_score {
    int32_t instead;
    float behind;
} remote_score;

/* A part of a tool call that a chat endpoint makes in its own form; a name begins another one. */
typedef struct remote_call_part {
    int64_t index; /* of several calls of one answer, whose parts may come by turns */
    base_str name, text;
} remote_call_part;

enum { REMOTE_MOST_IDS = 256, REMOTE_MOST_CALLS = 16 }; /* of one piece */

/* What one event of a stream says. Numbers that are not told are -1. */
typedef struct remote_piece {
    base_str text, thought; /* may be empty */
    remote_call_part calls[REMOTE_MOST_CALLS];
    uint32_t n_calls;
    int32_t ids[REMOTE_MOST_IDS];
    uint32_t n_ids;
    int64_t so_far; /* ids that the engine has written by now, these counted */
    bool is_whole;  /* text and ids are the answer from its beginning, of its ids the last ones */
    remote_end end;
    bool is_truncated;              /* the engine left a part of the sequence out, for lack of room */
    int64_t sent, cached, computed; /* of the prompt's tokens */
    int64_t done, total;            /* while it computes the prompt */
    const char *model;              /* NULL: not told */
} remote_piece;

typedef struct remote_wire remote_wire;
struct remote_wire {
    const char *name;     /* "llama-server" */
    const char *complete; /* the path of a request */
    bool has_ids;         /* it takes ids and gives ids */
    remote_grammar grammar;
    uint32_t block; /* tokens that its cache keeps or drops together, where nothing else is told */
    void (*put_request)(const remote_request *r, base_buf *out);
    /* One event's JSON. An event that is an error is BASE_E_IO or, where the context is full, BASE_E_LIMIT. */
    int (*read)(const base_json *root, remote_piece *ret, base_err *err);
    /*
     * A request whose answer scores r's ids from n_read on, in one piece, and what it says: [r->n_ids - n_read] ret.
     * BASE_E_UNSUPPORTED: it does not say it.
     */
    remote_scoring scoring;
    void (*put_score)(const remote_request *r, uint32_t n_read, base_buf *out);
    int (*read_score)(
        const base_json *root, const int32_t *ids, uint32_t n, remote_score *ret, base_err *err);
    /* Bodies of the tokenizer's requests, and what comes back; NULL where has_ids is false. */
    const char *tokenize, *detokenize;
    void (*put_tokenize)(const char *model, const char *text, size_t n, bool special, base_buf *out);
    void (*put_detokenize)(const char *model, const int32_t *ids, uint32_t n, base_buf *out);
    const char *detokenized; /* the member that holds the text */
    bool reads_special;      /* the tokenizer makes control tokens of special texts wherever they stand */
    bool tells_no_pieces;    /* ... and does not say which bytes are whose */
    /*
     * A list of messages as the engine's template writes it; open: with what begins an answer. Either the text
     * (rendered names its member), or ids (rendered NULL).
     */
    const char *render;
    void (*put_render)(
        const char *model, const remote_message *m, uint32_t n, bool open, bool thinking, base_buf *out);
    const char *rendered;
    bool renders_open; /* always with what begins an answer */
    /* how it is asked where its template cannot be taken apart; NULL: as any chat endpoint */
    const remote_wire *by_chat;
};

extern const remote_wire remote_wire_llama, remote_wire_vllm, remote_wire_sglang, remote_wire_sglang_chat,
    remote_wire_chat;

void remote_wire_put_ids(const int32_t *ids, uint32_t n, base_buf *out); /* "[1,2]" */

#endif
