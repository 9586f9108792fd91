/*
 * How fast files become an index: paths on stdin (git ls-files), read below the folder given. Prints one JSON line: bytes, MB/s
 * of parsing with graphs, of a cold index, time of a second start from the store, edits. By hand; numbers go to docs/diary.md.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "code/chunk.h"
#include "code/graph.h"
#include "code/index.h"

typedef struct source {
    char *path;
    base_buf text;
} source;

static double seconds(uint64_t since)
{
    return (double)(base_clock_ns() - since) / 1e9;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double share(double *ms, size_t n, double part)
{
    qsort(ms, n, sizeof *ms, by_value);
    return n != 0 ? ms[(size_t)(part * (double)(n - 1))] : 0;
}

int main(int argc, char **argv)
{
    char line[4096];
    source *files = NULL;
    size_t n = 0, cap = 0, bytes = 0, sourced = 0;
    const char *root = argc > 1 ? argv[1] : ".";
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        base_buf path = {0};
        base_buf_printf(&path, "%s/%s", root, line);
        base_grow(&files, &cap, n + 1, sizeof *files);
        files[n] = (source){.path = base_xstrdup(line)};
        if (base_fs_read(path.data, 1 << 20, &files[n].text, NULL) == 0 && files[n].text.len != 0)
            bytes += files[n++].text.len;
        base_buf_free(&path);
    }
    code_grammars *g = code_grammars_open();
    const code_grammar_info *info;
    code_grammars_list(g, &info); /* loading grammars is not what is measured */
    uint64_t start = base_clock_ns();
    size_t functions = 0, edges[CODE_N_EDGE_KINDS] = {0}, spans = 0;
    for (size_t i = 0; i < n; i++) {
        code_graph *x;
        if (code_language(files[i].path, files[i].text.data, files[i].text.len) == NULL) continue;
        code_file *f = code_parse_graph(g, files[i].path, files[i].text.data, files[i].text.len, &x);
        if (f->language != NULL) sourced += files[i].text.len;
        spans += f->n_anchors;
        functions += x->n_functions;
        for (uint32_t k = 0; k < x->n_functions; k++)
            for (int e = 0; e < CODE_N_EDGE_KINDS; e++) edges[e] += x->functions[k].edges[e];
        code_graph_free(x);
        code_file_free(f);
    }
    const double graph_s = seconds(start);
    start = base_clock_ns();
    for (size_t i = 0; i < n; i++)
        code_file_free(code_parse(g, files[i].path, files[i].text.data, files[i].text.len));
    const double parse_s = seconds(start);
    const size_t before = mallinfo2().uordblks;
    start = base_clock_ns();
    code_index *x = code_index_new(g);
    for (size_t i = 0; i < n; i++) code_index_update(x, files[i].path, files[i].text.data, files[i].text.len);
    const double index_s = seconds(start);
    const size_t held = mallinfo2().uordblks - before;
    const char *store = argc > 2 ? argv[2] : NULL;
    double second_s = 0;
    if (store != NULL) {
        base_err err = {0};
        if (code_index_save(x, store, &err) != 0) fprintf(stderr, "%s\n", err.msg);
        start = base_clock_ns();
        code_index *y = code_index_new(g);
        code_index_load(y, store, NULL);
        for (size_t i = 0; i < n; i++)
            code_index_update(y, files[i].path, files[i].text.data, files[i].text.len);
        second_s = seconds(start);
        code_index_free(y);
    }
    double *edits = base_xcalloc(300, sizeof *edits), *first = base_xcalloc(300, sizeof *first);
    size_t n_edits = 0;
    uint64_t random = 88172645463325252u;
    for (size_t k = 0; k < 300 && n != 0; k++) { /* a letter typed somewhere in some file */
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        source *s = &files[random % n];
        if (code_language(s->path, s->text.data, s->text.len) == NULL) continue;
        char *letters[2], were[2];
        for (int again = 0; again < 2; again++) { /* the second with its tree kept, as after a read */
            letters[again] = &s->text.data[random / (7 + again) % s->text.len];
            were[again] = *letters[again];
            *letters[again] = (char)('a' + random / 3 % 26);
            start = base_clock_ns();
            code_index_update(x, s->path, s->text.data, s->text.len);
            (again ? edits : first)[n_edits] = seconds(start) * 1000;
        }
        for (int again = 2; again-- > 0;) *letters[again] = were[again]; /* hundreds of errors are no file */
        code_index_update(x, s->path, s->text.data, s->text.len);
        n_edits++;
    }
    printf("{\"files\":%zu,\"bytes\":%zu,\"parsed_bytes\":%zu,\"functions\":%zu,\"anchors\":%zu,\"flow\":%zu,"
           "\"data\":%zu,"
           "\"control\":%zu,\"parse_s\":%.3f,\"graph_s\":%.3f,\"graph_mb_s\":%.1f,\"index_s\":%.3f,\"index_"
           "mb_s\":%.1f,"
           "\"index_bytes\":%zu,\"second_s\":%.3f,\"first_edit_p99_ms\":%.2f,\"edit_p50_ms\":%.2f,\"edit_p99_"
           "ms\":%.2f,\"edit_max_ms\":%.2f}\n",
        n, bytes, sourced, functions, spans, edges[0], edges[1], edges[2], parse_s, graph_s,
        (double)sourced / 1e6 / graph_s, index_s, (double)bytes / 1e6 / index_s, held, second_s,
        share(first, n_edits, .99), share(edits, n_edits, .5), share(edits, n_edits, .99),
        share(edits, n_edits, 1));
    code_index_free(x);
    code_grammars_close(g);
    for (size_t i = 0; i < n; i++) {
        free(files[i].path);
        base_buf_free(&files[i].text);
    }
    free(files);
    free(edits);
    free(first);
    return 0;
}
