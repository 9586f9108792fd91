/*
 * The border between host and device: for every kernel a struct of numbers and device pointers, and a
 * launcher that takes it by address. C and CUDA C++ read this file; nothing of model/ or base/ crosses it.
 *
 * A launcher computes the grid, launches on the stream and returns the runtime's word. It allocates nothing,
 * waits for nothing and decides nothing. What changes from token to token (lists of rows, angles, chosen
 * rows) lies in device memory that the struct points to, so that the same structs come again and a graph of
 * them can be replayed (launch_queue.c).
 */
#ifndef KVIST_CUDA_KERNELS_H
#define KVIST_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GPU_BLOCK = 32,      /* k of one scale, of weights and of activations */
    GPU_TILE = 256,      /* ordinals of one softmax state: MODEL_ROWS_TILE */
    GPU_QUERIES = 16,    /* query rows that a block of threads takes through the rows together */
    GPU_CHUNK_ROWS = 64, /* rows that lie in shared memory together */
    GPU_HEAD_DIM_MAX = 256,
    GPU_PARTS = 4,
    GPU_COLUMNS = 8, /* columns that a product takes through the weights together */
    GPU_ROWS = 8,    /* and rows */
    /* of products on the tensor cores, of which there are two */
    GPU_TILE_ROWS = 64,
    GPU_NARROW = 32,
    GPU_WIDE = 128,
    GPU_GRID_MAX = 65535,   /* of a grid's second number */
    GPU_DELTA_COLUMNS = 32, /* of a state that lie together: OPS_DELTA_COLUMNS */
};

/* How a block's value comes from its quants: the words and formulas of model/cpu/formats.def. */
typedef enum gpu_scales {
    GPU_SCALES_D,
    GPU_SCALES_DM,
    GPU_SCALES_KM,
    GPU_SCALES_K16,
    GPU_SCALES_K32,
    GPU_SCALES_KM16,
    GPU_SCALES_E,
    GPU_SCALES_F
} gpu_scales;

/*
 * A matrix in planes, each row's blocks of 32 k behind one another and every access aligned to its size:
 *
 *     quants   4, 5, 6 bits: 16 bytes, byte j = k j (low nibble) and k 16 + j; 8 bits: 32 bytes, signed; 16
 *         bits: 32 upper
 *              bytes, then 32 lower, both signed
 *     extra    5 bits: 4 bytes, bit g of byte i = fifth bit of k 4g + i; 6 bits: 8 bytes, of word g / 4 the
 *         bits 2 (g % 4) and up
 *              of byte i = upper bits of k 4g + i
 *     fine     D: F16 d. DM: F16 d, F16 m. KM: bytes sc, mn. K16: int8 of each half. K32: int8. KM16: sc + 16 mn of each
 *              half. E: a power. F: F32 d
 *     coarse   KM, KM16: F16 d, F16 dmin for 8 blocks. K16, K32: F32 d for 8 blocks
 */
typedef struct gpu_weight {
    const uint8_t *quants, *extra, *fine, *coarse;
    uint32_t n_in, n_out;
    int32_t bits, scales, offset; /* offset: taken off quants of fewer than 8 bits */
    int32_t has_codes;            /* of 4 bits: a quant q stands for byte q of `codes`, signed */
    uint32_t codes[4];
} gpu_weight;

/*
 * Rows of 8-bit numbers: x = d * q, and where `is_fine`, x = d * (q + q2 / 256). sum, sum2: of the halves of
 * each block.
 */
typedef struct gpu_columns {
    int8_t *q, *q2;      /* [n][width] */
    float *d;            /* [n][n_blocks] */
    int32_t *sum, *sum2; /* [n][n_blocks][2] */
    uint32_t *is_fine;   /* [n] */
    uint32_t *done;      /* [n] blocks that are through; 0 between launches */
} gpu_columns;

typedef struct gpu_mat {
    float *data;
    size_t stride; /* floats from row to row */
} gpu_mat;

typedef struct k_norm {
    gpu_mat x, out;
    const float *weight;
    uint32_t n, n_groups, width;
    float eps;
} k_norm;

typedef enum gpu_make {
    GPU_MAKE_PLAIN,
    GPU_MAKE_NORM,
    GPU_MAKE_SILU, /* from here on: gates, by ops.h's words */
    GPU_MAKE_GELU,
    GPU_MAKE_SIGMOID,
    GPU_MAKE_CLAMPED
} gpu_make;

typedef struct k_quant {
    gpu_mat x, up;        /* up: of gates */
    const float *weight;  /* of norms */
    const float *shares;  /* of gates, [n] what each row is multiplied by as well; NULL: nothing */
    const uint32_t *rows; /* [n] or NULL */
    uint32_t n, width;
    int32_t make; /* gpu_make */
    float eps;
    gpu_columns out;
} k_quant;

/* table: [n][n_rot], cosines first. */
typedef struct k_rope {
    gpu_mat x;
    const float *table;
    uint32_t n, n_heads, head_dim, n_rot;
    int32_t is_neox;
} k_rope;

