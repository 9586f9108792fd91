/* The undo journal: damaged lines are skipped, what is read is a path below the root and nothing else. */
#include "tools/edit/undo.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    tool_undo_journal j = {0};
    size_t whole = tool__undo_parse((const char *)bytes, n, &j);
    if (whole > n || (whole && bytes[whole - 1] != '\n')) abort();
    for (size_t i = 0; i < j.n; i++) {
        const tool_undo_record *r = &j.items[i];
        if (r->path[0] == '/' || !strncmp(r->path, "..", 3) || strstr(r->path, "/../") ||
            !strncmp(r->path, ".git/", 5))
            abort();
        if (r->made > strlen(r->path)) abort();
    }
    tool__undo_journal_free(&j);
    return 0;
}
