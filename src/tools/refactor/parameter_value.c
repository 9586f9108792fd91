/*
 * A parameter that goes: what its function's body has in its place.
 */
#include "tools/refactor/refactor.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

bool refactor__is_plain_read(const base_buf *text, uint32_t from, uint32_t to, const char *not_behind)
{
    static const char *const before[] = {
        "for", "as", "del", "global", "nonlocal", "let", "var", "const", "mut"};
    const char *s = text->data;
    size_t next = to, last = from;
    while (next < text->len && (s[next] == ' ' || s[next] == '\t')) next++;
    while (last > 0 && (s[last - 1] == ' ' || s[last - 1] == '\t')) last--;
    const char a = next < text->len ? s[next] : '\0', b = next + 1 < text->len ? s[next + 1] : '\0';
    if (a == '=' && b != '=') return false;
    if (b == '=' && a && strchr("+-*/%&|^:", a)) return false;
    if ((a == '+' && b == '+') || (a == '-' && b == '-') || (a && strchr(not_behind, a))) return false;
    if (last > 1 &&
        ((s[last - 1] == '+' && s[last - 2] == '+') || (s[last - 1] == '-' && s[last - 2] == '-')))
        return false;
    if (last > 0 && s[last - 1] == '&' && !(last > 1 && (s[last - 2] == '&' || s[last - 2] == ' ')))
        return false;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const size_t n = strlen(before[i]);
        if (last >= n && !memcmp(s + last - n, before[i], n) &&
            (last == n || (!isalnum((unsigned char)s[last - n - 1]) && s[last - n - 1] != '_')))
            return false;
    }
    return true;
}

static bool is_edited(const refactor_edits *edits, uint32_t at)
{
    for (size_t i = 0; i < edits->n; i++)
        if (at >= edits->all[i].from && at < edits->all[i].to) return true;
    return false;
}

uint32_t refactor__replace_parameter(const refactor *x, const char *name, const char *value,
    refactor_edits *edits, uint32_t *ret_replaced, base_buf *say)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    const code_definition *d = x->target.definition;
    code_uses *u = code_uses_find(x->w->grammars, f->path, text->data, text->len, name);
    const bool knows_locals = code_uses_know_locals(f->uses->file->language);
    /* of a string a member may be read: ','.length */
    const char *not_behind = value && strchr("\"'`", *value) ? "(" : "[(.";
    uint32_t line = 0, n = 0;
    for (uint32_t i = 0; u && i < u->n_uses && !line; i++) {
        const code_use *use = &u->uses[i];
        const uint32_t to = use->from + (uint32_t)strlen(name);
        const bool is_local = use->binding != UINT32_MAX && use->binding < d->body_from;
        if (use->from < d->body_from || use->from >= d->body_to || use->role != CODE_USE_NAME) continue;
        if (knows_locals && !is_local) continue;
        if (is_edited(edits, use->from)) continue; /* what a call of itself gives for it goes */
        if (!value && refactor__cut_handed_on(x, name, use, edits, say)) continue;
        base_buf s = {0};
        if (use->is_shorthand) base_buf_printf(&s, "%s: ", name);
        base_buf_puts(&s, value ? value : "");
        if (!value || !refactor__is_plain_read(text, use->from, to, not_behind)) line = use->line;
        if (!line) refactor__edit(edits, use->from, to, s.data);
        base_buf_free(&s);
        n++;
    }
    code_uses_free(u);
    *ret_replaced = n;
    return line;
}
