/*
 * An engine across HTTP that takes token ids (llama-server, vLLM). The sequence is ours: every request sends
 * all of it, so what was sent before is sent again unchanged, and the engine finds it in its own cache.
 *
 * Of the sequence, spans may be left out of what is sent (ENGINE_SPANS); indices are those of the sequence, and what
 * is sent is what is left of it, in its order.
 *
 * Appending costs nothing until an answer is asked for. An answer is one stream; tokens come out of it one by
 * one, and whatever changes the sequence in another way closes it. A stream that breaks is asked for again
 * with what came of it, so nothing of an answer is lost and nothing is said twice. Engine thread only.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/engine/ability.h"
#include "agent/engine/engine_remote.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "remote/gbnf.h"
#include "remote/held.h"
#include "remote/sse.h"

enum {
    ANSWER_AT_ONCE =
        4096,        /* tokens a request asks for where nothing else is told; behind them another goes on */
    MOST_BREAKS = 5, /* in a row, without a token between them */
    MOST_REPORTS = 16,
    REUSE =
        32 /* tokens of a stretch that llama-server is to move behind a cut; shorter ones may stand there twice */
};

/* Does this llama-server move what stands behind a cut? */
typedef enum moving { MOVES_UNKNOWN, MOVES, MOVES_NOT } moving;

typedef struct remote {
    engine base;
    remote_endpoint *endpoint;
    const atomic_bool *cancel;
    model_sampling sampling;
    char *hash;
    char **notices; /* all of them: the newest is told, and the one before may still be held */
    size_t n_notices, cap_notices;
    uint32_t n_ctx, max_answer;
    model_ids ids, trunk; /* trunk: the sequence while a branch of it is in place */
    bool is_branch;
    bool *out; /* [ids.n] left out of what is sent */
    size_t cap_out;
    uint32_t n_out, budget;
    uint8_t *places; /* engine_request.places */
    size_t cap_places;
    model_ids sent; /* by the newest request */
    moving moves;
    bool has_probed;                     /* asked, whatever came of it */
    uint32_t found_moved, found_unmoved; /* by that request, where a cut stands in it */

    base_buf grammar;        /* rules of calls */
    engine_hold *hold;       /* this answer's; NULL: it is free */
    bool is_grammar_refused; /* by the endpoint, for good */
    bool is_grammar_off;     /* for this answer: it goes on inside of a call */
    uint32_t answer_from;

    /* The answer that is being streamed. */
    bool is_streaming, has_ended, is_cut; /* is_cut: it stopped at our limit of tokens and goes on */
    bool is_done;                         /* nothing comes behind it */
    bool tells_no_cache;                  /* an answer came to its very end without that number */
    remote_sse sse;
    model_ids came;      /* its tokens */
    size_t taken;        /* of them in the sequence */
    int64_t n_told;      /* tokens that the engine says it wrote */
    size_t n_text;       /* bytes of it, where each event tells it from its beginning */
    int64_t n_prefilled; /* of the prompt, as it says */
    model_ids withheld;  /* their text was not told yet */
    base_buf late;       /* text whose ids are not told apart yet */
    bool is_truncated;   /* the engine left a part of the sequence out of this request */
    bool told_truncated;
    uint32_t breaks;
    uint64_t begun_ns;

    remote_held held;
    bool is_other_model;
    uint64_t n_computed;
    engine_request reports[MOST_REPORTS];
    uint32_t n_reports;
} remote;

static remote *as_remote(const engine *e)
{
    return (remote *)(uintptr_t)e;
}

static void set_notice(remote *r, const char *text)
{
    base_grow(&r->notices, &r->cap_notices, r->n_notices + 1, sizeof *r->notices);
    r->notices[r->n_notices++] = base_xstrdup(text);
}

/* --- text ----------------------------------------------------------------------------------------------- */

static int remote_encode(engine *e, const char *text, size_t n, model_ids *out, base_err *err)
{
    return remote_vocab_encode(as_remote(e)->endpoint->vocab, text, n, false, out, err);
}

static uint32_t remote_count(const engine *e, const char *text, size_t n)
{
    return remote_vocab_guess(as_remote(e)->endpoint->vocab, n);
}

static void add_all(const model_ids *ids, model_ids *out)
{
    for (size_t i = 0; i < ids->n; i++) model_ids_add(out, ids->ids[i]);
}

static int remote_scaffold(engine *e, engine_scaffold what, model_role role, model_ids *out, base_err *err)
{
    const remote_endpoint *p = as_remote(e)->endpoint;
    add_all(what == ENGINE_START ? &p->start : what == ENGINE_BEGIN ? &p->begin[role] : &p->end[role], out);
    return 0;
}

static const char *remote_piece_of(const engine *e, int32_t id, size_t *ret_n)
{
    return remote_vocab_piece(as_remote(e)->endpoint->vocab, id, ret_n);
}

