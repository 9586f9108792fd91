/*
 * What scripts/gpu-check runs on a machine with a GPU: is the device right on whole models of real shapes, and how fast is it.
 * Weights are random in the real formats (Q4_K, with Q6_K for values, down and head, as Q4_K_M has them), rows of the cache are
 * random too. Prints one JSON object a line: {"name":..., "value":..., "unit":..., ...}; exit status 1 when bits differ.
 *
 *     gpu_bench            1.5B, 7B and 30B-A3B (128 experts) shapes; 30 GB of the GPU's memory, 24 of the machine's
 *     gpu_bench --small    shapes of a few hundred kilobytes: on the emulator, so that this file itself is tested
 *
 * It fills a struct model by hand (model/forward/forward.h), so that model_forward itself is what runs.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cuda/backend.h"
#include "model/forward/forward.h"
#include "model/file/quant.h"

typedef struct shape {
    const char *name;
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab;
    uint32_t depths[4], n_prefill, budget, tokens, promoted;
    bool on_cpu;                /* small enough to compare with the CPU */
    uint32_t n_experts, n_used; /* of a mixture, where n_ff is one expert's */
} shape;

static const shape shapes[] = {
    {"1.5B", 28, 1536, 8960, 12, 2, 128, 151936, {0, 4096, 32768, 131072}, 4096, 4096, 32, 192, true},
    {"7B", 28, 3584, 18944, 28, 4, 128, 152064, {0, 4096, 32768, 131072}, 4096, 4096, 32, 192, false},
    {"30B-A3B", 48, 2048, 768, 32, 4, 128, 151936, {0, 4096, 32768}, 4096, 4096, 32, 192, false, 128, 8},
};
static const shape small_shapes[] = {
    {"small", 2, 256, 512, 4, 2, 64, 640, {0, 300}, 80, 64, 4, 24, true},
    {"small-moe", 2, 256, 256, 4, 2, 64, 640, {0, 300}, 80, 64, 4, 24, true, 8, 2},
};

static int n_failed;

static void must(int rc, const base_err *err)
{
    if (rc == 0) return;
    printf("{\"name\":\"error\",\"text\":\"%s\"}\n", err->msg);
    exit(2);
}

static void tell(
    const char *name, const char *of, uint32_t depth, double value, const char *unit, double limit)
{
    printf("{\"name\":\"%s\",\"shape\":\"%s\",\"depth\":%u,\"value\":%.6g,\"unit\":\"%s\"", name, of, depth,
        value, unit);
    if (limit > 0) printf(",\"limit\":%.6g,\"share\":%.4f", limit, value / limit);
    printf("}\n");
    fflush(stdout);
}

static void judge(const char *name, const char *of, bool right)
{
    printf("{\"name\":\"%s\",\"shape\":\"%s\",\"right\":%s}\n", name, of, right ? "true" : "false");
    fflush(stdout);
    n_failed += !right;
}

static double now(void)
{
    return (double)base_clock_ns() * 1e-9;
}

static uint64_t random_state = 88172645463325252u;

static uint64_t random_u64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* ---- a model by hand ---- */

/* A matrix, or a stack of them, of random quants with scales that keep activations near 1. */
static gguf_tensor stack(gguf_tensor_type type, uint32_t n_in, uint32_t n_rows, uint32_t n)
{
    const uint32_t n_out = n_rows * n;
    const quant_format *f = quant_format_of(type);
    const size_t n_bytes = (size_t)n_in / f->n * n_out * f->n_bytes;
    uint8_t *data = base_xmalloc(n_bytes + 8);
    for (size_t i = 0; i < n_bytes; i += 8) memcpy(data + i, &(uint64_t){random_u64()}, 8);
    const float spread = type == GGUF_TENSOR_Q4_K ? 32 * 4.5f : 64 * 18.0f; /* of scale * quant */
    const uint16_t d = quant_f32_to_f16(1 / (spread * sqrtf((float)n_in))),
                   m = quant_f32_to_f16(8 / (spread * sqrtf((float)n_in)));
    for (size_t at = 0; at < n_bytes; at += f->n_bytes) {
        memcpy(data + at + f->d_at, &d, 2);
        if (f->kind == QUANT_SUPER_MIN) memcpy(data + at + 2, &m, 2);
    }
    return (gguf_tensor){.name = {"random", 6},
        .type = type,
        .n_dims = 2,
        .ne = {n_in, n_rows, n, 1},
        .n_bytes = n_bytes,
        .data = data};
}

