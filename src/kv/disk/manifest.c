/*
 * The manifest: everything of a session but its rows, little-endian fields one after the other, a hash64 of them all at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/disk/disk.h"

enum {
    MANIFEST_VERSION = 6,
    MEMORY_KEPT =
        8, /* states of the memory of requests: a rewind behind them counts what is older as e^-4 or less: not at all */
};
static const char magic[8] = "KVMANI\n";

/* ---- writing ---- */

static void put32(base_buf *out, uint32_t x)
{
    base_buf_add(out, &x, sizeof x);
}

static void put64(base_buf *out, uint64_t x)
{
    base_buf_add(out, &x, sizeof x);
}

/* Arrays of a count that the reader knows. */
static void put(base_buf *out, const void *items, size_t n, size_t size)
{
    if (n) base_buf_add(out, items, n * size);
}

static void put_part(base_buf *out, const kv_part *p)
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

static void put_signal(const kv_session *s, const kv_signal *signal, base_buf *out)
{
    put(out, signal->tokens, signal->n, sizeof *signal->tokens);
    put(out, signal->queries, signal->n * kv__memory_floats(s), sizeof *signal->queries);
}

/* The newest states of the memory, oldest first. */
static uint32_t memory_kept(const kv_session *s, const kv_memory **kept)
{
    uint32_t n = 0;
    for (const kv_memory *m = s->memory; m && n < MEMORY_KEPT; m = m->past) n++;
    const kv_memory *m = s->memory;
    for (uint32_t i = n; i-- > 0; m = m->past) kept[i] = m;
    return n;
}

void kv__manifest_write(const kv_session *s, const kv_manifest_file *file, base_buf *out)
{
    const size_t n_words = kv_bits_words(s->n), n_memory = kv__memory_floats(s);
    const bool has_logits = s->logits && s->logits_at == s->n && s->n;
    const kv_memory *memory[MEMORY_KEPT];
    const uint32_t n_links = memory_kept(s, memory);
    base_buf_add(out, magic, sizeof magic);
    put32(out, MANIFEST_VERSION);
    put64(out, file->id);
    put64(out, file->n_rows);
    put64(out, s->epoch);
    put64(out, s->schedule);
    const uint32_t fields[] = {s->n, s->n_lanes, s->compute.n_vocab, s->compute.n_head, s->turn, s->holed,
        s->has_request, s->request_turn, (uint32_t)s->n_parts, s->request.n, n_links, has_logits,
        s->n_journal, s->heavy != NULL, s->pending, s->asked.n, s->waiting.kept.n, s->waiting.origin,
        s->waiting.turn, s->waiting.is_whole, s->judged_from, s->judged_to, s->read_to};
    put(out, fields, sizeof fields / sizeof *fields, sizeof *fields);
    put(out, s->ids, s->n, sizeof *s->ids);
    put(out, s->phases, s->n, sizeof *s->phases);
    put(out, s->file_row, s->n, sizeof *s->file_row);
    put(out, s->row_hash, s->n, sizeof *s->row_hash);
    put(out, s->cut, s->n, sizeof *s->cut);
    for (uint32_t i = 0; i < s->n; i++) {
        const kv_token *t = &s->tokens[i];
        put32(out, t->last_action | (uint32_t)t->last_reason << 8);
        put32(out, t->last_turn);
        const float values[] = {t->attention, t->memory, t->rank, t->cut, t->previous};
        put(out, values, sizeof values / sizeof *values, sizeof *values);
    }
    put(out, s->pinned, n_words, sizeof *s->pinned);
    put(out, s->barred, n_words, sizeof *s->barred);
    put(out, s->stale, n_words, sizeof *s->stale);
    put(out, s->dead, n_words, sizeof *s->dead);
    put_lists(s, out);
    for (size_t i = 0; i < s->n_parts; i++) put_part(out, &s->parts[i]);
    put_signal(s, &s->request, out);
    put_signal(s, &s->asked, out);
    put_signal(s, &s->waiting.kept, out);
    for (uint32_t i = 0; i < n_links; i++) {
        put32(out, memory[i]->at);
        put(out, memory[i]->sum, n_memory, sizeof(float));
        put(out, memory[i]->message, n_memory, sizeof(float));
    }
    for (uint32_t lane = 0; s->heavy && lane < s->n_lanes; lane++)
        put(out, s->heavy + (size_t)lane * s->n_ctx, s->n, sizeof *s->heavy);
    if (has_logits) put(out, s->logits, s->compute.n_vocab, sizeof *s->logits);
    for (uint32_t i = 0; i < s->n_journal; i++) {
        put32(out, s->journal[i].n_valid);
        put32(out, (uint32_t)s->journal[i].blob.len);
        put(out, s->journal[i].blob.data, s->journal[i].blob.len, 1);
    }
    put64(out, base_hash64(out->data, out->len, 0));
}

