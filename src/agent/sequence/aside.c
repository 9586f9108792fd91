/*
 * The budget in spans: an engine elsewhere shows no rows, but what of the conversation it is sent is ours to choose.
 * Above the budget old files, results and turns are put aside, in one cut to 70% of it, chosen so that little is computed
 * again (cut.h). The price is told, and in mode ask asked for, before it is paid. What was put aside is kept; back.c
 * brings it back.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/approve/approve.h"
#include "agent/log/logged.h"
#include "agent/sequence/cut.h"
#include "agent/sequence/sequence.h"
#include "agent/session/ledger.h"
#include "agent/session/tell.h"
#include "agent/words/rank_texts.h"
#include "base/mem.h"
#include "base/utf8.h"

enum {
    MOST_NAMED = 8,    /* of a list for a person or the model */
    KEPT_EXCHANGES = 2 /* the newest of this turn */
};
/* Chosen by hand, not measured: what a cut goes down to; how likely an old text is asked for again. */
static const double low = .7, least_value = .05, asked_value = .5, recent_value = 1;
static const double least_turns = 2, most_turns = 10;

bool agent__is_priced(const agent *a)
{
    return !a->engine->session && a->engine->can & ENGINE_SPANS && a->engine->ops->to_compute;
}

static bool is_out(const agent *a, uint32_t i)
{
    return !a->engine->ops->is_active(a->engine, i);
}

bool agent__is_aside(const agent *a, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to && agent__is_priced(a); i++)
        if (is_out(a, i)) return true;
    return false;
}

/* --- what may leave ------------------------------------------------------------------------------------- */

typedef struct candidate {
    agent_cut_unit unit;
    kv_reason reason;
    char *name; /* for people and for the model */
} candidate;

typedef struct candidates {
    candidate *all;
    size_t n, cap;
} candidates;

void agent__put_segment_name(const agent_segment *p, base_buf *out)
{
    if (p->path && p->line)
        base_buf_printf(out, "%s:%u-%u", p->path, p->line, p->line_end);
    else
        base_buf_printf(out, "%s of turn %u",
            p->path    ? p->path
            : p->label ? p->label
                       : kv_origin_word(p->origin),
            p->turn);
}

static void add(candidates *c, uint32_t from, uint32_t to, kv_reason reason, base_buf *name)
{
    base_grow(&c->all, &c->cap, c->n + 1, sizeof *c->all);
    c->all[c->n++] = (candidate){{from, to, 0}, reason, base_buf_take(name)};
}

static bool opens_answer(const agent_segment *p)
{
    const char *plus = p->origin == KV_ORIGIN_SCAFFOLD && p->label ? strrchr(p->label, '+') : NULL;
    return plus && !strcmp(plus + 1, agent__role_words[MODEL_ROLE_ASSISTANT]);
}

/* An answer that calls, and the result behind it, up to where the next answer begins. */
static void add_exchange(const agent *a, size_t first, size_t last, candidates *c)
{
    base_buf name = {0};
    bool stale = true, named = false;
    for (size_t i = first + 1; i < last; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->origin != KV_ORIGIN_TOOL || named) continue;
        agent__put_segment_name(p, &name);
        stale = p->stale;
        named = true;
    }
    if (!named) base_buf_printf(&name, "an answer of turn %u", a->transcript.segments[first].turn);
    add(c, a->transcript.segments[first].to, a->transcript.segments[last].to,
        named && stale ? KV_REASON_STALE : KV_REASON_BUDGET, &name);
}

/* Files and output in front of the request, and exchanges; of the present turn the old ones of these alone. */
static void add_parts(const agent *a, uint32_t turn, candidates *c)
{
    size_t opened[64], n_opened = 0; /* segments that open an answer: the newest of them */
    uint32_t done = 0;
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->turn != turn || p->from < done || p->to <= p->from)
            continue; /* a part of one that was there */
        done = p->to;
        if (opens_answer(p)) {
            if (n_opened == sizeof opened / sizeof *opened) {
                add_exchange(a, opened[0], opened[1], c);
                memmove(opened, opened + 1, --n_opened * sizeof *opened);
            }
            opened[n_opened++] = i;
        } else if (!n_opened && turn < a->turn &&
                   (p->origin == KV_ORIGIN_CONTEXT || p->origin == KV_ORIGIN_TOOL)) {
            base_buf name = {0};
            agent__put_segment_name(p, &name);
            add(c, p->from, p->to, p->stale ? KV_REASON_STALE : KV_REASON_BUDGET, &name);
        }
    }
    const size_t kept = turn == a->turn ? KEPT_EXCHANGES : 0;
    for (size_t i = 0; i + 1 + kept < n_opened; i++) add_exchange(a, opened[i], opened[i + 1], c);
}

