/*
 * Tests of JavaScript and TypeScript: calls of "it" and "test", no definitions. Where the tree has a file of tests for each subject, a new
 * one gets a file of its own beside them; else it stands behind the one that is nearest to it, in the same "describe".
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/judge/judge.h"
#include "agent/newtest/newtest.h"
#include "agent/words/request_words.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"
#include "tools/file/text.h"

enum { MAX_EXAMPLE = 2400 };

bool agent__is_script(const char *path)
{
    static const char *const endings[] = {".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"};
    bool is = false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) is |= base_ends_with(path, endings[i]);
    return is;
}

/* --- a file of its own ----------------------------------------------------------------------------------- */

/* Lines [*from, *to) of the last "test(...)" or "it(...)" that stands at the column of its file's first. */
static bool last_script_test(const base_buf *text, size_t *from, size_t *to)
{
    static const char *const words[] = {"test(", "it("};
    size_t column = SIZE_MAX;
    bool found = false;
    for (size_t at = 0; at < text->len;) {
        size_t end = at;
        while (end < text->len && text->data[end] != '\n') end++;
        size_t word = at;
        while (word < end && (text->data[word] == ' ' || text->data[word] == '\t')) word++;
        bool begins = false;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            begins |=
                end - word > strlen(words[i]) && !strncmp(text->data + word, words[i], strlen(words[i]));
        if (begins && (column == SIZE_MAX || word - at == column)) {
            column = word - at;
            *from = at;
            found = false;
        }
        const bool ends = column != SIZE_MAX && word - at == column && end - word >= 2 &&
                          !strncmp(text->data + word, "})", 2);
        if (ends && *from < at && !found) {
            *to = end < text->len ? end + 1 : end;
            found = true;
        }
        at = end + 1;
    }
    return found;
}

/* The imports that its file begins with. */
static void put_imports(const base_buf *text, base_buf *out)
{
    int depth = 0;
    for (size_t at = 0; at < text->len;) {
        const char *line = text->data + at, *newline = memchr(line, '\n', text->len - at);
        const size_t n = newline ? (size_t)(newline - line) : text->len - at;
        const bool is_one = depth > 0 || !strncmp(line, "import ", 7) ||
                            (memmem(line, n, "require(", 8) && !isspace((unsigned char)*line));
        for (size_t i = 0; is_one && i < n; i++) depth += (line[i] == '{') - (line[i] == '}');
        if (is_one) {
            base_buf_add(out, line, n);
            base_buf_putc(out, '\n');
        }
        at += n + 1;
    }
}

/* "tests/attributeName.test.js": a file of its own beside the tests that are there. */
static char *script_path(const agent *a, const char *beside, const char *subject)
{
    const char *name = base_path_name(beside);
    const char *ending = strstr(name, ".test.");
    if (!ending) ending = strstr(name, ".spec.");
    if (!ending) return NULL;
    for (unsigned i = 1; i < 100; i++) {
        base_buf path = {0}, text = {0};
        base_buf_printf(&path, "%.*s%s", (int)(name - beside), beside, subject);
        if (i > 1) base_buf_printf(&path, "%u", i);
        base_buf_puts(&path, ending);
        const bool is_free = tool_workspace_read(a->workspace, path.data, NEWTEST_MAX_FILE, &text, NULL) != 0;
        base_buf_free(&text);
        if (is_free) return base_buf_take(&path);
        base_buf_free(&path);
    }
    return NULL;
}

/* "expect(x).toBe(1)", and no ".expect(200)" of a request. */
static bool expects_values(const char *text, size_t n)
{
    static const char call[] = "expect(";
    for (const char *at = text, *end = text + n; (at = memmem(at, (size_t)(end - at), call, sizeof call - 1));
         at++)
        if (at == text || isspace((unsigned char)at[-1]) || strchr("(;{", at[-1])) return true;
    return false;
}

