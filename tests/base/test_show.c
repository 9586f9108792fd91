/*
 * What a person is asked about: every byte leaves a mark, and the bytes come back. KVIST_SEED repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/show.h"
#include "base/utf8.h"

static void assert_shown(const char *s, size_t n, base_show_form form, const char *expected)
{
    base_buf shown = {0}, back = {0};
    base_show(&shown, s, n, form);
    assert_string_equal(shown.data ? shown.data : "", expected);
    base_show_parse(&back, expected, strlen(expected));
    assert_int_equal(back.len, n);
    if (n) assert_memory_equal(back.data, s, n);
    base_buf_free(&shown);
    base_buf_free(&back);
}
#define SHOWN(s, expected) assert_shown(s, sizeof(s) - 1, BASE_SHOW_UTF8, expected)

static void test_show__ordinary_text_stands_as_it_is(void **state)
{
    SHOWN("", "");
    SHOWN("grep '^[a-z]\\|x' <in >out # <b> 3 < 4", "grep '^[a-z]\\|x' <in >out # <b> 3 < 4");
    SHOWN("na\xc3\xafve \xe2\x86\x92 \xe6\x97\xa5\xe6\x9c\xac \xd0\x96 \xf0\x9f\x98\x80",
        "na\xc3\xafve \xe2\x86\x92 \xe6\x97\xa5\xe6\x9c\xac \xd0\x96 \xf0\x9f\x98\x80");
    SHOWN("\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xb7",
        "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xb7"); /* a script's own mark */
}

static void test_show__what_is_not_seen_is_a_mark(void **state)
{
    SHOWN("a\nb\tc\r\033[2J", "a<LF>b<TAB>c<CR><ESC>[2J");
    SHOWN("\0\x7f\xc2\x9b", "<NUL><U+007F><U+009B>");
    SHOWN("\xe2\x80\xae\xe2\x80\x8b\xef\xbb\xbf\xf3\xa0\x81\x81\xc2\xad\xc2\xa0",
        "<U+202E><U+200B><U+FEFF><U+E0041><U+00AD><U+00A0>");
    SHOWN("\xe3\x85\xa4\xe2\xa0\x80\xee\x80\x80\xef\xb8\x8f", "<U+3164><U+2800><U+E000><U+FE0F>");
    SHOWN("e\xcc\x81\xcc\x81", "e<U+0301><U+0301>");
    SHOWN("\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa5\x8d\xe0\xa5\x8d", "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa5\x8d<U+094D>");
    SHOWN("\xff\xc0\x80\xed\xa0\x80", "<0xFF><0xC0><0x80><0xED><0xA0><0x80>"); /* overlong, surrogate */
    SHOWN("rm x  ", "rm x <U+0020>");
}

static void test_show__its_own_marks_in_the_text_are_told_apart(void **state)
{
    SHOWN("<LF>", "<U+003C>LF>");
    SHOWN("<<U+0041>", "<<U+003C>U+0041>");
    SHOWN("<0x41> <0x4> <U+41>", "<U+003C>0x41> <0x4> <U+41>");
    assert_shown("\t\xe2\x86\x92   x", 8, BASE_SHOW_TABS, "\xe2\x86\x92   <U+2192>   x");
    assert_shown("\xe2\x86\x92\t\xc3\xa4", 6, BASE_SHOW_ASCII, "<U+2192><TAB><U+00E4>");
}

/* Nothing that is shown moves a cursor, hides, or has no width. */
static void assert_is_seen(const base_buf *shown, base_show_form form)
{
    int marks = 0;
    for (size_t i = 0; i < shown->len;) {
        uint32_t cp;
        size_t used = base_utf8_decode(shown->data + i, shown->len - i, &cp);
        assert_false(cp == 0xfffd && used == 1);
        assert_true(form != BASE_SHOW_ASCII || (cp >= 0x20 && cp < 0x7f));
        marks = base_utf8_width(cp) == 0 ? marks + 1 : 0;
        assert_true(marks <= 2);
        assert_true(!base_is_hidden(cp) || (marks && i > 0));
        i += used;
    }
    if (shown->len && form != BASE_SHOW_TABS) assert_true(shown->data[shown->len - 1] != ' ');
}

static void test_show__random_bytes_come_back(void **state)
{
    const char *fixed = getenv("KVIST_SEED");
    uint64_t seed = fixed ? strtoull(fixed, NULL, 10) : (uint64_t)time(NULL);
    print_message("KVIST_SEED=%llu\n", (unsigned long long)seed);
    static const char *const pieces[] = {"<", ">", "<LF>", "U+0041>", "0x41>", "LF>", "\xe2\x86\x92", " ",
        "   ", "\n", "\t", "\xcc\x81", "\xe0\xa5\x8d", "\xe0\xa4\x95", "\xf3\xa0\x81\x81", "\xe2\x80\xae",
        "a"};
    uint64_t x = seed * 2 + 1;
    for (int round = 0; round < 20000; round++) {
        base_buf bytes = {0};
        for (int i = 0; i < 24; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            const uint32_t r = (uint32_t)(x >> 33);
            if (r & 1)
                base_buf_putc(&bytes, (char)(r >> 1));
            else
                base_buf_puts(&bytes, pieces[(r >> 1) % (sizeof pieces / sizeof *pieces)]);
        }
        for (base_show_form form = BASE_SHOW_UTF8; form <= BASE_SHOW_ASCII; form++) {
            base_buf shown = {0}, back = {0};
            base_show(&shown, bytes.data, bytes.len, form);
            assert_is_seen(&shown, form);
            base_show_parse(&back, shown.data, shown.len);
            assert_int_equal(back.len, bytes.len);
            assert_memory_equal(back.data, bytes.data, bytes.len);
            base_buf_free(&shown);
            base_buf_free(&back);
        }
        base_buf_free(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_show__ordinary_text_stands_as_it_is),
        cmocka_unit_test(test_show__what_is_not_seen_is_a_mark),
        cmocka_unit_test(test_show__its_own_marks_in_the_text_are_told_apart),
        cmocka_unit_test(test_show__random_bytes_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
