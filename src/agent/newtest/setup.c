/*
 * The lines with which a test of C or Go makes the object that its subject is given: a small model invents a constructor, or uses
 * a variable of the test beside it that its own does not have (contract: newtest.h).
 */
#include <ctype.h>
#include <string.h>

#include "agent/newtest/newtest.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

typedef struct line {
    size_t from, word, to; /* bytes: its beginning, its first word, its end without the newline */
} line;

/* The line at or behind byte `at`; false: none before `to`. */
static bool read_line(const base_buf *text, size_t at, size_t to, line *ret)
{
    if (at >= to) return false;
    const char *newline = memchr(text->data + at, '\n', to - at);
    *ret = (line){at, at, newline ? (size_t)(newline - text->data) : to};
    while (ret->word < ret->to && strchr(" \t", text->data[ret->word])) ret->word++;
    return true;
}

/* The identifier of the line at or behind byte `at`; false: it has none. */
static bool next_name(const base_buf *text, const line *l, size_t at, base_str *ret)
{
    size_t from, to;
    if (!code_next_identifier(text->data, l->to, &at, &from, &to)) return false;
    *ret = (base_str){text->data + from, to - from};
    return true;
}

static bool is_same(base_str a, base_str b)
{
    return a.len == b.len && !memcmp(a.ptr, b.ptr, a.len);
}

static bool writes(const base_buf *text, const line *l, base_str name)
{
    base_str w;
    for (size_t at = l->word; next_name(text, l, at, &w); at = (size_t)(w.ptr - text->data) + w.len)
        if (is_same(w, name)) return true;
    return false;
}

/* Is it one of the types, or what makes one: New + T, T + _new? */
static bool is_type(const char *types, base_str w, bool may_make)
{
    base_str t;
    const size_t n = strlen(types);
    size_t pos = 0, from, to;
    while (code_next_identifier(types, n, &pos, &from, &to)) {
        t = (base_str){types + from, to - from};
        if (is_same(t, w) || (may_make && t.len > 2 && memmem(w.ptr, w.len, t.ptr, t.len))) return true;
    }
    return false;
}

/* "Type *name;", "struct type name = ...;": which name, and whether it is given a value; false: it declares none of such a type. */
static bool declares(const base_buf *text, const line *l, const char *types, base_str *ret, bool *ret_is_made)
{
    base_str w, name;
    for (size_t at = l->word; next_name(text, l, at, &w); at = (size_t)(w.ptr - text->data) + w.len) {
        if (memchr(text->data + l->word, '(', (size_t)(w.ptr - text->data) - l->word)) return false;
        if (!is_type(types, w, false)) continue;
        size_t behind = (size_t)(w.ptr - text->data) + w.len;
        behind += strspn(text->data + behind, " *");
        if (!next_name(text, l, behind, &name) || name.ptr != text->data + behind) return false;
        size_t end = behind + name.len;
        end += strspn(text->data + end, " ");
        *ret = name;
        *ret_is_made = end < l->to && text->data[end] == '=' &&
                       !strchr("{N0", text->data[end + 1 + strspn(text->data + end + 1, " ")]);
        return end < l->to && strchr(";=", text->data[end]) && text->data[l->to - 1] == ';';
    }
    return false;
}

/* "name = make(...);", "make(&name);", "init(name);" */
static bool makes(const base_buf *text, const line *l, base_str name)
{
    base_str first;
    const bool is_statement =
        l->to > l->word && text->data[l->to - 1] == ';' && memchr(text->data + l->word, '(', l->to - l->word);
    if (!is_statement || !next_name(text, l, l->word, &first)) return false;
    const size_t behind = (size_t)(first.ptr - text->data) + first.len;
    const bool is_set = is_same(first, name) && text->data[behind + strspn(text->data + behind, " ")] == '=';
    return is_set || (!is_same(first, name) && writes(text, l, name));
}

/* The end of the string literal that begins at byte `at` of the line. */
static size_t skip_string(const base_buf *text, const line *l, size_t at)
{
    for (at++; at < l->to && text->data[at] != '"'; at++) at += text->data[at] == '\\';
    return at;
}

