/*
 * Small faults that are put into what a new test is of: a test that passes with all of them tests nothing. First an operator that
 * is turned, then an error that is given back and not raised, a call at a chain's end that is left out, a denial, a number, a string, a branch that is never taken, a statement that is left out: one of a kind
 * before the second of one. A body that has nothing of these ends the program as it begins: a test that passes with that never gets
 * there. Where the request's words are those of one line more than of others ("when the index is
 * negative", "index < 0"), the faults of that line come first, and the test has to notice one of those.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/newtest/newtest.h"
#include "agent/words/request_words.h"
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
static const turn raises[] = {{"raise ", "return "}, {"throw ", "return "}};
static const turn denials[] = {
    {"if not ", "if "}, {"(!", "("}, {"if !", "if "}, {"and not ", "and "}, {"return not ", "return "}};

/* What a word of a request looks like in code. */
static const turn looks[] = {{"negative", "< 0"}, {"negative", "<0"}, {"empty", "!"}, {"empty", "not "},
    {"empty", "== 0"}, {"empty", "len("}, {"empty", "empty"}, {"NULL", "NULL"}, {"NULL", "!"},
    {"None", "None"}, {"nil", "nil"}, {"null", "null"}, {"zero", "0"}, {"case", "ower"}, {"case", "pper"},
    {"lower", "ower"}, {"upper", "pper"}, {"semicolon", ";"}, {"comma", "','"}, {"comma", "\",\""},
    {"colon", "':'"}, {"colon", "\":\""}, {"slash", "'/'"}, {"slash", "\"/\""}, {"dot", "'.'"},
    {"dot", "\".\""}, {"dash", "'-'"}, {"dash", "\"-\""}, {"hyphen", "'-'"}, {"hyphen", "\"-\""},
    {"underscore", "'_'"}, {"underscore", "\"_\""}, {"padding", "="}, {"space", "strip"}, {"space", "trim"},
    {"whitespace", "strip"}, {"whitespace", "trim"}, {"invalid", "raise "}, {"invalid", "throw "},
    {"malformed", "raise "}, {"malformed", "throw "}, {"raises", "raise "}, {"throws", "throw "},
    {"error", "raise "}, {"error", "throw "}};

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
    ret[(*n)++] = (agent_mutant){.at = at, .n = len, .text = base_xstrdup(text)};
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

/* Does byte `at` stand in the words of an error or of what is printed, which few tests read? */
static bool is_message(const body *b, size_t at)
{
    static const char *const ends[] = {
        "Error", "Exception", "Errorf", "errors.New", "panic", "warn", "print", "printf", "log"};
    int depth = 0;
    for (size_t i = at; i-- > b->from;) {
        depth += (b->plain[i] == ')') - (b->plain[i] == '(');
        if (depth >= 0 || b->plain[i] != '(') continue;
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
            const size_t n = strlen(ends[k]);
            if (i >= b->from + n && !memcmp(b->plain + i - n, ends[k], n)) return true;
        }
        depth = 0;
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
        const bool is_string = to < b->to && b->plain[to] == c && to > i + 1 && !is_message(b, i);
        if (is_string && c == '"' && add(ret, n, most, i + 1, to - i - 1, "zz")) return true;
        if (is_string && c == '\'' && to > i + 2 && add(ret, n, most, i + 1, to - i - 1, "zz")) return true;
        i = to;
    }
    return false;
}

/* The condition that stands behind "if" at byte `at`: [*ret_from, *ret_to). false: it has none that ends on its line. */
static bool read_condition(const body *b, size_t at, size_t *ret_from, size_t *ret_to)
{
    size_t from = at, end = at;
    while (end < b->to && b->plain[end] != '\n') end++;
    while (end > at && isspace((unsigned char)b->plain[end - 1])) end--;
    while (from < end && b->plain[from] == ' ') from++;
    size_t to = end;
    if (from < end && b->plain[from] == '(') { /* C, JavaScript, Java: what stands in the parentheses */
        int depth = 0;
        to = from++;
        do depth += (b->plain[to] == '(') - (b->plain[to] == ')');
        while (++to < end && depth);
        if (depth) return false;
        to--;
        /* Python and others may go on behind them. */
        if (to + 1 < end && (b->plain[end - 1] == ':' || !strchr(" {", b->plain[to + 1]))) return false;
    } else if (from < end && strchr(":{", b->plain[end - 1])) {
        to = end - 1;
        while (to > from && b->plain[to - 1] == ' ') to--;
    } else {
        return false;
    }
    *ret_from = from;
    *ret_to = to;
    return to > from && !memchr(b->plain + from, ';', to - from) &&
           !memmem(b->plain + from, to - from, "let ", 4) && !memmem(b->plain + from, to - from, ":=", 2);
}

