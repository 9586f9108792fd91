/*
 * Reading hyper-parameters: see arch.h. Facts about each family: its llama.cpp graph (src/llama-model.cpp).
 */
#include "model/forward/arch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

static const model_arch architectures[] = {
    {.name = "qwen2", .families = "Qwen2, Qwen2.5", .rope = OPS_ROPE_NEOX, .qkv_bias = true},
    {.name = "qwen3", .families = "Qwen3", .rope = OPS_ROPE_NEOX, .qk_norm = true},
    {.name = "qwen3moe",
        .families = "Qwen3-30B-A3B, Qwen3-Coder-30B-A3B",
        .rope = OPS_ROPE_NEOX,
        .qk_norm = true,
        .experts = true},
    {.name = "qwen35",
        .families = "Qwen3.5, 3.6 and 3.8",
        .rope = OPS_ROPE_NEOX,
        .qk_norm = true,
        .ffn_pre = true,
        .rows_every = 4},
    {.name = "qwen35moe",
        .families = "Qwen3.5 and 3.6-35B-A3B",
        .rope = OPS_ROPE_NEOX,
        .qk_norm = true,
        .ffn_pre = true,
        .rows_every = 4,
        .experts = true,
        .shared = true},
    {.name = "qwen3next",
        .families = "Qwen3-Next, Qwen3-Coder-Next",
        .rope = OPS_ROPE_NEOX,
        .qk_norm = true,
        .ffn_pre = true,
        .rows_every = 4,
        .state_neighbours = true,
        .experts = true,
        .shared = true},
    {.name = "llama", .families = "Llama 2 and 3, SmolLM2, Devstral 1", .rope = OPS_ROPE_NORM},
    {.name = "granite", .families = "Granite 3 and 4, dense", .rope = OPS_ROPE_NORM, .scaled = true},
    {.name = "seed_oss", .families = "Seed-OSS 36B", .rope = OPS_ROPE_NEOX, .ffn_pre = true},
    {.name = "smollm3", .families = "SmolLM3", .rope = OPS_ROPE_NORM, .unturned_every = 4},
    {.name = "phi3",
        .families = "Phi-4, Phi-4-mini",
        .rope = OPS_ROPE_NEOX,
        .fused = true,
        .long_rope = true},
    {.name = "mistral3",
        .families = "Ministral 3, Devstral Small 2",
        .rope = OPS_ROPE_NORM,
        .long_context = true},
    {.name = "gpt-oss",
        .families = "gpt-oss-20b, 120b",
        .rope = OPS_ROPE_NEOX,
        .gate = OPS_GATE_CLAMPED,
        .qkv_bias = true,
        .window_every = 2,
        .experts = true,
        .ffn_pre = true,
        .sinks = true,
        .biases = true},
    {.name = "gemma3",
        .families = "Gemma 3",
        .rope = OPS_ROPE_NEOX,
        .gate = OPS_GATE_GELU_TANH,
        .qk_norm = true,
        .post_norm = true,
        .embd_scale = true,
        .window_every = 6,
        .window_rope_base = 10000,
        .wide_layers = 62 /* 27B */},
    {.name = "gemma4",
        .families = "Gemma 4",
        .rope = OPS_ROPE_NEOX,
        .gate = OPS_GATE_GELU_TANH,
        .qk_norm = true,
        .v_norm = true,
        .post_norm = true,
        .embd_scale = true,
        .window_every = 6,
        .window_rope_base = 10000,
        .apart = true,
        .unscaled = true,
        .capped = true,
        .beside = true,
        .per_layer = true},
};
enum { N_ARCHITECTURES = sizeof architectures / sizeof architectures[0] };

/*
 * Bounds that no model of a machine like ours comes near; they keep every product below far inside 64 bits.
 */
enum {
    MAX_LAYERS = 1024,
    MAX_WIDTH = 1 << 20,
    MAX_VOCAB = 1 << 22,
    MAX_CONTEXT = 1 << 26,
    MAX_HEADS = 4096,
    MAX_HEAD_DIM = 512,
    MAX_EXPERTS = 4096
};

typedef struct reader {
    const gguf_file *file;
    const char *arch;
    base_err *err;
} reader;

static const char *key_of(const reader *r, const char *name, char key[96])
{
    snprintf(key, 96, "%s.%s", r->arch, name);
    return key;
}

