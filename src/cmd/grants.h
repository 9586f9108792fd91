/*
 * Asking on the terminal, before the screen is there, for what is kept for a tree (agent/approve/approvals.h).
 */
#ifndef KVIST_CMD_GRANTS_H
#define KVIST_CMD_GRANTS_H

#include <stdbool.h>

#include "agent/approve/approvals.h"
#include "base/buf.h"
#include "base/err.h"

bool grants_can_ask(void);          /* there is a terminal to ask on */
char *grants_tree(const char *dir); /* the tree that dir belongs to; the caller frees */
/* as a question shows it: no control characters, nothing invisible */
void grants_show(base_buf *out, const char *text);
/*
 * Asks `question` on the terminal unless it is allowed for good, and keeps a yes. A no is BASE_E_DENIED; the
 * caller says what was not done.
 */
int grants_ask(
    agent_approval_kind kind, const char *tree, const char *what, const char *question, base_err *err);

#endif
