/*
 * Every architecture, on little random models, against the oracle (oracle.h): head sizes, norms, RoPE bases
 * and factors, windows, tied and untied heads, odd numbers of layers, quantised matrices. What an
 * architecture does otherwise than its neighbour must show: the oracle with one thing changed has to be far
 * away. And what holds to the bit for all of them.
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

#include "base/mem.h"
#include "model/file/quant.h"
#include "little.h"
#include "oracle.h"

/* clang-format off */
static const tiny_gguf specs[] = {
    /* Qwen3: heads of 64 though n_embd / n_head is 32. */
    {.architecture = "qwen3", .n_layer = 3, .n_embd = 128, .n_ff = 192, .n_head = 4, .n_head_kv = 2, .head_dim = 64,
        .n_ctx = 4096, .seed = 11, .rope_base = 1e6f, .tied = true},
    {.architecture = "qwen3", .n_layer = 1, .n_embd = 192, .n_ff = 96, .n_head = 4, .n_head_kv = 4, .head_dim = 80,
        .n_ctx = 4096, .seed = 12, .rope_base = 1e6f},
    /* Llama 3.x: RoPE stretched pair by pair, heads tied and not. */
    {.architecture = "llama", .n_layer = 3, .n_embd = 128, .n_ff = 224, .n_head = 4, .n_head_kv = 1,
        .n_ctx = 4096, .seed = 13, .rope_base = 5e5f, .rope_freqs = true, .tied = true},
    {.architecture = "llama", .n_layer = 2, .n_embd = 160, .n_ff = 224, .n_head = 5, .n_head_kv = 5,
        .n_ctx = 4096, .seed = 14, .rope_base = 5e5f, .rope_freqs = true},
    {.architecture = "llama", .n_layer = 2, .n_embd = 128, .n_ff = 96, .n_head = 2, .n_head_kv = 1, .head_dim = 32,
        .n_ctx = 4096, .seed = 15, .rope_factor = 4},
    {.architecture = "qwen2", .n_layer = 3, .n_embd = 128, .n_ff = 96, .n_head = 2, .n_head_kv = 1,
        .n_ctx = 4096, .seed = 16, .tied = true},
    /* Gemma 3: seven layers are five with a window, one without, one with. */
    {.architecture = "gemma3", .n_layer = 7, .n_embd = 96, .n_ff = 160, .n_head = 4, .n_head_kv = 1, .head_dim = 48,
        .n_ctx = 4096, .seed = 17, .rope_base = 1e6f, .tied = true, .window = 100},
    {.architecture = "gemma3", .n_layer = 6, .n_embd = 96, .n_ff = 160, .n_head = 2, .n_head_kv = 2, .head_dim = 64,
        .n_ctx = 4096, .seed = 18, .rope_base = 1e6f, .rope_factor = 8, .tied = true, .window = 1},
    {.architecture = "gemma3", .n_layer = 2, .n_embd = 96, .n_ff = 160, .n_head = 2, .n_head_kv = 1,
        .n_ctx = 4096, .seed = 19, .rope_base = 1e6f, .window = 512},
    /* The same arithmetic on quantised matrices. */
    {.architecture = "qwen3", .n_layer = 2, .n_embd = 256, .n_ff = 512, .n_head = 4, .n_head_kv = 2, .head_dim = 128,
        .n_ctx = 4096, .seed = 20, .type = TINY_Q4_K},
    {.architecture = "llama", .n_layer = 2, .n_embd = 128, .n_ff = 96, .n_head = 2, .n_head_kv = 1,
        .n_ctx = 4096, .seed = 21, .rope_freqs = true, .type = TINY_Q8_0},
    {.architecture = "gemma3", .n_layer = 7, .n_embd = 256, .n_ff = 256, .n_head = 2, .n_head_kv = 1, .head_dim = 128,
        .n_ctx = 4096, .seed = 22, .rope_base = 1e6f, .tied = true, .type = TINY_Q4_K, .window = 256},
    /* Mixtures: four layers that rank twelve experts, and one that takes all it has. */
    {.architecture = "qwen3moe", .n_layer = 4, .n_embd = 128, .n_ff = 96, .n_head = 4, .n_head_kv = 2, .head_dim = 32,
        .n_ctx = 4096, .seed = 4, .rope_base = 1e6f, .n_experts = 12, .n_experts_used = 3},
    {.architecture = "qwen3moe", .n_layer = 1, .n_embd = 96, .n_ff = 32, .n_head = 2, .n_head_kv = 1, .head_dim = 48,
        .n_ctx = 4096, .seed = 24, .rope_base = 1e6f, .n_experts = 3, .n_experts_used = 3, .tied = true},
    {.architecture = "qwen3moe", .n_layer = 2, .n_embd = 256, .n_ff = 256, .n_head = 2, .n_head_kv = 1, .head_dim = 128,
        .n_ctx = 4096, .seed = 25, .rope_base = 1e6f, .type = TINY_Q4_K, .n_experts = 8, .n_experts_used = 2},
    /* Rows of 5 blocks and of 3: no whole super-block of MXFP4. */
    {.architecture = "qwen3moe", .n_layer = 2, .n_embd = 160, .n_ff = 96, .n_head = 2, .n_head_kv = 1, .head_dim = 64,
        .n_ctx = 4096, .seed = 26, .rope_base = 1e6f, .type = TINY_MXFP4, .n_experts = 8, .n_experts_used = 2},
    /* YaRN: keys and queries that grow (Qwen3), and Mistral 3, where they do not and late queries do. */
    {.architecture = "qwen3", .n_layer = 2, .n_embd = 128, .n_ff = 96, .n_head = 2, .n_head_kv = 1, .head_dim = 64,
        .n_ctx = 4096, .seed = 27, .rope_base = 1e4f, .rope_factor = 4, .yarn_trained = 1024},
    {.architecture = "mistral3", .n_layer = 2, .n_embd = 160, .n_ff = 96, .n_head = 4, .n_head_kv = 2, .head_dim = 32,
        .n_ctx = 4096, .seed = 28, .rope_base = 1e4f, .rope_factor = 16, .yarn_trained = 128, .yarn_less = 1, .q_scale = 0.5f},
    /* Layers that keep a state: four beside two with rows; with fewer heads of keys; as mixtures. */
    {.architecture = "qwen35", .n_layer = 6, .n_embd = 128, .n_ff = 160, .n_head = 4, .n_head_kv = 2, .head_dim = 64,
        .n_rot = 16, .rows_every = 3, .n_state_keys = 2, .n_state_values = 2, .state_dim = 64, .n_ctx = 4096, .seed = 29,
        .rope_base = 1e7f, .tied = true},
    {.architecture = "qwen35", .n_layer = 4, .n_embd = 96, .n_ff = 96, .n_head = 2, .n_head_kv = 1, .head_dim = 64,
        .n_rot = 32, .rows_every = 2, .n_state_keys = 2, .n_state_values = 6, .state_dim = 32, .n_ctx = 4096, .seed = 30,
        .rope_base = 1e6f, .ahead = true},
    {.architecture = "qwen35", .n_layer = 4, .n_embd = 256, .n_ff = 512, .n_head = 2, .n_head_kv = 1, .head_dim = 128,
        .n_rot = 32, .rows_every = 4, .n_state_keys = 1, .n_state_values = 2, .state_dim = 128, .n_ctx = 4096, .seed = 31,
        .rope_base = 1e6f, .type = TINY_Q4_K},
    {.architecture = "qwen3next", .n_layer = 4, .n_embd = 128, .n_ff = 96, .n_head = 4, .n_head_kv = 2, .head_dim = 32,
        .n_rot = 8, .rows_every = 2, .n_state_keys = 2, .n_state_values = 6, .state_dim = 32, .n_ctx = 4096, .seed = 33,
        .rope_base = 1e6f, .n_experts = 4, .n_experts_used = 3, .n_ff_shared = 64},
    {.architecture = "qwen35moe", .n_layer = 4, .n_embd = 128, .n_ff = 96, .n_head = 4, .n_head_kv = 2, .head_dim = 32,
        .n_rot = 8, .rows_every = 2, .n_state_keys = 2, .n_state_values = 4, .state_dim = 32, .n_ctx = 4096, .seed = 32,
        .rope_base = 1e6f, .n_experts = 4, .n_experts_used = 3, .n_ff_shared = 64, .ahead = true},
    /* gpt-oss: sinks, every other layer with a window, biases everywhere, YaRN in all layers; as its files have it, too. */
    {.architecture = "gpt-oss", .n_layer = 4, .n_embd = 160, .n_ff = 96, .n_head = 8, .n_head_kv = 2, .head_dim = 32,
        .n_ctx = 4096, .seed = 34, .rope_base = 1.5e5f, .rope_factor = 32, .yarn_trained = 128, .window = 60,
        .n_experts = 6, .n_experts_used = 2},
    {.architecture = "gpt-oss", .n_layer = 2, .n_embd = 96, .n_ff = 160, .n_head = 2, .n_head_kv = 1, .head_dim = 64,
        .n_ctx = 4096, .seed = 35, .rope_base = 1.5e5f, .rope_factor = 32, .yarn_trained = 4096, .type = TINY_MXFP4,
        .window = 128, .n_experts = 4, .n_experts_used = 4},
    /* Minima for each 16 quants; one row of blocks, and two. */
    {.architecture = "qwen3", .n_layer = 2, .n_embd = 256, .n_ff = 512, .n_head = 4, .n_head_kv = 2, .head_dim = 64,
        .n_ctx = 4096, .seed = 36, .rope_base = 1e6f, .type = TINY_Q2_K},
    {.architecture = "qwen3moe", .n_layer = 2, .n_embd = 256, .n_ff = 256, .n_head = 4, .n_head_kv = 1, .head_dim = 64,
        .n_ctx = 4096, .seed = 37, .rope_base = 1e6f, .type = TINY_Q2_K, .n_experts = 8, .n_experts_used = 2},
    /* gemma4: small heads side by side in lanes and heads copied (31B), experts (26B), small heads alone and shared rows (E4B). */
    {.architecture = "gemma4", .n_layer = 6, .n_embd = 128, .n_ff = 160, .n_head = 8, .n_head_kv = 4, .n_head_kv_all = 1,
        .head_dim = 64, .window_head_dim = 32, .window_every = 3, .n_ctx = 4096, .seed = 41, .tied = true, .rope_base = 1e6f,
        .window = 60, .without_values = true},
    {.architecture = "gemma4", .n_layer = 4, .n_embd = 160, .n_ff = 96, .n_head = 8, .n_head_kv = 8, .n_head_kv_all = 2,
        .head_dim = 64, .window_head_dim = 32, .window_every = 2, .n_ctx = 4096, .seed = 42, .tied = true, .rope_base = 1e6f,
        .window = 90, .without_values = true, .fused = true, .n_experts = 6, .n_experts_used = 2, .n_ff_shared = 64},
    {.architecture = "gemma4", .n_layer = 6, .n_embd = 128, .n_ff = 96, .n_head = 4, .n_head_kv = 2, .n_head_kv_all = 2,
        .head_dim = 64, .window_head_dim = 32, .window_every = 2, .n_ctx = 4096, .seed = 43, .tied = true, .rope_base = 1e6f,
        .window = 60, .n_sharing = 2, .n_embd_layer = 32},
    /* Granite: scales as its 3.3 and 4 have them, heads tied and not. */
    {.architecture = "granite", .n_layer = 6, .n_embd = 128, .n_ff = 160, .n_head = 4, .n_head_kv = 2, .n_ctx = 4096,
        .seed = 44, .rope_base = 1e7f, .tied = true, .embd_scale = 12, .branch_scale = 0.22f, .attn_scale = 0.015625f,
        .logit_scale = 8},
    {.architecture = "granite", .n_layer = 4, .n_embd = 256, .n_ff = 512, .n_head = 4, .n_head_kv = 1, .n_ctx = 4096,
        .seed = 45, .rope_base = 1e7f, .embd_scale = 12, .branch_scale = 0.263f, .attn_scale = 0.0078125f, .logit_scale = 10,
        .type = TINY_Q4_K},
    /* phi3: matrices in one, as Phi-4-mini (a part of a head is turned, and grows) and in its trained context, and as Phi-4. */
    {.architecture = "phi3", .n_layer = 4, .n_embd = 128, .n_ff = 160, .n_head = 4, .n_head_kv = 2, .n_rot = 24, .n_ctx = 4096,
        .seed = 46, .tied = true, .long_trained = 1024, .rope_growth = 1.19f},
    {.architecture = "phi3", .n_layer = 2, .n_embd = 192, .n_ff = 96, .n_head = 3, .n_head_kv = 3, .n_ctx = 4096,
        .seed = 47, .long_trained = 4096, .rope_growth = 1.5f, .type = TINY_Q8_0},
    {.architecture = "phi3", .n_layer = 2, .n_embd = 256, .n_ff = 512, .n_head = 4, .n_head_kv = 1, .n_ctx = 4096,
        .seed = 48, .rope_base = 250000, .type = TINY_Q4_K},
    /* seed_oss: heads wider than n_embd says, biases, and the norm before its feed-forward by another name. */
    {.architecture = "seed_oss", .n_layer = 4, .n_embd = 128, .n_ff = 160, .n_head = 5, .n_head_kv = 1, .head_dim = 32,
        .n_ctx = 4096, .seed = 56, .rope_base = 1e7f},
    {.architecture = "seed_oss", .n_layer = 2, .n_embd = 256, .n_ff = 512, .n_head = 4, .n_head_kv = 1, .head_dim = 64,
        .n_ctx = 4096, .seed = 57, .rope_base = 1e7f, .type = TINY_Q4_K},
    /* smollm3: every fourth layer turns nothing; stretched by YaRN, which grows what is turned alone; as its files have it. */
    {.architecture = "smollm3", .n_layer = 8, .n_embd = 128, .n_ff = 160, .n_head = 4, .n_head_kv = 1, .n_ctx = 4096,
        .seed = 51, .tied = true, .rope_base = 5e6f, .unturned_every = 4},
    {.architecture = "smollm3", .n_layer = 4, .n_embd = 128, .n_ff = 96, .n_head = 2, .n_head_kv = 1, .n_ctx = 4096,
        .seed = 52, .rope_base = 1e4f, .rope_factor = 4, .yarn_trained = 1024, .unturned_every = 4},
    {.architecture = "smollm3", .n_layer = 4, .n_embd = 256, .n_ff = 512, .n_head = 4, .n_head_kv = 1, .n_ctx = 4096,
        .seed = 53, .tied = true, .rope_base = 5e6f, .unturned_every = 4, .type = TINY_Q8_0},
};
/* clang-format on */
enum {
    N_SPECS = sizeof specs / sizeof *specs,
    MIXTURE = 12,
    YARN = 16,
    MISTRAL,
    FEWER_KEYS = 19,
    HYBRID_MIXTURE = 22,
    OSS,
    GEMMA4 = 27,
    GEMMA4_MIXTURE,
    GEMMA4_SHARING,
    GRANITE,
    PHI3 = 32,
    SMOLLM3 = 37,
    SMOLLM3_YARN
};

