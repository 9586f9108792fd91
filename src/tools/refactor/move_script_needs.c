/* What goes needs in its new place, in JavaScript and TypeScript: imports, and what it takes from the source (contract: move_script.h). */
#include "tools/refactor/move_script.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "code/free_names.h"
#include "tools/file/text.h"
#include "tools/result/result.h"

static bool begins(const char *text, const char *word)
{
    return !strncmp(text, word, strlen(word));
}

bool script__refuse(const mover *m, const char *what, const char *why)
{
    tool__say(m->x->result, TOOL_REFUSED, "%s%s. Nothing was changed.\n", what, why);
    return false;
}

/* All free names of what goes, each once; free by code_free_names_free. */
static uint32_t find_needs(const mover *m, code_free_name **ret)
{
    const base_buf *text = &m->from->file.text;
    size_t cap = 0;
    uint32_t n = 0;
    *ret = NULL;
    for (size_t i = 0; i < m->n_cuts; i++) {
        code_free_name *some;
        const uint32_t k = code_free_names(
            m->x->w->grammars, m->from->path, text->data, text->len, m->cuts[i].from, m->cuts[i].to, &some);
        for (uint32_t j = 0; j < k; j++) {
            bool is_again = false;
            for (uint32_t a = 0; a < n; a++) is_again |= !strcmp((*ret)[a].name, some[j].name);
            if (is_again) {
                free(some[j].name);
                continue;
            }
            base_grow(ret, &cap, n + 1, sizeof **ret);
            (*ret)[n++] = some[j];
        }
        free(some);
    }
    return n;
}

bool mover__script_uses(const mover *m, const char *name)
{
    code_free_name *all;
    const uint32_t n = find_needs(m, &all);
    bool is = false;
    for (uint32_t i = 0; i < n; i++) is |= !strcmp(all[i].name, name);
    code_free_names_free(all, n);
    return is;
}

bool mover__script_is_set(const mover *m, const char *name)
{
    code_free_name *all;
    const uint32_t n = find_needs(m, &all);
    bool is = false;
    for (uint32_t i = 0; i < n; i++) is |= !strcmp(all[i].name, name) && all[i].is_set;
    code_free_names_free(all, n);
    return is;
}

/* The import of the source's top that gives it this name. */
static const code_import *import_at_top(const mover *m, const char *name, script_import *ret)
{
    const base_buf *text = &m->from->file.text;
    const code_uses *u = m->from->uses;
    for (uint32_t i = 0; i < u->n_imports; i++)
        if (!u->imports[i].is_export && !strcmp(u->imports[i].local, name) &&
            script__read_import(text, &u->imports[i], ret) &&
            ret->line == tool__line_begin(text->data, ret->line))
            return &u->imports[i];
    return NULL;
}

/* A path of the source as the new place has to write it; the caller frees. */
static char *spec_there(const mover *m, const char *spec)
{
    if (*spec != '.' || base_path_same_folder(m->from->path, m->to)) return base_xstrdup(spec);
    const char *path = script__module(m->x, m->from->path, spec);
    if (path) return script__spell(m->to, path, spec);
    char *file = refactor__join_path(m->from->path, spec); /* data, or what a build makes */
    char *out = NULL;
    if (file && *base_path_ending(file)) {
        base_buf whole = {0};
        char *stem = script__spell(m->to, file, NULL);
        base_buf_printf(&whole, "%s%s", stem, base_path_ending(file));
        free(stem);
        out = base_buf_take(&whole);
    } else if (file) {
        out = script__spell(m->to, file, NULL);
    }
    free(file);
    return out ? out : base_xstrdup(spec);
}

