/*
 * Which spans of a conversation leave what is sent, where that has a price: an engine's cache holds a prefix, so
 * behind the first cut it computes again what it cannot move (docs/remote.md, "A budget in spans"). Pure: the price
 * is asked of whoever knows the cache.
 */
#ifndef KVIST_AGENT_CUT_H
#define KVIST_AGENT_CUT_H

#include <stdbool.h>
#include <stdint.h>

/* Tokens [from, to) may leave together. Units may lie in each other: of two such the inner one has the smaller value. */
typedef struct agent_cut_unit {
    uint32_t from, to;
    double value; /* the chance that its text is asked for again, from 0 to 1 */
} agent_cut_unit;

typedef struct agent_cut_question {
    const agent_cut_unit *units; /* ascending by from */
    uint32_t n_units;
    const bool *active; /* [n_tokens] is sent now */
    uint32_t n_tokens;
    uint32_t need; /* tokens that have to leave, as far as the units allow it */
    double turns;  /* that are expected to come */
    /* What the next request computes without these tokens ([n_tokens]); *at_most: or less. */
    uint32_t (*to_compute)(void *user, const bool *left_out, bool *at_most);
    void *user;
} agent_cut_question;

typedef struct agent_cut {
    bool *out;             /* [n_tokens] on the heap: leaves */
    uint32_t freed, again; /* tokens that leave; tokens that are computed again for it, the price */
    bool at_most;          /* the price may be less */
    double worth;          /* in tokens computed */
} agent_cut;

/*
 * Of all first places of a cut, and for each by the smallest values or by what stands next to it: the set of the
 * largest worth that frees enough. worth = turns * freed / 10 - again - sum of value * tokens: a token that is found in
 * a cache costs about a tenth of one that is computed (what engines that are paid by tokens ask), and what is asked
 * for again has to be computed again.
 */
void agent_cut_choose(const agent_cut_question *q, agent_cut *ret);

/*
 * Is this cut offered? It has to free enough for what it costs; the further the n_active tokens of a request are above the
 * budget the more it may cost (the table in cut.c), and where the context (n_ctx) ends soon any cut is.
 */
bool agent_cut_is_offered(const agent_cut *c, uint32_t n_active, uint32_t budget, uint32_t n_ctx);

#endif
