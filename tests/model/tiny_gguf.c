/* A GGUF writer for tests (layout: gguf.h, research/engine.md 1.1). It shares no code with the reader. */
#include "tiny_gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

enum {
    ALIGNMENT = 32,
    MAX_TENSORS = 320,
    TYPE_U32 = 4,
    TYPE_I32 = 5,
    TYPE_F32 = 6,
    TYPE_BOOL = 7,
    TYPE_STRING = 8,
    TYPE_ARRAY = 9
};

/*
 * How a tensor is filled: a matrix scaled by its inputs, a router (F32 always), ones with a little noise
 * (norms), or a bias; taps of a convolution, what a state decays by (negative) and its bias; a head's sink, as
 * large as scores are, and biases so wide that a clamp at 7 takes hold.
 */
typedef enum fill {
    FILL_MATRIX,
    FILL_ROUTER,
    FILL_NORM,
    FILL_BIAS,
    FILL_EMBEDDING,
    FILL_FACTORS,
    FILL_TAPS,
    FILL_DECAY,
    FILL_DT,
    FILL_SINK,
    FILL_WIDE,
    FILL_QUARTER, /* divisors of angles: a quarter of the pairs turns */
    FILL_SCALE,   /* around 0.8 */
    FILL_ROUTER_SCALE
} fill;

typedef struct tensor {
    char name[64];
    uint32_t n_in, n_out; /* n_out 0: one dimension */
    uint32_t n_stack;     /* matrices one behind another; 1: one, of two dimensions */
    fill how;
    tiny_type type;
} tensor;

typedef struct writer {
    base_buf *out;
    uint64_t n_keys;
    tensor tensors[MAX_TENSORS];
    uint32_t n_tensors;
    const tiny_gguf *spec;
} writer;

float tiny_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (float)(int32_t)(uint32_t)(z >> 32) / 2147483648.0f;
}

static void put_u32(base_buf *b, uint32_t v)
{
    base_buf_add(b, &v, sizeof v);
}

static void put_u64(base_buf *b, uint64_t v)
{
    base_buf_add(b, &v, sizeof v);
}

static void put_bytes(base_buf *b, const char *s, size_t n)
{
    put_u64(b, n);
    base_buf_add(b, s, n);
}

static void put_text(base_buf *b, const char *s)
{
    put_bytes(b, s, strlen(s));
}

static void put_key(writer *w, const char *key, uint32_t type)
{
    put_text(w->out, key);
    put_u32(w->out, type);
    w->n_keys++;
}

static void key_u32(writer *w, const char *key, uint32_t v)
{
    put_key(w, key, TYPE_U32);
    put_u32(w->out, v);
}

static void key_f32(writer *w, const char *key, float v)
{
    put_key(w, key, TYPE_F32);
    base_buf_add(w->out, &v, sizeof v);
}

static void key_text(writer *w, const char *key, const char *v)
{
    put_key(w, key, TYPE_STRING);
    put_text(w->out, v);
}

static void key_array(writer *w, const char *key, uint32_t type, uint64_t n)
{
    put_key(w, key, TYPE_ARRAY);
    put_u32(w->out, type);
    put_u64(w->out, n);
}

