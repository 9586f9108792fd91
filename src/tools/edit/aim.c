/*
 * Which definition a rewrite means (contract: aim.h). A small model names a file that is near the right one,
 * a method that is still to be written, or the neighbour of what it adds; the index knows the tree.
 */
#include "tools/edit/aim.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "tools/edit/newcomer.h"
#include "tools/edit/twin.h"
#include "tools/file/text.h"
#include "tools/file/safe_path.h"
#include "base/path.h"
#include "code/code.h"

void tool__aim_free(tool_aim *a)
{
    for (size_t i = 0; i < a->n; i++) free(a->names[i]);
    free(a->names);
    free(a->path);
    base_buf_free(&a->block);
    base_buf_free(&a->note);
    *a = (tool_aim){0};
}

static void set_name(tool_aim *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++) free(a->names[i]);
    a->names = base_xrealloc(a->names, sizeof *a->names);
    a->names[0] = base_xstrdup(name);
    a->n = 1;
}

static void add_name(tool_aim *a, const char *holder, const char *name)
{
    base_buf whole = {0};
    base_buf_printf(&whole, "%s.%s", holder, name);
    a->names = base_xrealloc(a->names, (a->n + 1) * sizeof *a->names);
    a->names[a->n++] = base_buf_take(&whole);
}

static void move_to(tool_aim *a, const char *path, const char *what)
{
    base_buf shown = {0};
    tool__path_show(&shown, path);
    base_buf_printf(&a->note, "%.100s stands in %s. ", what, shown.data);
    base_buf_free(&shown);
    char *copy = base_xstrdup(path);
    free(a->path);
    a->path = copy;
}

static bool asks_for(const char *request, const char *const *stems)
{
    for (; request && *stems; stems++)
        if (strcasestr(request, *stems)) return true;
    return false;
}
static const char *const adding[] = {"add ", "new ", "introduce", "create", "implement", NULL};
static const char *const moving[] = {"renam", "move", "should be called", "call it", NULL};
static const char *const deleting[] = {"delet", "remov", "drop", "get rid", NULL};

static bool is_there(tool_workspace *w, const char *path)
{
    tool_file f = {0};
    bool is_file = !tool__file_read(&w->root, path, TOOL_MAX_FILE, &f, NULL);
    tool__file_free(&f);
    return is_file;
}

/* The tree's file of that name, where the folders in front of it are wrong. */
static char *known_path(tool_workspace *w, const char *path)
{
    char *found = code_index_path(w->index, path);
    for (const char *slash = strchr(path, '/'); slash && !found; slash = strchr(slash + 1, '/'))
        found = code_index_path(w->index, slash + 1);
    return found;
}

/*
 * The one file that defines the name, of the kind that the call is for (a test for tests only, no declarations
 * of types for JavaScript); NULL: none or several.
 */
static char *only_file(tool_workspace *w, const char *name, const char *path, bool wants_holder)
{
    code_place *places = NULL;
    uint32_t n = code_index_define(w->index, name, &places);
    char *found = NULL;
    bool one = true;
    for (uint32_t i = 0; i < n && one; i++) {
        const code_definition d = {.what = places[i].what};
        bool is_value = !strcmp(places[i].what, "field") || !strcmp(places[i].what, "variable");
        if (places[i].is_declaration || is_value || (wants_holder && !tool__is_holder(NULL, &d))) continue;
        if (code_path_is_test(places[i].path) && !code_path_is_test(path)) continue;
        if (!base_path_same_ending(places[i].path, path)) continue;
        one = !found || !strcmp(found, places[i].path);
        if (!found) found = base_xstrdup(places[i].path);
    }
    code_places_free(places, n);
    if (one) return found;
    free(found);
    return NULL;
}

/* "x.c" for "x.h", where the tree has it: what has a body does not belong into a header. */
static char *source_of_header(tool_workspace *w, const char *path)
{
    size_t n = strlen(path);
    if (n < 3 || strcmp(path + n - 2, ".h") != 0) return NULL;
    char *source = base_xstrdup(path);
    source[n - 1] = 'c';
    if (is_there(w, source)) return source;
    free(source);
    return NULL;
}

/* "int f(int a);" for a header: what is asked for is the prototype, wherever the body stands. */
static bool is_prototype_for_header(const char *path, const char *defined, base_str block)
{
    const size_t n = strlen(path);
    return defined && n > 2 && (path[n - 1] == 'h' || path[n - 1] == 'H') && path[n - 2] == '.' &&
           block.ptr && memchr(block.ptr, '(', block.len) && memchr(block.ptr, ';', block.len) &&
           !memchr(block.ptr, '{', block.len) && !memchr(block.ptr, '#', block.len);
}

