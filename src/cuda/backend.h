/*
 * Inside the CUDA backend's host side: its objects and what its files do for one another. Nobody else
 * includes this.
 *
 *     device.c      which device there is, its memory, and sentences for what goes wrong with it
 *     backend.c     opens and closes, buffers, the table of operations
 *     launch_queue.c launches that wait, graphs of them, and the pieces of memory that travel with them
 *     room.c        memory of operations' own
 *     fuse.c        several launches become one
 *     weights.c     the file's matrices into planes (kernels.h)
 *     pins.c        which of the host's memory the device reads by itself
 *     device_rows.c which rows of the cache are on the device
 *     lists.c       the live lists there, and the rows that they need
 *     operations.c  one function an operation: numbers into a kernel's struct
 *     products.c    matmul: which kernel
 *     experts.c     a mixture's router and experts
 *     cublas.c      products of many columns by cuBLAS, where that is asked for
 *     recurrent.c   layers that keep a state
 *     host.c        products with matrices that stay in the host's memory
 *     score.c       score_rows
 *     visit.c       visit, on the host
 *
 * One thread calls (model/ops/ops.h). Host memory is the truth about rows: what the device writes is copied
 * back before `sync` returns, so losing the device loses nothing.
 */
#ifndef KVIST_CUDA_BACKEND_H
#define KVIST_CUDA_BACKEND_H

#include <cuda_runtime_api.h>
#include <string.h>

#include "base/buf.h"
#include "base/pool.h"
#include "cuda/kernels.h"
#include "model/ops/ops.h"

enum {
    CUDA_GRAPH_TOKENS =
        16, /* batches up to this wait for `sync` and are replayed as graphs; larger ones run at once */
    CUDA_GRAPHS = 16,
    CUDA_ARGUMENT_BYTES = 64 << 20, /* of the host's memory for a batch: angles, embeddings, chosen rows */
    CUDA_MOVE_BYTES = 64 << 20,     /* pieces of lists, rows on their way to the device */
    CUDA_PATCHES = 16384,           /* a flush's */
    CUDA_ARRIVED = 8192,            /* counters of a launch's blocks of threads that are through */
    CUDA_PATCH_BYTES = 2 << 20,
    CUDA_BACK_BYTES = 64 << 20, /* rows and results on their way back */
    CUDA_COMPUTE_LEAST = 80,    /* sm_80: cp.async */
    CUDA_SORT_BYTES = 48 << 10, /* of shared memory, for a mixture's pairs */
    CUDA_BF16_COLUMNS = 64,     /* cuda:bf16: products of at least so many columns are cuBLAS' */
    CUDA_BF16_OUTPUTS =
        1 << 16, /* matrices of more are a vocabulary's, which few columns meet: no copy of them */
};

struct ops_buffer {
    void *data; /* on the device */
    size_t n_bytes;
    struct ops_buffer *mirror; /* the CPU backend's, with what was uploaded last (host.c); NULL: none */
};

struct ops_weight {
    gpu_weight w;
    void *data, *wide; /* wide: BF16 [n_out][n_in], for cuBLAS; NULL: none */
    size_t n_bytes, wide_bytes;
    /* The CPU backend's, of a matrix that stays in the host's memory: then of w only the shape holds. Or NULL. */
    struct ops_weight *on_host;
};

/*
 * Two sets, one for what a norm makes and one for the rest: a product's last blocks may then write the next
 * activations while others still read theirs (fuse.c).
 */
struct ops_activations {
    uint32_t n_max, width_max, n, width;
    gpu_columns sets[2], columns; /* columns: of the two the one that was made last */
    uint16_t *wide;               /* BF16 [n][width] of a product at hand; NULL without cuBLAS */
    void *data;
    size_t n_bytes;
};

/* Memory in two places, filled from the front here and copied to (or from) there in one piece. */
typedef struct cuda_arena {
    uint8_t *host, *device; /* host: pinned */
    size_t size, used, copied;
} cuda_arena;

typedef struct cuda_command {
    gpu_launch_fn *launch;
    size_t at, size; /* its struct, in cuda_queue.structs */
} cuda_command;

