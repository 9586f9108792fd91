/*
 * What a new test expects, put right by what the code gives. A small model knows which call to test, and invents
 * what it returns. Where the only thing that fails is such a literal, the runner says both values: the one that
 * stands in the test is exchanged for the other one, and the person is told to look at it. What the request itself
 * says is to be expected is never changed.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/newtest/newtest.h"
#include "agent/words/values.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"
#include "tools/file/text.h"

enum { MAX_VALUE = 200 };

typedef struct pair {
    char *first, *second; /* as the runner prints them */
    bool is_source;       /* which is how the language writes them: a string has its quotes */
} pair;

static void pair_free(pair *p)
{
    free(p->first);
    free(p->second);
    *p = (pair){0};
}

/* --- what the runner says ------------------------------------------------------------------------------- */

/* The literal at p, or what stands there up to one of `ends`. Behind it, or NULL. */
static const char *take_value(const char *p, const char *ends, char **ret)
{
    p += strspn(p, " `");
    const char *end = agent_value_literal(p);
    if (!end && ends) {
        end = p + strcspn(p, ends);
        while (end > p && isspace((unsigned char)end[-1])) end--;
    }
    if (!end || end == p || end - p > MAX_VALUE) return NULL;
    *ret = base_xstrndup(p, (size_t)(end - p));
    return end;
}

/* "AssertionError: 1 != 2", "assert 'a' == 'b'", pytest's or unittest's. */
static bool read_python(const char *output, pair *ret)
{
    static const char *const marks[] = {
        "AssertionError: assert ", "AssertionError: ", "E   assert ", "E       assert "};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (const char *at = output; (at = strstr(at, marks[i])); at++) {
            const char *p = take_value(at + strlen(marks[i]), NULL, &ret->first);
            if (p && (!strncmp(p, " != ", 4) || !strncmp(p, " == ", 4)) &&
                take_value(p + 4, NULL, &ret->second))
                return ret->is_source = true;
            pair_free(ret);
        }
    return false;
}

/* Behind "<itertools.islice object at 0x7f...>" at p; NULL: no object without a literal is printed there. */
static const char *behind_object(const char *p)
{
    static const char place[] = " at 0x";
    const size_t n = *p == '<' ? strcspn(p, ">\n") : 0;
    return n && p[n] == '>' && memmem(p, n, place, sizeof place - 1) ? p + n + 1 : NULL;
}

/* What Python printed of a value that has no literal: an iterator; a tuple of a literal and of such a thing. */
typedef struct opaque {
    char *head;     /* the literal that the tuple begins with; NULL: it is no tuple */
    char *expected; /* what the test compares it with */
} opaque;

/* "assert <islice object at 0x7f...> == [1, 2]", "assert ((1, 2), <chain object at 0x7f...>) == (1, 2)" */
static bool read_opaque(const char *output, opaque *ret)
{
    static const char *const marks[] = {
        "AssertionError: assert ", "AssertionError: ", "E   assert ", "E       assert "};
    *ret = (opaque){0};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (const char *at = output; (at = strstr(at, marks[i])); at++) {
            const char *p = at + strlen(marks[i]), *end = behind_object(p);
            if (!end && *p == '(' && (end = take_value(p + 1, NULL, &ret->head)) != NULL)
                end = !strncmp(end, ", ", 2) ? behind_object(end + 2) : NULL;
            if (end && ret->head) end = *end == ')' ? end + 1 : NULL;
            if (end && (!strncmp(end, " == ", 4) || !strncmp(end, " != ", 4)) &&
                take_value(end + 4, NULL, &ret->expected))
                return true;
            free(ret->head);
            *ret = (opaque){0};
        }
    return false;
}

/* Two lines that begin with words: "left: 1" and "right: 2" of Rust, "actual: 1," and "expected: 2," of node. */
static bool read_lines(const char *output, pair *ret)
{
    static const char *const words[][2] = {{"left: ", "right: "}, {"actual: ", "expected: "}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *a = strstr(output, words[i][0]), *b = strstr(output, words[i][1]);
        if (a && b && take_value(a + strlen(words[i][0]), NULL, &ret->first) &&
            take_value(b + strlen(words[i][1]), NULL, &ret->second))
            return true;
        pair_free(ret);
    }
    return false;
}

