/* Lists of exported names (contract: exports.h). */
#include "tools/edit/exports.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "code/code.h"
#include "tools/file/text.h"

/* A list of names in a text whose comments are blanked: bytes [from, to) between its brackets, or to its line's end. */
typedef struct list {
    size_t from, to;
    bool is_quoted;
} list;

/* --- reading -------------------------------------------------------------------------------------------- */

/* Behind `word` and blanks, where the text goes on with it; 0: it does not. */
static size_t behind(const char *text, size_t n, size_t at, const char *word)
{
    const size_t len = strlen(word);
    if (n - at < len || memcmp(text + at, word, len)) return 0;
    for (at += len; at < n && (text[at] == ' ' || text[at] == '\t');) at++;
    return at;
}

/* The bracket at `at` and the one that ends it; false: none opens there, or it holds further ones. */
static bool read_brackets(const char *text, size_t n, size_t at, list *ret)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *kind = at < n && text[at] ? strchr(opening, text[at]) : NULL;
    if (!kind) return false;
    ret->from = ret->to = at + 1;
    while (ret->to < n && !strchr("()[]{};", text[ret->to])) ret->to++;
    return ret->to < n && text[ret->to] == closing[kind - opening];
}

/* Does a module's path, text[from, to), end with this name? */
static bool ends_with_module(const char *text, size_t from, size_t to, const char *module)
{
    const size_t len = strlen(module);
    while (to > from && tool__is_space(text[to - 1])) to--;
    return to - from >= len && !memcmp(text + to - len, module, len) &&
           (to - from == len || strchr("./: ", text[to - len - 1]));
}

static bool read_python(const char *text, size_t n, size_t at, const char *module, list *ret)
{
    size_t next = behind(text, n, at, "__all__");
    if (next) {
        next += next < n && text[next] == '+';
        next = behind(text, n, next, "=");
        ret->is_quoted = true;
        return next && read_brackets(text, n, next, ret);
    }
    next = module ? behind(text, n, at, "from ") : 0;
    const size_t end = tool__line_end(text, n, at);
    const char *import = next && next < end ? memmem(text + next, end - next, " import ", 8) : NULL;
    if (!import || !ends_with_module(text, next, (size_t)(import - text), module)) return false;
    const size_t names = behind(text, n, (size_t)(import - text), " import ");
    if (read_brackets(text, n, names, ret)) return true;
    *ret = (list){names, end, false};
    return names <= end && !memchr(text + names, '\\', end - names) && text[names] != '(';
}

static bool read_script(const char *text, size_t n, size_t at, const char *module, list *ret)
{
    size_t next = module ? 0 : behind(text, n, at, "module.exports");
    if (next) {
        next = behind(text, n, next, "=");
        return next && read_brackets(text, n, next, ret);
    }
    next = behind(text, n, at, "export ");
    if (!next || !read_brackets(text, n, next, ret)) return false;
    const size_t end = tool__line_end(text, n, ret->to), tail = behind(text, n, ret->to, "}");
    size_t path = tail ? behind(text, n, tail, "from") : 0;
    if (!path || !module) return !path && !module;
    const char quote = path < end ? text[path] : 0;
    const char *last = quote && strchr("\"'", quote) ? memchr(text + path + 1, quote, end - path - 1) : NULL;
    if (!last) return false;
    size_t to = (size_t)(last - text);
    const char *dot = memrchr(text + path, '.', to - path), *slash = memrchr(text + path, '/', to - path);
    if (dot && slash && dot > slash) to = (size_t)(dot - text);
    return slash && ends_with_module(text, path + 1, to, module);
}

static bool read_rust(const char *text, size_t n, size_t at, const char *module, list *ret)
{
    const size_t next = module ? behind(text, n, at, "pub use ") : 0;
    const char *brace = next ? memchr(text + next, '{', tool__line_end(text, n, next) - next) : NULL;
    const size_t to = brace ? (size_t)(brace - text) : 0;
    return to > next + 2 && !memcmp(text + to - 2, "::", 2) && ends_with_module(text, next, to - 2, module) &&
           read_brackets(text, n, to, ret);
}

typedef struct exporting {
    const char *language;
    bool (*read)(const char *text, size_t n, size_t at, const char *module, list *ret);
    const char *files[4];
} exporting;

