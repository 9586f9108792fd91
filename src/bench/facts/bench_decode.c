/*
 * kvist-bench decode: what choosing the rows of each step costs and keeps. Each item is a document with facts
 * in it and a question (bench/facts/ruler.h); document and question are computed once, in full, and each
 * condition answers in a fork of that session. Beside the answer stand three numbers that need no right
 * answer: how much of the full attention's mass fell on what was read, and, over a passage of the document
 * that is written once more, token by token as it stands there, how far the distributions are from the full
 * cache's.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/common/write_answer.h"
#include "bench/common/document.h"
#include "bench/common/result_file.h"
#include "bench/facts/facts.h"
#include "bench/facts/ruler.h"
#include "kv/repair/heads.h"
#include "kv/lab/lab.h"
#include "kv/session.h"

static const char usage[] =
    "usage: kvist-bench decode --model M --corpus FOLDER [--tokens N] [--items N] [--tasks WORD,...]\n"
    "                          [--conditions \"WORD;...\"] [--copy N] [--timed] [--documents FOLDER]\n"
    "                          [--out FILE [--resume]]\n"
    "       kvist-bench decode --summary FILE [--against CONDITION]\n"
    "\n"
    "  --corpus FOLDER     code and prose that facts hide in\n"
    "  --tokens N          length of each document (4096)\n"
    "  --items N           how many of each task (5)\n"
    "  --first N           the first item's number (0)\n"
    "  --tasks W,...       mk2, mk3 (one key among many), vt (variables), mq (four keys in text) (all)\n"
    "  --conditions W;...  those whose name begins with a word of these, or, behind a \"=\", is it (all)\n"
    "  --copy N            tokens of the passage that is written once more; 0: none (32)\n"
    "  --timed             answers are written token by token, and the time of a step is measured\n"
    "  --documents FOLDER  keeps the computed documents there (28 KB a token of the default model)\n"
    "  --out FILE          results as JSON lines; --resume goes on in one that has some\n"
    "  --summary FILE      no model: the tables of such a file\n"
    "  --against CONDITION pairs with this one too, beside full\n"
    "\n";

/*
 * Shares are of all active rows, so budgets are the same for every policy; in full layers quest reads more,
 * and that is counted.
 */
