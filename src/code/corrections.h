/*
 * What the index contradicts in an answer, put right in its text: a place of a name, a name that is misspelt, who calls
 * something. Each correction is marked as one. Nothing is put right where the tree could mean two things. Called by the
 * agent behind each answer, on the engine thread.
 */
#ifndef KVIST_CODE_CORRECTIONS_H
#define KVIST_CODE_CORRECTIONS_H

#include "code/index.h"

/*
 * The corrected answer; *what: a line each ("gcd: a.py:3, not b.py:9"). Places in the n_changed files of `changed` are
 * left as they are: "a test for f in test_a.py" is no place of f. is_whole: the index holds all of the tree, so what it
 * does not have is not there. Returns how many were put right; 0: both stay empty.
 */
uint32_t code_correct_answer(const code_index *x, const char *answer, size_t n, char *const *changed,
    size_t n_changed, bool is_whole, base_buf *out, base_buf *what);

#endif
