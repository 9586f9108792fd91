/*
 * The reading of a file without a grammar: strings and comments are blanked out, brackets are paired, then
 * lines that look like a definition become one (a keyword and a name, or name(...) {), identifier( is a call,
 * keywords are control and return, a single = assigns. Documents give their headings as sections. Coarse,
 * never wrong about bytes, linear in the file.
 *
 * Called by code_parse for languages without a grammar, large or minified files, and builds without
 * tree-sitter.
 */
#include "code/internal.h"

#include <stdlib.h>
#include <string.h>

#include "code/inactive.h"

/* Where the pair of a bracket is. */
typedef struct pair {
    uint32_t open, close;
} pair;

typedef struct lexer {
    const char *text;
    char *code; /* the text with strings and comments blanked, same offsets */
    size_t n;
    pair *pairs; /* ascending by open */
    size_t n_pairs, cap_pairs;
    bool hash_comments, indents, c_like;
    bool has_decorators; /* @name above a definition belongs to it */
    bool keep_strings;   /* but docstrings */
    code_builder b;
} lexer;

/* clang-format off */
typedef struct word_row { const char *word, *what; } word_row;
static const word_row definers[] = {
    {"def", "function"}, {"fn", "function"}, {"func", "function"}, {"function", "function"}, {"fun", "function"},
    {"sub", "function"}, {"proc", "function"}, {"defp", "function"}, {"class", "class"}, {"struct", "struct"},
    {"union", "union"}, {"enum", "enum"}, {"interface", "interface"}, {"trait", "interface"}, {"protocol", "interface"},
    {"module", "module"}, {"defmodule", "module"}, {"object", "class"}, {"record", "class"}, {"type", "type"},
    {"macro_rules", "macro"},
};
static const char *const modifiers[] = {
    "pub", "export", "default", "async", "static", "public", "private", "protected", "internal", "abstract", "final",
    "override", "unsafe", "extern", "const", "inline", "virtual", "sealed", "partial", "local", "open", "data", "typedef", "crate",
};
static const char *const controls[] = {
    "if", "while", "for", "switch", "match", "case", "catch", "except", "elif", "elsif", "unless", "until", "foreach", "when", "with",
};
static const char *const returns[] = {"return", "throw", "raise", "yield", "goto", "break", "continue"};
static const char *const hash_languages[] = {
    "python", "ruby", "bash", "perl", "r", "yaml", "toml", "make", "cmake", "dockerfile", "elixir", "julia", "meson",
};
static const char *const indent_languages[] = {"python", "ruby", "elixir", "lua", "julia", "yaml"};
static const char *const decorated_languages[] = {"python", "javascript", "typescript", "tsx", "java", "kotlin", "scala", "swift", "dart"};
static const char *const data_languages[] = {"json", "yaml", "toml", "html", "css", "make", "cmake", "dockerfile", "meson", "sql"};
/* clang-format on */

#define N_OF(a) (sizeof(a) / sizeof *(a))

static bool one_of(const char *const *list, size_t n_list, const char *s, size_t n)
{
    for (size_t i = 0; i < n_list; i++)
        if (strlen(list[i]) == n && memcmp(list[i], s, n) == 0) return true;
    return false;
}

static bool language_in(const char *const *list, size_t n_list, const char *language)
{
    return language != NULL && one_of(list, n_list, language, strlen(language));
}

/* ---- blanking ---- */

static size_t blank(lexer *x, size_t from, size_t to)
{
    if (to > x->n) to = x->n;
    for (size_t i = from; i < to; i++)
        if (x->code[i] != '\n') x->code[i] = ' ';
    return to;
}

static bool is_long_quote(const lexer *x, size_t i)
{
    return x->hash_comments && i + 2 < x->n && x->text[i + 1] == x->text[i] && x->text[i + 2] == x->text[i];
}

