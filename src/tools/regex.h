/*
 * A model's regular expression, by PCRE2, with an end: matching takes steps, and a search has so many of them. A pattern that
 * doubles its work with every letter is stopped there, at a count and not at a time, so that the same search always finds the
 * same; and whenever *cancel is set, in the middle of a line too.
 */
#ifndef KVIST_TOOLS_REGEX_H
#define KVIST_TOOLS_REGEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct tool_regex tool_regex;

/* Compiles; BASE_E_FORMAT with a sentence when the pattern is no regular expression. cancel may be NULL, and is borrowed. */
int tool__regex_open(
    tool_regex **ret, const char *pattern, bool folds_case, const atomic_bool *cancel, base_err *err);
void tool__regex_close(tool_regex *r);

/* Offset of the first match in text[at..n), line by line (their first 4,096 bytes); SIZE_MAX: none, or it was stopped. */
size_t tool__regex_find(tool_regex *r, const char *text, size_t at, size_t n);

/* All steps are used up: what was not searched may match. */
bool tool__regex_is_spent(const tool_regex *r);

#endif