/* Is no message open in front of this token? */
static bool is_between_messages(const agent *a, uint32_t token)
{
    if (token == agent__n_tokens(a)) return a->transcript.open_role < 0;
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->from == token) return p->origin == KV_ORIGIN_SCAFFOLD && p->label && p->label[0] == '+';
    }
    return false;
}

/* "turn 3 (src/a.c:1-20)" */
static void put_turn(const agent *a, uint32_t turn, base_buf *out)
{
    base_buf_printf(out, "turn %u", turn);
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->turn != turn || !p->path) continue;
        base_buf_puts(out, " (");
        agent__put_segment_name(p, out);
        base_buf_putc(out, ')');
        return;
    }
}

static void add_turns(const agent *a, candidates *c)
{
    for (uint32_t turn = 1; turn <= a->turn; turn++) {
        const uint32_t from = a->transcript.turn_starts[turn],
                       to = turn < a->turn ? a->transcript.turn_starts[turn + 1] : from;
        if (from < to && is_between_messages(a, from) && is_between_messages(a, to)) {
            base_buf name = {0};
            put_turn(a, turn, &name);
            add(c, from, to, KV_REASON_BUDGET, &name);
        }
        add_parts(a, turn, c);
    }
    for (size_t i = 0; i < a->aside.n_loose; i++) {
        const agent_loose *l = &a->aside.loose[i];
        base_buf name = {0};
        base_buf_puts(&name, l->reason == KV_REASON_THOUGHT ? "a thought" : "a failed attempt");
        add(c, l->from, l->to, l->reason, &name);
    }
}

static int by_place(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->unit.from != y->unit.from) return x->unit.from < y->unit.from ? -1 : 1;
    return x->unit.to < y->unit.to ? 1 : x->unit.to > y->unit.to ? -1 : 0; /* the outer one first */
}

static uint32_t turn_of(const agent *a, uint32_t token)
{
    uint32_t turn = a->turn;
    while (turn > 1 && a->transcript.turn_starts[turn] > token) turn--;
    return turn;
}

/* The chance that a text is asked for again: by what the newest message asks for, and how long ago it came. */
static void value(const agent *a, const char *message, candidates *c)
{
    const char **texts = base_xcalloc(c->n + 1, sizeof *texts);
    base_buf *kept = base_xcalloc(c->n + 1, sizeof *kept);
    agent_rank *ranks = base_xcalloc(c->n + 1, sizeof *ranks);
    for (size_t i = 0; i < c->n; i++) {
        agent__put_words(a, c->all[i].unit.from, c->all[i].unit.to, &kept[i]);
        texts[i] = kept[i].data ? kept[i].data : "";
    }
    agent_rank_texts(message, texts, (uint32_t)c->n, ranks);
    for (size_t i = 0; i < c->n; i++) {
        candidate *one = &c->all[i];
        const uint32_t age = a->turn - turn_of(a, one->unit.from);
        one->unit.value = one->reason != KV_REASON_BUDGET ? 0
                                                          : least_value + asked_value * ranks[i].score +
                                                                recent_value * exp2(-(double)age);
    }
    /* What holds others goes behind them. */
    for (size_t i = c->n; i-- > 0;)
        for (size_t k = i + 1; k < c->n && c->all[k].unit.from < c->all[i].unit.to; k++)
            if (c->all[k].unit.to <= c->all[i].unit.to && c->all[k].unit.value >= c->all[i].unit.value)
                c->all[i].unit.value = c->all[k].unit.value + .001;
    for (size_t i = 0; i < c->n; i++) base_buf_free(&kept[i]);
    free(kept);
    free(texts);
    free(ranks);
}

