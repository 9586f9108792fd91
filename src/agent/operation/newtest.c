/*
 * "Add a test for X": the program knows which file holds X's tests and which of them is nearest, so it shows
 * that one, begins the call that adds another beside it, and has the file run.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/call/prompt.h"
#include "agent/judge/judge.h"
#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "agent/retrieve/retrieve.h"
#include "agent/session/tell.h"
#include "agent/words/request_words.h"
#include "base/hash.h"
#include "base/mem.h"
#include "tools/edit/import_lines.h"
#include "tools/run/scratch.h"
#include "base/path.h"
#include "code/code.h"

enum { TEST_MS = 60000, TEST_BYTES = 2400, MAX_EXAMPLE = 2400, MAX_FILE = 1 << 20 };

/* --- where its tests stand ------------------------------------------------------------------------------ */

/* No test calls the subject and none is named after its file: the file of tests whose text fits the request best. */
static char *likest_test_file(const agent *a, const char *request, const char *subject_path)
{
    enum { MOST = 48 };
    code_hits hits = {0};
    char *path = NULL;
    code_index_search(tool_workspace_index(a->workspace), request, MOST, &hits);
    for (uint32_t i = 0; i < hits.n && !path; i++)
        if (agent__is_test_file(hits.hits[i].path) && base_path_same_ending(hits.hits[i].path, subject_path))
            path = base_xstrdup(hits.hits[i].path);
    code_hits_free(&hits);
    return path;
}

/*
 * The best of the callers that is a test in the subject's language, of that file; path NULL: of any. What is called a test comes in
 * front of what only stands beside them, and then the subject's own folder.
 */
static const code_caller *find_calling_test(
    const code_caller *callers, uint32_t n, const char *path, const char *subject_path)
{
    const code_caller *best = NULL;
    char *home = base_path_folder(subject_path);
    int most = -1;
    for (uint32_t i = 0; i < n; i++) {
        const code_caller *c = &callers[i];
        if (!agent__is_test_file(c->path) || !*c->name || !base_path_same_ending(c->path, subject_path) ||
            (path && strcmp(path, c->path) != 0))
            continue;
        char *folder = base_path_folder(c->path);
        const int score = 2 * !strncasecmp(code_last_name(c->name), "test", 4) + !strcmp(folder, home);
        free(folder);
        if (score <= most) continue;
        best = c;
        most = score;
    }
    free(home);
    return best;
}

/* The file that the request names; the one that is named after the subject's file and calls it; one that calls it. */
static char *find_test_file(
    const agent *a, const char *request, const char *subject, const char *subject_path, char **ret_example)
{
    enum { MOST = 256 };
    static const char between[] = " \t\n\"'`(),;:";
    code_index *x = tool_workspace_index(a->workspace);
    char *path = NULL;
    for (const char *p = request; *p && !path;) {
        p += strspn(p, between);
        size_t n = strcspn(p, between), word = n;
        while (word && strchr(".?!", p[word - 1])) word--;
        char *given = base_xstrndup(p, word);
        if (strchr(given, '.')) path = code_index_path(x, given);
        if (path && !agent__is_test_file(path)) {
            free(path);
            path = NULL;
        }
        free(given);
        p += n;
    }
    char *own = path ? NULL : agent__test_file_of(a, subject_path);
    const code_caller *caller = NULL;
    code_caller *callers = NULL;
    const uint32_t n = code_index_callers(x, subject, MOST, &callers), n_here = n < MOST ? n : MOST;
    if (path || own) caller = find_calling_test(callers, n_here, path ? path : own, subject_path);
    if (!caller && !path) caller = find_calling_test(callers, n_here, NULL, subject_path);
    if (caller) *ret_example = base_xstrdup(code_last_name(caller->name));
    if (caller && !path) path = base_xstrdup(caller->path);
    code_callers_free(callers, n_here);
    if (!path) {
        path = own;
        own = NULL;
    }
    free(own);
    if (!path) path = likest_test_file(a, request, subject_path);
    /* Rust's tests stand in the file itself. */
    return path || !base_ends_with(subject_path, ".rs") ? path : base_xstrdup(subject_path);
}

