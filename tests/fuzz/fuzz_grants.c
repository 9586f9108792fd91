/*
 * Any bytes as the file that says what a tree's commands may read (--allow-read): a grant is found behind its adding and nothing else
 * is, and to take it back leaves every other line as it was. Input: the tree, a NUL byte, the path, a NUL byte, the file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/approve/approvals.h"
#include "base/fs.h"
#include "base/show.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const agent_approval_kind kind = AGENT_APPROVAL_READ;
    base_buf before = {0}, behind = {0}, added = {0};
    if (n > 1 << 14) return 0;
    setenv("KVIST_HOME", scratch_folder(), 1);
    char *path = base_fs_home(BASE_HOME_DATA, "allow-read"), *tree = scratch_part(&bytes, &n),
         *what = scratch_part(&bytes, &n), *folder = base_fs_home(BASE_HOME_DATA, NULL);
    if (base_fs_mkdirs(folder, NULL) || base_fs_write(path, n ? (const char *)bytes : "", n, 0600, NULL))
        abort();
    base_show(&added, tree, strlen(tree), BASE_SHOW_UTF8);
    base_buf_putc(&added, '\t');
    base_show(&added, what, strlen(what), BASE_SHOW_UTF8);
    base_buf_putc(&added, '\n');
    const bool was_allowed = agent_approvals_has(kind, tree, what, NULL);
    if (agent_approvals_add(kind, tree, what, NULL)) abort();
    if (!agent_approvals_has(kind, tree, what, NULL)) abort();
    if (base_fs_read(path, 1 << 20, &before, NULL)) abort();
    if (before.len < n || (n && memcmp(before.data, bytes, n))) abort();
    if (was_allowed && before.len != n) abort();
    const agent_approval row = {kind, tree, what};
    if (agent_approvals_remove(&row, NULL)) abort();
    if (agent_approvals_has(kind, tree, what, NULL)) abort();
    if (base_fs_read(path, 1 << 20, &behind, NULL)) abort();
    const char *at = behind.data, *end = at + behind.len;
    for (size_t from = 0; from < before.len;) { /* the file's other lines, in their order */
        const char *line = before.data + from, *stop = memchr(line, '\n', before.len - from);
        const size_t length = stop ? (size_t)(stop - line) + 1 : before.len - from;
        from += length;
        if (length == added.len && !memcmp(line, added.data, length)) continue;
        if ((size_t)(end - at) < length || memcmp(at, line, length)) abort();
        at += length;
    }
    if (at && at != end) abort();
    base_buf_free(&added);
    base_buf_free(&before);
    base_buf_free(&behind);
    free(path);
    free(folder);
    free(tree);
    free(what);
    return 0;
}
