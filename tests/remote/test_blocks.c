/* MessagePack as JSON, and blocks of an engine's cache by the messages that tell of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "remote/blocks.h"
#include "remote/msgpack.h"

static void check_json(const char *bytes, size_t n, const char *wanted)
{
    base_buf out = {0};
    base_err err = {0};
    base_buf_puts(&out, "<");
    const int rc = remote_msgpack_put_json((const uint8_t *)bytes, n, &out, &err);
    assert_int_equal(rc != 0, wanted == NULL);
    assert_string_equal(out.data + 1, wanted ? wanted : "");
    base_buf_free(&out);
}
#define CHECK(bytes, wanted) check_json(bytes, sizeof bytes - 1, wanted)

static void test_msgpack(void **state)
{
    CHECK("\x07", "7");
    CHECK("\xe0", "-32");
    CHECK("\xcd\x01\x00", "256");
    CHECK("\xd0\x80", "-128");
    CHECK("\xd3\xff\xff\xff\xff\xff\xff\xff\xfe", "-2");
    CHECK("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", "9223372036854775807");
    CHECK("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "\"18446744073709551615\"");
    CHECK("\xca\x3f\x00\x00\x00", "0.5");
    CHECK("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", "1.5");
    CHECK("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", "null");
    CHECK("\xc0", "null");
    CHECK("\x92\xc2\xc3", "[false,true]");
    CHECK("\xa3"
          "a\"b",
        "\"a\\\"b\"");
    CHECK("\xd9\x02hi", "\"hi\"");
    CHECK("\xc4\x02\x00\xff", "\"00ff\"");
    CHECK("\x82\xa1x\x01\x02\x90", "{\"x\":1,\"2\":[]}");
    CHECK("\xdc\x00\x01\x05", "[5]");
    CHECK("\xde\x00\x01\xa1x\x05", "{\"x\":5}");
    CHECK("\x92\xd6\xff\x00\x00\x00\x00\x01", "[null,1]"); /* a time */
    CHECK("", NULL);
    CHECK("\x92\x01", NULL);
    CHECK("\x01\x01", NULL);
    CHECK("\xc1", NULL);
    CHECK("\xdb\xff\xff\xff\xff", NULL);
    CHECK("\xdd\xff\xff\xff\xff\x01", NULL);
    CHECK("\x81\x90\x01", NULL); /* a list as a name */
    CHECK("\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x01", NULL);
}

/* --- blocks --------------------------------------------------------------------------------------------- */

enum { N = 11 };
static const int32_t ids[N] = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void read_message(remote_blocks *b, uint64_t number, const char *bytes, size_t n)
{
    base_err err = {0};
    if (remote_blocks_read(b, number, (const uint8_t *)bytes, n, &err)) fail_msg("%s", err.msg);
}
#define READ(b, number, bytes) read_message(b, number, bytes, sizeof bytes - 1)

static void check_places(const remote_blocks *b, uint32_t gpu, uint32_t host, uint32_t disk, uint32_t gone,
    uint32_t unknown, uint32_t found)
{
    remote_block_counts c;
    remote_blocks_count(b, ids, N, 0, &c, NULL);
    assert_int_equal(c.n[REMOTE_BLOCK_GPU], gpu);
    assert_int_equal(c.n[REMOTE_BLOCK_HOST], host);
    assert_int_equal(c.n[REMOTE_BLOCK_DISK], disk);
    assert_int_equal(c.n[REMOTE_BLOCK_GONE], gone);
    assert_int_equal(c.n[REMOTE_BLOCK_UNKNOWN], unknown);
    assert_int_equal(c.found, found);
    assert_int_equal(c.is_told, unknown < 4); /* what does not fill a block is told by nobody */
}

/* Blocks 1 and 2 of four tokens, events with members; as vLLM 0.32.0 writes them, bytes as names. */
#define STORED_NAMED                                                                                         \
    "\x93\xcb\x41\xd9\x00\x00\x00\x00\x00\x00\x91\x85"                                                       \
    "\xa4type\xab"                                                                                           \
    "BlockStored\xac"                                                                                        \
    "block_hashes\x92\xc4\x02"                                                                               \
    "aa\xc4\x02"                                                                                             \
    "bb\xb1parent_block_hash\xc0\xa9token_ids\x98\x05\x06\x07\x08\x09\x0a\x0b\x0c\xaa"                       \
    "block_size\x04\x00"

