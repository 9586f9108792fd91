/* See learn/gather.h. */
#include "learn/gather.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/evict/evict.h"
#include "kv/session.h"

void learn_gatherer_close(learn_gatherer *g)
{
    kv_session_free(g->session);
    g->session = NULL;
}

/* Parts of h that the session there has already: it goes on behind them. */
static int begin(learn_gatherer *g, const learn_history *h, size_t *ret_part, base_err *err)
{
    const kv_options options = {.policy = "intentkv"};
    uint32_t n = 0, common = 0;
    *ret_part = 0;
    if (!g->session) return kv_session_new_over(&g->session, g->compute, &options, NULL, err);
    const int32_t *ids = kv_session_ids(g->session, &n);
    /* Up to the first message: every place is looked at in its own session. */
    for (; *ret_part < h->n_parts; ++*ret_part) {
        const learn_part *p = &h->parts[*ret_part];
        if (p->origin == KV_ORIGIN_USER || p->origin == KV_ORIGIN_TOOL || p->to > n ||
            memcmp(ids + p->from, h->ids + p->from, (p->to - p->from) * sizeof *ids) != 0)
            break;
        common = p->to;
    }
    return kv_session_truncate(g->session, common, err);
}

/* What is shown at a place, as an example; keys are the session's. */
static int add_example(const learn_gatherer *g, learn_set *set, const learn_history *h, const learn_place *p,
    float *keys, base_err *err)
{
    const uint32_t dim = g->compute->shape.head_dim;
    bool *quoted = base_xcalloc((size_t)p->from + 1, 2 * sizeof *quoted), *next = quoted + p->from + 1;
    kv_shown shown = {0};
    int rc = 0;
    if (!learn_history_quoted(h, p, LEARN_AHEAD, quoted)) goto out;
    learn_history_quoted(h, p, 1, next);
    rc = kv_session_shown(g->session, g->cancel, &shown, err);
    if (rc || shown.n < LEARN_LEAST_ROWS) goto out;
    base_grow(&set->examples, &set->cap_examples, set->n_examples + 1, sizeof *set->examples);
    learn_example *e = &set->examples[set->n_examples++];
    *e = (learn_example){.session = (uint32_t)set->n_sessions,
        .n_asking = shown.n_asking,
        .tokens = shown.tokens,
        .rule = shown.rule,
        .quoted = base_xcalloc(shown.n, 1),
        .next = base_xcalloc(shown.n, 1),
        .memory = shown.memory,
        .asking = shown.asking};
    /* The template's tokens and what stands behind the question are nobody's to choose: they are left out. */
    for (uint32_t i = 0; i < shown.n; i++) {
        const uint32_t t = shown.tokens[i];
        if (t >= p->from || h->fixed[t]) continue;
        memcpy(keys + (size_t)t * dim, shown.keys + (size_t)i * dim, dim * sizeof *keys);
        e->tokens[e->n] = t;
        e->rule[e->n] = shown.rule[i];
        e->quoted[e->n] = quoted[t];
        e->next[e->n++] = next[t];
    }
    shown.tokens = NULL;
    shown.rule = shown.memory = shown.asking = NULL;
out:
    kv_shown_free(&shown);
    free(quoted);
    return rc;
}

int learn_gather(
    learn_gatherer *g, learn_set *set, uint32_t group, const learn_history *h, bool *ret_added, base_err *err)
{
    const uint32_t dim = g->compute->shape.head_dim, n_ctx = g->compute->n_ctx,
                   most = n_ctx < LEARN_TOKENS ? n_ctx : LEARN_TOKENS;
    const size_t n_before = set->n_examples;
    size_t part = 0, place = 0;
    set->dim = dim;
    *ret_added = false;
    for (size_t i = 0; i < h->n; i++)
        if (h->ids[i] < 0 || (uint32_t)h->ids[i] >= g->compute->n_vocab) return 0; /* another's words */
    float *keys = base_xcalloc((h->n < most ? h->n : most) * dim + 1, sizeof *keys);
    int rc = begin(g, h, &part, err);
    for (size_t i = part; i < h->n_parts && !rc && h->parts[i].to <= most; i++) {
        const learn_part *p = &h->parts[i];
        const kv_segment segment = {.origin = p->origin, .turn = p->turn};
        kv_session_set_turn(g->session, p->turn);
        rc = kv_session_append(g->session, &segment, h->ids + p->from, p->to - p->from, NULL, g->cancel, err);
        while (place < h->n_places && h->places[place].to < p->to) place++;
        if (!rc && place < h->n_places && h->places[place].to == p->to)
            rc = add_example(g, set, h, &h->places[place], keys, err);
    }
    if (rc || set->n_examples == n_before) {
        free(keys);
        return rc;
    }
    base_grow(&set->sessions, &set->cap_sessions, set->n_sessions + 1, sizeof *set->sessions);
    set->sessions[set->n_sessions++] = (learn_session){.n = (uint32_t)h->n, .group = group, .keys = keys};
    *ret_added = true;
    return 0;
}
