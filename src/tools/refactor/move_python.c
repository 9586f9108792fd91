/*
 * What a move needs in Python (contract: mover.h): the imports of both files, of all others, and __all__.
 */
#include "tools/refactor/mover.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/edit/import_lines.h"
#include "tools/file/text.h"
#include "tools/result/result.h"

/* The first word of a dotted name: `import a.b` is known as a. */
static char *head_of(const char *local)
{
    return base_xstrndup(local, strcspn(local, "."));
}

static bool is_in_package(const mover *m, const char *path)
{
    base_buf init = {0};
    bool found;
    base_buf_add(&init, path, (size_t)(base_path_name(path) - path));
    base_buf_puts(&init, "__init__.py");
    tool__listing_find(&m->x->w->listing, init.data, &found);
    base_buf_free(&init);
    return found;
}

/* How a file of Python names the module at `path`. */
static char *module_name(const mover *m, const char *from, const char *path)
{
    if (!base_path_same_folder(from, path) || !is_in_package(m, path)) return tool__dotted_module(path);
    const char *name = base_path_name(path);
    base_buf out = {0};
    base_buf_printf(&out, ".%.*s", (int)strcspn(name, "."), name);
    return base_buf_take(&out);
}

/* Does this import bring what the new place itself defines? There it needs none, and cannot import itself. */
static bool is_of_target(const mover *m, const code_import *im)
{
    char *near = module_name(m, m->from->path, m->to), *far = tool__dotted_module(m->to);
    const bool is_it =
        *im->name && !strcmp(im->local, im->name) && (!strcmp(im->module, near) || !strcmp(im->module, far));
    free(near);
    free(far);
    return is_it;
}

static const char *taken_by_star(const mover *m, const refactor *part);

/* Is it inside of a definition, so that only that one has it? */
static bool is_local(const mover *m, const code_import *im)
{
    const code_file *f = m->from->uses->file;
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (im->from >= f->definitions[i].from && im->from < f->definitions[i].to) return true;
    return false;
}

/*
 * `import x` at the left margin that only what goes used: linters take it for a mistake. What is imported by name stays: another
 * module may take it from here.
 */
static void drop_import(mover *m, const code_import *im, const char *head)
{
    const base_buf *text = &m->from->file.text;
    const size_t begin = tool__line_begin(text->data, im->from),
                 end = tool__line_end(text->data, text->len, im->to);
    uint32_t from = im->from, to = im->to;
    size_t pos = 0, a, b;
    if (*im->name || strncmp(text->data + begin, "import ", 7) != 0 ||
        memchr(text->data + im->to, '#', end - im->to) ||
        !strcmp(base_path_name(m->from->path), "__init__.py"))
        return;
    while (code_next_identifier(text->data, text->len, &pos, &a, &b))
        if (b - a == strlen(head) && !memcmp(text->data + a, head, b - a) && (a < begin || a >= end) &&
            !mover__is_cut(m, (uint32_t)a))
            return;
    if (!refactor__item_extent(text, &from, &to)) {
        from = (uint32_t)begin;
        to = (uint32_t)(end < text->len ? end + 1 : end);
    }
    refactor__edit(&m->source_edits, from, to, "");
}

/* Does the new place import just that already, in whatever line? */
static bool is_there(const code_uses *target, const code_import *im)
{
    bool is = false;
    for (uint32_t i = 0; target && i < target->n_imports && !is; i++) {
        const code_import *other = &target->imports[i];
        is = !strcmp(other->module, im->module) && !strcmp(other->name, im->name) &&
             !strcmp(other->local, im->local);
    }
    return is;
}

/*
 * "try: from a import x / except ImportError: from b import x", "if TYPE_CHECKING: ...": the lines of the whole statement, of which
 * the import is one. false: it stands at the margin, by itself.
 */
