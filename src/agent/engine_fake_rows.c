/*
 * The scripted engine's rows: counted like a real session's. Every change is a plan that the observer sees first. Over the budget
 * the oldest rows go, lane by lane a little different; a repair brings back rows whose token the signal names, with their
 * neighbours; the script adds plans of its own. Engine thread only.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/engine_fake.h"
#include "base/mem.h"

static uint32_t all_lanes(const fake *f)
{
    return f->script.n_lanes == 32 ? UINT32_MAX : (1u << f->script.n_lanes) - 1;
}

static bool is_hard(const fake *f, uint32_t i)
{
    const token_state *t = &f->tokens[i];
    if (t->flags & KV_STATE_PINNED) return true;
    if (t->flags & KV_STATE_BARRED) return false;
    return t->origin == KV_ORIGIN_SYSTEM || t->origin == KV_ORIGIN_INSTRUCTIONS || i < FAKE_SINKS ||
           i + FAKE_WINDOW >= f->n || (t->origin == KV_ORIGIN_USER && t->turn == f->turn);
}

/* A change under construction: the masks wanted, and what is said about each token (action 255: nothing). */
typedef struct change {
    uint32_t *active;
    uint8_t *action, *reason, *flags;
} change;

static change change_begin(const fake *f)
{
    uint32_t n = f->n ? f->n : 1;
    change c = {base_xcalloc(n, sizeof *c.active), base_xmalloc(n), base_xcalloc(n, 1), base_xcalloc(n, 1)};
    memset(c.action, 255, n);
    for (uint32_t i = 0; i < f->n; i++) {
        c.active[i] = f->tokens[i].active;
        c.flags[i] = f->tokens[i].flags;
    }
    return c;
}

static void change_free(change *c)
{
    free(c->active);
    free(c->action);
    free(c->reason);
    free(c->flags);
}

static void remember_for_undo(fake *f)
{
    base_grow(&f->undo, &f->cap_undo, f->n_undo + 1, sizeof *f->undo);
    undo_entry *u = &f->undo[f->n_undo++];
    *u = (undo_entry){base_xcalloc(f->n + 1, sizeof *u->active), base_xcalloc(f->n + 1, 1), f->n};
    for (uint32_t i = 0; i < f->n; i++) {
        u->active[i] = f->tokens[i].active;
        u->flags[i] = f->tokens[i].flags;
    }
}

static void flip_mark(uint64_t **set, size_t words, uint32_t i, bool flips)
{
    if (!flips) return;
    if (!*set) *set = base_xcalloc(words, sizeof **set);
    (*set)[i / 64] |= UINT64_C(1) << (i % 64);
}

static uint8_t mark_flips(const kv_plan *p, uint32_t i)
{
    const struct {
        const uint64_t *set;
        uint8_t state;
    } sets[] = {{p->barred, KV_STATE_BARRED}, {p->pinned, KV_STATE_PINNED}, {p->stale, KV_STATE_STALE}};
    uint8_t marks = 0;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++)
        if (sets[s].set && (sets[s].set[i / 64] >> (i % 64) & 1)) marks |= sets[s].state;
    return marks;
}

