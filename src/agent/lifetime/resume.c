/*
 * Going on with a logged session. The engine's snapshot, when it serves, holds everything and nothing is
 * computed. Else, or for what the log has beyond the snapshot, the logged schedule is executed again: the
 * logged ids in order, the logged plans at the lengths they were made for, so that the rows are those that
 * the session had (docs/kv.md, What always holds).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/lifetime/lifetime.h"
#include "agent/log/log.h"
#include "agent/log/logged.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/ledger.h"
#include "agent/session/tell.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/numbers.h"

/* Logged tokens of one origin, and how far the engine has them. */
typedef struct logged_run {
    agent_logged_run text;
    uint32_t computed;
    kv_plan **plans; /* made since its first token, in order, and not applied yet */
    size_t n_plans, cap_plans;
} logged_run;

typedef struct history {
    agent *a;
    const agent_options *options;
    logged_run *runs;
    size_t n_runs, cap_runs;
    uint32_t n; /* tokens logged so far */
    uint32_t snapshot_n;
    int64_t budget, until; /* rows that the session was held to last, 0: all; -1: the log does not say */
    uint64_t snapshot_seq, last_seq;
    char *model_hash;
    char *root;          /* of the tree that it worked in */
    agent_mode mode;     /* the newest that the log tells */
    agent_event *result; /* the last tool result, until its append */
    bool turn_open;      /* begun, and its end is not logged: its process died */
    bool executing;      /* second pass */
    bool behind;         /* second pass, and behind what the engine has */
    uint64_t from_seq;   /* second pass: what lies before is in the engine already */
    int rc;
    base_err *err;
} history;

/* --- collecting ----------------------------------------------------------------------------------------- */

static void add_id(history *h, logged_run *r, int32_t id)
{
    agent_logged_add_id(&r->text, id);
    h->n++;
}

static void free_run(logged_run *r)
{
    for (size_t i = 0; i < r->n_plans; i++) kv_plan_free(r->plans[i]);
    free(r->plans);
    agent_logged_free(&r->text);
}

static void free_runs(history *h)
{
    for (size_t i = 0; i < h->n_runs; i++) free_run(&h->runs[i]);
    h->n_runs = 0;
}

static int apply(agent *a, kv_plan *p, base_err *err)
{
    kv_session *session;
    kv_stats s;
    if (!a->engine->session) return agent__apply_aside(a, p, err);
    int rc = agent__get_session(a, &session, err);
    if (rc) return rc;
    a->engine->ops->stats(a->engine, &s);
    p->epoch = s.epoch; /* the log knows when it was made by its length */
    return kv_session_apply(session, p, err);
}

/* Applies what was decided up to the sequence's present end, n tokens. */
static int decide(void *user, uint32_t n, base_err *err)
{
    history *h = user;
    logged_run *r = &h->runs[h->n_runs - 1];
    size_t done = 0;
    for (; done < r->n_plans && r->plans[done]->n_tokens <= n; done++) {
        base_err why = {0};
        if (apply(h->a, r->plans[done], &why))
            agent__notice(h->a, "a logged plan does not fit any more: %s", why.msg);
        kv_plan_free(r->plans[done]);
    }
    r->n_plans -= done;
    if (done) memmove(r->plans, r->plans + done, r->n_plans * sizeof(kv_plan *));
    return 0;
}

/* Where plans of the run were made, inside it. */
static uint32_t *find_stops(const logged_run *r, uint32_t *ret_n)
{
    uint32_t *stops = base_xcalloc(r->n_plans + 1, sizeof *stops), n = 0;
    for (size_t i = 0; i < r->n_plans; i++) {
        const uint32_t at = r->plans[i]->n_tokens;
        if (at <= r->text.from + r->computed || at > r->text.from + r->text.n) continue;
        if (!n || stops[n - 1] < at - r->text.from) stops[n++] = at - r->text.from;
    }
    *ret_n = n;
    return stops;
}

/* An answer's tokens came one by one: the same rows come of them in batches from plan to plan. */
static int compute_answer(history *h, logged_run *r, const uint32_t *stops, uint32_t n_stops)
{
    const kv_segment segment = {.origin = r->text.origin, .turn = r->text.turn};
    int rc = 0;
    for (uint32_t i = 0; i <= n_stops && !rc; i++) {
        const uint32_t to = i < n_stops ? stops[i] : r->text.n;
        if (to > r->computed)
            rc = agent__append_logged(h->a, &segment, r->text.ids + r->computed, to - r->computed, h->err);
        r->computed = to;
        if (!rc) rc = decide(h, r->text.from + to, h->err);
    }
    return rc;
}

