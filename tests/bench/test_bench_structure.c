/* The bench of structure: which samples are drawn, and what its sums say of lines that are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "bench/structure/programs.h"
#include "bench/structure/sample.h"

enum { FUNCTIONS = 12 };

static void make_pool(bench_pool *p)
{
    *p = (bench_pool){.source = base_xstrdup("made")};
    for (int i = 0; i < FUNCTIONS; i++) {
        char name[32], text[256];
        snprintf(name, sizeof name, "take_%d", i);
        snprintf(text, sizeof text,
            "int take_%d(int a) {\n"
            "    int left_%d = a + 1;\n"
            "    if (left_%d == 3) {\n"
            "        return left_%d;\n"
            "    }\n"
            "    return take_%d(left_%d);\n}\n",
            i, i, i, i, (i + 1) % FUNCTIONS, i);
        base_grow(&p->items, &p->cap, p->n + 1, sizeof *p->items);
        p->items[p->n++] = (bench_function){
            .path = base_xstrdup("made.c"), .name = base_xstrdup(name), .text = base_xstrdup(text)};
    }
}

static void test_bench_structure__a_round_gives_each_function_once(void **state)
{
    (void)state;
    bench_pool p;
    make_pool(&p);
    int seen[3][FUNCTIONS] = {{0}};
    for (int i = 0; i < 3 * FUNCTIONS; i++) {
        uint64_t round;
        const bench_function *f = bench_pool_next(&p, 7, &round);
        assert_int_equal(round, i / FUNCTIONS);
        seen[round][f - p.items]++;
    }
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < FUNCTIONS; i++) assert_int_equal(seen[r][i], 1);
    bench_pool_free(&p);
}

static void test_bench_structure__each_mistake_is_told_by_how_its_line_begins(void **state)
{
    (void)state;
    bench_pool p;
    make_pool(&p);
    uint32_t questions = 0;
    for (int k = 0; k < 6; k++) {
        bench_sample s;
        assert_true(bench_sample_mutate(&s, &p, 3, 4, NULL));
        assert_int_equal(s.n_chunks, 4);
        bench_sample_ask(&s);
        for (uint32_t q = 0; q < s.n_questions; q++, questions++) {
            const bench_question *one = &s.questions[q];
            const bench_function *f = &s.chunks[one->target];
            assert_non_null(strstr(f->text, one->line));
            assert_string_not_equal(f->wrong, f->right);
            assert_memory_equal(f->wrong, f->right, one->n_same);
            uint32_t found = 0;
            for (uint32_t c = 0; c < s.n_chunks; c++) {
                const char *at = s.chunks[c].text;
                while ((at = strstr(at, "\n"))) {
                    at++;
                    found += !strncmp(at + strspn(at, " "), one->line, one->n_same);
                }
            }
            assert_int_equal(found, 1);
        }
        bench_sample_free(&s);
    }
    assert_true(questions >= 12);
    bench_pool_free(&p);
}

/* Other text stands among the functions, and none of it begins like a mistake's line. */
static void test_bench_structure__mistakes_stand_among_other_files(void **state)
{
    (void)state;
    bench_pool p;
    make_pool(&p);
    base_buf other = {0};
    for (int i = 0; i < 80; i++) base_buf_printf(&other, "int other_%d(void)\n{\n    return %d;\n}\n", i, i);
    base_grow(&p.files, &p.cap_files, 2, sizeof *p.files);
    p.files[p.n_files++] = (bench_function){
        .path = base_xstrdup("made.c"), .name = base_xstrdup(""), .text = base_xstrdup(p.items[0].text)};
    p.files[p.n_files++] = (bench_function){
        .path = base_xstrdup("other.c"), .name = base_xstrdup(""), .text = base_buf_take(&other)};
    bench_sample s;
    assert_true(bench_sample_mutate(&s, &p, 3, 4, NULL));
    bench_sample_surround(&s, &p, 3, 3000);
    bench_sample_ask(&s);
    assert_true(s.n_chunks > 4 && s.n_questions > 0);
    uint32_t mistakes = 0, others = 0;
    for (uint32_t c = 0; c < s.n_chunks; c++) {
        mistakes += s.chunks[c].wrong != NULL;
        others += !strcmp(s.chunks[c].path, "other.c");
    }
    assert_int_equal(mistakes, 4);
    assert_int_equal(others, s.n_chunks - 4); /* nothing of the file that the functions are from */
    for (uint32_t q = 0; q < s.n_questions; q++) assert_non_null(s.chunks[s.questions[q].target].wrong);
    bench_sample_free(&s);
    bench_pool_free(&p);
}

static void test_bench_structure__a_completion_is_nowhere_in_its_prompt(void **state)
{
    (void)state;
    bench_pool p;
    make_pool(&p);
    uint32_t questions = 0;
    bench_sample s;
    for (int k = 0; k < 4 && bench_sample_complete(&s, &p, 5, 3); k++) {
        assert_int_equal(s.n_chunks, 3);
        for (uint32_t q = 0; q < s.n_questions; q++, questions++) {
            assert_non_null(strstr(s.questions[q].line, s.chunks[s.questions[q].target].name));
            for (uint32_t c = 0; c < s.n_chunks; c++)
                assert_null(strstr(s.chunks[c].text, s.questions[q].line));
        }
        bench_sample_free(&s);
    }
    assert_true(questions > 0);
    bench_pool_free(&p);
}

