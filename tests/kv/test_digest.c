/*
 * Folded sessions are resumed without their rows being read (disk/digest.c): the same bits as without a resume, whatever
 * of the file of digests is missing or damaged, and a damaged row is found before anything follows from it.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "kit.h"
#include "kv/core/state.h"
#include "kv/read/visit.h"

enum { CTX = 6000, BUDGET = 1200, HEADER = 128, ROW = FAKE_LANES * FAKE_DIM * 4 };

static fake_model fake = {.lanes_differ = true};
/* A folded session is made and saved once: its files, which each test gets a copy of, and what it is in memory. */
static char saved_folder[64];
static kv_session *never_closed;
static char folder[64], row_path[96], digest_path[128];

static int make_folder(char *path)
{
    snprintf(path, sizeof folder, "/tmp/kvist-digest-XXXXXX");
    return mkdtemp(path) ? 0 : -1;
}

static void name_files(const char *in)
{
    snprintf(row_path, sizeof row_path, "%s/s.rows", in);
    snprintf(digest_path, sizeof digest_path, "%s.digest", row_path);
}

static int copy_saved(void **state)
{
    char copy[160];
    if (make_folder(folder)) return -1;
    snprintf(copy, sizeof copy, "cp %s/* %s/", saved_folder, folder);
    name_files(folder);
    return system(copy);
}

static int remove_copy(void **state)
{
    return base_fs_remove(folder, NULL);
}

static int resume_set(kv_session **ret, const char *const *set, base_err *err)
{
    const kv_compute c = fake_compute(&fake, CTX);
    const kv_options o = {.budget = BUDGET, .repair = -1, .set = set, .row_file = row_path};
    *ret = NULL;
    return kv_session_resume_over(ret, &c, &o, NULL, err);
}

static int resume(kv_session **ret, base_err *err)
{
    return resume_set(ret, NULL, err);
}

static kv_session *resumed(void)
{
    kv_session *s;
    base_err err = {0};
    if (resume(&s, &err)) fail_msg("%s", err.msg);
    return s;
}

static const kv_digest_shape shape = {
    {.n_layer = FAKE_LAYERS, .n_head_kv = FAKE_HEADS_KV, .head_dim = FAKE_DIM}, FAKE_LANES};

static uint32_t count_filed(const kv_session *s)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < s->table.n; b++) n += s->table.blocks[b]->filed != NULL;
    return n;
}

/* A turn with a repair; the logits behind it. BASE_E_FORMAT where a row is damaged. */
static int live(kv_session *s, uint32_t turn, float *logits, base_err *err)
{
    int32_t ids[700];
    uint32_t n;
    kit_make_ids(ids, 700, FAKE_VOCAB, 77 + turn);
    const kv_segment asks = {.origin = KV_ORIGIN_USER, .turn = turn},
                     result = {.origin = KV_ORIGIN_TOOL, .turn = turn},
                     answer = {.origin = KV_ORIGIN_ANSWER, .turn = turn};
    kv_session_set_turn(s, turn);
    kv_session_ids(s, &n);
    int rc = kv_session_append(s, &asks, ids, 30, NULL, NULL, err);
    if (!rc) rc = kv_session_repair(s, &(kv_ask){n, n + 30}, NULL, err);
    if (!rc) rc = kv_session_append(s, &result, ids + 30, 500, NULL, NULL, err);
    for (uint32_t i = 0; i < 8 && !rc; i++)
        rc = kv_session_append(s, &answer, ids + 530 + i, 1, logits, NULL, err);
    return rc;
}

static void live_well(kv_session *s, uint32_t turn, float *logits)
{
    base_err err = {0};
    if (live(s, turn, logits, &err)) fail_msg("%s", err.msg);
}