/* ---- reading ---- */

typedef struct reader {
    const uint8_t *at;
    size_t left;
    bool bad;
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

static void get_part(reader *r, kv_session *s, uint32_t expected_from)
{
    uint32_t f[7] = {0};
    get(r, f, sizeof f / sizeof *f, sizeof *f);
    kv_part part = {.from = f[0], .to = f[1], .turn = f[2], .origin = (kv_origin)f[3], .is_bulk = f[6]};
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
    if (!r->bad) kv__part_add(s, &part);
    kv__part_fini(&part);
}

static void get_cuts(reader *r, kv_session *s, uint32_t pending)
{
    get(r, s->cut, s->n, sizeof *s->cut);
    for (uint32_t i = 0; i < s->n && !r->bad; i++)
        if (s->cut[i] && !kv__cut_fits(&s->compute, s->cut[i])) r->bad = true;
    if (pending != KV_NO_ROW && pending >= s->n) r->bad = true;
    s->pending = pending;
}

/* A row that is not computed is in no list. */
static void check_cuts(reader *r, const kv_session *s)
{
    for (uint32_t i = 0; i < s->n && !r->bad; i++)
        for (uint32_t lane = (uint32_t)s->cut[i] * s->compute.shape.n_head_kv; s->cut[i] && lane < s->n_lanes;
             lane++)
            if (kv_bits_get(s->lists.lane[lane]->bits, i)) r->bad = true;
}

static int get_lists(reader *r, kv_session *s, base_err *err)
{
    const size_t n_words = kv_bits_words(s->n);
    /* Distinct lists take their bits in the file, shared ones four bytes: check the least before allocating. */
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
    int e = 0;
    if (!r->bad) {
        for (size_t w = 0; w < n_words * s->n_lanes; w++) flips[w] ^= kv_bits_mask(w % n_words, 0, s->n);
        e = kv_lists_append(&s->lists, s->n, err);
        if (!e) e = kv_lists_flip(&s->lists, flips, err);
    }
    free(flips);
    return e;
}

static void get_flags(reader *r, uint64_t *flags, uint32_t n)
{
    const size_t n_words = kv_bits_words(n);
    get(r, flags, n_words, sizeof *flags);
    if (n % 64 && !r->bad && flags[n_words - 1] >> n % 64) r->bad = true;
}

static void get_tokens(reader *r, kv_session *s)
{
    for (uint32_t i = 0; i < s->n && !r->bad; i++) {
        kv_token *t = &s->tokens[i];
        const uint32_t last = get32(r);
        t->last_action = (uint8_t)last;
        t->last_reason = (uint8_t)(last >> 8);
        t->last_turn = get32(r);
        float values[5] = {0};
        get(r, values, 5, sizeof *values);
        t->attention = values[0];
        t->memory = values[1];
        t->rank = values[2];
        t->cut = values[3];
        t->previous = values[4];
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

static void get_memory(reader *r, kv_session *s, uint32_t n)
{
    const size_t n_floats = kv__memory_floats(s);
    if (n > MEMORY_KEPT) r->bad = true;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const uint32_t at = get32(r);
        if (r->left / sizeof(float) / 2 < n_floats || at > s->n || (s->memory && at < s->memory->at))
            r->bad = true;
        kv_memory *m = r->bad ? NULL : kv_memory_new(s->memory, n_floats, at);
        if (!m) {
            r->bad = true;
            return;
        }
        get(r, m->sum, n_floats, sizeof(float));
        get(r, m->message, n_floats, sizeof(float));
        kv_memory_unref(s->memory);
        s->memory = m;
    }
}

static void get_heavy(reader *r, kv_session *s)
{
    if (!s->heavy) s->heavy = calloc((size_t)s->n_lanes * s->n_ctx + 1, sizeof *s->heavy);
    if (!s->heavy) r->bad = true;
    for (uint32_t lane = 0; lane < s->n_lanes && !r->bad; lane++)
        get(r, s->heavy + (size_t)lane * s->n_ctx, s->n, sizeof *s->heavy);
}

static void get_journal(reader *r, kv_session *s, uint32_t n)
{
    if (n > KV_JOURNAL) r->bad = true;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const uint32_t n_valid = get32(r), len = get32(r);
        if (r->bad || len > r->left) {
            r->bad = true;
            return;
        }
        kv_entry *entry = &s->journal[s->n_journal++];
        *entry = (kv_entry){.n_valid = n_valid};
        base_buf_add(&entry->blob, r->at, len);
        r->at += len;
        r->left -= len;
    }
}

int kv__manifest_read(kv_session *s, const void *bytes, size_t n, kv_manifest_file *ret_file, base_err *err)
{
    uint64_t hash = 0;
    if (n < sizeof magic + 4 + sizeof hash || memcmp(bytes, magic, sizeof magic))
        return base_fail(err, BASE_E_FORMAT, "the session's manifest is not one");
    reader r = {.at = (const uint8_t *)bytes + sizeof magic, .left = n - sizeof magic - sizeof hash};
    if (get32(&r) != MANIFEST_VERSION)
        return base_fail(err, BASE_E_FORMAT, "the session's manifest is of another version of kvist");
    memcpy(&hash, (const uint8_t *)bytes + n - sizeof hash, sizeof hash);
    if (hash != base_hash64(bytes, n - sizeof hash, 0))
        return base_fail(err, BASE_E_FORMAT, "the session's manifest is damaged");
    ret_file->id = get64(&r);
    ret_file->n_rows = get64(&r);
    s->epoch = get64(&r);
    s->schedule = get64(&r);
    uint32_t f[23] = {0};
    get(&r, f, sizeof f / sizeof *f, sizeof *f);
    if (r.bad || f[1] != s->n_lanes || f[2] != s->compute.n_vocab || f[3] != s->compute.n_head)
        return base_fail(err, BASE_E_FORMAT, "the session's manifest is of another model");
    if (f[0] > s->n_ctx)
        return base_fail(err, BASE_E_FORMAT, "the saved session has %u tokens, more than the context of %u",
            f[0], s->n_ctx);
    s->n = f[0];
    s->turn = f[4];
    s->holed = f[5];
    s->has_request = f[6];
    s->request_turn = f[7];
    get(&r, s->ids, s->n, sizeof *s->ids);
    get(&r, s->phases, s->n, sizeof *s->phases);
    get(&r, s->file_row, s->n, sizeof *s->file_row);
    get(&r, s->row_hash, s->n, sizeof *s->row_hash);
    get_cuts(&r, s, f[14]);
    for (uint32_t i = 0; i < s->n && !r.bad; i++)
        if (s->ids[i] < 0 || (uint32_t)s->ids[i] >= s->compute.n_vocab) r.bad = true;
    get_tokens(&r, s);
    get_flags(&r, s->pinned, s->n);
    get_flags(&r, s->barred, s->n);
    get_flags(&r, s->stale, s->n);
    get_flags(&r, s->dead, s->n);
    for (uint32_t i = 0; i < s->n && !r.bad; i++)
        if (s->file_row[i] >= ret_file->n_rows && !(s->file_row[i] == KV_NO_ROW && kv_bits_get(s->dead, i)))
            r.bad = true;
    int e = get_lists(&r, s, err);
    if (e) return e;
    if (!r.bad) check_cuts(&r, s);
    for (uint32_t i = 0, end = 0; i < f[8] && !r.bad; i++) {
        get_part(&r, s, end);
        if (!r.bad) end = s->parts[s->n_parts - 1].to;
    }
    if (!r.bad && (s->n_parts ? s->parts[s->n_parts - 1].to : 0) != s->n) r.bad = true;
    get_signal(&r, s, &s->request, f[9]);
    get_signal(&r, s, &s->asked, f[15]);
    get_signal(&r, s, &s->waiting.kept, f[16]);
    if (f[17] >= KV_N_ORIGINS || f[22] > s->n) r.bad = true;
    s->waiting.origin = (kv_origin)f[17];
    s->waiting.turn = f[18];
    s->waiting.is_whole = f[19];
    s->judged_from = f[20];
    s->judged_to = f[21];
    s->read_to = f[22];
    get_memory(&r, s, f[10]);
    if (f[13]) get_heavy(&r, s);
    if (f[11]) {
        s->logits = get_new(&r, s->compute.n_vocab, sizeof *s->logits);
        s->logits_at = s->n;
    }
    get_journal(&r, s, f[12]);
    if (r.bad || r.left) return base_fail(err, BASE_E_FORMAT, "the session's manifest is damaged");
    return 0;
}
