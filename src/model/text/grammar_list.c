/* A sorted list and a range in it: see the header. */
#include "model/text/grammar_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b); /* strcmp compares as unsigned */
}

static char *in_json(const char *text, size_t n)
{
    base_buf json = {0};
    base_json_put_str(&json, text, n); /* with its quotes */
    char *inside = base_xstrndup(json.data + 1, json.len - 2);
    base_buf_free(&json);
    return inside;
}

static char *on_line(const char *text, size_t n)
{
    return strpbrk(text, "\r\n") ? NULL : base_xstrndup(text, n);
}

static void sort_and_drop_equals(grammar_list *l)
{
    if (l->n) qsort(l->items, l->n, sizeof *l->items, by_bytes);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        if (kept && strcmp(l->items[kept - 1], l->items[i]) == 0)
            free(l->items[i]);
        else
            l->items[kept++] = l->items[i];
    }
    l->n = kept;
}

static void fill(grammar_list *l, const char *const *texts, char *(*write)(const char *text, size_t n))
{
    size_t cap = 0;
    *l = (grammar_list){0};
    for (; texts && *texts; texts++) {
        size_t n = strlen(*texts);
        char *written = n && base_utf8_valid(*texts, n) ? write(*texts, n) : NULL;
        if (!written) continue;
        base_grow(&l->items, &cap, l->n + 1, sizeof *l->items);
        l->items[l->n++] = written;
    }
    sort_and_drop_equals(l);
}

void grammar_list_fill(grammar_list *l, const char *const *texts)
{
    fill(l, texts, in_json);
}

void grammar_list_fill_lines(grammar_list *l, const char *const *texts)
{
    fill(l, texts, on_line);
}

void grammar_list_free(grammar_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) free(l->items[i]);
    free(l->items);
    *l = (grammar_list){0};
}

/*
 * The first item of [from, to) whose byte at `depth` is at least `byte`. All agree before it; an end counts
 * as 0.
 */
static uint32_t lower_bound(const grammar_list *l, grammar_range r, unsigned byte)
{
    while (r.from < r.to) {
        uint32_t middle = r.from + (r.to - r.from) / 2;
        if ((uint8_t)l->items[middle][r.depth] < byte)
            r.from = middle + 1;
        else
            r.to = middle;
    }
    return r.from;
}

bool grammar_list_narrow(const grammar_list *l, grammar_range *r, uint8_t byte)
{
    if (byte == 0) return false;
    uint32_t from = lower_bound(l, *r, byte), to = lower_bound(l, *r, byte + 1u);
    if (from == to) return false;
    *r = (grammar_range){from, to, r->depth + 1};
    return true;
}

bool grammar_list_is_whole(const grammar_list *l, const grammar_range *r)
{
    return r->from < r->to && l->items[r->from][r->depth] == 0;
}
