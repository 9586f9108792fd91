/*
 * A parameter that goes while the body of its function only hands it on: the argument goes with it where the function that
 * it was handed to has a default of its own.
 */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The "(" that is open at byte `at` of a body that begins at `least`; UINT32_MAX: none. Who calls checks it against the tree. */
static uint32_t open_before(const char *s, uint32_t least, uint32_t at)
{
    uint32_t depth = 0;
    while (at > least) {
        const char c = s[--at];
        if (strchr(")]}", c)) depth++;
        if (!strchr("([{", c)) continue;
        if (!depth) return c == '(' ? at : UINT32_MAX;
        depth--;
    }
    return UINT32_MAX;
}

/* A call in the target's body one of whose arguments is the name and nothing else. */
typedef struct hand {
    uint32_t callee_from;
    char callee[REFACTOR_NAME_BYTES], keyword[REFACTOR_NAME_BYTES]; /* keyword "": by place */
    refactor_list list;
    size_t at; /* of the list's items */
} hand;

/* false: it is used in another way. Free ret->list.items. */
static bool find_hand(const refactor *x, const code_use *use, uint32_t n_name, hand *ret)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    const char *s = text->data;
    const uint32_t open = open_before(s, x->target.definition->body_from, use->from);
    *ret = (hand){.at = SIZE_MAX};
    if (open == UINT32_MAX) return false;
    uint32_t to = open, from;
    while (to > 0 && s[to - 1] == ' ') to--;
    for (from = to; from > 0 && code_is_name_byte(s[from - 1]);) from--;
    if (from == to || to - from >= sizeof ret->callee) return false;
    memcpy(ret->callee, s + from, to - from);
    ret->callee_from = from;
    if (!code_items(x->w->grammars, f->path, s, text->len, to, &ret->list) || ret->list.from != open + 1)
        return false;
    for (size_t i = 0; i < ret->list.n; i++) {
        const code_item item = ret->list.items[i];
        if (use->from < item.from || use->from + n_name != item.to) continue;
        uint32_t end = item.from;
        while (end < use->from && code_is_name_byte(s[end])) end++;
        const uint32_t n_keyword = end - item.from;
        while (end < use->from && strchr(" =", s[end])) end++;
        if (end != use->from || n_keyword >= sizeof ret->keyword) continue;
        if (n_keyword && (!f->language->has_keywords || !memchr(s + item.from, '=', use->from - item.from)))
            continue;
        memcpy(ret->keyword, s + item.from, n_keyword);
        ret->at = i;
    }
    return ret->at != SIZE_MAX && !refactor__has_spread(text, &ret->list);
}

/* The place of y, which is resolved, that is the call; NULL: it means another thing, or nobody knows. */
static const refactor_place *find_call(const refactor *y, const char *path, uint32_t at, bool is_only)
{
    for (size_t i = 0; i < y->n_places; i++) {
        const refactor_place *p = &y->places[i];
        if (p->use->from != at || strcmp(y->files[p->file].path, path) != 0) continue;
        return p->use->is_call && p->use->definition == UINT32_MAX && (is_only || p->verdict == REFACTOR_SURE)
                   ? p
                   : NULL;
    }
    return NULL;
}

/* Has this definition a default for what the call hands it? skip: arguments of the call that are the object. */
static bool has_default(const refactor *y, const refactor_place *definition, size_t skip, const hand *h)
{
    const refactor_file *f = &y->files[definition->file];
    const base_buf *text = &f->file.text;
    char names[REFACTOR_MAX_ITEMS][REFACTOR_NAME_BYTES];
    refactor_list l;
    size_t at = *h->keyword || h->at < skip ? SIZE_MAX : h->at - skip, n_default;
    if (!refactor__read_list(y, definition, &l)) return false;
    const size_t first = refactor__hidden_parameters(text, &l),
                 n = refactor__parameter_names(f->language, text, &l, names);
    for (size_t i = 0; i < n && *h->keyword; i++)
        if (!strcmp(names[i], h->keyword)) at = i;
    bool has = at < n && first + at < l.n;
    if (has) {
        const code_item item = l.items[first + at];
        has = refactor__default_of(text->data + item.from, item.to - item.from, &n_default) != NULL;
    }
    for (size_t i = 0; has && !*h->keyword && i < first + at;
         i++) /* by place: none in front takes what is left */
        has = text->data[l.items[i].from] != '*' || f->language->family == REFACTOR_C;
    free(l.items);
    return has;
}

