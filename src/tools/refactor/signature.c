/*
 * signature: a parameter is added, removed, moved or made keyword-only, in the definition, its prototypes and every call.
 */
#include "tools/refactor/refactor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/edit/naming.h"
#include "tools/result/result.h"

enum { MAX_LISTED = 12 };

typedef enum change_kind { ADD, REMOVE, ORDER, BY_NAME } change_kind;

typedef struct change {
    change_kind kind;
    base_buf declared; /* ADD: as the definition has it; ORDER: a parameter's new default */
    /* ADD: what callers give, NULL: nothing; REMOVE: what the body has instead, NULL: it may not have it */
    char *value;
    const char *order_words; /* ORDER: as the request says it */
    /* 0-based among those that a caller sees; ORDER: which gets a default; BY_NAME: the first that only a name gives */
    size_t at;
    refactor_order order; /* ORDER */
    size_t n;             /* parameters that a caller sees */
    size_t done_in;       /* ORDER: the file and byte up to which calls are ordered */
    uint32_t done_to;
    char name[REFACTOR_NAME_BYTES]; /* the parameter's name */
    uint32_t n_inlined;             /* REMOVE: places of the body that had it */
    bool gives_other;               /* REMOVE: the call that was edited last gave another value */
} change;

static void change_free(change *c, bool is_read)
{
    if (!is_read) return;
    base_buf_free(&c->declared);
    free(c->value);
}

static void insert_item(
    const base_buf *text, const refactor_list *l, size_t at, const char *item, refactor_edits *edits)
{
    base_buf s = {0};
    const bool is_void = l->n == 1 && refactor__item_says(text, l->items[0], "void");
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
    const refactor_file *f, const refactor_list *l, size_t at, bool is_definition, refactor_edits *edits)
{
    if (l->n == 1)
        refactor__edit(
            edits, l->from, l->to, is_definition && f->language->family == REFACTOR_C ? "void" : "");
    else if (at + 1 < l->n)
        refactor__edit(edits, l->items[at].from, l->items[at + 1].from, "");
    else
        refactor__edit(edits, l->items[at - 1].to, l->items[at].to, "");
}

/* Go's groups of parameters, each with its own type behind it in the new order. false: this is none. */
static bool reorder_go(
    const refactor *x, const refactor_place *p, const refactor_list *l, change *c, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    base_buf items[REFACTOR_MAX_ITEMS] = {{0}}, s = {0};
    const bool is_go = f->language->family == REFACTOR_GO;
    const size_t n =
        is_go && p->use->definition != UINT32_MAX ? refactor__expand_go(f->file.text.data, l, items) : 0;
    const bool is_group = n > l->n && n == c->order.n;
    for (size_t i = 0; is_group && i < n; i++)
        base_buf_printf(&s, "%s%s", i ? ", " : "", items[c->order.order[i]].data);
    if (is_group) refactor__edit(edits, l->items[0].from, l->items[l->n - 1].to, s.data);
    for (size_t i = 0; i < n; i++) base_buf_free(&items[i]);
    base_buf_free(&s);
    return is_group;
}

/* A parameter that has a default now: as it stands, then "=" and the new one. */
static void put_with_default(const refactor_file *f, code_item item, const change *c, base_buf *out)
{
    const char *at = f->file.text.data + item.from;
    size_t n = item.to - item.from, skip;
    const char *old = refactor__default_of(at, n, &skip);
    if (old) n = (size_t)((const char *)memchr(at, '=', n) - at);
    while (n && at[n - 1] == ' ') n--;
    const bool is_typed = memchr(at, ':', n) != NULL || memchr(at, ' ', n) != NULL;
    base_buf_add(out, at, n);
    base_buf_printf(out, is_typed ? " = %s" : "=%s", c->declared.data);
}

