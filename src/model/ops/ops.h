/*
 * What a backend can compute: one table of operations, filled by cpu/ (and cuda/), driven by the forward
 * pass.
 *
 * Operations of one table are called from one thread, run in order, and are finished when `sync` returns (the
 * CPU's: when they return). Numbers:
 *
 *  - A result depends on the row of activations, the weights and the list of rows it reads, never on n, on
 *    the other rows of the batch, or on the number of threads. For one backend a batch of 512 gives the bits
 *    of 512 batches of 1.
 *  - All CPU levels (plain C, AVX2, AVX-512 VNNI) give the same bits: integer dot products of 32, then F32
 *    fused multiply-adds in ascending order of blocks.
 *
 * Shapes are row-major; a matrix view names its first element and the distance between rows, in floats.
 */
#ifndef KVIST_MODEL_OPS_H
#define KVIST_MODEL_OPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/file/gguf.h"
#include "model/ops/rows.h"

typedef struct model_ops model_ops;
typedef struct ops_buffer ops_buffer;           /* the backend's memory */
typedef struct ops_weight ops_weight;           /* a packed matrix */
typedef struct ops_activations ops_activations; /* quantised rows: what a product reads */

/* Bits of model_options.cpu_mask: levels to leave out. */
enum { OPS_CPU_AVX512_VNNI = 1u << 0, OPS_CPU_AVX2 = 1u << 1 };

typedef struct ops_mat {
    ops_buffer *buffer;
    size_t first;  /* element [0][0], in floats */
    size_t stride; /* from row to row, in floats */
} ops_mat;

/* out[t] = the file tensor's row ids[t] * scale. Formats as for pack. An id out of range is BASE_E_LIMIT. */
typedef struct ops_embed_args {
    const gguf_tensor *table; /* ne[0] = n_embd */
    const int32_t *ids;       /* host, [n] */
    uint32_t n;
    float scale; /* 0 means 1 */
    ops_mat out;
} ops_embed_args;

/*
 * out[t][g] = x[t][g] / sqrt(mean(x^2) + eps) * weight, for each of the n_groups groups of `width` in a row.
 * May be in place.
 */
typedef struct ops_norm_args {
    ops_mat x, out;
    const ops_buffer *weight; /* [width] */
    uint32_t n, n_groups, width;
    float eps;
} ops_norm_args;

/* RMSNorm of n rows (or of the rows named by `rows`), quantised. width is a multiple of 32. */
typedef struct ops_norm_quant_args {
    ops_mat x;
    const ops_buffer *weight; /* [width] */
    const uint32_t *rows;     /* host, [n]: activation i is made of row rows[i] of x; NULL: of row i */
    uint32_t n, width;
    float eps;
    ops_activations *out;
} ops_norm_quant_args;

typedef struct ops_quant_args {
    ops_mat x;
    uint32_t n, width;
    ops_activations *out;
} ops_quant_args;

/*
 * act(gate) * up; with SIGMOID the gate only lets through: sigmoid(gate) * up. CLAMPED (gpt-oss): with
 * g = min(gate, OPS_CLAMP) and u = up within OPS_CLAMP of 0, g * sigmoid(OPS_CLAMP_STEEP * g) * (u + 1).
 */
typedef enum ops_gate { OPS_GATE_SILU, OPS_GATE_GELU_TANH, OPS_GATE_SIGMOID, OPS_GATE_CLAMPED } ops_gate;

#define OPS_CLAMP       7.0f
#define OPS_CLAMP_STEEP 1.702f

typedef struct ops_gate_quant_args {
    ops_mat gate, up;
    ops_gate kind;
    uint32_t n, width;
    const ops_buffer *shares; /* [n] row t is multiplied by shares[t] as well; NULL: by nothing */
    ops_activations *out;
} ops_gate_quant_args;

/* What a product's multiplications are made of. */
typedef enum ops_peak { OPS_PEAK_BYTES, OPS_PEAK_FLOATS } ops_peak; /* 8-bit integers, F32 */

enum { OPS_MATMUL_PARTS = 4 };

