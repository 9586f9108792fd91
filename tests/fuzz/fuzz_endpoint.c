/*
 * An engine that says these bytes of itself: which it is, its models, its template, its tokens. Input: what each of its paths answers,
 * with NUL bytes between them; nothing is a 404. Whoever opens it has a model and numbers that are of use, or a sentence.
 */
#include "remote/endpoint.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "scratch.h"

#define KEY "sk-secret-0123456789"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char *const paths[] = {"/props", "/version", "/get_model_info", "/v1/models", "/get_server_info",
    "/metrics", "/tokenize", "/detokenize", "/apply-template", "/slots", ""}; /* "": any other */
enum { N_PATHS = sizeof paths / sizeof *paths };

static struct {
    int fd;
    char url[64];
    pthread_mutex_t lock;
    char *answers[N_PATHS];
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void answer(int to, const char *request)
{
    const char *path = strchr(request, ' ');
    size_t i = 0;
    while (i + 1 < N_PATHS && (!path || strncmp(path + 1, paths[i], strlen(paths[i])) != 0)) i++;
    base_buf out = {0};
    pthread_mutex_lock(&server.lock);
    const char *body = server.answers[i] ? server.answers[i] : "";
    base_buf_printf(&out, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
        *body ? "200 OK" : "404 Not Found", strlen(body));
    base_buf_puts(&out, body);
    pthread_mutex_unlock(&server.lock);
    for (size_t at = 0; at < out.len;) {
        const ssize_t sent = send(to, out.data + at, out.len - at, MSG_NOSIGNAL);
        if (sent <= 0) break;
        at += (size_t)sent;
    }
    base_buf_free(&out);
}

static void *serve(void *unused)
{
    static char request[1 << 20];
    for (;;) {
        size_t have = 0, wanted = sizeof request - 1;
        const int to = accept(server.fd, NULL, NULL);
        if (to < 0) continue;
        while (have < wanted) { /* all of it, so that closing does not reset what was sent */
            const ssize_t got = read(to, request + have, sizeof request - 1 - have);
            if (got <= 0) break;
            have += (size_t)got;
            request[have] = '\0';
            const char *end = strstr(request, "\r\n\r\n"), *length = strcasestr(request, "content-length:");
            if (end) wanted = (size_t)(end + 4 - request) + (length ? strtoul(length + 15, NULL, 10) : 0);
        }
        request[have] = '\0';
        answer(to, request);
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
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d", ntohs(at.sin_port));
}

static void set_answers(const uint8_t *bytes, size_t n)
{
    pthread_mutex_lock(&server.lock);
    for (size_t i = 0; i < N_PATHS; i++) {
        free(server.answers[i]);
        server.answers[i] = scratch_part(&bytes, &n);
    }
    pthread_mutex_unlock(&server.lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (!server.fd) start_server();
    if (n > 1 << 14) return 0;
    set_answers(bytes, n);
    remote_endpoint *e = NULL;
    const remote_endpoint_options options = {.http = {.url = server.url,
                                                 .key = KEY,
                                                 .limits = {.connect_ms = 2000,
                                                     .first_ms = 2000,
                                                     .silence_ms = 2000,
                                                     .alive_ms = 2000,
                                                     .give_up_ms = 0}}};
    base_buf text = {0};
    base_err err = {0};
    const int rc = remote_endpoint_open(&e, &options, &err);
    if (!rc) {
        bool is_same = false;
        if (!e->wire || !e->model || !*e->model || !e->kind) abort();
        remote_endpoint_describe(e, &text);
        remote_endpoint_check(e, &is_same, &err);
        remote_endpoint_is_fresh(e);
        if (!text.len || strstr(text.data, KEY)) abort();
    } else if (!err.msg[0] || strstr(err.msg, KEY)) {
        abort();
    }
    remote_endpoint_close(e);
    base_buf_free(&text);
    set_answers(NULL, 0);
    return 0;
}
