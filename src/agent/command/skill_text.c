/*
 * The strict reader of front matter (contract: skill_text.h): a subset of YAML that every skill in the wild
 * is written in. Keys stand at the start of a line; what is indented belongs to the key above it.
 */
#include "agent/command/skill_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { MOST_KEY = 64 };

void agent_skill_text_free(agent_skill_text *t)
{
    free(t->name);
    free(t->description);
    *t = (agent_skill_text){0};
}

bool agent_skill_is_name(const char *name, size_t n)
{
    if (n < 1 || n > AGENT_SKILL_MOST_NAME) return false;
    for (size_t i = 0; i < n; i++) {
        const bool is_between = name[i] == '-' || name[i] == '_';
        if (!is_between && !islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i])) return false;
        if (is_between && (i == 0 || i + 1 == n)) return false;
    }
    return true;
}

typedef struct reader {
    const char *text;
    size_t n, at;
    uint32_t line; /* of what was read last; the first is 1 */
} reader;

/* The next line without its end; false: there is none. */
static bool next_line(reader *r, base_str *ret)
{
    if (r->at >= r->n) return false;
    const char *from = r->text + r->at, *end = memchr(from, '\n', r->n - r->at);
    size_t len = end ? (size_t)(end - from) : r->n - r->at;
    r->at += len + (end != NULL);
    if (len && from[len - 1] == '\r') len--;
    *ret = (base_str){from, len};
    r->line++;
    return true;
}

static base_str trimmed(base_str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) s.ptr++, s.len--;
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t')) s.len--;
    return s;
}

static bool is_rule(base_str line)
{
    return base_str_equal(trimmed(line), "---") && line.ptr[0] == '-';
}

/* A quoted value: "..." with escapes, '...' with the quote doubled. False: it has no end, or text behind it. */
static bool unquote(base_str s, base_buf *out)
{
    const char quote = s.ptr[0];
    for (size_t i = 1; i < s.len; i++) {
        if (s.ptr[i] == quote) {
            const bool is_doubled = quote == '\'' && i + 1 < s.len && s.ptr[i + 1] == '\'';
            if (!is_doubled) return i + 1 == s.len;
            base_buf_putc(out, s.ptr[i++]);
        } else if (quote == '"' && s.ptr[i] == '\\' && i + 1 < s.len) {
            const char c = s.ptr[++i];
            base_buf_putc(out, c == 'n' || c == 't' || c == 'r' ? ' ' : c);
        } else {
            base_buf_putc(out, s.ptr[i]);
        }
    }
    return false;
}

/* The value that is being read: of name or description, or of a key that is passed by. */
typedef struct value {
    char **into; /* NULL: passed by */
    const char *key;
    base_buf text;
    bool is_quoted, is_block;
    uint32_t line;
} value;

static int begin_value(value *v, base_str rest, base_err *err)
{
    if (!v->into || !rest.len) return 0;
    v->is_block = rest.ptr[0] == '>' || rest.ptr[0] == '|';
    v->is_quoted = rest.ptr[0] == '"' || rest.ptr[0] == '\'';
    const bool is_block_head = rest.len == 1 || (rest.len == 2 && strchr("+-", rest.ptr[1]) && rest.ptr[1]);
    if (v->is_block && !is_block_head)
        return base_fail(err, BASE_E_FORMAT, "line %u: behind %s: %c the text stands on the lines below",
            v->line, v->key, rest.ptr[0]);
    if (strchr("[{&*!%@`", rest.ptr[0]))
        return base_fail(
            err, BASE_E_FORMAT, "line %u: %s is text; put it in quotes (\"...\")", v->line, v->key);
    if (v->is_quoted && !unquote(rest, &v->text))
        return base_fail(
            err, BASE_E_FORMAT, "line %u: the quotes of %s do not close at the line's end", v->line, v->key);
    if (!v->is_block && !v->is_quoted) base_buf_add(&v->text, rest.ptr, rest.len);
    return 0;
}

/* A further, indented line of a value. */
static int add_line(value *v, base_str line, uint32_t number, base_err *err)
{
    const base_str text = trimmed(line);
    if (!v->into || !text.len) return 0;
    if (v->is_quoted)
        return base_fail(
            err, BASE_E_FORMAT, "line %u: the value of %s ended with its quotes", number, v->key);
    if (v->text.len) base_buf_putc(&v->text, ' ');
    base_buf_add(&v->text, text.ptr, text.len);
    return 0;
}

