/*
 * A baseline for experiments: which evicted rows summaries of pages would name (RepairKV, appendix C:
 * PageSummary, after Quest). Each page's largest keys stand for its rows and the signal's mean query asks
 * them. A repair then scores exactly what they name.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kv/core/keys.h"
#include "kv/core/state.h"
#include "kv/lab/lab.h"

/* Halves in the order of their numbers. */
static uint16_t ordered(uint16_t half)
{
    return half & 0x8000 ? (uint16_t)~half : half | 0x8000;
}

static float number_of(uint16_t order)
{
    return kv__float_of_half(order & 0x8000 ? order & 0x7fff : (uint16_t)~order);
}

/* [n_layer][n_head][head_dim] */
static float *mean_query(const kv_signal *signal)
{
    const size_t n_heads = (size_t)signal->n_layer * signal->n_head, d = signal->head_dim;
    float *mean = calloc(n_heads * d + 1, sizeof *mean);
    for (size_t h = 0; h < n_heads && mean; h++)
        for (size_t q = 0; q < signal->n; q++)
            for (size_t i = 0; i < d; i++)
                mean[h * d + i] += signal->queries[(h * signal->n + q) * d + i] / (float)signal->n;
    return mean;
}

/* Evicted in some lane, and there in F16 with all its layers. */
static bool is_asked(const kv_session *s, uint32_t t)
{
    if (kv_bits_get(s->lost, t) || s->cut[t] || !s->table.rows[t / MODEL_ROWS_BLOCK]) return false;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (!kv_bits_get(s->lists.lane[lane]->bits, t)) return true;
    return false;
}

static float score_page(
    const kv_session *s, const float *query, const uint32_t *tokens, uint32_t n, uint16_t *most)
{
    const model_rows_view rows = kv__view(s);
    const uint32_t d = s->compute.shape.head_dim, group = s->compute.n_head / s->compute.shape.n_head_kv;
    double sum = 0;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        for (uint32_t i = 0; i < d; i++) most[i] = 0;
        for (uint32_t t = 0; t < n; t++) {
            const uint16_t *key = model_rows_key(&rows, lane, tokens[t]);
            for (uint32_t i = 0; i < d; i++)
                if (ordered(key[i]) > most[i]) most[i] = ordered(key[i]);
        }
        for (uint32_t g = 0; g < group; g++)
            for (uint32_t i = 0; i < d; i++)
                sum += (double)query[((size_t)lane * group + g) * d + i] * number_of(most[i]);
    }
    return (float)sum;
}

int kv_session_pages(kv_session *s, uint32_t to, const kv_signal *signal, uint32_t page_size, uint32_t n,
    uint64_t *ret, base_err *err)
{
    const uint32_t n_pages = to / page_size + 1;
    float *query = mean_query(signal), *score = malloc(n_pages * sizeof *score);
    uint32_t *order = malloc(n_pages * sizeof *order), *tokens = malloc(page_size * sizeof *tokens);
    uint16_t *most = malloc(s->compute.shape.head_dim * sizeof *most);
    int rc = query && score && order && tokens && most && !kv_ranker_reserve(&s->ranker, n_pages)
                 ? 0
                 : base_fail(err, BASE_E_NOMEM, "no memory for the summaries of %u pages", n_pages);
    for (uint32_t p = 0; p < n_pages && !rc; p++) {
        uint32_t n_asked = 0;
        for (uint32_t t = p * page_size; t < to && t < (p + 1) * page_size; t++)
            if (is_asked(s, t)) tokens[n_asked++] = t;
        score[p] = n_asked ? score_page(s, query, tokens, n_asked, most) : NAN;
    }
    if (!rc) kv_rank(&s->ranker, score, NULL, n_pages, order);
    for (uint32_t p = 0; p < n_pages && !rc && n; p++)
        for (uint32_t t = order[p] * page_size; t < to && t < (order[p] + 1) * page_size && n; t++)
            if (is_asked(s, t)) {
                kv_bits_set(ret, t);
                n--;
            }
    free(query);
    free(score);
    free(order);
    free(tokens);
    free(most);
    return rc;
}
