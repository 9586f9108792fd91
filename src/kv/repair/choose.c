/*
 * Which rows a repair brings back, once all are ordered. Anchors (the rows asked for most) grow to their
 * whole line (ours) or to a few rows around them (a burst: RepairKV, section 3.3). They are taken by rank;
 * by coverage (the window with the largest new mass, again and again); or, as refresh, until the whole
 * active set is chosen anew.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/parameters.h"
#include "kv/repair/choose.h"
#include "kv/repair/repair.h"

enum { BURST_BEFORE = 2, BURST_BEHIND = 20, LINE_MOST = 48, COVERAGE_ANCHORS = 256 };

/* A row comes back only where its rank is better than the budget's last by this share of it, so that rows near the cut do not come and go. */
#define HYSTERESIS .05

/*
 * Times the sinks' mass that a clear answer draws. Facts asked for by name alone draw 2.7 to 7.2 times as much, in whole
 * requests some 1.9 and more; what needs several lines 1.4 times at most (docs/diary.md, "Why facts behind the context are
 * misread").
 */
#define CLEAR 1.6f

/* A span of program structure around i that is no longer than a line may be: a statement, a signature. */
static void grow_to_span(const kv_stored_segment *part, uint32_t i, uint32_t *from, uint32_t *to)
{
    uint32_t shortest = LINE_MOST + 1;
    for (uint32_t k = 0; k < part->n_spans; k++) {
        const uint32_t first = part->from + part->spans[k].from, last = part->from + part->spans[k].to;
        if (first > i || last <= i || last > part->to || last - first >= shortest) continue;
        shortest = last - first;
        if (first < *from) *from = first;
        if (last > *to) *to = last;
    }
}

/* The rows that come with anchor i: its line and statement, or a few rows around it. */
void kv__grow(const kv_session *s, uint32_t i, uint32_t *from, uint32_t *to)
{
    const kv_stored_segment *part = kv__segment_at(s, i);
    uint32_t first = part->from, last = part->to;
    const bool lines = part->n_lines && s->parameters.grow == KV_GROW_LINE;
    *from = i;
    *to = i + 1;
    if (s->parameters.grow == KV_GROW_NONE) return;
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
        grow_to_span(part, i, &first, &last);
    }
    if (!lines || last - first > LINE_MOST) {
        const uint32_t before = lines ? LINE_MOST - BURST_BEHIND - 1 : BURST_BEFORE;
        if (i - first > before) first = i - before;
        if (last - i > BURST_BEHIND + 1) last = i + BURST_BEHIND + 1;
    }
    *from = first;
    *to = last;
}

static bool is_new(const kv_repair_work *w, uint32_t t)
{
    return kv_bits_get(w->eligible, t) && !kv_bits_get(w->set.chosen, t);
}

/* Row-lanes that choosing [from, to) would newly cost. */
static uint64_t cost_of(const kv_repair_work *w, uint32_t from, uint32_t to)
{
    uint64_t cost = 0;
    for (uint32_t t = from; t < to; t++)
        if (is_new(w, t)) cost += w->set.missing[t];
    return cost;
}

static void choose(kv_repair_work *w, uint32_t t, bool anchor)
{
    kv_bits_set(w->set.chosen, t);
    w->reasons[t] = anchor ? KV_REASON_REPAIR_ANCHOR : KV_REASON_REPAIR_BURST;
}

static void choose_window(kv_repair_work *w, uint32_t from, uint32_t to, uint32_t anchor)
{
    for (uint32_t t = from; t < to; t++)
        if (is_new(w, t) && w->set.missing[t]) choose(w, t, t == anchor);
}

static void outshine_window(kv_repair_work *w, uint32_t from, uint32_t to)
{
    for (uint32_t t = from; t < to; t++)
        if (is_new(w, t) && w->set.missing[t]) kv_bits_set(w->outshone, t);
}