/* The end of a string that starts at i; short strings end with their line. */
static size_t string_end(const lexer *x, size_t i)
{
    const char quote = x->text[i];
    if (is_long_quote(x, i)) {
        for (size_t j = i + 3; j + 2 < x->n; j++)
            if (x->text[j] == quote && x->text[j + 1] == quote && x->text[j + 2] == quote) return j + 3;
        return x->n;
    }
    for (size_t j = i + 1; j < x->n; j++) {
        if (x->text[j] == '\\')
            j++;
        else if (x->text[j] == quote)
            return j + 1;
        else if (x->text[j] == '\n' && quote != '`')
            return j;
    }
    return x->n;
}

static void blank_strings(lexer *x)
{
    for (size_t i = 0; i < x->n;) {
        const char c = x->text[i], next = i + 1 < x->n ? x->text[i + 1] : '\0';
        if ((c == '#' && x->hash_comments) || (c == '/' && next == '/' && !x->hash_comments)) {
            const char *end = memchr(x->text + i, '\n', x->n - i);
            i = blank(x, i, end != NULL ? (size_t)(end - x->text) : x->n);
        } else if (c == '/' && next == '*' && !x->hash_comments) {
            size_t end = i + 2;
            while (end + 1 < x->n && !(x->text[end] == '*' && x->text[end + 1] == '/')) end++;
            i = blank(x, i, end + 2);
        } else if (c == '\'' && !x->hash_comments &&
                   !(next == '\\' || (i + 2 < x->n && x->text[i + 2] == '\'')) &&
                   memchr(x->text + i + 1, '\'', string_end(x, i) - i - 1) == NULL) {
            i++; /* a lifetime, an apostrophe */
        } else if (c == '"' || c == '\'' || c == '`') {
            const size_t end = string_end(x, i);
            i = x->keep_strings && !is_long_quote(x, i) ? end : blank(x, i, end);
        } else {
            i++;
        }
    }
}

static void pair_brackets(lexer *x)
{
    size_t cap_open = 0, depth = 0;
    size_t *open = NULL; /* indices into pairs */
    for (size_t i = 0; i < x->n; i++) {
        const char c = x->code[i];
        if (c == '(' || c == '{') {
            base_grow(&x->pairs, &x->cap_pairs, x->n_pairs + 1, sizeof *x->pairs);
            base_grow(&open, &cap_open, depth + 1, sizeof *open);
            open[depth++] = x->n_pairs;
            x->pairs[x->n_pairs++] = (pair){(uint32_t)i, UINT32_MAX};
        } else if (c == ')' || c == '}') {
            const char mate = c == ')' ? '(' : '{';
            /* A stray bracket closes nothing; one that was forgotten inside is given up. */
            size_t d = depth;
            while (d > 0 && depth - d < 8 && x->code[x->pairs[open[d - 1]].open] != mate) d--;
            if (d == 0 || depth - d >= 8) continue;
            x->pairs[open[d - 1]].close = (uint32_t)i;
            depth = d - 1;
        }
    }
    free(open);
}

/* UINT32_MAX: no bracket there, or one that is not closed. */
static uint32_t closing(const lexer *x, size_t open)
{
    size_t low = 0, high = x->n_pairs;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (x->pairs[mid].open < open)
            low = mid + 1;
        else
            high = mid;
    }
    return low < x->n_pairs && x->pairs[low].open == open ? x->pairs[low].close : UINT32_MAX;
}

/* ---- definitions ---- */

typedef struct found {
    const char *what;
    size_t name, name_end, parent, parent_end;
    bool is_declaration;
} found;

static size_t skip_space(const lexer *x, size_t i, size_t end)
{
    while (i < end && (x->code[i] == ' ' || x->code[i] == '\t')) i++;
    return i;
}

static size_t line_stop(const lexer *x, size_t i)
{
    const char *end = i < x->n ? memchr(x->text + i, '\n', x->n - i) : NULL;
    return end != NULL ? (size_t)(end - x->text) : x->n;
}

static bool word_at(const lexer *x, size_t i, size_t end, size_t *to)
{
    size_t pos = i, from;
    return i < end && code_next_identifier(x->code, end, &pos, &from, to) && from == i;
}

