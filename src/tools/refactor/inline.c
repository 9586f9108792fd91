/*
 * inline: what a function returns, or its statements, stand where it was called, and it goes. Refused is what would not mean the
 * same there: an argument that calls something and would run twice or never, a name that means another thing in the caller, a call
 * in front of which the body's statements cannot run.
 */
#include "tools/refactor/refactor.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/file/text.h"
#include "tools/result/result.h"

/* The body in two: statements, and the value at its end. */
typedef struct body {
    char *lead, *value; /* NULL: none */
    uint32_t from, to;  /* of the source, without brackets */
    char *local;        /* one that it declares; NULL: none */
} body;

static bool refuse(const refactor *x, const char *why)
{
    tool__say(x->result, TOOL_REFUSED, "%s cannot be inlined: %s. Nothing was changed.\n", x->name, why);
    return false;
}

static bool refuse_name(const refactor *x, const char *why, const char *name)
{
    base_buf s = {0};
    base_buf_printf(&s, why, name);
    refuse(x, s.data);
    base_buf_free(&s);
    return false;
}

/* ---- its body ---- */

static bool is_blank(const char *s, size_t from, size_t to)
{
    while (from < to && isspace((unsigned char)s[from])) from++;
    return from == to;
}

static bool has_word(const char *code, const char *word)
{
    return code_has_identifier(code, strlen(code), word);
}

static uint32_t count_word(const char *code, const char *word, size_t *ret_last)
{
    size_t pos = 0, from, to;
    uint32_t n = 0;
    while (code_next_identifier(code, strlen(code), &pos, &from, &to)) {
        if (to - from != strlen(word) || memcmp(code + from, word, to - from) != 0) continue;
        if (from > 0 && code[from - 1] == '.') continue;
        *ret_last = from;
        n++;
    }
    return n;
}

/* Lines without the indentation that the first of them has. */
static char *without_indent(const char *text, size_t from, size_t to)
{
    base_buf out = {0};
    while (from < to && strchr("\r\n", text[from])) from++;
    const size_t n = strspn(text + from, " \t");
    while (to > from && isspace((unsigned char)text[to - 1])) to--;
    while (from < to) {
        size_t end = from, skip = 0;
        while (end < to && text[end] != '\n') end++;
        while (skip < n && from + skip < end && strchr(" \t", text[from + skip])) skip++;
        const size_t cut = end > from && text[end - 1] == '\r';
        base_buf_add(&out, text + from + skip, end - from - skip - (end < to ? cut : 0));
        base_buf_putc(&out, '\n');
        from = end + 1;
    }
    return out.len ? base_buf_take(&out) : NULL;
}

/* The receiver of Go is called self, as the object of a call is (instead.c). */
static char *with_self(const refactor *x, char *s)
{
    const code_definition *d = x->target.definition;
    const char *text = x->target.in->file.text.data + d->from, *open = strchr(text, '(');
    size_t n = 0, pos = 0, from, to, last = 0;
    if (!s || x->target.in->language->family != REFACTOR_GO || !x->target.is_member || !open) return s;
    while (code_is_name_byte(open[1 + n])) n++;
    base_buf out = {0};
    while (n && code_next_identifier(s, strlen(s), &pos, &from, &to)) {
        const bool is_it = to - from == n && !memcmp(s + from, open + 1, n) && !(from && s[from - 1] == '.');
        base_buf_add(&out, s + last, from - last);
        base_buf_add(&out, is_it ? "self" : s + from, is_it ? 4 : to - from);
        last = to;
    }
    base_buf_puts(&out, s + last);
    free(s);
    return base_buf_take(&out);
}

/* What stands in the function's brackets. */
typedef struct inside {
    size_t from, to; /* of the source, without brackets and blanks */
    char *code;      /* these bytes, with comments and docstring blank */
} inside;

