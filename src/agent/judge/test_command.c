/* Which command judges: set by whoever knows one, a test file's own, or the one that a request names (contract: judge.h). */
#include <stdlib.h>
#include <string.h>

#include "agent/judge/judge.h"
#include "base/mem.h"

bool agent__runs_tests(const char *command)
{
    static const char *const marks[] = {"test", "check", "tox", "spec"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(command, marks[i])) return true;
    return false;
}

void agent__set_test(agent *a, const char *command)
{
    char *copy = base_xstrdup(command);
    free(a->test.command);
    a->test.command = copy;
    a->test.is_found = a->test.in_copy = false;
    a->test.words = NULL;
}

void agent__put_test_alone(const char *command, const char *name, base_buf *out)
{
    static const struct {
        const char *runner, *before, *behind; /* of the name; before NULL: it stands at the end */
    } ways[] = {{"python3 -m pytest ", NULL, " -k "}, {"python3 -m unittest ", NULL, " -k "},
        {"cargo test ", NULL, " "}, {"go test ", "-run '^", "$' "}};
    const char *at = NULL;
    size_t i = 0;
    const bool is_plain =
        *name &&
        strspn(name, "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(name);
    const bool is_one = is_plain && !strchr(command, '\n') && !strstr(command, " -- ");
    while (is_one && i < sizeof ways / sizeof *ways && !(at = strstr(command, ways[i].runner))) i++;
    if (!at) {
        base_buf_puts(out, command);
        return;
    }
    const size_t n = ways[i].before ? (size_t)(at - command) + strlen(ways[i].runner) : strlen(command);
    base_buf_printf(out, "%.*s%s%s%s%s", (int)n, command, ways[i].before ? ways[i].before : ways[i].behind,
        name, ways[i].before ? ways[i].behind : "", command + n);
}

#define PYTEST     "python3 -m pytest -q -x --tb=short "
#define UNITTEST   "python3 -m unittest -q -f "
#define NO_ADDOPTS "-o addopts= "

/* How a test file is run alone, by its name's ending. */
static const struct {
    const char *ending, *before;
} test_runners[] = {
    {".py", PYTEST}, {".test.js", "node --test "}, {".test.mjs", "node --test "}, {".sh", "sh "}};

/* Packages below src/ are found there, or an installed one of that name would be tested. */
static bool has_src_packages(const agent *a)
{
    char **paths = code_index_paths(tool_workspace_index(a->workspace));
    bool found = false;
    for (size_t i = 0; paths && paths[i] && !found; i++)
        found = !strncmp(paths[i], "src/", 4) && base_ends_with(paths[i], "/__init__.py");
    code_index_paths_free(paths);
    return found;
}

/*
 * Does the tree have pytest measure coverage at each run? That takes a plugin, without which pytest refuses to run at all, and a
 * judge has no use for it.
 */
static bool measures_coverage(const agent *a)
{
    enum { MAX_CONFIG = 1 << 18 };
    static const char *const files[] = {
        "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"};
    bool is_so = false;
    for (size_t i = 0; i < sizeof files / sizeof *files && !is_so; i++) {
        base_buf text = {0};
        if (!tool_workspace_read(a->workspace, files[i], MAX_CONFIG, &text, NULL) && text.len) {
            const char *options = strstr(text.data, "addopts");
            is_so = options && strstr(options, "--cov");
        }
        base_buf_free(&text);
    }
    return is_so;
}

bool agent__path_is_plain(const char *path)
{
    return !strpbrk(path, " \t\n'\"$`\\;&|<>()*?[]{}!#~") && *path != '-';
}

/* Tests that Python runs by itself: they use unittest, and nothing of pytest. */
static bool is_of_unittest(const agent *a, const char *path)
{
    enum { MAX_FILE = 4 << 20 };
    base_buf text = {0};
    const bool is_so = !tool_workspace_read(a->workspace, path, MAX_FILE, &text, NULL) && text.len &&
                       code_has_identifier(text.data, text.len, "unittest") &&
                       !code_has_identifier(text.data, text.len, "pytest");
    base_buf_free(&text);
    return is_so;
}

/* Tests of node's own runner, whatever their file is called. */
static bool is_of_node(const agent *a, const char *path)
{
    enum { MAX_FILE = 4 << 20 };
    static const char *const endings[] = {".js", ".mjs", ".cjs"};
    base_buf text = {0};
    bool is_script = false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        is_script |= base_ends_with(path, endings[i]);
    const bool is_so = is_script && agent__path_is_plain(path) &&
                       !tool_workspace_read(a->workspace, path, MAX_FILE, &text, NULL) && text.len &&
                       (strstr(text.data, "'node:test'") || strstr(text.data, "\"node:test\""));
    base_buf_free(&text);
    return is_so;
}

bool agent__set_test_file(agent *a, const char *path)
{
    if (is_of_node(a, path)) {
        base_buf command = {0};
        base_buf_printf(&command, "node --test %s", path);
        agent__set_test(a, command.data);
        base_buf_free(&command);
        return true;
    }
    for (size_t i = 0; i < sizeof test_runners / sizeof *test_runners; i++) {
        if (!base_ends_with(path, test_runners[i].ending) || !agent__path_is_plain(path)) continue;
        const bool is_python = base_ends_with(path, ".py"),
                   is_plain = is_python && a->test.lacks_pytest && is_of_unittest(a, path);
        base_buf command = {0};
        base_buf_printf(&command, "%s%s%s%s", is_python && has_src_packages(a) ? "PYTHONPATH=src " : "",
            is_plain ? UNITTEST : test_runners[i].before,
            is_python && !is_plain && measures_coverage(a) ? NO_ADDOPTS : "", path);
        agent__set_test(a, command.data);
        base_buf_free(&command);
        return true;
    }
    return false;
}

bool agent__do_without_pytest(agent *a)
{
    const char *runner = a->test.command ? strstr(a->test.command, PYTEST) : NULL;
    if (!runner || a->test.has_values || a->test.lacks_pytest) return false;
    const char *path = runner + strlen(PYTEST);
    if (!strncmp(path, NO_ADDOPTS, strlen(NO_ADDOPTS))) path += strlen(NO_ADDOPTS);
    a->test.lacks_pytest = true;
    char *first = base_xstrndup(path, strcspn(path, " ")); /* of several */
    const bool is_found = a->test.is_found, is_so = is_of_unittest(a, first);
    if (is_so) agent__set_test_file(a, first);
    a->test.is_found = is_found;
    free(first);
    return is_so;
}

/* A word of the request that is a test file of the tree: its command becomes the test. */
static bool take_test_file(agent *a, const char *word, size_t n)
{
    char *name = base_xstrndup(word, n);
    bool taken = false;
    char *path = n > 3 && strstr(name, "test") && strchr(name, '.')
                     ? code_index_path(tool_workspace_index(a->workspace), *name == '@' ? name + 1 : name)
                     : NULL;
    if (path) taken = agent__set_test_file(a, path);
    free(path);
    free(name);
    return taken;
}

static bool asks_for_repair(const char *request)
{
    static const char *const words[] = {"fail", "fix", "repair", "broken", "bug", "pass"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(request, words[i])) return true;
    return false;
}

void agent__find_test(agent *a, const char *request)
{
    bool named = false;
    agent__forget_values(a);
    if (a->test.is_found) { /* for the last turn's change */
        free(a->test.command);
        a->test.command = NULL;
        a->test.is_found = false;
    }
    const char *open = strchr(request, '`'), *close = open ? strchr(open + 1, '`') : NULL;
    if (close) {
        char *command = base_xstrndup(open + 1, (size_t)(close - open - 1));
        named = strchr(command, ' ') && agent__runs_tests(command);
        if (named) agent__set_test(a, command);
        free(command);
    }
    static const char between[] = " \t\n\"'`(),;:";
    for (const char *p = request; *p && !named; p += strspn(p, between)) {
        size_t n = strcspn(p, between), word = n;
        while (word && strchr(".?!", p[word - 1])) word--;
        named = take_test_file(a, p, word);
        p += n;
    }
    a->fix.wanted = named && asks_for_repair(request) && a->settings.mode != AGENT_MODE_PLAN;
}