/* A whole number, or an array of one number per layer that are all the same (some converters write those). */
static bool get_count(const reader *r, const char *name, uint64_t *ret)
{
    char key[96];
    gguf_value_type type;
    uint64_t n;
    double first, other;

    if (gguf_get_u64(r->file, key_of(r, name, key), ret)) return true;
    if (!gguf_get_array(r->file, key, &type, &n) || n == 0 || !gguf_array_num(r->file, key, 0, &first))
        return false;
    for (uint64_t i = 1; i < n; i++)
        if (!gguf_array_num(r->file, key, i, &other) || !(other == first)) return false;
    if (!(first >= 0 && first <= MAX_CONTEXT) || first != floor(first)) return false;
    *ret = (uint64_t)first;
    return true;
}

static int need_count(const reader *r, const char *name, uint64_t max, uint32_t *ret)
{
    uint64_t value;
    if (!get_count(r, name, &value))
        return base_fail(r->err, BASE_E_FORMAT, "the file has no usable %s.%s", r->arch, name);
    if (value == 0 || value > max)
        return base_fail(r->err, BASE_E_LIMIT, "%s.%s is %llu; 1 to %llu is what kvist reads", r->arch, name,
            (unsigned long long)value, (unsigned long long)max);
    *ret = (uint32_t)value;
    return 0;
}

static double get_number(const reader *r, const char *name, double otherwise)
{
    char key[96];
    double value;
    return gguf_get_f64(r->file, key_of(r, name, key), &value) ? value : otherwise;
}

/* Metadata that changes the arithmetic in a way that is not built. */
static int refuse_extras(const reader *r, const model_arch *arch)
{
    const struct {
        const char *name;
        bool is_built;
    } numbers[] = {{"final_logit_softcapping", arch->capped}, {"attn_logit_softcapping", false},
        {"logit_scale", arch->scaled}, {"residual_scale", arch->scaled}, {"embedding_scale", arch->scaled},
        {"attention.clamp_kqv", false}, {"attention.max_alibi_bias", false}};
    char key[96];
    base_str scaling;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double value = get_number(r, numbers[i].name, 0);
        if (value != 0 && !numbers[i].is_built)
            return base_fail(r->err, BASE_E_UNSUPPORTED, "%s.%s is %g, which kvist does not compute", r->arch,
                numbers[i].name, value);
    }
    if (gguf_get_str(r->file, key_of(r, "rope.scaling.type", key), &scaling) &&
        !base_str_equal(scaling, "none") && !base_str_equal(scaling, "linear") &&
        !base_str_equal(scaling, "yarn") && !(arch->long_rope && base_str_equal(scaling, "longrope")))
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "RoPE scaling \"%.*s\" is not built; use a file without it (none, linear and yarn are)",
            (int)(scaling.len < 40 ? scaling.len : 40), scaling.ptr);
    return 0;
}

/*
 * As llama.cpp reads it (its llama-context.cpp): which pairs turn how often within the context that the model
 * was trained for, and by how much keys and queries grow. A file for which the growth is another (the mistral3
 * of Devstral) says so by yarn_log_multiplier; yarn_beta_* count there only, too.
 */
static int read_yarn(const reader *r, model_hyper *h)
{
    const double pi = 3.14159265358979323846;
    const bool own = h->arch->long_context;
    double fast = own ? get_number(r, "rope.scaling.yarn_beta_fast", 32) : 32,
           slow = own ? get_number(r, "rope.scaling.yarn_beta_slow", 1) : 1,
           less = own ? get_number(r, "rope.scaling.yarn_log_multiplier", 0) : 0,
           more = get_number(r, "rope.scaling.attn_factor", 1);
    uint64_t trained = h->n_ctx;
    char key[96];
    base_str scaling;

    if (!gguf_get_str(r->file, key_of(r, "rope.scaling.type", key), &scaling) ||
        !base_str_equal(scaling, "yarn"))
        return 0;
    get_count(r, "rope.scaling.original_context_length", &trained);
    if (trained == 0 || !(fast > slow && slow > 0 && fast < 1e6) || !(less >= 0 && less < 100) ||
        !(more > 0 && more < 100))
        return base_fail(r->err, BASE_E_FORMAT, "%s.rope.scaling.* describes no YaRN", r->arch);
    if (h->n_rot != h->head_dim)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "YaRN over %u of %u dimensions of a head is not built; use a file without it", h->n_rot,
            h->head_dim);
    /* The pair that turns `fast` (`slow`) times within the trained context. */
    const double turns = h->n_rot / (2 * log(h->rope_base));
    const double low = floor(turns * log((double)trained / (fast * 2 * pi))),
                 high = ceil(turns * log((double)trained / (slow * 2 * pi)));
    const double growth = 1 + 0.1 * log(h->rope_factor);
    const double magnitude = more * growth / (1 + 0.1 * less * log(h->rope_factor));
    h->yarn_factor = h->rope_factor;
    h->rope_factor = 1;
    h->yarn_low = low > 0 ? low : 0;
    h->yarn_high = high < h->n_rot - 1 ? high : h->n_rot - 1;
    if (h->arch->unturned_every)
        h->rope_growth = magnitude; /* of what is turned, which is not all that is scored */
    else
        h->attn_scale *= (float)(magnitude * magnitude); /* of the key and of the query */
    return 0;
}