static void truth_of(const little *l, const tiny_gguf *spec, uint32_t n, float *logits, float *margins)
{
    oracle_run(&(oracle){.spec = spec,
        .file = l->file,
        .n = n,
        .ids = l->ids,
        .phases = l->phases,
        .logits = logits,
        .margins = margins});
}

/*
 * Which experts a token goes to hangs on numbers that may lie closer together than 8-bit activations tell
 * apart; then the oracle takes another one. Such tokens are left out, when they are few.
 */
static uint32_t keep_clear_choices(const float *margins, float *ours, float *truth)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < N; t++) {
        if (!(margins[t] > 0.08f)) continue;
        memmove(ours + (size_t)n * V, ours + (size_t)t * V, V * sizeof *ours);
        memmove(truth + (size_t)n++ * V, truth + (size_t)t * V, V * sizeof *truth);
    }
    return n;
}

static void test_architectures__agree_with_the_oracle(void **state)
{
    for (size_t k = 0; k < N_SPECS; k++) {
        little l = little_open(&specs[k]);
        float *ours = base_xcalloc((size_t)N * V, sizeof *ours),
              *truth = base_xcalloc((size_t)N * V, sizeof *truth), margins[N] = {0};
        little_compute(l.m, &l.shape, l.ids, N, N, ours);
        truth_of(&l, &specs[k], N, truth, margins);
        uint32_t n = specs[k].n_experts ? keep_clear_choices(margins, ours, truth) : N;
        assert_in_range(n, N / 2, N);
        double all = little_difference(ours, truth, (size_t)n * V);
        double last = little_difference(ours + (size_t)(n - 1) * V, truth + (size_t)(n - 1) * V, V);
        if (!(all <= little_tolerance) || !(last <= 2 * little_tolerance))
            fail_msg("%s, seed %llu: %.4f away, %.4f at the last token", specs[k].architecture,
                (unsigned long long)specs[k].seed, all, last);
        free(ours);
        free(truth);
        little_close(&l);
    }
}

