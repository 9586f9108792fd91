/*
 * The operations over lists of rows: writing them, attention and scoring, on ragged lists, against another level
 * and against the definition in F64.
 */
#include "check_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/file/quant.h"

void cache_new(cache *x, model_rows_shape shape, uint32_t n_rows, bool apart)
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

void cache_free(cache *x)
{
    for (uint32_t i = 0; i < x->view.n_blocks; i++) free(x->blocks[i]);
    for (uint32_t i = 0; i < model_rows_lanes(&x->view.shape); i++) free((void *)x->lanes[i].runs);
}

uint32_t slot_of(const model_lane_list *list, uint32_t ordinal, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < list->n_runs; ordinal -= list->runs[i++].n)
        if (ordinal < list->runs[i].n) {
            *ret_index = list->runs[i].index + ordinal;
            return list->runs[i].slot + ordinal;
        }
    abort();
}

void cases_rows_write(check *c)
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

static float *attend_sunk(
    check *c, model_ops *ops, const ops_attention_args *shape, const float *sinks, const float *q)
{
    base_err err;
    uint32_t width = shape->n_head * shape->rows->shape.head_dim;
    matrix mq = matrix_new(ops, shape->n, width, q), out = matrix_new(ops, shape->n, width, NULL);
    ops_attention_args args = *shape;
    args.q = mq.m;
    args.out = out.m;
    ops_buffer *of_heads = sinks ? buffer_of(ops, sinks, shape->n_head * sizeof *sinks) : NULL;
    args.sinks = of_heads;
    expect_ok(c, "attention", ops->attention(ops, &args, &err), &err);
    if (of_heads) ops->buffer_free(ops, of_heads);
    ops->buffer_free(ops, mq.m.buffer);
    return matrix_take(c, "attention", out);
}

static float *attend(check *c, model_ops *ops, const ops_attention_args *shape, const float *q)
{
    return attend_sunk(c, ops, shape, NULL, q);
}

/* Softmax in F64, straight from the definition. */
static void attention_truth(
    const ops_attention_args *a, const float *sinks, const float *q, uint32_t t, uint32_t head, double *out)
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
    if (sinks) sum += exp(sinks[head] - max);
    for (uint32_t o = 0; o <= own; o++) {
        uint32_t index, slot = slot_of(list, o, &index);
        const uint16_t *value = model_rows_value(a->rows, lane, slot);
        for (uint32_t d = 0; d < s->head_dim; d++) out[d] += p[o] / sum * quant_f16_to_f32(value[d]);
    }
    free(p);
}

/*
 * Folded rows: the levels agree to the bit, and with keys turned in F64 and rounded as keys are. Gaps change at odd places of a tile,
 * some are equal, some none; half of a head is turned, in either pairing.
 */
