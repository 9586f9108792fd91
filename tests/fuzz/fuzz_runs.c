/*
 * Any bytes as a script: every file that is told lies below the root and is there, each of a few that are named behind an interpreter is
 * told, and the sum of a line is the same twice.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "scratch.h"
#include "tools/guard/runs.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void on_file(void *user, const char *path)
{
    struct stat st;
    char *whole = base_fs_join(user, path);
    char *real = realpath(whole, NULL);
    if (!real || strncmp(real, user, strlen(user)) != 0 || stat(whole, &st) || !S_ISREG(st.st_mode)) abort();
    free(real);
    free(whole);
}

static void on_wanted(void *user, const char *path)
{
    bool *found = user;
    *found = *found || !strcmp(path, "a/x.sh");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static char *root;
    if (!root) {
        root = realpath(scratch_folder(), NULL);
        scratch_put("a/x.sh", "true\n", 5);
        scratch_put("Makefile", "all:\n", 5);
        scratch_put("a/b/x.py", "pass\n", 5);
        scratch_put("x", "\0", 1);
        char *link = base_fs_join(root, "out"), *program = base_fs_join(root, "x");
        if (symlink("/etc/passwd", link) || chmod(program, 0755)) abort();
        free(link);
        free(program);
    }
    if (n > 1 << 14) return 0;
    bool found = false;
    base_buf line = {0};
    tool__runs(root, (const char *)bytes, n, on_file, root);
    for (size_t i = 0; i < n; i++) base_buf_putc(&line, bytes[i] ? (char)bytes[i] : ' ');
    base_buf_puts(&line, "");
    char *once = tool_runs_sum(root, line.len ? line.data : ""),
         *twice = tool_runs_sum(root, line.len ? line.data : "");
    if (!once != !twice || (once && strcmp(once, twice) != 0)) abort();
    free(once);
    free(twice);
    /* Whatever stood before, a line's end begins anew; but for more files than are told, and a line that goes on. */
    if (n < 64) {
        base_buf_puts(&line, " \nsh a/x.sh\n");
        tool__runs(root, line.data, line.len, on_wanted, &found);
        if (!found) abort();
    }
    base_buf_free(&line);
    return 0;
}
