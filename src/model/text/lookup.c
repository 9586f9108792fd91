/*
 * An index of pairs: where each pair of neighbours last stood, and from each place to the one before. A match
 * is the longest common ending; the chains are short, and a place in the sequence is added or taken back in
 * constant time.
 *
 * How long a draft should be follows from two tables that are learned while it works: the share of tokens
 * that were right behind a match of some length, and the time of a batch of n. Taken is the length with the
 * most expected tokens a second.
 */
#include "model/text/lookup.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    NOWHERE = -1,
    HEADS_MIN = 1 << 12,
    MOST_PLACES = 1024, /* of one pair that are looked at, the newest first */
    MATCH_MAX = 32,     /* a longer common ending says no more */
    NEAR = 64,          /* tokens that a copy may leave out and still be the same one */
    RECENT = 16,        /* about how many verdicts a share remembers */
    FORGETS = 256,      /* after about so many drafts that did not pay, a share is what it was at first */
};

/*
 * Shares at first, by the length of the match: generous to long ones. They are where learning starts, and no
 * more.
 */
static const struct {
    uint8_t up_to;
    double share;
} first_shares[] = {{2, .3}, {3, .5}, {4, .65}, {6, .75}, {8, .85}, {12, .9}, {20, .94}, {MATCH_MAX, .97}};
enum { N_SHARES = sizeof first_shares / sizeof *first_shares };

/* A token more in a batch, before one was timed: of the time of a batch of one. */
static const double first_slope = .12;
/* What a draft must promise over none: timings are noisy. */
static const double least_gain = 1.05;

struct model_lookup {
    int32_t *ids, *before; /* [n]: the earlier place of the pair that ends here */
    uint32_t n;
    size_t cap, cap_before;
    int32_t *heads; /* [n_heads] the last place of a pair */
    uint32_t n_heads;
    double share[N_SHARES];
    double cost[MODEL_LOOKUP_MAX + 2]; /* ns of a batch of so many; 0: not known */
    uint32_t length, match;            /* of the last draft: its tokens, and the match it stood behind */
    uint32_t source;                   /* where the next one would be read; UINT32_MAX: nothing was */
    model_lookup_stats stats;
};

model_lookup *model_lookup_new(void)
{
    model_lookup *l = base_xcalloc(1, sizeof *l);
    l->source = UINT32_MAX;
    for (int i = 0; i < N_SHARES; i++) l->share[i] = first_shares[i].share;
    return l;
}

void model_lookup_free(model_lookup *l)
{
    if (!l) return;
    free(l->ids);
    free(l->before);
    free(l->heads);
    free(l);
}

model_lookup_stats model_lookup_get_stats(const model_lookup *l)
{
    return l->stats;
}

/* ---- the index ---- */

static int32_t *head_of(const model_lookup *l, int32_t first, int32_t second)
{
    uint64_t pair = (uint64_t)(uint32_t)first << 32 | (uint32_t)second;
    return &l->heads[pair * 0x9E3779B97F4A7C15u >> 32 & (l->n_heads - 1)];
}

static void add_place(model_lookup *l, uint32_t i)
{
    if (!i) return;
    int32_t *head = head_of(l, l->ids[i - 1], l->ids[i]);
    l->before[i] = *head;
    *head = (int32_t)i;
}

static void make_room(model_lookup *l, uint32_t n)
{
    base_grow(&l->ids, &l->cap, n, sizeof *l->ids);
    base_grow(&l->before, &l->cap_before, n, sizeof *l->before);
    if (l->n_heads && n <= l->n_heads) return;
    l->n_heads = HEADS_MIN;
    while (l->n_heads < n) l->n_heads *= 2;
    free(l->heads);
    l->heads = base_xmalloc(l->n_heads * sizeof *l->heads);
    for (uint32_t i = 0; i < l->n_heads; i++) l->heads[i] = NOWHERE;
    for (uint32_t i = 0; i < l->n; i++) add_place(l, i);
}

void model_lookup_sync(model_lookup *l, const int32_t *ids, uint32_t n)
{
    uint32_t same = l->n < n ? l->n : n;
    if (same && memcmp(l->ids, ids, same * sizeof *ids) != 0)
        for (uint32_t i = 0; i < same; i++)
            if (l->ids[i] != ids[i]) same = i;
    for (; l->n > same; l->n--)
        if (l->n > 1) *head_of(l, l->ids[l->n - 2], l->ids[l->n - 1]) = l->before[l->n - 1];
    make_room(l, n);
    for (; l->n < n; l->n++) {
        l->ids[l->n] = ids[l->n];
        add_place(l, l->n);
    }
}