static gguf_tensor tensor(gguf_tensor_type type, uint32_t n_in, uint32_t n_out)
{
    return stack(type, n_in, n_out, 1);
}

/* One tensor of each shape, packed again for every layer: weights are alike, their memory is not. */
typedef struct tensors {
    gguf_tensor q, k, v, o, gate, up, down, head;
} tensors;

static tensors make_tensors(const shape *s)
{
    const uint32_t n_q = s->n_head * s->head_dim, n_kv = s->n_head_kv * s->head_dim,
                   n = s->n_experts ? s->n_experts : 1;
    return (tensors){.q = tensor(GGUF_TENSOR_Q4_K, s->n_embd, n_q),
        .k = tensor(GGUF_TENSOR_Q4_K, s->n_embd, n_kv),
        .v = tensor(GGUF_TENSOR_Q6_K, s->n_embd, n_kv),
        .o = tensor(GGUF_TENSOR_Q4_K, n_q, s->n_embd),
        .gate = stack(GGUF_TENSOR_Q4_K, s->n_embd, s->n_ff, n),
        .up = stack(GGUF_TENSOR_Q4_K, s->n_embd, s->n_ff, n),
        .down = stack(GGUF_TENSOR_Q6_K, s->n_ff, s->n_embd, n),
        .head = tensor(GGUF_TENSOR_Q6_K, s->n_embd, s->n_vocab)};
}

static void free_tensors(tensors *t)
{
    gguf_tensor *all[] = {&t->q, &t->k, &t->v, &t->o, &t->gate, &t->up, &t->down, &t->head};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free((void *)(uintptr_t)all[i]->data);
}

static ops_buffer *vector(model_ops *ops, uint32_t n, float value)
{
    base_err err;
    ops_buffer *b = NULL;
    float *x = base_xmalloc(n * sizeof *x);
    for (uint32_t i = 0; i < n; i++) x[i] = value;
    must(ops->buffer_new(ops, &b, n * sizeof *x, &err), &err);
    ops->upload(ops, b, 0, x, n * sizeof *x);
    free(x);
    return b;
}

/* A router's: each expert takes most of what lies near a line of its own. */
static ops_buffer *random_vector(model_ops *ops, size_t n, float largest)
{
    base_err err;
    ops_buffer *b = NULL;
    float *x = base_xmalloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = ((float)(random_u64() >> 40) * 0x1p-23f - 1) * largest;
    must(ops->buffer_new(ops, &b, n * sizeof *x, &err), &err);
    ops->upload(ops, b, 0, x, n * sizeof *x);
    free(x);
    return b;
}

static const model_arch
    arch = {.name = "qwen2", .rope = OPS_ROPE_NEOX, .gate = OPS_GATE_SILU, .qkv_bias = true},
    arch_mixed = {
        .name = "mixed", .rope = OPS_ROPE_NEOX, .gate = OPS_GATE_SILU, .qkv_bias = true, .experts = true};

