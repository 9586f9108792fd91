/*
 * The ledger sums a turn up: tokens computed and reused, rows evicted and promoted (moved.h), and why.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/session/ledger.h"
#include "agent/session/tell.h"
#include "base/mem.h"

enum { MAX_SCORES = 512 };

/* --- counting ------------------------------------------------------------------------------------------- */

void agent__count_plan(agent *a, const kv_plan *p)
{
    agent_moved_count(&a->ledger.sums.moved, a->engine->session, p);
}

/* --- telling -------------------------------------------------------------------------------------------- */

static void keep_sums(agent *a)
{
    base_grow(&a->ledger.turns, &a->ledger.cap_turns, a->turn + 1, sizeof *a->ledger.turns);
    while (a->ledger.n_turns <= a->turn) a->ledger.turns[a->ledger.n_turns++] = (agent_sums){0};
    a->ledger.turns[a->turn] = a->ledger.sums;
}

static void emit_scores(agent *a)
{
    kv_score *scores = base_xcalloc(MAX_SCORES, sizeof *scores);
    uint32_t n = kv_session_scores(a->engine->session, scores, MAX_SCORES);
    if (n > MAX_SCORES) n = MAX_SCORES;
    agent_score_row *rows = base_xcalloc(n + 1, sizeof *rows);
    for (uint32_t i = 0; i < n; i++) {
        const kv_score *s = &scores[i];
        rows[i] = (agent_score_row){s->from, s->to, kv_origin_word((kv_origin)s->origin),
            s->reason < KV_N_REASONS ? kv_reason_word((kv_reason)s->reason) : NULL, (double)s->attention,
            (double)s->memory, (double)s->rank, (double)s->threshold, (double)s->active};
    }
    if (n)
        agent__emit(
            a, &(agent_event){.type = AGENT_EVENT_scores, .scores = {.turn = a->turn, .spans = {rows, n}}});
    free(rows);
    free(scores);
}

/* Which sentences the turn's last token read, and in how many lanes; nothing where tokens read everything. */
static void emit_sections(agent *a, const kv_stats *s)
{
    uint32_t n = kv_session_sections(a->engine->session, NULL, 0);
    if (!n || s->reads.steps == a->ledger.reads.steps) return;
    kv_section *sections = base_xcalloc(n, sizeof *sections);
    agent_section_row *rows = base_xcalloc(n, sizeof *rows);
    size_t n_rows = 0;
    kv_session_sections(a->engine->session, sections, n);
    for (uint32_t i = 0; i < n; i++)
        if (sections[i].lanes)
            rows[n_rows++] = (agent_section_row){sections[i].from, sections[i].to, sections[i].lanes};
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_sections,
                       .sections = {.turn = a->turn,
                           .index = s->n_tokens ? s->n_tokens - 1 : 0,
                           .lanes = s->n_lanes,
                           .items = {rows, n_rows}}});
    free(rows);
    free(sections);
}

static double share_of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* The share of the turn's prefill, in tokens times layers, that was not computed up to now. */
static double spared_share(const agent *a, uint32_t from, uint32_t n)
{
    uint64_t left = 0;
    for (uint32_t i = from; a->engine->session && i < n; i++) {
        const uint32_t cut = kv_session_cut(a->engine->session, i);
        if (cut) left += a->info.n_layer - cut;
    }
    return n > from ? (double)left / ((double)(n - from) * a->info.n_layer) : 0;
}

void agent__forget_counts(agent *a)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    a->ledger.reads = s.reads;
    a->ledger.computed_above = s.computed_above;
    kv_visits visits;
    if (a->engine->session) kv_session_take_visits(a->engine->session, &visits, NULL);
}

agent_event agent_ledger_of(const kv_stats *s)
{
    return (agent_event){.type = AGENT_EVENT_ledger,
        .ledger = {.protected = s->protected_,
            .active = s->active,
            .host = s->host,
            .budget = s->budget,
            .until = s->until,
            .n = s->n_tokens,
            .ctx = s->endless ? 0 : s->n_ctx,
            .active_bytes = (int64_t)s->active_bytes,
            .host_bytes = (int64_t)s->host_bytes,
            .deferred = s->deferred}};
}

/* Tokens that decode_ns is the time of; 0: so few that an engine elsewhere may have sent them at once, with their first. */
static uint32_t paced_tokens(const agent_sums *s)
{
    enum { FEW = 4 };
    const uint32_t n = s->generated > s->n_awaited ? s->generated - s->n_awaited : 0;
    return s->n_awaited && n < FEW ? 0 : n;
}