static bool remote_is_control(const engine *e, int32_t id)
{
    return remote_vocab_is_control(as_remote(e)->endpoint->vocab, id);
}

/* --- the sequence --------------------------------------------------------------------------------------- */

static uint32_t n_active(const remote *r)
{
    return (uint32_t)r->ids.n - r->n_out;
}

static void add_id(remote *r, int32_t id)
{
    base_grow(&r->out, &r->cap_out, r->ids.n + 1, sizeof *r->out);
    r->out[r->ids.n] = false;
    model_ids_add(&r->ids, id);
}

static void cut_back(remote *r, size_t n)
{
    while (r->ids.n > n) r->n_out -= r->out[--r->ids.n];
}

/* What a request sends; left_out: beside what is out already, NULL: nothing. */
static void put_active(const remote *r, const bool *left_out, model_ids *ret)
{
    ret->n = 0;
    for (size_t i = 0; i < r->ids.n; i++)
        if (!r->out[i] && !(left_out && left_out[i])) model_ids_add(ret, r->ids.ids[i]);
}

/* Only of a sequence with a cut: elsewhere nothing is to be taken out of another's context. */
static uint32_t reuse_of(const remote *r, bool has_cut)
{
    return has_cut && r->endpoint->wire == &remote_wire_llama && r->moves != MOVES_NOT ? REUSE : 0;
}

static engine_request *report(remote *r)
{
    return r->n_reports ? &r->reports[r->n_reports - 1] : NULL;
}

/* Told once a session; what the engine holds now is not what was sent. */
static void tell_truncated(remote *r)
{
    remote_held_forget(&r->held);
    if (r->told_truncated) return;
    r->told_truncated = true;
    set_notice(r, "the endpoint left a part of what it was sent out of its context, for lack of room: the "
                  "answer does not know "
                  "all of this session. A server with a larger context, or /compact, helps");
}

/* Of a server that the probe learned nothing of: where a cut stands in a request, what was found of it says so. */
static void learn_moving(remote *r, const engine_request *q)
{
    if (r->moves != MOVES_UNKNOWN || !q || q->cached < 0 || r->found_moved == r->found_unmoved) return;
    if (q->cached >= r->found_moved)
        r->moves = MOVES;
    else if (q->cached <= r->found_unmoved)
        r->moves = MOVES_NOT;
}

/* The stream is over, or of no use any more. */
static void close_stream(remote *r)
{
    if (r->is_streaming) {
        const engine_request *q = report(r);
        learn_moving(r, q);
        if (r->is_truncated)
            tell_truncated(r);
        else if (r->came.n)
            remote_held_set(&r->held, r->sent.ids, (uint32_t)r->sent.n, r->came.ids, (uint32_t)r->came.n);
        if (q && q->computed > 0) r->n_computed += (uint64_t)q->computed;
        r->n_computed += r->came.n;
        remote_http_stop(r->endpoint->http);
    }
    r->is_streaming = r->has_ended = r->is_cut = r->is_done = false;
    r->came.n = r->taken = r->withheld.n = 0;
    base_buf_clear(&r->late);
    remote_sse_free(&r->sse);
}

static const int32_t *remote_ids(const engine *e, uint32_t *ret_n)
{
    *ret_n = (uint32_t)as_remote(e)->ids.n;
    return as_remote(e)->ids.ids;
}

static int remote_append(engine *e, const kv_segment *segment, const int32_t *ids, uint32_t n, base_err *err)
{
    remote *r = as_remote(e);
    if (n > r->n_ctx || n_active(r) > r->n_ctx - n || r->ids.n > INT32_MAX - n)
        return base_fail(err, BASE_E_LIMIT,
            "the endpoint's context ends at %u tokens; /compact starts a smaller session", r->n_ctx);
    int rc = remote_vocab_learn(r->endpoint->vocab, ids, n, err); /* of a log they may be news */
    if (rc) return rc;
    close_stream(r);
    for (uint32_t i = 0; i < n; i++) add_id(r, ids[i]);
    return 0;
}

static int remote_truncate(engine *e, uint32_t n, base_err *err)
{
    remote *r = as_remote(e);
    if (n > r->ids.n) return base_fail(err, BASE_E_USAGE, "cannot cut %zu tokens back to %u", r->ids.n, n);
    close_stream(r);
    cut_back(r, n);
    return 0;
}

static int remote_restart(engine *e, const char *row_file, base_err *err)
{
    remote *r = as_remote(e);
    close_stream(r);
    cut_back(r, 0);
    return 0;
}

static int remote_set_active(engine *e, uint32_t from, uint32_t to, bool active, base_err *err)
{
    remote *r = as_remote(e);
    if (from >= to || to > r->ids.n)
        return base_fail(
            err, BASE_E_USAGE, "tokens %u to %u are not in this session of %zu", from, to, r->ids.n);
    close_stream(r);
    for (uint32_t i = from; i < to; i++) {
        r->n_out -= r->out[i];
        r->out[i] = !active;
        r->n_out += r->out[i];
    }
    return 0;
}

