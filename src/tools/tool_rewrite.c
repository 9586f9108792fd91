/*
 * rewrite {path, name} + block: one whole definition becomes another (replace.c). What was never shown is not
 * rewritten: the refusal carries the definition's current text, so that the next call can be right. A
 * definition that is not there is added where it belongs (add.c) and exported as its neighbour is (exports.c), a test of C run
 * where its neighbour is (register.c), a file
 * that is not there is made.
 */
#include "tools/edit/add.h"
#include "tools/edit/aim.h"
#include "tools/edit/bound.h"
#include "tools/edit/change.h"
#include "tools/edit/comments.h"
#include "tools/edit/elide.h"
#include "tools/edit/exports.h"
#include "tools/edit/fixtures.h"
#include "tools/edit/head.h"
#include "tools/edit/import_lines.h"
#include "tools/edit/imports.h"
#include "tools/edit/newcomer.h"
#include "tools/edit/prototype.h"
#include "tools/edit/register.h"
#include "tools/edit/replace.h"
#include "tools/edit/twin.h"
#include "tools/file/safe_path.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/tree/workspace.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/path.h"

extern const tool_entry tool__write;

/* One definition of a file becomes another. */
typedef struct rewriting {
    tool_workspace *w;
    const tool_call *call;
    const char *path, *name;
    tool_file file; /* as it is */
    base_buf text;  /* as it is to be */
    base_buf note;  /* what was done besides, in words */
    uint32_t line, line_end;
    tool_result *result; /* where refusals go */
} rewriting;

static bool is_shown(const rewriting *r)
{
    const tool_file *f = &r->file;
    base_buf why = {0}, next = {0};
    uint32_t at;
    bool shown = false;
    code_file *c = tool__parse_for(r->w->grammars, r->path, f->text.data, f->text.len, r->name);
    if (!tool__find_definition(c, r->path, &f->text, r->name, &at, &why)) {
        tool__say(r->result, TOOL_FAILED, "%s", why.data);
    } else {
        const code_definition *d = &c->definitions[at];
        size_t from = d->from, to = d->to < f->text.len ? d->to : f->text.len;
        while (from && f->text.data[from - 1] != '\n') from--;
        if (to - from > 6000) to = from + 6000;
        base_buf_puts(&next, "rewrite {\"path\": ");
        tool__quote(&next, r->path);
        base_buf_puts(&next, ", \"name\": ");
        tool__quote(&next, r->name);
        base_buf_puts(&next, "} with this text corrected, whole, in the fenced block");
        shown = tool__change_is_shown(
            r->w, r->path, f, r->result, f->text.data + from, to - from, from, d->line, next.data);
    }
    code_file_free(c);
    base_buf_free(&why);
    base_buf_free(&next);
    return shown;
}

/* Where tests take a name of this file of Python from: its package where that hands the name out, else its module; with dots. */
static char *module_of_tree(tool_workspace *w, const char *path, const char *name)
{
    enum { MAX_FILE = 1 << 20 };
    char *folder = base_path_folder(path);
    base_buf init = {0}, text = {0};
    base_buf_printf(&init, "%s%s__init__.py", folder, *folder ? "/" : "");
    const bool is_handed_out = !tool_workspace_read(w, init.data, MAX_FILE, &text, NULL) && text.len &&
                               code_has_identifier(text.data, text.len, name);
    char *module = tool__dotted_module(is_handed_out ? init.data : path);
    base_buf_free(&init);
    base_buf_free(&text);
    free(folder);
    return module;
}

/*
 * Names that the block uses, that the file never wrote and that one module of the tree defines: imported where
 * the file takes others from that module or its package, and into a file of tests in any case.
 */
