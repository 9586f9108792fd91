/*
 * A configuration that includes others: whatever libgit2 reads because of it was told before. Input: .git/config, a NUL byte, a file
 * `more` beside it.
 */
#include "tools/file/git_includes.h"

#include <git2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void tell(void *user, const char *path)
{
    size_t *n_there = user;
    if (*path != '/') abort();
    if (!access(path, F_OK)) ++*n_there;
}

/* Did it read a file beside the first? */
static bool git_follows(const char *path)
{
    git_config *config = NULL;
    git_config_iterator *all = NULL;
    git_config_entry *entry;
    bool follows = false;
    if (!git_config_open_ondisk(&config, path) && !git_config_iterator_new(&all, config))
        while (!follows && !git_config_next(&entry, all)) follows = entry->include_depth > 0;
    git_config_iterator_free(all);
    git_config_free(config);
    return follows;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static bool is_open;
    if (n > 1 << 12) return 0;
    if (!is_open) {
        git_libgit2_init();
        setenv("HOME", scratch_folder(), 1);
        scratch_put("tree/.git/leaf", "[kvist]\n\tleaf = 1\n", 18);
        is_open = true;
    }
    char *config = scratch_part(&bytes, &n), *more = scratch_part(&bytes, &n);
    base_buf path = {0};
    size_t n_there = 0;
    scratch_put("tree/.git/config", config, strlen(config));
    scratch_put("tree/.git/more", more, strlen(more));
    base_buf_printf(&path, "%s/tree/.git/config", scratch_folder());
    char *found = tool__git_includes(path.data, tell, &n_there);
    if (!found && !n_there && git_follows(path.data)) abort();
    free(found);
    base_buf_free(&path);
    free(config);
    free(more);
    return 0;
}
