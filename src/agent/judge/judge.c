/*
 * Which command judges a change where the person named none: the tests or the compiler that the repository has
 * for the changed file. It runs like a test that was named: confined, asked about as the mode says, its failure
 * goes back to the model, and further attempts follow. A command that cannot judge (what runs it is missing, it
 * takes too long, it fails without the change as well) is told and never counted.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/approve/approve.h"
#include "agent/judge/judge.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

enum { MAX_FILE = 1 << 20 };

/* --- which test file is a file's ------------------------------------------------------------------------ */

/* "main" of "src/dotenv/main.py" */
static char *stem_of(const char *path)
{
    const char *name = base_path_name(path);
    return base_xstrndup(name, strcspn(name, "."));
}

/* "bench/test_first.py" measures, whatever it is called. */
static bool is_of_benches(const char *path)
{
    static const char *const folders[] = {"bench/", "benches/", "benchmark/", "benchmarks/"};
    bool is_so = false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *at = strstr(path, folders[i]);
        is_so |= at && (at == path || at[-1] == '/');
    }
    return is_so;
}

bool agent__is_test_file(const char *path)
{
    return code_path_is_test(path) && (strcasestr(path, "test") || strcasestr(path, "spec")) &&
           !is_of_benches(path);
}

/* Is the stem a whole part of the test file's name: "test_main.py", "main_test.go", "MainTest.java"? */
static bool is_test_of(const char *path, const char *stem)
{
    char *own = stem_of(path);
    const char *at = strstr(own, stem);
    size_t n = strlen(stem);
    const bool is_hump = at && n && islower((unsigned char)at[n - 1]) && isupper((unsigned char)at[n]);
    const bool is_so =
        at && (at == own || !isalnum((unsigned char)at[-1])) && (is_hump || !isalnum((unsigned char)at[n]));
    free(own);
    return is_so && agent__is_test_file(path);
}

/* Is the name a whole part of the file's: "alias" of "command.alias.test.js"? */
static bool has_part(const char *path, const char *name)
{
    const char *file = base_path_name(path);
    const size_t n = strlen(name);
    bool has = false;
    for (const char *at = file; n && !has && (at = strcasestr(at, name)); at++)
        has = (at == file || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]);
    return has;
}

/* "version_test.go" is nearer to "version.go" than "version_collection_test.go": less stands in its name besides. */
static bool is_nearer(const char *path, const char *than)
{
    return strlen(base_path_name(path)) < strlen(base_path_name(than));
}

/*
 * "array_test.c" of "cc_array.c": the tree's sources share a prefix that its tests leave out. The length of what the two names share
 * at the end of the stem, behind such a prefix; 0: nothing.
 */
static size_t shared_end(const char *path, const char *stem)
{
    static const char *const marks[] = {"test", "tests", "spec", "unit"};
    char *own = stem_of(path);
    size_t from = 0, to = strlen(own);
    for (bool again = agent__is_test_file(path); again;) {
        again = false;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            const size_t n = strlen(marks[i]);
            const bool is_longer = to - from > n + 1;
            const bool is_first =
                is_longer && !strncmp(own + from, marks[i], n) && strchr("_-", own[from + n]);
            const bool is_last =
                is_longer && !strncmp(own + to - n, marks[i], n) && strchr("_-", own[to - n - 1]);
            if (is_first) from += n + 1;
            if (is_last && !is_first) to -= n + 1;
            again |= is_first || is_last;
        }
    }
    const size_t n = to - from, n_stem = strlen(stem);
    const bool is_end = (from || to < strlen(own)) && n_stem > n + 1 &&
                        !memcmp(stem + n_stem - n, own + from, n) && strchr("_-", stem[n_stem - n - 1]);
    free(own);
    return is_end ? n : 0;
}

/*
 * Of several test files of one source the one that names the definition that was written there last, else the nearest; where none has
 * its whole name, the one that has most of its end.
 */