typedef struct k_rows_write {
    gpu_mat k, v;
    uint16_t *pool;
    const uint64_t *places; /* [lane of the layer][n] lane * n_slots + slot */
    uint16_t *copy;         /* [lane of the layer][key | value][n][head_dim]: what goes to the host */
    uint32_t n, n_lanes, head_dim;
} k_rows_write;

/*
 * What a product of few columns does with its results when they are all there, so that no launch of its own
 * is needed (fuse.c); each by the block of threads that comes last:
 *
 *     QUANT  the row is normalised and quantised                of one part's outputs, for few tokens
 *     GATE   32 of gate and up become a block of activations    of two parts
 *     TURN   a head of q or k turns, keys and values are written  of three parts
 */
typedef enum gpu_then { GPU_THEN_NOTHING, GPU_THEN_QUANT, GPU_THEN_GATE, GPU_THEN_TURN } gpu_then;
typedef struct k_then {
    uint32_t *arrived; /* blocks of threads that are through, by 8 columns and group; 0 between launches */
    k_quant quant;
    k_rope q, k;
    k_rows_write rows;
    int32_t what; /* gpu_then */
    uint32_t unused;
} k_then;

/*
 * A mixture's columns. A pair is a token and one of its experts; pairs lie in the order of experts, one expert's
 * in that of their tokens. A cohort is a run of pairs that go to one expert, as many as a kernel takes columns
 * together. Made on the device (pairs.cu): which expert a token goes to is known there only.
 */
#define GPU_NO_PLACE 0xFFFFFFFFu
typedef struct gpu_cohort {
    uint32_t expert, first, n;
} gpu_cohort;
typedef struct gpu_pairs {
    gpu_cohort *cohorts; /* [n_most] */
    uint32_t *n_cohorts;
    uint32_t *token_of; /* [pairs] by place */
    uint32_t *place_of; /* [n][n_used] GPU_NO_PLACE: of an expert that does not exist */
    uint32_t n_most;    /* cohorts there can be */
} gpu_pairs;

/* Pairs by expert: 2 n_experts words and n_pairs halves of shared memory. */
typedef struct k_sort {
    const uint32_t *chosen; /* [n_pairs] */
    gpu_pairs pairs;
    uint32_t n_pairs, n_used, n_experts, columns; /* columns: of a cohort at most */
} k_sort;

/* y[t] = sum of weights[t][i] * products[place_of[t][i]], i ascending (+ add) */
typedef struct k_sum_pairs {
    const uint32_t *place_of;
    const float *weights, *products; /* [n][n_used], [pairs][width] */
    gpu_mat y, add;                  /* add.data NULL: none */
    uint32_t n, n_used, width;
} k_sum_pairs;

typedef struct k_route {
    gpu_mat x;
    const float *router, *bias, *scales, *shared; /* as ops.h's; NULL where there is none */
    float *scores;                                /* [n][n_experts], and one more where there is `shared` */
    uint32_t *chosen;
    float *weights, *shares;
    uint32_t n, width, n_experts, n_used;
} k_route;

/*
 * With `cohorts` (a mixture's) a matrix is its experts' below one another, each of w.n_out outputs, and column i
 * is row row_of[i] of x.
 */
typedef struct k_matmul {
    gpu_columns x;
    /* bits of the outputs that will be read; 16 of which none is are left alone. NULL: all are */
    const uint64_t *only;
    const gpu_cohort *cohorts;           /* NULL: columns in order, GPU_COLUMNS (or a tile's) together */
    const uint32_t *n_cohorts, *row_of;  /* row_of NULL: column i is row i */
    uint32_t n, n_parts, n_most, unused; /* n_most: cohorts there can be */
    struct k_part {
        gpu_weight w;
        const float *bias; /* NULL: none; of all experts */
        gpu_mat y, add;    /* add.data NULL: none */
        uint32_t first;    /* the first block of threads of this part */
    } parts[GPU_PARTS];
    k_then then; /* cuda_launch_matmul only */
} k_matmul;

/* A matrix as BF16 [n_out][n_in], out of its planes; columns as BF16 [n][width]. */
typedef struct k_widen {
    gpu_weight w;
    uint16_t *out;
    size_t n_blocks; /* of all rows */
} k_widen;

typedef struct k_widen_columns {
    gpu_columns x;
    uint16_t *out;
    uint32_t n, width;
} k_widen_columns;

typedef struct k_add {
    gpu_mat a, b, out; /* b.data NULL: none */
    float scale_a, scale_b;
    uint32_t n, width;
} k_add;

/*
 * A layer's live lists on the device. A row lies in the pool at slots[lane][ordinal]: head_dim keys, then as
 * many values, F16. A slot with GPU_STREAMED set counts from `streamed` instead, where a row is streamed_step
 * halves, keys first (scoring).
 */