/* A branch that is never taken. */
static bool add_branch(const body *b, bool is_python, agent_mutant *ret, size_t *n, size_t most)
{
    for (size_t i = b->from; i + 3 < b->to; i++) {
        size_t from, to;
        if (memcmp(b->plain + i, "if", 2) != 0 || !strchr(" (", b->plain[i + 2]) ||
            (i > b->from && code_is_name_byte(b->plain[i - 1]) && memcmp(b->plain + i - 2, "elif", 4) != 0) ||
            !read_condition(b, i + 2, &from, &to))
            continue;
        base_buf never = {0};
        base_buf_printf(
            &never, "%s (%.*s)", is_python ? "False and" : "false &&", (int)(to - from), b->plain + from);
        const bool is_added = add(ret, n, most, from, to - from, never.data);
        base_buf_free(&never);
        if (is_added) return true;
    }
    return false;
}

/* What a test cannot see of a program that goes on: memory, files, locks, messages. */
static bool is_unseen(const char *name, size_t n)
{
    static const char *const parts[] = {"free", "close", "log", "warn", "print", "assert", "lock", "del",
        "destroy", "release", "exit", "abort", "va_", "debug", "trace"};
    bool is = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !is; i++) {
        const size_t len = strlen(parts[i]);
        for (size_t k = 0; k + len <= n && !is; k++) is = !strncasecmp(name + k, parts[i], len);
    }
    return is;
}

/*
 * Line [from, to) is a whole statement that changes something beside its own variables: a call, or what is set behind an object, a
 * pointer or an index.
 */
static bool is_statement(const body *b, size_t from, size_t to, bool ends_plain)
{
    size_t name = from + strspn(b->plain + from, "*"), end = name, object = 0;
    int depth = 0;
    if (to > from && b->plain[to - 1] == ';')
        to--;
    else if (!ends_plain)
        return false;
    if (!code_is_name_byte(b->plain[name])) return false;
    for (; end < to && (code_is_name_byte(b->plain[end]) || strchr(".[]->:", b->plain[end])); end++)
        if (!code_is_name_byte(b->plain[end])) object = end;
    if (code_is_keyword(b->plain + name, end - name) || is_unseen(b->plain + name, end - name)) return false;
    for (size_t i = from; i < to; i++) depth += !!strchr("([{", b->plain[i]) - !!strchr(")]}", b->plain[i]);
    if (depth || end >= to) return false;
    if (b->plain[end] == '(') return b->plain[to - 1] == ')' && !memchr(b->plain + end, '{', to - end);
    end += strspn(b->plain + end, " ");
    const bool is_set = b->plain[end] == '=' || (strchr("+-*/|&", b->plain[end]) && b->plain[end + 1] == '=');
    return is_set && b->plain[end + 1 + (b->plain[end] != '=')] != '=' && (object || name > from);
}

/* A statement is left out. */
static bool add_omission(const body *b, const char *language, agent_mutant *ret, size_t *n, size_t most)
{
    const bool is_python = language && !strcmp(language, "python"),
               is_go = language && !strcmp(language, "go");
    for (size_t line = b->from, end; line < b->to; line = end + 1) {
        const char *newline = memchr(b->plain + line, '\n', b->to - line);
        end = newline ? (size_t)(newline - b->plain) : b->to;
        size_t from = line, to = end;
        while (from < to && isspace((unsigned char)b->plain[from])) from++;
        while (to > from && isspace((unsigned char)b->plain[to - 1])) to--;
        if ((line > b->from || is_python) && from < to && is_statement(b, from, to, is_python || is_go) &&
            add(ret, n, most, from, to - from,
                is_python ? "pass"
                : is_go   ? ""
                          : ";"))
            return true;
    }
    return false;
}

/* What ends the program; it stands in front of what the body begins with. */
static const turn ends[] = {{"python", "raise AssertionError(\"broken\")"},
    {"javascript", "throw new Error(\"broken\");"}, {"typescript", "throw new Error(\"broken\");"},
    {"go", "panic(\"broken\")"}, {"rust", "panic!(\"broken\");"},
    {"java", "if (true) throw new AssertionError(\"broken\");"}, {"c", "__builtin_trap();"},
    {"cpp", "__builtin_trap();"}};

/* Nothing of it is done at all. */
static void add_end(const body *b, const char *language, agent_mutant *ret, size_t *n, size_t most)
{
    size_t at = b->from, line = b->from;
    base_buf text = {0};
    for (size_t i = 0; language && i < sizeof ends / sizeof *ends; i++)
        if (!strcmp(language, ends[i].old)) base_buf_puts(&text, ends[i].new);
    const bool is_python = text.len && !strcmp(language, "python");
    if (is_python) { /* at the indent of what stands there */
        while (line && b->plain[line - 1] != '\n') line--;
        base_buf_printf(&text, "\n%.*s", (int)strspn(b->plain + line, " \t"), b->plain + line);
    } else {
        while (at < b->to && b->plain[at] != '{') at++;
        at++;
    }
    if (text.len && at < b->to) add(ret, n, most, at, 0, text.data);
    base_buf_free(&text);
}