/*
 * LongRoPE (Ding et al. 2024) as llama.cpp reads it: divisors of its own for contexts longer than the trained one, and in all of them
 * the same growth, of what RoPE turns alone.
 */
static int read_long_rope(const reader *r, model_hyper *h)
{
    uint64_t trained = h->n_ctx;
    if (!h->arch->long_rope) return 0;
    if (h->yarn_factor == 0) h->rope_growth = get_number(r, "rope.scaling.attn_factor", 1);
    get_count(r, "rope.scaling.original_context_length", &trained);
    if (!(h->rope_growth > 0 && h->rope_growth < 100) || trained == 0 || trained > MAX_CONTEXT)
        return base_fail(r->err, BASE_E_FORMAT, "%s.rope.scaling.attn_factor is %g over %llu tokens", r->arch,
            h->rope_growth, (unsigned long long)trained);
    h->rope_trained = (uint32_t)trained;
    return 0;
}

/* Queries that grow with their position (mistral3): within the trained context they are as they were. */
static int read_query_scale(const reader *r, model_hyper *h)
{
    uint64_t trained = h->n_ctx;
    if (!h->arch->long_context) return 0;
    h->q_scale = get_number(r, "attention.temperature_scale", 0);
    get_count(r, "rope.scaling.original_context_length", &trained);
    if (!(h->q_scale >= 0 && h->q_scale < 100) || trained == 0 || trained > MAX_CONTEXT)
        return base_fail(r->err, BASE_E_FORMAT, "%s.attention.temperature_scale is %g over %llu tokens",
            r->arch, h->q_scale, (unsigned long long)trained);
    h->q_scale_every = (uint32_t)trained;
    return 0;
}

/*
 * Pairs are dealt out to time, height and width in turn, as many to each as its section says; in a text all
 * three are the token's place, so RoPE is the plain one, but for pairs that no section has.
 */
static int check_sections(const reader *r, const model_hyper *h)
{
    char key[96];
    gguf_value_type type;
    uint64_t n;
    double section;
    if (!gguf_get_array(r->file, key_of(r, "rope.dimension_sections", key), &type, &n)) return 0;
    for (uint32_t i = 0; i < h->n_rot / 2; i++)
        if (i % 3 >= n || !gguf_array_num(r->file, key, i % 3, &section) || !(i < 3 * section))
            return base_fail(r->err, BASE_E_UNSUPPORTED,
                "%s leave pair %u of %u to none of three; kvist computes RoPE over all of them", key, i,
                h->n_rot / 2);
    return 0;
}

static int read_rope(const reader *r, model_hyper *h)
{
    uint64_t n_rot = h->head_dim;
    double factor;

    get_count(r, "rope.dimension_count", &n_rot);
    if (n_rot < 2 || n_rot > h->head_dim || n_rot % 2)
        return base_fail(r->err, BASE_E_FORMAT, "rope.dimension_count is %llu with heads of %u",
            (unsigned long long)n_rot, h->head_dim);
    h->n_rot = (uint32_t)n_rot;
    h->rope_base = get_number(r, "rope.freq_base", 10000);
    factor = get_number(r, "rope.scaling.factor", get_number(r, "rope.scale_linear", 1));
    if (factor == 0) factor = 1;
    if (!(h->rope_base > 1 && isfinite(h->rope_base)) || !(factor >= 1 && isfinite(factor)))
        return base_fail(r->err, BASE_E_FORMAT, "rope.freq_base %g and scaling factor %g make no sense",
            h->rope_base, factor);
    h->rope_factor = factor;
    h->rope_growth = 1;
    for (uint32_t l = 0; h->arch->unturned_every && l < h->n_layer; l++)
        h->unturned[l / 64] |= (uint64_t)((l + 1) % h->arch->unturned_every == 0) << l % 64;
    return h->arch->rows_every ? check_sections(r, h) : 0;
}

