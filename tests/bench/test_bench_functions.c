/* What recorded sessions may call, gathered from their calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/sessions/called_functions.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_functions__arguments_of_all_calls_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