/* --- which of them the request is about -------------------------------------------------------------------- */

static bool line_says(const char *line, size_t len, const char *word, size_t n)
{
    for (size_t i = 0, to; i < len; i = to) {
        while (i < len && !isalpha((unsigned char)line[i])) i++;
        for (to = i + 1; to < len && isalpha((unsigned char)line[to]) && !isupper((unsigned char)line[to]);)
            to++;
        if (i < len && agent__says_part(word, n, line + i, to - i)) return true;
    }
    return false;
}

/* How much the request is about the line that the fault is in, with the one behind it where it opens a block. */
static unsigned aim_of(const char *plain, size_t len, const agent_mutant *m, const char *about)
{
    enum { LOOK = 2 };
    size_t from = m->at, to = m->at;
    while (from && plain[from - 1] != '\n') from--;
    while (to < len && plain[to] != '\n') to++;
    if (to > from && strchr(":{", plain[to - 1]))
        for (to++; to < len && plain[to] != '\n';) to++;
    if (to > len) to = len;
    unsigned sum = 0;
    agent_word w = {0};
    while (agent__next_word(about, w.to, &w)) {
        if (agent__is_content_word(about + w.from, w.to - w.from))
            sum += line_says(plain + from, to - from, about + w.from, w.to - w.from);
        unsigned seen = 0;
        for (size_t i = 0; i < sizeof looks / sizeof *looks && !seen; i++) {
            if (!agent__says_part(about + w.from, w.to - w.from, looks[i].old, strlen(looks[i].old)))
                continue;
            const char *at = memmem(plain + from, to - from, looks[i].new, strlen(looks[i].new));
            const size_t place = at ? (size_t)(at - plain) : 0;
            const bool is_in_it = at && m->at <= place && place < m->at + m->n;
            seen = at ? LOOK + is_in_it : 0;
        }
        sum += seen;
    }
    return sum;
}

/* Those that the request is most about first, marked where they are fewer than all. */
static void aim(const char *plain, size_t len, const char *about, agent_mutant *all, size_t n)
{
    enum { LEAST = 2 };
    unsigned most = 0, least = UINT_MAX;
    for (size_t i = 0; i < n; i++) {
        all[i].aim = aim_of(plain, len, &all[i], about);
        most = all[i].aim > most ? all[i].aim : most;
        least = all[i].aim < least ? all[i].aim : least;
    }
    for (size_t i = 1; i < n; i++) /* a stable order: there are few */
        for (size_t k = i; k && all[k].aim > all[k - 1].aim; k--) {
            const agent_mutant swapped = all[k];
            all[k] = all[k - 1];
            all[k - 1] = swapped;
        }
    for (size_t i = 0; i < n; i++) all[i].is_aimed = most >= LEAST && least < most && all[i].aim == most;
}

size_t agent__mutants(const char *language, const base_buf *text, size_t from, size_t to, const char *about,
    agent_mutant *all, size_t most)
{
    enum { POOL = 32 };
    agent_mutant ret[POOL];
    char *plain = code_blank_comments(language, text->data, text->len);
    const body b = {plain, from, to < text->len ? to : text->len};
    const bool is_python = language && !strcmp(language, "python");
    const size_t wanted = most;
    size_t n = 0;
    if (about || most > POOL) most = POOL;
    for (bool goes_on = true; goes_on && n < most;) { /* of each kind one more */
        goes_on = add_turn(&b, operators, sizeof operators / sizeof *operators, ret, &n, most);
        goes_on |= add_turn(&b, answers, sizeof answers / sizeof *answers, ret, &n, most);
        goes_on |= add_turn(&b, raises, sizeof raises / sizeof *raises, ret, &n, most);
        goes_on |= add_chain(&b, ret, &n, most);
        goes_on |= add_turn(&b, denials, sizeof denials / sizeof *denials, ret, &n, most);
        goes_on |= add_literal(&b, ret, &n, most);
        goes_on |= add_branch(&b, is_python, ret, &n, most);
        goes_on |= add_omission(&b, language, ret, &n, most);
    }
    if (!n) add_end(&b, language, ret, &n, most);
    if (about) aim(plain, text->len, about, ret, n);
    for (size_t i = wanted; i < n; i++) free(ret[i].text);
    if (n > wanted) n = wanted;
    memcpy(all, ret, n * sizeof *ret);
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
    if (!m->n)
        base_buf_printf(out, "\"%.*s\"", (int)strcspn(m->text, "\n"), m->text);
    else if (*m->text && strcmp(m->text, ";") != 0 && strcmp(m->text, "pass") != 0)
        base_buf_printf(
            out, "\"%s\" for \"%.*s\"", m->text, (int)(m->n < MOST ? m->n : MOST), text->data + m->at);
    else
        base_buf_printf(out, "no \"%.*s\"", (int)(m->n < MOST ? m->n : MOST), text->data + m->at);
}
