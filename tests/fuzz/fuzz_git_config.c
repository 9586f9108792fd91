/* Any bytes as a repository's configuration in the tree: every path that it is said to name lies below the root. */
#include <fcntl.h>
#include <git2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "scratch.h"
#include "tools/guard/git_obeys.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_path(void *user, const char *path, bool is_hooks)
{
    size_t *n_told = user;
    ++*n_told;
    if (!*path) abort();
    for (const char *p = path;;) {
        const size_t part = strcspn(p, "/");
        if (!part || (part == 1 && *p == '.') || (part == 2 && p[0] == '.' && p[1] == '.')) abort();
        if (!p[part]) return;
        p += part + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static tool_root root;
    size_t n_told = 0;
    if (!root.path) {
        git_libgit2_init();
        setenv("HOME", scratch_folder(), 1);
        scratch_put("tree/tools/clean.py", "", 0);
        scratch_put("tree/more", "[core]\n\thooksPath = husky\n[include]\n\tpath = more\n", 50);
        base_buf path = {0};
        base_buf_printf(&path, "%s/tree", scratch_folder());
        root = (tool_root){.path = base_buf_take(&path), .has_openat2 = true};
        root.fd = open(root.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root.fd < 0) abort();
    }
    if (n > 1 << 14) return 0;
    scratch_put("tree/.git/config", bytes, n);
    tool__git_obeyed(&root, ".git/config", NULL, check_path, &n_told);
    /* A path as a file of it names one. */
    char *given = base_xstrndup((const char *)bytes, n),
         *below = tool__git_path_below(&root, root.path, given);
    if (below) check_path(&n_told, below, false);
    free(given);
    free(below);
    return 0;
}
