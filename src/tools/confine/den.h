/*
 * A folder outside of the tree that commands write (their tmp, a copy of the tree). It has its name only while one of them starts, or
 * runs without mounts of its own: a link that a command leaves in the tree would else lead the person's git into a repository
 * there, which runs what its configuration names. Otherwise it lies under a name that nobody can guess, and the link leads nowhere.
 *
 * Any thread.
 */
#ifndef KVIST_TOOLS_CONFINE_DEN_H
#define KVIST_TOOLS_CONFINE_DEN_H

#include "base/err.h"

typedef struct tool_den tool_den;

/* A new one, empty: /tmp/kvist-KIND-XXXXXX/in. Short, since paths of sockets have 107 bytes; nobody else may enter. */
int tool__den_make(const char *kind, tool_den **ret, base_err *err);
const char *tool__den_path(const tool_den *d);
/* Counted: it has its name from the first opening to the last closing. */
int tool__den_open(tool_den *d, base_err *err);
void tool__den_close(tool_den *d);
/* Another name that nobody can guess: a command that has it as a mount can read where it lies, so at its end it moves. */
void tool__den_move(tool_den *d);
/* Removes it and what is in it. NULL is fine. */
void tool__den_free(tool_den *d);

#endif
