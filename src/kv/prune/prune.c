/*
 * Pruned prefill (docs/kv.md, Pruned prefill; StructKV, sections 3.2 and 3.4): which fresh bulk is cut, who
 * chooses its rows that go above the cut, and the plan that says so. Until the question is there, everything
 * that follows the bulk stops at the cut too: it is `pending`. Then the question's queries in the layers
 * below the cut choose, and the chosen rows go up together with all that is no bulk.
 *
 * The scores are those of `compute.score` over the rows below the cut, so they cost the attention of a few
 * queries; nothing here is particular to a model. plan/deferred.c computes what the plan makes active.
 */
#include "kv/prune/prune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/core/work.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"
#include "kv/policy/policy.h"
#include "kv/prune/pivot.h"
#include "kv/repair/repair.h"
#include "kv/session.h"

/* What a layer's saliency still counts in the next one (StructKV, section 3.2). */
#define DECAY .9

/* --- where ---------------------------------------------------------------------------------------------- */

static uint32_t chosen_cut(const kv_session *s)
{
    const kv_parameters *p = &s->parameters;
    const uint32_t n_layer = s->compute.shape.n_layer;
    uint32_t cut = p->pivot >= 1 ? (uint32_t)p->pivot : (uint32_t)ceil(p->pivot * n_layer);
    if (p->pivot <= 0) cut = s->pivot ? kv_pivot_cut(s->pivot, KV_PIVOT_FLOOR, NULL) : 0;
    return cut && kv__cut_fits(&s->compute, cut) ? cut : 0;
}

static bool is_ours(const kv_session *s)
{
    return s->parameters.prune == KV_PRUNE_HEADS || s->parameters.prune == KV_PRUNE_EXCERPTS;
}

bool kv__is_bulk(const kv_session *s, const kv_segment *g, uint32_t n)
{
    const uint32_t all = g->bulk > n ? g->bulk : n;
    if (s->parameters.prune == KV_PRUNE_EXCERPTS &&
        (g->origin != KV_ORIGIN_CONTEXT || g->whole || !s->best_heads))
        return false;
    return (g->origin == KV_ORIGIN_CONTEXT || g->origin == KV_ORIGIN_TOOL) && all >= s->parameters.bulk;
}

uint32_t kv_session_next_cut(const kv_session *s)
{
    return s->parameters.prune > 0 && !s->policy->heavy ? chosen_cut(s) : 0;
}

bool kv_session_cannot_cut(const kv_session *s)
{
    return s->parameters.prune > 0 && !s->policy->heavy && (s->parameters.pivot > 0 || s->pivot) &&
           !chosen_cut(s);
}

uint32_t kv__prune_cut(const kv_session *s, const kv_segment *g, uint32_t n, bool wants_logits)
{
    const uint32_t logged = g->lanes / s->compute.shape.n_head_kv;
    if (!s->automatic) return logged && kv__cut_fits(&s->compute, logged) ? logged : 0;
    if (s->pending != KV_NO_ROW) return s->cut[s->pending] ? s->cut[s->pending] : chosen_cut(s);
    if (s->parameters.prune <= 0 || wants_logits || s->policy->heavy || kv__is_local(s, g->origin)) return 0;
    return kv__is_bulk(s, g, n) ? chosen_cut(s) : 0;
}

bool kv__may_settle(const kv_session *s, const kv_segment *g)
{
    return g->origin == KV_ORIGIN_USER ||
           (g->origin == KV_ORIGIN_TOOL && (!s->has_request || s->request_turn == g->turn));
}

/* --- who asks ------------------------------------------------------------------------------------------- */

/* `most` of the signal's queries: evenly, or the last ones. */
static int take_queries(const kv_signal *from, uint32_t most, bool evenly, kv_signal *ret, base_err *err)
{
    uint32_t places[KV_RECENT_QUERIES];
    const uint32_t n = from->n < most ? from->n : most;
    for (uint32_t i = 0; i < n; i++)
        places[i] = evenly ? (uint32_t)((uint64_t)from->n * (2 * i + 1) / (2 * n)) : from->n - n + i;
    return kv_signal_pick(from, places, n, ret, err);
}

/* The request's last queries (the paper), or those of its names (ours), or the newest. n 0: none. */
static int find_asker(const kv_session *s, kv_signal *ret, base_err *err)
{
    const uint32_t most =
        s->parameters.asked < KV_RECENT_QUERIES ? (uint32_t)s->parameters.asked : KV_RECENT_QUERIES;
    const bool ours = is_ours(s);
    const kv_signal *from = ours && s->asked.n                    ? &s->asked
                            : s->waiting.origin == KV_ORIGIN_USER ? &s->waiting.kept
                            : s->has_request && s->request.n      ? &s->request
                                                                  : &s->waiting.kept;
    return take_queries(from, most, ours && s->asked.n, ret, err);
}

