/*
 * A definition that the file lacks (contract: add.h). A small model knows the definition that it was asked for
 * and seldom the right call for it; the place, the column, the blank lines and the imports are the program's part.
 */
#include "tools/edit/add.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/edit/choose.h"
#include "tools/edit/import_lines.h"
#include "tools/edit/placing.h"
#include "tools/edit/prototype.h"
#include "tools/edit/replace.h"
#include "tools/file/text.h"

void tool__addition_free(tool_addition *a)
{
    base_buf_free(&a->text);
    base_buf_free(&a->note);
    free(a->behind);
    free(a->signature);
    *a = (tool_addition){0};
}

/* The block's text for the place's type: what it brings beside the definition is left out, its imports apart. */
static bool choose_text(code_grammars *g, const char *path, const tool_placing *p, base_str block,
    tool_chosen *ret, base_buf *imports, base_buf *why)
{
    const char *language = p->file->language;
    const bool is_inside = p->holder != UINT32_MAX;
    const code_definition like = {.name = p->who->name,
        .parent = is_inside           ? p->file->definitions[p->holder].name
                  : p->who->is_member ? "?"
                                      : "",
        .what = p->who->what};
    if (!tool__choose(g, &(tool_parsed){path, p->text, p->file}, &like, block, ret, why)) return false;
    tool__split_imports(language, &ret->text, imports);
    if (tool__is_language(language, "c") && tool__asks_for_prototype(p->request))
        tool__drop_static(g, path, &ret->text, p->who->name);
    if (tool__is_language(language, "cpp") && !is_inside && p->is_around && !p->who->is_outside)
        tool__qualify(g, path, &ret->text, p->who->name, p->holder_name);
    while (ret->text.len && tool__is_space(ret->text.data[ret->text.len - 1])) ret->text.len--;
    return true;
}

/* In the column of the place, with the file's tabs or spaces and line ends. */
static void fit_style(const tool_placing *p, const base_buf *fresh, bool crlf, base_buf *out)
{
    base_buf placed = {0};
    size_t unit;
    const tool_indentation how =
        tool__indentation_for(p->text->data, p->text->len, fresh->data, fresh->len, &unit);
    tool__indent_block(
        &placed, fresh->data, fresh->len, p->indent.data ? p->indent.data : "", p->indent.len, how, unit);
    base_buf_putc(&placed, '\n');
    tool__line_ends(out, placed.data, placed.len, crlf);
    base_buf_free(&placed);
}

/* Blank lines that a text ends in. */
static size_t blank_lines_behind(const base_buf *text)
{
    size_t n = 0;
    for (size_t i = text->len; i > 1 && text->data[i - 1] == '\n'; n++) {
        const size_t line = tool__line_begin(text->data, i - 1);
        if (!tool__is_blank(text->data, line, i - 1)) break;
        i = line;
    }
    return n;
}

/* Something follows on the next line, and it closes no bracket: it keeps a distance. */
static bool is_followed(const base_buf *text, size_t at)
{
    while (at < text->len && (text->data[at] == ' ' || text->data[at] == '\t')) at++;
    return at < text->len && !strchr("})]#\r\n", text->data[at]);
}

/* The file up to the place, its last line ended; the distance; the new text; the rest. */
static void put_together(const tool_placing *p, const base_buf *imports, const base_buf *fresh, bool crlf,
    base_buf *out, size_t *ret_from)
{
    const base_buf *text = p->text;
    const char *newline = crlf ? "\r\n" : "\n";
    const bool has_relative = p->relative != UINT32_MAX;
    size_t import_at = imports->len ? tool__behind_imports(p->file->language, text) : 0;
    if (import_at > p->at) import_at = 0;
    base_buf_add(out, text->data, import_at);
    tool__line_ends(out, imports->data ? imports->data : "", imports->len, crlf);
    if (imports->len && !import_at) base_buf_puts(out, newline);
    base_buf_add(out, text->data + import_at, p->at - import_at);
    if (out->len && out->data[out->len - 1] != '\n') base_buf_puts(out, newline);
    const bool is_behind =
        has_relative || p->holder == UINT32_MAX || p->at > p->file->definitions[p->holder].from;
    for (size_t i = blank_lines_behind(out); is_behind && out->len && i < p->gap; i++)
        base_buf_puts(out, newline);
    *ret_from = out->len;
    base_buf_add(out, fresh->data, fresh->len);
    for (size_t i = 0; has_relative && is_followed(text, p->at) && i < p->gap; i++)
        base_buf_puts(out, newline);
    base_buf_add(out, text->data + p->at, text->len - p->at);
}

