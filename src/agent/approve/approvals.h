/*
 * What a person allowed for good, for one tree: an exact command, a path to read, a server. A file for each kind,
 * readable by its owner only, a line "TREE<tab>WHAT" for each, both in base_show's form: it can be read, searched
 * and edited by hand. It is the content that is allowed: another command, or the same one in another tree, asks.
 */
#ifndef KVIST_AGENT_APPROVALS_H
#define KVIST_AGENT_APPROVALS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef enum agent_approval_kind {
    AGENT_APPROVAL_COMMAND,  /* runs without asking, confined as ever: "always in this tree" */
    AGENT_APPROVAL_READ,     /* commands may read it outside of the tree: --allow-read */
    AGENT_APPROVAL_ENDPOINT, /* what the model is to read may be sent there: --endpoint */
    AGENT_N_APPROVAL_KINDS
} agent_approval_kind;
const char *agent_approval_word(agent_approval_kind kind); /* "command", "read", "endpoint" */

/* One of them, as the person gave it (not in base_show's form). */
typedef struct agent_approval {
    agent_approval_kind kind;
    char *tree, *what;
} agent_approval;
typedef struct agent_approvals {
    agent_approval *rows;
    size_t n, cap;
} agent_approvals;
void agent_approvals_free(agent_approvals *a);

/*
 * Those of a tree (NULL: of every tree), in the order of kinds and of their age. Lines that are none are passed
 * by. BASE_E_STATE: others may write the file, so nothing in it counts.
 */
int agent_approvals_read(const char *tree, agent_approvals *ret, base_err *err);
/* The lines of one file; pure. Appends to *ret. */
void agent_approvals_parse(
    agent_approval_kind kind, const char *text, size_t n, const char *tree, agent_approvals *ret);
/* A file that cannot be believed allows nothing: then *err (which may be NULL) says why. */
bool agent_approvals_has(agent_approval_kind kind, const char *tree, const char *what, base_err *err);
int agent_approvals_add(agent_approval_kind kind, const char *tree, const char *what, base_err *err);
/* One that is not there (any more) is BASE_E_NOT_FOUND. */
int agent_approvals_remove(const agent_approval *which, base_err *err);

/*
 * What a yes for longer than once to this command is kept as. It holds for the files of the tree that the command names to run, or
 * that its builder reads, as they are now (tools/guard/runs.h): "as of SUM (run.sh): sh run.sh". in_copy: in a copy of the tree,
 * where it may do less. Neither beginning is a command. The caller frees.
 */
char *agent_allowance(const char *tree, const char *command, bool in_copy);
/* Was the same command allowed while these files were others? */
bool agent_allowance_is_of(const char *allowance, const char *command);

#endif