static void import_names(tool_workspace *w, const char *path, base_str block, const base_buf *old_text,
    base_buf *text, base_buf *say)
{
    const char *language = code_language(path, "", 0);
    size_t pos = 0, from, to;
    tool__import_standard(language, block, old_text, text, say);
    const bool is_python = language && !strcmp(language, "python"),
               is_rust_test = language && !strcmp(language, "rust") && !strncmp(path, "tests/", 6);
    while ((is_python || is_rust_test) && code_next_identifier(block.ptr, block.len, &pos, &from, &to)) {
        if (from && block.ptr[from - 1] == '.') continue;
        char *name = base_xstrndup(block.ptr + from, to - from);
        const bool is_known = code_has_identifier(old_text->data, old_text->len, name);
        code_place *places = NULL;
        uint32_t n = is_known ? 0 : code_index_define(w->index, name, &places);
        const code_place *only = NULL;
        bool one = true;
        for (uint32_t i = 0; i < n; i++) {
            if (*places[i].parent || places[i].is_declaration || code_path_is_test(places[i].path) ||
                !strcmp(base_path_name(places[i].path), "conftest.py")) /* pytest hands its fixtures out */
                continue;
            one = one && !only;
            only = &places[i];
        }
        if (only && one && is_rust_test) {
            if (!strcmp(only->path, "src/lib.rs") && tool__import_of_crate(text, name))
                base_buf_printf(say, "Imported %s. ", name);
        } else if (only && one) {
            char *module = tool__module_name(only->path), *dotted = module_of_tree(w, only->path, name);
            const char *from_module = tool__import_name(text, module, name) ? module : NULL;
            if (!from_module && (tool__import_name(text, code_last_name(dotted), name) ||
                                    (code_path_is_test(path) && tool__import_from(text, dotted, name))))
                from_module = dotted;
            if (from_module) base_buf_printf(say, "Imported %s from %s. ", name, from_module);
            free(module);
            free(dotted);
        }
        code_places_free(places, n);
        free(name);
    }
}

/* The block whole: where it says "the rest as before", the rest stands. NULL ptr: it is whole as it is. */
static base_str fill_block(const rewriting *r, base_buf *filled)
{
    const tool_file *f = &r->file;
    const base_str block = r->call->payload;
    base_buf clean = {0}, why = {0};
    uint32_t at;
    bool is_filled = false;
    code_file *c = tool__parse_for(r->w->grammars, r->path, f->text.data, f->text.len, r->name);
    if (tool__find_definition(c, r->path, &f->text, r->name, &at, &why)) {
        size_t from = c->definitions[at].from, to = c->definitions[at].to;
        if (to > f->text.len) to = f->text.len;
        while (from && (f->text.data[from - 1] == ' ' || f->text.data[from - 1] == '\t')) from--;
        tool__normalise_block(&clean, block.ptr, block.len);
        is_filled = tool__fill_elision(
            f->text.data + from, to - from, clean.data ? clean.data : "", clean.len, filled);
    }
    code_file_free(c);
    base_buf_free(&clean);
    base_buf_free(&why);
    return is_filled ? (base_str){filled->data, filled->len} : (base_str){0};
}

static bool asks_for_words(const char *request)
{
    static const char *const words[] = {"comment", "doc", "format", "indent", "space", "style", "typo",
        "spell", "layout", "tab", "tidy", "reword", "semicolon"};
    for (size_t i = 0; request && i < sizeof words / sizeof *words; i++)
        if (strcasestr(request, words[i])) return true;
    return false;
}

/* White space, and in scripts a semicolon that ends a line: there one more says nothing. */
static bool says_nothing(const char *text, size_t n, size_t at, bool is_script)
{
    return strchr(" \t\r\n", text[at]) ||
           (is_script && text[at] == ';' && (at + 1 == n || strchr("\r\n", text[at + 1])));
}

