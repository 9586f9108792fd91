/*
 * The draft finder: what it finds, that it follows the sequence both ways, and how what it learns changes the
 * length. A generated sequence is compared with a search that looks at every place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/text/lookup.h"

/*
 * Times as of a machine whose batches cost nothing more: a draft is as long as the place it is read from
 * allows.
 */
static model_lookup *new_lookup(uint64_t ns_per_token_more)
{
    model_lookup *l = model_lookup_new();
    for (uint32_t n = 1; n <= MODEL_LOOKUP_MAX + 1; n++)
        model_lookup_cost(l, n, 1000000 + (n - 1) * ns_per_token_more);
    return l;
}

static void test_lookup__what_followed_the_last_tokens_is_the_draft(void **state)
{
    static const int32_t ids[] = {5, 6, 7, 8, 9, 10, 11, 40, 41, 5, 6};
    int32_t draft[MODEL_LOOKUP_MAX];
    model_lookup *l = new_lookup(0);
    model_lookup_sync(l, ids, sizeof ids / sizeof *ids);
    assert_int_equal(model_lookup_draft(l, 7, MODEL_LOOKUP_MAX, draft), MODEL_LOOKUP_MAX);
    static const int32_t want[] = {8, 9, 10, 11, 40, 41, 5, 6, 7, 8};
    assert_memory_equal(draft, want, sizeof want);
    assert_int_equal(model_lookup_draft(l, 7, 3, draft), 3);
    assert_int_equal(model_lookup_draft(l, 7, 0, draft), 0);
    assert_int_equal(model_lookup_draft(l, 99, MODEL_LOOKUP_MAX, draft), 0);
    assert_int_equal(model_lookup_draft(l, 41, MODEL_LOOKUP_MAX, draft), 0); /* 6 41 never stood before */
    model_lookup_free(l);
}

static void test_lookup__the_longest_common_ending_wins_then_the_newest(void **state)
{
    static const int32_t ids[] = {1, 2, 3, 50, 9, 2, 3, 60, 4, 2, 3, 70, 1, 2};
    int32_t draft[MODEL_LOOKUP_MAX];
    model_lookup *l = new_lookup(0);
    model_lookup_sync(l, ids, sizeof ids / sizeof *ids);
    assert_true(model_lookup_draft(l, 3, 1, draft) == 1 && draft[0] == 50);
    model_lookup_free(l);
    l = new_lookup(0);
    model_lookup_sync(l, (const int32_t[]){1, 2, 3, 50, 9, 2, 3, 60, 4, 2, 3, 70, 8, 2}, 14);
    assert_true(model_lookup_draft(l, 3, 1, draft) == 1 && draft[0] == 70);
    model_lookup_free(l);
}

/* A list of equal lines: where the copy reads on, not where the newest equal line is. */
static void test_lookup__equal_places_go_on_where_the_draft_was_read(void **state)
{
    static const int32_t ids[] = {20, 21, 22, 1, 2, 3, 30, 1, 2, 3, 31, 1, 2, 3, 32, 99, 20, 21};
    int32_t draft[MODEL_LOOKUP_MAX];
    model_lookup *l = new_lookup(0);
    model_lookup_sync(l, ids, 18);
    assert_int_equal(model_lookup_draft(l, 22, 1, draft), 1); /* 1, read at place 3 */
    model_lookup_learn(l, 1);
    int32_t more[32];
    memcpy(more, ids, sizeof ids);
    memcpy(more + 18, (const int32_t[]){22, 77, 1, 2}, 4 * sizeof *more);
    model_lookup_sync(l, more, 22);
    assert_true(model_lookup_draft(l, 3, 1, draft) == 1 && draft[0] == 30);
    model_lookup_free(l);
}

static void test_lookup__text_that_repeats_itself_is_drafted_from_itself(void **state)
{
    static const int32_t ids[] = {1, 2, 3, 1, 2};
    int32_t draft[MODEL_LOOKUP_MAX];
    model_lookup *l = new_lookup(0);
    model_lookup_sync(l, ids, 5);
    assert_int_equal(model_lookup_draft(l, 3, 8, draft), 8);
    static const int32_t want[] = {1, 2, 3, 1, 2, 3, 1, 2};
    assert_memory_equal(draft, want, sizeof want);
    model_lookup_free(l);
}