static bool stands_in(tool_workspace *w, const char *path, const char *name)
{
    tool_file f = {0};
    uint32_t at;
    if (tool__file_read(&w->root, path, TOOL_MAX_FILE, &f, NULL)) return false;
    code_file *c = code_parse(w->grammars, path, f.text.data ? f.text.data : "", f.text.len);
    const bool is_so = code_find_definition(c, name, &at, 1) > 0;
    code_file_free(c);
    tool__file_free(&f);
    return is_so;
}

static const code_definition *member_of(const code_file *f, const char *holder, const char *name)
{
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!strcmp(d->name, name) && d->parent && *d->parent && !strcmp(code_last_name(d->parent), holder))
            return d;
    }
    return NULL;
}

static bool is_member(const code_definition *d, const char *holder)
{
    return d->parent && *d->parent && !strcmp(code_last_name(d->parent), holder) && d->body_to > d->body_from;
}

/* The same text but for white space. */
static bool is_same_member(
    const base_buf *a, const code_definition *x, const base_buf *b, const code_definition *y)
{
    size_t i = x->from, k = y->from;
    for (;;) {
        while (i < x->to && i < a->len && tool__is_space(a->data[i])) i++;
        while (k < y->to && k < b->len && tool__is_space(b->data[k])) k++;
        const bool ends_i = i >= x->to || i >= a->len, ends_k = k >= y->to || k >= b->len;
        if (ends_i || ends_k) return ends_i && ends_k;
        if (a->data[i++] != b->data[k++]) return false;
    }
}

/*
 * A whole type written again with a new member and without most of its old ones was never meant to delete
 * those: the new members are added. true: it is so.
 */
static bool is_partial_type(tool_workspace *w, const tool_call *call, const code_file *f,
    const base_buf *text, uint32_t at, tool_aim *ret)
{
    const code_definition *old = &f->definitions[at];
    if (!tool__is_holder(f->language, old) || asks_for(call->request, deleting)) return false;
    base_buf clean = {0};
    tool__normalise_block(&clean, call->payload.ptr, call->payload.len);
    code_file *b = code_parse(w->grammars, ret->path, clean.data ? clean.data : "", clean.len);
    uint32_t lost = 0, fresh = 0, n_other = 0;
    /* The last member that the block has in another text; where none differs, the first one. */
    const code_definition *other = NULL;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        const code_definition *new = is_member(d, old->name) ? member_of(b, old->name, d->name) : NULL;
        lost += is_member(d, old->name) && !new;
        if (!new) continue;
        if (!other) other = new;
        if (is_same_member(text, d, &clean, new)) continue;
        n_other++;
        other = new;
    }
    for (uint32_t i = 0; i < b->n_definitions; i++)
        fresh += is_member(&b->definitions[i], old->name) && !member_of(f, old->name, b->definitions[i].name);
    bool is_so = lost && fresh;
    if (is_so) {
        for (size_t i = 0; i < ret->n; i++) free(ret->names[i]);
        ret->n = 0;
        for (uint32_t i = 0; i < b->n_definitions; i++) {
            const code_definition *d = &b->definitions[i];
            if (is_member(d, old->name) && !member_of(f, old->name, d->name))
                add_name(ret, old->name, d->name);
        }
        base_buf_printf(&ret->note, "The other members of %.100s stay as they are. ", old->name);
        ret->kind = TOOL_AIM_ADD;
    } else if (lost && other && n_other < 2) {
        base_buf whole = {0};
        base_buf_printf(&whole, "%s.%s", old->name, other->name);
        base_buf_printf(&ret->note, "The other members of %.100s stay as they are. ", old->name);
        set_name(ret, whole.data);
        base_buf_free(&whole);
    }
    code_file_free(b);
    base_buf_free(&clean);
    return is_so;
}

/*
 * Another file of the package has what the block defines: `defined`, or, where that is the definition `old` as it stands,
 * something beside it. That one is meant: a model that saw a wrapper only writes what it calls beside it.
 */
