/*
 * GGUF files, right and wrong. Every fault that engine.md 1.6 lists is one test with bytes made by hand: the
 * parser has to refuse, with a sentence, and touch nothing outside of the bytes (the sanitiser and exact-size
 * copies watch that).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>

#include "base/fs.h"
#include "gguf_build.h"
#include "model/file/gguf.h"

/* Parses an exact-size copy and returns the code; a file that opens is closed. */
static int parse(const base_buf *b, base_err *err)
{
    uint8_t *copy = malloc(b->len ? b->len : 1);
    gguf_file *f = NULL;
    if (b->len) memcpy(copy, b->data, b->len);
    *err = (base_err){0};
    int r = gguf_parse(&f, copy, b->len, err);
    if (r == 0) gguf_close(f);
    free(copy);
    return r;
}

static void assert_refused(base_buf *b, base_code code, const char *part)
{
    base_err err;
    assert_int_equal(parse(b, &err), code);
    if (!strstr(err.msg, part)) fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    base_buf_free(b);
}

static void assert_accepted(base_buf *b)
{
    base_err err;
    if (parse(b, &err) != 0) fail_msg("refused: %s", err.msg);
    base_buf_free(b);
}

/* A file with one F32 tensor "w" of [8, 4] and an alignment of 32. */
static void build_good(base_buf *b)
{
    gguf_build_header(b, 3, 1, 3);
    gguf_build_key_str(b, "general.architecture", "llama");
    gguf_build_key_u32(b, "llama.block_count", 2);
    gguf_build_key_array(b, "tokenizer.ggml.tokens", GGUF_STRING, 3);
    gguf_build_str(b, "a");
    gguf_build_str(b, "");
    gguf_build_str(b, "ccc");
    gguf_build_tensor(b, "w", 2, (uint64_t[]){8, 4}, GGUF_TENSOR_F32, 0);
    gguf_build_data(b, 32, 128);
}

/* A file with just one key, whose value the test appends. */
static base_buf one_key(const char *key, gguf_value_type type)
{
    base_buf b = {0};
    gguf_build_header(&b, 3, 0, 1);
    gguf_build_key(&b, key, type);
    return b;
}

/* A file with one tensor entry and n bytes of data. */
static base_buf one_tensor(uint32_t n_dims, const uint64_t *ne, uint32_t type, uint64_t offset, size_t n)
{
    base_buf b = {0};
    gguf_build_header(&b, 3, 1, 0);
    gguf_build_tensor(&b, "w", n_dims, ne, type, offset);
    gguf_build_data(&b, 32, n);
    return b;
}

/* ---- what is right ---- */

static void test_gguf__reads_keys_and_tensors(void **state)
{
    base_buf b = {0}, out = {0};
    base_err err = {0};
    gguf_file *f;
    build_good(&b);
    assert_int_equal(gguf_parse(&f, b.data, b.len, &err), 0);
    assert_int_equal(gguf_n_keys(f), 3);
    assert_int_equal(gguf_n_tensors(f), 1);

    uint64_t n = 0;
    int64_t i = 0;
    double d = 0;
    base_str s = {0};
    gguf_value_type type = GGUF_U8;
    assert_true(gguf_get_u64(f, "llama.block_count", &n));
    assert_int_equal(n, 2);
    assert_true(gguf_get_i64(f, "llama.block_count", &i));
    assert_true(gguf_get_f64(f, "llama.block_count", &d));
    assert_true(d == 2);
    assert_true(gguf_get_str(f, "general.architecture", &s));
    assert_true(base_str_equal(s, "llama"));
    assert_false(gguf_get_u64(f, "general.architecture", &n));
    assert_false(gguf_get_u64(f, "llama.nothing", &n));

    assert_true(gguf_get_array(f, "tokenizer.ggml.tokens", &type, &n));
    assert_int_equal(type, GGUF_STRING);
    assert_int_equal(n, 3);
    assert_true(gguf_array_str(f, "tokenizer.ggml.tokens", 2, &s));
    assert_true(base_str_equal(s, "ccc"));
    assert_true(gguf_array_str(f, "tokenizer.ggml.tokens", 1, &s));
    assert_int_equal(s.len, 0);
    assert_false(gguf_array_str(f, "tokenizer.ggml.tokens", 3, &s));
    assert_false(gguf_array_num(f, "tokenizer.ggml.tokens", 0, &d));

    const gguf_tensor *t = gguf_find_tensor(f, "w");
    assert_non_null(t);
    assert_ptr_equal(t, gguf_tensor_at(f, 0));
    assert_null(gguf_tensor_at(f, 1));
    assert_null(gguf_find_tensor(f, "v"));
    assert_int_equal(t->n_bytes, 128);
    assert_int_equal(t->ne[1], 4);
    assert_int_equal(t->ne[3], 1);
    assert_true(t->data + t->n_bytes == (const uint8_t *)b.data + b.len);

    gguf_print_value(f, 2, &out);
    assert_string_equal(out.data, "3 x string [\"a\", \"\", \"ccc\"]");
    gguf_close(f);
    base_buf_free(&b);
    base_buf_free(&out);
}

