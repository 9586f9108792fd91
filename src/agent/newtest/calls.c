/* The calls of a subject in a text, and what they need (contract: calls.h). */
#include "agent/newtest/calls.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

enum { MOST_TEXT = 240 /* bytes of a call or a line */, MOST_LINES = 120 };

/* The text without comments, all bytes in place, and its statements: whole lines, more than one where a bracket is open. */
typedef struct reading {
    char *text;
    size_t n;
    bool is_python;
    const char *given;
    struct {
        size_t from, to;
    } lines[MOST_LINES];
    uint32_t n_lines;
} reading;

/* Behind the string that begins at byte `at`, or `at` itself: none does. A ' that closes nowhere near is a lifetime. */
static size_t skip_string(const reading *r, size_t at)
{
    enum { MOST_CHARACTER = 12 };
    const char quote = r->text[at];
    if (!quote || !strchr("\"'`", quote)) return at;
    const bool is_long =
        r->is_python && at + 2 < r->n && r->text[at + 1] == quote && r->text[at + 2] == quote;
    size_t end = at + (is_long ? 3 : 1);
    for (; end < r->n; end++) {
        if (r->text[end] == '\\' && quote != '`')
            end++;
        else if (r->text[end] == quote && (!is_long || !strncmp(r->text + end, r->text + at, 3)))
            return end + (is_long ? 3 : 1);
        else if (r->text[end] == '\n' && !is_long && quote != '`')
            break;
    }
    return at;
}

/* Behind the bracket that closes the one at byte `at`; 0: none does. */
static size_t skip_brackets(const reading *r, size_t at)
{
    int depth = 0;
    while (at < r->n) {
        const size_t behind = skip_string(r, at);
        if (behind > at) {
            at = behind;
            continue;
        }
        const char c = r->text[at++];
        depth += (strchr("([{", c) && c) - (strchr(")]}", c) && c);
        if (depth <= 0) return at;
    }
    return 0;
}

static bool is_name(const reading *r, size_t at)
{
    return at < r->n && code_is_name_byte(r->text[at]);
}

/* Does the line that ends at byte `end` open a block, "it('x', () => {", and no object, "f({"? */
static bool opens_block(const reading *r, size_t end)
{
    while (end && strchr(" \t\r", r->text[end - 1])) end--;
    if (!end || r->text[end - 1] != '{') return false;
    end--;
    while (end && r->text[end - 1] == ' ') end--;
    return !end || r->text[end - 1] == ')' || r->text[end - 1] == '>' || is_name(r, end - 1);
}

static void read_lines(reading *r)
{
    size_t from = 0;
    int depth = 0;
    for (size_t at = 0; at <= r->n && r->n_lines < MOST_LINES;) {
        const size_t behind = at < r->n ? skip_string(r, at) : at;
        if (behind > at) {
            at = behind;
            continue;
        }
        const char c = at < r->n ? r->text[at] : '\n';
        depth += (strchr("([", c) && c) - (strchr(")]", c) && c);
        at++;
        if (c != '\n' || (depth > 0 && !opens_block(r, at - 1))) continue;
        if (at - 1 > from) {
            r->lines[r->n_lines].from = from;
            r->lines[r->n_lines++].to = at - 1;
        }
        from = at;
        depth = 0;
    }
}

static uint32_t line_of(const reading *r, size_t at)
{
    uint32_t i = 0;
    while (i + 1 < r->n_lines && r->lines[i].to < at) i++;
    return i;
}

/* On one line, without the white space and the ; around it. */
static char *copy_flat(const reading *r, size_t from, size_t to)
{
    base_buf out = {0};
    while (from < to && isspace((unsigned char)r->text[from])) from++;
    while (to > from && (isspace((unsigned char)r->text[to - 1]) || r->text[to - 1] == ';')) to--;
    for (size_t at = from; at < to;) {
        const size_t behind = skip_string(r, at);
        if (behind > at) {
            base_buf_add(&out, r->text + at, behind - at);
            at = behind;
        } else if (isspace((unsigned char)r->text[at])) {
            while (at < to && isspace((unsigned char)r->text[at])) at++;
            if (out.len && !strchr("([", out.data[out.len - 1])) base_buf_putc(&out, ' ');
        } else {
            base_buf_putc(&out, r->text[at++]);
        }
    }
    return out.len ? base_buf_take(&out) : base_xstrdup("");
}

/* --- calls ---------------------------------------------------------------------------------------------- */

/* Where the expression begins whose last name is at byte `at`: "NGram(2)." in front of "distance(", "new A()." */
static size_t expression_begin(const reading *r, size_t at, size_t line)
{
    while (at > line) {
        size_t from = at;
        const char before = r->text[at - 1];
        if (before == '.')
            from = at - 1;
        else if (at > line + 1 &&
                 ((before == ':' && r->text[at - 2] == ':') || (before == '>' && r->text[at - 2] == '-')))
            from = at - 2;
        else
            break;
        while (from > line && strchr(")]", r->text[from - 1])) {
            int depth = 0;
            do {
                from--;
                depth += (strchr(")]", r->text[from]) != NULL) - (strchr("([", r->text[from]) != NULL);
            } while (from > line && depth > 0);
        }
        while (from > line && is_name(r, from - 1)) from--;
        if (from == at) break;
        at = from;
    }
    if (at >= line + 4 && !strncmp(r->text + at - 4, "new ", 4) && (at == line + 4 || !is_name(r, at - 5)))
        at -= 4;
    return at;
}

