/*
 * Generated operations against a plain model of the store (docs/kv.md, "What always holds"): the model knows
 * a sequence as arrays of flags and applies each announced plan bit by bit; after every operation the session
 * must say the same, keep every row's bytes, and keep its promises. A sequence that fails is shrunk to the
 * fewest operations that still fail, and printed. KVIST_SEED repeats a run.
 *
 * With FOLDED (test_kv_property_fold) the sessions have no end: they come to ten times their model's context.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/hash.h"
#include "fake_compute.h"
#include "kv/core/state.h"
#include "kv/plan/plan.h"
#include "kv/session.h"

/* CTX: tokens that the plain model holds. MODEL_CTX: the fake model's context. */
#ifdef FOLDED
enum { CTX = 62000, MODEL_CTX = 6000, BUDGET = 1100, PART = 4000 };
#else
enum { CTX = 1500, MODEL_CTX = CTX, BUDGET = 700, PART = 500 };
#endif
enum { N_WORDS = (CTX + 63) / 64 };

typedef enum op_kind {
    OP_APPEND,
    OP_TURN,
    OP_REPAIR,
    OP_REPAIR_FORM,
    OP_MANUAL,
    OP_STALE,
    OP_FAILED,
    OP_UNDO,
    OP_TRUNCATE,
    OP_BUDGET,
    OP_FORK,
    OP_RESUME,
    OP_COMPACT,
    OP_CANCEL,
    OP_CANCEL_REPAIR,
    OP_LOGITS,
    OP_LIMITS,
    N_OPS
} op_kind;
static const char *const op_words[N_OPS] = {"append", "turn", "repair", "repair-form", "manual", "stale",
    "failed", "undo", "truncate", "budget", "fork", "resume", "compact", "cancel", "cancel-repair", "logits",
    "limits"};

/*
 * Two free numbers an operation: what they mean depends on how long the sequence is then, so any subset of
 * operations runs.
 */
typedef struct op {
    op_kind kind;
    uint32_t a, b;
} op;

/* The plain model, and the first thing that was wrong. */
typedef struct world {
    kv_session *s;
    fake_model model;
    char row_file[256];
    char policy[64];    /* its name, and behind it parameters */
    const char *set[8]; /* the parameters, words of `policy` */
    uint32_t n;
    bool active[FAKE_LANES][CTX], pinned[CTX], barred[CTX], stale[CTX], lost[CTX], outshone[CTX];
    uint16_t cut[CTX]; /* layers from here on are not computed */
    uint64_t row[CTX]; /* hash of the token's rows */
    uint32_t turn;
    uint64_t told; /* hash of everything that was told or computed: two runs agree */
    char wrong[200];
} world;

/* The fake model's layer 0 (KVIST_FAKE_WINDOW): its lanes are in no pass, repair or count. */
static bool has_window(const world *w, uint32_t lane)
{
    return w->model.window && lane < FAKE_HEADS_KV;
}

static void complain(world *w, const char *what, uint32_t where)
{
    if (!w->wrong[0]) snprintf(w->wrong, sizeof w->wrong, "%.180s (%u)", what, where);
}

static bool bit(const uint64_t *bits, uint32_t i)
{
    return bits && kv_bits_get(bits, i);
}