/* node's: "+ actual - expected", and a line of each; "1 !== 2" where both are short. */
static bool read_node(const char *output, pair *ret)
{
    static const char signs[] = "+ actual - expected", equal[] = "strictly equal:";
    const char *at = strstr(output, signs), *p = NULL;
    if (at) at += sizeof signs - 1 + strspn(at + sizeof signs - 1, "\n");
    if (at && !strncmp(at, "+ ", 2)) p = take_value(at + 2, "\n", &ret->first);
    if (p && !strncmp(p, "\n- ", 3) && take_value(p + 3, "\n", &ret->second)) return ret->is_source = true;
    pair_free(ret);
    at = strstr(output, equal);
    if (at) p = take_value(at + sizeof equal - 1 + strspn(at + sizeof equal - 1, "\n "), " \n", &ret->first);
    if (at && p && !strncmp(p, " !== ", 5) && take_value(p + 5, "\n", &ret->second))
        return ret->is_source = true;
    pair_free(ret);
    return false;
}

/* "got 3, want 4", "Expected 4, got 3", "= 3; want 4": Go's, where every test words it for itself. */
static bool read_words(const char *output, pair *ret)
{
    static const char *const gots[] = {"got ", "Got ", " = "}, *const wants[] = {"want ", "wanted ",
                                                                   "Expected ", "expected "};
    for (const char *line = output; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char *text = base_xstrndup(line, strcspn(line, "\n"));
        const char *got = NULL, *want = NULL;
        for (size_t i = 0; i < sizeof gots / sizeof *gots && !got; i++)
            if ((got = strstr(text, gots[i]))) got += strlen(gots[i]);
        for (size_t i = 0; i < sizeof wants / sizeof *wants && !want; i++)
            if ((want = strstr(text, wants[i]))) want += strlen(wants[i]);
        const bool found =
            got && want && take_value(got, ",;", &ret->first) && take_value(want, ",;", &ret->second);
        free(text);
        if (found) return true;
        pair_free(ret);
    }
    return false;
}

/* --- which literal of the test that is ------------------------------------------------------------------ */

static bool is_quote(char c)
{
    return c == '"' || c == '\'';
}

/* A string's bytes, its quotes and escapes read; other text without blanks. */
static void put_plain(const char *s, size_t n, base_buf *out)
{
    const bool is_string = n >= 2 && is_quote(*s) && s[n - 1] == *s;
    for (size_t i = is_string; i < n - is_string; i++) {
        if (!is_string && isspace((unsigned char)s[i])) continue;
        if (!is_string || s[i] != '\\' || i + 1 >= n - 1) {
            base_buf_putc(out, s[i]);
            continue;
        }
        static const char letters[] = "ntrabfve0", bytes[] = "\n\t\r\a\b\f\v\033";
        const char c = s[++i];
        const char *at = c != '0' ? strchr(letters, c) : NULL;
        if (c == 'x' || c == 'u') {
            size_t len = c == 'x' ? 2 : 4;
            char digits[8] = {0};
            if (c == 'u' && s[i + 1] == '{') len = 0; /* Rust: \u{1b} */
            if (!len) {
                for (i += 2; i < n && s[i] != '}' && len < 6; i++) digits[len++] = s[i];
            } else {
                for (size_t k = 0; k < len && i + 1 < n; k++) digits[k] = s[++i];
            }
            base_buf_putc(out, (char)strtoul(digits, NULL, 16));
        } else if (c >= '0' && c <= '7') {
            unsigned v = 0;
            size_t k = 0;
            for (; k < 3 && s[i + k] >= '0' && s[i + k] <= '7'; k++) v = v * 8 + (unsigned)(s[i + k] - '0');
            i += k - 1;
            base_buf_putc(out, (char)v);
        } else {
            base_buf_putc(out, at && *at ? bytes[at - letters] : c);
        }
    }
}

static bool is_same(const char *a, size_t n, const char *b)
{
    base_buf x = {0}, y = {0};
    put_plain(a, n, &x);
    put_plain(b, strlen(b), &y);
    const bool same = x.len == y.len && (!x.len || !memcmp(x.data, y.data, x.len));
    base_buf_free(&x);
    base_buf_free(&y);
    return same;
}