static bool remote_is_active(const engine *e, uint32_t index)
{
    return !as_remote(e)->out[index];
}

/* What the engine published so far. */
static const remote_blocks *heard_blocks(const remote *r)
{
    const remote_blocks *blocks = r->endpoint->events ? remote_events_blocks(r->endpoint->events) : NULL;
    return blocks && remote_blocks_has_any(blocks) ? blocks : NULL;
}

/* held: what it should find by what it was sent; what it published says more, or that this is gone. */
static uint32_t found_by_blocks(const remote_blocks *blocks, const int32_t *ids, uint32_t n, uint32_t held)
{
    remote_block_counts counts;
    if (!blocks) return held;
    remote_blocks_count(blocks, ids, n, 0, &counts, NULL);
    return counts.found > held || counts.ends_in_gone ? counts.found : held;
}

static uint32_t remote_to_compute(const engine *e, const bool *left_out, bool *ret_at_most)
{
    const remote *r = as_remote(e);
    model_ids ids = {0};
    bool has_cut = r->n_out > 0;
    for (size_t i = 0; i < r->ids.n && !has_cut && left_out; i++) has_cut = left_out[i];
    put_active(r, left_out, &ids);
    const uint32_t n = (uint32_t)ids.n, reuse = reuse_of(r, has_cut);
    const uint32_t held = remote_held_find(&r->held, ids.ids, n, r->moves == MOVES ? reuse : 0);
    const uint32_t found = found_by_blocks(heard_blocks(r), ids.ids, n, held);
    *ret_at_most =
        reuse && r->moves == MOVES_UNKNOWN && remote_held_find(&r->held, ids.ids, n, reuse) > found;
    model_ids_free(&ids);
    return n - found;
}

static void remote_set_budget(engine *e, uint32_t n_tokens)
{
    as_remote(e)->budget = n_tokens;
}

static int remote_fork(engine *e, base_err *err)
{
    remote *r = as_remote(e);
    close_stream(r);
    r->trunk.n = 0;
    add_all(&r->ids, &r->trunk);
    r->is_branch = true;
    return 0;
}

static void remote_unfork(engine *e)
{
    remote *r = as_remote(e);
    if (!r->is_branch) return;
    close_stream(r);
    /* A branch appends behind the trunk, or gives up a part of it: what is out of it stays out. */
    const size_t n_same = r->ids.n < r->trunk.n ? r->ids.n : r->trunk.n;
    cut_back(r, n_same);
    for (size_t i = n_same; i < r->trunk.n; i++) add_id(r, r->trunk.ids[i]);
    r->is_branch = false;
}

/* --- looking -------------------------------------------------------------------------------------------- */

static void remote_info(const engine *e, engine_info *ret)
{
    const remote *r = as_remote(e);
    const remote_endpoint *p = r->endpoint;
    *ret = (engine_info){.model = p->model,
        .model_hash = r->hash,
        .quantisation = p->format ? p->format : "not told",
        .policy = "spans",
        .backend = p->kind,
        .notice = r->n_notices ? r->notices[r->n_notices - 1] : NULL,
        .tools = p->tools,
        .is_elsewhere = !remote_http_address(p->http)->is_loopback,
        .strong = agent_ability_is_strong(&(agent_ability){p->tools, p->n_params, 0}),
        .n_ctx = r->n_ctx,
        .model_n_ctx = p->n_train ? p->n_train : r->n_ctx,
        .n_layer = 1,
        .n_lanes = 1,
        .n_vocab = INT32_MAX,
        .sampling = r->sampling};
}

static void remote_stats(const engine *e, kv_stats *ret)
{
    const remote *r = as_remote(e);
    const uint32_t active = n_active(r);
    *ret = (kv_stats){.n_tokens = (uint32_t)r->ids.n,
        .n_ctx = r->n_ctx + r->n_out,
        .n_lanes = 1,
        .active = active,
        .active_min = active,
        .active_max = active,
        .host = r->n_out,
        .budget = r->budget,
        .endless = r->budget > 0,
        .reused = (uint32_t)r->ids.n, /* none is computed before it is asked for */
        .computed = (uint32_t)r->n_computed};
}

/* Reads what the engine published; a message that cannot be read is told of once. */
static const remote_blocks *hear_blocks(remote *r, int wait_ms)
{
    base_err why = {0};
    if (!r->endpoint->events) return NULL;
    if (remote_events_take(r->endpoint->events, wait_ms, &why)) {
        base_buf text = {0};
        base_buf_printf(&text, "what the engine publishes of its cache cannot be read: %.200s", why.msg);
        set_notice(r, text.data);
        base_buf_free(&text);
    }
    return heard_blocks(r);
}

