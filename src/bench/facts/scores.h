/*
 * Results of the benches that ask about made-up documents (bench/facts/ruler.h): facts found, and any numbers
 * beside, one JSON line a condition, item and turn. Each bench brings the table of its numbers; here they are
 * written, read again and summed up, with the same intervals and paired comparisons for all.
 */
#ifndef KVIST_BENCH_SCORES_H
#define KVIST_BENCH_SCORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum { BENCH_SCORE_TARGETS = 8, BENCH_NUMBERS = 20 };

typedef struct bench_number {
    const char *name;  /* in the lines */
    const char *title; /* of its column, the mean over items; NULL: in no table */
    int digits;        /* of the column, behind the point */
    /*
     * of its column, instead: the mean of what full has by this name, over that of the condition's own; in no
     * line
     */
    const char *of_full;
} bench_number;

typedef struct bench_score {
    char model[16], task[8], condition[48];
    uint32_t tokens, item, turn;
    uint32_t n_targets;
    bool found[BENCH_SCORE_TARGETS];
    /* as the bench's table has them; NAN: not measured, in no line and no mean */
    double numbers[BENCH_NUMBERS];
    char answer[400];
} bench_score;

typedef struct bench_scores {
    const char *name;            /* of the bench, in each line */
    const bench_number *numbers; /* [n_numbers] */
    size_t n_numbers;
    bench_score *items;
    size_t n, cap;
    FILE *out;
} bench_scores;

/*
 * As bench_open_out: path NULL is stdout; a file that holds something is read and gone on with when resume
 * says so, else refused.
 */
int bench_scores_open(bench_scores *s, const char *path, bool resume, base_err *err);
int bench_scores_read(bench_scores *s, const char *path, base_err *err);
void bench_scores_close(bench_scores *s);

/* A score with nothing measured yet. */
void bench_score_clear(const bench_scores *s, bench_score *one);
/*
 * That of the same model, task, tokens, item and turn under a condition; NULL: there is none. Valid until the
 * next is added.
 */
const bench_score *bench_scores_find(const bench_scores *s, const bench_score *key, const char *condition);
/* Adds it and writes its line at once. */
void bench_scores_add(bench_scores *s, const bench_score *one);
/*
 * A table for each model, length, turn and task, and one of all tasks together: facts found with Wilson's
 * interval, and against full and (may be NULL) one more condition, over the items that both have: facts lost
 * and won, and McNemar's exact p.
 */
void bench_scores_print(const bench_scores *s, const char *against, FILE *out);

#endif
