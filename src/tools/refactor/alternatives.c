/*
 * Definitions of one name in several files that are one thing, of which a program sees one: a function for two
 * systems, a macro of a header and the function behind it, a file of Go for each system, a declaration beside its
 * script. They are renamed together. Two programs that each have a function of that name are two things.
 *
 * In C files belong together where a file that writes the name sees both through its includes, or where one that only
 * declares the name stands for what others define.
 */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"
#include "base/path.h"

enum { MAX_DEPTH = 12 };

/* A file of C and those of the tree that it includes, read once. */
typedef struct included {
    const char *path; /* of the listing */
    const char **files;
    size_t n, cap;
    size_t home;    /* of refactor.files, where it says what the name is; SIZE_MAX */
    size_t seen_by; /* the last file whose includes were followed */
} included;

typedef struct grouping {
    refactor *x;
    bool of_types;
    included *all;
    size_t n, cap;
} grouping;

static bool is_top(const code_definition *d)
{
    return !*d->parent && strcmp(d->what, "field") != 0 && strcmp(d->what, "method") != 0;
}

/* Says the file what the name is at its top; *ret_real: by more than a declaration, that other files can mean. */
static bool says_what(const grouping *g, const refactor_file *f, bool *ret_real, bool *ret_static)
{
    bool says = false;
    *ret_real = *ret_static = false;
    for (uint32_t i = 0; i < f->uses->n_uses; i++) {
        const code_use *u = &f->uses->uses[i];
        if (u->definition == UINT32_MAX || u->binding != UINT32_MAX || u->import != UINT32_MAX) continue;
        const code_definition *d = &f->uses->file->definitions[u->definition];
        if (!is_top(d) || refactor__is_type(d->what) != g->of_types) continue;
        says = true;
        *ret_static |= refactor__is_static(f, d);
        *ret_real |= !refactor__is_declaration(f, d) && !(g->of_types && !d->body_to);
    }
    return says;
}

static size_t group_of(const refactor *x, size_t i, bool of_types)
{
    while (x->files[i].thing[of_types] != i) i = x->files[i].thing[of_types];
    return i;
}

static void join(const grouping *g, size_t a, size_t b)
{
    a = group_of(g->x, a, g->of_types);
    b = group_of(g->x, b, g->of_types);
    if (a != b) g->x->files[a > b ? a : b].thing[g->of_types] = a > b ? b : a;
}

/* ---- C: what a file sees ---- */

static const char *included_path(const refactor *x, const char *from, const char *name, bool is_near)
{
    const tool_listing *l = &x->w->listing;
    char *beside = is_near ? refactor__join_path(from, name) : NULL;
    bool found = false;
    const size_t at = beside ? tool__listing_find(l, beside, &found) : 0;
    free(beside);
    if (found) return l->files[at].path;
    while (!strncmp(name, "../", 3) || !strncmp(name, "./", 2)) name = strchr(name, '/') + 1;
    for (size_t i = 0; i < l->n; i++)
        if (refactor__ends_with_path(l->files[i].path, name)) return l->files[i].path;
    return NULL;
}

static void read_includes(const refactor *x, const base_buf *text, included *f)
{
    for (size_t at = 0; at < text->len;) {
        const size_t end = tool__line_end(text->data, text->len, at);
        const char *p = text->data + at, *to = text->data + end;
        at = end + 1;
        while (p < to && (*p == ' ' || *p == '\t')) p++;
        if (p >= to || *p++ != '#') continue;
        while (p < to && (*p == ' ' || *p == '\t')) p++;
        if (to - p < 9 || memcmp(p, "include", 7) != 0) continue;
        p += 7;
        while (p < to && (*p == ' ' || *p == '\t')) p++;
        const char close = *p == '<' ? '>' : '"';
        const char *last =
            p < to && (*p == '<' || *p == '"') ? memchr(p + 1, close, (size_t)(to - p - 1)) : NULL;
        if (!last) continue;
        char *name = base_xstrndup(p + 1, (size_t)(last - p - 1));
        const char *path = included_path(x, f->path, name, close == '"');
        free(name);
        if (!path) continue;
        base_grow(&f->files, &f->cap, f->n + 1, sizeof *f->files);
        f->files[f->n++] = path;
    }
}

/* Index of g->all. */
static size_t included_at(grouping *g, const char *path)
{
    refactor *x = g->x;
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->all[i].path, path)) return i;
    base_grow(&g->all, &g->cap, g->n + 1, sizeof *g->all);
    included *f = &g->all[g->n++];
    *f = (included){.path = path, .home = SIZE_MAX, .seen_by = SIZE_MAX};
    for (size_t i = 0; i < x->n_files && f->home == SIZE_MAX; i++)
        if (!strcmp(x->files[i].path, path)) f->home = i;
    if (f->home != SIZE_MAX) {
        read_includes(x, &x->files[f->home].file.text, f);
        return g->n - 1;
    }
    tool_file file = {0};
    if (!tool__file_read(&x->w->root, path, TOOL_MAX_INDEXED, &file, NULL)) read_includes(x, &file.text, f);
    tool__file_free(&file);
    return g->n - 1;
}

