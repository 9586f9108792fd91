/*
 * The CUDA backend on the emulated device, above single operations: whole models and sessions give the CPU's bits, a decoded
 * token is a graph that holds while the context grows, rows come and go within little memory, and every way of having no device (from
 * the start or all of a sudden) is a sentence.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "base/buf.h"
#include "base/mem.h"
#include "kv/session.h"
#include "model/forward/dense.h"
#include "model/forward/model.h"
#include "model/ops/ops.h"
#include "tiny_gguf.h"

enum { N_VOCAB = TINY_GGUF_VOCAB, N_TOKENS = 300, N_SESSION = 900 };

static const size_t memory = (size_t)1 << 30;

/* One model file open on both backends. */
typedef struct pair {
    char *path;
    model *cpu, *cuda;
    int32_t ids[N_SESSION];
} pair;

static model *open_on(const char *path, const char *backend)
{
    base_err err = {0};
    model *m = NULL;
    if (model_open(&m, path, &(model_options){.n_threads = 2, .backend = backend}, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(model_get_info(m)->backend, backend);
    return m;
}

static pair open_pair(const tiny_gguf *spec)
{
    pair p = {.path = tiny_gguf_temp(spec)};
    uint64_t state = 11;
    assert_non_null(p.path);
    p.cpu = open_on(p.path, "cpu");
    p.cuda = open_on(p.path, "cuda");
    for (int i = 0; i < N_SESSION; i++) p.ids[i] = (int32_t)((tiny_random(&state) + 1) / 2 * 250);
    return p;
}

static void close_pair(pair *p)
{
    model_close(p->cpu);
    if (p->cuda) model_close(p->cuda);
    unlink(p->path);
    free(p->path);
}

static model_dense *dense(model *m)
{
    model_dense *d = NULL;
    model_rows_shape shape = model_get_rows_shape(m);
    assert_int_equal(model_dense_new(&d, &shape, N_TOKENS, NULL), 0);
    return d;
}

static void compute(model_dense *d, model *m, const int32_t *ids, uint32_t n, float *logits)
{
    base_err err = {0};
    if (model_dense_compute(d, m, ids, n, 1, logits, NULL, &err)) fail_msg("%s", err.msg);
}

/* ---- bits ---- */

/* A prompt, a batch that is a graph's, a batch that is not, then tokens one by one: logits after each. */
static void check_bits(const tiny_gguf *spec)
{
    static const uint32_t steps[] = {7, 1, 1, 40, 16, 17, 2, 3, 1, 1};
    pair p = open_pair(spec);
    model_dense *a = dense(p.cpu), *b = dense(p.cuda);
    float want[N_VOCAB], got[N_VOCAB];
    uint32_t at = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; at += steps[i++]) {
        compute(a, p.cpu, p.ids + at, steps[i], want);
        compute(b, p.cuda, p.ids + at, steps[i], got);
        if (memcmp(want, got, sizeof want) != 0)
            fail_msg("%s: other logits at token %u", spec->architecture, at);
    }
    assert_int_equal(model_get_info(p.cpu)->kernel_version, model_get_info(p.cuda)->kernel_version);
    model_dense_free(a);
    model_dense_free(b);
    close_pair(&p);
}

static void test_cuda__gives_the_cpus_logits(void **state)
{
    tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_LLAMA, TINY_GGUF_GEMMA3, TINY_GGUF_GRANITE,
        TINY_GGUF_PHI3, TINY_GGUF_SMOLLM3, TINY_GGUF_QWEN3MOE, TINY_GGUF_GPT_OSS};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) check_bits(&specs[i]);
    tiny_gguf quantised = TINY_GGUF_QWEN2;
    quantised.type = TINY_Q8_0;
    check_bits(&quantised);
    tiny_gguf mixed = TINY_GGUF_QWEN3MOE; /* experts with few columns and with many */
    mixed.type = TINY_MXFP4;
    mixed.n_experts = 4;
    mixed.n_experts_used = 2;
    check_bits(&mixed);
}

