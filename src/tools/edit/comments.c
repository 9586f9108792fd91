/* Comments of a rewritten definition without its code (contract: comments.h). */
#include "tools/edit/comments.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "tools/edit/replace.h"
#include "tools/file/text.h"

/* --- the request ---------------------------------------------------------------------------------------- */

static bool is_word(const char *text, size_t from, size_t to, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == to - from && !strncasecmp(*words, text + from, to - from)) return true;
    return false;
}

bool tool__asks_for_comments_alone(const char *request)
{
    static const char *const adding[] = {"add", "write", "put", "insert", "document", NULL};
    static const char *const between[] = {"a", "an", "the", "some", "short", "brief", "missing", "one",
        "line", "doc", "good", "helpful", "better", "more", "code", "explanatory", "style", "google",
        "proper", "python", "javadoc", "godoc", "sentence", NULL};
    static const char *const comments[] = {
        "docstring", "docstrings", "comment", "comments", "documentation", "docs", "doc", NULL};
    static const char *const others[] = {"rename", "fix", "make", "change", "let", "return", "returns",
        "raise", "delete", "remove", "drop", "move", "handle", "should", "must", "test", "tests", "readme",
        "changelog", "parameter", "argument", "check", "instead", "update", NULL};
    size_t pos = 0, from, to;
    enum { BEGINS, ORDERED, FOUND, OTHER } state = BEGINS;
    if (!request) return false;
    const size_t n = strlen(request);
    while (state != OTHER && code_next_identifier(request, n, &pos, &from, &to)) {
        const bool is_order = is_word(request, from, to, adding);
        if (state == BEGINS)
            state = !strncasecmp(request + from, "document", to - from) && to - from == 8 ? FOUND
                    : is_order                                                            ? ORDERED
                    : is_word(request, from, to, (const char *const[]){"please", "can", "you", "could", NULL})
                        ? BEGINS
                        : OTHER;
        else if (state == ORDERED && is_word(request, from, to, comments))
            state = FOUND;
        else if (state == ORDERED && !is_word(request, from, to, between))
            state = OTHER;
        else if (state == FOUND && is_word(request, from, to, others))
            state = OTHER;
    }
    return state == FOUND;
}

/* --- the text ------------------------------------------------------------------------------------------- */

/* A line of a text; plain: without what is comment in it. */
typedef struct line {
    base_str text, plain;
} line;

typedef struct lines {
    line *all;
    size_t n, cap;
    char *plain;
} lines;

static lines split(const char *language, const char *text, size_t n)
{
    lines ret = {.plain = code_blank_comments(language, text, n)};
    for (size_t at = 0; at < n;) {
        const size_t end = tool__line_end(text, n, at);
        base_grow(&ret.all, &ret.cap, ret.n + 1, sizeof *ret.all);
        ret.all[ret.n++] = (line){{text + at, end - at}, {ret.plain + at, end - at}};
        at = end + 1;
    }
    return ret;
}

static void lines_free(lines *l)
{
    free(l->all);
    free(l->plain);
}

static bool is_code(const line *l)
{
    return base_str_trim(l->plain).len > 0;
}

static size_t indent_of(base_str s)
{
    size_t n = 0;
    while (n < s.len && (s.ptr[n] == ' ' || s.ptr[n] == '\t')) n++;
    return n;
}

/* Lines [from, to) of the block, moved to the indentation of the line that they are put in front of. */
static void put_comment(const lines *block, size_t from, size_t to, base_str before, base_buf *out)
{
    const size_t own = indent_of(block->all[from].text);
    for (size_t i = from; i < to; i++) {
        const base_str s = block->all[i].text;
        const size_t n = indent_of(s), skip = n < own ? n : own;
        if (base_str_trim(s).len) base_buf_add(out, before.ptr, indent_of(before));
        if (base_str_trim(s).len) base_buf_add(out, s.ptr + skip, s.len - skip);
        base_buf_putc(out, '\n');
    }
}

static bool has_line(const lines *l, size_t from, size_t to, base_str s)
{
    for (size_t i = from; i < to; i++)
        if (tool__is_same_line(l->all[i].text, s)) return true;
    return false;
}

/* Where a definition stands among the lines of its file: its own, and the first of its body. */
typedef struct place {
    size_t from, to, body;
} place;