static void test_lookup__costs_and_verdicts_decide_the_length(void **state)
{
    int32_t ids[64], draft[MODEL_LOOKUP_MAX];
    for (int32_t i = 0; i < 64; i++) ids[i] = i % 40;
    model_lookup *cheap = new_lookup(10000), *dear = new_lookup(1100000), *wrong = new_lookup(10000);
    model_lookup_sync(cheap, ids, 64);
    model_lookup_sync(dear, ids, 64);
    model_lookup_sync(wrong, ids, 64);
    assert_int_equal(model_lookup_draft(cheap, 24, MODEL_LOOKUP_MAX, draft), MODEL_LOOKUP_MAX);
    assert_int_equal(
        model_lookup_draft(dear, 24, MODEL_LOOKUP_MAX, draft), 0); /* a token more costs a token */
    model_lookup *slow = new_lookup(300000);
    model_lookup_sync(slow, ids, 64);
    uint32_t first = model_lookup_draft(slow, 24, MODEL_LOOKUP_MAX, draft), tries = 0;
    assert_true(first > 0);
    for (; model_lookup_draft(slow, 24, MODEL_LOOKUP_MAX, draft) && tries < 1000; tries++)
        model_lookup_learn(slow, 0);
    assert_true(tries > 0 && tries < 1000); /* it stops drafting what is never right */
    for (tries = 0; !model_lookup_draft(slow, 24, MODEL_LOOKUP_MAX, draft) && tries < 10000; tries++) {
    }
    assert_true(tries < 10000); /* and tries again some time */
    model_lookup_stats s = model_lookup_get_stats(slow);
    assert_int_equal(s.accepted, 0);
    assert_true(s.drafted >= first && s.batches > 0);
    model_lookup_free(cheap);
    model_lookup_free(dear);
    model_lookup_free(wrong);
    model_lookup_free(slow);
}

/* One timing that says a batch is slow is forgotten when a larger one was not. */
static void test_lookup__an_outlier_heals(void **state)
{
    int32_t ids[64], draft[MODEL_LOOKUP_MAX];
    for (int32_t i = 0; i < 64; i++) ids[i] = i % 40;
    model_lookup *l = model_lookup_new();
    model_lookup_sync(l, ids, 64);
    model_lookup_cost(l, 1, 1000000);
    model_lookup_cost(l, 8, 900000000);
    model_lookup_cost(l, 12, 1100000);
    assert_true(model_lookup_draft(l, 24, 7, draft) == 7);
    model_lookup_free(l);
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    return *x ^= *x << 17;
}

/* The longest match by looking at every place; 0: none of two tokens. */
static uint32_t longest_match(const int32_t *ids, uint32_t n, int32_t next)
{
    uint32_t longest = 0;
    for (uint32_t p = 1; p < n; p++) {
        if (ids[p] != next) continue;
        uint32_t m = 1;
        while (m <= p && m < 32 && ids[p - m] == ids[n - m]) m++;
        if (m >= 2 && m > longest) longest = m;
    }
    return longest;
}

/*
 * What stands before the draft's source agrees as far as at the best place, whatever was cut off and added
 * before.
 */
static void test_lookup__follows_any_sequence_of_cuts_and_additions(void **state)
{
    enum { MOST = 6000, STEPS = 3000 };
    static int32_t ids[MOST];
    uint64_t seed = 77;
    uint32_t n = 0;
    model_lookup *l = new_lookup(0);
    for (uint32_t step = 0; step < STEPS; step++) {
        uint64_t r = next_random(&seed);
        if (r % 5 == 0) n -= n ? (uint32_t)(r >> 8) % (n < 200 ? n : 200) : 0;
        uint32_t add = (uint32_t)(r >> 20) % 12;
        bool copies = n > 40 && r % 3 == 0;
        uint32_t from = copies ? (uint32_t)(r >> 30) % (n - 20) : 0;
        for (uint32_t i = 0; i < add && n < MOST; i++, n++)
            ids[n] = copies ? ids[from + i] : (int32_t)(next_random(&seed) % 12);
        int32_t next = (int32_t)(next_random(&seed) % 12), draft[MODEL_LOOKUP_MAX];
        model_lookup_sync(l, ids, n);
        uint32_t got = model_lookup_draft(l, next, 4, draft), want = longest_match(ids, n, next);
        assert_int_equal(got > 0, want > 0);
        if (!got) continue;
        /* Some place with a match of that length is followed by the draft. */
        bool found = false;
        for (uint32_t p = 1; p < n && !found; p++) {
            uint32_t m = 0;
            if (ids[p] == next)
                for (m = 1; m <= p && m < 32 && ids[p - m] == ids[n - m];) m++;
            if (m != want) continue;
            found = true;
            for (uint32_t i = 0; i < got && found; i++) {
                uint32_t at = p + 1 + i;
                found = draft[i] == (at < n ? ids[at] : at == n ? next : draft[at - n - 1]);
            }
        }
        assert_true(found);
    }
    model_lookup_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookup__what_followed_the_last_tokens_is_the_draft),
        cmocka_unit_test(test_lookup__the_longest_common_ending_wins_then_the_newest),
        cmocka_unit_test(test_lookup__equal_places_go_on_where_the_draft_was_read),
        cmocka_unit_test(test_lookup__text_that_repeats_itself_is_drafted_from_itself),
        cmocka_unit_test(test_lookup__costs_and_verdicts_decide_the_length),
        cmocka_unit_test(test_lookup__an_outlier_heals),
        cmocka_unit_test(test_lookup__follows_any_sequence_of_cuts_and_additions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
