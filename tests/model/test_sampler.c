/* From logits to an id: which ids may come, how often, and that a seed means one sequence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "model/text/sampler.h"

enum { N = 8, DRAWS = 4000 };

/* p = .4 .3 .15 .1 .05 and three of next to nothing */
static void fill(float logits[N])
{
    static const float p[N] = {0.15f, 0.4f, 0.05f, 0.3f, 0.1f, 1e-9f, 1e-9f, 1e-9f};
    for (int i = 0; i < N; i++) logits[i] = logf(p[i]);
}

/* The set of ids that DRAWS draws gave, one bit each, and how often each came. */
static unsigned draw_set(
    const model_sampling *options, const float *logits, const uint64_t *allowed, int counts[N])
{
    model_sampler *s = model_sampler_new(options, N);
    unsigned set = 0;
    memset(counts, 0, N * sizeof *counts);
    for (int i = 0; i < DRAWS; i++) {
        int32_t id = model_sampler_pick(s, logits, allowed, NULL, 0, NULL);
        assert_in_range(id, 0, N - 1);
        set |= 1u << id;
        counts[id]++;
    }
    model_sampler_free(s);
    return set;
}

static model_sampling at_one(void)
{
    model_sampling o = MODEL_SAMPLING_DEFAULTS;
    o.temperature = 1;
    return o;
}

static void test_sampler__is_greedy_at_zero(void **state)
{
    float logits[N];
    fill(logits);
    model_sampler *s = model_sampler_new(&MODEL_SAMPLING_DEFAULTS, N);
    float log_p = 1;
    assert_int_equal(model_sampler_pick(s, logits, NULL, NULL, 0, &log_p), 1);
    assert_true(fabsf(log_p - logf(0.4f)) < 1e-5f);
    logits[3] = logits[1]; /* a tie goes to the lower id */
    assert_int_equal(model_sampler_pick(s, logits, NULL, NULL, 0, NULL), 1);
    uint64_t allowed = 1u << 3 | 1u << 4;
    assert_int_equal(model_sampler_pick(s, logits, &allowed, NULL, 0, NULL), 3);
    allowed = 0; /* nothing allowed: the mask does not count */
    assert_int_equal(model_sampler_pick(s, logits, &allowed, NULL, 0, NULL), 1);
    model_sampler_free(s);
}

/*
 * Against the plain search, over vocabularies that are no multiple of the 64 ids that are looked at together.
 */
static void test_sampler__is_greedy_over_large_vocabularies(void **state)
{
    enum { MOST = 1000 };
    uint64_t random = 7;
    for (int round = 0; round < 400; round++) {
        float logits[MOST];
        uint64_t allowed[(MOST + 63) / 64] = {0};
        int32_t recent[8], expected = -1;
        float best = 0;
        model_sampling o = MODEL_SAMPLING_DEFAULTS;
        o.repeat_penalty = round % 3 == 0 ? 1 : round % 3 == 1 ? 1.3f : .7f;
        o.repeat_last = 8;
        const bool masked = round % 2;
        const uint32_t n = MOST - (uint32_t)(round % 70);
        for (uint32_t i = 0; i < n; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            logits[i] = (float)((int)(random >> 40 & 255) - (round % 5 ? 128 : 300)) / 8;
            if ((random >> 50 & 31) == 0) logits[i] = NAN;
            if ((random >> 50 & 31) == 1) logits[i] = -INFINITY;
            if ((random >> 56 & 127) == 3) allowed[i / 64] |= (uint64_t)1 << (i % 64);
            if (i < 8) recent[i] = (int32_t)((random >> 33) % n);
        }
        for (uint32_t i = 0; i < n; i++) {
            float logit = logits[i];
            bool is_recent = false;
            for (int k = 0; k < 8; k++) is_recent = is_recent || recent[k] == (int32_t)i;
            if (is_recent && o.repeat_penalty != 1)
                logit = logit > 0 ? logit / o.repeat_penalty : logit * o.repeat_penalty;
            if (isnan(logit) || (masked && !(allowed[i / 64] >> (i % 64) & 1))) continue;
            if (expected < 0 || logit > best) {
                best = logit;
                expected = (int32_t)i;
            }
        }
        if (expected < 0) continue;
        model_sampler *s = model_sampler_new(&o, n);
        assert_int_equal(model_sampler_pick(s, logits, masked ? allowed : NULL, recent, 8, NULL), expected);
        model_sampler_free(s);
    }
}

