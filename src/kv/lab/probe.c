/*
 * A question asked of one excerpt alone (CodeComp, section 4.6). The question is computed behind the excerpt
 * at phases of its own. That says how probable its words are and which of the excerpt's rows its last
 * queries look at. The sequence stays as it was.
 */
#include <math.h>
#include <stdlib.h>

#include "kv/core/state.h"
#include "kv/core/work.h"
#include "kv/flow/flow.h"
#include "kv/lab/lab.h"
#include "kv/plan/walk.h"

enum { PROBE_QUERIES = 128, SCORE_QUERIES = 64, MOST_PROBE = 1024 };

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

/* Keeps the excerpt's mass: sum over the queries, mean over a layer's heads, within the excerpt. */
static int keep_mass(kv_session *s, kv_stored_segment *part, const model_rows_view *view,
    const kv_signal *signal, base_err *err)
{
    const uint32_t length = part->to - part->from, n_layer = s->compute.shape.n_layer,
                   n_head_kv = s->compute.shape.n_head_kv;
    const uint32_t n_rows = view->lanes[0].n_rows;
    kv_work memory = {NULL};
    float **mass = kv_work_masses(&memory, view->lanes, s->n_lanes, 0, s->n_lanes);
    float *sum = calloc((size_t)n_layer * length + 1, sizeof *sum);
    int rc = !memory.failed && sum ? 0 : kv_fail_to_score(err, n_rows);
    for (uint32_t first = 0; first < signal->n && !rc; first += SCORE_QUERIES) {
        kv_signal some = {0};
        uint32_t places[SCORE_QUERIES], n = 0;
        for (uint32_t i = first; i < signal->n && n < SCORE_QUERIES; i++) places[n++] = i;
        rc = kv_signal_pick(signal, places, n, &some, err);
        const model_score score = {.queries = some.queries, .n_queries = n, .rows = view, .mass = mass};
        if (!rc) rc = kv__score(s, &score, err);
        for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++) {
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
    kv_work_free(&memory);
    if (rc) {
        free(sum);
        return rc;
    }
    free(part->mass);
    part->mass = sum;
    part->n_mass = length;
    return 0;
}

int kv_session_probe(
    kv_session *s, uint32_t at, const int32_t *ids, uint32_t n, double *ret_surprise, base_err *err)
{
    kv_stored_segment *part = kv__segment_at(s, at);
    if (!part || part->from != at || n < 2 || n > MOST_PROBE || s->n + n > s->cap)
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
    int rc = numbers && logits && queries ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for a question");
    s->draft.n = 0; /* its rows are written over */
    if (!rc) rc = kv__stand_at(s, s->n, NULL, err);
    if (!rc) rc = kv_table_make_writable(&s->table, s->n, s->n + n, err);
    if (!rc) rc = kv_lists_append(&s->lists, n, err);
    if (!rc) rc = kv__local_view(s, part->from, part->to, &view, &local, err);
    if (!rc) {
        uint32_t *phases = numbers, *want = numbers + n, *places = numbers + 2 * (size_t)n;
        for (uint32_t i = 0; i < n; i++) {
            phases[i] = phase + i;
            want[i] = i;
        }
        for (uint32_t i = 0; i < n_queries; i++) places[i] = n - n_queries + i;
        const model_capture capture = {.tokens = places, .n = n_queries, .queries = queries};
        model_batch batch = {.ids = ids,
            .phases = phases,
            .n = n,
            .rows = &view,
            .want = want,
            .n_want = ret_surprise ? n - 1 : 0,
            .logits = logits,
            .capture = &capture};
        rc = kv__forward(s, &batch, s->n, KV_TO_LOOK, err);
        if (!rc) rc = kv_signal_add(&signal, places, queries, n_queries, PROBE_QUERIES, err);
        if (!rc) rc = keep_mass(s, part, &view, &signal, err);
        if (!rc && ret_surprise) *ret_surprise = surprise(ids, n, logits, n_vocab);
    }
    kv__withdraw(s);
    kv__local_free(&local);
    kv_signal_fini(&signal);
    free(numbers);
    free(logits);
    free(queries);
    return rc;
}
