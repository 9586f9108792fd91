/*
 * signature: a parameter is added, removed or moved, in the definition, its prototypes and every call.
 */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/result/result.h"

enum { MAX_LISTED = 12, MAX_ITEMS = 64 };

typedef enum change_kind { ADD, REMOVE, ORDER } change_kind;

typedef struct change {
    change_kind kind;
    const char *parameter, *value; /* ADD: as it is declared, and what callers give */
    size_t at;                     /* ADD, REMOVE: 0-based among those that a caller sees */
    size_t order[MAX_ITEMS], n; /* ORDER: the new order of the old places; n: parameters that a caller sees */
    size_t done_in;             /* ORDER: the file and byte up to which calls are ordered */
    uint32_t done_to;
    char name[128]; /* the parameter's name */
} change;

typedef struct list {
    uint32_t from, to;
    code_item *items;
    uint32_t n;
} list;

static bool read_list(const refactor *x, const refactor_place *p, list *ret)
{
    const refactor_file *f = &x->files[p->file];
    *ret = (list){0};
    return code_items(x->w->grammars, f->path, f->file.text.data, f->file.text.len,
        p->use->from + (uint32_t)strlen(x->name), &ret->from, &ret->to, &ret->items, &ret->n);
}

static bool item_says(const base_buf *text, code_item item, const char *word)
{
    const size_t n = strlen(word);
    return item.to - item.from == n && !memcmp(text->data + item.from, word, n);
}

/* The last identifier before a type or a default: the name that a parameter declares. */
static void parameter_name(const char *language, const char *s, size_t n, char ret[128])
{
    size_t pos = 0, a, b, from = 0, to = 0;
    const size_t end = strcspn(s, "=") < n ? strcspn(s, "=") : n;
    const bool is_first =
        strcmp(language, "c") != 0 && strcmp(language, "cpp") != 0 && strcmp(language, "java") != 0;
    while (code_next_identifier(s, end, &pos, &a, &b)) {
        from = a;
        to = b;
        if (is_first) break;
    }
    if (to - from > 127) to = from + 127;
    memcpy(ret, s + from, to - from);
    ret[to - from] = '\0';
}

/* self and cls are no caller's. */
static size_t hidden(const base_buf *text, const list *l)
{
    if (!l->n) return 0;
    static const char *const selves[] = {"self", "cls", "&self", "&mut self", "mut self", "this"};
    for (size_t i = 0; i < sizeof selves / sizeof *selves; i++)
        if (item_says(text, l->items[0], selves[i])) return 1;
    return 0;
}

static void insert_item(
    const base_buf *text, const list *l, size_t at, const char *item, refactor_edits *edits)
{
    base_buf s = {0};
    const bool is_void = l->n == 1 && item_says(text, l->items[0], "void");
    if (!l->n || is_void) {
        refactor__edit(edits, l->from, l->to, item);
    } else if (at < l->n) {
        base_buf_printf(&s, "%s, ", item);
        refactor__edit(edits, l->items[at].from, l->items[at].from, s.data);
    } else {
        base_buf_printf(&s, ", %s", item);
        refactor__edit(edits, l->items[l->n - 1].to, l->items[l->n - 1].to, s.data);
    }
    base_buf_free(&s);
}

static void remove_item(
    const refactor_file *f, const list *l, size_t at, bool is_definition, refactor_edits *edits)
{
    if (l->n == 1)
        refactor__edit(edits, l->from, l->to, is_definition && !strcmp(f->family, "c") ? "void" : "");
    else if (at + 1 < l->n)
        refactor__edit(edits, l->items[at].from, l->items[at + 1].from, "");
    else
        refactor__edit(edits, l->items[at - 1].to, l->items[at].to, "");
}

/* Bytes [from, to) with the arguments of every call in them in their new order, calls inside calls too. */
static void put_ordered(
    const refactor *x, size_t file, const change *c, uint32_t from, uint32_t to, base_buf *out)
{
    const base_buf *text = &x->files[file].file.text;
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        list l;
        if (p->file != file || p->verdict != REFACTOR_SURE || p->use->from < from || p->use->from >= to)
            continue;
        if (!p->use->is_call || p->use->definition != UINT32_MAX || !read_list(x, p, &l)) continue;
        if (l.n >= c->n && l.n && l.to <= to) {
            base_buf_add(out, text->data + from, l.items[0].from - from);
            for (size_t k = 0; k < c->n; k++) {
                const code_item item = l.items[c->order[k]];
                base_buf_puts(out, k ? ", " : "");
                put_ordered(x, file, c, item.from, item.to, out);
            }
            from = l.items[c->n - 1].to;
        }
        free(l.items);
    }
    if (to > from) base_buf_add(out, text->data + from, to - from);
}

static bool is_name_byte(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
           (unsigned char)c >= 0x80;
}