/* A name like the example's that the tree does not have: test_get_key, TestGetKey. */
static char *name_like(const agent *a, const char *example, const char *subject, bool is_rust)
{
    bool is_snake = is_rust || !strncmp(example, "test_", 5);
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

/* Line [line, line + n) of Python imports `name`, with other words or alone; behind "from x import" too. */
static bool imports_name(const char *line, size_t n, const char *name)
{
    const char *names = n > 7 && !strncmp(line, "import ", 7) ? line + 7 : NULL;
    if (!names && n > 5 && !strncmp(line, "from ", 5)) {
        const char *at = memmem(line, n, " import ", 8);
        names = at ? at + 8 : NULL;
    }
    if (!names) return false;
    const size_t length = strlen(name);
    for (const char *end = line + n, *at = names; (at = memmem(at, (size_t)(end - at), name, length)); at++) {
        const char *behind = at + length + strspn(at + length, " ");
        if ((at == names || strchr(" ,(", at[-1])) && (behind >= end || strchr(",)\r#;", *behind)))
            return true;
    }
    return false;
}

static bool file_imports(const base_buf *file, const char *name)
{
    bool found = false;
    for (size_t at = 0; at < file->len && !found;) {
        const char *line = file->data + at, *newline = memchr(line, '\n', file->len - at);
        const size_t n = newline ? (size_t)(newline - line) : file->len - at;
        found = imports_name(line, n, name);
        at += n + 1;
    }
    return found;
}

/*
 * What a file of Python writes in front of the subject: "dotenv." where it calls it so already, "strutils." where it imports
 * the module and not the function.
 */
static void put_module(const base_buf *file, const char *subject, const char *subject_path, base_buf *out)
{
    base_buf call = {0};
    base_buf_printf(&call, ".%s(", subject);
    const char *at = memmem(file->data, file->len, call.data, call.len), *from = at;
    while (
        from && from > file->data && (isalnum((unsigned char)from[-1]) || from[-1] == '_' || from[-1] == '.'))
        from--;
    base_buf_free(&call);
    if (at && from < at) {
        base_buf_add(out, from, (size_t)(at - from) + 1);
        return;
    }
    char *module = tool__module_name(subject_path);
    if (base_ends_with(subject_path, ".py") && *module && !file_imports(file, subject) &&
        file_imports(file, module))
        base_buf_printf(out, "%s.", module);
    free(module);
}

/* How a value of the first parameter begins, by the type that its function declares ("text: str"); "": not known. */
static const char *opening_of_value(const agent *a, const code_place *p)
{
    base_buf text = {0};
    const char *opens = "";
    if (!tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) && p->to <= text.len) {
        const char *open = memchr(text.data + p->from, '(', p->to - p->from), *end = text.data + p->to;
        const size_t n = open ? (size_t)(end - open - 1) : 0, list = n ? strcspn(open + 1, ",)=") : 0;
        const char *colon = list && list < n ? memchr(open + 1, ':', list) : NULL;
        const char *type = colon ? colon + 1 + strspn(colon + 1, " ") : NULL;
        if (type)
            opens = agent__opening_of_type(
                (base_str){type, (size_t)(open + 1 + list - type)}, base_ends_with(p->path, ".py"));
    }
    base_buf_free(&text);
    return opens;
}

/*
 * Python: "raises ValueError for a scheme that begins with a digit, such as "1http"" gives the parameter "scheme" that value, by its
 * name where it is not the first. Nothing where the request says no parameter, or not one string.
 */
static void put_said_argument(const agent *a, const code_place *p, base_buf *out)
{
    base_buf text = {0};
    agent_word value = {0}, other, claim;
    size_t quote = 0;
    if (!base_ends_with(p->path, ".py") || !agent__find_test_claim(a->request, &claim)) return;
    for (size_t i = claim.from; i < claim.to && !value.to; i++)
        if (strchr("\"'", a->request[i]) && agent__read_marked(a->request, i, &value)) quote = i;
    const bool is_one =
        value.to && value.to < claim.to && !memchr(a->request + value.from, '\\', value.to - value.from);
    for (size_t i = value.to + 1; is_one && i < claim.to; i++)
        if (strchr("\"'", a->request[i]) && agent__read_marked(a->request, i, &other)) return;
    if (!is_one || tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) || p->to > text.len) {
        base_buf_free(&text);
        return;
    }
    char *what = base_xstrndup(a->request + claim.from, value.from - claim.from);
    const char *end = text.data + p->to, *at = memchr(text.data + p->from, '(', p->to - p->from);
    bool is_first = true;
    int depth = 0;
    for (at = at ? at + 1 + strspn(at + 1, " \n") : end;
         at < end && !out->len && !(depth == 0 && *at == ')');) {
        const size_t n = strspn(at, "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        char *name = depth == 0 && n && (size_t)(end - at) > n ? base_xstrndup(at, n) : NULL;
        if (name && agent__has_word(what, name))
            base_buf_printf(out, "%s%s%.*s", is_first ? "" : name, is_first ? "" : "=",
                (int)(value.to + 1 - quote), a->request + quote);
        free(name);
        for (at += n; at < end && !(depth == 0 && (*at == ',' || *at == ')')); at++)
            depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
        is_first = false;
        at += at < end && *at == ',' ? 1 + strspn(at + 1, " \n") : 0;
    }
    free(what);
    base_buf_free(&text);
}

