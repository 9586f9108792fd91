/*
 * Plans as data: words, runs, and the log's blob, which the log, replay and resume read.
 *
 * The blob: 'K' 'P', version, then LEB128 numbers: epoch, cause, n_tokens, n_lanes, evicted, promoted. Then
 * for each lane a set of tokens, where 0 stands for "the same as the lane before", so a plan in which all
 * lanes agree costs its runs once. Then the barred, pinned and stale sets, and, where a plan has them, the
 * token from which it computes again, the lost set, the set of deferred tokens and the changes of the fold. A
 * set is 1 + its number of runs, then gap and length of each. A fold is the number of groups, then by how much
 * each group's change differs from the one before it (2 x, or -2 x - 1 below 0). Behind it (no group where nothing is
 * folded) stands the set of outshone tokens, where there is one.
 */
#include "kv/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/rows/bits.h"
#include "model/ops/rows.h"

enum { PLAN_VERSION = 1, PLAN_MAX_TOKENS = 1 << 24, PLAN_MAX_LANES = 1 << 16, PLAN_MAX_BYTES = 256 << 20 };

#define KV_REASON_WORD(id, word) word,
static const char *const reason_words[] = {KV_REASONS(KV_REASON_WORD)};
static const char *const action_words[] = {"keep", "evict", "promote", "protect", "bar", "defer"};
static const char *const cause_words[] = {
    "evict", "repair", "manual", "stale", "failed", "pressure", "prune", "answer", "fold", "thought"};
enum {
    N_ACTIONS = sizeof action_words / sizeof *action_words,
    N_CAUSES = sizeof cause_words / sizeof *cause_words
};

const char *kv_reason_word(kv_reason r)
{
    return (unsigned)r < KV_N_REASONS ? reason_words[r] : "";
}

const char *kv_action_word(kv_action a)
{
    return (unsigned)a < N_ACTIONS ? action_words[a] : "";
}

const char *kv_cause_word(kv_cause c)
{
    return (unsigned)c < N_CAUSES ? cause_words[c] : "";
}

kv_plan *kv_plan_new(uint64_t epoch, kv_cause cause, uint32_t n_tokens, uint32_t n_lanes)
{
    if (n_tokens > PLAN_MAX_TOKENS || n_lanes > PLAN_MAX_LANES) return NULL;
    kv_plan *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->epoch = epoch;
    p->cause = cause;
    p->n_tokens = n_tokens;
    p->n_lanes = n_lanes;
    p->flips = calloc((size_t)n_lanes * kv_plan_words(p) + 1, sizeof *p->flips);
    if (!p->flips) {
        free(p);
        return NULL;
    }
    return p;
}

void kv_plan_free(kv_plan *p)
{
    if (!p) return;
    free(p->runs);
    free(p->flips);
    free(p->barred);
    free(p->pinned);
    free(p->stale);
    free(p->lost);
    free(p->deferred);
    free(p->fold);
    free(p->outshone);
    free(p);
}

void kv_plan_add_run(
    kv_plan *p, uint32_t from, uint32_t to, kv_action action, kv_reason reason, uint32_t lanes)
{
    if (from >= to) return;
    kv_plan_run *last = p->n_runs ? &p->runs[p->n_runs - 1] : NULL;
    if (last && last->to == from && last->action == action && last->reason == reason) {
        const uint32_t apart = last->lanes > lanes ? last->lanes - lanes : lanes - last->lanes;
        if (apart <= p->n_lanes / 8) {
            const uint64_t have = last->to - last->from, more = to - from;
            last->lanes = (uint32_t)((last->lanes * have + lanes * more + (have + more) / 2) / (have + more));
            last->to = to;
            return;
        }
    }
    /* A power of two is the only size at which the array is full. */
    if ((p->n_runs & (p->n_runs - 1)) == 0)
        p->runs = base_xrealloc(p->runs, (p->n_runs ? (size_t)p->n_runs * 2 : 1) * sizeof *p->runs);
    p->runs[p->n_runs++] = (kv_plan_run){
        .from = from, .to = to, .action = (uint8_t)action, .reason = (uint8_t)reason, .lanes = lanes};
}

static bool any_bit(const uint64_t *bits, size_t n_words)
{
    for (size_t w = 0; bits && w < n_words; w++)
        if (bits[w]) return true;
    return false;
}

static bool changes_gaps(const kv_plan *p)
{
    for (uint32_t g = 0; p->fold && g < p->n_fold; g++)
        if (p->fold[g]) return true;
    return false;
}

uint32_t kv_plan_folded_to(const kv_plan *p)
{
    uint32_t n = p->fold ? p->n_fold : 0;
    while (n && p->fold[n - 1] <= 0) n--;
    return n * MODEL_ROWS_GROUP;
}

