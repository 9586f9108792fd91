/*
 * Excerpts computed each by itself (kv.md 5.7; CodeComp, seed 000, section 4.6). Consecutive segments of origin CONTEXT are a
 * group; under a policy with local=1 each of them reads what stands before the group and itself, and all begin at the group's first
 * phase, so phases overlap. What follows a group begins behind its longest member and reads all that is active.
 *
 * A probe asks such an excerpt a question: the question is computed behind it at phases of its own, says how probable it is and how
 * its last queries look at the excerpt's rows, and leaves the sequence as it was.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kv/state.h"

enum { PROBE_QUERIES = 128, SCORE_QUERIES = 64, MOST_PROBE = 1024 };

/* The first token of the group of excerpts that ends right before token `to`; `to` itself when none does. */
static uint32_t group_from(const kv_session *s, uint32_t to)
{
    for (size_t i = s->n_parts; i-- > 0;) {
        const kv_part *part = &s->parts[i];
        if (part->from >= to) continue;
        if (part->to != to || part->origin != KV_ORIGIN_CONTEXT) break;
        to = part->from;
    }
    return to;
}

uint32_t kv__phase_behind(const kv_session *s)
{
    const kv_part *part = s->n ? kv__part_at(s, s->n - 1) : NULL;
    if (!part) return 0;
    uint32_t most = s->phases[s->n - 1];
    if (part->origin == KV_ORIGIN_CONTEXT)
        for (uint32_t t = group_from(s, s->n); t < s->n; t++)
            if (s->phases[t] > most) most = s->phases[t];
    return most + 1;
}

uint32_t kv__next_phase(const kv_session *s)
{
    const kv_part *open = s->n_parts ? &s->parts[s->n_parts - 1] : NULL;
    if (!open || open->from < s->n || !kv__is_local(s, open->origin)) {
        if (open && open->from < s->n && kv__is_local(s, open->origin)) return s->phases[s->n - 1] + 1;
        return kv__phase_behind(s);
    }
    const uint32_t first = group_from(s, open->from);
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
    const uint32_t group = group_from(s, from), n = s->lists.n_tokens;
    uint32_t end = to;
    *ret = (kv_local){.n_lanes = 0};
    /* Excerpts of the same group behind this one are as foreign as those before it. */
    for (size_t i = 0; i < s->n_parts; i++)
        if (s->parts[i].from == end && s->parts[i].origin == KV_ORIGIN_CONTEXT && end < s->n)
            end = s->parts[i].to;
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
    kv_part *part = kv__part_at(s, at);
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

/* --- probe -------------------------------------------------------------------------------------------------------------- */

/* -log p of each id behind its predecessor, mean; exp of it is the perplexity. logits: [n - 1][n_vocab]. */
static double surprise(const int32_t *ids, uint32_t n, const float *logits, uint32_t n_vocab)
{
    double sum = 0;
    for (uint32_t i = 1; i < n; i++) {
        const float *row = logits + (size_t)(i - 1) * n_vocab;
        double most = -INFINITY, total = 0;
        for (uint32_t v = 0; v < n_vocab; v++) most = row[v] > most ? row[v] : most;
        for (uint32_t v = 0; v < n_vocab; v++) total += exp(row[v] - most);
        sum += log(total) + most - row[ids[i]];
    }
    return n > 1 ? sum / (n - 1) : 0;
}

/* Keeps how the captured queries look at the part's rows: sum over them, mean over the heads of a layer, chunk's softmax. */
static int keep_mass(kv_session *s, kv_part *part, const model_rows_view *view, const kv_signal *signal,
    const atomic_bool *cancel, base_err *err)
{
    const uint32_t length = part->to - part->from, n_layer = s->compute.shape.n_layer,
                   n_head_kv = s->compute.shape.n_head_kv;
    const uint32_t n_rows = view->lanes[0].n_rows;
    float **mass = calloc(s->n_lanes, sizeof *mass);
    float *sum = calloc((size_t)n_layer * length + 1, sizeof *sum);
    size_t n_all = 0;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) n_all += view->lanes[lane].n_rows;
    float *rows = malloc((n_all + 1) * sizeof *rows);
    int r = mass && sum && rows ? 0 : base_fail(err, BASE_E_NOMEM, "no memory to score %u rows", n_rows);
    for (uint32_t lane = 0, at = 0; lane < s->n_lanes && !r; at += view->lanes[lane++].n_rows)
        mass[lane] = rows + at;
    for (uint32_t first = 0; first < signal->n && !r; first += SCORE_QUERIES) {
        kv_signal some = {0};
        uint32_t places[SCORE_QUERIES], n = 0;
        for (uint32_t i = first; i < signal->n && n < SCORE_QUERIES; i++) places[n++] = i;
        r = kv_signal_pick(signal, places, n, &some, err);
        const model_score score = {
            .queries = some.queries, .n_queries = n, .rows = view, .mass = mass, .cancel = cancel};
        if (!r) r = s->compute.score(s->compute.user, &score, err);
        for (uint32_t lane = 0; lane < s->n_lanes && !r; lane++) {
            const model_lane_list *list = &view->lanes[lane];
            float *to = sum + (size_t)(lane / n_head_kv) * length;
            for (uint32_t run = 0, o = 0; run < list->n_runs; run++)
                for (uint32_t i = 0; i < list->runs[run].n; i++, o++) {
                    const uint32_t t = list->runs[run].index + i;
                    if (t >= part->from && t < part->to)
                        to[t - part->from] += mass[lane][o] * (float)n / (float)n_head_kv;
                }
        }
        kv_signal_fini(&some);
    }
    free(mass);
    free(rows);
    if (r) {
        free(sum);
        return r;
    }
    free(part->mass);
    part->mass = sum;
    part->n_mass = length;
    return 0;
}

