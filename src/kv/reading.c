/*
 * Sections, their profiles, and the choice of a step; see reading.h. Profiles lie in a small table of rows of their own (a section
 * is a slot, its largest numbers the key, its smallest the value), so the model finds them like rows.
 */
#include "kv/reading.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "kv/split.h"
#include "kv/state.h"

struct kv_reading {
    kv_session *session;
    model_reader reader;

    /* Sections of the sequence: section i is tokens [to[i - 1], to[i]), and one as soon as `known` tokens are there. */
    uint32_t n, cap;
    uint32_t *to, *known; /* [cap] */
    uint8_t *endings;     /* [n_endings] */
    uint64_t *statements; /* [bits of n_endings] tokens that end a statement */
    uint32_t n_endings;
    kv_table profiles;
    uint32_t *done; /* [n_layer] sections whose profiles are there */
    uint16_t *last; /* [n_lanes][cap] rows that the last step read of each section */

    /* The batch at hand. */
    const model_rows_view *rows;
    uint32_t first, n_batch;
    bool has_forced;
    model_rows_view profile_view, chosen_view;
    model_lane_list *lists; /* [n_lanes] */
    model_run *runs;        /* [n_head_kv][cap_runs] */
    size_t cap_runs;
    float *bound;
    size_t cap_bound;
    uint32_t *key, *n_rows, *take; /* [cap] of one lane: the bound's order, active rows, those to read */
    uint64_t began_ns;
    kv_reads reads;
};

/* --- making ------------------------------------------------------------------------------------------------------------- */

void kv__reading_free(kv_reading *r)
{
    if (!r) return;
    kv_table_fini(&r->profiles);
    free(r->to);
    free(r->known);
    free(r->endings);
    free(r->statements);
    free(r->done);
    free(r->last);
    free(r->lists);
    free(r->runs);
    free(r->bound);
    free(r->key);
    free(r->n_rows);
    free(r->take);
    free(r);
}

static int prepare_sections(void *user, uint32_t layer, model_sections *ret, base_err *err);
static int choose_rows(
    void *user, uint32_t layer, uint32_t token, const model_rows_view **ret, base_err *err);

/* The fewest tokens of a section. */
static uint32_t shortest(const kv_parameters *p)
{
    const uint32_t length = (uint32_t)p->length, reach = (uint32_t)p->reach;
    if (p->decode == KV_DECODE_PAGE) return (uint32_t)p->page;
    return length > reach + 1 ? length - reach : 1;
}

enum { MOST_DIM = 512 };

/* Everything is reserved for the session's end (memory that is not touched costs nothing), so that a step allocates nothing. */
static int make(kv_session *s, base_err *err)
{
    if (s->compute.shape.head_dim > MOST_DIM)
        return base_fail(err, BASE_E_UNSUPPORTED, "sections of heads of %u dimensions; at most %d",
            s->compute.shape.head_dim, MOST_DIM);
    kv_reading *r = base_xcalloc(1, sizeof *r);
    const size_t n_tokens = (size_t)s->n_ctx + KV_CHUNK + 1, n_kv = s->compute.shape.n_head_kv;
    r->session = s;
    r->reader = (model_reader){.user = r, .sections = prepare_sections, .choose = choose_rows};
    r->cap = (uint32_t)(n_tokens / shortest(&s->parameters) + 2);
    r->cap_runs = n_tokens + r->cap;
    kv_table_init(&r->profiles, &s->compute.shape);
    r->to = calloc(r->cap, sizeof *r->to);
    r->known = calloc(r->cap, sizeof *r->known);
    r->endings = calloc(n_tokens, 1);
    r->statements = calloc(kv_bits_words(n_tokens), sizeof *r->statements);
    r->done = calloc(s->compute.shape.n_layer + 1, sizeof *r->done);
    r->last = calloc((size_t)s->n_lanes * r->cap, sizeof *r->last);
    r->lists = calloc(s->n_lanes + 1, sizeof *r->lists);
    r->runs = malloc(n_kv * r->cap_runs * sizeof *r->runs);
    r->key = malloc(r->cap * sizeof *r->key);
    r->n_rows = malloc(r->cap * sizeof *r->n_rows);
    r->take = malloc(r->cap * sizeof *r->take);
    if (!r->to || !r->known || !r->endings || !r->statements || !r->done || !r->last || !r->lists ||
        !r->runs || !r->key || !r->n_rows || !r->take) {
        kv__reading_free(r);
        return base_fail(err, BASE_E_NOMEM, "no memory for the sections of a session of %u tokens", s->n_ctx);
    }
    s->reading = r;
    return 0;
}

