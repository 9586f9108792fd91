/* How a new test's assertion begins, up to what its subject is given (contract: newtest.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/newtest/newtest.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"
#include "tools/edit/import_lines.h"

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

/* Does a line begin with "import " and these bytes? */
static bool imports_module(const base_buf *file, const char *name, size_t n)
{
    base_buf line = {0};
    base_buf_printf(&line, "import %.*s", (int)n, name);
    const char *at = memmem(file->data, file->len, line.data, line.len);
    const bool is_so = at && (at == file->data || at[-1] == '\n') && !code_is_name_byte(at[line.len]);
    base_buf_free(&line);
    return is_so;
}

/*
 * What a file of Python writes in front of the subject: "dotenv." where it calls it so already, "strutils." where it imports
 * the module and not the function.
 */
static void put_module(const base_buf *file, const char *subject, const char *subject_path, base_buf *out)
{
    const size_t n_before = out->len;
    base_buf member = {0};
    base_buf_printf(&member, ".%s", subject);
    const char *end = file->data + file->len;
    for (const char *at = file->data; (at = memmem(at, (size_t)(end - at), member.data, member.len)); at++) {
        const char *from = at;
        while (from > file->data && (code_is_name_byte(from[-1]) || from[-1] == '.')) from--;
        const bool is_whole = at + member.len == end || !code_is_name_byte(at[member.len]);
        if (!is_whole || from == at || !strncmp(from, "self.", 5)) continue;
        /* An attribute of that name is no function of a module. */
        const bool is_called = at + member.len < end && at[member.len] == '(';
        if (!is_called && !imports_module(file, from, (size_t)(at - from))) continue;
        base_buf_add(out, from, (size_t)(at - from) + 1);
        break;
    }
    base_buf_free(&member);
    if (out->len > n_before) return;
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
    if (!tool_workspace_read(a->workspace, p->path, NEWTEST_MAX_FILE, &text, NULL) && p->to <= text.len) {
        char *plain = code_blank_comments(code_language(p->path, "", 0), text.data, text.len);
        const char *open = memchr(plain + p->from, '(', p->to - p->from), *end = plain + p->to;
        const size_t n = open ? (size_t)(end - open - 1) : 0, list = n ? strcspn(open + 1, ",)=") : 0;
        const char *colon = list && list < n ? memchr(open + 1, ':', list) : NULL;
        const char *type = colon ? colon + 1 + strspn(colon + 1, " ") : NULL;
        if (type)
            opens = agent__opening_of_type(
                (base_str){type, (size_t)(open + 1 + list - type)}, base_ends_with(p->path, ".py"));
        free(plain);
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
    if (!is_one || tool_workspace_read(a->workspace, p->path, NEWTEST_MAX_FILE, &text, NULL) ||
        p->to > text.len) {
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
        "i64", "f32", "f64", "char", "String", "str", "bool", "Ordering", NULL};
    static const char *const around[] = {"&", "'static ", "Option<", "Vec<"};
    base_buf text = {0};
    const char *begins = "";
    if (base_ends_with(p->path, ".rs") &&
        !tool_workspace_read(a->workspace, p->path, NEWTEST_MAX_FILE, &text, NULL) && p->to <= text.len) {
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

/* How a value of a Go function's first parameter begins: a small model that begins it calls a function like the subject. */
static const char *go_opening(const agent *a, const code_place *p, const char *subject)
{
    static const char *const openings[][2] = {{"string", "\""}, {"[]byte", "[]byte(\""}, {"rune", "'"},
        {"[]string", "[]string{"}, {"[]int", "[]int{"}};
    base_buf text = {0}, call = {0};
    const char *opens = "";
    base_buf_printf(&call, "%s(", subject);
    if (!tool_workspace_read(a->workspace, p->path, NEWTEST_MAX_FILE, &text, NULL) && p->to <= text.len) {
        const char *at = memmem(text.data + p->from, p->to - p->from, call.data, call.len);
        const size_t n = at ? strcspn(at + call.len, ")\n") : 0;
        const char *type = n ? memchr(at + call.len, ' ', n) : NULL, *list = at ? at + call.len : NULL;
        while (type && type[-1] == ',')
            type = memchr(type + 1, ' ', n - (size_t)(type + 1 - list)); /* "a, b string" */
        const size_t length = type ? strcspn(type + 1, ",)\n") : 0;
        for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
            if (length && strlen(openings[i][0]) == length && !memcmp(type + 1, openings[i][0], length))
                opens = openings[i][1];
    }
    base_buf_free(&text);
    base_buf_free(&call);
    return opens;
}

/*
 * Go: "if got := " in front of a call that gives one value, "got, err := " of one that may fail; "" otherwise. A model that begins such a
 * test by itself copies the table of the one beside it until it is cut.
 */
static const char *go_assertion(const agent *a, const code_place *p, const char *subject)
{
    base_buf text = {0};
    const char *begins = "";
    if (base_ends_with(p->path, ".go") &&
        !tool_workspace_read(a->workspace, p->path, NEWTEST_MAX_FILE, &text, NULL) && p->to <= text.len) {
        const char *from = text.data + p->from, *brace = memmem(from, p->to - p->from, " {\n", 3);
        const char *name = memmem(from, p->to - p->from, subject, strlen(subject)),
                   *at = name ? strchr(name, '(') : NULL;
        int depth = 0;
        for (; at && brace && at < brace; at++) {
            depth += (*at == '(') - (*at == ')');
            if (depth == 0) break;
        }
        const char *gives = at && brace && at < brace ? at + 1 + strspn(at + 1, " ") : NULL;
        const size_t n = gives && gives < brace ? (size_t)(brace - gives) : 0;
        uint32_t n_commas = 0;
        for (size_t i = 0; i < n; i++) n_commas += gives[i] == ',';
        if (n && !n_commas)
            begins = "if got := ";
        else if (n_commas == 1 && !memcmp(brace - strlen("error)"), "error)", strlen("error)")))
            begins = "got, err := ";
    }
    base_buf_free(&text);
    return begins;
}

char *agent__begin_assertion(const agent *a, const char *file_path, const base_buf *file, base_str example,
    const char *subject, const char *subject_path)
{
    static const char *const forms[] = {"self.assertEqual(", "assert ", "assert_eq!("};
    code_place *places = NULL;
    uint32_t n_places = code_index_define(tool_workspace_index(a->workspace), subject, &places);
    bool is_function = n_places && !strcmp(places[0].what, "function") && !*places[0].parent;
    const char *opens = is_function ? opening_of_value(a, &places[0]) : "";
    if (is_function && !*opens && base_ends_with(subject_path, ".py"))
        opens = agent__usual_argument(file, subject);
    base_buf said = {0};
    if (is_function) put_said_argument(a, &places[0], &said);
    const char *rust = is_function ? rust_assertion(a, &places[0]) : "";
    const char *go = is_function ? go_assertion(a, &places[0], subject) : "";
    if (*go) opens = go_opening(a, &places[0], subject);
    code_places_free(places, n_places);
    base_buf out = {0}, path = {0};
    const bool raises =
        is_function && base_ends_with(subject_path, ".py") && agent__put_raises(a->request, example, &out);
    for (size_t i = 0; is_function && !raises && i < sizeof forms / sizeof *forms && !out.len; i++)
        if (memmem(example.ptr, example.len, forms[i], strlen(forms[i]))) base_buf_puts(&out, forms[i]);
    if (is_function && !out.len &&
        base_ends_with(subject_path, ".py")) /* it asserts otherwise, or errors alone */
        base_buf_puts(&out, memmem(example.ptr, example.len, "self.", 5) ? forms[0] : forms[1]);
    const bool is_rust = *rust || (out.len && !strncmp(out.data, "assert_eq!(", 11));
    if (*rust) {
        base_buf_clear(&out);
        base_buf_puts(&out, rust);
    }
    if (*go) {
        base_buf_clear(&out);
        base_buf_puts(&out, go);
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
