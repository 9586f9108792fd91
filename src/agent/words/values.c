/*
 * Finding the values that a request gives (contract: values.h). A reader of operands (literals, and calls whose
 * arguments are operands), and a table of the words that stand between a call and what it should give. What is not
 * sure is left out: a wrong value would refuse a right change.
 */
#include "agent/words/values.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/words/request_words.h"
#include "base/mem.h"

enum { MAX_DEPTH = 6, MAX_OPERAND = 200 };

/* In a sentence an arrow or a quotation mark, which are no ASCII, may stand right beside a name. */
static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool begins_name(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$';
}

/* --- operands: each returns the byte behind it, or NULL ------------------------------------------------- */

static const char *take_operand(const char *p, int depth);

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

static const char *take_number(const char *p)
{
    if (*p == '-' || *p == '+') p++;
    if (!isdigit((unsigned char)*p)) return NULL;
    if (*p == '0' && (p[1] == 'x' || p[1] == 'X')) {
        p += 2;
        while (isxdigit((unsigned char)*p)) p++;
    } else {
        while (isdigit((unsigned char)*p) || (*p == '_' && isdigit((unsigned char)p[1]))) p++;
        if (*p == '.' && isdigit((unsigned char)p[1]))
            for (p++; isdigit((unsigned char)*p);) p++;
        if ((*p == 'e' || *p == 'E') &&
            (isdigit((unsigned char)p[1]) || (p[1] == '-' && isdigit((unsigned char)p[2]))))
            for (p += 2; isdigit((unsigned char)*p);) p++;
    }
    if (is_name_byte(*p) || *p == '%' || (*p == ',' && isdigit((unsigned char)p[1])) ||
        (strchr(".:/-", *p) && *p && isdigit((unsigned char)p[1])))
        return NULL; /* "-1st", "50%", "1,000", "1.2.3", "12:30" */
    return p;
}

static const char *take_string(const char *p)
{
    const char quote = *p;
    if (quote != '"' && quote != '\'') return NULL;
    for (const char *q = p + 1; *q && *q != '\n' && q - p < MAX_OPERAND; q++) {
        if (*q == '\\' && q[1] && q[1] != '\n')
            q++;
        else if (*q == quote)
            return is_name_byte(q[1]) ? NULL : q + 1;
    }
    return NULL;
}

static const char *take_word(const char *p, const char *word)
{
    const size_t n = strlen(word);
    return !strncmp(p, word, n) && !is_name_byte(p[n]) ? p + n : NULL;
}

static const char *const constants[] = {
    "true", "false", "True", "False", "None", "null", "nil", "NULL", "undefined", "NaN"};

/* "[1, 2]", "{'a': 1}", "(1, 'x')": behind the opening bracket, up to and with the closing one. */
static const char *take_items(const char *p, char close, int depth)
{
    for (p = skip_blanks(p); *p != close;) {
        p = take_operand(p, depth + 1);
        if (!p) return NULL;
        p = skip_blanks(p);
        if (*p == ':' || *p == '=') { /* a pair, a keyword's value */
            p = take_operand(skip_blanks(p + 1), depth + 1);
            if (!p) return NULL;
            p = skip_blanks(p);
        }
        if (*p == ',')
            p = skip_blanks(p + 1);
        else if (*p != close)
            return NULL;
    }
    return p + 1;
}

static const char *take_name(const char *p)
{
    if (!begins_name(*p)) return NULL;
    while (is_name_byte(*p)) p++;
    return p;
}

/* "f(1)", "new Option('-a').isBoolean()", "Cursor.UP(3)", "math.Pi" only with a call in it. */
static const char *take_call(const char *p, int depth)
{
    const char *from = p, *last = NULL;
    if (take_word(p, "new")) p = skip_blanks(p + 3);
    if (!(p = take_name(p))) return NULL;
    for (;;) {
        if (*p == '(') {
            if (!(p = take_items(p + 1, ')', depth))) break;
            last = p;
        } else if (*p == '[' && last) {
            if (!(p = take_items(p + 1, ']', depth))) break;
            last = p;
        } else if ((*p == '.' || (*p == ':' && p[1] == ':')) && begins_name(p[*p == '.' ? 1 : 2])) {
            p = take_name(p + (*p == '.' ? 1 : 2));
            if (last && *p != '(' && *p != '.') last = p; /* f(1).size */
        } else {
            break;
        }
    }
    return last && last - from < MAX_OPERAND ? last : NULL;
}