/* Says the file by a macro alone what the name is? */
static bool is_macro(const refactor_file *f)
{
    bool is_any = false;
    for (uint32_t i = 0; i < f->uses->n_uses; i++) {
        const code_use *u = &f->uses->uses[i];
        if (u->definition == UINT32_MAX) continue;
        if (strcmp(f->uses->file->definitions[u->definition].what, "macro") != 0) return false;
        is_any = true;
    }
    return is_any;
}

/* The file `by` means with the name what every file means that it sees, but where it has a macro of its own instead of theirs. */
static void follow(grouping *g, size_t by, const char *path, int depth)
{
    const size_t at = included_at(g, path);
    if (g->all[at].seen_by == by || depth > MAX_DEPTH || tool__cancelled(g->x->limits)) return;
    g->all[at].seen_by = by;
    const size_t home = g->all[at].home;
    if (home != SIZE_MAX && g->x->files[home].thing[g->of_types] != SIZE_MAX) {
        if (g->x->files[by].thing[g->of_types] == SIZE_MAX)
            g->x->files[by].thing[g->of_types] = home;
        else if (by == home || !is_macro(&g->x->files[by]) || !is_macro(&g->x->files[home]))
            join(g, by, home);
    }
    for (size_t i = 0; i < g->all[at].n; i++) follow(g, by, g->all[at].files[i], depth + 1);
}

static void group_c(grouping *g)
{
    refactor *x = g->x;
    bool real, is_static;
    for (size_t i = 0; i < x->n_files; i++)
        if (x->files[i].language->declares_apart) follow(g, i, x->files[i].path, 0);
    for (size_t i = 0; i < x->n_files; i++) { /* who only declares it means what is defined elsewhere */
        const refactor_file *f = &x->files[i];
        if (!f->language->declares_apart || !says_what(g, f, &real, &is_static) || real || is_static)
            continue;
        bool has_one = false;
        for (int pass = 0; pass < 2 && !has_one; pass++)
            for (size_t k = 0; k < x->n_files; k++) {
                if (!x->files[k].language->declares_apart || !says_what(g, &x->files[k], &real, &is_static))
                    continue;
                if (!real || is_static) continue;
                if (pass) join(g, i, k);
                has_one |= group_of(x, i, g->of_types) == group_of(x, k, g->of_types);
            }
    }
}

/* ---- the others ---- */

static size_t stem_length(const char *path)
{
    const size_t n = strlen(path);
    const char *ending = base_path_ending(path);
    if (n > 5 && !strcmp(path + n - 5, ".d.ts")) return n - 5;
    return (size_t)(ending - path);
}

static bool is_types_only(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".d.ts");
}

static bool are_together(const refactor_file *a, const refactor_file *b)
{
    if (a->language->family != b->language->family) return false;
    if (a->language->family == REFACTOR_GO)
        return base_path_same_folder(a->path, b->path) && !refactor__is_built_alone(a) &&
               !refactor__is_built_alone(b) && refactor__is_external_test(a) == refactor__is_external_test(b);
    if (a->language->family != REFACTOR_JS || is_types_only(a->path) == is_types_only(b->path)) return false;
    const size_t n = stem_length(a->path);
    return n == stem_length(b->path) && !strncmp(a->path, b->path, n);
}

void refactor__find_alternatives(refactor *x)
{
    for (int of_types = 0; of_types < 2; of_types++) {
        grouping g = {.x = x, .of_types = of_types};
        size_t n_real = 0;
        for (size_t i = 0; i < x->n_files; i++) {
            bool real, is_static;
            const bool says = says_what(&g, &x->files[i], &real, &is_static);
            n_real += real;
            x->files[i].thing[of_types] = says ? i : SIZE_MAX;
        }
        if (n_real > 1) group_c(&g);
        for (size_t i = 0; i < x->n_files && n_real > 1; i++)
            for (size_t k = 0; k < i; k++)
                if (x->files[i].thing[of_types] != SIZE_MAX && x->files[k].thing[of_types] != SIZE_MAX &&
                    are_together(&x->files[k], &x->files[i]))
                    join(&g, k, i);
        for (size_t i = 0; i < x->n_files; i++) {
            size_t *thing = &x->files[i].thing[of_types];
            if (n_real < 2)
                *thing = SIZE_MAX;
            else if (*thing != SIZE_MAX)
                *thing = group_of(x, i, of_types);
        }
        for (size_t i = 0; i < g.n; i++) free(g.all[i].files);
        free(g.all);
    }
}

bool refactor__are_alternatives(const refactor_file *a, const refactor_file *b, bool of_types)
{
    return a == b || (a->thing[of_types] != SIZE_MAX && a->thing[of_types] == b->thing[of_types]);
}
