/*
 * What every backend demands of an operation's arguments before it computes, so that both refuse the same ones in the same words. A
 * backend's own limits (how large a head, a grid) are checked where it computes. 0, or a negative code with the sentence in err.
 */
#ifndef MODEL_OPS_CHECK_H
#define MODEL_OPS_CHECK_H

#include "model/ops/ops.h"

enum {
    OPS_MULTIPLE = 16,      /* rows of a router and of a norm, outputs of an expert: multiples of this */
    OPS_QUERIES_MAX = 64,   /* that rows are scored with */
    OPS_EXPERTS_MAX = 4096, /* of one layer */
};

/* A matrix as the file has it; only a backend knows that of its ops_weight. */
typedef struct ops_shape {
    uint32_t n_in, n_out;
} ops_shape;

int ops_check_embed(const ops_embed_args *a, base_err *err);
int ops_check_norm(const ops_norm_args *a, base_err *err);
int ops_check_rope_table(const model_ops *ops, const ops_rope_table_args *a, base_err *err);
int ops_check_rope(const ops_rope_args *a, base_err *err);
int ops_check_rows_write(const ops_rows_write_args *a, base_err *err);
int ops_check_sinks(const model_ops *ops, const ops_attention_args *a, base_err *err);
int ops_check_score_rows(const ops_score_rows_args *a, base_err *err);
int ops_check_bound(const ops_bound_args *a, base_err *err);
int ops_check_route(const model_ops *ops, const ops_route_args *a, base_err *err);
/* n rows of `width` activations; the shapes of gate, up and down, in this order. */
int ops_check_experts(const model_ops *ops, const ops_experts_args *a, uint32_t n, uint32_t width,
    const ops_shape shapes[3], base_err *err);

#endif
