/* See call_xml.h. */
#include "agent/call/call_xml.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char agent_call_xml_payload[] = "content";

static const char function_open[] = "<function=", function_close[] = "</function>",
                  parameter_open[] = "<parameter=", parameter_close[] = "</parameter>",
                  call_close[] = "</tool_call>", seed_close[] = "</seed:tool_call>";

/* ---- reading ---- */

typedef struct cursor {
    const char *text;
    size_t n, at;
    bool final;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->n && memchr(" \t\r\n", c->text[c->at], 4)) c->at++;
}

static bool take(cursor *c, const char *word)
{
    const size_t n = strlen(word);
    if (c->n - c->at < n || memcmp(c->text + c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

/* Do the bytes that are left begin `word`, and may the rest of it still come? */
static bool may_become(const cursor *c, const char *word)
{
    const size_t n = c->n - c->at;
    return !c->final && n < strlen(word) && memcmp(c->text + c->at, word, n) == 0;
}

/* A name up to '>', on this line; 0 bytes: none, or not yet. */
static base_str take_name(cursor *c)
{
    const char *from = c->text + c->at;
    size_t n = 0;
    while (c->at + n < c->n && !memchr(">\n<", from[n], 3)) n++;
    if (c->at + n == c->n || from[n] != '>') return (base_str){from, 0};
    c->at += n + 1;
    while (n && memchr(" \t\"'", from[n - 1], 4)) n--;
    size_t skip = 0;
    while (skip < n && memchr(" \t\"'", from[skip], 4)) skip++;
    return (base_str){from + skip, n - skip};
}

static const char *find(const cursor *c, size_t at, const char *word)
{
    return memmem(c->text + at, c->n - at, word, strlen(word));
}

/*
 * Up to the first line that begins with the parameter's end; a value that has none on a line of its own ends
 * at the next end, and one that has none at all where something else begins. false: not yet.
 */
static bool take_value(cursor *c, base_str *ret)
{
    static const char *const others[] = {
        "\n<parameter=", "\n</function>", "\n</tool_call>", "\n</seed:tool_call>"};
    if (c->at < c->n && c->text[c->at] == '\r') c->at++;
    const size_t line = c->at;
    if (c->at < c->n && c->text[c->at] == '\n') c->at++;
    const char *from = c->text + c->at, *end = find(c, line, "\n</parameter>");
    const char *same_line = find(c, c->at, parameter_close);
    const bool is_one_line = same_line && line == c->at; /* <parameter=x>3</parameter> */
    if (end && !is_one_line) {
        const size_t behind = (size_t)(end - c->text) + 1 + strlen(parameter_close);
        *ret = (base_str){from, end > from ? (size_t)(end - from) : 0};
        c->at = behind;
        return true;
    }
    if (same_line && (is_one_line || c->final)) {
        *ret = (base_str){from, (size_t)(same_line - from)};
        c->at = (size_t)(same_line - c->text) + strlen(parameter_close);
        return true;
    }
    if (!c->final) return false;
    const char *stop = c->text + c->n;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *other = find(c, c->at, others[i]);
        if (other && other < stop) stop = other;
    }
    *ret = (base_str){from, (size_t)(stop - from)};
    c->at = (size_t)(stop - c->text);
    return true;
}

typedef enum step { MORE, OVER, NOT_YET } step;

/* One parameter, or the function's end. What is neither ends it too: the model forgot the end. */
static step take_parameter(cursor *c, base_buf *json)
{
    base_str value;
    skip_space(c);
    if (take(c, function_close)) return OVER;
    if (c->at == c->n && !c->final) return NOT_YET;
    if (may_become(c, function_close) || may_become(c, parameter_open)) return NOT_YET;
    if (!take(c, parameter_open)) return OVER;
    const base_str key = take_name(c);
    if (!key.len) return c->final ? OVER : NOT_YET;
    if (!take_value(c, &value)) return NOT_YET;
    if (json->len > 1) base_buf_putc(json, ',');
    base_json_put_str(json, key.ptr, key.len);
    base_buf_putc(json, ':');
    base_json_put_str(json, value.ptr, value.len);
    return MORE;
}

size_t agent_call_xml_read(const char *text, size_t n, bool final, agent_call *call, bool *partial)
{
    cursor c = {text, n, 0, final};
    *partial = may_become(&c, function_open);
    if (!take(&c, function_open)) return 0;
    const base_str name = take_name(&c);
    *partial = !name.len && !final && !memchr(text + c.at, '\n', n - c.at);
    if (!name.len) return 0;
    base_buf json = {0};
    step s;
    base_buf_putc(&json, '{');
    while ((s = take_parameter(&c, &json)) == MORE)
        ;
    base_buf_putc(&json, '}');
    *partial = s == NOT_YET;
    if (s == OVER) {
        if (base_json_parse(json.data, json.len, &call->arguments, NULL))
            base_json_parse(
                "{}", 2, &call->arguments, NULL); /* a parameter twice, or bytes that are no text */
        call->name = base_xstrndup(name.ptr, name.len);
    }
    base_buf_free(&json);
    if (s != OVER) return 0;
    const size_t end = c.at;
    skip_space(&c);
    if (take(&c, call_close) || take(&c, seed_close)) return c.at;
    *partial = may_become(&c, call_close) || may_become(&c, seed_close);
    return end;
}

/* ---- writing ---- */

static void put_value(const base_json *v, base_buf *out)
{
    if (v->type == BASE_JSON_STRING)
        base_buf_add(out, v->string, v->string_len);
    else
        base_json_put(out, v);
}

/* around: what stands on either side of a value */
static void open_parameter(const char *key, const char *around, base_buf *out)
{
    base_buf_printf(out, "%s%s>%s", parameter_open, key, around);
}

void agent_call_xml_put(
    model_tool_style style, const char *json, const char *payload, bool is_open, base_buf *out)
{
    const bool is_seed = style == MODEL_TOOLS_SEED;
    const char *around = is_seed ? "" : "\n";
    bool is_complete;
    base_json_doc *doc = base_json_parse_begun(json, &is_complete);
    const base_json *root = base_json_root(doc), *arguments = base_json_get(root, "arguments");
    base_buf_printf(out, "%s\n%s%s>\n", is_seed ? "<seed:tool_call>" : "<tool_call>", function_open,
        base_json_str(root, "name", ""));
    for (const base_json *m = arguments ? arguments->first : NULL; m; m = m->next) {
        open_parameter(m->key, around, out);
        put_value(m, out);
        if (m->next || is_complete) base_buf_printf(out, "%s%s\n", around, parameter_close);
    }
    if (payload) {
        open_parameter(agent_call_xml_payload, around, out);
        base_buf_puts(out, payload);
        const bool ends_line = out->len && out->data[out->len - 1] == '\n';
        if (!is_open) base_buf_printf(out, "%s%s\n", ends_line ? "" : around, parameter_close);
    }
    if (is_complete && !is_open)
        base_buf_printf(out, "%s\n%s", function_close, is_seed ? seed_close : call_close);
    base_json_free(doc);
}
