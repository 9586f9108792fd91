/*
 * See engine_remote_parts.h: an answer as one stream. Tokens come out of it one by one, and whatever changes the
 * sequence in another way closes it. A stream that breaks is asked for again with what came of it, so nothing of an
 * answer is lost and nothing is said twice.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/engine/engine_remote_parts.h"
#include "base/clock.h"
#include "base/mem.h"
#include "remote/gbnf.h"

enum {
    MOST_BREAKS = 5, /* in a row, without a token between them */
    SOON_MS = 2000   /* whoever lets an endpoint serve another model needs longer */
};

void remote__close_stream(remote *r)
{
    remote_stream *s = &r->stream;
    if (s->is_open) {
        remote__report_ends(r);
        remote_http_stop(r->endpoint->http);
        s->closed_ns = base_clock_ns();
    }
    s->is_open = s->has_ended = s->is_cut = s->is_done = false;
    s->came.n = s->taken = s->withheld.n = 0;
    base_buf_clear(&s->late);
    remote_sse_free(&s->sse);
}

/* --- asking -------------------------------------------------------------------------------------------------- */

/*
 * Where the answer has a call already, whoever began it, a grammar can hold the rest only: *root is that grammar's, empty where
 * the call is over, or there is nothing to hold on to.
 */
static bool is_inside_call(const remote *r, base_buf *root)
{
    static const char *const marks[] = {"<tools>", "<tool_call>", "{\"name\""};
    base_buf text = {0};
    base_buf_puts(&text, "");
    for (size_t i = r->answer_from; i < r->seq.ids.n; i++) {
        size_t n;
        const char *piece = remote_vocab_piece(r->endpoint->vocab, r->seq.ids.ids[i], &n);
        if (piece) base_buf_add(&text, piece, n);
    }
    bool inside = false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) inside = inside || strstr(text.data, marks[i]);
    if (inside) remote_gbnf_put_rest(&r->tools, r->endpoint->tools, text.data, text.len, root);
    base_buf_free(&text);
    return inside;
}

static uint32_t most_tokens(const remote *r)
{
    const size_t room = r->n_ctx - remote_sequence_n_active(&r->seq);
    const uint32_t most = r->hold && r->hold->n_tokens < r->max_answer ? r->hold->n_tokens : r->max_answer;
    return (uint32_t)(room < most ? room : most);
}

