#include "agent/sequence/cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MOST_PLACES = 128 }; /* of a first cut that are looked at */
static const double cached_cost = .1;

/*
 * Chosen by hand, not measured. Where a request's tokens are at least `from` budgets: the share of the budget that has to
 * leave, and the tokens that may be computed again for each of them.
 */
static const struct {
    double from, least_freed, most_again;
} offers[] = {{1.25, .05, 4}, {1.1, .1, 2}, {1, .1, 1}};
static const double context_ends = .9;

bool agent_cut_is_offered(const agent_cut *c, uint32_t n_active, uint32_t budget, uint32_t n_ctx)
{
    if (!c->freed) return false;
    if (n_active >= context_ends * n_ctx) return true;
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
        if (n_active >= offers[i].from * budget)
            return c->freed >= offers[i].least_freed * budget && c->again <= offers[i].most_again * c->freed;
    return false;
}

static int by_value(const void *a, const void *b)
{
    const agent_cut_unit *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->from < y->from ? 1 : -1; /* the later one: less stands behind it */
}

/* Units in this order, from the place `first` on, until enough is free. now: tokens to compute without a cut. */
static void take(
    const agent_cut_question *q, const agent_cut_unit *order, uint32_t first, uint32_t now, agent_cut *ret)
{
    double lost = 0;
    memset(ret->out, 0, q->n_tokens);
    ret->freed = 0;
    for (uint32_t i = 0; i < q->n_units && ret->freed < q->need; i++) {
        const agent_cut_unit *u = &order[i];
        for (uint32_t t = u->from; u->from >= first && t < u->to && t < q->n_tokens; t++) {
            if (!q->active[t] || ret->out[t]) continue;
            ret->out[t] = true;
            ret->freed++;
            lost += u->value;
        }
    }
    const uint32_t then = q->to_compute(q->user, ret->out, &ret->at_most);
    ret->again = then > now ? then - now : 0;
    ret->worth = cached_cost * ret->freed * q->turns - ret->again - lost;
}

static bool is_better(const agent_cut_question *q, const agent_cut *a, const agent_cut *than)
{
    const bool enough = a->freed >= q->need, was_enough = than->freed >= q->need;
    if (enough != was_enough) return enough;
    if (!enough && a->freed != than->freed) return a->freed > than->freed;
    return a->worth > than->worth;
}

void agent_cut_choose(const agent_cut_question *q, agent_cut *ret)
{
    agent_cut_unit *valued = base_xcalloc(q->n_units + 1, sizeof *valued);
    if (q->n_units) memcpy(valued, q->units, q->n_units * sizeof *valued);
    qsort(valued, q->n_units, sizeof *valued, by_value);
    agent_cut one = {.out = base_xcalloc(q->n_tokens + 1, sizeof *one.out)};
    *ret = (agent_cut){.out = base_xcalloc(q->n_tokens + 1, sizeof *ret->out)};
    bool at_most;
    const uint32_t now = q->n_units ? q->to_compute(q->user, NULL, &at_most) : 0;
    const uint32_t step = q->n_units / MOST_PLACES + 1;
    for (uint32_t i = 0; i < q->n_units; i += step) {
        const agent_cut_unit *const orders[] = {valued, q->units};
        for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
            take(q, orders[k], q->units[i].from, now, &one);
            if (!one.freed || (ret->freed && !is_better(q, &one, ret))) continue;
            const agent_cut best = one;
            one = *ret;
            *ret = best;
        }
    }
    free(one.out);
    free(valued);
}