static int compute_segment(history *h, logged_run *r, const uint32_t *stops, uint32_t n_stops)
{
    const kv_logged logged = {
        .stops = stops, .n_stops = n_stops, .of = r->text.of, .decide = decide, .user = h};
    const kv_segment segment = {.origin = r->text.origin,
        .turn = r->text.turn,
        .lanes = r->text.lanes,
        .bulk = r->text.bulk,
        .whole = r->text.whole,
        .spans = r->text.spans,
        .n_spans = (uint32_t)r->text.n_spans,
        .queries = r->text.n_queries ? r->text.queries : NULL,
        .n_queries = (uint32_t)r->text.n_queries,
        .logged = &logged};
    r->computed = r->text.n;
    return agent__append_logged(h->a, &segment, r->text.ids, r->text.n, h->err);
}

/* Gives the engine what is logged and not computed: that is the newest run, everything before it is there. */
static void compute(history *h)
{
    logged_run *r = h->n_runs ? &h->runs[h->n_runs - 1] : NULL;
    if (!h->behind || h->rc || !r) return;
    uint32_t n_stops;
    uint32_t *stops = find_stops(r, &n_stops);
    h->rc = decide(h, r->text.from + r->computed, h->err);
    if (!h->rc && r->computed < r->text.n)
        h->rc = kv_origin_is_written(r->text.origin) ? compute_answer(h, r, stops, n_stops)
                                                     : compute_segment(h, r, stops, n_stops);
    if (!h->rc) h->rc = decide(h, r->text.from + r->text.n, h->err);
    free(stops);
}

/* Later passes go by what was done to which tokens and why (a repaired row stays for its turn). */
static void take_plan(history *h, const agent_event *e)
{
    kv_plan *p = NULL;
    logged_run *r = h->n_runs ? &h->runs[h->n_runs - 1] : NULL;
    if (!r || !e->blob || kv_plan_unpack(e->blob, e->blob_n, &p, NULL)) return;
    if (p->cause == KV_CAUSE_ANSWER) { /* now its tokens are visited when they are computed */
        kv_plan_free(p);
        return;
    }
    if (!p->n_runs) agent_logged_read_runs(p, &e->plan.runs);
    base_grow(&r->plans, &r->cap_plans, r->n_plans + 1, sizeof *r->plans);
    r->plans[r->n_plans++] = p;
}

static logged_run *add_run(history *h, kv_origin origin, uint32_t turn)
{
    compute(h);
    base_grow(&h->runs, &h->cap_runs, h->n_runs + 1, sizeof *h->runs);
    h->runs[h->n_runs] = (logged_run){.text = {.origin = origin, .turn = turn, .from = h->n}};
    return &h->runs[h->n_runs++];
}

static void truncate_to(history *h, uint32_t n)
{
    if (h->behind) {
        compute(h);
        if (!h->rc && n < agent__n_tokens(h->a)) h->rc = h->a->engine->ops->truncate(h->a->engine, n, h->err);
    }
    while (h->n_runs && h->runs[h->n_runs - 1].text.from >= n) {
        h->n_runs--;
        free_run(&h->runs[h->n_runs]);
    }
    if (h->n_runs) {
        logged_run *last = &h->runs[h->n_runs - 1];
        if (last->text.from + last->text.n > n) last->text.n = n - last->text.from;
        if (last->computed > last->text.n) last->computed = last->text.n;
    }
    h->n = n;
}

/* --- what the agent itself remembers -------------------------------------------------------------------- */

static void restore_sources(agent *a, size_t index, const agent_shown_list *segments)
{
    for (size_t i = 0; i < segments->n; i++) {
        const agent_shown_row *s = &segments->rows[i];
        if (!s->path) continue;
        agent_text t = {.origin = KV_ORIGIN_TOOL,
            .path = s->path,
            .version = s->version ? s->version : "",
            .line = (uint32_t)s->line,
            .line_end = (uint32_t)s->line};
        agent__add_segment(a, &t, a->transcript.segments[index].from, a->transcript.segments[index].to);
        tool_workspace_mark_shown(a->workspace, t.path, t.version);
    }
}

