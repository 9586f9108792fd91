/*
 * "X when Y": most changes of behaviour are a condition in front of what stands there. A small model that writes the
 * definition again copies it, or turns something in its middle round. So one further attempt is begun with such a
 * condition as the body's first statement: the model writes the condition and what is returned, then copies the rest.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/repair/attempt.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

/* --- where it goes -------------------------------------------------------------------------------------- */

static size_t behind_newline(const base_buf *text, size_t at)
{
    const char *newline = at < text->len ? memchr(text->data + at, '\n', text->len - at) : NULL;
    return newline ? (size_t)(newline - text->data) + 1 : text->len;
}

static bool is_blank(const base_buf *text, size_t from, size_t to)
{
    while (from < to && isspace((unsigned char)text->data[from])) from++;
    return from >= to;
}

static size_t indent_at(const base_buf *text, size_t at)
{
    size_t n = 0;
    while (at + n < text->len && (text->data[at + n] == ' ' || text->data[at + n] == '\t')) n++;
    return n;
}

/* Behind the docstring that the line at `at` begins with; at: none does. */
static size_t behind_docstring(const base_buf *text, size_t at)
{
    size_t from = at + indent_at(text, at);
    if (from < text->len && strchr("rRuU", text->data[from])) from++;
    if (from >= text->len || !strchr("\"'", text->data[from])) return at;
    const char quote[3] = {text->data[from], text->data[from], text->data[from]};
    const bool is_long = text->len - from > 3 && !memcmp(text->data + from, quote, 3);
    const size_t n = is_long ? 3 : 1;
    const char *end = memmem(text->data + from + n, text->len - from - n, quote, n);
    return end ? behind_newline(text, (size_t)(end - text->data) + n) : at;
}

/* The line of the body's first statement; SIZE_MAX: the body is on the definition's own line. */
static size_t first_statement(const agent_definition *t)
{
    size_t at = t->body;
    if (at >= t->text.len) return SIZE_MAX;
    const bool has_brace = t->text.data[at] == '{';
    if (has_brace && !is_blank(&t->text, at + 1, behind_newline(&t->text, at))) return SIZE_MAX;
    if (has_brace) {
        at = behind_newline(&t->text, at);
    } else {
        while (at > 0 && t->text.data[at - 1] != '\n') at--;
        if (!at || !is_blank(&t->text, at, t->body)) return SIZE_MAX;
        at = behind_docstring(&t->text, at);
    }
    while (at < t->text.len && is_blank(&t->text, at, behind_newline(&t->text, at)))
        at = behind_newline(&t->text, at);
    return at < t->text.len ? at : SIZE_MAX;
}

static bool has_parentheses(const char *language)
{
    static const char *const languages[] = {
        "c", "cpp", "java", "javascript", "typescript", "tsx", "php", "c_sharp", "csharp"};
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (!strcmp(language, languages[i])) return true;
    return false;
}

/* Something is to come back; where an error is asked for, the model knows how its tree makes one. */
static bool wants_value(const char *request)
{
    static const char *const values[] = {"return", "returns", "give", "gives", NULL};
    return agent__has_any_word(request, values) || !agent__asks_for_error(request);
}

/* The old text came again, or the values of the request do not hold: what does not build or breaks a test is put right. */
static bool is_due(const agent *a)
{
    const bool is_wrong = a->fix.failing ? a->test.has_values : a->fix.copied;
    return is_wrong && a->asked.change && !a->fix.wanted && !a->fix.field && !a->fix.returned_early;
}

bool agent__open_early_return(agent *a, const agent_definition *t, agent_opening *opening)
{
    const bool may = is_due(a) && !model_tools_are_marked(a->info.tools) && !code_path_is_test(t->path) &&
                     agent__asks_for_behaviour(a);
    const size_t at = may && t->text.len ? first_statement(t) : SIZE_MAX;
    if (at == SIZE_MAX) return false;
    const size_t outer = indent_at(&t->text, 0), inner = indent_at(&t->text, at);
    if (inner <= outer) return false;
    a->fix.returned_early = true;
    base_buf_add(&opening->call, t->text.data, at + inner);
    base_buf_puts(&opening->call, has_parentheses(t->language) ? "if (" : "if");
    if (wants_value(a->request)) {
        base_buf_add(&opening->behind, t->text.data + at, inner);
        base_buf_add(&opening->behind, t->text.data + at, inner - outer);
        base_buf_puts(&opening->behind, "return");
        base_buf_add(&opening->old, t->text.data, t->text.len);
    }
    opening->is_doubt = true;
    return true;
}

/* --- what comes behind the condition -------------------------------------------------------------------- */

/* Without white space around it, "if" in front, and the parenthesis that C has behind that. */
static base_str condition_of(const char *line, size_t n)
{
    while (n && isspace((unsigned char)line[n - 1])) n--;
    while (n && isspace((unsigned char)*line)) line++, n--;
    if (n > 2 && !memcmp(line, "if", 2) && strchr(" \t(", line[2])) line += 2, n -= 2;
    while (n && strchr(" \t(", *line)) line++, n--;
    return (base_str){line, n};
}

/* A condition of the old body, copied: what stands behind it there follows, and a return would cut it off. */
static bool is_copied(const base_buf *old, const char *line)
{
    const base_str wanted = condition_of(line, strlen(line));
    for (size_t at = 0; wanted.len && at < old->len;) {
        const size_t next = behind_newline(old, at);
        const base_str there = condition_of(old->data + at, next - at);
        if (there.len == wanted.len && !memcmp(there.ptr, wanted.ptr, wanted.len)) return true;
        at = next;
    }
    return false;
}

bool agent__put_behind_line(
    const agent_opening *o, const char *text, size_t n, bool *ret_is_over, base_buf *out)
{
    static const char *const leaving[] = {"return", "throw", "raise", "panic", NULL};
    const char *newline = memchr(text, '\n', n);
    if (!newline) return false;
    *ret_is_over = true;
    char *line = base_xstrndup(text, (size_t)(newline - text));
    size_t end = strlen(line);
    while (end && isspace((unsigned char)line[end - 1])) end--;
    const bool goes_on = o->is_line || (end && strchr("{:)", line[end - 1]) &&
                                           !agent__has_any_word(line, leaving) && !is_copied(&o->old, line));
    /* A token may have brought the next line's indentation as well. */
    const size_t n_there = n - (size_t)(newline + 1 - text);
    const bool fits = goes_on && n_there < o->behind.len && !memcmp(newline + 1, o->behind.data, n_there);
    /* Of a line that is all, what a token brought besides are newlines. */
    const bool is_all = o->is_line && strspn(newline + 1, "\n") >= n_there;
    if (fits)
        base_buf_add(out, o->behind.data + n_there, o->behind.len - n_there);
    else if (is_all)
        base_buf_add(out, o->behind.data, o->behind.len);
    free(line);
    return fits || is_all;
}
