/*
 * What of the tree's tests goes with a definition that is deleted: an assertion that uses it, a test that nothing of
 * the tree is left in, a class or describe without a test, and what of a file of tests only those used. Of languages whose
 * runners find tests by themselves and where an assertion is a statement of its own. By the text alone: which statement
 * begins where, and where its brackets close; the syntax of the result is checked like that of any change.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"
#include "tools/refactor/refactor.h"
#include "base/path.h"
#include "code/code.h"

enum { MAX_NAMES = 32, NAME_BYTES = 128, MAX_SAID = 8 };

/* How a language writes its tests. */
typedef enum test_form {
    TEST_NAMED,  /* Python: functions named test... */
    TEST_CALLED, /* JavaScript: it('...', () => {...}) */
    TEST_MARKED  /* functions that an attribute, an annotation or their name in a _test file marks */
} test_form;

static const struct {
    const char *language;
    test_form form;
} forms[] = {{"python", TEST_NAMED}, {"javascript", TEST_CALLED}, {"typescript", TEST_CALLED},
    {"tsx", TEST_CALLED}, {"rust", TEST_MARKED}, {"go", TEST_MARKED}, {"java", TEST_MARKED}};

/* One file that has tests. */
typedef struct tests {
    const refactor *x;
    size_t file;
    const char *s; /* its text */
    uint32_t n;
    char *rest; /* comments and what goes are blank in it */
    bool is_python, has_semicolons;
    test_form form;
} tests;

/* Benchmarks and examples run the code as tests do. */
static bool is_marked_test(const refactor_file *f, const code_definition *d)
{
    static const char *const names[] = {"Test", "Benchmark", "Example", "Fuzz"};
    static const char *const marks[] = {
        "#[test", "#[bench]", "::test]", "::test(", "@Test", "@ParameterizedTest", "@Benchmark"};
    bool is_so = false;
    if (f->language->family == REFACTOR_GO) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            is_so |= !strncmp(d->name, names[i], strlen(names[i]));
        return is_so && base_ends_with(f->path, "_test.go") && !strcmp(d->what, "function");
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        is_so |= d->name_from > d->from &&
                 memmem(f->file.text.data + d->from, d->name_from - d->from, marks[i], strlen(marks[i]));
    return is_so;
}

/* Bytes [from, to) of a statement or a test. */
typedef struct extent {
    uint32_t from, to;
} extent;

/* Does one of the words begin here? A word that ends with a letter may not go on. */
static bool begins_with(const tests *t, uint32_t at, const char *const *words)
{
    for (; *words; words++) {
        const size_t n = strlen(*words);
        if (t->n - at >= n && !memcmp(t->s + at, *words, n) &&
            (t->n - at == n || !code_is_name_byte(t->s[at + n])))
            return true;
    }
    return false;
}

static uint32_t line_begin(const tests *t, uint32_t at)
{
    return (uint32_t)tool__line_begin(t->s, at);
}

static uint32_t behind_line(const tests *t, uint32_t at)
{
    const uint32_t end = (uint32_t)tool__line_end(t->s, t->n, at);
    return end < t->n ? end + 1 : end;
}

/* The first byte of the line that is no white space, or its end. */
static uint32_t first_of_line(const tests *t, uint32_t at)
{
    while (at < t->n && (t->s[at] == ' ' || t->s[at] == '\t')) at++;
    return at;
}

/* '\n', '\u{1F600}' */
static uint32_t behind_escape(const tests *t, uint32_t at)
{
    uint32_t end = at + 3;
    while (end < t->n && t->s[end] != '\'' && t->s[end] != '\n') end++;
    return end < t->n && t->s[end] == '\'' ? end + 1 : at + 1;
}

