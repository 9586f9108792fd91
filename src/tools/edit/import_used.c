/* Names of a block that its file has to import (contract: import_used.h). */
#include "tools/edit/import_used.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/edit/import_lines.h"
#include "tools/edit/imports.h"
#include "tools/file/text.h"

/* Where tests take a name of this file of Python from: its package where that hands the name out, else its module; with dots. */
static char *module_of_tree(tool_workspace *w, const char *path, const char *name)
{
    enum { MAX_FILE = 1 << 20 };
    char *folder = base_path_folder(path);
    base_buf init = {0}, text = {0};
    base_buf_printf(&init, "%s%s__init__.py", folder, *folder ? "/" : "");
    const bool is_handed_out = !tool_workspace_read(w, init.data, MAX_FILE, &text, NULL) && text.len &&
                               code_has_identifier(text.data, text.len, name);
    char *module = tool__dotted_module(is_handed_out ? init.data : path);
    base_buf_free(&init);
    base_buf_free(&text);
    free(folder);
    return module;
}

void tool__import_used(tool_workspace *w, const char *path, base_str block, const base_buf *old_text,
    base_buf *text, base_buf *say)
{
    const char *language = code_language(path, "", 0);
    size_t pos = 0, from, to;
    tool__import_standard(language, block, old_text, text, say);
    char *code = language ? code_blank_comments(language, block.ptr, block.len) : NULL;
    const bool is_python = language && !strcmp(language, "python"),
               is_rust_test = language && !strcmp(language, "rust") && !strncmp(path, "tests/", 6);
    while (code && (is_python || is_rust_test) && code_next_identifier(code, block.len, &pos, &from, &to)) {
        if (from && code[from - 1] == '.') continue;
        char *name = base_xstrndup(code + from, to - from);
        const bool is_known = code_has_identifier(old_text->data, old_text->len, name) ||
                              code_has_identifier(code, from, name); /* looked at before */
        code_place *places = NULL;
        uint32_t n = is_known ? 0 : code_index_define(w->index, name, &places);
        const code_place *only = NULL;
        bool one = true;
        for (uint32_t i = 0; i < n; i++) {
            if (*places[i].parent || places[i].is_declaration || code_path_is_test(places[i].path) ||
                !strcmp(base_path_name(places[i].path), "conftest.py")) /* pytest hands its fixtures out */
                continue;
            one =
                one && (!only || (is_python && !strcmp(only->path, places[i].path))); /* with its overloads */
            only = &places[i];
        }
        if (only && one && is_rust_test) {
            if (!strcmp(only->path, "src/lib.rs") && tool__import_of_crate(text, name))
                base_buf_printf(say, "Imported %s. ", name);
        } else if (only && one) {
            char *module = tool__module_name(only->path), *dotted = module_of_tree(w, only->path, name);
            const char *from_module = tool__import_name(text, module, name) ? module : NULL;
            if (!from_module && (tool__import_name(text, code_last_name(dotted), name) ||
                                    (code_path_is_test(path) && tool__import_from(text, dotted, name))))
                from_module = dotted;
            if (from_module) base_buf_printf(say, "Imported %s from %s. ", name, from_module);
            free(module);
            free(dotted);
        }
        code_places_free(places, n);
        free(name);
    }
    free(code);
}

/* The module of a line "from MODULE import a, NAME" at column 0; false: it is none, or relative, or gives it another name. */
static bool find_module(const char *line, size_t n, const char *name, base_str *ret)
{
    static const char from[] = "from ", import[] = " import ";
    if (n < sizeof from || memcmp(line, from, sizeof from - 1) != 0 || line[sizeof from - 1] == '.')
        return false;
    const char *module = line + sizeof from - 1, *at = memmem(line, n, import, sizeof import - 1);
    size_t pos = 0, begin, end;
    if (!at) return false;
    const char *names = at + sizeof import - 1;
    const size_t names_n = n - (size_t)(names - line);
    while (code_next_identifier(names, names_n, &pos, &begin, &end)) {
        if (end - begin != strlen(name) || memcmp(names + begin, name, end - begin) != 0) continue;
        const size_t rest = names_n - end;
        const bool is_renamed = rest > 4 && !memcmp(names + end, " as ", 4);
        const bool is_alias = begin > 3 && !memcmp(names + begin - 3, "as ", 3);
        *ret = (base_str){module, (size_t)(at - module)};
        return !is_renamed && !is_alias;
    }
    return false;
}

bool tool__import_as_elsewhere(
    tool_workspace *w, const char *path, const char *name, base_buf *text, base_buf *say)
{
    const char *language = code_language(path, "", 0);
    if (!language || strcmp(language, "python") != 0) return false;
    char **paths = code_index_paths(w->index), *module = NULL;
    bool is_one = true;
    for (size_t i = 0; paths && paths[i] && is_one; i++) {
        tool_file f = {0};
        base_str found;
        const char *other = code_language(paths[i], "", 0);
        if (!other || strcmp(other, "python") != 0 || !strcmp(paths[i], path) ||
            tool__file_read(&w->root, paths[i], TOOL_MAX_INDEXED, &f, NULL))
            continue;
        for (size_t at = 0, end; is_one && at < f.text.len; at = end + 1) {
            end = tool__line_end(f.text.data, f.text.len, at);
            if (!find_module(f.text.data + at, end - at, name, &found)) continue;
            is_one = !module || (strlen(module) == found.len && !memcmp(module, found.ptr, found.len));
            if (!module) module = base_xstrndup(found.ptr, found.len);
        }
        tool__file_free(&f);
    }
    code_index_paths_free(paths);
    const bool is_there =
        module && is_one && (tool__import_name(text, module, name) || tool__import_from(text, module, name));
    if (is_there) base_buf_printf(say, "Imported %s from %s, as elsewhere in the tree. ", name, module);
    free(module);
    return is_there;
}