/* How an assertion about what a function of Rust gives begins, by the type that it declares; "": it cannot be compared surely. */
static const char *rust_assertion(const agent *a, const code_place *p)
{
    static const char *const compared[] = {"usize", "isize", "u8", "u16", "u32", "u64", "i8", "i16", "i32",
        "i64", "f32", "f64", "char", "String", "str", "bool", NULL};
    static const char *const around[] = {"&", "'static ", "Option<", "Vec<"};
    base_buf text = {0};
    const char *begins = "";
    if (base_ends_with(p->path, ".rs") &&
        !tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) && p->to <= text.len) {
        const char *from = text.data + p->from, *brace = memchr(from, '{', p->to - p->from);
        const char *type = brace ? memmem(from, (size_t)(brace - from), "-> ", 3) : NULL;
        if (type) type += 3;
        /* A Result is asserted alone where an error is asked for: is_err() follows. */
        if (type && (!strncmp(type, "bool ", 5) ||
                        (!strncmp(type, "Result<", 7) && agent__asks_for_error(a->request))))
            begins = "assert!(";
        for (size_t i = 0; type && i < sizeof around / sizeof *around; i++)
            if (!strncmp(type, around[i], strlen(around[i]))) type += strlen(around[i]);
        const size_t n = type ? strcspn(type, " >{\n") : 0;
        for (const char *const *c = compared; *c && !*begins; c++)
            if (n && strlen(*c) == n && !memcmp(*c, type, n)) begins = "assert_eq!(";
    }
    base_buf_free(&text);
    return begins;
}

/*
 * "self.assertEqual(set_title(" for a function of Python: a small model that begins a test without its subject
 * copies the example. NULL: not known.
 */
static char *assertion_like(const agent *a, const char *file_path, const base_buf *file, base_str example,
    const char *subject, const char *subject_path)
{
    static const char *const forms[] = {"self.assertEqual(", "assert ", "assert_eq!("};
    code_place *places = NULL;
    uint32_t n_places = code_index_define(tool_workspace_index(a->workspace), subject, &places);
    bool is_function = n_places && !strcmp(places[0].what, "function") && !*places[0].parent;
    const char *opens = is_function ? opening_of_value(a, &places[0]) : "";
    base_buf said = {0};
    if (is_function) put_said_argument(a, &places[0], &said);
    const char *rust = is_function ? rust_assertion(a, &places[0]) : "";
    code_places_free(places, n_places);
    base_buf out = {0}, path = {0};
    const bool raises =
        is_function && base_ends_with(subject_path, ".py") && agent__put_raises(a->request, example, &out);
    for (size_t i = 0; is_function && !raises && i < sizeof forms / sizeof *forms && !out.len; i++)
        if (memmem(example.ptr, example.len, forms[i], strlen(forms[i]))) base_buf_puts(&out, forms[i]);
    const bool is_rust = *rust || (out.len && !strncmp(out.data, "assert_eq!(", 11));
    if (*rust) {
        base_buf_clear(&out);
        base_buf_puts(&out, rust);
    }
    if (!out.len) {
        base_buf_free(&said);
        return NULL;
    }
    put_module(file, subject, subject_path, &out);
    /* A module of Rust that does not bring it in. */
    base_buf_printf(&path, "super::%s", subject);
    if (is_rust && !strcmp(subject_path, file_path) && !memmem(file->data, file->len, "super::*", 8) &&
        !memmem(file->data, file->len, path.data, path.len))
        base_buf_puts(&out, "super::");
    /* The error may be for another type. */
    base_buf_printf(&out, "%s(%s", subject, said.len ? said.data : raises ? "" : opens);
    base_buf_free(&said);
    base_buf_free(&path);
    return base_buf_take(&out);
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

/*
 * C and Java: the test's lines up to its body's bracket, under the new name: "static void\ntest_list_at() {". The caller frees; NULL:
 * it is no function of theirs with that bracket.
 */
static char *head_of(const char *path, const base_buf *text, const code_definition *d, const char *name)
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
    base_buf_add(&out, text->data + end, (size_t)(brace + 1 - text->data) - end);
    base_buf_putc(&out, '\n');
    return base_buf_take(&out);
}

