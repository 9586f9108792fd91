/* See tokenizer_special.h. */
#include "model/text/tokenizer_special.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MAX_SPECIALS = 16384 };

/* FNV-1a: the hash of a text one byte longer is one step away. */
static const uint64_t hash_start = 0xcbf29ce484222325u;

static uint64_t hash_step(uint64_t hash, char c)
{
    return (hash ^ (unsigned char)c) * 0x100000001b3u;
}

static size_t slot_of(const special_table *t, uint64_t hash)
{
    return (hash ^ hash >> 32) & (t->n_slots - 1);
}

/* The next special of this text from *slot on, or NULL; moves *slot behind it. */
static const special *next_of(const special_table *t, size_t *slot, const char *text, size_t n)
{
    for (uint32_t place; (place = t->slots[*slot]);) {
        const special *s = &t->list[place - 1];
        *slot = (*slot + 1) & (t->n_slots - 1);
        if (s->n == n && memcmp(s->text, text, n) == 0) return s;
    }
    return NULL;
}

static int longest_first(const void *a, const void *b)
{
    const special *x = a, *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void set_begin(special_table *t, unsigned first, unsigned second)
{
    unsigned bit = first << 8 | second;
    t->begins[bit / 8] |= (uint8_t)(1u << bit % 8);
}

static void index_special(special_table *t, uint32_t place)
{
    const special *s = &t->list[place];
    uint64_t hash = hash_start;
    for (uint32_t i = 0; i < s->n; i++) hash = hash_step(hash, s->text[i]);
    size_t slot = slot_of(t, hash);
    while (t->slots[slot]) slot = (slot + 1) & (t->n_slots - 1);
    t->slots[slot] = place + 1;
    t->lengths[s->n] = 1;
    if (s->n > 1) set_begin(t, (unsigned char)s->text[0], (unsigned char)s->text[1]);
    for (unsigned next = 0; s->n == 1 && next < 256; next++) set_begin(t, (unsigned char)s->text[0], next);
}

int special_table_load(special_table *t, const piece_table *pieces, base_err *err)
{
    size_t cap = 0;
    for (uint32_t i = 0; i < pieces->n; i++) {
        base_str p = piece_at(pieces, i);
        uint8_t type = pieces->types[i];
        if (p.len == 0 || (type != PIECE_CONTROL && type != PIECE_UNKNOWN && type != PIECE_USER)) continue;
        if (t->n == MAX_SPECIALS)
            return base_fail(
                err, BASE_E_LIMIT, "the vocabulary has more than %d special tokens", MAX_SPECIALS);
        base_grow(&t->list, &cap, t->n + 1, sizeof *t->list);
        t->list[t->n++] = (special){i, (uint32_t)p.len, p.ptr, type == PIECE_USER};
        if (p.len > t->longest) t->longest = (uint32_t)p.len;
    }
    if (t->n) qsort(t->list, t->n, sizeof *t->list, longest_first);
    t->n_slots = 16;
    while (t->n_slots < (size_t)t->n * 2) t->n_slots *= 2;
    t->slots = base_xcalloc(t->n_slots, sizeof *t->slots);
    t->begins = base_xcalloc(65536 / 8, 1);
    t->lengths = base_xcalloc((size_t)t->longest + 1, 1);
    for (uint32_t i = 0; i < t->n; i++) index_special(t, i);
    return 0;
}

void special_table_free(special_table *t)
{
    free(t->list);
    free(t->slots);
    free(t->begins);
    free(t->lengths);
}

const special *special_find(const special_table *t, const char *text, size_t n)
{
    uint64_t hash = hash_start;
    for (size_t i = 0; i < n; i++) hash = hash_step(hash, text[i]);
    size_t slot = slot_of(t, hash);
    return next_of(t, &slot, text, n);
}

uint32_t special_occurring(const special_table *t, const char *text, size_t n, bool all, uint32_t *ret)
{
    uint8_t *occurs = base_xcalloc((size_t)t->n + 1, 1);
    uint32_t n_ret = 0;
    for (size_t at = 0; at < n; at++) {
        unsigned bit =
            (unsigned)(unsigned char)text[at] << 8 | (at + 1 < n ? (unsigned char)text[at + 1] : 0);
        if (!(t->begins[bit / 8] >> bit % 8 & 1)) continue;
        uint64_t hash = hash_start;
        for (size_t k = 1; k <= t->longest && k <= n - at; k++) {
            hash = hash_step(hash, text[at + k - 1]);
            if (!t->lengths[k]) continue;
            size_t slot = slot_of(t, hash);
            for (const special *s; (s = next_of(t, &slot, text + at, k));) occurs[s - t->list] = 1;
        }
    }
    for (uint32_t i = 0; i < t->n; i++)
        if (occurs[i] && (all || t->list[i].user)) ret[n_ret++] = i;
    free(occurs);
    return n_ret;
}