/* Makes the plan of a change, shows it to the observer, then acts on it. An empty change makes no plan. */
static int change_apply(fake *f, change *c, kv_cause cause, bool undoable, base_err *err)
{
    kv_plan *p = kv_plan_new(f->epoch, cause, f->n, f->script.n_lanes);
    if (!p) return base_fail(err, BASE_E_NOMEM, "no memory for a plan of %u tokens", f->n);
    size_t words = kv_plan_words(p);
    uint64_t evicted = 0, promoted = 0;
    bool anything = false;
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t flips = c->active[i] ^ f->tokens[i].active;
        uint32_t gone = flips & f->tokens[i].active, back = flips & c->active[i];
        for (uint32_t lane = 0; lane < f->script.n_lanes; lane++)
            if (flips >> lane & 1) p->flips[lane * words + i / 64] |= UINT64_C(1) << (i % 64);
        uint8_t marks = (uint8_t)(c->flags[i] ^ f->tokens[i].flags);
        flip_mark(&p->barred, words, i, marks & KV_STATE_BARRED);
        flip_mark(&p->pinned, words, i, marks & KV_STATE_PINNED);
        flip_mark(&p->stale, words, i, marks & KV_STATE_STALE);
        evicted += (uint32_t)__builtin_popcount(gone);
        promoted += (uint32_t)__builtin_popcount(back);
        if (c->action[i] == 255) continue;
        anything = true;
        uint32_t lanes = (uint32_t)__builtin_popcount(flips ? flips : c->active[i]);
        kv_plan_add_run(p, i, i + 1, (kv_action)c->action[i], (kv_reason)c->reason[i], lanes);
    }
    p->evicted = (uint32_t)((evicted + f->script.n_lanes / 2) / f->script.n_lanes);
    p->promoted = (uint32_t)((promoted + f->script.n_lanes / 2) / f->script.n_lanes);
    if (anything) {
        if (f->observer.plan) f->observer.plan(f->observer.user, p);
        if (undoable) remember_for_undo(f);
        for (uint32_t i = 0; i < f->n; i++) {
            f->tokens[i].active = c->active[i];
            f->tokens[i].flags = c->flags[i];
            if (c->action[i] == 255) continue;
            f->tokens[i].last_action = c->action[i];
            f->tokens[i].last_reason = c->reason[i];
            f->tokens[i].last_turn = f->turn;
        }
        f->epoch++;
    }
    kv_plan_free(p);
    return 0;
}

/* Oldest first down to 7/8 of the budget; the first round spares soft spans and, lane by lane, another fifth of the text. */
int fake_evict(fake *f, base_err *err)
{
    if (!f->script.budget || f->is_branch) return 0;
    change c = change_begin(f);
    bool over = false;
    for (uint32_t lane = 0; lane < f->script.n_lanes; lane++) {
        uint32_t bit = 1u << lane, n = 0;
        for (uint32_t i = 0; i < f->n; i++) n += c.active[i] >> lane & 1;
        if (n <= f->script.budget) continue;
        over = true;
        for (int round = 0; round < 2; round++)
            for (uint32_t i = 0; i < f->n && n > f->script.budget / 8 * 7; i++) {
                bool spared = (f->tokens[i].flags & KV_STATE_SOFT) || (i / 16 + lane) % 5 == 0;
                if (!(c.active[i] & bit) || is_hard(f, i) || (round == 0 && spared)) continue;
                c.active[i] &= ~bit;
                c.action[i] = KV_EVICT;
                c.reason[i] = KV_REASON_BUDGET;
                n--;
            }
    }
    for (uint32_t i = 0; over && i < f->n; i++)
        if (c.active[i] && (f->tokens[i].flags & KV_STATE_SOFT) && c.action[i] == 255) {
            c.action[i] = KV_PROTECT;
            c.reason[i] = f->tokens[i].soft_reason;
        }
    int rc = over ? change_apply(f, &c, KV_CAUSE_EVICT, true, err) : 0;
    change_free(&c);
    return rc;
}

/* Makes the scripted plans that stand before the next answer: promotions, or all the others. */
static int scripted_plans(fake *f, bool promotions, base_err *err)
{
    int rc = 0;
    for (size_t s = f->cursor; s < f->script.n_steps && f->script.steps[s].kind != STEP_ANSWER && !rc; s++) {
        script_step *st = &f->script.steps[s];
        if (st->done || !script_plans[st->kind].word || (st->kind == STEP_PROMOTE) != promotions) continue;
        st->done = true;
        change c = change_begin(f);
        uint32_t lanes = st->lanes >= f->script.n_lanes ? all_lanes(f) : (1u << st->lanes) - 1;
        for (uint32_t i = st->from; i < st->to && i < f->n; i++) {
            c.action[i] = (uint8_t)script_plans[st->kind].action;
            c.reason[i] = (uint8_t)st->reason;
            if (st->kind == STEP_PROMOTE) c.active[i] |= lanes;
            if (st->kind == STEP_EVICT) c.active[i] &= ~lanes;
            if (st->kind == STEP_BAR) {
                c.active[i] = 0;
                c.flags[i] |= KV_STATE_BARRED;
            }
        }
        rc = change_apply(f, &c, script_plans[st->kind].cause, true, err);
        change_free(&c);
    }
    return rc;
}

