/*
 * What a move needs in JavaScript and TypeScript (contract: mover.h): the new place imports what it uses (move_script_needs.c), the source
 * imports back what it uses still, and who took it from the source takes it from there (move_script_users.c). ES modules and CommonJS,
 * each with its own.
 */
#include "tools/refactor/move_script.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/edit/exports.h"
#include "tools/file/text.h"
#include "tools/result/result.h"

enum { MOST_FILES = 400 }; /* that are followed for a circle of imports */

static const char *text_of(const mover *m, const refactor *part)
{
    return m->from->file.text.data + part->target.definition->from;
}

static bool begins(const char *text, const char *word)
{
    return !strncmp(text, word, strlen(word));
}

/* ---- the survey ---- */

/* Does package.json name the source, or is it the first file of all? */
static bool is_entry(const mover *m)
{
    static const char *const firsts[] = {"index.js", "index.mjs", "index.cjs", "index.ts", "src/index.js",
        "src/index.mjs", "src/index.ts", "src/index.tsx"};
    const char *path = m->from->path;
    tool_file file = {0};
    bool is = false;
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) is |= !strcmp(path, firsts[i]);
    if (is || tool__file_read(&m->x->w->root, "package.json", TOOL_MAX_INDEXED, &file, NULL)) return is;
    base_buf word = {0};
    base_buf_printf(&word, "%s\"", path);
    const char *at = file.text.len ? memmem(file.text.data, file.text.len, word.data, word.len) : NULL;
    is = at && strchr("\"/", at[-1]);
    base_buf_free(&word);
    tool__file_free(&file);
    return is;
}

/* A path as imports of other files of the tree write it; the caller frees; NULL: none of the first has any. */
static char *like_elsewhere(const mover *m)
{
    enum { MOST = 24 };
    const tool_listing *l = &m->x->w->listing;
    char *like = NULL;
    for (size_t i = 0, n = 0; i < l->n && n < MOST && !like; i++) {
        const char *path = l->files[i].path, *language = code_language(path, "", 0);
        const bool is_like = language && refactor__language(language)->family == REFACTOR_JS &&
                             strcmp(path, m->from->path) != 0;
        const refactor_file *f = is_like ? refactor__module(m->x, path) : NULL;
        n += is_like;
        if (f && f->language->is_structural == m->from->language->is_structural)
            like = script__any_spec(f->uses);
    }
    return like;
}

bool mover__script_survey(mover *m)
{
    script_move *s = m->script = base_xcalloc(1, sizeof *s);
    const base_buf *to = &m->to_file.text;
    const bool is_split =
        m->from->language->is_structural != refactor__language(code_language(m->to, "", 0))->is_structural;
    s->kind = script__kind(m->from->path, &m->from->file.text);
    base_buf empty = {0};
    const script_kind there = script__kind(m->to, m->is_new ? &empty : to);
    if (is_split) return script__refuse(m, m->to, " is in the other of JavaScript and TypeScript");
    if (s->kind == SCRIPT_PLAIN)
        return script__refuse(m, m->from->path,
            " neither imports nor exports, so nothing tells how another file is to take from it");
    if (there != SCRIPT_PLAIN && there != s->kind)
        return script__refuse(m, m->to,
            s->kind == SCRIPT_ES ? " is CommonJS and the source an ES module"
                                 : " is an ES module and the source CommonJS");
    s->like = script__any_spec(m->from->uses);
    bool is_given = false;
    for (size_t i = 0; i < m->n_parts; i++) {
        const code_definition *d = m->parts[i]->target.definition;
        if (d->from == d->name_from)
            return script__refuse(m, m->parts[i]->name, " stands with others in one statement");
        is_given |= mover__script_is_given(m, m->parts[i]);
    }
    if (is_given && !script__find_users(m)) return false;
    for (size_t i = 0; i < s->n_users && !s->like; i++) {
        const code_uses *u = s->users[i]->uses;
        for (uint32_t k = 0; k < u->n_imports && !s->like; k++)
            if (script__is_from(m, s->users[i], &u->imports[k], m->from->path))
                s->like = base_xstrdup(u->imports[k].module);
    }
    if (!s->like) s->like = like_elsewhere(m);
    s->is_entry = is_given && !m->is_kept && is_entry(m);
    m->is_kept |= s->is_entry || s->whole;
    if (s->whole && !s->is_entry)
        base_buf_printf(
            &m->notes, "%s takes %s as a whole, so that goes on giving it.\n", s->whole, m->from->path);
    return true;
}

