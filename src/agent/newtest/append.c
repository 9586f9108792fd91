/* The example of a new test, in front of its request (contract: newtest.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/judge/judge.h"
#include "agent/newtest/newtest.h"
#include "agent/words/request_words.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

enum { MAX_EXAMPLE = 2400 };

/* What a new test is of, and what it stands beside. All heap. */
typedef struct neighbour {
    char *subject, *subject_path; /* NULL: the tree has nothing that it could be */
    char *path;                   /* the file of tests; NULL: none */
    char *test;                   /* the test that calls the subject; NULL: none is known */
    base_buf text;                /* of the file */
    char *begins;                 /* how a new test goes on behind its name; NULL: not known */
    char *setup;                  /* lines that make what the subject is given; NULL: not known */
    char *ends;                   /* the statement that takes it apart again; NULL: not known */
    size_t from, to;              /* bytes of the test, whole lines, as many as are shown */
    uint32_t line_end;
} neighbour;

static void neighbour_free(neighbour *e)
{
    free(e->subject);
    free(e->subject_path);
    free(e->path);
    free(e->test);
    free(e->begins);
    free(e->setup);
    free(e->ends);
    base_buf_free(&e->text);
}

static const char *plain_subject(const neighbour *e)
{
    return e->subject ? code_last_name(e->subject) : NULL;
}

/* False: there is no file of tests that it could go into. */
static bool find_example(const agent *a, const char *request, neighbour *ret)
{
    ret->subject = agent__find_told_rows(a, request, &ret->path, &ret->test, &ret->subject_path);
    if (!ret->subject) ret->subject = agent__find_subject(a, request, &ret->subject_path);
    if (ret->subject && !ret->path)
        ret->path = agent__find_test_file(a, request, ret->subject, ret->subject_path, &ret->test);
    return ret->path && !tool_workspace_read(a->workspace, ret->path, NEWTEST_MAX_FILE, &ret->text, NULL) &&
           ret->text.len;
}

/* The bytes of it that are shown: whole lines, from the beginning. */
static void measure(neighbour *e, const code_definition *d)
{
    e->from = d->from;
    e->to = d->to < e->text.len ? d->to : e->text.len;
    while (e->from && e->text.data[e->from - 1] != '\n') e->from--;
    if (e->to - e->from > MAX_EXAMPLE) {
        e->to = e->from + MAX_EXAMPLE;
        while (e->to > e->from && e->text.data[e->to - 1] != '\n') e->to--;
    }
    e->line_end = d->line;
    for (size_t i = d->from; i + 1 < e->to; i++) e->line_end += e->text.data[i] == '\n';
}

/* A name like the example's that the tree does not have: test_get_key, TestGetKey. */
static char *name_like(const agent *a, const char *example, const char *subject, bool is_rust)
{
    bool is_snake = is_rust || !strncasecmp(example, "test_", 5);
    base_buf name = {0};
    const bool is_called_test = !strncasecmp(example, "test", 4);
    base_buf_add(&name, is_rust ? "test_" : is_called_test ? example : "test", is_snake ? 5 : 4);
    const char *from = subject + strspn(subject, "_"), *end = subject + strlen(subject);
    while (end > from && end[-1] == '_') end--;
    if (is_snake) {
        for (const char *p = from; p < end; p++) {
            if (isupper((unsigned char)*p) && p > from && islower((unsigned char)p[-1]))
                base_buf_putc(&name, '_');
            base_buf_putc(&name, (char)tolower((unsigned char)*p));
        }
    } else {
        bool up = true;
        for (const char *p = from; p < end; p++) {
            if (*p != '_') base_buf_putc(&name, up ? (char)toupper((unsigned char)*p) : *p);
            up = *p == '_';
        }
    }
    size_t plain = name.len;
    for (unsigned i = 2; code_index_is_defined(tool_workspace_index(a->workspace), name.data) && i < 100;
         i++) {
        name.len = plain;
        base_buf_printf(&name, is_snake ? "_%u" : "%u", i);
    }
    return base_buf_take(&name);
}

/* A test that goes through the rows of a table and calls the subject gets further rows. The caller frees; NULL: no table. */
static char *rows_of(const base_buf *text, const code_definition *d, const char *subject)
{
    enum { MAX_TABLE = 6000 };
    base_buf call = {0}, next = {0}, out = {0};
    size_t from = d->from;
    const size_t to = d->to < text->len ? d->to : text->len;
    while (from && text->data[from - 1] != '\n') from--;
    base_buf_printf(&call, "%s(", subject);
    const bool is_called = to > from && memmem(text->data + from, to - from, call.data, call.len);
    const size_t n = is_called ? agent__rows_end(text->data + from, to - from, &next) : 0;
    if (n && n <= MAX_TABLE) {
        base_buf_add(&out, text->data + from, n);
        base_buf_add(&out, next.data, next.len);
    }
    base_buf_free(&call);
    base_buf_free(&next);
    return out.len ? base_buf_take(&out) : NULL;
}