void fake_add_token(fake *f, int32_t id, kv_origin origin, uint32_t turn)
{
    base_grow(&f->tokens, &f->cap_tokens, f->n + 1, sizeof *f->tokens);
    base_grow(&f->ids, &f->cap_ids, f->n + 1, sizeof *f->ids);
    f->ids[f->n] = id;
    f->tokens[f->n++] = (token_state){.id = id,
        .active = all_lanes(f),
        .turn = turn,
        .origin = (uint8_t)origin,
        .soft_reason = KV_N_REASONS,
        .last_action = 255};
}

bool fake_is_cancelled(const fake *f)
{
    return f->cancel && atomic_load(f->cancel);
}

static int fake_append(engine *e, const kv_segment *segment, const int32_t *ids, uint32_t n, base_err *err)
{
    fake *f = as_fake(e);
    for (size_t s = f->cursor; s < f->script.n_steps && f->script.steps[s].kind != STEP_ANSWER; s++)
        if (f->script.steps[s].kind == STEP_FAIL && !f->script.steps[s].done) {
            f->script.steps[s].done = true;
            return base_fail(err, BASE_E_DEVICE, "%s", f->script.steps[s].text);
        }
    if (n > f->script.n_ctx - f->n)
        return base_fail(err, BASE_E_LIMIT,
            "the context ends at %u tokens: %u are used and %u more do not fit; /compact starts a smaller "
            "session",
            f->script.n_ctx, f->n, n);
    uint32_t start = f->n;
    for (uint32_t done = 0; done < n;) {
        if (fake_is_cancelled(f)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
        uint32_t chunk = n - done < f->script.chunk ? n - done : f->script.chunk;
        const kv_logged *logged = segment->logged;
        for (uint32_t i = 0; logged && i < logged->n_stops; i++)
            if (logged->stops[i] > done && logged->stops[i] < done + chunk) chunk = logged->stops[i] - done;
        for (uint32_t i = 0; i < chunk; i++) fake_add_token(f, ids[done + i], segment->origin, segment->turn);
        done += chunk;
        f->computed += chunk;
        for (uint32_t s = 0; s < segment->n_spans; s++)
            for (uint32_t i = segment->spans[s].from; i < segment->spans[s].to && start + i < f->n; i++) {
                f->tokens[start + i].flags |= KV_STATE_SOFT;
                f->tokens[start + i].soft_reason = segment->spans[s].reason;
            }
        if (f->observer.prefill) f->observer.prefill(f->observer.user, done, n);
        int rc = f->automatic ? fake_evict(f, err) : 0;
        for (uint32_t i = 0; !rc && logged && i < logged->n_stops; i++)
            if (logged->stops[i] == done) rc = logged->decide(logged->user, f->n, err);
        if (rc) return rc;
    }
    return f->automatic ? scripted_plans(f, false, err) : 0;
}

/* Rows evicted somewhere whose token the signal names come back with `reach` neighbours, at most f->script.repair of them. */
static int fake_repair(
    engine *e, uint32_t from, uint32_t to, const uint32_t *queries, uint32_t n_queries, base_err *err)
{
    fake *f = as_fake(e);
    if (fake_is_cancelled(f)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
    int rc = scripted_plans(f, true, err);
    if (rc || !f->script.repair) return rc;
    enum { REACH = 8 };
    change c = change_begin(f);
    uint32_t n_back = 0;
    for (uint32_t q = 0; q < n_queries; q++) {
        if (queries[q] >= f->n) continue;
        int32_t id = f->tokens[queries[q]].id;
        if (id < 2 << 28 || id >= FAKE_CONTROL) continue; /* shorter than three letters */
        for (uint32_t i = 0; i < from && n_back < f->script.repair; i++) {
            if (f->tokens[i].id != id) continue;
            for (uint32_t k = i > REACH ? i - REACH : 0;
                 k < i + REACH && k < from && n_back < f->script.repair; k++) {
                if (c.active[k] == all_lanes(f) || (f->tokens[k].flags & (KV_STATE_BARRED | KV_STATE_STALE)))
                    continue;
                c.active[k] = all_lanes(f);
                c.action[k] = KV_PROMOTE;
                c.reason[k] = k == i ? KV_REASON_REPAIR_ANCHOR : KV_REASON_REPAIR_BURST;
                n_back++;
            }
        }
    }
    rc = change_apply(f, &c, KV_CAUSE_REPAIR, true, err);
    change_free(&c);
    return rc;
}

/* What a hand or a fact does to tokens [from, to). */
static int mark(fake *f, kv_cause cause, kv_action action, kv_reason reason, bool activate, bool deactivate,
    uint8_t set_flags, uint8_t clear_flags, uint32_t from, uint32_t to, base_err *err)
{
    if (from > to || to > f->n)
        return base_fail(err, BASE_E_USAGE, "rows %u to %u: the session has %u tokens", from, to, f->n);
    change c = change_begin(f);
    for (uint32_t i = from; i < to; i++) {
        c.action[i] = (uint8_t)action;
        c.reason[i] = (uint8_t)reason;
        c.flags[i] = (uint8_t)((c.flags[i] | set_flags) & ~clear_flags);
        if (activate) c.active[i] = all_lanes(f);
        if (deactivate) c.active[i] = 0;
    }
    int rc = change_apply(f, &c, cause, true, err);
    change_free(&c);
    return rc;
}

static int fake_manual(engine *e, kv_manual what, uint32_t from, uint32_t to, base_err *err)
{
    static const struct {
        kv_action action;
        kv_reason reason;
        bool activate, deactivate;
        uint8_t set_flags, clear_flags;
    } hands[] = {
        [KV_MANUAL_PIN] = {KV_PROTECT, KV_REASON_PIN, true, false, KV_STATE_PINNED, KV_STATE_BARRED},
        [KV_MANUAL_UNPIN] = {KV_KEEP, KV_REASON_MANUAL, false, false, 0, KV_STATE_PINNED},
        [KV_MANUAL_DROP] = {KV_BAR, KV_REASON_MANUAL, false, true, KV_STATE_BARRED, KV_STATE_PINNED},
        [KV_MANUAL_EVICT] = {KV_EVICT, KV_REASON_MANUAL, false, true, 0, KV_STATE_PINNED},
        [KV_MANUAL_PROMOTE] = {KV_PROMOTE, KV_REASON_MANUAL, true, false, 0,
            KV_STATE_BARRED | KV_STATE_STALE},
    };
    return mark(as_fake(e), KV_CAUSE_MANUAL, hands[what].action, hands[what].reason, hands[what].activate,
        hands[what].deactivate, hands[what].set_flags, hands[what].clear_flags, from, to, err);
}

static int fake_mark_stale(engine *e, uint32_t from, uint32_t to, base_err *err)
{
    return mark(
        as_fake(e), KV_CAUSE_STALE, KV_EVICT, KV_REASON_STALE, false, true, KV_STATE_STALE, 0, from, to, err);
}

static int fake_mark_failed(engine *e, uint32_t from, uint32_t to, base_err *err)
{
    return mark(as_fake(e), KV_CAUSE_FAILED, KV_BAR, KV_REASON_FAILED, false, true, KV_STATE_BARRED, 0, from,
        to, err);
}

static int fake_undo_plan(engine *e, base_err *err)
{
    fake *f = as_fake(e);
    if (!f->n_undo) return base_fail(err, BASE_E_NOT_FOUND, "no eviction or promotion to undo");
    undo_entry u = f->undo[--f->n_undo];
    change c = change_begin(f);
    for (uint32_t i = 0; i < u.n && i < f->n; i++) {
        if (c.active[i] == u.active[i] && c.flags[i] == u.flags[i]) continue;
        c.action[i] = (u.active[i] & ~c.active[i]) || !u.active[i] == !c.active[i] ? KV_PROMOTE : KV_EVICT;
        c.reason[i] = KV_REASON_MANUAL;
        c.active[i] = u.active[i];
        c.flags[i] = u.flags[i];
    }
    int rc = change_apply(f, &c, KV_CAUSE_MANUAL, false, err);
    change_free(&c);
    free(u.active);
    free(u.flags);
    return rc;
}

static int fake_set_budget(engine *e, uint32_t rows, base_err *err)
{
    fake *f = as_fake(e);
    uint32_t hard = 0;
    for (uint32_t i = 0; i < f->n; i++) hard += is_hard(f, i);
    if (rows && rows < hard + FAKE_WINDOW)
        return base_fail(
            err, BASE_E_USAGE, "a budget of %u rows is too small: %u are needed", rows, hard + FAKE_WINDOW);
    f->script.budget = rows;
    return fake_evict(f, err);
}

static void fake_set_turn(engine *e, uint32_t turn)
{
    as_fake(e)->turn = turn;
}

static int fake_truncate(engine *e, uint32_t n, base_err *err)
{
    fake *f = as_fake(e);
    if (n > f->n) return base_fail(err, BASE_E_USAGE, "cannot cut %u tokens back to %u", f->n, n);
    f->n = n;
    f->epoch++;
    return 0;
}

static int fake_apply(engine *e, kv_plan *p, base_err *err)
{
    fake *f = as_fake(e);
    if (p->n_tokens != f->n || p->n_lanes != f->script.n_lanes)
        return base_fail(err, BASE_E_STATE, "the plan is for %u tokens in %u lanes, the session has %u in %u",
            p->n_tokens, p->n_lanes, f->n, f->script.n_lanes);
    change c = change_begin(f);
    size_t words = kv_plan_words(p);
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t flips = 0;
        for (uint32_t lane = 0; lane < f->script.n_lanes; lane++)
            flips |= (uint32_t)(p->flips[lane * words + i / 64] >> (i % 64) & 1) << lane;
        uint8_t marks = mark_flips(p, i);
        c.active[i] ^= flips;
        c.flags[i] ^= marks;
        if (!flips && !marks) continue;
        c.action[i] = marks & c.flags[i] & KV_STATE_BARRED ? KV_BAR
                      : flips & c.active[i]                ? KV_PROMOTE
                                                           : KV_EVICT;
        c.reason[i] = KV_REASON_MANUAL;
    }
    int rc = change_apply(f, &c, p->cause, true, err);
    change_free(&c);
    return rc;
}

static void fake_set_automatic(engine *e, bool on)
{
    as_fake(e)->automatic = on;
}

/* --- looking ------------------------------------------------------------------------------------------------------------ */

static void fake_info(const engine *e, engine_info *ret)
{
    const fake *f = as_const(e);
    *ret = (engine_info){.model = f->script.model,
        .model_hash = "fake",
        .quantisation = "none",
        .policy = "scripted",
        .backend = "script",
        .tools = MODEL_TOOLS_TAG_TOOLS,
        .n_ctx = f->script.n_ctx,
        .model_n_ctx = f->script.n_ctx,
        .n_lanes = f->script.n_lanes,
        .row_bytes = 1024,
        .n_vocab = FAKE_BYTE + 256};
}

static void fake_stats(const engine *e, kv_stats *ret)
{
    const fake *f = as_const(e);
    *ret = (kv_stats){.n_tokens = f->n,
        .n_ctx = f->script.n_ctx,
        .budget = f->script.budget,
        .n_lanes = f->script.n_lanes,
        .epoch = f->epoch,
        .reused = f->reused,
        .computed = f->computed};
    uint64_t total = 0;
    for (uint32_t lane = 0; lane < f->script.n_lanes; lane++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < f->n; i++) n += f->tokens[i].active >> lane & 1;
        if (!lane || n < ret->active_min) ret->active_min = n;
        if (n > ret->active_max) ret->active_max = n;
        total += n;
    }
    for (uint32_t i = 0; i < f->n; i++) {
        ret->barred += (f->tokens[i].flags & KV_STATE_BARRED) != 0;
        ret->protected_ += is_hard(f, i);
    }
    ret->active = (uint32_t)((total + f->script.n_lanes / 2) / f->script.n_lanes);
    ret->host = f->n - ret->active;
    ret->active_bytes = (uint64_t)ret->active * 1024;
    ret->host_bytes = (uint64_t)ret->host * 1024;
}

