/*
 * Keys by name, as scripts of keys have them: "C-r", "S-Tab", "PgUp", "x".
 */
#ifndef KVIST_TEST_KEY_NAMES_H
#define KVIST_TEST_KEY_NAMES_H

#include <stdint.h>

/* 0: no such key; a single character is itself. */
uint32_t key_named(const char *name);

#endif