/* "keyword name", with modifiers in front. */
static bool keyword_definition(const lexer *x, size_t i, size_t end, found *ret)
{
    size_t to = 0;
    for (int depth = 0; depth < 8; depth++) {
        i = skip_space(x, i, end);
        if (!word_at(x, i, end, &to)) return false;
        if (!one_of(modifiers, N_OF(modifiers), x->code + i, to - i)) break;
        i = to;
        if (i < end && x->code[i] == '(') { /* pub(crate) */
            const uint32_t close = closing(x, i);
            if (close == UINT32_MAX || close >= end) return false;
            i = close + 1;
        }
    }
    const char *what = NULL;
    for (size_t k = 0; k < N_OF(definers); k++)
        if (strlen(definers[k].word) == to - i && memcmp(definers[k].word, x->code + i, to - i) == 0)
            what = definers[k].what;
    if (what == NULL) return false;
    i = skip_space(x, to, end);
    if (i < end && (x->code[i] == '!' || x->code[i] == '*')) i = skip_space(x, i + 1, end);
    if (i < end && x->code[i] == '(' && strcmp(what, "function") == 0) { /* Go's receiver */
        const uint32_t close = closing(x, i);
        if (close == UINT32_MAX || close >= end) return false;
        size_t pos = i, from;
        while (code_next_identifier(x->code, close, &pos, &from, &to)) {
            ret->parent = from;
            ret->parent_end = to;
        }
        i = skip_space(x, close + 1, end);
    }
    if (!word_at(x, i, end, &to)) {
        /* typedef struct { ... } name; */
        const char *brace = i < x->n ? memchr(x->code + i, '{', end - i) : NULL;
        const uint32_t close = brace != NULL ? closing(x, (size_t)(brace - x->code)) : UINT32_MAX;
        if (close == UINT32_MAX || !x->c_like) return false;
        i = skip_space(x, close + 1, line_stop(x, close));
        if (!word_at(x, i, x->n, &to)) return false;
    }
    /* In C `struct x *f(` and `struct x y;` only use the type. */
    if (x->c_like && strcmp(what, "function") != 0) {
        size_t after = to;
        while (after < x->n && memchr(" \t\r\n", x->code[after], 4) != NULL) after++;
        if (after < x->n && x->code[after] != '{' && x->code[after] != ':' && x->code[after] != ';')
            return false;
        if (after < x->n && x->code[after] == ';' && i < line_stop(x, i) &&
            memchr(x->code + i, '{', to - i) == NULL && strcmp(what, "struct") == 0 &&
            (i == 0 || x->code[i - 1] != ' ' || x->code[i - 2] != '}'))
            return false;
    }
    ret->what = what;
    ret->name = i;
    ret->name_end = to;
    return true;
}

/* "type name(...) {" or, in C, "type name(...);". */
static bool call_like_definition(const lexer *x, size_t i, size_t end, bool in_type, found *ret)
{
    const size_t start = skip_space(x, i, end);
    if (start != i && !in_type) return false;
    const char *paren = start < end ? memchr(x->code + start, '(', end - start) : NULL;
    if (paren == NULL) return false;
    const size_t open = (size_t)(paren - x->code);
    size_t pos = start, from = 0, to = 0, n_words = 0;
    while (code_next_identifier(x->code, open, &pos, &from, &to)) {
        n_words++;
        if (n_words == 1 && one_of(controls, N_OF(controls), x->code + from, to - from)) return false;
        if (n_words == 1 && one_of(returns, N_OF(returns), x->code + from, to - from)) return false;
        if (n_words == 1 && to - from == 4 && memcmp(x->code + from, "else", 4) == 0) return false;
    }
    if (n_words == 0 || to != open || code_is_keyword(x->code + from, to - from)) return false;
    if (memchr(x->code + start, '=', open - start) != NULL || x->code[start] == '#') return false;
    const uint32_t close = closing(x, open);
    if (close == UINT32_MAX) return false;
    size_t after = close + 1;
    for (size_t words = 0; after < x->n && words < 4;) { /* const, noexcept, throws X */
        while (after < x->n && memchr(" \t\r\n", x->code[after], 4) != NULL) after++;
        size_t word_end;
        if (!word_at(x, after, x->n, &word_end)) break;
        after = word_end;
        words++;
    }
    const char next = after < x->n ? x->code[after] : '\0';
    ret->is_declaration = next == ';';
    if (next != '{' && !(next == ';' && x->c_like && n_words >= 2)) return false;
    ret->what = in_type ? "method" : "function";
    ret->name = from;
    ret->name_end = to;
    if (from >= 2 && x->code[from - 1] == ':' && x->code[from - 2] == ':') { /* Cls::name */
        size_t p = from - 2, q = p;
        while (p > start &&
               (code_next_identifier(x->code + p - 1, 1, &(size_t){0}, &(size_t){0}, &(size_t){0}) ||
                   (x->code[p - 1] >= '0' && x->code[p - 1] <= '9')))
            p--;
        ret->parent = p;
        ret->parent_end = q;
        ret->what = "method";
    }
    return true;
}

