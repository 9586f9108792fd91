/* Looking at a session: counts, states, scores, reasons. Nothing here changes anything. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kv/plan/walk.h"
#include "kv/core/state.h"
#include "kv/plan/apply.h"
#include "kv/policy/policy.h"
#include "kv/read/reading.h"
#include "kv/session.h"

static uint64_t count_waste(const kv_session *s)
{
    uint64_t n = s->file ? kv_rowfile_rows(s->file) : 0;
    for (uint32_t i = 0; i < s->n && n; i++) n -= s->file_row[i] != KV_NO_ROW;
    return n;
}

void kv_session_get_stats(const kv_session *s, kv_stats *ret)
{
    *ret = (kv_stats){
        .n_tokens = s->n,
        .n_ctx = s->n_ctx,
        .endless = kv__is_endless(s),
        .folded_to = s->fold.n * MODEL_ROWS_GROUP,
        .outshone = kv_bits_count(s->outshone, kv_bits_words(s->n)),
        .budget = s->budget,
        .until = s->until,
        .n_lanes = s->n_whole,
        .n_all_lanes = s->n_lanes,
        .active_min = s->n,
        .barred = kv_bits_count(s->barred, kv_bits_words(s->n)),
        .protected_ = kv__count_hard(s),
        .epoch = s->epoch,
        .reused = s->reused,
        .computed = s->computed,
        .score_ms = s->score_ms,
        .plan_ms = s->plan_ms,
        .file_bytes = s->file ? kv_rowfile_bytes(s->file) : 0,
        .file_waste = count_waste(s),
    };
    if (s->compute.state_bytes) {
        ret->state_bytes = s->compute.state_bytes;
        ret->states_bytes = kv_states_bytes(&s->states);
        ret->states = s->states.n_kept;
        ret->states_most = kv_states_most(s);
        ret->walked = s->states.walked;
        ret->to_walk = kv__to_walk(s);
    }
    const model_rows8_error *e = &s->table.rounding;
    ret->key_error = e->key_all > 0 ? sqrt(e->key / e->key_all) : 0;
    ret->value_error = e->value_all > 0 ? sqrt(e->value / e->value_all) : 0;
    for (uint32_t b = 0; b < s->table.n; b++)
        if (s->table.blocks[b]->packed) ret->in_8_bits += MODEL_ROWS_BLOCK;
    kv__reading_stats(s, &ret->reads);
    uint64_t active = 0, windows = 0; /* row-lanes; windows: in layers that read no more than these */
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        const uint32_t n = s->lists.view[lane].n_rows, window = kv__window(s, lane);
        if (window) {
            windows += n < window ? n : window;
            continue;
        }
        active += n;
        if (n < ret->active_min) ret->active_min = n;
        if (n > ret->active_max) ret->active_max = n;
    }
    const uint64_t lane_row_bytes = kv_row_bytes(&s->compute.shape) / s->n_lanes;
    ret->active = (uint32_t)((active + s->n_whole / 2) / s->n_whole);
    ret->lost = kv_bits_count(s->lost, kv_bits_words(s->n));
    const uint64_t deferred = kv__deferred_rows(s);
    /* The three are rounded means: they add up all the same. */
    ret->deferred = (uint32_t)((deferred + s->n_whole / 2) / s->n_whole);
    if (ret->deferred > s->n - ret->active - ret->lost) ret->deferred = s->n - ret->active - ret->lost;
    ret->deferred_tokens = kv__deferred_tokens(s);
    ret->computed_above = s->computed_above;
    ret->host = s->n - ret->active - ret->lost - ret->deferred;
    ret->active_bytes = (active + windows) * lane_row_bytes;
    ret->host_bytes = ((uint64_t)(s->n - ret->lost) * s->n_whole - active - deferred) * lane_row_bytes;
}

const int32_t *kv_session_ids(const kv_session *s, uint32_t *ret_n)
{
    *ret_n = s->n;
    return s->ids;
}

uint32_t kv_session_room(const kv_session *s)
{
    return s->n_ctx - s->n;
}

