/*
 * Downloads from file: URLs and from a small server of our own on a pair of threads (loopback only): whole, resumed, restarted,
 * wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "tools/transfer.h"

#define N_BYTES 300000

static char body[N_BYTES], body_sha[65], dir[64];

/* The server: answers one request a connection; how depends on the path. */
static int listener;
static int port;
static long last_range; /* what was asked for; -1: the whole */
static int n_turns;     /* of a redirect in a circle */

static void answer(int fd)
{
    char request[4096];
    ssize_t n = read(fd, request, sizeof request - 1);
    if (n <= 0) return;
    request[n] = '\0';
    const char *range = strstr(request, "Range: bytes=");
    last_range = range ? atol(range + 13) : -1;
    char head[400];
    size_t from = last_range > 0 && !strstr(request, "/ignores-range") ? (size_t)last_range : 0;
    if (strstr(request, "/missing")) {
        snprintf(
            head, sizeof head, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    } else if (strstr(request, "/to-file")) {
        snprintf(head, sizeof head,
            "HTTP/1.1 302 Found\r\n"
            "Location: file:///etc/passwd\r\n"
            "Content-Length: 0\r\n"
            "Connection: close\r\n"
            "\r\n");
    } else if (strstr(request, "/circle")) {
        snprintf(head, sizeof head,
            "HTTP/1.1 302 Found\r\nLocation: /circle%d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            ++n_turns % 3);
    } else if (strstr(request, "/moved")) {
        snprintf(head, sizeof head,
            "HTTP/1.1 302 Found\r\n"
            "Location: /whole\r\n"
            "ETag: \"other\"\r\n"
            "Content-Length: 0\r\n"
            "Connection: close\r\n"
            "\r\n");
    } else if (strstr(request, "/says-more") || strstr(request, "/says-less") || strstr(request, "/huge")) {
        long long length = strstr(request, "/huge")  ? 1ll << 50
                           : strstr(request, "more") ? N_BYTES + 500
                                                     : 1000;
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\nConnection: close\r\n\r\n",
            length);
    } else if (strstr(request, "/elsewhere") && from) {
        snprintf(head, sizeof head,
            "HTTP/1.1 206 Partial Content\r\n"
            "Content-Length: %zu\r\n"
            "Content-Range: bytes %zu-%d/%d\r\n"
            "ETag: \"v1\"\r\n"
            "Connection: close\r\n"
            "\r\n",
            N_BYTES - from, from / 2, N_BYTES - 1, N_BYTES);
    } else if (from >= N_BYTES) {
        snprintf(head, sizeof head,
            "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    } else if (from) {
        snprintf(head, sizeof head,
            "HTTP/1.1 206 Partial Content\r\n"
            "Content-Length: %zu\r\n"
            "Content-Range: bytes %zu-%d/%d\r\n"
            "ETag: \"v1\"\r\n"
            "Connection: close\r\n"
            "\r\n",
            N_BYTES - from, from, N_BYTES - 1, N_BYTES);
    } else {
        snprintf(head, sizeof head,
            "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: \"v1\"\r\nConnection: close\r\n\r\n", N_BYTES);
    }
    ssize_t done = send(fd, head, strlen(head), MSG_NOSIGNAL);
    if (!strncmp(head + 9, "200", 3) || !strncmp(head + 9, "206", 3)) {
        size_t to = strstr(request, "/cut") && !from ? N_BYTES / 3 : N_BYTES;
        for (size_t at = from; done > 0 && at < to; at += (size_t)done)
            done = send(fd, body + at, to - at, MSG_NOSIGNAL);
    }
}

static void *serve(void *arg)
{
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;) {
        answer(fd);
        shutdown(fd, SHUT_WR);
        char rest[256];
        while (read(fd, rest, sizeof rest) > 0) {
        }
        close(fd);
    }
    return NULL;
}

static char *file(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int get(const char *name, const char *target, const char *sha, base_err *err)
{
    char url[300], path[200];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", port, name);
    snprintf(path, sizeof path, "%s/%s", dir, target);
    return tool_transfer_get(&(tool_transfer_options){.url = url, .path = path, .sha256 = sha}, err);
}

static void expect_body(const char *name)
{
    base_buf got = {0};
    assert_int_equal(base_fs_read(file(name), 1 << 20, &got, NULL), 0);
    assert_int_equal(got.len, N_BYTES);
    assert_memory_equal(got.data, body, N_BYTES);
    base_buf_free(&got);
}

static bool has(const char *name)
{
    return base_fs_exists(file(name));
}

static void test_transfer__a_file_url_is_checked_and_renamed(void **state)
{
    base_err err = {0};
    char url[300], path[200];
    assert_int_equal(base_fs_write(file("source"), body, N_BYTES, 0644, NULL), 0);
    snprintf(url, sizeof url, "file://%s", file("source"));
    snprintf(path, sizeof path, "%s", file("deep/er/copy"));
    tool_transfer_options o = {.url = url, .path = path, .sha256 = body_sha};
    if (tool_transfer_get(&o, &err)) fail_msg("%s", err.msg);
    expect_body("deep/er/copy");
    assert_false(has("deep/er/copy.part"));
    o.path = file("wrong");
    o.sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
    assert_int_equal(tool_transfer_get(&o, &err), BASE_E_FORMAT);
    assert_false(has("wrong"));
    assert_false(has("wrong.part"));
    o.sha256 = NULL;
    o.max_bytes = 1000;
    assert_int_equal(tool_transfer_get(&o, &err), BASE_E_LIMIT);
    assert_false(has("wrong"));
}

static void test_transfer__an_interrupted_one_goes_on(void **state)
{
    base_err err = {0};
    assert_int_equal(get("missing", "none", NULL, &err), BASE_E_IO);
    assert_false(has("none.part")); /* nothing came */
    assert_int_equal(get("cut", "a", body_sha, &err), BASE_E_IO);
    assert_false(has("a"));
    assert_true(has("a.part"));
    if (get("cut", "a", body_sha, &err)) fail_msg("%s", err.msg);
    assert_int_equal(last_range, N_BYTES / 3);
    expect_body("a");
    assert_false(has("a.part"));
    /* Without a sum: by the ETag. */
    assert_int_equal(get("cut", "b", NULL, &err), BASE_E_IO);
    if (get("cut", "b", NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(last_range, N_BYTES / 3);
    expect_body("b");
    assert_false(has("b.part.from"));
    /* Without either: from the start. */
    assert_int_equal(base_fs_write(file("c.part"), "rubbish", 7, 0600, NULL), 0);
    if (get("whole", "c", NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(last_range, -1);
    expect_body("c");
}

static void test_transfer__a_part_of_something_else_is_thrown_away(void **state)
{
    base_err err = {0};
    assert_int_equal(base_fs_write(file("d.part"), "rubbish", 7, 0600, NULL), 0);
    if (get("whole", "d", body_sha, &err)) fail_msg("%s", err.msg);
    expect_body("d");
    assert_int_equal(base_fs_write(file("e.part"), body, 1000, 0600, NULL), 0);
    if (get("ignores-range", "e", body_sha, &err)) fail_msg("%s", err.msg);
    expect_body("e");
    assert_int_equal(
        base_fs_write(file("f.part"), body, N_BYTES, 0600, NULL), 0); /* all there, only not renamed */
    if (get("whole", "f", body_sha, &err)) fail_msg("%s", err.msg);
    expect_body("f");
}

static void test_transfer__other_protocols_and_errors_are_sentences(void **state)
{
    base_err err = {0};
    assert_int_equal(get("missing", "g", NULL, &err), BASE_E_IO);
    assert_non_null(strstr(err.msg, "404"));
    assert_int_equal(get("to-file", "g", NULL, &err), BASE_E_IO);
    assert_false(has("g"));
    assert_int_equal(
        tool_transfer_get(&(tool_transfer_options){.url = "ftp://127.0.0.1/x", .path = file("g")}, &err),
        BASE_E_IO);
    assert_int_equal(
        tool_transfer_get(&(tool_transfer_options){.url = "", .path = file("g")}, &err), BASE_E_IO);
    assert_false(has("g"));
}

/* What a server says of the length is not believed: neither a file too short nor one cut off gets its name. */
static void test_transfer__lies_are_seen(void **state)
{
    base_err err = {0};
    assert_int_equal(get("says-more", "i", body_sha, &err), BASE_E_IO);
    assert_false(has("i"));
    assert_true(has("i.part"));
    if (get("whole", "i", body_sha, &err)) fail_msg("%s", err.msg); /* all was there */
    expect_body("i");
    assert_int_equal(get("says-less", "j", body_sha, &err), BASE_E_FORMAT);
    assert_false(has("j"));
    assert_false(has("j.part"));
    /* Bytes from another place than was asked for are not joined to what is there. */
    assert_int_equal(get("cut", "k", NULL, &err), BASE_E_IO);
    int code = get("elsewhere", "k", NULL, &err);
    if (code) fail_msg("%s", err.msg);
    assert_int_equal(last_range, -1); /* begun again */
    expect_body("k");
}

static void test_transfer__redirects_are_followed_but_not_for_ever(void **state)
{
    base_err err = {0};
    if (get("moved", "l", body_sha, &err)) fail_msg("%s", err.msg);
    expect_body("l");
    n_turns = 0;
    assert_int_equal(get("circle", "m", NULL, &err), BASE_E_IO);
    assert_non_null(strstr(err.msg, "redirects"));
    assert_true(n_turns <= 12);
    assert_false(has("m"));
    assert_false(has("m.part"));
}

static void test_transfer__asks_for_room_first(void **state)
{
    base_err err = {0};
    char url[300];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/huge", port);
    tool_transfer_options o = {.url = url, .path = file("n"), .max_bytes = UINT64_MAX};
    assert_int_equal(tool_transfer_get(&o, &err), BASE_E_NOMEM);
    assert_non_null(strstr(err.msg, "are free"));
    assert_false(has("n"));
    assert_false(has("n.part")); /* nothing was written */
}

static bool stop(void *user, uint64_t done, uint64_t total)
{
    return false;
}

static void test_transfer__stops_when_asked(void **state)
{
    base_err err = {0};
    char url[300];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/whole", port);
    atomic_bool cancel = true;
    tool_transfer_options o = {.url = url, .path = file("h"), .sha256 = body_sha, .cancel = &cancel};
    assert_int_equal(tool_transfer_get(&o, &err), BASE_E_CANCELLED);
    o.cancel = NULL;
    o.progress = stop;
    assert_int_equal(tool_transfer_get(&o, &err), BASE_E_CANCELLED);
    assert_false(has("h"));
}

int main(void)
{
    for (size_t i = 0; i < N_BYTES; i++) body[i] = (char)(i * 2654435761u >> 13);
    base_sha256_hex(body, N_BYTES, body_sha);
    snprintf(dir, sizeof dir, "/tmp/kvist-transfer-XXXXXX");
    if (!mkdtemp(dir)) return 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof address;
    pthread_t thread;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, n) || listen(listener, 8) ||
        getsockname(listener, (struct sockaddr *)&address, &n) || pthread_create(&thread, NULL, serve, NULL))
        return 77;
    port = ntohs(address.sin_port);
    setenv("no_proxy", "127.0.0.1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfer__a_file_url_is_checked_and_renamed),
        cmocka_unit_test(test_transfer__an_interrupted_one_goes_on),
        cmocka_unit_test(test_transfer__a_part_of_something_else_is_thrown_away),
        cmocka_unit_test(test_transfer__other_protocols_and_errors_are_sentences),
        cmocka_unit_test(test_transfer__lies_are_seen),
        cmocka_unit_test(test_transfer__redirects_are_followed_but_not_for_ever),
        cmocka_unit_test(test_transfer__asks_for_room_first),
        cmocka_unit_test(test_transfer__stops_when_asked),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shutdown(listener, SHUT_RDWR);
    close(listener);
    pthread_join(thread, NULL);
    base_fs_remove(dir, NULL);
    return failed;
}
