/*
 * Who takes from the source what moves (contract: move_script.h): imports by name, all of a module under one name (a.f), what is handed on
 * (export {f} from, export * from), and what a path alone names (require('./a').f).
 */
#include "tools/refactor/move_script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/edit/naming.h"
#include "tools/file/text.h"

bool script__is_from(const mover *m, const refactor_file *f, const code_import *im, const char *path)
{
    const char *found = script__module(m->x, f->path, im->module);
    return found && !strcmp(found, path);
}

/* ---- lines ---- */

void script__put_line(
    const mover *m, script_style style, const char *word, const char *names, const char *spec, base_buf *out)
{
    static const char by_default[] = "default as ";
    const bool is_whole = *names == '*',
               is_default = *word == 'i' && !strncmp(names, by_default, sizeof by_default - 1);
    base_buf what = {0};
    if (m->script->kind == SCRIPT_COMMON)
        base_buf_printf(&what, is_whole ? "%s" : "{ %s }", is_whole ? names + strlen("* as ") : names);
    else if (is_default) { /* the first of them */
        const char *local = names + sizeof by_default - 1;
        const size_t n = strcspn(local, ",");
        base_buf_add(&what, local, n);
        if (local[n]) base_buf_printf(&what, ", { %s }", local + n + 2);
    } else {
        base_buf_printf(&what, is_whole ? "%s" : "{ %s }", names);
    }
    if (m->script->kind == SCRIPT_COMMON)
        base_buf_printf(out, "%s %s = require(%c%s%c)%s\n", style.word, what.data, style.quote, spec,
            style.quote, style.end);
    else
        base_buf_printf(
            out, "%s %s from %c%s%c%s\n", word, what.data, style.quote, spec, style.quote, style.end);
    base_buf_free(&what);
}

bool script__join_line(const mover *m, const refactor_file *f, const char *path, const char *names,
    bool is_type, refactor_edits *edits)
{
    const base_buf *text = &f->file.text;
    const code_import *last = NULL;
    if (*names == '*' || !strncmp(names, "default as ", 11)) return false;
    for (uint32_t i = 0; i < f->uses->n_imports; i++) {
        const code_import *im = &f->uses->imports[i];
        script_import st;
        if (!*im->name || *im->name == '*' || !strcmp(im->name, "default") || im->is_export) continue;
        if (!script__is_from(m, f, im, path) || !script__read_import(text, im, &st)) continue;
        if (st.is_type == is_type && st.line == tool__line_begin(text->data, st.line)) last = im;
    }
    if (!last) return false;
    base_buf out = {0};
    const size_t line = tool__line_begin(text->data, last->from);
    if (tool__is_blank(text->data, line, last->from)) /* each on a line of its own */
        base_buf_printf(&out, ",\n%.*s%s", (int)(last->from - line), text->data + line, names);
    else
        base_buf_printf(&out, ", %s", names);
    refactor__edit(edits, last->to, last->to, out.data);
    base_buf_free(&out);
    return true;
}

/* ---- finding them ---- */

/* What stands behind a name: ".member"; *ret_n 0: nothing of that kind. */
static const char *member_behind(const base_buf *text, uint32_t at, size_t *ret_n)
{
    const char *p = text->data + at;
    *ret_n = 0;
    p += strspn(p, " \t\r\n");
    if (*p == '?' && p[1] == '.') p++;
    if (*p != '.') return p;
    p += 1 + strspn(p + 1, " \t\r\n");
    while (code_is_name_byte(p[*ret_n])) ++*ret_n;
    return p;
}

static bool is_given_member(const mover *m, const char *p, size_t n)
{
    char *name = base_xstrndup(p, n);
    const refactor *part = n ? script__given(m, name) : NULL;
    const bool is = part && script__form(m, part) != SCRIPT_DEFAULT;
    free(name);
    return is;
}

typedef struct script_whole {
    size_t n_moved, n_others, n_bare; /* a.moved, a.other, a */
} script_whole;

/* Counts what a file does with an import of all that the source gives. */
static script_whole read_whole(
    const mover *m, const refactor_file *f, const code_import *im, const char *as, refactor_edits *edits)
{
    const base_buf *text = &f->file.text;
    script_whole ret = {0};
    code_uses *u = code_uses_find(m->x->w->grammars, f->path, text->data, text->len, im->local);
    uint32_t binding = UINT32_MAX;
    for (uint32_t i = 0; u && i < u->n_uses; i++)
        if (u->uses[i].from >= im->from && u->uses[i].from < im->to) binding = u->uses[i].binding;
    for (uint32_t i = 0; u && i < u->n_uses; i++) {
        const code_use *use = &u->uses[i];
        const uint32_t end = use->from + (uint32_t)strlen(im->local);
        if (use->role != CODE_USE_NAME || use->binding != binding ||
            (use->from >= im->from && use->from < im->to))
            continue;
        size_t n;
        const char *member = member_behind(text, end, &n);
        if (!n)
            ret.n_bare++;
        else if (!is_given_member(m, member, n))
            ret.n_others++;
        else {
            ret.n_moved++;
            if (as) refactor__edit(edits, use->from, end, as);
        }
    }
    code_uses_free(u);
    return ret;
}

