/* Reading a server's messages (contract: message.h). */
#include "mcp/message.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "mcp/config.h"

const char mcp_newest_revision[] = "2025-06-18";

const char *mcp_revision(const base_json *result)
{
    static const char *const known[] = {"2024-11-05", "2025-03-26", mcp_newest_revision, "2025-11-25"};
    const char *word = base_json_str(result, "protocolVersion", "");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i], word)) return known[i];
    return NULL;
}

void mcp_message_free(mcp_message *m)
{
    base_json_free(m->doc);
    *m = (mcp_message){0};
}

void mcp_message_parse(const char *line, size_t n, mcp_message *ret)
{
    *ret = (mcp_message){.id = -1};
    if (base_json_parse(line, n, &ret->doc, NULL)) return;
    const base_json *root = base_json_root(ret->doc), *id = base_json_get(root, "id");
    if (!root || root->type != BASE_JSON_OBJECT) return;
    ret->method = base_json_str(root, "method", NULL);
    const bool has_id = id && (id->type == BASE_JSON_STRING || id->type == BASE_JSON_NUMBER);
    const base_json *result = base_json_get(root, "result"), *error = base_json_get(root, "error");
    if (ret->method) {
        ret->kind = has_id ? MCP_REQUEST : MCP_NOTE;
        ret->value = id;
    } else if (has_id && (result || error)) {
        ret->kind = error ? MCP_REFUSAL : MCP_ANSWER;
        ret->value = error ? error : result;
        if (id->type == BASE_JSON_NUMBER && id->is_integer && id->integer >= 0) ret->id = id->integer;
    }
}

/* --- tools ---------------------------------------------------------------------------------------------- */

static void free_tool(mcp_tool *t)
{
    free(t->name);
    free(t->about);
    free(t->schema);
    for (char **s = t->needs; s && *s; s++) free(*s);
    free(t->needs);
}

void mcp_tools_free(mcp_tools *t)
{
    for (size_t i = 0; i < t->n; i++) free_tool(&t->all[i]);
    free(t->all);
    *t = (mcp_tools){0};
}

mcp_tool *mcp_tools_get(const mcp_tools *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->all[i].name, name)) return &t->all[i];
    return NULL;
}

/* One line, cut between characters. */
static char *line_of(const char *s, size_t most)
{
    base_buf clean = {0};
    const size_t n = strlen(s);
    base_utf8_sanitise(&clean, s, n < 4 * most ? n : base_utf8_whole(s, 4 * most), false);
    if (clean.len > most) {
        clean.len = base_utf8_whole(clean.data, most - 3);
        base_buf_puts(&clean, "...");
    }
    return base_buf_take(&clean);
}

static char **names_of(const base_json *list)
{
    size_t n = 0;
    char **names = base_xcalloc((list && list->type == BASE_JSON_ARRAY ? list->n : 0) + 1, sizeof *names);
    for (const base_json *m = list && list->type == BASE_JSON_ARRAY ? list->first : NULL; m; m = m->next)
        if (m->type == BASE_JSON_STRING) names[n++] = line_of(m->string, 100);
    return names;
}

static void add_tool(mcp_tools *t, const base_json *value)
{
    const char *name = base_json_str(value, "name", "");
    if (t->n >= MCP_MOST_TOOLS || !mcp_is_name(name, 128, true) || mcp_tools_get(t, name)) {
        t->n_left_out++;
        return;
    }
    const base_json *schema = base_json_get(value, "inputSchema");
    base_buf text = {0}, whole = {0};
    if (schema && schema->type == BASE_JSON_OBJECT)
        base_json_put(&text, schema);
    else
        base_buf_puts(&text, "{}");
    base_json_put(&whole, value);
    base_grow(&t->all, &t->cap, t->n + 1, sizeof *t->all);
    t->all[t->n++] = (mcp_tool){.name = base_xstrdup(name),
        .about =
            line_of(base_json_str(value, "description", base_json_str(value, "title", "")), MCP_MOST_ABOUT),
        .schema = line_of(text.data, MCP_MOST_SCHEMA),
        .needs = names_of(base_json_get(schema, "required"))};
    base_sha256 print;
    base_sha256_init(&print);
    base_sha256_add(&print, whole.data, whole.len);
    base_sha256_end(&print, t->all[t->n - 1].print);
    base_buf_free(&text);
    base_buf_free(&whole);
}

void mcp_tools_add(mcp_tools *t, const base_json *result, char **ret_cursor)
{
    const base_json *list = base_json_get(result, "tools");
    for (const base_json *m = list && list->type == BASE_JSON_ARRAY ? list->first : NULL; m; m = m->next)
        add_tool(t, m);
    const char *cursor = base_json_str(result, "nextCursor", NULL);
    *ret_cursor = cursor && *cursor ? base_xstrdup(cursor) : NULL;
}

/* --- a result ------------------------------------------------------------------------------------------- */

static void put_content(const base_json *c, base_buf *out)
{
    const char *type = base_json_str(c, "type", "");
    const base_json *resource = base_json_get(c, "resource");
    const base_json *text = base_json_get(resource ? resource : c, "text");
    if (out->len && out->data[out->len - 1] != '\n') base_buf_putc(out, '\n');
    if (text && text->type == BASE_JSON_STRING) {
        base_buf_add(out, text->string, text->string_len);
        return;
    }
    char *kind = line_of(type, 40);
    char *mime = line_of(base_json_str(resource ? resource : c, "mimeType", ""), 80);
    char *uri = line_of(base_json_str(resource ? resource : c, "uri", ""), 400);
    base_buf_printf(out, "[%s%s%s%s%s: no text]", *kind ? kind : "something", *mime ? ", " : "", mime,
        *uri ? ", " : "", uri);
    free(kind);
    free(mime);
    free(uri);
}

bool mcp_result_text(const base_json *result, base_buf *out)
{
    const base_json *content = base_json_get(result, "content");
    const base_json *structured = base_json_get(result, "structuredContent");
    const size_t before = out->len;
    for (const base_json *m = content && content->type == BASE_JSON_ARRAY ? content->first : NULL; m;
         m = m->next)
        put_content(m, out);
    if (out->len == before && structured) base_json_put(out, structured);
    return base_json_bool(result, "isError", false);
}
