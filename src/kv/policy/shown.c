/* See kv/policy/shown.h. */
#include "kv/policy/shown.h"

#include <stdlib.h>

#include "kv/core/keys.h"
#include "kv/core/state.h"

/* The live rows of a lane that no rule forces, as runs. */
static model_run *candidates(const kv_pass *pass, uint32_t lane, model_lane_list *ret)
{
    const uint32_t n_tokens = pass->lists->n_tokens;
    uint64_t *bits = calloc(kv_bits_words(n_tokens) + 1, sizeof *bits);
    if (!bits) return NULL;
    for (uint32_t t = 0; t < n_tokens; t++)
        if (!pass->hard[t] && kv_bits_get(pass->lists->lane[lane]->bits, t)) kv_bits_set(bits, t);
    model_run *runs = kv_runs_of_bits(bits, n_tokens, &ret->n_runs, &ret->n_rows);
    ret->runs = runs;
    free(bits);
    return runs;
}

int kv_pass_rule(const kv_pass *pass, const float *query, float *rule, base_err *err)
{
    const uint32_t n_lanes = pass->lists->n_lanes;
    model_lane_list *lists = calloc(n_lanes, sizeof *lists);
    model_run **runs = calloc(n_lanes, sizeof *runs);
    float **mass = calloc(n_lanes, sizeof *mass);
    int rc = lists && runs && mass ? 0 : BASE_E_NOMEM;
    for (uint32_t lane = 0; lane < n_lanes && !rc; lane++) {
        runs[lane] = candidates(pass, lane, &lists[lane]);
        mass[lane] = malloc(((size_t)lists[lane].n_rows + 1) * sizeof(float));
        if (!runs[lane] || !mass[lane]) rc = BASE_E_NOMEM;
    }
    if (rc) {
        rc = kv_fail_to_score(err, pass->lists->n_tokens);
    } else {
        model_rows_view view = *pass->rows;
        view.lanes = lists;
        const model_score score = {.queries = query,
            .n_queries = 1,
            .rows = &view,
            .pool = MODEL_POOL_MEAN,
            .end = pass->lists->n_tokens,
            .mass = mass,
            .cancel = pass->cancel};
        rc = pass->compute->score(pass->compute->user, &score, err);
    }
    for (uint32_t lane = 0; lane < n_lanes && !rc; lane++)
        for (uint32_t run = 0, o = 0; run < lists[lane].n_runs; run++)
            for (uint32_t i = 0; i < runs[lane][run].n; i++)
                rule[runs[lane][run].index + i] += mass[lane][o++];
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        if (runs) free(runs[lane]);
        if (mass) free(mass[lane]);
    }
    free(lists);
    free(runs);
    free(mass);
    return rc;
}

/* Adds a lane's key of every wanted token to its sum; place: by token, KV_NO_ROW where it is not wanted. */
static void add_keys(const kv_pass *pass, uint32_t lane, const uint32_t *place, float *sums, uint32_t *counts)
{
    const uint32_t d = pass->compute->shape.head_dim;
    const model_lane_list *list = &pass->lists->view[lane];
    for (uint32_t r = 0; r < list->n_runs; r++)
        for (uint32_t i = 0; i < list->runs[r].n; i++) {
            const uint32_t p = place[list->runs[r].index + i];
            if (p == KV_NO_ROW) continue;
            const uint16_t *key = model_rows_key(pass->rows, lane, list->runs[r].slot + i);
            for (uint32_t k = 0; k < d; k++) sums[(size_t)p * d + k] += kv__float_of_half(key[k]);
            counts[p]++;
        }
}

/* Mean keys of these tokens over the lanes that have them; zeros where none has. */
static int mean_keys(const kv_pass *pass, const uint32_t *tokens, uint32_t n, float *ret, base_err *err)
{
    const uint32_t n_tokens = pass->lists->n_tokens, d = pass->compute->shape.head_dim;
    uint32_t *place = malloc(((size_t)n_tokens + 1) * sizeof *place),
             *counts = calloc((size_t)n + 1, sizeof *counts);
    if (!place || !counts) {
        free(place);
        free(counts);
        return kv_fail_to_score(err, n_tokens);
    }
    for (uint32_t t = 0; t < n_tokens; t++) place[t] = KV_NO_ROW;
    for (uint32_t i = 0; i < n; i++) place[tokens[i]] = i;
    for (uint32_t lane = 0; lane < pass->lists->n_lanes; lane++) add_keys(pass, lane, place, ret, counts);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < d && counts[i]; k++) ret[(size_t)i * d + k] /= (float)counts[i];
    free(place);
    free(counts);
    return 0;
}