static const exporting languages[] = {
    {"python", read_python, {"__init__.py"}},
    {"javascript", read_script, {"index.js", "index.mjs"}},
    {"typescript", read_script, {"index.ts"}},
    {"tsx", read_script, {"index.ts", "index.tsx"}},
    {"rust", read_rust, {"mod.rs", "lib.rs"}},
};

static const exporting *exporting_of(const char *language)
{
    for (size_t i = 0; language && i < sizeof languages / sizeof *languages; i++)
        if (!strcmp(languages[i].language, language)) return &languages[i];
    return NULL;
}

const char *const *tool__export_files(const char *language)
{
    static const char *const none[] = {NULL};
    const exporting *e = exporting_of(language);
    return e ? e->files : none;
}

/* --- writing -------------------------------------------------------------------------------------------- */

/* Is text[from, to) "a: a", a name that is handed out by the same name? Then how long the name is; else 0. */
static size_t read_pair(const char *text, size_t from, size_t to)
{
    size_t n = 0;
    while (from + n < to && code_is_name_byte(text[from + n])) n++;
    const size_t value = n ? behind(text, to, behind(text, to, from + n, ""), ":") : 0;
    return value && to - value == n && !memcmp(text + value, text + from, n) ? n : 0;
}

/* Where the list has the name as an item by itself or as "a: a", no part of "a as b" or "a: b"; its quotes are of it. */
static bool find_item(const char *text, const list *l, const char *name, size_t *ret_from, size_t *ret_to)
{
    const size_t len = strlen(name);
    for (size_t at = l->from; at < l->to;) {
        const char *comma = memchr(text + at, ',', l->to - at);
        const size_t end = comma ? (size_t)(comma - text) : l->to;
        size_t from = at, to = end;
        while (from < to && tool__is_space(text[from])) from++;
        while (to > from && tool__is_space(text[to - 1])) to--;
        const size_t quote = l->is_quoted && to - from > 2 && strchr("\"'", text[from]) ? 1 : 0;
        const bool is_whole =
            to - from == len + 2 * quote && quote == l->is_quoted && !memcmp(text + from + quote, name, len);
        if (is_whole || (read_pair(text, from, to) == len && !memcmp(text + from, name, len))) {
            *ret_from = from;
            *ret_to = to;
            return true;
        }
        at = end + 1;
    }
    return false;
}

/* Does a comment go on behind text[from, to)? */
static bool opens_comment(const char *text, size_t from, size_t to)
{
    bool is_open = false;
    for (size_t at = from; at + 1 < to; at++) {
        if (!is_open && text[at] == '/' && text[at + 1] == '*') is_open = true;
        if (is_open && text[at] == '*' && text[at + 1] == '/') is_open = false;
    }
    return is_open;
}

/*
 * Behind the item [from, to): on its line, or on a line of its own where the item has one. code: the text, its comments
 * blanked. Returns how many bytes came.
 */
static size_t put_item(
    base_buf *text, const char *code, const list *l, size_t from, size_t to, const char *name)
{
    const size_t line = tool__line_begin(text->data, from), end = tool__line_end(text->data, text->len, to);
    const size_t had = text->len, quote = l->is_quoted;
    const bool has_comma = to < text->len && code[to] == ',', has_cr = text->data[end - 1] == '\r';
    const bool is_alone = line >= l->from && end < l->to && tool__is_blank(code, line, from) &&
                          tool__is_blank(code, to + has_comma, end) && !opens_comment(text->data, to, end);
    const size_t rest = is_alone ? end : to;
    base_buf out = {0};
    base_buf_add(&out, text->data, to);
    if (is_alone) {
        base_buf_puts(&out, has_comma ? "" : ",");
        base_buf_add(&out, text->data + to, end - to);
        base_buf_puts(&out, "\n");
        base_buf_add(&out, text->data + line, from - line);
    } else {
        base_buf_puts(&out, ", ");
    }
    if (read_pair(code, from, to)) base_buf_printf(&out, "%s: ", name);
    base_buf_add(&out, text->data + from, quote);
    base_buf_puts(&out, name);
    base_buf_add(&out, text->data + from, quote);
    if (is_alone) base_buf_printf(&out, "%s%s", has_comma ? "," : "", has_cr ? "\r" : "");
    base_buf_add(&out, text->data + rest, text->len - rest);
    base_buf_free(text);
    *text = out;
    return text->len - had;
}

