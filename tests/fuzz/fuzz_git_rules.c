/* Any bytes as rules of git: what a line says does not hang on the lines around it, and more of a line makes it no less. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/file/git_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *text = (const char *)bytes;
    bool any = false;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        const size_t len = end ? (size_t)(end - text) - at : n - at;
        const bool is_endless = tool__git_rules_are_endless(text + at, len);
        if (tool__git_rules_are_endless(text + at, len / 2) && !is_endless) abort();
        any |= is_endless;
        at += len + 1;
    }
    if (any != tool__git_rules_are_endless(text, n)) abort();
    return 0;
}
