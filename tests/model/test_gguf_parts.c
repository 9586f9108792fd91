/*
 * Models in several files: a little model is cut as llama-gguf-split cuts (metadata in the first part, whole
 * tensors, split.* keys in each) and has to be the same model again from any part; and every way in which such
 * a set can be wrong is refused with a sentence that names the file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "gguf_build.h"
#include "model/file/gguf.h"
#include "model/file/gguf_parts.h"
#include "tiny_gguf.h"

enum { PARTS = 3, MOST = 4 };

/* A folder with the model whole and cut. */
typedef struct cut {
    char folder[64];
    char *paths[MOST], *whole_path;
    gguf_file *whole;
} cut;

/* Where the tensors' table begins: at the first tensor's name. */
static size_t table_at(const gguf_file *f)
{
    const gguf_part part = gguf_part_at(f, 0);
    base_buf name = {0};
    const base_str first = gguf_tensor_at(f, 0)->name;
    gguf_build_u64(&name, first.len);
    base_buf_add(&name, first.ptr, first.len);
    const uint8_t *at = memmem(part.bytes, part.n_head, name.data, name.len);
    assert_non_null(at);
    base_buf_free(&name);
    return (size_t)(at - part.bytes);
}

static void put_split_key(base_buf *b, const char *name, gguf_value_type type, uint32_t value)
{
    gguf_build_key(b, name, type);
    base_buf_add(b, &value, type == GGUF_U16 ? 2 : 4);
}

/* Part `part` of `parts` with the tensors [from, to) of f; says that all parts have n_tensors. */
static base_buf make_part(
    const gguf_file *f, uint32_t part, uint32_t parts, uint64_t from, uint64_t to, uint32_t n_tensors)
{
    base_buf b = {0};
    const gguf_part whole = gguf_part_at(f, 0);
    gguf_build_header(&b, 3, to - from, 3 + (part ? 0 : gguf_n_keys(f)));
    if (part == 0) base_buf_add(&b, whole.bytes + 24, table_at(f) - 24);
    put_split_key(&b, "split.no", GGUF_U16, part);
    put_split_key(&b, "split.count", GGUF_U16, parts);
    put_split_key(&b, "split.tensors.count", GGUF_I32, n_tensors);
    uint64_t offset = 0;
    for (uint64_t i = from; i < to; i++) {
        const gguf_tensor *t = gguf_tensor_at(f, i);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        gguf_build_tensor(&b, name, t->n_dims, t->ne, t->type, offset);
        offset += (t->n_bytes + 31) / 32 * 32;
    }
    for (uint64_t i = from; i < to; i++) {
        gguf_build_data(&b, 32, 0);
        base_buf_add(&b, gguf_tensor_at(f, i)->data, gguf_tensor_at(f, i)->n_bytes);
    }
    return b;
}

static void write_part(const cut *c, uint32_t part, base_buf b)
{
    base_err err = {0};
    assert_int_equal(base_fs_write(c->paths[part], b.data, b.len, 0600, &err), 0);
    base_buf_free(&b);
}

static char *path_in(const cut *c, const char *name)
{
    base_buf b = {0};
    base_buf_printf(&b, "%s/%s", c->folder, name);
    return base_buf_take(&b);
}

/* Where part `part` of PARTS begins; the first has no tensor, as some tools cut. */
static uint64_t from_of(const gguf_file *f, uint32_t part)
{
    return part == 0 ? 0 : part == PARTS ? gguf_n_tensors(f) : (part - 1) * gguf_n_tensors(f) / (PARTS - 1);
}

static base_buf right_part(const cut *c, uint32_t part)
{
    return make_part(c->whole, part, PARTS, from_of(c->whole, part), from_of(c->whole, part + 1),
        (uint32_t)gguf_n_tensors(c->whole));
}

static cut cut_new(void)
{
    cut c = {.folder = "/tmp/kvist-parts-XXXXXX"};
    base_err err = {0};
    assert_non_null(mkdtemp(c.folder));
    c.whole_path = tiny_gguf_temp(&TINY_GGUF_QWEN2);
    assert_int_equal(gguf_open(&c.whole, c.whole_path, &err), 0);
    for (uint32_t i = 0; i < PARTS; i++) {
        char name[64];
        snprintf(name, sizeof name, "tiny-%05u-of-%05u.gguf", i + 1, PARTS);
        c.paths[i] = path_in(&c, name);
        write_part(&c, i, right_part(&c, i));
    }
    return c;
}

