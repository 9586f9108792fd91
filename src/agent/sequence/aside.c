/*
 * The budget in spans: an engine elsewhere shows no rows, but what of the conversation it is sent is ours to choose.
 * Above the budget old files, results and turns are put aside (cut_parts.c says what may leave), in one cut to 70% of
 * it, chosen so that little is computed again (cut.h). The price is told, and in mode ask asked for, before it is paid.
 * What was put aside is kept; back.c brings it back.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/approve/approve.h"
#include "agent/log/logged.h"
#include "agent/sequence/cut_parts.h"
#include "agent/sequence/sequence.h"
#include "agent/session/ledger.h"
#include "agent/session/tell.h"
#include "base/mem.h"
#include "base/numbers.h"

enum { MOST_NAMED = 8 }; /* of a list for a person or the model */
/* Chosen by hand, not measured: what a cut goes down to. */
static const double low = .7;
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

/* The best cut that frees `need` tokens; its parts, in the order of their places, are the caller's. */
static void find_cut(agent *a, const char *message, uint32_t need, agent_cut_parts *c, agent_cut *ret)
{
    const uint32_t n = agent__n_tokens(a);
    bool *active = base_xcalloc(n + 1, sizeof *active);
    for (uint32_t i = 0; i < n; i++) active[i] = !is_out(a, i);
    agent__find_cut_parts(a, message, c);
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

/* The outermost parts that leave whole, "A, B and 3 more". */
static void put_names(const agent *a, const agent_cut_parts *c, const agent_cut *cut, base_buf *out)
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
        base_buf_printf(out, "%s%s tokens behind the cut are computed again for it",
            cut->at_most ? "at most " : "", BASE_THOUSANDS(cut->again));
}

static kv_plan *plan_of(const agent *a, const agent_cut_parts *c, const agent_cut *cut)
{
    const uint32_t n = agent__n_tokens(a);
    kv_plan *p = kv_plan_new(0, KV_CAUSE_EVICT, n, 1);
    for (uint32_t i = 0; p && i < n; i++) {
        if (!cut->out[i]) continue;
        const agent_cut_part *why = agent_cut_parts_holding(c, i);
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
    base_buf_printf(&headline, "put aside %s of %s tokens; %s", BASE_THOUSANDS(cut->freed),
        BASE_THOUSANDS(n_active), price.data);
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

static int apply(agent *a, const agent_cut_parts *c, const agent_cut *cut, uint32_t before, base_err *err)
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
        "%s of %s tokens are put aside: %s; %s. They are kept, and come back where a message asks for them",
        BASE_THOUSANDS(cut->freed), BASE_THOUSANDS(before), names.data ? names.data : "", price.data);
    bool at_most;
    agent_price w = a->aside.waiting; /* cuts with no request between them have one price */
    if (!w.is_open)
        w = (agent_price){.is_open = true,
            .before = a->engine->ops->to_compute(a->engine, NULL, &at_most),
            .n_active = before};
    kv_plan *p = plan_of(a, c, cut);
    if (!p) {
        rc = base_fail(err, BASE_E_NOMEM, "there is no memory for a plan of %u tokens", agent__n_tokens(a));
        goto out;
    }
    agent__count_plan(a, p);
    agent_logged_tell_plan(p, a->turn, emit_behind, a);
    rc = agent__apply_aside(a, p, err);
    kv_plan_free(p);
    if (!rc) {
        w.n_active -= cut->freed;
        w.at_most = w.at_most || cut->at_most;
        const uint32_t now = a->engine->ops->to_compute(a->engine, NULL, &at_most),
                       fresh = w.before + (before - cut->freed - w.n_active);
        w.shown = now > fresh ? now - fresh : 0;
        a->aside.waiting = w;
    }
    if (a->aside.list.len) base_buf_puts(&a->aside.list, ", ");
    if (names.len) base_buf_puts(&a->aside.list, names.data);
out:
    base_buf_free(&names);
    base_buf_free(&price);
    return rc;
}

