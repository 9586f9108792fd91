/* The choice of who visits a token; see visit.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "kv/core/state.h"
#include "kv/core/work.h"
#include "kv/read/reading.h"
#include "kv/read/rest.h"
#include "kv/read/visit.h"
#include "kv/session.h"

enum { VISITORS_MOST = KV_BATCH / 2 }; /* so that even the smallest budget keeps as many for ordinary rows */

typedef struct candidate {
    float mass;
    uint32_t token;
} candidate;

struct kv_visit {
    kv_session *session;
    uint32_t cap; /* tokens that what follows has room for */
    kv_work memory;
    model_reader reader;

    /* The batch at hand: its lists, and one list of what its tokens weigh, up to their own rows. */
    const model_rows_view *rows;
    uint32_t first;
    uint64_t *bits; /* [bits of cap] */
    model_run *runs;
    uint32_t tail, n_before;  /* the first run that ends with the batch's rows, and the rows before it */
    model_lane_list *weighed; /* [n_lanes] */
    float **mass;             /* [n_lanes], this layer's in values */
    float *values;            /* [n_head_kv][cap] */
    model_rows_view weighed_view, chosen_view;

    candidate *found;       /* [cap] evicted rows of one lane */
    candidate *close;       /* [cap] those about the cut */
    model_run *chosen;      /* [n_head_kv][2 * cap] */
    model_lane_list *lists; /* [n_lanes] */

    kv_rest *rest;
    uint64_t *out;   /* [blocks of cap] of one lane: rows that are weighed and not on its list */
    float *left_out; /* [blocks of cap] mass of those that do not visit either */
    float *others;   /* [n_head_kv][head_dim] */

    uint32_t *counts; /* [cap] row-lanes that visited, by token */
    kv_visits sums;
};

void kv__visit_free(kv_visit *v)
{
    if (!v) return;
    free(v->runs);
    kv_rest_free(v->rest);
    kv_work_free(&v->memory);
    free(v);
}

static int make(kv_session *s, base_err *err)
{
    const size_t n = (size_t)s->cap + 1, n_kv = s->compute.shape.n_head_kv;
    kv_visit *v = calloc(1, sizeof *v);
    if (!v) return base_fail(err, BASE_E_NOMEM, "no memory for the rows that visit a token");
    v->session = s;
    v->cap = s->cap;
    v->bits = kv_work_zero(&v->memory, kv_bits_words(n), sizeof *v->bits);
    v->weighed = kv_work_zero(&v->memory, s->n_lanes, sizeof *v->weighed);
    v->mass = kv_work_zero(&v->memory, s->n_lanes, sizeof *v->mass);
    v->values = kv_work_take(&v->memory, n_kv * n, sizeof *v->values);
    v->found = kv_work_take(&v->memory, n, sizeof *v->found);
    v->close = kv_work_take(&v->memory, n, sizeof *v->close);
    v->chosen = kv_work_take(&v->memory, n_kv * 2 * n, sizeof *v->chosen);
    v->lists = kv_work_zero(&v->memory, s->n_lanes, sizeof *v->lists);
    v->counts = kv_work_zero(&v->memory, n, sizeof *v->counts);
    v->rest = kv_rest_new(&s->compute.shape, s->cap);
    v->out = kv_work_take(&v->memory, kv_bits_words(n), sizeof *v->out);
    v->left_out = kv_work_take(&v->memory, kv_bits_words(n), sizeof *v->left_out);
    v->others = kv_work_take(&v->memory, n_kv * s->compute.shape.head_dim, sizeof *v->others);
    if (v->memory.failed || !v->rest) {
        kv__visit_free(v);
        return base_fail(err, BASE_E_NOMEM, "no memory for the rows that visit a token");
    }
    s->visit = v;
    return 0;
}