static void restore_segment(history *h, const agent_event *e, uint64_t seq)
{
    agent *a = h->a;
    agent_text t = {.origin = agent_logged_origin(e->append.origin),
        .label = e->append.label,
        .path = e->append.path,
        .version = e->append.version,
        .line = (uint32_t)e->append.line,
        .line_end = (uint32_t)e->append.line_end};
    a->telling.seq = seq;
    size_t index =
        agent__add_segment(a, &t, (uint32_t)e->append.from, (uint32_t)(e->append.from + e->append.n));
    if (t.path && t.version) tool_workspace_mark_shown(a->workspace, t.path, t.version);
    if (t.origin == KV_ORIGIN_TOOL && h->result) {
        if (!t.path) restore_sources(a, index, &h->result->tool_result.segments);
        agent_event_free(h->result);
        h->result = NULL;
    }
    if (t.origin == KV_ORIGIN_SCAFFOLD) a->transcript.open_role = agent__find_open(a);
}

static void restore_rewind(agent *a, const agent_event *e)
{
    agent__truncate_segments(a, e->rewind.n > 0 ? (uint32_t)e->rewind.n : 0);
    agent__truncate_aside(a, e->rewind.n > 0 ? (uint32_t)e->rewind.n : 0);
    a->turn = e->rewind.turn > 0 ? (uint32_t)e->rewind.turn - 1 : 0;
    agent__rewind_sums(a);
}

/* --- one logged event ----------------------------------------------------------------------------------- */

/*
 * A log is a file that somebody may have changed, and what it counts is used as places in what we hold: turns go up one
 * by one, tokens lie behind those that were logged. 0, or which number is none.
 */
static int check_counts(const history *h, const agent_event *e)
{
    const int64_t turn = h->a->turn;
    const int64_t n = e->append.n, from = e->append.from, n_ids = (int64_t)e->append.ids.n;
    const int64_t n_back = e->rewind.n, to_turn = e->rewind.turn;
    switch (e->type) {
    case AGENT_EVENT_user:
        if (!h->executing && (e->user.turn < 1 || e->user.turn > turn + 1))
            return base_fail(h->err, BASE_E_FORMAT,
                "the log counts turn %lld behind turn %lld: it was "
                "changed, and the session cannot be gone on with",
                (long long)e->user.turn, (long long)turn);
        break;
    case AGENT_EVENT_append:
        if (from >= 0 && n >= 0 && n <= INT32_MAX && from <= INT32_MAX - n &&
            (!e->append.ids.rows || (n == n_ids && from <= h->n && n_ids <= INT32_MAX - (int64_t)h->n)))
            break;
        return base_fail(h->err, BASE_E_FORMAT,
            "the log says that %lld tokens came behind %lld of %u, with %lld ids: it was changed, and the "
            "session cannot be gone on with",
            (long long)n, (long long)from, h->n, (long long)n_ids);
    case AGENT_EVENT_rewind:
        if (n_back >= 0 && n_back <= INT32_MAX && to_turn > 0 && (h->executing || to_turn <= turn)) break;
        return base_fail(h->err, BASE_E_FORMAT,
            "the log goes back to %lld tokens in front of turn %lld, and there are %u and %lld: it was "
            "changed, and the session cannot be gone on with",
            (long long)n_back, (long long)to_turn, h->n, (long long)turn);
    default: break;
    }
    return 0;
}

static void take_append(history *h, const agent_event *e)
{
    if (!e->append.ids.rows) return;
    logged_run *r = add_run(h, agent_logged_origin(e->append.origin), (uint32_t)e->append.turn);
    agent_logged_take_append(&r->text, e);
    h->n += r->text.n;
}

static void take_span(history *h, const agent_event *e)
{
    if (h->n_runs) agent_logged_take_span(&h->runs[h->n_runs - 1].text, e);
}

static void take_token(history *h, const agent_event *e, uint32_t turn)
{
    if (e->token.index < 0 || (uint64_t)e->token.index != h->n) return;
    const kv_origin origin = e->token.origin ? agent_logged_origin(e->token.origin) : KV_ORIGIN_ANSWER;
    logged_run *r = h->n_runs ? &h->runs[h->n_runs - 1] : NULL;
    if (!r || r->text.origin != origin || r->text.turn != turn) r = add_run(h, origin, turn);
    add_id(h, r, (int32_t)e->token.id);
}

