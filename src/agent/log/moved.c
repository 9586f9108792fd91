/* Rows that plans evict and promote, counted by reason (contract: moved.h). */
#include "agent/log/moved.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/session.h"

const char *const agent_side_words[AGENT_N_SIDES] = {
    [AGENT_EVICTED] = "evicted", [AGENT_PROMOTED] = "promoted"};

/* How many of the lanes that read everything each token leaves and enters, [n_tokens] each. */
static void count_flips(const kv_session *s, const kv_plan *p, uint32_t *counts[AGENT_N_SIDES])
{
    uint32_t words = kv_plan_words(p), n_tokens;
    kv_session_ids(s, &n_tokens);
    uint64_t *active = base_xcalloc(n_tokens / 64 + words + 1, sizeof *active);
    for (uint32_t lane = 0; lane < p->n_lanes; lane++) {
        if (kv_session_window(s, lane)) continue;
        kv_session_lane_bits(s, lane, active);
        for (uint32_t w = 0; w < words; w++) {
            uint64_t flips = p->flips[(size_t)lane * words + w];
            for (; flips; flips &= flips - 1) {
                uint32_t bit = (uint32_t)__builtin_ctzll(flips);
                counts[active[w] >> bit & 1 ? AGENT_EVICTED : AGENT_PROMOTED][w * 64 + bit]++;
            }
        }
    }
    free(active);
}

/* Gives up to `most` rows of each token of a run to the run's reason. */
static void take_rows(
    agent_moved *m, const kv_plan_run *r, uint32_t n_tokens, uint32_t most, uint32_t *counts[AGENT_N_SIDES])
{
    if (r->reason >= KV_N_REASONS ||
        (r->action != KV_EVICT && r->action != KV_PROMOTE && r->action != KV_BAR))
        return;
    int side = r->action == KV_PROMOTE ? AGENT_PROMOTED : AGENT_EVICTED;
    for (uint32_t i = r->from; i < r->to && i < n_tokens; i++) {
        uint32_t rows = counts[side][i] < most ? counts[side][i] : most;
        counts[side][i] -= rows;
        m->rows[side][r->reason] += rows;
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
        [KV_CAUSE_FOLD] = KV_REASON_MANUAL,
        [KV_CAUSE_THOUGHT] = KV_REASON_THOUGHT};
    return c < sizeof reasons / sizeof *reasons ? reasons[c] : KV_REASON_MANUAL;
}

void agent_moved_count(agent_moved *m, const kv_session *s, const kv_plan *p)
{
    for (uint32_t i = 0; !s && i < p->n_runs; i++) {
        const kv_plan_run *r = &p->runs[i];
        m->rows[r->action == KV_PROMOTE ? AGENT_PROMOTED : AGENT_EVICTED][r->reason] += r->to - r->from;
    }
    if (!s) return;
    uint32_t *counts[AGENT_N_SIDES];
    for (int side = 0; side < AGENT_N_SIDES; side++)
        counts[side] = base_xcalloc(p->n_tokens + 1, sizeof *counts[side]);
    count_flips(s, p, counts);
    /* Fresh rows that go above the cut come from nowhere: they are computed, not brought back. */
    if (p->cause == KV_CAUSE_PRUNE)
        memset(counts[AGENT_PROMOTED], 0, p->n_tokens * sizeof *counts[AGENT_PROMOTED]);
    /* First what each run claims; then what joining left over goes to the first run that covers it. */
    for (uint32_t i = 0; i < p->n_runs; i++) take_rows(m, &p->runs[i], p->n_tokens, p->runs[i].lanes, counts);
    for (uint32_t i = 0; i < p->n_runs; i++) take_rows(m, &p->runs[i], p->n_tokens, UINT32_MAX, counts);
    for (int side = 0; side < AGENT_N_SIDES; side++) {
        for (uint32_t i = 0; i < p->n_tokens; i++)
            m->rows[side][reason_of_cause(p->cause)] += counts[side][i];
        free(counts[side]);
    }
}

/* What rounding down loses goes to the reasons with the largest remainders. */
uint32_t agent_moved_put(const agent_moved *m, int side, uint32_t n_lanes, base_buf *out)
{
    const uint64_t *rows = m->rows[side];
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
        if (first) base_buf_printf(out, "%s ", agent_side_words[side]);
        base_buf_printf(
            out, "%s%llu %s", first ? "" : ", ", (unsigned long long)mean[r], kv_reason_word((kv_reason)r));
        first = false;
    }
    return (uint32_t)all;
}
