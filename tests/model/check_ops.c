/*
 * Every operation of ops.def, every level against plain C: equal bits, over formats, batch sizes and odd shapes. In dav1d's
 * checkasm manner: a plain executable (exit status is the verdict), and an operation without a cases_* function here does not
 * compile. `--bench` prints speeds beside what the machine's memory gives in the same run.
 *
 * Besides levels, each matmul and attention is checked for what the cache stands on: a row's bits do not depend on the batch it
 * is in, or on the number of threads; and against sums in F64, so that plain C itself is right.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/pool.h"
#include "model/ops.h"
#include "model/quant.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { CANARY_FLOATS = 64 };
static const float canary = -7.25e33f;
static const uint32_t batches[] = {1, 2, 3, 5, 8, 16, 33};

typedef struct check {
    model_ops *a, *b; /* reference, and what is compared with it */
    const char *what; /* of the case at hand */
    int n_failed, n_cases;
} check;

/* ---- small things ---- */

static uint64_t random_state = 1;

static uint32_t random_u32(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) * 2u + (uint32_t)(random_state >> 63);
}

static float random_float(void) /* about normal, sd 1 */
{
    float s = 0;
    for (int i = 0; i < 6; i++) s += (float)(random_u32() >> 8) * 0x1p-24f - 0.5f;
    return s * 1.41421356f;
}

static float *random_floats(size_t n)
{
    float *x = base_xmalloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = random_float();
    return x;
}

static void fail(check *c, const char *format, const char *op, double a, double b, size_t at)
{
    if (c->n_failed++ < 20) {
        printf("FAILED %s, %s: ", op, c->what);
        printf(format, a, b, at);
        printf("\n");
    }
}

/* Equal bits, or both NaN. */
static void expect_same(check *c, const char *op, const float *a, const float *b, size_t n)
{
    c->n_cases++;
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) == 0 || (isnan(a[i]) && isnan(b[i]))) continue;
        fail(c, "%.9g and %.9g at %zu", op, a[i], b[i], i);
        return;
    }
}

static void expect_near(check *c, const char *op, const float *a, const double *b, size_t n, double tolerance)
{
    c->n_cases++;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= tolerance)) {
            fail(c, "%.9g is not near %.9g at %zu", op, a[i], b[i], i);
            return;
        }
}

static void expect_ok(check *c, const char *op, int rc, const base_err *err)
{
    if (rc == 0) return;
    printf("FAILED %s, %s: %s\n", op, c->what, err->msg);
    c->n_failed++;
}

/* ---- a matrix on a backend, with canaries before it, behind it and between rows ---- */

typedef struct matrix {
    model_ops *ops;
    ops_mat m;
    uint32_t n, width;
} matrix;

static ops_buffer *buffer_of(model_ops *ops, const void *bytes, size_t n_bytes)
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

static matrix matrix_new(model_ops *ops, uint32_t n, uint32_t width, const float *values)
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
static float *matrix_take(check *c, const char *op, matrix x)
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

static const gguf_tensor_type weight_types[] = {GGUF_TENSOR_F32, GGUF_TENSOR_F16, GGUF_TENSOR_BF16,
    GGUF_TENSOR_Q4_0, GGUF_TENSOR_Q4_1, GGUF_TENSOR_Q5_0, GGUF_TENSOR_Q5_1, GGUF_TENSOR_Q8_0,
    GGUF_TENSOR_Q4_K, GGUF_TENSOR_Q5_K, GGUF_TENSOR_Q6_K};

static void put_u16(uint8_t *p, uint16_t v)
{
    memcpy(p, &v, sizeof v);
}

/* Random quants, scales of a size that occurs. */
static gguf_tensor tensor_new(gguf_tensor_type type, uint32_t n_in, uint32_t n_out)
{
    const quant_format *f = quant_format_of(type);
    gguf_tensor t = {.name = {"test", 4}, .type = type, .n_dims = 2, .ne = {n_in, n_out, 1, 1}};
    size_t n_blocks = (size_t)n_in / f->n * n_out;
    t.n_bytes = n_blocks * f->n_bytes;
    uint8_t *data = base_xmalloc(t.n_bytes);
    for (size_t i = 0; i < t.n_bytes; i++) data[i] = (uint8_t)random_u32();
    for (size_t i = 0; i < n_blocks; i++) {
        uint8_t *p = data + i * f->n_bytes;
        float x = random_float() * 0.05f;
        uint16_t d = quant_f32_to_f16(x), m = quant_f32_to_f16(random_float() * 0.1f);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (type == GGUF_TENSOR_F32)
            memcpy(p, &x, sizeof x);
        else if (f->kind == QUANT_FLOAT)
            put_u16(p, type == GGUF_TENSOR_BF16 ? (uint16_t)(bits >> 16) : d);
        else
            put_u16(f->kind == QUANT_SUPER_16 ? p + 208 : p, d);
        if (f->kind == QUANT_MIN || f->kind == QUANT_SUPER_MIN) put_u16(p + 2, m);
    }
    t.data = data;
    return t;
}

static void tensor_free(gguf_tensor t)
{
    free((void *)t.data);
}

/* ---- activations ---- */

static ops_activations *activations(check *c, model_ops *ops, uint32_t n, uint32_t width, const float *values)
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

/* What a set of activations stands for: its product with the unit matrix (F32: 16-bit quants of 1 and 0 are exact). */
static float *activations_take(check *c, model_ops *ops, ops_activations *x, uint32_t n, uint32_t width)
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

/* ---- the operations ---- */

static void cases_embed(check *c)
{
    static const int32_t ids[] = {3, 0, 16, 3, 9};
    for (size_t i = 0; i < COUNT(weight_types); i++) {
        c->what = gguf_tensor_type_name(weight_types[i]);
        gguf_tensor t = tensor_new(weight_types[i], 512, 17);
        float *got[2];
        for (int side = 0; side < 2; side++) {
            model_ops *ops = side ? c->b : c->a;
            base_err err;
            matrix out = matrix_new(ops, COUNT(ids), 512, NULL);
            ops_embed_args args = {
                .table = &t, .ids = ids, .n = COUNT(ids), .scale = side ? 0 : 1, .out = out.m};
            expect_ok(c, "embed", ops->embed(ops, &args, &err), &err);
            int32_t outside = 17;
            args.ids = &outside;
            args.n = 1;
            if (ops->embed(ops, &args, &err) != BASE_E_LIMIT)
                fail(c, "took an id outside of the table", "embed", 0, 0, 0);
            got[side] = matrix_take(c, "embed", out);
        }
        expect_same(c, "embed", got[0], got[1], COUNT(ids) * 512);
        free(got[0]);
        free(got[1]);
        tensor_free(t);
    }
}