/* The last literal in text[from, to) with this value; false: there is none. */
static bool find_literal(
    const base_buf *text, size_t from, size_t to, const char *value, size_t *ret, size_t *ret_n)
{
    bool found = false;
    for (size_t i = from; i < to;) {
        const bool may = i == from || !code_is_name_byte(text->data[i - 1]);
        const char *end = may ? agent_value_literal(text->data + i) : NULL;
        if (!end || end > text->data + to) {
            i++;
            continue;
        }
        const size_t n = (size_t)(end - text->data) - i;
        if (is_same(text->data + i, n, value)) {
            *ret = i;
            *ret_n = n;
            found = true;
        }
        i += is_quote(text->data[i]) || isdigit((unsigned char)text->data[i]) ? n : 1;
    }
    return found;
}

/* The value as the literal that it replaces is written. */
static void put_like(const char *value, const char *old, bool is_source, base_buf *out)
{
    if (is_source || !is_quote(*old) || is_quote(*value)) {
        base_buf_puts(out, value);
        return;
    }
    base_buf_putc(out, *old);
    for (; *value; value++) {
        if (*value == *old || *value == '\\') base_buf_putc(out, '\\');
        base_buf_putc(out, *value);
    }
    base_buf_putc(out, *old);
}

/* The whole lines that hold text[at, at + n), that literal exchanged for `actual`. */
static void put_line(const base_buf *text, size_t at, size_t n, const char *old, const char *actual,
    bool is_source, agent_expectation *ret)
{
    size_t from = at, to = at + n;
    while (from && text->data[from - 1] != '\n') from--;
    while (to < text->len && text->data[to] != '\n') to++;
    ret->line = 1;
    for (size_t k = 0; k < from; k++) ret->line += text->data[k] == '\n';
    ret->line_end = ret->line;
    for (size_t k = from; k < to; k++) ret->line_end += text->data[k] == '\n';
    base_buf_add(&ret->text, text->data + from, at - from);
    put_like(actual, old, is_source, &ret->text);
    base_buf_add(&ret->text, text->data + at + n, to - at - n);
    base_buf_putc(&ret->text, '\n');
    base_buf_printf(&ret->told,
        "the new test expected %s where the code gives %s: "
        "it expects that now. See whether the code is right",
        old, actual);
}

/* What is compared with the literal at `at`, in its line: "f(x)" of "assert f(x) == [1]". false: it is written otherwise. */
static bool find_compared(const base_buf *text, size_t at, size_t *ret_from, size_t *ret_to)
{
    static const struct {
        const char *begins, *between;
    } forms[] = {{"assert ", " == "}, {"self.assertEqual(", ", "}, {"self.assertListEqual(", ", "}};
    size_t from = at;
    while (from && text->data[from - 1] != '\n') from--;
    from += strspn(text->data + from, " ");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const size_t n = strlen(forms[i].begins), m = strlen(forms[i].between);
        if (at < from + n + m || memcmp(text->data + from, forms[i].begins, n) != 0 ||
            memcmp(text->data + at - m, forms[i].between, m) != 0)
            continue;
        *ret_from = from + n;
        *ret_to = at - m;
        return true;
    }
    return false;
}

/* An iterator is compared as the list or tuple that it gives, a tuple that ends in one by what it begins with. */
static void put_opaque(const base_buf *text, size_t at, size_t n, const opaque *o, agent_expectation *ret)
{
    size_t from, to;
    base_buf line = {0};
    char *old = base_xstrndup(text->data + at, n);
    const char *made = o->head ? "" : *old == '[' ? "list" : *old == '(' ? "tuple" : NULL;
    if (made && find_compared(text, at, &from, &to)) {
        base_buf_add(&line, text->data, from);
        if (!o->head) base_buf_printf(&line, "%s(", made);
        base_buf_add(&line, text->data + from, to - from);
        base_buf_puts(&line, o->head ? "[0]" : ")");
        const size_t literal = line.len + at - to;
        base_buf_add(&line, text->data + to, text->len - to);
        put_line(&line, literal, n, old, o->head ? o->head : old, true, ret);
        base_buf_clear(&ret->told);
        if (o->head)
            base_buf_printf(
                &ret->told, "the new test compared a tuple with what it begins with: it compares that now");
        else
            base_buf_printf(&ret->told,
                "the new test compared an iterator with %s: it compares what that gives now", old);
    }
    base_buf_free(&line);
    free(old);
}

