/* The files that write the target's name, read and parsed; and others of the tree, as imports and parents lead to them. */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/tree/foreign.h"

void refactor__free(refactor *x)
{
    for (size_t i = 0; i < x->n_files; i++) {
        free(x->files[i].path);
        tool__file_free(&x->files[i].file);
        code_uses_free(x->files[i].uses);
    }
    for (size_t i = 0; i < x->n_modules; i++) {
        free(x->modules[i]->path);
        tool__file_free(&x->modules[i]->file);
        code_uses_free(x->modules[i]->uses);
        free(x->modules[i]);
    }
    refactor__documents_free(x);
    free(x->files);
    free(x->modules);
    free(x->places);
    free(x->name);
    free(x->go_module);
    for (size_t i = 0; i < x->n_twins; i++) free(x->twins[i]);
    free(x->twins);
    *x = (refactor){0};
}

static bool load(refactor *x, const char *path, const char *name, bool wants_word, refactor_file *ret)
{
    *ret = (refactor_file){0};
    if (!code_language(path, "", 0) && strrchr(path, '.')) return false;
    if (tool__file_read(&x->w->root, path, TOOL_MAX_INDEXED, &ret->file, NULL)) {
        x->n_unread++;
        if (!x->unread) x->unread = path;
        return false;
    }
    tool__file_part_mark(&ret->file);
    const base_buf *text = &ret->file.text;
    if (!text->len || (wants_word && refactor__find_word(text, name, 0) == SIZE_MAX) ||
        tool__is_binary(text->data, text->len)) {
        tool__file_free(&ret->file);
        return false;
    }
    ret->uses = code_uses_find(x->w->grammars, path, text->data, text->len, name);
    if (!ret->uses) {
        const char *language = code_language(path, text->data, text->len);
        const bool is_document = wants_word && (!language || code_language_is_document(language));
        const bool is_kept =
            is_document ? refactor__note_document(x, path, &ret->file)
                        : language && wants_word && refactor__note_configuration(x, path, &ret->file);
        if (!is_document && language && !is_kept) {
            x->n_unread++;
            if (!x->unread) x->unread = path;
        }
        if (!is_kept) tool__file_free(&ret->file);
        return false;
    }
    ret->path = base_xstrdup(path);
    ret->thing[0] = ret->thing[1] = SIZE_MAX;
    ret->language = refactor__language(ret->uses->file->language);
    ret->is_foreign = tool__is_foreign(path, text);
    return true;
}

const refactor_file *refactor__module(refactor *x, const char *path)
{
    for (size_t i = 0; i < x->n_files; i++)
        if (!strcmp(x->files[i].path, path)) return &x->files[i];
    for (size_t i = 0; i < x->n_modules; i++)
        if (!strcmp(x->modules[i]->path, path)) return x->modules[i];
    refactor_file file;
    if (!load(x, path, x->name, false, &file)) return NULL;
    base_grow(&x->modules, &x->cap_modules, x->n_modules + 1, sizeof *x->modules);
    x->modules[x->n_modules] = base_xcalloc(1, sizeof file);
    *x->modules[x->n_modules] = file;
    return x->modules[x->n_modules++];
}

bool refactor__read_files(refactor *x)
{
    if (tool__workspace_list(x->w, x->limits ? x->limits->cancel : NULL, NULL)) return false;
    const tool_listing *l = &x->w->listing;
    for (size_t i = 0; i < l->n; i++) {
        refactor_file file;
        if (tool__cancelled(x->limits)) {
            tool__say(x->result, TOOL_CANCELLED, "Cancelled. Nothing was changed.\n");
            return false;
        }
        if (!load(x, l->files[i].path, x->name, true, &file)) continue;
        base_grow(&x->files, &x->cap_files, x->n_files + 1, sizeof *x->files);
        x->files[x->n_files++] = file;
    }
    return true;
}
