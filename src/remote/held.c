#include "remote/held.h"

#include <string.h>

#include "base/mem.h"

/* llama-server's: a slot is near to a request from this share of its tokens on ... */
static const float near_enough = 0.1f;
/* ... is saved before it would lose more than this share of its own, and a saved prompt is not broken for less. */
static const float keeps_slot = 0.5f, keeps_prompt = 0.25f;

static size_t common(const model_ids *held, const int32_t *ids, size_t n)
{
    size_t i = 0;
    while (i < held->n && i < n && held->ids[i] == ids[i]) i++;
    return i;
}

static float share(size_t part, size_t whole)
{
    return (float)part / (float)whole;
}

/* Takes a prompt out of the list; the caller owns its ids. */
static model_ids take(remote_held *h, uint32_t at)
{
    model_ids ids = h->prompts[at];
    memmove(h->prompts + at, h->prompts + at + 1, (--h->n_prompts - at) * sizeof *h->prompts);
    return ids;
}

static void drop(remote_held *h, uint32_t at)
{
    model_ids ids = take(h, at);
    model_ids_free(&ids);
}

/* A copy of the slot among the former prompts, unless one of them holds all of it. */
static void save_slot(remote_held *h)
{
    for (uint32_t i = 0; i < h->n_prompts; i++)
        if (common(&h->prompts[i], h->slot.ids, h->slot.n) == h->slot.n) return;
    for (uint32_t i = h->n_prompts; i-- > 0;)
        if (common(&h->prompts[i], h->slot.ids, h->slot.n) == h->prompts[i].n) drop(h, i);
    if (h->n_prompts == REMOTE_HELD_PROMPTS) drop(h, 0);
    model_ids copy = {0};
    for (size_t i = 0; i < h->slot.n; i++) model_ids_add(&copy, h->slot.ids[i]);
    h->prompts[h->n_prompts++] = copy;
}

/* The former prompt that is nearer to the request than the slot; n_prompts: there is none. */
static uint32_t best_prompt(const remote_held *h, const int32_t *ids, uint32_t n)
{
    const size_t in_slot = common(&h->slot, ids, n);
    float keep = h->slot.n ? share(in_slot, h->slot.n) : -1, near = share(in_slot, n);
    uint32_t best = h->n_prompts;
    for (uint32_t i = 0; i < h->n_prompts; i++) {
        const size_t same = common(&h->prompts[i], ids, n);
        const float kept = share(same, h->prompts[i].n), nearness = share(same, n);
        if (kept < keeps_prompt || keep >= kept || near >= nearness) continue;
        keep = kept;
        near = nearness;
        best = i;
    }
    return best;
}

/* Would the slot lose so much to this request that a former prompt is looked for? */
static bool looks_further(const remote_held *h, const int32_t *ids, uint32_t n)
{
    const size_t same = common(&h->slot, ids, n);
    const bool is_near = h->slot.n && share(same, n) > near_enough;
    return h->keeps_prompts && (!is_near || share(same, h->slot.n) < keeps_slot);
}

/* Behind the first `found` tokens: stretches of what is held that continue the request, moved there. */
static size_t moved(const model_ids *held, const int32_t *ids, size_t n, size_t found, uint32_t least)
{
    size_t at = found, n_moved = 0;
    while (least && at < held->n && found + n_moved < n) {
        const size_t to = found + n_moved;
        size_t same = 0;
        while (at + same < held->n && to + same < n && held->ids[at + same] == ids[to + same]) same++;
        n_moved += same >= least ? same : 0;
        at += same >= least ? same : 1;
    }
    return n_moved;
}

static uint32_t found_in(
    const remote_held *h, const model_ids *slot, const int32_t *ids, uint32_t n, uint32_t reuse)
{
    size_t same = common(slot, ids, n);
    same += moved(slot, ids, n, same, reuse);
    if (same == n) same--;
    return (uint32_t)(same - same % (h->block ? h->block : 1));
}

/* Of engines of blocks: the most that any former request has in common with these. */
static uint32_t found_in_any(const remote_held *h, const int32_t *ids, uint32_t n)
{
    uint32_t most = found_in(h, &h->slot, ids, n, 0);
    for (uint32_t i = 0; i < h->n_prompts; i++) {
        const uint32_t found = found_in(h, &h->prompts[i], ids, n, 0);
        if (found > most) most = found;
    }
    return most;
}

uint32_t remote_held_find(const remote_held *h, const int32_t *ids, uint32_t n, uint32_t reuse)
{
    if (!n) return 0;
    if (h->keeps_blocks) return found_in_any(h, ids, n);
    const uint32_t best = looks_further(h, ids, n) ? best_prompt(h, ids, n) : h->n_prompts;
    return found_in(h, best < h->n_prompts ? &h->prompts[best] : &h->slot, ids, n, reuse);
}

uint32_t remote_held_ask(remote_held *h, const int32_t *ids, uint32_t n, uint32_t reuse)
{
    if (!n) return 0;
    if (h->keeps_blocks) return found_in_any(h, ids, n);
    if (looks_further(h, ids, n)) {
        if (h->slot.n) save_slot(h);
        const uint32_t best = best_prompt(h, ids, n);
        if (best < h->n_prompts) {
            model_ids_free(&h->slot);
            h->slot = take(h, best);
        }
    }
    return found_in(h, &h->slot, ids, n, reuse);
}

void remote_held_set(
    remote_held *h, const int32_t *asked, uint32_t n_asked, const int32_t *answer, uint32_t n_answer)
{
    if (h->keeps_blocks && h->slot.n && common(&h->slot, asked, n_asked) < h->slot.n) save_slot(h);
    h->slot.n = 0;
    for (uint32_t i = 0; i < n_asked; i++) model_ids_add(&h->slot, asked[i]);
    for (uint32_t i = 0; i + 1 < n_answer; i++) model_ids_add(&h->slot, answer[i]);
}

void remote_held_forget(remote_held *h)
{
    h->slot.n = 0;
    while (h->n_prompts) drop(h, h->n_prompts - 1);
}

void remote_held_free(remote_held *h)
{
    remote_held_forget(h);
    model_ids_free(&h->slot);
}