static void cases_attention_folded(check *c)
{
    /* n, rows, query heads, head_dim, n_rot, neox */
    static const uint32_t shapes[][6] = {{1, 900, 6, 64, 64, 1}, {7, 700, 4, 48, 32, 0},
        {40, 1000, 12, 128, 128, 1}, {3, 515, 2, 64, 16, 1}, {20, 600, 2, 32, 32, 0}};
    for (size_t i = 0; i < COUNT(shapes) && c->a->turns && c->b->turns; i++) {
        const uint32_t n = shapes[i][0], n_head = shapes[i][2], head_dim = shapes[i][3],
                       half = shapes[i][4] / 2;
        const size_t width = (size_t)n_head * head_dim;
        static const uint8_t layers[2] = {0, 1};
        char what[100];
        uint32_t gaps[40];
        snprintf(what, sizeof what, "folded: n %u, %u rows, %u heads of %u, %u of them turned", n,
            shapes[i][1], n_head, head_dim, 2 * half);
        c->what = what;
        cache x;
        cache_new(&x, (model_rows_shape){2, 2, head_dim}, shapes[i][1], i % 2 == 0);
        for (uint32_t g = 0; g < COUNT(gaps); g++) gaps[g] = g % 5 == 4 ? 0 : 3000000 - 50000 * (g / 2);
        x.view.gaps = gaps;
        x.view.n_gaps = COUNT(gaps) / 2;
        float *table = random_floats((size_t)COUNT(gaps) * 2 * half), *q = random_floats(n * width), *got[2];
        for (uint32_t g = 0; g < COUNT(gaps); g++)
            for (uint32_t k = 0; k < half; k++) {
                const double angle = gaps[g] * pow(1e4, -2.0 * k / (2 * half));
                table[(size_t)g * 2 * half + k] = (float)cos(angle);
                table[(size_t)g * 2 * half + half + k] = (float)sin(angle);
            }
        ops_attention_args args = {.rows = &x.view, .layer = 1, .n = n, .n_head = n_head};
        args.scale = 1 / sqrtf((float)head_dim);
        for (int side = 0; side < 2; side++) {
            model_ops *ops = side ? c->b : c->a;
            const size_t n_bytes = COUNT(gaps) * 2 * half * sizeof *table;
            ops_buffer *buffer = NULL;
            base_err err;
            expect_ok(c, "buffer_new", ops->buffer_new(ops, &buffer, n_bytes, &err), &err);
            ops->upload(ops, buffer, 0, table, n_bytes);
            const ops_turns turns = {.gaps = gaps,
                .table = buffer,
                .layers = layers,
                .n = x.view.n_gaps,
                .n_rot = 2 * half,
                .pairing = shapes[i][5] ? OPS_ROPE_NEOX : OPS_ROPE_NORM};
            args.turns = &turns;
            got[side] = attend(c, ops, &args, q);
            ops->buffer_free(ops, buffer);
        }
        expect_same(c, "attention (folded)", got[0], got[1], n * width);
        /* The truth: every key turned by its row's gap. */
        const uint32_t t = n / 2;
        for (uint32_t h = 0; h < n_head; h++) {
            const uint32_t lane = 2 + h / (n_head / 2), step = shapes[i][5] ? 1 : 2,
                           other = step == 1 ? half : 1;
            const model_lane_list *list = &x.lanes[lane];
            const uint32_t own = list->n_rows - n + t;
            double out[256] = {0}, *p = base_xmalloc((own + 1) * sizeof *p), sum = 0;
            for (uint32_t o = 0; o <= own; o++) {
                uint32_t index, slot = slot_of(list, o, &index);
                const double gap = model_rows_gap(&x.view, index);
                double turned[256], score = 0;
                for (uint32_t k = 0; k < head_dim; k++)
                    turned[k] = quant_f16_to_f32(model_rows_key(&x.view, lane, slot)[k]);
                for (uint32_t k = 0; k < half; k++) {
                    const double angle = gap * pow(1e4, -2.0 * k / (2 * half)), a = turned[step * k],
                                 b = turned[step * k + other];
                    turned[step * k] = a * cos(angle) - b * sin(angle);
                    turned[step * k + other] = b * cos(angle) + a * sin(angle);
                }
                for (uint32_t k = 0; k < head_dim; k++)
                    score += (double)q[t * width + h * head_dim + k] *
                             quant_f16_to_f32(quant_f32_to_f16((float)turned[k]));
                sum += p[o] = exp(score * args.scale);
            }
            for (uint32_t o = 0; o <= own; o++) {
                uint32_t index, slot = slot_of(list, o, &index);
                for (uint32_t k = 0; k < head_dim; k++)
                    out[k] += p[o] / sum * quant_f16_to_f32(model_rows_value(&x.view, lane, slot)[k]);
            }
            free(p);
            expect_near(c, "attention (folded, F64)", got[0] + t * width + h * head_dim, out, head_dim, 2e-4);
        }
        for (int side = 0; side < 2; side++) free(got[side]);
        free(table);
        free(q);
        cache_free(&x);
    }
}