/* Is this all of a module under one name? CommonJS, taken by an ES module, comes as its default. */
static bool is_whole_import(const mover *m, const code_import *im)
{
    return !*im->name || (m->script->kind == SCRIPT_COMMON && !strcmp(im->name, "default"));
}

/* Can nobody see what the file takes of the source? */
static bool is_undecided(const mover *m, const refactor_file *f)
{
    const base_buf *text = &f->file.text;
    uint32_t at = 0, from, to;
    while (script__next_spec(text, &at, &from, &to)) {
        char *spec = base_xstrndup(text->data + from, to - from);
        const char *path = script__module(m->x, f->path, spec);
        free(spec);
        if (!path || strcmp(path, m->from->path) != 0) continue;
        const code_import *im = NULL;
        for (uint32_t i = 0; i < f->uses->n_imports && !im; i++) {
            script_import st;
            if (script__read_import(text, &f->uses->imports[i], &st) && st.spec == from)
                im = &f->uses->imports[i];
        }
        size_t n;
        const size_t line = tool__line_begin(text->data, from);
        const bool is_effect =
            !strncmp(text->data + line, "import", 6) && tool__is_blank(text->data, line + 6, from - 1);
        const char *behind = text->data + to + 1;
        if (im ? is_whole_import(m, im) && read_whole(m, f, im, NULL, NULL).n_bare
               : !is_effect && (*behind != ')' || (member_behind(text, to + 2, &n), !n)))
            return true;
    }
    return false;
}

/* A path that a build or a package resolves, "@/lib/a", and that ends as the source does. */
static bool is_aliased(const mover *m, const refactor_file *f)
{
    const char *name = base_path_name(m->from->path);
    const size_t n = strcspn(name, ".");
    for (uint32_t i = 0; i < f->uses->n_imports; i++) {
        const code_import *im = &f->uses->imports[i];
        const char *last = strrchr(im->module, '/');
        if (*im->module != '.' && last && !strncmp(last + 1, name, n) &&
            (!last[n + 1] || last[n + 1] == '.') && script__given(m, im->name))
            return true;
    }
    return false;
}

static bool names_source(const mover *m, const char *path, const base_buf *text)
{
    uint32_t at = 0, from, to;
    bool is = false;
    while (!is && script__next_spec(text, &at, &from, &to)) {
        char *spec = base_xstrndup(text->data + from, to - from);
        const char *found = script__module(m->x, path, spec);
        is = found && !strcmp(found, m->from->path);
        free(spec);
    }
    return is;
}

bool script__find_users(mover *m)
{
    script_move *s = m->script;
    const tool_listing *l = &m->x->w->listing;
    const char *name = base_path_name(m->from->path);
    const size_t n = strcspn(name, ".");
    for (size_t i = 0; i < l->n; i++) {
        const char *path = l->files[i].path;
        tool_file file = {0};
        if (refactor__language(code_language(path, "", 0))->family != REFACTOR_JS ||
            !strcmp(path, m->from->path))
            continue;
        if (tool__cancelled(m->x->limits)) return false;
        if (tool__file_read(&m->x->w->root, path, TOOL_MAX_INDEXED, &file, NULL)) continue;
        const bool is_near =
            file.text.len && (!strncmp(name, "index.", 6) || memmem(file.text.data, file.text.len, name, n));
        const bool is_one = is_near && names_source(m, path, &file.text);
        tool__file_free(&file);
        const refactor_file *f = is_near ? refactor__module(m->x, path) : NULL;
        if (!f || (!is_one && !is_aliased(m, f))) continue;
        if (!s->whole && (!is_one || is_undecided(m, f))) s->whole = f->path;
        base_grow(&s->users, &s->cap_users, s->n_users + 1, sizeof *s->users);
        s->users[s->n_users++] = f;
    }
    return true;
}

/* ---- changing them ---- */

typedef struct user {
    const mover *m;
    const refactor_file *f;
    script_style style;
    refactor_edits edits;
    bool takes; /* it imports the new place now */
} user;

/* Names that a file takes from the new place, "a, b as c", by how it takes them. */
typedef struct wish {
    base_buf names[2][2]; /* [is_export][is_type] */
} wish;

