/* Live lists; see list.h. */
#include "kv/rows/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "kv/rows/bits.h"

static kv_list *list_new(uint32_t n_words)
{
    kv_list *list = calloc(1, sizeof *list);
    if (!list) return NULL;
    list->bits = calloc(n_words ? n_words : 1, sizeof *list->bits);
    if (!list->bits) {
        free(list);
        return NULL;
    }
    return list;
}

static void list_free(kv_list *list)
{
    if (!list) return;
    free(list->runs);
    free(list->bits);
    free(list);
}

static void list_unref(kv_list *list)
{
    if (list && --list->refs == 0) list_free(list);
}

static int no_memory(base_err *err)
{
    return base_fail(err, BASE_E_NOMEM, "no memory for the lists of the cache's rows");
}

/* Room for n more runs. */
static bool reserve_runs(kv_list *list, uint32_t n)
{
    if (list->n_runs + n <= list->cap_runs) return true;
    const uint32_t cap = (list->n_runs + n) * 2 + 16;
    model_run *runs = realloc(list->runs, cap * sizeof *runs);
    if (!runs) return false;
    list->runs = runs;
    list->cap_runs = cap;
    return true;
}

/* [from, to) behind everything in the list; the room is reserved. */
static void push_rows(kv_list *list, uint32_t from, uint32_t to)
{
    list->n_rows += to - from;
    while (from < to) {
        model_run *last = list->n_runs ? &list->runs[list->n_runs - 1] : NULL;
        const uint32_t block_end = (from / MODEL_ROWS_BLOCK + 1) * MODEL_ROWS_BLOCK;
        const uint32_t end = to < block_end ? to : block_end;
        if (last && last->index + last->n == from && from % MODEL_ROWS_BLOCK)
            last->n += end - from;
        else
            list->runs[list->n_runs++] = (model_run){.slot = from, .index = from, .n = end - from};
        from = end;
    }
}

static bool rebuild_runs(kv_list *list, uint32_t n_tokens)
{
    list->n_runs = list->n_rows = 0;
    for (size_t from = kv_bits_next(list->bits, 0, n_tokens, true); from < n_tokens;) {
        const size_t to = kv_bits_next(list->bits, from, n_tokens, false);
        if (!reserve_runs(list, (uint32_t)(to / MODEL_ROWS_BLOCK - from / MODEL_ROWS_BLOCK + 2)))
            return false;
        push_rows(list, (uint32_t)from, (uint32_t)to);
        from = kv_bits_next(list->bits, to, n_tokens, true);
    }
    return true;
}

model_run *kv_runs_of_bits(const uint64_t *bits, uint32_t n_tokens, uint32_t *ret_n, uint32_t *ret_rows)
{
    kv_list list = {.bits = (uint64_t *)(uintptr_t)bits};
    if (!reserve_runs(&list, 1) || !rebuild_runs(&list, n_tokens)) {
        free(list.runs);
        return NULL;
    }
    *ret_n = list.n_runs;
    *ret_rows = list.n_rows;
    return list.runs;
}

static void refresh_view(kv_lists *l)
{
    for (uint32_t lane = 0; lane < l->n_lanes; lane++) {
        const kv_list *list = l->lane[lane];
        l->view[lane] = (model_lane_list){.runs = list->runs, .n_runs = list->n_runs, .n_rows = list->n_rows};
    }
}

/* Is this the first lane that uses its list? Few groups share lists, so the walk is short. */
static bool is_first_use(const kv_lists *l, uint32_t lane)
{
    if (l->lane[lane]->refs == 1) return true;
    for (uint32_t i = 0; i < lane; i++)
        if (l->lane[i] == l->lane[lane]) return false;
    return true;
}

int kv_lists_init(kv_lists *l, uint32_t n_lanes, uint32_t max_tokens, base_err *err)
{
    *l = (kv_lists){.n_lanes = n_lanes, .n_words = (uint32_t)kv_bits_words(max_tokens)};
    l->lane = calloc(n_lanes, sizeof(kv_list *));
    l->view = calloc(n_lanes, sizeof *l->view);
    kv_list *list = list_new(l->n_words);
    if (!l->lane || !l->view || !list || !reserve_runs(list, 1)) {
        list_free(list);
        free(l->lane);
        free(l->view);
        *l = (kv_lists){0};
        return no_memory(err);
    }
    list->refs = n_lanes;
    for (uint32_t lane = 0; lane < n_lanes; lane++) l->lane[lane] = list;
    refresh_view(l);
    return 0;
}

void kv_lists_fini(kv_lists *l)
{
    for (uint32_t lane = 0; lane < l->n_lanes && l->lane; lane++) list_unref(l->lane[lane]);
    free(l->lane);
    free(l->view);
    *l = (kv_lists){0};
}

static kv_list *list_copy(const kv_list *from, uint32_t n_words)
{
    kv_list *list = list_new(n_words);
    if (!list || !reserve_runs(list, from->n_runs + 1)) {
        list_free(list);
        return NULL;
    }
    memcpy(list->bits, from->bits, n_words * sizeof *list->bits);
    if (from->n_runs) memcpy(list->runs, from->runs, from->n_runs * sizeof *list->runs);
    list->n_runs = from->n_runs;
    list->n_rows = from->n_rows;
    return list;
}

