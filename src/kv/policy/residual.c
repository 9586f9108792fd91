/*
 * The network of residual.h, one thread. Sums run in one order and outputs lie side by side, so a compiler may take
 * several at once and the bits stay the same; exp and erf are computed in F64 and rounded, which hides what libraries
 * differ in.
 */
#include "kv/policy/residual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = KV_RESIDUAL_WIDTH,
    HEADS = KV_RESIDUAL_HEADS,
    EACH = WIDTH / HEADS,
    HIDDEN = KV_RESIDUAL_HIDDEN,
    ROWS = KV_RESIDUAL_ROWS
};

kv_residual_layout kv_residual_layout_of(uint32_t dim)
{
    kv_residual_layout l = {0};
    const size_t phi = 3 * (size_t)dim + 1;
    size_t at = 0;
    l.wq = at;
    l.bq = at += phi * WIDTH;
    l.wk = at += WIDTH;
    l.bk = at += (size_t)dim * WIDTH;
    l.wv = at += WIDTH;
    l.bv = at += (size_t)dim * WIDTH;
    l.w1 = at += WIDTH;
    l.b1 = at += (phi + WIDTH) * HIDDEN;
    l.w2 = at += HIDDEN;
    l.b2 = at += HIDDEN;
    l.alpha = at += 1;
    l.n = at + 1;
    return l;
}

kv_residual *kv_residual_new(uint32_t dim, const char *hash)
{
    if (!dim || dim > KV_RESIDUAL_DIM_MOST || strlen(hash) > 64) return NULL;
    const kv_residual_layout l = kv_residual_layout_of(dim);
    kv_residual *r = calloc(1, sizeof *r);
    if (r) r->values = calloc(l.n, sizeof *r->values);
    if (!r || !r->values) {
        free(r);
        return NULL;
    }
    r->refs = 1;
    r->dim = dim;
    r->n = l.n;
    r->values[l.alpha] = 1;
    memcpy(r->hash, hash, strlen(hash));
    return r;
}

kv_residual *kv_residual_ref(kv_residual *r)
{
    if (r) r->refs++;
    return r;
}

void kv_residual_unref(kv_residual *r)
{
    if (!r || --r->refs) return;
    free(r->values);
    free(r);
}

float kv_residual_dot(const float *a, const float *b, size_t n)
{
    float sums[8] = {0}, sum = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++) sums[k] += a[i + k] * b[i + k];
    for (; i < n; i++) sum += a[i] * b[i];
    for (size_t k = 0; k < 8; k++) sum += sums[k];
    return sum;
}

float kv_residual_gelu(float x, float *slope)
{
    const double normal = .5 * (1 + erf((double)x * M_SQRT1_2));
    if (slope) *slope = (float)(normal + x * .3989422804014327 * exp(-.5 * (double)x * x));
    return (float)(x * normal);
}

/* The columns of phi = [k, m, k * m, rule] as a matrix over [k, rule] and a constant. */
static void fold(
    const float *w, const float *b, const float *m, uint32_t dim, size_t width, float *e, float *c)
{
    memcpy(c, b, width * sizeof *c);
    memcpy(e, w, dim * width * sizeof *e);
    for (uint32_t i = 0; i < dim; i++) {
        kv_residual_add(c, w + (dim + i) * width, m[i], width);
        kv_residual_add(e + i * width, w + (2 * (size_t)dim + i) * width, m[i], width);
    }
    memcpy(e + dim * width, w + 3 * (size_t)dim * width, width * sizeof *e);
}

int kv_residual_begin(const kv_residual *r, const kv_residual_input *in, kv_residual_pass *ret, base_err *err)
{
    const kv_residual_layout l = kv_residual_layout_of(r->dim);
    const size_t d = r->dim, n_eq = (d + 1) * WIDTH, n_e1 = (d + 1 + WIDTH) * HIDDEN,
                 n_keys = (size_t)in->n_asking * WIDTH;
    const float *w = r->values;
    float *at = malloc((n_eq + WIDTH + n_e1 + HIDDEN + 2 * n_keys) * sizeof *at);
    if (!at) return base_fail(err, BASE_E_NOMEM, "no memory for the residual's pass");
    *ret = (kv_residual_pass){
        .dim = r->dim, .n_asking = in->n_asking, .memory = at, .w2 = w + l.w2, .b2 = w[l.b2]};
    ret->eq = at;
    ret->cq = at += n_eq;
    ret->e1 = at += WIDTH;
    ret->c1 = at += n_e1;
    ret->keys = at += HIDDEN;
    ret->values = at + n_keys;
    fold(w + l.wq, w + l.bq, in->memory, r->dim, WIDTH, ret->eq, ret->cq);
    fold(w + l.w1, w + l.b1, in->memory, r->dim, HIDDEN, ret->e1, ret->c1);
    memcpy(ret->e1 + (d + 1) * HIDDEN, w + l.w1 + (3 * d + 1) * HIDDEN, sizeof *at * WIDTH * HIDDEN);
    for (uint32_t t = 0; t < in->n_asking; t++) {
        float *key = ret->keys + (size_t)t * WIDTH, *value = ret->values + (size_t)t * WIDTH;
        memcpy(key, w + l.bk, WIDTH * sizeof *key);
        memcpy(value, w + l.bv, WIDTH * sizeof *value);
        for (size_t i = 0; i < d; i++) {
            kv_residual_add(key, w + l.wk + i * WIDTH, in->asking[t * d + i], WIDTH);
            kv_residual_add(value, w + l.wv + i * WIDTH, in->asking[t * d + i], WIDTH);
        }
    }
    return 0;
}