/* Of "(n, b float64, s string)" as Go writes it: "n float64", "b float64", "s string"; returns how many. */
static size_t expand_go(const refactor_file *f, const list *l, base_buf *ret)
{
    size_t n = 0;
    const char *text = f->file.text.data;
    for (size_t i = 0; i < l->n && !strcmp(f->uses->file->language, "go"); i++) {
        const char *at = text + l->items[i].from, *end = text + l->items[i].to, *last = at;
        while (last < end && is_name_byte(*last)) last++;
        const char *type = last;
        while (type < end && *type == ',') {
            type++;
            while (type < end && *type == ' ') type++;
            while (type < end && is_name_byte(*type)) type++;
        }
        const bool is_group = type < end && *type == ' '; /* names and commas, then a type */
        while (is_group && at < type && n < MAX_ITEMS) {
            const char *to = at;
            while (is_name_byte(*to)) to++;
            base_buf_printf(&ret[n++], "%.*s%.*s", (int)(to - at), at, (int)(end - type), type);
            at = to + strspn(to, ", ");
        }
        if (!is_group && n < MAX_ITEMS) base_buf_add(&ret[n++], at, (size_t)(end - at));
    }
    return n;
}

/* Go's groups of parameters, each with its own type behind it in the new order. false: this is none. */
static bool reorder_go(
    const refactor *x, const refactor_place *p, const list *l, change *c, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    base_buf items[MAX_ITEMS] = {{0}}, s = {0};
    const size_t n = p->use->definition == UINT32_MAX ? 0 : expand_go(f, l, items);
    const bool is_group = n > l->n && n == c->n;
    for (size_t i = 0; is_group && i < n; i++)
        base_buf_printf(&s, "%s%s", i ? ", " : "", items[c->order[i]].data);
    if (is_group) refactor__edit(edits, l->items[0].from, l->items[l->n - 1].to, s.data);
    for (size_t i = 0; i < n; i++) base_buf_free(&items[i]);
    base_buf_free(&s);
    return is_group;
}

static void reorder(
    const refactor *x, const refactor_place *p, const list *l, size_t first, change *c, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    base_buf s = {0};
    if (reorder_go(x, p, l, c, edits)) return;
    if (l->n < first + c->n || c->n == 0) return;
    if (c->done_in == p->file && p->use->from < c->done_to) return; /* inside a call that was ordered */
    for (size_t i = 0; i < c->n; i++) {
        const code_item item = l->items[first + c->order[i]];
        base_buf_puts(&s, i ? ", " : "");
        if (p->use->definition == UINT32_MAX)
            put_ordered(x, p->file, c, item.from, item.to, &s);
        else
            base_buf_add(&s, f->file.text.data + item.from, item.to - item.from);
    }
    refactor__edit(edits, l->items[first].from, l->items[first + c->n - 1].to, s.data ? s.data : "");
    c->done_in = p->file;
    c->done_to = l->items[first + c->n - 1].to;
    base_buf_free(&s);
}

/* "name=" of a call's argument. */
static size_t keyword_at(const base_buf *text, const list *l, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < l->n && n; i++) {
        const char *s = text->data + l->items[i].from;
        if (l->items[i].to - l->items[i].from > n && !memcmp(s, name, n) && (s[n] == '=' || s[n] == ' ') &&
            s[n + 1] != '=')
            return i;
    }
    return SIZE_MAX;
}

static bool has_spread(const base_buf *text, const list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *s = text->data + l->items[i].from;
        const size_t n = l->items[i].to - l->items[i].from;
        if ((*s == '*' && n > 1) || (n > 3 && (!memcmp(s, "...", 3) || !memcmp(s + n - 3, "...", 3))))
            return true;
    }
    return false;
}

static size_t first_keyword(const base_buf *text, const list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *s = text->data + l->items[i].from;
        size_t pos = 0, a, b;
        const size_t n = l->items[i].to - l->items[i].from;
        if (!code_next_identifier(s, n, &pos, &a, &b) || a != 0) continue;
        while (b < n && s[b] == ' ') b++;
        if (b + 1 < n && s[b] == '=' && s[b + 1] != '=') return i;
    }
    return l->n;
}

