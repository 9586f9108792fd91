/* The grammar of what is left of a call (gbnf_rest.h): where the call is, and what may follow there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "remote/gbnf.h"
#include "remote/gbnf_rest.h"

static const char *const operations[] = {"rename", "move", NULL};
static const char *const symbols[] = {"ring_put", "ring", "put", "ring_drop", "ring", "d\xc3\xa9j\xc3\xa0",
    "d\xc3\xa8s", "with \"quotes\"", NULL};
static const model_grammar_argument refactor_arguments[] = {
    {"operation", MODEL_ARGUMENT_CHOICE, true, operations},
    {"name", MODEL_ARGUMENT_CHOICE, true, symbols},
    {"to", MODEL_ARGUMENT_STRING, false, NULL},
    {"at", MODEL_ARGUMENT_INTEGER, false, NULL},
};
static const model_grammar_argument read_arguments[] = {{"path", MODEL_ARGUMENT_PATH, true, NULL}};
static const model_grammar_tool tools[] = {
    {"read", read_arguments, 1}, {"refactor", refactor_arguments, 4}, {"now", NULL, 0}};
enum { N_TOOLS = sizeof tools / sizeof *tools };

/* want: the root without "root ::= " and its line's end; NULL: there is none. */
static void check(model_tool_style style, const char *said, const char *want)
{
    remote_gbnf_tools k = {0};
    base_buf out = {0}, line = {0};
    remote_gbnf_tools_keep(&k, tools, N_TOOLS);
    const bool has = remote_gbnf_put_rest(&k, style, said, strlen(said), &out);
    if (has != (want != NULL)) fail_msg("%s: %s", has ? "a grammar" : "none", said);
    if (want) base_buf_printf(&line, "root ::= %s\n", want);
    if (want) assert_string_equal(out.data, line.data);
    if (!want) assert_int_equal(out.len, 0);
    remote_gbnf_tools_free(&k);
    base_buf_free(&out);
    base_buf_free(&line);
}

#define REFACTOR "{\"name\": \"refactor\", \"arguments\": {"

static void test_gbnf_rest__goes_on_in_a_value(void **state)
{
    check(MODEL_TOOLS_JSON, REFACTOR "\"operation\": \"rename\", \"name\": \"",
        " (\"d\" (\"\xc3\xa8s\" | \"\xc3\xa9j\xc3\xa0\") | \"put\" | \"ring\" (\"\" | \"_\" (\"drop\" | \"put\"))) \"\\\"\" ws "
        "t1-more-2 \"}\" ws \"}\" rest");
    check(MODEL_TOOLS_TAG_TOOLS, "I look.\n<tools>" REFACTOR "\"operation\": \"rename\", \"name\": \"ring_d",
        "\"rop\" \"\\\"\" ws t1-more-2 \"}\" ws \"}\" ws \"</tools>\" rest");
    check(MODEL_TOOLS_HERMES,
        "<tool_call>\n" REFACTOR "\"operation\": \"rename\", \"name\": \"ring\", \"to\": \"a\\\"b",
        "character* \"\\\"\" ws t1-more-3 \"}\" ws \"}\" ws \"</tool_call>\" rest");
    check(MODEL_TOOLS_JSON, "{\"name\":\"read\",\"arguments\":{\"path\":\"src/",
        "character* \"\\\"\" ws t0-more-1 \"}\" ws \"}\" rest");
    /* A name that nobody has, and a quote in a name's place, are any string: the tool says what is wrong. */
    check(MODEL_TOOLS_JSON, REFACTOR "\"operation\": \"rename\", \"name\": \"wing",
        "character* \"\\\"\" ws t1-more-2 \"}\" ws \"}\" rest");
}

static void test_gbnf_rest__goes_on_behind_a_value(void **state)
{
    check(MODEL_TOOLS_JSON, REFACTOR, "ws t1-first-0 \"}\" ws \"}\" rest");
    check(MODEL_TOOLS_JSON, REFACTOR "\"operation\": \"rename\"", "ws t1-more-1 \"}\" ws \"}\" rest");
    check(MODEL_TOOLS_JSON, REFACTOR "\"operation\": \"move\", \"name\": \"put\", \"at\": 12 ",
        "ws t1-more-4 \"}\" ws \"}\" rest");
    check(MODEL_TOOLS_JSON, "{\"name\": \"now\", \"arguments\": {", "ws t2-first-0 \"}\" ws \"}\" rest");
}