bool tool__export_name(
    const char *language, base_buf *text, const char *module, const char *neighbour, const char *name)
{
    enum { MOST_LISTS = 16 }; /* that a name goes into: each costs a walk through the text */
    const exporting *e = exporting_of(language);
    size_t n_added = 0;
    char *code = NULL; /* the text as it is now, its comments blanked */
    for (size_t at = 0; e && at < text->len && n_added < MOST_LISTS;) {
        if (!code) code = code_blank_comments(language, text->data, text->len);
        list l = {0};
        size_t from, to, f, t;
        if (e->read(code, text->len, at, module, &l)) {
            at = l.to;
            if (find_item(code, &l, neighbour, &from, &to) && !find_item(code, &l, name, &f, &t)) {
                at += put_item(text, code, &l, from, to, name);
                n_added++;
                free(code);
                code = NULL;
            }
        }
        at = tool__line_end(text->data, text->len, at) + 1;
    }
    free(code);
    return n_added > 0;
}

/* The last item of a list; false: it is empty, or its last item is neither a name nor "a: a". */
static bool find_last(const char *text, const list *l, size_t *ret_from, size_t *ret_to)
{
    size_t to = l->to;
    while (to > l->from && (tool__is_space(text[to - 1]) || text[to - 1] == ',')) to--;
    size_t from = to;
    while (from > l->from && !tool__is_space(text[from - 1]) && text[from - 1] != ',') from--;
    size_t before = from;
    while (before > l->from && tool__is_space(text[before - 1])) before--;
    if (before > l->from && text[before - 1] == ':') {
        while (before > l->from && text[before - 1] != ',') before--;
        for (from = before; from < to && tool__is_space(text[from]);) from++;
        if (!read_pair(text, from, to)) return false;
    }
    *ret_from = from;
    *ret_to = to;
    return to > from && (before == l->from || text[before - 1] == ',');
}

/* "module.exports.has = has", "exports.has = has": a line like the last of them behind it. */
static bool export_by_line(base_buf *text, const char *code, const char *name)
{
    static const char *const forms[] = {"module.exports.", "exports."};
    const char *form = NULL;
    size_t last = 0;
    for (size_t at = 0; at < text->len; at = tool__line_end(text->data, text->len, at) + 1)
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
            const size_t len = strlen(forms[i]), end = tool__line_end(text->data, text->len, at);
            size_t to = at + len;
            if (end - at <= len || memcmp(code + at, forms[i], len) != 0) continue;
            while (to < end && code_is_name_byte(code[to])) to++;
            const size_t n = to - at - len, value = behind(code, end, behind(code, end, to, ""), "=");
            if (!n || !value || end - value < n || memcmp(code + value, code + at + len, n) != 0) continue;
            form = forms[i];
            last = end;
        }
    if (!form) return false;
    const bool has_cr = last && text->data[last - 1] == '\r', has_mark = text->data[last - 1 - has_cr] == ';';
    base_buf out = {0};
    base_buf_add(&out, text->data, last);
    base_buf_printf(&out, "\n%s%s = %s%s%s", form, name, name, has_mark ? ";" : "", has_cr ? "\r" : "");
    base_buf_add(&out, text->data + last, text->len - last);
    base_buf_free(text);
    *text = out;
    return true;
}

bool tool__export_last(const char *language, base_buf *text, const char *name)
{
    const exporting *e = exporting_of(language);
    char *code = e ? code_blank_comments(language, text->data, text->len) : NULL;
    bool is_done = false;
    for (size_t at = 0; e && at < text->len && !is_done; at = tool__line_end(text->data, text->len, at) + 1) {
        list l = {0};
        size_t from, to;
        if (!e->read(code, text->len, at, NULL, &l) || !find_last(code, &l, &from, &to)) continue;
        put_item(text, code, &l, from, to, name);
        is_done = true;
    }
    if (!is_done && e && e->read == read_script) is_done = export_by_line(text, code, name);
    free(code);
    return is_done;
}

/* --- a line of its own ---------------------------------------------------------------------------------- */

/* The last line of the text that begins with one of the words, outside of brackets: its begin. SIZE_MAX: none does. */
static size_t last_line_of(const char *code, size_t n, const char *const *words)
{
    size_t found = SIZE_MAX;
    int depth = 0;
    for (size_t at = 0; at < n;) {
        const size_t end = tool__line_end(code, n, at);
        for (const char *const *w = words; *w && !depth; w++)
            if (end - at >= strlen(*w) && !memcmp(code + at, *w, strlen(*w))) found = at;
        for (; at < end; at++)
            depth += (strchr("([{", code[at]) && code[at]) - (strchr(")]}", code[at]) && code[at]);
        at = end + 1;
    }
    return found;
}

