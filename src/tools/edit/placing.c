/*
 * Where a new definition stands (contract: placing.h). Kin is told by words of names: sdscatlen stands behind
 * sdscat, takesValue behind isBoolean, test_get_key behind the other tests of keys.
 */
#include "tools/edit/placing.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"

static bool is_top(const code_definition *d)
{
    return !d->parent || !*d->parent;
}

static bool names_word(const char *words, const char *name)
{
    return words && *name && code_has_identifier(words, strlen(words), name);
}

static uint32_t shared_words(const char *a, const char *b)
{
    base_buf x = {0}, y = {0};
    code_split_identifier(a, strlen(a), &x);
    code_split_identifier(b, strlen(b), &y);
    uint32_t shared = 0;
    for (const char *p = x.data; p && *p;) {
        size_t n = strcspn(p, " ");
        for (const char *q = y.data; n && q && *q;) {
            size_t m = strcspn(q, " ");
            shared += n == m && !memcmp(p, q, n);
            q += m + strspn(q + m, " ");
        }
        p += n + strspn(p + n, " ");
    }
    base_buf_free(&x);
    base_buf_free(&y);
    return shared;
}

static double kinship(const tool_newcomer *who, const code_definition *d, const char *request)
{
    size_t prefix = 0, suffix = 0, n = strlen(who->name), m = strlen(d->name);
    while (prefix < n && prefix < m && who->name[prefix] == d->name[prefix]) prefix++;
    while (suffix < n && suffix < m && who->name[n - 1 - suffix] == d->name[m - 1 - suffix]) suffix++;
    double score = 3.0 * shared_words(who->name, d->name);
    if (prefix >= 3) score += 0.5 * (double)prefix;
    if (suffix >= 4) score += 0.3 * (double)suffix;
    if (strcmp(d->name, who->name) != 0 && names_word(request, d->name)) score += 8;
    return score;
}

/* A function beside functions, a value beside values. */
static bool is_same_sort(const tool_newcomer *who, const code_definition *d)
{
    static const char *const values[] = {"variable", "field", "constant"};
    bool is_value[2] = {false, false};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        is_value[0] |= !strcmp(who->what, values[i]);
        is_value[1] |= !strcmp(d->what, values[i]);
    }
    return is_value[0] == is_value[1];
}

/* How many #if stand open in front of a byte. */
static int open_conditions(const char *text, size_t at)
{
    int depth = 0;
    for (size_t line = 0; line < at; line = tool__line_end(text, at, line) + 1) {
        size_t i = line;
        while (i < at && (text[i] == ' ' || text[i] == '\t')) i++;
        if (i >= at || text[i] != '#') continue;
        for (i++; i < at && (text[i] == ' ' || text[i] == '\t'); i++) {
        }
        if (at - i >= 2 && !memcmp(text + i, "if", 2)) depth++;
        if (at - i >= 5 && !memcmp(text + i, "endif", 5)) depth--;
    }
    return depth;
}

/* Rust: does d stand in an "impl Trait for Type"? Only what the trait names may stand there. */
static bool is_of_trait(const base_buf *text, const code_definition *d)
{
    const char *impl = NULL;
    for (size_t line = tool__line_begin(text->data, d->from); line > 0 && !impl;) {
        line = tool__line_begin(text->data, line - 1);
        const char *word = text->data + line + strspn(text->data + line, " \t");
        if (!strncmp(word, "impl", 4) || !strncmp(word, "unsafe impl", 11)) impl = word;
    }
    const char *brace = impl ? memchr(impl, '{', (size_t)(text->data + d->from - impl)) : NULL;
    return brace && memmem(impl, (size_t)(brace - impl), " for ", 5);
}

/* Go: a method stands behind the other methods of its type, the first one behind the type. */
static double receiver_score(const tool_newcomer *who, const code_definition *d)
{
    if (!who->receiver) return 0;
    return !strcmp(d->what, "method") && !strcmp(d->parent, who->receiver) ? 40
           : is_top(d) && !strcmp(d->name, who->receiver)                  ? 20
                                                                           : 0;
}

/* Does d stand directly in the type that was found, where one was? */
static bool is_sibling(const tool_placing *p, const code_definition *d)
{
    const char *language = p->file->language;
    if (p->holder == UINT32_MAX && !p->holder_name)
        return is_top(d) || (tool__is_language(language, "go") && strcmp(d->what, "field") != 0);
    if (is_top(d) || (tool__is_language(language, "rust") && is_of_trait(p->text, d))) return false;
    const char *name = p->holder == UINT32_MAX ? p->holder_name : p->file->definitions[p->holder].name;
    return !strcmp(code_last_name(d->parent), name);
}

