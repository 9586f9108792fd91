/*
 * An endpoint: which engine answers there, which model it serves, its context, its vocabulary as far as it
 * was seen, and how its template writes messages. One thread.
 */
#ifndef KVIST_REMOTE_ENDPOINT_H
#define KVIST_REMOTE_ENDPOINT_H

#include "remote/events.h"
#include "remote/form.h"
#include "remote/http.h"
#include "remote/sse.h"
#include "remote/vocab.h"

typedef struct remote_endpoint {
    remote_http *http;
    const remote_wire *wire;
    char *kind;              /* "llama-server", "vLLM 0.32.0", "SGLang", "chat endpoint" */
    char *model;             /* as it wants to be called */
    char *format;            /* what its weights are kept in; NULL: not told */
    char *build;             /* of llama-server; NULL: not told */
    uint32_t n_ctx, n_train; /* 0: not told */
    uint32_t block;          /* tokens that its cache keeps or drops together */
    uint32_t n_slots;        /* requests that it works on at once; 0: not told */
    bool hides_slots;        /* llama-server with --no-slots: it was asked for them in vain */
    uint64_t n_params;       /* 0: not told */
    remote_events *events;   /* what it publishes of its cache; NULL: nobody said where */
    char *why_chat; /* why it is asked through chat although it takes ids; NULL: it is not, or cannot */
    /* With ids: */
    remote_vocab *vocab;
    uint32_t n_alike; /* tokens that were the same in the local vocabulary; 0: none was given */
    model_ids start, begin[REMOTE_N_ROLES], end[REMOTE_N_ROLES];
    model_tool_style tools;
    /* where its template writes a history in another way than message by message; NULL: nowhere */
    char *differs;
} remote_endpoint;

typedef struct remote_endpoint_options {
    remote_http_options http;
    const char *model;  /* NULL: the one that it serves */
    const char *events; /* where it publishes what its cache holds (remote/events.h); NULL: not told */
    /* a GGUF file whose tokenizer it has to have (remote/vocab_compare.h); NULL: none is here */
    const char *vocabulary;
    bool thinking; /* answers may begin with a thought, where its template has a switch for that */
} remote_endpoint_options;

/*
 * Asks what is there. Several models and none named is BASE_E_USAGE with their names. Where an engine takes ids
 * but its template cannot be taken apart into messages, or its ids are not those of options->vocabulary, it is asked
 * through chat.
 */
int remote_endpoint_open(remote_endpoint **ret, const remote_endpoint_options *options, base_err *err);
/* After a connection was lost: does it still serve this model? An error: it does not answer. */
int remote_endpoint_check(remote_endpoint *e, bool *ret_same, base_err *err);
/* llama-server, by its slots: did it answer nobody since it was started? Then its cache is empty. false: it did, or does not tell. */
bool remote_endpoint_is_fresh(remote_endpoint *e);
void remote_endpoint_close(remote_endpoint *e); /* with its connection and vocabulary; NULL is fine */
/* The model, for a person: llama-server that was started with a path calls it by that path. */
const char *remote_endpoint_name(const remote_endpoint *e);
/* "llama-server at http://127.0.0.1:8080 serves MODEL, 8192 tokens, by token ids": one line. */
void remote_endpoint_describe(const remote_endpoint *e, base_buf *out);

/* A request was refused, and the reason is its grammar: without one it may do. status 0: told in the stream. */
bool remote_endpoint_blames_grammar(long status, const base_err *why);
/* A request was refused: where the reason is its length, *why becomes BASE_E_LIMIT and says what helps. Returns its code. */
int remote_endpoint_explain_length(long status, base_err *why);
/* n more tokens do not fit into n_ctx: says what helps. is_fixed: they are of what stands in front of every session. BASE_E_LIMIT. */
int remote_endpoint_fail_full(bool is_fixed, uint32_t n, uint32_t n_ctx, base_err *err);

/*
 * Some engines tell what an answer cost behind its last piece: reads on, for patience_ms at most, however the
 * bytes are cut, until *is_done, which fn sets, or the stream's end. What fails there costs the number alone.
 */
enum {
    REMOTE_USAGE_MS = 5000,    /* behind an answer's end */
    REMOTE_USAGE_CUT_MS = 1000 /* behind a place where nobody wants more of it: the model may write on */
};
void remote_endpoint_read_usage(remote_endpoint *endpoint, remote_sse *sse, uint32_t patience_ms,
    remote_sse_fn *fn, void *user, const bool *is_done);

#endif