char *agent__test_file_of(const agent *a, const char *path)
{
    char *stem = stem_of(path), *found = NULL, **paths = code_index_paths(tool_workspace_index(a->workspace));
    const bool is_fix = a->fix.name && a->fix.path && !strcmp(a->fix.path, path);
    const char *name = is_fix ? code_last_name(a->fix.name) : "";
    const char *by_end = NULL;
    size_t most = 0;
    bool has_name = false;
    for (size_t i = 0; paths && paths[i] && !has_name; i++) {
        if (!base_path_same_ending(paths[i], path)) continue;
        const size_t shared = shared_end(paths[i], stem);
        if (shared > most) {
            by_end = paths[i];
            most = shared;
        }
        if (!is_test_of(paths[i], stem)) continue;
        has_name = has_part(paths[i], name);
        if (found && !has_name && !is_nearer(paths[i], found)) continue;
        free(found);
        found = base_xstrdup(paths[i]);
    }
    if (!found && by_end) found = base_xstrdup(by_end);
    code_index_paths_free(paths);
    free(stem);
    return found;
}

char *agent__calling_test_of(const agent *a, const char *path)
{
    code_index *x = tool_workspace_index(a->workspace);
    base_buf text = {0};
    char *found = NULL;
    if (tool_workspace_read(a->workspace, path, MAX_FILE, &text, NULL) || !text.len) return NULL;
    code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, text.data, text.len);
    for (uint32_t i = 0; i < f->n_definitions && !found; i++) {
        const code_definition *d = &f->definitions[i];
        code_caller *callers = NULL;
        if (d->body_to <= d->body_from) continue;
        uint32_t n = code_index_callers(x, d->name, 32, &callers);
        for (uint32_t k = 0; k < n && k < 32 && !found; k++)
            if (agent__is_test_file(callers[k].path) && base_path_same_ending(callers[k].path, path))
                found = base_xstrdup(callers[k].path);
        code_callers_free(callers, n < 32 ? n : 32);
    }
    code_file_free(f);
    base_buf_free(&text);
    return found;
}

/* --- how it is run -------------------------------------------------------------------------------------- */

/* The folder of a path, "." for the root. */
/* The nearest file of that name in the path's folders, upwards; NULL: none. */
static char *above(const agent *a, const char *path, const char *name)
{
    char *folder = base_path_folder(path), *found = NULL;
    for (;;) {
        base_buf at = {0}, text = {0};
        base_buf_printf(
            &at, "%s%s%s", strcmp(folder, ".") ? folder : "", strcmp(folder, ".") ? "/" : "", name);
        if (!tool_workspace_read(a->workspace, at.data, MAX_FILE, &text, NULL)) found = base_xstrdup(at.data);
        base_buf_free(&text);
        base_buf_free(&at);
        if (found || !strcmp(folder, ".")) break;
        char *up = base_path_folder(folder);
        free(folder);
        folder = up;
    }
    free(folder);
    return found;
}

/* The text of a file at the tree's top; NULL: it has none. The caller frees. */
static char *top_file(const agent *a, const char *name)
{
    base_buf text = {0};
    if (tool_workspace_read(a->workspace, name, MAX_FILE, &text, NULL)) return NULL;
    base_buf_puts(&text, "");
    return text.data ? base_buf_take(&text) : base_xstrdup("");
}

/* The turn's other changed files of this ending, tests or the others, as further words of a command. */
static void put_others(const agent *a, const char *path, const char *ending, bool are_tests, base_buf *out)
{
    enum { MOST = 12 };
    uint32_t n = 0;
    for (size_t i = 0; i < a->asked.n_changed && n < MOST; i++) {
        const char *other = a->asked.changed[i];
        if (!strcmp(other, path) || !base_ends_with(other, ending) || !agent__path_is_plain(other)) continue;
        if (are_tests && !code_path_is_test(other)) continue;
        char *text = top_file(a, other); /* NULL: the change took it away */
        if (text) base_buf_printf(out, " %s", other);
        n += text != NULL;
        free(text);
    }
}

static bool top_file_says(const agent *a, const char *name, const char *words)
{
    char *text = top_file(a, name);
    const bool says = text && strstr(text, words);
    free(text);
    return says;
}