/* Does what makes the object use a variable of its test besides, which the new one does not have? Names of the file are known. */
static bool uses_others(const base_buf *text, const line *l, base_str name, const code_file *f)
{
    const char *set = memchr(text->data + l->word, '=', l->to - l->word);
    size_t at = set ? (size_t)(set - text->data) : l->word, from, to;
    while (at < l->to) {
        const char *quote = memchr(text->data + at, '"', l->to - at);
        const size_t part = quote ? (size_t)(quote - text->data) : l->to;
        while (code_next_identifier(text->data, part, &at, &from, &to)) {
            bool is_known = text->data[to + strspn(text->data + to, " ")] == '(' ||
                            is_same((base_str){text->data + from, to - from}, name) ||
                            (from && (text->data[from - 1] == '.' || text->data[from - 1] == '>')) ||
                            code_is_keyword(text->data + from, to - from),
                 has_small = false;
            for (size_t i = from; i < to; i++) has_small |= islower((unsigned char)text->data[i]) != 0;
            for (uint32_t i = 0; i < f->n_definitions && !is_known; i++)
                is_known = strlen(f->definitions[i].name) == to - from &&
                           !memcmp(f->definitions[i].name, text->data + from, to - from);
            if (!is_known && has_small) return true;
        }
        at = quote ? skip_string(text, l, part) + 1 : l->to;
    }
    return false;
}

static bool asserts(const base_buf *text, const line *l, base_str name)
{
    static const char *const words[] = {"assert", "Assert", "ASSERT", "CHECK", "REQUIRE"};
    bool is = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is |= memmem(text->data + l->word, l->to - l->word, words[i], strlen(words[i])) != NULL;
    return is && writes(text, l, name) && text->data[l->to - 1] == ';' &&
           !memmem(text->data + l->word, l->to - l->word, "->", 2);
}

static void put_line(const base_buf *text, const line *l, base_buf *out)
{
    base_buf_add(out, text->data + l->from, l->to - l->from);
    base_buf_putc(out, '\n');
}

/* The lines at the body's own depth alone are looked at: what stands deeper is made again and again, or in a branch. */
static bool next_at_depth(const base_buf *text, size_t *at, size_t to, size_t depth, line *ret)
{
    while (read_line(text, *at, to, ret)) {
        *at = ret->to + 1;
        if (ret->word < ret->to && ret->word - ret->from == depth) return true;
    }
    return false;
}

/* "free_it(name);": the last statement of the test, where it takes the object apart again. */
static void put_end(const base_buf *text, size_t from, size_t to, size_t depth, base_str name, base_buf *out)
{
    line l;
    for (size_t at = from; next_at_depth(text, &at, to, depth, &l);) {
        size_t word, end, given, behind;
        size_t pos = l.word;
        const bool is_call = code_next_identifier(text->data, l.to, &pos, &word, &end) && word == l.word &&
                             text->data[end] == '(' &&
                             code_next_identifier(text->data, l.to, &pos, &given, &behind) &&
                             behind - given == name.len && !memcmp(text->data + given, name.ptr, name.len) &&
                             l.to - behind == 2 && !memcmp(text->data + behind, ");", 2);
        if (is_call) base_buf_clear(out);
        if (is_call) base_buf_add(out, text->data + l.word, l.to - l.word);
    }
}

static void put_setup_c(const base_buf *text, const code_file *f, size_t from, size_t to, const char *types,
    size_t depth, base_buf *out, base_buf *end)
{
    line l, made;
    base_str name;
    bool is_made = false;
    size_t at = from, next;
    while (next_at_depth(text, &at, to, depth, &l)) {
        if (!declares(text, &l, types, &name, &is_made)) continue;
        made = l;
        for (next = at; !is_made && next_at_depth(text, &next, to, depth, &made);)
            is_made = makes(text, &made, name);
        if (!is_made || uses_others(text, &made, name, f)) continue;
        put_line(text, &l, out);
        if (made.from != l.from) base_buf_putc(out, '\n');
        if (made.from != l.from) put_line(text, &made, out);
        next = made.to + 1;
        if (read_line(text, next, to, &made) && made.to > made.word && asserts(text, &made, name))
            put_line(text, &made, out);
        put_end(text, next, to, depth, name, end);
        return;
    }
}