static void test_gguf__accepts_any_integer_type_that_fits(void **state)
{
    static const struct {
        gguf_value_type type;
        int n_bytes;
        int64_t value;
    } cases[] = {{GGUF_U8, 1, 200}, {GGUF_I8, 1, -5}, {GGUF_U16, 2, 60000}, {GGUF_I16, 2, -300},
        {GGUF_U32, 4, 4000000000}, {GGUF_I32, 4, -70000}, {GGUF_U64, 8, INT64_MAX}, {GGUF_I64, 8, INT64_MIN}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        base_buf b = one_key("x", cases[c].type);
        base_buf_add(&b, &cases[c].value, (size_t)cases[c].n_bytes);
        gguf_file *f;
        int64_t i = 0;
        uint64_t u = 0;
        assert_int_equal(gguf_parse(&f, b.data, b.len, NULL), 0);
        assert_true(gguf_get_i64(f, "x", &i));
        assert_true(i == cases[c].value);
        assert_int_equal(gguf_get_u64(f, "x", &u), cases[c].value >= 0);
        gguf_close(f);
        base_buf_free(&b);
    }
    base_buf b = one_key("x", GGUF_U64);
    gguf_build_u64(&b, UINT64_MAX);
    gguf_file *f;
    int64_t i = 7;
    assert_int_equal(gguf_parse(&f, b.data, b.len, NULL), 0);
    assert_false(gguf_get_i64(f, "x", &i));
    assert_int_equal(i, 7);
    gguf_close(f);
    base_buf_free(&b);
}

static void test_gguf__maps_a_file(void **state)
{
    char path[] = "/tmp/kvist-test-XXXXXX";
    base_buf b = {0};
    base_err err = {0};
    gguf_file *f;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    build_good(&b);
    assert_int_equal(base_fs_write(path, b.data, b.len, 0600, &err), 0);
    assert_int_equal(gguf_open(&f, path, &err), 0);
    assert_int_equal(gguf_file_bytes(f), b.len);
    assert_memory_equal(gguf_part_at(f, 0).bytes, b.data, b.len);
    gguf_close(f);
    /* cut short on disk */
    assert_int_equal(base_fs_write(path, b.data, b.len - 1, 0600, &err), 0);
    assert_int_equal(gguf_open(&f, path, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, path));
    unlink(path);
    assert_int_equal(gguf_open(&f, path, &err), BASE_E_NOT_FOUND);
    assert_int_equal(gguf_open(&f, "/tmp", &err), BASE_E_FORMAT);
    base_buf_free(&b);
}

/* ---- what is wrong ---- */

static void test_gguf__refuses_every_truncation(void **state)
{
    base_buf whole = {0};
    build_good(&whole);
    for (size_t n = 0; n < whole.len; n++) {
        base_buf part = {0};
        base_err err;
        base_buf_add(&part, whole.data, n);
        assert_true(parse(&part, &err) < 0);
        assert_true(err.msg[0] != 0);
        base_buf_free(&part);
    }
    assert_accepted(&whole);
}

static void test_gguf__survives_every_changed_byte(void **state)
{
    base_buf b = {0};
    build_good(&b);
    for (size_t i = 0; i < b.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            base_err err;
            b.data[i] ^= (char)(1u << bit);
            int r = parse(&b, &err);
            assert_true(r == 0 || err.msg[0] != 0);
            b.data[i] ^= (char)(1u << bit);
        }
    }
    assert_accepted(&b);
}

static void test_gguf__refuses_another_magic(void **state)
{
    base_buf b = {0};
    base_buf_puts(&b, "GGML\3\0\0\0");
    assert_refused(&b, BASE_E_FORMAT, "not a GGUF file");
}

