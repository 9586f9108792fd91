/*
 * See check_ops.h.
 */
#include "check_ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/file/quant.h"

enum { CANARY_FLOATS = 64 };

/* ---- small things ---- */

uint64_t random_state = 1;

uint32_t random_u32(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) * 2u + (uint32_t)(random_state >> 63);
}

float random_float(void) /* about normal, sd 1 */
{
    float s = 0;
    for (int i = 0; i < 6; i++) s += (float)(random_u32() >> 8) * 0x1p-24f - 0.5f;
    return s * 1.41421356f;
}

float *random_floats(size_t n)
{
    float *x = base_xmalloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = random_float();
    return x;
}

uint16_t *random_halves(size_t n)
{
    uint16_t *x = base_xmalloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = quant_f32_to_f16(random_float());
    return x;
}

void fail(check *c, const char *format, const char *op, double a, double b, size_t at)
{
    if (c->n_failed++ < 20) {
        printf("FAILED %s, %s: ", op, c->what);
        printf(format, a, b, at);
        printf(" (%s; KVIST_SEED=%" PRIu64 ")\n", c->side, c->seed);
    }
}

/* Equal bits, or both NaN. */
void expect_same(check *c, const char *op, const float *a, const float *b, size_t n)
{
    c->n_cases++;
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) == 0 || (isnan(a[i]) && isnan(b[i]))) continue;
        fail(c, "%.9g and %.9g at %zu", op, a[i], b[i], i);
        return;
    }
}

void expect_near(check *c, const char *op, const float *a, const double *b, size_t n, double tolerance)
{
    c->n_cases++;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= tolerance)) {
            fail(c, "%.9g is not near %.9g at %zu", op, a[i], b[i], i);
            return;
        }
}

void expect_ok(check *c, const char *op, int rc, const base_err *err)
{
    if (rc == 0) return;
    printf("FAILED %s, %s: %s (%s; KVIST_SEED=%" PRIu64 ")\n", op, c->what, err->msg, c->side, c->seed);
    c->n_failed++;
}

/* ---- a matrix on a backend, with canaries before it, behind it and between rows ---- */

ops_buffer *buffer_of(model_ops *ops, const void *bytes, size_t n_bytes)
{
    base_err err;
    ops_buffer *b = NULL;
    if (ops->buffer_new(ops, &b, n_bytes, &err) < 0) {
        printf("FAILED: %s\n", err.msg);
        exit(1);
    }
    ops->upload(ops, b, 0, bytes, n_bytes);
    return b;
}

matrix matrix_new(model_ops *ops, uint32_t n, uint32_t width, const float *values)
{
    size_t stride = width + 3, total = 2 * CANARY_FLOATS + n * stride;
    float *all = base_xmalloc(total * sizeof *all);
    for (size_t i = 0; i < total; i++) all[i] = canary;
    for (uint32_t t = 0; t < n && values; t++)
        memcpy(all + CANARY_FLOATS + t * stride, values + (size_t)t * width, width * sizeof *all);
    matrix x = {ops, {buffer_of(ops, all, total * sizeof *all), CANARY_FLOATS, stride}, n, width};
    free(all);
    return x;
}

/* The values; checks the canaries and frees the matrix. */
float *matrix_take(check *c, const char *op, matrix x)
{
    size_t total = 2 * CANARY_FLOATS + x.n * x.m.stride;
    float *all = base_xmalloc(total * sizeof *all),
          *out = base_xmalloc((size_t)x.n * x.width * sizeof *out + 1);
    x.ops->download(x.ops, all, x.m.buffer, 0, total * sizeof *all);
    for (size_t i = 0; i < total; i++) {
        size_t at = i - CANARY_FLOATS;
        bool inside = i >= CANARY_FLOATS && at < x.n * x.m.stride && at % x.m.stride < x.width;
        if (inside)
            out[at / x.m.stride * x.width + at % x.m.stride] = all[i];
        else if (memcmp(&all[i], &canary, sizeof canary) != 0) {
            fail(c, "wrote %.9g over a canary (%.9g) at %zu", op, all[i], canary, i);
            break;
        }
    }
    free(all);
    x.ops->buffer_free(x.ops, x.m.buffer);
    return out;
}

/* ---- tensors as a file holds them ---- */

void put_u16(uint8_t *p, uint16_t v)
{
    memcpy(p, &v, sizeof v);
}

