/* What is a test in a language, and that a new file of tests is in its subject's (contract: newtest.h). */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/judge/judge.h"
#include "agent/newtest/newtest.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

/* Rust: #[test] stands in front of it; a module of tests may have nothing but a macro that makes them. */
static bool is_rust_test(const code_definition *d, const base_buf *text)
{
    static const char mark[] = "#[test]";
    const bool in_tests = !strcmp(d->parent, "tests") || !strcmp(d->parent, "test");
    return (d->name_from <= text->len && d->name_from > d->from &&
               memmem(text->data + d->from, d->name_from - d->from, mark, sizeof mark - 1)) ||
           (in_tests && !strcmp(d->what, "macro"));
}

/* Java: @Test stands in front of it, or it is a method of JUnit 3. */
static bool is_java_test(const code_definition *d, const base_buf *text)
{
    static const char mark[] = "@Test";
    const bool has_mark = d->name_from <= text->len && d->name_from > d->from &&
                          memmem(text->data + d->from, d->name_from - d->from, mark, sizeof mark - 1);
    return !strcmp(d->what, "method") && (has_mark || !strncmp(d->name, "test", 4));
}

bool agent__is_test_definition(const code_definition *d, const char *path, const base_buf *text)
{
    if (base_ends_with(path, ".rs")) return is_rust_test(d, text);
    if (base_ends_with(path, ".java")) return is_java_test(d, text);
    return !strncasecmp(d->name, "test", 4) && strcmp(d->what, "class") != 0;
}

/* Languages whose files one runner tests together. */
static const char *family_of(const char *path)
{
    static const char *const kin[][2] = {{"cpp", "c"}, {"typescript", "javascript"}, {"tsx", "javascript"}};
    const char *language = code_language(path, "", 0);
    for (size_t i = 0; language && i < sizeof kin / sizeof *kin; i++)
        if (!strcmp(language, kin[i][0])) return kin[i][1];
    return language;
}

/* A file of tests of that family; the one in paths, or NULL. */
static const char *find_tests_of(char *const *paths, const char *family)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        const char *own = family_of(paths[i]);
        if (own && !strcmp(own, family) && agent__is_test_file(paths[i])) return paths[i];
    }
    return NULL;
}

char *agent__why_other_language(const agent *a, const char *path)
{
    const char *own = path ? family_of(path) : NULL;
    if (a->info.strong || !(a->asked.test || a->asked.test_waits) || !own || code_language_is_document(own) ||
        !code_path_is_test(path))
        return NULL;
    char *there = code_index_path(tool_workspace_index(a->workspace), path), *subject_path = NULL;
    const bool is_new = !there && !strstr(a->request, base_path_name(path));
    char *subject = is_new ? agent__find_subject(a, a->request, &subject_path) : NULL;
    const char *family = subject ? family_of(subject_path) : NULL;
    base_buf why = {0};
    if (family && strcmp(family, own) != 0) {
        char **paths = code_index_paths(tool_workspace_index(a->workspace));
        const char *beside = find_tests_of(paths, family);
        if (beside || !find_tests_of(paths, own)) {
            base_buf_printf(
                &why, "%s is %s (%s), and %s would test it in %s", subject, family, subject_path, path, own);
            if (beside) base_buf_printf(&why, "; tests in %s stand in %s", family, beside);
        }
        code_index_paths_free(paths);
    }
    free(there);
    free(subject);
    free(subject_path);
    return why.len ? base_buf_take(&why) : NULL;
}