static void test_gguf__refuses_version_1_4_and_big_endian(void **state)
{
    base_buf b = {0};
    gguf_build_header(&b, 1, 0, 0);
    assert_refused(&b, BASE_E_UNSUPPORTED, "version 1");
    gguf_build_header(&b, 4, 0, 0);
    assert_refused(&b, BASE_E_UNSUPPORTED, "version 4");
    gguf_build_header(&b, 3u << 24, 0, 0);
    assert_refused(&b, BASE_E_UNSUPPORTED, "big-endian");
    gguf_build_header(&b, 2, 0, 0);
    assert_accepted(&b);
}

static void test_gguf__refuses_more_keys_than_fit(void **state)
{
    static const uint64_t counts[] = {1, UINT32_MAX, UINT64_MAX, (uint64_t)INT64_MAX + 1};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        base_buf b = {0};
        gguf_build_header(&b, 3, 0, counts[i]);
        assert_refused(&b, BASE_E_FORMAT, "metadata keys do not fit");
    }
}

static void test_gguf__refuses_more_tensors_than_fit(void **state)
{
    static const uint64_t counts[] = {1, UINT32_MAX, UINT64_MAX, (uint64_t)INT64_MAX + 1};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        base_buf b = {0};
        gguf_build_header(&b, 3, counts[i], 0);
        assert_refused(&b, BASE_E_FORMAT, "tensors do not fit");
    }
}

static void test_gguf__refuses_a_string_length_beyond_the_file(void **state)
{
    static const uint64_t lengths[] = {9, UINT32_MAX, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        base_buf b = one_key("x", GGUF_STRING);
        gguf_build_u64(&b, lengths[i]);
        base_buf_puts(&b, "12345678");
        assert_refused(&b, BASE_E_FORMAT, "longer than the rest");
    }
    base_buf b = {0};
    gguf_build_header(&b, 3, 0, 1);
    gguf_build_u64(&b, UINT64_MAX);
    base_buf_puts(&b, "0123456789abcdef");
    assert_refused(&b, BASE_E_FORMAT, "longer than the rest");
}

static void test_gguf__refuses_arrays_that_do_not_fit(void **state)
{
    base_buf b = one_key("x", GGUF_ARRAY);
    gguf_build_u32(&b, GGUF_U64);
    gguf_build_u64(&b, UINT64_MAX / 8 + 2); /* times 8 wraps to 8 */
    gguf_build_u64(&b, 0);
    assert_refused(&b, BASE_E_FORMAT, "array is longer");
    b = one_key("x", GGUF_ARRAY);
    gguf_build_u32(&b, GGUF_STRING);
    gguf_build_u64(&b, 1u << 30);
    gguf_build_u64(&b, 0);
    assert_refused(&b, BASE_E_FORMAT, "array is longer");
    b = one_key("x", GGUF_ARRAY);
    gguf_build_u32(&b, GGUF_ARRAY);
    gguf_build_u64(&b, 0);
    assert_refused(&b, BASE_E_FORMAT, "array inside an array");
}

static void test_gguf__refuses_unknown_value_types(void **state)
{
    static const uint32_t types[] = {13, 255, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        base_buf b = one_key("x", (gguf_value_type)types[i]);
        gguf_build_u64(&b, 0);
        assert_refused(&b, BASE_E_FORMAT, "unknown value type");
        b = one_key("x", GGUF_ARRAY);
        gguf_build_u32(&b, types[i]);
        gguf_build_u64(&b, 0);
        assert_refused(&b, BASE_E_FORMAT, "unknown type of array");
    }
}

static void test_gguf__refuses_a_key_twice(void **state)
{
    base_buf b = {0};
    gguf_build_header(&b, 3, 0, 2);
    gguf_build_key_u32(&b, "x", 1);
    gguf_build_key_u32(&b, "x", 2);
    assert_refused(&b, BASE_E_FORMAT, "same key twice");
}

static void test_gguf__refuses_a_tensor_name_twice(void **state)
{
    base_buf b = {0};
    gguf_build_header(&b, 3, 2, 0);
    gguf_build_tensor(&b, "w", 1, (uint64_t[]){8}, GGUF_TENSOR_F32, 0);
    gguf_build_tensor(&b, "w", 1, (uint64_t[]){8}, GGUF_TENSOR_F32, 32);
    gguf_build_data(&b, 32, 64);
    assert_refused(&b, BASE_E_FORMAT, "same tensor name twice");
}