/* Behind the call's brackets, and what is taken of what it gives: ".unwrap()", "[0]". */
static size_t expression_end(const reading *r, size_t open)
{
    size_t end = skip_brackets(r, open);
    while (end && end < r->n) {
        size_t next = end;
        if (r->text[end] == '[') {
            next = skip_brackets(r, end);
        } else if (r->text[end] == '.' && is_name(r, end + 1)) {
            for (next = end + 1; is_name(r, next);) next++;
            if (next < r->n && r->text[next] == '(') next = skip_brackets(r, next);
        }
        if (next <= end) break;
        end = next;
    }
    return end;
}

/* --- what a call needs ----------------------------------------------------------------------------------- */

/* A word that begins a block, whose names have other values each time, or are given from outside. */
static bool is_control(const char *word, size_t n)
{
    static const char *const words[] = {"for", "while", "if", "else", "switch", "case", "with", "def", "func",
        "function", "fn", "class", "match", "try", "except", "catch", "async", "do", "elif", "test", "it"};
    bool is = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is |= strlen(words[i]) == n && !memcmp(words[i], word, n);
    return is;
}

static bool is_assertion(const reading *r, size_t from, size_t to)
{
    static const char *const words[] = {"assert", "Assert", "ASSERT", "expect(", "CHECK", "TEST(", "REQUIRE",
        "t.Error", "t.Fatal", "t.is(", "t.equal", "t.deepEqual", "return", "printf", "print(", "panic"};
    bool is = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is |= memmem(r->text + from, to - from, words[i], strlen(words[i])) != NULL;
    return is;
}

/* The next name in text[*at, to) that may be a variable: no part of another, no function, no key. */
static bool next_variable(const reading *r, size_t *at, size_t to, size_t *from, size_t *end)
{
    while (*at < to) {
        const size_t behind = skip_string(r, *at);
        if (behind > *at) {
            *at = behind;
            continue;
        }
        if (!is_name(r, *at)) {
            ++*at;
            continue;
        }
        *from = *at;
        while (*at < to && is_name(r, *at)) ++*at;
        *end = *at;
        const char before = *from ? r->text[*from - 1] : ' ';
        const size_t next = *end + strspn(r->text + *end, " ");
        const char c = r->text[next];
        const bool is_key = c == ':' || (c == '=' && r->text[next + 1] != '=');
        if (!isdigit((unsigned char)r->text[*from]) && before != '.' && c != '(' && !is_key &&
            !code_is_keyword(r->text + *from, *end - *from))
            return true;
    }
    return false;
}

static bool writes(const reading *r, size_t from, size_t to, const char *name, size_t n)
{
    for (size_t at = from; at < to;) {
        const size_t behind = skip_string(r, at);
        if (behind > at) {
            at = behind;
            continue;
        }
        if (!is_name(r, at)) {
            at++;
            continue;
        }
        const size_t word = at;
        while (at < to && is_name(r, at)) at++;
        if (at - word == n && !memcmp(r->text + word, name, n) && !(word && r->text[word - 1] == '.'))
            return true;
    }
    return false;
}

static bool is_given(const reading *r, size_t word, size_t n)
{
    char *name = base_xstrndup(r->text + word, n);
    const bool is = code_has_identifier(r->given, strlen(r->given), name);
    free(name);
    return is;
}

/*
 * Marks the lines in front of line `before` that write a variable of text[from, to), and what those need. false: one of them is bound by
 * a block.
 */
static bool mark_needed(const reading *r, size_t from, size_t to, uint32_t before, bool *needed)
{
    size_t word, end;
    for (size_t at = from; next_variable(r, &at, to, &word, &end);) {
        if (is_given(r, word, end - word)) continue;
        for (uint32_t i = before; i-- > 0;) {
            const size_t line = r->lines[i].from, line_to = r->lines[i].to;
            if (needed[i] || !writes(r, line, line_to, r->text + word, end - word)) continue;
            size_t first = line;
            while (first < line_to && !is_name(r, first)) first++;
            size_t first_end = first;
            while (first_end < line_to && is_name(r, first_end)) first_end++;
            if (is_control(r->text + first, first_end - first)) {
                if (!strncmp(r->text + word, "err", 3)) continue;
                return false;
            }
            if (is_assertion(r, line, line_to)) continue;
            if (line_to - line > MOST_TEXT || r->text[line_to - 1] == '{') return false;
            needed[i] = true;
            if (!mark_needed(r, line, line_to, i, needed)) return false;
        }
    }
    return true;
}

