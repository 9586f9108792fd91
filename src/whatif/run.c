/*
 * Both sides go through the schedule step by step, the original first, so that only a handful of rows of logits are
 * held at a time. A turn's events are committed together, behind the snapshots of both sides' rows: whoever comes
 * back after an interruption finds whole turns, and rows that are as far.
 */
#include "whatif/whatif.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "tools/edit/change.h"
#include "whatif/distance.h"
#include "whatif/summary.h"

enum { ORIGINAL, CHANGED, N_SIDES };
static const char *const side_words[N_SIDES] = {"original", "changed"};

/* What the answers of a turn came to. */
typedef struct turn_sums {
    uint32_t n, n_said, n_differ;
    uint32_t n_bytes[N_SIDES]; /* of text, what was read */
    double kl, most;
    uint32_t index; /* of the first that differs */
    int32_t best[N_SIDES];
    double nats;
} turn_sums;

typedef struct run {
    agent_log *log;
    const whatif_schedule *s;
    const whatif_options *o;
    char *id, *dir;
    whatif_arm arms[N_SIDES];
    char *row_files[N_SIDES];
    float *logits[N_SIDES];
    turn_sums turn;
    uint32_t part, kept; /* turns that are over; turns that were kept from before */
    uint32_t done;       /* tokens of the steps before `now` */
    const whatif_step *now;
    uint64_t seq, at;  /* of the child's newest event; the what_if_at that was told last */
    whatif_free *free; /* the changed side, where it answers by itself; NULL: it does not yet */
    size_t turn_step;  /* where the turn began */
    size_t apart_step; /* of this turn: the answer in which it says something else; SIZE_MAX: in none */
    whatif_summary summary;
    base_err log_err;
    int log_rc;
} run;

/* The two sides have one vocabulary: what they expect at a token can be set beside each other. */
static bool is_side_by_side(const run *r)
{
    return !r->o->changed.own;
}

static const whatif_step *step_of(const run *r, int side, const whatif_step *step)
{
    const whatif_schedule *own = side == CHANGED ? r->o->changed.own : NULL;
    return own ? own->steps + (step - r->s->steps) : step;
}

static bool is_absent(const run *r, int side)
{
    return side == ORIGINAL && r->o->original.is_absent;
}

/* --- events --------------------------------------------------------------------------------------------- */

static void emit(run *r, agent_event *e)
{
    e->seq = ++r->seq;
    if (!r->log_rc) r->log_rc = agent_log_add(r->log, r->id, e, &r->log_err);
    if (r->o->event) r->o->event(r->o->user, e);
}

static void on_changed_plan(void *user, uint64_t seq, agent_event *e)
{
    run *r = user;
    if (r->part < r->kept) return; /* it is in the log */
    if (r->free) {                 /* behind its own events */
        emit(r, e);
        return;
    }
    if (seq != r->at) emit(r, &(agent_event){.type = AGENT_EVENT_what_if_at, .what_if_at = {(int64_t)seq}});
    r->at = seq;
    emit(r, e);
}

/* A long text is most of a turn's time: how far its sides are, one behind the other. */
static void on_computed(void *user, const whatif_arm *a, uint32_t done, uint32_t total)
{
    const run *r = user;
    if (!r->now || r->now->kind != WHATIF_TEXT || !r->o->progress) return;
    const uint32_t first = is_absent(r, ORIGINAL) ? CHANGED : ORIGINAL,
                   before = (uint32_t)(a - r->arms) - first;
    const uint64_t n = r->now->text.n, of = (uint64_t)total * (N_SIDES - first);
    r->o->progress(r->o->user, r->now->turn, r->done + (uint32_t)(n * (done + (uint64_t)before * total) / of),
        r->s->n_tokens);
}

static void on_free_event(void *user, agent_event *e)
{
    run *r = user;
    if (r->part >= r->kept) emit(r, e);
}

static char *text_of(const run *r, int32_t id)
{
    size_t n = 0;
    const whatif_engine *e = r->arms[CHANGED].engine;
    const char *piece = e->piece(e->user, id, &n);
    return base_xstrndup(piece ? piece : "", piece ? n : 0);
}

