/* Names of a block that its file has to import (contract: import_used.h). */
#include "tools/edit/import_used.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/edit/import_lines.h"
#include "tools/edit/imports.h"

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
    const bool is_python = language && !strcmp(language, "python"),
               is_rust_test = language && !strcmp(language, "rust") && !strncmp(path, "tests/", 6);
    while ((is_python || is_rust_test) && code_next_identifier(block.ptr, block.len, &pos, &from, &to)) {
        if (from && block.ptr[from - 1] == '.') continue;
        char *name = base_xstrndup(block.ptr + from, to - from);
        const bool is_known = code_has_identifier(old_text->data, old_text->len, name) ||
                              code_has_identifier(block.ptr, from, name); /* looked at before */
        code_place *places = NULL;
        uint32_t n = is_known ? 0 : code_index_define(w->index, name, &places);
        const code_place *only = NULL;
        bool one = true;
        for (uint32_t i = 0; i < n; i++) {
            if (*places[i].parent || places[i].is_declaration || code_path_is_test(places[i].path) ||
                !strcmp(base_path_name(places[i].path), "conftest.py")) /* pytest hands its fixtures out */
                continue;
            one = one && !only;
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
}