/* The definition's or prototype's own list. */
static bool reorder(const refactor *x, const refactor_place *p, const refactor_list *l, size_t first,
    change *c, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    base_buf s = {0};
    if (reorder_go(x, p, l, c, edits)) return true;
    if (l->n < first + c->order.n || c->order.n == 0) return false;
    for (size_t i = 0; i < c->order.n; i++) {
        const code_item item = l->items[first + c->order.order[i]];
        const bool is_declared = c->declared.len && c->order.order[i] == c->at;
        base_buf_puts(&s, i ? ", " : "");
        if (is_declared)
            put_with_default(f, item, c, &s);
        else
            base_buf_add(&s, f->file.text.data + item.from, item.to - item.from);
    }
    refactor__edit(edits, l->items[first].from, l->items[first + c->order.n - 1].to, s.data ? s.data : "");
    base_buf_free(&s);
    return true;
}

/* One call; what it gives for others may hold further calls. */
static bool reorder_call(const refactor *x, const refactor_place *p, change *c, refactor_edits *edits)
{
    uint32_t from, to;
    base_buf s = {0};
    if (c->done_in == p->file && p->use->from < c->done_to) return true; /* inside a call that was ordered */
    const bool is_good = refactor__put_order(x, p, &c->order, &from, &to, &s);
    if (is_good && from < to) {
        refactor__edit(edits, from, to, s.data ? s.data : "");
        c->done_in = p->file;
        c->done_to = to;
    }
    base_buf_free(&s);
    return is_good;
}

/* Does the call give for the parameter just what its body has instead? "2", "mode=2" */
static bool gives(const base_buf *text, code_item item, const change *c)
{
    size_t n = item.to - item.from;
    const char *at = text->data + item.from, *behind = refactor__default_of(at, n, &n);
    if (behind) at = behind;
    return n == strlen(c->value) && !memcmp(at, c->value, n);
}

/* Which argument of the call's list is the parameter's; SIZE_MAX: the call gives none. */
static size_t argument_at(const refactor *x, const refactor_place *p, const refactor_list *l, const change *c)
{
    const refactor_file *f = &x->files[p->file];
    const base_buf *text = &f->file.text;
    const bool has_keywords = f->language->has_keywords;
    const size_t before = has_keywords ? refactor__first_keyword(text, l) : l->n,
                 keyword = has_keywords ? refactor__keyword_at(text, l, c->name) : SIZE_MAX,
                 at = refactor__object_arguments(x, p) + c->at;
    return keyword != SIZE_MAX ? keyword : at < before ? at : SIZE_MAX;
}

/* Something else than the definition, an import, or a name in a string. */
static bool is_use_in_code(const code_use *u)
{
    return u->import == UINT32_MAX && !u->is_exported && u->role != CODE_USE_STRING &&
           u->definition == UINT32_MAX;
}

/* "f is only ever called with a dot": what all calls give for the parameter, where that is one literal. The caller frees. */
static char *value_of_all_calls(const refactor *x, const change *c)
{
    char *value = NULL;
    bool is_one = true;
    for (size_t i = 0; i < x->n_places && is_one; i++) {
        const refactor_place *p = &x->places[i];
        refactor_list l;
        if (!is_use_in_code(p->use)) continue;
        is_one = p->verdict == REFACTOR_SURE && p->use->is_call && refactor__read_list(x, p, &l);
        if (!is_one) break;
        const base_buf *text = &x->files[p->file].file.text;
        const size_t at = refactor__has_spread(text, &l) ? SIZE_MAX : argument_at(x, p, &l, c);
        is_one = at != SIZE_MAX;
        if (is_one) {
            size_t n = l.items[at].to - l.items[at].from;
            const char *given = text->data + l.items[at].from, *behind = refactor__default_of(given, n, &n);
            char *literal = base_xstrndup(behind ? behind : given, n);
            is_one = refactor__is_literal(literal) && (!value || !strcmp(value, literal));
            if (!value && is_one) {
                value = literal;
                literal = NULL;
            }
            free(literal);
        }
        free(l.items);
    }
    if (is_one) return value;
    free(value);
    return NULL;
}

