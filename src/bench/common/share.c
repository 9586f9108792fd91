/*
 * See bench/common/share.h. What is kept is found by a batch's first phase, its ids, and that its lists have
 * no holes.
 */
#include "bench/common/share.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/*
 * One batch of the text: rows of the layers below `known`, and the states at those cuts that are below or at
 * it.
 */
typedef struct chunk {
    uint32_t n, known;
    int32_t *ids;
    uint32_t *phases;
    uint16_t *rows; /* [lane][n][key | value] */
    float *states[BENCH_SHARE_CUTS];
    uint32_t *captured, n_captured; /* places whose queries are kept */
    float *queries;                 /* [n_layer][n_head][n_captured][head_dim], of the layers below `known` */
} chunk;

struct bench_share {
    kv_compute inner;
    bool on;
    uint32_t cuts[BENCH_SHARE_CUTS], n_cuts; /* ascending; the last is all layers */
    chunk *chunks;
    size_t n, cap;
};

static void chunk_free(chunk *c)
{
    free(c->ids);
    free(c->phases);
    free(c->rows);
    free(c->captured);
    free(c->queries);
    for (size_t i = 0; i < BENCH_SHARE_CUTS; i++) free(c->states[i]);
}

void bench_share_forget(bench_share *s)
{
    for (size_t i = 0; i < s->n; i++) chunk_free(&s->chunks[i]);
    s->n = 0;
}

void bench_share_free(bench_share *s)
{
    if (!s) return;
    bench_share_forget(s);
    free(s->chunks);
    free(s);
}

void bench_share_keep(bench_share *s, bool on)
{
    s->on = on;
}

static void add_cut(bench_share *s, uint32_t cut)
{
    uint32_t at = 0;
    while (at < s->n_cuts && s->cuts[at] < cut) at++;
    if ((at < s->n_cuts && s->cuts[at] == cut) || s->n_cuts == BENCH_SHARE_CUTS) return;
    memmove(s->cuts + at + 1, s->cuts + at, (s->n_cuts - at) * sizeof *s->cuts);
    s->cuts[at] = cut;
    s->n_cuts++;
}

/* --- one batch ------------------------------------------------------------------------------------------ */

/* The slot of the batch's token i in a lane: its rows end the lane's list. */
static uint32_t slot_of(const model_lane_list *list, uint32_t n, uint32_t i)
{
    uint32_t left = n - 1 - i, r = list->n_runs;
    while (left >= list->runs[r - 1].n) left -= list->runs[--r].n;
    return list->runs[r - 1].slot + list->runs[r - 1].n - 1 - left;
}

/* Rows of the lanes [from, to) between the session's blocks and the chunk. */
static void move_rows(
    const bench_share *s, chunk *c, const model_batch *b, uint32_t from, uint32_t to, bool to_session)
{
    const uint32_t d = s->inner.shape.head_dim;
    for (uint32_t lane = from; lane < to; lane++)
        for (uint32_t i = 0; i < c->n; i++) {
            const uint32_t slot = slot_of(&b->rows->lanes[lane], c->n, i);
            uint16_t *kept = c->rows + ((size_t)lane * c->n + i) * 2 * d,
                     *key = model_rows_key(b->rows, lane, slot),
                     *value = model_rows_value(b->rows, lane, slot);
            memcpy(to_session ? key : kept, to_session ? kept : key, d * sizeof *kept);
            memcpy(to_session ? value : kept + d, to_session ? kept + d : value, d * sizeof *kept);
        }
}

/* Is every token before the batch, and the batch, in the lists of the batch's layers, which end before `last`? */
static bool is_whole(const bench_share *s, const model_batch *b, uint32_t last)
{
    const uint32_t n_kv = s->inner.shape.n_head_kv;
    for (uint32_t lane = b->layer_first * n_kv; lane < last * n_kv; lane++)
        if (b->rows->lanes[lane].n_rows != b->phases[0] + b->n) return false;
    return true;
}

static bool has_captured(const chunk *c, const model_capture *wanted)
{
    uint32_t k = 0;
    for (uint32_t i = 0; wanted && i < wanted->n; i++) {
        while (k < c->n_captured && c->captured[k] < wanted->tokens[i]) k++;
        if (k == c->n_captured || c->captured[k] != wanted->tokens[i]) return false;
    }
    return true;
}

static void give_queries(
    const bench_share *s, const chunk *c, const model_capture *wanted, uint32_t first, uint32_t last)
{
    const size_t d = s->inner.shape.head_dim;
    for (uint32_t i = 0; wanted && i < wanted->n; i++) {
        uint32_t k = 0;
        while (c->captured[k] != wanted->tokens[i]) k++;
        for (size_t lh = (size_t)first * s->inner.n_head; lh < (size_t)last * s->inner.n_head; lh++)
            memcpy(wanted->queries + (lh * wanted->n + i) * d, c->queries + (lh * c->n_captured + k) * d,
                d * sizeof *c->queries);
    }
}

static chunk *find(const bench_share *s, const model_batch *b)
{
    for (size_t i = 0; i < s->n; i++) {
        chunk *c = &s->chunks[i];
        if (c->n == b->n && !memcmp(c->phases, b->phases, b->n * sizeof *b->phases) &&
            !memcmp(c->ids, b->ids, b->n * sizeof *b->ids) && has_captured(c, b->capture))
            return c;
    }
    return NULL;
}