/* A session that is folded, saved as it stands. */
static kv_session *make_session(void)
{
    const kv_compute c = fake_compute(&fake, CTX);
    const kv_options o = {.budget = BUDGET, .repair = -1, .row_file = row_path};
    kv_session *s = NULL;
    float logits[FAKE_VOCAB];
    base_err err = {0};
    if (kv_session_new_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    for (uint32_t turn = 1; s->n < 9000; turn++) live_well(s, turn, logits);
    if (kv_session_save(s, &err)) fail_msg("%s", err.msg);
    assert_true(s->fold.n * MODEL_ROWS_GROUP > 5000);
    return s;
}

static kv_session *forked(kv_session *s)
{
    kv_session *f = NULL;
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    return f;
}

static int save_session(void **state)
{
    if (make_folder(saved_folder)) return -1;
    name_files(saved_folder);
    kv_session *s = make_session();
    never_closed = forked(s);
    kv_session_free(s);
    return 0;
}

static int forget_session(void **state)
{
    kv_session_free(never_closed);
    return base_fs_remove(saved_folder, NULL);
}

static void change_byte(const char *path, off_t at)
{
    uint8_t byte;
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void test_digest__a_resumed_session_goes_on_with_the_same_bits(void **state)
{
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    uint64_t schedule;
    kv_session *s, *f = forked(never_closed);
    for (uint32_t turn = 100; turn < 104; turn++) { /* each closed and opened again */
        s = resumed();
        assert_true(count_filed(s) > 15);
        live_well(f, turn, want);
        live_well(s, turn, got);
        schedule = kv_session_schedule_hash(f);
        kit_assert_same_logits(want, got);
        assert_true(kv_session_schedule_hash(s) == schedule);
        assert_int_equal(kv_session_save(s, NULL), 0);
        kv_session_free(s);
    }
    kv_session_free(f);
}

/* Without the file, as sessions were saved before there was one, and where any part of it is damaged or missing. */
static void test_digest__nothing_is_lost_with_it(void **state)
{
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    struct stat st;
    kv_session *s = forked(never_closed);
    live_well(s, 100, want);
    const uint64_t schedule = kv_session_schedule_hash(s);
    kv_session_free(s);
    assert_int_equal(stat(digest_path, &st), 0);
    const size_t record = kv_digest_bytes(&shape);
    assert_true((uint64_t)st.st_size > 15 * record && st.st_size % (off_t)record == 0);
    enum { PLACES = 40, AT_ONCE = 4, CUT = PLACES / AT_ONCE, NO_FILE, WAYS };
    for (uint32_t way = 0; way < WAYS; way++) {
        off_t damaged[AT_ONCE]; /* each in another record */
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            const size_t place = way * AT_ONCE + i;
            damaged[i] = (off_t)(place % 16 * record + place * 331 % record);
        }
        for (uint32_t i = 0; i < AT_ONCE && way < CUT; i++) change_byte(digest_path, damaged[i]);
        if (way == CUT) assert_int_equal(truncate(digest_path, st.st_size / 2 + 100), 0);
        if (way == NO_FILE) assert_int_equal(unlink(digest_path), 0);
        s = resumed();
        assert_true(way == NO_FILE ? count_filed(s) == 0 : count_filed(s) > 0);
        live_well(s, 100, got);
        kit_assert_same_logits(want, got);
        assert_true(kv_session_schedule_hash(s) == schedule);
        kv_session_free(s);
        for (uint32_t i = 0; i < AT_ONCE && way < CUT; i++) change_byte(digest_path, damaged[i]); /* back */
    }
    s = resumed(); /* and the next save makes it again */
    assert_int_equal(kv_session_save(s, NULL), 0);
    live_well(s, 100, got);
    assert_int_equal(kv_session_truncate(s, s->n - 538, NULL), 0);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_free(s);
    s = resumed();
    assert_true(count_filed(s) > 15);
    kv_session_free(s);
}

/* The first row of a filed block that is active in a lane. */
static uint32_t find_active(const kv_session *s, uint32_t lane, uint32_t b)
{
    const uint32_t t = (uint32_t)kv_bits_next(s->lists.lane[lane]->bits, b * MODEL_ROWS_BLOCK, s->n, true);
    assert_true(t < s->n && s->table.filed[t / MODEL_ROWS_BLOCK]);
    return t;
}

/* Idle work behind an opening, whole or broken off, changes no bit; a damaged row is told of by the token that reads it. */
static void test_digest__is_made_ready_before_somebody_asks(void **state)
{
    (void)state;
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    enum { WHOLE, BROKEN_OFF, DAMAGED, WAYS };
    kv_session *f = forked(never_closed);
    live_well(f, 100, want);
    const uint64_t schedule = kv_session_schedule_hash(f);
    kv_session_free(f);
    for (uint32_t way = 0; way < WAYS; way++) {
        kv_session *s = resumed();
        const atomic_bool cancel = way == BROKEN_OFF;
        base_err err = {0};
        const off_t at = HEADER + (off_t)s->file_row[find_active(s, 0, 1)] * ROW;
        if (way == DAMAGED) change_byte(row_path, at + 9);
        kv_session_make_ready(s, &cancel);
        assert_true(way != WHOLE || kv__visit_bytes(s) > 0);
        if (way == DAMAGED)
            assert_int_equal(live(s, 100, got, &err), BASE_E_FORMAT);
        else {
            live_well(s, 100, got);
            kit_assert_same_logits(want, got);
            assert_true(kv_session_schedule_hash(s) == schedule);
        }
        kv_session_free(s);
    }
}

/* A lane of a sketch is looked at behind the token that looked into it; what that found out is thrown away (fake_compute.c). */
static void test_digest__a_damaged_sketch_is_made_anew(void **state)
{
    (void)state;
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    const off_t at = (off_t)(3 * kv_digest_bytes(&shape) + kv_digest_means_at(&shape)) - 100;
    kv_session *f = forked(never_closed);
    live_well(f, 100, want);
    kv_session_free(f);
    for (uint32_t way = 0; way < 2; way++) {
        if (way) change_byte(digest_path, at);
        kv_session *s = resumed();
        assert_non_null(s->table.blocks[3]->filed);
        live_well(s, 100, got);
        kit_assert_same_logits(want, got);
        assert_true((s->table.blocks[3]->filed == NULL) == (way == 1));
        kv_session_free(s);
    }
}

/* Records of before sketches were looked at lane by lane: all of it is, and a save says how it is done from then on. */
static void test_digest__hashes_of_lanes_are_added(void **state)
{
    (void)state;
    enum { N = FAKE_LANES };
    uint64_t before[N], none[N] = {0}, after[N];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    const off_t at = (off_t)(3 * kv_digest_bytes(&shape) + kv_digest_hashes_at(&shape));
    const int fd = open(digest_path, O_RDWR);
    assert_int_equal(pread(fd, before, sizeof before, at), sizeof before);
    assert_int_equal(pwrite(fd, none, sizeof none, at), sizeof none);
    kv_session *f = forked(never_closed), *s = resumed();
    live_well(f, 100, want);
    live_well(s, 100, got);
    kit_assert_same_logits(want, got);
    assert_non_null(s->table.blocks[3]->filed);
    assert_int_equal(kv_session_save(s, NULL), 0);
    assert_int_equal(pread(fd, after, sizeof after, at), sizeof after);
    assert_memory_equal(before, after, sizeof after);
    close(fd);
    kv_session_free(s);
    kv_session_free(f);
}

/* Bytes that a file takes. */
static double size_on_disk(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (double)st.st_blocks * 512;
}

/* Old blocks are given up until rows and digests fit: no more of them, and their digests' room is given back. */
static void test_digest__a_limit_on_disk_counts_it(void **state)
{
    const double before = size_on_disk(digest_path);
    float logits[FAKE_VOCAB];
    kv_stats stats;
    kv_session *s = resumed();
    const double rows = (double)s->n * ROW;
    kv_session_free(s);
    char limit[40];
    snprintf(limit, sizeof limit, "disk=%.6f", (rows + .9 * before) / 1048576);
    base_err err = {0};
    if (resume_set(&s, (const char *const[]){limit, NULL}, &err)) fail_msg("%s", err.msg);
    live_well(s, 100, logits);
    kv_session_get_stats(s, &stats);
    assert_true(stats.lost >= MODEL_ROWS_BLOCK && stats.lost <= s->n / 4);
    assert_int_equal(kv_session_save(s, NULL), 0);
    const double left = (double)(s->n - stats.lost) * ROW + size_on_disk(digest_path);
    if (left > rows + .9 * before) fail_msg("%.0f bytes on disk, of %.0f", left, rows + .9 * before);
    kv_session_free(s);
}

/* The bits of a lane's evicted rows in the page from token `from` on. */
static uint64_t evicted_in(const kv_session *s, uint32_t lane, uint32_t from)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 64; i++)
        if (!kv_bits_get(s->lists.lane[lane]->bits, from + i) && !kv_bits_get(s->barred, from + i) &&
            !kv_bits_get(s->stale, from + i))
            bits |= UINT64_C(1) << i;
    return bits;
}