float kv__repair_clarity(const kv_session *s, const kv_repair_work *w, const float *mass, uint32_t row)
{
    const uint32_t n_sinks = (uint32_t)s->parameters.sinks;
    float most = 0;
    if (!w->is_request || !s->fold.n || s->parameters.order != KV_ORDER_MASS || !w->set.n_order) return 0;
    for (uint32_t t = 0; t < n_sinks && t < s->n; t++) most = mass[t] > most ? mass[t] : most;
    return most > 0 ? mass[row] / most : INFINITY;
}

bool kv__repair_is_clear(const kv_session *s, const kv_repair_work *w, const float *mass, uint32_t best)
{
    return kv__repair_clarity(s, w, mass, best) >= CLEAR;
}

/*
 * What is outshone takes no room, so it may be a share of the session: the longer that is, the more lines are like the asked
 * one. The lines of the anchors [rank, end) while it is less.
 */
static void outshine_lines(const kv_session *s, kv_repair_work *w, uint32_t rank, uint32_t end)
{
    const double most = s->parameters.outshone * s->n;
    for (uint32_t n = 0; rank < end && rank < w->set.n_order && n < most; rank++) {
        const uint32_t anchor = w->set.order[rank];
        if (!w->set.missing[anchor] || !is_new(w, anchor) || kv_bits_get(w->outshone, anchor)) continue;
        uint32_t from, to;
        kv__grow(s, anchor, &from, &to);
        outshine_window(w, from, to);
        n += to - from;
    }
}

/* The best line of each name: what answers one of several may have little of the mass of what answers another. */
static uint64_t choose_named(const kv_session *s, kv_repair_work *w, uint64_t room)
{
    for (uint32_t t = kv_bits_next(w->named, 0, s->n, true); t < s->n;
         t = kv_bits_next(w->named, t + 1, s->n, true)) {
        uint32_t from, to;
        kv__grow(s, t, &from, &to);
        const uint64_t cost = cost_of(w, from, to);
        if (cost > room) continue;
        choose_window(w, from, to, t);
        room -= cost;
    }
    return room;
}

/* Lines in the order of their anchors while they fit whole, or would; the very first is cut if it must be. */
static void choose_lines(const kv_session *s, kv_repair_work *w, uint64_t room)
{
    const uint32_t margin = (uint32_t)(HYSTERESIS * s->budget);
    const uint32_t cut = s->budget > margin ? s->budget - margin : 0, end = s->budget ? cut : UINT32_MAX;
    const bool is_clear = kv__repair_is_clear(s, w, w->set.mass, w->set.order[0]);
    const float least = is_clear ? (float)s->parameters.focus * w->set.mass[w->set.order[0]] : -INFINITY;
    const uint64_t left = choose_named(s, w, room);
    bool any = left < room, outshone = false;
    room = left;
    for (uint32_t rank = 0; rank < w->set.n_order && rank < end; rank++) {
        const uint32_t anchor = w->set.order[rank];
        if (!w->set.missing[anchor] || kv_bits_get(w->set.chosen, anchor)) continue;
        outshone = outshone || (any && w->set.mass[anchor] < least);
        if (outshone && s->parameters.outshone > 0) {
            outshine_lines(s, w, rank, end);
            break;
        }
        uint32_t from, to;
        kv__grow(s, anchor, &from, &to);
        uint64_t cost = cost_of(w, from, to);
        if (cost > room && any) break;
        while (cost > room && to > anchor + 1) cost = cost_of(w, from, --to);
        while (cost > room && from < anchor) cost = cost_of(w, ++from, to);
        if (cost > room) break;
        if (outshone)
            outshine_window(w, from, to);
        else
            choose_window(w, from, to, anchor);
        room -= cost;
        any = true;
    }
}

/* The paper's form: bursts of evicted rows until K are taken; then single rows by rank. */
static void choose_bursts(const kv_session *s, kv_repair_work *w, uint64_t room)
{
    for (int single = 0; single < 2; single++)
        for (uint32_t rank = 0; rank < w->set.n_order; rank++) {
            const uint32_t anchor = w->set.order[rank];
            if (!w->set.missing[anchor] || kv_bits_get(w->set.chosen, anchor)) continue;
            uint32_t from = anchor, to = anchor + 1;
            if (!single) kv__grow(s, anchor, &from, &to);
            for (uint32_t t = from; t < to; t++) {
                if (!is_new(w, t) || !w->set.missing[t]) continue;
                if (w->set.missing[t] > room) return;
                choose(w, t, t == anchor);
                room -= w->set.missing[t];
            }
        }
}