/* Where the blocks of the sequence are now. */
static void put_blocks(remote *r, engine_request *ret)
{
    enum { PUBLISHED_MS = 20 }; /* a step's blocks are published behind its tokens */
    const remote_blocks *blocks = hear_blocks(r, PUBLISHED_MS);
    if (!blocks) return;
    remote_block_counts counts;
    model_ids ids = {0};
    put_active(r, NULL, &ids);
    base_grow(&r->places, &r->cap_places, r->ids.n + 1, sizeof *r->places);
    remote_blocks_count(
        blocks, ids.ids, (uint32_t)ids.n, ret->cached > 0 ? (uint32_t)ret->cached : 0, &counts, r->places);
    for (size_t i = r->ids.n, k = ids.n; i-- > 0;) /* from what is sent to what is there */
        r->places[i] = r->out[i] ? ENGINE_NOWHERE : r->places[--k];
    model_ids_free(&ids);
    ret->places = r->places;
    ret->n_places = (uint32_t)r->ids.n;
}

static bool remote_take_request(engine *e, engine_request *ret)
{
    remote *r = as_remote(e);
    if (!r->n_reports) return false;
    *ret = r->reports[0];
    if (r->n_reports == 1) put_blocks(r, ret);
    memmove(r->reports, r->reports + 1, --r->n_reports * sizeof *r->reports);
    return true;
}

/* --- asking --------------------------------------------------------------------------------------------- */

/*
 * Once, in front of the first request: whether a cut costs anything is known before one is chosen. Where that fails,
 * the first request behind a cut tells (learn_moving).
 */
static void probe_moving(remote *r)
{
    remote_reuse reuse;
    model_ids held = {0};
    if (r->has_probed) return;
    r->has_probed = true;
    if (!remote_endpoint_probe_reuse(r->endpoint, &reuse, &held, NULL)) {
        r->moves = reuse.works ? MOVES : MOVES_NOT;
        remote_held_set(&r->held, held.ids, (uint32_t)held.n, NULL, 0);
    }
    model_ids_free(&held);
}

static void begin_report(remote *r)
{
    if (r->n_reports == MOST_REPORTS)
        memmove(r->reports, r->reports + 1, --r->n_reports * sizeof *r->reports);
    const uint32_t n = (uint32_t)r->sent.n, reuse = reuse_of(r, r->n_out > 0);
    r->found_moved = remote_held_find(&r->held, r->sent.ids, n, reuse);
    r->found_unmoved = remote_held_find(&r->held, r->sent.ids, n, 0);
    const uint32_t held = remote_held_ask(&r->held, r->sent.ids, n, r->moves == MOVES ? reuse : 0),
                   predicted = found_by_blocks(hear_blocks(r, 0), r->sent.ids, n, held);
    r->reports[r->n_reports++] =
        (engine_request){.sent = n, .predicted = predicted, .cached = -1, .computed = -1};
}

/* Inside of a call the grammar, which begins at a trigger, has nothing to say. */
static bool is_inside_call(const remote *r)
{
    static const char *const marks[] = {"<tools>", "<tool_call>", "{\"name\""};
    base_buf text = {0};
    base_buf_puts(&text, "");
    for (size_t i = r->answer_from; i < r->ids.n; i++) {
        size_t n;
        const char *piece = remote_vocab_piece(r->endpoint->vocab, r->ids.ids[i], &n);
        if (piece) base_buf_add(&text, piece, n);
    }
    bool inside = false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) inside = inside || strstr(text.data, marks[i]);
    base_buf_free(&text);
    return inside;
}

static uint32_t most_tokens(const remote *r)
{
    const size_t room = r->n_ctx - n_active(r);
    const uint32_t most = r->hold && r->hold->n_tokens < r->max_answer ? r->hold->n_tokens : r->max_answer;
    return (uint32_t)(room < most ? room : most);
}

static int send_request(remote *r, bool with_grammar, long *status, base_err *err)
{
    base_buf body = {0}, grammar = {0};
    /* Where a schema is all that an engine takes, nothing else could be written: no call. */
    const bool with_schema = r->hold && !r->hold->calls && !with_grammar && !r->is_grammar_off;
    if (with_grammar)
        remote_gbnf_put_answer(&(remote_gbnf_answer){.style = r->endpoint->tools,
                                   .rules = &r->grammar,
                                   .is_lazy = r->endpoint->wire->grammar == REMOTE_GRAMMAR_LAZY,
                                   .schema = r->hold ? r->hold->schema : NULL,
                                   .calls = r->hold && r->hold->calls},
            &grammar);
    r->endpoint->wire->put_request(&(remote_request){.model = r->endpoint->model,
                                       .ids = r->sent.ids,
                                       .n_ids = (uint32_t)r->sent.n,
                                       .reuse = reuse_of(r, r->n_out > 0),
                                       .max_tokens = most_tokens(r),
                                       .sampling = r->sampling,
                                       .grammar = grammar.data,
                                       .triggers = r->hold ? NULL : remote_gbnf_triggers(r->endpoint->tools),
                                       .schema = with_schema ? r->hold->text : NULL},
        &body);
    base_buf_free(&grammar);
    int rc = remote_http_send(r->endpoint->http, r->endpoint->wire->complete, body.data, status, err);
    base_buf_free(&body);
    return rc;
}

