/* The device's memory: rows come and go within little of it and change no bit, and a decoded token is a graph that holds while the context grows. */
#include "device_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>

#include "model/ops/ops.h"

/* ---- rows ---- */

/* A view of some tokens of a dense cache, the last one among them: every lane another choice. */
typedef struct chosen {
    model_rows_view view;
    model_lane_list lanes[16];
    model_run runs[16][N_TOKENS];
} chosen;

static void choose(chosen *c, const model_rows_view *all, uint32_t n, uint32_t one_in, uint64_t seed)
{
    c->view = *all;
    c->view.lanes = c->lanes;
    for (uint32_t lane = 0; lane < model_rows_lanes(&all->shape); lane++) {
        uint32_t n_runs = 0, n_rows = 0;
        for (uint32_t t = 0; t < n; t++) {
            if (t + 1 < n && (tiny_random(&seed) + 1) / 2 * one_in >= 1) continue;
            c->runs[lane][n_runs++] = (model_run){t, t, 1};
            n_rows++;
        }
        c->lanes[lane] = (model_lane_list){c->runs[lane], n_runs, n_rows};
    }
}

static void forward_one(model *m, const model_rows_view *view, int32_t id, uint32_t phase, float *logits)
{
    base_err err = {0};
    const uint32_t first = 0;
    const model_batch batch = {
        .ids = &id, .phases = &phase, .n = 1, .rows = view, .want = &first, .n_want = 1, .logits = logits};
    if (model_forward(m, &batch, &err)) fail_msg("%s", err.msg);
}

/*
 * The last of 300 tokens computed again over lists that shrink, jump and come back; what comes back gives the bits of what
 * never went.
 */
static void test_rows__rows_that_return_are_what_they_were(void **state)
{
    static chosen c;
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    pair p = open_pair(&spec);
    model_dense *a = dense(p.cpu), *b = dense(p.cuda);
    const model_rows_view *of_a, *of_b;
    float full[N_VOCAB], want[N_VOCAB], got[N_VOCAB];
    compute(a, p.cpu, p.ids, N_TOKENS, full);
    compute(b, p.cuda, p.ids, N_TOKENS, got);
    assert_memory_equal(full, got, sizeof full);
    model_dense_truncate(a, N_TOKENS - 1);
    model_dense_truncate(b, N_TOKENS - 1);
    assert_int_equal(model_dense_append(a, 1, &of_a, NULL), 0);
    assert_int_equal(model_dense_append(b, 1, &of_b, NULL), 0);
    static const uint32_t shares[] = {2, 9, 2, 30, 1, 5, 1};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        choose(&c, of_a, N_TOKENS, shares[i], i / 2);
        forward_one(p.cpu, &c.view, p.ids[N_TOKENS - 1], N_TOKENS - 1, want);
        choose(&c, of_b, N_TOKENS, shares[i], i / 2);
        forward_one(p.cuda, &c.view, p.ids[N_TOKENS - 1], N_TOKENS - 1, got);
        assert_memory_equal(want, got, sizeof want);
        if (shares[i] == 1) assert_memory_equal(full, got, sizeof full);
    }
    model_dense_free(a);
    model_dense_free(b);
    close_pair(&p);
}

/* Two sequences in turns, each of which throws the other's rows out. */
static void test_rows__little_memory_changes_no_bits(void **state)
{
    const tiny_gguf spec = TINY_GGUF_LLAMA;
    pair p = open_pair(&spec);
    const size_t before = emu_get_counts().allocated;
    model_dense *a[2] = {dense(p.cpu), dense(p.cpu)}, *b[2] = {dense(p.cuda), dense(p.cuda)};
    float want[N_VOCAB], got[N_VOCAB];
    for (int which = 0; which < 2; which++) {
        compute(a[which], p.cpu, p.ids + which, 200, want);
        compute(b[which], p.cuda, p.ids + which, 200, got);
        assert_memory_equal(want, got, sizeof want);
        compute(a[which], p.cpu, p.ids + 199, 1, want);
        compute(b[which], p.cuda, p.ids + 199, 1, got);
    }
    emu_set_memory(emu_get_counts().allocated); /* not a byte more */
    for (int i = 0; i < 30; i++) {
        const int which = i / 3 % 2;
        compute(a[which], p.cpu, p.ids + 200 + i, 1, want);
        compute(b[which], p.cuda, p.ids + 200 + i, 1, got);
        assert_memory_equal(want, got, sizeof want);
    }
    emu_set_memory(MACHINE_MEMORY);
    assert_true(emu_get_counts().allocated > before);
    for (int which = 0; which < 2; which++) {
        model_dense_free(a[which]);
        model_dense_free(b[which]);
    }
    close_pair(&p);
}

/* More sequences than the pool had places for: while memory is plenty, those that nobody reads now stay where they are. */
static void test_rows__keeps_rows_while_there_is_memory(void **state)
{
    enum { N = 5 }; /* of 300 rows: the pool begins with places for 1024 */
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    pair p = open_pair(&spec);
    model_dense *a = dense(p.cpu), *b[N];
    float want[N_VOCAB], got[N_VOCAB];
    const model_rows_shape shape = model_get_rows_shape(p.cuda);
    const size_t rows_bytes = (size_t)(N_TOKENS - 1) * model_rows_lanes(&shape) * shape.head_dim * 4;
    for (int i = 0; i < N; i++) {
        b[i] = dense(p.cuda);
        compute(b[i], p.cuda, p.ids, N_TOKENS - 1, got);
    }
    compute(a, p.cpu, p.ids, N_TOKENS - 1, want);
    compute(a, p.cpu, p.ids + N_TOKENS - 1, 1, want);
    const uint64_t before = emu_get_counts().bytes_to_device;
    compute(b[0], p.cuda, p.ids + N_TOKENS - 1, 1, got);
    assert_memory_equal(want, got, sizeof want);
    assert_true(emu_get_counts().bytes_to_device - before < rows_bytes / 2);
    for (int i = 0; i < N; i++) model_dense_free(b[i]);
    model_dense_free(a);
    close_pair(&p);
}