void agent__ledger(agent *a)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    base_buf why = {0};
    uint32_t moved[AGENT_N_SIDES],
        reused = a->ledger.sums.n_before < s.n_tokens ? a->ledger.sums.n_before : s.n_tokens;
    for (int side = 0; side < AGENT_N_SIDES; side++)
        moved[side] = agent_moved_put(&a->ledger.sums.moved, side, s.n_lanes, &why);
    if (s.outshone) base_buf_printf(&why, "%s%u tokens outshone", why.len ? "; " : "", s.outshone);
    if (a->engine->session) emit_scores(a);
    if (s.reads.steps < a->ledger.reads.steps)
        a->ledger.reads = (kv_reads){.steps = 0}; /* of another session */
    if (s.computed_above < a->ledger.computed_above) a->ledger.computed_above = 0;
    if (a->engine->session) emit_sections(a, &s);
    const double read = share_of(s.reads.read - a->ledger.reads.read, s.reads.live - a->ledger.reads.live),
                 kept =
                     share_of(s.reads.kept - a->ledger.reads.kept, s.reads.chosen - a->ledger.reads.chosen);
    const double row_steps = (double)(s.reads.steps - a->ledger.reads.steps) * s.n_lanes,
                 skipped = (double)(s.reads.live - a->ledger.reads.live) -
                           (double)(s.reads.read - a->ledger.reads.read);
    a->ledger.reads = s.reads;
    a->ledger.sums.computed += s.computed_above - a->ledger.computed_above;
    a->ledger.computed_above = s.computed_above;
    double decode_s = (double)a->ledger.sums.decode_ns / 1e9;
    kv_structure structure = {.n_tokens = 0};
    if (a->engine->session) kv_session_structure(a->engine->session, false, &structure);
    const bool is_code = structure.n_tokens > 0;
    agent_event e = agent_ledger_of(&s);
    e.ledger.turn = a->turn;
    e.ledger.new = s.n_tokens - reused;
    e.ledger.reused = reused;
    e.ledger.generated = a->ledger.sums.generated;
    e.ledger.evicted = moved[0];
    e.ledger.promoted = moved[1];
    e.ledger.prefill_s = (double)a->ledger.sums.prefill_ns / 1e9;
    e.ledger.decode_tps = decode_s > 0 ? paced_tokens(&a->ledger.sums) / decode_s : 0;
    e.ledger.drafted = (int64_t)a->ledger.sums.drafted;
    e.ledger.accepted = (int64_t)a->ledger.sums.accepted;
    e.ledger.why = why.len ? why.data : NULL;
    e.ledger.structure = is_code ? structure.share : 0;
    e.ledger.chance = is_code ? structure.chance : 0;
    e.ledger.ceiling = is_code ? structure.ceiling : 0;
    e.ledger.read = read;
    e.ledger.kept = kept;
    e.ledger.spared = spared_share(a, reused, s.n_tokens);
    e.ledger.computed = a->ledger.sums.computed;
    e.ledger.unread = row_steps > 0 ? (int64_t)(skipped / row_steps + .5) : 0;
    agent__emit(a, &e);
    base_buf_free(&why);
    keep_sums(a);
}

/* --- an earlier turn's ---------------------------------------------------------------------------------- */

/* "512 budget" of a logged `why` back into rows. */
static void restore_rows(agent *a, int side, const char *why)
{
    const char *at = why ? strstr(why, agent_side_words[side]) : NULL;
    if (!at) return;
    at += strlen(agent_side_words[side]);
    for (bool more = true; more;) {
        char *end;
        uint64_t rows = strtoull(at, &end, 10);
        if (end == at || *end != ' ') return;
        size_t n = strcspn(++end, ",;");
        for (int r = 0; r < KV_N_REASONS; r++) {
            const char *word = kv_reason_word((kv_reason)r);
            if (strlen(word) == n && !strncmp(word, end, n) && rows <= UINT32_MAX)
                a->ledger.sums.moved.rows[side][r] = rows * a->info.n_lanes;
        }
        more = end[n] == ',';
        at = end + n + more;
    }
}

static uint64_t to_ns(double seconds)
{
    const double most = 1e9; /* a log is a file: what it says is checked */
    return seconds > 0 && seconds < most ? (uint64_t)(seconds * 1e9) : 0;
}

void agent__restore_sums(agent *a, const agent_event *e)
{
    double generated = (double)e->ledger.generated;
    a->ledger.sums = (agent_sums){.n_before = (uint32_t)e->ledger.reused,
        .generated = (uint32_t)e->ledger.generated,
        .computed = (uint32_t)e->ledger.computed,
        .prefill_ns = to_ns(e->ledger.prefill_s),
        .drafted = (uint64_t)e->ledger.drafted,
        .accepted = (uint64_t)e->ledger.accepted,
        .decode_ns = e->ledger.decode_tps > 0 ? to_ns(generated / e->ledger.decode_tps) : 0};
    for (int side = 0; side < AGENT_N_SIDES; side++) restore_rows(a, side, e->ledger.why);
    keep_sums(a);
}

void agent__rewind_sums(agent *a)
{
    a->ledger.sums = a->turn < a->ledger.n_turns ? a->ledger.turns[a->turn] : (agent_sums){0};
}
