/*
 * A diff whose hunks get headings by what they change, in a tree of one file: but for what stands behind "@@" every line is there as it
 * was. Input: the file, a NUL byte, the diff.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/retrieve/retrieve.h"
#include "base/mem.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The text without what its lines of "@@ ... @@" say behind that. */
static void put_plain(const char *s, size_t n, base_buf *out)
{
    for (size_t at = 0; at < n;) {
        const char *newline = memchr(s + at, '\n', n - at);
        const size_t len = newline ? (size_t)(newline - s) - at : n - at;
        const char *end = len > 4 && !memcmp(s + at, "@@ ", 3) ? memmem(s + at + 3, len - 3, " @@", 3) : NULL;
        base_buf_add(out, s + at, end ? (size_t)(end - s) - at : len);
        base_buf_putc(out, '\n');
        at += len + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static agent a;
    base_buf headed = {0}, before = {0}, after = {0};
    const unsigned char *bytes = data;
    if (n > 1 << 14) return 0;
    if (!a.workspace) {
        const tool_workspace_options o = {.dir = scratch_folder()};
        scratch_put("tree.c", "", 0);
        if (tool_workspace_open(&a.workspace, &o, NULL)) abort();
    }
    char *file = scratch_part(&bytes, &n), *diff = base_xstrndup((const char *)bytes, n);
    scratch_put("tree.c", file, strlen(file));
    agent__put_headed(&a, diff, strlen(diff), &headed);
    put_plain(diff, strlen(diff), &before);
    put_plain(headed.data ? headed.data : "", headed.len, &after);
    assert(before.len == after.len && (!before.len || !memcmp(before.data, after.data, before.len)));
    base_buf_free(&headed);
    base_buf_free(&before);
    base_buf_free(&after);
    free(file);
    free(diff);
    return 0;
}
