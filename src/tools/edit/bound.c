/* Names that nothing binds, and the lines that brought them (contract: bound.h). */
#include "tools/edit/bound.h"

#include <git2.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "code/free_names.h"
#include "code/unbound.h"
#include "code/uses.h"
#include "tools/edit/import_used.h"
#include "tools/edit/replace.h"
#include "tools/file/safe_path.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/tree/git_bound.h"

typedef struct unbound {
    const base_buf *text;
    uint32_t at[CODE_MAX_UNBOUND], n;
} unbound;

static char *name_at(const unbound *u, uint32_t i)
{
    const char *from = u->text->data + u->at[i];
    size_t n = 0;
    while (code_is_name_byte(from[n])) n++;
    return base_xstrndup(from, n);
}

static bool is_c(const char *path)
{
    const char *language = code_language(path, "", 0);
    return language && !strcmp(language, "c");
}

/* Bytes of b that differ from a, in whole. */
static void find_changed(const base_buf *a, const base_buf *b, uint32_t *ret_from, uint32_t *ret_to)
{
    const size_t least = a->len < b->len ? a->len : b->len;
    size_t head = 0, tail = 0;
    while (head < least && a->data[head] == b->data[head]) head++;
    while (tail < least - head && a->data[a->len - 1 - tail] == b->data[b->len - 1 - tail]) tail++;
    while (head && code_is_name_byte(b->data[head - 1])) head--;
    size_t to = b->len - tail;
    while (to < b->len && code_is_name_byte(b->data[to])) to++;
    *ret_from = (uint32_t)head;
    *ret_to = (uint32_t)to;
}

/* A parameter of a macro, in the macro's head. */
static bool is_in_define(const base_buf *text, uint32_t at)
{
    size_t from = tool__line_begin(text->data, at);
    while (text->data[from] == ' ' || text->data[from] == '\t') from++;
    return text->data[from] == '#' && memmem(text->data + from, at - from, "define", 6) != NULL;
}

/*
 * C: does this text only know the name as a local or as a member? 1: as a local somewhere; 0: it has no such variable; -1: it
 * uses the name otherwise too, so that some header or macro may bind it. What stands in bytes [from, to) does not count, nor, where the
 * file does not parse in whole, a use of which nobody can say what it is.
 */
static int is_local_alone(
    tool_workspace *w, const char *path, const base_buf *text, const char *name, uint32_t from, uint32_t to)
{
    code_uses *u = code_uses_find(w->grammars, path, text->data, text->len, name);
    int is = u ? 0 : -1;
    for (uint32_t i = 0; u && i < u->n_uses && is >= 0; i++) {
        const code_use *use = &u->uses[i];
        const bool is_name = use->role == CODE_USE_NAME, is_defined = use->definition != UINT32_MAX;
        if (use->from >= from && use->from < to) continue;
        if (is_name && use->binding != UINT32_MAX)
            is = 1;
        else if (use->role == CODE_USE_MACRO || (is_name && is_defined))
            is = -1;
        else if (is_name && !u->file->n_errors && !is_in_define(text, use->from))
            is = -1;
    }
    code_uses_free(u);
    return is;
}

/*
 * C: is the name a local of other functions of the tree, and nowhere anything else? What stands in bytes [from, to) of the new text is
 * not looked at. A name that system headers may bind is none: the tree uses it so, or has it not.
 */
static bool is_of_others(tool_workspace *w, const char *path, const base_buf *new_text, const char *name,
    uint32_t from, uint32_t to)
{
    enum { MOST_FILES = 64 };
    char **paths = code_index_paths(w->index);
    int is = is_local_alone(w, path, new_text, name, from, to);
    bool has_local = is > 0;
    uint32_t n_read = 0;
    for (size_t i = 0; paths && paths[i] && is >= 0 && n_read < MOST_FILES; i++) {
        tool_file f = {0};
        const char *language = code_language(paths[i], "", 0);
        const bool is_kin = language && (!strcmp(language, "c") || !strcmp(language, "cpp"));
        if (!is_kin || !strcmp(paths[i], path) ||
            tool__file_read(&w->root, paths[i], TOOL_MAX_INDEXED, &f, NULL))
            continue;
        if (f.text.len && code_has_identifier(f.text.data, f.text.len, name)) {
            is = is_local_alone(w, paths[i], &f.text, name, 0, 0);
            has_local |= is > 0;
            n_read++;
        }
        tool__file_free(&f);
    }
    code_index_paths_free(paths);
    return is >= 0 && has_local && n_read < MOST_FILES;
}

