/*
 * An engine across HTTP that takes token ids (llama-server, vLLM, SGLang). The sequence is ours: every request sends
 * all of it, so what was sent before is sent again unchanged, and the engine finds it in its own cache. Appending
 * costs nothing until an answer is asked for. Engine thread only.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/engine/ability.h"
#include "agent/engine/engine_remote.h"
#include "agent/engine/engine_remote_parts.h"
#include "base/hash.h"
#include "base/mem.h"
#include "remote/gbnf.h"

/* tokens a request asks for where nothing else is told; behind them another goes on */
enum { ANSWER_AT_ONCE = 4096 };

/* --- text ---------------------------------------------------------------------------------------------------- */

static int remote_encode(engine *e, const char *text, size_t n, model_ids *out, base_err *err)
{
    return remote_vocab_encode(remote_of(e)->endpoint->vocab, text, n, false, out, err);
}

static uint32_t remote_count(const engine *e, const char *text, size_t n)
{
    return remote_vocab_guess(remote_of(e)->endpoint->vocab, n);
}

static int remote_scaffold(engine *e, engine_scaffold what, model_role role, model_ids *out, base_err *err)
{
    const remote_endpoint *p = remote_of(e)->endpoint;
    const model_ids *ids = what == ENGINE_START ? &p->start : what == ENGINE_BEGIN ? p->begin : p->end;
    model_ids_add_all(out, what == ENGINE_START ? ids : &ids[role]);
    return 0;
}

static const char *remote_piece_of(const engine *e, int32_t id, size_t *ret_n)
{
    return remote_vocab_piece(remote_of(e)->endpoint->vocab, id, ret_n);
}

static bool remote_is_control(const engine *e, int32_t id)
{
    return remote_vocab_is_control(remote_of(e)->endpoint->vocab, id);
}

/* A mark of a thought is a token of its own, or no mark. */
static int32_t remote_mark(const engine *e, const char *name)
{
    model_ids ids = {0};
    remote_vocab *v = remote_of(e)->endpoint->vocab;
    const int rc = remote_vocab_encode(v, name, strlen(name), true, &ids, NULL);
    const int32_t id = !rc && ids.n == 1 ? ids.ids[0] : -1;
    if (id >= 0) remote_vocab_judge(v, id, NULL);
    model_ids_free(&ids);
    return id;
}

/* --- the sequence -------------------------------------------------------------------------------------------- */

static const int32_t *remote_ids(const engine *e, uint32_t *ret_n)
{
    *ret_n = (uint32_t)remote_of(e)->seq.ids.n;
    return remote_of(e)->seq.ids.ids;
}

static bool is_fixed(const kv_segment *s)
{
    return s->origin == KV_ORIGIN_SYSTEM || s->origin == KV_ORIGIN_INSTRUCTIONS;
}

static int remote_append(engine *e, const kv_segment *segment, const int32_t *ids, uint32_t n, base_err *err)
{
    remote *r = remote_of(e);
    if (n > r->n_ctx || remote_sequence_n_active(&r->seq) > r->n_ctx - n || r->seq.ids.n > INT32_MAX - n)
        return remote_endpoint_fail_full(is_fixed(segment), n, r->n_ctx, err);
    int rc = remote_vocab_learn(r->endpoint->vocab, ids, n, err); /* of a log they may be news */
    if (rc) return rc;
    remote__close_stream(r);
    for (uint32_t i = 0; i < n; i++) remote_sequence_add(&r->seq, ids[i]);
    return 0;
}

static int remote_truncate(engine *e, uint32_t n, base_err *err)
{
    remote *r = remote_of(e);
    if (n > r->seq.ids.n)
        return base_fail(err, BASE_E_USAGE, "cannot cut %zu tokens back to %u", r->seq.ids.n, n);
    remote__close_stream(r);
    remote_sequence_cut_back(&r->seq, n);
    return 0;
}

static int remote_restart(engine *e, const char *row_file, base_err *err)
{
    remote *r = remote_of(e);
    remote__close_stream(r);
    remote_sequence_cut_back(&r->seq, 0);
    return 0;
}

static int remote_set_active(engine *e, uint32_t from, uint32_t to, bool active, base_err *err)
{
    remote *r = remote_of(e);
    if (from >= to || to > r->seq.ids.n)
        return base_fail(
            err, BASE_E_USAGE, "tokens %u to %u are not in this session of %zu", from, to, r->seq.ids.n);
    remote__close_stream(r);
    remote_sequence_set_active(&r->seq, from, to, active);
    return 0;
}

static bool remote_is_active(const engine *e, uint32_t index)
{
    return !remote_of(e)->seq.out[index];
}

static void remote_set_budget(engine *e, uint32_t n_tokens)
{
    remote_of(e)->budget = n_tokens;
}

static int remote_fork(engine *e, base_err *err)
{
    remote__close_stream(remote_of(e));
    remote_sequence_fork(&remote_of(e)->seq);
    return 0;
}