/*
 * One thing of a specification changed: the oracle's numbers must be far from ours, measured by the right
 * ones.
 */
typedef struct comparison {
    const tiny_gguf *spec;
    little l;
    float *ours, *truth, *wrong;
    double right;
} comparison;

enum { SOME = 300, SOME_LOGITS = SOME * V };

static comparison compare_with(const tiny_gguf *spec)
{
    comparison c = {.spec = spec, .l = little_open(spec)};
    float **all[] = {&c.ours, &c.truth, &c.wrong};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] = base_xcalloc(SOME_LOGITS, sizeof(float));
    little_compute(c.l.m, &c.l.shape, c.l.ids, SOME, SOME, c.ours);
    truth_of(&c.l, spec, SOME, c.truth, NULL);
    c.right = little_difference(c.ours, c.truth, SOME_LOGITS);
    return c;
}

static void compare_end(comparison *c)
{
    free(c->ours);
    free(c->truth);
    free(c->wrong);
    little_close(&c->l);
}

/* A field of a specification and what it is changed to. Those of one specification stand side by side: it is computed once. */
typedef struct change {
    int spec;
    const char *name;
    size_t at, size;
    const void *value;
} change;

#define FIELD(field) ((tiny_gguf *)0)->field
/* clang-format off */
#define CHANGE(spec, field, to) \
    {spec, #field, offsetof(tiny_gguf, field), sizeof(FIELD(field)), &(const __typeof__(FIELD(field))){to}}
/* clang-format on */
static const change changes[] = {
    CHANGE(0, architecture, "llama"), /* the other pairing; norms are there as the file has them */
    CHANGE(4, rope_factor, 0),
    CHANGE(6, window, 0),
    CHANGE(6, window, 90),
    CHANGE(6, architecture, "qwen3"), /* no scaled embedding, silu, one base, no window */
    CHANGE(6, rope_base, 10000),      /* the layers without a window */
    CHANGE(MIXTURE, n_experts_used, 2),
    CHANGE(MIXTURE, n_experts, 8), /* the last four are never chosen */
    CHANGE(YARN, yarn_trained, 0), /* stretched as a whole */
    CHANGE(MISTRAL, q_scale, 0),
    CHANGE(MISTRAL, yarn_less, 0), /* grown keys and queries */
    CHANGE(FEWER_KEYS, n_rot, 0),  /* all of a head is turned */
    CHANGE(HYBRID_MIXTURE, n_ff_shared, 0),
    CHANGE(GEMMA4, window, 90),
    CHANGE(GEMMA4, without_cap, true),
    CHANGE(GEMMA4, without_scales, true), /* of a layer's output */
    CHANGE(GEMMA4, rope_base, 10000),
    CHANGE(GEMMA4_MIXTURE, n_experts_used, 1),
    CHANGE(GRANITE, embd_scale, 1),
    CHANGE(GRANITE, branch_scale, 0),
    CHANGE(GRANITE, attn_scale, 0),
    CHANGE(GRANITE, logit_scale, 0),
    CHANGE(PHI3, rope_growth, 1),
    CHANGE(PHI3, long_trained, 4096), /* the other divisors */
    CHANGE(PHI3, n_rot, 16),
    CHANGE(SMOLLM3, unturned_every, 0),
    CHANGE(SMOLLM3, unturned_every, 3),
    CHANGE(SMOLLM3_YARN, unturned_every, 0),
    CHANGE(SMOLLM3_YARN, yarn_trained, 0),
    CHANGE(OSS, without_sinks, true),
    CHANGE(OSS, without_clamp, true),
    CHANGE(OSS, window, 0),
    CHANGE(OSS, yarn_trained, 0),
};

static void check_far(comparison *c, const change *to)
{
    tiny_gguf changed = *c->spec;
    memcpy((char *)&changed + to->at, to->value, to->size);
    truth_of(&c->l, &changed, SOME, c->wrong, NULL);
    const double far = little_difference(c->ours, c->wrong, SOME_LOGITS);
    if (!(far > 2.5 * c->right))
        fail_msg("%s, seed %llu, another %s: %.4f away from the truth, and only %.4f from something else",
            c->spec->architecture, (unsigned long long)c->spec->seed, to->name, c->right, far);
}

static void test_architectures__every_difference_counts(void **state)
{
    comparison c = compare_with(&specs[changes[0].spec]);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (c.spec != &specs[changes[i].spec]) {
            compare_end(&c);
            c = compare_with(&specs[changes[i].spec]);
        }
        check_far(&c, &changes[i]);
    }
    compare_end(&c);
}

