/* What the rows share, and the rows that take ids. */
#include "remote/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* --- shared --------------------------------------------------------------------------------------------- */

static void put_member(base_buf *out, const char *name)
{
    base_buf_putc(out, out->len && strchr("{[", out->data[out->len - 1]) ? ' ' : ',');
    base_json_put_str(out, name, strlen(name));
    base_buf_putc(out, ':');
}

static void put_number(base_buf *out, const char *name, double x)
{
    put_member(out, name);
    base_json_put_num(out, x);
}

static void put_bool(base_buf *out, const char *name, bool x)
{
    put_member(out, name);
    base_buf_puts(out, x ? "true" : "false");
}

static void put_text(base_buf *out, const char *name, const char *text, size_t n)
{
    put_member(out, name);
    base_json_put_str(out, text, n);
}

void remote_wire_put_ids(const int32_t *ids, uint32_t n, base_buf *out)
{
    base_buf_putc(out, '[');
    for (uint32_t i = 0; i < n; i++) base_buf_printf(out, i ? ",%d" : "%d", ids[i]);
    base_buf_putc(out, ']');
}

static void put_messages(const remote_message *m, uint32_t n, base_buf *out)
{
    /* A tool's result without a call of the endpoint's own kind is refused by most: it is the user's turn. */
    static const char *const roles[] = {"system", "user", "assistant", "user"};
    base_buf_putc(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        base_buf_printf(out, "%s{\"role\":\"%s\"", i ? "," : "", roles[m[i].role]);
        put_text(out, "content", m[i].text, m[i].n);
        base_buf_putc(out, '}');
    }
    base_buf_putc(out, ']');
}

static bool speaks_of_context(const char *text, const char *type)
{
    return strstr(type, "exceed_context") || strstr(text, "context size") || strstr(text, "context length") ||
           strstr(text, "maximum context");
}

/* An error object of any of the forms as a sentence; 0: root is none. */
static int read_error(const base_json *root, base_err *err)
{
    const base_json *e = base_json_get(root, "error");
    const bool is_object =
        base_json_get(root, "object") && !strcmp(base_json_str(root, "object", ""), "error");
    if (!e && !is_object && !base_json_get(root, "message")) return 0;
    if (e && e->type == BASE_JSON_NULL) return 0;
    const char *said = base_json_str(
        e, "message", base_json_str(root, "message", base_json_str(root, "error", "it does not say what")));
    base_buf text = {0};
    size_t n = strlen(said);
    base_utf8_sanitise(&text, said, n < 240 ? n : base_utf8_whole(said, 240), false);
    const int rc = speaks_of_context(said, base_json_str(e, "type", ""))
                       ? base_fail(err, BASE_E_LIMIT, "the endpoint's context is too small: %s", text.data)
                       : base_fail(err, BASE_E_IO, "the endpoint failed: %s", text.data ? text.data : "");
    base_buf_free(&text);
    return rc;
}

static remote_piece empty_piece(void)
{
    return (remote_piece){
        .so_far = -1, .sent = -1, .cached = -1, .computed = -1, .done = -1, .total = -1, .text = {"", 0}};
}

static base_str text_of(const base_json *object, const char *name)
{
    const base_json *v = base_json_get(object, name);
    return v && v->type == BASE_JSON_STRING ? (base_str){v->string, v->string_len} : (base_str){"", 0};
}

static int take_ids(const base_json *list, remote_piece *ret, base_err *err)
{
    if (!list || list->type != BASE_JSON_ARRAY) return 0;
    for (const base_json *v = list->first; v; v = v->next) {
        if (!v->is_integer || v->integer < 0 || v->integer > INT32_MAX)
            return base_fail(err, BASE_E_FORMAT, "the endpoint sent a token that is none");
        if (ret->n_ids == REMOTE_MOST_IDS)
            return base_fail(
                err, BASE_E_FORMAT, "the endpoint sent more than %d tokens at once", REMOTE_MOST_IDS);
        ret->ids[ret->n_ids++] = (int32_t)v->integer;
    }
    return 0;
}