/* --- steps ------------------------------------------------------------------------------------------------ */

typedef struct found {
    size_t from, to;
    uint32_t line;
    bool needed[MOST_LINES];
} found;

static bool is_known(const reading *r, const found *all, uint32_t n, const found *f)
{
    char *text = copy_flat(r, f->from, f->to);
    bool is = false;
    for (uint32_t i = 0; i < n && !is; i++) {
        char *other = copy_flat(r, all[i].from, all[i].to);
        is = !strcmp(text, other) && !memcmp(all[i].needed, f->needed, sizeof f->needed);
        free(other);
    }
    free(text);
    return is;
}

static uint32_t find_all(const reading *r, const char *subject, found *all)
{
    const size_t n = strlen(subject);
    uint32_t n_found = 0;
    for (size_t at = 0; at < r->n && n_found < AGENT_MAX_CALLS;) {
        const size_t behind = skip_string(r, at);
        if (behind > at || !is_name(r, at)) {
            at = behind > at ? behind : at + 1;
            continue;
        }
        const size_t word = at;
        while (is_name(r, at)) at++;
        if (at - word != n || memcmp(r->text + word, subject, n) || at >= r->n || r->text[at] != '(')
            continue;
        found *f = &all[n_found];
        *f = (found){.line = line_of(r, word)};
        f->from = expression_begin(r, word, r->lines[f->line].from);
        f->to = expression_end(r, at);
        const size_t end = skip_brackets(r, at);
        const bool is_whole =
            f->to && f->to - f->from <= MOST_TEXT && !memmem(r->text + f->from, f->to - f->from, "...", 3);
        if (end) at = end;
        if (is_whole && mark_needed(r, f->from, f->to, f->line, f->needed) && !is_known(r, all, n_found, f))
            n_found++;
    }
    return n_found;
}

/* Calls for whose lines there is no room are left out. */
static void put_steps(const reading *r, const found *all, uint32_t n_found, agent_steps *ret)
{
    uint32_t step_of[MOST_LINES];
    for (uint32_t i = 0, next = 0; i < r->n_lines; i++) {
        bool needed = false;
        step_of[i] = AGENT_MAX_STEPS;
        for (uint32_t k = 0; k < n_found; k++) needed |= all[k].needed[i];
        if (needed && ret->n < AGENT_MAX_STEPS - AGENT_MAX_CALLS) {
            step_of[i] = ret->n;
            ret->steps[ret->n++] =
                (agent_step){.kind = AGENT_STEP_LINE, .text = copy_flat(r, r->lines[i].from, r->lines[i].to)};
        }
        for (; next < n_found && all[next].line == i; next++) {
            uint32_t needs = 0;
            bool has_all = true;
            for (uint32_t k = 0; k < i; k++) {
                if (!all[next].needed[k]) continue;
                has_all &= step_of[k] < AGENT_MAX_STEPS;
                if (step_of[k] < AGENT_MAX_STEPS) needs |= 1u << step_of[k];
            }
            if (has_all)
                ret->steps[ret->n++] = (agent_step){.kind = AGENT_STEP_CALL,
                    .text = copy_flat(r, all[next].from, all[next].to),
                    .needs = needs};
        }
    }
}

bool agent__find_calls(
    const char *path, const char *text, size_t n, const char *subject, const char *given, agent_steps *ret)
{
    found *all = base_xcalloc(AGENT_MAX_CALLS + 1, sizeof *all);
    reading *r = base_xcalloc(1, sizeof *r);
    r->is_python = base_ends_with(path, ".py");
    r->given = given;
    r->text = code_blank_comments(code_language(path, "", 0), text, n);
    r->n = strlen(r->text);
    *ret = (agent_steps){0};
    read_lines(r);
    if (r->n_lines) put_steps(r, all, find_all(r, subject, all), ret);
    free(r->text);
    free(r);
    free(all);
    return ret->n > 0;
}

static void step_free(agent_step *s)
{
    free(s->text);
    for (uint32_t i = 0; i < s->n_values; i++) free(s->values[i]);
    *s = (agent_step){0};
}

void agent__drop_useless(agent_steps *s)
{
    uint32_t needed = 0, to[AGENT_MAX_STEPS], n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->steps[i].kind == AGENT_STEP_CALL && s->steps[i].given) needed |= s->steps[i].needs | 1u << i;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!(needed >> i & 1)) {
            step_free(&s->steps[i]);
            continue;
        }
        to[i] = n;
        uint32_t needs = 0;
        for (uint32_t k = 0; k < i; k++)
            if (s->steps[i].needs >> k & 1) needs |= 1u << to[k];
        agent_step kept = s->steps[i];
        kept.needs = needs;
        s->steps[n++] = kept;
    }
    s->n = n;
}

void agent_steps_free(agent_steps *s)
{
    for (uint32_t i = 0; i < s->n; i++) step_free(&s->steps[i]);
    s->n = 0;
}