static void test_gguf__refuses_dimensions_that_are_not_1_to_4(void **state)
{
    static const uint64_t ne[16] = {8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const uint32_t counts[] = {0, 5, 9, UINT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        base_buf b = one_tensor(counts[i], ne, GGUF_TENSOR_F32, 0, 64);
        assert_refused(&b, BASE_E_FORMAT, "number of dimensions");
    }
}

static void test_gguf__refuses_dimensions_that_are_not_positive(void **state)
{
    base_buf b = one_tensor(2, (uint64_t[]){8, 0}, GGUF_TENSOR_F32, 0, 64);
    assert_refused(&b, BASE_E_FORMAT, "not positive");
    b = one_tensor(2, (uint64_t[]){8, UINT64_MAX}, GGUF_TENSOR_F32, 0, 64);
    assert_refused(&b, BASE_E_FORMAT, "not positive");
}

/* llama.cpp #27203: 2^32 * 2^32 elements are 0 when the product wraps before it is looked at. */
static void test_gguf__refuses_element_counts_that_wrap(void **state)
{
    base_buf b = one_tensor(2, (uint64_t[]){1ull << 32, 1ull << 32}, GGUF_TENSOR_F32, 0, 64);
    assert_refused(&b, BASE_E_FORMAT, "element count overflows");
    b = one_tensor(4, (uint64_t[]){1u << 16, 1u << 16, 1u << 16, 1u << 16}, GGUF_TENSOR_Q8_0, 0, 64);
    assert_refused(&b, BASE_E_FORMAT, "element count overflows");
}

static void test_gguf__refuses_sizes_in_bytes_that_wrap(void **state)
{
    base_buf b = one_tensor(1, (uint64_t[]){1ull << 62}, GGUF_TENSOR_F32, 0, 64);
    assert_refused(&b, BASE_E_FORMAT, "size in bytes overflows");
    b = one_tensor(2, (uint64_t[]){1ull << 31, 1ull << 31}, GGUF_TENSOR_F32, 0, 64);
    assert_refused(&b, BASE_E_FORMAT, "size in bytes overflows");
}

/* GHSA-vgg9-87g3-85w8, CVE-2026-27940: the sum of all sizes wraps. */
static void test_gguf__refuses_a_sum_of_sizes_that_wraps(void **state)
{
    base_buf b = {0};
    uint64_t half = 1ull << 63;
    gguf_build_header(&b, 3, 3, 0);
    gguf_build_tensor(&b, "a", 1, (uint64_t[]){half / 4}, GGUF_TENSOR_F32, 0);
    gguf_build_tensor(&b, "b", 1, (uint64_t[]){half / 4}, GGUF_TENSOR_F32, half);
    gguf_build_tensor(&b, "c", 1, (uint64_t[]){8}, GGUF_TENSOR_F32, 0);
    gguf_build_data(&b, 32, 64);
    assert_refused(&b, BASE_E_FORMAT, "sum of the sizes overflows");
}

/* CVE-2026-7482: dimensions larger than the data behind them. */
static void test_gguf__refuses_tensors_behind_the_end(void **state)
{
    base_buf b = one_tensor(2, (uint64_t[]){8, 1u << 20}, GGUF_TENSOR_F32, 0, 64);
    assert_refused(&b, BASE_E_FORMAT, "cut short");
    b = one_tensor(1, (uint64_t[]){16}, GGUF_TENSOR_F32, 0, 63);
    assert_refused(&b, BASE_E_FORMAT, "cut short");
    b = one_tensor(1, (uint64_t[]){16}, GGUF_TENSOR_F32, 0, 64);
    assert_accepted(&b);
}

static void test_gguf__refuses_offsets_out_of_order(void **state)
{
    static const uint64_t offsets[] = {1, 32, UINT64_MAX, UINT64_MAX - 31};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        base_buf b = one_tensor(1, (uint64_t[]){8}, GGUF_TENSOR_F32, offsets[i], 128);
        assert_refused(&b, BASE_E_FORMAT, "offset");
    }
}

