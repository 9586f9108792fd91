/* A residual's gradient, its training on places whose answer is known, and its file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "learn/history.h"
#include "learn/train.h"

enum { DIM = 16, ROWS = 40, ASKING = 5 };

static uint64_t random_state;

/* Uniform in [-1, 1). */
static float uniform(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(random_state >> 11) / (double)(1ull << 52) - 1);
}

static void fill(float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) v[i] = uniform();
}

static double loss_at(const kv_residual *r, const learn_rows *rows, float *grad)
{
    const learn_loss how = {.05, .01};
    double loss = 0;
    float *own = base_xcalloc(r->n, sizeof *own);
    base_err err = {0};
    assert_int_equal(learn_gradient(r, rows, &how, &loss, grad ? grad : own, &err), 0);
    free(own);
    return loss;
}

/* The paper says how many numbers it trains for keys of 128. */
static void test_train__has_the_papers_size(void **state)
{
    assert_int_equal(kv_residual_layout_of(128).n, 214274);
}

/* Central differences along random directions of each matrix, and of single numbers. */
static void test_train__gradient_is_that_of_the_loss(void **state)
{
    kv_residual *r = kv_residual_new(DIM, "abc");
    const kv_residual_layout l = kv_residual_layout_of(DIM);
    const size_t ends[] = {l.wq, l.bq, l.wk, l.bk, l.wv, l.bv, l.w1, l.b1, l.w2, l.b2, l.alpha, l.n};
    float keys[ROWS * DIM], rule[ROWS], memory[DIM], asking[ASKING * DIM], weight[ROWS];
    uint8_t quoted[ROWS] = {[3] = 1, [17] = 1, [39] = 1};
    float *grad = base_xcalloc(r->n, sizeof *grad), *at = base_xmalloc(r->n * sizeof *at),
          *to = base_xmalloc(r->n * sizeof *to);
    random_state = 7;
    fill(r->values, r->n);
    for (size_t i = 0; i < r->n; i++) r->values[i] *= .2f;
    r->values[l.alpha] = .8f;
    fill(keys, ROWS * DIM);
    fill(rule, ROWS);
    fill(memory, DIM);
    fill(asking, ASKING * DIM);
    for (int i = 0; i < ROWS; i++) weight[i] = i % 3 ? 1 : 2;
    const learn_rows rows = {
        .in = {ROWS, ASKING, keys, rule, memory, asking}, .quoted = quoted, .weight = weight};
    loss_at(r, &rows, grad);
    memcpy(at, r->values, r->n * sizeof *at);
    for (size_t m = 0; m + 1 < sizeof ends / sizeof *ends; m++) {
        const double h = 2e-3 / sqrt((double)(ends[m + 1] - ends[m]));
        double expected = 0, loss[2];
        fill(to, r->n);
        for (size_t i = ends[m]; i < ends[m + 1]; i++) expected += (double)grad[i] * to[i];
        for (int side = 0; side < 2; side++) {
            for (size_t i = ends[m]; i < ends[m + 1]; i++)
                r->values[i] = at[i] + (float)((side ? h : -h) * to[i]);
            loss[side] = loss_at(r, &rows, NULL);
        }
        memcpy(r->values, at, r->n * sizeof *at);
        const double found = (loss[1] - loss[0]) / (2 * h);
        if (fabs(found - expected) > 1e-3 + .01 * fabs(expected))
            fail_msg("matrix %zu: the slope is %g, its gradient says %g", m, found, expected);
    }
    kv_residual_unref(r);
    free(grad);
    free(at);
    free(to);
}

