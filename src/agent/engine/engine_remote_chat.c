/*
 * An engine across HTTP that takes messages only (chat completions). Ids are stand-ins (standin.h); every
 * request renders the messages again on the other side, so what its cache finds of them is its own affair.
 * Tool calls that come in the endpoint's own form become the text that the lenient parser reads, in their order: the first
 * as it comes, the others, whose parts may come by turns with its own, behind it. A thought stands in the answer between
 * <think> tags and is not sent back. Engine thread only.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/engine/ability.h"
#include "agent/engine/engine_remote.h"
#include "agent/engine/standin.h"
#include "base/clock.h"
#include "base/mem.h"
#include "remote/gbnf.h"
#include "remote/sse.h"

enum {
    GUESSED_CTX = 32768,
    ANSWER_AT_ONCE = 4096 /* tokens that are asked for where nothing else is told */
};

/* A call behind the first, gathered until the answer's end. */
typedef struct later_call {
    int64_t index;
    base_buf text;
} later_call;

typedef struct chat {
    engine base;
    remote_endpoint *endpoint;
    const atomic_bool *cancel;
    model_sampling sampling;
    char *notice, *hash;
    base_buf grammar;  /* rules of calls, where the endpoint takes a grammar */
    char *refused;     /* what it said of one; NULL: nothing */
    engine_hold *hold; /* this answer's; NULL: it is free */
    uint32_t n_ctx, max_answer;
    int32_t *ids; /* stand-ins */
    bool *active; /* [n] */
    size_t cap_ids, cap_active;
    uint32_t n;

    bool is_streaming, has_ended, is_done; /* is_done: nothing comes behind it */
    remote_sse sse;
    model_ids came;
    size_t taken;
    bool in_thought, in_call, is_cut; /* is_cut: the endpoint ended the answer, not the model */
    int64_t first_index;              /* of the call that is told as it comes, with in_call */
    later_call *later;
    size_t n_later, cap_later;
    bool tells_no_usage; /* an answer came to its very end without it */
    uint64_t begun_ns;
    engine_request report;
    bool has_report;
    uint32_t n_sent;
    uint64_t n_computed;
} chat;

static chat *as_chat(const engine *e)
{
    return (chat *)(uintptr_t)e;
}

/* --- the sequence --------------------------------------------------------------------------------------- */

static void forget_calls(chat *c)
{
    for (size_t i = 0; i < c->n_later; i++) base_buf_free(&c->later[i].text);
    c->n_later = 0;
    c->in_call = false;
}

static void close_stream(chat *c)
{
    forget_calls(c);
    if (c->is_streaming) remote_http_stop(c->endpoint->http);
    c->is_streaming = c->has_ended = c->is_done = c->in_thought = false;
    c->came.n = c->taken = 0;
    remote_sse_free(&c->sse);
}

static void add(chat *c, int32_t id)
{
    base_grow(&c->ids, &c->cap_ids, c->n + 1, sizeof *c->ids);
    base_grow(&c->active, &c->cap_active, c->n + 1, sizeof *c->active);
    c->ids[c->n] = id;
    c->active[c->n++] = true;
}

static const int32_t *chat_ids(const engine *e, uint32_t *ret_n)
{
    *ret_n = as_chat(e)->n;
    return as_chat(e)->ids;
}

static int chat_append(engine *e, const kv_segment *segment, const int32_t *ids, uint32_t n, base_err *err)
{
    chat *c = as_chat(e);
    if (n > c->n_ctx || c->n > c->n_ctx - n) {
        const bool is_fixed =
            segment->origin == KV_ORIGIN_SYSTEM || segment->origin == KV_ORIGIN_INSTRUCTIONS;
        return remote_endpoint_fail_full(is_fixed, n, c->n_ctx, err);
    }
    close_stream(c);
    for (uint32_t i = 0; i < n; i++) add(c, ids[i]);
    return 0;
}

static int chat_truncate(engine *e, uint32_t n, base_err *err)
{
    chat *c = as_chat(e);
    if (n > c->n) return base_fail(err, BASE_E_USAGE, "cannot cut %u tokens back to %u", c->n, n);
    close_stream(c);
    c->n = n;
    return 0;
}

static int chat_restart(engine *e, const char *row_file, base_err *err)
{
    chat *c = as_chat(e);
    close_stream(c);
    c->n = c->n_sent = 0;
    return 0;
}

