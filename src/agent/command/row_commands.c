/*
 * Commands about rows: what the session holds, how many rows the model reads, and a person's hand on them, which goes through plans
 * like any other change.
 */
#include "agent/command/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sequence/sequence.h"
#include "agent/session/ledger.h"
#include "agent/session/tell.h"
#include "base/mem.h"
#include "base/numbers.h"

typedef int range_fn(agent *a, uint32_t from, uint32_t to, void *user, base_err *err);

/*
 * What a person points at: "120-180" (tokens, both ends too, as the screen counts), "last" (the newest result
 * or excerpt), else every segment whose path or label has the text. Returns how many ranges there were in
 * *ret_n.
 */
static int for_ranges(agent *a, const char *what, range_fn *fn, void *user, uint32_t *ret_n, base_err *err)
{
    unsigned from, to;
    char behind;
    *ret_n = 0;
    if (!*what)
        return base_fail(err, BASE_E_USAGE,
            "say which rows: FROM-TO, \"last\", or a part of a path or label (/context lists them)");
    int fields = sscanf(what, "%u-%u%c", &from, &to, &behind);
    if (fields == 2 || (fields == 1 && sscanf(what, "%u%c", &from, &behind) == 1)) {
        if (fields == 1) to = from;
        if (to < from || to >= agent__n_tokens(a))
            return base_fail(err, BASE_E_USAGE, "there are no rows %s: the session has 0-%u", what,
                agent__n_tokens(a) ? agent__n_tokens(a) - 1 : 0);
        *ret_n = 1;
        return fn(a, from, to + 1, user, err);
    }
    int rc = 0;
    bool last = !strcmp(what, "last");
    for (size_t i = a->transcript.n_segments; i > 0 && !rc; i--) {
        const agent_segment *p = &a->transcript.segments[i - 1];
        bool named = (p->path && strstr(p->path, what)) ||
                     (p->label && strstr(p->label, what) && p->origin != KV_ORIGIN_SCAFFOLD);
        if (last ? p->origin != KV_ORIGIN_TOOL && p->origin != KV_ORIGIN_CONTEXT : !named) continue;
        rc = fn(a, p->from, p->to, user, err);
        ++*ret_n;
        if (last) break;
    }
    if (!rc && !*ret_n)
        return base_fail(err, BASE_E_NOT_FOUND,
            "nothing in this session is called \"%s\": /context lists what there is", what);
    return rc;
}

static int do_manual(agent *a, uint32_t from, uint32_t to, void *user, base_err *err)
{
    return agent__manual(a, *(kv_manual *)user, from, to, err);
}

static int manual(agent *a, kv_manual what, const char *verb, const char *arguments, base_err *err)
{
    uint32_t n;
    int rc = for_ranges(a, arguments, do_manual, &what, &n, err);
    if (!rc) agent__notice(a, "%s %s", verb, arguments);
    return rc;
}

/* --- commands ------------------------------------------------------------------------------------------- */

int agent__run_pin(agent *a, const char *arguments, base_err *err)
{
    return manual(a, KV_MANUAL_PIN, "pinned", arguments, err);
}

int agent__run_unpin(agent *a, const char *arguments, base_err *err)
{
    return manual(a, KV_MANUAL_UNPIN, "no longer pinned:", arguments, err);
}

int agent__run_drop(agent *a, const char *arguments, base_err *err)
{
    return manual(a, KV_MANUAL_DROP, "put aside until you /promote it:", arguments, err);
}

int agent__run_evict(agent *a, const char *arguments, base_err *err)
{
    return manual(a, KV_MANUAL_EVICT, "evicted", arguments, err);
}

int agent__run_promote(agent *a, const char *arguments, base_err *err)
{
    return manual(a, KV_MANUAL_PROMOTE, "brought back", arguments, err);
}

int agent__run_undo_evict(agent *a, const char *arguments, base_err *err)
{
    kv_session *session;
    int rc = agent__get_session(a, &session, err);
    if (!rc) rc = kv_session_undo_plan(session, err);
    if (!rc) agent__notice(a, "the last change of the rows is taken back");
    return rc;
}

int agent__run_budget(agent *a, const char *arguments, base_err *err)
{
    kv_stats s;
    int rc = 0;
    if (*arguments) {
        kv_budget budget;
        if ((rc = kv_budget_parse(arguments, &budget, err))) return rc;
        rc = agent__set_budget(a, &budget, err);
    }
    if (!rc && agent__is_priced(a)) {
        agent__tell_span_budget(a);
        if (*arguments) agent__ledger(a);
        return 0;
    }
    a->engine->ops->stats(a->engine, &s);
    char grace[80] = "";
    if (s.until)
        snprintf(grace, sizeof grace, " (nothing leaves before there are %s)", BASE_THOUSANDS(s.until));
    if (!rc && s.budget)
        agent__notice(a, "budget %s rows a lane%s; %s active of %s tokens, %s in the host tier",
            BASE_THOUSANDS(s.budget), grace, BASE_THOUSANDS(s.active), BASE_THOUSANDS(s.n_tokens),
            BASE_THOUSANDS(s.host));
    else if (!rc)
        agent__notice(a, "no budget: all %s tokens stay active", BASE_THOUSANDS(s.n_tokens));
    if (!rc && s.budget && a->info.measured.rows)
        agent__notice(a,
            "measured on this machine: few rows are faster from %s on, so auto is at most %u/%u, less where "
            "a quarter of the free memory holds less (kvist kv pace measures again)",
            BASE_THOUSANDS(a->info.measured.until), a->info.measured.until, a->info.measured.rows);
    else if (!rc && s.budget)
        agent__notice(a, "auto is what a quarter of the free memory holds, 4,096 "
                         "to 16,384 rows: from when on few rows are faster has "
                         "not been found out on this machine (kvist kv pace)");
    if (!rc && s.in_8_bits)
        agent__notice(a,
            "%s tokens are kept in 8 bits: rounding changed keys by %.2f%%, values by %.2f%% (rms)",
            BASE_THOUSANDS(s.in_8_bits), s.key_error * 100, s.value_error * 100);
    if (!rc && *arguments) agent__ledger(a); /* the screen's numbers are the ledger's */
    return rc;
}

