/*
 * A table of strings with small numbers: open addressing over base_hash_keyed, text in an arena. For paths,
 * identifiers and words.
 */
#include "code/index_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { BLOCK_BYTES = 1 << 16 };

static char *keep(code_strings *s, const char *text, size_t n)
{
    if (s->block == NULL || s->block_size - s->block_used < n + 1) {
        const size_t size = sizeof(char *) + (n + 1 > BLOCK_BYTES ? n + 1 : BLOCK_BYTES);
        char *block = base_xmalloc(size);
        memcpy(block, &s->block, sizeof(char *));
        s->block = block;
        s->block_size = size;
        s->block_used = sizeof(char *);
    }
    char *own = s->block + s->block_used;
    memcpy(own, text, n);
    own[n] = '\0';
    s->block_used += n + 1;
    return own;
}

static void place(code_strings *s, uint32_t id)
{
    uint32_t at = (uint32_t)s->hashes[id] & (s->n_table - 1);
    while (s->table[at] != 0) at = (at + 1) & (s->n_table - 1);
    s->table[at] = id + 1;
}

static uint32_t find(const code_strings *s, const char *text, size_t n, uint64_t hash)
{
    if (s->n_table == 0) return UINT32_MAX;
    for (uint32_t at = (uint32_t)hash & (s->n_table - 1); s->table[at] != 0;
         at = (at + 1) & (s->n_table - 1)) {
        const uint32_t id = s->table[at] - 1;
        if (s->hashes[id] == hash && strncmp(s->strings[id], text, n) == 0 && s->strings[id][n] == '\0')
            return id;
    }
    return UINT32_MAX;
}

uint32_t code_strings_find(const code_strings *s, const char *text, size_t n)
{
    return find(s, text, n, base_hash_keyed(text, n));
}

uint32_t code_strings_add(code_strings *s, const char *text, size_t n)
{
    const uint64_t hash = base_hash_keyed(text, n);
    const uint32_t known = find(s, text, n, hash);
    if (known != UINT32_MAX) return known;
    base_grow(&s->strings, &s->cap, (size_t)s->n + 1, sizeof *s->strings);
    base_grow(&s->hashes, &s->cap_hashes, (size_t)s->n + 1, sizeof *s->hashes);
    s->strings[s->n] = keep(s, text, n);
    s->hashes[s->n] = hash;
    s->n++;
    if (s->n * 2 > s->n_table) {
        free(s->table);
        s->n_table = s->n_table != 0 ? s->n_table * 2 : 1024;
        s->table = base_xcalloc(s->n_table, sizeof *s->table);
        for (uint32_t id = 0; id < s->n; id++) place(s, id);
    } else {
        place(s, s->n - 1);
    }
    return s->n - 1;
}

void code_strings_free(code_strings *s)
{
    for (char *block = s->block; block != NULL;) {
        char *before;
        memcpy(&before, block, sizeof before);
        free(block);
        block = before;
    }
    free(s->strings);
    free(s->hashes);
    free(s->table);
    *s = (code_strings){0};
}
