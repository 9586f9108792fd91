/* Names that nothing binds, and the lines that brought them (contract: bound.h). */
#include "tools/edit/bound.h"

#include <git2.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "code/unbound.h"
#include "tools/edit/replace.h"
#include "tools/file/safe_path.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/tree/git_bound.h"

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
static void put_list(const unbound *u, base_buf *out)
{
    for (uint32_t i = 0; i < u->n; i++) {
        char *name = name_at(u, i);
        base_buf_printf(out, "%s%s", !i ? "" : i + 1 < u->n ? ", " : " and ", name);
        free(name);
    }
}

/* Of what `text` leaves unbound, that which neither the old text did nor the request says. */
static unbound find_new(
    tool_workspace *w, const char *path, const base_buf *text, const unbound *before, const char *request)
{
    unbound u = find(w, path, text);
    uint32_t n = 0;
    for (uint32_t i = 0; i < u.n; i++) {
        char *name = name_at(&u, i);
        if (!has_name(before, name) && !(request && code_has_identifier(request, strlen(request), name)))
            u.at[n++] = u.at[i];
        free(name);
    }
    u.n = n;
    return u;
}

static uint32_t line_of(const base_buf *text, uint32_t at)
{
    uint32_t line = 1;
    for (uint32_t i = 0; i < at; i++) line += text->data[i] == '\n';
    return line;
}

/* Lines [line, line + n) of the text, 1-based. */
static void put_lines(const base_buf *text, int line, int n, base_buf *out)
{
    const size_t from = tool__line_start(text->data, text->len, (uint32_t)line);
    const size_t to = tool__line_start(text->data, text->len, (uint32_t)(line + n));
    base_buf_add(out, text->data + from, to - from);
}

/* The text with the old lines wherever the change brings one of those names; false: no change does. */
static bool take_back(const base_buf *old_text, const unbound *u, base_buf *ret)
{
    git_patch *patch = NULL;
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    options.flags = GIT_DIFF_FORCE_TEXT;
    options.context_lines = 0;
    bool took = false;
    int line = 1; /* of the new text: up to here it is in *ret */
    tool__git_start();
    if (git_patch_from_buffers(
            &patch, old_text->data, old_text->len, NULL, u->text->data, u->text->len, NULL, &options) != 0)
        return false;
    for (size_t h = 0; h < git_patch_num_hunks(patch); h++) {
        const git_diff_hunk *hunk = NULL;
        if (git_patch_get_hunk(&hunk, NULL, patch, h) != 0) continue;
        bool goes = false;
        for (uint32_t i = 0; i < u->n; i++) {
            const int at = (int)line_of(u->text, u->at[i]);
            goes |= at >= hunk->new_start && at < hunk->new_start + hunk->new_lines;
        }
        if (!goes) continue;
        put_lines(u->text, line, hunk->new_start - line, ret);
        put_lines(old_text, hunk->old_start, hunk->old_lines, ret);
        line = hunk->new_start + hunk->new_lines;
        took = true;
    }
    const size_t rest = tool__line_start(u->text->data, u->text->len, (uint32_t)line);
    base_buf_add(ret, u->text->data + rest, u->text->len - rest);
    git_patch_free(patch);
    return took;
}

static bool is_same(const base_buf *a, const base_buf *b)
{
    return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

/* What runs tests of JavaScript gives them names (describe, expect); fixtures of Python are parameters. */
static bool gives_names(const char *path)
{
    const char *language = code_path_is_test(path) ? code_language(path, "", 0) : NULL;
    return language && strcmp(language, "python") != 0;
}

bool tool__bind(tool_workspace *w, const char *path, const base_buf *old_text, base_buf *new_text,
    const char *request, base_buf *note, tool_result *result)
{
    enum { MOST = 8 }; /* names behind the first of a kind are found one round later */
    if (gives_names(path) || !old_text->len) return true;
    const unbound before = find(w, path, old_text);
    const unbound first = find_new(w, path, new_text, &before, request);
    if (!first.n || before.n == CODE_MAX_UNBOUND)
        return true; /* at the limit: what else it uses so is not known */
    base_buf list = {0}, text = {0}, why = {0};
    put_list(&first, &list);
    base_buf_add(&text, new_text->data, new_text->len);
    unbound left = first;
    left.text = &text;
    bool is_good = true;
    for (int round = 0; left.n && is_good; round++) {
        base_buf next = {0};
        is_good = round < MOST && take_back(old_text, &left, &next);
        base_buf_free(&text);
        text = next;
        left = find_new(w, path, &text, &before, request);
    }
    is_good =
        is_good && !is_same(&text, old_text) && tool__syntax_holds(w->grammars, path, old_text, &text, &why);
    if (is_good) {
        base_buf_printf(
            note, "Nothing defines or imports %s here: lines with that stay as they were. ", list.data);
        base_buf_free(new_text);
        *new_text = text;
        text = (base_buf){0};
    } else {
        base_buf_printf(&result->text, "The new text uses %s, which nothing in ", list.data);
        tool__path_show(&result->text, path);
        tool__say(result, TOOL_FAILED,
            " defines or imports. Nothing was changed. Next: the same call with names that are there, and no "
            "other line changed than the request asks for.\n");
    }
    base_buf_free(&list);
    base_buf_free(&text);
    base_buf_free(&why);
    return is_good;
}