void mover__script_free(mover *m)
{
    if (!m->script) return;
    free(m->script->users);
    free(m->script->like);
    base_buf_free(&m->script->exports);
    base_buf_free(&m->script->reached);
    free(m->script);
}

/* ---- what the source needs, and gives no more ---- */

/* A SURE place of the source outside of what goes, no import of it. */
static bool is_use_behind(const mover *m, const refactor *part, const refactor_place *p)
{
    return &part->files[p->file] == part->target.in && p->verdict == REFACTOR_SURE &&
           p->use->role < CODE_USE_STRING && !mover__is_cut(m, p->use->from) &&
           p->use->definition == UINT32_MAX && p->use->import == UINT32_MAX;
}

/* Uses that stay, and do not only give it away. */
static bool is_used_behind(const mover *m, const refactor *part, bool *ret_by_exports)
{
    bool is = false;
    uint32_t from, to;
    for (size_t i = 0; i < part->n_places; i++) {
        const refactor_place *p = &part->places[i];
        if (!is_use_behind(m, part, p)) continue;
        if (script__is_giving(m, part, p->use, &from, &to)) {
            is |= m->is_kept;
            continue;
        }
        if (p->use->role == CODE_USE_KEY) continue;
        const bool is_member = p->use->role == CODE_USE_MEMBER;
        *ret_by_exports |= is_member;
        is |= !is_member;
    }
    return is;
}

bool mover__script_goes_back(const mover *m)
{
    bool is = m->is_kept, by_exports = false;
    for (size_t i = 0; i < m->n_parts && !is; i++) is = is_used_behind(m, m->parts[i], &by_exports);
    return is;
}

/* The places that give it away go. */
static void take_back(mover *m)
{
    const base_buf *text = &m->from->file.text;
    mover_cut *items = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < m->n_parts; i++)
        for (size_t k = 0; k < m->parts[i]->n_places; k++) {
            const refactor_place *p = &m->parts[i]->places[k];
            uint32_t from, to;
            if (&m->parts[i]->files[p->file] != m->parts[i]->target.in || p->verdict != REFACTOR_SURE ||
                !script__is_giving(m, m->parts[i], p->use, &from, &to))
                continue;
            if (p->use->role == CODE_USE_MEMBER) {
                refactor__statement_extent(text, &from, &to);
                refactor__edit(&m->source_edits, from, to, "");
                continue;
            }
            base_grow(&items, &cap, n + 1, sizeof *items);
            size_t at = n++;
            for (; at > 0 && items[at - 1].from > from; at--) items[at] = items[at - 1];
            items[at] = (mover_cut){from, to};
        }
    for (size_t i = 0; i < n;) { /* list by list */
        size_t end = i + 1;
        const char *close = memchr(text->data + items[i].to, '}', text->len - items[i].to);
        while (end < n && close && text->data + items[end].from < close) end++;
        if (!mover__remove_items(text, items + i, end - i, &m->source_edits)) {
            uint32_t from = items[i].from, to = items[end - 1].to;
            if (m->script->kind == SCRIPT_ES) {
                from = (uint32_t)tool__line_begin(text->data, from);
                while (from > 0 && !begins(text->data + from, "export"))
                    from = (uint32_t)tool__line_begin(text->data, from - 1);
                to = (uint32_t)(close - text->data) + 1;
                refactor__statement_extent(text, &from, &to);
            } else {
                while (from > 0 && tool__is_space(text->data[from - 1])) from--;
                to = (uint32_t)(close - text->data);
            }
            refactor__edit(&m->source_edits, from, to, "");
        }
        i = end;
    }
    free(items);
}

/* What the source calls the new place where it has it whole already, "const utils = require('./utils')"; NULL: it has not. */
static const char *whole_of_target(const mover *m)
{
    for (uint32_t i = 0; i < m->from->uses->n_imports; i++) {
        const code_import *im = &m->from->uses->imports[i];
        script_import st;
        if (*im->name || im->is_export || !script__is_from(m, m->from, im, m->to)) continue;
        if (script__read_import(&m->from->file.text, im, &st) && !st.is_type) return im->local;
    }
    return NULL;
}

