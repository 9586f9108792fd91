/*
 * Three readers say which bytes of the answer are wrong and what stands there instead (places.h, call_claims.h); the
 * answer is then written once, from left to right.
 */
#include "code/corrections.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "code/call_claims.h"
#include "code/places.h"

enum { MOST_CHECKED = 64, MOST_CALLERS = 8 };

typedef struct edit {
    uint32_t from, to; /* bytes of the answer */
    char *instead;
    char *what; /* a line; NULL: told by an edit before */
} edit;

typedef struct edits {
    edit *all;
    uint32_t n;
    size_t cap;
} edits;

static void add_edit(edits *e, uint32_t from, uint32_t to, base_buf *instead, base_buf *what)
{
    base_grow(&e->all, &e->cap, e->n + 1, sizeof *e->all);
    e->all[e->n++] = (edit){.from = from,
        .to = to,
        .instead = base_buf_take(instead),
        .what = what->len ? base_buf_take(what) : NULL};
}

static int by_place(const void *a, const void *b)
{
    const edit *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* ---- places ---- */

/* A place that the answer writes lies in one of these files. */
static bool is_in_any(const char *place, size_t n, char *const *files, size_t n_files)
{
    for (size_t i = 0; i < n_files; i++) {
        const char *name = base_path_name(files[i]);
        if (memmem(place, n, name, strlen(name))) return true;
    }
    return false;
}

/* "Write a test of f in test_f.py": a file of tests that the tree has not is one to be written, and no place of f. */
static bool is_test_to_come(const code_index *x, const char *place, size_t n)
{
    char *path = base_xstrndup(place, n), *known = NULL;
    path[strcspn(path, ":`")] = 0;
    const bool is_test = code_path_is_test(path);
    if (is_test) known = code_index_path(x, path);
    free(path);
    free(known);
    return is_test && !known;
}

static void put_place(edits *e, const code_checked *c, const char *answer)
{
    base_buf instead = {0}, what = {0};
    const int n = (int)(c->cited_to - c->cited_from);
    const char *said = answer + c->cited_from;
    base_buf_printf(&instead, "%s:%u [corrected from %.*s]", c->path, c->line, n, said);
    base_buf_printf(&what, "%s: %s:%u, not %.*s", c->name, c->path, c->line, n, said);
    add_edit(e, c->cited_from, c->cited_to, &instead, &what);
}

/* Wherever the answer writes the name; the first one is marked. */
static void put_name(edits *e, const code_checked *c, const char *answer, size_t n)
{
    const size_t length = strlen(c->name);
    bool marked = false;
    for (size_t pos = 0, from, to; code_next_identifier(answer, n, &pos, &from, &to);) {
        if (to - from != length || memcmp(answer + from, c->name, length) != 0) continue;
        const bool quoted = to < n && answer[to] == '`';
        base_buf instead = {0}, what = {0};
        base_buf_puts(&instead, c->meant);
        if (!marked) {
            base_buf_printf(&instead, "%s [corrected from %s]", quoted ? "`" : "", c->name);
            base_buf_printf(&what, "%s, not %s: the tree has no such name", c->meant, c->name);
        }
        add_edit(e, (uint32_t)from, (uint32_t)(to + (quoted && !marked)), &instead, &what);
        marked = true;
    }
}

/* ---- calls ---- */

static void put_callers(const code_index *x, const char *callee, base_buf *out)
{
    code_caller *callers;
    const uint32_t n = code_index_callers(x, callee, MOST_CALLERS, &callers);
    const uint32_t told = n < MOST_CALLERS ? n : MOST_CALLERS;
    if (n == 0) base_buf_puts(out, "no function of this tree");
    for (uint32_t i = 0; i < told; i++) {
        base_buf_puts(out, i == 0 ? "" : i + 1 == n ? " and " : ", ");
        if (*callers[i].name)
            base_buf_printf(out, "`%s` (%s:%u)", callers[i].name, callers[i].path, callers[i].line);
        else
            base_buf_printf(out, "%s:%u", callers[i].path, callers[i].line);
    }
    if (n > told) base_buf_printf(out, " and %u more", n - told);
    code_callers_free(callers, told);
}

static void put_calls(edits *e, const code_index *x, const char *answer, size_t n)
{
    code_false_claim *claims;
    const uint32_t n_claims = code_find_false_claims(x, answer, n, &claims);
    for (uint32_t i = 0; i < n_claims; i++) {
        const code_false_claim *c = &claims[i];
        const int length = (int)(c->to - c->from);
        base_buf callers = {0}, instead = {0}, what = {0};
        put_callers(x, c->callee, &callers);
        base_buf_printf(&instead, "%s [corrected from %.*s]", callers.data, length, answer + c->from);
        base_buf_printf(
            &what, "%s is called by %s, not by %.*s", c->callee, callers.data, length, answer + c->from);
        add_edit(e, c->from, c->to, &instead, &what);
        base_buf_free(&callers);
    }
    code_false_claims_free(claims, n_claims);
}

uint32_t code_correct_answer(const code_index *x, const char *answer, size_t n, char *const *changed,
    size_t n_changed, bool is_whole, base_buf *out, base_buf *what)
{
    code_checked *checked;
    edits e = {0};
    const uint32_t count = code_places_check(x, answer, n, MOST_CHECKED, &checked);
    for (uint32_t i = 0; i < count; i++) {
        const code_checked *c = &checked[i];
        const bool is_cited =
            c->state == CODE_PLACE_DEFINED && c->cited_to > c->cited_from && c->cited_to <= n;
        if (is_cited && code_index_is_sole(x, c->name, NULL) &&
            !is_test_to_come(x, answer + c->cited_from, c->cited_to - c->cited_from) &&
            !is_in_any(answer + c->cited_from, c->cited_to - c->cited_from, changed, n_changed))
            put_place(&e, c, answer);
        if (is_whole && c->meant != NULL) put_name(&e, c, answer, n);
    }
    if (is_whole) put_calls(&e, x, answer, n);
    code_places_checked_free(checked, count);
    if (e.n != 0) qsort(e.all, e.n, sizeof *e.all, by_place);
    size_t at = 0;
    uint32_t corrected = 0;
    for (uint32_t i = 0; i < e.n; i++) {
        edit *c = &e.all[i];
        if (c->from >= at) {
            base_buf_add(out, answer + at, c->from - at);
            base_buf_puts(out, c->instead);
            if (c->what != NULL) base_buf_printf(what, "%s%s", what->len ? "\n" : "", c->what);
            at = c->to;
            corrected++;
        }
        free(c->instead);
        free(c->what);
    }
    if (corrected) base_buf_add(out, answer + at, n - at);
    free(e.all);
    return corrected;
}
