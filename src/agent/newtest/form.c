/*
 * How a new test is begun, from the tests that are there: a further row of the table that its subject is tested by, the
 * assertion that its file makes most, a string where the runner said that one is wanted. Pure.
 */
#include <ctype.h>
#include <string.h>

#include "agent/newtest/newtest.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

enum { LEAST_ROWS = 3, MOST_METHODS = 32 /* of assertions, that a file is looked through for */ };

/* --- tables --------------------------------------------------------------------------------------------- */

/* The bracket that line[0, n) opens and, but for a comma, ends with: "{1, "a"},"; 0: it is no row. */
static char row_bracket(const char *line, size_t n, size_t *ret_indent, bool *ret_has_comma)
{
    static const char opening[] = "{([", closing[] = "})]";
    size_t from = 0;
    while (from < n && (line[from] == ' ' || line[from] == '\t')) from++;
    while (n > from && isspace((unsigned char)line[n - 1])) n--;
    *ret_has_comma = n > from && line[n - 1] == ',';
    n -= *ret_has_comma;
    const char *kind = n > from + 2 ? strchr(opening, line[from]) : NULL;
    *ret_indent = from;
    return kind && line[n - 1] == closing[kind - opening] ? *kind : 0;
}

/* How two rows both begin, up to where a word of theirs does: "{\"". */
static size_t common_beginning(base_str a, base_str b)
{
    size_t n = 0;
    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n]) n++;
    while (n > 1 && (isalnum((unsigned char)a.ptr[n - 1]) || strchr("_ ", a.ptr[n - 1]))) n--;
    return n;
}

size_t agent__rows_end(const char *text, size_t n, base_buf *ret_next)
{
    size_t end = 0, n_rows = 0, last_indent = 0;
    char last = 0;
    base_str row = {0};
    bool needs_comma = false;
    for (size_t at = 0; at < n;) {
        const char *newline = memchr(text + at, '\n', n - at);
        const size_t len = newline ? (size_t)(newline - text) - at : n - at;
        size_t indent;
        bool has_comma;
        const char kind = row_bracket(text + at, len, &indent, &has_comma);
        const bool goes_on = kind && kind == last && indent == last_indent && !needs_comma;
        n_rows = goes_on ? n_rows + 1 : kind ? 1 : 0;
        const base_str now = {text + at + indent, len > indent ? len - indent : 0};
        if (n_rows >= LEAST_ROWS && newline) {
            size_t code = len;
            while (code && isspace((unsigned char)text[at + code - 1])) code--;
            end = at + code;
            base_buf_clear(ret_next);
            base_buf_printf(ret_next, "%s\n%.*s", has_comma ? "" : ",",
                (int)(indent + common_beginning(row, now)), text + at);
        }
        last = kind;
        row = now;
        last_indent = indent;
        needs_comma = !has_comma;
        at += len + 1;
    }
    return end;
}

/* --- assertions ----------------------------------------------------------------------------------------- */

/* An error is expected by it, which is no way to begin unless one is asked for. */
static bool is_about_errors(const char *method, size_t n)
{
    static const char *const words[] = {"throws", "rejects", "doesNotThrow", "doesNotReject", "fail"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && !memcmp(words[i], method, n)) return true;
    return false;
}

void agent__put_usual_assertion(const base_buf *text, const char *request, base_buf *out)
{
    static const char object[] = "assert.";
    const size_t skip = sizeof object - 1;
    struct {
        base_str call; /* "assert.equal(" */
        size_t times;
    } seen[MOST_METHODS];
    size_t n_seen = 0, most = 0;
    base_str best = {0};
    const char *end = text->data + text->len;
    const bool may_throw = agent__asks_for_error(request);
    for (const char *at = text->data; at && (at = memmem(at, (size_t)(end - at), object, skip)); at += skip) {
        size_t n = skip, i = 0;
        while (at + n < end && isalnum((unsigned char)at[n])) n++;
        if (n == skip || at + n >= end || at[n] != '(' ||
            (!may_throw && is_about_errors(at + skip, n - skip)))
            continue;
        while (i < n_seen && (seen[i].call.len != n + 1 || memcmp(seen[i].call.ptr, at, n + 1))) i++;
        if (i == MOST_METHODS) continue;
        if (i == n_seen) {
            seen[n_seen].call = (base_str){at, n + 1};
            seen[n_seen++].times = 0;
        }
        seen[i].times++;
    }
    for (size_t i = 0; i < n_seen; i++) {
        if (seen[i].times <= most) continue;
        most = seen[i].times;
        best = seen[i].call;
    }
    if (best.ptr && !may_throw)
        base_buf_add(out, best.ptr, best.len);
    else
        base_buf_puts(out, may_throw ? object : "assert.equal(");
}

