/*
 * rename: a definition and every place that means it get another name. What is not sure is listed and left.
 */
#include "tools/refactor/resolve_work.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/edit/naming.h"
#include "tools/result/result.h"

enum { MAX_LISTED = 10 };

static void say_place(base_buf *out, const char *path, uint32_t line)
{
    tool__path_show(out, path);
    base_buf_printf(out, ":%u", line);
}

/* ---- is the new name free? ---- */

/* Does the file write the renamed thing by its bare name, so that the new one means it there? */
static bool has_bare_place(const refactor *x, const refactor_file *f)
{
    for (size_t i = 0; i < x->n_places; i++)
        if (&x->files[x->places[i].file] == f && x->places[i].verdict == REFACTOR_SURE &&
            x->places[i].use->role == CODE_USE_NAME)
            return true;
    return false;
}

/* Go: what stands at the top of one file of a package, and is no method, is seen in all of them. */
static bool is_of_package(const refactor *x, const refactor_file *f)
{
    const refactor_target *t = &x->target;
    return t->in->language->family == REFACTOR_GO && t->binding == UINT32_MAX && !t->is_member &&
           f->language->family == REFACTOR_GO && base_path_same_folder(f->path, t->in->path) &&
           refactor__is_same_package(f, t->in);
}

/* Would `u`, a place of the new name, and the renamed thing mean each other? */
static bool collides(const refactor *x, const refactor_file *f, const code_uses *news, const code_use *u)
{
    const refactor_target *t = &x->target;
    const code_definition *d = u->definition != UINT32_MAX ? &news->file->definitions[u->definition] : NULL;
    const bool is_member =
        d && (!strcmp(d->what, "method") || !strcmp(d->what, "field") || refactor__is_nested(news->file, d));
    if (u->role == CODE_USE_LABEL || u->role >= CODE_USE_STRING) return false;
    if (t->binding != UINT32_MAX) /* inside the same function, whatever it means there */
        return f == t->in && u->role == CODE_USE_NAME && u->from >= 1 && *t->owner &&
               u->inside != UINT32_MAX && news->file->definitions[u->inside].from <= t->name_from &&
               t->name_from < news->file->definitions[u->inside].to;
    if (t->is_member)
        return d && is_member && refactor__are_related(x, d->parent, t->parent) &&
               !strcmp(u->within, t->within);
    if (u->role != CODE_USE_NAME || is_member) return false;
    if (u->is_tag != t->is_tag_only && f->language->has_tags) return false;
    if (u->binding == UINT32_MAX)
        return f == t->in || d || u->import != UINT32_MAX || is_of_package(x, f) || has_bare_place(x, f);
    /* A local of that name hides it where it is used. */
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        if (&x->files[p->file] == f && p->verdict == REFACTOR_SURE && p->use->role == CODE_USE_NAME &&
            p->use->inside == u->inside)
            return true;
    }
    return false;
}

/* C: is what this file defines seen in it alone: static, or a macro, and no header? */
static bool is_own(refactor *x, const char *path, const char *name)
{
    const char *ending = base_path_ending(path);
    const refactor_file *f = *ending == '.' && (ending[1] | 32) == 'h' ? NULL : refactor__module(x, path);
    bool is_any = false;
    for (uint32_t i = 0; f && i < f->uses->file->n_definitions; i++) {
        const code_definition *d = &f->uses->file->definitions[i];
        if (strcmp(d->name, name) != 0 || *d->parent) continue;
        if (strcmp(d->what, "macro") != 0 && !refactor__is_static(f, d)) return false;
        is_any = true;
    }
    return is_any;
}

/* Would the file's uses of the new name and the renamed thing be mixed up? Then the result says where. */
static bool is_taken_in(const refactor *x, const refactor_file *f, const char *to)
{
    code_uses *news = code_uses_find(x->w->grammars, f->path, f->file.text.data, f->file.text.len, to);
    const code_use *taken = NULL;
    for (uint32_t k = 0; news && k < news->n_uses && !taken; k++)
        if (collides(x, f, news, &news->uses[k])) taken = &news->uses[k];
    if (taken) {
        base_buf_printf(&x->result->text, "\"%s\" is taken: ", to);
        say_place(&x->result->text, f->path, taken->line);
        tool__say(x->result, TOOL_REFUSED,
            " uses it already, and the two would be mixed "
            "up. Nothing was changed. Next: another name.\n");
    }
    code_uses_free(news);
    return taken != NULL;
}

