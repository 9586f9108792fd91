/* What a reader of lines sees of a streamed answer: all of it, and never a call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/call/stream.h"

/* The text in pieces of n bytes; out is what was shown while it streamed. */
static void stream(agent_stream *s, const char *text, size_t n, base_buf *out)
{
    for (size_t at = 0; at < strlen(text); at += n) {
        char piece[64];
        size_t len = strlen(text + at) < n ? strlen(text + at) : n;
        memcpy(piece, text + at, len);
        piece[len] = 0;
        agent_stream_token(s, piece, false, out);
    }
}

static void assert_shown(const base_buf *out, const char *text)
{
    assert_string_equal(out->data ? out->data : "", text);
}

static void test_stream__words_are_shown_as_they_come(void **state)
{
    for (size_t n = 1; n < 8; n++) {
        agent_stream s = {0};
        base_buf out = {0};
        stream(&s, "One line.\nAnd {not a call} here", n, &out);
        assert_shown(&out, "One line.\nAnd {not a call} here");
        assert_true(s.line_open);
        agent_stream_answer(&s, "One line.\nAnd {not a call} here", &out); /* nothing is shown twice */
        assert_shown(&out, "One line.\nAnd {not a call} here");
        agent_stream_free(&s);
        base_buf_free(&out);
    }
}

/* The harness wrote "<tools>{..." in front of it. */
static void test_stream__the_rest_of_a_call_is_not_shown(void **state)
{
    agent_stream s = {0};
    base_buf out = {0};
    agent_stream_token(&s, "old\", \"to\": ", true, &out);
    agent_stream_token(&s, "\"new\"}}</tools>", true, &out);
    assert_shown(&out, "");
    agent_stream_forget(&s);
    agent_stream_token(&s, "Renamed.", false, &out);
    assert_shown(&out, "Renamed.");
    agent_stream_free(&s);
    base_buf_free(&out);
}

static void test_stream__a_call_is_never_shown(void **state)
{
    static const char *const calls[] = {"<tools>{\"name\": \"read\"}</tools>",
        "<tool_call>\n{}\n</tool_call>", "{\"name\": \"read\"}", "```json\n{}\n```"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (size_t n = 1; n < 8; n++) {
            agent_stream s = {0};
            base_buf out = {0};
            stream(&s, "I look.\n", n, &out);
            stream(&s, calls[i], n, &out);
            agent_stream_forget(&s); /* the call's own event */
            assert_shown(&out, "I look.\n");
            stream(&s, "Next answer.", n, &out);
            assert_shown(&out, "I look.\nNext answer.");
            agent_stream_free(&s);
            base_buf_free(&out);
        }
}

static void test_stream__what_only_looked_like_a_call_comes_at_the_end(void **state)
{
    agent_stream s = {0};
    base_buf out = {0};
    stream(&s, "See:\n```c\nint x;\n```", 3, &out);
    assert_shown(&out, "See:\n");
    agent_stream_answer(&s, "See:\n```c\nint x;\n```", &out);
    assert_shown(&out, "See:\n```c\nint x;\n```");
    agent_stream_answer(&s, "All at once.\n", &out); /* an answer that did not stream */
    assert_shown(&out, "See:\n```c\nint x;\n```All at once.\n");
    assert_false(s.line_open);
    agent_stream_free(&s);
    base_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream__words_are_shown_as_they_come),
        cmocka_unit_test(test_stream__the_rest_of_a_call_is_not_shown),
        cmocka_unit_test(test_stream__a_call_is_never_shown),
        cmocka_unit_test(test_stream__what_only_looked_like_a_call_comes_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
