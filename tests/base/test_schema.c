/* What of JSON Schema is read, what is refused and how it is said; verdicts in words. test_schema.py has the mass of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/schema.h"

static base_schema *parse(const char *text)
{
    base_schema *s = NULL;
    base_err err = {0};
    if (base_schema_parse(text, strlen(text), &s, &err)) fail_msg("%s: %s", text, err.msg);
    return s;
}

static void refuses(const char *text, base_code code, const char *said)
{
    base_schema *s = NULL;
    base_err err = {0};
    if (base_schema_parse(text, strlen(text), &s, &err) != (int)code || !strstr(err.msg, said))
        fail_msg("%s: %d \"%s\", not \"%s\"", text, (int)err.code, err.msg, said);
}

static void test_schema__refuses_by_keyword_and_place(void **state)
{
    refuses("{\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"x\"}}}", BASE_E_UNSUPPORTED,
        "\"pattern\" at #/properties/a is not held");
    refuses("{\"items\":{\"format\":\"date\"}}", BASE_E_UNSUPPORTED, "\"format\" at #/items");
    refuses("{\"requird\":[\"a\"]}", BASE_E_UNSUPPORTED, "\"requird\" at # is not known");
    refuses("{\"uniqueItems\":true}", BASE_E_UNSUPPORTED, "\"uniqueItems\" at #");
    refuses("{\"properties\":{\"a/b~\":{\"not\":{}}}}", BASE_E_UNSUPPORTED, "at #/properties/a~1b~0");
    refuses(
        "{\"anyOf\":[{\"type\":\"null\"}],\"type\":\"null\"}", BASE_E_UNSUPPORTED, "beside \"anyOf\" at #");
    refuses("{\"$ref\":\"https://example.org/s\"}", BASE_E_UNSUPPORTED, "out of the file");
    refuses("{\"$ref\":\"#/$defs/a\"}", BASE_E_FORMAT, "nothing stands there");
    refuses("{\"$ref\":\"#\"}", BASE_E_FORMAT, "leads to itself");
    refuses("{\"type\":\"text\"}", BASE_E_FORMAT, "\"type\" at # has to be");
    refuses("{\"type\":\"string\",\"enum\":[1]}", BASE_E_FORMAT, "exclude each other");
    refuses("{\"minLength\":3,\"maxLength\":2}", BASE_E_FORMAT, "minimum is above its maximum");
    refuses("{\"minItems\":-1}", BASE_E_FORMAT, "\"minItems\" at # has to be a whole number");
    refuses("{\"required\":[\"a\"],\"additionalProperties\":false}", BASE_E_FORMAT, "requires \"a\" at #");
    refuses("{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}", BASE_E_UNSUPPORTED,
        "members 1 and 2 may both fit");
    refuses("[]", BASE_E_FORMAT, "has to be an object");
    refuses("false", BASE_E_FORMAT, "nothing fits");
    refuses("{", BASE_E_FORMAT, "JSON");
    refuses("", BASE_E_FORMAT, "JSON");
    refuses("{\"required\":[\"\xda"
            "a\"]}",
        BASE_E_FORMAT, "not UTF-8");
    refuses("{\"const\":\"a\\u0000\"}", BASE_E_UNSUPPORTED, "zero character");
}

static void test_schema__a_oneof_whose_members_exclude_each_other_is_taken(void **state)
{
    static const char *const taken[] = {
        "{\"oneOf\":[{\"type\":\"string\"},{\"type\":[\"null\",\"integer\"]}]}",
        "{\"oneOf\":[{\"properties\":{\"k\":{\"const\":1}},\"required\":[\"k\"]},"
        "{\"properties\":{\"k\":{\"const\":2}},\"required\":[\"k\"]}]}",
        "{\"oneOf\":[{\"properties\":{\"a\":{}},\"required\":[\"a\"],\"additionalProperties\":false},"
        "{\"properties\":{\"b\":{}},\"required\":[\"b\"],\"additionalProperties\":false}]}",
        "{\"oneOf\":[{\"type\":\"integer\",\"maximum\":4},{\"type\":\"number\",\"minimum\":5}]}",
    };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) base_schema_free(parse(taken[i]));
}

static void says(const base_schema *s, const char *text, const char *said)
{
    base_err err = {0};
    const int rc = base_schema_check(s, text, strlen(text), &err);
    if (said ? !rc || !strstr(err.msg, said) : rc)
        fail_msg("%s: \"%s\", not \"%s\"", text, err.msg, said ? said : "");
}

static void test_schema__says_where_a_value_does_not_fit(void **state)
{
    base_schema *s =
        parse("{\"type\":\"object\",\"properties\":{\"list\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/"
              "$defs/n\"},"
              "\"maxItems\":3},\"name\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}},\"required\":["
              "\"name\"],"
              "\"additionalProperties\":false,\"$defs\":{\"n\":{\"type\":\"integer\",\"minimum\":1,"
              "\"exclusiveMaximum\":9}}}");
    says(s, "{\"name\":\"\xc3\xa9\xc3\xa9\",\"list\":[1,8.0]}", NULL);
    says(s, "{\"name\":\"ab\",\"list\":[1,2,\"x\"]}", "/list/2 is string and not integer");
    says(s, "{\"name\":\"ab\",\"list\":[9]}", "/list/0 is 9, which is not below 9");
    says(s, "{\"name\":\"ab\",\"list\":[0]}", "/list/0 is 0, which is below 1");
    says(s, "{\"name\":\"ab\",\"list\":[1,1,1,1]}", "/list has 4 items, more than 3");
    says(s, "{\"name\":\"a\"}", "/name has 1 characters, fewer than 2");
    says(s, "{\"name\":\"abcd\"}", "/name has 4 characters, more than 3");
    says(s, "{\"list\":[]}", "the value has no \"name\"");
    says(s, "{\"name\":\"ab\",\"x\":1}", "/x is a member that is not allowed");
    says(s, "{\"name\":\"ab\"} x", "JSON");
    says(s, "[]", "the value is array and not object");
    base_schema_free(s);
}

/* Alternatives that all lead on would take longer than anybody waits. */
static void test_schema__judging_is_bounded(void **state)
{
    base_schema *s = parse("{\"anyOf\":[{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}},{\"type\":\"array\","
                           "\"items\":{\"$ref\":\"#\"}}]}");
    char inner[203];
    memset(inner, '[', 100);
    inner[100] = '1';
    memset(inner + 101, ']', 100);
    inner[201] = 0;
    says(s, inner, "too many alternatives");
    base_schema_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema__refuses_by_keyword_and_place),
        cmocka_unit_test(test_schema__a_oneof_whose_members_exclude_each_other_is_taken),
        cmocka_unit_test(test_schema__says_where_a_value_does_not_fit),
        cmocka_unit_test(test_schema__judging_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