/* Of the candidates that an engine tells for one place, the likeliest that is not `said`. */
typedef struct best_other {
    int32_t said, id; /* id -1: none yet */
    double logprob;
} best_other;

static void take_candidate(best_other *b, int64_t id, double logprob)
{
    if (id == b->said || id < 0 || id > INT32_MAX || (b->id >= 0 && logprob <= b->logprob)) return;
    b->id = (int32_t)id;
    b->logprob = logprob;
}

static int tells_no_scores(base_err *err)
{
    return base_fail(err, BASE_E_UNSUPPORTED, "it does not tell how likely each token of a text is");
}

static int put_score_of(const best_other *b, double said, remote_score *ret, base_err *err)
{
    if (b->id < 0) return tells_no_scores(err);
    *ret = (remote_score){b->id, (float)(said - b->logprob)};
    return 0;
}

/* OpenAI's sampling; where an engine has more, its own names are the same. */
static void put_sampling(const model_sampling *s, bool has_more, const char *penalty, base_buf *out)
{
    put_number(out, "temperature", (double)s->temperature);
    if (s->temperature <= 0)
        return; /* greedy: nothing else has a say, not even the penalty in OpenAI's form */
    put_number(out, "top_p", (double)s->top_p);
    put_number(out, "seed", (double)(s->seed & 0x7fffffff));
    if (!has_more) return;
    put_number(out, "top_k", s->top_k);
    put_number(out, "min_p", (double)s->min_p);
    put_number(out, penalty, (double)s->repeat_penalty);
}

/* --- llama-server --------------------------------------------------------------------------------------- */

static void llama_put_request(const remote_request *r, base_buf *out)
{
    base_buf_puts(out, "{\"prompt\":");
    remote_wire_put_ids(r->ids, r->n_ids, out);
    put_bool(out, "stream", true);
    put_bool(out, "cache_prompt", true);
    put_bool(out, "return_tokens", true);
    put_bool(out, "return_progress", true);
    put_number(out, "n_predict", r->max_tokens);
    if (r->reuse) put_number(out, "n_cache_reuse", r->reuse);
    put_sampling(&r->sampling, true, "repeat_penalty", out);
    if (r->sampling.temperature <= 0) { /* the server has a default of its own */
        put_number(out, "repeat_penalty", (double)r->sampling.repeat_penalty);
        put_number(out, "seed", (double)(r->sampling.seed & 0x7fffffff));
    }
    put_number(out, "repeat_last_n", r->sampling.repeat_last);
    if (r->grammar) {
        put_text(out, "grammar", r->grammar, strlen(r->grammar));
    }
    if (r->grammar && r->triggers) {
        put_bool(out, "grammar_lazy", true);
        put_member(out, "grammar_triggers");
        for (size_t i = 0; r->triggers[i]; i++) {
            base_buf_puts(out, i ? ",{\"type\":2,\"value\":" : "[{\"type\":2,\"value\":");
            base_json_put_str(out, r->triggers[i], strlen(r->triggers[i]));
            base_buf_putc(out, '}');
        }
        base_buf_putc(out, ']');
    }
    base_buf_putc(out, '}');
}

static int llama_read(const base_json *root, remote_piece *ret, base_err *err)
{
    *ret = empty_piece();
    const base_json *progress = base_json_get(root, "prompt_progress"),
                    *timings = base_json_get(root, "timings");
    int rc = read_error(root, err);
    if (rc) return rc;
    if (progress) {
        ret->total = base_json_int(progress, "total", -1);
        ret->done = base_json_int(progress, "processed", -1);
        ret->cached = base_json_int(progress, "cache", -1);
        ret->sent = ret->total;
        return 0; /* its token is none */
    }
    ret->text = text_of(root, "content");
    ret->so_far = base_json_int(root, "tokens_predicted", -1);
    ret->model = base_json_str(root, "model", NULL);
    if (timings && base_json_get(timings, "cache_n")) {
        ret->cached = base_json_int(timings, "cache_n", -1);
        ret->computed = base_json_int(timings, "prompt_n", -1);
        ret->sent = base_json_int(root, "tokens_evaluated", -1);
    }
    ret->is_truncated = base_json_bool(root, "truncated", false);
    if (base_json_bool(root, "stop", false)) {
        ret->end = strcmp(base_json_str(root, "stop_type", ""), "limit") ? REMOTE_ENDED : REMOTE_AT_LIMIT;
    }
    return take_ids(base_json_get(root, "tokens"), ret, err);
}