static void test_gguf__refuses_rows_of_part_blocks(void **state)
{
    base_buf b = one_tensor(2, (uint64_t[]){33, 2}, GGUF_TENSOR_Q8_0, 0, 256);
    assert_refused(&b, BASE_E_FORMAT, "whole number of blocks");
    b = one_tensor(2, (uint64_t[]){128, 2}, GGUF_TENSOR_Q4_K, 0, 256);
    assert_refused(&b, BASE_E_FORMAT, "whole number of blocks");
}

static void test_gguf__refuses_formats_outside_the_table(void **state)
{
    static const uint32_t types[] = {4, 5, 9, 34, 31, 36, 99, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        base_buf b = one_tensor(1, (uint64_t[]){256}, types[i], 0, 4096);
        assert_refused(&b, BASE_E_UNSUPPORTED, "does not know");
    }
    base_buf b = one_tensor(1, (uint64_t[]){256}, 34, 0, 4096);
    assert_refused(&b, BASE_E_UNSUPPORTED, "format TQ1_0");
    b = one_tensor(1, (uint64_t[]){256}, 77, 0, 4096);
    assert_refused(
        &b, BASE_E_UNSUPPORTED, "format number 77, which kvist does not know; it reads F32, F16, BF16");
}

static void test_gguf__refuses_long_and_empty_names(void **state)
{
    char name[65];
    base_buf b = {0};
    memset(name, 'x', 64);
    name[64] = 0;
    gguf_build_header(&b, 3, 1, 0);
    gguf_build_tensor(&b, name, 1, (uint64_t[]){8}, GGUF_TENSOR_F32, 0);
    gguf_build_data(&b, 32, 32);
    assert_refused(&b, BASE_E_FORMAT, "too long");
    gguf_build_header(&b, 3, 1, 0);
    gguf_build_tensor(&b, "", 1, (uint64_t[]){8}, GGUF_TENSOR_F32, 0);
    gguf_build_data(&b, 32, 32);
    assert_refused(&b, BASE_E_FORMAT, "without a name");
    b = one_key("", GGUF_U32);
    gguf_build_u64(&b, 0);
    assert_refused(&b, BASE_E_FORMAT, "without a name");
}

/* llama.cpp #19856 and siblings: zero, odd and huge alignments, and one of another type. */
static void test_gguf__refuses_alignments_that_are_no_power_of_two(void **state)
{
    static const uint32_t bad[] = {0, 1, 4, 12, 33, 131072, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        base_buf b = one_key("general.alignment", GGUF_U32);
        gguf_build_u32(&b, bad[i]);
        assert_refused(&b, BASE_E_FORMAT, "not a power of two");
    }
    base_buf b = one_key("general.alignment", GGUF_U64);
    gguf_build_u64(&b, 32);
    assert_refused(&b, BASE_E_FORMAT, "not a u32");
    b = one_key("general.alignment", GGUF_STRING);
    gguf_build_str(&b, "32");
    assert_refused(&b, BASE_E_FORMAT, "not a u32");
    b = one_key("general.alignment", GGUF_U32);
    gguf_build_u32(&b, 64);
    assert_accepted(&b);
}

static void test_gguf__honours_the_alignment(void **state)
{
    base_buf b = {0};
    gguf_file *f;
    gguf_build_header(&b, 3, 2, 1);
    gguf_build_key_u32(&b, "general.alignment", 256);
    gguf_build_tensor(&b, "a", 1, (uint64_t[]){8}, GGUF_TENSOR_F32, 0);
    gguf_build_tensor(&b, "b", 1, (uint64_t[]){8}, GGUF_TENSOR_F32, 256);
    gguf_build_data(&b, 256, 256 + 32);
    assert_int_equal(gguf_parse(&f, b.data, b.len, NULL), 0);
    assert_true(gguf_find_tensor(f, "b")->data == (const uint8_t *)b.data + b.len - 32);
    gguf_close(f);
    base_buf_free(&b);
}

static void test_gguf__refuses_numbers_that_are_not_finite(void **state)
{
    base_buf b = one_key("x", GGUF_F32);
    gguf_build_f32(&b, NAN);
    gguf_build_u64(&b, 0);
    assert_refused(&b, BASE_E_FORMAT, "not finite");
    b = one_key("x", GGUF_ARRAY);
    gguf_build_u32(&b, GGUF_F32);
    gguf_build_u64(&b, 2);
    gguf_build_f32(&b, 1);
    gguf_build_f32(&b, -INFINITY);
    assert_refused(&b, BASE_E_FORMAT, "not finite");
}

