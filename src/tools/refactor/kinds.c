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

bool refactor__is_function(const refactor_file *f, const code_definition *d)
{
    if (strcmp(d->what, "function") != 0 && strcmp(d->what, "method") != 0) return false;
    if (strcmp(f->uses->file->language, "java") != 0) return true;
    size_t at = d->name_from + strlen(d->name);
    while (at < f->file.text.len && strchr(" \t\r\n", f->file.text.data[at])) at++;
    return at < f->file.text.len && f->file.text.data[at] == '(';
}
