#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void expect(tree *t, const char *path, const char *text)
{
    char *now = tree_get(t, path);
    if (!now || strcmp(now, text) != 0)
        fail_msg("%s is:\n%s\nand not:\n%s", path, now ? now : "(missing)", text);
    free(now);
}

char *refactor_with(tree *t, const char *arguments, tool_status status)
{
    tool_result r = tree_call(t, "refactor", arguments, NULL);
    if (r.status != status) fail_msg("%s: %s: %s", arguments, tool_status_word(r.status), r.text.data);
    char *text = strdup(r.text.data ? r.text.data : "");
    tool_result_free(&r);
    return text;
}

void renames(tree *t, const char *name, const char *to, const char *part)
{
    char arguments[300];
    snprintf(
        arguments, sizeof arguments, "{\"operation\":\"rename\",\"name\":\"%s\",\"to\":\"%s\"}", name, to);
    char *text = refactor_with(t, arguments, TOOL_OK);
    if (part) assert_contains(text, part);
    free(text);
}

void refuses(tree *t, const char *arguments, tool_status status, const char *part)
{
    char *text = refactor_with(t, arguments, status);
    assert_contains(text, part);
    free(text);
}

void run_cases(const operation_case *cases, size_t n, tool_status status)
{
    for (size_t i = 0; i < n; i++) {
        const case_file *end = cases[i].files + CASE_FILES;
        tree t;
        tree_make(&t, true);
        for (const case_file *f = cases[i].files; f < end && f->path; f++)
            if (f->text) tree_put(&t, f->path, f->text);
        tree_open(&t);
        if (cases[i].says)
            refuses(&t, cases[i].call, status, cases[i].says);
        else
            free(refactor_with(&t, cases[i].call, status));
        for (const case_file *f = cases[i].files; f < end && f->path; f++)
            if (f->text || f->after) expect(&t, f->path, f->after ? f->after : f->text);
        tree_remove(&t);
    }
}

int refactor_run(const struct CMUnitTest *tests, size_t n, const char *group)
{
    char data[] = "/tmp/kvist-refactor-XXXXXX";
    const char *home = getenv("XDG_DATA_HOME");
    char grammars[600];
    snprintf(grammars, sizeof grammars, "%s%s/kvist/grammars",
        home             ? home
        : getenv("HOME") ? getenv("HOME")
                         : "",
        home ? "" : "/.local/share");
    if (!getenv("KVIST_GRAMMAR_PATH")) setenv("KVIST_GRAMMAR_PATH", grammars, 1);
    if (!mkdtemp(data)) return 1;
    setenv("XDG_DATA_HOME", data, 1);
    const int failed = _cmocka_run_group_tests(group, tests, n, NULL, NULL);
    char remove[80];
    snprintf(remove, sizeof remove, "rm -rf %s", data);
    return system(remove) ? 1 : failed;
}
