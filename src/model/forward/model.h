/*
 * A model: weights, and the forward pass over the rows it is handed. It never decides what is in the cache.
 *
 * Thread: one call at a time (the engine thread); the work is spread over the pool given at open.
 */
#ifndef KVIST_MODEL_MODEL_H
#define KVIST_MODEL_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/ops/rows.h"

typedef struct model model;
typedef struct model_tokenizer model_tokenizer;
typedef struct model_template model_template;

int model_threads(int wanted); /* 0: as many as this process may run on, at most 16 */

typedef struct model_options {
    int n_threads;       /* 0: the machine's cores, at most 16 */
    unsigned cpu_mask;   /* ISA levels to leave out (tests); 0: none. Bits: model/ops/ops.h */
    const char *backend; /* "cpu", "cpu:LEVEL" (cpu_ops_level), "cuda", "cuda:bf16", "auto"; NULL is auto */
    uint64_t gpu_bytes;  /* of the GPU's memory at most; 0: what is free */
    /*
     * What lies in the GPU's memory where one computes: the matrices of so many layers, the first ones (0: of all),
     * without the experts' with cpu_moe. What stays in the host's is multiplied with there. The bits are the same.
     */
    uint32_t gpu_layers;
    bool cpu_moe;
    void (*notice)(
        void *user, const char *sentence); /* another backend than was asked for, and why; may be NULL */
    bool thinking;                         /* let a model that can think aloud do so (template.h) */
    void (*progress)(void *user, double share, const char *what); /* while weights are packed; may be NULL */
    void *user;
    const atomic_bool *cancel; /* may be NULL */
} model_options;

typedef struct model_info {
    const char *path, *name, *architecture,
        *quantisation;         /* e.g. "qwen2", "Q4_K_M"; live as long as the model */
    const char *backend, *isa; /* "cpu", "avx512-vnni" */
    uint32_t n_threads;
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab, n_ctx;
    uint64_t file_bytes, weight_bytes_per_token; /* what a decoded token reads */
    uint64_t n_params, n_params_active;          /* numbers in its tensors, and those that work on a token */
    uint32_t row_bytes;                          /* K and V of one token in all lanes */
    char hash[65];          /* sha256 over name, metadata and sampled tensor bytes: identity of the weights */
    uint32_t n_rows_layers; /* layers that have rows; the others keep a state */
    uint64_t state_bytes;   /* of one state; 0: the model keeps none */
    bool is_whole;          /* all layers are computed together: a state, or rows that layers share */
    bool folds;             /* rows may be read folded (ops/rows.h, gaps): the CPU's operations do that */
    const char *notice;     /* why the CPU computes where a GPU was to; NULL: it is as it was asked for */
    uint32_t kernel_version; /* part of a cache state's identity: changes when results could change a bit */
} model_info;

/* Loads and packs. Refuses before loading, with the numbers, when memory is too small. */
int model_open(model **ret, const char *path, const model_options *options, base_err *err);
void model_close(model *m);
const model_info *model_get_info(const model *m);
const model_tokenizer *model_get_tokenizer(const model *m);
const model_template *model_get_template(const model *m);
model_rows_shape model_get_rows_shape(const model *m); /* n_layer: of the layers that have rows */
uint32_t model_window(
    const model *m, uint32_t layer); /* tokens that a layer with rows reads, its own included; 0: all */
/*
 * Bytes this process may still take: the machine's free memory, and the limits that are set for it (cgroup,
 * ulimit -v).
 */
uint64_t model_memory_available(void);
/*
 * Bytes of memory that the rows of n tokens take, row_bytes each, of which window_bytes are of layers that read the newest
 * `window` tokens: where a session has a file of rows, it keeps those behind the window on disk (kv/evict/tier.c).
 */
uint64_t model_rows_memory(uint64_t row_bytes, uint64_t window_bytes, uint32_t window, uint32_t n);
/*
 * Whether a session of n_ctx tokens with n_rows active rows is possible: within the model's context, and in
 * free memory. has_file: rows behind windows may leave it.
 */
int model_check_room(const model *m, uint32_t n_ctx, uint32_t n_rows, bool has_file, base_err *err);

/*
 * Query vectors kept while a batch runs: post-RoPE, F32, [n_layer][n_head][n][head_dim]. `tokens` are places
 * in the batch. Here and below n_layer counts the layers that have rows (model_rows_shape).
 */
typedef struct model_capture {
    const uint32_t *tokens; /* [n], ascending */
    uint32_t n;
    float *queries;
} model_capture;

/*
 * A reader decides which rows each token reads. It has two ways. The first: read less than the live lists
 * hold, by whole sections. In every layer without a window, once the batch's rows are written, `sections`
 * gives the sections' profiles (ops.h, bound); with n_sections 0 the layer is read in full. Otherwise bounds
 * are computed into `bound` ([n_head_kv][n][n_sections], the reader's memory). Then `choose` is called for
 * each token in order and gives the view that the token reads instead of the batch's; its lanes of this layer
 * end with the token's own row. The view is used before the next call.
 */
typedef struct model_sections {
    const model_rows_view *profiles;
    uint32_t n_sections;
    float *bound;
} model_sections;

/*
 * The second way: read rows that the live lists do not hold. `visit`, in place of the other two, says once a
 * layer which lists all tokens of the batch read, and which evicted rows each may choose from (ops.h, visit).
 * When the layer is through, `visited` is told who was chosen; where it returns an error the batch ends with that, where 1, what
 * was read was not what it should have been and is now: the layer is read again.
 */
