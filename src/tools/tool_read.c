/*
 * read {path, from?, count?, symbols?}: a header line that says which lines follow, then the lines as they
 * are. "result:3" reads a kept result. The header carries the numbers so that the lines stay bytes of the
 * file: what is shown is a source of the result.
 */
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "code/map.h"

#define DEFAULT_LINES 400
#define LONG_LINE     2000 /* bytes of one line that are shown */
#define SHORT_FILE    1500 /* bytes; below it the text itself is the outline */

/* "hiredis.c:89": small models take this over from search results. */
static int64_t take_line_suffix(char *path)
{
    char *colon = strrchr(path, ':'), *end;
    if (!colon || colon == path || colon[1] < '0' || colon[1] > '9') return 0;
    long line = strtol(colon + 1, &end, 10);
    if (*end && *end != '-') return 0;
    *colon = '\0';
    return line;
}

/* Lines from..from+count-1 within `room` bytes; returns the number of the last one shown. */
static size_t show_lines(tool_result *r, const base_buf *text, size_t from, size_t count, size_t room,
    const char *path, const char *version)
{
    size_t at = tool__line_start(text->data, text->len, from), line = from, used = 0;
    size_t begin_file = at, begin = r->text.len, begin_line = from;
    for (; line < from + count && at < text->len; line++) {
        const char *end = memchr(text->data + at, '\n', text->len - at);
        size_t n = (end ? (size_t)(end - text->data) + 1 : text->len) - at, shown = n;
        if (n > LONG_LINE) {
            shown = LONG_LINE;
            while (shown && ((unsigned char)text->data[at + shown] & 0xc0) == 0x80) shown--;
        }
        if (used + shown > room && line > from) break;
        base_buf_add(&r->text, text->data + at, shown);
        used += shown;
        at += n;
        if (shown == n) continue;
        if (path) tool__add_source(r, begin, r->text.len, path, version, begin_file, begin_line);
        base_buf_printf(&r->text, " [%zu bytes of this line left out]\n", n - shown);
        begin = r->text.len;
        begin_file = at;
        begin_line = line + 1;
    }
    if (path && r->text.len > begin)
        tool__add_source(r, begin, r->text.len, path, version, begin_file, begin_line);
    if (r->text.len && r->text.data[r->text.len - 1] != '\n') base_buf_putc(&r->text, '\n');
    return line - 1;
}

static void show(tool_result *r, const base_buf *text, const char *given, const char *path,
    const char *version, int64_t from, int64_t count, const tool_limits *limits)
{
    base_buf name = {0};
    tool__path_show(&name, path ? path : given);
    size_t lines = tool__count_lines(text->data, text->len), cap = tool__result_cap(limits);
    r->total_bytes = text->len;
    if (!lines) {
        tool__say(r, TOOL_OK, "%s is empty.\n", name.data);
    } else if ((size_t)from > lines) {
        base_buf_printf(&r->text, "%s has only %zu lines. Next: read {\"path\": ", name.data, lines);
        tool__quote(&r->text, path ? path : given);
        tool__say(r, TOOL_FAILED, ", \"from\": %zu}\n", lines > 100 ? lines - 100 : 1);
    } else {
        /*
         * The last line shown is known only afterwards, and the header's length depends on it: the lines come
         * first.
         */
        tool_result body = {0};
        size_t last = show_lines(
            &body, text, (size_t)from, (size_t)count, cap > 700 ? cap - 300 : cap / 2, path, version);
        if (from == 1 && last == lines)
            base_buf_printf(&r->text, "%s, all %zu lines:\n", name.data, lines);
        else
            base_buf_printf(
                &r->text, "%s, lines %lld-%zu of %zu:\n", name.data, (long long)from, last, lines);
        size_t shift = r->text.len;
        base_buf_add(&r->text, body.text.data, body.text.len);
        for (uint32_t i = 0; i < body.n_sources; i++) {
            const tool_source *s = &body.sources[i];
            tool__add_source(r, s->from + shift, s->to + shift, s->path, s->version, s->file_from, s->line);
        }
        tool_result_free(&body);
        if (last < lines) {
            base_buf_puts(&r->text, "[more: read {\"path\": ");
            tool__quote(&r->text, path ? path : given);
            base_buf_printf(&r->text, ", \"from\": %zu}]\n", last + 1);
        }
        r->status = TOOL_OK;
    }
    base_buf_free(&name);
}

