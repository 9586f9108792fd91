/*
 * Lanes of layers with a window (docs/kv.md, Rows behind a window) over the model without weights, whose layer 0 reads
 * the newest tokens only: no pass, repair or order chooses there, and nothing counts them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fs.h"
#include "kit.h"
#include "kv/core/state.h"
#include "kv/plan/plan.h"

enum { WINDOW = 100, BUDGET = 800, N = 3000, WINDOWED = FAKE_HEADS_KV };

static void append(kv_session *s, kv_origin origin, uint32_t turn, uint32_t n, uint64_t seed)
{
    int32_t ids[N];
    kit_make_classes(ids, n, 50, seed);
    kit_append_segment(s, (kv_segment){.origin = origin, .turn = turn}, ids, n);
}

/* Active rows of a lane among [from, to). */
static uint32_t active_in(const kv_session *s, uint32_t lane, uint32_t from, uint32_t to)
{
    uint64_t bits[KIT_CTX / 64 + 1] = {0};
    kv_session_lane_bits(s, lane, bits);
    return kv_bits_count_range(bits, from, to);
}

static void assert_windows_are_whole(const kv_session *s)
{
    for (uint32_t lane = 0; lane < WINDOWED; lane++) assert_int_equal(active_in(s, lane, 0, s->n), s->n);
}

static void test_window__no_policy_chooses_there_and_counts_leave_it_out(void **state)
{
    static const char *const policies[] = {"kvist", "snapkv", "streaming-llm", "snapkv-seed", "intentkv",
        "tova", "knorm", "random", "oldest", "codecomp", "h2o", "scissorhands"};
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        fake_model m = {.window = WINDOW, .lanes_differ = true};
        kit_seen log = {0};
        kv_stats stats;
        kv_session *s =
            kit_open(&m, &(kv_options){.budget = BUDGET, .policy = policies[i], .repair = 40}, &log);
        append(s, KV_ORIGIN_USER, 1, 20, 1);
        append(s, KV_ORIGIN_TOOL, 1, 1500, 2);
        append(s, KV_ORIGIN_ANSWER, 1, 10, 3);
        append(s, KV_ORIGIN_USER, 2, 20, 4);
        assert_int_equal(kv_session_repair(s, &(kv_ask){1530, 1550}, NULL, NULL), 0);
        assert_true(log.n_plans > 0 && log.evicted > 0);
        assert_windows_are_whole(s);
        kv_session_get_stats(s, &stats);
        assert_int_equal(stats.n_lanes, FAKE_LANES - WINDOWED);
        assert_int_equal(stats.n_all_lanes, FAKE_LANES);
        assert_true(stats.active <= BUDGET && stats.active_max <= BUDGET);
        assert_int_equal(stats.active + stats.host, stats.n_tokens);
        uint32_t lanes[KIT_CTX], most = 0;
        kv_session_active_lanes(s, lanes);
        for (uint32_t t = 0; t < stats.n_tokens; t++) most = lanes[t] > most ? lanes[t] : most;
        assert_int_equal(most, FAKE_LANES - WINDOWED);
        kv_session_free(s);
    }
}

static void test_window__a_repair_by_lanes_leaves_it_out_too(void **state)
{
    static const char *const forms[][3] = {{"lanes=each"}, {"pick=refresh", "lanes=each"}, {"pick=refresh"}};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        fake_model m = {.window = WINDOW, .lanes_differ = true};
        kit_seen log = {0};
        kv_session *s = kit_open(&m, &(kv_options){.budget = BUDGET, .set = forms[i], .repair = 40}, &log);
        append(s, KV_ORIGIN_TOOL, 1, 1500, 2);
        append(s, KV_ORIGIN_USER, 2, 20, 4);
        assert_int_equal(kv_session_repair(s, &(kv_ask){1500, 1520}, NULL, NULL), 0);
        assert_int_equal(log.last_cause, KV_CAUSE_REPAIR);
        assert_true(log.promoted > 0);
        assert_windows_are_whole(s);
        kv_session_free(s);
    }
}

/* What a budget bounds is spared; what must not be read is taken from every lane, and comes back to every lane. */
static void test_window__evicting_by_hand_spares_it_and_dropping_does_not(void **state)
{
    fake_model m = {.window = WINDOW};
    kit_seen log = {0};
    kv_why why;
    (void)state;
    kv_session *s = kit_open(&m, &(kv_options){.budget = 2000}, &log);
    append(s, KV_ORIGIN_TOOL, 1, 600, 2);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 550, 560, NULL), 0);
    assert_int_equal(log.evicted, 10);
    assert_windows_are_whole(s);
    kv_session_why(s, 555, &why);
    assert_int_equal(why.lanes_active, 0);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_DROP, 580, 590, NULL), 0);
    assert_int_equal(kv_session_mark_stale(s, 590, 595, NULL), 0);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
        assert_int_equal(active_in(s, lane, 580, 595), 0);
        assert_int_equal(active_in(s, lane, 550, 560), lane < WINDOWED ? 10 : 0);
    }
    assert_int_equal(log.evicted, 25);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PROMOTE, 550, 595, NULL), 0);
    assert_int_equal(log.promoted, 25);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) assert_int_equal(active_in(s, lane, 0, 600), 600);
    kv_session_free(s);
}

