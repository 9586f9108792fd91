/* The change that an addition is, over all files that it touches (contract: add_change.h). */
#include "tools/edit/add_change.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/edit/add.h"
#include "tools/edit/bound.h"
#include "tools/edit/change.h"
#include "tools/edit/definition.h"
#include "tools/edit/exports.h"
#include "tools/edit/fields.h"
#include "tools/edit/fixtures.h"
#include "tools/edit/import_used.h"
#include "tools/edit/naming.h"
#include "tools/edit/newcomer.h"
#include "tools/edit/prototype.h"
#include "tools/edit/refused.h"
#include "tools/edit/register.h"
#include "tools/edit/replace.h"
#include "tools/file/safe_path.h"
#include "tools/file/text.h"
#include "tools/result/result.h"

/* Definitions on their way into a file. */
typedef struct adding {
    tool_workspace *w;
    const tool_call *call;
    const tool_aim *aim;
    tool_file file;       /* as it is */
    base_buf text;        /* as it is to be */
    base_buf places;      /* "NAME (lines A-B, behind NEIGHBOUR), ..." */
    base_buf notes;       /* what was done besides, in words */
    tool_change *also;    /* another file that changes with it; NULL: none */
    const char *also_for; /* what of it goes there; NULL: the notes say so */
    tool_result *result;  /* where refusals go */
} adding;

/* The header's change, where a header declares that neighbour; NULL: none does, or it has the name already. */
static tool_change *prototype_beside(
    tool_workspace *w, const char *neighbour, const char *like, const char *name, const char *signature)
{
    code_place *places = NULL;
    uint32_t n_places = code_index_define(w->index, neighbour, &places);
    tool_change *ret = NULL;
    for (uint32_t i = 0; i < n_places && !ret; i++) {
        tool_file f = {0};
        base_buf text = {0}, say = {0};
        const char *ending = strrchr(places[i].path, '.');
        if (!places[i].is_declaration || !ending || !strchr("hH", ending[1]) ||
            tool__file_read(&w->root, places[i].path, TOOL_MAX_FILE, &f, NULL))
            continue;
        if (f.st.st_nlink == 1 && tool__add_prototype(w->grammars, places[i].path, &f.text, neighbour, like,
                                      name, signature, &text)) {
            ret = tool__change_new(places[i].path, &f, &text, &say);
            text = (base_buf){0};
        }
        base_buf_free(&text);
        tool__file_free(&f);
    }
    code_places_free(places, n_places);
    return ret;
}

/*
 * The header's part of a new function of C or C++: behind that of its nearest neighbour that is not static, where a header has it; where
 * the request asks for it, behind that of the nearest function of the file that has one. NULL: none has, or it is the file's own.
 */
static tool_change *prototype_change(tool_workspace *w, const char *path, const base_buf *old_text,
    const tool_addition *added, const char *name, const char *request)
{
    const char *language = code_language(path, "", 0), *dot = strrchr(name, '.'), *colon = strrchr(name, ':');
    const bool is_c = language && (!strcmp(language, "c") || !strcmp(language, "cpp"));
    if (!is_c || !added->behind || !added->signature || !strncmp(added->signature, "static ", 7)) return NULL;
    if (dot || colon) name = (colon > dot ? colon : dot) + 1;
    code_file *f = code_parse(w->grammars, path, old_text->data ? old_text->data : "", old_text->len);
    const int64_t n = f->n_definitions;
    const bool is_asked = tool__asks_for_prototype(request);
    bool is_met = false; /* a neighbour that others may call */
    tool_change *ret = NULL;
    int64_t behind = 0;
    for (int64_t i = 0; i < n; i++)
        if (!strcmp(f->definitions[i].name, added->behind)) behind = i;
    for (int64_t far = 0; far <= n && !ret && (is_asked || !is_met); far++)
        for (int side = 0; side < 2 && !ret; side++) {
            const int64_t i = side ? behind + far : behind - far;
            base_buf like = {0};
            if (i >= 0 && i < n) tool__put_signature(old_text->data, &f->definitions[i], &like);
            const bool is_open = like.len && strncmp(like.data, "static ", 7) != 0;
            is_met |= is_open;
            if (is_open) ret = prototype_beside(w, f->definitions[i].name, like.data, name, added->signature);
            base_buf_free(&like);
        }
    code_file_free(f);
    return ret;
}