static char *signature_of(code_grammars *g, const char *path, const base_buf *added, const char *name)
{
    code_file *f = code_parse(g, path, added->data, added->len);
    base_buf out = {0};
    for (uint32_t i = 0; i < f->n_definitions && !out.len; i++) {
        const code_definition *d = &f->definitions[i];
        if (!strcmp(d->name, name)) tool__put_signature(added->data, d, &out);
    }
    code_file_free(f);
    return out.len ? base_buf_take(&out) : NULL;
}

/* The whole of it for one parsed file; the caller frees what *p and *ret hold. */
static bool add(
    code_grammars *g, const char *path, tool_placing *p, base_str block, tool_addition *ret, base_buf *why)
{
    tool_chosen c = {0};
    base_buf imports = {0}, fresh = {0};
    size_t from = 0;
    const bool crlf = tool__text_style(p->text->data, p->text->len).crlf;
    bool is_good = tool__find_type(p, why) && choose_text(g, path, p, block, &c, &imports, why);
    if (is_good) {
        tool__find_place(p, &c.text);
        fit_style(p, &c.text, crlf, &fresh);
        put_together(p, &imports, &fresh, crlf, &ret->text, &from);
        is_good = tool__syntax_holds(g, path, p->text, &ret->text, why);
    }
    if (is_good) {
        ret->line = (uint32_t)tool__line_of(ret->text.data, from);
        ret->line_end = (uint32_t)tool__line_of(ret->text.data, from + (fresh.len ? fresh.len - 1 : 0));
        ret->is_kin = p->is_kin;
        if (p->relative != UINT32_MAX) ret->behind = base_xstrdup(p->file->definitions[p->relative].name);
        if (c.note.len) base_buf_add(&ret->note, c.note.data, c.note.len);
        ret->signature = signature_of(g, path, &c.text, p->who->name);
    }
    base_buf_free(&c.text);
    base_buf_free(&c.note);
    base_buf_free(&imports);
    base_buf_free(&fresh);
    return is_good;
}

/*
 * The block with `self` as the first parameter of a function of Python that reads it and does not have it: a small model
 * that is asked for a method often writes one so. False: nothing is missing. *ret is the caller's to free.
 */
static bool give_self(const tool_newcomer *who, base_str block, base_buf *ret)
{
    const char *end = block.ptr + block.len, *at = block.ptr;
    const size_t n = strlen(who->name);
    if (who->is_member || strcmp(who->what, "function") || !code_has_identifier(block.ptr, block.len, "self"))
        return false;
    /* What an inner function or class of it has is not its own. */
    if (code_has_identifier(block.ptr, block.len, "staticmethod") || memmem(block.ptr, block.len, "(self", 5))
        return false;
    while ((at = memmem(at, (size_t)(end - at), "def ", 4))) {
        at += 4;
        if ((size_t)(end - at) <= n || memcmp(at, who->name, n) || at[n] != '(') continue;
        const char *first = at + n + 1, *next = first;
        while (next < end && tool__is_space(*next)) next++;
        base_buf_add(ret, block.ptr, (size_t)(first - block.ptr));
        base_buf_puts(ret, next < end && *next == ')' ? "self" : "self, ");
        base_buf_add(ret, first, (size_t)(end - first));
        return true;
    }
    return false;
}

bool tool__add_definition(code_grammars *g, const char *path, const base_buf *text, const char *name,
    base_str block, const char *request, tool_addition *ret, base_buf *why)
{
    static const char empty[] = "";
    const base_buf whole = {.data = text->data ? text->data : (char *)empty, .len = text->len};
    tool_newcomer who = {0};
    base_buf method = {0};
    const char *language = code_language(path, whole.data, whole.len);
    if (!tool__find_newcomer(g, path, block, language, name, &who)) {
        base_buf_printf(why,
            "The block defines nothing, so nothing was added. Next: the same call with the whole definition "
            "of %.100s in the fenced block.\n",
            name);
        return false;
    }
    if (tool__is_language(language, "python") && give_self(&who, block, &method)) {
        block = (base_str){method.data, method.len};
        who.is_member = true;
    }
    code_file *f = code_parse(g, path, whole.data, whole.len);
    tool_placing p = {
        .file = f, .text = &whole, .who = &who, .request = request, .holder_name = tool__name_holder(name)};
    const bool is_good = add(g, path, &p, block, ret, why);
    tool__placing_free(&p);
    tool__newcomer_free(&who);
    base_buf_free(&method);
    code_file_free(f);
    return is_good;
}
