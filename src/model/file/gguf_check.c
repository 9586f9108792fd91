/*
 * Whether a GGUF file's metadata can be meant: known keys have their type, vocabulary arrays agree in length,
 * special ids lie inside the vocabulary, head counts divide. Everything behind gguf_open may rely on it.
 *
 * Two tables of names; tensor shapes against these numbers are checked by the model that knows its
 * architecture.
 */
#include "model/file/gguf_check.h"
#include "model/file/gguf_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef enum kind { INTEGER, NUMBER, FLAG, TEXT, TEXTS, NUMBERS, INTEGERS, INTEGER_OR_ARRAY } kind;

static const char *const kind_names[] = {
    [INTEGER] = "an integer",
    [NUMBER] = "a number",
    [FLAG] = "a bool",
    [TEXT] = "a string",
    [TEXTS] = "an array of strings",
    [NUMBERS] = "an array of numbers",
    [INTEGERS] = "an array of integers",
    [INTEGER_OR_ARRAY] = "an integer or an array of integers",
};

typedef struct rule {
    const char *name;
    kind kind;
} rule;

/* clang-format off */
static const rule whole_names[] = {
    {"general.architecture", TEXT}, {"general.name", TEXT}, {"general.basename", TEXT},
    {"tokenizer.ggml.model", TEXT}, {"tokenizer.ggml.pre", TEXT}, {"tokenizer.chat_template", TEXT},
    {"tokenizer.ggml.tokens", TEXTS}, {"tokenizer.ggml.merges", TEXTS},
    {"tokenizer.ggml.scores", NUMBERS}, {"tokenizer.ggml.token_type", INTEGERS},
    {"tokenizer.ggml.add_bos_token", FLAG}, {"tokenizer.ggml.add_eos_token", FLAG}, {"tokenizer.ggml.add_space_prefix", FLAG},
    {"split.no", INTEGER}, {"split.count", INTEGER}, {"split.tensors.count", INTEGER},
};

/* Behind "<architecture>." */
static const rule architecture_names[] = {
    {"block_count", INTEGER}, {"context_length", INTEGER}, {"embedding_length", INTEGER}, {"vocab_size", INTEGER},
    {"feed_forward_length", INTEGER_OR_ARRAY}, {"attention.head_count", INTEGER_OR_ARRAY},
    {"attention.head_count_kv", INTEGER_OR_ARRAY}, {"attention.key_length", INTEGER}, {"attention.value_length", INTEGER},
    {"attention.layer_norm_rms_epsilon", NUMBER}, {"attention.sliding_window", INTEGER_OR_ARRAY}, {"attention.scale", NUMBER},
    {"rope.dimension_count", INTEGER}, {"rope.freq_base", NUMBER}, {"rope.freq_base_swa", NUMBER}, {"rope.scale_linear", NUMBER},
    {"rope.scaling.type", TEXT}, {"rope.scaling.factor", NUMBER}, {"rope.scaling.original_context_length", INTEGER},
    {"rope.scaling.attn_factor", NUMBER}, {"final_logit_softcapping", NUMBER},
};
/* clang-format on */

#define N_OF(a) (sizeof(a) / sizeof(a)[0])

static bool is_integer_type(gguf_value_type t)
{
    return t != GGUF_F32 && t != GGUF_F64 && t != GGUF_BOOL && t != GGUF_STRING && t != GGUF_ARRAY;
}

static bool is_number_type(gguf_value_type t)
{
    return is_integer_type(t) || t == GGUF_F32 || t == GGUF_F64;
}

static bool has_kind(const gguf_file *f, const char *key, gguf_value_type type, kind want)
{
    gguf_value_type element = GGUF_U8;
    bool array = gguf_get_array(f, key, &element, NULL);
    switch (want) {
    case INTEGER: return is_integer_type(type);
    case NUMBER: return is_number_type(type);
    case FLAG: return type == GGUF_BOOL;
    case TEXT: return type == GGUF_STRING;
    case TEXTS: return array && element == GGUF_STRING;
    case NUMBERS: return array && is_number_type(element);
    case INTEGERS: return array && is_integer_type(element);
    case INTEGER_OR_ARRAY: return is_integer_type(type) || (array && is_integer_type(element));
    }
    return false;
}

static const rule *find_rule(const rule *rules, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rules[i].name, name) == 0) return &rules[i];
    return NULL;
}

static int check_kinds(const gguf_file *f, base_str architecture, base_err *err)
{
    static const rule token_id = {"_token_id", INTEGER};
    for (uint64_t i = 0; i < gguf_n_keys(f); i++) {
        char key[128];
        gguf_value_type type;
        base_str k = gguf_key_at(f, i, &type);
        if (k.len >= sizeof key || memchr(k.ptr, 0, k.len)) continue; /* no name of ours */
        memcpy(key, k.ptr, k.len);
        key[k.len] = 0;
        const rule *r = find_rule(whole_names, N_OF(whole_names), key);
        size_t a = architecture.len;
        if (!r && k.len > a && key[a] == '.' && memcmp(key, architecture.ptr, a) == 0)
            r = find_rule(architecture_names, N_OF(architecture_names), key + a + 1);
        if (!r && strncmp(key, "tokenizer.ggml.", 15) == 0 && base_ends_with(key, "_token_id")) r = &token_id;
        if (r && !has_kind(f, key, type, r->kind))
            return base_fail(err, BASE_E_FORMAT, "GGUF: %s is not %s", key, kind_names[r->kind]);
    }
    return 0;
}

