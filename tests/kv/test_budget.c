/* A budget as a person says it: words to a wish, a wish to rows per lane. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kv/calibrate/pace.h"
#include "kv/core/budget.h"

enum { CTX = 32768, ROW_BYTES = 28672 };
#define GIB ((uint64_t)1 << 30)

static uint32_t rows_of(const char *text, uint64_t free_bytes)
{
    kv_budget b;
    assert_int_equal(kv_budget_parse(text, &b, NULL), BASE_OK);
    return kv_budget_rows(&b, CTX, ROW_BYTES, free_bytes, (kv_limit){0}).rows;
}

static void test_words(void **state)
{
    assert_int_equal(rows_of("4096", GIB), 4096);
    assert_int_equal(rows_of("1", GIB), 1);
    assert_int_equal(rows_of("25%", GIB), CTX / 4);
    assert_int_equal(rows_of("100%", GIB), CTX);
    assert_int_equal(rows_of("0.001%", GIB), 1);
    assert_int_equal(rows_of("28k", GIB), 1);
    assert_int_equal(rows_of("280K", GIB), 10);
    assert_int_equal(rows_of("1G", GIB), GIB / ROW_BYTES);
    assert_int_equal(rows_of("full", GIB), 0);
    assert_int_equal(rows_of("off", GIB), 0);
    assert_int_equal(rows_of("0", GIB), 0);
}

static void test_auto_is_a_quarter_of_free_memory_within_bounds(void **state)
{
    assert_int_equal(rows_of("auto", 64 * GIB), KV_BUDGET_AUTO_MOST);
    assert_int_equal(rows_of("auto", UINT64_MAX), KV_BUDGET_AUTO_MOST);
    assert_int_equal(rows_of("auto", (uint64_t)4 * 8000 * ROW_BYTES), 8000);
    assert_int_equal(
        rows_of("auto", GIB / 100), KV_BUDGET_AUTO_LEAST); /* what was the default loads as before */
    assert_int_equal(rows_of("auto", 0), KV_BUDGET_AUTO_LEAST);
}

static void test_auto_leaves_room_behind_it_only_where_there_is_some(void **state)
{
    const kv_budget b = {.kind = KV_BUDGET_AUTO};
    assert_int_equal(kv_budget_rows(&b, 8192, ROW_BYTES, 64 * GIB, (kv_limit){0}).rows, 4096);
    assert_int_equal(
        kv_budget_rows(&b, 131072, ROW_BYTES, 64 * GIB, (kv_limit){0}).rows, KV_BUDGET_AUTO_MOST);
    assert_int_equal(kv_budget_rows(&b, 8190, ROW_BYTES, 64 * GIB, (kv_limit){0}).rows,
        KV_BUDGET_AUTO_MOST); /* the context ends it */
    assert_int_equal(kv_budget_rows(&b, 1500, ROW_BYTES, 0, (kv_limit){0}).rows, KV_BUDGET_AUTO_LEAST);
}

static void test_rows_behind_more_of_them(void **state)
{
    kv_budget b;
    assert_int_equal(kv_budget_parse("8192/4096", &b, NULL), BASE_OK);
    const kv_limit limit = kv_budget_rows(&b, CTX, ROW_BYTES, GIB, (kv_limit){0});
    assert_int_equal(limit.rows, 4096);
    assert_int_equal(limit.until, 8192);
    assert_int_equal(kv_budget_parse("4096", &b, NULL), BASE_OK);
    assert_int_equal(kv_budget_rows(&b, CTX, ROW_BYTES, GIB, (kv_limit){0}).until, 0);
}

/* So much faster are few rows at either depth, answers by one more. */
static kv_pace pace_of(double shallow, double deep)
{
    return (kv_pace){.hash = "abc",
        .isa = "avx",
        .n_threads = 2,
        .rows = 4096,
        .depths = {8192, 16384},
        .full = {{10, 20}, {30, 40}},
        .few = {{10 - shallow, 20 - shallow - 1}, {30 - deep, 40 - deep - 1}}};
}

/* The line through both depths says from when on; answers cross it earlier here than messages do. */
static void test_pace_says_from_when_on_few_rows_pay(void **state)
{
    kv_pace p = pace_of(2, 6);
    assert_int_equal(kv_pace_limit(&p).until, KV_PACE_UNTIL); /* at least */
    assert_int_equal(kv_pace_limit(&p).rows, 4096);
    p = pace_of(-2, 2);
    assert_int_equal(kv_pace_limit(&p).until, 12288);
    p = pace_of(-2.2, 2);
    assert_int_equal(kv_pace_limit(&p).until, 13312); /* 12,483 rounded up to 1,024 */
    p = pace_of(-3, -2);
    assert_int_equal(kv_pace_limit(&p).rows, 0);
    p = pace_of(3, 2); /* less at the deeper one, and something all the same */
    assert_int_equal(kv_pace_limit(&p).until, 8192);
    p = pace_of(-3, -4);
    assert_int_equal(kv_pace_limit(&p).rows, 0);
    p = pace_of(-2, 2); /* the rows that stay are those that were measured */
    p.rows = 3072;
    assert_int_equal(kv_pace_limit(&p).rows, 3072);
    assert_int_equal(kv_pace_limit(&p).until, 12288);
    p = pace_of(6, 8); /* even long before: facts that were read stay whole all the same */
    p.rows = 1024;
    assert_int_equal(kv_pace_limit(&p).until, KV_PACE_UNTIL);
}

