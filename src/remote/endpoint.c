#include "remote/endpoint.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "model/file/gguf.h"
#include "remote/vocab_compare.h"

typedef struct opening {
    remote_endpoint *e;
    const remote_endpoint_options *options;
    const char *template; /* its text, where the endpoint tells it */
} opening;

/* --- what is there -------------------------------------------------------------------------------------- */

/* An answer as JSON; *ret NULL where there is no such path or what came is none. */
static int look(remote_endpoint *e, const char *path, base_json_doc **ret, base_err *err)
{
    base_buf body = {0};
    base_err why = {0};
    long status = 0;
    *ret = NULL;
    int rc = remote_http_ask(e->http, path, NULL, &status, &body, &why);
    const bool is_absent = rc && (status == 404 || status == 405 || status == 400 || status == 501);
    if (rc && !is_absent) {
        if (err) *err = why;
    } else {
        rc = 0;
        if (!is_absent && base_json_parse(body.data ? body.data : "", body.len, ret, NULL)) *ret = NULL;
    }
    base_buf_free(&body);
    return rc;
}

/* NULL-safe, as the look-ups behind it are. */
static const base_json *root_of(const base_json_doc *doc)
{
    return doc ? base_json_root(doc) : NULL;
}

static uint32_t number(const base_json *object, const char *name)
{
    const int64_t n = base_json_int(object, name, 0);
    return n > 0 && n < UINT32_MAX ? (uint32_t)n : 0;
}

static void take_word(char **at, const char *word)
{
    if (!word || !*word) return;
    free(*at);
    *at = base_xstrdup(word);
}

static bool take_llama(opening *o, const base_json *props)
{
    remote_endpoint *e = o->e;
    const base_json *settings = base_json_get(props, "default_generation_settings");
    if (!settings) return false;
    e->wire = &remote_wire_llama;
    take_word(&e->kind, "llama-server");
    e->n_ctx = number(settings, "n_ctx");
    e->n_slots = number(props, "total_slots");
    take_word(&e->format, base_json_str(props, "model_ftype", NULL));
    take_word(&e->build, base_json_str(props, "build_info", NULL));
    return true;
}

/* Which engine: each has a path that no other has. */
static int find_kind(opening *o, char **template, base_err *err)
{
    remote_endpoint *e = o->e;
    base_json_doc *doc = NULL;
    base_buf kind = {0};
    int rc = look(e, "/props", &doc, err);
    if (!rc && doc && take_llama(o, root_of(doc))) {
        take_word(template, base_json_str(root_of(doc), "chat_template", NULL));
        base_json_free(doc);
        return 0;
    }
    base_json_free(doc);
    if (!rc) rc = look(e, "/version", &doc, err);
    if (rc) return rc;
    const char *version = base_json_str(root_of(doc), "version", NULL);
    if (doc && version) {
        e->wire = &remote_wire_vllm;
        base_buf_printf(&kind, "vLLM %.20s", version);
        take_word(&e->kind, kind.data);
    }
    base_buf_free(&kind);
    base_json_free(doc);
    if (e->wire) return 0;
    e->wire = &remote_wire_chat;
    take_word(&e->kind, "a chat endpoint");
    rc = look(e, "/get_model_info", &doc, err);
    if (!rc && doc && base_json_get(root_of(doc), "model_path")) {
        e->wire = &remote_wire_sglang;
        take_word(&e->kind, "SGLang");
    }
    base_json_free(doc);
    return rc;
}

