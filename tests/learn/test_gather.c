/* Places of sessions as a residual is shown them, and what a session does with one that was trained on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "kit.h"
#include "learn/gather.h"

enum { TOLD = 1400, ASKED = 12 };

static void add(
    learn_history *h, kv_origin origin, uint32_t turn, uint32_t n, uint64_t seed, const char *quoted)
{
    int32_t *ids = base_xmalloc(n * sizeof *ids);
    kit_make_ids(ids, n, FAKE_VOCAB, seed);
    for (uint32_t i = 0; i < n; i++) {
        char text[16];
        snprintf(text, sizeof text, "w%d ", ids[i] + 1000);
        if (quoted && i == n / 2) snprintf(text, sizeof text, "%s", quoted);
        learn_history_add(h, origin, turn, i == 0, ids[i], text, strlen(text));
    }
    learn_history_end_part(h);
    free(ids);
}

/* A result is read, a question asked, and the call quotes the result. */
static void make_history(learn_history *h, uint64_t seed)
{
    *h = (learn_history){0};
    add(h, KV_ORIGIN_SYSTEM, 0, 40, 1, NULL);
    add(h, KV_ORIGIN_USER, 1, ASKED, 2, NULL);
    add(h, KV_ORIGIN_TOOL, 1, TOLD, seed, "HAT123 ");
    add(h, KV_ORIGIN_USER, 2, ASKED, seed + 1, NULL);
    learn_history_add_call(h, "{\"id\":\"HAT123\"}");
}

static void test_gather__a_place_is_the_same_behind_another_session(void **state)
{
    fake_model m = {.fail_after = -1};
    const kv_compute compute = fake_compute(&m, KIT_CTX);
    learn_set sets[2] = {{0}, {0}};
    learn_history h;
    bool added;
    base_err err = {0};
    for (int both = 0; both < 2; both++) {
        learn_gatherer g = {.compute = &compute};
        for (uint64_t seed = both ? 30 : 50; seed <= 50; seed += 20) {
            make_history(&h, seed);
            assert_int_equal(learn_gather(&g, &sets[both], 0, &h, &added, &err), 0);
            assert_true(added);
            learn_history_free(&h);
        }
        learn_gatherer_close(&g);
    }
    assert_int_equal(sets[0].n_examples, 1);
    assert_int_equal(sets[1].n_examples, 2);
    const learn_example *a = &sets[0].examples[0], *b = &sets[1].examples[1];
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n, TOLD + ASKED); /* all but the fixed prompt and the message that asks */
    assert_memory_equal(a->tokens, b->tokens, a->n * sizeof *a->tokens);
    assert_memory_equal(a->rule, b->rule, a->n * sizeof *a->rule);
    assert_memory_equal(a->quoted, b->quoted, a->n);
    for (uint32_t i = 0; i < a->n; i++) assert_int_equal(a->quoted[i], a->tokens[i] == 40 + ASKED + TOLD / 2);
    double sum = 0;
    for (uint32_t i = 0; i < a->n; i++) sum += a->rule[i];
    assert_true(
        sum > FAKE_LAYERS * FAKE_HEADS * .999 && sum < FAKE_LAYERS * FAKE_HEADS * 1.001); /* equation 3 */
    learn_set_free(&sets[0]);
    learn_set_free(&sets[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather__a_place_is_the_same_behind_another_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