/* "ValueError": the first class of errors that the request names and does not rule out. */
static bool find_error(const char *request, agent_word *ret)
{
    static const char *const endings[] = {"Error", "Exception"};
    static const char *const others[] = {
        "StopIteration", "StopAsyncIteration", "SystemExit", "KeyboardInterrupt", NULL};
    static const char *const denials[] = {"not", "no", "never", "without", "instead", "longer", NULL};
    enum { NEAR = 3 };
    for (size_t at = 0; agent__next_word(request, at, ret); at = ret->to) {
        const size_t n = ret->to - ret->from;
        bool is_error = agent__is_any_word(request, *ret, others);
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
            const size_t m = strlen(endings[i]);
            is_error |= n > m && !memcmp(request + ret->to - m, endings[i], m);
        }
        if (!is_error || !isupper((unsigned char)request[ret->from])) continue;
        agent_word before;
        bool is_denied = false;
        for (size_t from = ret->from, i = 0; i < NEAR && agent__word_before(request, from, &before); i++) {
            is_denied |= agent__is_any_word(request, before, denials);
            from = before.from;
        }
        if (!is_denied) return true;
    }
    return false;
}

bool agent__put_raises(const char *request, base_str example, base_buf *out)
{
    static const char method[] = "self.assert";
    agent_word w;
    if (!find_error(request, &w)) return false;
    const bool is_unittest = memmem(example.ptr, example.len, method, sizeof method - 1) != NULL;
    base_buf_printf(out, "with %s(%.*s):\n        ", is_unittest ? "self.assertRaises" : "pytest.raises",
        (int)(w.to - w.from), request + w.from);
    return true;
}

/* --- what it is to show --------------------------------------------------------------------------------- */

void agent__put_claim(const char *request, base_buf *out)
{
    enum { LEAST = 20, MOST = 90 };
    agent_word claim;
    if (!agent__find_test_claim(request, &claim)) return;
    size_t n = claim.to - claim.from;
    for (const char *from = request + claim.from; n > MOST;) {
        do n--; /* in front of a comma or a colon the sentence can end */
        while (n && !strchr(",:", from[n]));
    }
    if (n < LEAST || memchr(request + claim.from, '\n', n) || memmem(request + claim.from, n, "*/", 2))
        return;
    base_buf_add(out, request + claim.from, n);
}

/* --- arguments ------------------------------------------------------------------------------------------ */

const char *agent__opening_of_type(base_str type, bool is_python)
{
    static const struct {
        const char *type, *opens, *python;
    } openings[] = {{"str", "\"", "'"}, {"AnyStr", "", "'"}, {"Optional[str]", "", "'"}, {"bytes", "", "b'"},
        {"&str", "\"", "'"}, {"string", "\"", "'"}, {"list", "", "["}, {"List", "", "["},
        {"Sequence", "", "["}, {"Iterable", "", "["}, {"Collection", "", "["}, {"Sized", "", "["},
        {"dict", "", "{"}, {"Dict", "", "{"}, {"Mapping", "", "{"}};
    static const char *const modules[] = {"t.", "typing."}, *const either[] = {"Union[", "Optional["};
    for (size_t i = 0; is_python && i < 4; i++) { /* "t.Union[str, bytes]" begins as a str */
        const char *front = i < 2 ? modules[i] : either[i - 2];
        const size_t m = strlen(front);
        if (type.len > m && !memcmp(type.ptr, front, m)) type = (base_str){type.ptr + m, type.len - m};
    }
    size_t n = 0; /* "List" of "List[int]" */
    while (n < type.len && !isspace((unsigned char)type.ptr[n]) && !strchr("[],|", type.ptr[n])) n++;
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
        if (strlen(openings[i].type) == n && !memcmp(type.ptr, openings[i].type, n))
            return is_python ? openings[i].python : openings[i].opens;
    return "";
}

