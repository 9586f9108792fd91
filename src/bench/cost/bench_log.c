/*
 * kvist-bench log: what a long session's log costs, without a model (bench/cost/made_session.h makes the
 * events). It is written as the agent does, commit for commit; timed are opening it again and reducing it to
 * a screen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/log/log.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/cost/made_session.h"
#include "tui/record.h"
#include "tui/tui.h"

enum { TURNS = 100, WIDTH = 140, HEIGHT = 42 };

static double ms_since(uint64_t start_ns)
{
    return (double)(base_clock_ns() - start_ns) / 1e6;
}

typedef struct type_sum {
    uint32_t n;
    uint64_t json_bytes, blob_bytes;
} type_sum;

typedef struct log_bench {
    agent_log *log;
    char id[32];
    uint32_t listed, turns;
    double commit_max_ms;
    bool first_only;
    type_sum sums[AGENT_N_EVENTS];
    tui_record record;
    int rc;
    base_err err;
} log_bench;

/* Where the agent commits to the log: the event types after which nothing of a turn can be lost. */
static bool is_commit_point(agent_event_type t)
{
    return t == AGENT_EVENT_user || t == AGENT_EVENT_tool_result || t == AGENT_EVENT_ledger ||
           t == AGENT_EVENT_snapshot || t == AGENT_EVENT_turn_end;
}

static void write_event(void *user, const agent_event *e)
{
    log_bench *b = user;
    if (b->rc) return;
    b->rc = agent_log_add(b->log, b->id, e, &b->err);
    uint64_t start = base_clock_ns();
    if (!b->rc && is_commit_point(e->type)) b->rc = agent_log_commit(b->log, &b->err);
    double ms = ms_since(start);
    if (ms > b->commit_max_ms) b->commit_max_ms = ms;
}

static int write_session(log_bench *b, const char *path, uint32_t turns, const char *root)
{
    agent_log_new_id(b->id);
    b->rc = agent_log_open(&b->log, path, false, &b->err);
    if (!b->rc) b->rc = agent_log_create(b->log, b->id, NULL, root, "a made-up session", &b->err);
    bench_session_make(turns, b->id, root, write_event, b);
    agent_log_close(b->log);
    b->log = NULL;
    return b->rc;
}

static void count_session(void *user, const agent_log_row *r)
{
    log_bench *b = user;
    b->listed++;
    b->turns = r->turns;
}

static bool read_event(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    log_bench *b = user;
    if (b->first_only) return false;
    b->rc = tui_record_add(&b->record, json, n, blob, blob_n, &b->err);
    if (b->rc) return false;
    type_sum *sum = &b->sums[b->record.events[b->record.n - 1].type];
    sum->n++;
    sum->json_bytes += n;
    sum->blob_bytes += blob_n;
    return true;
}

/*
 * What a shell that resumes does before the first screen: the list, the session, where it stands and its
 * first event.
 */
static int open_session(log_bench *b, const char *path)
{
    char *id = NULL;
    agent_log_tail tail;
    b->first_only = true;
    b->rc = agent_log_open(&b->log, path, true, &b->err);
    if (!b->rc) b->rc = agent_log_list(b->log, NULL, count_session, b, &b->err);
    if (!b->rc) b->rc = agent_log_find(b->log, "", NULL, &id, &b->err);
    if (!b->rc) b->rc = agent_log_get_tail(b->log, id, &tail, &b->err);
    if (!b->rc) b->rc = agent_log_events(b->log, id, read_event, b, &b->err);
    b->first_only = false;
    free(id);
    return b->rc;
}