/* "const f = (...) =>", "f = function" */
static bool arrow_definition(const lexer *x, size_t i, size_t end, found *ret)
{
    const char *equals = i < end ? memchr(x->code + i, '=', end - i) : NULL;
    if (equals == NULL || equals[1] == '=' || equals[1] == '>') return false;
    const size_t at = (size_t)(equals - x->code);
    bool is_function = false;
    for (size_t j = at + 1; j < end && !is_function; j++) { /* 16 zero bytes stand behind the text */
        is_function = (x->code[j] == '=' && x->code[j + 1] == '>') || memcmp(x->code + j, "function", 8) == 0;
        if (x->code[j] == '(') {
            const uint32_t close = closing(x, j);
            if (close == UINT32_MAX || close >= end) break;
            j = close;
        } else if (!is_function && x->code[j] != ' ' && x->code[j] != '_' &&
                   !(x->code[j] >= 'a' && x->code[j] <= 'z')) {
            break;
        }
    }
    if (!is_function) return false;
    size_t pos = i, from = 0, to = 0;
    bool any = false;
    while (code_next_identifier(x->code, at, &pos, &from, &to)) any = true;
    if (!any || code_is_keyword(x->code + from, to - from)) return false;
    *ret = (found){.what = "function", .name = from, .name_end = to};
    return true;
}

static bool macro_definition(const lexer *x, size_t i, size_t end, found *ret)
{
    if (!x->c_like || i >= end || x->code[i] != '#') return false;
    i = skip_space(x, i + 1, end);
    size_t to;
    if (!word_at(x, i, end, &to) || to - i != 6 || memcmp(x->code + i, "define", 6) != 0) return false;
    i = skip_space(x, to, end);
    if (!word_at(x, i, end, &to)) return false;
    *ret = (found){.what = "macro", .name = i, .name_end = to};
    return true;
}

static size_t indent_of(const lexer *x, size_t i, size_t end)
{
    return skip_space(x, i, end) - i;
}

/* Where an indented block ends: before the next line that is not deeper; an `end` there belongs to it. */
static size_t indented_end(const lexer *x, size_t line, size_t indent)
{
    size_t last = line_stop(x, line);
    for (size_t i = last + 1; i < x->n;) {
        const size_t stop = line_stop(x, i), at = skip_space(x, i, stop);
        if (at < stop && x->text[at] != '\r') {
            /* A blanked line is a string or a comment: it never ends a block. */
            if (at - i <= indent && x->code[at] != ' ') {
                if (at - i == indent && stop - at >= 3 && memcmp(x->code + at, "end", 3) == 0)
                    last = stop;
                else if (x->code[at] != ')' && x->code[at] != ']' && x->code[at] != '}')
                    break;
                else
                    last = stop;
                if (x->code[at] == 'e') break;
            } else if (x->code[at] != ' ') {
                last = stop;
            }
        }
        i = stop + 1;
    }
    return last;
}

