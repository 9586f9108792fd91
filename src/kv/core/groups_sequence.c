/* Groups of a session's state (groups.h) that are its sequence: tokens, their rows, segments, folds, states. */
#include "kv/core/group.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* --- arrays over tokens --------------------------------------------------------------------------------- */

/* Each has room for `cap` tokens. */
typedef enum kind { OF_TOKEN, BIT_OF_TOKEN, PLACE_IN_FILE } kind;
static const struct array {
    size_t at, size;
    kind kind;
    bool is_apart; /* saved by a group of its own */
} arrays[] = {
    {offsetof(kv_session, ids), sizeof(int32_t), OF_TOKEN},
    {offsetof(kv_session, phases), sizeof(uint32_t), OF_TOKEN},
    {offsetof(kv_session, file_row), sizeof(uint32_t), PLACE_IN_FILE},
    {offsetof(kv_session, row_hash), sizeof(uint64_t), PLACE_IN_FILE},
    {offsetof(kv_session, cut), sizeof(uint16_t), OF_TOKEN},
    {offsetof(kv_session, tokens), sizeof(kv_token), OF_TOKEN},
    {offsetof(kv_session, pinned), sizeof(uint64_t), BIT_OF_TOKEN},
    {offsetof(kv_session, barred), sizeof(uint64_t), BIT_OF_TOKEN},
    {offsetof(kv_session, stale), sizeof(uint64_t), BIT_OF_TOKEN},
    {offsetof(kv_session, lost), sizeof(uint64_t), BIT_OF_TOKEN},
    {offsetof(kv_session, outshone), sizeof(uint64_t), BIT_OF_TOKEN, .is_apart = true},
};
enum { N_ARRAYS = sizeof arrays / sizeof *arrays };

static void **items_of(const kv_session *s, const struct array *a)
{
    return (void **)((char *)(uintptr_t)s + a->at);
}

static size_t length(const struct array *a, size_t n_tokens)
{
    return a->kind == BIT_OF_TOKEN ? kv_bits_words(n_tokens) : n_tokens;
}

static int init_arrays(kv_session *s, base_err *err)
{
    for (size_t i = 0; i < N_ARRAYS; i++) {
        void **items = items_of(s, &arrays[i]);
        *items = calloc(length(&arrays[i], (size_t)s->cap + 1), arrays[i].size);
        if (!*items)
            return base_fail(
                err, BASE_E_NOMEM, "no memory for a session of %u tokens; choose a smaller --ctx", s->cap);
    }
    return 0;
}

static int grow_arrays(kv_session *s, uint32_t cap, base_err *err)
{
    for (size_t i = 0; i < N_ARRAYS; i++) {
        void **items = items_of(s, &arrays[i]);
        const size_t size = arrays[i].size, old = length(&arrays[i], (size_t)s->cap + 1),
                     new = length(&arrays[i], (size_t)cap + 1);
        void *grown = realloc(*items, new *size);
        if (!grown) return base_fail(err, BASE_E_NOMEM, "no memory for a session of %u tokens", cap);
        memset((char *)grown + old * size, 0, (new - old) * size);
        *items = grown;
    }
    return 0;
}

static void free_arrays(kv_session *s)
{
    for (size_t i = 0; i < N_ARRAYS; i++) free(*items_of(s, &arrays[i]));
}

static int copy_arrays(kv_session *to, const kv_session *s, base_err *err)
{
    for (size_t i = 0; i < N_ARRAYS; i++)
        if (arrays[i].kind != PLACE_IN_FILE)
            memcpy(*items_of(to, &arrays[i]), *items_of(s, &arrays[i]),
                length(&arrays[i], s->n) * arrays[i].size);
    memset(to->file_row, 0xff, s->n * sizeof *to->file_row); /* KV_NO_ROW */
    return 0;
}

static void truncate_arrays(kv_session *s, uint32_t n)
{
    for (size_t i = 0; i < N_ARRAYS; i++)
        if (arrays[i].kind == BIT_OF_TOKEN) kv_bits_clear_range(*items_of(s, &arrays[i]), n, s->n);
}

static void put_arrays(const kv_session *s, base_buf *out)
{
    for (size_t i = 0; i < N_ARRAYS; i++)
        if (!arrays[i].is_apart)
            kv__put(out, *items_of(s, &arrays[i]), length(&arrays[i], s->n), arrays[i].size);
}

static void get_bits(const kv_session *s, kv__reader *r, uint64_t *bits)
{
    kv__get(r, bits, kv_bits_words(s->n), sizeof *bits);
    if (s->n % 64 && !r->bad && bits[s->n / 64] >> s->n % 64) r->bad = true;
}

