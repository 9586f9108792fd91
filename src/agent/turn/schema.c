/*
 * Answers that are JSON of a schema (--schema). The model is told of it behind the request, the engine holds the answer
 * to it where it can, and what came is checked here before anybody sees it.
 */
#include <string.h>

#include "agent/turn/turn.h"

void agent__put_schema(const agent *a, base_buf *request)
{
    if (!a->settings.schema) return;
    base_buf_puts(request, "\n\nAnswer with JSON on one line and nothing else, of this JSON Schema:\n");
    base_json_put_text(request, a->settings.schema_text);
}

engine_hold agent__hold(const agent *a, bool calls)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    const uint32_t room = s.n_ctx > s.n_tokens ? s.n_ctx - s.n_tokens : 0;
    return (engine_hold){.schema = a->settings.schema,
        .text = a->settings.schema_text,
        /* Bare JSON cannot be told from a value, and a mark is no text that a value's grammar could begin with. */
        .calls = calls && (a->info.tools == MODEL_TOOLS_HARMONY ||
                              (a->info.tools != MODEL_TOOLS_JSON && !model_tools_are_marked(a->info.tools))),
        .n_tokens = room < a->settings.max_tokens ? room : a->settings.max_tokens};
}

bool agent__is_json(const char *text, size_t n)
{
    while (n && strchr(" \t\r\n", *text) && *text) text++, n--;
    return n && *text && strchr("{[\"", *text);
}

/* What stands in the fence that the text is, else the text. */
static base_str without_fence(base_str s)
{
    const char *line = s.len > 6 && !memcmp(s.ptr, "```", 3) ? memchr(s.ptr, '\n', s.len) : NULL;
    if (!line || memcmp(s.ptr + s.len - 3, "```", 3) != 0) return s;
    return base_str_trim((base_str){line, (size_t)(s.ptr + s.len - 3 - line)});
}

static base_str without_thought(base_str s)
{
    static const char end[] = "</think>";
    if (s.len < 7 || memcmp(s.ptr, "<think>", 7) != 0) return s;
    const char *at = memmem(s.ptr, s.len, end, sizeof end - 1);
    if (!at) return s;
    at += sizeof end - 1;
    return base_str_trim((base_str){at, (size_t)(s.ptr + s.len - at)});
}

int agent__take_json(const agent *a, const char *text, size_t n, base_buf *ret, base_err *err)
{
    const base_str json = without_fence(without_thought(base_str_trim((base_str){text, n})));
    if (!json.len) return base_fail(err, BASE_E_FORMAT, "there is no answer");
    const int rc = base_schema_check(a->settings.schema, json.ptr, json.len, err);
    if (rc) return rc;
    base_buf copy = {0};
    base_buf_add(&copy, json.ptr, json.len);
    base_json_put_text(ret, copy.data);
    base_buf_free(&copy);
    return BASE_OK;
}

void agent__put_schema_again(const agent *a, const base_err *why, base_buf *asking)
{
    base_buf_printf(asking,
        "That is not JSON of the schema: %s. Answer once more, with the JSON on one line and nothing else.",
        why->msg);
}
