/*
 * One layer, as a row of operations. Each half ends by adding to the residual stream.
 */
#include "model/forward/layer.h"
#include "model/forward/lanes.h"

#include <math.h>
#include <string.h>

int layer_norm(model *m, const ops_buffer *weight, const uint32_t *rows, uint32_t n, base_err *err)
{
    return m->ops->norm_quant(m->ops,
        &(ops_norm_quant_args){.x = layer_hidden(m),
            .weight = weight,
            .rows = rows,
            .n = n,
            .width = m->hyper.n_embd,
            .eps = m->hyper.norm_eps,
            .out = m->scratch.wide},
        err);
}

/* Queries of the batch's captured tokens -> [layer with rows][head][capture->n][head_dim]. */
static void capture_queries(model *m, const micro_batch *b, uint32_t layer, ops_mat q)
{
    const model_capture *c = b->whole->capture;
    const model_hyper *h = &m->hyper;

    for (uint32_t i = 0; i < c->n; i++) {
        if (c->tokens[i] < b->from || c->tokens[i] >= b->from + b->n) continue;
        size_t row = q.first + (c->tokens[i] - b->from) * q.stride;
        m->ops->download(
            m->ops, m->scratch.captured, q.buffer, row * sizeof(float), model_query_width(h) * sizeof(float));
        for (uint32_t head = 0; head < h->n_head; head++)
            memcpy(c->queries + (((size_t)layer * h->n_head + head) * c->n + i) * h->head_dim,
                m->scratch.captured + (size_t)head * h->head_dim, h->head_dim * sizeof(float));
    }
}

/* out = RMSNorm of each of a row's groups of `width` numbers; out may be x. */
static int norm(model *m, ops_mat x, ops_mat out, const ops_buffer *weight, uint32_t n, uint32_t n_groups,
    uint32_t width, base_err *err)
{
    return m->ops->norm(m->ops,
        &(ops_norm_args){.x = x,
            .out = out,
            .weight = weight,
            .n = n,
            .n_groups = n_groups,
            .width = width,
            .eps = m->hyper.norm_eps},
        err);
}

static int turn(
    model *m, uint32_t layer, uint32_t n, ops_mat x, uint32_t n_heads, const ops_buffer *table, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const uint32_t head_dim = model_layer_head_dim(h, layer);
    return m->ops->rope(m->ops,
        &(ops_rope_args){.x = x,
            .table = table,
            .pairing = h->arch->rope,
            .n = n,
            .n_heads = n_heads,
            .head_dim = head_dim,
            .n_rot = head_dim == h->head_dim ? h->n_rot : h->window_n_rot},
        err);
}

/* RMSNorm of each head in place, for models that have it, then RoPE. */
static int turn_heads(model *m, const micro_batch *b, uint32_t layer, ops_mat x, uint32_t n_heads,
    const ops_buffer *weight, base_err *err)
{
    const forward_scratch *s = &m->scratch;
    const uint32_t head_dim = model_layer_head_dim(&m->hyper, layer);
    int rc = weight ? norm(m, x, x, weight, b->n, n_heads, head_dim, err) : 0;
    if (rc || !model_layer_is_turned(&m->hyper, layer)) return rc;
    const bool is_apart = model_layer_has_window(&m->hyper, layer) && s->rope_window;
    return turn(m, layer, b->n, x, n_heads, is_apart ? s->rope_window : s->rope, err);
}

static float scale_of_query(const model_hyper *h, uint32_t part)
{
    return (float)(1 + h->q_scale * log1p(part));
}

/*
 * Queries behind the trained context, for models that scale them, by their place among what they read: a run of
 * tokens of one scale at a time.
 */
