/*
 * One whole definition replaced by a block: what the rewrite tool does, as a pure function of texts.
 *
 * A weak model writes more than it was asked for (imports, the class around a method, the other functions of
 * the file, a call at the end) and rarely in the right column. So the block is parsed like the file: the
 * definition is taken out of it, lines that the file already has are dropped, new helper definitions stay,
 * the rest is left out and said. What surrounds the old definition stays as it is: comments above, decorators
 * the block does not repeat, a docstring that follows.
 */
#include "tools/edit/choose.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/result/result.h"
#include "tools/file/text.h"
#include "tools/edit/replace.h"

/* ---- the replacement ---- */

static bool same_text(const char *a, size_t na, const char *b, size_t nb)
{
    /* Equal but for line ends and spaces at the ends of lines. */
    size_t i = 0, j = 0;
    for (;;) {
        size_t ei = tool__line_end(a, na, i), ej = tool__line_end(b, nb, j), ti = ei, tj = ej;
        while (ti > i && tool__is_space(a[ti - 1])) ti--;
        while (tj > j && tool__is_space(b[tj - 1])) tj--;
        if (ti - i != tj - j || memcmp(a + i, b + j, ti - i) != 0) return false;
        if (ei == na || ej == nb) return tool__is_blank(a, ei, na) && tool__is_blank(b, ej, nb);
        i = ei + 1;
        j = ej + 1;
    }
}

/* The least indentation of the lines behind the first one. */
static size_t least_indent(const char *text, size_t from, size_t to)
{
    size_t least = SIZE_MAX;
    for (size_t at = tool__line_end(text, to, from) + 1; at < to; at = tool__line_end(text, to, at) + 1) {
        size_t n = 0;
        while (at + n < to && (text[at + n] == ' ' || text[at + n] == '\t')) n++;
        if (at + n < to && !tool__is_space(text[at + n]) && n < least) least = n;
    }
    return least;
}

/* Where the last line of a head of several lines begins ("def f(", "    self,", ") -> None:"); of one line: from. */
static size_t last_head_line(const char *text, size_t from, size_t to)
{
    int depth = 0;
    for (size_t at = from, end; at < to; at = end + 1) {
        end = tool__line_end(text, to, at);
        for (size_t i = at; i < end; i++)
            depth += (text[i] == '(' || text[i] == '[') - (text[i] == ')' || text[i] == ']');
        size_t last = end;
        while (last > at && tool__is_space(text[last - 1])) last--;
        if (depth == 0 && last > at && strchr(":{", text[last - 1])) return at;
        if (depth < 0) break;
    }
    return from;
}

/* The chosen text at the old definition's column; `line`, `indent` and `to` are bytes of the file. */
static void place(
    base_buf *out, const base_buf *chosen_text, const base_buf *file, size_t line, size_t indent, size_t to)
{
    const char *block = chosen_text->data ? chosen_text->data : "";
    size_t n = chosen_text->len, unit, target = indent - line, rest = least_indent(block, 0, n);
    tool_indentation how = tool__indentation_for(file->data + line, to - line, block, n, &unit);
    if (how == TOOL_INDENT_KEEP && !tool__indent_char(file->data + line, to - line))
        how = tool__indentation_for(file->data, file->len, block, n, &unit);
    const bool is_flat = n && block[0] != ' ' && block[0] != '\t' && target && how == TOOL_INDENT_KEEP;
    if (is_flat && rest != SIZE_MAX && rest > target && rest == least_indent(file->data, line, to)) {
        /* Only the first line lost its indentation, as when it was copied from the middle of a line. */
        base_buf_add(out, file->data + line, target);
        base_buf_add(out, block, n);
        return;
    }
    const size_t head = is_flat ? last_head_line(block, 0, n) : 0, body = least_indent(block, head, n);
    if (head && body != SIZE_MAX && body > target &&
        body == least_indent(file->data, last_head_line(file->data, indent, to), to)) {
        /* A head of several lines stands at the left edge, and the body where it stood. */
        const size_t head_to = tool__line_end(block, n, head) + 1;
        tool__indent_block(out, block, head_to, file->data + line, target, how, unit);
        base_buf_add(out, block + head_to, n - head_to);
        return;
    }
    tool__indent_block(out, block, n, file->data + line, target, how, unit);
}

