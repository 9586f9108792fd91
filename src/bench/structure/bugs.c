/* Mistakes in one line; see bench/structure/bugs.h. */
#include "bench/structure/bugs.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

void bench_sample_free(bench_sample *s)
{
    for (uint32_t i = 0; i < s->n_chunks; i++) bench_function_free(&s->chunks[i]);
    for (uint32_t i = 0; i < s->n_questions; i++) {
        free(s->questions[i].before);
        free(s->questions[i].line);
    }
    *s = (bench_sample){.n_chunks = 0};
}

bool bench_sample_has(const bench_sample *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_chunks; i++)
        if (!strcmp(s->chunks[i].name, name)) return true;
    return false;
}

void bench_sample_add(bench_sample *s, const bench_function *f)
{
    s->chunks[s->n_chunks++] = bench_function_copy(f);
}

static bool may_add(const bench_sample *s, const char *name, const bench_accept *accept)
{
    return !bench_sample_has(s, name) && (!accept || accept->fn(accept->user, s, name));
}

/* --- planted mistakes ----------------------------------------------------------------------------------- */

static const struct {
    const char *is, *becomes;
} mistakes[] = {{" <= ", " < "}, {" < ", " <= "}, {" >= ", " > "}, {" > ", " >= "}, {" == ", " != "},
    {" != ", " == "}, {" === ", " !== "}, {" !== ", " === "}, {" && ", " || "}, {" || ", " && "},
    {" + 1", " - 1"}, {" - 1", " + 1"}, {" + ", " - "}, {"return true", "return false"},
    {"return false", "return true"}, {" = true", " = false"}, {" = false", " = true"},
    {"return 0", "return 1"}, {"return nil", "return err"}, {"++;", "--;"}, {"if (!", "if ("},
    {"if !", "if "}, {" += ", " -= "}, {" = 0;", " = 1;"}};
enum { N_MISTAKES = sizeof mistakes / sizeof *mistakes };

bool bench_is_code(const char *line, const char *at)
{
    const char *p = line + strspn(line, " \t");
    uint32_t quotes = 0;
    if (*p == '*' || *p == '#' || !strncmp(p, "//", 2) || !strncmp(p, "/*", 2)) return false;
    for (p = line; p < at; p++) {
        quotes += *p == '"' || *p == '\'' || *p == '`';
        if (!strncmp(p, "//", 2) || !strncmp(p, "/*", 2)) return false;
    }
    return quotes % 2 == 0;
}

/* Plants the mistake at `at` of the text. */
static void plant(bench_function *f, size_t at, const char *is, const char *becomes)
{
    size_t from = at, to = at;
    while (from && f->text[from - 1] != '\n') from--;
    while (f->text[to] && f->text[to] != '\n') to++;
    while (from < to && strchr(" \t", f->text[from])) from++;
    while (to > from && strchr(" \t\r", f->text[to - 1])) to--;
    f->right = base_xstrndup(f->text + from, to - from);
    base_buf line = {0}, text = {0};
    base_buf_add(&line, f->text + from, at - from);
    base_buf_puts(&line, becomes);
    base_buf_add(&line, f->text + at + strlen(is), to - at - strlen(is));
    base_buf_add(&text, f->text, from);
    base_buf_puts(&text, line.data);
    base_buf_puts(&text, f->text + to);
    free(f->text);
    f->text = base_buf_take(&text);
    f->wrong = base_buf_take(&line);
}

/*
 * Bytes that both lines begin with, without an operator's white space: what can be said of the line without
 * telling the mistake.
 */
static size_t same_bytes(const bench_function *f)
{
    size_t n = 0;
    while (f->wrong[n] && f->wrong[n] == f->right[n]) n++;
    while (n && strchr(" \t=!<>+-&|(", f->wrong[n - 1])) n--;
    return n;
}

static bool mutate(bench_function *f, uint64_t seed, uint64_t round)
{
    enum { LEAST_SAME = 6 };
    const char *body = strchr(f->text, '\n');
    const uint64_t key = bench_draw(seed, round, (uint64_t)strlen(f->text));
    for (uint32_t try = 0; body && try < 4 * N_MISTAKES; try++) {
        const uint64_t r = bench_draw(key, 4, try);
        const char *is = mistakes[r % N_MISTAKES].is, *at = body;
        for (uint64_t skip = r / N_MISTAKES % 3; at; at++) {
            at = strstr(at, is);
            if (!at || !skip--) break;
        }
        if (!at) continue;
        const char *line = at;
        while (line > f->text && line[-1] != '\n') line--;
        const char *from = line + strspn(line, " \t"), *end = strchr(at, '\n');
        if (!end || end - from < 10 || end - from > 90 || !bench_is_code(line, at) || at + strlen(is) > end)
            continue;
        plant(f, (size_t)(at - f->text), is, mistakes[r % N_MISTAKES].becomes);
        return same_bytes(f) >= LEAST_SAME;
    }
    return false;
}

static uint32_t lines_that_begin(const bench_sample *s, const char *with, size_t n)
{
    uint32_t lines = 0;
    for (uint32_t i = 0; i < s->n_chunks; i++)
        for (const char *at = s->chunks[i].text; at && *at;) {
            at += strspn(at, " \t");
            lines += !strncmp(at, with, n);
            at = strchr(at, '\n');
            if (at) at++;
        }
    return lines;
}

void bench_sample_ask(bench_sample *s)
{
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        const bench_function *f = &s->chunks[i];
        if (!f->wrong) continue;
        const size_t n = same_bytes(f);
        if (n < 6 || lines_that_begin(s, f->wrong, n) != 1) continue;
        s->questions[s->n_questions++] =
            (bench_question){.target = i, .line = base_xstrdup(f->wrong), .n_same = n};
    }
}

bool bench_sample_mutate(
    bench_sample *ret, bench_pool *p, uint64_t seed, uint32_t n_chunks, const bench_accept *accept)
{
    *ret = (bench_sample){.n_chunks = 0};
    for (size_t tries = 0; tries < 2 * p->n && ret->n_chunks < n_chunks; tries++) {
        uint64_t round;
        const bench_function *f = bench_pool_next(p, seed, &round);
        if (!may_add(ret, f->name, accept)) continue;
        bench_function one = bench_function_copy(f);
        if (mutate(&one, seed, round))
            ret->chunks[ret->n_chunks++] = one;
        else
            bench_function_free(&one);
    }
    if (ret->n_chunks == n_chunks) return true;
    bench_sample_free(ret);
    return false;
}

/* --- programs that came with theirs --------------------------------------------------------------------- */

/* A program that was asked about has an empty path from then on: each has one question. */
bool bench_sample_programs(
    bench_sample *ret, bench_pool *p, uint64_t seed, uint32_t n_chunks, const bench_accept *accept)
{
    *ret = (bench_sample){.n_chunks = 0};
    for (size_t i = 0; i < p->n && ret->n_chunks < n_chunks; i++) {
        bench_function *f = &p->items[(bench_draw(seed, 6, 0) + i) % p->n];
        if (!*f->path || !may_add(ret, f->name, accept)) continue;
        bench_sample_add(ret, f);
        *f->path = 0;
    }
    if (ret->n_chunks >= 2) return true;
    bench_sample_free(ret);
    return false;
}
