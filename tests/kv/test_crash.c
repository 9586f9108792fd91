/*
 * A process may end anywhere. Every call that changes the disk is enumerated: a child stops at the n-th one
 * while it saves, compacts or moves rows to disk, for each n; then children are killed at random
 * moments. Afterwards the session resumes at a turn that was committed, never before the last one, and its
 * next token has the bits it had.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "fake_compute.h"
#include "kv/session.h"

enum { CTX = 4000, N_TURNS = 24, STOPPED = 77 };

/* --- calls that change the disk, counted; the one at which to stop -------------------------------------- */

static long n_calls, stop_at = -1;
static long *n_applied; /* shared with the child: calls of its turns, before it saves */

static void count_call(void)
{
    if (++n_calls == stop_at) _exit(STOPPED);
}

/*
 * These stand in for libc's: the program's libraries are linked into this test. A stop comes before the call,
 * or in its middle.
 */
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    if (n_calls + 1 == stop_at && n > 1) syscall(SYS_pwrite64, fd, bytes, n / 2, at);
    count_call();
    return syscall(SYS_pwrite64, fd, bytes, n, at);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    if (fd <= 2) return syscall(SYS_write, fd, bytes, n);
    if (n_calls + 1 == stop_at && n > 1) syscall(SYS_write, fd, bytes, n / 2);
    count_call();
    return syscall(SYS_write, fd, bytes, n);
}

int rename(const char *from, const char *to)
{
    count_call();
    return (int)syscall(SYS_rename, from, to);
}

int unlink(const char *path)
{
    count_call();
    return (int)syscall(SYS_unlink, path);
}

int ftruncate(int fd, off_t n)
{
    count_call();
    return (int)syscall(SYS_ftruncate, fd, n);
}

int fdatasync(int fd)
{
    count_call();
    (void)fd; /* the processes end, the machine does not: what was written is there */
    return 0;
}

int fsync(int fd)
{
    return fdatasync(fd);
}

/* --- a session whose every turn is known ---------------------------------------------------------------- */

static kv_session *open_session(fake_model *m, const char *path)
{
    static const char *const set[] = {"host=.0625", NULL};
    const kv_compute c = fake_compute(m, CTX);
    const kv_options o = {.budget = 700, .repair = -1, .row_file = path, .set = set};
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    return s;
}

static kv_session *resume_session(fake_model *m, const char *path)
{
    const kv_compute c = fake_compute(m, CTX);
    const kv_options o = {.budget = 700, .repair = -1, .row_file = path};
    kv_session *s = NULL;
    return kv_session_resume_over(&s, &c, &o, NULL, NULL) ? NULL : s;
}

/*
 * Turn t: a message, a repair, a long result; now and then a rewind that leaves waste in the row file, or a
 * block that is evicted by hand: it is over the limit in memory, so its rows move to disk in the next turn.
 */
static void take_turn(kv_session *s, uint32_t t)
{
    int32_t ids[200];
    uint64_t seed = t;
    uint32_t n;
    for (uint32_t i = 0; i < 200; i++) ids[i] = (int32_t)test_below(&seed, FAKE_VOCAB);
    const kv_segment user = {.origin = KV_ORIGIN_USER, .turn = t},
                     tool = {.origin = KV_ORIGIN_TOOL, .turn = t};
    kv_session_set_turn(s, t);
    kv_session_ids(s, &n);
    kv_session_append(s, &user, ids, 20, NULL, NULL, NULL);
    kv_session_repair(s, &(kv_ask){n, n + 20}, NULL, NULL);
    kv_session_append(s, &tool, ids + 20, 60 + t % 3 * 40, NULL, NULL, NULL);
    kv_session_ids(s, &n);
    if (t % 4 == 3) kv_session_truncate(s, n - 30, NULL);
    if (t % 5 == 1 && n > 600)
        kv_session_manual(s, KV_MANUAL_EVICT, t / 5 * MODEL_ROWS_BLOCK, (t / 5 + 1) * MODEL_ROWS_BLOCK, NULL);
}

/* turn -> length and next logits */
static struct {
    uint32_t n;
    float logits[FAKE_VOCAB];
} known[N_TURNS + 1];

static void learn(const char *path)
{
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_session(&m, path);
    for (uint32_t t = 1; t <= N_TURNS; t++) {
        take_turn(s, t);
        kv_session_ids(s, &known[t].n);
        assert_int_equal(kv_session_logits(s, known[t].logits, NULL, NULL), 0);
    }
    kv_session_free(s);
}

