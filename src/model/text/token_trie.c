/*
 * Building the flat trie: ids sorted by their bytes, then one pass that opens a node for every byte that the
 * piece before does not share.
 */
#include "model/text/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct entry {
    base_str piece;
    int32_t id;
} entry;

static int by_bytes(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    size_t n = x->piece.len < y->piece.len ? x->piece.len : y->piece.len;
    int order = memcmp(x->piece.ptr, y->piece.ptr, n);
    if (order) return order;
    if (x->piece.len != y->piece.len) return x->piece.len < y->piece.len ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static uint32_t shared_prefix(base_str a, base_str b)
{
    size_t n = a.len < b.len ? a.len : b.len, i = 0;
    while (i < n && a.ptr[i] == b.ptr[i]) i++;
    return (uint32_t)i;
}

/*
 * Opens the nodes of `pieces` in order; `open` holds the places of the nodes from the root to the last one.
 */
static bool add_nodes(token_trie *trie, const entry *entries, uint32_t n, uint32_t *open)
{
    size_t cap = 0, total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += entries[i].piece.len - (i ? shared_prefix(entries[i - 1].piece, entries[i].piece) : 0);
    if (total > UINT32_MAX || !base_mul(total ? total : 1, sizeof *trie->nodes, &cap)) return false;
    if (!(trie->nodes = malloc(cap))) return false;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        base_str p = entries[i].piece;
        uint32_t keep = i ? shared_prefix(entries[i - 1].piece, p) : 0;
        for (; depth > keep; depth--) trie->nodes[open[depth]].n_nodes = trie->n_nodes - open[depth];
        if (depth == p.len) { /* the same bytes as the one before */
            trie->same[entries[i].id] = entries[i - 1].id;
            trie->nodes[open[depth]].id = entries[i].id;
            continue;
        }
        while (depth < p.len) {
            open[++depth] = trie->n_nodes;
            trie->nodes[trie->n_nodes++] = (token_trie_node){-1, 1, depth, (uint8_t)p.ptr[depth - 1]};
        }
        trie->nodes[open[depth]].id = entries[i].id;
        if (depth > trie->max_depth) trie->max_depth = depth;
    }
    for (; depth > 0; depth--) trie->nodes[open[depth]].n_nodes = trie->n_nodes - open[depth];
    return true;
}

token_trie *token_trie_new(const base_str *piece, uint32_t n)
{
    uint32_t n_entries = 0;
    size_t longest = 0;
    token_trie *trie = base_xcalloc(1, sizeof *trie);
    entry *entries = malloc((size_t)n * sizeof *entries);
    uint32_t *open = NULL;
    trie->same = malloc((size_t)n * sizeof *trie->same);
    bool fine = entries && trie->same;
    for (uint32_t i = 0; fine && i < n; i++) {
        trie->same[i] = -1;
        if (piece[i].len == 0) continue;
        entries[n_entries++] = (entry){piece[i], (int32_t)i};
        if (piece[i].len > longest) longest = piece[i].len;
    }
    if (fine && n_entries) qsort(entries, n_entries, sizeof *entries, by_bytes);
    fine = fine && (open = malloc((longest + 1) * sizeof *open)) && add_nodes(trie, entries, n_entries, open);
    free(entries);
    free(open);
    if (fine) return trie;
    token_trie_free(trie);
    return NULL;
}

void token_trie_free(token_trie *trie)
{
    if (!trie) return;
    free(trie->nodes);
    free(trie->same);
    free(trie);
}
