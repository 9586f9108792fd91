/*
 * A new order of a function's parameters, in a call of it: what the call gives by place moves, what it gives by name stays.
 */
#include "tools/refactor/refactor.h"

#include <string.h>

/* What the calls inside of [from, to) give stands in the new order as well; false: one of them cannot be changed for certain. */
static bool put_part(
    const refactor *x, size_t file, const refactor_order *o, uint32_t from, uint32_t to, base_buf *out)
{
    const base_buf *text = &x->files[file].file.text;
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        uint32_t begin, end;
        base_buf inner = {0};
        if (p->file != file || p->verdict != REFACTOR_SURE || p->use->from < from || p->use->from >= to)
            continue;
        if (!p->use->is_call || p->use->definition != UINT32_MAX) continue;
        const bool is_good = refactor__put_order(x, p, o, &begin, &end, &inner);
        if (is_good && begin < end) {
            base_buf_add(out, text->data + from, begin - from);
            base_buf_add(out, inner.data ? inner.data : "", inner.len);
            from = end;
        }
        base_buf_free(&inner);
        if (!is_good) return false;
    }
    if (to > from) base_buf_add(out, text->data + from, to - from);
    return true;
}

/* Without names of arguments: what is given by place has to be given by place in the new order, too. */
static bool stays_first(const refactor_order *o, size_t n_given)
{
    for (size_t i = 0; i < n_given && i < o->n; i++)
        if (o->order[i] >= n_given) return false;
    return true;
}

bool refactor__put_order(const refactor *x, const refactor_place *p, const refactor_order *o, uint32_t *from,
    uint32_t *to, base_buf *out)
{
    const refactor_file *f = &x->files[p->file];
    const base_buf *text = &f->file.text;
    refactor_list l;
    if (!refactor__read_list(x, p, &l)) return false;
    const size_t skip = refactor__object_arguments(x, p);
    const size_t before = f->language->has_keywords ? refactor__first_keyword(text, &l) : l.n;
    const size_t n_given = before > skip ? before - skip : 0;
    bool is_good = !refactor__has_spread(text, &l) && (f->language->has_keywords || stays_first(o, n_given));
    bool by_name = false; /* one in front of it is not given by place any more */
    size_t n_put = 0;
    *from = *to = p->use->from;
    for (size_t i = 0; i < o->n && is_good && n_given; i++) {
        const size_t k = o->order[i];
        if (k >= n_given) {
            by_name = true;
            continue;
        }
        if (by_name && (!*o->names[k] || n_given > o->n)) is_good = false;
        base_buf_printf(out, "%s%s%s", n_put++ ? ", " : "", by_name ? o->names[k] : "", by_name ? "=" : "");
        is_good = is_good && put_part(x, p->file, o, l.items[skip + k].from, l.items[skip + k].to, out);
    }
    if (n_given) {
        *from = l.items[skip].from;
        *to = l.items[skip + (n_given < o->n ? n_given : o->n) - 1].to;
    }
    free(l.items);
    return is_good;
}