static model *make_model(const shape *s, model_ops *ops, const tensors *t, const gguf_file *file)
{
    base_err err;
    model *m = base_xcalloc(1, sizeof *m);
    const uint64_t seed = random_state; /* both backends get the same routers */
    random_state = 2463534242u;
    m->hyper = (model_hyper){.arch = s->n_experts ? &arch_mixed : &arch,
        .n_experts = s->n_experts,
        .n_experts_used = s->n_used,
        .n_layer = s->n_layer,
        .n_rows_layers = s->n_layer,
        .n_embd = s->n_embd,
        .n_ff = s->n_ff,
        .n_head = s->n_head,
        .n_head_kv = s->n_head_kv,
        .head_dim = s->head_dim,
        .n_rot = s->head_dim,
        .n_vocab = s->n_vocab,
        .n_ctx = 1 << 20,
        .norm_eps = 1e-6f,
        .attn_scale = 1 / sqrtf((float)s->head_dim),
        .rope_base = 1e6,
        .rope_factor = 1};
    m->ops = ops;
    m->file = (gguf_file *)(uintptr_t)file;
    m->tensors.token_embd = &t->head;
    m->layers = base_xcalloc(s->n_layer, sizeof *m->layers);
    for (uint32_t i = 0; i < s->n_layer; i++) {
        forward_layer *l = &m->layers[i];
        const struct {
            ops_weight **to;
            const gguf_tensor *from;
        } matrices[] = {{&l->q, &t->q}, {&l->k, &t->k}, {&l->v, &t->v}, {&l->o, &t->o}, {&l->gate, &t->gate},
            {&l->up, &t->up}, {&l->down, &t->down}};
        for (size_t k = 0; k < sizeof matrices / sizeof *matrices; k++)
            must(ops->pack(ops, matrices[k].to, matrices[k].from, &err), &err);
        l->attn_norm = vector(ops, s->n_embd, 1);
        l->ffn_norm = vector(ops, s->n_embd, 1);
        l->q_bias = vector(ops, s->n_head * s->head_dim, 0.01f);
        l->k_bias = vector(ops, s->n_head_kv * s->head_dim, 0.01f);
        l->v_bias = vector(ops, s->n_head_kv * s->head_dim, 0.01f);
        if (s->n_experts)
            l->router = random_vector(ops, (size_t)s->n_experts * s->n_embd, 2 / sqrtf((float)s->n_embd));
    }
    random_state = seed;
    must(ops->pack(ops, &m->output, &t->head, &err), &err);
    m->output_norm = vector(ops, s->n_embd, 1);
    must(forward_scratch_make(m, &err), &err);
    return m;
}

/* of_experts: the share of a mixture's that counts. */
static double weight_bytes(const model *m, double of_experts)
{
    double n = (double)m->ops->weight_bytes(m->output);
    for (uint32_t i = 0; i < m->hyper.n_layer; i++) {
        const forward_layer *l = &m->layers[i];
        const ops_weight *attention[] = {l->q, l->k, l->v, l->o}, *forward[] = {l->gate, l->up, l->down};
        for (size_t k = 0; k < sizeof attention / sizeof *attention; k++)
            n += (double)m->ops->weight_bytes(attention[k]);
        for (size_t k = 0; k < sizeof forward / sizeof *forward; k++)
            n += (double)m->ops->weight_bytes(forward[k]) * of_experts;
    }
    return n;
}

static void free_model(model *m)
{
    model_ops *ops = m->ops;
    for (uint32_t i = 0; i < m->hyper.n_layer; i++) {
        forward_layer *l = &m->layers[i];
        ops_weight *matrices[] = {l->q, l->k, l->v, l->o, l->gate, l->up, l->down};
        ops_buffer *vectors[] = {l->attn_norm, l->ffn_norm, l->q_bias, l->k_bias, l->v_bias, l->router};
        for (size_t k = 0; k < sizeof matrices / sizeof *matrices; k++) ops->weight_free(ops, matrices[k]);
        for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++)
            if (vectors[k]) ops->buffer_free(ops, vectors[k]);
    }
    ops->weight_free(ops, m->output);
    ops->buffer_free(ops, m->output_norm);
    forward_scratch_free(m);
    ops->close(ops);
    free(m->layers);
    free(m);
}

/* ---- rows by hand ---- */

/*
 * A cache of `depth` random rows with room for more. All blocks but the last two share one piece of host memory, under stamps
 * of their own: to the device they are other rows.
 */
typedef struct cache {
    model_rows_view view;
    uint16_t **blocks, *shared, *own[64];
    uint64_t *stamps;
    model_lane_list *lanes;
    model_run *runs; /* [lane][cap_runs] */
    size_t cap_runs;
    uint32_t depth, n_blocks, n_own;
    model *pinned; /* whose device reads the rows by itself; NULL: they are gathered */
} cache;

static uint16_t *random_block(const model_rows_shape *s)
{
    const size_t n = model_rows_block_bytes(s) / sizeof(uint16_t);
    uint16_t *block = base_huge_alloc(n * sizeof *block);
    if (!block) abort();
    for (size_t i = 0; i < n; i++)
        block[i] = (uint16_t)(0x3000 | (random_u64() >> 40 & 0x8BFF)); /* +- 0.125 to 0.5 */
    return block;
}