static void cases_norm(check *c)
{
    static const uint32_t shapes[][3] = {{1, 1, 1536}, {7, 1, 576}, {3, 9, 64}, {40, 4, 256}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        uint32_t n = shapes[i][0], groups = shapes[i][1], width = shapes[i][2];
        c->what = "groups of rows";
        float *values = random_floats((size_t)n * groups * width), *weight = random_floats(width), *got[2];
        for (int side = 0; side < 2; side++) {
            model_ops *ops = side ? c->b : c->a;
            base_err err;
            matrix x = matrix_new(ops, n, groups * width, values);
            ops_buffer *w = buffer_of(ops, weight, width * sizeof *weight);
            ops_norm_args args = {
                .x = x.m, .out = x.m, .weight = w, .n = n, .n_groups = groups, .width = width, .eps = 1e-6f};
            expect_ok(c, "norm", ops->norm(ops, &args, &err), &err);
            ops->buffer_free(ops, w);
            got[side] = matrix_take(c, "norm", x);
        }
        expect_same(c, "norm", got[0], got[1], (size_t)n * groups * width);
        double *truth = base_xmalloc(width * sizeof *truth), squares = 0;
        for (uint32_t k = 0; k < width; k++) squares += (double)values[k] * values[k];
        for (uint32_t k = 0; k < width; k++) truth[k] = values[k] / sqrt(squares / width + 1e-6) * weight[k];
        expect_near(c, "norm", got[0], truth, width, 1e-5);
        free(truth);
        free(values);
        free(weight);
        free(got[0]);
        free(got[1]);
    }
}

/* One row with an enormous element, one with infinity, one of zeros, among ordinary ones. */
static float *odd_rows(uint32_t n, uint32_t width)
{
    float *x = random_floats((size_t)n * width);
    if (n > 1) x[width + 3] = 40000;
    if (n > 2) memset(x + 2 * (size_t)width, 0, width * sizeof *x);
    if (n > 4) x[4 * (size_t)width + 29] = INFINITY;
    return x;
}

static void cases_norm_quant(check *c)
{
    static const uint32_t widths[] = {64, 96, 576, 1536};
    static const uint32_t rows[] = {4, 1, 1};
    for (size_t i = 0; i < COUNT(widths); i++) {
        uint32_t width = widths[i];
        c->what = "rows with odd elements, chosen rows";
        float *values = odd_rows(5, width), *weight = random_floats(width), *got[2];
        for (int side = 0; side < 2; side++) {
            model_ops *ops = side ? c->b : c->a;
            base_err err;
            matrix x = matrix_new(ops, 5, width, values);
            ops_buffer *w = buffer_of(ops, weight, width * sizeof *weight);
            ops_activations *out = NULL;
            expect_ok(c, "activations_new", ops->activations_new(ops, &out, 5, width, &err), &err);
            ops_norm_quant_args args = {
                .x = x.m, .weight = w, .rows = rows, .n = 3, .width = width, .eps = 1e-5f, .out = out};
            expect_ok(c, "norm_quant", ops->norm_quant(ops, &args, &err), &err);
            ops->buffer_free(ops, x.m.buffer);
            ops->buffer_free(ops, w);
            got[side] = activations_take(c, ops, out, 3, width);
        }
        expect_same(c, "norm_quant", got[0], got[1], 3 * (size_t)width);
        if (memcmp(got[0] + width, got[0] + 2 * (size_t)width, width * sizeof **got) != 0)
            fail(c, "the same row twice gave two results", "norm_quant", 0, 0, 0);
        free(values);
        free(weight);
        free(got[0]);
        free(got[1]);
    }
}

static void cases_quant(check *c)
{
    for (size_t i = 0; i < COUNT(batches); i++) {
        uint32_t n = batches[i], width = 288;
        c->what = "rows with odd elements";
        float *values = odd_rows(n, width);
        float *a = activations_take(c, c->a, activations(c, c->a, n, width, values), n, width);
        float *b = activations_take(c, c->b, activations(c, c->b, n, width, values), n, width);
        expect_same(c, "quant", a, b, (size_t)n * width);
        double truth[288];
        float largest = 0;
        for (uint32_t k = 0; k < width; k++) {
            truth[k] = values[k];
            largest = fmaxf(largest, fabsf(values[k]));
        }
        expect_near(c, "quant", a, truth, width, largest / 127 / 2 * 1.001);
        /* Beside an element of 40000 the others keep what 16 bits leave them. */
        for (uint32_t k = 0; k < width && n > 1; k++) truth[k] = values[width + k];
        if (n > 1) expect_near(c, "quant", a + width, truth, 32, 40000.0 / 127 / 256 / 2 * 1.01);
        if (n > 4 && !isnan(a[4 * width + 29])) fail(c, "infinity became a number", "quant", 0, 0, 0);
        free(values);
        free(a);
        free(b);
    }
}