void cases_attention(check *c)
{
    cases_attention_folded(c);
    /* n, rows, query heads, head_dim, window */
    static const uint32_t shapes[][5] = {{1, 1, 4, 64, 0}, {1, 255, 6, 32, 0}, {1, 1000, 12, 128, 0},
        {2, 257, 2, 80, 0}, {3, 600, 6, 64, 0}, {5, 700, 4, 64, 100}, {8, 513, 12, 16, 0}, {33, 33, 6, 64, 0},
        {33, 800, 12, 48, 0}, {40, 700, 2, 256, 60}, {100, 300, 12, 128, 0}, {9, 600, 4, 512, 0}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        uint32_t n = shapes[i][0], n_rows = shapes[i][1], n_head = shapes[i][2], head_dim = shapes[i][3];
        char what[100];
        if (head_dim > 256 && strncmp(c->b->backend, "cuda", 4) == 0) continue; /* it takes no such model */
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
        /* Sinks about as large as scores are, in every other case. */
        float *sinks = i % 2 ? random_floats(n_head) : NULL;
        for (uint32_t h = 0; sinks && h < n_head; h++) sinks[h] *= 10;
        float *a = attend_sunk(c, c->a, &args, sinks, q), *b = attend_sunk(c, c->b, &args, sinks, q);
        expect_same(c, "attention", a, b, n * width);
        double truth[512];
        for (uint32_t h = 0; h < n_head; h++) {
            attention_truth(&args, sinks, q, h % n, h, truth);
            expect_near(c, "attention (F64)", a + (h % n) * width + h * head_dim, truth, head_dim, 2e-5);
        }
        /* The last token by itself sees the same list. */
        args.n = 1;
        float *alone = attend_sunk(c, c->b, &args, sinks, q + (n - 1) * width);
        expect_same(c, "attention (a token alone)", b + (n - 1) * width, alone, width);
        free(sinks);
        free(a);
        free(b);
        free(q);
        free(alone);
        cache_free(&x);
    }
}

/* Attention with halves: near the exact one by what a half leaves of a factor. */
void check_attention_of_halves(check *c)
{
    /* n, rows, query heads, head_dim, window */
    static const uint32_t shapes[][5] = {{64, 64, 2, 64, 0}, {70, 700, 6, 64, 100}, {65, 65, 4, 64, 20},
        {100, 300, 12, 128, 0}, {80, 1000, 2, 128, 0}};
    random_state = c->seed; /* the same numbers whatever was checked before */
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const uint32_t n = shapes[i][0], n_head = shapes[i][2], head_dim = shapes[i][3];
        char what[100];
        snprintf(what, sizeof what, "n %u, %u rows, %u heads of %u, window %u", n, shapes[i][1], n_head,
            head_dim, shapes[i][4]);
        c->what = what;
        cache x;
        cache_new(&x, (model_rows_shape){2, 2, head_dim}, shapes[i][1], i % 2 == 0);
        ops_attention_args args = {
            .rows = &x.view, .layer = 1, .n = n, .n_head = n_head, .window = shapes[i][4]};
        args.scale = 1 / sqrtf((float)head_dim);
        const size_t width = (size_t)n_head * head_dim;
        float *q = random_floats(n * width);
        float *want = attend(c, c->a, &args, q), *got = attend(c, c->b, &args, q);
        double *truth = base_xmalloc(n * width * sizeof *truth);
        for (size_t k = 0; k < n * width; k++) truth[k] = want[k];
        expect_near(c, "attention (halves)", got, truth, n * width, 1e-3);
        free(truth);
        free(q);
        free(want);
        free(got);
        cache_free(&x);
    }
}

/*
 * More numerators than are kept between the two walks: the sum over a lane is 1, and 16 equal heads give what
 * one gives.
 */
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

/*
 * Rows that are not listed, but whose sum of exp(score) is given: the listed ones get what they get among
 * all.
 */
