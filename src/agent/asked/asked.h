/*
 * What a request asks to be changed, and what came of it: the names that shall come, go or change, what else has
 * to change with them, and how far the tree has it.
 */
#ifndef KVIST_AGENT_ASKED_H
#define KVIST_AGENT_ASKED_H

#include <string.h>

#include "agent/session/session_state.h"
#include "agent/words/operation_words.h"

/* --- wording.c --- */
/* A request for an operation without its verb, read with the tree's names; agent_operation_words_free. */
bool agent__read_wording(const agent *a, const char *request, agent_operation_words *ret);
/* Does a definition of that name stand in the file that the request calls so? */
bool agent__stands_in(const agent *a, const char *name, const char *file);

/*
 * "isSatisfiedBy of Range", "close in Pool", "Pool's close": where several types of the tree have such a member, the one
 * whose type stands beside the name. `name` itself where none does; takes it, the caller frees what it gets.
 */
char *agent__with_its_type(const agent *a, const char *request, char *name);

/* --- wanted_test.c --- */
/* A new test is wanted in words that order none: agent_says_test_is_wanted, and "test f with ..." of a name that the tree has. */
bool agent__wants_new_test(const agent *a, const char *request);
/*
 * Sets what the request wants of tests, once its change is known. addition: what it wants added, or NULL; first: the first
 * definition that it names, or NULL.
 */
void agent__want_test(agent *a, const char *request, const agent_addition_words *addition, const char *first);
/* A test was put off (asked.test_waits), and what it is to test is in the tree as it was asked for. */
bool agent__is_test_due(const agent *a);
/* The request orders code first, and documents or tests alone were written. */
bool agent__lacks_code(const agent *a);
/* One was asked for, new or changed, and no file of tests was written. */
bool agent__lacks_test(const agent *a);

/* --- ask.c --- */
void agent__ask(agent *a, const char *request); /* when the index is there, before anything is changed */
void agent__asked_free(agent *a);
/* What a turn asked (turn/which.c) waits for no answer any more. */
void agent__forget_which(agent *a);
void agent__forget_meant(agent *a); /* what meant.c found */

/* --- said_place.c --- */
/* "repr() of an empty Patch": Patch.__repr__ is what has to change. false: no such thing is said. */
bool agent__find_special(agent *a, const char *request);
/* "The command line tool", "the program": the one file of the tree where such a program begins; the caller frees. NULL: none is said. */
char *agent__find_program(const agent *a, const char *request);
/* The first option that the request writes ("--version"); the caller frees. NULL: none. */
char *agent__read_option(const char *request);
/* "With --version the program should ...": the function that reads the program's options has to change. false: nothing of the kind. */
bool agent__find_option(agent *a, const char *request);

/* --- wishes.c --- */
/* A hash of the texts that the tree's definitions of that name have now; path: those of this file, NULL: all. */
uint64_t agent__text_of(const agent *a, const char *path, const char *name);
/* Takes the name. before: of AGENT_WISH_CHANGES what agent__text_of says now. */
void agent__wish(agent_asked *x, char *name, agent_wish_kind kind, uint64_t before);
/* From now on this definition has to change as well; path NULL: one of the name, wherever it stands. */
void agent__wish_changed(agent *a, const char *path, const char *name);
bool agent__is_met(const agent *a, const agent_wish *w);
/* Names of that kind whose wish is not met: "a, b"; the number of them. */
uint32_t agent__list_wishes(const agent *a, agent_wish_kind kind, base_buf *out);
void agent__listed_free(agent_listed *l);
/* A renaming or deletion of that name was done: what still has it is another thing. */
void agent__name_went(agent *a, const char *name);

/* --- outcome.c --- */
void agent__changed(agent *a, const char *path); /* a call wrote this file */
static inline bool agent__is_changed(const agent *a, const char *path)
{
    for (size_t i = 0; i < a->asked.n_changed; i++)
        if (!strcmp(a->asked.changed[i], path)) return true;
    return false;
}
void agent__taken_back(agent *a, const char *path); /* and that was undone */
/* What was asked for and is not in the tree, as sentences; false: nothing is known to be missing. */
bool agent__is_missing(const agent *a, base_buf *out);
/* The same, but for documents: no judge looks at those. */
bool agent__awaits_code(const agent *a);
/* The next answer begins with the call that writes what is missing; false: where that is, is not known. */
bool agent__aim_at_missing(agent *a);
/*
 * The same for an answer in words, where other behaviour was asked for: it names just one function or method of the
 * tree. false: nothing was aimed at, since it names none, several, or one of several files and no file.
 */
