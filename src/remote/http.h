/*
 * HTTP to one endpoint, on libcurl's multi interface and the calling thread: whole answers, and one stream
 * that is read as it comes.
 *
 * Cancelling is heard within 50 ms (the connection is closed; what was received stays readable). Limits of
 * time stand for each phase. A request of which nothing was received is sent again with growing pauses;
 * where something was received it never is. A redirect to another origin is refused and the key is sent to
 * none. Compressed answers are refused, since none are asked for, so nothing unpacks to more than came. On
 * http names must lead to loopback or private addresses unless is_insecure_allowed.
 */
#ifndef KVIST_REMOTE_HTTP_H
#define KVIST_REMOTE_HTTP_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "remote/address.h"

typedef struct remote_limits {
    uint32_t connect_ms; /* until the connection stands */
    uint32_t first_ms;   /* from the request to the first byte of the answer's body */
    uint32_t silence_ms; /* between two pieces of it */
    uint32_t alive_ms;   /* a stream that is waited for and says nothing that counts (remote_http_progress) */
    /* a request that is sent again and again; a Retry-After above this is told at once */
    uint32_t give_up_ms;
} remote_limits;
#define REMOTE_LIMITS_DEFAULTS                                                                               \
    (remote_limits)                                                                                          \
    {                                                                                                        \
        .connect_ms = 10000, .first_ms = 600000, .silence_ms = 120000, .alive_ms = 3 * 600000,               \
        .give_up_ms = 60000                                                                                  \
    }

typedef struct remote_http_options {
    const char *url;
    const char *key; /* NULL: none; never told to anybody but this origin, and cut out of every sentence */
    bool is_insecure_allowed;
    const atomic_bool *cancel; /* may be NULL */
    remote_limits limits;
    /* Why it takes long: before a pause, why the request is sent again and when; and where a whole answer does not begin. May be NULL. */
    void (*waits)(void *user, const char *sentence);
    void *user;
} remote_http_options;

typedef struct remote_http remote_http;

/*
 * Connects to nothing yet. What the options point to is copied, but for cancel and user. BASE_E_USAGE: the URL is none, or http to an
 * address out there that nobody allowed.
 */
int remote_http_open(remote_http **ret, const remote_http_options *options, base_err *err);
void remote_http_close(remote_http *h); /* ends what runs; NULL is fine */
/* Another `waits` (remote_http_options) from now on. */
void remote_http_set_waits(remote_http *h, void (*waits)(void *user, const char *sentence), void *user);
const remote_address *remote_http_address(const remote_http *h); /* the URL, read; lives as long as h */

/*
 * One request (body NULL: GET, else POST of JSON) and its whole answer, at most 16 MiB. *ret_status (may be
 * NULL) is 0 when nothing answered. A status other than 2xx is an error whose sentence says what the server
 * said; the answer's body is in *ret all the same.
 */
int remote_http_ask(
    remote_http *h, const char *path, const char *body, long *ret_status, base_buf *ret, base_err *err);

/*
 * Begins the one stream; the answer's first bytes are waited for, and a status other than 2xx is an error as
 * above. What is there of an earlier stream is dropped and its connection closed.
 */
int remote_http_send(remote_http *h, const char *path, const char *body, long *ret_status, base_err *err);
/*
 * Waits for more of it and appends that. *ret_ended: the server has said all. BASE_E_IO: the connection broke
 * or was silent for too long; BASE_E_STATE: it was kept alive for too long and brought nothing; BASE_E_CANCELLED.
 */
int remote_http_read(remote_http *h, base_buf *ret, bool *ret_ended, base_err *err);
/*
 * What was read was something: a token, or more of the prompt computed. The bytes alone do not tell, since comments keep a connection
 * alive for as long as a server likes.
 */
void remote_http_progress(remote_http *h);
/* All that counts of the stream has come: reads of what is left fail when ms milliseconds are over. */
void remote_http_finish(remote_http *h, uint32_t ms);
void remote_http_stop(remote_http *h); /* closes the stream; fine without one */

#endif
