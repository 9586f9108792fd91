/*
 * What of the tree a line of a shell, or a script, runs: files that it names behind an interpreter, programs of the tree, and what a
 * builder reads unnamed (make's Makefile). It is found by words, so it is a list of what a person should know of and no proof: what
 * these files run or import in turn is the tree's code.
 *
 * Thread: any; reads the file system.
 */
#ifndef KVIST_TOOLS_GUARD_RUNS_H
#define KVIST_TOOLS_GUARD_RUNS_H

#include <stddef.h>

/* Gets a file that is there, below the root; a link, and what it leads to. Perhaps more than once. */
typedef void tool_runs_fn(void *user, const char *path);
/* root: the tree's folder, absolute. */
void tool__runs(const char *root, const char *text, size_t n, tool_runs_fn *fn, void *user);
/*
 * The same files of one command as text: a sum over their bytes now, and their names, "3f2a... (Makefile, run.sh)". NULL: it runs
 * none. What is no text is the product of a build and left out. The caller frees.
 */
char *tool_runs_sum(const char *root, const char *command);

#endif