static void add_wish(
    wish *w, const mover *m, bool is_export, bool is_type, const char *name, const char *local)
{
    base_buf *out = &w->names[is_export][is_type];
    base_buf_printf(out, "%s%s", out->len ? ", " : "", name);
    if (strcmp(name, local) != 0)
        base_buf_printf(out, "%s%s", m->script->kind == SCRIPT_COMMON ? ": " : " as ", local);
}

/* In front of byte `at`, which begins a statement, indented as that is; joined to a statement that there is. */
static void put_wish(user *u, wish *w, uint32_t at, const char *like)
{
    static const char *const words[2][2] = {{"import", "import type"}, {"export", "export type"}};
    const base_buf *text = &u->f->file.text;
    const uint32_t line = (uint32_t)tool__line_begin(text->data, at);
    char *spec = script__spell(u->f->path, u->m->to, like);
    base_buf out = {0};
    for (int k = 0; k < 4; k++) {
        base_buf *names = &w->names[k / 2][k % 2];
        const bool is_joined = names->len && k < 2 && at == line &&
                               script__join_line(u->m, u->f, u->m->to, names->data, k % 2, &u->edits);
        if (names->len && !is_joined) {
            if (tool__is_blank(text->data, line, at)) base_buf_add(&out, text->data + line, at - line);
            script__put_line(u->m, u->style, words[k / 2][k % 2], names->data, spec, &out);
        }
        u->takes |= names->len > 0;
        base_buf_free(names);
    }
    if (out.len) refactor__edit(&u->edits, line, line, out.data);
    base_buf_free(&out);
    free(spec);
}

static bool is_type_item(const base_buf *text, const code_import *im)
{
    return !strncmp(text->data + im->from, "type ", 5) && strncmp(im->name, "type", 5) != 0;
}

/* The items go out of their statement, with the statement where they were all of it. */
static void cut_items(user *u, const script_import *st, const mover_cut *items, size_t n, size_t n_all)
{
    const base_buf *text = &u->f->file.text;
    uint32_t from = st->from, to = st->to;
    if (n < n_all && mover__remove_items(text, items, n, &u->edits)) return;
    if (n < n_all) { /* import Whole, { all, of, these } */
        from = items[0].from;
        to = items[n - 1].to;
        while (from > st->from && text->data[from] != '{') from--;
        while (from > st->from && text->data[from] != ',') from--;
        while (to < st->to && text->data[to] != '}') to++;
        refactor__edit(&u->edits, from, to + 1, "");
    } else if (!st->is_alone && refactor__item_extent(text, &from, &to)) {
        refactor__edit(&u->edits, from, to, "");
    } else {
        refactor__statement_extent(text, &from, &to);
        refactor__edit(&u->edits, from, to, "");
    }
}

static void set_spec(user *u, const script_import *st, const char *like)
{
    char *spec = script__spell(u->f->path, u->m->to, like);
    refactor__edit(&u->edits, st->spec, st->spec_to, spec);
    u->takes = true;
    free(spec);
}

/* Imports by name, [i, end) being those of one statement. */
static void change_named(user *u, uint32_t i, uint32_t end, const script_import *st)
{
    const mover *m = u->m;
    const base_buf *text = &u->f->file.text;
    mover_cut *items = base_xcalloc(end - i, sizeof *items);
    size_t n = 0;
    wish w = {0};
    bool is_same = true;
    for (uint32_t k = i; k < end; k++) {
        const code_import *im = &u->f->uses->imports[k];
        const refactor *part = script__given(m, im->name);
        if (!part) continue;
        const char *name = script__new_name(m, part);
        items[n++] = (mover_cut){im->from, im->to};
        is_same = is_same && !strcmp(name, im->name);
        add_wish(&w, m, im->is_export, st->is_type || is_type_item(text, im), name, im->local);
    }
    const code_import *first = &u->f->uses->imports[i];
    refactor_edits tried = {0};
    const bool can_join = !first->is_export && script__join_line(m, u->f, m->to, "x", st->is_type, &tried);
    refactor__edits_free(&tried);
    if (n && n == end - i && is_same && !can_join) {
        set_spec(u, st, first->module);
        for (int k = 0; k < 4; k++) base_buf_free(&w.names[k / 2][k % 2]);
    } else if (n) {
        cut_items(u, st, items, n, end - i);
        put_wish(u, &w, st->line, first->module);
    }
    free(items);
}

