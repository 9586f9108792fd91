/*
 * Results as a model reads them, and arguments as a model writes them: sentences that end in the next call,
 * caps with a handle to the rest, numbers inside strings, paths with stray quotes.
 */
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/tree/listing.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define STATUS_WORD(id, word) [TOOL_##id] = word,
static const char *const status_words[] = {TOOL_STATUSES(STATUS_WORD)};
#undef STATUS_WORD

const char *tool_status_word(tool_status s)
{
    return (unsigned)s < TOOL_N_STATUSES ? status_words[s] : "unknown";
}

void tool_result_free(tool_result *r)
{
    base_buf_free(&r->text);
    for (uint32_t i = 0; i < r->n_sources; i++) free(r->sources[i].path);
    free(r->sources);
    for (char **p = r->changed; p && *p; p++) free(*p);
    free(r->changed);
    free(r->notice);
    free(r->summary);
    free(r->diff);
    memset(r, 0, sizeof *r);
}

void tool_preview_free(tool_preview *p)
{
    free(p->headline);
    free(p->detail);
    if (p->free_plan) p->free_plan(p->plan);
    memset(p, 0, sizeof *p);
}

void tool__say(tool_result *r, tool_status s, const char *format, ...)
{
    va_list args;
    r->status = s;
    va_start(args, format);
    base_buf_vprintf(&r->text, format, args);
    va_end(args);
}

void tool__quote(base_buf *out, const char *s)
{
    base_json_put_str(out, s, strlen(s));
}

void tool__quote_shell(base_buf *out, const char *s)
{
    base_buf_putc(out, '\'');
    for (; *s; s++) {
        if (*s == '\'')
            base_buf_puts(out, "'\\''");
        else
            base_buf_putc(out, *s);
    }
    base_buf_putc(out, '\'');
}

void tool__say_path_error(
    tool_workspace *w, tool_result *r, const char *tool, const char *given, const base_err *err)
{
    tool__say(r, err->code == BASE_E_USAGE || err->code == BASE_E_UNSUPPORTED ? TOOL_REFUSED : TOOL_FAILED,
        "%s.\n", err->msg);
    if (err->code != BASE_E_NOT_FOUND && err->code != BASE_E_USAGE) return;
    const char *near[4];
    base_err nothing;
    if (tool__workspace_list(w, NULL, &nothing)) return;
    size_t n = tool__listing_near(&w->listing, given, near, 4);
    if (!n) {
        if (err->code == BASE_E_NOT_FOUND) base_buf_puts(&r->text, "Next: list {}\n");
        return;
    }
    base_buf_puts(&r->text, "Did you mean");
    for (size_t i = 0; i < n; i++) {
        base_buf_puts(&r->text, i ? ", " : " ");
        tool__path_show(&r->text, near[i]);
    }
    base_buf_puts(&r->text, "? Next: ");
    base_buf_puts(&r->text, !strcmp(tool, "write") ? "read" : tool);
    base_buf_puts(&r->text, " {\"path\": ");
    tool__quote(&r->text, near[0]);
    base_buf_puts(&r->text, !strcmp(tool, "rewrite") ? ", \"name\": ...}\n" : "}\n");
}

void tool__add_source(tool_result *r, size_t from, size_t to, const char *path, const char *version,
    size_t file_from, size_t line)
{
    if (to > UINT32_MAX || file_from > UINT32_MAX || line > UINT32_MAX) return;
    r->sources = base_xrealloc(r->sources, (r->n_sources + 1) * sizeof *r->sources);
    tool_source *s = &r->sources[r->n_sources++];
    *s = (tool_source){.from = (uint32_t)from,
        .to = (uint32_t)to,
        .path = base_xstrdup(path),
        .file_from = (uint32_t)file_from,
        .line = (uint32_t)line};
    snprintf(s->version, sizeof s->version, "%s", version);
}

size_t tool__result_cap(const tool_limits *limits)
{
    size_t cap = limits && limits->result_bytes ? limits->result_bytes : TOOL_DEFAULT_RESULT;
    return cap < 400 ? 400 : cap;
}

void tool__cap(tool_workspace *w, tool_result *r, const tool_limits *limits, unsigned head_eighths)
{
    size_t cap = tool__result_cap(limits), n = r->text.len;
    if (r->total_bytes < n) r->total_bytes = n;
    if (n <= cap) return;
    uint32_t handle = tool__spill(w, r->text.data, n);
    size_t head = (cap - 100) * head_eighths / 8,
           tail = (cap - 100) - head; /* 100 for the sentence between them */
    const char *cut = memrchr(r->text.data, '\n', head);
    if (cut && (size_t)(cut - r->text.data) > head / 2) head = (size_t)(cut - r->text.data) + 1;
    const char *begin = memchr(r->text.data + n - tail, '\n', tail);
    size_t from = begin && (size_t)(r->text.data + n - begin) > tail / 2 ? (size_t)(begin - r->text.data) + 1
                                                                         : n - tail;
    /* Not inside a character. */
    while (head && ((unsigned char)r->text.data[head] & 0xc0) == 0x80) head--;
    while (from < n && ((unsigned char)r->text.data[from] & 0xc0) == 0x80) from++;
    base_buf out = {0};
    base_buf_add(&out, r->text.data, head);
    if (out.len && out.data[out.len - 1] != '\n') base_buf_putc(&out, '\n');
    base_buf_printf(&out, "[%zu bytes left out", from - head);
    if (handle)
        base_buf_printf(&out, "; the whole is read {\"path\": \"result:%u\", \"from\": %zu}", handle,
            tool__line_of(r->text.data, head));
    base_buf_puts(&out, "]\n");
    base_buf_add(&out, r->text.data + from, n - from);
    base_buf_free(&r->text);
    r->text = out;
}

/* ---- arguments ---- */

const char *tool__string(const tool_call *call, const char *name)
{
    const char *s = base_json_str(call->arguments, name, NULL);
    return s && *s ? s : NULL;
}

int64_t tool__integer(const tool_call *call, const char *name, int64_t otherwise, int64_t least, int64_t most)
{
    const base_json *v = base_json_get(call->arguments, name);
    int64_t x = otherwise;
    if (v && v->type == BASE_JSON_NUMBER) {
        x = v->is_integer                ? v->integer
            : v->number >= (double)most  ? most
            : v->number <= (double)least ? least
                                         : (int64_t)v->number;
    } else if (v && v->type == BASE_JSON_STRING) {
        char *end;
        long long parsed = strtoll(v->string, &end, 10);
        if (end != v->string && !*end) x = parsed;
    } else {
        return otherwise;
    }
    return x < least ? least : x > most ? most : x;
}

bool tool__boolean(const tool_call *call, const char *name)
{
    const base_json *v = base_json_get(call->arguments, name);
    return v && ((v->type == BASE_JSON_BOOL && v->boolean) ||
                    (v->type == BASE_JSON_STRING && !strcasecmp(v->string, "true")));
}

bool tool__want_path(tool_workspace *w, const tool_call *call, const char *tool, char **ret, tool_result *r)
{
    const char *given = tool__string(call, "path");
    base_err err = {0};
    if (!given) {
        tool__say(r, TOOL_FAILED,
            "%s needs a path. Next: %s {\"path\": ...} with a path of this tree; list {} names them.\n", tool,
            tool);
        return false;
    }
    if (tool__path_clean(&w->root, given, ret, &err)) {
        tool__say_path_error(w, r, tool, given, &err);
        return false;
    }
    return true;
}