/* Where the comment at lines [from, to) of the block belongs, the block's next line of code being `next`; SIZE_MAX: nowhere. */
static size_t find_place(const lines *file, const place *p, const lines *block, size_t from, size_t next,
    bool is_first, bool is_python, size_t cursor)
{
    const base_str s = base_str_trim(block->all[from].text);
    const bool is_docstring = is_python && (memmem(s.ptr, s.len < 5 ? s.len : 5, "\"\"\"", 3) ||
                                               memmem(s.ptr, s.len < 5 ? s.len : 5, "'''", 3));
    if (is_docstring) return is_first || is_code(&file->all[p->body]) ? p->body : SIZE_MAX;
    if (is_first) return p->from;
    for (size_t i = cursor; i < p->to && next < block->n; i++)
        if (tool__is_same_line(file->all[i].text, block->all[next].text)) return i;
    return SIZE_MAX;
}

/* "return 1; // one": the comment behind a line's code, where the old line has none. */
static bool take_behind(const line *old, const line *new, base_buf *behind)
{
    const base_str code = base_str_trim(new->plain);
    const size_t end = (size_t)(code.ptr + code.len - new->plain.ptr);
    const base_str comment = base_str_trim((base_str){new->text.ptr + end, new->text.len - end});
    if (!comment.len || base_str_trim(old->text).len != base_str_trim(old->plain).len) return false;
    base_buf_printf(behind, " %.*s", (int)comment.len, comment.ptr);
    return true;
}

/* What comes in front of each line of the file and behind its code (arrays of texts); how many comments. */
static uint32_t collect(
    const lines *file, const place *p, const lines *block, bool is_python, base_buf *before, base_buf *behind)
{
    size_t cursor = p->from, above = p->from;
    uint32_t n = 0;
    bool is_first = true;
    while (above > 0 && !is_code(&file->all[above - 1]) && base_str_trim(file->all[above - 1].text).len)
        above--;
    for (size_t i = 0; i < block->n; i++) {
        if (is_code(&block->all[i])) {
            for (size_t k = cursor; k < p->to; k++)
                if (tool__is_same_line(file->all[k].plain, block->all[i].plain)) {
                    n += take_behind(&file->all[k], &block->all[i], &behind[k]);
                    cursor = k + 1;
                    break;
                }
            is_first = false;
            continue;
        }
        if (!base_str_trim(block->all[i].text).len) continue;
        size_t end = i, next = i;
        while (next < block->n && !is_code(&block->all[next])) {
            if (base_str_trim(block->all[next].text).len) end = next + 1;
            next++;
        }
        const bool is_old =
            has_line(file, above, p->to, block->all[i].text) && base_str_trim(block->all[i].text).len > 3;
        const size_t at =
            is_old ? SIZE_MAX : find_place(file, p, block, i, next, is_first, is_python, cursor);
        if (at != SIZE_MAX) {
            put_comment(block, i, end, file->all[at].text, &before[at]);
            n++;
        }
        i = next - 1;
    }
    return n;
}

/*
 * What we take for a comment and the language does not, in whole: a line's end that others do not see (of Python, JavaScript), one
 * written as an escape (Java), the end of PHP; or the other way round, a comment of C that goes on over the next line.
 */
