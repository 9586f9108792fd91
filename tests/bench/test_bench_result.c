/* Results of experiments: intervals against published values, files that are gone on with. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "bench/common/result_file.h"
#include "bench/common/statistics.h"
#include "bench/recall/recall_result.h"

static void check_near(double got, double want)
{
    if (!(fabs(got - want) <= 5e-4)) fail_msg("%g is not %g", got, want);
}

static void test_bench_result__intervals_are_those_of_the_books(void **state)
{
    (void)state;
    double low, high;
    bench_wilson(81, 263, &low, &high); /* Newcombe (1998), table I */
    check_near(low, .2553);
    check_near(high, .3662);
    bench_wilson(0, 20, &low, &high);
    check_near(low, 0);
    check_near(high, .1611);
    bench_wilson(0, 0, &low, &high);
    check_near(high, 1);
    check_near(bench_mcnemar(0, 5), .0625);
    check_near(bench_mcnemar(1, 9), 22. / 1024);
    check_near(bench_mcnemar(4, 4), 1);
    check_near(bench_mcnemar(0, 0), 1);
}

static void test_bench_result__a_file_is_gone_on_with_when_asked(void **state)
{
    (void)state;
    char path[] = "/tmp/kvist-results-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    bench_results r;
    base_err err = {0};
    bench_result one = {.model = "m",
        .split = "14-23",
        .condition = "ours, \"swap\"",
        .tokens = 8192,
        .needles = 4,
        .base = 50,
        .text = 7,
        .k = 48,
        .n_targets = 2,
        .found = {true, false},
        .n_ranks = 2,
        .ranks = {3, 17}};
    assert_int_equal(bench_results_open(&r, "niah", path, false, &err), 0); /* empty: nothing to lose */
    bench_results_add(&r, &one, "12345\n\"x\"");
    bench_results_close(&r);
    assert_int_equal(bench_results_open(&r, "niah", path, false, &err), BASE_E_USAGE);
    assert_non_null(strstr(err.msg, "--resume"));
    bench_results_close(&r);
    /* A run that was killed left half a line. */
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fputs("{\"bench\":\"niah\",\"mod", f);
    fclose(f);
    assert_int_equal(bench_results_open(&r, "niah", path, true, &err), 0);
    assert_int_equal(r.n, 1);
    assert_non_null(bench_results_find(&r, &one, false));
    assert_int_equal(r.items[0].n_targets, 2);
    assert_true(r.items[0].found[0] && !r.items[0].found[1]);
    assert_int_equal(r.items[0].n_ranks, 2);
    assert_true(r.items[0].ranks[0] == 3 && r.items[0].ranks[1] == 17);
    one.k = 96;
    one.n_ranks = 0; /* nobody asked: no field, no column */
    assert_null(bench_results_find(&r, &one, false));
    bench_results_add(&r, &one, NULL);
    bench_results_close(&r);
    assert_int_equal(bench_results_read(&r, path, &err), 0);
    assert_int_equal(r.n, 2);
    assert_non_null(bench_results_find(&r, &one, false));
    assert_int_equal(r.items[1].n_ranks, 0);
    char table[4096] = {0};
    f = fmemopen(table, sizeof table - 1, "w");
    assert_non_null(f);
    bench_results_print(&r, f);
    fclose(f);
    assert_non_null(strstr(table, "K = 48"));
    assert_non_null(strstr(table, " | 17 (17) | "));
    assert_non_null(strstr(strstr(table, "K = 96"), " | - | "));
    bench_results_close(&r);
    unlink(path);
}

static void test_bench_result__a_list_of_words_says_what_is_wanted(void **state)
{
    (void)state;
    assert_true(bench_is_wanted(NULL, ';', "ours"));
    assert_true(bench_is_wanted("paper;ours", ';', "ours, swap"));
    assert_false(bench_is_wanted("paper;=ours", ';', "ours, swap"));
    assert_true(bench_is_wanted("paper;=ours", ';', "ours"));
    assert_false(bench_is_wanted("", ';', "ours"));
    assert_true(bench_is_wanted("mq,vt", ',', "vt"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_result__a_list_of_words_says_what_is_wanted),
        cmocka_unit_test(test_bench_result__intervals_are_those_of_the_books),
        cmocka_unit_test(test_bench_result__a_file_is_gone_on_with_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
