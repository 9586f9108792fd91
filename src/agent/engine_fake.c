/*
 * The scripted engine: answers come from a text file, rows are counted like a real session's, and nothing is computed. Agent,
 * tools, log and screen are tested on it; two runs of one script give the same events.
 *
 * The script, a line a directive, '#' a comment:
 *
 *     model NAME | ctx N | lanes N (1..32) | budget ROWS | repair ROWS | chunk N      settings, before the first answer
 *     answer TEXT                 the next answer; \n \t \\ are unescaped
 *     answer <<WORD               ... or the lines up to one that is WORD alone
 *     evict FROM TO REASON LANES  (promote, protect, bar alike) a plan before the answer that follows: promote is made at the
 *                                 first repair, the others at the first append; lanes: how many
 *     wanted TEXT                 the following answer's first token overruled this one (a mask event)
 *     fail TEXT                   the first append before the following answer fails with this sentence
 *
 * A token is up to four ASCII letters, digits or underscores (a blank in front may belong to it), or one byte of anything
 * else; its id is its bytes, so that ids mean the same in every run. Over the budget the oldest rows go, lane by lane a little
 * different; a repair brings back rows whose token the signal names, with their neighbours. Engine thread only.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/engine.h"
#include "agent/engine_script.h"
#include "base/fs.h"
#include "base/mem.h"

enum {
    FAKE_SINKS = 4,
    FAKE_WINDOW = 32,
    FAKE_WORD = 4, /* letters a token */
    FAKE_CONTROL = 1 << 30,
    FAKE_BYTE = FAKE_CONTROL + 256, /* one byte above ASCII */
    FAKE_END = FAKE_CONTROL + 64
};

/* One token of the sequence. */
typedef struct token_state {
    int32_t id;
    uint32_t active; /* bit per lane */
    uint32_t turn;
    uint8_t origin, flags; /* KV_STATE_* */
    uint8_t soft_reason, last_action, last_reason;
    uint8_t line_start;
    uint32_t last_turn;
} token_state;

/* What undo takes back: the masks before a plan. */
typedef struct undo_entry {
    uint32_t *active;
    uint8_t *flags;
    uint32_t n;
} undo_entry;

typedef struct fake {
    engine base;
    engine_script script; /* n_ctx, budget, ... are read from here too */
    char *row_file;
    size_t cursor; /* cursor: the next answer is at or behind it */
    token_state *tokens;
    uint32_t n;
    size_t cap_tokens;
    int32_t *ids; /* a flat copy for ids() */
    size_t cap_ids;
    undo_entry *undo;
    size_t n_undo, cap_undo;
    kv_observer observer;
    const atomic_bool *cancel;
    uint64_t epoch;
    uint32_t turn, reused, computed;
    bool automatic;
    bool is_branch; /* of which the first branch_n tokens are the session's */
    uint32_t branch_n;
    uint64_t branch_epoch;
    model_ids answer; /* the current answer's tokens, the end token last */
    size_t answer_at;
    int32_t wanted;
    char piece[8][8]; /* piece() hands out these in turn */
    uint32_t piece_at;
} fake;

static fake *as_fake(engine *e)
{
    return (fake *)e;
}

static const fake *as_const(const engine *e)
{
    return (const fake *)e;
}

/* --- tokens ------------------------------------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Two bits of length, seven bits a character. */
static int32_t pack_token(const char *s, size_t n)
{
    int32_t id = (int32_t)(n - 1) << 28;
    for (size_t i = 0; i < n; i++) id |= (s[i] & 0x7f) << (7 * i);
    return id;
}

static void fake_encode(const engine *e, const char *text, size_t n, model_ids *out)
{
    for (size_t i = 0; i < n;) {
        size_t len = 1, word = i + (text[i] == ' ');
        if ((unsigned char)text[i] >= 0x80) {
            model_ids_add(out, FAKE_BYTE + (unsigned char)text[i]);
            i++;
            continue;
        }
        if (word < n && is_word(text[word])) {
            for (len = word - i; len < FAKE_WORD && i + len < n && is_word(text[i + len]);) len++;
        } else if (text[i] == ' ') {
            while (len < FAKE_WORD && i + len < n && text[i + len] == ' ') len++;
        }
        model_ids_add(out, pack_token(text + i, len));
        i += len;
    }
}

static const char *const role_names[] = {"<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"};

