/*
 * Names in texts that a program looks up: mock.patch("pkg.net.fetch"), "pkg.net:fetch" of an entry point. They mean a definition
 * where the path in front of them does.
 */
#include "tools/refactor/resolve_work.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool is_path_byte(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_.:", c));
}

/* Does the path, "pkg.net" or "pkg.net.Client", give the target under its name? */
static bool gives_target(refactor *x, char *path)
{
    const refactor_target *t = &x->target;
    for (char *p = path; *p; p++)
        if (*p == ':') *p = '.';
    char *last = strrchr(path, '.');
    if (t->is_member) {
        if (!last || !t->parent || strcmp(last + 1, t->parent) != 0) return false;
        *last = '\0';
    }
    const char *file = refactor__module_path(x, t->in, path);
    return t->is_member ? file && !strcmp(file, t->in->path) : refactor__comes_from(x, file, t->name, 0);
}

bool refactor__is_looked_up(refactor *x, const base_buf *text, uint32_t at)
{
    const refactor_target *t = &x->target;
    const char *s = text->data;
    size_t from = at, to = at + strlen(t->name);
    if (strcmp(t->in->family, "python") != 0 || t->binding != UINT32_MAX || !from) return false;
    if (!strchr(".:", s[from - 1]) || (to < text->len && !strchr("\"'.: \t\r\n[#", s[to]))) return false;
    while (from > 0 && is_path_byte(s[from - 1])) from--;
    const bool is_bounded = from == 0 || strchr("\"' \t\n=", s[from - 1]);
    if (!is_bounded || from + 1 >= at || !(isalpha((unsigned char)s[from]) || s[from] == '_')) return false;
    char *path = base_xstrndup(s + from, at - 1 - from);
    const bool is_it = !strstr(path, "..") && gives_target(x, path);
    free(path);
    return is_it;
}