/* Behind a plan, too, after which no token was computed: whoever resumes reads no row for a mean. */
static void test_digest__has_the_means_of_what_is_evicted_now(void **state)
{
    (void)state;
    float logits[FAKE_VOCAB];
    kv_session *s = resumed();
    uint32_t n_means = 0;
    live_well(s, 8, logits);
    const uint32_t at = find_active(s, 0, 1);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, at, at + 1, NULL), 0);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_free(s);
    s = resumed();
    assert_true(count_filed(s) > 1);
    assert_true(evicted_in(s, 0, at / 64 * 64) >> at % 64 & 1);
    for (uint32_t b = 0; b < s->table.n; b++)
        for (uint32_t lane = 0; lane < FAKE_LANES && s->table.blocks[b]->filed; lane++) {
            uint64_t rows[KV_DIGEST_PAGES];
            const uint16_t *means[KV_DIGEST_PAGES];
            for (uint32_t page = 0; page < KV_DIGEST_PAGES; page++)
                rows[page] = evicted_in(s, lane, b * MODEL_ROWS_BLOCK + page * 64);
            kv_filed_means(s->table.blocks[b]->filed, lane, rows, means);
            for (uint32_t page = 0; page < KV_DIGEST_PAGES; page++) {
                assert_true(!rows[page] || means[page]);
                n_means += means[page] != NULL;
            }
        }
    assert_true(n_means > FAKE_LANES);
    kv_session_free(s);
}