static void test_sampler__never_picks_nan(void **state)
{
    float logits[N];
    int counts[N];
    fill(logits);
    logits[1] = NAN;
    model_sampler *s = model_sampler_new(&MODEL_SAMPLING_DEFAULTS, N);
    assert_int_equal(model_sampler_pick(s, logits, NULL, NULL, 0, NULL), 3);
    uint64_t allowed = 1u << 1; /* only the one that is no number: the mask does not count */
    assert_int_equal(model_sampler_pick(s, logits, &allowed, NULL, 0, NULL), 3);
    model_sampler_free(s);
    model_sampling o = at_one();
    assert_int_equal(draw_set(&o, logits, NULL, counts) & 1u << 1, 0);
    for (int i = 0; i < N; i++) logits[i] = NAN; /* a broken model still gives an id */
    s = model_sampler_new(&o, N);
    assert_int_equal(model_sampler_pick(s, logits, NULL, NULL, 0, NULL), 0);
    model_sampler_free(s);
}

static void test_sampler__takes_infinities(void **state)
{
    float logits[N];
    int counts[N];
    model_sampling o = at_one();
    for (int i = 0; i < N; i++) logits[i] = -INFINITY;
    logits[5] = 0;
    assert_int_equal(draw_set(&o, logits, NULL, counts), 1u << 5);
    logits[6] = INFINITY;
    assert_int_equal(draw_set(&o, logits, NULL, counts), 1u << 6);
}

static void test_sampler__draws_by_probability(void **state)
{
    float logits[N];
    int counts[N];
    fill(logits);
    model_sampling o = at_one();
    draw_set(&o, logits, NULL, counts);
    /* five standard deviations of a binomial around its mean */
    static const double p[5] = {0.15, 0.4, 0.05, 0.3, 0.1};
    for (int i = 0; i < 5; i++) {
        double sd = sqrt(DRAWS * p[i] * (1 - p[i]));
        assert_true(fabs(counts[i] - DRAWS * p[i]) <= 5 * sd);
    }
    o.temperature = 0.25f; /* .4^4 : .3^4 : .15^4 = 1 : .32 : .02 */
    draw_set(&o, logits, NULL, counts);
    assert_true(counts[1] > 2 * counts[3] && counts[3] > 5 * counts[0]);
}

static void test_sampler__top_k_leaves_k(void **state)
{
    float logits[N];
    int counts[N];
    fill(logits);
    model_sampling o = at_one();
    o.top_k = 1;
    assert_int_equal(draw_set(&o, logits, NULL, counts), 1u << 1);
    o.top_k = 3;
    assert_int_equal(draw_set(&o, logits, NULL, counts), 1u << 1 | 1u << 3 | 1u << 0);
    for (int i = 0; i < N; i++) logits[i] = 2; /* ties: the lower ids stay */
    assert_int_equal(draw_set(&o, logits, NULL, counts), 7u);
}

static void test_sampler__top_p_leaves_the_smallest_set_that_reaches_p(void **state)
{
    float logits[N];
    int counts[N];
    fill(logits);
    model_sampling o = at_one();
    o.top_p = 0.69f; /* .4 + .3 reaches it */
    assert_int_equal(draw_set(&o, logits, NULL, counts), 1u << 1 | 1u << 3);
    o.top_p = 0.71f;
    assert_int_equal(draw_set(&o, logits, NULL, counts), 1u << 1 | 1u << 3 | 1u << 0);
    o.top_p = 0; /* the best always stays */
    assert_int_equal(draw_set(&o, logits, NULL, counts), 1u << 1);
}

static void test_sampler__min_p_leaves_what_is_near_the_best(void **state)
{
    float logits[N];
    int counts[N];
    fill(logits);
    model_sampling o = at_one();
    o.min_p = 0.2f; /* of .4: from .08 on */
    assert_int_equal(draw_set(&o, logits, NULL, counts), 1u << 1 | 1u << 3 | 1u << 0 | 1u << 4);
}

