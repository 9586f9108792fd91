/* Where the tests of a definition stand (contract: newtest.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
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

/*
 * The best of the callers that is a test in the subject's language, of that file; path NULL: of any. What is called a test comes in
 * front of what only stands beside them, and then the subject's own folder.
 */
static const code_caller *find_calling_test(
    const code_caller *callers, uint32_t n, const char *path, const char *subject_path)
{
    const code_caller *best = NULL;
    char *home = base_path_folder(subject_path);
    int most = -1;
    for (uint32_t i = 0; i < n; i++) {
        const code_caller *c = &callers[i];
        if (!agent__is_test_file(c->path) || !*c->name || !base_path_same_ending(c->path, subject_path) ||
            (path && strcmp(path, c->path) != 0))
            continue;
        char *folder = base_path_folder(c->path);
        const int score = 2 * !strncasecmp(code_last_name(c->name), "test", 4) + !strcmp(folder, home);
        free(folder);
        if (score <= most) continue;
        best = c;
        most = score;
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
    const agent *a, const char *request, const char *subject, const char *subject_path, char **ret_example)
{
    enum { MOST = 256 };
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
    char *own = path ? NULL : agent__test_file_of(a, subject_path);
    const code_caller *caller = NULL;
    code_caller *callers = NULL;
    const uint32_t n = code_index_callers(x, subject, MOST, &callers), n_here = n < MOST ? n : MOST;
    if (path || own) caller = find_calling_test(callers, n_here, path ? path : own, subject_path);
    if (!caller && !path) caller = find_calling_test(callers, n_here, NULL, subject_path);
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
