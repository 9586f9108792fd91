/*
 * Measures retrieval: reads a list of files on stdin (git ls-files), indexes them below DIR, asks the questions of one
 * repository and prints a JSON line a question: the rank of the chunk that holds the expected definition, and whether it
 * survives in the 5,200 bytes (1,500 tokens) that go in front of a request. Used by run-retrieval; no test depends on its numbers.
 *
 *   retrieve QUESTIONS REPO DIR [-v] [MODEL]      MODEL: its words that are alike count too
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "code/index.h"
#include "model/forward/alike.h"

enum { BUDGET_BYTES = 5200, LEAST = 6, DEPTH = 20 };

/* 1 + rank of the first hit that holds a definition of the symbol in that file; 0: none. */
static uint32_t rank_of(const code_index *x, const code_hits *h, const char *symbol, const char *file)
{
    code_place *places;
    const uint32_t n = code_index_define(x, symbol, &places);
    uint32_t best = 0;
    bool known = false;
    for (uint32_t p = 0; p < n; p++) {
        if (strcmp(places[p].path, file) != 0 || places[p].is_declaration) continue;
        known = true;
        for (uint32_t i = 0; i < h->n && (best == 0 || i + 1 < best); i++)
            if (strcmp(h->hits[i].path, file) == 0 && h->hits[i].line <= places[p].line &&
                places[p].line <= h->hits[i].line_end)
                best = i + 1;
    }
    if (!known) fprintf(stderr, "no definition of %s in %s\n", symbol, file);
    code_places_free(places, n);
    return best;
}

static uint32_t best_rank(const code_index *x, const code_hits *h, const base_json *q)
{
    uint32_t best = rank_of(x, h, base_json_str(q, "symbol", ""), base_json_str(q, "file", ""));
    const base_json *also = base_json_get(q, "also");
    for (const base_json *a = also != NULL ? also->first : NULL; a != NULL; a = a->next) {
        const uint32_t r = rank_of(x, h, base_json_str(a, "symbol", ""), base_json_str(a, "file", ""));
        if (r != 0 && (best == 0 || r < best)) best = r;
    }
    return best;
}

static void ask(const code_index *x, const base_json *q, bool verbose)
{
    const char *question = base_json_str(q, "question", "");
    code_hits h;
    const uint64_t start = base_clock_ns();
    code_index_search(x, question, DEPTH, &h);
    const double ms = (double)(base_clock_ns() - start) / 1e6;
    const uint32_t rank = best_rank(x, &h, q);
    base_buf line = {0};
    for (uint32_t i = 0; verbose && i < h.n && i < 8; i++)
        printf("  %2u %6.2f %s:%u-%u %s %s [%s]\n", i + 1, h.hits[i].score, h.hits[i].path, h.hits[i].line,
            h.hits[i].line_end, h.hits[i].what, h.hits[i].name, h.hits[i].why);
    code_hits_fit(&h, BUDGET_BYTES, LEAST);
    size_t bytes = 0;
    for (uint32_t i = 0; i < h.n; i++) bytes += h.hits[i].n;
    base_buf_puts(&line, "{\"question\":");
    base_json_put_str(&line, question, strlen(question));
    base_buf_printf(&line, ",\"rank\":%u,\"fits\":%s,\"excerpts\":%u,\"bytes\":%zu,\"ms\":%.2f}", rank,
        best_rank(x, &h, q) != 0 ? "true" : "false", h.n, bytes, ms);
    puts(line.data);
    base_buf_free(&line);
    code_hits_free(&h);
}

static void find_alike(void *user, const base_alike_query *q)
{
    model_alike_find(user, q);
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    const bool verbose = argc > 4 && strcmp(argv[4], "-v") == 0;
    const char *path_of_model = argc > 4 + verbose ? argv[4 + verbose] : NULL;
    model *m = NULL;
    model_alike *words = NULL;
    base_err err = {0};
    if (path_of_model && (model_open(&m, path_of_model, NULL, &err) || model_alike_open(&words, m, &err))) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    const base_alike alike = {words, find_alike};
    code_grammars *g = code_grammars_open();
    code_index *x = code_index_new(g);
    if (words) code_index_set_alike(x, &alike);
    char *path = NULL;
    size_t cap = 0;
    const uint64_t start = base_clock_ns();
    for (ssize_t n; (n = getline(&path, &cap, stdin)) > 0;) {
        if (path[n - 1] == '\n') path[n - 1] = '\0';
        base_buf full = {0}, text = {0};
        base_buf_printf(&full, "%s/%s", argv[3], path);
        if (base_fs_read(full.data, 1 << 24, &text, NULL) == 0)
            code_index_update(x, path, text.data != NULL ? text.data : "", text.len);
        base_buf_free(&full);
        base_buf_free(&text);
    }
    fprintf(stderr, "%s: %u files, %u chunks in %.0f ms\n", argv[2], code_index_files(x),
        code_index_chunks(x), (double)(base_clock_ns() - start) / 1e6);
    FILE *questions = fopen(argv[1], "re");
    for (ssize_t n; questions != NULL && (n = getline(&path, &cap, questions)) > 0;) {
        base_json_doc *doc;
        if (base_json_parse(path, (size_t)n, &doc, NULL) != 0) continue;
        if (strcmp(base_json_str(base_json_root(doc), "repo", ""), argv[2]) == 0)
            ask(x, base_json_root(doc), verbose);
        base_json_free(doc);
    }
    if (questions != NULL) fclose(questions);
    free(path);
    code_index_free(x);
    code_grammars_close(g);
    model_alike_free(words);
    model_close(m);
    return 0;
}
