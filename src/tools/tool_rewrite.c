/*
 * rewrite {path, name, from?, to?} + block: one whole definition becomes another (replace.c), or lines of it do (within.c). What was
 * never shown is not rewritten: the refusal carries the definition's current text, so that the next call can be right. A
 * definition that is not there is added where it belongs (add_change.c), a file that is not there is made.
 */
#include "tools/edit/overload.h"
#include "tools/edit/add_change.h"
#include "tools/edit/aim.h"
#include "tools/edit/assigned_const.h"
#include "tools/edit/bound.h"
#include "tools/edit/change.h"
#include "tools/edit/comments.h"
#include "tools/edit/elide.h"
#include "tools/edit/fields.h"
#include "tools/edit/fixtures.h"
#include "tools/edit/head.h"
#include "tools/edit/import_used.h"
#include "tools/edit/keep_comments.h"
#include "tools/edit/new_imports.h"
#include "tools/edit/prototype.h"
#include "tools/edit/refused.h"
#include "tools/edit/replace.h"
#include "tools/edit/within.h"
#include "tools/file/safe_path.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/tree/workspace.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

extern const tool_entry tool__write;

/* One definition of a file becomes another. */
typedef struct rewriting {
    tool_workspace *w;
    const tool_call *call;
    const char *path, *name;
    tool_file file;      /* as it is */
    tool_replaced new;   /* as it is to be; its note: what was done besides */
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
        shown = tool__change_is_shown(r->w, r->path, f, from, to, next.data, r->result);
    }
    code_file_free(c);
    base_buf_free(&why);
    base_buf_free(&next);
    return shown;
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

/* Does the request want less than there is? Without a request anything may be wanted. */
static bool asks_for_less(const char *request)
{
    static const char *const words[] = {"remov", "delet", "drop", "simpl", "short", "refactor", "replac",
        "rewrit", "split", "extract", "mov", "inline", "clean", "instead", "rid of", "use "};
    bool is_asked = !request;
    for (size_t i = 0; i < sizeof words / sizeof *words && !is_asked; i++)
        is_asked = strcasestr(request, words[i]) != NULL;
    return is_asked;
}

/*
 * Asked for a small change, a small model at times writes another function in its place: more than half of a long
 * definition (n_lines now) is gone, and the request says nothing of that. How many lines it had; 0: that is not so.
 */
static uint32_t lost_most(
    const base_buf *old_text, const base_buf *new_text, uint32_t n_lines, const char *request)
{
    enum { LONG = 12 };
    const int64_t n_before = (int64_t)n_lines + count_lines(old_text) - count_lines(new_text);
    return !asks_for_less(request) && n_before >= LONG && n_before > 2 * (int64_t)n_lines ? (uint32_t)n_before
                                                                                          : 0;
}

/* Where the definition stands now that lines were put above it or into it, or taken back. */
static void find_lines(rewriting *r)
{
    base_buf why = {0};
    uint32_t at;
    code_file *c = tool__parse_for(r->w->grammars, r->path, r->new.text.data, r->new.text.len, r->name);
    if (tool__find_definition(c, r->path, &r->new.text, r->name, &at, &why)) {
        r->new.line = c->definitions[at].line;
        r->new.line_end = c->definitions[at].line_end;
    }
    code_file_free(c);
    base_buf_free(&why);
}

/* Comments and blank lines that the block left out between lines that stay. */
static void keep_comments(rewriting *r)
{
    const base_buf *old = &r->file.text;
    base_buf why = {0}, lines = {0}, text = {0};
    uint32_t at;
    code_file *c = tool__parse_for(r->w->grammars, r->path, old->data, old->len, r->name);
    const bool is_found = tool__find_definition(c, r->path, old, r->name, &at, &why);
    const code_definition *d = is_found ? &c->definitions[at] : NULL;
    const tool_lines before = {old->data, old->len, d ? d->line : 1, d ? d->line_end : 0};
    const tool_lines now = {r->new.text.data, r->new.text.len, r->new.line, r->new.line_end};
    if (d && tool__keep_comments(r->path, &before, &now, r->call->request, &lines)) {
        const size_t from = tool__line_start(now.text, now.n, now.from),
                     to = tool__line_start(now.text, now.n, now.to + 1);
        base_buf_add(&text, now.text, from);
        tool__line_ends(&text, lines.data, lines.len, tool__text_style(now.text, now.n).crlf);
        base_buf_add(&text, now.text + to, now.n - to);
        if (tool__syntax_holds(r->w->grammars, r->path, old, &text, &why)) {
            base_buf_free(&r->new.text);
            r->new.text = text;
            text = (base_buf){0};
            base_buf_puts(&r->new.note, "Comments between lines that stay were put back. ");
        }
    }
    code_file_free(c);
    base_buf_free(&why);
    base_buf_free(&lines);
    base_buf_free(&text);
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
            r->w->grammars, r->path, &r->file.text, r->name, r->call->payload, &r->new.text, why))
        return false;
    find_lines(r);
    base_buf_puts(&r->new.note, "Its comments were taken: the code stays as it was. ");
    return true;
}