/* Room for as many tokens as the session has room for; what was counted stays. */
static int grow(kv_session *s, base_err *err)
{
    kv_visit *old = s->visit;
    const int rc = make(s, err);
    if (rc || !old) return rc;
    memcpy(s->visit->counts, old->counts, old->cap * sizeof *old->counts);
    s->visit->sums = old->sums;
    kv__visit_free(old);
    return 0;
}

uint32_t kv__visitors(const kv_session *s)
{
    const uint32_t n = (uint32_t)ceil(s->parameters.visit * s->budget);
    return n < VISITORS_MOST ? n : VISITORS_MOST;
}

/* --- the choice ----------------------------------------------------------------------------------------- */

/* Numbers that are not negative ascend with their bits: sign, exponent and three digits of the fraction. */
enum { STEPS = 2048 };
static uint32_t step_of(float mass)
{
    uint32_t bits;
    memcpy(&bits, &mass, sizeof bits);
    return bits >> 20;
}

static int compare_candidates(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->mass != y->mass) return x->mass > y->mass ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

/* What is weighed and not on the list; steps counts them. */
static uint32_t find_evicted(kv_visit *v, const model_lane_list *weighed, const float *mass,
    const model_lane_list *list, uint32_t *steps)
{
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < weighed->n_runs; mass += weighed->runs[i++].n)
        for (uint32_t k = 0; k < weighed->runs[i].n;) {
            const uint32_t t = weighed->runs[i].index + k;
            while (at < list->n_runs && list->runs[at].index + list->runs[at].n <= t) at++;
            if (at < list->n_runs && list->runs[at].index <= t) {
                k = list->runs[at].index + list->runs[at].n - weighed->runs[i].index;
                continue;
            }
            steps[step_of(mass[k])]++;
            kv_bits_set(v->out, t);
            v->found[n++] = (candidate){mass[k], t};
            k++;
        }
    return n;
}

/* Keeps the best of n found rows, as many as may visit; ties: the earlier. Adds up the others. */
static uint32_t take_best(kv_visit *v, uint32_t n, const uint32_t *steps)
{
    const uint32_t most = kv__visitors(v->session);
    if (n <= most) return n;
    uint32_t step = STEPS - 1, room = most, n_close = 0, taken = 0;
    for (; steps[step] <= room; step--) room -= steps[step];
    for (uint32_t i = 0; i < n; i++)
        if (step_of(v->found[i].mass) == step) v->close[n_close++] = v->found[i];
    qsort(v->close, n_close, sizeof *v->close, compare_candidates);
    for (uint32_t i = 0; i < n; i++) {
        const candidate c = v->found[i];
        const uint32_t own = step_of(c.mass);
        if (own > step || (own == step && compare_candidates(&c, &v->close[room]) < 0))
            v->found[taken++] = c;
        else
            v->left_out[c.token / KV_REST_BLOCK] += c.mass;
    }
    return taken;
}

/* The list up to token `own`, with the first n of those found at their places. */
static void merge(
    kv_visit *v, const model_lane_list *list, uint32_t own, uint32_t n, model_run *runs, model_lane_list *ret)
{
    uint32_t next = 0;
    *ret = (model_lane_list){.runs = runs};
    for (uint32_t i = 0; i < list->n_runs && list->runs[i].index <= own; i++) {
        for (; next < n && v->found[next].token < list->runs[i].index; next++) {
            const uint32_t t = v->found[next].token;
            model_run *last = ret->n_runs ? &runs[ret->n_runs - 1] : NULL;
            if (last && last->slot + last->n == t && t % MODEL_ROWS_BLOCK)
                last->n++;
            else
                runs[ret->n_runs++] = (model_run){.slot = t, .index = t, .n = 1};
            ret->n_rows++;
            v->counts[t]++;
        }
        model_run run = list->runs[i];
        if (run.index + run.n > own + 1) run.n = own + 1 - run.index;
        runs[ret->n_runs++] = run;
        ret->n_rows += run.n;
    }
}