/* Held to the text by a grammar of its tokens. What it would have said stands beside each, as if there were no grammar. */
static void llama_put_score(const remote_request *r, uint32_t n_read, base_buf *out)
{
    base_buf grammar = {0};
    base_buf_puts(&grammar, "root ::=");
    for (uint32_t i = n_read; i < r->n_ids; i++) base_buf_printf(&grammar, " <[%d]>", r->ids[i]);
    base_buf_puts(out, "{\"prompt\":");
    remote_wire_put_ids(r->ids, n_read, out);
    put_number(out, "n_predict", r->n_ids - n_read);
    put_number(out, "n_probs", 2);
    put_number(out, "temperature", 0);
    put_bool(out, "cache_prompt", true);
    if (r->reuse) put_number(out, "n_cache_reuse", r->reuse);
    put_text(out, "grammar", grammar.data, grammar.len);
    base_buf_putc(out, '}');
    base_buf_free(&grammar);
}

static int llama_read_score(
    const base_json *root, const int32_t *ids, uint32_t n, remote_score *ret, base_err *err)
{
    const base_json *all = base_json_get(root, "completion_probabilities");
    const base_json *place = all && all->type == BASE_JSON_ARRAY ? all->first : NULL;
    int rc = 0;
    for (uint32_t i = 0; i < n && !rc; i++, place = place->next) {
        const base_json *top = base_json_get(place, "top_logprobs");
        best_other best = {.said = ids[i], .id = -1};
        if (!place || base_json_int(place, "id", -1) != ids[i]) return tells_no_scores(err);
        for (const base_json *c = top ? top->first : NULL; c; c = c->next)
            take_candidate(&best, base_json_int(c, "id", -1), base_json_num(c, "logprob", -1e9));
        rc = put_score_of(&best, base_json_num(place, "logprob", -1e9), &ret[i], err);
    }
    return rc;
}

static void llama_put_tokenize(const char *model, const char *text, size_t n, bool special, base_buf *out)
{
    base_buf_putc(out, '{');
    put_text(out, "content", text, n);
    put_bool(out, "add_special", false);
    put_bool(out, "parse_special", special);
    put_bool(out, "with_pieces", true);
    base_buf_putc(out, '}');
}

/* An object that is still open. */
static void begin_detokenize(const char *model, const int32_t *ids, uint32_t n, base_buf *out)
{
    base_buf_putc(out, '{');
    put_text(out, "model", model, strlen(model));
    put_member(out, "tokens");
    remote_wire_put_ids(ids, n, out);
}

static void put_detokenize(const char *model, const int32_t *ids, uint32_t n, base_buf *out)
{
    begin_detokenize(model, ids, n, out);
    base_buf_putc(out, '}');
}

/* An object that is still open. */
static void begin_render(const char *model, const remote_message *m, uint32_t n, bool thinking, base_buf *out)
{
    base_buf_putc(out, '{');
    put_text(out, "model", model, strlen(model));
    put_member(out, "messages");
    put_messages(m, n, out);
    put_member(out, "chat_template_kwargs");
    base_buf_printf(out, "{\"enable_thinking\":%s}", thinking ? "true" : "false");
}

static void put_render(
    const char *model, const remote_message *m, uint32_t n, bool open, bool thinking, base_buf *out)
{
    begin_render(model, m, n, thinking, out);
    put_bool(out, "add_generation_prompt", open);
    base_buf_putc(out, '}');
}

