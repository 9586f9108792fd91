/*
 * Repair at a pause: the newest message or result asks, evicted rows answer (kv.md section 7; RepairKV, seed 002).
 *
 * One order over active and host rows by a_i = mean over the heads that count of max over the queries of the softmax mass;
 * anchors in that order, grown to their line (or, paper=1, to the burst {i-2..i+20}), until K rows per lane are spent; then,
 * where a lane would exceed its budget, the rows that neither this signal nor the last pass wanted leave (swap). The promoted
 * set is one for all lanes; what it costs and what leaves is per lane.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kv/state.h"

enum { BURST_BEFORE = 2, BURST_BEHIND = 20, LINE_MOST = 48 };

/* Everything that one repair needs, freed together. */
typedef struct work {
    uint64_t *eligible;  /* tokens that the signal may ask for */
    uint32_t *missing;   /* [n] lanes in which the token is not active */
    float *a, *previous; /* [n] */
    uint32_t *order;     /* [n] tokens, the most asked for first */
    uint32_t n_order;
    uint64_t *chosen;
    uint8_t *reasons; /* [n] */
    kv_signal signal;
} work;

static void work_free(work *w)
{
    free(w->eligible);
    free(w->missing);
    free(w->a);
    free(w->previous);
    free(w->order);
    free(w->chosen);
    free(w->reasons);
    kv_signal_fini(&w->signal);
}

/* At most `most` places of the kept queries that lie in [from, to): those named, else an even choice. */
static uint32_t choose_places(const kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries,
    uint32_t n_queries, uint32_t most, uint32_t *places)
{
    uint32_t n = 0, first = 0, last = s->recent.n;
    while (first < last && s->recent.tokens[first] < from) first++;
    while (last > first && s->recent.tokens[last - 1] >= to) last--;
    for (uint32_t i = first, q = 0; i < last && n < most; i++) {
        while (q < n_queries && queries[q] < s->recent.tokens[i]) q++;
        if (q < n_queries && queries[q] == s->recent.tokens[i]) places[n++] = i;
    }
    if (n || first == last) return n;
    const uint32_t have = last - first, take = have < most ? have : most;
    for (uint32_t i = 0; i < take; i++)
        places[n++] = first + (uint32_t)((uint64_t)have * (2 * i + 1) / (2 * take));
    return n;
}

/* Queries that were not kept are computed again, one pass each. */
static int recompute_signal(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries,
    uint32_t n_queries, uint32_t most, kv_signal *ret, const atomic_bool *cancel, base_err *err)
{
    const uint32_t have = n_queries ? n_queries : to - from, take = have < most ? have : most;
    float *query = malloc(kv__memory_floats(s) * sizeof *query);
    int r = query ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for the queries of a repair");
    for (uint32_t i = 0; i < take && !r; i++) {
        const uint32_t place = (uint32_t)((uint64_t)have * (2 * i + 1) / (2 * take));
        const uint32_t token = n_queries ? queries[place] : from + place;
        if (token < from || token >= to) continue;
        r = kv__recompute(s, token, query, NULL, cancel, err);
        if (!r) r = kv_signal_add(ret, &token, query, 1, most, err);
    }
    free(query);
    return r;
}

static int find_signal(kv_session *s, work *w, uint32_t from, uint32_t to, const uint32_t *queries,
    uint32_t n_queries, const atomic_bool *cancel, base_err *err)
{
    uint32_t places[64], most = (uint32_t)s->parameters.queries;
    if (most > 64) most = 64;
    if (!queries) n_queries = 0;
    const uint32_t n = choose_places(s, from, to, queries, n_queries, most, places);
    kv_signal_init(&w->signal, s->recent.n_layer, s->recent.n_head, s->recent.head_dim);
    if (n) return kv_signal_pick(&s->recent, places, n, &w->signal, err);
    return recompute_signal(s, from, to, queries, n_queries, most, &w->signal, cancel, err);
}

