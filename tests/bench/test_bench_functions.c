/* What recorded sessions may call, gathered from their calls; and whether a call is the recorded one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/sessions/called_functions.h"
#include "bench/sessions/tally.h"

static void test_bench_functions__arguments_of_all_calls_are_joined(void **state)
{
    (void)state;
    static const char text[] =
        "[{\"traj\":[{\"role\":\"user\",\"content\":\"x\"},{\"tool_calls\":[{\"function\":{\"name\":\"find\","
        "\"arguments\":\"{\\\"name\\\":1}\"}},{\"function\":{\"name\":\"stop\",\"arguments\":\"{}\"}}]}]},"
        "{\"traj\":[{\"tool_calls\":[{\"function\":{\"name\":\"find\",\"arguments\":\"{\\\"day\\\":2,"
        "\\\"name\\\":3}\"}}]}]},"
        "{\"traj\":[{\"tool_calls\":[{\"function\":{\"name\":\"bad\",\"arguments\":\"{\"}},{\"function\":7},"
        "8]}]},{\"traj\":4},5]";
    base_json_doc *doc = NULL;
    base_buf out = {0};
    assert_int_equal(base_json_parse(text, strlen(text), &doc, NULL), 0);
    functions_add(base_json_root(doc), &out);
    const char *list = strstr(out.data, "</tool_call>\n\n");
    assert_non_null(list);
    assert_string_equal(list, "</tool_call>\n\n- find(name, day)\n- stop()\n");
    base_buf_clear(&out);
    functions_add(NULL, &out);
    assert_null(strstr(out.data, "\n- "));
    base_buf_free(&out);
    base_json_free(doc);
}

static void test_bench_functions__a_recorded_call_is_known_however_it_is_written(void **state)
{
    (void)state;
    static const struct {
        const char *call;
        bool same;
    } cases[] = {
        {"{\"name\":\"book\",\"arguments\":{\"n\":2,\"to\":[\"A\",{\"x\":null}],\"ok\":true}}", true},
        {"{ \"arguments\": {\"ok\":true, \"to\":[\"A\",{\"x\":null}], \"n\":2.0}, \"name\":\"book\"}", true},
        {"{\"name\":\"look\",\"arguments\":{\"n\":2,\"to\":[\"A\",{\"x\":null}],\"ok\":true}}", false},
        {"{\"name\":\"book\",\"arguments\":{\"n\":2,\"to\":[\"A\",{\"x\":null}]}}", false},
        {"{\"name\":\"book\",\"arguments\":{\"n\":2,\"to\":[\"A\",{\"x\":null}],\"ok\":true,\"y\":1}}",
            false},
        {"{\"name\":\"book\",\"arguments\":{\"n\":\"2\",\"to\":[\"A\",{\"x\":null}],\"ok\":true}}", false},
        {"{\"name\":\"book\",\"arguments\":{\"n\":2,\"to\":[\"A\",{\"x\":1}],\"ok\":true}}", false},
        {"{\"name\":\"book\"}", false},
        {"{\"name\":\"book\",\"argu", false},
        {"[]", false},
    };
    static const char recorded[] = "{\"n\":2,\"to\":[\"A\",{\"x\":null}],\"ok\":true}";
    transcript_message m = {.called = "book"};
    assert_int_equal(base_json_parse(recorded, strlen(recorded), &m.doc, NULL), 0);
    m.arguments = base_json_root(m.doc);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf call = {0};
        base_buf_puts(&call, cases[i].call);
        if (tally_is_recorded(&call, &m) != cases[i].same) fail_msg("%s", cases[i].call);
        if (cases[i].same) assert_false(tally_is_recorded(&call, &(transcript_message){.call_from = 0}));
        base_buf_free(&call);
    }
    base_json_free(m.doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_functions__arguments_of_all_calls_are_joined),
        cmocka_unit_test(test_bench_functions__a_recorded_call_is_known_however_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
