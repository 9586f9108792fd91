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

/* --- what is tested ------------------------------------------------------------------------------------- */

/* The mention with the member behind two colons, as the index writes it: "Pattern::escape" is "Pattern.escape". */
static char *copy_member(const char *request, agent_word w)
{
    agent_word member;
    base_buf out = {0};
    const bool is_one = !strncmp(request + w.to, "::", 2) && agent__is_in_word(request, w.to + 2) &&
                        agent__next_word(request, w.to, &member);
    base_buf_add(&out, request + w.from, w.to - w.from);
    if (is_one) base_buf_printf(&out, ".%.*s", (int)(member.to - member.from), request + member.from);
    return out.data ? base_buf_take(&out) : base_xstrdup("");
}

/* "Signer.validate": a member that the request names with its type. The caller frees; NULL: none. */
static char *find_member(const agent *a, const char *request, char **ret_path)
{
    char *member = NULL;
    agent_word w;
    for (size_t at = 0; !member && agent__next_mention(request, at, &w); at = w.to > at ? w.to : at + 1) {
        char *name = copy_member(request, w);
        code_place *places = NULL;
        const char *last = code_last_name(name);
        const uint32_t n =
            last > name ? code_index_define(tool_workspace_index(a->workspace), name, &places) : 0;
        for (uint32_t i = 0; i < n && !member; i++) {
            if (!agent__is_code_place(&places[i]) || !*places[i].parent) continue;
            member = base_xstrdup(name);
            *ret_path = base_xstrdup(places[i].path);
        }
        code_places_free(places, n);
        free(name);
    }
    return member;
}

/* The definition that the request names or describes; NULL: none surely. */
static char *find_subject(const agent *a, const char *request, char **ret_path)
{
    code_index *x = tool_workspace_index(a->workspace);
    char *subject = find_member(a, request, ret_path);
    if (subject) return subject;
    agent_named named;
    agent__find_named(a, request, &named);
    for (uint32_t k = 0; k < named.n && named.items[k].score >= AGENT_NAMED_SURE && !subject; k++) {
        code_place *places = NULL;
        uint32_t n_places = code_index_define(x, named.items[k].name, &places);
        for (uint32_t i = 0; i < n_places && !subject; i++) {
            if (!agent__is_code_place(&places[i])) continue;
            subject = base_xstrdup(named.items[k].name);
            *ret_path = base_xstrdup(places[i].path);
        }
        code_places_free(places, n_places);
    }
    agent_named_free(&named);
    return subject;
}

/* What the turn has rewritten, where the request does not name what it changes. */
static char *changed_subject(const agent *a, char **ret_path)
{
    const agent_fix *f = &a->fix;
    if (a->asked.test_of || !f->path || !f->name || !agent__is_changed(a, f->path)) return NULL;
    *ret_path = base_xstrdup(f->path);
    return base_xstrdup(f->name);
}

