/*
 * Where a model's prefill is cut (StructKV, section 3.3): how concentrated the attention of the newest
 * queries is in each layer, how that changes from layer to layer, and the layer behind which it changes
 * most. Found out once per model, at the first bulk that is computed in full, and kept in the data folder.
 */
#ifndef KVIST_KV_PIVOT_H
#define KVIST_KV_PIVOT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { KV_PIVOT_LAYERS = 512 };

typedef struct kv_pivot {
    char hash[65];
    uint32_t n_layer, n_rows, n_queries; /* n_rows, n_queries: what it was detected with */
    /* Per layer, means over heads and queries: entropy in nats, mass of the top tenth, variance. */
    double entropy[KV_PIVOT_LAYERS], sparsity[KV_PIVOT_LAYERS], variance[KV_PIVOT_LAYERS];
} kv_pivot;

/*
 * T of every layer ([n_layer]; of layer 0: 0): .2 of the entropy's fall, .3 of the sparsity's and .5 of the
 * variance's rise, each min-max.
 */
void kv_pivot_curve(const kv_pivot *p, double *ret);
/*
 * Layers below the cut: one more than where T is largest, at least `floor` and at most KV_PIVOT_CEILING of all;
 * *ret_free (may be NULL): what T alone says. A model of one layer is not cut: 0.
 */
#define KV_PIVOT_CEILING .75
uint32_t kv_pivot_cut(const kv_pivot *p, double floor, uint32_t *ret_free);
/* Ours: a cut above fewer layers than this share of them leaves too little to choose rows by (docs/kv.md). */
#define KV_PIVOT_FLOOR .25

/* "DATA/rows/HASH.pivot"; the caller frees. */
char *kv_pivot_path(const char *model_hash);
/* NULL when there is none, or it is damaged or of another model. */
kv_pivot *kv_pivot_load(const char *path, const char *model_hash, uint32_t n_layer);
int kv_pivot_save(const kv_pivot *p, const char *path, base_err *err); /* makes the folder */
/* The same from a file's bytes; any are safe. */
kv_pivot *kv_pivot_parse(const char *text, size_t n);

#endif
