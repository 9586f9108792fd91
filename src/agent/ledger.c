/*
 * The ledger sums a turn up: tokens computed and reused, rows evicted and promoted, and why. A plan's runs
 * are for people (joined over lanes that nearly agree); its flips are exact. So rows are counted from the
 * flips against the lanes as they are just before the plan is applied, the runs only say the reason, and the
 * mean over lanes is rounded once, when it is told.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/parts.h"
#include "base/mem.h"

enum { EVICTED, PROMOTED, N_SIDES, MAX_SCORES = 512 };

static const char *const verbs[] = {[EVICTED] = "evicted", [PROMOTED] = "promoted"};

/* --- counting ------------------------------------------------------------------------------------------- */

/* How many lanes each token leaves and enters, [n_tokens] each. */
static void count_flips(const agent *a, const kv_plan *p, uint32_t *counts[N_SIDES])
{
    uint32_t words = kv_plan_words(p);
    uint64_t *active = base_xcalloc(agent__n_tokens(a) / 64 + words + 1, sizeof *active);
    for (uint32_t lane = 0; lane < p->n_lanes; lane++) {
        kv_session_lane_bits(a->engine->session, lane, active);
        for (uint32_t w = 0; w < words; w++) {
            uint64_t flips = p->flips[(size_t)lane * words + w];
            for (; flips; flips &= flips - 1) {
                uint32_t bit = (uint32_t)__builtin_ctzll(flips);
                counts[active[w] >> bit & 1 ? EVICTED : PROMOTED][w * 64 + bit]++;
            }
        }
    }
    free(active);
}

/* Gives up to `most` rows of each token of a run to the run's reason. */
static void take_rows(
    agent *a, const kv_plan_run *r, uint32_t n_tokens, uint32_t most, uint32_t *counts[N_SIDES])
{
    if (r->reason >= KV_N_REASONS ||
        (r->action != KV_EVICT && r->action != KV_PROMOTE && r->action != KV_BAR))
        return;
    int side = r->action == KV_PROMOTE ? PROMOTED : EVICTED;
    for (uint32_t i = r->from; i < r->to && i < n_tokens; i++) {
        uint32_t rows = counts[side][i] < most ? counts[side][i] : most;
        counts[side][i] -= rows;
        a->ledger.sums.rows_by[side][r->reason] += rows;
    }
}

/* For rows that no run names (a pin brings rows back by a run of its own action). */
static kv_reason reason_of_cause(kv_cause c)
{
    static const kv_reason reasons[] = {[KV_CAUSE_EVICT] = KV_REASON_BUDGET,
        [KV_CAUSE_REPAIR] = KV_REASON_REPAIR_ANCHOR,
        [KV_CAUSE_MANUAL] = KV_REASON_MANUAL,
        [KV_CAUSE_STALE] = KV_REASON_STALE,
        [KV_CAUSE_FAILED] = KV_REASON_FAILED,
        [KV_CAUSE_PRESSURE] = KV_REASON_PRESSURE,
        [KV_CAUSE_PRUNE] = KV_REASON_ATTENTION,
        [KV_CAUSE_ANSWER] = KV_REASON_ATTENTION,
        [KV_CAUSE_FOLD] = KV_REASON_MANUAL};
    return c < sizeof reasons / sizeof *reasons ? reasons[c] : KV_REASON_MANUAL;
}

void agent__count_plan(agent *a, const kv_plan *p)
{
    uint32_t *counts[N_SIDES];
    for (int side = 0; side < N_SIDES; side++)
        counts[side] = base_xcalloc(p->n_tokens + 1, sizeof *counts[side]);
    count_flips(a, p, counts);
    /* Fresh rows that go above the cut come from nowhere: they are computed, not brought back. */
    if (p->cause == KV_CAUSE_PRUNE) memset(counts[PROMOTED], 0, p->n_tokens * sizeof *counts[PROMOTED]);
    /* First what each run claims; then what joining left over goes to the first run that covers it. */
    for (uint32_t i = 0; i < p->n_runs; i++) take_rows(a, &p->runs[i], p->n_tokens, p->runs[i].lanes, counts);
    for (uint32_t i = 0; i < p->n_runs; i++) take_rows(a, &p->runs[i], p->n_tokens, UINT32_MAX, counts);
    for (int side = 0; side < N_SIDES; side++) {
        for (uint32_t i = 0; i < p->n_tokens; i++)
            a->ledger.sums.rows_by[side][reason_of_cause(p->cause)] += counts[side][i];
        free(counts[side]);
    }
}

/* --- telling -------------------------------------------------------------------------------------------- */

/*
 * "evicted 512 budget, 40 stale": rows per lane by the plans' own reasons. Returns their sum, the rounded
 * mean of all: what rounding down loses goes to the reasons with the largest remainders.
 */