/* false: this call cannot be changed for certain. */
static bool edit_call(const refactor *x, const refactor_place *p, change *c, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    const base_buf *text = &f->file.text;
    const bool is_python = !strcmp(f->uses->file->language, "python");
    list l;
    if (!p->use->is_call || !read_list(x, p, &l)) return false;
    size_t skip = 0;
    /* Cls.method(object, ...) */
    if (is_python && x->target.is_member && p->use->object_kind == CODE_OBJECT_NAMED && x->target.parent &&
        !strcmp(p->use->object, x->target.parent))
        skip = 1;
    /* A spread in the middle hides which argument is which. */
    const size_t before = is_python ? first_keyword(text, &l) : l.n;
    bool is_good = !has_spread(text, &l);
    if (is_good && c->kind == ADD) {
        base_buf named = {0};
        if (is_python && skip + c->at > before) {
            base_buf_printf(&named, "%s=%s", c->name, c->value);
            insert_item(text, &l, l.n, named.data, edits);
        } else if (is_python && skip + c->at == before && before < l.n) {
            insert_item(text, &l, before, c->value, edits);
        } else if (skip + c->at > l.n) {
            is_good = false; /* fewer arguments than the parameters before it */
        } else {
            insert_item(text, &l, skip + c->at, c->value, edits);
        }
        base_buf_free(&named);
    } else if (is_good && c->kind == REMOVE) {
        const size_t keyword = is_python ? keyword_at(text, &l, c->name) : SIZE_MAX;
        if (keyword != SIZE_MAX)
            remove_item(f, &l, keyword, false, edits);
        else if (skip + c->at < before)
            remove_item(f, &l, skip + c->at, false, edits);
    } else if (is_good) {
        if (before >= skip + c->n)
            reorder(x, p, &l, skip, c, edits);
        else if (before > skip)
            is_good = false;
    }
    free(l.items);
    return is_good;
}

static bool edit_definition(const refactor *x, const refactor_place *p, change *c, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    const base_buf *text = &f->file.text;
    list l;
    if (!read_list(x, p, &l)) return false;
    const size_t first = hidden(text, &l);
    bool is_good = true;
    if (c->kind == ADD)
        insert_item(text, &l, first + c->at, c->parameter, edits);
    else if (c->kind == REMOVE && first + c->at < l.n)
        remove_item(f, &l, first + c->at, true, edits);
    else if (c->kind == ORDER)
        reorder(x, p, &l, first, c, edits);
    else
        is_good = false;
    free(l.items);
    return is_good;
}

/* Is the parameter used in the body? Its line, or 0. */
static uint32_t used_at(const refactor *x, const char *name)
{
    const refactor_file *f = x->target.in;
    const code_definition *d = x->target.definition;
    code_uses *u = code_uses_find(x->w->grammars, f->path, f->file.text.data, f->file.text.len, name);
    uint32_t line = 0;
    for (uint32_t i = 0; u && i < u->n_uses && !line; i++) {
        const code_use *use = &u->uses[i];
        if (use->from < d->body_from || use->from >= d->body_to) continue;
        if (use->role == CODE_USE_NAME && use->binding != UINT32_MAX && use->binding < d->body_from)
            line = use->line;
    }
    code_uses_free(u);
    return line;
}

static size_t count_go(const refactor_file *f, const list *l)
{
    base_buf items[MAX_ITEMS] = {{0}};
    const size_t n = expand_go(f, l, items);
    for (size_t i = 0; i < n; i++) base_buf_free(&items[i]);
    return n;
}

/* What the request says, against the parameters that there are. */
static bool read_change(refactor *x, const refactor_request *q, const refactor_place *own, change *c)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    const char *language = f->uses->file->language;
    list l;
    *c = (change){.parameter = q->parameter, .value = q->value, .done_in = SIZE_MAX};
    if (!q->parameter || !read_list(x, own, &l)) {
        tool__say(x->result, TOOL_FAILED,
            "signature needs \"parameter\": one to add as it is declared, the name of one to remove, or "
            "their new order "
            "(2,1). Nothing was changed.\n");
        return false;
    }
    const size_t first = hidden(text, &l);
    const bool is_void = l.n == 1 && item_says(text, l.items[0], "void");
    c->n = is_void ? 0 : l.n - first;
    if (!strcmp(language, "go")) c->n = count_go(f, &l);
    size_t found = SIZE_MAX, n_order = 0;
    bool is_good = true;
    parameter_name(language, q->parameter, strlen(q->parameter), c->name);
    for (size_t i = first; i < l.n && !is_void; i++) {
        char name[128];
        parameter_name(language, text->data + l.items[i].from, l.items[i].to - l.items[i].from, name);
        if (!strcmp(name, c->name)) found = i - first;
    }
    if (strspn(q->parameter, "0123456789, ") == strlen(q->parameter)) {
        bool seen[MAX_ITEMS] = {0};
        c->kind = ORDER;
        for (const char *p = q->parameter; *p && n_order < MAX_ITEMS; p += strcspn(p, "0123456789")) {
            char *end;
            const unsigned long k = strtoul(p, &end, 10);
            p = end;
            if (k < 1 || k > c->n || k > MAX_ITEMS || seen[k - 1]) is_good = false;
            if (is_good) seen[k - 1] = true;
            c->order[n_order++] = k - 1;
            if (!*p) break;
        }
        is_good = is_good && n_order == c->n && n_order > 1;
        if (!is_good)
            tool__say(x->result, TOOL_REFUSED, "\"%s\" is no order of %zu parameters. Nothing was changed.\n",
                q->parameter, c->n);
    } else if (found != SIZE_MAX && !q->value) {
        c->kind = REMOVE;
        c->at = found;
        const uint32_t line = used_at(x, c->name);
        if (line) {
            tool__say(x->result, TOOL_REFUSED,
                "%s:%u still uses %s. Nothing was changed. Next: rewrite %s without it first.\n", f->path,
                line, c->name, x->name);
            is_good = false;
        }
    } else if (found != SIZE_MAX) {
        tool__say(x->result, TOOL_REFUSED, "%s has a parameter %s already. Nothing was changed.\n", x->name,
            c->name);
        is_good = false;
    } else {
        c->at = q->at > 0 && (size_t)q->at <= c->n ? (size_t)q->at - 1 : c->n;
        if (!q->value) {
            tool__say(x->result, TOOL_FAILED,
                "signature needs \"value\" as well: what the callers give for %s. Nothing was changed.\n",
                c->name);
            is_good = false;
        } else if (*refactor__why_no_name(language, c->name)) {
            tool__say(x->result, TOOL_REFUSED,
                "\"%s\" declares no parameter in %s: %s. Nothing was changed.\n", q->parameter, language,
                refactor__why_no_name(language, c->name));
            is_good = false;
        }
    }
    free(l.items);
    return is_good;
}