static bool is_more_than_comment(const char *language, const base_buf *comment)
{
    static const char *const anywhere[] = {"\r", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9", NULL};
    static const struct {
        const char *language, *text;
        bool is_at_end; /* of a line */
    } marks[] = {{"java", "\\u", false}, {"scala", "\\u", false}, {"php", "?>", false}, {"c", "\\", true},
        {"cpp", "\\", true}, {"objc", "\\", true}, {"c", "?\?/", true}, {"cpp", "?\?/", true}};
    const char *text = comment->data ? comment->data : "";
    for (const char *const *end = anywhere; *end; end++)
        if (strstr(text, *end)) return true;
    for (size_t i = 0; language && i < sizeof marks / sizeof *marks; i++) {
        const size_t n = strlen(marks[i].text);
        if (strcmp(marks[i].language, language) != 0) continue;
        if (!marks[i].is_at_end && strstr(text, marks[i].text)) return true;
        for (size_t at = 0, to; marks[i].is_at_end && at < comment->len; at = to + 1) {
            to = tool__line_end(text, comment->len, at);
            const base_str s = base_str_trim((base_str){text + at, to - at});
            if (s.len >= n && !memcmp(s.ptr + s.len - n, marks[i].text, n)) return true;
        }
    }
    return false;
}

/* The text without its comments and all white space. */
static void put_code(const char *language, const base_buf *text, base_buf *ret)
{
    char *plain = code_blank_comments(language, text->data, text->len);
    for (size_t i = 0; i < text->len; i++)
        if (!tool__is_space(plain[i])) base_buf_putc(ret, plain[i]);
    free(plain);
}

/* Whether the code stayed as it was: a comment that does not end takes what stands behind it along. */
static bool is_same_code(const char *language, const base_buf *was, const base_buf *is)
{
    base_buf old = {0}, new = {0};
    put_code(language, was, &old);
    put_code(language, is, &new);
    const bool same = old.len == new.len && (!old.len || !memcmp(old.data, new.data, old.len));
    base_buf_free(&old);
    base_buf_free(&new);
    return same;
}

static bool find_place_of(
    code_grammars *g, const char *path, const base_buf *text, const char *name, place *ret, base_buf *why)
{
    uint32_t at;
    code_file *c = tool__parse_for(g, path, text->data, text->len, name);
    const bool is = tool__find_definition(c, path, text, name, &at, why);
    if (is) {
        const code_definition *d = &c->definitions[at];
        const size_t body = d->body_to > d->body_from ? d->body_from : d->from;
        ret->from = tool__line_of(text->data, d->from) - 1;
        ret->body = tool__line_of(text->data, body) - 1;
        ret->to = tool__line_of(text->data, d->to - (d->to > d->from));
    }
    code_file_free(c);
    return is;
}

bool tool__take_comments(code_grammars *g, const char *path, const base_buf *text, const char *name,
    base_str block, base_buf *ret_text, base_buf *why)
{
    const char *language = code_language(path, text->data, text->len);
    place p = {0};
    if (!find_place_of(g, path, text, name, &p, why)) return false;
    base_buf clean = {0};
    tool__normalise_block(&clean, block.ptr, block.len);
    lines file = split(language, text->data, text->len),
          own = split(language, clean.data ? clean.data : "", clean.len);
    base_buf *before = base_xcalloc(file.n + 1, sizeof *before),
             *behind = base_xcalloc(file.n + 1, sizeof *behind);
    const bool is_python = language && !strcmp(language, "python");
    const bool crlf = tool__text_style(text->data, text->len).crlf;
    const uint32_t n = collect(&file, &p, &own, is_python, before, behind);
    bool is_comment = true;
    for (size_t i = 0; i < file.n; i++) {
        is_comment &=
            !is_more_than_comment(language, &before[i]) && !is_more_than_comment(language, &behind[i]);
        if (before[i].len) tool__line_ends(ret_text, before[i].data, before[i].len, crlf);
        const bool is_last = i + 1 == file.n && text->data[text->len - 1] != '\n';
        const base_str old = file.all[i].text;
        const size_t end =
            behind[i].len ? (size_t)(base_str_trim(old).ptr + base_str_trim(old).len - old.ptr) : 0;
        base_buf_add(ret_text, old.ptr, end);
        if (behind[i].len) base_buf_add(ret_text, behind[i].data, behind[i].len);
        base_buf_add(ret_text, old.ptr + end, old.len - end + !is_last);
        base_buf_free(&before[i]);
        base_buf_free(&behind[i]);
    }
    if (!n)
        base_buf_printf(why,
            "The request asks for comments alone, and the new text of %s brings none that is not there. Nothing was "
            "changed. Next: the same call with the comment in its place and the code as it is.\n",
            name);
    is_comment = is_comment && is_same_code(language, text, ret_text);
    if (n && !is_comment)
        base_buf_printf(why,
            "A comment of the new text of %s would change the code around it. Nothing was changed. Next: the same call "
            "with each comment closed, on lines of its own.\n",
            name);
    const bool is_good = n && is_comment && tool__syntax_holds(g, path, text, ret_text, why);
    if (!is_good) base_buf_free(ret_text);
    free(before);
    free(behind);
    lines_free(&file);
    lines_free(&own);
    base_buf_free(&clean);
    return is_good;
}