int kv_lists_copy(kv_lists *l, const kv_lists *other, base_err *err)
{
    *l = (kv_lists){.n_lanes = other->n_lanes, .n_words = other->n_words, .n_tokens = other->n_tokens};
    l->lane = calloc(l->n_lanes, sizeof(kv_list *));
    l->view = calloc(l->n_lanes, sizeof *l->view);
    bool fine = l->lane && l->view;
    for (uint32_t lane = 0; fine && lane < l->n_lanes; lane++) {
        for (uint32_t i = 0; i < lane && !l->lane[lane]; i++)
            if (other->lane[i] == other->lane[lane]) l->lane[lane] = l->lane[i];
        if (!l->lane[lane]) l->lane[lane] = list_copy(other->lane[lane], l->n_words);
        if (l->lane[lane])
            l->lane[lane]->refs++;
        else
            fine = false;
    }
    if (!fine) {
        kv_lists_fini(l);
        return no_memory(err);
    }
    refresh_view(l);
    return 0;
}

int kv_lists_reserve(kv_lists *l, uint32_t max_tokens, base_err *err)
{
    const uint32_t n_words = (uint32_t)kv_bits_words(max_tokens);
    if (n_words <= l->n_words) return 0;
    for (uint32_t lane = 0; lane < l->n_lanes; lane++) {
        if (!is_first_use(l, lane)) continue;
        uint64_t *bits = realloc(l->lane[lane]->bits, n_words * sizeof *bits);
        if (!bits) return no_memory(err);
        memset(bits + l->n_words, 0, (n_words - l->n_words) * sizeof *bits);
        l->lane[lane]->bits = bits;
    }
    l->n_words = n_words;
    return 0;
}

int kv_lists_append(kv_lists *l, uint32_t n, base_err *err)
{
    const uint32_t from = l->n_tokens, to = from + n;
    for (uint32_t lane = 0; lane < l->n_lanes; lane++)
        if (!reserve_runs(l->lane[lane], n / MODEL_ROWS_BLOCK + 2)) {
            refresh_view(l); /* earlier lists may have moved */
            return no_memory(err);
        }
    for (uint32_t lane = 0; lane < l->n_lanes; lane++) {
        if (!is_first_use(l, lane)) continue;
        kv_bits_set_range(l->lane[lane]->bits, from, to);
        push_rows(l->lane[lane], from, to);
    }
    l->n_tokens = to;
    refresh_view(l);
    return 0;
}

void kv_lists_truncate(kv_lists *l, uint32_t n)
{
    if (n >= l->n_tokens) return;
    for (uint32_t lane = 0; lane < l->n_lanes; lane++) {
        kv_list *list = l->lane[lane];
        if (!is_first_use(l, lane)) continue;
        kv_bits_clear_range(list->bits, n, l->n_tokens);
        while (list->n_runs && list->runs[list->n_runs - 1].index + list->runs[list->n_runs - 1].n > n) {
            model_run *last = &list->runs[list->n_runs - 1];
            const uint32_t keep = last->index < n ? n - last->index : 0;
            list->n_rows -= last->n - keep;
            last->n = keep;
            if (keep) break;
            list->n_runs--;
        }
    }
    l->n_tokens = n;
    refresh_view(l);
}

int kv_lists_flip(kv_lists *l, const uint64_t *flips, base_err *err)
{
    const uint32_t n_words = (uint32_t)kv_bits_words(l->n_tokens);
    kv_list **lane_new = calloc(l->n_lanes, sizeof(kv_list *));
    uint64_t *hashes = calloc(l->n_lanes, sizeof *hashes), *bits = calloc(n_words + 1, sizeof *bits);
    bool fine = lane_new && hashes && bits;
    for (uint32_t lane = 0; fine && lane < l->n_lanes; lane++) {
        const uint64_t *flip = flips + (size_t)lane * n_words, *old = l->lane[lane]->bits;
        for (uint32_t w = 0; w < n_words; w++) bits[w] = old[w] ^ flip[w];
        hashes[lane] = base_hash64(bits, n_words * sizeof *bits, 0);
        for (uint32_t i = 0; i < lane && !lane_new[lane]; i++)
            if (hashes[i] == hashes[lane] && !memcmp(lane_new[i]->bits, bits, n_words * sizeof *bits))
                lane_new[lane] = lane_new[i];
        if (!lane_new[lane]) {
            kv_list *list = list_new(l->n_words);
            fine = list != NULL;
            if (!fine) break;
            lane_new[lane] = list;
            memcpy(list->bits, bits, n_words * sizeof *bits);
            fine = reserve_runs(list, 1) && rebuild_runs(list, l->n_tokens);
        }
        lane_new[lane]->refs++;
    }
    if (fine)
        for (uint32_t lane = 0; lane < l->n_lanes; lane++) {
            list_unref(l->lane[lane]);
            l->lane[lane] = lane_new[lane];
        }
    else if (lane_new)
        for (uint32_t lane = 0; lane < l->n_lanes; lane++) {
            kv_list *list = lane_new[lane];
            if (list && list->refs == 0)
                list->refs = 1; /* made, and failed before its first use was counted */
            list_unref(list);
        }
    free(lane_new);
    free(hashes);
    free(bits);
    if (!fine) return no_memory(err);
    refresh_view(l);
    return 0;
}
