/*
 * Inside the CPU backend: its objects, and the table of kernels that each instruction-set level fills.
 *
 * kernels_ref.c fills every entry in plain C; a level's files (*_avx2.c, *_avx512.c; chosen in levels.c)
 * replace entries and must give the same bits, which tests/model/check_ops.c checks. What is above the
 * kernels (threads, tiles, lists of rows) is shared.
 *
 * Sums with more than one partial sum are always 16 of them, element i in partial sum i % 16, added by
 * halves: (i, i + 8), (i, i + 4), (i, i + 2), (i, i + 1).
 */
#ifndef KVIST_MODEL_CPU_H
#define KVIST_MODEL_CPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "model/ops/ops.h"
#include "model/ops/sketch.h"

enum {
    CPU_LANES = 16, /* output rows of a tile, keys of a score vector */
    CPU_BLOCK = 32, /* k of one scale of the activations */
    CPU_GROUP = 8,  /* columns a kernel takes at most */
    CPU_SUPER_MAX = 8,
    CPU_HEAD_DIM_MAX = 512,
    CPU_VISIT_LANES = 128, /* of a layer */
    CPU_VISIT_GROUP = 64,  /* query heads a lane */
    CPU_PEAK_STEPS = 8,
    CPU_THREADS_MAX = 64,
};

typedef enum cpu_scales {
    CPU_SCALES_D,
    CPU_SCALES_DM,
    CPU_SCALES_KM,
    CPU_SCALES_K16,
    CPU_SCALES_KM16,
    CPU_SCALES_K32,
    CPU_SCALES_E,
    CPU_SCALES_F
} cpu_scales;

typedef enum cpu_format {
#define CPU_FORMAT(name, bits, scales, blocks, head, shift, codes) CPU_##name,
#include "model/cpu/formats.def"
#undef CPU_FORMAT
    CPU_N_FORMATS
} cpu_format;

typedef struct cpu_format_info {
    int bits;
    cpu_scales scales;
    uint32_t blocks, head_bytes, block_bytes;
    int shift;
    const int8_t *codes;
} cpu_format_info;

extern const cpu_format_info cpu_formats[CPU_N_FORMATS];

struct ops_buffer {
    void *data;
    size_t n_bytes;
};

struct ops_weight {
    cpu_format format;
    uint32_t n_in, n_out, n_tiles, n_super;
    size_t tile_bytes, n_bytes;
    uint8_t *data; /* [n_tiles] of tile_bytes */
};

/*
 * Quantised rows. A row becomes one column of 8-bit numbers, or two: x = d * (q + q2 / 256), when eight bits
 * would lose what stands beside an enormous element (cpu_row_needs_fine). First columns 0..n-1 in order, then
 * the second columns of the rows in `fine`. Columns lie in groups of CPU_GROUP (the last one narrower),
 * interleaved for the kernels: see cpu_columns.
 */
struct ops_activations {
    uint32_t n_max, width_max;
    uint32_t n, width, n_fine;
    uint32_t n_blocks; /* of 32, padded with zeros (cpu_padded_blocks) */
    uint32_t *fine;    /* [n_fine] rows with a second column, ascending */
    int8_t *q;
    float *d, *sum;
    int32_t *nsum;
    /* Row-major results of the first phase, before they are interleaved. */
    int8_t *row_q, *row_q2; /* [n][width] */
    float *row_d;           /* [n][n_blocks] */
    uint8_t *row_fine;      /* [n] */
};

/* One group of c columns: q [n_blocks * 8][c][4], d and sum [n_blocks][c], nsum [n_blocks][2][c]. */
typedef struct cpu_columns {
    int8_t *q;
    float *d;      /* scale */
    float *sum;    /* sum of the block's 32 numbers */
    int32_t *nsum; /* minus the sums of its two halves */
} cpu_columns;

static inline uint32_t cpu_n_columns(const ops_activations *x)
{
    return x->n + x->n_fine;
}

/* Of columns from `all` on: the group that begins `first` columns further, behind whole groups. */
static inline cpu_columns cpu_columns_from(cpu_columns all, uint32_t n_blocks, uint32_t first)
{
    size_t at = (size_t)first * n_blocks;
    return (cpu_columns){all.q + at * CPU_BLOCK, all.d + at, all.sum + at, all.nsum + 2 * at};
}

/* The group that begins at column `first` (a multiple of CPU_GROUP) and has c columns. */
static inline cpu_columns cpu_group(const ops_activations *x, uint32_t first)
{
    return cpu_columns_from((cpu_columns){x->q, x->d, x->sum, x->nsum}, x->n_blocks, first);
}

/*
 * An expanded tile ("panel"), for many columns: per block two vectors of 16 F32 (scale and minimum, or the
 * scales of the two halves; KM16: these and their minima, four), then 8 vectors of unsigned bytes (16 for WIDE).
 */