static bool find_compound(const base_buf *text, const code_import *im, size_t *ret_from, size_t *ret_to)
{
    static const char *const parts[] = {"except", "else", "finally", "elif", NULL};
    size_t from = tool__line_begin(text->data, im->from), to = tool__line_end(text->data, text->len, im->to);
    bool is_part = true;
    if (!tool__is_space(text->data[from])) return false;
    while (from && (tool__is_space(text->data[from]) || is_part)) { /* up to the line that begins it */
        from = tool__line_begin(text->data, from - 1);
        is_part = false;
        for (size_t i = 0; parts[i]; i++) is_part |= !strncmp(text->data + from, parts[i], strlen(parts[i]));
    }
    for (size_t next = to + 1; next < text->len; next = to + 1) {
        is_part = tool__is_space(text->data[next]) && text->data[next] != '\n' && text->data[next] != '\r';
        for (size_t i = 0; parts[i]; i++) is_part |= !strncmp(text->data + next, parts[i], strlen(parts[i]));
        if (!is_part) break;
        to = tool__line_end(text->data, text->len, next);
    }
    *ret_from = from;
    *ret_to = to;
    return true;
}

/* The import as the new place has to write it, without its last line end. */
static void put_import(const mover *m, const code_import *im, base_buf *out)
{
    const base_buf *text = &m->from->file.text;
    size_t from, to;
    if (find_compound(text, im, &from, &to)) {
        base_buf_add(out, text->data + from, to - from);
        return;
    }
    if (*im->name)
        base_buf_printf(out, "from %s import %s", im->module, im->name);
    else
        base_buf_printf(out, "import %s", im->module);
    if (strcmp(im->local, *im->name ? im->name : im->module) != 0) base_buf_printf(out, " as %s", im->local);
}

/* What the moved text takes from imports of the source is imported by the new place too. */
static bool add_imports(mover *m)
{
    const code_uses *u = m->from->uses;
    const base_buf *there = &m->to_file.text;
    code_uses *target =
        there->len ? code_uses_find(m->x->w->grammars, m->to, there->data, there->len, m->x->name) : NULL;
    base_buf line = {0};
    bool is_good = true;
    for (uint32_t i = 0; i < u->n_imports; i++) {
        const code_import *im = &u->imports[i];
        char *head = head_of(im->local);
        const bool is_used = !is_local(m, im) && (!strcmp(im->name, "*") ||
                                                     code_has_identifier(m->moved.data, m->moved.len, head));
        if (is_used) drop_import(m, im, head);
        free(head);
        if (!is_used || is_of_target(m, im)) continue;
        base_buf_clear(&line);
        if (*im->module == '.' && !base_path_same_folder(m->from->path, m->to)) is_good = false;
        if (is_there(target, im)) continue;
        put_import(m, im, &line);
        const bool is_second = strchr(line.data, '\n') && m->heads.len && strstr(m->heads.data, line.data);
        if (!is_second) mover__add_line(&m->heads, there, line.data);
    }
    base_buf_free(&line);
    code_uses_free(target);
    if (!is_good)
        tool__say(m->x->result, TOOL_REFUSED,
            "%s uses what %s imports from beside it, and %s lies in another folder. Nothing was changed.\n",
            m->x->name, m->from->path, m->to);
    return is_good;
}

/* What the moved text uses of the source's definitions that stay: "a, b". */
static void list_needs(const mover *m, base_buf *ret)
{
    const code_file *f = m->from->uses->file;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (*d->parent || mover__is_cut(m, d->from) || mover__is_named(m, d->name)) continue;
        if (!code_has_identifier(m->moved.data, m->moved.len, d->name)) continue;
        if (ret->len && code_has_identifier(ret->data, ret->len, d->name)) continue;
        base_buf_printf(ret, "%s%s", ret->len ? ", " : "", d->name);
    }
}

