/* Which addresses are taken, what is the same origin, and what counts as near. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
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

/* Answers with a length and then a byte every few milliseconds, for ever; or, with `ends`, ten of them. */
static pid_t serve_slowly(bool ends, int *ret_port)
{
    static const char head[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof here;
    char request[4096];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof here) || listen(fd, 5), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&here, &n), 0);
    *ret_port = ntohs(here.sin_port);
    pid_t child = fork();
    if (!child) {
        int to = accept(fd, NULL, NULL);
        if (read(to, request, sizeof request) < 0 || write(to, head, sizeof head - 1) < 0) _exit(1);
        for (int i = 0; !ends || i < 10; i++) {
            if (send(to, " ", 1, MSG_NOSIGNAL) < 0) _exit(0);
            usleep(5000);
        }
        _exit(0);
    }
    close(fd);
    return child;
}

static int ask_slow(bool ends, uint32_t ms, base_err *err)
{
    int port;
    char url[60];
    pid_t child = serve_slowly(ends, &port);
    remote_http *h = NULL;
    base_buf answer = {0};
    const remote_limits limits = {.connect_ms = ms, .first_ms = ms, .silence_ms = ms, .give_up_ms = 10};
    snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    assert_int_equal(remote_http_open(&h, &(remote_http_options){.url = url, .limits = limits}, err), 0);
    int rc = remote_http_ask(h, "/v1/models", NULL, NULL, &answer, err);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    base_buf_free(&answer);
    remote_http_close(h);
    return rc;
}

/*
 * The server is never silent, so that nothing but the whole time ends it. On a busy machine it may be all the same: then the limits
 * were too short for this machine.
 */
static void test_an_answer_without_an_end_is_given_up(void **state)
{
    enum { FIRST_MS = 500, LAST_MS = 60000 };
    base_err err = {0};
    bool is_told = false;
    for (uint32_t ms = FIRST_MS; ms < LAST_MS && !is_told; ms *= 2) {
        assert_int_not_equal(ask_slow(false, ms, &err), 0);
        is_told = strstr(err.msg, "without an end") != NULL;
    }
    if (!is_told) fail_msg("%s", err.msg);
    assert_int_equal(ask_slow(true, LAST_MS, &err), 0); /* the control */
}

/* Lets a child that dribbles blanks run into a stream of ours for a while; is_progress: they count as an answer. */
static int read_for(uint64_t alive_ms, bool is_progress, base_err *err)
{
    int port, rc = 0;
    char url[60];
    pid_t child = serve_slowly(false, &port);
    remote_http *h = NULL;
    bool ended = false;
    const remote_limits limits = {.connect_ms = 10000,
        .first_ms = 10000,
        .silence_ms = 10000,
        .alive_ms = (uint32_t)alive_ms,
        .give_up_ms = 10};
    snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    assert_int_equal(remote_http_open(&h, &(remote_http_options){.url = url, .limits = limits}, err), 0);
    assert_int_equal(remote_http_send(h, "/completion", "{}", NULL, err), 0);
    for (const uint64_t begun = base_clock_ns();
         !rc && !ended && base_clock_ns() - begun < 8 * alive_ms * 1000000;) {
        base_buf bytes = {0};
        rc = remote_http_read(h, &bytes, &ended, err);
        if (bytes.len && is_progress) remote_http_progress(h);
        base_buf_free(&bytes);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    remote_http_close(h);
    return rc;
}

static void test_signs_of_life_are_no_answer(void **state)
{
    base_err err = {0};
    assert_int_equal(read_for(1000, false, &err), BASE_E_STATE);
    assert_non_null(strstr(err.msg, "sent nothing of an answer"));
    /* The control: a slow answer goes on, where the machine does not hold the server itself up for as long. */
    int rc = BASE_E_STATE;
    for (uint64_t ms = 500; rc && ms < 60000; ms *= 2) rc = read_for(ms, true, &err);
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_apart),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_plain_http_stays_near),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_an_answer_without_an_end_is_given_up),
        cmocka_unit_test(test_signs_of_life_are_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