static void test_gguf__refuses_known_keys_of_another_type(void **state)
{
    static const char *const texts[] = {"llama.block_count", "llama.attention.head_count",
        "llama.rope.freq_base", "tokenizer.ggml.tokens", "tokenizer.ggml.merges",
        "tokenizer.ggml.eos_token_id", "tokenizer.ggml.add_bos_token", "split.count"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        base_buf b = {0};
        gguf_build_header(&b, 3, 0, 2);
        gguf_build_key_str(&b, "general.architecture", "llama");
        gguf_build_key_str(&b, texts[i], "8");
        assert_refused(&b, BASE_E_FORMAT, texts[i]);
    }
    base_buf b = {0};
    gguf_build_header(&b, 3, 0, 1);
    gguf_build_key_u32(&b, "general.architecture", 1);
    assert_refused(&b, BASE_E_FORMAT, "general.architecture is not a string");
}

static void build_vocabulary(base_buf *b, uint64_t n_keys, uint64_t n)
{
    gguf_build_header(b, 3, 0, n_keys + 1);
    gguf_build_key_array(b, "tokenizer.ggml.tokens", GGUF_STRING, n);
    for (uint64_t i = 0; i < n; i++) gguf_build_str(b, i ? "b" : "a");
}

static void test_gguf__refuses_vocabulary_arrays_of_other_lengths(void **state)
{
    base_buf b = {0};
    build_vocabulary(&b, 1, 2);
    gguf_build_key_array(&b, "tokenizer.ggml.token_type", GGUF_I32, 1);
    gguf_build_u32(&b, 1);
    assert_refused(&b, BASE_E_FORMAT, "tokenizer.ggml.token_type has 1 elements for 2 pieces");
    build_vocabulary(&b, 1, 2);
    gguf_build_key_array(&b, "tokenizer.ggml.scores", GGUF_F32, 3);
    for (int i = 0; i < 3; i++) gguf_build_f32(&b, 0);
    assert_refused(&b, BASE_E_FORMAT, "tokenizer.ggml.scores");
}

static void test_gguf__refuses_special_ids_outside_the_vocabulary(void **state)
{
    static const char *const names[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.eot_token_id", "tokenizer.ggml.fim_pad_token_id",
        "tokenizer.ggml.seperator_token_id"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        base_buf b = {0};
        build_vocabulary(&b, 1, 2);
        gguf_build_key_u32(&b, names[i], 2);
        assert_refused(&b, BASE_E_FORMAT, "outside of the vocabulary");
    }
    base_buf b = {0};
    build_vocabulary(&b, 1, 2);
    gguf_build_key_u32(&b, names[0], 1);
    assert_accepted(&b);
}

/* CVE-2025-49847: piece lengths beyond what an int32 (or we) would hold. */
static void test_gguf__refuses_long_pieces(void **state)
{
    base_buf b = {0};
    gguf_build_header(&b, 3, 0, 1);
    gguf_build_key_array(&b, "tokenizer.ggml.tokens", GGUF_STRING, 1);
    gguf_build_u64(&b, 65537);
    gguf_build_data(&b, 1, 65537);
    assert_refused(&b, BASE_E_FORMAT, "65537 bytes long");
}

static void test_gguf__refuses_counts_that_do_not_belong_together(void **state)
{
    static const struct {
        uint32_t blocks, embd, heads, kv, rot;
        const char *says;
    } cases[] = {{0, 64, 4, 2, 16, "blocks"}, {1025, 64, 4, 2, 16, "blocks"},
        {2, 64, 0, 0, 16, "no attention heads"}, {2, 64, 4, 3, 16, "evenly"}, {2, 64, 4, 0, 16, "evenly"},
        {2, 64, 4, 2, 17, "rope.dimension_count"}, {2, 1u << 30, 4, 2, 16, "embedding length"},
        {2, 64, 1u << 20, 1, 1, "too many"}};
    for (size_t i = 0; i <= sizeof cases / sizeof *cases; i++) {
        bool good = i == sizeof cases / sizeof *cases;
        base_buf b = {0};
        gguf_build_header(&b, 3, 0, 6);
        gguf_build_key_str(&b, "general.architecture", "llama");
        gguf_build_key_u32(&b, "llama.block_count", good ? 2 : cases[i].blocks);
        gguf_build_key_u32(&b, "llama.embedding_length", good ? 64 : cases[i].embd);
        gguf_build_key_u32(&b, "llama.attention.head_count", good ? 4 : cases[i].heads);
        gguf_build_key_u32(&b, "llama.attention.head_count_kv", good ? 2 : cases[i].kv);
        gguf_build_key_u32(&b, "llama.rope.dimension_count", good ? 16 : cases[i].rot);
        if (good)
            assert_accepted(&b);
        else
            assert_refused(&b, BASE_E_FORMAT, cases[i].says);
    }
}

