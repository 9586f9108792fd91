/* Which rows a decoded token reads at a step; see reading.h. sections.c keeps the sections. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "kv/read/reading.h"
#include "kv/read/sections.h"
#include "kv/session.h"

/* --- the choice ----------------------------------------------------------------------------------------- */

uint32_t kv_reading_rows(const kv_parameters *p, uint32_t n_live)
{
    const double share = p->usage * n_live;
    uint32_t rows = (uint32_t)share;
    if (rows < share) rows++;
    return rows < p->least_read ? (uint32_t)p->least_read : rows;
}

/* Bits that ascend with the float; NaN lowest. */
static uint32_t ascending(float x)
{
    uint32_t bits;
    if (x != x) return 0;
    x += 0.0f; /* -0 becomes +0 */
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

/*
 * Active rows of each section, of the list's first up to token `own`; returns those behind the last section.
 */
static uint32_t count_rows(kv_reading *r, const model_lane_list *list, uint32_t n_sections, uint32_t own)
{
    uint32_t k = 0, behind = 0;
    const uint32_t end = n_sections ? r->to[n_sections - 1] : 0;
    memset(r->n_rows, 0, n_sections * sizeof *r->n_rows);
    for (uint32_t i = 0; i < list->n_runs && list->runs[i].index <= own; i++) {
        const uint32_t from = list->runs[i].index;
        const uint32_t to = from + list->runs[i].n <= own ? from + list->runs[i].n : own + 1;
        while (k < n_sections && r->to[k] <= from) k++;
        for (; k < n_sections && kv__section_from(r, k) < to; k++) {
            const uint32_t first = kv__section_from(r, k) > from ? kv__section_from(r, k) : from;
            r->n_rows[k] += (r->to[k] < to ? r->to[k] : to) - first;
            if (r->to[k] > to) break;
        }
        if (to > end) behind += to - (from > end ? from : end);
    }
    return behind;
}

/* Sections that are read whatever their bound is: r->take says all their rows. Returns how many rows. */
static uint32_t take_forced(kv_reading *r, uint32_t n_sections)
{
    const kv_session *s = r->session;
    const uint32_t sinks = (uint32_t)s->parameters.sinks;
    uint32_t n = 0;
    memset(r->take, 0, n_sections * sizeof *r->take);
    if (!r->has_forced) return 0;
    for (uint32_t k = 0; k < n_sections; k++) {
        const uint32_t from = kv__section_from(r, k);
        if (from >= sinks && !kv_bits_count_range(s->pinned, from, r->to[k])) continue;
        r->take[k] = r->n_rows[k];
        n += r->n_rows[k];
    }
    return n;
}

/*
 * Rows of the other sections, the highest bounds first, `room` of them together (fewer than there are): the
 * last section gives its first rows. Equal bounds: the earlier section. Linear: the cut is found by counting
 * digits of the bounds' bits.
 */
static void take_best(kv_reading *r, const float *bound, uint32_t n_sections, uint32_t room)
{
    static const struct {
        uint32_t shift, bits;
    } digits[] = {{21, 11}, {10, 11}, {0, 10}};
    uint32_t cut = 0, mask = 0, sums[2048];
    for (uint32_t k = 0; k < n_sections; k++) r->key[k] = ascending(bound[k]);
    for (size_t digit = 0; digit < sizeof digits / sizeof *digits; digit++) {
        const uint32_t shift = digits[digit].shift, low = (UINT32_C(1) << digits[digit].bits) - 1;
        uint32_t b = low;
        memset(sums, 0, sizeof sums);
        for (uint32_t k = 0; k < n_sections; k++)
            if ((r->key[k] & mask) == cut && !r->take[k]) sums[r->key[k] >> shift & low] += r->n_rows[k];
        for (; b && sums[b] <= room; b--) room -= sums[b];
        cut |= b << shift;
        mask |= low << shift;
    }
    for (uint32_t k = 0; k < n_sections; k++) {
        if (r->take[k] || r->key[k] < cut) continue;
        const uint32_t n = r->key[k] > cut || r->n_rows[k] < room ? r->n_rows[k] : room;
        if (r->key[k] == cut) room -= n;
        r->take[k] = n;
    }
}

/* Appends rows of a run of the list; neighbours in it are one run. */
static void put_run(
    model_lane_list *out, model_run *runs, uint32_t slot, uint32_t index, uint32_t n, bool joins)
{
    model_run *last = out->n_runs ? &runs[out->n_runs - 1] : NULL;
    out->n_rows += n;
    if (joins && last && last->index + last->n == index)
        last->n += n;
    else
        runs[out->n_runs++] = (model_run){slot, index, n};
}

/* The list of what r->take says, and of all behind the sections up to token `own`. */
static void put_rows(kv_reading *r, const model_lane_list *list, uint32_t n_sections, uint32_t own,
    model_run *runs, model_lane_list *out)
{
    uint32_t k = 0;
    *out = (model_lane_list){.runs = runs};
    for (uint32_t i = 0; i < list->n_runs && list->runs[i].index <= own; i++) {
        const model_run *run = &list->runs[i];
        const uint32_t end = run->index + run->n <= own ? run->index + run->n : own + 1;
        uint32_t at = run->index;
        bool joins = false;
        while (at < end) {
            while (k < n_sections && r->to[k] <= at) k++;
            const uint32_t to = k < n_sections && r->to[k] < end ? r->to[k] : end;
            uint32_t n = to - at;
            if (k < n_sections) {
                n = r->take[k] < n ? r->take[k] : n;
                r->take[k] -= n;
            }
            if (n) put_run(out, runs, run->slot + (at - run->index), at, n, joins);
            joins = true;
            at = to;
        }
    }
}

/* What a device would have to fetch: of the sections' rows, how many the step before read too. */
static void count_reuse(kv_reading *r, uint32_t lane, uint32_t n_sections)
{
    uint16_t *last = r->last + (size_t)lane * r->cap;
    for (uint32_t k = 0; k < n_sections; k++) {
        const uint16_t now = (uint16_t)r->take[k];
        r->reads.chosen += now;
        r->reads.kept += now < last[k] ? now : last[k];
        last[k] = now;
    }
}

/* Sections that would be read if the share were larger by `more` rows: likely ones of the next step. */
static void note_next(kv_reading *r, uint32_t head, const float *bound, uint32_t n_sections, uint32_t room)
{
    const kv_parameters *p = &r->session->parameters;
    const uint32_t more = (uint32_t)(p->ahead * kv_reading_rows(p, r->session->n));
    uint32_t *next = r->next + (size_t)head * r->cap, *take = r->take, n = 0, left = 0, chosen = 0;
    r->n_next[head] = 0;
    for (uint32_t k = 0; k < n_sections; k++) {
        chosen += take[k] > 0;
        left += take[k] ? 0 : r->n_rows[k];
    }
    r->n_chosen[head] = chosen;
    if (!more || more >= left) return;
    r->take = r->wider;
    take_forced(r, n_sections);
    take_best(r, bound, n_sections, room + more);
    r->take = take;
    for (uint32_t k = 0; k < n_sections; k++)
        if (r->wider[k] && !take[k]) next[n++] = k;
    r->n_next[head] = n;
}

static void choose_lane(kv_reading *r, uint32_t head, uint32_t lane, uint32_t token)
{
    const kv_parameters *p = &r->session->parameters;
    const model_lane_list *list = &r->rows->lanes[lane];
    const uint32_t own = r->first + token, n_live = list->n_rows - (r->n_batch - 1 - token),
                   rows = kv_reading_rows(p, n_live), n_sections = kv__reading_visible(r, token);
    const float *bound = r->bound + ((size_t)head * r->n_batch + token) * r->n;
    const uint32_t behind = count_rows(r, list, n_sections, own), forced = take_forced(r, n_sections);
    if (rows >= n_live)
        memcpy(r->take, r->n_rows, n_sections * sizeof *r->take);
    else if (behind + forced < rows)
        take_best(r, bound, n_sections, rows - behind - forced);
    if (r->brings) note_next(r, head, bound, n_sections, behind + forced < rows ? rows - behind - forced : 0);
    count_reuse(r, lane, n_sections);
    put_rows(r, list, n_sections, own, r->runs + head * r->cap_runs, &r->lists[lane]);
    r->reads.live += n_live;
    r->reads.read += r->lists[lane].n_rows;
}

/* --- the model asks ------------------------------------------------------------------------------------- */

/* Is there anything that a token of the batch leaves out in this layer? */
static bool leaves_rows(const kv_reading *r, uint32_t layer)
{
    const kv_parameters *p = &r->session->parameters;
    const uint32_t n_kv = r->session->compute.shape.n_head_kv;
    if (layer < p->dense || !r->n) return false;
    for (uint32_t lane = layer * n_kv; lane < (layer + 1) * n_kv; lane++)
        if (kv_reading_rows(p, r->rows->lanes[lane].n_rows) < r->rows->lanes[lane].n_rows) return true;
    return false;
}

static int prepare_sections(void *user, uint32_t layer, model_sections *ret, base_err *err)
{
    kv_reading *r = user;
    const uint32_t n_kv = r->session->compute.shape.n_head_kv;
    (void)err;
    const uint64_t start = base_clock_ns();
    *ret = (model_sections){.profiles = &r->profile_view, .n_sections = 0, .bound = r->bound};
    if (!leaves_rows(r, layer)) {
        for (uint32_t lane = layer * n_kv; lane < (layer + 1) * n_kv; lane++)
            for (uint32_t t = 0; t < r->n_batch; t++) {
                const uint32_t n_live = r->rows->lanes[lane].n_rows - t;
                r->reads.live += n_live;
                r->reads.read += n_live;
            }
        return 0;
    }
    kv__reading_profiles(r, layer);
    ret->n_sections = r->n;
    r->began_ns = base_clock_ns();
    r->reads.profile_ns += r->began_ns - start;
    return 0;
}

static int choose_rows(void *user, uint32_t layer, uint32_t token, const model_rows_view **ret, base_err *err)
{
    kv_reading *r = user;
    const uint32_t n_kv = r->session->compute.shape.n_head_kv;
    const uint64_t start = token ? base_clock_ns() : r->began_ns; /* the bounds of all are the first one's */
    for (uint32_t head = 0; head < n_kv; head++) choose_lane(r, head, layer * n_kv + head, token);
    r->reads.ns += base_clock_ns() - start;
    *ret = &r->chosen_view;
    return r->brings ? kv__bring_chosen(r, layer, err) : 0;
}

int kv__reading_begin(kv_session *s, const model_rows_view *rows, const int32_t *ids, uint32_t first,
    uint32_t n, const model_reader **ret, base_err *err)
{
    *ret = NULL;
    if (!(s->parameters.decode > 0)) return 0;
    const uint64_t start = base_clock_ns();
    int rc = s->reading ? 0 : kv__reading_make(s, err);
    if (rc) return rc;
    kv_reading *r = s->reading;
    const size_t n_kv = s->compute.shape.n_head_kv;
    rc = kv__reading_update(r, ids, first, n, err);
    if (rc) return rc;
    r->rows = rows;
    r->has_forced = s->parameters.sinks > 0 || kv_bits_next(s->pinned, 0, s->n, true) < s->n;
    const size_t wanted = n_kv * n * r->n;
    if (wanted > r->cap_bound) {
        const size_t cap = wanted + wanted / 2 + n_kv * n * 64;
        float *bound = realloc(r->bound, cap * sizeof *bound);
        if (!bound) return base_fail(err, BASE_E_NOMEM, "no memory for the bounds of %u sections", r->n);
        r->bound = bound;
        r->cap_bound = cap;
    }
    r->reader = (model_reader){.user = r, .sections = prepare_sections, .choose = choose_rows};
    r->chosen_view = *rows;
    r->chosen_view.lanes = r->lists;
    rc = kv__bring_begin(r, err);
    if (rc) return rc;
    r->reads.steps += n;
    r->reads.ns += base_clock_ns() - start;
    *ret = &r->reader;
    return 0;
}

void kv__reading_publish(kv_session *s, uint32_t n)
{
    const kv_parameters *p = &s->parameters;
    const uint32_t first = (uint32_t)p->dense * s->compute.shape.n_head_kv;
    if (!(p->decode > 0)) return;
    for (uint32_t later = n; later-- > 0;) {
        bool leaves = false;
        for (uint32_t lane = first; lane < s->n_lanes && !leaves; lane++) {
            const uint32_t n_live = s->lists.view[lane].n_rows - later;
            leaves = kv_reading_rows(p, n_live) < n_live;
        }
        if (!leaves) continue;
        const double schedule[] = {s->n - 1 - later, p->decode, p->usage, p->least_read, p->dense, p->length,
            p->reach, p->slack, 0 /* a parameter that is gone; sessions saved with it off stay valid */,
            p->syntax, p->page, p->sinks};
        s->holed = true;
        s->schedule = base_hash64(schedule, sizeof schedule, s->schedule);
    }
}

/* --- looking -------------------------------------------------------------------------------------------- */

void kv__reading_stats(const kv_session *s, kv_reads *ret)
{
    *ret = (kv_reads){.steps = 0};
    if (!s->reading) return;
    *ret = s->reading->reads;
    ret->profile_bytes = (uint64_t)s->reading->profiles.n * model_rows_block_bytes(&s->compute.shape);
    const kv_resident_sums sums = kv_resident_get_sums(s->reading->resident);
    ret->found = sums.found;
    ret->fetched = sums.fetched;
    ret->ahead = sums.ahead;
    ret->ahead_used = sums.wanted;
    ret->fetched_bytes = sums.bytes;
    ret->wait_ns = sums.wait_ns;
    ret->copies_bytes = kv_resident_bytes(s->reading->resident);
}

uint32_t kv_session_sections(const kv_session *s, kv_section *ret, uint32_t cap)
{
    const kv_reading *r = s->reading;
    if (!r) return 0;
    for (uint32_t k = 0; k < r->n && k < cap; k++) {
        uint32_t lanes = 0, rows = 0;
        for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
            const uint32_t n = r->last[(size_t)lane * r->cap + k];
            lanes += n > 0;
            rows += n;
        }
        ret[k] = (kv_section){.from = kv__section_from(r, k),
            .to = r->to[k],
            .lanes = lanes,
            .rows = lanes ? (float)rows / (float)lanes : 0};
    }
    return r->n;
}