static int get_arrays(kv_session *s, kv__reader *r, base_err *err)
{
    for (size_t i = 0; i < N_ARRAYS; i++) {
        void *items = *items_of(s, &arrays[i]);
        if (arrays[i].is_apart) continue;
        if (arrays[i].kind == BIT_OF_TOKEN)
            get_bits(s, r, items);
        else
            kv__get(r, items, s->n, arrays[i].size);
    }
    for (uint32_t t = 0; t < s->n && !r->bad; t++) {
        const bool has_place = s->file_row[t] < r->n_rows;
        if (s->ids[t] < 0 || (uint32_t)s->ids[t] >= s->compute.n_vocab ||
            (s->cut[t] && !kv__cut_fits(&s->compute, s->cut[t])) ||
            (!has_place && !(s->file_row[t] == KV_NO_ROW && kv_bits_get(s->lost, t))))
            r->bad = true;
    }
    return 0;
}

const kv__group kv__group_arrays = {.init = init_arrays,
    .grow = grow_arrays,
    .free = free_arrays,
    .copy = copy_arrays,
    .truncate = truncate_arrays,
    .put = put_arrays,
    .get = get_arrays};

/* --- rows and live lists -------------------------------------------------------------------------------- */

static int init_rows(kv_session *s, base_err *err)
{
    kv_table_init(&s->table, &s->compute.shape);
    s->table.device = s->compute.device;
    return kv_lists_init(&s->lists, s->n_lanes, s->cap, err);
}

static int grow_rows(kv_session *s, uint32_t cap, base_err *err)
{
    return kv_lists_reserve(&s->lists, cap, err);
}

static void free_rows(kv_session *s)
{
    kv_table_fini(&s->table);
    kv_lists_fini(&s->lists);
}

static int copy_rows(kv_session *to, const kv_session *s, base_err *err)
{
    kv_lists_fini(&to->lists);
    int rc = kv_lists_copy(&to->lists, &s->lists, err);
    if (!rc) rc = kv_lists_reserve(&to->lists, to->cap, err);
    return rc ? rc : kv_table_share(&to->table, &s->table, err);
}

static void truncate_rows(kv_session *s, uint32_t n)
{
    kv_lists_truncate(&s->lists, n);
    kv_table_truncate(&s->table, n);
}

static void put_lists(const kv_session *s, base_buf *out)
{
    const size_t n_words = kv_bits_words(s->n);
    /* Per lane: the lane whose list it shares, or itself and then the bits. */
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        uint32_t same = 0;
        while (s->lists.lane[same] != s->lists.lane[lane]) same++;
        kv__put32(out, same);
        if (same == lane) kv__put(out, s->lists.lane[lane]->bits, n_words, sizeof(uint64_t));
    }
}

/* A row that is not computed is in no list. */
static void check_cuts(const kv_session *s, kv__reader *r)
{
    for (uint32_t i = 0; i < s->n && !r->bad; i++)
        for (uint32_t lane = (uint32_t)s->cut[i] * s->compute.shape.n_head_kv; s->cut[i] && lane < s->n_lanes;
             lane++)
            if (kv_bits_get(s->lists.lane[lane]->bits, i)) r->bad = true;
}

static int get_lists(kv_session *s, kv__reader *r, base_err *err)
{
    const size_t n_words = kv_bits_words(s->n);
    /*
     * Distinct lists take their bits in the file, shared ones four bytes: check the least before allocating.
     */
    if (s->n_lanes > r->left / sizeof(uint32_t)) r->bad = true;
    uint64_t *flips = r->bad ? NULL : calloc(n_words * s->n_lanes + 1, sizeof *flips);
    if (!flips) {
        r->bad = true;
        return 0;
    }
    for (uint32_t lane = 0; lane < s->n_lanes && !r->bad; lane++) {
        uint64_t *bits = flips + lane * n_words;
        const uint32_t same = kv__get32(r);
        if (same < lane)
            memcpy(bits, flips + same * n_words, n_words * sizeof *bits);
        else if (same > lane || !kv__get(r, bits, n_words, sizeof *bits) ||
                 (s->n % 64 && bits[n_words - 1] >> s->n % 64))
            r->bad = true;
    }
    int rc = 0;
    if (!r->bad) {
        for (size_t w = 0; w < n_words * s->n_lanes; w++) flips[w] ^= kv_bits_mask(w % n_words, 0, s->n);
        rc = kv_lists_append(&s->lists, s->n, err);
        if (!rc) rc = kv_lists_flip(&s->lists, flips, err);
    }
    free(flips);
    if (!rc && !r->bad) check_cuts(s, r);
    return rc;
}