/* a over the eligible rows, all lanes' softmaxes over active and host together. */
static int score_rows(kv_session *s, work *w, const atomic_bool *cancel, base_err *err)
{
    const uint32_t n_lanes = s->n_lanes, per_lane = s->compute.n_head / s->compute.shape.n_head_kv;
    uint32_t n_runs = 0, n_rows = 0;
    model_run *runs = kv_runs_of_bits(w->eligible, s->n, &n_runs, &n_rows);
    model_lane_list *lists = calloc(n_lanes, sizeof *lists);
    float **mass = calloc(n_lanes, sizeof *mass),
          *rows = malloc(((size_t)n_rows * n_lanes + 1) * sizeof *rows);
    uint32_t *weight = calloc(n_lanes, sizeof *weight), total = 0;
    int r = 0;
    if (!runs || !lists || !mass || !rows || !weight) {
        r = base_fail(err, BASE_E_NOMEM, "no memory to score %u rows", n_rows);
        goto out;
    }
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        lists[lane] = (model_lane_list){.runs = runs, .n_runs = n_runs, .n_rows = n_rows};
        for (uint32_t h = 0; h < per_lane; h++)
            weight[lane] += s->heads ? s->heads[(size_t)lane * per_lane + h] : 1;
        if (weight[lane]) mass[lane] = rows + (size_t)lane * n_rows;
        total += weight[lane];
    }
    const model_rows_view view = {
        .shape = s->table.shape, .blocks = s->table.rows, .n_blocks = s->table.n, .lanes = lists};
    const model_score score = {
        .queries = w->signal.queries,
        .n_queries = w->signal.n,
        .rows = &view,
        .pool = MODEL_POOL_MAX,
        .heads = s->heads,
        .mass = mass,
        .cancel = cancel,
    };
    r = s->compute.score(s->compute.user, &score, err);
    for (uint32_t run = 0, o = 0; run < n_runs && !r; run++)
        for (uint32_t i = 0; i < runs[run].n; i++, o++) {
            double sum = 0;
            for (uint32_t lane = 0; lane < n_lanes; lane++)
                if (mass[lane]) sum += (double)mass[lane][o] * weight[lane];
            w->a[runs[run].index + i] = (float)(sum / total);
        }
out:
    free(runs);
    free(lists);
    free(mass);
    free(rows);
    free(weight);
    return r;
}

/* The eligible tokens by a. */
static int rank_rows(kv_session *s, work *w, base_err *err)
{
    if (kv_ranker_reserve(&s->ranker, s->n))
        return base_fail(err, BASE_E_NOMEM, "no memory to rank %u rows", s->n);
    kv_rank(
        &s->ranker, w->a, w->previous, s->n, w->order); /* what is not eligible is NAN, so it comes last */
    w->n_order = kv_bits_count(w->eligible, kv_bits_words(s->n));
    return 0;
}

/* The rows that come with anchor i: its line, cut to a window when it is long; its burst when there are no lines. */
static void grow(const kv_session *s, uint32_t i, uint32_t *from, uint32_t *to)
{
    const kv_part *part = kv__part_at(s, i);
    uint32_t first = part->from, last = part->to;
    const bool lines = part->n_lines && s->parameters.paper <= 0;
    if (lines) {
        uint32_t low = 0, high = part->n_lines; /* the last line that starts at or before i */
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            if (part->from + part->lines[middle] <= i)
                low = middle + 1;
            else
                high = middle;
        }
        if (low && part->from + part->lines[low - 1] > first) first = part->from + part->lines[low - 1];
        if (low < part->n_lines && part->from + part->lines[low] < last) last = part->from + part->lines[low];
    }
    if (!lines || last - first > LINE_MOST) {
        const uint32_t before = lines ? LINE_MOST - BURST_BEHIND - 1 : BURST_BEFORE;
        if (i - first > before) first = i - before;
        if (last - i > BURST_BEHIND + 1) last = i + BURST_BEHIND + 1;
    }
    *from = first;
    *to = last;
}

/* Row-lanes that choosing [from, to) would newly cost. */
static uint64_t cost_of(const work *w, uint32_t from, uint32_t to)
{
    uint64_t cost = 0;
    for (uint32_t t = from; t < to; t++)
        if (kv_bits_get(w->eligible, t) && !kv_bits_get(w->chosen, t)) cost += w->missing[t];
    return cost;
}

