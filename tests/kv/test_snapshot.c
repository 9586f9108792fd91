/*
 * Save, resume, prefix: what is on disk gives the same session again, and what is damaged gives a sentence,
 * never a session.
 */
#include <setjmp.h>
#include <signal.h>
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
#include "base/hash.h"
#include "kit.h"
#include "kv/lab/lab.h"
#include "kv/rows/rowfile.h"
#include "kv/rows/store.h"

enum { CTX = 3000 };

static char manifest_path[128], prefix_path[96];

static int make_folder(void **state)
{
    if (kit_make_folder(state)) return -1;
    snprintf(manifest_path, sizeof manifest_path, "%s.manifest", kit_row_path);
    snprintf(prefix_path, sizeof prefix_path, "%s/p.prefix", kit_folder);
    return 0;
}

static kv_options options_with_file(uint32_t budget)
{
    return (kv_options){.budget = budget, .repair = -1, .row_file = kit_row_path};
}

static kv_session *open_session(fake_model *m, const kv_options *o)
{
    return kit_open_as(m, CTX, o);
}

static void append(
    kv_session *s, kv_origin origin, uint32_t turn, const int32_t *ids, uint32_t n, float *logits)
{
    static const uint32_t lines[] = {0, 9, 20};
    static const kv_span spans[] = {{.from = 2, .to = 8, .reason = KV_REASON_SIGNATURE, .weight = 2}};
    const kv_segment g = {.origin = origin,
        .turn = turn,
        .lines = lines,
        .n_lines = n > 20 ? 3 : 0,
        .spans = spans,
        .n_spans = n > 20 ? 1 : 0};
    base_err err = {0};
    if (kv_session_append(s, &g, ids, n, logits, NULL, &err)) fail_msg("%s", err.msg);
}

/* A session with evictions, pins, bars, stale text, a repair and a cut behind it. */
static kv_session *lived_session(fake_model *m, uint64_t seed, float *logits)
{
    int32_t ids[900];
    kv_options o = options_with_file(800);
    kv_session *s = open_session(m, &o);
    kit_make_ids(ids, 900, FAKE_VOCAB, seed);
    append(s, KV_ORIGIN_SYSTEM, 0, ids, 50, NULL);
    append(s, KV_ORIGIN_USER, 1, ids + 50, 50, NULL);
    append(s, KV_ORIGIN_TOOL, 1, ids + 100, 700, NULL);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PIN, 200, 210, NULL), 0);
    assert_int_equal(kv_session_mark_failed(s, 300, 320, NULL), 0);
    assert_int_equal(kv_session_mark_stale(s, 330, 350, NULL), 0);
    append(s, KV_ORIGIN_USER, 2, ids + 50, 60, NULL);
    assert_int_equal(kv_session_repair(s, &(kv_ask){800, 860}, NULL, NULL), 0);
    append(s, KV_ORIGIN_TOOL, 2, ids, 400, NULL);
    assert_int_equal(kv_session_truncate(s, 1200, NULL), 0);
    append(s, KV_ORIGIN_ANSWER, 2, ids + 800, 30, logits);
    return s;
}

/* Everything that later decisions depend on, as one number. */
static uint64_t fingerprint(kv_session *s)
{
    kv_stats st;
    kv_session_get_stats(s, &st);
    uint64_t hash = kv_session_schedule_hash(s) ^ st.epoch;
    uint64_t bits[(CTX + 63) / 64];
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
        memset(bits, 0, sizeof bits);
        kv_session_lane_bits(s, lane, bits);
        hash = base_hash64(bits, sizeof bits, hash);
    }
    uint8_t states[CTX] = {0};
    kv_session_token_flags(s, states);
    hash = base_hash64(states, sizeof states, hash);
    uint32_t n = 0;
    const int32_t *ids = kv_session_ids(s, &n);
    hash = base_hash64(ids, n * sizeof *ids, hash);
    float logits[FAKE_VOCAB];
    assert_int_equal(kv_session_logits(s, logits, NULL, NULL), 0);
    return base_hash64(logits, sizeof logits, hash);
}

