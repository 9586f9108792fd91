/*
 * A small tree in a temporary folder for the tests of tools: files, a git repository, calls as a model writes them.
 */
#ifndef KVIST_TESTS_TOOLS_TREE_H
#define KVIST_TESTS_TOOLS_TREE_H

#include "tools/tree/workspace.h"

typedef struct tree {
    char dir[256];   /* the tree */
    char store[256]; /* the session's folder */
    char base[200];  /* holds both, and what lies outside of the tree */
    tool_workspace *w;
    tool_limits limits;
    const char *request; /* the person's words of the next calls; NULL: none */
} tree;

void tree_make(tree *t, bool is_git); /* an empty tree, no workspace yet */
void tree_open(tree *t);              /* opens the workspace (again) */
void tree_remove(tree *t);            /* closes and deletes */
void tree_put(tree *t, const char *path, const char *text);
void tree_put_bytes(tree *t, const char *path, const void *bytes, size_t n);
char *tree_get(tree *t, const char *path); /* NULL: missing; free() it */
/* What a tool is told of a file that was shown; until the next call. */
const char *tree_version(tree *t, const char *path);
void tree_commit(tree *t, const char *message); /* everything, by libgit2 */
bool tree_has(tree *t, const char *path);
/* The path below the tree ("../x": beside it). */
const char *tree_path(tree *t, const char *path);

/*
 * Prepares and runs (when preparation allows it) a call; arguments as JSON text, payload NULL for none. The caller frees the
 * result. Asserts that the runner itself did not fail.
 */
tool_result tree_call(tree *t, const char *tool, const char *arguments, const char *payload);
/* Only prepares. */
tool_result tree_prepare(
    tree *t, const char *tool, const char *arguments, const char *payload, tool_preview *ret);

/* How many times as long as usual a test waits (KVIST_TEST_PATIENCE). */
unsigned tree_patience(void);

void assert_contains(const char *text, const char *part);
void assert_lacks(const char *text, const char *part);

#endif
