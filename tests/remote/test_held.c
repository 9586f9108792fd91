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
    assert_int_equal(remote_held_ask(&h, ids, 50, 0), 0);
    remote_held_set(&h, ids, 50, answer, 3);
    ids[50] = 7000, ids[51] = 7001, ids[52] = 7002;
    assert_int_equal(remote_held_ask(&h, ids, 60, 0), 52); /* the answer's last token was not read */
    remote_held_set(&h, ids, 60, answer, 0);
    assert_int_equal(remote_held_ask(&h, ids, 60, 0), 59); /* one is always computed */
    assert_int_equal(remote_held_ask(&h, ids, 20, 0), 19);
    ids[10] = 1;
    assert_int_equal(remote_held_ask(&h, ids, 60, 0), 10);
    remote_held_forget(&h);
    assert_int_equal(remote_held_ask(&h, ids, 60, 0), 0);
    remote_held_free(&h);
}

static void test_blocks(void **state)
{
    int32_t ids[N];
    count_up(ids, 0, N);
    remote_held h = {.block = 16};
    remote_held_set(&h, ids, 64, NULL, 0);
    assert_int_equal(remote_held_ask(&h, ids, N, 0), 64);
    assert_int_equal(remote_held_ask(&h, ids, 64, 0), 48);
    ids[40] = 0;
    assert_int_equal(remote_held_ask(&h, ids, N, 0), 32);
    remote_held_free(&h);
}

static void test_former_prompts_come_back(void **state)
{
    int32_t a[N], b[N];
    count_up(a, 0, N);
    count_up(b, 0, N);
    for (int i = 20; i < N; i++) b[i] += 5000;
    remote_held h = {.block = 1, .keeps_prompts = true};
    remote_held_ask(&h, a, N, 0);
    remote_held_set(&h, a, N, NULL, 0);
    assert_int_equal(remote_held_ask(&h, b, N, 0), 20); /* less than half of a is kept: a is saved first */
    remote_held_set(&h, b, N, NULL, 0);
    assert_int_equal(remote_held_ask(&h, a, N, 0), 99);
    remote_held_set(&h, a, N, NULL, 0);
    assert_int_equal(
        remote_held_ask(&h, a, 90, 0), 89); /* most of the slot stays: nothing is saved or loaded */
    remote_held_set(&h, a, 90, NULL, 0);
    assert_int_equal(remote_held_ask(&h, b, N, 0), 99);
    remote_held_free(&h);
    remote_held plain = {.block = 1};
    remote_held_set(&plain, a, N, NULL, 0);
    remote_held_ask(&plain, b, N, 0);
    remote_held_set(&plain, b, N, NULL, 0);
    assert_int_equal(remote_held_ask(&plain, a, N, 0), 20);
    remote_held_free(&plain);
}

/* What stands behind a cut is moved where it is long enough, and behind the first stretch that is not nothing is. */
static void test_stretches_move_behind_a_cut(void **state)
{
    int32_t ids[N], cut[N];
    count_up(ids, 0, N);
    remote_held h = {.block = 1, .keeps_prompts = true};
    remote_held_set(&h, ids, N, NULL, 0);
    count_up(cut, 0, 60);
    count_up(cut + 60, 80, 20);
    assert_int_equal(remote_held_find(&h, cut, 80, 0), 60);
    assert_int_equal(remote_held_find(&h, cut, 80, 20), 79); /* one is always computed */
    assert_int_equal(remote_held_find(&h, cut, 80, 21), 60);
    cut[80] = 7000;
    assert_int_equal(remote_held_find(&h, cut, 81, 20), 80);
    /* Another token in the place of the hole: nothing behind it continues the request. */
    cut[60] = 7001;
    count_up(cut + 61, 80, 20);
    assert_int_equal(remote_held_find(&h, cut, 81, 20), 60);
    /* Two holes, and a stretch between them that is too short. */
    count_up(cut + 60, 70, 5);
    count_up(cut + 65, 80, 20);
    assert_int_equal(remote_held_find(&h, cut, 85, 10), 60);
    assert_int_equal(remote_held_find(&h, cut, 85, 5), 84);
    assert_int_equal(remote_held_find(&h, NULL, 0, 5), 0);
    remote_held_free(&h);
}

static void test_blocks_of_former_requests_stay(void **state)
{
    int32_t ids[N], other[N];
    count_up(ids, 0, N);
    count_up(other, 0, N);
    for (int i = 40; i < N; i++) other[i] += 1000;
    remote_held h = {.block = 16, .keeps_blocks = true};
    remote_held_set(&h, ids, 90, NULL, 0);
    assert_int_equal(remote_held_ask(&h, other, 70, 0), 32);
    remote_held_set(&h, other, 70, NULL, 0);
    assert_int_equal(remote_held_ask(&h, ids, N, 0), 80);
    assert_int_equal(remote_held_find(&h, other, N, 0), 64);
    remote_held_free(&h);
}

/* Asking what would be found changes nothing, and says what asking then finds. */
static void test_finding_is_what_asking_finds(void **state)
{
    int32_t ids[N];
    remote_held h = {.block = 1, .keeps_prompts = true};
    uint32_t seed = 7;
    for (int round = 0; round < 500; round++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t n = 1 + (seed >> 8) % N, from = (seed >> 16) % N;
        count_up(ids, 0, n);
        for (uint32_t i = from; i < n; i++) ids[i] += (int32_t)(seed >> 24) % 3 * 1000;
        const uint32_t reuse = seed >> 30 ? 8 : 0, found = remote_held_find(&h, ids, n, reuse);
        assert_int_equal(found, remote_held_find(&h, ids, n, reuse));
        assert_int_equal(found, remote_held_ask(&h, ids, n, reuse));
        remote_held_set(&h, ids, n, NULL, 0);
    }
    remote_held_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_slot),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_former_prompts_come_back),
        cmocka_unit_test(test_stretches_move_behind_a_cut),
        cmocka_unit_test(test_blocks_of_former_requests_stay),
        cmocka_unit_test(test_finding_is_what_asking_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