/* Do two texts of a program say the same to its compiler? Python's columns count, others' do not. */
static bool is_same_program(const char *path, const base_buf *a, const base_buf *b)
{
    const char *language = code_language(path, a->data, a->len);
    if (!language || !a->data || !b->data) return false;
    const bool has_columns = !strcmp(language, "python") || !strcmp(language, "yaml");
    const bool is_script = !strcmp(language, "javascript") || !strcmp(language, "typescript");
    char *x = code_blank_comments(language, a->data, a->len),
         *y = code_blank_comments(language, b->data, b->len);
    size_t i = 0, k = 0;
    bool is_same = true;
    for (;;) {
        const size_t line_i = i;
        while (i < a->len && says_nothing(x, a->len, i, is_script)) i++;
        while (k < b->len && says_nothing(y, b->len, k, is_script)) k++;
        const bool ends = i == a->len || k == b->len;
        if (has_columns && !ends && memchr(x + line_i, '\n', i - line_i))
            is_same = i - tool__line_begin(x, i) == k - tool__line_begin(y, k);
        if (ends || !is_same || x[i] != y[k]) break;
        i++;
        k++;
    }
    is_same = is_same && i == a->len && k == b->len;
    free(x);
    free(y);
    return is_same;
}

static uint32_t count_lines(const base_buf *text)
{
    uint32_t n = 0;
    for (size_t i = 0; i < text->len; i++) n += text->data[i] == '\n';
    return n;
}

/*
 * Asked for a small change, a small model at times writes another function in its place: more than half of a long
 * definition (n_lines now) is gone, and the request says nothing of that. How many lines it had; 0: that is not so.
 */
static uint32_t lost_most(
    const base_buf *old_text, const base_buf *new_text, uint32_t n_lines, const char *request)
{
    enum { LONG = 12 };
    static const char *const words[] = {"remov", "delet", "drop", "simpl", "short", "refactor", "replac",
        "rewrit", "split", "extract", "mov", "inline", "clean", "instead", "rid of", "use "};
    const int64_t n_before = (int64_t)n_lines + count_lines(old_text) - count_lines(new_text);
    bool is_asked = !request;
    for (size_t i = 0; i < sizeof words / sizeof *words && !is_asked; i++)
        is_asked = strcasestr(request, words[i]) != NULL;
    return !is_asked && n_before >= LONG && n_before > 2 * (int64_t)n_lines ? (uint32_t)n_before : 0;
}

/* A new definition beside one of the same name in the package: refused, with the call that was meant. */
static bool is_only_one(tool_workspace *w, const char *path, const base_buf *old_text,
    const base_buf *new_text, tool_result *result)
{
    tool_twin twin = {0};
    if (!tool__find_new_twin(w, path, old_text, new_text, &twin)) return true;
    base_buf_printf(&result->text, "The block defines %.100s, which stands in ", twin.name);
    tool__path_show(&result->text, twin.path);
    base_buf_printf(&result->text,
        ":%u already: two of one name do not build. Nothing was changed. Next: rewrite {\"path\": ",
        twin.line);
    tool__quote(&result->text, twin.path);
    base_buf_puts(&result->text, ", \"name\": ");
    tool__quote(&result->text, twin.name);
    tool__say(result, TOOL_FAILED, "} with that one's whole new text, or this call without it.\n");
    tool__twin_free(&twin);
    return false;
}

/* Where the definition stands now that lines were put above it or into it, or taken back. */
static void find_lines(rewriting *r)
{
    base_buf why = {0};
    uint32_t at;
    code_file *c = tool__parse_for(r->w->grammars, r->path, r->text.data, r->text.len, r->name);
    if (tool__find_definition(c, r->path, &r->text, r->name, &at, &why)) {
        r->line = c->definitions[at].line;
        r->line_end = c->definitions[at].line_end;
    }
    code_file_free(c);
    base_buf_free(&why);
}

/* The signature of the file's only function of that name; nothing: it has none, or several. */
static void put_only_signature(
    tool_workspace *w, const char *path, const base_buf *text, const char *name, base_buf *out)
{
    code_file *c = code_parse(w->grammars, path, text->data ? text->data : "", text->len);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_definitions; i++) {
        const code_definition *d = &c->definitions[i];
        if (strcmp(d->name, name) != 0 || d->is_declaration || d->body_to <= d->body_from) continue;
        if (!n++) tool__put_signature(text->data, d, out);
    }
    if (n != 1) base_buf_clear(out);
    code_file_free(c);
}

