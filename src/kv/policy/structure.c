/* Scores and choices by program structure; see structure.h. */
#include "kv/policy/structure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kv/policy/policy.h"

enum {
    CHUNK_TOKENS = 512,   /* what `full` speaks of */
    LEAST_SPAN = 16,      /* ... and of tokens in a span that was merged (appendix A.1) */
    LEAST_SPAN_ROWS = 16, /* CodeComp, section 4.4: of a chunk's rows as many are for spans at least */
};

/* Far above any sum of weights, which stays below 8. */
static const float core_tier = 16, protected_tier = 32;

/* clang-format off */
static const struct { unsigned mark; size_t weight; } kinds[] = {
    {KV_MARK_CALL, offsetof(kv_parameters, call)},     {KV_MARK_CONTROL, offsetof(kv_parameters, control)},
    {KV_MARK_RETURN, offsetof(kv_parameters, ret)},    {KV_MARK_ASSIGN, offsetof(kv_parameters, assign)},
    {KV_MARK_DEFUSE, offsetof(kv_parameters, defuse)}, {KV_MARK_SYMBOL, offsetof(kv_parameters, query)},
};
/* clang-format on */

static double parameter(const kv_parameters *p, size_t offset)
{
    double value;
    memcpy(&value, (const char *)p + offset, sizeof value);
    return value;
}

bool kv_span_is_protected(const kv_parameters *p, const kv_span *span)
{
    if (p->protect <= 0) return false;
    return span->marks & KV_MARK_SIGNATURE || (span->marks & KV_MARK_SYMBOL && p->query > 0);
}

uint8_t kv_span_reason(const kv_parameters *p, const kv_span *span)
{
    const bool is_signature = span->marks & KV_MARK_SIGNATURE && span->reason == KV_REASON_SIGNATURE;
    return kv_span_is_protected(p, span) && !is_signature ? KV_REASON_SYMBOL : span->reason;
}

float kv_span_score(const kv_parameters *p, const kv_span *span, bool is_attended)
{
    double score = is_attended ? p->attention : 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (span->marks & kinds[i].mark) score += parameter(p, kinds[i].weight);
    if (span->marks & KV_MARK_CORE && p->cores > 0) score += core_tier;
    if (kv_span_is_protected(p, span)) score += protected_tier;
    return (float)score;
}

double kv_chunk_score(const kv_parameters *p, const kv_chunk_counts *c)
{
    /* full: as many in 512 tokens count in full, the 95th percentile of real code. Edges have no weight in the paper: .10 is ours. */
    const struct {
        uint32_t n;
        double weight, full;
    } features[] = {
        {c->n_calls, p->call, 24},
        {c->n_controls, p->control, 14},
        {c->n_returns, p->ret, 8},
        {c->n_assigns, p->assign, 20},
        {c->n_flow, .10, 60},
        {c->n_dependence, .10, 60},
    };
    double sum = 0, weights = 0;
    for (size_t i = 0; c->n_tokens && i < sizeof features / sizeof *features; i++) {
        const double x = (double)features[i].n * CHUNK_TOKENS / c->n_tokens;
        sum += features[i].weight * fmin(1, log1p(x) / log1p(features[i].full));
        weights += features[i].weight;
    }
    return weights > 0 ? sum / weights : 0;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The share's quantile of n sorted numbers, between neighbours. */
static double quantile(const double *sorted, uint32_t n, double share)
{
    const double at = share * (n - 1);
    const uint32_t low = (uint32_t)at, high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

/* m of equation 7 for each chunk, scaled by the 5th and 95th percentile: no outlier sets the scale. */
static void multipliers(const kv_parameters *p, const double *sigma, uint32_t n, double *m)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < n; i++)
        if (sigma[i] == sigma[i]) m[known++] = sigma[i];
    double low = 0, high = 0;
    if (known) {
        qsort(m, known, sizeof *m, compare_doubles);
        low = quantile(m, known, .05);
        high = quantile(m, known, .95);
    }
    for (uint32_t i = 0; i < n; i++) {
        double share = high > low ? (sigma[i] - low) / (high - low) : .5;
        if (!(sigma[i] == sigma[i])) share = .5;
        m[i] = 1 - p->alloc + 2 * p->alloc * fmin(1, fmax(0, share));
    }
}

static uint64_t budgets_of(double r, const double *m, const uint32_t *n_rows, uint32_t n, uint32_t *budget)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        budget[i] = (uint32_t)floor(n_rows[i] * fmin(1, r * m[i]));
        sum += budget[i];
    }
    return sum;
}

void kv_chunk_budgets(const kv_parameters *p, const double *sigma, const uint32_t *n_rows, uint32_t n,
    uint32_t rows, uint32_t *budget)
{
    double *m = malloc(((size_t)n + 1) * sizeof *m);
    for (uint32_t i = 0; i < n; i++) budget[i] = 0;
    if (!m) return;
    multipliers(p, sigma, n, m);
    /* The sum grows with r, and at `most` every chunk is whole. */
    double least = 0, most = 1 / (1 - p->alloc);
    for (int i = 0; i < 50; i++) {
        const double r = (least + most) / 2;
        if (budgets_of(r, m, n_rows, n, budget) <= rows)
            least = r;
        else
            most = r;
    }
    uint64_t sum = budgets_of(least, m, n_rows, n, budget);
    for (bool more = true; more && sum < rows;) {
        more = false;
        for (uint32_t i = 0; i < n && sum < rows; i++)
            if (budget[i] < n_rows[i]) {
                budget[i]++;
                sum++;
                more = true;
            }
    }
    free(m);
}