/* Sessions in which a row is quoted where its key points with the message's; the rule is noise beside it. */
static void make_set(learn_set *set, uint32_t n_sessions, uint32_t n_rows)
{
    *set = (learn_set){.dim = DIM};
    random_state = 11;
    for (uint32_t s = 0; s < n_sessions; s++) {
        base_grow(&set->sessions, &set->cap_sessions, set->n_sessions + 1, sizeof *set->sessions);
        base_grow(&set->examples, &set->cap_examples, set->n_examples + 1, sizeof *set->examples);
        learn_session *one = &set->sessions[set->n_sessions++];
        learn_example *e = &set->examples[set->n_examples++];
        *one = (learn_session){.n = n_rows, .group = s, .keys = base_xcalloc(n_rows * DIM, sizeof(float))};
        *e = (learn_example){.session = s,
            .n = n_rows,
            .n_asking = ASKING,
            .tokens = base_xcalloc(n_rows, sizeof(uint32_t)),
            .rule = base_xcalloc(n_rows, sizeof(float)),
            .quoted = base_xcalloc(n_rows, 1),
            .next = base_xcalloc(n_rows, 1),
            .memory = base_xcalloc(DIM, sizeof(float)),
            .asking = base_xcalloc(ASKING * DIM, sizeof(float))};
        fill(one->keys, n_rows * DIM);
        fill(e->rule, n_rows);
        fill(e->memory, DIM);
        fill(e->asking, ASKING * DIM);
        for (uint32_t i = 0; i < n_rows; i++) {
            e->tokens[i] = i;
            e->quoted[i] = e->next[i] = one->keys[i * DIM] > .5f && one->keys[i * DIM + 1] * e->memory[1] > 0;
        }
    }
}

static double mean_recall(const learn_set *set, const kv_residual *r, const bool *is_used)
{
    double recall[64], sum = 0;
    uint32_t n = 0;
    base_err err = {0};
    assert_int_equal(learn_recall(set, r ? LEARN_CORRECTED : LEARN_RULE, r, .2, recall, &err), 0);
    for (size_t i = 0; i < set->n_sessions; i++)
        if (!is_used[i] && recall[i] == recall[i]) {
            sum += recall[i];
            n++;
        }
    return sum / n;
}

static void test_train__beats_the_rule_where_the_answer_is_known(void **state)
{
    learn_set set;
    bool is_used[64] = {false};
    learn_options o = LEARN_DEFAULTS;
    kv_residual *r = NULL;
    base_err err = {0};
    make_set(&set, 64, 200);
    for (int i = 0; i < 48; i++) is_used[i] = true;
    o.epochs = 8;
    o.rows = 32; /* of 200: all of them learn no better, and take three times as long */
    assert_int_equal(learn_train(&set, is_used, "abc", &o, &r, &err), 0);
    const double rule = mean_recall(&set, NULL, is_used), learned = mean_recall(&set, r, is_used);
    print_message("held-out recall at 20%%: %.3f by the rule, %.3f corrected\n", rule, learned);
    assert_true(learned > rule + .3);
    assert_int_equal(r->n_sessions, 48);
    kv_residual_unref(r);
    learn_set_free(&set);
}

/* One thread and three, twice: the same bytes; another seed: others. */
static void test_train__same_seed_same_bytes(void **state)
{
    learn_set set;
    bool is_used[8] = {true, true, true, true, true, true, true, true};
    base_buf files[4] = {0};
    base_pool *pool = NULL;
    make_set(&set, 8, 120);
    assert_int_equal(base_pool_new(&pool, 3, NULL), 0);
    for (int i = 0; i < 4; i++) {
        learn_options o = LEARN_DEFAULTS;
        kv_residual *r = NULL;
        o.accumulate = 4;
        o.rows = 90; /* more others than quoted rows are ranked against */
        o.pool = i & 1 ? pool : NULL;
        o.seed = i == 3 ? 43 : 42;
        assert_int_equal(learn_train(&set, is_used, "abc", &o, &r, NULL), 0);
        kv_residual_put(r, &files[i]);
        kv_residual_unref(r);
    }
    for (int i = 1; i < 3; i++) {
        assert_int_equal(files[i].len, files[0].len);
        assert_memory_equal(files[i].data, files[0].data, files[0].len);
    }
    assert_memory_not_equal(files[3].data, files[0].data, files[0].len);
    for (int i = 0; i < 4; i++) base_buf_free(&files[i]);
    base_pool_free(pool);
    learn_set_free(&set);
}

