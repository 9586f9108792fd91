/*
 * Sections of the sequence and their profiles; see reading.h. Profiles lie in a small table of rows of their
 * own (a section is a slot, its largest numbers the key, its smallest the value), so the model finds them
 * like rows.
 */
#include "kv/read/sections.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/parameters.h"
#include "kv/read/reading.h"
#include "kv/read/split.h"
#include "model/file/quant.h"

/* --- making --------------------------------------------------------------------------------------------- */

void kv__reading_free(kv_reading *r)
{
    if (!r) return;
    kv_resident_free(r->resident);
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
    free(r->moved);
    free(r->next);
    free(r->n_next);
    free(r->wider);
    free(r->n_chosen);
    free(r);
}

/* The fewest tokens of a section. */
static uint32_t shortest(const kv_parameters *p)
{
    const uint32_t length = (uint32_t)p->length, reach = (uint32_t)p->reach;
    if (p->decode == KV_DECODE_PAGE) return (uint32_t)p->page;
    return length > reach + 1 ? length - reach : 1;
}

enum { MOST_DIM = 512 };

int kv__reading_make(kv_session *s, base_err *err)
{
    if (s->compute.shape.head_dim > MOST_DIM)
        return base_fail(err, BASE_E_UNSUPPORTED, "sections of heads of %u dimensions; at most %d",
            s->compute.shape.head_dim, MOST_DIM);
    kv_reading *r = base_xcalloc(1, sizeof *r);
    const size_t n_tokens = (size_t)s->cap + KV_BATCH + 1, n_kv = s->compute.shape.n_head_kv;
    r->session = s;
    r->partial = UINT32_MAX;
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
        return base_fail(err, BASE_E_NOMEM, "no memory for the sections of a session of %u tokens", s->cap);
    }
    s->reading = r;
    return 0;
}

/* --- sections ------------------------------------------------------------------------------------------- */

void kv__reading_truncate(kv_session *s, uint32_t n)
{
    kv_reading *r = s->reading;
    if (!r) return;
    const uint32_t before = r->n;
    while (r->n && r->known[r->n - 1] > n) r->n--;
    if (r->n < before) kv_resident_forget(r->resident, r->n);
    if (r->n_endings > n) r->n_endings = n;
    for (uint32_t layer = 0; layer < s->compute.shape.n_layer; layer++)
        if (r->done[layer] > r->n) r->done[layer] = r->n;
}

void kv__reading_promoted(kv_session *s)
{
    kv_reading *r = s->reading;
    for (uint32_t layer = 0; r && layer < s->compute.shape.n_layer; layer++)
        if (r->done[layer] > r->partial) r->done[layer] = r->partial;
    if (r) kv_resident_forget(r->resident, 0);
    if (r) r->partial = UINT32_MAX;
}

/* A statement of parsed code: not its essential part alone, nor a definition that holds others. */
static bool is_extent(const kv_stored_segment *part, uint32_t k)
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
 * Statements end where the outermost anchors do (a call inside an assignment ends none); the semicolon or
 * newline behind is theirs. Returns whether the part is parsed code at all.
 */
static bool find_statements(kv_reading *r, const kv_stored_segment *part)
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

/* How each token below `upto` may end a sentence. In parsed code a full stop does not. */
static void find_endings(kv_reading *r, const int32_t *ids, uint32_t upto)
{
    const kv_session *s = r->session;
    const kv_stored_segment *part = NULL;
    bool is_code = false;
    for (uint32_t t = r->n_endings; t < upto; t++) {
        if (t < s->n && (!part || t >= part->to)) {
            part = kv__segment_at(s, t);
            is_code = part && s->parameters.syntax > 0 && !kv_origin_is_written(part->origin) &&
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
    if (p->decode != KV_DECODE_PAGE) find_endings(r, ids, upto);
    while (r->n < r->cap) {
        const uint32_t from = kv__section_from(r, r->n);
        uint32_t to = from + page, known = to + 1; /* the token that reads is never in a section */
        if (p->decode != KV_DECODE_PAGE) {
            to = kv_sentence_end(r->endings, upto, from, length, reach);
            known = from + length + reach + 1;
        }
        if (!to || known > upto) return;
        r->to[r->n] = to;
        r->known[r->n++] = known;
    }
}

uint32_t kv__reading_visible(const kv_reading *r, uint32_t t)
{
    uint32_t n = r->n;
    while (n && r->known[n - 1] > r->first + t + 1) n--;
    return n;
}

/* --- profiles ------------------------------------------------------------------------------------------- */

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

/* Brings the two nearer to their middle. */
static void narrow(uint16_t *most, uint16_t *least, uint32_t d, float slack)
{
    for (uint32_t k = 0; k < d; k++) {
        const float above = quant_f16_to_f32(most[k]), below = quant_f16_to_f32(least[k]);
        const float middle = (above + below) / 2, half = (above - below) / 2 * slack;
        most[k] = quant_f32_to_f16(middle + half);
        least[k] = quant_f32_to_f16(middle - half);
    }
}

/* A section's profile in a lane, of its F16 rows that are computed; the others are in no list. */
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
    for (uint32_t t = kv__section_from(r, i); t < r->to[i]; t++) {
        if (!s->table.rows[t / MODEL_ROWS_BLOCK] || kv__is_deferred(s, lane, t)) {
            if (i < r->partial) r->partial = i;
            continue;
        }
        add_key(most, least, model_rows_key(&rows, lane, t), d);
        any = true;
    }
    uint16_t *key = model_rows_key(&r->profile_view, lane, i),
             *value = model_rows_value(&r->profile_view, lane, i);
    for (uint32_t k = 0; k < d; k++) {
        key[k] = any ? (uint16_t)ordered((uint16_t)most[k]) : 0;
        value[k] = any ? (uint16_t)ordered((uint16_t)least[k]) : 0;
    }
    if (s->parameters.slack < 1) narrow(key, value, d, (float)s->parameters.slack);
}

int kv__reading_update(kv_reading *r, const int32_t *ids, uint32_t first, uint32_t n, base_err *err)
{
    kv_session *s = r->session;
    /* What rests on tokens of the last batch: they may have been computed ahead, and others have come. */
    kv__reading_truncate(s, r->first < first ? r->first : first);
    r->first = first;
    r->n_batch = n;
    find_sections(r, ids, first + n);
    uint32_t done = r->n;
    for (uint32_t layer = 0; layer < s->compute.shape.n_layer; layer++)
        if (r->done[layer] < done) done = r->done[layer];
    int rc = kv_table_make_writable(&r->profiles, done, r->n, err);
    r->profile_view = (model_rows_view){
        .shape = s->compute.shape, .blocks = r->profiles.rows, .n_blocks = r->profiles.n, .lanes = NULL};
    return rc;
}

void kv__reading_profiles(kv_reading *r, uint32_t layer)
{
    const uint32_t n_kv = r->session->compute.shape.n_head_kv;
    for (uint32_t i = r->done[layer]; i < r->n; i++)
        for (uint32_t lane = layer * n_kv; lane < (layer + 1) * n_kv; lane++) make_profile(r, lane, i);
    r->done[layer] = r->n;
}
