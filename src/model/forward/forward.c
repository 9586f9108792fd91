/*
 * The forward pass: a static loop over layers that drives the table of operations (ops.h). It computes on the
 * rows it is handed and decides nothing; every number it makes depends on one token and its list, never on
 * the batch around it, because every operation is made so.
 *
 * Engine thread. Nothing is allocated while tokens are computed, except for the shortened lists of a batch
 * over 512.
 */
#include "model/forward/forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A piece of a batch: at most FORWARD_BATCH tokens, with the view in which its rows are every list's last. */
typedef struct micro_batch {
    const model_batch *whole;
    uint32_t from, n;
    const model_rows_view *rows;
    uint32_t want_from, n_want; /* of whole->want, those inside */
    const ops_turns *turns;     /* of rows; NULL: nothing is folded */
    bool has_own;               /* its tokens are folded themselves: scratch.rope_own has their turns */
    /* how much less than its phase a token's place is among what it reads: 0 where nothing is folded */
    uint32_t less[FORWARD_BATCH];
    const float *state; /* before its first token; NULL: zeros. whole->state_out gets what follows */
} micro_batch;

static uint32_t n_q(const model_hyper *h)
{
    return h->n_head * h->head_dim;
}

static uint32_t n_kv(const model_hyper *h)
{
    return h->n_head_kv * h->head_dim;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t widest(const model_hyper *h)
{
    return larger(larger(h->n_embd, larger(h->n_ff, h->n_ff_shared)), larger(n_q(h), model_state_values(h)));
}

/* A token's row of scratch.qkv in a layer with rows: queries, their gates where there are some, keys, values. */
static uint32_t qkv_width(const model_hyper *h)
{
    return (h->arch->rows_every ? 2 : 1) * n_q(h) + 2 * n_kv(h);
}

/* And in one with a state: what is convolved, z, alpha, beta. */
static uint32_t state_width(const model_hyper *h)
{
    return model_state_channels(h) + model_state_values(h) + 2 * h->n_state_values;
}

/* Columns of one half of scratch.gate_up: a mixture's experts have their own place. */
static uint32_t gate_width(const model_hyper *h)
{
    return h->n_experts ? h->n_ff_shared : h->n_ff;
}

/* Floats of each scratch buffer, in one place for the allocation and for the plan of memory. */
#define SCRATCH_BUFFERS(X)                                                                                   \
    X(x, FORWARD_BATCH, h->n_embd)                                                                           \
    X(qkv, FORWARD_BATCH, larger(qkv_width(h), state_width(h)))                                              \
    X(mixed, FORWARD_BATCH, larger(n_q(h), model_state_values(h)))                                           \
    X(sums, FORWARD_BATCH, 2 * (size_t)h->n_head)                                                            \
    X(gate_up, gate_width(h) ? FORWARD_BATCH : 0, 2 * (size_t)gate_width(h))                                 \
    X(share_all, h->n_ff_shared ? FORWARD_BATCH : 0, 1)                                                      \
    X(branch, h->arch->post_norm || h->n_experts ? FORWARD_BATCH : 0, h->n_embd)                             \
    X(chosen, h->n_experts ? FORWARD_BATCH : 0, h->n_experts_used)                                           \
    X(shares, h->n_experts ? FORWARD_BATCH : 0, h->n_experts_used)                                           \
    X(logits, FORWARD_HEADS, h->n_vocab)                                                                     \
    X(rope, FORWARD_BATCH, h->n_rot)                                                                         \
    X(rope_window, h->window ? FORWARD_BATCH : 0, h->n_rot)                                                  \
    X(rope_own, FORWARD_BATCH, h->n_rot)

uint64_t forward_scratch_bytes(const model_hyper *h)
{
    uint64_t bytes =
        (uint64_t)FORWARD_BATCH * widest(h) * 2; /* activations: a byte and their scales, twice */
#define ADD(field, rows, width) bytes += (uint64_t)(rows) * (width) * sizeof(float);
    SCRATCH_BUFFERS(ADD)
#undef ADD
    /* What the backend keeps of each token's experts: the first columns, gate and up, the hidden numbers. */
    return bytes + (uint64_t)FORWARD_BATCH * h->n_experts_used * (4ull * h->n_embd + 13ull * h->n_ff);
}

int forward_scratch_make(model *m, base_err *err)
{
    const model_hyper *h = &m->hyper;
    forward_scratch *s = &m->scratch;
    int rc = m->ops->activations_new(m->ops, &s->wide, FORWARD_BATCH, widest(h), err);
#define MAKE(field, rows, width)                                                                             \
    if (!rc && (rows) > 0)                                                                                   \
        rc = m->ops->buffer_new(m->ops, &s->field, (size_t)(rows) * (width) * sizeof(float), err);
    SCRATCH_BUFFERS(MAKE)
#undef MAKE
    s->captured = malloc(n_q(h) * sizeof *s->captured);
    if (!rc && !s->captured) rc = base_fail(err, BASE_E_NOMEM, "no memory for queries");
    return rc;
}

void forward_scratch_free(model *m)
{
    forward_scratch *s = &m->scratch;
    free(s->captured);
    if (s->wide) m->ops->activations_free(m->ops, s->wide);
#define DROP(field, rows, width)                                                                             \
    if (s->field) m->ops->buffer_free(m->ops, s->field);
    SCRATCH_BUFFERS(DROP)
#undef DROP
}

/* One layer */

static ops_mat hidden_of(const model *m)
{
    return (ops_mat){.buffer = m->scratch.x, .stride = m->hyper.n_embd};
}

/* Rows of q, k, v lie behind one another in a token's row of scratch.qkv; the gates behind q. */
static void qkv_of(const model *m, ops_mat *q, ops_mat *k, ops_mat *v)
{
    const model_hyper *h = &m->hyper;
    size_t stride = qkv_width(h), behind = stride - 2 * n_kv(h);
    *q = (ops_mat){m->scratch.qkv, 0, stride};
    *k = (ops_mat){m->scratch.qkv, behind, stride};
    *v = (ops_mat){m->scratch.qkv, behind + n_kv(h), stride};
}

/* Queries of the batch's captured tokens: scratch.qkv -> [layer with rows][head][capture->n][head_dim]. */
static void capture_queries(model *m, const micro_batch *b, uint32_t layer)
{
    const model_capture *c = b->whole->capture;
    const model_hyper *h = &m->hyper;
    size_t stride = qkv_width(h);

    for (uint32_t i = 0; i < c->n; i++) {
        if (c->tokens[i] < b->from || c->tokens[i] >= b->from + b->n) continue;
        size_t row = (c->tokens[i] - b->from) * stride;
        m->ops->download(
            m->ops, m->scratch.captured, m->scratch.qkv, row * sizeof(float), n_q(h) * sizeof(float));
        for (uint32_t head = 0; head < h->n_head; head++)
            memcpy(c->queries + (((size_t)layer * h->n_head + head) * c->n + i) * h->head_dim,
                m->scratch.captured + (size_t)head * h->head_dim, h->head_dim * sizeof(float));
    }
}

/* RMSNorm of each head in place, for models that have it, then RoPE. */
static int turn_heads(model *m, const micro_batch *b, uint32_t layer, ops_mat x, uint32_t n_heads,
    const ops_buffer *norm, base_err *err)
{
    const model_hyper *h = &m->hyper;
    int rc = !norm ? 0
                   : m->ops->norm(m->ops,
                         &(ops_norm_args){.x = x,
                             .out = x,
                             .weight = norm,
                             .n = b->n,
                             .n_groups = n_heads,
                             .width = h->head_dim,
                             .eps = h->norm_eps},
                         err);
    if (rc) return rc;
    return m->ops->rope(m->ops,
        &(ops_rope_args){.x = x,
            .table = model_layer_has_window(h, layer) ? m->scratch.rope_window : m->scratch.rope,
            .pairing = h->arch->rope,
            .n = b->n,
            .n_heads = n_heads,
            .head_dim = h->head_dim,
            .n_rot = h->n_rot},
        err);
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
            &(ops_add_args){
                .a = run, .out = run, .scale_a = scale_of_query(h, part), .n = to - from, .width = n_q(h)},
            err);
        if (rc) return rc;
    }
    return 0;
}

