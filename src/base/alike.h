/*
 * Words that stand for one another ("colour" and "color"), between who asks and who knows: the index of a tree asks
 * (code/index.h), a model knows (model/forward/alike.h), and neither knows the other.
 */
#ifndef KVIST_BASE_ALIKE_H
#define KVIST_BASE_ALIKE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct base_alike_query {
    const char *const *words; /* [n], in lower case */
    uint32_t n;
    float least; /* how alike at least: 1 is the same */
    bool (*is_wanted)(void *asker, const char *word);
    void (*add)(void *asker, uint32_t asked, const char *word, float alike); /* asked: a place in words */
    void *asker;
} base_alike_query;

typedef struct base_alike {
    void *user;
    /* Tells the asker every wanted word that is alike one of the asked ones, always in the same order. */
    void (*find)(void *user, const base_alike_query *q);
} base_alike;

#endif