/* --- scores --------------------------------------------------------------------------------------------- */

/* What is scored and what comes of it. */
typedef struct choice {
    kv_work memory;
    uint32_t cut, n_optional;
    uint64_t *optional, *chosen; /* [bits of n] rows of bulk; those of them that go up */
    uint8_t *hard;               /* [n] kv_hard */
    float *score;                /* [n] NAN: not optional */
    uint32_t *order;             /* [n] */
    kv_signal asker;
} choice;

static void choice_free(choice *c)
{
    kv_work_free(&c->memory);
    kv_signal_fini(&c->asker);
}

/* Who asks which rows of which layers. */
typedef struct layers_asked {
    const kv_signal *asker;
    const model_lane_list *lists;
    uint32_t from, to; /* layers */
    model_pool pool;
    const uint8_t *heads; /* NULL: all of them */
} layers_asked;

/* Masses of these layers by ordinal of their lists; *ret is `memory`'s. */
static int score_layers(kv_session *s, const layers_asked *of, kv_work *memory, float ***ret,
    const atomic_bool *cancel, base_err *err)
{
    const uint32_t per_layer = s->compute.shape.n_head_kv;
    *ret = kv_work_masses(memory, of->lists, s->n_lanes, of->from * per_layer, of->to * per_layer);
    if (memory->failed) return kv_fail_to_score(err, s->n);
    const model_rows_view view = kv__view_of(s, of->lists);
    const model_score score = {.queries = of->asker->queries,
        .n_queries = of->asker->n,
        .tokens = of->asker->tokens,
        .rows = &view,
        .pool = of->pool,
        .heads = of->heads,
        .end = s->n,
        .mass = *ret,
        .cancel = cancel};
    return kv__score(s, &score, err);
}

/* Adds one layer's saliency by token (StructKV, equation 2); what is there counts `decay` of itself. */
static void add_saliency(const kv_session *s, uint32_t layer, const model_lane_list *lists,
    float *const *mass, double decay, float *sum)
{
    const uint32_t per_layer = s->compute.shape.n_head_kv, group = s->compute.n_head / per_layer;
    for (uint32_t t = 0; t < s->n; t++) sum[t] = (float)(decay * sum[t]);
    for (uint32_t lane = layer * per_layer; lane < (layer + 1) * per_layer; lane++)
        for (uint32_t r = 0, o = 0; r < lists[lane].n_runs; r++)
            for (uint32_t i = 0; i < lists[lane].runs[r].n; i++, o++)
                sum[lists[lane].runs[r].index + i] += (float)group * mass[lane][o];
}

/* Saliency of the layers [from, cut), added up, as the choice's scores. */
static int sum_saliency(
    kv_session *s, choice *c, uint32_t from, double decay, const atomic_bool *cancel, base_err *err)
{
    const layers_asked below = {
        .asker = &c->asker, .lists = s->lists.view, .from = from, .to = c->cut, .pool = MODEL_POOL_MEAN};
    kv_work memory = {NULL};
    float **mass = NULL;
    int rc = score_layers(s, &below, &memory, &mass, cancel, err);
    memset(c->score, 0, s->n * sizeof *c->score);
    for (uint32_t layer = from; layer < c->cut && !rc; layer++)
        add_saliency(s, layer, s->lists.view, mass, decay, c->score);
    kv_work_free(&memory);
    return rc;
}

/* Each becomes the mean of its neighbours, clipped at the ends. */
static int pool_mean(float *x, uint32_t n, uint32_t half, base_err *err)
{
    float *in = malloc(((size_t)n + 1) * sizeof *in);
    if (!in) return kv_fail_to_score(err, n);
    memcpy(in, x, n * sizeof *in);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = i > half ? i - half : 0, to = n - i > half + 1 ? i + half + 1 : n;
        float sum = 0;
        for (uint32_t k = from; k < to; k++) sum += in[k];
        x[i] = sum / (float)(to - from);
    }
    free(in);
    return 0;
}