void kv_residual_end(kv_residual_pass *p)
{
    free(p->memory);
    *p = (kv_residual_pass){0};
}

/* One row and head: the softmax of q over the message's keys, and their values by it. */
static void attend(const kv_residual_pass *p, uint32_t head, const float *q, float *weights, float *c)
{
    const float scale = 1 / sqrtf((float)EACH);
    float most = -INFINITY;
    double sum = 0;
    for (uint32_t t = 0; t < p->n_asking; t++) {
        weights[t] = scale * kv_residual_dot(q, p->keys + (size_t)t * WIDTH + head * EACH, EACH);
        if (weights[t] > most) most = weights[t];
    }
    for (uint32_t t = 0; t < p->n_asking; t++) {
        weights[t] = (float)exp((double)weights[t] - most);
        sum += weights[t];
    }
    for (uint32_t t = 0; t < p->n_asking; t++) {
        weights[t] = (float)(weights[t] / sum);
        kv_residual_add(c, p->values + (size_t)t * WIDTH + head * EACH, weights[t], EACH);
    }
}

void kv_residual_compute(
    const kv_residual_pass *p, const float *const *keys, const float *rule, uint32_t n, kv_residual_rows *ret)
{
    for (uint32_t r = 0; r < n; r++) {
        memcpy(ret->q[r], p->cq, sizeof ret->q[r]);
        memcpy(ret->hidden[r], p->c1, sizeof ret->hidden[r]);
        memset(ret->c[r], 0, sizeof ret->c[r]);
    }
    for (uint32_t i = 0; i <= p->dim; i++)
        for (uint32_t r = 0; r < n; r++) {
            const float x = i < p->dim ? keys[r][i] : rule[r];
            kv_residual_add(ret->q[r], p->eq + (size_t)i * WIDTH, x, WIDTH);
            kv_residual_add(ret->hidden[r], p->e1 + (size_t)i * HIDDEN, x, HIDDEN);
        }
    for (uint32_t r = 0; r < n && p->n_asking; r++)
        for (uint32_t head = 0; head < HEADS; head++)
            attend(p, head, ret->q[r] + head * EACH, ret->p[r][head], ret->c[r] + head * EACH);
    for (uint32_t i = 0; i < WIDTH; i++)
        for (uint32_t r = 0; r < n; r++)
            kv_residual_add(ret->hidden[r], p->e1 + (size_t)(p->dim + 1 + i) * HIDDEN, ret->c[r][i], HIDDEN);
    for (uint32_t r = 0; r < n; r++) {
        float g[HIDDEN];
        for (uint32_t i = 0; i < HIDDEN; i++) g[i] = kv_residual_gelu(ret->hidden[r][i], NULL);
        ret->out[r] = p->b2 + kv_residual_dot(g, p->w2, HIDDEN);
    }
}

int kv_residual_score(const kv_residual *r, const kv_residual_input *in, float *score, base_err *err)
{
    kv_residual_pass pass;
    int rc = kv_residual_begin(r, in, &pass, err);
    if (rc) return rc;
    float alpha = r->values[r->n - 1];
    alpha = alpha > 5 ? 5 : alpha < -5 ? -5 : alpha;
    for (uint32_t from = 0; from < in->n; from += ROWS) {
        kv_residual_rows rows;
        const float *keys[ROWS];
        const uint32_t n = in->n - from < ROWS ? in->n - from : ROWS;
        for (uint32_t i = 0; i < n; i++) keys[i] = in->keys + (size_t)(from + i) * r->dim;
        kv_residual_compute(&pass, keys, in->rule + from, n, &rows);
        for (uint32_t i = 0; i < n; i++) score[from + i] = in->rule[from + i] + alpha * rows.out[i];
    }
    kv_residual_end(&pass);
    return 0;
}
