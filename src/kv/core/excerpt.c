/*
 * Excerpts that are computed each by itself (docs/kv.md, Structure; CodeComp, section 4.6). Consecutive
 * segments of origin CONTEXT are a group. Under a policy with local=1 each of them reads what stands before
 * the group and itself, and all begin at the same phase (the position that RoPE sees), so their phases
 * overlap. What follows a group begins behind its longest member and reads all that is active.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/session.h"

uint32_t kv__next_phase(const kv_session *s)
{
    const kv_stored_segment *open = s->n_segments ? &s->segments[s->n_segments - 1] : NULL;
    if (!open || open->from < s->n || !kv__is_local(s, open->origin)) {
        if (open && open->from < s->n && kv__is_local(s, open->origin)) return s->phases[s->n - 1] + 1;
        return kv__phase_behind(s);
    }
    const uint32_t first = kv__group_from(s, open->from);
    return first < open->from ? s->phases[first] : kv__phase_behind(s);
}

bool kv__is_local(const kv_session *s, kv_origin origin)
{
    return s->parameters.local > 0 && origin == KV_ORIGIN_CONTEXT;
}

void kv__local_free(kv_local *l)
{
    for (uint32_t lane = 0; lane < l->n_lanes; lane++)
        if (!lane || l->lists[lane].runs != l->lists[lane - 1].runs) free((model_run *)l->lists[lane].runs);
    free(l->lists);
    *l = (kv_local){.n_lanes = 0};
}

int kv__local_view(
    const kv_session *s, uint32_t from, uint32_t to, model_rows_view *view, kv_local *ret, base_err *err)
{
    const uint32_t group = kv__group_from(s, from), n = s->lists.n_tokens;
    uint32_t end = to;
    *ret = (kv_local){.n_lanes = 0};
    /* Excerpts of the same group behind this one are as foreign as those before it. */
    for (size_t i = 0; i < s->n_segments; i++)
        if (s->segments[i].from == end && s->segments[i].origin == KV_ORIGIN_CONTEXT && end < s->n)
            end = s->segments[i].to;
    *view = kv__view(s);
    uint64_t *bits = malloc((kv_bits_words(n) + 1) * sizeof *bits);
    ret->lists = calloc(s->n_lanes, sizeof *ret->lists);
    if (!bits || !ret->lists) goto no_memory;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        model_lane_list *list = &ret->lists[lane];
        if (lane && s->lists.lane[lane] == s->lists.lane[lane - 1])
            *list = ret->lists[lane - 1];
        else {
            memcpy(bits, s->lists.lane[lane]->bits, kv_bits_words(n) * sizeof *bits);
            kv_bits_clear_range(bits, group, from);
            if (end > to) kv_bits_clear_range(bits, to, end);
            list->runs = kv_runs_of_bits(bits, n, &list->n_runs, &list->n_rows);
            if (!list->runs) goto no_memory;
        }
        ret->n_lanes++;
    }
    free(bits);
    view->lanes = ret->lists;
    return 0;
no_memory:
    free(bits);
    kv__local_free(ret);
    return base_fail(err, BASE_E_NOMEM, "no memory for the lists of an excerpt");
}

int kv_session_set_spans(kv_session *s, uint32_t at, const kv_span *spans, uint32_t n_spans, base_err *err)
{
    kv_stored_segment *part = kv__segment_at(s, at);
    if (!part || part->from != at) return base_fail(err, BASE_E_USAGE, "no segment begins at token %u", at);
    for (uint32_t i = 0; i < n_spans; i++)
        if (spans[i].from >= spans[i].to || spans[i].to > part->to - at || spans[i].reason >= KV_N_REASONS)
            return base_fail(err, BASE_E_USAGE,
                "span %u, tokens %u to %u, does not lie in its segment of %u tokens", i, spans[i].from,
                spans[i].to, part->to - at);
    free(part->spans);
    part->spans = NULL;
    part->n_spans = n_spans;
    if (!n_spans) return 0;
    part->spans = base_xmalloc(n_spans * sizeof *part->spans);
    memcpy(part->spans, spans, n_spans * sizeof *part->spans);
    return 0;
}
