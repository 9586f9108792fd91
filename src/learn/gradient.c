/* See learn/gradient.h. Forward by kv_residual_compute, and the same steps backwards. */
#include "learn/gradient.h"

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

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

/* --- the loss over scores --- */

typedef struct scored {
    double score;
    uint32_t at;
} scored;

static int highest_first(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* Each quoted row against the hardest others, the mean over pairs; hard: room for all rows. */
static double rank_loss(const learn_rows *rows, const double *s, double weight, scored *hard, double *slope)
{
    uint32_t n_hard = 0, n_quoted = 0;
    double sum = 0;
    for (uint32_t i = 0; i < rows->in.n; i++) {
        n_quoted += rows->quoted[i];
        if (!rows->quoted[i]) hard[n_hard++] = (scored){s[i], i};
    }
    qsort(hard, n_hard, sizeof *hard, highest_first);
    if (n_hard > LEARN_HARD_NEGATIVES) n_hard = LEARN_HARD_NEGATIVES;
    const double each = weight / ((double)n_quoted * n_hard);
    for (uint32_t i = 0; i < rows->in.n; i++)
        for (uint32_t k = 0; k < n_hard && rows->quoted[i]; k++) {
            const double x = hard[k].score - s[i], d = each * sigmoid(x);
            sum += each * softplus(x);
            slope[hard[k].at] += d;
            slope[i] -= d;
        }
    return sum;
}

/* The whole loss; slope[n]: by score. */
static double loss_of(
    const learn_rows *rows, const learn_loss *how, const double *s, scored *hard, double *slope)
{
    double all = 0, quoted = 0, sum = 0;
    for (uint32_t i = 0; i < rows->in.n; i++) {
        all += rows->weight[i];
        if (rows->quoted[i]) quoted += rows->weight[i];
    }
    const double share = fmin(fmax(quoted / all, .02), .5), positive = (1 - share) / share;
    for (uint32_t i = 0; i < rows->in.n; i++) {
        const double w = rows->weight[i] / all, p = sigmoid(s[i]);
        sum += w * (rows->quoted[i] ? positive * softplus(-s[i]) : softplus(s[i])) + how->keep * w * p;
        slope[i] = w * (rows->quoted[i] ? positive * (p - 1) : p) + how->keep * w * p * (1 - p);
    }
    return sum + rank_loss(rows, s, how->rank, hard, slope);
}

/* --- backwards --- */

/* Sums over a place's rows, before they are handed on to the matrices that were folded. */
typedef struct sums {
    float *eq, *cq, *e1, *c1, *keys, *values; /* as in kv_residual_pass */
    float *out_of_c;                          /* [HIDDEN][WIDTH] e1's rows of c, the other way round */
    float *memory;
} sums;

static int begin_sums(const kv_residual_pass *p, sums *ret, base_err *err)
{
    const size_t n_eq = (p->dim + 1) * (size_t)WIDTH, n_e1 = (p->dim + 1 + WIDTH) * (size_t)HIDDEN,
                 n_keys = (size_t)p->n_asking * WIDTH;
    float *at = calloc(n_eq + WIDTH + n_e1 + HIDDEN + 2 * n_keys + (size_t)HIDDEN * WIDTH, sizeof *at);
    if (!at) return base_fail(err, BASE_E_NOMEM, "no memory to train a residual");
    *ret = (sums){.memory = at, .eq = at};
    ret->cq = at += n_eq;
    ret->e1 = at += WIDTH;
    ret->c1 = at += n_e1;
    ret->keys = at += HIDDEN;
    ret->values = at += n_keys;
    ret->out_of_c = at + n_keys;
    for (size_t a = 0; a < WIDTH; a++)
        for (size_t h = 0; h < HIDDEN; h++)
            ret->out_of_c[h * WIDTH + a] = p->e1[(p->dim + 1 + a) * HIDDEN + h];
    return 0;
}

/* From the slope by c of one row and head to those by its query, and by the message's keys and values. */
static void attend_back(const kv_residual_pass *p, sums *to, uint32_t head, const float *q,
    const float *weights, const float *dc, float *dq)
{
    const float scale = 1 / sqrtf((float)EACH);
    float slopes[KV_RESIDUAL_ASKING], mean = 0;
    for (uint32_t t = 0; t < p->n_asking; t++) {
        const size_t at = (size_t)t * WIDTH + head * EACH;
        slopes[t] = kv_residual_dot(dc, p->values + at, EACH);
        mean += weights[t] * slopes[t];
        kv_residual_add(to->values + at, dc, weights[t], EACH);
    }
    for (uint32_t t = 0; t < p->n_asking; t++) {
        const size_t at = (size_t)t * WIDTH + head * EACH;
        const float d = scale * weights[t] * (slopes[t] - mean);
        kv_residual_add(dq, p->keys + at, d, EACH);
        kv_residual_add(to->keys + at, q, d, EACH);
    }
}

/* One row: dout is the loss's slope by MLP's output. */
static void row_back(const kv_residual_pass *p, const kv_residual_layout *l, const kv_residual_rows *rows,
    uint32_t r, const float *key, float rule, float dout, sums *to, float *grad)
{
    float dh[HIDDEN], dc[WIDTH] = {0}, dq[WIDTH] = {0};
    for (uint32_t i = 0; i < HIDDEN; i++) {
        float slope;
        grad[l->w2 + i] += dout * kv_residual_gelu(rows->hidden[r][i], &slope);
        dh[i] = dout * p->w2[i] * slope;
    }
    grad[l->b2] += dout;
    kv_residual_add(to->c1, dh, 1, HIDDEN);
    for (uint32_t i = 0; i <= p->dim; i++)
        kv_residual_add(to->e1 + (size_t)i * HIDDEN, dh, i < p->dim ? key[i] : rule, HIDDEN);
    if (!p->n_asking) return;
    for (uint32_t a = 0; a < WIDTH; a++)
        kv_residual_add(to->e1 + (size_t)(p->dim + 1 + a) * HIDDEN, dh, rows->c[r][a], HIDDEN);
    for (uint32_t h = 0; h < HIDDEN; h++) kv_residual_add(dc, to->out_of_c + (size_t)h * WIDTH, dh[h], WIDTH);
    for (uint32_t head = 0; head < HEADS; head++)
        attend_back(
            p, to, head, rows->q[r] + head * EACH, rows->p[r][head], dc + head * EACH, dq + head * EACH);
    kv_residual_add(to->cq, dq, 1, WIDTH);
    for (uint32_t i = 0; i <= p->dim; i++)
        kv_residual_add(to->eq + (size_t)i * WIDTH, dq, i < p->dim ? key[i] : rule, WIDTH);
}

/* What was folded into one matrix, to its columns k, m, k * m and rule. */
static void unfold(
    const float *e, const float *c, const float *m, uint32_t dim, size_t width, float *w, float *b)
{
    kv_residual_add(b, c, 1, width);
    for (uint32_t i = 0; i < dim; i++) {
        kv_residual_add(w + i * width, e + i * width, 1, width);
        kv_residual_add(w + (dim + i) * width, c, m[i], width);
        kv_residual_add(w + (2 * (size_t)dim + i) * width, e + i * width, m[i], width);
    }
    kv_residual_add(w + 3 * (size_t)dim * width, e + dim * width, 1, width);
}

static void end_sums(
    const kv_residual_layout *l, const kv_residual_input *in, uint32_t dim, const sums *s, float *grad)
{
    const size_t d = dim;
    unfold(s->eq, s->cq, in->memory, dim, WIDTH, grad + l->wq, grad + l->bq);
    unfold(s->e1, s->c1, in->memory, dim, HIDDEN, grad + l->w1, grad + l->b1);
    kv_residual_add(grad + l->w1 + (3 * d + 1) * HIDDEN, s->e1 + (d + 1) * HIDDEN, 1, (size_t)WIDTH * HIDDEN);
    for (uint32_t t = 0; t < in->n_asking; t++) {
        const float *key = s->keys + (size_t)t * WIDTH, *value = s->values + (size_t)t * WIDTH;
        kv_residual_add(grad + l->bk, key, 1, WIDTH);
        kv_residual_add(grad + l->bv, value, 1, WIDTH);
        for (size_t i = 0; i < d; i++) {
            kv_residual_add(grad + l->wk + i * WIDTH, key, in->asking[t * d + i], WIDTH);
            kv_residual_add(grad + l->wv + i * WIDTH, value, in->asking[t * d + i], WIDTH);
        }
    }
}

int learn_gradient(const kv_residual *r, const learn_rows *rows, const learn_loss *how, double *ret_loss,
    float *grad, base_err *err)
{
    const kv_residual_layout l = kv_residual_layout_of(r->dim);
    const kv_residual_input *in = &rows->in;
    const uint32_t n_blocks = (in->n + ROWS - 1) / ROWS;
    const float alpha = r->values[l.alpha];
    kv_residual_rows *blocks = malloc((size_t)n_blocks * sizeof *blocks);
    double *s = malloc(2 * (size_t)in->n * sizeof *s), *slope = s ? s + in->n : NULL;
    scored *hard = malloc((size_t)in->n * sizeof *hard);
    kv_residual_pass pass = {0};
    sums to = {0};
    int rc = blocks && s && hard ? kv_residual_begin(r, in, &pass, err)
                                 : base_fail(err, BASE_E_NOMEM, "no memory to train a residual");
    if (!rc) rc = begin_sums(&pass, &to, err);
    for (uint32_t b = 0; b < n_blocks && !rc; b++) {
        const uint32_t from = b * ROWS, n = in->n - from < ROWS ? in->n - from : ROWS;
        const float *keys[ROWS];
        for (uint32_t i = 0; i < n; i++) keys[i] = in->keys + (size_t)(from + i) * r->dim;
        kv_residual_compute(&pass, keys, in->rule + from, n, &blocks[b]);
        for (uint32_t i = 0; i < n; i++) s[from + i] = in->rule[from + i] + (double)alpha * blocks[b].out[i];
    }
    if (!rc) *ret_loss = loss_of(rows, how, s, hard, slope);
    for (uint32_t i = 0; i < in->n && !rc; i++) {
        grad[l.alpha] += (float)(slope[i] * blocks[i / ROWS].out[i % ROWS]);
        row_back(&pass, &l, &blocks[i / ROWS], i % ROWS, in->keys + (size_t)i * r->dim, in->rule[i],
            (float)(slope[i] * alpha), &to, grad);
    }
    if (!rc) end_sums(&l, in, r->dim, &to, grad);
    kv_residual_end(&pass);
    free(to.memory);
    free(blocks);
    free(s);
    free(hard);
    return rc;
}