/* Behind the line at `line` and what its brackets hold on. */
static size_t behind_statement(const char *code, size_t n, size_t line)
{
    int depth = 0;
    size_t at = line;
    for (; at < n && (code[at] != '\n' || depth > 0); at++)
        depth += (code[at] && strchr("([{", code[at])) - (code[at] && strchr(")]}", code[at]));
    return at < n ? at + 1 : n;
}

/* What stands in front of the module in "from .other import a", "from pkg.other import a"; empty: nothing does. */
static base_str prefix_of(const char *line, size_t n)
{
    const char *from = line + strlen("from "), *end = memmem(from, n - strlen("from "), " import", 7);
    const char *dot = end ? memrchr(from, '.', (size_t)(end - from)) : NULL;
    return dot ? (base_str){from, (size_t)(dot + 1 - from)} : (base_str){0};
}

static void put_line(base_buf *text, size_t at, const base_buf *line)
{
    base_buf out = {0};
    base_buf_add(&out, text->data, at);
    if (at && text->data[at - 1] != '\n') base_buf_putc(&out, '\n');
    base_buf_add(&out, line->data, line->len);
    base_buf_add(&out, text->data + at, text->len - at);
    base_buf_free(text);
    *text = out;
}

static bool is_listed_python(const char *code, size_t n)
{
    list l;
    for (size_t at = 0; at < n; at = tool__line_end(code, n, at) + 1) {
        l = (list){0};
        if (read_python(code, n, at, NULL, &l)) return true;
    }
    return false;
}

/* "#[cfg(feature = "std")]" on the line in front of `line`: what is handed out is there under the same condition. */
static base_str condition_of(const char *code, size_t line)
{
    const size_t from = line ? tool__line_begin(code, line - 1) : 0;
    return line && !strncmp(code + from, "#[cfg(", 6) ? (base_str){code + from, line - from} : (base_str){0};
}

bool tool__export_fresh(const char *language, base_buf *text, const char *module, const char *name)
{
    const bool is_python = language && !strcmp(language, "python");
    if ((!is_python && (!language || strcmp(language, "rust") != 0)) || !text->len) return false;
    const char *const own[] = {is_python ? "from " : "pub use ", NULL};
    base_buf line = {0}, declared = {0}, public = {0};
    char *code = code_blank_comments(language, text->data, text->len);
    base_buf_printf(&declared, "mod %s;", module);
    base_buf_printf(&public, "pub mod %s;", module);
    const char *const modules[] = {declared.data, public.data, NULL};
    const size_t like = last_line_of(code, text->len, own),
                 of_module = is_python ? SIZE_MAX : last_line_of(code, text->len, modules),
                 beside = like != SIZE_MAX ? like : of_module,
                 n = like == SIZE_MAX ? 0 : tool__line_end(code, text->len, like) - like;
    const base_str prefix = n && is_python ? prefix_of(code + like, n) : (base_str){0},
                   condition = of_module != SIZE_MAX ? condition_of(text->data, of_module) : (base_str){0};
    const bool is_self = n && !is_python && behind(code, like + n, like, "pub use self::");
    const size_t end = beside == SIZE_MAX ? 0 : behind_statement(code, text->len, beside);
    const char *ending = end > 1 && !strncmp(text->data + end - 2, "\r\n", 2) ? "\r\n" : "\n";
    const bool is_done = is_python || of_module != SIZE_MAX;
    if (is_python)
        base_buf_printf(&line, "from %.*s%s import %s%s", prefix.len ? (int)prefix.len : 1,
            prefix.len ? prefix.ptr : ".", module, name, ending);
    else
        base_buf_printf(&line, "%.*spub use %s%s::%s;%s", (int)condition.len,
            condition.len ? condition.ptr : "", is_self ? "self::" : "", module, name, ending);
    if (is_done) {
        const bool has_list = is_python && is_listed_python(code, text->len);
        put_line(text, end, &line);
        if (has_list) tool__export_last(language, text, name);
    }
    free(code);
    base_buf_free(&line);
    base_buf_free(&declared);
    base_buf_free(&public);
    return is_done;
}