static void on_plan(void *user, const kv_plan *p)
{
    world *w = user;
    uint8_t hard[CTX + 1];
    base_buf blob = {0}, again = {0};
    kv_plan *read = NULL;
    kv__protect(w->s, hard);
    if (p->n_tokens != w->s->n || p->n_lanes != FAKE_LANES)
        complain(w, "a plan of another size", p->n_tokens);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
        for (uint32_t t = 0; t < p->n_tokens; t++) {
            if (!kv_bits_get(p->flips + (size_t)lane * kv_plan_words(p), t)) continue;
            if (p->cause == KV_CAUSE_EVICT && w->active[lane][t] && hard[t])
                complain(w, "a hard row left without pressure", t);
            if ((p->cause == KV_CAUSE_EVICT || p->cause == KV_CAUSE_REPAIR) && has_window(w, lane))
                complain(w, "a pass or repair chose in a lane with a window", t);
            if (p->cause == KV_CAUSE_REPAIR && !w->active[lane][t] && (w->barred[t] || w->stale[t]))
                complain(w, "a repair brought a barred row back", t);
            w->active[lane][t] = !w->active[lane][t];
            if (w->cut[t] && lane >= (uint32_t)w->cut[t] * FAKE_HEADS_KV) { /* computed for the first time */
                w->cut[t] = 0;
                w->row[t] = 0;
            }
        }
    for (uint32_t t = 0; t < p->n_tokens; t++) {
        w->pinned[t] ^= bit(p->pinned, t);
        w->barred[t] ^= bit(p->barred, t);
        w->stale[t] ^= bit(p->stale, t);
        w->outshone[t] ^= bit(p->outshone, t);
        if (bit(p->lost, t)) {
            w->lost[t] = true;
            w->row[t] = 0;
            if (p->cause != KV_CAUSE_PRESSURE) complain(w, "rows were given up without pressure", t);
            for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
                if (w->active[lane][t]) complain(w, "an active row was given up", t);
        }
        if (p->replay_from && t >= p->replay_from) w->row[t] = 0; /* computed again */
    }
    kv_plan_pack(p, &blob);
    if (kv_plan_unpack(blob.data, blob.len, &read, NULL))
        complain(w, "a plan's bytes cannot be read", 0);
    else
        kv_plan_pack(read, &again);
    if (again.len != blob.len || memcmp(again.data, blob.data, blob.len))
        complain(w, "a plan's bytes changed", 0);
    w->told = base_hash64(blob.data, blob.len, w->told);
    kv_plan_free(read);
    base_buf_free(&blob);
    base_buf_free(&again);
}

static uint64_t row_hash(const kv_session *s, uint32_t t)
{
    uint16_t row[FAKE_LANES * FAKE_DIM * 2];
    kv_table_get_row(&s->table, t, row);
    return base_hash64(row, sizeof row, 1) | 1;
}

/* The session grew or was cut to its present length: the model follows. */
static void follow(world *w)
{
    for (uint32_t t = w->n; t < w->s->n; t++) {
        w->cut[t] = (uint16_t)kv_session_cut(w->s, t);
        for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
            w->active[lane][t] = !w->cut[t] || lane < (uint32_t)w->cut[t] * FAKE_HEADS_KV;
        w->pinned[t] = w->barred[t] = w->stale[t] = w->lost[t] = w->outshone[t] = false;
        w->row[t] = 0;
    }
    w->n = w->s->n;
}

/* Appended tokens must be in the model before the pass behind them is told. */
static void on_prefill(void *user, uint32_t done, uint32_t total)
{
    (void)done;
    (void)total;
    follow(user);
}

