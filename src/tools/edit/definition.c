/*
 * A name to a definition, or a sentence that lists what there is.
 */
#include "tools/edit/definition.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"

bool tool__is_rewritable(const code_definition *d)
{
    static const char *const parts[] = {"variable", "field", "constant"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(d->what, parts[i])) return false;
    return true;
}

char *tool_plain_name(const char *name, unsigned long *ret_line)
{
    const char *colon = strrchr(name, ':');
    char *end = NULL;
    *ret_line = colon && colon > name && colon[-1] != ':' ? strtoul(colon + 1, &end, 10) : 0;
    if (*ret_line && *end) *ret_line = 0;
    return base_xstrndup(name, *ret_line ? (size_t)(colon - name) : strlen(name));
}

code_file *tool__parse_for(code_grammars *g, const char *path, const char *text, size_t n, const char *name)
{
    code_file *f = code_parse(g, path, text, n);
    uint32_t nothing;
    unsigned long line;
    char *plain = tool_plain_name(name, &line);
    /* A syntax error in front of it hides it from a grammar, not from a search by words. */
    if (f->n_errors && !code_find_definition(f, plain, &nothing, 1)) {
        code_file *by_words = code_parse(NULL, path, text, n);
        bool is_found = code_find_definition(by_words, plain, &nothing, 1) > 0;
        code_file_free(is_found ? f : by_words);
        if (is_found) f = by_words;
    }
    free(plain);
    return f;
}

static void show_definition(base_buf *out, const code_definition *d)
{
    if (d->parent && *d->parent) base_buf_printf(out, "%s.", d->parent);
    base_buf_printf(out, "%s (%s, lines %u-%u)", d->name, d->what, d->line, d->line_end);
}

static void list_definitions(const code_file *f, base_buf *why)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        if (!tool__is_rewritable(&f->definitions[i]) || f->definitions[i].is_declaration) continue;
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
    unsigned long line;
    char *plain = tool_plain_name(name, &line);
    uint32_t n = code_find_definition(f, plain, found, 16), many = n < 16 ? n : 16;
    bool has_real = false;
    for (uint32_t i = 0; i < many; i++) has_real |= !f->definitions[found[i]].is_declaration;
    for (uint32_t i = 0; i < many; i++) {
        const code_definition *d = &f->definitions[found[i]];
        if (has_real && d->is_declaration) continue;
        if (line && (line < d->line || line > d->line_end)) continue;
        found[kept++] = found[i];
    }
    for (uint32_t i = 0; line && !kept && i < f->n_definitions; i++) {
        /*
         * Where several definitions have the name, the given line decides, even if the search ranks others
         * first.
         */
        const code_definition *d = &f->definitions[i];
        size_t end = strlen(d->name), plain_n = strlen(plain);
        if (d->line == line && plain_n >= end && !strcmp(plain + plain_n - end, d->name)) found[kept++] = i;
        if (kept) break;
    }
    free(plain);
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