static const char *fake_piece(const engine *e, int32_t id, size_t *ret_n)
{
    fake *f = (fake *)(uintptr_t)e;
    char *out = f->piece[f->piece_at++ % 8];
    size_t n = 0;
    if (id >= FAKE_BYTE && id < FAKE_BYTE + 256) {
        out[n++] = (char)(id - FAKE_BYTE);
    } else if (id == FAKE_END) {
        *ret_n = 7;
        return "<|end|>";
    } else if (id >= FAKE_CONTROL && id < FAKE_CONTROL + 4) {
        *ret_n = strlen(role_names[id - FAKE_CONTROL]);
        return role_names[id - FAKE_CONTROL];
    } else if (id >= 0 && id < FAKE_CONTROL) {
        for (n = 0; n <= (size_t)(id >> 28); n++) out[n] = (char)((id >> (7 * n)) & 0x7f);
    } else {
        return NULL;
    }
    out[n] = 0;
    *ret_n = n;
    return out;
}

static bool fake_is_control(const engine *e, int32_t id)
{
    return id >= FAKE_CONTROL && id < FAKE_BYTE;
}

static void fake_start(const engine *e, model_ids *out)
{
}

static void fake_begin(const engine *e, model_role role, model_ids *out)
{
    model_ids_add(out, FAKE_CONTROL + (int32_t)role);
}

static void fake_end(const engine *e, model_role role, model_ids *out)
{
    model_ids_add(out, FAKE_END);
}

/* --- rows --------------------------------------------------------------------------------------------------------------- */

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
static int evict_pass(fake *f, base_err *err)
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

static void add_token(fake *f, int32_t id, kv_origin origin, uint32_t turn)
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

static bool cancelled(const fake *f)
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
        if (cancelled(f)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
        uint32_t chunk = n - done < f->script.chunk ? n - done : f->script.chunk;
        for (uint32_t i = 0; i < chunk; i++) add_token(f, ids[done + i], segment->origin, segment->turn);
        done += chunk;
        f->computed += chunk;
        for (uint32_t s = 0; s < segment->n_spans; s++)
            for (uint32_t i = segment->spans[s].from; i < segment->spans[s].to && start + i < f->n; i++) {
                f->tokens[start + i].flags |= KV_STATE_SOFT;
                f->tokens[start + i].soft_reason = segment->spans[s].reason;
            }
        if (f->observer.prefill) f->observer.prefill(f->observer.user, done, n);
        int rc = f->automatic ? evict_pass(f, err) : 0;
        if (rc) return rc;
    }
    return f->automatic ? scripted_plans(f, false, err) : 0;
}