/* With the imports of the nearest file of tests, whose last test is shown. */
static int append_own_file(
    agent *a, const char *path, const base_buf *text, const char *subject, const char *request, base_err *err)
{
    size_t from = 0, to = 0;
    base_buf behind = {0}, imports = {0};
    char *own = script_path(a, path, subject);
    int rc = 0;
    put_imports(text, &imports);
    if (own && imports.len && last_script_test(text, &from, &to) && to - from <= MAX_EXAMPLE) {
        uint32_t line = 1, line_end;
        for (size_t i = 0; i < from; i++) line += text->data[i] == '\n';
        line_end = line;
        for (size_t i = from; i + 1 < to; i++) line_end += text->data[i] == '\n';
        base_buf_printf(&behind, "\n\nThe new test goes into %s.\n\n", own);
        rc = agent__append_subject(a, subject, request, err);
        if (!rc)
            rc = agent__append_lines(
                a, &(agent_lines){path, "", text, from, to, line, line_end}, behind.data, request, err);
        const bool is_test = memmem(text->data + from, to - from, "test(", 5) != NULL;
        const bool expects = expects_values(text->data + from, to - from);
        base_buf_printf(&imports, "\n%s('%s', () => {\n  ", is_test ? "test" : "it", subject);
        if (expects)
            base_buf_puts(&imports, "expect(");
        else
            agent__put_usual_assertion(text, request, &imports);
        a->asked.new_test = (agent_new_test){.path = own,
            .name = base_xstrdup(subject),
            .subject = base_xstrdup(subject),
            .assertion = base_buf_take(&imports),
            .is_file = true};
        own = NULL;
    }
    free(own);
    base_buf_free(&behind);
    base_buf_free(&imports);
    return rc;
}

/* --- beside the nearest ----------------------------------------------------------------------------------- */

/* A call that stands on lines of its own, "it('does', () => {" to "})": bytes [from, to) of the file, whole lines. */
typedef struct block {
    size_t from, to, column;
} block;

static size_t line_end(const base_buf *text, size_t at)
{
    while (at < text->len && text->data[at] != '\n') at++;
    return at;
}

static size_t column_of(const base_buf *text, size_t at)
{
    size_t column = 0;
    while (at + column < text->len && strchr(" \t", text->data[at + column])) column++;
    return column;
}

/* The block whose first line begins at byte `at`: that line opens a bracket, and one of its column closes it. false: none does. */
static bool read_block(const base_buf *text, size_t at, block *ret)
{
    const size_t end = line_end(text, at), column = column_of(text, at);
    if (end == at || text->data[end - 1] != '{') return false;
    *ret = (block){.from = at, .column = column};
    for (size_t line = end + 1; line < text->len; line = line_end(text, line) + 1) {
        if (line_end(text, line) == line || column_of(text, line) > column) continue;
        if (column_of(text, line) < column || text->data[line + column] != '}') return false;
        ret->to = line_end(text, line) + 1;
        if (ret->to > text->len) ret->to = text->len;
        return true;
    }
    return false;
}

static bool is_test_line(const base_buf *text, size_t at)
{
    static const char *const words[] = {"it(", "test(", "t.test(", "await t.test("};
    at += column_of(text, at);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text->len - at > strlen(words[i]) && !strncmp(text->data + at, words[i], strlen(words[i])))
            return true;
    return false;
}

/* Is a word of text[from, to) one that the request's word says? */
static bool says_any(const base_buf *text, size_t from, size_t to, const char *word, size_t n)
{
    size_t at = from, word_from, word_to;
    while (code_next_identifier(text->data, to, &at, &word_from, &word_to))
        if (agent__says_part(word, n, text->data + word_from, word_to - word_from)) return true;
    return false;
}

/* How many words of the request it says, those of its title more, and one that calls the subject many more. */
static uint32_t score_of(const base_buf *text, const block *b, const char *request, const char *subject)
{
    enum { CALLS = 100, TITLE = 3 };
    uint32_t score = 0;
    const size_t title = line_end(text, b->from);
    char *part = base_xstrndup(text->data + b->from, b->to - b->from);
    if (agent__names_word(part, subject)) score += CALLS;
    free(part);
    agent_word w = {0};
    while (agent__next_word(request, w.to, &w)) {
        const char *word = request + w.from;
        const size_t n = w.to - w.from;
        if (!agent__is_content_word(word, n)) continue;
        score += says_any(text, b->from, b->to, word, n) + TITLE * says_any(text, b->from, title, word, n);
    }
    return score;
}

/* The test that fits the request best, of several the last. */
static bool find_nearest(const base_buf *text, const char *request, const char *subject, block *ret)
{
    uint32_t best = 0;
    bool found = false;
    for (size_t at = 0; at < text->len; at = line_end(text, at) + 1) {
        block b;
        if (!is_test_line(text, at) || !read_block(text, at, &b) || b.to - b.from > MAX_EXAMPLE) continue;
        const uint32_t score = score_of(text, &b, request, subject);
        if (found && score < best) continue;
        best = score;
        *ret = b;
        found = true;
    }
    return found;
}

/* "describe('f', ...)" only groups; "whenAccept('a', ...)" is the file's own, and its tests hold for what it is given. */
static bool only_groups(const base_buf *text, const block *b)
{
    static const char *const words[] = {"describe", "context", "suite", "group"};
    const char *word = text->data + b->from + b->column;
    bool is_so = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is_so |= !strncmp(word, words[i], strlen(words[i]));
    return is_so;
}

