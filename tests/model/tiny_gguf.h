/*
 * Whole little models for tests: a GGUF file of a few hundred kilobytes with random F32 weights, a byte-level
 * vocabulary and everything that model_open, the tokenizer and the template ask for. Same specification, same
 * bytes, everywhere.
 *
 * The weights are scaled so that activations stay near 1; nothing that such a model "says" means anything.
 */
#ifndef KVIST_TESTS_TINY_GGUF_H
#define KVIST_TESTS_TINY_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* How matrices are stored; rows must be whole blocks. Everything else is F32. */
typedef enum tiny_type {
    TINY_F32 = 0,
    TINY_Q8_0 = 8,
    TINY_Q2_K = 10,
    TINY_Q4_K = 12,
    TINY_MXFP4 = 39
} tiny_type;

typedef struct tiny_gguf {
    const char *
        architecture; /* "qwen2" (biases), "qwen3" (query and key norms), "qwen3moe", "llama", "mistral3", "gemma3", "qwen35", "qwen35moe", "qwen3next", "gpt-oss", "gemma4", "granite", "phi3", "smollm3" or "seed_oss" (biases) */
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, n_ctx;
    uint32_t head_dim;                  /* 0: n_embd / n_head, and the file does not say */
    uint32_t n_experts, n_experts_used; /* of mixtures, where n_ff is one expert's */
    /*
     * qwen35, qwen35moe: of so many layers the last has rows, the others a state of so many heads of keys and
     * of values of state_dim each, behind a convolution of four tokens; RoPE over n_rot of a head. And of the
     * mixture the expert of all tokens.
     */
    uint32_t rows_every, n_state_keys, n_state_values, state_dim, n_rot, n_ff_shared;
    bool ahead; /* with a block that predicts a token ahead, and a tensor of an encoder of pictures */
    uint64_t seed;
    tiny_type type;
    bool tied;               /* no output.weight: the embedding is the head */
    bool rope_freqs;         /* with the tensor that stretches RoPE (Llama 3.1 and later) */
    float rope_base;         /* 0: 10000 */
    float rope_factor;       /* 0: none */
    uint32_t yarn_trained;   /* RoPE is stretched by YaRN from so many tokens; 0: as a whole */
    bool mistral_marks;      /* its special tokens are Mistral's, [TOOL_CALLS] and its like */
    bool gemma_marks;        /* the same of Gemma 4's, <|tool_call> and its like */
    bool granite_marks;      /* the same of Granite 3's, <|tool_call|> */
    bool think_marks;        /* <think> and its end are among its special tokens */
    uint32_t long_trained;   /* phi3: divisors of RoPE for contexts up to this and for longer ones; 0: none */
    float rope_growth;       /* phi3: what they are multiplied by that RoPE turns, with long_trained */
    uint32_t unturned_every; /* smollm3, whose files do not say so: 4; the oracle's */
    float yarn_less;         /* mistral3: yarn_log_multiplier */
    /* granite: what embeddings, branches and scores are multiplied by, and logits divided; 0: as others do */
    float embd_scale, branch_scale, attn_scale, logit_scale;
    float q_scale;   /* mistral3: attention.temperature_scale, with yarn_trained */
    uint32_t window; /* gemma3, gemma4, gpt-oss: 0 none */
    /*
     * gemma4: of so many layers the last reads everything, with n_head_kv_all heads of head_dim, the others a window
     * with n_head_kv heads of window_head_dim; so many of the last share rows, n_ff twice as wide; numbers of a
     * token's embedding for each layer; no values in layers that read everything; with experts n_ff_shared is of
     * the feed-forward beside them, whose gates and ups may be one tensor.
     */
    uint32_t window_every, n_head_kv_all, window_head_dim, n_sharing, n_embd_layer;
    bool without_values, fused;
    bool without_cap, without_scales;  /* the oracle leaves them out */
    bool without_sinks, without_clamp; /* gpt-oss: the oracle leaves them out (what must be far away) */
    const char *spoil;                 /* a tensor's name whose last element becomes NaN; NULL: none */
    const char *leave_out;             /* a tensor's name that is not written (for refusals); NULL: none */
    const char *extra;                 /* the name of a tensor of one row that nobody asked for; NULL: none */
} tiny_gguf;

/*
 * The path of SmolLM2 in the person's data folder, whether it is there or not; of its first layers alone where the build made them
 * (KVIST_SHORT_MODEL) and KVIST_TEST_LONG is not set. The caller frees it.
 */
char *tiny_gguf_small_model(void);

/* 2 layers, 4 query heads on 2 KV heads of 32, n_ff 192, context 4096. */
#define TINY_GGUF_QWEN2                                                                                      \
    (tiny_gguf)                                                                                              \
    {                                                                                                        \
        .architecture = "qwen2", .n_layer = 2, .n_embd = 128, .n_ff = 192, .n_head = 4, .n_head_kv = 2,      \
        .n_ctx = 4096, .seed = 1                                                                             \
    }
#define TINY_GGUF_LLAMA                                                                                      \
    (tiny_gguf)                                                                                              \
    {                                                                                                        \
        .architecture = "llama", .n_layer = 2, .n_embd = 192, .n_ff = 256, .n_head = 3, .n_head_kv = 1,      \
        .n_ctx = 4096, .seed = 2, .tied = true                                                               \
    }

