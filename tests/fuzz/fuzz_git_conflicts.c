/* Any bytes as git's list of conflicts: what is asked about is a path of the list, and a name that leaves the tree is refused unasked. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/guard/git_conflicts.h"

typedef struct asked {
    const uint8_t *bytes;
    size_t n, times;
} asked;

static bool lead_nowhere(void *user, const char *path)
{
    asked *a = user;
    const size_t n = strlen(path);
    a->times++;
    if (!n || *path == '/' || strstr(path, "../") == path || strstr(path, "/../")) abort();
    if (!memmem(a->bytes, a->n, path, n)) abort();
    return false;
}

static bool lead_out(void *user, const char *path)
{
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    asked a = {.bytes = bytes, .n = n};
    const bool is_bad = tool__git_conflicts_refused((const char *)bytes, n, lead_nowhere, &a);
    if (tool__git_conflicts_refused((const char *)bytes, n, lead_out, NULL) != (is_bad || a.times)) abort();
    return 0;
}
