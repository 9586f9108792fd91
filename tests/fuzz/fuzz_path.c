/* Paths as a model writes them: what is let through stays below the root, and its shown form leads back to it. */
#include "tools/file/safe_path.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const tool_root root = {.path = (char *)"/r"};
    char *given = base_xstrndup((const char *)bytes, n), *clean = NULL, *again = NULL;
    if (!tool__path_clean(&root, given, &clean, NULL)) {
        if (*clean == '/' || !strcmp(clean, "..") || !strncmp(clean, "../", 3) || strstr(clean, "/../"))
            abort();
        base_buf shown = {0};
        tool__path_show(&shown, clean);
        /* Names that end in blanks or backquotes are trimmed unless quoted; everything else must come back. */
        bool is_plain = shown.len && shown.data[0] != '"';
        char last = shown.len ? shown.data[shown.len - 1] : 0;
        if (shown.len &&
            !(is_plain && (last == ' ' || last == '`' || *shown.data == ' ' || *shown.data == '`'))) {
            if (tool__path_clean(&root, shown.data, &again, NULL) || strcmp(again, clean)) abort();
        }
        base_buf_free(&shown);
    }
    free(again);
    free(clean);
    free(given);
    return 0;
}