static const char *take_literal(const char *p, int depth)
{
    const char *end = NULL;
    if (depth > MAX_DEPTH) return NULL;
    if (*p == '&') p++;
    if ((end = take_number(p)) || (end = take_string(p))) return end;
    if ((*p == 'b' || *p == 'r' || *p == 'u') && (end = take_string(p + 1))) return end;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if ((end = take_word(p, constants[i]))) return end;
    if (*p == '[' && p[1] == ']' && begins_name(p[2])) { /* Go: []int{1, 2} */
        end = take_name(p + 2);
        return *end == '{' ? take_items(end + 1, '}', depth) : NULL;
    }
    if (!strncmp(p, "vec![", 5)) return take_items(p + 5, ']', depth);
    return *p == '['   ? take_items(p + 1, ']', depth)
           : *p == '{' ? take_items(p + 1, '}', depth)
           : *p == '(' ? take_items(p + 1, ')', depth)
                       : NULL;
}

const char *agent_value_literal(const char *p)
{
    return take_literal(p, 0);
}

static const char *take_operand(const char *p, int depth)
{
    if (depth > MAX_DEPTH) return NULL;
    const char *end = take_literal(p, depth), *name;
    if (end || (end = take_call(p, depth))) return end;
    /* A keyword of an argument: "indent=2". */
    if (depth && (name = take_name(p)) && *skip_blanks(name) == '=' && skip_blanks(name)[1] != '=')
        return name;
    return NULL;
}

/* --- words between -------------------------------------------------------------------------------------- */

typedef enum link_kind { NO_LINK, STATES, WANTS, RAISES } link_kind;

/* Longer ones first. "returns" states what is or what is to be; a correction behind it decides. */
static const struct {
    const char *words;
    link_kind kind;
} links[] = {
    {"should evaluate to", WANTS},
    {"should be equal to", WANTS},
    {"should return", WANTS},
    {"should give", WANTS},
    {"should yield", WANTS},
    {"should produce", WANTS},
    {"should become", WANTS},
    {"should equal", WANTS},
    {"should raise", RAISES},
    {"should throw", RAISES},
    {"should read", WANTS},
    {"should get", WANTS},
    {"should be", WANTS},
    {"must return", WANTS},
    {"must give", WANTS},
    {"must raise", RAISES},
    {"must throw", RAISES},
    {"must be", WANTS},
    {"has to return", WANTS},
    {"has to give", WANTS},
    {"has to be", WANTS},
    {"would be", WANTS},
    {"evaluates to", STATES},
    {"returns", STATES},
    {"gives", STATES},
    {"yields", STATES},
    {"produces", STATES},
    {"becomes", STATES},
    {"equals", STATES},
    {"raises", RAISES},
    {"throws", RAISES},
    {"return", STATES},
    {"give", STATES},
    {"is", STATES},
    {"are", STATES},
    {"->", WANTS},
    {"=>", WANTS},
    {"==", WANTS},
    {"\xe2\x86\x92", WANTS},
    {"# =>", WANTS},
    {"// =>", WANTS},
    {"# ->", WANTS},
    {"// ->", WANTS},
    {"=", WANTS},
};

/* Marks of quoting around a piece of code, and one line's end. */
static const char *skip_marks(const char *p)
{
    p += strspn(p, " \t`*");
    if (*p == '\n' && p[1] != '\n') p += 1 + strspn(p + 1, " \t`*");
    return p;
}

/* The words, in any case of letters, as whole words; behind them or NULL. */
static const char *take_words(const char *p, const char *words)
{
    const size_t n = strlen(words);
    if (strncasecmp(p, words, n) != 0 || (is_name_byte(words[n - 1]) && is_name_byte(p[n]))) return NULL;
    return p + n;
}

static const char *take_link(const char *p, link_kind *kind)
{
    const char *end;
    p = skip_marks(p);
    *kind = NO_LINK;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if ((end = take_words(p, links[i].words))) {
            if (!is_name_byte(links[i].words[0]) && (*end == '=' || *end == '>')) continue; /* "===", "==>" */
            *kind = links[i].kind;
            return end;
        }
    return NULL;
}

static const char *skip_any(const char *p, const char *const *words, size_t n)
{
    for (bool moved = true; moved;) {
        moved = false;
        p = skip_marks(p);
        for (size_t i = 0; i < n && !moved; i++) {
            const char *end = take_words(p, words[i]);
            if (end && (*end == ' ' || *end == '\n')) {
                p = end;
                moved = true;
            }
        }
    }
    return p;
}