static double active_share(const agent *a, const uint32_t *lanes, uint32_t from, uint32_t to)
{
    uint64_t sum = 0;
    for (uint32_t i = from; i < to; i++) sum += lanes[i];
    return to > from ? (double)sum / ((double)(to - from) * a->info.n_lanes) : 0;
}

/* The fixed prompt is a dozen messages, told as one: the last of those that follow one another from i on. */
static size_t last_of_prompt(const agent *a, size_t i, uint32_t n_tokens)
{
    size_t last = i;
    if (a->transcript.segments[i].origin != KV_ORIGIN_SYSTEM) return i;
    for (size_t k = i + 1; k < a->transcript.n_segments && a->transcript.segments[k].to <= n_tokens; k++) {
        if (a->transcript.segments[k].origin == KV_ORIGIN_SYSTEM)
            last = k;
        else if (a->transcript.segments[k].origin != KV_ORIGIN_SCAFFOLD)
            break;
    }
    return last;
}

int agent__run_context(agent *a, const char *arguments, base_err *err)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    uint32_t *lanes = base_xcalloc(s.n_tokens + 1, sizeof *lanes);
    agent__active_lanes(a, lanes);
    base_buf out = {0};
    base_buf_puts(&out, BASE_THOUSANDS(s.n_tokens));
    if (!s.endless) base_buf_printf(&out, " of %s", BASE_THOUSANDS(s.n_ctx));
    base_buf_puts(&out, " tokens");
    if (s.folded_to) base_buf_printf(&out, ", the first %s folded", BASE_THOUSANDS(s.folded_to));
    if (s.outshone) base_buf_printf(&out, ", %s outshone by what was asked for", BASE_THOUSANDS(s.outshone));
    const uint32_t limit = (uint32_t)agent_limit_now(s.budget, s.until, s.host);
    base_buf_printf(&out, "; active %s of %s %s", BASE_THOUSANDS(s.active),
        BASE_THOUSANDS(limit ? limit : s.n_tokens),
        agent__is_priced(a) ? "tokens of a request" : "rows a lane");
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->origin == KV_ORIGIN_SCAFFOLD || p->to > s.n_tokens || p->to <= p->from) continue;
        i = last_of_prompt(a, i, s.n_tokens);
        const uint32_t to = a->transcript.segments[i].to;
        base_buf_printf(&out, "\n%u-%u\t%s\t", p->from, to - 1, kv_origin_word(p->origin));
        if (p->path)
            base_buf_printf(&out, "%s:%u-%u", p->path, p->line, p->line_end);
        else
            base_buf_puts(&out, p->label ? p->label : "");
        base_buf_printf(
            &out, "\t%.0f%% active%s", 100 * active_share(a, lanes, p->from, to), p->stale ? ", stale" : "");
    }
    agent__notice(a, "%s", out.data);
    base_buf_free(&out);
    free(lanes);
    return 0;
}

static int why_of(agent *a, uint32_t from, uint32_t to, void *user, base_err *err)
{
    base_buf *out = user;
    kv_stats s;
    kv_session *session;
    int rc = agent__get_session(a, &session, err);
    if (rc) return rc;
    a->engine->ops->stats(a->engine, &s);
    kv_why w;
    uint32_t at = to > from ? from + (to - from) / 2 : from; /* the middle speaks for a range */
    kv_session_why(session, at < s.n_tokens ? at : from, &w);
    base_buf_printf(out, "%s%u", out->len ? "\n" : "", from);
    if (to - from > 1) base_buf_printf(out, "-%u", to - 1);
    base_buf_printf(out, ": active in %u of %u lanes", w.lanes_active, s.n_lanes);
    if (s.n_all_lanes > s.n_lanes)
        base_buf_printf(out,
            " (%u more are of layers with a window, which read the newest %u tokens whatever is active)",
            s.n_all_lanes - s.n_lanes, a->info.window);
    if (w.pinned) base_buf_puts(out, ", pinned");
    if (w.barred) base_buf_puts(out, ", barred");
    if (w.stale) base_buf_puts(out, ", stale");
    if (w.outshone)
        base_buf_puts(
            out, ", outshone: the last request asks for another line much more, so only calls read this one");
    if (w.last_action != 255)
        base_buf_printf(out, "; last %s for %s in turn %u", kv_action_word((kv_action)w.last_action),
            kv_reason_word((kv_reason)w.last_reason), w.last_turn);
    if (w.attention == w.attention) base_buf_printf(out, "; attention %.3g", (double)w.attention);
    if (w.memory == w.memory) base_buf_printf(out, ", memory %.3g", (double)w.memory);
    if (w.rank == w.rank)
        base_buf_printf(out, ", rank %.2f against a threshold of %.2f", (double)w.rank, (double)w.threshold);
    return 0;
}

int agent__run_why(agent *a, const char *arguments, base_err *err)
{
    base_buf out = {0};
    uint32_t n;
    int rc = for_ranges(a, arguments, why_of, &out, &n, err);
    if (!rc) agent__notice(a, "%s", out.data);
    base_buf_free(&out);
    return rc;
}