/* x += w * scratch.wide, the product normalised first for models that do so. */
static int add_product(model *m, uint32_t n, const ops_weight *w, const ops_buffer *norm, base_err *err)
{
    const model_hyper *h = &m->hyper;
    ops_mat x = hidden_of(m), branch = {m->scratch.branch, 0, h->n_embd};
    ops_matmul_args product = {.x = m->scratch.wide,
        .n_parts = 1,
        .parts = {{.weight = w, .y = norm ? branch : x, .add = norm ? (ops_mat){0} : x}}};
    int rc = m->ops->matmul(m->ops, &product, err);
    if (rc || !norm) return rc;
    rc = m->ops->norm(m->ops,
        &(ops_norm_args){.x = branch,
            .out = branch,
            .weight = norm,
            .n = n,
            .n_groups = 1,
            .width = h->n_embd,
            .eps = h->norm_eps},
        err);
    if (rc) return rc;
    return m->ops->add(m->ops,
        &(ops_add_args){
            .a = x, .b = branch, .out = x, .scale_a = 1, .scale_b = 1, .n = n, .width = h->n_embd},
        err);
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
    rc = m->ops->attention(m->ops, &lists, err);
    if (rc || !anybody) return rc;
    rc = m->ops->visit(m->ops,
        &(ops_visit_args){.visit = &visit,
            .layer = layer,
            .n = b->n,
            .n_head = whole->n_head,
            .scale = whole->scale,
            .q = whole->q,
            .out = whole->out,
            .turns = whole->turns,
            .sums = lists.sums},
        err);
    if (!rc) reader->visited(reader->user, &visit);
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

static int attention_half(model *m, const micro_batch *b, uint32_t layer, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_layer *w = &m->layers[layer];
    const forward_scratch *s = &m->scratch;
    const model_ops *ops = m->ops;
    const uint32_t at = model_layer_rows(h, layer);
    ops_mat q, k, v, mixed = {s->mixed, 0, n_q(h)};
    int rc;

    qkv_of(m, &q, &k, &v);
    const ops_mat gates = {q.buffer, n_q(h), q.stride};
    rc = ops->norm_quant(m->ops,
        &(ops_norm_quant_args){.x = hidden_of(m),
            .weight = w->attn_norm,
            .n = b->n,
            .width = h->n_embd,
            .eps = h->norm_eps,
            .out = s->wide},
        err);
    if (!rc)
        rc = ops->matmul(m->ops,
            &(ops_matmul_args){.x = s->wide,
                .n_parts = 3,
                .parts = {{.weight = w->q, .bias = w->q_bias, .y = q},
                    {.weight = w->k, .bias = w->k_bias, .y = k},
                    {.weight = w->v, .bias = w->v_bias, .y = v}}},
            err);
    if (!rc) rc = turn_heads(m, b, layer, q, h->n_head, w->q_norm, err);
    if (!rc) rc = scale_queries(m, b, q, err);
    if (!rc) rc = turn_heads(m, b, layer, k, h->n_head_kv, w->k_norm, err);
    if (!rc && b->whole->capture) capture_queries(m, b, at);
    if (!rc && b->has_own && !model_layer_has_window(h, layer))
        rc = ops->rope(m->ops,
            &(ops_rope_args){.x = q,
                .table = s->rope_own,
                .pairing = h->arch->rope,
                .n = b->n,
                .n_heads = h->n_head,
                .head_dim = h->head_dim,
                .n_rot = h->n_rot},
            err);
    if (!rc)
        rc = ops->rows_write(
            m->ops, &(ops_rows_write_args){.rows = b->rows, .layer = at, .n = b->n, .k = k, .v = v}, err);
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
                .turns = b->turns},
            err);
    if (!rc && h->arch->rows_every)
        rc = ops->gate_quant(m->ops,
            &(ops_gate_quant_args){.gate = gates,
                .up = mixed,
                .kind = OPS_GATE_SIGMOID,
                .n = b->n,
                .width = n_q(h),
                .out = s->wide},
            err);
    else if (!rc)
        rc = ops->quant(
            m->ops, &(ops_quant_args){.x = mixed, .n = b->n, .width = n_q(h), .out = s->wide}, err);
    if (!rc) rc = add_product(m, b->n, w->o, w->attn_post, err);
    return rc;
}