static inline size_t cpu_panel_scales_bytes(cpu_scales kind)
{
    return kind == CPU_SCALES_KM16 ? 256 : 128;
}

static inline size_t cpu_panel_block_bytes(cpu_scales kind)
{
    return cpu_panel_scales_bytes(kind) + (kind == CPU_SCALES_F ? 1024 : 512);
}

/* out[c][16] = one tile times c (1..CPU_GROUP) columns. */
typedef void cpu_tile_fn(const uint8_t *tile, uint32_t n_super, const cpu_columns *x, uint32_t c, float *out);
/* 16 rows' bytes of one whole super-block -> head and blocks of a tile. */
typedef void cpu_pack_fn(const uint8_t *const *rows, uint8_t *out);
typedef void cpu_expand_fn(const uint8_t *tile, uint32_t n_super, uint8_t *panel);
typedef void cpu_panel_fn(
    const uint8_t *panel, uint32_t n_blocks, int shift, const cpu_columns *x, uint32_t c, float *out);

/*
 * Rows that will be wanted soon: while a kernel multiplies its i-th row, it asks for the memory of rows[i],
 * for i below n.
 */
typedef struct cpu_ahead {
    const uint16_t *const *rows;
    uint32_t n;
} cpu_ahead;

typedef struct cpu_sketch_query {
    int8_t codes[CPU_HEAD_DIM_MAX];
    float by, base;
} cpu_sketch_query;

/* Numerators p of a softmax over a part, as shares of the whole: p * exp(part_max - max) / sum. */
typedef struct cpu_share {
    float part_max, max, sum;
} cpu_share;

/* decay and beta as they are multiplied by; q, k [n_keys], a multiple of 4; v [OPS_DELTA_COLUMNS]. */
typedef struct cpu_delta {
    const float *q, *k, *v;
    uint32_t n_keys;
    float decay, beta;
} cpu_delta;

