/*
 * Patterns of .gitignore and .gitattributes that git would be matching for ever: it tries every way to share a path's folders out among the
 * "**" of a pattern, so a tree's author stops git, and whatever reads the tree by its rules, with one line and some nested folders.
 */
#ifndef KVIST_TOOLS_FILE_GIT_RULES_H
#define KVIST_TOOLS_FILE_GIT_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* Has a line more of them than anybody writes? Any bytes. */
bool tool__git_rules_are_endless(const char *text, size_t n);
/* The same of a file that is named so (absolute path); false where it cannot be read. */
bool tool__git_rules_file_is_endless(const char *path);

#endif
