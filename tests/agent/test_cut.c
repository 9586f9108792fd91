/* Which spans leave, against caches whose price is known; and which text a message asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sequence/cut.h"
#include "agent/words/rank_texts.h"

enum { N = 1000, PART = 100 };

/* A cache that moves nothing: what stands behind the first token that leaves is computed again. */
static uint32_t by_prefix(void *user, const bool *left_out, bool *at_most)
{
    const bool *active = user;
    uint32_t again = 0;
    bool cut = false;
    *at_most = false;
    for (uint32_t i = 0; left_out && i < N; i++) {
        cut = cut || left_out[i];
        again += cut && active[i] && !left_out[i];
    }
    return again;
}

/* One that moves everything. */
static uint32_t nothing(void *user, const bool *left_out, bool *at_most)
{
    *at_most = false;
    return 0;
}

typedef struct stage {
    bool active[N];
    agent_cut_unit units[N / PART];
    agent_cut_question q;
} stage;

/* Ten units of a hundred tokens, all of one value. */
static void set(stage *s, double value)
{
    memset(s->active, true, sizeof s->active);
    for (uint32_t i = 0; i < N / PART; i++) s->units[i] = (agent_cut_unit){i * PART, (i + 1) * PART, value};
    s->q = (agent_cut_question){.units = s->units,
        .n_units = N / PART,
        .active = s->active,
        .n_tokens = N,
        .turns = 2,
        .to_compute = by_prefix,
        .user = s->active};
}

static uint32_t first_out(const agent_cut *c)
{
    uint32_t i = 0;
    while (i < N && !c->out[i]) i++;
    return i;
}

static void test_the_prefix_stays_long(void **state)
{
    stage s;
    agent_cut c;
    set(&s, .1);
    s.q.need = 250;
    s.q.n_units = 9; /* the newest hundred stay */
    agent_cut_choose(&s.q, &c);
    assert_int_equal(c.freed, 300);
    assert_int_equal(first_out(&c), 600);
    assert_int_equal(c.again, 100);
    free(c.out);
}

static void test_what_is_worth_least_leaves_where_a_cut_is_free(void **state)
{
    stage s;
    agent_cut c;
    set(&s, .5);
    s.units[2].value = s.units[4].value = 0;
    s.q.need = 200;
    s.q.to_compute = nothing;
    agent_cut_choose(&s.q, &c);
    assert_int_equal(c.freed, 200);
    assert_int_equal(c.again, 0);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(c.out[i], i / PART == 2 || i / PART == 4);
    free(c.out);
}

/* Text that is asked for again has to be computed again: at some value an earlier cut is the cheaper one. */
static void test_value_against_price(void **state)
{
    stage s;
    agent_cut c;
    set(&s, 0);
    s.q.need = 100;
    s.units[9].value = 1;
    s.q.turns = 0;
    agent_cut_choose(&s.q, &c);
    assert_true(first_out(&c) == 800 || first_out(&c) == 900); /* 100 computed again, or 100 lost */
    free(c.out);
    s.units[9].value = .5;
    agent_cut_choose(&s.q, &c);
    assert_int_equal(first_out(&c), 900);
    free(c.out);
}

static void test_too_little_may_leave(void **state)
{
    stage s;
    agent_cut c;
    set(&s, 0);
    s.q.need = 500;
    s.q.n_units = 2;
    agent_cut_choose(&s.q, &c);
    assert_int_equal(c.freed, 200);
    free(c.out);
    s.q.n_units = 0;
    agent_cut_choose(&s.q, &c);
    assert_int_equal(c.freed, 0);
    free(c.out);
}

/* What is out already frees nothing; a unit that holds others leaves with what is left of it. */
static void test_units_in_units(void **state)
{
    stage s;
    agent_cut c;
    set(&s, 0);
    memset(s.active + 100, false, 50);
    s.units[0] = (agent_cut_unit){0, 200, .1};
    s.units[1] = (agent_cut_unit){100, 200, 0};
    s.q.n_units = 2;
    s.q.need = 120;
    s.q.to_compute = nothing;
    agent_cut_choose(&s.q, &c);
    assert_int_equal(c.freed, 150);
    assert_false(c.out[120]);
    free(c.out);
}

static void test_a_cut_frees_enough_for_what_it_costs(void **state)
{
    enum { BUDGET = 1000, CTX = 4000 };
    static const struct {
        uint32_t n_active, freed, again;
        bool is_offered;
    } rows[] = {{1010, 300, 300, true}, {1010, 300, 301, false}, {1010, 99, 0, false}, {1010, 100, 0, true},
        {1100, 300, 600, true}, {1100, 300, 601, false}, {1250, 50, 200, true}, {1250, 49, 0, false},
        {1250, 300, 1201, false}, {3600, 10, 3000, true}, {3600, 0, 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const agent_cut c = {.freed = rows[i].freed, .again = rows[i].again};
        assert_int_equal(agent_cut_is_offered(&c, rows[i].n_active, BUDGET, CTX), rows[i].is_offered);
    }
}

static void test_ranks(void **state)
{
    const char *const texts[] = {"int parse_header(char *line) { return split(line); }",
        "The weather is fine.", "int parse_body(char *line) { return join(line); }", ""};
    agent_rank r[4];
    agent_rank_texts("Where is parse_header used, and what does it split?", texts, 4, r);
    assert_true(r[0].score > r[2].score && r[0].score > 0);
    assert_true(r[0].cover > .9);
    assert_true(r[1].score <= 0 && r[3].score <= 0);
    agent_rank_texts("and the it", texts, 4, r);
    assert_true(r[0].score <= 0 && r[0].cover <= 0);
    agent_rank_texts("", texts, 4, r);
    agent_rank_texts("parse", texts, 0, r);
    /* More words than are looked at, and bytes that are none. */
    char many[4096];
    memset(many, ' ', sizeof many);
    for (size_t i = 0; i + 8 < sizeof many; i += 7) {
        memset(many + i, (int)('a' + i / 7 % 26), 4 + i % 3);
        many[i + 5] = '\xff';
    }
    many[sizeof many - 1] = '\0';
    agent_rank_texts(many, texts, 4, r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_prefix_stays_long),
        cmocka_unit_test(test_what_is_worth_least_leaves_where_a_cut_is_free),
        cmocka_unit_test(test_value_against_price),
        cmocka_unit_test(test_too_little_may_leave),
        cmocka_unit_test(test_units_in_units),
        cmocka_unit_test(test_a_cut_frees_enough_for_what_it_costs),
        cmocka_unit_test(test_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