/* Can another file have it? A definition at column 0 that in Rust and in scripts says so itself, or that a list of its own file has. */
static bool is_for_others(
    const char *language, const base_buf *text, const tool_addition *added, bool is_listed)
{
    const char *line = text->data + tool__line_start(text->data, text->len, added->line);
    const bool is_public = !strncmp(line, "pub ", 4) || !strncmp(line, "export ", 7) ||
                           (added->signature && !strncmp(added->signature, "pub ", 4));
    return is_listed || is_public || !strcmp(language, "python");
}

static bool is_at_column_0(const base_buf *text, const tool_addition *added)
{
    const char c = text->data[tool__line_start(text->data, text->len, added->line)];
    return c && !tool__is_space(c);
}

/*
 * What hands out the new definition's neighbour, where that is kin, hands it out too: lists in its own file (new_text), and in its
 * folder's own file (returned; NULL: it has none, or not the neighbour). Where the request asks for an export the file's last one
 * is neighbour enough.
 */
static tool_change *export_change(tool_workspace *w, const char *path, const tool_addition *added,
    const char *name, const char *request, base_buf *new_text)
{
    const char *language = code_language(path, "", 0), *file = base_path_name(path);
    char *holder = tool__name_holder(name), *module = base_xstrndup(file, strcspn(file, "."));
    const bool can =
        language && !holder && *name != '_' && !code_path_is_test(path) && is_at_column_0(new_text, added);
    const bool may = can && added->behind && added->is_kin, asks = request && strcasestr(request, "export");
    /* Python: a file that says all that it hands out says its neighbours' names, whatever they have in common. */
    const bool is_told = can && added->behind && (added->is_kin || !strcmp(language, "python"));
    const bool is_listed = (is_told && tool__export_name(language, new_text, NULL, added->behind, name)) ||
                           (can && asks && tool__export_last(language, new_text, name));
    const bool goes_out = may && is_for_others(language, new_text, added, is_listed);
    tool_change *ret = NULL;
    for (const char *const *f = tool__export_files(language); goes_out && *f && !ret; f++) {
        tool_file package = {0};
        base_buf at = {0}, text = {0}, say = {0}, why = {0};
        base_buf_printf(&at, "%.*s%s", (int)(file - path), path, *f);
        if (strcmp(at.data, path) && !tool__file_read(&w->root, at.data, TOOL_MAX_FILE, &package, NULL)) {
            base_buf_add(&text, package.text.data, package.text.len);
            if (package.st.st_nlink == 1 && tool__export_name(language, &text, module, added->behind, name) &&
                tool__syntax_holds(w->grammars, at.data, &package.text, &text, &why)) {
                ret = tool__change_new(at.data, &package, &text, &say);
                text = (base_buf){0};
            }
        }
        base_buf_free(&at);
        base_buf_free(&text);
        base_buf_free(&why);
        tool__file_free(&package);
    }
    free(holder);
    free(module);
    return ret;
}

/* A new test of C runs where the one that it stands behind does. */
static void run_test_too(
    const char *path, const tool_addition *added, const char *name, base_buf *new_text, base_buf *notes)
{
    const char *language = code_language(path, "", 0);
    const bool is_c = language && (!strcmp(language, "c") || !strcmp(language, "cpp"));
    if (!is_c || !added->behind || !tool__register_test(new_text, added->behind, name)) return;
    base_buf_printf(notes, "%s runs behind %s. ", name, added->behind);
    tool__declare_test(new_text, added->behind, name);
}

/* The text's structs, or another file's, get the fields that the new method sets. The method may have moved down by that. */
static void give_fields(adding *a, const char *name, tool_addition *added)
{
    base_buf why = {0};
    uint32_t at;
    a->also = tool__give_fields(a->w, a->aim->path, &a->text, name, &a->notes);
    code_file *f = tool__parse_for(a->w->grammars, a->aim->path, a->text.data, a->text.len, name);
    if (tool__find_definition(f, a->aim->path, &a->text, name, &at, &why)) {
        const uint32_t line = f->definitions[at].line;
        added->line_end += line - added->line;
        added->line = line;
    }
    code_file_free(f);
    base_buf_free(&why);
}

/* The grammar of Python takes `def class():`, which Python does not. false: the result says so. */
static bool is_good_name(const adding *a, const char *name)
{
    const char *language = code_language(a->aim->path, "", 0), *dot = strrchr(name, '.');
    const char *last = dot ? dot + 1 : name;
    const char *why = language && !strcmp(language, "python") ? tool__why_no_name(language, last, false) : "";
    if (*why)
        tool__say(a->result, TOOL_FAILED, "\"%s\" cannot be a name in %s: %s. Nothing was changed.\n", last,
            language, why);
    return !*why;
}