/* C: the function's signature is another one now, so its header's prototype is too. NULL: it is the same, or no header has one. */
static tool_change *followed_prototype(
    tool_workspace *w, const char *path, const base_buf *old_text, const base_buf *new_text, const char *name)
{
    const char *language = code_language(path, "", 0);
    base_buf old = {0}, new = {0};
    tool_change *ret = NULL;
    code_place *places = NULL;
    if (!language || (strcmp(language, "c") != 0 && strcmp(language, "cpp") != 0)) return NULL;
    put_only_signature(w, path, old_text, name, &old);
    put_only_signature(w, path, new_text, name, &new);
    const bool is_other =
        old.len && new.len &&strcmp(old.data, new.data) != 0 && strncmp(new.data, "static ", 7) != 0;
    const uint32_t n = is_other ? code_index_define(w->index, name, &places) : 0;
    for (uint32_t i = 0; i < n && !ret; i++) {
        tool_file f = {0};
        base_buf text = {0}, say = {0};
        const char *ending = strrchr(places[i].path, '.');
        if (!places[i].is_declaration || !strcmp(places[i].path, path) || !ending ||
            !strchr("hH", ending[1]) || tool__file_read(&w->root, places[i].path, TOOL_MAX_FILE, &f, NULL))
            continue;
        if (f.st.st_nlink == 1 &&
            tool__follow_prototype(w->grammars, places[i].path, &f.text, name, old.data, new.data, &text)) {
            ret = tool__change_new(places[i].path, &f, &text, &say);
            text = (base_buf){0};
        }
        base_buf_free(&text);
        tool__file_free(&f);
    }
    code_places_free(places, n);
    base_buf_free(&old);
    base_buf_free(&new);
    return ret;
}

/* Asked for comments alone: those of the block, and the code as it is. */
static bool replace_comments(rewriting *r, base_buf *why)
{
    if (!tool__take_comments(
            r->w->grammars, r->path, &r->file.text, r->name, r->call->payload, &r->text, why))
        return false;
    find_lines(r);
    base_buf_puts(&r->note, "Its comments were taken: the code stays as it was. ");
    return true;
}

/*
 * "// Your implementation here" and nothing else: has the function no code in its body, and a comment? A class that is a docstring
 * alone is one (an exception).
 */
static bool is_stub(tool_workspace *w, const char *path, const base_buf *text, const char *name)
{
    base_buf why = {0};
    uint32_t at;
    bool is = false;
    if (!text->data) return false;
    code_file *c = tool__parse_for(w->grammars, path, text->data, text->len, name);
    if (tool__find_definition(c, path, text, name, &at, &why) && c->language) {
        const code_definition *d = &c->definitions[at];
        char *plain = code_blank_comments(c->language, text->data, text->len);
        uint32_t from = d->body_from, to = d->body_to;
        while (from < to && strchr("{ \t\r\n", plain[from])) from++;
        while (to > from && strchr("} \t\r\n", plain[to - 1])) to--;
        is = (!strcmp(d->what, "function") || !strcmp(d->what, "method")) && d->body_to > d->body_from &&
             from == to && !tool__is_blank(text->data, d->body_from + 1, d->body_to - 1);
        free(plain);
    }
    code_file_free(c);
    base_buf_free(&why);
    return is;
}

/* false: what would be written is a stub that nobody asked for; the result says so. */
static bool is_written_out(tool_workspace *w, const tool_call *call, const char *path,
    const base_buf *old_text, const base_buf *new_text, const char *name, tool_result *result)
{
    static const char *const words[] = {"stub", "empty", "nothing", "no-op", "noop", "placeholder"};
    bool is_asked = !call->request;
    for (size_t i = 0; i < sizeof words / sizeof *words && !is_asked; i++)
        is_asked = strcasestr(call->request, words[i]) != NULL;
    if (is_asked || !is_stub(w, path, new_text, name) || is_stub(w, path, old_text, name)) return true;
    tool__say(result, TOOL_FAILED,
        "The body of %s is a comment alone. Nothing was changed. Next: the same call with the code that does what "
        "is asked for.\n",
        name);
    return false;
}