static uint32_t behind_string(const tests *t, uint32_t at)
{
    const char quote = t->s[at];
    if (quote == '\'' && t->form == TEST_MARKED) /* 'a', and Rust's lifetimes */
        return t->n - at > 2 && t->s[at + 2] == quote  ? at + 3
               : t->n - at > 3 && t->s[at + 1] == '\\' ? behind_escape(t, at)
                                                       : at + 1;
    const bool is_triple = t->is_python && t->n - at >= 3 && t->s[at + 1] == quote && t->s[at + 2] == quote;
    for (at += is_triple ? 3 : 1; at < t->n; at++) {
        if (t->s[at] == '\\')
            at++;
        else if (!is_triple && quote != '`' && t->s[at] == '\n')
            return at; /* no string: a regular expression, a word of a comment */
        else if (t->s[at] == quote && !is_triple)
            return at + 1;
        else if (is_triple && t->n - at >= 3 && !memcmp(t->s + at, (char[]){quote, quote, quote}, 3))
            return at + 3;
    }
    return t->n;
}

/* A line of JavaScript goes on where an operator ends it or begins the next one. */
static bool goes_on(const tests *t, uint32_t newline)
{
    uint32_t before = newline, behind = newline;
    if (t->is_python) return newline > 0 && t->s[newline - 1] == '\\';
    while (before > 0 && isspace((unsigned char)t->s[before - 1])) before--;
    while (behind < t->n && isspace((unsigned char)t->s[behind])) behind++;
    return (before > 0 && strchr("=,&|+-*(?:.<>", t->s[before - 1])) ||
           (behind < t->n && strchr(".?:&|+*=", t->s[behind]));
}

/* Behind the statement that begins at `at`: its newline, or behind its semicolon; where an outer bracket closes. */
static uint32_t statement_end(const tests *t, uint32_t at)
{
    int depth = 0;
    while (at < t->n) {
        const char c = t->s[at];
        if (t->rest[at] == ' ' && c != ' ') { /* a comment */
            at++;
            continue;
        }
        if (strchr("\"'`", c)) {
            at = behind_string(t, at);
            continue;
        }
        if (strchr("([{", c)) depth++;
        if (strchr(")]}", c) && --depth < 0) return at;
        if (!depth && t->has_semicolons && c == ';') return at + 1;
        if (!depth && c == '\n' && !goes_on(t, at)) return at;
        at++;
    }
    return t->n;
}

static uint32_t indent_of(const tests *t, uint32_t line)
{
    return first_of_line(t, line) - line;
}

/* `with pytest.raises(E):` and the lines below it. */
static uint32_t block_end(const tests *t, uint32_t from)
{
    const uint32_t line = line_begin(t, from);
    uint32_t end = statement_end(t, from);
    for (uint32_t next = behind_line(t, end); next < t->n; next = behind_line(t, next)) {
        const uint32_t first = first_of_line(t, next);
        if (first < t->n && t->s[first] == '\n') continue;
        if (indent_of(t, next) <= indent_of(t, line)) break;
        end = (uint32_t)tool__line_end(t->s, t->n, next);
    }
    return end;
}

static bool has_word(const tests *t, extent e, const char *word);

/* Go: t.Errorf, t.Fatal. */
static bool fails_in(const tests *t, extent e)
{
    static const char *const words[] = {"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"};
    bool is_so = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) is_so |= has_word(t, e, words[i]);
    return is_so;
}

/* Where the assertion that begins at `at` ends; 0: there begins none. */
static uint32_t assertion_end(const tests *t, uint32_t at)
{
    static const char *const raising[] = {"with pytest.raises", "with pytest.warns", "with raises",
        "with self.assertRaises", "with self.assertRaisesRegex", "with self.assertWarns", NULL};
    if (t->is_python && begins_with(t, at, raising)) return block_end(t, at);
    const char *s = t->s + at;
    const size_t n = t->n - at;
    if (!t->is_python && n > 6 && !memcmp(s, "await ", 6)) {
        const uint32_t end = assertion_end(t, at + 6);
        return end;
    }
    if (t->form == TEST_MARKED && n > 3 && !memcmp(s, "if ", 3)) { /* Go: if got != want { t.Errorf(...) } */
        const uint32_t end = statement_end(t, at);
        return fails_in(t, (extent){at, end}) ? end : 0;
    }
    const bool is_one = (n > 6 && !strncasecmp(s, "assert", 6)) || (n > 8 && !memcmp(s, "require.", 8)) ||
                        (t->is_python && n > 11 && !memcmp(s, "self.assert", 11)) ||
                        (!t->is_python && n > 7 && !memcmp(s, "expect", 6) && strchr("(.", s[6]));
    return is_one ? statement_end(t, at) : 0;
}