#define GPU_STREAMED 0x80000000u
typedef struct gpu_lists {
    const uint16_t *pool, *streamed; /* pool: [lane][n_slots][2][head_dim] */
    const uint32_t *slots, *index;   /* [lane][cap]; index: place in the token sequence */
    const uint32_t *n_rows;          /* [lane] */
    size_t n_slots, cap, streamed_step;
    uint32_t first_lane, n_lanes, head_dim; /* this layer's lanes */
} gpu_lists;

typedef struct k_attention {
    gpu_lists lists;
    gpu_mat q, out;
    gpu_mat sums;       /* [n][n_head][2] largest score, sum; NULL: not asked for */
    const float *sinks; /* [n_head] a score in each head's denominator, of no row; NULL: none */
    /* split: [lane][query row][tile][2 + head_dim]; NULL: a block of threads walks all tiles */
    float *states;
    uint32_t n, n_head, window, n_splits, max_tiles;
    float scale;
    gpu_columns quantised; /* merge: the output as activations too; q NULL: not */
} k_attention;

/* One pass over (lane of the layer, tile) makes maxima and sums, the next the mass; see score.cu. */
typedef struct k_score {
    gpu_lists lists;
    const float *queries;    /* [lane of the layer][group][n_queries][head_dim], the heads that count only */
    const uint32_t *n_heads; /* [lane of the layer] that count */
    const uint32_t *from;    /* [lane of the layer] first ordinal that is read */
    const float *rest; /* [lane][query row] log of what other rows have in the denominator; -inf: nothing */
    float *tiles;      /* [lane][query row][tile][2]: maximum, sum */
    float *totals;     /* [lane][query row][2] */
    float *mass;       /* [lane][max_rows] */
    uint32_t group, n_queries, max_rows, max_tiles;
    int32_t pool_max;
    float scale;
} k_score;

/* Bounds of sections (ops.h): profiles [lane of the layer][n_sections][largest | smallest][head_dim]. */
typedef struct k_bound {
    const uint16_t *profiles;
    gpu_mat q;
    float *bound; /* [lane of the layer][n][group][n_sections] */
    uint32_t n, n_lanes, group, n_sections, head_dim;
    float scale;
} k_bound;

/* A recurrent layer's convolution (ops.h, conv), whose results lie apart from x. */
typedef struct k_conv {
    gpu_mat x, out;
    const float *taps, *before; /* before NULL: zeros */
    float *after;
    uint32_t n, n_channels, n_taps, head_dim, n_query, n_unit;
    float eps;
    uint32_t unused;
} k_conv;

/* And its state (ops.h, delta). factors: [n][n_value_heads][2] decay, beta. */
typedef struct k_delta {
    gpu_mat q, k, v, out, alpha, beta;
    const float *a, *dt, *before; /* before NULL: zeros */
    float *after, *factors;
    uint32_t n, n_key_heads, n_value_heads, head_dim;
    int32_t neighbours;
    uint32_t unused;
} k_delta;

/* Words from one place to several: lists, numbers of rows. */
typedef struct gpu_patch {
    uint64_t to, from; /* device addresses */
    uint32_t n_words, unused;
} gpu_patch;
typedef struct k_patch {
    const gpu_patch *patches;
    uint32_t n;
} k_patch;

/*
 * Rows from where they lie (memory of the host that the device reads, or what the host gathered) to their
 * slots.
 */
typedef struct k_bring {
    const uint64_t *keys;   /* [n] addresses */
    const uint64_t *places; /* [n] lane * n_slots + slot; NULL: keys only, one behind another */
    uint16_t *pool;
    size_t to_value; /* halves from a key to its value */
    uint32_t n, head_dim;
} k_bring;

typedef struct k_copy {
    const float *from;
    float *to;
    size_t from_stride, to_stride;
    uint32_t n, width;
} k_copy;

#ifdef __cplusplus
extern "C" {
#endif

typedef cudaError_t gpu_launch_fn(cudaStream_t stream, const void *params);

gpu_launch_fn cuda_launch_norm, cuda_launch_quant, cuda_launch_matmul, cuda_launch_matmul_narrow,
    cuda_launch_matmul_wide, cuda_launch_cohorts, cuda_launch_cohorts_narrow, cuda_launch_score_experts,
    cuda_launch_choose_experts, cuda_launch_sort_pairs, cuda_launch_conv, cuda_launch_delta_factors,
    cuda_launch_delta, cuda_launch_sum_pairs, cuda_launch_add, cuda_launch_rope, cuda_launch_rows_write,
    cuda_launch_attention, cuda_launch_merge, cuda_launch_score_tiles, cuda_launch_score_totals,
    cuda_launch_score_mass, cuda_launch_bound, cuda_launch_patch, cuda_launch_bring, cuda_launch_copy,
    cuda_launch_widen, cuda_launch_widen_columns, cuda_launch_gemm, cuda_launch_attention_wide;

#ifdef __cplusplus
}
#endif
#endif