/* What a token's row of scratch.qkv holds in a layer that keeps a state. */
typedef struct state_parts {
    ops_mat q, k, v, z, alpha, beta;
} state_parts;

static state_parts state_parts_of(const model *m)
{
    const model_hyper *h = &m->hyper;
    const size_t stride = state_width(h), keys = (size_t)h->n_state_keys * h->state_dim;
    const size_t z = model_state_channels(h), alpha = z + model_state_values(h);
    ops_buffer *b = m->scratch.qkv;
    return (state_parts){{b, 0, stride}, {b, keys, stride}, {b, 2 * keys, stride}, {b, z, stride},
        {b, alpha, stride}, {b, alpha + h->n_state_values, stride}};
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
    const model_ops *ops = m->ops;
    const state_parts p = state_parts_of(m);
    const uint32_t n_values = model_state_values(h);
    const size_t at = (layer - model_layer_rows(h, layer)) * model_state_floats(h),
                 matrices = at + (size_t)(h->n_taps - 1) * model_state_channels(h);
    ops_mat mixed = {s->mixed, 0, n_values};
    int rc = ops->norm_quant(m->ops,
        &(ops_norm_quant_args){.x = hidden_of(m),
            .weight = w->attn_norm,
            .n = b->n,
            .width = h->n_embd,
            .eps = h->norm_eps,
            .out = s->wide},
        err);
    if (!rc)
        rc = ops->matmul(m->ops,
            &(ops_matmul_args){.x = s->wide,
                .n_parts = 4,
                .parts = {{.weight = w->mix, .y = p.q}, {.weight = w->z, .y = p.z},
                    {.weight = w->alpha, .y = p.alpha}, {.weight = w->beta, .y = p.beta}}},
            err);
    if (!rc)
        rc = ops->conv(m->ops,
            &(ops_conv_args){.x = p.q,
                .taps = w->taps,
                .n = b->n,
                .n_channels = model_state_channels(h),
                .n_taps = h->n_taps,
                .head_dim = h->state_dim,
                .n_query = h->n_state_keys,
                .n_unit = 2 * h->n_state_keys,
                .eps = h->norm_eps,
                .before = b->state ? b->state + at : NULL,
                .after = b->whole->state_out + at},
            err);
    if (!rc)
        rc = ops->delta(m->ops,
            &(ops_delta_args){.q = p.q,
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
                .after = b->whole->state_out + matrices},
            err);
    if (!rc)
        rc = ops->norm(m->ops,
            &(ops_norm_args){.x = mixed,
                .out = mixed,
                .weight = w->state_norm,
                .n = b->n,
                .n_groups = h->n_state_values,
                .width = h->state_dim,
                .eps = h->norm_eps},
            err);
    if (!rc)
        rc = ops->gate_quant(m->ops,
            &(ops_gate_quant_args){.gate = p.z,
                .up = mixed,
                .kind = OPS_GATE_SILU,
                .n = b->n,
                .width = n_values,
                .out = s->wide},
            err);
    if (!rc) rc = add_product(m, b->n, w->state_out, NULL, err);
    return rc;
}