/* Nothing else of the source uses the import, so it goes too. */
static void drop_unused(mover *m, const code_import *im, const script_import *st)
{
    const base_buf *text = &m->from->file.text;
    size_t pos = 0, a, b;
    while (code_next_identifier(text->data, text->len, &pos, &a, &b))
        if (b - a == strlen(im->local) && !memcmp(text->data + a, im->local, b - a) &&
            (a < im->from || a >= im->to) && !mover__is_cut(m, (uint32_t)a) &&
            (a < st->spec || a >= st->spec_to))
            return;
    uint32_t from = im->from, to = im->to;
    const bool is_item =
        *im->name && (strchr("{,", text->data[im->from - 1]) || text->data[im->from - 1] == ' ' ||
                         text->data[im->from - 1] == '\n');
    uint32_t n = 0; /* of the statement */
    for (uint32_t i = 0; i < m->from->uses->n_imports; i++) {
        script_import other;
        n += script__read_import(text, &m->from->uses->imports[i], &other) && other.spec == st->spec;
    }
    if (n > 1) {
        if (is_item && refactor__item_extent(text, &from, &to))
            refactor__edit(&m->source_edits, from, to, "");
        return;
    }
    from = st->from;
    to = st->to;
    if (!st->is_alone) {
        if (refactor__item_extent(text, &from, &to)) refactor__edit(&m->source_edits, from, to, "");
        return;
    }
    if (refactor__statement_extent(text, &from, &to)) refactor__edit(&m->source_edits, from, to, "");
}

/* The new place imports what the source does. false: the name means another thing there. */
static bool copy_import(mover *m, const code_import *im, const script_import *st)
{
    const base_buf *there = &m->to_file.text;
    const refactor_file *f = m->is_new ? NULL : refactor__module(m->x, m->to);
    char *spec = spec_there(m, im->module);
    base_buf names = {0};
    bool is_good = true, is_had = false;
    const bool is_type = st->is_type || !strncmp(m->from->file.text.data + im->from, "type ", 5);
    const char *as = m->script->kind == SCRIPT_COMMON ? ": " : " as ";
    drop_unused(m, im, st);
    for (uint32_t i = 0; f && i < f->uses->n_imports; i++)
        is_had |= !strcmp(f->uses->imports[i].local, im->local) &&
                  !strcmp(f->uses->imports[i].name, im->name) && !f->uses->imports[i].is_export;
    if (!is_had && there->len && code_binds_top(m->x->w->grammars, m->to, there->data, there->len, im->local))
        is_good = script__refuse(m, im->local, " means another thing in the new place");
    const char *from_tree = script__module(m->x, m->from->path, im->module);
    if (from_tree && !strcmp(from_tree, m->to)) is_had = true; /* its own */
    if (from_tree && strcmp(from_tree, m->to) != 0 && !st->is_type)
        base_buf_printf(&m->script->reached, "%s\n", from_tree);
    if (!*im->name)
        base_buf_printf(&names, "* as %s", im->local);
    else if (!strcmp(im->name, im->local))
        base_buf_puts(&names, im->name);
    else
        base_buf_printf(&names, "%s%s%s", im->name, as, im->local);
    if (is_good && !is_had) {
        base_buf line = {0};
        script__put_line(m, script__style(there->len ? there : &m->from->file.text),
            is_type ? "import type" : "import", names.data, spec, &line);
        base_buf_puts(&m->heads, line.data);
        base_buf_free(&line);
    }
    base_buf_free(&names);
    free(spec);
    return is_good;
}

/* The definition at the top of the source, that stays. */
static const code_definition *staying(const mover *m, const char *name)
{
    const code_file *f = m->from->uses->file;
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (!strcmp(f->definitions[i].name, name) && !*f->definitions[i].parent &&
            strcmp(f->definitions[i].what, "method") != 0 && strcmp(f->definitions[i].what, "field") != 0)
            return &f->definitions[i];
    return NULL;
}

/* Does the source give a name that stays to others? */
static bool is_given_already(const mover *m, const char *name, const code_definition *d)
{
    const base_buf *text = &m->from->file.text;
    if (d && begins(text->data + d->from, "export ")) return !begins(text->data + d->from, "export default");
    code_uses *u = code_uses_find(m->x->w->grammars, m->from->path, text->data, text->len, name);
    bool is = false;
    for (uint32_t i = 0; u && i < u->n_uses; i++)
        is |= u->uses[i].is_exported && u->uses[i].import == UINT32_MAX;
    code_uses_free(u);
    return is;
}

