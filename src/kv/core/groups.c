/* The groups of a session's state, in the order in which a manifest has them; see groups.h. */
#include "kv/core/groups.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* --- bytes ---------------------------------------------------------------------------------------------- */

static void put32(base_buf *out, uint32_t x)
{
    base_buf_add(out, &x, sizeof x);
}

/* Arrays of a count that the reader knows. */
static void put(base_buf *out, const void *items, size_t n, size_t size)
{
    if (n) base_buf_add(out, items, n * size);
}

/*
 * What stands in front of all else: numbers of the session (NUMBERS), and how much there is of what follows.
 */
enum {
    HAS_TOKENS,
    HAS_LANES,
    HAS_VOCAB,
    HAS_HEADS,
    HAS_PARTS = 8,
    HAS_REQUEST,
    HAS_MEMORY,
    HAS_LOGITS,
    HAS_JOURNAL,
    HAS_HEAVY,
    HAS_ASKED = 15,
    HAS_WAITING,
    N_NUMBERS = 23,
    HOLED = 5 /* and behind its bit sketched_to: a session saved before there were sketches has none */
};
/* X(place, field of the session) */
#define NUMBERS(X)                                                                                           \
    X(4, turn)                                                                                               \
    X(6, has_request)                                                                                        \
    X(7, request_turn)                                                                                       \
    X(14, pending)                                                                                           \
    X(17, waiting.origin)                                                                                    \
    X(18, waiting.turn)                                                                                      \
    X(19, waiting.is_whole) X(20, judged_from) X(21, judged_to)

typedef struct reader {
    const uint8_t *at;
    size_t left;
    bool bad;
    uint32_t has[N_NUMBERS];
    uint64_t n_rows; /* places in the row file */
} reader;

/* n items of a size, copied to `to`; false and bad when the bytes do not hold them. */
static bool get(reader *r, void *to, size_t n, size_t size)
{
    size_t n_bytes;
    if (r->bad || !base_mul(n, size, &n_bytes) || n_bytes > r->left) {
        r->bad = true;
        return false;
    }
    if (n_bytes) memcpy(to, r->at, n_bytes);
    r->at += n_bytes;
    r->left -= n_bytes;
    return true;
}

static uint32_t get32(reader *r)
{
    uint32_t x = 0;
    get(r, &x, 1, sizeof x);
    return x;
}

static uint64_t get64(reader *r)
{
    uint64_t x = 0;
    get(r, &x, 1, sizeof x);
    return x;
}

/* The same into fresh memory, only after the bytes are known to be there; NULL when bad. */
static void *get_new(reader *r, size_t n, size_t size)
{
    size_t n_bytes;
    if (r->bad || !base_mul(n, size, &n_bytes) || n_bytes > r->left) {
        r->bad = true;
        return NULL;
    }
    void *items = malloc(n_bytes + 1);
    if (!items || !get(r, items, n, size)) {
        r->bad = true;
        free(items);
        return NULL;
    }
    return items;
}

/* --- numbers -------------------------------------------------------------------------------------------- */

static uint32_t count_memory(const kv_session *s)
{
    uint32_t n = 0;
    for (const kv_memory *m = s->memory; m && n < KV_MEMORY_KEPT; m = m->past) n++;
    return n;
}

static bool has_logits(const kv_session *s)
{
    return s->logits && s->logits_at == s->n && s->n;
}

static void put_numbers(const kv_session *s, base_buf *out)
{
#define PUT(place, field) [place] = (uint32_t)s->field,
    const uint32_t has[N_NUMBERS] = {NUMBERS(PUT)[HAS_TOKENS] = s->n,
        [HOLED] = s->sketched_to << 1 | s->holed, [HAS_LANES] = s->n_lanes, [HAS_VOCAB] = s->compute.n_vocab,
        [HAS_HEADS] = s->compute.n_head, [HAS_PARTS] = (uint32_t)s->n_segments, [HAS_REQUEST] = s->request.n,
        [HAS_MEMORY] = count_memory(s), [HAS_LOGITS] = has_logits(s), [HAS_JOURNAL] = s->n_journal,
        [HAS_HEAVY] = s->heavy != NULL, [HAS_ASKED] = s->asked.n, [HAS_WAITING] = s->waiting.kept.n};
    put(out, &s->epoch, 1, sizeof s->epoch);
    put(out, &s->schedule, 1, sizeof s->schedule);
    put(out, has, N_NUMBERS, sizeof *has);
}

