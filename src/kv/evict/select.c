/*
 * One eviction pass. The policy scores the active rows; then each lane keeps, down to its target, first the
 * hard rows, then of each segment as many as the scores alone would (its best rows first, then a share that program
 * structure chooses: whole spans by their mass), then the best of the rest. What differs from the live list becomes a plan (docs/kv.md, One
 * pipeline).
 *
 * Everything that decides runs here, on the CPU, in one order, so equal scores give equal plans on every
 * machine.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kv/core/state.h"
#include "kv/core/work.h"
#include "kv/evict/evict.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"
#include "kv/policy/policy.h"
#include "kv/policy/structure.h"
#include "kv/read/visit.h"

/* A soft span of the sequence. */
typedef struct soft_span {
    uint32_t from, to;
    float weight,
        mean; /* weight: as its maker gave it, marked ones none; mean: of its active rows' scores in the lane at hand */
    uint8_t reason;
    uint32_t part;
} soft_span;

/* Everything that one pass needs. */
typedef struct work {
    kv_work memory;
    uint8_t *hard;        /* [n] kv_hard */
    uint32_t *kept_soft;  /* [n] lanes that kept the token as soft */
    uint8_t *soft_reason; /* [n] */
    float *attention, *recall, *rank, *threshold,
        *previous;           /* [n] sums over lanes; previous: copy for ties */
    uint32_t *n_ranked;      /* [n] lanes in which the token was ranked */
    float **score;           /* [n_lanes][n_rows] */
    uint32_t *ordinal_of;    /* [n] by token, where it is active in the lane at hand */
    uint32_t *token, *order; /* [n] of one lane: token of each ordinal; ordinals by score */
    float *tie;              /* [n] previous score by ordinal */
    uint8_t *taken;          /* [n] by ordinal */
    float *by_token;         /* [n] score by token in one lane, NAN when not active */
    uint32_t *segment_of;    /* [n] the segment of a token */
    uint32_t *left; /* [n_segments] rows that the segment still gets in this lane, by the scores' sharing */
    uint32_t *room; /* [n_segments] how many of them structure may choose */
    soft_span *spans;
    size_t n_spans;
} work;

static int work_init(work *w, const kv_session *s, kv_lists *lists, base_err *err)
{
    const size_t n = (size_t)s->n + 1;
    size_t n_spans = 0;
    for (size_t i = 0; i < s->n_segments; i++) n_spans += s->segments[i].n_spans;
    kv_work memory = {NULL};
    const int rc = kv__whole_lists(s, &memory, lists, err);
    *w = (work){
        .hard = kv_work_zero(&memory, n, 1),
        .kept_soft = kv_work_zero(&memory, n, sizeof(uint32_t)),
        .soft_reason = kv_work_zero(&memory, n, 1),
        .attention = kv_work_take(&memory, n, sizeof(float)),
        .recall = kv_work_take(&memory, n, sizeof(float)),
        .rank = kv_work_zero(&memory, n, sizeof(float)),
        .threshold = kv_work_zero(&memory, n, sizeof(float)),
        .previous = kv_work_take(&memory, n, sizeof(float)),
        .n_ranked = kv_work_zero(&memory, n, sizeof(uint32_t)),
        .score = rc ? NULL : kv_work_masses(&memory, lists->view, s->n_lanes, 0, s->n_lanes),
        .token = kv_work_take(&memory, n, sizeof(uint32_t)),
        .order = kv_work_take(&memory, n, sizeof(uint32_t)),
        .tie = kv_work_take(&memory, n, sizeof(float)),
        .taken = kv_work_take(&memory, n, 1),
        .by_token = kv_work_take(&memory, n, sizeof(float)),
        .segment_of = kv_work_take(&memory, n, sizeof(uint32_t)),
        .left = kv_work_take(&memory, s->n_segments + 1, sizeof(uint32_t)),
        .room = kv_work_take(&memory, s->n_segments + 1, sizeof(uint32_t)),
        .spans = kv_work_take(&memory, n_spans + 1, sizeof(soft_span)),
        .ordinal_of = kv_work_take(&memory, n, sizeof(uint32_t)),
    };
    w->memory = memory;
    if (rc) return rc;
    if (memory.failed) return base_fail(err, BASE_E_NOMEM, "no memory to choose among %u rows", s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        w->attention[i] = w->recall[i] = NAN;
        w->previous[i] = s->tokens[i].previous;
    }
    for (size_t i = 0; i < s->n_segments; i++) {
        for (uint32_t t = s->segments[i].from; t < s->segments[i].to; t++) w->segment_of[t] = (uint32_t)i;
        for (uint32_t k = 0; k < s->segments[i].n_spans; k++) {
            const kv_stored_segment *part = &s->segments[i];
            const kv_span *span = &part->spans[k];
            const uint32_t from = part->from + span->from,
                           to = part->from + span->to < part->to ? part->from + span->to : part->to;
            if (from < to)
                w->spans[w->n_spans++] = (soft_span){.from = from,
                    .to = to,
                    .weight = span->marks ? 0 : span->weight,
                    .reason = span->marks ? kv_span_reason(&s->parameters, span) : span->reason,
                    .part = (uint32_t)i};
        }
    }
    return 0;
}

