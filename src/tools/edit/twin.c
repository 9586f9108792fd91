/* Definitions that another file of the same package has too (contract: twin.h). */
#include "tools/edit/twin.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"
#include "base/path.h"

void tool__twin_free(tool_twin *t)
{
    free(t->name);
    free(t->path);
    *t = (tool_twin){0};
}

/* Behind "package " at the begin of a line; NULL: none. */
static const char *package_of(const base_buf *text, size_t *ret_n)
{
    static const char word[] = "package ";
    const char *at = text->data;
    while (at && (at = strstr(at, word)) != NULL && at != text->data && at[-1] != '\n') at++;
    if (at) at += sizeof word - 1;
    *ret_n = at ? strcspn(at, " \t\r\n;/") : 0;
    return at;
}

/* Go: built on some systems only, beside another file that is built on the rest. */
static bool is_conditional(const char *path, const base_buf *text)
{
    static const char *const systems[] = {"aix", "android", "darwin", "dragonfly", "freebsd", "illumos",
        "ios", "js", "linux", "netbsd", "openbsd", "plan9", "solaris", "wasip1", "windows", "386", "amd64",
        "arm", "arm64", "loong64", "mips", "mips64", "ppc64", "ppc64le", "riscv64", "s390x", "wasm"};
    static const char *const says[] = {"//go:build", "// +build"};
    size_t n;
    const char *package = package_of(text, &n);
    for (size_t i = 0; package && i < sizeof says / sizeof *says; i++)
        if (memmem(text->data, (size_t)(package - text->data), says[i], strlen(says[i]))) return true;
    const char *file = base_path_name(path);
    for (const char *part = strchr(file, '_'); part; part = strchr(part + 1, '_')) {
        n = strcspn(part + 1, "_.");
        for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
            if (strlen(systems[i]) == n && !memcmp(part + 1, systems[i], n)) return true;
    }
    return false;
}

static bool is_package_of_both(
    const char *path, const base_buf *text, const char *other, const base_buf *other_text)
{
    size_t n, m;
    const char *a = package_of(text, &n), *b = package_of(other_text, &m);
    return base_path_same_folder(path, other) && a && b && n == m && !memcmp(a, b, n) &&
           !is_conditional(path, text) && !is_conditional(other, other_text);
}

static bool is_static(const base_buf *text, size_t from)
{
    static const char word[] = "static";
    return text->len > from + sizeof word && !memcmp(text->data + from, word, sizeof word - 1);
}

bool tool__find_twin(tool_workspace *w, const char *path, const base_buf *file_text, const base_buf *text,
    const code_definition *d, tool_twin *ret)
{
    const char *language = code_language(path, "", 0);
    const bool is_go = language && !strcmp(language, "go"), is_c = language && !strcmp(language, "c");
    if ((!is_go && !is_c) || d->is_declaration || !strcmp(d->what, "field") || !strcmp(d->name, "_"))
        return false;
    if (is_go ? !strcmp(d->name, "init") : strcmp(d->what, "function") != 0 || is_static(text, d->from))
        return false;
    if (is_c && !strcmp(d->name, "main")) return false;
    code_place *places = NULL;
    const uint32_t n = code_index_define(w->index, d->name, &places);
    bool is_declared = false, is_found = false;
    for (uint32_t i = 0; i < n; i++) {
        const size_t len = strlen(places[i].path);
        is_declared |= places[i].is_declaration && len > 2 && !strcmp(places[i].path + len - 2, ".h");
    }
    for (uint32_t i = 0; i < n && !is_found && (is_go || is_declared); i++) {
        const code_place *p = &places[i];
        const char *of = code_language(p->path, "", 0);
        tool_file f = {0};
        if (p->is_declaration || !strcmp(p->path, path) || !of || strcmp(of, language) != 0) continue;
        if (strcmp(p->parent, d->parent ? d->parent : "") != 0 || !strcmp(p->what, "field")) continue;
        if (is_c && (strcmp(p->what, "function") != 0 || code_path_is_test(p->path))) continue;
        if (tool__file_read(&w->root, p->path, TOOL_MAX_FILE, &f, NULL) || !f.text.data) continue;
        is_found =
            is_go ? is_package_of_both(path, file_text, p->path, &f.text) : !is_static(&f.text, p->from);
        tool__file_free(&f);
        if (is_found)
            *ret = (tool_twin){.name = base_xstrdup(d->name), .path = base_xstrdup(p->path), .line = p->line};
    }
    code_places_free(places, n);
    return is_found;
}

static bool has(const code_file *f, const code_definition *d)
{
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *o = &f->definitions[i];
        if (!strcmp(o->name, d->name) && !strcmp(o->parent ? o->parent : "", d->parent ? d->parent : ""))
            return true;
    }
    return false;
}

bool tool__find_new_twin(
    tool_workspace *w, const char *path, const base_buf *old_text, const base_buf *new_text, tool_twin *ret)
{
    if (!new_text->data) return false;
    code_file *before = code_parse(w->grammars, path, old_text->data ? old_text->data : "", old_text->len),
              *after = code_parse(w->grammars, path, new_text->data, new_text->len);
    bool is_found = false;
    for (uint32_t i = 0; i < after->n_definitions && !is_found; i++)
        is_found = !has(before, &after->definitions[i]) &&
                   tool__find_twin(w, path, new_text, new_text, &after->definitions[i], ret);
    code_file_free(before);
    code_file_free(after);
    return is_found;
}
