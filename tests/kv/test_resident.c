/*
 * Copies of sections that lie elsewhere (kv/read/resident.h): every row that was asked for is the row of the table,
 * whatever was asked for, read ahead and forgotten before; what the step before asked for is there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"
#include "kv/read/resident.h"

enum { BLOCKS = 6, LONGEST = 22, MOST = 400, FIRST = BLOCKS + 2 };
static const model_rows_shape shape = {.n_layer = 2, .n_head_kv = 2, .head_dim = 16};

typedef struct made {
    kv_table table;
    kv_resident_section sections[MOST];
    uint32_t n;
} made;

static void make(made *m, uint64_t *seed)
{
    base_err err = {0};
    kv_table_init(&m->table, &shape);
    if (kv_table_make_writable(&m->table, 0, BLOCKS * MODEL_ROWS_BLOCK, &err)) fail_msg("%s", err.msg);
    for (uint32_t b = 0; b < BLOCKS; b++)
        for (size_t i = 0; i < model_rows_block_bytes(&shape) / sizeof(uint16_t); i++)
            m->table.rows[b][i] = (uint16_t)(b * 7919 + i);
    m->n = 0;
    for (uint32_t at = 0; at + LONGEST <= BLOCKS * MODEL_ROWS_BLOCK; m->n++) {
        const uint32_t n = 1 + test_below(seed, LONGEST);
        m->sections[m->n] = (kv_resident_section){.number = m->n, .from = at, .to = at + n};
        at += n;
        assert_true(m->n < MOST);
    }
}

/* The section's rows at `slot` are the table's. */
static void check(const made *m, const model_rows_view *view, uint32_t lane, uint32_t number, uint32_t slot)
{
    const kv_resident_section *s = &m->sections[number];
    const model_rows_view whole = {.shape = shape, .blocks = m->table.rows, .n_blocks = m->table.n};
    assert_true(slot >= FIRST * MODEL_ROWS_BLOCK &&
                (slot + (s->to - s->from) - 1) / MODEL_ROWS_BLOCK < view->n_blocks);
    assert_int_equal(slot / MODEL_ROWS_BLOCK, (slot + (s->to - s->from) - 1) / MODEL_ROWS_BLOCK);
    for (uint32_t t = s->from; t < s->to; t++) {
        const size_t n_bytes = shape.head_dim * sizeof(uint16_t);
        assert_memory_equal(
            model_rows_key(view, lane, slot + t - s->from), model_rows_key(&whole, lane, t), n_bytes);
        assert_memory_equal(
            model_rows_value(view, lane, slot + t - s->from), model_rows_value(&whole, lane, t), n_bytes);
    }
}

static void test_resident__copies_are_the_rows(void **state)
{
    uint64_t seed = test_seed("resident", 11);
    for (int round = 0; round < 10; round++) {
        made m;
        make(&m, &seed);
        kv_resident *r = kv_resident_new(&shape, FIRST, LONGEST, MOST);
        assert_non_null(r);
        for (int step = 0; step < 60; step++) {
            uint32_t asked[40], slots[40];
            const uint32_t lane = test_below(&seed, model_rows_lanes(&shape)), n = 1 + test_below(&seed, 40),
                           room = n + test_below(&seed, 40);
            if (!test_below(&seed, 20)) kv_resident_forget(r, test_below(&seed, m.n));
            if (!test_below(&seed, 5)) kv_resident_rest(r);
            kv_resident_begin(r, lane, room);
            for (uint32_t i = 0; i < n; i++) {
                asked[i] = test_below(&seed, m.n); /* some twice */
                assert_true(kv_resident_ask(r, &m.table, &m.sections[asked[i]], &slots[i]));
            }
            for (uint32_t i = test_below(&seed, 30); i > 0; i--)
                kv_resident_ahead(r, &m.table, &m.sections[test_below(&seed, m.n)]);
            kv_resident_wait(r);
            model_rows_view view = {.shape = shape, .blocks = m.table.rows, .n_blocks = m.table.n};
            assert_true(kv_resident_show(r, &view));
            for (uint32_t i = 0; i < n; i++) check(&m, &view, lane, asked[i], slots[i]);
        }
        kv_resident_free(r);
        kv_table_fini(&m.table);
    }
}

static void test_resident__keeps_what_the_step_before_asked_for(void **state)
{
    uint64_t seed = 5;
    made m;
    uint32_t slot;
    make(&m, &seed);
    kv_resident *r = kv_resident_new(&shape, FIRST, LONGEST, MOST);
    assert_non_null(r);
    for (uint32_t step = 0; step < 10; step++) { /* ten sections each, nine of them the ones before */
        kv_resident_begin(r, 1, 10);
        for (uint32_t i = 0; i < 10; i++)
            assert_true(kv_resident_ask(r, &m.table, &m.sections[step + i], &slot));
        kv_resident_wait(r);
    }
    const kv_resident_sums sums = kv_resident_get_sums(r);
    assert_int_equal(sums.fetched, 19);
    assert_int_equal(sums.found, 81);
    /* Another lane has none of them; what is forgotten is read again. */
    kv_resident_begin(r, 2, 10);
    assert_true(kv_resident_ask(r, &m.table, &m.sections[18], &slot));
    kv_resident_forget(r, 15);
    kv_resident_begin(r, 1, 10);
    assert_true(kv_resident_ask(r, &m.table, &m.sections[14], &slot));
    assert_true(kv_resident_ask(r, &m.table, &m.sections[18], &slot));
    kv_resident_wait(r);
    assert_int_equal(kv_resident_get_sums(r).fetched, 21);
    assert_int_equal(kv_resident_get_sums(r).found, 82);
    kv_resident_free(r);
    kv_table_fini(&m.table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resident__copies_are_the_rows),
        cmocka_unit_test(test_resident__keeps_what_the_step_before_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