static int compare_spans(const void *a, const void *b)
{
    const soft_span *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    if (x->mean != y->mean) return x->mean > y->mean ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Hard rows, a class at a time; in the class that no longer fits, by score. Returns how many. */
static uint32_t take_hard(const work *w, uint32_t n_rows, uint32_t target, uint32_t n_hard)
{
    uint32_t n = 0;
    for (uint32_t o = 0; o < n_rows; o++) w->taken[o] = n_hard <= target && w->hard[w->token[o]];
    if (n_hard <= target) return n_hard;
    for (int class = KV_HARD_PIN; class < KV_N_HARD; class ++)
        for (uint32_t i = 0; i < n_rows && n < target; i++)
            if (w->hard[w->token[w->order[i]]] == class) {
                w->taken[w->order[i]] = 1;
                n++;
            }
    return n;
}

/* Did a repair of this turn bring the token back? Then a pass right behind it must not undo that. */
static bool is_repaired(const kv_session *s, uint32_t t)
{
    const kv_token *token = &s->tokens[t];
    return token->last_turn == s->turn &&
           (token->last_action == KV_PROMOTE || token->last_action == KV_PROTECT) &&
           (token->last_reason == KV_REASON_REPAIR_ANCHOR || token->last_reason == KV_REASON_REPAIR_BURST);
}

/* What this turn's repairs brought back, the best first, up to `room` rows. */
static uint32_t take_repaired(const kv_session *s, work *w, uint32_t n_rows, uint32_t room)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_rows && n < room; i++) {
        const uint32_t o = w->order[i], t = w->token[o];
        if (w->taken[o] || !is_repaired(s, t)) continue;
        w->taken[o] = 1;
        w->kept_soft[t]++;
        w->soft_reason[t] = s->tokens[t].last_reason;
        n++;
    }
    return n;
}

/* How many of the next n_free rows by score lie in each segment. Structure has a share of them. */
static void share_rows(const kv_session *s, work *w, uint32_t n_rows, uint32_t n_free)
{
    for (size_t i = 0; i < s->n_segments; i++) w->left[i] = 0;
    for (uint32_t i = 0, n = 0; i < n_rows && n < n_free; i++) {
        const uint32_t o = w->order[i];
        if (w->taken[o]) continue;
        w->left[w->segment_of[w->token[o]]]++;
        n++;
    }
    for (size_t i = 0; i < s->n_segments; i++) w->room[i] = (uint32_t)(w->left[i] * s->parameters.soft);
}

/*
 * The rest of each segment's rows are its best ones. They choose first: behind structure they would fall on what no
 * span holds, and what stays would hold no more structure than rows drawn at random.
 */
static uint32_t take_attended(work *w, uint32_t n_rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_rows; i++) {
        const uint32_t o = w->order[i], part = w->segment_of[w->token[o]];
        if (w->taken[o] || w->left[part] <= w->room[part]) continue;
        w->taken[o] = 1;
        w->left[part]--;
        n++;
    }
    return n;
}