static bool is_free_in_package(refactor *x, const char *to)
{
    const tool_listing *l = &x->w->listing;
    if (!is_of_package(x, x->target.in)) return true;
    for (size_t i = 0; i < l->n; i++) {
        const char *path = l->files[i].path;
        if (strcmp(base_path_ending(path), ".go") != 0 || !base_path_same_folder(path, x->target.in->path))
            continue;
        const refactor_file *f = refactor__module(x, path);
        if (f && is_of_package(x, f) && is_taken_in(x, f, to)) return false;
    }
    return true;
}

/* Would a definition of the new name at the top of another file, which says nothing of the old one, be mixed up with it? */
static bool is_rival(refactor *x, const code_place *at, const char *to)
{
    const refactor_target *t = &x->target;
    const bool is_type = refactor__is_type(at->what);
    if (refactor__language(code_language(at->path, "", 0))->family != t->in->language->family) return false;
    if (!strcmp(at->what, "field") || is_type != t->is_type) return false;
    if (t->in->language->declares_apart)
        return !is_own(x, at->path, to); /* what is changed there was looked at */
    const refactor_file *f = is_type ? refactor__module(x, at->path) : NULL;
    return f && refactor__is_same_package(f, t->in); /* Java: a package has one type of a name */
}

static bool is_free(refactor *x, const char *to)
{
    const refactor_target *t = &x->target;
    for (size_t i = 0; i < x->n_files; i++) {
        bool is_touched = &x->files[i] == t->in;
        for (size_t k = 0; k < x->n_places && !is_touched; k++)
            is_touched = x->places[k].file == i && x->places[k].verdict == REFACTOR_SURE;
        if (is_touched && is_taken_in(x, &x->files[i], to)) return false;
    }
    if (!is_free_in_package(x, to)) return false;
    /* Where the definition is seen from everywhere, another file may define the new name too. */
    const bool is_seen = t->binding == UINT32_MAX && !t->is_member && !t->is_static &&
                         (t->in->language->declares_apart || t->in->language->family == REFACTOR_JAVA);
    code_place *places = NULL;
    const uint32_t n = is_seen ? code_index_define(x->w->index, to, &places) : 0;
    bool is_good = true;
    for (uint32_t i = 0; i < n && is_good; i++) {
        if (!is_rival(x, &places[i], to)) continue;
        base_buf_printf(&x->result->text, "\"%s\" is taken: ", to);
        say_place(&x->result->text, places[i].path, places[i].line);
        tool__say(x->result, TOOL_REFUSED, " defines it. Nothing was changed. Next: another name.\n");
        is_good = false;
    }
    code_places_free(places, n);
    return is_good;
}

static bool is_good_name(refactor *x, const char *to)
{
    const char *language = x->target.in->uses->file->language;
    const char *why = tool__why_no_name(language, to, x->target.is_type);
    if (!strcmp(to, x->name)) why = "it has that name already";
    if (!*why) return true;
    tool__say(x->result, TOOL_REFUSED, "\"%.100s\" cannot be a name in %s: %s. Nothing was changed.\n", to,
        language, why);
    return false;
}

/* ---- the new texts ---- */

static void edit_place(const refactor *x, const refactor_place *p, const char *to, refactor_edits *edits)
{
    const code_use *u = p->use;
    const uint32_t end = u->from + (uint32_t)strlen(x->name);
    base_buf text = {0};
    /* {name} is key and variable at once: only one of them is renamed, but for what the module exports. */
    const bool is_split = u->is_shorthand && !u->is_exported && u->import == UINT32_MAX;
    if (is_split && x->target.is_member)
        base_buf_printf(&text, "%s: %s", to, x->name);
    else if (is_split)
        base_buf_printf(&text, "%s: %s", x->name, to);
    else
        base_buf_puts(&text, to);
    refactor__edit(edits, u->from, end, text.data);
    base_buf_free(&text);
}

static void make_changes(const refactor *x, const char *to, tool_changes *ret)
{
    for (size_t i = 0; i < x->n_files; i++) {
        refactor_edits edits = {0};
        for (size_t k = 0; k < x->n_places; k++)
            if (x->places[k].file == i && x->places[k].verdict == REFACTOR_SURE)
                edit_place(x, &x->places[k], to, &edits);
        refactor__edits_take(&edits, x->files[i].path, &x->files[i].file, ret);
    }
}

