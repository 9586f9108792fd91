/*
 * Operations on definitions: what the refactor tool and its commands share. Each operation prepares the new
 * texts of all files that it touches (changes.h) and writes nothing.
 */
#ifndef KVIST_TOOLS_REFACTOR_H
#define KVIST_TOOLS_REFACTOR_H

#include "code/uses.h"
#include "tools/refactor/changes.h"
#include "tools/refactor/language.h"
#include "tools/refactor/parameters.h"

/* A file that writes the name. */
typedef struct refactor_file {
    char *path;
    tool_file file;
    code_uses *uses; /* of the target's name */
    const refactor_language *language;
    bool is_foreign; /* generated or vendored */
    /* Which thing its top means by the name, as a value and as a type: equal for alternatives; SIZE_MAX: its own. */
    size_t thing[2];
} refactor_file;

/* Which definition is meant. */
typedef struct refactor_target {
    const refactor_file *in;
    const char *name, *parent, *what;
    const code_definition *definition; /* NULL: a local without one (a variable, a parameter) */
    uint32_t name_from, line;
    uint32_t binding;  /* a local's; UINT32_MAX: none */
    const char *owner; /* a local's function; "" */
    bool is_member, is_type, is_static, is_function, is_tag_only;
    bool is_parameter;
    bool is_rival;         /* the tree defines the name elsewhere too, at the same level */
    bool is_parent_shared; /* several files define a type named as the member's */
    bool is_nameless;      /* a member of what has no name: a literal, an unnamed struct */
    /* its file has a second field of this name in the type: one is of an unnamed type within */
    bool has_twin;
    bool is_default; /* JavaScript: what its module gives as a whole */
    /* Python: its file may import it, or its type, instead: try: import x, else: def x */
    bool is_imported_too;
    bool is_adrift;     /* several variables of the name in a file that does not parse: they may be locals */
    const char *within; /* C: code_use.within of the field; "" */
    /*
     * Of a member whose type stands in a function: the bytes of that function. Of a macro that its file undefines and
     * defines again: from the #undef in front of it to the one behind it, UINT32_MAX where none is. 0, 0: none.
     */
    uint32_t room_from, room_to;
} refactor_target;

/* What a place means. */
typedef enum refactor_verdict { REFACTOR_OTHER, REFACTOR_SURE, REFACTOR_UNSURE } refactor_verdict;

typedef struct refactor_place {
    size_t file; /* of refactor.files */
    const code_use *use;
    refactor_verdict verdict;
    const char *why; /* UNSURE: what is not known */
} refactor_place;

/* A file of prose that writes the name. */
typedef struct refactor_document {
    char *path;
    tool_file file;
    uint32_t *places; /* bytes */
    size_t n_places;
    bool is_history;       /* a changelog: what it tells of had that name */
    bool is_configuration; /* the places stand at the end of paths: "pkg.net:fetch" */
} refactor_document;

typedef struct refactor {
    tool_workspace *w;
    const tool_limits *limits;
    tool_result *result; /* where refusals go */
    char *name;          /* the bare name */
    const char *to;      /* the new one of a rename; NULL: the name stays, or goes */
    refactor_file *files;
    size_t n_files, cap_files;
    refactor_file **modules; /* files that were read to follow imports */
    size_t n_modules, cap_modules;
    refactor_target target;
    refactor_place *places; /* SURE and UNSURE, by file and byte */
    size_t n_places, cap_places;
    size_t n_text;      /* places in comments and strings, left */
    size_t n_unread;    /* files that could hold the name and were not read: too large, no grammar */
    const char *unread; /* one of them */
    refactor_document *documents;
    size_t n_documents, cap_documents;
    char *go_module;   /* the module line of go.mod; NULL: none */
    bool takes_unsure; /* what is not sure is changed too */
    bool takes_text;   /* whole words in comments, strings and documents as well */
    bool leaves_text;  /* none of them, not even those that can mean nothing else */
    bool takes_twins;  /* files may define the name several times, where its definitions read the same */
    char **twins;      /* then: the paths of the other definitions */
    size_t n_twins;
} refactor;

/* ---- files.c ---- */

/* Fills x->files with those that write x->name. false: cancelled, which *x->result says, or the tree cannot be listed. */
bool refactor__read_files(refactor *x);
/* One file of the tree, read; NULL: not there. Kept until refactor__free. */
const refactor_file *refactor__module(refactor *x, const char *path);
void refactor__free(refactor *x);