static int choose_model(opening *o, const base_json *list, base_err *err)
{
    remote_endpoint *e = o->e;
    const char *wanted = o->options->model;
    const base_json *found = NULL;
    base_buf names = {0};
    size_t n = 0; /* that have a name */
    for (const base_json *m = list && list->type == BASE_JSON_ARRAY ? list->first : NULL; m; m = m->next) {
        const char *id = base_json_str(m, "id", "");
        if (!*id) continue;
        base_buf_printf(&names, "%s%.80s", n++ ? ", " : "", id);
        if (!wanted || !strcmp(id, wanted)) found = m;
    }
    if (!wanted && n > 1) found = NULL;
    int rc = 0;
    if (found) {
        take_word(&e->model, base_json_str(found, "id", NULL));
        const base_json *meta = base_json_get(found, "meta");
        if (!e->n_ctx) e->n_ctx = number(found, "max_model_len");
        e->n_train = number(meta, "n_ctx_train");
        const double n_params = base_json_num(meta, "n_params", 0);
        e->n_params = n_params > 0 && n_params < 1e18 ? (uint64_t)n_params : 0; /* 0: none that can be */
    } else if (n > 1 && !wanted) {
        rc = base_fail(err, BASE_E_USAGE, "%s serves several models; choose one with --model: %.300s",
            remote_http_address(e->http)->origin, names.data);
    } else if (wanted && n) {
        rc = base_fail(err, BASE_E_USAGE, "%s serves no model %.80s; it has %.300s",
            remote_http_address(e->http)->origin, wanted, names.data);
    } else if (wanted) {
        take_word(&e->model, wanted);
    } else {
        rc = base_fail(err, BASE_E_USAGE, "%s tells no model's name: give it with --model",
            remote_http_address(e->http)->origin);
    }
    base_buf_free(&names);
    return rc;
}

static int find_model(opening *o, base_err *err)
{
    base_json_doc *doc = NULL;
    int rc = look(o->e, "/v1/models", &doc, err);
    if (!rc) rc = choose_model(o, base_json_get(root_of(doc), "data"), err);
    base_json_free(doc);
    return rc;
}

/* "Qwen2.5-7B", "llama-3.1-70b": where no number of parameters is told, the name often says it. */
static uint64_t params_of_name(const char *name)
{
    for (const char *p = name; *p; p++) {
        if (!isdigit((unsigned char)*p) || (p > name && (isalnum((unsigned char)p[-1]) || p[-1] == '.')))
            continue;
        char *end;
        const double n = strtod(p, &end);
        if ((*end == 'b' || *end == 'B') && !isalnum((unsigned char)end[1]) && n < 10000)
            return (uint64_t)(n * 1e9);
        if ((*end == 'm' || *end == 'M') && !isalnum((unsigned char)end[1]) && n < 100000)
            return (uint64_t)(n * 1e6);
    }
    return 0;
}

/* vLLM tells it among its metrics, SGLang among its settings; where neither does, what is usual. */
static int find_block(remote_endpoint *e, base_err *err)
{
    static const char name[] = "block_size=\"";
    base_json_doc *doc = NULL;
    base_buf text = {0};
    long status = 0;
    int rc = 0;
    e->block = e->wire->block;
    if (e->wire == &remote_wire_sglang) {
        rc = look(e, "/get_server_info", &doc, err);
        const uint32_t told = number(root_of(doc), "page_size");
        if (told) e->block = told;
    } else if (e->wire == &remote_wire_vllm) {
        base_err why = {0};
        rc = remote_http_ask(e->http, "/metrics", NULL, &status, &text, &why);
        const char *at = rc ? NULL : memmem(text.data ? text.data : "", text.len, name, sizeof name - 1);
        const unsigned long told = at ? strtoul(at + sizeof name - 1, NULL, 10) : 0;
        if (told && told <= 1 << 20) e->block = (uint32_t)told;
        if (rc == BASE_E_CANCELLED && err) *err = why;
        if (rc != BASE_E_CANCELLED) rc = 0;
    }
    base_json_free(doc);
    base_buf_free(&text);
    return rc;
}

/* --- its template --------------------------------------------------------------------------------------- */