/* Rows evicted somewhere whose token the signal names come back with `reach` neighbours, at most f->script.repair of them. */
static int fake_repair(
    engine *e, uint32_t from, uint32_t to, const uint32_t *queries, uint32_t n_queries, base_err *err)
{
    fake *f = as_fake(e);
    if (cancelled(f)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
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
    return evict_pass(f, err);
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

/* --- snapshot: the tokens as they stand, for tests of resume ------------------------------------------------------------ */

static const char snapshot_magic[8] = "kvfake1";

static int fake_save(engine *e, base_err *err)
{
    fake *f = as_fake(e);
    if (!f->row_file) return 0;
    base_buf out = {0};
    base_buf_add(&out, snapshot_magic, sizeof snapshot_magic);
    base_buf_add(&out, &f->n, sizeof f->n);
    if (f->n) base_buf_add(&out, f->tokens, f->n * sizeof *f->tokens);
    int rc = base_fs_write(f->row_file, out.data, out.len, 0600, err);
    base_buf_free(&out);
    return rc;
}

static int fake_resume(fake *f, base_err *err)
{
    base_buf in = {0};
    int rc = base_fs_read(f->row_file, 64u << 20, &in, err);
    uint32_t n = 0;
    size_t head = sizeof snapshot_magic + sizeof n;
    if (!rc && (in.len < head || memcmp(in.data, snapshot_magic, sizeof snapshot_magic)))
        rc = base_fail(err, BASE_E_FORMAT, "%s is no snapshot", f->row_file);
    if (!rc) {
        memcpy(&n, in.data + sizeof snapshot_magic, sizeof n);
        if (n > SCRIPT_MAX_TOKENS || in.len != head + n * sizeof *f->tokens)
            rc = base_fail(err, BASE_E_FORMAT, "%s is cut off", f->row_file);
    }
    for (uint32_t i = 0; !rc && i < n; i++) {
        token_state t;
        memcpy(&t, in.data + head + i * sizeof t, sizeof t);
        add_token(f, t.id, KV_ORIGIN_SYSTEM, 0);
        f->tokens[i] = t;
    }
    if (!rc) f->reused = n;
    base_buf_free(&in);
    return rc;
}

static int fake_save_prefix(engine *e, uint32_t n, base_err *err)
{
    return 0;
}

static int fake_restart(engine *e, const char *row_file, base_err *err)
{
    fake *f = as_fake(e);
    f->n = 0;
    f->reused = 0;
    f->epoch++;
    free(f->row_file);
    f->row_file = base_xstrdup(row_file);
    return 0;
}

/* --- answers ------------------------------------------------------------------------------------------------------------ */

static int fake_set_tools(
    engine *e, const model_grammar_tool *tools, uint32_t n, const char *const *paths, base_err *err)
{
    return 0;
}

static void fake_set_sampling(engine *e, const model_sampling *s)
{
}

static void fake_answer_begins(engine *e)
{
    fake *f = as_fake(e);
    f->answer.n = f->answer_at = 0;
    f->wanted = -1;
    while (f->cursor < f->script.n_steps && f->script.steps[f->cursor].kind != STEP_ANSWER) {
        const script_step *s = &f->script.steps[f->cursor++];
        model_ids first = {0};
        if (s->kind == STEP_WANTED) fake_encode(e, s->text, strlen(s->text), &first);
        if (first.n) f->wanted = first.ids[0];
        model_ids_free(&first);
    }
    if (f->cursor == f->script.n_steps) return; /* next will say so */
    const script_step *s = &f->script.steps[f->cursor++];
    fake_encode(e, s->text, strlen(s->text), &f->answer);
    model_ids_add(&f->answer, FAKE_END);
}

static int fake_next(
    engine *e, uint32_t turn, int32_t *ret_id, bool *ret_end, int32_t *mask_wanted, base_err *err)
{
    fake *f = as_fake(e);
    if (cancelled(f)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
    if (f->answer_at >= f->answer.n) return base_fail(err, BASE_E_STATE, "the script has no further answer");
    if (f->n >= f->script.n_ctx)
        return base_fail(err, BASE_E_LIMIT,
            "the context of %u tokens is full; /compact starts a smaller session", f->script.n_ctx);
    int32_t id = f->answer.ids[f->answer_at++];
    if (mask_wanted) *mask_wanted = f->answer_at == 1 ? f->wanted : -1;
    add_token(f, id, KV_ORIGIN_ANSWER, turn);
    f->computed++;
    *ret_id = id;
    *ret_end = id == FAKE_END;
    return evict_pass(f, err);
}

/* The answers of a branch come from the same script, one after the other. */
static int fake_fork(engine *e, base_err *err)
{
    fake *f = as_fake(e);
    f->is_branch = true;
    f->branch_n = f->n;
    f->branch_epoch = f->epoch;
    return 0;
}

static void fake_unfork(engine *e)
{
    fake *f = as_fake(e);
    if (!f->is_branch) return;
    f->is_branch = false;
    f->n = f->branch_n;
    f->epoch = f->branch_epoch;
}

static void fake_close(engine *e)
{
    fake *f = as_fake(e);
    if (!f) return;
    for (size_t i = 0; i < f->n_undo; i++) {
        free(f->undo[i].active);
        free(f->undo[i].flags);
    }
    script_fini(&f->script);
    free(f->undo);
    free(f->tokens);
    free(f->ids);
    free(f->row_file);
    model_ids_free(&f->answer);
    free(f);
}

static const engine_ops fake_ops = {
    .close = fake_close,
    .info = fake_info,
    .stats = fake_stats,
    .observe = fake_observe,
    .encode = fake_encode,
    .piece = fake_piece,
    .is_control = fake_is_control,
    .start = fake_start,
    .begin = fake_begin,
    .end = fake_end,
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
    .save = fake_save,
    .save_prefix = fake_save_prefix,
    .restart = fake_restart,
    .set_tools = fake_set_tools,
    .set_sampling = fake_set_sampling,
    .answer_begins = fake_answer_begins,
    .next = fake_next,
    .fork = fake_fork,
    .unfork = fake_unfork,
};

int engine_fake_open(engine **ret, const char *script, size_t n, const engine_options *options, bool *resumed,
    base_err *why_not, base_err *err)
{
    fake *f = base_xcalloc(1, sizeof *f);
    *f = (fake){.base.ops = &fake_ops,
        .script =
            {.model = base_xstrdup("scripted"), .n_ctx = 8192, .n_lanes = 4, .chunk = 512, .repair = 32},
        .automatic = true};
    if (resumed) *resumed = false;
    if (why_not) *why_not = (base_err){0};
    int rc = script_parse(&f->script, script, n, err);
    if (!rc && options) {
        if (options->kv.budget) f->script.budget = options->kv.budget;
        if (options->kv.n_ctx) f->script.n_ctx = options->kv.n_ctx;
        if (options->kv.repair > 0) f->script.repair = (uint32_t)options->kv.repair;
        if (options->budget)
            rc = options->budget(options->budget_user, f->script.n_ctx, 1024, &f->script.budget, err);
        f->cancel = options->cancel;
        f->row_file = base_xstrdup(options->kv.row_file);
        if (!rc && options->resume && f->row_file) {
            bool served = fake_resume(f, why_not) == 0;
            if (resumed) *resumed = served;
        }
    }
    if (rc) {
        fake_close(&f->base);
        return rc;
    }
    *ret = &f->base;
    return 0;
}