static cache make_cache(const model *m, uint32_t depth, uint32_t room)
{
    const model_rows_shape s = {m->hyper.n_layer, m->hyper.n_head_kv, m->hyper.head_dim};
    cache c = {.depth = depth, .n_blocks = (depth + room) / MODEL_ROWS_BLOCK + 1};
    c.blocks = base_xcalloc(c.n_blocks, sizeof *c.blocks);
    c.stamps = base_xcalloc(c.n_blocks, sizeof *c.stamps);
    c.lanes = base_xcalloc(model_rows_lanes(&s), sizeof *c.lanes);
    c.cap_runs = depth + room + 1;
    c.runs = base_xcalloc(model_rows_lanes(&s) * c.cap_runs, sizeof *c.runs);
    c.shared = random_block(&s);
    for (uint32_t b = 0; b < c.n_blocks; b++) {
        const bool written = (b + 1) * MODEL_ROWS_BLOCK > depth;
        c.blocks[b] = written ? c.own[c.n_own++] = random_block(&s) : c.shared;
        c.stamps[b] = model_rows_new_stamp();
    }
    c.view = (model_rows_view){
        .shape = s, .blocks = c.blocks, .n_blocks = c.n_blocks, .lanes = c.lanes, .stamps = c.stamps};
    return c;
}

/* As the cache's blocks are in a session. */
static void pin_cache(cache *c, model *m)
{
    const size_t n_bytes = model_rows_block_bytes(&c->view.shape);
    c->pinned = m;
    model_rows_pin(m, c->shared, n_bytes);
    for (uint32_t i = 0; i < c->n_own; i++) model_rows_pin(m, c->own[i], n_bytes);
}

static void free_block(const cache *c, uint16_t *block)
{
    if (c->pinned) model_rows_unpin(c->pinned, block);
    base_huge_free(block, model_rows_block_bytes(&c->view.shape));
}

static void free_cache(cache *c)
{
    for (uint32_t i = 0; i < c->n_own; i++) free_block(c, c->own[i]);
    free_block(c, c->shared);
    free(c->blocks);
    free(c->stamps);
    free(c->lanes);
    free(c->runs);
}

static void add_run(cache *c, uint32_t lane, uint32_t from, uint32_t to)
{
    model_lane_list *l = &c->lanes[lane];
    model_run *runs = c->runs + lane * c->cap_runs;
    l->runs = runs;
    for (; from < to; from++) {
        model_run *last = l->n_runs ? &runs[l->n_runs - 1] : NULL;
        if (last && last->slot + last->n == from && from % MODEL_ROWS_BLOCK)
            last->n++;
        else
            runs[l->n_runs++] = (model_run){from, from, 1};
        l->n_rows++;
    }
}

/* Lists of the first n rows; with a budget, of runs of 8 spread over them, a few places apart from lane to lane. */
static void list_rows(cache *c, uint32_t n, uint32_t budget)
{
    const uint32_t n_lanes = model_rows_lanes(&c->view.shape), n_runs = budget / 8;
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        c->lanes[lane] = (model_lane_list){.n_rows = 0};
        if (!budget || n <= budget) {
            add_run(c, lane, 0, n);
            continue;
        }
        for (uint32_t i = 0; i < n_runs; i++) {
            const uint32_t from = (uint32_t)((uint64_t)(n - 16) * i / n_runs) + lane % 8;
            add_run(c, lane, from, from + 8);
        }
    }
}

static void append_rows(cache *c, uint32_t at, uint32_t n)
{
    for (uint32_t lane = 0; lane < model_rows_lanes(&c->view.shape); lane++) add_run(c, lane, at, at + n);
}

static void forward(model *m, cache *c, uint32_t at, uint32_t n, float *logits)
{
    base_err err;
    int32_t *ids = base_xmalloc(n * sizeof *ids);
    uint32_t *phases = base_xmalloc(n * sizeof *phases);
    const uint32_t last = n - 1;
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = (int32_t)((at + i) * 2654435761u % m->hyper.n_vocab);
        phases[i] = at + i;
    }
    append_rows(c, at, n);
    const model_batch batch = {.ids = ids,
        .phases = phases,
        .n = n,
        .rows = &c->view,
        .want = &last,
        .n_want = logits ? 1 : 0,
        .logits = logits};
    must(model_forward(m, &batch, &err), &err);
    free(ids);
    free(phases);
}

/* ---- the device's own limits ---- */