/* Told once, and none is sent from now on. */
static void refuse_grammar(remote *r, const base_err *why)
{
    base_buf text = {0};
    base_buf_printf(
        &text, "the endpoint takes no grammar (%.200s): calls are read as the model writes them", why->msg);
    set_notice(r, text.data);
    base_buf_free(&text);
    r->is_grammar_refused = true;
}

static int open_stream(remote *r, base_err *err)
{
    close_stream(r);
    if (r->is_other_model)
        return base_fail(err, BASE_E_STATE,
            "the endpoint serves another model than this session's %.80s; ask it for that one again, or "
            "start a "
            "new session",
            r->endpoint->model);
    if (n_active(r) >= r->n_ctx)
        return base_fail(err, BASE_E_LIMIT, "the context of %u tokens is full", r->n_ctx);
    put_active(r, NULL, &r->sent);
    long status = 0;
    base_err why = {0};
    bool with_grammar = r->grammar.len && !r->is_grammar_refused && !r->is_grammar_off &&
                        (r->hold ? r->ids.n == r->answer_from : !is_inside_call(r));
    probe_moving(r);
    begin_report(r);
    r->begun_ns = base_clock_ns();
    int rc = send_request(r, with_grammar, &status, &why);
    if (rc && with_grammar && remote_endpoint_blames_grammar(status, &why)) {
        refuse_grammar(r, &why);
        rc = send_request(r, false, &status, &why);
    }
    if (rc) {
        r->n_reports--;
        if (status == 400 && (strstr(why.msg, "context size") || strstr(why.msg, "context length")))
            rc = base_fail(err, BASE_E_LIMIT, "%s; /compact starts a smaller session", why.msg);
        else if (err)
            *err = why;
        return rc;
    }
    r->is_streaming = true;
    r->n_told = r->n_prefilled = 0;
    r->n_text = 0;
    r->is_truncated = false;
    return 0;
}

/* --- reading -------------------------------------------------------------------------------------------- */

static void take_numbers(remote *r, const remote_piece *p)
{
    engine_request *q = report(r);
    if (p->total > 0 && p->done >= 0 && r->base.observer.prefill && p->total <= UINT32_MAX) {
        const int64_t cached = p->cached > 0 && p->cached <= p->done ? p->cached : 0;
        if (p->total > cached)
            r->base.observer.prefill(
                r->base.observer.user, (uint32_t)(p->done - cached), (uint32_t)(p->total - cached));
    }
    if (!q) return;
    if (p->cached >= 0) q->cached = p->cached;
    if (p->computed >= 0) q->computed = p->computed;
    if (q->cached >= 0 && q->computed < 0 && q->cached <= q->sent) q->computed = q->sent - q->cached;
}

/* Ids whose text came in one piece: the engine's tokenizer says which bytes are whose, where it agrees. */
static int learn_group(remote *r, const int32_t *ids, size_t n, base_str text, base_err *err)
{
    remote_vocab *v = r->endpoint->vocab;
    model_ids again = {0};
    if (n == 1 && text.len) {
        if (!remote_vocab_knows(v, ids[0])) remote_vocab_set(v, ids[0], text.ptr, text.len);
        return 0;
    }
    bool known = true;
    for (size_t i = 0; i < n; i++) known = known && remote_vocab_knows(v, ids[i]);
    if (known) return 0;
    if (!text.len) return remote_vocab_learn(v, ids, (uint32_t)n, err);
    int rc = remote_vocab_encode(v, text.ptr, text.len, false, &again, err);
    for (size_t i = 0; i < n && !rc; i++)
        if (!remote_vocab_knows(v, ids[i])) remote_vocab_set(v, ids[i], text.ptr, i + 1 < n ? 0 : text.len);
    model_ids_free(&again);
    return rc;
}

/*
 * llama-server tells nothing of a token that ends inside of a letter, only of the one that completes it: the
 * ids between are those of the letter's text.
 */
static int recover_ids(remote *r, const remote_piece *p, base_err *err)
{
    return remote_vocab_encode(r->endpoint->vocab, p->text.ptr, p->text.len, false, &r->came, err);
}