static int get_numbers(kv_session *s, reader *r, base_err *err)
{
    const uint32_t *has = r->has;
    s->epoch = get64(r);
    s->schedule = get64(r);
    get(r, r->has, N_NUMBERS, sizeof *r->has);
    if (r->bad || has[HAS_LANES] != s->n_lanes || has[HAS_VOCAB] != s->compute.n_vocab ||
        has[HAS_HEADS] != s->compute.n_head)
        return base_fail(err, BASE_E_FORMAT, "the session's manifest is of another model");
    if (has[HAS_TOKENS] > s->n_ctx)
        return base_fail(err, BASE_E_FORMAT,
            "the saved session has %u tokens, more than the context of %u; --kv-budget auto goes on behind "
            "it",
            has[HAS_TOKENS], s->n_ctx);
    const int rc = kv__reserve(s, has[HAS_TOKENS], err);
    if (rc) return rc;
    s->n = has[HAS_TOKENS];
#define GET(place, field) s->field = has[place];
    NUMBERS(GET)
    s->holed = has[HOLED] & 1;
    s->sketched_to = has[HOLED] >> 1;
    if ((uint32_t)s->waiting.origin >= KV_N_ORIGINS || s->sketched_to > s->n ||
        (s->pending != KV_NO_ROW && s->pending >= s->n))
        r->bad = true;
    return 0;
}

static int init_numbers(kv_session *s, base_err *err)
{
    s->pending = KV_NO_ROW;
    return 0;
}

static int copy_numbers(kv_session *to, const kv_session *s, base_err *err)
{
    to->n = s->n;
    to->epoch = s->epoch;
    to->schedule = s->schedule;
#define COPY(place, field) to->field = s->field;
    NUMBERS(COPY)
    to->holed = s->holed;
    to->sketched_to = s->sketched_to;
    return 0;
}

static void truncate_numbers(kv_session *s, uint32_t n)
{
    if (s->pending != KV_NO_ROW && s->pending >= n) s->pending = KV_NO_ROW;
    if (s->judged_to > n) s->judged_to = 0;
    if (s->sketched_to > n) s->sketched_to = n;
}

/* --- arrays over tokens --------------------------------------------------------------------------------- */

/* Each has room for `cap` tokens. */
typedef enum kind { OF_TOKEN, BIT_OF_TOKEN, PLACE_IN_FILE } kind;
static const struct array {
    size_t at, size;
    kind kind;
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
        put(out, *items_of(s, &arrays[i]), length(&arrays[i], s->n), arrays[i].size);
}

