/* A block for a definition of any text, by words alone: input is the file, a NUL byte, the name, a NUL byte, the block. */
#include "tools/edit/replace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const paths[] = {"a.py", "a.c", "a.js", "a.go", "noname"};
    const uint8_t *first = n ? memchr(bytes, 0, n) : NULL;
    size_t at = first ? (size_t)(first - bytes) : n;
    const uint8_t *second = at + 1 < n ? memchr(bytes + at + 1, 0, n - at - 1) : NULL;
    base_buf text = {0}, why = {0};
    if (!second) return 0;
    base_buf_add(&text, bytes, at);
    char *name = base_xstrdup((const char *)bytes + at + 1);
    size_t from = (size_t)(second - bytes) + 1;
    base_str block = {(const char *)bytes + from, n - from};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        tool_replaced got = {0};
        bool done = tool__replace_definition(NULL, paths[i], &text, name, block, &got, &why);
        if (done && (why.len || got.line < 1 || got.line_end < got.line)) abort();
        if (!done && !why.len) abort();
        tool__replaced_free(&got);
        base_buf_clear(&why);
    }
    free(name);
    base_buf_free(&text);
    base_buf_free(&why);
    return 0;
}