/*
 * For each part: y[t][o] = sum_k weight[o][k] * x[t][k] (+ bias[o]) (+ add[t][o]); n = rows in x. All parts'
 * n_in equal x's width. `add` may be y itself (residual in place); it is absent when add.buffer is NULL.
 */
typedef struct ops_matmul_args {
    const ops_activations *x;
    uint32_t n_parts;
    struct {
        const ops_weight *weight;
        const ops_buffer *bias; /* [n_out] or NULL */
        ops_mat y, add;
    } parts[OPS_MATMUL_PARTS];
    /*
     * Host, with one part: bits of the outputs that will be read; y's others may be left as they are. NULL:
     * all will be.
     */
    const uint64_t *only;
} ops_matmul_args;

/* out = a * scale_a + b * scale_b, [n][width]; b.buffer NULL: out = a * scale_a. May be in place. */
typedef struct ops_add_args {
    ops_mat a, b, out;
    float scale_a, scale_b;
    uint32_t n, width;
} ops_add_args;

/*
 * table[t][i] = growth * {cos, sin}(phases[t] * scale * base^(-2i / n_rot) / factors[i]), i < n_rot / 2: [n][n_rot]
 * floats, the cosines of a token first. Angles are F64.
 */
typedef struct ops_rope_table_args {
    const uint32_t *phases; /* host, [n] */
    const float *factors;   /* host, [n_rot / 2] (the file's rope_freqs) or NULL */
    uint32_t n, n_rot;
    double base, scale, growth; /* scale 0 and growth 0 mean 1 */
    ops_buffer *table;
} ops_rope_table_args;

typedef enum ops_rope_pairing {
    OPS_ROPE_NEOX,
    OPS_ROPE_NORM
} ops_rope_pairing; /* (i, i + n_rot/2) | (2i, 2i + 1) */

/* Rotates the first n_rot of each head of head_dim, in place. */
typedef struct ops_rope_args {
    ops_mat x; /* [n][n_heads * head_dim] */
    const ops_buffer *table;
    ops_rope_pairing pairing;
    uint32_t n, n_heads, head_dim, n_rot;
} ops_rope_args;

/*
 * How rows that are folded are read (rows.h, gaps): those of group i as if their keys were turned on by gaps[i]
 * phases, so that a row's score is that of a query so much nearer. The turned key is rounded to F16 as keys are; where a
 * row is weighed by its sketch the query is turned back instead. A gap of 0 leaves the bits alone.
 */
typedef struct ops_turns {
    const uint32_t *gaps;    /* host, [n]; rows of groups behind them are not turned to */
    const ops_buffer *table; /* [n][n_rot], as rope_table makes it of the gaps */
    const uint8_t *layers;   /* host, [n_layer] 1: rows of this layer are folded */
    uint32_t n, n_rot;
    ops_rope_pairing pairing;
} ops_turns;

/*
 * k, v [n][n_head_kv * head_dim] -> F16 rows at the last n ordinals of every lane of `layer`. Beyond F16's
 * range: its end.
 */
typedef struct ops_rows_write_args {
    const model_rows_view *rows;
    uint32_t layer, n;
    ops_mat k, v;
} ops_rows_write_args;

/*
 * out[t][h] = softmax(q[t][h] . K * scale) V over lane (layer, h / (n_head / n_head_kv)); token t sees
 * ordinals < n_rows - n + t + 1, and with a window only rows whose token index is > its own - window. Tiles
 * of MODEL_ROWS_TILE ordinals counted from 0; (maximum, denominator, output) of the tiles are merged in
 * ascending order, behind the head's sink (gpt-oss; after Xiao et al. 2024): a score in the denominator, of a
 * row without a value.
 */
typedef struct ops_attention_args {
    const model_rows_view *rows;
    uint32_t layer, n, n_head;
    uint32_t window; /* 0: none */
    float scale;
    ops_mat q, out; /* [n][n_head * head_dim] */
    ops_mat sums;   /* [n][n_head][2] largest score, sum of exp(score - largest); no buffer: not asked for */
    const ops_turns *turns;  /* NULL: nothing is folded */
    const ops_buffer *sinks; /* [n_head]; NULL: there are none */
} ops_attention_args;