/* What the call gives by place for the parameters from c->at on it gives by name; false: nobody sees which argument is which. */
static bool name_arguments(const refactor *x, const refactor_place *p, const refactor_list *l,
    const change *c, refactor_edits *edits)
{
    const base_buf *text = &x->files[p->file].file.text;
    const size_t skip = refactor__object_arguments(x, p), n = refactor__first_keyword(text, l);
    if (refactor__has_spread(text, l) || n > skip + c->n) return false;
    for (size_t i = skip + c->at; i < n; i++) {
        base_buf name = {0};
        base_buf_printf(&name, "%s=", c->order.names[i - skip]);
        refactor__edit(edits, l->items[i].from, l->items[i].from, name.data);
        base_buf_free(&name);
    }
    return true;
}

/* false: this call cannot be changed for certain. */
static bool edit_call(const refactor *x, const refactor_place *p, change *c, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    const base_buf *text = &f->file.text;
    const bool is_python = f->language->family == REFACTOR_PYTHON;
    refactor_list l;
    if (!p->use->is_call || !refactor__read_list(x, p, &l)) return false;
    if (c->kind == ORDER) {
        free(l.items);
        return reorder_call(x, p, c, edits);
    }
    if (c->kind == BY_NAME) {
        const bool is_named = name_arguments(x, p, &l, c, edits);
        free(l.items);
        return is_named;
    }
    const size_t skip = refactor__object_arguments(x, p);
    /* A spread in the middle hides which argument is which. */
    const size_t before = is_python ? refactor__first_keyword(text, &l) : l.n;
    bool is_good = !refactor__has_spread(text, &l);
    if (c->kind == ADD && !c->value) {
        is_good = true; /* its default holds, where nothing shifts */
        if (skip + c->at < before) is_good = false;
    } else if (is_good && c->kind == ADD) {
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
        const size_t at = argument_at(x, p, &l, c);
        if (at != SIZE_MAX) {
            c->gives_other = c->value && !gives(text, l.items[at], c);
            remove_item(f, &l, at, false, edits);
        }
    }
    free(l.items);
    return is_good;
}

/* One added to, or taken out of, Go's groups, each with its own type then. false: there is none, or it stays whole. */
static bool edit_go(const refactor_file *f, const refactor_list *l, const change *c, refactor_edits *edits)
{
    base_buf items[REFACTOR_MAX_ITEMS] = {{0}}, s = {0};
    const bool is_go = f->language->family == REFACTOR_GO;
    const size_t n = is_go ? refactor__expand_go(f->file.text.data, l, items) : 0;
    const bool is_group = n > l->n && !(c->kind == ADD && c->at >= n);
    for (size_t i = 0; is_group && i < n; i++) {
        if (c->kind == ADD && i == c->at) base_buf_printf(&s, "%s%s", s.len ? ", " : "", c->declared.data);
        if (c->kind == ADD || i != c->at) base_buf_printf(&s, "%s%s", s.len ? ", " : "", items[i].data);
    }
    if (is_group) refactor__edit(edits, l->items[0].from, l->items[l->n - 1].to, s.data ? s.data : "");
    for (size_t i = 0; i < n; i++) base_buf_free(&items[i]);
    base_buf_free(&s);
    return is_group;
}

static bool edit_definition(const refactor *x, const refactor_place *p, change *c, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    const base_buf *text = &f->file.text;
    refactor_list l;
    if (!refactor__read_list(x, p, &l)) return false;
    const size_t first = refactor__hidden_parameters(text, &l);
    bool is_good = true;
    if (c->kind < ORDER && edit_go(f, &l, c, edits))
        is_good = true;
    else if (c->kind == ADD)
        insert_item(text, &l, first + c->at, c->declared.data, edits);
    else if (c->kind == REMOVE && first + c->at < l.n)
        remove_item(f, &l, first + c->at, true, edits);
    else if (c->kind == ORDER)
        is_good = reorder(x, p, &l, first, c, edits);
    else if (c->kind == BY_NAME && first + c->at < l.n)
        refactor__edit(edits, l.items[first + c->at].from, l.items[first + c->at].from, "*, ");
    else
        is_good = false;
    if (c->kind == REMOVE && is_good)
        refactor__cut_documented(f, &f->uses->file->definitions[p->use->definition], c->name, edits);
    free(l.items);
    return is_good;
}