static void fake_observe(engine *e, const kv_observer *observer)
{
    as_fake(e)->observer = observer ? *observer : (kv_observer){0};
}

static const int32_t *fake_ids(const engine *e, uint32_t *ret_n)
{
    *ret_n = as_const(e)->n;
    return as_const(e)->ids;
}

static void fake_active_lanes(const engine *e, uint32_t *ret)
{
    const fake *f = as_const(e);
    for (uint32_t i = 0; i < f->n; i++) ret[i] = (uint32_t)__builtin_popcount(f->tokens[i].active);
}

static void fake_lane_bits(const engine *e, uint32_t lane, uint64_t *ret)
{
    const fake *f = as_const(e);
    memset(ret, 0, (f->n + 63) / 64 * sizeof *ret);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->tokens[i].active >> lane & 1) ret[i / 64] |= UINT64_C(1) << (i % 64);
}

/* A segment is a run of equal origin and turn; its mass is made up from its place. */
static uint32_t fake_scores(const engine *e, kv_score *ret, uint32_t cap)
{
    const fake *f = as_const(e);
    uint32_t n = 0;
    for (uint32_t from = 0, to; from < f->n; from = to) {
        uint64_t lanes = 0;
        for (to = from; to < f->n && f->tokens[to].origin == f->tokens[from].origin &&
                        f->tokens[to].turn == f->tokens[from].turn;
             to++)
            lanes += (uint32_t)__builtin_popcount(f->tokens[to].active);
        if (n < cap)
            ret[n] = (kv_score){.from = from,
                .to = to,
                .turn = f->tokens[from].turn,
                .origin = f->tokens[from].origin,
                .reason = KV_N_REASONS,
                .attention = 1.0f / (float)(1 + f->n - from),
                .memory = 0.5f / (float)(1 + f->n - from),
                .rank = 1.0f - (float)from / (float)f->n,
                .cut = f->script.budget && f->n > f->script.budget ? (float)f->script.budget / (float)f->n
                                                                   : 1.0f,
                .active = (float)lanes / (float)((to - from) * f->script.n_lanes)};
        n++;
    }
    return n;
}

