/* Flat trees, kept by what they were made of (contract: trees.h). */
#include "code/trees.h"

#ifdef KVIST_HAVE_TREE_SITTER

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

enum { MOST_TREES = 4 };

struct code_trees {
    pthread_mutex_t lock;
    struct {
        uint64_t key; /* of grammar and text */
        code_tree tree;
        uint64_t used; /* 0: free */
    } all[MOST_TREES];
    uint64_t clock;
};

code_trees *code_trees_new(void)
{
    code_trees *t = base_xcalloc(1, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void code_trees_free(code_trees *t)
{
    if (!t) return;
    for (int i = 0; i < MOST_TREES; i++)
        if (t->all[i].used) code_tree_free(&t->all[i].tree);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

const code_tree *code_trees_take(code_trees *t, const code_grammar *g, const char *text, size_t n)
{
    const uint64_t key = base_hash_keyed(text, n) ^ (uint64_t)(uintptr_t)g;
    int oldest = 0;
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < MOST_TREES; i++) {
        if (t->all[i].used && t->all[i].key == key && t->all[i].tree.n_bytes == n) {
            t->all[i].used = ++t->clock;
            t->all[i].tree.text = text;
            return &t->all[i].tree;
        }
        if (t->all[i].used < t->all[oldest].used) oldest = i;
    }
    if (t->all[oldest].used) code_tree_free(&t->all[oldest].tree);
    t->all[oldest].used = 0;
    if (!code_tree_make(g, text, n, NULL, &t->all[oldest].tree)) {
        pthread_mutex_unlock(&t->lock);
        return NULL;
    }
    t->all[oldest].key = key;
    t->all[oldest].used = ++t->clock;
    return &t->all[oldest].tree;
}

void code_trees_give(code_trees *t)
{
    pthread_mutex_unlock(&t->lock);
}

#endif