/* First pass: what the agent remembers of a session. */
static void remember(history *h, const agent_event *e, uint64_t seq)
{
    agent *a = h->a;
    switch (e->type) {
    case AGENT_EVENT_session:
        free(h->model_hash);
        h->model_hash = base_xstrdup(e->session.model_hash);
        free(h->root);
        h->root = base_xstrdup(e->session.root);
        h->budget = e->session.budget;
        h->until = e->session.until;
        if (e->session.mode) agent_mode_parse(e->session.mode, &h->mode);
        break;
    case AGENT_EVENT_notice:
        if (e->notice.text && !strncmp(e->notice.text, "mode ", 5))
            agent_mode_parse(e->notice.text + 5, &h->mode);
        break;
    case AGENT_EVENT_user:
        h->turn_open = true;
        a->turn = (uint32_t)e->user.turn;
        base_grow(&a->transcript.turn_starts, &a->transcript.cap_turn_starts, a->turn + 1,
            sizeof *a->transcript.turn_starts);
        a->transcript.turn_starts[a->turn] = h->n;
        break;
    case AGENT_EVENT_append: restore_segment(h, e, seq); break;
    case AGENT_EVENT_rewind:
        h->turn_open = false;
        restore_rewind(a, e);
        break;
    case AGENT_EVENT_places: agent__note_answered(a, e->places.items.rows, e->places.items.n); break;
    case AGENT_EVENT_tool_result:
        agent_event_free(h->result);
        h->result = agent_event_copy(e);
        break;
    case AGENT_EVENT_ledger:
        h->budget = e->ledger.budget;
        h->until = e->ledger.until;
        agent__restore_sums(a, e);
        break;
    case AGENT_EVENT_turn_end: h->turn_open = false; break;
    default: break;
    }
}

/* Second pass, behind what the engine has: what was computed and decided is computed and decided again. */
static void execute(history *h, const agent_event *e)
{
    if (e->type == AGENT_EVENT_plan) take_plan(h, e);
    if (e->type != AGENT_EVENT_user) return;
    compute(h);
    agent__set_turn(h->a, (uint32_t)e->user.turn);
}

/* Both passes: which tokens there are. */
static void collect(history *h, const agent_event *e, uint64_t seq, uint32_t turn)
{
    switch (e->type) {
    case AGENT_EVENT_append: take_append(h, e); break;
    case AGENT_EVENT_span: take_span(h, e); break;
    case AGENT_EVENT_token: take_token(h, e, turn); break;
    case AGENT_EVENT_rewind:
        if (e->rewind.n < h->n) truncate_to(h, (uint32_t)e->rewind.n);
        break;
    case AGENT_EVENT_snapshot:
        h->snapshot_n = (uint32_t)e->snapshot.n;
        h->snapshot_seq = seq;
        break;
    default: break;
    }
}

static bool on_event(void *user, uint32_t turn, const agent_event *e)
{
    history *h = user;
    const uint64_t seq = e->seq;
    h->rc = check_counts(h, e);
    if (h->rc) return false;
    h->behind = h->executing && seq > h->from_seq;
    if (!h->executing) remember(h, e, seq);
    if (h->behind) execute(h, e);
    collect(h, e, seq, turn);
    /* Up to where the snapshot stands the engine has it: only what follows is computed. */
    if (h->executing && seq == h->from_seq)
        for (size_t i = 0; i < h->n_runs; i++) h->runs[i].computed = h->runs[i].text.n;
    h->last_seq = seq;
    return h->rc == 0;
}

/* --- catching up ---------------------------------------------------------------------------------------- */

/* Does the engine hold the first n logged tokens and nothing else? */
static bool engine_holds(const history *h, uint32_t n)
{
    uint32_t have;
    const int32_t *ids = h->a->engine->ops->ids(h->a->engine, &have);
    if (have != n) return false;
    for (size_t i = 0; i < h->n_runs; i++)
        for (uint32_t k = 0; k < h->runs[i].text.n && h->runs[i].text.from + k < n; k++)
            if (ids[h->runs[i].text.from + k] != h->runs[i].text.ids[k]) return false;
    return true;
}

static int execute_again(history *h, bool after_snapshot, base_err *err)
{
    agent *a = h->a;
    h->from_seq = after_snapshot ? h->snapshot_seq : 0;
    if (!after_snapshot && agent__n_tokens(a)) {
        int rc = a->engine->ops->truncate(a->engine, 0, err);
        if (rc) return rc;
    }
    free_runs(h);
    h->n = 0;
    h->executing = true;
    a->telling.replaying = true;
    if (a->engine->session) kv_session_set_automatic(a->engine->session, false);
    int rc = agent_log_read(a->log, a->telling.id, AGENT_LOG_FAIL, on_event, h, err);
    if (!rc) rc = h->rc;
    if (!rc) compute(h);
    if (!rc) rc = h->rc;
    if (a->engine->session) kv_session_set_automatic(a->engine->session, true);
    a->telling.replaying = false;
    agent__forget_counts(a);
    return rc;
}