static int render(void *user, const remote_message *m, uint32_t n, bool open, base_buf *out, base_err *err)
{
    const opening *o = user;
    const remote_endpoint *e = o->e;
    base_buf body = {0}, answer = {0};
    base_json_doc *doc = NULL;
    if (!open && e->wire->renders_open)
        return base_fail(err, BASE_E_UNSUPPORTED, "it renders with the beginning of an answer only");
    e->wire->put_render(e->model, m, n, open, o->options->thinking, &body);
    int rc = remote_http_ask(e->http, e->wire->render, body.data, NULL, &answer, err);
    if (!rc) rc = base_json_parse(answer.data ? answer.data : "", answer.len, &doc, err);
    const base_json *root = root_of(doc);
    if (!rc && e->wire->rendered) {
        const base_json *text = base_json_get(root, e->wire->rendered);
        if (text && text->type == BASE_JSON_STRING)
            base_buf_add(out, text->string, text->string_len);
        else
            rc = base_fail(err, BASE_E_FORMAT, "the endpoint's %s answers without text", e->wire->render);
    } else if (!rc) {
        const base_json *list = base_json_get(root, "tokens");
        model_ids ids = {0};
        for (const base_json *t = list && list->type == BASE_JSON_ARRAY ? list->first : NULL; t; t = t->next)
            if (t->is_integer && t->integer >= 0 && t->integer < INT32_MAX)
                model_ids_add(&ids, (int32_t)t->integer);
        rc = remote_vocab_decode(e->vocab, ids.ids, (uint32_t)ids.n, out, err);
        model_ids_free(&ids);
    }
    base_json_free(doc);
    base_buf_free(&body);
    base_buf_free(&answer);
    return rc;
}

static int put_ids(remote_endpoint *e, const char *text, model_ids *out, base_err *err)
{
    int rc = remote_vocab_encode(e->vocab, text, strlen(text), true, out, err);
    for (size_t i = 0; i < out->n && !rc; i++) rc = remote_vocab_judge(e->vocab, out->ids[i], err);
    return rc;
}

/* llama-server leaves out of a rendered text what its tokenizer puts in front of every text. */
static int find_start(remote_endpoint *e, base_err *err)
{
    static const char body[] = "{\"content\":\"a\",\"add_special\":true}";
    static const char plain[] = "{\"content\":\"a\",\"add_special\":false}";
    base_buf with = {0}, without = {0};
    base_json_doc *a = NULL, *b = NULL;
    int rc = remote_http_ask(e->http, "/tokenize", body, NULL, &with, err);
    if (!rc) rc = remote_http_ask(e->http, "/tokenize", plain, NULL, &without, err);
    if (!rc) rc = base_json_parse(with.data ? with.data : "", with.len, &a, err);
    if (!rc) rc = base_json_parse(without.data ? without.data : "", without.len, &b, err);
    const base_json *more = rc ? NULL : base_json_get(root_of(a), "tokens"),
                    *less = rc ? NULL : base_json_get(root_of(b), "tokens");
    const base_json *first = base_json_at(more, 0), *other = base_json_at(less, 0);
    if (first && other && first->is_integer && more->n > less->n && first->integer != other->integer &&
        first->integer >= 0 && first->integer < INT32_MAX) {
        model_ids_add(&e->start, (int32_t)first->integer);
        remote_vocab_set_control(e->vocab, (int32_t)first->integer);
    }
    base_json_free(a);
    base_json_free(b);
    base_buf_free(&with);
    base_buf_free(&without);
    return rc;
}

