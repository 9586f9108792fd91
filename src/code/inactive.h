/* What no C compiler sees: the text under `#if 0`, and under the `#else` of `#if 1`. */
#ifndef KVIST_CODE_INACTIVE_H
#define KVIST_CODE_INACTIVE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct code_inactive {
    size_t from, to; /* bytes [from, to), whole lines, without the directives around them */
} code_inactive;

/* Is it a language with C's preprocessor? NULL is none. */
bool code_has_preprocessor(const char *language);
/* In the order of the text, none inside another. Returns their number; free *ret (NULL when there are none). */
size_t code_inactive_find(const char *text, size_t n, code_inactive **ret);
bool code_inactive_at(const code_inactive *sections, size_t n, size_t at);

#endif