/* ---- documents.c ---- */

/* The first place of the whole word at or behind byte `from`; SIZE_MAX: none. */
size_t refactor__find_word(const base_buf *text, const char *word, size_t from);
/* No word of a sentence: an underscore, a digit or a capital inside. */
bool refactor__is_only_a_name(const char *name);
/* By what stands around the n bytes on their line: are they written as code is? */
bool refactor__is_marked(const base_buf *text, size_t at, size_t n);
/* Python: bytes [*ret_from, *ret_to) between the quotes of a definition's docstring; false: it has none. */
bool refactor__find_docstring(
    const refactor_file *f, const code_definition *d, size_t *ret_from, size_t *ret_to);
/* Does a word stand in the comment in front of a definition, or in its docstring? */
bool refactor__is_in_document_of(const refactor_file *f, const code_definition *d, const code_use *u);
/* Is a word of a comment or string what the target's own comment, docstring or text ("<Client %s>" in its __repr__) calls it? */
bool refactor__is_in_own_words(const refactor *x, const refactor_file *f, const code_use *u);
/* Keeps *file where it writes the name as code; false: it does not, and the file stays the caller's. */
bool refactor__note_document(refactor *x, const char *path, tool_file *file);
/* The same of a file of settings that writes the name behind a dot or a colon. */
bool refactor__note_configuration(refactor *x, const char *path, tool_file *file);
void refactor__documents_free(refactor *x);
/* The lines that write the old name still. */
void refactor__say_documents(const refactor *x, base_buf *out);

/* ---- comments.c ---- */

/* Does a word stand in the function of the target, which is a local, or in the comment above it? */
bool refactor__is_in_function_of(const refactor *x, const refactor_file *f, const code_use *u);
/* Does the document of its function speak of the target, a parameter? */
bool refactor__is_parameter_documented(const refactor *x, const refactor_file *f, const code_use *u);
/*
 * Do the n bytes stand where lists of parameters have the name: "name: what it is", "name (int): ...", ":param int name:",
 * "@param {T} name", "@param [name=1]", "\\param[in] name"?
 */
bool refactor__is_listed(const base_buf *text, size_t at, size_t n);
/* Behind refactor__resolve: does all code of the tree that writes the name mean the target? */
bool refactor__has_one_meaning(const refactor *x);
/* Where it does: the comments that write the name become places as well; how many. */
size_t refactor__take_comments(refactor *x);

/* ---- target.c ---- */

/*
 * Reads the files that write the name and finds the definition that `given` means: "name", "Cls.name",
 * "function.local", "FILE:name", "FILE:LINE"; `path` (may be NULL) narrows it. false: *x->result says why.
 */
bool refactor__find_target(refactor *x, const char *given, const char *path);

/* ---- kinds.c ---- */

/* Is this kind of definition (code_definition.what) a type? */
bool refactor__is_type(const char *what);
/* Without a body or a value of its own: a prototype, extern. */
bool refactor__is_declaration(const refactor_file *f, const code_definition *d);
/* C: seen in its own file only. */
bool refactor__is_static(const refactor_file *f, const code_definition *d);
/* Python: a class that stands in a class is a member of it. */
bool refactor__is_nested(const code_file *file, const code_definition *d);
/* A method or field, or a constant of an enum: reached through its type. */
bool refactor__is_member(const code_file *file, const code_definition *d);
/* Java, C++: a method of the type's own name. */
bool refactor__is_constructor(const code_file *file, const code_definition *d);
/* Java: a field that holds a lambda is no method. */
bool refactor__is_function(const refactor_file *f, const code_definition *d);

/* ---- kin.c ---- */

bool refactor__is_type_of_tree(const refactor *x, const char *name);
/* Does the tree define the name, and is none of what it names a type (are only types)? */
bool refactor__is_only(const refactor *x, const char *name, bool of_types);
/* Are two types parent and child, or names of the same? */
bool refactor__are_related(const refactor *x, const char *a, const char *b);
/* The same, or children of a type that has a member of that name too: an override has to keep its name. */
bool refactor__are_kin(const refactor *x, const char *member, const char *a, const char *b);
/* Reads the files of the types that members of the name are of, and of their parents. */
void refactor__read_parents(refactor *x);
/* Do several files of the tree define a type of this name? */
bool refactor__is_type_shared(const refactor *x, const char *name);
/* Does a file that says the name of the target's type at byte `at` mean that type? UNSURE: nothing tells. */
refactor_verdict refactor__means_parent(const refactor *x, const refactor_file *f, uint32_t at);
/* The function in which the target's type stands, where nothing outside of it can know that type; false: none. */
bool refactor__find_room(const refactor *x, uint32_t *ret_from, uint32_t *ret_to);