/* "an empty list" in the form of the literal; NULL: it is none. */
static const char *take_empty(const char *p, const char **ret)
{
    static const struct {
        const char *word, *literal;
    } kinds[] = {{"string", "\"\""}, {"text", "\"\""}, {"list", "[]"}, {"array", "[]"}, {"slice", "[]"},
        {"dictionary", "{}"}, {"dict", "{}"}, {"object", "{}"}, {"map", "{}"}, {"tuple", "()"}};
    const char *end = take_words(p, "empty");
    if (!end) return NULL;
    end = skip_blanks(end);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (take_words(end, kinds[i].word)) {
            *ret = kinds[i].literal;
            return end + strlen(kinds[i].word);
        }
    return NULL;
}

/* A word that is no literal and no English: it has a digit. "-1st", "50%", "834,142.32". */
static const char *take_plain(const char *p)
{
    const char *end = p;
    bool has_digit = false;
    for (; *end && !isspace((unsigned char)*end) && !strchr("`;\"'()[]{}", *end); end++)
        has_digit |= isdigit((unsigned char)*end) != 0;
    while (end > p && strchr(".,:!?", end[-1])) end--;
    return has_digit && end > p && end - p < 40 ? end : NULL;
}

/* What follows a value shows that it was the whole of it: "is 5 less than" gives none. */
static bool ends_value(const char *p)
{
    static const char *const going_on[] = {"and", "but", "or", "instead", "rather", "not", "for", "when",
        "where", "while", "because", "since", "as", "given", "with", "on", "if", "again", "too", "now", "it",
        "which", "whereas", "like"};
    p += strspn(p, "`*");
    if (!*p || strchr(".,;:!?)\n", *p)) return true;
    p = skip_blanks(p);
    if (!*p || strchr("\n(-/#", *p)) return true;
    for (size_t i = 0; i < sizeof going_on / sizeof *going_on; i++)
        if (take_words(p, going_on[i])) return true;
    return false;
}

/* --- what is wanted ------------------------------------------------------------------------------------- */

typedef struct wanted {
    char *text;
    bool is_plain, raises;
} wanted;

static const char *const fillers[] = {"exactly", "just", "only", "now", "then", "the", "a", "an", "string",
    "number", "value", "integer", "text", "boolean", "equal to", "again"};

/* Behind the value, or NULL. */
static const char *take_value(const char *p, wanted *ret)
{
    const char *literal = NULL, *end;
    p = skip_any(p, fillers, sizeof fillers / sizeof *fillers);
    *ret = (wanted){0};
    if ((end = take_empty(p, &literal))) {
        ret->text = base_xstrdup(literal);
    } else if ((end = take_literal(p, 0)) || (isupper((unsigned char)*p) && (end = take_call(p, 0)))) {
        ret->text = base_xstrndup(p, (size_t)(end - p));
    } else if ((end = take_plain(p))) {
        ret->text = base_xstrndup(p, (size_t)(end - p));
        ret->is_plain = true;
    }
    if (end && !ends_value(end)) {
        free(ret->text);
        *ret = (wanted){0};
        return NULL;
    }
    return end;
}

/* "a ValueError", "an Error", "an error". */
static const char *take_error(const char *p, wanted *ret)
{
    static const char *const articles[] = {"a", "an", "the"};
    p = skip_any(p, articles, sizeof articles / sizeof *articles);
    const char *end = take_name(p);
    *ret = (wanted){0};
    if (!end) return NULL;
    const size_t n = (size_t)(end - p);
    const bool is_named = isupper((unsigned char)*p);
    if (!is_named && !(n == 5 && !strncasecmp(p, "error", 5)) && !(n == 9 && !strncasecmp(p, "exception", 9)))
        return NULL;
    *ret = (wanted){.text = is_named ? base_xstrndup(p, n) : base_xstrdup(""), .raises = true};
    return end;
}

/* "f(1) gives 2. ..., so that it gives 3": behind a stated value, in a later part, what it is to be. */
static const char *take_aim(const char *p, link_kind kind, wanted *ret)
{
    enum { FAR = 300 };
    static const char words[] = "so that it ";
    const char *aim = kind == STATES ? strcasestr(p, words) : NULL, *end = NULL;
    link_kind next = NO_LINK;
    if (aim && aim - p < FAR) end = take_link(aim + strlen(words), &next);
    return end && next != RAISES ? take_value(end, ret) : NULL;
}