static int choose(void *user, uint32_t layer, uint32_t token, const model_rows_view **ret, base_err *err)
{
    kv_visit *v = user;
    const kv_session *s = v->session;
    const uint32_t n_kv = s->compute.shape.n_head_kv;
    (void)err;
    for (uint32_t head = 0; head < n_kv; head++) {
        const uint32_t lane = layer * n_kv + head;
        uint32_t steps[STEPS] = {0};
        const uint32_t n_blocks = (v->first + token) / KV_REST_BLOCK + 1, d = s->compute.shape.head_dim;
        memset(v->out, 0, n_blocks * sizeof *v->out);
        memset(v->left_out, 0, n_blocks * sizeof *v->left_out);
        uint32_t n = find_evicted(v, &v->weighed[lane], v->mass[lane], &v->rows->lanes[lane], steps);
        n = take_best(v, n, steps);
        if (s->parameters.rest > 0)
            kv_rest_mean(v->rest, v->rows, lane, v->out, v->left_out, n_blocks, v->others + (size_t)head * d);
        merge(v, &v->rows->lanes[lane], v->first + token, n, v->chosen + (size_t)head * 2 * v->cap,
            &v->lists[lane]);
        v->sums.rows += n;
    }
    *ret = &v->chosen_view;
    return 0;
}

/* The batch's runs end with their blocks; the last one that the token sees ends with its own row. */
static int weigh(void *user, uint32_t layer, uint32_t token, model_weighing *ret, base_err *err)
{
    kv_visit *v = user;
    const kv_session *s = v->session;
    const uint32_t n_kv = s->compute.shape.n_head_kv, own = v->first + token;
    uint32_t n_rows = v->n_before, at = v->tail;
    (void)err;
    while (own / MODEL_ROWS_BLOCK > v->runs[at].index / MODEL_ROWS_BLOCK) {
        v->runs[at].n = (v->runs[at].index / MODEL_ROWS_BLOCK + 1) * MODEL_ROWS_BLOCK - v->runs[at].index;
        n_rows += v->runs[at++].n;
    }
    v->runs[at].n = own + 1 - v->runs[at].index;
    memset(v->mass, 0, s->n_lanes * sizeof *v->mass);
    for (uint32_t head = 0; head < n_kv; head++) {
        const uint32_t lane = layer * n_kv + head;
        v->weighed[lane] =
            (model_lane_list){.runs = v->runs, .n_runs = at + 1, .n_rows = n_rows + v->runs[at].n};
        v->mass[lane] = v->values + (size_t)head * v->cap;
    }
    *ret = (model_weighing){
        .rows = &v->weighed_view, .mass = v->mass, .others = s->parameters.rest > 0 ? v->others : NULL};
    return 0;
}

/* --- the batch ------------------------------------------------------------------------------------------ */

/* Rows before `first` that a token may read; how many. Blocks in 8 bits are scored only. */
static uint32_t find_weighed(kv_visit *v, uint32_t first)
{
    const kv_session *s = v->session;
    const size_t n_words = kv_bits_words(v->cap);
    for (size_t w = 0; w < n_words; w++)
        v->bits[w] = kv_bits_mask(w, 0, first) & ~(s->barred[w] | s->stale[w] | s->dead[w]);
    for (uint32_t t = 0; t < first; t++)
        if (s->cut[t]) kv_bits_clear(v->bits, t);
    for (uint32_t b = 0; v->rows->packed && b * MODEL_ROWS_BLOCK < first; b++)
        if (v->rows->packed[b])
            kv_bits_clear_range(v->bits, b * MODEL_ROWS_BLOCK, (b + 1) * MODEL_ROWS_BLOCK);
    return kv_bits_count(v->bits, n_words);
}