static int chat_set_active(engine *e, uint32_t from, uint32_t to, bool active, base_err *err)
{
    chat *c = as_chat(e);
    if (from >= to || to > c->n)
        return base_fail(err, BASE_E_USAGE, "tokens %u to %u are not in this session of %u", from, to, c->n);
    memset(c->active + from, active, to - from);
    return 0;
}

static bool chat_is_active(const engine *e, uint32_t index)
{
    return as_chat(e)->active[index];
}

/* --- looking -------------------------------------------------------------------------------------------- */

static void chat_info(const engine *e, engine_info *ret)
{
    const chat *c = as_chat(e);
    const remote_endpoint *p = c->endpoint;
    *ret = (engine_info){.model = p->model,
        .model_hash = c->hash,
        .quantisation = "not told",
        .policy = "spans",
        .backend = p->kind,
        .notice = c->refused ? c->refused : c->notice,
        .tools = MODEL_TOOLS_HERMES,
        .is_elsewhere = !remote_http_address(p->http)->is_loopback,
        .server = remote_http_address(p->http)->origin,
        .strong = agent_ability_is_strong(&(agent_ability){MODEL_TOOLS_HERMES, p->n_params, 0}),
        .n_ctx = c->n_ctx,
        .model_n_ctx = p->n_train ? p->n_train : c->n_ctx,
        .n_layer = 1,
        .n_lanes = 1,
        .n_all_lanes = 1,
        .n_vocab = STANDIN_N,
        .sampling = c->sampling};
}

static void chat_stats(const engine *e, kv_stats *ret)
{
    const chat *c = as_chat(e);
    *ret = (kv_stats){.n_tokens = c->n,
        .n_ctx = c->n_ctx,
        .n_lanes = 1,
        .n_all_lanes = 1,
        .reused = c->n_sent < c->n ? c->n_sent : c->n,
        .computed = (uint32_t)c->n_computed};
    for (uint32_t i = 0; i < c->n; i++) ret->active += c->active[i];
    ret->active_min = ret->active_max = ret->active;
    ret->host = c->n - ret->active;
}

static bool chat_take_request(engine *e, engine_request *ret)
{
    chat *c = as_chat(e);
    const bool there = c->has_report;
    *ret = c->report;
    c->has_report = false;
    return there;
}

/* --- asking --------------------------------------------------------------------------------------------- */

typedef struct messages {
    remote_message *all;
    base_buf *texts;
    size_t n, n_made, cap, cap_texts; /* n: of those made, what is sent */
} messages;

static void begin_message(messages *m, model_role role)
{
    base_grow(&m->all, &m->cap, m->n + 1, sizeof *m->all);
    base_grow(&m->texts, &m->cap_texts, m->n + 1, sizeof *m->texts);
    m->all[m->n] = (remote_message){.role = role};
    m->texts[m->n++] = (base_buf){0};
    m->n_made = m->n;
}

/* An answer without its thought, which the model is not to read again. */
static void drop_thought(base_buf *text)
{
    const char *end = text->data ? strstr(text->data, "</think>") : NULL;
    if (!end || strncmp(text->data, "<think>", 7)) return;
    end += strlen("</think>");
    end += strspn(end, "\n");
    const size_t from = (size_t)(end - text->data);
    memmove(text->data, end, text->len - from + 1);
    text->len -= from;
}

static void take_messages(const chat *c, messages *m)
{
    for (uint32_t i = 0; i < c->n; i++) {
        size_t n = 0;
        const int32_t id = c->ids[i];
        if (id >= STANDIN_CONTROL && id < STANDIN_CONTROL + REMOTE_N_ROLES) {
            begin_message(m, (model_role)(id - STANDIN_CONTROL));
        } else if (id != STANDIN_END && c->active[i] && m->n) {
            const char *piece = standin_piece(&c->base, id, &n);
            base_buf_add(&m->texts[m->n - 1], piece, n);
        }
    }
    /* What opens the answer is no message; one that was begun is asked to be gone on with. */
    if (m->n && m->all[m->n - 1].role == MODEL_ROLE_ASSISTANT && !m->texts[m->n - 1].len) m->n--;
    for (size_t i = 0; i < m->n; i++) {
        if (m->all[i].role == MODEL_ROLE_ASSISTANT) drop_thought(&m->texts[i]);
        m->all[i].text = m->texts[i].data ? m->texts[i].data : "";
        m->all[i].n = m->texts[i].len;
    }
}

static void messages_free(messages *m)
{
    for (size_t i = 0; i < m->n_made; i++) base_buf_free(&m->texts[i]);
    free(m->texts);
    free(m->all);
}

