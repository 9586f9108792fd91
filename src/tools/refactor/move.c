/*
 * move: a definition at the top of a file goes to another file, with what it needs there and what now has to look
 * for it there: imports in Python, includes and a prototype in C, imports in Go. What would leave something behind
 * that is not seen from the new place (static helpers, two modules that import each other) is said and refused.
 */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/edit/import_lines.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "base/path.h"

typedef struct mover {
    refactor *x;
    const refactor_file *from;
    tool_file to_file; /* as it is; empty when it is new */
    bool is_new;
    char *to;
    uint32_t cut_from, cut_to; /* of the source: the definition, its comment, blank lines */
    base_buf moved;
    base_buf heads; /* lines that the new place needs at its top */
    base_buf back;  /* lines that the source needs at its top */
    bool *is_used;  /* [imports of the source] the definition uses it */
    refactor_edits source_edits;
} mover;

static bool has_line(const base_buf *text, const char *line, size_t n)
{
    for (size_t at = 0; at < text->len;) {
        const size_t end = tool__line_end(text->data, text->len, at);
        if (end - at >= n && !memcmp(text->data + at, line, n) && tool__is_blank(text->data, at + n, end))
            return true;
        at = end + 1;
    }
    return false;
}

static void add_line(base_buf *out, const base_buf *where, const char *line)
{
    if (where && where->len && has_line(where, line, strlen(line))) return;
    if (out->len && has_line(out, line, strlen(line))) return;
    base_buf_puts(out, line);
    base_buf_putc(out, '\n');
}

/* The first word of a dotted name: `import a.b` is known as a. */
static char *head_of(const char *local)
{
    return base_xstrndup(local, strcspn(local, "."));
}

static bool refuse_needs(mover *m, const base_buf *names, const char *why)
{
    tool__say(
        m->x->result, TOOL_REFUSED, "%s uses %s: %s. Nothing was changed.\n", m->x->name, names->data, why);
    return false;
}

/* Is the name used in the source outside of the definition, or through the source from elsewhere? */
static const refactor_place *used_behind(const mover *m, bool through)
{
    for (size_t i = 0; i < m->x->n_places; i++) {
        const refactor_place *p = &m->x->places[i];
        const refactor_file *f = &m->x->files[p->file];
        if (p->verdict != REFACTOR_SURE || p->use->role >= CODE_USE_STRING) continue;
        const bool is_here = f == m->from && (p->use->from < m->cut_from || p->use->from >= m->cut_to) &&
                             p->use->definition == UINT32_MAX;
        if (is_here || (through && f != m->from && p->use->role == CODE_USE_MEMBER)) return p;
    }
    return NULL;
}

/* ---- Python ---- */

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

static const char *taken_by_star(const mover *m);

