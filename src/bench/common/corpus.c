/* See bench/common/corpus.h. */
#include "bench/common/corpus.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"

enum { FILE_MOST = 1 << 20 };

static bool is_text(const char *name)
{
    static const char *const endings[] = {".c", ".h", ".go", ".rs", ".js", ".ts", ".py", ".md"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t len = strlen(endings[i]);
        if (n > len && !strcmp(name + n - len, endings[i])) return true;
    }
    return false;
}

static int no_hidden(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* Every text file below a folder, in the order of their paths. */
static int walk(const char *folder, int depth, bench_file_fn *each, void *user, base_err *err)
{
    struct dirent **entries = NULL;
    const int n = scandir(folder, &entries, no_hidden, alphasort);
    if (n < 0) return base_fail_sys(err, "cannot read the folder %s", folder);
    int r = 0;
    for (int i = 0; i < n; i++) {
        struct stat st;
        base_buf path = {0};
        base_buf_printf(&path, "%s/%s", folder, entries[i]->d_name);
        if (!r && !lstat(path.data, &st)) {
            if (S_ISDIR(st.st_mode) && depth < 8) r = walk(path.data, depth + 1, each, user, err);
            if (S_ISREG(st.st_mode) && is_text(path.data) && st.st_size <= FILE_MOST)
                r = each(user, path.data, err);
        }
        base_buf_free(&path);
        free(entries[i]);
    }
    free(entries);
    return r;
}

int bench_walk(const char *folder, bench_file_fn *each, void *user, base_err *err)
{
    return walk(folder, 0, each, user, err);
}

static int add_file(void *user, const char *path, base_err *err)
{
    return base_fs_read(path, FILE_MOST, user, err);
}

int bench_corpus_load(const char *folder, base_buf *out, base_err *err)
{
    int r = walk(folder, 0, add_file, out, err);
    if (!r && out->len < 10000)
        r = base_fail(err, BASE_E_NOT_FOUND, "%s holds too little source text for a document", folder);
    return r;
}