/* Ours: mean over the heads that count of the largest mass any query gives, among the bulk's rows alone. */
static int score_heads(kv_session *s, choice *c, const atomic_bool *cancel, base_err *err)
{
    const uint32_t group = s->compute.n_head / s->compute.shape.n_head_kv,
                   n_below = c->cut * s->compute.shape.n_head_kv;
    uint32_t n_runs = 0, n_rows = 0, total = 0;
    model_run *runs = kv_runs_of_bits(c->optional, s->n, &n_runs, &n_rows);
    kv_work memory = {NULL};
    model_lane_list *lists = kv_work_zero(&memory, s->n_lanes, sizeof *lists);
    uint8_t *heads = kv_work_zero(&memory, (size_t)s->compute.shape.n_layer * s->compute.n_head, 1);
    float **mass = NULL;
    int rc = runs && !memory.failed ? 0 : kv_fail_to_score(err, n_rows);
    if (!rc) kv__heads_below(s, c->cut, KV_HEADS_BELOW, heads);
    for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++)
        lists[lane] = (model_lane_list){.runs = runs, .n_runs = n_runs, .n_rows = n_rows};
    const layers_asked below = {
        .asker = &c->asker, .lists = lists, .to = c->cut, .pool = MODEL_POOL_MAX, .heads = heads};
    if (!rc) rc = score_layers(s, &below, &memory, &mass, cancel, err);
    memset(c->score, 0, s->n * sizeof *c->score);
    for (uint32_t lane = 0; lane < n_below && !rc; lane++) {
        uint32_t n_heads = 0;
        for (uint32_t g = 0; g < group; g++) n_heads += heads[(size_t)lane * group + g];
        total += n_heads;
        for (uint32_t run = 0, o = 0; run < n_runs && n_heads; run++)
            for (uint32_t i = 0; i < runs[run].n; i++, o++)
                c->score[runs[run].index + i] += (float)n_heads * mass[lane][o];
    }
    for (uint32_t t = 0; t < s->n && total && !rc; t++) c->score[t] /= (float)total;
    free(runs);
    kv_work_free(&memory);
    return rc;
}

static int score_optional(kv_session *s, choice *c, const atomic_bool *cancel, base_err *err)
{
    const kv_parameters *p = &s->parameters;
    int rc = 0;
    switch ((int)p->prune) {
    case KV_PRUNE_EXCERPTS:
    case KV_PRUNE_HEADS: rc = score_heads(s, c, cancel, err); break;
    case KV_PRUNE_CENTRALITY: rc = sum_saliency(s, c, 0, DECAY, cancel, err); break;
    default:
        rc = sum_saliency(s, c, c->cut - 1, 1, cancel, err);
        if (!rc && p->prune == KV_PRUNE_LAYER) rc = pool_mean(c->score, s->n, (uint32_t)p->kernel / 2, err);
        break;
    }
    for (uint32_t t = 0; t < s->n && !rc; t++)
        if (!kv_bits_get(c->optional, t)) c->score[t] = NAN;
    return rc;
}

/* --- the choice ----------------------------------------------------------------------------------------- */

/* Rows of [from, to) that would be chosen in addition. */
static uint32_t n_new(const choice *c, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t t = from; t < to; t++) n += kv_bits_get(c->optional, t) && !kv_bits_get(c->chosen, t);
    return n;
}

/* The signature above the row, so that a line is read with its function's name. False: there is none. */
static bool find_signature(const kv_session *s, uint32_t t, uint32_t *from, uint32_t *to)
{
    const kv_stored_segment *part = kv__segment_at(s, t);
    const kv_span *best = NULL;
    for (uint32_t i = 0; i < part->n_spans; i++) {
        const kv_span *span = &part->spans[i];
        if (span->reason == KV_REASON_SIGNATURE && part->from + span->from <= t &&
            (!best || span->from > best->from))
            best = span;
    }
    if (!best) return false;
    *from = part->from + best->from;
    *to = part->from + best->to;
    return true;
}

/* Those of the rows that may go up do; their number. */
static uint32_t take(choice *c, uint32_t from, uint32_t to)
{
    const uint32_t n = n_new(c, from, to);
    for (uint32_t t = from; t < to; t++)
        if (kv_bits_get(c->optional, t)) kv_bits_set(c->chosen, t);
    return n;
}

/*
 * The best rows (with ours whole lines and the signatures they stand behind), as many as the share that goes up; a first
 * line that is longer is cut around its row.
 */