static bool has_grammar(const chat *c)
{
    return c->grammar.len && !c->refused;
}

/* Told once, and none is sent from now on. */
static void refuse_grammar(chat *c, const base_err *why)
{
    base_buf text = {0};
    base_buf_printf(
        &text, "the endpoint takes no grammar (%.200s): calls are read as the model writes them", why->msg);
    c->refused = base_buf_take(&text);
}

static int send_request(chat *c, long *status, base_err *err)
{
    messages m = {0};
    base_buf body = {0}, grammar = {0};
    const bool with_grammar = has_grammar(c);
    uint32_t room = c->n_ctx - c->n;
    if (c->hold && c->hold->n_tokens < room) room = c->hold->n_tokens;
    take_messages(c, &m);
    /* One that goes on behind a call's begin is free: the grammar would begin there. */
    if (with_grammar)
        remote_gbnf_put_answer(&(remote_gbnf_answer){.style = MODEL_TOOLS_HERMES,
                                   .rules = &c->grammar,
                                   .schema = c->hold ? c->hold->schema : NULL,
                                   .calls = c->hold && c->hold->calls},
            &grammar);
    c->endpoint->wire->put_request(
        &(remote_request){.model = c->endpoint->model,
            .messages = m.all,
            .n_messages = (uint32_t)m.n,
            .max_tokens = room < c->max_answer ? room : c->max_answer,
            .sampling = c->sampling,
            .grammar = grammar.data,
            .schema = c->hold && !c->hold->calls && !with_grammar ? c->hold->text : NULL},
        &body);
    messages_free(&m);
    base_buf_free(&grammar);
    int rc = remote_http_send(c->endpoint->http, c->endpoint->wire->complete, body.data, status, err);
    base_buf_free(&body);
    return rc;
}

static int open_stream(chat *c, base_err *err)
{
    long status = 0;
    base_err why = {0};
    close_stream(c);
    c->begun_ns = base_clock_ns();
    c->report = (engine_request){.sent = c->n, .predicted = 0, .cached = -1, .computed = -1};
    c->has_report = true;
    if (c->base.observer.prefill) c->base.observer.prefill(c->base.observer.user, 0, c->n);
    int rc = send_request(c, &status, &why);
    if (rc && has_grammar(c) && remote_endpoint_blames_grammar(status, &why)) {
        refuse_grammar(c, &why);
        rc = send_request(c, &status, &why);
    }
    if (rc) rc = remote_endpoint_explain_length(status, &why);
    if (rc && err) *err = why;
    c->has_report = !rc;
    c->is_streaming = !rc;
    return rc;
}

/* --- reading -------------------------------------------------------------------------------------------- */

static void put_text(chat *c, const char *text, size_t n)
{
    standin_encode(&c->base, text, n, &c->came, NULL);
}

static void put_words(chat *c, const char *text)
{
    put_text(c, text, strlen(text));
}

static void put_call_begin(const base_str *name, base_buf *out)
{
    base_buf_puts(out, "\n<tool_call>\n{\"name\": ");
    base_json_put_str(out, name->ptr, name->len);
    base_buf_puts(out, ", \"arguments\": ");
}

/* The newest call of that index that is not the first one; NULL: there is none. */
static later_call *find_later(chat *c, int64_t index)
{
    for (size_t i = c->n_later; i-- > 0;)
        if (c->later[i].index == index) return &c->later[i];
    return NULL;
}

static void take_call(chat *c, const remote_call_part *part)
{
    base_buf begin = {0};
    if (part->name.len) put_call_begin(&part->name, &begin);
    if (begin.len && !c->in_call) {
        c->in_call = true;
        c->first_index = part->index;
        put_text(c, begin.data, begin.len);
    } else if (begin.len) { /* some endpoints give every call the same index */
        base_grow(&c->later, &c->cap_later, c->n_later + 1, sizeof *c->later);
        c->later[c->n_later++] = (later_call){.index = part->index};
        base_buf_add(&c->later[c->n_later - 1].text, begin.data, begin.len);
    }
    base_buf_free(&begin);
    if (!part->text.len || !c->in_call) return;
    later_call *later = find_later(c, part->index);
    if (later)
        base_buf_add(&later->text, part->text.ptr, part->text.len);
    else if (part->index == c->first_index)
        put_text(c, part->text.ptr, part->text.len);
}