int kv_session_probe(kv_session *s, uint32_t at, const int32_t *ids, uint32_t n, double *ret_surprise,
    const atomic_bool *cancel, base_err *err)
{
    kv_part *part = kv__part_at(s, at);
    if (!part || part->from != at || n < 2 || n > MOST_PROBE || s->n + n > s->n_ctx)
        return base_fail(
            err, BASE_E_USAGE, "no excerpt begins at token %u, or a question of %u tokens", at, n);
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->compute.n_vocab)
            return base_fail(err, BASE_E_USAGE, "token id %d is not in the vocabulary", (int)ids[i]);
    const uint32_t n_vocab = s->compute.n_vocab, n_queries = n < PROBE_QUERIES ? n : PROBE_QUERIES,
                   phase = s->phases[part->to - 1] + 1;
    uint32_t *numbers = malloc(3 * (size_t)n * sizeof *numbers);
    float *logits = malloc((ret_surprise ? (size_t)(n - 1) * n_vocab : 1) * sizeof *logits);
    kv_signal signal;
    kv_signal_init(&signal, s->compute.shape.n_layer, s->compute.n_head, s->compute.shape.head_dim);
    float *queries = malloc(kv__memory_floats(s) * n_queries * sizeof *queries);
    kv_local local = {0};
    model_rows_view view;
    int r = numbers && logits && queries ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for a question");
    s->draft.n = 0; /* its rows are written over */
    if (!r) r = kv_table_make_writable(&s->table, s->n, s->n + n, err);
    if (!r) r = kv_lists_append(&s->lists, n, err);
    if (!r) r = kv__local_view(s, part->from, part->to, &view, &local, err);
    if (!r) {
        uint32_t *phases = numbers, *want = numbers + n, *places = numbers + 2 * (size_t)n;
        for (uint32_t i = 0; i < n; i++) {
            phases[i] = phase + i;
            want[i] = i;
        }
        for (uint32_t i = 0; i < n_queries; i++) places[i] = n - n_queries + i;
        const model_capture capture = {.tokens = places, .n = n_queries, .queries = queries};
        const model_batch batch = {.ids = ids,
            .phases = phases,
            .n = n,
            .rows = &view,
            .want = want,
            .n_want = ret_surprise ? n - 1 : 0,
            .logits = logits,
            .capture = &capture,
            .cancel = cancel};
        r = s->compute.forward(s->compute.user, &batch, err);
        if (!r) r = kv_signal_add(&signal, places, queries, n_queries, PROBE_QUERIES, err);
        if (!r) r = keep_mass(s, part, &view, &signal, cancel, err);
        if (!r && ret_surprise) *ret_surprise = surprise(ids, n, logits, n_vocab);
    }
    kv__withdraw(s);
    kv__local_free(&local);
    kv_signal_fini(&signal);
    free(numbers);
    free(logits);
    free(queries);
    return r;
}
