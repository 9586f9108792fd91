/*
 * IntentKV's learned residual (section 3.3, equations 4 to 6): a small network that corrects the rule's score of a
 * row. It is shown the row's mean key, the mean of what the session asked, and the mean keys of the newest message,
 * which the row looks at through an attention of its own:
 *
 *     score = rule + alpha * MLP(phi, c),   phi = [k, m, k * m, rule],   c = attention of phi over the message's keys
 *
 * 214,274 numbers for keys of 128 (the paper's count), trained by src/learn on a user's own sessions. It begins with
 * zeros behind the hidden layer, so an untrained one leaves the rule as it is.
 */
#ifndef KVIST_KV_RESIDUAL_H
#define KVIST_KV_RESIDUAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    KV_RESIDUAL_WIDTH = 128, /* of the attention, all heads together */
    KV_RESIDUAL_HEADS = 4,
    KV_RESIDUAL_HIDDEN = 256,
    KV_RESIDUAL_ASKING = 64,   /* tokens of the newest message that are looked at, at most */
    KV_RESIDUAL_ROWS = 8,      /* that are computed together */
    KV_RESIDUAL_DIM_MOST = 512 /* of a key */
};

/* Where each matrix begins among a network's numbers. A matrix is [input][output]: a product adds rows of it. */
typedef struct kv_residual_layout {
    size_t wq, bq; /* [3 dim + 1][WIDTH], [WIDTH] */
    size_t wk, bk; /* [dim][WIDTH], [WIDTH] */
    size_t wv, bv;
    size_t w1, b1; /* [3 dim + 1 + WIDTH][HIDDEN], [HIDDEN] */
    size_t w2, b2; /* [HIDDEN], 1 */
    size_t alpha, n;
} kv_residual_layout;

kv_residual_layout kv_residual_layout_of(uint32_t dim);

typedef struct kv_residual {
    uint32_t refs, dim;
    char hash[65]; /* the model whose keys it knows */
    /* What it was trained on, for a person: sessions and places of them, and the draw of its beginning. */
    uint32_t n_sessions, n_places;
    uint64_t seed;
    size_t n;
    float *values; /* [n], as kv_residual_layout says */
} kv_residual;

/* All zeros but alpha, which is 1; NULL: no memory, or no such size of keys. */
kv_residual *kv_residual_new(uint32_t dim, const char *hash);
kv_residual *kv_residual_ref(kv_residual *r); /* NULL is fine */
void kv_residual_unref(kv_residual *r);       /* NULL is fine */

/* What the network is shown at one pass. Borrowed. */
typedef struct kv_residual_input {
    uint32_t n, n_asking; /* n_asking: at most KV_RESIDUAL_ASKING; 0: c is 0 */
    const float *keys;    /* [n][dim] mean over layers and heads, as they are read (behind RoPE) */
    const float *rule;    /* [n] equation 3: the sum over layers and query heads */
    const float *memory;  /* [dim] mean over layers and query heads */
    const float *asking;  /* [n_asking][dim] mean keys of the newest message */
} kv_residual_input;

/* score[n] = rule + alpha * MLP, alpha clipped to [-5, 5]. BASE_E_NOMEM. */
int kv_residual_score(const kv_residual *r, const kv_residual_input *in, float *score, base_err *err);

/*
 * The steps of it, for whoever wants the gradient too. m is the same for all rows of a pass, so the columns of phi
 * fold into one matrix over [k, rule]: that is what a kv_residual_pass holds.
 */
typedef struct kv_residual_pass {
    uint32_t dim, n_asking;
    float *eq, *cq;       /* [dim + 1][WIDTH], [WIDTH]: the query that a row asks with */
    float *e1, *c1;       /* [dim + 1 + WIDTH][HIDDEN], [HIDDEN] */
    float *keys, *values; /* [n_asking][WIDTH] */
    const float *w2;
    float b2;
    float *memory; /* all of it */
} kv_residual_pass;

/* KV_RESIDUAL_ROWS rows on their way through. */
typedef struct kv_residual_rows {
    float q[KV_RESIDUAL_ROWS][KV_RESIDUAL_WIDTH], c[KV_RESIDUAL_ROWS][KV_RESIDUAL_WIDTH];
    float p[KV_RESIDUAL_ROWS][KV_RESIDUAL_HEADS][KV_RESIDUAL_ASKING];
    float hidden[KV_RESIDUAL_ROWS][KV_RESIDUAL_HIDDEN]; /* in front of GELU */
    float out[KV_RESIDUAL_ROWS];                        /* MLP */
} kv_residual_rows;

/* What a pass shares; borrows r and nothing of `in`. BASE_E_NOMEM. kv_residual_end frees it. */
int kv_residual_begin(
    const kv_residual *r, const kv_residual_input *in, kv_residual_pass *ret, base_err *err);
void kv_residual_end(kv_residual_pass *p);
/* n (at most KV_RESIDUAL_ROWS) rows. keys: [dim] of each. */
void kv_residual_compute(const kv_residual_pass *p, const float *const *keys, const float *rule, uint32_t n,
    kv_residual_rows *ret);
float kv_residual_gelu(float x, float *slope); /* slope may be NULL */
/* to[i] += x * from[i] */
static inline void kv_residual_add(float *restrict to, const float *restrict from, float x, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += x * from[i];
}
float kv_residual_dot(const float *a, const float *b, size_t n);

/* ---- residual_file.c ---- */

/* "DATA/rows/HASH.residual"; the caller frees. */
char *kv_residual_path(const char *model_hash);
void kv_residual_put(const kv_residual *r, base_buf *out);
/* From a file's bytes; any are safe. BASE_E_FORMAT with a sentence: damaged, or of another version. */
int kv_residual_parse(const void *bytes, size_t n, kv_residual **ret, base_err *err);
int kv_residual_save(const kv_residual *r, const char *path, base_err *err); /* makes the folder */
/* BASE_E_NOT_FOUND where there is none, BASE_E_FORMAT: of other bytes, or of another model. */
int kv_residual_load(
    const char *path, const char *model_hash, uint32_t dim, kv_residual **ret, base_err *err);

#endif
