/*
 * A session's sequence as every file of the cache looks at it: views of its rows, its segments, and what has
 * been given up. Nothing here decides anything.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/session.h"

model_rows_view kv__view_of(const kv_session *s, const model_lane_list *lanes)
{
    return (model_rows_view){.shape = s->table.shape,
        .blocks = s->table.rows,
        .packed = s->table.packed,
        .filed = s->table.filed,
        .n_blocks = s->table.n,
        .lanes = lanes,
        .stamps = s->table.stamps,
        .gaps = s->fold.gaps,
        .n_gaps = s->fold.n};
}

model_rows_view kv__view_with(kv_session *s, const model_lane_list *lanes, const kv_block *hidden)
{
    const uint32_t spare = s->table.n;
    s->table.rows[spare] = hidden->rows;
    s->table.packed[spare] = NULL;
    s->table.filed[spare] = NULL;
    s->table.stamps[spare] = hidden->stamp;
    model_rows_view rows = kv__view_of(s, lanes);
    rows.n_blocks++;
    return rows;
}

model_rows_view kv__view(const kv_session *s)
{
    return kv__view_of(s, s->lists.view);
}

uint32_t kv__whole_from(const kv_session *s, uint32_t layer)
{
    uint32_t n = 0;
    for (uint32_t lane = layer * s->compute.shape.n_head_kv; lane < s->n_lanes; lane++)
        n += !kv__window(s, lane);
    return n;
}

int kv__whole_lists(const kv_session *s, kv_work *work, kv_lists *ret, base_err *err)
{
    *ret = s->lists;
    if (!s->window) return 0;
    kv_list *none = kv_work_zero(work, 1, sizeof *none);
    uint64_t *bits = kv_work_zero(work, s->lists.n_words, sizeof *bits);
    ret->lane = kv_work_take(work, s->n_lanes, sizeof(kv_list *));
    ret->view = kv_work_take(work, s->n_lanes, sizeof *ret->view);
    if (work->failed) return base_fail(err, BASE_E_NOMEM, "no memory for the lists of the cache's rows");
    none->bits = bits;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        const bool whole = !kv__window(s, lane);
        ret->lane[lane] = whole ? s->lists.lane[lane] : none;
        ret->view[lane] = whole ? s->lists.view[lane] : (model_lane_list){.n_rows = 0};
    }
    return 0;
}

void kv__bring(const kv_session *s)
{
    const model_rows_view rows = kv__view(s);
    if (s->compute.device.bring) s->compute.device.bring(s->compute.device.user, &rows);
}

void kv__set_limit(kv_session *s, kv_limit limit)
{
    s->budget = limit.rows;
    s->until = limit.rows && limit.until > limit.rows ? limit.until : 0;
}

bool kv__is_endless(const kv_session *s)
{
    return s->n_ctx == KV_NO_END;
}

/*
 * Without a budget nothing makes room, and excerpts that overlap (local) or sections that are chosen by
 * bounds (decode) know no fold. A budget of more than half of the context would be folded at every turn.
 */
void kv__set_end(kv_session *s)
{
    const uint32_t n_ctx = s->compute.n_ctx, least = 2 * (KV_FOLD_NEAR + KV_FOLD_BLOCK + 3 * KV_BATCH);
    const bool endless = !s->asked_ctx && s->compute.turn && s->budget && s->budget <= n_ctx / 2 &&
                         s->until <= n_ctx / 2 && n_ctx >= least && !(s->parameters.local > 0) &&
                         !(s->parameters.decode > 0);
    s->n_ctx = endless ? (uint32_t)KV_NO_END : s->asked_ctx && s->asked_ctx < n_ctx ? s->asked_ctx : n_ctx;
}

int kv__check_end(const kv_session *s, base_err *err)
{
    if (kv__is_endless(s) || (s->n <= s->n_ctx && !s->fold.n)) return 0;
    return base_fail(err, BASE_E_LIMIT,
        "this session went on behind the model's context (%u tokens, %u): it needs a budget of at most %u "
        "rows, and a policy that evicts",
        s->n, s->compute.n_ctx, s->compute.n_ctx / 2);
}

uint32_t kv__group_from(const kv_session *s, uint32_t to)
{
    for (size_t i = s->n_segments; i-- > 0;) {
        const kv_stored_segment *part = &s->segments[i];
        if (part->from >= to) continue;
        if (part->to != to || part->origin != KV_ORIGIN_CONTEXT) break;
        to = part->from;
    }
    return to;
}

uint32_t kv__phase_behind(const kv_session *s)
{
    const kv_stored_segment *part = s->n ? kv__segment_at(s, s->n - 1) : NULL;
    if (!part) return 0;
    uint32_t most = s->phases[s->n - 1];
    if (part->origin == KV_ORIGIN_CONTEXT)
        for (uint32_t t = kv__group_from(s, s->n); t < s->n; t++)
            if (s->phases[t] > most) most = s->phases[t];
    return most + 1;
}

uint32_t kv__extent(const kv_session *s)
{
    const uint32_t gap = s->fold.n ? s->fold.gaps[0] : 0;
    return s->n ? kv__phase_behind(s) - s->phases[0] - gap : 0;
}

