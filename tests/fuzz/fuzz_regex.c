/* Any pattern on any text: a match lies inside, and the work has an end. Input: the pattern, a NUL byte, the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "scratch.h"
#include "tools/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n > 4096) return 0;
    char *pattern = scratch_part(&bytes, &n), *text = malloc(n ? n : 1); /* exactly as long as the text */
    if (!text) abort();
    memcpy(text, bytes, n);
    for (int folds_case = 0; folds_case < 2; folds_case++) {
        tool_regex *r = NULL;
        base_err err = {0};
        if (tool__regex_open(&r, pattern, folds_case, NULL, &err)) {
            if (!*err.msg) abort();
            continue;
        }
        for (size_t at = 0, found; at <= n && (found = tool__regex_find(r, text, at, n)) != SIZE_MAX;
             at = found + 1)
            if (found < at || found > n) abort();
        tool__regex_close(r);
    }
    free(text);
    free(pattern);
    return 0;
}
