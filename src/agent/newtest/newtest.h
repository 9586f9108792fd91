/*
 * "Add a test for X": the program knows which file holds X's tests and which of them is nearest. It shows that one, begins the
 * call that adds another beside it, has it run, tries it with faults in its subject, and puts right what it expects.
 */
#ifndef KVIST_AGENT_NEWTEST_H
#define KVIST_AGENT_NEWTEST_H

#include "agent/operation/operation.h"
#include "tools/run/scratch.h"

enum { NEWTEST_MAX_FILE = 1 << 20 }; /* a file of tests or of their subjects that is longer is not read */

/* --- append.c --- */
/* The test that the new one stands beside, in front of the request; its file becomes the test that judges. */
int agent__append_new_test(agent *a, const char *request, base_err *err);
/* Not rows of the example's table, but a test beside it. */
void agent__leave_rows(agent *a);
/*
 * "Add f, with a test", "let f refuse ..., and add a test": where f is as it was asked for, its test is the next, like any
 * new test. *ret_begun false: it is not, or no test was put off.
 */
int agent__append_due_test(agent *a, bool *ret_begun, base_err *err);

/* --- open.c --- */
/* How the answer that writes the new test begins; once a turn. */
bool agent__open_new_test(agent *a, agent_opening *opening);
/* The answer that writes a new test of these lines; false: the model's calls are no plain text, or its form is not known. */
bool agent__put_whole_new_test(agent *a, const char *body, base_buf *ret);
/* How a further attempt begins: at the new test, or at the definition (agent__open_call). */
int agent__open_further(agent *a, bool further, agent_opening *opening, base_err *err);

/* --- file.c --- */
/*
 * The file of tests that a new test of the subject ("Type.f" where the request says its type) belongs to: the one that the request
 * names; the one that is named after the subject; after that type, or writes it most often; after its file; one that calls it; one that is named after its type; the one whose text fits the request best. NULL: the tree has none. *ret_example: the test in it
 * that calls the subject; untouched where none does. Both heap.
 */
char *agent__find_test_file(
    const agent *a, const char *request, const char *subject, const char *subject_path, char **ret_example);

/* "parse-strict.test.ts" of parseStrict, in the language of subject_path: the file of tests of that name (heap); NULL: none. */
char *agent__test_file_named(const agent *a, const char *name, const char *subject_path);

/* --- assertion.c --- */
/*
 * "self.assertEqual(set_title(" for a function of Python or Rust: a small model that begins a test without its subject copies the
 * example. The caller frees; NULL: not known.
 */
char *agent__begin_assertion(const agent *a, const char *file_path, const base_buf *file, base_str example,
    const char *subject, const char *subject_path);
/* The runner said that the subject wants a string: the next attempt gives it one. */
void agent__sharpen_new_test(agent *a, const char *output);

/* --- shown.c --- */
/* What is tested, in front of the example: without its text a small model invents what it gives. */
int agent__append_subject(agent *a, const char *subject, const char *request, base_err *err);

/* --- subject.c --- */
/* The definition that a new test is of, and its file (both heap); NULL: the tree has nothing that it could be. */
char *agent__find_subject(const agent *a, const char *request, char **ret_path);

/* --- script.c --- */
bool agent__is_script(const char *path); /* JavaScript's or TypeScript's, by its ending */
/*
 * The nearest test of a file of JavaScript (its text) is shown, and asked.new_test is where the new one stands: behind it,
 * or in a file of its own where the tree has one for each subject. Nothing is shown where the file has none.
 */
int agent__append_script_test(agent *a, const char *path, const base_buf *text, const char *subject,
    const char *request, base_err *err);
/* The call that writes it, up to its first assertion or its title; false: where it stands is not known any more. */
bool agent__open_script_test(agent *a, agent_opening *opening);
/* Its call with the test around these lines, indented by four and more, whole; false: as above, or it is a row. */
bool agent__put_whole_script_test(agent *a, const char *body, base_buf *ret);

/* --- row.c --- */
/*
 * The nearest test d of a file of C (its text) takes parameters: it and its last calls are shown, and asked.new_test is a further
 * call. Nothing is shown where it is called less than twice.
 */
int agent__append_call_test(agent *a, const char *path, const base_buf *text, const code_definition *d,
    const char *subject, const char *request, base_err *err);