typedef struct cpu_kernels {
    const char *isa;

    /*
     * n rounds of CPU_PEAK_STEPS multiply instructions, and nothing else; peak_macs: products in one of them.
     * NULL: none.
     */
    void (*peak[2])(uint64_t n);
    uint32_t peak_macs[2]; /* by ops_peak */

    /* Rows of activations. n is a multiple of 16 for norm, of 32 for quant. */
    void (*norm_row)(const float *x, const float *weight, uint32_t n, float eps, float *out);
    /* out[i] = rows[i] . x for n_rows (1..4) rows, a sum of 16 partial ones each; n is a multiple of 16. */
    void (*dot_rows)(
        const float *rows, size_t stride, uint32_t n_rows, const float *x, uint32_t n, float *out);
    void (*gate_row)(const float *gate, const float *up, ops_gate kind, uint32_t n, float *out);
    /* out[i] = silu(sum over j of taps[j][i] * rows[j][i]), j ascending; n is a multiple of 16. */
    void (*conv_row)(
        const float *const *rows, const float *const *taps, uint32_t n_taps, uint32_t n, float *out);
    /* One token's step of OPS_DELTA_COLUMNS values of a head's state: ops_delta_args. from may be to. */
    void (*delta_step)(const cpu_delta *d, const float *from, float *to, float *out);
    void (*quant_row)(const float *x, uint32_t n, int8_t *q, float *d);
    void (*quant_fine_row)(const float *x, uint32_t n, const int8_t *q, const float *d, int8_t *q2);

    /* c rows (q[i], with scales d[i] * unit[i]) become the group `out` of c columns. */
    void (*interleave)(const int8_t *const *q, const float *const *d, const float *unit, uint32_t c,
        uint32_t n_blocks, cpu_columns out);

    cpu_pack_fn *pack[CPU_N_FORMATS]; /* NULL: pack.c's own */
    cpu_tile_fn *tile[CPU_N_FORMATS]; /* NULL: through a panel */
    cpu_expand_fn *expand[CPU_N_FORMATS];
    cpu_panel_fn *panel[CPU_SCALES_F + 1];

    /* Attention. */
    void (*f16_row)(const float *x, uint32_t n, uint16_t *out);
    /*
     * A key as a folded row is read (ops.h, ops_turns): turned on by the angles whose n_rot / 2 cosines and then sines
     * are in `table`, each product and sum rounded by itself, the result to F16. key and out may be the same.
     */
    void (*turn_key)(const uint16_t *key, const float *table, uint32_t n_rot, ops_rope_pairing pairing,
        uint32_t head_dim, uint16_t *out);
    /*
     * n_q queries, head_dim apart, turned back by such angles instead, as F32: to rows that are folded.
     */
    void (*turn_queries)(const float *restrict q, uint32_t n_q, const float *table, uint32_t n_rot,
        ops_rope_pairing pairing, uint32_t head_dim, float *restrict out);
    /* s[m][row] = scale * (q[m] . row); up to three places behind the rows are overwritten. */
    void (*scores)(const uint16_t *const *rows, uint32_t n_rows, const float *q, uint32_t n_q,
        size_t q_stride, uint32_t head_dim, float scale, cpu_ahead ahead, float *s, size_t s_stride);
    /*
     * s[lo..hi) -> exp(s - max), the other places up to n (a multiple of 16) -> 0. An empty range: max -inf,
     * sum 0.
     */
    void (*softmax)(float *s, uint32_t lo, uint32_t hi, uint32_t n, float *ret_max, float *ret_sum);
    /* out[m] = sum over rows of p[m][row] * value row. */
    void (*values)(const uint16_t *const *rows, uint32_t n_rows, const float *p, size_t p_stride,
        uint32_t n_q, uint32_t head_dim, cpu_ahead ahead, float *out);
    /* (m, l, o) absorbs (m2, l2, o2). */
    void (*merge)(float *m, float *l, float *o, float m2, float l2, const float *o2, uint32_t head_dim);
    /*
     * acc[i] = pool of acc[i] and p[i] * exp(tile_max - max) / sum, for numerators p of softmax: the mean's
     * sum, or the maximum.
     */
    void (*mass)(const float *p, uint32_t n, float tile_max, float max, float sum, bool pool_max, float *acc);

    /*
     * acc[i] = sum over m < n_q, ascending, of the share of p[m * stride + i], and largest[i / 16] the largest
     * of its 16; n is a multiple of 16.
     */
    void (*masses)(const float *p, size_t stride, uint32_t n_q, uint32_t n, const cpu_share *of, float *acc,
        float *largest);

    /*
     * Numerators that stand for counts[i] places each, n a multiple of 16: p[i] *= counts[i]. Returns what that adds to
     * their sum.
     */
    float (*weigh)(const float *counts, uint32_t n, float *p);
    /* How many of `some`, all below 2^31, are at least `least`. */
    uint32_t (*count_least)(const uint32_t *some, uint32_t n, uint32_t least);

    /* Sketches (model/ops/sketch.h). */
    /*
     * Queries q[m], head_dim apart, as their lane's sketch takes them: codes [head_dim] from -127 to 127;
     * score = codes.codes * by + base.
     */
    void (*sketch_queries)(const float *q, uint32_t n_q, const float *middle, const float *step,
        uint32_t head_dim, float scale, cpu_sketch_query *ret);
    /*
     * sketch_queries of turn_queries of q at once, with the same bits. False: not of this shape, and nothing was done.
     * NULL: the level has none.
     */
    bool (*sketch_turned)(const float *q, uint32_t n_q, const float *table, uint32_t n_rot,
        ops_rope_pairing pairing, const float *middle, const float *step, uint32_t head_dim, float scale,
        cpu_sketch_query *ret);
    /* s[m][0..15] of a group's rows; -infinity where `rows` has no bit. ahead: codes wanted soon, or NULL. */
    void (*sketch_scores)(const uint8_t *codes, const uint8_t *ahead, uint32_t head_dim, uint32_t rows,
        const cpu_sketch_query *q, uint32_t n_q, float *s, size_t s_stride);
} cpu_kernels;

void cpu_kernels_best(
    cpu_kernels *k, unsigned cpu_mask); /* the best level that runs here and is not masked */
void cpu_kernels_ref(cpu_kernels *k);
/* kernels_ref.c's, for shapes that a level has nothing better for. */
void cpu_turn_queries_ref(const float *restrict q, uint32_t n_q, const float *table, uint32_t n_rot,
    ops_rope_pairing pairing, uint32_t head_dim, float *restrict out);
void cpu_turn_key_ref(const uint16_t *key, const float *table, uint32_t n_rot, ops_rope_pairing pairing,
    uint32_t head_dim, uint16_t *out);
void cpu_kernels_avx2(cpu_kernels *k); /* a level: products, rows and attention, each in its file */
void cpu_matmul_avx2(cpu_kernels *k);
void cpu_attention_avx2(cpu_kernels *k);
void cpu_sketch_avx2(cpu_kernels *k);
void cpu_recurrent_avx2(cpu_kernels *k);
void cpu_kernels_avx512(cpu_kernels *k);
void cpu_pack_avx512(cpu_kernels *k);
void cpu_matmul_avx512(cpu_kernels *k);
void cpu_attention_avx512(cpu_kernels *k);
void cpu_sketch_avx512(cpu_kernels *k);
void cpu_recurrent_avx512(cpu_kernels *k);

/* Everything a run on the pool needs; the scratch of thread i is scratch[i]. */
typedef struct cpu_arena_block cpu_arena_block;