static void choose(work *w, uint32_t t, kv_reason reason)
{
    kv_bits_set(w->chosen, t);
    w->reasons[t] = (uint8_t)reason;
}

/* Lines in the order of their anchors while they fit whole; the very first is cut if it must be. */
static void choose_lines(const kv_session *s, work *w, uint64_t room)
{
    const uint32_t margin = (uint32_t)(s->parameters.hysteresis * s->budget);
    const uint32_t cut = s->budget > margin ? s->budget - margin : 0;
    bool any = false;
    for (uint32_t rank = 0; rank < w->n_order && (!s->budget || rank < cut); rank++) {
        const uint32_t anchor = w->order[rank];
        if (!w->missing[anchor] || kv_bits_get(w->chosen, anchor)) continue;
        uint32_t from, to;
        grow(s, anchor, &from, &to);
        uint64_t cost = cost_of(w, from, to);
        if (cost > room && any) break;
        while (cost > room && to > anchor + 1) cost = cost_of(w, from, --to);
        while (cost > room && from < anchor) cost = cost_of(w, ++from, to);
        if (cost > room) break;
        for (uint32_t t = from; t < to; t++)
            if (kv_bits_get(w->eligible, t) && !kv_bits_get(w->chosen, t) && w->missing[t])
                choose(w, t, t == anchor ? KV_REASON_REPAIR_ANCHOR : KV_REASON_REPAIR_BURST);
        room -= cost;
        any = true;
    }
}

/* The paper's form: bursts in ascending index within the host tier until K, cut there; then single rows by rank. */
static void choose_bursts(const kv_session *s, work *w, uint64_t room)
{
    for (int single = 0; single < 2; single++)
        for (uint32_t rank = 0; rank < w->n_order; rank++) {
            const uint32_t anchor = w->order[rank];
            if (!w->missing[anchor] || kv_bits_get(w->chosen, anchor)) continue;
            uint32_t from = anchor, to = anchor + 1;
            if (!single) grow(s, anchor, &from, &to);
            for (uint32_t t = from; t < to; t++) {
                if (!kv_bits_get(w->eligible, t) || kv_bits_get(w->chosen, t) || !w->missing[t]) continue;
                if (w->missing[t] > room) return;
                choose(w, t, t == anchor ? KV_REASON_REPAIR_ANCHOR : KV_REASON_REPAIR_BURST);
                room -= w->missing[t];
            }
        }
}

/* Where a lane would exceed its budget: rows that this signal and the last pass want least leave it. */
static int make_room(kv_session *s, const work *w, uint32_t from, kv_plan *p, base_err *err)
{
    const uint32_t n_words = kv_plan_words(p);
    /* Room for the answer that begins now: a repair that fills its lanes would call the next pass at once. */
    const uint32_t limit = s->budget - (uint32_t)(s->budget * (1 - s->parameters.low) / 2);
    uint8_t *hard = base_xmalloc((size_t)s->n + 1);
    float *score = malloc(((size_t)s->n + 1) * sizeof *score);
    uint32_t *order = malloc(((size_t)s->n + 1) * sizeof *order);
    if (!score || !order) {
        free(hard);
        free(score);
        free(order);
        return base_fail(err, BASE_E_NOMEM, "no memory to rank %u rows", s->n);
    }
    kv__protect(s, hard);
    for (uint32_t t = 0; t < s->n; t++) score[t] = -INFINITY;
    for (uint32_t rank = 0; rank < w->n_order; rank++)
        score[w->order[rank]] = -(float)rank / (float)w->n_order + w->previous[w->order[rank]];
    kv_rank(&s->ranker, score, NULL, s->n, order);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        uint64_t *flips = p->flips + (size_t)lane * n_words;
        const uint64_t *active = s->lists.lane[lane]->bits;
        const uint32_t n_up = kv_bits_count(flips, n_words), after = s->lists.view[lane].n_rows + n_up;
        uint32_t excess = n_up && after > limit ? after - limit : 0;
        for (uint32_t i = s->n; i-- > 0 && excess;) {
            const uint32_t t = order[i];
            if (t >= from || hard[t] || !kv_bits_get(active, t) || kv_bits_get(w->chosen, t)) continue;
            kv_bits_set(flips, t);
            excess--;
        }
        /* Nothing left that may go: what still exceeds the budget itself is not promoted, the last anchors first. */
        const uint32_t spare = s->budget - limit;
        excess = excess > spare ? excess - spare : 0;
        for (uint32_t i = s->n; i-- > 0 && excess;)
            if (!kv_bits_get(active, order[i]) && kv_bits_get(flips, order[i])) {
                kv_bits_clear(flips, order[i]);
                excess--;
            }
    }
    free(hard);
    free(score);
    free(order);
    return 0;
}

