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

/* The last statement of the file that is a call of it, "    NAME(...);" in whole lines [*from, *to), and how many there are. */
static uint32_t find_last_call(const base_buf *text, const char *name, size_t *from, size_t *to)
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
        *from = line;
        *to = end;
        n_calls++;
    }
    return n_calls;
}

int agent__append_call_test(agent *a, const char *path, const base_buf *text, const code_definition *d,
    const char *subject, const char *request, base_err *err)
{
    enum { LEAST_CALLS = 2, MOST_TEXT = 2400, LINES_BEFORE = 4 };
    size_t from = 0, to = 0, size = d->to - d->from;
    if (!takes_parameters(path, text, d) || d->to > text->len || size > MOST_TEXT ||
        find_last_call(text, d->name, &from, &to) < LEAST_CALLS)
        return 0;
    base_buf begins = {0}, behind = {0};
    size_t indent = 0, shown = from;
    while (strchr(" \t", text->data[from + indent])) indent++;
    for (int i = 0; i < LINES_BEFORE && shown; i++) shown = tool__line_begin(text->data, shown - 1);
    const uint32_t last = (uint32_t)tool__line_of(text->data, to - 1);
    base_buf_printf(
        &behind, "\n\nThe new test is a further call of %s in %s, behind the last.\n\n", d->name, path);
    int rc = agent__append_subject(a, subject, request, err);
    if (!rc)
        rc = agent__append_lines(a,
            &(agent_lines){
                path, d->name, text, tool__line_begin(text->data, d->from), d->to, d->line, d->line_end},
            "\n\n", request, err);
    if (!rc)
        rc = agent__append_lines(a,
            &(agent_lines){path, "", text, shown, to, (uint32_t)tool__line_of(text->data, shown), last},
            behind.data, request, err);
    size_t bracket = from + indent + strlen(d->name);
    bracket += strspn(text->data + bracket, " ");
    base_buf_add(&begins, text->data + from, bracket + 1 - from);
    a->asked.new_test = (agent_new_test){.path = base_xstrdup(path),
        .name = base_xstrdup(d->name),
        .subject = base_xstrdup(subject),
        .assertion = base_buf_take(&begins),
        .is_file = true,
        .is_row = true,
        .line = last};
    if (!agent__set_test_file(a, path)) agent__find_judge(a, path);
    base_buf_free(&behind);
    return rc;
}