static void extent(const lexer *x, size_t line, const found *f, code_definition *d)
{
    size_t to = line_stop(x, line);
    if (strcmp(f->what, "macro") == 0 && x->text[line] == '#') {
        while (to > line && to < x->n &&
               (x->text[to - 1] == '\\' || (x->text[to - 1] == '\r' && x->text[to - 2] == '\\')))
            to = line_stop(x, to + 1);
        d->to = (uint32_t)to;
        return;
    }
    if (x->indents) {
        const size_t header = to;
        to = indented_end(x, line, indent_of(x, line, x->n));
        if (to > header) {
            d->body_from = (uint32_t)header + 1;
            d->body_to = (uint32_t)to;
        }
        d->to = (uint32_t)to;
        return;
    }
    /* The first brace behind the name and before a semicolon; round brackets are stepped over. */
    for (size_t i = f->name_end; i < x->n && i < f->name_end + 4096; i++) {
        if (x->code[i] == '\n' && strcmp(f->what, "type") == 0) break;
        if (x->code[i] == ';') {
            d->to = (uint32_t)i + 1;
            return;
        }
        if (x->code[i] != '(' && x->code[i] != '{') continue;
        const uint32_t close = closing(x, i);
        if (close == UINT32_MAX) break;
        if (x->code[i] == '{') {
            d->body_from = (uint32_t)i;
            d->body_to = close + 1;
            to = close + 1;
            while (to < x->n && x->code[to] != '\n' && x->code[to] != ';' && to - close < 80) to++;
            d->to = to < x->n && x->code[to] == ';' ? (uint32_t)to + 1 : close + 1;
            return;
        }
        i = close;
    }
    if (d->name_from < d->from || to < f->name_end) to = f->name_end; /* a name behind its body */
    d->to = (uint32_t)to;
}

/* Is the line that begins at `at` a decorator and nothing else: @name, @a.b(...)? *ret_end: where its last line ends. */
static bool decorator_line(const lexer *x, size_t at, size_t *ret_end)
{
    size_t i = at, to;
    if (!x->has_decorators || x->code[at] != '@') return false;
    do {
        if (!word_at(x, i + 1, x->n, &to)) return false;
        i = to;
    } while (x->code[i] == '.');
    if (x->code[i] == '(') {
        const uint32_t close = closing(x, i);
        if (close == UINT32_MAX) return false;
        i = close + 1;
    }
    const size_t end = line_stop(x, i);
    i = skip_space(x, i, end);
    if (i < end && x->code[i] != '\r') return false; /* "@Override int f() {" */
    *ret_end = end;
    return true;
}

static void define_lines(lexer *x)
{
    size_t cap = 0, depth = 0;
    size_t decorators = SIZE_MAX; /* byte where those begin that stand above the line */
    struct {
        uint32_t to, index;
        bool is_type;
    } *open = NULL;
    for (size_t line = 0, end; line < x->n; line = end + 1) {
        end = line_stop(x, line);
        const size_t at = skip_space(x, line, end);
        if (decorator_line(x, at, &end)) {
            if (decorators == SIZE_MAX) decorators = at;
            continue;
        }
        if (at == end || x->code[at] == '\r') continue; /* blank, or a comment */
        const size_t from = decorators != SIZE_MAX ? decorators : at;
        decorators = SIZE_MAX;
        while (depth != 0 && line >= open[depth - 1].to) depth--;
        const bool in_type = depth != 0 && open[depth - 1].is_type;
        found f = {0};
        if (!macro_definition(x, at, end, &f) && !keyword_definition(x, at, end, &f) &&
            !arrow_definition(x, at, end, &f) &&
            (x->indents || !call_like_definition(x, line, end, in_type, &f)))
            continue;
        code_definition d = {.what = f.what,
            .from = (uint32_t)from,
            .name_from = (uint32_t)f.name,
            .is_declaration = f.is_declaration,
            .parent = ""};
        extent(x, line, &f, &d);
        if (f.name >= d.to) d.to = (uint32_t)f.name_end;
        if (strcmp(d.what, "function") == 0 && in_type) d.what = "method";
        d.name = code_builder_name(&x->b, x->text + f.name, f.name_end - f.name);
        if (f.parent_end > f.parent)
            d.parent = code_builder_name(&x->b, x->text + f.parent, f.parent_end - f.parent);
        else if (depth != 0)
            d.parent = x->b.file->definitions[open[depth - 1].index].name;
        const uint32_t index = code_builder_define(&x->b, &d);
        if (index == UINT32_MAX) break;
        uint32_t to = d.body_to != 0 && d.body_from >= d.from ? d.body_from
                      : (uint32_t)end < d.to                  ? (uint32_t)end
                                                              : d.to;
        if (to < d.to && x->text[to] == '{') to++;
        while (to > d.from && memchr(" \t\r\n", x->text[to - 1], 4) != NULL) to--;
        code_builder_anchor(&x->b, &(code_anchor){CODE_SIGNATURE, index, d.from, to, d.from, to});
        if (d.body_to == 0) continue;
        base_grow(&open, &cap, depth + 1, sizeof *open);
        open[depth].to = d.to;
        open[depth].index = index;
        open[depth++].is_type = strcmp(d.what, "function") != 0 && strcmp(d.what, "method") != 0;
    }
    free(open);
}