/*
 * A mixture as Qwen's: softmax over all experts, of the chosen their share, nothing scaled, and one that all
 * tokens go to where the architecture has it. Keys that ask for more are refused by name.
 */
static int read_experts(const reader *r, model_hyper *h)
{
    static const char *const others[] = {
        "expert_shared_count", "expert_group_count", "leading_dense_block_count"};
    uint64_t value;
    int rc;

    if (!h->arch->experts) {
        if (!get_count(r, "expert_count", &value) || value == 0) return 0;
    }
    if (!h->arch->experts && !h->arch->beside) {
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "a mixture of %llu experts is not built for the architecture %s; those of qwen3moe are",
            (unsigned long long)value, r->arch);
    }
    if ((rc = need_count(r, "expert_count", MAX_EXPERTS, &h->n_experts))) return rc;
    if ((rc = need_count(r, "expert_used_count", h->n_experts, &h->n_experts_used))) return rc;
    if ((rc = need_count(r, "expert_feed_forward_length", MAX_WIDTH, &h->n_ff))) return rc;
    if (h->arch->shared &&
        (rc = need_count(r, "expert_shared_feed_forward_length", MAX_WIDTH, &h->n_ff_shared)))
        return rc;
    if (h->arch->beside && (rc = need_count(r, "feed_forward_length", MAX_WIDTH, &h->n_ff_shared))) return rc;
    if (!h->arch->shared && get_count(r, "expert_shared_feed_forward_length", &value) && value)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "%s.expert_shared_feed_forward_length is %llu, which kvist does not compute", r->arch,
            (unsigned long long)value);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (get_count(r, others[i], &value) && value > (i < 2 && (i || h->arch->shared)))
            return base_fail(r->err, BASE_E_UNSUPPORTED, "%s.%s is %llu, which kvist does not compute",
                r->arch, others[i], (unsigned long long)value);
    /* 3 is a softmax over the chosen: the shares that 1 has once they are made to add up to 1. */
    if (get_count(r, "expert_gating_func", &value) && value > 1 && value != 3)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "%s.expert_gating_func is %llu; 1 and 3, softmaxes "
            "over all and over the chosen, are what kvist computes",
            r->arch, (unsigned long long)value);
    double scale = get_number(r, "expert_weights_scale", 1);
    if (scale != 0 && scale != 1)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "%s.expert_weights_scale is %g, which kvist does not compute", r->arch, scale);
    if (h->n_ff % 32 || h->n_embd % 32 || h->n_ff_shared % 32)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "experts of %u x %u; multiples of 32 are what kvist computes", h->n_embd, h->n_ff);
    return 0;
}

static int read_heads(const reader *r, model_hyper *h)
{
    uint64_t key_length, value_length;
    int rc = need_count(r, "attention.head_count", MAX_HEADS, &h->n_head);
    if (rc) return rc;
    h->n_head_kv = h->n_head;
    if (get_count(r, "attention.head_count_kv", &key_length) &&
        (rc = need_count(r, "attention.head_count_kv", MAX_HEADS, &h->n_head_kv)))
        return rc;
    key_length = h->n_embd / h->n_head;
    get_count(r, "attention.key_length", &key_length);
    value_length = key_length;
    get_count(r, "attention.value_length", &value_length);
    if (h->n_head % h->n_head_kv)
        return base_fail(
            r->err, BASE_E_FORMAT, "%u query heads do not divide by %u KV heads", h->n_head, h->n_head_kv);
    if (key_length != value_length)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "keys of %llu and values of %llu: kvist needs them alike", (unsigned long long)key_length,
            (unsigned long long)value_length);
    if (key_length == 0 || key_length > MAX_HEAD_DIM || key_length % 16)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "heads of %llu; a multiple of 16 up to %d is what kvist computes", (unsigned long long)key_length,
            MAX_HEAD_DIM);
    h->head_dim = (uint32_t)key_length;
    return 0;
}

