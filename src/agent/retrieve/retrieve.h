/*
 * What the tree says to a request and of an answer: files and definitions that a request names or describes, in
 * front of it, as far as there is room; the places that an answer names, as the index has them.
 */
#ifndef KVIST_AGENT_RETRIEVE_H
#define KVIST_AGENT_RETRIEVE_H

#include "agent/session/session_state.h"

/* --- named.c --- */
enum { AGENT_MAX_NAMED = 6, AGENT_NAMED_SURE = 8 }; /* sure: a score from which it is no mere word */
typedef struct agent_named {
    struct {
        char *name;
        uint32_t score;
    } items[AGENT_MAX_NAMED + 1]; /* best first */
    uint32_t n;
} agent_named;
/* What the request names or describes, of what the tree defines outside of tests; agent_named_free. */
void agent__find_named(const agent *a, const char *request, agent_named *ret);
void agent_named_free(agent_named *n);

/* --- delegate.c --- */
/*
 * What a function of a few lines does nothing but call, where the tree defines that once, outside of tests; NULL: nothing.
 * The caller frees.
 */
char *agent__find_delegate(const agent *a, const code_place *wrapper, const char *name);

/* --- leaving.c --- */
/* Why this file is not sent to an engine elsewhere unasked; NULL: it may be. */
const char *agent__why_stays(const agent *a, const char *path);

/* --- room.c --- */
uint32_t agent__room_bytes(const agent *a); /* cap of one tool result */
/*
 * How many of a file's n_tokens (in n_lines) are put in front of a request that names it by @, where n_taken
 * tokens of such files are chosen already. Says what does not fit; asks where that is the person's to decide.
 */
uint32_t agent__file_room(agent *a, const char *path, uint32_t n_tokens, uint32_t n_lines, uint32_t n_taken);

/* --- context.c --- */
int agent__append_context(agent *a, const char *request, base_err *err);
/*
 * "Add a function f to strutils", "write g in the parser module": the one file where something new is to stand, whose text
 * says how. What the tree has of the same words elsewhere is copied from by a small model. NULL: none is named. The caller
 * frees.
 */
char *agent__home_of_addition(const agent *a, const char *request);

/* --- tree_news.c --- */
void agent__read_instructions(agent *a, base_buf *ret); /* AGENTS.md, when there is one; else nothing */
void agent__mark_stale(agent *a, const char *path);     /* rows that show an older text of it */
void agent__notice_changes(agent *a, base_buf *told);   /* what the person changed since it was shown */

/* --- changes.c --- */
/* A diff that git makes, what changed since a commit: no function of the tree that is called "diff". */
bool agent__asks_about_changes(const agent *a, const char *request);
/*
 * Puts that in front of the request, as far as there is room; *ret_has false: there was nothing to be put. Then answer gets the
 * sentence that says so (nothing has changed, no such commit), where the request asks for nothing else; else it is a notice.
 */
int agent__append_changes(agent *a, const char *request, bool *ret_has, base_buf *answer, base_err *err);

/* --- hunks.c --- */
/* Appends a diff whose hunks are headed with the definitions that they change, as the tree has them now. */
void agent__put_headed(const agent *a, const char *diff, size_t n, base_buf *out);

/* --- used.c --- */
enum { AGENT_MAX_ASKED_USES = 2 };
/* The definitions of the tree whose uses the request asks for ("can I delete f?"); agent__asked_uses_free. */
uint32_t agent__find_asked_uses(const agent *a, const char *request, char *ret[AGENT_MAX_ASKED_USES]);
void agent__asked_uses_free(char **names, uint32_t n);
/* Their uses, a line each, for the model. false: it is defined several times, or it was cancelled. */
bool agent__put_uses(const agent *a, const char *name, base_buf *out);
/* The same in one line, below an answer; where that says otherwise the line says so. */
bool agent__tell_uses(const agent *a, const char *name, const char *answer, base_buf *out);

/* --- answer_places.c --- */
/* Below an answer in words: its places as the index has them, and who calls what it was asked for. */
enum { AGENT_MAX_PLACES = 8 };
void agent__tell_places(agent *a, const char *text, size_t n);
/* The places of an answer, for the request behind it that says "it". */
void agent__note_answered(agent *a, const agent_place_row *places, size_t n);

#endif
