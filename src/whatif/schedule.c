/*
 * Events -> steps (contract: schedule.h). The log says of a repair only what came of it, so where one was asked for
 * is found by what stands around it: behind a request, and behind a tool's results, before the answer is opened
 * (src/agent/turn/turn.c, src/agent/act/act.c) or lines that it found are said again (src/agent/sequence/repair.c).
 * A budget is told at a turn's end; it was changed before the turn began.
 */
#include "whatif/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "tools/tool.h"

typedef struct reading {
    whatif_schedule *s;
    uint32_t n; /* tokens up to here */
    uint32_t world;
    const char *json; /* of the event that is read */
    size_t json_n;
    uint32_t turn;
    size_t turn_step;            /* where the turn began */
    size_t message;              /* behind the newest scaffold */
    size_t closed, closed_plans; /* what there was at the end of the last turn */
    kv_limit limit;
    bool is_draft; /* the turn is a command's, whose request asks for no rows */
    size_t held;   /* bytes of the events whose words are kept */
    int rc;
    base_err *err;
} reading;

/* What a changed log could claim is held to what a session can have: packed, a few bytes become many. */
enum { MAX_HELD = 1 << 30, MAX_TOKENS = 1 << 24 };

/* --- steps ---------------------------------------------------------------------------------------------- */

static whatif_step *add_step(reading *r, whatif_kind kind, uint64_t seq)
{
    whatif_schedule *s = r->s;
    base_grow(&s->steps, &s->cap_steps, s->n_steps + 1, sizeof *s->steps);
    s->steps[s->n_steps] = (whatif_step){.kind = kind, .turn = r->turn, .seq = seq, .world = r->world};
    return &s->steps[s->n_steps++];
}

static void free_step(whatif_step *t)
{
    agent_logged_free(&t->text);
    free(t->json);
    free(t->label);
    base_buf_free(&t->said);
    free(t->said_ends);
    free(t->seqs);
}

void whatif_schedule_free(whatif_schedule *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n_steps; i++) free_step(&s->steps[i]);
    for (size_t i = 0; i < s->n_plans; i++) kv_plan_free(s->plans[i].plan);
    for (size_t i = 0; s->set && s->set[i]; i++) free((char *)(uintptr_t)s->set[i]);
    for (size_t i = 0; i < s->n_versions; i++) free(s->versions[i].path);
    free(s->versions);
    free(s->set);
    free(s->steps);
    free(s->plans);
    char *const texts[] = {s->id, s->root, s->model, s->model_hash, s->backend, s->isa, s->policy};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
    free(s);
}

/* --- events --------------------------------------------------------------------------------------------- */

static void take_settings(whatif_schedule *s, const char *json)
{
    base_json_doc *doc = NULL;
    if (json && base_json_parse(json, strlen(json), &doc, NULL)) doc = NULL;
    const base_json *root = doc ? base_json_root(doc) : NULL, *set = base_json_get(root, "kv_set");
    const int64_t repair = base_json_int(root, "repair", -1);
    size_t n = 0;
    s->backend = base_xstrdup(base_json_str(root, "backend", ""));
    s->isa = base_xstrdup(base_json_str(root, "isa", ""));
    s->repair = repair >= -1 && repair <= 1 << 20 ? (int)repair : -1;
    const int64_t max_tokens = base_json_int(root, "max_tokens", 0);
    s->max_tokens = max_tokens > 0 && max_tokens <= 1 << 20 ? (uint32_t)max_tokens : 0;
    s->temperature = base_json_num(root, "temperature", -1);
    s->says_settings = set != NULL;
    s->set = base_xcalloc((set ? set->n : 0) + 1, sizeof *s->set);
    for (const base_json *v = set ? set->first : NULL; v; v = v->next)
        if (v->type == BASE_JSON_STRING) s->set[n++] = base_xstrdup(v->string);
    base_json_free(doc);
}

static kv_limit limit_of(int64_t rows, int64_t until)
{
    if (rows < 0 || rows > UINT32_MAX) rows = 0;
    if (until < 0 || until > UINT32_MAX) until = 0; /* logged before there was such a number */
    return (kv_limit){(uint32_t)rows, (uint32_t)until};
}

