#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void base_buf_reserve(base_buf *b, size_t more)
{
    size_t wanted;
    if (__builtin_add_overflow(b->len, more, &wanted) || wanted == SIZE_MAX) wanted = SIZE_MAX - 1;
    base_grow(&b->data, &b->cap, wanted + 1, 1); /* one more for the NUL */
}

void base_buf_add(base_buf *b, const void *bytes, size_t n)
{
    base_buf_reserve(b, n);
    if (n) memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void base_buf_puts(base_buf *b, const char *s)
{
    base_buf_add(b, s, strlen(s));
}

void base_buf_putc(base_buf *b, char c)
{
    base_buf_add(b, &c, 1);
}

void base_buf_vprintf(base_buf *b, const char *format, va_list args)
{
    if (!format) return; /* never; but gcc's sanitised build warns of it */
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0) return;
    base_buf_reserve(b, (size_t)n);
    vsnprintf(b->data + b->len, (size_t)n + 1, format, args);
    b->len += (size_t)n;
}

void base_buf_printf(base_buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    base_buf_vprintf(b, format, args);
    va_end(args);
}

void base_buf_clear(base_buf *b)
{
    b->len = 0;
    if (b->data) b->data[0] = '\0';
}

void base_buf_free(base_buf *b)
{
    free(b->data);
    *b = (base_buf){0};
}

char *base_buf_take(base_buf *b)
{
    char *s = b->data ? b->data : base_xstrdup("");
    *b = (base_buf){0};
    return s;
}

base_str base_str_of(const char *s)
{
    return (base_str){s, s ? strlen(s) : 0};
}

int base_str_equal(base_str a, const char *b)
{
    return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

base_str base_str_trim(base_str s)
{
    while (s.len && is_space(*s.ptr)) s.ptr++, s.len--;
    while (s.len && is_space(s.ptr[s.len - 1])) s.len--;
    return s;
}

bool base_ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !memcmp(text + n - m, end, m);
}