/*
 * C: an operator that is an argument of a macro, "assert_int(a, ==, 2)", is no error of the text, and the grammar has no place for it.
 * A number stands there instead.
 */
static void fill_lone_operators(base_buf *text)
{
    static const char operators[] = "=!<>+-*/&|^%";
    char *end = text->data + text->len;
    for (char *comma = text->data; comma && (comma = memchr(comma, ',', (size_t)(end - comma)));) {
        char *from = comma + 1;
        while (from < end && *from == ' ') from++;
        char *to = from;
        while (to < end && strchr(operators, *to) && *to) to++;
        char *next = to;
        while (next < end && *next == ' ') next++;
        if (to > from && next < end && *next == ',') memset(from, '0', (size_t)(to - from));
        comma++;
    }
}

/* The syntax errors of the text, but for those. */
static uint32_t count_errors(code_grammars *g, const char *path, const base_buf *text)
{
    base_buf filled = {0};
    base_buf_add(&filled, text->data ? text->data : "", text->len);
    fill_lone_operators(&filled);
    code_file *f = code_parse(g, path, filled.data ? filled.data : "", filled.len);
    const uint32_t n = f->n_errors;
    code_file_free(f);
    base_buf_free(&filled);
    return n;
}

bool tool__syntax_holds(
    code_grammars *g, const char *path, const base_buf *old_text, const base_buf *new_text, base_buf *why)
{
    code_file *before = code_parse(g, path, old_text->data ? old_text->data : "", old_text->len);
    code_file *after = code_parse(g, path, new_text->data ? new_text->data : "", new_text->len);
    bool holds = !before->language || !after->language || after->n_errors <= before->n_errors;
    const bool is_c = after->language && (!strcmp(after->language, "c") || !strcmp(after->language, "cpp"));
    if (!holds && is_c) holds = count_errors(g, path, new_text) <= count_errors(g, path, old_text);
    if (!holds) {
        size_t line = after->error_line ? after->error_line : 1;
        size_t from = tool__line_start(new_text->data, new_text->len, line),
               end = tool__line_end(new_text->data, new_text->len, from);
        base_buf_printf(why,
            "With this text the file does not parse (%s): near line %zu,\n"
            "%.*s\n"
            "Nothing was changed. Next: the same call with the syntax corrected.\n",
            after->language, line, (int)(end - from < 200 ? end - from : 200), new_text->data + from);
    }
    code_file_free(before);
    code_file_free(after);
    return holds;
}

/* "typedef struct a {...} a;" is two definitions of one name; a block without typedef means the inner one. */
static const code_definition *inner_of_typedef(
    const code_file *f, const code_definition *d, const base_buf *text, const base_buf *block)
{
    static const char word[] = "typedef";
    size_t n = sizeof word - 1, first = 0;
    while (first < block->len && tool__is_space(block->data[first])) first++;
    bool had = d->to - d->from > n && !memcmp(text->data + d->from, word, n);
    bool has = block->len - first > n && !memcmp(block->data + first, word, n);
    for (uint32_t i = 0; had && !has && i < f->n_definitions; i++) {
        const code_definition *x = &f->definitions[i];
        if (x->from > d->from && x->to < d->to && !strcmp(x->name, d->name) && tool__is_rewritable(x))
            return x;
    }
    return d;
}

/*
 * "export" and "pub" are not part of what a function does, and weak models forget them: how many bytes of the old text
 * stay in front.
 */
static size_t forgotten_words(const char *old, size_t n_old, const char *block, size_t n_block)
{
    static const char *const words[] = {"export default ", "export ", "pub(crate) ", "pub "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]), n_first = strcspn(words[i], " (");
        if (n_old > n && !memcmp(old, words[i], n))
            return n_block > n_first && !memcmp(block, words[i], n_first) ? 0 : n;
    }
    return 0;
}

/* The bytes of the file that give way to a new definition. */
typedef struct old_place {
    size_t from, to;
    size_t line, indent; /* where its line begins, and that line's first word */
} old_place;

