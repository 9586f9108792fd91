/*
 * search {query, path?, regex?}: definitions of the name first (by the index), then lines of files, as
 * "path:line: text".
 *
 * Literal with smart case: an upper-case letter in the query makes case count. A weak model greps one guess
 * and gives up, so when nothing is found the answer is the nearest symbols by words, with the next call
 * filled in.
 */
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/regex.h"

#define MAX_LINES    40
#define MAX_A_FILE   6
#define LINE_BYTES   200
#define REGEX_BYTES  200
#define SEARCH_BYTES ((size_t)4 << 20)

typedef struct search {
    const char *query;
    size_t n;
    bool folds_case;
    tool_regex *regex;      /* NULL: the query is plain text */
    size_t n_lines, n_more; /* shown, found beyond that */
    size_t room;
    code_place *places;
    uint32_t n_places;
} search;

static bool has_upper(const char *s)
{
    for (; *s; s++)
        if (isupper((unsigned char)*s)) return true;
    return false;
}

/* Repeat counts take memory and back references take exponential time: neither is for a model's regex. */
static bool regex_is_tame(const char *s)
{
    size_t braces = 0;
    for (const char *p = s; *p; p++) {
        if (*p == '\\' && p[1] >= '1' && p[1] <= '9') return false;
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '{') {
            if (++braces > 1) return false;
            for (const char *q = p + 1; *q && *q != '}'; q++)
                if (isdigit((unsigned char)*q) && strtoul(q, NULL, 10) > 64) return false;
        }
    }
    return strlen(s) <= REGEX_BYTES;
}

/* First match in text[at..n); SIZE_MAX: none. */
static size_t find_literal(const search *s, const char *text, size_t at, size_t n)
{
    if (!s->folds_case) {
        const char *hit = n - at >= s->n ? memmem(text + at, n - at, s->query, s->n) : NULL;
        return hit ? (size_t)(hit - text) : SIZE_MAX;
    }
    int low = tolower((unsigned char)s->query[0]), high = toupper((unsigned char)s->query[0]);
    for (; at + s->n <= n; at++) {
        if ((unsigned char)text[at] != low && (unsigned char)text[at] != high) continue;
        if (!strncasecmp(text + at, s->query, s->n)) return at;
    }
    return SIZE_MAX;
}

/* One "path:line: text" with its source. */
static void show_line(tool_result *r, const char *path, const char *version, const char *text, size_t n,
    size_t line, size_t at, const char *what)
{
    const char *end = memchr(text + at, '\n', n - at);
    size_t len = (end ? (size_t)(end - text) : n) - at;
    while (len && (text[at] == ' ' || text[at] == '\t')) at++, len--;
    while (len && (text[at + len - 1] == '\r' || text[at + len - 1] == ' ')) len--;
    size_t shown = len < LINE_BYTES ? len : LINE_BYTES;
    while (shown && shown < len && ((unsigned char)text[at + shown] & 0xc0) == 0x80) shown--;
    tool__path_show(&r->text, path);
    base_buf_printf(&r->text, ":%zu: ", line);
    size_t from = r->text.len;
    base_buf_add(&r->text, text + at, shown);
    tool__add_source(r, from, r->text.len, path, version, at, line);
    if (shown < len) base_buf_puts(&r->text, " ...");
    if (what) base_buf_printf(&r->text, "  (%s)", what);
    base_buf_putc(&r->text, '\n');
}

