/*
 * kvist-bench niah: does a repair bring back what the next question asks for? Needles in a long document of
 * real code; turn 1 asks for some and is answered from the full cache, turn 2 asks for others (--task split),
 * or four more turns ask for new and for known ones in a fixed order (--task revisit; RepairKV, sections 3.2
 * and 5.3). A document is computed once, its splits fork it. Conditions and their running:
 * bench/recall/protocol.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/common/corpus.h"
#include "bench/recall/haystack.h"

static const char usage[] =
    "usage: kvist-bench niah --model M --corpus FOLDER [--task "
    "split|revisit] [--tokens N] [--texts N] [--needles 2|4|6|8]\n"
    "                        [--restore K,...] [--conditions "
    "\"WORD;...\"] [--out FILE [--resume]] [--calibrate]\n"
    "       kvist-bench niah --summary FILE\n"
    "\n"
    "  --corpus FOLDER     code and prose that the needles hide in\n"
    "  --task NAME         split: a second turn asks for other "
    "needles; revisit: four more turns, 8 needles (split)\n"
    "  --prime needles|code  what the first turn asks for: needles, or what the files are about (needles)\n"
    "  --tokens N          length of each document (4096)\n"
    "  --texts N           how many documents (3); each has one to five splits\n"
    "  --first N           the first document's number (0)\n"
    "  --needles N         2, 4, 6 or 8 (4)\n"
    "  --base PERCENT      of the document's rows that stay after a turn (the paper's: 25, 50, 56, 56)\n";

/* The balanced partitions of RepairKV, appendix B, turn by turn; B in percent of the document. */
static const struct task {
    const char *word;
    uint32_t needles, percent, n_new;
    const char *splits[6];
} tasks[] = {
    {"split", 2, 25, 16, {"2-1"}},
    {"split", 4, 50, 24, {"14-23", "24-13", "34-12"}},
    {"split", 6, 56, 48, {"156-234", "256-134", "356-124", "456-123"}},
    {"split", 8, 56, 64, {"5678-1234", "1678-2345", "2678-1345", "3678-1245", "4678-1235"}},
    /*
     * The paper names no schedule: new ones, half and all of them known; the two nearest to the end are never
     * asked for again.
     */
    {"revisit", 8, 56, 64, {"5678-1234-1256-3456-1234"}},
};
enum { N_TASKS = sizeof tasks / sizeof *tasks, PRIME_NEW = 48 };

typedef struct bench {
    recall run;
    int64_t tokens, texts, first, needles, base;
    const char *corpus_folder, *task_word, *prime;
    base_buf corpus;
    const struct task *task;
    char splits[6][RECALL_NAME]; /* as named in the results */
} bench;

static void make_turn(
    const bench *b, recall_turn *ret, const bench_haystack *text, const char *asked, bool later)
{
    bench_question_make(
        ret, model_get_tokenizer(b->run.model), model_get_template(b->run.model), text, asked, later);
    ret->n_new = ret->n_targets ? b->task->n_new : PRIME_NEW;
}

/* "14-23": a turn a group of digits. */
static int run_split(bench *b, const kv_session *document, const bench_haystack *text, const char *split,
    const char *name, uint32_t number, base_err *err)
{
    recall_item item = {.name = name, .number = number};
    bench_haystack other;
    char groups[RECALL_NAME];
    snprintf(groups, sizeof groups, "%s", split);
    const char *second = NULL;
    for (char *at = groups, *group; item.n_turns < RECALL_TURNS && (group = strsep(&at, "-"));) {
        if (item.n_turns == 1) second = group;
        const bool primes = !item.n_turns && !strcmp(b->prime, "code");
        make_turn(b, &item.turns[item.n_turns], text, primes ? "c" : group, item.n_turns > 0);
        item.n_turns++;
    }
    /* Another example's question: the keys of a later document. */
    bench_haystack_make(&other, model_get_tokenizer(b->run.model), model_get_template(b->run.model),
        &b->corpus, number + 1001, 64, b->task->needles);
    make_turn(b, &item.foreign, &other, second, true);
    int r = recall_run(&b->run, document, &item, err);
    for (uint32_t i = 0; i < item.n_turns; i++) recall_turn_free(&item.turns[i]);
    recall_turn_free(&item.foreign);
    bench_haystack_free(&other);
    return r;
}

