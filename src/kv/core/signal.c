/* Query vectors that outlive their forward pass; see signal.h. */
#include "kv/core/signal.h"

#include <stdlib.h>
#include <string.h>

void kv_signal_init(kv_signal *s, uint32_t n_layer, uint32_t n_head, uint32_t head_dim)
{
    *s = (kv_signal){.n_layer = n_layer, .n_head = n_head, .head_dim = head_dim};
}

void kv_signal_fini(kv_signal *s)
{
    free(s->tokens);
    free(s->queries);
    s->tokens = NULL;
    s->queries = NULL;
    s->n = 0;
}

static int allocate(kv_signal *s, uint32_t n, base_err *err)
{
    const size_t per_query = (size_t)s->n_layer * s->n_head * s->head_dim;
    s->tokens = calloc(n + 1, sizeof *s->tokens);
    s->queries = calloc(per_query * n + 1, sizeof *s->queries);
    s->n = n;
    if (s->tokens && s->queries) return 0;
    kv_signal_fini(s);
    return base_fail(err, BASE_E_NOMEM, "no memory to keep %u query vectors", n);
}

/* Moves n vectors of every head from place `from` of a signal of n_from to place `to` of one of n_to. */
static void move_queries(const kv_signal *shape, const float *src, uint32_t n_from, uint32_t from, float *dst,
    uint32_t n_to, uint32_t to, uint32_t n)
{
    const size_t d = shape->head_dim;
    for (size_t lh = 0; lh < (size_t)shape->n_layer * shape->n_head; lh++)
        memmove(dst + (lh * n_to + to) * d, src + (lh * n_from + from) * d, n * d * sizeof *dst);
}

int kv_signal_copy(kv_signal *s, const kv_signal *from, base_err *err)
{
    kv_signal new;
    kv_signal_init(&new, from->n_layer, from->n_head, from->head_dim);
    if (from->n) {
        int rc = allocate(&new, from->n, err);
        if (rc) return rc;
        memcpy(new.tokens, from->tokens, from->n * sizeof *new.tokens);
        move_queries(from, from->queries, from->n, 0, new.queries, from->n, 0, from->n);
    }
    kv_signal_fini(s);
    *s = new;
    return 0;
}

int kv_signal_add(
    kv_signal *s, const uint32_t *tokens, const float *queries, uint32_t n, uint32_t max, base_err *err)
{
    const uint32_t add = n < max ? n : max;
    const uint32_t keep = s->n < max - add ? s->n : max - add;
    kv_signal new;
    kv_signal_init(&new, s->n_layer, s->n_head, s->head_dim);
    int rc = allocate(&new, keep + add, err);
    if (rc) return rc;
    if (keep) {
        memcpy(new.tokens, s->tokens + (s->n - keep), keep * sizeof *tokens);
        move_queries(s, s->queries, s->n, s->n - keep, new.queries, new.n, 0, keep);
    }
    if (add) {
        memcpy(new.tokens + keep, tokens + (n - add), add * sizeof *tokens);
        move_queries(s, queries, n, n - add, new.queries, new.n, keep, add);
    }
    kv_signal_fini(s);
    *s = new;
    return 0;
}

void kv_signal_crop(kv_signal *s, uint32_t from, uint32_t to)
{
    uint32_t first = 0, last = s->n;
    while (first < last && s->tokens[first] < from) first++;
    while (last > first && s->tokens[last - 1] >= to) last--;
    if (first == last) {
        kv_signal_fini(s);
        return;
    }
    if (last - first == s->n) return;
    /* In place: every vector moves to a lower or the same address, in ascending order. */
    move_queries(s, s->queries, s->n, first, s->queries, last - first, 0, last - first);
    memmove(s->tokens, s->tokens + first, (last - first) * sizeof *s->tokens);
    s->n = last - first;
}

int kv_signal_pick(const kv_signal *s, const uint32_t *places, uint32_t n, kv_signal *ret, base_err *err)
{
    kv_signal_init(ret, s->n_layer, s->n_head, s->head_dim);
    int rc = allocate(ret, n, err);
    if (rc) return rc;
    for (uint32_t i = 0; i < n; i++) {
        ret->tokens[i] = s->tokens[places[i]];
        move_queries(s, s->queries, s->n, places[i], ret->queries, n, i, 1);
    }
    return 0;
}