/*
 * The window with the largest sum of mass over rows that are not chosen yet, again and again. Windows are
 * those of the best anchors; ties go to the better anchor.
 */
static void choose_coverage(const kv_session *s, kv_repair_work *w, uint64_t room)
{
    uint32_t from[COVERAGE_ANCHORS], to[COVERAGE_ANCHORS], n = 0;
    for (uint32_t rank = 0; rank < w->set.n_order && n < COVERAGE_ANCHORS; rank++)
        if (w->set.missing[w->set.order[rank]]) {
            kv__grow(s, w->set.order[rank], &from[n], &to[n]);
            n++;
        }
    for (;;) {
        uint32_t best = n;
        double most = 0;
        for (uint32_t k = 0; k < n; k++) {
            double sum = 0;
            for (uint32_t t = from[k]; t < to[k]; t++)
                if (is_new(w, t) && w->set.missing[t]) sum += w->set.mass[t];
            if (sum > most) {
                most = sum;
                best = k;
            }
        }
        if (best == n) break;
        for (uint32_t t = from[best]; t < to[best]; t++) {
            if (!is_new(w, t) || !w->set.missing[t]) continue;
            if (w->set.missing[t] > room) return;
            choose(w, t, false);
            room -= w->set.missing[t];
        }
    }
    choose_bursts(s, w, room);
}

/* Rows of [from, to) that would be computed in addition. */
static uint32_t n_computed(
    const kv_session *s, const kv_repair_work *w, const uint64_t *allowed, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t t = from; t < to; t++)
        n += s->cut[t] && kv_bits_get(w->eligible, t) && !kv_bits_get(allowed, t);
    return n;
}

/*
 * Of the rows that are not computed, those asked for most, with their lines, may come back as far as the
 * parameter goes: a row from the host tier is a list edit, one from below a cut a forward pass.
 */
static void limit_computed(const kv_session *s, kv_repair_work *w)
{
    uint64_t *allowed = base_xcalloc(kv_bits_words(s->n) + 1, sizeof *allowed);
    uint32_t left = (uint32_t)s->parameters.computed, n_left_below = 0;
    for (uint32_t t = 0; t < s->n; t++) n_left_below += s->cut[t] && kv_bits_get(w->eligible, t);
    for (uint32_t rank = 0; rank < w->set.n_order && n_left_below > left; rank++) {
        const uint32_t anchor = w->set.order[rank];
        uint32_t from, to;
        if (!s->cut[anchor] || kv_bits_get(allowed, anchor)) continue;
        kv__grow(s, anchor, &from, &to);
        uint32_t n = n_computed(s, w, allowed, from, to);
        if (n > left && left < s->parameters.computed) break; /* each stretch is a pass: no crumbs */
        while (n > left && to > anchor + 1) n = n_computed(s, w, allowed, from, --to);
        while (n > left && from < anchor) n = n_computed(s, w, allowed, ++from, to);
        if (n > left) break;
        kv_bits_set_range(allowed, from, to);
        left -= n;
    }
    for (uint32_t t = 0; t < s->n && n_left_below > s->parameters.computed; t++)
        if (s->cut[t] && !kv_bits_get(allowed, t)) kv_bits_clear_range(w->eligible, t, t + 1);
    free(allowed);
}

void kv__repair_choose(const kv_session *s, kv_repair_work *w, uint64_t room)
{
    limit_computed(s, w);
    if (s->parameters.pick == KV_PICK_COVERAGE)
        choose_coverage(s, w, room);
    else if (s->parameters.grow == KV_GROW_LINE && s->parameters.pick == KV_PICK_RANK)
        choose_lines(s, w, room);
    else
        choose_bursts(s, w, room);
}
