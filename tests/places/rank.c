/*
 * Ranks the functions of a tree for requests: a JSON line in ({"files": [...], "request": "..."}: what of DIR is indexed
 * now), a JSON line out, with the ranking by the tree alone ("ranked"), the one with the history of its branch ("told") and the
 * milliseconds that reading the history took. Used by scripts/bench-places; no test depends on its numbers.
 *
 *   rank DIR
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "code/rank.h"
#include "tools/tree/git_bound.h"
#include "tools/tree/history.h"

enum { DEPTH = 64, MAX_FILE = 1 << 22 };

static bool has(const base_json *files, const char *path)
{
    for (const base_json *f = files->first; f != NULL; f = f->next)
        if (strcmp(f->string, path) == 0) return true;
    return false;
}

/* The index holds these files as they are now, and no others. */
static void read_tree(code_index *x, const char *dir, const base_json *files)
{
    char **old = code_index_paths(x);
    for (size_t i = 0; old != NULL && old[i] != NULL; i++)
        if (!has(files, old[i])) code_index_update(x, old[i], NULL, 0);
    code_index_paths_free(old);
    for (const base_json *f = files->first; f != NULL; f = f->next) {
        base_buf full = {0}, text = {0};
        base_buf_printf(&full, "%s/%s", dir, f->string);
        if (base_fs_read(full.data, MAX_FILE, &text, NULL) == 0)
            code_index_update(x, f->string, text.data != NULL ? text.data : "", text.len);
        base_buf_free(&full);
        base_buf_free(&text);
    }
}

static void put_ranked(const code_index *x, const code_history *history, const char *request, base_buf *out)
{
    code_ranked *ranked = NULL;
    const uint32_t n = code_index_rank(x, history, request, DEPTH, &ranked);
    base_buf_putc(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        base_buf_puts(out, i ? ",{\"path\":" : "{\"path\":");
        base_json_put_str(out, ranked[i].path, strlen(ranked[i].path));
        base_buf_puts(out, ",\"name\":");
        base_json_put_str(out, ranked[i].name, strlen(ranked[i].name));
        base_buf_printf(out, ",\"line\":%u,\"line_end\":%u,\"score\":%.3f}", ranked[i].line,
            ranked[i].line_end, ranked[i].score);
    }
    base_buf_putc(out, ']');
    code_ranked_free(ranked, n);
}

/* The branch is another one for each request: DIR is checked out anew. */
static void answer(const code_index *x, const char *dir, const base_json *asked)
{
    const char *request = base_json_str(asked, "request", "");
    base_buf out = {0};
    git_repository *repo = NULL;
    const uint64_t from = base_clock_ns();
    code_history *history = git_repository_open(&repo, dir) ? NULL : tool__history_read(repo, NULL);
    base_buf_printf(&out, "{\"of\":%u,\"ms\":%.1f,\"changes\":%u,\"ranked\":", code_index_chunks(x),
        (double)(base_clock_ns() - from) / 1e6, history ? code_history_n(history) : 0);
    put_ranked(x, NULL, request, &out);
    base_buf_puts(&out, ",\"told\":");
    put_ranked(x, history, request, &out);
    base_buf_putc(&out, '}');
    code_history_free(history);
    git_repository_free(repo);
    puts(out.data);
    fflush(stdout);
    base_buf_free(&out);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    tool__git_start();
    code_grammars *g = code_grammars_open();
    code_index *x = code_index_new(g);
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        base_json_doc *doc;
        if (base_json_parse(line, (size_t)n, &doc, NULL) != 0) return 1;
        const base_json *files = base_json_get(base_json_root(doc), "files");
        if (files != NULL) read_tree(x, argv[1], files);
        answer(x, argv[1], base_json_root(doc));
        base_json_free(doc);
    }
    free(line);
    code_index_free(x);
    code_grammars_close(g);
    return 0;
}
