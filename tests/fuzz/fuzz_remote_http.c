/*
 * A server that answers with these bytes and closes: status lines, headers, redirects, errors. What is told of it holds nothing that a
 * terminal would obey and never the key. The first byte chooses between a whole answer and a stream.
 */
#include "remote/http.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define KEY "sk-secret-0123456789"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct {
    int fd;
    char url[64];
    pthread_mutex_t lock;
    const uint8_t *bytes; /* what the next connection gets */
    size_t n;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *serve(void *unused)
{
    for (;;) {
        char request[16384];
        size_t have = 0;
        const int to = accept(server.fd, NULL, NULL);
        if (to < 0) continue;
        /* All of the request, so that closing does not reset what was sent. Bodies here are one byte long. */
        for (ssize_t got = 1; got > 0 && have < sizeof request - 1;) {
            got = read(to, request + have, sizeof request - 1 - have);
            if (got > 0) have += (size_t)got;
            request[have] = '\0';
            const char *end = strstr(request, "\r\n\r\n");
            if (end && (request[0] == 'G' || end[4])) break;
        }
        pthread_mutex_lock(&server.lock);
        for (size_t at = 0; at < server.n;) {
            const ssize_t sent = send(to, server.bytes + at, server.n - at, MSG_NOSIGNAL);
            if (sent <= 0) break;
            at += (size_t)sent;
        }
        pthread_mutex_unlock(&server.lock);
        shutdown(to, SHUT_WR);
        close(to);
    }
    return unused;
}

static void start_server(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    pthread_t thread;
    server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server.fd, (struct sockaddr *)&at, len) || listen(server.fd, 64) ||
        getsockname(server.fd, (struct sockaddr *)&at, &len) || pthread_create(&thread, NULL, serve, NULL))
        abort();
    base_buf url = {0};
    base_buf_printf(&url, "http://127.0.0.1:%d/v1", ntohs(at.sin_port));
    strcpy(server.url, url.data);
    base_buf_free(&url);
}

static void check_sentence(const char *text)
{
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f) abort();
    if (strstr(text, KEY)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (!server.fd) start_server();
    if (n < 1 || n > 1 << 14) return 0;
    remote_http *h = NULL;
    const remote_http_options options = {.url = server.url,
        .key = KEY,
        .limits = {.connect_ms = 2000, .first_ms = 200, .silence_ms = 200, .alive_ms = 200, .give_up_ms = 0}};
    base_buf answer = {0};
    base_err err = {0};
    long status = 0;
    pthread_mutex_lock(&server.lock);
    server.bytes = bytes + 1;
    server.n = n - 1;
    pthread_mutex_unlock(&server.lock);
    if (remote_http_open(&h, &options, &err)) abort();
    int rc;
    if (bytes[0] & 1) {
        bool is_ended = false;
        rc = remote_http_send(h, "/chat", "x", &status, &err);
        while (!rc && !is_ended && answer.len < 1 << 20) rc = remote_http_read(h, &answer, &is_ended, &err);
    } else {
        rc = remote_http_ask(h, "/models", bytes[0] & 2 ? "x" : NULL, &status, &answer, &err);
        if (!rc && (status < 200 || status > 299)) abort();
    }
    if (rc && !err.msg[0]) abort();
    check_sentence(err.msg);
    remote_http_close(h);
    base_buf_free(&answer);
    pthread_mutex_lock(&server.lock);
    server.n = 0; /* the bytes are the caller's */
    pthread_mutex_unlock(&server.lock);
    return 0;
}