/* ---- paths.c ---- */

/* Paths below the root. Of the second: its last whole names are `end` ("a/b.c" ends with "b.c", not with ".c"). */
bool refactor__ends_with_path(const char *path, const char *end);
/* "a/b/../c" and "./c", seen from a file, as paths are listed; heap, or NULL above the root. */
char *refactor__join_path(const char *from, const char *relative);
/* C: does the file include one that is called as the one at `path`: #include "list.c"? */
bool refactor__includes(const refactor_file *f, const char *path);
/* Go: package x_test beside package x, which it imports. */
bool refactor__is_external_test(const refactor_file *f);
/* Go, Java: what the file's package clause says; not terminated, *ret_n bytes. NULL: it has none. */
const char *refactor__package(const refactor_file *f, size_t *ret_n);
/* Java: are two files of one package? It may lie in several folders: main code in one, tests in another. */
bool refactor__is_same_package(const refactor_file *a, const refactor_file *b);
/* Go: a program of its own beside a package ("//go:build ignore"). */
bool refactor__is_built_alone(const refactor_file *f);

/* ---- alternatives.c ---- */

/* Sets x->files[i].thing. */
void refactor__find_alternatives(refactor *x);
/* Do the tops of two files mean one thing by the name? */
bool refactor__are_alternatives(const refactor_file *a, const refactor_file *b, bool of_types);

/* ---- resolve.c ---- */

/* Fills x->places. false: cancelled. */
bool refactor__resolve(refactor *x);

/* Another definition with a body, of another system or written again, that means the target; NULL: it is the only one. */
const refactor_place *refactor__find_again(const refactor *x);

/* ---- words.c ---- */

/* A type that JavaScript itself has. */
bool refactor__is_of_language(const char *type);
/* A method name that libraries of the language have as well. */
bool refactor__is_common(const char *name);

/* ---- lines.c: whole pieces of a text ---- */

/* A definition with the comment above it and its line's end. */
void refactor__definition_extent(
    const base_buf *text, uint32_t from, uint32_t to, uint32_t *ret_from, uint32_t *ret_to);
/* The blank lines behind it as well (at the file's end those in front). */
void refactor__widen_blank(const base_buf *text, uint32_t *from, uint32_t *to);
/* One item of a list with a comma of its; false: it is the only one. */
bool refactor__item_extent(const base_buf *text, uint32_t *from, uint32_t *to);
/* The lines of a statement; false: something else stands on them. */
bool refactor__statement_extent(const base_buf *text, uint32_t *from, uint32_t *to);

/* ---- edits.c: a file's new text from replacements ---- */

typedef struct refactor_edit {
    uint32_t from, to;
    char *text; /* owned */
} refactor_edit;
typedef struct refactor_edits {
    refactor_edit *all;
    size_t n, cap;
} refactor_edits;
void refactor__edit(refactor_edits *e, uint32_t from, uint32_t to, const char *text);
void refactor__edits_free(refactor_edits *e);
/* Edits must not overlap; they are sorted here. */
void refactor__edits_apply(refactor_edits *e, const base_buf *text, base_buf *ret);
/* The file's text with these edits becomes one of the changes, where there are any; the edits are freed. */
void refactor__edits_take(refactor_edits *e, const char *path, const tool_file *file, tool_changes *ret);
/* The same of all files, edits ([n_files]) being freed with the array; ret NULL: nothing becomes a change. */
void refactor__edits_take_all(refactor *x, refactor_edits *edits, tool_changes *ret);

/* ---- parameters.c ---- */

/* Parameters of a definition, or arguments of a call; free items. */
typedef code_item_list refactor_list;
bool refactor__read_list(const refactor *x, const refactor_place *p, refactor_list *ret);
bool refactor__item_says(const base_buf *text, code_item item, const char *word);
/* The name that a parameter declares; "" where it has none. */
void refactor__parameter_name(
    const refactor_language *language, const char *s, size_t n, char ret[REFACTOR_NAME_BYTES]);
