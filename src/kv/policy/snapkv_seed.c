/*
 * snapkv-seed: what RepairKV's code calls SnapKV, and what its paper's table was measured with. The keys of
 * the last answer's tokens are multiplied with all keys: no queries, no pooling, one set of positions for
 * all lanes, the newest rows kept. It is here to reproduce that table; claims count against `snapkv` only.
 */
#include <stdlib.h>

#include "kv/core/keys.h"
#include "kv/core/work.h"
#include "kv/policy/policy.h"

enum { MOST_KEYS = 64 };

static int score(kv_pass *pass, base_err *err)
{
    const uint32_t n_lanes = pass->lists->n_lanes, n_tokens = pass->lists->n_tokens;
    uint32_t n = pass->answer_to - pass->answer_from;
    if (n > MOST_KEYS) n = MOST_KEYS;
    if (!n) return kv_pass_newest(pass, err); /* nothing was answered yet */
    uint32_t tokens[MOST_KEYS];
    for (uint32_t i = 0; i < n; i++) tokens[i] = pass->answer_to - n + i;
    float *queries = kv__keys_as_queries(pass->compute, pass->rows, tokens, n),
          *sum = calloc(n_tokens + 1, sizeof *sum);
    int rc = queries && sum ? kv_pass_mass(pass, queries, tokens, n, pass->score, err)
                            : kv_fail_to_score(err, n_tokens);
    for (int write = 0; write < 2 && !rc; write++)
        for (uint32_t lane = 0; lane < n_lanes; lane++) {
            const model_lane_list *list = &pass->lists->view[lane];
            for (uint32_t run = 0, o = 0; run < list->n_runs; run++)
                for (uint32_t i = 0; i < list->runs[run].n; i++, o++) {
                    float *s = &sum[list->runs[run].index + i];
                    if (write)
                        pass->score[lane][o] = pass->attention[list->runs[run].index + i] = *s;
                    else
                        *s += pass->score[lane][o];
                }
        }
    free(queries);
    free(sum);
    return rc;
}

const kv_policy kv_policy_snapkv_seed = {
    .info = {"snapkv-seed",
        "RepairKV's own selector: keys against the last answer's keys, one set for all lanes",
        "low sinks window hard", "window=128, keys only: RepairKV's code"},
    .score = score,
    .defaults = {KV_COMMON_DEFAULTS, KV_READING_DEFAULTS, KV_PRUNE_DEFAULTS, .low = .875, .window = 128,
        .kernel = 7},
};