/*
 * What every token reads beside the lists: of its lane's evicted rows those that weigh most under its own
 * queries. `out` and `sums` are what attention over the lists (and sinks) left for the same q; `out` becomes attention
 * over lists and visitors together.
 *
 * A row's weight is its share of the softmax over listed and evicted rows, mean over the lane's heads; an
 * evicted row's score comes from its sketch, q.middle in F32 and the rest in integers (sketch.h), or from its
 * key. The `most` heaviest are taken, of equal ones those before; their own scores are exact. Those that are
 * left out have a share too, by head: with `means` it goes to the mean of the lane's pages of 64 slots,
 * weighted by what each has left out. Where a lane has evicted rows in more than `open` pages, a token weighs
 * the pages first, each as so many rows of its mean key, looks into the `open` heaviest only, and the others
 * keep that weight; with `means` it goes to the mean of their chapter (model_pages). A token's result depends on
 * its queries and the rows alone.
 */
typedef struct ops_visit_args {
    const model_visit *visit;
    uint32_t layer, n, n_head;
    float scale;
    ops_mat q, out, sums;
    const ops_turns *turns; /* as attention's */
} ops_visit_args;

/* model_score of model.h for all its lanes; queries and mass are host memory. */
typedef struct ops_score_rows_args {
    const model_rows_view *rows;
    const float *queries; /* [n_layer][n_head][n_queries][head_dim] */
    uint32_t n_queries, n_head;
    float scale;
    bool pool_max;          /* else the mean over queries */
    const uint8_t *heads;   /* [n_layer * n_head], NULL: all count */
    const float *rest;      /* [n_layer][n_head][n_queries] as model_score's, NULL: none */
    const uint32_t *from;   /* [n_layer] rows of a smaller token index get 0, unread; NULL: all are read */
    float *const *mass;     /* [lanes] -> [n_rows of the lane], NULL: skipped */
    const ops_turns *turns; /* NULL: nothing is folded */
} ops_score_rows_args;

/*
 * How large a score of any row of a section can be (Quest, Tang et al. 2024). A section's profile lies where
 * rows do: its "key" holds each dimension's largest key number, its "value" the smallest; section i is slot
 * i, whatever the view's lists say.
 *
 *     bound[h][t][i] = max over the query heads of lane (layer, h) of  scale * sum_k max(q[t]_k * M[i]_k,
 *         q[t]_k * m[i]_k)
 *
 * computed as the sum of two products, that of q's positive numbers with M and that of its negative ones with
 * m.
 */
typedef struct ops_bound_args {
    const model_rows_view *profiles;
    uint32_t layer, n, n_head;
    uint32_t n_sections;
    float scale;
    ops_mat q;    /* [n][n_head * head_dim] */
    float *bound; /* host, [n_head_kv][n][n_sections] */
} ops_bound_args;

/*
 * A mixture's router: p = softmax(router x + bias) over all experts, the n_used largest of it (of equals the lower
 * index), best first, and weights[t][i] = p of the i-th / the sum of p over the chosen. In F32 throughout:
 * 8-bit activations would exchange experts that lie close together.
 */
typedef struct ops_route_args {
    ops_mat x;                /* [n][width] */
    const ops_buffer *router; /* [n_experts][width] */
    const ops_buffer *bias;   /* [n_experts]; NULL: none */
    /* [n_experts] each weight is multiplied by its expert's in the end; NULL: by nothing */
    const ops_buffer *scales;
    uint32_t n, width, n_experts, n_used;
    ops_buffer *chosen;  /* [n][n_used] uint32_t */
    ops_buffer *weights; /* [n][n_used] */
    /* An expert that all tokens go to: shares[t] = sigmoid(shared . x[t]). NULL: there is none. */
    const ops_buffer *shared; /* [width] */
    ops_buffer *shares;       /* [n] */
} ops_route_args;

/*
 * y[t] = sum over i < n_used, in this order, of weights[t][i] * down_e (act(gate_e x[t]) * up_e x[t]) with
 * e = chosen[t][i] (+ add[t]), each product with its expert's bias where there is one. The matrices of all experts lie below one another: expert e has the outputs
 * from e * (outputs / n_experts), a multiple of 16, on. Who else goes to an expert never shows in a bit.
 */