static int scale_queries(model *m, const micro_batch *b, ops_mat q, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const uint32_t *phases = b->whole->phases + b->from;
    for (uint32_t from = 0, to; h->q_scale > 0 && from < b->n; from = to) {
        const uint32_t part = (phases[from] - b->less[from]) / h->q_scale_every;
        for (to = from + 1; to < b->n && (phases[to] - b->less[to]) / h->q_scale_every == part;) to++;
        if (part == 0) continue; /* exactly 1 */
        const ops_mat run = {q.buffer, q.first + from * q.stride, q.stride};
        int rc = m->ops->add(m->ops,
            &(ops_add_args){.a = run,
                .out = run,
                .scale_a = scale_of_query(h, part),
                .n = to - from,
                .width = model_query_width(h)},
            err);
        if (rc) return rc;
    }
    return 0;
}

/* out = a + b, rows of n_embd. */
static int add(model *m, uint32_t n, ops_mat a, ops_mat b, ops_mat out, base_err *err)
{
    return m->ops->add(m->ops,
        &(ops_add_args){
            .a = a, .b = b, .out = out, .scale_a = 1, .scale_b = 1, .n = n, .width = m->hyper.n_embd},
        err);
}

/* x += w * scratch.wide + bias (or none), the product normalised first for models that do so. */
static int add_product(
    model *m, uint32_t n, const ops_weight *w, const ops_buffer *bias, const ops_buffer *post, base_err *err)
{
    const model_hyper *h = &m->hyper;
    ops_mat x = layer_hidden(m), branch = {m->scratch.branch, 0, h->n_embd};
    ops_matmul_args product = {.x = m->scratch.wide,
        .n_parts = 1,
        .parts = {{.weight = w, .bias = bias, .y = post ? branch : x, .add = post ? (ops_mat){0} : x}}};
    int rc = m->ops->matmul(m->ops, &product, err);
    if (rc || !post) return rc;
    rc = norm(m, branch, branch, post, n, 1, h->n_embd, err);
    return rc ? rc : add(m, n, x, branch, x, err);
}

/*
 * What a reader leaves of the lists, token by token. Tokens do not read each other's choice, so a batch gives
 * the bits of its parts.
 */
static int attend_chosen(model *m, const micro_batch *b, uint32_t layer, const model_sections *sections,
    const ops_attention_args *whole, base_err *err)
{
    const model_reader *reader = b->whole->reader;
    int rc = m->ops->bound(m->ops,
        &(ops_bound_args){.profiles = sections->profiles,
            .layer = layer,
            .n = b->n,
            .n_head = whole->n_head,
            .n_sections = sections->n_sections,
            .scale = whole->scale,
            .q = whole->q,
            .bound = sections->bound},
        err);
    if (!rc) rc = m->ops->sync(m->ops, err);
    for (uint32_t t = 0; t < b->n && !rc; t++) {
        ops_attention_args one = *whole;
        rc = reader->choose(reader->user, layer, t, &one.rows, err);
        one.n = 1;
        one.q.first += t * one.q.stride;
        one.out.first += t * one.out.stride;
        if (!rc) rc = m->ops->attention(m->ops, &one, err);
    }
    return rc;
}

/* Attention over the reader's lists, and then what evicted rows each token reads beside them. */
static int attend_visited(
    model *m, const micro_batch *b, uint32_t layer, const ops_attention_args *whole, base_err *err)
{
    const model_reader *reader = b->whole->reader;
    model_visit visit = {.rows = NULL};
    ops_attention_args lists = *whole;
    bool anybody = false;
    int rc = reader->visit(reader->user, layer, &visit, err);
    if (rc) return rc;
    lists.rows = visit.rows;
    for (uint32_t h = 0; h < m->hyper.n_head_kv; h++) anybody |= visit.evicted[h] != NULL;
    if (anybody) lists.sums = (ops_mat){.buffer = m->scratch.sums, .stride = 2 * (size_t)m->hyper.n_head};
    const ops_visit_args beside = {.visit = &visit,
        .layer = layer,
        .n = b->n,
        .n_head = whole->n_head,
        .scale = whole->scale,
        .q = whole->q,
        .out = whole->out,
        .turns = whole->turns,
        .sums = lists.sums};
    do {
        rc = m->ops->attention(m->ops, &lists, err);
        if (!rc && anybody) rc = m->ops->visit(m->ops, &beside, err);
        if (!rc && anybody) rc = reader->visited(reader->user, &visit, err);
    } while (rc > 0);
    return rc;
}