typedef struct cuda_graph {
    cudaGraphExec_t exec; /* NULL: seen once */
    base_buf key;         /* the launches and their structs */
    uint64_t used;
} cuda_graph;

/* What was written on the device, on its way to host memory. */
typedef struct cuda_delivery {
    void *to;
    const void *from; /* host side of the back arena */
    size_t n_bytes;
} cuda_delivery;

typedef struct cuda_queue {
    cuda_command *commands;
    size_t n, cap;
    base_buf structs;
    cuda_graph graphs[CUDA_GRAPHS];
    uint64_t clock;
    gpu_patch *patches;
    size_t n_patches, cap_patches;
    cuda_delivery *deliveries;
    size_t n_deliveries, cap_deliveries;
    uint64_t serial; /* counts flushes */
} cuda_queue;

/* Memory of the device that an operation keeps its own numbers in; it grows when more is asked for. */
typedef struct cuda_room {
    void *data;
    size_t n_bytes;
} cuda_room;

typedef struct cuda_pinned {
    const uint8_t *host;
    uint8_t *device; /* the same memory, as the device names it */
    size_t n_bytes;
} cuda_pinned;

typedef struct cuda_pins {
    cuda_pinned *pieces; /* by address here */
    size_t n, cap;
    bool is_refused; /* the system pins no more */
} cuda_pins;

/* What the CPU backend computes for this one (host.c, visit.c). */
typedef struct cuda_host {
    model_ops *ops; /* NULL: nothing so far */
    ops_activations *x;
    uint32_t n_max, width_max; /* x's room */
    ops_buffer *numbers[3];    /* a mixture's choice and weights, and results: each in the CPU's memory */
    size_t n_bytes[3];
    base_buf rows; /* what came down */
} cuda_host;

typedef struct cuda_rows cuda_rows;
typedef struct cuda_cublas cuda_cublas;

typedef struct cuda_backend {
    model_ops ops; /* first: a model_ops * of this backend is one of these */
    base_pool *pool;
    cudaStream_t stream;
    int n_processors;
    int n_fill; /* of them that a product's tiles must fill; all, but for tests of small shapes */
    char name[300];
    size_t limit_bytes, used_bytes; /* of the device's memory */
    base_err failed;                /* code 0: nothing has */
    cuda_arena arguments, move, patch_lists, back;
    cuda_queue queue;
    cuda_pins pins;
    cuda_rows *rows;
    cuda_host host;
    cuda_cublas *cublas;          /* NULL: products give the CPU's bits */
    uint32_t *arrived;            /* [CUDA_ARRIVED] zeros, for products that go on (k_then) */
    cuda_room states;             /* attention's, split over tiles */
    cuda_room scores;             /* a router's */
    cuda_room pairs;              /* a mixture's pairs, and what is made of them on the way */
    cuda_room convolved, factors; /* a recurrent layer's, between its launches */
    cuda_room done; /* gpu_columns' counters of the hidden numbers among them: zeros between launches */
} cuda_backend;

/* ---- device.c ---- */

/* 0, or BASE_E_DEVICE for good: every later call fails the same way. */
int cuda_check(cuda_backend *c, cudaError_t e, base_err *err);
/* Device 0 and a stream of its own; memory_bytes: of the device at most, 0: what is free. Errors as above. */
int cuda_device_open(cuda_backend *c, uint64_t memory_bytes, base_err *err);
/*
 * Memory of the device within the limit, not cleared. `what` is in the sentence: "weights", "rows of the
 * cache".
 */
int cuda_alloc(cuda_backend *c, void **ret, size_t n_bytes, const char *what, base_err *err);
void cuda_free(cuda_backend *c, void *p, size_t n_bytes); /* n_bytes as it was allocated; NULL is fine */
/* n_bytes on the device and as many here, pinned. On failure cuda_arena_free is still due. */
int cuda_arena_new(cuda_backend *c, cuda_arena *a, size_t n_bytes, base_err *err);
void cuda_arena_free(cuda_backend *c, cuda_arena *a);

/* ---- launch_queue.c ---- */

/*
 * Room for that many bytes in each of the arenas, waiting for all that was begun when there is none: whatever
 * was taken before is void then. BASE_E_LIMIT for more than an arena's size.
 */