static void remote_unfork(engine *e)
{
    remote *r = remote_of(e);
    if (!r->seq.is_branch) return;
    remote__close_stream(r);
    remote_sequence_unfork(&r->seq);
}

/* --- looking ------------------------------------------------------------------------------------------------- */

static void remote_info(const engine *e, engine_info *ret)
{
    const remote *r = remote_of(e);
    const remote_endpoint *p = r->endpoint;
    *ret = (engine_info){.model = p->model,
        .model_hash = r->hash,
        .quantisation = p->format ? p->format : "not told",
        .policy = "spans",
        .backend = p->kind,
        .notice = r->n_notices ? r->notices[r->n_notices - 1] : NULL,
        .tools = p->tools,
        .is_elsewhere = !remote_http_address(p->http)->is_loopback,
        .server = remote_http_address(p->http)->origin,
        .strong = agent_ability_is_strong(&(agent_ability){p->tools, p->n_params, 0}),
        .n_ctx = r->n_ctx,
        .model_n_ctx = p->n_train ? p->n_train : r->n_ctx,
        .n_layer = 1,
        .n_lanes = 1,
        .n_all_lanes = 1,
        .n_vocab = INT32_MAX,
        .sampling = r->sampling};
}

static void remote_stats(const engine *e, kv_stats *ret)
{
    const remote *r = remote_of(e);
    const uint32_t active = remote_sequence_n_active(&r->seq);
    *ret = (kv_stats){.n_tokens = (uint32_t)r->seq.ids.n,
        .n_ctx = r->n_ctx + r->seq.n_out,
        .n_lanes = 1,
        .n_all_lanes = 1,
        .active = active,
        .active_min = active,
        .active_max = active,
        .host = r->seq.n_out,
        .budget = r->budget,
        .endless = r->budget > 0,
        .reused = (uint32_t)r->seq.ids.n, /* none is computed before it is asked for */
        .computed = (uint32_t)r->cost.n_computed};
}

/* --- an answer ----------------------------------------------------------------------------------------------- */

static void remote_answer_begins(engine *e)
{
    remote *r = remote_of(e);
    r->is_grammar_off = false;
    r->hold = NULL;
    r->answer_from = (uint32_t)r->seq.ids.n;
    r->stream.breaks = 0;
}

/* What the harness wrote of the answer belongs to it: a call in it is gone on with. */
static void remote_answer_opened(engine *e, const int32_t *ids, uint32_t n)
{
    remote *r = remote_of(e);
    if (n <= r->seq.ids.n) r->answer_from = (uint32_t)r->seq.ids.n - n;
}

/* A grammar begins with the answer: of one that goes on behind a break the check is all that is left. */
static int remote_answer_held(engine *e, engine_hold *hold, base_err *err)
{
    remote_of(e)->hold = hold;
    return 0;
}

static void remote_answer_over(engine *e)
{
    remote *r = remote_of(e);
    const bool is_cancelled = r->cancel && atomic_load(r->cancel);
    if (!is_cancelled)
        remote__read_usage(r, REMOTE_USAGE_CUT_MS); /* a call was over before the answer's end */
    remote__close_stream(r);
    r->hold = NULL;
}

static void remote_set_sampling(engine *e, const model_sampling *s)
{
    remote *r = remote_of(e);
    if (memcmp(&r->sampling, s, sizeof *s)) remote__close_stream(r);
    r->sampling = *s;
}

static int remote_set_tools(
    engine *e, const model_grammar_tool *tools, uint32_t n, const char *const *paths, base_err *err)
{
    remote *r = remote_of(e);
    base_buf_clear(&r->grammar);
    remote_gbnf_put(r->endpoint->tools, tools, n, paths, &r->grammar);
    remote_gbnf_tools_keep(&r->tools, tools, n);
    return 0;
}

/* --- opening ------------------------------------------------------------------------------------------------- */

static void remote_close(engine *e)
{
    remote *r = remote_of(e);
    if (!r) return;
    remote__close_stream(r);
    remote_endpoint_close(r->endpoint);
    remote_sequence_free(&r->seq);
    remote_held_free(&r->cost.held);
    free(r->cost.places);
    free(r->cost.folder);
    model_ids_free(&r->stream.sent);
    model_ids_free(&r->stream.came);
    model_ids_free(&r->stream.withheld);
    base_buf_free(&r->stream.late);
    base_buf_free(&r->grammar);
    remote_gbnf_tools_free(&r->tools);
    for (size_t i = 0; i < r->n_notices; i++) free(r->notices[i]);
    free(r->notices);
    free(r->hash);
    free(r);
}