static void test_train__an_untrained_one_is_the_rule(void **state)
{
    float keys[ROWS * DIM], rule[ROWS], memory[DIM], asking[ASKING * DIM], score[ROWS];
    kv_residual *r = kv_residual_new(DIM, "abc");
    const kv_residual_layout l = kv_residual_layout_of(DIM);
    random_state = 3;
    fill(r->values, l.w2);
    fill(keys, ROWS * DIM);
    fill(rule, ROWS);
    fill(memory, DIM);
    fill(asking, ASKING * DIM);
    const kv_residual_input in = {ROWS, ASKING, keys, rule, memory, asking};
    assert_int_equal(kv_residual_score(r, &in, score, NULL), 0);
    assert_memory_equal(score, rule, sizeof rule);
    kv_residual_unref(r);
}

static void test_train__cancel_gives_nothing(void **state)
{
    learn_set set;
    bool is_used[8] = {true, true, true, true, true, true, true, true};
    atomic_bool cancel = true;
    learn_options o = LEARN_DEFAULTS;
    kv_residual *r = NULL;
    base_err err = {0};
    make_set(&set, 8, 60);
    o.cancel = &cancel;
    assert_int_equal(learn_train(&set, is_used, "abc", &o, &r, &err), BASE_E_CANCELLED);
    assert_null(r);
    learn_set_free(&set);
}

/* Each byte of a file changed, and each length of it: a sentence, and never a network of other numbers. */
static void test_train__a_damaged_file_is_refused(void **state)
{
    kv_residual *r = kv_residual_new(DIM, "abc"), *read = NULL;
    base_buf file = {0};
    base_err err = {0};
    random_state = 5;
    fill(r->values, r->n);
    kv_residual_put(r, &file);
    assert_int_equal(kv_residual_parse(file.data, file.len, &read, &err), 0);
    assert_memory_equal(read->values, r->values, r->n * sizeof *r->values);
    assert_string_equal(read->hash, "abc");
    kv_residual_unref(read);
    for (size_t i = 0; i < file.len; i += i < 120 ? 1 : 997) {
        file.data[i] ^= 1;
        assert_int_equal(kv_residual_parse(file.data, file.len, &read, &err), BASE_E_FORMAT);
        assert_null(read);
        file.data[i] ^= 1;
        assert_int_equal(kv_residual_parse(file.data, i, &read, &err), BASE_E_FORMAT);
    }
    base_buf_free(&file);
    r->values[9] = NAN;
    kv_residual_put(r, &file);
    assert_int_equal(kv_residual_parse(file.data, file.len, &read, &err), BASE_E_FORMAT);
    base_buf_free(&file);
    kv_residual_unref(r);
}

static void add_text(learn_history *h, kv_origin origin, const char *text)
{
    for (const char *at = text; *at; at++) learn_history_add(h, origin, 1, at == text, *at, at, 1);
    learn_history_end_part(h);
}

static void test_train__labels_are_what_the_next_calls_quote(void **state)
{
    learn_history h = {0};
    bool quoted[64];
    add_text(&h, KV_ORIGIN_SYSTEM, "HAT123 ");
    add_text(&h, KV_ORIGIN_USER, "my HAT123");
    add_text(&h, KV_ORIGIN_TOOL, "no");
    learn_history_add_call(&h, "{\"id\":\"HAT123\",\"n\":17}");
    assert_int_equal(h.n_places, 2);
    assert_false(learn_history_quoted(&h, &h.places[0], 5, quoted));
    assert_true(learn_history_quoted(&h, &h.places[1], 5, quoted));
    for (uint32_t t = 0; t < h.places[1].from; t++) assert_int_equal(quoted[t], t >= 10);
    learn_history_cut(&h, 9);
    assert_int_equal(h.n_places, 0);
    assert_int_equal(h.parts[h.n_parts - 1].to, 9);
    learn_history_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train__has_the_papers_size),
        cmocka_unit_test(test_train__gradient_is_that_of_the_loss),
        cmocka_unit_test(test_train__beats_the_rule_where_the_answer_is_known),
        cmocka_unit_test(test_train__same_seed_same_bytes),
        cmocka_unit_test(test_train__an_untrained_one_is_the_rule),
        cmocka_unit_test(test_train__cancel_gives_nothing),
        cmocka_unit_test(test_train__a_damaged_file_is_refused),
        cmocka_unit_test(test_train__labels_are_what_the_next_calls_quote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