const char *kv_session_policy(const kv_session *s)
{
    return s->policy->info.name;
}

uint64_t kv_session_schedule_hash(const kv_session *s)
{
    return s->schedule;
}

void kv_session_active_lanes(const kv_session *s, uint32_t *ret)
{
    memset(ret, 0, s->n * sizeof *ret);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        const model_lane_list *list = &s->lists.view[lane];
        for (uint32_t r = 0; r < list->n_runs && !kv__window(s, lane); r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++) ret[list->runs[r].index + i]++;
    }
}

uint32_t kv_session_window(const kv_session *s, uint32_t lane)
{
    return kv__window(s, lane);
}

void kv_session_lane_bits(const kv_session *s, uint32_t lane, uint64_t *ret)
{
    memcpy(ret, s->lists.lane[lane]->bits, kv_bits_words(s->n) * sizeof *ret);
}

void kv_session_why(const kv_session *s, uint32_t i, kv_why *ret)
{
    *ret = (kv_why){
        .last_action = KV_ACTION_NONE, .attention = NAN, .memory = NAN, .rank = NAN, .threshold = NAN};
    if (i >= s->n) return;
    const kv_token *t = &s->tokens[i];
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        ret->lanes_active += !kv__window(s, lane) && kv_bits_get(s->lists.lane[lane]->bits, i);
    ret->pivot = s->cut[i];
    ret->pinned = kv_bits_get(s->pinned, i);
    ret->barred = kv_bits_get(s->barred, i);
    ret->stale = kv_bits_get(s->stale, i);
    ret->outshone = kv_bits_get(s->outshone, i);
    ret->last_action = t->last_action;
    ret->last_reason = t->last_reason;
    ret->last_turn = t->last_turn;
    ret->attention = t->attention;
    ret->memory = t->memory;
    ret->rank = t->rank;
    ret->threshold = t->threshold;
}

/* Mean of what is a number; NAN of nothing. */
typedef struct mean {
    double sum;
    uint32_t n;
} mean;

static void mean_add(mean *m, float x)
{
    if (x != x) return;
    m->sum += x;
    m->n++;
}

static float mean_get(const mean *m)
{
    return m->n ? (float)(m->sum / m->n) : NAN;
}

static kv_score score_range(const kv_session *s, const uint32_t *lanes, uint32_t from, uint32_t to)
{
    mean attention = {0}, memory = {0}, rank = {0}, threshold = {0}, active = {0};
    for (uint32_t i = from; i < to; i++) {
        mean_add(&attention, s->tokens[i].attention);
        mean_add(&memory, s->tokens[i].memory);
        mean_add(&rank, s->tokens[i].rank);
        mean_add(&threshold, s->tokens[i].threshold);
        mean_add(&active, (float)lanes[i] / (float)s->n_whole);
    }
    return (kv_score){.from = from,
        .to = to,
        .attention = mean_get(&attention),
        .memory = mean_get(&memory),
        .rank = mean_get(&rank),
        .threshold = mean_get(&threshold),
        .active = mean_get(&active)};
}

uint32_t kv_session_scores(const kv_session *s, kv_score *ret, uint32_t cap)
{
    uint32_t n = 0;
    uint32_t *lanes = base_xmalloc(((size_t)s->n + 1) * sizeof *lanes);
    if (cap) kv_session_active_lanes(s, lanes);
    for (size_t i = 0; i < s->n_segments; i++) {
        const kv_stored_segment *part = &s->segments[i];
        for (uint32_t k = 0; k <= part->n_spans; k++) {
            const kv_span *span = k ? &part->spans[k - 1] : NULL;
            const uint32_t from = part->from + (span ? span->from : 0),
                           to = span && part->from + span->to < part->to ? part->from + span->to : part->to;
            if (from >= to) continue;
            if (n < cap) {
                ret[n] = score_range(s, lanes, from, to);
                ret[n].turn = part->turn;
                ret[n].origin = (uint8_t)part->origin;
                ret[n].reason = span ? span->reason : KV_N_REASONS;
            }
            n++;
        }
    }
    free(lanes);
    return n;
}
