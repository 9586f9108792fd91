/* The CUDA backend on the emulated device gives the CPU's bits, in whole models and in sessions; with BF16 it comes near. */
#include "device_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "kv/session.h"
#include "model/ops/ops.h"

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

static void test_bits__gives_the_cpus_logits(void **state)
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

static void test_bits__keeps_the_cpus_states(void **state)
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

static void test_bits__multiplies_with_what_stays_on_the_host(void **state)
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

static void test_bits__bf16_is_near_and_repeats(void **state)
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

static void test_bits__decides_what_the_cpu_decides(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_bits__gives_the_cpus_logits, reset_machine),
        cmocka_unit_test_setup(test_bits__keeps_the_cpus_states, reset_machine),
        cmocka_unit_test_setup(test_bits__multiplies_with_what_stays_on_the_host, reset_machine),
        cmocka_unit_test_setup(test_bits__bf16_is_near_and_repeats, reset_machine),
        cmocka_unit_test_setup(test_bits__decides_what_the_cpu_decides, reset_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