/*
 * The statement that failed, by the line that the runner names: "test_a.py:12: in test_f", "(test/a.js:12:14)". false: it names none in
 * text[*from, *to), which become that line's and those of the few that it may go on in.
 */
static bool narrow(const base_buf *text, const char *path, const char *output, size_t *from, size_t *to)
{
    enum { MOST_LINES = 6 };
    const size_t n = path ? strlen(path) : 0;
    for (const char *at = output; n && (at = strstr(at, path)); at += n) {
        static const char unittest[] = "\", line ";
        const size_t skip = at[n] == ':'                                      ? 1
                            : !strncmp(at + n, unittest, sizeof unittest - 1) ? sizeof unittest - 1
                                                                              : 0;
        if (!skip || !isdigit((unsigned char)at[n + skip]) || (at > output && code_is_name_byte(at[-1])))
            continue;
        const unsigned long line = strtoul(at + n + skip, NULL, 10);
        size_t begin = 0, end;
        for (unsigned long k = 1; k < line && begin < text->len; begin++) k += text->data[begin] == '\n';
        if (line == 0 || begin < tool__line_begin(text->data, *from) || begin >= *to) continue;
        int depth = 0;
        end = begin;
        for (int k = 0; k < MOST_LINES && end < *to; end++) {
            const char c = text->data[end];
            depth += (strchr("([{", c) && c) - (strchr(")]}", c) && c);
            k += c == '\n';
            if (c == '\n' && depth <= 0) break;
        }
        *from = begin;
        *to = end;
        return true;
    }
    return false;
}

bool agent__read_expectation(const base_buf *text, size_t from, size_t to, const char *path,
    const char *request, const char *output, agent_expectation *ret)
{
    pair p = {0};
    size_t at = 0, n = 0;
    size_t near = from, near_end = to;
    *ret = (agent_expectation){0};
    narrow(text, path, output, &near, &near_end);
    if (!read_python(output, &p) && !read_node(output, &p) && !read_lines(output, &p) &&
        !read_words(output, &p)) {
        opaque o;
        if (read_opaque(output, &o) && find_literal(text, near, near_end, o.expected, &at, &n))
            put_opaque(text, at, n, &o, ret);
        free(o.head);
        free(o.expected);
        return ret->text.len > 0;
    }
    const char *actual = p.first;
    bool found = find_literal(text, near, near_end, p.second, &at, &n);
    if (!found) { /* the order was the other one */
        actual = p.second;
        found = find_literal(text, near, near_end, p.first, &at, &n);
    }
    if (!found) { /* "expected = 2" stands in front of what failed */
        actual = p.first;
        found = find_literal(text, from, to, p.second, &at, &n);
    }
    if (found && strcmp(p.first, p.second) != 0) {
        char *old = base_xstrndup(text->data + at, n);
        base_buf plain = {0};
        put_plain(old, n, &plain);
        const bool is_asked = request && (strstr(request, old) || (plain.len && strstr(request, plain.data)));
        if (!is_asked) put_line(text, at, n, old, actual, p.is_source, ret);
        base_buf_free(&plain);
        free(old);
    }
    pair_free(&p);
    return ret->text.len > 0;
}

/* --- what fails behind what holds ------------------------------------------------------------------------ */

static size_t indent_of(const base_buf *text, size_t line)
{
    return strspn(text->data + line, " ");
}

/* Behind the statement whose first line is [line, end), with the block below it: lines that stand deeper. */
static size_t statement_end(const base_buf *text, size_t line, size_t end, size_t to)
{
    const size_t indent = indent_of(text, line);
    while (end < to && text->data[end] != '\n') end++;
    for (size_t next = end + 1, next_end; next < to; next = next_end + 1) {
        for (next_end = next; next_end < text->len && text->data[next_end] != '\n'; next_end++) {
        }
        if (next + indent_of(text, next) >= next_end) continue;
        if (indent_of(text, next) <= indent) break;
        end = next_end;
    }
    return end < to ? end : to;
}

