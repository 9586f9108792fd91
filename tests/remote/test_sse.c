/* Events are the same wherever the bytes are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "remote/sse.h"

static int put_event(void *user, const char *data, size_t n, base_err *err)
{
    base_buf_printf(user, "[%.*s]", (int)n, data);
    return 0;
}

static int refuse_event(void *user, const char *data, size_t n, base_err *err)
{
    return base_fail(err, BASE_E_FORMAT, "no");
}

typedef struct stream {
    const char *bytes, *events;
} stream;

static const stream streams[] = {
    {"data: a\n\ndata: b\n\n", "[a][b]"},
    {"data: a\r\n\r\ndata: b\r\n\r\n", "[a][b]"},
    {"data: a\r\rdata: b\r\r", "[a][b]"},
    {"data:a\n\n", "[a]"},
    {"data:  a\n\n", "[ a]"},
    {"data: a\ndata: b\n\n", "[a\nb]"},
    {"data\n\n", "[]"},
    {": keep-alive\n\ndata: a\n\n:\n\n", "[a]"},
    {"\xef\xbb\xbf"
     "data: a\n\n",
        "[a]"},
    {"data: \xef\xbb\xbf\n\n", "[\xef\xbb\xbf]"},
    {"event: x\nid: 7\nretry: 3\ndata: a\n\n", "[a]"},
    {"database: a\n\n", ""},
    {"data: {\"x\":\"\xf0\x9f\x98\x80\"}\n\n", "[{\"x\":\"\xf0\x9f\x98\x80\"}]"},
    {"data: a", "[a]"},   /* the connection ended in the middle of a line */
    {"data: a\n", "[a]"}, /* ... and before the blank line */
    {"data: a\n\nerror: {\"m\":1}\n\n", "[a][{\"m\":1}]"},
    {"data: a\nerror: b\n\n", "[a][b]"},
    {"{\"error\":1}", "[{\"error\":1}]"}, /* an answer that is no stream */
    {"{\"a\":1}\n{\"a\":2}\n", "[{\"a\":1}][{\"a\":2}]"},
    {"\n\n\n", ""},
    {"", ""},
};

static void test_every_cut(void **state)
{
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        const size_t n = strlen(streams[i].bytes);
        for (size_t first = 0; first <= n; first++)
            for (size_t second = first; second <= n; second++) {
                remote_sse s = {0};
                base_buf told = {0};
                base_buf_puts(&told, "");
                const size_t cuts[] = {0, first, second, n};
                for (int k = 0; k < 3; k++) {
                    size_t size = cuts[k + 1] - cuts[k];
                    char *part = malloc(size ? size : 1); /* exact size: ASan sees a read behind it */
                    memcpy(part, streams[i].bytes + cuts[k], size);
                    assert_int_equal(remote_sse_feed(&s, part, size, put_event, &told, NULL), 0);
                    free(part);
                }
                assert_int_equal(remote_sse_end(&s, put_event, &told, NULL), 0);
                assert_string_equal(told.data, streams[i].events);
                remote_sse_free(&s);
                base_buf_free(&told);
            }
    }
}

static void test_long_lines_are_refused(void **state)
{
    enum { STEP = 1 << 16 };
    static char part[STEP];
    memset(part, 'x', sizeof part);
    for (int events = 0; events < 2; events++) { /* one endless line; endless data of one event */
        remote_sse s = {0};
        base_err err = {0};
        int rc = 0;
        size_t fed = 0;
        memcpy(part, "data: ", 6);
        part[STEP - 1] = events ? '\n' : 'x';
        for (; !rc && fed < 100u << 20; fed += STEP) {
            rc = remote_sse_feed(&s, part, sizeof part, put_event, &(base_buf){0}, &err);
            if (!events) memset(part, 'x', 6);
        }
        assert_int_equal(rc, BASE_E_LIMIT);
        assert_true(fed <= REMOTE_SSE_MOST + 2 * STEP);
        assert_non_null(strstr(err.msg, "8 MiB"));
        remote_sse_free(&s);
    }
}

static void test_an_error_ends_the_reading(void **state)
{
    remote_sse s = {0};
    base_err err = {0};
    assert_int_equal(remote_sse_feed(&s, "data: a\n\n", 9, refuse_event, NULL, &err), BASE_E_FORMAT);
    assert_string_equal(err.msg, "no");
    remote_sse_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_long_lines_are_refused),
        cmocka_unit_test(test_an_error_ends_the_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
