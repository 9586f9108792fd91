/* The prefix cache of the serving bench: what a prompt finds, what goes first, what a packed session takes along. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/sessions/block_cache.h"

enum { N = 10 * BLOCK_TOKENS };

static void make_prompt(int32_t *ids, int32_t from)
{
    for (int32_t i = 0; i < N; i++) ids[i] = i < 2 * BLOCK_TOKENS ? i : from + i;
}

static void test_blocks__a_prompt_finds_whole_blocks_of_its_own_beginning(void **state)
{
    (void)state;
    block_cache c = {.n = 0};
    int32_t a[N], b[N];
    make_prompt(a, 0);
    make_prompt(b, 1000);
    assert_int_equal(block_cache_find(&c, a, N), 0);
    block_cache_keep(&c, a, 5 * BLOCK_TOKENS + 3);
    assert_int_equal(block_cache_find(&c, a, N), 5 * BLOCK_TOKENS);
    assert_int_equal(
        block_cache_find(&c, a, 5 * BLOCK_TOKENS), 4 * BLOCK_TOKENS); /* the last token is computed */
    assert_int_equal(block_cache_find(&c, b, N), 2 * BLOCK_TOKENS);
    /* The same tokens behind another beginning are another block. */
    assert_int_equal(block_cache_find(&c, a + BLOCK_TOKENS, N - BLOCK_TOKENS), 0);
    block_cache_free(&c);
}

static void test_blocks__what_was_not_used_longest_goes_first_and_ends_before_beginnings(void **state)
{
    (void)state;
    block_cache c = {.most = 8};
    int32_t a[N], b[N];
    make_prompt(a, 0);
    make_prompt(b, 1000);
    block_cache_keep(&c, a, 6 * BLOCK_TOKENS);
    block_cache_keep(
        &c, b, 6 * BLOCK_TOKENS); /* two blocks are shared, two more take the place of a's last ones */
    assert_int_equal(block_cache_find(&c, b, N), 6 * BLOCK_TOKENS);
    assert_int_equal(block_cache_find(&c, a, N), 4 * BLOCK_TOKENS);
    assert_int_equal(c.n, 8);
    block_cache_free(&c);
}

static void test_blocks__a_packed_session_keeps_what_it_shares(void **state)
{
    (void)state;
    block_cache c = {.n = 0};
    int32_t a[N];
    make_prompt(a, 0);
    block_cache_keep(&c, a, N);
    block_cache_drop(&c, a, 2 * BLOCK_TOKENS, N);
    assert_int_equal(block_cache_find(&c, a, N), 2 * BLOCK_TOKENS);
    assert_int_equal(c.n, 2);
    block_cache_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks__a_prompt_finds_whole_blocks_of_its_own_beginning),
        cmocka_unit_test(test_blocks__what_was_not_used_longest_goes_first_and_ends_before_beginnings),
        cmocka_unit_test(test_blocks__a_packed_session_keeps_what_it_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