/* One side of a turn; its text lives in `why`. */
static agent_side_row sum_up(run *r, int side, base_buf *why)
{
    whatif_arm *a = &r->arms[side];
    const whatif_sums *sums = &a->sums;
    kv_stats s;
    kv_structure structure;
    kv_session_get_stats(a->session, &s);
    kv_session_structure(a->session, false, &structure);
    const uint32_t evicted = agent_moved_put(&sums->moved, AGENT_EVICTED, s.n_lanes, why),
                   promoted = agent_moved_put(&sums->moved, AGENT_PROMOTED, s.n_lanes, why);
    const double visiting = (double)sums->visiting * s.n_lanes;
    return (agent_side_row){.side = side_words[side],
        .evicted = evicted,
        .promoted = promoted,
        .visited = visiting > 0 ? (double)sums->visited / visiting : 0,
        .active = s.active,
        .host = s.host,
        .budget = s.budget,
        .structure = structure.n_tokens ? structure.share : 0,
        .nll = r->turn.n_bytes[side] ? sums->nll / r->turn.n_bytes[side] : 0,
        .ms = (double)sums->ns / 1e6,
        .why = why->len ? why->data : NULL};
}

static void put_check(const run *r, base_buf *out)
{
    const whatif_sums *original = &r->arms[ORIGINAL].sums;
    if (original->n_other)
        base_buf_printf(out, "%u of what the original decides is not as it was recorded", original->n_other);
    for (int side = 0; side < N_SIDES; side++)
        if (r->arms[side].sums.notes.len)
            base_buf_printf(
                out, "%s%s: %s", out->len ? "; " : "", side_words[side], r->arms[side].sums.notes.data);
}

/* The changed side's turn as a session's ledger tells it. */
static void emit_ledger(run *r, uint32_t turn, const agent_side_row *side)
{
    kv_stats s;
    kv_session_get_stats(r->arms[CHANGED].session, &s);
    agent_event e = agent_ledger_of(&s);
    const whatif_sums *sums = &r->arms[CHANGED].sums;
    e.ledger.turn = turn;
    e.ledger.reused = sums->n_before < s.n_tokens ? sums->n_before : s.n_tokens;
    e.ledger.new = s.n_tokens - e.ledger.reused;
    e.ledger.generated = sums->n_written;
    e.ledger.evicted = side->evicted;
    e.ledger.promoted = side->promoted;
    e.ledger.why = side->why;
    e.ledger.structure = side->structure;
    emit(r, &e);
}

static void emit_turn(run *r, uint32_t turn)
{
    base_buf why[N_SIDES] = {{0}}, check = {0};
    agent_side_row sides[N_SIDES];
    const turn_sums *t = &r->turn;
    char *best[N_SIDES];
    const int first = is_absent(r, ORIGINAL) ? CHANGED : ORIGINAL;
    for (int side = 0; side < N_SIDES; side++) {
        if (!is_absent(r, side)) sides[side] = sum_up(r, side, &why[side]);
        best[side] = t->n_differ ? text_of(r, t->best[side]) : NULL;
    }
    put_check(r, &check);
    agent_event e = {.type = AGENT_EVENT_what_if_turn,
        .what_if_turn = {.turn = turn,
            .sides = {sides + first, (size_t)(N_SIDES - first)},
            .tokens = t->n,
            .said = t->n_said,
            .kl = t->n ? t->kl / t->n : 0,
            .most = t->most,
            .differ = t->n_differ,
            .index = t->n_differ ? (int64_t)t->index : -1,
            .was = best[ORIGINAL],
            .instead = best[CHANGED],
            .nats = t->n_differ ? t->nats : 0,
            .check = check.data,
            .bytes = is_side_by_side(r) ? 0 : t->n_bytes[CHANGED]}};
    emit_ledger(r, turn, &sides[CHANGED]);
    whatif_summary_take(&r->summary, &e);
    emit(r, &e);
    for (int side = 0; side < N_SIDES; side++) {
        base_buf_free(&why[side]);
        free(best[side]);
    }
    base_buf_free(&check);
}