/* Runs of what is found, and behind them the batch's own rows, wherever they are written. */
static int list_weighed(kv_visit *v, uint32_t first, uint32_t n, base_err *err)
{
    const model_lane_list *list = &v->rows->lanes[0];
    uint32_t own = list->n_runs;
    while (own > 0 && list->runs[own - 1].index + list->runs[own - 1].n > first) own--;
    const uint32_t slot = list->runs[own].slot + (first - list->runs[own].index);
    free(v->runs);
    model_run *found = kv_runs_of_bits(v->bits, first, &v->tail, &v->n_before);
    v->runs = found ? realloc(found, (v->tail + n / MODEL_ROWS_BLOCK + 2) * sizeof *found) : NULL;
    if (!v->runs) {
        free(found);
        return base_fail(err, BASE_E_NOMEM, "no memory for the rows that visit a token");
    }
    for (uint32_t at = first, i = v->tail; at < first + n; i++) {
        const uint32_t end = (at / MODEL_ROWS_BLOCK + 1) * MODEL_ROWS_BLOCK;
        v->runs[i] = (model_run){.slot = slot + (at - first), .index = at, .n = end - at};
        at = end;
    }
    return 0;
}

static bool anybody_out(const kv_visit *v, uint32_t n_found, uint32_t n)
{
    for (uint32_t lane = 0; lane < v->session->n_lanes; lane++)
        if (v->rows->lanes[lane].n_rows - n < n_found) return true;
    return false;
}

static int begin(kv_session *s, const model_rows_view *rows, uint32_t first, uint32_t n,
    const model_reader **ret, base_err *err)
{
    int rc = s->visit && s->visit->cap >= s->cap ? 0 : grow(s, err);
    if (rc) return rc;
    kv_visit *v = s->visit;
    v->rows = rows;
    v->first = first;
    if (!anybody_out(v, find_weighed(v, first), n)) return 0;
    rc = list_weighed(v, first, n, err);
    if (rc) return rc;
    v->weighed_view = v->chosen_view = *rows;
    v->weighed_view.lanes = v->weighed;
    v->chosen_view.lanes = v->lists;
    v->reader = (model_reader){.user = v, .weigh = weigh, .choose = choose};
    v->sums.tokens += n;
    *ret = &v->reader;
    return 0;
}

/* Tokens from `first` on; answers that were computed again are below read_to. */
static bool is_visited(const kv_session *s, kv_origin origin, uint32_t first)
{
    return kv__visitors(s) &&
           (origin != KV_ORIGIN_ANSWER || first < s->read_to || s->parameters.visited >= KV_VISITED_ALL);
}

int kv__reader_begin(kv_session *s, const model_rows_view *rows, kv_origin origin, const int32_t *ids,
    uint32_t first, uint32_t n, const model_reader **ret, base_err *err)
{
    *ret = NULL;
    int rc = 0;
    if (is_visited(s, origin, first)) rc = begin(s, rows, first, n, ret, err);
    /* What is computed again reads its whole list. */
    if (!rc && !*ret && kv_origin_is_written(origin) && first >= s->read_to)
        rc = kv__reading_begin(s, rows, ids, first, n, ret, err);
    return rc;
}

void kv__visit_publish(kv_session *s, uint32_t n)
{
    if (!s->holed || !is_visited(s, s->segments[s->n_segments - 1].origin, s->n - n)) return;
    for (uint32_t t = s->n - n; t < s->n; t++) {
        const uint32_t schedule[] = {t, kv__visitors(s), s->parameters.rest > 0, KV_EVENT_VISITED};
        s->schedule = base_hash64(schedule, sizeof schedule, s->schedule);
    }
}

void kv__visit_truncate(kv_session *s, uint32_t n)
{
    if (s->visit) kv_rest_forget(s->visit->rest, n);
}

void kv_session_take_visits(kv_session *s, kv_visits *ret, uint32_t *counts)
{
    *ret = (kv_visits){.tokens = 0};
    for (uint32_t t = 0; t < s->n && counts; t++)
        counts[t] = s->visit && t < s->visit->cap ? s->visit->counts[t] : 0;
    if (!s->visit) return;
    *ret = s->visit->sums;
    s->visit->sums = (kv_visits){.tokens = 0};
    memset(s->visit->counts, 0, s->visit->cap * sizeof *s->visit->counts);
}