/* Hybrids: dense, with an expert of all tokens, with neighbours that share a head of keys. */
static tiny_gguf hybrid_of(const char *architecture, uint32_t n_values)
{
    return (tiny_gguf){.architecture = architecture,
        .n_layer = 4,
        .n_embd = 128,
        .n_ff = 96,
        .n_head = 4,
        .n_head_kv = 2,
        .head_dim = 32,
        .n_rot = 8,
        .rows_every = 2,
        .n_state_keys = 2,
        .n_state_values = n_values,
        .state_dim = 32,
        .n_ctx = 4096,
        .seed = 33,
        .rope_base = 1e6f,
        .n_experts = 4,
        .n_experts_used = 3,
        .n_ff_shared = 64};
}

static void test_cuda__keeps_the_cpus_states(void **state)
{
    const tiny_gguf mixed = hybrid_of("qwen35moe", 4), next = hybrid_of("qwen3next", 6);
    check_bits(&TINY_GGUF_QWEN35);
    check_bits(&mixed);
    check_bits(&next);
}

/* ---- matrices that stay in the host's memory ---- */

/* The CPU's bits, with so many layers on the device, or without the experts; less of its memory is taken. */
static void check_left(const tiny_gguf *spec, uint32_t gpu_layers, bool cpu_moe)
{
    static const uint32_t steps[] = {7, 1, 40, 17, 1, 1};
    pair p = open_pair(spec);
    const size_t whole = emu_get_counts().allocated;
    model_dense *a = dense(p.cpu), *b = dense(p.cuda);
    float want[N_VOCAB], got[N_VOCAB];
    base_err err = {0};
    model_close(p.cuda);
    const model_options options = {
        .n_threads = 2, .backend = "cuda", .gpu_layers = gpu_layers, .cpu_moe = cpu_moe};
    if (model_open(&p.cuda, p.path, &options, &err)) fail_msg("%s", err.msg);
    assert_true(emu_get_counts().allocated < whole);
    for (size_t i = 0, at = 0; i < sizeof steps / sizeof *steps; at += steps[i++]) {
        compute(a, p.cpu, p.ids + at, steps[i], want);
        compute(b, p.cuda, p.ids + at, steps[i], got);
        if (memcmp(want, got, sizeof want) != 0)
            fail_msg("%s, %u layers: other logits at token %zu", spec->architecture, gpu_layers, at);
    }
    assert_string_equal(model_get_info(p.cuda)->backend, "cuda");
    model_dense_free(a);
    model_dense_free(b);
    close_pair(&p);
    assert_int_equal(emu_get_counts().allocated, 0);
}

static void test_cuda__multiplies_with_what_stays_on_the_host(void **state)
{
    check_left(&TINY_GGUF_QWEN2, 1, false); /* its biases and residuals are added on the device */
    check_left(&TINY_GGUF_QWEN3MOE, 0, true);
    check_left(&TINY_GGUF_QWEN3MOE, 2, true);
    check_left(&TINY_GGUF_GPT_OSS, 0, true); /* experts with biases */
    check_left(&TINY_GGUF_GPT_OSS, 3, false);
}

/* ---- cuda:bf16 ---- */

/* Of the probabilities, against those of exact logits. */
static double divergence(const float *want, const float *got)
{
    const float *x[2] = {want, got};
    double most[2] = {-INFINITY, -INFINITY}, sum[2] = {0}, kl = 0;
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < N_VOCAB; i++) most[side] = fmax(most[side], x[side][i]);
        for (int i = 0; i < N_VOCAB; i++) sum[side] += exp(x[side][i] - most[side]);
    }
    for (int i = 0; i < N_VOCAB; i++) {
        const double p = exp(want[i] - most[0]) / sum[0];
        kl += p * ((want[i] - most[0] - log(sum[0])) - (got[i] - most[1] - log(sum[1])));
    }
    return kl;
}