static bool aim_at_twin(tool_workspace *w, const tool_call *call, const base_buf *text, const char *defined,
    const code_definition *old, tool_aim *ret)
{
    base_buf clean = {0};
    tool_twin twin = {0};
    tool__normalise_block(&clean, call->payload.ptr, call->payload.len);
    if (!clean.data) base_buf_puts(&clean, "");
    code_file *b = code_parse(w->grammars, ret->path, clean.data, clean.len);
    const code_definition *meant = NULL;
    const bool has_old = old && !strcmp(old->name, defined);
    bool is_changed = false, is_found = false;
    for (uint32_t i = 0; i < b->n_definitions; i++) {
        const code_definition *d = &b->definitions[i];
        const bool is_it = !strcmp(d->name, defined);
        is_changed |= has_old && is_it && !is_same_member(text, old, &clean, d);
        if (is_found || is_it == has_old) continue;
        is_found = tool__find_twin(w, ret->path, text, &clean, d, &twin);
        if (is_found) meant = d;
    }
    if (is_found && !is_changed) {
        base_buf_add(&ret->block, clean.data + meant->from, meant->to - meant->from);
        move_to(ret, twin.path, twin.name);
        set_name(ret, twin.name);
        ret->kind = TOOL_AIM_REWRITE;
    }
    code_file_free(b);
    base_buf_free(&clean);
    tool__twin_free(&twin);
    return is_found && !is_changed;
}

/* The file has the name: is it what the block defines? */
static void aim_at_present(tool_workspace *w, const tool_call *call, const code_file *f, const base_buf *text,
    const char *name, uint32_t at, tool_aim *ret)
{
    char *defined = tool__block_name(w->grammars, ret->path, call->payload, name, NULL);
    const char *type = f->definitions[at].name;
    if (defined && !asks_for(call->request, moving) &&
        aim_at_twin(w, call, text, defined, &f->definitions[at], ret)) {
        /* another file's */
    } else if (!defined || !strcmp(defined, code_last_name(name))) {
        if (defined) is_partial_type(w, call, f, text, at, ret);
    } else if (tool__is_holder(f->language, &f->definitions[at]) && member_of(f, type, defined)) {
        base_buf whole = {0}; /* the type was named, and one of its members written */
        base_buf_printf(&whole, "%s.%s", type, defined);
        set_name(ret, whole.data);
        base_buf_free(&whole);
    } else if (!asks_for(call->request, moving) && !code_index_is_defined(w->index, defined)) {
        const char *holder = f->definitions[at].parent;
        bool is_part = false;
        free(defined);
        defined = tool__block_name(w->grammars, ret->path, call->payload, name, &is_part);
        base_buf whole = {0};
        if (is_part && holder && *holder) base_buf_printf(&whole, "%s.", code_last_name(holder));
        base_buf_puts(&whole, defined);
        set_name(ret, whole.data);
        base_buf_free(&whole);
        base_buf_printf(&ret->note, "%.100s stays as it is. ", name);
        ret->kind = TOOL_AIM_ADD;
    }
    free(defined);
}

static bool has_holder(const code_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (!strcmp(f->definitions[i].name, name) && tool__is_holder(f->language, &f->definitions[i]))
            return true;
    return false;
}

/* Does the tree have a type of that name? */
static bool is_type(const tool_workspace *w, const char *name)
{
    static const char *const kinds[] = {"class", "interface", "struct", "enum", "trait", "object", "union"};
    code_place *places = NULL;
    const uint32_t n = code_index_define(w->index, name, &places);
    bool is = false;
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) is |= !strcmp(places[i].what, kinds[k]);
    code_places_free(places, n);
    return is;
}

/* "Stack.pop", where the file's only pop is a queue's: that one is not what is meant. */
static bool is_of_another_type(const tool_workspace *w, const code_file *f, const char *name, uint32_t at)
{
    char *holder = tool__name_holder(name);
    const char *parent = f->definitions[at].parent;
    const bool is_so =
        holder && parent && *parent && strcmp(code_last_name(parent), holder) != 0 && is_type(w, holder);
    free(holder);
    return is_so;
}

/*
 * "module.exports = function quote(xs) {": the file has quote, under the name by which others get it. The block says it as a function,
 * or as it stands. false: the file hands out nothing of that name.
 */
static bool aim_at_handed_out(
    const tool_call *call, const code_file *f, const base_buf *text, const char *name, tool_aim *ret)
{
    static const char before[] = "module.exports = ", function[] = "function ";
    const size_t n_before = sizeof before - 1, n_function = sizeof function - 1, n = strlen(name);
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        const char *s = text->data + d->from;
        if (d->to > text->len || d->to - d->from < n_before + n_function + n + 1 ||
            memcmp(s, before, n_before) || memcmp(s + n_before, function, n_function) ||
            memcmp(s + n_before + n_function, name, n) || !strchr("( ", s[n_before + n_function + n]))
            continue;
        base_buf clean = {0};
        tool__normalise_block(&clean, call->payload.ptr, call->payload.len);
        if (clean.data && !strncmp(clean.data, function, n_function)) {
            while (clean.len && strchr("\n;", clean.data[clean.len - 1])) clean.len--;
            base_buf_printf(&ret->block, "%s%.*s;\n", before, (int)clean.len, clean.data);
        }
        base_buf_free(&clean);
        set_name(ret, d->name);
        ret->kind = TOOL_AIM_REWRITE;
        return true;
    }
    return false;
}