bool kv_plan_is_empty(const kv_plan *p)
{
    const size_t n_words = kv_plan_words(p);
    return !p->replay_from && !any_bit(p->flips, n_words * p->n_lanes) && !any_bit(p->barred, n_words) &&
           !any_bit(p->pinned, n_words) && !any_bit(p->stale, n_words) && !any_bit(p->lost, n_words) &&
           !any_bit(p->deferred, n_words) && !changes_gaps(p) && !any_bit(p->outshone, n_words);
}

uint32_t kv_plan_lost(const kv_plan *p)
{
    return p->lost ? kv_bits_count(p->lost, kv_plan_words(p)) : 0;
}

uint32_t kv_plan_deferred(const kv_plan *p)
{
    return p->deferred ? kv_bits_count(p->deferred, kv_plan_words(p)) : 0;
}

static void put_number(base_buf *out, uint64_t x)
{
    do {
        base_buf_putc(out, (char)((x & 127) | (x > 127 ? 128 : 0)));
        x >>= 7;
    } while (x);
}

static void put_set(base_buf *out, const uint64_t *bits, uint32_t n_tokens)
{
    uint64_t n_runs = 0;
    for (size_t i = kv_bits_next(bits, 0, n_tokens, true); i < n_tokens; n_runs++)
        i = kv_bits_next(bits, kv_bits_next(bits, i, n_tokens, false), n_tokens, true);
    put_number(out, n_runs + 1);
    size_t end = 0;
    for (uint64_t r = 0; r < n_runs; r++) {
        const size_t from = kv_bits_next(bits, end, n_tokens, true),
                     to = kv_bits_next(bits, from, n_tokens, false);
        put_number(out, from - end);
        put_number(out, to - from);
        end = to;
    }
}

/* 0 where it has no token. */
static void put_optional_set(base_buf *out, const uint64_t *bits, uint32_t n_tokens)
{
    if (any_bit(bits, kv_bits_words(n_tokens)))
        put_set(out, bits, n_tokens);
    else
        put_number(out, 0);
}

static void put_fold(base_buf *out, const int32_t *fold, uint32_t n)
{
    int64_t before = 0;
    put_number(out, n);
    for (uint32_t g = 0; g < n; before = fold[g++]) {
        const int64_t step = fold[g] - before;
        put_number(out, step < 0 ? (uint64_t)(-2 * step - 1) : (uint64_t)(2 * step));
    }
}

void kv_plan_pack(const kv_plan *p, base_buf *out)
{
    const size_t n_words = kv_plan_words(p);
    base_buf_add(out, "KP", 2);
    base_buf_putc(out, PLAN_VERSION);
    put_number(out, p->epoch);
    put_number(out, p->cause);
    put_number(out, p->n_tokens);
    put_number(out, p->n_lanes);
    put_number(out, p->evicted);
    put_number(out, p->promoted);
    for (uint32_t lane = 0; lane < p->n_lanes; lane++) {
        const uint64_t *bits = p->flips + lane * n_words;
        if (lane && !memcmp(bits, bits - n_words, n_words * sizeof *bits))
            put_number(out, 0);
        else
            put_set(out, bits, p->n_tokens);
    }
    put_optional_set(out, p->barred, p->n_tokens);
    put_optional_set(out, p->pinned, p->n_tokens);
    put_optional_set(out, p->stale, p->n_tokens);
    const bool lost = any_bit(p->lost, n_words), deferred = any_bit(p->deferred, n_words);
    const bool folds = changes_gaps(p), outshone = any_bit(p->outshone, n_words);
    /* Each is there, empty or not, where something stands behind it. */
    const int last = outshone ? 4 : folds ? 3 : deferred ? 2 : lost ? 1 : p->replay_from ? 0 : -1;
    if (last >= 0) put_number(out, p->replay_from);
    if (last >= 1) put_optional_set(out, p->lost, p->n_tokens);
    if (last >= 2) put_optional_set(out, p->deferred, p->n_tokens);
    if (last >= 3) put_fold(out, p->fold, folds ? p->n_fold : 0);
    if (last >= 4) put_set(out, p->outshone, p->n_tokens);
}

typedef struct reader {
    const uint8_t *at, *end;
    bool bad;
} reader;

/* A number up to max; anything else is bad, and 0. */
static uint64_t get_number(reader *r, uint64_t max)
{
    uint64_t x = 0;
    for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        const uint8_t byte = *r->at++;
        if (shift == 63 && byte > 1) break;
        x |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            if (x <= max) return x;
            break;
        }
    }
    r->bad = true;
    return 0;
}

/* The set's runs behind its count (1 + n). */
static void get_set(reader *r, uint64_t count, uint64_t *bits, uint32_t n_tokens)
{
    size_t end = 0;
    for (uint64_t run = 1; run < count && !r->bad; run++) {
        const size_t from = end + get_number(r, n_tokens - end), n = get_number(r, n_tokens - from);
        if (!n || (run > 1 && from == end))
            r->bad = true; /* one way to write a set: no empty runs, no touching ones */
        if (r->bad) return;
        kv_bits_set_range(bits, from, from + n);
        end = from + n;
    }
}

