/*
 * Small faults that are put into what a new test is of: a test that passes with all of them tests nothing. First an operator that
 * is turned, then a call at a chain's end that is left out, a denial, a number, a string: one of a kind before the second of one.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/operation/operation.h"
#include "base/mem.h"
#include "code/code.h"

/* What stands there, and what it becomes. */
typedef struct turn {
    const char *old, *new;
} turn;

static const turn operators[] = {{" == ", " != "}, {" != ", " == "}, {" === ", " !== "}, {" !== ", " === "},
    {" >= ", " < "}, {" <= ", " > "}, {" > ", " <= "}, {" < ", " >= "}, {" + ", " - "}, {" - ", " + "},
    {" and ", " or "}, {" or ", " and "}, {" && ", " || "}, {" || ", " && "}, {" % ", " + "}, {" * ", " + "},
    {" is not None", " is None"}, {" is None", " is not None"}, {" not in ", " in "}};
static const turn answers[] = {{"return True", "return False"}, {"return False", "return True"},
    {"return true", "return false"}, {"return false", "return true"}};
static const turn denials[] = {
    {"if not ", "if "}, {"(!", "("}, {"if !", "if "}, {"and not ", "and "}, {"return not ", "return "}};

/* The body as it is searched: comments are blank. */
typedef struct body {
    const char *plain;
    size_t from, to;
} body;

static bool add(agent_mutant *ret, size_t *n, size_t most, size_t at, size_t len, const char *text)
{
    for (size_t i = 0; i < *n; i++)
        if (at < ret[i].at + ret[i].n && ret[i].at < at + len) return false;
    if (*n == most) return false;
    ret[(*n)++] = (agent_mutant){at, len, base_xstrdup(text)};
    return true;
}

/* The first of the turns, of each the first place behind byte `from`, that is no mutant yet. */
static bool add_turn(
    const body *b, const turn *turns, size_t n_turns, agent_mutant *ret, size_t *n, size_t most)
{
    for (size_t i = 0; i < n_turns; i++) {
        const size_t len = strlen(turns[i].old);
        const char *at = b->plain + b->from, *end = b->plain + b->to;
        for (; (at = memmem(at, (size_t)(end - at), turns[i].old, len)); at += len)
            if (add(ret, n, most, (size_t)(at - b->plain), len, turns[i].new)) return true;
    }
    return false;
}

/* "strip(x).lower()" without ".lower()". */
static bool add_chain(const body *b, agent_mutant *ret, size_t *n, size_t most)
{
    for (size_t i = b->from; i + 1 < b->to; i++) {
        if (b->plain[i] != ')' || b->plain[i + 1] != '.') continue;
        size_t to = i + 2;
        while (to < b->to && code_is_name_byte(b->plain[to])) to++;
        if (to >= b->to || b->plain[to] != '(') continue;
        int depth = 0;
        do depth += (b->plain[to] == '(') - (b->plain[to] == ')');
        while (++to < b->to && depth);
        if (!depth && add(ret, n, most, i + 1, to - i - 1, "")) return true;
    }
    return false;
}

/* Another number, another string. */
static bool add_literal(const body *b, agent_mutant *ret, size_t *n, size_t most)
{
    for (size_t i = b->from + 1; i < b->to; i++) {
        const char c = b->plain[i];
        if (isdigit((unsigned char)c) && !code_is_name_byte(b->plain[i - 1]) && b->plain[i - 1] != '.') {
            size_t to = i;
            while (to < b->to && isdigit((unsigned char)b->plain[to])) to++;
            char digits[24];
            const char next = to < b->to ? b->plain[to] : ' ';
            if (code_is_name_byte(next) || next == '.' || to - i > 9) continue;
            snprintf(digits, sizeof digits, "%ld", strtol(b->plain + i, NULL, 10) + 1);
            if (add(ret, n, most, i, to - i, digits)) return true;
            i = to;
        }
        if (c != '"' && c != '\'') continue;
        size_t to = i + 1;
        while (to < b->to && b->plain[to] != c && b->plain[to] != '\n') to += 1 + (b->plain[to] == '\\');
        const bool is_string = to < b->to && b->plain[to] == c && to > i + 1;
        if (is_string && c == '"' && add(ret, n, most, i + 1, to - i - 1, "zz")) return true;
        if (is_string && c == '\'' && to > i + 2 && add(ret, n, most, i + 1, to - i - 1, "zz")) return true;
        i = to;
    }
    return false;
}

size_t agent__mutants(
    const char *language, const base_buf *text, size_t from, size_t to, agent_mutant *ret, size_t most)
{
    char *plain = code_blank_comments(language, text->data, text->len);
    const body b = {plain, from, to < text->len ? to : text->len};
    size_t n = 0;
    for (bool goes_on = true; goes_on && n < most;) { /* of each kind one more */
        goes_on = add_turn(&b, operators, sizeof operators / sizeof *operators, ret, &n, most);
        goes_on |= add_turn(&b, answers, sizeof answers / sizeof *answers, ret, &n, most);
        goes_on |= add_chain(&b, ret, &n, most);
        goes_on |= add_turn(&b, denials, sizeof denials / sizeof *denials, ret, &n, most);
        goes_on |= add_literal(&b, ret, &n, most);
    }
    free(plain);
    return n;
}

void agent__mutants_free(agent_mutant *all, size_t n)
{
    for (size_t i = 0; i < n; i++) free(all[i].text);
}

void agent__put_mutant(const base_buf *text, const agent_mutant *m, base_buf *out)
{
    base_buf_add(out, text->data, m->at);
    base_buf_puts(out, m->text);
    base_buf_add(out, text->data + m->at + m->n, text->len - m->at - m->n);
}

void agent__tell_mutant(const base_buf *text, const agent_mutant *m, base_buf *out)
{
    enum { MOST = 40 };
    if (*m->text)
        base_buf_printf(
            out, "\"%s\" for \"%.*s\"", m->text, (int)(m->n < MOST ? m->n : MOST), text->data + m->at);
    else
        base_buf_printf(out, "no \"%.*s\"", (int)(m->n < MOST ? m->n : MOST), text->data + m->at);
}