static void candidates_free(candidates *c)
{
    for (size_t i = 0; i < c->n; i++) free(c->all[i].name);
    free(c->all);
}

/* --- the cut -------------------------------------------------------------------------------------------- */

static uint32_t to_compute(void *user, const bool *left_out, bool *at_most)
{
    const agent *a = user;
    return a->engine->ops->to_compute(a->engine, left_out, at_most);
}

static double turns_to_come(const agent *a)
{
    const double so_far = a->turn; /* as many as there were: nothing else is known of a session's length */
    return so_far < least_turns ? least_turns : so_far > most_turns ? most_turns : so_far;
}

/* The best cut that frees `need` tokens; its candidates, in the order of their places, are the caller's. */
static void find_cut(agent *a, const char *message, uint32_t need, candidates *c, agent_cut *ret)
{
    const uint32_t n = agent__n_tokens(a);
    bool *active = base_xcalloc(n + 1, sizeof *active);
    for (uint32_t i = 0; i < n; i++) active[i] = !is_out(a, i);
    add_turns(a, c);
    if (c->n) qsort(c->all, c->n, sizeof *c->all, by_place);
    value(a, message, c);
    agent_cut_unit *units = base_xcalloc(c->n + 1, sizeof *units);
    for (size_t i = 0; i < c->n; i++) units[i] = c->all[i].unit;
    agent_cut_choose(&(agent_cut_question){.units = units,
                         .n_units = (uint32_t)c->n,
                         .active = active,
                         .n_tokens = n,
                         .need = need,
                         .turns = turns_to_come(a),
                         .to_compute = to_compute,
                         .user = a},
        ret);
    free(units);
    free(active);
}

/* The smallest candidate that holds a token says why it leaves. */
static const candidate *holder(const candidates *c, uint32_t token)
{
    const candidate *best = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const agent_cut_unit *u = &c->all[i].unit;
        if (u->from > token || u->to <= token) continue;
        if (!best || u->to - u->from <= best->unit.to - best->unit.from) best = &c->all[i];
    }
    return best;
}

/* The outermost candidates that leave whole, "A, B and 3 more". */
static void put_names(const agent *a, const candidates *c, const agent_cut *cut, base_buf *out)
{
    uint32_t named = 0, more = 0, done = 0;
    for (size_t i = 0; i < c->n; i++) {
        const agent_cut_unit *u = &c->all[i].unit;
        bool leaves = u->from >= done, any = false;
        for (uint32_t t = u->from; leaves && t < u->to; t++) {
            leaves = cut->out[t] || is_out(a, t);
            any = any || cut->out[t];
        }
        if (!leaves || !any) continue;
        done = u->to;
        if (named < MOST_NAMED)
            base_buf_printf(out, "%s%s", named++ ? ", " : "", c->all[i].name);
        else
            more++;
    }
    if (more) base_buf_printf(out, " and %u more", more);
}

static void put_price(const agent_cut *cut, base_buf *out)
{
    if (!cut->again)
        base_buf_puts(out, "nothing is computed again for it");
    else
        base_buf_printf(out, "%s%u tokens behind the cut are computed again for it",
            cut->at_most ? "at most " : "", cut->again);
}

static kv_plan *plan_of(const agent *a, const candidates *c, const agent_cut *cut)
{
    const uint32_t n = agent__n_tokens(a);
    kv_plan *p = kv_plan_new(0, KV_CAUSE_EVICT, n, 1);
    for (uint32_t i = 0; p && i < n; i++) {
        if (!cut->out[i]) continue;
        const candidate *why = holder(c, i);
        p->flips[i / 64] |= 1ull << i % 64;
        kv_plan_add_run(p, i, i + 1, KV_EVICT, why ? why->reason : KV_REASON_BUDGET, 1);
    }
    if (!p) return NULL;
    p->evicted = cut->freed;
    if (cut->again) p->replay_from = cut->again < n ? n - cut->again : 1;
    return p;
}