/* The file has not. */
static void aim_at_absent(tool_workspace *w, const tool_call *call, const code_file *f, const base_buf *text,
    const char *name, tool_aim *ret)
{
    if (aim_at_handed_out(call, f, text, name, ret)) return;
    char *holder = tool__name_holder(name);
    char *defined = tool__block_name(w->grammars, ret->path, call->payload, name, NULL);
    uint32_t at;
    ret->kind = TOOL_AIM_ADD;
    char *elsewhere = NULL;
    if (defined && strcmp(defined, code_last_name(name)) != 0 &&
        code_find_definition(f, defined, &at, 1) == 1) {
        /* The block is the new text of something that the file does have. */
        set_name(ret, defined);
        base_buf_printf(&ret->note, "The block defines %.100s. ", defined);
        ret->kind = TOOL_AIM_REWRITE;
    } else if (is_prototype_for_header(ret->path, defined, call->payload)) {
        /* it is added there */
    } else if (defined && !asks_for(call->request, moving) &&
               aim_at_twin(w, call, text, defined, NULL, ret)) {
        /* the package has it: a second one compiles nowhere */
    } else if (!asks_for(call->request, adding) && (elsewhere = only_file(w, name, ret->path, false))) {
        move_to(ret, elsewhere, name);
        ret->kind = TOOL_AIM_REWRITE;
    } else if (holder && !has_holder(f, holder) && (elsewhere = only_file(w, holder, ret->path, true))) {
        move_to(ret, elsewhere, holder);
    } else if ((elsewhere = source_of_header(w, ret->path))) {
        move_to(ret, elsewhere, "What has a body");
        if (defined && stands_in(w, elsewhere, defined)) ret->kind = TOOL_AIM_REWRITE; /* no second one */
    }
    free(elsewhere);
    free(holder);
    free(defined);
}

void tool__aim(tool_workspace *w, const tool_call *call, const char *path, const char *name, tool_aim *ret)
{
    *ret = (tool_aim){.kind = TOOL_AIM_REWRITE, .path = base_xstrdup(path)};
    char *own_name = NULL;
    if (!is_there(w, path)) {
        char *known = known_path(w, path);
        if (known) move_to(ret, known, path);
        if (!known && call->payload.ptr) ret->kind = TOOL_AIM_CREATE;
        free(known);
    }
    if (!name && call->payload.ptr)
        name = own_name = tool__block_name(w->grammars, ret->path, call->payload, "", NULL);
    if (name) set_name(ret, name);
    tool_file f = {0};
    if (name && call->payload.ptr && ret->kind != TOOL_AIM_CREATE &&
        !tool__file_read(&w->root, ret->path, TOOL_MAX_FILE, &f, NULL) &&
        !tool__is_binary(f.text.data, f.text.len)) {
        uint32_t at;
        code_file *c = code_parse(w->grammars, ret->path, f.text.data ? f.text.data : "", f.text.len);
        char *plain = base_xstrdup(name), *colon = strrchr(plain, ':');
        if (colon && colon > plain && colon[-1] != ':' &&
            strspn(colon + 1, "0123456789") == strlen(colon + 1))
            *colon = '\0'; /* "name:120" says which of several */
        /* In another letter case it is another name, unless the block says otherwise. */
        char *defined = tool__block_name(w->grammars, ret->path, call->payload, plain, NULL);
        bool is_present = code_find_definition(c, plain, &at, 1) > 0;
        if (is_present && strcmp(c->definitions[at].name, code_last_name(plain)) != 0)
            is_present = defined && !strcmp(defined, c->definitions[at].name);
        free(defined);
        is_present = is_present && !is_of_another_type(w, c, plain, at);
        if (is_present)
            aim_at_present(w, call, c, &f.text, plain, at, ret);
        else
            aim_at_absent(w, call, c, &f.text, plain, ret);
        free(plain);
        code_file_free(c);
    }
    tool__file_free(&f);
    free(own_name);
}