static void test_architectures__batch_shapes_and_threads_give_the_same_bits(void **state)
{
    /* Tokens one by one cost most: the usual length takes sizes by turns, the full one each for the whole text. */
    static const uint32_t by_turns[] = {1, 7, 33}, one_then_many[] = {512, 1}, one[] = {1}, seven[] = {7},
                          many[] = {512}, some[] = {33};
    static const struct {
        const uint32_t *sizes;
        size_t n_sizes;
        bool is_long, is_alone;
    } passes[] = {{by_turns, 3, false, false}, {one_then_many, 2, false, true}, {one, 1, true, false},
        {seven, 1, true, true}, {many, 1, true, false}, {some, 1, true, true}};
    const bool is_long = getenv("KVIST_TEST_LONG") != NULL;
    size_t n = (size_t)N * V;
    float *whole = base_xcalloc(n, sizeof *whole), *pieces = base_xcalloc(n, sizeof *pieces);
    for (size_t k = 0; k < N_SPECS; k++) {
        little l = little_open(&specs[k]);
        model *alone = little_open_model(l.path, 1);
        little_compute(l.m, &l.shape, l.ids, N, N, whole);
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
            if (passes[i].is_long != is_long) continue;
            little_compute_by(passes[i].is_alone ? alone : l.m, &l.shape, l.ids, N, passes[i].sizes,
                passes[i].n_sizes, pieces);
            assert_memory_equal(whole, pieces, n * sizeof *whole);
        }
        model_close(alone);
        little_close(&l);
    }
    free(whole);
    free(pieces);
}

