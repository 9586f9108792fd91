/* See learn/train.h. */
#include "learn/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { ACCUMULATE_MOST = 64 };

void learn_set_free(learn_set *s)
{
    for (size_t i = 0; i < s->n_sessions; i++) free(s->sessions[i].keys);
    for (size_t i = 0; i < s->n_examples; i++) {
        const learn_example *e = &s->examples[i];
        free(e->tokens);
        free(e->rule);
        free(e->quoted);
        free(e->next);
        free(e->memory);
        free(e->asking);
    }
    free(s->sessions);
    free(s->examples);
    *s = (learn_set){0};
}

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint32_t draw_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((draw(state) >> 32) * n >> 32);
}

/* A linear layer's beginning: uniform within 1 / sqrt(inputs), as PyTorch's. */
static void begin_layer(float *w, float *b, size_t n_in, size_t n_out, uint64_t *state)
{
    const double bound = 1 / sqrt((double)n_in);
    for (size_t i = 0; i < n_in * n_out + n_out; i++) {
        const double x = (double)(draw(state) >> 11) / (double)(1ull << 53);
        *(i < n_in * n_out ? &w[i] : &b[i - n_in * n_out]) = (float)(bound * (2 * x - 1));
    }
}

static void begin_network(kv_residual *r, uint64_t seed)
{
    const kv_residual_layout l = kv_residual_layout_of(r->dim);
    const size_t phi = 3 * (size_t)r->dim + 1;
    uint64_t state = seed;
    float *w = r->values;
    begin_layer(w + l.wq, w + l.bq, phi, KV_RESIDUAL_WIDTH, &state);
    begin_layer(w + l.wk, w + l.bk, r->dim, KV_RESIDUAL_WIDTH, &state);
    begin_layer(w + l.wv, w + l.bv, r->dim, KV_RESIDUAL_WIDTH, &state);
    begin_layer(w + l.w1, w + l.b1, phi + KV_RESIDUAL_WIDTH, KV_RESIDUAL_HIDDEN, &state);
}

/* --- one step --- */

/* The places of a step, each with a gradient of its own, added up in their order afterwards. */
typedef struct step {
    const learn_set *set;
    const learn_options *o;
    const kv_residual *r;
    const learn_example *examples[ACCUMULATE_MOST];
    uint64_t seeds[ACCUMULATE_MOST];
    uint32_t n;
    float *grads; /* [n][r->n] */
    double losses[ACCUMULATE_MOST];
    int rc[ACCUMULATE_MOST];
} step;

/* n of the items, drawn, to their front. */
static void draw_front(uint32_t *items, uint32_t n_items, uint32_t n, uint64_t *state)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = i + draw_below(state, n_items - i), item = items[i];
        items[i] = items[k];
        items[k] = item;
    }
}

/* At most o->rows rows of a place: quoted ones up to a half, others for the rest, each standing for its share. */
static int learn_place_of(const step *s, uint32_t at, float *grad, double *ret_loss)
{
    const learn_example *e = s->examples[at];
    const uint32_t dim = s->set->dim;
    const float *keys = s->set->sessions[e->session].keys;
    uint64_t state = s->seeds[at];
    uint32_t *items = base_xmalloc(((size_t)e->n + 1) * sizeof *items), n_quoted = 0, n_others = 0;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->quoted[i]) items[n_quoted++] = i;
    for (uint32_t i = 0; i < e->n; i++)
        if (!e->quoted[i]) items[n_quoted + n_others++] = i;
    const uint32_t half = s->o->rows / 2, take_quoted = n_quoted < half ? n_quoted : half,
                   room = s->o->rows - take_quoted, take_others = n_others < room ? n_others : room,
                   n = take_quoted + take_others;
    draw_front(items, n_quoted, take_quoted, &state);
    draw_front(items + n_quoted, n_others, take_others, &state);
    float *values = base_xmalloc(((size_t)n * (dim + 2) + 1) * sizeof *values),
          *rule = values + (size_t)n * dim, *weight = rule + n;
    uint8_t *quoted = base_xcalloc(n + 1, 1);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t item = i < take_quoted ? items[i] : items[n_quoted + i - take_quoted];
        memcpy(values + (size_t)i * dim, keys + (size_t)e->tokens[item] * dim, dim * sizeof *values);
        rule[i] = e->rule[item];
        quoted[i] = i < take_quoted;
        weight[i] =
            i < take_quoted ? (float)n_quoted / (float)take_quoted : (float)n_others / (float)take_others;
    }
    const learn_rows rows = {.in = {.n = n,
                                 .n_asking = e->n_asking,
                                 .keys = values,
                                 .rule = rule,
                                 .memory = e->memory,
                                 .asking = e->asking},
        .quoted = quoted,
        .weight = weight};
    const int rc = learn_gradient(s->r, &rows, &s->o->loss, ret_loss, grad, NULL);
    free(items);
    free(values);
    free(quoted);
    return rc;
}