static int feed_forward_half(model *m, uint32_t n, const forward_layer *w, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_scratch *s = &m->scratch;
    const model_ops *ops = m->ops;
    ops_mat gate = {s->gate_up, 0, 2 * (size_t)h->n_ff}, up = {s->gate_up, h->n_ff, 2 * (size_t)h->n_ff};
    int rc;

    rc = ops->norm_quant(m->ops,
        &(ops_norm_quant_args){.x = hidden_of(m),
            .weight = w->ffn_norm,
            .n = n,
            .width = h->n_embd,
            .eps = h->norm_eps,
            .out = s->wide},
        err);
    if (!rc)
        rc = ops->matmul(m->ops,
            &(ops_matmul_args){.x = s->wide,
                .n_parts = 2,
                .parts = {{.weight = w->gate, .y = gate}, {.weight = w->up, .y = up}}},
            err);
    if (!rc)
        rc = ops->gate_quant(m->ops,
            &(ops_gate_quant_args){
                .gate = gate, .up = up, .kind = h->arch->gate, .n = n, .width = h->n_ff, .out = s->wide},
            err);
    if (!rc) rc = add_product(m, n, w->down, w->ffn_post, err);
    return rc;
}

/*
 * The same of a mixture: the router reads F32, the experts 8-bit activations. The expert of all tokens comes
 * last, each token's as much as its gate says.
 */
static int experts_half(model *m, uint32_t n, const forward_layer *w, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const forward_scratch *s = &m->scratch;
    const model_ops *ops = m->ops;
    ops_mat x = hidden_of(m), normed = {s->branch, 0, h->n_embd};
    int rc = ops->norm(m->ops,
        &(ops_norm_args){.x = x,
            .out = normed,
            .weight = w->ffn_norm,
            .n = n,
            .n_groups = 1,
            .width = h->n_embd,
            .eps = h->norm_eps},
        err);
    if (!rc)
        rc = ops->route(m->ops,
            &(ops_route_args){.x = normed,
                .router = w->router,
                .n = n,
                .width = h->n_embd,
                .n_experts = h->n_experts,
                .n_used = h->n_experts_used,
                .chosen = s->chosen,
                .weights = s->shares,
                .shared = w->shared,
                .shares = s->share_all},
            err);
    if (!rc)
        rc = ops->quant(
            m->ops, &(ops_quant_args){.x = normed, .n = n, .width = h->n_embd, .out = s->wide}, err);
    if (!rc)
        rc = ops->experts(m->ops,
            &(ops_experts_args){.x = s->wide,
                .chosen = s->chosen,
                .weights = s->shares,
                .n_experts = h->n_experts,
                .n_used = h->n_experts_used,
                .gate = w->gate,
                .up = w->up,
                .down = w->down,
                .kind = h->arch->gate,
                .y = x,
                .add = x},
            err);
    if (rc || !w->shared) return rc;
    ops_mat gate = {s->gate_up, 0, 2 * (size_t)h->n_ff_shared},
            up = {s->gate_up, h->n_ff_shared, 2 * (size_t)h->n_ff_shared};
    rc = ops->matmul(m->ops,
        &(ops_matmul_args){.x = s->wide,
            .n_parts = 2,
            .parts = {{.weight = w->gate_all, .y = gate}, {.weight = w->up_all, .y = up}}},
        err);
    if (!rc)
        rc = ops->gate_quant(m->ops,
            &(ops_gate_quant_args){.gate = gate,
                .up = up,
                .kind = h->arch->gate,
                .n = n,
                .width = h->n_ff_shared,
                .shares = s->share_all,
                .out = s->wide},
            err);
    if (!rc) rc = add_product(m, n, w->down_all, NULL, err);
    return rc;
}