/* A plan as older versions made it, which evicted there as well: it is applied, saved and resumed as it is. */
static void test_window__plans_of_older_versions_are_applied_and_resumed(void **state)
{
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    fake_model m = {.window = WINDOW};
    kv_stats stats;
    (void)state;
    kv_session *s = kit_open(&m, &(kv_options){.budget = 2000, .row_file = kit_row_path}, NULL);
    append(s, KV_ORIGIN_TOOL, 1, 700, 2);
    kv_session_get_stats(s, &stats);
    kv_plan *old = kv_plan_new(stats.epoch, KV_CAUSE_EVICT, 700, FAKE_LANES);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
        kv_bits_set_range(old->flips + (size_t)lane * kv_plan_words(old), 640, 660); /* within the window */
    assert_int_equal(kv_session_apply(s, old, NULL), 0);
    kv_plan_free(old);
    append(s, KV_ORIGIN_USER, 2, 20, 5);
    assert_int_equal(kv_session_logits(s, want, NULL, NULL), 0);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_free(s);
    const kv_compute c = fake_compute(&m, KIT_CTX);
    const kv_options o = {.budget = 2000, .row_file = kit_row_path, .repair = -1};
    base_err err = {0};
    if (kv_session_resume_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) assert_int_equal(active_in(s, lane, 0, 720), 700);
    assert_int_equal(kv_session_logits(s, got, NULL, NULL), 0);
    kit_assert_same_logits(want, got);
    /* It can be taken back, and a later pass leaves those lanes as they are. */
    append(s, KV_ORIGIN_TOOL, 2, 2000, 6);
    for (uint32_t lane = 0; lane < WINDOWED; lane++) assert_int_equal(active_in(s, lane, 0, 2720), 2700);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PROMOTE, 640, 660, NULL), 0);
    assert_windows_are_whole(s);
    kv_session_free(s);
}

/* Behind the window rows go to disk like evicted ones; a rewind to where they are read finds them. */
static void test_window__rows_behind_it_lie_on_disk_and_are_read_after_a_rewind(void **state)
{
    static const char *const host[] = {"host=.125", "tier=8bit", NULL};
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    fake_model m = {.window = WINDOW};
    (void)state;
    kv_session *const both[] = {
        kit_open(&m, &(kv_options){.budget = BUDGET, .policy = "streaming-llm"}, NULL),
        kit_open(&m,
            &(kv_options){.budget = BUDGET, .policy = "streaming-llm", .set = host, .row_file = kit_row_path},
            NULL)};
    float *const logits[] = {want, got};
    for (int i = 0; i < 2; i++) {
        append(both[i], KV_ORIGIN_TOOL, 1, N, 7);
        uint32_t n_on_disk = 0;
        for (uint32_t b = 0; b < both[i]->table.n; b++) {
            n_on_disk += both[i]->table.blocks[b]->on_disk;
            assert_null(both[i]->table.blocks[b]->packed); /* a window may read them again */
        }
        assert_true(i ? n_on_disk >= 6 : n_on_disk == 0);
        assert_int_equal(kv_session_truncate(both[i], 1300, NULL), 0);
        append(both[i], KV_ORIGIN_USER, 2, 30, 8);
        assert_windows_are_whole(both[i]);
        assert_int_equal(kv_session_logits(both[i], logits[i], NULL, NULL), 0);
    }
    kit_assert_same_logits(want, got);
    kv_session_free(both[0]);
    kv_session_free(both[1]);
}

static void test_window__rows_given_up_leave_its_lists(void **state)
{
    static const char *const host[] = {"host=.125", NULL};
    float logits[FAKE_VOCAB];
    fake_model m = {.window = WINDOW};
    kv_stats stats;
    (void)state;
    kv_session *s =
        kit_open(&m, &(kv_options){.budget = BUDGET, .policy = "streaming-llm", .set = host}, NULL);
    append(s, KV_ORIGIN_TOOL, 1, N, 7);
    kv_session_get_stats(s, &stats);
    assert_true(stats.lost > 1000);
    assert_int_equal(stats.active + stats.host + stats.lost, N);
    for (uint32_t lane = 0; lane < WINDOWED; lane++) {
        assert_int_equal(active_in(s, lane, 0, N), N - stats.lost);
        assert_int_equal(active_in(s, lane, N - WINDOW, N), WINDOW);
    }
    assert_int_equal(
        kv_session_truncate(s, 700, NULL), 0); /* among them: the fake model would read what is gone */
    append(s, KV_ORIGIN_USER, 2, 30, 8);
    assert_int_equal(kv_session_logits(s, logits, NULL, NULL), 0);
    kv_session_free(s);
}