/* The assertion that holds the byte. */
static bool find_assertion(const tests *t, uint32_t at, uint32_t top, extent *ret)
{
    for (uint32_t line = line_begin(t, at);; line = line_begin(t, line - 1)) {
        const uint32_t first = first_of_line(t, line), end = assertion_end(t, first);
        if (end > at) {
            *ret = (extent){first, end};
            return true;
        }
        if (line <= top || line == 0) return false;
    }
}

/* The call of one of these that holds [from, to) and begins a line: it('...', () => {...}). */
static bool find_around(const tests *t, uint32_t from, uint32_t to, const char *const *words, extent *ret)
{
    for (uint32_t line = line_begin(t, from);; line = line_begin(t, line - 1)) {
        const uint32_t first = first_of_line(t, line);
        if (first <= from && begins_with(t, first, words)) {
            const uint32_t end = statement_end(t, first);
            if (end >= to) {
                *ret = (extent){first, end};
                return true;
            }
        }
        if (line == 0) return false;
    }
}

static const char *const test_words[] = {"it", "test", NULL};
static const char *const suite_words[] = {"describe", "suite", "context", NULL};

/* The test that holds a place, and where its statements stand. */
static bool find_test(const tests *t, const refactor_place *p, extent *ret, extent *ret_body)
{
    const refactor_file *f = &t->x->files[t->file];
    const code_file *file = f->uses->file;
    if (t->form == TEST_CALLED) {
        if (!find_around(t, p->use->from, p->use->from, test_words, ret)) return false;
        uint32_t at = ret->from; /* the function's brace: behind "=>" or ")" */
        for (; at < ret->to; at++) {
            uint32_t before = at;
            while (before > ret->from && t->s[before - 1] == ' ') before--;
            if (t->s[at] == '{' && before > ret->from && strchr(">)", t->s[before - 1])) break;
        }
        uint32_t end = at + 1; /* up to the brace that closes it */
        while (end < ret->to && t->s[end] != '}') {
            const uint32_t next = isspace((unsigned char)t->s[end]) ? end : statement_end(t, end);
            end = next > end ? next : end + 1;
        }
        *ret_body = at < ret->to ? (extent){at + 1, end < ret->to ? end : ret->to} : *ret;
        return p->use->from >= ret_body->from && p->use->from < ret_body->to;
    }
    const code_definition *d = NULL; /* the innermost: a test may hold functions */
    for (uint32_t i = 0; i < file->n_definitions; i++) {
        const code_definition *o = &file->definitions[i];
        const bool is_test = t->form == TEST_MARKED ? is_marked_test(f, o) : !strncmp(o->name, "test", 4);
        if (is_test && o->body_to && p->use->from >= o->body_from && p->use->from < o->body_to &&
            strcmp(o->what, "class") != 0 && (!d || o->from > d->from))
            d = o;
    }
    if (!d) return false;
    *ret = (extent){d->from, d->to};
    if (t->form == TEST_MARKED) {
        const char *brace = memchr(t->s + d->body_from, '{', d->body_to - d->body_from);
        if (!brace) return false;
        *ret_body = (extent){(uint32_t)(brace - t->s) + 1, d->body_to - 1};
        return p->use->from >= ret_body->from && p->use->from < ret_body->to;
    }
    *ret_body = (extent){
        line_begin(t, d->body_from) > d->name_from ? line_begin(t, d->body_from) : d->body_from, d->to};
    return true;
}

static bool has_word(const tests *t, extent e, const char *word)
{
    const size_t n = strlen(word);
    for (uint32_t i = e.from; i + n <= e.to; i++)
        if (!memcmp(t->rest + i, word, n) && (i == 0 || !code_is_name_byte(t->rest[i - 1])) &&
            !code_is_name_byte(t->rest[i + n]))
            return true;
    return false;
}

