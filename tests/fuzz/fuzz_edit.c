/* OLD/NEW blocks and line ranges against any text: input is the file, a NUL byte, the payload. */
#include "tools/edit/replace.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const uint8_t *cut = n ? memchr(bytes, 0, n) : NULL;
    size_t split = cut ? (size_t)(cut - bytes) : n / 2;
    base_buf text = {0}, got = {0}, note = {0}, why = {0};
    base_buf_add(&text, bytes, split);
    base_str payload = {(const char *)bytes + split + (cut != NULL), n - split - (cut != NULL)};
    bool done = tool__replace_blocks("file.py", &text, payload, &got, &note, &why);
    if (done == (why.len > 0)) abort(); /* a refusal says why, a success nothing */
    base_buf_free(&got);
    base_buf_clear(&why);
    size_t from = n ? bytes[0] % 8 : 0, to = n ? bytes[n - 1] % 8 : 0;
    done = tool__replace_lines("file.py", &text, from, to, payload, &got, &why);
    if (done == (why.len > 0)) abort();
    base_buf_free(&text);
    base_buf_free(&got);
    base_buf_free(&note);
    base_buf_free(&why);
    return 0;
}