/* The text of a literal that the parameter has for a default; the caller frees; NULL. */
static char *literal_default(const base_buf *text, code_item item)
{
    size_t n;
    const char *at = refactor__default_of(text->data + item.from, item.to - item.from, &n);
    char *value = at ? base_xstrndup(at, n) : NULL;
    if (value && !refactor__is_literal(value)) {
        free(value);
        value = NULL;
    }
    return value;
}

/*
 * Where a value declares the parameter once more ("fill: str = ' '"): from there on; NULL: it does not. A model that is asked what
 * callers give for "fill: str" likes to begin so.
 */
static const char *declares_again(const char *value, const char *parameter, const char *name)
{
    const size_t n = strlen(name);
    if (strcmp(parameter, name) != 0) return strstr(value, parameter);
    const char *at = strncmp(value, name, n) ? "" : value + n + strspn(value + n, " ");
    return *at == ':' || (*at == '=' && at[1] != '=') ? value : NULL;
}

/* Does anything call it, itself included? */
static bool is_called(const refactor *x)
{
    for (size_t i = 0; i < x->n_places; i++)
        if (x->places[i].use->is_call && x->places[i].use->definition == UINT32_MAX) return true;
    return false;
}

/*
 * What callers give, and how the parameter is declared (heap, base_buf_free). false: it is said what is wrong. A value that declares
 * it again with a default is the declaration.
 */
static bool read_value(refactor *x, const refactor_request *q, change *c, base_buf *ret_declared)
{
    const char *again = q->value ? declares_again(q->value, q->parameter, c->name) : NULL;
    size_t n_default;
    base_buf_puts(ret_declared, q->parameter);
    if (!is_called(x) &&
        !refactor__default_of(q->value ? q->value : "", strlen(q->value ? q->value : ""), &n_default))
        return true; /* whatever the value is */
    if (!again) {
        c->value = q->value ? base_xstrdup(q->value) : NULL;
        return true;
    }
    if (!refactor__default_of(again, strlen(again), &n_default)) {
        tool__say(x->result, TOOL_FAILED,
            "\"value\" is what the callers give for %s, as \"0\"; \"%s\" declares it. Nothing was changed.\n",
            c->name, q->value);
        return false;
    }
    base_buf_clear(ret_declared);
    base_buf_puts(ret_declared, again);
    return true;
}

/* Does the function say the name itself, of a local or of something outside? Then a parameter would be mixed up with it. */
static bool is_free(const refactor *x, const char *name)
{
    const refactor_target *t = &x->target;
    const base_buf *text = &t->in->file.text;
    code_uses *uses = code_uses_find(x->w->grammars, t->in->path, text->data, text->len, name);
    uint32_t line = 0;
    for (uint32_t i = 0; uses && i < uses->n_uses && !line; i++) {
        const code_use *u = &uses->uses[i];
        if (u->role == CODE_USE_NAME && u->from >= t->definition->body_from && u->from < t->definition->to)
            line = u->line;
    }
    code_uses_free(uses);
    if (line)
        tool__say(x->result, TOOL_REFUSED,
            "\"%s\" is taken: %s:%u uses it already, and the two would be mixed up. Nothing was changed. Next: another "
            "name.\n",
            name, t->in->path, line);
    return !line;
}