/* A prompt that cuBLAS takes (64 tokens and more), one that it does not, then a token: near the CPU's, and the same bits again. */
static void check_bf16(const tiny_gguf *spec)
{
    static const uint32_t steps[] = {72, 40, 1};
    char *path = tiny_gguf_temp(spec);
    model *models[] = {open_on(path, "cpu"), open_on(path, "cuda:bf16"), open_on(path, "cuda:bf16")};
    model_dense *caches[3];
    float logits[3][N_VOCAB];
    int32_t ids[N_TOKENS];
    uint64_t state = 5;
    for (int i = 0; i < N_TOKENS; i++) ids[i] = (int32_t)((tiny_random(&state) + 1) / 2 * 250);
    for (int i = 0; i < 3; i++) caches[i] = dense(models[i]);
    for (uint32_t i = 0, at = 0; i < sizeof steps / sizeof *steps; at += steps[i++]) {
        for (int k = 0; k < 3; k++) compute(caches[k], models[k], ids + at, steps[i], logits[k]);
        const double kl = divergence(logits[0], logits[1]);
        if (!(kl < 2e-3)) fail_msg("%s: divergence %g at token %u", spec->architecture, kl, at);
        assert_memory_not_equal(logits[0], logits[1], sizeof logits[0]);
        assert_memory_equal(logits[1], logits[2], sizeof logits[1]);
    }
    assert_int_not_equal(
        model_get_info(models[0])->kernel_version, model_get_info(models[1])->kernel_version);
    for (int i = 0; i < 3; i++) {
        model_dense_free(caches[i]);
        model_close(models[i]);
    }
    assert_int_equal(emu_get_counts().allocated, 0);
    unlink(path);
    free(path);
}

static void test_cuda__bf16_is_near_and_repeats(void **state)
{
    tiny_gguf specs[] = {
        TINY_GGUF_QWEN2, TINY_GGUF_LLAMA, TINY_GGUF_GEMMA3, TINY_GGUF_QWEN3MOE, TINY_GGUF_GPT_OSS};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) check_bf16(&specs[i]);
    tiny_gguf quantised = TINY_GGUF_QWEN2;
    quantised.type = TINY_Q8_0;
    check_bf16(&quantised);
}

/* Plans as bytes, one after another. */
static void collect_plan(void *user, const kv_plan *plan)
{
    kv_plan_pack(plan, user);
}

typedef struct run {
    base_buf plans;
    float logits[N_VOCAB];
    uint64_t active[64][(N_SESSION + 63) / 64]; /* by lane */
    uint32_t n_lanes;
    kv_visits visits;
} run;

/* A session over its budget: eviction, a repair by a question, tokens behind it (which kvist lets evicted rows visit). */
static run run_session(model *m, const char *policy, const int32_t *ids)
{
    static run r; /* large */
    kv_session *s = NULL;
    base_err err = {0};
    kv_stats stats;
    const kv_options options = {.budget = 600, .policy = policy, .repair = 24, .n_ctx = 1024};
    const kv_segment context = {.origin = KV_ORIGIN_CONTEXT},
                     question = {.origin = KV_ORIGIN_USER, .turn = 1};
    memset(&r, 0, sizeof r);
    const kv_observer observer = {.user = &r.plans, .plan = collect_plan};
    if (kv_session_new(&s, m, &options, &observer, &err)) fail_msg("%s", err.msg);
    if (kv_session_append(s, &context, ids, 800, NULL, NULL, &err)) fail_msg("%s", err.msg);
    if (kv_session_append(s, &question, ids + 800, 20, NULL, NULL, &err)) fail_msg("%s", err.msg);
    if (kv_session_evict(s, &err)) fail_msg("%s", err.msg);
    if (kv_session_repair(s, &(kv_ask){800, 820}, NULL, &err)) fail_msg("%s", err.msg);
    for (int i = 0; i < 4; i++)
        if (kv_session_append(s, &question, ids + 820 + i, 1, r.logits, NULL, &err)) fail_msg("%s", err.msg);
    kv_session_get_stats(s, &stats);
    kv_session_take_visits(s, &r.visits, NULL);
    r.n_lanes = stats.n_lanes;
    for (uint32_t lane = 0; lane < stats.n_lanes; lane++) kv_session_lane_bits(s, lane, r.active[lane]);
    kv_session_free(s);
    return r;
}

static void test_cuda__decides_what_the_cpu_decides(void **state)
{
    static const char *const policies[] = {"snapkv", "kvist"};
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    pair p = open_pair(&spec);
    for (int i = 0; i < 2; i++) {
        run a = run_session(p.cpu, policies[i], p.ids), b = run_session(p.cuda, policies[i], p.ids);
        assert_true(a.plans.len > 0);
        assert_int_equal(a.plans.len, b.plans.len);
        assert_memory_equal(a.plans.data, b.plans.data, a.plans.len);
        assert_memory_equal(a.active, b.active, sizeof a.active);
        assert_memory_equal(a.logits, b.logits, sizeof a.logits);
        assert_true(i ? a.visits.rows > 0 : a.visits.rows == 0);
        assert_true(a.visits.rows == b.visits.rows);
        base_buf_free(&a.plans);
        base_buf_free(&b.plans);
    }
    close_pair(&p);
}

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
static void test_cuda__rows_that_return_are_what_they_were(void **state)
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
static void test_cuda__little_memory_changes_no_bits(void **state)
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
    emu_set_memory(memory);
    assert_true(emu_get_counts().allocated > before);
    for (int which = 0; which < 2; which++) {
        model_dense_free(a[which]);
        model_dense_free(b[which]);
    }
    close_pair(&p);
}

