/*
 * What the benches over made-up documents (bench/facts/ruler.h) share: their options, the opening of corpus,
 * results and model, and the loop over items and tasks. A bench brings its conditions and what one item
 * takes.
 */
#ifndef KVIST_BENCH_FACTS_H
#define KVIST_BENCH_FACTS_H

#include "bench/bench.h"
#include "bench/facts/scores.h"

typedef struct facts {
    common_options common;
    int64_t tokens, items, first;
    const char *corpus_folder, *tasks, *words, *out, *summary, *against, *documents;
    bool resume, timed;
    model *model;
    const model_info *info;
    base_buf corpus;
    bench_scores results;
} facts;

/* For the bench's option table, its last rows. */
#define FACTS_OPTIONS(f)                                                                                     \
    {"--corpus", OPTION_TEXT, &(f).corpus_folder},                                                           \
        {"--tokens", OPTION_INTEGER, &(f).tokens, .bounds = {600, 100000}},                                  \
        {"--items", OPTION_INTEGER, &(f).items, .bounds = {1, 100000}},                                      \
        {"--first", OPTION_INTEGER, &(f).first, .bounds = {0, 1000000}},                                     \
        {"--tasks", OPTION_TEXT, &(f).tasks}, {"--conditions", OPTION_TEXT, &(f).words},                     \
        {"--out", OPTION_TEXT, &(f).out}, {"--resume", OPTION_FLAG, &(f).resume},                            \
        {"--summary", OPTION_TEXT, &(f).summary}, {"--against", OPTION_TEXT, &(f).against},                  \
        {"--documents", OPTION_TEXT, &(f).documents}, {"--timed", OPTION_FLAG, &(f).timed},                  \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }

/* What a bench does; user is its own struct. check: of its own options. begin: once, the model is open. */
typedef struct facts_bench {
    int (*check)(const void *user, base_err *err);
    int (*begin)(void *user, base_err *err);
    int (*item)(void *user, const char *task, uint32_t number, base_err *err);
} facts_bench;

/* The whole command; returns the exit status. The model stays open: facts_close. */
int facts_run(facts *f, int argc, char **argv, const option_row *own, const char *usage,
    const facts_bench *bench, void *user);
void facts_close(facts *f);

#endif