/* The newest message or result, KV_RESIDUAL_ASKING of its tokens at most, evenly. */
static void find_asking(const kv_pass *pass, kv_shown *ret)
{
    size_t i = pass->n_segments;
    while (
        i && pass->segments[i - 1].origin != KV_ORIGIN_USER && pass->segments[i - 1].origin != KV_ORIGIN_TOOL)
        i--;
    if (!i) return;
    const uint32_t from = pass->segments[i - 1].from, n = pass->segments[i - 1].to - from;
    ret->n_asking = n < KV_RESIDUAL_ASKING ? n : KV_RESIDUAL_ASKING;
    for (uint32_t k = 0; k < ret->n_asking; k++)
        ret->asking_tokens[k] = from + (uint32_t)((uint64_t)n * (2 * k + 1) / (2 * ret->n_asking));
}

static void mean_memory(const kv_pass *pass, const float *query, float *ret)
{
    const uint32_t d = pass->compute->shape.head_dim,
                   n = pass->compute->shape.n_layer * pass->compute->n_head;
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t k = 0; k < d; k++) ret[k] += query[(size_t)v * d + k] / (float)n;
}

int kv_shown_make(const kv_pass *pass, const float *query, kv_shown *ret, base_err *err)
{
    const uint32_t n_tokens = pass->lists->n_tokens;
    *ret = (kv_shown){.dim = pass->compute->shape.head_dim};
    find_asking(pass, ret);
    float *rule = calloc((size_t)n_tokens + 1, sizeof *rule);
    ret->tokens = malloc(((size_t)n_tokens + 1) * sizeof *ret->tokens);
    int rc = rule && ret->tokens ? kv_pass_rule(pass, query, rule, err) : kv_fail_to_score(err, n_tokens);
    for (uint32_t t = 0; t < n_tokens && !rc; t++) {
        bool is_live = false;
        for (uint32_t lane = 0; lane < pass->lists->n_lanes && !is_live; lane++)
            is_live = kv_bits_get(pass->lists->lane[lane]->bits, t);
        if (is_live && !pass->hard[t]) ret->tokens[ret->n++] = t;
    }
    if (!rc) {
        ret->rule = malloc(((size_t)ret->n + 1) * sizeof *ret->rule);
        ret->keys = calloc((size_t)ret->n * ret->dim + 1, sizeof *ret->keys);
        ret->memory = calloc(ret->dim, sizeof *ret->memory);
        ret->asking = calloc((size_t)ret->n_asking * ret->dim + 1, sizeof *ret->asking);
        if (!ret->rule || !ret->keys || !ret->memory || !ret->asking) rc = kv_fail_to_score(err, n_tokens);
    }
    if (!rc) rc = mean_keys(pass, ret->tokens, ret->n, ret->keys, err);
    if (!rc) rc = mean_keys(pass, ret->asking_tokens, ret->n_asking, ret->asking, err);
    const float group = (float)pass->compute->n_head / (float)pass->compute->shape.n_head_kv;
    for (uint32_t i = 0; i < ret->n && !rc; i++) ret->rule[i] = group * rule[ret->tokens[i]];
    if (!rc) mean_memory(pass, query, ret->memory);
    free(rule);
    return rc;
}

void kv_shown_free(kv_shown *s)
{
    free(s->tokens);
    free(s->rule);
    free(s->keys);
    free(s->memory);
    free(s->asking);
    *s = (kv_shown){0};
}

kv_residual_input kv_shown_input(const kv_shown *s)
{
    return (kv_residual_input){.n = s->n,
        .n_asking = s->n_asking,
        .keys = s->keys,
        .rule = s->rule,
        .memory = s->memory,
        .asking = s->asking};
}
