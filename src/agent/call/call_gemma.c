/* See call_gemma.h. */
#include "agent/call/call_gemma.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/call/prompt.h"
#include "base/json.h"
#include "base/mem.h"

static const char quote[] = "<|\"|>", call_open[] = "<|tool_call>", call_close[] = "<tool_call|>",
                  tool_open[] = "<|tool>", tool_close[] = "<tool|>";

static void put_mark(const char *mark, bool is_token, base_buf *out)
{
    if (is_token) base_buf_putc(out, AGENT_PROMPT_MARK);
    base_buf_puts(out, mark);
    if (is_token) base_buf_putc(out, AGENT_PROMPT_MARK);
}

/* No byte of it begins a mark. */
static void put_plain(const char *text, size_t n, base_buf *out)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] != AGENT_PROMPT_MARK) base_buf_putc(out, text[i]);
}

static void put_text(const char *text, size_t n, bool has_marks, base_buf *out)
{
    put_mark(quote, has_marks, out);
    put_plain(text, n, out);
    put_mark(quote, has_marks, out);
}

/* ---- functions ---- */

static int by_name(const void *a, const void *b)
{
    const tool_argument *x = *(const tool_argument *const *)a, *y = *(const tool_argument *const *)b;
    return strcasecmp(x->name, y->name);
}

static void put_word(const char *key, const char *text, base_buf *out)
{
    base_buf_printf(out, "%s:", key);
    put_text(text, strlen(text), true, out);
}

static void put_argument(const tool_argument *a, base_buf *out)
{
    const char *type = a->type == TOOL_ARGUMENT_INTEGER   ? "INTEGER"
                       : a->type == TOOL_ARGUMENT_BOOLEAN ? "BOOLEAN"
                                                          : "STRING";
    base_buf_printf(out, "%s:{", a->name);
    if (a->about) {
        put_word("description", a->about, out);
        base_buf_putc(out, ',');
    }
    for (const char *const *c = a->choices; c && *c; c++) {
        base_buf_puts(out, c == a->choices ? "enum:[" : ",");
        put_text(*c, strlen(*c), true, out);
    }
    if (a->choices) base_buf_puts(out, "],");
    put_word("type", type, out);
    base_buf_putc(out, '}');
}

void agent_call_gemma_declare(
    const tool_entry *t, const tool_argument *const *arguments, size_t n, base_buf *out)
{
    const tool_argument **sorted = base_xcalloc(n + 1, sizeof *sorted);
    for (size_t i = 0; i < n; i++) sorted[i] = arguments[i];
    if (n) qsort(sorted, n, sizeof *sorted, by_name);
    put_mark(tool_open, true, out);
    base_buf_printf(out, "declaration:%s{", t->name);
    put_word("description", t->about, out);
    base_buf_puts(out, ",parameters:{");
    for (size_t i = 0; i < n; i++) {
        base_buf_puts(out, i ? "," : "properties:{");
        put_argument(sorted[i], out);
    }
    if (n) base_buf_puts(out, "},");
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!arguments[i]->required) continue;
        base_buf_puts(out, any ? "," : "required:[");
        put_text(arguments[i]->name, strlen(arguments[i]->name), true, out);
        any = true;
    }
    if (any) base_buf_puts(out, "],");
    put_word("type", "OBJECT", out);
    base_buf_puts(out, "}}");
    put_mark(tool_close, true, out);
    free(sorted);
}

/* ---- calls ---- */

/* is_open: text stays without its end. Numbers and words are JSON's; nothing of kvist's has lists or objects in it. */
static void put_value(const base_json *v, bool is_open, bool has_marks, base_buf *out)
{
    if (v->type != BASE_JSON_STRING) {
        base_json_put(out, v);
        return;
    }
    put_mark(quote, has_marks, out);
    put_plain(v->string, v->string_len, out);
    if (!is_open) put_mark(quote, has_marks, out);
}

void agent_call_gemma_put(const char *json, const char *payload, bool has_marks, base_buf *out)
{
    bool is_complete;
    base_json_doc *doc = base_json_parse_begun(json, &is_complete);
    const base_json *root = base_json_root(doc), *arguments = base_json_get(root, "arguments");
    put_mark(call_open, has_marks, out);
    base_buf_printf(out, "call:%s{", base_json_str(root, "name", ""));
    for (const base_json *m = arguments ? arguments->first : NULL; m; m = m->next) {
        base_buf_printf(out, "%s%s:", m == arguments->first ? "" : ",", m->key);
        put_value(m, !m->next && !is_complete, has_marks, out);
    }
    if (payload) {
        base_buf_printf(out, "%s%s:", arguments && arguments->first ? "," : "", payload);
        put_mark(quote, has_marks, out);
    } else if (is_complete) {
        base_buf_putc(out, '}');
        put_mark(call_close, has_marks, out);
    }
    base_json_free(doc);
}

/* ---- reading ---- */

enum { MAX_WORD = 512 };

/* Bytes of text, as they may be cut: a letter's bytes can come in two pieces. */
static void read_text(const char *piece, size_t n, base_buf *json)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)piece[i];
        const char *known = c ? strchr(from, c) : NULL;
        if (known)
            base_buf_printf(json, "\\%c", to[known - from]);
        else if (c < 0x20)
            base_buf_printf(json, "\\u%04x", c);
        else
            base_buf_putc(json, (char)c);
    }
}

/* A number, true, false; anything else was meant as text. */
void agent_call_gemma_end_word(base_buf *word, base_buf *json)
{
    base_json_doc *doc = NULL;
    if (!word->len) return;
    if (base_json_parse(word->data, word->len, &doc, NULL))
        base_json_put_str(json, word->data, word->len);
    else
        base_buf_add(json, word->data, word->len);
    base_json_free(doc);
    base_buf_clear(word);
}

void agent_call_gemma_read(const char *piece, size_t n, bool in_text, base_buf *word, base_buf *json)
{
    if (in_text) {
        read_text(piece, n, json);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const char c = piece[i];
        if (!c || !strchr(":,{}[] \t\r\n", c)) {
            if (word->len < MAX_WORD) base_buf_putc(word, c);
            continue;
        }
        if (c == ':' && word->len) {
            base_json_put_str(json, word->data, word->len);
            base_buf_clear(word);
        }
        agent_call_gemma_end_word(word, json);
        if (!strchr(" \t\r\n", c)) base_buf_putc(json, c);
        if (c == ':' || c == ',') base_buf_putc(json, ' ');
    }
}