/* Whatever was not computed, or only beside what was. */
static void forbid_others(float *logits, const uint64_t *only, uint32_t n_vocab)
{
    for (uint32_t id = 0; id < n_vocab; id++)
        if (!(only[id / 64] >> id % 64 & 1)) logits[id] = -INFINITY;
}

/* Logits of the wanted tokens of a micro-batch, FORWARD_HEADS at a time. */
static int make_logits(model *m, const micro_batch *b, base_err *err)
{
    const model_hyper *h = &m->hyper;
    uint32_t places[FORWARD_HEADS];
    int rc = 0;

    for (uint32_t at = 0; at < b->n_want && !rc; at += FORWARD_HEADS) {
        uint32_t now = b->n_want - at < FORWARD_HEADS ? b->n_want - at : FORWARD_HEADS;
        for (uint32_t i = 0; i < now; i++) places[i] = b->whole->want[b->want_from + at + i] - b->from;
        rc = m->ops->norm_quant(m->ops,
            &(ops_norm_quant_args){.x = hidden_of(m),
                .weight = m->output_norm,
                .rows = places,
                .n = now,
                .width = h->n_embd,
                .eps = h->norm_eps,
                .out = m->scratch.wide},
            err);
        if (!rc)
            rc = m->ops->matmul(m->ops,
                &(ops_matmul_args){.x = m->scratch.wide,
                    .n_parts = 1,
                    .parts = {{.weight = m->output, .y = {m->scratch.logits, 0, h->n_vocab}}},
                    .only = b->whole->only},
                err);
        if (rc) break;
        float *logits = b->whole->logits + (size_t)(b->want_from + at) * h->n_vocab;
        m->ops->download(m->ops, logits, m->scratch.logits, 0, (size_t)now * h->n_vocab * sizeof *logits);
        for (uint32_t i = 0; i < now && b->whole->only; i++)
            forbid_others(logits + (size_t)i * h->n_vocab, b->whole->only, h->n_vocab);
    }
    return rc;
}

static int start_hidden(model *m, const micro_batch *b, base_err *err)
{
    const model_hyper *h = &m->hyper;
    size_t row_bytes = h->n_embd * sizeof(float);
    if (b->whole->layer_first == 0) {
        int rc = m->ops->embed(m->ops,
            &(ops_embed_args){.table = m->tensors.token_embd,
                .ids = b->whole->ids + b->from,
                .n = b->n,
                .scale = h->arch->embd_scale ? sqrtf((float)h->n_embd) : 1,
                .out = hidden_of(m)},
            err);
        return rc ? rc
                  : gguf_check_unchanged(m->file, m->path, err); /* the embedding is read from the file */
    }
    m->ops->upload(m->ops, m->scratch.x, 0, b->whole->hidden + (size_t)b->from * h->n_embd, b->n * row_bytes);
    return 0;
}

/* Layers with a window turn by their own base; stretching a context is for the layers that read all of it. */
static int make_rope_tables(model *m, const micro_batch *b, base_err *err)
{
    const model_hyper *h = &m->hyper;
    ops_rope_table_args table = {.phases = b->whole->phases + b->from,
        .factors = m->rope_factors,
        .n = b->n,
        .n_rot = h->n_rot,
        .base = h->rope_base,
        .scale = 1 / h->rope_factor,
        .table = m->scratch.rope};
    int rc = m->ops->rope_table(m->ops, &table, err);
    if (rc || !h->window) return rc;
    table.factors = NULL;
    table.base = h->window_rope_base;
    table.scale = 1;
    table.table = m->scratch.rope_window;
    return m->ops->rope_table(m->ops, &table, err);
}

/*
 * What is folded of what the batch reads. Tokens that are computed again may be folded themselves; then they
 * ask from their own folded phase.
 */
