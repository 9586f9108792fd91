/*
 * Experiments after RepairKV's protocol (its sections 3.2 and 5; docs/papers.md): a long document, a first
 * turn answered from the full cache, then turns under a condition: document rows are evicted, a message asks
 * for some of them, a repair may bring rows back, the answer is judged. Who makes documents and messages
 * (bench/recall/bench_niah.c, bench/recall/bench_callsite.c) hands them over as items; here are the
 * conditions, the same for all, and the running of them.
 *
 * Only document rows are evicted. What a condition holds when it answers is B + K document rows a lane,
 * forced ones included.
 */
#ifndef KVIST_BENCH_RECALL_H
#define KVIST_BENCH_RECALL_H

#include "bench/recall/recall_result.h"
#include "kv/lab/lab.h"
#include "kv/session.h"
#include "model/text/template.h"
#include "model/text/tokenizer.h"
#include "cmd/options.h"

enum { RECALL_QUERIES = 32, RECALL_TURNS = 5, RECALL_RANGES = 16, RECALL_NAME = 64, RECALL_MOST_K = 8 };

/*
 * How an answer is judged: each target somewhere in it, as a whole name in it, or the one target as its first
 * name.
 */
typedef enum recall_match { RECALL_IN_TEXT, RECALL_NAMES, RECALL_FIRST_NAME } recall_match;

typedef struct recall_turn {
    model_ids ids;                               /* the message */
    model_ids tail;                              /* its end and the answer's first words */
    uint32_t queries[RECALL_QUERIES], n_queries; /* places in ids of what it asks for */
    struct {
        uint32_t from, to;
    } rows[RECALL_RANGES]; /* of the document, what the answer needs */
    uint32_t n_rows;
    struct {
        uint32_t from, to;
    } file; /* of the document, what a label may name: the file that the message is about */
    char targets[BENCH_TARGETS][RECALL_NAME]; /* of the first turn none is judged */
    uint32_t n_targets, n_new;                /* n_new: tokens of an answer at most */
    recall_match match;
} recall_turn;

typedef struct recall_item {
    const char *name;                         /* of the split or kind, for the results */
    uint32_t number;                          /* of the item, for the results */
    recall_turn turns[RECALL_TURNS], foreign; /* foreign: another item's second message, for wrong-query */
    uint32_t n_turns;
} recall_item;

/* What a command's options say, and what runs. */
typedef struct recall {
    common_options common;
    const char *restore, *words, *out, *summary, *documents;
    int64_t seconds;
    bool calibrate, resume, labels; /* labels: messages have a `file` */
    model *model;
    const model_info *info;
    char *heads;
    int32_t k[RECALL_MOST_K]; /* -1: 1.05 times the rows asked for */
    uint32_t n_k;
    bench_results results;
    bench_result key; /* the command sets model, tokens, needles, base */
    uint64_t start;
    float *logits;
    /* Of the item at hand. */
    const recall_item *item;
    uint32_t doc_end;
    kv_signal wrong, stale;
    double row_ms; /* what scoring one row took here; 0: not measured yet */
} recall;

/* For the command's option table. */
#define RECALL_OPTIONS(r)                                                                                    \
    {"--restore", OPTION_TEXT, &(r).restore, "K,...",                                                        \
        "rows per lane that a repair may bring back; \"need\": 1.05 times the rows asked for"},              \
        {"--conditions", OPTION_TEXT, &(r).words, "W;...",                                                   \
            "those whose name begins with a word of these, or, behind a \"=\", is it (all)"},                \
        {"--out", OPTION_TEXT, &(r).out, "FILE", "results as JSON lines, each as it is there"},              \
        {"--resume", OPTION_FLAG, &(r).resume, NULL,                                                         \
            "FILE may exist: what is in it already is not run again"},                                       \
        {"--summary", OPTION_TEXT, &(r).summary, "FILE",                                                     \
            "no model: the table of such a file, with Wilson intervals"},                                    \
        {"--seconds", OPTION_INTEGER, &(r).seconds, "N", "begin nothing new after so long (no limit)"},      \
        {"--calibrate", OPTION_FLAG, &(r).calibrate, NULL,                                                   \
            "find the model's retrieval heads first, and keep them for its sessions"},                       \
    {                                                                                                        \
        "--documents", OPTION_TEXT, &(r).documents, "FOLDER",                                                \
            "documents are computed once and kept there (28 KB a token of the default model)"                \
    }

/*
 * The whole command: options, --summary or run(user), the table of --out, closing. Returns the exit status.
 */
int recall_main(recall *r, int argc, char **argv, const option_row *own, const char *usage,
    int (*run)(void *user, base_err *err), void *user);

/* Model, heads and results. name: of the bench, in each line. */
int recall_open(recall *r, const char *name, base_err *err);

/* Whether any condition of such an item is still to be run (and time is left); K of "need" always may be. */
bool recall_is_left(recall *r, const char *name, uint32_t number);
bool recall_is_late(const recall *r);
/* The document of an item: a session of these ids (--documents: kept on disk). lines: where they begin. */
int recall_document(recall *r, kv_session **ret, const model_ids *ids, const uint32_t *lines,
    uint32_t n_lines, base_err *err);
/* document: a session whose rows [0, doc_end) are the document, under policy "full". */
int recall_run(recall *r, const kv_session *document, const recall_item *item, base_err *err);
void recall_turn_free(recall_turn *t);

/* One text to the ids. */
void recall_add_text(const recall *r, const char *text, model_ids *out);

#endif
