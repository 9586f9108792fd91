/*
 * Picks one id from logits: penalty, mask, then either the best one or one draw from the truncated
 * distribution.
 *
 * Nothing here depends on threads, on the library's random numbers or on a sort's order among equals:
 * candidates are ordered by (logit, lower id), sums run in one order in double, and the generator is our own
 * (M. O'Neill, "PCG", 2014, XSH-RR 64/32), so a seed gives one text everywhere. NaN counts as not allowed.
 */
#include "model/text/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct candidate {
    float logit;
    int32_t id;
    double p;
} candidate;

struct model_sampler {
    model_sampling options;
    uint32_t n_vocab;
    uint64_t state;
    candidate *candidates; /* [n_vocab] */
    uint8_t *penalised;    /* [n_vocab], all 0 between calls */
};

enum { PCG_INCREMENT = 1 }; /* the stream; any odd number */

static uint32_t draw_bits(model_sampler *s)
{
    uint64_t old = s->state;
    s->state = old * 6364136223846793005u + PCG_INCREMENT;
    uint32_t x = (uint32_t)(((old >> 18) ^ old) >> 27), rot = (uint32_t)(old >> 59);
    return x >> rot | x << (-rot & 31);
}

/* In [0, 1), with 53 bits. */
static double draw(model_sampler *s)
{
    uint64_t high = draw_bits(s), low = draw_bits(s);
    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

void model_sampler_reset(model_sampler *s, uint64_t seed)
{
    s->state = 0;
    draw_bits(s);
    s->state += seed;
    draw_bits(s);
}

model_sampler *model_sampler_new(const model_sampling *options, uint32_t n_vocab)
{
    model_sampler *s = base_xcalloc(1, sizeof *s);
    s->options = *options;
    s->n_vocab = n_vocab;
    s->candidates = base_xcalloc(n_vocab ? n_vocab : 1, sizeof *s->candidates);
    s->penalised = base_xcalloc(n_vocab ? n_vocab : 1, 1);
    model_sampler_reset(s, options->seed);
    return s;
}

void model_sampler_free(model_sampler *s)
{
    if (!s) return;
    free(s->candidates);
    free(s->penalised);
    free(s);
}

/* ---- candidates ---- */

static bool better(const candidate *a, const candidate *b)
{
    return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

/* Best first, by Shell's sort: in place, where the library's qsort may allocate. */
static void sort_best(candidate *c, size_t n)
{
    size_t gap = 1;
    while (gap < n / 3) gap = 3 * gap + 1;
    for (; gap; gap /= 3)
        for (size_t i = gap; i < n; i++) {
            candidate moved = c[i];
            size_t to = i;
            for (; to >= gap && better(&moved, &c[to - gap]); to -= gap) c[to] = c[to - gap];
            c[to] = moved;
        }
}

static bool is_allowed(const uint64_t *allowed, uint32_t id)
{
    return !allowed || (allowed[id / 64] >> (id % 64) & 1);
}

/* The penalty divides what is positive and multiplies what is negative (Keskar et al., CTRL, section 4.1). */
static float penalise(const model_sampler *s, float logit, uint32_t id)
{
    if (!s->penalised[id]) return logit;
    return logit > 0 ? logit / s->options.repeat_penalty : logit * s->options.repeat_penalty;
}

static void mark_recent(model_sampler *s, const int32_t *recent, size_t n, bool on)
{
    if (s->options.repeat_penalty == 1 || !(s->options.repeat_penalty > 0)) return;
    size_t last = s->options.repeat_last > 0 ? (size_t)s->options.repeat_last : 0;
    for (size_t i = n > last ? n - last : 0; i < n; i++)
        if (recent[i] >= 0 && (uint32_t)recent[i] < s->n_vocab) s->penalised[recent[i]] = on;
}

static size_t collect(model_sampler *s, const float *logits, const uint64_t *allowed)
{
    size_t n = 0;
    for (uint32_t id = 0; id < s->n_vocab; id++)
        if (!isnan(logits[id]) && is_allowed(allowed, id))
            s->candidates[n++] = (candidate){penalise(s, logits[id], id), (int32_t)id, 0};
    return n;
}

/* Moves the k best to the front (quickselect, the lower middle as pivot); their order is not yet defined. */
static void select_best(candidate *c, size_t n, size_t k)
{
    for (size_t from = 0, to = n; to - from > 1 && k > from && k < to;) {
        candidate pivot = c[from + (to - from - 1) / 2];
        size_t i = from, j = to - 1;
        for (;;) {
            while (better(&c[i], &pivot)) i++;
            while (better(&pivot, &c[j])) j--;
            if (i >= j) break;
            candidate swap = c[i];
            c[i++] = c[j];
            c[j--] = swap;
        }
        /* [from, j] is not worse than (j, to) */
        if (k <= j + 1)
            to = j + 1;
        else
            from = j + 1;
    }
}

/* ---- truncation ---- */

/*
 * How many of the k sorted candidates top-p and min-p keep, at least one. `total` is the sum of exp over all.
 */
static size_t count_kept(const model_sampling *o, candidate *c, size_t k, double total)
{
    double mass = 0;
    size_t kept = 0;
    for (; kept < k; kept++) {
        double p = c[kept].logit == c[0].logit ? 1 : exp((double)c[kept].logit - c[0].logit);
        if (kept && o->top_p < 1 && mass >= (double)o->top_p * total) break;
        if (kept && p < (double)o->min_p) break; /* the best has 1 */
        mass += p;
    }
    return kept;
}

/*
 * Leaves the candidates that top-k, then top-p, then min-p allow. The last two are measured at temperature 1
 * over what top-k left, as in llama.cpp's default order. Only as many are sorted as the limits need.
 */
static size_t apply_limits(model_sampler *s, size_t n)
{
    const model_sampling *o = &s->options;
    candidate *c = s->candidates;
    double total = 0;
    float best = -INFINITY;
    if (o->top_k > 0 && (size_t)o->top_k < n) {
        select_best(c, n, (size_t)o->top_k);
        n = (size_t)o->top_k;
    }
    if (o->top_p >= 1 && !(o->min_p > 0)) return n;
    for (size_t i = 0; i < n; i++)
        if (c[i].logit > best) best = c[i].logit;
    for (size_t i = 0; i < n; i++) total += c[i].logit == best ? 1 : exp((double)c[i].logit - best);
    for (size_t k = 512;; k *= 8) {
        if (k > n) k = n;
        select_best(c, n, k);
        sort_best(c, k);
        size_t kept = count_kept(o, c, k, total);
        if (kept < k || k == n) return kept;
    }
}

/* One draw from the softmax of the first n candidates at the temperature. */
static int32_t draw_candidate(model_sampler *s, size_t n)
{
    candidate *c = s->candidates;
    double sum = 0;
    float best = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (c[i].logit > best) best = c[i].logit;
    for (size_t i = 0; i < n; i++)
        sum += c[i].p =
            c[i].logit == best ? 1 : exp(((double)c[i].logit - best) / (double)s->options.temperature);
    double at = draw(s) * sum;
    size_t last = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(c[i].p > 0)) continue;
        last = i;
        if ((at -= c[i].p) < 0) break;
    }
    return c[last].id;
}