/* false: the result says why. */
static bool replace_definition(rewriting *r)
{
    base_buf filled = {0}, why = {0};
    const base_str whole = fill_block(r, &filled);
    const bool is_replaced =
        tool__asks_for_comments_alone(r->call->request)
            ? replace_comments(r, &why)
            : tool__replace_definition(r->w->grammars, r->path, &r->file.text, r->name,
                  whole.ptr ? whole : r->call->payload, &r->text, &r->line, &r->line_end, &r->note, &why);
    if (!is_replaced) tool__say(r->result, TOOL_FAILED, "%s", why.data);
    if (is_replaced && whole.ptr) base_buf_puts(&r->note, "What the block left out stays as it was. ");
    base_buf_free(&filled);
    base_buf_free(&why);
    return is_replaced;
}

/* Does the new text do something, and nothing that was not asked for? false: the result says what. */
static bool is_a_change(const rewriting *r)
{
    const char *request = r->call->request;
    const uint32_t n_lines = r->line_end - r->line + 1,
                   n_before = lost_most(&r->file.text, &r->text, n_lines, request);
    if (!asks_for_words(request) && is_same_program(r->path, &r->file.text, &r->text))
        tool__say(r->result, TOOL_FAILED,
            "The new text of %s differs in comments and white space only: nothing was changed. Look for the "
            "line that has to change, then the same call with that line corrected.\n",
            r->name);
    else if (n_before)
        tool__say(r->result, TOOL_FAILED,
            "The new text of %s has %u lines of %u: the others are gone, and the request does not ask for "
            "that. Nothing was changed. Next: the same call with the whole definition as it is, but for the "
            "line that has to change.\n",
            r->name, n_lines, n_before);
    else
        return is_written_out(r->w, r->call, r->path, &r->file.text, &r->text, r->name, r->result);
    return false;
}

/* The change and its words; takes the new text. */
static void put_rewrite(rewriting *r, const base_buf *remark, tool_preview *ret)
{
    base_buf head = {0}, say = {0};
    tool_change *also = followed_prototype(r->w, r->path, &r->file.text, &r->text, r->name);
    if (also) {
        base_buf_puts(&r->note, "Its prototype follows in ");
        tool__path_show(&r->note, also->path);
        base_buf_puts(&r->note, ". ");
    }
    base_buf_printf(&head, "rewrite %s in ", r->name);
    tool__path_show(&head, r->path);
    base_buf_printf(&say, "%srewrote %s in ", remark->len ? remark->data : "", r->name);
    tool__path_show(&say, r->path);
    base_buf_printf(&say, ", now lines %u-%u.%s%s\n", r->line, r->line_end, r->note.len ? " " : "",
        r->note.len ? r->note.data : "");
    tool_change *change = tool__change_new(r->path, &r->file, &r->text, &say);
    change->also = also;
    tool__change_preview(&r->w->root, change, head.data, ret);
    base_buf_free(&head);
    r->text = (base_buf){0};
}

