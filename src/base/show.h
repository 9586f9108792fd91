/*
 * Foreign text as a person has to see it before saying yes: every byte leaves a mark of its own, and the
 * bytes can be had back.
 *
 * What has a glyph of its own stands as it is. All else is a mark in angle brackets: <LF>, <CR>, <TAB>,
 * <ESC>, <NUL>; <U+200B> for any other code point that is not seen (controls, zero-width, tags, bidirectional
 * controls, blanks that are no space, combining marks, what is not assigned); <0xFF> for a byte that is no
 * UTF-8; <U+0020> for a space at the end, where nothing would show it. A "<" that begins such a mark in the
 * text itself is <U+003C>. Marks that a script is written with stand, two at most, behind a letter of it.
 */
#ifndef KVIST_BASE_SHOW_H
#define KVIST_BASE_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef enum base_show_form {
    BASE_SHOW_UTF8,
    BASE_SHOW_TABS, /* a tab is an arrow and three blanks: for lines of code */
    BASE_SHOW_ASCII /* for a terminal that shows nothing else */
} base_show_form;

/* Appends s to out, on one line. */
void base_show(base_buf *out, const char *s, size_t n, base_show_form form);
/* Appends the bytes that base_show, in any form, was given. What was not made by it comes back as it can. */
void base_show_parse(base_buf *out, const char *shown, size_t n);

/* Leaves this code point no mark of its own? */
bool base_is_hidden(uint32_t cp);

extern const uint32_t base_hidden_ranges[][2]; /* hidden_table.c: ascending */
extern const size_t base_n_hidden_ranges;

#endif