/* More sequences than the pool had places for: while memory is plenty, those that nobody reads now stay where they are. */
static void test_cuda__keeps_rows_while_there_is_memory(void **state)
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

static void test_cuda__brings_rows_from_where_they_lie(void **state)
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

static void test_cuda__decodes_by_one_graph_while_the_context_grows(void **state)
{
    /* The patches of lists, angles, embedding, first and last norm, head stand alone (fuse.c). */
    check_graph(&TINY_GGUF_QWEN2, 6, 6);
    /*
     * A mixture: norm, QKV, two norms of heads, two turns, rows; attention, merge; output; norm, scores, choice,
     * quantise, sort, gate and up, gate, down, sum.
     */
    check_graph(&TINY_GGUF_QWEN3MOE, 19, 5);
}

/* ---- no device ---- */

static void expect_refusal_of(const tiny_gguf *spec, const char *backend, int code, const char *words)
{
    char *path = tiny_gguf_temp(spec);
    base_err err = {0};
    model *m = NULL;
    assert_int_equal(model_open(&m, path, &(model_options){.n_threads = 1, .backend = backend}, &err), code);
    if (!strstr(err.msg, words)) fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
    unlink(path);
    free(path);
}

static void expect_refusal(const char *backend, int code, const char *words)
{
    expect_refusal_of(&TINY_GGUF_QWEN2, backend, code, words);
}

static char heard[600];

static void hear(void *user, const char *sentence)
{
    snprintf(heard, sizeof heard, "%s", sentence);
}

/* auto computes on the CPU, and says why unless there is simply no device. */
static void expect_cpu_for(const tiny_gguf *spec, const char *words)
{
    char *path = tiny_gguf_temp(spec);
    base_err err = {0};
    model *m = NULL;
    heard[0] = 0;
    if (model_open(&m, path, &(model_options){.n_threads = 1, .notice = hear}, &err)) fail_msg("%s", err.msg);
    assert_string_equal(model_get_info(m)->backend, "cpu");
    if (words && !strstr(heard, words)) fail_msg("\"%s\" does not say \"%s\"", heard, words);
    if (!words) assert_string_equal(heard, "");
    model_close(m);
    unlink(path);
    free(path);
}

static void expect_cpu(const char *words)
{
    expect_cpu_for(&TINY_GGUF_QWEN2, words);
}

static void test_cuda__leaves_models_to_the_cpu(void **state)
{
    expect_refusal_of(&TINY_GGUF_GEMMA4, "cuda", BASE_E_UNSUPPORTED, "use --backend cpu");
    expect_cpu_for(&TINY_GGUF_GEMMA4, "two sizes");
    assert_int_equal(emu_get_counts().allocated, 0);
}

static void test_cuda__without_a_device_says_so(void **state)
{
    emu_set_devices(cudaErrorNoDevice, 0);
    expect_refusal("cuda", BASE_E_NOT_FOUND, "sees no GPU");
    expect_cpu(NULL);
    emu_set_devices(cudaErrorInsufficientDriver, 0);
    expect_refusal("cuda", BASE_E_DEVICE, "too old: it knows CUDA 11.2 and this build needs 13.0");
    expect_cpu("too old");
    emu_set_devices(cudaSuccess, 1);
    emu_set_compute(7, 5);
    expect_refusal("cuda", BASE_E_DEVICE, "compute capability 7.5 and kvist needs 8.0");
    emu_set_compute(9, 0);
}