static int prepare_rewrite(tool_workspace *w, const tool_call *call, const char *path, const char *name,
    const base_buf *remark, tool_preview *ret, tool_result *result)
{
    rewriting r = {.w = w, .call = call, .path = path, .name = name, .result = result};
    char *overload = NULL;
    bool is_good = tool__open_for_change(w, path, "rewrite", &r.file, result);
    const base_buf *old = &r.file.text;
    if (is_good && call->payload.ptr) {
        code_file *c = tool__parse_for(w->grammars, path, old->data, old->len, name);
        overload = tool__name_overload(c, old, name, call->payload);
        if (overload) r.name = overload;
        code_file_free(c);
    }
    is_good = is_good && is_shown(&r);
    if (is_good && !call->payload.ptr) {
        tool__say(result, TOOL_FAILED,
            "The fenced block with the new text of %s is missing. Nothing was changed. Next: the same call, "
            "then the whole new definition between ``` lines.\n",
            r.name);
        is_good = false;
    }
    is_good = is_good && replace_definition(&r) && is_only_one(w, path, old, &r.text, result);
    if (is_good) {
        tool__keep_head(w->grammars, path, old, &r.text, r.name, call->request);
        find_lines(&r);
        is_good = is_a_change(&r);
    }
    if (is_good) {
        import_names(w, path, call->payload, old, &r.text, &r.note);
        tool__give_fixtures(w, path, &r.text, r.name, &r.note);
        is_good = tool__bind(w, path, old, &r.text, call->request, NULL, 0, &r.note, result);
    }
    if (is_good) {
        find_lines(&r);
        put_rewrite(&r, remark, ret);
    }
    tool__file_free(&r.file);
    free(overload);
    base_buf_free(&r.text);
    base_buf_free(&r.note);
    return BASE_OK;
}

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
 * The header's part of a new function of C or C++: behind that of its neighbour, where a header has it; where the request
 * asks for it, behind that of the nearest function of the file that has one. NULL: none has, or it is the file's own.
 */