/* --- sections ----------------------------------------------------------------------------------------------------------- */

static uint32_t section_from(const kv_reading *r, uint32_t i)
{
    return i ? r->to[i - 1] : 0;
}

void kv__reading_cut(kv_session *s, uint32_t n)
{
    kv_reading *r = s->reading;
    if (!r) return;
    while (r->n && r->known[r->n - 1] > n) r->n--;
    if (r->n_endings > n) r->n_endings = n;
    for (uint32_t layer = 0; layer < s->compute.shape.n_layer; layer++)
        if (r->done[layer] > r->n) r->done[layer] = r->n;
}

/* A whole anchor of parsed code: its extent, not the part of it that is kept first, nor a definition that holds other ones. */
static bool is_extent(const kv_part *part, uint32_t k)
{
    enum { KINDS = KV_MARK_CALL | KV_MARK_CONTROL | KV_MARK_RETURN | KV_MARK_ASSIGN | KV_MARK_SIGNATURE };
    const kv_span *span = &part->spans[k], *next = k + 1 < part->n_spans ? span + 1 : NULL;
    if (!(span->marks & KINDS)) return false;
    if (!(span->marks & KV_MARK_CORE)) return true;
    /* A core whose extent is larger is followed by it. */
    return !(next && !(next->marks & KV_MARK_CORE) && next->reason == span->reason &&
             next->from <= span->from && next->to >= span->to);
}

static int compare_extents(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
    return x[1] == y[1] ? 0 : x[1] > y[1] ? -1 : 1;
}

static uint8_t ending_of(const kv_session *s, int32_t id)
{
    return s->compute.ending ? s->compute.ending(s->compute.user, id) : KV_ENDING_NONE;
}

/*
 * Statements end where the outermost anchors do (a call inside an assignment ends none); the semicolon or newline behind is theirs.
 * Returns whether the part is parsed code at all.
 */
static bool find_statements(kv_reading *r, const kv_part *part)
{
    const kv_session *s = r->session;
    uint32_t(*extents)[2] = base_xmalloc(((size_t)part->n_spans + 1) * sizeof *extents), n = 0, reached = 0;
    for (uint32_t k = 0; k < part->n_spans; k++) {
        if (!is_extent(part, k)) continue;
        extents[n][0] = part->from + part->spans[k].from;
        extents[n++][1] = part->from + part->spans[k].to;
    }
    qsort(extents, n, sizeof *extents, compare_extents);
    kv_bits_clear_range(r->statements, part->from, part->to);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t end = extents[i][1];
        if (end <= reached || end > part->to) continue;
        reached = end;
        if (end < part->to) {
            const uint8_t behind = ending_of(s, s->ids[end]);
            if (behind == KV_ENDING_BLOCK || behind == KV_ENDING_LINE) end++;
        }
        kv_bits_set(r->statements, end - 1);
    }
    free(extents);
    return n > 0;
}

/* What tokens up to `upto` are; those from s->n on are the batch's. In parsed code a full stop is no sentence's. */
static void find_endings(kv_reading *r, const int32_t *ids, uint32_t upto)
{
    const kv_session *s = r->session;
    const kv_part *part = NULL;
    bool is_code = false;
    for (uint32_t t = r->n_endings; t < upto; t++) {
        if (t < s->n && (!part || t >= part->to)) {
            part = kv__part_at(s, t);
            is_code = part && s->parameters.syntax > 0 && part->origin != KV_ORIGIN_ANSWER &&
                      find_statements(r, part);
        }
        uint8_t ending = ending_of(s, t < s->n ? s->ids[t] : ids[t - r->first]);
        if (t < s->n && is_code) {
            if (ending == KV_ENDING_SENTENCE) ending = KV_ENDING_OTHER;
            if (kv_bits_get(r->statements, t)) ending = KV_ENDING_SENTENCE;
        }
        r->endings[t] = ending;
    }
    if (r->n_endings < upto) r->n_endings = upto;
}