/* How the turn was answered, beside how it was recorded. */
static void emit_answer(run *r, size_t to, uint32_t turn)
{
    const whatif_engine *e = r->arms[ORIGINAL].engine;
    const base_buf *instead = whatif_free_written(r->free);
    base_buf was = {0}, diff = {0}, name = {0};
    for (size_t i = r->turn_step; i < to; i++) whatif_put_step(e, &r->s->steps[i], &was);
    base_buf_printf(&name, "turn %u", turn);
    tool__diff(&diff, name.data, &was, instead, NULL, NULL);
    agent_event answer = {.type = AGENT_EVENT_what_if_answer,
        .what_if_answer = {.turn = turn,
            .was = was.data ? was.data : "",
            .instead = instead->data ? instead->data : "",
            .diff = diff.data,
            .calls = whatif_free_calls(r->free),
            .stopped = whatif_free_stopped(r->free)}};
    whatif_summary_take(&r->summary, &answer);
    emit(r, &answer);
    base_buf_free(&was);
    base_buf_free(&diff);
    base_buf_free(&name);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static void compare_token(run *r, uint32_t index, int32_t id, const float *original, const float *changed)
{
    turn_sums *t = &r->turn;
    const whatif_engine *e = r->arms[ORIGINAL].engine;
    const whatif_distance d = whatif_measure(original, changed, e->n_vocab, id);
    size_t n_bytes = 0;
    if (!e->piece(e->user, id, &n_bytes)) n_bytes = 0;
    t->n++;
    for (int side = 0; side < N_SIDES; side++) t->n_bytes[side] += (uint32_t)n_bytes;
    t->n_said += d.best[ORIGINAL] == id;
    t->kl += d.kl;
    if (d.kl > t->most) t->most = d.kl;
    for (int side = 0; side < N_SIDES; side++) r->arms[side].sums.nll += d.nll[side];
    if (d.best[ORIGINAL] == d.best[CHANGED]) return;
    if (!t->n_differ) {
        t->index = index;
        t->nats = d.nats;
        memcpy(t->best, d.best, sizeof t->best);
    }
    t->n_differ++;
}

/* What one side expects of the answer's text. The token that ends an answer is no text. */
static int read_apart(run *r, int side, const whatif_step *step, base_err *err)
{
    const whatif_engine *e = r->arms[side].engine;
    turn_sums *t = &r->turn;
    int rc = 0;
    for (uint32_t at = 0; at < step->text.n && !rc; at += WHATIF_FORCED) {
        const uint32_t left = step->text.n - at, n = left < WHATIF_FORCED ? left : WHATIF_FORCED;
        rc = whatif_arm_force(&r->arms[side], step, at, n, r->logits[side], err);
        for (uint32_t i = 0; i < n && !rc; i++) {
            const int32_t id = step->text.ids[at + i];
            int32_t best;
            size_t n_bytes = 0;
            const double nll = whatif_nll(r->logits[side] + (size_t)i * e->n_vocab, e->n_vocab, id, &best);
            if (e->is_end(e->user, id) || !e->piece(e->user, id, &n_bytes)) continue;
            r->arms[side].sums.nll += nll;
            t->n_bytes[side] += (uint32_t)n_bytes;
            t->n += side == CHANGED;
            t->n_said += side == CHANGED && best == id;
        }
    }
    return rc;
}

static int read_answers_apart(run *r, const whatif_step *step, base_err *err)
{
    int rc = 0;
    for (int side = 0; side < N_SIDES && !rc; side++)
        if (!is_absent(r, side)) rc = read_apart(r, side, step_of(r, side, step), err);
    return rc;
}

static int do_on_sides(run *r, const whatif_step *step, base_err *err)
{
    int rc = 0;
    for (int side = 0; side < N_SIDES && !rc; side++)
        if (!is_absent(r, side)) rc = whatif_arm_do(&r->arms[side], step_of(r, side, step), err);
    return rc;
}

static int read_answer(run *r, const whatif_step *step, base_err *err)
{
    const size_t n_vocab = r->arms[ORIGINAL].engine->n_vocab;
    int rc = 0;
    for (uint32_t at = 0; at < step->text.n && !rc; at += WHATIF_FORCED) {
        const uint32_t left = step->text.n - at, n = left < WHATIF_FORCED ? left : WHATIF_FORCED;
        for (int side = 0; side < N_SIDES && !rc; side++)
            rc = whatif_arm_force(&r->arms[side], step, at, n, r->logits[side], err);
        for (uint32_t i = 0; i < n && !rc; i++)
            compare_token(r, step->text.from + at + i, step->text.ids[at + i],
                r->logits[ORIGINAL] + i * n_vocab, r->logits[CHANGED] + i * n_vocab);
    }
    return rc;
}

/* Side by side, token by token, until the changed side says something else; the original reads to the end. */
static int read_until_apart(run *r, const whatif_step *step, base_err *err)
{
    int rc = 0;
    for (uint32_t at = 0; at < step->text.n && !rc; at++) {
        const float *changed = NULL;
        bool agrees = false;
        rc = whatif_arm_force(&r->arms[ORIGINAL], step, at, 1, r->logits[ORIGINAL], err);
        if (rc || r->apart_step != SIZE_MAX) continue;
        rc = whatif_free_agrees(r->free, step, at, r->logits[ORIGINAL], &changed, &agrees, err);
        if (rc) break;
        compare_token(r, step->text.from + at, step->text.ids[at], r->logits[ORIGINAL], changed);
        if (agrees)
            rc = whatif_free_follow(r->free, step, at, err);
        else
            r->apart_step = (size_t)(step - r->s->steps);
    }
    return rc;
}

static void begin_free(run *r)
{
    const whatif_free_options o = {.arm = &r->arms[CHANGED],
        .schedule = r->s,
        .read = r->o->read,
        .read_user = r->o->read_user,
        .emit = on_free_event,
        .user = r};
    r->free = whatif_free_new(&o);
    r->apart_step = SIZE_MAX;
}

static int save(run *r, base_err *err)
{
    int rc = 0;
    if (r->free) return 0; /* which of its tokens are the record's is not in a snapshot */
    for (int side = 0; side < N_SIDES && !rc; side++)
        rc = r->row_files[side] && !is_absent(r, side) ? kv_session_save(r->arms[side].session, err) : 0;
    return rc;
}

static int end_turn(run *r, const whatif_step *step, base_err *err)
{
    base_err why = {0};
    int rc = 0;
    for (int side = 0; side < N_SIDES; side++)
        if (!is_absent(r, side)) whatif_arm_end_turn(&r->arms[side]);
    if (r->part >= r->kept) {
        emit_turn(r, step->turn);
        if (r->free) {
            emit_answer(r, (size_t)(step - r->s->steps), step->turn);
            emit(r,
                &(agent_event){.type = AGENT_EVENT_turn_end,
                    .turn_end = {.turn = step->turn, .status = "closed", .time_ms = base_clock_wall_ms()}});
        }
        /* Without a snapshot an interruption costs time, no result. */
        (void)save(r, &why);
        rc = r->log_rc;
        if (rc && err) *err = r->log_err;
        if (!rc) rc = agent_log_commit(r->log, err);
    }
    for (int side = 0; side < N_SIDES; side++) whatif_arm_forget_sums(&r->arms[side]);
    r->turn = (turn_sums){.n = 0};
    r->part++;
    return rc;
}

/* The record goes on with what the changed side did not say: it writes the rest of its turn alone. */
static int end_free_turn(run *r, base_err *err)
{
    const whatif_step *apart = r->s->steps + r->apart_step;
    return r->apart_step == SIZE_MAX ? 0 : whatif_free_go_on(r->free, apart, err);
}

static int do_free_step(run *r, const whatif_step *step, base_err *err)
{
    int rc = 0;
    const bool is_alone = r->apart_step != SIZE_MAX || whatif_free_stopped(r->free);
    switch (step->kind) {
    case WHATIF_TURN:
        r->apart_step = SIZE_MAX;
        r->turn_step = (size_t)(step - r->s->steps);
        rc = whatif_arm_do(&r->arms[ORIGINAL], step, err);
        if (!rc) rc = whatif_free_turn(r->free, step, err);
        if (!rc && whatif_free_stopped(r->free)) emit_answer(r, r->turn_step, step->turn);
        return rc;
    case WHATIF_ANSWER: return read_until_apart(r, step, err);
    case WHATIF_END:
        rc = end_free_turn(r, err);
        whatif_free_end(r->free, step);
        r->apart_step = SIZE_MAX;
        return rc ? rc : end_turn(r, step, err);
    default: break;
    }
    rc = whatif_arm_do(&r->arms[ORIGINAL], step, err);
    return rc || is_alone ? rc : whatif_free_do(r->free, step, err);
}

static int do_step(run *r, const whatif_step *step, base_err *err)
{
    if (!r->free && r->o->free_from && step->kind == WHATIF_TURN && step->turn >= r->o->free_from)
        begin_free(r);
    if (r->free) return do_free_step(r, step, err);
    if (step->kind == WHATIF_END) return end_turn(r, step, err);
    if (step->kind == WHATIF_ANSWER)
        return is_side_by_side(r) ? read_answer(r, step, err) : read_answers_apart(r, step, err);
    return do_on_sides(r, step, err);
}

static int do_steps(run *r, size_t from, base_err *err)
{
    const whatif_schedule *s = r->s;
    int rc = 0;
    for (size_t i = from; i < s->n_steps && !rc; i++) {
        if (r->o->cancel && atomic_load(r->o->cancel)) rc = base_fail(err, BASE_E_CANCELLED, "interrupted");
        r->now = &s->steps[i];
        if (!rc) rc = do_step(r, r->now, err);
        r->done += s->steps[i].text.n;
        if (!rc && r->o->progress) r->o->progress(r->o->user, s->steps[i].turn, r->done, s->n_tokens);
        const bool is_border = s->steps[i].kind == WHATIF_TURN || s->steps[i].kind == WHATIF_END;
        if (r->free && whatif_free_stopped(r->free) && is_border) break;
    }
    return rc;
}

/* --- sides ---------------------------------------------------------------------------------------------- */

static void close_sides(run *r)
{
    for (int side = 0; side < N_SIDES; side++) whatif_arm_close(&r->arms[side]);
}

static int open_sides(run *r, bool resume, base_err *err)
{
    const whatif_side *const sides[N_SIDES] = {&r->o->original, &r->o->changed};
    int rc = 0;
    for (int side = 0; side < N_SIDES && !rc; side++) {
        if (is_absent(r, side)) continue;
        kv_options kv = sides[side]->kv;
        kv.row_file = r->row_files[side];
        r->arms[side] = (whatif_arm){.engine = &sides[side]->engine,
            .record = side == ORIGINAL ? r->s : NULL,
            .keeps_budget = sides[side]->keeps_budget,
            .cancel = r->o->cancel,
            .tell = side == CHANGED && is_side_by_side(r) ? on_changed_plan : NULL,
            .computed = on_computed,
            .user = r};
        rc = whatif_arm_open(&r->arms[side], &kv, resume, err);
    }
    return rc;
}

/*
 * The step behind the turns of which rows are kept, and each side's length there. Of free turns none are: these are
 * computed again, and come out the same.
 */
static size_t find_kept(const run *r, uint32_t n[N_SIDES], uint32_t *ret_parts)
{
    uint32_t parts = 0;
    size_t i = 0;
    for (; i < r->s->n_steps && parts < r->kept; i++) {
        const whatif_step *t = &r->s->steps[i];
        if (t->kind == WHATIF_TURN && r->o->free_from && t->turn >= r->o->free_from) break;
        for (int side = 0; side < N_SIDES; side++) {
            const whatif_step *own = step_of(r, side, t);
            n[side] = t->kind == WHATIF_REWIND ? own->from : n[side] + own->text.n;
        }
        parts += t->kind == WHATIF_END;
    }
    *ret_parts = parts;
    return i;
}

/* From the snapshots of both sides, where they are those of the kept turns; false: they do not serve. */
static bool take_up(run *r, size_t *ret_from)
{
    base_err why = {0};
    uint32_t n[N_SIDES] = {0}, have, parts;
    const size_t from = find_kept(r, n, &parts);
    bool serves = parts && r->row_files[ORIGINAL] && !open_sides(r, true, &why);
    for (int side = 0; side < N_SIDES && serves; side++) {
        if (is_absent(r, side)) continue;
        kv_session_ids(r->arms[side].session, &have);
        serves = have == n[side];
    }
    if (!serves) {
        close_sides(r);
        return false;
    }
    for (int side = 0; side < N_SIDES; side++) whatif_arm_skip(&r->arms[side], parts);
    r->part = parts;
    for (size_t i = 0; i < from; i++) r->done += r->s->steps[i].text.n;
    *ret_from = from;
    return true;
}

/* --- the child ------------------------------------------------------------------------------------------ */

typedef struct child {
    run *r;
    bool is_same, is_over;
    uint32_t turns;
    uint64_t seq;
    bool hands_on; /* second reading: its events are results */
} child;

static bool is_equal(const char *a, const char *b)
{
    return !strcmp(a ? a : "", b ? b : "");
}

static bool read_child(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    child *c = user;
    agent_event e;
    agent_event_doc *doc = NULL;
    if (agent_event_read(json, n, &e, &doc, NULL)) return false;
    e.seq = c->seq = seq;
    e.blob = blob;
    e.blob_n = blob_n;
    if (e.type == AGENT_EVENT_what_if)
        c->is_same = is_equal(e.what_if.settings, c->r->o->settings) &&
                     e.what_if.turns == (int64_t)c->r->s->n_turns &&
                     is_equal(e.what_if.version, KVIST_VERSION) &&
                     is_equal(e.what_if.original, c->r->o->original.name);
    c->turns += e.type == AGENT_EVENT_what_if_turn;
    c->is_over = c->is_over || e.type == AGENT_EVENT_what_if_end;
    if (c->hands_on && (e.type == AGENT_EVENT_what_if_turn || e.type == AGENT_EVENT_what_if_answer))
        whatif_summary_take(&c->r->summary, &e);
    if (c->hands_on && e.type == AGENT_EVENT_what_if_at) c->r->at = (uint64_t)e.what_if_at.seq;
    if (c->hands_on && c->r->o->event) c->r->o->event(c->r->o->user, &e);
    agent_event_doc_free(doc);
    return c->is_same;
}

typedef struct children {
    run *r;
    char **ids;
    size_t n, cap;
} children;

static void keep_child(void *user, const agent_log_row *row)
{
    children *c = user;
    if (!row->is_what_if || strcmp(row->parent, c->r->s->id) != 0) return;
    base_grow(&c->ids, &c->cap, c->n + 1, sizeof *c->ids);
    c->ids[c->n++] = base_xstrdup(row->id);
}

/* The child that asks the same, if there is one: its id, what it has. */
static int find_child(run *r, child *ret, base_err *err)
{
    children all = {.r = r};
    int rc = agent_log_list(r->log, NULL, keep_child, &all, err);
    for (size_t i = 0; i < all.n; i++) {
        child c = {.r = r};
        if (!rc && !r->id) rc = agent_log_events(r->log, all.ids[i], read_child, &c, err);
        if (!rc && !r->id && c.is_same) {
            r->id = base_xstrdup(all.ids[i]);
            *ret = c;
        }
        free(all.ids[i]);
    }
    free(all.ids);
    return rc;
}

static int begin_child(run *r, base_err *err)
{
    char id[32];
    base_buf title = {0};
    agent_log_new_id(id);
    r->id = base_xstrdup(id);
    int rc = agent_log_create(r->log, id, r->s->id, r->s->root, r->s->model, err);
    if (rc) return rc;
    base_buf_printf(&title, "what if: %s", r->o->changed.name);
    emit(r, &(agent_event){.type = AGENT_EVENT_what_if,
                .what_if = {.session = id,
                    .parent = r->s->id,
                    .original = r->o->original.name,
                    .changed = r->o->changed.name,
                    .settings = r->o->settings,
                    .turns = r->s->n_turns,
                    .missing = r->o->missing,
                    .time_ms = base_clock_wall_ms(),
                    .version = KVIST_VERSION,
                    .from = r->o->free_from,
                    .apart = !is_side_by_side(r)}});
    emit(r, &(agent_event){.type = AGENT_EVENT_title, .title = {title.data}});
    base_buf_free(&title);
    if (r->log_rc && err) *err = r->log_err;
    return r->log_rc ? r->log_rc : agent_log_commit(r->log, err);
}

/* Goes on with the child that is there, or begins one. *ret_over: it has everything. */
static int open_child(run *r, bool *ret_over, base_err *err)
{
    child c = {.r = r};
    int rc = find_child(r, &c, err);
    if (!rc && r->id && !c.is_over) rc = agent_log_lock(r->log, r->id, err);
    if (!rc && r->id) {
        r->kept = c.turns;
        r->seq = c.seq;
        c = (child){.r = r, .hands_on = true, .is_over = c.is_over};
        rc = agent_log_events(r->log, r->id, read_child, &c, err);
    } else if (!rc) {
        rc = begin_child(r, err);
    }
    *ret_over = c.is_over;
    return rc;
}

static void name_row_files(run *r)
{
    r->dir = agent_log_session_dir(r->log, r->id);
    for (int side = 0; side < N_SIDES; side++) {
        base_buf path = {0};
        base_buf_printf(&path, "%s/%s", r->dir, side_words[side]);
        r->row_files[side] = base_buf_take(&path);
    }
}

/* Nothing is computed any more: rows served to go on only. */
static void drop_rows(const run *r)
{
    static const char *const endings[] = {"", ".manifest", ".states", ".digest"};
    for (int side = 0; side < N_SIDES; side++)
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
            base_buf path = {0};
            base_buf_printf(&path, "%s%s", r->row_files[side], endings[i]);
            base_fs_remove(path.data, NULL);
            base_buf_free(&path);
        }
}

