/* Where the tests of a definition stand (contract: newtest.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/asked/turn_files.h"
#include "agent/judge/judge.h"
#include "agent/newtest/newtest.h"
#include "base/mem.h"
#include "base/path.h"

/* No test calls the subject and none is named after its file: the file of tests whose text fits the request best. */
static char *likest_test_file(const agent *a, const char *request, const char *subject_path)
{
    enum { MOST = 48 };
    code_hits hits = {0};
    char *path = NULL;
    code_index_search(tool_workspace_index(a->workspace), request, MOST, &hits);
    for (uint32_t i = 0; i < hits.n && !path; i++)
        if (agent__is_test_file(hits.hits[i].path) && base_path_same_ending(hits.hits[i].path, subject_path))
            path = base_xstrdup(hits.hits[i].path);
    code_hits_free(&hits);
    return path;
}

/* How often the file of tests writes the name; 0: it cannot be read. */
static uint32_t count_mentions(const agent *a, const char *path, const char *name)
{
    base_buf text = {0};
    uint32_t count = 0;
    if (!tool_workspace_read(a->workspace, path, NEWTEST_MAX_FILE, &text, NULL) && text.len)
        count = agent__count_name(text.data, text.len, name);
    base_buf_free(&text);
    return count;
}

/*
 * The best of the callers that is a test in the subject's language, of that file; path NULL: of any. What is called a test comes in
 * front of what only stands beside them, then the subject's own folder, then the file that writes the subject most often.
 */
static const code_caller *find_calling_test(const agent *a, const code_caller *callers, uint32_t n,
    const char *path, const char *subject, const char *subject_path)
{
    const code_caller *best = NULL;
    char *home = base_path_folder(subject_path);
    int most = -1;
    uint32_t most_mentions = 0, mentions = 0;
    const char *counted = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const code_caller *c = &callers[i];
        if (!agent__is_test_file(c->path) || !*c->name || !base_path_same_ending(c->path, subject_path) ||
            (path && strcmp(path, c->path) != 0))
            continue;
        char *folder = base_path_folder(c->path);
        const int score = 2 * !strncasecmp(code_last_name(c->name), "test", 4) + !strcmp(folder, home);
        free(folder);
        if (score < most) continue;
        if (!counted || strcmp(counted, c->path) != 0) mentions = count_mentions(a, c->path, subject);
        counted = c->path;
        if (score == most && mentions <= most_mentions) continue;
        best = c;
        most = score;
        most_mentions = mentions;
    }
    free(home);
    return best;
}

/* Letters and digits alone, small ones, without what marks a test: "parsestrict" of parse-strict.test.ts and of parseStrict. */
static void put_plain_name(const char *name, base_buf *out)
{
    static const char *const marks[] = {"tests", "test", "spec"};
    for (; *name && *name != '.'; name++)
        if (isalnum((unsigned char)*name)) base_buf_putc(out, (char)tolower((unsigned char)*name));
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const size_t n = strlen(marks[i]);
        if (out->len > n && !memcmp(out->data, marks[i], n)) {
            memmove(out->data, out->data + n, out->len - n + 1);
            out->len -= n;
        } else if (out->len > n && !memcmp(out->data + out->len - n, marks[i], n)) {
            out->len -= n;
            out->data[out->len] = '\0';
        }
    }
}

char *agent__test_file_named(const agent *a, const char *name, const char *subject_path)
{
    char **paths = code_index_paths(tool_workspace_index(a->workspace)), *found = NULL;
    base_buf wanted = {0};
    put_plain_name(name, &wanted);
    for (size_t i = 0; paths && paths[i] && wanted.len && !found; i++) {
        base_buf own = {0};
        if (!agent__is_test_file(paths[i]) || !base_path_same_ending(paths[i], subject_path)) continue;
        put_plain_name(base_path_name(paths[i]), &own);
        if (own.len == wanted.len && !memcmp(own.data, wanted.data, own.len)) found = base_xstrdup(paths[i]);
        base_buf_free(&own);
    }
    code_index_paths_free(paths);
    base_buf_free(&wanted);
    return found;
}