static int choose(kv_session *s, choice *c, base_err *err)
{
    const bool lines = is_ours(s);
    uint32_t room = (uint32_t)ceil(s->parameters.keep * c->n_optional);
    if (kv_ranker_reserve(&s->ranker, s->n))
        return base_fail(err, BASE_E_NOMEM, "no memory to rank %u rows", s->n);
    kv_rank(&s->ranker, c->score, NULL, s->n, c->order);
    for (uint32_t rank = 0; rank < c->n_optional && room; rank++) {
        const uint32_t t = c->order[rank];
        uint32_t from = t, to = t + 1, name_from, name_to;
        if (kv_bits_get(c->chosen, t)) continue;
        if (lines) kv__grow(s, t, &from, &to);
        uint32_t cost = n_new(c, from, to);
        if (cost > room && rank) continue;
        while (cost > room && to > t + 1) cost = n_new(c, from, --to);
        while (cost > room && from < t) cost = n_new(c, ++from, to);
        room -= take(c, from, to);
        if (lines && s->parameters.frame > 0 && find_signature(s, t, &name_from, &name_to) &&
            n_new(c, name_from, name_to) <= room)
            room -= take(c, name_from, name_to);
    }
    return 0;
}

static int choice_init(choice *c, kv_session *s, base_err *err)
{
    const size_t n = (size_t)s->n + 1;
    kv_work memory = {NULL};
    *c = (choice){.optional = kv_work_zero(&memory, kv_bits_words(n), sizeof(uint64_t)),
        .chosen = kv_work_zero(&memory, kv_bits_words(n), sizeof(uint64_t)),
        .hard = kv_work_take(&memory, n, 1),
        .score = kv_work_zero(&memory, n, sizeof(float)),
        .order = kv_work_take(&memory, n, sizeof(uint32_t))};
    c->memory = memory;
    if (memory.failed) return base_fail(err, BASE_E_NOMEM, "no memory to choose among %u rows", s->n);
    c->cut = s->compute.shape.n_layer;
    kv__protect(s, c->hard);
    for (uint32_t t = s->pending; t < s->n; t++) {
        if (!s->cut[t]) continue;
        if (s->cut[t] < c->cut) c->cut = s->cut[t];
        if (kv__segment_at(s, t)->is_bulk && !c->hard[t]) {
            kv_bits_set(c->optional, t);
            c->n_optional++;
        }
    }
    return find_asker(s, &c->asker, err);
}

/* --- the plan ------------------------------------------------------------------------------------------- */

static bool may_rise(const kv_session *s, uint32_t t)
{
    return s->cut[t] && !kv_bits_get(s->barred, t) && !kv_bits_get(s->stale, t) && !kv_bits_get(s->lost, t);
}

static kv_plan *make_plan(const kv_session *s, const choice *c)
{
    kv_plan *p = kv_plan_new(s->epoch, KV_CAUSE_PRUNE, s->n, s->n_lanes);
    const uint32_t n_words = (s->n + 63) / 64;
    if (!p) return NULL;
    p->deferred = base_xcalloc(n_words + 1, sizeof *p->deferred);
    for (uint32_t t = s->pending; t < s->n; t++) {
        if (!s->cut[t]) continue;
        const uint32_t above = kv__whole_from(s, s->cut[t]);
        const bool optional = kv_bits_get(c->optional, t);
        if (!may_rise(s, t) || (optional && !kv_bits_get(c->chosen, t))) {
            kv_bits_set(p->deferred, t);
            kv_plan_add_run(p, t, t + 1, KV_DEFER, KV_REASON_CENTRALITY, above);
            continue;
        }
        for (uint32_t lane = (uint32_t)s->cut[t] * s->compute.shape.n_head_kv; lane < s->n_lanes; lane++)
            kv_bits_set(p->flips + (size_t)lane * n_words, t);
        if (optional)
            kv_plan_add_run(p, t, t + 1, KV_KEEP, KV_REASON_CENTRALITY, above);
        else
            kv_plan_add_run(p, t, t + 1, KV_PROTECT,
                c->hard[t] ? kv__hard_reason((kv_hard)c->hard[t]) : KV_REASON_REQUEST, above);
    }
    return p;
}

/*
 * What each layer keeps of what was computed in it (the paper's R_KV): its own saliency chooses among the
 * bulk's rows. With prune=last the chosen rows alone stay, in every layer.
 */
