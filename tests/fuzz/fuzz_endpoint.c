/*
 * An engine that says these bytes of itself: which it is, its models, its template, its tokens. Input: what each of its paths answers,
 * with NUL bytes between them; nothing is a 404. Whoever opens it has a model and numbers that are of use, or a sentence.
 */
#include "remote/endpoint.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "loopback.h"
#include "scratch.h"

#define KEY "sk-secret-0123456789"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char *const paths[] = {"/props", "/version", "/get_model_info", "/v1/models", "/get_server_info",
    "/metrics", "/tokenize", "/detokenize", "/apply-template", "/slots", ""}; /* "": any other */
enum { N_PATHS = sizeof paths / sizeof *paths };

static struct {
    const char *url; /* NULL: not started yet */
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
    loopback_send(to, out.data, out.len);
    base_buf_free(&out);
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
    if (!server.url) server.url = loopback_start(answer);
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