static int make_turns(model *m, micro_batch *b, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const model_lane_list *list = &b->rows->lanes[model_layer_rows(h, b->whole->layer_first) * h->n_head_kv];
    uint32_t own[FORWARD_BATCH], t = b->n;
    int rc = forward_turns_of(m, b->rows, &b->turns, err);
    if (rc || !b->turns) return rc;
    for (uint32_t i = list->n_runs; i > 0 && t > 0; i--)
        for (uint32_t k = list->runs[i - 1].n; k > 0 && t > 0; k--) {
            own[--t] = model_rows_gap(b->rows, list->runs[i - 1].index + k - 1);
            b->less[t] = b->rows->gaps[0] - own[t];
            b->has_own = b->has_own || own[t];
        }
    if (!b->has_own) return 0;
    return m->ops->rope_table(m->ops,
        &(ops_rope_table_args){.phases = own,
            .factors = m->rope_factors,
            .n = b->n,
            .n_rot = h->n_rot,
            .base = h->rope_base,
            .scale = 1 / h->rope_factor,
            .table = m->scratch.rope_own},
        err);
}

static int run_micro_batch(model *m, micro_batch *b, uint32_t layer_last, base_err *err)
{
    const model_hyper *h = &m->hyper;
    int rc = make_rope_tables(m, b, err);
    if (!rc) rc = make_turns(m, b, err);
    if (!rc) rc = start_hidden(m, b, err);
    for (uint32_t layer = b->whole->layer_first; layer < layer_last && !rc; layer++) {
        rc = (model_layer_is_recurrent(h, layer) ? state_half : attention_half)(m, b, layer, err);
        if (!rc) rc = (h->n_experts ? experts_half : feed_forward_half)(m, b->n, &m->layers[layer], err);
    }
    if (rc) return rc;
    if (layer_last == h->n_layer) return make_logits(m, b, err);
    m->ops->download(m->ops, b->whole->hidden + (size_t)b->from * h->n_embd, m->scratch.x, 0,
        (size_t)b->n * h->n_embd * sizeof(float));
    return m->ops->sync(m->ops, err);
}

/* A batch and its pieces */

static int check_batch(const model *m, const model_batch *b, uint32_t layer_last, base_err *err)
{
    const model_hyper *h = &m->hyper;
    const model_rows_shape *s = &b->rows->shape;

    if (b->n == 0) return base_fail(err, BASE_E_USAGE, "a batch of no tokens");
    if (b->layer_first >= layer_last || layer_last > h->n_layer)
        return base_fail(
            err, BASE_E_USAGE, "layers %u to %u of a model with %u", b->layer_first, layer_last, h->n_layer);
    if (s->n_layer != h->n_rows_layers || s->n_head_kv != h->n_head_kv || s->head_dim != h->head_dim)
        return base_fail(err, BASE_E_USAGE, "rows of another model");
    if (h->n_taps && (b->layer_first > 0 || layer_last < h->n_layer || !b->state_out))
        return base_fail(
            err, BASE_E_USAGE, "a model that keeps a state computes all layers, and needs room for it");
    if ((b->layer_first > 0 || layer_last < h->n_layer) && !b->hidden)
        return base_fail(err, BASE_E_USAGE, "a part of the layers needs room for hidden states");
    if (b->n_want && (layer_last < h->n_layer || !b->logits || !b->want))
        return base_fail(err, BASE_E_USAGE, "logits are made behind the last layer only");
    if (b->reader && b->n > FORWARD_BATCH)
        return base_fail(err, BASE_E_USAGE, "a batch of %u tokens that choose what they read; at most %d",
            b->n, FORWARD_BATCH);
    for (uint32_t i = 0; i < b->n_want; i++)
        if (b->want[i] >= b->n || (i && b->want[i] <= b->want[i - 1]))
            return base_fail(err, BASE_E_USAGE, "wanted token %u of a batch of %u is not ascending inside it",
                b->want[i], b->n);
    for (uint32_t i = 0; b->capture && i < b->capture->n; i++)
        if (b->capture->tokens[i] >= b->n)
            return base_fail(
                err, BASE_E_USAGE, "captured token %u of a batch of %u", b->capture->tokens[i], b->n);
    for (uint32_t i = 0; i < b->n; i++)
        if (b->ids[i] < 0 || (uint32_t)b->ids[i] >= h->n_vocab)
            return base_fail(
                err, BASE_E_LIMIT, "id %d is outside the vocabulary of %u", b->ids[i], h->n_vocab);
    const uint32_t first_lane = model_layer_rows(h, b->layer_first) * h->n_head_kv,
                   last_lane = model_layer_rows(h, layer_last) * h->n_head_kv;
    for (uint32_t lane = first_lane; lane < last_lane; lane++)
        if (b->rows->lanes[lane].n_rows < b->n)
            return base_fail(err, BASE_E_USAGE, "lane %u lists %u rows for a batch of %u", lane,
                b->rows->lanes[lane].n_rows, b->n);
    return 0;
}

