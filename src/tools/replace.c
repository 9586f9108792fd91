/*
 * One whole definition replaced by a block: what the rewrite tool does, as a pure function of texts.
 *
 * A weak model writes more than it was asked for (imports, the class around a method, the other functions of the file, a call
 * at the end) and rarely in the right column. So the block is parsed like the file: the definition is taken out of it, lines
 * that the file already has are dropped, new helper definitions stay, the rest is left out and said. What surrounds the old
 * definition stays as it is: comments above, decorators the block does not repeat, a docstring that follows.
 */
#include "tools/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t line_begin(const char *text, size_t at)
{
    while (at && text[at - 1] != '\n') at--;
    return at;
}

static size_t line_end(const char *text, size_t n, size_t at)
{
    const char *end = at < n ? memchr(text + at, '\n', n - at) : NULL;
    return end ? (size_t)(end - text) : n;
}

static bool blank_between(const char *text, size_t from, size_t to)
{
    while (from < to && is_space(text[from])) from++;
    return from >= to;
}

/* ---- which definition is meant ---- */

code_file *tool__parse_for(code_grammars *g, const char *path, const char *text, size_t n, const char *name)
{
    code_file *f = code_parse(g, path, text, n);
    uint32_t nothing;
    if (!f->n_errors || code_find_definition(f, name, &nothing, 1)) return f;
    /* A syntax error in front of it hides it from a grammar, not from a search by words. */
    code_file *by_words = code_parse(NULL, path, text, n);
    if (!code_find_definition(by_words, name, &nothing, 1)) {
        code_file_free(by_words);
        return f;
    }
    code_file_free(f);
    return by_words;
}

static void show_definition(base_buf *out, const code_definition *d)
{
    if (d->parent && *d->parent) base_buf_printf(out, "%s.", d->parent);
    base_buf_printf(out, "%s (%s, lines %u-%u)", d->name, d->what, d->line, d->line_end);
}

static bool is_rewritable(const code_definition *d)
{
    return strcmp(d->what, "variable") != 0 && strcmp(d->what, "field") != 0;
}

static void list_definitions(const code_file *f, base_buf *why)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        if (!is_rewritable(&f->definitions[i]) || f->definitions[i].is_declaration) continue;
        if (shown == 24) {
            base_buf_puts(why, ", ...");
            break;
        }
        base_buf_puts(why, shown++ ? ", " : "");
        show_definition(why, &f->definitions[i]);
    }
    base_buf_puts(why, shown ? ".\n" : "no definitions.\n");
}

bool tool__find_definition(const code_file *f, const char *path, const base_buf *text, const char *name,
    uint32_t *ret, base_buf *why)
{
    uint32_t found[16], kept = 0;
    /* "name:120" says which one of several. */
    const char *colon = strrchr(name, ':');
    unsigned long line =
        colon && colon > name && colon[-1] != ':' && colon[1] ? strtoul(colon + 1, NULL, 10) : 0;
    char *plain = base_xstrndup(name, line ? (size_t)(colon - name) : strlen(name));
    uint32_t n = code_find_definition(f, plain, found, 16), many = n < 16 ? n : 16;
    free(plain);
    bool has_real = false;
    for (uint32_t i = 0; i < many; i++) has_real |= !f->definitions[found[i]].is_declaration;
    for (uint32_t i = 0; i < many; i++) {
        const code_definition *d = &f->definitions[found[i]];
        if (has_real && d->is_declaration) continue;
        if (line && (line < d->line || line > d->line_end)) continue;
        found[kept++] = found[i];
    }
    if (kept == 1 || (kept > 1 && n == 1)) {
        *ret = found[0];
        return true;
    }
    base_buf shown = {0};
    tool__path_show(&shown, path);
    if (!kept) {
        base_buf_printf(why, "%s has no definition \"%.100s\". It has ", shown.data, name);
        list_definitions(f, why);
        base_buf_puts(why, "Next: rewrite with one of these as \"name\".\n");
    } else {
        base_buf_printf(why, "\"%.100s\" names several definitions of %s: ", name, shown.data);
        for (uint32_t i = 0; i < kept; i++) {
            base_buf_puts(why, i ? ", " : "");
            show_definition(why, &f->definitions[found[i]]);
        }
        const code_definition *d = &f->definitions[found[0]];
        base_buf_puts(why, ".\nNext: rewrite {\"path\": ");
        tool__quote(why, path);
        base_buf_printf(why, ", \"name\": \"%s%s%s:%u\"} for the first, with the same block.\n",
            d->parent ? d->parent : "", d->parent && *d->parent ? "." : "", d->name, d->line);
    }
    base_buf_free(&shown);
    return false;
}