static void print_log(const log_bench *b, double bytes, double write_ms, double open_ms, double read_ms,
    double apply_ms, double screen_ms, bool json)
{
    printf(json ? "{\"bench\":\"log\",\"turns\":%u,\"events\":%zu,\"bytes\":%.0f,\"write_ms\":%.1f,\"commit_"
                  "max_ms\":%.1f,"
                  "\"open_ms\":%.2f,\"read_ms\":%.1f,\"apply_ms\":%.1f,\"screen_ms\":%.1f,\"types\":{"
                : "%u turns, %zu events\n"
                  "database    %10.0f bytes (goal: less than 20,000,000)\n"
                  "writing     %10.1f ms, longest commit %.1f ms\n"
                  "opening     %10.2f ms: open, list, find, tail, first event (goal: less than 100)\n"
                  "reading     %10.1f ms: every event unpacked and parsed\n"
                  "reducing    %10.1f ms: every event into the screen's state\n"
                  "replay      %10.1f ms: log to one painted screen\n\n",
        b->turns, b->record.n, bytes, write_ms, b->commit_max_ms, open_ms, read_ms, apply_ms, screen_ms);
    const char *comma = "";
    for (int t = 0; t < AGENT_N_EVENTS; t++) {
        const type_sum *s = &b->sums[t];
        if (!s->n) continue;
        if (json)
            printf("%s\"%s\":[%u,%llu,%llu]", comma, agent_event_name((agent_event_type)t), s->n,
                (unsigned long long)s->json_bytes, (unsigned long long)s->blob_bytes);
        else
            printf("%-12s %7u events %10llu bytes before packing %10llu bytes of plans\n",
                agent_event_name((agent_event_type)t), s->n, (unsigned long long)s->json_bytes,
                (unsigned long long)s->blob_bytes);
        comma = ",";
    }
    if (json) puts("}}");
}

static int measure(uint32_t turns, bool json, base_err *err)
{
    log_bench b = {0};
    char dir[] = "/tmp/kvist-bench-XXXXXX";
    if (!mkdtemp(dir)) return base_fail_sys(err, "cannot make a temporary folder");
    base_buf path = {0}, screen = {0};
    base_buf_printf(&path, "%s/log.db", dir);
    uint64_t start = base_clock_ns();
    int rc = write_session(&b, path.data, turns, dir);
    double write_ms = ms_since(start), open_ms = 0, read_ms = 0, apply_ms = 0, screen_ms = 0;
    struct stat st = {0};
    if (!rc && stat(path.data, &st)) rc = base_fail_sys(&b.err, "%s", path.data);
    start = base_clock_ns();
    if (!rc) rc = open_session(&b, path.data);
    open_ms = ms_since(start);
    start = base_clock_ns();
    if (!rc) rc = agent_log_events(b.log, b.id, read_event, &b, &b.err);
    if (!rc) rc = b.rc;
    read_ms = ms_since(start);
    if (!rc) {
        tui_state state;
        tui_state_init(&state);
        start = base_clock_ns();
        for (size_t i = 0; i < b.record.n; i++) tui_state_apply(&state, &b.record.events[i], 0);
        apply_ms = ms_since(start);
        tui_state_free(&state);
        start = base_clock_ns();
        rc = tui_replay_text(b.log, b.id, 0, WIDTH, HEIGHT, &screen, &b.err);
        screen_ms = ms_since(start);
    }
    if (!rc && b.listed != 1)
        rc = base_fail(&b.err, BASE_E_STATE, "the log lists %u sessions where one was written", b.listed);
    if (!rc) print_log(&b, (double)st.st_size, write_ms, open_ms, read_ms, apply_ms, screen_ms, json);
    if (rc && err) *err = b.err;
    agent_log_close(b.log);
    tui_record_free(&b.record);
    base_buf_free(&path);
    base_buf_free(&screen);
    base_fs_remove(dir, NULL);
    return rc;
}

int bench_log(int argc, char **argv)
{
    return bench_count(argc, argv,
        "usage: kvist-bench log [--turns 100] [--json]\n\n"
        "Writes a made-up session into a temporary database: "
        "its size, and the times to open it and to replay it.\n",
        "--turns", TURNS, 1000, measure);
}
