/* Who uses a definition (contract: used.h). */
#include "tools/refactor/used.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/refactor/refactor.h"
#include "tools/result/result.h"

/* The definition itself, another line of it (a prototype), or what stands inside of it. */
static bool is_own(const refactor *x, const refactor_place *p)
{
    const code_definition *d = x->target.definition;
    const bool is_definition =
        p->use->definition != UINT32_MAX && p->use->binding == UINT32_MAX && p->use->import == UINT32_MAX;
    return is_definition ||
           (&x->files[p->file] == x->target.in && p->use->from >= d->from && p->use->from < d->to);
}

static tool_use_kind kind_of(const refactor_place *p)
{
    if (p->verdict == REFACTOR_UNSURE) return TOOL_USE_MAYBE;
    if (p->use->import != UINT32_MAX) return TOOL_USE_IMPORT;
    if (p->use->is_exported) return TOOL_USE_EXPORT;
    return p->use->is_call ? TOOL_USE_CALL : TOOL_USE_NAME;
}

static void add_place(const refactor *x, const refactor_place *p, tool_used *ret)
{
    const refactor_file *f = &x->files[p->file];
    const code_definition *in =
        p->use->inside != UINT32_MAX ? &f->uses->file->definitions[p->use->inside] : NULL;
    base_buf inside = {0};
    if (in) base_buf_printf(&inside, "%s%s%s", in->parent, *in->parent ? "." : "", in->name);
    ret->places = base_xrealloc(ret->places, (ret->n + 1) * sizeof *ret->places);
    ret->places[ret->n++] = (tool_use_place){.path = base_xstrdup(f->path),
        .inside = base_xstrdup(inside.data ? inside.data : ""),
        .line = p->use->line,
        .kind = kind_of(p),
        .is_test = code_path_is_test(f->path)};
    base_buf_free(&inside);
}

static void add_places(const refactor *x, tool_used *ret)
{
    for (int tests = 0; tests < 2; tests++) {
        for (size_t i = 0; i < x->n_places; i++) {
            const refactor_place *p = &x->places[i];
            if (is_own(x, p) || code_path_is_test(x->files[p->file].path) != (tests > 0)) continue;
            add_place(x, p, ret);
            ret->n_tests += tests > 0;
        }
    }
}

bool tool__find_used(tool_workspace *w, const char *name, const atomic_bool *cancel, tool_used *ret)
{
    const tool_limits limits = {.cancel = cancel};
    tool_result result = {0};
    refactor x = {.w = w, .limits = &limits, .result = &result};
    *ret = (tool_used){0};
    const bool is_found =
        refactor__find_target(&x, name, NULL) && x.target.definition && refactor__resolve(&x);
    if (is_found) {
        const code_definition *d = x.target.definition;
        ret->path = base_xstrdup(x.target.in->path);
        ret->what = base_xstrdup(d->what);
        ret->line = x.target.line;
        ret->n_unread = (uint32_t)x.n_unread;
        ret->n_text = (uint32_t)x.n_text;
        ret->is_decorated = x.target.in->file.text.data[d->from] == '@';
        add_places(&x, ret);
    }
    refactor__free(&x);
    tool_result_free(&result);
    return is_found;
}

void tool__used_free(tool_used *u)
{
    for (uint32_t i = 0; i < u->n; i++) {
        free(u->places[i].path);
        free(u->places[i].inside);
    }
    free(u->places);
    free(u->path);
    free(u->what);
    *u = (tool_used){0};
}