#define TINY_GGUF_QWEN3MOE                                                                                   \
    (tiny_gguf)                                                                                              \
    {                                                                                                        \
        .architecture = "qwen3moe", .n_layer = 4, .n_embd = 128, .n_ff = 96, .n_head = 4, .n_head_kv = 2,    \
        .head_dim = 32, .n_experts = 12, .n_experts_used = 3, .n_ctx = 4096, .seed = 4, .rope_base = 1e6f    \
    }

/* Every fourth layer has rows; two heads of keys for four of values. */
#define TINY_GGUF_QWEN35                                                                                     \
    (tiny_gguf)                                                                                              \
    {                                                                                                        \
        .architecture = "qwen35", .n_layer = 8, .n_embd = 128, .n_ff = 160, .n_head = 4, .n_head_kv = 2,     \
        .head_dim = 64, .n_rot = 16, .rows_every = 4, .n_state_keys = 2, .n_state_values = 4,                \
        .state_dim = 32, .n_ctx = 4096, .seed = 5, .rope_base = 1e6f                                         \
    }

/* Layers with a window and without, twice each. */
#define TINY_GGUF_GPT_OSS                                                                                    \
    (tiny_gguf)                                                                                              \
    {                                                                                                        \
        .architecture = "gpt-oss", .n_layer = 4, .n_embd = 160, .n_ff = 96, .n_head = 8, .n_head_kv = 2,     \
        .head_dim = 32, .n_experts = 8, .n_experts_used = 2, .n_ctx = 4096, .seed = 6, .rope_base = 1.5e5f,  \
        .rope_factor = 32, .yarn_trained = 128, .window = 60                                                 \
    }

/* Layers with a window, whose heads lie side by side in lanes, and without, which have half as many heads. */
#define TINY_GGUF_GEMMA4                                                                                     \
    (tiny_gguf)                                                                                              \
    {                                                                                                        \
        .architecture = "gemma4", .n_layer = 6, .n_embd = 128, .n_ff = 160, .n_head = 8, .n_head_kv = 4,     \
        .n_head_kv_all = 1, .head_dim = 64, .window_head_dim = 32, .window_every = 3, .n_ctx = 4096,         \
        .seed = 41, .tied = true, .rope_base = 1e6f, .window = 60, .without_values = true                    \
    }

/* Scales as Granite 3.3 has them. */
#define TINY_GGUF_GRANITE                                                                                    \
    (tiny_gguf)                                                                                              \
    {                                                                                                        \
        .architecture = "granite", .n_layer = 3, .n_embd = 128, .n_ff = 160, .n_head = 4, .n_head_kv = 2,    \
        .n_ctx = 4096, .seed = 46, .tied = true, .rope_base = 1e7f, .embd_scale = 12, .branch_scale = 0.22f, \
        .attn_scale = 0.015625f, .logit_scale = 8                                                            \
    }

/* Three quarters of a head are turned and grow, by the divisors of long contexts: Phi-4-mini. */
#define TINY_GGUF_PHI3                                                                                       \
    (tiny_gguf)                                                                                              \
    {                                                                                                        \
        .architecture = "phi3", .n_layer = 3, .n_embd = 128, .n_ff = 160, .n_head = 4, .n_head_kv = 2,       \
        .n_rot = 24, .n_ctx = 4096, .seed = 49, .tied = true, .long_trained = 1024, .rope_growth = 1.19f     \
    }

/* Three layers that RoPE turns, one that it does not, and one that it does: SmolLM3. */
#define TINY_GGUF_SMOLLM3                                                                                    \
    (tiny_gguf)                                                                                              \
    {                                                                                                        \
        .architecture = "smollm3", .n_layer = 5, .n_embd = 128, .n_ff = 160, .n_head = 4, .n_head_kv = 1,    \
        .n_ctx = 4096, .seed = 54, .tied = true, .rope_base = 5e6f, .unturned_every = 4                      \
    }

/* Five layers with a window, one without, one with. */
#define TINY_GGUF_GEMMA3                                                                                     \
    (tiny_gguf)                                                                                              \
    {                                                                                                        \
        .architecture = "gemma3", .n_layer = 7, .n_embd = 96, .n_ff = 160, .n_head = 4, .n_head_kv = 1,      \
        .head_dim = 48, .n_ctx = 4096, .seed = 3, .tied = true, .rope_base = 1e6f, .window = 200             \
    }

#define TINY_CAP 3.0 /* gemma4: final_logit_softcapping */

enum {
    TINY_GGUF_VOCAB = 288, /* 256 bytes, 24 merged pieces, the rest special or unused */
    TINY_GGUF_END_OF_TEXT = 280,
    TINY_GGUF_IM_START = 281,
    TINY_GGUF_IM_END = 282, /* of gpt-oss these are <|return|>, <|start|>, <|end|>, and four marks follow */
};

void tiny_gguf_write(const tiny_gguf *spec, base_buf *out);

/* Writes it to a new temporary file; the caller unlinks and frees the path. NULL when the system refuses. */
char *tiny_gguf_temp(const tiny_gguf *spec);

/* gemma4 */
bool tiny_has_window(const tiny_gguf *s, uint32_t layer);

/* The generator behind the weights, for inputs that tests need: uniform in [-1, 1). */
float tiny_random(uint64_t *state);

#endif
