/* Words of a line against what lies in the tree (contract: runs.h). */
#include "tools/guard/runs.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/show.h"

enum { MOST_FOLDERS = 16, MOST_TOLD = 256, MOST_WORD = 4096, MOST_READ = 1 << 20 };

/* Programs that run the files they are given, and what they read though nobody names it. */
static const struct {
    const char *name;
    const char *reads[4];
} interpreters[] = {{"sh", {0}}, {"bash", {0}}, {"dash", {0}}, {"zsh", {0}}, {"ksh", {0}}, {"fish", {0}},
    {"source", {0}}, {".", {0}}, {"pypy", {0}}, {"pytest", {0}}, {"py.test", {0}}, {"node", {0}},
    {"deno", {0}}, {"tsx", {0}}, {"ts-node", {0}}, {"ruby", {0}}, {"perl", {0}}, {"php", {0}}, {"lua", {0}},
    {"luajit", {0}}, {"Rscript", {0}}, {"julia", {0}}, {"tclsh", {0}}, {"expect", {0}}, {"awk", {0}},
    {"gawk", {0}}, {"pwsh", {0}}, {"python", {0}}, {"make", {"GNUmakefile", "makefile", "Makefile"}},
    {"gmake", {"GNUmakefile", "makefile", "Makefile"}}, {"ninja", {"build.ninja"}},
    {"just", {"justfile", "Justfile", ".justfile"}}, {"rake", {"Rakefile"}},
    {"task", {"Taskfile.yml", "Taskfile.yaml"}}, {"tox", {"tox.ini"}}, {"nox", {"noxfile.py"}},
    {"npm", {"package.json"}}, {"npx", {"package.json"}}, {"yarn", {"package.json"}},
    {"pnpm", {"package.json"}}, {"bun", {"package.json"}}, {"composer", {"composer.json"}}};
enum { N_INTERPRETERS = sizeof interpreters / sizeof *interpreters };

typedef struct search {
    const char *root;
    char *folders[MOST_FOLDERS]; /* below the root, where words may begin: "", what `cd` and -C named */
    size_t n_folders, n_told;
    bool is_first;  /* the next word is a command's */
    bool is_run;    /* an interpreter stands in front, in this command */
    size_t reader;  /* with is_run: whose files without a name are looked for */
    bool is_folder; /* the next word is one */
    bool is_module; /* python3 -m: the next word is a module */
    tool_runs_fn *fn;
    void *user;
} search;

static void tell(search *s, const char *path)
{
    if (s->n_told++ < MOST_TOLD) s->fn(s->user, path);
}

/* A file of the tree by its path below a folder of it: told where it would run. */
static void try_file(search *s, const char *folder, const char *path, bool must_run)
{
    base_buf whole = {0};
    struct stat st;
    const size_t n = strlen(s->root);
    base_buf_printf(&whole, "%s/%s%s%s", s->root, folder, *folder ? "/" : "", path);
    char *real = realpath(whole.data, NULL);
    const bool is_below = real && !strncmp(real, s->root, n) && real[n] == '/';
    if (is_below && !stat(real, &st) && S_ISREG(st.st_mode) && (must_run || (st.st_mode & 0111))) {
        base_buf named = {0};
        base_buf_printf(&named, "%s%s%s", folder, *folder ? "/" : "", path);
        const char *from = named.data;
        while (!strncmp(from, "./", 2)) from += 2;
        /* The way by which it is named, where that is another one. */
        if (strcmp(from, real + n + 1) != 0 && !strstr(from, "..") && !strstr(from, "//")) tell(s, from);
        tell(s, real + n + 1);
        base_buf_free(&named);
    }
    free(real);
    base_buf_free(&whole);
}

static bool is_interpreter(const char *name, const char *known)
{
    const size_t n = strlen(known);
    if (strncmp(name, known, n) != 0) return false;
    return !name[n] || (!strcmp(known, "python") && !name[n + strspn(name + n, "0123456789.")]) ||
           (!strcmp(known, "pypy") && !name[n + strspn(name + n, "0123456789.")]);
}

static void try_reads(search *s, const char *folder)
{
    for (size_t k = 0; k < 4 && interpreters[s->reader].reads[k]; k++)
        try_file(s, folder, interpreters[s->reader].reads[k], true);
}

static void take_folder(search *s, const char *path)
{
    if (s->n_folders == MOST_FOLDERS) return;
    s->folders[s->n_folders++] = base_xstrdup(path);
    if (s->is_run) try_reads(s, path); /* make -C tools */
}

static void take_interpreter(search *s, const char *word)
{
    const char *name = base_path_name(word);
    for (size_t i = 0; i < N_INTERPRETERS; i++) {
        if (!is_interpreter(name, interpreters[i].name)) continue;
        if (!strcmp(name, ".") && !s->is_first) continue; /* a folder */
        s->is_run = true;
        s->reader = i;
        for (size_t f = 0; f < s->n_folders; f++) try_reads(s, s->folders[f]);
    }
}

