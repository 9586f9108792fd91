/*
 * A file that does not parse for a moment, because somebody is in the middle of an edit: an unclosed quote
 * can cost a grammar most of a file. When definitions that the edit did not touch are lost, the earlier
 * reading is kept, moved by the edit, until a parse is sane again (more than a fifth lost is too much).
 * Called by the index with its lock held.
 */
#include "code/store.h"

#include <stdlib.h>
#include <string.h>

typedef struct edit {
    uint32_t from, old_to, new_to; /* bytes [from, old_to) became [from, new_to) */
} edit;

static edit find_edit(const char *old, size_t n_old, const char *text, size_t n)
{
    const size_t least = n < n_old ? n : n_old;
    size_t head = 0, tail = 0;
    while (head < least && text[head] == old[head]) head++;
    while (tail < least - head && text[n - 1 - tail] == old[n_old - 1 - tail]) tail++;
    return (edit){(uint32_t)head, (uint32_t)(n_old - tail), (uint32_t)(n - tail)};
}

/* Definitions that lie wholly before or behind the edit. */
static uint32_t count_outside(const code_file *f, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++)
        n += f->definitions[i].to <= from || f->definitions[i].from >= to;
    return n;
}

/* Where a byte of the old text is now; inside the edit: its end when `end`, else its start. */
static uint32_t moved(const edit *e, uint32_t at, bool end)
{
    if (at <= e->from) return at;
    if (at >= e->old_to) return at - e->old_to + e->new_to;
    return end ? e->new_to : e->from;
}

bool code_keep_through_break(const code_parsed *old, const char *old_text, size_t n_old, const char *text,
    size_t n, code_parsed *fresh)
{
    if (fresh->file->n_errors == 0 || fresh->file->language == NULL || old->file->language == NULL)
        return false;
    const edit e = find_edit(old_text, n_old, text, n);
    const uint32_t had = count_outside(old->file, e.from, e.old_to);
    const uint32_t has = count_outside(fresh->file, e.from, e.new_to);
    if (has >= had || (had - has) * 5 <= had) return false;
    code_builder b;
    code_builder_begin(&b, old->file->language, text, n);
    b.file->n_errors = fresh->file->n_errors;
    b.file->error_line = fresh->file->error_line;
    for (uint32_t i = 0; i < old->file->n_definitions; i++) {
        code_definition d = old->file->definitions[i];
        d.name = code_builder_name(&b, d.name, strlen(d.name));
        d.parent = code_builder_name(&b, d.parent, strlen(d.parent));
        d.what = code_builder_name(&b, d.what, strlen(d.what));
        d.from = moved(&e, d.from, false);
        d.to = moved(&e, d.to, true);
        d.name_from = moved(&e, d.name_from, false);
        if (d.body_to != 0) {
            d.body_from = moved(&e, d.body_from, false);
            d.body_to = moved(&e, d.body_to, true);
        }
        code_builder_define(&b, &d); /* counts the lines anew */
    }
    code_call *calls = base_xmalloc(((size_t)old->n_calls + 1) * sizeof *calls);
    uint32_t n_calls = 0;
    for (uint32_t i = 0; i < old->n_calls; i++) { /* a call inside the edit is gone */
        code_call c = old->calls[i];
        if (c.from + c.n > e.from && c.from < e.old_to) continue;
        c.from = moved(&e, c.from, false);
        calls[n_calls++] = c;
    }
    code_file_free(fresh->file);
    free(fresh->calls);
    *fresh = (code_parsed){code_builder_end(&b), calls, n_calls};
    return true;
}