/* The span's rows, all of them or, with is_truncated, as many as its segment has room for. */
static uint32_t take_span(work *w, const soft_span *span, bool is_truncated)
{
    uint32_t wants = 0, n = 0, *room = &w->room[span->part];
    if (!*room) return 0;
    for (uint32_t t = span->from; t < span->to; t++)
        wants += w->by_token[t] == w->by_token[t] && !w->taken[w->ordinal_of[t]];
    if (wants > *room && !is_truncated) return 0;
    for (uint32_t t = span->from; t < span->to && n < *room; t++)
        if (w->by_token[t] == w->by_token[t] && !w->taken[w->ordinal_of[t]]) {
            w->taken[w->ordinal_of[t]] = 1;
            w->kept_soft[t]++;
            w->soft_reason[t] = span->reason;
            n++;
        }
    *room -= n;
    w->left[span->part] -= n;
    return n;
}

/* Spans by weight, then by mean score in this lane, whole ones first, while segments have room. */
static uint32_t take_soft(const kv_session *s, work *w, uint32_t n_rows, uint32_t n_free)
{
    uint32_t n = 0;
    if (!(s->parameters.soft > 0) || !w->n_spans) return 0;
    share_rows(s, w, n_rows, n_free);
    n += take_attended(w, n_rows);
    for (size_t i = 0; i < w->n_spans; i++) {
        soft_span *span = &w->spans[i];
        double sum = 0;
        uint32_t n_active = 0;
        for (uint32_t t = span->from; t < span->to; t++)
            if (w->by_token[t] == w->by_token[t]) {
                sum += w->by_token[t];
                n_active++;
            }
        span->mean = n_active ? (float)(sum / n_active) : -INFINITY;
    }
    qsort(w->spans, w->n_spans, sizeof *w->spans, compare_spans);
    for (size_t i = 0; i < w->n_spans; i++) n += take_span(w, &w->spans[i], false);
    /* Room for no whole span goes to the best one's first rows; what is left stays the segment's. */
    for (size_t i = 0; i < w->n_spans; i++) n += take_span(w, &w->spans[i], true);
    for (uint32_t i = 0; i < n_rows; i++) {
        const uint32_t o = w->order[i];
        uint32_t *left = &w->left[w->segment_of[w->token[o]]];
        if (w->taken[o] || !*left) continue;
        w->taken[o] = 1;
        --*left;
        n++;
    }
    return n;
}

/* Chooses in one lane and sets its flips. True when hard rows alone were too many. */
static bool select_lane(kv_session *s, work *w, uint32_t lane, uint32_t budget, uint64_t *flips)
{
    const model_lane_list *list = &s->lists.view[lane];
    const uint32_t n = list->n_rows;
    uint32_t n_hard = 0;
    for (uint32_t t = 0; t < s->n; t++) w->by_token[t] = NAN;
    for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
        for (uint32_t i = 0; i < list->runs[r].n; i++, o++) {
            const uint32_t t = list->runs[r].index + i;
            w->token[o] = t;
            w->ordinal_of[t] = o;
            w->tie[o] = w->previous[t];
            w->by_token[t] = w->score[lane][o] == w->score[lane][o] ? w->score[lane][o] : -INFINITY;
            n_hard += w->hard[t] != KV_HARD_NO;
        }
    kv_rank(&s->ranker, w->score[lane], w->tie, n, w->order);
    const uint32_t target = kv_pass_target(&s->parameters, budget, n_hard);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = w->token[w->order[i]];
        w->rank[t] += (float)i / (float)n;
        w->threshold[t] += n > target ? (float)target / (float)n : 1;
        w->n_ranked[t]++;
    }
    if (n <= target) return false;
    uint32_t kept = take_hard(w, n, target, n_hard);
    kept += take_repaired(s, w, n, (target - kept) / 2);
    kept += take_soft(s, w, n, target - kept);
    for (uint32_t i = 0; i < n && kept < target; i++) {
        const uint32_t o = w->order[i];
        kept += !w->taken[o];
        w->taken[o] = 1;
    }
    for (uint32_t o = 0; o < n; o++)
        if (!w->taken[o]) kv_bits_set(flips, w->token[o]);
    return n_hard > target;
}

