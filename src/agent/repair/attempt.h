/*
 * Another attempt at a definition: a failed one is taken back, and the next answer is begun by the program, up to
 * where the model has to go on.
 */
#ifndef KVIST_AGENT_ATTEMPT_H
#define KVIST_AGENT_ATTEMPT_H

#include "agent/session/session_state.h"

/* --- attempt.c --- */
void agent__fix_free(agent *a); /* what a turn knows of its attempts, the doubts too */
/*
 * A change was refused or changed nothing: its tokens are put aside, the next answer begins with the call, for the same
 * definition or for the next one that the request may mean, whose text goes to out.
 */
void agent__came_to_nothing(agent *a, uint32_t from, uint32_t to, base_buf *out);
/*
 * After a failed test: undoes the change unless it was the last attempt, and writes what the model is told.
 */
void agent__take_back(agent *a, const char *path, const char *name, const char *output, base_buf *out);
/*
 * What the harness writes of the next answer where a model would not make the call: the beginning of a line
 * that it ends (what is wrong), then the call up to the new definition's first line.
 */
typedef struct agent_opening {
    base_buf thought, call; /* control tokens in it: AGENT_PROMPT_MARK */
    base_buf behind; /* of the definition: follows the first line that the model writes behind the call */
    base_buf old;    /* the definition as it is: none of its own conditions is followed by `behind` */
    bool is_line;    /* what the model writes is one line: `behind` follows it, whatever it says */
    bool is_doubt;   /* the call goes on into the definition: up to a doubt of doubt.c, or early_return.c's */
} agent_opening;
void agent_opening_free(agent_opening *o);
/*
 * Empty when no definition is in view. further: not the first attempt at it, so the next doubt is tried while
 * there is one.
 */
int agent__open_call(agent *a, bool further, agent_opening *opening, base_err *err);
/*
 * An answer (tokens [from, to)) came without a change that makes the test pass: what the model is asked in out. A
 * useless answer (it went in circles) is put aside. false: the answer is final.
 */
bool agent__ask_again(agent *a, uint32_t from, uint32_t to, bool is_useless, base_buf *out);
/* Why a call may not change this file (the test that judges stays as it is); NULL: it may. */
const char *agent__forbids_change(const agent *a, const char *path);
typedef struct agent_definition {
    char *path, *name, *language;
    base_buf text;     /* as it is now */
    size_t body;       /* byte of text where its body begins */
    uint32_t line;     /* of the file, where a function's text begins; 0: it is none */
    uint32_t from, to; /* lines of the file that are to be written, which text then is; 0: all */
} agent_definition;
/* As it is now, or without a text where the tree has none of that name. false: it stands elsewhere. agent_definition_free. */
bool agent__read_definition(const agent *a, const char *path, const char *name, agent_definition *ret);
void agent_definition_free(agent_definition *t);
/*
 * A definition too long to be written again becomes those of its lines that the request speaks of. false: it is none, no line fits, or
 * the model's calls have no room for it.
 */
bool agent__narrow(const agent *a, agent_definition *t);
/* Are "from" and "to" of a rewrite's arguments these lines? What else a small model writes there it did not count. */
bool agent__are_narrowed(const agent *a, const base_json *arguments);
/* The call that rewrites it, up to the first line of its new text. */
void agent__put_call(const agent *a, const agent_definition *t, base_buf *out);

/* --- parts.c --- */
/* A test fails behind this turn's change: the change in parts becomes the first answers that candidates try (fix.kept). */
void agent__keep_parts(agent *a);

/* --- doubt.c --- */
/*
 * The next attempt at a definition: what stands before the next doubted token, and the other token, into out;
 * nothing when none is left. head: what stands in front of the definition in the answer.
 */
int agent__doubt_next(agent *a, const char *head, const agent_definition *old, base_buf *out, base_err *err);
void agent__doubts_free(agent *a);

/* --- early_return.c --- */
/* A further attempt at t, whose call stands in the opening already: a condition in front of its body. Once a turn. */
bool agent__open_early_return(agent *a, const agent_definition *t, agent_opening *opening);
/*
 * The model has written text[0, n) behind the call: once its first line is over (*ret_is_over), what follows that is
 * put to out. true: something does; false: nothing yet, it left the function on that line by itself, or the line
 * is a condition that stands in the old definition (o->old).
 */
bool agent__put_behind_line(
    const agent_opening *o, const char *text, size_t n, bool *ret_is_over, base_buf *out);

#endif