const remote_wire remote_wire_llama = {
    .name = "llama-server",
    .complete = "/completion",
    .has_ids = true,
    .grammar = REMOTE_GRAMMAR_LAZY,
    .block = 1,
    .put_request = llama_put_request,
    .read = llama_read,
    .scoring = REMOTE_SCORES_WRITTEN,
    .put_score = llama_put_score,
    .read_score = llama_read_score,
    .tokenize = "/tokenize",
    .detokenize = "/detokenize",
    .put_tokenize = llama_put_tokenize,
    .put_detokenize = put_detokenize,
    .detokenized = "content",
    .render = "/apply-template",
    .put_render = put_render,
    .rendered = "prompt",
};

/* --- vLLM ----------------------------------------------------------------------------------------------- */

static void vllm_put_request(const remote_request *r, base_buf *out)
{
    base_buf_putc(out, '{');
    put_text(out, "model", r->model, strlen(r->model));
    put_member(out, "prompt");
    remote_wire_put_ids(r->ids, r->n_ids, out);
    put_bool(out, "stream", true);
    put_bool(out, "return_token_ids", true);
    put_bool(out, "add_special_tokens", false);
    put_bool(out, "skip_special_tokens", false);
    put_number(out, "max_tokens", r->max_tokens);
    put_member(out, "stream_options");
    base_buf_puts(out, "{\"include_usage\":true}");
    put_sampling(&r->sampling, true, "repetition_penalty", out);
    if (r->grammar) { /* from 0.10.2 on; older ones look past it */
        put_member(out, "structured_outputs");
        base_buf_puts(out, "{\"grammar\":");
        base_json_put_str(out, r->grammar, strlen(r->grammar));
        base_buf_putc(out, '}');
    } else if (r->schema) { /* the same, and what it was called before */
        put_member(out, "structured_outputs");
        base_buf_puts(out, "{\"json\":");
        base_json_put_text(out, r->schema);
        base_buf_putc(out, '}');
        put_member(out, "guided_json");
        base_json_put_text(out, r->schema);
    }
    base_buf_putc(out, '}');
}

/* The numbers of OpenAI's usage; engines that keep a cache tell of it there. */
static void take_usage(const base_json *usage, remote_piece *ret)
{
    const base_json *details = base_json_get(usage, "prompt_tokens_details");
    if (!usage || usage->type != BASE_JSON_OBJECT) return;
    ret->sent = base_json_int(usage, "prompt_tokens", -1);
    if (base_json_get(details, "cached_tokens")) ret->cached = base_json_int(details, "cached_tokens", -1);
    if (ret->sent >= 0 && ret->cached >= 0) ret->computed = ret->sent - ret->cached;
}

/* What OpenAI's forms say beside the text. */
static void take_rest(const base_json *root, const base_json *choice, remote_piece *ret)
{
    const char *finish = base_json_str(choice, "finish_reason", NULL);
    ret->model = base_json_str(root, "model", NULL);
    take_usage(base_json_get(root, "usage"), ret);
    if (finish) ret->end = strcmp(finish, "length") ? REMOTE_ENDED : REMOTE_AT_LIMIT;
}

static int vllm_read(const base_json *root, remote_piece *ret, base_err *err)
{
    *ret = empty_piece();
    const base_json *choice = base_json_at(base_json_get(root, "choices"), 0);
    int rc = read_error(root, err);
    if (rc) return rc;
    ret->text = text_of(choice, "text");
    take_rest(root, choice, ret);
    return take_ids(base_json_get(choice, "token_ids"), ret, err);
}

/* Of a prompt, which is told in one piece only. */
static void vllm_put_score(const remote_request *r, uint32_t n_read, base_buf *out)
{
    base_buf_putc(out, '{');
    put_text(out, "model", r->model, strlen(r->model));
    put_member(out, "prompt");
    remote_wire_put_ids(r->ids, r->n_ids, out);
    put_bool(out, "add_special_tokens", false);
    put_number(out, "max_tokens", 1);
    put_number(out, "temperature", 0);
    put_number(out, "prompt_logprobs", 2);
    base_buf_putc(out, '}');
}

