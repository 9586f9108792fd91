/*
 * A server that answers with these bytes and closes: status lines, headers, redirects, errors. What is told of it holds nothing that a
 * terminal would obey and never the key. The first byte chooses between a whole answer and a stream.
 */
#include "remote/http.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "loopback.h"

#define KEY "sk-secret-0123456789"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct {
    char *url; /* NULL: not started yet */
    pthread_mutex_t lock;
    const uint8_t *bytes; /* what the next connection gets */
    size_t n;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void answer(int to, const char *request)
{
    (void)request;
    pthread_mutex_lock(&server.lock);
    loopback_send(to, server.bytes, server.n);
    pthread_mutex_unlock(&server.lock);
}

static void start_server(void)
{
    base_buf url = {0};
    base_buf_printf(&url, "%s/v1", loopback_start(answer));
    server.url = url.data; /* for as long as the process lives */
}

static void check_sentence(const char *text)
{
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f) abort();
    if (strstr(text, KEY)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (!server.url) start_server();
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
