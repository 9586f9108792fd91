/* JSON in and out: what is written reads back the same, what is malformed is refused with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static void test_json__writes_what_it_read(void **state)
{
    static const char *const texts[] = {
        "{\"a\":[1,2.5,-3e+20,true,false,null],\"b\":{\"c\":\"x\\n\\\"\\\\\"}}",
        "[]",
        "\"\\ud83d\\ude00 \\u00e9 \\u0000\"",
        "9223372036854775807",
        "[0.1,1e-07,123456789.123]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        base_json_doc *doc, *again;
        base_buf once = {0}, twice = {0};
        assert_int_equal(base_json_parse(texts[i], strlen(texts[i]), &doc, NULL), 0);
        base_json_put(&once, base_json_root(doc));
        assert_int_equal(base_json_parse(once.data, once.len, &again, NULL), 0);
        base_json_put(&twice, base_json_root(again));
        assert_string_equal(once.data, twice.data);
        base_json_free(doc);
        base_json_free(again);
        base_buf_free(&once);
        base_buf_free(&twice);
    }
}

static void test_json__looks_up_with_types(void **state)
{
    static const char text[] = "{\"n\":5,\"x\":2.5,\"s\":\"a\\u0000b\",\"t\":true,\"l\":[10,20]}";
    base_json_doc *doc;
    assert_int_equal(base_json_parse(text, sizeof text - 1, &doc, NULL), 0);
    const base_json *root = base_json_root(doc);
    assert_int_equal(base_json_int(root, "n", -1), 5);
    assert_int_equal(base_json_int(root, "x", -1), -1); /* no integer */
    assert_true(base_json_num(root, "x", 0) == 2.5);
    assert_int_equal(base_json_get(root, "s")->string_len, 3);
    assert_true(base_json_bool(root, "t", false));
    assert_int_equal(base_json_at(base_json_get(root, "l"), 1)->integer, 20);
    assert_null(base_json_at(base_json_get(root, "l"), 2));
    assert_string_equal(base_json_str(root, "absent", "otherwise"), "otherwise");
    base_json_free(doc);
}

static void test_json__refuses_what_is_malformed(void **state)
{
    static const char *const bad[] = {"", "{", "[1,]", "{\"a\" 1}", "01", "1.", "\"\n\"", "\"\\x\"", "nul",
        "[1] 2", "\"\\u12", "{1:2}", "\"abc", "-", "1e", "\"\\"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        base_json_doc *doc;
        base_err err = {0};
        assert_int_equal(base_json_parse(bad[i], strlen(bad[i]), &doc, &err), BASE_E_FORMAT);
        assert_memory_equal(err.msg, "JSON: ", 6);
    }
    char deep[2000];
    memset(deep, '[', sizeof deep);
    base_json_doc *doc;
    assert_int_equal(base_json_parse(deep, sizeof deep, &doc, NULL), BASE_E_FORMAT);
}

static void test_json__stops_behind_the_first_value(void **state)
{
    static const char text[] = " {\"a\":1} and prose";
    size_t used;
    base_json_doc *doc;
    assert_int_equal(base_json_parse_prefix(text, sizeof text - 1, &used, &doc, NULL), 0);
    assert_int_equal(used, 8);
    base_json_free(doc);
}

/* "1," is two bytes and a value of many: what a text may come to is bounded, whatever it holds. */
static void test_json__bounds_the_values_of_a_text(void **state)
{
    base_buf text = {0};
    base_json_doc *doc;
    base_err err = {0};
    base_buf_putc(&text, '[');
    for (int i = 0; i < BASE_JSON_MAX_VALUES; i++) base_buf_puts(&text, i ? ",1" : "1");
    base_buf_putc(&text, ']');
    assert_int_equal(base_json_parse(text.data, text.len, &doc, &err), 0);
    assert_int_equal(base_json_root(doc)->n, BASE_JSON_MAX_VALUES);
    assert_true(base_json_bytes(doc) > 40 * text.len && base_json_bytes(doc) < 96 << 20);
    base_json_free(doc);
    text.data[text.len - 1] = ',';
    base_buf_puts(&text, "1]");
    assert_int_equal(base_json_parse(text.data, text.len, &doc, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "more values than are read"));
    assert_int_equal(base_json_parse_most(text.data, text.len, 2 << 20, &doc, &err), 0);
    base_json_free(doc);
    base_buf_free(&text);
    assert_int_equal(base_json_parse("[1]", 3, &doc, &err), 0);
    assert_true(base_json_bytes(doc) < 1024); /* a small one is small */
    base_json_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json__writes_what_it_read),
        cmocka_unit_test(test_json__looks_up_with_types),
        cmocka_unit_test(test_json__refuses_what_is_malformed),
        cmocka_unit_test(test_json__bounds_the_values_of_a_text),
        cmocka_unit_test(test_json__stops_behind_the_first_value),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