static void test_gguf__refuses_a_part_that_does_not_say_which(void **state)
{
    base_buf b = one_key("split.count", GGUF_U16);
    base_buf_add(&b, (uint16_t[]){2}, 2);
    assert_refused(&b, BASE_E_FORMAT, "one of 2 parts");
    b = one_key("split.count", GGUF_U16);
    base_buf_add(&b, (uint16_t[]){1}, 2);
    assert_accepted(&b);
}

static void test_gguf__prints_foreign_strings_harmlessly(void **state)
{
    base_buf b = one_key("general.name", GGUF_STRING), out = {0};
    gguf_file *f;
    gguf_build_str(&b, "a\x1b[31m\n\xff");
    assert_int_equal(gguf_parse(&f, b.data, b.len, NULL), 0);
    gguf_print_value(f, 0, &out);
    assert_null(strchr(out.data, 0x1b));
    assert_null(strchr(out.data, '\n'));
    gguf_close(f);
    base_buf_free(&b);
    base_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gguf__reads_keys_and_tensors),
        cmocka_unit_test(test_gguf__accepts_any_integer_type_that_fits),
        cmocka_unit_test(test_gguf__maps_a_file),
        cmocka_unit_test(test_gguf__refuses_every_truncation),
        cmocka_unit_test(test_gguf__survives_every_changed_byte),
        cmocka_unit_test(test_gguf__refuses_another_magic),
        cmocka_unit_test(test_gguf__refuses_version_1_4_and_big_endian),
        cmocka_unit_test(test_gguf__refuses_more_keys_than_fit),
        cmocka_unit_test(test_gguf__refuses_more_tensors_than_fit),
        cmocka_unit_test(test_gguf__refuses_a_string_length_beyond_the_file),
        cmocka_unit_test(test_gguf__refuses_arrays_that_do_not_fit),
        cmocka_unit_test(test_gguf__refuses_unknown_value_types),
        cmocka_unit_test(test_gguf__refuses_a_key_twice),
        cmocka_unit_test(test_gguf__refuses_a_tensor_name_twice),
        cmocka_unit_test(test_gguf__refuses_dimensions_that_are_not_1_to_4),
        cmocka_unit_test(test_gguf__refuses_dimensions_that_are_not_positive),
        cmocka_unit_test(test_gguf__refuses_element_counts_that_wrap),
        cmocka_unit_test(test_gguf__refuses_sizes_in_bytes_that_wrap),
        cmocka_unit_test(test_gguf__refuses_a_sum_of_sizes_that_wraps),
        cmocka_unit_test(test_gguf__refuses_tensors_behind_the_end),
        cmocka_unit_test(test_gguf__refuses_offsets_out_of_order),
        cmocka_unit_test(test_gguf__refuses_rows_of_part_blocks),
        cmocka_unit_test(test_gguf__refuses_formats_outside_the_table),
        cmocka_unit_test(test_gguf__refuses_long_and_empty_names),
        cmocka_unit_test(test_gguf__refuses_alignments_that_are_no_power_of_two),
        cmocka_unit_test(test_gguf__honours_the_alignment),
        cmocka_unit_test(test_gguf__refuses_numbers_that_are_not_finite),
        cmocka_unit_test(test_gguf__refuses_known_keys_of_another_type),
        cmocka_unit_test(test_gguf__refuses_vocabulary_arrays_of_other_lengths),
        cmocka_unit_test(test_gguf__refuses_special_ids_outside_the_vocabulary),
        cmocka_unit_test(test_gguf__refuses_long_pieces),
        cmocka_unit_test(test_gguf__refuses_counts_that_do_not_belong_together),
        cmocka_unit_test(test_gguf__refuses_a_part_that_does_not_say_which),
        cmocka_unit_test(test_gguf__prints_foreign_strings_harmlessly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
