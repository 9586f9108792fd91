/*
 * Words that a model takes for alike, of a real vocabulary: some that are, none that are not, as the asker chooses and in order; and of
 * a vocabulary with hardly any words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "little.h"
#include "model/forward/alike.h"

typedef struct asker {
    const char *begins; /* wanted are words that begin so */
    base_buf found;     /* "0 color\n" */
    float least;
    char last[32];
} asker;

static bool is_wanted(void *user, const char *word)
{
    const asker *a = user;
    return !strncmp(word, a->begins, strlen(a->begins));
}

static void add(void *user, uint32_t asked, const char *word, float alike)
{
    asker *a = user;
    assert_true(alike >= a->least && alike <= 1.001F);
    assert_true(is_wanted(a, word));
    assert_true(strcmp(word, a->last) >= 0);
    strncpy(a->last, word, sizeof a->last - 1);
    base_buf_printf(&a->found, "%u %s\n", asked, word);
}

static void find(const model_alike *words, asker *a, const char *const *asked, uint32_t n)
{
    base_buf_clear(&a->found);
    *a->last = 0;
    model_alike_find(words,
        &(base_alike_query){
            .words = asked, .n = n, .least = a->least, .is_wanted = is_wanted, .add = add, .asker = a});
}

static bool has(const asker *a, const char *line)
{
    return a->found.data && strstr(a->found.data, line);
}

static void test_alike__knows_what_stands_for_what(void **state)
{
    (void)state;
    static const char *const asked[] = {"colour", "duplicate", "xyzzyq", "waits"};
    char *path = tiny_gguf_small_model();
    model *m = NULL;
    model_alike *words = NULL;
    asker a = {.begins = "", .least = .3F};
    base_err err = {0};
    const int rc = model_open(&m, path, NULL, &err);
    if (rc == BASE_E_NOT_FOUND) skip();
    assert_int_equal(rc, 0);
    assert_int_equal(model_alike_open(&words, m, NULL), 0);
    find(words, &a, asked, 4);
    assert_true(has(&a, "0 color\n") && has(&a, "0 colours\n"));
    assert_true(has(&a, "1 copy\n") && has(&a, "1 duplicated\n"));
    assert_true(has(&a, "3 wait\n"));
    assert_false(has(&a, "0 copy\n") || has(&a, "1 color\n") || has(&a, "2 ") || has(&a, "0 colour\n"));

    base_buf first = a.found;
    a.found = (base_buf){0};
    find(words, &a, asked, 4);
    assert_string_equal(a.found.data, first.data);
    base_buf_free(&first);

    a.begins = "col";
    find(words, &a, asked, 4);
    assert_true(has(&a, "0 color\n"));
    assert_false(has(&a, "1 ") || has(&a, "3 "));
    a.least = .999F;
    find(words, &a, asked, 4);
    assert_int_equal(a.found.len, 0);
    find(words, &a, asked, 0);
    assert_int_equal(a.found.len, 0);

    base_buf_free(&a.found);
    model_alike_free(words);
    model_close(m);
    free(path);
}

static void test_alike__a_few_words_are_enough(void **state)
{
    (void)state;
    static const char *const asked[] = {"is", "xyzzyq", "", "awordthatislongerthananytokenmaybe"};
    tiny_gguf spec = TINY_GGUF_QWEN2;
    little l = little_open(&spec);
    model_alike *words = NULL;
    asker a = {.begins = "", .least = -1};
    assert_int_equal(model_alike_open(&words, l.m, NULL), 0);
    find(words, &a, asked, 4);
    assert_false(has(&a, "1 ") || has(&a, "2 ") || has(&a, "3 ") || has(&a, "0 is\n"));
    base_buf_free(&a.found);
    model_alike_free(words);
    little_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike__knows_what_stands_for_what),
        cmocka_unit_test(test_alike__a_few_words_are_enough),
    };
    return cmocka_run_group_tests_name("model alike", tests, NULL, NULL);
}