/* false: the result says why. */
static bool replace_definition(rewriting *r)
{
    base_buf filled = {0}, why = {0};
    const base_str whole = fill_block(r, &filled);
    const bool is_replaced = tool__asks_for_comments_alone(r->call->request)
                                 ? replace_comments(r, &why)
                                 : tool__replace_definition(r->w->grammars, r->path, &r->file.text, r->name,
                                       whole.ptr ? whole : r->call->payload, &r->new, &why);
    if (!is_replaced) tool__say(r->result, TOOL_FAILED, "%s", why.data);
    if (is_replaced && whole.ptr) base_buf_puts(&r->new.note, "What the block left out stays as it was. ");
    base_buf_free(&filled);
    base_buf_free(&why);
    return is_replaced;
}

/* Does the new text do something, and nothing that was not asked for? false: the result says what. */
static bool is_a_change(const rewriting *r)
{
    const char *request = r->call->request;
    const uint32_t n_lines = r->new.line_end - r->new.line + 1,
                   n_before = lost_most(&r->file.text, &r->new.text, n_lines, request);
    if (!asks_for_words(request) && is_same_program(r->path, &r->file.text, &r->new.text))
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
        return tool__is_written_out(r->w, request, r->path, &r->file.text, &r->new.text, r->name, r->result);
    return false;
}

/* The change and its words; takes the new text. */
static void put_rewrite(rewriting *r, const base_buf *remark, tool_preview *ret)
{
    base_buf head = {0}, say = {0};
    tool_change *also = followed_prototype(r->w, r->path, &r->file.text, &r->new.text, r->name);
    if (also) {
        base_buf_puts(&r->new.note, "Its prototype follows in ");
        tool__path_show(&r->new.note, also->path);
        base_buf_puts(&r->new.note, ". ");
    } else {
        also = tool__give_fields(r->w, r->path, &r->new.text, r->name, &r->new.note);
        find_lines(r);
    }
    base_buf_printf(&head, "rewrite %s in ", r->name);
    tool__path_show(&head, r->path);
    base_buf_printf(&say, "%srewrote %s in ", remark->len ? remark->data : "", r->name);
    tool__path_show(&say, r->path);
    base_buf_printf(&say, ", now lines %u-%u.%s%s\n", r->new.line, r->new.line_end,
        r->new.note.len ? " " : "", r->new.note.len ? r->new.note.data : "");
    tool_change *change = tool__change_new(r->path, &r->file, &r->new.text, &say);
    change->also = also;
    tool__change_preview(&r->w->root, change, head.data, ret);
    base_buf_free(&head);
    r->new.text = (base_buf){0};
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
        overload = tool__name_overload(c, path, old, name, call->payload);
        if (overload) r.name = overload;
        code_file_free(c);
    }
    is_good = is_good && is_shown(&r);
    tool__file_part_mark(&r.file);
    if (is_good && !call->payload.ptr) {
        tool__say(result, TOOL_FAILED,
            "The fenced block with the new text of %s is missing. Nothing was changed. Next: the same call, "
            "then the whole new definition between ``` lines.\n",
            r.name);
        is_good = false;
    }
    is_good = is_good && replace_definition(&r) && tool__is_only_one(w, path, old, &r.new.text, result);
    if (is_good) {
        tool__settle_imports(w, path, old, &r.new.text, &r.new.note);
        tool__keep_head(w->grammars, path, old, &r.new.text, r.name, call->request);
        tool__keep_order(w->grammars, path, old, &r.new.text, r.name, call->request, &r.new.note);
        find_lines(&r);
        tool__comment_as_file(path, old, &r.new.text);
        tool__let_assigned(path, old, &r.new.text, &r.new.note);
        keep_comments(&r);
        find_lines(&r);
        is_good = is_a_change(&r);
    }
    if (is_good) {
        tool__import_used(w, path, call->payload, old, &r.new.text, &r.new.note);
        tool__give_fixtures(w, path, &r.new.text, r.name, &r.new.note);
        const tool_bound bound = {.path = path, .old_text = old, .request = call->request};
        is_good = tool__bind(w, &bound, &r.new.text, &r.new.note, result) &&
                  tool__is_unmerged(path, &r.new.text, result);
    }
    if (is_good) {
        find_lines(&r);
        put_rewrite(&r, remark, ret);
    }
    tool__file_free(&r.file);
    free(overload);
    tool__replaced_free(&r.new);
    return BASE_OK;
}