static int attend(
    model *m, const micro_batch *b, uint32_t layer, const ops_attention_args *args, base_err *err)
{
    const model_reader *reader = b->whole->reader;
    model_sections sections = {.n_sections = 0};
    if (reader && !args->window && reader->visit) return attend_visited(m, b, layer, args, err);
    if (reader && !args->window) {
        int rc = m->ops->sync(m->ops, err); /* the reader looks at the rows that were just written */
        if (!rc) rc = reader->sections(reader->user, layer, &sections, err);
        if (rc) return rc;
    }
    return sections.n_sections ? attend_chosen(m, b, layer, &sections, args, err)
                               : m->ops->attention(m->ops, args, err);
}

/* Values that are normalised, without weights; where the file has none they are the keys as they come. */
static int make_values(
    model *m, const forward_layer *w, uint32_t layer, uint32_t n, lane_rows p, base_err *err)
{
    const model_hyper *h = &m->hyper;
    if (!h->arch->v_norm) return 0;
    return norm(m, w->v ? p.v : p.k, p.v, m->ones, n, model_layer_heads_kv(h, layer),
        model_layer_head_dim(h, layer), err);
}

/*
 * Queries, and what is to be this layer's rows, in lanes: *ret. A layer that reads the rows of another one makes
 * queries only.
 */
static int make_heads(model *m, const micro_batch *b, uint32_t layer, lane_rows *ret, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_layer *w = &m->layers[layer];
    const lane_rows p = lanes_products(m, layer);
    const bool owns = !model_layer_is_sharing(h, layer);
    int rc = layer_norm(m, w->attn_norm, NULL, b->n, err);
    if (!rc)
        rc = m->ops->matmul(m->ops,
            &(ops_matmul_args){.x = m->scratch.wide,
                .n_parts = !owns  ? 1
                           : w->v ? 3
                                  : 2,
                .parts = {{.weight = w->q, .bias = w->q_bias, .y = p.q},
                    {.weight = w->k, .bias = w->k_bias, .y = p.k},
                    {.weight = w->v, .bias = w->v_bias, .y = p.v}}},
            err);
    if (!rc) rc = turn_heads(m, b, layer, p.q, h->n_head, w->q_norm, err);
    if (!rc) rc = scale_queries(m, b, p.q, err);
    if (!rc && owns) rc = make_values(m, w, layer, b->n, p, err);
    if (!rc && owns) rc = turn_heads(m, b, layer, p.k, model_layer_heads_kv(h, layer), w->k_norm, err);
    return rc ? rc : lanes_spread(m, layer, b->n, p, ret, err);
}

static int attention_half(model *m, const micro_batch *b, uint32_t layer, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_layer *w = &m->layers[layer];
    const forward_scratch *s = &m->scratch;
    const model_ops *ops = m->ops;
    const uint32_t at = model_layer_rows(h, layer);
    const bool owns = !model_layer_is_sharing(h, layer);
    ops_mat mixed = {s->mixed, 0, model_query_width(h)};
    lane_rows r;
    int rc = make_heads(m, b, layer, &r, err);
    if (rc) return rc;
    const ops_mat q = r.q, gates = {q.buffer, model_query_width(h), q.stride};
    if (b->whole->capture && owns) capture_queries(m, b, at, q);
    if (b->has_own && model_layer_folds(h, layer)) rc = turn(m, layer, b->n, q, h->n_head, s->rope_own, err);
    if (!rc && owns)
        rc = ops->rows_write(
            m->ops, &(ops_rows_write_args){.rows = b->rows, .layer = at, .n = b->n, .k = r.k, .v = r.v}, err);
    if (!rc)
        rc = attend(m, b, at,
            &(ops_attention_args){.rows = b->rows,
                .layer = at,
                .n = b->n,
                .n_head = h->n_head,
                .window = model_layer_has_window(h, layer) ? h->window : 0,
                .scale = h->attn_scale,
                .q = q,
                .out = mixed,
                .turns = b->turns,
                .sinks = w->sinks},
            err);
    if (!rc && h->arch->rows_every)
        rc = ops->gate_quant(m->ops,
            &(ops_gate_quant_args){.gate = gates,
                .up = mixed,
                .kind = OPS_GATE_SIGMOID,
                .n = b->n,
                .width = model_query_width(h),
                .out = s->wide},
            err);
    else {
        if (!rc) rc = lanes_gather(m, layer, b->n, mixed, &mixed, err);
        if (!rc)
            rc = ops->quant(m->ops,
                &(ops_quant_args){
                    .x = mixed, .n = b->n, .width = model_layer_query_width(h, layer), .out = s->wide},
                err);
    }
    if (!rc) rc = add_product(m, b->n, w->o, w->o_bias, w->attn_post, err);
    return rc;
}

