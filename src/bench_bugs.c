/* Samples of real code; see bench_bugs.h. */
#include "bench_bugs.h"

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
    LEAST_BYTES = 160,
    MOST_BYTES = 1300,
    MOST_FILE = 1 << 20,
    DEEPEST = 8,
    CHUNK_BYTES = 1700, /* about 512 tokens of code */
};

static uint64_t draw(uint64_t seed, uint64_t what, uint64_t i)
{
    const uint64_t key[] = {what, i};
    return base_hash64(key, sizeof key, seed);
}

/* --- pools -------------------------------------------------------------------------------------------------------------- */

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
    if (!base_fs_read(path, MOST_FILE, &text, NULL) && text.len && code_language(path, text.data, text.len)) {
        code_file *f = code_parse(g, path, text.data, text.len);
        const size_t before = p->n;
        for (uint32_t i = 0; i < f->n_definitions; i++) {
            const code_definition *d = &f->definitions[i];
            const size_t n = d->to - d->from;
            const bool is_function = !strcmp(d->what, "function") || !strcmp(d->what, "method");
            if (!is_function || d->body_to <= d->body_from || n < LEAST_BYTES || n > MOST_BYTES) continue;
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

static void function_free(bench_function *f)
{
    free(f->path);
    free(f->name);
    free(f->text);
}

void bench_pool_free(bench_pool *p)
{
    for (size_t i = 0; i < p->n; i++) function_free(&p->items[i]);
    for (size_t i = 0; i < p->n_files; i++) function_free(&p->files[i]);
    free(p->items);
    free(p->files);
    free(p->source);
    *p = (bench_pool){.n = 0};
}

/* --- samples ------------------------------------------------------------------------------------------------------------ */

void bench_sample_free(bench_sample *s)
{
    for (uint32_t i = 0; i < s->n_chunks; i++) function_free(&s->chunks[i]);
    free(s->wrong);
    free(s->right);
    *s = (bench_sample){.n_chunks = 0};
}

static void add_chunk(bench_sample *s, const bench_function *f)
{
    s->chunks[s->n_chunks++] = (bench_function){
        .path = base_xstrdup(f->path), .name = base_xstrdup(f->name), .text = base_xstrdup(f->text)};
}

/* Puts the chunk at `from` to a place that the seed says. */
static void place_target(bench_sample *s, uint64_t seed, uint64_t number)
{
    const uint32_t to = (uint32_t)(draw(seed, 5, number) % s->n_chunks);
    const bench_function swap = s->chunks[s->target];
    s->chunks[s->target] = s->chunks[to];
    s->chunks[to] = swap;
    s->target = to;
}

static bool is_in(const bench_sample *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_chunks; i++)
        if (!strcmp(s->chunks[i].name, name)) return true;
    return false;
}

static void fill_from_pool(
    bench_sample *s, const bench_pool *p, uint64_t seed, uint64_t number, uint32_t n_chunks)
{
    for (uint32_t i = 0; s->n_chunks < n_chunks && i < 200; i++) {
        const bench_function *f = &p->items[draw(seed, 3, number * 256 + i) % p->n];
        if (!is_in(s, f->name)) add_chunk(s, f);
    }
}

/* The mistake must be told by how its line begins: at least six bytes, and no other line of the sample begins so. */
static bool find_beginning(bench_sample *s)
{
    size_t n = 0, lines = 0;
    while (s->wrong[n] && s->wrong[n] == s->right[n]) n++;
    while (n && strchr(" \t=!<>+-&|(", s->wrong[n - 1])) n--;
    s->n_same = n;
    for (uint32_t i = 0; i < s->n_chunks && n >= 6; i++)
        for (const char *at = s->chunks[i].text; at && *at;) {
            at += strspn(at, " \t");
            lines += !strncmp(at, s->wrong, n);
            at = strchr(at, '\n');
            if (at) at++;
        }
    return lines == 1;
}

static const struct {
    const char *is, *becomes;
} mistakes[] = {{" <= ", " < "}, {" < ", " <= "}, {" >= ", " > "}, {" > ", " >= "}, {" == ", " != "},
    {" != ", " == "}, {" === ", " !== "}, {" !== ", " === "}, {" && ", " || "}, {" || ", " && "},
    {" + 1", " - 1"}, {" - 1", " + 1"}, {" + ", " - "}, {"return true", "return false"},
    {"return false", "return true"}, {" = true", " = false"}, {" = false", " = true"},
    {"return 0", "return 1"}, {"return nil", "return err"}, {"++;", "--;"}, {"if (!", "if ("},
    {"if !", "if "}, {" += ", " -= "}, {" = 0;", " = 1;"}};
enum { N_MISTAKES = sizeof mistakes / sizeof *mistakes };

static bool is_code(const char *line, const char *at)
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

/* Plants the mistake at `at` of the target's text. */
static void plant(bench_sample *s, size_t at, const char *is, const char *becomes)
{
    bench_function *f = &s->chunks[s->target];
    size_t from = at, to = at;
    while (from && f->text[from - 1] != '\n') from--;
    while (f->text[to] && f->text[to] != '\n') to++;
    while (from < to && strchr(" \t", f->text[from])) from++;
    while (to > from && strchr(" \t\r", f->text[to - 1])) to--;
    s->right = base_xstrndup(f->text + from, to - from);
    base_buf line = {0}, text = {0};
    base_buf_add(&line, f->text + from, at - from);
    base_buf_puts(&line, becomes);
    base_buf_add(&line, f->text + at + strlen(is), to - at - strlen(is));
    base_buf_add(&text, f->text, from);
    base_buf_puts(&text, line.data);
    base_buf_puts(&text, f->text + to);
    free(f->text);
    f->text = base_buf_take(&text);
    s->wrong = base_buf_take(&line);
}

static bool mutate(bench_sample *s, uint64_t seed, uint64_t number)
{
    const bench_function *f = &s->chunks[s->target];
    const char *body = strchr(f->text, '\n');
    for (uint32_t try = 0; body && try < 4 * N_MISTAKES; try++) {
        const uint64_t r = draw(seed, 4, number * 1024 + try);
        const char *is = mistakes[r % N_MISTAKES].is, *at = body;
        for (uint64_t skip = r / N_MISTAKES % 3; at; at++) {
            at = strstr(at, is);
            if (!at || !skip--) break;
        }
        if (!at) continue;
        const char *line = at;
        while (line > f->text && line[-1] != '\n') line--;
        const char *from = line + strspn(line, " \t"), *end = strchr(at, '\n');
        if (!end || end - from < 10 || end - from > 90 || !is_code(line, at) || at + strlen(is) > end)
            continue;
        plant(s, (size_t)(at - f->text), is, mistakes[r % N_MISTAKES].becomes);
        return find_beginning(s);
    }
    return false;
}

bool bench_sample_mutate(
    bench_sample *ret, const bench_pool *p, uint64_t seed, uint32_t number, uint32_t n_chunks)
{
    *ret = (bench_sample){.n_chunks = 0};
    snprintf(ret->id, sizeof ret->id, "%.40s-%u", p->source, number);
    fill_from_pool(ret, p, seed, number, n_chunks);
    place_target(ret, seed, number);
    if (ret->n_chunks == n_chunks && mutate(ret, seed, number)) return true;
    bench_sample_free(ret);
    return false;
}

/* --- QuixBugs ----------------------------------------------------------------------------------------------------------- */

/* The program without the text behind it that says what it is for. */
static char *read_program(const char *folder, const char *kind, const char *name)
{
    base_buf path = {0}, text = {0};
    base_buf_printf(&path, "%s/%s/%s", folder, kind, name);
    char *program = NULL;
    if (!base_fs_read(path.data, MOST_FILE, &text, NULL) && text.len) {
        char *note = strstr(text.data, "\n\"\"\"");
        size_t n = note ? (size_t)(note - text.data) : text.len;
        while (n && strchr(" \t\r\n", text.data[n - 1])) n--;
        program = base_xstrndup(text.data, n);
    }
    base_buf_free(&path);
    base_buf_free(&text);
    return program;
}

/* The next line with text, trimmed; NULL: no more. */
static const char *next_line(const char **at, size_t *ret_n)
{
    while (*at && **at) {
        const char *from = *at + strspn(*at, " \t"), *end = strchr(from, '\n');
        size_t n = end ? (size_t)(end - from) : strlen(from);
        *at = end ? end + 1 : NULL;
        while (n && strchr(" \t\r", from[n - 1])) n--;
        *ret_n = n;
        if (n) return from;
    }
    return NULL;
}

/* Do the programs differ in one line? Then that line of each. */
static bool find_difference(const char *wrong, const char *right, char **ret_wrong, char **ret_right)
{
    size_t n, m;
    uint32_t differences = 0;
    *ret_wrong = *ret_right = NULL;
    for (;;) {
        const char *a = next_line(&wrong, &n), *b = next_line(&right, &m);
        if (!a || !b) {
            if (differences == 1 && !a && !b) return true;
            break;
        }
        if (n == m && !memcmp(a, b, n)) continue;
        if (differences++) break;
        *ret_wrong = base_xstrndup(a, n);
        *ret_right = base_xstrndup(b, m);
    }
    free(*ret_wrong);
    free(*ret_right);
    *ret_wrong = *ret_right = NULL;
    return false;
}

static int is_program(const struct dirent *d)
{
    const size_t n = strlen(d->d_name);
    return n > 3 && !strcmp(d->d_name + n - 3, ".py") && !strstr(d->d_name, "_test.py") &&
           strcmp(d->d_name, "node.py");
}

static bool add_program(bench_sample *s, const char *folder, const char *kind, const char *file)
{
    char *text = read_program(folder, kind, file);
    if (!text) return false;
    s->chunks[s->n_chunks++] = (bench_function){
        .path = base_xstrdup(file), .name = base_xstrndup(file, strlen(file) - 3), .text = text};
    return true;
}

bool bench_sample_quixbugs(
    bench_sample *ret, const char *folder, uint64_t seed, uint32_t number, uint32_t n_chunks)
{
    *ret = (bench_sample){.n_chunks = 0};
    base_buf path = {0};
    base_buf_printf(&path, "%s/python_programs", folder);
    struct dirent **names = NULL;
    const int n = scandir(path.data, &names, is_program, alphasort);
    uint32_t found = 0;
    base_buf_free(&path);
    for (int i = 0; i < n && !ret->wrong; i++) {
        const char *file = names[i]->d_name;
        char *wrong = read_program(folder, "python_programs", file),
             *right = read_program(folder, "correct_python_programs", file), *a, *b;
        if (wrong && right && find_difference(wrong, right, &a, &b)) {
            if (found++ == number && add_program(ret, folder, "python_programs", file)) {
                snprintf(ret->id, sizeof ret->id, "quixbugs-%.40s", ret->chunks[0].name);
                ret->wrong = a;
                ret->right = b;
            } else {
                free(a);
                free(b);
            }
        }
        free(wrong);
        free(right);
    }
    for (uint32_t i = 0; ret->wrong && ret->n_chunks < n_chunks && i < 200; i++) {
        const char *file = names[draw(seed, 6, number * 256 + i) % (uint64_t)n]->d_name;
        char *name = base_xstrndup(file, strlen(file) - 3);
        if (!is_in(ret, name)) add_program(ret, folder, "correct_python_programs", file);
        free(name);
    }
    for (int i = 0; i < n; i++) free(names[i]);
    free(names);
    if (!ret->wrong) {
        bench_sample_free(ret);
        return false;
    }
    place_target(ret, seed, number);
    if (find_beginning(ret)) return true;
    bench_sample_free(ret);
    return false;
}

/* --- completion and reading --------------------------------------------------------------------------------------------- */

/* A line behind the third that calls a function of the pool other than f itself: where it begins; NULL: none. */
static const char *find_call(const bench_pool *p, const bench_function *f, const bench_function **ret)
{
    const char *at = f->text;
    for (uint32_t line = 0; at && *at; line++) {
        const char *end = strchr(at, '\n');
        const size_t n = end ? (size_t)(end - at) : strlen(at), indent = strspn(at, " \t");
        size_t pos = 0, from, to;
        while (line >= 3 && n > indent + 8 && n < 100 && is_code(at, at + indent) &&
               code_next_identifier(at, n, &pos, &from, &to)) {
            if (to >= n || at[to] != '(') continue;
            for (size_t i = 0; i < p->n; i++)
                if (&p->items[i] != f && strlen(p->items[i].name) == to - from &&
                    !memcmp(p->items[i].name, at + from, to - from)) {
                    *ret = &p->items[i];
                    return at;
                }
        }
        at = end ? end + 1 : NULL;
    }
    return NULL;
}

bool bench_sample_complete(
    bench_sample *ret, const bench_pool *p, uint64_t seed, uint32_t number, uint32_t n_chunks)
{
    *ret = (bench_sample){.n_chunks = 0};
    const bench_function *f = &p->items[draw(seed, 7, number) % p->n], *callee = NULL;
    const char *line = find_call(p, f, &callee);
    if (!line) return false;
    const char *end = strchr(line, '\n');
    snprintf(ret->id, sizeof ret->id, "%.40s-%u", p->source, number);
    add_chunk(ret, callee);
    for (uint32_t i = 0; ret->n_chunks < n_chunks && i < 200; i++) {
        const bench_function *other = &p->items[draw(seed, 3, number * 256 + i) % p->n];
        if (other != f && !is_in(ret, other->name)) add_chunk(ret, other);
    }
    place_target(ret, seed, number);
    ret->right = base_xstrndup(f->text, (size_t)(line - f->text));
    ret->wrong = base_xstrndup(line, end ? (size_t)(end - line) : strlen(line));
    return true;
}

/* Where the chunk that begins at `text` ends: at a line end before a line that is not indented, about CHUNK_BYTES on. */
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

bool bench_sample_read(bench_sample *ret, const bench_pool *p, uint64_t seed, uint32_t number, size_t n_bytes)
{
    *ret = (bench_sample){.n_chunks = 0};
    snprintf(ret->id, sizeof ret->id, "%.40s-%u", p->source, number);
    size_t sum = 0;
    for (uint32_t i = 0; i < 200 && sum < n_bytes && ret->n_chunks < BENCH_CHUNKS; i++) {
        const bench_function *file = &p->files[draw(seed, 8, (uint64_t)number * 256 + i) % p->n_files];
        const size_t length = strlen(file->text);
        size_t at = 0;
        const size_t skip = draw(seed, 10, (uint64_t)number * 256 + i) % (length + 1);
        if (!code_language(file->path, file->text, length) || length < CHUNK_BYTES / 2 ||
            file->text[0] == '{')
            continue;
        while (at + CHUNK_BYTES / 2 < skip && at + CHUNK_BYTES < length) at += chunk_bytes(file->text + at);
        for (; sum < n_bytes && ret->n_chunks < BENCH_CHUNKS && file->text[at];) {
            const size_t n = chunk_bytes(file->text + at);
            ret->chunks[ret->n_chunks++] = (bench_function){.path = base_xstrdup(file->path),
                .name = base_xstrdup(p->items[draw(seed, 9, number) % p->n].name),
                .text = base_xstrndup(file->text + at, n)};
            at += n;
            sum += n;
        }
    }
    ret->target = 0;
    return ret->n_chunks > 0;
}