static const engine_ops remote_ops = {
    .close = remote_close,
    .info = remote_info,
    .stats = remote_stats,
    .encode = remote_encode,
    .count = remote_count,
    .scaffold = remote_scaffold,
    .piece = remote_piece_of,
    .is_control = remote_is_control,
    .mark = remote_mark,
    .ids = remote_ids,
    .append = remote_append,
    .truncate = remote_truncate,
    .restart = remote_restart,
    .set_sampling = remote_set_sampling,
    .answer_begins = remote_answer_begins,
    .answer_opened = remote_answer_opened,
    .answer_held = remote_answer_held,
    .answer_over = remote_answer_over,
    .next = remote__next,
    .take_request = remote__take_request,
    .doubts = remote__doubts,
    .set_tools = remote_set_tools,
    .fork = remote_fork,
    .unfork = remote_unfork,
    .set_active = remote_set_active,
    .is_active = remote_is_active,
    .to_compute = remote__to_compute,
    .set_budget = remote_set_budget,
};

/* The model, and how its messages are written: ids of a log mean the same where both are equal. */
static char *make_hash(const remote_endpoint *p)
{
    base_buf all = {0};
    char hex[65];
    base_buf_printf(&all, "%s\n", p->model);
    for (int role = 0; role < REMOTE_N_ROLES; role++) {
        remote_wire_put_ids(p->begin[role].ids, (uint32_t)p->begin[role].n, &all);
        remote_wire_put_ids(p->end[role].ids, (uint32_t)p->end[role].n, &all);
    }
    base_sha256_hex(all.data, all.len, hex);
    base_buf_clear(&all);
    base_buf_printf(&all, "remote-%.24s", hex);
    return base_buf_take(&all);
}

static uint32_t n_ctx_of(const remote_endpoint *endpoint, const engine_options *options)
{
    const uint32_t told = endpoint->n_ctx ? endpoint->n_ctx : 8192, wanted = options->kv.n_ctx;
    return wanted && wanted < told ? wanted : told;
}

static engine *open_ids(remote_endpoint *endpoint, const engine_options *options)
{
    remote *r = base_xcalloc(1, sizeof *r);
    r->base.ops = &remote_ops;
    r->base.can = ENGINE_IDS | ENGINE_BRANCH | ENGINE_SPANS | ENGINE_BEGINS |
                  (endpoint->wire->grammar ? ENGINE_GRAMMAR : 0) |
                  (endpoint->wire->scoring ? ENGINE_DOUBTS : 0);
    r->endpoint = endpoint;
    r->cancel = options->cancel;
    r->sampling = options->sampling;
    r->n_ctx = n_ctx_of(endpoint, options);
    r->max_answer = options->max_answer ? options->max_answer : ANSWER_AT_ONCE;
    r->hash = make_hash(endpoint);
    r->cost.held = (remote_held){.keeps_prompts = endpoint->wire == &remote_wire_llama,
        .keeps_blocks = endpoint->wire != &remote_wire_llama,
        .block = endpoint->block};
    r->cost.folder = base_xstrdup(options->prompt_cache);
    base_buf text = {0};
    remote_endpoint_describe(endpoint, &text);
    if (endpoint->differs)
        base_buf_printf(&text,
            "; its template writes a history differently (%s): kvist keeps to what was sent",
            endpoint->differs);
    remote__notice(r, text.data);
    base_buf_free(&text);
    return &r->base;
}

/* Why opening takes long, where a model's loading would be shown. */
static void on_wait(void *user, const char *sentence)
{
    const engine_options *o = user;
    if (o->model.progress) o->model.progress(o->model.user, 0, sentence);
}

static void on_session_wait(void *user, const char *sentence)
{
    const engine *e = user;
    if (e->waits) e->waits(e->observer.user, sentence);
}

int engine_remote_open(engine **ret, const remote_endpoint_options *endpoint, const engine_options *options,
    base_err *why_not, base_err *err)
{
    remote_endpoint_options asked = *endpoint;
    remote_endpoint *e = NULL;
    asked.http.cancel = options->cancel;
    asked.http.waits = on_wait;
    asked.http.user = (void *)(uintptr_t)options;
    asked.thinking = options->model.thinking;
    if (options->model.progress) options->model.progress(options->model.user, 0, "asking the endpoint");
    int rc = remote_endpoint_open(&e, &asked, err);
    if (rc == BASE_E_IO || rc == BASE_E_STATE || rc == BASE_E_NOT_FOUND || rc == BASE_E_FORMAT) {
        rc = BASE_E_ENGINE;
        if (err) err->code = rc;
    }
    if (rc) return rc;
    kv_limit limit = {0};
    if (options->budget && e->wire->has_ids)
        rc = options->budget(options->budget_user, n_ctx_of(e, options), 0, (kv_limit){0}, &limit, err);
    if (rc) {
        remote_endpoint_close(e);
        return rc;
    }
    if (why_not) *why_not = (base_err){.code = BASE_E_UNSUPPORTED, .msg = "an endpoint keeps no session"};
    *ret = e->wire->has_ids ? open_ids(e, options) : engine_remote_chat_open(e, options);
    remote_http_set_waits(e->http, on_session_wait, *ret); /* the options are gone soon */
    if (e->wire->has_ids) remote_set_budget(*ret, limit.rows);
    return 0;
}
