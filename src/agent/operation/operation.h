/*
 * Requests that are one operation of a tool (rename, move, delete, another signature, an addition): the program
 * begins the call. New tests: newtest/newtest.h.
 */
#ifndef KVIST_AGENT_OPERATION_H
#define KVIST_AGENT_OPERATION_H

#include "agent/repair/attempt.h"
#include "agent/words/operation_words.h"
#include "agent/words/request_words.h"
#include "tools/refactor/parameters.h"
#include "tools/run/scratch.h"

/* --- operation.c --- */
/*
 * The call of an operation that the request asks for, up to the definition's name, which the model
 * writes; false: it asks for none.
 */
bool agent__open_operation(agent *a, const char *request, agent_opening *opening);
/* Is one of several operations left whose call was not begun? */
bool agent__has_operation_left(const agent *a);
/*
 * "Rename X to Y": X where it is a word of the code, but neither a definition nor a parameter (a variable, a field); the caller
 * frees. NULL: the request renames no such thing.
 */
char *agent__renames_undefined(const agent *a, const char *request);
/*
 * Does the request ask for a rename, a move or a deletion and for nothing else? Its call needs no excerpts, and what the tool
 * says of it is the answer.
 */
bool agent__is_operation_alone(const agent *a, const char *request);
/*
 * Does the request, which agent__ask has read, order the operation by its own verb in front of all its names, or speak of a parameter
 * in the program's words? Any other wording is a guess.
 */
bool agent__is_sure_operation(const agent *a, const char *request);
/*
 * The answer to such a request, once its operations are in the tree and no judge has said no, or one was refused for good: what
 * the tool said. false: the model goes on.
 */
bool agent__put_operation_answer(const agent *a, base_buf *out);
/* Where no call can be begun, the tool is told of in front of the request. */
void agent__tell_operation(const agent *a, const char *request, base_buf *out);

/* --- whole.c --- */
/* The call of an operation that the request says whole: an inlining, a group that moves, a parameter for keywords alone. */
bool agent__open_whole(const agent *a, const char *request, base_buf *json);
/* "Remove the deprecated functions from a.py", "delete all the parse_* macros of a.h", or files: what goes, up to `most` (heap); how many. */
uint32_t agent__list_group(const agent *a, const char *request, agent_listed *ret, uint32_t most);
/*
 * The two functions of the tree that have this name, where one of them only calls the other ("func Get(k) { return v.Get(k) }"), to be
 * renamed both (heap); 2, or 0 where it is otherwise.
 */
uint32_t agent__list_with_delegate(
    const agent *a, const char *name, const char *to, agent_listed *ret, uint32_t most);
/* Of asked.listed, where all go from one file to one: their call, and one is left of the list. false: they do not. */
bool agent__open_moved_together(agent *a, const char *request, base_buf *json);

/* --- parameter.c --- */
/* A function of the tree, and what its callers give. agent__function_free. */
typedef struct agent_function {
    char *name, *path;
    bool is_one_of_many; /* the tree defines the name elsewhere too */
    size_t n;
    char (*parameters)[REFACTOR_NAME_BYTES];
} agent_function;
/* One of the tests only where there is no other. false: the tree has no such function with a list of parameters. */
bool agent__look_up_function(const agent *a, const char *name, agent_function *ret);
void agent__function_free(agent_function *f);
/*
 * The call of a request about a parameter that comes or goes, that gets another name, or about their order, as far as the request
 * says it; false: it is none.
 */
bool agent__open_parameter(const agent *a, const char *request, base_buf *json);
bool agent__open_parameter_name(const agent *a, const char *request, base_buf *json);
bool agent__open_order(const agent *a, const char *request, base_buf *json);
bool agent__open_keyword_only(const agent *a, const char *request, base_buf *json);
/* A call of refactor with these arguments was done: a parameter that came and that the function does not use yet is to be used. */
void agent__wish_use_of_parameter(agent *a, const base_json *arguments);

/* --- inside.c --- */
/* How often the function at that place writes the word as a name of its own; UINT32_MAX: it cannot be read. */
uint32_t agent__count_inside(const agent *a, const code_place *p, const char *word);
/* Does a function of that name write it: a parameter, a local? */
bool agent__stands_inside(const agent *a, const char *name, const char *word);

/* --- parameter_all.c --- */
/*
 * "a to b" behind a verb that renames, where the tree defines no a: the functions that have a parameter of that name, up to
 * `most`, each to be renamed (heap); how many. 0 too where there are more.
 */
uint32_t agent__list_parameter_everywhere(
    const agent *a, const char *behind, agent_listed *ret, uint32_t most);