/* A row that leaves the window changes nothing: it may be garbage, or gone. */
static void test_architectures__a_window_layer_reads_nothing_behind_its_window(void **state)
{
    tiny_gguf spec = specs[6];
    spec.n_layer = 5; /* windows only */
    spec.window = 40;
    little l = little_open(&spec);
    enum { BEFORE = 400, AFTER = 9 };
    float whole[V], without[V];
    model_dense *d = little_dense(&l.shape, N);
    const model_rows_view *dense;
    uint32_t last = AFTER - 1;
    base_err err = {0};
    assert_int_equal(model_dense_compute(d, l.m, l.ids, BEFORE, 0, NULL, NULL, NULL), 0);
    assert_int_equal(model_dense_append(d, AFTER, &dense, NULL), 0);
    model_batch batch = {.ids = l.ids + BEFORE,
        .phases = l.phases + BEFORE,
        .n = AFTER,
        .rows = dense,
        .want = &last,
        .n_want = 1,
        .logits = whole};
    if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
    /* Rows before BEFORE - 39 are read by no token of this batch: what stands there must not matter. */
    for (uint32_t lane = 0; lane < model_rows_lanes(&l.shape); lane++)
        for (uint32_t row = 0; row < BEFORE - 39; row++)
            for (uint32_t i = 0; i < l.shape.head_dim; i++)
                model_rows_key(dense, lane, row)[i] = 0x3C00 + (uint16_t)(i * 7 + row);
    batch.logits = without;
    if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
    assert_memory_equal(whole, without, sizeof whole);
    model_dense_free(d);
    little_close(&l);
}

/*
 * Scoring reads what attention will: in a layer with a window only rows that are inside it at the sequence's
 * end.
 */