/* Does it use what is deleted, or a name that was read from that? */
static bool depends(const tests *t, extent e, char names[][NAME_BYTES], size_t n_names)
{
    for (size_t i = 0; i < t->x->n_places; i++) {
        const refactor_place *p = &t->x->places[i];
        if (p->file == t->file && p->use->from >= e.from && p->use->from < e.to) return true;
    }
    for (size_t i = 0; i < n_names; i++)
        if (has_word(t, e, names[i])) return true;
    return false;
}

/* The names left of "=" in `a, b = ...`, `const a = ...`, and those of `for a in ...`, `with ... as a`. */
static size_t read_assigned(const tests *t, extent e, char names[][NAME_BYTES], size_t n)
{
    static const char *const heads[] = {"for", "with", NULL};
    uint32_t to = e.from;
    while (to < e.to && !(t->s[to] == '=' && t->s[to + 1] != '=' && t->s[to + 1] != '>')) to++;
    if (begins_with(t, e.from, heads)) to = e.to;
    if (to == e.to && !begins_with(t, e.from, heads)) return n;
    size_t pos = e.from, from, end;
    while (n < MAX_NAMES && code_next_identifier(t->s, to, &pos, &from, &end)) {
        if (end - from >= NAME_BYTES || code_is_keyword(t->s + from, end - from)) continue;
        if (begins_with(t, e.from, heads) && !strncmp(t->s + from, "in ", 3)) break;
        snprintf(names[n++], NAME_BYTES, "%.*s", (int)(end - from), t->s + from);
    }
    return n;
}

/* Is there a call of a function that the tree defines outside of its tests, or an assertion? */
static bool tests_something(const tests *t, extent body)
{
    const code_index *index = tool_workspace_index(t->x->w);
    size_t pos = body.from, from, end;
    while (code_next_identifier(t->rest, body.to, &pos, &from, &end)) {
        char name[NAME_BYTES];
        if (end - from >= NAME_BYTES) continue;
        snprintf(name, sizeof name, "%.*s", (int)(end - from), t->rest + from);
        if (!strncmp(name, "assert", 6) || !strcmp(name, "expect")) return true;
        if (end >= body.to || t->rest[end] != '(' || !index) continue;
        code_place *places = NULL;
        const uint32_t n = code_index_define(index, name, &places);
        bool is_ours = false;
        for (uint32_t i = 0; i < n; i++) is_ours |= !code_path_is_test(places[i].path);
        code_places_free(places, n);
        if (is_ours) return true;
    }
    return false;
}

/* Is there an assertion within? */
static bool asserts(const tests *t, extent e)
{
    size_t pos = e.from, from, end;
    while (code_next_identifier(t->rest, e.to, &pos, &from, &end)) {
        const bool is_expect = end - from == 6 && !memcmp(t->rest + from, "expect", 6);
        const bool is_assert = end - from == 6 && !memcmp(t->rest + from, "assert", 6);
        const bool is_longer =
            end - from > 6 && !memcmp(t->rest + from, "assert", 6) && t->form == TEST_MARKED;
        if (is_expect || is_assert || is_longer) return true;
    }
    return false;
}

/* Has every assertion of the test to do with what is deleted? */
static bool depends_whole(const tests *t, extent body)
{
    char names[MAX_NAMES][NAME_BYTES];
    size_t n_names = 0;
    bool has_one = false, has_other = false;
    for (uint32_t at = body.from; at < body.to;) {
        while (at < body.to && isspace((unsigned char)t->s[at])) at++;
        uint32_t end = at < body.to ? assertion_end(t, at) : 0;
        const bool is_assertion = end != 0;
        if (!end && at < body.to) end = statement_end(t, at);
        if (end <= at) break;
        const extent e = {at, end};
        const bool is_bound = depends(t, e, names, n_names);
        const bool holds_one = is_assertion || asserts(t, e) || (t->form == TEST_MARKED && fails_in(t, e));
        if (holds_one && !is_bound) return false;
        has_one |= holds_one;
        has_other |= !is_bound && tests_something(t, e);
        if (is_bound) n_names = read_assigned(t, e, names, n_names);
        at = end + (end < body.to && t->s[end] == '\n');
    }
    return has_one || !has_other;
}

