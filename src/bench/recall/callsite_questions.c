/* What may be asked of a document; see bench/recall/callsite.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "bench/recall/callsite.h"

enum {
    NAME_LEAST = 5,
    CONTEXT_LEAST = 2, /* other identifiers in a line with a hidden one */
    CALLERS_LEAST = 2
};

static uint32_t line_of(const callsite_document *d, uint32_t file, uint32_t byte)
{
    for (uint32_t i = 0; i < d->n_lines; i++)
        if (d->lines[i].file == file && d->lines[i].from <= byte && byte < d->lines[i].to) return i;
    return UINT32_MAX;
}

/* How often a name stands in the document. */
static uint32_t count_name(const callsite *b, const char *name, size_t len)
{
    uint32_t n = 0;
    for (size_t i = 0; i < b->doc.n_lines; i++) {
        const callsite_line *l = &b->doc.lines[i];
        const char *text = b->sources[l->file].text.data + l->from;
        size_t pos = 0, from = 0, to = 0;
        while (code_next_identifier(text, l->to - l->from, &pos, &from, &to))
            n += to - from == len && !memcmp(text + from, name, len);
    }
    return n;
}

/* The callee of a call anchor: the last identifier of its core. */
static bool find_callee(const callsite_source *s, const code_anchor *a, uint32_t *ret_from, uint32_t *ret_to)
{
    size_t pos = a->core_from, from = 0, to = 0;
    bool any = false;
    while (code_next_identifier(s->text.data, a->core_to, &pos, &from, &to)) {
        *ret_from = (uint32_t)from;
        *ret_to = (uint32_t)to;
        any = true;
    }
    return any && *ret_to - *ret_from >= NAME_LEAST && *ret_to - *ret_from < RECALL_NAME &&
           !code_is_keyword(s->text.data + *ret_from, *ret_to - *ret_from);
}

static uint32_t count_others(const callsite_source *s, const callsite_line *l, uint32_t name_from)
{
    size_t pos = l->from, from = 0, to = 0;
    uint32_t n = 0;
    while (code_next_identifier(s->text.data, l->to, &pos, &from, &to))
        n += from != name_from && to - from > 1 && !code_is_keyword(s->text.data + from, to - from);
    return n;
}

static callsite_question *add_question(callsite *b, uint32_t file, uint32_t line, uint32_t from, uint32_t to)
{
    base_grow(&b->questions, &b->cap_questions, b->n_questions + 1, sizeof *b->questions);
    callsite_question *q = &b->questions[b->n_questions++];
    *q = (callsite_question){.line = line, .name_from = from, .name_to = to};
    snprintf(q->name, sizeof q->name, "%.*s", (int)(to - from), b->sources[file].text.data + from);
    q->order = callsite_draw(base_hash64(q->name, strlen(q->name), 3), line);
    return q;
}

/* A caller's name and where it begins; false: none, or not in the document. */
static bool find_caller(
    const callsite *b, uint32_t file, const code_anchor *a, const char **ret_name, uint32_t *ret_head)
{
    const callsite_source *s = &b->sources[file];
    const uint32_t at = code_definition_at(s->code, a->core_from);
    if (at == UINT32_MAX) return false;
    const code_definition *d = &s->code->definitions[at];
    *ret_name = d->name;
    *ret_head = line_of(&b->doc, file, d->name_from);
    return *ret_head != UINT32_MAX && strlen(d->name) < RECALL_NAME && d->body_to > d->body_from;
}

/*
 * The callers of every name that some call. More than may be listed: n_callers goes beyond, and the question
 * is dropped.
 */
static void add_to_list(
    callsite *b, uint32_t file, uint32_t line, const code_anchor *a, uint32_t from, uint32_t to)
{
    const callsite_source *s = &b->sources[file];
    const char *caller = NULL;
    uint32_t head = 0;
    callsite_question *q = NULL;
    if (!find_caller(b, file, a, &caller, &head)) return;
    for (size_t i = 0; i < b->n_questions && !q; i++)
        if (strlen(b->questions[i].name) == to - from &&
            !memcmp(b->questions[i].name, s->text.data + from, to - from))
            q = &b->questions[i];
    if (!q) q = add_question(b, file, line, from, to);
    for (uint32_t i = 0; i < q->n_callers && i < CALLSITE_CALLERS; i++)
        if (!strcmp(q->callers[i].name, caller)) return;
    if (q->n_callers < CALLSITE_CALLERS) {
        snprintf(q->callers[q->n_callers].name, RECALL_NAME, "%s", caller);
        q->callers[q->n_callers].call = line;
        q->callers[q->n_callers].head = head;
    }
    q->n_callers++;
}

static int compare_questions(const void *a, const void *b)
{
    const callsite_question *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

void callsite_find_questions(callsite *b)
{
    const callsite_document *d = &b->doc;
    b->n_questions = 0;
    for (uint32_t file = 0; file < b->n_sources; file++) {
        const callsite_source *s = &b->sources[file];
        if (!b->list && file == d->about) continue;
        for (uint32_t i = 0; i < s->code->n_anchors; i++) {
            const code_anchor *a = &s->code->anchors[i];
            uint32_t from = 0, to = 0;
            if (a->kind != CODE_CALL || !find_callee(s, a, &from, &to)) continue;
            const uint32_t at = line_of(d, file, from);
            if (at == UINT32_MAX || d->lines[at].to < to) continue;
            if (b->list) {
                add_to_list(b, file, at, a, from, to);
            } else if (d->lines[at].token_end < d->ids.n * 9 / 10 &&
                       count_others(s, &d->lines[at], from) >= CONTEXT_LEAST &&
                       count_name(b, s->text.data + from, to - from) == 1) {
                add_question(b, file, at, from, to);
            }
        }
    }
    size_t n = 0;
    for (size_t i = 0; i < b->n_questions; i++) {
        const callsite_question *q = &b->questions[i];
        if (!b->list || (q->n_callers >= CALLERS_LEAST && q->n_callers <= CALLSITE_CALLERS))
            b->questions[n++] = *q;
    }
    b->n_questions = n;
    if (n) qsort(b->questions, n, sizeof *b->questions, compare_questions);
}

static uint64_t identity_of(const callsite *b, const callsite_question *q)
{
    const callsite_line *l = &b->doc.lines[q->line];
    const uint32_t parts[] = {l->file, l->number, q->name_from};
    return base_hash64(parts, sizeof parts, 0);
}

uint32_t callsite_keep_new(callsite *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_questions; i++) {
        const uint64_t identity = identity_of(b, &b->questions[i]);
        bool is_new = true;
        for (size_t k = 0; k < b->n_asked && is_new; k++) is_new = b->asked[k] != identity;
        if (is_new) b->questions[n++] = b->questions[i];
    }
    b->n_questions = n;
    if (n > (size_t)b->each) n = (size_t)b->each;
    if (n < (size_t)b->least) return (uint32_t)n;
    base_grow(&b->asked, &b->cap_asked, b->n_asked + n, sizeof *b->asked);
    for (size_t i = 0; i < n; i++) b->asked[b->n_asked++] = identity_of(b, &b->questions[i]);
    return (uint32_t)n;
}