/*
 * "whenAccept('a', function () { it(...) })": a block around this test, inside of another, that is for it alone or is the file's own
 * says what the test is given. Then the new test needs one of its own.
 */
static bool find_around(const base_buf *text, const block *test, block *ret)
{
    bool found = false;
    for (size_t at = 0; at < test->from; at = line_end(text, at) + 1) {
        block b;
        if (column_of(text, at) == 0 || column_of(text, at) >= test->column || !read_block(text, at, &b) ||
            b.from > test->from || b.to < test->to)
            continue;
        *ret = b; /* the innermost comes last */
        found = true;
    }
    uint32_t n_tests = 0;
    for (size_t at = found ? ret->from : 0; found && at < ret->to; at = line_end(text, at) + 1)
        n_tests += is_test_line(text, at);
    return found && (n_tests == 1 || (!only_groups(text, ret) && ret->to - ret->from <= MAX_EXAMPLE));
}

/* "... that a number is written as text: {q: 1} gives q=1" says what the test is called. */
static void put_title(const char *request, base_buf *out)
{
    enum { LEAST = 8, MOST = 90 };
    agent_word claim;
    if (!agent__find_test_claim(request, &claim)) return;
    const char *from = request + claim.from;
    size_t n = strcspn(from, ".:;,!?\n'\"`\\");
    if (n > claim.to - claim.from) n = claim.to - claim.from;
    if (n >= LEAST && n <= MOST && from[n] != '\'') base_buf_add(out, from, n);
}

/* The first line of the block that calls the subject, up to its arguments. */
static void put_first_call(const base_buf *text, const block *b, const char *subject, base_buf *out)
{
    base_buf call = {0};
    base_buf_printf(&call, "%s(", subject);
    const char *body = text->data + line_end(text, b->from), *end = text->data + b->to,
               *at = memmem(body, (size_t)(end - body), call.data, call.len), *from = at;
    while (from && from[-1] != '\n') from--;
    if (from && (at == from || !agent__is_in_word(at - 1, 0)))
        base_buf_add(out, from, (size_t)(at - from) + call.len);
    base_buf_free(&call);
}

/*
 * How the new one begins: as the block beside it, up to its title; with one that the request gives, up to the subject's
 * arguments.
 */
static void put_beginning(
    const base_buf *text, const block *b, const char *subject, const char *request, base_buf *out)
{
    const char *line = text->data + b->from, *bracket = memchr(line, '(', line_end(text, b->from) - b->from);
    const size_t n = line_end(text, b->from) - b->from;
    const char *quote = bracket && strchr("'\"`", bracket[1]) ? bracket + 1 : NULL,
               *end = quote ? memchr(quote + 1, *quote, n - (size_t)(quote + 1 - line)) : NULL;
    base_buf title = {0};
    if (is_test_line(text, b->from)) put_title(request, &title);
    if (!bracket)
        base_buf_add(out, line, b->column);
    else if (end && title.len)
        base_buf_printf(
            out, "%.*s%s%.*s\n", (int)(quote + 1 - line), line, title.data, (int)(line + n - end), end);
    else
        base_buf_add(out, line, (size_t)((quote ? quote + 1 : bracket + 1) - line));
    /* What throws is called inside of another function: the neighbour's call is no beginning for that. */
    if (end && title.len && !agent__asks_for_error(request)) put_first_call(text, b, subject, out);
    base_buf_free(&title);
}

/* The test at the left margin around this one that counts what is in it ("t.plan(3)"): one more would be one too many. */
static bool find_planned(const base_buf *text, const block *test, block *ret)
{
    static const char plan[] = "t.plan(";
    for (size_t at = 0; test->column && at < test->from; at = line_end(text, at) + 1)
        if (column_of(text, at) == 0 && is_test_line(text, at) && read_block(text, at, ret) &&
            ret->from < test->from && ret->to >= test->to)
            return memmem(text->data + ret->from, test->from - ret->from, plan, sizeof plan - 1) != NULL;
    return false;
}

static uint32_t line_of(const base_buf *text, size_t at)
{
    return (uint32_t)tool__line_of(text->data, at);
}

