#include "model/ops/check.h"

#include "model/file/quant.h"

int ops_check_embed(const ops_embed_args *a, base_err *err)
{
    const quant_format *f = quant_format_of(a->table->type);
    if (!f || a->table->ne[0] % f->n)
        return base_fail(err, BASE_E_UNSUPPORTED, "the embedding's format is not supported");
    for (uint32_t t = 0; t < a->n; t++)
        if (a->ids[t] < 0 || (uint64_t)a->ids[t] >= a->table->ne[1])
            return base_fail(err, BASE_E_LIMIT, "token id %d is outside the vocabulary of %llu", a->ids[t],
                (unsigned long long)a->table->ne[1]);
    return 0;
}

int ops_check_norm(const ops_norm_args *a, base_err *err)
{
    if (a->width % OPS_MULTIPLE)
        return base_fail(
            err, BASE_E_UNSUPPORTED, "a norm over %u is not a multiple of %d", a->width, OPS_MULTIPLE);
    return 0;
}

int ops_check_rope_table(const model_ops *ops, const ops_rope_table_args *a, base_err *err)
{
    if (a->n_rot % 2 || (size_t)a->n * a->n_rot * sizeof(float) > ops->buffer_bytes(a->table))
        return base_fail(err, BASE_E_LIMIT, "a RoPE table of %u x %u does not fit", a->n, a->n_rot);
    return 0;
}

int ops_check_rope(const ops_rope_args *a, base_err *err)
{
    if (a->n_rot % 2 || a->n_rot > a->head_dim)
        return base_fail(err, BASE_E_UNSUPPORTED, "RoPE over %u of %u dimensions", a->n_rot, a->head_dim);
    return 0;
}

int ops_check_rows_write(const ops_rows_write_args *a, base_err *err)
{
    const uint32_t n_lanes = a->rows->shape.n_head_kv;
    for (uint32_t h = 0; h < n_lanes; h++)
        if (a->rows->lanes[a->layer * n_lanes + h].n_rows < a->n)
            return base_fail(err, BASE_E_LIMIT, "a lane's list of %u rows cannot hold a batch of %u",
                a->rows->lanes[a->layer * n_lanes + h].n_rows, a->n);
    return 0;
}

int ops_check_sinks(const model_ops *ops, const ops_attention_args *a, base_err *err)
{
    if (a->sinks && ops->buffer_bytes(a->sinks) < a->n_head * sizeof(float))
        return base_fail(err, BASE_E_LIMIT, "sinks of fewer than %u heads", a->n_head);
    return 0;
}

int ops_check_score_rows(const ops_score_rows_args *a, base_err *err)
{
    if (a->n_queries < 1 || a->n_queries > OPS_QUERIES_MAX)
        return base_fail(err, BASE_E_LIMIT, "%u queries were given to score with; 1 to %d are possible",
            a->n_queries, OPS_QUERIES_MAX);
    return 0;
}

int ops_check_bound(const ops_bound_args *a, base_err *err)
{
    if ((a->n_sections - 1) / MODEL_ROWS_BLOCK >= a->profiles->n_blocks)
        return base_fail(err, BASE_E_LIMIT, "%u sections, but profiles of %u", a->n_sections,
            a->profiles->n_blocks * MODEL_ROWS_BLOCK);
    return 0;
}

int ops_check_route(const model_ops *ops, const ops_route_args *a, base_err *err)
{
    const size_t n_chosen = (size_t)a->n * a->n_used, of_all = a->n_experts * sizeof(float);
    if (a->width % OPS_MULTIPLE || a->n_experts > OPS_EXPERTS_MAX || a->n_used < 1 ||
        a->n_used > a->n_experts)
        return base_fail(err, BASE_E_UNSUPPORTED, "%u of %u experts for rows of %u cannot be chosen",
            a->n_used, a->n_experts, a->width);
    if (n_chosen * sizeof(uint32_t) > ops->buffer_bytes(a->chosen) ||
        n_chosen * sizeof(float) > ops->buffer_bytes(a->weights))
        return base_fail(err, BASE_E_LIMIT, "the experts of %u tokens do not fit", a->n);
    if ((a->bias && ops->buffer_bytes(a->bias) < of_all) ||
        (a->scales && ops->buffer_bytes(a->scales) < of_all))
        return base_fail(err, BASE_E_LIMIT, "the router's bias is not of %u experts", a->n_experts);
    return 0;
}

int ops_check_experts(const model_ops *ops, const ops_experts_args *a, uint32_t n, uint32_t width,
    const ops_shape shapes[3], base_err *err)
{
    const ops_buffer *biases[] = {a->gate_bias, a->up_bias, a->down_bias};
    const ops_shape *gate = &shapes[0], *up = &shapes[1], *down = &shapes[2];
    for (size_t i = 0; i < 3; i++)
        if (a->n_experts == 0 || shapes[i].n_out % (OPS_MULTIPLE * a->n_experts))
            return base_fail(err, BASE_E_UNSUPPORTED,
                "%u outputs of %u experts: a multiple of %d each is what kvist computes", shapes[i].n_out,
                a->n_experts, OPS_MULTIPLE);
    if (gate->n_in != width || up->n_in != width || gate->n_out != up->n_out ||
        down->n_in != gate->n_out / a->n_experts)
        return base_fail(err, BASE_E_LIMIT, "experts of other shapes than their activations of %u", width);
    for (size_t i = 0; i < 3; i++)
        if (biases[i] && ops->buffer_bytes(biases[i]) < shapes[i].n_out * sizeof(float))
            return base_fail(err, BASE_E_LIMIT, "the experts' biases are fewer than their outputs");
    if ((size_t)n * a->n_used * sizeof(uint32_t) > ops->buffer_bytes(a->chosen))
        return base_fail(err, BASE_E_LIMIT, "experts were not chosen for %u tokens", n);
    return 0;
}