static void test_sampler__masks_before_it_truncates(void **state)
{
    float logits[N];
    int counts[N];
    fill(logits);
    model_sampling o = at_one();
    uint64_t allowed = 1u << 2 | 1u << 4 | 1u << 7;
    o.top_k = 2;
    assert_int_equal(draw_set(&o, logits, &allowed, counts), 1u << 2 | 1u << 4);
}

/* A truncation over more candidates than are sorted at once gives what sorting all would give. */
static void test_sampler__truncates_large_vocabularies(void **state)
{
    enum { LARGE = 20000 };
    float *logits = malloc(LARGE * sizeof *logits);
    model_sampling o = at_one();
    for (int i = 0; i < LARGE; i++)
        logits[(i * 7919) % LARGE] = -1e-6f * (float)i; /* nearly flat, shuffled */
    o.top_p = 0.5f;
    model_sampler *s = model_sampler_new(&o, LARGE);
    for (int i = 0; i < 40; i++) {
        int32_t id = model_sampler_pick(s, logits, NULL, NULL, 0, NULL);
        assert_true(logits[id] > -1e-6f * (LARGE * 0.51f));
    }
    model_sampler_free(s);
    free(logits);
}

static void test_sampler__penalises_what_came_lately(void **state)
{
    float logits[N] = {2, 1.9f, 0, 0, 0, 0, 0, -1};
    int32_t recent[] = {0, 4, -1, 999}; /* ids outside are ignored */
    model_sampling o = MODEL_SAMPLING_DEFAULTS;
    o.repeat_penalty = 1.5f;
    model_sampler *s = model_sampler_new(&o, N);
    assert_int_equal(model_sampler_pick(s, logits, NULL, recent, 4, NULL), 1);
    assert_int_equal(model_sampler_pick(s, logits, NULL, NULL, 0, NULL), 0); /* and is forgotten */
    model_sampler_free(s);
    o.repeat_last = 2; /* looks back two tokens: 0 is beyond */
    s = model_sampler_new(&o, N);
    assert_int_equal(model_sampler_pick(s, logits, NULL, recent, 4, NULL), 0);
    model_sampler_free(s);
    float negative[N] = {-1, -1.2f, -9, -9, -9, -9, -9, -9}; /* a negative logit goes down, not up */
    o.repeat_last = 64;
    s = model_sampler_new(&o, N);
    assert_int_equal(model_sampler_pick(s, negative, NULL, recent, 4, NULL), 1);
    model_sampler_free(s);
}

static void test_sampler__a_seed_is_one_sequence(void **state)
{
    float logits[N];
    fill(logits);
    model_sampling o = at_one();
    o.seed = 42;
    model_sampler *a = model_sampler_new(&o, N), *b = model_sampler_new(&o, N);
    int32_t first[64];
    int differ = 0;
    for (int i = 0; i < 64; i++) {
        first[i] = model_sampler_pick(a, logits, NULL, NULL, 0, NULL);
        assert_int_equal(first[i], model_sampler_pick(b, logits, NULL, NULL, 0, NULL));
    }
    model_sampler_reset(a, 42);
    for (int i = 0; i < 64; i++)
        assert_int_equal(first[i], model_sampler_pick(a, logits, NULL, NULL, 0, NULL));
    model_sampler_reset(a, 43);
    for (int i = 0; i < 64; i++) differ += first[i] != model_sampler_pick(a, logits, NULL, NULL, 0, NULL);
    assert_true(differ > 10);
    model_sampler_free(a);
    model_sampler_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sampler__is_greedy_at_zero),
        cmocka_unit_test(test_sampler__is_greedy_over_large_vocabularies),
        cmocka_unit_test(test_sampler__never_picks_nan),
        cmocka_unit_test(test_sampler__takes_infinities),
        cmocka_unit_test(test_sampler__draws_by_probability),
        cmocka_unit_test(test_sampler__top_k_leaves_k),
        cmocka_unit_test(test_sampler__top_p_leaves_the_smallest_set_that_reaches_p),
        cmocka_unit_test(test_sampler__min_p_leaves_what_is_near_the_best),
        cmocka_unit_test(test_sampler__masks_before_it_truncates),
        cmocka_unit_test(test_sampler__truncates_large_vocabularies),
        cmocka_unit_test(test_sampler__penalises_what_came_lately),
        cmocka_unit_test(test_sampler__a_seed_is_one_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