/* Does an assertion of text[from, to) call the subject? */
static bool asserts_subject(const base_buf *text, size_t from, size_t to, const char *subject)
{
    base_buf call = {0};
    base_buf_printf(&call, "%s(", subject);
    bool has = false;
    for (const char *end = text->data + to, *at = text->data + from;
         !has && (at = memmem(at, (size_t)(end - at), call.data, call.len)); at++) {
        const size_t line = tool__line_begin(text->data, (size_t)(at - text->data));
        has = line >= tool__line_begin(text->data, from) &&
              memmem(text->data + line, (size_t)(at - text->data) - line, "assert", 6);
    }
    base_buf_free(&call);
    return has;
}

bool agent__leave_out(const base_buf *text, size_t from, size_t to, const char *path, const char *subject,
    const char *output, agent_expectation *ret)
{
    size_t line = from, end = to;
    *ret = (agent_expectation){0};
    if (!base_ends_with(path, ".py") || !narrow(text, path, output, &line, &end) || line <= from ||
        !asserts_subject(text, from, line, subject))
        return false;
    end = statement_end(text, line, end, to);
    const size_t before = tool__line_begin(text->data, line - 1);
    const bool is_empty = before + indent_of(text, before) + 1 == line;
    if (before < tool__line_begin(text->data, from) ||
        (!is_empty && indent_of(text, before) < indent_of(text, line)))
        return false;                                             /* it is all that stands below its head */
    base_buf_add(&ret->text, text->data + before, line - before); /* which stays */
    ret->line = 1;
    for (size_t k = 0; k < before; k++) ret->line += text->data[k] == '\n';
    ret->line_end = ret->line;
    for (size_t k = before; k < end; k++) ret->line_end += text->data[k] == '\n';
    const size_t shown = line + indent_of(text, line), length = strcspn(text->data + shown, "\n");
    base_buf_printf(&ret->told,
        "the new test expected what the code does not do: %.*s. That is left out; see whether the code is right",
        (int)(length < MAX_VALUE ? length : MAX_VALUE), text->data + shown);
    return true;
}

bool agent__find_expectation_in(
    const agent *a, const base_buf *text, const char *output, agent_expectation *ret)
{
    const agent_new_test *t = &a->asked.new_test;
    *ret = (agent_expectation){0};
    if (!t->path || !t->name || !output || !text->len) return false;
    /* Go says the line that tells of it, not the one that compares. */
    const char *path = base_ends_with(t->path, ".go") ? NULL : t->path;
    if (t->is_file) {
        size_t from = 0; /* behind the line that it stands behind */
        for (uint32_t line = 0; line < t->line && from < text->len; from++) line += text->data[from] == '\n';
        return agent__read_expectation(text, from, text->len, path, a->request, output, ret);
    }
    bool found = false;
    code_file *f = code_parse(tool_workspace_grammars(a->workspace), t->path, text->data, text->len);
    for (uint32_t i = 0; i < f->n_definitions && !found; i++) {
        const code_definition *d = &f->definitions[i];
        if (strcmp(d->name, t->name) != 0 || d->body_to > text->len) continue;
        found = agent__read_expectation(text, d->body_from, d->body_to, path, a->request, output, ret) ||
                (t->subject && !t->rows && path &&
                    agent__leave_out(
                        text, d->body_from, d->body_to, path, code_last_name(t->subject), output, ret));
    }
    code_file_free(f);
    return found;
}

bool agent__find_expectation(agent *a, const char *output, agent_expectation *ret)
{
    const char *path = a->asked.new_test.path;
    base_buf text = {0};
    *ret = (agent_expectation){0};
    const bool found = path && !tool_workspace_read(a->workspace, path, NEWTEST_MAX_FILE, &text, NULL) &&
                       agent__find_expectation_in(a, &text, output, ret);
    base_buf_free(&text);
    return found;
}

void agent_expectation_free(agent_expectation *e)
{
    base_buf_free(&e->text);
    base_buf_free(&e->told);
}