int agent__apply_aside(agent *a, const kv_plan *p, base_err *err)
{
    const uint32_t n = agent__n_tokens(a);
    if (!agent__is_priced(a) || p->n_lanes != 1 || p->n_tokens > n)
        return base_fail(err, BASE_E_FORMAT, "a plan of %u lanes over %u tokens is none of this session's %u",
            p->n_lanes, p->n_tokens, n);
    int rc = 0;
    for (uint32_t i = 0; i < p->n_tokens && !rc; i++)
        if (p->flips[i / 64] >> i % 64 & 1)
            rc = a->engine->ops->set_active(a->engine, i, i + 1, is_out(a, i), err);
    return rc;
}

static void emit_behind(void *user, agent_event *e)
{
    agent__emit_behind(user, e);
}

static bool is_allowed(agent *a, const agent_cut *cut, const char *names, uint32_t n_active)
{
    if (!cut->again || a->aside.always || a->settings.mode != AGENT_MODE_ASK || !a->host.approve) return true;
    base_buf headline = {0}, price = {0}, detail = {0};
    put_price(cut, &price);
    base_buf_printf(&headline, "put aside %u of %u tokens; %s", cut->freed, n_active, price.data);
    base_buf_printf(&detail, "%s\nNo: all of it is sent until there are a tenth more.\n", names);
    const agent_event request = {.type = AGENT_EVENT_approval_request,
        .approval_request = {.turn = a->turn,
            .name = "budget",
            .headline = headline.data,
            .detail = detail.data,
            .power = "reads"}};
    const agent_decision d = agent__ask_person(a, &request);
    free(d.text);
    base_buf_free(&headline);
    base_buf_free(&price);
    base_buf_free(&detail);
    a->aside.always = d.answer == AGENT_ALWAYS || d.answer == AGENT_ALWAYS_HERE;
    return a->aside.always || d.answer == AGENT_YES;
}

static int apply(agent *a, const candidates *c, const agent_cut *cut, uint32_t before, base_err *err)
{
    base_buf names = {0}, price = {0};
    int rc = 0;
    put_names(a, c, cut, &names);
    put_price(cut, &price);
    if (!is_allowed(a, cut, names.data ? names.data : "", before)) {
        a->aside.refused_at = before;
        goto out;
    }
    a->aside.refused_at = 0;
    agent__notice(a,
        "%u of %u tokens are put aside: %s; %s. They are kept, and come back where a message asks for them",
        cut->freed, before, names.data ? names.data : "", price.data);
    bool at_most;
    a->aside.waiting = (agent_price){.is_open = true,
        .shown = cut->again,
        .at_most = cut->at_most,
        .before = a->engine->ops->to_compute(a->engine, NULL, &at_most),
        .n_active = before - cut->freed};
    kv_plan *p = plan_of(a, c, cut);
    if (!p) {
        rc = base_fail(err, BASE_E_NOMEM, "there is no memory for a plan of %u tokens", agent__n_tokens(a));
        goto out;
    }
    agent__count_plan(a, p);
    agent_logged_tell_plan(p, a->turn, emit_behind, a);
    rc = agent__apply_aside(a, p, err);
    kv_plan_free(p);
    if (a->aside.list.len) base_buf_puts(&a->aside.list, ", ");
    if (names.len) base_buf_puts(&a->aside.list, names.data);
out:
    base_buf_free(&names);
    base_buf_free(&price);
    return rc;
}

int agent__hold_budget(agent *a, const char *message, base_err *err)
{
    kv_stats s;
    if (!agent__is_priced(a)) return 0;
    a->engine->ops->stats(a->engine, &s);
    if (!s.budget || s.active <= s.budget || s.active < a->aside.refused_at + s.budget / 10) return 0;
    candidates c = {0};
    agent_cut cut;
    find_cut(a, message, s.active - (uint32_t)(low * s.budget), &c, &cut);
    const int rc = cut.freed ? apply(a, &c, &cut, s.active, err) : 0;
    free(cut.out);
    candidates_free(&c);
    return rc;
}

/* --- by hand, and what the harness would rather not have in view ---------------------------------------- */

