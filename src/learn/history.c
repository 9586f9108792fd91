/* See learn/history.h. */
#include "learn/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

enum { LEAST = 3, MOST = 400 }; /* bytes of a quoted string */

void learn_history_add(
    learn_history *h, kv_origin origin, uint32_t turn, bool new_part, int32_t id, const char *bytes, size_t n)
{
    base_grow(&h->starts, &h->cap_starts, h->n + 2, sizeof *h->starts);
    base_grow(&h->ids, &h->cap_ids, h->n + 1, sizeof *h->ids);
    base_grow(&h->fixed, &h->cap_fixed, h->n + 1, sizeof *h->fixed);
    const learn_part *last = h->n_parts ? &h->parts[h->n_parts - 1] : NULL;
    if (new_part || !last || last->origin != origin || last->turn != turn) {
        base_grow(&h->parts, &h->cap_parts, h->n_parts + 1, sizeof *h->parts);
        h->parts[h->n_parts++] =
            (learn_part){.origin = origin, .turn = turn, .from = (uint32_t)h->n, .to = (uint32_t)h->n};
    }
    h->parts[h->n_parts - 1].to++;
    h->starts[h->n] = (uint32_t)h->text.len;
    h->ids[h->n] = id;
    h->fixed[h->n++] = origin == KV_ORIGIN_SCAFFOLD || origin == KV_ORIGIN_SYSTEM;
    if (n) base_buf_add(&h->text, bytes, n);
    h->starts[h->n] = (uint32_t)h->text.len;
}

void learn_history_end_part(learn_history *h)
{
    const learn_part *last = h->n_parts ? &h->parts[h->n_parts - 1] : NULL;
    if (!last || (last->origin != KV_ORIGIN_USER && last->origin != KV_ORIGIN_TOOL)) return;
    base_grow(&h->places, &h->cap_places, h->n_places + 1, sizeof *h->places);
    h->places[h->n_places++] =
        (learn_place){.turn = last->turn, .from = last->from, .to = last->to, .n_calls = h->n_calls};
}

void learn_history_add_call(learn_history *h, const char *arguments)
{
    base_grow(&h->calls, &h->cap_calls, h->n_calls + 1, sizeof *h->calls);
    h->calls[h->n_calls++] = base_xstrdup(arguments);
}

void learn_history_cut(learn_history *h, size_t n)
{
    if (n >= h->n) return;
    h->n = n;
    h->text.len = h->starts[n];
    while (h->n_parts && h->parts[h->n_parts - 1].from >= n) h->n_parts--;
    if (h->n_parts && h->parts[h->n_parts - 1].to > n) h->parts[h->n_parts - 1].to = (uint32_t)n;
    while (h->n_places && h->places[h->n_places - 1].to > n) h->n_places--;
}

void learn_history_free(learn_history *h)
{
    for (size_t i = 0; i < h->n_calls; i++) free(h->calls[i]);
    base_buf_free(&h->text);
    free(h->starts);
    free(h->ids);
    free(h->fixed);
    free(h->parts);
    free(h->places);
    free(h->calls);
    *h = (learn_history){0};
}

/* Marks the tokens before the place whose bytes a literal occurrence of the string touches. */
static bool mark_string(const learn_history *h, const char *s, size_t n, const learn_place *p, bool *positive)
{
    const size_t end = h->n ? h->starts[p->from] : 0;
    bool any = false;
    for (size_t at = 0; n >= LEAST && n <= MOST && at + n <= end;) {
        const char *hit = memmem(h->text.data + at, end - at, s, n);
        if (!hit) break;
        const size_t from = (size_t)(hit - h->text.data);
        size_t low = 0, high = p->from; /* the token that byte `from` lies in */
        while (low + 1 < high) {
            const size_t middle = (low + high) / 2;
            *(h->starts[middle] <= from ? &low : &high) = middle;
        }
        for (size_t t = low; t < p->from && h->starts[t] < from + n; t++)
            if (!h->fixed[t] && h->starts[t + 1] > from) positive[t] = any = true;
        at = from + 1;
    }
    return any;
}

static bool mark_strings(const learn_history *h, const base_json *v, const learn_place *p, bool *positive)
{
    bool any = false;
    if (v->type == BASE_JSON_STRING) any = mark_string(h, v->string, v->string_len, p, positive);
    if (v->type == BASE_JSON_NUMBER) {
        base_buf number = {0};
        base_json_put_num(&number, v->number);
        any = mark_string(h, number.data, number.len, p, positive);
        base_buf_free(&number);
    }
    for (const base_json *child = v->first; child; child = child->next)
        any |= mark_strings(h, child, p, positive);
    return any;
}

bool learn_history_quoted(const learn_history *h, const learn_place *p, uint32_t ahead, bool *positive)
{
    bool any = false;
    memset(positive, 0, p->from * sizeof *positive);
    for (size_t c = p->n_calls; c < h->n_calls && c < p->n_calls + ahead; c++) {
        base_json_doc *doc = NULL;
        if (base_json_parse(h->calls[c], strlen(h->calls[c]), &doc, NULL)) continue;
        any |= mark_strings(h, base_json_root(doc), p, positive);
        base_json_free(doc);
    }
    return any;
}