/* --- operation_list.c --- */
/* Appends a member to a JSON object that is open. */
void agent__put_member(base_buf *json, const char *name, const char *value);
/* A call of the tool refactor, up to behind the name; further members follow. */
void agent__begin_refactor(base_buf *json, const char *operation, const char *name);
/* "Rename X to Y, also in the docs": comments, strings and documents too? */
bool agent__asks_for_text(const char *request);
/* What the request says of them, as a further member of a rename's call: "text": true, false, or nothing. */
void agent__put_text_words(const char *request, base_buf *json);
/* The same of a move's: "keep": true where what goes is to be found in the old place too. */
void agent__put_keep_words(const char *request, base_buf *json);
/* A parameter that goes is still used: the call that says what stands in its place, for the model to go on; once. */
bool agent__open_instead(agent *a, agent_opening *opening);
/* "Rename f to g everywhere" */
bool agent__asks_for_everywhere(const char *request);
/* What a request was read as, with what it says of comments and of the old place besides; the caller frees. */
char *agent__say_besides(const char *request, const char *meaning);
/* The word is a definition of the tree. */
bool agent__is_defined_word(const agent *a, const char *text, agent_word w);
/*
 * The next word behind *w, over words that only introduce it ("the functions"), with what qualifies it (Range.contains); false: that
 * is no definition of the tree.
 */
bool agent__next_listed(const agent *a, const char *text, agent_word *w);
/* The new name, or the file, that stands behind "to" at byte `at`; NULL: no such thing, or a sentence goes on there. */
char *agent__read_destination(const char *behind, size_t at, bool is_file);
/*
 * "Rename a to b and c to d", "delete f and rename g to h", "move f and g to a.py": the operations in order, names and new names (heap); how many.
 * 0: there are not two, or none of them says a new name or a file.
 */
uint32_t agent__read_several(const agent *a, const char *request, agent_listed *ret, uint32_t most);
/*
 * The same of a request of two clauses, each of which asks for an operation in words of its own: "rename f to g, and h can go". 0: there
 * are not two.
 */
uint32_t agent__read_clauses(const agent *a, const char *request, agent_listed *ret, uint32_t most);

/* --- addition.c --- */
/*
 * A new function is asked for whose call the program begins: its words and its file. agent_addition_words_free; the path, which the
 * caller frees, is NULL where it begins none.
 */
char *agent__read_addition(const agent *a, const char *request, agent_addition_words *ret);
/* The call that adds the function which the request names, where it says in which type or file; once a turn. */
bool agent__open_addition(agent *a, const char *request, agent_opening *opening);
/* Does a path stand for code that others call: no test, header, example, build script or list of modules? */
bool agent__is_source(const char *path);
/* Is it a definition of code, and no declaration, test, variable or field? */
bool agent__is_code_place(const code_place *p);

/* --- members.c --- */
/* What the type has that is to get a new method, in front of the request. */
int agent__append_members(agent *a, const char *request, base_err *err);

/* --- export.c --- */
/* The call that hands out a definition of the tree of which the request says so ("export X"), whole; once a turn. */
bool agent__open_export(agent *a, const char *request, agent_opening *opening);

/*
 * Begins the call of edit, with its text, that makes `made` of a file's `old`, which counts as shown: the lines in which they differ,
 * and one that they share, so that there is one to replace.
 */
void agent__open_edit(
    agent *a, const char *path, const base_buf *old, const base_buf *made, agent_opening *opening);

/* --- spelling.c --- */
/*
 * The call that writes a new spelling for an old one in what a file of tests expects, where the request says both and that the code
 * is right; a file a call, while one is left.
 */
bool agent__open_spelling(agent *a, const char *request, agent_opening *opening);

/* --- version.c --- */
/* The call that writes the version which the request orders ("bump the version to 1.2.0") where the tree gives it; a file a call, while one is left. */
bool agent__open_version(agent *a, const char *request, agent_opening *opening);

/* --- document.c --- */
/*
 * A document that was to change too, where all the code that was asked for is in the tree: shows the lines around the place where
 * it speaks of what is new. *ret_begun false: none is due.
 */
int agent__append_due_document(agent *a, bool *ret_begun, base_err *err);
/* The call that puts a line there, up to the words behind the new name; once a turn. */
bool agent__open_document(agent *a, agent_opening *opening);

/* --- behaviour.c --- */
/* The call that rewrites the function which the request probably means (a->asked.meant); once a turn. */
int agent__open_behaviour(agent *a, agent_opening *opening, base_err *err);

/* --- shown.c --- */
/* Bytes [from, to) of a file's text, which are lines of it, as the model is shown them. */
typedef struct agent_lines {
    const char *path, *label;
    const base_buf *text;
    size_t from, to;
    uint32_t line, line_end;
} agent_lines;
/* Shows them, with `behind` below. */
int agent__append_lines(
    agent *a, const agent_lines *l, const char *behind, const char *request, base_err *err);

#endif