/* ---- what of the block is meant ---- */

typedef struct chosen {
    base_buf text; /* at column 0 */
    base_buf note; /* what was left out */
} chosen;

static bool has_line(const base_buf *text, const char *line, size_t n)
{
    while (n && is_space(line[n - 1])) n--;
    while (n && is_space(*line)) line++, n--;
    for (size_t at = 0; at < text->len;) {
        size_t end = line_end(text->data, text->len, at), from = at, to = end;
        while (from < to && is_space(text->data[from])) from++;
        while (to > from && is_space(text->data[to - 1])) to--;
        if (to - from == n && !memcmp(text->data + from, line, n)) return true;
        at = end + 1;
    }
    return false;
}

static bool is_comment_line(const char *line, size_t n)
{
    while (n && is_space(*line)) line++, n--;
    return n && ((*line == '#' && strncmp(line, "#include", n < 8 ? n : 8) != 0) ||
                    (n > 1 && !strncmp(line, "//", 2)) || (n > 1 && !strncmp(line, "/*", 2)) || *line == '*');
}

/* Lines in front of the definition: those the file does not have yet; inside a class or function only comments. */
static void take_leading(
    chosen *c, const base_buf *file, const char *block, size_t from, size_t to, bool is_nested)
{
    size_t left_out = 0;
    bool after_kept = false;
    for (size_t at = from; at < to;) {
        size_t end = line_end(block, to, at);
        if (blank_between(block, at, end)) {
            if (after_kept) base_buf_putc(&c->text, '\n');
        } else if (has_line(file, block + at, end - at)) {
            /* already there */
        } else if (is_nested && !is_comment_line(block + at, end - at)) {
            left_out++;
        } else {
            base_buf_add(&c->text, block + at, end - at);
            base_buf_putc(&c->text, '\n');
            after_kept = true;
        }
        at = end + 1;
    }
    if (left_out) base_buf_printf(&c->note, "Left out: %zu lines in front of the definition. ", left_out);
}

static bool is_top(const code_definition *d)
{
    return !d->parent || !*d->parent;
}

static bool file_has(const code_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (is_top(&f->definitions[i]) && !strcmp(f->definitions[i].name, name)) return true;
    return false;
}

/* The block's lines of a definition, brought to column 0. */
static void take_definition(base_buf *out, const char *block, size_t n, const code_definition *d)
{
    size_t from = line_begin(block, d->from), to = d->to < n ? d->to : n;
    if (!blank_between(block, from, d->from))
        from = d->from; /* something stands in front of it on its line */
    /* "};" and "}," belong to it when nothing else follows on the line. */
    size_t end = line_end(block, n, to);
    if (end > to && (block[to] == ';') && blank_between(block, to + 1, end)) to++;
    base_buf part = {0};
    base_buf_add(&part, block + from, to - from);
    base_buf_putc(&part, '\n');
    tool__rebase(out, part.data, part.len, "", 0, false);
    base_buf_free(&part);
}

static uint32_t target_in(const code_file *b, const code_definition *old)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < b->n_definitions; i++) {
        const code_definition *d = &b->definitions[i];
        if (strcmp(d->name, old->name)) continue;
        bool same_parent = old->parent && d->parent && !strcmp(old->parent, d->parent);
        if (same_parent) return i;
        if (best == UINT32_MAX || (b->definitions[best].is_declaration && !d->is_declaration)) best = i;
    }
    return best;
}

/* Languages in which a method alone is no text of the language. */
static const char *const class_only[] = {
    "javascript", "typescript", "tsx", "java", "c_sharp", "csharp", "php", "kotlin", "ruby"};
#define WRAP_HEAD "class KvistBlock {\n"

static bool wants_wrap(const char *language)
{
    for (size_t i = 0; language && i < sizeof class_only / sizeof *class_only; i++)
        if (!strcmp(language, class_only[i])) return true;
    return false;
}

static void refuse_block(const code_file *b, const base_buf *file, const code_definition *old, base_buf *why)
{
    const char *other = NULL;
    for (uint32_t i = 0; i < b->n_definitions && !other; i++)
        if (is_top(&b->definitions[i]) && is_rewritable(&b->definitions[i])) other = b->definitions[i].name;
    size_t end = line_end(file->data, file->len, old->name_from),
           from = line_begin(file->data, old->name_from);
    while (from < end && is_space(file->data[from])) from++;
    while (end > from && is_space(file->data[end - 1])) end--;
    if (other)
        base_buf_printf(why, "The block defines %.100s, not %s. ", other, old->name);
    else
        base_buf_printf(why, "The block does not define %s. ", old->name);
    base_buf_printf(why,
        "Nothing was changed. Next: the same call with the whole definition in the fenced block, beginning "
        "with\n%.*s\n",
        (int)(end - from < 200 ? end - from : 200), file->data + from);
}

