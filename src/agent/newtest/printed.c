/*
 * Programs of tests that end with 0 whatever fails, and only print it: "24 json_has(v, "a") == 0 - FAILED". What they print of the
 * new test counts as its failure (contract: newtest.h).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/newtest/newtest.h"
#include "base/mem.h"
#include "code/code.h"

/* What a statement stands in brackets: "f(1) == 2" of "    TEST(f(1) == 2);" at text[from, to); empty: too little to know it by. */
static base_str read_asserted(const char *text, size_t from, size_t to)
{
    enum { LEAST = 6 };
    const char *open = memchr(text + from, '(', to - from), *end = text + to;
    while (end > text + from && end[-1] != ')') end--;
    if (!open || end <= open + 1 + LEAST) return (base_str){0};
    return (base_str){open + 1, (size_t)(end - 1 - open - 1)};
}

/* Does the printed line name the test, or write what a line of it asserts? */
static bool is_of_test(const char *line, size_t n, const char *body, size_t n_body, const char *name)
{
    if (memmem(line, n, name, strlen(name))) return true;
    for (size_t at = 0; at < n_body;) {
        const char *newline = memchr(body + at, '\n', n_body - at);
        const size_t to = newline ? (size_t)(newline - body) : n_body;
        const base_str asserted = read_asserted(body, at, to);
        if (asserted.len && memmem(line, n, asserted.ptr, asserted.len)) return true;
        at = to + 1;
    }
    return false;
}

char *agent__read_printed_failure(const char *body, size_t n, const char *name, const char *output)
{
    static const char *const words[] = {"FAILED", "FAIL", "failed", "not ok"};
    for (const char *line = output; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t len = strcspn(line, "\n");
        bool has_failed = false;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            const char *at = memmem(line, len, words[i], strlen(words[i]));
            has_failed |=
                at && (at == line || !code_is_name_byte(at[-1])) && !code_is_name_byte(at[strlen(words[i])]);
        }
        if (has_failed && is_of_test(line, len, body, n, name)) return base_xstrndup(line, len);
    }
    return NULL;
}

char *agent__find_printed_failure(const agent *a, const base_buf *text, const char *output)
{
    const agent_new_test *t = &a->asked.new_test;
    base_buf now = {0};
    char *found = NULL;
    uint32_t at;
    if (!t->path || !t->name || !base_ends_with(t->path, ".c") || !output) return NULL;
    if (text)
        base_buf_add(&now, text->data, text->len);
    else if (tool_workspace_read(a->workspace, t->path, NEWTEST_MAX_FILE, &now, NULL))
        base_buf_clear(&now);
    if (now.len) {
        code_file *f = code_parse(tool_workspace_grammars(a->workspace), t->path, now.data, now.len);
        if (code_find_definition(f, t->name, &at, 1) >= 1) {
            const code_definition *d = &f->definitions[at];
            if (d->body_to > d->body_from && d->body_to <= now.len)
                found = agent__read_printed_failure(
                    now.data + d->body_from, d->body_to - d->body_from, t->name, output);
        }
        code_file_free(f);
    }
    base_buf_free(&now);
    return found;
}
