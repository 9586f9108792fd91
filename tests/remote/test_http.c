/* What a connection may do wrong: limits of time, breaks, and an end that we make ourselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "remote/http.h"

/* How a server behaves to a connection. */
typedef enum behaviour {
    DRIBBLES, /* a byte every few milliseconds, for ever */
    ENDS,     /* ten of them */
    SAYS_NOTHING,
    STOPS,   /* in the middle of its answer, and stays */
    BREAKS,  /* there */
    IS_AWAY, /* closes the first two connections, then ENDS */
    IS_FULL, /* takes no connection */
} behaviour;

/* What stands in an answer before something goes wrong. */
static const char part[] = "{\"content\":\"It doub\"}";

static void say_head(int to)
{
    static const char head[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
    if (send(to, head, sizeof head - 1, MSG_NOSIGNAL) < 0) _exit(1);
}

static void behave(int fd, behaviour b)
{
    char request[4096];
    int to = accept(fd, NULL, NULL);
    for (int i = 0; b == IS_AWAY && i < 2; i++) {
        close(to);
        to = accept(fd, NULL, NULL);
    }
    if (recv(to, request, sizeof request, 0) < 0) _exit(1);
    if (b != SAYS_NOTHING) say_head(to);
    if ((b == STOPS || b == BREAKS) && send(to, part, sizeof part - 1, MSG_NOSIGNAL) < 0) _exit(1);
    if (b == BREAKS) {
        usleep(100000); /* what was sent arrives before the connection is gone */
        setsockopt(to, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
        close(to);
    }
    if (b == SAYS_NOTHING || b == STOPS)
        while (recv(to, request, sizeof request, 0) > 0) continue;
    for (int i = 0; b == DRIBBLES || ((b == ENDS || b == IS_AWAY) && i < 10); i++) {
        if (send(to, " ", 1, MSG_NOSIGNAL) < 0) _exit(0);
        usleep(5000);
    }
    _exit(b == BREAKS ? accept(fd, NULL, NULL) >= 0 : 0); /* 1: it was asked again */
}

static pid_t serve(behaviour b, int *ret_port)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof here;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof here) || listen(fd, b == IS_FULL ? 0 : 5), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&here, &n), 0);
    *ret_port = ntohs(here.sin_port);
    pid_t child = fork();
    if (!child) {
        if (b != IS_FULL) behave(fd, b);
        for (int i = 0; i < 8; i++) { /* until nobody has room to wait */
            int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            connect(to, (struct sockaddr *)&here, sizeof here);
        }
        pause();
    }
    close(fd);
    return child;
}