/* "... with an invalid color": what comes of that may be an error. */
static bool is_about_bad_input(const char *request)
{
    static const char *const words[] = {
        "invalid", "malformed", "illegal", "bad", "wrong", "unknown", "raises", NULL};
    return agent__asks_for_error(request) || agent__has_any_word(request, words);
}

/* Rows of values cannot say that an error is given, unless they have a place for it: "wantErr", "err error". */
static bool has_no_place_for_error(const char *rows)
{
    static const char *const words[] = {"err", "fail", "panic", "invalid", "throw", "raise", "ok "};
    bool has = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) has |= strcasestr(rows, words[i]) != NULL;
    return !has;
}

/* The list of parameters behind the name at text[from, brace), without its brackets; empty: none, or "void". */
static base_str list_of(const char *from, const char *brace)
{
    const char *open = memchr(from, '(', (size_t)(brace - from)), *close = brace;
    while (open && close > open && *close != ')') close--;
    if (!open || close == open) return (base_str){0};
    const base_str list = {open + 1, (size_t)(close - open - 1)};
    return list.len == 4 && !memcmp(list.ptr, "void", 4) ? (base_str){0} : list;
}

/* C: has the file a test without parameters? Then one that has some is called with them by another function. */
static bool has_plain_test(const code_file *f, const char *path, const base_buf *text)
{
    bool has = false;
    for (uint32_t i = 0; i < f->n_definitions && !has; i++) {
        const code_definition *d = &f->definitions[i];
        const char *brace = d->body_from < text->len && d->name_from < d->body_from && !d->is_declaration
                                ? memchr(text->data + d->name_from, '{', text->len - d->name_from)
                                : NULL;
        has = brace && agent__is_test_definition(d, path, text) &&
              !list_of(text->data + d->name_from, brace).len;
    }
    return has;
}

/* From behind the name up to the bracket. What such a neighbour is given, the new test is not. */
static void put_parameters(
    const code_file *f, const char *path, const base_buf *text, size_t end, const char *brace, base_buf *out)
{
    const char *from = text->data + end;
    const base_str list = list_of(from, brace);
    if (list.len && base_ends_with(path, ".c") && has_plain_test(f, path, text))
        base_buf_printf(
            out, "(void)%.*s", (int)(brace - list.ptr - (ptrdiff_t)list.len), list.ptr + list.len + 1);
    else
        base_buf_add(out, from, (size_t)(brace + 1 - from));
}

/*
 * C and Java: the test's lines up to its body's bracket, under the new name: "static void\ntest_list_at() {". The caller frees; NULL:
 * it is no function of theirs with that bracket.
 */
static char *head_of(
    const code_file *f, const char *path, const base_buf *text, const code_definition *d, const char *name)
{
    const size_t end = d->name_from + strlen(d->name), to = d->to < text->len ? d->to : text->len;
    const bool has_head = base_ends_with(path, ".c") || base_ends_with(path, ".java");
    const char *brace = has_head && end < to ? memchr(text->data + end, '{', to - end) : NULL;
    base_buf out = {0};
    size_t column = 0;
    if (!brace) return NULL;
    while (column < d->from && strchr(" \t", text->data[d->from - 1 - column])) column++;
    for (size_t i = d->from, skipped = column; i < d->name_from;
         i++) { /* its lines stand as far left as its first one */
        const char c = text->data[i];
        if (skipped < column && strchr(" \t", c)) {
            skipped++;
            continue;
        }
        base_buf_putc(&out, c);
        skipped = c == '\n' ? 0 : column;
    }
    base_buf_puts(&out, name);
    put_parameters(f, path, text, end, brace, &out);
    base_buf_putc(&out, '\n');
    return base_buf_take(&out);
}

