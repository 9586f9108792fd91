/* Predictions against a plain model of one slot, and llama-server's former prompts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "remote/held.h"

enum { N = 100 };

static void count_up(int32_t *ids, uint32_t from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) ids[i] = (int32_t)(from + i);
}

static void test_one_slot(void **state)
{
    int32_t ids[N], answer[] = {7000, 7001, 7002};
    count_up(ids, 0, N);
    remote_held h = {.block = 1};
    assert_int_equal(remote_held_ask(&h, ids, 50), 0);
    remote_held_set(&h, ids, 50, answer, 3);
    ids[50] = 7000, ids[51] = 7001, ids[52] = 7002;
    assert_int_equal(remote_held_ask(&h, ids, 60), 52); /* the answer's last token was not read */
    remote_held_set(&h, ids, 60, answer, 0);
    assert_int_equal(remote_held_ask(&h, ids, 60), 59); /* one is always computed */
    assert_int_equal(remote_held_ask(&h, ids, 20), 19);
    ids[10] = 1;
    assert_int_equal(remote_held_ask(&h, ids, 60), 10);
    remote_held_forget(&h);
    assert_int_equal(remote_held_ask(&h, ids, 60), 0);
    remote_held_free(&h);
}

static void test_blocks(void **state)
{
    int32_t ids[N];
    count_up(ids, 0, N);
    remote_held h = {.block = 16};
    remote_held_set(&h, ids, 64, NULL, 0);
    assert_int_equal(remote_held_ask(&h, ids, N), 64);
    assert_int_equal(remote_held_ask(&h, ids, 64), 48);
    ids[40] = 0;
    assert_int_equal(remote_held_ask(&h, ids, N), 32);
    remote_held_free(&h);
}

static void test_former_prompts_come_back(void **state)
{
    int32_t a[N], b[N];
    count_up(a, 0, N);
    count_up(b, 0, N);
    for (int i = 20; i < N; i++) b[i] += 5000;
    remote_held h = {.block = 1, .keeps_prompts = true};
    remote_held_ask(&h, a, N);
    remote_held_set(&h, a, N, NULL, 0);
    assert_int_equal(remote_held_ask(&h, b, N), 20); /* less than half of a is kept: a is saved first */
    remote_held_set(&h, b, N, NULL, 0);
    assert_int_equal(remote_held_ask(&h, a, N), 99);
    remote_held_set(&h, a, N, NULL, 0);
    assert_int_equal(remote_held_ask(&h, a, 90), 89); /* most of the slot stays: nothing is saved or loaded */
    remote_held_set(&h, a, 90, NULL, 0);
    assert_int_equal(remote_held_ask(&h, b, N), 99);
    remote_held_free(&h);
    remote_held plain = {.block = 1};
    remote_held_set(&plain, a, N, NULL, 0);
    remote_held_ask(&plain, b, N);
    remote_held_set(&plain, b, N, NULL, 0);
    assert_int_equal(remote_held_ask(&plain, a, N), 20);
    remote_held_free(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_slot),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_former_prompts_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