/* The same where the file has no test by its name, and a helper calls the subject: main calls that one again and again. */
int agent__append_helper_test(agent *a, const char *path, const base_buf *text, const code_file *f,
    const char *subject, const char *request, base_err *err);

/* --- language.c --- */
/* Is it a test, by what its language has as one? */
bool agent__is_test_definition(const code_definition *d, const char *path, const base_buf *text);
/*
 * Why a new file of tests is in the wrong language: its subject's is another, and the tree has tests in that or none in this one. The
 * caller frees; NULL: nothing is against it, or it is no new file of tests.
 */
char *agent__why_other_language(const agent *a, const char *path);

/* --- check.c --- */
/*
 * Why the text that a call would write is no test of the new test's subject: it does not write that, copies the test
 * beside it, or is the text of a whole file without a test that stands there. The caller frees; NULL: it is one, or another thing, or was refused before.
 */
char *agent__why_no_test(const agent *a, const base_json *arguments, base_str text);
/* A new test that passes has to fail where its subject is broken: tells whether it does. */
void agent__try_new_test(agent *a);
/*
 * How many of the faults that were put into the subject a new test noticed, which are one where this turn changed the subject: its
 * text before that. told (heap): the first that the request is about and that it did not notice; the first that it noticed; the first.
 */
typedef struct agent_noticed {
    uint32_t n, of;
    bool misses_aim; /* none of those that the request is about */
    char *told;
} agent_noticed;
/*
 * In a copy of the tree in which it passes, with the text of its file (NULL: as the tree has it). of 0: no fault is known.
 * BASE_E_STATE: its file fails there anyway.
 */
int agent__notice_faults(agent *a, tool_scratch *s, const base_buf *with, agent_noticed *ret, base_err *err);

/* --- printed.c --- */
/*
 * A line of `output` (may be NULL) that says that the new test failed: it speaks of a failure, and has the test's name or what a line of
 * its body[0, n) asserts. The caller frees; NULL: none. Pure.
 */
char *agent__read_printed_failure(const char *body, size_t n, const char *name, const char *output);
/* The same of the new test of C in its file's text (NULL: as the tree has it): a program that ends with 0 may print it all the same. */
char *agent__find_printed_failure(const agent *a, const base_buf *text, const char *output);

/* --- mutants.c --- */
/* Bytes [at, at + n) of a text become another one. */
typedef struct agent_mutant {
    size_t at, n;
    char *text;
    unsigned aim;  /* how much the request is about its line */
    bool is_aimed; /* more than about others */
} agent_mutant;
/*
 * Up to `most` faults in a definition's bytes, one of each kind first, and before that those that the request (`about`; NULL: there
 * is none) is about; how many. Pure.
 */
size_t agent__mutants(const char *language, const base_buf *text, size_t from, size_t to, const char *about,
    agent_mutant *all, size_t most);
void agent__mutants_free(agent_mutant *all, size_t n);
void agent__put_mutant(const base_buf *text, const agent_mutant *m, base_buf *out);
void agent__tell_mutant(const base_buf *text, const agent_mutant *m, base_buf *out);

/* --- setup.c --- */
/*
 * The lines with which the nearest test of a file of C or Go, else its first one that does, makes an object of a type that the subject
 * d is given: "    dictionary *dic;\n\n    dic = dictionary_new(1);\n". The caller frees; NULL: none does. *ret_end (heap): the
 * statement with which that test of C takes it apart again; NULL. Pure.
 */
char *agent__find_setup(const base_buf *subject, const code_definition *d, const char *path,
    const code_file *f, const base_buf *tests, const code_definition *nearest, char **ret_end);

/* --- near.c --- */
/*
 * The definition called `name` (NULL: the test that calls most of what is near to the subject, of several the last) in
 * the file of tests; NULL: there is none. *ret_opening (heap): how a new test of it goes on behind its name, up to the subject's
 * arguments; NULL: the model begins it. *ret_setup, *ret_end (heap): agent__find_setup.
 */
const code_definition *agent__nearest_test(const agent *a, const code_file *f, const char *path,
    const base_buf *text, const char *name, const char *subject, const char *subject_path, char **ret_opening,
    char **ret_setup, char **ret_end);

