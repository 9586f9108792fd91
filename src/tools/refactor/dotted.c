/*
 * Names in texts that a program looks up: mock.patch("pkg.net.fetch"), "pkg.net:fetch" of an entry point, setattr(net, "fetch", f).
 * They mean a definition where the path or the object in front of them does.
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
    if (t->in->language->family != REFACTOR_PYTHON || t->binding != UINT32_MAX || !from) return false;
    if (!strchr(".:", s[from - 1]) || (to < text->len && !strchr("\"'.: \t\r\n[#", s[to]))) return false;
    while (from > 0 && is_path_byte(s[from - 1])) from--;
    const bool is_bounded = from == 0 || strchr("\"' \t\n=", s[from - 1]);
    if (!is_bounded || from + 1 >= at || !(isalpha((unsigned char)s[from]) || s[from] == '_')) return false;
    char *path = base_xstrndup(s + from, at - 1 - from);
    const bool is_it = !strstr(path, "..") && gives_target(x, path);
    free(path);
    return is_it;
}

char *refactor__attribute_object(const base_buf *text, uint32_t at, size_t n)
{
    static const char *const functions[] = {"getattr", "setattr", "hasattr", "delattr", "object"};
    const char *s = text->data;
    size_t i = at;
    if (!i || !strchr("\"'", s[i - 1]) || at + n >= text->len || s[at + n] != s[i - 1]) return NULL;
    i--; /* the quote */
    while (i && isspace((unsigned char)s[i - 1])) i--;
    if (!i || s[--i] != ',') return NULL;
    size_t to = i, from = to;
    while (from && (code_is_name_byte(s[from - 1]) || s[from - 1] == '.')) from--;
    i = from;
    while (i && isspace((unsigned char)s[i - 1])) i--;
    if (from == to || !i || s[--i] != '(') return NULL;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        const size_t len = strlen(functions[k]);
        if (i >= len && !memcmp(s + i - len, functions[k], len) &&
            (i == len || !code_is_name_byte(s[i - len - 1])))
            return base_xstrndup(s + from, to - from);
    }
    return NULL;
}
