/*
 * Sketches on real keys: of the mass that the best evicted rows have by exact keys, how much do those have that
 * a visit finds (ops.h)? Keys and queries of SmolLM2 over a real text; means over all lanes and the worst one are
 * printed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "little.h"
#include "model/file/quant.h"
#include "model/ops/sketch.h"
#include "model/text/tokenizer.h"

enum { BLOCKS = 5, EVICTED = BLOCKS * MODEL_ROWS_BLOCK, ROWS = EVICTED + 128, ASK = 12, MOST = 64 };

typedef struct reader {
    model_rows_view view;
    model_lane_list list;
    model_lane_list *lanes;
    uint64_t bits[EVICTED / 64];
    const uint64_t **evicted;
    uint8_t *sketches[BLOCKS + 2];
    uint32_t layer, *chosen, *n_chosen, *all; /* all: [layer][kv head][ASK][MOST] */
} reader;

static int visit(void *user, uint32_t layer, model_visit *ret, base_err *err)
{
    reader *r = user;
    (void)err;
    r->layer = layer;
    *ret = (model_visit){.rows = &r->view,
        .evicted = r->evicted,
        .sketches = (const uint8_t *const *)r->sketches,
        .n_slots = EVICTED,
        .most = MOST,
        .chosen = r->chosen,
        .n_chosen = r->n_chosen};
    return 0;
}

static int visited(void *user, const model_visit *v, base_err *err)
{
    reader *r = user;
    const size_t n = (size_t)r->view.shape.n_head_kv * ASK;
    for (size_t i = 0; i < n; i++) assert_int_equal(v->n_chosen[i], MOST);
    memcpy(r->all + r->layer * n * MOST, v->chosen, n * MOST * sizeof *r->all);
    (void)err;
    return 0;
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* What share of the best rows' mass the chosen ones of a lane and token have. */
static double share_of(const reader *r, uint32_t lane, const float *queries, uint32_t group, size_t step,
    uint32_t t, const uint32_t *chosen)
{
    static double mass[EVICTED];
    const uint32_t d = r->view.shape.head_dim, n = ROWS + t + 1;
    double found = 0, best = 0;
    memset(mass, 0, sizeof mass);
    for (uint32_t g = 0; g < group; g++) {
        static double p[ROWS + ASK];
        const float *q = queries + g * step + (size_t)t * d;
        double max = -INFINITY, sum = 0;
        for (uint32_t row = 0; row < n; row++) {
            const uint16_t *key = model_rows_key(&r->view, lane, row);
            p[row] = 0;
            for (uint32_t i = 0; i < d; i++) p[row] += (double)q[i] * (double)quant_f16_to_f32(key[i]);
            p[row] /= sqrt((double)d);
            max = fmax(max, p[row]);
        }
        for (uint32_t row = 0; row < n; row++) sum += p[row] = exp(p[row] - max);
        for (uint32_t row = 0; row < EVICTED; row++) mass[row] += p[row] / sum;
    }
    for (uint32_t i = 0; i < MOST; i++) found += mass[chosen[i]];
    qsort(mass, EVICTED, sizeof *mass, descending);
    for (uint32_t i = 0; i < MOST; i++) best += mass[i];
    return found / best;
}

static void test_sketch__finds_the_rows_that_weigh_most(void **state)
{
    (void)state;
    char *path = base_fs_home(BASE_HOME_DATA, "models/SmolLM2-135M-Instruct.Q4_1.gguf");
    if (!base_fs_exists(path)) {
        fprintf(stderr, "needs %s\n", path);
        free(path);
        skip();
    }
    model *m = little_open_model(path, 2);
    const model_info *info = model_get_info(m);
    const model_rows_shape shape = model_get_rows_shape(m);
    const uint32_t n_lanes = model_rows_lanes(&shape), group = info->n_head / shape.n_head_kv;
    base_buf text = {0};
    model_ids ids = {0};
    assert_int_equal(base_fs_read(KVIST_TEXT, 1 << 20, &text, NULL), 0);
    model_tokenizer_encode(model_get_tokenizer(m), text.data, text.len, false, &ids);
    assert_true(ids.n >= ROWS + ASK);
    model_dense *rows = little_dense(&shape, ROWS + ASK);
    assert_int_equal(model_dense_compute(rows, m, ids.ids, ROWS, 0, NULL, NULL, NULL), 0);

    reader r = {.lanes = base_xcalloc(n_lanes, sizeof *r.lanes),
        .evicted = base_xcalloc(shape.n_head_kv, sizeof *r.evicted),
        .chosen = base_xcalloc((size_t)shape.n_head_kv * ASK * MOST, sizeof *r.chosen),
        .n_chosen = base_xcalloc((size_t)shape.n_head_kv * ASK, sizeof *r.n_chosen),
        .all = base_xcalloc((size_t)n_lanes * ASK * MOST, sizeof *r.all)};
    const model_rows_view *view = NULL;
    uint32_t phases[ASK], places[ASK];
    assert_int_equal(model_dense_append(rows, ASK, &view, NULL), 0);
    memset(r.bits, 0xff, sizeof r.bits);
    for (uint32_t h = 0; h < shape.n_head_kv; h++) r.evicted[h] = r.bits;
    for (uint32_t b = 0; b < BLOCKS; b++) {
        r.sketches[b] = aligned_alloc(64, model_sketch_bytes(model_rows_lanes(&shape), shape.head_dim));
        model_sketch_make(shape.head_dim, NULL, model_rows_lanes(&shape), view->blocks[b], r.sketches[b]);
    }
    r.view = *view;
    r.view.lanes = r.lanes;
    for (uint32_t lane = 0; lane < n_lanes; lane++)
        r.lanes[lane] = (model_lane_list){
            view->lanes[lane].runs + BLOCKS, view->lanes[lane].n_runs - BLOCKS, ROWS + ASK - EVICTED};
    for (uint32_t i = 0; i < ASK; i++) {
        places[i] = i;
        phases[i] = ROWS + i;
    }
    float *queries =
        base_xcalloc((size_t)info->n_layer * info->n_head * ASK * shape.head_dim, sizeof *queries);
    const model_reader as_model = {.user = &r, .visit = visit, .visited = visited};
    const model_batch batch = {.ids = ids.ids + ROWS,
        .phases = phases,
        .n = ASK,
        .rows = view,
        .capture = &(model_capture){.tokens = places, .n = ASK, .queries = queries},
        .reader = &as_model};
    assert_int_equal(model_forward(m, &batch, NULL), 0);

    double sum = 0, worst = 1;
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        double of_lane = 0;
        for (uint32_t t = 0; t < ASK; t++)
            of_lane += share_of(&r, lane, queries + (size_t)lane * group * ASK * shape.head_dim, group,
                           (size_t)ASK * shape.head_dim, t, r.all + ((size_t)lane * ASK + t) * MOST) /
                       ASK;
        sum += of_lane / n_lanes;
        worst = fmin(worst, of_lane);
    }
    printf("of the best %d of %d rows' mass: %.4f, worst lane %.4f\n", MOST, EVICTED, sum, worst);
    assert_true(sum >= .97);
    assert_true(worst >= .90);
    for (uint32_t b = 0; b < BLOCKS; b++) free(r.sketches[b]);
    free(r.lanes);
    free(r.evicted);
    free(r.chosen);
    free(r.n_chosen);
    free(r.all);
    free(queries);
    free(ids.ids);
    base_buf_free(&text);
    model_dense_free(rows);
    model_close(m);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sketch__finds_the_rows_that_weigh_most)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