static void test_digest__a_damaged_row_is_found_when_it_is_read(void **state)
{
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
        float logits[FAKE_VOCAB];
        base_err err = {0};
        kv_session *s = resumed(), *f = NULL;
        const uint32_t t = find_active(s, lane, 4 + 3 * lane), n = s->n;
        change_byte(row_path, HEADER + (off_t)s->file_row[t] * ROW + (off_t)lane * FAKE_DIM * 4 + 9);
        assert_int_equal(kv_session_fork(s, &f, NULL, &err), 0);
        const uint64_t forwards = fake.n_forward;
        assert_int_equal(
            live(f, 100, logits, &err), BASE_E_FORMAT); /* rows are shared, so is what is known of them */
        assert_non_null(strstr(err.msg, "damaged"));
        assert_int_equal(f->n, n);
        kv_session_free(f);
        assert_int_equal(live(s, 100, logits, &err), BASE_E_FORMAT);
        assert_non_null(strstr(err.msg, "open the session again"));
        assert_int_equal(s->n, n);
        assert_true(fake.n_forward == forwards); /* nothing was computed with it */
        kv_session_free(s);
        /* The next time everything is read, and what has to be computed anew is said at once. */
        assert_int_equal(resume(&s, &err), BASE_E_FORMAT);
        assert_non_null(strstr(err.msg, "damaged"));
        remove_copy(state);
        assert_int_equal(copy_saved(state), 0);
    }
}