static void take_session(reading *r, const agent_event *e)
{
    whatif_schedule *s = r->s;
    if (s->model_hash) return; /* a fork's own, behind what it has of the other */
    s->root = base_xstrdup(e->session.root ? e->session.root : "");
    s->model = base_xstrdup(e->session.model ? e->session.model : "");
    s->model_hash = base_xstrdup(e->session.model_hash ? e->session.model_hash : "");
    s->policy = base_xstrdup(e->session.policy ? e->session.policy : "");
    s->limit = r->limit = limit_of(e->session.budget, e->session.until);
    s->n_ctx = e->session.n_ctx > 0 && e->session.n_ctx <= UINT32_MAX ? (uint32_t)e->session.n_ctx : 0;
    s->is_elsewhere = e->session.row_bytes <= 0;
    take_settings(s, e->session.settings);
}

static void take_version(reading *r, const char *path, const char *version)
{
    whatif_schedule *s = r->s;
    if (!path || !version || strlen(version) != sizeof s->versions->version - 1) return;
    base_grow(&s->versions, &s->cap_versions, s->n_versions + 1, sizeof *s->versions);
    whatif_version *v = &s->versions[s->n_versions++];
    *v = (whatif_version){.path = base_xstrdup(path), .world = r->world};
    memcpy(v->version, version, sizeof v->version);
}

/* What a call showed, and whether it may have changed the tree: whatever is not known to only read. */
static void take_result(reading *r, const agent_event *e)
{
    const tool_entry *tool = tool_find(e->tool_result.name ? e->tool_result.name : "");
    r->world += !tool || tool->power != TOOL_READS;
    for (size_t i = 0; i < e->tool_result.segments.n; i++)
        take_version(r, e->tool_result.segments.rows[i].path, e->tool_result.segments.rows[i].version);
}

static void take_user(reading *r, const agent_event *e, uint64_t seq)
{
    const char *text = e->user.text ? e->user.text : "";
    r->turn = e->user.turn > 0 && e->user.turn <= UINT32_MAX ? (uint32_t)e->user.turn : 0;
    r->is_draft = !strcmp(text, "/commit") || !strncmp(text, "/commit (", strlen("/commit ("));
    r->turn_step = r->s->n_steps;
    add_step(r, WHATIF_TURN, seq)->json = base_xstrndup(r->json, r->json_n);
}

/* The texts of the message that ends, which ask before the answer is opened: a request; a result and its test. */
static void add_repair(reading *r, const char *label, uint64_t seq)
{
    const whatif_schedule *s = r->s;
    const bool is_result = !strcmp(label, "-tool+assistant");
    uint32_t from = UINT32_MAX, to = 0;
    if (!is_result && (strcmp(label, "-user+assistant") != 0 || r->is_draft)) return;
    for (size_t i = r->message; i < s->n_steps; i++) {
        const whatif_step *t = &s->steps[i];
        const char *word = t->label ? t->label : "";
        if (t->kind == WHATIF_REPAIR) return; /* what it found stands behind it */
        if (t->kind != WHATIF_TEXT) continue;
        const bool asks = is_result ? t->text.origin == KV_ORIGIN_TOOL && (from > to || !strcmp(word, "test"))
                                    : t->text.origin == KV_ORIGIN_USER && !strcmp(word, "request");
        if (!asks) continue;
        if (from > to) from = t->text.from;
        to = t->text.from + t->text.n;
    }
    if (from >= to) return;
    whatif_step *t = add_step(r, WHATIF_REPAIR, seq);
    t->from = from;
    t->to = to;
}

static void add_rewind(reading *r, uint32_t n, uint64_t seq)
{
    whatif_step *t = add_step(r, WHATIF_REWIND, seq);
    t->from = r->n = n;
    r->s->n_rewinds++;
    r->message = r->s->n_steps;
}

static void take_append(reading *r, const agent_event *e, uint64_t seq)
{
    const kv_origin origin = agent_logged_origin(e->append.origin);
    const char *label = e->append.label ? e->append.label : "";
    if (!e->append.ids.n || e->append.ids.n > UINT32_MAX - r->n) return;
    if (e->append.from >= 0 && e->append.from < r->n) add_rewind(r, (uint32_t)e->append.from, seq);
    if (e->append.from != r->n) {
        r->rc = base_fail(r->err, BASE_E_FORMAT,
            "the log of session %s lacks tokens in front of %lld: it cannot be computed again", r->s->id,
            (long long)e->append.from);
        return;
    }
    if (origin == KV_ORIGIN_SCAFFOLD) add_repair(r, label, seq);
    if (origin == KV_ORIGIN_CONTEXT && !strcmp(label, "quoted")) add_repair(r, "-user+assistant", seq);
    whatif_step *t = add_step(r, WHATIF_TEXT, seq);
    t->text = (agent_logged_run){.origin = origin, .turn = r->turn, .from = r->n};
    t->label = base_xstrdup(label);
    t->json = base_xstrndup(r->json, r->json_n);
    take_version(r, e->append.path, e->append.version);
    agent_logged_take_append(&t->text, e);
    r->n += t->text.n;
    r->s->n_tokens += t->text.n;
    if (origin == KV_ORIGIN_SCAFFOLD) r->message = r->s->n_steps;
}