static void test_architectures__scores_of_a_window_layer_end_with_its_window(void **state)
{
    enum { ROWS = 300, END = 350 }; /* the lists end before the sequence does, as a repair's do */
    little l = little_open(&specs[6]);
    const tiny_gguf *spec = &specs[6];
    uint32_t head_dim = l.shape.head_dim, n_lanes = model_rows_lanes(&l.shape),
             n_heads = spec->n_layer * spec->n_head;
    float *queries = base_xcalloc((size_t)n_heads * 2 * head_dim, sizeof *queries), *mass[7];
    uint64_t seed = 3;
    model_dense *d = little_dense(&l.shape, ROWS);
    const model_rows_view *view;
    base_err err = {0};
    assert_int_equal(n_lanes, 7);
    for (size_t i = 0; i < (size_t)n_heads * 2 * head_dim; i++) queries[i] = tiny_random(&seed);
    for (uint32_t lane = 0; lane < n_lanes; lane++) mass[lane] = base_xcalloc(ROWS, sizeof **mass);
    assert_int_equal(model_dense_compute(d, l.m, l.ids, ROWS - 1, 0, NULL, NULL, NULL), 0);
    assert_int_equal(model_dense_append(d, 1, &view, NULL), 0);
    model_score score = {
        .queries = queries, .n_queries = 2, .rows = view, .pool = MODEL_POOL_MEAN, .mass = mass};
    for (int bounded = 0; bounded < 2; bounded++) {
        score.end = bounded ? END : 0;
        if (model_score_rows(l.m, &score, &err)) fail_msg("%s", err.msg);
        for (uint32_t lane = 0; lane < n_lanes; lane++) {
            double sum = 0;
            uint32_t from = bounded && lane != 5 ? END - spec->window : 0;
            for (uint32_t i = 0; i < ROWS; i++) {
                if (i < from) assert_true(mass[lane][i] == 0);
                if (i >= from && i + 1 < ROWS) assert_true(mass[lane][i] > 0);
                sum += mass[lane][i];
            }
            assert_true(fabs(sum - 1) < 1e-5);
        }
    }
    score.end = 10000; /* nothing is inside any more */
    if (model_score_rows(l.m, &score, &err)) fail_msg("%s", err.msg);
    for (uint32_t i = 0; i < ROWS; i++) assert_true(mass[0][i] == 0);
    for (uint32_t lane = 0; lane < n_lanes; lane++) free(mass[lane]);
    free(queries);
    model_dense_free(d);
    little_close(&l);
}

/* What a head gives its sink is nobody's: masses by the oracle's queries and keys, in F64. */
static void test_architectures__scores_leave_the_sinks_their_share(void **state)
{
    enum { ROWS = 200, ASKED = 3 };
    const tiny_gguf *spec = &specs[OSS];
    little l = little_open(spec);
    const uint32_t d = l.shape.head_dim, n_head = spec->n_head, n_kv = spec->n_head_kv,
                   n_layer = spec->n_layer, n_lanes = model_rows_lanes(&l.shape);
    float *all = base_xcalloc((size_t)n_layer * n_head * ROWS * d, sizeof *all),
          *keys = base_xcalloc((size_t)n_lanes * ROWS * d, sizeof *keys),
          *queries = base_xcalloc((size_t)n_layer * n_head * ASKED * d, sizeof *queries),
          *rest = base_xcalloc((size_t)n_layer * n_head * ASKED, sizeof *rest), *mass[8];
    model_dense *dense = little_dense(&l.shape, ROWS);
    const model_rows_view *view;
    base_err err = {0};
    assert_int_equal(n_lanes, 8);
    oracle_run(&(oracle){.spec = spec,
        .file = l.file,
        .n = ROWS,
        .ids = l.ids,
        .phases = l.phases,
        .queries = all,
        .keys = keys});
    for (size_t i = 0; i < (size_t)n_layer * n_head; i++)
        memcpy(queries + i * ASKED * d, all + (i * ROWS + ROWS - ASKED) * d, ASKED * d * sizeof *queries);
    /* Scores so small that sinks weigh something beside 200 rows. */
    for (size_t i = 0; i < (size_t)n_layer * n_head * ASKED * d; i++) queries[i] *= 0.1f;
    assert_int_equal(model_dense_append(dense, ROWS, &view, NULL), 0);
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        mass[lane] = base_xcalloc(ROWS, sizeof **mass);
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t i = 0; i < d; i++)
                model_rows_key(view, lane, row)[i] =
                    quant_f32_to_f16(keys[((size_t)lane * ROWS + row) * d + i]);
    }
    const double growth = 1 + 0.1 * log((double)spec->rope_factor), scale = growth * growth / sqrt(d);
    model_score score = {
        .queries = queries, .n_queries = ASKED, .rows = view, .pool = MODEL_POOL_MEAN, .mass = mass};
    double least = 1;
    for (int with_rest = 0; with_rest < 2; with_rest++) {
        for (size_t i = 0; i < (size_t)n_layer * n_head * ASKED; i++) rest[i] = i % 3 ? 1.5f : -INFINITY;
        score.rest = with_rest ? rest : NULL;
        if (model_score_rows(l.m, &score, &err)) fail_msg("%s", err.msg);
        for (uint32_t lane = 0; lane < n_lanes; lane++) {
            const uint32_t layer = lane / n_kv, group = n_head / n_kv;
            char name[64];
            double want[ROWS] = {0}, total = 0;
            snprintf(name, sizeof name, "blk.%u.attn_sinks.weight", layer);
            const float *sinks = (const float *)(const void *)gguf_find_tensor(l.file, name)->data;
            for (uint32_t g = 0; g < group * ASKED; g++) {
                const uint32_t head = lane % n_kv * group + g / ASKED;
                const size_t at = ((size_t)layer * n_head + head) * ASKED + g % ASKED;
                double p[ROWS], sum = exp(sinks[head]) + (with_rest ? exp(rest[at]) : 0);
                for (uint32_t row = 0; row < ROWS; row++) {
                    p[row] = 0;
                    for (uint32_t i = 0; i < d; i++)
                        p[row] += (double)queries[at * d + i] * keys[((size_t)lane * ROWS + row) * d + i];
                    sum += p[row] = exp(p[row] * scale);
                }
                for (uint32_t row = 0; row < ROWS; row++) want[row] += p[row] / sum / (group * ASKED);
            }
            for (uint32_t row = 0; row < ROWS; row++) {
                total += mass[lane][row];
                if (!(fabs(mass[lane][row] - want[row]) <= 1e-4 * want[row] + 1e-7))
                    fail_msg("lane %u, row %u: %g, not %g", lane, row, (double)mass[lane][row], want[row]);
            }
            assert_true(total > 0 && total < 1 + 1e-5);
            least = total < least ? total : least;
        }
    }
    if (!(least < 0.98))
        fail_msg("the sinks have %g of a lane at most", 1 - least); /* else nothing was seen */
    for (uint32_t lane = 0; lane < n_lanes; lane++) free(mass[lane]);
    free(all);
    free(keys);
    free(queries);
    free(rest);
    model_dense_free(dense);
    little_close(&l);
}

