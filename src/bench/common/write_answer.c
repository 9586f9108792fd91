/* See bench/common/write_answer.h. */
#include "bench/common/write_answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/lab/lab.h"

enum { LOOK_EVERY = 8, LOOK_FIRST = 5 };

int32_t bench_best(const float *logits, uint32_t n)
{
    int32_t id = 0;
    for (uint32_t v = 1; v < n; v++)
        if (logits[v] > logits[id]) id = (int32_t)v;
    return id;
}

void bench_answer_text(const model *m, const model_ids *ids, base_buf *out)
{
    for (size_t i = 0; i < ids->n; i++) {
        size_t n = 0;
        const char *piece = model_tokenizer_piece(model_get_tokenizer(m), ids->ids[i], &n);
        if (piece) base_buf_add(out, piece, n);
    }
}

/*
 * How many tokens of the guess the answer begins with, and whether it ends there. The session is as before,
 * but for its sums.
 */
static int read_along(const kv_session *s, const bench_asking *a, const float *logits, uint32_t *ret_same,
    bool *ret_ends, base_err *err)
{
    const model_tokenizer *t = model_get_tokenizer(a->model);
    const uint32_t n_vocab = model_get_info(a->model)->n_vocab,
                   n = a->guess->n < a->n_new ? (uint32_t)a->guess->n : a->n_new;
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = a->turn};
    uint32_t same = 0;
    *ret_same = 0;
    *ret_ends = false;
    if (!n || bench_best(logits, n_vocab) != a->guess->ids[0]) return 0;
    kv_session *f = NULL;
    uint32_t *want = base_xmalloc(n * sizeof *want);
    float *behind = malloc((size_t)n * n_vocab * sizeof *behind);
    for (uint32_t i = 0; i < n; i++) want[i] = i;
    int r = behind ? kv_session_fork(s, &f, NULL, err) : base_fail(err, BASE_E_NOMEM, "no memory for logits");
    if (!r) r = kv_session_peek(f, &g, a->guess->ids, n, want, n, behind, err);
    if (!r) {
        for (same = 1; same < n; same++)
            if (bench_best(behind + (size_t)(same - 1) * n_vocab, n_vocab) != a->guess->ids[same]) break;
        *ret_same = same;
        *ret_ends = same == a->n_new ||
                    model_tokenizer_is_end(t, bench_best(behind + (size_t)(same - 1) * n_vocab, n_vocab));
    }
    kv_session_free(f);
    free(behind);
    free(want);
    return r;
}

static int append(kv_session *s, const bench_asking *a, const int32_t *ids, uint32_t n, float *logits,
    model_ids *ret, base_err *err)
{
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = a->turn};
    int r = kv_session_append(s, &g, ids, n, logits, NULL, err);
    for (uint32_t i = 0; i < n && !r; i++) model_ids_add(ret, ids[i]);
    if (!r && a->look && ret->n % LOOK_EVERY == LOOK_FIRST) r = a->look(a->user, s, err);
    return r;
}

int bench_answer(kv_session *s, const bench_asking *a, float *logits, model_ids *ret, base_err *err)
{
    const model_tokenizer *t = model_get_tokenizer(a->model);
    const uint32_t n_vocab = model_get_info(a->model)->n_vocab;
    uint32_t same = 0;
    bool ends = false;
    int r = a->guess && a->guess->n ? read_along(s, a, logits, &same, &ends, err) : 0;
    if (!r && ends && !a->look) {
        for (uint32_t i = 0; i < same; i++) model_ids_add(ret, a->guess->ids[i]);
        return 0;
    }
    while (!r && ret->n < same) { /* at once, up to where somebody looks */
        uint32_t n = (LOOK_FIRST + LOOK_EVERY - (uint32_t)ret->n % LOOK_EVERY) % LOOK_EVERY;
        if (!n) n = LOOK_EVERY;
        if (!a->look || n > same - ret->n) n = same - (uint32_t)ret->n;
        r = append(s, a, a->guess->ids + ret->n, n, logits, ret, err);
    }
    while (!r && !ends && ret->n < a->n_new) {
        const int32_t id = bench_best(logits, n_vocab);
        if (model_tokenizer_is_end(t, id)) break;
        r = append(s, a, &id, 1, logits, ret, err);
    }
    return r;
}

int bench_weigh(kv_session *s, const bench_asking *a, const float *logits, const model_ids *ids, double *ret,
    bool *ret_foremost, base_err *err)
{
    const kv_segment written = {.origin = KV_ORIGIN_ANSWER, .turn = a->turn};
    const uint32_t n_vocab = model_get_info(a->model)->n_vocab;
    float *behind = base_xmalloc(n_vocab * sizeof *behind);
    double sum = 0;
    int r = 0;
    *ret_foremost = ids->n > 0;
    memcpy(behind, logits, n_vocab * sizeof *behind);
    for (size_t i = 0; i < ids->n && !r; i++) {
        const float most = behind[bench_best(behind, n_vocab)];
        double all = 0;
        *ret_foremost = *ret_foremost && behind[ids->ids[i]] >= most;
        for (uint32_t v = 0; v < n_vocab; v++) all += exp((double)behind[v] - most);
        sum += behind[ids->ids[i]] - most - log(all);
        if (i + 1 < ids->n) r = kv_session_append(s, &written, &ids->ids[i], 1, behind, NULL, err);
    }
    *ret = ids->n ? sum / (double)ids->n : 0;
    free(behind);
    return r;
}