static void test_gbnf_rest__goes_on_in_xml(void **state)
{
    static const char head[] =
        "<tool_call>\n<function=refactor>\n<parameter=operation>\nrename\n</parameter>\n";
    char said[512];
    check(
        MODEL_TOOLS_XML, "<tool_call>\n<function=now>\n", "ws t2-0 \"</function>\" ws \"</tool_call>\" rest");
    check(MODEL_TOOLS_XML, head, "ws t1-1 \"</function>\" ws \"</tool_call>\" rest");
    snprintf(said, sizeof said, "%s<parameter=name>\nring_", head);
    check(MODEL_TOOLS_XML, said,
        " (\"drop\" | \"put\") \"\\n</parameter>\" ws t1-2 \"</function>\" ws \"</tool_call>\" rest");
    snprintf(said, sizeof said, "%s<parameter=name>\nput\n</parameter>\n<parameter=to>\nhalf a", head);
    check(MODEL_TOOLS_XML, said,
        "[^\\n]* (\"\\n\" xline)* \"\\n</parameter>\" ws t1-3 \"</function>\" ws \"</tool_call>\" rest");
}

static void test_gbnf_rest__knows_where_it_does_not_go_on(void **state)
{
    check(MODEL_TOOLS_JSON, "", NULL);
    check(MODEL_TOOLS_JSON, "{\"name\"", NULL);
    check(MODEL_TOOLS_JSON, "{\"name\": \"nobody\", \"arguments\": {", NULL);
    check(MODEL_TOOLS_JSON, "{\"name\": \"read\", \"arguments\": {}", NULL);
    check(MODEL_TOOLS_JSON, "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n", NULL);
    check(MODEL_TOOLS_JSON, REFACTOR "\"oper", NULL);
    check(MODEL_TOOLS_JSON, REFACTOR "\"operation\": \"rename\", \"name\": \"a\\", NULL);
    check(MODEL_TOOLS_JSON, REFACTOR "\"operation\": \"rename\", \"name\": \"\\u00", NULL);
    check(MODEL_TOOLS_JSON, REFACTOR "\"name\": \"put\", \"operation\": \"rename\"",
        NULL); /* not in the tool's order */
    check(MODEL_TOOLS_JSON, REFACTOR "\"operation\": \"rename\",", NULL);
    check(MODEL_TOOLS_XML, "<tool_call>\n<function=refactor>\n<parameter=nam", NULL);
    check(MODEL_TOOLS_XML, "<function=now>\n</function>", NULL);
}

/* Names of definitions are too many for every request: a call that nobody began takes any string there. */
static void test_gbnf__lists_few_choices_only(void **state)
{
    enum { MANY = 65 };
    const char *many[MANY + 1] = {NULL};
    char names[MANY][16];
    for (int n = MANY - 1; n <= MANY; n++) {
        const model_grammar_argument argument = {"name", MODEL_ARGUMENT_CHOICE, true, many};
        const model_grammar_tool tool = {"refactor", &argument, 1};
        base_buf out = {0};
        for (int i = 0; i < n; i++) {
            snprintf(names[i], sizeof names[i], "name%d", i);
            many[i] = names[i];
        }
        remote_gbnf_put(MODEL_TOOLS_JSON, &tool, 1, NULL, &out);
        assert_int_equal(strstr(out.data, "name63") != NULL, n < MANY);
        base_buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gbnf_rest__goes_on_in_a_value),
        cmocka_unit_test(test_gbnf_rest__goes_on_behind_a_value),
        cmocka_unit_test(test_gbnf_rest__goes_on_in_xml),
        cmocka_unit_test(test_gbnf_rest__knows_where_it_does_not_go_on),
        cmocka_unit_test(test_gbnf__lists_few_choices_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