bool refactor__signature(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
    static const char *const did[] = {"added %s to", "removed %s from", "ordered the parameters (%s) of"};
    static const char *const does[] = {"add %s to", "remove %s from", "order the parameters (%s) of"};
    const refactor_target *t = &x->target;
    change c;
    if (!t->is_function || !t->definition) {
        tool__say(x->result, TOOL_REFUSED, "%s is no function. Nothing was changed.\n", x->name);
        return false;
    }
    if (!refactor__resolve(x)) return false;
    const refactor_place *own = NULL;
    for (size_t i = 0; i < x->n_places; i++)
        if (&x->files[x->places[i].file] == t->in && x->places[i].use->from == t->name_from)
            own = &x->places[i];
    if (!own || !read_change(x, q, own, &c)) return false;
    refactor_edits *edits = base_xcalloc(x->n_files + 1, sizeof *edits);
    base_buf left = {0}, say = {0};
    size_t n_left = 0, n_calls = 0;
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        const code_use *u = p->use;
        bool is_done = p->verdict == REFACTOR_SURE;
        if (is_done && (u->import != UINT32_MAX || u->is_exported || u->role == CODE_USE_STRING)) continue;
        if (is_done && u->definition != UINT32_MAX)
            is_done = edit_definition(x, p, &c, &edits[p->file]);
        else if (is_done && (is_done = edit_call(x, p, &c, &edits[p->file])))
            n_calls++;
        if (is_done || n_left++ >= MAX_LISTED) continue;
        base_buf_puts(&left, n_left == 1 ? "Left, look at them: " : ", ");
        tool__path_show(&left, x->files[p->file].path);
        base_buf_printf(&left, ":%u", u->line);
    }
    for (size_t i = 0; i < x->n_files; i++) {
        base_buf text = {0};
        if (edits[i].n) {
            refactor__edits_apply(&edits[i], &x->files[i].file.text, &text);
            tool__changes_add(ret, x->files[i].path, &x->files[i].file, &text);
        }
        refactor__edits_free(&edits[i]);
    }
    free(edits);
    if (n_left) base_buf_printf(&left, "%s.\n", n_left > MAX_LISTED ? ", ..." : "");
    base_buf words = {0};
    base_buf_puts(&words, c.kind == ORDER ? q->parameter : c.name);
    char *verb = base_xstrdup(did[c.kind]), *head = base_xstrdup(does[c.kind]);
    char *mark = strstr(verb, "%s"), *head_mark = strstr(head, "%s");
    *mark = *head_mark = '\0';
    base_buf_printf(&say, "%s%s%s %s: %zu call%s in %zu file%s.\n%s", verb, words.data, mark + 2, x->name,
        n_calls, n_calls == 1 ? "" : "s", ret->n, ret->n == 1 ? "" : "s", left.len ? left.data : "");
    base_buf_printf(headline, "%s%s%s %s, %zu call%s", head, words.data, head_mark + 2, x->name, n_calls,
        n_calls == 1 ? "" : "s");
    if (n_left) base_buf_printf(headline, ", %zu place%s left", n_left, n_left == 1 ? "" : "s");
    ret->say = base_buf_take(&say);
    if (left.len) ret->notice = base_buf_take(&left);
    base_buf_free(&left);
    base_buf_free(&words);
    free(verb);
    free(head);
    return true;
}