/* A name for all that the new place gives, as its file is called; the caller frees. NULL: the file uses that otherwise. */
static char *whole_name(const user *u)
{
    base_buf out = {0};
    const char *file = base_path_name(u->m->to);
    bool is_upper = false;
    char *folder = base_path_folder(u->m->to);
    if (!strncmp(file, "index.", 6)) file = base_path_name(folder);
    for (const char *p = file; *p && *p != '.'; p++) {
        if (code_is_name_byte(*p)) base_buf_putc(&out, (char)(is_upper ? toupper((unsigned char)*p) : *p));
        is_upper = !code_is_name_byte(*p) && out.len;
    }
    free(folder);
    const base_buf *text = &u->f->file.text;
    if (out.len && isalpha((unsigned char)out.data[0]) &&
        !code_has_identifier(text->data, text->len, out.data) &&
        !*tool__why_no_name("javascript", out.data, false))
        return base_buf_take(&out);
    base_buf_puts(&out, "Module");
    if (isalpha((unsigned char)out.data[0]) && !code_has_identifier(text->data, text->len, out.data))
        return base_buf_take(&out);
    base_buf_free(&out);
    return NULL;
}

/* All of the source under one name: a.f */
static void change_whole(user *u, const code_import *im, const script_import *st)
{
    const script_whole w = read_whole(u->m, u->f, im, NULL, NULL);
    if (!w.n_moved) return;
    if (!w.n_others && !w.n_bare) {
        set_spec(u, st, im->module);
        return;
    }
    char *known = NULL;
    for (uint32_t i = 0; i < u->f->uses->n_imports && !known; i++) {
        const code_import *k = &u->f->uses->imports[i];
        if (!*k->name && script__is_from(u->m, u->f, k, u->m->to)) known = base_xstrdup(k->local);
    }
    char *name = known ? known : whole_name(u);
    if (!name) return;
    read_whole(u->m, u->f, im, name, &u->edits);
    u->takes = true;
    if (!known) {
        base_buf names = {0};
        wish wanted = {0};
        base_buf_printf(&names, "* as %s", name);
        wanted.names[0][0] = names;
        put_wish(u, &wanted, st->line, im->module);
    }
    free(name);
}

/* export * from './a': what moved is no longer among it, unless the new place is handed on whole too. */
static void change_star(user *u, const code_import *im, const script_import *st)
{
    wish w = {0};
    for (uint32_t i = 0; i < u->f->uses->n_imports; i++) {
        const code_import *k = &u->f->uses->imports[i];
        if (k->is_export && !strcmp(k->name, "*") && script__is_from(u->m, u->f, k, u->m->to)) return;
    }
    for (size_t i = 0; i < u->m->n_parts; i++) {
        const refactor *part = u->m->parts[i];
        const script_form form = script__form(u->m, part);
        if (form != SCRIPT_HIDDEN && form != SCRIPT_DEFAULT)
            add_wish(&w, u->m, true, script__is_type(part), part->name, part->name);
    }
    put_wish(u, &w, st->line, im->module);
}

/* require('./a').f */
static void change_paths(user *u)
{
    const base_buf *text = &u->f->file.text;
    uint32_t at = 0, from, to;
    while (script__next_spec(text, &at, &from, &to)) {
        size_t n;
        const char *member = text->data[to + 1] == ')' ? member_behind(text, to + 2, &n) : NULL;
        if (!member || !n || !is_given_member(u->m, member, n)) continue;
        char *spec = base_xstrndup(text->data + from, to - from);
        const char *path = script__module(u->m->x, u->f->path, spec);
        if (path && !strcmp(path, u->m->from->path)) {
            const script_import st = {.spec = from, .spec_to = to};
            set_spec(u, &st, spec);
        }
        free(spec);
    }
}

static void change_user(user *u)
{
    const code_uses *uses = u->f->uses;
    for (uint32_t i = 0; i < uses->n_imports;) {
        script_import st, next;
        uint32_t end = i + 1;
        const code_import *im = &uses->imports[i];
        if (!script__is_from(u->m, u->f, im, u->m->from->path) ||
            !script__read_import(&u->f->file.text, im, &st)) {
            i++;
            continue;
        }
        while (end < uses->n_imports && script__read_import(&u->f->file.text, &uses->imports[end], &next) &&
               next.spec == st.spec)
            end++;
        if (*im->name == '*' && im->is_export)
            change_star(u, im, &st);
        else if (is_whole_import(u->m, im))
            change_whole(u, im, &st);
        else
            change_named(u, i, end, &st);
        i = end;
    }
    change_paths(u);
}

void mover__script_users(mover *m, tool_changes *ret)
{
    for (size_t i = 0; i < m->script->n_users && !m->script->is_entry; i++) {
        const refactor_file *f = m->script->users[i];
        if (!strcmp(f->path, m->to)) continue;
        user u = {.m = m, .f = f, .style = script__style(&f->file.text)};
        change_user(&u);
        const bool is_circle = u.takes && m->script->reached.len &&
                               mover__has_line(&m->script->reached, f->path, strlen(f->path));
        if (is_circle) base_buf_printf(&m->notes, "%s and %s import each other now.\n", f->path, m->to);
        refactor__edits_take(&u.edits, f->path, &f->file, ret);
    }
}