/* Lists with holes: a window counts places in the sequence, not rows that are left. */
static bool sparse(void *user, uint32_t lane, uint32_t t, uint32_t i)
{
    (void)user;
    (void)lane;
    return t < 300 || i >= 300 || i % 3 == 0;
}

static void test_architectures__a_window_counts_positions_not_rows(void **state)
{
    enum { BEFORE = 300, AFTER = 60 };
    little l = little_open(&specs[6]);
    float *truth = base_xcalloc((size_t)N * V, sizeof *truth), logits[2][V];
    uint32_t n_lanes = model_rows_lanes(&l.shape);
    model_run runs[AFTER + BEFORE];
    model_lane_list lanes[7];
    assert_int_equal(n_lanes, 7);
    for (int way = 0; way < 2; way++) {
        model_dense *d = little_dense(&l.shape, N);
        uint32_t step = way ? 7 : AFTER;
        assert_int_equal(model_dense_compute(d, l.m, l.ids, BEFORE, 0, NULL, NULL, NULL), 0);
        for (uint32_t at = 0; at < AFTER; at += step) {
            uint32_t n = AFTER - at < step ? AFTER - at : step, last = n - 1, n_rows = 0;
            const model_rows_view *dense;
            base_err err = {0};
            assert_int_equal(model_dense_append(d, n, &dense, NULL), 0);
            for (uint32_t i = 0; i < BEFORE + at + n; i++)
                if (i >= BEFORE || i % 3 == 0) runs[n_rows++] = (model_run){i, i, 1};
            for (uint32_t lane = 0; lane < n_lanes; lane++)
                lanes[lane] = (model_lane_list){runs, n_rows, n_rows};
            model_rows_view view = *dense;
            view.lanes = lanes;
            model_batch batch = {.ids = l.ids + BEFORE + at,
                .phases = l.phases + BEFORE + at,
                .n = n,
                .rows = &view,
                .want = &last,
                .n_want = 1,
                .logits = logits[way]};
            if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
        }
        model_dense_free(d);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    oracle_run(&(oracle){.spec = l.spec,
        .file = l.file,
        .n = BEFORE + AFTER,
        .ids = l.ids,
        .phases = l.phases,
        .mask = sparse,
        .logits = truth});
    assert_near(logits[0], truth + (size_t)(BEFORE + AFTER - 1) * V, V);
    free(truth);
    little_close(&l);
}

static void refuse(tiny_gguf spec, int code, const char *words, const char *more)
{
    char *path = tiny_gguf_temp(&spec);
    model *m = NULL;
    base_err err = {0};
    assert_int_equal(model_open(&m, path, &(model_options){.n_threads = 1}, &err), code);
    if (!strstr(err.msg, words) || !strstr(err.msg, more))
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", err.msg, words, more);
    unlink(path);
    free(path);
}

static void test_architectures__name_what_is_wrong(void **state)
{
    static const char *const spoilt[] = {"blk.1.attn_q.weight", "blk.0.ffn_down.weight",
        "blk.6.post_ffw_norm.weight", "blk.2.attn_k_norm.weight", "output_norm.weight", "token_embd.weight"};
    tiny_gguf spec = specs[6];
    for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
        spec.spoil = spoilt[i];
        refuse(spec, BASE_E_FORMAT, spoilt[i], "not finite");
    }
    spec = specs[3];
    spec.spoil = "rope_freqs.weight";
    refuse(spec, BASE_E_FORMAT, "rope_freqs.weight", "divides");
    spec.spoil = "token_embd.weight"; /* not the head: it is only read from */
    refuse(spec, BASE_E_FORMAT, "token_embd.weight", "not finite");
    spec = specs[9];
    spec.spoil = "blk.1.ffn_up.weight"; /* a scale of Q4_K */
    refuse(spec, BASE_E_FORMAT, "blk.1.ffn_up.weight", "not finite");
    spec = specs[0];
    spec.leave_out = "blk.2.attn_k_norm.weight";
    refuse(spec, BASE_E_FORMAT, "blk.2.attn_k_norm.weight", "missing");
    spec = specs[6];
    spec.leave_out = "blk.0.post_attention_norm.weight";
    refuse(spec, BASE_E_FORMAT, "blk.0.post_attention_norm.weight", "missing");
    spec = specs[4];
    spec.extra = "blk.0.attn_q_norm.weight"; /* nothing that Llama computes */
    refuse(spec, BASE_E_UNSUPPORTED, "blk.0.attn_q_norm.weight", "architecture");
    spec = specs[4];
    spec.architecture = "gpt99";
    refuse(spec, BASE_E_UNSUPPORTED, "gpt99",
        "qwen2, qwen3, qwen3moe, qwen35, qwen35moe, qwen3next, llama, granite, seed_oss, smollm3, phi3, mistral3, gpt-oss, "
        "gemma3, gemma4 (`kvist model list --all` says which models these are)");
    spec.architecture = "rwkv7"; /* a known one that is not built */
    refuse(spec, BASE_E_UNSUPPORTED, "rwkv7", "Use Qwen3.5-4B");
    spec = specs[PHI3];
    spec.leave_out = "blk.1.attn_qkv.weight";
    refuse(spec, BASE_E_FORMAT, "blk.1.attn_qkv.weight", "missing");
    spec.leave_out = NULL;
    spec.spoil = "rope_factors_long.weight";
    refuse(spec, BASE_E_FORMAT, "rope_factors_long.weight", "divides");
    spec.spoil = NULL;
    spec.architecture = "llama"; /* has no such divisors */
    refuse(spec, BASE_E_UNSUPPORTED, "rope_factors_long.weight", "architecture");
    spec = specs[MIXTURE];
    spec.architecture = "qwen3"; /* no mixture, says the architecture */
    refuse(spec, BASE_E_UNSUPPORTED, "12 experts", "qwen3moe");
    spec = specs[MIXTURE];
    spec.n_experts_used = 13;
    refuse(spec, BASE_E_LIMIT, "expert_used_count is 13", "12");
    spec = specs[MIXTURE];
    spec.leave_out = "blk.3.ffn_gate_inp.weight";
    refuse(spec, BASE_E_FORMAT, "blk.3.ffn_gate_inp.weight", "missing");
    spec = specs[MIXTURE];
    spec.spoil = "blk.1.ffn_gate_inp.weight";
    refuse(spec, BASE_E_FORMAT, "blk.1.ffn_gate_inp.weight", "not finite");
    spec = specs[MIXTURE];
    spec.spoil = "blk.2.ffn_down_exps.weight"; /* the last expert's */
    refuse(spec, BASE_E_FORMAT, "blk.2.ffn_down_exps.weight", "not finite");
}