static bool is_blank_line(const tests *t, uint32_t line)
{
    return tool__is_blank(t->s, line, tool__line_end(t->s, t->n, line));
}

/* Its lines whole, with the comment that is its own and the blank lines that would be left over. */
static bool widen(const tests *t, extent *e)
{
    if (!refactor__statement_extent(&t->x->files[t->file].file.text, &e->from, &e->to)) return false;
    const bool is_last =
        e->to >= t->n || is_blank_line(t, e->to) || strchr("})", t->s[first_of_line(t, e->to)]);
    while (e->from > 0) {
        const uint32_t line = line_begin(t, e->from - 1), first = first_of_line(t, line);
        const bool is_mark = !strncmp(t->s + first, "// @ts-", 7) || !strncmp(t->s + first, "// eslint", 9);
        const bool is_comment = t->s[first] == '#' || (t->s[first] == '/' && t->s[first + 1] == '/');
        if (!is_mark && !(is_comment && is_last)) break;
        e->from = line;
    }
    const uint32_t above = e->from > 0 ? line_begin(t, e->from - 1) : 0;
    const bool is_first = e->from > 0 && e->from > above + 1 && strchr("{:", t->s[e->from - 2]);
    while (is_last && e->from > 0 && is_blank_line(t, line_begin(t, e->from - 1)))
        e->from = line_begin(t, e->from - 1);
    while (is_first && e->to < t->n && is_blank_line(t, e->to)) e->to = behind_line(t, e->to);
    return true;
}

/* Python: the headers that have nothing below them any more go too; false: one of them cannot. */
static bool take_headers(const tests *t, extent *e, uint32_t top)
{
    static const char *const heads[] = {"for", "while", "with", "if", NULL};
    static const char *const tails[] = {"else", "elif", NULL};
    for (;;) {
        uint32_t above = line_begin(t, e->from), below = behind_line(t, e->to);
        const uint32_t indent = indent_of(t, above);
        do {
            if (above <= top) return true;
            above = line_begin(t, above - 1);
        } while (tool__is_blank(t->rest, above, tool__line_end(t->s, t->n, above)));
        while (below < t->n && tool__is_blank(t->rest, below, tool__line_end(t->s, t->n, below)))
            below = behind_line(t, below);
        if (indent_of(t, above) >= indent) return true; /* its neighbour */
        if (below < t->n && indent_of(t, below) >= indent) return true;
        const uint32_t head = first_of_line(t, above), next = below < t->n ? first_of_line(t, below) : head;
        const bool has_tail = indent_of(t, below) == indent_of(t, above) && begins_with(t, next, tails);
        if (!begins_with(t, head, heads) || has_tail) return false;
        e->from = head;
        for (uint32_t i = e->from; i < e->to; i++)
            if (t->rest[i] != '\n') t->rest[i] = ' ';
    }
}

static void put_cut(tests *t, refactor_cuts *cuts, extent e, const char *what)
{
    base_grow(&cuts->all, &cuts->cap, cuts->n + 1, sizeof *cuts->all);
    refactor_cut *cut = &cuts->all[cuts->n++];
    *cut = (refactor_cut){.file = t->file, .from = e.from, .to = e.to};
    snprintf(cut->what, sizeof cut->what, "%s", what);
    for (uint32_t i = e.from; i < e.to; i++)
        if (t->rest[i] != '\n') t->rest[i] = ' ';
}