static tool_change *prototype_change(tool_workspace *w, const char *path, const base_buf *old_text,
    const tool_addition *added, const char *name, const char *request)
{
    const char *language = code_language(path, "", 0), *dot = strrchr(name, '.'), *colon = strrchr(name, ':');
    const bool is_c = language && (!strcmp(language, "c") || !strcmp(language, "cpp"));
    if (!is_c || !added->behind || !added->signature || !strncmp(added->signature, "static ", 7)) return NULL;
    if (dot || colon) name = (colon > dot ? colon : dot) + 1;
    code_file *f = code_parse(w->grammars, path, old_text->data ? old_text->data : "", old_text->len);
    const int64_t n = f->n_definitions, most = tool__asks_for_prototype(request) ? n : 0;
    tool_change *ret = NULL;
    int64_t behind = 0;
    for (int64_t i = 0; i < n; i++)
        if (!strcmp(f->definitions[i].name, added->behind)) behind = i;
    for (int64_t far = 0; far <= most && !ret; far++)
        for (int side = 0; side < 2 && !ret; side++) {
            const int64_t i = side ? behind + far : behind - far;
            base_buf like = {0};
            if (i >= 0 && i < n) tool__put_signature(old_text->data, &f->definitions[i], &like);
            if (like.len && strncmp(like.data, "static ", 7) != 0)
                ret = prototype_beside(w, f->definitions[i].name, like.data, name, added->signature);
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
    const bool is_listed = (may && tool__export_name(language, new_text, NULL, added->behind, name)) ||
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
    if (is_c && added->behind && tool__register_test(new_text, added->behind, name))
        base_buf_printf(notes, "%s runs behind %s. ", name, added->behind);
}

/* What the tree lacks: a refusal that lists names would be no help to a model that wants a new one. */
static int prepare_addition(
    tool_workspace *w, const tool_call *call, const tool_aim *aim, tool_preview *ret, tool_result *result)
{
    tool_file f = {0};
    base_buf new_text = {0}, why = {0}, head = {0}, say = {0}, notes = {0};
    bool is_good = tool__open_for_change(w, aim->path, "rewrite", &f, result);
    tool_change *also = NULL;
    const char *what = " and its prototype to ";
    base_buf_puts(&head, "add ");
    base_buf_printf(&say, "%sadded ", aim->note.len ? aim->note.data : "");
    for (size_t i = 0; is_good && i < aim->n; i++) {
        tool_addition added = {0};
        is_good = tool__add_definition(w->grammars, aim->path, i ? &new_text : &f.text, aim->names[i],
            call->payload, call->request, &added, &why);
        if (!is_good) {
            tool__say(result, TOOL_FAILED, "%s", why.data);
        } else {
            base_buf_free(&new_text);
            new_text = added.text;
            added.text = (base_buf){0};
            base_buf_printf(&head, "%s%s", i ? ", " : "", aim->names[i]);
            base_buf_printf(&say, "%s%s (lines %u-%u%s%s)", i ? ", " : "", aim->names[i], added.line,
                added.line_end, added.behind ? ", behind " : "", added.behind ? added.behind : "");
            if (added.note.len) base_buf_add(&notes, added.note.data, added.note.len);
            run_test_too(aim->path, &added, aim->names[i], &new_text, &notes);
            if (aim->n == 1)
                also = prototype_change(w, aim->path, &f.text, &added, aim->names[0], call->request);
            if (aim->n == 1 && !also) {
                also = export_change(w, aim->path, &added, aim->names[0], call->request, &new_text);
                what = " and its name, as its neighbour's, to ";
            }
        }
        tool__addition_free(&added);
    }
    is_good = is_good && is_only_one(w, aim->path, &f.text, &new_text, result);
    for (size_t i = 0; is_good && i < aim->n; i++)
        is_good = is_written_out(w, call, aim->path, &f.text, &new_text, aim->names[i], result);
    if (is_good) import_names(w, aim->path, call->payload, &f.text, &new_text, &notes);
    for (size_t i = 0; is_good && i < aim->n; i++)
        tool__give_fixtures(w, aim->path, &new_text, aim->names[i], &notes);
    is_good = is_good &&
              tool__bind(w, aim->path, &f.text, &new_text, call->request, aim->names, aim->n, &notes, result);
    if (is_good) {
        base_buf_puts(&head, " to ");
        tool__path_show(&head, aim->path);
        base_buf_puts(&say, " to ");
        tool__path_show(&say, aim->path);
        if (also) {
            base_buf_puts(&say, what);
            tool__path_show(&say, also->path);
        }
        base_buf_printf(&say, ".%s%s\n", notes.len ? " " : "", notes.len ? notes.data : "");
        tool_change *change = tool__change_new(aim->path, &f, &new_text, &say);
        change->also = also;
        also = NULL;
        tool__change_preview(&w->root, change, head.data, ret);
        new_text = (base_buf){0};
    }
    if (also) tool__change_free(also);
    tool__file_free(&f);
    base_buf_free(&new_text);
    base_buf_free(&why);
    base_buf_free(&head);
    base_buf_free(&say);
    base_buf_free(&notes);
    return BASE_OK;
}

static int prepare(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *ret,
    tool_result *result, base_err *err)
{
    char *path = NULL;
    tool_aim aim = {0};
    result->exit_code = -1;
    if (!tool__want_path(w, call, "rewrite", &path, result)) return BASE_OK;
    tool__aim(w, call, path, tool__string(call, "name"), &aim);
    int rc = BASE_OK;
    if (aim.kind == TOOL_AIM_CREATE) {
        rc = tool__write.prepare(w, call, limits, ret, result, err);
    } else if (!aim.n) {
        base_buf_puts(&result->text, "rewrite needs the name of the definition. Next: rewrite {\"path\": ");
        tool__quote(&result->text, aim.path);
        tool__say(result, TOOL_FAILED, ", \"name\": \"...\"}\n");
    } else if (aim.kind == TOOL_AIM_ADD) {
        rc = prepare_addition(w, call, &aim, ret, result);
    } else {
        tool_call meant = *call;
        if (aim.block.len) meant.payload = (base_str){aim.block.data, aim.block.len};
        rc = prepare_rewrite(w, &meant, aim.path, aim.names[0], &aim.note, ret, result);
    }
    tool__aim_free(&aim);
    free(path);
    return rc;
}

static const tool_argument arguments[] = {
    {"path", TOOL_ARGUMENT_PATH, true, "file", NULL, TOOL_FOR_ALL},
    {"name", TOOL_ARGUMENT_STRING, true, "function, Class.method or type", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__rewrite = {
    .name = "rewrite",
    .power = TOOL_WRITES,
    .models = TOOL_FOR_SMALL,
    .about = "Replace one whole definition of a file; the whole new definition follows in a fenced block.",
    .arguments = arguments,
    .takes_payload = true,
    .prepare = prepare,
    .run = tool__change_run,
};
