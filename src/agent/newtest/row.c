/*
 * Tests of C that are calls of a function which does the testing, "test_writer("1", input, 3, expected, 5);": a new one is a
 * further call of it, behind the last. A function beside that one would test the same in other words, and nobody calls it.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/judge/judge.h"
#include "agent/newtest/newtest.h"
#include "base/mem.h"
#include "base/path.h"
#include "tools/file/text.h"

/* Is it a function of C with parameters? */
static bool takes_parameters(const char *path, const base_buf *text, const code_definition *d)
{
    size_t at = d->name_from + strlen(d->name);
    const size_t to = d->body_from < text->len ? d->body_from : text->len;
    if (!base_ends_with(path, ".c") || strcmp(d->what, "function") != 0) return false;
    while (at < to && tool__is_space(text->data[at])) at++;
    if (at >= to || text->data[at] != '(') return false;
    at++;
    while (at < to && tool__is_space(text->data[at])) at++;
    return at < to && text->data[at] != ')' && strncmp(text->data + at, "void)", 5) != 0;
}

static bool writes(const char *line, size_t n, const char *name)
{
    char *copy = base_xstrndup(line, n);
    const bool is_so = code_has_identifier(copy, n, name);
    free(copy);
    return is_so;
}

/*
 * The last statement of the file that is a call of it and writes `has` (NULL: anything), "    NAME(...);" in whole lines [*from, *to), and
 * how many there are. *ret_same: how many bytes it and the one before it both begin with.
 */
static uint32_t find_last_call(
    const base_buf *text, const char *name, const char *has, size_t *from, size_t *to, size_t *ret_same)
{
    const size_t n = strlen(name);
    uint32_t n_calls = 0;
    for (size_t line = 0; line < text->len; line = tool__line_end(text->data, text->len, line) + 1) {
        size_t at = line;
        while (at < text->len && strchr(" \t", text->data[at])) at++;
        if (at == line || at + n >= text->len || memcmp(text->data + at, name, n) != 0) continue;
        size_t end = at + n + strspn(text->data + at + n, " ");
        if (text->data[end] != '(') continue;
        do end = tool__line_end(text->data, text->len, end) + 1;
        while (end < text->len && text->data[end - 2] != ';' && text->data[end] != '}');
        if (end > text->len || text->data[end - 2] != ';') continue;
        if (has && !writes(text->data + line, end - line, has)) continue;
        for (*ret_same = 0; n_calls && *ret_same < end - line &&
                            text->data[*from + *ret_same] == text->data[line + *ret_same];)
            ++*ret_same;
        *from = line;
        *to = end;
        n_calls++;
    }
    return n_calls;
}

/* The row is in lines [from, to) and a further one begins with the first `begin` bytes of it. d: what is called; NULL: not known. */
static int append_row(agent *a, const char *path, const base_buf *text, const code_definition *d,
    const char *name, size_t from, size_t to, size_t begin, const char *subject, const char *request,
    base_err *err)
{
    enum { LINES_BEFORE = 4 };
    base_buf begins = {0}, behind = {0};
    size_t shown = from;
    for (int i = 0; i < LINES_BEFORE && shown; i++) shown = tool__line_begin(text->data, shown - 1);
    const uint32_t last = (uint32_t)tool__line_of(text->data, to - 1);
    base_buf_printf(
        &behind, "\n\nThe new test is a further call of %s in %s, behind the last.\n\n", name, path);
    int rc = agent__append_subject(a, subject, request, err);
    if (!rc && d)
        rc = agent__append_lines(a,
            &(agent_lines){
                path, d->name, text, tool__line_begin(text->data, d->from), d->to, d->line, d->line_end},
            "\n\n", request, err);
    if (!rc)
        rc = agent__append_lines(a,
            &(agent_lines){path, "", text, shown, to, (uint32_t)tool__line_of(text->data, shown), last},
            behind.data, request, err);
    base_buf_add(&begins, text->data + from, begin);
    a->asked.new_test = (agent_new_test){.path = base_xstrdup(path),
        .name = base_xstrdup(name),
        .subject = base_xstrdup(subject),
        .assertion = base_buf_take(&begins),
        .is_file = true,
        .is_row = true,
        .line = last};
    if (!agent__set_test_file(a, path)) agent__find_judge(a, path);
    base_buf_free(&behind);
    return rc;
}

/* A function of the file of tests that calls the subject and is called twice or more: "assertDistance". NULL: none. */
static const code_definition *find_helper(
    const code_file *f, const char *path, const base_buf *text, const char *subject)
{
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        size_t from = 0, to = 0, same;
        if (d->body_to <= d->body_from || d->body_to > text->len || !takes_parameters(path, text, d))
            continue;
        if (writes(text->data + d->body_from, d->body_to - d->body_from, subject) &&
            find_last_call(text, d->name, NULL, &from, &to, &same) > 1)
            return d;
    }
    return NULL;
}

/* "t(b64_encode, "vino", ...);": the subject is handed to a macro again and again. */
static int append_macro_row(
    agent *a, const char *path, const base_buf *text, const char *subject, const char *request, base_err *err)
{
    for (size_t line = 0; line < text->len; line = tool__line_end(text->data, text->len, line) + 1) {
        const size_t end = tool__line_end(text->data, text->len, line),
                     word = line + strspn(text->data + line, " \t");
        size_t to = word;
        while (to < end && code_is_name_byte(text->data[to])) to++;
        if (word == line || to == word || text->data[to] != '(' ||
            code_is_keyword(text->data + word, to - word) || !writes(text->data + to, end - to, subject))
            continue;
        char *name = base_xstrndup(text->data + word, to - word);
        size_t from = 0, row_to = 0, same = 0;
        const bool is_row = find_last_call(text, name, subject, &from, &row_to, &same) > 1;
        while (same && !strchr("(, ", text->data[from + same - 1])) same--;
        const int rc = is_row && writes(text->data + from, same, subject)
                           ? append_row(a, path, text, NULL, name, from, row_to, same, subject, request, err)
                           : 0;
        free(name);
        if (rc || a->asked.new_test.path) return rc;
    }
    return 0;
}

int agent__append_helper_test(agent *a, const char *path, const base_buf *text, const code_file *f,
    const char *subject, const char *request, base_err *err)
{
    const code_definition *d = base_ends_with(path, ".c") ? find_helper(f, path, text, subject) : NULL;
    if (d) return agent__append_call_test(a, path, text, d, subject, request, err);
    return base_ends_with(path, ".c") ? append_macro_row(a, path, text, subject, request, err) : 0;
}

int agent__append_call_test(agent *a, const char *path, const base_buf *text, const code_definition *d,
    const char *subject, const char *request, base_err *err)
{
    enum { LEAST_CALLS = 2, MOST_TEXT = 2400 };
    size_t from = 0, to = 0, same, size = d->to - d->from;
    if (!takes_parameters(path, text, d) || d->to > text->len || size > MOST_TEXT ||
        find_last_call(text, d->name, NULL, &from, &to, &same) < LEAST_CALLS)
        return 0;
    const char *open = memchr(text->data + from, '(', to - from);
    return append_row(
        a, path, text, d, d->name, from, to, (size_t)(open + 1 - text->data) - from, subject, request, err);
}
