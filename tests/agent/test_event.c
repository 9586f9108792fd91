/* Events: what is written reads back, byte for byte; copies own their strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/log/event.h"

static void assert_stable(const agent_event *e)
{
    base_buf first = {0}, second = {0};
    agent_event_write(e, &first);
    agent_event back;
    agent_event_doc *doc = NULL;
    base_err err = {0};
    assert_int_equal(agent_event_read(first.data, first.len, &back, &doc, &err), 0);
    agent_event_write(&back, &second);
    assert_string_equal(first.data, second.data);
    agent_event_doc_free(doc);
    base_buf_free(&first);
    base_buf_free(&second);
}

static void test_event__every_type_with_empty_fields_is_stable(void **state)
{
    for (int t = 0; t < AGENT_N_EVENTS; t++) {
        agent_event e = {.type = (agent_event_type)t};
        assert_stable(&e);
    }
}

static void test_event__writes_what_scripts_rely_on(void **state)
{
    base_buf out = {0};
    agent_event e = {.type = AGENT_EVENT_token, .token = {.id = 5, .index = 7, .text = "a\n\"\xff"}};
    agent_event_write(&e, &out);
    assert_string_equal(
        out.data, "{\"event\":\"token\",\"id\":5,\"index\":7,\"text\":\"a\\n\\\"\xef\xbf\xbd\"}");
    assert_stable(&e);
    base_buf_clear(&out);
    e = (agent_event){.type = AGENT_EVENT_plan,
        .plan = {.turn = 2,
            .cause = "evict",
            .runs = {&(agent_run_row){0, 3, "evict", "budget", 4}, 1},
            .score_ms = 0.1}};
    agent_event_write(&e, &out);
    assert_non_null(strstr(out.data, "\"runs\":[[0,3,\"evict\",\"budget\",4]]"));
    assert_non_null(strstr(out.data, "\"score_ms\":0.1"));
    assert_stable(&e);
    base_buf_free(&out);
}

static void test_event__a_raw_field_stays_on_the_line(void **state)
{
    base_buf out = {0};
    agent_event e = {.type = AGENT_EVENT_session, .session = {.schema = 1, .settings = "[1,\n 2]"}};
    agent_event_write(&e, &out);
    assert_null(strchr(out.data, '\n'));
    assert_stable(&e);
    base_buf_free(&out);
}

static void test_event__lists_and_raw_fields_read_back(void **state)
{
    static const char line[] = "{\"event\":\"append\",\"turn\":1,\"from\":0,\"n\":2,\"ids\":[1,2],\"lens\":["
                               "3,4],\"segment\":{\"bulk\":7},\"unknown\":{}}";
    agent_event e;
    agent_event_doc *doc;
    assert_int_equal(agent_event_read(line, sizeof line - 1, &e, &doc, NULL), 0);
    assert_int_equal(e.append.ids.n, 2);
    assert_int_equal(e.append.ids.rows[1].id, 2);
    assert_int_equal(e.append.lens.rows[0].n, 3);
    assert_string_equal(e.append.segment, "{\"bulk\":7}");
    assert_int_equal(e.append.lanes, 0);
    assert_null(e.append.text);
    agent_event_doc_free(doc);
}

static void test_event__refuses_what_is_none(void **state)
{
    static const char *const wrong[] = {
        "", "[]", "{}", "{\"event\":5}", "{\"event\":\"nope\"}", "{\"event\":\"token\""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        agent_event e;
        agent_event_doc *doc;
        base_err err = {0};
        assert_int_equal(agent_event_read(wrong[i], strlen(wrong[i]), &e, &doc, &err), BASE_E_FORMAT);
        assert_true(err.msg[0] != 0);
    }
}

static void test_event__copy_is_deep(void **state)
{
    char text[] = "hello", blob[] = "xyz";
    agent_event e = {
        .type = AGENT_EVENT_notice, .seq = 9, .blob = blob, .blob_n = 3, .notice = {.text = text}};
    agent_event *copy = agent_event_copy(&e);
    text[0] = blob[0] = '-';
    assert_string_equal(copy->notice.text, "hello");
    assert_memory_equal(copy->blob, "xyz", 3);
    assert_int_equal(copy->seq, 9);
    agent_event_free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event__every_type_with_empty_fields_is_stable),
        cmocka_unit_test(test_event__writes_what_scripts_rely_on),
        cmocka_unit_test(test_event__a_raw_field_stays_on_the_line),
        cmocka_unit_test(test_event__lists_and_raw_fields_read_back),
        cmocka_unit_test(test_event__refuses_what_is_none),
        cmocka_unit_test(test_event__copy_is_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