static void cases_gate_quant(check *c)
{
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < COUNT(batches); i++) {
            uint32_t n = batches[i], width = 320;
            c->what = kind == OPS_GATE_SILU ? "silu" : "gelu";
            float *gate = odd_rows(n, width), *up = random_floats((size_t)n * width), *got[2];
            for (uint32_t k = 0; k < 32; k++) gate[k] *= 30;
            for (int side = 0; side < 2; side++) {
                model_ops *ops = side ? c->b : c->a;
                base_err err;
                matrix g = matrix_new(ops, n, width, gate), u = matrix_new(ops, n, width, up);
                ops_activations *out = NULL;
                expect_ok(c, "activations_new", ops->activations_new(ops, &out, n, width, &err), &err);
                ops_gate_quant_args args = {
                    .gate = g.m, .up = u.m, .kind = (ops_gate)kind, .n = n, .width = width, .out = out};
                expect_ok(c, "gate_quant", ops->gate_quant(ops, &args, &err), &err);
                ops->buffer_free(ops, g.m.buffer);
                ops->buffer_free(ops, u.m.buffer);
                got[side] = activations_take(c, ops, out, n, width);
            }
            expect_same(c, "gate_quant", got[0], got[1], (size_t)n * width);
            double truth[320], largest = 0;
            for (uint32_t k = 0; k < width; k++) {
                double x = gate[k],
                       u = kind == OPS_GATE_SILU ? x : 2 * 0.7978845608028654 * (x + 0.044715 * x * x * x);
                truth[k] = x / (1 + exp(-u)) * up[k];
                largest = fmax(largest, fabs(truth[k]));
            }
            expect_near(c, "gate_quant", got[0], truth, width, largest / 127 / 2 * 1.001);
            free(gate);
            free(up);
            free(got[0]);
            free(got[1]);
        }
}

typedef struct product {
    gguf_tensor t;
    const float *x, *bias, *add;
    uint32_t n;
} product;

static float *multiply(check *c, model_ops *ops, const product *p)
{
    base_err err;
    uint32_t n_in = (uint32_t)p->t.ne[0], n_out = (uint32_t)p->t.ne[1];
    ops_weight *w = NULL;
    expect_ok(c, "pack", ops->pack(ops, &w, &p->t, &err), &err);
    ops_activations *x = activations(c, ops, p->n, n_in, p->x);
    matrix y = matrix_new(ops, p->n, n_out, p->add), z = matrix_new(ops, p->n, n_out, NULL);
    ops_buffer *bias = p->bias ? buffer_of(ops, p->bias, n_out * sizeof *p->bias) : NULL;
    ops_matmul_args args = {.x = x, .n_parts = 2};
    args.parts[0].weight = args.parts[1].weight = w;
    args.parts[0].bias = bias;
    args.parts[0].y = y.m;
    if (p->add) args.parts[0].add = y.m;
    args.parts[1].y = z.m;
    expect_ok(c, "matmul", ops->matmul(ops, &args, &err), &err);
    ops->activations_free(ops, x);
    ops->weight_free(ops, w);
    if (bias) ops->buffer_free(ops, bias);
    float *plain = matrix_take(c, "matmul", z), *out = matrix_take(c, "matmul", y);
    if (!p->bias && !p->add) expect_same(c, "matmul (second part)", plain, out, (size_t)p->n * n_out);
    free(plain);
    return out;
}

/* Activations that eight bits hold exactly, so that F64 says what must come out. */
static void check_product_truth(check *c, gguf_tensor_type type, uint32_t n_in, uint32_t n_out)
{
    gguf_tensor t = tensor_new(type, n_in, n_out);
    float *x = base_xmalloc(n_in * sizeof *x), *w = base_xmalloc((size_t)n_in * n_out * sizeof *w);
    double *truth = base_xcalloc(n_out, sizeof *truth), size = 0;
    for (uint32_t k = 0; k < n_in; k++) x[k] = k % 32 == 5 ? 127 : (float)((int)(random_u32() % 255) - 127);
    quant_to_f32(type, t.data, (size_t)n_in * n_out, w);
    for (uint32_t o = 0; o < n_out; o++) {
        double sum = 0;
        for (uint32_t k = 0; k < n_in; k++) {
            truth[o] += (double)w[(size_t)o * n_in + k] * x[k];
            sum += fabs((double)w[(size_t)o * n_in + k] * x[k]);
        }
        size = fmax(size, sum);
    }
    float *y = multiply(c, c->a, &(product){.t = t, .x = x, .n = 1});
    bool floats = quant_format_of(type)->kind == QUANT_FLOAT;
    expect_near(c, "matmul (F64)", y, truth, n_out, size * (floats ? 3e-5 : 2e-6));
    tensor_free(t);
    free(x);
    free(w);
    free(truth);
    free(y);
}

static void check_product(check *c, gguf_tensor_type type, uint32_t n_in, uint32_t n_out, uint32_t n)
{
    gguf_tensor t = tensor_new(type, n_in, n_out);
    float *x = odd_rows(n, n_in), *bias = random_floats(n_out), *add = random_floats((size_t)n * n_out);
    product p = {.t = t, .x = x, .bias = n % 2 ? bias : NULL, .add = n % 3 ? add : NULL, .n = n};
    float *a = multiply(c, c->a, &p), *b = multiply(c, c->b, &p);
    expect_same(c, "matmul", a, b, (size_t)n * n_out);
    /* The last row by itself. */
    product single = p;
    single.n = 1;
    single.x += (size_t)(n - 1) * n_in;
    if (single.add) single.add += (size_t)(n - 1) * n_out;
    float *alone = multiply(c, c->b, &single);
    expect_same(c, "matmul (a row alone)", b + (size_t)(n - 1) * n_out, alone, n_out);
    tensor_free(t);
    free(x);
    free(bias);
    free(add);
    free(a);
    free(b);
    free(alone);
}

static void cases_matmul(check *c)
{
    for (size_t i = 0; i < COUNT(weight_types); i++) {
        gguf_tensor_type type = weight_types[i];
        bool super = quant_format_of(type)->n == 256;
        c->what = gguf_tensor_type_name(type);
        check_product_truth(c, type, super ? 1024 : 576, 40);
        for (size_t k = 0; k < COUNT(batches); k++) {
            check_product(c, type, super ? 512 : 288, 37, batches[k]);
            check_product(c, type, super ? 256 : 32, 16, batches[k]);
        }
    }
    c->what = "Q4_K, a whole prefill batch";
    check_product(c, GGUF_TENSOR_Q4_K, 256, 48, 512);

    c->what = "a scale that is not finite";
    gguf_tensor t = tensor_new(GGUF_TENSOR_Q6_K, 256, 20);
    put_u16((uint8_t *)t.data + 210 * 17 + 208, 0x7C00);
    ops_weight *w = NULL;
    if (c->b->pack(c->b, &w, &t, NULL) != BASE_E_FORMAT) fail(c, "was packed", "pack", 0, 0, 0);
    tensor_free(t);
}