/* What stayed because of a rule, as runs; of the lanes that were looked at. */
static void describe_protected(const kv_session *s, const work *w, kv_plan *p)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (w->hard[i])
            kv_plan_add_run(p, i, i + 1, KV_PROTECT, kv__hard_reason((kv_hard)w->hard[i]), s->n_whole);
        else if (w->kept_soft[i])
            kv_plan_add_run(p, i, i + 1, KV_PROTECT, (kv_reason)w->soft_reason[i], w->kept_soft[i]);
    }
}

/* Keeps what the pass saw, for /why, for ties and for the screen. */
static void remember(kv_session *s, const work *w)
{
    for (uint32_t i = 0; i < s->n; i++) {
        kv_token *t = &s->tokens[i];
        if (!w->n_ranked[i]) continue;
        const float lanes = (float)w->n_ranked[i];
        t->attention = w->attention[i] / lanes;
        t->memory = w->recall[i] / lanes;
        t->rank = w->rank[i] / lanes;
        t->threshold = w->threshold[i] / lanes;
        /* What structure protects was wanted: a repair that makes room takes other rows first. */
        t->previous = w->kept_soft[i] ? 0 : -t->rank;
    }
}

/* The session's memory of requests for this pass; once the session is folded, turned to the newest phase. */
static int take_memory(const kv_session *s, work *w, kv_pass *pass, base_err *err)
{
    if (!s->memory) return BASE_OK;
    pass->memory = s->memory->sum;
    pass->message = s->memory->message;
    if (!s->fold.n) return BASE_OK;
    float *sum = kv_work_take(&w->memory, kv__memory_floats(s), sizeof *sum);
    float *message = kv_work_take(&w->memory, kv__memory_floats(s), sizeof *message);
    if (w->memory.failed) return base_fail(err, BASE_E_NOMEM, "no memory for what was asked so far");
    kv__memory_now(s, sum, message);
    pass->memory = sum;
    pass->message = message;
    return BASE_OK;
}

/* The last answer: the last segments that the model wrote, as far as they are neighbours. */
static void find_answer(const kv_session *s, kv_pass *pass)
{
    for (size_t i = s->n_segments; i-- > 0;) {
        if (!kv_origin_is_written(s->segments[i].origin)) continue;
        if (pass->answer_to && s->segments[i].to < pass->answer_from) break;
        pass->answer_from = s->segments[i].from;
        if (!pass->answer_to) pass->answer_to = s->segments[i].to;
    }
}

/* Protects and scores: w has every lane's scores then. */
static int score(kv_session *s, work *w, const kv_lists *lists, uint32_t budget, const uint64_t *keep,
    const atomic_bool *cancel, base_err *err)
{
    kv__protect(s, w->hard);
    for (uint32_t i = 0; keep && i < s->n; i++)
        if (kv_bits_get(keep, i) && !w->hard[i]) w->hard[i] = KV_HARD_KEPT;
    const model_rows_view rows = kv__view_of(s, lists->view);
    kv_pass pass = {
        .compute = &s->compute,
        .lists = lists,
        .rows = &rows,
        .parameters = &s->parameters,
        .request = &s->request,
        .previous = w->previous,
        .residual = s->residual,
        .cancel = cancel,
        .ranker = &s->ranker,
        .segments = s->segments,
        .n_segments = s->n_segments,
        .hard = w->hard,
        .budget = budget,
        .kept = w->kept_soft,
        .kept_reason = w->soft_reason,
        .heavy = s->heavy,
        .heavy_stride = s->cap,
        .score = w->score,
        .attention = w->attention,
        .recall = w->recall,
    };
    int rc = take_memory(s, w, &pass, err);
    if (!rc) rc = kv__check_lists(s, &rows, err);
    if (rc) return rc;
    find_answer(s, &pass);
    return s->policy->score(&pass, err);
}