/* Of each token of the prompt an object whose members are called as the candidates' ids, its own among them. */
static int vllm_read_score(
    const base_json *root, const int32_t *ids, uint32_t n, remote_score *ret, base_err *err)
{
    const base_json *all = base_json_get(base_json_at(base_json_get(root, "choices"), 0), "prompt_logprobs");
    const base_json *place = all && all->type == BASE_JSON_ARRAY && all->n >= n ? all->first : NULL;
    int rc = place ? 0 : tells_no_scores(err);
    for (size_t i = n; place && i < all->n; i++) place = place->next;
    for (uint32_t i = 0; i < n && !rc; i++, place = place->next) {
        char name[16];
        best_other best = {.said = ids[i], .id = -1};
        snprintf(name, sizeof name, "%d", ids[i]);
        const base_json *said = base_json_get(place, name);
        if (!said) return tells_no_scores(err);
        for (const base_json *c = place->first; c; c = c->next)
            take_candidate(&best, strtoll(c->key, NULL, 10), base_json_num(c, "logprob", -1e9));
        rc = put_score_of(&best, base_json_num(said, "logprob", -1e9), &ret[i], err);
    }
    return rc;
}

static void vllm_put_tokenize(const char *model, const char *text, size_t n, bool special, base_buf *out)
{
    base_buf_putc(out, '{');
    put_text(out, "model", model, strlen(model));
    put_text(out, "prompt", text, n);
    put_bool(out, "add_special_tokens", false);
    put_bool(out, "return_token_strs", true);
    base_buf_putc(out, '}');
}

const remote_wire remote_wire_vllm = {
    .name = "vLLM",
    .complete = "/v1/completions",
    .has_ids = true,
    .grammar = REMOTE_GRAMMAR_WHOLE,
    .block = 16,
    .put_request = vllm_put_request,
    .read = vllm_read,
    .scoring = REMOTE_SCORES_READ_ANEW,
    .put_score = vllm_put_score,
    .read_score = vllm_read_score,
    .tokenize = "/tokenize",
    .detokenize = "/detokenize",
    .put_tokenize = vllm_put_tokenize,
    .put_detokenize = put_detokenize,
    .detokenized = "prompt",
    .reads_special = true,
    .render = "/tokenize",
    .put_render = put_render,
};

/* --- chat completions ----------------------------------------------------------------------------------- */

static void put_chat_request(const remote_request *r, base_buf *out)
{
    base_buf_putc(out, '{');
    put_text(out, "model", r->model, strlen(r->model));
    put_member(out, "messages");
    put_messages(r->messages, r->n_messages, out);
    put_bool(out, "stream", true);
    put_number(out, "max_tokens", r->max_tokens);
    put_member(out, "stream_options");
    base_buf_puts(out, "{\"include_usage\":true}");
    put_sampling(&r->sampling, false, "", out);
    if (r->schema) {
        put_member(out, "response_format");
        base_buf_puts(out,
            "{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"answer\",\"strict\":true,\"schema\":");
        base_json_put_text(out, r->schema);
        base_buf_puts(out, "}}");
    }
}

static void chat_put_request(const remote_request *r, base_buf *out)
{
    put_chat_request(r, out);
    base_buf_putc(out, '}');
}

static int take_calls(const base_json *list, remote_piece *ret, base_err *err)
{
    if (!list || list->type != BASE_JSON_ARRAY) return 0;
    for (const base_json *call = list->first; call; call = call->next) {
        const base_json *function = base_json_get(call, "function");
        if (ret->n_calls == REMOTE_MOST_CALLS)
            return base_fail(
                err, BASE_E_FORMAT, "the endpoint made more than %d calls at once", REMOTE_MOST_CALLS);
        ret->calls[ret->n_calls] = (remote_call_part){base_json_int(call, "index", ret->n_calls),
            text_of(function, "name"), text_of(function, "arguments")};
        ret->n_calls++;
    }
    return 0;
}

static int chat_read(const base_json *root, remote_piece *ret, base_err *err)
{
    *ret = empty_piece();
    const base_json *choice = base_json_at(base_json_get(root, "choices"), 0);
    const base_json *delta = base_json_get(choice, "delta");
    int rc = read_error(root, err);
    if (rc) return rc;
    if (!delta) delta = base_json_get(choice, "message"); /* an endpoint that does not stream */
    ret->text = text_of(delta, "content");
    ret->thought = text_of(delta, "reasoning_content");
    if (!ret->thought.len) ret->thought = text_of(delta, "reasoning");
    take_rest(root, choice, ret);
    return take_calls(base_json_get(delta, "tool_calls"), ret, err);
}