static void cases_add(check *c)
{
    c->what = "two matrices, one matrix";
    float *x = random_floats(7 * 33), *y = random_floats(7 * 33), *got[2];
    for (int with_b = 0; with_b < 2; with_b++) {
        for (int side = 0; side < 2; side++) {
            model_ops *ops = side ? c->b : c->a;
            base_err err;
            matrix a = matrix_new(ops, 7, 33, x), b = matrix_new(ops, 7, 33, y);
            ops_add_args args = {.a = a.m, .out = a.m, .scale_a = 0.5f, .scale_b = -3, .n = 7, .width = 33};
            if (with_b) args.b = b.m;
            expect_ok(c, "add", ops->add(ops, &args, &err), &err);
            free(matrix_take(c, "add", b));
            got[side] = matrix_take(c, "add", a);
        }
        expect_same(c, "add", got[0], got[1], 7 * 33);
        double truth[7 * 33];
        for (int i = 0; i < 7 * 33; i++) truth[i] = x[i] * 0.5 + (with_b ? y[i] * -3.0 : 0);
        expect_near(c, "add", got[0], truth, 7 * 33, 1e-5);
        free(got[0]);
        free(got[1]);
    }
    free(x);
    free(y);
}

/* RoPE's two operations together: tables of odd phases, both pairings, part of the head left alone. */
static void rope_cases(check *c, ops_rope_pairing pairing, uint32_t n_rot, bool with_factors)
{
    enum { N = 3, HEADS = 2, HEAD = 64 };
    static const uint32_t phases[N] = {0, 7, 131071};
    float *values = random_floats(N * HEADS * HEAD), factors[HEAD / 2], *got[2];
    for (int i = 0; i < HEAD / 2; i++) factors[i] = 1 + (float)i;
    for (int side = 0; side < 2; side++) {
        model_ops *ops = side ? c->b : c->a;
        base_err err;
        ops_buffer *table = NULL;
        expect_ok(c, "buffer_new", ops->buffer_new(ops, &table, N * n_rot * sizeof(float), &err), &err);
        ops_rope_table_args t = {
            .phases = phases, .n = N, .n_rot = n_rot, .base = 1e6, .scale = 0.5, .table = table};
        if (with_factors) t.factors = factors;
        expect_ok(c, "rope_table", ops->rope_table(ops, &t, &err), &err);
        matrix x = matrix_new(ops, N, HEADS * HEAD, values);
        ops_rope_args args = {.x = x.m,
            .table = table,
            .pairing = pairing,
            .n = N,
            .n_heads = HEADS,
            .head_dim = HEAD,
            .n_rot = n_rot};
        expect_ok(c, "rope", ops->rope(ops, &args, &err), &err);
        ops->buffer_free(ops, table);
        got[side] = matrix_take(c, "rope", x);
    }
    expect_same(c, "rope", got[0], got[1], N * HEADS * HEAD);
    double truth[N * HEADS * HEAD];
    for (int k = 0; k < N * HEADS * HEAD; k++) truth[k] = values[k];
    for (uint32_t t = 0; t < N; t++)
        for (uint32_t h = 0; h < HEADS; h++)
            for (uint32_t i = 0; i < n_rot / 2; i++) {
                uint32_t head = (t * HEADS + h) * HEAD;
                uint32_t first = head + (pairing == OPS_ROPE_NEOX ? i : 2 * i);
                uint32_t second = head + (pairing == OPS_ROPE_NEOX ? i + n_rot / 2 : 2 * i + 1);
                double angle = phases[t] * 0.5 * pow(1e6, -2.0 * i / n_rot) / (with_factors ? factors[i] : 1);
                truth[first] = values[first] * cos(angle) - values[second] * sin(angle);
                truth[second] = values[first] * sin(angle) + values[second] * cos(angle);
            }
    expect_near(c, "rope", got[0], truth, N * HEADS * HEAD, 1e-5);
    free(values);
    free(got[0]);
    free(got[1]);
}

static void cases_rope(check *c)
{
    c->what = "NEOX";
    rope_cases(c, OPS_ROPE_NEOX, 64, false);
    rope_cases(c, OPS_ROPE_NEOX, 32, true);
    c->what = "NORM";
    rope_cases(c, OPS_ROPE_NORM, 64, true);
}

static void cases_rope_table(check *c)
{
    c->what = "a table that does not fit";
    base_err err;
    ops_buffer *table = NULL;
    expect_ok(c, "buffer_new", c->b->buffer_new(c->b, &table, 2 * 64 * sizeof(float), &err), &err);
    static const uint32_t phases[3] = {0};
    ops_rope_table_args t = {.phases = phases, .n = 3, .n_rot = 64, .base = 1e4, .table = table};
    if (c->b->rope_table(c->b, &t, &err) != BASE_E_LIMIT) fail(c, "was filled", "rope_table", 0, 0, 0);
    c->b->buffer_free(c->b, table);
    c->n_cases++;
}

/* ---- rows ---- */

/* Blocks of random rows and, per lane, a list with runs of odd lengths; lanes differ when `apart`. */
typedef struct cache {
    model_rows_view view;
    uint16_t *blocks[64];
    model_lane_list lanes[16];
} cache;

static void cache_new(cache *x, model_rows_shape shape, uint32_t n_rows, bool apart)
{
    memset(x, 0, sizeof *x);
    uint32_t n_lanes = model_rows_lanes(&shape), n_blocks = n_rows / 128 + 2,
             room = n_blocks * MODEL_ROWS_BLOCK;
    for (uint32_t i = 0; i < n_blocks; i++) {
        x->blocks[i] = base_xmalloc(model_rows_block_bytes(&shape));
        for (size_t k = 0; k < model_rows_block_bytes(&shape) / 2; k++)
            x->blocks[i][k] = quant_f32_to_f16(random_float());
    }
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        model_run *runs = base_xmalloc((n_rows + 1) * sizeof *runs);
        uint32_t n_runs = 0, slot = 0, index = 0, left = n_rows;
        if (!apart) random_state = 77;
        while (left > 0) {
            uint32_t n = 1 + random_u32() % 90, in_block = MODEL_ROWS_BLOCK - slot % MODEL_ROWS_BLOCK;
            if (n > left) n = left;
            if (n > in_block) n = in_block;
            runs[n_runs++] = (model_run){slot, index, n};
            uint32_t gap = room - slot - n > 2 * left ? random_u32() % 20 : 0;
            slot += n + gap;
            index += n + gap;
            left -= n;
        }
        x->lanes[lane] = (model_lane_list){runs, n_runs, n_rows};
    }
    x->view = (model_rows_view){shape, x->blocks, n_blocks, x->lanes};
}