/* Below the fixed prompt a cut comes to no end: told once of each budget, with one that is enough. */
static void tell_small_budget(agent *a, uint32_t budget)
{
    const uint32_t fixed = a->turn ? a->transcript.turn_starts[1] : agent__n_tokens(a),
                   least = (uint32_t)ceil(fixed / low);
    if (!budget || budget >= least || a->aside.small_told == budget) return;
    a->aside.small_told = budget;
    agent__notice(a,
        "a budget of %s tokens is too small: %s stand in front of every request, and a cut goes down to "
        "%.0f%% of the budget. At least %s are enough for that, and what is said comes on top of it",
        BASE_THOUSANDS(budget), BASE_THOUSANDS(fixed), low * 100, BASE_THOUSANDS(least));
}

int agent__hold_budget(agent *a, const char *message, base_err *err)
{
    kv_stats s;
    if (!agent__is_priced(a)) return 0;
    a->engine->ops->stats(a->engine, &s);
    tell_small_budget(a, s.budget);
    if (!s.budget || s.active <= s.budget || s.active < a->aside.refused_at + s.budget / 10) return 0;
    agent_cut_parts c = {0};
    agent_cut cut;
    find_cut(a, message, s.active - (uint32_t)(low * s.budget), &c, &cut);
    const bool is_offered = agent_cut_is_offered(&cut, s.active, s.budget, a->info.n_ctx);
    const int rc = is_offered ? apply(a, &c, &cut, s.active, err) : 0;
    free(cut.out);
    agent_cut_parts_free(&c);
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
    agent_cut_parts c = {0};
    base_buf name = {0};
    base_buf_printf(&name, "tokens %u to %u", from, to - 1);
    agent_cut_parts_add(&c, from, to, KV_REASON_MANUAL, &name);
    const int rc = cut.freed ? apply(a, &c, &cut, s.active, err) : 0;
    agent_cut_parts_free(&c);
    free(cut.out);
    return rc;
}

/* --- telling -------------------------------------------------------------------------------------------- */

void agent__tell_span_budget(agent *a)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    if (!s.budget) {
        agent__notice(a, "no budget: all %s tokens are sent, %s are put aside", BASE_THOUSANDS(s.active),
            BASE_THOUSANDS(s.host));
        return;
    }
    agent_cut_parts c = {0};
    agent_cut cut;
    base_buf names = {0}, price = {0};
    const uint32_t to = (uint32_t)(low * s.budget);
    find_cut(a, a->request ? a->request : "", s.active > to ? s.active - to : 0, &c, &cut);
    put_names(a, &c, &cut, &names);
    put_price(&cut, &price);
    agent__notice(a, "budget %s tokens of a request; %s are sent, %s are put aside", BASE_THOUSANDS(s.budget),
        BASE_THOUSANDS(s.active), BASE_THOUSANDS(s.host));
    if (cut.freed)
        agent__notice(a, "a cut to %s now would put %s tokens aside (%s); %s%s", BASE_THOUSANDS(to),
            BASE_THOUSANDS(cut.freed), names.data ? names.data : "", price.data,
            s.active <= s.budget || agent_cut_is_offered(&cut, s.active, s.budget, a->info.n_ctx)
                ? ""
                : ". It is not made yet: that is too little for its price");
    tell_small_budget(a, s.budget);
    free(cut.out);
    agent_cut_parts_free(&c);
    base_buf_free(&names);
    base_buf_free(&price);
}

void agent__put_paid(agent *a, const engine_request *r, base_buf *out)
{
    const agent_price w = a->aside.waiting;
    a->aside.waiting.is_open = false;
    if (!w.is_open) return;
    base_buf_printf(out, "%sa cut: %s%s tokens to compute again were shown, ", out->len ? "; " : "",
        w.at_most ? "at most " : "", BASE_THOUSANDS(w.shown));
    const int64_t fresh =
        (int64_t)w.before + r->sent - w.n_active; /* what it had computed without a cut, too */
    if (r->computed < 0)
        base_buf_puts(out, "what was paid is not told");
    else
        base_buf_printf(out, "%s paid", BASE_THOUSANDS(r->computed > fresh ? r->computed - fresh : 0));
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