static void test_named(void **state)
{
    remote_blocks *b = remote_blocks_new();
    assert_false(remote_blocks_has_any(b));
    check_places(b, 0, 0, 0, 0, N, 0);
    READ(b, 0, STORED_NAMED);
    assert_true(remote_blocks_has_any(b));
    /* What the engine found itself of blocks that nobody told of, in whole ones, is there. */
    static const int32_t before[] = {1, 2, 3, 4, 5, 6, 7, 8};
    remote_block_counts c;
    remote_blocks_count(b, before, 8, 7, &c, NULL);
    assert_int_equal(c.n[REMOTE_BLOCK_GPU], 4);
    assert_int_equal(c.n[REMOTE_BLOCK_UNKNOWN], 4);
    check_places(b, 8, 0, 0, 0, 3, 8);
    /* The first leaves the GPU and the one behind it stays: nothing is found, but it is there. */
    READ(b, 1,
        "\x92\x00\x91\x82\xa4type\xac"
        "BlockRemoved\xac"
        "block_hashes\x91\xc4\x02"
        "aa");
    check_places(b, 4, 0, 0, 4, 3, 0);
    READ(b, 2,
        "\x92\x00\x91\x81\xa4type\xb0"
        "AllBlocksCleared");
    check_places(b, 0, 0, 0, 8, 3, 0);
    remote_blocks_free(b);
}

/* Events as lists, as SGLang and older vLLM write them: [name, hashes, parent, tokens, size, adapter, medium]. */
static void test_unnamed(void **state)
{
    remote_blocks *b = remote_blocks_new();
    READ(b, 9,
        "\x92\x00\x92\x96\xab"
        "BlockStored\x91\x2a\xc0\x94\x05\x06\x07\x08\x04\xc0"
        "\x97\xab"
        "BlockStored\x91\x2b\x2a\x94\x09\x0a\x0b\x0c\x04\xc0\xa3"
        "CPU");
    check_places(b, 4, 4, 0, 0, 3, 8);
    READ(b, 10,
        "\x92\x00\x92\x97\xab"
        "BlockStored\x91\x2a\xc0\x94\x05\x06\x07\x08\x04\xc0\xa4"
        "DISK"
        "\x93\xac"
        "BlockRemoved\x91\x2a\xa3"
        "GPU");
    check_places(b, 0, 4, 4, 0, 3, 8);
    /* Of another adapter, and behind a block that was never told: nobody's here. */
    READ(b, 11,
        "\x92\x00\x92\x96\xab"
        "BlockStored\x91\x2c\xc0\x94\x01\x02\x03\x04\x04\x07"
        "\x96\xab"
        "BlockStored\x91\x2d\x63\x94\x0d\x0e\x0f\x10\x04\xc0");
    check_places(b, 0, 4, 4, 0, 3, 8);
    READ(b, 13, "\x92\x00\x90"); /* 12 was lost */
    check_places(b, 0, 0, 0, 0, N, 0);
    /* Behind what was there before anybody listened. */
    READ(b, 14,
        "\x92\x00\x91\x96\xab"
        "BlockStored\x91\x2e\x63\x94\x09\x0a\x0b\x0c\x04\xc0");
    check_places(b, 4, 0, 0, 0, 7, 0);
    remote_blocks_free(b);
}

static void test_the_last_token_is_always_computed(void **state)
{
    remote_blocks *b = remote_blocks_new();
    remote_block_counts c;
    READ(b, 0, STORED_NAMED);
    remote_blocks_count(b, ids, 8, 0, &c, NULL);
    assert_int_equal(c.found, 4);
    assert_int_equal(c.n[REMOTE_BLOCK_GPU], 8);
    remote_blocks_count(b, ids, 0, 0, &c, NULL);
    assert_int_equal(c.found, 0);
    remote_blocks_free(b);
}

/* A thousand blocks in a chain, half of them gone again: tables grow, names are found. */
static void test_many(void **state)
{
    enum { MANY = 5000 };
    remote_blocks *b = remote_blocks_new();
    int32_t all[2 * MANY];
    for (int i = 0; i < MANY; i++) {
        char one[] = "\x92\x00\x91\x96\xab"
                     "BlockStored\x91\xcd..\xcd..\x92\xcd..\x07\x02\xc0";
        const size_t at = 5 + 11 + 2;
        all[2 * i] = i, all[2 * i + 1] = 7;
        one[at] = (char)((i + 1) >> 8), one[at + 1] = (char)(i + 1);
        one[at + 3] = (char)(i >> 8), one[at + 4] = (char)i;
        one[at + 7] = (char)(i >> 8), one[at + 8] = (char)i;
        if (!i) { /* the first has nothing in front */
            READ(b, 0,
                "\x92\x00\x91\x96\xab"
                "BlockStored\x91\x01\xc0\x92\x00\x07\x02\xc0");
            continue;
        }
        read_message(b, (uint64_t)i, one, sizeof one - 1);
    }
    remote_block_counts c;
    remote_blocks_count(b, all, 2 * MANY, 0, &c, NULL);
    assert_int_equal(c.n[REMOTE_BLOCK_GPU], 2 * MANY);
    READ(b, MANY,
        "\x92\x00\x91\x92\xac"
        "BlockRemoved\x91\xcd\x07\xd1"); /* 2001 */
    remote_blocks_count(b, all, 2 * MANY, 0, &c, NULL);
    assert_int_equal(c.found, 4000);
    assert_true(c.ends_in_gone);
    remote_blocks_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_msgpack),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_unnamed),
        cmocka_unit_test(test_the_last_token_is_always_computed),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