static bool choose(code_grammars *g, const char *path, const base_buf *file, const code_file *f,
    const code_definition *old, base_str block, chosen *ret, base_buf *why)
{
    base_buf clean = {0}, flat = {0}, wrapped = {0};
    bool is_good = false;
    tool__normalise_block(&clean, block.ptr, block.len);
    tool__rebase(&flat, clean.data ? clean.data : "", clean.len, "", 0, false);
    if (!flat.data) base_buf_puts(&flat, "");
    const base_buf *text = &flat;
    code_file *b = tool__parse_for(g, path, flat.data, flat.len, old->name);
    uint32_t t = target_in(b, old);
    if (t == UINT32_MAX && wants_wrap(f->language)) {
        base_buf_puts(&wrapped, WRAP_HEAD);
        base_buf_add(&wrapped, flat.data, flat.len);
        base_buf_puts(&wrapped, "}\n");
        code_file *again = code_parse(g, path, wrapped.data, wrapped.len);
        t = target_in(again, old);
        if (t != UINT32_MAX) {
            code_file_free(b);
            b = again;
            text = &wrapped;
        } else {
            code_file_free(again);
        }
    }
    if (!flat.len) {
        base_buf_puts(why, "The fenced block is empty: nothing was changed. ");
        refuse_block(b, file, old, why);
        goto out;
    }
    if (t == UINT32_MAX) {
        refuse_block(b, file, old, why);
        goto out;
    }
    const code_definition *d = &b->definitions[t];
    const char *language = code_language(path, file->data, file->len);
    bool is_nested = !is_top(old), is_python = language && !strcmp(language, "python");
    if (!is_top(d)) {
        /* The class around a method was repeated: the method alone is meant. */
        bool is_wrapper = text == &wrapped;
        if (!is_wrapper) base_buf_printf(&ret->note, "Only %s was taken from the block. ", d->name);
        take_definition(&ret->text, text->data, text->len, d);
        is_good = true;
        goto out;
    }
    size_t at = 0, left_out = 0;
    bool is_behind = false;
    for (uint32_t i = 0; i < b->n_definitions; i++) {
        const code_definition *x = &b->definitions[i];
        if (!is_top(x) || x->from < at || (!is_rewritable(x) && i != t)) continue;
        size_t begin = line_begin(text->data, x->from);
        if (!is_behind) take_leading(ret, file, text->data, at, begin > at ? begin : at, is_nested);
        if (is_behind && !blank_between(text->data, at, begin > at ? begin : at)) left_out++;
        bool is_new = i != t && !is_nested && !file_has(f, x->name);
        if (i == t || is_new) {
            if (is_new && is_behind) base_buf_puts(&ret->text, is_python ? "\n\n" : "\n");
            take_definition(&ret->text, text->data, text->len, x);
            if (is_new && !is_behind) base_buf_puts(&ret->text, "\n");
        } else {
            base_buf_printf(&ret->note, "Left out: %.100s, which this call does not name. ", x->name);
        }
        is_behind |= i == t;
        at = x->to;
        if (at < text->len && text->data[at] == ';') at++;
    }
    for (; at < text->len;) {
        size_t end = line_end(text->data, text->len, at);
        if (!blank_between(text->data, at, end) && !has_line(file, text->data + at, end - at)) left_out++;
        at = end + 1;
    }
    if (left_out) base_buf_puts(&ret->note, "Left out: code behind the definition. ");
    is_good = true;
out:
    code_file_free(b);
    base_buf_free(&clean);
    base_buf_free(&flat);
    base_buf_free(&wrapped);
    return is_good;
}

/* ---- the replacement ---- */

static bool same_text(const char *a, size_t na, const char *b, size_t nb)
{
    /* Equal but for line ends and spaces at the ends of lines. */
    size_t i = 0, j = 0;
    for (;;) {
        size_t ei = line_end(a, na, i), ej = line_end(b, nb, j), ti = ei, tj = ej;
        while (ti > i && is_space(a[ti - 1])) ti--;
        while (tj > j && is_space(b[tj - 1])) tj--;
        if (ti - i != tj - j || memcmp(a + i, b + j, ti - i) != 0) return false;
        if (ei == na || ej == nb) return blank_between(a, ei, na) && blank_between(b, ej, nb);
        i = ei + 1;
        j = ej + 1;
    }
}