static bool is_function(const char *what)
{
    return !strcmp(what, "function") || !strcmp(what, "method");
}

/* The definition to stand behind; UINT32_MAX: there is none of its sort. */
static uint32_t find_relative(const tool_placing *p)
{
    const code_file *f = p->file;
    const base_buf *text = p->text;
    const tool_newcomer *who = p->who;
    bool has_conditions = tool__is_language(f->language, "c") || tool__is_language(f->language, "cpp");
    int least = 1 << 20;
    for (uint32_t i = 0; has_conditions && i < f->n_definitions; i++) {
        int depth = open_conditions(text->data, f->definitions[i].from);
        if (depth < least) least = depth;
    }
    uint32_t best = UINT32_MAX;
    double best_score = -1;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!is_sibling(p, d) || !is_same_sort(who, d)) continue;
        if (has_conditions && open_conditions(text->data, d->from) > least) continue;
        if (has_conditions && !strcmp(d->name, "main")) continue;
        if (has_conditions && is_function(who->what) && !is_function(d->what)) continue;
        double score = kinship(who, d, p->request) + receiver_score(who, d);
        if (!strcmp(d->what, who->what)) score += 0.4;
        if (score >= best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

/*
 * C knows nothing of what stands further down: the last thing behind `relative` that the new text needs, where nothing in
 * front declares it; else `relative`.
 */
static uint32_t behind_needs(const tool_placing *p, const base_buf *fresh, uint32_t relative)
{
    const code_file *f = p->file;
    const base_buf *text = p->text;
    const code_definition *place = &f->definitions[relative];
    uint32_t last = relative;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        const bool is_own = !is_function(d->what) || !strncmp(text->data + d->from, "static", 6);
        if (d->from <= place->from || d->is_declaration || !is_top(d) || !is_own ||
            !strcmp(d->name, p->who->name) ||
            open_conditions(text->data, d->from) > open_conditions(text->data, place->from))
            continue;
        bool is_known = !names_word(fresh->data, d->name);
        for (uint32_t k = 0; k < f->n_definitions && !is_known; k++)
            is_known = f->definitions[k].from < place->from && !strcmp(f->definitions[k].name, d->name);
        if (!is_known && d->from > f->definitions[last].from) last = i;
    }
    return last;
}

/* The type of the file that is called so, else the only one, or the one whose members are most like it. */
static uint32_t find_holder(const tool_placing *p)
{
    const code_file *f = p->file;
    uint32_t best = UINT32_MAX, only = UINT32_MAX, n = 0;
    double best_score = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!tool__is_holder(f->language, d)) continue;
        if (p->holder_name) {
            if (!strcmp(d->name, p->holder_name)) return i;
            continue;
        }
        only = i;
        n++;
        double score = names_word(p->request, d->name) ? 20 : 0;
        tool_placing inside = *p;
        inside.holder = i;
        for (uint32_t k = 0; k < f->n_definitions; k++) {
            const code_definition *m = &f->definitions[k];
            if (!is_sibling(&inside, m) || !is_same_sort(p->who, m)) continue;
            double kin = kinship(p->who, m, p->request);
            if (score < 20 && kin > score) score = kin;
        }
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return n == 1 ? only : best;
}

/* ---- blank lines and columns ---- */

static size_t blank_lines_at(const char *text, size_t n, size_t at)
{
    size_t lines = 0;
    while (at < n) {
        size_t end = tool__line_end(text, n, at);
        if (!tool__is_blank(text, at, end)) return lines;
        lines++;
        at = end + 1;
    }
    return 0; /* the end of the text is no distance */
}

static size_t behind_line(const base_buf *text, size_t to)
{
    size_t end = tool__line_end(text->data, text->len, to ? to - 1 : 0);
    return end < text->len ? end + 1 : end;
}