static bool python_heads(mover *m)
{
    const code_uses *u = m->from->uses;
    base_buf needs = {0}, line = {0};
    bool is_good = true;
    static const char future[] = "from __future__ import annotations";
    if (m->is_new && has_line(&m->from->file.text, future, sizeof future - 1))
        base_buf_printf(&m->heads, "%s\n", future);
    for (uint32_t i = 0; i < u->n_imports; i++) {
        const code_import *im = &u->imports[i];
        char *head = head_of(im->local);
        if (is_of_target(m, im)) {
            /* it stands there */
        } else if (!strcmp(im->name, "*") || code_has_identifier(m->moved.data, m->moved.len, head)) {
            base_buf_clear(&line);
            if (*im->module == '.' && !base_path_same_folder(m->from->path, m->to)) is_good = false;
            if (*im->name)
                base_buf_printf(&line, "from %s import %s", im->module, im->name);
            else
                base_buf_printf(&line, "import %s", im->module);
            if (strcmp(im->local, *im->name ? im->name : im->module) != 0)
                base_buf_printf(&line, " as %s", im->local);
            add_line(&m->heads, &m->to_file.text, line.data);
        }
        free(head);
    }
    if (!is_good)
        tool__say(m->x->result, TOOL_REFUSED,
            "%s uses what %s imports from beside it, and %s lies in another folder. Nothing was changed.\n",
            m->x->name, m->from->path, m->to);
    for (uint32_t i = 0; i < u->file->n_definitions; i++) {
        const code_definition *d = &u->file->definitions[i];
        if (*d->parent || (d->from >= m->cut_from && d->from < m->cut_to) || !strcmp(d->name, m->x->name))
            continue;
        if (!code_has_identifier(m->moved.data, m->moved.len, d->name)) continue;
        if (needs.len && code_has_identifier(needs.data, needs.len, d->name)) continue;
        base_buf_printf(&needs, "%s%s", needs.len ? ", " : "", d->name);
    }
    const bool is_back = used_behind(m, true) != NULL;
    if (is_good && needs.len && is_back)
        is_good = refuse_needs(m, &needs,
            "they stay, and what stays uses it, so the two modules "
            "would import each other; move these first, or all of them");
    if (is_good && needs.len) {
        char *module = module_name(m, m->to, m->from->path);
        base_buf_clear(&line);
        base_buf_printf(&line, "from %s import %s", module, needs.data);
        add_line(&m->heads, &m->to_file.text, line.data);
        free(module);
    }
    const char *star = is_good ? taken_by_star(m) : NULL;
    if (star) {
        tool__say(m->x->result, TOOL_REFUSED,
            "%s takes %s with an import of * from %s, and would have it "
            "no more: name there what it takes. Nothing was changed.\n",
            star, m->x->name, m->from->path);
        is_good = false;
    }
    if (is_good && is_back) {
        char *module = module_name(m, m->from->path, m->to);
        base_buf_printf(&m->back, "from %s import %s\n", module, m->x->name);
        free(module);
    }
    base_buf_free(&needs);
    base_buf_free(&line);
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
static const refactor_place *exported_in_source(const mover *m)
{
    for (size_t i = 0; i < m->x->n_places; i++) {
        const refactor_place *p = &m->x->places[i];
        if (&m->x->files[p->file] == m->from && p->verdict == REFACTOR_SURE && p->use->is_exported &&
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

/* Out of the source's __all__. */
static void unexport_in_source(mover *m, const refactor_place *p)
{
    uint32_t from = p->use->from - 1, to = p->use->from + (uint32_t)strlen(m->x->name) + 1;
    refactor__item_extent(&m->from->file.text, &from, &to);
    refactor__edit(&m->source_edits, from, to, "");
}

/* `from target import *`: does this file get the name from there? */
static bool gets_by_star(const mover *m, const refactor_file *f)
{
    const base_buf *to = &m->to_file.text;
    const bool has_all = to->len && memmem(to->data, to->len, "__all__", 7);
    bool is_so = false;
    for (uint32_t i = 0; i < f->uses->n_imports; i++)
        is_so |=
            !strcmp(f->uses->imports[i].name, "*") && names_file(m, f, f->uses->imports[i].module, m->to);
    return is_so && (!has_all || exported_in_source(m));
}

/* `from source import *` brings the name no more: where, or NULL. */
static const char *taken_by_star(const mover *m)
{
    const bool has_all = memmem(m->from->file.text.data, m->from->file.text.len, "__all__", 7) != NULL;
    if (has_all ? !exported_in_source(m) : *m->x->name == '_') return NULL;
    for (size_t k = 0; k < m->x->n_files + m->x->n_modules; k++) {
        const refactor_file *f = k < m->x->n_files ? &m->x->files[k] : m->x->modules[k - m->x->n_files];
        for (uint32_t i = 0; f->uses && i < f->uses->n_imports; i++)
            if (!strcmp(f->uses->imports[i].name, "*") && is_direct(m, f, f->uses->imports[i].module) &&
                !gets_by_star(m, f))
                return f->path;
    }
    return NULL;
}

/* Other files' `from source import name`: from the new module. */
static void python_imports(mover *m, tool_changes *ret)
{
    for (size_t k = 0; k < m->x->n_files; k++) {
        const refactor_file *f = &m->x->files[k];
        refactor_edits edits = {0};
        if (f == m->from || !strcmp(f->path, m->to)) continue;
        for (size_t i = 0; i < m->x->n_places; i++) {
            const refactor_place *p = &m->x->places[i];
            if (p->file != k || p->verdict != REFACTOR_SURE || p->use->import == UINT32_MAX) continue;
            const code_import *im = &f->uses->imports[p->use->import];
            /* Only what names the source itself; who imports it from elsewhere goes on doing so. */
            if (!is_direct(m, f, im->module)) continue;
            char *module = *im->module == '.' ? module_name(m, f->path, m->to) : tool__dotted_module(m->to);
            base_buf line = {0};
            base_buf_printf(&line, "from %s import %s", module, im->name);
            if (strcmp(im->name, im->local) != 0) base_buf_printf(&line, " as %s", im->local);
            uint32_t from = im->from, to = im->to;
            const char *s = f->file.text.data;
            const size_t begin = tool__line_begin(s, im->from),
                         end = tool__line_end(s, f->file.text.len, im->to);
            const bool is_long = !memchr(s + begin, 'f', 1) && tool__is_blank(s, begin, im->from);
            if (refactor__item_extent(&f->file.text, &from, &to)) {
                refactor__edit(&edits, from, to, "");
                size_t at = begin;
                if (is_long) /* inside parentheses: in front of the statement */
                    while (at > 0 && strncmp(s + at, "from ", 5) != 0) at = tool__line_begin(s, at - 1);
                base_buf_putc(&line, '\n');
                refactor__edit(&edits, (uint32_t)at, (uint32_t)at, line.data);
            } else if (!is_long) {
                size_t at = begin;
                while (at < end && (s[at] == ' ' || s[at] == '\t')) at++;
                refactor__edit(
                    &edits, (uint32_t)at, (uint32_t)(s[end - 1] == '\r' ? end - 1 : end), line.data);
            }
            base_buf_free(&line);
            free(module);
        }
        refactor__edits_take(&edits, f->path, &f->file, ret);
    }
}

/* ---- C ---- */

static bool c_heads(mover *m)
{
    const refactor_target *t = &m->x->target;
    const base_buf *text = &m->from->file.text;
    const code_file *file = m->from->uses->file;
    base_buf needs = {0};
    bool is_good = true;
    for (uint32_t i = 0; i < file->n_definitions; i++) {
        const code_definition *d = &file->definitions[i];
        if ((d->from >= m->cut_from && d->from < m->cut_to) || !strcmp(d->what, "field")) continue;
        const bool is_own = refactor__is_static(m->from, d) || !strcmp(d->what, "macro") ||
                            (refactor__is_type(d->what) && (d->body_to || !strcmp(d->what, "typedef"))) ||
                            !strcmp(d->what, "constant");
        if (!is_own || !code_has_identifier(m->moved.data, m->moved.len, d->name)) continue;
        if (needs.len && code_has_identifier(needs.data, needs.len, d->name)) continue;
        base_buf_printf(&needs, "%s%s", needs.len ? ", " : "", d->name);
    }
    if (needs.len)
        is_good = refuse_needs(m, &needs, "only its file sees that; put it into a header, or move it first");
    const refactor_place *behind = used_behind(m, false);
    if (is_good && behind && refactor__is_static(m->from, t->definition)) {
        tool__say(m->x->result, TOOL_REFUSED, "%s is static and %s:%u uses it. Nothing was changed.\n",
            m->x->name, m->from->path, behind->use->line);
        is_good = false;
    }
    for (size_t at = 0; is_good && at < text->len;) { /* the same includes */
        const size_t end = tool__line_end(text->data, text->len, at);
        size_t to = end;
        while (to > at && tool__is_space(text->data[to - 1])) to--;
        if (to - at > 8 && !memcmp(text->data + at, "#include", 8) &&
            base_path_same_folder(m->from->path, m->to)) {
            char *line = base_xstrndup(text->data + at, to - at);
            add_line(&m->heads, &m->to_file.text, line);
            free(line);
        }
        at = end + 1;
    }
    bool is_declared = false;
    for (size_t i = 0; i < m->x->n_places; i++) {
        const refactor_place *p = &m->x->places[i];
        const code_file *other = m->x->files[p->file].uses->file;
        is_declared = is_declared || (p->use->definition != UINT32_MAX && p->verdict == REFACTOR_SURE &&
                                         other->definitions[p->use->definition].is_declaration);
    }
    if (is_good && behind && !is_declared && t->definition->body_to && t->is_function) {
        uint32_t to = t->definition->body_from;
        while (to > t->definition->from && tool__is_space(text->data[to - 1])) to--;
        base_buf_printf(
            &m->back, "%.*s;\n", (int)(to - t->definition->from), text->data + t->definition->from);
    } else if (is_good && behind && !is_declared) {
        tool__say(m->x->result, TOOL_REFUSED,
            "%s:%u uses %s, and no header declares it. Nothing was changed.\n", m->from->path,
            behind->use->line, m->x->name);
        is_good = false;
    }
    base_buf_free(&needs);
    return is_good;
}

/* ---- Go ---- */

static bool go_heads(mover *m)
{
    const base_buf *text = &m->from->file.text;
    const code_uses *u = m->from->uses;
    if (!base_path_same_folder(m->from->path, m->to)) {
        tool__say(m->x->result, TOOL_REFUSED,
            "move works inside a package of Go; %s lies in another folder. Nothing was changed.\n", m->to);
        return false;
    }
    for (uint32_t i = 0; i < u->n_imports; i++) {
        const code_import *im = &u->imports[i];
        const char *last = base_path_name(im->module);
        if (!code_has_identifier(m->moved.data, m->moved.len, im->local)) continue;
        base_buf line = {0}, quoted = {0};
        base_buf_printf(&quoted, "\"%s\"", im->module);
        const bool is_there =
            m->to_file.text.len && memmem(m->to_file.text.data, m->to_file.text.len, quoted.data, quoted.len);
        if (strcmp(last, im->local) != 0)
            base_buf_printf(&line, "import %s \"%s\"", im->local, im->module);
        else
            base_buf_printf(&line, "import \"%s\"", im->module);
        if (!is_there) add_line(&m->heads, NULL, line.data);
        base_buf_free(&line);
        base_buf_free(&quoted);
        /* What only it used goes from the source: an unused import does not compile. */
        bool is_kept = false;
        size_t pos = 0, a, b;
        while (!is_kept && code_next_identifier(text->data, text->len, &pos, &a, &b))
            is_kept = (a < m->cut_from || a >= m->cut_to) && (a < im->from || a >= im->to) &&
                      b - a == strlen(im->local) && b < text->len && text->data[b] == '.' &&
                      !memcmp(text->data + a, im->local, b - a);
        if (is_kept) continue;
        const size_t begin = tool__line_begin(text->data, im->from),
                     end = tool__line_end(text->data, text->len, im->to);
        refactor__edit(&m->source_edits, (uint32_t)begin, (uint32_t)(end < text->len ? end + 1 : end), "");
    }
    return true;
}

/* ---- all ---- */

/* Where lines at the top of a file go: behind its imports, else behind what opens it. */
static uint32_t top_of(const base_buf *text, refactor_family family, const code_uses *uses)
{
    uint32_t at = 0, last = 0;
    const char *s = text->data;
    const bool is_python = family == REFACTOR_PYTHON, is_go = family == REFACTOR_GO;
    bool in_doc = false, in_group = false;
    for (uint32_t i = 0; uses && i < uses->n_imports && is_python; i++) {
        const size_t begin = tool__line_begin(s, uses->imports[i].from);
        if (strncmp(s + begin, "from ", 5) != 0 && strncmp(s + begin, "import ", 7) != 0) continue;
        last = (uint32_t)tool__line_end(s, text->len, uses->imports[i].to);
        last += last < text->len;
    }
    static const char future[] = "from __future__ ";
    for (size_t line = 0; is_python && line < text->len;) { /* no import for us, and the first of all */
        const size_t end = tool__line_end(s, text->len, line), next = end < text->len ? end + 1 : end;
        if (end - line > sizeof future && !memcmp(s + line, future, sizeof future - 1) && next > last)
            last = (uint32_t)next;
        line = next;
    }
    if (last) return last;
    for (; at < text->len;) {
        const uint32_t end = (uint32_t)tool__line_end(s, text->len, at),
                       next = end < text->len ? end + 1 : end;
        const bool is_doc =
            is_python && end - at >= 3 && (!memcmp(s + at, "\"\"\"", 3) || !memcmp(s + at, "'''", 3));
        if (in_doc || is_doc) {
            const bool closes = end - at >= (is_doc && !in_doc ? 6u : 3u) &&
                                (memmem(s + at + (is_doc && !in_doc ? 3 : 0),
                                     end - at - (is_doc && !in_doc ? 3 : 0), "\"\"\"", 3) ||
                                    memmem(s + at + (is_doc && !in_doc ? 3 : 0),
                                        end - at - (is_doc && !in_doc ? 3 : 0), "'''", 3));
            in_doc = !closes;
            last = next;
        } else if (is_python && s[at] == '#') {
            last = next;
        } else if (family == REFACTOR_C && end - at > 8 && !memcmp(s + at, "#include", 8)) {
            last = next;
        } else if (is_go && ((end - at > 8 && !memcmp(s + at, "package ", 8)) ||
                                (end - at > 7 && !memcmp(s + at, "import ", 7)) || in_group)) {
            if (end - at > 7 && !memcmp(s + at, "import ", 7) && memchr(s + at, '(', end - at))
                in_group = true;
            if (end > at && s[at] == ')') in_group = false;
            last = next;
        } else if (is_python && !tool__is_blank(s, at, end)) {
            break;
        }
        at = next;
    }
    return last;
}

static void put_new_text(mover *m, base_buf *out)
{
    const base_buf *old = &m->to_file.text;
    const bool is_go = m->from->language->family == REFACTOR_GO,
               is_python = m->from->language->family == REFACTOR_PYTHON;
    if (m->is_new) {
        if (is_go) {
            const char *package = strstr(m->from->file.text.data, "package ");
            if (package) base_buf_printf(out, "%.*s\n\n", (int)strcspn(package, "\r\n"), package);
        }
        if (m->heads.len) base_buf_printf(out, "%s\n%s", m->heads.data, is_python ? "\n" : "");
        base_buf_add(out, m->moved.data, m->moved.len);
        return;
    }
    code_uses *uses = code_uses_find(m->x->w->grammars, m->to, old->data, old->len, m->x->name);
    const uint32_t top = top_of(old, m->from->language->family, uses);
    code_uses_free(uses);
    base_buf_add(out, old->data, top);
    if (m->heads.len && is_go && top) base_buf_putc(out, '\n');
    if (m->heads.len) base_buf_add(out, m->heads.data, m->heads.len);
    base_buf_add(out, old->data + top, old->len - top);
    while (out->len && out->data[out->len - 1] == '\n') out->data[--out->len] = '\0';
    base_buf_puts(out, is_python ? "\n\n\n" : "\n\n");
    base_buf_add(out, m->moved.data, m->moved.len);
}

/*
 * The file that is meant, as the tool's own paths are: one of the tree by the end of its path, and a new one that is named
 * without a folder beside the definition. The caller frees.
 */
static char *place_meant(const mover *m, const char *to)
{
    const char *path = m->x->target.in->path, *slash = strrchr(path, '/');
    tool_file f = {0};
    base_buf beside = {0};
    const bool is_there = !tool__file_read(&m->x->w->root, to, TOOL_MAX_INDEXED, &f, NULL);
    tool__file_free(&f);
    char *known = is_there ? NULL : code_index_path(m->x->w->index, to);
    if (is_there || known || strchr(to, '/') || !slash) return known ? known : base_xstrdup(to);
    base_buf_printf(&beside, "%.*s%s", (int)(slash + 1 - path), path, to);
    return base_buf_take(&beside);
}

static bool read_place(mover *m, const refactor_request *q)
{
    refactor *x = m->x;
    const refactor_target *t = &x->target;
    base_err why = {0};
    if (!q->to) {
        tool__say(x->result, TOOL_FAILED, "move needs \"to\", the file. Nothing was changed.\n");
        return false;
    }
    if (!t->definition || t->is_member || t->binding != UINT32_MAX || *t->parent) {
        tool__say(x->result, TOOL_REFUSED,
            "%s does not stand at the top of its file: move takes what does. Nothing was changed.\n",
            x->name);
        return false;
    }
    const refactor_family family = t->in->language->family;
    if (family != REFACTOR_C && family != REFACTOR_PYTHON && family != REFACTOR_GO) {
        tool__say(x->result, TOOL_REFUSED,
            "move knows what C, C++, Python and Go need in the new place, not %s. Nothing was changed.\n",
            t->in->uses->file->language);
        return false;
    }
    char *meant = place_meant(m, q->to);
    const bool is_bad = tool__path_clean(&x->w->root, meant, &m->to, &why) != 0;
    if (is_bad) tool__say_path_error(x->w, x->result, "refactor", meant, &why);
    free(meant);
    if (is_bad) return false;
    const bool fits = refactor__language(code_language(m->to, "", 0))->family == family;
    if (!fits || !strcmp(m->to, t->in->path)) {
        tool__say(x->result, TOOL_REFUSED, "%s is %s. Nothing was changed.\n", m->to,
            !strcmp(m->to, t->in->path) ? "where it stands already" : "no file of that language");
        return false;
    }
    const int code = tool__file_read(&x->w->root, m->to, TOOL_MAX_INDEXED, &m->to_file, &why);
    m->is_new = code == BASE_E_NOT_FOUND;
    if (code && !m->is_new) {
        tool__say_path_error(x->w, x->result, "refactor", m->to, &why);
        return false;
    }
    for (size_t i = 0; i < x->n_files && !m->is_new; i++)
        for (uint32_t k = 0; !strcmp(x->files[i].path, m->to) && k < x->files[i].uses->n_uses; k++) {
            const code_use *u = &x->files[i].uses->uses[k];
            if (u->definition == UINT32_MAX || u->binding != UINT32_MAX) continue;
            const code_definition *d = &x->files[i].uses->file->definitions[u->definition];
            if (*d->parent || d->is_declaration) continue;
            tool__say(x->result, TOOL_REFUSED, "%s:%u defines a %s already. Nothing was changed.\n", m->to,
                u->line, x->name);
            return false;
        }
    return true;
}

static void mover_free(mover *m)
{
    tool__file_free(&m->to_file);
    free(m->to);
    base_buf_free(&m->moved);
    base_buf_free(&m->heads);
    base_buf_free(&m->back);
    refactor__edits_free(&m->source_edits);
}

bool refactor__move(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
    mover m = {.x = x, .from = x->target.in};
    const refactor_target *t = &x->target;
    bool is_good = read_place(&m, q) && refactor__resolve(x);
    if (is_good) {
        const base_buf *text = &m.from->file.text;
        refactor__definition_extent(text, t->definition->from, t->definition->to, &m.cut_from, &m.cut_to);
        base_buf_add(&m.moved, text->data + m.cut_from, m.cut_to - m.cut_from);
        if (m.moved.data[m.moved.len - 1] != '\n') base_buf_putc(&m.moved, '\n');
        const refactor_family family = m.from->language->family;
        is_good = family == REFACTOR_PYTHON ? python_heads(&m)
                  : family == REFACTOR_GO   ? go_heads(&m)
                                            : c_heads(&m);
    }
    if (is_good) {
        const base_buf *text = &m.from->file.text;
        base_buf source = {0}, target = {0};
        uint32_t from = m.cut_from, to = m.cut_to;
        refactor__widen_blank(text, &from, &to);
        refactor__edit(&m.source_edits, from, to, "");
        const uint32_t top = m.back.len ? top_of(text, m.from->language->family, m.from->uses) : 0;
        if (m.back.len) refactor__edit(&m.source_edits, top, top, m.back.data);
        put_new_text(&m, &target);
        const refactor_place *exported =
            m.from->language->family == REFACTOR_PYTHON ? exported_in_source(&m) : NULL;
        if (exported) unexport_in_source(&m, exported);
        if (exported) export_in_target(&target, x->name);
        refactor__edits_apply(&m.source_edits, text, &source);
        tool__changes_add(ret, m.from->path, &m.from->file, &source);
        tool__changes_add(ret, m.to, m.is_new ? NULL : &m.to_file, &target);
        if (m.from->language->family == REFACTOR_PYTHON) python_imports(&m, ret);
        base_buf say = {0};
        base_buf_printf(&say, "moved %s %s from %s to %s: %zu files changed.\n", t->what, x->name,
            m.from->path, m.to, ret->n);
        if (m.is_new && m.from->language->family == REFACTOR_C)
            base_buf_printf(&say, "%s is new: the build has to be told of it.\n", m.to);
        base_buf_printf(headline, "move %s to %s", x->name, m.to);
        ret->say = base_buf_take(&say);
    }
    mover_free(&m);
    return is_good;
}