/* The source's uses that stay reach the part by way of that: "utils.f". */
static void reach_through(mover *m, const refactor *part, const char *whole)
{
    for (size_t i = 0; i < part->n_places; i++) {
        const refactor_place *p = &part->places[i];
        base_buf s = {0};
        if (!is_use_behind(m, part, p) || p->use->role != CODE_USE_NAME) continue;
        if (p->use->is_shorthand) base_buf_printf(&s, "%s: ", part->name);
        base_buf_printf(&s, "%s.", whole);
        refactor__edit(&m->source_edits, p->use->from, p->use->from, s.data);
        base_buf_free(&s);
    }
}

/* The source takes it from the new place: imports, and what it hands on. */
static void add_back(mover *m)
{
    base_buf names[2][2] = {{{0}}}; /* [is_export][is_type] */
    const script_style style = script__style(&m->from->file.text);
    char *spec = script__spell(m->from->path, m->to, m->script->like);
    const char *as = m->script->kind == SCRIPT_COMMON ? ": " : " as ";
    const char *whole = m->is_kept ? NULL : whole_of_target(m);
    for (size_t i = 0; i < m->n_parts; i++) {
        const refactor *part = m->parts[i];
        const script_form form = script__form(m, part);
        const bool is_type = script__is_type(part);
        const char *name = script__new_name(m, part);
        bool by_exports = false;
        const bool is_used = is_used_behind(m, part, &by_exports);
        if (is_used && whole && !is_type && strcmp(name, "default") != 0) {
            reach_through(m, part, whole);
        } else if (is_used) {
            base_buf *out = &names[0][is_type];
            base_buf_printf(out, "%s%s", out->len ? ", " : "", name);
            if (strcmp(name, part->name) != 0) base_buf_printf(out, "%s%s", as, part->name);
        }
        if (form == SCRIPT_ASSIGNED && (m->is_kept || by_exports)) {
            base_buf line = {0};
            const base_buf *old = &m->from->file.text;
            const char *text = text_of(m, part);
            uint32_t at = part->target.definition->from, end;
            refactor__definition_extent(old, at, part->target.definition->to, &at, &end);
            base_buf_printf(&line, "%.*s = require(%c%s%c).%s%s\n%s", (int)strcspn(text, " ="), text,
                style.quote, spec, style.quote, part->name, style.end,
                end < old->len && old->data[end] == '\n' ? "\n" : "");
            refactor__edit(&m->source_edits, at, at, line.data);
            base_buf_free(&line);
        } else if (m->is_kept && (form == SCRIPT_WORD || form == SCRIPT_DEFAULT)) {
            base_buf *out = &names[1][is_type];
            base_buf_printf(out, "%s%s", out->len ? ", " : "", name);
            if (form == SCRIPT_DEFAULT && strcmp(name, "default") != 0) base_buf_puts(out, " as default");
        }
    }
    static const char *const words[2][2] = {{"import", "import type"}, {"export", "export type"}};
    for (int k = 0; k < 4; k++) {
        base_buf *out = &names[k / 2][k % 2];
        const bool is_joined =
            out->len && k < 2 && script__join_line(m, m->from, m->to, out->data, k % 2, &m->source_edits);
        if (out->len && !is_joined)
            script__put_line(m, style, words[k / 2][k % 2], out->data, spec, &m->back);
        base_buf_free(out);
    }
    free(spec);
}

/* ---- circles ---- */

/* All files that the new place takes from, directly or not, go into `reached`. */
static void follow(mover *m)
{
    base_buf *out = &m->script->reached;
    const refactor_file *to = m->is_new ? NULL : refactor__module(m->x, m->to);
    for (uint32_t i = 0; to && i < to->uses->n_imports; i++) {
        const char *path = script__module(m->x, m->to, to->uses->imports[i].module);
        const refactor *part = script__given(m, to->uses->imports[i].name);
        if (path && !(part && !strcmp(path, m->from->path))) base_buf_printf(out, "%s\n", path);
    }
    if (m->script->needs_source) base_buf_printf(out, "%s\n", m->from->path);
    size_t n = 0;
    for (size_t at = 0; at < out->len && n < MOST_FILES; n++) {
        const size_t end = tool__line_end(out->data, out->len, at);
        char *path = base_xstrndup(out->data + at, end - at);
        const refactor_file *f = refactor__module(m->x, path);
        for (uint32_t i = 0; f && i < f->uses->n_imports; i++) {
            script_import st;
            const char *next = script__module(m->x, path, f->uses->imports[i].module);
            const bool is_type = script__read_import(&f->file.text, &f->uses->imports[i], &st) && st.is_type;
            if (next && !is_type && !mover__has_line(out, next, strlen(next)))
                base_buf_printf(out, "%s\n", next);
        }
        free(path);
        at = end + 1;
    }
}