void agent__leave_later(agent *a, uint32_t from, uint32_t to, kv_reason reason)
{
    if (from >= to) return;
    base_grow(&a->aside.loose, &a->aside.cap_loose, a->aside.n_loose + 1, sizeof *a->aside.loose);
    a->aside.loose[a->aside.n_loose++] = (agent_loose){from, to, reason};
}

void agent__want_back(agent *a, uint32_t from, uint32_t to)
{
    if (!agent__is_aside(a, from, to)) return;
    base_grow(&a->aside.wanted, &a->aside.cap_wanted, a->aside.n_wanted + 1, sizeof *a->aside.wanted);
    a->aside.wanted[a->aside.n_wanted++] = (agent_loose){from, to, KV_REASON_MANUAL};
}

int agent__put_aside(agent *a, uint32_t from, uint32_t to, base_err *err)
{
    const uint32_t n = agent__n_tokens(a);
    if (from >= to || to > n)
        return base_fail(err, BASE_E_USAGE, "tokens %u to %u are not in this session of %u", from, to, n);
    if (a->turn && from < a->transcript.turn_starts[1])
        return base_fail(
            err, BASE_E_USAGE, "the fixed prompt stays: it ends at token %u", a->transcript.turn_starts[1]);
    agent_cut cut = {.out = base_xcalloc(n + 1, sizeof *cut.out)};
    kv_stats s;
    bool at_most;
    a->engine->ops->stats(a->engine, &s);
    for (uint32_t i = from; i < to; i++) cut.freed += cut.out[i] = !is_out(a, i);
    const uint32_t now = to_compute(a, NULL, &at_most), then = to_compute(a, cut.out, &cut.at_most);
    cut.again = then > now ? then - now : 0;
    candidates c = {0};
    base_buf name = {0};
    base_buf_printf(&name, "tokens %u to %u", from, to - 1);
    add(&c, from, to, KV_REASON_MANUAL, &name);
    const int rc = cut.freed ? apply(a, &c, &cut, s.active, err) : 0;
    candidates_free(&c);
    free(cut.out);
    return rc;
}

/* --- telling -------------------------------------------------------------------------------------------- */

void agent__tell_span_budget(agent *a)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    if (!s.budget) {
        agent__notice(a, "no budget: all %u tokens are sent, %u are put aside", s.active, s.host);
        return;
    }
    candidates c = {0};
    agent_cut cut;
    base_buf names = {0}, price = {0};
    const uint32_t to = (uint32_t)(low * s.budget);
    find_cut(a, a->request ? a->request : "", s.active > to ? s.active - to : 0, &c, &cut);
    put_names(a, &c, &cut, &names);
    put_price(&cut, &price);
    agent__notice(
        a, "budget %u tokens of a request; %u are sent, %u are put aside", s.budget, s.active, s.host);
    if (cut.freed)
        agent__notice(a, "a cut to %u now would put %u tokens aside (%s); %s", to, cut.freed,
            names.data ? names.data : "", price.data);
    free(cut.out);
    candidates_free(&c);
    base_buf_free(&names);
    base_buf_free(&price);
}

void agent__put_paid(agent *a, const engine_request *r, base_buf *out)
{
    const agent_price w = a->aside.waiting;
    a->aside.waiting.is_open = false;
    if (!w.is_open) return;
    base_buf_printf(out, "%sa cut: %s%u tokens to compute again were shown, ", out->len ? "; " : "",
        w.at_most ? "at most " : "", w.shown);
    const int64_t fresh =
        (int64_t)w.before + r->sent - w.n_active; /* what it had computed without a cut, too */
    if (r->computed < 0)
        base_buf_puts(out, "what was paid is not told");
    else
        base_buf_printf(out, "%lld paid", (long long)(r->computed > fresh ? r->computed - fresh : 0));
}

void agent__truncate_aside(agent *a, uint32_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->aside.n_loose; i++)
        if (a->aside.loose[i].to <= n) a->aside.loose[kept++] = a->aside.loose[i];
    a->aside.n_loose = kept;
    a->aside.n_wanted = 0;
    a->aside.refused_at = 0;
    a->aside.waiting.is_open = false;
    if (!n) base_buf_clear(&a->aside.list);
}