/* The file with a class or function of tests that is named after it: LRUCacheTest, TestLRUCache. The caller frees; NULL: none. */
static char *file_of_named_tests(const agent *a, const char *name, const char *subject_path)
{
    static const char *const forms[][2] = {{"", "Test"}, {"", "Tests"}, {"Test", ""}, {"", "TestCase"}};
    char *path = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms && !path; i++) {
        base_buf tests = {0};
        code_place *places = NULL;
        base_buf_printf(&tests, "%s%s%s", forms[i][0], name, forms[i][1]);
        const uint32_t n = code_index_define(tool_workspace_index(a->workspace), tests.data, &places);
        for (uint32_t k = 0; k < n && !path; k++)
            if (agent__is_test_file(places[k].path) && base_path_same_ending(places[k].path, subject_path))
                path = base_xstrdup(places[k].path);
        code_places_free(places, n);
        base_buf_free(&tests);
    }
    return path;
}

/*
 * "FIFOCache.popitem": the file of tests that is named after the type that the request says, has tests named after
 * it, or writes it most often.
 */
static char *file_of_said_type(const agent *a, const char *subject, const char *subject_path)
{
    enum { MOST = 200 };
    const char *last = code_last_name(subject);
    if (last == subject) return NULL;
    char *said = base_xstrndup(subject, (size_t)(last - subject - 1)),
         *type = base_xstrdup(code_last_name(said)), *path = agent__test_file_named(a, type, subject_path);
    if (!path) path = file_of_named_tests(a, type, subject_path);
    char **paths = path ? NULL : code_index_paths(tool_workspace_index(a->workspace));
    const char *best = NULL;
    uint32_t most = 0, n_read = 0;
    for (size_t i = 0; paths && paths[i] && n_read < MOST; i++) {
        if (!agent__is_test_file(paths[i]) || !base_path_same_ending(paths[i], subject_path)) continue;
        const uint32_t mentions = count_mentions(a, paths[i], type);
        n_read++;
        if (mentions <= most) continue;
        best = paths[i];
        most = mentions;
    }
    if (best) path = base_xstrdup(best);
    code_index_paths_free(paths);
    free(type);
    free(said);
    return path;
}

/* The file of tests that has the name of the subject's type. */
static char *file_of_type(const agent *a, const char *subject, const char *subject_path)
{
    code_place *places = NULL;
    char *path = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), subject, &places);
    for (uint32_t i = 0; i < n && !path; i++)
        if (!strcmp(places[i].path, subject_path) && *places[i].parent)
            path = agent__test_file_named(a, places[i].parent, subject_path);
    code_places_free(places, n);
    return path;
}

char *agent__find_test_file(
    const agent *a, const char *request, const char *full, const char *subject_path, char **ret_example)
{
    enum { MOST = 256 };
    const char *subject = code_last_name(full);
    static const char between[] = " \t\n\"'`(),;:";
    code_index *x = tool_workspace_index(a->workspace);
    char *path = NULL;
    for (const char *p = request; *p && !path;) {
        p += strspn(p, between);
        size_t n = strcspn(p, between), word = n;
        while (word && strchr(".?!", p[word - 1])) word--;
        char *given = base_xstrndup(p, word);
        if (strchr(given, '.')) path = code_index_path(x, given);
        if (path && !agent__is_test_file(path)) {
            free(path);
            path = NULL;
        }
        free(given);
        p += n;
    }
    if (!path) path = agent__test_file_named(a, subject, subject_path);
    if (!path) path = file_of_said_type(a, full, subject_path);
    if (!path) path = file_of_named_tests(a, subject, subject_path);
    char *own = path ? NULL : agent__test_file_of(a, subject_path);
    const code_caller *caller = NULL;
    code_caller *callers = NULL;
    const uint32_t n = code_index_callers(x, subject, MOST, &callers), n_here = n < MOST ? n : MOST;
    if (path || own) caller = find_calling_test(a, callers, n_here, path ? path : own, subject, subject_path);
    /* "key=keys.f" is no call of f, and the file is its tests' all the same. */
    const bool is_written = own && count_mentions(a, own, subject) > 0;
    if (!caller && !path && !is_written)
        caller = find_calling_test(a, callers, n_here, NULL, subject, subject_path);
    if (caller) *ret_example = base_xstrdup(code_last_name(caller->name));
    if (caller && !path) path = base_xstrdup(caller->path);
    code_callers_free(callers, n_here);
    if (!path) {
        path = own;
        own = NULL;
    }
    free(own);
    if (!path) path = file_of_type(a, subject, subject_path);
    if (!path) path = likest_test_file(a, request, subject_path);
    if (!path) path = agent__calling_test_of(a, subject_path);
    /* Rust's tests stand in the file itself. */
    return path || !base_ends_with(subject_path, ".rs") ? path : base_xstrdup(subject_path);
}