/* The subject and the test d beside which the new one goes. rows: as asked.new_test has them. */
static int show_example(agent *a, const neighbour *e, const code_definition *d, const char *rows,
    const char *request, base_err *err)
{
    base_buf behind = {0};
    if (rows)
        base_buf_printf(&behind, "\n\nThe new test is rows of its table: %s, %s.\n\n", e->path, d->name);
    else
        base_buf_printf(&behind, "\n\nThe new test goes into %s, beside %s, and calls %s.", e->path, d->name,
            plain_subject(e));
    if (!rows && e->ends) base_buf_printf(&behind, " It ends with %s", e->ends);
    /* The request stands far above by now, and this test in view: it would be written once more. */
    if (!rows && a->asked.n_changed)
        base_buf_printf(&behind, " It tests what was changed for this request: %s", request);
    base_buf_puts(&behind, rows ? "" : "\n\n");
    int rc = agent__append_subject(a, e->subject, request, err);
    if (!rc)
        rc = agent__append_lines(a,
            &(agent_lines){e->path, d->name, &e->text, e->from, e->to, d->line, e->line_end}, behind.data,
            request, err);
    base_buf_free(&behind);
    return rc;
}

/* The new test stands beside d, a test of the file. */
static int append_beside(
    agent *a, neighbour *e, const code_file *f, const code_definition *d, const char *request, base_err *err)
{
    agent_new_test *t = &a->asked.new_test;
    base_buf raises = {0};
    char version[65];
    measure(e, d);
    const base_str shown = {e->text.data + e->from, e->to - e->from};
    /* An error that is raised is no row of values. */
    const bool is_raised = base_ends_with(e->path, ".py") && agent__put_raises(request, shown, &raises);
    char *rows = is_raised ? NULL : rows_of(&e->text, d, plain_subject(e));
    if (rows && is_about_bad_input(request) && has_no_place_for_error(rows)) {
        free(rows);
        rows = NULL;
    }
    const int rc = show_example(a, e, d, rows, request, err);
    base_sha256_hex(e->text.data, e->text.len, version);
    tool_workspace_mark_shown(a->workspace, e->path, version);
    char *own = name_like(a, d->name, plain_subject(e), base_ends_with(e->path, ".rs"));
    *t = (agent_new_test){.path = base_xstrdup(e->path),
        .name = rows ? base_xstrdup(d->name) : own,
        .own_name = rows ? own : NULL,
        .rows = rows,
        .example = base_xstrdup(d->name),
        .holder = d->parent && *d->parent ? base_xstrdup(d->parent) : NULL,
        .subject = base_xstrdup(e->subject),
        .assertion = agent__begin_assertion(a, e->path, &e->text, shown, e->subject, e->subject_path)};
    t->head = head_of(f, e->path, &e->text, d, own);
    if (!rows) {
        t->begins = e->begins;
        e->begins = NULL;
        t->setup = e->setup;
        e->setup = NULL;
    }
    t->has_value = t->assertion && strchr("'\"[{", t->assertion[strlen(t->assertion) - 1]);
    if (!agent__set_test_file(a, e->path)) agent__find_judge(a, e->path);
    base_buf_free(&raises);
    return rc;
}

void agent__leave_rows(agent *a)
{
    agent_new_test *t = &a->asked.new_test;
    if (!t->rows) return;
    free(t->rows);
    free(t->name);
    t->rows = NULL;
    t->name = t->own_name;
    t->own_name = NULL;
}

int agent__append_new_test(agent *a, const char *request, base_err *err)
{
    const agent_new_test *t = &a->asked.new_test;
    neighbour e = {0};
    int rc = 0;
    if (a->asked.test && find_example(a, request, &e)) {
        code_file *f = code_parse(tool_workspace_grammars(a->workspace), e.path, e.text.data, e.text.len);
        const code_definition *d = agent__nearest_test(
            a, f, e.path, &e.text, e.test, e.subject, e.subject_path, &e.begins, &e.setup, &e.ends);
        const bool is_test = d && agent__is_test_definition(d, e.path, &e.text);
        if (is_test) rc = agent__append_call_test(a, e.path, &e.text, d, plain_subject(&e), request, err);
        if (!rc && !is_test)
            rc = agent__append_helper_test(a, e.path, &e.text, f, plain_subject(&e), request, err);
        if (!rc && !t->path && is_test)
            rc = append_beside(a, &e, f, d, request, err);
        else if (!rc && !t->path && agent__is_script(e.path))
            rc = agent__append_script_test(a, e.path, &e.text, plain_subject(&e), request, err);
        code_file_free(f);
    }
    neighbour_free(&e);
    return rc;
}

int agent__append_due_test(agent *a, bool *ret_begun, base_err *err)
{
    agent_asked *x = &a->asked;
    *ret_begun = agent__is_test_due(a);
    if (!*ret_begun) return 0;
    x->test_waits = false;
    x->test = true;
    const int rc = agent__append_new_test(a, a->request, err);
    *ret_begun = x->new_test.path != NULL;
    return rc;
}