static size_t count_mapped(const kv_session *s)
{
    size_t n = 0;
    for (uint32_t b = 0; b < s->table.n; b++) n += s->table.blocks[b]->mapped;
    return n;
}

/* Memory of this process that no file holds, in bytes. */
static size_t anonymous_bytes(void)
{
    base_buf status = {0};
    assert_int_equal(base_fs_read("/proc/self/status", 1 << 16, &status, NULL), 0);
    const char *at = strstr(status.data, "RssAnon:");
    const size_t n = at ? strtoull(at + strlen("RssAnon:"), NULL, 10) * 1024 : 0;
    base_buf_free(&status);
    return n;
}

/*
 * A little model whose blocks are larger than a MiB: with a row file the rows behind windows lie in a file, at the same
 * addresses, and every bit is that of a session in memory, also where it goes back to where they are read, or forks.
 */
static void test_window__rows_behind_it_take_no_memory(void **state)
{
    enum { LONG = 2400, BACK = 700 };
    tiny_gguf spec = TINY_GGUF_GEMMA3;
    int32_t ids[LONG];
    float logits[2][4][TINY_GGUF_VOCAB];
    const uint16_t *first_block[2];
    size_t grown[2];
    (void)state;
    spec.head_dim = 64;
    spec.n_head_kv = 4;
    model *m = kit_open_tiny(&spec, 2);
    kit_make_ids(ids, LONG, TINY_GGUF_VOCAB, 9);
    for (int i = 0; i < 2; i++) {
        kv_session *s = NULL, *fork = NULL;
        const kv_options o = {.budget = 900, .repair = 40, .row_file = i ? kit_row_path : NULL};
        const size_t before = anonymous_bytes();
        assert_int_equal(kv_session_new(&s, m, &o, NULL, NULL), 0);
        kit_append(s, KV_ORIGIN_TOOL, 1, ids, 512, NULL);
        first_block[i] = s->table.rows[0];
        kit_append(s, KV_ORIGIN_TOOL, 1, ids + 512, LONG - 512, logits[i][0]);
        grown[i] = anonymous_bytes() - before;
        assert_ptr_equal(s->table.rows[0], first_block[i]);
        /* 24 of 28 lanes of every block that lies behind the window of 200 by a tile. */
        assert_int_equal(
            count_mapped(s), i ? (LONG - 200 - MODEL_ROWS_TILE) / MODEL_ROWS_BLOCK * 24 * (256 * 64 * 4) : 0);
        assert_int_equal(kv_session_fork(s, &fork, NULL, NULL), 0);
        assert_int_equal(kv_session_truncate(fork, BACK, NULL), 0);
        kit_append(fork, KV_ORIGIN_USER, 2, ids + 100, 300, logits[i][1]);
        kit_append(s, KV_ORIGIN_USER, 2, ids + 200, 40, logits[i][2]); /* the fork wrote nothing of it */
        kv_session_free(fork);
        assert_int_equal(kv_session_truncate(s, BACK, NULL), 0);
        kit_append(s, KV_ORIGIN_USER, 3, ids + 300, 900, logits[i][3]);
        kv_session_free(s);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    assert_true(grown[1] + (4 << 20) < grown[0]); /* of 7 blocks of 1.75 MiB, 10 MiB */
    model_close(m);
}

static uint32_t window_of_any(void *user, uint32_t layer)
{
    (void)user;
    (void)layer;
    return WINDOW;
}

/* A model that has a window in every layer is held to its budget as any other. */
static void test_window__where_every_layer_has_one_all_lanes_count(void **state)
{
    fake_model m = {0};
    kv_stats stats;
    kv_compute c = fake_compute(&m, KIT_CTX);
    kv_session *s = NULL;
    (void)state;
    c.window = window_of_any;
    const kv_options o = {.budget = BUDGET, .repair = -1};
    assert_int_equal(kv_session_new_over(&s, &c, &o, NULL, NULL), 0);
    append(s, KV_ORIGIN_TOOL, 1, 1500, 2);
    kv_session_get_stats(s, &stats);
    assert_int_equal(stats.n_lanes, FAKE_LANES);
    assert_true(stats.active_max <= BUDGET);
    kv_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window__no_policy_chooses_there_and_counts_leave_it_out),
        cmocka_unit_test(test_window__a_repair_by_lanes_leaves_it_out_too),
        cmocka_unit_test(test_window__evicting_by_hand_spares_it_and_dropping_does_not),
        cmocka_unit_test_setup_teardown(
            test_window__plans_of_older_versions_are_applied_and_resumed, kit_make_folder, kit_remove_folder),
        cmocka_unit_test_setup_teardown(test_window__rows_behind_it_lie_on_disk_and_are_read_after_a_rewind,
            kit_make_folder, kit_remove_folder),
        cmocka_unit_test(test_window__rows_given_up_leave_its_lists),
        cmocka_unit_test_setup_teardown(
            test_window__rows_behind_it_take_no_memory, kit_make_folder, kit_remove_folder),
        cmocka_unit_test(test_window__where_every_layer_has_one_all_lanes_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
