/* Stop strings, in every split of a text into tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/text/stop.h"

static const char *const stops[] = {"\n\n\n", "END", "aab", "<|user|>", NULL};

static void test_stop__finds_the_earliest_and_nothing_in_shorter_text(void **state)
{
    assert_int_equal(model_stop_find(stops, "x END <|user|>", 14, 0), 2);
    assert_int_equal(model_stop_find(stops, "x <|user|> END", 14, 0), 2);
    assert_int_equal(model_stop_find(stops, "aaab", 4, 0), 1);
    assert_true(model_stop_find(stops, "EN", 2, 0) == SIZE_MAX);
    assert_true(model_stop_find(stops, "", 0, 0) == SIZE_MAX);
    assert_true(model_stop_find(NULL, "END", 3, 0) == SIZE_MAX);
    assert_true(model_stop_find((const char *const[]){"", NULL}, "END", 3, 0) == SIZE_MAX);
    assert_int_equal(model_stop_safe(NULL, "END", 3), 3);
    assert_int_equal(model_stop_safe(stops, "x E", 3), 2);
    assert_int_equal(model_stop_safe(stops, "x aa", 4), 2);
    assert_int_equal(model_stop_safe(stops, "a\n\n", 3), 1);
    assert_int_equal(model_stop_safe(stops, "plain", 5), 5);
}

/* Tokens of one to five bytes: the answer ends at the same byte, and nothing behind it was ever shown. */
static void check_splits(const char *text, size_t want)
{
    size_t n = strlen(text);
    for (uint32_t split = 0; split < 3125; split++) {
        size_t have = 0, shown = 0, found = SIZE_MAX;
        for (uint32_t rest = split; have < n && found == SIZE_MAX; rest = rest / 5 + rest % 5 * 625) {
            size_t before = have;
            have += 1 + rest % 5;
            if (have > n) have = n;
            found = model_stop_find(stops, text, have, before);
            size_t safe = found != SIZE_MAX ? found : model_stop_safe(stops, text, have);
            assert_true(safe >= shown); /* what was shown stays */
            shown = safe;
        }
        assert_true(found == want);
        assert_int_equal(shown, want == SIZE_MAX ? model_stop_safe(stops, text, n) : want);
    }
}

static void test_stop__does_not_depend_on_token_borders(void **state)
{
    check_splits("some text, EN, then END and more", 20);
    check_splits("aaaab and so on", 2);
    check_splits("lines\n\nmore\n\n\nrest", 11);
    check_splits("<|us<|user|>", 4);
    check_splits("nothing of it <|use", SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop__finds_the_earliest_and_nothing_in_shorter_text),
        cmocka_unit_test(test_stop__does_not_depend_on_token_borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
