/*
 * What it costs git to match paths against the patterns of .gitignore and .gitattributes. It asks every line for every path, and of a
 * line with "**" it tries every way to share the path's folders out among them: a tree's author stops git, and whatever reads the
 * tree by its rules, with a few lines, some nested folders and some hundred files.
 */
#ifndef KVIST_TOOLS_FILE_GIT_RULES_H
#define KVIST_TOOLS_FILE_GIT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOOL_GIT_MOST_STARS = 16 }; /* of one line that are told apart */

/* The lines of one file by their number of "**", each counted by its length. */
typedef struct tool_git_rules {
    uint64_t weights[TOOL_GIT_MOST_STARS + 1];
} tool_git_rules;

/* Files of a working tree that git reads wherever it is used, NULL-terminated; the first two hold patterns. */
extern const char *const tool__git_rules_names[];
bool tool__git_rules_is_name(const char *name);

/* Any bytes. */
void tool__git_rules_weigh(const char *text, size_t n, tool_git_rules *ret);
/* Steps (some tens of nanoseconds each) that one path takes, `folders` below the file that has the rules. Saturates. */
uint64_t tool__git_rules_steps(const tool_git_rules *r, unsigned folders);

#endif
