/*
 * kvist bench cancel: how long after Esc the engine has stopped. A second thread sets the cancel flag at a
 * random moment of a prefill or a decode; what is measured is the time from there until the call has
 * returned. Nothing may take longer than 100 ms.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "kv/session.h"
#include "cmd/options.h"

enum { CANCEL_REPEAT = 20, CANCEL_PROMPT = 2048 };

static const char usage[] = "usage: kvist bench cancel [--model M] [--repeat N] [--json]\n\n"
                            "Milliseconds from the cancel flag to the return of a prefill and of a decode "
                            "step, at random moments.\n";

typedef struct canceller {
    atomic_bool *flag;
    uint32_t wait_us;
    uint64_t set_ns;
} canceller;

static void *set_flag_later(void *arg)
{
    canceller *c = arg;
    nanosleep(
        &(struct timespec){.tv_sec = c->wait_us / 1000000, .tv_nsec = (long)(c->wait_us % 1000000) * 1000},
        NULL);
    c->set_ns = base_clock_ns();
    atomic_store(c->flag, true);
    return NULL;
}

/* One cancelled call; its milliseconds, or -1 when it ended before the flag was set. */
static double cancel_once(kv_session *s, const int32_t *ids, bool decode, uint32_t wait_us)
{
    atomic_bool flag = false;
    canceller c = {&flag, wait_us, 0};
    kv_segment segment = {.origin = KV_ORIGIN_TOOL, .turn = 1};
    pthread_t thread;
    int code = BASE_OK;
    pthread_create(&thread, NULL, set_flag_later, &c);
    if (!decode) code = kv_session_append(s, &segment, ids, CANCEL_PROMPT, NULL, &flag, NULL);
    for (uint32_t i = 0; decode && !code && i < CANCEL_PROMPT; i++)
        code = kv_session_append(s, &segment, ids + i, 1, NULL, &flag, NULL);
    uint64_t end_ns = base_clock_ns();
    pthread_join(thread, NULL);
    kv_session_truncate(s, 1, NULL);
    return code == BASE_E_CANCELLED ? (double)(end_ns - c.set_ns) / 1e6 : -1;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, double *ms, size_t n, bool json)
{
    if (!n) return;
    qsort(ms, n, sizeof *ms, compare);
    printf(json ? "{\"cancel\":\"%s\",\"n\":%zu,\"min_ms\":%.1f,\"median_ms\":%.1f,\"max_ms\":%.1f}\n"
                : "%-8s n %2zu   min %5.1f   median %5.1f   max %5.1f ms\n",
        what, n, ms[0], ms[n / 2], ms[n - 1]);
}

static int measure(const common_options *common, int64_t repeat, bool json, base_err *err)
{
    model *m = NULL;
    kv_session *s = NULL;
    int32_t *ids = base_xmalloc(CANCEL_PROMPT * sizeof *ids);
    double *ms = base_xmalloc((size_t)repeat * sizeof *ms);
    kv_options kv = {.policy = "full"};
    int code = cmd_open_model(common, &m, err);
    if (!code) code = kv_session_new(&s, m, &kv, NULL, err);
    for (uint32_t i = 0; !code && i < CANCEL_PROMPT; i++)
        ids[i] = (int32_t)(100 + i * 7919u % (model_get_info(m)->n_vocab / 2));
    /* A row that stays, so that the sequence is never cut to nothing. */
    if (!code)
        code = kv_session_append(s, &(kv_segment){.origin = KV_ORIGIN_SYSTEM}, ids, 1, NULL, NULL, err);
    uint32_t state = 12345;
    for (int decode = 0; !code && decode < 2; decode++) {
        size_t n = 0;
        for (int64_t i = 0; i < repeat; i++) {
            state = state * 1664525u + 1013904223u;
            double one = cancel_once(s, ids, decode, 50000 + state % 900000);
            if (one >= 0) ms[n++] = one;
        }
        report(decode ? "decode" : "prefill", ms, n, json);
    }
    kv_session_free(s);
    model_close(m);
    free(ids);
    free(ms);
    return code;
}

int cmd_bench_cancel(int argc, char **argv)
{
    common_options common = COMMON_OPTIONS_DEFAULTS;
    int64_t repeat = CANCEL_REPEAT;
    bool json = false;
    const option_row own[] = {
        {"--repeat", OPTION_INTEGER, &repeat, "N", "how often (20)", .bounds = {1, 1000}},
        {"--json", OPTION_FLAG, &json, NULL, "one object"}, {0}};
    base_err err = {0};
    int code;
    if (!cmd_begin(argc, argv, &common, own, &(cmd_words){.usage = usage, .is_configured = true}, &code))
        return code;
    code = measure(&common, repeat, json, &err);
    return code ? cmd_complain(&err) : CMD_OK;
}