typedef struct ops_experts_args {
    const ops_activations *x;
    const ops_buffer *chosen, *weights; /* what route made of the same n rows */
    uint32_t n_experts, n_used;
    const ops_weight *gate, *up, *down;
    const ops_buffer *gate_bias, *up_bias, *down_bias; /* [n_experts][outputs of one]; NULL: none */
    ops_gate kind;
    ops_mat y, add; /* add as a product's: may be y itself, or absent */
} ops_experts_args;

/*
 * Recurrent layers (gated delta net, Yang et al. 2024), first half: a causal convolution over the last n_taps
 * tokens, channel by channel, then SiLU; x is replaced. Of the heads of head_dim channels the first n_unit are
 * scaled to length 1 (x / sqrt(x . x + eps)), the first n_query of them to length 1 / sqrt(head_dim).
 *
 * before: the n_taps - 1 rows of x that stood before the batch, oldest first; after: those before the next
 * token. They may be the same memory.
 */
typedef struct ops_conv_args {
    ops_mat x;              /* [n][n_channels] */
    const ops_buffer *taps; /* [n_taps][n_channels], the newest token's last */
    uint32_t n, n_channels, n_taps, head_dim, n_query, n_unit;
    float eps;
    const float *before; /* host, [n_taps - 1][n_channels]; NULL: zeros */
    float *after;        /* host, the same shape */
} ops_conv_args;

enum { OPS_CONV_TAPS = 8, OPS_DELTA_COLUMNS = 32 };

/*
 * The second half: each value head h keeps a matrix S of head_dim keys times head_dim values, and token by
 * token, whatever the batch,
 *
 *     S *= exp(a[h] * softplus(alpha[t][h] + dt[h]))
 *     S += k (sigmoid(beta[t][h]) * (v - S^T k))^T,   out[t][h] = S^T q
 *
 * with q and k of key head h % n_key_heads, or, where neighbours share one, h / (n_value_heads / n_key_heads). Sums over keys are four partial ones, key i in i % 4, added
 * (0 + 2) + (1 + 3). A state lies as [n_value_heads][head_dim / OPS_DELTA_COLUMNS][head_dim keys]
 * [OPS_DELTA_COLUMNS values]; before and after may be the same memory.
 */
typedef struct ops_delta_args {
    ops_mat q, k;        /* [n][n_key_heads * head_dim] */
    ops_mat v, out;      /* [n][n_value_heads * head_dim] */
    ops_mat alpha, beta; /* [n][n_value_heads] */
    const ops_buffer *a, *dt;
    uint32_t n, n_key_heads, n_value_heads, head_dim;
    bool neighbours;
    const float *before; /* host; NULL: zeros */
    float *after;        /* host */
} ops_delta_args;

struct model_ops {
    const char *backend, *isa; /* "cpu", "avx512-vnni" */
    uint32_t kernel_version;   /* changes when results could change a bit */
    bool turns;                /* attention and score_rows take ops_turns; others must not be given any */
    /*
     * n keys of head_dim numbers, one behind the other, of every step-th token from `index` on become what attention
     * reads of such rows. On the host, at once; NULL: none.
     */
    void (*turn_keys)(model_ops *ops, const ops_turns *turns, uint32_t index, uint32_t step, uint32_t n,
        uint32_t head_dim, uint16_t *keys);
    /* set by the caller between operations, may be NULL; a cancelled one returns BASE_E_CANCELLED */
    const atomic_bool *cancel;

    void (*close)(model_ops *ops);
    int (*sync)(model_ops *ops, base_err *err);

    /* n_bytes of zeroed memory on large pages. Uploads and downloads are synchronous. */
    int (*buffer_new)(model_ops *ops, ops_buffer **ret, size_t n_bytes, base_err *err);
    void (*buffer_free)(model_ops *ops, ops_buffer *buffer);
    size_t (*buffer_bytes)(const ops_buffer *buffer); /* as buffer_new was asked for, at least */
    void (*upload)(model_ops *ops, ops_buffer *to, size_t at_bytes, const void *from, size_t n_bytes);
    void (*download)(model_ops *ops, void *to, const ops_buffer *from, size_t at_bytes, size_t n_bytes);

