/*
 * Names that a change would use and that nothing binds (code/unbound.h). A small model takes words of one function into
 * another; where no test runs those lines nobody would notice. In C, where any header may bind a name, only locals of other
 * functions count which the tree uses as nothing else.
 */
#ifndef KVIST_TOOLS_EDIT_BOUND_H
#define KVIST_TOOLS_EDIT_BOUND_H

#include "tools/tree/workspace.h"

/* A change of one file, and what is known of what it is for. */
typedef struct tool_bound {
    const char *path;
    const base_buf *old_text;
    const char *request; /* NULL: not known */
    char *const *added;  /* [n_added] names that the new text has to write */
    size_t n_added;
} tool_bound;

/*
 * Where new_text uses names that it does not bind, that the old text did not use so and that the request does not say, the
 * lines of it that changed around them are taken back, and `note` says so. false: nothing would be left of the change, or
 * what is left is no program, or no longer writes what is added: the result refuses.
 */
bool tool__bind(
    tool_workspace *w, const tool_bound *b, base_buf *new_text, base_buf *note, tool_result *result);

#endif