typedef struct limits {
    double bandwidth, to_device; /* bytes a second */
    double multiplications;      /* a second, at four float steps a block of 32 k: docs/cuda.md */
} limits;

static double copy_speed(
    cudaStream_t stream, void *to, const void *from, size_t n_bytes, enum cudaMemcpyKind kind)
{
    double best = 0;
    for (int i = 0; i < 6; i++) {
        cudaStreamSynchronize(stream);
        const double from_time = now();
        if (cudaMemcpyAsync(to, from, n_bytes, kind, stream) != cudaSuccess ||
            cudaStreamSynchronize(stream) != cudaSuccess)
            return 0;
        const double speed = (double)n_bytes / (now() - from_time);
        if (i && speed > best) best = speed;
    }
    return best;
}

static limits read_limits(model_ops *ops, bool is_small)
{
    const size_t n_bytes = is_small ? 1 << 20 : (size_t)1 << 30;
    cudaStream_t stream = ((cuda_backend *)ops)->stream;
    void *a = NULL, *b = NULL, *host = NULL;
    limits l = {0};
    if (cudaMalloc(&a, n_bytes) == cudaSuccess && cudaMalloc(&b, n_bytes) == cudaSuccess &&
        cudaMallocHost(&host, n_bytes) == cudaSuccess) {
        memset(host, 1, n_bytes);
        l.bandwidth = 2 * copy_speed(stream, a, b, n_bytes, cudaMemcpyDeviceToDevice);
        l.to_device = copy_speed(stream, a, host, n_bytes, cudaMemcpyHostToDevice);
    }
    cudaFree(a);
    cudaFree(b);
    cudaFreeHost(host);
    int khz = 0;
    cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
    l.multiplications = ((cuda_backend *)ops)->n_processors * khz * 1e3 * 128 / 4 * GPU_BLOCK;
    tell("bandwidth", "device", 0, l.bandwidth * 1e-9, "GB/s", 0);
    tell("host to device", "device", 0, l.to_device * 1e-9, "GB/s", 0);
    tell("clock", "device", 0, khz * 1e-6, "GHz", 0);
    return l;
}

/* ---- right ---- */

/* A prompt, then tokens one by one, on both backends: equal bits of logits and of rows. */
/* Nats from one's probabilities to the other's; whether the first choices are the same. */
static double divergence(const shape *s, const float *want, const float *got, bool *ret_top)
{
    double kl = 0, sum[2] = {0}, most[2] = {-INFINITY, -INFINITY};
    uint32_t best[2] = {0};
    const float *x[2] = {want, got};
    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < s->n_vocab; i++)
            if (x[side][i] > most[side]) most[side] = x[side][best[side] = i];
        for (uint32_t i = 0; i < s->n_vocab; i++) sum[side] += exp(x[side][i] - most[side]);
    }
    for (uint32_t i = 0; i < s->n_vocab; i++) {
        const double p = want[i] - most[0] - log(sum[0]), q = got[i] - most[1] - log(sum[1]);
        kl += exp(p) * (p - q);
    }
    *ret_top = best[0] == best[1];
    return kl;
}

static void compare_with_cpu(const shape *s, model *m, const tensors *t, const gguf_file *file)
{
    enum { PROMPT = 33, TOKENS = 4 };
    base_err err;
    model_ops *cpu_ops = NULL;
    must(cpu_ops_open(&cpu_ops, 16, 0, &err), &err);
    model *cpu = make_model(s, cpu_ops, t, file);
    const uint64_t seed = random_state;
    cache a = make_cache(cpu, 0, PROMPT + TOKENS);
    random_state = seed;
    cache b = make_cache(m, 0, PROMPT + TOKENS);
    float *want = base_xcalloc(s->n_vocab, sizeof *want), *got = base_xcalloc(s->n_vocab, sizeof *got);
    bool same = true, top = true;
    double kl = 0;
    for (uint32_t at = 0; at < PROMPT + TOKENS; at += at ? 1 : PROMPT) {
        forward(cpu, &a, at, at ? 1 : PROMPT, want);
        forward(m, &b, at, at ? 1 : PROMPT, got);
        same = same && memcmp(want, got, s->n_vocab * sizeof *want) == 0;
        bool same_top;
        kl += divergence(s, want, got, &same_top);
        top = top && same_top;
    }
    same = same && memcmp(a.own[0], b.own[0], model_rows_block_bytes(&a.view.shape)) == 0;
    judge("the CPU's bits of logits and rows", s->name, same);
    judge("the CPU's first choices", s->name, top);
    tell("KL from the CPU", s->name, 0, kl / (TOKENS + 1), "nats", 0);
    free(want);
    free(got);
    free_cache(&a);
    free_cache(&b);
    free_model(cpu);
}