/* A session that is rewound into what lies in the row file takes that block into memory, and looks at all of it. */
static void test_digest__a_rewind_looks_at_what_it_takes_into_memory(void **state)
{
    float want[2][FAKE_VOCAB], got[FAKE_VOCAB];
    char aside[160];
    base_err err = {0};
    const uint32_t cut = 8 * MODEL_ROWS_BLOCK + 100;
    snprintf(aside, sizeof aside, "%s.aside", digest_path);
    assert_int_equal(rename(digest_path, aside), 0);
    kv_session *s = resumed(); /* as if there were no such file */
    assert_int_equal(kv_session_truncate(s, cut, NULL), 0);
    for (uint32_t i = 0; i < 2; i++) live_well(s, 100 + i, want[i]);
    kv_session_free(s);
    assert_int_equal(rename(aside, digest_path), 0);
    s = resumed();
    assert_non_null(s->table.filed[8]);
    assert_int_equal(kv_session_truncate(s, cut, NULL), 0);
    live_well(s, 100, got);
    assert_null(s->table.filed[8]);
    assert_non_null(s->table.filed[7]);
    kit_assert_same_logits(want[0], got);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_free(s);
    s = resumed(); /* other rows at the same places of the sequence */
    live_well(s, 101, got);
    kit_assert_same_logits(want[1], got);
    kv_session_free(s);

    remove_copy(state);
    assert_int_equal(copy_saved(state), 0);
    s = resumed();
    change_byte(row_path, HEADER + (off_t)s->file_row[8 * MODEL_ROWS_BLOCK + 3] * ROW + 5);
    assert_int_equal(kv_session_truncate(s, cut, NULL), 0);
    assert_int_equal(live(s, 100, got, &err), BASE_E_FORMAT);
    assert_int_equal(s->n, cut);
    kv_session_free(s);
}

static void test_digest__a_row_file_cut_short_is_a_sentence(void **state)
{
    struct stat st;
    base_err err = {0};
    kv_session *s;
    assert_int_equal(stat(row_path, &st), 0);
    assert_int_equal(truncate(row_path, st.st_size / 3), 0);
    assert_int_equal(resume(&s, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "cut off"));
}

/* Cut while the session is open: what would be read there is gone, and that is said instead of a signal. */
static void test_digest__a_row_file_cut_under_an_open_session_is_a_sentence(void **state)
{
    float logits[FAKE_VOCAB];
    base_err err = {0};
    kv_session *s = resumed();
    assert_true(count_filed(s) > 15);
    assert_int_equal(truncate(row_path, 4096), 0);
    int rc = 0;
    for (uint32_t turn = 100; turn < 104 && !rc; turn++) rc = live(s, turn, logits, &err);
    assert_int_equal(rc, BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "row file"));
    kv_session_free(s);
    assert_int_equal(resume(&s, &err), BASE_E_FORMAT);
}

/* Is the row file's map advised to be read by single pages? */
static bool is_read_apart(void)
{
    char line[512];
    bool is_of_it = false, is_advised = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        const size_t n = strcspn(line, "\n");
        line[n] = 0;
        if (strchr(line, '/'))
            is_of_it = n > strlen(row_path) && !strcmp(line + n - strlen(row_path), row_path);
        if (is_of_it && !strncmp(line, "VmFlags:", 8)) is_advised |= strstr(line, " rr") != NULL;
    }
    fclose(maps);
    return is_advised;
}