static int get_arrays(kv_session *s, reader *r, base_err *err)
{
    for (size_t i = 0; i < N_ARRAYS; i++) {
        const uint64_t *bits = *items_of(s, &arrays[i]);
        get(r, *items_of(s, &arrays[i]), length(&arrays[i], s->n), arrays[i].size);
        if (arrays[i].kind == BIT_OF_TOKEN && s->n % 64 && !r->bad && bits[s->n / 64] >> s->n % 64)
            r->bad = true;
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

/* --- rows and live lists -------------------------------------------------------------------------------- */

static int init_rows(kv_session *s, base_err *err)
{
    kv_table_init(&s->table, &s->compute.shape);
    s->table.device = s->compute.device;
    return kv_lists_init(&s->lists, s->n_lanes, s->cap, err);
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
        put32(out, same);
        if (same == lane) put(out, s->lists.lane[lane]->bits, n_words, sizeof(uint64_t));
    }
}

/* A row that is not computed is in no list. */
static void check_cuts(const kv_session *s, reader *r)
{
    for (uint32_t i = 0; i < s->n && !r->bad; i++)
        for (uint32_t lane = (uint32_t)s->cut[i] * s->compute.shape.n_head_kv; s->cut[i] && lane < s->n_lanes;
             lane++)
            if (kv_bits_get(s->lists.lane[lane]->bits, i)) r->bad = true;
}

static int get_lists(kv_session *s, reader *r, base_err *err)
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
        const uint32_t same = get32(r);
        if (same < lane)
            memcpy(bits, flips + same * n_words, n_words * sizeof *bits);
        else if (same > lane || !get(r, bits, n_words, sizeof *bits) ||
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

/* --- segments ------------------------------------------------------------------------------------------- */

static void free_parts(kv_session *s)
{
    for (size_t i = 0; i < s->n_segments; i++) kv__segment_fini(&s->segments[i]);
    free(s->segments);
}

static int copy_parts(kv_session *to, const kv_session *s, base_err *err)
{
    for (size_t i = 0; i < s->n_segments; i++) kv__segment_add(to, &s->segments[i]);
    return 0;
}

static void truncate_parts(kv_session *s, uint32_t n)
{
    while (s->n_segments && s->segments[s->n_segments - 1].from >= n)
        kv__segment_fini(&s->segments[--s->n_segments]);
    if (s->n_segments && s->segments[s->n_segments - 1].to > n) s->segments[s->n_segments - 1].to = n;
}

static void put_part(base_buf *out, const kv_stored_segment *p)
{
    const uint32_t fields[] = {
        p->from, p->to, p->turn, (uint32_t)p->origin, p->n_spans, p->n_lines, p->is_bulk};
    put(out, fields, sizeof fields / sizeof *fields, sizeof *fields);
    for (uint32_t i = 0; i < p->n_spans; i++) {
        put32(out, p->spans[i].from);
        put32(out, p->spans[i].to);
        put32(out, p->spans[i].reason);
        base_buf_add(out, &p->spans[i].weight, sizeof p->spans[i].weight);
        put32(out, p->spans[i].marks);
        put32(out, (uint32_t)p->spans[i].n_flow << 16 | p->spans[i].n_dependence);
    }
    put(out, p->lines, p->n_lines, sizeof *p->lines);
}

static void put_parts(const kv_session *s, base_buf *out)
{
    for (size_t i = 0; i < s->n_segments; i++) put_part(out, &s->segments[i]);
}

static void get_part(reader *r, kv_session *s, uint32_t expected_from)
{
    uint32_t f[7] = {0};
    get(r, f, sizeof f / sizeof *f, sizeof *f);
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
        span->from = get32(r);
        span->to = get32(r);
        const uint32_t reason = get32(r);
        get(r, &span->weight, 1, sizeof span->weight);
        span->reason = (uint8_t)reason;
        const uint32_t marks = get32(r), edges = get32(r);
        span->marks = (uint16_t)marks;
        span->n_flow = (uint16_t)(edges >> 16);
        span->n_dependence = (uint16_t)edges;
        if (span->from >= span->to || span->to > s->n_ctx || reason >= KV_N_REASONS || marks > UINT16_MAX ||
            span->weight != span->weight)
            r->bad = true;
    }
    part.lines = get_new(r, part.n_lines, sizeof *part.lines);
    for (uint32_t i = 0; i < part.n_lines && !r->bad; i++)
        if (part.lines[i] > s->n_ctx || (i && part.lines[i] <= part.lines[i - 1])) r->bad = true;
    if (!r->bad) kv__segment_add(s, &part);
    kv__segment_fini(&part);
}

static int get_parts(kv_session *s, reader *r, base_err *err)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < r->has[HAS_PARTS] && !r->bad; i++) {
        get_part(r, s, end);
        if (!r->bad) end = s->segments[s->n_segments - 1].to;
    }
    r->bad = r->bad || end != s->n;
    return 0;
}