static void cut_free(cut *c)
{
    for (uint32_t i = 0; i < MOST; i++) {
        if (c->paths[i]) unlink(c->paths[i]);
        free(c->paths[i]);
    }
    gguf_close(c->whole);
    unlink(c->whole_path);
    free(c->whole_path);
    assert_int_equal(rmdir(c->folder), 0);
}

static void assert_refused(const char *path, base_code code, const char *first, const char *second)
{
    gguf_file *f = NULL;
    base_err err = {0};
    assert_int_equal(gguf_open(&f, path, &err), code);
    if (!strstr(err.msg, first) || !strstr(err.msg, second))
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", err.msg, first, second);
}

static void test_parts__are_the_whole_model_from_any_part(void **state)
{
    cut c = cut_new();
    base_err err = {0};
    for (uint32_t i = 0; i < PARTS; i++) {
        gguf_file *f;
        uint64_t bytes = 0;
        if (gguf_open(&f, c.paths[i], &err)) fail_msg("%s", err.msg);
        assert_int_equal(gguf_n_parts(f), PARTS);
        for (uint32_t k = 0; k < PARTS; k++) {
            assert_string_equal(gguf_part_at(f, k).path, c.paths[k]);
            bytes += gguf_part_at(f, k).n_bytes;
        }
        assert_int_equal(gguf_file_bytes(f), bytes);
        assert_int_equal(gguf_n_tensors(f), gguf_n_tensors(c.whole));
        for (uint64_t k = 0; k < gguf_n_tensors(f); k++) {
            const gguf_tensor *ours = gguf_tensor_at(f, k), *theirs = gguf_tensor_at(c.whole, k);
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)theirs->name.len, theirs->name.ptr);
            assert_ptr_equal(gguf_find_tensor(f, name), ours);
            assert_int_equal(ours->n_bytes, theirs->n_bytes);
            assert_memory_equal(ours->data, theirs->data, theirs->n_bytes);
        }
        assert_int_equal(gguf_n_keys(f), gguf_n_keys(c.whole) + 3);
        assert_int_equal(gguf_check_unchanged(f, c.paths[i], &err), 0);
        gguf_close(f);
    }
    cut_free(&c);
}

static void test_parts__a_missing_part_is_named(void **state)
{
    cut c = cut_new();
    for (uint32_t i = 0; i < PARTS; i++) {
        unlink(c.paths[i]);
        assert_refused(c.paths[(i + 1) % PARTS], BASE_E_NOT_FOUND, c.paths[i], "has 3 parts");
        write_part(&c, i, right_part(&c, i));
    }
    cut_free(&c);
}

static void test_parts__one_that_is_no_file_is_refused_and_never_waited_for(void **state)
{
    cut c = cut_new();
    for (uint32_t i = 0; i < PARTS; i++) {
        unlink(c.paths[i]);
        assert_int_equal(mkfifo(c.paths[i], 0600), 0);
        assert_refused(c.paths[0], BASE_E_FORMAT, c.paths[i], "not a regular file");
        unlink(c.paths[i]);
        write_part(&c, i, right_part(&c, i));
    }
    cut_free(&c);
}

static void test_parts__names_have_to_say_which_part(void **state)
{
    cut c = cut_new();
    c.paths[PARTS] = path_in(&c, "renamed.gguf");
    write_part(&c, PARTS, right_part(&c, 1));
    assert_refused(c.paths[PARTS], BASE_E_FORMAT, "part 2 of 3", "-00002-of-00003.gguf");
    /* called like the third, but the second */
    write_part(&c, 2, right_part(&c, 1));
    assert_refused(c.paths[2], BASE_E_FORMAT, c.paths[2], "part 2 of 3");
    assert_refused(c.paths[0], BASE_E_FORMAT, c.paths[2], "says that it is part 2");
    cut_free(&c);
}