/* The one to add, as it is declared, from what the request says. */
static bool read_added(refactor *x, const refactor_request *q, const refactor_list *l, change *c)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    const refactor_language *language = f->language;
    const size_t first = refactor__hidden_parameters(text, l);
    size_t n_default = 0;
    const char *why = tool__why_no_name(language->name, c->name, false);
    if (*why) {
        tool__say(x->result, TOOL_REFUSED, "\"%s\" declares no parameter in %s: %s. Nothing was changed.\n",
            q->parameter, language->name, why);
        return false;
    }
    if (!is_free(x, c->name) || !read_value(x, q, c, &c->declared)) return false;
    const char *value = refactor__default_of(c->declared.data, c->declared.len, &n_default);
    if (!c->value && value && !language->has_defaults)
        c->value = base_xstrndup(value, n_default); /* then the callers give it */
    if (value && !language->has_defaults) c->declared.len = strcspn(c->declared.data, "=");
    while (c->declared.len && c->declared.data[c->declared.len - 1] == ' ') c->declared.len--;
    c->declared.data[c->declared.len] = '\0';
    const char *mark = c->declared.data + strlen(c->name);
    const bool may_be_left = language->has_optionals && mark[strspn(mark, " ")] == '?';
    if (!c->value && !value && !may_be_left && is_called(x)) {
        tool__say(x->result, TOOL_FAILED,
            "signature needs \"value\" as well: what the callers give for %s. Nothing was changed.\n",
            c->name);
        return false;
    }
    if (!strcmp(c->declared.data, c->name)) { /* a bare name: of the type that its value has */
        base_buf_clear(&c->declared);
        if (!refactor__declare(language, c->name, c->value, &c->declared)) {
            tool__say(x->result, TOOL_FAILED,
                "%s has no type in \"parameter\": declare it as %s does (\"%s\"). Nothing was changed.\n",
                c->name, language->name,
                language->has_type_first     ? "int flags"
                : *language->types[0] == ':' ? "flags: int"
                                             : "flags int");
            return false;
        }
    }
    refactor__put_like(language, text, l, c->name, &c->declared);
    value = refactor__default_of(c->declared.data, c->declared.len, &n_default);
    /* Behind the others, but in front of those that take all that is left, and of defaults where it has none. */
    const bool is_python = language->family == REFACTOR_PYTHON;
    c->at = q->at > 0 && (size_t)q->at <= c->n ? (size_t)q->at - 1 : c->n;
    for (bool goes_on = true; goes_on && c->at > 0 && first + c->at <= l->n && !q->at;) {
        const char *item = text->data + l->items[first + c->at - 1].from;
        const size_t n = l->items[first + c->at - 1].to - l->items[first + c->at - 1].from;
        size_t skip;
        goes_on = (n > 2 && (!memcmp(item, "**", 2) || !memcmp(item, "...", 3))) ||
                  (is_python && !value && *item != '*' && refactor__default_of(item, n, &skip));
        c->at -= goes_on;
    }
    return true;
}

/* Python takes no parameter without a default behind one that has one, and * and *args part the others. */
static const char *why_no_order(const refactor *x, const refactor_list *l, const change *c)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    const size_t first = refactor__hidden_parameters(text, l);
    bool has_default = false;
    if (f->language->family != REFACTOR_PYTHON || l->n < first + c->order.n) return NULL;
    for (size_t i = 0; i < c->order.n; i++) {
        const size_t k = c->order.order[i];
        const code_item item = l->items[first + k];
        size_t n;
        const bool has = (c->declared.len && k == c->at) ||
                         refactor__default_of(text->data + item.from, item.to - item.from, &n);
        const bool is_star = text->data[item.from] == '*';
        for (size_t j = 0; is_star && j < i; j++)
            if (c->order.order[j] > k) return "what stands in front of * has to stay there";
        if (is_star && k > i) return "what stands in front of * has to stay there";
        if (is_star) return NULL; /* behind it any order will do */
        if (has_default && !has) return "a parameter without a default cannot stand behind one that has one";
        has_default |= has;
    }
    return NULL;
}

