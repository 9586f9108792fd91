/*
 * What a person allowed once for a tree: a file in the data folder for each kind, a line "TREE<tab>WHAT" for each
 * grant, both in base_show's form.
 */
#ifndef KVIST_CMD_GRANTS_H
#define KVIST_CMD_GRANTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

bool grants_can_ask(void);          /* there is a terminal to ask on */
char *grants_tree(const char *dir); /* the tree that dir belongs to; the caller frees */
void grants_show(base_buf *out, const char *text);
/*
 * Asks `question` on the terminal unless `file` has the grant, and keeps a yes there. A no is
 * BASE_E_DENIED; the caller says what was not done.
 */
int grants_ask(const char *file, const char *tree, const char *what, const char *question, base_err *err);

#endif