/* Would the two import each other? In CommonJS one of them would see the other half made. */
static bool check_circle(mover *m)
{
    bool takes_back = m->back.len > 0;
    for (size_t i = 0; i < m->n_parts; i++)
        takes_back |= script__form(m, m->parts[i]) == SCRIPT_ASSIGNED && m->is_kept;
    follow(m);
    if (!takes_back || !m->script->reached.len ||
        !mover__has_line(&m->script->reached, m->from->path, strlen(m->from->path)))
        return true;
    bool is_late = m->script->kind == SCRIPT_ES; /* used when both are made */
    for (size_t i = 0; i < m->n_parts; i++)
        is_late = is_late && (m->parts[i]->target.is_function || script__is_type(m->parts[i]));
    if (!is_late) {
        tool__say(m->x->result, TOOL_REFUSED,
            "%s and %s would import each other, and one of them would see the other half made: move what %s needs as well. "
            "Nothing was changed.\n",
            m->from->path, m->to, m->x->name);
        return false;
    }
    base_buf_printf(&m->notes, "%s and %s import each other now.\n", m->from->path, m->to);
    return true;
}

/* ---- the texts ---- */

/* Each part says in the new place that others may have it. */
static void add_words(mover *m)
{
    const bool has_whole =
        m->to_file.text.len && memmem(m->to_file.text.data, m->to_file.text.len, "module.exports =", 16);
    for (size_t i = 0; i < m->n_parts; i++) {
        const refactor *part = m->parts[i];
        const script_form form = script__form(m, part);
        const uint32_t at = part->target.definition->from;
        bool by_exports = false;
        const bool is_seen = form != SCRIPT_HIDDEN || i == 0 || is_used_behind(m, part, &by_exports);
        if (form == SCRIPT_DEFAULT && !m->is_new)
            refactor__edit(&m->moved_edits, at, at + (uint32_t)strlen("export default"), "export");
        else if (m->script->kind == SCRIPT_ES && is_seen && form != SCRIPT_WORD && form != SCRIPT_DEFAULT)
            refactor__edit(&m->moved_edits, at, at, "export ");
        else if (form == SCRIPT_ASSIGNED && has_whole && begins(text_of(m, part), "exports."))
            refactor__edit(&m->moved_edits, at, at, "module.");
    }
}

bool mover__script_heads(mover *m)
{
    bool is_good = script__add_needs(m) && script__change_inside(m);
    if (!is_good) return false;
    add_back(m);
    if (!m->is_kept) take_back(m);
    add_words(m);
    for (size_t i = 0; m->script->is_entry && i < m->n_parts; i++)
        if (mover__script_is_given(m, m->parts[i])) {
            base_buf_printf(&m->notes, "%s is what others of this package import: it hands %s on.\n",
                m->from->path, m->parts[i]->name);
            break;
        }
    return check_circle(m);
}

/* What the new place imported of what is its own now goes. */
static bool drop_own_imports(mover *m, const refactor_file *f, refactor_edits *edits)
{
    for (uint32_t i = 0; f && i < f->uses->n_imports; i++) {
        const code_import *im = &f->uses->imports[i];
        const refactor *part = script__given(m, im->name);
        script_import st;
        if (!part || !script__is_from(m, f, im, m->from->path) ||
            !script__read_import(&f->file.text, im, &st))
            continue;
        uint32_t from = im->from, to = im->to, n = 0;
        for (uint32_t k = 0; k < f->uses->n_imports; k++) {
            script_import other;
            n += script__read_import(&f->file.text, &f->uses->imports[k], &other) && other.spec == st.spec &&
                 script__given(m, f->uses->imports[k].name) == NULL;
        }
        if (n == 0 && st.is_alone) { /* all of it */
            from = st.from;
            to = st.to;
            refactor__statement_extent(&f->file.text, &from, &to);
        } else {
            refactor__item_extent(&f->file.text, &from, &to);
        }
        bool is_there = false;
        for (size_t k = 0; k < edits->n; k++) is_there |= edits->all[k].from == from;
        if (!is_there) refactor__edit(edits, from, to, "");
        if (!im->is_export && strcmp(im->local, part->name) != 0)
            base_buf_printf(&m->moved, "\nconst %s = %s;\n", im->local, part->name);
    }
    return true;
}