int agent__append_new_test(agent *a, const char *request, base_err *err)
{
    agent_new_test *t = &a->asked.new_test;
    base_buf text = {0}, behind = {0}, raises = {0};
    char *subject_path = NULL, *path = NULL, *example = NULL, *begins = NULL, version[65];
    int rc = 0;
    if (!a->asked.test) return 0;
    char *subject = agent__find_told_rows(a, request, &path, &example, &subject_path);
    if (!subject) subject = agent__find_subject(a, request, &subject_path);
    const char *plain = subject ? code_last_name(subject) : NULL;
    if (subject && !path) path = find_test_file(a, request, plain, subject_path, &example);
    if (path && !tool_workspace_read(a->workspace, path, MAX_FILE, &text, NULL) && text.len) {
        code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, text.data, text.len);
        const code_definition *d =
            agent__nearest_test(a, f, path, &text, example, subject, subject_path, &begins);
        if (d && agent__is_test_definition(d, path, &text))
            rc = agent__append_call_test(a, path, &text, d, plain, request, err);
        if (!rc && !t->path && d && agent__is_test_definition(d, path, &text)) {
            size_t from = d->from, to = d->to < text.len ? d->to : text.len;
            while (from && text.data[from - 1] != '\n') from--;
            if (to - from > MAX_EXAMPLE) {
                to = from + MAX_EXAMPLE;
                while (to > from && text.data[to - 1] != '\n') to--;
            }
            uint32_t line_end = d->line;
            for (size_t i = d->from; i + 1 < to; i++) line_end += text.data[i] == '\n';
            /* An error that is raised is no row of values. */
            char *rows = base_ends_with(path, ".py") &&
                                 agent__put_raises(request, (base_str){text.data + from, to - from}, &raises)
                             ? NULL
                             : rows_of(&text, d, plain);
            if (rows)
                base_buf_printf(&behind, "\n\nThe new test is rows of its table: %s, %s.\n\n", path, d->name);
            else
                base_buf_printf(
                    &behind, "\n\nThe new test goes into %s, beside %s, and calls %s.", path, d->name, plain);
            /* The request stands far above by now, and this test in view: it would be written once more. */
            if (!rows && a->asked.n_changed)
                base_buf_printf(&behind, " It tests what was changed for this request: %s", request);
            base_buf_puts(&behind, rows ? "" : "\n\n");
            rc = agent__append_subject(a, subject, request, err);
            if (!rc)
                rc = agent__append_lines(a, &(agent_lines){path, d->name, &text, from, to, d->line, line_end},
                    behind.data, request, err);
            base_sha256_hex(text.data, text.len, version);
            tool_workspace_mark_shown(a->workspace, path, version);
            *t = (agent_new_test){.path = base_xstrdup(path),
                .name =
                    rows ? base_xstrdup(d->name) : name_like(a, d->name, plain, base_ends_with(path, ".rs")),
                .rows = rows,
                .example = base_xstrdup(d->name),
                .holder = d->parent && *d->parent ? base_xstrdup(d->parent) : NULL,
                .subject = base_xstrdup(subject),
                .begins = rows ? NULL : begins,
                .assertion = assertion_like(
                    a, path, &text, (base_str){text.data + from, to - from}, subject, subject_path)};
            if (!rows) t->head = head_of(path, &text, d, t->name);
            t->has_value = t->assertion && strchr("'\"[{", t->assertion[strlen(t->assertion) - 1]);
            begins = rows ? begins : NULL;
            if (!agent__set_test_file(a, path)) agent__find_judge(a, path);
        } else if (!rc && !t->path && agent__is_script(path)) {
            rc = agent__append_script_test(a, path, &text, plain, request, err);
        }
        code_file_free(f);
    }
    base_buf_free(&text);
    base_buf_free(&behind);
    base_buf_free(&raises);
    free(subject);
    free(subject_path);
    free(path);
    free(example);
    free(begins);
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

/* A line of comment that says what the new test is to show, as its file has comments; nothing where the request does not say it. */
static void put_comment(const char *path, const char *request, base_buf *out)
{
    base_buf claim = {0};
    agent__put_claim(request, &claim);
    const bool is_python = base_ends_with(path, ".py"), is_c = base_ends_with(path, ".c");
    if (claim.len)
        base_buf_printf(out, "%s%s %s%s\n", base_ends_with(path, ".go") ? "\t" : "    ",
            is_python ? "#"
            : is_c    ? "/*"
                      : "//",
            claim.data, is_c ? " */" : "");
    base_buf_free(&claim);
}

