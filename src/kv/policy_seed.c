/*
 * snapkv-seed: what the code behind RepairKV (seed 002) calls SnapKV and its paper's table was measured with: the keys of the
 * last answer's tokens multiplied with all keys, no queries, no pooling, one set of positions for all lanes, the newest rows
 * kept. Here to reproduce that table; claims count against `snapkv` only.
 */
#include <math.h>
#include <stdlib.h>

#include "kv/policy.h"

enum { MOST_KEYS = 64 };

static float float_of_half(uint16_t half)
{
    const int exponent = half >> 10 & 31;
    const float sign = half & 0x8000 ? -1.0f : 1.0f, fraction = (float)(half & 1023);
    if (exponent == 0) return sign * ldexpf(fraction, -24);
    if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
    return sign * ldexpf(1024 + fraction, exponent - 25);
}

/* The answer's keys as queries of every head of their lane: [n_layer][n_head][n][head_dim]. */
static float *keys_as_queries(const kv_pass *pass, uint32_t from, uint32_t n)
{
    const model_rows_shape *shape = &pass->compute->shape;
    const uint32_t group = pass->compute->n_head / shape->n_head_kv, d = shape->head_dim;
    float *queries = malloc((size_t)shape->n_layer * pass->compute->n_head * n * d * sizeof *queries),
          *to = queries;
    for (uint32_t lane = 0; queries && lane < pass->lists->n_lanes; lane++)
        for (uint32_t g = 0; g < group; g++)
            for (uint32_t t = 0; t < n; t++) {
                const uint16_t *key = model_rows_key(pass->rows, lane, from + t);
                for (uint32_t i = 0; i < d; i++) *to++ = float_of_half(key[i]);
            }
    return queries;
}

int kv_policy_seed_score(kv_pass *pass, base_err *err)
{
    const uint32_t n_lanes = pass->lists->n_lanes, n_tokens = pass->lists->n_tokens;
    uint32_t n = pass->answer_to - pass->answer_from;
    if (n > MOST_KEYS) n = MOST_KEYS;
    if (!n) return kv_policy_streaming_score(pass, err); /* nothing was answered yet */
    float *queries = keys_as_queries(pass, pass->answer_to - n, n), *sum = calloc(n_tokens + 1, sizeof *sum);
    int r = queries && sum ? kv_pass_mass(pass, queries, n, pass->score, err)
                           : base_fail(err, BASE_E_NOMEM, "no memory to score %u rows", n_tokens);
    for (int write = 0; write < 2 && !r; write++)
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
    return r;
}