/* A file that is cut while a model lives on it: the next batch says so. */
static void test_architectures__a_cut_file_is_an_error_not_a_crash(void **state)
{
    little l = little_open(&specs[1]);
    model_dense *d = little_dense(&l.shape, 20);
    float logits[V];
    base_err err = {0};
    assert_int_equal(model_dense_compute(d, l.m, l.ids, 10, 1, logits, NULL, &err), 0);
    assert_int_equal(truncate(l.path, 4096), 0);
    assert_int_equal(model_dense_compute(d, l.m, l.ids, 10, 1, logits, NULL, &err), BASE_E_STATE);
    assert_non_null(strstr(err.msg, l.path));
    model_dense_free(d);
    little_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_architectures__agree_with_the_oracle),
        cmocka_unit_test(test_architectures__every_difference_counts),
        cmocka_unit_test(test_architectures__batch_shapes_and_threads_give_the_same_bits),
        cmocka_unit_test(test_architectures__a_window_layer_reads_nothing_behind_its_window),
        cmocka_unit_test(test_architectures__scores_of_a_window_layer_end_with_its_window),
        cmocka_unit_test(test_architectures__scores_leave_the_sinks_their_share),
        cmocka_unit_test(test_architectures__a_window_counts_positions_not_rows),
        cmocka_unit_test(test_architectures__name_what_is_wrong),
        cmocka_unit_test(test_architectures__a_cut_file_is_an_error_not_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