    /* Room for n_max rows of width_max; norm_quant and its kin set the number of rows and the width. */
    int (*activations_new)(
        model_ops *ops, ops_activations **ret, uint32_t n_max, uint32_t width_max, base_err *err);
    void (*activations_free)(model_ops *ops, ops_activations *x);

    /*
     * Packs a matrix of the file: ne[0] inputs (a multiple of 32), ne[1] outputs (any), of any type in
     * quant.c's table. Of ne[2] matrices one that has all their outputs, one matrix's behind another's. Refuses scales (floats: elements) that are not finite. The tensor's bytes may go
     * afterwards.
     */
    int (*pack)(model_ops *ops, ops_weight **ret, const gguf_tensor *tensor, base_err *err);
    /*
     * The same into the host's memory: products with such a matrix are computed there, whatever computes the rest.
     * All matrices of one call lie in the same place. NULL for a backend whose memory is the host's.
     */
    int (*pack_host)(model_ops *ops, ops_weight **ret, const gguf_tensor *tensor, base_err *err);
    void (*weight_free)(model_ops *ops, ops_weight *w);
    size_t (*weight_bytes)(const ops_weight *w); /* what a product with one row reads */
    uint32_t (*weight_outputs)(const ops_weight *w);

    /*
     * NULL for a backend that computes in the host's memory. pin: rows will lie in this memory, so the device
     * may read it directly; where the system does not allow that, no error is returned. unpin: called before
     * the memory is freed; safe for memory that was never pinned. bring: starts copying the view's lists and
     * rows to the device and returns before they are there.
     */
    void (*pin)(model_ops *ops, void *memory, size_t n_bytes);
    void (*unpin)(model_ops *ops, void *memory);
    int (*bring)(model_ops *ops, const model_rows_view *rows, base_err *err);

    /*
     * Measures, for some milliseconds: multiplications a second of all threads out of registers. 0 or NULL:
     * cannot say.
     */
    double (*peak)(model_ops *ops, ops_peak kind);

#define MODEL_OP(op) int (*op)(model_ops * ops, const ops_##op##_args *args, base_err *err);
#include "model/ops/ops.def"
#undef MODEL_OP
};

/* n_threads: the pool that the operations run on (1..64). cpu_mask: OPS_CPU_* bits of levels to leave out. */
int cpu_ops_open(model_ops **ret, int n_threads, unsigned cpu_mask, base_err *err);

/* What a matrix of the file takes in memory when it is packed for the CPU, by its format alone. */
uint64_t cpu_packed_bytes(const gguf_tensor *t);

/*
 * Rows that another backend has quantised, as the CPU's activations: x = d * q in blocks of 32, and where
 * is_fine, d * (q + q2 / 256). What quant and its kin would have made of the same floats.
 */
typedef struct ops_quantised {
    uint32_t n, width;
    const int8_t *q, *q2;    /* [n][width] */
    const float *d;          /* [n][width / 32] */
    const uint32_t *is_fine; /* [n] */
} ops_quantised;
int cpu_take_quantised(model_ops *cpu, ops_activations *x, const ops_quantised *rows, base_err *err);

/*
 * The GPU's operations (src/cuda, where the build has it), with the CPU's bits; with `bf16` batches of 64
 * tokens and more are computed by cuBLAS in BF16, with other bits. memory_bytes bounds what is taken of its
 * memory; 0: what is free. Without a device BASE_E_NOT_FOUND; BASE_E_DEVICE, from here or from any operation
 * later, says what is wrong with it, and after one every operation fails.
 */
int cuda_ops_open(model_ops **ret, int n_threads, uint64_t memory_bytes, bool bf16, base_err *err);
int cuda_ops_describe(char *text, size_t n, base_err *err); /* one line on the device */

/*
 * The levels that this build holds and this machine runs, the best first, "plain" last; NULL behind it.
 * ret_mask leaves out all others.
 */
const char *cpu_ops_level(size_t i, unsigned *ret_mask);

#endif