/* GPT-2's printable alphabet: a byte's character, as UTF-8. */
static size_t byte_piece(unsigned byte, char out[4])
{
    unsigned cp = byte;
    bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    if (!printable) {
        cp = 256;
        for (unsigned b = 0; b < byte; b++)
            if (!((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174)) cp++;
    }
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    out[0] = (char)(0xc0 | (cp >> 6));
    out[1] = (char)(0x80 | (cp & 63));
    return 2;
}

/* Pieces behind the bytes: pairs that are merges of two pieces before them. "\xc4\xa0" stands for a space. */
static const char *const merges[24][2] = {
    {"\xc4\xa0", "t"},
    {"\xc4\xa0", "a"},
    {"h", "e"},
    {"i", "n"},
    {"r", "e"},
    {"o", "n"},
    {"\xc4\xa0t", "he"},
    {"e", "r"},
    {"\xc4\xa0", "s"},
    {"a", "t"},
    {"\xc4\xa0", "c"},
    {"\xc4\xa0", "i"},
    {"e", "n"},
    {"o", "r"},
    {"\xc4\xa0", "\xc4\xa0"},
    {"e", "s"},
    {"in", "g"},
    {"\xc4\xa0", "f"},
    {"o", "u"},
    {"\xc4\xa0", "p"},
    {"re", "t"},
    {"a", "n"},
    {"\xc4\x8a", "\xc4\x8a"},
    {"i", "s"},
};

static void write_vocabulary(writer *w, const tiny_gguf *spec)
{
    static const char *const chatml[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    static const char *const harmony[] = {
        "<|return|>", "<|start|>", "<|end|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|call|>"};
    static const char *const mistral[] = {"<s>", "[TOOL_CALLS]", "</s>", "[ARGS]", "[CALL_ID]"};
    static const char *const gemma[] = {"<bos>", "<|tool_call>", "<turn|>", "<tool_call|>", "<|\"|>"};
    static const char *const granite[] = {"<|endoftext|>", "<|tool_call|>", "<|end_of_text|>"};
    static const char *const think[] = {"<|endoftext|>", "<think>", "<|im_end|>", "</think>"};
    const bool oss = strcmp(spec->architecture, "gpt-oss") == 0;
    const char *const *special = oss                   ? harmony
                                 : spec->mistral_marks ? mistral
                                 : spec->gemma_marks   ? gemma
                                 : spec->granite_marks ? granite
                                 : spec->think_marks   ? think
                                                       : chatml;
    const unsigned n_special = oss                   ? sizeof harmony / sizeof *harmony
                               : spec->mistral_marks ? sizeof mistral / sizeof *mistral
                               : spec->gemma_marks   ? sizeof gemma / sizeof *gemma
                               : spec->granite_marks ? sizeof granite / sizeof *granite
                               : spec->think_marks   ? sizeof think / sizeof *think
                                                     : sizeof chatml / sizeof *chatml;
    key_text(w, "tokenizer.ggml.model", "gpt2");
    key_text(w, "tokenizer.ggml.pre",
        strncmp(spec->architecture, "qwen35", 6) == 0 ? "qwen35"
        : strncmp(spec->architecture, "qwen", 4) == 0 ? "qwen2"
        : strcmp(spec->architecture, "mistral3") == 0 ? "tekken"
        : strcmp(spec->architecture, "gpt-oss") == 0  ? "gpt-4o"
                                                      : "smollm");
    key_array(w, "tokenizer.ggml.tokens", TYPE_STRING, TINY_GGUF_VOCAB);
    for (unsigned i = 0; i < 256; i++) {
        char piece[4];
        put_bytes(w->out, piece, byte_piece(i, piece));
    }
    for (unsigned i = 0; i < 24; i++) {
        char piece[32];
        snprintf(piece, sizeof piece, "%s%s", merges[i][0], merges[i][1]);
        put_text(w->out, piece);
    }
    for (unsigned i = TINY_GGUF_END_OF_TEXT; i < TINY_GGUF_VOCAB; i++) {
        char unused[32];
        snprintf(unused, sizeof unused, "<|unused_%u|>", i);
        put_text(w->out, i < TINY_GGUF_END_OF_TEXT + n_special ? special[i - TINY_GGUF_END_OF_TEXT] : unused);
    }
    key_array(w, "tokenizer.ggml.token_type", TYPE_I32, TINY_GGUF_VOCAB);
    for (unsigned i = 0; i < TINY_GGUF_VOCAB; i++) put_u32(w->out, i < TINY_GGUF_END_OF_TEXT ? 1 : 3);
    key_array(w, "tokenizer.ggml.merges", TYPE_STRING, 24);
    for (unsigned i = 0; i < 24; i++) {
        char merge[32];
        snprintf(merge, sizeof merge, "%s %s", merges[i][0], merges[i][1]);
        put_text(w->out, merge);
    }
    key_u32(w, "tokenizer.ggml.eos_token_id", oss ? TINY_GGUF_END_OF_TEXT : TINY_GGUF_IM_END);
    put_key(w, "tokenizer.ggml.add_bos_token", TYPE_BOOL);
    base_buf_putc(w->out, 0);
    key_text(w, "tokenizer.chat_template",
        oss ? "{{ '<|start|>assistant<|channel|>commentary' }}{{ '<|call|>' }}"
            : "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
}

static void add_stack(writer *w, const char *name, uint32_t n_in, uint32_t n_out, uint32_t n_stack, fill how)
{
    if (w->spec->leave_out && strcmp(w->spec->leave_out, name) == 0) return;
    if (w->n_tensors == MAX_TENSORS) abort();
    tensor *t = &w->tensors[w->n_tensors++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->n_in = n_in;
    t->n_out = n_out;
    t->n_stack = n_stack;
    t->how = how;
    t->type = how == FILL_MATRIX ? w->spec->type : TINY_F32;
}

static void add_tensor(writer *w, const char *name, uint32_t n_in, uint32_t n_out, fill how)
{
    add_stack(w, name, n_in, n_out, 1, how);
}

static uint32_t head_dim_of(const tiny_gguf *s)
{
    return s->head_dim ? s->head_dim : s->n_embd / s->n_head;
}

bool tiny_has_window(const tiny_gguf *s, uint32_t layer)
{
    return s->window_every && (layer + 1) % s->window_every != 0;
}

static void list_tensors(writer *w, const tiny_gguf *s)
{
    const bool gemma4 = strcmp(s->architecture, "gemma4") == 0, oss = strcmp(s->architecture, "gpt-oss") == 0;
    const bool seed = strcmp(s->architecture, "seed_oss") == 0;
    bool biases = oss || seed || strcmp(s->architecture, "qwen2") == 0,
         gemma = gemma4 || strcmp(s->architecture, "gemma3") == 0;
    bool head_norms = gemma || strncmp(s->architecture, "qwen3", 5) == 0, mixture = s->n_experts > 0;
    const bool hybrid = s->rows_every > 0, next = strcmp(s->architecture, "qwen3next") == 0;
    const uint32_t n_values = s->n_state_values * s->state_dim,
                   n_channels = 2 * s->n_state_keys * s->state_dim + n_values;
    const bool in_one = strcmp(s->architecture, "phi3") == 0;
    enum { IN_ALL, IN_ROWS, IN_STATE };
    add_tensor(w, "token_embd.weight", s->n_embd, TINY_GGUF_VOCAB, FILL_EMBEDDING);
    if (s->n_embd_layer) {
        add_tensor(
            w, "per_layer_token_embd.weight", s->n_embd_layer * s->n_layer, TINY_GGUF_VOCAB, FILL_BIAS);
        add_tensor(w, "per_layer_model_proj.weight", s->n_embd, s->n_embd_layer * s->n_layer, FILL_EMBEDDING);
        add_tensor(w, "per_layer_proj_norm.weight", s->n_embd_layer, 0, FILL_NORM);
    }
    for (uint32_t l = 0; l < s->n_layer + s->ahead; l++) {
        const bool small = tiny_has_window(s, l), owns = l + s->n_sharing < s->n_layer;
        const uint32_t head_dim = gemma4 && small ? s->window_head_dim : head_dim_of(s),
                       n_q = s->n_head * head_dim,
                       n_kv = (gemma4 && !small ? s->n_head_kv_all : s->n_head_kv) * head_dim,
                       n_ff = s->n_ff * (owns || !gemma4 ? 1 : 2);
        const bool dense = !mixture, beside = gemma4 && mixture;
        const struct {
            const char *name;
            uint32_t n_in, n_out;
            fill how;
            bool there;
            uint32_t n_stack;
            int where;
        } layer[] = {
            {"attn_norm.weight", s->n_embd, 0, FILL_NORM, true},
            {"attn_q.weight", s->n_embd, hybrid ? 2 * n_q : n_q, FILL_MATRIX, !in_one, 1, IN_ROWS},
            {"attn_k.weight", s->n_embd, n_kv, FILL_MATRIX, !in_one && (owns || !gemma4), 1, IN_ROWS},
            {"attn_v.weight", s->n_embd, n_kv, FILL_MATRIX,
                !in_one && (!gemma4 || (owns && (small || !s->without_values))), 1, IN_ROWS},
            {"attn_qkv.weight", s->n_embd, n_q + 2 * n_kv, FILL_MATRIX, in_one, 1, IN_ROWS},
            {"attn_q.bias", n_q, 0, FILL_BIAS, biases},
            {"attn_k.bias", n_kv, 0, FILL_BIAS, biases},
            {"attn_v.bias", n_kv, 0, FILL_BIAS, biases},
            {"attn_q_norm.weight", head_dim, 0, FILL_NORM, head_norms, 1, IN_ROWS},
            {"attn_k_norm.weight", head_dim, 0, FILL_NORM, head_norms && (owns || !gemma4), 1, IN_ROWS},
            {"attn_output.weight", n_q, s->n_embd, FILL_MATRIX, true, 1, IN_ROWS},
            {"attn_output.bias", s->n_embd, 0, FILL_BIAS, oss},
            {"attn_sinks.weight", s->n_head, 0, FILL_SINK, oss},
            {"attn_qkv.weight", s->n_embd, n_channels, FILL_MATRIX, hybrid, 1, IN_STATE},
            {"attn_gate.weight", s->n_embd, n_values, FILL_MATRIX, hybrid, 1, IN_STATE},
            {"ssm_alpha.weight", s->n_embd, s->n_state_values, FILL_MATRIX, hybrid && !next, 1, IN_STATE},
            {"ssm_beta.weight", s->n_embd, s->n_state_values, FILL_MATRIX, hybrid && !next, 1, IN_STATE},
            {"ssm_ba.weight", s->n_embd, 2 * s->n_state_values, FILL_MATRIX, next, 1, IN_STATE},
            {"ssm_conv1d.weight", 4, n_channels, FILL_TAPS, hybrid, 1, IN_STATE},
            {"ssm_a", s->n_state_values, 0, FILL_DECAY, hybrid, 1, IN_STATE},
            {"ssm_dt.bias", s->n_state_values, 0, FILL_DT, hybrid, 1, IN_STATE},
            {"ssm_norm.weight", s->state_dim, 0, FILL_NORM, hybrid, 1, IN_STATE},
            {"ssm_out.weight", n_values, s->n_embd, FILL_MATRIX, hybrid, 1, IN_STATE},
            {"post_attention_norm.weight", s->n_embd, 0, FILL_NORM, gemma || hybrid || oss || seed},
            {"ffn_norm.weight", s->n_embd, 0, FILL_NORM, !hybrid && !oss && !seed},
            {"ffn_gate_inp.weight", s->n_embd, s->n_experts, FILL_ROUTER, mixture},
            {"ffn_gate_exps.weight", s->n_embd, s->n_ff, FILL_MATRIX, mixture && !s->fused, s->n_experts},
            {"ffn_up_exps.weight", s->n_embd, s->n_ff, FILL_MATRIX, mixture && !s->fused, s->n_experts},
            {"ffn_gate_up_exps.weight", s->n_embd, 2 * s->n_ff, FILL_MATRIX, s->fused, s->n_experts},
            {"ffn_down_exps.weight", s->n_ff, s->n_embd, FILL_MATRIX, mixture, s->n_experts},
            {"ffn_gate_inp.bias", s->n_experts, 0, FILL_BIAS, oss},
            {"ffn_gate_exps.bias", s->n_ff, s->n_experts, FILL_WIDE, oss},
            {"ffn_up_exps.bias", s->n_ff, s->n_experts, FILL_WIDE, oss},
            {"ffn_down_exps.bias", s->n_embd, s->n_experts, FILL_BIAS, oss},
            {"ffn_gate_inp_shexp.weight", s->n_embd, 0, FILL_BIAS, s->n_ff_shared && !beside},
            {"ffn_gate_shexp.weight", s->n_embd, s->n_ff_shared, FILL_MATRIX, s->n_ff_shared && !beside},
            {"ffn_up_shexp.weight", s->n_embd, s->n_ff_shared, FILL_MATRIX, s->n_ff_shared && !beside},
            {"ffn_down_shexp.weight", s->n_ff_shared, s->n_embd, FILL_MATRIX, s->n_ff_shared && !beside},
            {"ffn_gate.weight", s->n_embd, beside ? s->n_ff_shared : n_ff, FILL_MATRIX,
                (dense && !in_one) || beside},
            {"ffn_up.weight", s->n_embd, beside ? s->n_ff_shared : (1 + in_one) * n_ff, FILL_MATRIX,
                dense || beside},
            {"ffn_down.weight", beside ? s->n_ff_shared : n_ff, s->n_embd, FILL_MATRIX, dense || beside},
            {"post_ffw_norm.weight", s->n_embd, 0, FILL_NORM, gemma},
            {"ffn_gate_inp.scale", s->n_embd, 0, FILL_ROUTER_SCALE, beside},
            {"post_ffw_norm_1.weight", s->n_embd, 0, FILL_NORM, beside},
            {"pre_ffw_norm_2.weight", s->n_embd, 0, FILL_NORM, beside},
            {"post_ffw_norm_2.weight", s->n_embd, 0, FILL_NORM, beside},
            {"ffn_down_exps.scale", s->n_experts, 0, FILL_SCALE, beside},
            {"inp_gate.weight", s->n_embd, s->n_embd_layer, FILL_MATRIX, s->n_embd_layer > 0},
            {"proj.weight", s->n_embd_layer, s->n_embd, FILL_MATRIX, s->n_embd_layer > 0},
            {"post_norm.weight", s->n_embd, 0, FILL_NORM, s->n_embd_layer > 0},
            {"layer_output_scale.weight", 1, 0, FILL_SCALE, gemma4},
        };
        for (size_t i = 0; i < sizeof layer / sizeof layer[0]; i++) {
            char name[64];
            const bool has_rows = !hybrid || l == s->n_layer || (l + 1) % s->rows_every == 0;
            snprintf(name, sizeof name, "blk.%u.%s", l, layer[i].name);
            if (layer[i].there && layer[i].where != (has_rows ? IN_STATE : IN_ROWS))
                add_stack(w, name, layer[i].n_in, layer[i].n_out, layer[i].n_stack ? layer[i].n_stack : 1,
                    layer[i].how);
        }
    }
    add_tensor(w, "output_norm.weight", s->n_embd, 0, FILL_NORM);
    if (!s->tied) add_tensor(w, "output.weight", s->n_embd, TINY_GGUF_VOCAB, FILL_MATRIX);
    if (s->ahead) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.nextn.eh_proj.weight", s->n_layer);
        add_tensor(w, name, 2 * s->n_embd, s->n_embd, FILL_MATRIX);
        add_tensor(w, "v.patch_embd.weight", s->n_embd, s->n_embd, FILL_MATRIX);
    }
    if (s->rope_freqs || gemma4)
        add_tensor(w, "rope_freqs.weight", head_dim_of(s) / 2, 0, gemma4 ? FILL_QUARTER : FILL_FACTORS);
    if (s->long_trained) {
        add_tensor(
            w, "rope_factors_long.weight", (s->n_rot ? s->n_rot : head_dim_of(s)) / 2, 0, FILL_FACTORS);
        add_tensor(w, "rope_factors_short.weight", (s->n_rot ? s->n_rot : head_dim_of(s)) / 2, 0, FILL_SCALE);
    }
    if (s->extra) add_tensor(w, s->extra, s->n_embd, 0, FILL_BIAS);
}

static uint64_t align(uint64_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t n_elements(const tensor *t)
{
    return (uint64_t)t->n_in * (t->n_out ? t->n_out : 1) * t->n_stack;
}

static void pad(base_buf *b, size_t start)
{
    while ((b->len - start) % ALIGNMENT) base_buf_putc(b, 0);
}

static uint64_t n_bytes(const tensor *t)
{
    return t->type == TINY_Q8_0    ? n_elements(t) / 32 * 34
           : t->type == TINY_MXFP4 ? n_elements(t) / 32 * 17
           : t->type == TINY_Q4_K  ? n_elements(t) / 256 * 144
           : t->type == TINY_Q2_K  ? n_elements(t) / 256 * 84
                                   : n_elements(t) * sizeof(float);
}

/* A positive F16 not below 2^-14, to the nearest. */
static void put_half(base_buf *b, float x)
{
    int exponent;
    float fraction = frexpf(x, &exponent); /* in [0.5, 1) */
    uint16_t half = (uint16_t)(((exponent + 14) << 10) + (int)lrintf((fraction * 2 - 1) * 1024));
    base_buf_add(b, &half, sizeof half);
}

static unsigned random_byte(uint64_t *state)
{
    return (unsigned)((tiny_random(state) + 1) * 128) & 255;
}

/* Blocks of random quants whose values are about uniform in [-scale, scale). */
static void write_q8_0(base_buf *b, uint64_t n, float scale, uint64_t *state)
{
    for (uint64_t i = 0; i < n; i += 32) {
        put_half(b, scale / 127 * (1 + 0.3f * tiny_random(state)));
        for (int k = 0; k < 32; k++) base_buf_putc(b, (char)(int)(tiny_random(state) * 127));
    }
}

/* Values up to 6 times a power of two; about scale in size on the whole. */
static void write_mxfp4(base_buf *b, uint64_t n, float scale, uint64_t *state)
{
    int exponent;
    frexpf(scale / 4, &exponent);
    for (uint64_t i = 0; i < n; i += 32) {
        base_buf_putc(b, (char)(127 + exponent - 1 + (int)(random_byte(state) & 1)));
        for (int k = 0; k < 16; k++) base_buf_putc(b, (char)random_byte(state));
    }
}

static void write_q4_k(base_buf *b, uint64_t n, float scale, uint64_t *state)
{
    for (uint64_t i = 0; i < n;
         i += 256) { /* quants 0..15 and 6-bit scales of about 32: d * sc * q - dmin * mn */
        put_half(b, scale / 7.5f / 32);
        put_half(b, scale / 32);
        for (int k = 0; k < 12 + 128; k++) base_buf_putc(b, (char)random_byte(state));
    }
}

/* Quants 0..3 and 4-bit scales and minima of about 8, a byte for both: d * sc * q - dmin * mn. */
static void write_q2_k(base_buf *b, uint64_t n, float scale, uint64_t *state)
{
    for (uint64_t i = 0; i < n; i += 256) {
        for (int k = 0; k < 16 + 64; k++) base_buf_putc(b, (char)random_byte(state));
        put_half(b, scale / 1.5f / 8);
        put_half(b, scale / 8);
    }
}

static void write_values(base_buf *b, const tensor *t, uint64_t *state)
{
    float scale = t->how == FILL_MATRIX         ? 1.7f / sqrtf((float)t->n_in)
                  : t->how == FILL_ROUTER       ? 3.4f / sqrtf((float)t->n_in)
                  : t->how == FILL_EMBEDDING    ? 1.0f
                  : t->how == FILL_TAPS         ? 0.8f
                  : t->how == FILL_DECAY        ? 0.25f
                  : t->how == FILL_DT           ? 1.5f
                  : t->how == FILL_SINK         ? 4.0f
                  : t->how == FILL_WIDE         ? 8.0f
                  : t->how == FILL_SCALE        ? 0.2f
                  : t->how == FILL_ROUTER_SCALE ? 3.0f
                                                : 0.3f;
    float centre = t->how == FILL_NORM           ? 1.0f
                   : t->how == FILL_FACTORS      ? 2.0f
                   : t->how == FILL_DECAY        ? -0.3f
                   : t->how == FILL_DT           ? -1.5f
                   : t->how == FILL_SCALE        ? 0.8f
                   : t->how == FILL_ROUTER_SCALE ? 12.0f
                                                 : 0.0f;
    if (t->type == TINY_Q8_0) {
        write_q8_0(b, n_elements(t), scale, state);
    } else if (t->type == TINY_MXFP4) {
        write_mxfp4(b, n_elements(t), scale, state);
    } else if (t->type == TINY_Q4_K) {
        write_q4_k(b, n_elements(t), scale, state);
    } else if (t->type == TINY_Q2_K) {
        write_q2_k(b, n_elements(t), scale, state);
    } else {
        for (uint64_t i = 0; i < n_elements(t); i++) {
            float x = centre + scale * tiny_random(state);
            if (t->how == FILL_QUARTER) x = i < n_elements(t) / 4 ? 1 : 1e30f;
            base_buf_add(b, &x, sizeof x);
        }
    }
}

/* The last element's scale or the element itself. */
static void spoil(base_buf *b, const tensor *t)
{
    const uint8_t half[2] = {0x00, 0x7E};
    const float whole = NAN;
    if (t->type == TINY_F32)
        memcpy(b->data + b->len - sizeof whole, &whole, sizeof whole);
    else
        memcpy(b->data + b->len - (t->type == TINY_Q8_0 ? 34 : 144), half, sizeof half);
}

static void write_gemma4(writer *w, const tiny_gguf *s)
{
    key_u32(w, "gemma4.attention.key_length_swa", s->window_head_dim);
    key_u32(w, "gemma4.attention.value_length_swa", s->window_head_dim);
    key_u32(w, "gemma4.rope.dimension_count_swa", s->window_head_dim);
    key_f32(w, "gemma4.rope.freq_base_swa", 10000.0f);
    key_f32(w, "gemma4.final_logit_softcapping", (float)TINY_CAP);
    key_u32(w, "gemma4.attention.shared_kv_layers", s->n_sharing);
    key_u32(w, "gemma4.embedding_length_per_layer_input", s->n_embd_layer);
    key_array(w, "gemma4.attention.sliding_window_pattern", TYPE_BOOL, s->n_layer);
    for (uint32_t l = 0; l < s->n_layer; l++) base_buf_putc(w->out, tiny_has_window(s, l));
}

void tiny_gguf_write(const tiny_gguf *spec, base_buf *out)
{
    static const char *const per_layer_keys[] = {"block_count", "context_length", "embedding_length",
        "feed_forward_length", "attention.head_count", "attention.head_count_kv", "vocab_size"};
    const uint32_t values[] = {spec->n_layer + spec->ahead, spec->n_ctx, spec->n_embd, spec->n_ff,
        spec->n_head, spec->n_head_kv, TINY_GGUF_VOCAB};
    writer *w = calloc(1, sizeof *w);
    base_buf keys = {0};
    size_t start = out->len;
    uint64_t state = spec->seed, offset = 0;
    char key[64];

    if (!w) abort();
    w->out = &keys;
    w->spec = spec;
    key_text(w, "general.architecture", spec->architecture);
    key_text(w, "general.name", "tiny");
    key_u32(w, "general.alignment", ALIGNMENT);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        snprintf(key, sizeof key, "%s.%s", spec->architecture, per_layer_keys[i]);
        if (!spec->window_every || (i != 3 && i != 5))
            key_u32(w, key, values[i]);
        else if (i == 3 && spec->n_experts)
            key_u32(w, key, spec->n_ff_shared);
        else {
            key_array(w, key, TYPE_U32, spec->n_layer);
            for (uint32_t l = 0; l < spec->n_layer; l++)
                put_u32(w->out, i == 5 ? tiny_has_window(spec, l) ? spec->n_head_kv : spec->n_head_kv_all
                                : l + spec->n_sharing < spec->n_layer ? spec->n_ff
                                                                      : 2 * spec->n_ff);
        }
    }
    if (spec->window_every) write_gemma4(w, spec);
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", spec->architecture);
    key_f32(w, key, 1e-5f);
    snprintf(key, sizeof key, "%s.rope.freq_base", spec->architecture);
    key_f32(w, key, spec->rope_base ? spec->rope_base : 10000.0f);
    snprintf(key, sizeof key, "%s.rope.dimension_count", spec->architecture);
    key_u32(w, key, spec->n_rot ? spec->n_rot : head_dim_of(spec));
    if (spec->rows_every) {
        static const char *const of_states[] = {"full_attention_interval", "ssm.conv_kernel",
            "ssm.state_size", "ssm.group_count", "ssm.time_step_rank", "ssm.inner_size",
            "nextn_predict_layers", "expert_shared_feed_forward_length"};
        const uint32_t counts[] = {spec->rows_every, 4, spec->state_dim, spec->n_state_keys,
            spec->n_state_values, spec->n_state_values * spec->state_dim, spec->ahead, spec->n_ff_shared};
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            snprintf(key, sizeof key, "%s.%s", spec->architecture, of_states[i]);
            if (counts[i]) key_u32(w, key, counts[i]);
        }
        snprintf(key, sizeof key, "%s.rope.dimension_sections", spec->architecture);
        key_array(w, key, TYPE_I32, 4);
        for (uint32_t i = 0; i < 4; i++) put_u32(w->out, i < 3 ? (spec->n_rot / 2 + 2 - i) / 3 : 0);
    }
    if (spec->rope_factor) {
        snprintf(key, sizeof key, "%s.rope.scaling.factor", spec->architecture);
        key_f32(w, key, spec->rope_factor);
    }
    if (spec->yarn_trained) {
        snprintf(key, sizeof key, "%s.rope.scaling.type", spec->architecture);
        key_text(w, key, "yarn");
        snprintf(key, sizeof key, "%s.rope.scaling.original_context_length", spec->architecture);
        key_u32(w, key, spec->yarn_trained);
    }
    if (spec->yarn_trained && strcmp(spec->architecture, "mistral3") == 0) {
        snprintf(key, sizeof key, "%s.rope.scaling.yarn_log_multiplier", spec->architecture);
        key_f32(w, key, spec->yarn_less);
        snprintf(key, sizeof key, "%s.attention.temperature_scale", spec->architecture);
        key_f32(w, key, spec->q_scale);
    }
    if (spec->long_trained) {
        key_u32(w, "phi3.rope.scaling.original_context_length", spec->long_trained);
        key_f32(w, "phi3.rope.scaling.attn_factor", spec->rope_growth);
    }
    const char *const scales[] = {"embedding_scale", "residual_scale", "attention.scale", "logit_scale"};
    const float of_scales[] = {spec->embd_scale, spec->branch_scale, spec->attn_scale, spec->logit_scale};
    for (size_t i = 0; i < 4; i++) {
        snprintf(key, sizeof key, "%s.%s", spec->architecture, scales[i]);
        if (of_scales[i]) key_f32(w, key, of_scales[i]);
    }
    if (spec->head_dim) {
        snprintf(key, sizeof key, "%s.attention.key_length", spec->architecture);
        key_u32(w, key, spec->head_dim);
        snprintf(key, sizeof key, "%s.attention.value_length", spec->architecture);
        key_u32(w, key, spec->head_dim);
    }
    if (spec->n_experts) {
        static const char *const of_mixtures[] = {
            "expert_count", "expert_used_count", "expert_feed_forward_length"};
        const uint32_t counts[] = {spec->n_experts, spec->n_experts_used, spec->n_ff};
        for (size_t i = 0; i < 3; i++) {
            snprintf(key, sizeof key, "%s.%s", spec->architecture, of_mixtures[i]);
            key_u32(w, key, counts[i]);
        }
    }
    if (spec->window) {
        snprintf(key, sizeof key, "%s.attention.sliding_window", spec->architecture);
        key_u32(w, key, spec->window);
    }
    write_vocabulary(w, spec);
    list_tensors(w, spec);

    base_buf_add(out, "GGUF", 4);
    put_u32(out, 3);
    put_u64(out, w->n_tensors);
    put_u64(out, w->n_keys);
    base_buf_add(out, keys.data, keys.len);
    for (uint32_t i = 0; i < w->n_tensors; i++) {
        tensor *t = &w->tensors[i];
        put_text(out, t->name);
        put_u32(out, t->n_stack > 1 ? 3 : t->n_out ? 2 : 1);
        put_u64(out, t->n_in);
        if (t->n_out) put_u64(out, t->n_out);
        if (t->n_stack > 1) put_u64(out, t->n_stack);
        put_u32(out, t->type);
        put_u64(out, offset);
        offset += align(n_bytes(t));
    }
    pad(out, start);
    for (uint32_t i = 0; i < w->n_tensors; i++) {
        write_values(out, &w->tensors[i], &state);
        if (spec->spoil && strcmp(spec->spoil, w->tensors[i].name) == 0) spoil(out, &w->tensors[i]);
        pad(out, start);
    }
    base_buf_free(&keys);
    free(w);
}

char *tiny_gguf_temp(const tiny_gguf *spec)
{
    const char *folder = getenv("TMPDIR");
    base_buf bytes = {0}, path = {0};
    bool written = false;

    base_buf_printf(&path, "%s/kvist-tiny-XXXXXX", folder && *folder ? folder : "/tmp");
    tiny_gguf_write(spec, &bytes);
    int fd = mkstemp(path.data);
    if (fd >= 0) {
        FILE *file = fdopen(fd, "wb");
        written = file && fwrite(bytes.data, 1, bytes.len, file) == bytes.len;
        if (file && fclose(file) != 0) written = false;
        if (!file) close(fd);
        if (!written) unlink(path.data);
    }
    base_buf_free(&bytes);
    if (written) return base_buf_take(&path);
    base_buf_free(&path);
    return NULL;
}

char *tiny_gguf_small_model(void)
{
    const char *first_layers = getenv("KVIST_SHORT_MODEL");
    if (first_layers && !getenv("KVIST_TEST_LONG")) return base_xstrdup(first_layers);
    return base_fs_home(BASE_HOME_DATA, "models/SmolLM2-135M-Instruct.Q4_1.gguf");
}
