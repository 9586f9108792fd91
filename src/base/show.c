#include "base/show.h"

#include <string.h>

#include "base/utf8.h"

enum { MOST_MARKS = 2, FIRST_FOREIGN_LETTER = 0x370 };

/* A tab in code: as wide as the screen's, and no text without a tab looks like it. */
static const char tab_arrow[] = "\xe2\x86\x92   ";

static const struct {
    const char *name;
    char byte;
} names[] = {{"LF>", '\n'}, {"CR>", '\r'}, {"TAB>", '\t'}, {"ESC>", '\033'}, {"NUL>", 0}};

bool base_is_hidden(uint32_t cp)
{
    size_t low = 0, high = base_n_hidden_ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (cp > base_hidden_ranges[middle][1])
            low = middle + 1;
        else
            high = middle;
    }
    return cp < 0x20 || (low < base_n_hidden_ranges && cp >= base_hidden_ranges[low][0]);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/*
 * The mark whose "<" stands in front of s: the bytes it stands for, and how long it is behind the "<". 0: it
 * is none.
 */
static size_t read_mark(const char *s, size_t n, char bytes[4], size_t *n_bytes)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t length = strlen(names[i].name);
        if (n < length || memcmp(s, names[i].name, length) != 0) continue;
        bytes[0] = names[i].byte;
        *n_bytes = 1;
        return length;
    }
    const bool is_byte = n > 2 && !memcmp(s, "0x", 2), is_point = n > 2 && !memcmp(s, "U+", 2);
    if (!is_byte && !is_point) return 0;
    uint32_t value = 0;
    size_t at = 2;
    for (int digit; at < n && at < 8 && (digit = hex_digit(s[at])) >= 0; at++)
        value = value << 4 | (uint32_t)digit;
    if (at >= n || s[at] != '>' || (is_byte ? at != 4 : at < 6)) return 0;
    bytes[0] = (char)value;
    *n_bytes = is_byte ? 1 : base_utf8_encode(value, bytes);
    return at + 1;
}

static bool stands_for_a_tab(const char *s, size_t n)
{
    return n >= sizeof tab_arrow - 1 && !memcmp(s, tab_arrow, sizeof tab_arrow - 1);
}

/* Marks of Cyrillic, Hebrew, Arabic, Devanagari, Thai, Japanese that fonts place on their letter. */
static bool is_mark_of_a_script(uint32_t cp)
{
    return ((cp >= 0x483 && cp < 0xe50) || cp == 0x3099 || cp == 0x309a) && cp != 0x61c &&
           base_utf8_width(cp) == 0;
}

static void put_control(base_buf *out, uint32_t cp)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((unsigned char)names[i].byte == cp) {
            base_buf_printf(out, "<%s", names[i].name);
            return;
        }
    base_buf_printf(out, "<U+%04X>", (unsigned)cp);
}

void base_show(base_buf *out, const char *s, size_t n, base_show_form form)
{
    int marks = MOST_MARKS; /* behind the last letter that takes some; none yet */
    for (size_t i = 0, used; i < n; i += used) {
        uint32_t cp;
        char bytes[4];
        size_t n_bytes;
        used = base_utf8_decode(s + i, n - i, &cp);
        const bool is_invalid = cp == 0xfffd && used == 1;
        if (!is_invalid && marks < MOST_MARKS && form != BASE_SHOW_ASCII && is_mark_of_a_script(cp)) {
            base_buf_add(out, s + i, used);
            marks++;
            continue;
        }
        marks = MOST_MARKS;
        if (is_invalid) {
            base_buf_printf(out, "<0x%02X>", (unsigned char)s[i]);
        } else if (cp == '\t' && form == BASE_SHOW_TABS) {
            base_buf_puts(out, tab_arrow);
        } else if (base_is_hidden(cp) || (cp == ' ' && i + 1 == n) ||
                   (cp == '<' && read_mark(s + i + 1, n - i - 1, bytes, &n_bytes)) ||
                   (cp >= 0x80 && (form == BASE_SHOW_ASCII || stands_for_a_tab(s + i, n - i)))) {
            put_control(out, cp);
        } else {
            base_buf_add(out, s + i, used);
            if (cp >= FIRST_FOREIGN_LETTER) marks = 0;
        }
    }
}

void base_show_parse(base_buf *out, const char *shown, size_t n)
{
    for (size_t i = 0; i < n;) {
        char bytes[4];
        size_t n_bytes, length = shown[i] == '<' ? read_mark(shown + i + 1, n - i - 1, bytes, &n_bytes) : 0;
        if (length) {
            base_buf_add(out, bytes, n_bytes);
            i += 1 + length;
        } else if (stands_for_a_tab(shown + i, n - i)) {
            base_buf_putc(out, '\t');
            i += sizeof tab_arrow - 1;
        } else {
            base_buf_putc(out, shown[i++]);
        }
    }
}
