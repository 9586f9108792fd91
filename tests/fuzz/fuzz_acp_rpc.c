/* Any bytes as a client's messages, cut anywhere: the same lines as in one piece, and each is read or refused. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "acp/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void take_all(base_lines *l, base_buf *ret)
{
    base_buf line = {0};
    for (bool is_too_long; base_lines_take(l, &line, &is_too_long);) {
        if (is_too_long) abort(); /* no input is that long */
        base_json_doc *doc = NULL;
        if (line.len && !base_json_parse(line.data, line.len, &doc, NULL)) {
            base_buf again = {0};
            base_json_put(&again, base_json_root(doc));
            base_json_doc *second = NULL;
            if (base_json_parse(again.data, again.len, &second, NULL))
                abort(); /* an id goes back as it came */
            base_json_free(second);
            base_buf_free(&again);
        }
        base_json_free(doc);
        base_buf_add(ret, line.data, line.len);
        base_buf_putc(ret, '\n');
    }
    base_buf_free(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    base_lines whole = {.most = ACP_MOST_LINE}, cut = {.most = ACP_MOST_LINE};
    base_buf first = {0}, second = {0};
    base_lines_add(&whole, (const char *)bytes, n);
    take_all(&whole, &first);
    for (size_t at = 0; at < n;) {
        size_t piece = (size_t)bytes[at] % 7 + 1;
        if (piece > n - at) piece = n - at;
        base_lines_add(&cut, (const char *)bytes + at, piece);
        take_all(&cut, &second);
        at += piece;
    }
    if (first.len != second.len || (first.len && memcmp(first.data, second.data, first.len) != 0)) abort();
    base_lines_free(&whole);
    base_lines_free(&cut);
    base_buf_free(&first);
    base_buf_free(&second);
    return 0;
}