/* The file's definitions in about a tenth of its bytes; false: it has none, or is as short itself. */
static bool show_symbols(
    tool_workspace *w, tool_result *r, const tool_file *f, const char *path, const tool_limits *limits)
{
    const char *text = f->text.data ? f->text.data : "";
    code_file *c = code_parse(w->grammars, path, text, f->text.len);
    size_t budget = f->text.len / 10, cap = tool__result_cap(limits) - 300;
    bool has_outline = c->n_definitions && f->text.len >= SHORT_FILE;
    if (has_outline) {
        tool__path_show(&r->text, path);
        base_buf_printf(
            &r->text, ", the definitions of its %zu lines:\n", tool__count_lines(text, f->text.len));
        code_outline(c, text, f->text.len, budget < cap ? budget : cap, &r->text);
        base_buf_puts(&r->text, "[lines: read {\"path\": ");
        tool__quote(&r->text, path);
        base_buf_printf(&r->text, ", \"from\": %u}]\n", c->definitions[0].line);
        r->status = TOOL_OK;
        r->total_bytes = f->text.len;
    }
    code_file_free(c);
    return has_outline;
}

static int run(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *prepared,
    tool_result *ret, base_err *err)
{
    const char *given = tool__string(call, "path");
    int64_t from = tool__integer(call, "from", 1, 1, UINT32_MAX),
            count = tool__integer(call, "count", DEFAULT_LINES, 1, 100000);
    base_err why = {0};
    ret->exit_code = -1;
    if (given && tool__is_handle(given)) {
        base_buf text = {0};
        if (tool__spill_read(w, given, &text, &why))
            tool__say(ret, TOOL_FAILED, "%s.\n", why.msg);
        else
            show(ret, &text, given, NULL, NULL, from, count, limits);
        base_buf_free(&text);
        return BASE_OK;
    }
    char *path = NULL;
    if (!tool__want_path(w, call, "read", &path, ret)) return BASE_OK;
    tool_file f = {0};
    int code = tool__file_read(&w->root, path, TOOL_MAX_FILE, &f, &why);
    if (code == BASE_E_NOT_FOUND) {
        int64_t line = take_line_suffix(path);
        if (line > 0 && !base_json_get(call->arguments, "from")) from = line > 20 ? line - 10 : 1;
        if (line > 0) code = tool__file_read(&w->root, path, TOOL_MAX_FILE, &f, &why);
    }
    if (code) {
        int fd = code == BASE_E_UNSUPPORTED ? tool__path_open(&w->root, path, O_PATH | O_DIRECTORY) : -1;
        if (fd >= 0) {
            close(fd);
            base_buf_printf(&ret->text, "%s. Next: list {\"path\": ", why.msg);
            tool__quote(&ret->text, path);
            tool__say(ret, TOOL_FAILED, "}\n");
        } else if (code == BASE_E_LIMIT) {
            base_buf command = {0};
            base_buf_puts(&command, "sed -n '1,40p' -- ");
            tool__quote_shell(&command, path);
            base_buf_puts(&command, " | cut -c1-400");
            base_buf_printf(&ret->text, "%s. Next: shell {\"command\": ", why.msg);
            tool__quote(&ret->text, command.data);
            tool__say(ret, TOOL_FAILED, "}\n");
            base_buf_free(&command);
        } else {
            tool__say_path_error(w, ret, "read", path, &why);
        }
    } else if (tool__is_binary(f.text.data, f.text.len)) {
        base_buf name = {0};
        tool__path_show(&name, path);
        tool__say(
            ret, TOOL_FAILED, "%s is binary (%zu bytes); it has no lines to read.\n", name.data, f.text.len);
        base_buf_free(&name);
    } else {
        bool outlined = tool__boolean(call, "symbols") && show_symbols(w, ret, &f, path, limits);
        if (!outlined) show(ret, &f.text, given, path, f.version, from, count, limits);
        code_index_expect_edit(w->index, path);
        if (!outlined && ret->status == TOOL_OK) tool_workspace_mark_shown(w, path, f.version);
    }
    tool__file_free(&f);
    free(path);
    return BASE_OK;
}

static const tool_argument arguments[] = {
    {"path", TOOL_ARGUMENT_PATH, true, "file", NULL, TOOL_FOR_ALL},
    {"from", TOOL_ARGUMENT_INTEGER, false, "first line", NULL, TOOL_FOR_ALL},
    {"count", TOOL_ARGUMENT_INTEGER, false, "lines", NULL, TOOL_FOR_ALL},
    {"symbols", TOOL_ARGUMENT_BOOLEAN, false, "true: only its definitions with their lines", NULL,
        TOOL_FOR_STRONG}, /* a small model never asks for it, and each line of the prompt turns its answers */
    {0},
};

const tool_entry tool__read = {
    .name = "read",
    .power = TOOL_READS,
    .about = "Read a file or some of its lines.",
    .arguments = arguments,
    .run = run,
};