static void test_parts__of_another_model_are_refused(void **state)
{
    cut c = cut_new();
    const uint64_t n = gguf_n_tensors(c.whole), from = from_of(c.whole, 1), to = from_of(c.whole, 2);
    /* of another number of parts */
    write_part(&c, 1, make_part(c.whole, 1, PARTS + 1, from, to, (uint32_t)n));
    assert_refused(c.paths[0], BASE_E_FORMAT, c.paths[1], "one of 4 parts");
    /* of another number of tensors, by its own word */
    write_part(&c, 1, make_part(c.whole, 1, PARTS, from, to, (uint32_t)n + 1));
    assert_refused(c.paths[2], BASE_E_FORMAT, c.paths[1], "other tensors");
    /* and by what it holds */
    write_part(&c, 1, make_part(c.whole, 1, PARTS, from, to - 1, (uint32_t)n));
    assert_refused(c.paths[1], BASE_E_FORMAT, "tensors and should hold", "fetch them again");
    /* the same tensors again */
    write_part(&c, 1, make_part(c.whole, 1, PARTS, n - (to - from), n, (uint32_t)n));
    assert_refused(c.paths[0], BASE_E_FORMAT, "two parts hold a tensor", "fetch them again");
    /* no GGUF file, one without parts, one that ends early */
    base_buf junk = {0};
    base_buf_puts(&junk, "<html>404</html>");
    write_part(&c, 1, junk);
    assert_refused(c.paths[0], BASE_E_FORMAT, c.paths[1], "not a GGUF file");
    base_buf whole = {0};
    base_buf_add(&whole, gguf_part_at(c.whole, 0).bytes, gguf_part_at(c.whole, 0).n_bytes);
    write_part(&c, 1, whole);
    assert_refused(c.paths[0], BASE_E_FORMAT, c.paths[1], "one of 1 parts");
    base_buf cut_short = right_part(&c, 1);
    cut_short.len -= 40;
    write_part(&c, 1, cut_short);
    assert_refused(c.paths[0], BASE_E_FORMAT, c.paths[1], "cut short");
    cut_free(&c);
}

static void test_parts__a_change_of_any_part_is_noticed(void **state)
{
    for (uint32_t i = 0; i < PARTS; i++) {
        cut c = cut_new();
        gguf_file *f;
        base_err err = {0};
        assert_int_equal(gguf_open(&f, c.paths[0], &err), 0);
        assert_int_equal(truncate(c.paths[i], (off_t)gguf_part_at(f, i).n_bytes - 8), 0);
        assert_int_equal(gguf_check_unchanged(f, c.paths[0], &err), BASE_E_STATE);
        assert_non_null(strstr(err.msg, c.paths[i]));
        gguf_close(f);
        /* another file in its place: what was opened stays as it was */
        write_part(&c, i, right_part(&c, i));
        assert_int_equal(gguf_open(&f, c.paths[0], &err), 0);
        assert_int_equal(unlink(c.paths[i]), 0);
        base_buf junk = {0};
        base_buf_puts(&junk, "GGUF");
        write_part(&c, i, junk);
        assert_int_equal(gguf_check_unchanged(f, c.paths[0], &err), 0);
        assert_int_equal(gguf_n_tensors(f), gguf_n_tensors(c.whole));
        gguf_close(f);
        cut_free(&c);
    }
}

static void test_parts__names_are_read_and_made(void **state)
{
    static const char *const others[] = {"", "a.gguf", "a-00001-of-00001.gguf", "a-00000-of-00002.gguf",
        "a-00003-of-00002.gguf", "a-1-of-2.gguf", "a-00001-of-00002.bin", "a-0000x-of-00002.gguf",
        "a_00001-of-00002.gguf", "00001-of-00002.gguf"};
    gguf_part_name name;
    base_buf b = {0};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (gguf_part_name_read(others[i], &name)) fail_msg("%s is no part", others[i]);
    assert_true(gguf_part_name_read("x/a-00002-of-00012.gguf", &name));
    assert_int_equal(name.part, 2);
    assert_int_equal(name.parts, 12);
    gguf_part_name_put("x/a-00002-of-00012.gguf", name, 11, &b);
    assert_string_equal(b.data, "x/a-00011-of-00012.gguf");
    base_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts__are_the_whole_model_from_any_part),
        cmocka_unit_test(test_parts__a_missing_part_is_named),
        cmocka_unit_test(test_parts__one_that_is_no_file_is_refused_and_never_waited_for),
        cmocka_unit_test(test_parts__names_have_to_say_which_part),
        cmocka_unit_test(test_parts__of_another_model_are_refused),
        cmocka_unit_test(test_parts__a_change_of_any_part_is_noticed),
        cmocka_unit_test(test_parts__names_are_read_and_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
