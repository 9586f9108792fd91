/*
 * Requests as lines of JSON (--input jsonl): {"text":"...","id":"..."}, an object a line. The text is what a
 * person would type, commands ("/...", "!...") too; the id (a string; may be missing) comes back with what the
 * request gave.
 */
#ifndef KVIST_AGENT_INPUT_H
#define KVIST_AGENT_INPUT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

enum { AGENT_INPUT_MOST = 1 << 20 }; /* bytes of a line */

typedef struct agent_input {
    char *text, *id; /* heap; id NULL: none */
} agent_input;
void agent_input_free(agent_input *i);

/* BASE_E_FORMAT with a sentence: it is no such object, says nothing, or has a member that nobody knows. */
int agent_input_parse(const char *line, size_t n, agent_input *ret, base_err *err);

/* A descriptor, line by line. All zero but for fd. */
typedef struct agent_lines {
    int fd;
    base_buf bytes; /* read and not used up yet */
    size_t number;  /* of the line that was taken last, from 1 */
    bool has_ended;
    const atomic_bool *stop; /* ends a wait, whenever it is set; may be NULL */
} agent_lines;
/*
 * The next line that is not blank, without its end. False: there is none, or a signal came or *stop was set
 * while it waited (then has_ended is not set). A line of more than AGENT_INPUT_MOST bytes is BASE_E_LIMIT and the last one.
 */
bool agent_lines_take(agent_lines *l, base_buf *ret, base_err *err);
void agent_lines_free(agent_lines *l);

#endif