/* The next token over all rows; over few; over all again. */
static void check_return(const shape *s, model *m)
{
    const uint32_t depth = s->depths[1];
    cache c = make_cache(m, depth, 64);
    float *first = base_xcalloc(s->n_vocab, sizeof *first), *again = base_xcalloc(s->n_vocab, sizeof *again);
    list_rows(&c, depth, 0);
    forward(m, &c, depth, 1, first);
    list_rows(&c, depth, s->budget / 2);
    forward(m, &c, depth, 1, again);
    judge("fewer rows give other logits", s->name, memcmp(first, again, s->n_vocab * sizeof *first) != 0);
    list_rows(&c, depth, 0);
    forward(m, &c, depth, 1, again);
    judge("evicted and promoted is never evicted", s->name,
        memcmp(first, again, s->n_vocab * sizeof *first) == 0);
    free(first);
    free(again);
    free_cache(&c);
}

/* ---- fast ---- */

static double decode_speed(const shape *s, model *m, cache *c, uint32_t depth, uint32_t budget, float *logits)
{
    list_rows(c, depth, budget);
    uint32_t at = depth;
    for (int i = 0; i < 3; i++) forward(m, c, at++, 1, logits); /* lists sent, graph captured */
    const double from = now();
    for (uint32_t i = 0; i < s->tokens; i++) forward(m, c, at++, 1, logits);
    return s->tokens / (now() - from);
}

/* Bytes that a token reads: weights, and rows of all lanes. */
static double token_bytes(const shape *s, const model *m, double n_rows)
{
    return weight_bytes(m, s->n_experts ? (double)s->n_used / s->n_experts : 1) +
           n_rows * s->n_layer * s->n_head_kv * s->head_dim * 4;
}

static void bench_decode(const shape *s, model *m, const limits *l)
{
    float *logits = base_xcalloc(s->n_vocab, sizeof *logits);
    for (size_t i = 0; i < sizeof s->depths / sizeof *s->depths; i++) {
        const uint32_t depth = s->depths[i];
        if (i && !depth) continue;
        cache c = make_cache(m, depth, 4 * s->tokens + 64);
        const double full = decode_speed(s, m, &c, depth, 0, logits);
        tell("decode", s->name, depth, full, "t/s", l->bandwidth / token_bytes(s, m, depth));
        if (depth > s->budget) {
            const double some = decode_speed(s, m, &c, depth, s->budget, logits);
            tell("decode with a budget", s->name, depth, some, "t/s",
                l->bandwidth / token_bytes(s, m, s->budget));
            tell("budget against full", s->name, depth, some / full, "times", 0);
        }
        free_cache(&c);
    }
    free(logits);
}

/* last: the logits behind it, [n_vocab]. */
static void bench_prefill(const shape *s, model *m, const char *name, float *last)
{
    double best = 0;
    for (int pass = 0; pass < 2; pass++) {
        cache c = make_cache(m, 0, s->n_prefill);
        const double from = now();
        for (uint32_t at = 0; at < s->n_prefill;) {
            const uint32_t n = s->n_prefill - at < FORWARD_BATCH ? s->n_prefill - at : FORWARD_BATCH;
            at += n;
            forward(m, &c, at - n, n, at == s->n_prefill ? last : NULL);
        }
        best = fmax(best, s->n_prefill / (now() - from));
        free_cache(&c);
    }
    tell(name, s->name, s->n_prefill, best, "t/s", 0);
}