typedef struct cpu_ops {
    model_ops ops; /* first: a model_ops * of this backend is one of these */
    base_pool *pool;
    int n_threads;
    cpu_kernels kernels;
    struct {
        void *data;
        size_t n_bytes;
    } scratch[CPU_THREADS_MAX], shared;
    cpu_arena_block *arena; /* packed weights */
} cpu_ops;

/* n_bytes for a packed weight, on 2 MiB pages, until the backend closes; NULL when memory is gone. */
void *cpu_arena_take(cpu_ops *cpu, size_t n_bytes);
void cpu_arena_free(cpu_ops *cpu);

static inline float *cpu_row(ops_mat m, size_t row)
{
    return (float *)m.buffer->data + m.first + row * m.stride;
}

static inline const float *cpu_floats(const ops_buffer *b)
{
    return b->data;
}

/* Folded rows (ops.h, ops_turns): the turns of a layer, NULL where its rows are read as they are. */
static inline const ops_turns *cpu_turns_of(const ops_turns *turns, uint32_t layer)
{
    return turns && turns->layers[layer] ? turns : NULL;
}

static inline uint32_t cpu_gap_of(const ops_turns *t, uint32_t group)
{
    return group < t->n ? t->gaps[group] : 0;
}

/* A key of a group, turned on by its gap. */
static inline void cpu_turn_key(const cpu_kernels *k, const ops_turns *t, uint32_t group, const uint16_t *key,
    uint32_t head_dim, uint16_t *out)
{
    k->turn_key(key, cpu_floats(t->table) + (size_t)group * t->n_rot, t->n_rot, t->pairing, head_dim, out);
}

/*
 * Working space: at least per_thread bytes in each thread's own cpu->scratch, and `shared` bytes in cpu->shared.
 * Called by an operation before it runs on the pool. BASE_E_NOMEM.
 */
int cpu_scratch_reserve(cpu_ops *cpu, size_t per_thread, size_t shared, base_err *err);

/* Heads that the kernels over rows can do, and query heads that share them evenly. */
int cpu_check_heads(const model_rows_shape *s, uint32_t n_head, base_err *err);

/* Blocks of 32 that a row of `width` is padded to: whole super-blocks of every format whose rows need not be. */
static inline uint32_t cpu_padded_blocks(uint32_t width)
{
    return (width / CPU_BLOCK + 3) / 4 * 4;
}

/*
 * Rows that eight bits are too few for (cpu_row_needs_fine in activations.c): d[n_blocks] are a row's scales.
 */
bool cpu_row_needs_fine(const float *d, uint32_t n_blocks);

/* c rows of n_blocks whole blocks become a group that is padded to n_padded blocks. As the kernel's. */
void cpu_interleave(const cpu_kernels *k, const int8_t *const *q, const float *const *d, const float *unit,
    uint32_t c, uint32_t n_blocks, uint32_t n_padded, cpu_columns out);

/*
 * One tile times n_columns columns, in groups from x on, to out [n_columns][16]. panel: cpu_panel_bytes, the
 * thread's own.
 */
void cpu_multiply_tile(const cpu_kernels *k, const ops_weight *w, uint32_t tile, cpu_columns x,
    uint32_t n_blocks, uint32_t n_columns, uint8_t *panel, float *out);
size_t cpu_panel_bytes(uint32_t n_blocks);

/*
 * Work of n_items like tiles, for all threads: each has a range, from whose beginning it claims `chunk` at a
 * time, and helps another when it is done (matmul.c says why). False: cancelled.
 */
typedef void cpu_items_fn(const void *arg, uint32_t first, uint32_t last, int thread);
bool cpu_run_items(cpu_ops *cpu, cpu_items_fn *fn, const void *arg, uint32_t n_items, uint32_t chunk);
uint32_t cpu_chunk_of(const cpu_ops *cpu, uint32_t n_items, size_t item_bytes, uint32_t n_columns);

bool cpu_is_cancelled(const cpu_ops *cpu); /* any thread; looked at between tiles */
int cpu_cancelled(base_err *err);          /* fills err, returns BASE_E_CANCELLED */

/* One function an operation, and packing. */
#define MODEL_OP(op) int cpu_op_##op(model_ops *ops, const ops_##op##_args *args, base_err *err);
#include "model/ops/ops.def"
#undef MODEL_OP
int cpu_pack(model_ops *ops, ops_weight **ret, const gguf_tensor *tensor, base_err *err);
void cpu_weight_free(model_ops *ops, ops_weight *w);
size_t cpu_weight_bytes(const ops_weight *w);
uint32_t cpu_weight_outputs(const ops_weight *w);
int cpu_activations_new(
    model_ops *ops, ops_activations **ret, uint32_t n_max, uint32_t width_max, base_err *err);
void cpu_activations_free(model_ops *ops, ops_activations *x);

#endif