static int run_text(bench *b, uint32_t number, base_err *err)
{
    bench_haystack text;
    kv_session *s = NULL;
    bool left = false;
    for (size_t i = 0; i < 6 && b->task->splits[i]; i++)
        left = left || recall_is_left(&b->run, b->splits[i], number);
    if (!left) return 0;
    bench_haystack_make(&text, model_get_tokenizer(b->run.model), model_get_template(b->run.model),
        &b->corpus, number + 1, (uint32_t)b->tokens, b->task->needles);
    int r = recall_document(&b->run, &s, &text.ids, text.lines, text.n_lines, err);
    for (size_t i = 0; i < 6 && b->task->splits[i] && !r; i++)
        r = run_split(b, s, &text, b->task->splits[i], b->splits[i], number, err);
    kv_session_free(s);
    bench_haystack_free(&text);
    return r;
}

static int check_options(bench *b, base_err *err)
{
    if (!strcmp(b->task_word, "revisit")) b->needles = 8;
    for (size_t i = 0; i < N_TASKS; i++)
        if (tasks[i].needles == b->needles && !strcmp(tasks[i].word, b->task_word)) b->task = &tasks[i];
    if (!b->task)
        return base_fail(err, BASE_E_USAGE, "--task is split or revisit, --needles is 2, 4, 6 or 8");
    if (strcmp(b->prime, "needles") && strcmp(b->prime, "code"))
        return base_fail(err, BASE_E_USAGE, "--prime is needles or code, not '%s'", b->prime);
    if (!b->corpus_folder)
        return base_fail(err, BASE_E_USAGE, "--corpus names a folder of code that the needles hide in");
    for (size_t i = 0; i < 6 && b->task->splits[i]; i++) {
        const char *dash = strchr(b->task->splits[i], '-');
        if (strcmp(b->prime, "code"))
            snprintf(b->splits[i], sizeof b->splits[i], "%s", b->task->splits[i]);
        else
            snprintf(b->splits[i], sizeof b->splits[i], "code%s", dash);
    }
    return 0;
}

static int run(void *user, base_err *err)
{
    bench *b = user;
    int r = check_options(b, err);
    if (!r) r = bench_corpus_load(b->corpus_folder, &b->corpus, err);
    if (!r) r = recall_open(&b->run, "niah", err);
    if (r) return r;
    b->run.key.tokens = (uint32_t)b->tokens;
    b->run.key.needles = b->task->needles;
    b->run.key.base = b->base ? (uint32_t)b->base : b->task->percent;
    for (int64_t i = 0; i < b->texts && !r && !recall_is_late(&b->run); i++)
        r = run_text(b, (uint32_t)(b->first + i), err);
    return r;
}

int bench_niah(int argc, char **argv)
{
    bench b = {.run = {.common = COMMON_OPTIONS_DEFAULTS, .restore = "48,96"},
        .tokens = 4096,
        .texts = 3,
        .needles = 4,
        .task_word = "split",
        .prime = "needles"};
    const option_row own[] = {
        {"--corpus", OPTION_TEXT, &b.corpus_folder},
        {"--task", OPTION_TEXT, &b.task_word},
        {"--prime", OPTION_TEXT, &b.prime},
        {"--tokens", OPTION_INTEGER, &b.tokens, .bounds = {2000, 100000}},
        {"--texts", OPTION_INTEGER, &b.texts, .bounds = {1, 1000}},
        {"--first", OPTION_INTEGER, &b.first, .bounds = {0, 1000000}},
        {"--needles", OPTION_INTEGER, &b.needles},
        {"--base", OPTION_INTEGER, &b.base, .bounds = {0, 100}},
        RECALL_OPTIONS(b.run),
        {.name = NULL},
    };
    const int status = recall_main(&b.run, argc, argv, own, usage, run, &b);
    base_buf_free(&b.corpus);
    return status;
}