static bool anything_missing(const kv_session *s, const work *w)
{
    for (uint32_t t = 0; t < s->n; t++)
        if (w->missing[t] && kv_bits_get(w->eligible, t)) return true;
    return false;
}

static int plan_repair(kv_session *s, work *w, uint32_t from, double score_ms, base_err *err)
{
    const uint64_t start = base_clock_ns();
    int r = rank_rows(s, w, err);
    if (r) return r;
    const uint64_t room =
        (uint64_t)(s->repair < 0 ? (s->budget ? (s->budget + 15) / 16 : 256) : (uint32_t)s->repair) *
        s->n_lanes;
    if (s->parameters.paper > 0)
        choose_bursts(s, w, room);
    else
        choose_lines(s, w, room);
    kv_plan *p = kv_plan_new(s->epoch, KV_CAUSE_REPAIR, s->n, s->n_lanes);
    if (!p) return base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    const uint32_t n_words = kv_plan_words(p);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        for (uint32_t word = 0; word < n_words; word++)
            p->flips[(size_t)lane * n_words + word] = w->chosen[word] & ~s->lists.lane[lane]->bits[word];
    if (s->budget) r = make_room(s, w, from, p, err);
    if (!r) {
        kv__describe_flips(s, p, w->reasons, KV_REASON_BUDGET, KV_REASON_REPAIR_BURST);
        p->score_ms = score_ms;
        p->plan_ms = (double)(base_clock_ns() - start) / 1e6;
        s->score_ms += p->score_ms;
        s->plan_ms += p->plan_ms;
        r = kv__apply(s, p, true, err);
    }
    kv_plan_free(p);
    return r;
}

int kv_session_repair(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries, uint32_t n_queries,
    const atomic_bool *cancel, base_err *err)
{
    if (from >= to || to > s->n)
        return base_fail(err, BASE_E_USAGE, "tokens %u to %u are not in this session of %u", from, to, s->n);
    if (!s->repair || !from || s->lists.n_tokens == 0) return 0;
    const size_t n = (size_t)s->n + 1, n_words = kv_bits_words(n);
    work w = {
        .eligible = calloc(n_words, sizeof(uint64_t)),
        .missing = calloc(n, sizeof(uint32_t)),
        .a = malloc(n * sizeof(float)),
        .previous = malloc(n * sizeof(float)),
        .order = malloc(n * sizeof(uint32_t)),
        .chosen = calloc(n_words, sizeof(uint64_t)),
        .reasons = malloc(n),
    };
    int r = 0;
    if (!w.eligible || !w.missing || !w.a || !w.previous || !w.order || !w.chosen || !w.reasons) {
        r = base_fail(err, BASE_E_NOMEM, "no memory to repair a session of %u tokens", s->n);
        goto out;
    }
    memset(w.reasons, KV_N_REASONS, n);
    kv_session_active_lanes(s, w.missing);
    for (uint32_t t = 0; t < s->n; t++) {
        w.missing[t] = s->n_lanes - w.missing[t];
        w.a[t] = NAN;
        w.previous[t] = s->tokens[t].previous;
        if (t < from && !kv_bits_get(s->barred, t) && !kv_bits_get(s->stale, t)) kv_bits_set(w.eligible, t);
    }
    if (!anything_missing(s, &w)) goto out;
    const uint64_t start = base_clock_ns();
    r = find_signal(s, &w, from, to, queries, n_queries, cancel, err);
    if (!r && w.signal.n) {
        r = score_rows(s, &w, cancel, err);
        if (!r) r = plan_repair(s, &w, from, (double)(base_clock_ns() - start) / 1e6, err);
    }
out:
    work_free(&w);
    return r;
}
