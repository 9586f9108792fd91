/*
 * What `kvist-bench structure` measures (docs/kv.md, "Structure"; docs/papers.md, CodeComp): a sample's rows
 * computed once, by policies that read ordinary text in one session, by codecomp in another, chunk by chunk;
 * for each of its questions each condition is a fork that is cut to the same rows by what the question looked
 * at, and answers over what is left. bench/structure/bench_structure.c is the command and draws samples;
 * bench/structure/sample.c runs one; bench/structure/structure_result.c reads, writes and sums up result
 * lines.
 */
#ifndef KVIST_BENCH_STRUCTURE_H
#define KVIST_BENCH_STRUCTURE_H

#include <stdio.h>

#include "base/buf.h"
#include "bench/structure/bugs.h"
#include "kv/session.h"
#include "model/forward/model.h"
#include "model/text/tokenizer.h"

typedef enum structure_task {
    STRUCTURE_SCORE,
    STRUCTURE_BUG,
    STRUCTURE_COMPLETE,
    STRUCTURE_SELECT,
    N_STRUCTURE_TASKS
} structure_task;
extern const char *const structure_tasks[N_STRUCTURE_TASKS];

/* Hard rows are the same for all: prompt and question. */
typedef struct structure_condition {
    const char *name, *policy, *set;
    bool is_main;
    bool repairs; /* as a session does at the pause: rows change places by the question, as many stay */
    bool prunes;  /* the context is computed for each question anew, cut by what it asks for; no cap */
} structure_condition;
extern const structure_condition structure_conditions[]; /* ends with a NULL name */
bool structure_has_caps(const structure_condition *c);

enum { STRUCTURE_CAPS = 8, STRUCTURE_ASKED = 3 };

/* One line: a question, condition and cap. */
typedef struct structure_result {
    char task[12], model[40], id[72], condition[40];
    double cap;                                                     /* share of the context's rows; 1: all */
    double share[2], chance[2], ceiling[2], of[KV_STRUCTURE_KINDS]; /* extents, cores; of: extents */
    int right[STRUCTURE_ASKED]; /* function, mistake, line: 1 right, 0 wrong, -1 not asked */
    uint32_t rank; /* of a selection: the target's among n_chunks, from 1; 0: nothing was selected */
    uint32_t n_line, right_line; /* tokens of the line, and those that were the most probable ones */
    uint32_t n_tokens, n_chunks, n_questions; /* of the context */
    double active;
    /*
     * Seconds, of which the first two are spent once for all conditions: the context's rows (both sessions),
     * by question; the question.
     */
    double prefill_s, question_s, condition_s, spans_ms;
} structure_result;

typedef struct structure_results {
    structure_result *items;
    size_t n, cap;
} structure_results;

void structure_results_read(structure_results *r, const base_buf *lines);
void structure_results_free(structure_results *r);
bool structure_results_have(const structure_results *r, const structure_result *key);
void structure_result_write(const structure_result *one, int64_t seed, FILE *out);
/*
 * What was kept and answered, and differences between conditions on the same questions, with intervals over
 * samples.
 */
void structure_results_print(const structure_results *r, FILE *out);

typedef struct structure_run {
    model *model;
    const model_info *info;
    code_grammars *grammars;
    char *heads, *pivot; /* files of the model's retrieval heads, and of where its prefill is cut */
    structure_task task;
    const char *wanted; /* main, all, or names with commas between them */
    double caps[STRUCTURE_CAPS];
    uint32_t n_caps;
    int64_t seed;
    const structure_results *done;
    FILE *out;
} structure_run;

/* A line for each question, condition and cap that is wanted and not done. */
int structure_run_sample(const structure_run *b, const bench_sample *s, base_err *err);
/* bench_accept.fn; user: a model. */
bool structure_accept_name(void *user, const bench_sample *s, const char *name);

#endif
