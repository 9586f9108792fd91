/*
 * Values that a request gives: "Percent(1, 2) is 50%", "parse('1h') should return 3600", ">>> f(3)" with "6"
 * below it, "returns [] for an empty list", "instead of 4 it should give 6". They are found by patterns, never by a
 * model: arguments and what is wanted have to be literals (or calls of literals). A program in the language of the
 * changed file is made of them; it judges the change like a test.
 */
#ifndef KVIST_AGENT_WORDS_VALUES_H
#define KVIST_AGENT_WORDS_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum { AGENT_MAX_VALUES = 12 };

typedef struct agent_value {
    char *left;   /* a call: "Percent(1, 8)"; else an argument alone: "-1" */
    char *wanted; /* "\"12.5%\"", "-1st", an error's name */
    bool is_call;
    bool is_plain; /* wanted is no literal: what is given, printed, has to read so */
    bool raises;   /* an error is wanted; its name, or "" for any */
} agent_value;

/* Writes up to AGENT_MAX_VALUES values of the request, in its order, and returns how many. Pure. */
uint32_t agent_values_find(const char *request, agent_value ret[AGENT_MAX_VALUES]);
void agent_values_free(agent_value *values, uint32_t n);

/* Behind the literal at p ("1.5", "'a'", "[1, 2]", "None"), or NULL. */
const char *agent_value_literal(const char *p);

/* What the program has to know of the tree. Strings are the caller's. */
typedef struct agent_values_place {
    const char *path;     /* the file whose definitions the values call */
    const char *package;  /* Go: its package; Java: "a.b" or ""; NULL where no such thing is known */
    const char *function; /* what an argument alone is given to; NULL: such values are left out */
    const char *imports;  /* Go: import lines of that file, quoted, one a line; NULL: none */
    bool in_package;      /* Python: an __init__.py stands beside the file */
} agent_values_place;

/*
 * A shell command that checks them, run at the tree's root: it prints a line a value that does not hold and at its
 * end "N of M values of the request hold", with status 0 only where all do. values may be none: then it checks that
 * such a program can run at all. false: not for this language, or no value can be put into it.
 */
bool agent_values_program(
    const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out);

/* "2 of 3" of what such a program printed; false: it did not come to its end. */
bool agent_values_count(const char *output, uint32_t *ret_hold, uint32_t *ret_of);

#endif