void kv__memory_now(const kv_session *s, float *sum, float *message)
{
    const size_t n_floats = kv__memory_floats(s);
    const kv_memory *kept[KV_MEMORY_KEPT];
    uint32_t n = 0;
    for (const kv_memory *m = s->memory; m && n < KV_MEMORY_KEPT; m = m->past) kept[n++] = m;
    memset(sum, 0, n_floats * sizeof *sum);
    while (n-- > 0) {
        const uint32_t at = kept[n]->at ? s->phases[kept[n]->at - 1] : 0;
        const int64_t by = (int64_t)s->phases[s->n - 1] - at;
        memcpy(message, kept[n]->message, n_floats * sizeof *message);
        s->compute.turn(s->compute.user, message, 1, &by);
        kv_memory_mix(sum, message, n_floats / s->compute.shape.head_dim, s->compute.shape.head_dim);
    }
}

size_t kv__memory_floats(const kv_session *s)
{
    return (size_t)s->compute.shape.n_layer * s->compute.n_head * s->compute.shape.head_dim;
}

/* One array for all runs. NULL when memory is gone. */
model_lane_list *kv__lists_before(
    const kv_session *s, uint32_t i, uint32_t slot, uint32_t n, model_run **ret_runs)
{
    size_t n_runs = 0;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) n_runs += s->lists.view[lane].n_runs + 1;
    model_lane_list *lanes = calloc(s->n_lanes, sizeof *lanes);
    model_run *runs = malloc(n_runs * sizeof *runs);
    if (!lanes || !runs) {
        free(lanes);
        free(runs);
        return NULL;
    }
    *ret_runs = runs;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        const model_lane_list *from = &s->lists.view[lane];
        model_lane_list *to = &lanes[lane];
        to->runs = runs;
        for (uint32_t r = 0; r < from->n_runs && from->runs[r].index < i; r++) {
            *runs = from->runs[r];
            if (runs->index + runs->n > i) runs->n = i - runs->index;
            to->n_rows += runs->n;
            to->n_runs++;
            runs++;
        }
        *runs++ = (model_run){.slot = slot, .index = i, .n = n};
        to->n_runs++;
        to->n_rows += n;
    }
    return lanes;
}

kv_stored_segment *kv__segment_at(const kv_session *s, uint32_t token)
{
    size_t from = 0, to = s->n_segments;
    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (s->segments[middle].to <= token)
            from = middle + 1;
        else
            to = middle;
    }
    return from < s->n_segments && s->segments[from].from <= token ? &s->segments[from] : NULL;
}

void kv__segment_add(kv_session *s, const kv_stored_segment *p)
{
    base_grow(&s->segments, &s->cap_segments, s->n_segments + 1, sizeof *s->segments);
    kv_stored_segment *part = &s->segments[s->n_segments++];
    *part = *p;
    part->spans = NULL;
    part->lines = NULL;
    part->mass = NULL;
    if (p->mass) {
        const size_t n_mass = (size_t)s->compute.shape.n_layer * p->n_mass;
        part->mass = base_xmalloc(n_mass * sizeof *part->mass);
        memcpy(part->mass, p->mass, n_mass * sizeof *part->mass);
    }
    if (p->n_spans) {
        part->spans = base_xmalloc(p->n_spans * sizeof *part->spans);
        memcpy(part->spans, p->spans, p->n_spans * sizeof *part->spans);
    }
    if (p->n_lines) {
        part->lines = base_xmalloc(p->n_lines * sizeof *part->lines);
        memcpy(part->lines, p->lines, p->n_lines * sizeof *part->lines);
    }
}

void kv__segment_fini(kv_stored_segment *p)
{
    free(p->spans);
    free(p->lines);
    free(p->mass);
}

bool kv__cut_fits(const kv_compute *c, uint32_t cut)
{
    const model_rows_shape *shape = &c->shape;
    return cut > 0 && cut < shape->n_layer && c->n_embd > 0 && shape->head_dim % 2 == 0 &&
           (uint64_t)c->n_embd <= (uint64_t)(shape->n_layer - cut) * shape->n_head_kv * shape->head_dim;
}

uint32_t kv_session_cut(const kv_session *s, uint32_t token)
{
    return token < s->n ? s->cut[token] : 0;
}

uint32_t kv_session_lanes(const kv_session *s, uint32_t token)
{
    const kv_stored_segment *part = token < s->n ? kv__segment_at(s, token) : NULL;
    return part ? (uint32_t)part->cut * s->compute.shape.n_head_kv : 0;
}

void kv__bury(kv_session *s, const uint64_t *lost)
{
    for (uint32_t w = 0; w < kv_bits_words(s->n); w++) s->lost[w] |= lost[w];
    for (uint32_t t = 0; t < s->n; t++)
        if (kv_bits_get(lost, t)) s->file_row[t] = KV_NO_ROW;
    for (uint32_t b = 0; b < s->table.n; b++) {
        const size_t from = (size_t)b * MODEL_ROWS_BLOCK, to = from + MODEL_ROWS_BLOCK;
        kv_block *block = s->table.blocks[b];
        if (to > s->n || block->refs != 1 || !kv_block_has_rows(block) ||
            kv_bits_next(s->lost, from, to, false) < to)
            continue;
        kv_block_set_map(block, NULL);
        kv_table_show(&s->table, (uint32_t)b);
    }
}