/* Decorators and annotations that the block does not repeat stay, and so do words in front that it forgot. */
static old_place find_place(const base_buf *text, const code_definition *d, const tool_chosen *c)
{
    const char *file = text->data, *block = c->text.data;
    size_t from = d->from, to = d->to < text->len ? d->to : text->len, line = tool__line_begin(file, from);
    const size_t name_line = tool__line_begin(file, d->name_from);
    size_t first = 0; /* byte of the block where its words begin */
    while (first < c->text.len && tool__is_space(block[first])) first++;
    if (file[from] == '@' && first < c->text.len && block[first] != '@' && name_line > from)
        from = line = name_line;
    size_t indent = line;
    while (indent < text->len && (file[indent] == ' ' || file[indent] == '\t')) indent++;
    from += forgotten_words(file + from, to - from, block + first, c->text.len - first);
    /*
     * White space in front of it is replaced with it; "export " too where the block has it, or something in
     * its place.
     */
    if (indent >= from || c->has_prefix) from = tool__is_start(file, line, from) ? line : from;
    while (to > from && tool__is_space(file[to - 1])) to--;
    return (old_place){from, to, line, indent};
}

/* One ";" or "," where both texts end in one, or one of them does. */
static void match_ends(const base_buf *text, old_place *p, base_buf *block)
{
    const char *file = text->data;
    while (block->len && tool__is_space(block->data[block->len - 1])) block->len--;
    const char last = block->len ? block->data[block->len - 1] : '\0';
    if (p->to < text->len && (last == ';' || last == ',') && file[p->to] == last)
        p->to++;
    else if (last == ';' && p->to > p->from && file[p->to - 1] == '}' &&
             !tool__is_blank(file, p->to, tool__line_end(file, text->len, p->to)))
        block->len--; /* more follows behind the old one's brace: "} name;" */
    if (block->len && p->to > p->from && file[p->to - 1] == ';' && block->data[block->len - 1] == '}')
        base_buf_putc(block, ';');
}

/* The block as it will stand at its place, with the file's indentation and line ends. */
static void fit(const base_buf *text, const old_place *p, const base_buf *block, base_buf *ret)
{
    const tool_text_style style = tool__text_style(text->data, text->len);
    base_buf body = {0};
    place(&body, block, text, p->line, p->indent, p->to);
    size_t skip = 0;
    if (p->from != p->line) /* it goes behind something on its line */
        while (skip < body.len && (body.data[skip] == ' ' || body.data[skip] == '\t')) skip++;
    tool__line_ends(ret, body.data ? body.data + skip : "", body.len - skip, style.crlf);
    base_buf_free(&body);
}

bool tool__replace_definition(code_grammars *g, const char *path, const base_buf *text, const char *name,
    base_str block, tool_replaced *ret, base_buf *why)
{
    code_file *f = tool__parse_for(g, path, text->data ? text->data : "", text->len, name);
    tool_chosen c = {0};
    base_buf fitted = {0};
    uint32_t at;
    bool is_good = tool__find_definition(f, path, text, name, &at, why) &&
                   tool__choose(g, &(tool_parsed){path, text, f}, &f->definitions[at], block, &c, why);
    if (!is_good) goto out;
    const code_definition *d = inner_of_typedef(f, &f->definitions[at], text, &c.text);
    if (!c.text.data) base_buf_puts(&c.text, "");
    old_place p = find_place(text, d, &c);
    match_ends(text, &p, &c.text);
    fit(text, &p, &c.text, &fitted);
    is_good = !same_text(text->data + p.from, p.to - p.from, fitted.data ? fitted.data : "", fitted.len);
    if (!is_good) {
        base_buf_printf(why,
            "The new text of %s is the same as the old: nothing was changed. Look for the wrong line in it, "
            "then the same call with that line corrected.\n",
            d->name);
        goto out;
    }
    base_buf_add(&ret->text, text->data, p.from);
    base_buf_add(&ret->text, fitted.data, fitted.len);
    base_buf_add(&ret->text, text->data + p.to, text->len - p.to);
    is_good = tool__syntax_holds(g, path, text, &ret->text, why);
    if (!is_good) goto out;
    ret->line = (uint32_t)tool__line_of(ret->text.data, p.from);
    ret->line_end = (uint32_t)tool__line_of(ret->text.data, p.from + (fitted.len ? fitted.len - 1 : 0));
    if (c.note.len) base_buf_add(&ret->note, c.note.data, c.note.len);
out:
    base_buf_free(&c.text);
    base_buf_free(&c.note);
    base_buf_free(&fitted);
    code_file_free(f);
    return is_good;
}

void tool__replaced_free(tool_replaced *r)
{
    base_buf_free(&r->text);
    base_buf_free(&r->note);
}