/* What stays uses of what moves, or (is_other) what it only hands on: "a, b". */
static void list_back(const mover *m, bool is_other, base_buf *ret)
{
    for (size_t i = 0; i < m->n_parts; i++)
        if ((mover__used_behind(m, m->parts[i], !m->is_kept) != NULL) != is_other)
            base_buf_printf(ret, "%s%s", ret->len ? ", " : "", m->parts[i]->name);
}

/* Nobody may take a part by an import of *: the source would not have it any more. */
static bool check_stars(const mover *m)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        const char *star = taken_by_star(m, m->parts[i]);
        if (!star) continue;
        tool__say(m->x->result, TOOL_REFUSED,
            "%s takes %s with an import of * from %s, and would have it "
            "no more: name there what it takes. Nothing was changed.\n",
            star, m->parts[i]->name, m->from->path);
        return false;
    }
    return true;
}

bool mover__python_heads(mover *m)
{
    static const char future[] = "from __future__ import annotations";
    base_buf needs = {0}, back = {0}, kept = {0};
    if (m->is_new && mover__has_line(&m->from->file.text, future, sizeof future - 1))
        base_buf_printf(&m->heads, "%s\n", future);
    bool is_good = add_imports(m);
    list_needs(m, &needs);
    list_back(m, false, &back);
    if (m->is_kept) list_back(m, true, &kept);
    if (is_good && needs.len && (back.len || kept.len))
        is_good = mover__refuse_needs(m, &needs,
            back.len ? "they stay, and what stays uses it, so the two modules "
                       "would import each other; move these first, or all of them"
                     : "they stay, and the old place is to hand on what goes, so the two modules "
                       "would import each other; move these too");
    if (is_good && needs.len) {
        base_buf line = {0};
        char *module = module_name(m, m->to, m->from->path);
        base_buf_printf(&line, "from %s import %s", module, needs.data);
        mover__add_line(&m->heads, &m->to_file.text, line.data);
        base_buf_free(&line);
        free(module);
    }
    is_good = is_good && (m->is_kept || check_stars(m));
    char *module = module_name(m, m->from->path, m->to);
    if (is_good && back.len) base_buf_printf(&m->back, "from %s import %s\n", module, back.data);
    /* Linters take an import that nothing uses for a mistake: F401 is pyflakes' number for it. */
    if (is_good && kept.len)
        base_buf_printf(&m->back, "from %s import %s  # noqa: F401\n", module, kept.data);
    free(module);
    base_buf_free(&needs);
    base_buf_free(&back);
    base_buf_free(&kept);
    return is_good;
}

static bool is_listed(const mover *m, const char *path)
{
    bool found;
    tool__listing_find(&m->x->w->listing, path, &found);
    return found;
}

/* "a/b" and "a/b.py" or "a/b/__init__.py": the file of a module. */
static bool is_module_file(const char *path, const char *module)
{
    static const char *const endings[] = {".py", "/__init__.py"};
    const size_t n = strlen(module);
    if (strncmp(path, module, n) != 0) return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (!strcmp(path + n, endings[i])) return true;
    return false;
}

/* Is there another file of the tree that the module, seen from the tree's root or from beside f, is? */
static bool is_another(const mover *m, const char *folder, size_t n_folder, const char *module)
{
    base_buf path = {0};
    bool is = false;
    for (int i = 0; i < 4 && !is; i++) {
        base_buf_clear(&path);
        if (i >= 2) base_buf_add(&path, folder, n_folder);
        base_buf_printf(&path, "%s%s", module, i & 1 ? "/__init__.py" : ".py");
        is = strcmp(path.data, m->from->path) != 0 && is_listed(m, path.data);
    }
    base_buf_free(&path);
    return is;
}

