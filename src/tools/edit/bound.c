/* Refuses names that nothing binds (contract: bound.h). */
#include "tools/edit/bound.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "code/unbound.h"
#include "tools/result/result.h"

typedef struct unbound {
    const base_buf *text;
    uint32_t at[CODE_MAX_UNBOUND], n;
} unbound;

static unbound find(tool_workspace *w, const char *path, const base_buf *text)
{
    unbound u = {.text = text};
    if (text->data)
        u.n = code_unbound(w->grammars, path, text->data, text->len, 0, (uint32_t)text->len, u.at);
    return u;
}

static char *name_at(const unbound *u, uint32_t i)
{
    const char *from = u->text->data + u->at[i];
    size_t n = 0;
    while (code_is_name_byte(from[n])) n++;
    return base_xstrndup(from, n);
}

static bool says_name(const char *text, const char *name)
{
    size_t pos = 0, from, to;
    const size_t n = strlen(name);
    while (text && code_next_identifier(text, strlen(text), &pos, &from, &to))
        if (to - from == n && !memcmp(text + from, name, n)) return true;
    return false;
}

static bool has_name(const unbound *u, const char *name)
{
    bool has = false;
    for (uint32_t i = 0; i < u->n && !has; i++) {
        char *other = name_at(u, i);
        has = !strcmp(other, name);
        free(other);
    }
    return has;
}

/* "verify, issuer and cast". */
static void put_list(char *const *names, uint32_t n, base_buf *out)
{
    for (uint32_t i = 0; i < n; i++)
        base_buf_printf(out, "%s%s", !i ? "" : i + 1 < n ? ", " : " and ", names[i]);
}

bool tool__is_bound(tool_workspace *w, const char *path, const base_buf *old_text, const base_buf *new_text,
    const char *request, base_buf *note, tool_result *result)
{
    const unbound now = code_path_is_test(path) ? (unbound){0} : find(w, path, new_text);
    if (!now.n) return true;
    const unbound before = find(w, path, old_text);
    if (before.n == CODE_MAX_UNBOUND) return true; /* what else it takes from elsewhere is not known */
    char *names[CODE_MAX_UNBOUND];
    uint32_t n = 0;
    for (uint32_t i = 0; i < now.n; i++) {
        names[n] = name_at(&now, i);
        if (has_name(&before, names[n]) || says_name(request, names[n]))
            free(names[n]);
        else
            n++;
    }
    base_buf list = {0};
    put_list(names, n, &list);
    const uint64_t told =
        base_hash64(path, strlen(path), base_hash64(list.data ? list.data : "", list.len, 0));
    const bool is_told = w->unbound_told == told;
    if (n && is_told) {
        base_buf_printf(note, "Nothing in this file defines or imports %s yet. ", list.data);
    } else if (n) {
        w->unbound_told = told;
        base_buf_printf(&result->text, "The new text uses %s, which nothing in ", list.data);
        tool__path_show(&result->text, path);
        tool__say(result, TOOL_FAILED,
            " defines or imports. Nothing was changed. Next: the same call with names that are there, and no "
            "other line changed than the request asks for.\n");
    }
    for (uint32_t i = 0; i < n; i++) free(names[i]);
    base_buf_free(&list);
    return !n || is_told;
}