static void cache_free(cache *x)
{
    for (uint32_t i = 0; i < x->view.n_blocks; i++) free(x->blocks[i]);
    for (uint32_t i = 0; i < model_rows_lanes(&x->view.shape); i++) free((void *)x->lanes[i].runs);
}

static uint32_t slot_of(const model_lane_list *list, uint32_t ordinal, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < list->n_runs; ordinal -= list->runs[i++].n)
        if (ordinal < list->runs[i].n) {
            *ret_index = list->runs[i].index + ordinal;
            return list->runs[i].slot + ordinal;
        }
    abort();
}

static void cases_rows_write(check *c)
{
    static const uint32_t sizes[] = {1, 5, 150};
    model_rows_shape shape = {2, 2, 48};
    c->what = "the last ordinals of ragged lists, numbers beyond F16";
    for (size_t i = 0; i < COUNT(sizes); i++) {
        uint32_t n = sizes[i], width = shape.n_head_kv * shape.head_dim;
        cache x;
        cache_new(&x, shape, 300, true);
        float *k = random_floats((size_t)n * width), *v = random_floats((size_t)n * width);
        k[0] = 1e6f;
        k[1] = -1e30f;
        k[2] = 1e-7f;
        k[3] = 65504;
        size_t bytes = model_rows_block_bytes(&shape);
        uint8_t *before = base_xmalloc(bytes * x.view.n_blocks),
                *after = base_xmalloc(bytes * x.view.n_blocks);
        for (uint32_t b = 0; b < x.view.n_blocks; b++) memcpy(before + b * bytes, x.blocks[b], bytes);
        for (int side = 0; side < 2; side++) {
            model_ops *ops = side ? c->b : c->a;
            base_err err;
            for (uint32_t b = 0; b < x.view.n_blocks; b++) memcpy(x.blocks[b], before + b * bytes, bytes);
            matrix mk = matrix_new(ops, n, width, k), mv = matrix_new(ops, n, width, v);
            ops_rows_write_args args = {.rows = &x.view, .layer = 1, .n = n, .k = mk.m, .v = mv.m};
            expect_ok(c, "rows_write", ops->rows_write(ops, &args, &err), &err);
            for (uint32_t b = 0; b < x.view.n_blocks && side; b++)
                if (memcmp(after + b * bytes, x.blocks[b], bytes) != 0)
                    fail(c, "levels differ", "rows_write", 0, 0, 0);
            for (uint32_t b = 0; b < x.view.n_blocks; b++) memcpy(after + b * bytes, x.blocks[b], bytes);
            ops->buffer_free(ops, mk.m.buffer);
            ops->buffer_free(ops, mv.m.buffer);
        }
        /* What was written, put back: nothing else may have changed. */
        for (uint32_t h = 0; h < shape.n_head_kv; h++)
            for (uint32_t t = 0; t < n; t++) {
                uint32_t lane = shape.n_head_kv + h, index,
                         slot = slot_of(&x.lanes[lane], 300 - n + t, &index);
                for (uint32_t d = 0; d < shape.head_dim; d++) {
                    size_t at = (size_t)t * width + h * shape.head_dim + d;
                    uint16_t *key = model_rows_key(&x.view, lane, slot) + d,
                             *value = model_rows_value(&x.view, lane, slot) + d;
                    if (*key != quant_f32_to_f16(k[at]) || *value != quant_f32_to_f16(v[at]))
                        fail(c, "%.9g became %.9g at %zu", "rows_write", k[at], quant_f16_to_f32(*key), at);
                    size_t block = slot / MODEL_ROWS_BLOCK,
                           place = (size_t)((uint8_t *)key - (uint8_t *)x.blocks[block]);
                    memcpy(key, before + block * bytes + place, 2);
                    place = (size_t)((uint8_t *)value - (uint8_t *)x.blocks[block]);
                    memcpy(value, before + block * bytes + place, 2);
                }
            }
        for (uint32_t b = 0; b < x.view.n_blocks; b++)
            if (memcmp(before + b * bytes, x.blocks[b], bytes) != 0)
                fail(c, "wrote elsewhere", "rows_write", 0, 0, 0);
        c->n_cases++;
        free(before);
        free(after);
        free(k);
        free(v);
        cache_free(&x);
    }
}

static float *attend(check *c, model_ops *ops, const ops_attention_args *shape, const float *q)
{
    base_err err;
    uint32_t width = shape->n_head * shape->rows->shape.head_dim;
    matrix mq = matrix_new(ops, shape->n, width, q), out = matrix_new(ops, shape->n, width, NULL);
    ops_attention_args args = *shape;
    args.q = mq.m;
    args.out = out.m;
    expect_ok(c, "attention", ops->attention(ops, &args, &err), &err);
    ops->buffer_free(ops, mq.m.buffer);
    return matrix_take(c, "attention", out);
}

