/*
 * Messages of an engine's cache: the first byte of each is its number, the part behind it (to the next 0xC1, which
 * begins no value) MessagePack. What becomes JSON is JSON, and each token of a sequence is in one place.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "remote/blocks.h"
#include "remote/msgpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_json(const uint8_t *bytes, size_t n)
{
    base_buf text = {0};
    base_json_doc *doc = NULL;
    base_err err = {0};
    if (remote_msgpack_put_json(bytes, n, &text, &err)) {
        if (text.len || !err.msg[0]) abort();
    } else if (base_json_parse(text.data, text.len, &doc, &err)) {
        abort();
    }
    base_json_free(doc);
    base_buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    enum { N = 24 };
    int32_t ids[N];
    for (int32_t i = 0; i < N; i++) ids[i] = i % 16;
    if (n > 1 << 14) return 0;
    remote_blocks *b = remote_blocks_new();
    for (const uint8_t *end = bytes + n; bytes < end;) {
        const uint8_t number = *bytes++, *stop = memchr(bytes, 0xC1, (size_t)(end - bytes));
        const size_t len = (size_t)((stop ? stop : end) - bytes);
        check_json(bytes, len);
        remote_blocks_read(b, number, bytes, len, NULL);
        remote_block_counts c;
        uint32_t sum = 0;
        remote_blocks_count(b, ids, N, 0, &c, NULL);
        for (int place = 0; place < REMOTE_N_BLOCK_PLACES; place++) sum += c.n[place];
        if (sum != N || c.found >= N) abort();
        bytes += len + (stop != NULL);
    }
    remote_blocks_free(b);
    return 0;
}