/* --- signals -------------------------------------------------------------------------------------------- */

static const size_t signals[] = {offsetof(kv_session, request), offsetof(kv_session, asked),
    offsetof(kv_session, waiting.kept), offsetof(kv_session, recent)};
enum { N_SIGNALS = sizeof signals / sizeof *signals, N_SAVED = 3 /* the newest text's is computed again */ };

static kv_signal *signal_of(const kv_session *s, size_t i)
{
    return (kv_signal *)(void *)((char *)(uintptr_t)s + signals[i]);
}

static int init_signals(kv_session *s, base_err *err)
{
    const model_rows_shape *shape = &s->compute.shape;
    for (size_t i = 0; i < N_SIGNALS; i++)
        kv_signal_init(signal_of(s, i), shape->n_layer, s->compute.n_head, shape->head_dim);
    return 0;
}

static void free_signals(kv_session *s)
{
    for (size_t i = 0; i < N_SIGNALS; i++) kv_signal_fini(signal_of(s, i));
}

static int copy_signals(kv_session *to, const kv_session *s, base_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < N_SIGNALS && !rc; i++) rc = kv_signal_copy(signal_of(to, i), signal_of(s, i), err);
    return rc;
}

/* After the request was truncated an older one is it. Its queries are gone; nobody else's stand in. */
static void find_older_request(kv_session *s)
{
    s->has_request = false;
    for (size_t i = s->n_segments; i-- > 0 && !s->has_request;)
        if (s->segments[i].origin == KV_ORIGIN_USER) {
            s->has_request = true;
            s->request_turn = s->segments[i].turn;
        }
}

static void truncate_signals(kv_session *s, uint32_t n)
{
    kv_signal *waiting = &s->waiting.kept, *request = &s->request;
    kv_signal_crop(&s->recent, 0, n);
    kv_signal_crop(&s->asked, 0, n);
    if (waiting->n && waiting->tokens[waiting->n - 1] >= n) kv_signal_fini(waiting);
    if (!request->n || request->tokens[request->n - 1] < n) return;
    kv_signal_crop(request, 0, n);
    if (!request->n) find_older_request(s);
}

static void put_signals(const kv_session *s, base_buf *out)
{
    for (size_t i = 0; i < N_SAVED; i++) {
        const kv_signal *signal = signal_of(s, i);
        put(out, signal->tokens, signal->n, sizeof *signal->tokens);
        put(out, signal->queries, signal->n * kv__memory_floats(s), sizeof *signal->queries);
    }
}

static void get_signal(reader *r, const kv_session *s, kv_signal *signal, uint32_t n)
{
    const size_t n_memory = kv__memory_floats(s);
    if (!n || n > KV_RECENT_QUERIES) {
        r->bad = r->bad || n;
        return;
    }
    signal->tokens = get_new(r, n, sizeof *signal->tokens);
    signal->queries = get_new(r, n_memory * n, sizeof *signal->queries);
    if (r->bad) return;
    signal->n = n;
    for (uint32_t i = 0; i < n; i++)
        if (signal->tokens[i] >= s->n || (i && signal->tokens[i] <= signal->tokens[i - 1])) r->bad = true;
}

static int get_signals(kv_session *s, reader *r, base_err *err)
{
    const uint32_t n[N_SAVED] = {r->has[HAS_REQUEST], r->has[HAS_ASKED], r->has[HAS_WAITING]};
    for (size_t i = 0; i < N_SAVED; i++) get_signal(r, s, signal_of(s, i), n[i]);
    return 0;
}

/* --- the memory of requests ----------------------------------------------------------------------------- */

static void free_memory(kv_session *s)
{
    kv_memory_unref(s->memory);
}

static int copy_memory(kv_session *to, const kv_session *s, base_err *err)
{
    to->memory = kv_memory_ref(s->memory);
    return 0;
}