const model_arch *model_arch_at(size_t i)
{
    return i < N_ARCHITECTURES ? &architectures[i] : NULL;
}

/* Known by its name: what is missing, and what to use instead. Else: what there is. */
static int refuse_arch(base_str name, base_err *err)
{
    base_buf known = {0};
    const model_arch_refused *r;
    for (size_t i = 0; (r = model_arch_refused_at(i)); i++)
        if (base_str_equal(name, r->name))
            return base_fail(err, BASE_E_UNSUPPORTED,
                "architecture \"%s\" (%s) is not built: it needs %s. Use "
                "%s instead; `kvist model list --all` shows what runs",
                r->name, r->families, r->lacks, r->instead);
    for (size_t i = 0; i < N_ARCHITECTURES; i++)
        base_buf_printf(&known, "%s%s", i ? ", " : "", architectures[i].name);
    base_fail(err, BASE_E_UNSUPPORTED,
        "architecture \"%.*s\" is not built; kvist runs %s (`kvist model list --all` says which models these are)",
        (int)(name.len < 40 ? name.len : 40), name.ptr, known.data);
    base_buf_free(&known);
    return BASE_E_UNSUPPORTED;
}

static int find_arch(const gguf_file *f, const model_arch **ret, base_err *err)
{
    base_str name;
    if (!gguf_get_str(f, "general.architecture", &name))
        return base_fail(err, BASE_E_FORMAT, "the file names no architecture (general.architecture)");
    for (size_t i = 0; i < N_ARCHITECTURES; i++)
        if (base_str_equal(name, architectures[i].name)) {
            *ret = &architectures[i];
            return 0;
        }
    return refuse_arch(name, err);
}

/*
 * Layers that read a window only, where the architecture has them; other models end their session at the
 * window.
 */
static int read_window(const reader *r, model_hyper *h)
{
    char key[96];
    gguf_value_type type;
    uint64_t window = 0, every = h->arch->window_every, n;
    double is;

    get_count(r, "attention.sliding_window", &window);
    if (window == 0) return 0;
    if (window > MAX_CONTEXT) window = MAX_CONTEXT;
    if (every == 0) { /* inside its window a sliding-window model is a plain one */
        if (window < h->n_ctx) h->n_ctx = (uint32_t)window;
        return 0;
    }
    const bool is_listed =
        gguf_get_array(r->file, key_of(r, "attention.sliding_window_pattern", key), &type, &n);
    if (!is_listed) get_count(r, "attention.sliding_window_pattern", &every);
    if (every == 0 || every > MAX_LAYERS || (is_listed && n < h->n_layer))
        return base_fail(
            r->err, BASE_E_FORMAT, "%s does not say which of %u layers have a window", key, h->n_layer);
    h->window = (uint32_t)window;
    for (uint32_t l = 0; l < h->n_layer; l++) {
        if (!is_listed)
            is = (l + 1) % every != 0;
        else if (!gguf_array_num(r->file, key, l, &is))
            return base_fail(r->err, BASE_E_FORMAT, "%s is no list of numbers", key);
        h->windowed[l / 64] |= (uint64_t)(is != 0) << l % 64;
    }
    h->window_rope_base = get_number(r, "rope.freq_base_swa", h->arch->window_rope_base);
    if (!h->arch->window_rope_base) {
        if (h->window_rope_base != 0 && h->window_rope_base != h->rope_base)
            return base_fail(r->err, BASE_E_UNSUPPORTED,
                "%s.rope.freq_base_swa is %g; kvist turns all of its layers by %g", r->arch,
                h->window_rope_base, h->rope_base);
        h->window_rope_base = 0;
    } else if (!(h->window_rope_base > 1 && isfinite(h->window_rope_base)))
        return base_fail(r->err, BASE_E_FORMAT, "%s.rope.freq_base_swa is %g", r->arch, h->window_rope_base);
    return 0;
}

/* A number for each layer, or one for all; false: the file has neither. */
static bool count_of_layer(const reader *r, const char *name, uint32_t layer, uint32_t max, uint32_t *ret)
{
    char key[96];
    uint64_t whole;
    double one;
    if (gguf_get_u64(r->file, key_of(r, name, key), &whole))
        one = (double)whole;
    else if (!gguf_array_num(r->file, key, layer, &one))
        return false;
    if (!(one >= 1 && one <= max) || one != floor(one)) return false;
    *ret = (uint32_t)one;
    return true;
}