static bool has_target(const char *makefile, const char *target)
{
    const size_t n = strlen(target);
    for (const char *line = makefile; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (!strncmp(line, target, n) && line[n + strspn(line + n, " ")] == ':' &&
            line[n + strspn(line + n, " ") + 1] != '=')
            return true;
    return false;
}

/*
 * The check or test target of make, the tests of meson or of CMake. In the session's copy of the tree: what is built stays
 * there, so that the next run builds what changed, and the tree keeps no products.
 */
static bool judge_built(agent *a, const char *path, base_buf *out)
{
    static const char *const makefiles[] = {"GNUmakefile", "makefile", "Makefile"};
    /* Where there is one that runs the tests "test" builds them alone. */
    static const char *const targets[] = {"check", "run-test", "run-tests", "run_tests", "runtest", "test"};
    if (top_file_says(a, "meson.build", "test("))
        base_buf_puts(out, "{ [ -e kvist-build/build.ninja ] || meson setup kvist-build >/dev/null; } && "
                           "meson test -C kvist-build --print-errorlogs");
    else if (top_file_says(a, "CMakeLists.txt", "add_test") ||
             top_file_says(a, "CMakeLists.txt", "enable_testing"))
        base_buf_puts(out, "cmake -S . -B kvist-build >/dev/null && cmake --build kvist-build >/dev/null && "
                           "ctest --test-dir kvist-build --output-on-failure");
    for (size_t i = 0; i < sizeof makefiles / sizeof *makefiles && !out->len; i++) {
        char *text = top_file(a, makefiles[i]);
        for (size_t k = 0; text && k < sizeof targets / sizeof *targets && !out->len; k++)
            if (has_target(text, targets[k])) base_buf_printf(out, "make -s %s", targets[k]);
        free(text);
    }
    return out->len > 0;
}

/* A linter that the tree is configured for says of one file what Python would say at run time. */
static bool lint_python(agent *a, const char *path, base_buf *out)
{
    char *ruff = top_file(a, "ruff.toml"), *dotted = top_file(a, ".ruff.toml"),
         *flake = top_file(a, ".flake8");
    if (ruff || dotted || top_file_says(a, "pyproject.toml", "[tool.ruff"))
        base_buf_printf(out, "ruff check -q %s", path);
    else if (flake || top_file_says(a, "setup.cfg", "[flake8]") || top_file_says(a, "tox.ini", "[flake8]"))
        base_buf_printf(out, "flake8 %s", path);
    free(ruff);
    free(dotted);
    free(flake);
    return out->len > 0;
}

static bool judge_python(agent *a, const char *path, base_buf *out)
{
    char *test = code_path_is_test(path) ? base_xstrdup(path) : agent__test_file_of(a, path);
    if (!test) test = agent__calling_test_of(a, path);
    const bool found = test && agent__set_test_file(a, test);
    if (found) { /* and the tests that this turn changed */
        base_buf_puts(out, a->test.command);
        put_others(a, test, ".py", true, out);
    }
    free(test);
    return found;
}

static bool judge_go(agent *a, const char *path, base_buf *out)
{
    char *module = above(a, path, "go.mod"), *folder = base_path_folder(path);
    if (module) base_buf_printf(out, "go test ./%s", strcmp(folder, ".") ? folder : "");
    free(module);
    free(folder);
    return out->len > 0;
}

/* Where the tests need what is not here, the package itself may build. */
static bool compile_go(agent *a, const char *path, base_buf *out)
{
    char *module = code_path_is_test(path) ? NULL : above(a, path, "go.mod"),
         *folder = base_path_folder(path);
    if (module) base_buf_printf(out, "go build -o /dev/null ./%s", strcmp(folder, ".") ? folder : "");
    free(module);
    free(folder);
    return out->len > 0;
}

/* Built beside the tree: a copy of it that a candidate is tried in has no folder of its own for that. */
static bool judge_rust(agent *a, const char *path, base_buf *out)
{
    char *manifest = above(a, path, "Cargo.toml");
    if (manifest && !strcmp(manifest, "Cargo.toml"))
        base_buf_puts(out, "CARGO_TARGET_DIR=\"$TMPDIR/target\" cargo test --offline -q");
    else if (manifest)
        base_buf_printf(
            out, "CARGO_TARGET_DIR=\"$TMPDIR/target\" cargo test --offline -q --manifest-path %s", manifest);
    free(manifest);
    return out->len > 0;
}

/* The library alone, without what only its tests need. */
static bool compile_rust(agent *a, const char *path, base_buf *out)
{
    char *manifest = above(a, path, "Cargo.toml");
    if (manifest)
        base_buf_printf(
            out, "CARGO_TARGET_DIR=\"$TMPDIR/target\" cargo check --offline -q --manifest-path %s", manifest);
    free(manifest);
    return out->len > 0;
}

/* Programs of node_modules by the path: npx asks the network for a minute where one is missing. */
static bool judge_script(agent *a, const char *path, base_buf *out)
{
    static const char *const runners[][2] = {{"node --test", "node --test "},
        {"vitest", "PATH=node_modules/.bin:$PATH vitest run "},
        {"jest", "PATH=node_modules/.bin:$PATH jest "}, {"mocha", "PATH=node_modules/.bin:$PATH mocha "}};
    char *manifest = above(a, path, "package.json");
    char *test = code_path_is_test(path) ? base_xstrdup(path) : agent__test_file_of(a, path);
    base_buf text = {0};
    if (!test) test = agent__calling_test_of(a, path);
    if (manifest && test && agent__path_is_plain(test) &&
        !tool_workspace_read(a->workspace, manifest, MAX_FILE, &text, NULL) && text.len)
        for (size_t i = 0; i < sizeof runners / sizeof *runners && !out->len; i++)
            if (strstr(text.data, runners[i][0])) base_buf_printf(out, "%s%s", runners[i][1], test);
    if (out->len) put_others(a, test, base_path_ending(test), true, out);
    base_buf_free(&text);
    free(manifest);
    free(test);
    return out->len > 0;
}

/* The repository's own scripts, where its runner is none of those above. */
static bool judge_npm(agent *a, const char *path, base_buf *out)
{
    if (top_file_says(a, "package.json", "\"test\":") &&
        !top_file_says(a, "package.json", "no test specified"))
        base_buf_puts(out, "npm test --silent");
    return out->len > 0;
}

/* The same without what is to run before it ("pretest": "eslint ."), since that is not there. */
static bool judge_npm_alone(agent *a, const char *path, base_buf *out)
{
    if (top_file_says(a, "package.json", "\"pretest\":") && judge_npm(a, path, out))
        base_buf_puts(out, " --ignore-scripts");
    return out->len > 0;
}

static bool lint_npm(agent *a, const char *path, base_buf *out)
{
    if (top_file_says(a, "package.json", "\"lint\":")) base_buf_puts(out, "npm run --silent lint");
    return out->len > 0;
}

/* What TypeScript's compiler says of the tree, where the tree brings one. */
static bool compile_typescript(agent *a, const char *path, base_buf *out)
{
    char *configuration = above(a, path, "tsconfig.json");
    if (configuration) base_buf_printf(out, "PATH=node_modules/.bin:$PATH tsc --noEmit -p %s", configuration);
    free(configuration);
    return out->len > 0;
}

/* Folders that a compiler looks for headers in: the usual ones, then those in which the tree has some. */
static void put_include_folders(const agent *a, const char *folder, base_buf *out)
{
    enum { MOST = 16 };
    char **paths = code_index_paths(tool_workspace_index(a->workspace));
    base_buf_printf(out, "-I. -I%s -Iinclude -Isrc", folder);
    for (size_t i = 0, n = 0; paths && paths[i] && n < MOST; i++) {
        char *of = base_ends_with(paths[i], ".h") ? base_path_folder(paths[i]) : NULL;
        base_buf option = {0};
        if (of) base_buf_printf(&option, " -I%s", of);
        const char *there = of ? strstr(out->data, option.data) : NULL;
        while (there && !strchr(" ", there[option.len])) there = strstr(there + 1, option.data);
        if (of && !there && agent__path_is_plain(of)) {
            base_buf_puts(out, option.data);
            n++;
        }
        base_buf_free(&option);
        free(of);
    }
    code_index_paths_free(paths);
}

/* What a compiler says of the changed files, with what C takes for a mere warning: the tree need not be configured. */
static bool judge_c(agent *a, const char *path, base_buf *out)
{
    char *folder = base_path_folder(path);
    base_buf includes = {0};
    put_include_folders(a, folder, &includes);
    base_buf_printf(out,
        "cc -fsyntax-only -fmax-errors=5 -Werror=implicit-function-declaration -Werror=int-conversion "
        "-Werror=incompatible-pointer-types -D_GNU_SOURCE %s %s",
        includes.data, path);
    base_buf_free(&includes);
    put_others(a, path, ".c", false, out);
    free(folder);
    return true;
}

static bool judge_cpp(agent *a, const char *path, base_buf *out)
{
    char *folder = base_path_folder(path);
    base_buf_printf(out, "c++ -fsyntax-only -fmax-errors=5 -I. -I%s -Iinclude -Isrc %s", folder, path);
    put_others(a, path, strrchr(path, '.'), false, out);
    free(folder);
    return true;
}

/* Compiled with what lies beside it, from the folder where its package begins. */
static bool compile_java(agent *a, const char *path, base_buf *out)
{
    char *root = base_path_folder(path), *text = top_file(a, path);
    const char *line = text ? strstr(text, "package ") : NULL;
    if (line && (line == text || line[-1] == '\n'))
        for (const char *p = line; *p && *p != ';' && strcmp(root, ".") != 0; p++)
            if (*p == '.' || p[1] == ';') {
                char *up = base_path_folder(root);
                free(root);
                root = up;
            }
    base_buf_printf(out, "javac -nowarn -proc:none -d \"$TMPDIR/java\" -sourcepath %s %s", root, path);
    free(root);
    free(text);
    return true;
}

static bool judge_java(agent *a, const char *path, base_buf *out)
{
    char *maven = above(a, path, "pom.xml"), *gradle = above(a, path, "gradlew");
    if (maven)
        base_buf_puts(out, "mvn -o -q test");
    else if (gradle)
        base_buf_puts(out, "./gradlew --offline -q test");
    free(maven);
    free(gradle);
    return out->len > 0;
}

typedef bool judge_rule(agent *a, const char *path, base_buf *out);

/* By the name's ending; a rule writes the command, or sets the test itself. The next where one cannot judge. */
static const struct {
    const char *ending;
    judge_rule *find[5];
} rules[] = {
    {".py", {judge_python, lint_python}},
    {".go", {judge_go, compile_go}},
    {".rs", {judge_rust, compile_rust}},
    {".js", {judge_script, judge_npm, judge_npm_alone, lint_npm}},
    {".mjs", {judge_script, judge_npm, judge_npm_alone, lint_npm}},
    {".cjs", {judge_script, judge_npm, judge_npm_alone, lint_npm}},
    {".jsx", {judge_script, judge_npm, judge_npm_alone, lint_npm}},
    {".ts", {judge_script, judge_npm, judge_npm_alone, lint_npm, compile_typescript}},
    {".tsx", {judge_script, judge_npm, judge_npm_alone, lint_npm, compile_typescript}},
    {".c", {judge_built, judge_c}},
    {".h", {judge_built}},
    {".cc", {judge_built, judge_cpp}},
    {".cpp", {judge_built, judge_cpp}},
    {".cxx", {judge_built, judge_cpp}},
    {".java", {judge_java, compile_java}},
};

/* Of rules that run no test: what their yes and no are called. */
static const struct {
    judge_rule *rule;
    agent_verdict_words words;
} checks[] = {
    {judge_c, {"It compiles", "It does not compile"}},
    {judge_cpp, {"It compiles", "It does not compile"}},
    {compile_go, {"It compiles", "It does not compile"}},
    {compile_rust, {"It compiles", "It does not compile"}},
    {compile_typescript, {"It compiles", "It does not compile"}},
    {compile_java, {"It compiles", "It does not compile"}},
    {lint_python, {"The linter has no complaint", "The linter complains"}},
    {lint_npm, {"The linter has no complaint", "The linter complains"}},
};

static const agent_verdict_words *words_of(judge_rule *rule)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i].rule == rule) return &checks[i].words;
    return NULL;
}