const kv__group kv__group_rows = {.init = init_rows,
    .grow = grow_rows,
    .free = free_rows,
    .copy = copy_rows,
    .truncate = truncate_rows,
    .put = put_lists,
    .get = get_lists};

/* --- segments ------------------------------------------------------------------------------------------- */

static void free_segments(kv_session *s)
{
    for (size_t i = 0; i < s->n_segments; i++) kv__segment_fini(&s->segments[i]);
    free(s->segments);
}

static int copy_segments(kv_session *to, const kv_session *s, base_err *err)
{
    for (size_t i = 0; i < s->n_segments; i++) kv__segment_add(to, &s->segments[i]);
    return 0;
}

static void truncate_segments(kv_session *s, uint32_t n)
{
    while (s->n_segments && s->segments[s->n_segments - 1].from >= n)
        kv__segment_fini(&s->segments[--s->n_segments]);
    if (s->n_segments && s->segments[s->n_segments - 1].to > n) s->segments[s->n_segments - 1].to = n;
}

static void put_segment(base_buf *out, const kv_stored_segment *p)
{
    const uint32_t fields[] = {
        p->from, p->to, p->turn, (uint32_t)p->origin, p->n_spans, p->n_lines, p->is_bulk};
    kv__put(out, fields, sizeof fields / sizeof *fields, sizeof *fields);
    for (uint32_t i = 0; i < p->n_spans; i++) {
        kv__put32(out, p->spans[i].from);
        kv__put32(out, p->spans[i].to);
        kv__put32(out, p->spans[i].reason);
        base_buf_add(out, &p->spans[i].weight, sizeof p->spans[i].weight);
        kv__put32(out, p->spans[i].marks);
        kv__put32(out, (uint32_t)p->spans[i].n_flow << 16 | p->spans[i].n_dependence);
    }
    kv__put(out, p->lines, p->n_lines, sizeof *p->lines);
}

static void put_segments(const kv_session *s, base_buf *out)
{
    for (size_t i = 0; i < s->n_segments; i++) put_segment(out, &s->segments[i]);
}

static void get_segment(kv__reader *r, kv_session *s, uint32_t expected_from)
{
    uint32_t f[7] = {0};
    kv__get(r, f, sizeof f / sizeof *f, sizeof *f);
    kv_stored_segment part = {
        .from = f[0], .to = f[1], .turn = f[2], .origin = (kv_origin)f[3], .is_bulk = f[6]};
    if (r->bad || part.from != expected_from || part.to <= part.from || part.to > s->n ||
        f[3] >= KV_N_ORIGINS || f[4] > r->left / 24 || f[5] > r->left / 4) {
        r->bad = true;
        return;
    }
    part.n_spans = f[4];
    part.n_lines = f[5];
    part.spans = base_xcalloc(part.n_spans + 1, sizeof *part.spans);
    for (uint32_t i = 0; i < part.n_spans; i++) {
        kv_span *span = &part.spans[i];
        span->from = kv__get32(r);
        span->to = kv__get32(r);
        const uint32_t reason = kv__get32(r);
        kv__get(r, &span->weight, 1, sizeof span->weight);
        span->reason = (uint8_t)reason;
        const uint32_t marks = kv__get32(r), edges = kv__get32(r);
        span->marks = (uint16_t)marks;
        span->n_flow = (uint16_t)(edges >> 16);
        span->n_dependence = (uint16_t)edges;
        if (span->from >= span->to || span->to > s->n_ctx || reason >= KV_N_REASONS || marks > UINT16_MAX ||
            span->weight != span->weight)
            r->bad = true;
    }
    part.lines = kv__get_new(r, part.n_lines, sizeof *part.lines);
    for (uint32_t i = 0; i < part.n_lines && !r->bad; i++)
        if (part.lines[i] > s->n_ctx || (i && part.lines[i] <= part.lines[i - 1])) r->bad = true;
    if (!r->bad) kv__segment_add(s, &part);
    kv__segment_fini(&part);
}

static int get_segments(kv_session *s, kv__reader *r, base_err *err)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < r->has[KV_HAS_PARTS] && !r->bad; i++) {
        get_segment(r, s, end);
        if (!r->bad) end = s->segments[s->n_segments - 1].to;
    }
    r->bad = r->bad || end != s->n;
    return 0;
}

const kv__group kv__group_segments = {.free = free_segments,
    .copy = copy_segments,
    .truncate = truncate_segments,
    .put = put_segments,
    .get = get_segments};