/* ---- anchors ---- */

/* The innermost definition at ascending offsets. */
static uint32_t definition_at(
    const code_file *f, uint32_t at, uint32_t *next, uint32_t *stack, uint32_t *depth)
{
    while (*next < f->n_definitions && f->definitions[*next].from <= at) {
        while (*depth != 0 && f->definitions[*next].from >= f->definitions[stack[*depth - 1]].to) (*depth)--;
        if (*depth < 32) stack[(*depth)++] = *next;
        (*next)++;
    }
    while (*depth != 0 && at >= f->definitions[stack[*depth - 1]].to) (*depth)--;
    return *depth != 0 ? stack[*depth - 1] : UINT32_MAX;
}

static void add_anchors(lexer *x)
{
    uint32_t next = 0, stack[32], depth = 0;
    size_t pos = 0, from, to, stop = 0;
    while (code_next_identifier(x->code, x->n, &pos, &from, &to)) {
        const uint32_t inside = definition_at(x->b.file, (uint32_t)from, &next, stack, &depth);
        if (from >= stop) stop = line_stop(x, from); /* once a line: it may be the whole file */
        const size_t after = skip_space(x, to, x->n);
        code_anchor a = {.definition = inside, .core_from = (uint32_t)from, .full_from = (uint32_t)from};
        const uint32_t close = after < x->n && x->code[after] == '(' ? closing(x, after) : UINT32_MAX;
        if (one_of(controls, N_OF(controls), x->code + from, to - from)) {
            a.kind = CODE_CONTROL;
            a.core_to = a.full_to = close != UINT32_MAX ? close + 1 : (uint32_t)stop;
        } else if (one_of(returns, N_OF(returns), x->code + from, to - from)) {
            a.kind = CODE_RETURN;
            a.full_to = (uint32_t)stop;
            a.core_to = (uint32_t)(stop - from > 32 ? from + 32 : stop);
        } else if (after < x->n && x->code[after] == '(' && after == to &&
                   !code_is_keyword(x->code + from, to - from)) {
            if (inside != UINT32_MAX && x->b.file->definitions[inside].name_from == from) continue;
            a.kind = CODE_CALL;
            a.core_to = (uint32_t)after + 1;
            a.full_to = close != UINT32_MAX ? close + 1 : a.core_to;
        } else if (after + 1 < x->n && x->code[after] == '=' && x->code[after + 1] != '=' &&
                   x->code[after + 1] != '>') {
            a.kind = CODE_ASSIGN;
            a.core_to = (uint32_t)after + 1;
            a.full_to = (uint32_t)(stop > after ? stop : after + 1);
        } else {
            continue;
        }
        code_builder_anchor(&x->b, &a);
    }
}

/* ---- documents ---- */

