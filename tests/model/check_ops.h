/*
 * What the parts of check_ops share: random inputs, matrices with canaries around them, tensors as a file
 * holds them, and comparisons that see a NaN. The first failures are printed; the count is the verdict.
 */
#ifndef KVIST_TESTS_CHECK_OPS_H
#define KVIST_TESTS_CHECK_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/ops/ops.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const float canary = -7.25e33f;
static const uint32_t batches[] = {1, 2, 3, 5, 8, 16, 33, 512};

typedef struct check {
    model_ops *a, *b; /* reference, and what is compared with it */
    const char *what; /* of the case at hand */
    const char *side; /* the level and the threads of b */
    uint64_t seed;    /* of the whole run */
    int n_failed, n_cases;
} check;

extern uint64_t random_state;
uint32_t random_u32(void);
float random_float(void); /* about normal, sd 1 */
float *random_floats(size_t n);
uint16_t *random_halves(size_t n); /* F16 */

void fail(check *c, const char *format, const char *op, double a, double b, size_t at);
void expect_same(
    check *c, const char *op, const float *a, const float *b, size_t n); /* equal bits, or both NaN */
void expect_near(check *c, const char *op, const float *a, const double *b, size_t n, double tolerance);
void expect_ok(check *c, const char *op, int rc, const base_err *err);

/* A matrix on a backend, with canaries before it, behind it and between rows. */
typedef struct matrix {
    model_ops *ops;
    ops_mat m;
    uint32_t n, width;
} matrix;

ops_buffer *buffer_of(model_ops *ops, const void *bytes, size_t n_bytes);
matrix matrix_new(model_ops *ops, uint32_t n, uint32_t width, const float *values); /* values may be NULL */
float *matrix_take(
    check *c, const char *op, matrix x); /* the values; checks the canaries and frees the matrix */

void put_u16(uint8_t *p, uint16_t v);
gguf_tensor tensor_new(
    gguf_tensor_type type, uint32_t n_in, uint32_t n_out); /* random quants, scales of a size that occurs */
gguf_tensor tensor_filled(gguf_tensor_type type, uint32_t n_in, uint32_t n_out,
    uint8_t byte); /* all quants and inner scales of this byte */
void tensor_free(gguf_tensor t);

ops_activations *activations(check *c, model_ops *ops, uint32_t n, uint32_t width, const float *values);
/* What activations stand for, [n][width]: their product with the unit matrix. Frees them. */
float *activations_take(check *c, model_ops *ops, ops_activations *x, uint32_t n, uint32_t width);

/* Blocks of random rows and, per lane, a list with runs of odd lengths; lanes differ when `apart`. */
typedef struct cache {
    model_rows_view view;
    uint16_t *blocks[64];
    model_lane_list lanes[16];
} cache;

void cache_new(cache *x, model_rows_shape shape, uint32_t n_rows, bool apart);
void cache_free(cache *x);
uint32_t slot_of(const model_lane_list *list, uint32_t ordinal, uint32_t *ret_index);

/* check_ops_rows.c, check_ops_visit.c, check_ops_experts.c, check_ops_recurrent.c, check_ops_version.c, check_ops_bench.c */
void cases_rows_write(check *c);
void cases_attention(check *c);
void check_attention_of_halves(check *c); /* of cuda:bf16 */
void cases_visit(check *c);
void cases_score_rows(check *c);
void cases_bound(check *c);
void cases_route(check *c);
void cases_experts(check *c);
void cases_conv(check *c);
void cases_delta(check *c);
void check_version(check *c);
void bench(check *c, int n_threads, const char *only);

#endif