static int store_rows(
    kv_session *s, const choice *c, const kv_signal *asker, const atomic_bool *cancel, base_err *err)
{
    const bool last = s->parameters.prune == KV_PRUNE_LAST;
    const uint32_t per_layer = s->compute.shape.n_head_kv, n_layer = s->compute.shape.n_layer;
    const uint32_t room = (uint32_t)ceil(s->parameters.stored * c->n_optional);
    if (s->parameters.stored >= 1 && !last) return 0;
    const uint64_t start = base_clock_ns();
    kv_plan *p = kv_plan_new(s->epoch, KV_CAUSE_PRUNE, s->n, s->n_lanes);
    if (!p) return base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    const uint32_t n_words = kv_plan_words(p);
    kv_work memory = {NULL};
    float **mass = NULL;
    const layers_asked all = {.asker = asker, .lists = s->lists.view, .to = n_layer, .pool = MODEL_POOL_MEAN};
    int rc = last ? 0 : score_layers(s, &all, &memory, &mass, cancel, err);
    for (uint32_t layer = 0; layer < n_layer && !rc; layer++) {
        if (kv__window(s, layer * per_layer)) continue;
        memset(c->score, 0, s->n * sizeof *c->score);
        if (!last) add_saliency(s, layer, s->lists.view, mass, 1, c->score);
        for (uint32_t t = 0; t < s->n; t++) {
            bool here = false;
            for (uint32_t lane = layer * per_layer; lane < (layer + 1) * per_layer; lane++)
                here = here || kv_bits_get(s->lists.lane[lane]->bits, t);
            if (!here || !kv_bits_get(c->optional, t)) c->score[t] = NAN;
        }
        kv_rank(&s->ranker, c->score, NULL, s->n, c->order);
        for (uint32_t rank = 0; rank < c->n_optional; rank++) {
            const uint32_t t = c->order[rank];
            if (!(c->score[t] == c->score[t])) break;
            if (last ? kv_bits_get(c->chosen, t) : rank < room) continue;
            for (uint32_t lane = layer * per_layer; lane < (layer + 1) * per_layer; lane++)
                if (kv_bits_get(s->lists.lane[lane]->bits, t))
                    kv_bits_set(p->flips + (size_t)lane * n_words, t);
        }
    }
    if (!rc) {
        kv__describe_flips(s, p, NULL, KV_REASON_ATTENTION, KV_REASON_ATTENTION);
        p->score_ms = (double)(base_clock_ns() - start) / 1e6;
        s->score_ms += p->score_ms;
        rc = kv__apply(s, p, true, cancel, err);
    }
    kv_plan_free(p);
    kv_work_free(&memory);
    return rc;
}

int kv__settled(kv_session *s, base_err *err)
{
    if (s->pending == KV_NO_ROW) return 0;
    s->judged_from = s->pending;
    s->judged_to = s->n;
    s->pending = KV_NO_ROW;
    kv_waiting *w = &s->waiting;
    uint32_t places[2 * KV_RECENT_QUERIES], n = 0;
    kv_signal whole;
    for (uint32_t i = 0; i < w->kept.n && n < 2 * KV_RECENT_QUERIES; i++)
        if (!s->cut[w->kept.tokens[i]])
            places[n++] = i; /* of a row that stays below there are no queries above */
    int rc = n ? kv_signal_pick(&w->kept, places, n, &whole, err) : 0;
    if (!rc && n) {
        rc = kv__take_signal(s, w->origin, w->turn, w->is_whole, &whole, err);
        kv_signal_fini(&whole);
    }
    kv_signal_fini(&w->kept);
    return rc;
}

int kv__settle(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    choice c = {0};
    kv_plan *plan = NULL;
    const uint64_t start = base_clock_ns();
    int rc = choice_init(&c, s, err);
    const bool asks = !rc && c.asker.n;
    if (!rc && asks && c.n_optional) rc = score_optional(s, &c, cancel, err);
    const double score_ms = (double)(base_clock_ns() - start) / 1e6;
    if (!rc && asks && c.n_optional) rc = choose(s, &c, err);
    if (!rc && !asks) memcpy(c.chosen, c.optional, kv_bits_words(s->n) * sizeof *c.chosen);
    if (!rc) {
        plan = make_plan(s, &c);
        if (!plan) rc = base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    }
    if (!rc) {
        plan->score_ms = score_ms;
        plan->plan_ms = (double)(base_clock_ns() - start) / 1e6 - score_ms;
        s->score_ms += plan->score_ms;
        s->plan_ms += plan->plan_ms;
        const uint64_t before = s->epoch;
        rc = kv__apply(s, plan, true, cancel, err);
        if (!rc && s->epoch != before) rc = kv__settled(s, err);
    }
    kv_plan_free(plan);
    if (!rc && asks && c.n_optional) {
        /* Its upper layers are there now. */
        kv_signal_fini(&c.asker);
        const kv_signal *whole = s->recent.n && s->request.n == 0 ? &s->recent : &s->request;
        const uint32_t most =
            s->parameters.asked < KV_RECENT_QUERIES ? (uint32_t)s->parameters.asked : KV_RECENT_QUERIES;
        rc = take_queries(whole, most, false, &c.asker, err);
        if (!rc && c.asker.n) rc = store_rows(s, &c, &c.asker, cancel, err);
    }
    choice_free(&c);
    return rc;
}