/* "2,1,3", or "name=value" with the place that it shall have. */
static bool read_order(refactor *x, const refactor_request *q, const refactor_list *l, change *c)
{
    bool seen[REFACTOR_MAX_ITEMS] = {0}, is_good = true;
    size_t n_order = 0;
    c->kind = ORDER;
    c->order.n = c->n;
    if (c->declared.len) { /* c->at goes to q->at */
        const size_t to = q->at > 0 && (size_t)q->at <= c->n ? (size_t)q->at - 1 : c->at;
        for (size_t i = 0, k = 0; i < c->n; i++) {
            k += k == c->at;
            c->order.order[i] = i == to ? c->at : k++;
        }
        n_order = c->n + 1; /* one alone may get a default */
    }
    for (const char *p = c->declared.len ? "" : q->parameter; *p && n_order < REFACTOR_MAX_ITEMS;
         p += strcspn(p, "0123456789")) {
        char *end;
        const unsigned long k = strtoul(p, &end, 10);
        p = end;
        if (k < 1 || k > c->n || k > REFACTOR_MAX_ITEMS || seen[k - 1]) is_good = false;
        if (is_good) seen[k - 1] = true;
        c->order.order[n_order++] = k - 1;
        if (!*p) break;
    }
    is_good = is_good && (c->declared.len || n_order == c->n) && n_order > 1;
    const char *why = is_good ? why_no_order(x, l, c) : NULL;
    if (!is_good)
        tool__say(x->result, TOOL_REFUSED, "\"%s\" is no order of %zu parameters. Nothing was changed.\n",
            q->parameter, c->n);
    if (why)
        tool__say(
            x->result, TOOL_REFUSED, "%s cannot have that order: %s. Nothing was changed.\n", x->name, why);
    return is_good && !why;
}

/* What stands in the body in place of a parameter that goes, as one operand. NULL: it is none, or reads the parameter. */
static char *read_instead(const char *to, const char *name)
{
    size_t depth = 0, n_operators = 0;
    char quote = '\0';
    if (!*to || strpbrk(to, "\n;") || code_has_identifier(to, strlen(to), name)) return NULL;
    for (const char *p = to; *p; p++) {
        if (quote) {
            if (*p == '\\' && p[1]) p++;
            if (*p == quote) quote = '\0';
        } else if (strchr("\"'`", *p)) {
            quote = *p;
        } else if (strchr("([{", *p)) {
            depth++;
        } else if (strchr(")]}", *p)) {
            if (!depth--) return NULL;
        } else if (!depth && p > to && strchr(" +-*/%<>=&|?:", *p)) {
            n_operators++;
        }
    }
    if (quote || depth) return NULL;
    base_buf out = {0};
    base_buf_printf(&out, n_operators ? "(%s)" : "%s", to);
    return base_buf_take(&out);
}

/* "*, name": of Python, where nothing parts the parameters yet. */
static bool read_by_name(refactor *x, const refactor_request *q, const refactor_list *l, change *c)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    const size_t first = refactor__hidden_parameters(text, l);
    const char *name = q->parameter + strspn(q->parameter, "*, "), *why = NULL;
    c->kind = BY_NAME;
    c->at = SIZE_MAX;
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->order.names[i], name)) c->at = i;
    if (f->language->family != REFACTOR_PYTHON) {
        why = "parameters that only their names give are Python's";
    } else if (c->at == SIZE_MAX) {
        why = "it has no parameter of that name";
    } else {
        for (size_t i = first; i < l->n && !why; i++) {
            const char *item = text->data + l->items[i].from;
            const size_t n = l->items[i].to - l->items[i].from;
            if (i == first + c->at && *item == '*')
                why = "it stands for all that calls give besides";
            else if (*item == '*' && i < first + c->at)
                why = "only its name gives it already";
            else if (*item == '*' && !(n > 2 && item[1] == '*'))
                why = "a * stands behind it already";
            else if (*item == '/' && i > first + c->at)
                why = "what stands in front of / has no name for callers";
        }
    }
    if (why)
        tool__say(x->result, TOOL_REFUSED, "%s of %s cannot be made keyword-only: %s. Nothing was changed.\n",
            name, x->name, why);
    return !why;
}