/* Length of the common ending of the sequence with `next` behind it and of the one that ends at place p. */
static uint32_t match_length(const model_lookup *l, uint32_t p, int32_t next)
{
    uint32_t n = 1;
    if (l->ids[p] != next) return 0;
    while (n < MATCH_MAX && n <= p && l->ids[p - n] == l->ids[l->n - n]) n++;
    return n;
}

/*
 * Equal matches: rather go on where the last draft was read than anywhere else; else the newest, which comes
 * first.
 */
static bool is_nearer(const model_lookup *l, uint32_t p, uint32_t best)
{
    bool near = p >= l->source && p - l->source < NEAR;
    return near && (best < l->source || p < best);
}

static uint32_t find_match(const model_lookup *l, int32_t next, uint32_t *ret_place)
{
    uint32_t longest = 0, looked = 0;
    if (!l->n) return 0;
    for (int32_t p = *head_of(l, l->ids[l->n - 1], next); p != NOWHERE && looked < MOST_PLACES;
         p = l->before[p], looked++) {
        uint32_t n = match_length(l, (uint32_t)p, next);
        if (n < 2 || n < longest || (n == longest && !is_nearer(l, (uint32_t)p, *ret_place))) continue;
        longest = n;
        *ret_place = (uint32_t)p;
    }
    return longest;
}

/* ---- how much of it ---- */

static double *share_of(model_lookup *l, uint32_t match)
{
    int i = 0;
    while (i < N_SHARES - 1 && match > first_shares[i].up_to) i++;
    return &l->share[i];
}

static double cost_of(const model_lookup *l, uint32_t n)
{
    double one = l->cost[1] > 0 ? l->cost[1] : 1;
    uint32_t known = n;
    while (known > 1 && !(l->cost[known] > 0)) known--;
    return (known > 1 ? l->cost[known] : one) + (n - known) * first_slope * one;
}

/* The length with the most tokens a second, of which one is sure. */
static uint32_t choose_length(model_lookup *l, uint32_t match, uint32_t most)
{
    double right = 1, tokens = 1, best = least_gain / cost_of(l, 1);
    uint32_t length = 0;
    for (uint32_t n = 1; n <= most; n++) {
        right *= *share_of(l, match + n - 1);
        tokens += right;
        double speed = tokens / cost_of(l, n + 1);
        if (speed <= best) continue;
        best = speed;
        length = n;
    }
    return length;
}

uint32_t model_lookup_draft(model_lookup *l, int32_t next, uint32_t max, int32_t *ret)
{
    uint32_t place = 0, match;
    l->length = 0;
    if (!max || !(match = find_match(l, next, &place))) return 0;
    uint32_t length = choose_length(l, match, max < MODEL_LOOKUP_MAX ? max : MODEL_LOOKUP_MAX);
    if (!length) {
        double *share = share_of(l, match);
        for (int i = 0; i < N_SHARES; i++)
            if (share == &l->share[i]) *share += (first_shares[i].share - *share) / FORGETS;
        return 0;
    }
    for (uint32_t i = 0; i < length; i++) {
        uint32_t from = place + 1 + i; /* text that repeats itself is read from its own draft */
        ret[i] = from < l->n ? l->ids[from] : from == l->n ? next : ret[from - l->n - 1];
    }
    l->length = length;
    l->match = match;
    l->source = place + 1;
    l->stats.drafted += length;
    l->stats.batches++;
    return length;
}

static void judge(model_lookup *l, uint32_t at, bool right)
{
    double *share = share_of(l, l->match + at);
    *share += ((right ? 1 : 0) - *share) / RECENT;
}

void model_lookup_leave(model_lookup *l, uint32_t n_right)
{
    if (n_right > l->length) n_right = l->length;
    for (uint32_t i = 0; i < n_right; i++) judge(l, i, true);
    l->source += n_right;
    l->stats.accepted += n_right;
    l->length = 0;
}

void model_lookup_learn(model_lookup *l, uint32_t n_right)
{
    if (n_right < l->length) judge(l, n_right, false);
    model_lookup_leave(l, n_right);
}

void model_lookup_cost(model_lookup *l, uint32_t n, uint64_t ns)
{
    if (!n || n > MODEL_LOOKUP_MAX + 1) return;
    double now = (double)ns, *cost = &l->cost[n], expected = cost_of(l, n);
    if (l->cost[1] > 0 && now > 2 * expected) now = 2 * expected; /* the machine did something else */
    *cost = *cost > 0 ? *cost + (now - *cost) / 8 : now;
    for (uint32_t i = 1; i < n; i++) /* fewer cannot cost more */
        if (l->cost[i] > *cost) l->cost[i] = *cost;
}