/* root: of a grammar that holds the rest of a call; NULL: the answer begins. */
static int send_request(remote *r, bool with_grammar, const char *root, long *status, base_err *err)
{
    base_buf body = {0}, grammar = {0};
    /* Where a schema is all that an engine takes, nothing else could be written: no call. */
    const bool with_schema = r->hold && !r->hold->calls && !with_grammar && !r->is_grammar_off;
    if (with_grammar)
        remote_gbnf_put_answer(&(remote_gbnf_answer){.style = r->endpoint->tools,
                                   .rules = &r->grammar,
                                   .is_lazy = r->endpoint->wire->grammar == REMOTE_GRAMMAR_LAZY,
                                   .schema = r->hold ? r->hold->schema : NULL,
                                   .calls = r->hold && r->hold->calls,
                                   .root = root},
            &grammar);
    r->endpoint->wire->put_request(
        &(remote_request){.model = r->endpoint->model,
            .ids = r->stream.sent.ids,
            .n_ids = (uint32_t)r->stream.sent.n,
            .reuse = remote__reuse(r, r->seq.n_out > 0),
            .max_tokens = most_tokens(r),
            .sampling = r->sampling,
            .grammar = grammar.data,
            .triggers = r->hold || root ? NULL : remote_gbnf_triggers(r->endpoint->tools),
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
    remote__notice(r, text.data);
    base_buf_free(&text);
    r->is_grammar_refused = true;
}

/* Nothing of the n tokens that it has to compute is there yet. */
static void tell_waiting(const remote *r, uint32_t n)
{
    if (r->base.observer.prefill && n) r->base.observer.prefill(r->base.observer.user, 0, n);
}

/* An endpoint that was started again between two requests may have another model, which would read these ids as nonsense. */
static int check_model(remote *r, base_err *err)
{
    bool is_same = true;
    const bool is_late =
        r->stream.closed_ns && base_clock_ns() - r->stream.closed_ns > SOON_MS * UINT64_C(1000000);
    if (!r->is_model_unsure && !is_late) return 0;
    tell_waiting(r, remote_sequence_n_active(&r->seq));
    int rc = remote_endpoint_check(r->endpoint, &is_same, err);
    if (!rc) r->is_model_unsure = !is_same;
    if (!rc && !is_same)
        rc = base_fail(err, BASE_E_STATE,
            "the endpoint serves another model than this session's %.80s, and was "
            "sent nothing; let it serve that one again, or start a new session",
            remote_endpoint_name(r->endpoint));
    if (!rc && r->cost.held.slot.n && remote_endpoint_is_fresh(r->endpoint)) {
        remote_held_forget(&r->cost.held);
        /* In front of what it costs: a notice of the engine's would stand behind the turn. */
        if (r->base.waits)
            r->base.waits(r->base.observer.user,
                "the endpoint was started again: its cache is empty, and the next request is computed from its beginning");
    }
    return rc;
}

static int open_stream(remote *r, base_err *err)
{
    remote__close_stream(r);
    int rc = check_model(r, err);
    if (rc) return rc;
    if (remote_sequence_n_active(&r->seq) >= r->n_ctx)
        return base_fail(err, BASE_E_LIMIT, "the context of %u tokens is full", r->n_ctx);
    remote_sequence_put_active(&r->seq, NULL, &r->stream.sent);
    long status = 0;
    base_err why = {0};
    base_buf root = {0};
    bool with_grammar = r->grammar.len && !r->is_grammar_refused && !r->is_grammar_off &&
                        (r->hold ? r->seq.ids.n == r->answer_from : !is_inside_call(r, &root) || root.len);
    remote__probe_moving(r);
    remote__report_begins(r, UINT32_MAX);
    r->stream.begun_ns = base_clock_ns();
    tell_waiting(r, remote__report(r)->sent - remote__report(r)->predicted);
    rc = send_request(r, with_grammar, root.len ? root.data : NULL, &status, &why);
    if (rc && with_grammar && remote_endpoint_blames_grammar(status, &why)) {
        refuse_grammar(r, &why);
        rc = send_request(r, false, NULL, &status, &why);
    }
    base_buf_free(&root);
    if (rc) {
        remote__report_failed(r);
        rc = remote_endpoint_explain_length(status, &why);
        if (err) *err = why;
        return rc;
    }
    r->stream.is_open = true;
    r->stream.n_told = r->stream.n_prefilled = 0;
    r->stream.n_text = 0;
    r->stream.is_truncated = false;
    return 0;
}

/* --- reading ------------------------------------------------------------------------------------------------- */

static void take_numbers(remote *r, const remote_piece *p)
{
    engine_request *q = remote__report(r);
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
    return remote_vocab_encode(r->endpoint->vocab, p->text.ptr, p->text.len, false, &r->stream.came, err);
}

/* Ids wait until the text has come that they are: it lags behind, by a half letter and more. */
static int take_late(remote *r, const remote_piece *p, base_err *err)
{
    remote_vocab *v = r->endpoint->vocab;
    const bool is_all = p->end != REMOTE_GOES_ON;
    remote_vocab_fit fit = {0};
    for (uint32_t i = 0; i < p->n_ids; i++) model_ids_add(&r->stream.withheld, p->ids[i]);
    base_buf_puts(&r->stream.late, "");
    base_buf_add(&r->stream.late, p->text.ptr, p->text.len);
    if (!r->stream.late.len && !is_all) return 0;
    int rc = remote_vocab_learn_text(v, r->stream.withheld.ids, r->stream.withheld.n,
        (base_str){r->stream.late.data, r->stream.late.len}, is_all, &fit, err);
    for (size_t i = 0; i < fit.n && !rc; i++) {
        size_t len;
        const char *piece = remote_vocab_piece(v, r->stream.withheld.ids[i], &len);
        if (piece && len && *piece == '<') rc = remote_vocab_judge(v, r->stream.withheld.ids[i], err);
        model_ids_add(&r->stream.came, r->stream.withheld.ids[i]);
    }
    if (rc) return rc;
    memmove(r->stream.withheld.ids, r->stream.withheld.ids + fit.n,
        (r->stream.withheld.n - fit.n) * sizeof *r->stream.withheld.ids);
    r->stream.withheld.n -= fit.n;
    memmove(r->stream.late.data, r->stream.late.data + fit.n_bytes, r->stream.late.len - fit.n_bytes);
    r->stream.late.len -= fit.n_bytes;
    return 0;
}

static int take_ids(remote *r, const remote_piece *p, base_err *err)
{
    remote_vocab *v = r->endpoint->vocab;
    int rc = 0;
    if (r->endpoint->wire->tells_no_pieces) return take_late(r, p, err);
    if (p->so_far >= 0) {
        const int64_t fresh = p->so_far - r->stream.n_told;
        r->stream.n_told = p->so_far;
        if (p->n_ids && fresh > p->n_ids && p->text.len) return recover_ids(r, p, err);
        if (p->n_ids) rc = learn_group(r, p->ids, p->n_ids, p->text, err);
        for (uint32_t i = 0; i < p->n_ids; i++) model_ids_add(&r->stream.came, p->ids[i]);
        for (uint32_t i = 0; i < p->n_ids && !rc && !p->text.len; i++)
            rc = remote_vocab_judge(v, p->ids[i], err);
    } else { /* the text of several may come behind the last of them */
        for (uint32_t i = 0; i < p->n_ids; i++) model_ids_add(&r->stream.withheld, p->ids[i]);
        if (r->stream.withheld.n && (p->text.len || p->end != REMOTE_GOES_ON)) {
            rc = learn_group(r, r->stream.withheld.ids, r->stream.withheld.n, p->text, err);
            if (!rc && r->stream.withheld.n == 1 && p->text.len && p->text.ptr[0] == '<')
                rc = remote_vocab_judge(v, r->stream.withheld.ids[0], err);
            model_ids_add_all(&r->stream.came, &r->stream.withheld);
            r->stream.withheld.n = 0;
        }
    }
    return rc;
}

/* An event without a token, and without more of the prompt, is a sign of life and no more. */
static void note_progress(remote *r, const remote_piece *p, size_t n_before)
{
    const bool is_further = p->done > r->stream.n_prefilled && p->done <= (int64_t)r->stream.sent.n;
    if (is_further) r->stream.n_prefilled = p->done;
    if (is_further || r->stream.came.n + r->stream.withheld.n > n_before)
        remote_http_progress(r->endpoint->http);
}

/* Of a piece that tells the answer from its beginning, what is new. */
static int keep_new(remote *r, remote_piece *p, base_err *err)
{
    if (!p->is_whole) return 0;
    const int64_t fresh = p->so_far > r->stream.n_told ? p->so_far - r->stream.n_told : 0;
    const size_t told = r->stream.n_text < p->text.len ? r->stream.n_text : p->text.len;
    if (fresh > p->n_ids)
        return base_fail(
            err, BASE_E_FORMAT, "the endpoint sent more than %d tokens at once", REMOTE_MOST_IDS);
    memmove(p->ids, p->ids + p->n_ids - fresh, (size_t)fresh * sizeof *p->ids);
    p->n_ids = (uint32_t)fresh;
    r->stream.n_told += fresh;
    r->stream.n_text += p->text.len - told;
    p->text = (base_str){p->text.ptr + told, p->text.len - told};
    p->so_far = -1;
    return 0;
}

static int on_event(void *user, const char *data, size_t n, base_err *err)
{
    remote *r = user;
    base_json_doc *doc = NULL;
    if (n == 6 && !memcmp(data, "[DONE]", 6)) {
        r->stream.is_done = true;
        return 0;
    }
    if (base_json_parse(data, n, &doc, NULL))
        return base_fail(err, BASE_E_FORMAT, "the endpoint sent a piece of an answer that is no JSON");
    remote_piece *p = base_xcalloc(1, sizeof *p);
    int rc = r->endpoint->wire->read(base_json_root(doc), p, err);
    if (!rc) {
        const size_t n_before = r->stream.came.n + r->stream.withheld.n;
        take_numbers(r, p);
        rc = keep_new(r, p, err);
        if (!rc) rc = take_ids(r, p, err);
        note_progress(r, p, n_before);
        r->stream.is_truncated = r->stream.is_truncated || p->is_truncated;
        if (p->model && *p->model && strcmp(p->model, r->endpoint->model)) r->is_model_unsure = true;
        if (p->end != REMOTE_GOES_ON) {
            r->stream.has_ended = true;
            r->stream.is_cut = p->end == REMOTE_AT_LIMIT;
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
    int rc = bytes.len ? remote_sse_feed(&r->stream.sse, bytes.data, bytes.len, on_event, r, err) : 0;
    base_buf_free(&bytes);
    if (rc || broken) {
        if (!rc && err) *err = why;
        return rc ? rc : broken;
    }
    if (!ended || r->stream.has_ended) return 0;
    rc = remote_sse_end(&r->stream.sse, on_event, r, err);
    if (!rc && !r->stream.has_ended) rc = base_fail(err, BASE_E_IO, "the endpoint's answer broke off");
    return rc;
}

/*
 * A stream that failed is asked for again behind what came of it, as long as that gets on; an endpoint that
 * was started again in between has to have the same model.
 */
static int mend(remote *r, const base_err *why, base_err *err)
{
    const bool may_be_grammar =
        r->grammar.len && !r->is_grammar_off && why->code == BASE_E_IO && r->stream.came.n == r->stream.taken;
    remote__close_stream(r);
    if (++r->stream.breaks > MOST_BREAKS || why->code == BASE_E_LIMIT || why->code == BASE_E_CANCELLED ||
        why->code == BASE_E_STATE) {
        if (err) *err = *why;
        return why->code;
    }
    if (may_be_grammar && !r->is_grammar_refused && remote_endpoint_blames_grammar(0, why)) {
        refuse_grammar(r, why);
        return open_stream(r, err);
    }
    if (may_be_grammar && r->stream.breaks > 1)
        r->is_grammar_off = true; /* some engines fail on what it allows */
    r->is_model_unsure = true;
    base_buf text = {0};
    base_buf_printf(
        &text, "the answer broke off (%.200s) and was asked for again behind what came", why->msg);
    remote__notice(r, text.data);
    base_buf_free(&text);
    return open_stream(r, err);
}

/* Until a token is there, or the answer's end. */
static int await_token(remote *r, base_err *err)
{
    base_err why = {0};
    int rc = r->stream.is_open ? 0 : open_stream(r, err);
    while (!rc && r->stream.taken == r->stream.came.n) {
        if (r->stream.has_ended && r->stream.is_cut) {
            if (remote_sequence_n_active(&r->seq) >= r->n_ctx)
                return base_fail(err, BASE_E_LIMIT, "the context of %u tokens is full", r->n_ctx);
            rc = open_stream(r, err);
        } else if (r->stream.has_ended) {
            return 0;
        } else if (read_more(r, &why)) {
            if (r->stream.taken < r->stream.came.n) return 0; /* these first; the failure comes again */
            rc = mend(r, &why, err);
        }
    }
    return rc;
}

/* --- the next token ------------------------------------------------------------------------------------------ */

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

void remote__read_usage(remote *r, uint32_t patience_ms)
{
    const engine_request *q = remote__report(r);
    if (!r->stream.is_open || !q || q->cached >= 0 || r->stream.tells_no_cache) return;
    remote_endpoint_read_usage(r->endpoint, &r->stream.sse, patience_ms, on_event, r, &r->stream.is_done);
    r->stream.tells_no_cache = r->stream.is_done && q->cached < 0;
}

int remote__next(engine *e, kv_origin origin, uint32_t turn, int32_t *ret_id, bool *ret_end,
    int32_t *mask_wanted, base_err *err)
{
    remote *r = remote_of(e);
    const int32_t end = r->endpoint->end[MODEL_ROLE_ASSISTANT].ids[0];
    if (mask_wanted) *mask_wanted = -1;
    if (r->cancel && atomic_load(r->cancel)) {
        remote__close_stream(r);
        return base_fail(err, BASE_E_CANCELLED, "cancelled");
    }
    const bool first = !r->stream.is_open;
    int rc = await_token(r, err);
    if (rc) {
        remote__close_stream(r);
        return rc;
    }
    if (first && remote__report(r)) remote__report(r)->wait_ns = base_clock_ns() - r->stream.begun_ns;
    const bool has_token = r->stream.taken < r->stream.came.n;
    const int32_t came = has_token ? r->stream.came.ids[r->stream.taken++] : end;
    const bool is_over = begins_message(r, came);
    const int32_t id = is_over ? end : came;
    *ret_id = id;
    *ret_end = !has_token || id == end ||
               (r->stream.has_ended && !r->stream.is_cut && r->stream.taken == r->stream.came.n &&
                   remote_vocab_is_control(r->endpoint->vocab, id));
    r->stream.breaks = 0;
    remote_sequence_add(&r->seq, id);
    if (*ret_end) {
        /* The last numbers come behind the last token. */
        base_err why = {0};
        while (r->stream.is_open && !r->stream.has_ended && !is_over && !read_more(r, &why)) {
        }
        if (!is_over) remote__read_usage(r, REMOTE_USAGE_MS);
        remote__close_stream(r);
    }
    return 0;
}
