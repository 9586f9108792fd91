/* What a person says of tokens [from, to), or a fact about their text. All through plans. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/evict/evict.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"
#include "kv/policy/policy.h"
#include "kv/session.h"

/* One row an order: which tokens it means, what happens to their rows and flags, and how it is told. */
enum { ROWS_LEAVE = 1, ROWS_RETURN = 2 };
typedef struct order {
    kv_cause cause;
    kv_action action;
    kv_reason reason;
    unsigned rows;
    bool spares_pinned; /* pinned tokens are not meant */
    /* lanes of layers with a window keep their rows: they are not what a budget bounds */
    bool spares_windows;
    int pin, bar, stale; /* 1 set, -1 clear, 0 leave */
} order;

/* clang-format off */
static const order orders[] = {
    [KV_MANUAL_PIN]     = {KV_CAUSE_MANUAL, KV_PROTECT, KV_REASON_PIN,    ROWS_RETURN, false, .pin = 1, .bar = -1, .stale = -1},
    [KV_MANUAL_UNPIN]   = {KV_CAUSE_MANUAL, KV_KEEP,    KV_REASON_MANUAL, 0,           false, .pin = -1},
    [KV_MANUAL_DROP]    = {KV_CAUSE_MANUAL, KV_BAR,     KV_REASON_MANUAL, ROWS_LEAVE,  true,  .bar = 1},
    [KV_MANUAL_EVICT]   = {KV_CAUSE_MANUAL, KV_EVICT,   KV_REASON_MANUAL, ROWS_LEAVE,  true,  .spares_windows = true},
    [KV_MANUAL_PROMOTE] = {KV_CAUSE_MANUAL, KV_PROMOTE, KV_REASON_MANUAL, ROWS_RETURN, false, .bar = -1, .stale = -1},
};
static const order stale_order  = {KV_CAUSE_STALE,  KV_EVICT, KV_REASON_STALE,  ROWS_LEAVE, true, .stale = 1};
static const order failed_order = {KV_CAUSE_FAILED, KV_BAR,   KV_REASON_FAILED, ROWS_LEAVE, true, .bar = 1};
static const order thought_order = {KV_CAUSE_THOUGHT, KV_BAR, KV_REASON_THOUGHT, ROWS_LEAVE, true, .bar = 1};
/* clang-format on */
enum { N_ORDERS = sizeof orders / sizeof *orders };

/* The tokens of `meant` whose flag is not yet as wanted; NULL when there are none. */
static uint64_t *flag_flips(const uint64_t *flags, const uint64_t *meant, uint32_t n_words, int want)
{
    if (!want) return NULL;
    uint64_t *flips = base_xcalloc(n_words + 1, sizeof *flips), any = 0;
    for (uint32_t w = 0; w < n_words; w++) any |= flips[w] = meant[w] & (want > 0 ? ~flags[w] : flags[w]);
    if (any) return flips;
    free(flips);
    return NULL;
}

/* The tokens that the order means ([kv_plan_words]); there has to be one. */
static int find_meant(
    const kv_session *s, const order *o, uint32_t from, uint32_t to, uint64_t *meant, base_err *err)
{
    const uint32_t n_words = (uint32_t)kv_bits_words(s->n);
    kv_bits_set_range(meant, from, to);
    for (uint32_t w = 0; w < n_words && o->spares_pinned; w++) meant[w] &= ~s->pinned[w];
    for (uint32_t w = 0; w < n_words && o->rows == ROWS_RETURN; w++) meant[w] &= ~s->lost[w];
    if (kv_bits_count(meant, n_words)) return 0;
    if (o->rows == ROWS_RETURN)
        return base_fail(err, BASE_E_STATE,
            "the rows of tokens %u to %u were given up when the "
            "host tier was full; ask again or read the text again",
            from, to);
    return base_fail(err, BASE_E_STATE, "tokens %u to %u are pinned; unpin them first", from, to);
}

static void flip_meant(const kv_session *s, const order *o, const uint64_t *meant, kv_plan *p)
{
    const uint32_t n_words = kv_plan_words(p);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        const uint64_t *active = s->lists.lane[lane]->bits;
        uint64_t *flips = p->flips + (size_t)lane * n_words;
        if (o->spares_windows && kv__window(s, lane)) continue;
        for (uint32_t w = 0; w < n_words && o->rows; w++)
            flips[w] = meant[w] & (o->rows == ROWS_LEAVE ? active[w] : ~active[w]);
    }
    p->pinned = flag_flips(s->pinned, meant, n_words, o->pin);
    p->barred = flag_flips(s->barred, meant, n_words, o->bar);
    p->stale = flag_flips(s->stale, meant, n_words, o->stale);
}