/* What the name is set to first, "s = 'a'": that value's first byte; 0: it is not. */
static char value_of(const base_buf *text, const char *name, size_t n)
{
    const char *end = text->data + text->len;
    for (const char *at = text->data; (at = memmem(at, (size_t)(end - at), name, n)); at += n) {
        const bool is_whole = (at == text->data || !code_is_name_byte(at[-1])) && !code_is_name_byte(at[n]);
        const char *set = at + n + strspn(at + n, " :");
        while (*set == ',') { /* "s, t = 'a', 'b'" */
            set += 1 + strspn(set + 1, " ");
            while (code_is_name_byte(*set)) set++;
            set += strspn(set, " ");
        }
        if (is_whole && *set == '=' && set[1] != '=') return set[1 + strspn(set + 1, " ")];
    }
    return 0;
}

const char *agent__usual_argument(const base_buf *text, const char *name)
{
    static const char *const openings[] = {"'", "\"", "[", "{"};
    base_buf call = {0};
    char kind = 0;
    base_buf_printf(&call, "%s(", name);
    const char *end = text->data + text->len;
    for (const char *at = text->data;
         at && !kind && (at = memmem(at, (size_t)(end - at), call.data, call.len)); at++) {
        const char *given = at + call.len;
        size_t n = 0;
        while (given + n < end && code_is_name_byte(given[n])) n++;
        if (at > text->data && code_is_name_byte(at[-1])) continue;
        kind = n && !isdigit((unsigned char)*given) && strchr(",)", given[n]) ? value_of(text, given, n)
               : n                                                            ? 0
                                                                              : *given;
    }
    base_buf_free(&call);
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
        if (kind && *openings[i] == kind) return openings[i];
    return "";
}

bool agent__wants_list(const char *output)
{
    return output && (strstr(output, "' has no len()") || strstr(output, "' object is not iterable"));
}

bool agent__wants_bytes(const char *output)
{
    return output &&
           (strstr(output, "bytes-like object is required") || strstr(output, "can't concat str to bytes"));
}

bool agent__wants_string(const char *output)
{
    static const char *const sayings[] = {"can only concatenate str (not", "must be str, not ",
        "must be string, not ", "expected str instance", "expected string or bytes", "a string is required",
        "as string value in argument", "expected `&str`, found ", "expected `String`, found ",
        "argument must be of type string"};
    for (size_t i = 0; output && i < sizeof sayings / sizeof *sayings; i++)
        if (strstr(output, sayings[i])) return true;
    return false;
}

bool agent__is_given_nothing(const char *output, const char *subject)
{
    static const char *const says[] = {"NameError: name '", "The new text uses "}; /* the runner, rewrite */
    const char *at = NULL;
    for (size_t i = 0; output && !at && i < sizeof says / sizeof *says; i++) {
        at = strstr(output, says[i]);
        if (at) at += strlen(says[i]);
    }
    if (!at) return false;
    base_buf call = {0};
    base_buf_printf(&call, "%s(%.*s", subject, (int)strcspn(at, "', "), at);
    const char *line = strstr(output, call.data);
    const bool is_so = line && strchr(",).", line[call.len]) && line[call.len];
    base_buf_free(&call);
    return is_so;
}

void agent__put_failure(const char *output, base_buf *out)
{
    static const struct {
        const char *mark;
        bool is_begin; /* the line begins so, but for white space */
    } marks[] = {{"E  ", true}, {"error[E", true}, {"error: ", false}, {"Error: ", false},
        {"panicked at", false}, {"_test.go:", false}, {"Assertion", false}};
    enum { MOST = 200 };
    for (size_t i = 0; i < sizeof marks / sizeof *marks && output; i++)
        for (const char *line = output; *line; line += strcspn(line, "\n"), line += *line == '\n') {
            const char *from = line + strspn(line, " \t");
            size_t n = strcspn(from, "\n");
            const char *at = memmem(from, n, marks[i].mark, strlen(marks[i].mark));
            if (!at || (marks[i].is_begin && at != from)) continue;
            if (!strcmp(marks[i].mark, "E  ")) from += 3 + strspn(from + 3, " ");
            n = strcspn(from, "\n");
            base_buf_add(out, from, n < MOST ? n : MOST);
            return;
        }
}