static void truncate_memory(kv_session *s, uint32_t n)
{
    s->memory = kv_memory_rewind(s->memory, n);
}

/* The newest states, oldest first. */
static void put_memory(const kv_session *s, base_buf *out)
{
    const kv_memory *kept[KV_MEMORY_KEPT], *m = s->memory;
    const uint32_t n = count_memory(s);
    for (uint32_t i = n; i-- > 0; m = m->past) kept[i] = m;
    for (uint32_t i = 0; i < n; i++) {
        put32(out, kept[i]->at);
        put(out, kept[i]->sum, kv__memory_floats(s), sizeof(float));
        put(out, kept[i]->message, kv__memory_floats(s), sizeof(float));
    }
}

static int get_memory(kv_session *s, reader *r, base_err *err)
{
    const size_t n_floats = kv__memory_floats(s);
    const uint32_t n = r->has[HAS_MEMORY];
    if (n > KV_MEMORY_KEPT) r->bad = true;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const uint32_t at = get32(r);
        if (r->left / sizeof(float) / 2 < n_floats || at > s->n || (s->memory && at < s->memory->at))
            r->bad = true;
        kv_memory *m = r->bad ? NULL : kv_memory_new(s->memory, n_floats, at);
        if (!m) {
            r->bad = true;
            return 0;
        }
        get(r, m->sum, n_floats, sizeof(float));
        get(r, m->message, n_floats, sizeof(float));
        kv_memory_unref(s->memory);
        s->memory = m;
    }
    return 0;
}

/* --- what there may be: what policies add up, the last logits ------------------------------------------- */

static void free_optional(kv_session *s)
{
    free(s->heavy);
    free(s->logits);
}

static int copy_optional(kv_session *to, const kv_session *s, base_err *err)
{
    if (s->heavy) to->heavy = base_xcalloc((size_t)s->n_lanes * to->cap + 1, sizeof *to->heavy);
    for (uint32_t lane = 0; s->heavy && lane < s->n_lanes; lane++)
        memcpy(to->heavy + (size_t)lane * to->cap, s->heavy + (size_t)lane * s->cap, s->n * sizeof *s->heavy);
    to->logits = has_logits(s) ? kv__copy_of(s->logits, s->compute.n_vocab, sizeof *s->logits) : NULL;
    to->logits_at = to->logits ? s->n : 0;
    return 0;
}

static int grow_heavy(kv_session *s, uint32_t cap, base_err *err)
{
    if (!s->heavy) return 0;
    float *heavy = calloc((size_t)s->n_lanes * cap + 1, sizeof *heavy);
    if (!heavy) return base_fail(err, BASE_E_NOMEM, "no memory to add up attention");
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        memcpy(heavy + (size_t)lane * cap, s->heavy + (size_t)lane * s->cap, s->cap * sizeof *heavy);
    free(s->heavy);
    s->heavy = heavy;
    return 0;
}

static void truncate_optional(kv_session *s, uint32_t n)
{
    s->logits_at = 0;
}

static void put_optional(const kv_session *s, base_buf *out)
{
    for (uint32_t lane = 0; s->heavy && lane < s->n_lanes; lane++)
        put(out, s->heavy + (size_t)lane * s->cap, s->n, sizeof *s->heavy);
    if (has_logits(s)) put(out, s->logits, s->compute.n_vocab, sizeof *s->logits);
}

static int get_optional(kv_session *s, reader *r, base_err *err)
{
    if (r->has[HAS_HEAVY]) s->heavy = calloc((size_t)s->n_lanes * s->cap + 1, sizeof *s->heavy);
    r->bad = r->bad || (r->has[HAS_HEAVY] && !s->heavy);
    for (uint32_t lane = 0; s->heavy && lane < s->n_lanes && !r->bad; lane++)
        get(r, s->heavy + (size_t)lane * s->cap, s->n, sizeof *s->heavy);
    if (!r->has[HAS_LOGITS]) return 0;
    s->logits = get_new(r, s->compute.n_vocab, sizeof *s->logits);
    s->logits_at = s->n;
    return 0;
}