/* Of DebugBench those count that have one mistake, in one line, inside of a function of their own. */
static void test_bench_structure__debugbench_gives_programs_of_one_mistake(void **state)
{
    (void)state;
    static const char body[] = "\\n    total = 0\\n    for item in items:\\n        if item %s limit:\\n"
                               "            total += item\\n    print('counted the "
                               "items that are small', total)\\n    return total%s\\n";
    char folder[] = "/tmp/kvist-debugbench-XXXXXX", right[400], wrong[400], twice[400];
    base_buf one = {0}, several = {0}, path = {0};
    base_err err = {0};
    bench_pool p;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(bench_debugbench_load(&p, NULL, folder, &err), BASE_E_NOT_FOUND);
    snprintf(right, sizeof right, body, "<", "");
    snprintf(wrong, sizeof wrong, body, ">", "");
    snprintf(twice, sizeof twice, body, ">", " + 1");
    const char *const buggy[] = {wrong, twice, wrong, "\\n    return 0\\n"};
    for (int i = 0; i < 4; i++)
        base_buf_printf(&one,
            "%s{\"slug\":\"sum-%d\",\"buggy_code\":\"def add_%d(items, "
            "limit):%s\",\"oracle_code\":\"def add_%d(items, limit):%s\"}",
            i ? "," : "[", i, i, buggy[i], i, right);
    base_buf_puts(&one, "]");
    base_buf_printf(&path, "%s/python3_condition error.json", folder);
    assert_int_equal(base_fs_write(path.data, one.data, one.len, 0644, &err), 0);
    base_buf_printf(&several, "%s/python3_double.json", folder);
    assert_int_equal(base_fs_write(several.data, one.data, one.len, 0644, &err), 0);
    assert_int_equal(bench_debugbench_load(&p, NULL, folder, &err), 0);
    assert_int_equal(p.n, 2);
    for (size_t i = 0; i < p.n; i++) {
        assert_int_equal(strncmp(p.items[i].name, "add_", 4), 0);
        assert_string_equal(p.items[i].wrong, "if item > limit:");
        assert_string_equal(p.items[i].right, "if item < limit:");
        assert_non_null(strstr(p.items[i].text, p.items[i].wrong));
    }
    assert_string_not_equal(p.items[0].name, p.items[1].name);
    /* Each is asked about once. */
    bench_sample s;
    assert_true(bench_sample_programs(&s, &p, 1, 2, NULL));
    bench_sample_ask(&s);
    assert_int_equal(s.n_chunks, 2);
    bench_sample_free(&s);
    assert_false(bench_sample_programs(&s, &p, 1, 2, NULL));
    bench_pool_free(&p);
    unlink(path.data);
    unlink(several.data);
    rmdir(folder);
    base_buf_free(&one);
    base_buf_free(&several);
    base_buf_free(&path);
}

/* 20 questions of 10 samples: kvist is right in all, snapkv in the first of each sample. */
static void write_lines(base_buf *out)
{
    static const char *const conditions[] = {"kvist", "snapkv"};
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    for (int i = 0; i < 10; i++)
        for (int q = 0; q < 2; q++)
            for (int c = 0; c < 2; c++) {
                structure_result one = {
                    .task = "bug", .model = "m", .cap = .4, .right = {c == 0 || q == 0, -1, -1}};
                snprintf(one.id, sizeof one.id, "made-%d/%d", i, q);
                snprintf(one.condition, sizeof one.condition, "%s", conditions[c]);
                structure_result_write(&one, 1, f);
            }
    fputs("{\"task\":\"bug\",\"mod", f); /* a run that was killed */
    fclose(f);
    base_buf_add(out, text, n);
    free(text);
}

static void test_bench_structure__differences_are_of_the_same_questions(void **state)
{
    (void)state;
    base_buf lines = {0};
    write_lines(&lines);
    structure_results r;
    structure_results_read(&r, &lines);
    assert_int_equal(r.n, 40);
    structure_result key = r.items[5];
    assert_true(structure_results_have(&r, &key));
    key.cap = .2;
    assert_false(structure_results_have(&r, &key));
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    structure_results_print(&r, f);
    fclose(f);
    /* Every sample has the same difference, so that all draws agree; the questions alone would give [.3, .7]. */
    assert_non_null(strstr(
        text, "| 0.4 | kvist | 20 | 1.000 [0.84, 1.00] | +0.500 [+0.500, +0.500], +10 -0 p 0.002 |\n"));
    assert_non_null(strstr(text, "| 0.4 | snapkv | 20 | 0.500 [0.30, 0.70] | - |\n"));
    free(text);
    structure_results_free(&r);
    base_buf_free(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_structure__a_round_gives_each_function_once),
        cmocka_unit_test(test_bench_structure__each_mistake_is_told_by_how_its_line_begins),
        cmocka_unit_test(test_bench_structure__mistakes_stand_among_other_files),
        cmocka_unit_test(test_bench_structure__a_completion_is_nowhere_in_its_prompt),
        cmocka_unit_test(test_bench_structure__debugbench_gives_programs_of_one_mistake),
        cmocka_unit_test(test_bench_structure__differences_are_of_the_same_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