/* One token, with so much address space left. */
static void say_within(kv_session *s, uint64_t room)
{
    const kv_segment answer = {.origin = KV_ORIGIN_ANSWER, .turn = s->turn};
    const int32_t id = 5;
    unsigned long pages = 0;
    struct rlimit before, within;
    base_err err = {0};
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu", &pages), 1);
    fclose(statm);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    within = before;
    within.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + room;
    assert_int_equal(setrlimit(RLIMIT_AS, &within), 0);
    const int rc = kv_session_append(s, &answer, &id, 1, NULL, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    if (rc) fail_msg("%s", err.msg);
}

/* A row file that is larger than the free memory is read by single pages once the listed rows were read. */
static void test_digest__a_large_row_file_is_read_apart(void **state)
{
    const uint64_t large = (uint64_t)1 << 30, small = 1 << 20;
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    kv_session *s = resumed();
    assert_true(count_filed(s) > 15);
    say_within(s, large);
    assert_false(is_read_apart());
    kv__visit_replanned(s); /* its lists are read again, and nothing large is allocated any more */
    say_within(s, small);
    assert_true(is_read_apart());
    live_well(s, 100, got);
    kv_session_free(s);
    s = resumed();
    say_within(s, large);
    say_within(s, large);
    live_well(s, 100, want);
    assert_false(is_read_apart());
    kit_assert_same_logits(want, got);
    kv_session_free(s);
}

/* Compaction moves rows: blocks that lie where the file ends are taken into memory, and a fork keeps what it reads. */
static void test_digest__compaction_moves_no_row_under_a_reader(void **state)
{
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    assert_int_equal(unlink(row_path), 0);
    kv_session *s = make_session(), *f = NULL, *memory;
    assert_int_equal(kv_session_truncate(s, 1000, NULL), 0); /* a hole of 8,000 rows, and others behind it */
    for (uint32_t turn = 30; s->n < 9000; turn++) live_well(s, turn, want);
    assert_int_equal(kv_session_save(s, NULL), 0);
    memory = forked(s);
    kv_session_free(s);
    s = resumed();
    const uint64_t before = kv_rowfile_rows(s->file);
    assert_true(count_filed(s) > 15 && before > s->n + 5000);
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    assert_int_equal(kv_session_compact(s, NULL), 0);
    assert_true(kv_rowfile_rows(s->file) == before); /* the fork reads there */
    kv_session_free(f);
    assert_int_equal(kv_session_compact(s, NULL), 0);
    assert_int_equal(kv_rowfile_rows(s->file), s->n);
    live_well(memory, 100, want);
    live_well(s, 100, got);
    kit_assert_same_logits(want, got);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_free(s);
    s = resumed();
    live_well(memory, 101, want);
    live_well(s, 101, got);
    kit_assert_same_logits(want, got);
    kv_session_free(s);
    kv_session_free(memory);
}

#define WITH_COPY(test) cmocka_unit_test_setup_teardown(test, copy_saved, remove_copy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_COPY(test_digest__a_resumed_session_goes_on_with_the_same_bits),
        WITH_COPY(test_digest__a_limit_on_disk_counts_it),
        WITH_COPY(test_digest__nothing_is_lost_with_it),
        WITH_COPY(test_digest__is_made_ready_before_somebody_asks),
        WITH_COPY(test_digest__a_damaged_sketch_is_made_anew),
        WITH_COPY(test_digest__hashes_of_lanes_are_added),
        WITH_COPY(test_digest__has_the_means_of_what_is_evicted_now),
        WITH_COPY(test_digest__a_damaged_row_is_found_when_it_is_read),
        WITH_COPY(test_digest__a_rewind_looks_at_what_it_takes_into_memory),
        WITH_COPY(test_digest__a_row_file_cut_short_is_a_sentence),
        WITH_COPY(test_digest__a_row_file_cut_under_an_open_session_is_a_sentence),
        WITH_COPY(test_digest__a_large_row_file_is_read_apart),
        WITH_COPY(test_digest__compaction_moves_no_row_under_a_reader),
    };
    return cmocka_run_group_tests(tests, save_session, forget_session);
}
