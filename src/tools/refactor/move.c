/*
 * move: definitions at the top of a file go to another file, with what they need there and what now has to look
 * for them there: imports in Python (move_python.c) and JavaScript (move_script.c), includes and a prototype in C, imports in Go. What would leave something
 * behind that is not seen from the new place (static helpers, two modules that import each other) is said and refused.
 */
#include "tools/refactor/mover.h"
#include "tools/refactor/script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/file/text.h"
#include "tools/result/result.h"

/* ---- C ---- */

/* What stays and uses the part has to see it still: its header, or a prototype. */
static bool c_back(mover *m, const refactor *part)
{
    const refactor_target *t = &part->target;
    const refactor_place *behind = mover__used_behind(m, part, false);
    if (behind && refactor__is_static(t->in, t->definition)) {
        tool__say(m->x->result, TOOL_REFUSED, "%s is static and %s:%u uses it. Nothing was changed.\n",
            part->name, m->from->path, behind->use->line);
        return false;
    }
    bool is_declared = false;
    for (size_t i = 0; i < part->n_places; i++) {
        const refactor_place *p = &part->places[i];
        const code_file *other = part->files[p->file].uses->file;
        is_declared = is_declared || (p->use->definition != UINT32_MAX && p->verdict == REFACTOR_SURE &&
                                         other->definitions[p->use->definition].is_declaration);
    }
    if (behind && !is_declared && t->definition->body_to && t->is_function) {
        uint32_t to = t->definition->body_from;
        while (to > t->definition->from && tool__is_space(t->in->file.text.data[to - 1])) to--;
        base_buf_printf(&m->back, "%.*s;\n", (int)(to - t->definition->from),
            t->in->file.text.data + t->definition->from);
    } else if (behind && !is_declared) {
        tool__say(m->x->result, TOOL_REFUSED,
            "%s:%u uses %s, and no header declares it. Nothing was changed.\n", m->from->path,
            behind->use->line, part->name);
        return false;
    }
    return true;
}

static bool c_heads(mover *m)
{
    const base_buf *text = &m->from->file.text;
    const code_file *file = m->from->uses->file;
    base_buf needs = {0};
    bool is_good = true;
    for (uint32_t i = 0; i < file->n_definitions; i++) {
        const code_definition *d = &file->definitions[i];
        if (mover__is_cut(m, d->from) || !strcmp(d->what, "field")) continue;
        const bool is_own = refactor__is_static(m->from, d) || !strcmp(d->what, "macro") ||
                            (refactor__is_type(d->what) && (d->body_to || !strcmp(d->what, "typedef"))) ||
                            !strcmp(d->what, "constant");
        if (!is_own || !code_has_identifier(m->moved.data, m->moved.len, d->name)) continue;
        if (needs.len && code_has_identifier(needs.data, needs.len, d->name)) continue;
        base_buf_printf(&needs, "%s%s", needs.len ? ", " : "", d->name);
    }
    if (needs.len)
        is_good =
            mover__refuse_needs(m, &needs, "only its file sees that; put it into a header, or move it first");
    for (size_t i = 0; i < m->n_parts && is_good; i++) is_good = c_back(m, m->parts[i]);
    for (size_t at = 0; is_good && at < text->len;) { /* the same includes */
        const size_t end = tool__line_end(text->data, text->len, at);
        size_t to = end;
        while (to > at && tool__is_space(text->data[to - 1])) to--;
        if (to - at > 8 && !memcmp(text->data + at, "#include", 8) &&
            base_path_same_folder(m->from->path, m->to)) {
            char *line = base_xstrndup(text->data + at, to - at);
            mover__add_line(&m->heads, &m->to_file.text, line);
            free(line);
        }
        at = end + 1;
    }
    base_buf_free(&needs);
    return is_good;
}

/* ---- Go ---- */

