/*
 * Names that a text uses and nothing binds: no local, no definition, no import of its file, and nothing that the language
 * has by itself. Python and JavaScript, which no compiler holds against this before they run. Of C variables alone, and what
 * headers or macros bind is found too: who asks has to look for that. Other languages have none.
 */
#ifndef KVIST_CODE_UNBOUND_H
#define KVIST_CODE_UNBOUND_H

#include "code/code.h"

enum { CODE_MAX_UNBOUND = 64 };

/*
 * Bytes [from, to) of the text, each name once, in order: the byte where it is used so first. Returns how many. 0 too where
 * that cannot be told: a file that does not parse, takes all names of a module (import *), or is no module (JavaScript). Pure.
 */
uint32_t code_unbound(code_grammars *g, const char *path, const char *text, size_t n, uint32_t from,
    uint32_t to, uint32_t ret[CODE_MAX_UNBOUND]);

#endif