/* --- states --------------------------------------------------------------------------------------------- */

static int copy_states(kv_session *to, const kv_session *s, base_err *err)
{
    kv_states_copy(&to->states, &s->states);
    return 0;
}

static void truncate_states(kv_session *s, uint32_t n)
{
    kv_states_truncate(&s->states, n);
}

/* Where they lie on disk; nothing where there are none, as before there were any. */
static void put_states(const kv_session *s, base_buf *out)
{
    const kv_states *st = &s->states;
    if (!s->compute.state_bytes) return;
    kv__put32(out, st->n_saved);
    for (uint32_t i = 0; i < st->n_saved; i++) {
        kv__put32(out, st->saved[i].at);
        kv__put32(out,
            st->saved[i].place | (uint32_t)st->saved[i].kept << 31 | (uint32_t)st->saved[i].before << 30);
        kv__put(out, &st->saved[i].hash, 1, sizeof st->saved[i].hash);
    }
}

static int get_states(kv_session *s, kv__reader *r, base_err *err)
{
    kv_states *st = &s->states;
    if (!s->compute.state_bytes) return 0;
    st->n_saved = kv__get32(r);
    if (st->n_saved > KV_STATES_MOST + 2) r->bad = true;
    if (r->bad) st->n_saved = 0;
    for (uint32_t i = 0; i < st->n_saved && !r->bad; i++) {
        st->saved[i].at = kv__get32(r);
        const uint32_t place = kv__get32(r);
        st->saved[i].place = place & (INT32_MAX >> 1);
        st->saved[i].kept = place >> 31;
        st->saved[i].before = place >> 30 & 1;
        st->saved[i].hash = kv__get64(r);
        if (st->saved[i].at == 0 || st->saved[i].at > s->n || st->saved[i].place > 1 << 20) r->bad = true;
    }
    return 0;
}

const kv__group kv__group_states = {
    .copy = copy_states, .truncate = truncate_states, .put = put_states, .get = get_states};

/* --- the fold ------------------------------------------------------------------------------------------- */

static void free_fold(kv_session *s)
{
    kv_fold_free(&s->fold);
}

static int copy_fold(kv_session *to, const kv_session *s, base_err *err)
{
    return kv_fold_copy(&to->fold, &s->fold, err);
}

static void truncate_fold(kv_session *s, uint32_t n)
{
    kv_fold_truncate(&s->fold, n);
}

static bool anything_outshone(const kv_session *s)
{
    return kv_bits_next(s->outshone, 0, s->n, true) < s->n;
}

/* At the end, and nothing where nothing is folded: such manifests are what they were before there were folds. */
static void put_fold(const kv_session *s, base_buf *out)
{
    if (!s->fold.n && !anything_outshone(s)) return;
    kv__put32(out, s->fold.n);
    kv__put(out, s->fold.gaps, s->fold.n, sizeof *s->fold.gaps);
}

static int get_fold(kv_session *s, kv__reader *r, base_err *err)
{
    if (r->bad || !r->left) return 0;
    const uint32_t n = kv__get32(r);
    s->fold.gaps = n ? kv__get_new(r, n, sizeof *s->fold.gaps) : NULL;
    s->fold.n = s->fold.cap = s->fold.gaps ? n : 0;
    r->bad = r->bad || (n ? !kv_fold_is_valid(&s->fold, s->n) : !r->left);
    if (r->bad || !n || kv__is_endless(s)) return 0;
    return base_fail(err, BASE_E_STATE,
        "the saved session has no end (it reads %u tokens within a context of %u), which this "
        "budget, policy or backend does not have: resume it with --kv-budget auto on the CPU",
        s->n, s->compute.n_ctx);
}

const kv__group kv__group_fold = {
    .free = free_fold, .copy = copy_fold, .truncate = truncate_fold, .put = put_fold, .get = get_fold};

/* --- what a repair outshone ----------------------------------------------------------------------------- */

/* Behind the fold, and nothing where nothing is outshone, for the same reason. */
static void put_outshone(const kv_session *s, base_buf *out)
{
    if (anything_outshone(s)) kv__put(out, s->outshone, kv_bits_words(s->n), sizeof *s->outshone);
}

static int get_outshone(kv_session *s, kv__reader *r, base_err *err)
{
    if (r->bad || !r->left) return 0;
    get_bits(s, r, s->outshone);
    r->bad = r->bad || !anything_outshone(s);
    return 0;
}

const kv__group kv__group_outshone = {.put = put_outshone, .get = get_outshone};