static void check(world *w, bool all_rows)
{
    const kv_session *s = w->s;
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
        uint64_t bits[N_WORDS + 1] = {0};
        const model_lane_list *list = &s->lists.view[lane];
        uint32_t o = 0, n_active = 0;
        kv_session_lane_bits(s, lane, bits);
        for (uint32_t t = 0; t < w->n; t++) {
            n_active += w->active[lane][t];
            if (w->active[lane][t] && w->lost[t]) complain(w, "a lost row came back", t);
            if (kv_bits_get(bits, t) != w->active[lane][t]) complain(w, "a row's state differs", t);
        }
        if (list->n_rows != n_active) complain(w, "active and host are not all", list->n_rows);
        for (uint32_t r = 0; r < list->n_runs; r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++, o++) {
                if (list->runs[r].index + i >= w->n || !w->active[lane][list->runs[r].index + i])
                    complain(w, "a run holds a row that is not active", list->runs[r].index + i);
                if (r && list->runs[r].index < list->runs[r - 1].index + list->runs[r - 1].n)
                    complain(w, "runs do not ascend", r);
            }
        if (o != n_active) complain(w, "runs and rows differ", o);
    }
    for (uint32_t t = 0; t < w->n; t++) {
        if (kv_bits_get(s->pinned, t) != w->pinned[t] || kv_bits_get(s->barred, t) != w->barred[t] ||
            kv_bits_get(s->stale, t) != w->stale[t] || kv_bits_get(s->outshone, t) != w->outshone[t])
            complain(w, "a flag differs", t);
        if (kv_bits_get(s->lost, t) != w->lost[t]) complain(w, "a flag differs", t);
        if (kv_session_cut(s, t) != w->cut[t]) complain(w, "a row is computed that was not, or is not", t);
        for (uint32_t lane = (uint32_t)w->cut[t] * FAKE_HEADS_KV; w->cut[t] && lane < FAKE_LANES; lane++)
            if (w->active[lane][t]) complain(w, "a row that is not computed is active", t);
        if (w->lost[t]) continue;
        if (!all_rows && t % 37 != w->n % 37) continue;
        const uint64_t hash = row_hash(s, t);
        if (w->row[t] && w->row[t] != hash) complain(w, "a row's bytes changed", t);
        w->row[t] = hash;
    }
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    uint64_t active = 0, lost = 0, deferred = 0, rows = 0;
    for (uint32_t t = 0; t < w->n; t++)
        for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
            if (has_window(w, lane)) continue;
            active += w->active[lane][t];
            lost += w->lost[t];
            deferred += !w->lost[t] && w->cut[t] && lane >= (uint32_t)w->cut[t] * FAKE_HEADS_KV;
            rows++;
        }
    const double host = (double)(rows - active - lost - deferred) / stats.n_lanes;
    if (host < 0 || host > stats.host + 2. || host < stats.host - 2.)
        complain(w, "active, host, deferred and lost are not all", stats.host);
    w->told = base_hash64(&s->schedule, sizeof s->schedule, w->told);
    if (MODEL_CTX == CTX) return;
    if (!kv_fold_is_valid(&s->fold, w->n)) complain(w, "a fold that is none", s->fold.n);
    if (kv__is_endless(s) && w->n && s->n_journal == 0 && kv__extent(s) > MODEL_CTX)
        complain(w, "phases outside of the context", kv__extent(s));
    w->told = base_hash64(s->fold.gaps, s->fold.n * sizeof *s->fold.gaps, w->told);
}

static kv_options options_of(const world *w)
{
    return (kv_options){
        .budget = BUDGET, .policy = w->policy, .repair = -1, .row_file = w->row_file, .set = w->set};
}

static bool world_open(world *w, const char *policy, const char *folder, bool lanes_differ)
{
    memset(w, 0, sizeof *w);
    w->model.lanes_differ = lanes_differ;
    snprintf(w->policy, sizeof w->policy, "%s", policy);
    for (char *at = strchr(w->policy, ' '), *next; at; at = next) {
        *at++ = 0;
        next = strchr(at, ' ');
        for (size_t i = 0; i < 7; i++)
            if (!w->set[i]) {
                w->set[i] = at;
                break;
            }
    }
    snprintf(w->row_file, sizeof w->row_file, "%s/rows", folder);
    kv_compute c = fake_compute(&w->model, MODEL_CTX);
    if (MODEL_CTX < CTX) c.device = (kv_device){.user = NULL}; /* it counts no more than so many blocks */
    const kv_options o = options_of(w);
    const kv_observer observer = {.user = w, .plan = on_plan, .prefill = on_prefill};
    return kv_session_new_over(&w->s, &c, &o, &observer, NULL) == 0;
}