/* The call up to where the new test's arguments begin, so that its name is a new one. */
bool agent__open_new_test(agent *a, agent_opening *opening)
{
    agent_new_test *t = &a->asked.new_test;
    if (!t->path || t->begun || a->info.strong) return false;
    size_t n = strlen(t->path);
    bool is_python = n > 3 && !strcmp(t->path + n - 3, ".py"),
         is_go = n > 3 && !strcmp(t->path + n - 3, ".go"), is_rust = base_ends_with(t->path, ".rs"),
         has_head = t->head != NULL;
    if (!is_python && !is_go && !is_rust && !has_head && !t->is_file) return false;
    t->begun = true;
    if (t->is_file) return agent__open_script_test(a, opening);
    const bool is_java = has_head && base_ends_with(t->path, ".java");
    const bool in_holder = t->holder && (is_python || is_rust || is_java);
    base_buf name = {0};
    base_buf_printf(&name, "%s%s%s", in_holder ? t->holder : "", in_holder ? "." : "", t->name);
    agent_definition like = {.path = t->path,
        .name = name.data,
        .language = (char *)(is_python  ? "python"
                             : is_rust  ? "rust"
                             : is_java  ? "java"
                             : has_head ? "c"
                                        : "go")};
    agent_opening_free(opening);
    base_buf body = {0};
    agent__put_call(a, &like, &opening->call);
    base_buf claim = {0};
    if (!t->rows) put_comment(t->path, a->request, &claim);
    const size_t head = t->begins ? strcspn(t->begins, "\n") : 0; /* of what stands behind the name */
    const char *says = claim.len ? claim.data : "";
    if (t->rows)
        base_buf_puts(&body, t->rows);
    else if (has_head)
        base_buf_printf(&body, "%s%s", t->head, says);
    else if (is_python && t->begins)
        base_buf_printf(&body, "def %s(%.*s\n%s%s", t->name, (int)head, t->begins, says,
            t->begins[head] ? t->begins + head + 1 : "");
    else if (is_python && t->assertion)
        base_buf_printf(&body, "def %s(%s):\n%s    %s", t->name, t->holder ? "self" : "", says, t->assertion);
    else if (is_python)
        base_buf_printf(&body, "def %s(%s", t->name, t->holder ? "self" : "");
    else if (is_rust)
        base_buf_printf(
            &body, "#[test]\nfn %s() {\n%s    %s", t->name, says, t->assertion ? t->assertion : "assert");
    else
        base_buf_printf(&body, "func %s(t *testing.T) {\n%s", t->name, says);
    /* A method of a class of tests is given nothing but itself; a function may be given fixtures, which the model names. */
    const bool is_open = is_python && !t->rows && !t->begins && !t->assertion;
    if (is_open && t->holder && claim.len) base_buf_printf(&body, "):\n%s", says);
    if (is_open && !t->holder) base_buf_puts(&opening->behind, says);
    /* What came of it before did not test its subject: its name stands in front of the lines that are to. */
    if (t->is_refused && !t->rows && !t->begins && !claim.len && (is_go || (is_python && !t->assertion)))
        base_buf_printf(&body, is_go ? "\t// %s" : "):\n    # %s", code_last_name(t->subject));
    base_buf_free(&claim);
    agent_prompt_put_payload(a->info.tools, body.data, body.len, &opening->call);
    base_buf_free(&body);
    base_buf_free(&name);
    return true;
}

void agent__sharpen_new_test(agent *a, const char *output)
{
    agent_new_test *t = &a->asked.new_test;
    if (!t->assertion || t->has_value || t->is_file || t->rows) return;
    const bool is_python = base_ends_with(t->path, ".py");
    const bool is_list = is_python && agent__wants_list(output),
               is_bytes = is_python && agent__wants_bytes(output);
    if (!is_list && !is_bytes && !agent__wants_string(output) &&
        !agent__is_given_nothing(output, code_last_name(t->subject)))
        return;
    base_buf sharper = {0};
    base_buf_printf(&sharper, "%s%s", t->assertion, is_list ? "[" : is_bytes ? "b'" : is_python ? "'" : "\"");
    free(t->assertion);
    t->assertion = base_buf_take(&sharper);
    t->has_value = true;
}

int agent__open_further(agent *a, bool further, agent_opening *opening, base_err *err)
{
    a->asked.new_test.begun = false;
    if (agent__open_new_test(a, opening)) return 0;
    return agent__open_call(a, further, opening, err);
}
