#include "remote/events.h"

#ifdef KVIST_ZMQ
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "base/mem.h"

/* A message is of one step. Those that wait while nobody listens are in memory: 2 GiB at most, then the engine drops some. */
enum { MOST_BYTES = 2 << 20, MOST_WAITING = 1024 };
enum {
    MOST_AT_ONCE = 16 << 20
}; /* bytes: one that publishes without end is listened to again with the next request */

struct remote_events {
    void *context, *socket;
    remote_blocks *blocks;
    bool has_failed;
};

static int fail(base_err *err, const char *address)
{
    return base_fail(err, BASE_E_USAGE, "--engine-events %.120s: %s", address, zmq_strerror(zmq_errno()));
}

static int set_up(remote_events *e, const char *address, base_err *err)
{
    const int64_t most = MOST_BYTES;
    const int waiting = MOST_WAITING, linger = 0;
    e->context = zmq_ctx_new();
    e->socket = e->context ? zmq_socket(e->context, ZMQ_SUB) : NULL;
    if (!e->socket || zmq_setsockopt(e->socket, ZMQ_MAXMSGSIZE, &most, sizeof most) ||
        zmq_setsockopt(e->socket, ZMQ_RCVHWM, &waiting, sizeof waiting) ||
        zmq_setsockopt(e->socket, ZMQ_LINGER, &linger, sizeof linger) ||
        zmq_setsockopt(e->socket, ZMQ_SUBSCRIBE, "", 0) || zmq_connect(e->socket, address))
        return fail(err, address);
    return 0;
}

int remote_events_open(remote_events **ret, const char *address, base_err *err)
{
    if ((strncmp(address, "tcp://", 6) && strncmp(address, "ipc://", 6)) || strchr(address, '*'))
        return base_fail(err, BASE_E_USAGE,
            "--engine-events %.120s: tcp://HOST:PORT or ipc:///PATH is wanted, where the engine publishes",
            address);
    remote_events *e = base_xcalloc(1, sizeof *e);
    e->blocks = remote_blocks_new();
    int rc = set_up(e, address, err);
    if (rc) {
        remote_events_close(e);
        return rc;
    }
    *ret = e;
    return 0;
}

void remote_events_close(remote_events *e)
{
    if (!e) return;
    if (e->socket) zmq_close(e->socket);
    if (e->context) zmq_ctx_term(e->context);
    remote_blocks_free(e->blocks);
    free(e);
}

/* The frames of one message: topic, number (eight bytes, the highest first), payload. */
static int take_message(remote_events *e, size_t *n_bytes, base_err *err)
{
    uint64_t number = 0;
    int more = 1, rc = 0;
    for (int frame = 0; more; frame++) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, e->socket, 0) < 0) {
            zmq_msg_close(&part);
            return base_fail(err, BASE_E_IO, "%s", zmq_strerror(zmq_errno()));
        }
        const uint8_t *bytes = zmq_msg_data(&part);
        const size_t n = zmq_msg_size(&part);
        more = zmq_msg_more(&part);
        *n_bytes += n + sizeof number;
        for (size_t i = 0; frame == 1 && i < n && i < 8; i++) number = number << 8 | bytes[i];
        if (frame == 2) rc = remote_blocks_read(e->blocks, number, bytes, n, err);
        zmq_msg_close(&part);
    }
    return rc;
}

int remote_events_take(remote_events *e, int wait_ms, base_err *err)
{
    int rc = 0;
    size_t n_bytes = 0;
    for (zmq_pollitem_t item = {e->socket, 0, ZMQ_POLLIN, 0};
         !rc && n_bytes < MOST_AT_ONCE && zmq_poll(&item, 1, wait_ms) > 0; wait_ms = 0)
        rc = take_message(e, &n_bytes, err);
    if (rc && e->has_failed) return 0;
    e->has_failed = e->has_failed || rc;
    return rc;
}

const remote_blocks *remote_events_blocks(const remote_events *e)
{
    return e->blocks;
}
#else
int remote_events_open(remote_events **ret, const char *address, base_err *err)
{
    return base_fail(err, BASE_E_UNSUPPORTED,
        "--engine-events %.120s: this kvist was built without "
        "ZeroMQ (libzmq3-dev, meson setup -Dzmq=enabled)",
        address);
}

void remote_events_close(remote_events *e)
{
}

int remote_events_take(remote_events *e, int wait_ms, base_err *err)
{
    return 0;
}

const remote_blocks *remote_events_blocks(const remote_events *e)
{
    return NULL;
}
#endif
