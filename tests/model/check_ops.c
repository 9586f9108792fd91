/*
 * Every operation of ops.def, plain C and every level against the best level: equal bits, over formats, batch
 * sizes and odd shapes. In dav1d's checkasm manner: a plain executable (exit status is the verdict), and an
 * operation without a cases_* function here does not compile. `--bench` prints speeds beside what the
 * machine's memory gives in the same run.
 *
 * Besides levels, each matmul and attention is checked for what the cache stands on: a row's bits do not
 * depend on the batch it is in, or on the number of threads; and against sums in F64, so that what all have
 * in common is right too.
 */
#include "check_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/file/quant.h"
#if defined(KVIST_CUDA)
#include "cuda/backend.h"
#endif

/* ---- the operations (check_ops_rows.c: those over rows) ---- */

static void cases_embed(check *c)
{
    static const int32_t ids[] = {3, 0, 16, 3, 9};
    gguf_tensor_type type;
    for (size_t i = 0; quant_type_at(i, &type); i++) {
        c->what = gguf_tensor_type_name(type);
        gguf_tensor t = tensor_new(type, 512, 17);
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
    static const char *const kinds[] = {"silu", "gelu", "sigmoid, and shares", "clamped"};
    for (int kind = 0; kind < (int)COUNT(kinds); kind++)
        for (size_t i = 0; i < COUNT(batches); i++) {
            uint32_t n = batches[i], width = 320;
            c->what = kinds[kind];
            float *gate = odd_rows(n, width), *up = random_floats((size_t)n * width), *got[2],
                  *shares = random_floats(n);
            for (uint32_t k = 0; k < 32; k++) gate[k] *= 30, up[k] *= kind == OPS_GATE_CLAMPED ? 10 : 1;
            for (int side = 0; side < 2; side++) {
                model_ops *ops = side ? c->b : c->a;
                base_err err;
                matrix g = matrix_new(ops, n, width, gate), u = matrix_new(ops, n, width, up);
                ops_activations *out = NULL;
                expect_ok(c, "activations_new", ops->activations_new(ops, &out, n, width, &err), &err);
                ops_gate_quant_args args = {
                    .gate = g.m, .up = u.m, .kind = (ops_gate)kind, .n = n, .width = width, .out = out};
                ops_buffer *by = buffer_of(ops, shares, n * sizeof *shares);
                if (kind == OPS_GATE_SIGMOID) args.shares = by;
                expect_ok(c, "gate_quant", ops->gate_quant(ops, &args, &err), &err);
                ops->buffer_free(ops, by);
                ops->buffer_free(ops, g.m.buffer);
                ops->buffer_free(ops, u.m.buffer);
                got[side] = activations_take(c, ops, out, n, width);
            }
            expect_same(c, "gate_quant", got[0], got[1], (size_t)n * width);
            double truth[320], largest = 0;
            for (uint32_t k = 0; k < width; k++) {
                double x = gate[k], u = kind != OPS_GATE_GELU_TANH
                                            ? x
                                            : 2 * 0.7978845608028654 * (x + 0.044715 * x * x * x);
                truth[k] = (kind == OPS_GATE_SIGMOID ? shares[0] : x) / (1 + exp(-u)) * up[k];
                if (kind == OPS_GATE_CLAMPED)
                    truth[k] = fmin(x, 7) / (1 + exp(-1.702 * fmin(x, 7))) * (fmax(-7, fmin(up[k], 7)) + 1);
                largest = fmax(largest, fabs(truth[k]));
            }
            expect_near(c, "gate_quant", got[0], truth, width, largest / 127 / 2 * 1.001);
            free(gate);
            free(up);
            free(shares);
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

/* Some outputs: the bits of the whole product, and tiles that nobody reads are left alone. */
static void check_product_only(check *c, gguf_tensor_type type, uint32_t n_in, uint32_t n)
{
    enum { N_OUT = 150 }; /* nine tiles of 16 and a part of one */
    static const uint64_t only[3] = {1ull << 3 | 1ull << 63, 0, 1ull << 21};
    static const bool is_tile_read[] = {true, false, false, true, false, false, false, false, false, true};
    gguf_tensor t = tensor_new(type, n_in, N_OUT);
    float *x = odd_rows(n, n_in), *before = random_floats((size_t)n * N_OUT);
    float *whole = multiply(c, c->a, &(product){.t = t, .x = x, .n = n});
    base_err err;
    ops_weight *w = NULL;
    expect_ok(c, "pack", c->b->pack(c->b, &w, &t, &err), &err);
    ops_activations *q = activations(c, c->b, n, n_in, x);
    matrix y = matrix_new(c->b, n, N_OUT, before);
    ops_matmul_args args = {.x = q, .n_parts = 1, .parts = {{.weight = w, .y = y.m}}, .only = only};
    expect_ok(c, "matmul", c->b->matmul(c->b, &args, &err), &err);
    args.n_parts = 2;
    args.parts[1] = args.parts[0];
    if (c->b->matmul(c->b, &args, NULL) != BASE_E_USAGE) fail(c, "two parts were taken", "matmul", 0, 0, 0);
    c->b->activations_free(c->b, q);
    c->b->weight_free(c->b, w);
    float *some = matrix_take(c, "matmul", y);
    for (uint32_t row = 0; row < n; row++)
        for (uint32_t o = 0; o < N_OUT; o += 16) {
            size_t at = (size_t)row * N_OUT + o;
            expect_same(c, "matmul (some outputs)", (is_tile_read[o / 16] ? whole : before) + at, some + at,
                o + 16 < N_OUT ? 16 : N_OUT - o);
        }
    tensor_free(t);
    free(x);
    free(before);
    free(whole);
    free(some);
}

/*
 * All quants the largest or the smallest, all activations of one size and sign: sums of products in narrow
 * integers are as large as they can be.
 */
static void check_product_extremes(check *c, gguf_tensor_type type)
{
    enum { N_IN = 256, N_OUT = 17, N = 3 };
    static const uint8_t fills[] = {0xFF, 0x00, 0x80, 0x7F, 0x81};
    float x[N * N_IN];
    for (int i = 0; i < N * N_IN; i++) x[i] = i < N_IN ? 1 : i < 2 * N_IN ? -1 : i % 2 ? 1 : -1;
    for (size_t i = 0; i < COUNT(fills); i++) {
        gguf_tensor t = tensor_filled(type, N_IN, N_OUT, fills[i]);
        for (uint32_t n = 1; n <= N; n++) {
            product p = {.t = t, .x = x, .n = n};
            float *a = multiply(c, c->a, &p), *b = multiply(c, c->b, &p);
            expect_same(c, "matmul (extremes)", a, b, (size_t)n * N_OUT);
            free(a);
            free(b);
        }
        /* Many columns, so that a panel is made, and the GPU's tensor cores multiply. */
        enum { MANY = 40 };
        static float many[MANY * N_IN];
        for (int k = 0; k < MANY; k++) memcpy(many + k * N_IN, x + k % N * N_IN, N_IN * sizeof *x);
        product p = {.t = t, .x = many, .n = MANY};
        float *a = multiply(c, c->a, &p), *b = multiply(c, c->b, &p);
        expect_same(c, "matmul (extremes, panel)", a, b, (size_t)MANY * N_OUT);
        free(a);
        free(b);
        tensor_free(t);
    }
}

/* What a load asks memory for is what it takes. */
static void check_packed_bytes(check *c, gguf_tensor_type type)
{
    base_err err;
    ops_weight *w = NULL;
    gguf_tensor t = tensor_new(type, 512, 48);
    expect_ok(c, "pack", c->b->pack(c->b, &w, &t, &err), &err);
    if (strncmp(c->b->backend, "cuda", 4) != 0 && c->b->weight_bytes(w) != cpu_packed_bytes(&t))
        fail(c, "takes other bytes than were asked for", "pack", 0, 0, 0);
    c->b->weight_free(c->b, w);
    tensor_free(t);
}

static void cases_matmul(check *c)
{
    gguf_tensor_type type;
    for (size_t i = 0; quant_type_at(i, &type); i++) {
        bool super = quant_format_of(type)->n == 256;
        c->what = gguf_tensor_type_name(type);
        check_product_truth(c, type, super ? 1024 : 576, 40);
        check_packed_bytes(c, type);
        check_product_extremes(c, type);
        check_product_only(c, type, super ? 512 : 288, 1);
        check_product_only(c, type, super ? 256 : 32, 12);
        check_product_only(c, type, super ? 256 : 96, 40);
        check_product(c, type, super ? 512 : 288, 70, 300); /* tiles of the GPU that begin and are not full */
        for (size_t k = 0; k < COUNT(batches); k++) {
            check_product(c, type, super ? 512 : 288, 37, batches[k]);
            check_product(c, type, super ? 256 : 32, 16, batches[k]);
            check_product(c, type, super ? 256 : 96, 1, batches[k]);
        }
    }

    c->what = "a scale that is not finite";
    gguf_tensor t = tensor_new(GGUF_TENSOR_Q6_K, 256, 20);
    put_u16((uint8_t *)t.data + 210 * 17 + 208, 0x7C00);
    ops_weight *w = NULL;
    if (c->b->pack(c->b, &w, &t, NULL) != BASE_E_FORMAT) fail(c, "was packed", "pack", 0, 0, 0);
    tensor_free(t);

    c->what = "a power beyond F32";
    t = tensor_new(GGUF_TENSOR_MXFP4, 64, 20);
    ((uint8_t *)t.data)[17 * 5] = 253;
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
    static const double GROWTH = 1.25;
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
        if (with_factors) t.growth = GROWTH;
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
                double c1 = (with_factors ? GROWTH : 1) * cos(angle),
                       s1 = (with_factors ? GROWTH : 1) * sin(angle);
                truth[first] = values[first] * c1 - values[second] * s1;
                truth[second] = values[first] * s1 + values[second] * c1;
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

/* ---- the run ---- */

static const struct {
    const char *name;
    void (*cases)(check *c);
} operations[] = {
#define MODEL_OP(op) {#op, cases_##op},
#include "model/ops/ops.def"
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

static void check_side(check *c, const char *name, uint64_t seed, const char *only)
{
    int failed_before = c->n_failed, cases_before = c->n_cases;
    c->side = name;
    c->seed = seed;
    for (size_t i = 0; i < COUNT(operations); i++) {
        random_state = seed + i;
        if (!only || strcmp(only, operations[i].name) == 0) operations[i].cases(c);
    }
    printf("%s: %d cases, %d failed\n", name, c->n_cases - cases_before, c->n_failed - failed_before);
}

#if defined(KVIST_CUDA)
/*
 * A product that cuBLAS makes, with what is added in a matrix of its own: near the CPU's, by what BF16 leaves
 * of a factor.
 */
static void check_bf16_product(check *c, gguf_tensor_type type)
{
    enum { N = 70, N_IN = 512, N_OUT = 40 };
    base_err err;
    gguf_tensor t = tensor_new(type, N_IN, N_OUT);
    float *x = random_floats(N * N_IN), *add = random_floats(N * N_OUT), *bias = random_floats(N_OUT),
          *got[2];
    float *w = base_xmalloc(N_IN * N_OUT * sizeof *w);
    double truth[N_OUT];
    quant_to_f32(type, t.data, N_IN * N_OUT, w);
    for (int side = 0; side < 2; side++) {
        model_ops *ops = side ? c->b : c->a;
        ops_weight *packed = NULL;
        expect_ok(c, "pack", ops->pack(ops, &packed, &t, &err), &err);
        ops_activations *columns = activations(c, ops, N, N_IN, x);
        matrix y = matrix_new(ops, N, N_OUT, NULL), apart = matrix_new(ops, N, N_OUT, add);
        ops_buffer *b = buffer_of(ops, bias, N_OUT * sizeof *bias);
        const ops_matmul_args args = {
            .x = columns, .n_parts = 1, .parts = {{.weight = packed, .bias = b, .add = apart.m, .y = y.m}}};
        expect_ok(c, "matmul", ops->matmul(ops, &args, &err), &err);
        ops->activations_free(ops, columns);
        ops->weight_free(ops, packed);
        ops->buffer_free(ops, b);
        free(matrix_take(c, "matmul", apart));
        got[side] = matrix_take(c, "matmul", y);
    }
    for (uint32_t row = 0; row < N; row++) {
        double size = 0;
        for (uint32_t o = 0; o < N_OUT; o++) {
            double sum = 1;
            for (uint32_t k = 0; k < N_IN; k++) sum += fabs((double)w[o * N_IN + k] * x[row * N_IN + k]);
            size = fmax(size, sum);
            truth[o] = got[0][row * N_OUT + o];
        }
        expect_near(c, "matmul by cuBLAS", got[1] + row * N_OUT, truth, N_OUT, size / 1024);
    }
    tensor_free(t);
    free(x);
    free(add);
    free(bias);
    free(w);
    free(got[0]);
    free(got[1]);
}

static void check_bf16(check *c)
{
    base_err err;
    gguf_tensor_type type;
    if (cuda_ops_open(&c->b, 2, 0, true, &err)) {
        printf("left out: %s\n", err.msg);
        return;
    }
    const int cases_before = c->n_cases;
    c->side = c->b->backend;
    for (size_t i = 0; quant_type_at(i, &type); i++) {
        c->what = gguf_tensor_type_name(type);
        check_bf16_product(c, type);
    }
    check_attention_of_halves(c);
    printf("%s: %d cases\n", c->side, c->n_cases - cases_before);
    c->b->close(c->b);
}

/*
 * The GPU's operations against the CPU's, and the fingerprint of its own version: on a device, or on the
 * emulator.
 */
static void check_sides(check *c, uint64_t seed, const char *only)
{
    base_err err;
    model_ops *cpu = c->a;
    if (cuda_ops_open(&c->b, 2, 0, false, &err)) {
        printf("SKIPPED: %s\n", err.msg);
        exit(77);
    }
    ((cuda_backend *)c->b)->n_fill = 4; /* or no shape here were large enough for tiles */
    c->a = c->b;
    c->side = c->b->isa;
    check_version(c);
    c->a = cpu;
    check_side(c, c->b->isa, seed, only);
    c->b->close(c->b);
    if (!only) check_bf16(c);
}
#else
/*
 * Every level of this machine. How work is split on threads is the same code for all of them, so they take
 * turns at four threads and at one; at full length each is seen alone, on two and on four. All are compared
 * with the best level on one thread: what equals it equals each other, and plain C, ten times as slow, is
 * computed once instead of beside each.
 */
static void check_sides(check *c, uint64_t seed, const char *only)
{
    unsigned mask;
    const char *level;
    const bool is_long = getenv("KVIST_TEST_LONG") != NULL;
    for (size_t i = 0; (level = cpu_ops_level(i, &mask)); i++) {
        static const int threads[] = {1, 2, 4};
        for (size_t k = 0; k < COUNT(threads); k++) {
            char name[64];
            if (i == 0 && threads[k] == 1) continue; /* what is compared with */
            if (!is_long && threads[k] != (i % 2 ? 1 : 4)) continue;
            snprintf(name, sizeof name, "%s, %d threads", level, threads[k]);
            c->b = open_ops(threads[k], mask);
            check_side(c, name, seed, only);
            c->b->close(c->b);
        }
    }
}
#endif

/* check_ops [OPERATION]; check_ops --bench [THREADS [matmul|rows|visit|"" [MASK]]] */
int main(int argc, char **argv)
{
    check c = {0};
    const char *seed = getenv("KVIST_SEED");
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        int n_threads = argc > 2 ? atoi(argv[2]) : 2;
        c.b = open_ops(n_threads, argc > 4 ? (unsigned)strtoul(argv[4], NULL, 0) : 0);
        bench(&c, n_threads, argc > 3 ? argv[3] : "");
        c.b->close(c.b);
    } else {
        c.what = "kernel_version";
        c.side = "plain";
        c.a = open_ops(1, ~0u);
        check_version(&c);
        c.a->close(c.a);
        c.a = open_ops(1, 0);
        check_sides(&c, seed ? strtoull(seed, NULL, 0) : 1, argc > 1 ? argv[1] : NULL);
        c.a->close(c.a);
    }
    return c.n_failed ? 1 : 0;
}