bool tool__syntax_holds(
    code_grammars *g, const char *path, const base_buf *old_text, const base_buf *new_text, base_buf *why)
{
    code_file *before = code_parse(g, path, old_text->data ? old_text->data : "", old_text->len);
    code_file *after = code_parse(g, path, new_text->data ? new_text->data : "", new_text->len);
    bool holds = !before->language || !after->language || after->n_errors <= before->n_errors;
    if (!holds) {
        size_t line = after->error_line ? after->error_line : 1;
        size_t from = tool__line_start(new_text->data, new_text->len, line),
               end = line_end(new_text->data, new_text->len, from);
        base_buf_printf(why,
            "With this text the file does not parse (%s): near line %zu,\n%.*s\nNothing was changed. Next: "
            "the same "
            "call with the syntax corrected.\n",
            after->language, line, (int)(end - from < 200 ? end - from : 200), new_text->data + from);
    }
    code_file_free(before);
    code_file_free(after);
    return holds;
}

bool tool__replace_definition(code_grammars *g, const char *path, const base_buf *text, const char *name,
    base_str block, base_buf *ret_text, uint32_t *ret_line, uint32_t *ret_line_end, base_buf *note,
    base_buf *why)
{
    code_file *f = tool__parse_for(g, path, text->data ? text->data : "", text->len, name);
    chosen c = {0};
    base_buf body = {0}, ends = {0};
    uint32_t at;
    bool is_good = tool__find_definition(f, path, text, name, &at, why) &&
                   choose(g, path, text, f, &f->definitions[at], block, &c, why);
    if (!is_good) goto out;
    const code_definition *d = &f->definitions[at];
    size_t from = d->from, to = d->to < text->len ? d->to : text->len, line = line_begin(text->data, from);
    /* Decorators and annotations that the block does not repeat stay. */
    size_t name_line = line_begin(text->data, d->name_from);
    if (text->data[from] == '@' && c.text.len && c.text.data[0] != '@' && name_line > from)
        from = line = name_line;
    size_t indent = line;
    while (indent < text->len && (text->data[indent] == ' ' || text->data[indent] == '\t')) indent++;
    if (indent >= from || line == from) {
        from = line; /* nothing but white space in front: it is replaced with the rest */
    } else if (c.text.len > from - indent && !memcmp(c.text.data, text->data + indent, from - indent)) {
        from = line; /* "export " stands in both */
    }
    while (to > from && is_space(text->data[to - 1])) to--;
    while (c.text.len && is_space(c.text.data[c.text.len - 1])) c.text.len--;
    if (c.text.len && to < text->len && text->data[to] == ';' && c.text.data[c.text.len - 1] == ';') to++;
    if (c.text.len && to > from && text->data[to - 1] == ';' && c.text.data[c.text.len - 1] == '}')
        base_buf_putc(&c.text, ';');
    tool_text_style style = tool__text_style(text->data, text->len);
    tool__rebase(
        &body, c.text.data ? c.text.data : "", c.text.len, text->data + line, indent - line, style.tabs);
    size_t skip = 0;
    if (from != line) /* it goes behind something on its line */
        while (skip < body.len && (body.data[skip] == ' ' || body.data[skip] == '\t')) skip++;
    tool__line_ends(&ends, body.data ? body.data + skip : "", body.len - skip, style.crlf);
    if (same_text(text->data + from, to - from, ends.data ? ends.data : "", ends.len)) {
        base_buf_printf(why,
            "The new text of %s is the same as the old: nothing was changed. Look for the wrong line in it, "
            "then "
            "the same call with that line corrected.\n",
            d->name);
        is_good = false;
        goto out;
    }
    base_buf_add(ret_text, text->data, from);
    base_buf_add(ret_text, ends.data, ends.len);
    base_buf_add(ret_text, text->data + to, text->len - to);
    if (!tool__syntax_holds(g, path, text, ret_text, why)) {
        is_good = false;
        goto out;
    }
    *ret_line = (uint32_t)tool__line_of(ret_text->data, from);
    *ret_line_end = (uint32_t)tool__line_of(ret_text->data, from + (ends.len ? ends.len - 1 : 0));
    if (c.note.len) base_buf_add(note, c.note.data, c.note.len);
out:
    base_buf_free(&c.text);
    base_buf_free(&c.note);
    base_buf_free(&body);
    base_buf_free(&ends);
    code_file_free(f);
    return is_good;
}
