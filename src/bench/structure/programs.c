/* Programs that came with a mistake; see bench/structure/programs.h. */
#include "bench/structure/programs.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"

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

/* A line of a text, trimmed. */
typedef struct text_line {
    const char *from;
    size_t n;
} text_line;

/* Do the programs differ in one line? Then that line of each. */
static bool find_difference(const char *wrong, const char *right, text_line *ret_wrong, text_line *ret_right)
{
    uint32_t differences = 0;
    for (;;) {
        text_line a, b;
        a.from = next_line(&wrong, &a.n);
        b.from = next_line(&right, &b.n);
        if (!a.from || !b.from) return differences == 1 && !a.from && !b.from;
        if (a.n == b.n && !memcmp(a.from, b.from, a.n)) continue;
        if (differences++) return false;
        *ret_wrong = a;
        *ret_right = b;
    }
}

/* text: heap, the pool's from now on. */
static void add_program(bench_pool *p, char *path, char *name, char *text, text_line wrong, text_line right)
{
    base_grow(&p->items, &p->cap, p->n + 1, sizeof *p->items);
    p->items[p->n++] = (bench_function){.path = path,
        .name = name,
        .text = text,
        .wrong = base_xstrndup(wrong.from, wrong.n),
        .right = base_xstrndup(right.from, right.n)};
}

/* The files of a folder that end so, in order: a call for each. */
static void each_file(const char *folder, const char *ending,
    void (*fn)(void *user, const char *folder, const char *file), void *user)
{
    const size_t n_ending = strlen(ending);
    struct dirent **names = NULL;
    const int n = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const size_t length = strlen(names[i]->d_name);
        if (length > n_ending && !strcmp(names[i]->d_name + length - n_ending, ending))
            fn(user, folder, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

static int check_loaded(bench_pool *p, const char *folder, const char *whose, base_err *err)
{
    if (p->n >= 2) return 0;
    bench_pool_free(p);
    return base_fail(err, BASE_E_NOT_FOUND, "%s holds no programs of %s", folder, whose);
}

/* --- QuixBugs ------------------------------------------------------------------------------------------- */

/* The program without the text behind it that says what it is for. */
static char *read_program(const char *folder, const char *kind, const char *name)
{
    base_buf path = {0}, text = {0};
    base_buf_printf(&path, "%s/%s/%s", folder, kind, name);
    char *program = NULL;
    if (!base_fs_read(path.data, BENCH_MOST_FILE, &text, NULL) && text.len) {
        char *note = strstr(text.data, "\n\"\"\"");
        size_t n = note ? (size_t)(note - text.data) : text.len;
        while (n && strchr(" \t\r\n", text.data[n - 1])) n--;
        program = base_xstrndup(text.data, n);
    }
    base_buf_free(&path);
    base_buf_free(&text);
    return program;
}

typedef struct quixbugs {
    bench_pool *pool;
    const char *folder;
} quixbugs;

static void add_quixbug(void *user, const char *programs, const char *file)
{
    const quixbugs *q = user;
    if (strstr(file, "_test.py") || !strcmp(file, "node.py")) return;
    char *text = read_program(q->folder, "python_programs", file),
         *correct = read_program(q->folder, "correct_python_programs", file);
    text_line wrong, right;
    if (text && correct && find_difference(text, correct, &wrong, &right)) {
        char *name = base_xstrndup(file, strlen(file) - strlen(".py"));
        add_program(q->pool, base_xstrdup(file), name, text, wrong, right);
        text = NULL;
    }
    free(text);
    free(correct);
}

int bench_quixbugs_load(bench_pool *ret, const char *folder, base_err *err)
{
    *ret = (bench_pool){.source = base_xstrdup("quixbugs")};
    quixbugs q = {ret, folder};
    base_buf programs = {0};
    base_buf_printf(&programs, "%s/python_programs", folder);
    each_file(programs.data, ".py", add_quixbug, &q);
    base_buf_free(&programs);
    return check_loaded(ret, folder, "QuixBugs", err);
}

/* --- DebugBench ----------------------------------------------------------------------------------------- */

typedef struct debugbench {
    bench_pool *pool;
    code_grammars *grammars;
} debugbench;

static void add_exercise(const debugbench *d, const base_json *one, const char *ending)
{
    const char *text = base_json_str(one, "buggy_code", ""), *correct = base_json_str(one, "oracle_code", "");
    const size_t n = strlen(text);
    text_line wrong, right;
    if (n < BENCH_LEAST_FUNCTION || n > BENCH_MOST_FUNCTION ||
        !find_difference(text, correct, &wrong, &right))
        return;
    base_buf path = {0};
    base_buf_printf(&path, "%s.%s", base_json_str(one, "slug", "exercise"), ending);
    code_file *f = code_parse(d->grammars, path.data, text, n);
    const uint32_t at = code_definition_at(f, (uint32_t)(wrong.from - text));
    const code_definition *in = at < f->n_definitions ? &f->definitions[at] : NULL;
    if (in && (!strcmp(in->what, "function") || !strcmp(in->what, "method")) && strlen(in->name) >= 3) {
        char *own = base_xstrdup(text), *name = base_xstrdup(in->name);
        wrong.from = own + (wrong.from - text);
        add_program(d->pool, base_buf_take(&path), name, own, wrong, right);
    }
    code_file_free(f);
    base_buf_free(&path);
}

/* "python3_condition error.json" holds an array of exercises. */
static void add_exercises(void *user, const char *folder, const char *file)
{
    static const struct {
        const char *begins, *ending;
    } languages[] = {{"cpp_", "cpp"}, {"java_", "java"}, {"python3_", "py"}};
    static const char *const of_several[] = {"double", "triple", "quadruple"}; /* mistakes */
    const debugbench *d = user;
    const char *ending = NULL;
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (!strncmp(file, languages[i].begins, strlen(languages[i].begins))) ending = languages[i].ending;
    for (size_t i = 0; i < sizeof of_several / sizeof *of_several; i++)
        if (strstr(file, of_several[i])) return;
    base_buf path = {0}, text = {0};
    base_json_doc *doc = NULL;
    base_buf_printf(&path, "%s/%s", folder, file);
    if (ending && !base_fs_read(path.data, BENCH_MOST_FILE, &text, NULL) && text.len &&
        !base_json_parse(text.data, text.len, &doc, NULL))
        for (const base_json *one = base_json_root(doc)->first; one; one = one->next)
            add_exercise(d, one, ending);
    base_json_free(doc);
    base_buf_free(&path);
    base_buf_free(&text);
}

static int by_hash(const void *a, const void *b)
{
    const char *x = ((const bench_function *)a)->text, *y = ((const bench_function *)b)->text;
    const uint64_t p = base_hash64(x, strlen(x), 0), q = base_hash64(y, strlen(y), 0);
    return p < q ? -1 : p > q;
}

int bench_debugbench_load(bench_pool *ret, code_grammars *g, const char *folder, base_err *err)
{
    *ret = (bench_pool){.source = base_xstrdup("debugbench")};
    debugbench d = {ret, g};
    each_file(folder, ".json", add_exercises, &d);
    if (ret->n) qsort(ret->items, ret->n, sizeof *ret->items, by_hash);
    return check_loaded(ret, folder, "DebugBench", err);
}