/* What a token's row of scratch.qkv holds in a layer that keeps a state. */
typedef struct state_parts {
    ops_mat q, k, v, z, alpha, beta;
} state_parts;

static state_parts state_parts_of(const model *m)
{
    const model_hyper *h = &m->hyper;
    const size_t stride = forward_state_width(h), keys = (size_t)h->n_state_keys * h->state_dim;
    const size_t z = model_state_channels(h), alpha = z + model_state_values(h);
    ops_buffer *b = m->scratch.qkv;
    return (state_parts){{b, 0, stride}, {b, keys, stride}, {b, 2 * keys, stride}, {b, z, stride},
        {b, alpha, stride}, {b, alpha + h->n_state_values, stride}};
}

/* Its inputs: what the normed tokens give for each part. */
static int state_inputs(model *m, const forward_layer *w, const state_parts *p, base_err *err)
{
    const ops_matmul_args args = {.x = m->scratch.wide,
        .n_parts = 4,
        .parts = {{.weight = w->mix, .y = p->q}, {.weight = w->z, .y = p->z},
            {.weight = w->alpha, .y = p->alpha}, {.weight = w->beta, .y = p->beta}}};
    return m->ops->matmul(m->ops, &args, err);
}

/*
 * A layer that keeps a state (gated delta net, Yang et al. 2024; Qwen3-Next's form). A state in model_batch is
 * one layer's behind the other: the convolution's rows, then the matrices.
 */
static int state_half(model *m, const micro_batch *b, uint32_t layer, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_layer *w = &m->layers[layer];
    const forward_scratch *s = &m->scratch;
    const state_parts p = state_parts_of(m);
    const uint32_t n_values = model_state_values(h);
    const size_t at = (layer - model_layer_rows(h, layer)) * model_state_floats(h),
                 matrices = at + (size_t)(h->n_taps - 1) * model_state_channels(h);
    const ops_mat mixed = {s->mixed, 0, n_values};
    const ops_conv_args conv = {.x = p.q,
        .taps = w->taps,
        .n = b->n,
        .n_channels = model_state_channels(h),
        .n_taps = h->n_taps,
        .head_dim = h->state_dim,
        .n_query = h->n_state_keys,
        .n_unit = 2 * h->n_state_keys,
        .eps = h->norm_eps,
        .before = b->state ? b->state + at : NULL,
        .after = b->whole->state_out + at};
    const ops_delta_args delta = {.q = p.q,
        .k = p.k,
        .v = p.v,
        .out = mixed,
        .alpha = p.alpha,
        .beta = p.beta,
        .a = w->decay,
        .dt = w->dt,
        .n = b->n,
        .neighbours = h->arch->state_neighbours,
        .n_key_heads = h->n_state_keys,
        .n_value_heads = h->n_state_values,
        .head_dim = h->state_dim,
        .before = b->state ? b->state + matrices : NULL,
        .after = b->whole->state_out + matrices};
    const ops_gate_quant_args gate = {
        .gate = p.z, .up = mixed, .kind = OPS_GATE_SILU, .n = b->n, .width = n_values, .out = s->wide};
    int rc = layer_norm(m, w->attn_norm, NULL, b->n, err);
    if (!rc) rc = state_inputs(m, w, &p, err);
    if (!rc) rc = m->ops->conv(m->ops, &conv, err);
    if (!rc) rc = m->ops->delta(m->ops, &delta, err);
    if (!rc) rc = norm(m, mixed, mixed, w->state_norm, b->n, h->n_state_values, h->state_dim, err);
    if (!rc) rc = m->ops->gate_quant(m->ops, &gate, err);
    if (!rc) rc = add_product(m, b->n, w->state_out, NULL, NULL, err);
    return rc;
}