static void fake_why(const engine *e, uint32_t index, kv_why *ret)
{
    const fake *f = as_const(e);
    *ret = (kv_why){.last_action = 255};
    if (index >= f->n) return;
    const token_state *t = &f->tokens[index];
    *ret = (kv_why){.active_anywhere = t->active != 0,
        .pinned = (t->flags & KV_STATE_PINNED) != 0,
        .barred = (t->flags & KV_STATE_BARRED) != 0,
        .stale = (t->flags & KV_STATE_STALE) != 0,
        .lanes_active = (uint32_t)__builtin_popcount(t->active),
        .last_action = t->last_action,
        .last_reason = t->last_reason,
        .last_turn = t->last_turn,
        .attention = 1.0f / (float)(1 + f->n - index),
        .memory = 0.5f / (float)(1 + f->n - index),
        .rank = 1.0f - (float)index / (float)f->n,
        .cut = f->script.budget && f->n > f->script.budget ? (float)f->script.budget / (float)f->n : 1.0f};
}

const engine_ops fake_row_ops = {
    .info = fake_info,
    .stats = fake_stats,
    .observe = fake_observe,
    .append = fake_append,
    .repair = fake_repair,
    .manual = fake_manual,
    .mark_stale = fake_mark_stale,
    .mark_failed = fake_mark_failed,
    .undo_plan = fake_undo_plan,
    .set_budget = fake_set_budget,
    .set_turn = fake_set_turn,
    .truncate = fake_truncate,
    .apply = fake_apply,
    .set_automatic = fake_set_automatic,
    .ids = fake_ids,
    .active_lanes = fake_active_lanes,
    .lane_bits = fake_lane_bits,
    .scores = fake_scores,
    .why = fake_why,
};