/* The number of every layer of one kind, which must be the same; *ret stays 0 where there is no such layer. */
static int count_of_kind(const reader *r, const model_hyper *h, const char *name, uint32_t max,
    bool (*is_kind)(const model_hyper *h, uint32_t layer), bool kind, uint32_t *ret)
{
    *ret = 0;
    for (uint32_t l = 0; l < h->n_layer; l++) {
        uint32_t one = 0;
        if (is_kind(h, l) != kind) continue;
        if (!count_of_layer(r, name, l, max, &one) || (*ret && one != *ret))
            return base_fail(r->err, BASE_E_UNSUPPORTED,
                "%s.%s differs among layers of one kind (layer %u), which kvist does not compute", r->arch,
                name, l);
        *ret = one;
    }
    return 0;
}

/* The last layers may read the rows of others, and be wider (Gemma 4's E models). */
static int read_sharing(const reader *r, model_hyper *h)
{
    uint64_t sharing = 0, embd = 0;
    int rc;
    if (!h->arch->per_layer) return 0;
    get_count(r, "attention.shared_kv_layers", &sharing);
    get_count(r, "embedding_length_per_layer_input", &embd);
    if (embd > MAX_WIDTH || embd % 32)
        return base_fail(r->err, BASE_E_UNSUPPORTED, "%s.embedding_length_per_layer_input is %llu", r->arch,
            (unsigned long long)embd);
    h->n_embd_layer = (uint32_t)embd;
    if (sharing == 0) return 0;
    if (h->n_experts)
        return base_fail(r->err, BASE_E_UNSUPPORTED, "a mixture whose layers share rows is not built");
    if (sharing >= h->n_layer)
        return base_fail(r->err, BASE_E_FORMAT, "of %u layers %llu share rows of others", h->n_layer,
            (unsigned long long)sharing);
    h->n_sharing = (uint32_t)sharing;
    h->n_rows_layers = h->n_layer - h->n_sharing;
    for (uint32_t l = h->n_rows_layers; l < h->n_layer; l++)
        if (model_layer_has_window(h, model_layer_rows(h, l)) != model_layer_has_window(h, l))
            return base_fail(
                r->err, BASE_E_FORMAT, "layer %u shares rows, and no layer before has its kind", l);
    rc = count_of_kind(r, h, "feed_forward_length", MAX_WIDTH, model_layer_is_sharing, false, &h->n_ff);
    if (!rc)
        rc = count_of_kind(
            r, h, "feed_forward_length", MAX_WIDTH, model_layer_is_sharing, true, &h->n_ff_sharing);
    return rc;
}

/*
 * Heads of two sizes: lanes as large as the larger ones, and as many as hold the layer that has most (lanes.h).
 * What is read so far is of the layers that read everything.
 */
static int read_apart(const reader *r, model_hyper *h)
{
    uint64_t small = h->head_dim, value = 0, n_rot;
    int rc;
    if (!h->arch->apart || !h->window) return 0;
    get_count(r, "attention.key_length_swa", &small);
    value = small;
    get_count(r, "attention.value_length_swa", &value);
    n_rot = small;
    get_count(r, "rope.dimension_count_swa", &n_rot);
    if ((rc = count_of_kind(r, h, "attention.head_count_kv", MAX_HEADS, model_layer_has_window, true,
             &h->n_head_kv_window)) ||
        (rc = count_of_kind(
             r, h, "attention.head_count_kv", MAX_HEADS, model_layer_has_window, false, &h->n_head_kv_all)))
        return rc;
    if (h->n_head_kv_window == 0 || h->n_head_kv_all == 0)
        return base_fail(
            r->err, BASE_E_UNSUPPORTED, "layers with a window and without are what kvist computes");
    if (small == 0 || small % 16 || small != value || h->head_dim % small || n_rot > small || n_rot % 2 ||
        n_rot < 2)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "heads of %llu (values of %llu, %llu turned) beside those of %u", (unsigned long long)small,
            (unsigned long long)value, (unsigned long long)n_rot, h->head_dim);
    /* Heads that lie side by side in a lane. */
    const uint32_t beside = h->n_head_kv_window * (uint32_t)small / h->head_dim,
                   lanes = beside > h->n_head_kv_all ? beside : h->n_head_kv_all;
    if (lanes % h->n_head_kv_all || h->n_head % lanes || h->n_head % h->n_head_kv_window ||
        (h->n_head_kv_window > lanes ? h->n_head_kv_window * small != lanes * (uint64_t)h->head_dim
                                     : lanes % h->n_head_kv_window != 0))
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "%u heads of %llu beside %u of %u for %u queries do not fill lanes of one size",
            h->n_head_kv_window, (unsigned long long)small, h->n_head_kv_all, h->head_dim, h->n_head);
    h->window_head_dim = (uint32_t)small;
    h->window_n_rot = (uint32_t)n_rot;
    h->n_head_kv = lanes;
    return 0;
}