static void cases_score_rows_rest(check *c)
{
    enum { HEADS = 4, QUERIES = 3, HEAD = 48, ROWS = 600, LISTED = 256 };
    static const uint8_t heads[HEADS] = {1, 0, 1, 1};
    cache x;
    c->what = "rows outside of the lists";
    cache_new(&x, (model_rows_shape){1, 2, HEAD}, ROWS, true);
    float *queries = random_floats((size_t)HEADS * QUERIES * HEAD), rest[HEADS * QUERIES], *mass[3][2];
    model_lane_list listed[2];
    model_run runs[2][ROWS];
    for (uint32_t lane = 0; lane < 2; lane++) {
        const model_lane_list *all = &x.lanes[lane];
        listed[lane] = (model_lane_list){.runs = runs[lane]};
        for (uint32_t i = 0; i < all->n_runs && listed[lane].n_rows < LISTED; i++) {
            model_run run = all->runs[i];
            if (run.n > LISTED - listed[lane].n_rows) run.n = LISTED - listed[lane].n_rows;
            runs[lane][listed[lane].n_runs++] = run;
            listed[lane].n_rows += run.n;
        }
        for (uint32_t h = 2 * lane; h < 2 * lane + 2; h++)
            for (uint32_t t = 0; t < QUERIES; t++) {
                double sum = 0;
                for (uint32_t o = LISTED; o < ROWS; o++) {
                    uint32_t index, slot = slot_of(all, o, &index);
                    double score = 0;
                    for (uint32_t d = 0; d < HEAD; d++)
                        score += (double)queries[(h * QUERIES + t) * HEAD + d] *
                                 quant_f16_to_f32(model_rows_key(&x.view, lane, slot)[d]) * 0.125;
                    sum += exp(score);
                }
                rest[h * QUERIES + t] = h == 3 && t == 2 ? -INFINITY : (float)log(sum);
            }
    }
    for (int run = 0; run < 3; run++) { /* the best level, this one, and everything listed */
        model_ops *ops = run == 1 ? c->b : c->a;
        base_err err;
        model_rows_view view = x.view;
        if (run < 2) view.lanes = listed;
        for (int lane = 0; lane < 2; lane++) mass[run][lane] = base_xmalloc(ROWS * sizeof(float));
        ops_score_rows_args args = {.rows = &view,
            .queries = queries,
            .n_queries = QUERIES,
            .n_head = HEADS,
            .scale = 0.125f,
            .heads = heads,
            .rest = run < 2 ? rest : NULL,
            .mass = mass[run]};
        expect_ok(c, "score_rows", ops->score_rows(ops, &args, &err), &err);
    }
    double truth[LISTED];
    for (int lane = 0; lane < 2; lane++) expect_same(c, "score_rows", mass[0][lane], mass[1][lane], LISTED);
    for (int i = 0; i < LISTED; i++) truth[i] = mass[2][0][i];
    expect_near(c, "score_rows (rest)", mass[1][0], truth, LISTED, 1e-6);
    /* Where one query's rest is nothing, the listed rows share its whole mass. */
    double sum = 0, all = 0;
    for (int i = 0; i < LISTED; i++) sum += mass[1][1][i];
    for (int i = 0; i < LISTED; i++) all += mass[2][1][i];
    if (!(sum > all && sum < 1)) fail(c, "a lane's mass is %.9g, among all %.9g", "score_rows", sum, all, 0);
    for (int run = 0; run < 3; run++)
        for (int lane = 0; lane < 2; lane++) free(mass[run][lane]);
    free(queries);
    cache_free(&x);
}