/* Softmax in F64, straight from the definition. */
static void attention_truth(
    const ops_attention_args *a, const float *q, uint32_t t, uint32_t head, double *out)
{
    const model_rows_shape *s = &a->rows->shape;
    uint32_t lane = a->layer * s->n_head_kv + head / (a->n_head / s->n_head_kv), own_index;
    const model_lane_list *list = &a->rows->lanes[lane];
    uint32_t own = list->n_rows - a->n + t;
    double sum = 0, *p = base_xmalloc((own + 1) * sizeof *p), max = -INFINITY;
    slot_of(list, own, &own_index);
    for (uint32_t o = 0; o <= own; o++) {
        uint32_t index, slot = slot_of(list, o, &index);
        const uint16_t *key = model_rows_key(a->rows, lane, slot);
        double score = 0;
        for (uint32_t d = 0; d < s->head_dim; d++)
            score += (double)q[(size_t)(t * a->n_head + head) * s->head_dim + d] * quant_f16_to_f32(key[d]);
        p[o] = a->window && index + a->window <= own_index ? -INFINITY : score * a->scale;
        max = fmax(max, p[o]);
    }
    memset(out, 0, s->head_dim * sizeof *out);
    for (uint32_t o = 0; o <= own; o++) sum += p[o] = exp(p[o] - max);
    for (uint32_t o = 0; o <= own; o++) {
        uint32_t index, slot = slot_of(list, o, &index);
        const uint16_t *value = model_rows_value(a->rows, lane, slot);
        for (uint32_t d = 0; d < s->head_dim; d++) out[d] += p[o] / sum * quant_f16_to_f32(value[d]);
    }
    free(p);
}

static void cases_attention(check *c)
{
    /* n, rows, query heads, head_dim, window */
    static const uint32_t shapes[][5] = {{1, 1, 4, 64, 0}, {1, 255, 6, 32, 0}, {1, 1000, 12, 128, 0},
        {2, 257, 2, 80, 0}, {3, 600, 6, 64, 0}, {5, 700, 4, 64, 100}, {8, 513, 12, 16, 0}, {33, 33, 6, 64, 0},
        {33, 800, 12, 48, 0}, {40, 700, 2, 256, 60}, {100, 300, 12, 128, 0}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        uint32_t n = shapes[i][0], n_rows = shapes[i][1], n_head = shapes[i][2], head_dim = shapes[i][3];
        char what[100];
        snprintf(what, sizeof what, "n %u, %u rows, %u heads of %u, window %u", n, n_rows, n_head, head_dim,
            shapes[i][4]);
        c->what = what;
        cache x;
        cache_new(&x, (model_rows_shape){2, 2, head_dim}, n_rows, i % 2 == 0);
        ops_attention_args args = {
            .rows = &x.view, .layer = 1, .n = n, .n_head = n_head, .window = shapes[i][4]};
        args.scale = 1 / sqrtf((float)head_dim);
        size_t width = (size_t)n_head * head_dim;
        float *q = random_floats(n * width);
        for (size_t k = 0; k < width; k++) q[k] *= 8;
        float *a = attend(c, c->a, &args, q), *b = attend(c, c->b, &args, q);
        expect_same(c, "attention", a, b, n * width);
        double truth[256];
        for (uint32_t h = 0; h < n_head; h++) {
            attention_truth(&args, q, h % n, h, truth);
            expect_near(c, "attention (F64)", a + (h % n) * width + h * head_dim, truth, head_dim, 2e-5);
        }
        /* The last token by itself sees the same list. */
        args.n = 1;
        float *alone = attend(c, c->b, &args, q + (n - 1) * width);
        expect_same(c, "attention (a token alone)", b + (n - 1) * width, alone, width);
        free(a);
        free(b);
        free(q);
        free(alone);
        cache_free(&x);
    }
}

/* More numerators than are kept between the two walks: the sum over a lane is 1, and 16 equal heads give what one gives. */
static void cases_score_rows_large(check *c)
{
    enum { HEADS = 32, QUERIES = 64, HEAD = 16, ROWS = 2500 };
    cache x;
    c->what = "more than is kept";
    cache_new(&x, (model_rows_shape){1, 2, HEAD}, ROWS, true);
    float *queries = random_floats((size_t)HEADS * QUERIES * HEAD), *mass[3][2];
    for (int h = 1; h < HEADS; h++)
        memcpy(queries + (size_t)h * QUERIES * HEAD, queries, QUERIES * HEAD * sizeof *queries);
    uint8_t one_a_lane[HEADS] = {[3] = 1, [20] = 1};
    for (int run = 0; run < 3; run++) {
        model_ops *ops = run == 0 ? c->a : c->b;
        base_err err;
        for (int lane = 0; lane < 2; lane++) mass[run][lane] = base_xmalloc(ROWS * sizeof(float));
        ops_score_rows_args args = {
            .rows = &x.view, .queries = queries, .n_queries = QUERIES, .n_head = HEADS, .scale = 0.25f};
        args.heads = run == 2 ? one_a_lane : NULL;
        args.mass = mass[run];
        expect_ok(c, "score_rows", ops->score_rows(ops, &args, &err), &err);
    }
    for (int lane = 0; lane < 2; lane++) {
        double single[ROWS], sum = 0;
        expect_same(c, "score_rows", mass[0][lane], mass[1][lane], ROWS);
        for (int i = 0; i < ROWS; i++) sum += single[i] = mass[2][lane][i];
        expect_near(c, "score_rows (equal heads)", mass[1][lane], single, ROWS, 1e-7);
        if (!(fabs(sum - 1) < 1e-5)) fail(c, "a lane's mass is %.9g, not %.9g", "score_rows", sum, 1, 0);
        for (int run = 0; run < 3; run++) free(mass[run][lane]);
    }
    free(queries);
    cache_free(&x);
}