/* "f(1) gives 2. It should give 3.": what stands in front was wrong, also where no value follows (*doubt: then). */
static const char *take_next_sentence(const char *p, wanted *ret, bool *doubt)
{
    static const char *const subjects[] = {"it", "that", "this", "they"};
    static const char *const modal[] = {"should", "must", "has to", "have to", "ought to"};
    link_kind kind = NO_LINK;
    const char *q = skip_any(p, subjects, sizeof subjects / sizeof *subjects), *end = take_link(q, &kind);
    for (size_t i = 0; q > p && i < sizeof modal / sizeof *modal; i++)
        *doubt |= take_words(q, modal[i]) != NULL;
    if (!*doubt || !end || kind != WANTS) return NULL;
    end = take_value(end, ret);
    *doubt = !end;
    return end;
}

/*
 * ", it should be 6", "instead of 6", "but must give 6", "where 6 is expected" behind a stated value. A stated one that
 * "instead of" or "not" follows is what is wrong today; which of two is, "not" does not say. *doubt: then.
 */
static const char *take_correction(const char *p, link_kind kind, wanted *ret, bool *doubt)
{
    static const char *const between[] = {"but", "and", "it", "this", "that", "which", "while", "where"};
    static const char *const expects[] = {"expected", "expecting", "i expect", "i expected", "we expect"};
    const char *end;
    link_kind next = NO_LINK;
    *doubt = false;
    p += strspn(p, "`*");
    const bool is_next = kind == STATES && *p == '.' && isspace((unsigned char)p[1]); /* the next sentence */
    if (is_next || *p == ',' || *p == ';' || *p == '(') p++;
    p = skip_marks(p);
    if (is_next) return (end = take_aim(p, kind, ret)) ? end : take_next_sentence(p, ret, doubt);
    if ((end = take_words(p, "instead of")) || (end = take_words(p, "rather than"))) {
        wanted other;
        if (kind != STATES) return NULL; /* should be 6 instead of 4: the first one */
        end = take_value(end, &other);
        *doubt = !end;
        if (end) *ret = other;
        return end;
    }
    if ((end = take_aim(p, kind, ret))) return end;
    if (take_words(p, "not")) {
        *doubt = kind == STATES;
        return NULL;
    }
    const char *q = skip_any(p, between, sizeof between / sizeof *between);
    if ((end = take_link(q, &next)) && next == WANTS && isalpha((unsigned char)*skip_marks(q)))
        return take_value(end, ret);
    for (size_t i = 0; i < sizeof expects / sizeof *expects; i++)
        if ((end = take_words(q, expects[i]))) return take_value(end, ret);
    return NULL;
}

/* The clause in front of the call says that it tells what is wrong now. */
static bool tells_of_today(const char *request, const char *at)
{
    static const char *const words[] = {"currently", "today", "at the moment", "at present", "wrongly",
        "incorrectly", "right now", "so far", "until now", "used to"};
    const char *from = at;
    while (from > request && !strchr(".;\n", from[-1])) from--;
    for (; from < at; from++)
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (take_words(from, words[i])) return true;
    return false;
}

/* "f(1) gives 2, although ...", "f(1) gives 2. That isn't even": what is said behind a stated value calls it wrong. */
static bool is_called_wrong(const char *p)
{
    static const char *const phrases[] = {"is wrong", "that's wrong", "isn't", "is not", "aren't", "are not",
        "shouldn't", "should not", "mustn't", "must not", "although", "even though", "nonsense", "a bug",
        "incorrect", NULL};
    return agent__has_any_word(p, phrases);
}

/* --- the values ----------------------------------------------------------------------------------------- */

typedef struct finding {
    const char *request;
    agent_value *values;
    uint32_t n;
} finding;

static void add(finding *f, const char *left, size_t n, bool is_call, const wanted *w)
{
    if (f->n == AGENT_MAX_VALUES || n >= MAX_OPERAND) return;
    char *copy = base_xstrndup(left, n);
    for (uint32_t i = 0; i < f->n; i++)
        if (!strcmp(f->values[i].left,
                copy)) { /* the later one says it better, or they contradict: the first stays */
            free(copy);
            return;
        }
    f->values[f->n++] = (agent_value){.left = copy,
        .wanted = base_xstrdup(w->text),
        .is_call = is_call,
        .is_plain = w->is_plain,
        .raises = w->raises};
}

/* What stands in front of an argument that follows what is wanted; behind it, or NULL. */
static const char *take_giving(const char *p)
{
    static const char *const before[] = {
        "for input", "for", "when given", "when called with", "when passed", "given", "on input"};
    const char *end = NULL;
    for (size_t i = 0; i < sizeof before / sizeof *before && !end; i++) end = take_words(p, before[i]);
    return end;
}