bool agent__aim_at_said(agent *a, const char *text);
/* The next answer begins with the call that writes this definition. */
void agent__aim_at(agent *a, const char *path, const char *name);
/* It asks for other behaviour of what stands there: nothing comes, goes or is called otherwise. */
bool agent__asks_for_behaviour(const agent *a);
/* The last line of a turn that was asked for a change. */
void agent__tell_outcome(agent *a);
void agent__refusal_free(agent_refusal *x);
/* "The rename of a to b was refused: ...": the tool's words. */
void agent__put_refusal(const agent_refusal *x, base_buf *out);
/* "rename of a to b", "delete of a" */
void agent__put_operation(const agent_refusal *x, base_buf *out);

/* --- files.c --- */
/* "Delete .travis.yml and a.py": the files of the tree that are to go, up to `most` (heap); how many. */
uint32_t agent__list_files(const agent *a, const char *request, agent_listed *ret, uint32_t most);
bool agent__deletes_files(const agent *a, const char *request);

/* --- twins.c --- */
typedef struct agent_standing {
    char *path, *name, *parent; /* path NULL: it is no definition of the tree */
    base_buf text;
} agent_standing;
/* The definition that `name` ("f", "f:120") of `path` is now, before it is written; agent__standing_free. */
void agent__find_standing(const agent *a, const char *path, const char *name, agent_standing *ret);
void agent__standing_free(agent_standing *s);
/* `old` was rewritten: what stands in another place that the request means as well has to change too. */
void agent__wish_twins(agent *a, const agent_standing *old);

/* --- claims.c --- */
/* Of what the last answer says was done (a->asked.said) that which was not, as sentences. */
void agent__put_unfounded(const agent *a, base_buf *out);

/* --- unread.c --- */
/* Fields that this turn's text sets, that are new and that nothing in the tree reads: "a, b"; the number of them. */
uint32_t agent__list_unread(const agent *a, base_buf *out);
/* Is that a fault? Not where the request is for the field itself. */
bool agent__should_be_read(const agent *a);

/* --- unused.c --- */
/*
 * Functions that are new in this turn's text, for which the request does not ask by name or of which it says that they are to
 * be used, and that nothing in the tree uses: "a, b"; the number of them.
 */
uint32_t agent__list_unused(const agent *a, base_buf *out);

/* --- each.c --- */
/* Several functions that the request lists as what is to change: each of them has to. Behind agent__ask. */
void agent__wish_each(agent *a, const char *request);

/* --- users.c --- */
/* Functions of which the request says that they use the new one ("and call it in put"). Behind agent__ask. */
void agent__wish_users(agent *a, const char *request);

/* --- also.c --- */
/* Files of which the request says that they change too ("and declare it in a.d.ts as well"). Behind agent__find_meant. */
void agent__wish_files(agent *a, const char *request);
/*
 * The file of the tree that a word means: by its name, or a document that everybody calls without its ending ("the README").
 * The caller frees; NULL: none.
 */
char *agent__find_meant_file(const agent *a, const char *said);
/*
 * Why a text is none that was asked for in its file: "use f in F" wants f to be said there. The caller frees; NULL: nothing
 * against it. arguments: of the call that would write it.
 */
char *agent__why_not_used(const agent *a, const base_json *arguments, base_str text);

/* --- parameters.c --- */
/*
 * Why a text is none that was asked for: the request writes the new function's parameters, and the text has others. The
 * caller frees; NULL: nothing against it.
 */
char *agent__why_other_parameters(const agent *a, const base_json *arguments, base_str text);

/* --- mended_test.c --- */
/* The one test that a request names which says that the test is wrong, into a->asked.meant. Behind agent__find_meant. */
void agent__find_mended_test(agent *a, const char *request);

/* --- acting.c --- */
/*
 * The one function that the request says should behave otherwise, by a name that several have and its place, or by one that reads as an
 * order ("Add in lru.go should ..."), into a->asked.meant, and as what has to change. Behind agent__wish_each; the others keep it.
 */
void agent__find_acting(agent *a, const char *request);
/* The definition at that place is what the request wants to behave otherwise, for sure, and has to change. */
void agent__set_meant(agent *a, const code_place *p, const char *name);

/* --- meant.c --- */
/* The functions that a request for other behaviour may mean where it names none, into a->asked.meant. */
void agent__find_meant(agent *a, const char *request);
/* The next answer begins with the call for the best of them; where its text came back as it was, for the next. false: there is none. */
bool agent__aim_at_next_meant(agent *a);

/* --- lacking.c --- */
typedef struct agent_lacking {
    char *path, *type; /* of the tree */
    char *field;       /* that it has not */
} agent_lacking;
/* What a compiler printed says that a type of the tree lacks a field that the request names; agent__lacking_free. */
bool agent__find_lacking(const agent *a, const char *output, agent_lacking *ret);
void agent__lacking_free(agent_lacking *l);

#endif