/* Goes on for a while; same state before, same result. */
static uint64_t go_on(kv_session *s)
{
    int32_t ids[600];
    float logits[FAKE_VOCAB];
    kit_make_ids(ids, 600, FAKE_VOCAB, 99);
    uint32_t n = 0;
    kv_session_ids(s, &n);
    append(s, KV_ORIGIN_USER, 3, ids, 60, NULL);
    assert_int_equal(kv_session_repair(s, &(kv_ask){n, n + 60}, NULL, NULL), 0);
    append(s, KV_ORIGIN_TOOL, 3, ids + 60, 540, logits);
    assert_int_equal(kv_session_undo_plan(s, NULL), 0);
    return base_hash64(logits, sizeof logits, fingerprint(s));
}

static int resume(fake_model *m, kv_session **ret, base_err *err)
{
    const kv_compute c = fake_compute(m, CTX);
    const kv_options o = options_with_file(800);
    return kv_session_resume_over(ret, &c, &o, NULL, err);
}

static void test_snapshot__resumes_with_nothing_computed_and_goes_on_alike(void **state)
{
    fake_model m = {0};
    float logits[FAKE_VOCAB], again[FAKE_VOCAB];
    base_err err = {0};
    kv_session *s = lived_session(&m, 1, logits), *r = NULL, *f = NULL;
    assert_int_equal(kv_session_save(s, &err), 0);
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    assert_int_equal(resume(&m, &r, &err), BASE_E_STATE); /* it is open here */
    const uint64_t want = fingerprint(s);
    kv_session_free(s);
    const uint64_t before = m.n_forward;
    if (resume(&m, &r, &err)) fail_msg("%s", err.msg);
    assert_int_equal(kv_session_logits(r, again, NULL, NULL), 0);
    assert_int_equal(m.n_forward, before);
    assert_memory_equal(logits, again, sizeof logits);
    assert_true(fingerprint(r) == want);
    kv_stats stats;
    kv_session_get_stats(r, &stats);
    assert_int_equal(stats.reused, 1230);
    assert_int_equal(stats.computed, 0);
    assert_true(go_on(r) == go_on(f));
    kv_session_free(f);
    kv_session_free(r);
}

static void test_snapshot__writes_only_new_rows(void **state)
{
    fake_model m = {0};
    kv_session *s = lived_session(&m, 2, NULL);
    kv_stats a, b;
    struct stat st;
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_get_stats(s, &a);
    assert_int_equal(stat(kit_row_path, &st), 0);
    assert_int_equal(st.st_size, a.file_bytes);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_get_stats(s, &b);
    assert_int_equal(a.file_bytes, b.file_bytes);
    int32_t ids[10];
    kit_make_ids(ids, 10, FAKE_VOCAB, 5);
    append(s, KV_ORIGIN_ANSWER, 2, ids, 10, NULL);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_get_stats(s, &b);
    assert_int_equal(b.file_bytes - a.file_bytes, 10 * FAKE_LANES * FAKE_DIM * 4);
    kv_session_free(s);
}

static void copy_file(const char *from, const char *to, size_t n_most)
{
    base_buf b = {0};
    assert_int_equal(base_fs_read(from, 1 << 30, &b, NULL), 0);
    assert_int_equal(base_fs_write(to, b.data ? b.data : "", b.len < n_most ? b.len : n_most, 0600, NULL), 0);
    base_buf_free(&b);
}