/* scratch.wide = gate(x) * up(x), where it holds the normed x. shares: how much each token's counts; NULL: all of it. */
static int gated(model *m, uint32_t n, uint32_t n_ff, const ops_weight *gate, const ops_weight *up,
    const ops_buffer *shares, base_err *err)
{
    const forward_scratch *s = &m->scratch;
    const ops_mat g = {s->gate_up, 0, 2 * (size_t)n_ff}, u = {s->gate_up, n_ff, 2 * (size_t)n_ff};
    int rc = m->ops->matmul(m->ops,
        &(ops_matmul_args){
            .x = s->wide, .n_parts = 2, .parts = {{.weight = gate, .y = g}, {.weight = up, .y = u}}},
        err);
    if (!rc)
        rc = m->ops->gate_quant(m->ops,
            &(ops_gate_quant_args){.gate = g,
                .up = u,
                .kind = m->hyper.arch->gate,
                .n = n,
                .width = n_ff,
                .shares = shares,
                .out = s->wide},
            err);
    return rc;
}

static int feed_forward_half(model *m, uint32_t n, uint32_t layer, base_err *err)
{
    const forward_layer *w = &m->layers[layer];
    int rc = layer_norm(m, w->ffn_norm, NULL, n, err);
    if (!rc) rc = gated(m, n, model_layer_n_ff(&m->hyper, layer), w->gate, w->up, NULL, err);
    return rc ? rc : add_product(m, n, w->down, NULL, w->ffn_post, err);
}

/* What the experts of each token add up to, of scratch.chosen and the rows in scratch.wide: y (+ add). */
static int mix_experts(model *m, const forward_layer *w, ops_mat y, ops_mat add, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_scratch *s = &m->scratch;
    return m->ops->experts(m->ops,
        &(ops_experts_args){.x = s->wide,
            .chosen = s->chosen,
            .weights = s->shares,
            .n_experts = h->n_experts,
            .n_used = h->n_experts_used,
            .gate = w->gate,
            .up = w->up,
            .down = w->down,
            .gate_bias = w->gate_bias,
            .up_bias = w->up_bias,
            .down_bias = w->down_bias,
            .kind = h->arch->gate,
            .y = y,
            .add = add},
        err);
}

/* scratch.chosen and its weights, by a router that reads the rows of `normed`. */
static int route(model *m, uint32_t n, const forward_layer *w, ops_mat normed, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_scratch *s = &m->scratch;
    return m->ops->route(m->ops,
        &(ops_route_args){.x = normed,
            .router = w->router,
            .bias = w->router_bias,
            .scales = w->exps_scale,
            .n = n,
            .width = h->n_embd,
            .n_experts = h->n_experts,
            .n_used = h->n_experts_used,
            .chosen = s->chosen,
            .weights = s->shares,
            .shared = w->shared,
            .shares = s->share_all},
        err);
}

/*
 * Gemma 4's mixture: a feed-forward of all tokens beside the experts, both of the same x, each between norms of its
 * own, and one behind their sum. The router reads x by a norm of its own.
 */