static void find_sections(kv_reading *r, const int32_t *ids, uint32_t upto)
{
    const kv_parameters *p = &r->session->parameters;
    const uint32_t length = (uint32_t)p->length, reach = (uint32_t)p->reach, page = (uint32_t)p->page;
    if (p->decode == KV_DECODE_SENTENCE) find_endings(r, ids, upto);
    while (r->n < r->cap) {
        const uint32_t from = section_from(r, r->n);
        uint32_t to = from + page, known = to + 1; /* the token that reads is never in a section */
        if (p->decode == KV_DECODE_SENTENCE) {
            to = kv_sentence_end(r->endings, upto, from, length, reach);
            known = from + length + reach + 1;
        }
        if (!to || known > upto) return;
        r->to[r->n] = to;
        r->known[r->n++] = known;
    }
}

/* Sections that token t of the batch may choose among. */
static uint32_t visible(const kv_reading *r, uint32_t t)
{
    uint32_t n = r->n;
    while (n && r->known[n - 1] > r->first + t + 1) n--;
    return n;
}

/* --- profiles ----------------------------------------------------------------------------------------------------------- */

/* F16 numbers in the order of their values, as signed integers; its own inverse. */
static inline int16_t ordered(uint16_t half)
{
    return (int16_t)(half ^ (half >> 15) * 0x7fffu);
}

static void add_key(int16_t *most, int16_t *least, const uint16_t *key, uint32_t d)
{
    for (uint32_t i = 0; i < d; i++) {
        const int16_t x = ordered(key[i]);
        most[i] = x > most[i] ? x : most[i];
        least[i] = x < least[i] ? x : least[i];
    }
}

/* One section's profile in one lane. Rows that are given up, or not computed there, are in no list: they count nothing. */
static void make_profile(kv_reading *r, uint32_t lane, uint32_t i)
{
    const kv_session *s = r->session;
    const uint32_t d = s->compute.shape.head_dim;
    const model_rows_view rows = kv__view(s);
    int16_t most[MOST_DIM], least[MOST_DIM];
    bool any = false;
    for (uint32_t k = 0; k < d; k++) {
        most[k] = INT16_MIN;
        least[k] = INT16_MAX;
    }
    for (uint32_t t = section_from(r, i); t < r->to[i]; t++) {
        if (!s->table.rows[t / MODEL_ROWS_BLOCK]) continue;
        add_key(most, least, model_rows_key(&rows, lane, t), d);
        any = true;
    }
    uint16_t *key = model_rows_key(&r->profile_view, lane, i),
             *value = model_rows_value(&r->profile_view, lane, i);
    for (uint32_t k = 0; k < d; k++) {
        key[k] = any ? (uint16_t)ordered((uint16_t)most[k]) : 0;
        value[k] = any ? (uint16_t)ordered((uint16_t)least[k]) : 0;
    }
}

/* --- the choice --------------------------------------------------------------------------------------------------------- */

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

/* Active rows of each section, of the list's first up to token `own`; returns those behind the last section. */
static uint32_t count_rows(kv_reading *r, const model_lane_list *list, uint32_t n_sections, uint32_t own)
{
    uint32_t k = 0, behind = 0;
    const uint32_t end = n_sections ? r->to[n_sections - 1] : 0;
    memset(r->n_rows, 0, n_sections * sizeof *r->n_rows);
    for (uint32_t i = 0; i < list->n_runs && list->runs[i].index <= own; i++) {
        const uint32_t from = list->runs[i].index;
        const uint32_t to = from + list->runs[i].n <= own ? from + list->runs[i].n : own + 1;
        while (k < n_sections && r->to[k] <= from) k++;
        for (; k < n_sections && section_from(r, k) < to; k++) {
            const uint32_t first = section_from(r, k) > from ? section_from(r, k) : from;
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
        const uint32_t from = section_from(r, k);
        if (from >= sinks && !kv_bits_count_range(s->pinned, from, r->to[k])) continue;
        r->take[k] = r->n_rows[k];
        n += r->n_rows[k];
    }
    return n;
}

/*
 * Rows of the other sections, the highest bounds first, `room` of them together (fewer than there are): the last section gives
 * its first rows. Equal bounds: the earlier section. Linear: the cut is found by counting digits of the bounds' bits.
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

static void choose_lane(kv_reading *r, uint32_t head, uint32_t lane, uint32_t token)
{
    const kv_parameters *p = &r->session->parameters;
    const model_lane_list *list = &r->rows->lanes[lane];
    const uint32_t own = r->first + token, n_live = list->n_rows - (r->n_batch - 1 - token),
                   rows = kv_reading_rows(p, n_live), n_sections = visible(r, token);
    const float *bound = r->bound + ((size_t)head * r->n_batch + token) * r->n;
    const uint32_t behind = count_rows(r, list, n_sections, own), forced = take_forced(r, n_sections);
    if (rows >= n_live)
        memcpy(r->take, r->n_rows, n_sections * sizeof *r->take);
    else if (behind + forced < rows)
        take_best(r, bound, n_sections, rows - behind - forced);
    count_reuse(r, lane, n_sections);
    put_rows(r, list, n_sections, own, r->runs + head * r->cap_runs, &r->lists[lane]);
    r->reads.live += n_live;
    r->reads.read += r->lists[lane].n_rows;
}

/* --- the model asks ----------------------------------------------------------------------------------------------------- */

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
    for (uint32_t i = r->done[layer]; i < r->n; i++)
        for (uint32_t lane = layer * n_kv; lane < (layer + 1) * n_kv; lane++) make_profile(r, lane, i);
    r->done[layer] = r->n;
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
    (void)err;
    for (uint32_t head = 0; head < n_kv; head++) choose_lane(r, head, layer * n_kv + head, token);
    r->reads.ns += base_clock_ns() - start;
    *ret = &r->chosen_view;
    return 0;
}