static int ask_slow(bool ends, uint32_t ms, base_err *err)
{
    int port;
    char url[60];
    pid_t child = serve(ends ? ENDS : DRIBBLES, &port);
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
    pid_t child = serve(DRIBBLES, &port);
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

/* --- limits and breaks ---------------------------------------------------------------------------------- */

typedef struct asked {
    int rc, status; /* the child's */
    base_err err;
    base_buf came;
    uint64_t ms;
} asked;

/* A stream to its end, or to what ends it; is_whole: one answer as a whole, as doubts are asked for. */
static void ask_for(
    behaviour b, bool is_whole, const remote_limits *limits, const atomic_bool *cancel, asked *ret)
{
    int port;
    char url[60];
    bool ended = false;
    remote_http *h = NULL;
    *ret = (asked){.rc = 0};
    pid_t child = serve(b, &port);
    if (b == IS_FULL) usleep(200000);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    assert_int_equal(
        remote_http_open(&h, &(remote_http_options){.url = url, .limits = *limits, .cancel = cancel}, NULL),
        0);
    const uint64_t begun = base_clock_ns();
    ret->rc = is_whole ? remote_http_ask(h, "/completion", "{}", NULL, &ret->came, &ret->err)
                       : remote_http_send(h, "/completion", "{}", NULL, &ret->err);
    while (!is_whole && !ret->rc && !ended) ret->rc = remote_http_read(h, &ret->came, &ended, &ret->err);
    ret->ms = (base_clock_ns() - begun) / 1000000;
    remote_http_close(h);
    usleep(b == BREAKS ? 300000 : 0);
    if (b != DRIBBLES) kill(child, SIGKILL);
    waitpid(child, &ret->status, 0);
}

static void ask(behaviour b, const remote_limits *limits, const atomic_bool *cancel, asked *ret)
{
    ask_for(b, false, limits, cancel, ret);
}

static remote_limits patient(void)
{
    return (remote_limits){
        .connect_ms = 60000, .first_ms = 60000, .silence_ms = 60000, .alive_ms = 60000, .give_up_ms = 10};
}

/* Each phase has a limit of its own: the others are a minute here. */
static void test_each_phase_has_a_limit(void **state)
{
    enum { LIMIT_MS = 1000 };
    remote_limits limits[3] = {patient(), patient(), patient()};
    limits[0].connect_ms = limits[1].connect_ms = limits[1].first_ms = limits[2].silence_ms = LIMIT_MS;
    static const struct {
        behaviour b;
        const char *words;
    } rows[] = {{IS_FULL, "onnect"}, {SAYS_NOTHING, "sent nothing for 1 s"}, {STOPS, "was silent for 1 s"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        asked a;
        ask(rows[i].b, &limits[i], NULL, &a);
        assert_int_equal(a.rc, BASE_E_IO);
        if (!strstr(a.err.msg, rows[i].words)) fail_msg("%zu: %s", i, a.err.msg);
        assert_in_range(a.ms, LIMIT_MS - 50, 30000);
        assert_int_equal(a.came.len, rows[i].b == STOPS ? sizeof part - 1 : 0);
        base_buf_free(&a.came);
    }
}

/* Where something was received it is never sent again; where nothing was, it is. */
static void test_when_it_is_asked_again(void **state)
{
    remote_limits limits = patient();
    asked a;
    limits.give_up_ms = 30000;
    ask(BREAKS, &limits, NULL, &a);
    assert_int_equal(a.rc, BASE_E_IO);
    assert_int_equal(a.came.len, sizeof part - 1);
    assert_false(WIFEXITED(a.status)); /* it waited for another connection until it was killed */
    base_buf_free(&a.came);
    ask(IS_AWAY, &limits, NULL, &a);
    assert_int_equal(a.rc, 0);
    assert_int_equal(a.came.len, 10);
    base_buf_free(&a.came);
}

static atomic_bool is_cancelled;
static atomic_ullong cancelled_ns, late_ns; /* late: how much longer than asked the thread slept */

static void *cancel_soon(void *user)
{
    enum { SLEEP_US = 150000 };
    const uint64_t begun = base_clock_ns();
    usleep(SLEEP_US);
    cancelled_ns = base_clock_ns();
    late_ns = cancelled_ns - begun - SLEEP_US * 1000ull;
    is_cancelled = true;
    return NULL;
}

/* Heard within 100 ms, beside what this machine lets any thread wait: the best of some tries. */
static void test_cancelling_is_heard(void **state)
{
    enum { TRIES = 40, HEARD_MS = 100, N_ROWS = 3 };
    static const behaviour rows[N_ROWS] = {DRIBBLES, SAYS_NOTHING, STOPS};
    const remote_limits limits = patient();
    for (size_t row = 0; row < 2 * N_ROWS; row++) {
        const size_t i = row % N_ROWS;
        uint64_t best = UINT64_MAX;
        for (int k = 0; k < TRIES && best > HEARD_MS; k++) {
            pthread_t thread;
            asked a;
            is_cancelled = false;
            assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
            ask_for(rows[i], row >= N_ROWS, &limits, &is_cancelled, &a);
            const uint64_t heard = base_clock_ns();
            pthread_join(thread, NULL);
            assert_int_equal(a.rc, BASE_E_CANCELLED);
            if (rows[i] == DRIBBLES)
                assert_true(WIFEXITED(a.status)); /* it heard that the connection is closed */
            if (rows[i] == STOPS) assert_int_equal(a.came.len, sizeof part - 1);
            const uint64_t wait = heard - cancelled_ns, late = 2 * late_ns,
                           ms = wait > late ? (wait - late) / 1000000 : 0;
            if (ms < best) best = ms;
            base_buf_free(&a.came);
        }
        assert_in_range(best, 0, HEARD_MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_without_an_end_is_given_up),
        cmocka_unit_test(test_signs_of_life_are_no_answer),
        cmocka_unit_test(test_each_phase_has_a_limit),
        cmocka_unit_test(test_when_it_is_asked_again),
        cmocka_unit_test(test_cancelling_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
