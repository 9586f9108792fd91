/*
 * The command that judges a change: the test that a person names, else the tests or the compiler that the tree has
 * for the changed file, in front of them the values that the request gives.
 */
#ifndef KVIST_AGENT_JUDGE_H
#define KVIST_AGENT_JUDGE_H

#include "agent/session/session_state.h"

/* --- test_command.c --- */
/* A test file's command becomes the test; false: how to run it alone is not known. */
bool agent__set_test_file(agent *a, const char *path);
bool agent__path_is_plain(const char *path);          /* it can stand in a command line as it is */
void agent__find_test(agent *a, const char *request); /* sets test_command and fix.wanted */
void agent__set_test(agent *a, const char *command);  /* the command that judges; copied */
bool agent__runs_tests(const char *command);          /* a test runner by its words */

/*
 * The command that runs the one test of that name where the runner is known (pytest, unittest, Go's, cargo), else the command as it
 * is. Pure.
 */
void agent__put_test_alone(const char *command, const char *name, base_buf *out);

/* pytest is missing: a file of unittest's tests is run by Python itself from now on. false: another command judges, or its file needs pytest. */
bool agent__do_without_pytest(agent *a);

/* --- judge.c --- */
/* A file of tests: no example and no benchmark, which stand with them elsewhere (code_path_is_test). */
bool agent__is_test_file(const char *path);
/*
 * The test file of that name and language ("main_test.go" for "main.go", "array_test.c" for "cc_array.c"); the caller frees; NULL:
 * none.
 */
char *agent__test_file_of(const agent *a, const char *path);
/* The same by what it calls: a test file of that language that uses something the file defines. */
char *agent__calling_test_of(const agent *a, const char *path);
/* The command that judges a change of this file becomes the test, unless a person named one. */
void agent__find_judge(agent *a, const char *path);
/* The one that was found cannot judge in this tree: the next that is known for the file. false: there is none. */
bool agent__find_next_judge(agent *a, const char *path);

/* --- valued.c --- */
/* Values that the request gives stand in front of the command that was found for this file; without one, alone. */
void agent__add_values(agent *a, const char *path);
/* The command failed, and values stand in front of it: true where they are what failed. Drops what cannot judge. */
bool agent__values_judge(agent *a, const tool_result *run);
/* The tests behind the values cannot judge: the values stay alone. */
void agent__drop_plain(agent *a);
/* They hold: notes and tells it, or that they did without the change. */
void agent__values_hold(agent *a, const tool_result *run);
/* A turn begins, or a session ends. */
void agent__forget_values(agent *a);

/* --- late.c --- */
/* The turn ends without all that was asked for, so nothing has judged what was changed: that is done now, in a copy of the tree. */
void agent__judge_late(agent *a);

/* --- untouched.c --- */
/* Does the command fail without this turn's changes as well? Then it says nothing of them. output may be NULL. */
bool agent__fails_without(agent *a, const char *command, base_buf *output);

#endif
