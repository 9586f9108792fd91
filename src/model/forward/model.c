/*
 * Opening a model: map, bind, make sure that it fits, pack, let the file's pages go; and what a model says of
 * itself.
 *
 * Packed weights live in the backend's memory; of the file only the metadata and the embedding's rows are
 * read afterwards, so memory is not taken twice. The forward pass is in forward.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "model/forward/forward.h"
#include "model/text/template.h"
#include "model/text/tokenizer.h"
#include "base/path.h"

/*
 * What a model wants beside weights and scratch before it is of any use: 2,048 rows, the newest states where
 * it keeps one, and the shell around it.
 */
enum {
    ROWS_AT_LEAST = 2048,
    STATES_AT_LEAST = 4,
    REST_BYTES = 64 << 20,
    HASH_SAMPLE = 512,
    MAX_THREADS = 16
};

static const struct {
    uint64_t file_type;
    const char *name;
} file_types[] = {{0, "F32"}, {1, "F16"}, {2, "Q4_0"}, {3, "Q4_1"}, {7, "Q8_0"}, {8, "Q5_0"}, {9, "Q5_1"},
    {10, "Q2_K"}, {21, "Q2_K_S"}, {11, "Q3_K_S"}, {12, "Q3_K_M"}, {13, "Q3_K_L"}, {14, "Q4_K_S"},
    {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"}, {18, "Q6_K"}, {24, "IQ1_S"}, {31, "IQ1_M"},
    {19, "IQ2_XXS"}, {20, "IQ2_XS"}, {28, "IQ2_S"}, {29, "IQ2_M"}, {23, "IQ3_XXS"}, {22, "IQ3_XS"},
    {26, "IQ3_S"}, {27, "IQ3_M"}, {25, "IQ4_NL"}, {30, "IQ4_XS"}, {32, "BF16"}, {38, "MXFP4_MOE"}};

/* Memory */

/* A number behind `key` in a small text file of the kernel; false when there is none. */
static bool read_number(const char *path, const char *key, uint64_t *ret)
{
    base_buf text = {0};
    bool found = base_fs_read(path, 1 << 20, &text, NULL) == 0 && text.data;
    const char *at = found ? strstr(text.data, key) : NULL;
    found = at && sscanf(at + strlen(key), "%" SCNu64, ret) == 1;
    base_buf_free(&text);
    return found;
}

/*
 * The two kinds of control groups: where they are mounted, and how they call a limit, what is used, and
 * cached file pages.
 */
static const struct cgroup_kind {
    const char *controller, *mount, *limit, *used, *cached;
} cgroup_kinds[] = {
    {"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
        "total_inactive_file "},
};

static uint64_t left_in_group(const struct cgroup_kind *kind, const char *group)
{
    char path[PATH_MAX];
    uint64_t limit, used, cached = 0;
    snprintf(path, sizeof path, "%s%s/%s", kind->mount, group, kind->limit);
    if (!read_number(path, "", &limit)) return UINT64_MAX; /* none ("max"), or not ours to see */
    snprintf(path, sizeof path, "%s%s/%s", kind->mount, group, kind->used);
    if (!read_number(path, "", &used)) return UINT64_MAX;
    snprintf(path, sizeof path, "%s%s/memory.stat", kind->mount, group);
    read_number(path, kind->cached, &cached);
    used -= cached < used ? cached : used;
    return used < limit ? limit - used : 0;
}

/* The tightest of this process's control groups, up to their roots. */
static uint64_t left_in_groups(void)
{
    uint64_t least = UINT64_MAX;
    base_buf groups = {0};
    if (base_fs_read("/proc/self/cgroup", 1 << 16, &groups, NULL)) base_buf_clear(&groups);
    for (size_t i = 0; i < sizeof cgroup_kinds / sizeof *cgroup_kinds; i++) {
        const struct cgroup_kind *kind = &cgroup_kinds[i];
        const char *at = groups.data ? strstr(groups.data, kind->controller) : NULL;
        char group[PATH_MAX] = "";
        if (at) at += strlen(kind->controller);
        if (at) snprintf(group, sizeof group, "%.*s", (int)strcspn(at, "\n"), at);
        for (;;) {
            uint64_t left = left_in_group(kind, group);
            if (left < least) least = left;
            char *slash = strrchr(group, '/');
            if (!slash) break;
            *slash = 0;
        }
    }
    base_buf_free(&groups);
    return least;
}

/* Of `ulimit -v`: this process's address space. */
static uint64_t left_of_address_space(void)
{
    struct rlimit limit;
    uint64_t pages;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    if (!read_number("/proc/self/statm", "", &pages)) return UINT64_MAX;
    uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t model_memory_available(void)
{
    uint64_t kib, available = UINT64_MAX;
    if (read_number("/proc/meminfo", "MemAvailable:", &kib)) available = kib * 1024;
    return least_of(available, least_of(left_in_groups(), left_of_address_space()));
}

/* Of all weights, packed for the CPU. */
static uint64_t weights_bytes(const model *m)
{
    uint64_t weights = 0;
    for (uint64_t i = 0; i < gguf_n_tensors(m->file); i++) {
        const gguf_tensor *t = gguf_tensor_at(m->file, i);
        if (model_arch_is_left_out(&m->hyper, t) || t == m->tensors.own_embd) continue;
        const uint64_t packed = cpu_packed_bytes(t);
        weights += packed > t->n_bytes ? packed : t->n_bytes; /* vectors stay as they are */
    }
    return weights;
}

static int check_memory(const model *m, uint64_t weights, base_err *err)
{
    uint64_t scratch = forward_scratch_bytes(&m->hyper), available = model_memory_available();
    uint64_t rows = (uint64_t)ROWS_AT_LEAST * m->info.row_bytes;
    rows += STATES_AT_LEAST * m->info.state_bytes;
    uint64_t need = weights + scratch + rows + REST_BYTES;
    if (need > available)
        return base_fail(err, BASE_E_NOMEM,
            "%s needs %.2f GB (weights %.2f, work space %.2f, %d rows of cache "
            "%.2f) and %.2f GB are free; close something or take a smaller model",
            m->path, need / 1e9, weights / 1e9, (scratch + REST_BYTES) / 1e9, ROWS_AT_LEAST, rows / 1e9,
            available / 1e9);
    return 0;
}

/* Identity and description */

/*
 * sha256 over the name, everything before the tensors' bytes (metadata, names, shapes) and the beginning,
 * middle and end of every tensor: as good as the file's own hash for telling files apart, at a thousandth of
 * its cost. Of a model in parts the first has the metadata; the others' tables of tensors are in the sum by
 * their tensors.
 */
static void hash_file(const gguf_file *f, const char *name, char ret[65])
{
    const gguf_part first = gguf_part_at(f, 0);
    const uint64_t n_tensors = gguf_n_tensors(f), head = base_hash64(first.bytes, (size_t)first.n_head, 0);
    base_sha256 sha;
    uint8_t digest[32];

    base_sha256_init(&sha);
    base_sha256_add(&sha, name, strlen(name));
    base_sha256_add(&sha, &head, sizeof head);
    for (uint64_t i = 0; i < n_tensors; i++) {
        const gguf_tensor *t = gguf_tensor_at(f, i);
        size_t n = t->n_bytes < HASH_SAMPLE ? (size_t)t->n_bytes : HASH_SAMPLE;
        base_sha256_add(&sha, t->name.ptr, t->name.len);
        base_sha256_add(&sha, &t->n_bytes, sizeof t->n_bytes);
        base_sha256_add(&sha, t->data, n);
        base_sha256_add(&sha, t->data + (t->n_bytes - n) / 2, n);
        base_sha256_add(&sha, t->data + (t->n_bytes - n), n);
    }
    base_sha256_end(&sha, digest);
    base_hex(digest, sizeof digest, ret);
}

static char *name_of(const gguf_file *f, const char *path)
{
    base_str name;
    if (gguf_get_str(f, "general.name", &name) && name.len > 0 && name.len < 256)
        return base_xstrndup(name.ptr, name.len);
    return base_xstrdup(base_path_name(path));
}

void model_hash_of(const gguf_file *f, const char *path, char ret[65])
{
    char *name = name_of(f, path);
    hash_file(f, name, ret);
    free(name);
}

static const char *quantisation_of(const model *m)
{
    uint64_t type;
    if (gguf_get_u64(m->file, "general.file_type", &type))
        for (size_t i = 0; i < sizeof file_types / sizeof file_types[0]; i++)
            if (file_types[i].file_type == type) return file_types[i].name;
    const model_layer_tensors *first = &m->tensors.layers[0];
    const gguf_tensor *fused = first->gate_up ? first->gate_up : first->gate_up_exps,
                      *one = first->gate        ? first->gate
                             : first->gate_exps ? first->gate_exps
                                                : fused;
    return gguf_tensor_type_name(one->type);
}

/* Of a stack of experts a token goes to some; the embedding's rows count as all, as everybody counts them. */
static void count_params(const model *m, uint64_t *ret_all, uint64_t *ret_active)
{
    *ret_all = *ret_active = 0;
    for (uint64_t i = 0; i < gguf_n_tensors(m->file); i++) {
        const gguf_tensor *t = gguf_tensor_at(m->file, i);
        if (model_arch_is_left_out(&m->hyper, t)) continue;
        const uint64_t n = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
        const bool is_stack = t->ne[2] > 1 && m->hyper.n_experts;
        *ret_all += n;
        *ret_active += is_stack ? n / m->hyper.n_experts * m->hyper.n_experts_used : n;
    }
}

static void describe(model *m, const char *path)
{
    const model_hyper *h = &m->hyper;

    m->name = name_of(m->file, path);
    m->info = (model_info){.path = m->path,
        .name = m->name,
        .architecture = h->arch->name,
        .quantisation = quantisation_of(m),
        .n_layer = h->n_layer,
        .n_embd = h->n_embd,
        .n_ff = h->n_ff,
        .n_head = h->n_head,
        .n_head_kv = h->n_head_kv,
        .head_dim = h->head_dim,
        .n_vocab = h->n_vocab,
        .n_ctx = h->n_ctx,
        .file_bytes = gguf_file_bytes(m->file),
        .n_rows_layers = h->n_rows_layers,
        .state_bytes = (h->n_layer - h->n_sharing - h->n_rows_layers) * model_state_floats(h) * sizeof(float),
        .is_whole = h->n_taps || h->n_sharing || h->n_embd_layer,
        .row_bytes = h->n_rows_layers * h->n_head_kv * h->head_dim * 2 * (uint32_t)sizeof(uint16_t)};
    count_params(m, &m->info.n_params, &m->info.n_params_active);
    hash_file(m->file, m->name, m->info.hash);
}

/* Opening */

int model_threads(int wanted)
{
    cpu_set_t set;
    if (wanted > 0) return wanted;
    int n =
        sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
}

/* "cpu:LEVEL": the levels to leave out so that this one runs. */
static int mask_for_level(const char *level, unsigned *ret_mask, base_err *err)
{
    char names[80] = "";
    const char *name;
    for (size_t i = 0; (name = cpu_ops_level(i, ret_mask)); i++) {
        if (strcmp(name, level) == 0) return 0;
        size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", name);
    }
    return base_fail(err, BASE_E_USAGE, "there is no level \"%s\" on this machine; it runs %s", level, names);
}

static int open_cuda(model *m, const model_options *o, base_err *err)
{
#ifdef KVIST_CUDA
    const bool bf16 = o->backend && strcmp(o->backend, "cuda:bf16") == 0;
    int rc = cuda_ops_open(&m->ops, (int)m->info.n_threads, o->gpu_bytes, bf16, err);
    if (!rc && (m->hyper.arch->apart || m->hyper.head_dim > 256))
        rc = base_fail(err, BASE_E_UNSUPPORTED,
            "heads of two sizes, or of more than 256, are not computed on the GPU; use --backend cpu");
    return rc;
#else
    return base_fail(err, BASE_E_DEVICE, "this build has no CUDA backend; use --backend cpu");
#endif
}

static int open_cpu(model *m, const model_options *o, base_err *err)
{
    unsigned mask = o->cpu_mask;
    int rc = 0;
    if (o->backend && strncmp(o->backend, "cpu:", 4) == 0) rc = mask_for_level(o->backend + 4, &mask, err);
    if (!rc) rc = check_memory(m, weights_bytes(m), err);
    return rc ? rc : cpu_ops_open(&m->ops, (int)m->info.n_threads, mask, err);
}

/* Weights and working space on one of the backends. */
static int start(model *m, const model_options *o, bool cuda, base_err *err)
{
    m->info.n_threads = (uint32_t)model_threads(o->n_threads);
    m->info.weight_bytes_per_token = 0;
    int rc = cuda ? open_cuda(m, o, err) : open_cpu(m, o, err);
    if (rc) return rc;
    m->info.backend = m->ops->backend;
    m->info.isa = m->ops->isa;
    m->info.kernel_version = m->ops->kernel_version;
    m->info.folds = m->ops->turns;
    forward_loader l = {.m = m, .options = o};
    const uint64_t on_host = forward_bytes_on_host(&l);
    if (on_host && (rc = check_memory(m, on_host, err))) return rc;
    for (uint64_t i = 0; i < gguf_n_tensors(m->file); i++)
        if (!model_arch_is_left_out(&m->hyper, gguf_tensor_at(m->file, i)))
            l.total += gguf_tensor_at(m->file, i)->n_bytes;
    if (m->tensors.output != m->tensors.token_embd)
        l.total -= m->tensors.token_embd->n_bytes; /* stays where it is */
    if (m->tensors.own_embd) l.total -= m->tensors.own_embd->n_bytes;
    if ((rc = forward_load_weights(&l, err))) return rc;
    return forward_scratch_make(m, err);
}

static void stop(model *m)
{
    if (!m->ops) return;
    forward_free_weights(m);
    forward_turns_free(m);
    forward_scratch_free(m);
    m->ops->close(m->ops);
    m->ops = NULL;
    m->layers = NULL;
    m->output = NULL;
    m->output_norm = NULL;
    m->own_model = NULL;
    m->own_norm = NULL;
    m->ones = NULL;
    m->rope_factors = NULL;
    memset(&m->scratch, 0, sizeof m->scratch);
}

static void tell(model *m, const char *why)
{
    snprintf(m->notice, sizeof m->notice, "%s; computing on the CPU", why);
    m->info.notice = m->notice;
    if (m->tell) m->tell(m->tell_user, m->notice);
}

static int fall_back(model *m, base_err *err)
{
    const model_options cpu = {.n_threads = (int)m->info.n_threads, .backend = "cpu"};
    const base_err why = *err;
    stop(m);
    int rc = start(m, &cpu, false, err);
    if (!rc) tell(m, why.msg);
    return rc;
}

int model_try(
    model *m, int (*compute)(model *m, const void *what, base_err *err), const void *what, base_err *err)
{
    base_err own = {0};
    if (!err) err = &own;
    int rc = compute(m, what, err);
    if (rc != BASE_E_DEVICE) return rc;
    rc = fall_back(m, err);
    return rc ? rc : compute(m, what, err);
}

/* "auto" takes the GPU where there is one that has room, and says so where there is one that has not. */
static int choose_backend(model *m, const model_options *o, base_err *err)
{
    const char *backend = o->backend ? o->backend : "auto";
    const bool is_auto = strcmp(backend, "auto") == 0;
    if (strcmp(backend, "cuda") == 0 || strcmp(backend, "cuda:bf16") == 0) return start(m, o, true, err);
    if (!is_auto && strcmp(backend, "cpu") != 0 && strncmp(backend, "cpu:", 4) != 0)
        return base_fail(err, BASE_E_USAGE, "backend \"%s\" is none of cpu, cuda, cuda:bf16, auto", backend);
#ifdef KVIST_CUDA
    if (is_auto) {
        int rc = start(m, o, true, err);
        if (rc != BASE_E_NOT_FOUND && rc != BASE_E_DEVICE && rc != BASE_E_NOMEM && rc != BASE_E_UNSUPPORTED)
            return rc;
        stop(m);
        if (rc != BASE_E_NOT_FOUND) tell(m, err->msg);
    }
#endif
    return start(m, o, false, err);
}

static int load_text(model *m, bool thinking, base_err *err)
{
    int rc = model_tokenizer_load(&m->tokenizer, m->file, err);
    if (!rc) rc = model_template_load(&m->template, m->file, m->tokenizer, thinking, err);
    if (!rc && model_tokenizer_size(m->tokenizer) > m->hyper.n_vocab)
        rc = base_fail(err, BASE_E_FORMAT, "%u tokens and an embedding of %u rows",
            model_tokenizer_size(m->tokenizer), m->hyper.n_vocab);
    return rc;
}

static int open_model(model *m, const char *path, const model_options *o, base_err *err)
{
    int rc;
    m->path = base_xstrdup(path);
    if ((rc = gguf_open(&m->file, path, err))) return rc;
    if ((rc = model_arch_read(m->file, &m->hyper, err))) return rc;
    if ((rc = model_arch_bind(m->file, &m->hyper, &m->tensors, err))) return rc;
    describe(m, path);
    const model_rows_shape shape = model_get_rows_shape(m);
    if (m->hyper.window) m->near = base_xcalloc(model_rows_lanes(&shape), sizeof *m->near);
    if ((rc = load_text(m, o->thinking, err))) return rc;
    m->tell = o->notice;
    m->tell_user = o->user;
    return choose_backend(m, o, err);
}

int model_open(model **ret, const char *path, const model_options *options, base_err *err)
{
    model *m = base_xcalloc(1, sizeof *m);
    base_err own = {0};
    model_options none = {0};
    int rc;

    if (!err) err = &own;
    rc = open_model(m, path, options ? options : &none, err);
    if (rc) {
        if (rc != BASE_E_CANCELLED && rc != BASE_E_USAGE && !strstr(err->msg, path))
            base_err_prefix(err, "%s", path);
        model_close(m);
        return rc;
    }
    *ret = m;
    return 0;
}

void model_close(model *m)
{
    if (!m) return;
    stop(m);
    model_template_free(m->template);
    model_tokenizer_free(m->tokenizer);
    model_arch_unbind(&m->tensors);
    gguf_close(m->file);
    free(m->near);
    free(m->path);
    free(m->name);
    free(m);
}

const model_info *model_get_info(const model *m)
{
    return &m->info;
}

const model_tokenizer *model_get_tokenizer(const model *m)
{
    return m->tokenizer;
}

const model_template *model_get_template(const model *m)
{
    return m->template;
}

uint64_t model_rows_memory(uint64_t row_bytes, uint64_t window_bytes, uint32_t window, uint32_t n)
{
    enum { BATCH = 512 }; /* of tokens that are computed at once */
    /* The window may end inside a block, and its tile inside the one before. */
    const uint32_t kept = window + BATCH + 2 * MODEL_ROWS_BLOCK;
    return (row_bytes - window_bytes) * n + window_bytes * (window && kept < n ? kept : n);
}

uint64_t model_window_bytes(const model_hyper *h)
{
    uint64_t n = 0;
    for (uint32_t layer = 0; layer < h->n_rows_layers; layer++) n += model_layer_has_window(h, layer);
    return n == h->n_rows_layers ? 0 : n * h->n_head_kv * h->head_dim * 2 * sizeof(uint16_t);
}

int model_check_room(const model *m, uint32_t n_ctx, uint32_t n_rows, bool has_file, base_err *err)
{
    const uint64_t windows = has_file ? model_window_bytes(&m->hyper) : 0,
                   available = model_memory_available(),
                   need = model_rows_memory(m->info.row_bytes, windows, m->hyper.window, n_rows);
    if (n_ctx > m->info.n_ctx)
        return base_fail(err, BASE_E_LIMIT, "--ctx %u is more than %s was made for: its context is %u tokens",
            n_ctx, m->name, m->info.n_ctx);
    if (need > available)
        return base_fail(err, BASE_E_NOMEM,
            "%u rows of cache need %.2f GB and %.2f GB are free; choose a smaller --ctx or --kv-budget",
            n_rows, need / 1e9, available / 1e9);
    return 0;
}

uint32_t model_window(const model *m, uint32_t layer)
{
    return model_layer_has_window(&m->hyper, layer) ? m->hyper.window : 0;
}

model_rows_shape model_get_rows_shape(const model *m)
{
    return (model_rows_shape){m->hyper.n_rows_layers, m->hyper.n_head_kv, m->hyper.head_dim};
}
