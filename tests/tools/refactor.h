/* What the tests of operations on definitions share: a tree, one call of the tool, and what stands afterwards. */
#ifndef TESTS_TOOLS_REFACTOR_H
#define TESTS_TOOLS_REFACTOR_H

#include "tree.h"

struct CMUnitTest;

/* Operations as a table: a call, the files in front of it and what they are afterwards, or what is refused, with why. */
enum { CASE_FILES = 8 };
typedef struct case_file {
    const char *path, *text, *after; /* text NULL: it is not there; after NULL: as it was */
} case_file;
typedef struct operation_case {
    const char *call, *says; /* says NULL: anything */
    case_file files[CASE_FILES];
} operation_case;
/* Each ends with this status. */
void run_cases(const operation_case *cases, size_t n, tool_status status);
#define DONE(cases)    run_cases(cases, sizeof cases / sizeof *cases, TOOL_OK)
#define REFUSED(cases) run_cases(cases, sizeof cases / sizeof *cases, TOOL_REFUSED)

/* The file's whole text is this, or the test fails. */
void expect(tree *t, const char *path, const char *text);

/* Calls `refactor`, which has to end with this status. What it said; free() it. */
char *refactor_with(tree *t, const char *arguments, tool_status status);

/* A rename that is done; part (NULL: anything) is in what it says. */
void renames(tree *t, const char *name, const char *to, const char *part);

/* A call that ends with this status, and says part. */
void refuses(tree *t, const char *arguments, tool_status status, const char *part);

/* Runs the n tests as the group of this name, with a data folder of their own, where pending changes are named. */
int refactor_run(const struct CMUnitTest *tests, size_t n, const char *group);

#endif