/* Ids wait until the text has come that they are: it lags behind, by a half letter and more. */
static int take_late(remote *r, const remote_piece *p, base_err *err)
{
    remote_vocab *v = r->endpoint->vocab;
    const bool is_all = p->end != REMOTE_GOES_ON;
    size_t n = 0, n_text = 0;
    for (uint32_t i = 0; i < p->n_ids; i++) model_ids_add(&r->withheld, p->ids[i]);
    base_buf_puts(&r->late, "");
    base_buf_add(&r->late, p->text.ptr, p->text.len);
    if (!r->late.len && !is_all) return 0;
    int rc = remote_vocab_learn_text(
        v, r->withheld.ids, r->withheld.n, r->late.data, r->late.len, is_all, &n, &n_text, err);
    for (size_t i = 0; i < n && !rc; i++) {
        size_t len;
        const char *piece = remote_vocab_piece(v, r->withheld.ids[i], &len);
        if (piece && len && *piece == '<') rc = remote_vocab_judge(v, r->withheld.ids[i], err);
        model_ids_add(&r->came, r->withheld.ids[i]);
    }
    if (rc) return rc;
    memmove(r->withheld.ids, r->withheld.ids + n, (r->withheld.n - n) * sizeof *r->withheld.ids);
    r->withheld.n -= n;
    memmove(r->late.data, r->late.data + n_text, r->late.len - n_text);
    r->late.len -= n_text;
    return 0;
}

static int take_ids(remote *r, const remote_piece *p, base_err *err)
{
    remote_vocab *v = r->endpoint->vocab;
    int rc = 0;
    if (r->endpoint->wire->tells_no_pieces) return take_late(r, p, err);
    if (p->so_far >= 0) {
        const int64_t fresh = p->so_far - r->n_told;
        r->n_told = p->so_far;
        if (p->n_ids && fresh > p->n_ids && p->text.len) return recover_ids(r, p, err);
        if (p->n_ids) rc = learn_group(r, p->ids, p->n_ids, p->text, err);
        for (uint32_t i = 0; i < p->n_ids; i++) model_ids_add(&r->came, p->ids[i]);
        for (uint32_t i = 0; i < p->n_ids && !rc && !p->text.len; i++)
            rc = remote_vocab_judge(v, p->ids[i], err);
    } else { /* the text of several may come behind the last of them */
        for (uint32_t i = 0; i < p->n_ids; i++) model_ids_add(&r->withheld, p->ids[i]);
        if (r->withheld.n && (p->text.len || p->end != REMOTE_GOES_ON)) {
            rc = learn_group(r, r->withheld.ids, r->withheld.n, p->text, err);
            if (!rc && r->withheld.n == 1 && p->text.len && p->text.ptr[0] == '<')
                rc = remote_vocab_judge(v, r->withheld.ids[0], err);
            add_all(&r->withheld, &r->came);
            r->withheld.n = 0;
        }
    }
    return rc;
}

/* An event without a token, and without more of the prompt, is a sign of life and no more. */
static void note_progress(remote *r, const remote_piece *p, size_t n_before)
{
    const bool is_further = p->done > r->n_prefilled && p->done <= (int64_t)r->sent.n;
    if (is_further) r->n_prefilled = p->done;
    if (is_further || r->came.n + r->withheld.n > n_before) remote_http_progress(r->endpoint->http);
}

/* Of a piece that tells the answer from its beginning, what is new. */
static int keep_new(remote *r, remote_piece *p, base_err *err)
{
    if (!p->is_whole) return 0;
    const int64_t fresh = p->so_far > r->n_told ? p->so_far - r->n_told : 0;
    const size_t told = r->n_text < p->text.len ? r->n_text : p->text.len;
    if (fresh > p->n_ids)
        return base_fail(
            err, BASE_E_FORMAT, "the endpoint sent more than %d tokens at once", REMOTE_MOST_IDS);
    memmove(p->ids, p->ids + p->n_ids - fresh, (size_t)fresh * sizeof *p->ids);
    p->n_ids = (uint32_t)fresh;
    r->n_told += fresh;
    r->n_text += p->text.len - told;
    p->text = (base_str){p->text.ptr + told, p->text.len - told};
    p->so_far = -1;
    return 0;
}

static int on_event(void *user, const char *data, size_t n, base_err *err)
{
    remote *r = user;
    base_json_doc *doc = NULL;
    if (n == 6 && !memcmp(data, "[DONE]", 6)) {
        r->is_done = true;
        return 0;
    }
    if (base_json_parse(data, n, &doc, NULL))
        return base_fail(err, BASE_E_FORMAT, "the endpoint sent a piece of an answer that is no JSON");
    remote_piece *p = base_xcalloc(1, sizeof *p);
    int rc = r->endpoint->wire->read(base_json_root(doc), p, err);
    if (!rc) {
        const size_t n_before = r->came.n + r->withheld.n;
        take_numbers(r, p);
        rc = keep_new(r, p, err);
        if (!rc) rc = take_ids(r, p, err);
        note_progress(r, p, n_before);
        r->is_truncated = r->is_truncated || p->is_truncated;
        if (p->model && *p->model && strcmp(p->model, r->endpoint->model)) r->is_other_model = true;
        if (p->end != REMOTE_GOES_ON) {
            r->has_ended = true;
            r->is_cut = p->end == REMOTE_AT_LIMIT;
        }
    }
    free(p);
    base_json_free(doc);
    return rc;
}

