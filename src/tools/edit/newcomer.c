/* What a fenced block defines, before it stands in the file (contract: newcomer.h). */
#include "tools/edit/newcomer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/edit/choose.h"
#include "tools/file/text.h"

bool tool__is_language(const char *language, const char *name)
{
    return language && !strcmp(language, name);
}

char *tool__name_holder(const char *name)
{
    const char *last = code_last_name(name);
    size_t n = (size_t)(last - name);
    while (n && strchr(".:", name[n - 1])) n--;
    if (!n) return NULL;
    char *whole = base_xstrndup(name, n), *holder = base_xstrdup(code_last_name(whole));
    free(whole);
    return holder;
}

bool tool__is_holder(const char *language, const code_definition *d)
{
    static const char *const kinds[] = {"class", "interface", "struct", "enum", "trait", "object", "union"};
    /* In these, functions stand outside of types. */
    if (tool__is_language(language, "go") || tool__is_language(language, "c")) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(d->what, kinds[i])) return true;
    return false;
}

void tool__newcomer_free(tool_newcomer *n)
{
    free(n->name);
    free(n->what);
    free(n->holder);
    free(n->receiver);
    *n = (tool_newcomer){0};
}

static bool begins_with_self(const char *text, size_t n, size_t at)
{
    static const char *const firsts[] = {"self", "cls", "&self", "&mut self", "mut self"};
    while (at < n && text[at] != '(' && text[at] != '\n') at++;
    if (at == n || text[at] != '(') return false;
    for (at++; at < n && tool__is_space(text[at]); at++) {
    }
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        size_t m = strlen(firsts[i]);
        if (n - at > m && !memcmp(text + at, firsts[i], m) && strchr(",:) \n", text[at + m])) return true;
    }
    return false;
}

static bool is_top(const code_definition *d)
{
    return !d->parent || !*d->parent;
}

/* What a definition of the parsed block is, as a newcomer. */
static tool_newcomer describe(const tool_reading *r)
{
    const code_file *f = r->file;
    const code_definition *d = &f->definitions[r->at];
    const bool is_wrapped = r->wrapped != NULL;
    tool_newcomer ret = {.name = base_xstrdup(d->name), .what = base_xstrdup(d->what)};
    bool is_in_type = false;
    for (uint32_t i = 0; i < f->n_definitions && !is_wrapped; i++) {
        const code_definition *x = &f->definitions[i];
        is_in_type |= i != r->at && tool__is_holder(f->language, x) && x->from < d->from && x->to >= d->to;
    }
    ret.is_outside = tool__is_language(f->language, "cpp") && !is_in_type && !is_wrapped && !is_top(d);
    if ((is_in_type || ret.is_outside) && !is_top(d)) ret.holder = base_xstrdup(code_last_name(d->parent));
    if (tool__is_language(f->language, "go") && !strcmp(d->what, "method") && !is_top(d))
        ret.receiver = base_xstrdup(d->parent);
    bool is_python_or_rust =
        tool__is_language(f->language, "python") || tool__is_language(f->language, "rust");
    ret.is_member = is_wrapped || is_in_type ||
                    (is_python_or_rust && begins_with_self(r->parsed->data, r->parsed->len, d->name_from));
    return ret;
}

bool tool__find_newcomer(code_grammars *g, const char *path, base_str block, const char *language,
    const char *name, tool_newcomer *ret)
{
    base_buf clean = {0}, flat = {0};
    tool__normalise_block(&clean, block.ptr, block.len);
    tool__indent_block(&flat, clean.data ? clean.data : "", clean.len, "", 0, TOOL_INDENT_KEEP, 4);
    if (!flat.data) base_buf_puts(&flat, "");
    bool found = false;
    for (int turn = 0; !found && turn < 2; turn++) {
        tool_reading r = tool__read_block(g, path, &flat, language, turn ? NULL : code_last_name(name));
        found = r.at != UINT32_MAX;
        if (found) *ret = describe(&r);
        tool__reading_free(&r);
    }
    base_buf_free(&clean);
    base_buf_free(&flat);
    return found;
}

char *tool__block_name(
    code_grammars *g, const char *path, base_str block, const char *name, bool *ret_is_member)
{
    tool_newcomer n = {0};
    if (!block.ptr || !tool__find_newcomer(g, path, block, code_language(path, "", 0), name, &n)) return NULL;
    char *ret = base_xstrdup(n.name);
    if (ret_is_member) *ret_is_member = n.is_member;
    tool__newcomer_free(&n);
    return ret;
}