/* --- SGLang: ids at /generate, messages where its template is not to be had ------------------------------- */

static void sglang_put_request(const remote_request *r, base_buf *out)
{
    base_buf_puts(out, "{\"input_ids\":");
    remote_wire_put_ids(r->ids, r->n_ids, out);
    put_bool(out, "stream", true);
    put_member(out, "sampling_params");
    base_buf_putc(out, '{');
    put_number(out, "max_new_tokens", r->max_tokens);
    put_bool(out, "skip_special_tokens", false);
    put_bool(out, "spaces_between_special_tokens", false);
    put_number(out, "temperature", (double)r->sampling.temperature);
    put_number(out, "repetition_penalty", (double)r->sampling.repeat_penalty);
    if (r->sampling.temperature > 0) {
        put_number(out, "top_p", (double)r->sampling.top_p);
        put_number(out, "top_k", r->sampling.top_k > 0 ? r->sampling.top_k : -1);
        put_number(out, "min_p", (double)r->sampling.min_p);
        put_number(out, "sampling_seed", (double)(r->sampling.seed & 0x7fffffff));
    }
    if (r->grammar)
        put_text(out, "ebnf", r->grammar, strlen(r->grammar));
    else if (r->schema) /* as text */
        put_text(out, "json_schema", r->schema, strlen(r->schema));
    base_buf_puts(out, "}}");
}

/* Of the ids the last ones: an answer that is told from its beginning each time has more than a piece holds. */
static int take_last_ids(const base_json *list, remote_piece *ret, base_err *err)
{
    const base_json *v = list && list->type == BASE_JSON_ARRAY ? list->first : NULL;
    for (size_t i = REMOTE_MOST_IDS; v && i < list->n; i++) v = v->next;
    for (; v && ret->n_ids < REMOTE_MOST_IDS; v = v->next) {
        if (!v->is_integer || v->integer < 0 || v->integer > INT32_MAX)
            return base_fail(err, BASE_E_FORMAT, "the endpoint sent a token that is none");
        ret->ids[ret->n_ids++] = (int32_t)v->integer;
    }
    return 0;
}

static int sglang_read(const base_json *root, remote_piece *ret, base_err *err)
{
    *ret = empty_piece();
    const base_json *meta = base_json_get(root, "meta_info"), *ids = base_json_get(root, "output_ids");
    const base_json *finish = base_json_get(meta, "finish_reason");
    const char *reason = base_json_str(finish, "type", NULL);
    int rc = read_error(root, err);
    if (rc) return rc;
    if (reason && !strcmp(reason, "abort"))
        return base_fail(err, BASE_E_IO, "the endpoint gave the answer up: %.200s",
            base_json_str(finish, "message", "it does not say why"));
    ret->text = text_of(root, "text");
    ret->so_far = base_json_int(meta, "completion_tokens", -1);
    /* Unless it was started with incremental output, each event tells all of the answer. */
    ret->is_whole = ids && ids->type == BASE_JSON_ARRAY && ret->so_far >= 0 && ids->n == (size_t)ret->so_far;
    if (!ret->is_whole) ret->so_far = -1;
    ret->sent = base_json_int(meta, "prompt_tokens", -1);
    ret->cached = base_json_int(meta, "cached_tokens", -1);
    if (ret->sent >= 0 && ret->cached >= 0) ret->computed = ret->sent - ret->cached;
    if (reason) ret->end = strcmp(reason, "length") ? REMOTE_ENDED : REMOTE_AT_LIMIT;
    return ret->is_whole ? take_last_ids(ids, ret, err) : take_ids(ids, ret, err);
}