static bool find_inside(const refactor *x, inside *ret)
{
    const refactor_file *f = x->target.in;
    const code_definition *d = x->target.definition;
    const char *text = f->file.text.data;
    size_t from = d->body_from, to = d->body_to;
    if (!to) return refuse(x, "its body is not in the tree");
    if (text[d->from] == '@') return refuse(x, "it is decorated");
    char *code = code_blank_comments(f->language->name, text + d->from, to - d->from);
    const bool is_async = code_has_identifier(code, from - d->from, "async");
    while (from < to && (isspace((unsigned char)text[from]) || text[from] == ':')) from++;
    if (from < to && text[from] == '{' && text[to - 1] == '}') {
        from++;
        to--;
    }
    while (from < to && isspace((unsigned char)code[from - d->from])) from++;
    while (to > from && isspace((unsigned char)text[to - 1])) to--;
    *ret = (inside){from, to, base_xstrndup(code + (from - d->from), to - from)};
    free(code);
    return !is_async || refuse(x, "it is async");
}

/* Nothing in it needs a function of its own around it. */
static bool check_words(const refactor *x, const char *code)
{
    static const char *const forbidden[] = {
        "yield", "await", "defer", "goto", "nonlocal", "super", "recover"};
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (has_word(code, forbidden[i])) return refuse_name(x, "it has a %s", forbidden[i]);
    return !has_word(code, x->name) || refuse(x, "it calls itself");
}

/* Blanks from the beginning of the line; 0 where something else stands in front. */
static size_t indent_of(const char *text, size_t at)
{
    const size_t line = tool__line_begin(text, at);
    return is_blank(text, line, at) ? at - line : 0;
}

/* What its one return, `at` bytes behind the beginning, returns: the last statement of the function itself. */
static bool read_value(const refactor *x, const inside *in, size_t at, char **ret)
{
    const char *text = x->target.in->file.text.data;
    const size_t begin = in->from + at, behind = begin + strlen("return");
    const bool is_level = is_blank(text, tool__line_begin(text, begin), begin) &&
                          indent_of(text, begin) == indent_of(text, in->from);
    size_t end = in->to, value = behind;
    while (end > begin && isspace((unsigned char)in->code[end - in->from - 1])) end--;
    while (end > begin && (text[end - 1] == ';' || isspace((unsigned char)text[end - 1]))) end--;
    while (value < end && isspace((unsigned char)text[value])) value++;
    if (at && !is_level) return refuse(x, "it returns from inside of a block");
    if (memchr(text + behind, ';', end - behind)) return refuse(x, "something stands behind its return");
    if (value == end) return refuse(x, "it returns without a value");
    if (memchr(in->code + (value - in->from), '\n', end - value) &&
        x->target.in->language->family == REFACTOR_PYTHON && !strchr("([{", text[value]))
        return refuse(x, "what it returns goes over several lines");
    *ret = base_xstrndup(text + value, end - value);
    return true;
}

static bool read_body(const refactor *x, body *ret)
{
    const char *text = x->target.in->file.text.data;
    inside in = {0};
    size_t at = 0;
    bool is_good = find_inside(x, &in) && check_words(x, in.code);
    const uint32_t n_returns = is_good ? count_word(in.code, "return", &at) : 0;
    if (n_returns > 1) is_good = refuse(x, "it returns in several places");
    if (n_returns == 1) is_good = read_value(x, &in, at, &ret->value);
    const size_t to = n_returns ? in.from + at : in.to;
    if (is_good && to > in.from) ret->lead = without_indent(text, in.from - indent_of(text, in.from), to);
    if (is_good && !ret->lead && !ret->value) is_good = refuse(x, "it does nothing: delete it");
    ret->from = (uint32_t)in.from;
    ret->to = x->target.definition->body_to;
    ret->lead = with_self(x, ret->lead);
    ret->value = with_self(x, ret->value);
    free(in.code);
    return is_good;
}

/* ---- names ---- */