/*
 * "W for an empty list", "W for 'a' and 'b'", "W when given -1", "V for 0, W for 1": arguments of `name`, "" for the one that is
 * written.
 */
static const char *take_arguments(finding *f, const char *p, const char *name, size_t name_n, const wanted *w)
{
    static const char *const what[] = {"the", "an", "a", "input", "value", "string", "number", "argument"};
    const char *end = NULL, *literal, *behind = NULL;
    end = take_giving(skip_marks(p));
    while (end) {
        base_buf left = {0};
        p = skip_any(end, what, sizeof what / sizeof *what);
        literal = NULL;
        end = take_empty(p, &literal);
        if (!end) end = take_operand(p, 0);
        if (behind && end && take_giving(skip_marks(end))) { /* what is wanted for another */
            wanted next = {0};
            const char *value = take_value(p, &next),
                       *more = value ? take_arguments(f, value, name, name_n, &next) : NULL;
            free(next.text);
            return more ? more : behind;
        }
        if (!end || !ends_value(end)) break;
        if (name_n) base_buf_printf(&left, "%.*s(", (int)name_n, name);
        if (literal)
            base_buf_puts(&left, literal);
        else
            base_buf_add(&left, p, (size_t)(end - p));
        if (name_n) base_buf_putc(&left, ')');
        add(f, left.data, left.len, name_n > 0, w);
        base_buf_free(&left);
        behind = end;
        p = skip_marks(end);
        if (*p == ',') p = skip_marks(p + 1);
        end = take_words(p, "and");
        if (!end) end = take_words(p, "or");
        if (!end && p > behind && p[-1] == ' ' && *skip_marks(behind) == ',') end = p;
    }
    return behind;
}

/* The link and what is wanted behind an operand; behind it, or NULL. */
static const char *take_rest(const char *from, const char *at, bool is_call, const char *request, wanted *w)
{
    static const char *const adverbs[] = {"now", "then", "always", "still", "also", "currently"};
    link_kind kind;
    const char *p = skip_any(at, adverbs, sizeof adverbs / sizeof *adverbs);
    const bool is_today = tells_of_today(request, p);
    const char *end = take_link(p, &kind);
    bool doubt = false;
    *w = (wanted){0};
    if (!end) return NULL;
    if (kind == RAISES) return is_today ? NULL : take_error(end, w);
    if (!is_call && *skip_marks(p) == '=' && skip_marks(p)[1] != '>' && skip_marks(p)[1] != '=')
        return NULL; /* UNDERLINE = 4 */
    const char *value = take_value(end, w);
    if (!value) return take_aim(end, kind, w);
    end = value;
    wanted better = {0};
    const char *corrected = take_correction(end, kind, &better, &doubt);
    if (corrected && better.text) {
        free(w->text);
        *w = better;
        return corrected;
    }
    if (doubt || (kind == STATES && (is_today || is_called_wrong(end)))) {
        free(w->text);
        *w = (wanted){0};
        return NULL;
    }
    return end;
}

static bool is_code_name(const char *request, const char *p, size_t n)
{
    bool is_code = p > request && p[-1] == '`';
    for (size_t i = 0; i < n; i++)
        is_code |= p[i] == '_' || (i && isupper((unsigned char)p[i]) && islower((unsigned char)p[i - 1]));
    return is_code;
}

/* ">>> f(3)" and on the next line "6". */
static const char *take_doctest(finding *f, const char *p)
{
    if (strncmp(p, ">>> ", 4) != 0) return NULL;
    const char *from = skip_blanks(p + 4), *end = take_call(from, 0), *line = strchr(from, '\n');
    if (!end || !line || skip_blanks(end) != line) return NULL;
    const char *value = skip_blanks(line + 1), *to = take_literal(value, 0);
    if (!strncmp(value, ">>>", 3) || !to ||
        (*skip_blanks(to) && *skip_blanks(to) != '\n' && *skip_blanks(to) != '`'))
        return NULL;
    wanted w = {.text = base_xstrndup(value, (size_t)(to - value))};
    add(f, from, (size_t)(end - from), true, &w);
    free(w.text);
    return to;
}