/* The turn that a resumed session stands at: by its length, checked by its logits. 0: there is none. */
static uint32_t turn_of(const char *path)
{
    fake_model m = {.lanes_differ = true};
    kv_session *s = resume_session(&m, path);
    uint32_t n = 0, t = 1;
    float logits[FAKE_VOCAB];
    if (!s) return 0;
    kv_session_ids(s, &n);
    while (t <= N_TURNS && known[t].n != n) t++;
    if (t > N_TURNS) fail_msg("a resumed session has %u tokens: no turn ended there", n);
    assert_int_equal(kv_session_logits(s, logits, NULL, NULL), 0);
    assert_memory_equal(logits, known[t].logits, sizeof logits);
    kv_session_free(s);
    return t;
}

static char folder[64], path[96];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kvist-crash-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/rows", folder);
    n_applied = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n_applied == MAP_FAILED) return -1;
    learn(path);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    munmap(n_applied, 4096);
    return base_fs_remove(folder, NULL);
}

/*
 * What the child does once the turns before are committed; the turns that a resume may then stand at are
 * those or `then`.
 */
static void save(kv_session *s)
{
    kv_session_save(s, NULL);
}

static void compact(kv_session *s)
{
    kv_session_compact(s, NULL);
}

/* No snapshot: what a child finds is what it made itself. */
static void forget(void)
{
    char manifest[128];
    snprintf(manifest, sizeof manifest, "%s.manifest", path);
    unlink(manifest);
    unlink(path);
}

/*
 * A child commits turns up to `first`, takes `more` turns, and stops at the n-th call of the rest. False: it
 * got through.
 */
static bool run_child(uint32_t first, uint32_t more, void (*act)(kv_session *), long n)
{
    int status = 0;
    forget();
    const pid_t child = fork();
    if (child == 0) {
        fake_model m = {.lanes_differ = true};
        kv_session *s = open_session(&m, path);
        for (uint32_t t = 1; t <= first; t++) take_turn(s, t);
        if (first && kv_session_save(s, NULL)) _exit(1);
        n_calls = 0;
        stop_at = n;
        for (uint32_t t = first + 1; t <= first + more; t++) take_turn(s, t);
        *n_applied = n_calls;
        act(s);
        _exit(0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 0) return false;
    assert_int_equal(WEXITSTATUS(status), STOPPED);
    return true;
}

static uint32_t enumerate(uint32_t first, uint32_t more, void (*act)(kv_session *))
{
    uint32_t n_points = 0, n_new = 0;
    for (long n = 1; run_child(first, more, act, n); n++, n_points++) {
        const uint32_t t = turn_of(path);
        if (t != first && t != first + more)
            fail_msg("stopped at call %ld: turn %u of %u is there", n, t, first);
        n_new += more && t == first + more;
    }
    assert_int_equal(turn_of(path), first + more);
    assert_true(n_points >= 4);
    assert_true(!more || n_new < n_points);
    return n_points;
}

static void test_crash__a_save_that_stops_anywhere_leaves_a_whole_snapshot(void **state)
{
    (void)state;
    long n = 0;
    for (uint32_t first = 1; first < N_TURNS; first += 5) {
        enumerate(first, 1, save);
        n += *n_applied;
    }
    assert_true(n > 0); /* stops while a plan was applied are among the points */
}

static void test_crash__a_compaction_that_stops_anywhere_leaves_a_whole_snapshot(void **state)
{
    (void)state;
    assert_true(enumerate(7, 0, compact) > 4); /* turn 7 cut tokens off, so there are places to fill */
    assert_true(enumerate(14, 2, compact) > 4);
}

static void test_crash__kills_lose_no_committed_turn(void **state)
{
    (void)state;
    uint64_t random = test_seed("kills", 20265);
    uint32_t *committed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const int n_kills = (int)test_length(25, 100);
    uint32_t n_between = 0;
    assert_true(committed != MAP_FAILED);
    for (int k = 0; k < n_kills; k++) {
        int status = 0;
        *committed = 0;
        forget();
        const pid_t child = fork();
        if (child == 0) {
            fake_model m = {.lanes_differ = true};
            kv_session *s = open_session(&m, path);
            for (uint32_t t = 1; t <= N_TURNS; t++) {
                take_turn(s, t);
                if (t % 5 ? kv_session_save(s, NULL) : kv_session_compact(s, NULL)) _exit(1);
                *committed = t;
            }
            _exit(0);
        }
        usleep(test_below(&random, 60000));
        kill(child, SIGKILL);
        assert_true(waitpid(child, &status, 0) == child);
        const uint32_t t = turn_of(path);
        if (t < *committed || t > *committed + 1)
            fail_msg("killed behind turn %u: turn %u is there", *committed, t);
        n_between += *committed > 0 && *committed < N_TURNS;
    }
    munmap(committed, 4096);
    print_message("%u of %d were killed between the first and the last turn\n", n_between, n_kills);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crash__a_save_that_stops_anywhere_leaves_a_whole_snapshot),
        cmocka_unit_test(test_crash__a_compaction_that_stops_anywhere_leaves_a_whole_snapshot),
        cmocka_unit_test(test_crash__kills_lose_no_committed_turn),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