#define ALONE "least_read=0"
static const struct condition {
    const char *name, *policy;
    const char *set[6];
} conditions[] = {
    {.name = "full", .policy = "full"},
    {.name = "sentkv 5%", .policy = "sentkv", .set = {ALONE, "usage=.05"}},
    {.name = "sentkv 10%", .policy = "sentkv", .set = {ALONE, "usage=.1"}},
    {.name = "sentkv 20%", .policy = "sentkv", .set = {ALONE, "usage=.2"}},
    {.name = "sentkv 10%, dense 2", .policy = "sentkv", .set = {ALONE, "usage=.1", "dense=2"}},
    {.name = "sentkv 10%, no ends", .policy = "sentkv", .set = {ALONE, "usage=.1", "reach=0"}},
    {.name = "ours 5%", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.05"}},
    {.name = "ours 10%", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.1"}},
    {.name = "ours 20%", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.2"}},
    {.name = "ours 10%, dense 2", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.1", "dense=2"}},
    {.name = "ours 10%, length 8",
        .policy = "sentkv",
        .set = {ALONE, "slack=.25", "usage=.1", "length=8", "reach=5"}},
    {.name = "ours 10%, no ends", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.1", "reach=0"}},
    {.name = "ours 10%, slack 0", .policy = "sentkv", .set = {ALONE, "slack=0", "usage=.1"}},
    {.name = "ours 10%, slack .5", .policy = "sentkv", .set = {ALONE, "slack=.5", "usage=.1"}},
    {.name = "quest 5%", .policy = "quest", .set = {ALONE, "usage=.05"}},
    {.name = "quest 10%", .policy = "quest", .set = {ALONE, "usage=.1"}},
    {.name = "quest 20%", .policy = "quest", .set = {ALONE, "usage=.2"}},
    {.name = "quest 10%, dense 0", .policy = "quest", .set = {ALONE, "usage=.1", "dense=0"}},
};
enum { N_CONDITIONS = sizeof conditions / sizeof *conditions, COPY_LEAD = 16, COPY_MOST = 480 };

/* What is measured beside the facts found. */
enum {
    READ,   /* of active rows */
    REUSED, /* of chosen ones, those that the step before read too */
    MASS,   /* of the full attention's, mean over the answer's tokens and the lanes that chose */
    KL,     /* of the passage, to the full cache */
    AGREE,  /* of the passage: share of equal best ids */
    LOSS,   /* of the passage: mean -log p */
    CHOOSE_MS,
    STEP_MS,
    N_NUMBERS
};
static const bench_number numbers[N_NUMBERS] = {
    [READ] = {"read", "read", 3},
    [REUSED] = {"reused", "reused", 3},
    [MASS] = {"mass", "mass", 3},
    [KL] = {"kl", "KL of the passage", 3},
    [AGREE] = {"agree", "same best", 3},
    [LOSS] = {"loss", "loss", 3},
    [CHOOSE_MS] = {"choose_ms", "choosing, ms", 2},
    [STEP_MS] = {"step_ms", "step, ms", 1},
};

typedef struct bench {
    facts f;
    int64_t copy;
    /* [n_vocab]; [copy][n_vocab] log p along the passage: of the full cache, of the condition */
    float *logits, *full, *passage;
} bench;

/* --- one item under one condition ----------------------------------------------------------------------- */

static int append(kv_session *s, kv_origin origin, const int32_t *ids, size_t n, const ruler_item *item,
    float *logits, base_err *err)
{
    const bool is_question = origin == KV_ORIGIN_USER;
    const kv_segment g = {.origin = origin,
        .turn = 1,
        .queries = item && is_question ? item->first.queries : NULL,
        .n_queries = item && is_question ? item->first.n_queries : 0,
        .lines = item && !is_question ? item->lines : NULL,
        .n_lines = item && !is_question ? item->n_lines : 0};
    return kv_session_append(s, &g, ids, (uint32_t)n, logits, NULL, err);
}

/* A fork under the condition. */
static int open_fork(const kv_session *whole, const struct condition *c, kv_session **ret, base_err *err)
{
    const kv_options o = {.policy = c->policy, .set = c->set};
    int r = kv_session_fork(whole, ret, NULL, err);
    if (!r) r = kv_session_set_policy(*ret, &o, err);
    return r;
}

/* What is looked at while an answer is written: of the full attention's mass, what falls on the rows read. */
typedef struct looking {
    double mass;
    uint32_t n;
    uint64_t ns;
} looking;

static int look(void *user, kv_session *s, base_err *err)
{
    looking *l = user;
    const uint64_t start = base_clock_ns();
    double share = 0;
    int r = kv_session_recovered(s, &share, err);
    l->mass += share;
    l->n++;
    l->ns += base_clock_ns() - start;
    return r;
}

/* Greedy, until the answer ends. logits: behind the question's tail. */
static int answer_item(bench *b, const kv_session *asked, const float *logits, const ruler_item *item,
    const struct condition *c, bench_score *one, base_err *err)
{
    const bench_score *full = bench_scores_find(&b->f.results, one, "full");
    const bool is_full = !strcmp(c->policy, "full");
    kv_session *s = NULL;
    model_ids ids = {0}, guess = {0};
    base_buf text = {0};
    looking looked = {.n = 0};
    if (full && !b->f.timed)
        model_tokenizer_encode(
            model_get_tokenizer(b->f.model), full->answer, strlen(full->answer), false, &guess);
    const bench_asking a = {.model = b->f.model,
        .turn = 1,
        .n_new = item->first.n_new,
        .guess = &guess,
        .look = is_full ? NULL : look,
        .user = &looked};
    int r = open_fork(asked, c, &s, err);
    memcpy(b->logits, logits, b->f.info->n_vocab * sizeof *b->logits);
    const uint64_t start = base_clock_ns();
    if (!r) r = bench_answer(s, &a, b->logits, &ids, err);
    const double ns = (double)(base_clock_ns() - start - looked.ns);
    if (!r) {
        kv_stats stats;
        double *x = one->numbers;
        kv_session_get_stats(s, &stats);
        const kv_reads *reads = &stats.reads;
        bench_answer_text(b->f.model, &ids, &text);
        snprintf(one->answer, sizeof one->answer, "%s", text.data ? text.data : "");
        one->n_targets = item->first.n_wanted;
        ruler_found(&item->first, text.data ? text.data : "", one->found);
        x[READ] = reads->live ? (double)reads->read / (double)reads->live : 1;
        if (reads->chosen) x[REUSED] = (double)reads->kept / (double)reads->chosen;
        if (looked.n) x[MASS] = looked.mass / looked.n;
        if (b->f.timed && reads->steps) x[CHOOSE_MS] = (double)reads->ns / 1e6 / (double)reads->steps;
        if (b->f.timed && ids.n) x[STEP_MS] = (ns - (double)reads->profile_ns) / 1e6 / (double)ids.n;
    }
    kv_session_free(s);
    model_ids_free(&ids);
    model_ids_free(&guess);
    base_buf_free(&text);
    return r;
}

/* logits -> log p */
static void normalise(float *x, uint32_t n)
{
    double most = -INFINITY, sum = 0;
    for (uint32_t v = 0; v < n; v++) most = x[v] > most ? x[v] : most;
    for (uint32_t v = 0; v < n; v++) sum += exp(x[v] - most);
    for (uint32_t v = 0; v < n; v++) x[v] = (float)(x[v] - most - log(sum));
}

/*
 * The document's passage that begins a third into it, as if it were written behind the document: one pass
 * over it, in which each token reads what it would read alone.
 */
static int copy_passage(bench *b, const kv_session *document, const ruler_item *item,
    const struct condition *c, bench_score *one, base_err *err)
{
    const uint32_t n_vocab = b->f.info->n_vocab, n = (uint32_t)b->copy, from = (uint32_t)(item->ids.n / 3);
    const int32_t *ids = item->ids.ids + from;
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
    float *all = strcmp(c->name, "full") ? b->passage : b->full;
    uint32_t want[COPY_MOST], agree = 0;
    kv_session *s = NULL;
    double kl = 0, loss = 0;
    for (uint32_t i = 0; i < n; i++) want[i] = COPY_LEAD - 1 + i;
    int r = open_fork(document, c, &s, err);
    if (!r) r = kv_session_peek(s, &g, ids, COPY_LEAD + n - 1, want, n, all, err);
    for (uint32_t i = 0; i < n && !r; i++) {
        float *here = all + (size_t)i * n_vocab;
        const float *full = b->full + (size_t)i * n_vocab;
        normalise(here, n_vocab);
        for (uint32_t v = 0; v < n_vocab; v++) kl += exp(full[v]) * (full[v] - here[v]);
        agree += bench_best(full, n_vocab) == bench_best(here, n_vocab);
        loss -= here[ids[COPY_LEAD + i]];
    }
    kv_session_free(s);
    one->numbers[KL] = kl / n;
    one->numbers[AGREE] = (double)agree / n;
    one->numbers[LOSS] = loss / n;
    return r;
}

/* --- items ---------------------------------------------------------------------------------------------- */

static bool is_left(const bench *b, const bench_score *key, const char *condition)
{
    return bench_is_wanted(b->f.words, ';', condition) && !bench_scores_find(&b->f.results, key, condition);
}

/* full goes first, whoever asks for it: the others are compared with it. */
static int run_conditions(bench *b, const kv_session *document, const kv_session *asked, const float *logits,
    const ruler_item *item, const bench_score *key, base_err *err)
{
    int r = 0;
    for (size_t i = 0; i < N_CONDITIONS && !r; i++) {
        const struct condition *c = &conditions[i];
        const bool left = is_left(b, key, c->name);
        bench_score one = *key;
        const uint64_t start = base_clock_ns();
        if (i && !left) continue;
        snprintf(one.condition, sizeof one.condition, "%s", c->name);
        bench_score_clear(&b->f.results, &one);
        if (b->copy) r = copy_passage(b, document, item, c, &one, err);
        if (!r && left) r = answer_item(b, asked, logits, item, c, &one, err);
        if (!r && left) bench_scores_add(&b->f.results, &one);
        fprintf(stderr, "%s %u, %s: %.1f s\n", one.task, one.item, c->name,
            (double)(base_clock_ns() - start) / 1e9);
    }
    return r;
}

static int run_item(void *user, const char *task, uint32_t number, base_err *err)
{
    bench *b = user;
    const model_template *template = model_get_template(b->f.model);
    ruler_item item;
    model_ids before = {0};
    kv_session *document = NULL, *asked = NULL;
    bench_score key = {.tokens = (uint32_t)b->f.tokens, .item = (uint32_t)number, .turn = 1};
    snprintf(key.model, sizeof key.model, "%.12s", b->f.info->hash);
    snprintf(key.task, sizeof key.task, "%s", task);
    bool any = false;
    for (size_t c = 0; c < N_CONDITIONS; c++) any = any || is_left(b, &key, conditions[c].name);
    if (!any) return 0;
    ruler_item_make(&item, model_get_tokenizer(b->f.model), template, &b->f.corpus, task, RULER_PROMPT_OURS,
        (uint64_t)number + 1, (uint32_t)b->f.tokens);
    model_template_start(template, &before);
    model_template_begin(template, MODEL_ROLE_USER, &before);
    const bench_piece pieces[] = {{{.origin = KV_ORIGIN_SCAFFOLD, .turn = 1}, &before},
        {{.origin = KV_ORIGIN_CONTEXT, .turn = 1, .lines = item.lines, .n_lines = item.n_lines}, &item.ids}};
    float *logits = base_xcalloc(b->f.info->n_vocab, sizeof *logits);
    int r = bench_document_open(&document, b->f.model, pieces, 2, "full", b->f.documents, err);
    if (!r) r = kv_session_fork(document, &asked, NULL, err);
    if (!r) r = append(asked, KV_ORIGIN_USER, item.first.ids.ids, item.first.ids.n, &item, NULL, err);
    if (!r) r = append(asked, KV_ORIGIN_SCAFFOLD, item.first.tail.ids, item.first.tail.n, NULL, logits, err);
    if (!r) r = run_conditions(b, document, asked, logits, &item, &key, err);
    kv_session_free(asked);
    kv_session_free(document);
    free(logits);
    model_ids_free(&before);
    ruler_item_free(&item);
    return r;
}

static int check(const void *user, base_err *err)
{
    const bench *b = user;
    if (b->copy >= 0 && b->copy <= COPY_MOST && b->f.tokens / 3 >= b->copy + COPY_LEAD) return 0;
    return base_fail(err, BASE_E_USAGE, "--copy is 0 to %d and less than a third of the document", COPY_MOST);
}

static int begin(void *user, base_err *err)
{
    bench *b = user;
    const size_t n_passage = (size_t)b->copy * b->f.info->n_vocab + 1;
    b->logits = base_xcalloc(b->f.info->n_vocab, sizeof *b->logits);
    b->full = base_xcalloc(n_passage, sizeof *b->full);
    b->passage = base_xcalloc(n_passage, sizeof *b->passage);
    return 0;
}

int bench_decode(int argc, char **argv)
{
    static const facts_bench decode = {check, begin, run_item};
    bench b = {.f = {.common = COMMON_OPTIONS_DEFAULTS,
                   .tokens = 4096,
                   .items = 5,
                   .results = {.name = "decode", .numbers = numbers, .n_numbers = N_NUMBERS}},
        .copy = 32};
    const option_row own[] = {{"--copy", OPTION_INTEGER, &b.copy}, FACTS_OPTIONS(b.f)};
    const int status = facts_run(&b.f, argc, argv, own, usage, &decode, &b);
    facts_close(&b.f);
    free(b.logits);
    free(b.full);
    free(b.passage);
    return status;
}