static bool has_test(const tests *t, extent e)
{
    size_t pos = e.from, from, end;
    const refactor_file *f = &t->x->files[t->file];
    for (uint32_t i = 0; i < f->uses->file->n_definitions && t->form == TEST_MARKED; i++) {
        const code_definition *d = &f->uses->file->definitions[i];
        if (d->from >= e.from && d->to <= e.to && is_marked_test(f, d) && t->rest[d->name_from] != ' ')
            return true;
    }
    while (t->form != TEST_MARKED && code_next_identifier(t->rest, e.to, &pos, &from, &end)) {
        if (end >= e.to || !strchr("(.", t->rest[end])) continue; /* an import's */
        if (t->is_python
                ? !strncmp(t->rest + from, "test", 4) && from > 4 && !strncmp(t->rest + from - 4, "def ", 4)
                : (end - from == 2 && !strncmp(t->rest + from, "it", 2)) ||
                      (end - from == 4 && !strncmp(t->rest + from, "test", 4)))
            return true;
    }
    return false;
}

/* What the test is called: by its function, JavaScript's by its title. */
static void name_test(const tests *t, extent e, base_buf *ret)
{
    uint32_t from = e.from, to;
    if (t->form != TEST_CALLED) {
        const code_file *file = t->x->files[t->file].uses->file;
        const code_definition *d = NULL;
        for (uint32_t i = 0; i < file->n_definitions && !d; i++)
            if (file->definitions[i].from == e.from) d = &file->definitions[i];
        base_buf_puts(ret, d ? d->name : "a test");
        return;
    }
    while (from < e.to && !strchr("\"'`\n", t->s[from])) from++;
    to = from < e.to && t->s[from] != '\n' ? behind_string(t, from) : from;
    base_buf_add(ret, to > from ? t->s + from : "a test", to > from ? to - from : strlen("a test"));
}

static void cut_test(tests *t, refactor_cuts *cuts, extent test)
{
    const base_buf *text = &t->x->files[t->file].file.text;
    const code_file *file = t->x->files[t->file].uses->file;
    extent e = test, around = test;
    base_buf name = {0};
    name_test(t, test, &name);
    /* The class or describe that only this test was left in. */
    for (uint32_t i = test.from; i < test.to; i++)
        if (t->rest[i] != '\n') t->rest[i] = ' ';
    for (uint32_t i = 0; t->is_python && i < file->n_definitions; i++) {
        const code_definition *d = &file->definitions[i];
        if (!strcmp(d->what, "class") && d->from < e.from && d->to >= e.to &&
            !has_test(t, (extent){d->from, d->to})) {
            e = (extent){d->from, d->to};
            break;
        }
    }
    while (t->form == TEST_CALLED && e.from > 0 && find_around(t, e.from - 1, e.to, suite_words, &around) &&
           !has_test(t, around))
        e = around;
    refactor__definition_extent(text, e.from, e.to, &e.from, &e.to);
    refactor__widen_blank(text, &e.from, &e.to);
    if (e.to < t->n && strchr("})", t->s[first_of_line(t, e.to)])) /* the last of a describe */
        while (e.from > 0 && is_blank_line(t, line_begin(t, e.from - 1))) e.from = line_begin(t, e.from - 1);
    put_cut(t, cuts, e, name.data);
    base_buf_free(&name);
}

/* The uses in one test; false: they are left. */
static void cut_uses(tests *t, refactor_cuts *cuts, extent test, extent body)
{
    const refactor *x = t->x;
    extent assertions[MAX_NAMES];
    size_t n = 0;
    bool is_all = true;
    for (size_t i = 0; i < x->n_places && is_all; i++) {
        const refactor_place *p = &x->places[i];
        extent e;
        if (p->file != t->file || p->use->from < body.from || p->use->from >= body.to) continue;
        if (p->verdict != REFACTOR_SURE) return;
        if (n && p->use->from < assertions[n - 1].to) continue;
        is_all = n < MAX_NAMES && find_assertion(t, p->use->from, body.from, &e);
        if (is_all) assertions[n++] = e;
    }
    if (!is_all) {
        if (depends_whole(t, body)) cut_test(t, cuts, test);
        return;
    }
    char *kept = base_xstrndup(t->rest, t->n);
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = assertions[i].from; k < assertions[i].to; k++)
            if (t->rest[k] != '\n') t->rest[k] = ' ';
    const bool is_left = tests_something(t, body) || (t->form == TEST_MARKED && fails_in(t, body));
    bool can = is_left;
    for (size_t i = 0; i < n && can; i++)
        can = (!t->is_python || take_headers(t, &assertions[i], body.from)) && widen(t, &assertions[i]);
    if (!is_left) {
        cut_test(t, cuts, test);
    } else if (can) {
        for (size_t i = 0; i < n; i++) put_cut(t, cuts, assertions[i], "");
    } else {
        memcpy(t->rest, kept, t->n);
    }
    free(kept);
}