/* More of the stream; the next tokens may be among it. */
static int read_more(remote *r, base_err *err)
{
    base_buf bytes = {0};
    bool ended = false;
    base_err why = {0};
    int broken = remote_http_read(r->endpoint->http, &bytes, &ended, &why);
    int rc = bytes.len ? remote_sse_feed(&r->sse, bytes.data, bytes.len, on_event, r, err) : 0;
    base_buf_free(&bytes);
    if (rc || broken) {
        if (!rc && err) *err = why;
        return rc ? rc : broken;
    }
    if (!ended || r->has_ended) return 0;
    rc = remote_sse_end(&r->sse, on_event, r, err);
    if (!rc && !r->has_ended) rc = base_fail(err, BASE_E_IO, "the endpoint's answer broke off");
    return rc;
}

/*
 * A stream that failed is asked for again behind what came of it, as long as that gets on; an endpoint that
 * was started again in between has to have the same model.
 */
static int mend(remote *r, const base_err *why, base_err *err)
{
    const bool may_be_grammar =
        r->grammar.len && !r->is_grammar_off && why->code == BASE_E_IO && r->came.n == r->taken;
    close_stream(r);
    if (++r->breaks > MOST_BREAKS || why->code == BASE_E_LIMIT || why->code == BASE_E_CANCELLED ||
        why->code == BASE_E_STATE) {
        if (err) *err = *why;
        return why->code;
    }
    if (may_be_grammar && !r->is_grammar_refused && remote_endpoint_blames_grammar(0, why)) {
        refuse_grammar(r, why);
        return open_stream(r, err);
    }
    if (may_be_grammar && r->breaks > 1) r->is_grammar_off = true; /* some engines fail on what it allows */
    bool same = true;
    int rc = remote_endpoint_check(r->endpoint, &same, err);
    if (rc) return rc;
    r->is_other_model = r->is_other_model || !same;
    base_buf text = {0};
    base_buf_printf(&text, "the answer broke off (%.200s) and is asked for again behind what came", why->msg);
    set_notice(r, text.data);
    base_buf_free(&text);
    return open_stream(r, err);
}

/* Until a token is there, or the answer's end. */
static int await_token(remote *r, base_err *err)
{
    base_err why = {0};
    int rc = r->is_streaming ? 0 : open_stream(r, err);
    while (!rc && r->taken == r->came.n) {
        if (r->has_ended && r->is_cut) {
            if (n_active(r) >= r->n_ctx)
                return base_fail(err, BASE_E_LIMIT, "the context of %u tokens is full", r->n_ctx);
            rc = open_stream(r, err);
        } else if (r->has_ended) {
            return 0;
        } else if (read_more(r, &why)) {
            if (r->taken < r->came.n) return 0; /* these first; the failure comes again */
            rc = mend(r, &why, err);
        }
    }
    return rc;
}

static bool holds(const model_ids *ids, size_t n, int32_t id)
{
    for (size_t i = 0; i < n && i < ids->n; i++)
        if (ids->ids[i] == id) return true;
    return false;
}

/* A token that no answer holds: what stood behind it would read as somebody else's message in every further request. */
static bool begins_message(const remote *r, int32_t id)
{
    const remote_endpoint *p = r->endpoint;
    bool begins = holds(&p->start, p->start.n, id);
    for (int role = 0; role < REMOTE_N_ROLES; role++) begins = begins || holds(&p->begin[role], 1, id);
    return begins && remote_vocab_is_control(p->vocab, id);
}

/* What vLLM found in its cache stands behind the answer, and nowhere before. */
static void read_usage(remote *r, uint32_t patience_ms)
{
    const engine_request *q = report(r);
    if (!r->is_streaming || !q || q->cached >= 0 || r->tells_no_cache) return;
    remote_endpoint_read_usage(r->endpoint, &r->sse, patience_ms, on_event, r, &r->is_done);
    r->tells_no_cache = r->is_done && q->cached < 0;
}

static int remote_next(engine *e, kv_origin origin, uint32_t turn, int32_t *ret_id, bool *ret_end,
    int32_t *mask_wanted, base_err *err)
{
    remote *r = as_remote(e);
    const int32_t end = r->endpoint->end[MODEL_ROLE_ASSISTANT].ids[0];
    if (mask_wanted) *mask_wanted = -1;
    if (r->cancel && atomic_load(r->cancel)) {
        close_stream(r);
        return base_fail(err, BASE_E_CANCELLED, "cancelled");
    }
    const bool first = !r->is_streaming;
    int rc = await_token(r, err);
    if (rc) {
        close_stream(r);
        return rc;
    }
    if (first && report(r)) report(r)->wait_ns = base_clock_ns() - r->begun_ns;
    const bool has_token = r->taken < r->came.n;
    const int32_t came = has_token ? r->came.ids[r->taken++] : end;
    const bool is_over = begins_message(r, came);
    const int32_t id = is_over ? end : came;
    *ret_id = id;
    *ret_end = !has_token || id == end ||
               (r->has_ended && !r->is_cut && r->taken == r->came.n &&
                   remote_vocab_is_control(r->endpoint->vocab, id));
    r->breaks = 0;
    add_id(r, id);
    if (*ret_end) {
        /* The last numbers come behind the last token. */
        base_err why = {0};
        while (r->is_streaming && !r->has_ended && !is_over && !read_more(r, &why)) {
        }
        if (!is_over) read_usage(r, REMOTE_USAGE_MS);
        close_stream(r);
    }
    return 0;
}

