/*
 * What program structure says about rows, for policies: parameters, the score of a span, and CodeComp's choice of a chunk's rows
 * (seed 000; kv.md section 5). Pure functions of numbers, tested without a model. policy_codecomp.c chooses whole budgets by them,
 * select.c orders soft protection. What the marks of a span mean in a language is src/code's to say (code/structure.h).
 */
#ifndef KVIST_KV_STRUCTURE_H
#define KVIST_KV_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/*
 * X(field, "name", least, most, words, about). The paper gives span, least_span, alloc and the weights of spans; the weights of chunks
 * are the same ones, tau are 95th percentiles of real code in 512 tokens.
 */
#define KV_STRUCTURE_PARAMETERS(X) \
    X(span, "span", 0, 1, NULL, "codecomp: share of a chunk's rows for spans; 0: attention alone chooses") \
    X(least_span, "least_span", 0, 4096, NULL, "codecomp: rows for spans at least") \
    X(protect, "protect", 0, 1, NULL, "signatures and symbols that the request names go before other spans") \
    X(cores, "cores", 0, 1, NULL, "the essential part of a span (callee, left side) goes before its extent") \
    X(alloc, "alloc", 0, .95, NULL, "codecomp: a chunk's share is r * (1 - alloc .. 1 + alloc) by its structure") \
    X(fill, "fill", 0, 1, "attention nearest", "codecomp: the rest of a chunk goes by mass, or to what is next to its spans") \
    X(local, "local", 0, 1, NULL, "codecomp: excerpts are computed each by itself, at overlapping phases") \
    X(call, "call", 0, 1, NULL, "weight of a call") \
    X(control, "control", 0, 1, NULL, "weight of the predicate of an if, a loop, a switch") \
    X(query, "query", 0, 1, NULL, "weight of a symbol that the request names") \
    X(ret, "return", 0, 1, NULL, "weight of a return") \
    X(assign, "assign", 0, 1, NULL, "weight of an assignment") \
    X(defuse, "defuse", 0, 1, NULL, "weight of an end of a def-use pair") \
    X(attention, "attention", 0, 1, NULL, "weight of a mean mass above the chunk's median") \
    X(flow, "flow", 0, 1, NULL, "weight of control-flow edges, chunks only") \
    X(dependence, "dependence", 0, 1, NULL, "weight of def-use pairs, chunks only") \
    X(tau_call, "tau_call", 1, 1000, NULL, "as many calls in 512 tokens count in full") \
    X(tau_control, "tau_control", 1, 1000, NULL, "predicates") \
    X(tau_return, "tau_return", 1, 1000, NULL, "returns") \
    X(tau_assign, "tau_assign", 1, 1000, NULL, "assignments") \
    X(tau_flow, "tau_flow", 1, 1000, NULL, "control-flow edges") \
    X(tau_dependence, "tau_dependence", 1, 1000, NULL, "def-use pairs")
/* In a row of the table of policies. */
#define KV_STRUCTURE_DEFAULTS \
    .span = .5, .least_span = 16, .protect = 1, .cores = 1, .alloc = .5, .call = .20, .control = .18, .query = .18, .ret = .14, \
    .assign = .14, .defuse = .10, .attention = .06, .flow = .10, .dependence = .10, .tau_call = 24, .tau_control = 14, \
    .tau_return = 8, .tau_assign = 20, .tau_flow = 60, .tau_dependence = 60
/* clang-format on */

struct kv_parameters;
struct kv_span;

/*
 * Order of a span among others, higher stays longer: protected ones (signatures, the request's symbols) above all, cores above
 * extents, then CodeComp's weighted sum. is_attended: its mean mass is above its chunk's median.
 */
float kv_span_score(const struct kv_parameters *p, const struct kv_span *span, bool is_attended);
bool kv_span_is_protected(const struct kv_parameters *p, const struct kv_span *span);
/* What a person is told: its kind, or SYMBOL when that is what protects it. */
uint8_t kv_span_reason(const struct kv_parameters *p, const struct kv_span *span);

/* A chunk's features: spans and edges that begin in it. */
typedef struct kv_chunk_counts {
    uint32_t n_tokens, n_calls, n_controls, n_returns, n_assigns, n_flow, n_dependence;
} kv_chunk_counts;
/* sigma of the paper's equation 5, counts per 512 tokens, in [0, 1]. */
double kv_chunk_score(const struct kv_parameters *p, const kv_chunk_counts *counts);
/*
 * Shares rows among n chunks of n_rows[i] rows: floor(n_rows[i] * min(1, r * m[i])), m from sigma (NAN: 1) by equations 6 and 7,
 * r so that they are `rows` together; what the floors leave goes to the first that have room. budget: [n].
 */
void kv_chunk_budgets(const struct kv_parameters *p, const double *sigma, const uint32_t *n_rows, uint32_t n,
    uint32_t rows, uint32_t *budget);

/* A span of a chunk, in ordinals of the chunk's own rows. */
typedef struct kv_chunk_span {
    uint32_t from, to;
    float score;
    bool is_protected;
    uint8_t reason;
} kv_chunk_span;
enum { KV_NO_SPAN = 255 };
/*
 * CodeComp's choice inside one chunk: protected spans, spans by score within their share of the budget, then the rest by mass or
 * by nearness. spans are sorted by it. chosen[i]: 1 when row i stays; why[i]: the reason of the span that took it, else
 * KV_NO_SPAN. mass and chosen, why: [n]. 0, or BASE_E_NOMEM.
 */
int kv_chunk_choose(const struct kv_parameters *p, kv_chunk_span *spans, uint32_t n_spans, const float *mass,
    uint32_t n, uint32_t budget, uint8_t *chosen, uint8_t *why);

/* The middle of n numbers (the lower one of two); scratch: [n], overwritten. NAN of none. Linear time. */
float kv_median(const float *x, uint32_t n, float *scratch);

#endif