/* Of a call that gives lines ("from", "to") the definition whole, with the block in their place; empty: the result says why. */
static void take_lines(tool_workspace *w, const tool_call *call, const char *path, size_t from, base_buf *ret,
    tool_result *result)
{
    const char *name = tool__string(call, "name");
    const size_t to = (size_t)tool__integer(call, "to", (int64_t)from, 0, UINT32_MAX);
    tool_file f = {0};
    base_buf why = {0};
    uint32_t at = 0;
    if (!tool__open_for_change(w, path, "rewrite", &f, result)) return;
    code_file *c = tool__parse_for(w->grammars, path, f.text.data, f.text.len, name);
    if (!tool__find_definition(c, path, &f.text, name, &at, &why))
        tool__say(result, TOOL_FAILED, "%s", why.data);
    else if (!tool__replace_within(
                 &f.text, &c->definitions[at], from, to, call->payload, asks_for_less(call->request), ret))
        tool__say(result, TOOL_FAILED,
            "Lines %zu-%zu are not in %s, which has %u-%u. Nothing was changed. Next: the same call with lines of "
            "it.\n",
            from, to, name, c->definitions[at].line, c->definitions[at].line_end);
    code_file_free(c);
    tool__file_free(&f);
    base_buf_free(&why);
}

static int prepare(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *ret,
    tool_result *result, base_err *err)
{
    char *path = NULL;
    tool_aim aim = {0};
    base_buf whole = {0};
    tool_call with_lines = *call;
    result->exit_code = -1;
    if (!tool__want_path(w, call, "rewrite", &path, result)) return BASE_OK;
    const size_t from = (size_t)tool__integer(call, "from", 0, 0, UINT32_MAX);
    const bool has_lines = from && !call->is_whole && call->payload.ptr && tool__string(call, "name");
    if (has_lines) {
        take_lines(w, call, path, from, &whole, result);
        with_lines.payload = (base_str){whole.data, whole.len};
        call = &with_lines;
    }
    if (has_lines && !whole.len) {
        free(path);
        return BASE_OK;
    }
    tool__aim(w, call, path, tool__string(call, "name"), &aim);
    int rc = BASE_OK;
    if (aim.kind == TOOL_AIM_CREATE) {
        rc = tool__write.prepare(w, call, limits, ret, result, err);
    } else if (!aim.n) {
        base_buf_puts(&result->text, "rewrite needs the name of the definition. Next: rewrite {\"path\": ");
        tool__quote(&result->text, aim.path);
        tool__say(result, TOOL_FAILED, ", \"name\": \"...\"}\n");
    } else if (aim.kind == TOOL_AIM_ADD) {
        tool__add_change(w, call, &aim, ret, result);
    } else {
        tool_call meant = *call;
        if (aim.block.len) meant.payload = (base_str){aim.block.data, aim.block.len};
        rc = prepare_rewrite(w, &meant, aim.path, aim.names[0], &aim.note, ret, result);
    }
    tool__aim_free(&aim);
    base_buf_free(&whole);
    free(path);
    return rc;
}

static const tool_argument arguments[] = {
    {"path", TOOL_ARGUMENT_PATH, true, "file", NULL, TOOL_FOR_ALL},
    {"name", TOOL_ARGUMENT_STRING, true, "function, Class.method or type", NULL, TOOL_FOR_ALL},
    /* The program begins such a call where a definition is too long to be written again; no small model counts lines. */
    {"from", TOOL_ARGUMENT_INTEGER, false, "first line of it to replace", NULL, TOOL_FOR_STRONG},
    {"to", TOOL_ARGUMENT_INTEGER, false, "last line of it to replace", NULL, TOOL_FOR_STRONG},
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