static void show_definitions(tool_workspace *w, search *s, tool_result *r, const char *path)
{
    s->n_places = code_index_define(w->index, s->query, &s->places);
    for (uint32_t i = 0; i < s->n_places && s->n_lines < 12; i++) {
        const code_place *p = &s->places[i];
        size_t prefix = strlen(path);
        tool_file f = {0};
        if (prefix && (strncmp(p->path, path, prefix) || (p->path[prefix] && p->path[prefix] != '/')))
            continue;
        if (tool__file_read(&w->root, p->path, SEARCH_BYTES, &f, NULL)) continue;
        size_t at = tool__line_start(f.text.data, f.text.len, p->line);
        base_buf what = {0};
        base_buf_printf(&what, "%s%s, lines %u-%u", p->is_declaration ? "declaration of " : "",
            p->what ? p->what : "definition", p->line, p->line_end);
        if (at < f.text.len) {
            show_line(r, p->path, f.version, f.text.data, f.text.len, p->line, at, what.data);
            s->n_lines++;
        }
        base_buf_free(&what);
        tool__file_free(&f);
    }
}

static bool is_place(const search *s, const char *path, size_t line)
{
    for (uint32_t i = 0; i < s->n_places; i++)
        if (s->places[i].line == line && !strcmp(s->places[i].path, path)) return true;
    return false;
}

static void search_file(tool_workspace *w, search *s, tool_result *r, const char *path)
{
    tool_file f = {0};
    if (tool__file_read(&w->root, path, SEARCH_BYTES, &f, NULL)) return;
    const char *text = f.text.data;
    size_t n = f.text.len, at = 0, line = 1, counted = 0, shown = 0;
    if (!tool__is_binary(text, n)) {
        while (at < n) {
            size_t hit = s->regex ? tool__regex_find(s->regex, text, at, n) : find_literal(s, text, at, n);
            if (hit == SIZE_MAX) break;
            for (; counted < hit; counted++) line += text[counted] == '\n';
            const char *start = hit ? memrchr(text, '\n', hit) : NULL;
            size_t begin = start ? (size_t)(start - text) + 1 : 0;
            if (!is_place(s, path, line)) {
                if (s->n_lines < MAX_LINES && shown < MAX_A_FILE && r->text.len + LINE_BYTES < s->room) {
                    show_line(r, path, f.version, text, n, line, begin, NULL);
                    s->n_lines++;
                    shown++;
                } else {
                    s->n_more++;
                }
            }
            const char *end = memchr(text + hit, '\n', n - hit);
            if (!end) break;
            at = (size_t)(end - text) + 1;
        }
    }
    tool__file_free(&f);
}

static void show_nearest(tool_workspace *w, const search *s, tool_result *r)
{
    code_hits hits = {0};
    base_buf words = {0};
    code_split_identifier(s->query, s->n, &words);
    code_index_search(w->index, words.len ? words.data : s->query, 8, &hits);
    const code_hit *best = NULL;
    for (uint32_t i = 0; i < hits.n; i++) {
        const code_hit *h = &hits.hits[i];
        if (!h->name || !*h->name) continue;
        if (!best) base_buf_puts(&r->text, "Nearest names:\n");
        if (!best) best = h;
        tool__path_show(&r->text, h->path);
        base_buf_printf(&r->text, ":%u: %s (%s)\n", h->line, h->name, h->what ? h->what : "definition");
    }
    if (best) {
        base_buf_puts(&r->text, "Next: read {\"path\": ");
        tool__quote(&r->text, best->path);
        base_buf_printf(&r->text, ", \"from\": %u}\n", best->line);
    } else {
        base_buf_puts(&r->text, "Try one shorter word of it. Next: list {}\n");
    }
    base_buf_free(&words);
    code_hits_free(&hits);
}

