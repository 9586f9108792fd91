/* See bench/common/result_file.h. */
#include "bench/common/result_file.h"

#include <string.h>
#include <unistd.h>

#include "base/fs.h"

enum { FILE_MOST = 64 << 20 };

static void each_line(const base_buf *file, bench_line_fn *fn, void *user)
{
    for (size_t at = 0; at < file->len;) {
        const char *end = memchr(file->data + at, '\n', file->len - at);
        if (!end) break;
        fn(user, file->data + at, (size_t)(end - file->data) - at);
        at = (size_t)(end - file->data) + 1;
    }
}

int bench_read_lines(const char *path, bench_line_fn *fn, void *user, base_err *err)
{
    base_buf file = {0};
    int e = base_fs_read(path, FILE_MOST, &file, err);
    if (!e) each_line(&file, fn, user);
    base_buf_free(&file);
    return e;
}

typedef struct each_result {
    bench_result_fn *fn;
    void *user;
} each_result;

static void parse_line(void *user, const char *line, size_t n)
{
    const each_result *each = user;
    base_json_doc *doc = NULL;
    if (base_json_parse(line, n, &doc, NULL)) return;
    each->fn(each->user, base_json_root(doc));
    base_json_free(doc);
}

void bench_each_result(const base_buf *file, bench_result_fn *fn, void *user)
{
    each_line(file, parse_line, &(each_result){fn, user});
}

int bench_read_results(const char *path, bench_result_fn *fn, void *user, base_err *err)
{
    return bench_read_lines(path, parse_line, &(each_result){fn, user}, err);
}

int bench_open_out(FILE **ret, const char *path, bool resume, base_buf *ret_old, base_err *err)
{
    base_buf old = {0};
    *ret = stdout;
    if (!path) return 0;
    int e = base_fs_exists(path) ? base_fs_read(path, FILE_MOST, &old, err) : 0;
    const char *end = old.len ? memrchr(old.data, '\n', old.len) : NULL;
    const size_t whole = end ? (size_t)(end - old.data) + 1 : 0;
    if (!e && old.len && !resume)
        e = base_fail(err, BASE_E_USAGE, "%s holds results already: --resume goes on with them", path);
    /* A line that was cut by the end of a run would spoil the next one. */
    if (!e && whole < old.len && truncate(path, (off_t)whole))
        e = base_fail_sys(err, "cannot cut %s behind its last whole line", path);
    if (!e) *ret = fopen(path, "ae");
    if (!e && !*ret) e = base_fail_sys(err, "cannot write %s", path);
    if (!e && ret_old) base_buf_add(ret_old, old.data, whole);
    base_buf_free(&old);
    return e;
}

bool bench_is_wanted(const char *words, char separator, const char *name)
{
    const char stop[] = {separator, 0};
    if (!words) return true;
    for (const char *word = words; *word;) {
        const size_t n = strcspn(word, stop);
        if (n && *word == '=' && !strncmp(word + 1, name, n - 1) && !name[n - 1]) return true;
        if (n && *word != '=' && !strncmp(word, name, n)) return true;
        word += n + (word[n] == separator);
    }
    return false;
}