typedef struct model_reader {
    void *user;
    int (*sections)(void *user, uint32_t layer, model_sections *ret, base_err *err);
    int (*choose)(void *user, uint32_t layer, uint32_t token, const model_rows_view **ret, base_err *err);
    int (*visit)(void *user, uint32_t layer, model_visit *ret, base_err *err);
    int (*visited)(void *user, const model_visit *visit, base_err *err);
} model_reader;

/*
 * One batch of n tokens through layers [layer_first, layer_last). In every lane of those layers the list's
 * last n ordinals are this batch's rows, in order; they are written by the call, and token t of the batch
 * reads the list up to and with its own row. Results do not depend on n: a batch of 512 gives the bits of 512
 * batches of 1.
 *
 * Cancel is polled at every work tile; a cancelled call returns BASE_E_CANCELLED and the batch's rows are
 * garbage.
 */
typedef struct model_batch {
    const int32_t *ids;     /* [n] */
    const uint32_t *phases; /* [n] RoPE positions */
    uint32_t n;
    const model_rows_view *rows;
    uint32_t layer_first, layer_last; /* 0, 0 means all */
    float *hidden; /* [n][n_embd], in when layer_first > 0, out when layer_last < n_layer; else may be NULL */
    const uint32_t *want; /* places in the batch whose logits are wanted, ascending; NULL with n_want 0 */
    uint32_t n_want;
    float *logits; /* [n_want][n_vocab] */
    /* bits of the ids whose logits will be read, the others' are -INFINITY; NULL: all */
    const uint64_t *only;
    const model_capture *capture; /* may be NULL */
    const model_reader *reader;   /* of at most 512 tokens; NULL: lists are read in full */
    /*
     * Of a model that keeps a state (model_info.state_bytes, F32): the state behind the token before the
     * batch, NULL at a sequence's start, and room for the one behind its last token. They may be the same
     * memory; else a batch that fails leaves state_in as it is. Others: NULL.
     */
    const float *state_in;
    float *state_out;
    const atomic_bool *cancel; /* may be NULL */
} model_batch;

/*
 * Computes the batch. BASE_E_USAGE for one that is none, BASE_E_CANCELLED, BASE_E_STATE where the model's file was
 * changed meanwhile. Engine thread.
 */
int model_forward(model *m, const model_batch *batch, base_err *err);

typedef enum model_pool { MODEL_POOL_MEAN, MODEL_POOL_MAX } model_pool;

/*
 * How much attention each row would get. For every lane and every row of its list:
 *
 *     mass[row] = reduce over the lane's G query heads of  pool over t of  softmax over rows (q_t . k_row /
 *         sqrt(d))
 *
 * in F32, with one running maximum and denominator over everything scanned (docs/kv.md, "One pipeline").
 * reduce is the mean over the heads that are not masked out (sum of masses / number of heads); a lane without
 * such a head gets zeros.
 */
typedef struct model_score {
    const float *queries; /* [n_layer][n_head][n_queries][head_dim], as model_capture */
    uint32_t n_queries;   /* 1..64 */
    /*
     * [n_queries] whose queries they are: where rows are folded, a query asks from its own token's folded
     * phase. NULL: of the newest tokens, which are never folded.
     */
    const uint32_t *tokens;
    const model_rows_view *rows;
    model_pool pool;
    const uint8_t *heads; /* [n_layer * n_head] 1 = counts; NULL: all */
    /*
     * [n_layer][n_head][n_queries] log of the sum of exp(score) over rows that no list names, -INFINITY for
     * none: they are in the denominators. NULL: there are none.
     */
    const float *rest;
    uint32_t end;       /* tokens of the sequence, where windows (Gemma) end then; 0: every row is scored */
    float *const *mass; /* [lanes] -> [n_rows of that lane's list]; NULL entries are skipped */
    const atomic_bool *cancel;
} model_score;

int model_score_rows(model *m, const model_score *score, base_err *err);

/*
 * Turns queries ([n_layer][n_head][n][head_dim], rotated as model_capture's) in place, the i-th by by[i]
 * phases, in layers without a window. Angles are F64, so any phase is as exact as a small one.
 */
void model_turn_queries(const model *m, float *queries, uint32_t n, const int64_t *by);
/*
 * n keys of a lane, one behind the other in F16, of every step-th token from `index` on: they become what a forward pass
 * over that view makes of folded rows (model_rows_view.turned_from). BASE_E_NOMEM.
 */
int model_turn_rows(model *m, const model_rows_view *rows, uint32_t lane, uint32_t index, uint32_t step,
    uint32_t n, uint16_t *keys, base_err *err);

/*
 * Only for a model on a GPU; without one these do nothing. pin: rows will lie in this memory, so the device
 * may read it directly where the system allows that. unpin: call it before the memory is freed. bring: starts
 * copying the rows that the lists name to the device, so that the next batch need not wait; if that fails,
 * the next batch reports it.
 */
void model_rows_pin(model *m, void *memory, size_t n_bytes);
void model_rows_unpin(model *m, void *memory);
void model_rows_bring(model *m, const model_rows_view *rows);

/*
 * How large a row's score can be in each section of one layer (ops.h, bound), every query head and query by
 * itself: queries as model_score's; bound[head][query][section]. n_queries times the query heads of a lane:
 * at most 512.
 */
typedef struct model_bound {
    const model_rows_view *profiles;
    uint32_t layer, n_sections, n_queries;
    const float *queries; /* [n_layer][n_head][n_queries][head_dim] */
    float *bound;         /* [n_head][n_queries][n_sections] */
    const atomic_bool *cancel;
} model_bound;

int model_bound_sections(model *m, const model_bound *b, base_err *err);

#endif
