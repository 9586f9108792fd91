/*
 * Growing bytes. Always NUL-terminated once something was written, so that data is a C string too.
 * Zero-initialise.
 */
#ifndef KVIST_BASE_BUF_H
#define KVIST_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct base_buf {
    char *data; /* NULL until the first write */
    size_t len, cap;
} base_buf;

/* A view of bytes that somebody else owns; not NUL-terminated. */
typedef struct base_str {
    const char *ptr;
    size_t len;
} base_str;

void base_buf_reserve(base_buf *b, size_t more); /* room for `more` bytes beyond len */
void base_buf_add(base_buf *b, const void *bytes, size_t n);
void base_buf_puts(base_buf *b, const char *s);
void base_buf_putc(base_buf *b, char c);
void base_buf_printf(base_buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void base_buf_vprintf(base_buf *b, const char *format, va_list args);
void base_buf_clear(base_buf *b); /* keeps the memory */
void base_buf_free(base_buf *b);  /* reusable afterwards */
char *base_buf_take(base_buf *b); /* the caller owns the string ("" when empty); b is empty again */

base_str base_str_of(const char *s);
int base_str_equal(base_str a, const char *b);
/* Without blanks, tabs, CR and LF at both ends. */
base_str base_str_trim(base_str s);

bool base_ends_with(const char *text, const char *end);

#endif