/* Parameters are only read, and what the body declares is known. false: one is written. */
static bool read_names(const refactor *x, const refactor_instead *r, body *b)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    size_t pos = b->from, from, to;
    while (code_next_identifier(text->data, b->to, &pos, &from, &to)) {
        char *name = base_xstrndup(text->data + from, to - from);
        code_uses *u = code_uses_find(x->w->grammars, f->path, text->data, text->len, name);
        bool is_parameter = false, is_written = false, is_own = false;
        for (size_t k = 0; k < r->n; k++) is_parameter |= !strcmp(r->names[k], name);
        for (uint32_t i = 0; u && i < u->n_uses; i++) {
            const code_use *use = &u->uses[i];
            if (use->from < b->from || use->from >= b->to || use->role >= CODE_USE_STRING) continue;
            is_own |= use->binding != UINT32_MAX && use->binding >= b->from && use->binding < b->to;
            const bool is_through =
                f->language->family == REFACTOR_C && text->data[use->from - 1] == '*'; /* *p = 1 */
            is_written |= is_parameter && use->role == CODE_USE_NAME && !is_through &&
                          !refactor__is_plain_read(text, use->from, use->from + (uint32_t)(to - from), "");
            is_written |= is_parameter && use->is_shorthand;
        }
        code_uses_free(u);
        if (is_own && !b->local)
            b->local = name;
        else if (!is_written)
            free(name);
        if (is_written) {
            refuse_name(
                x, "its body changes its parameter %s, or takes it in another way than by reading", name);
            if (b->local != name) free(name);
            return false;
        }
    }
    return true;
}

/* What of the text is a name that the function's file defines or imports. */
static bool needs_of_source(const refactor *x, const refactor_file *at, const char *name)
{
    const refactor_file *f = x->target.in;
    const refactor_family family = f->language->family;
    bool is_defined = false, is_imported = false, is_there = false;
    for (uint32_t i = 0; i < f->uses->file->n_definitions; i++) {
        const code_definition *d = &f->uses->file->definitions[i];
        is_defined |= !strcmp(d->name, name) && !*d->parent &&
                      (family != REFACTOR_C || refactor__is_static(f, d) || !strcmp(d->what, "macro"));
    }
    for (uint32_t i = 0; i < f->uses->n_imports; i++) is_imported |= !strcmp(f->uses->imports[i].local, name);
    for (uint32_t i = 0; i < at->uses->n_imports; i++) is_there |= !strcmp(at->uses->imports[i].local, name);
    const bool is_package =
        family == REFACTOR_GO && base_path_same_folder(f->path, at->path) && !refactor__is_external_test(at);
    return ((is_defined && !is_package) || is_imported) && !is_there;
}

/* Does each name of the body mean in the caller what it means here? */
static bool means_the_same(
    const refactor *x, const refactor_place *p, const body *b, const refactor_instead *r)
{
    const refactor_file *at = &x->files[p->file];
    const code_definition *caller =
        p->use->inside != UINT32_MAX ? &at->uses->file->definitions[p->use->inside] : NULL;
    const char *const parts[] = {b->lead, b->value};
    for (size_t k = 0; k < 2; k++) {
        size_t pos = 0, from, to;
        while (parts[k] && code_next_identifier(parts[k], strlen(parts[k]), &pos, &from, &to)) {
            char *name = base_xstrndup(parts[k] + from, to - from);
            bool is_other = from > 0 && parts[k][from - 1] == '.';
            for (size_t i = 0; i < r->n; i++) is_other |= !strcmp(r->names[i], name);
            is_other |= code_is_keyword(name, strlen(name)) || !strcmp(name, "self") || !strcmp(name, "this");
            bool is_good = is_other || at == x->target.in || !needs_of_source(x, at, name) ||
                           refuse_name(x, "its caller's file does not see %s", name);
            code_uses *u = is_other || !caller ? NULL
                                               : code_uses_find(x->w->grammars, at->path, at->file.text.data,
                                                     at->file.text.len, name);
            for (uint32_t i = 0; u && i < u->n_uses && is_good; i++)
                if (u->uses[i].binding != UINT32_MAX && u->uses[i].from >= caller->from &&
                    u->uses[i].from < caller->to && u->uses[i].role < CODE_USE_STRING)
                    is_good = refuse_name(x, "its caller has a %s of its own", name);
            code_uses_free(u);
            free(name);
            if (!is_good) return false;
        }
    }
    return true;
}

/* ---- each call ---- */