/* Does the import in f name this file itself, and not a package that hands on what it defines? By the whole path. */
static bool names_file(const mover *m, const refactor_file *f, const char *module, const char *file)
{
    size_t n_folder = (size_t)(base_path_name(f->path) - f->path);
    const size_t n_dots = strspn(module, ".");
    base_buf path = {0};
    for (size_t i = 1; i < n_dots && n_folder; i++) /* one for its own folder, one more for each above */
        do n_folder--;
        while (n_folder && f->path[n_folder - 1] != '/');
    if (n_dots) base_buf_add(&path, f->path, n_folder);
    base_buf_puts(&path, module + n_dots);
    for (size_t i = n_dots ? n_folder : 0; i < path.len; i++)
        if (path.data[i] == '.') path.data[i] = '/';
    while (path.len && path.data[path.len - 1] == '/') path.data[--path.len] = '\0'; /* from . import x */
    bool is = is_module_file(file, path.data ? path.data : "");
    if (!n_dots && !is && path.len) {
        const bool is_taken = is_another(m, f->path, n_folder, path.data);
        for (const char *at = file; !is && !is_taken && (at = strchr(at, '/'));)
            is = is_module_file(++at, path.data); /* below a folder that the path of modules begins in */
    }
    base_buf_free(&path);
    return is;
}

static bool is_direct(const mover *m, const refactor_file *f, const char *module)
{
    return names_file(m, f, module, m->from->path);
}

/* The name in the source's __all__. */
static const refactor_place *exported_in_source(const refactor *part)
{
    for (size_t i = 0; i < part->n_places; i++) {
        const refactor_place *p = &part->places[i];
        if (&part->files[p->file] == part->target.in && p->verdict == REFACTOR_SURE && p->use->is_exported &&
            p->use->role == CODE_USE_STRING)
            return p;
    }
    return NULL;
}

/* Puts the name into a text's own __all__, as its last item is written; a text without a plain one stays. */
static void export_in_target(base_buf *text, const char *name)
{
    static const char all[] = "__all__";
    size_t at = 0;
    while (at < text->len && strncmp(text->data + at, all, sizeof all - 1) != 0)
        at = tool__line_end(text->data, text->len, at) + 1;
    if (at >= text->len) return;
    size_t open = at + sizeof all - 1;
    open += strspn(text->data + open, " =");
    if (!text->data[open] || !strchr("[(", text->data[open])) return;
    size_t last = 0, before = open, pos = open + 1;
    char quote = '\'';
    while (text->data[pos] && !strchr("])", text->data[pos])) {
        if (text->data[pos] == '#') pos = tool__line_end(text->data, text->len, pos);
        if (text->data[pos] == '"' || text->data[pos] == '\'') {
            const char *end = strchr(text->data + pos + 1, text->data[pos]);
            if (!end) return;
            before = last ? last : open + 1;
            quote = text->data[pos];
            last = (size_t)(end - text->data) + 1;
            pos = last;
        } else if (text->data[pos]) {
            pos++;
        }
    }
    if (!text->data[pos] || (!last && text->data[open] == '(')) return;
    base_buf out = {0};
    base_buf_add(&out, text->data, last ? last : open + 1);
    if (last) {
        const char *line = memchr(text->data + before, '\n', last - before);
        base_buf_putc(&out, ',');
        const char *gap = line ? line : " ";
        base_buf_add(&out, gap, line ? 1 + strspn(line + 1, " \t") : 1);
    }
    base_buf_printf(&out, "%c%s%c", quote, name, quote);
    base_buf_add(&out, text->data + (last ? last : open + 1), text->len - (last ? last : open + 1));
    base_buf_free(text);
    *text = out;
}