/* --- told.c --- */
/*
 * A test with a table of rows that the request tells by words of its name and its file's ("the cases that should be less" of
 * test_compare.py). What it calls of the tree, with its file, the test's name and the file of what is called (all heap); NULL: no
 * test fits alone, or the request asks for no rows.
 */
char *agent__find_told_rows(
    const agent *a, const char *request, char **ret_path, char **ret_test, char **ret_subject_path);

/* --- form.c --- */
/*
 * Behind the last row (but for its comma) of the last table in text[0, n), rows of which stand on lines of their own;
 * *ret_next: the comma where it has none, and a further line up to its bracket. 0: there is no table.
 */
size_t agent__rows_end(const char *text, size_t n, base_buf *ret_next);
/* How most assertions of a script of node's begin ("assert.equal("); "assert." where the request is about errors. */
void agent__put_usual_assertion(const base_buf *text, const char *request, base_buf *out);
/*
 * Python: "with pytest.raises(ValueError):" where the request names an error that is to be raised, in unittest's words where
 * the example is one of those, up to where the call begins that raises it; false: it names none.
 */
bool agent__put_raises(const char *request, base_str example, base_buf *out);
/*
 * What the request says that the new test is to show, as a line of a comment: a small model that reads it where its own lines begin
 * copies the test beside it less often. Nothing where it says none, or too much.
 */
void agent__put_claim(const char *request, base_buf *out);
/* Did the call fail since what it was given is no string? `output` may be NULL. */
bool agent__wants_string(const char *output);
/* The same of bytes, and of a list, by Python's runner. */
bool agent__wants_bytes(const char *output);
bool agent__wants_list(const char *output);
/* How the first argument begins in the calls of that name in a file: a quote, "[", "{", also by the variable that is given; "". */
const char *agent__usual_argument(const base_buf *text, const char *name);
/* How a value of that type begins: "[" for Python's List[int]; "": not known. */
const char *agent__opening_of_type(base_str type, bool is_python);
/* The line in which a runner says why a test failed ("E   TypeError: ..."), without what stands around it; nothing: none is known. */
void agent__put_failure(const char *output, base_buf *out);
/* Python: is its first argument a name that means nothing there ("set_title(Title)")? `output` may be NULL. */
bool agent__is_given_nothing(const char *output, const char *subject);

/* --- full.c --- */
/* Did pytest cut what it compares, in `output` (may be NULL)? Pure. */
bool agent__is_output_cut(const char *output);
/* The command of pytest, verbose, for the test of that name alone; nothing: it is none of pytest. Pure. */
void agent__put_verbose(const char *command, const char *name, base_buf *out);
/*
 * What pytest prints of the failing new test in full, where it has cut that in `output` (may be NULL): it runs once more in the copy s,
 * NULL: one of the tree. The caller frees; NULL: nothing is cut, or it fails no more.
 */
char *agent__read_in_full(agent *a, tool_scratch *s, const char *output);

/* --- expect.c --- */
typedef struct agent_expectation {
    base_buf text;           /* of the lines, as they should be; empty: nothing to put right */
    uint32_t line, line_end; /* of the new test's file */
    base_buf told;
} agent_expectation;
/*
 * A test's runner said `output` of the test in text[from, to) of the file `path` (may be NULL), whose failing line it may name: where it
 * fails since a literal in it is not what the code gives, and `request` (may be NULL) does not say that value, its line put right.
 * agent_expectation_free.
 */
bool agent__read_expectation(const base_buf *text, size_t from, size_t to, const char *path,
    const char *request, const char *output, agent_expectation *ret);
/*
 * Python: behind an assertion of the subject that holds another statement of text[from, to) fails, by the line that `output` names: what
 * the code does not do is left out. false: nothing of the subject is asserted in front of it. agent_expectation_free.
 */
bool agent__leave_out(const base_buf *text, size_t from, size_t to, const char *path, const char *subject,
    const char *output, agent_expectation *ret);
/* One of both for the new test in `text`, its file as it would be; and in that file as this turn wrote it. */
bool agent__find_expectation_in(
    const agent *a, const base_buf *text, const char *output, agent_expectation *ret);
bool agent__find_expectation(agent *a, const char *output, agent_expectation *ret);
void agent_expectation_free(agent_expectation *e);

#endif