/* Those behind the first stand in the order in which they began. */
static void end_calls(chat *c)
{
    if (c->in_call) put_words(c, "}\n</tool_call>");
    for (size_t i = 0; i < c->n_later; i++) {
        put_text(c, c->later[i].text.data, c->later[i].text.len);
        put_words(c, "}\n</tool_call>");
    }
    forget_calls(c);
}

static void take_piece(chat *c, const remote_piece *p)
{
    if (p->thought.len) {
        if (!c->in_thought) put_words(c, "<think>\n");
        c->in_thought = true;
        put_text(c, p->thought.ptr, p->thought.len);
    }
    if (c->in_thought && (p->text.len || p->n_calls || p->end != REMOTE_GOES_ON)) {
        put_words(c, "\n</think>\n\n");
        c->in_thought = false;
    }
    if (p->text.len) put_text(c, p->text.ptr, p->text.len);
    for (uint32_t i = 0; i < p->n_calls; i++) take_call(c, &p->calls[i]);
    if (p->end != REMOTE_GOES_ON) {
        c->is_cut = p->end == REMOTE_AT_LIMIT;
        if (!c->is_cut) end_calls(c);
        c->has_ended = true;
    }
    if (p->cached >= 0) c->report.cached = p->cached;
    if (p->computed >= 0) c->report.computed = p->computed;
    if (p->sent >= 0 && p->sent <= UINT32_MAX) c->report.sent = (uint32_t)p->sent;
}

static int on_event(void *user, const char *data, size_t n, base_err *err)
{
    chat *c = user;
    base_json_doc *doc = NULL;
    if (n == 6 && !memcmp(data, "[DONE]", 6)) {
        c->is_cut = c->is_cut || (!c->has_ended && c->in_call); /* nobody said that the call is whole */
        c->has_ended = c->is_done = true;
        return 0;
    }
    if (base_json_parse(data, n, &doc, NULL))
        return base_fail(err, BASE_E_FORMAT, "the endpoint sent a piece of an answer that is no JSON");
    remote_piece *p = base_xcalloc(1, sizeof *p);
    int rc = c->endpoint->wire->read(base_json_root(doc), p, err);
    const size_t n_before = c->came.n;
    if (!rc) take_piece(c, p);
    if (c->came.n > n_before) remote_http_progress(c->endpoint->http);
    free(p);
    base_json_free(doc);
    return rc;
}

static int read_more(chat *c, base_err *err)
{
    base_buf bytes = {0};
    bool ended = false;
    base_err why = {0};
    int broken = remote_http_read(c->endpoint->http, &bytes, &ended, &why);
    int rc = bytes.len ? remote_sse_feed(&c->sse, bytes.data, bytes.len, on_event, c, err) : 0;
    base_buf_free(&bytes);
    if (!rc && broken && err) *err = why;
    if (rc || broken) return rc ? rc : broken;
    if (!ended || c->has_ended) return 0;
    rc = remote_sse_end(&c->sse, on_event, c, err);
    if (!rc && !c->has_ended)
        rc = base_fail(err, BASE_E_IO,
            "the endpoint's answer broke off; what came of it stands, and \"go on\" asks for the rest");
    return rc;
}

/* What the endpoint says that it cost stands behind the answer: waited for, and for longer where it writes on. */
static void end_request(chat *c)
{
    const bool is_cancelled = c->cancel && atomic_load(c->cancel);
    if (!c->is_streaming) return;
    if (!is_cancelled && !c->tells_no_usage && c->report.computed < 0) {
        remote_endpoint_read_usage(c->endpoint, &c->sse, c->has_ended ? REMOTE_USAGE_MS : REMOTE_USAGE_CUT_MS,
            on_event, c, &c->is_done);
        c->tells_no_usage = c->is_done && c->report.computed < 0;
    }
    c->n_computed += c->report.computed > 0 ? (uint64_t)c->report.computed : 0;
    c->n_sent = c->n;
    close_stream(c);
}