void cases_score_rows(check *c)
{
    cases_score_rows_large(c);
    cases_score_rows_rest(c);
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

/*
 * Against the definition in F64, and against every row of a section: no row's score is above its section's
 * bound.
 */
void cases_bound(check *c)
{
    static const uint32_t shapes[][4] = {{1, 1, 4, 64}, {1, 300, 12, 128}, {5, 513, 6, 48}, {2, 257, 2, 256}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const uint32_t n = shapes[i][0], n_sections = shapes[i][1], n_head = shapes[i][2], d = shapes[i][3];
        const uint32_t group = n_head / 2;
        char what[64];
        snprintf(what, sizeof what, "n %u, %u sections, %u heads of %u", n, n_sections, n_head, d);
        c->what = what;
        cache x;
        cache_new(&x, (model_rows_shape){2, 2, d}, n_sections, false);
        for (uint32_t lane = 0; lane < 4; lane++) /* largest above smallest, in every dimension */
            for (uint32_t s = 0; s < n_sections; s++)
                for (uint32_t k = 0; k < d; k++) {
                    uint16_t *most = model_rows_key(&x.view, lane, s) + k,
                             *least = model_rows_value(&x.view, lane, s) + k, swap = *most;
                    if (quant_f16_to_f32(*most) >= quant_f16_to_f32(*least)) continue;
                    *most = *least;
                    *least = swap;
                }
        const size_t width = (size_t)n_head * d, n_out = (size_t)2 * n * n_sections;
        float *q = random_floats(n * width), *got[2];
        q[0] = 0;
        for (int side = 0; side < 2; side++) {
            model_ops *ops = side ? c->b : c->a;
            base_err err;
            matrix mq = matrix_new(ops, n, (uint32_t)width, q);
            got[side] = base_xmalloc((n_out + 1) * sizeof(float));
            got[side][n_out] = canary;
            ops_bound_args args = {.profiles = &x.view,
                .layer = 1,
                .n = n,
                .n_head = n_head,
                .n_sections = n_sections,
                .scale = 0.125f,
                .q = mq.m,
                .bound = got[side]};
            expect_ok(c, "bound", ops->bound(ops, &args, &err), &err);
            args.n_sections = x.view.n_blocks * MODEL_ROWS_BLOCK + 1;
            if (ops->bound(ops, &args, &err) != BASE_E_LIMIT)
                fail(c, "took more sections than there are profiles", "bound", 0, 0, 0);
            ops->buffer_free(ops, mq.m.buffer);
        }
        expect_same(c, "bound", got[0], got[1], n_out + 1);
        double *truth = base_xmalloc(n_sections * sizeof *truth),
               *head = base_xmalloc(n_sections * sizeof *head);
        for (uint32_t h = 0; h < 2; h++)
            for (uint32_t t = 0; t < n; t++) {
                for (uint32_t s = 0; s < n_sections; s++) truth[s] = -INFINITY;
                for (uint32_t g = 0; g < group; g++) {
                    for (uint32_t s = 0; s < n_sections; s++) {
                        double inside = head[s] = 0;
                        for (uint32_t k = 0; k < d; k++) {
                            const double x_k = (double)q[t * width + (h * group + g) * d + k],
                                         m = quant_f16_to_f32(model_rows_key(&x.view, 2 + h, s)[k]),
                                         l = quant_f16_to_f32(model_rows_value(&x.view, 2 + h, s)[k]);
                            head[s] += fmax(x_k * m, x_k * l) * 0.125;
                            inside += x_k * (k % 3 ? m : l) * 0.125; /* a row between the two */
                        }
                        if (!(inside <= head[s] + 1e-9))
                            fail(c, "a row's %g is above %g, section %zu", "bound", inside, head[s], s);
                    }
                    for (uint32_t s = 0; s < n_sections; s++) truth[s] = fmax(truth[s], head[s]);
                }
                expect_near(
                    c, "bound (F64)", got[0] + ((size_t)h * n + t) * n_sections, truth, n_sections, 1e-4);
            }
        free(head);
        free(truth);
        free(got[0]);
        free(got[1]);
        free(q);
        cache_free(&x);
    }
}
