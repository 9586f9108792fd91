/*
 * Merges of a word: a linked list of symbols and a heap of neighbouring pairs ordered by (rank, place), so
 * that a word of n bytes costs O(n log n) whatever it is. A pair that is no longer what its place holds is
 * stale and skipped.
 */
#include "model/text/tokenizer_bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

typedef struct bpe_pair {
    uint32_t rank, place, left, right, result;
} bpe_pair;

/* ---- the table ---- */

static size_t slot_of(const bpe_table *t, uint32_t left, uint32_t right)
{
    uint64_t x = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)(x >> 32) & (t->n_slots - 1);
    while (t->slots[at].result != UINT32_MAX && (t->slots[at].left != left || t->slots[at].right != right))
        at = (at + 1) & (t->n_slots - 1);
    return at;
}

int bpe_table_new(bpe_table *t, uint64_t n_merges, base_err *err)
{
    size_t bytes;
    t->n_slots = 16;
    while (t->n_slots < n_merges + n_merges / 2) t->n_slots *= 2;
    if (!base_mul(t->n_slots, sizeof *t->slots, &bytes) || !(t->slots = malloc(bytes)))
        return base_fail(err, BASE_E_NOMEM, "no memory for %llu merges", (unsigned long long)n_merges);
    memset(t->slots, 0xFF, bytes);
    return 0;
}

void bpe_table_free(bpe_table *t)
{
    free(t->slots);
}

void bpe_table_add(bpe_table *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t result)
{
    bpe_merge *m = &t->slots[slot_of(t, left, right)];
    if (m->result == UINT32_MAX) *m = (bpe_merge){left, right, rank, result};
}

/* ---- the heap ---- */

static bool earlier(const bpe_pair *a, const bpe_pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

static void heap_push(bpe_scratch *s, bpe_pair pair)
{
    size_t at = s->n_heap++;
    base_grow(&s->heap, &s->heap_cap, s->n_heap, sizeof *s->heap);
    for (; at && earlier(&pair, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = pair;
}

static bpe_pair heap_pop(bpe_scratch *s)
{
    bpe_pair top = s->heap[0], last = s->heap[--s->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < s->n_heap; at = child) {
        if (child + 1 < s->n_heap && earlier(&s->heap[child + 1], &s->heap[child])) child++;
        if (!earlier(&s->heap[child], &last)) break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = last;
    return top;
}

/* ---- a word ---- */

typedef struct merging {
    bpe_scratch *s;
    const char *word;
    size_t n;
    bpe_find_fn *find;
    const void *user;
} merging;

static void push_pair(const merging *m, int32_t left)
{
    const bpe_symbol *symbols = m->s->symbols;
    bpe_result found;
    if (left < 0 || symbols[left].after < 0) return;
    int32_t right = symbols[left].after, end = symbols[right].after;
    size_t n = (end < 0 ? m->n : (size_t)end) - (size_t)left;
    if (m->find(m->user, symbols[left].id, symbols[right].id, m->word + left, n, &found))
        heap_push(
            m->s, (bpe_pair){found.rank, (uint32_t)left, symbols[left].id, symbols[right].id, found.id});
}

void bpe_merge_all(bpe_scratch *s, const char *word, size_t n, bpe_find_fn *find, const void *user)
{
    const merging m = {s, word, n, find, user};
    s->n_heap = 0;
    for (int32_t i = 0; i >= 0; i = s->symbols[i].after) push_pair(&m, i);
    while (s->n_heap) {
        bpe_pair p = heap_pop(s);
        bpe_symbol *left = &s->symbols[p.place];
        if (left->id != p.left || left->after < 0 || s->symbols[left->after].id != p.right) continue;
        bpe_symbol *right = &s->symbols[left->after];
        left->id = p.result;
        left->after = right->after;
        right->id = UINT32_MAX; /* no pair names it */
        if (left->after >= 0) s->symbols[left->after].before = (int32_t)p.place;
        push_pair(&m, left->before);
        push_pair(&m, (int32_t)p.place);
    }
}

static bool find_merge(
    const void *user, uint32_t left, uint32_t right, const char *at, size_t n, bpe_result *ret)
{
    const bpe_table *t = user;
    const bpe_merge *m = &t->slots[slot_of(t, left, right)];
    (void)at;
    (void)n;
    *ret = (bpe_result){m->rank, m->result};
    return m->result != UINT32_MAX;
}

void bpe_encode(const bpe_table *t, bpe_scratch *s, const char *word, size_t n,
    const uint32_t byte_symbols[256], uint32_t n_vocab, model_ids *out)
{
    if (n == 0) return;
    base_grow(&s->symbols, &s->symbols_cap, n, sizeof *s->symbols);
    for (size_t i = 0; i < n; i++) {
        s->symbols[i] = (bpe_symbol){.id = byte_symbols[(unsigned char)word[i]],
            .before = (int32_t)i - 1,
            .after = i + 1 < n ? (int32_t)i + 1 : -1};
    }
    bpe_merge_all(s, word, n, find_merge, t);
    for (int32_t i = 0; i >= 0; i = s->symbols[i].after)
        if (s->symbols[i].id < n_vocab) model_ids_add(out, (int32_t)s->symbols[i].id);
}

void bpe_encode_letters(const bpe_table *t, bpe_scratch *s, const char *word, size_t n, bpe_letter_fn *letter,
    const void *user, const uint32_t byte_ids[256], uint32_t n_vocab, model_ids *out)
{
    if (n == 0) return;
    int32_t before = -1;
    base_grow(&s->symbols, &s->symbols_cap, n, sizeof *s->symbols);
    for (size_t i = 0, n_letter; i < n; i += n_letter) {
        uint32_t cp;
        n_letter = base_utf8_decode(word + i, n - i, &cp);
        const int32_t id = letter(user, word + i, n_letter), behind = (int32_t)(i + n_letter);
        s->symbols[i] = (bpe_symbol){
            .id = id < 0 ? n_vocab : (uint32_t)id, .before = before, .after = i + n_letter < n ? behind : -1};
        before = (int32_t)i;
    }
    bpe_merge_all(s, word, n, find_merge, t);
    for (int32_t i = 0; i >= 0; i = s->symbols[i].after) {
        const size_t end = s->symbols[i].after < 0 ? n : (size_t)s->symbols[i].after;
        if (s->symbols[i].id < n_vocab) model_ids_add(out, (int32_t)s->symbols[i].id);
        for (size_t k = (size_t)i; s->symbols[i].id >= n_vocab && k < end; k++)
            if (byte_ids[(unsigned char)word[k]] < n_vocab)
                model_ids_add(out, (int32_t)byte_ids[(unsigned char)word[k]]);
    }
}

void bpe_scratch_free(bpe_scratch *s)
{
    free(s->symbols);
    free(s->heap);
}