static void cases_score_rows(check *c)
{
    cases_score_rows_large(c);
    enum { HEADS = 6, QUERIES = 5, HEAD = 64 };
    model_rows_shape shape = {2, 2, HEAD};
    static const uint8_t heads[12] = {1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1};
    cache x;
    cache_new(&x, shape, 700, true);
    float *queries = random_floats(2 * HEADS * QUERIES * HEAD);
    for (int pool_max = 0; pool_max < 2; pool_max++) {
        c->what = pool_max ? "maximum" : "mean";
        float *mass[2][4];
        for (int side = 0; side < 2; side++) {
            model_ops *ops = side ? c->b : c->a;
            base_err err;
            for (int lane = 0; lane < 4; lane++) {
                mass[side][lane] = base_xmalloc(701 * sizeof(float));
                mass[side][lane][700] = canary;
            }
            ops_score_rows_args args = {.rows = &x.view,
                .queries = queries,
                .n_queries = QUERIES,
                .n_head = HEADS,
                .scale = 0.125f,
                .pool_max = pool_max,
                .heads = heads,
                .mass = mass[side]};
            expect_ok(c, "score_rows", ops->score_rows(ops, &args, &err), &err);
        }
        for (int lane = 0; lane < 4; lane++) {
            expect_same(c, "score_rows", mass[0][lane], mass[1][lane], 701);
            double truth[700] = {0}, n_heads = 0;
            for (int h = 3 * (lane % 2); h < 3 * (lane % 2) + 3; h++) {
                if (!heads[lane / 2 * HEADS + h]) continue;
                n_heads++;
                double pooled[700] = {0};
                for (int t = 0; t < QUERIES; t++) {
                    const float *q = queries + (size_t)((lane / 2 * HEADS + h) * QUERIES + t) * HEAD;
                    double p[700], max = -INFINITY, sum = 0;
                    for (uint32_t o = 0; o < 700; o++) {
                        uint32_t index, slot = slot_of(&x.lanes[lane], o, &index);
                        p[o] = 0;
                        for (int d = 0; d < HEAD; d++)
                            p[o] += (double)q[d] *
                                    quant_f16_to_f32(model_rows_key(&x.view, (uint32_t)lane, slot)[d]) *
                                    0.125;
                        max = fmax(max, p[o]);
                    }
                    for (int o = 0; o < 700; o++) sum += p[o] = exp(p[o] - max);
                    for (int o = 0; o < 700; o++)
                        pooled[o] = pool_max ? fmax(pooled[o], p[o] / sum) : pooled[o] + p[o] / sum / QUERIES;
                }
                for (int o = 0; o < 700; o++) truth[o] += pooled[o];
            }
            for (int o = 0; o < 700 && n_heads > 0; o++) truth[o] /= n_heads;
            expect_near(c, "score_rows (F64)", mass[0][lane], truth, 700, 1e-6);
            free(mass[0][lane]);
            free(mass[1][lane]);
        }
    }
    free(queries);
    cache_free(&x);
}

/* ---- speeds ---- */

typedef struct reader {
    const uint64_t *data;
    size_t n;
    _Atomic uint64_t sum;
} reader;

static void read_run(void *arg, int thread, int n_threads)
{
    reader *r = arg;
    uint64_t sums[8] = {0};
    const uint64_t *p = r->data + r->n / (size_t)n_threads * (size_t)thread;
    for (size_t i = 0; i + 8 <= r->n / (size_t)n_threads; i += 8)
        for (int k = 0; k < 8; k++) sums[k] += p[i + (size_t)k];
    for (int k = 0; k < 8; k++) r->sum += sums[k];
}

static double seconds(void)
{
    return (double)base_clock_ns() * 1e-9;
}

static double read_speed(int n_threads)
{
    size_t n_bytes = (size_t)512 << 20;
    base_pool *pool = NULL;
    if (base_pool_new(&pool, n_threads, NULL) < 0) return 0;
    reader r = {.data = base_huge_alloc(n_bytes), .n = n_bytes / 8};
    memset((void *)r.data, 1, n_bytes);
    double best = 0;
    for (int i = 0; i < 5; i++) {
        double from = seconds();
        base_pool_run(pool, read_run, &r);
        best = fmax(best, (double)n_bytes / (seconds() - from) * 1e-9);
    }
    base_huge_free((void *)r.data, n_bytes);
    base_pool_free(pool);
    return best;
}

static void bench_matmul(check *c, gguf_tensor_type type, uint32_t n_in, uint32_t n_out, uint32_t n)
{
    model_ops *ops = c->b;
    base_err err;
    gguf_tensor t = tensor_new(type, n_in, n_out);
    ops_weight *w = NULL;
    double from = seconds();
    expect_ok(c, "pack", ops->pack(ops, &w, &t, &err), &err);
    double pack_seconds = seconds() - from;
    float *values = random_floats((size_t)n * n_in);
    ops_activations *x = activations(c, ops, n, n_in, values);
    matrix y = matrix_new(ops, n, n_out, NULL);
    ops_matmul_args args = {.x = x, .n_parts = 1, .parts = {{.weight = w, .y = y.m}}};
    double best = 1e9, began = seconds();
    for (int i = 0; i < 5 || seconds() - began < 0.4; i++) {
        from = seconds();
        ops->matmul(ops, &args, &err);
        best = fmin(best, seconds() - from);
    }
    printf("  %-5s %6u x %5u, n %4u: %7.1f us, %5.1f GB/s, %6.1f GMAC/s; packed at %.2f GB/s\n",
        gguf_tensor_type_name(type), n_out, n_in, n, best * 1e6, (double)ops->weight_bytes(w) / best * 1e-9,
        (double)n_in * n_out * n / best * 1e-9, (double)t.n_bytes / pack_seconds * 1e-9);
    ops->weight_free(ops, w);
    ops->activations_free(ops, x);
    ops->buffer_free(ops, y.m.buffer);
    free(values);
    tensor_free(t);
}