static uint64_t *get_optional_set(reader *r, uint32_t n_tokens)
{
    const uint64_t count = get_number(r, (uint64_t)n_tokens + 1);
    if (!count || r->bad) return NULL;
    uint64_t *bits = calloc(kv_bits_words(n_tokens) + 1, sizeof *bits);
    if (!bits) {
        r->bad = true;
        return NULL;
    }
    get_set(r, count, bits, n_tokens);
    return bits;
}

static void get_fold(reader *r, kv_plan *p)
{
    int64_t change = 0;
    p->n_fold = (uint32_t)get_number(r, p->n_tokens / MODEL_ROWS_GROUP);
    r->bad = r->bad || p->n_fold > (size_t)(r->end - r->at);
    if (r->bad || !p->n_fold) return;
    p->fold = base_xcalloc((size_t)p->n_fold + 1, sizeof *p->fold);
    for (uint32_t g = 0; g < p->n_fold && !r->bad; g++) {
        const uint64_t step = get_number(r, 4ull * PLAN_MAX_TOKENS);
        change += step & 1 ? -(int64_t)(step / 2) - 1 : (int64_t)(step / 2);
        if (change > PLAN_MAX_TOKENS || change < -PLAN_MAX_TOKENS) r->bad = true;
        p->fold[g] = (int32_t)change;
    }
    r->bad = r->bad || !changes_gaps(p);
}

/* What stands behind the stale set, as far as it goes: the last of it is never empty. */
static void get_rest(reader *r, kv_plan *p)
{
    const size_t n_words = kv_plan_words(p);
    if (r->bad || r->at == r->end) return;
    p->replay_from = (uint32_t)get_number(r, p->n_tokens);
    bool is_there = p->replay_from;
    if (!r->bad && r->at != r->end) {
        p->lost = get_optional_set(r, p->n_tokens);
        is_there = any_bit(p->lost, n_words) || p->replay_from;
    }
    if (!r->bad && r->at != r->end) {
        p->deferred = get_optional_set(r, p->n_tokens);
        is_there = any_bit(p->deferred, n_words);
    }
    if (!r->bad && r->at != r->end) {
        get_fold(r, p);
        is_there = p->n_fold;
    }
    if (!r->bad && r->at != r->end) {
        p->outshone = get_optional_set(r, p->n_tokens);
        is_there = any_bit(p->outshone, n_words);
    }
    r->bad = r->bad || !is_there;
}

int kv_plan_unpack(const void *bytes, size_t n, kv_plan **ret, base_err *err)
{
    reader r = {.at = bytes, .end = (const uint8_t *)bytes + n};
    if (n < 3 || memcmp(bytes, "KP", 2) || r.at[2] != PLAN_VERSION)
        return base_fail(err, BASE_E_FORMAT, "these %zu bytes are not a plan of this version", n);
    r.at += 3;
    const uint64_t epoch = get_number(&r, UINT64_MAX);
    const uint64_t cause = get_number(&r, N_CAUSES - 1);
    const uint32_t n_tokens = (uint32_t)get_number(&r, PLAN_MAX_TOKENS);
    const uint32_t n_lanes = (uint32_t)get_number(&r, PLAN_MAX_LANES);
    const uint32_t evicted = (uint32_t)get_number(&r, PLAN_MAX_TOKENS),
                   promoted = (uint32_t)get_number(&r, PLAN_MAX_TOKENS);
    /* A lane takes a byte at least, so bytes bound lanes before anything is allocated. */
    if (r.bad || n_lanes > (size_t)(r.end - r.at) || kv_bits_words(n_tokens) * n_lanes * 8 > PLAN_MAX_BYTES)
        return base_fail(err, BASE_E_FORMAT, "a plan's header is damaged");
    kv_plan *p = kv_plan_new(epoch, (kv_cause)cause, n_tokens, n_lanes);
    if (!p)
        return base_fail(
            err, BASE_E_NOMEM, "no memory for a plan of %u tokens in %u lanes", n_tokens, n_lanes);
    p->evicted = evicted;
    p->promoted = promoted;
    const size_t n_words = kv_plan_words(p);
    for (uint32_t lane = 0; lane < n_lanes && !r.bad; lane++) {
        uint64_t *bits = p->flips + lane * n_words;
        const uint64_t count = get_number(&r, (uint64_t)n_tokens + 1);
        if (count)
            get_set(&r, count, bits, n_tokens);
        else if (lane)
            memcpy(bits, bits - n_words, n_words * sizeof *bits);
        else
            r.bad = true;
    }
    if (!r.bad) p->barred = get_optional_set(&r, n_tokens);
    if (!r.bad) p->pinned = get_optional_set(&r, n_tokens);
    if (!r.bad) p->stale = get_optional_set(&r, n_tokens);
    get_rest(&r, p);
    if (r.bad || r.at != r.end) {
        kv_plan_free(p);
        return base_fail(err, BASE_E_FORMAT, "a plan's bytes are damaged");
    }
    *ret = p;
    return 0;
}