/* Which line a token is on, from 1; without lines all are on one. */
static uint32_t line_of(const uint32_t *lines, uint32_t n_lines, uint32_t token)
{
    uint32_t low = 0, high = n_lines;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (lines[middle] <= token)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int compare_places(const void *a, const void *b)
{
    const kv_span *x = a, *y = b;
    return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : (x->to > y->to) - (x->to < y->to);
}

uint32_t kv_spans_merge(kv_span *spans, uint32_t n_spans, const uint32_t *lines, uint32_t n_lines,
    uint32_t gap, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    if (n_spans) qsort(spans, n_spans, sizeof *spans, compare_places);
    for (uint32_t i = 0; i < n_spans; i++) {
        kv_span next = spans[i], *last = n ? &spans[n - 1] : NULL;
        next.marks = (uint16_t)(next.marks & ~KV_MARK_CORE); /* a core lies within and says nothing more */
        if (last && line_of(lines, n_lines, next.from) <= line_of(lines, n_lines, last->to - 1) + gap) {
            last->marks |= next.marks;
            if (next.to > last->to) last->to = next.to;
        } else {
            spans[n++] = next;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        kv_span *s = &spans[i];
        const uint32_t lacks = s->to - s->from < LEAST_SPAN ? LEAST_SPAN - (s->to - s->from) : 0;
        s->from = s->from > from + lacks / 2 ? s->from - lacks / 2 : from;
        s->to = to > s->to + lacks - lacks / 2 ? s->to + lacks - lacks / 2 : to;
    }
    return n;
}

static int compare_spans(const void *a, const void *b)
{
    const kv_chunk_span *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static uint32_t take(const kv_chunk_span *span, uint8_t *chosen, uint8_t *why)
{
    uint32_t n = 0;
    for (uint32_t i = span->from; i < span->to; i++)
        if (!chosen[i]) {
            chosen[i] = 1;
            why[i] = span->reason;
            n++;
        }
    return n;
}

/* Rows of spans; may exceed the budget by what is protected. */
static uint32_t choose_spans(const kv_chunk_span *spans, uint32_t n_spans, uint32_t budget, uint32_t share,
    uint8_t *chosen, uint8_t *why)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_spans; i++)
        if (spans[i].is_protected) n += take(&spans[i], chosen, why);
    for (uint32_t i = 0; i < n_spans && n < share && n < budget; i++) {
        uint32_t wants = 0;
        for (uint32_t k = spans[i].from; k < spans[i].to; k++) wants += !chosen[k];
        if (wants && n + wants <= share) n += take(&spans[i], chosen, why);
    }
    return n;
}

/* Distance of each row to the nearest chosen one; n of none. */
static void distances(const uint8_t *chosen, uint32_t n, uint32_t *distance)
{
    uint32_t last = n;
    for (uint32_t i = 0; i < n; i++) {
        last = chosen[i] ? 0 : last < n ? last + 1 : n;
        distance[i] = last;
    }
    last = n;
    for (uint32_t i = n; i-- > 0;) {
        last = chosen[i] ? 0 : last < n ? last + 1 : n;
        if (last < distance[i]) distance[i] = last;
    }
}

int kv_chunk_choose(const kv_parameters *p, kv_chunk_span *spans, uint32_t n_spans, const float *mass,
    uint32_t n, uint32_t budget, uint8_t *chosen, uint8_t *why)
{
    memset(chosen, 0, n);
    memset(why, KV_NO_SPAN, n);
    if (budget > n) budget = n;
    uint32_t taken = 0;
    if (p->span > 0) {
        const double wanted = fmax(LEAST_SPAN_ROWS, floor(p->span * budget));
        qsort(spans, n_spans, sizeof *spans, compare_spans);
        taken = choose_spans(spans, n_spans, budget, (uint32_t)fmin(budget, wanted), chosen, why);
    }
    for (uint32_t i = n; i-- > 0 && taken > budget;)
        if (chosen[i]) {
            chosen[i] = 0;
            why[i] = KV_NO_SPAN;
            taken--;
        }
    if (taken == budget) return 0;
    kv_ranker ranker = {0};
    uint32_t *order = malloc(((size_t)n + 1) * sizeof *order);
    float *score = malloc(((size_t)n + 1) * sizeof *score);
    int rc = order && score ? kv_ranker_reserve(&ranker, n) : BASE_E_NOMEM;
    if (!rc) {
        const bool is_nearest = p->fill > 0 && taken;
        if (is_nearest) distances(chosen, n, order);
        for (uint32_t i = 0; i < n; i++) score[i] = is_nearest ? -(float)order[i] : mass[i];
        kv_rank(&ranker, score, NULL, n, order);
        for (uint32_t i = 0; i < n && taken < budget; i++)
            if (!chosen[order[i]]) {
                chosen[order[i]] = 1;
                taken++;
            }
    }
    kv_ranker_free(&ranker);
    free(order);
    free(score);
    return rc;
}

float kv_median(const float *x, uint32_t n, float *scratch)
{
    if (!n) return NAN;
    memcpy(scratch, x, n * sizeof *x);
    const uint32_t middle = (n - 1) / 2;
    for (uint32_t low = 0, high = n - 1; low < high;) { /* Hoare's selection */
        const float pivot = scratch[low + (high - low) / 2];
        uint32_t i = low, j = high;
        while (i <= j) {
            while (scratch[i] < pivot) i++;
            while (scratch[j] > pivot) j--;
            if (i > j) break;
            const float swap = scratch[i];
            scratch[i++] = scratch[j];
            scratch[j] = swap;
            if (!j) break;
            j--;
        }
        if (middle <= j && j < high)
            high = j;
        else if (middle >= i)
            low = i;
        else
            break;
    }
    return scratch[middle];
}