static void append(world *w, uint32_t a, uint32_t b)
{
    static const kv_origin origins[] = {
        KV_ORIGIN_USER, KV_ORIGIN_CONTEXT, KV_ORIGIN_TOOL, KV_ORIGIN_ANSWER, KV_ORIGIN_CALL};
    int32_t ids[600];
    float logits[FAKE_VOCAB];
    uint64_t seed = (uint64_t)a << 32 | b;
    const uint32_t n = 1 + (b % 5 ? b % 40 : b % 560);
    uint32_t lines[8], n_lines = 0;
    const kv_span span = {.from = 0, .to = n > 9 ? 9 : n, .reason = KV_REASON_CALL, .weight = 1};
    if (w->n + n > CTX) return;
    for (uint32_t i = 0; i < n; i++) ids[i] = (int32_t)test_below(&seed, FAKE_VOCAB);
    for (uint32_t k = 0; k < 8 && k * 7 < n; k++) lines[n_lines++] = k * 7;
    const kv_segment g = {.origin = origins[a % 5],
        .turn = w->turn,
        .spans = &span,
        .n_spans = a % 3 == 0,
        .lines = lines,
        .n_lines = a % 2 ? n_lines : 0};
    const int r = kv_session_append(w->s, &g, ids, n, b % 2 ? logits : NULL, NULL, NULL);
    if (r && w->model.fail_after != -1) complain(w, "append failed", (uint32_t)r);
    follow(w);
    if (!r && b % 2) w->told = base_hash64(logits, sizeof logits, w->told);
}

/* One of the forms of section 7, over the session's own policy. */
static void set_form(world *w, uint32_t a)
{
    static const char *const forms[][5] = {{"grow=burst", "order=mass"}, {"order=fused"},
        {"order=keys", "lanes=each"}, {"pick=coverage"}, {"pick=refresh", "grow=burst"},
        {"order=random", "grow=none"}, {"order=oldest"}, {"signal=replay"}, {"signal=unvisited", "visit=0"},
        {"lanes=each", "signal=replay"}, {"open=128"}, {"open=192", "signal=unvisited"}, {"focus=.9"},
        {"focus=1", "signal=unvisited"}, {"focus=.9", "outshone=.1"}};
    kv_options o = options_of(w);
    const char *const *form = forms[a % (sizeof forms / sizeof *forms)], *set[16] = {NULL};
    size_t n = 0;
    for (size_t i = 0; w->set[i]; i++) set[n++] = w->set[i];
    for (size_t i = 0; form[i]; i++) set[n++] = form[i];
    o.budget = w->s->budget;
    o.until = w->s->until;
    o.set = set;
    kv_session_set_policy(w->s, &o, NULL);
}

static void repair(world *w, uint32_t a, uint32_t b)
{
    if (w->n < 60) return;
    const uint32_t back = 1 + a % 50, from = w->n - back - (b % 3 ? 0 : b % (w->n - 55)), to = from + back;
    const int r = kv_session_repair(w->s, &(kv_ask){from, to < w->n ? to : w->n}, NULL, NULL);
    if (r && r != BASE_E_CANCELLED && r != BASE_E_STATE) complain(w, "repair failed", (uint32_t)r);
}

/* Whatever a cancelled repair had begun, the session is as it was: state, rows, schedule, next logits. */
static void cancel_repair(world *w, uint32_t a, uint32_t b)
{
    float before[FAKE_VOCAB], after[FAKE_VOCAB];
    const atomic_bool cancel = true;
    const uint64_t epoch = w->s->epoch, schedule = w->s->schedule;
    if (w->n < 60) return;
    set_form(w, a % 2 ? 7 : a);
    w->s->logits_at = 0; /* what the last append computed is of the rows that were active then */
    kv_session_logits(w->s, before, NULL, NULL);
    const uint32_t from = w->n - 1 - b % 50;
    if (a % 3) {
        kv_session_repair(w->s, &(kv_ask){from, w->n}, &cancel, NULL);
    } else {
        w->model.fail_after = 0; /* the replay's own pass is what is cut short */
        const uint64_t told = w->told;
        world keep = *w;
        const int r = kv_session_repair(w->s, &(kv_ask){from, w->n}, NULL, NULL);
        w->model.fail_after = -1;
        if (r == 0) return; /* it needed no forward pass */
        memcpy(w->active, keep.active, sizeof w->active);
        memcpy(w->cut, keep.cut, sizeof w->cut);
        memcpy(w->outshone, keep.outshone, sizeof w->outshone);
        w->told = told;
    }
    if (w->s->epoch != epoch || w->s->schedule != schedule)
        return; /* nothing was missing, or it finished before */
    w->s->logits_at = 0;
    kv_session_logits(w->s, after, NULL, NULL);
    if (w->n && memcmp(before, after, sizeof before))
        complain(w, "a cancelled repair changed the next token", w->n);
}