/* "l, err := New(128)" with the check of its error behind it */
static void put_setup_go(const base_buf *text, const code_file *f, size_t from, size_t to, const char *types,
    size_t depth, base_buf *out, base_buf *end)
{
    line l, check;
    size_t at = from;
    while (next_at_depth(text, &at, to, depth, &l)) {
        const char *sets = memmem(text->data + l.word, l.to - l.word, ":=", 2);
        base_str w;
        bool is_one = false;
        for (size_t k = sets ? (size_t)(sets - text->data) : l.to; !is_one && next_name(text, &l, k, &w);
             k = (size_t)(w.ptr - text->data) + w.len)
            is_one = is_type(types, w, true);
        if (!is_one || !strchr("})", text->data[l.to - 1])) continue;
        put_line(text, &l, out);
        static const char checked[] = "if err != nil {";
        if (!read_line(text, at, to, &check) ||
            !memmem(text->data + check.word, check.to - check.word, checked, sizeof checked - 1))
            return;
        while (put_line(text, &check, out), text->data[check.word] != '}')
            if (!read_line(text, check.to + 1, to, &check)) return;
        return;
    }
}

/* Bytes [from, to) of the subject's head: what it is given, in Go with its receiver. */
static void put_types(const base_buf *text, size_t from, size_t to, base_buf *out)
{
    static const char *const plain[] = {"const", "char", "int", "unsigned", "signed", "long", "short",
        "double", "float", "void", "bool", "size_t", "ssize_t", "struct", "enum", "union", "FILE", "string",
        "error", "byte", "func", "interface", "map", "chan", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
        "int64_t", "int32_t"};
    size_t at = from, word, end;
    while (code_next_identifier(text->data, to, &at, &word, &end)) {
        bool is_plain = false;
        for (size_t i = 0; i < sizeof plain / sizeof *plain && !is_plain; i++)
            is_plain = strlen(plain[i]) == end - word && !memcmp(plain[i], text->data + word, end - word);
        if (!is_plain) base_buf_printf(out, "%.*s ", (int)(end - word), text->data + word);
    }
}

static void put_from(const base_buf *tests, const code_file *f, const code_definition *d, const char *types,
    bool is_go, base_buf *out, base_buf *end)
{
    const size_t to = d->to < tests->len ? d->to : tests->len;
    const char *brace = d->name_from < to ? memchr(tests->data + d->name_from, '{', to - d->name_from) : NULL;
    const char *begin = brace ? memchr(brace, '\n', (size_t)(tests->data + to - brace)) : NULL;
    line first;
    if (!begin) return;
    const size_t from = (size_t)(begin - tests->data) + 1;
    size_t at = from;
    while (read_line(tests, at, to, &first) && first.word == first.to) at = first.to + 1;
    if (at < to)
        (is_go ? put_setup_go : put_setup_c)(tests, f, from, to, types, first.word - first.from, out, end);
}

char *agent__find_setup(const base_buf *subject, const code_definition *d, const char *path,
    const code_file *f, const base_buf *tests, const code_definition *nearest, char **ret_end)
{
    const bool is_go = base_ends_with(path, ".go");
    base_buf types = {0}, out = {0}, ends = {0};
    *ret_end = NULL;
    if (!d || !nearest || (!is_go && !base_ends_with(path, ".c"))) return NULL;
    const size_t head = is_go ? d->from : d->name_from + strlen(d->name),
                 end = d->body_from < subject->len ? d->body_from : 0;
    if (end > head) put_types(subject, head, end, &types);
    if (types.len) put_from(tests, f, nearest, types.data, is_go, &out, &ends);
    for (uint32_t i = 0; i < f->n_definitions && types.len && !out.len; i++)
        if (agent__is_test_definition(&f->definitions[i], path, tests))
            put_from(tests, f, &f->definitions[i], types.data, is_go, &out, &ends);
    base_buf_free(&types);
    if (ends.len) *ret_end = base_buf_take(&ends);
    base_buf_free(&ends);
    return out.len ? base_buf_take(&out) : NULL;
}