/* --- plans that can be undone --------------------------------------------------------------------------- */

static void free_journal(kv_session *s)
{
    for (uint32_t i = 0; i < s->n_journal; i++) base_buf_free(&s->journal[i].blob);
}

static int copy_journal(kv_session *to, const kv_session *s, base_err *err)
{
    for (uint32_t i = 0; i < s->n_journal; i++) {
        to->journal[i] = (kv_entry){.n_valid = s->journal[i].n_valid};
        base_buf_add(&to->journal[i].blob, s->journal[i].blob.data, s->journal[i].blob.len);
    }
    to->n_journal = s->n_journal;
    return 0;
}

static void truncate_journal(kv_session *s, uint32_t n)
{
    for (uint32_t i = 0; i < s->n_journal; i++)
        if (s->journal[i].n_valid > n) s->journal[i].n_valid = n;
}

static void put_journal(const kv_session *s, base_buf *out)
{
    for (uint32_t i = 0; i < s->n_journal; i++) {
        put32(out, s->journal[i].n_valid);
        put32(out, (uint32_t)s->journal[i].blob.len);
        put(out, s->journal[i].blob.data, s->journal[i].blob.len, 1);
    }
}

static int get_journal(kv_session *s, reader *r, base_err *err)
{
    const uint32_t n = r->has[HAS_JOURNAL];
    if (n > KV_JOURNAL) r->bad = true;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const uint32_t n_valid = get32(r), len = get32(r);
        if (r->bad || len > r->left) {
            r->bad = true;
            return 0;
        }
        kv_entry *entry = &s->journal[s->n_journal++];
        *entry = (kv_entry){.n_valid = n_valid};
        base_buf_add(&entry->blob, r->at, len);
        r->at += len;
        r->left -= len;
    }
    return 0;
}

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

/* At the end, and nothing where nothing is folded: such manifests are what they were before there were folds. */
static void put_fold(const kv_session *s, base_buf *out)
{
    if (!s->fold.n) return;
    put32(out, s->fold.n);
    put(out, s->fold.gaps, s->fold.n, sizeof *s->fold.gaps);
}

static int get_fold(kv_session *s, reader *r, base_err *err)
{
    if (r->bad || !r->left) return 0;
    const uint32_t n = get32(r);
    s->fold.gaps = n ? get_new(r, n, sizeof *s->fold.gaps) : NULL;
    s->fold.n = s->fold.cap = s->fold.gaps ? n : 0;
    r->bad = r->bad || !n || !kv_fold_is_valid(&s->fold, s->n);
    if (r->bad || kv__is_endless(s)) return 0;
    return base_fail(err, BASE_E_STATE,
        "the saved session has no end (it reads %u tokens within a context of %u), which this budget, policy "
        "or "
        "backend does not have: resume it with --kv-budget auto on the CPU",
        s->n, s->compute.n_ctx);
}

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
    put32(out, st->n_saved);
    for (uint32_t i = 0; i < st->n_saved; i++) {
        put32(out, st->saved[i].at);
        put32(out,
            st->saved[i].place | (uint32_t)st->saved[i].kept << 31 | (uint32_t)st->saved[i].before << 30);
        put(out, &st->saved[i].hash, 1, sizeof st->saved[i].hash);
    }
}

static int get_states(kv_session *s, reader *r, base_err *err)
{
    kv_states *st = &s->states;
    if (!s->compute.state_bytes) return 0;
    st->n_saved = get32(r);
    if (st->n_saved > KV_STATES_MOST + 2) r->bad = true;
    if (r->bad) st->n_saved = 0;
    for (uint32_t i = 0; i < st->n_saved && !r->bad; i++) {
        st->saved[i].at = get32(r);
        const uint32_t place = get32(r);
        st->saved[i].place = place & (INT32_MAX >> 1);
        st->saved[i].kept = place >> 31;
        st->saved[i].before = place >> 30 & 1;
        st->saved[i].hash = get64(r);
        if (st->saved[i].at == 0 || st->saved[i].at > s->n || st->saved[i].place > 1 << 20) r->bad = true;
    }
    return 0;
}

