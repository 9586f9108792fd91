#include "base/utf8.h"

#include <string.h>

size_t base_utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    const uint8_t *p = (const uint8_t *)s;
    *cp = 0xfffd;
    if (p[0] < 0x80) {
        *cp = p[0];
        return 1;
    }
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < len) return 1;
    static const uint8_t lead_bits[5] = {0, 0, 0x1f, 0x0f, 0x07};
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t value = p[0] & lead_bits[len];
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) return 1;
        value = value << 6 | (p[i] & 0x3f);
    }
    if (value < smallest[len] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 1;
    *cp = value;
    return len;
}

size_t base_utf8_encode(uint32_t cp, char out[4])
{
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) cp = 0xfffd;
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len; i-- > 1; cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)(lead[len] | cp);
    return len;
}

size_t base_utf8_whole(const char *s, size_t n)
{
    /* Only the last three bytes can belong to an unfinished code point. */
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        uint8_t c = (uint8_t)s[n - back];
        if ((c & 0xc0) == 0x80) continue;
        size_t len = c >= 0xf0 && c <= 0xf4 ? 4 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xc2 && c < 0xe0 ? 2 : 1;
        return len > back ? n - back : n;
    }
    return n;
}

bool base_utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t used = base_utf8_decode(s + i, n - i, &cp);
        if (cp == 0xfffd && used == 1) return false;
        i += used;
    }
    return true;
}

typedef struct range {
    uint32_t from, to;
} range;

/*
 * Combining marks and format characters that take no column (Unicode Mn, Me, Cf of the scripts terminals
 * show).
 */
static const range zero_width[] = {
    {0x0300, 0x036f},
    {0x0483, 0x0489},
    {0x0591, 0x05bd},
    {0x05bf, 0x05bf},
    {0x05c1, 0x05c2},
    {0x05c4, 0x05c5},
    {0x0610, 0x061a},
    {0x064b, 0x065f},
    {0x0670, 0x0670},
    {0x06d6, 0x06dc},
    {0x06df, 0x06e4},
    {0x06e7, 0x06e8},
    {0x06ea, 0x06ed},
    {0x0711, 0x0711},
    {0x0730, 0x074a},
    {0x0900, 0x0902},
    {0x093a, 0x093a},
    {0x093c, 0x093c},
    {0x0941, 0x0948},
    {0x094d, 0x094d},
    {0x0951, 0x0957},
    {0x0e31, 0x0e31},
    {0x0e34, 0x0e3a},
    {0x0e47, 0x0e4e},
    {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff},
    {0x200b, 0x200f},
    {0x202a, 0x202e},
    {0x2060, 0x2064},
    {0x2066, 0x206f},
    {0x20d0, 0x20f0},
    {0x302a, 0x302d},
    {0x3099, 0x309a},
    {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f},
    {0xfeff, 0xfeff},
    {0x1f3fb, 0x1f3ff},
    {0xe0001, 0xe007f},
    {0xe0100, 0xe01ef},
};

