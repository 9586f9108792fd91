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

/* The former prompt that is nearer to the request than the slot, in its place. */
static void load_best(remote_held *h, const int32_t *ids, uint32_t n)
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
    if (best == h->n_prompts) return;
    model_ids_free(&h->slot);
    h->slot = take(h, best);
}

uint32_t remote_held_ask(remote_held *h, const int32_t *ids, uint32_t n)
{
    if (!n) return 0;
    size_t same = common(&h->slot, ids, n);
    const bool is_near = h->slot.n && share(same, n) > near_enough;
    if (h->keeps_prompts && (!is_near || share(same, h->slot.n) < keeps_slot)) {
        if (h->slot.n) save_slot(h);
        load_best(h, ids, n);
        same = common(&h->slot, ids, n);
    }
    if (same == n) same--;
    return (uint32_t)(same - same % (h->block ? h->block : 1));
}

void remote_held_set(
    remote_held *h, const int32_t *asked, uint32_t n_asked, const int32_t *answer, uint32_t n_answer)
{
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