/* Where the statement begins that gives all away, with its comment, where nothing else follows it; SIZE_MAX: there is none. */
static size_t last_exports(const base_buf *text)
{
    static const char *const words[] = {"module.exports =", "module.exports.", "exports."};
    size_t found = SIZE_MAX;
    for (size_t at = 0; at < text->len; at = tool__line_end(text->data, text->len, at) + 1) {
        bool is = false;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) is |= begins(text->data + at, words[i]);
        const char c = text->data[at];
        if (is && found == SIZE_MAX) found = at;
        if (!is && !strchr(" \t\r\n})];", c)) found = SIZE_MAX; /* another statement */
    }
    return found;
}

/* CommonJS: what the new place gives. */
static void give(mover *m, base_buf *out)
{
    base_buf names = {0};
    for (size_t i = 0; i < m->n_parts; i++) {
        const refactor *part = m->parts[i];
        const script_form form = script__form(m, part);
        bool by_exports = false;
        if (form == SCRIPT_ASSIGNED || (form == SCRIPT_HIDDEN && i && !is_used_behind(m, part, &by_exports)))
            continue;
        if (tool__export_last("javascript", out, part->name)) continue;
        if (memmem(out->data, out->len, "module.exports =", 16))
            base_buf_printf(
                out, "module.exports.%s = %s%s\n", part->name, part->name, script__style(out).end);
        else
            base_buf_printf(&names, "%s%s", names.len ? ", " : "", part->name);
    }
    if (names.len) base_buf_printf(out, "\nmodule.exports = { %s }%s\n", names.data, script__style(out).end);
    base_buf_free(&names);
}

void mover__script_target(mover *m, base_buf *out)
{
    const base_buf *old = &m->to_file.text;
    const bool is_common = m->script->kind == SCRIPT_COMMON;
    if (m->is_new) {
        const char *source = m->from->file.text.data;
        const char *strict = strstr(source, "use strict");
        if (is_common && strict && strict < source + 400)
            base_buf_printf(out, "%c%s%c%s\n\n", strict[-1], "use strict", strict[-1],
                script__style(&m->from->file.text).end);
        if (m->heads.len) base_buf_printf(out, "%s\n", m->heads.data);
        base_buf_add(out, m->moved.data, m->moved.len);
    } else {
        const refactor_file *f = refactor__module(m->x, m->to);
        refactor_edits edits = {0};
        bool is_assigned = false; /* to the exports: behind what makes them */
        for (size_t i = 0; i < m->n_parts; i++)
            is_assigned |= script__form(m, m->parts[i]) == SCRIPT_ASSIGNED;
        const size_t end = is_common && !is_assigned ? last_exports(old) : SIZE_MAX;
        const uint32_t top = script__top(old, f ? f->uses : NULL);
        drop_own_imports(m, f, &edits);
        if (m->heads.len && script__is_bare(old, top)) base_buf_putc(&m->heads, '\n');
        if (m->heads.len) refactor__edit(&edits, top, top, m->heads.data);
        if (end != SIZE_MAX) {
            base_buf piece = {0};
            base_buf_printf(&piece, "%s\n", m->moved.data);
            refactor__edit(&edits, (uint32_t)end, (uint32_t)end, piece.data);
            base_buf_free(&piece);
        }
        refactor__edits_apply(&edits, old, out);
        refactor__edits_free(&edits);
        if (end == SIZE_MAX) {
            const bool crlf = tool__text_style(old->data ? old->data : "", old->len).crlf;
            while (out->len && strchr("\r\n", out->data[out->len - 1])) out->data[--out->len] = '\0';
            if (out->len) tool__line_ends(out, "\n\n", 2, crlf);
            tool__line_ends(out, m->moved.data, m->moved.len, crlf);
        }
    }
    if (is_common) give(m, out);
    if (m->is_new) { /* a new file has the source's line ends */
        const base_buf *source = &m->from->file.text;
        base_buf text = {0};
        tool__line_ends(&text, out->data, out->len, tool__text_style(source->data, source->len).crlf);
        base_buf_free(out);
        *out = text;
    }
}

void mover__script_source(mover *m, base_buf *text)
{
    const char *names = m->script->exports.len ? m->script->exports.data : "";
    while (*names) {
        char *name = base_xstrndup(names, strcspn(names, " "));
        if (!tool__export_last("javascript", text, name))
            base_buf_printf(text, "\nmodule.exports.%s = %s%s\n", name, name, script__style(text).end);
        free(name);
        names += strcspn(names, " ") + 1;
    }
}