/* Do new pins leave room for a batch within the budget? */
static int check_pins(kv_session *s, const order *o, const kv_plan *p, base_err *err)
{
    if (!p->pinned || o->pin <= 0 || !s->budget) return 0;
    const uint64_t hard = (uint64_t)kv__count_hard(s) + kv_bits_count(p->pinned, kv_plan_words(p));
    if (hard + KV_BATCH <= s->budget) return 0;
    return base_fail(err, BASE_E_LIMIT,
        "with these pins %llu rows would be protected; a budget of %u rows leaves less than %u "
        "beside them, so unpin something or set the budget to %llu",
        (unsigned long long)hard, s->budget, (unsigned)KV_BATCH, (unsigned long long)hard + KV_BATCH);
}

/* A run tells the order on the tokens that it meant, with the lanes whose rows move, or all. */
static void tell_runs(const kv_session *s, const order *o, const uint64_t *meant, kv_plan *p)
{
    const uint32_t n_words = kv_plan_words(p);
    for (size_t i = kv_bits_next(meant, 0, s->n, true); i < s->n;) {
        const size_t end = kv_bits_next(meant, i, s->n, false);
        uint32_t moved = 0;
        for (uint32_t lane = 0; lane < s->n_lanes; lane++)
            moved +=
                !kv__window(s, lane) && kv_bits_count_range(p->flips + (size_t)lane * n_words, i, end) > 0;
        kv_plan_add_run(p, (uint32_t)i, (uint32_t)end, o->action, o->reason, moved ? moved : s->n_whole);
        i = kv_bits_next(meant, end, s->n, true);
    }
    uint64_t n_flips = 0;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (!kv__window(s, lane)) n_flips += kv_bits_count(p->flips + (size_t)lane * n_words, n_words);
    *(o->rows == ROWS_RETURN ? &p->promoted : &p->evicted) =
        (uint32_t)((n_flips + s->n_whole / 2) / s->n_whole);
}

static int carry_out(kv_session *s, const order *o, uint32_t from, uint32_t to, base_err *err)
{
    if (from >= to || to > s->n)
        return base_fail(err, BASE_E_USAGE, "tokens %u to %u are not in this session of %u", from, to, s->n);
    kv_plan *p = kv_plan_new(s->epoch, o->cause, s->n, s->n_lanes);
    if (!p) return base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    uint64_t *meant = base_xcalloc(kv_plan_words(p) + 1, sizeof *meant);
    int rc = find_meant(s, o, from, to, meant, err);
    if (!rc) {
        flip_meant(s, o, meant, p);
        rc = check_pins(s, o, p, err);
    }
    if (!rc) {
        tell_runs(s, o, meant, p);
        rc = kv__apply(s, p, true, NULL, err);
    }
    if (!rc && o->rows == ROWS_RETURN)
        rc = kv__evict(s, meant, NULL, err); /* others make room for what came back */
    free(meant);
    kv_plan_free(p);
    return rc;
}

int kv_session_manual(kv_session *s, kv_manual what, uint32_t from, uint32_t to, base_err *err)
{
    if ((unsigned)what >= N_ORDERS)
        return base_fail(err, BASE_E_USAGE, "no such order to the cache: %d", (int)what);
    return carry_out(s, &orders[what], from, to, err);
}

int kv_session_mark_stale(kv_session *s, uint32_t from, uint32_t to, base_err *err)
{
    return carry_out(s, &stale_order, from, to, err);
}

int kv_session_mark_failed(kv_session *s, uint32_t from, uint32_t to, base_err *err)
{
    return carry_out(s, &failed_order, from, to, err);
}

int kv_session_mark_thought(kv_session *s, uint32_t from, uint32_t to, base_err *err)
{
    return carry_out(s, &thought_order, from, to, err);
}

int kv_session_check_fixed(uint32_t n_fixed, uint32_t budget, base_err *err)
{
    const uint32_t least = n_fixed + KV_BATCH;
    if (budget >= least) return 0;
    return base_fail(err, BASE_E_LIMIT,
        "the fixed prompt and instructions take %u rows; a cache "
        "budget of %u is too small for them, give at least %u",
        n_fixed, budget, least);
}

int kv_session_set_budget(kv_session *s, kv_limit limit, base_err *err)
{
    const uint32_t rows = limit.rows;
    const uint32_t hard = kv__count_hard(s);
    if (!s->policy->score)
        return base_fail(err, BASE_E_STATE,
            "the policy '%s' keeps everything; a budget needs another --kv-policy", s->policy->info.name);
    if (rows && rows < hard + KV_BATCH)
        return base_fail(err, BASE_E_LIMIT,
            "a budget of %u rows is too small: %u are protected and %u more are needed, so at least %u", rows,
            hard, (unsigned)KV_BATCH, hard + KV_BATCH);
    const kv_limit before = {s->budget, s->until};
    kv__set_limit(s, limit);
    kv__set_end(s);
    int rc = kv__check_end(s, err);
    if (rc) {
        kv__set_limit(s, before);
        kv__set_end(s);
        return rc;
    }
    return kv__evict(s, NULL, NULL, err);
}