static int end_value(value *v, base_err *err)
{
    const size_t most = v->into && !strcmp(v->key, "name") ? AGENT_SKILL_MOST_NAME : AGENT_SKILL_MOST_ABOUT;
    int rc = 0;
    if (v->into && !v->text.len)
        rc = base_fail(err, BASE_E_FORMAT, "line %u: %s has no value", v->line, v->key);
    else if (v->into && v->text.len > most)
        rc = base_fail(err, BASE_E_FORMAT, "line %u: %s is longer than %zu bytes", v->line, v->key, most);
    else if (v->into && !strcmp(v->key, "name") && !agent_skill_is_name(v->text.data, v->text.len))
        rc = base_fail(err, BASE_E_FORMAT,
            "line %u: a name has small letters, digits and - between them, as in \"code-review\"", v->line);
    else if (v->into) {
        for (size_t i = 0; i < v->text.len; i++)
            if ((unsigned char)v->text.data[i] < ' ' || v->text.data[i] == 0x7f) v->text.data[i] = ' ';
        *v->into = base_buf_take(&v->text);
    }
    base_buf_free(&v->text);
    *v = (value){0};
    return rc;
}

/* "key: value"; which of ours it is. */
static int begin_key(base_str line, uint32_t number, agent_skill_text *t, value *v, base_err *err)
{
    size_t n = 0;
    while (n < line.len && (isalnum((unsigned char)line.ptr[n]) || line.ptr[n] == '-' || line.ptr[n] == '_'))
        n++;
    const bool is_key = n > 0 && n <= MOST_KEY && n < line.len && line.ptr[n] == ':' &&
                        (n + 1 == line.len || line.ptr[n + 1] == ' ' || line.ptr[n + 1] == '\t');
    if (!is_key)
        return base_fail(err, BASE_E_FORMAT,
            "line %u: \"key: value\" is expected here, or the line --- that ends the front matter", number);
    const base_str key = {line.ptr, n};
    *v = (value){.line = number};
    if (base_str_equal(key, "name")) v->into = &t->name, v->key = "name";
    if (base_str_equal(key, "description")) v->into = &t->description, v->key = "description";
    if (v->into && *v->into) return base_fail(err, BASE_E_FORMAT, "line %u: a second %s", number, v->key);
    return begin_value(v, trimmed((base_str){line.ptr + n + 1, line.len - n - 1}), err);
}

int agent_skill_text_parse(const char *text, size_t n, agent_skill_text *ret, base_err *err)
{
    static const char mark[] = "\xef\xbb\xbf";
    reader r = {text, n, 0, 0};
    agent_skill_text t = {0};
    value v = {0};
    base_str line;
    *ret = t;
    if (memchr(text, 0, n)) return base_fail(err, BASE_E_FORMAT, "it holds a zero byte: it is not text");
    if (!base_utf8_valid(text, n)) return base_fail(err, BASE_E_FORMAT, "it is not UTF-8 text");
    if (n >= 3 && !memcmp(text, mark, 3)) r.at = 3;
    ret->body = r.at;
    if (!next_line(&r, &line) || !is_rule(line)) return 0; /* Markdown alone */
    bool has_key = false, is_closed = false;
    int rc = 0;
    while (!rc && !is_closed && next_line(&r, &line)) {
        const bool is_indented = line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t');
        const bool is_item = has_key && !v.into && line.len && line.ptr[0] == '-' && !is_rule(line);
        is_closed = is_rule(line);
        if (is_closed || !trimmed(line).len || line.ptr[0] == '#') continue;
        if ((is_indented && has_key) || is_item) {
            rc = add_line(&v, line, r.line, err);
        } else {
            rc = end_value(&v, err);
            if (!rc) rc = begin_key(line, r.line, &t, &v, err);
            has_key = true;
        }
    }
    if (!rc && !is_closed)
        rc = base_fail(err, BASE_E_FORMAT, "the front matter of line 1 has no end: a line --- is missing");
    if (!rc) rc = end_value(&v, err);
    base_buf_free(&v.text);
    t.body = r.at;
    if (rc)
        agent_skill_text_free(&t);
    else
        *ret = t;
    return rc;
}
