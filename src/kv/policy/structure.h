/*
 * What program structure says about rows, for policies: the score of a span, and CodeComp's choice of a
 * chunk's rows (docs/kv.md, Structure; CodeComp, sections 4.2 to 4.5). Pure functions of numbers, tested
 * without a model. codecomp.c chooses whole budgets by them, evict/select.c names its reasons. What the
 * marks of a span mean in a language is src/code's to say (code/structure.h).
 */
#ifndef KVIST_KV_STRUCTURE_H
#define KVIST_KV_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kv_parameters;
struct kv_span;

/*
 * Order of a span among others, higher stays longer: protected ones (signatures, the request's symbols) above
 * all, cores above extents, then CodeComp's weighted sum. is_attended: its mean mass is above its chunk's
 * median.
 */
float kv_span_score(const struct kv_parameters *p, const struct kv_span *span, bool is_attended);
bool kv_span_is_protected(const struct kv_parameters *p, const struct kv_span *span);
/* What a person is told: its kind, or SYMBOL when that is what protects it. */
uint8_t kv_span_reason(const struct kv_parameters *p, const struct kv_span *span);

/*
 * Spans of a chunk, tokens [from, to) of its segment, where at most `gap` lines lie from the end of one to the
 * beginning of the next become one with all their marks but CORE, and each is grown to 16 tokens (CodeComp,
 * appendix A.1). In place, ascending; returns how many are left. lines: [n_lines] tokens at which a line begins.
 */
uint32_t kv_spans_merge(struct kv_span *spans, uint32_t n_spans, const uint32_t *lines, uint32_t n_lines,
    uint32_t gap, uint32_t from, uint32_t to);

/* A chunk's features: spans and edges that begin in it. */
typedef struct kv_chunk_counts {
    uint32_t n_tokens, n_calls, n_controls, n_returns, n_assigns, n_flow, n_dependence;
} kv_chunk_counts;
/* sigma of the paper's equation 5, counts per 512 tokens, in [0, 1]. */
double kv_chunk_score(const struct kv_parameters *p, const kv_chunk_counts *counts);
/*
 * Shares rows among n chunks of n_rows[i] rows: floor(n_rows[i] * min(1, r * m[i])), m from sigma (NAN: 1) by
 * equations 6 and 7, r so that they are `rows` together; what the floors leave goes to the first that have
 * room. budget: [n].
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
 * CodeComp's choice inside one chunk: protected spans, spans by score within their share of the budget, then
 * the rest by mass or by nearness. spans are sorted by it. chosen[i]: 1 when row i stays; why[i]: the reason
 * of the span that took it, else KV_NO_SPAN. mass and chosen, why: [n]. 0, or BASE_E_NOMEM.
 */
int kv_chunk_choose(const struct kv_parameters *p, kv_chunk_span *spans, uint32_t n_spans, const float *mass,
    uint32_t n, uint32_t budget, uint8_t *chosen, uint8_t *why);

/* The middle of n numbers (the lower one of two); scratch: [n], overwritten. NAN of none. Linear time. */
float kv_median(const float *x, uint32_t n, float *scratch);

#endif