/* What goes and what stays, by the scores; NULL without memory. */
static kv_plan *plan_from_scores(kv_session *s, work *w, uint32_t budget)
{
    kv_plan *plan = kv_plan_new(s->epoch, KV_CAUSE_EVICT, s->n, s->n_lanes);
    if (!plan) return NULL;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (!kv__window(s, lane) &&
            select_lane(s, w, lane, budget, plan->flips + (size_t)lane * kv_plan_words(plan)))
            plan->cause = KV_CAUSE_PRESSURE;
    remember(s, w);
    describe_protected(s, w, plan);
    kv__describe_flips(s, plan, NULL,
        plan->cause == KV_CAUSE_PRESSURE ? KV_REASON_PRESSURE : KV_REASON_BUDGET, KV_REASON_MANUAL);
    return plan;
}

/*
 * One pass over the lists as they are: what it sees is kept, and the plan that it comes to is the caller's.
 */
static int choose(kv_session *s, uint32_t budget, const uint64_t *keep, kv_plan **ret,
    const atomic_bool *cancel, base_err *err)
{
    work w;
    kv_lists lists; /* lanes with a window stay as they are */
    int rc = work_init(&w, s, &lists, err);
    if (!rc && kv_ranker_reserve(&s->ranker, s->n))
        rc = base_fail(err, BASE_E_NOMEM, "no memory to choose among %u rows", s->n);
    const uint64_t start = base_clock_ns();
    if (!rc) rc = score(s, &w, &lists, budget, keep, cancel, err);
    const uint64_t scored = base_clock_ns();
    kv_plan *plan = rc ? NULL : plan_from_scores(s, &w, budget);
    if (!rc && !plan) rc = base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    if (plan) {
        plan->score_ms = (double)(scored - start) / 1e6;
        plan->plan_ms = (double)(base_clock_ns() - scored) / 1e6;
        s->score_ms += plan->score_ms;
        s->plan_ms += plan->plan_ms;
        *ret = plan;
    }
    kv_work_free(&w.memory);
    return rc;
}

static int choose_and_apply(
    kv_session *s, uint32_t budget, const uint64_t *keep, const atomic_bool *cancel, base_err *err)
{
    kv_plan *plan = NULL;
    int rc = choose(s, budget, keep, &plan, cancel, err);
    if (!rc) rc = kv__apply(s, plan, true, cancel, err);
    kv_plan_free(plan);
    return rc;
}

/* Over the lanes that read everything. */
static void count_rows(const kv_session *s, uint32_t *most, uint32_t *least)
{
    *most = 0;
    *least = UINT32_MAX;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        const uint32_t n = s->lists.view[lane].n_rows;
        if (kv__window(s, lane)) continue;
        if (n > *most) *most = n;
        if (n < *least) *least = n;
    }
}

int kv__evict(kv_session *s, const uint64_t *keep, const atomic_bool *cancel, base_err *err)
{
    const uint32_t budget = s->budget - kv__visitors(s);
    uint32_t most, least;
    count_rows(s, &most, &least);
    /* While nobody is out, more rows may be there, and no space need be kept for evicted rows that visit. */
    const uint32_t whole = s->until ? s->until : s->budget;
    if (!s->budget || most <= (least < s->n ? budget : whole)) return 0;
    return choose_and_apply(s, budget, keep, cancel, err);
}

int kv__evict_within_message(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    const uint32_t n_ctx = s->n_ctx < s->compute.n_ctx ? s->n_ctx : s->compute.n_ctx,
                   room = (uint32_t)(s->parameters.message * n_ctx);
    uint32_t most, least;
    count_rows(s, &most, &least);
    if (room <= s->budget) return kv__evict(s, NULL, cancel, err);
    return s->budget && most > room ? choose_and_apply(s, room, NULL, cancel, err) : 0;
}

int kv__score_again(kv_session *s, base_err *err)
{
    kv_plan *plan = NULL;
    if (!s->budget) return 0;
    const int rc = choose(s, s->budget - kv__visitors(s), NULL, &plan, NULL, err);
    kv_plan_free(plan);
    return rc;
}
