/* Results over made-up documents: what is written is read again, and tables say what is there and nothing that is not. */
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

#include "bench/facts/scores.h"

static const bench_number numbers[] = {
    {"cost", "cost", 1}, {"hidden", NULL}, {"", "full / it", 2, .of_full = "cost"}, {"never", "never", 3}};
enum { COST, HIDDEN, N_NUMBERS = 4 };

static void add(bench_scores *s, const char *task, uint32_t item, const char *condition, bool first,
    bool second, double cost)
{
    bench_score one = {.model = "m", .tokens = 1000, .item = item, .turn = 1};
    bench_score_clear(s, &one);
    snprintf(one.task, sizeof one.task, "%s", task);
    snprintf(one.condition, sizeof one.condition, "%s", condition);
    snprintf(one.answer, sizeof one.answer, "\"a\"\n");
    one.n_targets = 2;
    one.found[0] = first;
    one.found[1] = second;
    one.numbers[COST] = cost;
    bench_scores_add(s, &one);
}

static void test_bench_scores__a_file_is_read_again_and_summed_up(void **state)
{
    char path[] = "/tmp/kvist-scores-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    base_err err = {0};
    bench_scores s = {.name = "b", .numbers = numbers, .n_numbers = N_NUMBERS};
    if (bench_scores_open(&s, path, true, &err)) fail_msg("%s", err.msg);
    for (uint32_t i = 0; i < 3; i++) {
        add(&s, i < 2 ? "one" : "two", i, "full", true, i > 0, 4);
        add(&s, i < 2 ? "one" : "two", i, "cut, 10%", i == 0, true, i == 1 ? NAN : 2);
    }
    bench_scores_close(&s);
    FILE *f = fopen(path, "a");
    fputs("{\"bench\":\"b\",\"cut off", f);
    fclose(f);
    bench_scores again = {.name = "b", .numbers = numbers, .n_numbers = N_NUMBERS};
    if (bench_scores_read(&again, path, &err)) fail_msg("%s", err.msg);
    assert_int_equal(again.n, 6);
    const bench_score *one = bench_scores_find(&again, &again.items[0], "cut, 10%");
    assert_non_null(one);
    assert_true(one->found[0] && one->found[1] && one->n_targets == 2 && !(one->numbers[COST] != 2));
    assert_true(isnan(one->numbers[HIDDEN]));
    assert_string_equal(one->answer, "\"a\"\n");
    assert_null(bench_scores_find(&again, &again.items[0], "cut"));
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    bench_scores_print(&again, "cut, 10%", out);
    fclose(out);
    assert_null(strstr(text, "nan"));
    assert_non_null(strstr(text, "m, one, 1000 tokens, turn 1"));
    assert_non_null(strstr(text, "m, two, 1000 tokens, turn 1"));
    assert_non_null(strstr(text, "m, all tasks, 1000 tokens, turn 1"));
    /* Task one: full 3 of 4, the other 3 of 4, one lost and one won; cost of one item only. */
    assert_non_null(
        strstr(text, "| full | 2 | 3/4 | 0.750 [0.301, 0.954] | - | -1 +1 of 4, p 1 | 4.0 | 1.00 | - |"));
    assert_non_null(
        strstr(text, "| cut, 10% | 2 | 3/4 | 0.750 [0.301, 0.954] | -1 +1 of 4, p 1 | - | 2.0 | 2.00 | - |"));
    assert_non_null(strstr(text, "| cut, 10% | 3 | 4/6 |"));
    free(text);
    bench_scores_close(&again);
    bench_scores refused = {.name = "b", .numbers = numbers, .n_numbers = N_NUMBERS};
    assert_int_not_equal(bench_scores_open(&refused, path, false, &err), 0);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_scores__a_file_is_read_again_and_summed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