static bool prepare(const tool_call *call, const tool_limits *limits, search *s, tool_result *r)
{
    s->query = tool__string(call, "query");
    if (!s->query) {
        tool__say(r, TOOL_FAILED, "search needs a query. Next: search {\"query\": \"name\"}\n");
        return false;
    }
    s->n = strlen(s->query);
    s->folds_case = !has_upper(s->query);
    bool is_regex = tool__boolean(call, "regex");
    if (s->n > 1000 || (is_regex && !regex_is_tame(s->query))) {
        tool__say(r, TOOL_REFUSED,
            "This query is too %s. Next: search {\"query\": ...} with one plain word of it.\n",
            is_regex ? "heavy a regex (no back references, one repeat count up to 64)" : "long");
        return false;
    }
    base_err why = {0};
    if (is_regex &&
        tool__regex_open(&s->regex, s->query, s->folds_case, limits ? limits->cancel : NULL, &why)) {
        tool__say(r, TOOL_FAILED, "This regex is not valid (%.200s). Next: search {\"query\": ", why.msg);
        tool__quote(&r->text, s->query);
        base_buf_puts(&r->text, "} without \"regex\".\n");
        return false;
    }
    return true;
}

static int run(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *prepared,
    tool_result *ret, base_err *err)
{
    search s = {.room = tool__result_cap(limits) - 200};
    char *path = NULL;
    base_err why = {0};
    ret->exit_code = -1;
    int code = tool__workspace_list(w, limits ? limits->cancel : NULL, err);
    if (code) return code;
    if (!prepare(call, limits, &s, ret)) return BASE_OK;
    const char *given = tool__string(call, "path");
    size_t n_looked = 0;
    if (tool__path_clean(&w->root, given ? given : ".", &path, &why)) {
        tool__say_path_error(w, ret, "search", given ? given : ".", &why);
        goto out;
    }
    if (!s.regex) show_definitions(w, &s, ret, path);
    size_t prefix = strlen(path);
    for (size_t i = 0; i < w->listing.n && !tool__cancelled(limits); i++) {
        const char *file = w->listing.files[i].path;
        if (prefix && (strncmp(file, path, prefix) || (file[prefix] && file[prefix] != '/'))) continue;
        n_looked++;
        search_file(w, &s, ret, file);
        if (s.n_more > 2000 || (s.regex && tool__regex_is_spent(s.regex))) break;
    }
    if (tool__cancelled(limits)) {
        tool__say(ret, TOOL_CANCELLED, "Cancelled.\n");
    } else if (!n_looked && prefix) {
        base_fail(&why, BASE_E_NOT_FOUND, "the tree has no file or folder %.300s", path);
        tool__say_path_error(w, ret, "list", path, &why);
    } else if (s.regex && tool__regex_is_spent(s.regex) && !s.n_lines) {
        tool__say(ret, TOOL_REFUSED,
            "This regex takes too long: after %zu files it was given up. "
            "Next: search {\"query\": ...} with one plain word of it.\n",
            n_looked);
    } else if (!s.n_lines) {
        tool__say(ret, TOOL_FAILED, "\"%.200s\" is nowhere in %s (%zu files looked at).\n", s.query,
            prefix ? path : "the tree", n_looked);
        show_nearest(w, &s, ret);
    } else {
        if (s.n_more)
            base_buf_printf(&ret->text, "[%zu%s more lines; narrow it with \"path\"]\n", s.n_more,
                s.n_more > 2000 ? "+" : "");
        if (s.regex && tool__regex_is_spent(s.regex))
            base_buf_printf(
                &ret->text, "[this regex takes too long: after %zu files it was given up]\n", n_looked);
        ret->status = TOOL_OK;
        ret->total_bytes = ret->text.len;
    }
out:
    tool__regex_close(s.regex);
    if (s.places) code_places_free(s.places, s.n_places);
    free(path);
    return BASE_OK;
}

static const tool_argument arguments[] = {
    {"query", TOOL_ARGUMENT_STRING, true, "text or name to find", NULL, TOOL_FOR_ALL},
    {"path", TOOL_ARGUMENT_STRING, false, "file or folder to look in", NULL, TOOL_FOR_ALL},
    {"regex", TOOL_ARGUMENT_BOOLEAN, false, "query is a POSIX extended regex", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__search = {
    .name = "search",
    .power = TOOL_READS,
    .about = "Find text in the tree: definitions of a name first, then lines.",
    .arguments = arguments,
    .run = run,
};