/* The names[i] of the aim goes into the text; false: the result says why it cannot. */
static bool add_one(adding *a, size_t i)
{
    const tool_aim *aim = a->aim;
    const char *request = a->call->request;
    tool_addition added = {0};
    base_buf why = {0};
    if (!is_good_name(a, aim->names[i])) return false;
    const bool is_good = tool__add_definition(a->w->grammars, aim->path, i ? &a->text : &a->file.text,
        aim->names[i], a->call->payload, request, &added, &why);
    if (!is_good) {
        tool__say(a->result, TOOL_FAILED, "%s", why.data);
    } else {
        base_buf_free(&a->text);
        a->text = added.text;
        added.text = (base_buf){0};
        if (!a->also) give_fields(a, aim->names[i], &added);
        base_buf_printf(&a->places, "%s%s (lines %u-%u%s%s)", i ? ", " : "", aim->names[i], added.line,
            added.line_end, added.behind ? ", behind " : "", added.behind ? added.behind : "");
        if (added.note.len) base_buf_add(&a->notes, added.note.data, added.note.len);
        run_test_too(aim->path, &added, aim->names[i], &a->text, &a->notes);
        if (aim->n == 1 && !a->also) {
            a->also = prototype_change(a->w, aim->path, &a->file.text, &added, aim->names[0], request);
            a->also_for = "its prototype";
        }
        if (aim->n == 1 && !a->also) {
            a->also = export_change(a->w, aim->path, &added, aim->names[0], request, &a->text);
            a->also_for = "its name, as its neighbour's,";
        }
    }
    tool__addition_free(&added);
    base_buf_free(&why);
    return is_good;
}

/* What the new definitions use is imported, their names mean what the tree has; false: the result says what is not so. */
static bool complete(adding *a)
{
    const tool_aim *aim = a->aim;
    const base_buf *old = &a->file.text;
    bool is_good = tool__is_only_one(a->w, aim->path, old, &a->text, a->result);
    for (size_t i = 0; is_good && i < aim->n; i++)
        is_good =
            tool__is_written_out(a->w, a->call->request, aim->path, old, &a->text, aim->names[i], a->result);
    if (!is_good) return false;
    tool__import_used(a->w, aim->path, a->call->payload, old, &a->text, &a->notes);
    for (size_t i = 0; i < aim->n; i++)
        tool__give_fixtures(a->w, aim->path, &a->text, aim->names[i], &a->notes);
    const tool_bound bound = {aim->path, old, a->call->request, aim->names, aim->n};
    return tool__bind(a->w, &bound, &a->text, &a->notes, a->result);
}

/* The change and its words; takes the new text and the other file's change. */
static void put_addition(adding *a, tool_preview *ret)
{
    const tool_aim *aim = a->aim;
    base_buf head = {0}, say = {0};
    base_buf_puts(&head, "add ");
    for (size_t i = 0; i < aim->n; i++) base_buf_printf(&head, "%s%s", i ? ", " : "", aim->names[i]);
    base_buf_puts(&head, " to ");
    tool__path_show(&head, aim->path);
    base_buf_printf(&say, "%sadded %s to ", aim->note.len ? aim->note.data : "", a->places.data);
    tool__path_show(&say, aim->path);
    if (a->also && a->also_for) {
        base_buf_printf(&say, " and %s to ", a->also_for);
        tool__path_show(&say, a->also->path);
    }
    base_buf_printf(&say, ".%s%s\n", a->notes.len ? " " : "", a->notes.len ? a->notes.data : "");
    tool_change *change = tool__change_new(aim->path, &a->file, &a->text, &say);
    change->also = a->also;
    a->also = NULL;
    a->text = (base_buf){0};
    tool__change_preview(&a->w->root, change, head.data, ret);
    base_buf_free(&head);
}

void tool__add_change(
    tool_workspace *w, const tool_call *call, const tool_aim *aim, tool_preview *ret, tool_result *result)
{
    adding a = {.w = w, .call = call, .aim = aim, .result = result};
    bool is_good = tool__open_for_change(w, aim->path, "rewrite", &a.file, result) &&
                   tool__is_unmerged(aim->path, &a.file.text, result);
    tool__file_part_mark(&a.file);
    for (size_t i = 0; is_good && i < aim->n; i++) is_good = add_one(&a, i);
    if (is_good && complete(&a)) put_addition(&a, ret);
    if (a.also) tool__change_free(a.also);
    tool__file_free(&a.file);
    base_buf_free(&a.text);
    base_buf_free(&a.places);
    base_buf_free(&a.notes);
}