int cuda_reserve(cuda_backend *c, size_t argument_bytes, size_t move_bytes, size_t back_bytes, base_err *err);
bool cuda_has_room(const cuda_arena *a, size_t n_bytes); /* without waiting for anything */
/*
 * Of room that there is: through ret_host and ret_device (any pointers' addresses), where it is here and on
 * the device.
 */
void cuda_take(cuda_arena *a, size_t n_bytes, void *ret_host, void *ret_device);
/* Bytes of the host for a kernel: a copy in the argument arena. ret: the pointer's address. */
int cuda_give(cuda_backend *c, const void *bytes, size_t n_bytes, void *ret, base_err *err);
/*
 * Appends a launch; `params` (a struct of kernels.h, all its bytes set) is copied. n_tokens decides whether
 * it may wait.
 */
int cuda_launch(cuda_backend *c, gpu_launch_fn *launch, const void *params, size_t size, uint32_t n_tokens,
    base_err *err);
/* Before everything that waits: words of the move arena to their place. */
int cuda_patch(cuda_backend *c, void *to_device, const void *from_device, uint32_t n_words, base_err *err);
/* When all is through (cuda_finish), n_bytes of the back arena's host side go to `to`; where that fails they are dropped. */
void cuda_expect(cuda_backend *c, void *to, const void *from, size_t n_bytes);
/* Whether something is on its way to this memory of the host. */
bool cuda_is_expected(const cuda_backend *c, const void *to);
/* At once, in front of everything that waits; what the move arena holds goes first. */
int cuda_run_now(cuda_backend *c, gpu_launch_fn *launch, const void *params, base_err *err);
/* Begins everything that waits, and does not wait for it. */
int cuda_flush(cuda_backend *c, base_err *err);
/* Everything is through, rows that were written are in host memory, the arenas are empty. */
int cuda_finish(cuda_backend *c, base_err *err);
void cuda_queue_free(cuda_backend *c);

/* ---- room.c ---- */

/*
 * Room for n_bytes; where there is less, `more` (at least as many) are taken anew, zeros all of them, and what was
 * there is void. Waits for all that was begun then.
 */
int cuda_room_reserve(
    cuda_backend *c, cuda_room *room, size_t n_bytes, size_t more, const char *what, base_err *err);
void cuda_room_free(cuda_backend *c, cuda_room *room);

/* ---- fuse.c ---- */

/* Joins launches that wait where one kernel does the work of several, with the same bits. */
void cuda_fuse(cuda_queue *q);

/* ---- pins.c ---- */

/* ops.h's pin and unpin. */
void cuda_pin(model_ops *ops, void *memory, size_t n_bytes);
void cuda_unpin(model_ops *ops, void *memory);
/* Where the device reads what lies here; 0: it cannot. */
uint64_t cuda_pinned_at(const cuda_backend *c, const void *address);
void cuda_pins_free(cuda_backend *c);

/* ---- device_rows.c ---- */

int cuda_rows_new(cuda_backend *c, base_err *err);
void cuda_rows_free(cuda_backend *c);
/*
 * Places for the last n rows of a layer's lists, which are about to be written, and room in the back arena
 * (`copy`) for what is written: it comes to host memory when the batch ends.
 */
int cuda_rows_place(cuda_backend *c, const model_rows_view *view, uint32_t layer, uint32_t n,
    k_rows_write *ret, base_err *err);
/* Heads that the kernels over rows can do, and query heads that share them evenly. */
int cuda_check_heads(const model_rows_shape *s, uint32_t n_head, base_err *err);
/* The pool from this lane's first place on; NULL while there is none. */
const uint16_t *cuda_rows_pool(const cuda_backend *c, uint32_t lane);
/*
 * An operation's end: of a view without stamps nothing is remembered, since its memory may hold other rows
 * next time.
 */
int cuda_rows_done(cuda_backend *c, const model_rows_view *view, base_err *err);
/* Forgets what the pool holds of blocks that are not what they were (by the view's stamps). */
int cuda_rows_meet(cuda_backend *c, const model_rows_view *view, base_err *err);
/*
 * Where the pool holds a row, and those behind it in its block; CUDA_NO_SLOT for what it does not hold. After
 * cuda_rows_meet with this view.
 */
