/* The arguments of a call (contract: refactor.h). */
#include "tools/refactor/refactor.h"

#include <string.h>

size_t refactor__object_arguments(const refactor *x, const refactor_place *p)
{
    const bool is_python = x->files[p->file].language->family == REFACTOR_PYTHON;
    return is_python && x->target.is_member && p->use->object_kind == CODE_OBJECT_NAMED && x->target.parent &&
           !strcmp(p->use->object, x->target.parent);
}

size_t refactor__keyword_at(const base_buf *text, const refactor_list *l, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < l->n && n; i++) {
        const char *s = text->data + l->items[i].from;
        if (l->items[i].to - l->items[i].from > n && !memcmp(s, name, n) && (s[n] == '=' || s[n] == ' ') &&
            s[n + 1] != '=')
            return i;
    }
    return SIZE_MAX;
}

bool refactor__has_spread(const base_buf *text, const refactor_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *s = text->data + l->items[i].from;
        const size_t n = l->items[i].to - l->items[i].from;
        if ((*s == '*' && n > 1) || (n > 3 && (!memcmp(s, "...", 3) || !memcmp(s + n - 3, "...", 3))))
            return true;
    }
    return false;
}

size_t refactor__first_keyword(const base_buf *text, const refactor_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *s = text->data + l->items[i].from;
        size_t pos = 0, a, b;
        const size_t n = l->items[i].to - l->items[i].from;
        if (!code_next_identifier(s, n, &pos, &a, &b) || a != 0) continue;
        while (b < n && s[b] == ' ') b++;
        if (b + 1 < n && s[b] == '=' && s[b + 1] != '=') return i;
    }
    return l->n;
}