/* What the text leaves unbound: of C only names that are locals of other functions, in what differs from `other`. */
static unbound find(tool_workspace *w, const char *path, const base_buf *other, const base_buf *text)
{
    unbound u = {.text = text};
    uint32_t from = 0, to = (uint32_t)text->len, n = 0;
    if (!text->data) return u;
    if (is_c(path)) find_changed(other, text, &from, &to);
    u.n = code_unbound(w->grammars, path, text->data, text->len, from, to, u.at);
    for (uint32_t i = 0; i < u.n && is_c(path); i++) {
        char *name = name_at(&u, i);
        if (is_of_others(w, path, text, name, from, to)) u.at[n++] = u.at[i];
        free(name);
    }
    if (is_c(path)) u.n = n;
    return u;
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
    unbound u = find(w, path, before->text, text);
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

/* What is new and unbound, also where the request says it, and other files of the tree import. */
static void import_as_elsewhere(
    tool_workspace *w, const char *path, const unbound *before, base_buf *text, base_buf *note)
{
    char *names[CODE_MAX_UNBOUND];
    const unbound u = find_new(w, path, text, before, NULL);
    for (uint32_t i = 0; i < u.n; i++) names[i] = name_at(&u, i); /* before the text moves */
    for (uint32_t i = 0; i < u.n; i++) {
        bool is_first = true;
        for (uint32_t k = 0; k < i; k++) is_first = is_first && strcmp(names[k], names[i]) != 0;
        if (is_first) tool__import_as_elsewhere(w, path, names[i], text, note);
    }
    for (uint32_t i = 0; i < u.n; i++) free(names[i]);
}

/* The name with one underline more or less in front, where the file's top binds just one such; the caller frees. NULL: none. */
static char *find_underlined(tool_workspace *w, const char *path, const base_buf *text, const char *name)
{
    char *ret = NULL;
    for (int with = 0; with < 2; with++) {
        base_buf other = {0};
        base_buf_printf(&other, "%s%s", with ? "_" : "", with ? name : name + (*name == '_'));
        if (strcmp(other.data, name) != 0 && !ret &&
            code_binds_top(w->grammars, path, text->data, text->len, other.data))
            ret = base_xstrdup(other.data);
        base_buf_free(&other);
    }
    return ret;
}

/* Each use of a name that the old text has not, but for members, is one of `to`. */
static void call_otherwise(base_buf *text, const char *name, const char *to)
{
    base_buf out = {0};
    size_t done = 0;
    for (size_t pos = 0, from, end; code_next_identifier(text->data, text->len, &pos, &from, &end);) {
        const bool is_member = from && text->data[from - 1] == '.';
        if (end - from != strlen(name) || memcmp(text->data + from, name, end - from) != 0 || is_member)
            continue;
        base_buf_add(&out, text->data + done, from - done);
        base_buf_puts(&out, to);
        done = end;
    }
    base_buf_add(&out, text->data + done, text->len - done);
    base_buf_free(text);
    *text = out;
}

/* "logger" where the file has _logger: a small model writes the name that most files have. */
static void underline(
    tool_workspace *w, const char *path, const unbound *before, base_buf *text, base_buf *note)
{
    char *names[CODE_MAX_UNBOUND];
    const unbound u = is_c(path) ? (unbound){0} : find_new(w, path, text, before, NULL);
    for (uint32_t i = 0; i < u.n; i++) names[i] = name_at(&u, i); /* before the text moves */
    for (uint32_t i = 0; i < u.n; i++) {
        const base_buf *old = before->text;
        char *to = code_has_identifier(old->data, old->len, names[i]) ||
                           !code_has_identifier(text->data, text->len, names[i])
                       ? NULL
                       : find_underlined(w, path, text, names[i]);
        if (to) {
            call_otherwise(text, names[i], to);
            base_buf_printf(note, "Wrote %s for %s, which nothing here defines. ", to, names[i]);
        }
        free(to);
        free(names[i]);
    }
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

static bool writes_all(const base_buf *text, char *const *names, size_t n)
{
    bool writes = true;
    for (size_t i = 0; i < n; i++)
        writes = writes && code_has_identifier(text->data, text->len, code_last_name(names[i]));
    return writes;
}

static void refuse(const tool_bound *b, const char *names, tool_result *ret)
{
    base_buf_printf(&ret->text, "The new text uses %s, which nothing in ", names);
    tool__path_show(&ret->text, b->path);
    tool__say(ret, TOOL_FAILED,
        " defines or imports. Nothing was changed. Next: the same call with names that are there, and no "
        "other line changed than the request asks for.\n");
}

bool tool__bind(
    tool_workspace *w, const tool_bound *b, base_buf *new_text, base_buf *note, tool_result *result)
{
    enum { MOST = 8 }; /* names behind the first of a kind are found one round later */
    const base_buf *old_text = b->old_text;
    if (gives_names(b->path) || !old_text->len) return true;
    const unbound before = is_c(b->path) ? (unbound){.text = old_text} : find(w, b->path, old_text, old_text);
    underline(w, b->path, &before, new_text, note);
    import_as_elsewhere(w, b->path, &before, new_text, note);
    const unbound first = find_new(w, b->path, new_text, &before, b->request);
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
        left = find_new(w, b->path, &text, &before, b->request);
    }
    is_good = is_good && !is_same(&text, old_text) && writes_all(&text, b->added, b->n_added) &&
              tool__syntax_holds(w->grammars, b->path, old_text, &text, &why);
    if (is_good) {
        base_buf_printf(
            note, "Nothing defines or imports %s here: lines with that stay as they were. ", list.data);
        base_buf_free(new_text);
        *new_text = text;
        text = (base_buf){0};
    } else {
        refuse(b, list.data, result);
    }
    base_buf_free(&list);
    base_buf_free(&text);
    base_buf_free(&why);
    return is_good;
}