static int finish(run *r, base_err *err)
{
    base_buf text = {0};
    whatif_summary_put(&r->summary, r->o->phrase, &text);
    emit(r, &(agent_event){.type = AGENT_EVENT_what_if_end,
                .what_if_end = {.status = "closed", .text = text.data, .turns = r->s->n_turns}});
    base_buf_free(&text);
    if (r->log_rc && err) *err = r->log_err;
    return r->log_rc ? r->log_rc : agent_log_commit(r->log, err);
}

static int compute(run *r, base_err *err)
{
    size_t from = 0;
    int rc = 0;
    name_row_files(r);
    for (int side = 0; side < N_SIDES; side++) {
        const whatif_engine *e = side == ORIGINAL ? &r->o->original.engine : &r->o->changed.engine;
        if (is_absent(r, side)) continue;
        r->logits[side] = malloc((size_t)WHATIF_FORCED * e->n_vocab * sizeof(float));
        if (!r->logits[side]) return base_fail(err, BASE_E_NOMEM, "no memory for %u logits", e->n_vocab);
    }
    if (!take_up(r, &from)) {
        drop_rows(r);
        rc = open_sides(r, false, err);
    }
    if (!rc) rc = do_steps(r, from, err);
    whatif_free_close(r->free);
    close_sides(r);
    if (!rc) rc = finish(r, err);
    if (!rc) drop_rows(r);
    return rc;
}

