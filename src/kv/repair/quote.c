/*
 * Lines that are said again behind the request that they answer clearly (docs/kv.md, Repair). Their rows come
 * back in any case; but among thousands of lines that look alike a model reads the right row and gives another one's
 * number, while it reads what stands beside the question.
 */
#include "kv/repair/choose.h"

bool kv__may_quote(const kv_session *s, const kv_repair_work *w)
{
    return w->quotes && s->parameters.quote > 0 && w->is_request && s->fold.n;
}

void kv__note_quote(const kv_session *s, const kv_repair_work *w, const float *mass, uint32_t row)
{
    kv_quotes *all = w->quotes;
    kv_quote q;
    if (!all || all->n >= KV_MOST_QUOTES || all->n >= s->parameters.quote) return;
    kv__grow(s, row, &q.from, &q.to);
    if (q.to + KV_QUOTE_NEAR > s->n) return; /* it is in view */
    for (uint32_t i = 0; i < all->n; i++)
        if (q.from < all->lines[i].to && all->lines[i].from < q.to) return;
    q.times = kv__repair_clarity(s, w, mass, row);
    all->lines[all->n++] = q;
}

void kv__note_quotes(const kv_session *s, const kv_repair_work *w)
{
    const kv_repair_set *set = &w->set;
    const float least = (float)s->parameters.focus * set->mass[set->order[0]];
    for (uint32_t i = 0; w->quotes && i < set->n_order && set->mass[set->order[i]] >= least; i++)
        kv__note_quote(s, w, set->mass, set->order[i]);
}