static bool contains_any_case(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

/* As for a local model, whose file says more (model/text/template.c, choose_tools). template: NULL: not told. */
static model_tool_style choose_tools(const remote_endpoint *e, const char *template)
{
    const bool is_qwen = contains_any_case(e->model, "qwen");
    if (contains_any_case(e->model, "qwen2") && contains_any_case(e->model, "coder"))
        return MODEL_TOOLS_TAG_TOOLS;
    if (!template) return is_qwen ? MODEL_TOOLS_HERMES : MODEL_TOOLS_JSON;
    return model_tools_by_words(base_str_of(template), is_qwen);
}

static int find_form(opening *o, base_err *err)
{
    remote_endpoint *e = o->e;
    remote_form form = {0};
    e->vocab = remote_vocab_new(e->http, e->wire, e->model);
    int rc = remote_form_find(&form, render, o, err);
    if (rc) return rc;
    rc = put_ids(e, form.start, &e->start, err);
    if (!rc && !e->start.n && e->wire == &remote_wire_llama) rc = find_start(e, err);
    for (int role = 0; role < REMOTE_N_ROLES && !rc; role++) {
        rc = put_ids(e, form.begin[role], &e->begin[role], err);
        if (!rc) rc = put_ids(e, form.end[role], &e->end[role], err);
    }
    if (!rc && !e->end[MODEL_ROLE_ASSISTANT].n)
        rc = base_fail(err, BASE_E_UNSUPPORTED, "its template ends an answer with nothing");
    take_word(&e->differs, form.differs);
    remote_form_free(&form);
    return rc;
}

/* BASE_E_UNSUPPORTED: its ids are not the file's, so none are sent. */
static int check_vocabulary(opening *o, base_err *err)
{
    remote_endpoint *e = o->e;
    gguf_file *file = NULL;
    model_tokenizer *local = NULL;
    remote_vocab_likeness likeness = {0};
    model_ids marks = {0};
    if (!o->options->vocabulary) return 0;
    model_ids_add_all(&marks, &e->start);
    for (int role = 0; role < REMOTE_N_ROLES; role++) {
        model_ids_add_all(&marks, &e->begin[role]);
        model_ids_add_all(&marks, &e->end[role]);
    }
    int rc = gguf_open(&file, o->options->vocabulary, err);
    if (!rc) rc = model_tokenizer_load(&local, file, err);
    if (rc) {
        if (err) err->code = BASE_E_USAGE;
        base_err_prefix(err, "--vocabulary %s", o->options->vocabulary);
        rc = BASE_E_USAGE;
    } else {
        rc = remote_vocab_compare(e->vocab, local, &marks, &likeness, err);
    }
    if (!rc && likeness.differs)
        rc = base_fail(err, BASE_E_UNSUPPORTED, "its tokens are not those of %.80s: %s",
            base_path_name(o->options->vocabulary), likeness.differs);
    else if (!rc)
        e->n_alike = likeness.n_compared;
    free(likeness.differs);
    model_ids_free(&marks);
    model_tokenizer_free(local);
    gguf_close(file);
    return rc;
}

/* --- the interface -------------------------------------------------------------------------------------- */

int remote_endpoint_open(remote_endpoint **ret, const remote_endpoint_options *options, base_err *err)
{
    remote_endpoint *e = base_xcalloc(1, sizeof *e);
    opening o = {.e = e, .options = options};
    char *template = NULL;
    int rc = options->events ? remote_events_open(&e->events, options->events, err) : 0;
    if (!rc) rc = remote_http_open(&e->http, &options->http, err);
    if (!rc) rc = find_kind(&o, &template, err);
    if (!rc) rc = find_model(&o, err);
    if (!rc && !e->n_params) e->n_params = params_of_name(e->model);
    if (!rc) e->tools = choose_tools(e, template);
    if (!rc) rc = find_block(e, err);
    if (!rc && e->wire->has_ids) {
        base_err why = {0};
        rc = find_form(&o, &why);
        if (!rc) rc = check_vocabulary(&o, &why);
        if (rc == BASE_E_UNSUPPORTED || rc == BASE_E_NOT_FOUND) {
            take_word(&e->why_chat, why.msg);
            e->wire = e->wire->by_chat ? e->wire->by_chat : &remote_wire_chat;
            rc = 0;
        } else if (rc && err) {
            *err = why;
        }
    }
    free(template);
    if (rc) {
        remote_endpoint_close(e);
        return rc;
    }
    *ret = e;
    return 0;
}

int remote_endpoint_check(remote_endpoint *e, bool *ret_same, base_err *err)
{
    base_json_doc *doc = NULL;
    int rc = look(e, "/v1/models", &doc, err);
    const base_json *list = rc ? NULL : base_json_get(root_of(doc), "data");
    bool found = !list || list->type != BASE_JSON_ARRAY || !list->n; /* it tells none */
    for (const base_json *m = found ? NULL : list->first; m; m = m->next)
        found = found || !strcmp(base_json_str(m, "id", ""), e->model);
    if (!rc) *ret_same = found;
    base_json_free(doc);
    return rc;
}

bool remote_endpoint_is_fresh(remote_endpoint *e)
{
    base_json_doc *doc = NULL;
    if (e->wire != &remote_wire_llama || e->hides_slots || look(e, "/slots", &doc, NULL)) return false;
    const base_json *list = root_of(doc);
    e->hides_slots = !list || list->type != BASE_JSON_ARRAY;
    bool is_fresh = !e->hides_slots && list->n;
    for (const base_json *slot = is_fresh ? list->first : NULL; slot; slot = slot->next)
        is_fresh = is_fresh && !base_json_get(slot, "id_task"); /* of the request that it works on, or did */
    base_json_free(doc);
    return is_fresh;
}

void remote_endpoint_close(remote_endpoint *e)
{
    if (!e) return;
    remote_vocab_free(e->vocab);
    remote_events_close(e->events);
    remote_http_close(e->http);
    model_ids_free(&e->start);
    for (int role = 0; role < REMOTE_N_ROLES; role++) {
        model_ids_free(&e->begin[role]);
        model_ids_free(&e->end[role]);
    }
    free(e->kind);
    free(e->model);
    free(e->format);
    free(e->build);
    free(e->why_chat);
    free(e->differs);
    free(e);
}

const char *remote_endpoint_name(const remote_endpoint *e)
{
    const char *model = e->model, *name = base_path_name(model);
    const bool is_path = *model == '/' || *model == '.' || base_ends_with(model, ".gguf");
    return is_path && *name ? name : model;
}

void remote_endpoint_describe(const remote_endpoint *e, base_buf *out)
{
    base_buf_printf(out, "%s at %s serves %.80s, ", e->kind, remote_http_address(e->http)->origin,
        remote_endpoint_name(e));
    if (e->n_ctx)
        base_buf_printf(out, "%u tokens of context", e->n_ctx);
    else
        base_buf_puts(out, "a context that it does not tell");
    base_buf_puts(out, e->wire->has_ids ? ", asked by token ids" : ", asked by messages (chat)");
    if (e->n_alike) base_buf_puts(out, " that the local vocabulary has too");
}

bool remote_endpoint_blames_grammar(long status, const base_err *why)
{
    static const char *const words[] = {"rammar", "rigger", "ebnf", "EBNF"};
    bool blames = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) blames = blames || strstr(why->msg, words[i]);
    return blames && (!status || status == 400 || status == 422);
}