/* The cache refuses the first part of the prompt that does not fit; here the budget that is named has room for all. */
static int check_budget(const run *r, base_err *err)
{
    const uint32_t rows = r->o->changed.kv.budget;
    uint32_t n = 0;
    for (size_t i = 0; i < r->s->n_steps && r->s->steps[i].kind != WHATIF_TURN; i++)
        if (r->s->steps[i].kind == WHATIF_TEXT) n += step_of(r, CHANGED, &r->s->steps[i])->text.n;
    return rows ? kv_session_check_fixed(n, rows, err) : 0;
}

int whatif_run(
    agent_log *l, const whatif_schedule *s, const whatif_options *o, bool *was_known, base_err *err)
{
    run r = {.log = l, .s = s, .o = o};
    bool is_over = false;
    int rc = check_budget(&r, err);
    if (!rc) rc = open_child(&r, &is_over, err);
    if (was_known) *was_known = !rc && is_over;
    if (!rc && !is_over) rc = compute(&r, err);
    /* Of what has no turn nothing is kept. */
    if (rc && r.id && !is_over && r.part == 0 && !r.kept) agent_log_delete(l, r.id, NULL);
    for (int side = 0; side < N_SIDES; side++) {
        free(r.row_files[side]);
        free(r.logits[side]);
    }
    whatif_summary_free(&r.summary);
    free(r.id);
    free(r.dir);
    return rc;
}