/* How many blank lines stand between definitions of this sort: those behind the relative, else usual ones. */
static size_t usual_gap(const tool_placing *p)
{
    const code_file *f = p->file;
    const base_buf *text = p->text;
    size_t counts[4] = {0}, n = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!is_sibling(p, d) || !is_same_sort(p->who, d)) continue;
        uint32_t next = i + 1;
        while (next < f->n_definitions && (f->definitions[next].from < d->to)) next++;
        if (next == f->n_definitions || !is_sibling(p, &f->definitions[next])) continue;
        size_t gap = blank_lines_at(text->data, text->len, behind_line(text, d->to));
        if (i == p->relative) return gap;
        counts[gap < 3 ? gap : 3]++;
        n++;
    }
    if (n) {
        size_t most = 0;
        for (size_t i = 1; i < 4; i++)
            if (counts[i] > counts[most]) most = i;
        return most;
    }
    const tool_newcomer value = {.what = (char *)"variable"};
    code_definition like = {.what = p->who->what};
    if (is_same_sort(&value, &like)) return 0;
    return tool__is_language(f->language, "python") && p->holder == UINT32_MAX ? 2 : 1;
}

/* The white space that the line of a byte begins with. */
static base_str indent_of(const base_buf *text, size_t at)
{
    size_t line = tool__line_begin(text->data, at), to = line;
    while (to < text->len && (text->data[to] == ' ' || text->data[to] == '\t')) to++;
    return (base_str){text->data + line, to - line};
}

/* ---- what others ask ---- */

bool tool__find_type(tool_placing *p, base_buf *why)
{
    const char *language = p->file->language;
    const bool has_outside = tool__is_language(language, "cpp") || tool__is_language(language, "rust");
    p->holder = p->relative = UINT32_MAX;
    if (tool__is_language(language, "go") || tool__is_language(language, "c")) {
        free(p->holder_name);
        p->holder_name = NULL;
    } else if (!p->holder_name && p->who->holder) {
        p->holder_name = base_xstrdup(p->who->holder);
    }
    /* A module of the file ("tests.works") holds functions as a type does, and members may stand outside of their type. */
    p->is_around = p->holder_name && has_outside && find_relative(p) != UINT32_MAX;
    if (p->holder_name || p->who->is_member) p->holder = find_holder(p);
    if (p->holder == UINT32_MAX && !p->who->is_member && !p->is_around) {
        free(p->holder_name); /* another name in front is invented */
        p->holder_name = NULL;
    }
    if (!p->who->is_member || p->holder != UINT32_MAX) return true;
    if (p->is_around && tool__is_language(language, "rust")) return true;
    base_buf_printf(why,
        "%.100s can only stand in a type, and this file has none that the call or the request names. Nothing "
        "was changed. Next: the same call with \"name\": \"Type.%.100s\" and the file of that type.\n",
        p->who->name, p->who->name);
    return false;
}

/* A place without a relative: the type's end, or the file's. */
static size_t end_of_holder(const tool_placing *p)
{
    const base_buf *text = p->text;
    if (p->holder == UINT32_MAX) return text->len;
    const code_definition *h = &p->file->definitions[p->holder];
    if (tool__is_language(p->file->language, "python")) return behind_line(text, h->to);
    size_t brace = h->to < text->len ? h->to : text->len;
    while (brace > h->from && text->data[brace - 1] != '}') brace--;
    return brace > h->from ? tool__line_begin(text->data, brace - 1) : behind_line(text, h->to);
}

void tool__find_place(tool_placing *p, const base_buf *fresh)
{
    const char *language = p->file->language;
    p->relative = find_relative(p);
    const bool has_relative = p->relative != UINT32_MAX;
    if (has_relative && (tool__is_language(language, "c") || tool__is_language(language, "cpp")))
        p->relative = behind_needs(p, fresh, p->relative);
    p->at = has_relative ? behind_line(p->text, p->file->definitions[p->relative].to) : end_of_holder(p);
    p->gap = usual_gap(p);
    p->is_kin = has_relative && kinship(p->who, &p->file->definitions[p->relative], p->request) > 0;
    base_buf_clear(&p->indent);
    if (!has_relative && p->holder == UINT32_MAX) return;
    const uint32_t beside = has_relative ? p->relative : p->holder;
    const base_str column = indent_of(p->text, p->file->definitions[beside].from);
    base_buf_add(&p->indent, column.ptr, column.len);
    if (!has_relative)
        base_buf_puts(&p->indent, tool__indent_char(p->text->data, p->text->len) == '\t' ? "\t" : "    ");
}

void tool__placing_free(tool_placing *p)
{
    free(p->holder_name);
    base_buf_free(&p->indent);
}