static void resume(world *w)
{
    float before[FAKE_VOCAB], after[FAKE_VOCAB];
    kv_session *s = NULL;
    kv_compute c = fake_compute(&w->model, MODEL_CTX);
    if (MODEL_CTX < CTX) c.device = (kv_device){.user = NULL}; /* it counts no more than so many blocks */
    const kv_options o = options_of(w);
    const kv_observer observer = {.user = w, .plan = on_plan, .prefill = on_prefill};
    const uint32_t budget = w->s->budget;
    const kv_parameters parameters = w->s->parameters;
    if (!w->s->row_path) return; /* a fork keeps its rows in memory */
    if (kv_session_save(w->s, NULL)) complain(w, "save failed", 0);
    kv_session *copy =
        NULL; /* which rows go up is chosen when somebody wants the next token: not before it was saved */
    if (w->n && (kv_session_fork(w->s, &copy, NULL, NULL) || kv_session_logits(copy, before, NULL, NULL)))
        complain(w, "no next token", w->n);
    kv_session_free(copy);
    kv_session_free(w->s);
    w->s = NULL;
    base_err err = {0};
    if (kv_session_resume_over(&s, &c, &o, &observer, &err)) {
        complain(w, err.msg, 0);
        kv_session_new_over(&s, &c, &o, &observer, NULL);
        w->n = 0;
    }
    w->s = s;
    s->budget = budget;
    s->parameters = parameters;
    if (!w->n) return;
    kv_session_logits(s, after, NULL, NULL);
    if (memcmp(before, after, sizeof before)) complain(w, "a resumed session's next token differs", w->n);
    follow(w);
}

static void fork_over(world *w)
{
    kv_session *f = NULL;
    const kv_observer observer = {.user = w, .plan = on_plan, .prefill = on_prefill};
    if (kv_session_fork(w->s, &f, &observer, NULL)) {
        complain(w, "fork failed", 0);
        return;
    }
    f->budget = w->s->budget;
    if (MODEL_CTX < CTX) { /* the session itself goes on: it has a file, and is resumed later */
        float ours[FAKE_VOCAB], its[FAKE_VOCAB];
        const bool has =
            w->n && !kv_session_logits(f, its, NULL, NULL) && !kv_session_logits(w->s, ours, NULL, NULL);
        if (has && memcmp(ours, its, sizeof ours)) complain(w, "a fork's next token differs", w->n);
        kv_session_free(f);
        return;
    }
    kv_session_free(w->s);
    w->s = f;
}

static void run_op(world *w, const op *o)
{
    const uint32_t n = w->n, from = n ? o->a % n : 0,
                   to = n ? from + 1 + o->b % (n - from < 30 ? n - from : 30) : 0;
    switch (o->kind) {
    case OP_APPEND: append(w, o->a, o->b); break;
    case OP_TURN: kv_session_set_turn(w->s, ++w->turn); break;
    case OP_REPAIR: repair(w, o->a, o->b); break;
    case OP_REPAIR_FORM:
        set_form(w, o->a);
        repair(w, o->b, o->a);
        break;
    case OP_MANUAL:
        if (n) kv_session_manual(w->s, (kv_manual)(o->b % 5), from, to, NULL);
        break;
    case OP_STALE:
        if (n) kv_session_mark_stale(w->s, from, to, NULL);
        break;
    case OP_FAILED:
        if (n) kv_session_mark_failed(w->s, from, to, NULL);
        break;
    case OP_UNDO: kv_session_undo_plan(w->s, NULL); break;
    case OP_TRUNCATE:
        kv_session_truncate(w->s,
            o->b % (MODEL_CTX < CTX ? 400 : 4) ? n - (n < 60 ? n / 2 : o->a % 60) : o->a % (n + 1), NULL);
        break;
    case OP_BUDGET:
        kv_session_set_budget(w->s,
            (kv_limit){o->a % 6 || MODEL_CTX < CTX ? 560 + o->a % 400 : 0, o->b % 3 ? 0 : 560 + o->b % 900},
            NULL);
        break;
    case OP_FORK: fork_over(w); break;
    case OP_RESUME: resume(w); break;
    case OP_COMPACT:
        if (w->s->row_path) kv_session_compact(w->s, NULL);
        break;
    case OP_CANCEL:
        w->model.fail_after = 0;
        append(w, o->a, o->b);
        w->model.fail_after = -1;
        break;
    case OP_CANCEL_REPAIR: cancel_repair(w, o->a, o->b); break;
    case OP_LOGITS:
        if (n) {
            float logits[FAKE_VOCAB];
            kv_session_logits(w->s, logits, NULL, NULL);
            w->told = base_hash64(logits, sizeof logits, w->told);
        }
        break;
    case OP_LIMITS: /* in MiB; a block of the fake model is a sixteenth of one */
        w->s->parameters.host = o->a % 3 ? .0625 * (1 + o->a % 5) : 0;
        w->s->parameters.disk = o->b % 4 ? 0 : .0625 * (6 + o->b % 6);
        break;
    case N_OPS: break;
    }
    follow(w);
}