/* The process dies while the second save writes: the first save is there, whole. */
static void test_snapshot__a_crash_between_two_saves_keeps_the_first(void **state)
{
    fake_model m = {0};
    kv_session *s = lived_session(&m, 3, NULL), *r = NULL;
    base_err err = {0};
    char old_manifest[160], rows[160], part[192];
    snprintf(old_manifest, sizeof old_manifest, "%s/old", kit_folder);
    snprintf(rows, sizeof rows, "%s/rows", kit_folder);
    snprintf(part, sizeof part, "%s.tmp", manifest_path);
    assert_int_equal(kv_session_save(s, NULL), 0);
    const uint64_t want = fingerprint(s);
    kv_stats first, second;
    kv_session_get_stats(s, &first);
    copy_file(manifest_path, old_manifest, SIZE_MAX);
    int32_t ids[100];
    kit_make_ids(ids, 100, FAKE_VOCAB, 6);
    append(s, KV_ORIGIN_TOOL, 2, ids, 100, NULL);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_get_stats(s, &second);
    copy_file(kit_row_path, rows, SIZE_MAX);
    kv_session_free(s);
    for (size_t size = first.file_bytes; size <= second.file_bytes;
         size += 1 + (second.file_bytes - first.file_bytes) / 7) {
        copy_file(rows, kit_row_path, size);
        copy_file(old_manifest, manifest_path, SIZE_MAX);
        copy_file(old_manifest, part, size % 4000); /* what a half-written temporary leaves */
        if (resume(&m, &r, &err)) fail_msg("%s", err.msg);
        assert_true(fingerprint(r) == want);
        append(r, KV_ORIGIN_TOOL, 2, ids, 100, NULL);
        assert_int_equal(kv_session_save(r, NULL), 0);
        kv_session_free(r);
        if (resume(&m, &r, &err)) fail_msg("%s", err.msg);
        kv_session_free(r);
    }
}

