/* Runs and shared runs of the pool: every piece of work is done once, whoever comes late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/pool.h"

enum { PIECES = 100, ROUNDS = 2000 };

typedef struct work {
    base_pool *pool;
    _Atomic int next;
    int done[PIECES]; /* how often each piece was done */
    int threads[64];  /* how often each thread was called */
} work;

static void claim(void *arg, int thread, int n_threads)
{
    work *w = arg;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < PIECES;) w->done[i]++;
}

static void count(void *arg, int thread, int n_threads)
{
    work *w = arg;
    w->threads[thread]++;
}

static void test_pool__a_run_calls_every_thread_once(void **state)
{
    for (int n = 1; n <= 4; n++) {
        work w = {0};
        assert_int_equal(base_pool_new(&w.pool, n, NULL), 0);
        for (int round = 1; round <= 50; round++) {
            base_pool_run(w.pool, count, &w);
            for (int i = 0; i < n; i++) assert_int_equal(w.threads[i], round);
        }
        base_pool_free(w.pool);
    }
}

static void test_pool__a_shared_run_does_every_piece_once(void **state)
{
    for (int n = 1; n <= 4; n++) {
        work w = {0};
        assert_int_equal(base_pool_new(&w.pool, n, NULL), 0);
        for (int round = 1; round <= ROUNDS; round++) {
            atomic_store(&w.next, 0);
            base_pool_share(w.pool, claim, &w);
            for (int i = 0; i < PIECES; i++) assert_int_equal(w.done[i], round);
        }
        base_pool_free(w.pool);
    }
}

static void test_pool__both_kinds_follow_one_another(void **state)
{
    work w = {0};
    assert_int_equal(base_pool_new(&w.pool, 3, NULL), 0);
    for (int round = 1; round <= 300; round++) {
        for (int k = 0; k < round % 4; k++) {
            atomic_store(&w.next, 0);
            base_pool_share(w.pool, claim, &w);
        }
        base_pool_run(w.pool, count, &w);
        for (int i = 0; i < 3; i++) assert_int_equal(w.threads[i], round);
    }
    for (int i = 1; i < PIECES; i++) assert_int_equal(w.done[i], w.done[0]);
    base_pool_free(w.pool);
}

static void test_pool__refuses_a_foolish_number_of_threads(void **state)
{
    base_pool *pool = NULL;
    assert_int_equal(base_pool_new(&pool, 0, NULL), BASE_E_LIMIT);
    assert_int_equal(base_pool_new(&pool, 65, NULL), BASE_E_LIMIT);
    assert_null(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool__a_run_calls_every_thread_once),
        cmocka_unit_test(test_pool__a_shared_run_does_every_piece_once),
        cmocka_unit_test(test_pool__both_kinds_follow_one_another),
        cmocka_unit_test(test_pool__refuses_a_foolish_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
