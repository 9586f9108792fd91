/* Lines to write and files to read; see bench/structure/bugs.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/structure/bugs.h"

enum { CHUNK_BYTES = 1700 /* about 512 tokens of code */ };

/*
 * The skip-th line behind the third that calls a function of the pool other than f itself: where it begins;
 * NULL: none.
 */
static const char *find_call(
    const bench_pool *p, const bench_function *f, uint64_t skip, const bench_function **ret)
{
    const char *at = f->text;
    for (uint32_t line = 0; at && *at; line++) {
        const char *end = strchr(at, '\n');
        const size_t n = end ? (size_t)(end - at) : strlen(at), indent = strspn(at, " \t");
        size_t pos = 0, from, to;
        const bench_function *callee = NULL;
        while (!callee && line >= 3 && n > indent + 8 && n < 100 && bench_is_code(at, at + indent) &&
               code_next_identifier(at, n, &pos, &from, &to)) {
            if (to >= n || at[to] != '(') continue;
            for (size_t i = 0; i < p->n && !callee; i++)
                if (&p->items[i] != f && strlen(p->items[i].name) == to - from &&
                    !memcmp(p->items[i].name, at + from, to - from))
                    callee = &p->items[i];
        }
        if (callee && !skip--) {
            *ret = callee;
            return at;
        }
        at = end ? end + 1 : NULL;
    }
    return NULL;
}

/* Is it a chunk, or does a question quote it? Then its text would be there twice, with the line to write. */
static bool is_used(const bench_sample *s, const bench_function *const *callers, const bench_function *f)
{
    for (uint32_t i = 0; i < s->n_questions; i++)
        if (callers[i] == f) return true;
    return bench_sample_has(s, f->name);
}

bool bench_sample_complete(bench_sample *ret, bench_pool *p, uint64_t seed, uint32_t n_chunks)
{
    *ret = (bench_sample){.n_chunks = 0};
    const bench_function *callers[BENCH_CHUNKS];
    uint64_t round;
    for (size_t tries = 0; tries < p->n && ret->n_questions < n_chunks; tries++) {
        const bench_function *f = bench_pool_next(p, seed, &round), *callee = NULL;
        const char *line = find_call(p, f, round, &callee);
        if (!line || is_used(ret, callers, f) || is_used(ret, callers, callee)) continue;
        const char *end = strchr(line, '\n');
        callers[ret->n_questions] = f;
        ret->questions[ret->n_questions++] = (bench_question){.target = ret->n_chunks,
            .before = base_xstrndup(f->text, (size_t)(line - f->text)),
            .line = base_xstrndup(line, end ? (size_t)(end - line) : strlen(line))};
        bench_sample_add(ret, callee);
    }
    for (size_t tries = 0; ret->n_questions && tries < p->n && ret->n_chunks < n_chunks; tries++) {
        const bench_function *f = bench_pool_next(p, seed, NULL);
        if (!is_used(ret, callers, f)) bench_sample_add(ret, f);
    }
    if (ret->n_questions && ret->n_chunks == n_chunks) return true;
    bench_sample_free(ret);
    return false;
}

/*
 * Where the chunk that begins at `text` ends: at a line end before a line that is not indented, about
 * CHUNK_BYTES on.
 */
static size_t chunk_bytes(const char *text)
{
    size_t n = 0, best = 0;
    while (text[n] && n < 2 * CHUNK_BYTES) {
        const char *end = strchr(text + n, '\n');
        n = end ? (size_t)(end - text) + 1 : n + strlen(text + n);
        if (best && n > CHUNK_BYTES) break;
        if (!text[n] || !strchr(" \t\n})/", text[n])) best = n;
    }
    return best ? best : n;
}

static bool is_from(const bench_sample *s, const char *path)
{
    for (uint32_t i = 0; i < s->n_chunks; i++)
        if (s->chunks[i].wrong && !strcmp(s->chunks[i].path, path)) return true;
    return false;
}

/* Consecutive pieces of files that no mistake of the sample is from, until they have n_bytes. */
static void add_pieces(
    bench_sample *ret, const bench_pool *p, uint64_t seed, uint64_t number, const char *name, size_t n_bytes)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < 200 && p->n_files && sum < n_bytes && ret->n_chunks < BENCH_CHUNKS; i++) {
        const bench_function *file = &p->files[bench_draw(seed, 8, number * 256 + i) % p->n_files];
        const size_t length = strlen(file->text);
        size_t at = 0;
        const size_t skip = bench_draw(seed, 10, number * 256 + i) % (length + 1);
        if (!code_language(file->path, file->text, length) || length < CHUNK_BYTES / 2 ||
            file->text[0] == '{' || is_from(ret, file->path))
            continue;
        while (at + CHUNK_BYTES / 2 < skip && at + CHUNK_BYTES < length) at += chunk_bytes(file->text + at);
        for (; sum < n_bytes && ret->n_chunks < BENCH_CHUNKS && file->text[at];) {
            const size_t n = chunk_bytes(file->text + at);
            ret->chunks[ret->n_chunks++] = (bench_function){.path = base_xstrdup(file->path),
                .name = base_xstrdup(name),
                .text = base_xstrndup(file->text + at, n)};
            at += n;
            sum += n;
        }
    }
}

bool bench_sample_read(bench_sample *ret, bench_pool *p, uint64_t seed, size_t n_bytes)
{
    *ret = (bench_sample){.n_chunks = 0};
    const uint64_t number = p->cursor++;
    const char *name = p->items[bench_draw(seed, 9, number) % p->n].name;
    add_pieces(ret, p, seed, number, name, n_bytes);
    if (!ret->n_chunks) return false;
    ret->questions[ret->n_questions++] = (bench_question){.line = base_xstrdup("")};
    return true;
}

void bench_sample_surround(bench_sample *s, const bench_pool *p, uint64_t seed, size_t n_bytes)
{
    const uint64_t number = p->cursor;
    add_pieces(s, p, seed, number, "", n_bytes);
    for (uint32_t i = s->n_chunks; i > 1; i--) {
        const uint32_t other = (uint32_t)(bench_draw(seed, 11, number * 256 + i) % i);
        const bench_function one = s->chunks[i - 1];
        s->chunks[i - 1] = s->chunks[other];
        s->chunks[other] = one;
    }
}