/* --- the list ------------------------------------------------------------------------------------------- */

/* NULL: nothing to do. A later group may look at an earlier one. */
static const struct group {
    int (*init)(kv_session *s, base_err *err);
    void (*free)(kv_session *s);
    int (*copy)(kv_session *to, const kv_session *s, base_err *err);
    void (*truncate)(kv_session *s, uint32_t n);
    void (*put)(const kv_session *s, base_buf *out);
    int (*get)(kv_session *s, reader *r, base_err *err); /* bytes that are none of ours: r->bad */
} groups[] = {
    {init_numbers, NULL, copy_numbers, truncate_numbers, put_numbers, get_numbers},
    {init_arrays, free_arrays, copy_arrays, truncate_arrays, put_arrays, get_arrays},
    {init_rows, free_rows, copy_rows, truncate_rows, put_lists, get_lists},
    {NULL, free_parts, copy_parts, truncate_parts, put_parts, get_parts},
    {init_signals, free_signals, copy_signals, truncate_signals, put_signals, get_signals},
    {NULL, free_memory, copy_memory, truncate_memory, put_memory, get_memory},
    {NULL, free_optional, copy_optional, truncate_optional, put_optional, get_optional},
    {NULL, free_journal, copy_journal, truncate_journal, put_journal, get_journal},
    {NULL, NULL, copy_states, truncate_states, put_states, get_states},
    {NULL, free_fold, copy_fold, truncate_fold, put_fold, get_fold},
};
enum { N_GROUPS = sizeof groups / sizeof *groups };

void *kv__copy_of(const void *items, size_t n, size_t size)
{
    return items ? memcpy(base_xmalloc(n * size + 1), items, n * size) : NULL;
}

int kv__groups_init(kv_session *s, base_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < N_GROUPS && !rc; i++) rc = groups[i].init ? groups[i].init(s, err) : 0;
    return rc;
}

int kv__reserve(kv_session *s, uint32_t n, base_err *err)
{
    if (n <= s->cap) return 0;
    const uint32_t more = n + n / 2, cap = more < s->n_ctx ? more : n > s->n_ctx ? n : s->n_ctx;
    int rc = kv_lists_reserve(&s->lists, cap, err);
    if (!rc) rc = grow_heavy(s, cap, err);
    if (!rc) rc = grow_arrays(s, cap, err);
    if (!rc) s->cap = cap;
    return rc;
}

void kv__groups_free(kv_session *s)
{
    for (size_t i = 0; i < N_GROUPS; i++)
        if (groups[i].free) groups[i].free(s);
}

int kv__groups_copy(kv_session *to, const kv_session *from, base_err *err)
{
    int rc = kv__reserve(to, from->n, err);
    for (size_t i = 0; i < N_GROUPS && !rc; i++) rc = groups[i].copy(to, from, err);
    return rc;
}

void kv__groups_truncate(kv_session *s, uint32_t n)
{
    for (size_t i = 0; i < N_GROUPS; i++) groups[i].truncate(s, n);
    s->n = n;
}

void kv__groups_put(const kv_session *s, base_buf *out)
{
    for (size_t i = 0; i < N_GROUPS; i++) groups[i].put(s, out);
}

int kv__groups_get(kv_session *s, const void *bytes, size_t n, uint64_t n_rows, base_err *err)
{
    reader r = {.at = bytes, .left = n, .n_rows = n_rows};
    int rc = 0;
    for (size_t i = 0; i < N_GROUPS && !rc; i++) rc = groups[i].get(s, &r, err);
    if (rc) return rc;
    return r.bad || r.left ? base_fail(err, BASE_E_FORMAT, "the session's manifest is damaged") : 0;
}
