/*
 * A file's new text from a list of replacements.
 */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"

void refactor__edit(refactor_edits *e, uint32_t from, uint32_t to, const char *text)
{
    base_grow(&e->all, &e->cap, e->n + 1, sizeof *e->all);
    e->all[e->n++] = (refactor_edit){from, to, base_xstrdup(text)};
}

void refactor__edits_free(refactor_edits *e)
{
    for (size_t i = 0; i < e->n; i++) free(e->all[i].text);
    free(e->all);
    *e = (refactor_edits){0};
}

static int by_place(const void *a, const void *b)
{
    const refactor_edit *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

void refactor__edits_apply(refactor_edits *e, const base_buf *text, base_buf *ret)
{
    const bool crlf = tool__text_style(text->data ? text->data : "", text->len).crlf;
    size_t at = 0;
    if (e->n) qsort(e->all, e->n, sizeof *e->all, by_place);
    for (size_t i = 0; i < e->n; i++) {
        const refactor_edit *x = &e->all[i];
        if (x->from < at || x->to > text->len) continue;
        base_buf_add(ret, text->data + at, x->from - at);
        tool__line_ends(ret, x->text, strlen(x->text), crlf);
        at = x->to;
    }
    if (text->len > at) base_buf_add(ret, text->data + at, text->len - at);
}

void refactor__edits_take(refactor_edits *e, const char *path, const tool_file *file, tool_changes *ret)
{
    base_buf text = {0};
    if (e->n) {
        refactor__edits_apply(e, &file->text, &text);
        tool__changes_add(ret, path, file, &text);
    }
    refactor__edits_free(e);
}

void refactor__edits_take_all(refactor *x, refactor_edits *edits, tool_changes *ret)
{
    for (size_t i = 0; i < x->n_files; i++) {
        if (ret)
            refactor__edits_take(&edits[i], x->files[i].path, &x->files[i].file, ret);
        else
            refactor__edits_free(&edits[i]);
    }
    free(edits);
}
