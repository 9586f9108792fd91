/* What a definition is. Pure. */
#include "tools/refactor/refactor.h"

#include <string.h>

bool refactor__is_type(const char *what)
{
    static const char *const types[] = {"class", "struct", "union", "enum", "interface", "type", "typedef"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(what, types[i])) return true;
    return false;
}

bool refactor__is_nested(const code_file *file, const code_definition *d)
{
    const code_definition *around = NULL;
    if (!refactor__is_type(d->what) || refactor__language(file->language)->family != REFACTOR_PYTHON)
        return false;
    for (uint32_t i = 0; i < file->n_definitions; i++) {
        const code_definition *e = &file->definitions[i];
        if (e != d && e->from <= d->from && d->to <= e->to) around = e;
    }
    return around && refactor__is_type(around->what);
}

bool refactor__is_member(const code_file *file, const code_definition *d)
{
    if (!strcmp(d->what, "method") || !strcmp(d->what, "field") || refactor__is_nested(file, d)) return true;
    return !strcmp(d->what, "constant") && *d->parent &&
           refactor__language(file->language)->has_constant_members;
}

bool refactor__is_constructor(const code_file *file, const code_definition *d)
{
    return !strcmp(d->what, "method") && !strcmp(d->name, d->parent) &&
           refactor__language(file->language)->has_named_constructors;
}

bool refactor__is_declaration(const refactor_file *f, const code_definition *d)
{
    static const char word[] = "extern";
    const char *from = f->file.text.data + d->from;
    if (d->is_declaration || !f->language->declares_apart || d->body_to) return d->is_declaration;
    return !strcmp(d->what, "variable") && d->name_from > d->from &&
           memmem(from, d->name_from - d->from, word, sizeof word - 1) && !memchr(from, '=', d->to - d->from);
}

bool refactor__is_static(const refactor_file *f, const code_definition *d)
{
    static const char word[] = "static";
    const char *from = f->file.text.data + d->from;
    return f->language->declares_apart && d->name_from > d->from &&
           memmem(from, d->name_from - d->from, word, sizeof word - 1);
}

bool refactor__is_function(const refactor_file *f, const code_definition *d)
{
    if (strcmp(d->what, "function") != 0 && strcmp(d->what, "method") != 0) return false;
    if (f->language->family != REFACTOR_JAVA) return true;
    size_t at = d->name_from + strlen(d->name);
    while (at < f->file.text.len && strchr(" \t\r\n", f->file.text.data[at])) at++;
    return at < f->file.text.len && f->file.text.data[at] == '(';
}