static bool is_underline(const char *s, size_t n, char *mark)
{
    if (n < 3 || strchr("=-~^*", s[0]) == NULL) return false;
    for (size_t i = 1; i < n; i++)
        if (s[i] != s[0] && !(s[i] == '\r' && i + 1 == n)) return false;
    *mark = s[0];
    return true;
}

/* Sections from heading to heading; the parent is the heading one level up. */
static void define_sections(lexer *x)
{
    const char *above[8] = {"", "", "", "", "", "", "", ""};
    code_definition d = {0};
    bool open = false, fenced = false;
    size_t before = 0; /* start of the line before */
    for (size_t line = 0; line < x->n; line = line_stop(x, line) + 1) {
        const size_t end = line_stop(x, line);
        const char *s = x->text + line;
        if (end - line >= 3 && (memcmp(s, "```", 3) == 0 || memcmp(s, "~~~", 3) == 0)) fenced = !fenced;
        size_t level = 0, from = line, name = line, name_end = end;
        char mark;
        while (!fenced && level < 6 && line + level < end && s[level] == '#') level++;
        if (level != 0 && (line + level == end || s[level] != ' ')) level = 0;
        if (level != 0) {
            name = skip_space(x, line + level, end);
        } else if (!fenced && line != before && is_underline(s, end - line, &mark) &&
                   x->text[before] != '\n' && line - before > 2 && line - before <= 120) {
            level = mark == '=' ? 1 : 2;
            from = name = before;
            name_end = line - 1;
        }
        before = line;
        if (level == 0) continue;
        while (name_end > name && memchr(" \t\r#", x->text[name_end - 1], 4) != NULL) name_end--;
        if (name_end <= name) continue;
        if (open) {
            d.to = (uint32_t)from;
            code_builder_define(&x->b, &d);
        }
        d = (code_definition){.what = "section",
            .from = (uint32_t)from,
            .name_from = (uint32_t)name,
            .parent = above[level - 1]};
        d.name = code_builder_name(&x->b, x->text + name, name_end - name);
        for (size_t l = level; l < N_OF(above); l++) above[l] = d.name;
        open = true;
    }
    if (!open) return;
    d.to = (uint32_t)x->n;
    code_builder_define(&x->b, &d);
}

char *code_blank_comments(const char *language, const char *text, size_t n)
{
    lexer x = {.text = text, .n = n, .code = base_xstrndup(text, n), .keep_strings = true};
    x.hash_comments = language_in(hash_languages, N_OF(hash_languages), language);
    blank_strings(&x);
    return x.code;
}

/* What no compiler sees defines nothing. */
static void blank_inactive(lexer *x)
{
    code_inactive *sections;
    const size_t n = code_inactive_find(x->code, x->n, &sections);
    for (size_t i = 0; i < n; i++)
        for (size_t k = sections[i].from; k < sections[i].to; k++)
            if (x->code[k] != '\n') x->code[k] = ' ';
    free(sections);
}

code_file *code_parse_lexical(const char *language, const char *path, const char *text, size_t n)
{
    (void)path;
    lexer x = {.text = text, .n = n};
    code_builder_begin(&x.b, NULL, text, n);
    if (n == 0 || language_in(data_languages, N_OF(data_languages), language)) return code_builder_end(&x.b);
    x.code = malloc(n + 16);
    if (x.code == NULL) return code_builder_end(&x.b);
    memcpy(x.code, text, n);
    memset(x.code + n, 0, 16);
    if (code_language_is_document(language)) {
        define_sections(&x);
    } else {
        x.hash_comments = language_in(hash_languages, N_OF(hash_languages), language);
        x.has_decorators = language_in(decorated_languages, N_OF(decorated_languages), language);
        x.indents = language_in(indent_languages, N_OF(indent_languages), language);
        x.c_like = code_has_preprocessor(language);
        if (x.c_like) blank_inactive(&x);
        blank_strings(&x);
        pair_brackets(&x);
        define_lines(&x);
        if (language != NULL) add_anchors(&x);
    }
    free(x.code);
    free(x.pairs);
    return code_builder_end(&x.b);
}