static int chat_next(engine *e, kv_origin origin, uint32_t turn, int32_t *ret_id, bool *ret_end,
    int32_t *mask_wanted, base_err *err)
{
    chat *c = as_chat(e);
    if (mask_wanted) *mask_wanted = -1;
    if (c->cancel && atomic_load(c->cancel)) {
        close_stream(c);
        return base_fail(err, BASE_E_CANCELLED, "cancelled");
    }
    if (c->n >= c->n_ctx) return base_fail(err, BASE_E_LIMIT, "the context is full");
    const bool first = !c->is_streaming;
    int rc = first ? open_stream(c, err) : 0;
    while (!rc && c->taken == c->came.n && !c->has_ended) {
        base_err why = {0};
        rc = read_more(c, &why);
        if (rc && !c->came.n && has_grammar(c) && remote_endpoint_blames_grammar(0, &why)) {
            refuse_grammar(c, &why);
            rc = open_stream(c, &why);
        }
        if (rc && c->taken < c->came.n) rc = 0; /* these first */
        if (rc && err) *err = why;
    }
    if (rc) {
        close_stream(c);
        return rc;
    }
    if (first) c->report.wait_ns = base_clock_ns() - c->begun_ns;
    *ret_end = c->taken == c->came.n;
    *ret_id = *ret_end ? STANDIN_END : c->came.ids[c->taken++];
    add(c, *ret_id);
    if (*ret_end) end_request(c);
    return 0;
}

static void chat_answer_begins(engine *e)
{
    as_chat(e)->hold = NULL;
    as_chat(e)->is_cut = false;
}

static bool chat_answer_cut(const engine *e)
{
    return as_chat(e)->is_cut;
}

static int chat_answer_held(engine *e, engine_hold *hold, base_err *err)
{
    as_chat(e)->hold = hold;
    return 0;
}

static void chat_answer_over(engine *e)
{
    chat *c = as_chat(e);
    end_request(c); /* a call is over before its end is asked for, and an answer where we cut it */
    c->hold = NULL;
}

static int chat_set_tools(
    engine *e, const model_grammar_tool *tools, uint32_t n, const char *const *paths, base_err *err)
{
    chat *c = as_chat(e);
    base_buf_clear(&c->grammar);
    remote_gbnf_put(MODEL_TOOLS_HERMES, tools, n, paths, &c->grammar);
    return 0;
}

static void chat_set_sampling(engine *e, const model_sampling *s)
{
    as_chat(e)->sampling = *s;
}

/* --- opening -------------------------------------------------------------------------------------------- */

static void chat_close(engine *e)
{
    chat *c = as_chat(e);
    close_stream(c);
    remote_endpoint_close(c->endpoint);
    model_ids_free(&c->came);
    free(c->ids);
    free(c->active);
    free(c->later);
    free(c->notice);
    free(c->refused);
    base_buf_free(&c->grammar);
    free(c->hash);
    free(c);
}

static const engine_ops chat_ops = {
    .close = chat_close,
    .info = chat_info,
    .stats = chat_stats,
    .encode = standin_encode,
    .scaffold = standin_scaffold,
    .piece = standin_piece,
    .is_control = standin_is_control,
    .ids = chat_ids,
    .append = chat_append,
    .truncate = chat_truncate,
    .restart = chat_restart,
    .set_sampling = chat_set_sampling,
    .answer_begins = chat_answer_begins,
    .answer_held = chat_answer_held,
    .answer_over = chat_answer_over,
    .answer_cut = chat_answer_cut,
    .set_tools = chat_set_tools,
    .next = chat_next,
    .take_request = chat_take_request,
    .set_active = chat_set_active,
    .is_active = chat_is_active,
};

engine *engine_remote_chat_open(remote_endpoint *endpoint, const engine_options *options)
{
    chat *c = base_xcalloc(1, sizeof *c);
    const uint32_t told = endpoint->n_ctx, wanted = options->kv.n_ctx;
    c->base.ops = &chat_ops;
    c->base.can = ENGINE_SPANS | (endpoint->wire->grammar ? ENGINE_GRAMMAR : 0);
    c->endpoint = endpoint;
    c->cancel = options->cancel;
    c->sampling = options->sampling;
    c->n_ctx = wanted ? (told && told < wanted ? told : wanted) : told ? told : GUESSED_CTX;
    c->max_answer = options->max_answer ? options->max_answer : ANSWER_AT_ONCE;
    base_buf text = {0};
    base_buf_printf(&text, "chat-%.200s", endpoint->model);
    c->hash = base_buf_take(&text);
    remote_endpoint_describe(endpoint, &text);
    base_buf_puts(&text, ". It renders the messages of every request anew: tokens "
                         "are estimates, no candidates are sampled beside each other");
    if (!endpoint->wire->grammar) base_buf_puts(&text, ", calls are not held to a grammar");
    if (!told && !wanted)
        base_buf_printf(&text, "; %d tokens of context are assumed (--ctx says otherwise)", GUESSED_CTX);
    if (endpoint->why_chat) base_buf_printf(&text, ". It takes ids, but %s", endpoint->why_chat);
    c->notice = base_buf_take(&text);
    return &c->base;
}
