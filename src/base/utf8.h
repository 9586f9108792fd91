/*
 * UTF-8 at the program's borders: decoding that never reads past its end, the width of a character on a
 * terminal, and the one sanitiser that everything printed passes (control characters, escape sequences,
 * bidirectional overrides).
 */
#ifndef KVIST_BASE_UTF8_H
#define KVIST_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Decodes one code point at s (n >= 1 bytes) into *cp and returns the bytes used. Invalid bytes give U+FFFD
 * and 1, so a loop always ends. Overlong forms, surrogates and values above U+10FFFF are invalid.
 */
size_t base_utf8_decode(const char *s, size_t n, uint32_t *cp);

size_t base_utf8_encode(uint32_t cp, char out[4]); /* returns 1..4; invalid code points become U+FFFD */

/* The longest prefix that does not end inside a code point: what of a stream may be shown already. */
size_t base_utf8_whole(const char *s, size_t n);

bool base_utf8_valid(const char *s, size_t n);

/* Columns on a terminal: 0 (combining), 1, 2 (wide); control characters are 0. */
int base_utf8_width(uint32_t cp);

/*
 * Does it move, reorder or hide something on a terminal, or is it not seen: controls, bidirectional ones
 * too, zero-width letters, tags?
 */
bool base_utf8_is_harmful(uint32_t cp);

/*
 * Appends s made harmless to *out: C0 (but \n and \t), DEL, C1, bidirectional controls, zero-width letters,
 * tags and floods of marks become visible (^[, <U+202E>), invalid bytes U+FFFD. With keep_newlines false \n
 * and \t become a space. It is for reading: what a person decides about is shown by base_show, which loses
 * nothing.
 */
void base_utf8_sanitise(base_buf *out, const char *s, size_t n, bool keep_newlines);

#endif