/* What the request says, against the parameters that there are. */
static bool read_change(refactor *x, const refactor_request *q, const refactor_place *own, change *c)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    const refactor_language *language = f->language;
    refactor_list l;
    *c = (change){.order_words = q->parameter, .done_in = SIZE_MAX};
    if (q->parameter && !refactor__read_list(x, own, &l)) {
        tool__say(x->result, TOOL_REFUSED,
            "%s has no list of parameters in parentheses. Nothing was changed.\n", x->name);
        return false;
    }
    if (!q->parameter) {
        tool__say(x->result, TOOL_FAILED,
            "signature needs \"parameter\": one to add as it is declared, the name "
            "of one to remove, or their new order (2,1). Nothing was changed.\n");
        return false;
    }
    bool is_good = true;
    size_t found = SIZE_MAX, n_default;
    c->n = refactor__parameter_names(language, text, &l, c->order.names);
    const char *gets = refactor__default_of(q->parameter, strlen(q->parameter), &n_default);
    refactor__parameter_name(language, q->parameter, strlen(q->parameter), c->name);
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->order.names[i], c->name)) found = i;
    if (!strncmp(q->parameter, "*,", 2)) {
        is_good = read_by_name(x, q, &l, c);
        snprintf(c->name, sizeof c->name, "%s", q->parameter + strspn(q->parameter, "*, "));
    } else if (strspn(q->parameter, "0123456789, ") == strlen(q->parameter)) {
        is_good = read_order(x, q, &l, c);
    } else if (found != SIZE_MAX && gets && n_default && language->has_defaults && !q->value) {
        c->at = found;
        base_buf_add(&c->declared, gets, n_default);
        is_good = read_order(x, q, &l, c);
    } else if (found != SIZE_MAX && (q->value || strcmp(q->parameter, c->name) != 0)) {
        tool__say(x->result, TOOL_REFUSED, "%s has a parameter %s already. Nothing was changed.\n", x->name,
            c->name);
        is_good = false;
    } else if (found != SIZE_MAX) {
        const size_t first = refactor__hidden_parameters(text, &l);
        c->kind = REMOVE;
        c->at = found;
        c->value = q->to ? read_instead(q->to, c->name) : NULL;
        if (!c->value && first + found < l.n) c->value = literal_default(text, l.items[first + found]);
    } else {
        is_good = read_added(x, q, &l, c);
    }
    free(l.items);
    return is_good;
}

/* What the function has in place of the parameter is not for the program to say: its text is what the next call is made from. */
static void ask_instead(refactor *x, const char *name, uint32_t line)
{
    const refactor_file *f = x->target.in;
    const code_definition *d = x->target.definition;
    tool__say(x->result, TOOL_REFUSED,
        "%s:%u still uses %s. Nothing was changed. This is the current text:\n", f->path, line, name);
    const size_t at = x->result->text.len;
    base_buf_add(&x->result->text, f->file.text.data + d->from, d->to - d->from);
    tool__add_source(x->result, at, x->result->text.len, f->path, f->file.version, d->from, d->line);
    base_buf_printf(&x->result->text,
        "\nNext: the same call with \"to\": what stands there in place of %s, an expression without it\n",
        name);
    tool_workspace_mark_shown(x->w, f->path, f->file.version);
}

/* The body of a function that loses a parameter; false: it still needs it. */
static bool edit_body(refactor *x, change *c, refactor_edits *edits, base_buf *handed)
{
    const uint32_t line = refactor__replace_parameter(
        x, c->name, c->value, &edits[x->target.in - x->files], &c->n_inlined, handed);
    if (line && !c->value)
        ask_instead(x, c->name, line);
    else if (line)
        tool__say(x->result, TOOL_REFUSED,
            "%s:%u still uses %s. Nothing was changed. Next: rewrite %s without it first.\n",
            x->target.in->path, line, c->name, x->name);
    return !line;
}

static void list_place(const refactor *x, const refactor_place *p, const char *what, size_t n, base_buf *out)
{
    if (n >= MAX_LISTED) return;
    base_buf_puts(out, n ? ", " : what);
    tool__path_show(out, x->files[p->file].path);
    base_buf_printf(out, ":%u", p->use->line);
}