static uint32_t put_why(const agent *a, int side, uint32_t n_lanes, base_buf *out)
{
    const uint64_t *rows = a->ledger.sums.rows_by[side];
    uint64_t total = 0, mean[KV_N_REASONS], rest[KV_N_REASONS], lanes = n_lanes ? n_lanes : 1;
    for (int r = 0; r < KV_N_REASONS; r++) total += rows[r];
    const uint64_t all = (total + lanes / 2) / lanes;
    uint64_t left = all;
    for (int r = 0; r < KV_N_REASONS; r++) {
        mean[r] = rows[r] / lanes;
        rest[r] = rows[r] % lanes;
        left -= mean[r];
    }
    for (; left; left--) { /* fewer than there are reasons with a remainder */
        int most = 0;
        for (int r = 1; r < KV_N_REASONS; r++)
            if (rest[r] > rest[most]) most = r;
        mean[most]++;
        rest[most] = 0;
    }
    bool first = true;
    for (int r = 0; r < KV_N_REASONS; r++) {
        if (!mean[r]) continue;
        if (first && out->len) base_buf_puts(out, "; ");
        if (first) base_buf_printf(out, "%s ", verbs[side]);
        base_buf_printf(
            out, "%s%llu %s", first ? "" : ", ", (unsigned long long)mean[r], kv_reason_word((kv_reason)r));
        first = false;
    }
    return (uint32_t)all;
}

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
static double spared_share(const agent *a, uint32_t from, uint32_t n, uint32_t n_lanes)
{
    uint64_t left = 0;
    for (uint32_t i = from; a->engine->session && i < n; i++) {
        const uint32_t cut = kv_session_cut(a->engine->session, i);
        if (cut) left += (a->info.n_layer - cut) * (uint64_t)(a->info.n_lanes / a->info.n_layer);
    }
    return n > from ? (double)left / ((double)(n - from) * n_lanes) : 0;
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

void agent__ledger(agent *a)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    base_buf why = {0};
    uint32_t moved[N_SIDES],
        reused = a->ledger.sums.n_before < s.n_tokens ? a->ledger.sums.n_before : s.n_tokens;
    for (int side = 0; side < N_SIDES; side++) moved[side] = put_why(a, side, s.n_lanes, &why);
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
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_ledger,
                       .ledger = {.turn = a->turn,
                           .new = s.n_tokens - reused,
                           .reused = reused,
                           .generated = a->ledger.sums.generated,
                           .evicted = moved[0],
                           .promoted = moved[1],
                           .protected = s.protected_,
                           .active = s.active,
                           .host = s.host,
                           .budget = s.budget,
                           .until = s.until,
                           .n = s.n_tokens,
                           .ctx = s.endless ? 0 : s.n_ctx,
                           .prefill_s = (double)a->ledger.sums.prefill_ns / 1e9,
                           .decode_tps = decode_s > 0 ? a->ledger.sums.generated / decode_s : 0,
                           .drafted = (int64_t)a->ledger.sums.drafted,
                           .accepted = (int64_t)a->ledger.sums.accepted,
                           .active_bytes = (int64_t)s.active_bytes,
                           .host_bytes = (int64_t)s.host_bytes,
                           .why = why.len ? why.data : NULL,
                           .structure = is_code ? structure.share : 0,
                           .chance = is_code ? structure.chance : 0,
                           .ceiling = is_code ? structure.ceiling : 0,
                           .read = read,
                           .kept = kept,
                           .deferred = s.deferred,
                           .spared = spared_share(a, reused, s.n_tokens, s.n_lanes),
                           .computed = a->ledger.sums.computed,
                           .unread = row_steps > 0 ? (int64_t)(skipped / row_steps + .5) : 0}});
    base_buf_free(&why);
    keep_sums(a);
}

/* --- an earlier turn's ---------------------------------------------------------------------------------- */

/* "512 budget" of a logged `why` back into rows. */
static void restore_rows(agent *a, int side, const char *why)
{
    const char *at = why ? strstr(why, verbs[side]) : NULL;
    if (!at) return;
    at += strlen(verbs[side]);
    for (bool more = true; more;) {
        char *end;
        uint64_t rows = strtoull(at, &end, 10);
        if (end == at || *end != ' ') return;
        size_t n = strcspn(++end, ",;");
        for (int r = 0; r < KV_N_REASONS; r++) {
            const char *word = kv_reason_word((kv_reason)r);
            if (strlen(word) == n && !strncmp(word, end, n) && rows <= UINT32_MAX)
                a->ledger.sums.rows_by[side][r] = rows * a->info.n_lanes;
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
    for (int side = 0; side < N_SIDES; side++) restore_rows(a, side, e->ledger.why);
    keep_sums(a);
}

void agent__rewind_sums(agent *a)
{
    a->ledger.sums = a->turn < a->ledger.n_turns ? a->ledger.turns[a->turn] : (agent_sums){0};
}