/* The new name where a path of settings means the target; with takes_prose in all of them but changelogs. In how many places. */
static size_t rename_in_documents(refactor *x, const char *to, bool takes_prose, tool_changes *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_documents; i++) {
        refactor_document *d = &x->documents[i];
        refactor_edits edits = {0};
        size_t n_left = 0;
        for (size_t k = 0; k < d->n_places; k++) {
            const bool is_meant =
                d->is_configuration ? refactor__is_looked_up(x, &d->file.text, d->places[k]) : takes_prose;
            if (is_meant && !d->is_history)
                refactor__edit(&edits, d->places[k], d->places[k] + (uint32_t)strlen(x->name), to);
            else
                d->places[n_left++] = d->places[k];
        }
        n += edits.n;
        d->n_places = n_left;
        refactor__edits_take(&edits, d->path, &d->file, ret);
    }
    return n;
}

/* ---- what is said ---- */

static void say_left(const refactor *x, base_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        if (p->verdict != REFACTOR_UNSURE) continue;
        if (n++ >= MAX_LISTED) continue;
        base_buf_puts(out, n == 1 ? "Not sure and left: " : ", ");
        say_place(out, x->files[p->file].path, p->use->line);
        base_buf_printf(out, " (%s)", p->why);
    }
    if (n > MAX_LISTED) base_buf_printf(out, " and %zu more", n - MAX_LISTED);
    if (n) base_buf_puts(out, ". The same call with \"unsure\": true changes them too.\n");
    if (x->n_text && !x->takes_text)
        base_buf_printf(
            out, "%zu place%s in comments and strings left.\n", x->n_text, x->n_text == 1 ? "" : "s");
    refactor__say_documents(x, out);
    if (x->n_unread)
        base_buf_printf(out, "%zu file%s not read (no grammar, or too large), as %s.\n", x->n_unread,
            x->n_unread == 1 ? "" : "s", x->unread);
}

bool refactor__rename(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
    const refactor_target *t = &x->target;
    size_t n_sure = 0, n_unsure = 0, n_prose = 0;
    if (!q->to) {
        tool__say(x->result, TOOL_FAILED, "rename needs \"to\", the new name. Nothing was changed.\n");
        return false;
    }
    if (!is_good_name(x, q->to)) return false;
    if (t->in->is_foreign && !x->takes_unsure) {
        tool__path_show(&x->result->text, t->in->path);
        tool__say(x->result, TOOL_REFUSED,
            " is generated or vendored: a change there is lost when it is made again. Nothing "
            "was changed. Next: ask the person; \"unsure\": true does it all the same.\n");
        return false;
    }
    if (!refactor__resolve(x) || !is_free(x, q->to)) return false;
    const bool follows = !x->takes_text && !x->leaves_text && refactor__has_one_meaning(x);
    if (follows) n_prose = refactor__take_comments(x);
    x->n_text -= n_prose < x->n_text ? n_prose : x->n_text;
    for (size_t i = 0; i < x->n_places; i++) {
        n_sure += x->places[i].verdict == REFACTOR_SURE;
        n_unsure += x->places[i].verdict == REFACTOR_UNSURE;
    }
    make_changes(x, q->to, ret);
    const size_t n_documents =
        rename_in_documents(x, q->to, x->takes_text || (follows && refactor__is_only_a_name(x->name)), ret);
    n_sure += n_documents;
    if (follows) n_prose += n_documents;
    base_buf left = {0}, say = {0};
    say_left(x, &left);
    base_buf_printf(&say, "renamed %s %s to %s: %zu places in %zu file%s.\n", t->what, x->name, q->to, n_sure,
        ret->n, ret->n == 1 ? "" : "s");
    if (n_prose)
        base_buf_printf(
            &say, "%zu of them in comments and documents: the name means nothing else here.\n", n_prose);
    base_buf_add(&say, left.data ? left.data : "", left.len);
    base_buf_printf(headline, "rename %s to %s, %zu places", x->name, q->to, n_sure);
    if (n_unsure) base_buf_printf(headline, ", %zu not sure and left", n_unsure);
    ret->say = base_buf_take(&say);
    if (left.len) ret->notice = base_buf_take(&left);
    base_buf_free(&left);
    return true;
}