/* Nothing but imports is left of a file of tests. */
static bool is_emptied(const tests *t, const refactor_cuts *cuts)
{
    const refactor_file *f = &t->x->files[t->file];
    const char *name = base_path_name(f->path);
    bool has_whole = false;
    for (size_t i = 0; i < cuts->n; i++) has_whole |= cuts->all[i].file == t->file && *cuts->all[i].what;
    if (!has_whole || (!strcasestr(name, "test") && !strstr(name, "spec"))) return false;
    for (uint32_t i = 0; i < f->uses->file->n_definitions; i++)
        if (!refactor__is_cut(cuts, t->file, f->uses->file->definitions[i].from)) return false;
    return !has_test(t, (extent){0, t->n});
}

/* Does a place outside of [but.from, but.to) that stays write the word? Does one that goes? */
static void count_words(
    const tests *t, const refactor_cuts *cuts, const char *word, extent but, bool *ret_stays, bool *ret_goes)
{
    const size_t n = strlen(word);
    size_t pos = 0, from, end;
    *ret_stays = *ret_goes = false;
    while (code_next_identifier(t->s, t->n, &pos, &from, &end)) {
        if (end - from != n || memcmp(t->s + from, word, n) != 0) continue;
        if (refactor__is_cut(cuts, t->file, (uint32_t)from))
            *ret_goes = true;
        else if (from < but.from || from >= but.to)
            *ret_stays = true;
    }
}

/* Does another file call it? */
static bool is_called_elsewhere(const tests *t, const char *name)
{
    enum { MOST = 16 };
    code_caller *callers = NULL;
    const code_index *index = tool_workspace_index(t->x->w);
    const uint32_t n = index ? code_index_callers(index, name, MOST, &callers) : MOST;
    bool is_so = n >= MOST;
    for (uint32_t i = 0; i < n && i < MOST && callers; i++)
        is_so |= strcmp(callers[i].path, t->x->files[t->file].path) != 0;
    if (callers) code_callers_free(callers, n < MOST ? n : MOST);
    return is_so;
}

/* A table or helper of a file of tests that only the tests that go used. */
static void cut_unused(tests *t, refactor_cuts *cuts)
{
    const refactor_file *f = &t->x->files[t->file];
    const code_file *file = f->uses->file;
    bool is_more = code_path_is_test(f->path);
    while (is_more) {
        is_more = false;
        for (uint32_t i = 0; i < file->n_definitions; i++) {
            const code_definition *d = &file->definitions[i];
            const bool is_value = !strcmp(d->what, "variable") || !strcmp(d->what, "constant");
            const bool is_go = f->language->family == REFACTOR_GO; /* a package's files share their names */
            bool stays, goes;
            if ((d->parent && *d->parent) || refactor__is_cut(cuts, t->file, d->name_from) ||
                (is_value && is_go) || (!is_value && strcmp(d->what, "function") != 0) ||
                is_called_elsewhere(t, d->name))
                continue;
            extent e = {d->from, d->to};
            count_words(t, cuts, d->name, e, &stays, &goes);
            if (stays || !goes) continue;
            refactor__definition_extent(&f->file.text, e.from, e.to, &e.from, &e.to);
            refactor__widen_blank(&f->file.text, &e.from, &e.to);
            put_cut(t, cuts, e, d->name);
            cuts->all[cuts->n - 1].is_helper = true;
            is_more = true;
        }
    }
}