static void run_step(void *arg, int thread, int n_threads)
{
    step *s = arg;
    for (uint32_t i = (uint32_t)thread; i < s->n; i += (uint32_t)n_threads)
        s->rc[i] = learn_place_of(s, i, s->grads + (size_t)i * s->r->n, &s->losses[i]);
}

/* Loshchilov and Hutter 2019, with the moments' usual decay. */
static void adam(kv_residual *r, const step *s, float *moments, uint32_t t)
{
    const double fix1 = 1 - pow(.9, t), fix2 = 1 - pow(.999, t);
    for (size_t i = 0; i < r->n; i++) {
        double g = 0;
        for (uint32_t k = 0; k < s->n; k++) g += s->grads[(size_t)k * r->n + i];
        g /= s->n;
        float *m = &moments[i], *v = &moments[r->n + i];
        *m = (float)(.9 * *m + .1 * g);
        *v = (float)(.999 * *v + .001 * g * g);
        r->values[i] = (float)(r->values[i] * (1 - s->o->rate * s->o->decay) -
                               s->o->rate * (*m / fix1) / (sqrt(*v / fix2) + 1e-8));
    }
}

/* --- epochs --- */

/* The examples of used sessions that have both kinds of rows; sessions in a drawn order. */
static size_t order_examples(
    const learn_set *set, const bool *is_used, uint64_t *state, const learn_example **ret)
{
    uint32_t *sessions = base_xmalloc((set->n_sessions + 1) * sizeof *sessions), n = 0;
    size_t n_ret = 0;
    for (uint32_t i = 0; i < set->n_sessions; i++)
        if (is_used[i]) sessions[n++] = i;
    draw_front(sessions, n, n, state);
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < set->n_examples; k++) {
            const learn_example *e = &set->examples[k];
            if (e->session == sessions[i] && memchr(e->quoted, 1, e->n) && memchr(e->quoted, 0, e->n))
                ret[n_ret++] = e;
        }
    free(sessions);
    return n_ret;
}

static int train(
    kv_residual *r, const learn_set *set, const bool *is_used, const learn_options *o, base_err *err)
{
    const uint32_t most = o->accumulate < ACCUMULATE_MOST ? o->accumulate : ACCUMULATE_MOST;
    const learn_example **order = base_xmalloc((set->n_examples + 1) * sizeof *order);
    float *moments = base_xcalloc(2 * r->n, sizeof *moments),
          *grads = base_xmalloc(most * r->n * sizeof *grads);
    uint64_t state = o->seed ^ 0x6b76697374ull;
    uint32_t t = 0;
    int rc = 0;
    for (uint32_t epoch = 0; epoch < o->epochs && !rc; epoch++) {
        const size_t n = order_examples(set, is_used, &state, order);
        r->n_places = (uint32_t)n;
        if (!n)
            rc = base_fail(
                err, BASE_E_STATE, "no tool call of these sessions quotes anything that was read before it");
        for (size_t at = 0; at < n && !rc; at += most) {
            step s = {
                .set = set, .o = o, .r = r, .grads = grads, .n = n - at < most ? (uint32_t)(n - at) : most};
            double loss = 0;
            memset(grads, 0, s.n * r->n * sizeof *grads);
            for (uint32_t i = 0; i < s.n; i++) {
                s.examples[i] = order[at + i];
                s.seeds[i] = draw(&state);
            }
            if (o->cancel && atomic_load(o->cancel)) {
                rc = base_fail(err, BASE_E_CANCELLED, "interrupted; nothing was written");
                break;
            }
            if (o->pool)
                base_pool_run(o->pool, run_step, &s);
            else
                run_step(&s, 0, 1);
            for (uint32_t i = 0; i < s.n && !rc; i++) {
                if (s.rc[i]) rc = base_fail(err, BASE_E_NOMEM, "no memory to train a residual");
                loss += s.losses[i] / s.n;
            }
            if (!rc) adam(r, &s, moments, ++t);
            if (!rc && o->progress)
                o->progress(o->user, ((double)epoch + (double)(at + s.n) / (double)n) / o->epochs, loss);
        }
    }
    free(order);
    free(moments);
    free(grads);
    return rc;
}