static int append_beside(
    agent *a, const char *path, const base_buf *text, const char *subject, const char *request, base_err *err)
{
    block test, around, planned;
    base_buf begins = {0}, behind = {0};
    if (!find_nearest(text, request, subject, &test)) return 0;
    const bool is_planned = find_planned(text, &test, &planned);
    const block *b = !is_planned && find_around(text, &test, &around) ? &around : &test;
    const uint32_t line = line_of(text, b->from), end = line_of(text, b->to - 1),
                   last = is_planned ? line_of(text, planned.to - 1) : end;
    put_beginning(text, is_planned ? &planned : b, subject, request, &begins);
    base_buf_printf(&behind, "\n\nThe new test goes into %s, behind this one.\n\n", path);
    int rc = agent__append_subject(a, subject, request, err);
    if (!rc)
        rc = agent__append_lines(
            a, &(agent_lines){path, "", text, b->from, b->to, line, end}, behind.data, request, err);
    a->asked.new_test = (agent_new_test){.path = base_xstrdup(path),
        .name = base_xstrdup(subject),
        .subject = base_xstrdup(subject),
        .assertion = base_buf_take(&begins),
        .is_file = true,
        .line = last};
    if (!agent__set_test_file(a, path)) agent__find_judge(a, path);
    base_buf_free(&behind);
    return rc;
}

int agent__append_script_test(
    agent *a, const char *path, const base_buf *text, const char *subject, const char *request, base_err *err)
{
    char *named = agent__test_file_named(a, subject, path);
    uint32_t n_tests = 0;
    for (size_t at = 0; at < text->len; at = line_end(text, at) + 1) n_tests += is_test_line(text, at);
    /* the subject has a file already, and that not for one test alone */
    const bool is_its_own =
        (named && !strcmp(named, path) && n_tests > 1) || code_has_identifier(text->data, text->len, subject);
    free(named);
    const int rc = is_its_own ? 0 : append_own_file(a, path, text, subject, request, err);
    if (rc || a->asked.new_test.path || (!is_its_own && strstr(base_path_name(path), ".test."))) return rc;
    return append_beside(a, path, text, subject, request, err);
}

/* --- its call ---------------------------------------------------------------------------------------------- */

/* The call that makes the file, or writes all of its lines again where an attempt has made it. */
static void put_file_call(agent *a, const char *path, base_buf *json)
{
    base_buf text = {0};
    char version[65];
    const bool is_there = !tool_workspace_read(a->workspace, path, NEWTEST_MAX_FILE, &text, NULL) && text.len;
    base_buf_printf(json, "{\"name\": \"%s\", \"arguments\": {\"path\": ", is_there ? "edit" : "write");
    base_json_put_str(json, path, strlen(path));
    if (is_there) {
        uint32_t n_lines = 0;
        for (size_t i = 0; i < text.len; i++) n_lines += text.data[i] == '\n';
        n_lines += text.data[text.len - 1] != '\n';
        base_buf_printf(json, ", \"from\": 1, \"to\": %u", n_lines);
        base_sha256_hex(text.data, text.len, version);
        tool_workspace_mark_shown(a->workspace, path, version);
    }
    base_buf_puts(json, "}}");
    base_buf_free(&text);
}

/* Rows that an attempt has put at byte `at` behind the last one that was there: the last line of theirs, else the one in front. */
static uint32_t last_row_line(const base_buf *text, size_t at, const agent_new_test *t)
{
    const size_t head = strlen(t->assertion);
    uint32_t line = t->line;
    while (at + head < text->len && !memcmp(text->data + at, t->assertion, head)) {
        do {
            at = line_end(text, at) + 1;
            line++;
        } while (at < text->len && text->data[at - 2] != ';');
    }
    return line;
}

/*
 * The call that puts it behind line t->line, or writes again what an attempt has put there; false: the file is another one
 * by now. The line itself is written again: an edit replaces lines.
 */
static bool put_beside_call(agent *a, const agent_new_test *t, base_buf *json, base_buf *payload)
{
    base_buf text = {0};
    char version[65];
    uint32_t line = 1, to = t->line;
    size_t at = 0;
    if (tool_workspace_read(a->workspace, t->path, NEWTEST_MAX_FILE, &text, NULL)) return false;
    for (; line < t->line && at < text.len; line++) at = line_end(&text, at) + 1;
    block written;
    const size_t end = at < text.len ? line_end(&text, at) : at, head = strcspn(t->assertion, "\n"),
                 own = end + 2 < text.len ? end + 2 : end;
    const bool is_there = at < text.len && (text.data[at + column_of(&text, at)] == '}' ||
                                               (t->is_row && text.data[end - 1] == ';'));
    const bool is_written =
        agent__is_changed(a, t->path); /* else what stands behind it is a test that was there */
    if (t->is_row && is_there && is_written)
        to = last_row_line(&text, end + 1, t);
    else if (is_there && is_written && text.len - own > head &&
             !memcmp(text.data + own, t->assertion, head) && read_block(&text, own, &written))
        to = line_of(&text, written.to - 1);
    if (is_there) {
        base_buf_puts(json, "{\"name\": \"edit\", \"arguments\": {\"path\": ");
        base_json_put_str(json, t->path, strlen(t->path));
        base_buf_printf(json, ", \"from\": %u, \"to\": %u}}", t->line, to);
        base_buf_printf(
            payload, "%.*s%s%s", (int)(end - at), text.data + at, t->is_row ? "\n" : "\n\n", t->assertion);
        base_sha256_hex(text.data, text.len, version);
        tool_workspace_mark_shown(a->workspace, t->path, version);
    }
    base_buf_free(&text);
    return is_there;
}