static int beside_half(model *m, uint32_t n, uint32_t layer, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_layer *w = &m->layers[layer];
    const forward_scratch *s = &m->scratch;
    const ops_mat x = layer_hidden(m), all = {s->branch, 0, h->n_embd}, chosen = {s->second, 0, h->n_embd};
    int rc = layer_norm(m, w->ffn_norm, NULL, n, err);
    if (!rc) rc = gated(m, n, h->n_ff_shared, w->gate_all, w->up_all, NULL, err);
    if (!rc)
        rc = m->ops->matmul(m->ops,
            &(ops_matmul_args){.x = s->wide, .n_parts = 1, .parts = {{.weight = w->down_all, .y = all}}},
            err);
    if (!rc) rc = norm(m, all, all, w->all_post, n, 1, h->n_embd, err);
    if (!rc) rc = norm(m, x, chosen, w->router_norm, n, 1, h->n_embd, err);
    if (!rc) rc = route(m, n, w, chosen, err);
    if (!rc) rc = layer_norm(m, w->exps_norm, NULL, n, err);
    if (!rc) rc = mix_experts(m, w, chosen, (ops_mat){0}, err);
    if (!rc) rc = norm(m, chosen, chosen, w->exps_post, n, 1, h->n_embd, err);
    if (!rc) rc = add(m, n, all, chosen, all, err);
    if (!rc) rc = norm(m, all, all, w->ffn_post, n, 1, h->n_embd, err);
    return rc ? rc : add(m, n, x, all, x, err);
}

/* x += post(out(gelu(gate x) * the token's embedding for this layer)). */
static int own_embedding(model *m, uint32_t n, uint32_t layer, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_layer *w = &m->layers[layer];
    const forward_scratch *s = &m->scratch;
    const size_t width = h->n_embd_layer;
    const ops_mat g = {s->gate_up, 0, width};
    int rc = m->ops->quant(
        m->ops, &(ops_quant_args){.x = layer_hidden(m), .n = n, .width = h->n_embd, .out = s->wide}, err);
    if (!rc)
        rc = m->ops->matmul(m->ops,
            &(ops_matmul_args){.x = s->wide, .n_parts = 1, .parts = {{.weight = w->own_gate, .y = g}}}, err);
    if (!rc)
        rc = m->ops->gate_quant(m->ops,
            &(ops_gate_quant_args){.gate = g,
                .up = {s->own_embd, layer * width, h->n_layer * width},
                .kind = h->arch->gate,
                .n = n,
                .width = h->n_embd_layer,
                .out = s->wide},
            err);
    return rc ? rc : add_product(m, n, w->own_out, NULL, w->own_post, err);
}

/*
 * The same of a mixture: the router reads F32, the experts 8-bit activations. The expert of all tokens comes
 * last, each token's as much as its gate says.
 */
static int experts_half(model *m, uint32_t n, uint32_t layer, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_layer *w = &m->layers[layer];
    const forward_scratch *s = &m->scratch;
    ops_mat x = layer_hidden(m), normed = {s->branch, 0, h->n_embd};
    int rc = norm(m, x, normed, w->ffn_norm, n, 1, h->n_embd, err);
    if (!rc) rc = route(m, n, w, normed, err);
    if (!rc)
        rc = m->ops->quant(
            m->ops, &(ops_quant_args){.x = normed, .n = n, .width = h->n_embd, .out = s->wide}, err);
    if (!rc) rc = mix_experts(m, w, x, x, err);
    if (rc || !w->shared) return rc;
    rc = gated(m, n, h->n_ff_shared, w->gate_all, w->up_all, s->share_all, err);
    return rc ? rc : add_product(m, n, w->down_all, NULL, NULL, err);
}

int layer_run(model *m, const micro_batch *b, uint32_t layer, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_layer *w = &m->layers[layer];
    const ops_mat x = layer_hidden(m);
    int rc = (model_layer_is_recurrent(h, layer) ? state_half : attention_half)(m, b, layer, err);
    if (!rc)
        rc = (!h->n_experts     ? feed_forward_half
              : h->arch->beside ? beside_half
                                : experts_half)(m, b->n, layer, err);
    if (!rc && w->own_gate) rc = own_embedding(m, b->n, layer, err);
    if (rc || w->out_scale == 0) return rc;
    return m->ops->add(m->ops,
        &(ops_add_args){.a = x, .out = x, .scale_a = w->out_scale, .n = b->n, .width = h->n_embd}, err);
}