/* Behind the "=" of a parameter; NULL: it has no default. */
const char *refactor__default_of(const char *item, size_t n, size_t *ret_n);
/* How many at the list's begin no caller writes: self and cls. */
size_t refactor__hidden_parameters(const base_buf *text, const refactor_list *l);
/* Of "(n, b float64, s string)" as Go writes it: "n float64", "b float64", "s string"; [REFACTOR_MAX_ITEMS]. */
size_t refactor__expand_go(const char *text, const refactor_list *l, base_buf *ret);
/* The names that a caller gives something for, [REFACTOR_MAX_ITEMS]; returns how many. */
size_t refactor__parameter_names(const refactor_language *language, const base_buf *text,
    const refactor_list *l, char names[][REFACTOR_NAME_BYTES]);
/* A number, a string, true, None. */
bool refactor__is_literal(const char *s);
/* A parameter's declaration from its bare name and the literal that callers give. false: it needs a type that is not known. */
bool refactor__declare(const refactor_language *language, const char *name, const char *value, base_buf *ret);
/* "name=VALUE" as those of the list are written: "name: str = VALUE" beside parameters that say their types. */
void refactor__put_like(const refactor_language *language, const base_buf *text, const refactor_list *l,
    const char *name, base_buf *declared);

/* ---- arguments.c: what a call gives ---- */

/* Python: how many at the list's begin are the object: Cls.method(object, ...). */
size_t refactor__object_arguments(const refactor *x, const refactor_place *p);
/* Python: the first that is given by name; l->n: none is. */
size_t refactor__first_keyword(const base_buf *text, const refactor_list *l);
/* "name=" of a call's argument; SIZE_MAX: none. */
size_t refactor__keyword_at(const base_buf *text, const refactor_list *l, const char *name);
/* *args, **given, ...list: nobody sees which argument is which. */
bool refactor__has_spread(const base_buf *text, const refactor_list *l);

/* ---- order.c ---- */

typedef struct refactor_order {
    size_t order[REFACTOR_MAX_ITEMS], n;                 /* the old places in their new order */
    char names[REFACTOR_MAX_ITEMS][REFACTOR_NAME_BYTES]; /* by old place */
} refactor_order;
/*
 * What a call gives, bytes [*from, *to), in the new order (from == to: nothing to do); calls inside of it too. false: it cannot be
 * changed for certain.
 */
bool refactor__put_order(const refactor *x, const refactor_place *p, const refactor_order *o, uint32_t *from,
    uint32_t *to, base_buf *out);

/* ---- instead.c ---- */

/* The text in place of a call, and the parameters of what it called. */
typedef struct refactor_instead {
    const char *to;
    char names[REFACTOR_MAX_ITEMS][REFACTOR_NAME_BYTES];
    char *defaults[REFACTOR_MAX_ITEMS]; /* literals; NULL: none */
    size_t n;
    bool has_keywords; /* f(name=1) */
    const char *lead;  /* statements that stand in front of a call's own; NULL: none */
} refactor_instead;
/* Places have to be resolved. refactor__instead_free. */
void refactor__read_instead(const refactor *x, const char *to, refactor_instead *ret);
void refactor__instead_free(refactor_instead *r);
/* What a call gives for parameter k; ptr NULL: it does not say. */
base_str refactor__given_for(const refactor_instead *r, const base_str *items, size_t n, size_t k);
/* Is it one name, number, string, call or member, which nothing beside it could tear apart? */
bool refactor__is_one_piece(const char *s, size_t n);
/* For one call that gives these; object: what stands in front of a method's name. false: it does not say what is needed. */
bool refactor__put_instead(
    const refactor_instead *r, const base_str *items, size_t n, base_str object, base_buf *ret);

/* ---- delete.c ---- */

/*
 * A whole call, from its object to its closing parenthesis; false: the name is used in another way. Free ret->items where
 * it is one.
 */
bool refactor__call_extent(
    const refactor *x, const refactor_place *p, uint32_t *from, uint32_t *to, refactor_list *ret);
/* The target goes; in place of each call stands `value` (NULL: nothing, its statement goes), in front of its statement `lead`. */
bool refactor__delete_inlined(
    refactor *x, const char *lead, const char *value, tool_changes *ret, base_buf *headline);