static void test_auto_takes_what_was_measured_where_memory_allows(void **state)
{
    const kv_budget b = {.kind = KV_BUDGET_AUTO};
    const kv_limit measured = {.rows = 4096, .until = 9216};
    kv_limit limit = kv_budget_rows(&b, CTX, ROW_BYTES, 64 * GIB, measured);
    assert_int_equal(limit.rows, 4096);
    assert_int_equal(limit.until, 9216);
    limit = kv_budget_rows(&b, CTX, ROW_BYTES, (uint64_t)4 * 8000 * ROW_BYTES, measured);
    assert_int_equal(limit.rows, 4096);
    assert_int_equal(limit.until, 8000);
    limit = kv_budget_rows(&b, CTX, ROW_BYTES, 0, measured);
    assert_int_equal(limit.rows, 4096);
    assert_int_equal(limit.until, 0);
    const kv_budget rows = {.kind = KV_BUDGET_ROWS, .amount = 2560}; /* what a person says stays */
    assert_int_equal(kv_budget_rows(&rows, CTX, ROW_BYTES, 64 * GIB, measured).rows, 2560);
    assert_int_equal(kv_budget_rows(&rows, CTX, ROW_BYTES, 64 * GIB, measured).until, 0);
}

static void test_the_file_of_a_pace_is_of_one_model_and_machine(void **state)
{
    char path[] = "/tmp/kvist-pace-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    const kv_pace p = pace_of(-2, 2);
    kv_pace read;
    model_info info = {.hash = "abc", .isa = "avx", .n_threads = 2};
    assert_int_equal(kv_pace_save(&p, path, NULL), 0);
    assert_true(kv_pace_load(path, &info, &read));
    assert_int_equal(kv_pace_limit(&read).until, 12288);
    info.n_threads = 4;
    assert_false(kv_pace_load(path, &info, &read));
    info.n_threads = 2;
    info.isa = "avx512";
    assert_false(kv_pace_load(path, &info, &read));
    info = (model_info){.hash = "abd", .isa = "avx", .n_threads = 2};
    assert_false(kv_pace_load(path, &info, &read));
    unlink(path);
    assert_false(kv_pace_load(path, &info, &read));
    static const char *const wrong[] = {"", "kvist pace 1 abc avx 2 4096\n",
        "kvist pace 2 abc avx 2 4096\n8192 1 1 1 1\n16384 1 1 1 1\n",
        "kvist pace 1 abc avx 2 4096\n8192 1 1 nan 1\n16384 1 1 1 1\n",
        "kvist pace 1 abc avx 2 4096\n8192 1 1 0 1\n16384 1 1 1 1\n",
        "kvist pace 1 abc avx 2 4096\n8192 1 1 1 1\n8192 1 1 1 1\n",
        "kvist pace 1 abc avx 2 8192\n8192 1 1 1 1\n16384 1 1 1 1\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(kv_pace_parse(wrong[i], strlen(wrong[i]), &read));
}

static void test_other_words_are_refused_with_the_forms(void **state)
{
    static const char *const wrong[] = {"", " ", "lots", "-1", "200%", "-5%", "nan", "nan%", "inf", "1e300",
        "4096x", "12 rows", "0.5", "%", "k", "0x", "2000000000", "1e400G", "auto ", "0%", "4096/8192",
        "8192/", "/4096", "8192/4096/1", "8192/25%", "50%/25%", "8192/0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kv_budget b;
        base_err err = {0};
        if (kv_budget_parse(wrong[i], &b, &err) != BASE_E_USAGE) fail_msg("\"%s\" was taken", wrong[i]);
        assert_non_null(strstr(err.msg, "auto"));
    }
}

static void test_tokens_of_an_engine_elsewhere(void **state)
{
    static const struct {
        const char *text;
        uint32_t tokens; /* UINT32_MAX: refused */
    } rows[] = {{"auto", 6000}, {"full", 0}, {"4096", 4096}, {"50%", 4000}, {"100%", 8000}, {"20000", 8000},
        {"200M", UINT32_MAX}, {"4096/2048", UINT32_MAX}, {"1023", UINT32_MAX}, {"1%", UINT32_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kv_budget b;
        uint32_t tokens;
        assert_int_equal(kv_budget_parse(rows[i].text, &b, NULL), BASE_OK);
        const int rc = kv_budget_tokens(&b, 8000, &tokens, NULL);
        assert_int_equal(rc, rows[i].tokens == UINT32_MAX ? BASE_E_USAGE : BASE_OK);
        if (!rc) assert_int_equal(tokens, rows[i].tokens);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_of_an_engine_elsewhere),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_auto_is_a_quarter_of_free_memory_within_bounds),
        cmocka_unit_test(test_auto_leaves_room_behind_it_only_where_there_is_some),
        cmocka_unit_test(test_rows_behind_more_of_them),
        cmocka_unit_test(test_pace_says_from_when_on_few_rows_pay),
        cmocka_unit_test(test_auto_takes_what_was_measured_where_memory_allows),
        cmocka_unit_test(test_the_file_of_a_pace_is_of_one_model_and_machine),
        cmocka_unit_test(test_other_words_are_refused_with_the_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