/* Layers one by one, where the file lists them; else the last of every few has rows. */
static int read_kinds(const reader *r, model_hyper *h)
{
    uint64_t every = h->arch->rows_every, n;
    char key[96];
    gguf_value_type type;
    double is;

    get_count(r, "full_attention_interval", &every);
    const bool listed = gguf_get_array(r->file, key_of(r, "attention.recurrent_layers", key), &type, &n);
    if ((listed && n < h->n_layer) || every == 0)
        return base_fail(
            r->err, BASE_E_FORMAT, "%s does not say which of %u layers keep a state", r->arch, h->n_layer);
    for (uint32_t l = 0; l < h->n_layer; l++) {
        if (!listed)
            is = (l + 1) % every != 0;
        else if (!gguf_array_num(r->file, key, l, &is))
            return base_fail(r->err, BASE_E_FORMAT, "%s is no list of numbers", key);
        h->recurrent[l / 64] |= (uint64_t)(is != 0) << l % 64;
        h->n_rows_layers -= is != 0;
    }
    if (h->n_rows_layers == 0 || h->n_rows_layers == h->n_layer)
        return base_fail(r->err, BASE_E_UNSUPPORTED, "of %u layers %u have rows; kvist needs both kinds",
            h->n_layer, h->n_rows_layers);
    return 0;
}

/* Layers that keep a state (gated delta net): keys and values of one size, a whole number of heads. */
static int read_state(const reader *r, model_hyper *h)
{
    uint32_t inner;
    int rc;

    h->n_rows_layers = h->n_layer;
    if (!h->arch->rows_every) return 0;
    if ((rc = read_kinds(r, h))) return rc;
    if ((rc = need_count(r, "ssm.conv_kernel", OPS_CONV_TAPS, &h->n_taps))) return rc;
    if ((rc = need_count(r, "ssm.state_size", 256, &h->state_dim))) return rc;
    if ((rc = need_count(r, "ssm.group_count", MAX_HEADS, &h->n_state_keys))) return rc;
    if ((rc = need_count(r, "ssm.time_step_rank", MAX_HEADS, &h->n_state_values))) return rc;
    if ((rc = need_count(r, "ssm.inner_size", MAX_WIDTH, &inner))) return rc;
    if (h->n_taps < 2 || h->state_dim % OPS_DELTA_COLUMNS || inner != h->n_state_values * h->state_dim ||
        h->n_state_values % h->n_state_keys)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "states of %u heads of %u for %u heads of keys, %u in all, over %u tokens: kvist computes heads "
            "of a multiple of %d that divide evenly",
            h->n_state_values, h->state_dim, h->n_state_keys, inner, h->n_taps, OPS_DELTA_COLUMNS);
    return 0;
}

/* Blocks that predict tokens ahead stand behind the layers and are counted with them. */
static int read_layers(const reader *r, model_hyper *h)
{
    uint64_t ahead = 0;
    int rc = need_count(r, "block_count", MAX_LAYERS, &h->n_blocks);
    if (rc) return rc;
    if (h->arch->rows_every) get_count(r, "nextn_predict_layers", &ahead);
    if (ahead >= h->n_blocks)
        return base_fail(r->err, BASE_E_FORMAT, "%s.nextn_predict_layers is %llu of %u blocks", r->arch,
            (unsigned long long)ahead, h->n_blocks);
    h->n_layer = h->n_blocks - (uint32_t)ahead;
    return 0;
}

/*
 * Granite multiplies the embedding, what each branch adds, and divides the logits. A branch's factor is the same in all layers,
 * so the stream is kept divided by it: then branches are added as they are, and norms see the same but for their epsilon.
 */