/* East Asian Wide and Fullwidth, and emoji with default emoji presentation. */
static const range wide[] = {
    {0x1100, 0x115f},
    {0x231a, 0x231b},
    {0x2329, 0x232a},
    {0x23e9, 0x23ec},
    {0x23f0, 0x23f0},
    {0x23f3, 0x23f3},
    {0x25fd, 0x25fe},
    {0x2614, 0x2615},
    {0x2648, 0x2653},
    {0x267f, 0x267f},
    {0x2693, 0x2693},
    {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},
    {0x26bd, 0x26be},
    {0x26c4, 0x26c5},
    {0x26ce, 0x26ce},
    {0x26d4, 0x26d4},
    {0x26ea, 0x26ea},
    {0x26f2, 0x26f3},
    {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},
    {0x26fd, 0x26fd},
    {0x2705, 0x2705},
    {0x270a, 0x270b},
    {0x2728, 0x2728},
    {0x274c, 0x274c},
    {0x274e, 0x274e},
    {0x2753, 0x2755},
    {0x2757, 0x2757},
    {0x2795, 0x2797},
    {0x27b0, 0x27b0},
    {0x27bf, 0x27bf},
    {0x2b1b, 0x2b1c},
    {0x2b50, 0x2b50},
    {0x2b55, 0x2b55},
    {0x2e80, 0x303e},
    {0x3041, 0x33ff},
    {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},
    {0xa000, 0xa4cf},
    {0xa960, 0xa97f},
    {0xac00, 0xd7a3},
    {0xf900, 0xfaff},
    {0xfe10, 0xfe19},
    {0xfe30, 0xfe6f},
    {0xff00, 0xff60},
    {0xffe0, 0xffe6},
    {0x16fe0, 0x18aff},
    {0x1b000, 0x1b2ff},
    {0x1f004, 0x1f004},
    {0x1f0cf, 0x1f0cf},
    {0x1f18e, 0x1f18e},
    {0x1f191, 0x1f19a},
    {0x1f200, 0x1f320},
    {0x1f32d, 0x1f335},
    {0x1f337, 0x1f37c},
    {0x1f37e, 0x1f393},
    {0x1f3a0, 0x1f3ca},
    {0x1f3cf, 0x1f3d3},
    {0x1f3e0, 0x1f3f0},
    {0x1f3f4, 0x1f3f4},
    {0x1f3f8, 0x1f43e},
    {0x1f440, 0x1f440},
    {0x1f442, 0x1f4fc},
    {0x1f4ff, 0x1f53d},
    {0x1f54b, 0x1f54e},
    {0x1f550, 0x1f567},
    {0x1f57a, 0x1f57a},
    {0x1f595, 0x1f596},
    {0x1f5a4, 0x1f5a4},
    {0x1f5fb, 0x1f64f},
    {0x1f680, 0x1f6c5},
    {0x1f6cc, 0x1f6cc},
    {0x1f6d0, 0x1f6d2},
    {0x1f6d5, 0x1f6d7},
    {0x1f6dc, 0x1f6df},
    {0x1f6eb, 0x1f6ec},
    {0x1f6f4, 0x1f6fc},
    {0x1f7e0, 0x1f7eb},
    {0x1f7f0, 0x1f7f0},
    {0x1f90c, 0x1f93a},
    {0x1f93c, 0x1f945},
    {0x1f947, 0x1f9ff},
    {0x1fa70, 0x1faff},
    {0x20000, 0x2fffd},
    {0x30000, 0x3fffd},
};

static bool in_ranges(uint32_t cp, const range *ranges, size_t n)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (cp > ranges[middle].to)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && cp >= ranges[low].from;
}

int base_utf8_width(uint32_t cp)
{
    if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) return 0;
    if (cp < 0x300) return 1;
    if (in_ranges(cp, zero_width, sizeof zero_width / sizeof *zero_width)) return 0;
    return in_ranges(cp, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}

static bool is_bidi_control(uint32_t cp)
{
    return cp == 0x061c || cp == 0x200e || cp == 0x200f || (cp >= 0x202a && cp <= 0x202e) ||
           (cp >= 0x2066 && cp <= 0x2069);
}

/* Zero-width letters that join and select glyphs are not among them: scripts and emoji need them. */
static bool is_invisible(uint32_t cp)
{
    return cp == 0xad || cp == 0x180e || cp == 0x200b || (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff ||
           (cp >= 0xfff9 && cp <= 0xfffb) || (cp >= 0xe0000 && cp < 0xe1000);
}

bool base_utf8_is_harmful(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || is_bidi_control(cp) || cp == 0x2028 || cp == 0x2029 ||
           is_invisible(cp);
}

void base_utf8_sanitise(base_buf *out, const char *s, size_t n, bool keep_newlines)
{
    enum { MOST_MARKS = 8 }; /* on one letter; more would cover the lines around it, or vanish */
    int marks = 0;
    for (size_t i = 0; i < n;) {
        size_t plain = i;
        while (plain < n && s[plain] >= 0x20 && s[plain] < 0x7f) plain++;
        if (plain > i) { /* nearly all text */
            base_buf_add(out, s + i, plain - i);
            i = plain;
            marks = 0;
            continue;
        }
        uint32_t cp;
        size_t used = base_utf8_decode(s + i, n - i, &cp);
        marks = cp >= 0x300 && base_utf8_width(cp) == 0 ? marks + 1 : 0;
        if (cp == '\n' || cp == '\t')
            base_buf_putc(out, keep_newlines ? (char)cp : ' ');
        else if (cp < 0x20 || cp == 0x7f)
            base_buf_printf(out, "^%c", (char)(cp ^ 0x40));
        else if (base_utf8_is_harmful(cp) || marks > MOST_MARKS)
            base_buf_printf(out, "<U+%04X>", (unsigned)cp);
        else if (cp == 0xfffd && used == 1)
            base_buf_add(out, "\xef\xbf\xbd", 3);
        else
            base_buf_add(out, s + i, used);
        i += used;
    }
}
