/*
 * What `kvist-bench callsite` asks about: a document of a repository's files with line numbers
 * (callsite_document.c), and the calls in it whose name can be hidden, or callees with their callers
 * (callsite_questions.c). Trees and names are those of src/code; files without a grammar are left out.
 */
#ifndef KVIST_BENCH_CALLSITE_H
#define KVIST_BENCH_CALLSITE_H

#include "base/buf.h"
#include "bench/recall/protocol.h"
#include "code/code.h"

enum { CALLSITE_CALLERS = 5 };

/* A file of the repository, and what its text says. */
typedef struct callsite_source {
    char *path; /* below the repository */
    base_buf text;
    code_file *code;
} callsite_source;

/* A line of the document. */
typedef struct callsite_line {
    uint32_t file, number; /* number: from 1 */
    uint32_t from, to;     /* bytes of the file */
    uint32_t token, token_end;
} callsite_line;

typedef struct callsite_document {
    model_ids ids;
    uint32_t *starts; /* tokens where lines begin, headings too */
    size_t n_starts, cap_starts;
    callsite_line *lines;
    size_t n_lines, cap_lines;
    uint32_t about; /* the file that turn 1 asks about */
} callsite_document;

/* What may be asked: a call in a line, or a callee with its callers. */
typedef struct callsite_question {
    uint32_t order; /* a draw: the smallest are asked */
    uint32_t line;
    uint32_t name_from, name_to; /* bytes of the line's file */
    char name[RECALL_NAME];
    struct {
        char name[RECALL_NAME];
        uint32_t call, head; /* lines */
    } callers[CALLSITE_CALLERS];
    uint32_t n_callers;
} callsite_question;

typedef struct callsite {
    recall run;
    const char *repo, *task;
    int64_t tokens, texts, first, each, least, base;
    bool list;
    callsite_source *sources;
    size_t n_sources, cap_sources;
    code_grammars *grammars;
    callsite_document doc;
    callsite_question *questions;
    size_t n_questions, cap_questions;
    uint64_t *asked; /* of earlier documents, whose files this one may have too */
    size_t n_asked, cap_asked;
    char name[32]; /* of the task and the repository, in the results */
} callsite;

/* bench_file_fn, user: a callsite. Adds a file that a grammar reads; others are passed over. */
int callsite_add_source(void *user, const char *path, base_err *err);
void callsite_free_sources(callsite *b);
uint32_t callsite_draw(uint64_t seed, uint64_t i);

/*
 * b->doc: files in the order of their paths from a drawn one on, until there are enough tokens; the last one
 * is cut.
 */
void callsite_make_document(callsite *b, uint32_t number);
void callsite_free_document(callsite_document *d);

/*
 * b->questions: all that may be asked of the document, in a drawn order. Not of turn 1's file, nor near the
 * end, which stays active.
 */
void callsite_find_questions(callsite *b);
/*
 * Leaves out what an earlier document was asked, and remembers the first --each of the rest. Returns how many
 * those are; when they are fewer than --least the document is not asked, and nothing is remembered.
 */
uint32_t callsite_keep_new(callsite *b);

#endif