/* A repair: eight queries are scored against all rows, some of which come back with the next token. */
static void bench_repair(const shape *s, model *m, const limits *l)
{
    enum { QUERIES = 8 };
    const uint32_t depth = s->depths[2] ? s->depths[2] : s->depths[1];
    const uint32_t n_lanes = s->n_layer * s->n_head_kv;
    base_err err;
    cache all = make_cache(m, depth, 256);
    float *logits = base_xcalloc(s->n_vocab, sizeof *logits);
    float *queries = base_xcalloc((size_t)s->n_layer * s->n_head * QUERIES * s->head_dim, sizeof *queries);
    float **mass = base_xcalloc(n_lanes, sizeof *mass);
    for (size_t i = 0; i < (size_t)s->n_layer * s->n_head * QUERIES * s->head_dim; i++)
        queries[i] = (float)(random_u64() >> 40) * 0x1p-23f - 1;
    for (uint32_t lane = 0; lane < n_lanes; lane++) mass[lane] = base_xcalloc(depth + 64, sizeof **mass);
    const model_score score = {
        .queries = queries, .n_queries = QUERIES, .rows = &all.view, .pool = MODEL_POOL_MAX, .mass = mass};

    list_rows(&all, depth, s->budget);
    forward(m, &all, depth, 1, logits);
    list_rows(&all, depth, 0);
    for (int pass = 0; pass < 2; pass++) {
        const double from = now();
        must(model_score_rows(m, &score, &err), &err);
        if (pass) tell("score rows of the host tier", s->name, depth, (now() - from) * 1e3, "ms", 0);
    }
    forward(m, &all, depth, 1, logits); /* all rows are on the device now */
    double from = now();
    must(model_score_rows(m, &score, &err), &err);
    tell("score rows of the device", s->name, depth, (now() - from) * 1e3, "ms", 0);

    /* Rows that the device does not have are brought in the pause, and the next token finds them or waits for them. */
    cache fresh = make_cache(m, depth, 256);
    pin_cache(&fresh, m);
    list_rows(&fresh, depth, s->budget);
    for (uint32_t i = 0; i < 3; i++) forward(m, &fresh, depth + i, 1, logits);
    from = now();
    forward(m, &fresh, depth + 3, 1, logits);
    const double token = now() - from;
    list_rows(&fresh, depth, s->budget + 8 * (s->promoted / 8));
    append_rows(&fresh, depth, 4);
    from = now();
    model_rows_bring(m, &fresh.view);
    tell("begin to bring a repair", s->name, depth, (now() - from) * 1e3, "ms", 0);
    forward(m, &fresh, depth + 4, 1, logits);
    tell("apply a repair", s->name, depth, (now() - from - token) * 1e3, "ms", 0);
    free_cache(&fresh);

    const double bytes = (double)depth * s->n_layer * s->n_head_kv * s->head_dim * 4;
    for (int pinned = 1; pinned >= 0; pinned--) {
        cache most = make_cache(m, depth, 64);
        from = now();
        if (pinned) {
            pin_cache(&most, m);
            tell("pin a block", s->name, 0, (now() - from) * 1e3 / (most.n_own + 1), "ms", 0);
        }
        list_rows(&most, depth, 0);
        from = now();
        forward(m, &most, depth, 1, logits);
        tell(pinned ? "rows to the device" : "rows to the device, gathered", s->name, depth,
            bytes / (now() - from - token) * 1e-9, "GB/s", l->to_device * 1e-9);
        free_cache(&most);
    }

    for (uint32_t lane = 0; lane < n_lanes; lane++) free(mass[lane]);
    free(mass);
    free(queries);
    free(logits);
    free_cache(&all);
}