/* What was done (or, for a headline, is to be): "added flags to add, 3 calls". */
static void put_words(const refactor *x, const change *c, bool is_done, size_t n_calls, base_buf *out)
{
    static const char *const words[][2] = {[ADD] = {"add %s to %s", "added %s to %s"},
        [REMOVE] = {"remove %s from %s", "removed %s from %s"},
        [ORDER] = {"order the parameters (%s) of %s", "ordered the parameters (%s) of %s"},
        [BY_NAME] = {"make %s of %s keyword-only", "made %s of %s keyword-only"}};
    const char *format = words[c->kind][is_done], *at = format;
    const char *const texts[] = {c->kind == ORDER ? c->order_words : c->name, x->name};
    for (size_t i = 0; i < 2; i++) {
        const char *mark = strstr(at, "%s");
        base_buf_add(out, at, (size_t)(mark - at));
        base_buf_puts(out, texts[i]);
        at = mark + 2;
    }
    base_buf_printf(out, "%s%zu call%s", is_done ? ": " : ", ", n_calls, n_calls == 1 ? "" : "s");
}

bool refactor__signature(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
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
    if (!own || !read_change(x, q, own, &c)) {
        change_free(&c, own != NULL);
        return false;
    }
    if (c.kind == REMOVE && !c.value) c.value = value_of_all_calls(x, &c);
    refactor_edits *edits = base_xcalloc(x->n_files + 1, sizeof *edits);
    base_buf left = {0}, other = {0}, handed = {0}, say = {0};
    size_t n_left = 0, n_calls = 0, n_other = 0;
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        const code_use *u = p->use;
        bool is_done = p->verdict == REFACTOR_SURE;
        const bool is_given =
            u->is_exported && u->definition == UINT32_MAX && !u->is_call;              /* exports.f = f */
        const bool is_inner = u->binding == u->from && u->from != x->target.name_from; /* f = function f() */
        if (is_done && (u->import != UINT32_MAX || is_given || is_inner || u->role == CODE_USE_STRING))
            continue;
        /* exports.f = (a) => ... beside function f */
        const bool is_other = t->in->language->family == REFACTOR_JS && u->definition != UINT32_MAX &&
                              &x->files[p->file] == t->in &&
                              (u->role == CODE_USE_MEMBER) != (own->use->role == CODE_USE_MEMBER);
        is_done = is_done && !is_other;
        c.gives_other = false;
        if (is_done && u->definition != UINT32_MAX)
            is_done = edit_definition(x, p, &c, &edits[p->file]);
        else if (is_done && (is_done = edit_call(x, p, &c, &edits[p->file])))
            n_calls++;
        if (c.gives_other) list_place(x, p, "What these calls gave is dropped: ", n_other++, &other);
        if (!is_done) list_place(x, p, "Left, look at them: ", n_left++, &left);
    }
    const bool is_good = c.kind != REMOVE || edit_body(x, &c, edits, &handed);
    refactor__edits_take_all(x, edits, is_good ? ret : NULL);
    if (n_left) base_buf_printf(&left, "%s.\n", n_left > MAX_LISTED ? ", ..." : "");
    if (n_other) base_buf_printf(&left, "%s%s.\n", other.data, n_other > MAX_LISTED ? ", ..." : "");
    if (is_good) {
        put_words(x, &c, true, n_calls, &say);
        base_buf_printf(&say, " in %zu file%s.\n", ret->n, ret->n == 1 ? "" : "s");
        if (c.n_inlined)
            base_buf_printf(&say, "Its body has %s where it had %s: %u place%s.\n", c.value, c.name,
                c.n_inlined, c.n_inlined == 1 ? "" : "s");
        if (handed.len) base_buf_printf(&say, "%s.\n", handed.data);
        base_buf_puts(&say, left.len ? left.data : "");
        put_words(x, &c, false, n_calls, headline);
        if (n_left) base_buf_printf(headline, ", %zu place%s left", n_left, n_left == 1 ? "" : "s");
        ret->say = base_buf_take(&say);
        if (left.len) ret->notice = base_buf_take(&left);
    }
    base_buf_free(&left);
    base_buf_free(&other);
    base_buf_free(&handed);
    change_free(&c, true);
    return is_good;
}