/* Does evaluating it do something, or take long: a call, an increment? */
static bool has_effect(base_str s)
{
    base_buf text = {0};
    base_buf_add(&text, s.ptr, s.len);
    const bool has =
        s.len && (strchr(text.data, '(') || strstr(text.data, "++") || strstr(text.data, "--") ||
                     has_word(text.data, "await") || has_word(text.data, "yield") || strstr(text.data, "<-"));
    base_buf_free(&text);
    return has;
}

/* What stands in front of the place decides whether it runs, or how often. */
static bool is_conditional(const char *code, size_t at)
{
    static const char *const marks[] = {"&&", "||", "?", "=>", "{"};
    static const char *const words[] = {
        "and", "or", "if", "else", "for", "while", "lambda", "func", "function"};
    char *front = base_xstrndup(code, at);
    bool is = false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) is |= strstr(front, marks[i]) != NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) is |= has_word(front, words[i]);
    const bool is_behind = has_word(code + at, "for") || has_word(code + at, "if"); /* x if c else y */
    free(front);
    return is || is_behind;
}

/* Every argument that does something runs once, in its order. */
static bool runs_once(
    const refactor *x, const body *b, const refactor_instead *r, const base_str *items, size_t n)
{
    base_buf all = {0};
    size_t last = 0, at = 0;
    bool is_good = true;
    base_buf_printf(&all, "%s%s", b->lead ? b->lead : "", b->value ? b->value : "");
    for (size_t k = 0; k < r->n && is_good; k++) {
        const base_str given = refactor__given_for(r, items, n, k);
        const uint32_t times = count_word(all.data, r->names[k], &at);
        if (!given.ptr)
            is_good = refuse_name(x, "a call does not say what it gives for %s", r->names[k]);
        else if (has_effect(given) && (times != 1 || is_conditional(all.data, at)))
            is_good = refuse_name(x,
                times ? "a call gives something for %s that would run more or less than once"
                      : "a call gives something for %s that would not run any more",
                r->names[k]);
        else if (has_effect(given) && at < last)
            is_good = refuse(x, "what its call gives would run in another order");
        else if (has_effect(given))
            last = at;
        size_t pos = 0, from, to;
        while (is_good && b->local && code_next_identifier(given.ptr, given.len, &pos, &from, &to))
            if (to - from == strlen(b->local) && !memcmp(given.ptr + from, b->local, to - from))
                is_good = refuse_name(x, "its caller has a %s of its own", b->local);
    }
    base_buf_free(&all);
    return is_good;
}