/* The same lists without their last `less` rows; lists that share runs share the copy. */
typedef struct shorter {
    model_rows_view view;
    model_lane_list *lanes;
    model_run *runs;
} shorter;

static int shorter_make(shorter *s, const model_rows_view *rows, base_err *err)
{
    size_t n_lanes = model_rows_lanes(&rows->shape), n_runs = 0;
    for (size_t i = 0; i < n_lanes; i++) n_runs += rows->lanes[i].n_runs;
    s->lanes = malloc(n_lanes * sizeof *s->lanes);
    s->runs = malloc((n_runs + 1) * sizeof *s->runs);
    if (!s->lanes || !s->runs)
        return base_fail(err, BASE_E_NOMEM, "no memory for the lists of %zu runs", n_runs);
    return 0;
}

static void shorter_set(shorter *s, const model_rows_view *rows, uint32_t less)
{
    uint32_t n_lanes = model_rows_lanes(&rows->shape);
    model_run *to = s->runs;

    for (uint32_t i = 0; i < n_lanes; i++) {
        const model_lane_list *list = &rows->lanes[i];
        uint32_t drop = less, n_runs = list->n_runs;
        if (i > 0 && list->runs == rows->lanes[i - 1].runs && list->n_rows == rows->lanes[i - 1].n_rows) {
            s->lanes[i] = s->lanes[i - 1];
            continue;
        }
        while (n_runs > 0 && drop >= list->runs[n_runs - 1].n) drop -= list->runs[--n_runs].n;
        memcpy(to, list->runs, n_runs * sizeof *to);
        if (n_runs > 0) to[n_runs - 1].n -= drop;
        s->lanes[i] = (model_lane_list){to, n_runs, list->n_rows > less ? list->n_rows - less : 0};
        to += n_runs;
    }
    s->view = *rows;
    s->view.lanes = s->lanes;
}

static int run_split(model *m, const model_batch *batch, uint32_t layer_last, base_err *err)
{
    shorter lists = {0};
    uint32_t want_at = 0;
    int rc = shorter_make(&lists, batch->rows, err);

    for (uint32_t from = 0; from < batch->n && !rc; from += FORWARD_BATCH) {
        uint32_t n = batch->n - from < FORWARD_BATCH ? batch->n - from : FORWARD_BATCH, n_want = 0;
        while (want_at + n_want < batch->n_want && batch->want[want_at + n_want] < from + n) n_want++;
        shorter_set(&lists, batch->rows, batch->n - from - n);
        micro_batch b = {.whole = batch,
            .from = from,
            .n = n,
            .rows = &lists.view,
            .want_from = want_at,
            .n_want = n_want,
            .state = from ? batch->state_out : batch->state_in};
        rc = run_micro_batch(m, &b, layer_last, err);
        want_at += n_want;
    }
    free(lists.lanes);
    free(lists.runs);
    return rc;
}

static int compute_batch(model *m, const void *what, base_err *err)
{
    const model_batch *batch = what;
    uint32_t layer_last = batch->layer_last;
    if (batch->layer_first == 0 && layer_last == 0) layer_last = m->hyper.n_layer;
    int rc = check_batch(m, batch, layer_last, err);
    if (rc) return rc;
    m->ops->cancel = batch->cancel;
    if (batch->n <= FORWARD_BATCH) {
        micro_batch b = {.whole = batch,
            .n = batch->n,
            .rows = batch->rows,
            .n_want = batch->n_want,
            .state = batch->state_in};
        rc = run_micro_batch(m, &b, layer_last, err);
    } else {
        rc = run_split(m, batch, layer_last, err);
    }
    /* Rows are in host memory when a batch ends, however it ends. */
    int synced = m->ops->sync(m->ops, rc ? NULL : err);
    m->ops->cancel = NULL;
    return rc ? rc : synced;
}

/* Where the device fails the model goes on on the CPU, and this once more there. */
static int try_again(
    model *m, int (*compute)(model *m, const void *what, base_err *err), const void *what, base_err *err)
{
    base_err own = {0};
    if (!err) err = &own;
    int rc = compute(m, what, err);
    if (rc != BASE_E_DEVICE) return rc;
    rc = model_fall_back(m, err);
    return rc ? rc : compute(m, what, err);
}

int model_forward(model *m, const model_batch *batch, base_err *err)
{
    return try_again(m, compute_batch, batch, err);
}