static bool is_unfit(const agent *a, const char *command)
{
    for (size_t i = 0; i < a->test.n_unfit; i++)
        if (!strcmp(a->test.unfit[i], command)) return true;
    return false;
}

/* false: none is known. */
static bool find_command(agent *a, const char *path)
{
    const char *configured = agent__configured(a, AGENT_CONFIGURED_TEST);
    if (configured && !is_unfit(a, configured)) {
        agent__set_test(a, configured);
        return true;
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!base_ends_with(path, rules[i].ending) || !agent__path_is_plain(path)) continue;
        for (size_t k = 0; k < sizeof rules->find / sizeof *rules->find && rules[i].find[k]; k++) {
            base_buf command = {0};
            const bool found = rules[i].find[k](a, path, &command);
            if (command.len) agent__set_test(a, command.data);
            base_buf_free(&command);
            if (found && !is_unfit(a, a->test.command)) {
                a->test.words = words_of(rules[i].find[k]);
                a->test.in_copy = rules[i].find[k] == judge_built;
                return true;
            }
            if (!found) continue;
            free(a->test.command);
            a->test.command = NULL;
        }
    }
    return false;
}

/* The command that judges, put aside while another is looked for. */
typedef struct kept {
    char *command; /* owned; NULL: there was none */
    const agent_verdict_words *words;
    bool in_copy;
} kept;