static void test_cuda__bf16_without_cublas_says_so(void **state)
{
    char *library = base_xstrdup(getenv("KVIST_CUBLAS"));
    setenv("KVIST_CUBLAS", "/nowhere/libcublas.so", 1);
    expect_refusal("cuda:bf16", BASE_E_DEVICE, "/nowhere/libcublas.so is not found");
    setenv("KVIST_CUBLAS", library, 1);
    emu_set_memory((size_t)230 << 20);
    expect_refusal("cuda:bf16", BASE_E_NOMEM, "GB are left");
    assert_int_equal(emu_get_counts().allocated, 0);
    expect_refusal("cuda:bf17", BASE_E_USAGE, "cuda:bf16");
    free(library);
}

static void test_cuda__too_little_memory_is_refused_with_numbers(void **state)
{
    emu_set_memory((size_t)400 << 20);
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    char *path = tiny_gguf_temp(&spec);
    base_err err = {0};
    model *m = NULL;
    const model_options options = {.n_threads = 1, .backend = "cuda", .gpu_bytes = (uint64_t)1 << 30};
    assert_int_equal(model_open(&m, path, &options, &err), BASE_E_NOMEM);
    assert_non_null(strstr(err.msg, "--gpu-mem asks for 1.07 GB and 0.42 GB"));
    const model_options little = {.n_threads = 1, .backend = "cuda", .gpu_bytes = (uint64_t)195 << 20};
    assert_int_equal(model_open(&m, path, &little, &err), BASE_E_NOMEM);
    if (!strstr(err.msg, "GB are left")) fail_msg("%s", err.msg);
    emu_set_memory(memory);
    assert_int_equal(emu_get_counts().allocated, 0);
    unlink(path);
    free(path);
}

/* Lost at any launch: the batch is computed all the same, with the bits that were due, and so is what follows. */
static void test_cuda__a_lost_device_costs_no_token(void **state)
{
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    static const int launches[] = {0, 3, 17, 40};
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        pair p = open_pair(&spec);
        model_dense *a = dense(p.cpu), *b = dense(p.cuda);
        float want[N_VOCAB], got[N_VOCAB];
        compute(a, p.cpu, p.ids, 60, want);
        compute(b, p.cuda, p.ids, 60, got);
        emu_fail_in(launches[i]);
        for (int t = 60; t < 64; t++) {
            compute(a, p.cpu, p.ids + t, 1, want);
            compute(b, p.cuda, p.ids + t, 1, got);
            assert_memory_equal(want, got, sizeof want);
        }
        assert_string_equal(model_get_info(p.cuda)->backend, "cpu");
        assert_non_null(strstr(model_get_info(p.cuda)->notice, "stopped answering"));
        model_dense_free(a);
        model_dense_free(b);
        close_pair(&p);
        emu_fail_in(-1);
    }
}

/* Whatever a test left behind, the next one finds the machine as it was. */
static int reset_machine(void **state)
{
    emu_set_memory(memory);
    emu_set_devices(cudaSuccess, 1);
    emu_set_compute(9, 0);
    emu_set_pins(-1);
    emu_fail_in(-1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_cuda__gives_the_cpus_logits, reset_machine),
        cmocka_unit_test_setup(test_cuda__keeps_the_cpus_states, reset_machine),
        cmocka_unit_test_setup(test_cuda__multiplies_with_what_stays_on_the_host, reset_machine),
        cmocka_unit_test_setup(test_cuda__bf16_is_near_and_repeats, reset_machine),
        cmocka_unit_test_setup(test_cuda__decides_what_the_cpu_decides, reset_machine),
        cmocka_unit_test_setup(test_cuda__rows_that_return_are_what_they_were, reset_machine),
        cmocka_unit_test_setup(test_cuda__little_memory_changes_no_bits, reset_machine),
        cmocka_unit_test_setup(test_cuda__keeps_rows_while_there_is_memory, reset_machine),
        cmocka_unit_test_setup(test_cuda__brings_rows_from_where_they_lie, reset_machine),
        cmocka_unit_test_setup(test_cuda__decodes_by_one_graph_while_the_context_grows, reset_machine),
        cmocka_unit_test_setup(test_cuda__leaves_models_to_the_cpu, reset_machine),
        cmocka_unit_test_setup(test_cuda__without_a_device_says_so, reset_machine),
        cmocka_unit_test_setup(test_cuda__bf16_without_cublas_says_so, reset_machine),
        cmocka_unit_test_setup(test_cuda__too_little_memory_is_refused_with_numbers, reset_machine),
        cmocka_unit_test_setup(test_cuda__a_lost_device_costs_no_token, reset_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