/* A copy of the queries, each at its own token's folded phase; NULL: none of these tokens is folded. */
static float *turn_to_own(const model *m, const model_score *score)
{
    const model_hyper *h = &m->hyper;
    const size_t n = (size_t)n_q(h) * h->n_rows_layers * score->n_queries;
    int64_t by[64];
    bool any = false;
    for (uint32_t t = 0; t < score->n_queries; t++) {
        by[t] = score->tokens ? model_rows_gap(score->rows, score->tokens[t]) : 0;
        any = any || by[t];
    }
    if (!any) return NULL;
    float *queries = base_xmalloc(n * sizeof *queries);
    memcpy(queries, score->queries, n * sizeof *queries);
    model_turn_queries(m, queries, score->n_queries, by);
    return queries;
}

static int score_rows(model *m, const void *what, base_err *err)
{
    const model_score *score = what;
    const model_hyper *h = &m->hyper;
    const model_rows_shape *s = &score->rows->shape;
    if (score->n_queries < 1 || score->n_queries > 64)
        return base_fail(err, BASE_E_USAGE, "%u queries; 1 to 64 can be asked at once", score->n_queries);
    if (s->n_layer != h->n_rows_layers || s->n_head_kv != h->n_head_kv || s->head_dim != h->head_dim)
        return base_fail(err, BASE_E_USAGE, "rows of another model");
    uint32_t *from = base_xcalloc(h->n_layer, sizeof *from);
    for (uint32_t l = 0; l < h->n_layer; l++) /* a model with windows has rows in every layer */
        if (model_layer_has_window(h, l) && score->end > h->window) from[l] = score->end - h->window;
    m->ops->cancel = score->cancel;
    const ops_turns *turns = NULL;
    int rc = forward_turns_of(m, score->rows, &turns, err);
    float *own = turns ? turn_to_own(m, score) : NULL;
    if (!rc)
        rc = m->ops->score_rows(m->ops,
            &(ops_score_rows_args){.rows = score->rows,
                .queries = own ? own : score->queries,
                .turns = turns,
                .n_queries = score->n_queries,
                .n_head = h->n_head,
                .scale = h->attn_scale,
                .pool_max = score->pool == MODEL_POOL_MAX,
                .heads = score->heads,
                .rest = score->rest,
                .from = from,
                .mass = score->mass},
            err);
    if (!rc) rc = m->ops->sync(m->ops, err);
    m->ops->cancel = NULL;
    free(from);
    free(own);
    return rc;
}

int model_score_rows(model *m, const model_score *score, base_err *err)
{
    return try_again(m, score_rows, score, err);
}

void model_rows_pin(model *m, void *memory, size_t n_bytes)
{
    if (m->ops->pin) m->ops->pin(m->ops, memory, n_bytes);
}

void model_rows_unpin(model *m, void *memory)
{
    if (m->ops && m->ops->unpin) m->ops->unpin(m->ops, memory);
}

void model_rows_bring(model *m, const model_rows_view *rows)
{
    if (m->ops->bring) (void)m->ops->bring(m->ops, rows, NULL);
}

/* A lane's query heads become tokens of one head each, so that the operation keeps them apart. */
static int bound_sections(model *m, const void *what, base_err *err)
{
    const model_bound *b = what;
    const model_hyper *h = &m->hyper;
    const uint32_t group = h->n_head / h->n_head_kv, n = group * b->n_queries, d = h->head_dim;
    if (b->layer >= h->n_rows_layers || b->n_queries < 1 || n > FORWARD_BATCH)
        return base_fail(err, BASE_E_USAGE, "bounds of layer %u under %u queries", b->layer, b->n_queries);
    for (uint32_t head = 0; head < h->n_head; head++)
        for (uint32_t i = 0; i < b->n_queries; i++) {
            const size_t row = (size_t)(head % group) * b->n_queries + i, kv_head = head / group;
            m->ops->upload(m->ops, m->scratch.qkv, (row * n_kv(h) + kv_head * d) * sizeof(float),
                b->queries + (((size_t)b->layer * h->n_head + head) * b->n_queries + i) * d,
                d * sizeof(float));
        }
    m->ops->cancel = b->cancel;
    int rc = m->ops->bound(m->ops,
        &(ops_bound_args){.profiles = b->profiles,
            .layer = b->layer,
            .n = n,
            .n_head = h->n_head_kv,
            .n_sections = b->n_sections,
            .scale = h->attn_scale,
            .q = {m->scratch.qkv, 0, n_kv(h)},
            .bound = b->bound},
        err);
    if (!rc) rc = m->ops->sync(m->ops, err);
    m->ops->cancel = NULL;
    return rc;
}

int model_bound_sections(model *m, const model_bound *b, base_err *err)
{
    return try_again(m, bound_sections, b, err);
}