/* "errors.New" in code: what only has the name, as a parameter may, needs no import. */
static bool uses_package(const char *code, const char *name)
{
    const size_t n = strlen(code);
    size_t pos = 0, from, to;
    while (code_next_identifier(code, n, &pos, &from, &to))
        if (to - from == strlen(name) && !memcmp(code + from, name, to - from) && code[to] == '.' &&
            !(from && code[from - 1] == '.'))
            return true;
    return false;
}

static bool go_heads(mover *m)
{
    const base_buf *text = &m->from->file.text;
    const code_uses *u = m->from->uses;
    if (!base_path_same_folder(m->from->path, m->to)) {
        tool__say(m->x->result, TOOL_REFUSED,
            "move works inside a package of Go; %s lies in another folder. Nothing was changed.\n", m->to);
        return false;
    }
    char *code = code_blank_comments("go", m->moved.data, m->moved.len);
    for (uint32_t i = 0; i < u->n_imports; i++) {
        const code_import *im = &u->imports[i];
        const char *last = base_path_name(im->module);
        if (!uses_package(code, im->local)) continue;
        base_buf line = {0}, quoted = {0};
        base_buf_printf(&quoted, "\"%s\"", im->module);
        const bool is_there =
            m->to_file.text.len && memmem(m->to_file.text.data, m->to_file.text.len, quoted.data, quoted.len);
        if (strcmp(last, im->local) != 0)
            base_buf_printf(&line, "import %s \"%s\"", im->local, im->module);
        else
            base_buf_printf(&line, "import \"%s\"", im->module);
        if (!is_there) mover__add_line(&m->heads, NULL, line.data);
        base_buf_free(&line);
        base_buf_free(&quoted);
        /* What only it used goes from the source: an unused import does not compile. */
        bool is_kept = false;
        size_t pos = 0, a, b;
        while (!is_kept && code_next_identifier(text->data, text->len, &pos, &a, &b))
            is_kept = !mover__is_cut(m, (uint32_t)a) && (a < im->from || a >= im->to) &&
                      b - a == strlen(im->local) && b < text->len && text->data[b] == '.' &&
                      !memcmp(text->data + a, im->local, b - a);
        if (is_kept) continue;
        const size_t begin = tool__line_begin(text->data, im->from),
                     end = tool__line_end(text->data, text->len, im->to);
        refactor__edit(&m->source_edits, (uint32_t)begin, (uint32_t)(end < text->len ? end + 1 : end), "");
    }
    free(code);
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

/* A new file, with the source's line ends. */
static void put_new_file(const mover *m, base_buf *out)
{
    const base_buf *source = &m->from->file.text;
    const bool is_python = m->from->language->family == REFACTOR_PYTHON;
    base_buf text = {0};
    if (m->from->language->family == REFACTOR_GO) {
        const char *package = strstr(source->data, "package ");
        if (package) base_buf_printf(&text, "%.*s\n\n", (int)strcspn(package, "\r\n"), package);
    }
    if (m->heads.len) base_buf_printf(&text, "%s\n%s", m->heads.data, is_python ? "\n" : "");
    base_buf_add(&text, m->moved.data, m->moved.len);
    tool__line_ends(out, text.data, text.len, tool__text_style(source->data, source->len).crlf);
    base_buf_free(&text);
}

static void put_new_text(mover *m, base_buf *out)
{
    const base_buf *old = &m->to_file.text;
    const bool is_go = m->from->language->family == REFACTOR_GO,
               is_python = m->from->language->family == REFACTOR_PYTHON,
               crlf = tool__text_style(old->data ? old->data : "", old->len).crlf;
    code_uses *uses = code_uses_find(m->x->w->grammars, m->to, old->data, old->len, m->x->name);
    const uint32_t top = top_of(old, m->from->language->family, uses);
    refactor_edits edits = {0};
    base_buf heads = {0};
    code_uses_free(uses);
    if (is_python) mover__python_own_imports(m, &edits);
    if (m->heads.len) base_buf_printf(&heads, "%s%s", is_go && top ? "\n" : "", m->heads.data);
    if (heads.len) refactor__edit(&edits, top, top, heads.data);
    refactor__edits_apply(&edits, old, out);
    refactor__edits_free(&edits);
    base_buf_free(&heads);
    while (out->len && strchr("\r\n", out->data[out->len - 1])) out->data[--out->len] = '\0';
    const char *gap = is_python ? "\n\n\n" : "\n\n";
    tool__line_ends(out, gap, strlen(gap), crlf);
    tool__line_ends(out, m->moved.data, m->moved.len, crlf);
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

/* Does the part stand at the top of the source, and not in the target already? */
static bool can_go(const mover *m, const refactor *part)
{
    const refactor_target *t = &part->target;
    if (!t->definition || t->is_member || t->binding != UINT32_MAX || *t->parent) {
        tool__say(m->x->result, TOOL_REFUSED,
            "%s does not stand at the top of its file: move takes what does. Nothing was changed.\n",
            part->name);
        return false;
    }
    if (strcmp(t->in->path, m->from->path) != 0) {
        tool__say(m->x->result, TOOL_REFUSED,
            "%s stands in %s and %s in %s: together go definitions of one file. Nothing was changed.\n",
            part->name, t->in->path, m->x->name, m->from->path);
        return false;
    }
    for (size_t i = 0; i < part->n_files && !m->is_new && !(m->is_there && part == m->x); i++)
        for (uint32_t k = 0; !strcmp(part->files[i].path, m->to) && k < part->files[i].uses->n_uses; k++) {
            const code_use *u = &part->files[i].uses->uses[k];
            if (u->definition == UINT32_MAX || u->binding != UINT32_MAX) continue;
            const code_definition *d = &part->files[i].uses->file->definitions[u->definition];
            if (*d->parent || d->is_declaration) continue;
            tool__say(m->x->result, TOOL_REFUSED, "%s:%u defines a %s already. Nothing was changed.\n", m->to,
                u->line, part->name);
            return false;
        }
    return true;
}

/* One of several that mean the same would leave the others behind. */
static bool is_only_one(const mover *m, const refactor *part)
{
    const refactor_place *again = refactor__find_again(part);
    if (again)
        tool__say(m->x->result, TOOL_REFUSED, "%s is defined again in %s:%u. Nothing was changed.\n",
            part->name, part->files[again->file].path, again->use->line);
    return !again;
}

/* Does a twin stand in the new place already? */
static bool is_twin_there(const refactor *x, const char *to)
{
    bool is = false;
    for (size_t i = 0; i < x->n_twins; i++) is |= !strcmp(x->twins[i], to);
    return is;
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
    const refactor_family family = t->in->language->family;
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
    tool__file_part_mark(&m->to_file);
    m->is_there = m->is_there || is_twin_there(x, m->to);
    if (code && !m->is_new) {
        tool__say_path_error(x->w, x->result, "refactor", m->to, &why);
        return false;
    }
    return true;
}

/* ---- what goes ---- */

/* "a, b": each found and resolved, behind x itself; false: *x->result says which cannot be. */
static bool read_parts(mover *m, const char *with)
{
    bool is_good = true;
    m->parts = base_xcalloc(1, sizeof *m->parts);
    m->parts[m->n_parts++] = m->x;
    for (const char *at = with ? with : ""; is_good && *(at += strspn(at, ", ")); at += strcspn(at, ", ")) {
        char *name = base_xstrndup(at, strcspn(at, ", "));
        if (!mover__is_named(m, name)) {
            refactor *y = base_xcalloc(1, sizeof *y);
            *y = (refactor){.w = m->x->w, .limits = m->x->limits, .result = m->x->result};
            m->parts = base_xrealloc(m->parts, (m->n_parts + 1) * sizeof *m->parts);
            m->parts[m->n_parts++] = y;
            is_good = refactor__find_target(y, name, m->from->path);
        }
        free(name);
    }
    for (size_t i = 0; i < m->n_parts && is_good; i++)
        is_good = can_go(m, m->parts[i]) && refactor__resolve(m->parts[i]) && is_only_one(m, m->parts[i]);
    return is_good;
}

static void add_cut(mover *m, const code_definition *d)
{
    mover_cut cut;
    refactor__definition_extent(&m->from->file.text, d->from, d->to, &cut.from, &cut.to);
    if (mover__is_cut(m, d->from)) return;
    m->cuts = base_xrealloc(m->cuts, (m->n_cuts + 1) * sizeof *m->cuts);
    size_t at = m->n_cuts++;
    for (; at > 0 && m->cuts[at - 1].from > cut.from; at--) m->cuts[at] = m->cuts[at - 1];
    m->cuts[at] = cut;
}

/* In Go a type's methods go with it, in JavaScript what stands on its prototype, in TypeScript all its overloads. */
static void find_cuts(mover *m)
{
    const code_file *file = m->from->uses->file;
    const bool is_script = m->from->language->family == REFACTOR_JS,
               is_go = m->from->language->family == REFACTOR_GO;
    for (size_t i = 0; i < m->n_parts; i++) {
        const refactor_target *t = &m->parts[i]->target;
        add_cut(m, t->definition);
        for (uint32_t k = 0; (is_script || (is_go && t->is_type)) && k < file->n_definitions; k++) {
            const code_definition *d = &file->definitions[k];
            const bool is_of_it = !strcmp(d->parent, m->parts[i]->name),
                       is_overload = is_script && !*d->parent && !strcmp(d->name, m->parts[i]->name) &&
                                     !strcmp(d->what, "function") && d->from != d->name_from;
            const bool is_member =
                is_script ? is_of_it && d->from != d->name_from : !strcmp(d->what, "method");
            if ((is_of_it && is_member && d->body_to) || is_overload) add_cut(m, d);
        }
    }
}

/* Bytes of the source as they stand in the new place. */
static void put_piece(mover *m, uint32_t from, uint32_t to)
{
    refactor_edits inner = {0};
    base_buf piece = {0}, out = {0};
    base_buf_add(&piece, m->from->file.text.data + from, to - from);
    for (size_t i = 0; i < m->moved_edits.n; i++) {
        const refactor_edit *e = &m->moved_edits.all[i];
        if (e->from >= from && e->from < to) refactor__edit(&inner, e->from - from, e->to - from, e->text);
    }
    refactor__edits_apply(&inner, &piece, &out);
    base_buf_add(&m->moved, out.data, out.len);
    refactor__edits_free(&inner);
    base_buf_free(&piece);
    base_buf_free(&out);
}

/* What goes, in the source's order; what stood together there keeps its distance. */
static void put_moved(mover *m)
{
    const base_buf *text = &m->from->file.text;
    const bool is_python = m->from->language->family == REFACTOR_PYTHON;
    base_buf_clear(&m->moved);
    for (size_t i = 0; i < m->n_cuts; i++) {
        const mover_cut *cut = &m->cuts[i];
        const uint32_t before = i ? m->cuts[i - 1].to : cut->from;
        bool is_beside = true;
        for (uint32_t k = before; k < cut->from && is_beside; k++)
            is_beside = isspace((unsigned char)text->data[k]);
        if (is_beside)
            base_buf_add(&m->moved, text->data + before, cut->from - before);
        else
            base_buf_puts(&m->moved, is_python ? "\n\n" : "\n");
        put_piece(m, cut->from, cut->to);
        if (m->moved.data[m->moved.len - 1] != '\n') base_buf_putc(&m->moved, '\n');
    }
}

/* Blank lines right in front of a byte, or right behind it. */
static uint32_t count_blank(const base_buf *text, uint32_t at, bool is_behind)
{
    uint32_t n = 0;
    while (is_behind ? at < text->len : at > 1) {
        const size_t line = is_behind ? at : tool__line_begin(text->data, at - 1),
                     end = tool__line_end(text->data, text->len, line);
        if (!tool__is_blank(text->data, line, end)) break;
        at = (uint32_t)(is_behind ? end + 1 : line);
        n++;
    }
    return n;
}

static void cut_source(mover *m)
{
    const base_buf *text = &m->from->file.text;
    const bool is_python = m->from->language->family == REFACTOR_PYTHON;
    for (size_t i = 0; i < m->n_cuts;) {
        uint32_t from = m->cuts[i].from, end = m->cuts[i].to, to = end;
        refactor__widen_blank(text, &from, &to);
        for (i++; i < m->n_cuts && m->cuts[i].from <= to; i++) { /* right behind it */
            to = end = m->cuts[i].to;
            refactor__widen_blank(text, &from, &to);
        }
        /* "X = 1" under the imports goes, and two blank lines stay in front of a function of Python */
        const uint32_t before = count_blank(text, from, false),
                       behind = to < text->len && is_python ? count_blank(text, end, true) : 0;
        for (uint32_t k = before; k < behind && to > end; k++)
            to = (uint32_t)tool__line_begin(text->data, to - 1);
        refactor__edit(&m->source_edits, from, to, "");
    }
}

/* An import that stood alone at the top leaves its blank lines there. */
static void strip_front(const base_buf *old, base_buf *text)
{
    const size_t n = old->len && old->data[0] != '\n' && text->len ? strspn(text->data, "\r\n") : 0;
    if (!n) return;
    memmove(text->data, text->data + n, text->len - n);
    text->len -= n;
    text->data[text->len] = '\0';
}

static void mover_free(mover *m)
{
    for (size_t i = 1; i < m->n_parts; i++) {
        refactor__free(m->parts[i]);
        free(m->parts[i]);
    }
    free(m->parts);
    free(m->cuts);
    tool__file_free(&m->to_file);
    free(m->to);
    base_buf_free(&m->moved);
    base_buf_free(&m->heads);
    base_buf_free(&m->back);
    base_buf_free(&m->notes);
    refactor__edits_free(&m->source_edits);
    refactor__edits_free(&m->moved_edits);
    mover__script_free(m);
}

/* "class A", "A, B and C" */
static void put_names(const mover *m, base_buf *out)
{
    if (m->n_parts == 1) base_buf_printf(out, "%s ", m->x->target.what);
    for (size_t i = 0; i < m->n_parts; i++)
        base_buf_printf(out, "%s%s", !i ? "" : i + 1 < m->n_parts ? ", " : " and ", m->parts[i]->name);
}

/* ---- what each family needs ---- */

/* The whole text of the new place, where nothing but what goes and its heads come into it. */
static void put_target(mover *m, base_buf *out)
{
    if (m->is_new)
        put_new_file(m, out);
    else
        put_new_text(m, out);
}

static void put_python_target(mover *m, base_buf *out)
{
    put_target(m, out);
    mover__python_exports(m, out);
}

static uint32_t top_of_source(const mover *m)
{
    return top_of(&m->from->file.text, m->from->language->family, m->from->uses);
}

static uint32_t top_of_script(const mover *m)
{
    return script__top(&m->from->file.text, m->from->uses);
}

/* How the definitions of a family move; a family without heads does not move. NULL elsewhere: nothing is to be done. */
static const struct way {
    bool (*survey)(mover *m); /* before anything else; false: *x->result says why it cannot be */
    bool (*heads)(mover *m);  /* what the two places need at their tops; false: as above */
    uint32_t (*top)(const mover *m);
    void (*target)(mover *m, base_buf *out);
    void (*source)(mover *m, base_buf *text); /* what its text still needs once its edits are made */
    void (*users)(mover *m, tool_changes *ret);
    const char *kept; /* said of the wish that the old place goes on giving it; NULL: that imports it back */
    const char *new_file;
} ways[REFACTOR_N_FAMILIES] = {
    [REFACTOR_C] = {NULL, c_heads, top_of_source, put_target, NULL, NULL,
        "What declares it declares it as before.\n", " is new: the build has to be told of it.\n"},
    [REFACTOR_GO] = {NULL, go_heads, top_of_source, put_target, NULL, NULL, "Its package has it as before.\n",
        NULL},
    [REFACTOR_PYTHON] = {NULL, mover__python_heads, top_of_source, put_python_target, NULL,
        mover__python_imports, NULL, NULL},
    [REFACTOR_JS] = {mover__script_survey, mover__script_heads, top_of_script, mover__script_target,
        mover__script_source, mover__script_users, NULL, NULL},
};

/* Both places and all others, as they are to be; of a twin the new place is there already. */
static void make_changes(mover *m, const struct way *way, bool is_twin, tool_changes *ret)
{
    const base_buf *text = &m->from->file.text;
    base_buf source = {0}, target = {0};
    cut_source(m);
    const uint32_t top = m->back.len ? way->top(m) : 0;
    if (m->back.len && way->top == top_of_script && script__is_bare(text, top)) base_buf_putc(&m->back, '\n');
    if (m->back.len) refactor__edit(&m->source_edits, top, top, m->back.data);
    way->target(m, &target);
    refactor__edits_apply(&m->source_edits, text, &source);
    if (way->source) way->source(m, &source);
    strip_front(text, &source);
    tool__changes_add(ret, m->from->path, &m->from->file, &source);
    if (!is_twin) tool__changes_add(ret, m->to, m->is_new ? NULL : &m->to_file, &target);
    base_buf_free(&target);
    if (way->users) way->users(m, ret);
}

static void say_moved(const mover *m, const struct way *way, tool_changes *ret, base_buf *headline)
{
    base_buf say = {0}, names = {0};
    put_names(m, &names);
    base_buf_printf(&say, "moved %s from %s to %s: %zu file%s changed.\n", names.data, m->from->path, m->to,
        ret->n, ret->n == 1 ? "" : "s");
    if (m->is_kept && way->kept) base_buf_puts(&say, way->kept);
    if (m->is_kept && !way->kept)
        base_buf_printf(
            &say, "%s imports it back: importing it from there goes on working.\n", m->from->path);
    if (m->notes.len) base_buf_puts(&say, m->notes.data);
    if (m->is_new && way->new_file) base_buf_printf(&say, "%s%s", m->to, way->new_file);
    base_buf_printf(headline, "move %s to %s", m->n_parts > 1 ? names.data : m->x->name, m->to);
    ret->say = base_buf_take(&say);
    base_buf_free(&names);
}

static void say_differs(const mover *m, const char *path)
{
    tool__say(m->x->result, TOOL_REFUSED,
        "%s and %s define %s alike, but what it needs beside it differs. Nothing was changed. Next: the same "
        "call with \"path\".\n",
        m->from->path, path, m->x->name);
}

/* Both places as they are to be, without their texts. false: *x->result says why it cannot be. */
static bool prepare(mover *m, const struct way *way, const refactor_request *q)
{
    bool is_good = read_place(m, q) && read_parts(m, q->with) && (!way->survey || way->survey(m));
    if (is_good) {
        do {
            find_cuts(m);
            put_moved(m);
        } while (mover__take_along(m));
        is_good = way->heads(m);
        if (is_good && m->moved_edits.n) put_moved(m);
    }
    if (is_good && m->is_there && (m->heads.len || m->n_cuts > 1)) {
        say_differs(m, m->to);
        is_good = false;
    }
    return is_good;
}

/* ---- twins: other files define it letter for letter the same ---- */

static bool has_lines_of(const base_buf *text, const base_buf *lines)
{
    bool has = true;
    for (size_t at = 0; at < lines->len && has;) {
        const size_t end = tool__line_end(lines->data, lines->len, at);
        has = mover__has_line(text, lines->data + at, end - at);
        at = end + 1;
    }
    return has;
}

/* What else goes along, and what the two need in the new place: is it the same too? */
static bool is_same(const mover *m, const mover *twin)
{
    size_t n = m->moved.len, k = twin->moved.len;
    while (n && tool__is_space(m->moved.data[n - 1])) n--;
    while (k && tool__is_space(twin->moved.data[k - 1])) k--;
    return n == k && !memcmp(m->moved.data, twin->moved.data, n) && has_lines_of(&m->heads, &twin->heads) &&
           has_lines_of(&twin->heads, &m->heads);
}

/* A file that would be changed for two of the twins, or the new place, which takes one of them in; NULL: none. */
static const char *changed_twice(const mover *twin, const tool_changes *changes)
{
    const refactor *y = twin->x;
    for (size_t i = 0; i < changes->n; i++)
        for (size_t k = 0; k < i; k++)
            if (!strcmp(changes->all[i]->path, changes->all[k]->path)) return changes->all[i]->path;
    for (size_t i = 0; i < y->n_places; i++)
        if (y->places[i].use->import != UINT32_MAX && y->places[i].verdict == REFACTOR_SURE &&
            !strcmp(y->files[y->places[i].file].path, twin->to))
            return twin->to;
    return NULL;
}

/* The twin in the file at `path` goes, and what took it from there takes it from the new place. */
static bool take_twin(
    mover *m, const struct way *way, const refactor_request *q, const char *path, tool_changes *ret)
{
    refactor y = {.w = m->x->w, .limits = m->x->limits, .result = m->x->result};
    mover twin = {.x = &y, .is_kept = m->is_kept, .is_there = m->is_there};
    bool is_good = refactor__find_target(&y, m->x->name, path);
    twin.from = y.target.in;
    is_good = is_good && prepare(&twin, way, q);
    if (is_good && !is_same(m, &twin)) {
        say_differs(m, path);
        is_good = false;
    }
    if (is_good) make_changes(&twin, way, true, ret);
    const char *twice = is_good ? changed_twice(&twin, ret) : NULL;
    if (twice) {
        tool__say(m->x->result, TOOL_REFUSED,
            "%s takes %s from more than one of the files that define it. Nothing was changed. Next: the same call "
            "with \"path\".\n",
            twice, m->x->name);
        is_good = false;
    }
    if (is_good) base_buf_printf(&m->notes, "%s defined it letter for letter the same: gone too.\n", path);
    mover_free(&twin);
    refactor__free(&y);
    return is_good;
}

/* Is the definition that was found first the one in the new place already? */
static bool is_in_place(refactor *x, const refactor_request *q)
{
    char *meant = q->to ? place_meant(&(mover){.x = x}, q->to) : NULL;
    const bool is = meant && !strcmp(meant, x->target.in->path);
    free(meant);
    return is;
}

/* The same with another of the twins in front. */
static bool move_next(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
    refactor y = {.w = x->w, .limits = x->limits, .result = x->result};
    bool is_good = refactor__find_target(&y, x->name, x->twins[0]);
    y.twins = base_xcalloc(x->n_twins, sizeof *y.twins);
    y.twins[y.n_twins++] = base_xstrdup(x->target.in->path);
    for (size_t i = 1; i < x->n_twins; i++) y.twins[y.n_twins++] = base_xstrdup(x->twins[i]);
    is_good = is_good && refactor__move(&y, q, ret, headline);
    refactor__free(&y);
    return is_good;
}

bool refactor__move(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
    mover m = {.x = x, .from = x->target.in, .is_kept = q->keep};
    const struct way *way = &ways[m.from->language->family];
    if (!way->heads) {
        tool__say(x->result, TOOL_REFUSED,
            "move knows what C, C++, Python, Go, JavaScript and TypeScript need in the new place, not %s. Nothing was changed.\n",
            m.from->uses->file->language);
        return false;
    }
    if (x->n_twins && is_in_place(x, q)) return move_next(x, q, ret, headline);
    bool is_good = prepare(&m, way, q);
    if (is_good) make_changes(&m, way, m.is_there, ret);
    for (size_t i = 0; i < x->n_twins && is_good; i++)
        is_good = !strcmp(x->twins[i], m.to) || take_twin(&m, way, q, x->twins[i], ret);
    if (is_good && m.is_there)
        base_buf_printf(&m.notes, "%s defines it already, letter for letter the same.\n", m.to);
    if (is_good) say_moved(&m, way, ret, headline);
    mover_free(&m);
    return is_good;
}
