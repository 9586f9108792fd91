/*
 * Words as the index sees them: stems, stop words, and a developer's thesaurus (abbreviations and near
 * synonyms), the same for texts and for questions. Pure functions.
 */
#ifndef KVIST_CODE_WORDS_H
#define KVIST_CODE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum { CODE_WORD_BYTES = 64 };

/*
 * Lower-cases and stems s into out ("freeing", "frees", "freed" give "fre"); returns the length, 0 for words
 * over 63 bytes.
 */
size_t code_stem(const char *s, size_t n, char out[CODE_WORD_BYTES]);

/* Words of a question that say nothing about its subject: "which", "where", "defined", "the". Lower case. */
bool code_is_stop_word(const char *s, size_t n);

/*
 * "function", "method", "class", "struct", ... when a question names a kind of definition; NULL else. Lower
 * case, singular or plural.
 */
const char *code_kind_asked(const char *s, size_t n);

/*
 * Words that may stand for this stem, themselves stemmed: i = 0, 1, ... until NULL. *weight: .8 for an
 * abbreviation ("config", "cfg"), .5 for a near synonym ("free", "release").
 */
const char *code_related_word(const char *stem, size_t i, double *weight);

#endif