int kv__reading_begin(kv_session *s, const model_rows_view *rows, const int32_t *ids, uint32_t first,
    uint32_t n, const model_reader **ret, base_err *err)
{
    *ret = NULL;
    if (!(s->parameters.decode > 0)) return 0;
    const uint64_t start = base_clock_ns();
    int rc = s->reading ? 0 : make(s, err);
    if (rc) return rc;
    kv_reading *r = s->reading;
    const size_t n_kv = s->compute.shape.n_head_kv;
    /* What rests on tokens of the last batch: they may have been computed ahead, and others have come. */
    kv__reading_cut(s, r->first < first ? r->first : first);
    r->rows = rows;
    r->first = first;
    r->n_batch = n;
    r->has_forced = s->parameters.sinks > 0 || kv_bits_next(s->pinned, 0, s->n, true) < s->n;
    find_sections(r, ids, first + n);
    uint32_t done = r->n;
    for (uint32_t layer = 0; layer < s->compute.shape.n_layer; layer++)
        if (r->done[layer] < done) done = r->done[layer];
    rc = kv_table_make_writable(&r->profiles, done, r->n, err);
    if (rc) return rc;
    const size_t wanted = n_kv * n * r->n;
    if (wanted > r->cap_bound) {
        const size_t cap = wanted + wanted / 2 + n_kv * n * 64;
        float *bound = realloc(r->bound, cap * sizeof *bound);
        if (!bound) return base_fail(err, BASE_E_NOMEM, "no memory for the bounds of %u sections", r->n);
        r->bound = bound;
        r->cap_bound = cap;
    }
    r->profile_view = (model_rows_view){
        .shape = s->compute.shape, .blocks = r->profiles.rows, .n_blocks = r->profiles.n, .lanes = NULL};
    r->chosen_view = *rows;
    r->chosen_view.lanes = r->lists;
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
            p->reach, p->syntax, p->page, p->sinks};
        s->holed = true;
        s->schedule = base_hash64(schedule, sizeof schedule, s->schedule);
    }
}

/* --- looking ------------------------------------------------------------------------------------------------------------ */

void kv__reading_stats(const kv_session *s, kv_reads *ret)
{
    *ret = (kv_reads){.steps = 0};
    if (!s->reading) return;
    *ret = s->reading->reads;
    ret->profile_bytes = (uint64_t)s->reading->profiles.n * model_rows_block_bytes(&s->compute.shape);
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
        ret[k] = (kv_section){.from = section_from(r, k),
            .to = r->to[k],
            .lanes = lanes,
            .rows = lanes ? (float)rows / (float)lanes : 0};
    }
    return r->n;
}

/* Mass of a list's rows that the choice has too; both ascend. */
static double shared_mass(const model_lane_list *list, const float *mass, const model_lane_list *chosen)
{
    double sum = 0;
    uint32_t c = 0;
    for (uint32_t i = 0, o = 0; i < list->n_runs; i++)
        for (uint32_t k = 0; k < list->runs[i].n; k++, o++) {
            const uint32_t index = list->runs[i].index + k;
            while (c < chosen->n_runs && chosen->runs[c].index + chosen->runs[c].n <= index) c++;
            if (c < chosen->n_runs && chosen->runs[c].index <= index) sum += (double)mass[o];
        }
    return sum;
}