/*
 * Rows that the CPU computed and the device has never seen: brought before the batch, pinned or not, they give the bits of the CPU, the
 * batch finds them there, and of pinned ones only addresses go through the host's buffers.
 */
static void check_brought(int n_pins, bool *ret_moved_rows)
{
    static chosen c;
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    pair p = open_pair(&spec);
    model_dense *a = dense(p.cpu);
    const model_rows_view *view;
    const model_rows_shape shape = model_get_rows_shape(p.cuda);
    float want[N_VOCAB], got[N_VOCAB];
    emu_set_pins(n_pins);
    compute(a, p.cpu, p.ids, N_TOKENS - 1, want);
    assert_int_equal(model_dense_append(a, 1, &view, NULL), 0);
    const size_t n_bytes = model_rows_block_bytes(&shape);
    for (uint32_t b = 0; b < view->n_blocks; b++) model_rows_pin(p.cuda, view->blocks[b], n_bytes);
    assert_int_equal(emu_get_counts().pinned, n_pins < 0 ? view->n_blocks : (uint32_t)n_pins);
    choose(&c, view, N_TOKENS, 3, 8);
    forward_one(p.cpu, &c.view, p.ids[N_TOKENS - 1], N_TOKENS - 1, want);
    uint64_t stamps[8], n_rows = 0;
    for (uint32_t b = 0; b < view->n_blocks; b++) stamps[b] = model_rows_new_stamp();
    c.view.stamps = stamps;
    for (uint32_t lane = 0; lane < model_rows_lanes(&shape); lane++) n_rows += c.lanes[lane].n_rows - 1;
    const uint64_t before = emu_get_counts().bytes_to_device;
    model_rows_bring(p.cuda, &c.view);
    const uint64_t brought = emu_get_counts().bytes_to_device - before;
    *ret_moved_rows = brought >= n_rows * shape.head_dim * 4;
    model_rows_bring(p.cuda, &c.view);
    assert_int_equal(emu_get_counts().bytes_to_device - before, brought);
    forward_one(p.cuda, &c.view, p.ids[N_TOKENS - 1], N_TOKENS - 1, got);
    assert_memory_equal(want, got, sizeof want);
    for (uint32_t b = 0; b < view->n_blocks; b += 2) model_rows_unpin(p.cuda, view->blocks[b]);
    model_dense_free(a);
    close_pair(&p);
    assert_int_equal(emu_get_counts().pinned, 0);
    emu_set_pins(-1);
}

static void test_rows__brings_rows_from_where_they_lie(void **state)
{
    bool moved_rows;
    check_brought(-1, &moved_rows);
    assert_false(moved_rows);
    check_brought(1, &moved_rows); /* one of two blocks: the other's rows are gathered */
    check_brought(0, &moved_rows);
    assert_true(moved_rows);
}

/* ---- graphs ---- */

/* n_layer_launches: of a layer's; n_more: of the others. */
static void check_graph(const tiny_gguf *spec, uint64_t n_layer_launches, uint64_t n_more)
{
    pair p = open_pair(spec);
    model_dense *b = dense(p.cuda);
    float logits[N_VOCAB];
    compute(b, p.cuda, p.ids, 250, logits); /* tiles begin and end on the way: 256 ordinals */
    for (int i = 250; i < 253; i++)         /* room is made, seen, captured */
        compute(b, p.cuda, p.ids + i, 1, logits);
    const emu_counts before = emu_get_counts();
    for (int i = 253; i < 283; i++) compute(b, p.cuda, p.ids + i, 1, logits);
    const emu_counts after = emu_get_counts();
    assert_int_equal(after.captures - before.captures, 0);
    assert_int_equal(after.graph_launches - before.graph_launches, 30);
    const uint64_t n_layer = model_get_rows_shape(p.cuda).n_layer;
    assert_int_equal(after.launches - before.launches, 30 * (n_layer_launches * n_layer + n_more));
    model_dense_free(b);
    close_pair(&p);
}

static void test_rows__decodes_by_one_graph_while_the_context_grows(void **state)
{
    /* The patches of lists, angles, embedding, first and last norm, head stand alone (fuse.c). */
    check_graph(&TINY_GGUF_QWEN2, 6, 6);
    /*
     * A mixture: norm, QKV, two norms of heads, two turns, rows; attention, merge; output; norm, scores, choice,
     * quantise, sort, gate and up, gate, down, sum.
     */
    check_graph(&TINY_GGUF_QWEN3MOE, 19, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_rows__rows_that_return_are_what_they_were, reset_machine),
        cmocka_unit_test_setup(test_rows__little_memory_changes_no_bits, reset_machine),
        cmocka_unit_test_setup(test_rows__keeps_rows_while_there_is_memory, reset_machine),
        cmocka_unit_test_setup(test_rows__brings_rows_from_where_they_lie, reset_machine),
        cmocka_unit_test_setup(test_rows__decodes_by_one_graph_while_the_context_grows, reset_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
