/*
 * intentkv: IntentKV's rule (equation 3), under the session's memory of requests (mode=memory) or the newest
 * message alone (mode=query). The mass of every candidate row is added over layers and heads, and one set is
 * kept for all lanes. Forced rows (fixed prompt, the message that asks) are outside the softmax and always
 * kept; a pass runs once a message is complete, down to the budget. A message is encoded as the mean of the
 * query vectors that the session keeps of it (at most 64; the paper: all of them). Rows stay where they are,
 * so every later turn finds the prefix as it was.
 */
#include <stdlib.h>

#include "kv/policy/policy.h"
#include "kv/rows/bits.h"

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

/* Adds the candidates' masses of all lanes by token. */
static int add_rule(const kv_pass *pass, const float *query, float *rule, base_err *err)
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
        rc = base_fail(err, BASE_E_NOMEM, "no memory to score %u rows", pass->lists->n_tokens);
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

static int score(kv_pass *pass, base_err *err)
{
    const float *query = pass->parameters->mode > 0 ? pass->memory : pass->message;
    if (!query) return kv_pass_newest(pass, err); /* nobody asked anything yet */
    float *rule = calloc((size_t)pass->lists->n_tokens + 1, sizeof *rule);
    int rc = rule ? add_rule(pass, query, rule, err)
                  : base_fail(err, BASE_E_NOMEM, "no memory to score %u rows", pass->lists->n_tokens);
    for (uint32_t lane = 0; lane < pass->lists->n_lanes && !rc; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        for (uint32_t run = 0, o = 0; run < list->n_runs; run++)
            for (uint32_t i = 0; i < list->runs[run].n; i++) {
                const uint32_t t = list->runs[run].index + i;
                pass->score[lane][o++] = pass->recall[t] = rule[t];
            }
    }
    free(rule);
    return rc;
}

const kv_policy kv_policy_intentkv = {
    .info = {"intentkv",
        "the rule of IntentKV (2026): mass under the session's memory of requests, one set, once a message",
        "low mode sinks window hard",
        "low=1, forced rows hard=2, decay exp(-.5), unit norm: IntentKV, sections 3.1, 3.2 and appendix A"},
    .score = score,
    .whole = true,
    .defaults = {KV_COMMON_DEFAULTS, KV_READING_DEFAULTS, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS, .low = 1,
        .window = 1, .kernel = 7, .hard = 2, .mode = 1},
};