static void remote_answer_begins(engine *e)
{
    remote *r = as_remote(e);
    r->is_grammar_off = false;
    r->hold = NULL;
    r->answer_from = (uint32_t)r->ids.n;
    r->breaks = 0;
}

/* A grammar begins with the answer: of one that goes on behind a break the check is all that is left. */
static int remote_answer_held(engine *e, engine_hold *hold, base_err *err)
{
    as_remote(e)->hold = hold;
    return 0;
}

static void remote_answer_over(engine *e)
{
    remote *r = as_remote(e);
    const bool is_cancelled = r->cancel && atomic_load(r->cancel);
    if (!is_cancelled) read_usage(r, REMOTE_USAGE_CUT_MS); /* a call was over before the answer's end */
    close_stream(r);
    r->hold = NULL;
}

static void remote_set_sampling(engine *e, const model_sampling *s)
{
    remote *r = as_remote(e);
    if (memcmp(&r->sampling, s, sizeof *s)) close_stream(r);
    r->sampling = *s;
}

static int remote_set_tools(
    engine *e, const model_grammar_tool *tools, uint32_t n, const char *const *paths, base_err *err)
{
    remote *r = as_remote(e);
    base_buf_clear(&r->grammar);
    remote_gbnf_put(r->endpoint->tools, tools, n, paths, &r->grammar);
    return 0;
}

/* --- opening -------------------------------------------------------------------------------------------- */

static void remote_close(engine *e)
{
    remote *r = as_remote(e);
    if (!r) return;
    close_stream(r);
    remote_endpoint_close(r->endpoint);
    model_ids_free(&r->ids);
    model_ids_free(&r->trunk);
    model_ids_free(&r->sent);
    free(r->out);
    free(r->places);
    model_ids_free(&r->came);
    model_ids_free(&r->withheld);
    base_buf_free(&r->late);
    remote_held_free(&r->held);
    base_buf_free(&r->grammar);
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
    .ids = remote_ids,
    .append = remote_append,
    .truncate = remote_truncate,
    .restart = remote_restart,
    .set_sampling = remote_set_sampling,
    .answer_begins = remote_answer_begins,
    .answer_held = remote_answer_held,
    .answer_over = remote_answer_over,
    .next = remote_next,
    .take_request = remote_take_request,
    .set_tools = remote_set_tools,
    .fork = remote_fork,
    .unfork = remote_unfork,
    .set_active = remote_set_active,
    .is_active = remote_is_active,
    .to_compute = remote_to_compute,
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
    r->base.can = ENGINE_IDS | ENGINE_BRANCH | ENGINE_SPANS | (endpoint->wire->grammar ? ENGINE_GRAMMAR : 0);
    r->endpoint = endpoint;
    r->cancel = options->cancel;
    r->sampling = options->sampling;
    r->n_ctx = n_ctx_of(endpoint, options);
    r->max_answer = options->max_answer ? options->max_answer : ANSWER_AT_ONCE;
    r->hash = make_hash(endpoint);
    r->held = (remote_held){.keeps_prompts = endpoint->wire == &remote_wire_llama,
        .keeps_blocks = endpoint->wire != &remote_wire_llama,
        .block = endpoint->block};
    base_buf text = {0};
    remote_endpoint_describe(endpoint, &text);
    if (endpoint->differs)
        base_buf_printf(&text,
            "; its template writes a history differently (%s): kvist keeps to what was sent",
            endpoint->differs);
    set_notice(r, text.data);
    base_buf_free(&text);
    return &r->base;
}

/* Why opening takes long, where a model's loading would be shown. */
static void on_wait(void *user, const char *sentence)
{
    const engine_options *o = user;
    if (o->model.progress) o->model.progress(o->model.user, 0, sentence);
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
    remote_http_set_waits(e->http, NULL, NULL); /* the options are gone soon */
    kv_limit limit = {0};
    if (options->budget && e->wire->has_ids)
        rc = options->budget(options->budget_user, n_ctx_of(e, options), 0, (kv_limit){0}, &limit, err);
    if (rc) {
        remote_endpoint_close(e);
        return rc;
    }
    if (why_not) *why_not = (base_err){.code = BASE_E_UNSUPPORTED, .msg = "an endpoint keeps no session"};
    *ret = e->wire->has_ids ? open_ids(e, options) : engine_remote_chat_open(e, options);
    if (e->wire->has_ids) remote_set_budget(*ret, limit.rows);
    return 0;
}
