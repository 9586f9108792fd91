/* What a definition is, and which types are parents and children of one another. Pure. */
#include "tools/refactor/refactor.h"

#include <string.h>

bool refactor__is_type(const char *what)
{
    static const char *const types[] = {"class", "struct", "union", "enum", "interface", "type", "typedef"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(what, types[i])) return true;
    return false;
}

bool refactor__is_declaration(const refactor_file *f, const code_definition *d)
{
    static const char word[] = "extern";
    const char *from = f->file.text.data + d->from;
    if (d->is_declaration || strcmp(f->family, "c") != 0 || d->body_to) return d->is_declaration;
    return !strcmp(d->what, "variable") && d->name_from > d->from &&
           memmem(from, d->name_from - d->from, word, sizeof word - 1) && !memchr(from, '=', d->to - d->from);
}

bool refactor__is_static(const refactor_file *f, const code_definition *d)
{
    static const char word[] = "static";
    const char *from = f->file.text.data + d->from;
    return !strcmp(f->family, "c") && d->name_from > d->from &&
           memmem(from, d->name_from - d->from, word, sizeof word - 1);
}

bool refactor__are_related(const refactor *x, const char *a, const char *b)
{
    /* Reached from a by any number of steps between parent and child in one direction. */
    const char *seen[64];
    for (int direction = 0; direction < 2; direction++) {
        size_t n = 0;
        seen[n++] = direction ? b : a;
        const char *goal = direction ? a : b;
        for (size_t at = 0; at < n; at++) {
            if (!strcmp(seen[at], goal)) return true;
            for (size_t f = 0; f < x->n_files; f++)
                for (uint32_t i = 0; i < x->files[f].uses->n_bases && n < 64; i++) {
                    const code_base *base = &x->files[f].uses->bases[i];
                    bool again = strcmp(base->name, seen[at]) != 0;
                    for (size_t k = 0; k < n && !again; k++) again = !strcmp(seen[k], base->base);
                    if (!again) seen[n++] = base->base;
                }
        }
    }
    return false;
}

bool refactor__are_kin(const refactor *x, const char *member, const char *a, const char *b)
{
    if (refactor__are_related(x, a, b)) return true;
    for (size_t f = 0; f < x->n_files; f++) {
        const code_file *file = x->files[f].uses->file;
        for (uint32_t i = 0; i < file->n_definitions; i++) {
            const code_definition *d = &file->definitions[i];
            if (!strcmp(d->name, member) && *d->parent && strcmp(d->parent, b) != 0 &&
                refactor__are_related(x, d->parent, b) && refactor__are_related(x, d->parent, a))
                return true;
        }
    }
    return false;
}