/* ---- pick ---- */

/* log p of `id` under the softmax over all logits as they came. */
static float log_probability(const float *logits, uint32_t n_vocab, int32_t id)
{
    float top = -INFINITY;
    double sum = 0;
    for (uint32_t i = 0; i < n_vocab; i++)
        if (logits[i] > top) top = logits[i];
    if (isinf(top) || isnan(logits[id])) return logits[id] == top && top > 0 ? 0 : -INFINITY;
    for (uint32_t i = 0; i < n_vocab; i++)
        if (!isnan(logits[i])) sum += exp((double)logits[i] - top);
    return (float)((double)logits[id] - top - log(sum));
}

static bool any_above(const float *logits, uint32_t n, float best)
{
    int any = 0;
    for (uint32_t i = 0; i < n; i++) any |= logits[i] > best;
    return any;
}

/*
 * Both give -1 when no id is allowed. Of 64 ids most often none is allowed or above the best so far: seen at
 * once.
 */
static int32_t pick_best(const model_sampler *s, const float *logits, const uint64_t *allowed)
{
    const bool may_raise = s->options.repeat_penalty > 0 && s->options.repeat_penalty < 1;
    candidate best = {0, -1, 0};
    for (uint32_t from = 0; from < s->n_vocab; from += 64) {
        uint32_t to = s->n_vocab - from < 64 ? s->n_vocab : from + 64;
        if (allowed && !allowed[from / 64]) continue;
        if (best.id >= 0 && !may_raise && !any_above(logits + from, to - from, best.logit)) continue;
        for (uint32_t id = from; id < to; id++) {
            if (isnan(logits[id]) || !is_allowed(allowed, id)) continue;
            float logit = penalise(s, logits[id], id);
            if (best.id < 0 || logit > best.logit) best = (candidate){logit, (int32_t)id, 0};
        }
    }
    return best.id;
}

static int32_t pick_drawn(model_sampler *s, const float *logits, const uint64_t *allowed)
{
    size_t n = collect(s, logits, allowed);
    return n ? draw_candidate(s, apply_limits(s, n)) : -1;
}

int32_t model_sampler_pick(model_sampler *s, const float *logits, const uint64_t *allowed,
    const int32_t *recent, size_t n_recent, float *ret_logprob)
{
    bool greedy = !(s->options.temperature > 0);
    mark_recent(s, recent, n_recent, true);
    int32_t id = greedy ? pick_best(s, logits, allowed) : pick_drawn(s, logits, allowed);
    if (id < 0 && allowed) id = greedy ? pick_best(s, logits, NULL) : pick_drawn(s, logits, NULL);
    if (id < 0) id = 0; /* nothing but NaN */
    mark_recent(s, recent, n_recent, false);
    if (ret_logprob) *ret_logprob = s->n_vocab ? log_probability(logits, s->n_vocab, id) : 0;
    return id;
}