/* May statements stand in front of the one that holds the call, which is the first thing that it evaluates? */
static bool can_lead(const refactor_file *f, uint32_t from, uint32_t to)
{
    static const char *const no_words[] = {"while", "for", "else", "elif", "and", "or", "lambda", "assert",
        "case", "switch", "match", "with", "until"};
    const char *s = f->file.text.data;
    const size_t line = tool__line_begin(s, from), end = tool__line_end(s, f->file.text.len, to);
    char *front = base_xstrndup(s + line, from - line), *behind = base_xstrndup(s + to, end - to);
    const bool is_if = has_word(front, "if");
    bool is_good =
        strspn(front, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ \t.,:=*!(") ==
        strlen(front);
    for (size_t i = 0; i < sizeof no_words / sizeof *no_words; i++) is_good &= !has_word(front, no_words[i]);
    is_good &= is_if || (!strchr(front, '(') && strspn(behind, "; \t\r") == strlen(behind));
    is_good &= !(is_if && f->language->family == REFACTOR_GO && strstr(front, "="));
    size_t before = line; /* "if (a)" on the line before, without a bracket */
    while (before > 0 && isspace((unsigned char)s[before - 1])) before--;
    const bool is_first = before == 0 || strchr("{};:", s[before - 1]);
    free(front);
    free(behind);
    return is_good && (is_first || !f->language->has_semicolons || f->language->family == REFACTOR_GO);
}

static bool check_call(const refactor *x, const refactor_place *p, const body *b, const refactor_instead *r)
{
    const refactor_file *f = &x->files[p->file];
    const base_buf *text = &f->file.text;
    uint32_t from, to;
    refactor_list call;
    if (!p->use->is_call || !refactor__call_extent(x, p, &from, &to, &call)) {
        tool__say(x->result, TOOL_REFUSED,
            "%s cannot be inlined: %s:%u uses it in another way than a call with a plain name in front. Nothing was changed.\n",
            x->name, f->path, p->use->line);
        return false;
    }
    base_str *items = base_xcalloc(call.n + 1, sizeof *items);
    for (uint32_t i = 0; i < call.n; i++)
        items[i] = (base_str){text->data + call.items[i].from, call.items[i].to - call.items[i].from};
    uint32_t own_from = from, own_to = to;
    const bool is_statement = refactor__statement_extent(text, &own_from, &own_to);
    const bool has_object = from < p->use->from;
    bool is_good =
        !refactor__has_spread(text, &call) || refuse(x, "a call gives it a list of unknown length");
    if (is_good && x->target.is_member && !has_object &&
        ((b->lead && has_word(b->lead, "self")) || (b->value && has_word(b->value, "self"))))
        is_good = refuse(x, "a call has no object in front");
    if (is_good && !b->value && !is_statement)
        is_good = refuse(x, "it has no value, and a call stands in an expression");
    if (is_good && is_statement && b->value && f->language->family == REFACTOR_GO && !strchr(b->value, '('))
        is_good = refuse(x, "a call drops its value");
    if (is_good && b->lead && b->value && !can_lead(f, from, to)) {
        tool__say(x->result, TOOL_REFUSED,
            "%s cannot be inlined: its statements cannot run in front of what calls it in %s:%u, where something else runs "
            "first or may keep it from running. Nothing was changed.\n",
            x->name, f->path, p->use->line);
        is_good = false;
    }
    is_good = is_good && runs_once(x, b, r, items, call.n) && means_the_same(x, p, b, r);
    free(items);
    free(call.items);
    return is_good;
}

/* Statements that declare something stand in a function once. */
static bool is_called_once_each(const refactor *x)
{
    for (size_t i = 0; i < x->n_places; i++)
        for (size_t k = i + 1; k < x->n_places; k++) {
            const refactor_place *a = &x->places[i], *b = &x->places[k];
            if (a->file == b->file && a->use->is_call && b->use->is_call && a->use->inside == b->use->inside)
                return false;
        }
    return true;
}

bool refactor__inline(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
    (void)q;
    const refactor_target *t = &x->target;
    const refactor_family family = t->in->language->family;
    refactor_instead r = {0};
    body b = {0};
    size_t n_calls = 0;
    if (!t->is_function || !t->definition) return refuse(x, "it is no function");
    if (family != REFACTOR_PYTHON && family != REFACTOR_GO && family != REFACTOR_C && family != REFACTOR_JS)
        return refuse(x, "inline knows C, Python, Go, JavaScript and TypeScript");
    if (!refactor__resolve(x)) return false;
    if (refactor__find_again(x))
        return refuse(x, "it is defined several times, and a call may mean any of them");
    bool is_good = read_body(x, &b);
    if (is_good) refactor__read_instead(x, "", &r);
    is_good = is_good && read_names(x, &r, &b);
    for (size_t i = 0; i < x->n_places && is_good; i++) {
        const refactor_place *p = &x->places[i];
        const bool is_listed = p->use->import != UINT32_MAX || p->use->is_exported;
        if (p->use->definition != UINT32_MAX || is_listed || p->use->role >= CODE_USE_STRING) continue;
        is_good = p->verdict == REFACTOR_SURE || refuse(x, "not all of its uses are certain");
        is_good = is_good && check_call(x, p, &b, &r);
        n_calls++;
    }
    if (is_good && !n_calls) is_good = refuse(x, "nothing calls it: delete it");
    if (is_good && b.lead && b.local && family != REFACTOR_PYTHON && !is_called_once_each(x))
        is_good = refuse_name(x, "a caller would declare its %s twice", b.local);
    is_good = is_good && refactor__delete_inlined(x, b.lead, b.value, ret, headline);
    refactor__instead_free(&r);
    free(b.lead);
    free(b.value);
    free(b.local);
    return is_good;
}
