/*
 * How likely an engine's model finds a text that it did not write: one request, in whose answer each token is
 * compared with what the model would have said best instead.
 *
 * llama-server tells probabilities only of what it writes, so it is held to the text by a grammar of its tokens: as
 * long as writing it, and what stands in front comes from its cache. vLLM and SGLang tell them of a prompt: as long
 * as reading it, vLLM without its cache.
 */
#ifndef KVIST_REMOTE_SCORE_H
#define KVIST_REMOTE_SCORE_H

#include "remote/endpoint.h"

typedef struct remote_scored {
    int64_t cached, computed; /* of the prompt's tokens; -1: not told */
} remote_scored;

/* How many of a request's tokens are its prompt, and how many of these its cache may find. */
uint32_t remote_score_prompt(
    const remote_wire *wire, uint32_t n_read, uint32_t n_ids, uint32_t *ret_most_found);
/*
 * Of r's ids those from n_read on ([r->n_ids - n_read] ret). BASE_E_UNSUPPORTED: this engine does not tell them; other
 * errors are this request's.
 */
int remote_score_ask(remote_endpoint *e, const remote_request *r, uint32_t n_read, remote_score *ret,
    remote_scored *ret_cost, base_err *err);

#endif