static kept keep(const agent *a)
{
    return (kept){a->test.command ? base_xstrdup(a->test.command) : NULL, a->test.words, a->test.in_copy};
}

static void give_back(agent *a, const kept *k)
{
    agent__set_test(a, k->command);
    a->test.words = k->words;
    a->test.in_copy = k->in_copy;
}

/*
 * A compiler or a linter says nothing of what code does. Where that is all there is for this file, the tests of another file of
 * its language that the turn changed judge both.
 */
static bool find_best(agent *a, const char *path)
{
    const bool found = find_command(a, path);
    if (!found || !a->test.words) return found;
    kept check = keep(a);
    bool is_test = false;
    for (size_t i = 0; i < a->asked.n_changed && !is_test; i++) {
        const char *other = a->asked.changed[i];
        if (!strcmp(other, path) || !base_path_same_ending(other, path)) continue;
        is_test = find_command(a, other) && !a->test.words;
    }
    if (!is_test) give_back(a, &check);
    free(check.command);
    return true;
}

bool agent__find_next_judge(agent *a, const char *path)
{
    if (!a->test.command || !a->test.is_found) return false;
    a->test.unfit = base_xrealloc(a->test.unfit, (a->test.n_unfit + 1) * sizeof *a->test.unfit);
    a->test.unfit[a->test.n_unfit++] = base_xstrdup(a->test.command);
    kept last = keep(a);
    const bool found = find_best(a, path);
    if (!found) give_back(a, &last); /* what was told of stays what is meant */
    a->test.is_found = true;
    free(last.command);
    return found;
}

void agent__find_judge(agent *a, const char *path)
{
    if (a->test.command && !a->test.is_found) return;
    if (a->test.has_values) { /* the plain one again, if there is one for this file */
        free(a->test.command);
        a->test.command = a->test.plain;
        a->test.plain = NULL;
        a->test.has_values = false;
    }
    /* What failed before judges a file that has no judge of its own, a header say. */
    kept last = keep(a);
    bool is_found = !a->test.drops_plain && find_best(a, path);
    if (!is_found && last.command && a->fix.failing && !a->test.drops_plain) {
        give_back(a, &last);
        is_found = true;
    }
    if (is_found) a->test.is_found = true;
    free(last.command);
    agent__add_values(a, path);
}
