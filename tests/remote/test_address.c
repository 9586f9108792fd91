/* Which addresses are taken, what is the same origin, and what counts as near. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <netinet/in.h>

#include "remote/http.h"

static void test_taken_apart(void **state)
{
    static const struct {
        const char *text, *origin, *base;
        bool is_loopback, is_private;
    } rows[] = {
        {"http://127.0.0.1:8080", "http://127.0.0.1:8080", "http://127.0.0.1:8080", true, true},
        {"http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080", "http://127.0.0.1:8080", true, true},
        {"https://API.Example.com/v1", "https://api.example.com:443", "https://api.example.com:443", false,
            false},
        {"https://example.com/a/b/", "https://example.com:443", "https://example.com:443/a/b", false, false},
        {"http://localhost:1", "http://localhost:1", "http://localhost:1", true, true},
        {"http://[::1]:8000", "http://[::1]:8000", "http://[::1]:8000", true, true},
        {"http://10.1.2.3", "http://10.1.2.3:80", "http://10.1.2.3:80", false, true},
        {"http://172.31.0.1", "http://172.31.0.1:80", "http://172.31.0.1:80", false, true},
        {"http://172.32.0.1", "http://172.32.0.1:80", "http://172.32.0.1:80", false, false},
        {"http://192.168.1.9:9", "http://192.168.1.9:9", "http://192.168.1.9:9", false, true},
        {"http://100.100.0.1", "http://100.100.0.1:80", "http://100.100.0.1:80", false, true},
        {"http://8.8.8.8", "http://8.8.8.8:80", "http://8.8.8.8:80", false, false},
        {"http://[fd00::1]", "http://[fd00::1]:80", "http://[fd00::1]:80", false, true},
        {"http://[2001:db8::1]", "http://[2001:db8::1]:80", "http://[2001:db8::1]:80", false, false},
        {"http://[::ffff:8.8.8.8]", NULL, NULL, false, false},
        {"http://localhost.example.com", NULL, NULL, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        remote_address a = {0};
        base_err err = {0};
        if (remote_address_parse(rows[i].text, &a, &err)) fail_msg("%s: %s", rows[i].text, err.msg);
        if (rows[i].origin) assert_string_equal(a.origin, rows[i].origin);
        if (rows[i].base) assert_string_equal(a.base, rows[i].base);
        if (a.is_loopback != rows[i].is_loopback || a.is_private != rows[i].is_private)
            fail_msg("%s: loopback %d, private %d", rows[i].text, a.is_loopback, a.is_private);
        remote_address_free(&a);
    }
}

static void test_refused(void **state)
{
    static const char *const bad[] = {"", "host:8000", "127.0.0.1", "ftp://host", "file:///etc/passwd",
        "http://user:secret@host", "http://user@host", "http://host/?key=x", "http://host/#x", "http://",
        "https://host:99999999", "http://0x%7f.1", "http://0%787f.1", "http://0%78f.1:80/v1",
        "http://localhost%2f.evil.example", "http://a%20b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        remote_address a = {0};
        base_err err = {0};
        if (remote_address_parse(bad[i], &a, &err) != BASE_E_USAGE) fail_msg("%s was taken", bad[i]);
        assert_null(strstr(err.msg, "secret"));
    }
}

static int open_http(const char *url, bool insecure, const char *key)
{
    remote_http *h = NULL;
    int rc = remote_http_open(&h,
        &(remote_http_options){
            .url = url, .is_insecure_allowed = insecure, .key = key, .limits = REMOTE_LIMITS_DEFAULTS},
        NULL);
    remote_http_close(rc ? NULL : h);
    return rc;
}

static void test_plain_http_stays_near(void **state)
{
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    assert_int_equal(open_http("http://8.8.8.8:1", false, NULL), BASE_E_USAGE);
    assert_int_equal(open_http("http://8.8.8.8:1", true, NULL), 0);
    assert_int_equal(open_http("https://8.8.8.8:1", false, NULL), 0);
    assert_int_equal(open_http("http://10.0.0.1:1", false, NULL), 0);
    assert_int_equal(open_http("http://some-name:1", false, NULL), 0); /* judged where it leads to */
    setenv("http_proxy", "http://127.0.0.1:3128", 1);
    assert_int_equal(open_http("http://some-name:1", false, NULL), BASE_E_USAGE);
    assert_int_equal(open_http("http://127.0.0.1:1", false, NULL), 0);
    unsetenv("http_proxy");
}

static void test_keys(void **state)
{
    assert_int_equal(open_http("http://127.0.0.1:1", false, "sk-123"), 0);
    assert_int_equal(open_http("http://127.0.0.1:1", false, "sk\r\nHost: x"), BASE_E_USAGE);
    assert_int_equal(open_http("http://127.0.0.1:1", false, "a b"), BASE_E_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_apart),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_plain_http_stays_near),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