#define CUDA_NO_SLOT UINT32_MAX
const uint32_t *cuda_rows_places(const cuda_backend *c, uint32_t lane, uint32_t slot);
size_t cuda_rows_n_slots(const cuda_backend *c);

/* ---- lists.c ---- */

/*
 * Makes a layer's live lists of `view` stand on the device, with every row they name. The answer holds until
 * the next call.
 */
int cuda_lists_prepare(
    cuda_backend *c, const model_rows_view *view, uint32_t layer, gpu_lists *ret, base_err *err);
/* ops.h's bring: all layers', and does not wait until they stand. */
int cuda_bring(model_ops *ops, const model_rows_view *view, base_err *err);

/* ---- cublas.c ---- */

/* y (+)= x * weights, as a launch's struct. */
typedef struct k_gemm {
    const cuda_cublas *cublas;
    const uint16_t *weights, *x; /* BF16 [n_out][n_in], [n][n_in] */
    gpu_mat y;
    uint32_t n, n_in, n_out, adds; /* adds: to what y holds */
} k_gemm;

/* BASE_E_DEVICE with a sentence when there is no cuBLAS; cuda_cublas_close takes what was begun. */
int cuda_cublas_open(cuda_backend *c, base_err *err);
void cuda_cublas_close(cuda_backend *c);

/* ---- operations.c ---- */

/*
 * Columns for n rows of `width` within `data`, every part aligned; *ret_bytes: what they take. With data NULL only
 * that is wanted.
 */
gpu_columns cuda_columns_at(void *data, size_t n, size_t width, size_t *ret_bytes);
/* What a gate does, by the kernel's word. */
int32_t cuda_make_of(ops_gate kind);

int cuda_check_cancel(const cuda_backend *c, base_err *err); /* 0, or BASE_E_CANCELLED */
/* A launch that copies n rows of floats on the device. */
int cuda_add_rows(
    cuda_backend *c, gpu_mat a, gpu_mat b, gpu_mat out, uint32_t n, uint32_t width, base_err *err);
int cuda_copy_rows(cuda_backend *c, gpu_mat from, gpu_mat to, uint32_t n, uint32_t width, base_err *err);
/* A kernel's struct of zeros in all its bytes, padding too: structs are compared as bytes (launch_queue.c). */
#define CUDA_PARAMS(type, name)                                                                              \
    type name;                                                                                               \
    memset(&name, 0, sizeof name)

/* ---- host.c ---- */

/* The CPU backend, opened when it is asked for. */
int cuda_host_open(cuda_backend *c, model_ops **ret, base_err *err);
void cuda_host_close(cuda_backend *c);
void cuda_mirror_free(cuda_backend *c, ops_buffer *b);
/* ops.h's operations, of matrices that stay there. */
int cuda_host_matmul(cuda_backend *c, const ops_matmul_args *a, base_err *err);
int cuda_host_experts(cuda_backend *c, const ops_experts_args *a, base_err *err);

/* ---- weights.c, operations.c, score.c: what the table holds ---- */

int cuda_pack_host(model_ops *ops, ops_weight **ret, const gguf_tensor *tensor, base_err *err);

int cuda_pack(model_ops *ops, ops_weight **ret, const gguf_tensor *tensor, base_err *err);
void cuda_weight_free(model_ops *ops, ops_weight *w);
size_t cuda_weight_bytes(const ops_weight *w);
uint32_t cuda_weight_outputs(const ops_weight *w);
int cuda_activations_new(
    model_ops *ops, ops_activations **ret, uint32_t n_max, uint32_t width_max, base_err *err);
void cuda_activations_free(model_ops *ops, ops_activations *x);
#define MODEL_OP(op) int cuda_op_##op(model_ops *ops, const ops_##op##_args *args, base_err *err);
#include "model/ops/ops.def"
#undef MODEL_OP

static inline gpu_mat cuda_mat_of(ops_mat m)
{
    return m.buffer ? (gpu_mat){(float *)m.buffer->data + m.first, m.stride} : (gpu_mat){0};
}

static inline cuda_backend *cuda_of(model_ops *ops)
{
    return (cuda_backend *)ops;
}

#endif
