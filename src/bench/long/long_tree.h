/* The tree that a session of `kvist-bench long` works in, made of the data folder's repositories and programs. */
#ifndef KVIST_BENCH_LONG_TREE_H
#define KVIST_BENCH_LONG_TREE_H

#include "base/err.h"

/*
 * Makes `tree` anew: a clone of data/repos/REPO.bundle at `commit` (NULL: its newest); "all": a folder of each of
 * the four; "quixbugs": the programs and their tests, without the corrected ones, committed.
 */
int long_tree_make(const char *data, const char *repo, const char *commit, const char *tree, base_err *err);
/* Runs a line of shell in the tree, its output dropped; *ret_status: its exit status. */
int long_tree_run(const char *tree, const char *line, int *ret_status, base_err *err);

#endif