int learn_train(const learn_set *set, const bool *is_used, const char *hash, const learn_options *o,
    kv_residual **ret, base_err *err)
{
    *ret = kv_residual_new(set->dim, hash);
    if (!*ret) return base_fail(err, BASE_E_NOMEM, "no memory for a residual over keys of %u", set->dim);
    (*ret)->seed = o->seed;
    for (size_t i = 0; i < set->n_sessions; i++) (*ret)->n_sessions += is_used[i];
    begin_network(*ret, o->seed);
    const int rc = train(*ret, set, is_used, o, err);
    if (rc) {
        kv_residual_unref(*ret);
        *ret = NULL;
    }
    return rc;
}

/* --- recall --- */

typedef struct placed {
    float score;
    uint32_t at;
} placed;

static int best_first(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static int recall_of(const learn_set *set, const learn_example *e, learn_chooser who, const kv_residual *r,
    double share, double *ret, base_err *err)
{
    const size_t d = set->dim;
    float *keys = base_xmalloc((e->n * d + 1) * sizeof *keys),
          *score = base_xmalloc((e->n + 1u) * sizeof *score);
    placed *order = base_xmalloc((e->n + 1u) * sizeof *order);
    const kv_residual_input in = {.n = e->n,
        .n_asking = e->n_asking,
        .keys = keys,
        .rule = e->rule,
        .memory = e->memory,
        .asking = e->asking};
    for (uint32_t i = 0; i < e->n; i++)
        memcpy(keys + i * d, set->sessions[e->session].keys + e->tokens[i] * d, d * sizeof *keys);
    memcpy(score, e->rule, e->n * sizeof *score);
    for (uint32_t i = 0; i < e->n && who == LEARN_NEWEST; i++) score[i] = (float)e->tokens[i];
    const int rc = who == LEARN_CORRECTED ? kv_residual_score(r, &in, score, err) : 0;
    uint32_t n_next = 0, n_kept = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        order[i] = (placed){score[i], i};
        n_next += e->next[i];
    }
    qsort(order, e->n, sizeof *order, best_first);
    for (uint32_t i = 0; i < (uint32_t)(share * e->n); i++) n_kept += e->next[order[i].at];
    *ret = (double)n_kept / n_next;
    free(keys);
    free(score);
    free(order);
    return rc;
}

int learn_recall(const learn_set *set, learn_chooser who, const kv_residual *r, double share, double *recall,
    base_err *err)
{
    uint32_t *n = base_xcalloc(set->n_sessions + 1, sizeof *n);
    int rc = 0;
    memset(recall, 0, set->n_sessions * sizeof *recall);
    for (size_t i = 0; i < set->n_examples && !rc; i++) {
        const learn_example *e = &set->examples[i];
        double one;
        if (!memchr(e->next, 1, e->n)) continue;
        rc = recall_of(set, e, who, r, share, &one, err);
        recall[e->session] += one;
        n[e->session]++;
    }
    for (size_t i = 0; i < set->n_sessions; i++) recall[i] = n[i] ? recall[i] / n[i] : NAN;
    free(n);
    return rc;
}