static gguf_tensor tensor_raw(gguf_tensor_type type, uint32_t n_in, uint32_t n_out)
{
    const quant_format *f = quant_format_of(type);
    gguf_tensor t = {.name = {"test", 4}, .type = type, .n_dims = 2, .ne = {n_in, n_out, 1, 1}};
    t.n_bytes = (size_t)n_in / f->n * n_out * f->n_bytes;
    t.data = base_xmalloc(t.n_bytes);
    return t;
}

/* The outer scale of one block (of a float: the element itself), and its minimum if there is one. */
static void put_scale(gguf_tensor_type type, uint8_t *p, float d, float m)
{
    const quant_format *f = quant_format_of(type);
    uint32_t bits;
    memcpy(&bits, &d, sizeof bits);
    if (f->kind == QUANT_FP4)
        p[f->d_at] = (uint8_t)(bits >> 23);
    else if (type == GGUF_TENSOR_F32)
        memcpy(p, &d, sizeof d);
    else if (f->is_spread)
        for (int i = 0; i < 4; i++) {
            uint8_t *upper = p + f->d_at + 2 * i + 1;
            *upper = (uint8_t)((*upper & 15) | (quant_f32_to_f16(d) >> 4 * i & 15) << 4);
        }
    else
        put_u16(p + f->d_at, type == GGUF_TENSOR_BF16 ? (uint16_t)(bits >> 16) : quant_f32_to_f16(d));
    if (f->kind == QUANT_MIN || f->kind == QUANT_SUPER_MIN || f->kind == QUANT_SUPER_MIN_16)
        put_u16(p + f->d_at + 2, quant_f32_to_f16(m));
}

/* Random quants, scales of a size that occurs. */
gguf_tensor tensor_new(gguf_tensor_type type, uint32_t n_in, uint32_t n_out)
{
    gguf_tensor t = tensor_raw(type, n_in, n_out);
    uint8_t *data = (uint8_t *)t.data;
    for (size_t i = 0; i < t.n_bytes; i++) data[i] = (uint8_t)random_u32();
    for (size_t at = 0; at < t.n_bytes; at += quant_format_of(type)->n_bytes) {
        float d = random_float() * 0.05f;
        put_scale(type, data + at, d, random_float() * 0.1f);
    }
    return t;
}

gguf_tensor tensor_filled(gguf_tensor_type type, uint32_t n_in, uint32_t n_out, uint8_t byte)
{
    gguf_tensor t = tensor_raw(type, n_in, n_out);
    memset((uint8_t *)t.data, byte, t.n_bytes);
    for (size_t at = 0; at < t.n_bytes; at += quant_format_of(type)->n_bytes)
        put_scale(type, (uint8_t *)t.data + at, byte & 1 ? 0.5f : -0.5f, 0.25f);
    return t;
}

void tensor_free(gguf_tensor t)
{
    free((void *)t.data);
}

/* ---- activations ---- */

ops_activations *activations(check *c, model_ops *ops, uint32_t n, uint32_t width, const float *values)
{
    base_err err;
    ops_activations *x = NULL;
    matrix from = matrix_new(ops, n, width, values);
    expect_ok(c, "activations_new", ops->activations_new(ops, &x, n, width, &err), &err);
    expect_ok(c, "quant",
        ops->quant(ops, &(ops_quant_args){.x = from.m, .n = n, .width = width, .out = x}, &err), &err);
    ops->buffer_free(ops, from.m.buffer);
    return x;
}

/*
 * What a set of activations stands for: its product with the unit matrix (F32: 16-bit quants of 1 and 0 are
 * exact).
 */
float *activations_take(check *c, model_ops *ops, ops_activations *x, uint32_t n, uint32_t width)
{
    base_err err;
    float *unit = base_xcalloc((size_t)width * width, sizeof *unit);
    for (uint32_t i = 0; i < width; i++) unit[(size_t)i * width + i] = 1;
    gguf_tensor t = {.name = {"unit", 4}, .type = GGUF_TENSOR_F32, .n_dims = 2, .ne = {width, width, 1, 1}};
    t.data = (const uint8_t *)unit;
    ops_weight *w = NULL;
    expect_ok(c, "pack", ops->pack(ops, &w, &t, &err), &err);
    matrix y = matrix_new(ops, n, width, NULL);
    ops_matmul_args args = {.x = x, .n_parts = 1, .parts = {{.weight = w, .y = y.m}}};
    expect_ok(c, "matmul", ops->matmul(ops, &args, &err), &err);
    ops->weight_free(ops, w);
    ops->activations_free(ops, x);
    free(unit);
    return matrix_take(c, "matmul", y);
}