/* A module is a file by another name. */
static void take_module(search *s, const char *word)
{
    static const char *const ends[] = {".py", "/__main__.py"};
    char *path = base_xstrdup(word);
    for (char *p = path; *p; p++)
        if (*p == '.') *p = '/';
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        base_buf whole = {0};
        base_buf_printf(&whole, "%s%s", path, ends[i]);
        for (size_t f = 0; f < s->n_folders; f++) try_file(s, s->folders[f], whole.data, true);
        base_buf_free(&whole);
    }
    free(path);
}

/* behind_variable: "$ROOT/run.sh", of which nobody knows the beginning: mostly it is the tree's. */
static void take_word(search *s, const char *word, bool behind_variable)
{
    const size_t n = strlen(s->root);
    const char *slash = strchr(word, '/');
    if (behind_variable && slash) word = slash;
    if (!strncmp(word, s->root, n) && word[n] == '/') word += n;
    const char *path = word + strspn(word, "/");
    if (!*path) return;
    if (s->is_folder) take_folder(s, path);
    if (s->is_module) take_module(s, word);
    s->is_folder = !strcmp(word, "cd") || !strcmp(word, "-C") || !strcmp(word, "--prefix");
    s->is_module = s->is_run && !strcmp(word, "-m");
    take_interpreter(s, word);
    s->is_first = false;
    for (size_t f = 0; f < (*word == '/' ? 1 : s->n_folders); f++)
        try_file(s, s->folders[f], path, s->is_run);
}

void tool__runs(const char *root, const char *text, size_t n, tool_runs_fn *fn, void *user)
{
    static const char ends[] = "\n;&|(`", between[] = " \t\r\n;&|()`\"'<>=,[]{}$";
    search s = {.root = root,
        .folders = {base_xstrdup("")},
        .n_folders = 1,
        .is_first = true,
        .fn = fn,
        .user = user};
    bool behind_variable = false;
    for (size_t at = 0; at < n && s.n_told < MOST_TOLD;) {
        if (text[at] == '\\' && at + 1 < n && text[at + 1] == '\n') {
            at += 2;
        } else if (!text[at] || strchr(between, text[at])) {
            if (text[at] && strchr(ends, text[at])) {
                s.is_run = s.is_folder = s.is_module = false;
                s.is_first = true;
            }
            behind_variable = text[at] == '$' || (behind_variable && text[at] == '{');
            at++;
        } else {
            size_t word = at;
            while (word < n && text[word] && !strchr(between, text[word])) word++;
            char *copy = base_xstrndup(text + at, word - at);
            if (word - at < MOST_WORD) take_word(&s, copy, behind_variable);
            free(copy);
            behind_variable = false;
            at = word;
        }
    }
    for (size_t i = 0; i < s.n_folders; i++) free(s.folders[i]);
}

/* ---- the sum of them ---- */

typedef struct sum {
    const char *root;
    base_sha256 all;
    char *names[MOST_TOLD];
    size_t n;
} sum;

static void add_file(void *user, const char *path)
{
    sum *s = user;
    struct stat st;
    base_buf whole = {0}, text = {0};
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->names[i], path)) return;
    base_buf_printf(&whole, "%s/%s", s->root, path);
    const bool is_there = !stat(whole.data, &st);
    const bool is_read = is_there && !base_fs_read(whole.data, MOST_READ, &text, NULL);
    const bool is_product = is_read && text.len && memchr(text.data, 0, text.len);
    if (is_there && !is_product && s->n < MOST_TOLD) {
        char hex[65] = "";
        if (is_read) base_sha256_hex(text.data ? text.data : "", text.len, hex);
        /* A longer one by what tells of a change. */
        base_buf line = {0};
        base_buf_printf(&line, "%s %lld %lld.%ld ", hex, (long long)st.st_size,
            is_read ? 0 : (long long)st.st_ctim.tv_sec, is_read ? 0 : st.st_ctim.tv_nsec);
        base_sha256_add(&s->all, line.data, line.len);
        base_sha256_add(&s->all, path, strlen(path) + 1);
        s->names[s->n++] = base_xstrdup(path);
        base_buf_free(&line);
    }
    base_buf_free(&whole);
    base_buf_free(&text);
}

char *tool_runs_sum(const char *root, const char *command)
{
    enum { SHOWN = 16, MOST_NAMED = 6 };
    sum s = {.root = root};
    uint8_t digest[32];
    base_buf out = {0};
    base_sha256_init(&s.all);
    tool__runs(root, command, strlen(command), add_file, &s);
    base_sha256_end(&s.all, digest);
    for (size_t i = 0; s.n && i < SHOWN; i++) base_buf_printf(&out, "%02x", digest[i]);
    for (size_t i = 0; i < s.n; i++) {
        if (i < MOST_NAMED) {
            base_buf_puts(&out, i ? ", " : " (");
            base_show(&out, s.names[i], strlen(s.names[i]), BASE_SHOW_UTF8);
        }
        free(s.names[i]);
    }
    if (s.n) base_buf_puts(&out, s.n > MOST_NAMED ? ", ...)" : ")");
    return s.n ? base_buf_take(&out) : NULL;
}