/* Runs them; the place of the operation behind which something was wrong, or n. */
static uint32_t run(
    world *w, const op *ops, uint32_t n, const char *policy, const char *folder, bool lanes_differ)
{
    uint32_t i = 0;
    if (!world_open(w, policy, folder, lanes_differ)) {
        complain(w, "no session", 0);
        return 0;
    }
    for (; i < n; i++) {
        run_op(w, &ops[i]);
        check(w, i % 64 == 63 || i + 1 == n);
        if (w->wrong[0]) break;
    }
    kv_session_free(w->s);
    return i;
}

static op random_op(uint64_t *random)
{
    /* Appends, repairs and plans are what sequences are made of. */
    static const uint8_t kinds[] = {OP_APPEND, OP_APPEND, OP_APPEND, OP_APPEND, OP_APPEND, OP_TURN, OP_REPAIR,
        OP_REPAIR, OP_REPAIR_FORM, OP_MANUAL, OP_MANUAL, OP_STALE, OP_FAILED, OP_UNDO, OP_TRUNCATE, OP_BUDGET,
        OP_FORK, OP_RESUME, OP_COMPACT, OP_CANCEL, OP_CANCEL_REPAIR, OP_LOGITS, OP_LIMITS};
    return (op){.kind = (op_kind)kinds[test_below(random, sizeof kinds)],
        .a = (uint32_t)test_random(random),
        .b = (uint32_t)test_random(random)};
}

/* Fewest operations that still fail: halves are left out, then quarters, down to single ones. */
static uint32_t shrink(op *ops, uint32_t n, const char *policy, const char *folder, bool lanes_differ)
{
    op *fewer = malloc(n * sizeof *fewer);
    world *w = malloc(sizeof *w);
    for (uint32_t size = n / 2; size && fewer && w; size /= 2)
        for (uint32_t from = 0; from < n;) {
            const uint32_t cut = n - from < size ? n - from : size;
            memcpy(fewer, ops, from * sizeof *ops);
            memcpy(fewer + from, ops + from + cut, (n - from - cut) * sizeof *ops);
            const uint32_t failed = run(w, fewer, n - cut, policy, folder, lanes_differ);
            if (w->wrong[0]) {
                n = failed + 1;
                memcpy(ops, fewer, n * sizeof *ops);
            } else {
                from += cut;
            }
        }
    free(fewer);
    free(w);
    return n;
}

static uint64_t run_or_fail(op *ops, uint32_t n, const char *policy, const char *folder, bool lanes_differ)
{
    world *w = malloc(sizeof *w);
    uint32_t failed = run(w, ops, n, policy, folder, lanes_differ);
    const uint64_t told = w->told;
    if (w->wrong[0]) {
        n = shrink(ops, failed + 1, policy, folder, lanes_differ);
        failed = run(w, ops, n, policy, folder, lanes_differ);
        for (uint32_t i = 0; i < n; i++) printf("  %s %u %u\n", op_words[ops[i].kind], ops[i].a, ops[i].b);
        char wrong[200];
        snprintf(wrong, sizeof wrong, "%s", w->wrong);
        free(w);
        fail_msg("policy %s, lanes %s, behind operation %u of %u: %s", policy,
            lanes_differ ? "differ" : "agree", failed, n, wrong);
    }
    free(w);
    return told;
}

