/* What the languages' parts of a move share (contract: mover.h). */
#include "tools/refactor/mover.h"

#include <string.h>

#include "tools/file/text.h"
#include "tools/result/result.h"

bool mover__has_line(const base_buf *text, const char *line, size_t n)
{
    for (size_t at = 0; at < text->len;) {
        const size_t end = tool__line_end(text->data, text->len, at);
        if (end - at >= n && !memcmp(text->data + at, line, n) && tool__is_blank(text->data, at + n, end))
            return true;
        at = end + 1;
    }
    return false;
}

void mover__add_line(base_buf *out, const base_buf *where, const char *line)
{
    if (where && where->len && mover__has_line(where, line, strlen(line))) return;
    if (out->len && mover__has_line(out, line, strlen(line))) return;
    base_buf_puts(out, line);
    base_buf_putc(out, '\n');
}

bool mover__is_cut(const mover *m, uint32_t at)
{
    for (size_t i = 0; i < m->n_cuts; i++)
        if (at >= m->cuts[i].from && at < m->cuts[i].to) return true;
    return false;
}

bool mover__is_named(const mover *m, const char *name)
{
    for (size_t i = 0; i < m->n_parts; i++)
        if (!strcmp(m->parts[i]->name, name)) return true;
    return false;
}

bool mover__refuse_needs(const mover *m, const base_buf *names, const char *why)
{
    tool__say(m->x->result, TOOL_REFUSED, "%s%s uses %s: %s. Nothing was changed.\n", m->x->name,
        m->n_parts > 1 ? " with the others" : "", names->data, why);
    return false;
}

const refactor_place *mover__used_behind(const mover *m, const refactor *part, bool through)
{
    for (size_t i = 0; i < part->n_places; i++) {
        const refactor_place *p = &part->places[i];
        const bool is_source = &part->files[p->file] == part->target.in;
        if (p->verdict != REFACTOR_SURE || p->use->role >= CODE_USE_STRING) continue;
        const bool is_here = is_source && !mover__is_cut(m, p->use->from) && p->use->definition == UINT32_MAX;
        if (is_here || (through && !is_source && p->use->role == CODE_USE_MEMBER)) return p;
    }
    return NULL;
}

bool mover__remove_items(const base_buf *text, const mover_cut *items, size_t n, refactor_edits *edits)
{
    for (size_t i = 0; i < n;) {
        uint32_t from = items[i].from, to = items[i].to;
        for (i++; i < n && to + strspn(text->data + to, " \t\r\n,") == items[i].from; i++) to = items[i].to;
        size_t begin = from, end = to + strspn(text->data + to, " \t\r\n");
        while (begin > 0 && strchr(" \t\r\n", text->data[begin - 1])) begin--;
        if (text->data[end] == ',') end += 1 + strspn(text->data + end + 1, " \t\r\n");
        if (begin > 0 && strchr("([{", text->data[begin - 1]) && strchr(")]}", text->data[end])) return false;
        if (!refactor__item_extent(text, &from, &to)) return false;
        refactor__edit(edits, from, to, "");
    }
    return true;
}
