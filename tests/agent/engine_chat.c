#include "engine_chat.h"

#include <stdlib.h>
#include <string.h>

#include "agent/engine/engine_script.h"
#include "agent/engine/standin.h"
#include "base/mem.h"

typedef struct chat {
    engine base;
    engine_script script;
    const atomic_bool *cancel;
    int32_t *ids; /* stand-ins */
    bool *active; /* [n] */
    size_t cap_ids, cap_active;
    uint32_t n, n_sent, n_computed;
    base_buf sent;
    model_ids answer; /* what came back, the end last */
    size_t answer_at;
    bool lost_tokenizer;
} chat;

static chat *as_chat(const engine *e)
{
    return (chat *)(uintptr_t)e;
}

static void chat_close(engine *e)
{
    chat *c = as_chat(e);
    script_fini(&c->script);
    base_buf_free(&c->sent);
    model_ids_free(&c->answer);
    free(c->ids);
    free(c->active);
    free(c);
}

static void chat_info(const engine *e, engine_info *ret)
{
    const chat *c = as_chat(e);
    *ret = (engine_info){.model = c->script.model,
        .model_hash = "chat",
        .quantisation = "unknown",
        .policy = "spans",
        .backend = "chat",
        .tools = MODEL_TOOLS_TAG_TOOLS,
        .n_ctx = c->script.n_ctx,
        .model_n_ctx = c->script.n_ctx,
        .n_layer = 1,
        .n_lanes = 1,
        .n_all_lanes = 1,
        .n_vocab = STANDIN_N};
}

static void chat_stats(const engine *e, kv_stats *ret)
{
    const chat *c = as_chat(e);
    *ret = (kv_stats){.n_tokens = c->n,
        .n_ctx = c->script.n_ctx,
        .n_lanes = 1,
        .n_all_lanes = 1,
        .reused = c->n_sent < c->n ? c->n_sent : c->n,
        .computed = c->n_computed};
    for (uint32_t i = 0; i < c->n; i++) ret->active += c->active[i];
    ret->host = c->n - ret->active;
}

static const int32_t *chat_ids(const engine *e, uint32_t *ret_n)
{
    *ret_n = as_chat(e)->n;
    return as_chat(e)->ids;
}

static int chat_encode(engine *e, const char *text, size_t n, model_ids *out, base_err *err)
{
    if (as_chat(e)->lost_tokenizer) return base_fail(err, BASE_E_IO, "the tokenizer does not answer");
    return standin_encode(e, text, n, out, err);
}

void engine_chat_lose_tokenizer(engine *e, bool lost)
{
    as_chat(e)->lost_tokenizer = lost;
}

static void add(chat *c, int32_t id)
{
    base_grow(&c->ids, &c->cap_ids, c->n + 1, sizeof *c->ids);
    base_grow(&c->active, &c->cap_active, c->n + 1, sizeof *c->active);
    c->ids[c->n] = id;
    c->active[c->n++] = true;
}

static int chat_append(engine *e, const kv_segment *segment, const int32_t *ids, uint32_t n, base_err *err)
{
    chat *c = as_chat(e);
    const script_step *failure = script_due(&c->script, STEP_FAIL);
    if (failure) return base_fail(err, BASE_E_DEVICE, "%s", failure->text);
    if (n > c->script.n_ctx - c->n)
        return base_fail(err, BASE_E_LIMIT,
            "the context ends at %u tokens; /compact starts a smaller session", c->script.n_ctx);
    for (uint32_t i = 0; i < n; i++) add(c, ids[i]);
    return 0;
}

static int chat_truncate(engine *e, uint32_t n, base_err *err)
{
    chat *c = as_chat(e);
    if (n > c->n) return base_fail(err, BASE_E_USAGE, "cannot cut %u tokens back to %u", c->n, n);
    c->n = n;
    return 0;
}

static int chat_restart(engine *e, const char *row_file, base_err *err)
{
    as_chat(e)->n = as_chat(e)->n_sent = 0;
    return 0;
}

static void chat_set_sampling(engine *e, const model_sampling *s)
{
}

static void chat_answer_begins(engine *e)
{
    as_chat(e)->answer.n = as_chat(e)->answer_at = 0;
}

/* The request: every message, with the text of it that is active. */
static void send(chat *c)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    base_buf_clear(&c->sent);
    for (uint32_t i = 0; i < c->n; i++) {
        size_t n = 0;
        const int32_t id = c->ids[i];
        if (id >= STANDIN_CONTROL && id < STANDIN_CONTROL + 4)
            base_buf_printf(&c->sent, "[%s]\n", roles[id - STANDIN_CONTROL]);
        else if (id == STANDIN_END)
            base_buf_putc(&c->sent, '\n');
        else if (c->active[i]) {
            const char *piece = standin_piece(&c->base, id, &n);
            base_buf_add(&c->sent, piece, n);
        }
    }
    c->n_computed += c->n - (c->n_sent < c->n ? c->n_sent : c->n);
    c->n_sent = c->n;
}

static int chat_next(engine *e, kv_origin origin, uint32_t turn, int32_t *ret_id, bool *ret_end,
    int32_t *mask_wanted, base_err *err)
{
    chat *c = as_chat(e);
    if (c->cancel && atomic_load(c->cancel)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
    if (c->answer_at == c->answer.n) { /* behind the end of one comes another one */
        send(c);
        c->answer.n = c->answer_at = 0;
        const char *text = script_answer(&c->script);
        if (!text) return base_fail(err, BASE_E_STATE, "the endpoint has no further answer");
        standin_encode(e, text, strlen(text), &c->answer, NULL);
        model_ids_add(&c->answer, STANDIN_END);
    }
    if (c->n >= c->script.n_ctx) return base_fail(err, BASE_E_LIMIT, "the context is full");
    *ret_id = c->answer.ids[c->answer_at++];
    *ret_end = *ret_id == STANDIN_END;
    if (mask_wanted) *mask_wanted = -1;
    add(c, *ret_id);
    c->n_sent = c->n; /* what it wrote itself it need not read */
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

const char *engine_chat_sent(const engine *e)
{
    return as_chat(e)->sent.data ? as_chat(e)->sent.data : "";
}

static const engine_ops chat_ops = {
    .close = chat_close,
    .info = chat_info,
    .stats = chat_stats,
    .encode = chat_encode,
    .scaffold = standin_scaffold,
    .piece = standin_piece,
    .is_control = standin_is_control,
    .ids = chat_ids,
    .append = chat_append,
    .truncate = chat_truncate,
    .restart = chat_restart,
    .set_sampling = chat_set_sampling,
    .answer_begins = chat_answer_begins,
    .next = chat_next,
    .set_active = chat_set_active,
    .is_active = chat_is_active,
};

int engine_chat_open(engine **ret, const char *script, size_t n, const engine_options *options, bool *resumed,
    base_err *why_not, base_err *err)
{
    chat *c = base_xcalloc(1, sizeof *c);
    *c = (chat){.base = {.ops = &chat_ops, .can = ENGINE_SPANS},
        .script = {.model = base_xstrdup("chat"), .n_ctx = 8192, .n_lanes = 1},
        .cancel = options->cancel};
    if (resumed) *resumed = false;
    if (why_not) *why_not = (base_err){.code = BASE_E_UNSUPPORTED, .msg = "an endpoint keeps no session"};
    int rc = script_parse(&c->script, script, n, err);
    if (rc) {
        chat_close(&c->base);
        return rc;
    }
    *ret = &c->base;
    return 0;
}