static void take_span(reading *r, const agent_event *e)
{
    whatif_step *last = r->s->n_steps ? &r->s->steps[r->s->n_steps - 1] : NULL;
    if (last && last->kind == WHATIF_TEXT) agent_logged_take_span(&last->text, e);
}

static void take_token(reading *r, const agent_event *e, uint64_t seq)
{
    if (e->token.index < 0 || (uint64_t)e->token.index != r->n || r->n == UINT32_MAX) return;
    const kv_origin origin = e->token.origin ? agent_logged_origin(e->token.origin) : KV_ORIGIN_ANSWER;
    whatif_step *t = r->s->n_steps ? &r->s->steps[r->s->n_steps - 1] : NULL;
    if (!t || t->kind != WHATIF_ANSWER || t->text.origin != origin || t->turn != r->turn) {
        t = add_step(r, WHATIF_ANSWER, seq);
        t->text = (agent_logged_run){.origin = origin, .turn = r->turn, .from = r->n};
    }
    base_grow(&t->seqs, &t->cap_seqs, t->text.n + 1, sizeof *t->seqs);
    base_grow(&t->said_ends, &t->cap_said_ends, t->text.n + 1, sizeof *t->said_ends);
    t->seqs[t->text.n] = seq;
    if (e->token.text) base_buf_puts(&t->said, e->token.text);
    t->said_ends[t->text.n] = (uint32_t)t->said.len;
    t->seq = seq;
    agent_logged_add_id(&t->text, (int32_t)e->token.id);
    r->n++;
    r->s->n_tokens++;
}

/* What a person, or a changed file, said of rows comes as a plan; its runs say which tokens were meant. */
static void add_order(reading *r, const kv_plan *p, uint64_t seq)
{
    if (!p->n_runs) return;
    whatif_step *t = add_step(r, WHATIF_ORDER, seq);
    t->cause = p->cause;
    t->action = (kv_action)p->runs[0].action;
    t->from = p->runs[0].from;
    for (uint32_t i = 0; i < p->n_runs; i++)
        if (p->runs[i].to > t->to) t->to = p->runs[i].to;
}

static void take_plan(reading *r, const agent_event *e, uint64_t seq)
{
    whatif_schedule *s = r->s;
    kv_plan *p = NULL;
    if (!e->blob || kv_plan_unpack(e->blob, e->blob_n, &p, NULL)) return;
    if (p->cause == KV_CAUSE_ANSWER) {
        s->was_visited_late = true;
        kv_plan_free(p);
        return;
    }
    if (!p->n_runs) agent_logged_read_runs(p, &e->plan.runs);
    r->world += p->cause == KV_CAUSE_STALE;
    if (p->cause == KV_CAUSE_MANUAL || p->cause == KV_CAUSE_STALE || p->cause == KV_CAUSE_FAILED ||
        p->cause == KV_CAUSE_THOUGHT)
        add_order(r, p, seq);
    base_grow(&s->plans, &s->cap_plans, s->n_plans + 1, sizeof *s->plans);
    s->plans[s->n_plans++] = (whatif_plan){s->n_turns, p};
}

/* Taking a plan back makes one of the opposite flips, which looks like an order; only the notice tells. */
static void take_notice(reading *r, const agent_event *e, uint64_t seq)
{
    whatif_schedule *s = r->s;
    if (!e->notice.text || strcmp(e->notice.text, "the last change of the rows is taken back") != 0) return;
    whatif_step *last = s->n_steps ? &s->steps[s->n_steps - 1] : NULL;
    if (!last || last->kind != WHATIF_ORDER) last = add_step(r, WHATIF_UNDO, seq);
    last->kind = WHATIF_UNDO;
}

static void take_ledger(reading *r, const agent_event *e)
{
    whatif_schedule *s = r->s;
    const kv_limit now = limit_of(e->ledger.budget, e->ledger.until);
    if (now.rows == r->limit.rows && now.until == r->limit.until) return;
    add_step(r, WHATIF_BUDGET, 0);
    const whatif_step t = {.kind = WHATIF_BUDGET,
        .turn = r->turn,
        .limit = now,
        .seq = s->steps[r->turn_step].seq,
        .world = s->steps[r->turn_step].world};
    memmove(s->steps + r->turn_step + 1, s->steps + r->turn_step,
        (s->n_steps - 1 - r->turn_step) * sizeof *s->steps);
    s->steps[r->turn_step] = t;
    r->closed += r->turn_step < r->closed; /* behind a turn's end it is still that turn's */
    r->limit = now;
}