/* Operations of the longest sequence; KVIST_STEPS asks for another number. */
static uint32_t steps(void)
{
    const char *given = getenv("KVIST_STEPS");
    return given ? (uint32_t)strtoul(given, NULL, 10) : test_length(2000, 10000);
}

static void run_policies(const char *const *policies, uint32_t n_policies, uint32_t n_steps, uint64_t seed)
{
    char folder[] = "/tmp/kvist-property-XXXXXX";
    assert_non_null(mkdtemp(folder));
    op *ops = malloc(n_steps * sizeof *ops);
    const uint32_t half = MODEL_CTX < CTX ? n_steps : n_steps / 2, /* both kinds of lanes in any length */
        most = half < PART ? half : PART;
    for (uint32_t p = 0; p < n_policies; p++)
        for (uint32_t from = 0, part = 0; from < n_steps; part++) {
            const uint32_t n = n_steps - from < most ? n_steps - from : most;
            for (uint32_t i = 0; i < n; i++) ops[i] = random_op(&seed);
            const uint64_t first = run_or_fail(ops, n, policies[p], folder, part % 2);
            /* Same operations, same plans, same bits. */
            if (part % 4 == 0) assert_true(run_or_fail(ops, n, policies[p], folder, part % 2) == first);
            from += n;
        }
    free(ops);
    base_fs_remove(folder, NULL);
}

#ifdef FOLDED
static void test_property__sessions_without_an_end_agree_with_it(void **state)
{
    static const char *const policies[] = {"snapkv"};
    (void)state;
    run_policies(policies, 1, steps(), test_seed("folded", 20266));
}

static void test_property__visits_and_the_memory_of_requests_agree_with_it(void **state)
{
    static const char *const policies[] = {"kvist", "intentkv", "h2o"};
    (void)state;
    run_policies(policies, 3, steps() / 20, test_seed("folded", 20267));
}

#else
static void test_property__operations_agree_with_a_plain_model(void **state)
{
    static const char *const policies[] = {"kvist"};
    (void)state;
    run_policies(policies, 1, steps(), test_seed("property", 20262));
}

static void test_property__every_policy_agrees_with_it(void **state)
{
    static const char *const policies[] = {
        "snapkv", "streaming-llm", "snapkv-seed", "intentkv", "tova", "knorm", "random", "full", "codecomp"};
    (void)state;
    run_policies(policies, 9, steps() / 10, test_seed("policies", 20263));
}

static void test_property__pruned_prefill_agrees_with_it(void **state)
{
    static const char *const policies[] = {"kvist prune=heads bulk=60 keep=.2", "structkv pivot=1 bulk=60",
        "kvist prune=centrality bulk=30 stored=.3", "fastkv bulk=60", "gemfilter-like bulk=60",
        "snapkv prune=heads bulk=1"};
    (void)state;
    run_policies(
        policies, sizeof policies / sizeof *policies, steps() / 5, test_seed("pruned prefill", 20265));
}

static void test_property__policies_that_add_attention_up_agree_with_it(void **state)
{
    static const char *const policies[] = {"h2o", "scissorhands"};
    (void)state;
    run_policies(policies, 2, steps() / 40, test_seed("heavy", 20264));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef FOLDED
        cmocka_unit_test(test_property__sessions_without_an_end_agree_with_it),
        cmocka_unit_test(test_property__visits_and_the_memory_of_requests_agree_with_it),
#else
        cmocka_unit_test(test_property__operations_agree_with_a_plain_model),
        cmocka_unit_test(test_property__every_policy_agrees_with_it),
        cmocka_unit_test(test_property__pruned_prefill_agrees_with_it),
        cmocka_unit_test(test_property__policies_that_add_attention_up_agree_with_it),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