static int check_vocabulary(const gguf_file *f, base_err *err)
{
    uint64_t n = 0, m, id;
    if (!gguf_get_array(f, "tokenizer.ggml.tokens", NULL, &n)) return 0;
    if (n < 1 || n > INT32_MAX)
        return base_fail(err, BASE_E_FORMAT, "GGUF: a vocabulary of %" PRIu64 " pieces", n);
    static const char *const parallel[] = {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
    for (size_t i = 0; i < N_OF(parallel); i++)
        if (gguf_get_array(f, parallel[i], NULL, &m) && m != n)
            return base_fail(err, BASE_E_FORMAT, "GGUF: %s has %" PRIu64 " elements for %" PRIu64 " pieces",
                parallel[i], m, n);
    for (uint64_t i = 0; i < n; i++) {
        base_str s = {0};
        gguf_array_str(f, "tokenizer.ggml.tokens", i, &s);
        if (s.len > 65536)
            return base_fail(
                err, BASE_E_FORMAT, "GGUF: vocabulary piece %" PRIu64 " is %zu bytes long", i, s.len);
    }
    for (uint64_t i = 0; i < gguf_n_keys(f); i++) {
        char key[128];
        base_str k = gguf_key_at(f, i, NULL);
        snprintf(key, sizeof key, "%.*s", k.len < sizeof key ? (int)k.len : 0, k.ptr);
        if (strncmp(key, "tokenizer.ggml.", 15) != 0 || !base_ends_with(key, "_token_id")) continue;
        int64_t negative;
        if (gguf_get_i64(f, key, &negative) && negative == -1) continue; /* some converters write "none" so */
        if (!gguf_get_u64(f, key, &id) || id >= n)
            return base_fail(
                err, BASE_E_FORMAT, "GGUF: %s is outside of the vocabulary of %" PRIu64 " pieces", key, n);
    }
    return 0;
}

/* The scalar `name` of the architecture; `otherwise` when absent or per layer. */
static uint64_t scalar(const gguf_file *f, base_str a, const char *name, uint64_t otherwise)
{
    char key[192];
    uint64_t x;
    snprintf(key, sizeof key, "%.*s.%s", (int)a.len, a.ptr, name);
    return gguf_get_u64(f, key, &x) ? x : otherwise;
}

static int check_architecture(const gguf_file *f, base_str a, base_err *err)
{
    uint64_t blocks = scalar(f, a, "block_count", 1), embd = scalar(f, a, "embedding_length", 0);
    uint64_t heads = scalar(f, a, "attention.head_count", 0),
             kv = scalar(f, a, "attention.head_count_kv", heads);
    if (blocks < 1 || blocks > 1024)
        return base_fail(err, BASE_E_FORMAT, "GGUF: %" PRIu64 " blocks are not 1 to 1024", blocks);
    if (embd > 1u << 20)
        return base_fail(err, BASE_E_FORMAT, "GGUF: an embedding length of %" PRIu64 " is too large", embd);
    if (scalar(f, a, "attention.head_count", 1) == 0)
        return base_fail(err, BASE_E_FORMAT, "GGUF: no attention heads");
    if (heads > 4096)
        return base_fail(err, BASE_E_FORMAT, "GGUF: %" PRIu64 " attention heads are too many", heads);
    if (heads && (kv < 1 || heads % kv))
        return base_fail(err, BASE_E_FORMAT,
            "GGUF: %" PRIu64 " heads do not share %" PRIu64 " key/value heads evenly", heads, kv);
    if (!heads) return 0;
    uint64_t head_dim = scalar(f, a, "attention.key_length", embd / heads);
    uint64_t rot = scalar(f, a, "rope.dimension_count", head_dim);
    if (head_dim > 4096)
        return base_fail(err, BASE_E_FORMAT, "GGUF: a head of %" PRIu64 " values is too large", head_dim);
    if (rot > head_dim)
        return base_fail(err, BASE_E_FORMAT,
            "GGUF: rope.dimension_count %" PRIu64 " is more than the head's %" PRIu64, rot, head_dim);
    return 0;
}

int gguf_check_metadata(const gguf_file *f, base_err *err)
{
    base_str architecture = {"", 0};
    uint64_t parts;
    bool named = gguf_get_str(f, "general.architecture", &architecture);
    if (architecture.len > 64)
        return base_fail(
            err, BASE_E_FORMAT, "GGUF: general.architecture is %zu bytes long", architecture.len);
    int r = check_kinds(f, architecture, err);
    if (r < 0) return r;
    uint64_t part;
    if (gguf_get_u64(f, "split.count", &parts) && parts > 1 &&
        (parts > GGUF_MOST_PARTS || !gguf_get_u64(f, "split.no", &part) || part >= parts))
        return base_fail(err, BASE_E_FORMAT,
            "GGUF: the file is one of %" PRIu64 " parts, but does not say which (split.no)", parts);
    if ((r = check_vocabulary(f, err)) < 0) return r;
    return named ? check_architecture(f, architecture, err) : 0;
}