/* Device time of one product by events, with the bytes it reads; of many columns also the multiplications it makes. */
static void bench_products(const shape *s, model *m, const limits *l)
{
    enum { TIMES = 20 };
    cuda_backend *c = (cuda_backend *)m->ops;
    const struct {
        const char *name;
        const ops_weight *w;
        uint32_t n_in;
    } products[] = {{"q", m->layers[0].q, s->n_embd}, {"gate", m->layers[0].gate, s->n_embd},
        {"down", m->layers[0].down, s->n_ff}, {"head", m->output, s->n_embd}};
    static const uint32_t columns[] = {1, 8, 16, 32, 64, 512};
    base_err err;
    cudaEvent_t from, to;
    cudaEventCreate(&from);
    cudaEventCreate(&to);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
            const uint32_t n = columns[k], n_out = m->ops->weight_outputs(products[i].w);
            char name[40];
            float ms = 0;
            if ((size_t)n * n_out > (size_t)FORWARD_HEADS * s->n_vocab) continue; /* no room for the result */
            ops_mat x = {m->scratch.gate_up, 0, products[i].n_in}, y = {m->scratch.logits, 0, n_out};
            must(m->ops->quant(m->ops,
                     &(ops_quant_args){.x = x, .n = n, .width = products[i].n_in, .out = m->scratch.wide},
                     &err),
                &err);
            const ops_matmul_args args = {
                .x = m->scratch.wide, .n_parts = 1, .parts = {{.weight = products[i].w, .y = y}}};
            must(m->ops->matmul(m->ops, &args, &err), &err);
            must(m->ops->sync(m->ops, &err), &err);
            cudaEventRecord(from, c->stream);
            for (int j = 0; j < TIMES; j++) must(m->ops->matmul(m->ops, &args, &err), &err);
            must(cuda_flush(c, &err), &err);
            cudaEventRecord(to, c->stream);
            cudaEventSynchronize(to);
            cudaEventElapsedTime(&ms, from, to);
            snprintf(name, sizeof name, "product %s n=%u", products[i].name, n);
            tell(name, s->name, 0, (double)m->ops->weight_bytes(products[i].w) * TIMES / ms * 1e-6, "GB/s",
                l->bandwidth * 1e-9);
            if (n > 8)
                tell(name, s->name, 0, (double)n * n_out * products[i].n_in * TIMES / ms * 1e-9, "T/s",
                    l->multiplications * 1e-12);
        }
    cudaEventDestroy(from);
    cudaEventDestroy(to);
}

/* The same prefill by cuBLAS, where it is. */
static void bench_bf16(const shape *s, const tensors *t, const gguf_file *file, const float *exact)
{
    base_err err;
    model_ops *ops = NULL;
    if (cuda_ops_open(&ops, 16, 0, true, &err)) {
        printf("{\"name\":\"no cuBLAS\",\"text\":\"%s\"}\n", err.msg);
        return;
    }
    model *m = make_model(s, ops, t, file);
    float *last = base_xcalloc(s->n_vocab, sizeof *last);
    bool same_top;
    bench_prefill(s, m, "prefill bf16", last);
    tell("KL of bf16", s->name, s->n_prefill, divergence(s, exact, last, &same_top), "nats", 0);
    free(last);
    free_model(m);
}

static void run_shape(const shape *s, bool is_small, const gguf_file *file)
{
    base_err err;
    model_ops *ops = NULL;
    must(cuda_ops_open(&ops, 16, 0, false, &err), &err);
    if (is_small) ((cuda_backend *)ops)->n_fill = 4; /* so that this shape takes the ways of large ones */
    const limits l = read_limits(ops, is_small);
    tensors t = make_tensors(s);
    const double from = now();
    model *m = make_model(s, ops, &t, file);
    tell("load", s->name, 0, weight_bytes(m, 1) / (now() - from) * 1e-9, "GB/s", 0);
    if (s->on_cpu) compare_with_cpu(s, m, &t, file);
    check_return(s, m);
    if (!s->n_experts) bench_products(s, m, &l);
    bench_decode(s, m, &l);
    float *last = base_xcalloc(s->n_vocab, sizeof *last);
    bench_prefill(s, m, "prefill", last);
    bench_repair(s, m, &l);
    free_model(m);
    bench_bf16(s, &t, file, last);
    free(last);
    free_tensors(&t);
}

int main(int argc, char **argv)
{
    /* A file of no tensors, for what asks whether it is still there. */
    static const uint8_t bytes[24] = {'G', 'G', 'U', 'F', 3};
    const bool is_small = argc > 1 && strcmp(argv[1], "--small") == 0;
    char text[400];
    base_err err;
    gguf_file *file = NULL;
    must(gguf_parse(&file, bytes, sizeof bytes, &err), &err);
    must(cuda_ops_describe(text, sizeof text, &err), &err);
    printf("{\"name\":\"device\",\"text\":\"%s\"}\n", text);
    for (size_t i = 0; is_small && i < sizeof small_shapes / sizeof *small_shapes; i++)
        run_shape(&small_shapes[i], true, file);
    for (size_t i = 0; !is_small && i < sizeof shapes / sizeof *shapes; i++)
        run_shape(&shapes[i], false, file);
    gguf_close(file);
    printf("{\"name\":\"verdict\",\"failed\":%d}\n", n_failed);
    return n_failed ? 1 : 0;
}