static chunk *add_chunk(bench_share *s, const model_batch *b)
{
    const size_t d = s->inner.shape.head_dim, n = b->n;
    base_grow(&s->chunks, &s->cap, s->n + 1, sizeof *s->chunks);
    chunk *c = &s->chunks[s->n++];
    *c = (chunk){.n = b->n, .n_captured = b->capture ? b->capture->n : 0};
    c->ids = base_xmalloc(n * sizeof *c->ids);
    c->phases = base_xmalloc(n * sizeof *c->phases);
    c->rows = base_xmalloc(model_rows_lanes(&s->inner.shape) * n * 2 * d * sizeof *c->rows);
    memcpy(c->ids, b->ids, n * sizeof *c->ids);
    memcpy(c->phases, b->phases, n * sizeof *c->phases);
    if (c->n_captured) {
        c->captured = base_xmalloc(c->n_captured * sizeof *c->captured);
        memcpy(c->captured, b->capture->tokens, c->n_captured * sizeof *c->captured);
        c->queries = base_xcalloc(
            (size_t)s->inner.shape.n_layer * s->inner.n_head * c->n_captured * d, sizeof *c->queries);
    }
    return c;
}

static size_t place_of(const bench_share *s, uint32_t cut)
{
    size_t i = 0;
    while (i < s->n_cuts && s->cuts[i] < cut) i++;
    return i;
}

/* Computes the layers from what is known up to the next cut, in the session's own lists, and keeps them. */
static int compute_next(bench_share *s, chunk *c, const model_batch *b, base_err *err)
{
    const size_t place = c->known ? place_of(s, c->known) + 1 : 0, n_embd = s->inner.n_embd;
    const uint32_t first = c->known, last = s->cuts[place], n_kv = s->inner.shape.n_head_kv;
    const bool ends = last == s->inner.shape.n_layer;
    float *hidden = base_xmalloc(c->n * n_embd * sizeof *hidden);
    if (first) memcpy(hidden, c->states[place - 1], c->n * n_embd * sizeof *hidden);
    const model_capture capture = {.tokens = c->captured, .n = c->n_captured, .queries = c->queries};
    const model_batch part = {.ids = b->ids,
        .phases = b->phases,
        .n = b->n,
        .rows = b->rows,
        .layer_first = first,
        .layer_last = last,
        .hidden = hidden,
        .capture = c->n_captured ? &capture : NULL,
        .cancel = b->cancel};
    const int r = s->inner.forward(s->inner.user, &part, err);
    if (r || ends)
        free(hidden);
    else
        c->states[place] = hidden;
    if (r) return r;
    move_rows(s, c, b, first * n_kv, last * n_kv, false);
    c->known = last;
    return 0;
}

/*
 * Rows that were left below a cut and are computed above it now, all of them and over all that is before them, are
 * those of a session that was not cut. False: they are not there.
 */
static bool give_above(const bench_share *s, const model_batch *b, uint32_t last)
{
    chunk *c = is_whole(s, b, last) ? find(s, b) : NULL;
    if (!c || c->known < last) return false;
    move_rows(s, c, b, b->layer_first * s->inner.shape.n_head_kv, last * s->inner.shape.n_head_kv, true);
    give_queries(s, c, b->capture, b->layer_first, last);
    return true;
}

static int forward(void *user, const model_batch *b, base_err *err)
{
    bench_share *s = user;
    const uint32_t last = b->layer_last ? b->layer_last : s->inner.shape.n_layer;
    const size_t place = place_of(s, last);
    if (b->layer_first && last == s->inner.shape.n_layer && !b->n_want && !b->reader &&
        give_above(s, b, last))
        return 0;
    if (!s->on || b->n_want || b->layer_first || b->reader || place == s->n_cuts || s->cuts[place] != last ||
        !is_whole(s, b, last))
        return s->inner.forward(s->inner.user, b, err);
    chunk *c = find(s, b);
    if (!c) c = add_chunk(s, b);
    const uint32_t n_kv = s->inner.shape.n_head_kv;
    move_rows(s, c, b, 0, (c->known < last ? c->known : last) * n_kv, true);
    while (c->known < last) {
        const int r = compute_next(s, c, b, err);
        if (r) return r;
    }
    give_queries(s, c, b->capture, 0, last);
    if (last < s->inner.shape.n_layer)
        memcpy(b->hidden, c->states[place], (size_t)c->n * s->inner.n_embd * sizeof *b->hidden);
    return 0;
}

/* --- a compute ------------------------------------------------------------------------------------------ */

static int score(void *user, const model_score *what, base_err *err)
{
    const bench_share *s = user;
    return s->inner.score(s->inner.user, what, err);
}

static int bound(void *user, const model_bound *what, base_err *err)
{
    const bench_share *s = user;
    return s->inner.bound(s->inner.user, what, err);
}

static uint8_t ending(void *user, int32_t id)
{
    const bench_share *s = user;
    return s->inner.ending(s->inner.user, id);
}

bench_share *bench_share_new(model *m, const uint32_t *cuts, size_t n)
{
    bench_share *s = base_xcalloc(1, sizeof *s);
    s->inner = kv_compute_model(m);
    add_cut(s, s->inner.shape.n_layer);
    for (size_t i = 0; i < n; i++)
        if (cuts[i] && cuts[i] < s->inner.shape.n_layer) add_cut(s, cuts[i]);
    return s;
}

kv_compute bench_share_compute(bench_share *s)
{
    kv_compute c = s->inner;
    c.user = s;
    c.forward = forward;
    c.score = score;
    c.bound = bound;
    c.ending = ending;
    c.turn = NULL; /* shared texts end with the context */
    c.window = NULL;
    return c;
}
