/*
 * The files that this turn has changed, as they were and as they are: what an answer claims, and what new text lacks, is
 * held against both. From the undo journal and the tree; engine thread.
 */
#ifndef KVIST_AGENT_TURN_FILES_H
#define KVIST_AGENT_TURN_FILES_H

#include "agent/session/session_state.h"
#include "code/code.h"

/* All texts are owned and end in a NUL byte; "" where there is no file. */
typedef struct agent_turn_file {
    char *path;
    const char *language; /* static; NULL: unknown */
    char *before, *now;
    char *code_before, *code_now; /* comments and docstrings blanked, every byte in its place */
    size_t n_before, n_now;
} agent_turn_file;

typedef struct agent_turn_files {
    agent_turn_file *files;
    size_t n;
} agent_turn_files;

/* agent__turn_files_free. */
void agent__turn_files(const agent *a, agent_turn_files *ret);
void agent__turn_files_free(agent_turn_files *t);

/* Code, no document and no test. */
bool agent__is_turn_code(const agent_turn_file *f);
/* How often the identifier stands in text[0, n). */
uint32_t agent__count_name(const char *text, size_t n, const char *name);

#endif
