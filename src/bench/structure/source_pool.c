/* Functions of real source text; see bench/structure/source_pool.h. */
#include "bench/structure/source_pool.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"

enum {
    LEAST_LINES = 5,
    MOST_LINES = 40,
    DEEPEST = 8,
};

uint64_t bench_draw(uint64_t seed, uint64_t what, uint64_t i)
{
    const uint64_t key[] = {what, i};
    return base_hash64(key, sizeof key, seed);
}

static bool is_foreign(const char *name)
{
    static const char *const words[] = {
        "test", "spec", "example", "fixture", "vendor", "node_modules", "bench", "doc"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i])) return true;
    return *name == '.';
}

static uint32_t count_lines(const char *text, size_t n)
{
    uint32_t lines = 1;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    return lines;
}

static bool has_name(const bench_pool *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->items[i].name, name)) return true;
    return false;
}

static void add_functions(bench_pool *p, code_grammars *g, const char *path)
{
    base_buf text = {0};
    if (!base_fs_read(path, BENCH_MOST_FILE, &text, NULL) && text.len &&
        code_language(path, text.data, text.len)) {
        code_file *f = code_parse(g, path, text.data, text.len);
        const size_t before = p->n;
        for (uint32_t i = 0; i < f->n_definitions; i++) {
            const code_definition *d = &f->definitions[i];
            const size_t n = d->to - d->from;
            const bool is_function = !strcmp(d->what, "function") || !strcmp(d->what, "method");
            if (!is_function || d->body_to <= d->body_from || n < BENCH_LEAST_FUNCTION ||
                n > BENCH_MOST_FUNCTION)
                continue;
            const uint32_t lines = count_lines(text.data + d->from, n);
            if (lines < LEAST_LINES || lines > MOST_LINES || strlen(d->name) < 3 || has_name(p, d->name))
                continue;
            base_grow(&p->items, &p->cap, p->n + 1, sizeof *p->items);
            p->items[p->n++] = (bench_function){.path = base_xstrdup(path),
                .name = base_xstrdup(d->name),
                .text = base_xstrndup(text.data + d->from, n)};
        }
        code_file_free(f);
        if (p->n > before) {
            base_grow(&p->files, &p->cap_files, p->n_files + 1, sizeof *p->files);
            p->files[p->n_files++] =
                (bench_function){.path = base_xstrdup(path), .text = base_xstrdup(text.data)};
        }
    }
    base_buf_free(&text);
}

static void walk(bench_pool *p, code_grammars *g, const char *folder, int depth)
{
    struct dirent **names = NULL;
    const int n = depth < DEEPEST ? scandir(folder, &names, NULL, alphasort) : 0;
    for (int i = 0; i < n; i++) {
        struct stat st;
        base_buf path = {0};
        base_buf_printf(&path, "%s/%s", folder, names[i]->d_name);
        if (!is_foreign(names[i]->d_name) && !lstat(path.data, &st)) {
            if (S_ISDIR(st.st_mode)) walk(p, g, path.data, depth + 1);
            if (S_ISREG(st.st_mode)) add_functions(p, g, path.data);
        }
        base_buf_free(&path);
        free(names[i]);
    }
    free(names);
}

int bench_pool_load(bench_pool *ret, code_grammars *g, const char *folder, base_err *err)
{
    const char *slash = strrchr(folder, '/');
    *ret = (bench_pool){.source = base_xstrdup(slash && slash[1] ? slash + 1 : folder)};
    walk(ret, g, folder, 0);
    if (ret->n >= BENCH_CHUNKS) return 0;
    const size_t n = ret->n;
    bench_pool_free(ret);
    return base_fail(err, BASE_E_NOT_FOUND, "%s holds %zu functions of a fitting size; %d are needed", folder,
        n, BENCH_CHUNKS);
}

bench_function bench_function_copy(const bench_function *f)
{
    return (bench_function){.path = base_xstrdup(f->path),
        .name = base_xstrdup(f->name),
        .text = base_xstrdup(f->text),
        .wrong = f->wrong ? base_xstrdup(f->wrong) : NULL,
        .right = f->right ? base_xstrdup(f->right) : NULL};
}

void bench_function_free(bench_function *f)
{
    free(f->path);
    free(f->name);
    free(f->text);
    free(f->wrong);
    free(f->right);
}

void bench_pool_free(bench_pool *p)
{
    for (size_t i = 0; i < p->n; i++) bench_function_free(&p->items[i]);
    for (size_t i = 0; i < p->n_files; i++) bench_function_free(&p->files[i]);
    free(p->items);
    free(p->files);
    free(p->source);
    *p = (bench_pool){.n = 0};
}

/*
 * The place in a round's order: a walk through all places by a step that has no factor in common with their
 * number.
 */
const bench_function *bench_pool_next(bench_pool *p, uint64_t seed, uint64_t *ret_round)
{
    const uint64_t round = p->cursor / p->n, place = p->cursor % p->n,
                   from = bench_draw(seed, 1, round) % p->n;
    uint64_t step = 1 + bench_draw(seed, 2, round) % p->n;
    for (;; step++) {
        uint64_t a = step, b = p->n;
        while (b) {
            const uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) break;
    }
    p->cursor++;
    if (ret_round) *ret_round = round;
    return &p->items[(from + place * (step % p->n)) % p->n];
}