/*
 * A budget that the engine refuses now (hard rows have grown above it) is no reason not to open the session.
 */
static void keep_budget(agent *a, int64_t rows, int64_t until)
{
    kv_session *session = a->engine->session;
    kv_stats now;
    base_err why = {0};
    a->engine->ops->stats(a->engine, &now);
    if (until < 0 || until > UINT32_MAX) until = 0; /* logged before there was such a number */
    if (!session && agent__is_priced(a) && rows >= 0 && rows <= UINT32_MAX)
        a->engine->ops->set_budget(a->engine, (uint32_t)rows);
    if (!session || rows < 0 || rows > UINT32_MAX || (rows == now.budget && until == now.until)) return;
    if (kv_session_set_budget(session, (kv_limit){(uint32_t)rows, (uint32_t)until}, &why))
        agent__notice(a, "%s", why.msg);
}

/*
 * The journal of changes names files by their place in the tree: in another tree, an undo would take back what is another's, where
 * it happens to be the same text. A tree that was moved is gone from where it was.
 */
static void leave_other_tree(agent *a, const char *root)
{
    struct stat was, is;
    const char *here = tool_workspace_root(a->workspace);
    base_err why = {0};
    if (!root || !strcmp(root, here) || stat(root, &was) || stat(here, &is) ||
        (was.st_dev == is.st_dev && was.st_ino == is.st_ino))
        return;
    if (tool_undo_leave(a->workspace, &why))
        agent__notice(a, "%s", why.msg);
    else
        agent__notice(
            a, "the session worked in %s: what it wrote there is not taken back in this tree", root);
}

int agent__catch_up(agent *a, const agent_options *options, bool *ret_empty, base_err *err)
{
    history h = {.a = a, .options = options, .budget = -1, .mode = a->settings.mode, .err = err};
    int rc = agent_log_read(a->log, a->telling.id, AGENT_LOG_FAIL, on_event, &h, err);
    if (!rc) rc = h.rc;
    a->telling.seq = h.last_seq;
    uint32_t total = h.n;
    if (!rc && h.model_hash && strcmp(h.model_hash, a->info.model_hash))
        rc = base_fail(err, BASE_E_STATE,
            "session %s was made with another model (%.12s...): resume it with that one", a->telling.id,
            h.model_hash);
    bool complete = !rc && total && engine_holds(&h, total);
    bool partial = !rc && !complete && h.snapshot_n && h.snapshot_n < total && engine_holds(&h, h.snapshot_n);
    if (!rc && !complete && total) rc = execute_again(&h, partial, err);
    if (!rc && total && options->keep_budget) keep_budget(a, h.budget, h.until);
    if (!rc && total) leave_other_tree(a, h.root);
    free_runs(&h);
    free(h.runs);
    free(h.model_hash);
    free(h.root);
    agent_event_free(h.result);
    *ret_empty = !total;
    if (rc || !total) return rc;
    agent__set_turn(a, a->turn);
    const char *why =
        options->why_not && options->why_not->code ? options->why_not->msg : "the snapshot is not the log's";
    if (complete)
        agent__notice(
            a, "resumed session %s: %s tokens, none computed again", a->telling.id, BASE_THOUSANDS(total));
    else if (partial)
        agent__notice(a, "resumed session %s: %s tokens from the snapshot, %s computed again from the log",
            a->telling.id, BASE_THOUSANDS(h.snapshot_n), BASE_THOUSANDS(total - h.snapshot_n));
    else
        agent__notice(a, "resumed session %s: %s tokens computed again from the log (%s)", a->telling.id,
            BASE_THOUSANDS(total), why);
    /* The screen tells the mode that was logged last; in force is the one it was opened with. */
    if (h.mode != a->settings.mode) agent__notice(a, "mode %s", agent_mode_word(a->settings.mode));
    if (h.turn_open) { /* told once: from here on the log says how it ended */
        agent__notice(a, "turn %u was interrupted; what was committed of it is kept", a->turn);
        agent__emit(
            a, &(agent_event){.type = AGENT_EVENT_turn_end,
                   .turn_end = {.turn = a->turn, .status = "interrupted", .time_ms = base_clock_wall_ms()}});
    }
    return rc;
}