/* An argument alone stands where a clause begins: in "a whole of 0 gives" it is part of another. */
static bool begins_clause(const char *request, const char *p)
{
    static const char *const before[] = {"and", "so", "that", "example", "like", "input", "e.g.", "i.e."};
    while (p > request && strchr(" \t`*", p[-1])) p--;
    if (p == request || strchr(".,:;(-\n", p[-1])) return true;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const size_t n = strlen(before[i]);
        if ((size_t)(p - request) >= n && !strncasecmp(p - n, before[i], n) &&
            ((size_t)(p - request) == n || !is_name_byte(p[-(ptrdiff_t)n - 1])))
            return true;
    }
    const char *word = p; /* "Parsing '1k' gives 1000" */
    while (word > request && is_name_byte(word[-1])) word--;
    const bool is_doing = p - word > 4 && !strncasecmp(p - 3, "ing", 3);
    while (word > request && strchr(" \t`*", word[-1])) word--;
    return is_doing && (word == request || strchr(".,:;(\n", word[-1]));
}

/* An operand with what it should give; behind that, or NULL. */
static const char *take_pair(finding *f, const char *p)
{
    const bool may_call = begins_name(*p);
    const char *end = may_call ? take_call(p, 0) : NULL, *rest;
    const bool is_call = end != NULL;
    if (!end && begins_clause(f->request, p)) end = take_literal(p, 0);
    wanted w = {0};
    if (!end || !(rest = take_rest(p, end, is_call, f->request, &w))) return NULL;
    const bool is_open = is_call && end[-1] == ')' && end[-2] == '(';
    const char *more = is_open ? take_arguments(f, rest, p, (size_t)(end - 2 - p), &w) : NULL;
    if (!more) add(f, p, (size_t)(end - p), is_call, &w);
    free(w.text);
    return more ? more : rest;
}

/* "parse should return [] for an empty list", "it gives 0 for -1". */
static const char *take_sentence(finding *f, const char *p)
{
    const char *end = take_name(p), *rest;
    wanted w = {0};
    if (!end || *end == '(' || !(rest = take_rest(p, end, true, f->request, &w))) return NULL;
    const size_t n = is_code_name(f->request, p, (size_t)(end - p)) ? (size_t)(end - p) : 0;
    const char *behind = take_arguments(f, rest, p, n, &w);
    free(w.text);
    return behind;
}

/* "For an empty list it should return []". */
static const char *take_turned(finding *f, const char *p)
{
    static const char *const what[] = {"the", "an", "a", "input", "value", "string", "number", "argument"};
    const char *end = take_words(p, "for"), *literal = NULL, *rest;
    if (!end) end = take_words(p, "given");
    if (!end) return NULL;
    const char *from = skip_any(end, what, sizeof what / sizeof *what);
    if (!(end = take_empty(from, &literal)) && !(end = take_literal(from, 0))) return NULL;
    const char *next = skip_marks(end);
    if (*next == ',') next = skip_marks(next + 1);
    const char *name = next, *name_end = take_name(next);
    wanted w = {0};
    if (!name_end) return NULL;
    if (name_end[0] == '(' && name_end[1] == ')') name_end += 2;
    if (!(rest = take_rest(name, name_end, true, f->request, &w))) return NULL;
    base_buf left = {0};
    const bool is_open = name_end[-1] == ')';
    const size_t n = (size_t)(name_end - name) - (is_open ? 2 : 0);
    const bool is_call = is_open || is_code_name(f->request, name, n);
    if (is_call) base_buf_printf(&left, "%.*s(", (int)n, name);
    if (literal)
        base_buf_puts(&left, literal);
    else
        base_buf_add(&left, from, (size_t)(end - from));
    if (is_call) base_buf_putc(&left, ')');
    add(f, left.data, left.len, is_call, &w);
    base_buf_free(&left);
    free(w.text);
    return rest;
}

uint32_t agent_values_find(const char *request, agent_value ret[AGENT_MAX_VALUES])
{
    finding f = {request, ret, 0};
    for (const char *p = request; *p && f.n < AGENT_MAX_VALUES;) {
        const bool starts = p == request || !is_name_byte(p[-1]);
        const char *end = NULL;
        if (starts && (p == request || (p[-1] != '.' && p[-1] != '-'))) {
            end = take_doctest(&f, p);
            if (!end) end = take_turned(&f, p);
            if (!end) end = take_pair(&f, p);
            if (!end) end = take_sentence(&f, p);
        }
        p = end && end > p ? end : p + 1;
    }
    return f.n;
}

void agent_values_free(agent_value *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(values[i].left);
        free(values[i].wanted);
        values[i] = (agent_value){0};
    }
}