bool refactor__is_cut(const refactor_cuts *cuts, size_t file, uint32_t at)
{
    for (size_t i = 0; i < cuts->n; i++)
        if (cuts->all[i].file == file && at >= cuts->all[i].from && at < cuts->all[i].to) return true;
    return false;
}

void refactor__cut_tests(const refactor *x, refactor_cuts *ret)
{
    if (code_path_is_test(x->target.in->path)) return; /* a helper of the tests themselves */
    for (size_t i = 0; i < x->n_files; i++) {
        const refactor_file *f = &x->files[i];
        const char *language = f->uses->file->language;
        size_t form = 0;
        while (form < sizeof forms / sizeof *forms && language && strcmp(forms[form].language, language) != 0)
            form++;
        if (!language || form == sizeof forms / sizeof *forms ||
            (forms[form].form != TEST_MARKED && !code_path_is_test(f->path)))
            continue;
        tests t = {.x = x,
            .file = i,
            .s = f->file.text.data,
            .n = (uint32_t)f->file.text.len,
            .is_python = f->language->family == REFACTOR_PYTHON,
            .has_semicolons = f->language->has_semicolons,
            .form = forms[form].form};
        t.rest = code_blank_comments(language, t.s, t.n);
        for (size_t k = 0; k < x->n_places; k++) {
            const refactor_place *p = &x->places[k];
            extent test, body;
            if (p->file != i || p->use->import != UINT32_MAX || p->use->is_exported ||
                p->use->definition != UINT32_MAX || refactor__is_cut(ret, i, p->use->from))
                continue;
            if (find_test(&t, p, &test, &body)) cut_uses(&t, ret, test, body);
        }
        cut_unused(&t, ret);
        for (size_t k = 0; k < ret->n; k++)
            if (ret->all[k].file == i) ret->all[k].is_last = is_emptied(&t, ret);
        free(t.rest);
    }
}

bool refactor__is_file_cut(const refactor_cuts *cuts, size_t file)
{
    for (size_t i = 0; i < cuts->n; i++)
        if (cuts->all[i].file == file) return cuts->all[i].is_last;
    return false;
}

static int by_place(const void *a, const void *b)
{
    const refactor_cut *p = a, *q = b;
    if (p->file != q->file) return p->file < q->file ? -1 : 1;
    return p->from < q->from ? -1 : p->from > q->from;
}

void refactor__apply_cuts(const refactor *x, refactor_cuts *cuts, refactor_edits *edits, base_buf *say)
{
    size_t n_assertions = 0, n_tests = 0, n_said = 0;
    base_buf said = {0};
    if (cuts->n) qsort(cuts->all, cuts->n, sizeof *cuts->all, by_place);
    for (size_t i = 0, done_in = SIZE_MAX, done_to = 0; i < cuts->n; i++) {
        const refactor_cut *c = &cuts->all[i];
        const uint32_t from = c->file == done_in && c->from < done_to ? (uint32_t)done_to : c->from;
        if (from < c->to) refactor__edit(&edits[c->file], from, c->to, "");
        if (c->file != done_in || c->to > done_to) done_to = c->to;
        done_in = c->file;
        n_assertions += !*c->what;
        n_tests += *c->what != '\0' && !c->is_helper;
        if (n_said++ >= MAX_SAID) continue;
        base_buf_printf(&said, "%s%s%s", said.len ? ", " : "", c->what, *c->what ? " (" : "");
        base_buf_printf(&said, "%s%s", x->files[c->file].path, *c->what ? ")" : "");
    }
    if (n_said > MAX_SAID) base_buf_puts(&said, ", ...");
    if (cuts->n) base_buf_puts(say, ", and what used it in tests: ");
    if (n_tests) base_buf_printf(say, "%zu whole test%s", n_tests, n_tests == 1 ? "" : "s");
    if (n_tests && n_assertions) base_buf_puts(say, " and ");
    if (n_assertions) base_buf_printf(say, "%zu assertion%s", n_assertions, n_assertions == 1 ? "" : "s");
    if (cuts->n) base_buf_printf(say, ", %s", said.data);
    base_buf_free(&said);
}