static int compare_cuts(const void *a, const void *b)
{
    const mover_cut *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

void mover__python_exports(mover *m, base_buf *target)
{
    if (m->is_kept) { /* the source's list stays as it is */
        for (size_t i = 0; i < m->n_parts; i++)
            if (exported_in_source(m->parts[i])) export_in_target(target, m->parts[i]->name);
        return;
    }
    mover_cut *items = base_xcalloc(m->n_parts, sizeof *items);
    size_t n = 0;
    for (size_t i = 0; i < m->n_parts; i++) {
        const char *name = m->parts[i]->name;
        const refactor_place *p = exported_in_source(m->parts[i]);
        if (!p) continue;
        items[n++] = (mover_cut){p->use->from - 1, p->use->from + (uint32_t)strlen(name) + 1};
        export_in_target(target, name);
    }
    qsort(items, n, sizeof *items, compare_cuts);
    if (n && !mover__remove_items(&m->from->file.text, items, n, &m->source_edits))
        refactor__edit(&m->source_edits, items[0].from, items[n - 1].to, "");
    free(items);
}

/* `from target import *`: does this file get the name from there? */
static bool gets_by_star(const mover *m, const refactor *part, const refactor_file *f)
{
    const base_buf *to = &m->to_file.text;
    const bool has_all = to->len && memmem(to->data, to->len, "__all__", 7);
    bool is_so = false;
    for (uint32_t i = 0; i < f->uses->n_imports; i++)
        is_so |=
            !strcmp(f->uses->imports[i].name, "*") && names_file(m, f, f->uses->imports[i].module, m->to);
    return is_so && (!has_all || exported_in_source(part));
}

/* `from source import *` brings the name no more: where, or NULL. */
static const char *taken_by_star(const mover *m, const refactor *part)
{
    const base_buf *source = &m->from->file.text;
    const bool has_all = memmem(source->data, source->len, "__all__", 7) != NULL;
    if (has_all ? !exported_in_source(part) : *part->name == '_') return NULL;
    for (size_t k = 0; k < part->n_files + part->n_modules; k++) {
        const refactor_file *f = k < part->n_files ? &part->files[k] : part->modules[k - part->n_files];
        for (uint32_t i = 0; f->uses && i < f->uses->n_imports; i++)
            if (!strcmp(f->uses->imports[i].name, "*") && is_direct(m, f, f->uses->imports[i].module) &&
                !gets_by_star(m, part, f))
                return f->path;
    }
    return NULL;
}

/* ---- other files' `from source import name`: from the new module ---- */

typedef struct taken {
    const refactor_file *f;
    const code_import *import;
    size_t statement, statement_to; /* its bytes */
} taken;

/* "from m import a, b" and "from m import (a,\n b)": the bytes around one of its items. */
static void find_statement(const base_buf *text, const code_import *im, size_t *from, size_t *to)
{
    const char *s = text->data;
    size_t at = tool__line_begin(s, im->from);
    const char *word = s + at + strspn(s + at, " \t");
    while (at > 0 && strncmp(word, "from ", 5) != 0) { /* in parentheses */
        at = tool__line_begin(s, at - 1);
        word = s + at + strspn(s + at, " \t");
    }
    *from = (size_t)(word - s);
    *to = tool__line_end(s, text->len, im->to);
    const char *open = memchr(word, '(', im->from - *from), *close = open ? strchr(s + im->to, ')') : NULL;
    if (close) *to = (size_t)(close - s) + 1;
    while (*to > *from && strchr(" \t\r", s[*to - 1])) --*to;
}

static int compare_taken(const void *a, const void *b)
{
    const taken *x = a, *y = b;
    const int by_path = strcmp(x->f->path, y->f->path);
    return by_path ? by_path : x->import->from < y->import->from ? -1 : x->import->from > y->import->from;
}

/* In the file that they move to, or in all others but the source; in the order of paths and bytes. */
static taken *list_taken(const mover *m, bool in_target, size_t *ret_n)
{
    taken *all = NULL;
    *ret_n = 0;
    for (size_t k = 0; k < m->n_parts; k++)
        for (size_t i = 0; i < m->parts[k]->n_places; i++) {
            const refactor_place *p = &m->parts[k]->places[i];
            const refactor_file *f = &m->parts[k]->files[p->file];
            if (!strcmp(f->path, m->from->path) || !strcmp(f->path, m->to) != in_target) continue;
            if (p->verdict != REFACTOR_SURE || p->use->import == UINT32_MAX) continue;
            const code_import *im = &f->uses->imports[p->use->import];
            /* Only what names the source itself; who imports it from elsewhere goes on doing so. */
            if (!is_direct(m, f, im->module)) continue;
            all = base_xrealloc(all, (*ret_n + 1) * sizeof *all);
            all[*ret_n] = (taken){.f = f, .import = im};
            find_statement(&f->file.text, im, &all[*ret_n].statement, &all[*ret_n].statement_to);
            ++*ret_n;
        }
    if (all) qsort(all, *ret_n, sizeof *all, compare_taken);
    return all;
}

/* The items of one statement that go: a statement of their own, in place of it where they were all. */
static void retarget(const mover *m, const taken *t, size_t n, refactor_edits *edits)
{
    const base_buf *text = &t->f->file.text;
    char *module = *t->import->module == '.' ? module_name(m, t->f->path, m->to) : tool__dotted_module(m->to);
    base_buf line = {0};
    mover_cut *items = base_xcalloc(n, sizeof *items);
    base_buf_printf(&line, "from %s import ", module);
    for (size_t i = 0; i < n; i++) {
        const code_import *im = t[i].import;
        items[i] = (mover_cut){im->from, im->to};
        base_buf_printf(&line, "%s%s", i ? ", " : "", im->name);
        if (strcmp(im->name, im->local) != 0) base_buf_printf(&line, " as %s", im->local);
    }
    if (mover__remove_items(text, items, n, edits)) {
        const size_t begin = tool__line_begin(text->data, t->statement);
        base_buf_putc(&line, '\n');
        if (t->statement > begin) base_buf_add(&line, text->data + begin, t->statement - begin);
        refactor__edit(edits, (uint32_t)t->statement, (uint32_t)t->statement, line.data);
    } else {
        refactor__edit(edits, (uint32_t)t->statement, (uint32_t)t->statement_to, line.data);
    }
    base_buf_free(&line);
    free(items);
    free(module);
}

void mover__python_imports(mover *m, tool_changes *ret)
{
    size_t n;
    taken *all = list_taken(m, false, &n);
    for (size_t i = 0; i < n;) {
        const refactor_file *f = all[i].f;
        refactor_edits edits = {0};
        while (i < n && !strcmp(all[i].f->path, f->path)) {
            size_t k = i + 1;
            while (k < n && !strcmp(all[k].f->path, f->path) && all[k].statement == all[i].statement) k++;
            retarget(m, all + i, k - i, &edits);
            i = k;
        }
        refactor__edits_take(&edits, f->path, &f->file, ret);
    }
    free(all);
}

void mover__python_own_imports(mover *m, refactor_edits *edits)
{
    size_t n;
    taken *all = list_taken(m, true, &n);
    for (size_t i = 0; i < n;) {
        const base_buf *text = &m->to_file.text;
        const taken *t = &all[i];
        mover_cut *items = base_xcalloc(n, sizeof *items);
        size_t k = 0;
        for (; i < n && all[i].statement == t->statement; i++, k++) {
            const code_import *im = all[i].import;
            items[k] = (mover_cut){im->from, im->to};
            if (strcmp(im->name, im->local) != 0)
                base_buf_printf(&m->moved, "\n\n%s = %s\n", im->local, im->name);
        }
        if (!mover__remove_items(text, items, k, edits)) {
            const size_t begin = tool__line_begin(text->data, t->statement);
            const bool is_indented = begin < t->statement; /* it may be all that its block has */
            size_t end = t->statement_to;
            if (!is_indented) {
                end += end < text->len && text->data[end] == '\r';
                end += end < text->len;
            }
            refactor__edit(edits, (uint32_t)t->statement, (uint32_t)end, is_indented ? "pass" : "");
        }
        free(items);
    }
    free(all);
}
