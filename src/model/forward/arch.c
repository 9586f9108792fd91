/*
 * Reading hyper-parameters and binding tensors: see arch.h. Facts about each family: its llama.cpp graph
 * (src/llama-model.cpp).
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
static int refuse_extras(const reader *r)
{
    static const char *const numbers[] = {"final_logit_softcapping", "attn_logit_softcapping", "logit_scale",
        "residual_scale", "embedding_scale", "attention.clamp_kqv", "attention.max_alibi_bias"};
    char key[96];
    base_str scaling;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double value = get_number(r, numbers[i], 0);
        if (value != 0)
            return base_fail(r->err, BASE_E_UNSUPPORTED, "%s.%s is %g, which kvist does not compute", r->arch,
                numbers[i], value);
    }
    if (gguf_get_str(r->file, key_of(r, "rope.scaling.type", key), &scaling) &&
        !base_str_equal(scaling, "none") && !base_str_equal(scaling, "linear") &&
        !base_str_equal(scaling, "yarn"))
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
    h->attn_scale *= (float)(magnitude * magnitude); /* of the key and of the query */
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
            "%s.expert_gating_func is %llu; 1 and 3, softmaxes over all and over the chosen, are what kvist "
            "computes",
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
    if (key_length == 0 || key_length > 256 || key_length % 16)
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "heads of %llu; a multiple of 16 up to 256 is what kvist computes",
            (unsigned long long)key_length);
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
                "architecture \"%s\" (%s) is not built: it needs %s. Use %s instead; `kvist model list "
                "--all` "
                "shows what runs",
                r->name, r->families, r->lacks, r->instead);
    for (size_t i = 0; i < N_ARCHITECTURES; i++)
        base_buf_printf(&known, "%s%s (%s)", i ? ", " : "", architectures[i].name, architectures[i].families);
    base_fail(err, BASE_E_UNSUPPORTED, "architecture \"%.*s\" is not built; kvist runs %s",
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
    uint64_t window = 0, every = h->arch->window_every;

    get_count(r, "attention.sliding_window", &window);
    if (window == 0) return 0;
    if (window > MAX_CONTEXT) window = MAX_CONTEXT;
    if (every == 0) { /* inside its window a sliding-window model is a plain one */
        if (window < h->n_ctx) h->n_ctx = (uint32_t)window;
        return 0;
    }
    if (gguf_get_array(r->file, key_of(r, "attention.sliding_window_pattern", key), &type, NULL))
        return base_fail(r->err, BASE_E_UNSUPPORTED,
            "%s lists its layers one by one; kvist reads one number, every how many layers one has no window",
            key);
    get_count(r, "attention.sliding_window_pattern", &every);
    if (every == 0 || every > MAX_LAYERS)
        return base_fail(r->err, BASE_E_FORMAT, "%s is %llu", key, (unsigned long long)every);
    h->window = (uint32_t)window;
    h->window_every = (uint32_t)every;
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

int model_arch_read(const gguf_file *f, model_hyper *ret, base_err *err)
{
    base_err own;
    model_hyper h = {0};
    reader r = {.file = f, .err = err ? err : &own};
    const gguf_tensor *embd;
    int rc;

    if ((rc = find_arch(f, &h.arch, r.err))) return rc;
    r.arch = h.arch->name;
    if ((rc = refuse_extras(&r))) return rc;
    if ((rc = read_layers(&r, &h)) || (rc = read_state(&r, &h))) return rc;
    if ((rc = need_count(&r, "embedding_length", MAX_WIDTH, &h.n_embd))) return rc;
    if ((rc = read_experts(&r, &h))) return rc;
    if (!h.n_experts && (rc = need_count(&r, "feed_forward_length", MAX_WIDTH, &h.n_ff))) return rc;
    if ((rc = need_count(&r, "context_length", MAX_CONTEXT, &h.n_ctx))) return rc;
    if ((rc = read_heads(&r, &h))) return rc;
    if ((rc = read_rope(&r, &h))) return rc;
    if ((rc = read_window(&r, &h))) return rc;
    h.norm_eps = (float)get_number(&r, "attention.layer_norm_rms_epsilon", 1e-5);
    if (!(h.norm_eps > 0 && h.norm_eps < 1))
        return base_fail(r.err, BASE_E_FORMAT, "layer_norm_rms_epsilon is %g", (double)h.norm_eps);
    double per_head = h.n_layer == h.arch->wide_layers ? (double)(h.n_embd / h.n_head) : h.head_dim;
    h.attn_scale = (float)get_number(&r, "attention.scale", 1 / sqrt(per_head));
    if (!(h.attn_scale > 0 && h.attn_scale < 1e6f))
        return base_fail(r.err, BASE_E_FORMAT, "attention.scale is %g", (double)h.attn_scale);
    if ((rc = read_yarn(&r, &h)) || (rc = read_query_scale(&r, &h))) return rc;
    /* The vocabulary is as large as its embedding says; the metadata key is optional and sometimes padded. */
    embd = gguf_find_tensor(f, "token_embd.weight");
    if (!embd) return base_fail(r.err, BASE_E_FORMAT, "tensor token_embd.weight is missing");
    if (embd->ne[1] == 0 || embd->ne[1] > MAX_VOCAB)
        return base_fail(r.err, BASE_E_LIMIT, "a vocabulary of %llu", (unsigned long long)embd->ne[1]);
    h.n_vocab = (uint32_t)embd->ne[1];
    *ret = h;
    return 0;
}

typedef enum arch_presence {
    ARCH_MUST,
    ARCH_ROWS,    /* in layers with rows */
    ARCH_UNGATED, /* in those whose output passes no gate */
    ARCH_GATED,   /* in those whose output does */
    ARCH_STATE,   /* in layers that keep a state */
    ARCH_APART,   /* ... whose beta and alpha are matrices of their own */
    ARCH_TOGETHER,
    ARCH_FFN_NORM,
    ARCH_FFN_PRE, /* the same norm under its other name */
    ARCH_SHARED,
    ARCH_BIAS,
    ARCH_BIASES, /* those that few have */
    ARCH_SINKS,
    ARCH_QK_NORM,
    ARCH_POST_NORM,
    ARCH_DENSE,   /* one feed-forward for all tokens */
    ARCH_EXPERTS, /* what chooses experts */
    ARCH_STACK,   /* a matrix for each expert */
} arch_presence;

/* Does the architecture compute such a tensor, and can it do without? */
typedef struct arch_demand {
    bool used, must;
} arch_demand;

static arch_demand demand_of(const model_hyper *h, uint32_t layer, arch_presence presence)
{
    const model_arch *a = h->arch;
    const bool is_hybrid = a->rows_every, has_rows = !model_layer_is_recurrent(h, layer);
    const arch_demand demands[] = {
        [ARCH_MUST] = {true, true},
        [ARCH_ROWS] = {has_rows, true},
        [ARCH_UNGATED] = {has_rows && !is_hybrid, true},
        [ARCH_GATED] = {has_rows && is_hybrid, true},
        [ARCH_STATE] = {!has_rows, true},
        [ARCH_APART] = {!has_rows && !a->state_neighbours, true},
        [ARCH_TOGETHER] = {!has_rows && a->state_neighbours, true},
        [ARCH_FFN_NORM] = {!a->ffn_pre, true},
        [ARCH_FFN_PRE] = {a->ffn_pre, true},
        [ARCH_SHARED] = {a->shared, true},
        [ARCH_BIAS] = {has_rows && !is_hybrid, a->qkv_bias},
        [ARCH_BIASES] = {a->biases, true},
        [ARCH_SINKS] = {a->sinks, true},
        [ARCH_QK_NORM] = {has_rows && a->qk_norm, true},
        [ARCH_POST_NORM] = {a->post_norm, true},
        [ARCH_DENSE] = {!a->experts, true},
        [ARCH_EXPERTS] = {a->experts, true},
        [ARCH_STACK] = {a->experts, true},
    };
    return demands[presence];
}

/* What a tensor must be: n_out 0 a vector, n_stack 0 or 1 one matrix. */
typedef struct arch_shape {
    uint64_t n_in, n_out, n_stack;
} arch_shape;

/* Shape and type of one tensor; vectors are F32, matrices any type of the table. */
static int check_tensor(const gguf_tensor *t, const char *name, arch_shape want, base_err *err)
{
    uint32_t elements, bytes;
    const uint64_t n_in = want.n_in, n_out = want.n_out;
    const uint64_t want_out = n_out ? n_out : 1, want_stack = want.n_stack ? want.n_stack : 1;

    if (t->ne[0] != n_in || t->ne[1] != want_out || t->ne[2] != want_stack || t->ne[3] != 1)
        return base_fail(err, BASE_E_FORMAT,
            "tensor %s is %llu x %llu x %llu; the metadata asks for %llu x %llu x %llu", name,
            (unsigned long long)t->ne[0], (unsigned long long)t->ne[1], (unsigned long long)t->ne[2],
            (unsigned long long)n_in, (unsigned long long)want_out, (unsigned long long)want_stack);
    if (!gguf_tensor_block(t->type, &elements, &bytes) || (!n_out && t->type != GGUF_TENSOR_F32))
        return base_fail(err, BASE_E_UNSUPPORTED, "tensor %s has type %s, which is not built here", name,
            gguf_tensor_type_name(t->type));
    return 0;
}

static int bind_one(const gguf_file *f, const char *name, arch_shape shape, bool must,
    const gguf_tensor **ret, uint64_t *n_bound, base_err *err)
{
    const gguf_tensor *t = gguf_find_tensor(f, name);
    *ret = NULL;
    if (!t) return must ? base_fail(err, BASE_E_FORMAT, "tensor %s is missing", name) : 0;
    int rc = check_tensor(t, name, shape, err);
    if (rc) return rc;
    *ret = t;
    ++*n_bound;
    return 0;
}

static int bind_layer(const gguf_file *f, const model_hyper *h, uint32_t layer, model_layer_tensors *ret,
    uint64_t *n_bound, base_err *err)
{
    const struct {
        const char *name;
        uint64_t n_in, n_out;
        arch_presence presence;
        const gguf_tensor **to;
    } table[] = {
#define ROW(field, name, n_in, n_out, presence) {name, n_in, n_out, presence, &ret->field},
        MODEL_LAYER_TENSORS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char name[64];
        arch_demand demand = demand_of(h, layer, table[i].presence);
        if (!demand.used) continue;
        snprintf(name, sizeof name, "blk.%u.%s", layer, table[i].name);
        arch_shape shape = {
            table[i].n_in, table[i].n_out, table[i].presence == ARCH_STACK ? h->n_experts : 1};
        int rc = bind_one(f, name, shape, demand.must, table[i].to, n_bound, err);
        if (rc) return rc;
    }
    return 0;
}

bool model_arch_is_left_out(const model_hyper *h, const gguf_tensor *t)
{
    static const char *const encoders[] = {"v.", "a.", "mm."};
    char name[64];
    unsigned block;
    for (size_t i = 0; i < sizeof encoders / sizeof *encoders; i++)
        if (t->name.len > strlen(encoders[i]) && !memcmp(t->name.ptr, encoders[i], strlen(encoders[i])))
            return true;
    snprintf(name, sizeof name, "%.*s", (int)(t->name.len < 63 ? t->name.len : 63), t->name.ptr);
    return sscanf(name, "blk.%u.", &block) == 1 && block >= h->n_layer && block < h->n_blocks;
}

/* A tensor nobody bound would be arithmetic left out. Name the first. */
static int refuse_unbound(const gguf_file *f, const model_hyper *h, const model_tensors *t, base_err *err)
{
    for (uint64_t i = 0; i < gguf_n_tensors(f); i++) {
        const gguf_tensor *one = gguf_tensor_at(f, i);
        bool known = one == t->token_embd || one == t->output_norm || one == t->output ||
                     one == t->rope_freqs || model_arch_is_left_out(h, one);
        for (uint32_t l = 0; l < h->n_layer && !known; l++) {
            const model_layer_tensors *layer = &t->layers[l];
#define KNOWN(field, name, n_in, n_out, presence) known = known || one == layer->field;
            MODEL_LAYER_TENSORS(KNOWN)
#undef KNOWN
        }
        if (!known)
            return base_fail(err, BASE_E_UNSUPPORTED,
                "tensor %.*s is nothing that this architecture computes",
                (int)(one->name.len < 64 ? one->name.len : 64), one->name.ptr);
    }
    return 0;
}

static int bind_all(
    const gguf_file *f, const model_hyper *h, model_tensors *t, uint64_t *n_bound, base_err *err)
{
    int rc;
    if ((rc = bind_one(f, "token_embd.weight", (arch_shape){h->n_embd, h->n_vocab}, true, &t->token_embd,
             n_bound, err)))
        return rc;
    if ((rc = bind_one(
             f, "output_norm.weight", (arch_shape){h->n_embd}, true, &t->output_norm, n_bound, err)))
        return rc;
    if ((rc = bind_one(
             f, "output.weight", (arch_shape){h->n_embd, h->n_vocab}, false, &t->output, n_bound, err)))
        return rc;
    if ((rc = bind_one(
             f, "rope_freqs.weight", (arch_shape){h->n_rot / 2}, false, &t->rope_freqs, n_bound, err)))
        return rc;
    if (!t->output) t->output = t->token_embd;
    for (uint32_t l = 0; l < h->n_layer; l++)
        if ((rc = bind_layer(f, h, l, &t->layers[l], n_bound, err))) return rc;
    return 0;
}

int model_arch_bind(const gguf_file *f, const model_hyper *h, model_tensors *ret, base_err *err)
{
    model_tensors t = {.layers = base_xcalloc(h->n_layer, sizeof *t.layers)};
    uint64_t n_bound = 0;
    int rc = bind_all(f, h, &t, &n_bound, err);
    if (!rc && n_bound < gguf_n_tensors(f)) rc = refuse_unbound(f, h, &t, err);
    if (rc) {
        model_arch_unbind(&t);
        return rc;
    }
    *ret = t;
    return 0;
}

void model_arch_unbind(model_tensors *t)
{
    free(t->layers);
    t->layers = NULL;
}