/* Eight layers of the default model's shape, nothing evicted. */
static void bench_rows(check *c, uint32_t n_rows, uint32_t n, uint32_t n_queries)
{
    model_ops *ops = c->b;
    base_err err;
    model_rows_shape shape = {8, 2, 128};
    uint16_t *blocks[128];
    model_run runs[128];
    model_lane_list lanes[16];
    uint32_t n_blocks = n_rows / MODEL_ROWS_BLOCK;
    for (uint32_t i = 0; i < n_blocks; i++) {
        size_t n_bytes = model_rows_block_bytes(&shape);
        blocks[i] = base_huge_alloc(n_bytes);
        for (size_t k = 0; k < n_bytes / 2; k++) blocks[i][k] = (uint16_t)(0x3000 + k % 1024);
        runs[i] = (model_run){i * MODEL_ROWS_BLOCK, i * MODEL_ROWS_BLOCK, MODEL_ROWS_BLOCK};
    }
    for (int i = 0; i < 16; i++) lanes[i] = (model_lane_list){runs, n_blocks, n_rows};
    model_rows_view view = {shape, blocks, n_blocks, lanes};
    float *q = random_floats((size_t)(n + 8 * n_queries) * 1536), *mass[16];
    for (int i = 0; i < 16; i++) mass[i] = base_xmalloc(n_rows * sizeof(float));
    matrix mq = matrix_new(ops, n, 1536, q), out = matrix_new(ops, n, 1536, NULL);
    double best = 1e9, began = seconds();
    for (uint32_t i = 0; i < 2 * shape.n_layer || seconds() - began < 0.4; i++) {
        ops_attention_args attention = {
            .rows = &view, .layer = i % shape.n_layer, .n = n, .n_head = 12, .scale = 0.088f};
        ops_score_rows_args score = {
            .rows = &view, .queries = q, .n_queries = n_queries, .n_head = 12, .scale = 0.088f, .mass = mass};
        attention.q = mq.m;
        attention.out = out.m;
        double from = seconds();
        if (n_queries)
            ops->score_rows(ops, &score, &err);
        else
            ops->attention(ops, &attention, &err);
        best = fmin(best, (seconds() - from) / (n_queries ? shape.n_layer : 1));
    }
    double bytes = (double)n_rows * 2 * 128 * 2 * 2, pairs = (double)n * (n_rows - n / 2.0) * 12;
    if (n_queries)
        printf("  scores of %u rows by %u queries a head: %8.1f us a layer, %6.1f GMAC/s\n", n_rows,
            n_queries, best * 1e6, (double)n_rows * n_queries * 12 * 128 / best * 1e-9);
    else
        printf("  attention over %u rows, n %3u: %8.1f us a layer, %5.1f GB/s, %6.1f GMAC/s\n", n_rows, n,
            best * 1e6, bytes / best * 1e-9, pairs * 256 / best * 1e-9);
    for (uint32_t i = 0; i < n_blocks; i++) base_huge_free(blocks[i], model_rows_block_bytes(&shape));
    for (int i = 0; i < 16; i++) free(mass[i]);
    ops->buffer_free(ops, mq.m.buffer);
    ops->buffer_free(ops, out.m.buffer);
    free(q);
}

/* Matrices of the default and of the test model. */
static const struct {
    gguf_tensor_type type;
    uint32_t n_in, n_out, n;
} bench_products[] = {{GGUF_TENSOR_Q4_K, 1536, 17920, 1}, {GGUF_TENSOR_Q4_K, 8960, 1536, 1},
    {GGUF_TENSOR_Q6_K, 1536, 60000, 1}, {GGUF_TENSOR_Q6_K, 8960, 1536, 1}, {GGUF_TENSOR_Q4_1, 576, 30000, 1},
    {GGUF_TENSOR_Q5_0, 576, 30000, 1}, {GGUF_TENSOR_Q8_0, 576, 49152, 1}, {GGUF_TENSOR_F16, 1536, 4096, 1},
    {GGUF_TENSOR_Q4_K, 1536, 8960, 4}, {GGUF_TENSOR_Q4_K, 1536, 8960, 8}, {GGUF_TENSOR_Q4_K, 1536, 8960, 16},
    {GGUF_TENSOR_Q4_K, 1536, 8960, 512}, {GGUF_TENSOR_Q4_K, 8960, 1536, 512},
    {GGUF_TENSOR_Q6_K, 8960, 1536, 512}, {GGUF_TENSOR_Q4_1, 576, 1536, 512},
    {GGUF_TENSOR_Q8_0, 576, 1536, 512}};

/* `only`: "matmul", "rows" or "" for both. */
static void bench(check *c, int n_threads, const char *only)
{
    printf("%s, %d threads; memory: %.1f GB/s\n", c->b->isa, n_threads, read_speed(n_threads));
    for (size_t i = 0; i < COUNT(bench_products) && strcmp(only, "rows") != 0; i++)
        bench_matmul(
            c, bench_products[i].type, bench_products[i].n_in, bench_products[i].n_out, bench_products[i].n);
    if (strcmp(only, "matmul") != 0) {
        bench_rows(c, 4096, 1, 0);
        bench_rows(c, 16384, 1, 0);
        bench_rows(c, 4096, 128, 0);
        bench_rows(c, 16384, 1, 8);
    }
    printf("memory again: %.1f GB/s\n", read_speed(n_threads));
}

/* ---- the run ---- */

static const struct {
    const char *name;
    void (*cases)(check *c);
} operations[] = {
#define MODEL_OP(op) {#op, cases_##op},
#include "model/ops.def"
#undef MODEL_OP
};

static model_ops *open_ops(int n_threads, unsigned mask)
{
    base_err err;
    model_ops *ops = NULL;
    if (cpu_ops_open(&ops, n_threads, mask, &err) == 0) return ops;
    printf("FAILED: %s\n", err.msg);
    exit(1);
}

static const struct {
    const char *name;
    unsigned mask;
    int n_threads;
} sides[] = {
    {"plain C, 3 threads", ~0u, 3},
    {"AVX2", OPS_CPU_AVX512_VNNI, 1},
    {"the best level, 1 thread", 0, 1},
    {"the best level, 2 threads", 0, 2},
    {"the best level, 4 threads", 0, 4},
};

int main(int argc, char **argv)
{
    check c = {.a = open_ops(1, ~0u)};
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        int n_threads = argc > 2 ? atoi(argv[2]) : 2;
        c.b = open_ops(n_threads, 0);
        bench(&c, n_threads, argc > 3 ? argv[3] : "");
        c.b->close(c.b);
        c.a->close(c.a);
        return 0;
    }
    const char *only = argc > 1 ? argv[1] : NULL;
    for (size_t s = 0; s < COUNT(sides); s++) {
        c.b = open_ops(sides[s].n_threads, sides[s].mask);
        int failed_before = c.n_failed, cases_before = c.n_cases;
        for (size_t i = 0; i < COUNT(operations); i++) {
            random_state = 1 + i;
            if (!only || strcmp(only, operations[i].name) == 0) operations[i].cases(&c);
        }
        printf("%s (%s): %d cases, %d failed\n", sides[s].name, c.b->isa, c.n_cases - cases_before,
            c.n_failed - failed_before);
        c.b->close(c.b);
    }
    c.a->close(c.a);
    return c.n_failed ? 1 : 0;
}