/* ---- delete_file.c ---- */

/* A file of the tree, and no definition of that name. */
bool refactor__is_file(tool_workspace *w, const char *name);
/* The file goes; who names it or imports from it is said. false: *result says why not. */
bool refactor__delete_file(
    tool_workspace *w, const char *path, tool_changes *ret, base_buf *headline, tool_result *result);

/* ---- tests.c ---- */

/* What of the tests goes with the target: an assertion ("what" is ""), or a whole test, which "what" names. */
typedef struct refactor_cut {
    size_t file;
    uint32_t from, to;
    char what[96];
    bool is_last;   /* its file is left with no test and no definition, and goes */
    bool is_helper; /* no test, but what only the tests that go used */
} refactor_cut;
typedef struct refactor_cuts {
    refactor_cut *all; /* freed by the caller */
    size_t n, cap;
} refactor_cuts;
/*
 * Of Python, JavaScript, TypeScript, Rust, Go and Java. Places have to be resolved. A use that is in no assertion, in a test that has
 * others, is left.
 */
void refactor__cut_tests(const refactor *x, refactor_cuts *ret);
bool refactor__is_cut(const refactor_cuts *cuts, size_t file, uint32_t at);
bool refactor__is_file_cut(const refactor_cuts *cuts, size_t file);
/* Sorts the cuts, puts them into their files' edits, and says which. */
void refactor__apply_cuts(const refactor *x, refactor_cuts *cuts, refactor_edits *edits, base_buf *say);

/* ---- parameter_value.c ---- */

/* Does the place only read a variable, with none of `not_behind` right behind it? */
bool refactor__is_plain_read(const base_buf *text, uint32_t from, uint32_t to, const char *not_behind);

/*
 * Where the target's body reads its parameter `name`, `value` stands (NULL: it may only be handed on). `edits` are its
 * file's so far. Returns 0, or the line of a place where that cannot be. *ret_replaced: how many places. say: who is not
 * handed it any more, with no end of its line.
 */
uint32_t refactor__replace_parameter(const refactor *x, const char *name, const char *value,
    refactor_edits *edits, uint32_t *ret_replaced, base_buf *say);

/* ---- parameter_document.c ---- */

/* What the docstring of a function and the comment above it list of the parameter goes, with its continuation lines. */
void refactor__cut_documented(
    const refactor_file *f, const code_definition *definition, const char *name, refactor_edits *edits);

/* ---- handed_on.c ---- */

/*
 * Is this use in the target's body a whole argument of a call, which may leave it out, since the function of the tree that
 * it calls has a default there? Then it goes, and `say` names that function.
 */
bool refactor__cut_handed_on(
    const refactor *x, const char *name, const code_use *use, refactor_edits *edits, base_buf *say);

/* ---- the operations, a file each: refactor__NAME in NAME.c; the list stands in ../meson.build ---- */

/* What the call says; members are NULL, 0 or false where it says nothing. */
typedef struct refactor_request {
    const char *name;
    /*
     * rename: the new name. move: the file. delete: what stands in place of each call; "nothing" removes calls that
     * stand alone; NULL: calls refuse it. The names of its parameters stand there for what each call gives for them,
     * self for the object of the call.
     */
    const char *to;
    const char *path; /* the file of the definition, where its name does not say it */
    const char *with; /* move: others of its file that go along, with commas between */
    /*
     * signature: one to add, as it is declared ("int flags"; where callers give a literal, its name is enough), with
     * `value` for the callers, who stay as they are where it has a default ("flags=0"); the name of one to remove,
     * whose literal default stands in the body then, or `to`, an expression; or the new order ("2,1,3"); or one that there is, with the default that it
     * gets ("flags=0"), at the place that `at` says; or "*, name", which only its name gives from then on (Python), with those behind it.
     */
    const char *parameter, *value;
    int64_t at; /* its 1-based place */
    bool unsure, text, no_text;
    bool keep; /* move: the old place goes on giving what went */
} refactor_request;
/* Prepares *ret and its headline; false: *x->result says why not. */
typedef bool refactor_operation(
    refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline);
#define OPERATION(name) refactor_operation refactor__##name;
#include "tools/operations.def"
#undef OPERATION

#endif
