/* See lanes.h. */
#include "model/forward/lanes.h"

/* Rows of q, k, v lie behind one another in a token's row; a hybrid's gates behind q. */
static lane_rows rows_in(ops_buffer *buffer, size_t stride, size_t n_keys)
{
    return (lane_rows){
        {buffer, 0, stride}, {buffer, stride - 2 * n_keys, stride}, {buffer, stride - n_keys, stride}};
}

static bool is_small(const model_hyper *h, uint32_t layer)
{
    return model_layer_head_dim(h, layer) < h->head_dim;
}

/* The layer's heads are its lanes. */
static bool is_plain(const model_hyper *h, uint32_t layer)
{
    return !is_small(h, layer) && model_layer_heads_kv(h, layer) == h->n_head_kv;
}

lane_rows lanes_products(const model *m, uint32_t layer)
{
    const model_hyper *h = &m->hyper;
    if (is_plain(h, layer)) return rows_in(m->scratch.qkv, forward_qkv_width(h), model_key_width(h));
    const size_t n_keys = model_layer_key_width(h, layer);
    return rows_in(m->scratch.narrow, model_layer_query_width(h, layer) + 2 * n_keys, n_keys);
}

static int move(model *m, uint32_t n, uint32_t width, ops_mat from, ops_mat to, base_err *err)
{
    return m->ops->add(
        m->ops, &(ops_add_args){.a = from, .out = to, .scale_a = 1, .n = n, .width = width}, err);
}

/* Keys or values: heads side by side where there are more than lanes, else one for each lane or several. */
static int spread_keys(model *m, uint32_t layer, uint32_t n, ops_mat from, ops_mat to, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const uint32_t d = model_layer_head_dim(h, layer), n_heads = model_layer_heads_kv(h, layer),
                   lanes = h->n_head_kv;
    if (n_heads * d == lanes * h->head_dim) return move(m, n, n_heads * d, from, to, err);
    int rc = 0;
    for (uint32_t lane = 0; lane < lanes && !rc; lane++) {
        ops_mat head = from, place = to;
        head.first += (size_t)(lane * n_heads / lanes) * d;
        place.first += (size_t)lane * h->head_dim;
        rc = move(m, n, d, head, place, err);
    }
    return rc;
}

/* Where in its lane a query head's numbers are. */
static uint32_t place_of(const model_hyper *h, uint32_t layer, uint32_t head)
{
    const uint32_t n_heads = model_layer_heads_kv(h, layer);
    if (n_heads <= h->n_head_kv) return 0;
    return head / (h->n_head / n_heads) % (n_heads / h->n_head_kv) * model_layer_head_dim(h, layer);
}

int lanes_spread(model *m, uint32_t layer, uint32_t n, lane_rows from, lane_rows *ret, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const uint32_t d = model_layer_head_dim(h, layer);
    *ret = from;
    if (is_plain(h, layer)) return 0;
    /* Zeros beside small heads are never written over: those layers have a place of their own. */
    *ret = rows_in(is_small(h, layer) ? m->scratch.small_lanes : m->scratch.qkv, forward_qkv_width(h),
        model_key_width(h));
    int rc = 0;
    if (!model_layer_is_sharing(h, layer)) rc = spread_keys(m, layer, n, from.k, ret->k, err);
    if (!rc && !model_layer_is_sharing(h, layer)) rc = spread_keys(m, layer, n, from.v, ret->v, err);
    for (uint32_t head = 0; head < h->n_head && !rc; head++) {
        ops_mat one = from.q, place = ret->q;
        one.first += (size_t)head * d;
        place.first += (size_t)head * h->head_dim + place_of(h, layer, head);
        rc = move(m, n, d, one, place, err);
    }
    return rc;
}

int lanes_gather(model *m, uint32_t layer, uint32_t n, ops_mat mixed, ops_mat *ret, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const uint32_t d = model_layer_head_dim(h, layer);
    int rc = 0;
    *ret = mixed;
    if (!is_small(h, layer)) return 0;
    *ret = (ops_mat){m->scratch.narrow, 0, model_layer_query_width(h, layer)};
    for (uint32_t head = 0; head < h->n_head && !rc; head++) {
        ops_mat one = mixed, place = *ret;
        one.first += (size_t)head * h->head_dim + place_of(h, layer, head);
        place.first += (size_t)head * d;
        rc = move(m, n, d, one, place, err);
    }
    return rc;
}