int remote_endpoint_explain_length(long status, base_err *why)
{
    const base_err said = *why;
    if (status != 400 || (!strstr(said.msg, "context size") && !strstr(said.msg, "context length")))
        return said.code;
    return base_fail(why, BASE_E_LIMIT, "%s; /compact starts a smaller session", said.msg);
}

int remote_endpoint_fail_full(bool is_fixed, uint32_t n, uint32_t n_ctx, base_err *err)
{
    if (is_fixed)
        return base_fail(err, BASE_E_LIMIT,
            "the endpoint's context of %u tokens has no room for kvist's own prompt and AGENTS.md; "
            "serve the model with a larger one (of a llama-server each slot has its share of -c)",
            n_ctx);
    if (n > n_ctx)
        return base_fail(err, BASE_E_LIMIT,
            "a text of %u tokens is larger than the endpoint's whole context of %u", n, n_ctx);
    return base_fail(err, BASE_E_LIMIT,
        "the endpoint's context ends at %u tokens; /compact starts a smaller session", n_ctx);
}

void remote_endpoint_read_usage(remote_endpoint *endpoint, remote_sse *sse, uint32_t patience_ms,
    remote_sse_fn *fn, void *user, const bool *is_done)
{
    enum { MOST_BYTES = 1 << 20 };
    base_err why = {0};
    bool over = false;
    size_t n = 0;
    remote_http_finish(endpoint->http, patience_ms);
    while (n < MOST_BYTES && !over && !*is_done) {
        base_buf bytes = {0};
        if (remote_http_read(endpoint->http, &bytes, &over, &why)) over = true;
        if (bytes.len && remote_sse_feed(sse, bytes.data, bytes.len, fn, user, &why)) over = true;
        n += bytes.len;
        base_buf_free(&bytes);
    }
}