/* What the new place takes from the source; the source gives it from now on where it did not. false: it cannot. */
static bool take_from_source(mover *m, const code_free_name *need, base_buf names[2])
{
    const code_definition *d = staying(m, need->name);
    const base_buf *there = &m->to_file.text;
    const bool is_type = d && (!strcmp(d->what, "interface") || !strcmp(d->what, "type"));
    if (need->is_set)
        return script__refuse(m, need->name, " gets other values in the source, so both cannot have it");
    if (!is_given_already(m, need->name, d)) {
        base_buf word = {0};
        if (!d || d->from == d->name_from)
            return script__refuse(m, need->name, " stays in the source and is not exported");
        if (m->script->kind == SCRIPT_ES)
            refactor__edit(&m->source_edits, d->from, d->from, "export ");
        else
            base_buf_printf(&m->script->exports, "%s ", need->name);
        base_buf_printf(&word, "%s exports %s now.\n", m->from->path, need->name);
        base_buf_puts(&m->notes, word.data);
        base_buf_free(&word);
    }
    const refactor_file *f = m->is_new ? NULL : refactor__module(m->x, m->to);
    for (uint32_t i = 0; f && i < f->uses->n_imports; i++)
        if (!strcmp(f->uses->imports[i].local, need->name) &&
            script__is_from(m, f, &f->uses->imports[i], m->from->path))
            return true; /* it does already */
    if (there->len && code_binds_top(m->x->w->grammars, m->to, there->data, there->len, need->name))
        return script__refuse(m, need->name, " means another thing in the new place");
    base_buf_printf(&names[is_type], "%s%s", names[is_type].len ? ", " : "", need->name);
    return true;
}

/* Imports of the source and its own definitions that what goes uses. */
bool script__add_needs(mover *m)
{
    code_free_name *all;
    const uint32_t n = find_needs(m, &all);
    const base_buf *there = &m->to_file.text;
    base_buf names[2] = {{0}, {0}};
    bool is_good = true;
    for (uint32_t i = 0; i < n && is_good; i++) {
        script_import st;
        if (mover__is_named(m, all[i].name)) continue;
        const code_import *im = import_at_top(m, all[i].name, &st);
        if (im)
            is_good = copy_import(m, im, &st);
        else if (all[i].is_bound)
            is_good = take_from_source(m, &all[i], names);
        else if (there->len && code_binds_top(m->x->w->grammars, m->to, there->data, there->len, all[i].name))
            is_good = script__refuse(m, all[i].name, " means another thing in the new place");
    }
    char *spec = script__spell(m->to, m->from->path, m->script->like);
    for (int k = 0; k < 2 && is_good; k++) {
        if (!names[k].len) continue;
        script__put_line(m, script__style(there->len ? there : &m->from->file.text),
            k ? "import type" : "import", names[k].data, spec, &m->heads);
        m->script->needs_source |= k == 0;
    }
    base_buf_free(&names[0]);
    base_buf_free(&names[1]);
    free(spec);
    code_free_names_free(all, n);
    return is_good;
}

/* Relative paths inside of what goes, and what only the old place has. */
bool script__change_inside(mover *m)
{
    static const char *const bound[] = {"__dirname", "__filename", "import.meta"};
    const base_buf *text = &m->from->file.text;
    if (base_path_same_folder(m->from->path, m->to)) return true;
    for (size_t i = 0; i < sizeof bound / sizeof *bound; i++)
        if (m->moved.len && memmem(m->moved.data, m->moved.len, bound[i], strlen(bound[i])))
            return script__refuse(m, bound[i], " in what moves would mean the other folder");
    uint32_t at = 0, from, to;
    while (script__next_spec(text, &at, &from, &to)) {
        const char *before = text->data + from - 1;
        const bool is_path =
            from > 8 && (!strncmp(before - 8, "require(", 8) || !strncmp(before - 7, "import(", 7));
        if (!mover__is_cut(m, from) || !is_path) continue;
        char *spec = base_xstrndup(text->data + from, to - from), *now = spec_there(m, spec);
        refactor__edit(&m->moved_edits, from, to, now);
        free(spec);
        free(now);
    }
    return true;
}