static void test_snapshot__a_full_disk_harms_nothing(void **state)
{
    fake_model m = {0};
    kv_session *s = lived_session(&m, 7, NULL), *r = NULL;
    base_err err = {0};
    struct rlimit old, small;
    assert_int_equal(kv_session_save(s, NULL), 0);
    const uint64_t first = fingerprint(s);
    int32_t ids[300];
    kit_make_ids(ids, 300, FAKE_VOCAB, 5);
    append(s, KV_ORIGIN_TOOL, 2, ids, 300, NULL);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    /* No file may grow beyond a little more than the rows that are there. */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = stats.file_bytes + 5000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int code = kv_session_save(s, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(code, BASE_E_IO);
    const uint64_t second = fingerprint(s);
    kv_session *f = NULL;
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    assert_true(fingerprint(f) == second);
    kv_session_free(f);
    /* What was saved before is there; with room again the rest is saved too. */
    char rows[160], manifest[192];
    snprintf(rows, sizeof rows, "%s/copy", kit_folder);
    snprintf(manifest, sizeof manifest, "%s.manifest", rows);
    copy_file(kit_row_path, rows, SIZE_MAX);
    copy_file(manifest_path, manifest, SIZE_MAX);
    const kv_compute c = fake_compute(&m, CTX);
    if (kv_session_resume_over(
            &r, &c, &(kv_options){.budget = 800, .repair = -1, .row_file = rows}, NULL, &err))
        fail_msg("%s", err.msg);
    assert_true(fingerprint(r) == first);
    kv_session_free(r);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_free(s);
    if (resume(&m, &r, &err)) fail_msg("%s", err.msg);
    assert_true(fingerprint(r) == second);
    kv_session_free(r);
}

static void test_snapshot__damage_is_a_sentence(void **state)
{
    fake_model m = {0};
    kv_session *s = lived_session(&m, 4, NULL), *r = NULL;
    base_err err = {0};
    char manifest[192], rows[160];
    snprintf(manifest, sizeof manifest, "%s/m", kit_folder);
    snprintf(rows, sizeof rows, "%s/r", kit_folder);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_free(s);
    copy_file(manifest_path, manifest, SIZE_MAX);
    copy_file(kit_row_path, rows, SIZE_MAX);
    struct stat sm, sr;
    assert_int_equal(stat(manifest, &sm), 0);
    assert_int_equal(stat(rows, &sr), 0);
    for (int64_t cut = 0; cut < sm.st_size; cut += 1 + cut / 3) {
        copy_file(manifest, manifest_path, (size_t)cut);
        assert_int_equal(resume(&m, &r, &err), BASE_E_FORMAT);
        assert_true(strlen(err.msg) > 10);
    }
    copy_file(manifest, manifest_path, SIZE_MAX);
    for (int64_t cut = 0; cut < sr.st_size; cut += 1 + cut / 2) {
        copy_file(rows, kit_row_path, (size_t)cut);
        assert_int_equal(resume(&m, &r, &err), BASE_E_FORMAT);
        assert_true(strlen(err.msg) > 10);
    }
    uint64_t random = test_seed("flipped bits", 17);
    for (int k = 0; k < 60; k++) {
        const bool in_rows = k % 2;
        base_buf b = {0};
        assert_int_equal(base_fs_read(in_rows ? rows : manifest, 1 << 30, &b, NULL), 0);
        b.data[k < 10 ? (size_t)k * 3 : test_below(&random, (uint32_t)b.len)] ^=
            (char)(1 << test_below(&random, 8));
        copy_file(manifest, manifest_path, SIZE_MAX);
        copy_file(rows, kit_row_path, SIZE_MAX);
        assert_int_equal(base_fs_write(in_rows ? kit_row_path : manifest_path, b.data, b.len, 0600, NULL), 0);
        const int code = resume(&m, &r, &err);
        if (code == 0) { /* a row that a cut left behind, or the header's unused bytes: nobody reads them */
            assert_true(in_rows);
            kv_session_free(r);
        } else {
            assert_int_equal(code, BASE_E_FORMAT);
        }
        base_buf_free(&b);
    }
    assert_int_equal(unlink(manifest_path), 0);
    assert_int_equal(resume(&m, &r, &err), BASE_E_NOT_FOUND);
}

/* More rows than one thread reads; of two that are damaged the first is named, whoever came to it first. */
static void test_snapshot__many_rows_are_read_by_several_threads(void **state)
{
    fake_model m = {0};
    int32_t ids[CTX];
    const kv_options o = options_with_file(0);
    kv_session *s = open_session(&m, &o), *r = NULL;
    const kv_compute c = fake_compute(&m, CTX);
    const size_t row = kv_row_bytes(&c.shape);
    base_err err = {0};
    kit_make_ids(ids, CTX, FAKE_VOCAB, 21);
    append(s, KV_ORIGIN_TOOL, 1, ids, CTX - 100, NULL);
    const uint64_t before = fingerprint(s);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_free(s);
    for (int k = 0; k < 3; k++) {
        if (resume(&m, &r, &err)) fail_msg("%s", err.msg);
        assert_true(fingerprint(r) == before);
        kv_session_free(r);
    }
    base_buf b = {0};
    assert_int_equal(base_fs_read(kit_row_path, 1 << 30, &b, NULL), 0);
    const size_t header = b.len - (CTX - 100) * row;
    b.data[header + 1501 * row + 3] ^= 4;
    b.data[header + 2777 * row] ^= 1;
    assert_int_equal(base_fs_write(kit_row_path, b.data, b.len, 0600, NULL), 0);
    assert_int_equal(resume(&m, &r, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "the row of token 1501 is damaged"));
    base_buf_free(&b);
}

static void test_snapshot__another_models_rows_are_refused(void **state)
{
    fake_model m = {0};
    kv_session *s = lived_session(&m, 5, NULL), *r = NULL;
    base_err err = {0};
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_free(s);
    const kv_options o = options_with_file(800);
    kv_compute c = fake_compute(&m, CTX);
    c.hash[3] = 'a';
    assert_int_equal(kv_session_resume_over(&r, &c, &o, NULL, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "another model"));
    c = fake_compute(&m, CTX);
    c.kernel_version++;
    assert_int_equal(kv_session_resume_over(&r, &c, &o, NULL, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "kernels"));
    c = fake_compute(&m, 1000);
    assert_int_equal(kv_session_resume_over(&r, &c, &o, NULL, &err), BASE_E_FORMAT);
}

static void test_snapshot__the_fixed_prompt_is_computed_once(void **state)
{
    int32_t ids[800];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    kit_make_ids(ids, 800, FAKE_VOCAB, 8);
    fake_model m = {0};
    const kv_options o = {.prefix_file = prefix_path, .repair = -1};
    kv_session *a = open_session(&m, &o);
    append(a, KV_ORIGIN_SYSTEM, 0, ids, 300, NULL);
    append(a, KV_ORIGIN_SYSTEM, 0, ids + 300, 200, NULL);
    assert_int_equal(kv_session_save_prefix(a, prefix_path, 450, NULL), 0);
    append(a, KV_ORIGIN_USER, 1, ids + 500, 300, want);
    kv_session *b = open_session(&m, &o);
    uint64_t before = m.n_forward;
    append(b, KV_ORIGIN_SYSTEM, 0, ids, 300, NULL);
    assert_int_equal(m.n_forward, before);
    append(b, KV_ORIGIN_SYSTEM, 0, ids + 300, 200, NULL);
    assert_int_equal(m.n_forward - before, 50);
    append(b, KV_ORIGIN_USER, 1, ids + 500, 300, got);
    assert_memory_equal(want, got, sizeof want);
    kv_stats stats;
    kv_session_get_stats(b, &stats);
    assert_int_equal(stats.reused, 450);
    kv_session_free(b);

    /* Other text: as far as it agrees, then computed. The rows of the first session must not suffer. */
    kv_session *c = open_session(&m, &o), *d = open_session(&m, &(kv_options){0});
    int32_t other[300];
    memcpy(other, ids, sizeof other);
    other[270] ^= 1;
    before = m.n_forward;
    append(c, KV_ORIGIN_SYSTEM, 0, other, 300, got);
    assert_int_equal(m.n_forward - before, 30);
    append(d, KV_ORIGIN_SYSTEM, 0, other, 300, want);
    assert_memory_equal(want, got, sizeof want);
    kv_session_free(c);
    kv_session_free(d);

    /* The logits behind a wholly known prompt cost one token. */
    c = open_session(&m, &o);
    before = m.n_forward;
    append(c, KV_ORIGIN_SYSTEM, 0, ids, 450, got);
    assert_int_equal(m.n_forward - before, 1);
    kv_session_free(c);

    /* Rows of another version of the kernels are other rows, whatever the text. */
    kv_compute newer = fake_compute(&m, CTX);
    newer.kernel_version++;
    assert_int_equal(kv_session_new_over(&c, &newer, &o, NULL, NULL), 0);
    before = m.n_forward;
    append(c, KV_ORIGIN_SYSTEM, 0, ids, 300, NULL);
    assert_int_equal(m.n_forward - before, 300);
    kv_session_free(c);

    /* A session with holes shares nothing; damage is not used. */
    assert_int_equal(kv_session_manual(a, KV_MANUAL_EVICT, 10, 20, NULL), 0);
    assert_int_equal(kv_session_save_prefix(a, prefix_path, 450, NULL), BASE_E_STATE);
    kv_session_free(a);
    base_buf bytes = {0};
    assert_int_equal(base_fs_read(prefix_path, 1 << 30, &bytes, NULL), 0);
    bytes.data[5000] ^= 4;
    assert_int_equal(base_fs_write(prefix_path, bytes.data, bytes.len, 0600, NULL), 0);
    c = open_session(&m, &o);
    before = m.n_forward;
    append(c, KV_ORIGIN_SYSTEM, 0, ids, 300, NULL);
    assert_int_equal(m.n_forward - before, 300);
    kv_session_free(c);
    base_buf_free(&bytes);
}

static void test_snapshot__the_longest_unused_rows_go_first(void **state)
{
    fake_model m = {0};
    base_err err = {0};
    char first[128], manifest[160];
    snprintf(first, sizeof first, "%s/a", kit_folder);
    assert_int_equal(mkdir(first, 0700), 0);
    snprintf(first, sizeof first, "%s/a/rows", kit_folder);
    snprintf(manifest, sizeof manifest, "%s.manifest", first);
    kv_options o = options_with_file(0);
    o.row_file = first;
    int32_t ids[100];
    kit_make_ids(ids, 100, FAKE_VOCAB, 1);
    kv_session *a = open_session(&m, &o);
    append(a, KV_ORIGIN_TOOL, 1, ids, 100, NULL);
    assert_int_equal(kv_session_save(a, NULL), 0);
    kv_session *b = lived_session(&m, 6, NULL);
    assert_int_equal(kv_session_save(b, NULL), 0);
    kv_stats stats;
    kv_session_get_stats(b, &stats);
    uint64_t left = 0;
    assert_int_equal(
        kv_rowfile_trim(kit_folder, stats.file_bytes, &left, &err), BASE_E_LIMIT); /* both are open */
    assert_true(base_fs_exists(first) && base_fs_exists(kit_row_path));
    kv_session_free(a);
    kv_session_free(b);
    assert_int_equal(kv_rowfile_trim(kit_folder, stats.file_bytes, &left, &err), 0);
    assert_true(left == stats.file_bytes);
    assert_false(base_fs_exists(first) || base_fs_exists(manifest));
    assert_true(base_fs_exists(kit_row_path) && base_fs_exists(manifest_path));
    kv_session *r = NULL;
    if (resume(&m, &r, &err)) fail_msg("%s", err.msg);
    kv_session_free(r);
    assert_int_equal(kv_rowfile_trim("/nowhere/at/all", 0, &left, &err), 0);
}

/* Without its snapshot a session is its ids and its plans, executed again. */
typedef struct schedule {
    base_buf blobs[64];
    uint32_t n;
} schedule;

static void record(void *user, const kv_plan *p)
{
    schedule *log = user;
    assert_true(log->n < 64);
    kv_plan_pack(p, &log->blobs[log->n++]);
}

static void test_snapshot__a_logged_schedule_gives_the_state_again(void **state)
{
    int32_t ids[2500];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    kit_make_ids(ids, 2500, FAKE_VOCAB, 10);
    fake_model m = {0};
    schedule log = {0};
    const kv_observer observer = {.user = &log, .plan = record};
    const kv_compute c = fake_compute(&m, CTX);
    const kv_options o = {.budget = 700, .repair = -1};
    kv_session *a = NULL, *b = NULL;
    assert_int_equal(kv_session_new_over(&a, &c, &o, &observer, NULL), 0);
    append(a, KV_ORIGIN_USER, 1, ids, 100, NULL);
    append(a, KV_ORIGIN_TOOL, 1, ids + 100, 1000, NULL);
    append(a, KV_ORIGIN_USER, 2, ids + 1100, 400, NULL);
    assert_int_equal(kv_session_repair(a, &(kv_ask){1100, 1500}, NULL, NULL), 0);
    append(a, KV_ORIGIN_TOOL, 2, ids + 1500, 1000, want);
    assert_true(log.n >= 3);
    assert_int_equal(kv_session_new_over(&b, &c, &o, NULL, NULL), 0);
    kv_session_set_automatic(b, false);
    uint32_t at = 0;
    for (uint32_t k = 0; k <= log.n; k++) {
        kv_plan *p = NULL;
        if (k < log.n) assert_int_equal(kv_plan_unpack(log.blobs[k].data, log.blobs[k].len, &p, NULL), 0);
        const uint32_t to = p ? p->n_tokens : 2500;
        if (to > at) append(b, KV_ORIGIN_TOOL, 1, ids + at, to - at, got);
        at = to;
        if (!p) break;
        kv_stats stats;
        kv_session_get_stats(b, &stats);
        p->epoch = stats.epoch;
        assert_int_equal(kv_session_apply(b, p, NULL), 0);
        kv_plan_free(p);
    }
    if (kv_session_schedule_hash(a) != kv_session_schedule_hash(b)) fail_msg("another schedule");
    if (at == 2500) assert_int_equal(kv_session_logits(b, got, NULL, NULL), 0);
    assert_memory_equal(want, got, sizeof want);
    for (uint32_t k = 0; k < log.n; k++) base_buf_free(&log.blobs[k]);
    kv_session_free(a);
    kv_session_free(b);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, kit_remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_snapshot__resumes_with_nothing_computed_and_goes_on_alike),
        WITH_FOLDER(test_snapshot__writes_only_new_rows),
        WITH_FOLDER(test_snapshot__a_crash_between_two_saves_keeps_the_first),
        WITH_FOLDER(test_snapshot__a_full_disk_harms_nothing),
        WITH_FOLDER(test_snapshot__damage_is_a_sentence),
        WITH_FOLDER(test_snapshot__many_rows_are_read_by_several_threads),
        WITH_FOLDER(test_snapshot__another_models_rows_are_refused),
        WITH_FOLDER(test_snapshot__the_fixed_prompt_is_computed_once),
        WITH_FOLDER(test_snapshot__the_longest_unused_rows_go_first),
        WITH_FOLDER(test_snapshot__a_logged_schedule_gives_the_state_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