/* Its cache is looked into up to the first token that is told of; that one itself is told without a number. */
static void sglang_put_score(const remote_request *r, uint32_t n_read, base_buf *out)
{
    base_buf_puts(out, "{\"input_ids\":");
    remote_wire_put_ids(r->ids, r->n_ids, out);
    put_bool(out, "return_logprob", true);
    put_number(out, "logprob_start_len", n_read ? n_read - 1 : 0);
    put_number(out, "top_logprobs_num", 2);
    base_buf_puts(out, ",\"sampling_params\":{\"max_new_tokens\":1,\"temperature\":0}}");
}

/* [logprob, id, text] of each token, and beside that a list of such for the candidates. */
static int sglang_read_score(
    const base_json *root, const int32_t *ids, uint32_t n, remote_score *ret, base_err *err)
{
    const base_json *meta = base_json_get(root, "meta_info"),
                    *said = base_json_get(meta, "input_token_logprobs"),
                    *top = base_json_get(meta, "input_top_logprobs");
    const size_t n_told = said && said->type == BASE_JSON_ARRAY ? said->n : 0;
    if (n_told < n || !top || top->type != BASE_JSON_ARRAY || top->n != n_told) return tells_no_scores(err);
    int rc = 0;
    for (uint32_t i = 0; i < n && !rc; i++) {
        const base_json *own = base_json_at(said, n_told - n + i),
                        *others = base_json_at(top, n_told - n + i);
        best_other best = {.said = ids[i], .id = -1};
        const base_json *number = base_json_at(own, 0), *id = base_json_at(own, 1);
        if (!id || id->integer != ids[i] || number->type != BASE_JSON_NUMBER) return tells_no_scores(err);
        for (const base_json *c = others ? others->first : NULL; c; c = c->next)
            if (base_json_at(c, 1))
                take_candidate(&best, base_json_at(c, 1)->integer, base_json_at(c, 0)->number);
        rc = put_score_of(&best, number->number, &ret[i], err);
    }
    return rc;
}

static void sglang_put_tokenize(const char *model, const char *text, size_t n, bool special, base_buf *out)
{
    base_buf_putc(out, '{');
    put_text(out, "model", model, strlen(model));
    put_text(out, "prompt", text, n);
    put_bool(out, "add_special_tokens", false);
    base_buf_putc(out, '}');
}

static void sglang_put_detokenize(const char *model, const int32_t *ids, uint32_t n, base_buf *out)
{
    begin_detokenize(model, ids, n, out);
    put_bool(out, "skip_special_tokens", false);
    base_buf_putc(out, '}');
}

static void sglang_put_render(
    const char *model, const remote_message *m, uint32_t n, bool open, bool thinking, base_buf *out)
{
    begin_render(model, m, n, thinking, out);
    base_buf_putc(out, '}');
}

const remote_wire remote_wire_sglang = {
    .name = "SGLang",
    .complete = "/generate",
    .has_ids = true,
    .grammar = REMOTE_GRAMMAR_WHOLE,
    .block = 1,
    .put_request = sglang_put_request,
    .read = sglang_read,
    .scoring = REMOTE_SCORES_READ,
    .put_score = sglang_put_score,
    .read_score = sglang_read_score,
    .tokenize = "/tokenize",
    .detokenize = "/detokenize",
    .put_tokenize = sglang_put_tokenize,
    .put_detokenize = sglang_put_detokenize,
    .detokenized = "text",
    .reads_special = true,
    .tells_no_pieces = true,
    .render = "/tokenize",
    .put_render = sglang_put_render,
    .renders_open = true,
    .by_chat = &remote_wire_sglang_chat,
};

static void sglang_put_chat_request(const remote_request *r, base_buf *out)
{
    put_chat_request(r, out);
    if (r->grammar) put_text(out, "ebnf", r->grammar, strlen(r->grammar));
    base_buf_putc(out, '}');
}

const remote_wire remote_wire_sglang_chat = {
    .name = "SGLang",
    .complete = "/v1/chat/completions",
    .grammar = REMOTE_GRAMMAR_WHOLE,
    .block = 1,
    .put_request = sglang_put_chat_request,
    .read = chat_read,
};

const remote_wire remote_wire_chat = {
    .name = "chat",
    .complete = "/v1/chat/completions",
    .block = 1,
    .put_request = chat_put_request,
    .read = chat_read,
};
