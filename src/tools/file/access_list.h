/*
 * Who besides its owner may do what with a file, where its mode does not say it all: an access list (ACL). What replaces a file has
 * to carry it over: the mode shows for the group what the list allows anybody in it, so the mode alone would give that to the group;
 * and a folder's default list would open a new file in it to whom that names.
 */
#ifndef KVIST_TOOLS_FILE_ACCESS_LIST_H
#define KVIST_TOOLS_FILE_ACCESS_LIST_H

#include "base/buf.h"

typedef struct tool_access_list {
    base_buf list;     /* empty: it has none */
    base_buf defaults; /* of a folder, for what is made in it */
} tool_access_list;

void tool__access_list_free(tool_access_list *l);

/* Both lists of an open file or folder. 0, or -1 with errno. */
int tool__access_list_read(int fd, tool_access_list *ret);

/* Gives it exactly these, so what it got from its folder goes. To be followed by fchmod. 0, or -1 with errno. */
int tool__access_list_give(int fd, const tool_access_list *l);

#endif
