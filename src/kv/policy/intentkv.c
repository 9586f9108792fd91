/*
 * intentkv: IntentKV's rule (equation 3), under the session's memory of requests (mode=memory) or the newest
 * message alone (mode=query). The mass of every candidate row is added over layers and heads, and one set is
 * kept for all lanes. Forced rows (fixed prompt, the message that asks) are outside the softmax and always
 * kept; a pass runs once a message is complete, down to the budget. A message is encoded as the mean of the
 * query vectors that the session keeps of it (at most 64; the paper: all of them). Rows stay where they are,
 * so every later turn finds the prefix as it was. With residual=on a trained network corrects the rule (residual.h).
 */
#include <stdlib.h>

#include "kv/core/work.h"
#include "kv/policy/shown.h"

/* The rule by token, and the score that it is corrected to. */
static int correct(const kv_pass *pass, const float *query, float *rule, float *score, base_err *err)
{
    const float group = (float)pass->compute->n_head / (float)pass->compute->shape.n_head_kv;
    kv_shown shown;
    int rc = kv_shown_make(pass, query, &shown, err);
    float *corrected = malloc(((size_t)shown.n + 1) * sizeof *corrected);
    const kv_residual_input in = kv_shown_input(&shown);
    if (!rc && !corrected) rc = kv_fail_to_score(err, shown.n);
    if (!rc) rc = kv_residual_score(pass->residual, &in, corrected, err);
    for (uint32_t i = 0; i < shown.n && !rc; i++) {
        rule[shown.tokens[i]] = shown.rule[i] / group;
        score[shown.tokens[i]] = corrected[i];
    }
    free(corrected);
    kv_shown_free(&shown);
    return rc;
}

static int score(kv_pass *pass, base_err *err)
{
    const float *query = pass->parameters->mode > 0 ? pass->memory : pass->message;
    if (!query) return kv_pass_newest(pass, err); /* nobody asked anything yet */
    const size_t n = (size_t)pass->lists->n_tokens + 1;
    float *rule = calloc(2 * n, sizeof *rule), *corrected = pass->residual && rule ? rule + n : rule;
    int rc = !rule            ? kv_fail_to_score(err, pass->lists->n_tokens)
             : pass->residual ? correct(pass, query, rule, corrected, err)
                              : kv_pass_rule(pass, query, rule, err);
    for (uint32_t lane = 0; lane < pass->lists->n_lanes && !rc; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        for (uint32_t run = 0, o = 0; run < list->n_runs; run++)
            for (uint32_t i = 0; i < list->runs[run].n; i++) {
                const uint32_t t = list->runs[run].index + i;
                pass->recall[t] = rule[t];
                pass->score[lane][o++] = corrected[t];
            }
    }
    free(rule);
    return rc;
}

const kv_policy kv_policy_intentkv = {
    .info = {"intentkv",
        "the rule of IntentKV (2026): mass under the session's memory of requests, one set, once a message",
        "low mode residual sinks window hard",
        "low=1, forced rows hard=2, decay exp(-.5), unit norm: IntentKV, sections 3.1, 3.2 and appendix A"},
    .score = score,
    .whole = true,
    .defaults = {KV_COMMON_DEFAULTS, KV_READING_DEFAULTS, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS, .low = 1,
        .window = 1, .kernel = 7, .hard = 2, .mode = 1},
};