/*
 * "  it('f', () => {" and "  })" around the body, in the place of the lines `assertion` that begin such a test; true: what stands in
 * front of the test is in it, too.
 */
static char *whole_script_test(const agent *a, const char *body)
{
    const agent_new_test *t = &a->asked.new_test;
    static const char *const words[] = {"test(", "it("};
    const char *begin = NULL;
    base_buf file = {0}, title = {0}, out = {0};
    for (size_t i = 0; i < sizeof words / sizeof *words && !begin; i++)
        for (const char *at = t->assertion; !begin && (at = strstr(at, words[i])); at++)
            if (at == t->assertion || isspace((unsigned char)at[-1]) || at[-1] == '.')
                begin = at + strlen(words[i]);
    if (!begin || tool_workspace_read(a->workspace, t->path, NEWTEST_MAX_FILE, &file, NULL))
        base_buf_clear(&file);
    if (begin) {
        const char *line = begin;
        while (line > t->assertion && line[-1] != '\n') line--;
        const int column = (int)strspn(line, " \t");
        const bool is_async = !strncmp(line + column, "await ", 6),
                   has_end = strstr(t->assertion, ");\n") != NULL,
                   is_arrow = !file.len || memmem(file.data, file.len, "=> {", 4),
                   has_semicolons = has_end || (file.len && memmem(file.data, file.len, "});\n", 4));
        const char quote = *begin && strchr("'\"`", *begin) ? *begin : '\'';
        const char *context = strstr(body, " t."), *given = context ? "t" : "";
        put_title(a->request, &title);
        base_buf_printf(&out, "%.*s%c%s%c, %s", (int)(begin - t->assertion), t->assertion, quote,
            title.len ? title.data : t->name, quote, is_async ? "async " : "");
        if (is_arrow)
            base_buf_printf(&out, "(%s) => {\n", given);
        else
            base_buf_printf(&out, "function (%s) {\n", given);
        for (const char *at = body; *at; at += strcspn(at, "\n"), at += *at == '\n') {
            const size_t indent = strspn(at, " ") / 2;
            base_buf_printf(&out, "%.*s", column, line);
            for (size_t k = 0; k < (indent ? indent - 1 : 0); k++)
                base_buf_puts(&out, *line == '\t' ? "\t" : "  ");
            base_buf_printf(&out, "%.*s\n", (int)(strcspn(at, "\n") - strspn(at, " ")), at + strspn(at, " "));
        }
        base_buf_printf(&out, "%.*s})%s\n", column, line, has_semicolons ? ";" : "");
    }
    base_buf_free(&file);
    base_buf_free(&title);
    return out.len ? base_buf_take(&out) : NULL;
}

bool agent__put_whole_script_test(agent *a, const char *body, base_buf *ret)
{
    agent_new_test *t = &a->asked.new_test;
    agent_opening opening = {0};
    char *whole = t->is_row ? NULL : whole_script_test(a, body), *begins = t->assertion;
    if (!whole) return false;
    t->assertion = whole;
    const bool is_open = agent__open_script_test(a, &opening);
    t->assertion = begins;
    base_buf_add(ret, opening.call.data ? opening.call.data : "", opening.call.len);
    agent_opening_free(&opening);
    free(whole);
    return is_open;
}

bool agent__open_script_test(agent *a, agent_opening *opening)
{
    const agent_new_test *t = &a->asked.new_test;
    base_buf json = {0}, payload = {0};
    bool is_open = true;
    if (t->line) {
        is_open = put_beside_call(a, t, &json, &payload);
    } else {
        put_file_call(a, t->path, &json);
        base_buf_puts(&payload, t->assertion);
    }
    if (is_open) {
        agent_opening_free(opening);
        agent_prompt_open_payload(a->info.tools, json.data, t->is_row ? "c" : "javascript", &opening->call);
        agent_prompt_put_payload(a->info.tools, payload.data, payload.len, &opening->call);
    }
    base_buf_free(&json);
    base_buf_free(&payload);
    return is_open;
}