/* A reader that keeps each layer's choice, which the next layer's writes over. */
typedef struct keeper {
    kv_reading *r;
    model_lane_list *lists; /* [n_lanes]; runs are copies; NULL: the layer is read in full */
} keeper;

static int keep_sections(void *user, uint32_t layer, model_sections *ret, base_err *err)
{
    keeper *k = user;
    return prepare_sections(k->r, layer, ret, err);
}

static int keep_choice(void *user, uint32_t layer, uint32_t token, const model_rows_view **ret, base_err *err)
{
    keeper *k = user;
    const uint32_t n_kv = k->r->session->compute.shape.n_head_kv;
    int rc = choose_rows(k->r, layer, token, ret, err);
    for (uint32_t lane = layer * n_kv; lane < (layer + 1) * n_kv && !rc; lane++) {
        const model_lane_list *from = &k->r->lists[lane];
        model_run *runs = base_xmalloc((from->n_runs + 1) * sizeof *runs);
        memcpy(runs, from->runs, from->n_runs * sizeof *runs);
        k->lists[lane] = *from;
        k->lists[lane].runs = runs;
    }
    return rc;
}

/* Scores the token's queries over all that it could have read, and adds up what fell on its choice. */
static int weigh(kv_session *s, const model_rows_view *rows, const float *queries,
    const model_lane_list *chosen, double *ret, const atomic_bool *cancel, base_err *err)
{
    float **mass = base_xcalloc(s->n_lanes, sizeof *mass);
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (chosen[lane].runs) mass[lane] = base_xmalloc((rows->lanes[lane].n_rows + 1) * sizeof **mass);
    const model_score score = {
        .queries = queries, .n_queries = 1, .rows = rows, .mass = mass, .cancel = cancel};
    int rc = s->compute.score(s->compute.user, &score, err);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        if (!rc && mass[lane]) {
            sum += shared_mass(&rows->lanes[lane], mass[lane], &chosen[lane]);
            n++;
        }
        free(mass[lane]);
    }
    free(mass);
    *ret = n ? sum / n : 1;
    return rc;
}

int kv_session_recovered(kv_session *s, double *ret, const atomic_bool *cancel, base_err *err)
{
    const model_reader *reader = NULL;
    const kv_part *part = s->n ? kv__part_at(s, s->n - 1) : NULL;
    if (!part || part->origin != KV_ORIGIN_ANSWER || !(s->parameters.decode > 0))
        return base_fail(err, BASE_E_STATE, "the last token read everything");
    model_run *runs = NULL;
    model_lane_list *lanes = kv__lists_before(s, s->n - 1, s->n - 1, &runs);
    float *queries = malloc(kv__memory_floats(s) * sizeof *queries);
    keeper k = {.lists = base_xcalloc(s->n_lanes, sizeof *k.lists)};
    int rc = lanes && queries ? 0 : base_fail(err, BASE_E_NOMEM, "no memory to look at a token again");
    model_rows_view rows = kv__view(s);
    rows.lanes = lanes;
    if (!rc) rc = kv__reading_begin(s, &rows, &s->ids[s->n - 1], s->n - 1, 1, &reader, err);
    if (!rc) {
        k.r = s->reading;
        const kv_reads before = k.r->reads;
        const uint32_t zero = 0;
        const model_capture capture = {.tokens = &zero, .n = 1, .queries = queries};
        const model_reader keep = {.user = &k, .sections = keep_sections, .choose = keep_choice};
        /* The row is written once more, with the same bits. */
        const model_batch batch = {.ids = &s->ids[s->n - 1],
            .phases = &s->phases[s->n - 1],
            .n = 1,
            .rows = &rows,
            .capture = &capture,
            .reader = &keep,
            .cancel = cancel};
        rc = kv_table_make_writable(&s->table, s->n - 1, s->n, err);
        rows.blocks = s->table.rows;
        rows.stamps = s->table.stamps;
        if (!rc) rc = s->compute.forward(s->compute.user, &batch, err);
        k.r->reads = before;
    }
    if (!rc) rc = weigh(s, &rows, queries, k.lists, ret, cancel, err);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) free((model_run *)(uintptr_t)k.lists[lane].runs);
    free(k.lists);
    free(queries);
    free(lanes);
    free(runs);
    return rc;
}