static int read_scales(const reader *r, model_hyper *h)
{
    char key[96];
    bool turns = true;
    h->embd_scale = h->arch->embd_scale ? sqrtf((float)h->n_embd) : 1;
    h->logit_scale = 1;
    if (!h->arch->scaled) return 0;
    const double embd = get_number(r, "embedding_scale", 1), branch = get_number(r, "residual_scale", 1),
                 logits = get_number(r, "logit_scale", 1);
    if (!(embd > 1e-6 && embd < 1e6) || !(branch > 1e-3 && branch < 1e3) || !(logits > 1e-6 && logits < 1e6))
        return base_fail(
            r->err, BASE_E_FORMAT, "%s's scales %g, %g and %g make no sense", r->arch, embd, branch, logits);
    if (gguf_get_bool(r->file, key_of(r, "rope.scaling.finetuned", key), &turns) && !turns)
        return base_fail(
            r->err, BASE_E_UNSUPPORTED, "%s says that nothing is turned by RoPE, which is not built", key);
    h->embd_scale = (float)(embd / branch);
    h->norm_eps = (float)(h->norm_eps / (branch * branch));
    h->logit_scale = (float)(1 / logits);
    return 0;
}

int model_arch_read(const gguf_file *f, model_hyper *ret, base_err *err)
{
    base_err own;
    model_hyper h = {0};
    reader r = {.file = f, .err = err ? err : &own};
    const gguf_tensor *embd;
    int rc;

    if ((rc = find_arch(f, &h.arch, r.err))) return rc;
    r.arch = h.arch->name;
    if ((rc = refuse_extras(&r, h.arch))) return rc;
    if ((rc = read_layers(&r, &h)) || (rc = read_state(&r, &h))) return rc;
    if ((rc = need_count(&r, "embedding_length", MAX_WIDTH, &h.n_embd))) return rc;
    if ((rc = read_experts(&r, &h))) return rc;
    if (!h.n_experts && !count_of_layer(&r, "feed_forward_length", 0, MAX_WIDTH, &h.n_ff) &&
        (rc = need_count(&r, "feed_forward_length", MAX_WIDTH, &h.n_ff)))
        return rc;
    if ((rc = need_count(&r, "context_length", MAX_CONTEXT, &h.n_ctx))) return rc;
    if ((rc = read_heads(&r, &h))) return rc;
    if ((rc = read_rope(&r, &h))) return rc;
    if ((rc = read_window(&r, &h)) || (rc = read_sharing(&r, &h)) || (rc = read_apart(&r, &h))) return rc;
    h.norm_eps = (float)get_number(&r, "attention.layer_norm_rms_epsilon", 1e-5);
    if (!(h.norm_eps > 0 && h.norm_eps < 1))
        return base_fail(r.err, BASE_E_FORMAT, "layer_norm_rms_epsilon is %g", (double)h.norm_eps);
    if ((rc = read_scales(&r, &h))) return rc;
    double per_head = h.n_layer == h.arch->wide_layers ? (double)(h.n_embd / h.n_head) : h.head_dim;
    h.attn_scale = (float)get_number(&r, "attention.scale", h.arch->unscaled ? 1 : 1 / sqrt(per_head));
    h.final_cap = h.arch->capped ? (float)get_number(&r, "final_logit_softcapping", 0) : 0;
    if (!(h.final_cap >= 0 && h.final_cap < 1e6f))
        return base_fail(r.err, BASE_E_FORMAT, "final_logit_softcapping is %g", (double)h.final_cap);
    if (!(h.attn_scale > 0 && h.attn_scale < 1e6f))
        return base_fail(r.err, BASE_E_FORMAT, "attention.scale is %g", (double)h.attn_scale);
    if ((rc = read_yarn(&r, &h)) || (rc = read_query_scale(&r, &h)) || (rc = read_long_rope(&r, &h)))
        return rc;
    /* The vocabulary is as large as its embedding says; the metadata key is optional and sometimes padded. */
    embd = gguf_find_tensor(f, "token_embd.weight");
    if (!embd) return base_fail(r.err, BASE_E_FORMAT, "tensor token_embd.weight is missing");
    if (embd->ne[1] == 0 || embd->ne[1] > MAX_VOCAB)
        return base_fail(r.err, BASE_E_LIMIT, "a vocabulary of %llu", (unsigned long long)embd->ne[1]);
    h.n_vocab = (uint32_t)embd->ne[1];
    *ret = h;
    return 0;
}