/* The best that retrieval finds. */
static char *likest_subject(const agent *a, const char *request, char **ret_path)
{
    char *subject = NULL;
    code_hits hits = {0};
    code_index_search(tool_workspace_index(a->workspace), request, 8, &hits);
    for (uint32_t i = 0; i < hits.n && !subject; i++) {
        const code_hit *h = &hits.hits[i];
        if (!*h->name || !agent__is_source(h->path)) continue;
        subject = base_xstrdup(code_last_name(h->name));
        *ret_path = base_xstrdup(h->path);
    }
    code_hits_free(&hits);
    return subject;
}

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
    const char *from = subject + strspn(subject, "_");
    if (is_snake) {
        for (const char *p = from; *p; p++) {
            if (isupper((unsigned char)*p) && p > from && islower((unsigned char)p[-1]))
                base_buf_putc(&name, '_');
            base_buf_putc(&name, (char)tolower((unsigned char)*p));
        }
    } else {
        bool up = true;
        for (const char *p = from; *p; p++) {
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

/* Rust: does what it gives stand in an assert!: a bool, or a Result of which an error is asked for? */
static bool is_asserted_alone(const agent *a, const code_place *p)
{
    base_buf text = {0};
    bool is_so = false;
    if (base_ends_with(p->path, ".rs") &&
        !tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) && p->to <= text.len) {
        const char *from = text.data + p->from, *brace = memchr(from, '{', p->to - p->from);
        const char *arrow = brace ? memmem(from, (size_t)(brace - from), "-> ", 3) : NULL;
        is_so = arrow && (!strncmp(arrow + 3, "bool ", 5) ||
                             (!strncmp(arrow + 3, "Result<", 7) && agent__asks_for_error(a->request)));
    }
    base_buf_free(&text);
    return is_so;
}

/*
 * "self.assertEqual(set_title(" for a function of Python: a small model that begins a test without its subject
 * copies the example. NULL: not known.
 */
static char *assertion_like(const agent *a, const base_buf *file, const char *example, size_t n,
    const char *subject, const char *subject_path)
{
    static const char *const forms[] = {"self.assertEqual(", "assert ", "assert_eq!("};
    code_place *places = NULL;
    uint32_t n_places = code_index_define(tool_workspace_index(a->workspace), subject, &places);
    bool is_function = n_places && !strcmp(places[0].what, "function") && !*places[0].parent;
    const char *opens = is_function ? opening_of_value(a, &places[0]) : "";
    const bool is_alone = is_function && is_asserted_alone(a, &places[0]);
    code_places_free(places, n_places);
    base_buf out = {0}, path = {0};
    const bool raises = is_function && base_ends_with(subject_path, ".py") &&
                        agent__put_raises(a->request, (base_str){example, n}, &out);
    for (size_t i = 0; is_function && !raises && i < sizeof forms / sizeof *forms && !out.len; i++)
        if (memmem(example, n, forms[i], strlen(forms[i]))) base_buf_puts(&out, forms[i]);
    if (!out.len && is_alone) base_buf_puts(&out, "assert_eq!(");
    if (!out.len) return NULL;
    const bool is_rust = !strncmp(out.data, "assert_eq!(", 11);
    if (is_rust && is_alone) {
        base_buf_clear(&out);
        base_buf_puts(&out, "assert!(");
    }
    put_module(file, subject, subject_path, &out);
    /* A module of Rust that does not bring it in. */
    base_buf_printf(&path, "super::%s", subject);
    if (is_rust && base_ends_with(subject_path, ".rs") && !memmem(file->data, file->len, "super::*", 8) &&
        !memmem(file->data, file->len, path.data, path.len))
        base_buf_puts(&out, "super::");
    base_buf_printf(&out, "%s(%s", subject, raises ? "" : opens); /* the error may be for another type */
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
    if (!subject) subject = changed_subject(a, &subject_path);
    if (!subject) subject = find_subject(a, request, &subject_path);
    if (!subject) subject = likest_subject(a, request, &subject_path);
    const char *plain = subject ? code_last_name(subject) : NULL;
    if (subject && !path) path = find_test_file(a, request, plain, subject_path, &example);
    if (path && !tool_workspace_read(a->workspace, path, MAX_FILE, &text, NULL) && text.len) {
        code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, text.data, text.len);
        const code_definition *d =
            agent__nearest_test(a, f, path, &text, example, subject, subject_path, &begins);
        if (d && agent__is_test_definition(d, path, &text)) {
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
                base_buf_printf(&behind, "\n\nThe new test goes into %s, beside %s, and calls %s.\n\n", path,
                    d->name, plain);
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
                .assertion = assertion_like(a, &text, text.data + from, to - from, subject, subject_path)};
            if (!rows) t->head = head_of(path, &text, d, t->name);
            t->has_value = t->assertion && strchr("'\"[{", t->assertion[strlen(t->assertion) - 1]);
            begins = rows ? begins : NULL;
            if (!agent__set_test_file(a, path)) agent__find_judge(a, path);
        } else if (agent__is_script(path)) {
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
    if (t->rows || has_head)
        base_buf_puts(&body, t->rows ? t->rows : t->head);
    else if (is_python && t->begins)
        base_buf_printf(&body, "def %s(%s", t->name, t->begins);
    else if (is_python && t->assertion)
        base_buf_printf(&body, "def %s(%s):\n    %s", t->name, t->holder ? "self" : "", t->assertion);
    else if (is_python)
        base_buf_printf(&body, "def %s(%s", t->name, t->holder ? "self" : "");
    else if (is_rust)
        base_buf_printf(&body, "#[test]\nfn %s() {\n    %s", t->name, t->assertion ? t->assertion : "assert");
    else
        base_buf_printf(&body, "func %s(t *testing.T) {\n", t->name);
    /* What came of it before did not test its subject: its name stands in front of the lines that are to. */
    if (t->is_refused && !t->rows && !t->begins && (is_go || (is_python && !t->assertion)))
        base_buf_printf(&body, is_go ? "\t// %s" : "):\n    # %s", code_last_name(t->subject));
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