/* Every definition that the call may mean has to, a method's overrides too; of C++ the prototype alone says it. */
static bool have_default(const refactor *y, const refactor_place *call, const hand *h)
{
    const size_t skip = refactor__object_arguments(y, call);
    size_t n = 0, n_has = 0;
    for (size_t i = 0; i < y->n_places; i++) {
        const refactor_place *p = &y->places[i];
        if (p->use->definition == UINT32_MAX || p->verdict != REFACTOR_SURE) continue;
        n++;
        n_has += has_default(y, p, skip, h);
    }
    return n_has && (n_has == n || y->target.in->language->declares_apart);
}

/* Is the function that `given` names the one that is called, and has it the default? */
static bool takes_less(const refactor *x, const hand *h, const char *given, const char *path, bool is_only)
{
    tool_result said = {.exit_code = -1};
    refactor y = {.w = x->w, .limits = x->limits, .result = &said};
    bool is_good = refactor__find_target(&y, given, path) && y.target.is_function && y.target.definition &&
                   refactor__resolve(&y);
    const refactor_place *call = is_good ? find_call(&y, x->target.in->path, h->callee_from, is_only) : NULL;
    is_good = call && have_default(&y, call, h);
    y.result = NULL;
    refactor__free(&y);
    tool_result_free(&said);
    return is_good;
}

/* By the one definition of its name, by the type of its object, or by the file it stands in itself. */
static bool is_taken_by_default(const refactor *x, const hand *h)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    code_uses *u = code_uses_find(x->w->grammars, f->path, text->data, text->len, h->callee);
    const code_use *use = NULL;
    for (uint32_t i = 0; u && i < u->n_uses && !use; i++)
        if (u->uses[i].from == h->callee_from) use = &u->uses[i];
    bool is_good = use && use->is_call && use->definition == UINT32_MAX;
    const bool is_member = is_good && use->role == CODE_USE_MEMBER,
               is_typed = is_good && *use->object && use->object_kind != CODE_OBJECT_LITERAL,
               is_any = is_member && !is_typed && !refactor__is_common(h->callee);
    base_buf of_type = {0};
    if (is_typed) base_buf_printf(&of_type, "%s.%s", use->object, h->callee);
    is_good = is_good && (takes_less(x, h, h->callee, NULL, is_any) ||
                             (is_typed && takes_less(x, h, of_type.data, NULL, false)) ||
                             (!is_member && takes_less(x, h, h->callee, f->path, false)));
    base_buf_free(&of_type);
    code_uses_free(u);
    return is_good;
}

/* Only at the end of those by place can one be left out: none behind it may shift. */
static bool is_last_by_place(const base_buf *text, const hand *h, bool has_keywords)
{
    const size_t n = has_keywords ? refactor__first_keyword(text, &h->list) : h->list.n;
    return h->at + 1 == n;
}

bool refactor__cut_handed_on(
    const refactor *x, const char *name, const code_use *use, refactor_edits *edits, base_buf *say)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    hand h;
    bool is_good = find_hand(x, use, (uint32_t)strlen(name), &h) &&
                   (*h.keyword || is_last_by_place(text, &h, f->language->has_keywords)) &&
                   is_taken_by_default(x, &h);
    if (is_good) {
        code_item cut = {h.list.from, h.list.to};
        if (h.at + 1 < h.list.n)
            cut = (code_item){h.list.items[h.at].from, h.list.items[h.at + 1].from};
        else if (h.at)
            cut = (code_item){h.list.items[h.at - 1].to, h.list.items[h.at].to};
        for (size_t i = 0; i < edits->n; i++) /* two arguments of one call, or what goes already */
            if (cut.from < edits->all[i].to && edits->all[i].from < cut.to) is_good = false;
        if (is_good) refactor__edit(edits, cut.from, cut.to, "");
    }
    if (is_good) {
        base_buf_puts(say, say->len ? ", " : "Not handed on any more, the default holds: ");
        base_buf_printf(say, "%s (", h.callee);
        tool__path_show(say, f->path);
        base_buf_printf(say, ":%u)", use->line);
    }
    free(h.list.items);
    return is_good;
}
