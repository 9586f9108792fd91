/*
 * Where does the model doubt the present text? A small model that is asked to repair a definition mostly
 * copies it: each token of the old text is the likeliest one, the wrong ones too, but these by the least. So
 * the old definition is put behind a call that rewrites it, in a branch of the session, and its tokens are
 * ordered by how little each was ahead of the next best one. A further attempt is then the old text up to
 * such a token, the other token, and what the model writes behind it; the test judges, and the next attempt
 * takes the next doubt. Nothing of it is drawn by chance.
 *
 * Engine thread. attempt.c and tries.c ask for the next one; they know when a test has judged.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/repair/attempt.h"
#include "agent/session/segments.h"
#include "base/mem.h"
#include "code/code.h"

enum { MAX_DOUBTS = 16, MAX_TOKENS = 1024 };

typedef struct doubt {
    uint32_t at; /* byte of the text */
    float behind;
    char *instead;
} doubt;

struct agent_doubts {
    char *text; /* of the definition that they are about */
    doubt *items;
    uint32_t n, next;
};

void agent__doubts_free(agent *a)
{
    agent_doubts *d = a->fix.doubts;
    if (!d) return;
    for (uint32_t i = 0; i < d->n; i++) free(d->items[i].instead);
    free(d->items);
    free(d->text);
    free(d);
    a->fix.doubts = NULL;
}

/* --- what is worth trying ------------------------------------------------------------------------------- */

/*
 * A change of the code, not of its layout, its comments or the fence around it. code: the text without its
 * comments.
 */
static bool is_change(const char *language, const char *code, size_t at, base_str said, base_str instead)
{
    char *words = code_blank_comments(language, instead.ptr, instead.len);
    base_str old = base_str_trim((base_str){code + at, said.len}),
             other = base_str_trim((base_str){words, instead.len});
    bool is_comment = !old.len && base_str_trim(said).len;
    bool change = !is_comment && other.len && !memchr(other.ptr, '`', other.len) &&
                  (old.len != other.len || memcmp(old.ptr, other.ptr, old.len));
    free(words);
    return change;
}

/* --- finding them --------------------------------------------------------------------------------------- */

static int by_doubt(const void *a, const void *b)
{
    const doubt *x = a, *y = b;
    if (x->behind != y->behind) return x->behind < y->behind ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static base_str piece_of(const agent *a, int32_t id)
{
    size_t n = 0;
    const char *piece = agent__piece(a, id, &n);
    return (base_str){piece ? piece : "", piece ? n : 0};
}

/* Tokens that end in front of the body: those are read only. Fewer where a tokenizer's pieces are not the text. */
static size_t count_head(agent *a, const agent_definition *old, const int32_t *ids, size_t n, size_t *ret_at)
{
    size_t i = 0;
    *ret_at = 0;
    for (base_str said; i < n; i++, *ret_at += said.len) {
        said = piece_of(a, ids[i]);
        if (*ret_at + said.len > old->body || memcmp(old->text.data + *ret_at, said.ptr, said.len)) break;
    }
    return i;
}

/* Tokens of the text from byte `at` on, least certain first. */
static void rank(agent *a, agent_doubts *d, const agent_definition *old, size_t at, const int32_t *ids,
    const engine_doubt *found, size_t n)
{
    size_t length = strlen(d->text);
    char *code = code_blank_comments(old->language, d->text, length);
    d->items = base_xcalloc(n ? n : 1, sizeof *d->items);
    for (size_t i = 0; i < n; i++) {
        base_str said = piece_of(a, ids[i]), instead = piece_of(a, found[i].instead);
        if (at + said.len > length || memcmp(d->text + at, said.ptr, said.len))
            break; /* a tokenizer whose pieces are not the text */
        if (at >= old->body && is_change(old->language, code, at, said, instead))
            d->items[d->n++] =
                (doubt){(uint32_t)at, found[i].behind, base_xstrndup(instead.ptr, instead.len)};
        at += said.len;
    }
    free(code);
    qsort(d->items, d->n, sizeof *d->items, by_doubt);
    while (d->n > MAX_DOUBTS) free(d->items[--d->n].instead);
}

static int find(agent *a, const char *head, const agent_definition *old, base_err *err)
{
    model_ids ids = {0};
    int rc = a->engine->ops->encode(a->engine, head, strlen(head), &ids, err);
    size_t n_read = ids.n, at = 0;
    if (!rc) rc = a->engine->ops->encode(a->engine, old->text.data, old->text.len, &ids, err);
    agent__doubts_free(a);
    a->fix.doubts = base_xcalloc(1, sizeof *a->fix.doubts);
    a->fix.doubts->text = base_xstrdup(old->text.data);
    if (!rc && ids.n <= MAX_TOKENS) {
        n_read += count_head(a, old, ids.ids + n_read, ids.n - n_read, &at);
        engine_doubt *found = base_xcalloc(ids.n - n_read + 1, sizeof *found);
        rc = a->engine->ops->doubts(a->engine, ids.ids, (uint32_t)n_read, (uint32_t)ids.n, found, err);
        if (!rc) rank(a, a->fix.doubts, old, at, ids.ids + n_read, found, ids.n - n_read);
        free(found);
    }
    model_ids_free(&ids);
    /* A context that is nearly full, an engine that does not tell: then without. */
    return rc == BASE_E_LIMIT || rc == BASE_E_UNSUPPORTED ? 0 : rc;
}

int agent__doubt_next(agent *a, const char *head, const agent_definition *old, base_buf *out, base_err *err)
{
    if (!(a->engine->can & ENGINE_DOUBTS) || !old->text.len) return 0;
    if (!a->fix.doubts || strcmp(a->fix.doubts->text, old->text.data)) {
        int rc = find(a, head, old, err);
        if (rc) return rc;
    }
    agent_doubts *d = a->fix.doubts;
    if (d->next >= d->n) return 0;
    const doubt *item = &d->items[d->next++];
    base_buf_add(out, old->text.data, item->at);
    base_buf_puts(out, item->instead);
    return 0;
}