static void take_end(reading *r, uint64_t seq)
{
    add_step(r, WHATIF_END, seq);
    r->s->n_turns++;
    r->closed = r->s->n_steps;
    r->closed_plans = r->s->n_plans;
}

static bool on_event(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    reading *r = user;
    agent_event e;
    agent_event_doc *doc = NULL;
    r->rc = agent_event_read(json, n, &e, &doc, r->err);
    if (r->rc) return false;
    r->held +=
        e.type == AGENT_EVENT_append || e.type == AGENT_EVENT_user || e.type == AGENT_EVENT_rewind ? n : 0;
    r->held += blob_n;
    if (r->held > MAX_HELD || r->n > MAX_TOKENS) {
        r->rc = base_fail(r->err, BASE_E_LIMIT,
            "the log of session %s has more than a session can have (%u tokens, %zu MiB of texts and "
            "plans): it cannot be computed again",
            r->s->id, r->n, r->held >> 20);
        agent_event_doc_free(doc);
        return false;
    }
    e.blob = blob;
    e.blob_n = blob_n;
    r->json = json;
    r->json_n = n;
    switch (e.type) {
    case AGENT_EVENT_what_if:
        r->rc = base_fail(r->err, BASE_E_USAGE,
            "session %s is a what-if itself, of session %s: give that one's id", r->s->id,
            e.what_if.parent ? e.what_if.parent : "?");
        break;
    case AGENT_EVENT_session: take_session(r, &e); break;
    case AGENT_EVENT_user: take_user(r, &e, seq); break;
    case AGENT_EVENT_append: take_append(r, &e, seq); break;
    case AGENT_EVENT_span: take_span(r, &e); break;
    case AGENT_EVENT_token: take_token(r, &e, seq); break;
    case AGENT_EVENT_plan: take_plan(r, &e, seq); break;
    case AGENT_EVENT_rewind:
        if (e.rewind.n < 0 || e.rewind.n > r->n) break;
        add_rewind(r, (uint32_t)e.rewind.n, seq);
        r->s->steps[r->s->n_steps - 1].json = base_xstrndup(json, n);
        break;
    case AGENT_EVENT_tool_result: take_result(r, &e); break;
    case AGENT_EVENT_notice: take_notice(r, &e, seq); break;
    case AGENT_EVENT_ledger: take_ledger(r, &e); break;
    case AGENT_EVENT_turn_end: take_end(r, seq); break;
    default: break;
    }
    agent_event_doc_free(doc);
    return r->rc == 0;
}

/* What follows the last turn's end belongs to a turn that goes on, or to nothing that was asked. */
static void leave_open_turn(reading *r)
{
    whatif_schedule *s = r->s;
    while (s->n_steps > r->closed) {
        const whatif_step *t = &s->steps[s->n_steps - 1];
        s->is_cut = s->is_cut || t->kind == WHATIF_TURN;
        s->n_tokens -= t->text.n;
        free_step(&s->steps[--s->n_steps]);
    }
    while (s->n_plans > r->closed_plans) kv_plan_free(s->plans[--s->n_plans].plan);
}

int whatif_schedule_make(
    whatif_schedule **ret, const char *id, whatif_tell_fn *tell, void *user, base_err *err)
{
    whatif_schedule *s = base_xcalloc(1, sizeof *s);
    reading r = {.s = s, .err = err};
    s->id = base_xstrdup(id);
    int rc = tell(user, on_event, &r, err);
    if (!rc) rc = r.rc;
    leave_open_turn(&r);
    if (!rc && !s->model_hash)
        rc = base_fail(err, BASE_E_FORMAT, "the log of session %s does not say how it was begun", id);
    if (!rc && !s->n_turns)
        rc = base_fail(
            err, BASE_E_STATE, "session %s has no turn that came to an end: there is nothing to compare", id);
    if (rc)
        whatif_schedule_free(s);
    else
        *ret = s;
    return rc;
}

typedef struct logged {
    agent_log *log;
    const char *id;
} logged;

static int tell_logged(void *user, agent_log_event_fn *fn, void *fn_user, base_err *err)
{
    const logged *l = user;
    return agent_log_events(l->log, l->id, fn, fn_user, err);
}

int whatif_schedule_read(whatif_schedule **ret, agent_log *l, const char *id, base_err *err)
{
    return whatif_schedule_make(ret, id, tell_logged, &(logged){l, id}, err);
}
